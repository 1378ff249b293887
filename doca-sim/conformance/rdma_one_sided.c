/*
 * One-sided access to the memory of another process: read, write, write with immediate, atomics and sync events. The
 * target is stopped by a signal meanwhile, because it must not be needed.
 */
#include <doca_sync_event.h>

#include "side.h"

#define ALL_RDMA (DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC)
#define OFFERED 0
#define WRITTEN 1024
#define COUNTER 2048
#define NOTIFIED 4096
#define IMMEDIATE 0xABCD
#define LEN 500

static struct side side;

static char pattern(size_t i)
{
	return (char)(i * 7 + 3);
}

/* The memory of the other process, as this one sees it. */
struct remote {
	struct doca_mmap *map;
	char *addr;
	size_t len;
};

static struct remote import(int socket)
{
	struct remote remote = {0};
	char blob[4096];
	size_t len = hear(socket, blob, sizeof(blob));
	void *addr = NULL;

	OK(doca_mmap_create_from_export(NULL, blob, len, side.dev, &remote.map));
	OK(doca_mmap_get_memrange(remote.map, &addr, &remote.len));
	remote.addr = addr;
	CHECK(remote.len == MEMORY);
	return remote;
}

static struct doca_buf *window(struct remote *remote, size_t offset, size_t len)
{
	struct doca_buf *buf = NULL;

	OK(doca_buf_inventory_buf_get_by_data(side.inventory, remote->map, remote->addr + offset, len, &buf));
	return buf;
}

static void offer(int socket)
{
	const void *blob = NULL;
	size_t len = 0;

	OK(doca_mmap_export_rdma(side.map, side.dev, &blob, &len));
	tell(socket, blob, len);
}

/* Submits and waits; the task must end well. */
static void run(struct doca_task *task)
{
	int before = side.succeeded;

	OK(doca_task_submit(task));
	UNTIL(&side, side.succeeded == before + 1);
	CHECK(side.failed == 0);
}

static void read_and_write(struct doca_rdma_connection *to, struct remote *remote)
{
	struct doca_buf *there = window(remote, OFFERED, LEN), *here = side_room(&side, 0, LEN);
	struct doca_rdma_task_write_imm *notify = NULL;
	struct doca_rdma_task_write *write = NULL;
	struct doca_rdma_task_read *read = NULL;
	union doca_data none = {0};
	size_t len = 0;

	OK(doca_rdma_task_read_allocate_init(side.rdma, to, there, here, none, &read));
	CHECK(doca_rdma_task_read_get_src_buf(read) == there && doca_rdma_task_read_get_dst_buf(read) == here);
	run(doca_rdma_task_read_as_task(read));
	CHECK(doca_rdma_task_read_get_result_len(read) == LEN);
	OK(doca_buf_get_data_len(here, &len));
	CHECK(len == LEN);
	for (size_t i = 0; i < LEN; i++)
		if (side.memory[i] != pattern(i))
			CHECK(!"each byte was read");
	put(there);

	there = window(remote, WRITTEN, LEN);
	OK(doca_rdma_task_write_allocate_init(side.rdma, to, here, there, none, &write));
	run(doca_rdma_task_write_as_task(write));
	put(there);
	there = window(remote, NOTIFIED, LEN);
	OK(doca_rdma_task_write_imm_allocate_init(side.rdma, to, here, there, IMMEDIATE, none, &notify));
	CHECK(doca_rdma_task_write_imm_get_immediate_data(notify) == IMMEDIATE);
	run(doca_rdma_task_write_imm_as_task(notify));
	put(there);
	put(here);
}

static void atomics(struct doca_rdma_connection *to, struct remote *remote)
{
	struct doca_buf *there = window(remote, COUNTER, 8), *here = side_room(&side, 0, 8);
	uint64_t *before = (void *)side.memory;
	struct doca_rdma_task_atomic_fetch_add *add = NULL;
	struct doca_rdma_task_atomic_cmp_swp *swap = NULL;
	union doca_data none = {0};

	OK(doca_rdma_task_atomic_fetch_add_allocate_init(side.rdma, to, there, here, 5, none, &add));
	run(doca_rdma_task_atomic_fetch_add_as_task(add));
	CHECK(*before == 100);
	OK(doca_buf_reset_data_len(here));
	OK(doca_rdma_task_atomic_cmp_swp_allocate_init(side.rdma, to, there, here, 105, 7777, none, &swap));
	run(doca_rdma_task_atomic_cmp_swp_as_task(swap));
	CHECK(*before == 105);
	/* One that does not match changes nothing. */
	OK(doca_buf_reset_data_len(here));
	OK(doca_rdma_task_atomic_cmp_swp_allocate_init(side.rdma, to, there, here, 105, 1, none, &swap));
	run(doca_rdma_task_atomic_cmp_swp_as_task(swap));
	CHECK(*before == 7777);
	put(there);
	put(here);
}

static void events(struct doca_rdma_connection *to, struct doca_sync_event_remote_net *event)
{
	struct doca_rdma_task_remote_net_sync_event_notify_set *set = NULL;
	struct doca_rdma_task_remote_net_sync_event_notify_add *add = NULL;
	struct doca_rdma_task_remote_net_sync_event_get *get = NULL;
	struct doca_buf *source = side_data(&side, 0, 8), *result = side_room(&side, 8, 8);
	uint64_t *words = (void *)side.memory;
	union doca_data none = {0};

	words[0] = 1000;
	OK(doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(side.rdma, to, event, source, none, &set));
	run(doca_rdma_task_remote_net_sync_event_notify_set_as_task(set));
	OK(doca_rdma_task_remote_net_sync_event_notify_add_allocate_init(side.rdma, to, event, result, 24, none, &add));
	run(doca_rdma_task_remote_net_sync_event_notify_add_as_task(add));
	CHECK(words[1] == 1000);
	OK(doca_buf_reset_data_len(result));
	OK(doca_rdma_task_remote_net_sync_event_get_allocate_init(side.rdma, to, event, result, none, &get));
	run(doca_rdma_task_remote_net_sync_event_get_as_task(get));
	CHECK(words[1] == 1024 && doca_rdma_task_remote_net_sync_event_get_get_result_len(get) == 8);
	put(source);
	put(result);
}

static void target(void)
{
	struct doca_sync_event *event = NULL;
	const uint8_t *blob = NULL;
	uint64_t value = 0;
	size_t len = 0;

	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | ALL_RDMA, ALL_RDMA);
	OK(doca_ctx_start(side.ctx));
	for (size_t i = 0; i < LEN; i++)
		side.memory[OFFERED + i] = pattern(i);
	*(uint64_t *)(void *)(side.memory + COUNTER) = 100;
	OK(doca_sync_event_create(&event));
	OK(doca_sync_event_add_publisher_location_remote_net(event));
	OK(doca_sync_event_add_subscriber_location_cpu(event, side.dev));
	OK(doca_sync_event_start(event));
	OK(doca_sync_event_export_to_remote_net(event, &blob, &len));
	side_connect(&side, PEER_SOCKET);
	offer(PEER_SOCKET);
	tell(PEER_SOCKET, blob, len);
	side_receive(&side, NULL, 0);
	tell_word(PEER_SOCKET, 1);
	/* Stopped and continued in here. */
	hear_word(PEER_SOCKET);
	CHECK(memcmp(side.memory + WRITTEN, side.memory + OFFERED, LEN) == 0);
	CHECK(memcmp(side.memory + NOTIFIED, side.memory + OFFERED, LEN) == 0);
	CHECK(side.memory[WRITTEN + LEN] == 0 && side.memory[NOTIFIED + LEN] == 0);
	CHECK(*(uint64_t *)(void *)(side.memory + COUNTER) == 7777);
	OK(doca_sync_event_get(event, &value));
	CHECK(value == 1024);
	UNTIL(&side, side.succeeded == 1);
	CHECK(side.opcode == DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM && side.immediate == IMMEDIATE);
	CHECK(side.result_len == LEN);
	OK(doca_sync_event_stop(event));
	OK(doca_sync_event_destroy(event));
	side_close(&side);
}

static void with_stopped_target(void)
{
	struct peer peer = peer_start("target");
	struct doca_sync_event_remote_net *event = NULL;
	struct doca_rdma_connection *to;
	struct remote remote;
	uint8_t blob[4096];
	int status = 0;
	size_t len;

	side_create(&side, "mlx5_1", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	side_enable(&side);
	OK(doca_ctx_start(side.ctx));
	to = side_connect(&side, peer.socket);
	remote = import(peer.socket);
	len = hear(peer.socket, blob, sizeof(blob));
	OK(doca_sync_event_remote_net_create_from_export(side.dev, blob, len, &event));
	hear_word(peer.socket);
	kill(peer.pid, SIGSTOP);
	CHECK(waitpid(peer.pid, &status, WUNTRACED) == peer.pid && WIFSTOPPED(status));
	read_and_write(to, &remote);
	atomics(to, &remote);
	events(to, event);
	kill(peer.pid, SIGCONT);
	tell_word(peer.socket, 2);
	peer_finish(&peer);
	OK(doca_sync_event_remote_net_destroy(event));
	OK(doca_mmap_stop(remote.map));
	OK(doca_mmap_destroy(remote.map));
	side_close(&side);
}

/* Access that the target does not grant fails there, leaves its memory alone, and costs the connection. */

static const struct denied {
	const char *name;
	uint32_t map_access, access;
	int reads;
} denied[] = {
	{"the target's context does not allow reads", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | ALL_RDMA,
	 DOCA_ACCESS_FLAG_RDMA_WRITE, 1},
	{"the target's context does not allow writes", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | ALL_RDMA,
	 DOCA_ACCESS_FLAG_RDMA_READ, 0},
	{"the target's memory does not allow reads", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE,
	 ALL_RDMA, 1},
	{"the target's memory does not allow writes", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ,
	 ALL_RDMA, 0},
	{"the target's memory is stopped", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | ALL_RDMA, ALL_RDMA, 2},
};

#define DENIED (sizeof(denied) / sizeof(*denied))

static void denier(void)
{
	for (const struct denied *row = denied; row < denied + DENIED; row++) {
		side_create(&side, "mlx5_0", row->map_access, row->access);
		OK(doca_ctx_start(side.ctx));
		memset(side.memory, 'k', 8);
		side_connect(&side, PEER_SOCKET);
		offer(PEER_SOCKET);
		if (row->reads == 2)
			OK(doca_mmap_stop(side.map));
		tell_word(PEER_SOCKET, 1);
		hear_word(PEER_SOCKET);
		CHECK(memcmp(side.memory, "kkkkkkkk", 8) == 0 && side.failed == 0);
		side_close(&side);
	}
}

/* What a refusal is called has two readings; the simulator knows both. */
static doca_error_t refusal(const struct denied *row)
{
	const char *profile = getenv("DOCA_SIM_PROFILE");
	int other = profile != NULL && strstr(profile, "refused-io-failed") != NULL;

	return other || row->reads == 2 ? DOCA_ERROR_IO_FAILED : DOCA_ERROR_NOT_PERMITTED;
}

static void without_right(void)
{
	struct peer peer = peer_start("denier");

	for (const struct denied *row = denied; row < denied + DENIED; row++) {
		struct doca_rdma_task_write *write = NULL;
		struct doca_rdma_task_read *read = NULL;
		struct doca_rdma_connection *to;
		struct doca_buf *here, *there;
		struct remote remote;

		side_create(&side, "mlx5_1", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
		side_enable(&side);
		OK(doca_ctx_start(side.ctx));
		to = side_connect(&side, peer.socket);
		remote = import(peer.socket);
		hear_word(peer.socket);
		there = window(&remote, 0, 8);
		if (row->reads) {
			here = side_room(&side, 0, 8);
			OK(doca_rdma_task_read_allocate_init(side.rdma, to, there, here, (union doca_data){0}, &read));
			OK(doca_task_submit(doca_rdma_task_read_as_task(read)));
		} else {
			here = side_data(&side, 0, 8);
			OK(doca_rdma_task_write_allocate_init(side.rdma, to, here, there, (union doca_data){0}, &write));
			OK(doca_task_submit(doca_rdma_task_write_as_task(write)));
		}
		UNTIL(&side, side.failed == 1);
		check_code(refusal(row), side.status, __FILE__, __LINE__, row->name);
		CHECK(side.memory[0] == 0);
		/* The connection is lost: the next task is taken and fails. */
		side_send(&side, to, NULL, 0);
		UNTIL(&side, side.failed == 2);
		CHECK(side.status == DOCA_ERROR_IO_FAILED && side.succeeded == 0);
		tell_word(peer.socket, 2);
		put(here);
		put(there);
		OK(doca_mmap_destroy(remote.map));
		side_close(&side);
	}
	peer_finish(&peer);
}

/* What is wrong before anything leaves this side. */

static void offering(void)
{
	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | ALL_RDMA, ALL_RDMA);
	OK(doca_ctx_start(side.ctx));
	side_connect(&side, PEER_SOCKET);
	offer(PEER_SOCKET);
	hear_word(PEER_SOCKET);
	side_close(&side);
}

static void misuse(void)
{
	struct peer peer = peer_start("offering");
	struct doca_rdma_task_atomic_fetch_add *add = NULL;
	struct doca_buf *here, *there, *small, *none = NULL;
	struct doca_rdma_task_read *read = NULL;
	struct doca_rdma_connection *to;
	union doca_data zero = {0};
	struct remote remote;

	side_create(&side, "mlx5_1", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	side_enable(&side);
	OK(doca_ctx_start(side.ctx));
	to = side_connect(&side, peer.socket);
	remote = import(peer.socket);
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_data(side.inventory, remote.map, remote.addr + MEMORY - 7, 8,
								&none));
	here = side_room(&side, 0, 8);
	small = side_room(&side, 0, 7);
	there = window(&remote, 0, 8);
	OK(doca_rdma_task_read_allocate_init(side.rdma, to, there, small, zero, &read));
	FAILS(INVALID_VALUE, doca_task_submit(doca_rdma_task_read_as_task(read)));
	/* Each memory on the wrong side. */
	doca_rdma_task_read_set_dst_buf(read, there);
	FAILS(INVALID_VALUE, doca_task_submit(doca_rdma_task_read_as_task(read)));
	doca_rdma_task_read_set_dst_buf(read, here);
	doca_rdma_task_read_set_src_buf(read, small);
	OK(doca_buf_set_data_len(small, 7));
	FAILS(INVALID_VALUE, doca_task_submit(doca_rdma_task_read_as_task(read)));
	doca_task_free(doca_rdma_task_read_as_task(read));
	OK(doca_rdma_task_atomic_fetch_add_allocate_init(side.rdma, to, there, NULL, 1, zero, &add));
	FAILS(INVALID_VALUE, doca_task_submit(doca_rdma_task_atomic_fetch_add_as_task(add)));
	doca_rdma_task_atomic_fetch_add_set_result_buf(add, here);
	put(there);
	there = window(&remote, 4, 8);
	doca_rdma_task_atomic_fetch_add_set_dst_buf(add, there);
	OK(doca_task_submit(doca_rdma_task_atomic_fetch_add_as_task(add)));
	UNTIL(&side, side.failed == 1);
	CHECK(side.status == DOCA_ERROR_IO_FAILED);
	tell_word(peer.socket, 1);
	put(here);
	put(small);
	put(there);
	OK(doca_mmap_destroy(remote.map));
	side_close(&side);
	peer_finish(&peer);
}

static void other_reading(void)
{
	struct peer peer;

	setenv("DOCA_SIM_PROFILE", "refused-io-failed", 1);
	peer = peer_start("other reading");
	peer_finish(&peer);
}

int main(int argc, char **argv)
{
	const char *role = argc > 1 ? argv[1] : "";

	if (strcmp(role, "target") == 0) {
		target();
	} else if (strcmp(role, "denier") == 0) {
		denier();
	} else if (strcmp(role, "offering") == 0) {
		offering();
	} else if (strcmp(role, "other reading") == 0) {
		without_right();
	} else {
		with_stopped_target();
		without_right();
		misuse();
		other_reading();
	}
	return check_summary();
}
