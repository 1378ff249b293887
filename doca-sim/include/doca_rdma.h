/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * RDMA: messages, one-sided access to remote memory, atomics and remote sync events over reliable
 * connections. A connection is made by exchanging descriptors, by RDMA CM, or from an rdma_cm_id of
 * the program.
 */

#ifndef DOCA_RDMA_H_
#define DOCA_RDMA_H_

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>

/* For the bridge from an rdma_cm_id. Without librdmacm's header the pointer is all that is known of it. */
#if defined(__has_include) && !defined(DOCA_SIM_NO_VERBS_HEADERS)
#if __has_include(<rdma/rdma_cma.h>)
#include <rdma/rdma_cma.h>
#define DOCA_RDMA_HAS_CMA_
#endif
#endif
#ifndef DOCA_RDMA_HAS_CMA_
struct rdma_cm_id;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_rdma;
struct doca_rdma_addr;
struct doca_rdma_connection;
struct doca_gpu_dev_rdma;
struct doca_rdma_task_receive;
struct doca_rdma_task_send;
struct doca_rdma_task_send_imm;
struct doca_rdma_task_read;
struct doca_rdma_task_write;
struct doca_rdma_task_write_imm;
struct doca_rdma_task_atomic_cmp_swp;
struct doca_rdma_task_atomic_fetch_add;
struct doca_rdma_task_remote_net_sync_event_get;
struct doca_rdma_task_remote_net_sync_event_notify_set;
struct doca_rdma_task_remote_net_sync_event_notify_add;
struct doca_dpa_completion;

/* Declared elsewhere. */
struct doca_dev;
struct doca_ctx;
struct doca_devinfo;
struct doca_rdma_gid;
struct doca_buf;
struct doca_task;
struct doca_sync_event_remote_net;

/* RDMA transports. */
enum doca_rdma_transport_type {
	DOCA_RDMA_TRANSPORT_TYPE_RC = 0,
	DOCA_RDMA_TRANSPORT_TYPE_DC = 1,
};

/* How the address of an RDMA CM server is written. */
enum doca_rdma_addr_type {
	DOCA_RDMA_ADDR_TYPE_IPv4 = 0,
	DOCA_RDMA_ADDR_TYPE_IPv6 = 1,
	DOCA_RDMA_ADDR_TYPE_GID = 2,
};

/* What consumed a receive. */
enum doca_rdma_opcode {
	DOCA_RDMA_OPCODE_RECV_SEND = 0,
	DOCA_RDMA_OPCODE_RECV_SEND_WITH_IMM = 1,
	DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM = 2,
};

typedef uint64_t doca_dpa_dev_rdma_t;

/* A GID, in network order. */
struct doca_rdma_gid {
	uint8_t raw[16];
};

/* Functions of the program that the library calls, from doca_pe_progress() unless said otherwise. */
typedef void (*doca_rdma_connection_request_cb_t)(struct doca_rdma_connection *, union doca_data);
typedef void (*doca_rdma_connection_established_cb_t)(struct doca_rdma_connection *, union doca_data, union doca_data);
typedef void (*doca_rdma_connection_failure_cb_t)(struct doca_rdma_connection *, union doca_data, union doca_data);
typedef void (*doca_rdma_connection_disconnection_cb_t)(struct doca_rdma_connection *, union doca_data, union doca_data);
typedef void (*doca_rdma_task_receive_completion_cb_t)(struct doca_rdma_task_receive *, union doca_data, union doca_data);
typedef void (*doca_rdma_task_send_completion_cb_t)(struct doca_rdma_task_send *, union doca_data, union doca_data);
typedef void (*doca_rdma_task_send_imm_completion_cb_t)(struct doca_rdma_task_send_imm *, union doca_data, union doca_data);
typedef void (*doca_rdma_task_read_completion_cb_t)(struct doca_rdma_task_read *, union doca_data, union doca_data);
typedef void (*doca_rdma_task_write_completion_cb_t)(struct doca_rdma_task_write *, union doca_data, union doca_data);
typedef void (*doca_rdma_task_write_imm_completion_cb_t)(struct doca_rdma_task_write_imm *, union doca_data, union doca_data);
typedef void (*doca_rdma_task_atomic_cmp_swp_completion_cb_t)(struct doca_rdma_task_atomic_cmp_swp *, union doca_data, union doca_data);
typedef void (*doca_rdma_task_atomic_fetch_add_completion_cb_t)(struct doca_rdma_task_atomic_fetch_add *, union doca_data, union doca_data);
typedef void (*doca_rdma_task_remote_net_sync_event_get_completion_cb_t)(struct doca_rdma_task_remote_net_sync_event_get *, union doca_data, union doca_data);
typedef void (*doca_rdma_task_remote_net_sync_event_notify_set_completion_cb_t)(struct doca_rdma_task_remote_net_sync_event_notify_set *, union doca_data, union doca_data);
typedef void (*doca_rdma_task_remote_net_sync_event_notify_add_completion_cb_t)(struct doca_rdma_task_remote_net_sync_event_notify_add *, union doca_data, union doca_data);

/* ---- instance ---- */

/* An instance on an opened device. Errors: INVALID_VALUE, NO_MEMORY, INITIALIZATION. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_create(struct doca_dev *dev, struct doca_rdma **rdma);

/* BAD_STATE unless the context is IDLE. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_destroy(struct doca_rdma *rdma);

/* The context. */
DOCA_EXPERIMENTAL
struct doca_ctx *doca_rdma_as_ctx(struct doca_rdma *rdma);

/* ---- connections ---- */

/* A new connection and its descriptor. Errors: INVALID_VALUE, BAD_STATE, CONNECTION_ABORTED, FULL. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_export(
	struct doca_rdma *rdma,
	const void **local_rdma_conn_details,
	size_t *local_rdma_conn_details_size,
	struct doca_rdma_connection **rdma_connection);

/* Connects with the peer's descriptor. Errors: INVALID_VALUE, BAD_STATE, CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_connect(
	struct doca_rdma *rdma,
	const void *remote_rdma_conn_details,
	size_t remote_rdma_conn_details_size,
	struct doca_rdma_connection *rdma_connection);

/* An address to connect to. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_addr_create(
	enum doca_rdma_addr_type addr_type,
	const char *address,
	uint16_t port,
	struct doca_rdma_addr **addr);

/* BAD_STATE while a connection uses it. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_addr_destroy(struct doca_rdma_addr *addr);

/*
 * Listens on a port of the instance's device. Errors: INVALID_VALUE, BAD_STATE, NOT_SUPPORTED,
 * CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_start_listen_to_port(struct doca_rdma *rdma, uint16_t port);

/* Listens no more; connections stay. Errors: INVALID_VALUE, NOT_SUPPORTED, CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_stop_listen_to_port(struct doca_rdma *rdma, uint16_t port);

/* Accepts a client. Errors: INVALID_VALUE, CONNECTION_ABORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_connection_accept(
	struct doca_rdma_connection *rdma_connection,
	void *private_data,
	uint8_t private_data_len);

/* Rejects a client. Errors: INVALID_VALUE, CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_connection_reject(struct doca_rdma_connection *rdma_connection);

/* Asks a server for a connection. Errors: BAD_STATE, INVALID_VALUE, NOT_SUPPORTED, CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_connect_to_addr(
	struct doca_rdma *rdma,
	struct doca_rdma_addr *addr,
	union doca_data connection_user_data);

/* Ends a connection. Errors: INVALID_VALUE, CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_connection_disconnect(struct doca_rdma_connection *rdma_connection);

/*
 * Rdma bridge prepare connection. Errors: FULL, BAD_STATE, NO_MEMORY, INVALID_VALUE, NOT_SUPPORTED,
 * CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_bridge_prepare_connection(
	struct doca_rdma *rdma,
	struct rdma_cm_id *cm_id,
	struct doca_rdma_connection **rdma_connection);

/* Rdma bridge accept. Errors: INVALID_VALUE, BAD_STATE, NOT_SUPPORTED, CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_bridge_accept(
	struct doca_rdma *rdma,
	void *private_data,
	uint8_t private_data_len,
	struct doca_rdma_connection *rdma_connection);

/* Rdma bridge established. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_bridge_established(
	struct doca_rdma *rdma,
	struct doca_rdma_connection *rdma_connection);

/* ---- what a device can do ---- */

/* Largest receive queue, entries. Errors: INVALID_VALUE, DRIVER. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_get_max_recv_queue_size(
	const struct doca_devinfo *devinfo,
	uint32_t *max_recv_queue_size);

/* Largest send queue, entries. Errors: INVALID_VALUE, DRIVER. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_get_max_send_queue_size(
	const struct doca_devinfo *devinfo,
	uint32_t *max_send_queue_size);

/* Longest chain of local buffers of a send-side task. Errors: INVALID_VALUE, DRIVER. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_get_max_send_buf_list_len(
	const struct doca_devinfo *devinfo,
	uint32_t *max_send_buf_list_len);

/* Largest message, bytes. Errors: INVALID_VALUE, DRIVER. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_get_max_message_size(
	const struct doca_devinfo *devinfo,
	uint32_t *max_message_size);

/* Slots of the GID table. Errors: INVALID_VALUE, DRIVER. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_get_gid_table_size(
	const struct doca_devinfo *devinfo,
	uint32_t *gid_table_size);

/* Some slots of the GID table; empty ones are zero. Errors: INVALID_VALUE, DRIVER. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_get_gid(
	const struct doca_devinfo *devinfo,
	uint32_t start_index,
	uint32_t num_entries,
	struct doca_rdma_gid *gid_array);

/* Whether the device has this transport. Errors: INVALID_VALUE, DRIVER, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_transport_type_is_supported(
	const struct doca_devinfo *devinfo,
	enum doca_rdma_transport_type transport_type);

/* ---- properties: set before start ---- */

/* Before start: sets the send queue size. Errors: INVALID_VALUE, NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_send_queue_size(struct doca_rdma *rdma, uint32_t send_queue_size);

/* Only the GPU and DPA data paths have one. Errors: INVALID_VALUE, NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_recv_queue_size(struct doca_rdma *rdma, uint32_t recv_queue_size);

/* Before start: sets the max send buf list len. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_max_send_buf_list_len(
	struct doca_rdma *rdma,
	uint32_t max_send_buf_list_len);

/* Before start: sets the transport type. Errors: INVALID_VALUE, NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_transport_type(
	struct doca_rdma *rdma,
	enum doca_rdma_transport_type transport_type);

/* Before start: sets the mtu. Errors: INVALID_VALUE, NOT_SUPPORTED, BAD_STATE, UNEXPECTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_mtu(struct doca_rdma *rdma, enum doca_mtu_size mtu);

/* Before start: sets the permissions. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_permissions(struct doca_rdma *rdma, uint32_t permissions);

/* Before start: sets the grh enabled. Errors: INVALID_VALUE, BAD_STATE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_grh_enabled(struct doca_rdma *rdma, uint8_t grh_enabled);

/* Before start: sets the gid index. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_gid_index(struct doca_rdma *rdma, uint32_t gid_index);

/* Before start: sets the sl. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_sl(struct doca_rdma *rdma, uint32_t sl);

/* Before start: sets the connection request timeout. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_connection_request_timeout(struct doca_rdma *rdma, uint16_t timeout);

/* ---- connections ---- */

/* Sets the word that the connection callbacks are given. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_connection_set_user_data(
	struct doca_rdma_connection *rdma_connection,
	union doca_data connection_user_data);

/* ---- properties: set before start ---- */

/* Before start: sets the max num connections. Errors: INVALID_VALUE, NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_max_num_connections(
	struct doca_rdma *rdma,
	uint16_t max_num_connections);

/* Before start: sets the rnr retry count. Errors: INVALID_VALUE, NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_rnr_retry_count(struct doca_rdma *rdma, uint8_t rnr_retry_count);

/* The send queue size in use. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_send_queue_size(const struct doca_rdma *rdma, uint32_t *send_queue_size);

/* Only the GPU and DPA data paths have one. Errors: INVALID_VALUE, NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_recv_queue_size(const struct doca_rdma *rdma, uint32_t *recv_queue_size);

/* The max send buf list len in use. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_max_send_buf_list_len(
	const struct doca_rdma *rdma,
	uint32_t *max_send_buf_list_len);

/* The transport type in use. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_transport_type(
	const struct doca_rdma *rdma,
	enum doca_rdma_transport_type *transport_type);

/* The mtu in use. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_mtu(const struct doca_rdma *rdma, enum doca_mtu_size *mtu);

/* The permissions in use. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_permissions(struct doca_rdma *rdma, uint32_t *permissions);

/* The grh enabled in use. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_grh_enabled(const struct doca_rdma *rdma, uint8_t *grh_enabled);

/* The gid index in use. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_gid_index(const struct doca_rdma *rdma, uint32_t *gid_index);

/* The sl in use. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_sl(const struct doca_rdma *rdma, uint32_t *sl);

/* The context is never on a DPA. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_dpa_handle(struct doca_rdma *rdma, doca_dpa_dev_rdma_t *dpa_rdma);

/* The context is never on a GPU. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_gpu_handle(struct doca_rdma *rdma, struct doca_gpu_dev_rdma **gpu_rdma);

/* The connection request timeout in use. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_connection_request_timeout(
	const struct doca_rdma *rdma,
	uint16_t *timeout);

/* ---- connections ---- */

/*
 * The address of an RDMA CM connection, the library's on the server and the program's on the client.
 * Errors: INVALID_VALUE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_connection_get_addr(
	const struct doca_rdma_connection *rdma_connection,
	struct doca_rdma_addr **addr);

/* What the address was made of. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_addr_get_params(
	struct doca_rdma_addr *addr,
	enum doca_rdma_addr_type *addr_type,
	const char **address,
	uint16_t *port);

/* The word that the connection callbacks are given. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_connection_get_user_data(
	const struct doca_rdma_connection *rdma_connection,
	union doca_data *connection_user_data);

/* A small number, from 0. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_connection_get_id(
	const struct doca_rdma_connection *rdma_connection,
	uint32_t *connection_id);

/* ---- properties: set before start ---- */

/* The max num connections in use. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_max_num_connections(
	struct doca_rdma *rdma,
	uint16_t *max_num_connections);

/* The rnr retry count in use. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_get_rnr_retry_count(const struct doca_rdma *rdma, uint8_t *rnr_retry_count);

/* ---- connections ---- */

/* Who is told of RDMA CM events; a pure client needs no request callback. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_set_connection_state_callbacks(
	struct doca_rdma *rdma,
	doca_rdma_connection_request_cb_t doca_rdma_connect_request_cb,
	doca_rdma_connection_established_cb_t doca_rdma_connect_established_cb,
	doca_rdma_connection_failure_cb_t doca_rdma_connect_failure_cb,
	doca_rdma_connection_disconnection_cb_t doca_rdma_disconnect_cb);

/* ---- receive tasks ---- */

/* SUCCESS if the device can do receive tasks. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_receive_is_supported(const struct doca_devinfo *devinfo);

/* Longest chain of buffers of a receive task. Errors: INVALID_VALUE, DRIVER. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_receive_get_max_dst_buf_list_len(
	const struct doca_devinfo *devinfo,
	enum doca_rdma_transport_type transport_type,
	uint32_t *max_buf_list_len);

/*
 * Before start: wants up to so many receive tasks, and says who is told of their ends. Errors:
 * INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_receive_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_receive_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_receive_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/* Sets the dst buf list len of a task that is not in flight. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_receive_set_dst_buf_list_len(
	struct doca_rdma *rdma,
	uint32_t buf_list_len);

/* The dst buf list len that was set last. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_receive_get_dst_buf_list_len(
	const struct doca_rdma *rdma,
	uint32_t *buf_list_len);

/* A receive into dst, which may be NULL. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_receive_allocate_init(
	struct doca_rdma *rdma,
	struct doca_buf *dst_buf,
	union doca_data user_data,
	struct doca_rdma_task_receive **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_rdma_task_receive_as_task(struct doca_rdma_task_receive *task);

/* Sets the dst buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_receive_set_dst_buf(
	struct doca_rdma_task_receive *task,
	struct doca_buf *dst_buf);

/* The dst buf that was set last. */
DOCA_EXPERIMENTAL
struct doca_buf *doca_rdma_task_receive_get_dst_buf(const struct doca_rdma_task_receive *task);

/* What consumed the receive. */
DOCA_EXPERIMENTAL
enum doca_rdma_opcode doca_rdma_task_receive_get_result_opcode(
	const struct doca_rdma_task_receive *task);

/* Bytes received. */
DOCA_EXPERIMENTAL
uint32_t doca_rdma_task_receive_get_result_len(const struct doca_rdma_task_receive *task);

/* Immediate data, bits as the sender gave them. */
DOCA_EXPERIMENTAL
doca_be32_t doca_rdma_task_receive_get_result_immediate_data(
	const struct doca_rdma_task_receive *task);

/* The connection on which the message came. */
DOCA_EXPERIMENTAL
const struct doca_rdma_connection *doca_rdma_task_receive_get_result_rdma_connection(
	const struct doca_rdma_task_receive *task);

/* ---- send tasks ---- */

/* SUCCESS if the device can do send tasks. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_send_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many send tasks, and says who is told of their ends. Errors:
 * INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_send_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_send_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_send_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/* A message from src, which may be NULL. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_send_allocate_init(
	struct doca_rdma *rdma,
	struct doca_rdma_connection *rdma_connection,
	const struct doca_buf *src_buf,
	union doca_data user_data,
	struct doca_rdma_task_send **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_rdma_task_send_as_task(struct doca_rdma_task_send *task);

/* Sets the src buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_send_set_src_buf(
	struct doca_rdma_task_send *task,
	const struct doca_buf *src_buf);

/* The src buf that was set last. */
DOCA_EXPERIMENTAL
const struct doca_buf *doca_rdma_task_send_get_src_buf(const struct doca_rdma_task_send *task);

/* Sets the rdma connection of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_send_set_rdma_connection(
	struct doca_rdma_task_send *task,
	struct doca_rdma_connection *rdma_connection);

/* The rdma connection that was set last. */
DOCA_EXPERIMENTAL
const struct doca_rdma_connection *doca_rdma_task_send_get_rdma_connection(
	const struct doca_rdma_task_send *task);

/* ---- send-with-immediate tasks ---- */

/* SUCCESS if the device can do send-with-immediate tasks. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_send_imm_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many send-with-immediate tasks, and says who is told of their ends.
 * Errors: INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_send_imm_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_send_imm_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_send_imm_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/* A message with immediate data. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_send_imm_allocate_init(
	struct doca_rdma *rdma,
	struct doca_rdma_connection *rdma_connection,
	const struct doca_buf *src_buf,
	doca_be32_t immediate_data,
	union doca_data user_data,
	struct doca_rdma_task_send_imm **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_rdma_task_send_imm_as_task(struct doca_rdma_task_send_imm *task);

/* Sets the src buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_send_imm_set_src_buf(
	struct doca_rdma_task_send_imm *task,
	const struct doca_buf *src_buf);

/* The src buf that was set last. */
DOCA_EXPERIMENTAL
const struct doca_buf *doca_rdma_task_send_imm_get_src_buf(
	const struct doca_rdma_task_send_imm *task);

/* Sets the immediate data of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_send_imm_set_immediate_data(
	struct doca_rdma_task_send_imm *task,
	doca_be32_t immediate_data);

/* The immediate data that was set last. */
DOCA_EXPERIMENTAL
doca_be32_t doca_rdma_task_send_imm_get_immediate_data(const struct doca_rdma_task_send_imm *task);

/* Sets the rdma connection of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_send_imm_set_rdma_connection(
	struct doca_rdma_task_send_imm *task,
	struct doca_rdma_connection *rdma_connection);

/* The rdma connection that was set last. */
DOCA_EXPERIMENTAL
const struct doca_rdma_connection *doca_rdma_task_send_imm_get_rdma_connection(
	const struct doca_rdma_task_send_imm *task);

/* ---- read tasks ---- */

/* SUCCESS if the device can do read tasks. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_read_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many read tasks, and says who is told of their ends. Errors:
 * INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_read_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_read_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_read_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/* From remote src into local dst. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_read_allocate_init(
	struct doca_rdma *rdma,
	struct doca_rdma_connection *rdma_connection,
	const struct doca_buf *src_buf,
	struct doca_buf *dst_buf,
	union doca_data user_data,
	struct doca_rdma_task_read **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_rdma_task_read_as_task(struct doca_rdma_task_read *task);

/* Sets the src buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_read_set_src_buf(
	struct doca_rdma_task_read *task,
	const struct doca_buf *src_buf);

/* The src buf that was set last. */
DOCA_EXPERIMENTAL
const struct doca_buf *doca_rdma_task_read_get_src_buf(const struct doca_rdma_task_read *task);

/* Sets the dst buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_read_set_dst_buf(struct doca_rdma_task_read *task, struct doca_buf *dst_buf);

/* The dst buf that was set last. */
DOCA_EXPERIMENTAL
struct doca_buf *doca_rdma_task_read_get_dst_buf(const struct doca_rdma_task_read *task);

/* Bytes read. */
DOCA_EXPERIMENTAL
uint32_t doca_rdma_task_read_get_result_len(const struct doca_rdma_task_read *task);

/* Sets the rdma connection of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_read_set_rdma_connection(
	struct doca_rdma_task_read *task,
	struct doca_rdma_connection *rdma_connection);

/* The rdma connection that was set last. */
DOCA_EXPERIMENTAL
const struct doca_rdma_connection *doca_rdma_task_read_get_rdma_connection(
	const struct doca_rdma_task_read *task);

/* ---- write tasks ---- */

/* SUCCESS if the device can do write tasks. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_write_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many write tasks, and says who is told of their ends. Errors:
 * INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_write_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_write_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_write_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/* From local src into remote dst. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_write_allocate_init(
	struct doca_rdma *rdma,
	struct doca_rdma_connection *rdma_connection,
	const struct doca_buf *src_buf,
	struct doca_buf *dst_buf,
	union doca_data user_data,
	struct doca_rdma_task_write **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_rdma_task_write_as_task(struct doca_rdma_task_write *task);

/* Sets the src buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_write_set_src_buf(
	struct doca_rdma_task_write *task,
	const struct doca_buf *src_buf);

/* The src buf that was set last. */
DOCA_EXPERIMENTAL
const struct doca_buf *doca_rdma_task_write_get_src_buf(const struct doca_rdma_task_write *task);

/* Sets the dst buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_write_set_dst_buf(struct doca_rdma_task_write *task, struct doca_buf *dst_buf);

/* The dst buf that was set last. */
DOCA_EXPERIMENTAL
struct doca_buf *doca_rdma_task_write_get_dst_buf(const struct doca_rdma_task_write *task);

/* Sets the rdma connection of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_write_set_rdma_connection(
	struct doca_rdma_task_write *task,
	struct doca_rdma_connection *rdma_connection);

/* The rdma connection that was set last. */
DOCA_EXPERIMENTAL
const struct doca_rdma_connection *doca_rdma_task_write_get_rdma_connection(
	const struct doca_rdma_task_write *task);

/* ---- write-with-immediate tasks ---- */

/* SUCCESS if the device can do write-with-immediate tasks. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_write_imm_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many write-with-immediate tasks, and says who is told of their ends.
 * Errors: INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_write_imm_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_write_imm_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_write_imm_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/* The same, and the peer is told. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_write_imm_allocate_init(
	struct doca_rdma *rdma,
	struct doca_rdma_connection *rdma_connection,
	const struct doca_buf *src_buf,
	struct doca_buf *dst_buf,
	doca_be32_t immediate_data,
	union doca_data user_data,
	struct doca_rdma_task_write_imm **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_rdma_task_write_imm_as_task(struct doca_rdma_task_write_imm *task);

/* Sets the src buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_write_imm_set_src_buf(
	struct doca_rdma_task_write_imm *task,
	const struct doca_buf *src_buf);

/* The src buf that was set last. */
DOCA_EXPERIMENTAL
const struct doca_buf *doca_rdma_task_write_imm_get_src_buf(
	const struct doca_rdma_task_write_imm *task);

/* Sets the dst buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_write_imm_set_dst_buf(
	struct doca_rdma_task_write_imm *task,
	struct doca_buf *dst_buf);

/* The dst buf that was set last. */
DOCA_EXPERIMENTAL
struct doca_buf *doca_rdma_task_write_imm_get_dst_buf(const struct doca_rdma_task_write_imm *task);

/* Sets the immediate data of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_write_imm_set_immediate_data(
	struct doca_rdma_task_write_imm *task,
	doca_be32_t immediate_data);

/* The immediate data that was set last. */
DOCA_EXPERIMENTAL
doca_be32_t doca_rdma_task_write_imm_get_immediate_data(
	const struct doca_rdma_task_write_imm *task);

/* Sets the rdma connection of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_write_imm_set_rdma_connection(
	struct doca_rdma_task_write_imm *task,
	struct doca_rdma_connection *rdma_connection);

/* The rdma connection that was set last. */
DOCA_EXPERIMENTAL
const struct doca_rdma_connection *doca_rdma_task_write_imm_get_rdma_connection(
	const struct doca_rdma_task_write_imm *task);

/* ---- compare-and-swap tasks ---- */

/* SUCCESS if the device can do compare-and-swap tasks. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_atomic_cmp_swp_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many compare-and-swap tasks, and says who is told of their ends.
 * Errors: INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_atomic_cmp_swp_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_atomic_cmp_swp_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_atomic_cmp_swp_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/*
 * Compare and swap at remote dst; the value before goes to local result. Errors: INVALID_VALUE,
 * NO_MEMORY.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_atomic_cmp_swp_allocate_init(
	struct doca_rdma *rdma,
	struct doca_rdma_connection *rdma_connection,
	struct doca_buf *dst_buf,
	struct doca_buf *result_buf,
	uint64_t cmp_data,
	uint64_t swap_data,
	union doca_data user_data,
	struct doca_rdma_task_atomic_cmp_swp **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_rdma_task_atomic_cmp_swp_as_task(struct doca_rdma_task_atomic_cmp_swp *task);

/* Sets the dst buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_atomic_cmp_swp_set_dst_buf(
	struct doca_rdma_task_atomic_cmp_swp *task,
	struct doca_buf *dst_buf);

/* The dst buf that was set last. */
DOCA_EXPERIMENTAL
struct doca_buf *doca_rdma_task_atomic_cmp_swp_get_dst_buf(
	const struct doca_rdma_task_atomic_cmp_swp *task);

/* Sets the result buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_atomic_cmp_swp_set_result_buf(
	struct doca_rdma_task_atomic_cmp_swp *task,
	struct doca_buf *result_buf);

/* Valid after success: buf. */
DOCA_EXPERIMENTAL
struct doca_buf *doca_rdma_task_atomic_cmp_swp_get_result_buf(
	const struct doca_rdma_task_atomic_cmp_swp *task);

/* Sets the cmp data of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_atomic_cmp_swp_set_cmp_data(
	struct doca_rdma_task_atomic_cmp_swp *task,
	uint64_t cmp_data);

/* The cmp data that was set last. */
DOCA_EXPERIMENTAL
uint64_t doca_rdma_task_atomic_cmp_swp_get_cmp_data(
	const struct doca_rdma_task_atomic_cmp_swp *task);

/* Sets the swap data of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_atomic_cmp_swp_set_swap_data(
	struct doca_rdma_task_atomic_cmp_swp *task,
	uint64_t swap_data);

/* The swap data that was set last. */
DOCA_EXPERIMENTAL
uint64_t doca_rdma_task_atomic_cmp_swp_get_swap_data(
	const struct doca_rdma_task_atomic_cmp_swp *task);

/* Sets the rdma connection of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_atomic_cmp_swp_set_rdma_connection(
	struct doca_rdma_task_atomic_cmp_swp *task,
	struct doca_rdma_connection *rdma_connection);

/* The rdma connection that was set last. */
DOCA_EXPERIMENTAL
const struct doca_rdma_connection *doca_rdma_task_atomic_cmp_swp_get_rdma_connection(
	const struct doca_rdma_task_atomic_cmp_swp *task);

/* ---- fetch-and-add tasks ---- */

/* SUCCESS if the device can do fetch-and-add tasks. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_atomic_fetch_add_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many fetch-and-add tasks, and says who is told of their ends. Errors:
 * INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_atomic_fetch_add_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_atomic_fetch_add_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_atomic_fetch_add_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/* Add at remote dst; the value before goes to local result. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_atomic_fetch_add_allocate_init(
	struct doca_rdma *rdma,
	struct doca_rdma_connection *rdma_connection,
	struct doca_buf *dst_buf,
	struct doca_buf *result_buf,
	uint64_t add_data,
	union doca_data user_data,
	struct doca_rdma_task_atomic_fetch_add **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_rdma_task_atomic_fetch_add_as_task(
	struct doca_rdma_task_atomic_fetch_add *task);

/* Sets the dst buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_atomic_fetch_add_set_dst_buf(
	struct doca_rdma_task_atomic_fetch_add *task,
	struct doca_buf *dst_buf);

/* The dst buf that was set last. */
DOCA_EXPERIMENTAL
struct doca_buf *doca_rdma_task_atomic_fetch_add_get_dst_buf(
	const struct doca_rdma_task_atomic_fetch_add *task);

/* Sets the result buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_atomic_fetch_add_set_result_buf(
	struct doca_rdma_task_atomic_fetch_add *task,
	struct doca_buf *result_buf);

/* Valid after success: buf. */
DOCA_EXPERIMENTAL
struct doca_buf *doca_rdma_task_atomic_fetch_add_get_result_buf(
	const struct doca_rdma_task_atomic_fetch_add *task);

/* Sets the add data of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_atomic_fetch_add_set_add_data(
	struct doca_rdma_task_atomic_fetch_add *task,
	uint64_t add_data);

/* The add data that was set last. */
DOCA_EXPERIMENTAL
uint64_t doca_rdma_task_atomic_fetch_add_get_add_data(
	const struct doca_rdma_task_atomic_fetch_add *task);

/* Sets the rdma connection of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_atomic_fetch_add_set_rdma_connection(
	struct doca_rdma_task_atomic_fetch_add *task,
	struct doca_rdma_connection *rdma_connection);

/* The rdma connection that was set last. */
DOCA_EXPERIMENTAL
const struct doca_rdma_connection *doca_rdma_task_atomic_fetch_add_get_rdma_connection(
	const struct doca_rdma_task_atomic_fetch_add *task);

/* ---- remote sync event get tasks ---- */

/* SUCCESS if the device can do remote sync event get tasks. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_remote_net_sync_event_get_is_supported(
	const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many remote sync event get tasks, and says who is told of their ends.
 * Errors: INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_remote_net_sync_event_get_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_remote_net_sync_event_get_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_remote_net_sync_event_get_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/* Reads the peer's event into dst. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_remote_net_sync_event_get_allocate_init(
	struct doca_rdma *rdma,
	struct doca_rdma_connection *rdma_connection,
	const struct doca_sync_event_remote_net *event,
	struct doca_buf *dst_buf,
	union doca_data user_data,
	struct doca_rdma_task_remote_net_sync_event_get **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_rdma_task_remote_net_sync_event_get_as_task(
	struct doca_rdma_task_remote_net_sync_event_get *task);

/* Sets the sync event of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_remote_net_sync_event_get_set_sync_event(
	struct doca_rdma_task_remote_net_sync_event_get *task,
	const struct doca_sync_event_remote_net *event);

/* The sync event that was set last. */
DOCA_EXPERIMENTAL
const struct doca_sync_event_remote_net *doca_rdma_task_remote_net_sync_event_get_get_sync_event(
	const struct doca_rdma_task_remote_net_sync_event_get *task);

/* Sets the dst buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_remote_net_sync_event_get_set_dst_buf(
	struct doca_rdma_task_remote_net_sync_event_get *task,
	struct doca_buf *dst_buf);

/* The dst buf that was set last. */
DOCA_EXPERIMENTAL
struct doca_buf *doca_rdma_task_remote_net_sync_event_get_get_dst_buf(
	const struct doca_rdma_task_remote_net_sync_event_get *task);

/* Bytes of the value: 8. */
DOCA_EXPERIMENTAL
uint32_t doca_rdma_task_remote_net_sync_event_get_get_result_len(
	const struct doca_rdma_task_remote_net_sync_event_get *task);

/* Sets the rdma connection of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_remote_net_sync_event_get_set_rdma_connection(
	struct doca_rdma_task_remote_net_sync_event_get *task,
	struct doca_rdma_connection *rdma_connection);

/* The rdma connection that was set last. */
DOCA_EXPERIMENTAL
const struct doca_rdma_connection *doca_rdma_task_remote_net_sync_event_get_get_rdma_connection(
	const struct doca_rdma_task_remote_net_sync_event_get *task);

/* ---- remote sync event set tasks ---- */

/* SUCCESS if the device can do remote sync event set tasks. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_remote_net_sync_event_notify_set_is_supported(
	const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many remote sync event set tasks, and says who is told of their ends.
 * Errors: INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_remote_net_sync_event_notify_set_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_remote_net_sync_event_notify_set_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_remote_net_sync_event_notify_set_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/* Sets the peer's event from src. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(
	struct doca_rdma *rdma,
	struct doca_rdma_connection *rdma_connection,
	struct doca_sync_event_remote_net *event,
	const struct doca_buf *src_buf,
	union doca_data user_data,
	struct doca_rdma_task_remote_net_sync_event_notify_set **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_rdma_task_remote_net_sync_event_notify_set_as_task(
	struct doca_rdma_task_remote_net_sync_event_notify_set *task);

/* Sets the sync event of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_remote_net_sync_event_notify_set_set_sync_event(
	struct doca_rdma_task_remote_net_sync_event_notify_set *task,
	struct doca_sync_event_remote_net *event);

/* The sync event that was set last. */
DOCA_EXPERIMENTAL
struct doca_sync_event_remote_net *doca_rdma_task_remote_net_sync_event_notify_set_get_sync_event(
	const struct doca_rdma_task_remote_net_sync_event_notify_set *task);

/* Sets the rdma connection of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_remote_net_sync_event_notify_set_set_rdma_connection(
	struct doca_rdma_task_remote_net_sync_event_notify_set *task,
	struct doca_rdma_connection *rdma_connection);

/* The rdma connection that was set last. */
DOCA_EXPERIMENTAL
const struct doca_rdma_connection *doca_rdma_task_remote_net_sync_event_notify_set_get_rdma_connection(
	const struct doca_rdma_task_remote_net_sync_event_notify_set *task);

/* Sets the src buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_remote_net_sync_event_notify_set_set_src_buf(
	struct doca_rdma_task_remote_net_sync_event_notify_set *task,
	const struct doca_buf *src_buf);

/* The src buf that was set last. */
DOCA_EXPERIMENTAL
const struct doca_buf *doca_rdma_task_remote_net_sync_event_notify_set_get_src_buf(
	const struct doca_rdma_task_remote_net_sync_event_notify_set *task);

/* ---- remote sync event add tasks ---- */

/* SUCCESS if the device can do remote sync event add tasks. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_cap_task_remote_net_sync_event_notify_add_is_supported(
	const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many remote sync event add tasks, and says who is told of their ends.
 * Errors: INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_remote_net_sync_event_notify_add_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_remote_net_sync_event_notify_add_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_remote_net_sync_event_notify_add_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/* Adds to the peer's event; the value before goes to local result. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_task_remote_net_sync_event_notify_add_allocate_init(
	struct doca_rdma *rdma,
	struct doca_rdma_connection *rdma_connection,
	struct doca_sync_event_remote_net *event,
	struct doca_buf *result_buf,
	uint64_t add_data,
	union doca_data user_data,
	struct doca_rdma_task_remote_net_sync_event_notify_add **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_rdma_task_remote_net_sync_event_notify_add_as_task(
	struct doca_rdma_task_remote_net_sync_event_notify_add *task);

/* Sets the sync event of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_remote_net_sync_event_notify_add_set_sync_event(
	struct doca_rdma_task_remote_net_sync_event_notify_add *task,
	struct doca_sync_event_remote_net *event);

/* The sync event that was set last. */
DOCA_EXPERIMENTAL
struct doca_sync_event_remote_net *doca_rdma_task_remote_net_sync_event_notify_add_get_sync_event(
	const struct doca_rdma_task_remote_net_sync_event_notify_add *task);

/* Sets the result buf of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_remote_net_sync_event_notify_add_set_result_buf(
	struct doca_rdma_task_remote_net_sync_event_notify_add *task,
	struct doca_buf *result_buf);

/* Valid after success: buf. */
DOCA_EXPERIMENTAL
struct doca_buf *doca_rdma_task_remote_net_sync_event_notify_add_get_result_buf(
	const struct doca_rdma_task_remote_net_sync_event_notify_add *task);

/* Sets the add data of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_remote_net_sync_event_notify_add_set_add_data(
	struct doca_rdma_task_remote_net_sync_event_notify_add *task,
	uint64_t add_data);

/* The add data that was set last. */
DOCA_EXPERIMENTAL
uint64_t doca_rdma_task_remote_net_sync_event_notify_add_get_add_data(
	const struct doca_rdma_task_remote_net_sync_event_notify_add *task);

/* Sets the rdma connection of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_rdma_task_remote_net_sync_event_notify_add_set_rdma_connection(
	struct doca_rdma_task_remote_net_sync_event_notify_add *task,
	struct doca_rdma_connection *rdma_connection);

/* The rdma connection that was set last. */
DOCA_EXPERIMENTAL
const struct doca_rdma_connection *doca_rdma_task_remote_net_sync_event_notify_add_get_rdma_connection(
	const struct doca_rdma_task_remote_net_sync_event_notify_add *task);

/* ---- instance ---- */

/* Before start, DPA data path: where completions go. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_dpa_completion_attach(
	struct doca_rdma *rdma,
	struct doca_dpa_completion *dpa_comp);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_RDMA_H_ */
