/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* STA I/O contexts: one for each thread that serves initiators. */

#ifndef DOCA_STA_IO_H_
#define DOCA_STA_IO_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>
#include <doca_version.h>
#include <doca_sta_handle.h>
#include <doca_sta_task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Declared elsewhere. */
struct doca_sta;
struct doca_sta_io;
struct doca_ctx;
struct doca_sta_qp_handle;
struct doca_sta_producer_task_send;

/* Makes an I/O context of a target, to be run by one thread. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_create(struct doca_sta *sta, struct doca_sta_io **sta_io);

/* Ends an I/O context that is IDLE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_destroy(struct doca_sta_io *sta_io);

/* The I/O context as a context. */
DOCA_EXPERIMENTAL
struct doca_ctx *doca_sta_io_as_ctx(struct doca_sta_io *sta_io);

/* Before start: who is told that a queue pair has been disconnected. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_disconnect_set_conf(
	struct doca_sta_io *sta_io,
	doca_sta_task_completion_cb_t task_completion_cb,
	doca_sta_task_completion_cb_t task_error_cb);

/* A task that disconnects a queue pair. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_task_disconnect_alloc_init(
	struct doca_sta_io *sta_io,
	union doca_data user_data,
	struct doca_sta_qp_handle *qp_handle,
	struct doca_sta_producer_task_send **task);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_IO_H_ */
