/*
 * The permission matrix, cell by cell: every mask of a memory map, times every mask of a context, times every task. Where
 * DOCA's documents are silent the reading is one of the rows marked proposed in doca-sim/PERMISSIONS.md.
 *
 * A refusal by the peer ends the connection, names side and flag in the log of both sides, and touches no memory.
 */
#include <doca_log.h>
#include <doca_sync_event.h>

#include "side.h"

#define LOCAL DOCA_ACCESS_FLAG_LOCAL_READ_WRITE
#define READ DOCA_ACCESS_FLAG_RDMA_READ
#define WRITE DOCA_ACCESS_FLAG_RDMA_WRITE
#define ATOMIC DOCA_ACCESS_FLAG_RDMA_ATOMIC
#define ANY_RDMA (READ | WRITE | ATOMIC)
#define ANY_PCI (DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_PCI_READ_WRITE)

#define MAP_MASKS 128
#define CONTEXT_MASKS 16

static const union doca_data none;
static struct side a, b;
static struct doca_rdma_connection *to_b, *to_a;

/* Memory of `b` under one mask, and how `a` names it. */
struct window {
	struct doca_mmap *map, *imported;
	struct doca_buf *there;
};

static struct doca_sync_event *event;
static struct doca_sync_event_remote_net *remote_event;

/* What a cell has: a buffer of `a`, and a target at `b`. */
typedef struct doca_task *task_of(struct doca_buf *here, struct doca_buf *there);

static struct doca_task *send_task(struct doca_buf *here, struct doca_buf *there)
{
	struct doca_rdma_task_send *task = NULL;

	(void)there;
	OK(doca_rdma_task_send_allocate_init(a.rdma, to_b, here, none, &task));
	return doca_rdma_task_send_as_task(task);
}

static struct doca_task *receive_task(struct doca_buf *here, struct doca_buf *there)
{
	struct doca_rdma_task_receive *task = NULL;

	(void)there;
	OK(doca_rdma_task_receive_allocate_init(a.rdma, here, none, &task));
	return doca_rdma_task_receive_as_task(task);
}

static struct doca_task *read_task(struct doca_buf *here, struct doca_buf *there)
{
	struct doca_rdma_task_read *task = NULL;

	OK(doca_rdma_task_read_allocate_init(a.rdma, to_b, there, here, none, &task));
	return doca_rdma_task_read_as_task(task);
}

static struct doca_task *write_task(struct doca_buf *here, struct doca_buf *there)
{
	struct doca_rdma_task_write *task = NULL;

	OK(doca_rdma_task_write_allocate_init(a.rdma, to_b, here, there, none, &task));
	return doca_rdma_task_write_as_task(task);
}

static struct doca_task *write_imm_task(struct doca_buf *here, struct doca_buf *there)
{
	struct doca_rdma_task_write_imm *task = NULL;

	OK(doca_rdma_task_write_imm_allocate_init(a.rdma, to_b, here, there, 1, none, &task));
	return doca_rdma_task_write_imm_as_task(task);
}

static struct doca_task *swap_task(struct doca_buf *here, struct doca_buf *there)
{
	struct doca_rdma_task_atomic_cmp_swp *task = NULL;

	OK(doca_rdma_task_atomic_cmp_swp_allocate_init(a.rdma, to_b, there, here, 0, 1, none, &task));
	return doca_rdma_task_atomic_cmp_swp_as_task(task);
}

static struct doca_task *add_task(struct doca_buf *here, struct doca_buf *there)
{
	struct doca_rdma_task_atomic_fetch_add *task = NULL;

	OK(doca_rdma_task_atomic_fetch_add_allocate_init(a.rdma, to_b, there, here, 1, none, &task));
	return doca_rdma_task_atomic_fetch_add_as_task(task);
}

static struct doca_task *event_get_task(struct doca_buf *here, struct doca_buf *there)
{
	struct doca_rdma_task_remote_net_sync_event_get *task = NULL;

	(void)there;
	OK(doca_rdma_task_remote_net_sync_event_get_allocate_init(a.rdma, to_b, remote_event, here, none, &task));
	return doca_rdma_task_remote_net_sync_event_get_as_task(task);
}

static struct doca_task *event_set_task(struct doca_buf *here, struct doca_buf *there)
{
	struct doca_rdma_task_remote_net_sync_event_notify_set *task = NULL;

	(void)there;
	OK(doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(a.rdma, to_b, remote_event, here, none, &task));
	return doca_rdma_task_remote_net_sync_event_notify_set_as_task(task);
}

static struct doca_task *event_add_task(struct doca_buf *here, struct doca_buf *there)
{
	struct doca_rdma_task_remote_net_sync_event_notify_add *task = NULL;

	(void)there;
	OK(doca_rdma_task_remote_net_sync_event_notify_add_allocate_init(a.rdma, to_b, remote_event, here, 1, none,
									 &task));
	return doca_rdma_task_remote_net_sync_event_notify_add_as_task(task);
}

/* A row of the matrix. */
static const struct row {
	const char *name;
	task_of *make;
	/* Whether it fills its local buffer, and whether it names memory of the peer. */
	int fills, reaches;
	/* The flag that the peer's memory and context need. */
	uint32_t flag;
	/* Whether the peer receives something by it. */
	int delivers;
} rows[] = {
	{"send", send_task, 0, 0, 0, 1},
	{"receive", receive_task, 1, 0, 0, 0},
	{"read", read_task, 1, 1, READ, 0},
	{"write", write_task, 0, 1, WRITE, 0},
	{"write_imm", write_imm_task, 0, 1, WRITE, 1},
	{"atomic_cmp_swp", swap_task, 1, 1, ATOMIC, 0},
	{"atomic_fetch_add", add_task, 1, 1, ATOMIC, 0},
	{"remote_net_sync_event_get", event_get_task, 1, 0, READ, 0},
	{"remote_net_sync_event_notify_set", event_set_task, 0, 0, WRITE, 0},
	{"remote_net_sync_event_notify_add", event_add_task, 1, 0, ATOMIC, 0},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* What the SDK said since it was last looked at. */
static char line[1024], said[8192];

static void on_sdk(char *text)
{
	if (strlen(said) + strlen(text) < sizeof(said))
		strcat(said, text);
}

static const char *name_of(uint32_t flag)
{
	return flag == READ ? "DOCA_ACCESS_FLAG_RDMA_READ" :
	       flag == WRITE ? "DOCA_ACCESS_FLAG_RDMA_WRITE" : "DOCA_ACCESS_FLAG_RDMA_ATOMIC";
}

/* A failed cell is named; what it was about stands in `cell`. */
static char cell[256];

#define IN_CELL(condition) check_result(!!(condition), __FILE__, __LINE__, cell)

/* Progresses both sides; a cell that waits in vain fails. */
#define BOTH_UNTIL(condition)                                                                      \
	do {                                                                                       \
		uint64_t until_ = now_ms() + PATIENCE_MS;                                          \
		while (!(condition) && now_ms() < until_)                                          \
			doca_pe_progress(a.pe), doca_pe_progress(b.pe);                            \
		IN_CELL(condition);                                                                \
	} while (0)

static void open_sides(uint32_t of_a, uint32_t of_b)
{
	side_create(&a, "mlx5_0", LOCAL, of_a);
	side_enable(&a);
	side_create(&b, "mlx5_1", LOCAL | ANY_RDMA, of_b);
	OK(doca_ctx_start(a.ctx));
	OK(doca_ctx_start(b.ctx));
	side_join(&a, &to_b, &b, &to_a);
}

static void join_again(void)
{
	OK(doca_rdma_connection_disconnect(to_b));
	OK(doca_rdma_connection_disconnect(to_a));
	while (doca_pe_progress(a.pe) || doca_pe_progress(b.pe))
		;
	side_join(&a, &to_b, &b, &to_a);
}

static struct doca_mmap *map_of(struct side *side, uint32_t mask)
{
	struct doca_mmap *map = NULL;

	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, side->dev));
	OK(doca_mmap_set_permissions(map, mask));
	OK(doca_mmap_set_memrange(map, side->memory, 64));
	OK(doca_mmap_start(map));
	return map;
}

/* The two flags of PCI exclude each other. */
static int is_possible(uint32_t mask)
{
	struct doca_mmap *map = NULL;

	if ((mask & ANY_PCI) != ANY_PCI)
		return 1;
	OK(doca_mmap_create(&map));
	FAILS(INVALID_VALUE, doca_mmap_set_permissions(map, mask));
	OK(doca_mmap_destroy(map));
	return 0;
}

/* Without any RDMA flag a map is not exported at all. */
static int open_window(struct window *window, uint32_t mask)
{
	const void *blob = NULL;
	void *addr = NULL;
	size_t len = 0;

	if (!is_possible(mask))
		return 0;
	window->map = map_of(&b, mask);
	if (!(mask & ANY_RDMA)) {
		FAILS(NOT_PERMITTED, doca_mmap_export_rdma(window->map, b.dev, &blob, &len));
		OK(doca_mmap_destroy(window->map));
		return 0;
	}
	OK(doca_mmap_export_rdma(window->map, b.dev, &blob, &len));
	OK(doca_mmap_create_from_export(NULL, blob, len, a.dev, &window->imported));
	OK(doca_mmap_get_memrange(window->imported, &addr, &len));
	OK(doca_buf_inventory_buf_get_by_data(a.inventory, window->imported, addr, 8, &window->there));
	return 1;
}

static void close_window(struct window *window)
{
	put(window->there);
	OK(doca_mmap_destroy(window->imported));
	OK(doca_mmap_destroy(window->map));
}

static void open_event(void)
{
	const uint8_t *blob = NULL;
	size_t len = 0;

	OK(doca_sync_event_create(&event));
	OK(doca_sync_event_add_publisher_location_remote_net(event));
	OK(doca_sync_event_add_subscriber_location_cpu(event, b.dev));
	OK(doca_sync_event_start(event));
	OK(doca_sync_event_export_to_remote_net(event, &blob, &len));
	OK(doca_sync_event_remote_net_create_from_export(a.dev, blob, len, &remote_event));
}

static void close_event(void)
{
	OK(doca_sync_event_remote_net_destroy(remote_event));
	OK(doca_sync_event_stop(event));
	OK(doca_sync_event_destroy(event));
}

/* What a refusal is called has two readings; the simulator knows both. */
static doca_error_t refusal(void)
{
	const char *profile = getenv("DOCA_SIM_PROFILE");

	return profile != NULL && strstr(profile, "refused-io-failed") != NULL ? DOCA_ERROR_IO_FAILED
									       : DOCA_ERROR_NOT_PERMITTED;
}

/* After a refusal: the receive that was meant for the task takes an empty message. */
static void connect_again(const struct row *row, int received, int succeeded)
{
	join_again();
	if (row->delivers) {
		side_send(&a, to_b, NULL, 0);
		BOTH_UNTIL(b.succeeded == received + 1 && a.succeeded == succeeded + 1);
	}
}

/* The peer decides: its memory first needs its context's consent, then its own. */
static void ask(const struct row *row, struct doca_buf *here, struct doca_buf *there, uint32_t map, uint32_t context)
{
	uint32_t allowed = row->reaches ? map & context : context;
	const char *holder = context & row->flag ? "mmap" : "doca_rdma";
	int succeeded = a.succeeded, failed = a.failed;
	int received = b.succeeded, flushed = b.failed, named;
	char wanted[256];

	snprintf(cell, sizeof(cell), "%s, the peer's memory %#x, its context %#x", row->name, map, context);
	if (row->delivers)
		side_receive(&b, NULL, 0);
	said[0] = '\0';
	OK(doca_buf_reset_data_len(here));
	if (!row->fills)
		OK(doca_buf_set_data_len(here, 8));
	IN_CELL(doca_task_submit(row->make(here, there)) == DOCA_SUCCESS);
	/* Whatever comes of it: a wrong cell is told at once, and those behind it are tried all the same. */
	BOTH_UNTIL(a.succeeded + a.failed == succeeded + failed + 1);
	if (a.failed == failed) {
		IN_CELL((allowed & row->flag) == row->flag);
		BOTH_UNTIL(b.succeeded == received + row->delivers);
		IN_CELL(said[0] == '\0');
		return;
	}
	if ((allowed & row->flag) == row->flag) {
		IN_CELL(a.failed == failed);
		connect_again(row, received, succeeded);
		return;
	}
	IN_CELL(a.status == refusal());
	snprintf(wanted, sizeof(wanted), "refused: the peer's %s lacks %s", holder, name_of(row->flag));
	named = strstr(said, wanted) != NULL;
	IN_CELL(named);
	snprintf(wanted, sizeof(wanted), "refused: this side's %s lacks %s", holder, name_of(row->flag));
	if (named)
		BOTH_UNTIL(strstr(said, wanted) != NULL);
	IN_CELL(*(uint64_t *)(void *)b.memory == 0 && b.succeeded == received && b.failed == flushed);
	connect_again(row, received, succeeded);
}

static void peers_allow(void)
{
	for (uint32_t context = 0; context < CONTEXT_MASKS; context++) {
		struct doca_buf *here;

		open_sides(LOCAL, context);
		open_event();
		here = side_room(&a, 0, 8);
		for (uint32_t map = 0; map < MAP_MASKS; map++) {
			struct window window;

			if (!open_window(&window, map))
				continue;
			for (const struct row *row = rows; row < rows + ROWS; row++) {
				if (!row->reaches)
					continue;
				ask(row, here, window.there, map, context);
				memset(b.memory, 0, 8);
				memset(a.memory, 0, 8);
			}
			close_window(&window);
		}
		for (const struct row *row = rows; row < rows + ROWS; row++)
			if (row->flag && !row->reaches)
				ask(row, here, NULL, 0, context);
		put(here);
		close_event();
		side_close(&a);
		side_close(&b);
	}
}

/* Our own memory: what is to be filled must be writable, and nothing else matters. */
static void our_memory_allows(void)
{
	struct window window;
	struct doca_buf *room;

	open_sides(LOCAL, ANY_RDMA);
	open_event();
	open_window(&window, LOCAL | ANY_RDMA);
	room = side_room(&b, 8, 8);
	for (uint32_t mask = 0; mask < MAP_MASKS; mask++) {
		struct doca_mmap *map;

		if (!is_possible(mask))
			continue;
		map = map_of(&a, mask);
		for (const struct row *row = rows; row < rows + ROWS; row++) {
			int succeeded = a.succeeded, received = b.succeeded;
			struct doca_buf *here = NULL;
			struct doca_task *task;
			doca_error_t submitted;

			snprintf(cell, sizeof(cell), "%s with our memory %#x", row->name, mask);
			OK(doca_buf_inventory_buf_get_by_addr(a.inventory, map, a.memory, 8, &here));
			if (!row->fills)
				OK(doca_buf_set_data(here, a.memory, 8));
			said[0] = '\0';
			task = row->make(here, window.there);
			if (row->fills && !(mask & LOCAL)) {
				IN_CELL(doca_task_submit(task) == DOCA_ERROR_NOT_PERMITTED);
				IN_CELL(strstr(said, "the destination's mmap lacks DOCA_ACCESS_FLAG_LOCAL_READ_WRITE"));
				doca_task_free(task);
				put(here);
				continue;
			}
			OK(doca_buf_reset_data_len(room));
			if (row->delivers)
				side_receive(&b, row->reaches ? NULL : room, 0);
			submitted = doca_task_submit(task);
			IN_CELL(submitted == DOCA_SUCCESS);
			/* A receive of ours waits for a message. */
			if (row->make == receive_task)
				side_send(&b, to_a, NULL, 0);
			BOTH_UNTIL(a.succeeded + a.failed == succeeded + 1);
			IN_CELL(a.succeeded == succeeded + 1);
			/* The connection is broken: whatever is tried behind it would only wait. */
			if (a.failed)
				exit(check_summary());
			BOTH_UNTIL(b.succeeded == received + (row->delivers || row->make == receive_task));
			put(here);
		}
		OK(doca_mmap_destroy(map));
	}
	put(room);
	close_window(&window);
	close_event();
	side_close(&a);
	side_close(&b);
}

/* Our own context needs no flag for what it asks of others. */
static void our_context_does_not_matter(void)
{
	for (uint32_t mask = 0; mask < CONTEXT_MASKS; mask++) {
		struct window window;
		struct doca_buf *here;

		open_sides(mask, ANY_RDMA);
		open_event();
		open_window(&window, LOCAL | ANY_RDMA);
		here = side_room(&a, 0, 8);
		for (const struct row *row = rows; row < rows + ROWS; row++)
			if (row->flag)
				ask(row, here, window.there, ANY_RDMA, ANY_RDMA);
		put(here);
		close_window(&window);
		close_event();
		side_close(&a);
		side_close(&b);
	}
}

/* Contexts know the flags of RDMA and the local one. */
static void contexts_take_four_flags(void)
{
	side_create(&a, "mlx5_0", LOCAL, LOCAL);
	for (uint32_t mask = 0; mask < 2 * MAP_MASKS; mask++) {
		doca_error_t taken = doca_rdma_set_permissions(a.rdma, mask);

		snprintf(cell, sizeof(cell), "a context's mask %#x", mask);
		IN_CELL(taken == (mask < CONTEXT_MASKS ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE));
	}
	side_close(&a);
}

int main(void)
{
	struct doca_log_backend *backend;

	OK(doca_log_backend_create_with_buf_sdk(line, sizeof(line), on_sdk, &backend));
	OK(doca_log_backend_set_sdk_level(backend, DOCA_LOG_LEVEL_ERROR));
	OK(doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_ERROR));
	contexts_take_four_flags();
	peers_allow();
	our_memory_allows();
	our_context_does_not_matter();
	return check_summary();
}
