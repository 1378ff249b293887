/*
 * The functions of librdmacm one by one: addresses, ports, options, identifiers without a channel, what needs verbs, and
 * arguments that are wrong. (Layouts are asserted where the library is compiled; this program reads fields by them.)
 */
#include <netdb.h>

#include <rdma/rdma_verbs.h>

#include "rdmacm.h"

#define SERVER "192.168.1.1"
#define PORT 14421

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static void fresh(void)
{
	if (id != NULL)
		CM_OK(rdma_destroy_id(id));
	id = NULL;
	CM_OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
}

static int bind_to(const char *text, uint16_t port)
{
	struct sockaddr_in addr = at(text, port);

	return rdma_bind_addr(id, (struct sockaddr *)&addr);
}

static int resolve(const char *from, const char *to)
{
	struct sockaddr_in source = at(from ? from : "0.0.0.0", 0), destination = at(to, PORT);

	return rdma_resolve_addr(id, from ? (struct sockaddr *)&source : NULL, (struct sockaddr *)&destination, 100);
}

static void addresses(void)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	struct sockaddr unknown = {.sa_family = AF_UNIX};
	struct rdma_cm_id *first, *other = NULL;
	struct taken taken;
	int yes = 1;

	fresh();
	CM_FAILS(EADDRNOTAVAIL, bind_to("192.168.77.1", PORT));
	/* A device of the other side. */
	CM_FAILS(EADDRNOTAVAIL, bind_to("192.168.1.2", PORT));
	CM_FAILS(EAFNOSUPPORT, rdma_bind_addr(id, &unknown));
	CM_OK(bind_to("192.168.2.1", PORT));
	CHECK(strcmp(id->verbs->device->name, "mlx5_1") == 0 && rdma_get_src_port(id) == htons(PORT));
	CM_FAILS(EINVAL, bind_to("192.168.2.1", PORT));
	first = id;
	id = NULL;
	/* The port is taken on this device, and so on all; on another device it is free. */
	fresh();
	CM_FAILS(EADDRINUSE, bind_to("192.168.2.1", PORT));
	CHECK(id->verbs == NULL);
	CM_FAILS(EADDRINUSE, bind_to("0.0.0.0", PORT));
	CM_OK(bind_to("192.168.1.1", PORT));
	fresh();
	/* Who shares ports may bind, and meets the other one when it listens. */
	CM_OK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
	CM_OK(bind_to("192.168.2.1", PORT));
	CM_FAILS(EADDRINUSE, rdma_listen(id, 1));
	CM_OK(rdma_destroy_id(first));
	CM_OK(rdma_listen(id, 1));
	CM_FAILS(EINVAL, rdma_listen(id, 1));
	fresh();
	/* IPv6, and any port. */
	CHECK(inet_pton(AF_INET6, "fe80::ff:fe3b:0", &v6.sin6_addr) == 1);
	CM_OK(rdma_bind_addr(id, (struct sockaddr *)&v6));
	CHECK(strcmp(id->verbs->device->name, "mlx5_0") == 0);
	CHECK(((struct sockaddr_in6 *)rdma_get_local_addr(id))->sin6_port == htons(PORT));
	fresh();
	CM_OK(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
	CM_OK(bind_to("0.0.0.0", 0));
	first = id;
	id = other;
	CM_OK(bind_to("0.0.0.0", 0));
	CHECK(rdma_get_src_port(first) != 0 && rdma_get_src_port(first) != rdma_get_src_port(id));
	CM_OK(rdma_destroy_id(first));

	fresh();
	CM_FAILS(EINVAL, rdma_resolve_route(id, 1));
	CM_FAILS(EINVAL, rdma_connect(id, NULL));
	CM_FAILS(EINVAL, rdma_resolve_addr(id, NULL, NULL, 1));
	CM_FAILS(EADDRNOTAVAIL, resolve("192.168.77.1", SERVER));
	CM_OK(resolve(NULL, "192.168.77.1"));
	taken = TAKE(channel, ADDR_ERROR);
	CHECK(taken.id == id && taken.status == -ETIMEDOUT);
	/* The nearest device, or the one that was asked for. */
	CM_OK(resolve(NULL, "192.168.2.2"));
	TAKE(channel, ADDR_RESOLVED);
	CHECK(strcmp(id->verbs->device->name, "mlx5_1") == 0);
	CM_FAILS(EINVAL, resolve(NULL, "192.168.2.2"));
	fresh();
	CM_OK(resolve("192.168.1.1", "192.168.2.2"));
	TAKE(channel, ADDR_RESOLVED);
	CHECK(strcmp(id->verbs->device->name, "mlx5_0") == 0 && rdma_get_src_port(id) != 0);
	fresh();
	CM_OK(bind_to("192.168.1.1", PORT));
	CM_FAILS(EINVAL, rdma_resolve_addr(id, NULL, (struct sockaddr *)&v6, 1));
	CM_OK(resolve(NULL, "192.168.2.1"));
	TAKE(channel, ADDR_RESOLVED);
	CHECK(rdma_get_src_port(id) == htons(PORT) && rdma_get_dst_port(id) == htons(PORT));
	fresh();
}

/* The device that a client came to, with one listener for all; and a listener for one device only. */
static void devices(void)
{
	static const struct {
		const char *address, *name;
	} ways[] = {{"192.168.1.1", "mlx5_0"}, {"192.168.2.1", "mlx5_1"}};
	struct rdma_cm_id *listener = listener_at(channel, "0.0.0.0", PORT), *client;
	struct ibv_context **list;
	struct taken taken;
	int count = 0;

	for (int i = 0; i < 2; i++) {
		struct sockaddr_in *own;

		client = client_to(channel, ways[i].address, PORT);
		CM_OK(rdma_connect(client, NULL));
		taken = TAKE(channel, CONNECT_REQUEST);
		own = (struct sockaddr_in *)rdma_get_local_addr(taken.id);
		CHECK(strcmp(taken.id->verbs->device->name, ways[i].name) == 0);
		CHECK(own->sin_addr.s_addr == at(ways[i].address, 0).sin_addr.s_addr);
		CM_OK(rdma_destroy_id(taken.id));
		TAKE(channel, REJECTED);
		CM_OK(rdma_destroy_id(client));
	}
	CM_OK(rdma_destroy_id(listener));
	listener = listener_at(channel, "192.168.1.1", PORT);
	client = client_to(channel, "192.168.2.1", PORT);
	CM_OK(rdma_connect(client, NULL));
	taken = TAKE(channel, REJECTED);
	CHECK(taken.status == 8);
	CM_OK(rdma_destroy_id(client));
	CM_OK(rdma_destroy_id(listener));

	list = rdma_get_devices(&count);
	CHECK(count == 2 && list != NULL && list[2] == NULL);
	CHECK(strcmp(list[0]->device->name, "mlx5_0") == 0 && strcmp(list[1]->device->name, "mlx5_1") == 0);
	CHECK(list[0]->device->node_type == IBV_NODE_CA && list[0]->num_comp_vectors > 0);
	rdma_free_devices(list);
	rdma_free_devices(NULL);
}

/* Bound to a port, not listening: a client is turned away. A client that gives up: the server hears of nobody. */
static void half_open(void)
{
	struct rdma_cm_id *listener, *client;
	struct taken request, taken;

	fresh();
	CM_OK(bind_to(SERVER, PORT));
	client = client_to(channel, SERVER, PORT);
	CM_OK(rdma_connect(client, NULL));
	taken = TAKE(channel, REJECTED);
	CHECK(taken.id == client && taken.status == 8);
	CM_OK(rdma_destroy_id(client));
	fresh();
	listener = listener_at(channel, SERVER, PORT);
	client = client_to(channel, SERVER, PORT);
	CM_OK(rdma_connect(client, NULL));
	request = TAKE(channel, CONNECT_REQUEST);
	CM_OK(rdma_destroy_id(client));
	CM_OK(rdma_accept(request.id, NULL));
	taken = TAKE(channel, UNREACHABLE);
	CHECK(taken.id == request.id && taken.status == -ETIMEDOUT);
	CM_OK(rdma_destroy_id(request.id));
	/* It leaves with the answer under way, or in its hands. */
	for (int answered = 0; answered < 2; answered++) {
		client = client_to(channel, SERVER, PORT);
		CM_OK(rdma_connect(client, NULL));
		request = TAKE(channel, CONNECT_REQUEST);
		CM_OK(rdma_accept(request.id, NULL));
		if (answered)
			TAKE(channel, CONNECT_RESPONSE);
		CM_OK(rdma_destroy_id(client));
		taken = TAKE(channel, REJECTED);
		CHECK(taken.id == request.id && taken.status == 28);
		CM_OK(rdma_destroy_id(request.id));
	}
	/* The active side may call rdma_accept to confirm. */
	client = client_to(channel, SERVER, PORT);
	CM_OK(rdma_connect(client, NULL));
	request = TAKE(channel, CONNECT_REQUEST);
	CM_OK(rdma_accept(request.id, NULL));
	TAKE(channel, CONNECT_RESPONSE);
	CM_OK(rdma_accept(client, NULL));
	TAKE(channel, ESTABLISHED);
	CM_OK(rdma_destroy_id(request.id));
	taken = TAKE(channel, DISCONNECTED);
	CHECK(taken.id == client);
	CM_OK(rdma_destroy_id(client));
	CM_OK(rdma_destroy_id(listener));
}

/* Without a channel, calls wait for their events. */

static void *serve(void *listener)
{
	struct rdma_cm_id *client = NULL;
	uint8_t word = 9;
	struct rdma_conn_param param = {.private_data = &word, .private_data_len = 1};

	CM_OK(rdma_get_request(listener, &client));
	CHECK(client->channel != NULL && client->channel != ((struct rdma_cm_id *)listener)->channel);
	CHECK(client->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(*(const uint8_t *)client->event->param.conn.private_data == 8);
	CM_OK(rdma_accept(client, &param));
	CHECK(client->event->event == RDMA_CM_EVENT_ESTABLISHED);
	CM_OK(rdma_disconnect(client));
	CM_OK(rdma_destroy_id(client));
	CM_OK(rdma_get_request(listener, &client));
	CM_OK(rdma_reject(client, NULL, 0));
	CM_OK(rdma_destroy_id(client));
	return NULL;
}

static void synchronous(void)
{
	struct sockaddr_in to = at(SERVER, PORT), nowhere = at("192.168.77.1", PORT);
	uint8_t word = 8;
	struct rdma_conn_param param = {.private_data = &word, .private_data_len = 1};
	struct rdma_cm_id *listener = listener_at(NULL, SERVER, PORT), *client = NULL;
	pthread_t server;

	fresh();
	CM_FAILS(EINVAL, rdma_get_request(id, &client));
	CHECK(pthread_create(&server, NULL, serve, listener) == 0);
	CM_OK(rdma_create_id(NULL, &client, NULL, RDMA_PS_TCP));
	CHECK(client->channel != NULL);
	CM_FAILS(ETIMEDOUT, rdma_resolve_addr(client, NULL, (struct sockaddr *)&nowhere, 1));
	CM_OK(rdma_resolve_addr(client, NULL, (struct sockaddr *)&to, 1));
	CHECK(client->event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	CM_OK(rdma_resolve_route(client, 1));
	CM_OK(rdma_connect(client, &param));
	CHECK(client->event->event == RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(*(const uint8_t *)client->event->param.conn.private_data == 9);
	CM_OK(rdma_establish(client));
	CHECK(readable(client->channel, PATIENCE_MS));
	CM_OK(rdma_destroy_id(client));
	CM_OK(rdma_create_id(NULL, &client, NULL, RDMA_PS_TCP));
	CM_OK(rdma_resolve_addr(client, NULL, (struct sockaddr *)&to, 1));
	CM_OK(rdma_resolve_route(client, 1));
	CM_FAILS(ECONNREFUSED, rdma_connect(client, &param));
	pthread_join(server, NULL);
	CM_OK(rdma_destroy_id(client));
	/* To a channel, and from then on as if it had been there from the start. */
	CM_OK(rdma_migrate_id(listener, channel));
	client = client_to(channel, SERVER, PORT);
	CM_OK(rdma_connect(client, NULL));
	CM_OK(rdma_destroy_id(TAKE(channel, CONNECT_REQUEST).id));
	TAKE(channel, REJECTED);
	CM_OK(rdma_destroy_id(client));
	CM_OK(rdma_destroy_id(listener));
}

static void names(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *found = NULL;
	struct sockaddr_in source = at("192.168.2.1", 0);

	CHECK(rdma_getaddrinfo(SERVER, "4420", NULL, &found) == 0);
	CHECK(found->ai_family == AF_INET && found->ai_dst_len == sizeof(struct sockaddr_in) && found->ai_src_addr == NULL);
	CHECK(((struct sockaddr_in *)found->ai_dst_addr)->sin_port == htons(4420) && found->ai_next == NULL);
	CHECK(found->ai_port_space == RDMA_PS_TCP && found->ai_qp_type == IBV_QPT_RC);
	fresh();
	CM_OK(rdma_resolve_addr(id, NULL, found->ai_dst_addr, 1));
	TAKE(channel, ADDR_RESOLVED);
	rdma_freeaddrinfo(found);
	CHECK(rdma_getaddrinfo(NULL, "4420", &hints, &found) == 0);
	CHECK(found->ai_dst_addr == NULL && found->ai_src_addr != NULL && found->ai_src_len > 0);
	rdma_freeaddrinfo(found);
	hints = (struct rdma_addrinfo){.ai_flags = RAI_NUMERICHOST, .ai_src_addr = (struct sockaddr *)&source,
				       .ai_src_len = sizeof(source)};
	CHECK(rdma_getaddrinfo("fe80::ff:fe3b:0", "1", &hints, &found) == 0);
	CHECK(found->ai_family == AF_INET && found->ai_dst_len == sizeof(struct sockaddr_in6));
	CHECK(((struct sockaddr_in *)found->ai_src_addr)->sin_addr.s_addr == source.sin_addr.s_addr);
	rdma_freeaddrinfo(found);
	CHECK(rdma_getaddrinfo("not a number", "1", &hints, &found) == EAI_NONAME);
	CM_FAILS(EINVAL, rdma_getaddrinfo(NULL, NULL, NULL, &found));
	CM_FAILS(EINVAL, rdma_getaddrinfo(SERVER, NULL, NULL, NULL));
	rdma_freeaddrinfo(NULL);
}

static void options(void)
{
	uint8_t tos = 3;
	int on = 1;

	fresh();
	CM_OK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	CM_OK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &tos, sizeof(tos)));
	CM_OK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)));
	CM_FAILS(EINVAL, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, sizeof(on)));
	CM_FAILS(EINVAL, rdma_set_option(id, RDMA_OPTION_ID, 77, &on, sizeof(on)));
	CM_FAILS(EINVAL, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1));
	CM_FAILS(ENOSYS, rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &on, sizeof(on)));
	CHECK(strcmp(rdma_event_str(RDMA_CM_EVENT_DISCONNECTED), "RDMA_CM_EVENT_DISCONNECTED") == 0);
	CHECK(strcmp(rdma_event_str((enum rdma_cm_event_type)99), "UNKNOWN EVENT") == 0);
}

/* What needs verbs says so. */
static void verbs(void)
{
	struct rdma_cm_id *made = NULL;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr qp_attr;
	struct ibv_ece ece = {0};
	struct sockaddr_in group = at("239.0.0.1", 0);
	int mask = 0;

	fresh();
	CM_FAILS(ENOSYS, rdma_create_qp(id, NULL, &attr));
	CM_FAILS(ENOSYS, rdma_create_qp_ex(id, NULL));
	CM_FAILS(ENOSYS, rdma_create_srq(id, NULL, NULL));
	CM_FAILS(ENOSYS, rdma_create_srq_ex(id, NULL));
	CM_FAILS(ENOSYS, rdma_create_ep(&made, NULL, NULL, &attr));
	CM_FAILS(ENOSYS, rdma_notify(id, IBV_EVENT_COMM_EST));
	CM_FAILS(ENOSYS, rdma_join_multicast(id, (struct sockaddr *)&group, NULL));
	CM_FAILS(ENOSYS, rdma_join_multicast_ex(id, NULL, NULL));
	CM_FAILS(ENOSYS, rdma_leave_multicast(id, (struct sockaddr *)&group));
	CM_FAILS(ENOSYS, rdma_init_qp_attr(id, &qp_attr, &mask));
	CM_FAILS(ENOSYS, rdma_reject_ece(id, NULL, 0));
	CM_FAILS(ENOSYS, rdma_set_local_ece(id, &ece));
	CM_FAILS(ENOSYS, rdma_get_remote_ece(id, &ece));
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_ep(id);
	CHECK(made == NULL && id->qp == NULL);
	CM_FAILS(ENOSYS, rdma_create_id(channel, &made, NULL, RDMA_PS_UDP));
	CM_FAILS(ENOSYS, rdma_create_id(channel, &made, NULL, RDMA_PS_IPOIB));
}

/* NULL, and what is none of the library's. */
static void wrong(void)
{
	struct rdma_event_channel not_a_channel = {.fd = -1};
	struct rdma_cm_id not_an_id, *made = NULL;
	struct rdma_cm_event *event = NULL, not_an_event;
	struct rdma_cm_id *ids[] = {NULL, &not_an_id};
	struct sockaddr_in addr = at(SERVER, PORT);

	memset(&not_an_id, 0, sizeof(not_an_id));
	memset(&not_an_event, 0, sizeof(not_an_event));
	fresh();
	CM_FAILS(EINVAL, rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP));
	CM_FAILS(EINVAL, rdma_create_id(&not_a_channel, &made, NULL, RDMA_PS_TCP));
	CM_FAILS(EINVAL, rdma_create_id(channel, &made, NULL, (enum rdma_port_space)1));
	CM_FAILS(EINVAL, rdma_get_cm_event(NULL, &event));
	CM_FAILS(EINVAL, rdma_get_cm_event(&not_a_channel, &event));
	CM_FAILS(EINVAL, rdma_get_cm_event(channel, NULL));
	CM_FAILS(EINVAL, rdma_ack_cm_event(NULL));
	CM_FAILS(EINVAL, rdma_ack_cm_event(&not_an_event));
	CM_FAILS(EINVAL, rdma_migrate_id(id, &not_a_channel));
	rdma_destroy_event_channel(NULL);
	rdma_destroy_event_channel(&not_a_channel);
	for (int i = 0; i < 2; i++) {
		CM_FAILS(EINVAL, rdma_destroy_id(ids[i]));
		CM_FAILS(EINVAL, rdma_bind_addr(ids[i], (struct sockaddr *)&addr));
		CM_FAILS(EINVAL, rdma_resolve_addr(ids[i], NULL, (struct sockaddr *)&addr, 1));
		CM_FAILS(EINVAL, rdma_resolve_route(ids[i], 1));
		CM_FAILS(EINVAL, rdma_listen(ids[i], 1));
		CM_FAILS(EINVAL, rdma_connect(ids[i], NULL));
		CM_FAILS(EINVAL, rdma_accept(ids[i], NULL));
		CM_FAILS(EINVAL, rdma_reject(ids[i], NULL, 0));
		CM_FAILS(EINVAL, rdma_establish(ids[i]));
		CM_FAILS(EINVAL, rdma_disconnect(ids[i]));
		CM_FAILS(EINVAL, rdma_migrate_id(ids[i], channel));
		CM_FAILS(EINVAL, rdma_get_request(ids[i], &made));
		CM_FAILS(EINVAL, rdma_set_option(ids[i], RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, "", 1));
		CHECK(rdma_get_src_port(ids[i]) == 0 && rdma_get_dst_port(ids[i]) == 0);
	}
	CM_FAILS(EINVAL, rdma_bind_addr(id, NULL));
	CHECK(made == NULL && event == NULL);
}

int main(void)
{
	channel = rdma_create_event_channel();
	addresses();
	devices();
	half_open();
	synchronous();
	names();
	options();
	verbs();
	wrong();
	CM_OK(rdma_destroy_id(id));
	CHECK(!readable(channel, 0));
	rdma_destroy_event_channel(channel);
	return check_summary();
}
