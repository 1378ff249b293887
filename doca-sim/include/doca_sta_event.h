/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* STA events: what the data path reports to the program. */

#ifndef DOCA_STA_EVENT_H_
#define DOCA_STA_EVENT_H_

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
struct doca_sta_io;
struct dev_sta_event;
struct doca_sta_event_transport_err;
struct doca_sta_event_be_timeout;
struct doca_sta_event_eu_err;
struct doca_sta_event_cqe_notify;

/* Declared elsewhere. */
struct doca_sta_qp_handle;
struct doca_sta;
struct doca_sta_be_handle;
struct doca_sta_be_q_handle;
struct doca_sta_eu_handle;
struct doca_sta_subs_handle;

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* What a reported completion complains of. */
enum doca_sta_cqe_notify_type {
	DOCA_STA_CQE_NOTIF_NVME_OF_VALIDATION_ERR = 0,
	DOCA_STA_CQE_NOTIF_NVME_COMP_ERR = 1,
};
#endif

/* Functions of the program that the library calls, from doca_pe_progress() unless said otherwise. */
typedef void (*doca_sta_event_transport_err_cb_t)(const struct doca_sta_event_transport_err *, union doca_data);
typedef void (*doca_sta_event_be_timeout_cb_t)(const struct doca_sta_event_be_timeout *, union doca_data);
typedef void (*doca_sta_event_eu_err_cb_t)(const struct doca_sta_event_eu_err *, union doca_data);
#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
typedef void (*doca_sta_event_cqe_notify_cb_t)(const struct doca_sta_event_cqe_notify *, union doca_data);
#endif

/* The queue pair that failed. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_transport_err_get_qp_handle(
	const struct doca_sta_event_transport_err *event,
	const struct doca_sta_qp_handle **qp_handle);

/* What it was doing. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_transport_err_get_operation(
	const struct doca_sta_event_transport_err *event,
	uint32_t *operation);

/* The syndrome of the completion. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_transport_err_get_syndrome(
	const struct doca_sta_event_transport_err *event,
	uint32_t *syndrome);

/* The vendor's syndrome. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_transport_err_get_vendor_syndrome(
	const struct doca_sta_event_transport_err *event,
	uint32_t *vendor_syndrome);

/* Who is told of transport errors on the queue pairs of an I/O context. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_io_event_transport_err_register_cb(
	struct doca_sta_io *sta_io,
	doca_sta_event_transport_err_cb_t event_cb,
	union doca_data user_data);

/* Who is told of commands that a back end does not answer. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_be_timeout_register_cb(
	struct doca_sta *sta,
	doca_sta_event_be_timeout_cb_t event_cb,
	union doca_data user_data);

/* The back end. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_be_timeout_get_be_handle(
	const struct doca_sta_event_be_timeout *event,
	const struct doca_sta_be_handle **be_handle);

/* Its queue. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_be_timeout_get_be_queue_handle(
	const struct doca_sta_event_be_timeout *event,
	const struct doca_sta_be_q_handle **be_queue_handle);

/* Who is told of errors of execution units. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_eu_err_register_cb(
	struct doca_sta *sta,
	doca_sta_event_eu_err_cb_t event_cb,
	union doca_data user_data);

/* Whether the unit is lost. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_eu_err_is_fatal_error(
	const struct doca_sta_event_eu_err *event,
	bool *is_fatal_error);

/* The execution unit. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_eu_err_get_eu_handle(
	const struct doca_sta_event_eu_err *event,
	const struct doca_sta_eu_handle **eu_handle);

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* Who is told of NVMe completions that carry an error. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_cqe_notify_register_cb(
	struct doca_sta *sta,
	doca_sta_event_cqe_notify_cb_t event_cb,
	union doca_data user_data);
#endif

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* Who found the error. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_cqe_notify_get_cqe_notify_type(
	const struct doca_sta_event_cqe_notify *event,
	enum doca_sta_cqe_notify_type *cqe_error_type);
#endif

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* The completion. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_cqe_notify_get_cqe(
	const struct doca_sta_event_cqe_notify *event,
	doca_sta_nvme_completion_t cqe);
#endif

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* The subsystem. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_cqe_notify_get_subsystem_handle(
	const struct doca_sta_event_cqe_notify *event,
	const struct doca_sta_subs_handle **subs_handle);
#endif

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* The queue pair. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_cqe_notify_get_qp_handle(
	const struct doca_sta_event_cqe_notify *event,
	const struct doca_sta_qp_handle **qp_handle);
#endif

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* What the command was. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_cqe_notify_get_capsule_params(
	const struct doca_sta_event_cqe_notify *event,
	uint8_t *opcode,
	uint16_t *cid,
	uint16_t *nsid,
	uint64_t *lba);
#endif

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* Which field of the command is at fault. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_event_cqe_notify_get_param_err_location(
	const struct doca_sta_event_cqe_notify *event,
	uint16_t *pel);
#endif

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_EVENT_H_ */
