/*
 * What goes wrong between two processes: descriptors that were damaged or belong elsewhere, receives that are too small
 * or do not come, peers that stop or are killed.
 */
#include <doca_sync_event.h>

#include "side.h"

#define PORT 13579
#define FLAGS (DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ)

static struct side side;

/* Descriptors. */

static char good[4096], memory_blob[4096];
static size_t good_len, memory_len;
static struct doca_rdma_connection *connection;

static void refused(const void *blob, size_t len)
{
	if (doca_rdma_connect(side.rdma, blob, len, connection) != DOCA_ERROR_CONNECTION_ABORTED)
		CHECK(!"a damaged descriptor is refused");
}

static void not_memory(const void *blob, size_t len)
{
	struct doca_mmap *map = NULL;

	if (doca_mmap_create_from_export(NULL, blob, len, side.dev, &map) != DOCA_ERROR_INVALID_VALUE || map != NULL)
		CHECK(!"a damaged memory descriptor is refused");
}

/* Each shortening, each flipped bit, another version, other kinds, and no bytes at all. */
static void damaged(const char *whole, size_t len, void (*attempt)(const void *, size_t))
{
	char copy[4096];

	for (size_t cut = 1; cut < len; cut++)
		attempt(whole, cut);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		memcpy(copy, whole, len);
		copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
		attempt(copy, len);
	}
	memcpy(copy, whole, len);
	copy[4]++;
	attempt(copy, len);
	memset(copy, 0, sizeof(copy));
	attempt(copy, sizeof(copy));
	memset(copy, 'A', sizeof(copy));
	attempt(copy, sizeof(copy));
}

static void exporter(void)
{
	const void *blob = NULL;
	size_t len = 0;

	side_create(&side, "mlx5_0", FLAGS, FLAGS);
	OK(doca_ctx_start(side.ctx));
	OK(doca_rdma_export(side.rdma, &blob, &len, &connection));
	tell(PEER_SOCKET, blob, len);
	OK(doca_mmap_export_rdma(side.map, side.dev, &blob, &len));
	tell(PEER_SOCKET, blob, len);
	hear_word(PEER_SOCKET);
	side_close(&side);
}

static void descriptors(void)
{
	struct peer peer = peer_start("exporter");
	struct doca_sync_event_remote_net *event = NULL;
	struct doca_mmap *map = NULL;
	const void *blob = NULL;
	size_t len = 0;

	side_open(&side);
	OK(doca_rdma_export(side.rdma, &blob, &len, &connection));
	good_len = hear(peer.socket, good, sizeof(good));
	memory_len = hear(peer.socket, memory_blob, sizeof(memory_blob));
	damaged(good, good_len, refused);
	damaged(memory_blob, memory_len, not_memory);
	/* Each in the place of the other. */
	refused(memory_blob, memory_len);
	not_memory(good, good_len);
	CHECK(doca_sync_event_remote_net_create_from_export(side.dev, (void *)good, good_len, &event) ==
	      DOCA_ERROR_INVALID_VALUE);
	FAILS(INVALID_VALUE, doca_rdma_connect(side.rdma, good, 0, connection));
	/* More than any object can be long. */
	FAILS(INVALID_VALUE, doca_rdma_connect(side.rdma, good, SIZE_MAX, connection));
	FAILS(INVALID_VALUE, doca_mmap_create_from_export(NULL, memory_blob, SIZE_MAX, side.dev, &map));
	FAILS(INVALID_VALUE, doca_sync_event_remote_net_create_from_export(side.dev, (void *)good, SIZE_MAX, &event));
	/* After all that the whole ones are taken. */
	OK(doca_rdma_connect(side.rdma, good, good_len, connection));
	OK(doca_mmap_create_from_export(NULL, memory_blob, memory_len, side.dev, &map));
	OK(doca_mmap_destroy(map));
	side_close(&side);
	tell_word(peer.socket, 1);
	peer_finish(&peer);
}

/* Messages and receives. */

static void small_receiver(void)
{
	struct doca_buf *buf;

	side_open(&side);
	memset(side.memory, 'g', 32);
	connection = side_connect(&side, PEER_SOCKET);
	buf = side_room(&side, 0, 15);
	side_receive(&side, buf, 0);
	tell_word(PEER_SOCKET, 1);
	UNTIL(&side, side.failed == 1);
	CHECK(side.status == DOCA_ERROR_IO_FAILED && side.memory[15] == 'g');
	put(buf);
	/* The connection is lost on this side too. */
	side_send(&side, connection, NULL, 0);
	UNTIL(&side, side.failed == 2);
	CHECK(side.status == DOCA_ERROR_IO_FAILED && side.succeeded == 0);
	side_close(&side);
}

static void too_small(void)
{
	struct peer peer = peer_start("small receiver");
	struct doca_buf *buf;

	side_open(&side);
	connection = side_connect(&side, peer.socket);
	hear_word(peer.socket);
	buf = side_data(&side, 0, 16);
	side_send(&side, connection, buf, 1);
	side_send(&side, connection, buf, 2);
	UNTIL(&side, side.failed == 1);
	CHECK(side.status == DOCA_ERROR_IO_FAILED && side.task_data == 1);
	UNTIL(&side, side.failed == 2);
	CHECK(side.status == DOCA_ERROR_IO_FAILED && side.task_data == 2 && side.succeeded == 0);
	peer_finish(&peer);
	put(buf);
	side_close(&side);
}

/* Nobody posts a receive: so long does the sender try. */
static void lazy_receiver(void)
{
	side_open(&side);
	side_connect(&side, PEER_SOCKET);
	tell_word(PEER_SOCKET, 1);
	hear_word(PEER_SOCKET);
	CHECK(side.succeeded + side.failed == 0);
	side_close(&side);
}

static void no_receive(void)
{
	struct peer peer = peer_start("lazy receiver");
	uint64_t started;

	side_create(&side, "mlx5_1", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_rnr_retry_count(side.rdma, 2));
	OK(doca_ctx_start(side.ctx));
	connection = side_connect(&side, peer.socket);
	hear_word(peer.socket);
	started = now_ms();
	side_send(&side, connection, NULL, 0);
	UNTIL(&side, side.failed == 1);
	CHECK(side.status == DOCA_ERROR_IO_FAILED);
	CHECK(now_ms() - started >= 200 && now_ms() - started < 1000);
	tell_word(peer.socket, 2);
	peer_finish(&peer);
	side_close(&side);
}

/* A peer that never connects is unreachable. */
static void absent(void)
{
	const void *blob = NULL;
	size_t len = 0;

	side_open(&side);
	OK(doca_rdma_export(side.rdma, &blob, &len, &connection));
	tell(PEER_SOCKET, blob, len);
	hear_word(PEER_SOCKET);
	side_close(&side);
}

static void never_connected(void)
{
	struct peer peer = peer_start("absent");
	struct doca_rdma_connection *mine = NULL;
	const void *blob = NULL;
	uint64_t started;
	size_t len = 0;

	side_open(&side);
	good_len = hear(peer.socket, good, sizeof(good));
	OK(doca_rdma_export(side.rdma, &blob, &len, &mine));
	OK(doca_rdma_connect(side.rdma, good, good_len, mine));
	started = now_ms();
	side_send(&side, mine, NULL, 0);
	UNTIL(&side, side.failed == 1);
	CHECK(side.status == DOCA_ERROR_IO_FAILED);
	CHECK(now_ms() - started >= 900 && now_ms() - started < 4000);
	tell_word(peer.socket, 1);
	peer_finish(&peer);
	side_close(&side);
}

/* Deaths. */

/* Connected over descriptors: sends fail within the transport timeout, the receive stays until stop. */
static void victim(void)
{
	side_open(&side);
	side_connect(&side, PEER_SOCKET);
	tell_word(PEER_SOCKET, 1);
	for (;;)
		doca_pe_progress(side.pe);
}

static void killed_over_descriptors(void)
{
	struct peer peer = peer_start("victim");
	uint64_t started;

	side_open(&side);
	connection = side_connect(&side, peer.socket);
	side_receive(&side, NULL, 7);
	hear_word(peer.socket);
	side_send(&side, connection, NULL, 1);
	side_send(&side, connection, NULL, 2);
	peer_kill(&peer);
	started = now_ms();
	UNTIL(&side, side.failed == 2);
	CHECK(now_ms() - started < 4000 && side.task_data == 2 && side.status == DOCA_ERROR_IO_FAILED);
	CHECK(side.disconnections == 0 && side.succeeded == 0);
	/* A send to the dead fails too. */
	side_send(&side, connection, NULL, 3);
	UNTIL(&side, side.failed == 3);
	CHECK(side.task_data == 3);
	side_stop(&side);
	CHECK(side.failed == 4 && side.task_data == 7 && side.status == DOCA_ERROR_IO_FAILED);
	side_close(&side);
}

/* Over RDMA CM the death is told within a second, by progress alone. */
static void server(void)
{
	side_open(&side);
	OK(doca_rdma_start_listen_to_port(side.rdma, PORT));
	tell_word(PEER_SOCKET, 1);
	for (;;)
		doca_pe_progress(side.pe);
}

static void killed_over_cm(void)
{
	struct doca_rdma_addr *addr = NULL;

	side_open(&side);
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT, &addr));
	for (int round = 0; round < 3; round++) {
		/* The port of a dead listener is free again. */
		struct peer peer = peer_start("server");
		uint64_t started;

		hear_word(peer.socket);
		OK(doca_rdma_connect_to_addr(side.rdma, addr, (union doca_data){0}));
		UNTIL(&side, side.established == round + 1);
		side_receive(&side, NULL, 7);
		side_send(&side, side.connection, NULL, 1);
		peer_kill(&peer);
		started = now_ms();
		UNTIL(&side, side.disconnections == round + 1);
		CHECK(now_ms() - started < 1000);
		UNTIL(&side, side.failed == round + 1);
		CHECK(side.task_data == 1 && side.status == DOCA_ERROR_IO_FAILED && side.failures == 0);
	}
	OK(doca_rdma_addr_destroy(addr));
	side_close(&side);
	/* The three receives, which outlived their connections. */
	CHECK(side.failed == 6 && side.task_data == 7 && side.succeeded == 0);
}

static const struct {
	const char *role;
	void (*run)(void);
} roles[] = {
	{"exporter", exporter}, {"small receiver", small_receiver}, {"lazy receiver", lazy_receiver},
	{"absent", absent},	{"victim", victim},		    {"server", server},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(roles) / sizeof(*roles); i++) {
		if (strcmp(argv[1], roles[i].role) == 0) {
			roles[i].run();
			return check_summary();
		}
	}
	/* Thousands of refusals would be thousands of lines. */
	setenv("DOCA_LOG_LEVEL_SDK", "20", 1);
	descriptors();
	too_small();
	no_receive();
	never_connected();
	killed_over_descriptors();
	killed_over_cm();
	return check_summary();
}
