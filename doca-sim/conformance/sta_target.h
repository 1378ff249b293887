/*
 * A small storage target: one subsystem, one back end with one queue, a disk of memory with a thread of its own, a listener,
 * and as much of a controller as the programs need. Control and IO context share an engine.
 */
#ifndef STA_TARGET_H
#define STA_TARGET_H

#include <stdatomic.h>

#include <doca_ctx.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <doca_sta.h>
#include <doca_sta_be.h>
#include <doca_sta_event.h>
#include <doca_sta_io.h>
#include <doca_sta_io_non_offload.h>
#include <doca_sta_io_qp.h>
#include <doca_sta_mem.h>
#include <doca_sta_stats.h>
#include <doca_sta_subsystem.h>
#include <doca_sta_task.h>

#include "rdmacm.h"
#include "sta_wire.h"

#define ENTRIES 16
#define BLOCK 512
#define BLOCKS 4096
#define QPS 32

/* The program's memory for the library: address for devices is address for the program. */

static int allocations, allocation_limit = -1;

static void *sta_alloc(size_t size, size_t align, uint64_t *phys)
{
	void *memory = NULL;

	if (allocation_limit >= 0 && allocations >= allocation_limit)
		return NULL;
	if (posix_memalign(&memory, align < 64 ? 64 : align, size) != 0)
		return NULL;
	memset(memory, 0, size);
	allocations++;
	if (phys != NULL)
		*phys = (uintptr_t)memory;
	return memory;
}

static void sta_free(void *memory)
{
	allocations--;
	free(memory);
}

static uint64_t sta_vtophys(const void *memory, uint32_t size)
{
	(void)size;
	return (uintptr_t)memory;
}

/* The disk: polls its doorbell, moves data by PRPs. */

struct disk {
	uint8_t *queues;
	struct doca_mmap *sq, *cq, *bells;
	uint8_t *blocks;
	uint32_t tail_seen, head, phase;
	atomic_int silent, failing, ending;
	pthread_t thread;
};

static inline _Atomic uint32_t *bell(struct disk *disk, int completions)
{
	return (_Atomic uint32_t *)(disk->queues + ENTRIES * 80 + (completions ? 4 : 0));
}

static inline void disk_move(struct disk *disk, const uint8_t *entry, uint64_t lba, uint32_t len)
{
	uint64_t prp1 = get64(entry + 24), prp2 = get64(entry + 32);

	for (uint32_t done = 0, page = 0; done < len; page++) {
		uint32_t step = len - done < 4096 ? len - done : 4096;
		uint64_t at = page == 0 ? prp1 : len <= 8192 ? prp2 : ((uint64_t *)(uintptr_t)prp2)[page - 1];
		uint8_t *mine = disk->blocks + lba * BLOCK + done;

		if (entry[0] == NVME_WRITE)
			memcpy(mine, (void *)(uintptr_t)at, step);
		else
			memcpy((void *)(uintptr_t)at, mine, step);
		done += step;
	}
}

static inline void disk_serve(struct disk *disk)
{
	const uint8_t *entry = disk->queues + disk->tail_seen * 64;
	uint64_t lba = get64(entry + 40), count = (uint64_t)get16(entry + 48) + 1;
	uint8_t *answer = disk->queues + ENTRIES * 64 + disk->head * 16;
	uint32_t status = 0;

	if (get32(entry + 4) != 7)
		status = 0x0b;
	else if (atomic_load(&disk->failing))
		status = 0x281;
	else if (lba >= BLOCKS || count > BLOCKS - lba)
		status = 0x80 | 0x4000;
	else
		disk_move(disk, entry, lba, (uint32_t)count * BLOCK);
	disk->tail_seen = (disk->tail_seen + 1) % ENTRIES;
	put32(answer, 0);
	put32(answer + 4, 0);
	put16(answer + 8, (uint16_t)disk->tail_seen);
	put16(answer + 10, 1);
	atomic_store_explicit((_Atomic uint32_t *)(answer + 12),
			      get16(entry + 2) | disk->phase << 16 | status << 17, memory_order_release);
	disk->head = (disk->head + 1) % ENTRIES;
	disk->phase ^= disk->head == 0;
}

static void *disk_run(void *argument)
{
	struct disk *disk = argument;
	struct timespec nap = {.tv_nsec = 50000};

	while (!atomic_load(&disk->ending)) {
		/* Never into a full queue. */
		if (!atomic_load(&disk->silent) &&
		    disk->tail_seen != atomic_load_explicit(bell(disk, 0), memory_order_acquire) &&
		    (disk->head + 1) % ENTRIES != atomic_load_explicit(bell(disk, 1), memory_order_acquire))
			disk_serve(disk);
		else
			nanosleep(&nap, NULL);
	}
	return NULL;
}

static struct doca_mmap *lend(struct doca_dev *dev, void *memory, size_t len)
{
	struct doca_mmap *map = NULL;

	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE));
	OK(doca_mmap_set_memrange(map, memory, len));
	OK(doca_mmap_start(map));
	return map;
}

static inline void disk_open(struct disk *disk, struct doca_dev *control)
{
	*disk = (struct disk){.blocks = calloc(BLOCKS, BLOCK), .phase = 1};
	if (posix_memalign((void **)&disk->queues, 4096, 4096) != 0)
		give_up("memory");
	memset(disk->queues, 0, 4096);
	disk->sq = lend(control, disk->queues, ENTRIES * 64);
	disk->cq = lend(control, disk->queues + ENTRIES * 64, ENTRIES * 16);
	disk->bells = lend(control, disk->queues + ENTRIES * 80, 64);
	CHECK(pthread_create(&disk->thread, NULL, disk_run, disk) == 0);
}

static inline void disk_close(struct disk *disk)
{
	atomic_store(&disk->ending, 1);
	pthread_join(disk->thread, NULL);
	OK(doca_mmap_destroy(disk->sq));
	OK(doca_mmap_destroy(disk->cq));
	OK(doca_mmap_destroy(disk->bells));
	free(disk->queues);
	free(disk->blocks);
}

/* The target. */

struct connection {
	struct doca_sta_qp_handle *qp;
	struct rdma_cm_id *id;
	uint16_t depth;
	int leaving;
};

struct target {
	struct doca_dev *dev, *second;
	struct doca_pe *pe;
	struct doca_sta *sta;
	struct doca_sta_io *io;
	struct doca_ctx *ctx, *io_ctx;
	struct disk disk;
	struct doca_sta_subs_handle *subsystem;
	struct doca_sta_be_handle *end;
	struct doca_sta_be_q_handle *queue;
	struct doca_sta_ns_handle *space;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct connection connections[QPS];
	int connects, commands, reads, transport_errors, timeouts, notices, finished, failed, destroyed, agains, unit_errors, fatal, disk_notices;
	uint32_t syndrome;
	doca_error_t failure;
	/* Commands that stay without an answer. */
	int hold, held;
};

static struct target target;

/* A command that is being handled: the answer must stay where it is until it is sent. */
struct handled {
	struct doca_sta_qp_handle *qp;
	uint8_t answer[16];
	uint8_t *payload;
	const uint8_t *command;
	union doca_data token;
};

static void task_over(struct doca_sta_producer_task_send *task, union doca_data data)
{
	target.finished++;
	free(data.ptr);
	doca_task_free(doca_sta_producer_send_task_as_task(task));
}

static void task_lost(struct doca_sta_producer_task_send *task, union doca_data data)
{
	target.failed++;
	target.failure = doca_task_get_status(doca_sta_producer_send_task_as_task(task));
	free(data.ptr);
	doca_task_free(doca_sta_producer_send_task_as_task(task));
}

static void submit(struct doca_sta_producer_task_send *task)
{
	doca_error_t result;

	do {
		result = doca_task_submit(doca_sta_producer_send_task_as_task(task));
		target.agains += result == DOCA_ERROR_AGAIN;
	} while (result == DOCA_ERROR_AGAIN);
	if (result != DOCA_SUCCESS) {
		union doca_data data = doca_task_get_user_data(doca_sta_producer_send_task_as_task(task));

		free(data.ptr);
		doca_task_free(doca_sta_producer_send_task_as_task(task));
	}
}

static void answer(struct handled *handled, uint16_t status, int with_data)
{
	struct doca_sta_producer_task_send *task = NULL;
	union doca_data data = {.ptr = handled};

	put16(handled->answer + 12, get16(handled->command + 2));
	put16(handled->answer + 14, (uint16_t)(status << 1));
	if (with_data)
		OK(doca_sta_io_task_non_offload_rdma_write_send_alloc_init(target.io, data, handled->qp,
									   handled->answer, handled->token, &task));
	else
		OK(doca_sta_io_task_non_offload_rdma_send_alloc_init(target.io, data, handled->qp, handled->answer,
								     handled->token, &task));
	if (task != NULL)
		submit(task);
}

static void connect_command(struct handled *handled)
{
	target.connects++;
	CHECK(strcmp((char *)handled->payload + 256, NQN) == 0);
	OK(doca_sta_io_qp_add_subsystem(target.io, target.subsystem, handled->qp));
	OK(doca_sta_io_qp_connect_set_sq_size(target.io, handled->qp, get16(handled->command + 44)));
	put16(handled->answer, 1);
	answer(handled, 0, 0);
}

static void data_read(struct doca_sta_producer_task_send *task, union doca_data data)
{
	target.reads++;
	doca_task_free(doca_sta_producer_send_task_as_task(task));
	connect_command(data.ptr);
}

/* Programs with a controller of their own answer other commands here; 0 leaves them to the target. */
static int (*target_other)(struct handled *handled);

static void command_came(struct doca_sta_qp_handle *qp, union doca_data data, const uint8_t *command, uint8_t *payload,
			 uint32_t payload_len, bool payload_valid, union doca_data token)
{
	struct handled *handled = calloc(1, sizeof(*handled));
	struct doca_sta_producer_task_send *task = NULL;

	CHECK(data.ptr == &target && payload != NULL);
	target.commands++;
	*handled = (struct handled){.qp = qp, .payload = payload, .command = command, .token = token};
	if (target.hold) {
		target.held++;
		free(handled);
		return;
	}
	if (command[0] == NVME_FABRICS && command[4] == FABRICS_CONNECT) {
		if (payload_valid) {
			CHECK(payload_len == 1024);
			connect_command(handled);
			return;
		}
		CHECK(payload_len >= 1024);
		OK(doca_sta_io_task_non_offload_rdma_read_alloc_init(target.io, (union doca_data){.ptr = handled}, qp,
								     token, &task));
		submit(task);
	} else if (target_other != NULL && target_other(handled)) {
		return;
	} else if (command[0] == NVME_IDENTIFY) {
		memset(payload, 0x1d, 4096);
		answer(handled, 0, 1);
	} else {
		answer(handled, command[0] == NVME_FLUSH ? 0 : 0x4001, 0);
	}
}

static void transport_failed(const struct doca_sta_event_transport_err *event, union doca_data data)
{
	const struct doca_sta_qp_handle *qp = NULL;
	uint32_t number = 9;

	CHECK(data.ptr == &target);
	OK(doca_sta_event_transport_err_get_qp_handle(event, &qp));
	OK(doca_sta_event_transport_err_get_operation(event, &number));
	CHECK(qp != NULL && number <= 3);
	OK(doca_sta_event_transport_err_get_vendor_syndrome(event, &number));
	OK(doca_sta_event_transport_err_get_syndrome(event, &target.syndrome));
	target.transport_errors++;
}

static void disk_silent(const struct doca_sta_event_be_timeout *event, union doca_data data)
{
	const struct doca_sta_be_q_handle *queue = NULL;
	const struct doca_sta_be_handle *end = NULL;

	CHECK(data.ptr == &target);
	OK(doca_sta_event_be_timeout_get_be_handle(event, &end));
	OK(doca_sta_event_be_timeout_get_be_queue_handle(event, &queue));
	CHECK(end == target.end && queue == target.queue);
	target.timeouts++;
}

static void unit_failed(const struct doca_sta_event_eu_err *event, union doca_data data)
{
	const struct doca_sta_eu_handle *unit = NULL;
	bool fatal = false;

	CHECK(data.ptr == &target);
	OK(doca_sta_event_eu_err_is_fatal_error(event, &fatal));
	OK(doca_sta_event_eu_err_get_eu_handle(event, &unit));
	CHECK(unit != NULL);
	target.unit_errors++;
	target.fatal += fatal;
}

#if AFTER_3_0
static void noticed(const struct doca_sta_event_cqe_notify *event, union doca_data data)
{
	enum doca_sta_cqe_notify_type type = DOCA_STA_CQE_NOTIF_NVME_OF_VALIDATION_ERR;
	const struct doca_sta_subs_handle *subsystem = NULL;
	const struct doca_sta_qp_handle *qp = NULL;
	uint16_t cid = 0, nsid = 0, location = 0;
	uint8_t cqe[16] = {0}, opcode = 0;
	uint64_t lba = 0;

	CHECK(data.ptr == &target);
	OK(doca_sta_event_cqe_notify_get_cqe_notify_type(event, &type));
	OK(doca_sta_event_cqe_notify_get_cqe(event, cqe));
	OK(doca_sta_event_cqe_notify_get_subsystem_handle(event, &subsystem));
	OK(doca_sta_event_cqe_notify_get_qp_handle(event, &qp));
	OK(doca_sta_event_cqe_notify_get_capsule_params(event, &opcode, &cid, &nsid, &lba));
	OK(doca_sta_event_cqe_notify_get_param_err_location(event, &location));
	CHECK(subsystem == target.subsystem && qp != NULL && get16(cqe + 12) == cid && get16(cqe + 14) > 1);
	FAILS(INVALID_VALUE, doca_sta_event_cqe_notify_get_cqe(event, NULL));
	target.notices++;
	target.disk_notices += type == DOCA_STA_CQE_NOTIF_NVME_COMP_ERR;
}
#endif

static inline int ctx_is(struct doca_ctx *ctx, enum doca_ctx_states wanted)
{
	enum doca_ctx_states state;

	return doca_ctx_get_state(ctx, &state) == DOCA_SUCCESS && state == wanted;
}

/* Progresses until the condition holds. */
#define SERVE_UNTIL(condition)                                                                  \
	do {                                                                                    \
		uint64_t until_ = now_ms() + PATIENCE_MS;                                       \
		int fine_;                                                                      \
		while (!(fine_ = (condition)) && now_ms() < until_)                             \
			target_step();                                                          \
		check_result(fine_, __FILE__, __LINE__, "in time: " #condition);                \
	} while (0)

static void target_step(void);

static inline void start(struct doca_ctx *ctx)
{
	doca_error_t result = doca_ctx_start(ctx);

	CHECK(result == DOCA_SUCCESS || result == DOCA_ERROR_IN_PROGRESS);
	SERVE_UNTIL(ctx_is(ctx, DOCA_CTX_STATE_RUNNING));
}

static inline void stop(struct doca_ctx *ctx)
{
	doca_error_t result = doca_ctx_stop(ctx);

	CHECK(result == DOCA_SUCCESS || result == DOCA_ERROR_IN_PROGRESS);
	SERVE_UNTIL(ctx_is(ctx, DOCA_CTX_STATE_IDLE));
}

/* An idle control context with everything that start needs. */
static inline struct doca_sta *sta_ready(struct doca_dev *dev, struct doca_pe *pe)
{
	union doca_data data = {.ptr = &target};
	struct doca_sta *sta = NULL;

	OK(doca_sta_create(dev, &sta));
	OK(doca_sta_add_dev(sta, dev));
	OK(doca_sta_mem_allocator_register(sta, sta_alloc, sta_free, sta_vtophys));
	OK(doca_sta_subsystem_task_rm_ns_set_conf(sta, task_over, task_lost));
	OK(doca_sta_be_task_destroy_queue_set_conf(sta, task_over, task_lost));
	OK(doca_sta_event_be_timeout_register_cb(sta, disk_silent, data));
	OK(doca_sta_event_eu_err_register_cb(sta, unit_failed, data));
#if AFTER_3_0
	OK(doca_sta_event_cqe_notify_register_cb(sta, noticed, data));
#endif
	OK(doca_pe_connect_ctx(pe, doca_sta_as_ctx(sta)));
	return sta;
}

/* The same for an IO context of a target that runs. */
static inline struct doca_sta_io *io_ready(struct doca_sta *sta, struct doca_pe *pe)
{
	union doca_data data = {.ptr = &target};
	struct doca_sta_io *io = NULL;

	OK(doca_sta_io_create(sta, &io));
	OK(doca_sta_io_task_disconnect_set_conf(io, task_over, task_lost));
	OK(doca_sta_io_event_transport_err_register_cb(io, transport_failed, data));
	OK(doca_sta_io_non_offload_register_cb(io, command_came, data));
	OK(doca_sta_io_task_non_offload_set_rdma_write_send_conf(io, task_over, task_lost));
	OK(doca_sta_io_task_non_offload_set_rdma_read_conf(io, data_read, task_lost));
	OK(doca_pe_connect_ctx(pe, doca_sta_io_as_ctx(io)));
	return io;
}

static inline void add_disk(void)
{
	disk_open(&target.disk, target.dev);
	OK(doca_sta_be_create(target.sta, &target.end));
	OK(doca_sta_be_add_queue(target.end, target.disk.sq, target.disk.bells, 0, target.disk.cq, target.disk.bells, 4,
				 &target.queue));
	OK(doca_sta_subsystem_add_ns(target.subsystem, 1, BLOCK, 7, target.end, &target.space));
}

static inline void target_open(void)
{
	target = (struct target){.dev = open_device("mlx5_0")};
	if (target.dev == NULL)
		give_up("no such device");
	OK(doca_pe_create(&target.pe));
	target.sta = sta_ready(target.dev, target.pe);
	target.ctx = doca_sta_as_ctx(target.sta);
	start(target.ctx);
	target.io = io_ready(target.sta, target.pe);
	target.io_ctx = doca_sta_io_as_ctx(target.io);
	start(target.io_ctx);
	OK(doca_sta_subsystem_create(target.sta, NQN, &target.subsystem));
	OK(doca_sta_subsystem_add_dev(target.subsystem, target.dev));
	add_disk();
	target.channel = rdma_create_event_channel();
	CM_OK(fcntl(target.channel->fd, F_SETFL, O_NONBLOCK));
	target.listener = listener_at(target.channel, TARGET, PORT);
}

static struct connection *connection_of(struct rdma_cm_id *id)
{
	for (int i = 0; i < QPS; i++)
		if (target.connections[i].id == id)
			return &target.connections[i];
	return NULL;
}

static void asked(struct rdma_cm_id *id, const uint8_t *request)
{
	struct connection *connection = connection_of(NULL);
	uint8_t reply[32] = {0};

	if (connection == NULL)
		give_up("too many connections");
	put16(reply + 2, get16(request + 4));
	OK(doca_sta_io_qp_connect(target.io, target.dev, id, reply, sizeof(reply), NULL, &connection->qp));
	connection->id = id;
}

static void leave(struct connection *connection)
{
	struct doca_sta_producer_task_send *task = NULL;

	if (connection == NULL || connection->leaving)
		return;
	connection->leaving = 1;
	OK(doca_sta_io_task_disconnect_alloc_init(target.io, (union doca_data){.ptr = NULL}, connection->qp, &task));
	submit(task);
}

/* One event of the listener's channel, if there is one. */
static inline void target_event(void)
{
	struct rdma_cm_event *event = NULL;
	enum rdma_cm_event_type kind;
	struct rdma_cm_id *id;
	uint8_t data[56] = {0};

	if (rdma_get_cm_event(target.channel, &event) != 0)
		return;
	kind = event->event;
	id = event->id;
	if (kind == RDMA_CM_EVENT_CONNECT_REQUEST)
		memcpy(data, event->param.conn.private_data, event->param.conn.private_data_len);
	CM_OK(rdma_ack_cm_event(event));
	if (kind == RDMA_CM_EVENT_CONNECT_REQUEST)
		asked(id, data);
	else if (kind == RDMA_CM_EVENT_ESTABLISHED && !connection_of(id)->leaving)
		OK(doca_sta_io_qp_connect_established(target.io, connection_of(id)->qp));
	else if (kind == RDMA_CM_EVENT_DISCONNECTED || kind == RDMA_CM_EVENT_UNREACHABLE)
		leave(connection_of(id));
}

/* Queue pairs whose disconnection is complete can be destroyed. */
static inline void target_bury(void)
{
	for (int i = 0; i < QPS; i++) {
		struct connection *connection = &target.connections[i];

		if (connection->leaving && doca_sta_io_qp_destroy(target.io, connection->qp) == DOCA_SUCCESS) {
			*connection = (struct connection){0};
			target.destroyed++;
		}
	}
}

static void target_step(void)
{
	int finished = target.finished;

	if (!doca_pe_progress(target.pe))
		sched_yield();
	if (target.channel != NULL)
		target_event();
	if (target.finished != finished)
		target_bury();
}

/* Runs the target until the other process has said something, or is gone. */
static inline void serve(int socket)
{
	struct pollfd waited = {.fd = socket, .events = POLLIN};

	SERVE_UNTIL(poll(&waited, 1, 0) == 1);
}

static inline int num_connections(void)
{
	int count = 0;

	for (int i = 0; i < QPS; i++)
		count += target.connections[i].id != NULL;
	return count;
}

static inline void remove_space(void)
{
	struct doca_sta_producer_task_send *task = NULL;
	int finished = target.finished;

	OK(doca_sta_subsystem_task_rm_ns_alloc_init(target.subsystem, target.space, (union doca_data){0}, &task));
	OK(doca_task_submit(doca_sta_producer_send_task_as_task(task)));
	SERVE_UNTIL(target.finished > finished);
}

static inline void remove_disk(void)
{
	struct doca_sta_producer_task_send *task = NULL;
	int finished = target.finished;

	OK(doca_sta_be_destroy_queue_task_alloc_init(target.queue, (union doca_data){0}, &task));
	OK(doca_task_submit(doca_sta_producer_send_task_as_task(task)));
	SERVE_UNTIL(target.finished > finished);
	OK(doca_sta_be_destroy(target.end));
	disk_close(&target.disk);
}

static inline void target_close(void)
{
	CM_OK(rdma_destroy_id(target.listener));
	for (int i = 0; i < QPS; i++)
		if (target.connections[i].id != NULL)
			leave(&target.connections[i]);
	SERVE_UNTIL(num_connections() == 0);
	stop(target.io_ctx);
	OK(doca_sta_io_destroy(target.io));
	remove_space();
	remove_disk();
	OK(doca_sta_subsystem_destroy(target.subsystem));
	stop(target.ctx);
	OK(doca_sta_destroy(target.sta));
	OK(doca_pe_destroy(target.pe));
	OK(doca_dev_close(target.dev));
	rdma_destroy_event_channel(target.channel);
	CHECK(allocations == 0);
}

#endif
