/*
 * Messages of Comch between two processes: bytes, order and sizes, queues that are full, counters, disconnection, and the
 * death of either side.
 */
#include "comch.h"

#define NAME "messages"
#define DEPTH 8

static doca_error_t more(struct end *end, const struct ask *ask)
{
	struct doca_comch_connection *connection = end->connection;
	uint64_t value = 0;

	switch (ask->order) {
	case MORE: /* A counter of the last connection. */
		OK(doca_comch_connection_update_info(connection));
		OK(doca_comch_connection_get_counter(connection, (enum doca_comch_counter)ask->value, &value));
		end->seen.value = value;
		return DOCA_SUCCESS;
	case MORE + 1: /* An object that is not running is configured anew. */
		OK(doca_comch_server_set_recv_queue_size(end->server, (uint32_t)ask->value));
		OK(doca_comch_server_set_max_msg_size(end->server, (uint32_t)ask->len));
		return DOCA_SUCCESS;
	default:
		return DOCA_ERROR_UNEXPECTED;
	}
}

static void client_open(struct end *end)
{
	client_create(end, NAME);
	client_start(end);
	CHECK(end_is(end, DOCA_CTX_STATE_RUNNING));
}

static void both_ways(void)
{
	static const uint32_t sizes[] = {0, 1, 3, 4, 15, 16, 17, 100, 1024, 4079, 4080};
	struct peer peer = server_start();
	uint8_t bytes[4096];
	struct end end;
	uint64_t value;

	client_open(&end);
	FAILS(INVALID_VALUE, end_try(&end, bytes, 4081));
	FAILS(INVALID_VALUE, end_try(&end, NULL, 1));
	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t len = sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];

		pattern(bytes, len, i);
		UNTIL(&end, end.seen.sent + TASKS > i + 1);
		OK(end_try(&end, bytes, len));
		/* It is the program's again at once. */
		memset(bytes, 0, len);
	}
	UNTIL(&end, end.seen.sent == 3000);
	SEES(&end, &peer, seen.messages == 3000);
	CHECK(order(&end, &peer, LOOK, 0, 0).in_order == 3000);
	CHECK(order(&end, &peer, SEND, 50, 4080).result == DOCA_SUCCESS);
	UNTIL(&end, end.seen.messages == 50);
	CHECK(end.seen.in_order == 50 && end.seen.len == 4080);

	/* Answers from within the callback. */
	order(&end, &peer, ECHO, 1, 0);
	for (uint32_t i = 0; i < 200; i++) {
		pattern(bytes, 64, 50 + i);
		OK(end_try(&end, bytes, 64));
		UNTIL(&end, end.seen.messages == 51 + i);
	}
	CHECK(end.seen.in_order == 250);

	/* Counters stand still until they are asked for. */
	FAILS(INVALID_VALUE, doca_comch_connection_get_counter(end.connection, (enum doca_comch_counter)0, &value));
	FAILS(INVALID_VALUE, doca_comch_connection_get_counter(end.connection, (enum doca_comch_counter)5, &value));
	FAILS(INVALID_VALUE, doca_comch_connection_get_counter(NULL, DOCA_COMCH_COUNTER_SENT_BYTES, &value));
	FAILS(INVALID_VALUE,
	      doca_comch_connection_get_counter(end.connection, DOCA_COMCH_COUNTER_SENT_BYTES, NULL));
	OK(doca_comch_connection_get_counter(end.connection, DOCA_COMCH_COUNTER_SENT_MESSAGES, &value));
	CHECK(value == 0);
	OK(doca_comch_connection_update_info(end.connection));
	OK(doca_comch_connection_get_counter(end.connection, DOCA_COMCH_COUNTER_SENT_MESSAGES, &value));
	CHECK(value == 3200);
	OK(doca_comch_connection_get_counter(end.connection, DOCA_COMCH_COUNTER_RECV_MESSAGES, &value));
	CHECK(value == 250);
	OK(doca_comch_connection_get_counter(end.connection, DOCA_COMCH_COUNTER_RECV_BYTES, &value));
	CHECK(value == 50 * 4080 + 200 * 64);
	CHECK(order(&end, &peer, MORE, DOCA_COMCH_COUNTER_RECV_MESSAGES, 0).value == 3200);
	CHECK(order(&end, &peer, MORE, DOCA_COMCH_COUNTER_SENT_BYTES, 0).value == 50 * 4080 + 200 * 64);

	/* The program's word. */
	CHECK(doca_comch_connection_get_user_data(end.connection).u64 == 0);
	OK(doca_comch_connection_set_user_data(end.connection, (union doca_data){.u64 = 5}));
	CHECK(doca_comch_connection_get_user_data(end.connection).u64 == 5);
	FAILS(INVALID_VALUE, doca_comch_connection_set_user_data(NULL, (union doca_data){.u64 = 5}));
	end_close(&end);
	server_finish(NULL, &peer);
}

/* The server does not progress: its queue fills up, then tasks stay in flight, then there are no more. */
static void back_pressure(void)
{
	struct peer peer = server_start();
	struct doca_comch_task_send *task;
	uint8_t bytes[64];
	struct end end;
	size_t in_flight;

	order(NULL, &peer, STOP, 0, 0);
	order(NULL, &peer, MORE + 1, DEPTH, sizeof(bytes));
	order(NULL, &peer, START, 0, 0);
	client_open(&end);
	SEES(&end, &peer, seen.connected == 1);
	order(&end, &peer, SLEEP, 0, 0);
	for (uint32_t i = 0; i < TASKS; i++) {
		pattern(bytes, sizeof(bytes), i);
		OK(end_alloc(&end, end.connection, bytes, sizeof(bytes), &task));
		OK(doca_task_submit(doca_comch_task_send_as_task(task)));
	}
	FAILS(NO_MEMORY, end_alloc(&end, end.connection, bytes, sizeof(bytes), &task));
	UNTIL(&end, end.seen.sent == DEPTH);
	for (int i = 0; i < 1000; i++)
		doca_pe_progress(end.pe);
	CHECK(end.seen.sent == DEPTH);
	OK(doca_ctx_get_num_inflight_tasks(end.ctx, &in_flight));
	CHECK(in_flight == TASKS - DEPTH);
	SEES(&end, &peer, seen.messages == TASKS);
	UNTIL(&end, end.seen.sent == TASKS);
	CHECK(order(&end, &peer, LOOK, 0, 0).in_order == TASKS);

	/* More than the peer takes, though not more than this side does. */
	{
		uint8_t large[100] = {0};

		OK(end_try(&end, large, sizeof(large)));
		UNTIL(&end, end.seen.failed == 1);
		CHECK(end.seen.status == DOCA_ERROR_INVALID_VALUE && end_is(&end, DOCA_CTX_STATE_RUNNING));
	}

	/* The other way: a server whose client does not progress cannot be rid of it at once. */
	OK(doca_comch_connection_update_info(end.connection));
	end_stop(&end);
	OK(doca_comch_client_set_recv_queue_size(end.client, 2));
	end.seen = (struct seen){.connected = 0};
	client_start(&end);
	SEES(&end, &peer, seen.connected == 2);
	CHECK(order(NULL, &peer, SEND, 4, 16).result == DOCA_SUCCESS);
	CHECK(order(NULL, &peer, DISCONNECT, 0, 0).result == DOCA_ERROR_AGAIN);
	UNTIL(&end, end.seen.messages == 4);
	SEES(&end, &peer, seen.sent == 4);
	CHECK(order(NULL, &peer, DISCONNECT, 0, 0).result == DOCA_SUCCESS);
	UNTIL(&end, end_is(&end, DOCA_CTX_STATE_IDLE));
	CHECK(order(NULL, &peer, DISCONNECT, 0, 0).result == DOCA_ERROR_INVALID_VALUE);
	CHECK(order(NULL, &peer, LOOK, 0, 0).disconnected == 1);

	/* What waits for room comes back when this side stops. */
	end.seen = (struct seen){.connected = 0};
	client_start(&end);
	SEES(&end, &peer, seen.connected == 3);
	order(&end, &peer, SLEEP, 0, 0);
	for (uint32_t i = 0; i < DEPTH + 3; i++)
		OK(end_try(&end, bytes, sizeof(bytes)));
	end_stop(&end);
	CHECK(end.seen.sent == DEPTH && end.seen.failed == 3);
	SEES(NULL, &peer, seen.disconnected == 2);
	/* What had been delivered was read before the end was told. */
	CHECK(order(NULL, &peer, LOOK, 0, 0).messages == TASKS + DEPTH);

	/* A peer that goes while tasks wait. */
	end.seen = (struct seen){.connected = 0};
	client_start(&end);
	SEES(&end, &peer, seen.connected == 4);
	order(&end, &peer, SLEEP, 0, 0);
	for (uint32_t i = 0; i < DEPTH + 3; i++)
		OK(end_try(&end, bytes, sizeof(bytes)));
	order(NULL, &peer, STOP, 0, 0);
	UNTIL(&end, end_is(&end, DOCA_CTX_STATE_IDLE));
	CHECK(end.seen.sent == DEPTH && end.seen.failed == 3 && end.seen.status == DOCA_ERROR_CONNECTION_RESET);
	end_close(&end);
	server_finish(NULL, &peer);
}

/* Nobody notices a server that was killed until somebody sends, and then only after a while. */
static void late_notice(void)
{
	const int fell[] = {2 * 4 + 3, 3 * 4, -1};
	struct peer peer = server_start();
	uint64_t before;
	struct end end;

	client_open(&end);
	end.num_states = 0;
	peer_kill(&peer);
	before = now_ms();
	while (now_ms() < before + 300)
		doca_pe_progress(end.pe);
	CHECK(end_is(&end, DOCA_CTX_STATE_RUNNING));
	OK(doca_comch_connection_update_info(end.connection));
	OK(end_try(&end, "x", 1));
	UNTIL(&end, end_is(&end, DOCA_CTX_STATE_IDLE));
	CHECK(now_ms() >= before + 300 + 500);
	CHECK(end.seen.failed == 1 && end.seen.status == DOCA_ERROR_CONNECTION_ABORTED);
	CHECK(end_went(&end, fell));
	FAILS(CONNECTION_ABORTED, doca_comch_connection_update_info(end.connection));

	/* The name is free at once. */
	peer = server_start();
	client_start(&end);
	CHECK(end_is(&end, DOCA_CTX_STATE_RUNNING));
	end_close(&end);
	server_finish(NULL, &peer);
}

/* A process that dies after so many steps of this program, with a message on its way or not. */
static void dying_client(void)
{
	struct end end;

	client_create(&end, NAME);
	client_start(&end);
	for (uint32_t i = 0;; i++) {
		end_try(&end, "still here", 10);
		doca_pe_progress(end.pe);
	}
}

static void dying_clients(void)
{
	struct peer peer = server_start(), client;
	struct end end;
	uint64_t before;
	char at[16];

	client_open(&end);
	/* Each internal point of the first messages, and some later ones. */
	for (int point = 1; point <= 60; point += point < 20 ? 1 : 7) {
		snprintf(at, sizeof(at), "%d", point);
		setenv("DOCA_SIM_KILL_AT", at, 1);
		client = peer_start("dying");
		unsetenv("DOCA_SIM_KILL_AT");
		waitpid(client.pid, NULL, 0);
		close(client.socket);
	}
	/* The others are served as before. */
	before = order(&end, &peer, ECHO, 1, 0).messages;
	OK(end_try(&end, "x", 1));
	SEES(&end, &peer, seen.messages > before);
	UNTIL(&end, end.seen.messages == 1);
	end_close(&end);
	server_finish(NULL, &peer);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "dying") == 0)
		dying_client();
	if (argc > 1)
		return server_main(NAME, more);
	both_ways();
	back_pressure();
	late_notice();
	dying_clients();
	return check_summary();
}
