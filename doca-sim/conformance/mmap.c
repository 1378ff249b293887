/*
 * Memory maps: configuration, states, buffers that keep them, and descriptors that another process imports.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_mmap.h>
#include <doca_types.h>

#include "check.h"

#define SIZE 4096

static char memory[SIZE];
static struct doca_dev *first, *second;

static struct doca_mmap *started(uint32_t permissions)
{
	struct doca_mmap *mmap = NULL;

	OK(doca_mmap_create(&mmap));
	OK(doca_mmap_add_dev(mmap, first));
	OK(doca_mmap_set_permissions(mmap, permissions));
	OK(doca_mmap_set_memrange(mmap, memory, SIZE));
	OK(doca_mmap_start(mmap));
	return mmap;
}

static int freed;

static void count_free(void *addr, size_t len, void *cookie)
{
	CHECK(addr == memory && len == SIZE && cookie == &freed);
	freed++;
}

static void configuration(void)
{
	union doca_data data = {.u64 = 1};
	struct doca_mmap *mmap;
	uint32_t number;
	size_t len;
	void *addr;

	FAILS(INVALID_VALUE, doca_mmap_create(NULL));
	FAILS(INVALID_VALUE, doca_mmap_destroy(NULL));
	OK(doca_mmap_create(&mmap));
	OK(doca_mmap_get_max_num_devices(mmap, &number));
	CHECK(number == 1);
	OK(doca_mmap_get_user_data(mmap, &data));
	CHECK(data.u64 == 0);
	FAILS(BAD_STATE, doca_mmap_get_memrange(mmap, &addr, &len));
	FAILS(INVALID_VALUE, doca_mmap_start(mmap));
	FAILS(INVALID_VALUE, doca_mmap_set_memrange(mmap, NULL, SIZE));
	FAILS(INVALID_VALUE, doca_mmap_set_memrange(mmap, memory, 0));
	FAILS(INVALID_VALUE, doca_mmap_set_memrange(mmap, memory, SIZE_MAX));
	OK(doca_mmap_set_memrange(mmap, memory, SIZE));
	FAILS(NOT_PERMITTED, doca_mmap_set_memrange(mmap, memory, SIZE));
	FAILS(INVALID_VALUE, doca_mmap_set_permissions(mmap, 128));
	FAILS(INVALID_VALUE,
	      doca_mmap_set_permissions(mmap, DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	OK(doca_mmap_add_dev(mmap, first));
	FAILS(ALREADY_EXIST, doca_mmap_add_dev(mmap, first));
	FAILS(NO_MEMORY, doca_mmap_add_dev(mmap, second));
	FAILS(NOT_FOUND, doca_mmap_rm_dev(mmap, second));
	OK(doca_mmap_set_max_num_devices(mmap, 2));
	OK(doca_mmap_add_dev(mmap, second));
	FAILS(IN_USE, doca_dev_close(second));
	OK(doca_mmap_rm_dev(mmap, second));
	data.u64 = 42;
	OK(doca_mmap_set_user_data(mmap, data));
	OK(doca_mmap_set_free_cb(mmap, count_free, &freed));
	OK(doca_mmap_start(mmap));

	FAILS(BAD_STATE, doca_mmap_start(mmap));
	FAILS(BAD_STATE, doca_mmap_set_memrange(mmap, memory, SIZE));
	FAILS(BAD_STATE, doca_mmap_set_permissions(mmap, 1));
	FAILS(BAD_STATE, doca_mmap_set_user_data(mmap, data));
	FAILS(BAD_STATE, doca_mmap_set_free_cb(mmap, count_free, NULL));
	FAILS(NOT_PERMITTED, doca_mmap_add_dev(mmap, second));
	FAILS(NOT_PERMITTED, doca_mmap_rm_dev(mmap, first));
	FAILS(NOT_PERMITTED, doca_mmap_set_max_num_devices(mmap, 3));
	FAILS(NOT_PERMITTED, doca_mmap_enable_thread_safety(mmap));
	OK(doca_mmap_get_memrange(mmap, &addr, &len));
	CHECK(addr == memory && len == SIZE);
	OK(doca_mmap_get_user_data(mmap, &data));
	CHECK(data.u64 == 42);

	OK(doca_mmap_stop(mmap));
	FAILS(NOT_PERMITTED, doca_mmap_set_memrange(mmap, memory, SIZE));
	FAILS(NOT_PERMITTED, doca_mmap_set_max_num_devices(mmap, 3));
	OK(doca_mmap_start(mmap));
	CHECK(freed == 0);
	OK(doca_mmap_destroy(mmap));
	CHECK(freed == 1);
}

/* Registered memory is pinned, so there cannot be more of it than the machine has. */
static void no_more_than_there_is(void)
{
	struct doca_mmap *mmap;

	OK(doca_mmap_create(&mmap));
	OK(doca_mmap_add_dev(mmap, first));
	OK(doca_mmap_set_memrange(mmap, memory, (size_t)1 << 46));
	FAILS(NO_MEMORY, doca_mmap_start(mmap));
	OK(doca_mmap_destroy(mmap));
}

static void buffers_keep_maps(void)
{
	struct doca_buf_inventory *inventory;
	struct doca_mmap *mmap = started(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE), *safe;
	struct doca_buf *buf;
	uint32_t number = 9;

	OK(doca_buf_inventory_create(1, &inventory));
	OK(doca_buf_inventory_start(inventory));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, mmap, memory, SIZE, &buf));
	OK(doca_mmap_get_num_bufs(mmap, &number));
	CHECK(number == 1);
	FAILS(NOT_PERMITTED, doca_mmap_stop(mmap));
	FAILS(NOT_PERMITTED, doca_mmap_destroy(mmap));
	OK(doca_buf_dec_refcount(buf, NULL));
	OK(doca_mmap_get_num_bufs(mmap, &number));
	CHECK(number == 0);
	OK(doca_mmap_stop(mmap));
	FAILS(BAD_STATE, doca_buf_inventory_buf_get_by_addr(inventory, mmap, memory, SIZE, &buf));
	OK(doca_mmap_destroy(mmap));

	OK(doca_mmap_create(&safe));
	OK(doca_mmap_enable_thread_safety(safe));
	OK(doca_mmap_set_memrange(safe, memory, SIZE));
	OK(doca_mmap_start(safe));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, safe, memory, SIZE, &buf));
	OK(doca_mmap_destroy(safe));
	OK(doca_buf_dec_refcount(buf, NULL));
	OK(doca_buf_inventory_destroy(inventory));
}

/* Memory that is a mapping of a file descriptor stays known by its address when the descriptor is gone. */
static void dmabuf(void)
{
	int file = memfd_create("buffer", MFD_CLOEXEC);
	struct doca_mmap *map;
	uint8_t *view;

	CHECK(file >= 0 && ftruncate(file, SIZE) == 0);
	view = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(view != MAP_FAILED);
	OK(doca_mmap_create(&map));
	FAILS(INVALID_VALUE, doca_mmap_set_dmabuf_memrange(map, -1, view, 0, SIZE));
	FAILS(INVALID_VALUE, doca_mmap_set_dmabuf_memrange(map, file, NULL, 0, SIZE));
	FAILS(INVALID_VALUE, doca_mmap_set_dmabuf_memrange(map, file, view, SIZE_MAX, SIZE));
	OK(doca_mmap_set_dmabuf_memrange(map, file, view, 0, SIZE));
	FAILS(NOT_PERMITTED, doca_mmap_set_memrange(map, memory, SIZE));
	close(file);
	OK(doca_mmap_start(map));
	OK(doca_mmap_destroy(map));
	munmap(view, SIZE);
}

static void exporting(void)
{
	struct doca_mmap *idle, *local = started(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct doca_mmap *remote = started(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ |
					   DOCA_ACCESS_FLAG_PCI_READ_ONLY);
	const void *desc, *again, *pci;
	size_t len, len_again;
	uint8_t flag = 9;

	OK(doca_mmap_create(&idle));
	FAILS(NOT_PERMITTED, doca_mmap_export_rdma(idle, first, &desc, &len));
	FAILS(NOT_PERMITTED, doca_mmap_export_rdma(local, first, &desc, &len));
	FAILS(NOT_PERMITTED, doca_mmap_export_pci(local, first, &desc, &len));
	FAILS(NOT_FOUND, doca_mmap_export_rdma(remote, second, &desc, &len));
	FAILS(INVALID_VALUE, doca_mmap_export_rdma(NULL, first, &desc, &len));
	FAILS(INVALID_VALUE, doca_mmap_export_rdma(remote, NULL, &desc, &len));
	FAILS(INVALID_VALUE, doca_mmap_export_rdma(remote, first, NULL, &len));
	FAILS(INVALID_VALUE, doca_mmap_export_rdma(remote, first, &desc, NULL));
	OK(doca_mmap_get_exported(remote, &flag));
	CHECK(flag == 0);
	OK(doca_mmap_export_rdma(remote, first, &desc, &len));
	OK(doca_mmap_export_pci(remote, first, &pci, &len_again));
	OK(doca_mmap_export_rdma(remote, first, &again, &len_again));
	CHECK(len == len_again && memcmp(desc, again, len) == 0 && len <= 1024);
	OK(doca_mmap_get_exported(remote, &flag));
	CHECK(flag == 1);
	FAILS(NOT_PERMITTED, doca_mmap_start(remote));
	FAILS(NOT_PERMITTED, doca_mmap_rm_dev(remote, first));
	OK(doca_mmap_stop(remote));
	OK(doca_mmap_destroy(remote));
	OK(doca_mmap_destroy(local));
	OK(doca_mmap_destroy(idle));
}

/* What a process does with a descriptor that it got from elsewhere. */
static void importing(uint8_t *desc, size_t len, const void *exporters_addr)
{
	union doca_data data = {.u64 = 7};
	struct doca_buf_inventory *inventory;
	struct doca_mmap *mmap = NULL;
	struct doca_buf *buf;
	const void *out;
	size_t out_len;
	uint8_t flag = 9;
	void *addr;

	for (size_t cut = 0; cut < len; cut++)
		FAILS(INVALID_VALUE, doca_mmap_create_from_export(NULL, desc, cut, first, &mmap));
	for (size_t i = 0; i < len; i++) {
		desc[i] ^= (uint8_t)(1 << i % 8);
		FAILS(INVALID_VALUE, doca_mmap_create_from_export(NULL, desc, len, first, &mmap));
		desc[i] ^= (uint8_t)(1 << i % 8);
	}
	FAILS(INVALID_VALUE, doca_mmap_create_from_export(NULL, NULL, len, first, &mmap));
	FAILS(INVALID_VALUE, doca_mmap_create_from_export(NULL, desc, len, NULL, &mmap));
	FAILS(INVALID_VALUE, doca_mmap_create_from_export(NULL, desc, len, first, NULL));
	CHECK(mmap == NULL);
	OK(doca_mmap_create_from_export(&data, desc, len, first, &mmap));
	memset(desc, 0, len);
	OK(doca_mmap_get_memrange(mmap, &addr, &out_len));
	CHECK(addr == exporters_addr && out_len == SIZE);
	OK(doca_mmap_get_user_data(mmap, &data));
	CHECK(data.u64 == 7);
	OK(doca_mmap_get_from_export(mmap, &flag));
	CHECK(flag == 1);
	FAILS(NOT_PERMITTED, doca_mmap_start(mmap));
	FAILS(NOT_PERMITTED, doca_mmap_add_dev(mmap, second));
	FAILS(NOT_PERMITTED, doca_mmap_export_pci(mmap, first, &out, &out_len));
	FAILS(BAD_STATE, doca_mmap_set_permissions(mmap, 1));
	FAILS(IN_USE, doca_dev_close(first));
	OK(doca_mmap_enable_thread_safety(mmap));
	OK(doca_buf_inventory_create(1, &inventory));
	OK(doca_buf_inventory_start(inventory));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, mmap, addr, SIZE, &buf));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_addr(inventory, mmap, addr, SIZE + 1, &buf));
	OK(doca_buf_dec_refcount(buf, NULL));
	OK(doca_buf_inventory_destroy(inventory));
	OK(doca_mmap_stop(mmap));
	OK(doca_mmap_destroy(mmap));
}

/* The importing process: reads the exporter's address and a descriptor from stdin. */
static int importer(void)
{
	uint8_t desc[1024];
	void *addr;
	size_t len;

	first = open_device("mlx5_0");
	second = open_device("mlx5_1");
	CHECK(fread(&addr, sizeof(addr), 1, stdin) == 1);
	len = fread(desc, 1, sizeof(desc), stdin);
	CHECK(len > 0);
	importing(desc, len, addr);
	OK(doca_dev_close(second));
	OK(doca_dev_close(first));
	printf("importer: ");
	return check_summary();
}

static void two_processes(void)
{
	struct doca_mmap *mmap = started(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE);
	FILE *child = popen("exec \"$MMAP_PROGRAM\" import", "w");
	const void *desc, *addr = memory;
	size_t len;

	OK(doca_mmap_export_rdma(mmap, first, &desc, &len));
	CHECK(child != NULL && fwrite(&addr, sizeof(addr), 1, child) == 1 && fwrite(desc, 1, len, child) == len);
	CHECK(child != NULL && pclose(child) == 0);
	OK(doca_mmap_destroy(mmap));
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "import") == 0)
		return importer();
	setenv("MMAP_PROGRAM", check_program(), 1);
	first = open_device("mlx5_0");
	second = open_device("mlx5_1");
	CHECK(first != NULL && second != NULL);
	configuration();
	no_more_than_there_is();
	buffers_keep_maps();
	dmabuf();
	exporting();
	two_processes();
	OK(doca_dev_close(second));
	OK(doca_dev_close(first));
	return check_summary();
}
