/*
 * Messages between two processes, over descriptors and over RDMA CM, with what the sample programs rely on: one message
 * of 256 bytes whose string is padded with NUL, and the two lines that say that it arrived.
 */
#include "side.h"

#define MESSAGE 256
#define PORT 13579
#define HELLO "Hello over DOCA RDMA"

static struct side side;

static void receive_padded(int with_end)
{
	struct doca_buf *buf = side_room(&side, 0, MESSAGE);
	char padded[MESSAGE] = HELLO;

	memset(side.memory, 0xff, MESSAGE + 1);
	side_receive(&side, buf, 0);
	if (with_end)
		tell_word(PEER_SOCKET, 1);
	UNTIL(&side, side.succeeded == 1);
	CHECK(side.result_len == MESSAGE && side.opcode == DOCA_RDMA_OPCODE_RECV_SEND);
	CHECK(memcmp(side.memory, padded, MESSAGE) == 0 && side.memory[MESSAGE] == (char)0xff);
	printf("Got from sender: \"%s\"\n", side.memory);
	put(buf);
}

static void send_padded(struct doca_rdma_connection *to)
{
	struct doca_buf *buf = side_data(&side, 0, MESSAGE);

	memset(side.memory, 0, MESSAGE);
	strcpy(side.memory, HELLO);
	side_send(&side, to, buf, 0);
	UNTIL(&side, side.succeeded == 1);
	CHECK(side.failed == 0);
	put(buf);
}

static void finish(void)
{
	side_close(&side);
	if (checks_failed == 0)
		printf("Sample finished successfully\n");
}

/* Descriptors: the peer receives. */

static void descriptors_peer(void)
{
	side_open(&side);
	side_connect(&side, PEER_SOCKET);
	receive_padded(1);
	finish();
}

static void descriptors(void)
{
	struct peer peer = peer_start("descriptors");
	struct doca_rdma_connection *to;

	side_open(&side);
	to = side_connect(&side, peer.socket);
	hear_word(peer.socket);
	send_padded(to);
	CHECK(side.established == 0 && side.disconnections == 0);
	finish();
	peer_finish(&peer);
}

/* The sender is earlier: its message waits for the receive, and the receiver alone makes it arrive. */
static void early_peer(void)
{
	struct doca_buf *buf;

	side_open(&side);
	side_connect(&side, PEER_SOCKET);
	hear_word(PEER_SOCKET);
	buf = side_room(&side, 0, MESSAGE);
	side_receive(&side, buf, 0);
	UNTIL(&side, side.succeeded == 1);
	CHECK(strcmp(side.memory, HELLO) == 0);
	tell_word(PEER_SOCKET, 2);
	put(buf);
	finish();
}

static void early(void)
{
	struct peer peer = peer_start("early");
	struct doca_rdma_connection *to;
	struct doca_buf *buf;

	side_open(&side);
	to = side_connect(&side, peer.socket);
	strcpy(side.memory, HELLO);
	buf = side_data(&side, 0, MESSAGE);
	side_send(&side, to, buf, 0);
	tell_word(peer.socket, 1);
	/* Nobody progresses here until the message has arrived there. */
	CHECK(hear_word(peer.socket) == 2);
	UNTIL(&side, side.succeeded == 1);
	put(buf);
	finish();
	peer_finish(&peer);
}

/* RDMA CM: the peer serves and receives. */

static void connect_to(enum doca_rdma_addr_type type, const char *text, uint16_t port, struct doca_rdma_addr **addr)
{
	int failures = side.failures;

	OK(doca_rdma_addr_create(type, text, port, addr));
	OK(doca_rdma_connect_to_addr(side.rdma, *addr, (union doca_data){.u64 = 4711}));
	/* Callbacks run by progress only. */
	CHECK(side.established == 0 && side.failures == failures);
}

static void cm_peer(void)
{
	uint8_t words[196] = {1};

	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	side.private_data = words;
	side.private_data_len = sizeof(words);
	OK(doca_ctx_start(side.ctx));
	FAILS(INVALID_VALUE, doca_rdma_start_listen_to_port(side.rdma, 0));
	OK(doca_rdma_start_listen_to_port(side.rdma, PORT));
	FAILS(BAD_STATE, doca_rdma_start_listen_to_port(side.rdma, PORT));
	FAILS(INVALID_VALUE, doca_rdma_stop_listen_to_port(side.rdma, PORT + 1));
	tell_word(PEER_SOCKET, 1);
	UNTIL(&side, side.established == 1);
	CHECK(side.requests == 1 && side.connection_data == 0);
	receive_padded(1);
	/* The other side ends the connection; this one hears of it once. */
	UNTIL(&side, side.disconnections == 1);
	while (doca_pe_progress(side.pe))
		;
	CHECK(side.disconnections == 1 && side.failures == 0);
	finish();
}

static void cm(enum doca_rdma_addr_type type, const char *text)
{
	struct peer peer = peer_start("cm");
	struct doca_rdma_addr *addr = NULL, *theirs = NULL;
	struct doca_rdma_connection *connection;

	side_create(&side, "mlx5_1", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_ctx_start(side.ctx));
	hear_word(peer.socket);
	connect_to(type, text, PORT, &addr);
	UNTIL(&side, side.established == 1);
	CHECK(side.connection_data == 4711 && side.requests == 0 && side.failures == 0);
	connection = side.connection;
	OK(doca_rdma_connection_get_addr(connection, &theirs));
	CHECK(theirs == addr);
	FAILS(BAD_STATE, doca_rdma_addr_destroy(addr));
	hear_word(peer.socket);
	send_padded(connection);
	OK(doca_rdma_connection_disconnect(connection));
	CHECK(side.disconnections == 0);
	UNTIL(&side, side.disconnections == 1);
	CHECK(side.connection_data == 4711 && side.failures == 0);
	FAILS(BAD_STATE, doca_rdma_connection_disconnect(connection));
	OK(doca_rdma_addr_destroy(addr));
	finish();
	peer_finish(&peer);
}

/* Rejected, nobody there, no slot: the failure callback tells, and the context goes on. */

static void reject_peer(void)
{
	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	side.reject = 1;
	OK(doca_ctx_start(side.ctx));
	OK(doca_rdma_start_listen_to_port(side.rdma, PORT));
	tell_word(PEER_SOCKET, 1);
	UNTIL(&side, side.requests == 1);
	side.reject = 0;
	tell_word(PEER_SOCKET, 2);
	UNTIL(&side, side.established == 1);
	/* All slots are taken: the second client is refused without a request. */
	tell_word(PEER_SOCKET, 3);
	UNTIL(&side, side.disconnections == 1);
	CHECK(side.requests == 2 && side.failures == 0);
	side_close(&side);
}

static void rejection(void)
{
	struct peer peer = peer_start("reject");
	struct doca_rdma_addr *addr = NULL, *nobody = NULL;

	side_create(&side, "mlx5_1", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_max_num_connections(side.rdma, 2));
	OK(doca_ctx_start(side.ctx));
	hear_word(peer.socket);
	connect_to(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT, &addr);
	UNTIL(&side, side.failures == 1);
	CHECK(side.connection_data == 4711 && side.established == 0);
	connect_to(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT + 1, &nobody);
	UNTIL(&side, side.failures == 2);
	OK(doca_rdma_addr_destroy(nobody));
	connect_to(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.77.1", PORT, &nobody);
	UNTIL(&side, side.failures == 3);
	OK(doca_rdma_addr_destroy(nobody));
	CHECK(hear_word(peer.socket) == 2);
	OK(doca_rdma_connect_to_addr(side.rdma, addr, (union doca_data){0}));
	UNTIL(&side, side.established == 1);
	CHECK(hear_word(peer.socket) == 3);
	OK(doca_rdma_connect_to_addr(side.rdma, addr, (union doca_data){0}));
	UNTIL(&side, side.failures == 4);
	CHECK(side.established == 1 && side.disconnections == 0);
	side_close(&side);
	OK(doca_rdma_addr_destroy(addr));
	peer_finish(&peer);
}

/* A client that stops after it asked: the server hears that there is no connection, and its slot is free again. */

static void deserted_peer(void)
{
	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_ctx_start(side.ctx));
	OK(doca_rdma_start_listen_to_port(side.rdma, PORT));
	for (int i = 1; i <= 2; i++) {
		tell_word(PEER_SOCKET, 1);
		/* Accepted in the callback, while the client does not look. */
		UNTIL(&side, side.requests == i);
		tell_word(PEER_SOCKET, 2);
		UNTIL(&side, side.failures + side.disconnections == i);
	}
	tell_word(PEER_SOCKET, 1);
	UNTIL(&side, side.requests == 3);
	tell_word(PEER_SOCKET, 2);
	UNTIL(&side, side.disconnections == 1 && side.failures == 2);
	CHECK(side.established == 1);
	side_close(&side);
}

static void deserted(void)
{
	struct peer peer = peer_start("deserted");
	struct doca_rdma_addr *addr = NULL;

	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT, &addr));
	for (int i = 1; i <= 3; i++) {
		side_create(&side, "mlx5_1", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
		OK(doca_ctx_start(side.ctx));
		hear_word(peer.socket);
		OK(doca_rdma_connect_to_addr(side.rdma, addr, (union doca_data){0}));
		CHECK(hear_word(peer.socket) == 2);
		if (i == 3)
			UNTIL(&side, side.established == 1);
		side_close(&side);
	}
	OK(doca_rdma_addr_destroy(addr));
	peer_finish(&peer);
}

/* Several listeners and several connections on one context, whose receives they share. */

static void many_peer(void)
{
	static const uint16_t ports[] = {PORT, PORT + 1};
	const struct doca_rdma_connection *known[4] = {0};
	struct doca_buf *bufs[4];
	uint32_t seen = 0;

	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_max_num_connections(side.rdma, 4));
	OK(doca_ctx_start(side.ctx));
	for (uint64_t i = 0; i < 4; i++) {
		bufs[i] = side_room(&side, MESSAGE * i, MESSAGE);
		side_receive(&side, bufs[i], i);
	}
	OK(doca_rdma_start_listen_to_port(side.rdma, ports[0]));
	OK(doca_rdma_start_listen_to_port(side.rdma, ports[1]));
	tell_word(PEER_SOCKET, 1);
	for (int i = 0; i < 4; i++) {
		struct doca_rdma_addr *addr = NULL;
		enum doca_rdma_addr_type type;
		const char *text = NULL;
		uint16_t port = 0;
		uint32_t id = 9;

		UNTIL(&side, side.established == i + 1);
		known[i] = side.connection;
		OK(doca_rdma_connection_get_id(side.connection, &id));
		OK(doca_rdma_connection_get_addr(side.connection, &addr));
		OK(doca_rdma_addr_get_params(addr, &type, &text, &port));
		/* It is the library's. */
		FAILS(BAD_STATE, doca_rdma_addr_destroy(addr));
		CHECK(id == (uint32_t)i && port == ports[i / 2]);
		tell_word(PEER_SOCKET, 2);
	}
	/* Connections outlive their listener. */
	OK(doca_rdma_stop_listen_to_port(side.rdma, ports[0]));
	tell_word(PEER_SOCKET, 3);
	for (int i = 0; i < 4; i++) {
		uint32_t number;

		UNTIL(&side, side.succeeded == i + 1);
		memcpy(&number, side.memory + MESSAGE * side.task_data, sizeof(number));
		CHECK(side.task_data == (uint64_t)i && number < 4 && side.from == known[number & 3]);
		seen |= 1u << number;
		tell_word(PEER_SOCKET, 4);
	}
	CHECK(seen == 15);
	UNTIL(&side, side.disconnections == 4);
	for (int i = 0; i < 4; i++)
		put(bufs[i]);
	side_close(&side);
}

static void many(void)
{
	struct peer peer = peer_start("many");
	struct doca_rdma_connection *connections[4];
	struct doca_rdma_addr *addrs[2] = {0};

	side_create(&side, "mlx5_1", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_max_num_connections(side.rdma, 4));
	OK(doca_ctx_start(side.ctx));
	hear_word(peer.socket);
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT, &addrs[0]));
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT + 1, &addrs[1]));
	for (int i = 0; i < 4; i++) {
		OK(doca_rdma_connect_to_addr(side.rdma, addrs[i / 2], (union doca_data){.u64 = (uint64_t)i}));
		UNTIL(&side, side.established == i + 1);
		CHECK(side.connection_data == (uint64_t)i);
		connections[i] = side.connection;
		hear_word(peer.socket);
	}
	CHECK(hear_word(peer.socket) == 3);
	FAILS(FULL, doca_rdma_connect_to_addr(side.rdma, addrs[1], (union doca_data){0}));
	for (uint32_t i = 0; i < 4; i++) {
		/* Not in the order in which they were made. */
		uint32_t number = 3 - i;
		struct doca_buf *buf = side_data(&side, 0, MESSAGE);

		memcpy(side.memory, &number, sizeof(number));
		side_send(&side, connections[number], buf, 0);
		UNTIL(&side, side.succeeded == (int)i + 1);
		CHECK(hear_word(peer.socket) == 4);
		put(buf);
	}
	for (int i = 0; i < 4; i++)
		OK(doca_rdma_connection_disconnect(connections[i]));
	UNTIL(&side, side.disconnections == 4);
	CHECK(side.failures == 0);
	side_close(&side);
	for (int i = 0; i < 2; i++)
		OK(doca_rdma_addr_destroy(addrs[i]));
	peer_finish(&peer);
}

/* A port that another process listens on, and private data that is too long. */

static void taken_peer(void)
{
	side_open(&side);
	FAILS(CONNECTION_ABORTED, doca_rdma_start_listen_to_port(side.rdma, PORT));
	OK(doca_rdma_start_listen_to_port(side.rdma, PORT + 1));
	side_close(&side);
}

static struct doca_rdma_connection *asked;

static void think(struct doca_rdma_connection *connection, union doca_data data)
{
	(void)data;
	asked = connection;
}

static void taken(void)
{
	struct doca_rdma_addr *addr = NULL;
	uint8_t words[197] = {0};
	struct peer peer;

	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_max_num_connections(side.rdma, 2));
	OK(doca_rdma_set_connection_state_callbacks(side.rdma, think, side_established, side_failed, side_disconnected));
	OK(doca_ctx_start(side.ctx));
	OK(doca_rdma_start_listen_to_port(side.rdma, PORT));
	peer = peer_start("taken");
	peer_finish(&peer);
	/* To itself; the answer comes later, from outside the callback. */
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT, &addr));
	OK(doca_rdma_connect_to_addr(side.rdma, addr, (union doca_data){0}));
	UNTIL(&side, asked != NULL);
	FAILS(INVALID_VALUE, doca_rdma_connection_accept(asked, words, sizeof(words)));
	FAILS(INVALID_VALUE, doca_rdma_connection_accept(asked, NULL, 1));
	OK(doca_rdma_connection_accept(asked, words, sizeof(words) - 1));
	FAILS(BAD_STATE, doca_rdma_connection_accept(asked, NULL, 0));
	FAILS(BAD_STATE, doca_rdma_connection_reject(asked));
	UNTIL(&side, side.established == 2);
	side_close(&side);
	OK(doca_rdma_addr_destroy(addr));
}

/* A pure client may have no request callback; without any callbacks there is no connecting. */
static void client_only(void)
{
	struct doca_rdma_addr *addr = NULL;
	struct doca_rdma *rdma = NULL;

	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_connection_state_callbacks(side.rdma, NULL, side_established, side_failed, side_disconnected));
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT, &addr));
	OK(doca_rdma_create(side.dev, &rdma));
	OK(doca_pe_connect_ctx(side.pe, doca_rdma_as_ctx(rdma)));
	OK(doca_ctx_start(doca_rdma_as_ctx(rdma)));
	FAILS(INVALID_VALUE, doca_rdma_connect_to_addr(rdma, addr, (union doca_data){0}));
	OK(doca_rdma_addr_destroy(addr));
	OK(doca_ctx_stop(doca_rdma_as_ctx(rdma)));
	OK(doca_rdma_destroy(rdma));
	side_close(&side);
}

static const struct {
	const char *role;
	void (*run)(void);
} roles[] = {
	{"descriptors", descriptors_peer}, {"early", early_peer}, {"cm", cm_peer},
	{"reject", reject_peer},	   {"deserted", deserted_peer}, {"many", many_peer}, {"taken", taken_peer},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(roles) / sizeof(*roles); i++) {
		if (strcmp(argv[1], roles[i].role) == 0) {
			roles[i].run();
			return check_summary();
		}
	}
	descriptors();
	early();
	cm(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1");
	cm(DOCA_RDMA_ADDR_TYPE_IPv6, "fe80::ff:fe3b:0");
	cm(DOCA_RDMA_ADDR_TYPE_GID, "::ffff:192.168.1.1");
	rejection();
	deserted();
	many();
	taken();
	client_only();
	return check_summary();
}
