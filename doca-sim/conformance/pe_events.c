/*
 * Sleeping until there is work: the notification handle in both event modes, woken by another process, by a death and by
 * timeouts.
 */
#include "side.h"

#define PORT 13579
#define ROUNDS 500

static struct side side;
static enum doca_pe_event_mode mode;

static int readable(int timeout_ms)
{
	doca_notification_handle_t handle = doca_event_invalid_handle;
	struct pollfd waited;

	OK(doca_pe_get_notification_handle(side.pe, &handle));
	waited = (struct pollfd){.fd = handle, .events = POLLIN};
	return poll(&waited, 1, timeout_ms);
}

static void awake(void)
{
	doca_notification_handle_t handle = doca_event_invalid_handle;

	OK(doca_pe_get_notification_handle(side.pe, &handle));
	if (mode == DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE)
		OK(doca_pe_clear_notification(side.pe, handle));
}

/* The loop of a program that sleeps: progress while there is something, else sleep until woken. */
#define SLEEP_UNTIL(condition)                                                      \
	do {                                                                        \
		uint64_t until_ = now_ms() + PATIENCE_MS;                           \
		int fine_;                                                          \
		while (!(fine_ = (condition)) && now_ms() < until_) {               \
			if (doca_pe_progress(side.pe))                              \
				continue;                                           \
			OK(doca_pe_request_notification(side.pe));                  \
			CHECK(readable(PATIENCE_MS) == 1);                          \
			awake();                                                    \
		}                                                                   \
		check_result(fine_, __FILE__, __LINE__, "asleep: " #condition);     \
	} while (0)

/* Echoes what comes, asleep between messages. */
static void echo(void)
{
	struct doca_rdma_connection *to;
	struct doca_buf *buf;

	side_open(&side);
	OK(doca_pe_set_event_mode(side.pe, mode));
	to = side_connect(&side, PEER_SOCKET);
	buf = side_room(&side, 0, 8);
	for (int i = 0; i < ROUNDS; i++) {
		OK(doca_buf_reset_data_len(buf));
		side_receive(&side, buf, 0);
		if (i == 0)
			tell_word(PEER_SOCKET, 1);
		SLEEP_UNTIL(side.succeeded == 2 * i + 1);
		side_send(&side, to, buf, 0);
		SLEEP_UNTIL(side.succeeded == 2 * i + 2);
	}
	put(buf);
	side_close(&side);
}

static void echo_selective(void)
{
	mode = DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE;
	echo();
}

static void echo_all(void)
{
	mode = DOCA_PE_EVENT_MODE_PROGRESS_ALL;
	echo();
}

static void ping(const char *role, enum doca_pe_event_mode wanted)
{
	struct peer peer = peer_start(role);
	struct doca_rdma_connection *to;
	struct doca_buf *out, *in;
	uint64_t *words;

	mode = wanted;
	side_open(&side);
	OK(doca_pe_set_event_mode(side.pe, mode));
	to = side_connect(&side, peer.socket);
	hear_word(peer.socket);
	words = (void *)side.memory;
	out = side_data(&side, 0, 8);
	in = side_room(&side, 8, 8);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		words[0] = i * i;
		OK(doca_buf_reset_data_len(in));
		side_receive(&side, in, 0);
		side_send(&side, to, out, 0);
		SLEEP_UNTIL(side.succeeded == 2 * (int)i + 2);
		if (words[1] != i * i)
			CHECK(!"the echo is right");
	}
	put(out);
	put(in);
	peer_finish(&peer);
	side_close(&side);
}

/* One message, when the other side is known to sleep; it says how long the way took. */
static void late_sender(void)
{
	struct doca_rdma_connection *to;
	struct doca_buf *buf;

	side_open(&side);
	to = side_connect(&side, PEER_SOCKET);
	buf = side_data(&side, 0, 8);
	tell_word(PEER_SOCKET, 1);
	hear_word(PEER_SOCKET);
	*(uint64_t *)(void *)side.memory = now_ms();
	side_send(&side, to, buf, 0);
	UNTIL(&side, side.succeeded == 1);
	/* An end would be one more reason to wake the other. */
	hear_word(PEER_SOCKET);
	put(buf);
	side_close(&side);
}

static void woken_in_time(enum doca_pe_event_mode wanted)
{
	struct peer peer = peer_start("late sender");
	struct doca_buf *buf;
	uint64_t sent;

	mode = wanted;
	side_open(&side);
	OK(doca_pe_set_event_mode(side.pe, mode));
	side_connect(&side, peer.socket);
	buf = side_room(&side, 0, 8);
	side_receive(&side, buf, 0);
	hear_word(peer.socket);
	while (doca_pe_progress(side.pe))
		;
	OK(doca_pe_request_notification(side.pe));
	CHECK(readable(0) == 0);
	tell_word(peer.socket, 1);
	CHECK(readable(PATIENCE_MS) == 1);
	memcpy(&sent, side.memory, sizeof(sent));
	CHECK(now_ms() - sent < 200);
	/* It stays so until cleared, or until the next request in the other mode. */
	CHECK(readable(0) == 1);
	awake();
	UNTIL(&side, side.succeeded == 1);
	CHECK(doca_pe_progress(side.pe) == 0);
	OK(doca_pe_request_notification(side.pe));
	CHECK(readable(0) == 0);
	awake();
	put(buf);
	tell_word(peer.socket, 2);
	peer_finish(&peer);
	side_close(&side);
}

/* Work that came before the request would wake nobody later: the handle is readable at once. */
static void work_before(void)
{
	struct doca_rdma_connection *self = NULL;
	const void *blob = NULL;
	size_t len = 0;

	mode = DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE;
	side_open(&side);
	OK(doca_rdma_export(side.rdma, &blob, &len, &self));
	OK(doca_rdma_connect(side.rdma, blob, len, self));
	side_receive(&side, NULL, 0);
	side_send(&side, self, NULL, 0);
	OK(doca_pe_request_notification(side.pe));
	CHECK(readable(0) == 1);
	awake();
	/* One of two was taken: still work. */
	CHECK(doca_pe_progress(side.pe) == 1);
	OK(doca_pe_request_notification(side.pe));
	CHECK(readable(0) == 1);
	awake();
	CHECK(doca_pe_progress(side.pe) == 1 && doca_pe_progress(side.pe) == 0 && side.succeeded == 2);
	OK(doca_pe_request_notification(side.pe));
	CHECK(readable(0) == 0);
	awake();
	side_close(&side);
}

/* A request, and the death of the client. */
static void client(void)
{
	struct doca_rdma_addr *addr = NULL;

	side_open(&side);
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT, &addr));
	hear_word(PEER_SOCKET);
	OK(doca_rdma_connect_to_addr(side.rdma, addr, (union doca_data){0}));
	UNTIL(&side, side.established == 1);
	tell_word(PEER_SOCKET, 1);
	/* Until killed. */
	hear_word(PEER_SOCKET);
}

static void connections_wake(void)
{
	struct peer peer = peer_start("client");
	uint64_t started;

	mode = DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE;
	side_open(&side);
	OK(doca_rdma_start_listen_to_port(side.rdma, PORT));
	OK(doca_pe_request_notification(side.pe));
	CHECK(readable(0) == 0);
	awake();
	tell_word(peer.socket, 1);
	SLEEP_UNTIL(side.established == 1);
	hear_word(peer.socket);
	OK(doca_pe_request_notification(side.pe));
	CHECK(readable(0) == 0);
	awake();
	peer_kill(&peer);
	started = now_ms();
	SLEEP_UNTIL(side.disconnections == 1);
	CHECK(now_ms() - started < 1000);
	side_close(&side);
}

/* A message that nobody receives: the sleeper hears of its failure. */
static void timeouts_wake(void)
{
	struct doca_rdma_connection *self = NULL;
	const void *blob = NULL;
	uint64_t started;
	size_t len = 0;

	mode = DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE;
	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_rnr_retry_count(side.rdma, 2));
	OK(doca_ctx_start(side.ctx));
	OK(doca_rdma_export(side.rdma, &blob, &len, &self));
	OK(doca_rdma_connect(side.rdma, blob, len, self));
	started = now_ms();
	side_send(&side, self, NULL, 0);
	SLEEP_UNTIL(side.failed == 1);
	CHECK(now_ms() - started >= 200 && now_ms() - started < 1200);
	side_close(&side);
}

static void stop_wakes(void)
{
	mode = DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE;
	side_open(&side);
	side_receive(&side, NULL, 0);
	FAILS(IN_PROGRESS, doca_ctx_stop(side.ctx));
	SLEEP_UNTIL(side.failed == 1);
	SLEEP_UNTIL(side_is(&side, DOCA_CTX_STATE_IDLE));
	side_close(&side);
}

static const struct {
	const char *role;
	void (*run)(void);
} roles[] = {
	{"echo selective", echo_selective},
	{"echo all", echo_all},
	{"late sender", late_sender},
	{"client", client},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(roles) / sizeof(*roles); i++) {
		if (strcmp(argv[1], roles[i].role) == 0) {
			roles[i].run();
			return check_summary();
		}
	}
	ping("echo selective", DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE);
	ping("echo all", DOCA_PE_EVENT_MODE_PROGRESS_ALL);
	woken_in_time(DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE);
	woken_in_time(DOCA_PE_EVENT_MODE_PROGRESS_ALL);
	work_before();
	connections_wake();
	timeouts_wake();
	stop_wakes();
	return check_summary();
}
