/*
 * Tasks of RDMA within one process: what is refused and with which code, queues and their ends, order, and submits that
 * wait for a flush.
 */
#include "side.h"

static struct side a, b;
static struct doca_rdma_connection *from_a, *from_b;

static void open_both(void (*configure)(struct side *))
{
	struct side *sides[] = {&a, &b};

	for (int i = 0; i < 2; i++) {
		side_create(sides[i], i == 0 ? "mlx5_0" : "mlx5_1", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE,
			    DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
		if (configure != NULL)
			configure(sides[i]);
		OK(doca_ctx_start(sides[i]->ctx));
	}
	side_join(&a, &from_a, &b, &from_b);
}

static void close_both(void)
{
	side_close(&a);
	side_close(&b);
}

static void pools(void)
{
	struct doca_rdma_task_send *sends[TASKS + 1] = {0};
	struct doca_rdma_task_write *write = NULL;

	for (int i = 0; i < TASKS; i++)
		OK(doca_rdma_task_send_allocate_init(a.rdma, from_a, NULL, (union doca_data){0}, &sends[i]));
	FAILS(NO_MEMORY,
	      doca_rdma_task_send_allocate_init(a.rdma, from_a, NULL, (union doca_data){0}, &sends[TASKS]));
	CHECK(sends[TASKS] == NULL);
	for (int i = 0; i < TASKS; i++)
		doca_task_free(doca_rdma_task_send_as_task(sends[i]));
	OK(doca_rdma_task_send_allocate_init(a.rdma, from_a, NULL, (union doca_data){.u64 = 3}, &sends[0]));
	CHECK((void *)sends[0] == (void *)doca_rdma_task_send_as_task(sends[0]));
	CHECK(doca_task_get_user_data(doca_rdma_task_send_as_task(sends[0])).u64 == 3);
	CHECK(doca_task_get_ctx(doca_rdma_task_send_as_task(sends[0])) == a.ctx);
	CHECK(doca_rdma_task_send_get_rdma_connection(sends[0]) == from_a);
	doca_task_free(doca_rdma_task_send_as_task(sends[0]));
	/* A kind that was not configured, and another instance's connection. */
	FAILS(INVALID_VALUE,
	      doca_rdma_task_write_allocate_init(a.rdma, from_a, NULL, NULL, (union doca_data){0}, &write));
	FAILS(INVALID_VALUE, doca_rdma_task_send_allocate_init(a.rdma, from_b, NULL, (union doca_data){0}, &sends[0]));
	FAILS(INVALID_VALUE, doca_rdma_task_send_allocate_init(a.rdma, NULL, NULL, (union doca_data){0}, &sends[0]));
}

static void refused_messages(void)
{
	struct doca_rdma_task_send *task = NULL;
	struct doca_buf *first = side_data(&a, 0, 8), *second = side_data(&a, 8, 8), *other = side_data(&b, 0, 8);
	struct doca_rdma_connection *lonely = NULL;
	struct doca_task *send;
	const void *blob = NULL;
	size_t len = 0;

	OK(doca_rdma_task_send_allocate_init(a.rdma, from_a, first, (union doca_data){0}, &task));
	send = doca_rdma_task_send_as_task(task);
	doca_rdma_task_send_set_rdma_connection(task, NULL);
	FAILS(INVALID_VALUE, doca_task_submit(send));
	doca_rdma_task_send_set_rdma_connection(task, from_b);
	FAILS(INVALID_VALUE, doca_task_try_submit(send));
	OK(doca_rdma_export(a.rdma, &blob, &len, &lonely));
	doca_rdma_task_send_set_rdma_connection(task, lonely);
	FAILS(BAD_STATE, doca_task_submit(send));
	OK(doca_rdma_connection_disconnect(lonely));
	doca_rdma_task_send_set_rdma_connection(task, from_a);
	OK(doca_buf_chain_list(first, second));
	FAILS(INVALID_VALUE, doca_task_submit(send));
	OK(doca_buf_unchain_list(first, second));
	doca_rdma_task_send_set_src_buf(task, other);
	CHECK(doca_rdma_task_send_get_src_buf(task) == other);
	FAILS(INVALID_VALUE, doca_task_submit(send));
	/* After all that the task is still the program's, and good. */
	doca_rdma_task_send_set_src_buf(task, first);
	side_receive(&b, NULL, 0);
	OK(doca_buf_reset_data_len(first));
	OK(doca_task_try_submit(send));
	UNTIL(&a, a.succeeded == 1);
	UNTIL(&b, b.succeeded == 1);
	put(first);
	put(second);
	put(other);
}

static void refused_receives(void)
{
	struct doca_buf *chain[5], *still;
	struct doca_rdma_task_receive *task = NULL;
	struct doca_mmap *map = NULL;
	struct doca_task *receive;

	OK(doca_rdma_task_receive_allocate_init(a.rdma, NULL, (union doca_data){0}, &task));
	receive = doca_rdma_task_receive_as_task(task);
	for (size_t i = 0; i < 5; i++) {
		chain[i] = side_room(&a, 64 * i, 64);
		if (i > 0)
			OK(doca_buf_chain_list_tail(chain[0], chain[i - 1], chain[i]));
	}
	doca_rdma_task_receive_set_dst_buf(task, chain[0]);
	FAILS(INVALID_VALUE, doca_task_submit(receive));
	put(chain[0]);
	/* Memory that may not be written. */
	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, a.dev));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_LOCAL_READ_ONLY));
	OK(doca_mmap_set_memrange(map, a.memory, 64));
	OK(doca_mmap_start(map));
	OK(doca_buf_inventory_buf_get_by_addr(a.inventory, map, a.memory, 64, &still));
	doca_rdma_task_receive_set_dst_buf(task, still);
	FAILS(NOT_PERMITTED, doca_task_submit(receive));
	doca_task_free(receive);
	put(still);
	OK(doca_mmap_destroy(map));
}

static void small_queue(struct side *side)
{
	uint32_t size = 0;

	OK(doca_rdma_set_send_queue_size(side->rdma, 3));
	OK(doca_rdma_get_send_queue_size(side->rdma, &size));
	CHECK(size == 4);
	OK(doca_rdma_set_max_send_buf_list_len(side->rdma, 3));
}

/* The queue takes as much as its size says, then FULL; the refused task can be submitted when there is room. */
static void full_queue(void)
{
	struct doca_task *extra;

	open_both(small_queue);
	for (uint64_t i = 0; i < 4; i++)
		side_send(&a, from_a, NULL, i);
	extra = side_message(&a, from_a, NULL, 4);
	FAILS(FULL, doca_task_submit(extra));
	for (uint64_t i = 0; i < 5; i++)
		side_receive(&b, NULL, i);
	UNTIL(&a, a.succeeded >= 1);
	OK(doca_task_submit(extra));
	UNTIL(&a, a.succeeded == 5);
	CHECK(a.task_data == 4 && a.failed == 0);
	UNTIL(&b, b.succeeded == 5);
	close_both();
}

/* Bytes of a chain arrive in order, over the borders of the buffers of both sides. */
static void chains(void)
{
	struct doca_buf *out[3], *in[4];
	size_t len = 0;

	open_both(small_queue);
	for (size_t i = 0; i < 90; i++)
		a.memory[i] = (char)(i + 1);
	for (size_t i = 0; i < 3; i++)
		out[i] = side_data(&a, 30 * i, 30);
	for (size_t i = 0; i < 4; i++)
		in[i] = side_room(&b, 1000 * i, 25);
	OK(doca_buf_chain_list(out[0], out[1]));
	OK(doca_buf_chain_list_tail(out[0], out[1], out[2]));
	OK(doca_buf_chain_list(in[0], in[1]));
	OK(doca_buf_chain_list_tail(in[0], in[1], in[2]));
	OK(doca_buf_chain_list_tail(in[0], in[2], in[3]));
	side_receive(&b, in[0], 0);
	side_send(&a, from_a, out[0], 0);
	UNTIL(&a, a.succeeded == 1);
	UNTIL(&b, b.succeeded == 1);
	CHECK(b.result_len == 90 && b.opcode == DOCA_RDMA_OPCODE_RECV_SEND && b.from == from_b);
	for (size_t i = 0; i < 90; i++)
		if (b.memory[1000 * (i / 25) + i % 25] != (char)(i + 1))
			CHECK(!"each byte is in its place");
	OK(doca_buf_get_data_len(in[3], &len));
	CHECK(len == 15 && b.memory[3015] == 0);
	put(in[0]);
	put(out[0]);
	close_both();
}

static void flight(void)
{
	struct doca_buf *buf = side_room(&a, 0, 8);
	struct doca_task *send, *receive = side_receive(&a, NULL, 0);

	a.succeeded = b.succeeded = a.failed = 0;
	FAILS(BAD_STATE, doca_task_submit(receive));
	/* In flight it is the library's: neither freed nor changed. */
	doca_task_free(receive);
	doca_rdma_task_receive_set_dst_buf((struct doca_rdma_task_receive *)receive, buf);
	CHECK(doca_rdma_task_receive_get_dst_buf((struct doca_rdma_task_receive *)receive) == NULL);
	send = side_message(&b, from_b, NULL, 0);
	OK(doca_task_submit(send));
	UNTIL(&a, a.succeeded == 1);
	CHECK(a.task == receive && a.status == DOCA_SUCCESS);
	UNTIL(&b, b.succeeded == 1);
	/* It was freed by the callback. */
	FAILS(INVALID_VALUE, doca_task_submit(send));
	put(buf);
}

/* Nothing starts before the flush; then everything does, in order, without further calls. */
static void held_back(void)
{
	struct doca_buf *parts[3], *rooms[3];
	char *memory = b.memory;

	a.succeeded = b.succeeded = 0;
	for (size_t i = 0; i < 3; i++) {
		a.memory[i] = (char)('x' + i);
		parts[i] = side_data(&a, i, 1);
		rooms[i] = side_room(&b, 16 * i, 16);
		side_receive(&b, rooms[i], i);
		OK(doca_task_submit_ex(side_message(&a, from_a, parts[i], i), DOCA_TASK_SUBMIT_FLAG_NONE));
	}
	CHECK(memory[0] == 0 && memory[16] == 0 && memory[32] == 0);
	CHECK(doca_pe_progress(b.pe) == 0);
	doca_ctx_flush_tasks(a.ctx);
	CHECK(memory[0] == 'x' && memory[16] == 'y' && memory[32] == 'z');
	UNTIL(&a, a.succeeded == 3);
	CHECK(a.task_data == 2);
	UNTIL(&b, b.succeeded == 3);
	/* A flushing submit takes along what waits before it. */
	side_receive(&b, NULL, 0);
	side_receive(&b, NULL, 0);
	OK(doca_task_submit_ex(side_message(&a, from_a, NULL, 3), DOCA_TASK_SUBMIT_FLAG_NONE));
	OK(doca_task_submit_ex(side_message(&a, from_a, NULL, 4),
			       DOCA_TASK_SUBMIT_FLAG_FLUSH | DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS));
	UNTIL(&a, a.succeeded == 5);
	UNTIL(&b, b.succeeded == 5);
	for (size_t i = 0; i < 3; i++) {
		put(parts[i]);
		put(rooms[i]);
	}
}

static int resubmits;
static uint8_t nested = 9;

static void again(struct doca_rdma_task_receive *task, union doca_data data, union doca_data side)
{
	struct side *mine = side.ptr;

	(void)data;
	nested = doca_pe_progress(mine->pe);
	mine->succeeded++;
	if (resubmits-- > 0)
		OK(doca_task_submit(doca_rdma_task_receive_as_task(task)));
	else
		doca_task_free(doca_rdma_task_receive_as_task(task));
}

static void receive_again(struct side *side)
{
	/* The later configuration counts. */
	OK(doca_rdma_task_receive_set_conf(side->rdma, again, side_receive_failed, 1));
}

/* A callback may submit its task again; progress from within it does nothing. */
static void callbacks(void)
{
	struct doca_rdma_task_receive *second = NULL;

	open_both(receive_again);
	resubmits = 9;
	side_receive(&b, NULL, 0);
	FAILS(NO_MEMORY, doca_rdma_task_receive_allocate_init(b.rdma, NULL, (union doca_data){0}, &second));
	for (uint64_t i = 0; i < 10; i++)
		side_send(&a, from_a, NULL, i);
	UNTIL(&b, b.succeeded == 10);
	UNTIL(&a, a.succeeded == 10);
	CHECK(nested == 0 && a.task_data == 9);
	close_both();
}

static void connect_rules(void)
{
	struct doca_rdma_connection *self = NULL;
	const void *blob = NULL;
	struct side other;
	size_t len = 0;

	side_create(&other, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_ctx_start(other.ctx));
	OK(doca_rdma_export(other.rdma, &blob, &len, &self));
	FAILS(INVALID_VALUE, doca_rdma_connect(other.rdma, blob, 0, self));
	FAILS(INVALID_VALUE, doca_rdma_connect(other.rdma, blob, len, from_a));
	/* To itself. */
	OK(doca_rdma_connect(other.rdma, blob, len, self));
	FAILS(BAD_STATE, doca_rdma_connect(other.rdma, blob, len, self));
	side_receive(&other, NULL, 0);
	side_send(&other, self, NULL, 0);
	UNTIL(&other, other.succeeded == 2);
	side_stop(&other);
	OK(doca_rdma_set_transport_type(other.rdma, DOCA_RDMA_TRANSPORT_TYPE_DC));
	OK(doca_ctx_start(other.ctx));
	OK(doca_rdma_export(other.rdma, &blob, &len, &self));
	OK(doca_rdma_connection_disconnect(from_a));
	OK(doca_rdma_export(a.rdma, &(const void *){NULL}, &(size_t){0}, &from_a));
	FAILS(DRIVER, doca_rdma_connect(a.rdma, blob, len, from_a));
	side_close(&other);
}

int main(void)
{
	open_both(NULL);
	pools();
	close_both();
	full_queue();
	chains();
	callbacks();
	/* Room for a connection that is exported only. */
	side_create(&a, "mlx5_0", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_max_num_connections(a.rdma, 2));
	OK(doca_ctx_start(a.ctx));
	side_create(&b, "mlx5_1", DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_ctx_start(b.ctx));
	side_join(&a, &from_a, &b, &from_b);
	refused_messages();
	refused_receives();
	flight();
	held_back();
	connect_rules();
	close_both();
	return check_summary();
}
