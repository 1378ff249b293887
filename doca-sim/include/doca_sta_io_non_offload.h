/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* STA commands that the data path leaves to the program, and the answers to them. */

#ifndef DOCA_STA_IO_NON_OFFLOAD_H_
#define DOCA_STA_IO_NON_OFFLOAD_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>
#include <stdbool.h>
#include <doca_sta_handle.h>
#include <doca_version.h>
#include <doca_sta_task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of an NVMe-oF completion. */
#define DOCA_STA_NVMEF_COMPLETION_SIZE (16)

/* An NVMe-oF response capsule. */
typedef uint8_t doca_sta_nvmef_completion_t[DOCA_STA_NVMEF_COMPLETION_SIZE];

/* Declared elsewhere. */
struct doca_sta_qp_handle;
struct doca_sta_io;
struct doca_sta_producer_task_send;

/* Functions of the program that the library calls, from doca_pe_progress() unless said otherwise. */
typedef void (*doca_sta_io_non_offload_cb_t)(struct doca_sta_qp_handle *, union doca_data, const uint8_t *, uint8_t *, uint32_t, bool, union doca_data);

/* Who is given the commands that the data path does not serve itself. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_non_offload_register_cb(
	struct doca_sta_io *sta_io,
	doca_sta_io_non_offload_cb_t non_offload_cb,
	union doca_data user_data);

/* Before start: who is told that an answer, with data or without, has been sent. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_set_rdma_write_send_conf(
	struct doca_sta_io *sta_io,
	doca_sta_task_completion_cb_t task_completion_cb,
	doca_sta_task_completion_cb_t task_error_cb);

/* Before start: who is told that the data of a command have been fetched. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_set_rdma_read_conf(
	struct doca_sta_io *sta_io,
	doca_sta_task_completion_cb_t task_completion_cb,
	doca_sta_task_completion_cb_t task_error_cb);

/* A task that writes data to the host and sends the answer behind it. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_rdma_write_send_alloc_init(
	struct doca_sta_io *sta_io,
	union doca_data user_data,
	struct doca_sta_qp_handle *qp_handle,
	doca_sta_nvmef_completion_t completion,
	union doca_data non_offload_user_data,
	struct doca_sta_producer_task_send **task);

/* A task that sends an answer without data. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_rdma_send_alloc_init(
	struct doca_sta_io *sta_io,
	union doca_data user_data,
	struct doca_sta_qp_handle *qp_handle,
	doca_sta_nvmef_completion_t completion,
	union doca_data non_offload_user_data,
	struct doca_sta_producer_task_send **task);

/* A task that fetches the data of a command from the host. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_non_offload_rdma_read_alloc_init(
	struct doca_sta_io *sta_io,
	union doca_data user_data,
	struct doca_sta_qp_handle *qp_handle,
	union doca_data non_offload_user_data,
	struct doca_sta_producer_task_send **task);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_IO_NON_OFFLOAD_H_ */
