/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How this tree was configured: the side it is for, and what its headers offer. */

#ifndef DOCA_CONFIG_H_
#define DOCA_CONFIG_H_

#include <doca_build_config.h>

/* The helpers for versioned structures of doca_compat.h are there. */
#define DOCA_COMPAT_HELPERS

#endif /* DOCA_CONFIG_H_ */
