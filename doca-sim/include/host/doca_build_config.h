/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which side of the PCI bus this tree is for. */

#ifndef DOCA_BUILD_CONFIG_H_
#define DOCA_BUILD_CONFIG_H_

#define DOCA_ARCH_HOST
#define DOCA_ARCH_X86

#endif /* DOCA_BUILD_CONFIG_H_ */
