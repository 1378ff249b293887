/*
 * An RDMA instance: the states of its context, every property with default, limits and errors, and what is refused in
 * which state.
 */
#include "side.h"

#define STEP(from, to) (DOCA_CTX_STATE_##from * 4 + DOCA_CTX_STATE_##to)

static struct side side;

/* One shape for all properties, whatever their width. */
struct property {
	const char *name;
	doca_error_t (*set)(struct doca_rdma *, uint32_t);
	doca_error_t (*get)(struct doca_rdma *, uint32_t *);
	uint32_t initial;
	uint32_t good, in_use;
	uint32_t bad;
	doca_error_t refusal;
};

#define ACCESSORS(name, setter, getter, type)                                                \
	static doca_error_t set_##name(struct doca_rdma *rdma, uint32_t value)              \
	{                                                                                   \
		return setter(rdma, (type)value);                                           \
	}                                                                                   \
	static doca_error_t get_##name(struct doca_rdma *rdma, uint32_t *value)             \
	{                                                                                   \
		type narrow = 0;                                                            \
		doca_error_t code = getter(rdma, &narrow);                                  \
		*value = (uint32_t)narrow;                                                  \
		return code;                                                                \
	}
#define PLAIN(name, type) ACCESSORS(name, doca_rdma_set_##name, doca_rdma_get_##name, type)

PLAIN(send_queue_size, uint32_t)
PLAIN(max_send_buf_list_len, uint32_t)
PLAIN(transport_type, enum doca_rdma_transport_type)
PLAIN(mtu, enum doca_mtu_size)
PLAIN(permissions, uint32_t)
PLAIN(grh_enabled, uint8_t)
PLAIN(gid_index, uint32_t)
PLAIN(sl, uint32_t)
PLAIN(connection_request_timeout, uint16_t)
PLAIN(max_num_connections, uint16_t)
PLAIN(rnr_retry_count, uint8_t)
ACCESSORS(dst_buf_list_len, doca_rdma_task_receive_set_dst_buf_list_len, doca_rdma_task_receive_get_dst_buf_list_len,
	  uint32_t)

#define ROW(name, initial, good, in_use, bad, refusal) \
	{#name, set_##name, get_##name, initial, good, in_use, bad, DOCA_ERROR_##refusal}

static const struct property properties[] = {
	ROW(send_queue_size, 128, 100, 128, 32769, NOT_SUPPORTED),
	ROW(send_queue_size, 128, 32768, 32768, 0, INVALID_VALUE),
	ROW(max_send_buf_list_len, 1, 30, 30, 31, INVALID_VALUE),
	ROW(dst_buf_list_len, 4, 30, 30, 31, INVALID_VALUE),
	ROW(transport_type, DOCA_RDMA_TRANSPORT_TYPE_RC, DOCA_RDMA_TRANSPORT_TYPE_DC, DOCA_RDMA_TRANSPORT_TYPE_DC, 2,
	    INVALID_VALUE),
	ROW(mtu, DOCA_MTU_SIZE_1K_BYTES, DOCA_MTU_SIZE_4K_BYTES, DOCA_MTU_SIZE_4K_BYTES, DOCA_MTU_SIZE_RAW_ETHERNET,
	    NOT_SUPPORTED),
	ROW(mtu, DOCA_MTU_SIZE_1K_BYTES, DOCA_MTU_SIZE_256_BYTES, DOCA_MTU_SIZE_256_BYTES, 6, INVALID_VALUE),
	ROW(permissions, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, 15, 15, DOCA_ACCESS_FLAG_PCI_READ_ONLY, INVALID_VALUE),
	ROW(permissions, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, 0, 0, 128, INVALID_VALUE),
	ROW(grh_enabled, 1, 1, 1, 0, NOT_SUPPORTED),
	ROW(grh_enabled, 1, 1, 1, 2, INVALID_VALUE),
	ROW(gid_index, 0, 3, 3, 16, INVALID_VALUE),
	ROW(sl, 0, 15, 15, 16, INVALID_VALUE),
	/* Every value is a good one. */
	{"connection_request_timeout", set_connection_request_timeout, get_connection_request_timeout, 2000, 1, 1,
	 UINT16_MAX, DOCA_SUCCESS},
	ROW(max_num_connections, 1, UINT16_MAX, UINT16_MAX, 0, NOT_SUPPORTED),
	ROW(rnr_retry_count, 6, 7, 7, 8, INVALID_VALUE),
};

#define EACH(row) \
	for (const struct property *row = properties; row < properties + sizeof(properties) / sizeof(*properties); row++)

/* A failed check of a row says which. */
static void expect(const struct property *row, const char *what, uint32_t expected, uint32_t got)
{
	char text[256];

	snprintf(text, sizeof(text), "%s, %s: %u instead of %u", row->name, what, got, expected);
	check_result(expected == got, __FILE__, __LINE__, text);
}

static uint32_t value_of(const struct property *row, struct doca_rdma *rdma)
{
	uint32_t value = 0;

	expect(row, "get", DOCA_SUCCESS, row->get(rdma, &value));
	return value;
}

static void idle_properties(void)
{
	EACH(row) {
		struct doca_rdma *rdma = NULL;

		OK(doca_rdma_create(side.dev, &rdma));
		expect(row, "default", row->initial, value_of(row, rdma));
		expect(row, "set to a good value", DOCA_SUCCESS, row->set(rdma, row->good));
		expect(row, "good value in use", row->in_use, value_of(row, rdma));
		expect(row, "set to a bad value", row->refusal, row->set(rdma, row->bad));
		if (row->refusal != DOCA_SUCCESS)
			expect(row, "after a refusal", row->in_use, value_of(row, rdma));
		OK(doca_rdma_destroy(rdma));
	}
}

/* What a running context answers; the properties are what they were. */
static void running_properties(void)
{
	EACH(row) {
		uint32_t before = value_of(row, side.rdma);

		expect(row, "set after start", DOCA_ERROR_BAD_STATE, row->set(side.rdma, row->good));
		expect(row, "value after start", before, value_of(row, side.rdma));
	}
}

/* The other data paths are not here. */
static void other_paths(void)
{
	struct doca_rdma_connection *connection = NULL;
	struct doca_gpu_dev_rdma *gpu = NULL;
	doca_dpa_dev_rdma_t dpa = 0;
	uint32_t size = 77;

	FAILS(NOT_SUPPORTED, doca_rdma_set_recv_queue_size(side.rdma, 64));
	FAILS(NOT_SUPPORTED, doca_rdma_get_recv_queue_size(side.rdma, &size));
	FAILS(BAD_STATE, doca_rdma_get_gpu_handle(side.rdma, &gpu));
	FAILS(BAD_STATE, doca_rdma_get_dpa_handle(side.rdma, &dpa));
	FAILS(INVALID_VALUE, doca_rdma_bridge_prepare_connection(side.rdma, (void *)&size, &connection));
	CHECK(size == 77 && gpu == NULL && dpa == 0 && connection == NULL);
}

static void dpa_completion(doca_error_t expected)
{
	int completion;

	CHECK(doca_rdma_dpa_completion_attach(side.rdma, (void *)&completion) == expected);
}

static void bare_instance(void)
{
	struct doca_rdma *rdma = NULL;
	struct doca_ctx *ctx;

	OK(doca_rdma_create(side.dev, &rdma));
	ctx = doca_rdma_as_ctx(rdma);
	CHECK(ctx != NULL);
	/* A connected engine is required; task kinds and permissions are not. */
	FAILS(NOT_CONNECTED, doca_ctx_start(ctx));
	OK(doca_ctx_stop(ctx));
	OK(doca_pe_connect_ctx(side.pe, ctx));
	FAILS(NOT_PERMITTED, doca_pe_connect_ctx(side.pe, ctx));
	OK(doca_ctx_start(ctx));
	FAILS(BAD_STATE, doca_rdma_destroy(rdma));
	FAILS(IN_USE, doca_pe_destroy(side.pe));
	OK(doca_ctx_stop(ctx));
	OK(doca_rdma_destroy(rdma));
	CHECK(doca_rdma_as_ctx(NULL) == NULL);
}

/* What needs a running context. */
static void before_start(void)
{
	struct doca_rdma_task_receive *receive = NULL;
	struct doca_rdma_connection *connection = NULL;
	struct doca_rdma_addr *addr = NULL;
	const void *blob = NULL;
	size_t len = 0;

	FAILS(BAD_STATE, doca_rdma_export(side.rdma, &blob, &len, &connection));
	FAILS(BAD_STATE, doca_rdma_start_listen_to_port(side.rdma, 4000));
	FAILS(BAD_STATE, doca_rdma_stop_listen_to_port(side.rdma, 4000));
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", 4000, &addr));
	FAILS(BAD_STATE, doca_rdma_connect_to_addr(side.rdma, addr, (union doca_data){0}));
	OK(doca_rdma_addr_destroy(addr));
	FAILS(BAD_STATE, doca_rdma_task_receive_allocate_init(side.rdma, NULL, (union doca_data){0}, &receive));
	/* More tasks than the memory for them could be had. */
	FAILS(INVALID_VALUE,
	      doca_rdma_task_receive_set_conf(side.rdma, side_received, side_receive_failed, UINT32_MAX));
	CHECK(blob == NULL && len == 0 && connection == NULL && receive == NULL);
}

static void configure_after_start(void)
{
	FAILS(BAD_STATE, doca_rdma_task_receive_set_conf(side.rdma, side_received, side_receive_failed, 1));
	FAILS(BAD_STATE, doca_rdma_task_read_set_conf(side.rdma, side_read_done, side_read_failed, 1));
	FAILS(BAD_STATE, doca_rdma_set_connection_state_callbacks(side.rdma, side_asked, side_established, side_failed,
								  side_disconnected));
	FAILS(BAD_STATE, doca_pe_connect_ctx(side.pe, side.ctx));
	FAILS(BAD_STATE, doca_ctx_start(side.ctx));
	FAILS(BAD_STATE, doca_rdma_destroy(side.rdma));
	dpa_completion(DOCA_ERROR_BAD_STATE);
}

static void states(void)
{
	static const int once[] = {STEP(IDLE, STARTING), STEP(STARTING, RUNNING), STEP(RUNNING, STOPPING),
				   STEP(STOPPING, IDLE)};

	OK(doca_ctx_set_state_changed_cb(side.ctx, side_state));
	for (int round = 0; round < 3; round++) {
		side.num_states = 0;
		CHECK(side_is(&side, DOCA_CTX_STATE_IDLE));
		OK(doca_ctx_start(side.ctx));
		CHECK(side_is(&side, DOCA_CTX_STATE_RUNNING) && side.num_states == 2);
		OK(doca_ctx_stop(side.ctx));
		CHECK(side_is(&side, DOCA_CTX_STATE_IDLE) && side.num_states == 4);
		CHECK(memcmp(side.states, once, sizeof(once)) == 0);
	}
}

/* A task that is merely allocated keeps the context from IDLE; one in flight is flushed. */
static void stopping(void)
{
	struct doca_rdma_task_receive *idle = NULL, *late = NULL;
	struct doca_rdma_connection *connection = NULL;
	struct doca_buf *buf = side_room(&side, 0, 64);
	size_t in_flight = 0, len = 0;
	const void *blob = NULL;

	side.num_states = side.failed = 0;
	OK(doca_ctx_start(side.ctx));
	side_receive(&side, buf, 5);
	OK(doca_ctx_get_num_inflight_tasks(side.ctx, &in_flight));
	CHECK(in_flight == 1);
	OK(doca_pe_get_num_inflight_tasks(side.pe, &in_flight));
	CHECK(in_flight == 1);
	OK(doca_rdma_task_receive_allocate_init(side.rdma, NULL, (union doca_data){0}, &idle));
	FAILS(IN_PROGRESS, doca_ctx_stop(side.ctx));
	CHECK(side_is(&side, DOCA_CTX_STATE_STOPPING) && side.failed == 0);
	FAILS(IN_PROGRESS, doca_ctx_stop(side.ctx));
	FAILS(BAD_STATE, doca_task_submit(doca_rdma_task_receive_as_task(idle)));
	FAILS(BAD_STATE, doca_rdma_task_receive_allocate_init(side.rdma, NULL, (union doca_data){0}, &late));
	FAILS(BAD_STATE, doca_rdma_export(side.rdma, &blob, &len, &connection));
	FAILS(BAD_STATE, doca_rdma_destroy(side.rdma));
	UNTIL(&side, side.failed == 1);
	CHECK(side.status == DOCA_ERROR_IO_FAILED && side.task_data == 5);
	while (doca_pe_progress(side.pe))
		;
	CHECK(side_is(&side, DOCA_CTX_STATE_STOPPING));
	doca_task_free(doca_rdma_task_receive_as_task(idle));
	UNTIL(&side, side_is(&side, DOCA_CTX_STATE_IDLE));
	CHECK(side.num_states == 4 && side.states[3] == STEP(STOPPING, IDLE));
	put(buf);
}

/* Connections: as many as configured, their numbers and user data, and none after a restart. */
static void connections(void)
{
	struct doca_rdma_connection *made[3] = {0};
	union doca_data data = {.u64 = 9};
	struct doca_rdma_addr *addr = NULL;
	const void *blob = NULL;
	uint32_t id = 0;
	size_t len = 0;

	OK(doca_rdma_set_max_num_connections(side.rdma, 2));
	OK(doca_ctx_start(side.ctx));
	for (uint32_t i = 0; i < 2; i++) {
		OK(doca_rdma_export(side.rdma, &blob, &len, &made[i]));
		OK(doca_rdma_connection_get_id(made[i], &id));
		CHECK(id == i && len > 0);
		OK(doca_rdma_connection_get_user_data(made[i], &data));
		CHECK(data.u64 == 0);
		OK(doca_rdma_connection_set_user_data(made[i], (union doca_data){.u64 = 70 + i}));
		OK(doca_rdma_connection_get_user_data(made[i], &data));
		CHECK(data.u64 == 70 + i);
	}
	FAILS(INVALID_VALUE, doca_rdma_connection_get_addr(made[0], &addr));
	FAILS(FULL, doca_rdma_export(side.rdma, &blob, &len, &made[2]));
	FAILS(BAD_STATE, doca_rdma_connection_accept(made[0], NULL, 0));
	FAILS(BAD_STATE, doca_rdma_connection_reject(made[0]));
	OK(doca_rdma_connection_disconnect(made[0]));
	FAILS(BAD_STATE, doca_rdma_connection_disconnect(made[0]));
	OK(doca_rdma_export(side.rdma, &blob, &len, &made[2]));
	OK(doca_rdma_connection_get_id(made[2], &id));
	CHECK(id == 0);
	OK(doca_ctx_stop(side.ctx));
	OK(doca_ctx_start(side.ctx));
	OK(doca_rdma_export(side.rdma, &blob, &len, &made[0]));
	OK(doca_rdma_export(side.rdma, &blob, &len, &made[1]));
	OK(doca_ctx_stop(side.ctx));
}

static void addresses(void)
{
	static const struct {
		enum doca_rdma_addr_type type;
		const char *good, *bad;
	} rows[] = {
		{DOCA_RDMA_ADDR_TYPE_IPv4, "10.0.0.7", "10.0.0"},
		{DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", "::1"},
		{DOCA_RDMA_ADDR_TYPE_IPv6, "fe80::3bff:fe00:0", "192.168.1.1"},
		{DOCA_RDMA_ADDR_TYPE_GID, "::ffff:192.168.1.1", "mlx5_0"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct doca_rdma_addr *addr = NULL, *none = NULL;
		enum doca_rdma_addr_type type;
		const char *text = NULL;
		uint16_t port = 0;

		FAILS(INVALID_VALUE, doca_rdma_addr_create(rows[i].type, rows[i].bad, 1, &none));
		CHECK(none == NULL);
		OK(doca_rdma_addr_create(rows[i].type, rows[i].good, 65535, &addr));
		OK(doca_rdma_addr_get_params(addr, &type, &text, &port));
		CHECK(type == rows[i].type && strcmp(text, rows[i].good) == 0 && port == 65535);
		OK(doca_rdma_addr_destroy(addr));
	}
}

int main(void)
{
	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	idle_properties();
	bare_instance();
	other_paths();
	dpa_completion(DOCA_ERROR_NOT_SUPPORTED);
	before_start();
	addresses();
	states();
	stopping();
	connections();
	OK(doca_ctx_start(side.ctx));
	running_properties();
	configure_after_start();
	side_close(&side);
	return check_summary();
}
