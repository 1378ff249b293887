/*
 * A copy by DMA between two maps of one process, as a program writes it that leaves all to the defaults: maps
 * without a word about permissions may be read and written by their own devices, and by nobody else.
 */
#include "peer.h"

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dma.h>
#include <doca_mmap.h>
#include <doca_pe.h>

/* More buffers than one task takes. */
#define MAX_CHAIN 256

static int done, failed, starting, running;

static void copied(struct doca_dma_task_memcpy *task, union doca_data data, union doca_data ctx_data)
{
	(void)ctx_data;
	CHECK(data.u64 == 7);
	done++;
	doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static void not_copied(struct doca_dma_task_memcpy *task, union doca_data data, union doca_data ctx_data)
{
	(void)data;
	(void)ctx_data;
	failed++;
	doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static void changed(const union doca_data data, struct doca_ctx *ctx, enum doca_ctx_states before,
		    enum doca_ctx_states after)
{
	(void)data;
	(void)ctx;
	(void)before;
	starting += after == DOCA_CTX_STATE_STARTING;
	running += after == DOCA_CTX_STATE_RUNNING;
}

static struct doca_mmap *map_of(struct doca_dev *dev, void *memory, size_t len)
{
	struct doca_mmap *map = NULL;

	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_memrange(map, memory, len));
	OK(doca_mmap_start(map));
	return map;
}

/* A destination of as many buffers as there are is more than a task takes: refused at once, and the context goes on. */
static void too_long(struct doca_dev *dev, struct doca_dma *dma, struct doca_buf_inventory *inventory,
		     struct doca_buf *src, struct doca_mmap *target, char *to)
{
	struct doca_dma_task_memcpy *task = NULL;
	struct doca_buf *head = NULL, *one;
	uint32_t longest = 0;

	OK(doca_dma_cap_task_memcpy_get_max_buf_list_len(doca_dev_as_devinfo(dev), &longest));
	CHECK(longest + 3 <= MAX_CHAIN);
	OK(doca_buf_inventory_buf_get_by_addr(inventory, target, to, 1, &head));
	for (uint32_t i = 0; i < longest; i++) {
		OK(doca_buf_inventory_buf_get_by_addr(inventory, target, to, 1, &one));
		OK(doca_buf_chain_list(head, one));
	}
	OK(doca_dma_task_memcpy_alloc_init(dma, src, head, (union doca_data){.u64 = 7}, &task));
	FAILS(INVALID_VALUE, doca_task_submit(doca_dma_task_memcpy_as_task(task)));
	doca_task_free(doca_dma_task_memcpy_as_task(task));
	OK(doca_buf_dec_refcount(head, NULL));
	CHECK(failed == 0);
}

int main(void)
{
	char from[64] = "what is to be copied", to[64] = "";
	struct doca_dev *dev = open_device("mlx5_0");
	struct doca_mmap *source, *target;
	struct doca_buf_inventory *inventory;
	struct doca_dma_task_memcpy *task;
	struct doca_buf *src, *dst;
	struct doca_dma *dma;
	struct doca_ctx *ctx;
	struct doca_pe *pe;
	const void *blob;
	size_t len;

	source = map_of(dev, from, sizeof(from));
	target = map_of(dev, to, sizeof(to));
	FAILS(NOT_PERMITTED, doca_mmap_export_rdma(source, dev, &blob, &len));
	FAILS(NOT_PERMITTED, doca_mmap_export_pci(source, dev, &blob, &len));
	OK(doca_buf_inventory_create(MAX_CHAIN, &inventory));
	OK(doca_buf_inventory_start(inventory));
	OK(doca_buf_inventory_buf_get_by_data(inventory, source, from, sizeof(from), &src));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, target, to, sizeof(to), &dst));

	OK(doca_pe_create(&pe));
	OK(doca_dma_create(dev, &dma));
	ctx = doca_dma_as_ctx(dma);
	FAILS(INVALID_VALUE, doca_dma_task_memcpy_set_conf(dma, copied, not_copied, UINT32_MAX));
	OK(doca_dma_task_memcpy_set_conf(dma, copied, not_copied, 1));
	OK(doca_pe_connect_ctx(pe, ctx));
	OK(doca_ctx_set_state_changed_cb(ctx, changed));
	OK(doca_ctx_start(ctx));
	/* There is nothing to connect to. */
	CHECK(starting == 0 && running == 1);
	OK(doca_dma_task_memcpy_alloc_init(dma, src, dst, (union doca_data){.u64 = 7}, &task));
	OK(doca_task_submit(doca_dma_task_memcpy_as_task(task)));
	for (uint64_t until = now_ms() + PATIENCE_MS; done + failed == 0 && now_ms() < until;)
		doca_pe_progress(pe);
	CHECK(done == 1 && failed == 0);
	CHECK(memcmp(from, to, sizeof(from)) == 0);

	too_long(dev, dma, inventory, src, target, to);
	OK(doca_ctx_stop(ctx));
	OK(doca_ctx_stop(ctx));
	OK(doca_dma_destroy(dma));
	OK(doca_pe_destroy(pe));
	OK(doca_buf_dec_refcount(src, NULL));
	OK(doca_buf_dec_refcount(dst, NULL));
	OK(doca_buf_inventory_destroy(inventory));
	OK(doca_mmap_destroy(source));
	OK(doca_mmap_destroy(target));
	OK(doca_dev_close(dev));
	return check_summary();
}
