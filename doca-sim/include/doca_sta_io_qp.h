/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* STA queue pairs: connections of initiators. */

#ifndef DOCA_STA_IO_QP_H_
#define DOCA_STA_IO_QP_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>
#include <stdbool.h>
#include <doca_sta_handle.h>
#include <doca_version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct rdma_cm_id;

/* Declared elsewhere. */
struct doca_sta_io;
struct doca_dev;
struct doca_sta_qp_handle;
struct doca_sta_subs_handle;

/* Makes a queue pair of an I/O context. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_alloc(
	struct doca_sta_io *sta_io,
	const struct doca_dev *dev,
	struct doca_sta_qp_handle **qp_handle);

/* Accepts a connection request of RDMA CM for a queue pair; the rdma_cm_id becomes the library's. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_accept(
	struct doca_sta_io *sta_io,
	struct doca_sta_qp_handle *qp_handle,
	const struct doca_dev *dev,
	struct rdma_cm_id *cm_id,
	const void *priv_data,
	uint32_t priv_size,
	struct doca_sta_subs_handle *subs_handle);

/* Makes a queue pair and accepts a connection request for it in one step. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_connect(
	struct doca_sta_io *sta_io,
	const struct doca_dev *dev,
	struct rdma_cm_id *cm_id,
	const void *priv_data,
	uint32_t priv_size,
	struct doca_sta_subs_handle *subs_handle,
	struct doca_sta_qp_handle **qp_handle);

/* How many commands the host may have under way. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_connect_set_sq_size(
	struct doca_sta_io *sta_io,
	struct doca_sta_qp_handle *qp_handle,
	uint16_t sq_size);

/* Says that RDMA CM has reported the connection as established. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_connect_established(
	struct doca_sta_io *sta_io,
	struct doca_sta_qp_handle *qp_handle);

/* Ends a queue pair that is disconnected. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_destroy(
	struct doca_sta_io *sta_io,
	struct doca_sta_qp_handle *qp_handle);

/* Says which subsystem the queue pair serves. */
#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_add_subsystem(
	struct doca_sta_io *sta_io,
	const struct doca_sta_subs_handle *subs_handle,
	struct doca_sta_qp_handle *qp_handle);
#else
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_add_subsystem(
	struct doca_sta_io *sta_io,
	struct doca_sta_subs_handle *subs_handle,
	struct doca_sta_qp_handle *qp_handle);
#endif

/* The number of the queue pair. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_get_id(struct doca_sta_qp_handle *qp_handle, uint32_t *qp_id);

/* The port that it is on. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_get_port_id(struct doca_sta_qp_handle *qp_handle, uint16_t *port_id);

/* The group that it is in. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_get_group_id(struct doca_sta_qp_handle *qp_handle, uint16_t *group_id);

/* Its place in the group. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_get_index_in_group(
	struct doca_sta_qp_handle *qp_handle,
	uint16_t *qp_idx);

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* Sets the program's word of a queue pair. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_set_user_data(
	struct doca_sta_io *sta_io,
	struct doca_sta_qp_handle *qp_handle,
	union doca_data user_data);
#endif

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* The program's word of a queue pair. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_qp_get_user_data(
	const struct doca_sta_qp_handle *qp_handle,
	union doca_data *user_data);
#endif

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_IO_QP_H_ */
