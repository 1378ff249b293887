/*
 * Memory of a program on the host, which one on the DPU imports across PCI and uses as its own: it sends from it, receives into
 * it, and exports it to RDMA peers, who reach the host's memory through it. Three processes.
 */
#include <sys/mman.h>

#include "side.h"

#define ALL_RDMA (DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC)
#define BLOB 4096
#define LEN 256
#define DIRECT 16384
#define TWIN 0x200000000000

static struct side side;

static char pattern(size_t i)
{
	return (char)(i * 5 + 11);
}

static void offer(int socket, doca_error_t (*export)(struct doca_mmap *, const struct doca_dev *, const void **, size_t *),
		  struct doca_mmap *map)
{
	const void *blob = NULL;
	size_t len = 0;

	OK(export(map, side.dev, &blob, &len));
	tell(socket, blob, len);
}

/*
 * Memory at the same address in each process that asks, registered as its first: by number and address, the keys of all of
 * them are one.
 */
static struct doca_mmap *twin(struct doca_dev *dev)
{
	void *memory = mmap((void *)TWIN, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	struct doca_mmap *map = NULL;

	CHECK(memory == (void *)TWIN);
	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | ALL_RDMA));
	OK(doca_mmap_set_memrange(map, memory, MEMORY));
	OK(doca_mmap_start(map));
	return map;
}

/* Can be connected to, and must not be reached by a key of the owner's. */
static void decoy(void)
{
	struct doca_dev *dev = open_device("mlx5_0");
	struct doca_mmap *map = twin(dev);

	for (int right = 0; right < 2; right++) {
		side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, ALL_RDMA);
		OK(doca_ctx_start(side.ctx));
		side_connect(&side, PEER_SOCKET);
		offer(PEER_SOCKET, doca_mmap_export_rdma, map);
		hear_word(PEER_SOCKET);
		CHECK(*(volatile char *)(TWIN + LEN) == (right ? 'w' : 0));
		side_close(&side);
	}
	OK(doca_mmap_destroy(map));
	OK(doca_dev_close(dev));
}

/* The host's program: owns the memory and lends it, and never progresses anything. */
static void owner(void)
{
	struct doca_dev *dev = open_device("mlx5_0");
	struct doca_mmap *map = twin(dev);

	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_PCI_READ_WRITE | ALL_RDMA, 0);
	for (size_t i = 0; i < LEN; i++)
		side.memory[i] = pattern(i);
	offer(PEER_SOCKET, doca_mmap_export_pci, side.map);
	offer(PEER_SOCKET, doca_mmap_export_rdma, map);
	while (hear_word(PEER_SOCKET) != 0)
		tell(PEER_SOCKET, side.memory, DIRECT);
	side_close(&side);
	OK(doca_mmap_destroy(map));
	OK(doca_dev_close(dev));
}

struct remote {
	struct doca_mmap *map;
	char *addr;
};

static struct remote import(const char *blob, size_t len)
{
	struct remote remote = {0};
	void *addr = NULL;
	size_t size = 0;

	OK(doca_mmap_create_from_export(NULL, blob, len, side.dev, &remote.map));
	OK(doca_mmap_get_memrange(remote.map, &addr, &size));
	CHECK(size == MEMORY);
	remote.addr = addr;
	return remote;
}

static struct doca_buf *window(const struct remote *remote, size_t offset, size_t len, size_t data)
{
	struct doca_buf *buf = NULL;

	OK(doca_buf_inventory_buf_get_by_addr(side.inventory, remote->map, remote->addr + offset, len, &buf));
	OK(doca_buf_set_data_len(buf, data));
	return buf;
}

/* The DPU's program. */
static void passer(void)
{
	struct doca_rdma_connection *connection;
	struct doca_buf *from, *into;
	struct remote lent;
	char blob[BLOB];
	const void *no;
	size_t len;

	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | ALL_RDMA);
	OK(doca_ctx_start(side.ctx));
	len = hear(PEER_SOCKET, blob, sizeof(blob));
	lent = import(blob, len);
	FAILS(NOT_PERMITTED, doca_mmap_export_pci(lent.map, side.dev, &no, &len));
	connection = side_connect(&side, PEER_SOCKET);
	offer(PEER_SOCKET, doca_mmap_export_rdma, lent.map);
	/* The lent memory is this side's own for messages both ways. */
	into = window(&lent, 2 * LEN, LEN, 0);
	side_receive(&side, into, 0);
	tell_word(PEER_SOCKET, 1);
	UNTIL(&side, side.succeeded == 1);
	hear_word(PEER_SOCKET);
	from = window(&lent, 0, LEN, LEN);
	side_send(&side, connection, from, 0);
	UNTIL(&side, side.succeeded == 2);
	put(from);
	put(into);
	/* What is taken back is out of reach. */
	hear_word(PEER_SOCKET);
	OK(doca_mmap_destroy(lent.map));
	tell_word(PEER_SOCKET, 1);
	hear_word(PEER_SOCKET);
	side_close(&side);
}

static void write_to(struct doca_rdma_connection *to, struct doca_buf *from, const struct remote *remote)
{
	struct doca_buf *there = window(remote, LEN, LEN, 0);
	struct doca_rdma_task_write *write = NULL;

	OK(doca_rdma_task_write_allocate_init(side.rdma, to, from, there, (union doca_data){0}, &write));
	OK(doca_task_submit(doca_rdma_task_write_as_task(write)));
	UNTIL(&side, side.succeeded + side.failed == 1);
	put(there);
}

/* Begins anew with the DPU's program: a connection breaks with the first refusal. */
static void begin(void)
{
	side_create(&side, "mlx5_1", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	side_enable(&side);
	OK(doca_ctx_start(side.ctx));
	memset(side.memory, 'w', LEN);
}

static struct peer start_passer(const char *blob, size_t len)
{
	struct peer peer = peer_start_on_dpu("passer");

	tell(peer.socket, blob, len);
	return peer;
}

static void foreign_key(const char *owners, size_t owners_len)
{
	struct peer peer;
	struct doca_rdma_connection *to;
	struct remote remote;
	struct doca_buf *here;
	char own[BLOB];
	size_t len;

	peer = peer_start("decoy");
	for (int right = 0; right < 2; right++) {
		begin();
		to = side_connect(&side, peer.socket);
		len = hear(peer.socket, own, sizeof(own));
		remote = right ? import(own, len) : import(owners, owners_len);
		CHECK((void *)remote.addr == (void *)TWIN);
		here = side_data(&side, 0, LEN);
		write_to(to, here, &remote);
		CHECK(right ? side.succeeded == 1 : side.failed == 1 && side.status == DOCA_ERROR_IO_FAILED);
		put(here);
		OK(doca_mmap_destroy(remote.map));
		tell_word(peer.socket, 1);
		side_close(&side);
	}
	peer_finish(&peer);
}

int main(int argc, char **argv)
{
	char across_pci[BLOB], direct[BLOB], passed[BLOB], shown[DIRECT];
	struct doca_rdma_task_atomic_fetch_add *add = NULL;
	struct doca_buf *here, *result, *there;
	struct doca_rdma_task_read *read = NULL;
	size_t pci_len, direct_len, passed_len;
	struct doca_rdma_connection *to;
	struct remote remote;
	struct peer host, dpu;

	if (argc > 1) {
		if (strcmp(argv[1], "owner") == 0)
			owner();
		else if (strcmp(argv[1], "decoy") == 0)
			decoy();
		else
			passer();
		return check_summary();
	}
	host = peer_start("owner");
	pci_len = hear(host.socket, across_pci, sizeof(across_pci));
	direct_len = hear(host.socket, direct, sizeof(direct));

	/* Through the DPU into the host's memory. */
	dpu = start_passer(across_pci, pci_len);
	begin();
	to = side_connect(&side, dpu.socket);
	passed_len = hear(dpu.socket, passed, sizeof(passed));
	remote = import(passed, passed_len);
	there = window(&remote, 0, LEN, LEN);
	result = side_room(&side, 4096, LEN);
	OK(doca_rdma_task_read_allocate_init(side.rdma, to, there, result, (union doca_data){0}, &read));
	OK(doca_task_submit(doca_rdma_task_read_as_task(read)));
	UNTIL(&side, side.succeeded == 1);
	for (size_t i = 0; i < LEN; i++)
		if (side.memory[4096 + i] != pattern(i))
			CHECK(!"each byte was read");
	put(there);
	side.succeeded = 0;
	here = side_data(&side, 0, LEN);
	write_to(to, here, &remote);
	CHECK(side.succeeded == 1);
	there = window(&remote, 4096, 8, 8);
	OK(doca_buf_reset_data_len(result));
	OK(doca_rdma_task_atomic_fetch_add_allocate_init(side.rdma, to, there, result, 42, (union doca_data){0}, &add));
	OK(doca_task_submit(doca_rdma_task_atomic_fetch_add_as_task(add)));
	UNTIL(&side, side.succeeded == 2);
	put(there);
	put(result);
	/* Messages from and into it. */
	hear_word(dpu.socket);
	memset(side.memory, 'm', LEN);
	side_send(&side, to, here, 0);
	result = side_room(&side, 8192, LEN);
	side_receive(&side, result, 0);
	UNTIL(&side, side.succeeded == 3);
	tell_word(dpu.socket, 1);
	UNTIL(&side, side.succeeded == 4);
	CHECK(side.failed == 0 && side.result_len == LEN);
	CHECK(memcmp(side.memory + 8192, side.memory + 4096, LEN) != 0);
	for (size_t i = 0; i < LEN; i++)
		if (side.memory[8192 + i] != pattern(i))
			CHECK(!"each byte was sent");
	put(result);
	tell_word(host.socket, 1);
	CHECK(hear(host.socket, shown, sizeof(shown)) == sizeof(shown));
	for (size_t i = 0; i < LEN; i++)
		if (shown[LEN + i] != 'w' || shown[2 * LEN + i] != 'm')
			CHECK(!"each byte was written");
	CHECK(*(uint64_t *)(void *)(shown + 4096) == 42);

	/* The DPU's program takes back what it passed on. */
	tell_word(dpu.socket, 1);
	hear_word(dpu.socket);
	side.succeeded = 0;
	write_to(to, here, &remote);
	CHECK(side.failed == 1 && side.status == DOCA_ERROR_IO_FAILED);
	tell_word(dpu.socket, 1);
	put(here);
	OK(doca_mmap_destroy(remote.map));
	side_close(&side);
	peer_finish(&dpu);

	/* A key of the owner's leads nowhere over a connection to another process, its own twin does. */
	foreign_key(direct, direct_len);
	tell_word(host.socket, 0);
	peer_finish(&host);
	return check_summary();
}
