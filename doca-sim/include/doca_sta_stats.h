/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* STA statistics: counters of queue pairs, back ends and execution units. */

#ifndef DOCA_STA_STATS_H_
#define DOCA_STA_STATS_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>
#include <doca_version.h>
#include <doca_sta_handle.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Declared elsewhere. */
struct doca_sta_eu_handle;
struct doca_sta_eu_ctr_entry;
struct doca_sta;
struct doca_sta_qp_handle;
struct doca_sta_be_handle;
struct doca_sta_be_q_handle;
struct doca_sta_subs_handle;
struct doca_sta_ns_handle;

/* What an execution unit works on. */
enum dpa_sta_eu_type {
	DOCA_STA_EU_TYPE_UNKNOWN = 0,
	DOCA_STA_EU_COMP = 1,
	DOCA_STA_EU_TX = 2,
	DOCA_STA_EU_BEQ = 3,
	DOCA_STA_EU_MAX = 4,
};

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* States of an execution unit. */
enum dpa_sta_eu_state {
	DOCA_STA_EU_STATE_IDLE = 0,
	DOCA_STA_EU_STATE_STOPPING = 1,
	DOCA_STA_EU_STATE_STARTED = 2,
	DOCA_STA_EU_STATE_SUSPENDED = 3,
	DOCA_STA_EU_STATE_STOPPED = 4,
};
#endif

/* A counter: its name and where its value is. */
struct doca_sta_eu_ctr_entry {
	const char *name;
	const uint64_t *val;
};

/* Counters of an execution unit. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_eu_stats(
	struct doca_sta_eu_handle *eu_handle,
	const struct doca_sta_eu_ctr_entry **entries,
	uint16_t *num_entries);

/* Sets the counters of an execution unit to zero. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_eu_reset_stats_handle(struct doca_sta_eu_handle *eu_handle);

/* Sets the counters of all execution units of a type to zero. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_eu_reset_stats_type(struct doca_sta *sta, enum dpa_sta_eu_type eu_type);

/* Queue pairs that an execution unit serves. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_eu_connect_qp_stats(
	struct doca_sta_eu_handle *eu_handle,
	struct doca_sta_qp_handle **arr,
	uint16_t *arr_size);

/* Counters of a back-end queue. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_be_queue_stats(
	struct doca_sta_be_handle *be_handle,
	struct doca_sta_be_q_handle *be_q_handle,
	const struct doca_sta_eu_ctr_entry **entries,
	uint16_t *num_entries);

/* Counters of a namespace. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_ns_stats(
	struct doca_sta_subs_handle *subs_handle,
	struct doca_sta_ns_handle *ns_handle,
	const struct doca_sta_eu_ctr_entry **entries,
	uint16_t *num_entries);

/* The execution units. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_eu_handle(
	const struct doca_sta *sta,
	struct doca_sta_eu_handle **eu_handle_arr,
	uint32_t *arr_size);

/* Name of an execution unit. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_eu_name(const struct doca_sta_eu_handle *eu_handle, const char **name);

/* What it works on. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_eu_type(
	const struct doca_sta_eu_handle *eu_handle,
	enum dpa_sta_eu_type *type);

/* Its number. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_eu_id(const struct doca_sta_eu_handle *eu_handle, uint16_t *eu_id);

/* The port that it is on. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_eu_port(const struct doca_sta_eu_handle *eu_handle, uint16_t *port);

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* What it is doing. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_eu_state(
	struct doca_sta_eu_handle *eu_handle,
	enum dpa_sta_eu_state *state);
#endif

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_STATS_H_ */
