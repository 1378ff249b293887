/*
 * NULL for each pointer parameter of doca_rdma.h in turn, with all others as they should be: INVALID_VALUE, and nothing is
 * written. What has no code to give ignores NULL.
 */
#include "side.h"

static char scratch[4096];
static void *out = scratch;
static struct doca_rdma_connection *connection;
static struct doca_rdma_addr *addr;
static struct doca_rdma *rdma, *idle;
static struct doca_dev *dev;
static struct doca_buf *buf;
static const union doca_data none;

static void ignore(void)
{
}

static void *call = (void *)ignore;

static void instances(void)
{
	FAILS(INVALID_VALUE, doca_rdma_create(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_create(dev, NULL));
	FAILS(INVALID_VALUE, doca_rdma_destroy(NULL));
	FAILS(INVALID_VALUE, doca_rdma_export(NULL, out, out, out));
	FAILS(INVALID_VALUE, doca_rdma_export(rdma, NULL, out, out));
	FAILS(INVALID_VALUE, doca_rdma_export(rdma, out, NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_export(rdma, out, out, NULL));
	FAILS(INVALID_VALUE, doca_rdma_connect(NULL, scratch, 8, connection));
	FAILS(INVALID_VALUE, doca_rdma_connect(rdma, NULL, 8, connection));
	FAILS(INVALID_VALUE, doca_rdma_connect(rdma, scratch, 8, NULL));
	FAILS(INVALID_VALUE, doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, NULL, 1, out));
	FAILS(INVALID_VALUE, doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", 1, NULL));
	FAILS(INVALID_VALUE, doca_rdma_addr_destroy(NULL));
	FAILS(INVALID_VALUE, doca_rdma_start_listen_to_port(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_stop_listen_to_port(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_connection_accept(NULL, scratch, 1));
	FAILS(INVALID_VALUE, doca_rdma_connection_reject(NULL));
	FAILS(INVALID_VALUE, doca_rdma_connect_to_addr(NULL, addr, none));
	FAILS(INVALID_VALUE, doca_rdma_connect_to_addr(rdma, NULL, none));
	FAILS(INVALID_VALUE, doca_rdma_connection_disconnect(NULL));
	FAILS(INVALID_VALUE, doca_rdma_bridge_prepare_connection(NULL, out, out));
	FAILS(INVALID_VALUE, doca_rdma_bridge_prepare_connection(rdma, NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_bridge_prepare_connection(rdma, out, NULL));
	FAILS(INVALID_VALUE, doca_rdma_bridge_accept(NULL, scratch, 1, connection));
	FAILS(INVALID_VALUE, doca_rdma_bridge_accept(rdma, scratch, 1, NULL));
	FAILS(INVALID_VALUE, doca_rdma_bridge_established(NULL, connection));
	FAILS(INVALID_VALUE, doca_rdma_bridge_established(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_set_send_queue_size(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_set_recv_queue_size(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_set_max_send_buf_list_len(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_set_transport_type(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_set_mtu(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_set_permissions(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_set_grh_enabled(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_set_gid_index(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_set_sl(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_set_connection_request_timeout(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_connection_set_user_data(NULL, none));
	FAILS(INVALID_VALUE, doca_rdma_set_max_num_connections(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_set_rnr_retry_count(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_get_send_queue_size(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_send_queue_size(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_recv_queue_size(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_recv_queue_size(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_max_send_buf_list_len(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_max_send_buf_list_len(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_transport_type(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_transport_type(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_mtu(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_mtu(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_permissions(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_permissions(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_grh_enabled(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_grh_enabled(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_gid_index(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_gid_index(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_sl(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_sl(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_dpa_handle(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_dpa_handle(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_gpu_handle(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_gpu_handle(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_connection_request_timeout(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_connection_request_timeout(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_connection_get_addr(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_connection_get_addr(connection, NULL));
	FAILS(INVALID_VALUE, doca_rdma_addr_get_params(NULL, out, out, out));
	FAILS(INVALID_VALUE, doca_rdma_addr_get_params(addr, NULL, out, out));
	FAILS(INVALID_VALUE, doca_rdma_addr_get_params(addr, out, NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_addr_get_params(addr, out, out, NULL));
	FAILS(INVALID_VALUE, doca_rdma_connection_get_user_data(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_connection_get_user_data(connection, NULL));
	FAILS(INVALID_VALUE, doca_rdma_connection_get_id(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_connection_get_id(connection, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_max_num_connections(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_max_num_connections(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_get_rnr_retry_count(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_get_rnr_retry_count(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_set_connection_state_callbacks(NULL, call, call, call, call));
	FAILS(INVALID_VALUE, doca_rdma_set_connection_state_callbacks(idle, call, NULL, call, call));
	FAILS(INVALID_VALUE, doca_rdma_set_connection_state_callbacks(idle, call, call, NULL, call));
	FAILS(INVALID_VALUE, doca_rdma_set_connection_state_callbacks(idle, call, call, call, NULL));
	FAILS(INVALID_VALUE, doca_rdma_dpa_completion_attach(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_dpa_completion_attach(idle, NULL));
}

static void kinds(void)
{
	FAILS(INVALID_VALUE, doca_rdma_task_receive_set_conf(NULL, call, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_receive_set_conf(idle, NULL, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_receive_set_conf(idle, call, NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_receive_set_dst_buf_list_len(NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_receive_get_dst_buf_list_len(NULL, out));
	FAILS(INVALID_VALUE, doca_rdma_task_receive_get_dst_buf_list_len(rdma, NULL));
	FAILS(INVALID_VALUE, doca_rdma_task_receive_allocate_init(NULL, buf, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_receive_allocate_init(rdma, buf, none, NULL));
	FAILS(INVALID_VALUE, doca_rdma_task_send_set_conf(NULL, call, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_send_set_conf(idle, NULL, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_send_set_conf(idle, call, NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_send_allocate_init(NULL, connection, buf, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_send_allocate_init(rdma, NULL, buf, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_send_allocate_init(rdma, connection, buf, none, NULL));
	FAILS(INVALID_VALUE, doca_rdma_task_send_imm_set_conf(NULL, call, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_send_imm_set_conf(idle, NULL, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_send_imm_set_conf(idle, call, NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_send_imm_allocate_init(NULL, connection, buf, 1, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_send_imm_allocate_init(rdma, NULL, buf, 1, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_send_imm_allocate_init(rdma, connection, buf, 1, none, NULL));
	FAILS(INVALID_VALUE, doca_rdma_task_read_set_conf(NULL, call, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_read_set_conf(idle, NULL, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_read_set_conf(idle, call, NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_read_allocate_init(NULL, connection, buf, buf, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_read_allocate_init(rdma, NULL, buf, buf, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_read_allocate_init(rdma, connection, buf, buf, none, NULL));
	FAILS(INVALID_VALUE, doca_rdma_task_write_set_conf(NULL, call, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_write_set_conf(idle, NULL, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_write_set_conf(idle, call, NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_write_allocate_init(NULL, connection, buf, buf, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_write_allocate_init(rdma, NULL, buf, buf, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_write_allocate_init(rdma, connection, buf, buf, none, NULL));
	FAILS(INVALID_VALUE, doca_rdma_task_write_imm_set_conf(NULL, call, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_write_imm_set_conf(idle, NULL, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_write_imm_set_conf(idle, call, NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_write_imm_allocate_init(NULL, connection, buf, buf, 1, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_write_imm_allocate_init(rdma, NULL, buf, buf, 1, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_write_imm_allocate_init(rdma, connection, buf, buf, 1, none, NULL));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_cmp_swp_set_conf(NULL, call, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_cmp_swp_set_conf(idle, NULL, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_cmp_swp_set_conf(idle, call, NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_cmp_swp_allocate_init(NULL, connection, buf, buf, 1, 1, none,
		out));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_cmp_swp_allocate_init(rdma, NULL, buf, buf, 1, 1, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_cmp_swp_allocate_init(rdma, connection, buf, buf, 1, 1, none,
		NULL));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_fetch_add_set_conf(NULL, call, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_fetch_add_set_conf(idle, NULL, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_fetch_add_set_conf(idle, call, NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_fetch_add_allocate_init(NULL, connection, buf, buf, 1, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_fetch_add_allocate_init(rdma, NULL, buf, buf, 1, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_atomic_fetch_add_allocate_init(rdma, connection, buf, buf, 1, none,
		NULL));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_get_set_conf(NULL, call, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_get_set_conf(idle, NULL, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_get_set_conf(idle, call, NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_get_allocate_init(NULL, connection, out, buf,
		none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_get_allocate_init(rdma, NULL, out, buf, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_get_allocate_init(rdma, connection, out, buf,
		none, NULL));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_set_set_conf(NULL, call, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_set_set_conf(idle, NULL, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_set_set_conf(idle, call, NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(NULL, connection, out,
		buf, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(rdma, NULL, out, buf,
		none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(rdma, connection, out,
		buf, none, NULL));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_add_set_conf(NULL, call, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_add_set_conf(idle, NULL, call, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_add_set_conf(idle, call, NULL, 1));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_add_allocate_init(NULL, connection, out,
		buf, 1, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_add_allocate_init(rdma, NULL, out, buf,
		1, none, out));
	FAILS(INVALID_VALUE, doca_rdma_task_remote_net_sync_event_notify_add_allocate_init(rdma, connection, out,
		buf, 1, none, NULL));
}

/* Fields of a task have setters and getters without codes. */
static void fields(void)
{
	CHECK(doca_rdma_as_ctx(NULL) == NULL);
	CHECK(doca_rdma_task_receive_as_task(NULL) == NULL);
	doca_rdma_task_receive_set_dst_buf(NULL, buf);
	CHECK(doca_rdma_task_receive_get_dst_buf(NULL) == NULL);
	CHECK(doca_rdma_task_receive_get_result_opcode(NULL) == 0);
	CHECK(doca_rdma_task_receive_get_result_len(NULL) == 0);
	CHECK(doca_rdma_task_receive_get_result_immediate_data(NULL) == 0);
	CHECK(doca_rdma_task_receive_get_result_rdma_connection(NULL) == NULL);
	CHECK(doca_rdma_task_send_as_task(NULL) == NULL);
	doca_rdma_task_send_set_src_buf(NULL, buf);
	CHECK(doca_rdma_task_send_get_src_buf(NULL) == NULL);
	doca_rdma_task_send_set_rdma_connection(NULL, connection);
	CHECK(doca_rdma_task_send_get_rdma_connection(NULL) == NULL);
	CHECK(doca_rdma_task_send_imm_as_task(NULL) == NULL);
	doca_rdma_task_send_imm_set_src_buf(NULL, buf);
	CHECK(doca_rdma_task_send_imm_get_src_buf(NULL) == NULL);
	doca_rdma_task_send_imm_set_immediate_data(NULL, 1);
	CHECK(doca_rdma_task_send_imm_get_immediate_data(NULL) == 0);
	doca_rdma_task_send_imm_set_rdma_connection(NULL, connection);
	CHECK(doca_rdma_task_send_imm_get_rdma_connection(NULL) == NULL);
	CHECK(doca_rdma_task_read_as_task(NULL) == NULL);
	doca_rdma_task_read_set_src_buf(NULL, buf);
	CHECK(doca_rdma_task_read_get_src_buf(NULL) == NULL);
	doca_rdma_task_read_set_dst_buf(NULL, buf);
	CHECK(doca_rdma_task_read_get_dst_buf(NULL) == NULL);
	CHECK(doca_rdma_task_read_get_result_len(NULL) == 0);
	doca_rdma_task_read_set_rdma_connection(NULL, connection);
	CHECK(doca_rdma_task_read_get_rdma_connection(NULL) == NULL);
	CHECK(doca_rdma_task_write_as_task(NULL) == NULL);
	doca_rdma_task_write_set_src_buf(NULL, buf);
	CHECK(doca_rdma_task_write_get_src_buf(NULL) == NULL);
	doca_rdma_task_write_set_dst_buf(NULL, buf);
	CHECK(doca_rdma_task_write_get_dst_buf(NULL) == NULL);
	doca_rdma_task_write_set_rdma_connection(NULL, connection);
	CHECK(doca_rdma_task_write_get_rdma_connection(NULL) == NULL);
	CHECK(doca_rdma_task_write_imm_as_task(NULL) == NULL);
	doca_rdma_task_write_imm_set_src_buf(NULL, buf);
	CHECK(doca_rdma_task_write_imm_get_src_buf(NULL) == NULL);
	doca_rdma_task_write_imm_set_dst_buf(NULL, buf);
	CHECK(doca_rdma_task_write_imm_get_dst_buf(NULL) == NULL);
	doca_rdma_task_write_imm_set_immediate_data(NULL, 1);
	CHECK(doca_rdma_task_write_imm_get_immediate_data(NULL) == 0);
	doca_rdma_task_write_imm_set_rdma_connection(NULL, connection);
	CHECK(doca_rdma_task_write_imm_get_rdma_connection(NULL) == NULL);
	CHECK(doca_rdma_task_atomic_cmp_swp_as_task(NULL) == NULL);
	doca_rdma_task_atomic_cmp_swp_set_dst_buf(NULL, buf);
	CHECK(doca_rdma_task_atomic_cmp_swp_get_dst_buf(NULL) == NULL);
	doca_rdma_task_atomic_cmp_swp_set_result_buf(NULL, buf);
	CHECK(doca_rdma_task_atomic_cmp_swp_get_result_buf(NULL) == NULL);
	doca_rdma_task_atomic_cmp_swp_set_cmp_data(NULL, 1);
	CHECK(doca_rdma_task_atomic_cmp_swp_get_cmp_data(NULL) == 0);
	doca_rdma_task_atomic_cmp_swp_set_swap_data(NULL, 1);
	CHECK(doca_rdma_task_atomic_cmp_swp_get_swap_data(NULL) == 0);
	doca_rdma_task_atomic_cmp_swp_set_rdma_connection(NULL, connection);
	CHECK(doca_rdma_task_atomic_cmp_swp_get_rdma_connection(NULL) == NULL);
	CHECK(doca_rdma_task_atomic_fetch_add_as_task(NULL) == NULL);
	doca_rdma_task_atomic_fetch_add_set_dst_buf(NULL, buf);
	CHECK(doca_rdma_task_atomic_fetch_add_get_dst_buf(NULL) == NULL);
	doca_rdma_task_atomic_fetch_add_set_result_buf(NULL, buf);
	CHECK(doca_rdma_task_atomic_fetch_add_get_result_buf(NULL) == NULL);
	doca_rdma_task_atomic_fetch_add_set_add_data(NULL, 1);
	CHECK(doca_rdma_task_atomic_fetch_add_get_add_data(NULL) == 0);
	doca_rdma_task_atomic_fetch_add_set_rdma_connection(NULL, connection);
	CHECK(doca_rdma_task_atomic_fetch_add_get_rdma_connection(NULL) == NULL);
	CHECK(doca_rdma_task_remote_net_sync_event_get_as_task(NULL) == NULL);
	doca_rdma_task_remote_net_sync_event_get_set_sync_event(NULL, out);
	CHECK(doca_rdma_task_remote_net_sync_event_get_get_sync_event(NULL) == NULL);
	doca_rdma_task_remote_net_sync_event_get_set_dst_buf(NULL, buf);
	CHECK(doca_rdma_task_remote_net_sync_event_get_get_dst_buf(NULL) == NULL);
	CHECK(doca_rdma_task_remote_net_sync_event_get_get_result_len(NULL) == 0);
	doca_rdma_task_remote_net_sync_event_get_set_rdma_connection(NULL, connection);
	CHECK(doca_rdma_task_remote_net_sync_event_get_get_rdma_connection(NULL) == NULL);
	CHECK(doca_rdma_task_remote_net_sync_event_notify_set_as_task(NULL) == NULL);
	doca_rdma_task_remote_net_sync_event_notify_set_set_sync_event(NULL, out);
	CHECK(doca_rdma_task_remote_net_sync_event_notify_set_get_sync_event(NULL) == NULL);
	doca_rdma_task_remote_net_sync_event_notify_set_set_rdma_connection(NULL, connection);
	CHECK(doca_rdma_task_remote_net_sync_event_notify_set_get_rdma_connection(NULL) == NULL);
	doca_rdma_task_remote_net_sync_event_notify_set_set_src_buf(NULL, buf);
	CHECK(doca_rdma_task_remote_net_sync_event_notify_set_get_src_buf(NULL) == NULL);
	CHECK(doca_rdma_task_remote_net_sync_event_notify_add_as_task(NULL) == NULL);
	doca_rdma_task_remote_net_sync_event_notify_add_set_sync_event(NULL, out);
	CHECK(doca_rdma_task_remote_net_sync_event_notify_add_get_sync_event(NULL) == NULL);
	doca_rdma_task_remote_net_sync_event_notify_add_set_result_buf(NULL, buf);
	CHECK(doca_rdma_task_remote_net_sync_event_notify_add_get_result_buf(NULL) == NULL);
	doca_rdma_task_remote_net_sync_event_notify_add_set_add_data(NULL, 1);
	CHECK(doca_rdma_task_remote_net_sync_event_notify_add_get_add_data(NULL) == 0);
	doca_rdma_task_remote_net_sync_event_notify_add_set_rdma_connection(NULL, connection);
	CHECK(doca_rdma_task_remote_net_sync_event_notify_add_get_rdma_connection(NULL) == NULL);
}

int main(void)
{
	struct doca_rdma_task_receive *task = NULL;
	struct side side;

	side_create(&side, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	side_enable(&side);
	OK(doca_ctx_start(side.ctx));
	rdma = side.rdma;
	dev = side.dev;
	buf = side_room(&side, 0, 8);
	OK(doca_rdma_create(dev, &idle));
	OK(doca_rdma_export(rdma, &(const void *){NULL}, &(size_t){0}, &connection));
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.168.1.1", 1, &addr));
	memset(scratch, 'u', sizeof(scratch));
	instances();
	kinds();
	fields();
	for (size_t i = 0; i < sizeof(scratch); i++)
		if (scratch[i] != 'u')
			CHECK(!"nothing is written by a refused call");
	/* No task was lost to a refused allocation. */
	for (int i = 0; i < TASKS; i++)
		OK(doca_rdma_task_receive_allocate_init(rdma, NULL, (union doca_data){.ptr = task}, &task));
	while (task != NULL) {
		struct doca_rdma_task_receive *next = doca_task_get_user_data(doca_rdma_task_receive_as_task(task)).ptr;

		doca_task_free(doca_rdma_task_receive_as_task(task));
		task = next;
	}
	OK(doca_rdma_addr_destroy(addr));
	OK(doca_rdma_destroy(idle));
	put(buf);
	side_close(&side);
	return check_summary();
}
