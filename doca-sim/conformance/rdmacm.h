/*
 * What the programs about librdmacm share: events that are waited for with a deadline, and both ways to a connection.
 */
#ifndef RDMACM_H
#define RDMACM_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>

#include <rdma/rdma_cma.h>

#include "check.h"
#include "peer.h"

/* A call of librdmacm that must succeed, and one that must fail with this errno. */
#define CM_OK(call) CHECK((call) == 0)
#define CM_FAILS(code, call) (errno = 0, CHECK((call) == -1 && errno == (code)))

/* An event that was taken and acknowledged. */
struct taken {
	struct rdma_cm_id *id, *listener;
	int status;
	struct rdma_conn_param conn;
	uint8_t data[256];
};

static inline int readable(struct rdma_event_channel *channel, int timeout)
{
	struct pollfd waited = {.fd = channel->fd, .events = POLLIN};

	return poll(&waited, 1, timeout) == 1;
}

/* The next event, not acknowledged; must be of this kind. */
static inline struct rdma_cm_event *take_only(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted,
					      const char *file, int line)
{
	struct rdma_cm_event *event = NULL;
	char text[128];

	if (!readable(channel, PATIENCE_MS))
		give_up(rdma_event_str(wanted));
	if (rdma_get_cm_event(channel, &event) != 0)
		give_up("rdma_get_cm_event");
	snprintf(text, sizeof(text), "%s comes instead of %s", rdma_event_str(event->event), rdma_event_str(wanted));
	check_result(event->event == wanted, file, line, text);
	return event;
}

static inline struct taken take_at(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted, const char *file,
				   int line)
{
	struct rdma_cm_event *event = take_only(channel, wanted, file, line);
	struct taken taken = {.id = event->id, .listener = event->listen_id, .status = event->status,
			      .conn = event->param.conn};

	if (taken.conn.private_data_len > 0)
		memcpy(taken.data, taken.conn.private_data, taken.conn.private_data_len);
	CM_OK(rdma_ack_cm_event(event));
	return taken;
}

#define TAKE(channel, kind) take_at(channel, RDMA_CM_EVENT_##kind, __FILE__, __LINE__)

static inline struct sockaddr_in at(const char *text, uint16_t port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};

	CHECK(inet_pton(AF_INET, text, &addr.sin_addr) == 1);
	return addr;
}

/* A listener on a channel; port 0 is any. */
static inline struct rdma_cm_id *listener_at(struct rdma_event_channel *channel, const char *text, uint16_t port)
{
	struct sockaddr_in addr = at(text, port);
	struct rdma_cm_id *id = NULL;

	CM_OK(rdma_create_id(channel, &id, channel, RDMA_PS_TCP));
	CM_OK(rdma_bind_addr(id, (struct sockaddr *)&addr));
	CM_OK(rdma_listen(id, 8));
	return id;
}

/* A client that knows the way. */
static inline struct rdma_cm_id *client_to(struct rdma_event_channel *channel, const char *text, uint16_t port)
{
	struct sockaddr_in addr = at(text, port);
	struct rdma_cm_id *id = NULL;
	struct taken taken;

	CM_OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CM_OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000));
	taken = TAKE(channel, ADDR_RESOLVED);
	CHECK(taken.id == id && taken.status == 0 && id->verbs != NULL);
	CM_OK(rdma_resolve_route(id, 1000));
	taken = TAKE(channel, ROUTE_RESOLVED);
	CHECK(taken.id == id && taken.status == 0);
	return id;
}

#endif
