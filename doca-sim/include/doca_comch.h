/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Comch, control path: messages between programs on the host and on the DPU, over named servers. */

#ifndef DOCA_COMCH_H_
#define DOCA_COMCH_H_

#include <stddef.h>
#include <stdint.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_comch_connection;
struct doca_comch_server;
struct doca_comch_client;
struct doca_comch_task_send;
struct doca_comch_event_msg_recv;
struct doca_comch_event_connection_status_changed;
struct doca_comch_event_consumer;

/* Declared elsewhere. */
struct doca_dev;
struct doca_dev_rep;
struct doca_devinfo;
struct doca_ctx;
struct doca_task;

/* Counters of a connection, of this side and of its control path. */
enum doca_comch_counter {
	DOCA_COMCH_COUNTER_SENT_MESSAGES = 1,
	DOCA_COMCH_COUNTER_SENT_BYTES = 2,
	DOCA_COMCH_COUNTER_RECV_MESSAGES = 3,
	DOCA_COMCH_COUNTER_RECV_BYTES = 4,
};

/* A message was sent, or could not be: task, user data of the task and of the context. */
typedef void (*doca_comch_task_send_completion_cb_t)(struct doca_comch_task_send *, union doca_data, union doca_data);

/* A message has come: event, bytes (valid during the call), their number, connection. */
typedef void (*doca_comch_event_msg_recv_cb_t)(struct doca_comch_event_msg_recv *, uint8_t *, uint32_t, struct doca_comch_connection *);

/* A client has come or gone: event, connection, 1 or (it failed to come) 0. */
typedef void (*doca_comch_event_connection_status_changed_cb_t)(struct doca_comch_event_connection_status_changed *, struct doca_comch_connection *, uint8_t);

/* A consumer of the peer has come or gone: event, connection, its number. */
typedef void (*doca_comch_event_consumer_cb_t)(struct doca_comch_event_consumer *, struct doca_comch_connection *, uint32_t);

/* A word of the program's, kept with the connection; 0 before. */
DOCA_STABLE
doca_error_t doca_comch_connection_set_user_data(
	struct doca_comch_connection *connection,
	union doca_data user_data);

/* The word set last. */
DOCA_STABLE
union doca_data doca_comch_connection_get_user_data(const struct doca_comch_connection *connection);

/* The server that a connection belongs to; NULL for a client's. */
DOCA_STABLE
struct doca_comch_server *doca_comch_server_get_server_ctx(const struct doca_comch_connection *connection);

/* The client that a connection belongs to; NULL for a server's. */
DOCA_STABLE
struct doca_comch_client *doca_comch_client_get_client_ctx(const struct doca_comch_connection *connection);

/* Longest name of a server, bytes, NUL included. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_cap_get_max_name_len(const struct doca_devinfo *devinfo, uint32_t *max_name_len);

/* Largest message, bytes. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_cap_get_max_msg_size(const struct doca_devinfo *devinfo, uint32_t *size);

/* Deepest receive queue, messages. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_cap_get_max_recv_queue_size(const struct doca_devinfo *devinfo, uint32_t *size);

/* Most clients of one server. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_cap_get_max_clients(const struct doca_devinfo *devinfo, uint32_t *num_clients);

/*
 * A server for the clients of one host function: device and representor outlive it, the name is
 * copied. Errors: INVALID_VALUE, NO_MEMORY, INITIALIZATION.
 */
DOCA_STABLE
doca_error_t doca_comch_server_create(
	struct doca_dev *dev,
	struct doca_dev_rep *repr,
	const char *name,
	struct doca_comch_server **comch_server);

/* IN_USE unless the context is IDLE. Errors: INVALID_VALUE, IN_USE. */
DOCA_STABLE
doca_error_t doca_comch_server_destroy(struct doca_comch_server *comch_server);

/* Whether a server can run on the device: on a DPU only. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_comch_cap_server_is_supported(const struct doca_devinfo *devinfo);

/* Largest message both ways, bytes; IDLE only. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_server_set_max_msg_size(struct doca_comch_server *comch_server, uint32_t size);

/* The value in force. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_server_get_max_msg_size(const struct doca_comch_server *comch_server, uint32_t *size);

/*
 * Messages that a connection holds until progress hands them over; IDLE only. Errors: INVALID_VALUE,
 * BAD_STATE.
 */
DOCA_STABLE
doca_error_t doca_comch_server_set_recv_queue_size(struct doca_comch_server *comch_server, uint32_t size);

/* The value in force. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_server_get_recv_queue_size(
	const struct doca_comch_server *comch_server,
	uint32_t *size);

/* The device given at creation. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_server_get_device(
	const struct doca_comch_server *comch_server,
	struct doca_dev **dev);

/* The representor given at creation. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_server_get_device_rep(
	const struct doca_comch_server *comch_server,
	struct doca_dev_rep **rep);

/* The context. */
DOCA_STABLE
struct doca_ctx *doca_comch_server_as_ctx(struct doca_comch_server *comch_server);

/*
 * Ends a connection. After SUCCESS it is gone, and no event tells of it. IN_USE while producers or
 * consumers are on it; AGAIN while the peer cannot be told. Errors: INVALID_VALUE, IN_USE, AGAIN.
 */
DOCA_STABLE
doca_error_t doca_comch_server_disconnect(
	struct doca_comch_server *comch_server,
	struct doca_comch_connection *connection);

/*
 * A client of the server of that name, which is looked for at start. The device outlives it, the name
 * is copied. Errors: INVALID_VALUE, NO_MEMORY, INITIALIZATION.
 */
DOCA_STABLE
doca_error_t doca_comch_client_create(
	struct doca_dev *dev,
	const char *name,
	struct doca_comch_client **comch_client);

/* IN_USE unless the context is IDLE. Errors: INVALID_VALUE, IN_USE. */
DOCA_STABLE
doca_error_t doca_comch_client_destroy(struct doca_comch_client *comch_client);

/* Whether a client can run on the device: on a host only. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_comch_cap_client_is_supported(const struct doca_devinfo *devinfo);

/* As for a server. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_client_set_max_msg_size(struct doca_comch_client *comch_client, uint32_t size);

/* The value in force. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_client_get_max_msg_size(const struct doca_comch_client *comch_client, uint32_t *size);

/* As for a server. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_client_set_recv_queue_size(struct doca_comch_client *comch_client, uint32_t size);

/* The value in force. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_client_get_recv_queue_size(
	const struct doca_comch_client *comch_client,
	uint32_t *size);

/* The device given at creation. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_client_get_device(
	const struct doca_comch_client *comch_client,
	struct doca_dev **dev);

/*
 * The context. Its start is IN_PROGRESS until the server has answered; without one it falls back to
 * IDLE.
 */
DOCA_STABLE
struct doca_ctx *doca_comch_client_as_ctx(struct doca_comch_client *comch_client);

/* The connection of a running client; it belongs to the context. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_client_get_connection(
	const struct doca_comch_client *comch_client,
	struct doca_comch_connection **connection);

/* Most send tasks of one server or client. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_cap_get_max_send_tasks(const struct doca_devinfo *devinfo, uint32_t *max_send_tasks);

/*
 * Callbacks and number of send tasks, for all connections together; IDLE only. Errors: INVALID_VALUE,
 * BAD_STATE.
 */
DOCA_STABLE
doca_error_t doca_comch_server_task_send_set_conf(
	struct doca_comch_server *comch_server,
	doca_comch_task_send_completion_cb_t task_completion_cb,
	doca_comch_task_send_completion_cb_t task_error_cb,
	uint32_t num_send_tasks);

/* As for a server. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_client_task_send_set_conf(
	struct doca_comch_client *comch_client,
	doca_comch_task_send_completion_cb_t task_completion_cb,
	doca_comch_task_send_completion_cb_t task_error_cb,
	uint32_t num_send_tasks);

/*
 * A message to one client. The bytes are copied when the task is submitted. NO_MEMORY while all tasks
 * are out. Errors: INVALID_VALUE, NO_MEMORY.
 */
DOCA_STABLE
doca_error_t doca_comch_server_task_send_alloc_init(
	struct doca_comch_server *comch_server,
	struct doca_comch_connection *peer,
	const void *msg,
	uint32_t len,
	struct doca_comch_task_send **task);

/* A message to the server, on the client's own connection. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_comch_client_task_send_alloc_init(
	struct doca_comch_client *comch_client,
	struct doca_comch_connection *peer,
	const void *msg,
	uint32_t len,
	struct doca_comch_task_send **task);

/* The same pointer. */
DOCA_STABLE
struct doca_task *doca_comch_task_send_as_task(struct doca_comch_task_send *task);

/* Who gets messages, of all connections; IDLE only. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_server_event_msg_recv_register(
	struct doca_comch_server *comch_server,
	doca_comch_event_msg_recv_cb_t recv_event_cb);

/* As for a server. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_client_event_msg_recv_register(
	struct doca_comch_client *comch_client,
	doca_comch_event_msg_recv_cb_t recv_event_cb);

/* Who is told of clients that come, or fail to, and go; IDLE only. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_server_event_connection_status_changed_register(
	struct doca_comch_server *comch_server,
	doca_comch_event_connection_status_changed_cb_t connect_event_cb,
	doca_comch_event_connection_status_changed_cb_t disconnect_event_cb);

/*
 * Takes the counters down as they are now. CONNECTION_ABORTED once the connection is known to be
 * broken. Errors: INVALID_VALUE, CONNECTION_INPROGRESS, CONNECTION_ABORTED.
 */
DOCA_STABLE
doca_error_t doca_comch_connection_update_info(struct doca_comch_connection *comch_connection);

/* A counter as it was at the last update. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_comch_connection_get_counter(
	const struct doca_comch_connection *comch_connection,
	enum doca_comch_counter counter_type,
	uint64_t *counter_value);

/* Who is told of the peers' consumers; IDLE only. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_server_event_consumer_register(
	struct doca_comch_server *comch_server,
	doca_comch_event_consumer_cb_t new_consumer_event_cb,
	doca_comch_event_consumer_cb_t expired_consumer_event_cb);

/* As for a server. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_comch_client_event_consumer_register(
	struct doca_comch_client *comch_client,
	doca_comch_event_consumer_cb_t new_consumer_event_cb,
	doca_comch_event_consumer_cb_t expired_consumer_event_cb);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_COMCH_H_ */
