/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The progress engine and tasks. Completions and events are delivered by doca_pe_progress() and by
 * nothing else.
 */

#ifndef DOCA_PE_H_
#define DOCA_PE_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_pe;
struct doca_task;
struct doca_task_batch;

/* Declared elsewhere. */
struct doca_ctx;

/* How many tasks a batch can hold. */
enum doca_task_batch_max_tasks_number {
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_16 = 0,
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_32 = 1,
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_64 = 2,
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_128 = 3,
};

/* How many events make one batch. */
enum doca_event_batch_events_number {
	DOCA_EVENT_BATCH_EVENTS_NUMBER_1 = 0,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_2 = 1,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_4 = 2,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_8 = 3,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_16 = 4,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_32 = 5,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_64 = 6,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_128 = 7,
};

/* Flags of doca_task_submit_ex(). */
enum doca_task_submit_flag {
	DOCA_TASK_SUBMIT_FLAG_NONE = 0,
	DOCA_TASK_SUBMIT_FLAG_FLUSH = 1,
	DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS = 2,
};

/* Which contexts progress serves while a notification is armed. */
enum doca_pe_event_mode {
	DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE = 0,
	DOCA_PE_EVENT_MODE_PROGRESS_ALL = 1,
};

/* Functions of the program that the library calls, from doca_pe_progress() unless said otherwise. */
typedef void (*doca_task_completion_cb_t)(struct doca_task *, union doca_data, union doca_data);

/* ---- engine ---- */

/* An engine without contexts. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_pe_create(struct doca_pe **pe);

/* IN_USE while contexts are connected. Errors: INVALID_VALUE, IN_USE. */
DOCA_STABLE
doca_error_t doca_pe_destroy(struct doca_pe *pe);

/* One step; 1 if something happened. */
DOCA_STABLE
uint8_t doca_pe_progress(struct doca_pe *pe);

/* The descriptor to sleep on. */
DOCA_STABLE
doca_error_t doca_pe_get_notification_handle(
	const struct doca_pe *pe,
	doca_notification_handle_t *handle);

/* Disarms it. The handle is ignored on Linux. Errors: OPERATING_SYSTEM. */
DOCA_STABLE
doca_error_t doca_pe_clear_notification(struct doca_pe *pe, doca_notification_handle_t handle);

/* Arms the descriptor. */
DOCA_STABLE
doca_error_t doca_pe_request_notification(struct doca_pe *pe);

/* Tasks in flight over all contexts. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_pe_get_num_inflight_tasks(const struct doca_pe *pe, size_t *num_inflight_tasks);

/* ---- tasks ---- */

/* Hands a task over and starts it. */
DOCA_STABLE
doca_error_t doca_task_submit(struct doca_task *task);

/* The same with flags. */
DOCA_EXPERIMENTAL
doca_error_t doca_task_submit_ex(struct doca_task *task, uint32_t flags);

/* ---- batches ---- */

/* Hands all tasks of a batch over. Batches are allocated by libraries that have them. */
DOCA_EXPERIMENTAL
doca_error_t doca_task_batch_submit(struct doca_task_batch *task_batch);

/* ---- tasks ---- */

/* As doca_task_submit(), after checking the fields; slower, for debugging. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_task_try_submit(struct doca_task *task);

/* ---- batches ---- */

/* The same, with the checks of doca_task_try_submit(). Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_task_batch_try_submit(struct doca_task_batch *task_batch);

/* ---- tasks ---- */

/* Gives a task back to its pool. */
DOCA_STABLE
void doca_task_free(struct doca_task *task);

/* ---- batches ---- */

/* Gives a batch back. */
DOCA_EXPERIMENTAL
void doca_task_batch_free(struct doca_task_batch *task_batch);

/* ---- tasks ---- */

/* How its last flight ended. */
DOCA_STABLE
doca_error_t doca_task_get_status(const struct doca_task *task);

/* ---- batches ---- */

/* How the batch ended: SUCCESS, or the first failure. */
DOCA_EXPERIMENTAL
doca_error_t doca_task_batch_get_status(const struct doca_task_batch *task_batch);

/* ---- tasks ---- */

/* Sets the word that the callback of the task is given. Not while in flight. */
DOCA_STABLE
void doca_task_set_user_data(struct doca_task *task, union doca_data user_data);

/* ---- batches ---- */

/* Sets the word that the callback of the batch is given. */
DOCA_EXPERIMENTAL
void doca_task_batch_set_user_data(struct doca_task_batch *task_batch, union doca_data user_data);

/* ---- tasks ---- */

/* The word that the callback of the task is given. */
DOCA_STABLE
union doca_data doca_task_get_user_data(const struct doca_task *task);

/* ---- batches ---- */

/* The word that the callback of the batch is given. */
DOCA_EXPERIMENTAL
union doca_data doca_task_batch_get_user_data(const struct doca_task_batch *task_batch);

/* ---- tasks ---- */

/* The context. */
DOCA_STABLE
struct doca_ctx *doca_task_get_ctx(const struct doca_task *task);

/* ---- batches ---- */

/* The context of the batch. */
DOCA_EXPERIMENTAL
struct doca_ctx *doca_task_batch_get_ctx(const struct doca_task_batch *task_batch);

/* The word of the batch's context. */
DOCA_EXPERIMENTAL
union doca_data doca_task_batch_get_ctx_user_data(const struct doca_task_batch *task_batch);

/* How many tasks the batch holds. */
DOCA_EXPERIMENTAL
uint16_t doca_task_batch_get_tasks_num(struct doca_task_batch *task_batch);

/* ---- engine ---- */

/* Connects a context, for good. Errors: INVALID_VALUE, NO_MEMORY, BAD_STATE, NOT_PERMITTED. */
DOCA_STABLE
doca_error_t doca_pe_connect_ctx(struct doca_pe *pe, struct doca_ctx *ctx);

/* Which contexts are served while armed. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_pe_set_event_mode(struct doca_pe *pe, enum doca_pe_event_mode event_mode);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_PE_H_ */
