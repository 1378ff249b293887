/*
 * A small initiator: one queue over one connection, on public functions only.
 */
#ifndef STA_INITIATOR_H
#define STA_INITIATOR_H

#include <doca_rdma_bridge.h>

#include "rdmacm.h"
#include "side.h"
#include "sta_wire.h"

/* Parts of the side's memory. */
#define CAPSULES 0
#define CAPSULE 4224
#define RESPONSES (48 * 1024)
#define DATA (12 * 1024)
#define DATA_LEN (32 * 1024)

#define INITIATOR_ACCESS \
	(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE)

struct queue {
	struct side side;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct doca_rdma_connection *connection;
	uint32_t key;
	uint16_t cid, depth;
	/* Commands answered, as the target must count them. */
	uint32_t consumed;
	/* Buffers of what is under way. */
	struct doca_buf *held[2 * TASKS];
	int num_held;
};

static inline void initiator_open(struct queue *queue, uint16_t qid, uint16_t depth)
{
	struct sockaddr_in from = at("192.168.2.1", 0), to = at(TARGET, PORT);
	uint8_t words[32] = {0};
	struct rdma_conn_param param = {.private_data = words, .private_data_len = sizeof(words),
					.responder_resources = 16, .retry_count = 7, .rnr_retry_count = 7};
	struct ibv_pd *pd = NULL;
	struct taken taken;

	*queue = (struct queue){.depth = depth};
	side_create(&queue->side, "mlx5_1", INITIATOR_ACCESS, INITIATOR_ACCESS);
	OK(doca_ctx_start(queue->side.ctx));
	/* Releases after 3.0 also have doca_mmap_get_mkey. */
	OK(doca_rdma_bridge_get_dev_pd(queue->side.dev, &pd));
	OK(doca_rdma_bridge_get_mmap_mkey_from_pd(queue->side.map, pd, &queue->key));
	put16(words + 2, qid);
	put16(words + 4, depth);
	put16(words + 6, (uint16_t)(depth - 1));
	queue->channel = rdma_create_event_channel();
	CM_OK(rdma_create_id(queue->channel, &queue->id, NULL, RDMA_PS_TCP));
	CM_OK(rdma_resolve_addr(queue->id, (struct sockaddr *)&from, (struct sockaddr *)&to, 1000));
	TAKE(queue->channel, ADDR_RESOLVED);
	CM_OK(rdma_resolve_route(queue->id, 1000));
	TAKE(queue->channel, ROUTE_RESOLVED);
	CM_OK(rdma_connect(queue->id, &param));
	taken = TAKE(queue->channel, CONNECT_RESPONSE);
	CHECK(get16(taken.data) == 0 && get16(taken.data + 2) == depth);
	OK(doca_rdma_bridge_prepare_connection(queue->side.rdma, queue->id, &queue->connection));
	OK(doca_rdma_bridge_established(queue->side.rdma, queue->connection));
}

/* A command without data, at a place of its own for each of a few at once. */
static inline uint8_t *command(struct queue *queue, uint8_t opcode, uint32_t nsid, int slot)
{
	uint8_t *capsule = (uint8_t *)queue->side.memory + CAPSULES + slot * CAPSULE;

	memset(capsule, 0, 64);
	capsule[0] = opcode;
	capsule[1] = 0x40;
	put16(capsule + 2, ++queue->cid);
	put32(capsule + 4, nsid);
	capsule[39] = SGL_KEYED;
	return capsule;
}

static inline void keyed(struct queue *queue, uint8_t *capsule, uint32_t offset, uint32_t len, uint8_t type)
{
	put64(capsule + 24, (uintptr_t)queue->side.memory + DATA + offset);
	put_number(capsule + 32, len, 3);
	put32(capsule + 35, queue->key);
	capsule[39] = type;
}

static inline void blocks(uint8_t *capsule, uint64_t lba, uint32_t count)
{
	put64(capsule + 40, lba);
	put16(capsule + 48, (uint16_t)(count - 1));
}

static inline void post(struct queue *queue, uint8_t *capsule, uint32_t len, int slot)
{
	struct doca_buf *in = side_room(&queue->side, RESPONSES + 64 * slot, 16);
	struct doca_buf *out = side_data(&queue->side, (size_t)((char *)capsule - queue->side.memory), len);

	queue->held[queue->num_held++] = in;
	queue->held[queue->num_held++] = out;
	side_receive(&queue->side, in, 1);
	side_send(&queue->side, queue->connection, out, 2);
}

/* Everything is answered. */
static inline void let_go(struct queue *queue)
{
	while (queue->num_held > 0)
		OK(doca_buf_dec_refcount(queue->held[--queue->num_held], NULL));
}

/* Sends a command and waits for its answer; gives the status. */
static inline uint16_t ask(struct queue *queue, uint8_t *capsule, uint32_t len)
{
	int before = queue->side.succeeded;
	uint8_t *response = (uint8_t *)queue->side.memory + RESPONSES;

	memset(response, 0xee, 16);
	post(queue, capsule, len, 0);
	UNTIL(&queue->side, queue->side.succeeded == before + 2 || queue->side.failed > 0);
	CHECK(queue->side.failed == 0);
	let_go(queue);
	queue->consumed++;
	CHECK(get16(response + 12) == get16(capsule + 2) && (response[14] & 1) == 0);
	CHECK(get16(response + 8) == queue->consumed % queue->depth);
	return get16(response + 14) >> 1;
}

static inline uint16_t ask_connect(struct queue *queue, uint16_t qid, int in_capsule)
{
	uint8_t *capsule = command(queue, NVME_FABRICS, 0, 0);
	uint8_t *data = in_capsule ? capsule + 64 : (uint8_t *)queue->side.memory + DATA;

	capsule[4] = FABRICS_CONNECT;
	put16(capsule + 42, qid);
	put16(capsule + 44, (uint16_t)(queue->depth - 1));
	memset(data, 0, 1024);
	put16(data + 16, qid == 0 ? 0xffff : 1);
	strcpy((char *)data + 256, NQN);
	if (in_capsule) {
		put32(capsule + 32, 1024);
		capsule[39] = SGL_IN_CAPSULE;
	} else {
		keyed(queue, capsule, 0, 1024, SGL_KEYED);
	}
	return ask(queue, capsule, in_capsule ? 64 + 1024 : 64);
}

static inline uint16_t ask_blocks(struct queue *queue, uint8_t opcode, uint64_t lba, uint32_t count)
{
	uint8_t *capsule = command(queue, opcode, 1, 0);

	keyed(queue, capsule, 0, count * 512, SGL_KEYED);
	blocks(capsule, lba, count);
	return ask(queue, capsule, 64);
}

static inline void initiator_close(struct queue *queue, int connected)
{
	if (connected)
		OK(doca_rdma_connection_disconnect(queue->connection));
	side_stop(&queue->side);
	let_go(queue);
	side_close(&queue->side);
	rdma_destroy_event_channel(queue->channel);
}

#endif
