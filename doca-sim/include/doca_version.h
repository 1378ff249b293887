/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The release that a program is compiled against, and the one that it runs with. */

#ifndef DOCA_VERSION_H_
#define DOCA_VERSION_H_

#include <stddef.h>
#include <doca_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOCA_VERSION_MAJOR 3
#define DOCA_VERSION_MINOR 3
/* Release patch times 1000 plus build. */
#define DOCA_VERSION_PATCH 0
#define DOCA_VERSION_STRING "3.3.0000"

/* One number for a version; holds while the patch is below 65536. */
#define DOCA_VERSION_CALC_EXACT(major, minor, patch) \
	(((size_t)(major) << 24) | ((size_t)(minor) << 16) | (size_t)(patch))
#define DOCA_VERSION_EXACT \
	DOCA_VERSION_CALC_EXACT(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR, DOCA_VERSION_PATCH)

/* The same with the patch counted in thousands. Compare major and minor instead: a packed patch spills. */
#define DOCA_VERSION_CALC(major, minor, patch) \
	(((size_t)(major) << 24) | ((size_t)(minor) << 16) | ((size_t)(patch) * 1000))
#define DOCA_VERSION_OFFICIAL \
	DOCA_VERSION_CALC(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR, DOCA_VERSION_PATCH)
#define DOCA_VERSION_EQ_CURRENT(major, minor, patch) \
	(DOCA_VERSION_CALC(major, minor, patch) == DOCA_VERSION_OFFICIAL)
#define DOCA_VERSION_LTE_CURRENT(major, minor, patch) \
	(DOCA_VERSION_CALC(major, minor, patch) <= DOCA_VERSION_OFFICIAL)

/* Version runtime. */
DOCA_EXPERIMENTAL
const char *doca_version_runtime(void);

/* The version that the program was compiled against. */
static inline const char *doca_version(void)
{
	return DOCA_VERSION_STRING;
}

#ifdef __cplusplus
}
#endif

#endif /* DOCA_VERSION_H_ */
