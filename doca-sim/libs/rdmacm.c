/*
 * librdmacm.so.1 of the software SDK: connection management, passed on to the engine. It is compiled against the real
 * header, so every prototype and every layout is checked here.
 */
#include <stddef.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define SIZE(structure, bytes) _Static_assert(sizeof(struct structure) == (bytes), "struct " #structure);
#define LAYOUT(structure, field, offset) \
	_Static_assert(offsetof(struct structure, field) == (offset), #structure "." #field);
#include "rdmacm_layout.h"

/* One call of the engine. */
#define PASS(result, name, parameters, arguments) \
	result sim_##name parameters;             \
	result name parameters                    \
	{                                         \
		return sim_##name arguments;      \
	}
/* The same for functions that give nothing. */
#define PASS_VOID(name, parameters, arguments) \
	void sim_##name parameters;            \
	void name parameters                   \
	{                                      \
		sim_##name arguments;          \
	}
/* Verbs: ENOSYS and a line of the log that names the function. */
#define REFUSE(name, parameters)            \
	int name parameters                 \
	{                                   \
		return sim_rdma_refused(#name); \
	}
#define REFUSE_VOID(name, parameters)     \
	void name parameters              \
	{                                 \
		sim_rdma_refused(#name);  \
	}

int sim_rdma_refused(const char *name);

PASS(struct rdma_event_channel *, rdma_create_event_channel, (void), ())
PASS_VOID(rdma_destroy_event_channel, (struct rdma_event_channel *channel), (channel))
PASS(int, rdma_create_id,
     (struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps),
     (channel, id, context, ps))
PASS(int, rdma_destroy_id, (struct rdma_cm_id *id), (id))
PASS(int, rdma_bind_addr, (struct rdma_cm_id *id, struct sockaddr *addr), (id, addr))
PASS(int, rdma_resolve_addr,
     (struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms), (id, from, to, timeout_ms))
PASS(int, rdma_resolve_route, (struct rdma_cm_id *id, int timeout_ms), (id, timeout_ms))
PASS(int, rdma_connect, (struct rdma_cm_id *id, struct rdma_conn_param *param), (id, param))
PASS(int, rdma_establish, (struct rdma_cm_id *id), (id))
PASS(int, rdma_listen, (struct rdma_cm_id *id, int backlog), (id, backlog))
PASS(int, rdma_get_request, (struct rdma_cm_id *listener, struct rdma_cm_id **id), (listener, id))
PASS(int, rdma_accept, (struct rdma_cm_id *id, struct rdma_conn_param *param), (id, param))
PASS(int, rdma_reject, (struct rdma_cm_id *id, const void *data, uint8_t len), (id, data, len))
PASS(int, rdma_disconnect, (struct rdma_cm_id *id), (id))
PASS(int, rdma_get_cm_event, (struct rdma_event_channel *channel, struct rdma_cm_event **event), (channel, event))
PASS(int, rdma_ack_cm_event, (struct rdma_cm_event *event), (event))
PASS(__be16, rdma_get_src_port, (struct rdma_cm_id *id), (id))
PASS(__be16, rdma_get_dst_port, (struct rdma_cm_id *id), (id))
PASS(int, rdma_set_option, (struct rdma_cm_id *id, int level, int name, void *value, size_t len),
     (id, level, name, value, len))
PASS(int, rdma_migrate_id, (struct rdma_cm_id *id, struct rdma_event_channel *channel), (id, channel))
PASS(struct ibv_context **, rdma_get_devices, (int *count), (count))
PASS_VOID(rdma_free_devices, (struct ibv_context **list), (list))
PASS(int, rdma_getaddrinfo,
     (const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **found),
     (node, service, hints, found))
PASS_VOID(rdma_freeaddrinfo, (struct rdma_addrinfo *info), (info))

REFUSE(rdma_create_ep, (struct rdma_cm_id **id, struct rdma_addrinfo *info, struct ibv_pd *pd,
			struct ibv_qp_init_attr *attr))
REFUSE_VOID(rdma_destroy_ep, (struct rdma_cm_id *id))
REFUSE(rdma_create_qp, (struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr))
REFUSE(rdma_create_qp_ex, (struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr))
REFUSE_VOID(rdma_destroy_qp, (struct rdma_cm_id *id))
REFUSE(rdma_create_srq, (struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr))
REFUSE(rdma_create_srq_ex, (struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr))
REFUSE_VOID(rdma_destroy_srq, (struct rdma_cm_id *id))
REFUSE(rdma_notify, (struct rdma_cm_id *id, enum ibv_event_type event))
REFUSE(rdma_join_multicast, (struct rdma_cm_id *id, struct sockaddr *addr, void *context))
REFUSE(rdma_join_multicast_ex, (struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context))
REFUSE(rdma_leave_multicast, (struct rdma_cm_id *id, struct sockaddr *addr))
REFUSE(rdma_init_qp_attr, (struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask))
REFUSE(rdma_reject_ece, (struct rdma_cm_id *id, const void *data, uint8_t len))
REFUSE(rdma_set_local_ece, (struct rdma_cm_id *id, struct ibv_ece *ece))
REFUSE(rdma_get_remote_ece, (struct rdma_cm_id *id, struct ibv_ece *ece))

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	if ((size_t)event >= sizeof(names) / sizeof(*names))
		return "UNKNOWN EVENT";
	return names[event];
}
