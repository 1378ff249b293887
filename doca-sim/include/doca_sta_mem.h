/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* STA memory: the program may allocate for the library. */

#ifndef DOCA_STA_MEM_H_
#define DOCA_STA_MEM_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>
#include <doca_version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an address translation gives when there is none. */
#define DOCA_STA_VTOPHYS_ERROR (0xFFFFFFFFFFFFFFFFULL)

/* Declared elsewhere. */
struct doca_sta;

/* Functions of the program that the library calls, from doca_pe_progress() unless said otherwise. */
typedef void *(*doca_sta_zmalloc_cb_t)(size_t, size_t, uint64_t *);
typedef void (*doca_sta_free_cb_t)(void *);
typedef uint64_t (*doca_sta_vtophys_cb_t)(const void *, uint32_t);

/* Before start: memory comes from the program's functions. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_mem_allocator_register(
	const struct doca_sta *sta,
	doca_sta_zmalloc_cb_t alloc_cb,
	doca_sta_free_cb_t free_cb,
	doca_sta_vtophys_cb_t vtophys_cb);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_MEM_H_ */
