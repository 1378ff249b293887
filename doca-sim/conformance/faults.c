/*
 * Faults on request, profiles, strict mode, and GIDs that do not reach each other: each in a process of its own, because
 * all of them are read once, from the environment. What the SDK says on stderr is part of the contract.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include <doca_dma.h>
#include <doca_version.h>

#include "side.h"

#define PORT 13711

static struct side a, b;
static struct doca_rdma_connection *from_a, *from_b;

/* Two sides on one engine would share progress; these have one each, so both are progressed. */
#define BOTH_UNTIL(condition)                                                                      \
	do {                                                                                       \
		uint64_t both_until_ = now_ms() + PATIENCE_MS;                                     \
		int both_fine_;                                                                    \
		while (!(both_fine_ = (condition)) && now_ms() < both_until_)                      \
			if (!doca_pe_progress(a.pe) & !doca_pe_progress(b.pe))                     \
				sched_yield();                                                     \
		check_result(both_fine_, __FILE__, __LINE__, "in time: " #condition);              \
	} while (0)

static void open_both(void)
{
	side_open(&a);
	side_open(&b);
	side_join(&a, &from_a, &b, &from_b);
}

static void close_both(void)
{
	side_close(&a);
	side_close(&b);
}

/* Sends without data, `count` of them, each with its number as its word. */
static void send_many(int count)
{
	for (int i = 0; i < count; i++)
		side_receive(&b, NULL, 100 + i);
	for (int i = 0; i < count; i++)
		side_send(&a, from_a, NULL, i);
}

/* Faults of tasks. */

static void third_send_fails(void)
{
	open_both();
	send_many(4);
	BOTH_UNTIL(a.failed == 1);
	CHECK(a.succeeded == 2 && a.task_data == 2 && a.status == DOCA_ERROR_TIME_OUT);
	/* The connection is lost with it, on both sides, and nothing came after. */
	BOTH_UNTIL(a.failed == 2);
	CHECK(a.succeeded == 2 && a.status == DOCA_ERROR_IO_FAILED && b.succeeded == 2 && b.failed == 0);
	side_send(&b, from_b, NULL, 7);
	BOTH_UNTIL(b.failed == 1);
	close_both();
}

static void receive_fails(void)
{
	open_both();
	send_many(2);
	BOTH_UNTIL(b.failed == 1);
	CHECK(b.succeeded == 0 && b.task_data == 100 && b.status == DOCA_ERROR_UNKNOWN);
	side_send(&b, from_b, NULL, 7);
	BOTH_UNTIL(b.failed == 2);
	close_both();
}

static void submits_refused(void)
{
	struct doca_task *task;

	open_both();
	send_many(1);
	BOTH_UNTIL(a.succeeded == 1 && b.succeeded == 1);
	task = side_message(&a, from_a, NULL, 5);
	FAILS(AGAIN, doca_task_submit(task));
	FAILS(AGAIN, doca_task_submit(task));
	CHECK(doca_task_get_status(task) == DOCA_SUCCESS);
	doca_task_free(task);
	close_both();
}

static void delayed(void)
{
	uint64_t started = now_ms();

	open_both();
	send_many(3);
	/* The second is late, the third waits behind it: order within a connection stays. */
	BOTH_UNTIL(a.succeeded == 2);
	CHECK(now_ms() - started >= 200 && a.task_data == 1 && b.succeeded == 3);
	BOTH_UNTIL(a.succeeded == 3);
	CHECK(a.task_data == 2 && a.failed == 0);
	close_both();
}

static void cut(void)
{
	open_both();
	send_many(3);
	BOTH_UNTIL(a.failed == 1);
	CHECK(a.succeeded == 2 && a.status == DOCA_ERROR_IO_FAILED && b.succeeded == 2);
	close_both();
}

static void frozen(void)
{
	uint64_t started = now_ms();

	open_both();
	/* a is frozen by its first task: it neither sends nor takes. */
	side_receive(&a, NULL, 50);
	side_receive(&b, NULL, 60);
	side_send(&a, from_a, NULL, 1);
	side_send(&b, from_b, NULL, 2);
	BOTH_UNTIL(a.succeeded == 2 && b.succeeded == 2);
	CHECK(now_ms() - started >= 300 && a.failed + b.failed == 0);
	close_both();
}

static void reordered(void)
{
	open_both();
	send_many(TASKS);
	BOTH_UNTIL(a.succeeded == TASKS && b.succeeded == TASKS);
	CHECK(a.task_data == TASKS - 1 && b.task_data == 100 + TASKS - 1 && a.failed + b.failed == 0);
	close_both();
}

static void exhausted(void)
{
	struct doca_rdma_task_send *task = NULL, *second = NULL;

	open_both();
	OK(doca_rdma_task_send_allocate_init(a.rdma, from_a, NULL, (union doca_data){.u64 = 0}, &task));
	FAILS(NO_MEMORY, doca_rdma_task_send_allocate_init(a.rdma, from_a, NULL, (union doca_data){.u64 = 0}, &second));
	CHECK(second == NULL);
	doca_task_free(doca_rdma_task_send_as_task(task));
	close_both();
}

/* Faults of calls. */

static void calls_fail(void)
{
	struct doca_pe *pe = NULL;

	OK(doca_pe_create(&pe));
	OK(doca_pe_destroy(pe));
	pe = NULL;
	FAILS(NO_MEMORY, doca_pe_create(&pe));
	CHECK(pe == NULL);
	FAILS(NO_MEMORY, doca_pe_create(&pe));
}

/* What the public libraries ask the engine for a function that it does not have. */
static void missing_call_fails(void)
{
	doca_error_t (*answer)(const char *) = NULL;

	*(void **)&answer = dlsym(RTLD_DEFAULT, "sim_not_supported");
	CHECK(answer != NULL);
	FAILS(NOT_SUPPORTED, answer("doca_sta_get_eu_name"));
	FAILS(NOT_SUPPORTED, answer("doca_sta_get_eu_stats"));
	FAILS(DRIVER, answer("doca_sta_get_eu_name"));
	FAILS(NOT_SUPPORTED, answer("doca_sta_get_eu_name"));
}

static void start_refused(void)
{
	side_create(&a, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	FAILS(INITIALIZATION, doca_ctx_start(a.ctx));
	CHECK(side_is(&a, DOCA_CTX_STATE_IDLE));
	OK(doca_ctx_start(a.ctx));
	side_close(&a);
}

static void older(void)
{
	CHECK(strcmp(doca_version_runtime(), "3.0.0058") == 0);
	CHECK(strcmp(doca_version(), "3.0.0058") != 0);
}

static void nothing_happens(void)
{
	open_both();
	send_many(1);
	BOTH_UNTIL(a.succeeded == 1 && b.succeeded == 1);
	close_both();
}

/* The faults of the other libraries' tasks. */

static int copies, failed_copies;
static doca_error_t copy_status;

static void copied(struct doca_dma_task_memcpy *task, union doca_data data, union doca_data ctx)
{
	(void)data, (void)ctx;
	copies++;
	doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static void not_copied(struct doca_dma_task_memcpy *task, union doca_data data, union doca_data ctx)
{
	(void)data, (void)ctx;
	failed_copies++;
	copy_status = doca_task_get_status(doca_dma_task_memcpy_as_task(task));
	doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static void copy_fails(void)
{
	struct doca_dma_task_memcpy *task = NULL;
	struct doca_buf *from, *to;
	struct doca_dma *dma = NULL;
	enum doca_ctx_states state;

	side_open(&a);
	from = side_data(&a, 0, 64);
	to = side_room(&a, 64, 64);
	a.memory[0] = 'x';
	OK(doca_dma_create(a.dev, &dma));
	OK(doca_pe_connect_ctx(a.pe, doca_dma_as_ctx(dma)));
	OK(doca_dma_task_memcpy_set_conf(dma, copied, not_copied, 1));
	OK(doca_ctx_start(doca_dma_as_ctx(dma)));
	OK(doca_dma_task_memcpy_alloc_init(dma, from, to, (union doca_data){.u64 = 0}, &task));
	OK(doca_task_submit(doca_dma_task_memcpy_as_task(task)));
	UNTIL(&a, failed_copies == 1);
	CHECK(copies == 0 && copy_status == DOCA_ERROR_DRIVER && a.memory[64] == 0);
	UNTIL(&a, doca_ctx_get_state(doca_dma_as_ctx(dma), &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_IDLE);
	OK(doca_dma_destroy(dma));
	put(from);
	put(to);
	side_close(&a);
}

/* Profiles. */

#define CHANGE(previous, next) (DOCA_CTX_STATE_##previous * 4 + DOCA_CTX_STATE_##next)

static void create_watched(struct side *side)
{
	side_create(side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_ctx_set_state_changed_cb(side->ctx, side_state));
}

static void starting_until_connected(void)
{
	create_watched(&a);
	create_watched(&b);
	FAILS(IN_PROGRESS, doca_ctx_start(a.ctx));
	FAILS(IN_PROGRESS, doca_ctx_start(b.ctx));
	for (int i = 0; i < 100; i++)
		CHECK(doca_pe_progress(a.pe) == 0);
	CHECK(side_is(&a, DOCA_CTX_STATE_STARTING) && a.num_states == 1 && a.states[0] == CHANGE(IDLE, STARTING));
	side_join(&a, &from_a, &b, &from_b);
	BOTH_UNTIL(side_is(&a, DOCA_CTX_STATE_RUNNING) && side_is(&b, DOCA_CTX_STATE_RUNNING));
	CHECK(a.num_states == 2 && a.states[1] == CHANGE(STARTING, RUNNING));
	send_many(1);
	BOTH_UNTIL(a.succeeded == 1 && b.succeeded == 1);
	close_both();
}

/* RDMA CM, from within the state that waits for it. */
static void starting_until_established(void)
{
	struct doca_rdma_addr *addr = NULL;

	side_create(&a, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	side_create(&b, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	FAILS(IN_PROGRESS, doca_ctx_start(a.ctx));
	FAILS(IN_PROGRESS, doca_ctx_start(b.ctx));
	OK(doca_rdma_start_listen_to_port(b.rdma, PORT));
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT, &addr));
	OK(doca_rdma_connect_to_addr(a.rdma, addr, (union doca_data){.u64 = 1}));
	BOTH_UNTIL(side_is(&a, DOCA_CTX_STATE_RUNNING) && side_is(&b, DOCA_CTX_STATE_RUNNING));
	CHECK(a.established == 1);
	side_stop(&a);
	side_stop(&b);
	OK(doca_rdma_addr_destroy(addr));
	close_both();
}

static void running_from_progress(void)
{
	create_watched(&a);
	FAILS(IN_PROGRESS, doca_ctx_start(a.ctx));
	CHECK(side_is(&a, DOCA_CTX_STATE_STARTING));
	CHECK(doca_pe_progress(a.pe) == 1);
	CHECK(side_is(&a, DOCA_CTX_STATE_RUNNING) && a.num_states == 2 && a.states[1] == CHANGE(STARTING, RUNNING));
	side_close(&a);
}

static void nothing_before_the_event(void)
{
	struct pollfd waited = {.events = POLLIN};

	open_both();
	OK(doca_pe_get_notification_handle(b.pe, &waited.fd));
	side_receive(&b, NULL, 1);
	OK(doca_pe_request_notification(b.pe));
	CHECK(poll(&waited, 1, 0) == 0 && doca_pe_progress(b.pe) == 0);
	side_send(&a, from_a, NULL, 2);
	CHECK(poll(&waited, 1, PATIENCE_MS) == 1);
	OK(doca_pe_clear_notification(b.pe, 0));
	UNTIL(&b, b.succeeded == 1);
	/* Armed, and the event is far: a state that is due does not come. */
	OK(doca_pe_request_notification(b.pe));
	CHECK(doca_pe_progress(b.pe) == 0);
	OK(doca_pe_clear_notification(b.pe, 0));
	close_both();
}

static void idle_is_a_bad_state(void)
{
	side_create(&a, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	FAILS(BAD_STATE, doca_ctx_stop(a.ctx));
	OK(doca_ctx_start(a.ctx));
	OK(doca_ctx_stop(a.ctx));
	OK(doca_rdma_destroy(a.rdma));
	OK(doca_pe_destroy(a.pe));
}

static void never_started(void)
{
	struct doca_buf_inventory *inventory;
	struct doca_buf *buf;

	side_open(&a);
	OK(doca_buf_inventory_create(1, &inventory));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, a.map, a.memory, 8, &buf));
	put(buf);
	OK(doca_buf_inventory_destroy(inventory));
	side_close(&a);
}

static void only_the_other_hears(void)
{
	struct doca_rdma_addr *addr = NULL;

	side_open(&a);
	side_open(&b);
	OK(doca_rdma_start_listen_to_port(b.rdma, PORT));
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT, &addr));
	OK(doca_rdma_connect_to_addr(a.rdma, addr, (union doca_data){.u64 = 1}));
	BOTH_UNTIL(a.established == 1 && b.established == 1);
	OK(doca_rdma_connection_disconnect(a.connection));
	BOTH_UNTIL(b.disconnections == 1);
	CHECK(doca_pe_progress(a.pe) == 0 && a.disconnections == 0 && a.failures == 0);
	side_stop(&a);
	OK(doca_rdma_addr_destroy(addr));
	close_both();
}

static void failure_stops_the_context(void)
{
	open_both();
	send_many(2);
	BOTH_UNTIL(side_is(&a, DOCA_CTX_STATE_IDLE));
	CHECK(a.failed == 2 && a.succeeded == 0 && a.status == DOCA_ERROR_SHUTDOWN);
	OK(doca_ctx_start(a.ctx));
	close_both();
}

static void full_queue(void)
{
	struct doca_task *task;

	side_create(&a, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_send_queue_size(a.rdma, 2));
	OK(doca_ctx_start(a.ctx));
	side_open(&b);
	side_join(&a, &from_a, &b, &from_b);
	side_send(&a, from_a, NULL, 1);
	side_send(&a, from_a, NULL, 2);
	task = side_message(&a, from_a, NULL, 3);
	FAILS(AGAIN, doca_task_submit(task));
	doca_task_free(task);
	close_both();
}

static void exported_stays(void)
{
	const void *blob = NULL;
	size_t len = 0;
	struct doca_mmap *map = NULL;
	char *memory = calloc(1, 4096);

	side_open(&a);
	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, a.dev));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ));
	OK(doca_mmap_set_memrange(map, memory, 4096));
	OK(doca_mmap_start(map));
	OK(doca_mmap_export_rdma(map, a.dev, &blob, &len));
	FAILS(NOT_PERMITTED, doca_mmap_stop(map));
	OK(doca_mmap_destroy(map));
	side_close(&a);
	free(memory);
}

/* Strict mode. */

static void source_changed(void)
{
	struct doca_buf *source, *room;

	open_both();
	memset(a.memory, 's', 64);
	memset(b.memory, 'k', 64);
	source = side_data(&a, 0, 64);
	room = side_room(&b, 0, 64);
	side_receive(&b, room, 1);
	/* Nothing has come: the room does not hold what it held. */
	CHECK((unsigned char)b.memory[0] == 0xdb && (unsigned char)b.memory[63] == 0xdb && b.memory[64] == 0);
	side_send(&a, from_a, source, 2);
	a.memory[5] = 'S';
	BOTH_UNTIL(a.succeeded == 1 && b.succeeded == 1);
	put(source);
	put(room);
	close_both();
}

static void room_is_put_back(void)
{
	struct doca_buf *source, *room, *other;

	open_both();
	memset(a.memory, 's', 16);
	memset(b.memory, 'k', 128);
	source = side_data(&a, 0, 16);
	room = side_room(&b, 0, 64);
	other = side_room(&b, 64, 64);
	side_receive(&b, room, 1);
	side_receive(&b, other, 2);
	side_send(&a, from_a, source, 3);
	BOTH_UNTIL(a.succeeded == 1 && b.succeeded == 1);
	CHECK(memcmp(b.memory, a.memory, 16) == 0 && b.memory[16] == 'k' && b.memory[63] == 'k');
	side_stop(&b);
	CHECK(b.failed == 1 && b.memory[64] == 'k' && b.memory[127] == 'k');
	put(source);
	put(room);
	put(other);
	close_both();
}

/* GIDs. */

static void open_with_gid(struct side *side, const char *device, uint32_t index)
{
	side_create(side, device, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_gid_index(side->rdma, index));
	OK(doca_ctx_start(side->ctx));
}

static void gids(const char *device_a, uint32_t index_a, const char *device_b, uint32_t index_b, int reach)
{
	uint64_t started = now_ms();

	open_with_gid(&a, device_a, index_a);
	open_with_gid(&b, device_b, index_b);
	side_join(&a, &from_a, &b, &from_b);
	send_many(1);
	if (reach) {
		BOTH_UNTIL(a.succeeded == 1 && b.succeeded == 1);
	} else {
		BOTH_UNTIL(a.failed == 1);
		CHECK(a.status == DOCA_ERROR_IO_FAILED && now_ms() - started >= 900 && b.succeeded + b.failed == 0);
	}
	close_both();
}

static void alike(void)
{
	for (uint32_t index = 0; index < 4; index++)
		gids("mlx5_0", index, "mlx5_1", index, 1);
}

static void another_kind(void)
{
	gids("mlx5_0", 0, "mlx5_0", 1, 0);
}

static void another_family(void)
{
	gids("mlx5_0", 1, "mlx5_0", 3, 0);
}

static void empty_slot(void)
{
	gids("mlx5_0", 3, "mlx5_0", 9, 0);
}

static void another_network(void)
{
	gids("mlx5_0", 3, "mlx5_1", 3, 0);
}

/* RDMA CM looks its GIDs up by address. */
static void by_address(void)
{
	struct doca_rdma_addr *addr = NULL;

	open_with_gid(&a, "mlx5_0", 0);
	open_with_gid(&b, "mlx5_0", 9);
	OK(doca_rdma_start_listen_to_port(b.rdma, PORT));
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", PORT, &addr));
	OK(doca_rdma_connect_to_addr(a.rdma, addr, (union doca_data){.u64 = 1}));
	BOTH_UNTIL(a.established == 1 && b.established == 1);
	from_a = a.connection;
	send_many(1);
	BOTH_UNTIL(a.succeeded == 1 && b.succeeded == 1);
	side_stop(&a);
	OK(doca_rdma_addr_destroy(addr));
	close_both();
}

#define FAULTS "DOCA_SIM_FAULTS"
#define PROFILE "DOCA_SIM_PROFILE"
#define NEVER "never happened"

static const struct {
	const char *name;
	void (*run)(void);
	/* The environment. */
	const char *variable, *value;
	/* What must be said on stderr; and what must not, if there is nothing to be said. */
	const char *said;
} scenarios[] = {
	{"third send fails", third_send_fails, FAULTS, "fail=send:3:TIME_OUT", "fault on request: fail=send:3:TIME_OUT"},
	{"receive fails", receive_fails, FAULTS, "fail=receive:1:UNKNOWN", "fault on request"},
	{"submits refused", submits_refused, FAULTS, "refuse=send:2+:DOCA_ERROR_AGAIN", "fault on request"},
	{"delayed", delayed, FAULTS, "delay=send:2:200", "fault on request"},
	{"cut", cut, FAULTS, "cut=0:2", "fault on request"},
	{"frozen", frozen, FAULTS, "freeze=1:300", "fault on request"},
	{"frozen from the start", frozen, FAULTS, "freeze=0:300", "fault on request"},
	{"reordered", reordered, FAULTS, "reorder=42", "fault on request"},
	{"exhausted", exhausted, FAULTS, "exhaust=send:1", "fault on request"},
	{"calls fail", calls_fail, FAULTS, "call=doca_pe_create:2:NO_MEMORY; call=doca_pe_create:3:NO_MEMORY", "call=doca_pe_create:3"},
	{"missing call fails", missing_call_fails, FAULTS, "call=doca_sta_get_eu_name:2:DRIVER", "fault on request"},
	{"start refused", start_refused, FAULTS, "start=doca_rdma:1:INITIALIZATION", "fault on request"},
	{"older", older, FAULTS, "version=3.0.0058", NULL},
	{"copy fails", copy_fails, FAULTS, "fail=memcpy:1:DRIVER", "fault on request"},
	{"never", nothing_happens, FAULTS, "fail=write:1:IO_FAILED", "never happened: fail=write:1:IO_FAILED"},
	{"unknown word", nothing_happens, FAULTS, "explode=send:1", "unknown word 'explode'"},
	{"bad field", nothing_happens, FAULTS, "fail=send:first:IO_FAILED", "NTH 'first'"},
	{"no file", nothing_happens, FAULTS, "@/nowhere/faults", "/nowhere/faults"},
	{"starting until connected", starting_until_connected, PROFILE, "starting-until-connected", NULL},
	{"starting until established", starting_until_established, PROFILE, "starting-until-connected", NULL},
	{"running from progress", running_from_progress, PROFILE, "callbacks-in-progress", NULL},
	{"nothing before the event", nothing_before_the_event, PROFILE, "selective-quirk", NULL},
	{"idle is a bad state", idle_is_a_bad_state, PROFILE, "stop-idle-bad-state", NULL},
	{"never started", never_started, PROFILE, "inventory-needs-no-start", NULL},
	{"only the other hears", only_the_other_hears, PROFILE, "disconnect-not-told-to-initiator", NULL},
	{"full queue", full_queue, PROFILE, "full-is-again", NULL},
	{"exported stays", exported_stays, PROFILE, "exported-mmap-not-stoppable", NULL},
	{"source changed", source_changed, "DOCA_SIM_STRICT", "1", "the source of a send task was changed"},
	{"strict?", nothing_happens, "DOCA_SIM_STRICT", "yes", "DOCA_SIM_STRICT is `yes`"},
	{"wrong name", nothing_happens, "DOCA_SIM_FAULT", "fail=send:1:IO_FAILED", "DOCA_SIM_FAULT is no variable"},
	{"room is put back", room_is_put_back, PROFILE, "strict", NULL},
	{"alike", alike, NULL, NULL, NULL},
	{"another kind", another_kind, NULL, NULL, "is RoCE v1, the peer's is RoCE v2 over IPv6"},
	{"another family", another_family, NULL, NULL, "the peer's is RoCE v2 over IPv4, 192.168.1.1/0"},
	{"empty slot", empty_slot, NULL, NULL, "the peer's is an empty slot"},
	{"by address", by_address, NULL, NULL, NULL},
};

/* This program again, with a scenario; gives what it said. */
static const char *said_by(const char *name)
{
	static char said[1 << 16];
	int status = -1;
	FILE *file = tmpfile();
	size_t length;
	pid_t pid;

	if (file == NULL)
		give_up("tmpfile");
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(fileno(file), STDERR_FILENO);
		alarm(60);
		execl(check_program(), check_program(), name, (char *)NULL);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		give_up("fork");
	rewind(file);
	length = fread(said, 1, sizeof(said) - 1, file);
	said[length] = '\0';
	fclose(file);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fprintf(stderr, "%s:\n%s", name, said);
	check_result(WIFEXITED(status) && WEXITSTATUS(status) == 0, __FILE__, __LINE__, name);
	return said;
}

/* Two at once, as a file and with another variable beside it. */
static void several(void)
{
	const char *said;
	char path[] = "/tmp/doca-faults-XXXXXX", value[64];
	int fd = mkstemp(path);
	const char text[] = "# in a file\nfail=send:1:IO_FAILED  # the first\n";

	if (fd < 0 || write(fd, text, sizeof(text) - 1) < 0)
		give_up("mkstemp");
	close(fd);
	snprintf(value, sizeof(value), "@%s", path);
	setenv(FAULTS, value, 1);
	setenv(PROFILE, "failed-task-stops-context, flushed-shutdown", 1);
	said = said_by("failure stops the context");
	CHECK(strstr(said, "fault on request: fail=send:1:IO_FAILED") != NULL && strstr(said, NEVER) == NULL);
	unsetenv(FAULTS);
	unsetenv(PROFILE);
	unlink(path);
}

static void networks(void)
{
	const char text[] = "{\"extends\": \"default\", \"host\": {\"mlx5_0\": {\"ipv4_prefix\": 24}, "
			    "\"mlx5_1\": {\"ipv4_prefix\": 24}}}";
	char path[] = "/tmp/doca-faults-XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0 || write(fd, text, sizeof(text) - 1) < 0)
		give_up("mkstemp");
	close(fd);
	setenv("DOCA_SIM_TOPOLOGY", path, 1);
	CHECK(strstr(said_by("another network"), "is RoCE v2 over IPv4, 192.168.1.1/24") != NULL);
	unsetenv("DOCA_SIM_TOPOLOGY");
	unlink(path);
}

int main(int argc, char **argv)
{
	const size_t count = sizeof(scenarios) / sizeof(*scenarios);

	if (argc > 1 && strcmp(argv[1], "failure stops the context") == 0) {
		failure_stops_the_context();
		return check_summary();
	}
	if (argc > 1 && strcmp(argv[1], "another network") == 0) {
		another_network();
		return check_summary();
	}
	for (size_t i = 0; argc > 1 && i < count; i++) {
		if (strcmp(argv[1], scenarios[i].name) == 0) {
			scenarios[i].run();
			return check_summary();
		}
	}
	for (size_t i = 0; i < count; i++) {
		const char *variable = scenarios[i].variable, *wanted = scenarios[i].said, *said;

		if (variable != NULL)
			setenv(variable, scenarios[i].value, 1);
		said = said_by(scenarios[i].name);
		check_result(wanted == NULL || strstr(said, wanted) != NULL, __FILE__, __LINE__, scenarios[i].name);
		if (wanted == NULL || strstr(wanted, NEVER) == NULL)
			check_result(strstr(said, NEVER) == NULL, __FILE__, __LINE__, scenarios[i].name);
		if (variable != NULL)
			unsetenv(variable);
	}
	several();
	networks();
	return check_summary();
}
