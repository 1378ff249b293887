/*
 * What a storage target refuses: calls in the wrong state and order, limits, bad geometry, foreign and dead handles, commands
 * answered twice. Everything in one process: the host is only there to bring queue pairs to their states.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>

#include "sta_initiator.h"
#include "sta_target.h"

static struct queue queue;

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void refuse_idle(void)
{
	struct doca_dev *dev = open_device("mlx5_0"), *second = open_device("mlx5_1");
	union doca_data data = {0};
	struct doca_sta *sta = NULL;
	struct doca_pe *pe = NULL;
	struct doca_ctx *ctx;

	OK(doca_pe_create(&pe));
	/* Each of what start needs is missing once. */
	for (int missing = 0; missing < 4; missing++) {
		OK(doca_sta_create(dev, &sta));
		OK(doca_pe_connect_ctx(pe, doca_sta_as_ctx(sta)));
		if (missing != 0)
			OK(doca_sta_add_dev(sta, dev));
		if (missing != 1)
			OK(doca_sta_mem_allocator_register(sta, sta_alloc, sta_free, sta_vtophys));
		if (missing != 2)
			OK(doca_sta_subsystem_task_rm_ns_set_conf(sta, task_over, task_lost));
		if (missing != 3)
			OK(doca_sta_be_task_destroy_queue_set_conf(sta, task_over, task_lost));
		if (missing == 0)
			FAILS(INVALID_VALUE, doca_ctx_start(doca_sta_as_ctx(sta)));
		else
			FAILS(INITIALIZATION, doca_ctx_start(doca_sta_as_ctx(sta)));
		OK(doca_sta_destroy(sta));
	}
	sta = sta_ready(dev, pe);
	ctx = doca_sta_as_ctx(sta);
	FAILS(ALREADY_EXIST, doca_sta_mem_allocator_register(sta, sta_alloc, sta_free, sta_vtophys));
	FAILS(INVALID_VALUE, doca_sta_mem_allocator_register(sta, NULL, sta_free, sta_vtophys));
	FAILS(INVALID_VALUE, doca_sta_mem_allocator_register(NULL, sta_alloc, sta_free, sta_vtophys));
	FAILS(INVALID_VALUE, doca_sta_subsystem_task_rm_ns_set_conf(sta, NULL, task_lost));
	FAILS(INVALID_VALUE, doca_sta_be_task_destroy_queue_set_conf(sta, task_over, NULL));
	FAILS(INVALID_VALUE, doca_sta_event_be_timeout_register_cb(sta, NULL, data));
	FAILS(INVALID_VALUE, doca_sta_event_eu_err_register_cb(sta, NULL, data));
	/* The program's memory ends in the middle of start. */
	for (allocation_limit = 0; allocation_limit < 160; allocation_limit += 53)
		FAILS(NO_MEMORY, doca_ctx_start(ctx));
	allocation_limit = -1;
	CHECK(allocations == 0);
	OK(doca_sta_add_dev(sta, second));
	target = (struct target){.pe = pe, .dev = dev, .sta = sta};
	start(ctx);
	/* Devices of a subsystem come before its namespaces. */
	OK(doca_sta_subsystem_create(sta, NQN, &target.subsystem));
	OK(doca_sta_subsystem_add_dev(target.subsystem, dev));
	add_disk();
	FAILS(BAD_STATE, doca_sta_subsystem_add_dev(target.subsystem, second));
	stop(ctx);
	/* Nothing is lost by a stop, and nothing can be removed before the next start. */
	FAILS(IN_USE, doca_sta_destroy(sta));
	FAILS(BAD_STATE, doca_sta_subsystem_rm_ns(target.subsystem, target.space));
	FAILS(BAD_STATE, doca_sta_subsystem_destroy(target.subsystem));
	start(ctx);
	remove_space();
	remove_disk();
	OK(doca_sta_subsystem_destroy(target.subsystem));
	FAILS(BAD_STATE, doca_sta_add_dev(sta, second));
	FAILS(BAD_STATE, doca_sta_set_max_sta_io(sta, 2));
	FAILS(BAD_STATE, doca_sta_mem_allocator_register(sta, sta_alloc, sta_free, sta_vtophys));
	FAILS(BAD_STATE, doca_sta_subsystem_task_rm_ns_set_conf(sta, task_over, task_lost));
	FAILS(BAD_STATE, doca_sta_be_task_destroy_queue_set_conf(sta, task_over, task_lost));
	FAILS(BAD_STATE, doca_sta_event_be_timeout_register_cb(sta, disk_silent, data));
	FAILS(BAD_STATE, doca_sta_event_eu_err_register_cb(sta, unit_failed, data));
	FAILS(IN_USE, doca_sta_destroy(sta));
	stop(ctx);
	/* And again. */
	start(ctx);
	stop(ctx);
	OK(doca_sta_destroy(sta));
	OK(doca_pe_destroy(pe));
	OK(doca_dev_close(second));
	OK(doca_dev_close(dev));
	CHECK(allocations == 0);
}

static void refuse_io(void)
{
	union doca_data data = {0};
	struct doca_sta_io *io = NULL, *bare = NULL;
	struct doca_ctx *ctx;

	/* One was asked for, and there is one. */
	FAILS(NO_MEMORY, doca_sta_io_create(target.sta, &io));
	FAILS(INVALID_VALUE, doca_sta_io_create(NULL, &io));
	FAILS(INVALID_VALUE, doca_sta_io_create(target.sta, NULL));
	FAILS(BAD_STATE, doca_sta_io_task_disconnect_set_conf(target.io, task_over, task_lost));
	FAILS(BAD_STATE, doca_sta_io_event_transport_err_register_cb(target.io, transport_failed, data));
	FAILS(BAD_STATE, doca_sta_io_non_offload_register_cb(target.io, command_came, data));
	FAILS(BAD_STATE, doca_sta_io_task_non_offload_set_rdma_write_send_conf(target.io, task_over, task_lost));
	FAILS(BAD_STATE, doca_sta_io_task_non_offload_set_rdma_read_conf(target.io, data_read, task_lost));
	FAILS(BAD_STATE, doca_sta_io_destroy(target.io));
	FAILS(IN_USE, doca_ctx_stop(target.ctx));
	CHECK(ctx_is(target.ctx, DOCA_CTX_STATE_RUNNING));
	FAILS(IN_USE, doca_pe_destroy(target.pe));
	/* Stopped, destroyed, made again: without one of its callbacks it does not start. */
	stop(target.io_ctx);
	OK(doca_sta_io_destroy(target.io));
	for (int missing = 0; missing < 4; missing++) {
		OK(doca_sta_io_create(target.sta, &bare));
		ctx = doca_sta_io_as_ctx(bare);
		OK(doca_pe_connect_ctx(target.pe, ctx));
		if (missing != 0)
			OK(doca_sta_io_task_disconnect_set_conf(bare, task_over, task_lost));
		if (missing != 1)
			OK(doca_sta_io_non_offload_register_cb(bare, command_came, data));
		if (missing != 2)
			OK(doca_sta_io_task_non_offload_set_rdma_write_send_conf(bare, task_over, task_lost));
		if (missing != 3)
			OK(doca_sta_io_task_non_offload_set_rdma_read_conf(bare, data_read, task_lost));
		FAILS(INITIALIZATION, doca_ctx_start(ctx));
		FAILS(INVALID_VALUE, doca_sta_io_task_disconnect_set_conf(bare, NULL, task_lost));
		FAILS(INVALID_VALUE, doca_sta_io_non_offload_register_cb(bare, NULL, data));
		OK(doca_sta_io_destroy(bare));
	}
	CHECK(doca_sta_io_as_ctx(NULL) == NULL);
	FAILS(INVALID_VALUE, doca_sta_io_destroy(NULL));
	target.io = io_ready(target.sta, target.pe);
	target.io_ctx = doca_sta_io_as_ctx(target.io);
	/* Not without memory, and not yet running it has no queue pairs. */
	{
		struct doca_sta_qp_handle *qp = NULL;

		allocation_limit = allocations;
		FAILS(NO_MEMORY, doca_ctx_start(target.io_ctx));
		allocation_limit = -1;
		FAILS(BAD_STATE, doca_sta_io_qp_alloc(target.io, target.dev, &qp));
	}
	start(target.io_ctx);
}

static void refuse_subsystems(void)
{
	static const char *const bad[] = {"", "nqn.", "disk", "nqn.2026-01.org.example: disk"};
	struct doca_sta_subs_handle *subsystem = NULL, *more[64];
	struct doca_dev *second = open_device("mlx5_1");
	struct doca_sta_ns_handle *space = NULL, *all[64];
	struct doca_sta_be_handle *end = NULL;
	uint32_t limit = 0, spaces = 0;
	char name[300] = "nqn.";

	for (size_t i = 0; i < COUNT(bad); i++)
		FAILS(INVALID_VALUE, doca_sta_subsystem_create(target.sta, bad[i], &subsystem));
	memset(name + 4, 'x', 220);
	FAILS(INVALID_VALUE, doca_sta_subsystem_create(target.sta, name, &subsystem));
	FAILS(INVALID_VALUE, doca_sta_subsystem_create(target.sta, NULL, &subsystem));
	FAILS(INVALID_VALUE, doca_sta_subsystem_create(target.sta, name, NULL));
	FAILS(INVALID_VALUE, doca_sta_subsystem_create(NULL, NQN, &subsystem));
	FAILS(ALREADY_EXIST, doca_sta_subsystem_create(target.sta, NQN, &subsystem));
	name[223] = '\0';
	OK(doca_sta_get_max_subsys(&limit));
	for (uint32_t i = 1; i < limit; i++) {
		name[4] = (char)('a' + i);
		OK(doca_sta_subsystem_create(target.sta, name, &more[i]));
	}
	name[4] = '0';
	FAILS(NO_MEMORY, doca_sta_subsystem_create(target.sta, name, &subsystem));
	for (uint32_t i = 2; i < limit; i++)
		OK(doca_sta_subsystem_destroy(more[i]));
	FAILS(INVALID_VALUE, doca_sta_subsystem_destroy(more[2]));
	FAILS(INVALID_VALUE, doca_sta_subsystem_destroy(NULL));
	FAILS(INVALID_VALUE, doca_sta_subsystem_destroy((void *)target.queue));
	FAILS(INVALID_VALUE, doca_sta_subsystem_destroy((void *)name));
	FAILS(IN_USE, doca_sta_subsystem_destroy(target.subsystem));

	subsystem = more[1];
	FAILS(NOT_FOUND, doca_sta_subsystem_add_dev(subsystem, second));
	FAILS(INVALID_VALUE, doca_sta_subsystem_add_dev(NULL, target.dev));
	FAILS(INVALID_VALUE, doca_sta_subsystem_add_dev(subsystem, NULL));
	OK(doca_sta_subsystem_add_dev(subsystem, target.dev));
	FAILS(ALREADY_EXIST, doca_sta_subsystem_add_dev(subsystem, target.dev));

	FAILS(INVALID_VALUE, doca_sta_subsystem_add_ns(subsystem, 0, BLOCK, 7, target.end, &space));
	FAILS(INVALID_VALUE, doca_sta_subsystem_add_ns(subsystem, UINT32_MAX, BLOCK, 7, target.end, &space));
	FAILS(INVALID_VALUE, doca_sta_subsystem_add_ns(subsystem, 1, BLOCK, 0, target.end, &space));
	FAILS(INVALID_VALUE, doca_sta_subsystem_add_ns(subsystem, 1, BLOCK, 7, NULL, &space));
	FAILS(INVALID_VALUE, doca_sta_subsystem_add_ns(NULL, 1, BLOCK, 7, target.end, &space));
	FAILS(INVALID_VALUE, doca_sta_subsystem_add_ns(subsystem, 1, BLOCK, 7, target.end, NULL));
	FAILS(NOT_SUPPORTED, doca_sta_subsystem_add_ns(subsystem, 1, 1024, 7, target.end, &space));
	OK(doca_sta_be_create(target.sta, &end));
	FAILS(BAD_STATE, doca_sta_subsystem_add_ns(subsystem, 1, BLOCK, 7, end, &space));
	OK(doca_sta_be_destroy(end));
	FAILS(INVALID_VALUE, doca_sta_be_destroy(end));
	FAILS(INVALID_VALUE, doca_sta_subsystem_add_ns(subsystem, 1, BLOCK, 7, end, &space));
	OK(doca_sta_get_max_ns_per_subs(&spaces));
	for (uint32_t i = 1; i <= spaces; i++)
		OK(doca_sta_subsystem_add_ns(subsystem, i, BLOCK, 7, target.end, &all[i]));
	FAILS(NO_MEMORY, doca_sta_subsystem_add_ns(subsystem, 99, BLOCK, 7, target.end, &space));
	FAILS(ALREADY_EXIST, doca_sta_subsystem_add_ns(subsystem, 1, BLOCK, 7, target.end, &space));
	FAILS(IN_USE, doca_sta_subsystem_destroy(subsystem));
	space = all[1];
	FAILS(INVALID_VALUE, doca_sta_subsystem_rm_ns(target.subsystem, space));
	for (uint32_t i = 1; i <= spaces; i++)
		OK(doca_sta_subsystem_rm_ns(subsystem, all[i]));
	FAILS(INVALID_VALUE, doca_sta_subsystem_rm_ns(subsystem, space));
	{
		struct doca_sta_producer_task_send *task = NULL;

		FAILS(INVALID_VALUE, doca_sta_subsystem_task_rm_ns_alloc_init(subsystem, space, (union doca_data){0}, &task));
		FAILS(INVALID_VALUE, doca_sta_subsystem_task_rm_ns_alloc_init(NULL, space, (union doca_data){0}, &task));
	}
	OK(doca_sta_subsystem_destroy(subsystem));
	OK(doca_dev_close(second));
}

static void refuse_back_ends(void)
{
	struct doca_sta_be_q_handle *extra = NULL;
	struct doca_sta_be_handle *ends[64], *end;
	struct doca_mmap *sq, *cq, *bells, *foreign, *idle = NULL, *skewed;
	struct doca_dev *second = open_device("mlx5_1");
	uint8_t *memory = NULL;
	uint32_t limit = 0;

	OK(doca_sta_get_max_be(&limit));
	for (uint32_t i = 1; i < limit; i++)
		OK(doca_sta_be_create(target.sta, &ends[i]));
	FAILS(NO_MEMORY, doca_sta_be_create(target.sta, &end));
	for (uint32_t i = 2; i < limit; i++)
		OK(doca_sta_be_destroy(ends[i]));
	FAILS(INVALID_VALUE, doca_sta_be_create(NULL, &end));
	FAILS(INVALID_VALUE, doca_sta_be_create(target.sta, NULL));
	FAILS(IN_USE, doca_sta_be_destroy(target.end));
	end = ends[1];

	if (posix_memalign((void **)&memory, 4096, 8192) != 0)
		give_up("memory");
	memset(memory, 0, 8192);
	sq = lend(target.dev, memory, 8 * 64);
	cq = lend(target.dev, memory + 4096, 8 * 16);
	bells = lend(target.dev, memory + 6144, 64);
	foreign = lend(second, memory, 8 * 64);
	skewed = lend(target.dev, memory + 7000, 64);
	OK(doca_mmap_create(&idle));
#define ADD(a, b, c, d, e, f) doca_sta_be_add_queue(a, b, c, d, e, f, 4, &extra)
	FAILS(INVALID_VALUE, ADD(NULL, sq, bells, 0, cq, bells));
	FAILS(INVALID_VALUE, ADD(end, NULL, bells, 0, cq, bells));
	FAILS(INVALID_VALUE, ADD(end, sq, NULL, 0, cq, bells));
	FAILS(INVALID_VALUE, ADD(end, sq, bells, 0, NULL, bells));
	FAILS(INVALID_VALUE, ADD(end, sq, bells, 0, cq, NULL));
	FAILS(INVALID_VALUE, doca_sta_be_add_queue(end, sq, bells, 0, cq, bells, 4, NULL));
	FAILS(BAD_STATE, ADD(end, idle, bells, 0, cq, bells));
	FAILS(BAD_STATE, ADD(end, foreign, bells, 0, cq, idle));
	FAILS(NOT_PERMITTED, ADD(end, foreign, bells, 0, cq, bells));
	/* Not as many entries of one as of the other; no power of two; no room for the doorbell. */
	FAILS(INVALID_VALUE, ADD(end, target.disk.sq, bells, 0, cq, bells));
	FAILS(INVALID_VALUE, ADD(end, sq, bells, 0, sq, bells));
	FAILS(INVALID_VALUE, ADD(end, sq, bells, 2, cq, bells));
	FAILS(INVALID_VALUE, ADD(end, sq, bells, 64, cq, bells));
	FAILS(INVALID_VALUE, ADD(end, sq, bells, 62, cq, bells));
	FAILS(INVALID_VALUE, ADD(end, sq, skewed, 0, cq, bells));
	FAILS(NO_MEMORY, ADD(target.end, sq, bells, 0, cq, bells));
	FAILS(ALREADY_EXIST, ADD(end, target.disk.sq, bells, 0, target.disk.cq, bells));
	OK(ADD(end, sq, bells, 0, cq, bells));
	FAILS(IN_USE, doca_sta_be_destroy(end));
	/* What is lent stays. */
	FAILS(NOT_PERMITTED, doca_mmap_destroy(sq));
	FAILS(NOT_PERMITTED, doca_mmap_stop(bells));
	{
		struct doca_sta_producer_task_send *task = NULL, *second_task = NULL;
		int finished = target.finished, failed = target.failed;

		FAILS(INVALID_VALUE, doca_sta_be_destroy_queue_task_alloc_init(NULL, (union doca_data){0}, &task));
		FAILS(INVALID_VALUE, doca_sta_be_destroy_queue_task_alloc_init(extra, (union doca_data){0}, NULL));
		/* The last queue of a back end that a namespace needs. */
		OK(doca_sta_be_destroy_queue_task_alloc_init(target.queue, (union doca_data){0}, &task));
		OK(doca_task_submit(doca_sta_producer_send_task_as_task(task)));
		SERVE_UNTIL(target.failed == failed + 1);
		CHECK(target.failure == DOCA_ERROR_IN_USE);
		/* Twice the same. */
		OK(doca_sta_be_destroy_queue_task_alloc_init(extra, (union doca_data){0}, &task));
		OK(doca_sta_be_destroy_queue_task_alloc_init(extra, (union doca_data){0}, &second_task));
		OK(doca_task_submit(doca_sta_producer_send_task_as_task(task)));
		SERVE_UNTIL(target.finished == finished + 1);
		FAILS(INVALID_VALUE, doca_task_submit(doca_sta_producer_send_task_as_task(second_task)));
		doca_task_free(doca_sta_producer_send_task_as_task(second_task));
		FAILS(INVALID_VALUE, doca_sta_be_destroy_queue_task_alloc_init(extra, (union doca_data){0}, &task));
	}
	OK(doca_sta_be_destroy(end));
	OK(doca_mmap_destroy(sq));
	OK(doca_mmap_destroy(cq));
	OK(doca_mmap_destroy(bells));
	OK(doca_mmap_destroy(foreign));
	OK(doca_mmap_destroy(skewed));
	OK(doca_mmap_destroy(idle));
	free(memory);
	OK(doca_dev_close(second));
}

/* Queue pairs that nobody connects. */
static void refuse_alloc(void)
{
	struct doca_sta_producer_task_send *task = NULL;
	struct doca_dev *second = open_device("mlx5_1");
	struct doca_sta_qp_handle **qps, *qp = NULL;
	uint32_t limit = 0, number = 0;
	uint16_t group = 0;

	OK(doca_sta_get_max_qps(&limit));
	qps = calloc(limit, sizeof(*qps));
	FAILS(NOT_FOUND, doca_sta_io_qp_alloc(target.io, second, &qp));
	FAILS(INVALID_VALUE, doca_sta_io_qp_alloc(NULL, target.dev, &qp));
	FAILS(INVALID_VALUE, doca_sta_io_qp_alloc(target.io, NULL, &qp));
	FAILS(INVALID_VALUE, doca_sta_io_qp_alloc(target.io, target.dev, NULL));
	for (uint32_t i = 0; i < limit; i++)
		OK(doca_sta_io_qp_alloc(target.io, target.dev, &qps[i]));
	FAILS(NO_MEMORY, doca_sta_io_qp_alloc(target.io, target.dev, &qp));
	FAILS(IN_USE, doca_ctx_stop(target.io_ctx));
	CHECK(ctx_is(target.io_ctx, DOCA_CTX_STATE_RUNNING));
	OK(doca_sta_io_qp_get_id(qps[0], &number));
	OK(doca_sta_io_qp_get_group_id(qps[0], &group));
	OK(doca_sta_io_qp_get_index_in_group(qps[0], &group));
	OK(doca_sta_io_qp_get_port_id(qps[0], &group));
	FAILS(INVALID_VALUE, doca_sta_io_qp_get_id(NULL, &number));
	FAILS(INVALID_VALUE, doca_sta_io_qp_get_id(qps[0], NULL));
	FAILS(INVALID_VALUE, doca_sta_io_qp_get_id((void *)target.subsystem, &number));
	/* Nothing of it is connected. */
	FAILS(BAD_STATE, doca_sta_io_qp_connect_established(target.io, qps[0]));
	FAILS(BAD_STATE, doca_sta_io_qp_connect_set_sq_size(target.io, qps[0], 7));
	FAILS(BAD_STATE, doca_sta_io_qp_add_subsystem(target.io, target.subsystem, qps[0]));
	OK(doca_sta_io_task_disconnect_alloc_init(target.io, (union doca_data){0}, qps[0], &task));
	FAILS(BAD_STATE, doca_task_submit(doca_sta_producer_send_task_as_task(task)));
	doca_task_free(doca_sta_producer_send_task_as_task(task));
	for (uint32_t i = 0; i < limit; i++)
		OK(doca_sta_io_qp_destroy(target.io, qps[i]));
	FAILS(INVALID_VALUE, doca_sta_io_qp_destroy(target.io, qps[0]));
	FAILS(INVALID_VALUE, doca_sta_io_qp_get_id(qps[0], &number));
	FAILS(INVALID_VALUE, doca_sta_io_task_disconnect_alloc_init(target.io, (union doca_data){0}, qps[0], &task));
	free(qps);
	OK(doca_dev_close(second));
}

/* Each failure of accepting ends the identifier, and the client is told. */

static struct rdma_event_channel *clients;

static struct rdma_cm_id *ask_target(struct rdma_cm_id **client)
{
	struct rdma_cm_event *event = NULL;
	struct rdma_cm_id *id;

	*client = client_to(clients, TARGET, PORT);
	CM_OK(rdma_connect(*client, NULL));
	CHECK(readable(target.channel, PATIENCE_MS));
	CM_OK(rdma_get_cm_event(target.channel, &event));
	CHECK(event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	id = event->id;
	CM_OK(rdma_ack_cm_event(event));
	return id;
}

static void rejected(struct rdma_cm_id *id, struct rdma_cm_id *client)
{
	CM_FAILS(EINVAL, rdma_destroy_id(id));
	CHECK(TAKE(clients, REJECTED).status == 28);
	CM_OK(rdma_destroy_id(client));
}

static void refuse_clients(void)
{
	struct doca_dev *second = open_device("mlx5_1");
	struct doca_sta_subs_handle *elsewhere = NULL;
	struct doca_sta_qp_handle *qp = NULL, *made = NULL;
	struct rdma_cm_id *client, *id, *plain = NULL;
	uint8_t words[197] = {0};

	clients = rdma_create_event_channel();
	OK(doca_sta_subsystem_create(target.sta, "nqn.elsewhere", &elsewhere));
#define CONNECT(io, dev, len, subsystem, out) doca_sta_io_qp_connect(io, dev, id, words, len, subsystem, out)
	id = ask_target(&client);
	FAILS(NOT_FOUND, CONNECT(target.io, second, 32, NULL, &qp));
	rejected(id, client);
	id = ask_target(&client);
	FAILS(TOO_BIG, CONNECT(target.io, target.dev, 197, NULL, &qp));
	rejected(id, client);
	id = ask_target(&client);
	FAILS(NOT_FOUND, CONNECT(target.io, target.dev, 32, elsewhere, &qp));
	rejected(id, client);
	id = ask_target(&client);
	FAILS(INVALID_VALUE, CONNECT(target.io, target.dev, 32, (void *)target.queue, &qp));
	rejected(id, client);
	id = ask_target(&client);
	FAILS(INVALID_VALUE, CONNECT(target.io, target.dev, 32, NULL, NULL));
	rejected(id, client);
	id = ask_target(&client);
	FAILS(INVALID_VALUE, CONNECT(target.io, NULL, 32, NULL, &qp));
	rejected(id, client);
	id = ask_target(&client);
	allocation_limit = allocations;
	FAILS(NO_MEMORY, CONNECT(target.io, target.dev, 32, NULL, &qp));
	allocation_limit = -1;
	rejected(id, client);
	/* Without an IO context nothing has taken it. */
	id = ask_target(&client);
	FAILS(INVALID_VALUE, CONNECT(NULL, target.dev, 32, NULL, &qp));
	CM_OK(rdma_reject(id, NULL, 0));
	CM_OK(rdma_destroy_id(id));
	TAKE(clients, REJECTED);
	CM_OK(rdma_destroy_id(client));
	/* No identifier, and one that nobody has asked through. */
	id = NULL;
	FAILS(INVALID_VALUE, CONNECT(target.io, target.dev, 32, NULL, &qp));
	CM_OK(rdma_create_id(clients, &plain, NULL, RDMA_PS_TCP));
	id = plain;
	FAILS(INVALID_VALUE, CONNECT(target.io, target.dev, 32, NULL, &qp));
	CM_FAILS(EINVAL, rdma_destroy_id(plain));
	/* The client has gone. */
	id = ask_target(&client);
	CM_OK(rdma_destroy_id(client));
	FAILS(CONNECTION_ABORTED, CONNECT(target.io, target.dev, 32, NULL, &qp));
	/* Accepted twice. */
	id = ask_target(&client);
	OK(doca_sta_io_qp_alloc(target.io, target.dev, &made));
	OK(doca_sta_io_qp_accept(target.io, made, target.dev, id, words, 32, target.subsystem));
	FAILS(BAD_STATE, doca_sta_io_qp_destroy(target.io, made));
	FAILS(IN_USE, doca_sta_subsystem_destroy(target.subsystem));
	TAKE(clients, CONNECT_RESPONSE);
	{
		struct rdma_cm_id *other;

		id = ask_target(&other);
		FAILS(BAD_STATE, doca_sta_io_qp_accept(target.io, made, target.dev, id, words, 32, NULL));
		rejected(id, other);
		id = ask_target(&other);
		FAILS(INVALID_VALUE, doca_sta_io_qp_accept(target.io, NULL, target.dev, id, words, 32, NULL));
		rejected(id, other);
	}
	OK(doca_sta_io_qp_add_subsystem(target.io, target.subsystem, made));
	FAILS(ALREADY_EXIST, doca_sta_io_qp_add_subsystem(target.io, elsewhere, made));
	FAILS(INVALID_VALUE, doca_sta_io_qp_add_subsystem(target.io, NULL, made));
	FAILS(INVALID_VALUE, doca_sta_io_qp_connect_set_sq_size(target.io, made, 0));
	FAILS(INVALID_VALUE, doca_sta_io_qp_connect_set_sq_size(target.io, made, 128));
	OK(doca_sta_io_qp_connect_set_sq_size(target.io, made, 127));
	OK(doca_sta_io_qp_connect_established(target.io, made));
	FAILS(BAD_STATE, doca_sta_io_qp_connect_established(target.io, made));
	{
		struct doca_sta_producer_task_send *task = NULL, *again = NULL;
		int finished = target.finished;

		OK(doca_sta_io_task_disconnect_alloc_init(target.io, (union doca_data){0}, made, &task));
		OK(doca_sta_io_task_disconnect_alloc_init(target.io, (union doca_data){0}, made, &again));
		OK(doca_task_submit(doca_sta_producer_send_task_as_task(task)));
		FAILS(BAD_STATE, doca_task_submit(doca_sta_producer_send_task_as_task(again)));
		doca_task_free(doca_sta_producer_send_task_as_task(again));
		SERVE_UNTIL(target.finished == finished + 1);
		TAKE(clients, DISCONNECTED);
		OK(doca_sta_io_qp_destroy(target.io, made));
	}
	CM_OK(rdma_destroy_id(client));
	OK(doca_sta_subsystem_destroy(elsewhere));
	rdma_destroy_event_channel(clients);
	OK(doca_dev_close(second));
}

/* Commands: the token of each is good for one answer. */

static struct doca_sta_qp_handle *last_qp;
static union doca_data last_token;
static uint8_t completion[16];

static doca_error_t plan(int kind, union doca_data token, struct doca_sta_producer_task_send **task)
{
	union doca_data data = {0};

	if (kind == 0)
		return doca_sta_io_task_non_offload_rdma_read_alloc_init(target.io, data, last_qp, token, task);
	if (kind == 1)
		return doca_sta_io_task_non_offload_rdma_send_alloc_init(target.io, data, last_qp, completion, token,
									 task);
	return doca_sta_io_task_non_offload_rdma_write_send_alloc_init(target.io, data, last_qp, completion, token, task);
}

/* The command is the program's; remembers it, and answers nothing. */
static void remember(struct doca_sta_qp_handle *qp, union doca_data data, const uint8_t *command, uint8_t *payload,
		     uint32_t len, bool valid, union doca_data token)
{
	if (command[0] == NVME_FABRICS) {
		command_came(qp, data, command, payload, len, valid, token);
		return;
	}
	last_qp = qp;
	last_token = token;
	target.held++;
}

static void both_until(int wanted)
{
	uint64_t until = now_ms() + PATIENCE_MS;

	while (queue.side.succeeded + queue.side.failed < wanted && now_ms() < until) {
		target_step();
		doca_pe_progress(queue.side.pe);
	}
	CHECK(queue.side.succeeded + queue.side.failed >= wanted);
	let_go(&queue);
}

static void send_command(uint8_t opcode)
{
	uint8_t *capsule = command(&queue, opcode, 1, 0);
	int held = target.held;

	keyed(&queue, capsule, 0, 512, SGL_KEYED);
	post(&queue, capsule, 64, 0);
	SERVE_UNTIL(target.held == held + 1);
}

static void *host_opens(void *unused)
{
	(void)unused;
	initiator_open(&queue, 1, 12);
	return NULL;
}

static void refuse_commands(void)
{
	struct doca_sta_producer_task_send *task = NULL, *again = NULL;
	uint8_t *capsule;
	pthread_t host;
	int before;

	/* The whole of a target again, with a callback that answers nothing by itself. */
	stop(target.io_ctx);
	OK(doca_sta_io_non_offload_register_cb(target.io, remember, (union doca_data){.ptr = &target}));
	start(target.io_ctx);
	pthread_create(&host, NULL, host_opens, NULL);
	SERVE_UNTIL(num_connections() == 1 && pthread_tryjoin_np(host, NULL) == 0);
	/* Connect, in the capsule: handled at once. */
	capsule = command(&queue, NVME_FABRICS, 0, 0);
	capsule[4] = FABRICS_CONNECT;
	put16(capsule + 42, 1);
	put16(capsule + 44, 11);
	strcpy((char *)capsule + 64 + 256, NQN);
	put32(capsule + 32, 1024);
	capsule[39] = SGL_IN_CAPSULE;
	before = queue.side.succeeded;
	post(&queue, capsule, 64 + 1024, 0);
	both_until(before + 2);
	last_qp = target.connections[0].qp;
	FAILS(BAD_STATE, doca_sta_io_qp_connect_set_sq_size(target.io, last_qp, 11));
	/* No such command. */
	for (int kind = 0; kind < 3; kind++) {
		FAILS(INVALID_VALUE, plan(kind, (union doca_data){.u64 = 0}, &task));
		FAILS(INVALID_VALUE, plan(kind, (union doca_data){.ptr = &target}, &task));
	}
	/* Data to the host: they cannot be fetched; one answer, and no more. */
	send_command(NVME_IDENTIFY);
	FAILS(INVALID_VALUE, plan(0, last_token, &task));
	FAILS(INVALID_VALUE, plan(1, last_token, NULL));
	OK(plan(2, last_token, &task));
	OK(plan(1, last_token, &again));
	OK(doca_task_submit(doca_sta_producer_send_task_as_task(task)));
	FAILS(INVALID_VALUE, doca_task_submit(doca_sta_producer_send_task_as_task(again)));
	doca_task_free(doca_sta_producer_send_task_as_task(again));
	FAILS(INVALID_VALUE, plan(1, last_token, &again));
	both_until(before + 4);
	FAILS(INVALID_VALUE, plan(1, last_token, &again));
	/* None at all: neither fetched nor written. */
	send_command(NVME_FLUSH);
	FAILS(INVALID_VALUE, plan(0, last_token, &task));
	FAILS(INVALID_VALUE, plan(2, last_token, &task));
	FAILS(INVALID_VALUE, doca_sta_io_task_non_offload_rdma_send_alloc_init(target.io, (union doca_data){0}, last_qp,
									       NULL, last_token, &task));
	OK(plan(1, last_token, &task));
	OK(doca_task_submit(doca_sta_producer_send_task_as_task(task)));
	both_until(before + 6);
	/* From the host: fetched once. */
	send_command(0x05);
	FAILS(INVALID_VALUE, plan(2, last_token, &task));
	send_command(0x05);
	OK(plan(1, last_token, &task));
	/* An answer that was planned comes too late, and a command that nobody answers goes with its queue pair. */
	leave(&target.connections[0]);
	FAILS(BAD_STATE, doca_task_submit(doca_sta_producer_send_task_as_task(task)));
	doca_task_free(doca_sta_producer_send_task_as_task(task));
	FAILS(BAD_STATE, plan(1, last_token, &task));
	SERVE_UNTIL(num_connections() == 0);
	FAILS(INVALID_VALUE, plan(1, last_token, &task));
	initiator_close(&queue, 1);
}

static void refuse_statistics(void)
{
	const struct doca_sta_eu_ctr_entry *entries = NULL;
	struct doca_sta_eu_handle *units[64];
	struct doca_sta_qp_handle *qps[4];
	enum dpa_sta_eu_type type = DOCA_STA_EU_TYPE_UNKNOWN;
	uint32_t count = 0, most = 0;
	const char *name = NULL;
	uint16_t number = 0, size = 4;

	OK(doca_sta_get_max_num_eus_available(target.sta, &most));
	FAILS(TOO_BIG, doca_sta_get_eu_handle(target.sta, units, &count));
	CHECK(count == most);
	FAILS(INVALID_VALUE, doca_sta_get_eu_handle(NULL, units, &count));
	FAILS(INVALID_VALUE, doca_sta_get_eu_handle(target.sta, NULL, &count));
	FAILS(INVALID_VALUE, doca_sta_get_eu_handle(target.sta, units, NULL));
	OK(doca_sta_get_eu_handle(target.sta, units, &count));
	for (uint32_t i = 0; i < count; i++) {
		OK(doca_sta_get_eu_name(units[i], &name));
		OK(doca_sta_get_eu_type(units[i], &type));
		OK(doca_sta_get_eu_id(units[i], &number));
		OK(doca_sta_get_eu_port(units[i], &number));
		OK(doca_sta_get_eu_stats(units[i], &entries, &number));
		CHECK(number == 3 && strlen(name) > 2 && type > DOCA_STA_EU_TYPE_UNKNOWN && type < DOCA_STA_EU_MAX);
		size = 4;
		if (type == DOCA_STA_EU_COMP)
			OK(doca_sta_get_eu_connect_qp_stats(units[i], qps, &size));
		else
			FAILS(INVALID_VALUE, doca_sta_get_eu_connect_qp_stats(units[i], qps, &size));
	}
	FAILS(INVALID_VALUE, doca_sta_get_eu_name(NULL, &name));
	FAILS(INVALID_VALUE, doca_sta_get_eu_name((void *)target.space, &name));
	FAILS(INVALID_VALUE, doca_sta_get_eu_stats(units[0], NULL, &number));
	OK(doca_sta_eu_reset_stats_handle(units[0]));
	OK(doca_sta_eu_reset_stats_type(target.sta, DOCA_STA_EU_MAX));
	FAILS(INVALID_VALUE, doca_sta_eu_reset_stats_type(target.sta, DOCA_STA_EU_TYPE_UNKNOWN));
	FAILS(INVALID_VALUE, doca_sta_eu_reset_stats_type(target.sta, (enum dpa_sta_eu_type)5));
	OK(doca_sta_get_be_queue_stats(target.end, target.queue, &entries, &number));
	FAILS(INVALID_VALUE, doca_sta_get_be_queue_stats(NULL, target.queue, &entries, &number));
	OK(doca_sta_get_ns_stats(target.subsystem, target.space, &entries, &number));
	FAILS(INVALID_VALUE, doca_sta_get_ns_stats(target.subsystem, NULL, &entries, &number));
#if AFTER_3_0
	{
		enum dpa_sta_eu_state state = DOCA_STA_EU_STATE_IDLE;
		union doca_data data = {0};

		OK(doca_sta_get_eu_state(units[0], &state));
		CHECK(state == DOCA_STA_EU_STATE_STARTED);
		OK(doca_sta_get_be_queue_mapping_info(target.queue, &entries, &number));
		FAILS(INVALID_VALUE, doca_sta_io_qp_get_user_data(NULL, &data));
		FAILS(INVALID_VALUE, doca_sta_io_qp_set_user_data(target.io, NULL, data));
	}
#endif
}

/* Threads of this process that serve a target. */
static int units(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) != NULL)
			count += strcmp(name, "doca-sta\n") == 0;
		fclose(file);
	}
	closedir(tasks);
	return count;
}

/* The kernel shows a thread for a moment after it was joined. */
static int no_units(void)
{
	uint64_t until = now_ms() + PATIENCE_MS;

	while (units() > 0 && now_ms() < until)
		sched_yield();
	return units() == 0;
}

int main(void)
{
	refuse_idle();
	CHECK(no_units());
	target_open();
	CHECK(units() == 1);
	refuse_io();
	refuse_statistics();
	refuse_back_ends();
	refuse_alloc();
	refuse_clients();
	refuse_commands();
	refuse_subsystems();
	target_close();
	CHECK(no_units());
	return check_summary();
}
