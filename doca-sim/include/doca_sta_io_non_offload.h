/*
 * doca_sta_io_non_offload.h: commands that are not offloaded. Part of the software DOCA SDK.
 */
#ifndef DOCA_STA_IO_NON_OFFLOAD_H_
#define DOCA_STA_IO_NON_OFFLOAD_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <doca_compat.h>
#include <doca_error.h>
#include <doca_sta_handle.h>
#include <doca_sta_task.h>
#include <doca_types.h>
#include <doca_version.h>

#ifdef __cplusplus
extern "C" {
#endif

#if DOCA_VERSION_MINOR < 1
#define DOCA_STA_NVMEF_COMPLETION_SIZE (16)
#endif

struct doca_sta_io;
struct doca_sta_producer_task_send;
struct doca_sta_qp_handle;

#if DOCA_VERSION_MINOR < 1
typedef uint8_t doca_sta_nvmef_completion_t[16];
#endif

typedef void (*doca_sta_io_non_offload_cb_t)(struct doca_sta_qp_handle *, union doca_data, const uint8_t *,
		uint8_t *, uint32_t, bool, union doca_data);

DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_non_offload_register_cb(struct doca_sta_io *sta_io,
		doca_sta_io_non_offload_cb_t non_offload_cb, union doca_data user_data);

DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_set_rdma_write_send_conf(struct doca_sta_io *sta_io,
		doca_sta_task_completion_cb_t task_completion_cb, doca_sta_task_completion_cb_t task_error_cb);

DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_set_rdma_read_conf(struct doca_sta_io *sta_io,
		doca_sta_task_completion_cb_t task_completion_cb, doca_sta_task_completion_cb_t task_error_cb);

/* Errors: DOCA_ERROR_NO_MEMORY. */
#if DOCA_VERSION_MINOR >= 1
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_rdma_write_send_alloc_init(struct doca_sta_io *sta_io,
		union doca_data user_data, struct doca_sta_qp_handle *qp_handle, doca_sta_nvme_completion_t completion,
		union doca_data non_offload_user_data, struct doca_sta_producer_task_send **task);
#else
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_rdma_write_send_alloc_init(struct doca_sta_io *sta_io,
		union doca_data user_data, struct doca_sta_qp_handle *qp_handle, doca_sta_nvmef_completion_t completion,
		union doca_data non_offload_user_data, struct doca_sta_producer_task_send **task);
#endif

/* Errors: DOCA_ERROR_NO_MEMORY. */
#if DOCA_VERSION_MINOR >= 1
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_rdma_send_alloc_init(struct doca_sta_io *sta_io,
		union doca_data user_data, struct doca_sta_qp_handle *qp_handle, doca_sta_nvme_completion_t completion,
		union doca_data non_offload_user_data, struct doca_sta_producer_task_send **task);
#else
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_rdma_send_alloc_init(struct doca_sta_io *sta_io,
		union doca_data user_data, struct doca_sta_qp_handle *qp_handle, doca_sta_nvmef_completion_t completion,
		union doca_data non_offload_user_data, struct doca_sta_producer_task_send **task);
#endif

/* Errors: DOCA_ERROR_NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_rdma_read_alloc_init(struct doca_sta_io *sta_io,
		union doca_data user_data, struct doca_sta_qp_handle *qp_handle, union doca_data non_offload_user_data,
		struct doca_sta_producer_task_send **task);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_IO_NON_OFFLOAD_H_ */
