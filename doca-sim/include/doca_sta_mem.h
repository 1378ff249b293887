/*
 * doca_sta_mem.h: memory of storage targets. Part of the software DOCA SDK.
 */
#ifndef DOCA_STA_MEM_H_
#define DOCA_STA_MEM_H_

#include <stddef.h>
#include <stdint.h>

#include <doca_compat.h>
#include <doca_error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOCA_STA_VTOPHYS_ERROR (0xFFFFFFFFFFFFFFFFULL)

struct doca_sta;

typedef void *(*doca_sta_zmalloc_cb_t)(size_t, size_t, uint64_t *);

typedef void (*doca_sta_free_cb_t)(void *);

typedef uint64_t (*doca_sta_vtophys_cb_t)(const void *, uint32_t);

DOCA_EXPERIMENTAL
doca_error_t doca_sta_mem_allocator_register(const struct doca_sta *sta, doca_sta_zmalloc_cb_t alloc_cb,
		doca_sta_free_cb_t free_cb, doca_sta_vtophys_cb_t vtophys_cb);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_MEM_H_ */
