/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Comch, fast path: producers, queues of buffers that go to consumers of the peer.
 * What is said to be of the DPA data path is NOT_SUPPORTED in the simulator, which has no DPA.
 */

#ifndef DOCA_COMCH_PRODUCER_H_
#define DOCA_COMCH_PRODUCER_H_

#include <stddef.h>
#include <stdint.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_comch_producer;
struct doca_comch_producer_task_send;

/* Declared elsewhere. */
struct doca_devinfo;
struct doca_ctx;
struct doca_buf;
struct doca_task;
struct doca_comch_connection;
struct doca_dpa_completion;

typedef uint64_t doca_dpa_dev_comch_producer_t;

/* A buffer was sent, or could not be: task, user data of the task and of the context. */
typedef void (*doca_comch_producer_task_send_completion_cb_t)(struct doca_comch_producer_task_send *, union doca_data, union doca_data);

/*
 * A send queue on a connection, to any consumer of the peer there. Errors: INVALID_VALUE, NO_MEMORY,
 * BAD_STATE, NOT_PERMITTED.
 */
DOCA_STABLE
doca_error_t doca_comch_producer_create(
	struct doca_comch_connection *comch_connection,
	struct doca_comch_producer **producer);

/* IN_USE unless the context is IDLE. Errors: INVALID_VALUE, INITIALIZATION. */
DOCA_STABLE
doca_error_t doca_comch_producer_destroy(struct doca_comch_producer *producer);

/* Whether the device has the fast path. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_comch_producer_cap_is_supported(const struct doca_devinfo *devinfo);

/* Its number on the connection, from 1. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_producer_get_id(const struct doca_comch_producer *producer, uint32_t *id);

/* Most send tasks of one producer. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_producer_cap_get_max_num_tasks(
	const struct doca_devinfo *devinfo,
	uint32_t *max_num_tasks);

/* Largest buffer, bytes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_comch_producer_cap_get_max_buf_size(
	const struct doca_devinfo *devinfo,
	uint32_t *max_buf_size);

/* Longest chain of buffers. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_comch_producer_cap_get_max_buf_list_len(
	const struct doca_devinfo *devinfo,
	uint32_t *max_buf_list_len);

/* Most producers on one side of a connection. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_producer_cap_get_max_producers(
	const struct doca_devinfo *devinfo,
	uint32_t *max_producers);

/* The context. */
DOCA_STABLE
struct doca_ctx *doca_comch_producer_as_ctx(struct doca_comch_producer *producer);

/* DPA data path: sends in flight, rounded up to a power of two. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_producer_set_dev_max_num_send(
	struct doca_comch_producer *producer,
	uint32_t dev_num_send);

/* DPA data path: where completions go. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_producer_dpa_completion_attach(
	struct doca_comch_producer *producer,
	struct doca_dpa_completion *dpa_comp);

/* DPA data path: the handle for code on the DPA. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_producer_get_dpa_handle(
	struct doca_comch_producer *producer,
	doca_dpa_dev_comch_producer_t *dpa_producer);

/* Callbacks and number of send tasks; IDLE only. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_producer_task_send_set_conf(
	struct doca_comch_producer *producer,
	doca_comch_producer_task_send_completion_cb_t task_completion_cb,
	doca_comch_producer_task_send_completion_cb_t task_error_cb,
	uint32_t num_send_tasks);

/*
 * The buffer's data, and immediate data, which is copied, to a consumer. NULL and 0 for none.
 * NO_MEMORY while all tasks are out. Its submit is AGAIN while the consumer has no buffer posted.
 * Errors: INVALID_VALUE, NO_MEMORY.
 */
DOCA_STABLE
doca_error_t doca_comch_producer_task_send_alloc_init(
	struct doca_comch_producer *producer,
	const struct doca_buf *buf,
	uint8_t *imm_data,
	uint32_t imm_data_len,
	uint32_t consumer_id,
	struct doca_comch_producer_task_send **task);

/* The buffer. */
DOCA_STABLE
const struct doca_buf *doca_comch_producer_task_send_get_buf(
	const struct doca_comch_producer_task_send *task);

/* For a task that the program owns. */
DOCA_STABLE
void doca_comch_producer_task_send_set_buf(
	struct doca_comch_producer_task_send *task,
	const struct doca_buf *buf);

/* The consumer. */
DOCA_STABLE
uint32_t doca_comch_producer_task_send_get_consumer_id(const struct doca_comch_producer_task_send *task);

/* For a task that the program owns. */
DOCA_STABLE
void doca_comch_producer_task_send_set_consumer_id(
	struct doca_comch_producer_task_send *task,
	const uint32_t consumer_id);

/* The task's copy; NULL if there is none. */
DOCA_STABLE
uint8_t *doca_comch_producer_task_send_get_imm_data(const struct doca_comch_producer_task_send *task);

/* Bytes of it. */
DOCA_STABLE
uint32_t doca_comch_producer_task_send_get_imm_data_len(const struct doca_comch_producer_task_send *task);

/* For a task that the program owns; the bytes are copied. */
DOCA_STABLE
void doca_comch_producer_task_send_set_imm_data(
	struct doca_comch_producer_task_send *task,
	uint8_t *imm_data,
	uint32_t imm_data_len);

/* The same pointer. */
DOCA_STABLE
struct doca_task *doca_comch_producer_task_send_as_task(struct doca_comch_producer_task_send *task);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_COMCH_PRODUCER_H_ */
