/*
 * Ends of Comch that come from outside: a connection that breaks and is ended by its server at the same moment, a peer that
 * is killed in its sleep, and a process that forks.
 */
#include <doca_comch_producer.h>

#include "comch.h"

#define NAME "ends"
#define PARTS MORE

static doca_error_t more(struct end *end, const struct ask *ask)
{
	if (ask->order != PARTS)
		return DOCA_ERROR_UNEXPECTED;
	end->parts = 1;
	end->seen.value = DOCA_ERROR_UNKNOWN;
	return DOCA_SUCCESS;
}

static void client_open(struct end *end)
{
	client_create(end, NAME);
	client_start(end);
	CHECK(end_is(end, DOCA_CTX_STATE_RUNNING));
}

/* A connection breaks with the first message. Its end was not told yet, so the server may end it, and is told no more. */
static void broken_and_disconnected(void)
{
	struct peer peer;
	struct end end;
	struct seen last;

	setenv("DOCA_SIM_FAULTS", "fail=comch_send:1:CONNECTION_ABORTED", 1);
	peer = server_start();
	unsetenv("DOCA_SIM_FAULTS");
	client_open(&end);
	SEES(&end, &peer, seen.connected == 1);
	CHECK(order(&end, &peer, PARTS, 0, 0).result == DOCA_SUCCESS);
	CHECK(order(&end, &peer, SEND, 1, 16).result == DOCA_SUCCESS);
	SEES(&end, &peer, seen.failed == 1);
	last = order(&end, &peer, LOOK, 0, 0);
	CHECK(last.status == DOCA_ERROR_CONNECTION_ABORTED && last.value == DOCA_SUCCESS);
	UNTIL(&end, end_is(&end, DOCA_CTX_STATE_IDLE));

	/* The server goes on, and the next client's end is told as ever. */
	client_start(&end);
	SEES(&end, &peer, seen.connected == 2);
	end_close(&end);
	SEES(NULL, &peer, seen.disconnected == 1);
	CHECK(order(NULL, &peer, DISCONNECT, 0, 0).result == DOCA_ERROR_INVALID_VALUE);
	server_finish(NULL, &peer);
}

/* Sleeps on its engine as a program with an event loop does. */
static _Noreturn void sleeper(void)
{
	doca_notification_handle_t handle;
	struct pollfd waited;
	struct end end;

	server_create(&end, NAME);
	OK(doca_pe_get_notification_handle(end.pe, &handle));
	OK(doca_ctx_start(end.ctx));
	tell_word(PEER_SOCKET, 1);
	for (;;) {
		while (doca_pe_progress(end.pe))
			;
		OK(doca_pe_request_notification(end.pe));
		waited = (struct pollfd){.fd = handle, .events = POLLIN};
		poll(&waited, 1, -1);
		OK(doca_pe_clear_notification(end.pe, handle));
	}
}

static struct peer sleeper_start(void)
{
	struct peer peer = peer_start_on_dpu("sleeper");

	CHECK(hear_word(peer.socket) == 1);
	return peer;
}

/* To wake a sleeper that was killed is no SIGPIPE, and no error before the message's. */
static void killed_asleep(void)
{
	struct sigaction usual;
	struct peer peer;
	struct end end;

	CHECK(sigaction(SIGPIPE, NULL, &usual) == 0 && usual.sa_handler == SIG_DFL);
	for (int round = 0; round < 3; round++) {
		peer = sleeper_start();
		client_open(&end);
		for (uint32_t sent = 0; sent < 5; sent++) {
			OK(end_try(&end, "wake up", 8));
			UNTIL(&end, end.seen.sent == sent + 1);
		}
		peer_kill(&peer);
		OK(end_try(&end, "wake up", 8));
		UNTIL(&end, end_is(&end, DOCA_CTX_STATE_IDLE));
		CHECK(end.seen.failed == 1 && end.seen.status == DOCA_ERROR_CONNECTION_ABORTED);
		end_close(&end);
	}
	CHECK(sigaction(SIGPIPE, NULL, &usual) == 0 && usual.sa_handler == SIG_DFL);
}

/* In the child of a fork, whose memory is a copy but whose connection is its parent's. */
static int child(struct end *end)
{
	struct doca_comch_connection *connection;
	struct doca_comch_producer *producer;
	struct doca_comch_client *client;
	struct doca_comch_task_send *task;
	uint32_t size;

	checks_failed = 0;
	FAILS(BAD_STATE, end_alloc(end, end->connection, "child", 5, &task));
	for (int i = 0; i < 100; i++)
		CHECK(doca_pe_progress(end->pe) == 0);
	FAILS(BAD_STATE, doca_ctx_stop(end->ctx));
	FAILS(BAD_STATE, doca_comch_connection_update_info(end->connection));
	FAILS(BAD_STATE, doca_comch_client_get_connection(end->client, &connection));
	FAILS(BAD_STATE, doca_comch_client_get_max_msg_size(end->client, &size));
	FAILS(BAD_STATE, doca_comch_producer_create(end->connection, &producer));
	FAILS(BAD_STATE, doca_comch_client_create(end->dev, NAME, &client));
	FAILS(BAD_STATE, doca_comch_client_destroy(end->client));
	return checks_failed;
}

static void forked(void)
{
	struct peer peer = server_start();
	int status = -1;
	struct end end;
	pid_t pid;

	client_open(&end);
	order(&end, &peer, ECHO, 1, 0);
	/* Once with exit handlers and once without: neither touches what is the parent's. */
	for (int gently = 0; gently < 2; gently++) {
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			status = child(&end);
			if (gently)
				exit(status);
			_exit(status);
		}
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	OK(end_try(&end, "still here", 10));
	UNTIL(&end, end.seen.messages == 1);
	CHECK(end.seen.len == 10);
	CHECK(order(&end, &peer, LOOK, 0, 0).disconnected == 0);
	end_close(&end);
	server_finish(NULL, &peer);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "sleeper") == 0)
		sleeper();
	if (argc > 1)
		return server_main(NAME, more);
	broken_and_disconnected();
	killed_asleep();
	forked();
	return check_summary();
}
