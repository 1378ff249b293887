/*
 * Producers and consumers of Comch between two processes: ids and their events, data and immediate data, what a producer
 * is told when it cannot send, the order of teardown, threads, and the death of the peer.
 */
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_mmap.h>
#include <pthread.h>
#include <stdatomic.h>

#include "comch.h"

#define NAME "fast"
#define BUFS 8
#define SIZE 4096
#define IMM 16

/* Memory, and a consumer or a producer over it with its own engine. */
struct fast {
	struct doca_pe *pe;
	struct doca_mmap *map;
	struct doca_buf_inventory *inventory;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	struct doca_ctx *ctx;
	uint8_t *memory;
	uint32_t id;
	uint64_t done, failed, in_order, len, producer_id, imm_len;
	uint8_t imm[IMM];
	doca_error_t status;
	int states[LAST_STATES], num_states;
	int reposts;
};

static void fast_state(const union doca_data data, struct doca_ctx *ctx, enum doca_ctx_states previous,
		       enum doca_ctx_states next)
{
	struct fast *fast = data.ptr;

	(void)ctx;
	if (fast->num_states < LAST_STATES)
		fast->states[fast->num_states++] = (int)previous * 4 + (int)next;
}

static void received(struct doca_comch_consumer_task_post_recv *task, union doca_data data, union doca_data user)
{
	struct doca_buf *buf = doca_comch_consumer_task_post_recv_get_buf(task);
	struct fast *fast = user.ptr;
	uint8_t expected[SIZE];
	uint32_t nth = 0;
	size_t len = 0;
	void *bytes = NULL;

	(void)data;
	OK(doca_buf_get_data(buf, &bytes));
	OK(doca_buf_get_data_len(buf, &len));
	if (len >= 4)
		memcpy(&nth, bytes, 4);
	pattern(expected, (uint32_t)len, nth);
	fast->in_order += memcmp(bytes, expected, len) == 0 && (len < 4 || nth == fast->done);
	fast->len = len;
	fast->producer_id = doca_comch_consumer_task_post_recv_get_producer_id(task);
	fast->imm_len = doca_comch_consumer_task_post_recv_get_imm_data_len(task);
	CHECK((doca_comch_consumer_task_post_recv_get_imm_data(task) != NULL) == (fast->imm_len > 0));
	if (fast->imm_len > 0)
		memcpy(fast->imm, doca_comch_consumer_task_post_recv_get_imm_data(task), fast->imm_len);
	fast->done++;
	OK(doca_buf_reset_data_len(buf));
	if (fast->reposts) {
		OK(doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task)));
		return;
	}
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
	OK(doca_buf_dec_refcount(buf, NULL));
}

static void not_received(struct doca_comch_consumer_task_post_recv *task, union doca_data data, union doca_data user)
{
	struct fast *fast = user.ptr;

	(void)data;
	fast->failed++;
	fast->status = doca_task_get_status(doca_comch_consumer_task_post_recv_as_task(task));
	OK(doca_buf_dec_refcount(doca_comch_consumer_task_post_recv_get_buf(task), NULL));
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
}

static void produced(struct doca_comch_producer_task_send *task, union doca_data data, union doca_data user)
{
	struct fast *fast = user.ptr;
	struct doca_buf *buf = (struct doca_buf *)doca_comch_producer_task_send_get_buf(task);

	(void)data;
	fast->done++;
	doca_task_free(doca_comch_producer_task_send_as_task(task));
	if (buf != NULL)
		OK(doca_buf_dec_refcount(buf, NULL));
}

static void not_produced(struct doca_comch_producer_task_send *task, union doca_data data, union doca_data user)
{
	struct fast *fast = user.ptr;
	struct doca_buf *buf = (struct doca_buf *)doca_comch_producer_task_send_get_buf(task);

	(void)data;
	fast->failed++;
	fast->status = doca_task_get_status(doca_comch_producer_task_send_as_task(task));
	doca_task_free(doca_comch_producer_task_send_as_task(task));
	if (buf != NULL)
		OK(doca_buf_dec_refcount(buf, NULL));
}

static void fast_memory(struct fast *fast, struct doca_dev *dev, uint32_t access)
{
	*fast = (struct fast){.memory = calloc(BUFS, SIZE)};
	OK(doca_pe_create(&fast->pe));
	OK(doca_mmap_create(&fast->map));
	OK(doca_mmap_add_dev(fast->map, dev));
	OK(doca_mmap_set_permissions(fast->map, access));
	OK(doca_mmap_set_memrange(fast->map, fast->memory, BUFS * SIZE));
	OK(doca_mmap_start(fast->map));
	OK(doca_buf_inventory_create(4 * BUFS, &fast->inventory));
	OK(doca_buf_inventory_start(fast->inventory));
}

static void fast_connect(struct fast *fast)
{
	OK(doca_ctx_set_user_data(fast->ctx, (union doca_data){.ptr = fast}));
	OK(doca_ctx_set_state_changed_cb(fast->ctx, fast_state));
	OK(doca_pe_connect_ctx(fast->pe, fast->ctx));
}

/* Not started yet. */
static void consumer_create(struct fast *fast, struct end *end)
{
	fast_memory(fast, end->dev, DOCA_ACCESS_FLAG_PCI_READ_WRITE);
	OK(doca_comch_consumer_create(end->connection, fast->map, &fast->consumer));
	fast->ctx = doca_comch_consumer_as_ctx(fast->consumer);
	OK(doca_comch_consumer_get_id(fast->consumer, &fast->id));
	OK(doca_comch_consumer_set_imm_data_len(fast->consumer, IMM));
	OK(doca_comch_consumer_task_post_recv_set_conf(fast->consumer, received, not_received, BUFS));
	fast_connect(fast);
}

static void producer_create(struct fast *fast, struct end *end)
{
	fast_memory(fast, end->dev, DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_comch_producer_create(end->connection, &fast->producer));
	fast->ctx = doca_comch_producer_as_ctx(fast->producer);
	OK(doca_comch_producer_get_id(fast->producer, &fast->id));
	OK(doca_comch_producer_task_send_set_conf(fast->producer, produced, not_produced, BUFS));
	fast_connect(fast);
	OK(doca_ctx_start(fast->ctx));
}

static int fast_is(const struct fast *fast, enum doca_ctx_states wanted)
{
	enum doca_ctx_states state;

	return doca_ctx_get_state(fast->ctx, &state) == DOCA_SUCCESS && state == wanted;
}

/* Both engines, as a program with one thread does. */
#define BOTH(end, fast, condition)                                                              \
	do {                                                                                    \
		uint64_t until_ = now_ms() + PATIENCE_MS;                                       \
		int fine_;                                                                      \
		while (!(fine_ = (condition)) && now_ms() < until_)                             \
			if (!(doca_pe_progress((fast)->pe) | doca_pe_progress((end)->pe)))      \
				sched_yield();                                                  \
		check_result(fine_, __FILE__, __LINE__, "in time: " #condition);                \
	} while (0)

static void fast_stop(struct end *end, struct fast *fast)
{
	doca_error_t stopped = doca_ctx_stop(fast->ctx);

	CHECK(stopped == DOCA_SUCCESS || stopped == DOCA_ERROR_IN_PROGRESS);
	BOTH(end, fast, fast_is(fast, DOCA_CTX_STATE_IDLE));
}

static void fast_close(struct end *end, struct fast *fast)
{
	if (!fast_is(fast, DOCA_CTX_STATE_IDLE))
		fast_stop(end, fast);
	if (fast->consumer != NULL)
		OK(doca_comch_consumer_destroy(fast->consumer));
	if (fast->producer != NULL)
		OK(doca_comch_producer_destroy(fast->producer));
	OK(doca_pe_destroy(fast->pe));
	OK(doca_mmap_destroy(fast->map));
	OK(doca_buf_inventory_destroy(fast->inventory));
	free(fast->memory);
}

static doca_error_t post(struct fast *fast, uint32_t slot, uint32_t room)
{
	struct doca_comch_consumer_task_post_recv *task = NULL;
	struct doca_buf *buf = NULL;
	doca_error_t result;

	OK(doca_buf_inventory_buf_get_by_addr(fast->inventory, fast->map, fast->memory + slot % BUFS * SIZE, room, &buf));
	result = doca_comch_consumer_task_post_recv_alloc_init(fast->consumer, buf, &task);
	if (result != DOCA_SUCCESS) {
		OK(doca_buf_dec_refcount(buf, NULL));
		return result;
	}
	CHECK(doca_comch_consumer_task_post_recv_get_buf(task) == buf);
	CHECK(doca_comch_consumer_task_post_recv_get_producer_id(task) == 0);
	return doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task));
}

/* The nth message of so many bytes, 0 for none, with immediate data. */
static doca_error_t produce(struct fast *fast, uint32_t to, uint32_t nth, uint32_t len, uint32_t imm_len)
{
	struct doca_comch_producer_task_send *task = NULL;
	uint8_t *bytes = fast->memory + nth % BUFS * SIZE, imm[64];
	struct doca_buf *buf = NULL;
	doca_error_t result;

	memset(imm, (int)nth, sizeof(imm));
	pattern(bytes, len, nth);
	if (len > 0)
		OK(doca_buf_inventory_buf_get_by_data(fast->inventory, fast->map, bytes, len, &buf));
	result = doca_comch_producer_task_send_alloc_init(fast->producer, buf, imm_len ? imm : NULL, imm_len, to, &task);
	if (result == DOCA_SUCCESS) {
		result = doca_task_submit(doca_comch_producer_task_send_as_task(task));
		if (result == DOCA_SUCCESS)
			return result;
		doca_task_free(doca_comch_producer_task_send_as_task(task));
	}
	if (buf != NULL)
		OK(doca_buf_dec_refcount(buf, NULL));
	return result;
}

/* The server's half of each test. */
#define OPEN MORE
#define POST (MORE + 1)
#define REPOST (MORE + 2)
#define SHUT (MORE + 3)
#define BEGIN (MORE + 4)
#define TAKE (MORE + 5)
#define LEAVE (MORE + 6)

static struct fast served;

static doca_error_t more(struct end *end, const struct ask *ask)
{
	doca_error_t result = DOCA_SUCCESS;

	switch (ask->order) {
	case OPEN: /* A consumer, until it runs. */
		consumer_create(&served, end);
		FAILS(IN_PROGRESS, doca_ctx_start(served.ctx));
		BOTH(end, &served, fast_is(&served, DOCA_CTX_STATE_RUNNING));
		end->seen.value = served.id;
		return DOCA_SUCCESS;
	case POST:
		while (doca_pe_progress(served.pe))
			;
		for (uint32_t i = 0; i < ask->value && result == DOCA_SUCCESS; i++)
			result = post(&served, i, (uint32_t)ask->len);
		return result;
	case REPOST: /* Until so many have come. */
		served.reposts = 1;
		BOTH(end, &served, served.done >= ask->value);
		served.reposts = 0;
		end->seen.value = served.in_order;
		return DOCA_SUCCESS;
	case SHUT:
		CHECK(doca_comch_server_disconnect(end->server, end->connection) == DOCA_ERROR_IN_USE);
		FAILS(IN_USE, doca_ctx_stop(end->ctx));
		fast_stop(end, &served);
		end->seen.value = served.failed;
		CHECK(served.failed == 0 || served.status == DOCA_ERROR_IO_FAILED);
		fast_close(end, &served);
		return checks_failed ? DOCA_ERROR_UNEXPECTED : DOCA_SUCCESS;
	case BEGIN: /* A consumer whose own engine nobody progresses yet. */
		consumer_create(&served, end);
		FAILS(IN_PROGRESS, doca_ctx_start(served.ctx));
		return DOCA_SUCCESS;
	case TAKE: /* Buffers, and what fills them, while nobody progresses the control path. */
		BOTH(end, &served, fast_is(&served, DOCA_CTX_STATE_RUNNING));
		for (uint32_t i = 0; i < ask->value; i++)
			OK(post(&served, i, SIZE));
		for (uint64_t until = now_ms() + PATIENCE_MS; served.done < ask->value && now_ms() < until;)
			if (!doca_pe_progress(served.pe))
				sched_yield();
		end->seen.value = served.in_order;
		return DOCA_SUCCESS;
	case LEAVE: /* The consumer goes, and a message follows, before the control path is progressed. */
		OK(doca_ctx_stop(served.ctx));
		fast_close(end, &served);
		return end_try(end, "gone", 4);
	default:
		return DOCA_ERROR_UNEXPECTED;
	}
}

static void client_open(struct end *end)
{
	client_create(end, NAME);
	client_start(end);
	CHECK(end_is(end, DOCA_CTX_STATE_RUNNING));
}

/* What can be said without a peer's consumer. */
static void arguments(struct end *end)
{
	const struct doca_devinfo *info = doca_dev_as_devinfo(end->dev);
	struct doca_comch_consumer *consumer = NULL, *second = NULL;
	struct doca_comch_producer *producer = NULL;
	struct doca_comch_producer_task_send *task = NULL;
	struct doca_comch_consumer_task_post_recv *receive = NULL;
	struct doca_mmap *stopped;
	struct doca_comch_producer *producers[256];
	struct doca_comch_consumer *consumers[256];
	struct fast fast, foreign;
	struct doca_buf *buf;
	uint32_t most, id, before;
	uint8_t imm[64] = {7};

	OK(doca_mmap_create(&stopped));
	FAILS(INVALID_VALUE, doca_comch_consumer_create(end->connection, stopped, &consumer));
	OK(doca_mmap_destroy(stopped));
	FAILS(INVALID_VALUE, doca_comch_consumer_destroy(NULL));
	FAILS(INVALID_VALUE, doca_comch_producer_destroy(NULL));
	FAILS(INVALID_VALUE, doca_comch_producer_create(NULL, &producer));
	FAILS(INVALID_VALUE, doca_comch_producer_create(end->connection, NULL));

	consumer_create(&fast, end);
	FAILS(INVALID_VALUE, doca_comch_consumer_create(NULL, fast.map, &consumer));
	FAILS(INVALID_VALUE, doca_comch_consumer_create(end->connection, NULL, &consumer));
	FAILS(INVALID_VALUE, doca_comch_consumer_create(end->connection, fast.map, NULL));
	OK(doca_comch_consumer_create(end->connection, fast.map, &second));
	OK(doca_comch_consumer_get_id(second, &id));
	CHECK(fast.id != 0 && id != 0 && id != fast.id);
	OK(doca_comch_consumer_destroy(second));
	OK(doca_comch_consumer_cap_get_max_imm_data_len(info, &most));
	FAILS(INVALID_VALUE, doca_comch_consumer_set_imm_data_len(fast.consumer, most + 1));
	OK(doca_comch_consumer_get_imm_data_len(fast.consumer, &before));
	CHECK(before == IMM);
	OK(doca_comch_consumer_cap_get_max_num_tasks(info, &most));
	FAILS(INVALID_VALUE, doca_comch_consumer_task_post_recv_set_conf(fast.consumer, received, not_received, most + 1));
	FAILS(INVALID_VALUE, doca_comch_consumer_task_post_recv_set_conf(fast.consumer, received, not_received, 0));
	FAILS(INVALID_VALUE, doca_comch_consumer_task_post_recv_set_conf(fast.consumer, NULL, not_received, 1));
	FAILS(BAD_STATE, post(&fast, 0, SIZE));
	FAILS(IN_PROGRESS, doca_ctx_start(fast.ctx));
	FAILS(BAD_STATE, post(&fast, 0, SIZE));
	/* Without the control path it does not start. */
	for (int i = 0; i < 1000; i++)
		doca_pe_progress(fast.pe);
	CHECK(fast_is(&fast, DOCA_CTX_STATE_STARTING));
	BOTH(end, &fast, fast_is(&fast, DOCA_CTX_STATE_RUNNING));
	CHECK(fast.num_states == 2 && fast.states[0] == 1 && fast.states[1] == 1 * 4 + 2);
	FAILS(BAD_STATE, doca_comch_consumer_set_imm_data_len(fast.consumer, 1));
	FAILS(IN_USE, doca_comch_consumer_destroy(fast.consumer));
	FAILS(INVALID_VALUE, doca_comch_consumer_task_post_recv_alloc_init(fast.consumer, NULL, &receive));

	/* Buffers of another map, and one without the right. */
	fast_memory(&foreign, end->dev, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_buf_inventory_buf_get_by_addr(foreign.inventory, foreign.map, foreign.memory, 64, &buf));
	FAILS(INVALID_VALUE, doca_comch_consumer_task_post_recv_alloc_init(fast.consumer, buf, &receive));
	OK(doca_comch_consumer_create(end->connection, foreign.map, &second));
	foreign.ctx = doca_comch_consumer_as_ctx(second);
	OK(doca_comch_consumer_task_post_recv_set_conf(second, received, not_received, 1));
	fast_connect(&foreign);
	FAILS(IN_PROGRESS, doca_ctx_start(foreign.ctx));
	BOTH(end, &foreign, fast_is(&foreign, DOCA_CTX_STATE_RUNNING));
	FAILS(INVALID_VALUE, doca_comch_consumer_task_post_recv_alloc_init(second, buf, &receive));
	OK(doca_buf_dec_refcount(buf, NULL));
	foreign.consumer = second;
	fast_close(end, &foreign);

	/* As many as the device says, of either kind, and no more. */
	OK(doca_comch_producer_cap_get_max_producers(info, &most));
	for (uint32_t i = 0; i < most; i++)
		OK(doca_comch_producer_create(end->connection, &producers[i]));
	FAILS(NO_MEMORY, doca_comch_producer_create(end->connection, &producer));
	for (uint32_t i = 0; i < most; i++)
		OK(doca_comch_producer_destroy(producers[i]));
	OK(doca_comch_consumer_cap_get_max_consumers(info, &most));
	for (uint32_t i = 1; i < most; i++)
		OK(doca_comch_consumer_create(end->connection, fast.map, &consumers[i]));
	FAILS(NO_MEMORY, doca_comch_consumer_create(end->connection, fast.map, &second));
	for (uint32_t i = 1; i < most; i++)
		OK(doca_comch_consumer_destroy(consumers[i]));

	/* All tasks are out; then they come back unfilled. */
	for (uint32_t i = 0; i < BUFS; i++)
		OK(post(&fast, i, SIZE));
	FAILS(NO_MEMORY, post(&fast, 0, SIZE));
	FAILS(IN_USE, doca_ctx_stop(end->ctx));
	fast_close(end, &fast);
	CHECK(fast.failed == BUFS && fast.status == DOCA_ERROR_IO_FAILED);

	producer_create(&fast, end);
	CHECK(fast.num_states == 1 && fast.states[0] == 2 && fast.id != 0);
	FAILS(IN_USE, doca_comch_producer_destroy(fast.producer));
	FAILS(BAD_STATE, doca_comch_producer_task_send_set_conf(fast.producer, produced, not_produced, 1));
	FAILS(INVALID_VALUE, doca_comch_producer_task_send_alloc_init(fast.producer, NULL, NULL, 0, 1, &task));
	FAILS(INVALID_VALUE, doca_comch_producer_task_send_alloc_init(fast.producer, NULL, NULL, 4, 1, &task));
	FAILS(INVALID_VALUE, doca_comch_producer_task_send_alloc_init(fast.producer, NULL, imm, 4, 1, NULL));
	OK(doca_comch_consumer_cap_get_max_imm_data_len(info, &most));
	FAILS(INVALID_VALUE, doca_comch_producer_task_send_alloc_init(fast.producer, NULL, imm, most + 1, 1, &task));
	OK(doca_comch_producer_task_send_alloc_init(fast.producer, NULL, imm, 4, 99, &task));
	CHECK(doca_comch_producer_task_send_get_consumer_id(task) == 99);
	CHECK(doca_comch_producer_task_send_get_imm_data_len(task) == 4);
	CHECK(doca_comch_producer_task_send_get_imm_data(task)[0] == 7);
	imm[0] = 8;
	doca_comch_producer_task_send_set_imm_data(task, imm, 3);
	CHECK(doca_comch_producer_task_send_get_imm_data_len(task) == 3);
	CHECK(doca_comch_producer_task_send_get_imm_data(task)[0] == 8);
	doca_comch_producer_task_send_set_consumer_id(task, 98);
	CHECK(doca_comch_producer_task_send_get_consumer_id(task) == 98);
	/* The peer has no such consumer. */
	FAILS(NOT_FOUND, doca_task_submit(doca_comch_producer_task_send_as_task(task)));
	doca_task_free(doca_comch_producer_task_send_as_task(task));
	fast_close(end, &fast);
}

static void data(struct end *end, struct peer *peer)
{
	struct seen server;
	struct fast fast;
	uint32_t to, sent;

	producer_create(&fast, end);
	to = (uint32_t)order(end, peer, OPEN, 0, 0).value;
	UNTIL(end, end->seen.consumers == 1);
	CHECK(end->seen.consumer == to);
	/* No buffer is posted yet. */
	FAILS(AGAIN, produce(&fast, to, 0, 100, 0));
	CHECK(order(end, peer, POST, 2, SIZE).result == DOCA_SUCCESS);
	/* The credit comes with the control path. */
	BOTH(end, &fast, produce(&fast, to, 0, 100, 0) != DOCA_ERROR_AGAIN);
	FAILS(INVALID_VALUE, produce(&fast, to, 1, 100, IMM + 1));
	BOTH(end, &fast, produce(&fast, to, 1, SIZE, IMM) != DOCA_ERROR_AGAIN);
	FAILS(AGAIN, produce(&fast, to, 2, 100, 0));
	BOTH(end, &fast, fast.done == 2);

	/* More than there is room for; the buffer stays for the next, which has immediate data only. */
	order(end, peer, POST, 1, 64);
	BOTH(end, &fast, produce(&fast, to, 2, 65, 0) != DOCA_ERROR_AGAIN);
	BOTH(end, &fast, fast.failed == 1);
	CHECK(fast.status == DOCA_ERROR_IO_FAILED);
	OK(produce(&fast, to, 2, 0, IMM));
	BOTH(end, &fast, fast.done == 3);

	/* Many, into buffers that are posted again and again. */
	CHECK(order(end, peer, POST, BUFS, SIZE).result == DOCA_SUCCESS);
	{
		struct ask ask = {.order = REPOST, .value = 2003};
		struct pollfd waited = {.fd = peer->socket, .events = POLLIN};

		tell(peer->socket, &ask, sizeof(ask));
		for (sent = 3; sent < 2003;) {
			doca_error_t result = produce(&fast, to, sent, 4 + sent % (SIZE - 4), 0);

			CHECK(result == DOCA_SUCCESS || result == DOCA_ERROR_AGAIN || result == DOCA_ERROR_NO_MEMORY);
			sent += result == DOCA_SUCCESS;
			if (!(doca_pe_progress(fast.pe) | doca_pe_progress(end->pe)))
				sched_yield();
			/* Its memory is reused by the message that comes BUFS later. */
			BOTH(end, &fast, fast.done + BUFS > sent + 1);
		}
		while (poll(&waited, 1, 0) != 1)
			doca_pe_progress(end->pe);
		hear(peer->socket, &server, sizeof(server));
	}
	CHECK(server.value == 2003);
	BOTH(end, &fast, fast.done == 2003);

	/* It goes: the flush is no harm, its id is dead. */
	server = order(end, peer, SHUT, 0, 0);
	CHECK(server.result == DOCA_SUCCESS);
	UNTIL(end, end->seen.expired == 1);
	FAILS(NOT_FOUND, produce(&fast, to, 0, 100, 0));
	fast_close(end, &fast);
}

/* Sends one after the other while nobody progresses this side's control path; the server's answer. */
static struct seen produce_alone(struct fast *fast, struct peer *peer, uint32_t to, uint32_t count)
{
	struct ask ask = {.order = TAKE, .value = count};
	struct seen seen = {.connected = 0};

	tell(peer->socket, &ask, sizeof(ask));
	for (uint64_t until = now_ms() + PATIENCE_MS; fast->done < count && now_ms() < until;) {
		uint32_t sent = (uint32_t)fast->done;
		doca_error_t result = produce(fast, to, sent, 100, 0);

		CHECK(result == DOCA_SUCCESS || result == DOCA_ERROR_AGAIN);
		while (result == DOCA_SUCCESS && fast->done == sent && now_ms() < until)
			doca_pe_progress(fast->pe);
		sched_yield();
	}
	hear(peer->socket, &seen, sizeof(seen));
	return seen;
}

/*
 * What needs which engine: a consumer's coming and going is told by the control paths alone, in order with messages, and
 * data flow without them.
 */
static void engines(struct end *end, struct peer *peer)
{
	struct seen before = end->seen;
	struct ask ask = {.order = LEAVE};
	struct fast fast;
	uint32_t to;

	producer_create(&fast, end);
	CHECK(order(end, peer, BEGIN, 0, 0).result == DOCA_SUCCESS);
	UNTIL(end, end->seen.consumers == before.consumers + 1);
	to = (uint32_t)end->seen.consumer;
	FAILS(AGAIN, produce(&fast, to, 0, 100, 0));
	CHECK(produce_alone(&fast, peer, to, 3).value == 3);

	/* Something else has to be told first, so that what comes may overtake what went. */
	OK(end_try(end, "x", 1));
	tell(peer->socket, &ask, sizeof(ask));
	hear(peer->socket, &before, sizeof(before));
	CHECK(before.result == DOCA_SUCCESS);
	before = end->seen;
	UNTIL(end, end->seen.messages == before.messages + 1);
	CHECK(end->seen.expired == before.expired + 1);
	fast_close(end, &fast);
}

/* A producer and its engine on another thread than the control path, which goes on progressing. */
struct worker {
	struct fast fast;
	uint32_t to;
	_Atomic int done;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	uint64_t until = now_ms() + PATIENCE_MS;
	uint32_t sent = 0;

	while (worker->fast.done < 5000 && now_ms() < until) {
		if (sent < 5000 && sent < worker->fast.done + BUFS &&
		    produce(&worker->fast, worker->to, sent, 64, 8) == DOCA_SUCCESS)
			sent++;
		if (!doca_pe_progress(worker->fast.pe))
			sched_yield();
	}
	atomic_store(&worker->done, 1);
	return NULL;
}

static void threads(struct end *end, struct peer *peer)
{
	struct pollfd waited = {.fd = peer->socket, .events = POLLIN};
	struct ask ask = {.order = REPOST, .value = 5000};
	struct worker worker;
	struct seen server;
	pthread_t thread;

	producer_create(&worker.fast, end);
	atomic_init(&worker.done, 0);
	worker.to = (uint32_t)order(end, peer, OPEN, 0, 0).value;
	order(end, peer, POST, BUFS, SIZE);
	tell(peer->socket, &ask, sizeof(ask));
	pthread_create(&thread, NULL, work, &worker);
	while (!atomic_load(&worker.done) || poll(&waited, 1, 0) != 1)
		if (!doca_pe_progress(end->pe))
			sched_yield();
	pthread_join(thread, NULL);
	hear(peer->socket, &server, sizeof(server));
	CHECK(server.value == 5000 && worker.fast.done == 5000);
	CHECK(order(end, peer, SHUT, 0, 0).result == DOCA_SUCCESS);
	fast_close(end, &worker.fast);
}

/* The consumer's process is killed: a send is in flight for a while, and then fails. */
static void death(struct end *end, struct peer *peer)
{
	struct fast fast, starting;
	uint32_t to;

	producer_create(&fast, end);
	to = (uint32_t)order(end, peer, OPEN, 0, 0).value;
	order(end, peer, POST, BUFS, SIZE);
	BOTH(end, &fast, produce(&fast, to, 0, 100, 0) != DOCA_ERROR_AGAIN);
	BOTH(end, &fast, fast.done == 1);
	peer_kill(peer);
	/* That it is dead is asked of the kernel now and then: some may still seem to go. */
	BOTH(end, &fast, fast.failed == 1 || (produce(&fast, to, 0, 100, 0), 0));
	CHECK(fast.status == DOCA_ERROR_CONNECTION_ABORTED || fast.status == DOCA_ERROR_IO_FAILED);

	/* A consumer cannot start any more, and the control path falls when it tries to send. */
	consumer_create(&starting, end);
	FAILS(IN_PROGRESS, doca_ctx_start(starting.ctx));
	UNTIL(end, end->seen.failed > 0 || (end_try(end, "x", 1), 0));
	UNTIL(end, end_is(end, DOCA_CTX_STATE_IDLE));
	BOTH(end, &starting, fast_is(&starting, DOCA_CTX_STATE_IDLE));
	FAILS(IN_USE, doca_comch_client_destroy(end->client));
	FAILS(NOT_CONNECTED, doca_ctx_start(starting.ctx));
	FAILS(NOT_CONNECTED, produce(&fast, to, 0, 100, 0));
	fast_close(end, &starting);
	fast_close(end, &fast);
	FAILS(BAD_STATE, doca_comch_producer_create(end->connection, &fast.producer));
	end_close(end);
}

int main(int argc, char **argv)
{
	struct peer peer;
	struct end end;

	(void)argv;
	if (argc > 1)
		return server_main(NAME, more);
	peer = server_start();
	client_open(&end);
	SEES(&end, &peer, seen.connected == 1);
	arguments(&end);
	data(&end, &peer);
	threads(&end, &peer);
	engines(&end, &peer);
	death(&end, &peer);
	return check_summary();
}
