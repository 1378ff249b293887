/*
 * A call that comes too early or too late is refused with BAD_STATE, and the SDK's log says why: once per call.
 */
#include "side.h"

#include <doca_buf_pool.h>
#include <doca_log.h>

static char text[1024];
static int lines;

static void on_sdk(char *line)
{
	if (strstr(line, "[ERR]") != NULL)
		lines++;
}

#define EXPLAINED(call)                            \
	do {                                       \
		int before_ = lines;               \
		FAILS(BAD_STATE, call);            \
		CHECK(lines == before_ + 1);       \
	} while (0)

static void memory(struct side *side)
{
	struct doca_buf_inventory *inventory;
	struct doca_buf_pool *pool;
	struct doca_mmap *map;
	struct doca_buf *buf;

	OK(doca_buf_inventory_create(1, &inventory));
	EXPLAINED(doca_buf_inventory_buf_get_by_addr(inventory, side->map, side->memory, 8, &buf));
	OK(doca_mmap_create(&map));
	OK(doca_mmap_set_memrange(map, side->memory, 64));
	EXPLAINED(doca_buf_inventory_buf_get_by_addr(side->inventory, map, side->memory, 8, &buf));
	OK(doca_buf_pool_create(1, 8, map, &pool));
	EXPLAINED(doca_buf_pool_buf_alloc(pool, &buf));
	EXPLAINED(doca_buf_pool_start(pool));
	EXPLAINED(doca_mmap_set_permissions(side->map, DOCA_ACCESS_FLAG_LOCAL_READ_ONLY));
	OK(doca_buf_pool_destroy(pool));
	OK(doca_buf_inventory_destroy(inventory));
	OK(doca_mmap_destroy(map));
}

int main(void)
{
	struct doca_log_backend *backend;
	struct doca_rdma_connection *connection;
	const void *blob;
	struct side side;
	size_t len;

	OK(doca_log_backend_create_with_buf_sdk(text, sizeof(text), on_sdk, &backend));
	OK(doca_log_backend_set_sdk_level(backend, DOCA_LOG_LEVEL_ERROR));
	OK(doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_ERROR));
	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	EXPLAINED(doca_rdma_export(side.rdma, &blob, &len, &connection));
	OK(doca_ctx_start(side.ctx));
	EXPLAINED(doca_ctx_start(side.ctx));
	EXPLAINED(doca_rdma_set_mtu(side.rdma, DOCA_MTU_SIZE_1K_BYTES));
	memory(&side);
	side_close(&side);
	return check_summary();
}
