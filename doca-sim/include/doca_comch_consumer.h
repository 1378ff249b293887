/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Comch, fast path: consumers, queues of buffers that producers of the peer fill without a copy in
 * between.
 * What is said to be of the DPA data path is NOT_SUPPORTED in the simulator, which has no DPA.
 */

#ifndef DOCA_COMCH_CONSUMER_H_
#define DOCA_COMCH_CONSUMER_H_

#include <stddef.h>
#include <stdint.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_dpa_thread;
struct doca_comch_consumer;
struct doca_comch_consumer_completion;
struct doca_comch_consumer_task_post_recv;

/* Declared elsewhere. */
struct doca_devinfo;
struct doca_ctx;
struct doca_mmap;
struct doca_buf;
struct doca_task;
struct doca_comch_connection;

/* Handles for code on the DPA. */
typedef uint64_t doca_dpa_dev_comch_consumer_completion_t;

typedef uint64_t doca_dpa_dev_comch_consumer_t;

/* A buffer was filled, or comes back empty: task, user data of the task and of the context. */
typedef void (*doca_comch_consumer_task_post_recv_completion_cb_t)(struct doca_comch_consumer_task_post_recv *, union doca_data, union doca_data);

/*
 * A receive queue on a connection. Every buffer posted to it lies in the mmap, which outlives it.
 * Errors: INVALID_VALUE, NO_MEMORY, BAD_STATE, NOT_PERMITTED.
 */
DOCA_STABLE
doca_error_t doca_comch_consumer_create(
	struct doca_comch_connection *comch_connection,
	struct doca_mmap *buf_mmap,
	struct doca_comch_consumer **consumer);

/* IN_USE unless the context is IDLE. Errors: INVALID_VALUE, INITIALIZATION. */
DOCA_STABLE
doca_error_t doca_comch_consumer_destroy(struct doca_comch_consumer *consumer);

/* Whether the device has the fast path. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_comch_consumer_cap_is_supported(const struct doca_devinfo *devinfo);

/* Its number on the connection, from 1. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_consumer_get_id(const struct doca_comch_consumer *consumer, uint32_t *id);

/* Most post-receive tasks of one consumer. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_consumer_cap_get_max_num_tasks(
	const struct doca_devinfo *devinfo,
	uint32_t *max_num_tasks);

/* Largest buffer, bytes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_comch_consumer_cap_get_max_buf_size(
	const struct doca_devinfo *devinfo,
	uint32_t *max_buf_size);

/* Longest chain of buffers. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_comch_consumer_cap_get_max_buf_list_len(
	const struct doca_devinfo *devinfo,
	uint32_t *max_buf_list_len);

/* Most consumers on one side of a connection. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_consumer_cap_get_max_consumers(
	const struct doca_devinfo *devinfo,
	uint32_t *max_consumers);

/* Most immediate data, bytes. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_consumer_cap_get_max_imm_data_len(
	const struct doca_devinfo *devinfo,
	uint32_t *max_imm_data_len);

/* The value in force. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_consumer_get_imm_data_len(
	const struct doca_comch_consumer *consumer,
	uint32_t *imm_data_len);

/*
 * Most immediate data that a producer may send here, bytes; IDLE only. Errors: INVALID_VALUE,
 * BAD_STATE.
 */
DOCA_STABLE
doca_error_t doca_comch_consumer_set_imm_data_len(
	struct doca_comch_consumer *consumer,
	uint32_t imm_data_len);

/* The context. Its start is IN_PROGRESS until the peer knows of it. */
DOCA_STABLE
struct doca_ctx *doca_comch_consumer_as_ctx(struct doca_comch_consumer *consumer);

/* DPA data path: where completions of consumers arrive. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_create(struct doca_comch_consumer_completion **consumer_comp);

/* DPA data path: the thread that is woken. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_set_dpa_thread(
	struct doca_comch_consumer_completion *consumer_comp,
	struct doca_dpa_thread *dpa_thread);

/* DPA data path. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_destroy(struct doca_comch_consumer_completion *consumer_comp);

/* DPA data path. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_start(struct doca_comch_consumer_completion *consumer_comp);

/* DPA data path. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_stop(struct doca_comch_consumer_completion *consumer_comp);

/* DPA data path: the handle for code on the DPA. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_get_dpa_handle(
	struct doca_comch_consumer_completion *consumer_comp,
	doca_dpa_dev_comch_consumer_completion_t *consumer_comp_handle);

/* DPA data path: consumers that share it, rounded up to a power of two. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_set_max_num_consumers(
	struct doca_comch_consumer_completion *consumer_comp,
	uint32_t max_num_consumers);

/* DPA data path: the value in force. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_get_max_num_consumers(
	const struct doca_comch_consumer_completion *consumer_comp,
	uint32_t *max_num_consumers);

/* DPA data path: receives of them all, rounded up to a power of two. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_set_max_num_recv(
	struct doca_comch_consumer_completion *consumer_comp,
	uint32_t max_num_recv);

/* DPA data path: the value in force. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_get_max_num_recv(
	const struct doca_comch_consumer_completion *consumer_comp,
	uint32_t *max_num_recv);

/* DPA data path: at least what each consumer has, bytes. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_set_imm_data_len(
	struct doca_comch_consumer_completion *consumer_comp,
	uint32_t imm_data_len);

/* DPA data path: the value in force. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_completion_get_imm_data_len(
	const struct doca_comch_consumer_completion *consumer_comp,
	uint32_t *imm_data_len);

/* DPA data path: receives of this consumer, rounded up to a power of two. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_set_dev_max_num_recv(
	struct doca_comch_consumer *consumer,
	uint32_t dev_num_recv);

/* DPA data path: where this consumer's completions go, and with which word. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_set_completion(
	struct doca_comch_consumer *consumer,
	struct doca_comch_consumer_completion *consumer_comp,
	uint32_t user_data);

/* DPA data path: the handle for code on the DPA. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_consumer_get_dpa_handle(
	struct doca_comch_consumer *consumer,
	doca_dpa_dev_comch_consumer_t *dpa_consumer);

/* Callbacks and number of post-receive tasks; IDLE only. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_consumer_task_post_recv_set_conf(
	struct doca_comch_consumer *consumer,
	doca_comch_consumer_task_post_recv_completion_cb_t task_completion_cb,
	doca_comch_consumer_task_post_recv_completion_cb_t task_error_cb,
	uint32_t num_post_recv_tasks);

/*
 * A buffer to be filled behind its data. NO_MEMORY while all tasks are out. Errors: INVALID_VALUE,
 * NO_MEMORY.
 */
DOCA_STABLE
doca_error_t doca_comch_consumer_task_post_recv_alloc_init(
	struct doca_comch_consumer *consumer,
	struct doca_buf *buf,
	struct doca_comch_consumer_task_post_recv **task);

/* The buffer. */
DOCA_STABLE
struct doca_buf *doca_comch_consumer_task_post_recv_get_buf(
	const struct doca_comch_consumer_task_post_recv *task);

/* For a task that the program owns. */
DOCA_STABLE
void doca_comch_consumer_task_post_recv_set_buf(
	struct doca_comch_consumer_task_post_recv *task,
	struct doca_buf *buf);

/* In the completion: who filled it. */
DOCA_STABLE
uint32_t doca_comch_consumer_task_post_recv_get_producer_id(
	const struct doca_comch_consumer_task_post_recv *task);

/*
 * In the completion: the immediate data, valid until the task is submitted or freed; NULL if there is
 * none.
 */
DOCA_STABLE
const uint8_t *doca_comch_consumer_task_post_recv_get_imm_data(
	const struct doca_comch_consumer_task_post_recv *task);

/* In the completion: bytes of it. */
DOCA_STABLE
uint32_t doca_comch_consumer_task_post_recv_get_imm_data_len(
	const struct doca_comch_consumer_task_post_recv *task);

/* The same pointer. */
DOCA_STABLE
struct doca_task *doca_comch_consumer_task_post_recv_as_task(struct doca_comch_consumer_task_post_recv *task);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_COMCH_CONSUMER_H_ */
