/*
 * Commands of a host at a storage target: reads and writes that no thread of the target's program serves, commands that it
 * must answer, errors of each kind, and the ends that connections and disks can come to.
 */
#include <endian.h>
#include <sched.h>

#include "sta_initiator.h"
#include "sta_target.h"

static struct queue queue;

static uint8_t *data(void)
{
	return (uint8_t *)queue.side.memory + DATA;
}

static void pattern(uint8_t first, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		data()[i] = (uint8_t)(first + i + i / 256);
}

static int is_pattern(uint8_t first, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (data()[i] != (uint8_t)(first + i + i / 256))
			return 0;
	return 1;
}

static void write_and_read(uint64_t lba, uint32_t count, uint8_t first)
{
	pattern(first, count * 512);
	CHECK(ask_blocks(&queue, NVME_WRITE, lba, count) == 0);
	memset(data(), 0, count * 512);
	CHECK(ask_blocks(&queue, NVME_READ, lba, count) == 0);
	CHECK(is_pattern(first, count * 512));
}

static void moves(void)
{
	uint8_t *capsule;

	/* Less than a page, two pages, and a list of pages. */
	write_and_read(0, 1, 1);
	write_and_read(8, 16, 2);
	write_and_read(64, 64, 3);
	/* Data in the capsule. */
	capsule = command(&queue, NVME_WRITE, 1, 0);
	put32(capsule + 32, 4096);
	capsule[39] = SGL_IN_CAPSULE;
	blocks(capsule, 200, 8);
	pattern(4, 4096);
	memcpy(capsule + 64, data(), 4096);
	CHECK(ask(&queue, capsule, 64 + 4096) == 0);
	memset(data(), 0, 4096);
	CHECK(ask_blocks(&queue, NVME_READ, 200, 8) == 0);
	CHECK(is_pattern(4, 4096));
	/* The key comes back with the answer. */
	capsule = command(&queue, NVME_WRITE, 1, 0);
	keyed(&queue, capsule, 0, 512, SGL_KEYED_INVALIDATE);
	blocks(capsule, 300, 1);
	CHECK(ask(&queue, capsule, 64) == 0);
	CHECK(queue.side.opcode == DOCA_RDMA_OPCODE_RECV_SEND_WITH_IMM && be32toh(queue.side.immediate) == queue.key);
}

static uint16_t odd(uint8_t opcode, uint32_t nsid, uint32_t sgl_len, uint8_t type, uint64_t lba, uint32_t count)
{
	uint8_t *capsule = command(&queue, opcode, nsid, 0);

	keyed(&queue, capsule, 0, sgl_len, type);
	blocks(capsule, lba, count);
	return ask(&queue, capsule, 64);
}

static void statuses(void)
{
	uint8_t *capsule;

	CHECK(odd(NVME_READ, 9, 512, SGL_KEYED, 0, 1) == 0x400b);
	CHECK(odd(NVME_READ, 1, 512, SGL_KEYED, 4096, 1) == 0x4080);
	CHECK(odd(NVME_READ, 1, 511, SGL_KEYED, 0, 1) == 0x400f);
	CHECK(odd(NVME_READ, 1, 512, SGL_LAST_SEGMENT, 0, 1) == 0x4011);
	CHECK(odd(NVME_READ, 1, 512, SGL_IN_CAPSULE, 0, 1) == 0x4011);
	CHECK(odd(NVME_READ, 1, 0xffffff, SGL_KEYED, 0, 257) == 0x4002);
	/* The program's: known to it, and not. */
	CHECK(odd(NVME_FLUSH, 1, 0, SGL_KEYED, 0, 1) == 0);
	CHECK(odd(0xc3, 1, 0, SGL_KEYED, 0, 1) == 0x4001);
	/* Fused commands are the program's, too. */
	capsule = command(&queue, NVME_READ, 1, 0);
	capsule[1] |= 1;
	keyed(&queue, capsule, 0, 512, SGL_KEYED);
	CHECK(ask(&queue, capsule, 64) == 0x4001);
	/* No descriptor, and one about more than has come. */
	capsule = command(&queue, NVME_READ, 1, 0);
	capsule[1] = 0;
	CHECK(ask(&queue, capsule, 64) == 0x4002);
	capsule = command(&queue, NVME_WRITE, 1, 0);
	put32(capsule + 32, 1024);
	capsule[39] = SGL_IN_CAPSULE;
	blocks(capsule, 0, 2);
	CHECK(ask(&queue, capsule, 64 + 512) == 0x4016);
	capsule = command(&queue, NVME_FABRICS, 0, 0);
	capsule[4] = FABRICS_CONNECT;
	put32(capsule + 32, 1024);
	capsule[39] = SGL_IN_CAPSULE;
	CHECK(ask(&queue, capsule, 64) == 0x4016);
}

/* As many commands at once as the queue takes, more often than the disk's queue has entries. */
static void many(int rounds)
{
	for (int round = 0; round < rounds; round++) {
		int before = queue.side.succeeded;

		for (int slot = 0; slot < 8; slot++) {
			uint8_t *capsule = (uint8_t *)queue.side.memory + slot * 64;

			memset(capsule, 0, 64);
			capsule[0] = slot % 2 ? NVME_WRITE : NVME_READ;
			capsule[1] = 0x40;
			put16(capsule + 2, (uint16_t)(0x8000 + slot));
			put32(capsule + 4, 1);
			keyed(&queue, capsule, (uint32_t)slot * 4096 % DATA_LEN, 4096, SGL_KEYED);
			blocks(capsule, (uint64_t)slot * 8, 8);
			post(&queue, capsule, 64, slot);
		}
		UNTIL(&queue.side, queue.side.succeeded == before + 16 || queue.side.failed > 0);
		CHECK(queue.side.failed == 0);
		let_go(&queue);
		for (int slot = 0; slot < 8; slot++)
			CHECK(get16((uint8_t *)queue.side.memory + RESPONSES + 64 * slot + 14) == 0);
		queue.consumed += 8;
	}
}

/* Opens a queue and is connected. */
static void arrive(int in_capsule)
{
	initiator_open(&queue, 1, 12);
	CHECK(ask_connect(&queue, 1, in_capsule) == 0);
	CHECK(get16((uint8_t *)queue.side.memory + RESPONSES) == 1);
}

static void host_plain(void)
{
	for (int in_capsule = 0; in_capsule < 2; in_capsule++) {
		arrive(in_capsule);
		moves();
		statuses();
		many(10);
		initiator_close(&queue, 1);
	}
}

/* The queue of the administration knows no reads and writes. */
static void host_admin(void)
{
	uint8_t *capsule;

	initiator_open(&queue, 0, 12);
	CHECK(ask_connect(&queue, 0, 0) == 0);
	capsule = command(&queue, NVME_IDENTIFY, 0, 0);
	keyed(&queue, capsule, 0, 4096, SGL_KEYED);
	memset(data(), 0, 4096);
	CHECK(ask(&queue, capsule, 64) == 0);
	for (int i = 0; i < 4096; i++)
		if (data()[i] != 0x1d) {
			CHECK(!"the data have come");
			break;
		}
	CHECK(odd(NVME_READ, 1, 512, SGL_KEYED, 0, 1) == 0x4001);
	initiator_close(&queue, 1);
}

/* The target's program sleeps meanwhile. */
static void host_awake(void)
{
	arrive(1);
	tell_word(PEER_SOCKET, 1);
	CHECK(hear_word(PEER_SOCKET) == 2);
	write_and_read(16, 8, 7);
	many(20);
	tell_word(PEER_SOCKET, 3);
	/* What the program must answer waits for it. */
	CHECK(odd(NVME_FLUSH, 1, 0, SGL_KEYED, 0, 1) == 0);
	initiator_close(&queue, 1);
}

/* Reads until the namespace is gone. */
static void host_removed(void)
{
	uint16_t status = 0;

	arrive(1);
	tell_word(PEER_SOCKET, 1);
	for (int i = 0; i < 1000000 && status == 0; i++)
		status = ask_blocks(&queue, NVME_READ, 0, 8);
	CHECK(status == 0x400b);
	tell_word(PEER_SOCKET, 2);
	CHECK(hear_word(PEER_SOCKET) == 3);
	write_and_read(0, 8, 9);
	initiator_close(&queue, 1);
}

/* The disk falls silent, and then fails. */
static void host_silent(void)
{
	uint8_t *capsule;

	arrive(1);
	tell_word(PEER_SOCKET, 1);
	CHECK(hear_word(PEER_SOCKET) == 2);
	CHECK(ask_blocks(&queue, NVME_READ, 0, 8) == 0x07);
	tell_word(PEER_SOCKET, 3);
	CHECK(hear_word(PEER_SOCKET) == 4);
	CHECK(ask_blocks(&queue, NVME_WRITE, 0, 8) == 0x281);
	tell_word(PEER_SOCKET, 5);
	CHECK(hear_word(PEER_SOCKET) == 6);
	/* A bad key breaks the connection, and that is no status. */
	capsule = command(&queue, NVME_WRITE, 1, 0);
	keyed(&queue, capsule, 0, 512, SGL_KEYED);
	put32(capsule + 35, queue.key + 1);
	post(&queue, capsule, 64, 0);
	UNTIL(&queue.side, queue.side.succeeded + queue.side.failed > 0 && hear_word(PEER_SOCKET) == 7);
	initiator_close(&queue, 1);
}

/* Leaves while commands are under way: at the disk, and in the hands of the program. */
static void host_leaves(int slot)
{
	arrive(1);
	tell_word(PEER_SOCKET, 1);
	CHECK(hear_word(PEER_SOCKET) == 2);
	for (slot = 0; slot < 6; slot++) {
		uint8_t *capsule = (uint8_t *)queue.side.memory + slot * 64;

		memset(capsule, 0, 64);
		capsule[0] = slot == 5 ? NVME_FLUSH : slot % 2 ? NVME_WRITE : NVME_READ;
		capsule[1] = 0x40;
		put32(capsule + 4, 1);
		keyed(&queue, capsule, (uint32_t)slot * 4096, 4096, SGL_KEYED);
		blocks(capsule, (uint64_t)slot * 8, 8);
		post(&queue, capsule, 64, slot);
	}
	tell_word(PEER_SOCKET, 3);
	CHECK(hear_word(PEER_SOCKET) == 4);
	initiator_close(&queue, 1);
}

/* One of many. */
static void host_crowd(void)
{
	arrive(1);
	tell_word(PEER_SOCKET, 1);
	many(60);
	initiator_close(&queue, 1);
}

/* As little as there is of everything; may die anywhere. */
static void host_brief(void)
{
	arrive(0);
	write_and_read(32, 8, 5);
	initiator_close(&queue, 1);
}

/* What the target does meanwhile. */

static void sleep_through(struct peer *peer)
{
	const struct doca_sta_eu_ctr_entry *entries = NULL;
	uint64_t reads, later;
	uint16_t count = 0;
	int commands;

	serve(peer->socket);
	CHECK(hear_word(peer->socket) == 1);
	OK(doca_sta_get_ns_stats(target.subsystem, target.space, &entries, &count));
	CHECK(count == 5 && strcmp(entries[0].name, "read_cmds") == 0);
	reads = *entries[0].val;
	commands = target.commands;
	tell_word(peer->socket, 2);
	/* Not one call until then. */
	CHECK(hear_word(peer->socket) == 3);
	later = *entries[0].val;
	CHECK(later == reads + 1 + 80 && target.commands == commands);
	serve(peer->socket);
}

static void remove_under_load(struct peer *peer)
{
	serve(peer->socket);
	CHECK(hear_word(peer->socket) == 1);
	for (int i = 0; i < 1000; i++)
		target_step();
	remove_space();
	serve(peer->socket);
	CHECK(hear_word(peer->socket) == 2);
	OK(doca_sta_subsystem_add_ns(target.subsystem, 1, BLOCK, 7, target.end, &target.space));
	tell_word(peer->socket, 3);
	serve(peer->socket);
}

static void lose_disk(struct peer *peer)
{
	int errors = target.transport_errors;

	serve(peer->socket);
	CHECK(hear_word(peer->socket) == 1);
	atomic_store(&target.disk.silent, 1);
	tell_word(peer->socket, 2);
	SERVE_UNTIL(target.timeouts == 1);
	/* The disk has the command still, but nobody waits for it. */
	remove_space();
	serve(peer->socket);
	CHECK(hear_word(peer->socket) == 3);
	remove_disk();
	add_disk();
	atomic_store(&target.disk.failing, 1);
	tell_word(peer->socket, 4);
	serve(peer->socket);
	CHECK(hear_word(peer->socket) == 5);
	atomic_store(&target.disk.failing, 0);
	tell_word(peer->socket, 6);
	SERVE_UNTIL(target.transport_errors == errors + 1);
	CHECK(target.syndrome == 0x13);
	tell_word(peer->socket, 7);
	serve(peer->socket);
}

/* Commands are under way when the host leaves or dies: the disk completes them when nobody waits any more. */
static void be_left(struct peer *peer, int by_death)
{
	int errors = target.transport_errors, connects = target.connects;

	serve(peer->socket);
	CHECK(hear_word(peer->socket) == 1);
	CHECK(target.connects == connects + 1);
	atomic_store(&target.disk.silent, 1);
	target.hold = 1;
	target.held = 0;
	tell_word(peer->socket, 2);
	serve(peer->socket);
	CHECK(hear_word(peer->socket) == 3);
	SERVE_UNTIL(target.held == 1);
	if (by_death)
		peer_kill(peer);
	else
		tell_word(peer->socket, 4);
	SERVE_UNTIL(num_connections() == 0);
	target.hold = 0;
	atomic_store(&target.disk.silent, 0);
	(void)errors;
	if (!by_death)
		serve(peer->socket);
}

static void run(const char *role, void (*meanwhile)(struct peer *))
{
	struct peer peer = peer_start(role);

	if (meanwhile != NULL)
		meanwhile(&peer);
	else
		serve(peer.socket);
	peer_finish(&peer);
	SERVE_UNTIL(num_connections() == 0);
}

static void run_leaving(int by_death)
{
	struct peer peer = peer_start("leaves");

	be_left(&peer, by_death);
	if (!by_death)
		peer_finish(&peer);
}

/* Hosts at once, some of which die at work. */
static void run_crowd(void)
{
	enum { HOSTS = 8 };
	struct peer peers[HOSTS];
	int connects = target.connects;

	for (int i = 0; i < HOSTS; i++)
		peers[i] = peer_start("crowd");
	SERVE_UNTIL(target.connects == connects + HOSTS);
	for (int i = 0; i < HOSTS; i++) {
		serve(peers[i].socket);
		CHECK(hear_word(peers[i].socket) == 1);
		if (i % 4 == 3)
			peer_kill(&peers[i]);
	}
	for (int i = 0; i < HOSTS; i++)
		if (i % 4 != 3) {
			serve(peers[i].socket);
			peer_finish(&peers[i]);
		}
	SERVE_UNTIL(num_connections() == 0);
}

/* A host that dies at one of the places where memory of both is half-changed. */
static void run_dying(void)
{
	for (int point = 1; point < 60; point += 2) {
		char text[16];
		struct peer peer;

		snprintf(text, sizeof(text), "%d", point);
		setenv("DOCA_SIM_KILL_AT", text, 1);
		peer = peer_start("brief");
		unsetenv("DOCA_SIM_KILL_AT");
		serve(peer.socket);
		peer_kill(&peer);
		SERVE_UNTIL(num_connections() == 0);
	}
}

int main(int argc, char **argv)
{
	const char *role = argc > 1 ? argv[1] : "";
	char topology[] = "/tmp/doca-sim-conformance-XXXXXX";
	const char text[] = "{\"extends\": \"default\", \"host\": {\"mlx5_0\": {\"sta\": {\"be_timeout_ms\": 500}}}}";
	int fd;

	if (argc > 1) {
		if (strcmp(role, "plain") == 0)
			host_plain();
		else if (strcmp(role, "admin") == 0)
			host_admin();
		else if (strcmp(role, "awake") == 0)
			host_awake();
		else if (strcmp(role, "removed") == 0)
			host_removed();
		else if (strcmp(role, "silent") == 0)
			host_silent();
		else if (strcmp(role, "crowd") == 0)
			host_crowd();
		else if (strcmp(role, "brief") == 0)
			host_brief();
		else if (strcmp(role, "leaves") == 0)
			host_leaves(0);
		return checks_failed != 0;
	}
	fd = mkstemp(topology);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	setenv("DOCA_SIM_TOPOLOGY", topology, 1);
	target_open();
	unsetenv("DOCA_SIM_TOPOLOGY");
	unlink(topology);
	run("plain", NULL);
	CHECK(target.connects == 2 && target.reads == 1 && target.transport_errors == 0 && target.failed == 0);
#if AFTER_3_0
	/* All errors but those of the program's own answers, of two hosts. */
	SERVE_UNTIL(target.notices == 2 * 9);
	CHECK(target.disk_notices == 2);
#endif
	run("admin", NULL);
	run("awake", sleep_through);
	run("removed", remove_under_load);
	run("silent", lose_disk);
	run_leaving(0);
	run_leaving(1);
	run_crowd();
	run_dying();
	/* And it still works. */
	run("plain", NULL);
	target_close();
	CHECK(target.unit_errors == 0);
	return check_summary();
}
