/*
 * librdmacm without DOCA: a server and a client in two processes, what their events carry, and what an event channel's
 * descriptor tells.
 */
#include "rdmacm.h"

#define SERVER "192.168.1.1"
#define PORT 14420

static struct rdma_event_channel *channel;

static void fill(uint8_t *data, size_t len, uint8_t first)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(first + i);
}

static int filled(const uint8_t *data, size_t len, uint8_t first)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != (uint8_t)(first + i))
			return 0;
	return 1;
}

static int all_zero(const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != 0)
			return 0;
	return 1;
}

/* Accepted, with private data both ways; rejected, with private data; and the client leaves. */

static void server_peer(void)
{
	struct rdma_cm_id *listener = NULL;
	struct sockaddr_in any = at("0.0.0.0", PORT);
	uint8_t data[197];
	struct rdma_conn_param param = {.private_data = data, .private_data_len = 197, .responder_resources = 3,
					.initiator_depth = 4};
	struct taken taken, ended;
	struct sockaddr_in *from;
	uint16_t port = 0;

	channel = rdma_create_event_channel();
	CM_OK(rdma_create_id(channel, &listener, &port, RDMA_PS_TCP));
	CHECK(listener->channel == channel && listener->context == &port && listener->ps == RDMA_PS_TCP);
	CM_FAILS(EINVAL, rdma_listen(listener, 1));
	CM_OK(rdma_bind_addr(listener, (struct sockaddr *)&any));
	CHECK(listener->verbs == NULL && rdma_get_src_port(listener) == htons(PORT));
	CM_FAILS(EINVAL, rdma_bind_addr(listener, (struct sockaddr *)&any));
	CM_OK(rdma_listen(listener, 1));
	tell_word(PEER_SOCKET, 1);

	taken = TAKE(channel, CONNECT_REQUEST);
	CHECK(taken.id != listener && taken.listener == listener && taken.status == 0);
	CHECK(taken.id->channel == channel && taken.id->context == &port);
	CHECK(strcmp(taken.id->verbs->device->name, "mlx5_0") == 0 && taken.id->port_num == 1);
	CHECK(taken.conn.private_data_len == 56 && filled(taken.data, 20, 100) && all_zero(taken.data + 20, 36));
	CHECK(taken.conn.responder_resources == 7 && taken.conn.initiator_depth == 5);
	CHECK(taken.conn.retry_count == 6 && taken.conn.rnr_retry_count == 2 && taken.conn.qp_num == 4711);
	from = (struct sockaddr_in *)rdma_get_peer_addr(taken.id);
	CHECK(from->sin_addr.s_addr == at(SERVER, 0).sin_addr.s_addr);
	CHECK(rdma_get_src_port(taken.id) == htons(PORT));
	tell_word(PEER_SOCKET, rdma_get_dst_port(taken.id));
	fill(data, sizeof(data), 7);
	CM_FAILS(EINVAL, rdma_establish(taken.id));
	CM_FAILS(EINVAL, rdma_disconnect(taken.id));
	CM_FAILS(EINVAL, rdma_accept(taken.id, &param));
	param.private_data_len = 196;
	CM_OK(rdma_accept(taken.id, &param));
	CM_FAILS(EINVAL, rdma_accept(taken.id, &param));
	CM_FAILS(EINVAL, rdma_reject(taken.id, NULL, 0));
	ended = TAKE(channel, ESTABLISHED);
	CHECK(ended.id == taken.id && ended.status == 0 && ended.listener == NULL);
	ended = TAKE(channel, DISCONNECTED);
	CHECK(ended.id == taken.id);
	CM_OK(rdma_disconnect(taken.id));
	CM_FAILS(EINVAL, rdma_disconnect(taken.id));
	CM_OK(rdma_destroy_id(taken.id));

	taken = TAKE(channel, CONNECT_REQUEST);
	CM_FAILS(EINVAL, rdma_reject(taken.id, data, 149));
	CM_OK(rdma_reject(taken.id, data, 9));
	CM_OK(rdma_destroy_id(taken.id));
	/* The next one is destroyed unanswered, the one after with its listener before anybody has seen it. */
	taken = TAKE(channel, CONNECT_REQUEST);
	CM_OK(rdma_destroy_id(taken.id));
	CHECK(hear_word(PEER_SOCKET) == 2);
	CHECK(readable(channel, PATIENCE_MS));
	CM_OK(rdma_destroy_id(listener));
	tell_word(PEER_SOCKET, 3);
	rdma_destroy_event_channel(channel);
}

static void conversation(void)
{
	struct peer peer = peer_start("server");
	struct sockaddr_in *own;
	struct rdma_cm_id *id;
	uint8_t data[57];
	struct rdma_conn_param param = {.private_data = data, .private_data_len = 57, .responder_resources = 5,
					.initiator_depth = 7, .retry_count = 6, .rnr_retry_count = 2, .qp_num = 4711};
	struct taken taken;

	channel = rdma_create_event_channel();
	hear_word(peer.socket);
	id = client_to(channel, SERVER, PORT);
	own = (struct sockaddr_in *)rdma_get_local_addr(id);
	CHECK(strcmp(id->verbs->device->name, "mlx5_0") == 0 && own->sin_addr.s_addr == at(SERVER, 0).sin_addr.s_addr);
	CHECK(rdma_get_dst_port(id) == htons(PORT) && rdma_get_src_port(id) != 0);
	CHECK(id->route.addr.addr.ibaddr.dgid.raw[10] == 0xff && id->route.addr.addr.ibaddr.dgid.raw[15] == 1);
	fill(data, sizeof(data), 100);
	CM_FAILS(EINVAL, rdma_connect(id, &param));
	param.private_data = NULL;
	CM_FAILS(EINVAL, rdma_connect(id, &param));
	param.private_data = data;
	param.private_data_len = 20;
	CM_OK(rdma_connect(id, &param));
	CM_FAILS(EINVAL, rdma_connect(id, &param));
	CHECK(hear_word(peer.socket) == rdma_get_src_port(id));
	taken = TAKE(channel, CONNECT_RESPONSE);
	CHECK(taken.id == id && taken.conn.private_data_len == 196 && filled(taken.data, 196, 7));
	CHECK(taken.conn.responder_resources == 4 && taken.conn.initiator_depth == 3);
	CM_OK(rdma_establish(id));
	CM_FAILS(EINVAL, rdma_establish(id));
	CM_OK(rdma_disconnect(id));
	taken = TAKE(channel, DISCONNECTED);
	CHECK(taken.id == id);
	CM_FAILS(EINVAL, rdma_disconnect(id));
	CM_OK(rdma_destroy_id(id));

	id = client_to(channel, SERVER, PORT);
	CM_OK(rdma_connect(id, NULL));
	taken = TAKE(channel, REJECTED);
	CHECK(taken.status == 28 && taken.conn.private_data_len == 148);
	CHECK(filled(taken.data, 9, 7) && all_zero(taken.data + 9, 139));
	CM_OK(rdma_destroy_id(id));
	id = client_to(channel, SERVER, PORT);
	CM_OK(rdma_connect(id, NULL));
	taken = TAKE(channel, REJECTED);
	CHECK(taken.status == 28 && all_zero(taken.data, 148));
	CM_OK(rdma_destroy_id(id));
	id = client_to(channel, SERVER, PORT);
	CM_OK(rdma_connect(id, NULL));
	tell_word(peer.socket, 2);
	taken = TAKE(channel, REJECTED);
	CM_OK(rdma_destroy_id(id));
	CHECK(hear_word(peer.socket) == 3);
	/* Nobody listens there any more. */
	id = client_to(channel, SERVER, PORT);
	CM_OK(rdma_connect(id, NULL));
	taken = TAKE(channel, REJECTED);
	CHECK(taken.id == id && taken.status == 8);
	CM_OK(rdma_destroy_id(id));
	CHECK(!readable(channel, 0));
	rdma_destroy_event_channel(channel);
	peer_finish(&peer);
}

/* The other process dies: an established client, a client that waits, and a server that was asked. */

static void mortal_client_peer(void)
{
	struct rdma_cm_id *id;
	uint64_t port = hear_word(PEER_SOCKET);

	channel = rdma_create_event_channel();
	id = client_to(channel, SERVER, (uint16_t)port);
	CM_OK(rdma_connect(id, NULL));
	if (hear_word(PEER_SOCKET) == 2) {
		TAKE(channel, CONNECT_RESPONSE);
		CM_OK(rdma_establish(id));
		hear_word(PEER_SOCKET);
	}
	hear_word(PEER_SOCKET);
}

static void mortal_server_peer(void)
{
	channel = rdma_create_event_channel();
	listener_at(channel, SERVER, PORT);
	tell_word(PEER_SOCKET, 1);
	CHECK(readable(channel, PATIENCE_MS));
	tell_word(PEER_SOCKET, 2);
	hear_word(PEER_SOCKET);
}

static void deaths(void)
{
	struct peer peer = peer_start("mortal client");
	struct rdma_cm_id *listener, *client;
	struct taken taken, ended;

	channel = rdma_create_event_channel();
	listener = listener_at(channel, "0.0.0.0", 0);
	CHECK(rdma_get_src_port(listener) != 0);
	tell_word(peer.socket, ntohs(rdma_get_src_port(listener)));
	taken = TAKE(channel, CONNECT_REQUEST);
	CM_OK(rdma_accept(taken.id, NULL));
	tell_word(peer.socket, 2);
	TAKE(channel, ESTABLISHED);
	CHECK(!readable(channel, 0));
	peer_kill(&peer);
	ended = TAKE(channel, DISCONNECTED);
	CHECK(ended.id == taken.id);
	/* A death is told once. */
	CHECK(!readable(channel, 0));
	CM_OK(rdma_disconnect(taken.id));
	CM_OK(rdma_destroy_id(taken.id));

	peer = peer_start("mortal client");
	tell_word(peer.socket, ntohs(rdma_get_src_port(listener)));
	taken = TAKE(channel, CONNECT_REQUEST);
	peer_kill(&peer);
	ended = TAKE(channel, REJECTED);
	CHECK(ended.id == taken.id && ended.status == 4);
	CM_FAILS(EINVAL, rdma_accept(taken.id, NULL));
	CM_OK(rdma_destroy_id(taken.id));
	/* Accepted, and dead before it could confirm. */
	peer = peer_start("mortal client");
	tell_word(peer.socket, ntohs(rdma_get_src_port(listener)));
	taken = TAKE(channel, CONNECT_REQUEST);
	CM_OK(rdma_accept(taken.id, NULL));
	peer_kill(&peer);
	ended = TAKE(channel, UNREACHABLE);
	CHECK(ended.id == taken.id && ended.status == -ETIMEDOUT);
	CM_OK(rdma_destroy_id(taken.id));
	CM_OK(rdma_destroy_id(listener));

	peer = peer_start("mortal server");
	hear_word(peer.socket);
	client = client_to(channel, SERVER, PORT);
	CM_OK(rdma_connect(client, NULL));
	CHECK(hear_word(peer.socket) == 2);
	peer_kill(&peer);
	ended = TAKE(channel, UNREACHABLE);
	CHECK(ended.id == client && ended.status == -ETIMEDOUT);
	CM_OK(rdma_destroy_id(client));
	rdma_destroy_event_channel(channel);
}

/* What the descriptor tells: readable exactly while there is an event; O_NONBLOCK decides whether taking one waits. */

static void *take_one(void *got)
{
	struct rdma_cm_event *event = NULL;

	if (rdma_get_cm_event(channel, &event) == 0)
		*(struct rdma_cm_event **)got = event;
	return NULL;
}

static void descriptor(void)
{
	struct rdma_event_channel *clients = rdma_create_event_channel();
	struct rdma_cm_event *event = NULL;
	struct rdma_cm_id *listener, *id[2];
	pthread_t waiter;
	int flags;

	channel = rdma_create_event_channel();
	flags = fcntl(channel->fd, F_GETFL);
	CHECK(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0);
	CHECK(!readable(channel, 0));
	CM_FAILS(EAGAIN, rdma_get_cm_event(channel, &event));
	listener = listener_at(channel, SERVER, PORT);
	for (int i = 0; i < 2; i++) {
		id[i] = client_to(clients, SERVER, PORT);
		CM_OK(rdma_connect(id[i], NULL));
	}
	for (int i = 0; i < 2; i++) {
		struct taken taken;

		CHECK(readable(channel, 0) && readable(channel, 0));
		taken = TAKE(channel, CONNECT_REQUEST);
		CM_OK(rdma_reject(taken.id, NULL, 0));
		CM_OK(rdma_destroy_id(taken.id));
	}
	CHECK(!readable(channel, 0));
	CM_FAILS(EAGAIN, rdma_get_cm_event(channel, &event));
	CHECK(fcntl(channel->fd, F_SETFL, flags) == 0);
	for (int i = 0; i < 2; i++) {
		TAKE(clients, REJECTED);
		CM_OK(rdma_destroy_id(id[i]));
	}
	/* A thread that waits is woken. */
	CHECK(pthread_create(&waiter, NULL, take_one, &event) == 0);
	id[0] = client_to(clients, SERVER, PORT);
	CM_OK(rdma_connect(id[0], NULL));
	pthread_join(waiter, NULL);
	if (event == NULL)
		give_up("no event for the thread");
	CHECK(event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	CM_OK(rdma_destroy_id(event->id));
	CM_OK(rdma_ack_cm_event(event));
	CM_FAILS(EINVAL, rdma_ack_cm_event(event));
	CM_OK(rdma_destroy_id(id[0]));
	CM_OK(rdma_destroy_id(listener));
	rdma_destroy_event_channel(clients);
	rdma_destroy_event_channel(channel);
}

/* An identifier is destroyed when its events are acknowledged, not before. */

static volatile int destroyed;

static void *destroy(void *id)
{
	CM_OK(rdma_destroy_id(id));
	destroyed = 1;
	return NULL;
}

static void acknowledgement(void)
{
	struct sockaddr_in addr = at(SERVER, PORT);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id = NULL;
	struct timespec moment = {.tv_nsec = 50000000};
	pthread_t destroyer;

	channel = rdma_create_event_channel();
	CM_OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CM_OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000));
	event = take_only(channel, RDMA_CM_EVENT_ADDR_RESOLVED, __FILE__, __LINE__);
	CHECK(pthread_create(&destroyer, NULL, destroy, id) == 0);
	/* Nothing tells that a thread waits; one that does not would be through by now. */
	nanosleep(&moment, NULL);
	CHECK(!destroyed);
	CM_OK(rdma_ack_cm_event(event));
	pthread_join(destroyer, NULL);
	CHECK(destroyed);
	CM_FAILS(EINVAL, rdma_destroy_id(id));
	/* Events that nobody took go with their identifier. */
	CM_OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CM_OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000));
	CHECK(readable(channel, 0));
	CM_OK(rdma_destroy_id(id));
	CHECK(!readable(channel, 0));
	rdma_destroy_event_channel(channel);
}

/* An identifier that moves takes its events along, and its letters find it, also after the old channel has ended. */
static void migration(void)
{
	struct rdma_event_channel *servers = rdma_create_event_channel(), *to = rdma_create_event_channel();
	struct rdma_cm_id *listener = listener_at(servers, SERVER, PORT), *id;
	struct sockaddr_in addr = at(SERVER, PORT);
	struct taken request, taken;

	channel = rdma_create_event_channel();
	id = client_to(channel, SERVER, PORT);
	CM_OK(rdma_connect(id, NULL));
	request = TAKE(servers, CONNECT_REQUEST);
	CM_OK(rdma_migrate_id(id, to));
	CHECK(id->channel == to);
	CM_OK(rdma_accept(request.id, NULL));
	taken = TAKE(to, CONNECT_RESPONSE);
	CHECK(taken.id == id);
	rdma_destroy_event_channel(channel);
	CM_OK(rdma_establish(id));
	TAKE(servers, ESTABLISHED);
	CM_OK(rdma_disconnect(request.id));
	TAKE(servers, DISCONNECTED);
	taken = TAKE(to, DISCONNECTED);
	CHECK(taken.id == id);
	/* One that waits in the queue moves too. */
	CM_OK(rdma_destroy_id(id));
	id = client_to(to, SERVER, PORT);
	CM_OK(rdma_connect(id, NULL));
	taken = TAKE(servers, CONNECT_REQUEST);
	CM_FAILS(EINVAL, rdma_disconnect(request.id));
	CM_OK(rdma_reject(taken.id, NULL, 0));
	CHECK(readable(to, PATIENCE_MS));
	channel = rdma_create_event_channel();
	CM_OK(rdma_migrate_id(id, channel));
	TAKE(channel, REJECTED);
	CHECK(!readable(to, 0));
	CM_OK(rdma_destroy_id(id));
	CM_OK(rdma_create_id(to, &id, NULL, RDMA_PS_TCP));
	CM_OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000));
	CM_OK(rdma_migrate_id(id, channel));
	CHECK(!readable(to, 0));
	CHECK(TAKE(channel, ADDR_RESOLVED).id == id);
	CM_OK(rdma_destroy_id(taken.id));
	CM_OK(rdma_destroy_id(request.id));
	CM_OK(rdma_destroy_id(listener));
	CM_OK(rdma_destroy_id(id));
	rdma_destroy_event_channel(servers);
	rdma_destroy_event_channel(to);
	rdma_destroy_event_channel(channel);
}

static const struct {
	const char *role;
	void (*run)(void);
} roles[] = {
	{"server", server_peer},
	{"mortal client", mortal_client_peer},
	{"mortal server", mortal_server_peer},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(roles) / sizeof(*roles); i++) {
		if (strcmp(argv[1], roles[i].role) == 0) {
			roles[i].run();
			return check_summary();
		}
	}
	conversation();
	deaths();
	descriptor();
	acknowledgement();
	migration();
	return check_summary();
}
