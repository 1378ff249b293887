/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* STA back ends: the NVMe controllers behind a target, and their queues. */

#ifndef DOCA_STA_BE_H_
#define DOCA_STA_BE_H_

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
struct doca_sta_be_handle;
struct doca_mmap;
struct doca_sta_be_q_handle;
struct doca_sta_producer_task_send;
struct doca_sta_eu_ctr_entry;

/* Makes a back end: an NVMe controller behind the target. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_be_create(struct doca_sta *sta, struct doca_sta_be_handle **be_handle);

/* Ends a back end whose queues are gone. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_be_destroy(struct doca_sta_be_handle *be_handle);

/*
 * Gives the data path a queue pair of the controller: submission queue, completion queue and
 * doorbells, as memory maps.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_be_add_queue(
	struct doca_sta_be_handle *be_handle,
	struct doca_mmap *sq,
	struct doca_mmap *sq_db_reg,
	uint16_t sq_db_offset,
	struct doca_mmap *cq,
	struct doca_mmap *cq_db_reg,
	uint16_t cq_db_offset,
	struct doca_sta_be_q_handle **be_q_handle);

/* Before start: who is told that a queue has been taken back. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_be_task_destroy_queue_set_conf(
	struct doca_sta *sta,
	doca_sta_task_completion_cb_t task_completion_cb,
	doca_sta_task_completion_cb_t task_error_cb);

/* A task that takes a queue back once its commands are done. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_be_destroy_queue_task_alloc_init(
	struct doca_sta_be_q_handle *be_q_handle,
	union doca_data user_data,
	struct doca_sta_producer_task_send **task);

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* Which execution units serve the queue. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_be_queue_mapping_info(
	const struct doca_sta_be_q_handle *be_q_handle,
	const struct doca_sta_eu_ctr_entry **entries,
	uint16_t *num_entries);
#endif

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_BE_H_ */
