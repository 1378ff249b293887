/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* DMA: copies within local memory and across PCI. */

#ifndef DOCA_DMA_H_
#define DOCA_DMA_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_gpu_dma;
struct doca_dma_task_memcpy;
struct doca_dma;

/* Declared elsewhere. */
struct doca_dev;
struct doca_devinfo;
struct doca_ctx;
struct doca_buf;
struct doca_task;

/* Functions of the program that the library calls, from doca_pe_progress() unless said otherwise. */
typedef void (*doca_dma_task_memcpy_completion_cb_t)(struct doca_dma_task_memcpy *, union doca_data, union doca_data);

/* An instance on an opened device. Errors: INVALID_VALUE, NO_MEMORY, INITIALIZATION. */
DOCA_STABLE
doca_error_t doca_dma_create(struct doca_dev *dev, struct doca_dma **dma);

/* IN_USE unless the context is IDLE. Errors: IN_USE. */
DOCA_STABLE
doca_error_t doca_dma_destroy(struct doca_dma *dma);

/* Every device can. Errors: INVALID_VALUE, DRIVER, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_dma_cap_task_memcpy_is_supported(const struct doca_devinfo *devinfo);

/* The context. */
DOCA_STABLE
struct doca_ctx *doca_dma_as_ctx(struct doca_dma *dma);

/* Most tasks of one context. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_dma_cap_get_max_num_tasks(struct doca_dma *dma, uint32_t *max_num_tasks);

/* Longest chain. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_dma_cap_task_memcpy_get_max_buf_list_len(
	const struct doca_devinfo *devinfo,
	uint32_t *max_buf_list_len);

/* Largest copy, bytes. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_dma_cap_task_memcpy_get_max_buf_size(
	const struct doca_devinfo *devinfo,
	uint64_t *buf_size);

/* Configures the tasks; BAD_STATE unless IDLE. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_dma_task_memcpy_set_conf(
	struct doca_dma *dma,
	doca_dma_task_memcpy_completion_cb_t task_completion_cb,
	doca_dma_task_memcpy_completion_cb_t task_error_cb,
	uint32_t num_memcpy_tasks);

/* A copy from src to dst. Errors: NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_dma_task_memcpy_alloc_init(
	struct doca_dma *dma,
	const struct doca_buf *src,
	struct doca_buf *dst,
	union doca_data user_data,
	struct doca_dma_task_memcpy **task);

/* The same pointer. */
DOCA_STABLE
struct doca_task *doca_dma_task_memcpy_as_task(struct doca_dma_task_memcpy *task);

/* For a task that the program owns. */
DOCA_STABLE
void doca_dma_task_memcpy_set_src(struct doca_dma_task_memcpy *task, const struct doca_buf *src);

/* The value set last. */
DOCA_STABLE
const struct doca_buf *doca_dma_task_memcpy_get_src(const struct doca_dma_task_memcpy *task);

/* For a task that the program owns. */
DOCA_STABLE
void doca_dma_task_memcpy_set_dst(struct doca_dma_task_memcpy *task, struct doca_buf *dst);

/* The value set last. */
DOCA_STABLE
struct doca_buf *doca_dma_task_memcpy_get_dst(const struct doca_dma_task_memcpy *task);

/* The context is never on a GPU. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_dma_get_gpu_handle(struct doca_dma *dma, struct doca_gpu_dma **gpu_dma);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_DMA_H_ */
