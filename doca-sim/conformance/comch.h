/*
 * One end of Comch: a server in a process on the DPU's side, or a client in one on the host's, and what its callbacks saw.
 * The server is a process of its own that does as it is told over a socket.
 */
#ifndef COMCH_H
#define COMCH_H

#include <sched.h>

#include <doca_comch.h>
#include <doca_ctx.h>
#include <doca_pe.h>
#include <doca_types.h>

#include "check.h"
#include "peer.h"

#define TASKS 64
#define LAST_STATES 32
#define HOST_PCI "3b:00.0"

/* What callbacks have counted; a server sends it over the socket. */
struct seen {
	uint64_t connected, refused, disconnected;
	uint64_t messages, bytes, len, checksum, in_order;
	uint64_t sent, failed, status;
	uint64_t consumers, expired, consumer;
	uint64_t result, value;
};

struct end {
	struct doca_dev *dev;
	struct doca_dev_rep *rep;
	struct doca_pe *pe;
	struct doca_comch_server *server;
	struct doca_comch_client *client;
	struct doca_ctx *ctx;
	struct doca_comch_connection *connection;
	struct seen seen;
	int states[LAST_STATES], num_states;
	/* A message is answered with itself. */
	int echoes;
	/* A client is disconnected as soon as it comes. */
	int rejects;
	/* A client to which a message could not be sent is disconnected there and then. */
	int parts;
};

/* Progresses until the condition holds; a test that waits in vain says so and goes on. */
#define UNTIL(end, condition)                                                                   \
	do {                                                                                    \
		uint64_t until_ = now_ms() + PATIENCE_MS;                                       \
		int fine_;                                                                      \
		while (!(fine_ = (condition)) && now_ms() < until_)                             \
			if (!doca_pe_progress((end)->pe))                                       \
				sched_yield();                                                  \
		check_result(fine_, __FILE__, __LINE__, "in time: " #condition);                \
	} while (0)

static inline void end_state(const union doca_data data, struct doca_ctx *ctx, enum doca_ctx_states previous,
			     enum doca_ctx_states next)
{
	struct end *end = data.ptr;

	CHECK(ctx == end->ctx);
	if (end->num_states < LAST_STATES)
		end->states[end->num_states++] = (int)previous * 4 + (int)next;
}

static inline int end_is(const struct end *end, enum doca_ctx_states wanted)
{
	enum doca_ctx_states state;

	return doca_ctx_get_state(end->ctx, &state) == DOCA_SUCCESS && state == wanted;
}

/* The states since the last call of this, as previous * 4 + next, ended by -1. */
static inline int end_went(struct end *end, const int *expected)
{
	int fine = 1, count = 0;

	for (; expected[count] >= 0; count++)
		fine &= count < end->num_states && end->states[count] == expected[count];
	fine &= count == end->num_states;
	end->num_states = 0;
	return fine;
}

static inline void end_sent(struct doca_comch_task_send *task, union doca_data data, union doca_data user)
{
	struct end *end = user.ptr;

	(void)data;
	end->seen.sent++;
	end->seen.status = DOCA_SUCCESS;
	CHECK(doca_task_get_status(doca_comch_task_send_as_task(task)) == DOCA_SUCCESS);
	doca_task_free(doca_comch_task_send_as_task(task));
}

static inline void end_not_sent(struct doca_comch_task_send *task, union doca_data data, union doca_data user)
{
	struct end *end = user.ptr;

	(void)data;
	end->seen.failed++;
	end->seen.status = doca_task_get_status(doca_comch_task_send_as_task(task));
	CHECK(end->seen.status != DOCA_SUCCESS);
	if (end->parts)
		end->seen.value = doca_comch_server_disconnect(end->server, end->connection);
	doca_task_free(doca_comch_task_send_as_task(task));
}

static inline doca_error_t end_alloc(struct end *end, struct doca_comch_connection *to, const void *bytes,
				     uint32_t len, struct doca_comch_task_send **task)
{
	return end->server != NULL ? doca_comch_server_task_send_alloc_init(end->server, to, bytes, len, task) :
				     doca_comch_client_task_send_alloc_init(end->client, to, bytes, len, task);
}

static inline doca_error_t end_try(struct end *end, const void *bytes, uint32_t len)
{
	struct doca_comch_task_send *task = NULL;
	doca_error_t result = end_alloc(end, end->connection, bytes, len, &task);

	if (result != DOCA_SUCCESS)
		return result;
	result = doca_task_submit(doca_comch_task_send_as_task(task));
	if (result != DOCA_SUCCESS)
		doca_task_free(doca_comch_task_send_as_task(task));
	return result;
}

/* The bytes of the nth message of so many bytes, so that order and contents can be told. */
static inline void pattern(uint8_t *bytes, uint32_t len, uint32_t nth)
{
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(nth * 31 + i);
	if (len >= 4)
		memcpy(bytes, &nth, 4);
}

static inline struct end *end_of(struct doca_comch_connection *connection)
{
	struct doca_comch_server *server = doca_comch_server_get_server_ctx(connection);
	struct doca_comch_client *client = doca_comch_client_get_client_ctx(connection);
	union doca_data data = {.ptr = NULL};

	CHECK((server != NULL) != (client != NULL));
	OK(doca_ctx_get_user_data(server != NULL ? doca_comch_server_as_ctx(server) :
						   doca_comch_client_as_ctx(client), &data));
	return data.ptr;
}

static inline void end_received(struct doca_comch_event_msg_recv *event, uint8_t *bytes, uint32_t len,
				struct doca_comch_connection *connection)
{
	struct end *end = end_of(connection);
	uint8_t expected[4096];
	uint32_t nth = (uint32_t)end->seen.messages;

	CHECK(event != NULL);
	if (len >= 4)
		memcpy(&nth, bytes, 4);
	pattern(expected, len < sizeof(expected) ? len : sizeof(expected), nth);
	end->seen.in_order += memcmp(bytes, expected, len) == 0 && (len < 4 || nth == end->seen.messages);
	end->seen.messages++;
	end->seen.bytes += len;
	end->seen.len = len;
	if (end->echoes) {
		end->connection = connection;
		OK(end_try(end, bytes, len));
	}
}

static inline void end_connected(struct doca_comch_event_connection_status_changed *event,
				 struct doca_comch_connection *connection, uint8_t success)
{
	struct end *end = end_of(connection);

	CHECK(event != NULL);
	if (!success) {
		end->seen.refused++;
		return;
	}
	end->seen.connected++;
	end->connection = connection;
	CHECK(doca_comch_connection_get_user_data(connection).u64 == 0);
	OK(doca_comch_connection_set_user_data(connection, (union doca_data){.u64 = 77}));
	if (end->rejects)
		OK(doca_comch_server_disconnect(end->server, connection));
}

static inline void end_disconnected(struct doca_comch_event_connection_status_changed *event,
				    struct doca_comch_connection *connection, uint8_t success)
{
	struct end *end = end_of(connection);

	CHECK(event != NULL && success == 1);
	CHECK(doca_comch_connection_get_user_data(connection).u64 == 77);
	end->seen.disconnected++;
}

static inline void end_new_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *connection,
				    uint32_t id)
{
	struct end *end = end_of(connection);

	CHECK(event != NULL);
	end->seen.consumers++;
	end->seen.consumer = id;
}

static inline void end_expired_consumer(struct doca_comch_event_consumer *event,
					struct doca_comch_connection *connection, uint32_t id)
{
	struct end *end = end_of(connection);

	CHECK(event != NULL && id != 0);
	end->seen.expired++;
}

static inline void end_begin(struct end *end)
{
	*end = (struct end){.dev = open_device("mlx5_0")};
	if (end->dev == NULL)
		give_up("no such device");
	OK(doca_pe_create(&end->pe));
}

static inline void end_connect(struct end *end)
{
	OK(doca_ctx_set_user_data(end->ctx, (union doca_data){.ptr = end}));
	OK(doca_ctx_set_state_changed_cb(end->ctx, end_state));
	OK(doca_pe_connect_ctx(end->pe, end->ctx));
}

/* Not started yet. */
static inline void client_create(struct end *end, const char *name)
{
	end_begin(end);
	OK(doca_comch_client_create(end->dev, name, &end->client));
	end->ctx = doca_comch_client_as_ctx(end->client);
	OK(doca_comch_client_task_send_set_conf(end->client, end_sent, end_not_sent, TASKS));
	OK(doca_comch_client_event_msg_recv_register(end->client, end_received));
	OK(doca_comch_client_event_consumer_register(end->client, end_new_consumer, end_expired_consumer));
	end_connect(end);
}

static inline struct doca_dev_rep *open_rep(struct doca_dev *dev, const char *pci)
{
	struct doca_devinfo_rep **list;
	struct doca_dev_rep *rep = NULL;
	uint32_t count;
	uint8_t equal;

	OK(doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &count));
	for (uint32_t i = 0; i < count && rep == NULL; i++)
		if (doca_devinfo_rep_is_equal_pci_addr(list[i], pci, &equal) == DOCA_SUCCESS && equal)
			OK(doca_dev_rep_open(list[i], &rep));
	OK(doca_devinfo_rep_destroy_list(list));
	return rep;
}

static inline void server_create(struct end *end, const char *name)
{
	end_begin(end);
	end->rep = open_rep(end->dev, HOST_PCI);
	if (end->rep == NULL)
		give_up("no such representor");
	OK(doca_comch_server_create(end->dev, end->rep, name, &end->server));
	end->ctx = doca_comch_server_as_ctx(end->server);
	OK(doca_comch_server_task_send_set_conf(end->server, end_sent, end_not_sent, TASKS));
	OK(doca_comch_server_event_msg_recv_register(end->server, end_received));
	OK(doca_comch_server_event_connection_status_changed_register(end->server, end_connected, end_disconnected));
	OK(doca_comch_server_event_consumer_register(end->server, end_new_consumer, end_expired_consumer));
	end_connect(end);
}

static inline void client_start(struct end *end)
{
	FAILS(IN_PROGRESS, doca_ctx_start(end->ctx));
	CHECK(end_is(end, DOCA_CTX_STATE_STARTING));
	UNTIL(end, !end_is(end, DOCA_CTX_STATE_STARTING));
	if (end_is(end, DOCA_CTX_STATE_RUNNING))
		OK(doca_comch_client_get_connection(end->client, &end->connection));
}

static inline void end_stop(struct end *end)
{
	doca_error_t stopped = doca_ctx_stop(end->ctx);

	CHECK(stopped == DOCA_SUCCESS || stopped == DOCA_ERROR_IN_PROGRESS);
	UNTIL(end, end_is(end, DOCA_CTX_STATE_IDLE));
}

static inline void end_close(struct end *end)
{
	if (!end_is(end, DOCA_CTX_STATE_IDLE))
		end_stop(end);
	if (end->server != NULL)
		OK(doca_comch_server_destroy(end->server));
	if (end->client != NULL)
		OK(doca_comch_client_destroy(end->client));
	OK(doca_pe_destroy(end->pe));
	if (end->rep != NULL)
		OK(doca_dev_rep_close(end->rep));
	OK(doca_dev_close(end->dev));
}

/* Orders for a server's process. */
enum order {
	LOOK = 1,
	/* Does not progress until the next order. */
	SLEEP,
	/* value: messages to the last client, len: bytes of each. */
	SEND,
	DISCONNECT,
	STOP,
	START,
	ECHO,
	REJECT,
	FINISH,
	/* What a test adds. */
	MORE,
};

struct ask {
	uint64_t order, value, len;
};

typedef doca_error_t (*more_orders)(struct end *end, const struct ask *ask);

/* The server's process: does as it is told, and says what it has seen. */
static inline int server_main(const char *name, more_orders more)
{
	struct pollfd waited = {.fd = PEER_SOCKET, .events = POLLIN};
	uint8_t bytes[4096];
	int asleep = 0, busy;
	struct end end;
	struct ask ask;

	server_create(&end, name);
	OK(doca_ctx_start(end.ctx));
	CHECK(end_is(&end, DOCA_CTX_STATE_RUNNING));
	tell_word(PEER_SOCKET, 1);
	for (;;) {
		busy = !asleep && doca_pe_progress(end.pe);
		if (poll(&waited, 1, busy ? 0 : asleep ? PATIENCE_MS : 1) != 1)
			continue;
		hear(PEER_SOCKET, &ask, sizeof(ask));
		asleep = 0;
		end.seen.result = DOCA_SUCCESS;
		switch (ask.order) {
		case LOOK:
			break;
		case SLEEP:
			asleep = 1;
			break;
		case SEND:
			for (uint32_t i = 0; i < ask.value && end.seen.result == DOCA_SUCCESS; i++) {
				pattern(bytes, (uint32_t)ask.len, i);
				end.seen.result = end_try(&end, bytes, (uint32_t)ask.len);
			}
			break;
		case DISCONNECT:
			end.seen.result = doca_comch_server_disconnect(end.server, end.connection);
			break;
		case STOP:
			end_stop(&end);
			break;
		case START:
			end.seen = (struct seen){.connected = 0};
			end.seen.result = doca_ctx_start(end.ctx);
			break;
		case ECHO:
			end.echoes = (int)ask.value;
			break;
		case REJECT:
			end.rejects = (int)ask.value;
			break;
		case FINISH:
			end_close(&end);
			break;
		default:
			end.seen.result = more(&end, &ask);
		}
		tell(PEER_SOCKET, &end.seen, sizeof(end.seen));
		if (ask.order == FINISH)
			return check_summary();
	}
}

/* The client's process starts a server's, on the other side. */
static inline struct peer server_start(void)
{
	struct peer peer = peer_start_on_dpu("server");

	CHECK(hear_word(peer.socket) == 1);
	return peer;
}

/* While it waits for the answer, the client progresses. */
static inline struct seen order(struct end *end, struct peer *peer, enum order what, uint64_t value, uint64_t len)
{
	struct ask ask = {.order = what, .value = value, .len = len};
	struct pollfd waited = {.fd = peer->socket, .events = POLLIN};
	uint64_t until = now_ms() + PATIENCE_MS;
	struct seen seen = {.connected = 0};

	tell(peer->socket, &ask, sizeof(ask));
	while (poll(&waited, 1, 0) != 1 && now_ms() < until)
		if (end == NULL || !doca_pe_progress(end->pe))
			sched_yield();
	if (hear(peer->socket, &seen, sizeof(seen)) != sizeof(seen))
		give_up("half an answer");
	return seen;
}

/* Looks until the server has seen it. */
#define SEES(end, peer, condition)                                                              \
	do {                                                                                    \
		uint64_t sees_ = now_ms() + PATIENCE_MS;                                        \
		struct seen seen;                                                               \
		do                                                                              \
			seen = order(end, peer, LOOK, 0, 0);                                    \
		while (!(condition) && now_ms() < sees_);                                       \
		check_result((condition) != 0, __FILE__, __LINE__, "the server sees: " #condition); \
	} while (0)

static inline void server_finish(struct end *end, struct peer *peer)
{
	order(end, peer, FINISH, 0, 0);
	peer_finish(peer);
}

#endif
