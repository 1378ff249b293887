/*
 * One side of an RDMA conversation: a device, an engine, an instance, memory, and what its callbacks saw.
 */
#ifndef SIDE_H
#define SIDE_H

#include <sched.h>

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <doca_rdma.h>
#include <doca_types.h>

#include "check.h"
#include "peer.h"

#define MEMORY (64 * 1024)
#define TASKS 16
#define LAST_EVENTS 64

struct side {
	struct doca_dev *dev;
	struct doca_pe *pe;
	struct doca_rdma *rdma;
	struct doca_ctx *ctx;
	struct doca_mmap *map;
	struct doca_buf_inventory *inventory;
	char *memory;

	/* Tasks that came back, and the last of each. */
	int succeeded, failed;
	struct doca_task *task;
	doca_error_t status;
	uint64_t task_data;
	enum doca_rdma_opcode opcode;
	uint32_t result_len, immediate;
	const struct doca_rdma_connection *from;

	/* RDMA CM. */
	int requests, established, failures, disconnections;
	struct doca_rdma_connection *connection;
	uint64_t connection_data;
	int reject;
	const void *private_data;
	uint8_t private_data_len;

	/* State changes, as previous * 4 + next. */
	int states[LAST_EVENTS], num_states;
};

/* Progresses until the condition holds; a test that waits in vain says so and goes on. */
#define UNTIL(side, condition)                                                                  \
	do {                                                                                    \
		uint64_t until_ = now_ms() + PATIENCE_MS;                                       \
		int fine_;                                                                      \
		while (!(fine_ = (condition)) && now_ms() < until_)                             \
			if (!doca_pe_progress((side)->pe))                                      \
				sched_yield();                                                  \
		check_result(fine_, __FILE__, __LINE__, "in time: " #condition);                \
	} while (0)

static inline void side_task_done(struct side *side, struct doca_task *task, union doca_data data, int fine)
{
	side->task = task;
	side->task_data = data.u64;
	side->status = doca_task_get_status(task);
	if (fine)
		side->succeeded++;
	else
		side->failed++;
	doca_task_free(task);
}

static inline void side_received(struct doca_rdma_task_receive *task, union doca_data data, union doca_data side)
{
	struct side *mine = side.ptr;

	mine->opcode = doca_rdma_task_receive_get_result_opcode(task);
	mine->result_len = doca_rdma_task_receive_get_result_len(task);
	mine->immediate = doca_rdma_task_receive_get_result_immediate_data(task);
	mine->from = doca_rdma_task_receive_get_result_rdma_connection(task);
	side_task_done(side.ptr, doca_rdma_task_receive_as_task(task), data, 1);
}

static inline void side_receive_failed(struct doca_rdma_task_receive *task, union doca_data data,
				       union doca_data side)
{
	side_task_done(side.ptr, doca_rdma_task_receive_as_task(task), data, 0);
}

/* The two callbacks of a kind that only counts. */
#define COUNTED(kind)                                                                                         \
	static inline void side_##kind##_done(struct doca_rdma_task_##kind *task, union doca_data data,       \
					      union doca_data side)                                           \
	{                                                                                                     \
		side_task_done(side.ptr, doca_rdma_task_##kind##_as_task(task), data, 1);                     \
	}                                                                                                     \
	static inline void side_##kind##_failed(struct doca_rdma_task_##kind *task, union doca_data data,     \
						union doca_data side)                                         \
	{                                                                                                     \
		side_task_done(side.ptr, doca_rdma_task_##kind##_as_task(task), data, 0);                     \
	}

COUNTED(send)
COUNTED(send_imm)
COUNTED(read)
COUNTED(write)
COUNTED(write_imm)
COUNTED(atomic_cmp_swp)
COUNTED(atomic_fetch_add)
COUNTED(remote_net_sync_event_get)
COUNTED(remote_net_sync_event_notify_set)
COUNTED(remote_net_sync_event_notify_add)

static inline void side_asked(struct doca_rdma_connection *connection, union doca_data side)
{
	struct side *mine = side.ptr;

	mine->requests++;
	mine->connection = connection;
	if (mine->reject)
		OK(doca_rdma_connection_reject(connection));
	else
		OK(doca_rdma_connection_accept(connection, (void *)(uintptr_t)mine->private_data, mine->private_data_len));
}

static inline void side_established(struct doca_rdma_connection *connection, union doca_data data, union doca_data side)
{
	struct side *mine = side.ptr;

	mine->established++;
	mine->connection = connection;
	mine->connection_data = data.u64;
}

static inline void side_failed(struct doca_rdma_connection *connection, union doca_data data, union doca_data side)
{
	(void)connection;
	((struct side *)side.ptr)->failures++;
	((struct side *)side.ptr)->connection_data = data.u64;
}

static inline void side_disconnected(struct doca_rdma_connection *connection, union doca_data data,
				     union doca_data side)
{
	struct side *mine = side.ptr;

	mine->disconnections++;
	mine->connection_data = data.u64;
	/* Programs acknowledge here, and it must be taken. */
	OK(doca_rdma_connection_disconnect(connection));
}

static inline void side_state(const union doca_data data, struct doca_ctx *ctx, enum doca_ctx_states previous,
			      enum doca_ctx_states next)
{
	struct side *side = data.ptr;

	CHECK(ctx == side->ctx);
	if (side->num_states < LAST_EVENTS)
		side->states[side->num_states++] = (int)previous * 4 + (int)next;
}

static inline int side_is(const struct side *side, enum doca_ctx_states wanted)
{
	enum doca_ctx_states state;

	return doca_ctx_get_state(side->ctx, &state) == DOCA_SUCCESS && state == wanted;
}

/* Everything but start: the caller may set properties of its own first. Both kinds of message are enabled. */
static inline void side_create(struct side *side, const char *device, uint32_t map_access, uint32_t access)
{
	*side = (struct side){.dev = open_device(device)};
	if (side->dev == NULL)
		give_up("no such device");
	side->memory = calloc(1, MEMORY);
	OK(doca_mmap_create(&side->map));
	OK(doca_mmap_add_dev(side->map, side->dev));
	OK(doca_mmap_set_permissions(side->map, map_access));
	OK(doca_mmap_set_memrange(side->map, side->memory, MEMORY));
	OK(doca_mmap_start(side->map));
	OK(doca_buf_inventory_create(4 * TASKS, &side->inventory));
	OK(doca_buf_inventory_start(side->inventory));
	OK(doca_pe_create(&side->pe));
	OK(doca_rdma_create(side->dev, &side->rdma));
	side->ctx = doca_rdma_as_ctx(side->rdma);
	OK(doca_ctx_set_user_data(side->ctx, (union doca_data){.ptr = side}));
	OK(doca_rdma_set_permissions(side->rdma, access));
	OK(doca_rdma_task_receive_set_conf(side->rdma, side_received, side_receive_failed, TASKS));
	OK(doca_rdma_task_send_set_conf(side->rdma, side_send_done, side_send_failed, TASKS));
	OK(doca_rdma_set_connection_state_callbacks(side->rdma, side_asked, side_established, side_failed,
						    side_disconnected));
	OK(doca_pe_connect_ctx(side->pe, side->ctx));
}

/* The kinds that side_create leaves out, one task of each. */
static inline void side_enable(struct side *side)
{
	OK(doca_rdma_task_read_set_conf(side->rdma, side_read_done, side_read_failed, 1));
	OK(doca_rdma_task_write_set_conf(side->rdma, side_write_done, side_write_failed, 1));
	OK(doca_rdma_task_write_imm_set_conf(side->rdma, side_write_imm_done, side_write_imm_failed, 1));
	OK(doca_rdma_task_atomic_cmp_swp_set_conf(side->rdma, side_atomic_cmp_swp_done, side_atomic_cmp_swp_failed,
		1));
	OK(doca_rdma_task_atomic_fetch_add_set_conf(side->rdma, side_atomic_fetch_add_done,
		side_atomic_fetch_add_failed, 1));
	OK(doca_rdma_task_remote_net_sync_event_get_set_conf(side->rdma, side_remote_net_sync_event_get_done,
		side_remote_net_sync_event_get_failed, 1));
	OK(doca_rdma_task_remote_net_sync_event_notify_set_set_conf(side->rdma,
		side_remote_net_sync_event_notify_set_done, side_remote_net_sync_event_notify_set_failed, 1));
	OK(doca_rdma_task_remote_net_sync_event_notify_add_set_conf(side->rdma,
		side_remote_net_sync_event_notify_add_done, side_remote_net_sync_event_notify_add_failed, 1));
}

static inline void side_open(struct side *side)
{
	side_create(side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_ctx_start(side->ctx));
}

/* To IDLE, whatever is in flight: the callbacks free their tasks. */
static inline void side_stop(struct side *side)
{
	doca_error_t stopped = doca_ctx_stop(side->ctx);

	CHECK(stopped == DOCA_SUCCESS || stopped == DOCA_ERROR_IN_PROGRESS);
	UNTIL(side, side_is(side, DOCA_CTX_STATE_IDLE));
}

static inline void side_close(struct side *side)
{
	side_stop(side);
	OK(doca_rdma_destroy(side->rdma));
	OK(doca_pe_destroy(side->pe));
	OK(doca_buf_inventory_destroy(side->inventory));
	OK(doca_mmap_destroy(side->map));
	OK(doca_dev_close(side->dev));
	free(side->memory);
}

/* A window without data, at an offset of the side's memory. */
static inline struct doca_buf *side_room(struct side *side, size_t offset, size_t len)
{
	struct doca_buf *buf = NULL;

	OK(doca_buf_inventory_buf_get_by_addr(side->inventory, side->map, side->memory + offset, len, &buf));
	return buf;
}

static inline struct doca_buf *side_data(struct side *side, size_t offset, size_t len)
{
	struct doca_buf *buf = NULL;

	OK(doca_buf_inventory_buf_get_by_data(side->inventory, side->map, side->memory + offset, len, &buf));
	return buf;
}

static inline struct doca_task *side_receive(struct side *side, struct doca_buf *buf, uint64_t data)
{
	struct doca_rdma_task_receive *task = NULL;

	OK(doca_rdma_task_receive_allocate_init(side->rdma, buf, (union doca_data){.u64 = data}, &task));
	OK(doca_task_submit(doca_rdma_task_receive_as_task(task)));
	return doca_rdma_task_receive_as_task(task);
}

/* Not submitted yet. */
static inline struct doca_task *side_message(struct side *side, struct doca_rdma_connection *to, struct doca_buf *buf,
					     uint64_t data)
{
	struct doca_rdma_task_send *task = NULL;

	OK(doca_rdma_task_send_allocate_init(side->rdma, to, buf, (union doca_data){.u64 = data}, &task));
	return doca_rdma_task_send_as_task(task);
}

static inline void side_send(struct side *side, struct doca_rdma_connection *to, struct doca_buf *buf, uint64_t data)
{
	OK(doca_task_submit(side_message(side, to, buf, data)));
}

static inline void put(struct doca_buf *buf)
{
	OK(doca_buf_dec_refcount(buf, NULL));
}

/* Exchanges descriptors with the other process and connects. */
static inline struct doca_rdma_connection *side_connect(struct side *side, int socket)
{
	struct doca_rdma_connection *connection = NULL;
	const void *blob = NULL;
	char theirs[4096];
	size_t len = 0;

	OK(doca_rdma_export(side->rdma, &blob, &len, &connection));
	CHECK(len > 0 && len <= sizeof(theirs));
	tell(socket, blob, len);
	len = hear(socket, theirs, sizeof(theirs));
	OK(doca_rdma_connect(side->rdma, theirs, len, connection));
	return connection;
}

/* Within one process. */
static inline void side_join(struct side *a, struct doca_rdma_connection **from_a, struct side *b,
			     struct doca_rdma_connection **from_b)
{
	const void *of_a = NULL, *of_b = NULL;
	size_t len_a = 0, len_b = 0;

	OK(doca_rdma_export(a->rdma, &of_a, &len_a, from_a));
	OK(doca_rdma_export(b->rdma, &of_b, &len_b, from_b));
	OK(doca_rdma_connect(a->rdma, of_b, len_b, *from_a));
	OK(doca_rdma_connect(b->rdma, of_a, len_a, *from_b));
}

#endif
