/*
 * The bridge: a program's own librdmacm listener, whose connections libdoca_rdma takes over. Data pass both ways, the
 * identifier is DOCA's from the first call on, and each error is provoked. And the neighbours: plain clients of a DOCA
 * server, DOCA clients of a plain server.
 */
#include "rdmacm.h"
#include "side.h"

#define SERVER "192.168.1.1"
#define PORT 14422
#define MESSAGE 200

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener;
static struct side side, other;

static void open_side(struct side *opened, const char *device, uint16_t connections)
{
	side_create(opened, device, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_max_num_connections(opened->rdma, connections));
	OK(doca_ctx_start(opened->ctx));
}

static struct doca_rdma_addr *connect_side(struct side *client, const char *text)
{
	struct doca_rdma_addr *addr = NULL;

	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, text, PORT, &addr));
	OK(doca_rdma_connect_to_addr(client->rdma, addr, (union doca_data){.u64 = 1}));
	return addr;
}

/* No callback of the instance tells about bridged connections: the channel does. */
static void check_silence(void)
{
	while (doca_pe_progress(side.pe))
		;
	CHECK(side.requests == 0 && side.established == 0 && side.failures == 0 && side.disconnections == 0);
}

static void exchange(struct side *mine, struct doca_rdma_connection *connection, int socket, uint8_t own)
{
	struct doca_buf *in = side_room(mine, 0, MESSAGE), *out = side_data(mine, 4096, MESSAGE);
	int before = mine->succeeded;
	uint8_t wanted[MESSAGE];

	memset(mine->memory + 4096, own, MESSAGE);
	memset(wanted, own ^ 0xff, MESSAGE);
	side_receive(mine, in, 0);
	/* Both receives are posted before either message goes. */
	tell_word(socket, 77);
	CHECK(hear_word(socket) == 77);
	side_send(mine, connection, out, 0);
	UNTIL(mine, mine->succeeded == before + 2);
	CHECK(mine->failed == 0 && memcmp(mine->memory, wanted, MESSAGE) == 0);
	CHECK(mine->result_len == MESSAGE && mine->from == connection);
	OK(doca_buf_dec_refcount(in, NULL));
	OK(doca_buf_dec_refcount(out, NULL));
}

/* A DOCA client in another process; how it ends is the last word that it hears. */
enum { LEAVE = 1, STAY, STOP };

static void client_peer(void)
{
	struct doca_rdma_addr *addr;
	uint64_t end;

	open_side(&side, "mlx5_1", 1);
	addr = connect_side(&side, SERVER);
	UNTIL(&side, side.established == 1);
	exchange(&side, side.connection, PEER_SOCKET, 0x0f);
	end = hear_word(PEER_SOCKET);
	if (end == LEAVE)
		OK(doca_rdma_connection_disconnect(side.connection));
	if (end == STOP)
		side_stop(&side);
	else
		UNTIL(&side, side.disconnections == 1);
	CHECK(side.failures == 0);
	side_close(&side);
	OK(doca_rdma_addr_destroy(addr));
}

static struct doca_rdma_connection *bridge(struct rdma_cm_id **id)
{
	struct doca_rdma_connection *connection = NULL;
	struct taken taken = TAKE(channel, CONNECT_REQUEST);

	CHECK(taken.listener == listener && strcmp(taken.id->verbs->device->name, "mlx5_0") == 0);
	OK(doca_rdma_bridge_prepare_connection(side.rdma, taken.id, &connection));
	OK(doca_rdma_bridge_accept(side.rdma, NULL, 0, connection));
	*id = taken.id;
	taken = TAKE(channel, ESTABLISHED);
	CHECK(taken.id == *id);
	OK(doca_rdma_bridge_established(side.rdma, connection));
	return connection;
}

static void conversation(void)
{
	static const enum { CLIENT_LEAVES, CLIENT_STOPS, SERVER_LEAVES, SERVER_STOPS, CLIENT_DIES } ends[] = {
		CLIENT_LEAVES, CLIENT_STOPS, SERVER_LEAVES, SERVER_STOPS, CLIENT_DIES,
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct peer peer = peer_start("client");
		struct doca_rdma_connection *connection;
		struct rdma_cm_id *id;

		open_side(&side, "mlx5_0", 1);
		connection = bridge(&id);
		exchange(&side, connection, peer.socket, 0xf0);
		if (ends[i] == CLIENT_DIES)
			peer_kill(&peer);
		else
			tell_word(peer.socket, ends[i] == CLIENT_LEAVES ? LEAVE : ends[i] == CLIENT_STOPS ? STOP : STAY);
		if (ends[i] == CLIENT_LEAVES || ends[i] == CLIENT_STOPS || ends[i] == CLIENT_DIES)
			CHECK(TAKE(channel, DISCONNECTED).id == id);
		if (ends[i] != SERVER_STOPS)
			OK(doca_rdma_connection_disconnect(connection));
		check_silence();
		side_close(&side);
		/* It went with its connection. */
		CM_FAILS(EINVAL, rdma_destroy_id(id));
		CHECK(!readable(channel, 0));
		if (ends[i] != CLIENT_DIES)
			peer_finish(&peer);
	}
}

/* The order of calls, and what the program may not do with the identifier any more. */
static void order(void)
{
	struct doca_rdma_connection *connection = NULL, *second = NULL;
	struct doca_rdma_addr *addr, *own = NULL;
	struct taken request;
	struct doca_buf *buf;
	struct doca_task *task;
	union doca_data data = {0};
	uint8_t words[197] = {5};
	uint32_t number = 9;

	open_side(&side, "mlx5_0", 1);
	open_side(&other, "mlx5_1", 1);
	addr = connect_side(&other, SERVER);
	request = TAKE(channel, CONNECT_REQUEST);
	OK(doca_rdma_bridge_prepare_connection(side.rdma, request.id, &connection));
	CM_FAILS(EINVAL, rdma_destroy_id(request.id));
	CM_FAILS(EINVAL, rdma_accept(request.id, NULL));
	CM_FAILS(EINVAL, rdma_reject(request.id, NULL, 0));
	FAILS(INVALID_VALUE, doca_rdma_bridge_prepare_connection(side.rdma, request.id, &second));
	OK(doca_rdma_connection_get_id(connection, &number));
	OK(doca_rdma_connection_get_addr(connection, &own));
	OK(doca_rdma_connection_set_user_data(connection, (union doca_data){.u64 = 88}));
	OK(doca_rdma_connection_get_user_data(connection, &data));
	CHECK(number == 0 && data.u64 == 88 && own != NULL);
	FAILS(BAD_STATE, doca_rdma_connection_accept(connection, NULL, 0));
	FAILS(BAD_STATE, doca_rdma_connection_reject(connection));
	FAILS(INVALID_VALUE, doca_rdma_bridge_established(side.rdma, connection));
	FAILS(INVALID_VALUE, doca_rdma_bridge_accept(side.rdma, words, 197, connection));
	FAILS(INVALID_VALUE, doca_rdma_bridge_accept(side.rdma, NULL, 1, connection));
	FAILS(INVALID_VALUE, doca_rdma_bridge_accept(other.rdma, NULL, 0, connection));
	OK(doca_rdma_bridge_accept(side.rdma, words, 196, connection));
	FAILS(BAD_STATE, doca_rdma_bridge_accept(side.rdma, NULL, 0, connection));
	FAILS(INVALID_VALUE, doca_rdma_bridge_established(other.rdma, connection));
	/* Only after the word does this side send. */
	buf = side_data(&side, 0, 8);
	task = side_message(&side, connection, buf, 0);
	FAILS(BAD_STATE, doca_task_submit(task));
	UNTIL(&other, other.established == 1);
	TAKE(channel, ESTABLISHED);
	FAILS(BAD_STATE, doca_task_submit(task));
	OK(doca_rdma_bridge_established(side.rdma, connection));
	FAILS(INVALID_VALUE, doca_rdma_bridge_established(side.rdma, connection));
	side_receive(&other, NULL, 0);
	OK(doca_task_submit(task));
	/* Too much for that receive, so the message fails; that it was tried is enough here. */
	UNTIL(&side, side.failed == 1);
	OK(doca_buf_dec_refcount(buf, NULL));
	OK(doca_rdma_connection_disconnect(connection));
	FAILS(BAD_STATE, doca_rdma_connection_disconnect(connection));
	UNTIL(&other, other.disconnections == 1);
	/* Prepared and given up again: the client is rejected, and the slot is free for the next. */
	OK(doca_rdma_connect_to_addr(other.rdma, addr, (union doca_data){0}));
	request = TAKE(channel, CONNECT_REQUEST);
	OK(doca_rdma_bridge_prepare_connection(side.rdma, request.id, &connection));
	OK(doca_rdma_connection_disconnect(connection));
	UNTIL(&other, other.failures == 1);
	check_silence();
	side_close(&side);
	side_close(&other);
	OK(doca_rdma_addr_destroy(addr));
}

/* Each failure of the first call ends the identifier, and the client hears of it. */

static void refused(struct taken request, int client_hears)
{
	int failures = other.failures;

	CM_FAILS(EINVAL, rdma_destroy_id(request.id));
	if (client_hears)
		UNTIL(&other, other.failures == failures + 1);
}

static void failures(void)
{
	struct doca_rdma_connection *connection = NULL, *untouched = (void *)&side;
	struct rdma_cm_id *idle = NULL;
	struct doca_rdma_addr *addr, *elsewhere = NULL;
	struct taken request;

	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	open_side(&other, "mlx5_1", 2);

	/* Not running. */
	addr = connect_side(&other, SERVER);
	request = TAKE(channel, CONNECT_REQUEST);
	FAILS(BAD_STATE, doca_rdma_bridge_prepare_connection(side.rdma, request.id, &connection));
	refused(request, 1);
	OK(doca_ctx_start(side.ctx));
	/* Not an identifier, not one that was asked, and none of DOCA's business. */
	FAILS(INVALID_VALUE, doca_rdma_bridge_prepare_connection(side.rdma, NULL, &connection));
	FAILS(INVALID_VALUE, doca_rdma_bridge_prepare_connection(side.rdma, (void *)&side, &connection));
	CM_OK(rdma_create_id(channel, &idle, NULL, RDMA_PS_TCP));
	FAILS(INVALID_VALUE, doca_rdma_bridge_prepare_connection(side.rdma, idle, &connection));
	CM_FAILS(EINVAL, rdma_destroy_id(idle));
	OK(doca_rdma_connect_to_addr(other.rdma, addr, (union doca_data){0}));
	request = TAKE(channel, CONNECT_REQUEST);
	FAILS(INVALID_VALUE, doca_rdma_bridge_prepare_connection(NULL, request.id, &connection));
	/* Without an instance nothing took it. */
	CM_OK(rdma_reject(request.id, NULL, 0));
	CM_OK(rdma_destroy_id(request.id));
	UNTIL(&other, other.failures == 2);
	OK(doca_rdma_connect_to_addr(other.rdma, addr, (union doca_data){0}));
	request = TAKE(channel, CONNECT_REQUEST);
	FAILS(INVALID_VALUE, doca_rdma_bridge_prepare_connection(side.rdma, request.id, NULL));
	refused(request, 1);
	/* A client that came to another device than the instance's. */
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.2.1", PORT, &elsewhere));
	OK(doca_rdma_connect_to_addr(other.rdma, elsewhere, (union doca_data){0}));
	request = TAKE(channel, CONNECT_REQUEST);
	CHECK(strcmp(request.id->verbs->device->name, "mlx5_1") == 0);
	FAILS(INVALID_VALUE, doca_rdma_bridge_prepare_connection(side.rdma, request.id, &connection));
	refused(request, 1);
	/* One slot, two clients. */
	OK(doca_rdma_connect_to_addr(other.rdma, addr, (union doca_data){0}));
	OK(doca_rdma_connect_to_addr(other.rdma, addr, (union doca_data){0}));
	request = TAKE(channel, CONNECT_REQUEST);
	OK(doca_rdma_bridge_prepare_connection(side.rdma, request.id, &connection));
	request = TAKE(channel, CONNECT_REQUEST);
	FAILS(FULL, doca_rdma_bridge_prepare_connection(side.rdma, request.id, &untouched));
	CHECK(untouched == (void *)&side);
	refused(request, 1);
	OK(doca_rdma_connection_disconnect(connection));
	UNTIL(&other, other.failures == 6);
	/* The client stops between the request and the answer, seen by the one call or by the other. */
	OK(doca_rdma_connect_to_addr(other.rdma, addr, (union doca_data){0}));
	request = TAKE(channel, CONNECT_REQUEST);
	OK(doca_rdma_bridge_prepare_connection(side.rdma, request.id, &connection));
	side_stop(&other);
	FAILS(CONNECTION_ABORTED, doca_rdma_bridge_accept(side.rdma, NULL, 0, connection));
	refused(request, 0);
	OK(doca_ctx_start(other.ctx));
	OK(doca_rdma_connect_to_addr(other.rdma, addr, (union doca_data){0}));
	request = TAKE(channel, CONNECT_REQUEST);
	side_stop(&other);
	FAILS(CONNECTION_ABORTED, doca_rdma_bridge_prepare_connection(side.rdma, request.id, &connection));
	refused(request, 0);
	/* There is no DC with RDMA CM. */
	side_stop(&side);
	OK(doca_rdma_set_transport_type(side.rdma, DOCA_RDMA_TRANSPORT_TYPE_DC));
	OK(doca_ctx_start(side.ctx));
	OK(doca_ctx_start(other.ctx));
	OK(doca_rdma_connect_to_addr(other.rdma, addr, (union doca_data){0}));
	request = TAKE(channel, CONNECT_REQUEST);
	FAILS(NOT_SUPPORTED, doca_rdma_bridge_prepare_connection(side.rdma, request.id, &connection));
	refused(request, 1);
	check_silence();
	side_close(&side);
	side_close(&other);
	OK(doca_rdma_addr_destroy(addr));
	OK(doca_rdma_addr_destroy(elsewhere));
}

/* An event in the program's hands outlives the identifier that DOCA ends meanwhile. */
static void held_event(void)
{
	struct doca_rdma_connection *connection;
	struct doca_rdma_addr *addr;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id, *later[4];

	open_side(&side, "mlx5_0", 1);
	open_side(&other, "mlx5_1", 1);
	addr = connect_side(&other, SERVER);
	{
		struct taken request = TAKE(channel, CONNECT_REQUEST);

		id = request.id;
		id->context = &side;
		OK(doca_rdma_bridge_prepare_connection(side.rdma, id, &connection));
		OK(doca_rdma_bridge_accept(side.rdma, NULL, 0, connection));
	}
	UNTIL(&other, other.established == 1);
	TAKE(channel, ESTABLISHED);
	OK(doca_rdma_bridge_established(side.rdma, connection));
	OK(doca_rdma_connection_disconnect(other.connection));
	event = take_only(channel, RDMA_CM_EVENT_DISCONNECTED, __FILE__, __LINE__);
	CHECK(event->id == id && event->id->context == &side);
	OK(doca_rdma_connection_disconnect(connection));
	/* Its memory is not given to others yet. */
	for (int i = 0; i < 4; i++)
		CM_OK(rdma_create_id(channel, &later[i], &later, RDMA_PS_TCP));
	CHECK(event->id->context == &side);
	for (int i = 0; i < 4; i++) {
		CHECK(later[i] != id);
		CM_OK(rdma_destroy_id(later[i]));
	}
	CM_OK(rdma_ack_cm_event(event));
	CM_FAILS(EINVAL, rdma_destroy_id(id));
	UNTIL(&other, other.disconnections == 1);
	side_close(&side);
	side_close(&other);
	OK(doca_rdma_addr_destroy(addr));
}

/* A client without DOCA at a bridged server, and at a server of DOCA's own: events only. */

static void plain_client(void)
{
	uint8_t words[196] = {6, 7};
	struct doca_rdma_connection *connection = NULL;
	struct rdma_cm_id *client;
	struct taken request, taken;

	open_side(&side, "mlx5_0", 1);
	client = client_to(channel, SERVER, PORT);
	CM_OK(rdma_connect(client, NULL));
	request = TAKE(channel, CONNECT_REQUEST);
	OK(doca_rdma_bridge_prepare_connection(side.rdma, request.id, &connection));
	OK(doca_rdma_bridge_accept(side.rdma, words, sizeof(words), connection));
	taken = TAKE(channel, CONNECT_RESPONSE);
	CHECK(taken.conn.private_data_len == 196 && memcmp(taken.data, words, sizeof(words)) == 0);
	CM_OK(rdma_establish(client));
	taken = TAKE(channel, ESTABLISHED);
	CHECK(taken.id == request.id);
	OK(doca_rdma_bridge_established(side.rdma, connection));
	OK(doca_rdma_connection_disconnect(connection));
	taken = TAKE(channel, DISCONNECTED);
	CHECK(taken.id == client);
	CM_OK(rdma_destroy_id(client));
	check_silence();

	/* DOCA listens by itself. */
	side.private_data = words;
	side.private_data_len = 2;
	OK(doca_rdma_start_listen_to_port(side.rdma, PORT + 1));
	client = client_to(channel, SERVER, PORT + 1);
	CM_OK(rdma_connect(client, NULL));
	UNTIL(&side, side.requests == 1);
	taken = TAKE(channel, CONNECT_RESPONSE);
	CHECK(memcmp(taken.data, words, sizeof(words)) == 0 && taken.conn.responder_resources > 0);
	CM_OK(rdma_establish(client));
	UNTIL(&side, side.established == 1);
	/* All slots are taken. */
	{
		struct rdma_cm_id *second = client_to(channel, SERVER, PORT + 1);

		CM_OK(rdma_connect(second, NULL));
		while (doca_pe_progress(side.pe))
			;
		taken = TAKE(channel, REJECTED);
		CHECK(taken.id == second && taken.status == 3);
		CM_OK(rdma_destroy_id(second));
	}
	CM_OK(rdma_disconnect(client));
	TAKE(channel, DISCONNECTED);
	UNTIL(&side, side.disconnections == 1);
	CM_OK(rdma_destroy_id(client));
	side.reject = 1;
	client = client_to(channel, SERVER, PORT + 1);
	CM_OK(rdma_connect(client, NULL));
	UNTIL(&side, side.requests == 2);
	taken = TAKE(channel, REJECTED);
	CHECK(taken.status == 28);
	CM_OK(rdma_destroy_id(client));
	/* A port that an identifier has is not DOCA's, and the other way round. */
	FAILS(CONNECTION_ABORTED, doca_rdma_start_listen_to_port(side.rdma, PORT));
	{
		struct sockaddr_in addr = at(SERVER, PORT + 1);

		CM_OK(rdma_create_id(channel, &client, NULL, RDMA_PS_TCP));
		CM_FAILS(EADDRINUSE, rdma_bind_addr(client, (struct sockaddr *)&addr));
		OK(doca_rdma_stop_listen_to_port(side.rdma, PORT + 1));
		CM_OK(rdma_bind_addr(client, (struct sockaddr *)&addr));
		CM_OK(rdma_destroy_id(client));
	}
	side_close(&side);
}

/* A message from one instance of this process to the other. */
static void pass(struct side *from, struct doca_rdma_connection *connection, struct side *to)
{
	struct doca_buf *in = side_room(to, 0, MESSAGE), *out = side_data(from, 4096, MESSAGE);
	int sent = from->succeeded, received = to->succeeded;

	memset(to->memory, 0, MESSAGE);
	memset(from->memory + 4096, 0x5c, MESSAGE);
	side_receive(to, in, 0);
	side_send(from, connection, out, 0);
	UNTIL(from, from->succeeded == sent + 1);
	UNTIL(to, to->succeeded == received + 1);
	CHECK(memcmp(to->memory, from->memory + 4096, MESSAGE) == 0 && to->result_len == MESSAGE);
	OK(doca_buf_dec_refcount(in, NULL));
	OK(doca_buf_dec_refcount(out, NULL));
}

/* A client that asks by itself and lends its connection to an instance, at a bridged server and at one of DOCA's own. */
static void lent_client(void)
{
	struct doca_rdma_connection *mine = NULL, *theirs = NULL;
	struct taken request, taken;
	struct rdma_cm_id *client;
	uint8_t words[32] = {9, 8};
	struct rdma_conn_param param = {.private_data = words, .private_data_len = sizeof(words),
					.responder_resources = 16};

	open_side(&side, "mlx5_0", 1);
	open_side(&other, "mlx5_1", 1);
	for (int at_doca = 0; at_doca < 2; at_doca++) {
		uint16_t port = PORT + (at_doca ? 1 : 0);

		if (at_doca)
			OK(doca_rdma_start_listen_to_port(side.rdma, port));
		/* The way to the server must start at the instance's own device. */
		CM_OK(rdma_create_id(channel, &client, NULL, RDMA_PS_TCP));
		{
			struct sockaddr_in from = at("192.168.2.1", 0), to = at(SERVER, port);

			CM_OK(rdma_resolve_addr(client, (struct sockaddr *)&from, (struct sockaddr *)&to, 1000));
		}
		TAKE(channel, ADDR_RESOLVED);
		CM_OK(rdma_resolve_route(client, 1000));
		TAKE(channel, ROUTE_RESOLVED);
		CM_OK(rdma_connect(client, &param));
		if (at_doca) {
			UNTIL(&side, side.requests == 1);
		} else {
			request = TAKE(channel, CONNECT_REQUEST);
			CHECK(memcmp(request.data, words, sizeof(words)) == 0);
			OK(doca_rdma_bridge_prepare_connection(side.rdma, request.id, &theirs));
			OK(doca_rdma_bridge_accept(side.rdma, words, sizeof(words), theirs));
		}
		taken = TAKE(channel, CONNECT_RESPONSE);
		CHECK(taken.id == client);
		OK(doca_rdma_bridge_prepare_connection(other.rdma, client, &mine));
		CM_FAILS(EINVAL, rdma_establish(client));
		FAILS(BAD_STATE, doca_rdma_bridge_accept(other.rdma, NULL, 0, mine));
		OK(doca_rdma_bridge_established(other.rdma, mine));
		FAILS(INVALID_VALUE, doca_rdma_bridge_established(other.rdma, mine));
		if (at_doca) {
			UNTIL(&side, side.established == 1);
			theirs = side.connection;
		} else {
			CHECK(TAKE(channel, ESTABLISHED).id == request.id);
			OK(doca_rdma_bridge_established(side.rdma, theirs));
		}
		pass(&other, mine, &side);
		pass(&side, theirs, &other);
		/* Whoever ends it, the other hears of it. */
		if (at_doca) {
			OK(doca_rdma_connection_disconnect(theirs));
			CHECK(TAKE(channel, DISCONNECTED).id == client);
			OK(doca_rdma_connection_disconnect(mine));
			UNTIL(&side, side.disconnections == 1);
		} else {
			OK(doca_rdma_connection_disconnect(mine));
			CHECK(TAKE(channel, DISCONNECTED).id == request.id);
			OK(doca_rdma_connection_disconnect(theirs));
		}
		CM_FAILS(EINVAL, rdma_destroy_id(client));
	}
	side_close(&side);
	side_close(&other);
}

/* A DOCA client at a server without DOCA. */
static void plain_server(void)
{
	struct doca_rdma_addr *addr;
	struct taken request;

	open_side(&other, "mlx5_1", 1);
	addr = connect_side(&other, SERVER);
	request = TAKE(channel, CONNECT_REQUEST);
	CHECK(request.conn.responder_resources > 0 && request.conn.initiator_depth > 0);
	CM_OK(rdma_accept(request.id, NULL));
	UNTIL(&other, other.established == 1);
	TAKE(channel, ESTABLISHED);
	CM_OK(rdma_disconnect(request.id));
	UNTIL(&other, other.disconnections == 1);
	TAKE(channel, DISCONNECTED);
	CM_OK(rdma_destroy_id(request.id));
	OK(doca_rdma_connect_to_addr(other.rdma, addr, (union doca_data){0}));
	request = TAKE(channel, CONNECT_REQUEST);
	CM_OK(rdma_reject(request.id, "no", 2));
	UNTIL(&other, other.failures == 1);
	CM_OK(rdma_destroy_id(request.id));
	side_close(&other);
	OK(doca_rdma_addr_destroy(addr));
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "client") == 0) {
		client_peer();
		return check_summary();
	}
	channel = rdma_create_event_channel();
	listener = listener_at(channel, "0.0.0.0", PORT);
	conversation();
	order();
	failures();
	held_event();
	plain_client();
	plain_server();
	lent_client();
	CM_OK(rdma_destroy_id(listener));
	CHECK(!readable(channel, 0));
	rdma_destroy_event_channel(channel);
	return check_summary();
}
