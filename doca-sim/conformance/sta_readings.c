/*
 * What the simulator's profiles, the switches of its topology and faults on request change for a storage target. Each is read
 * once by a process, so each has one: this program again.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "sta_initiator.h"
#include "sta_target.h"

static struct queue queue;

/* A target and its engine, idle. */
static void prepare(void)
{
	target = (struct target){.dev = open_device("mlx5_0")};
	if (target.dev == NULL)
		give_up("no such device");
	OK(doca_pe_create(&target.pe));
	target.sta = sta_ready(target.dev, target.pe);
	target.ctx = doca_sta_as_ctx(target.sta);
}

static void discard(void)
{
	OK(doca_sta_destroy(target.sta));
	OK(doca_pe_destroy(target.pe));
	OK(doca_dev_close(target.dev));
	CHECK(allocations == 0);
}

static void *host_opens(void *qid)
{
	initiator_open(&queue, *(uint16_t *)qid, 12);
	return NULL;
}

/* A host in this process, connected but for the command. */
static void host(uint16_t qid)
{
	pthread_t thread;

	pthread_create(&thread, NULL, host_opens, &qid);
	SERVE_UNTIL(num_connections() == 1 && pthread_tryjoin_np(thread, NULL) == 0);
}

static void both_until(int wanted)
{
	uint64_t until = now_ms() + PATIENCE_MS;

	while (queue.side.succeeded + queue.side.failed < wanted && now_ms() < until) {
		target_step();
		doca_pe_progress(queue.side.pe);
	}
	CHECK(queue.side.succeeded + queue.side.failed >= wanted);
}

/* A command and its answer; gives the status. */
static uint16_t exchange(uint8_t *capsule, uint32_t len)
{
	int before = queue.side.succeeded;

	post(&queue, capsule, len, 0);
	both_until(before + 2);
	CHECK(queue.side.failed == 0);
	let_go(&queue);
	return get16((uint8_t *)queue.side.memory + RESPONSES + 14) >> 1;
}

static uint8_t *connect_capsule(uint16_t qid)
{
	uint8_t *capsule = command(&queue, NVME_FABRICS, 0, 0);

	capsule[4] = FABRICS_CONNECT;
	put16(capsule + 42, qid);
	put16(capsule + 44, 11);
	put32(capsule + 32, 1024);
	capsule[39] = SGL_IN_CAPSULE;
	memset(capsule + 64, 0, 1024);
	strcpy((char *)capsule + 64 + 256, NQN);
	return capsule;
}

static uint16_t read_blocks(void)
{
	uint8_t *capsule = command(&queue, NVME_READ, 1, 0);

	keyed(&queue, capsule, 0, 4096, SGL_KEYED);
	blocks(capsule, 0, 8);
	return exchange(capsule, 64);
}

static void start_at_once(void)
{
	struct doca_ctx *io;

	prepare();
	OK(doca_ctx_start(target.ctx));
	CHECK(ctx_is(target.ctx, DOCA_CTX_STATE_RUNNING));
	target.io = io_ready(target.sta, target.pe);
	io = doca_sta_io_as_ctx(target.io);
	OK(doca_ctx_start(io));
	CHECK(ctx_is(io, DOCA_CTX_STATE_RUNNING));
	stop(io);
	OK(doca_sta_io_destroy(target.io));
	stop(target.ctx);
	discard();
}

static void start_later(void)
{
	prepare();
	FAILS(IN_PROGRESS, doca_ctx_start(target.ctx));
	CHECK(ctx_is(target.ctx, DOCA_CTX_STATE_STARTING));
	FAILS(BAD_STATE, doca_sta_io_create(target.sta, &target.io));
	CHECK(doca_pe_progress(target.pe) == 1);
	CHECK(ctx_is(target.ctx, DOCA_CTX_STATE_RUNNING));
	stop(target.ctx);
	discard();
}

/* Set up before start; tasks need a target that runs all the same. */
static void set_up_idle(int also_running)
{
	struct doca_sta_producer_task_send *task = NULL;
	struct doca_sta_subs_handle *more = NULL;

	prepare();
	OK(doca_sta_subsystem_create(target.sta, NQN, &target.subsystem));
	OK(doca_sta_subsystem_add_dev(target.subsystem, target.dev));
	add_disk();
	FAILS(BAD_STATE, doca_sta_subsystem_task_rm_ns_alloc_init(target.subsystem, target.space, (union doca_data){0},
								  &task));
	start(target.ctx);
	if (also_running) {
		OK(doca_sta_subsystem_create(target.sta, "nqn.more", &more));
		OK(doca_sta_subsystem_destroy(more));
	} else {
		FAILS(BAD_STATE, doca_sta_subsystem_create(target.sta, "nqn.more", &more));
		FAILS(BAD_STATE, doca_sta_subsystem_destroy(target.subsystem));
	}
	remove_space();
	OK(doca_sta_be_destroy_queue_task_alloc_init(target.queue, (union doca_data){0}, &task));
	OK(doca_task_submit(doca_sta_producer_send_task_as_task(task)));
	SERVE_UNTIL(target.finished == 2);
	stop(target.ctx);
	OK(doca_sta_be_destroy(target.end));
	disk_close(&target.disk);
	OK(doca_sta_subsystem_destroy(target.subsystem));
	discard();
}

static void leave_target(void)
{
	initiator_close(&queue, 1);
	target_close();
}

/* Some submits have to be repeated, and everything works. */
static void again(void)
{
	target_open();
	host(1);
	CHECK(exchange(connect_capsule(1), 64 + 1024) == 0);
	for (int i = 0; i < 20; i++)
		CHECK(exchange(command(&queue, NVME_FLUSH, 1, 0), 64) == 0);
	CHECK(read_blocks() == 0);
	CHECK(target.agains >= 6);
	leave_target();
}

/* Five answers before the unit has looked at one. */
static void budget(void)
{
	int before;

	target_open();
	host(1);
	CHECK(exchange(connect_capsule(1), 64 + 1024) == 0);
	before = queue.side.succeeded;
	for (int slot = 0; slot < 8; slot++) {
		uint8_t *capsule = (uint8_t *)queue.side.memory + 64 * slot;

		memset(capsule, 0, 64);
		capsule[1] = 0x40;
		capsule[39] = SGL_KEYED;
		post(&queue, capsule, 64, slot);
	}
	both_until(before + 16);
	CHECK(queue.side.failed == 0);
	let_go(&queue);
	leave_target();
}

/* A read on the queue of the administration is a log page, or it is not. */
static void admin(int known)
{
	int commands;

	target_open();
	host(0);
	CHECK(exchange(connect_capsule(0), 64 + 1024) == 0);
	commands = target.commands;
	CHECK(read_blocks() == (known ? 0x4001 : 0));
	CHECK(target.commands == commands + known);
	leave_target();
}

static void unsupported(void)
{
	struct doca_dev *dev = open_device("mlx5_0");
	struct doca_sta *sta = NULL;

	FAILS(NOT_SUPPORTED, doca_sta_cap_is_supported(doca_dev_as_devinfo(dev)));
	FAILS(NOT_SUPPORTED, doca_sta_create(dev, &sta));
	OK(doca_dev_close(dev));
}

static void without_substrate(void)
{
	struct doca_dev *dev = open_device("mlx5_0");
	struct doca_sta *sta = NULL;

	OK(doca_sta_cap_is_supported(doca_dev_as_devinfo(dev)));
	FAILS(DRIVER, doca_sta_create(dev, &sta));
	OK(doca_dev_close(dev));
}

static void not_permitted(void)
{
	prepare();
	FAILS(NOT_PERMITTED, doca_ctx_start(target.ctx));
	CHECK(ctx_is(target.ctx, DOCA_CTX_STATE_IDLE));
	discard();
}

/* The connection is made, and then nothing arrives. */
static void not_steered(void)
{
	int before;

	target_open();
	host(1);
	before = queue.side.succeeded + queue.side.failed;
	post(&queue, connect_capsule(1), 64 + 1024, 0);
	both_until(before + 1);
	CHECK(queue.side.failed >= 1 && queue.side.status == DOCA_ERROR_IO_FAILED);
	CHECK(target.commands == 0 && target.transport_errors == 0 && num_connections() == 1);
	leave_target();
}

/* A device without reliable connections. */
static void no_transport(void)
{
	struct doca_dev *dev = open_device("mlx5_0");
	struct doca_sta *sta = NULL;

	OK(doca_sta_create(dev, &sta));
	FAILS(NOT_SUPPORTED, doca_sta_add_dev(sta, dev));
	OK(doca_sta_destroy(sta));
	OK(doca_dev_close(dev));
}

static void idle_only(void)
{
	set_up_idle(0);
}

static void idle_too(void)
{
	set_up_idle(1);
}

static void admin_known(void)
{
	admin(1);
}

static void admin_unknown(void)
{
	admin(0);
}

static void *meddle(void *unused)
{
	struct doca_sta_qp_handle *qp = NULL;

	(void)unused;
	FAILS(NOT_PERMITTED, doca_sta_io_qp_alloc(target.io, target.dev, &qp));
	return NULL;
}

/* Queue pairs are for the thread that progresses their context. */
static void other_thread(void)
{
	struct doca_sta_qp_handle *qp = NULL;
	pthread_t thread;

	target_open();
	/* The first progress of a context that runs says whose it is. */
	target_step();
	pthread_create(&thread, NULL, meddle, NULL);
	pthread_join(thread, NULL);
	OK(doca_sta_io_qp_alloc(target.io, target.dev, &qp));
	OK(doca_sta_io_qp_destroy(target.io, qp));
	target_close();
}

#if AFTER_3_0
static int seen;

static void with_data(struct doca_sta_qp_handle *qp, union doca_data data, const uint8_t *command, uint8_t *payload,
		      uint32_t len, bool valid, union doca_data token)
{
	union doca_data got = {0};

	OK(doca_sta_io_qp_get_user_data(qp, &got));
	seen += data.u64 == 77 && got.u64 == 77;
	command_came(qp, (union doca_data){.ptr = &target}, command, payload, len, valid, token);
}

/* The word of a queue pair goes before that of its context. */
static void own_data(void)
{
	target_open();
	stop(target.io_ctx);
	OK(doca_sta_io_non_offload_register_cb(target.io, with_data, (union doca_data){.u64 = 66}));
	start(target.io_ctx);
	host(1);
	OK(doca_sta_io_qp_set_user_data(target.io, target.connections[0].qp, (union doca_data){.u64 = 77}));
	CHECK(exchange(connect_capsule(1), 64 + 1024) == 0);
	CHECK(seen == 1);
	leave_target();
}
#endif

/* The second answer fails, and with it the connection. */
static void answer_fails(void)
{
	target_open();
	host(1);
	CHECK(exchange(connect_capsule(1), 64 + 1024) == 0);
	post(&queue, command(&queue, NVME_FLUSH, 1, 0), 64, 0);
	SERVE_UNTIL(target.failed == 1 && target.transport_errors == 1);
	CHECK(target.failure == DOCA_ERROR_TIME_OUT && target.syndrome == 0x14);
	leave(&target.connections[0]);
	SERVE_UNTIL(num_connections() == 0);
	leave_target();
}

/* The first disconnection fails: the queue pair stays as it is, and the next succeeds. */
static void disconnect_fails(void)
{
	struct doca_sta_producer_task_send *task = NULL;

	target_open();
	host(1);
	CHECK(exchange(connect_capsule(1), 64 + 1024) == 0);
	OK(doca_sta_io_task_disconnect_alloc_init(target.io, (union doca_data){0}, target.connections[0].qp, &task));
	OK(doca_task_submit(doca_sta_producer_send_task_as_task(task)));
	SERVE_UNTIL(target.failed == 1);
	CHECK(target.failure == DOCA_ERROR_TIME_OUT);
	FAILS(BAD_STATE, doca_sta_io_qp_destroy(target.io, target.connections[0].qp));
	CHECK(read_blocks() == 0);
	leave_target();
}

/* The first removal and the first destruction fail: everything is still there. */
static void removal_fails(void)
{
	struct doca_sta_producer_task_send *task = NULL;

	target_open();
	OK(doca_sta_subsystem_task_rm_ns_alloc_init(target.subsystem, target.space, (union doca_data){0}, &task));
	OK(doca_task_submit(doca_sta_producer_send_task_as_task(task)));
	SERVE_UNTIL(target.failed == 1);
	OK(doca_sta_be_destroy_queue_task_alloc_init(target.queue, (union doca_data){0}, &task));
	OK(doca_task_submit(doca_sta_producer_send_task_as_task(task)));
	SERVE_UNTIL(target.failed == 2);
	host(1);
	CHECK(exchange(connect_capsule(1), 64 + 1024) == 0);
	CHECK(read_blocks() == 0);
	leave_target();
}

/* An execution unit fails with the second command; after a fatal failure all that is left is to take everything down. */
static void unit_fails(int fatal)
{
	target_open();
	host(1);
	CHECK(exchange(connect_capsule(1), 64 + 1024) == 0);
	CHECK(read_blocks() == 0 && target.unit_errors == 0);
	if (fatal) {
		uint8_t *capsule = command(&queue, NVME_READ, 1, 0);

		keyed(&queue, capsule, 0, 4096, SGL_KEYED);
		blocks(capsule, 0, 8);
		post(&queue, capsule, 64, 0);
		SERVE_UNTIL(target.transport_errors == 1 && target.unit_errors == 1);
	} else {
		CHECK(read_blocks() == 0);
		SERVE_UNTIL(target.unit_errors == 1);
		CHECK(target.transport_errors == 0);
	}
	CHECK(target.fatal == fatal);
	leave_target();
}

static void unit_fatal(void)
{
	unit_fails(1);
}

static void unit_recoverable(void)
{
	unit_fails(0);
}

/* Completions come late, and in order. */
static void late(void)
{
	uint64_t began;

	target_open();
	host(1);
	began = now_ms();
	CHECK(exchange(connect_capsule(1), 64 + 1024) == 0);
	SERVE_UNTIL(target.finished == 1);
	CHECK(now_ms() - began >= 100);
	leave_target();
}

/* No task is left after two. */
static void exhausted(void)
{
	struct doca_sta_producer_task_send *tasks[3] = {NULL};

	target_open();
	host(1);
	for (int i = 0; i < 2; i++)
		OK(doca_sta_io_task_disconnect_alloc_init(target.io, (union doca_data){0}, target.connections[0].qp,
							  &tasks[i]));
	FAILS(NO_MEMORY, doca_sta_io_task_disconnect_alloc_init(target.io, (union doca_data){0},
								target.connections[0].qp, &tasks[2]));
	for (int i = 0; i < 2; i++)
		doca_task_free(doca_sta_producer_send_task_as_task(tasks[i]));
	leave_target();
}

/* Role, profile, faults, and what the topology says about the device. */
static const struct {
	const char *role, *profile, *faults, *device;
	void (*run)(void);
} readings[] = {
	{"default", "", "", "", start_later},
	{"at-once", "sta-start-at-once", "", "", start_at_once},
	{"idle", "sta-setup-idle", "", "", idle_only},
	{"any", "sta-setup-any", "", "", idle_too},
	{"contention", "sta-again-contention", "", "", again},
	{"budget", "sta-again-budget", "", "", budget},
	{"admin", "", "", "", admin_known},
	{"no-admin", "sta-no-admin-qp", "", "", admin_unknown},
	{"unsupported", "", "", "\"sta\": {\"supported\": false}", unsupported},
	{"substrate", "", "", "\"sta\": {\"substrate\": false}", without_substrate},
	{"permitted", "", "", "\"sta\": {\"permitted\": false}", not_permitted},
	{"steering", "", "", "\"sta\": {\"steering\": false}", not_steered},
	{"transport", "", "", "\"rdma\": {\"transports\": {\"rc\": false}}", no_transport},
	{"thread", "strict", "", "", other_thread},
#if AFTER_3_0
	{"own-data", "", "", "", own_data},
#endif
	{"answer", "", "fail=sta_rdma_send:2:TIME_OUT", "", answer_fails},
	{"disconnect", "", "fail=sta_disconnect:1:TIME_OUT", "", disconnect_fails},
	{"removal", "", "fail=sta_rm_ns:1:TIME_OUT;fail=sta_destroy_queue:1:TIME_OUT", "", removal_fails},
	{"unit", "", "unit=2:recoverable", "", unit_recoverable},
	{"fatal", "", "unit=2:fatal", "", unit_fatal},
	{"late", "", "delay=sta_rdma_send:1:100", "", late},
	{"exhausted", "", "exhaust=sta_disconnect:2", "", exhausted},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(readings) / sizeof(*readings); i++) {
		char topology[] = "/tmp/doca-sim-conformance-XXXXXX", text[256];
		struct peer peer;
		int fd;

		if (argc > 1) {
			if (strcmp(argv[1], readings[i].role) == 0)
				readings[i].run();
			continue;
		}
		fd = mkstemp(topology);
		snprintf(text, sizeof(text), "{\"extends\": \"default\", \"host\": {\"mlx5_0\": {%s}}}", readings[i].device);
		CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
		close(fd);
		setenv("DOCA_SIM_TOPOLOGY", topology, 1);
		setenv("DOCA_SIM_PROFILE", readings[i].profile, 1);
		setenv("DOCA_SIM_FAULTS", readings[i].faults, 1);
		peer = peer_start(readings[i].role);
		peer_finish(&peer);
		unlink(topology);
	}
	if (argc > 1)
		return checks_failed != 0;
	return check_summary();
}
