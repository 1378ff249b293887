/*
 * Buffers, lists, inventories and pools.
 */
#include <stdint.h>
#include <stdlib.h>

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_buf_pool.h>
#include <doca_mmap.h>
#include <doca_types.h>

#include "check.h"

#define SIZE 4096

static char memory[SIZE] __attribute__((aligned(64)));
static struct doca_buf_inventory *inventory;
static struct doca_mmap *map;

static uint32_t num_free(void)
{
	uint32_t number = 0;

	OK(doca_buf_inventory_get_num_free_elements(inventory, &number));
	return number;
}

static struct doca_buf *room(size_t offset, size_t len)
{
	struct doca_buf *buf = NULL;

	OK(doca_buf_inventory_buf_get_by_addr(inventory, map, memory + offset, len, &buf));
	return buf;
}

static void give_back(struct doca_buf *buf)
{
	OK(doca_buf_dec_refcount(buf, NULL));
}

/* Whether the data of a buffer are there. */
static int has_data(const struct doca_buf *buf, const void *addr, size_t len)
{
	size_t data_len = 0;
	void *data = NULL;

	OK(doca_buf_get_data(buf, &data));
	OK(doca_buf_get_data_len(buf, &data_len));
	return data == addr && data_len == len;
}

static void windows(void)
{
	struct doca_buf *buf = NULL, *source;
	size_t len;
	void *head;

	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_addr(NULL, map, memory, 8, &buf));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_addr(inventory, NULL, memory, 8, &buf));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_addr(inventory, map, memory, 8, NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_addr(inventory, map, memory - 1, 8, &buf));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_addr(inventory, map, memory + SIZE - 7, 8, &buf));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_addr(inventory, map, memory + 1, SIZE_MAX, &buf));
	CHECK(buf == NULL);

	buf = room(0, SIZE);
	CHECK(has_data(buf, memory, 0));
	OK(doca_buf_inventory_buf_get_by_data(inventory, map, memory + 8, 16, &source));
	CHECK(has_data(source, memory + 8, 16));
	OK(doca_buf_get_head(source, &head));
	OK(doca_buf_get_len(source, &len));
	CHECK(head == memory + 8 && len == 16);
	OK(doca_buf_set_data(source, memory + 12, 4));
	CHECK(has_data(source, memory + 12, 4));
	OK(doca_buf_reset_data_len(source));
	CHECK(has_data(source, memory + 12, 0));
	OK(doca_buf_set_data_len(source, 12));
	CHECK(has_data(source, memory + 12, 12));
#if AFTER_3_0
	OK(doca_buf_inventory_buf_reuse_by_data(source, memory + 100, 30));
	CHECK(has_data(source, memory + 100, 30));
	OK(doca_buf_inventory_buf_reuse_by_addr(source, memory + 200, 30));
	CHECK(has_data(source, memory + 200, 0));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_reuse_by_addr(source, memory, SIZE + 1));
#endif
	give_back(source);
	give_back(buf);
}

static void owners(void)
{
	struct doca_buf *buf = room(0, 8);
	uint16_t count = 0;

	for (unsigned int i = 1; i < UINT16_MAX; i++)
		if (doca_buf_inc_refcount(buf, &count) != DOCA_SUCCESS || count != i)
			CHECK(!"each owner is counted");
	FAILS(TOO_BIG, doca_buf_inc_refcount(buf, &count));
	OK(doca_buf_get_refcount(buf, &count));
	CHECK(count == UINT16_MAX);
	for (unsigned int i = UINT16_MAX; i > 1; i--)
		if (doca_buf_dec_refcount(buf, &count) != DOCA_SUCCESS || count != i)
			CHECK(!"each owner is counted");
	CHECK(num_free() == 7);
	OK(doca_buf_dec_refcount(buf, &count));
	CHECK(count == 1 && num_free() == 8);
	FAILS(BAD_STATE, doca_buf_dec_refcount(buf, &count));
}

static void inventories(void)
{
	union doca_data data = {.u64 = 5};
	struct doca_buf_inventory *other;
	struct doca_buf *one, *two;
	uint32_t number = 0;

	FAILS(INVALID_VALUE, doca_buf_inventory_create(0, &other));
	FAILS(INVALID_VALUE, doca_buf_inventory_create(1, NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_destroy(NULL));
	OK(doca_buf_inventory_create(1, &other));
	FAILS(BAD_STATE, doca_buf_inventory_buf_get_by_addr(other, map, memory, 8, &one));
	FAILS(BAD_STATE, doca_buf_inventory_expand(other, 1));
	OK(doca_buf_inventory_start(other));
	OK(doca_buf_inventory_set_user_data(other, data));
	OK(doca_buf_inventory_get_user_data(other, &data));
	CHECK(data.u64 == 5);
	OK(doca_buf_inventory_buf_get_by_addr(other, map, memory, 8, &one));
	FAILS(NO_MEMORY, doca_buf_inventory_buf_get_by_addr(other, map, memory, 8, &two));
	FAILS(INVALID_VALUE, doca_buf_inventory_expand(other, 0));
	OK(doca_buf_inventory_expand(other, 3));
	OK(doca_buf_inventory_get_num_elements(other, &number));
	CHECK(number == 4);
	OK(doca_buf_inventory_buf_get_by_addr(other, map, memory, 8, &two));
	OK(doca_buf_inventory_stop(other));
	FAILS(IN_USE, doca_buf_inventory_destroy(other));
	give_back(one);
	give_back(two);
	OK(doca_buf_inventory_destroy(other));
}

static void lists(void)
{
	struct doca_buf *a = room(0, 8), *b = room(8, 8), *c = room(16, 8), *d = room(24, 8), *buf, *copy;
	uint32_t number = 0;
	uint16_t count = 0;
	uint8_t flag = 9;

	OK(doca_buf_is_in_list(a, &flag));
	CHECK(flag == 0);
	OK(doca_buf_inc_refcount(b, NULL));
	FAILS(NOT_PERMITTED, doca_buf_chain_list(a, b));
	give_back(b);
	OK(doca_buf_chain_list(a, b));
	OK(doca_buf_chain_list(c, d));
	FAILS(NOT_PERMITTED, doca_buf_chain_list(a, d));
	FAILS(NOT_PERMITTED, doca_buf_chain_list_tail(a, a, c));
	/* The tail of another list, which would make a ring. */
	FAILS(NOT_PERMITTED, doca_buf_chain_list_tail(c, b, a));
	FAILS(NOT_PERMITTED, doca_buf_chain_list_tail(c, d, c));
	OK(doca_buf_chain_list_tail(a, b, c));
	OK(doca_buf_get_list_len(a, &number));
	CHECK(number == 4);
	FAILS(NOT_PERMITTED, doca_buf_get_list_len(b, &number));
	OK(doca_buf_get_next_in_list(a, &buf));
	CHECK(buf == b);
	OK(doca_buf_get_last_in_list(a, &buf));
	CHECK(buf == d);
	OK(doca_buf_get_next_in_list(d, &buf));
	CHECK(buf == NULL);
	OK(doca_buf_is_last_in_list(d, &flag));
	CHECK(flag == 1);
	OK(doca_buf_is_first_in_list(d, &flag));
	CHECK(flag == 0);
	FAILS(NOT_PERMITTED, doca_buf_inc_refcount(c, NULL));
	FAILS(NOT_PERMITTED, doca_buf_dec_refcount(c, NULL));
	FAILS(NOT_PERMITTED, doca_buf_inventory_buf_dup(inventory, c, &copy));
	OK(doca_buf_inventory_buf_dup(inventory, a, &copy));
	OK(doca_buf_get_list_len(copy, &number));
	CHECK(number == 4 && copy != a && num_free() == 0);
	give_back(copy);
	FAILS(INVALID_VALUE, doca_buf_unchain_list(a, a));
	FAILS(INVALID_VALUE, doca_buf_unchain_list(b, c));
	OK(doca_buf_unchain_list(a, c));
	OK(doca_buf_get_refcount(c, &count));
	OK(doca_buf_get_list_len(c, &number));
	CHECK(count == 1 && number == 2);
	give_back(a);
	CHECK(num_free() == 6);
	give_back(c);
	CHECK(num_free() == 8);
}

static void pools(void)
{
	struct doca_buf *bufs[3], *buf;
	struct doca_buf_pool *pool;
	size_t alignment = 0;
	uint32_t number = 0;

	FAILS(INVALID_VALUE, doca_buf_pool_create(0, 8, map, &pool));
	FAILS(INVALID_VALUE, doca_buf_pool_create(1, 0, map, &pool));
	FAILS(INVALID_VALUE, doca_buf_pool_create(1, 8, NULL, &pool));
	OK(doca_buf_pool_create(33, 128, map, &pool));
	FAILS(INITIALIZATION, doca_buf_pool_start(pool));
	OK(doca_buf_pool_destroy(pool));
	OK(doca_buf_pool_create(3, 100, map, &pool));
	OK(doca_buf_pool_get_element_alignment(pool, &alignment));
	CHECK(alignment == 1);
	FAILS(INVALID_VALUE, doca_buf_pool_set_element_alignment(pool, 3));
	FAILS(BAD_STATE, doca_buf_pool_buf_alloc(pool, &buf));
	OK(doca_buf_pool_set_element_alignment(pool, 64));
	OK(doca_buf_pool_start(pool));
	FAILS(BAD_STATE, doca_buf_pool_set_element_alignment(pool, 1));
	for (size_t i = 0; i < 3; i++) {
		OK(doca_buf_pool_buf_alloc(pool, &bufs[i]));
		CHECK(has_data(bufs[i], memory + 128 * i, 0));
	}
	FAILS(EMPTY, doca_buf_pool_buf_alloc(pool, &buf));
	FAILS(IN_USE, doca_buf_pool_stop(pool));
	FAILS(IN_USE, doca_buf_pool_destroy(pool));
	give_back(bufs[1]);
	OK(doca_buf_pool_get_num_free_elements(pool, &number));
	CHECK(number == 1);
	give_back(bufs[0]);
	give_back(bufs[2]);
	OK(doca_buf_pool_stop(pool));
	OK(doca_buf_pool_destroy(pool));
}

int main(void)
{
	OK(doca_mmap_create(&map));
	OK(doca_mmap_set_memrange(map, memory, SIZE));
	OK(doca_mmap_start(map));
	OK(doca_buf_inventory_create(8, &inventory));
	OK(doca_buf_inventory_start(inventory));
	windows();
	owners();
	inventories();
	lists();
	pools();
	OK(doca_buf_inventory_destroy(inventory));
	OK(doca_mmap_stop(map));
	OK(doca_mmap_destroy(map));
	return check_summary();
}
