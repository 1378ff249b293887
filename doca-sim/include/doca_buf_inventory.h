/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inventories: descriptors of buffers over any memory map. */

#ifndef DOCA_BUF_INVENTORY_H_
#define DOCA_BUF_INVENTORY_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>
#include <doca_version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_buf_inventory;

/* Declared elsewhere. */
struct doca_mmap;
struct doca_buf;

/* An inventory with room for so many buffers. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_buf_inventory_create(size_t num_elements, struct doca_buf_inventory **inventory);

/* Ends an inventory; IN_USE while buffers are out. Errors: INVALID_VALUE, IN_USE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_destroy(struct doca_buf_inventory *inventory);

/* Lets buffers be taken. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_start(struct doca_buf_inventory *inventory);

/* Ends that; buffers that are out stay. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_stop(struct doca_buf_inventory *inventory);

/* A buffer over a window of a map, with data in it. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_buf_inventory_buf_get_by_args(
	struct doca_buf_inventory *inventory,
	struct doca_mmap *mmap,
	void *addr,
	size_t len,
	void *data,
	size_t data_len,
	struct doca_buf **buf);

/* Buffers over the same memory. Errors: INVALID_VALUE, BAD_STATE, NOT_PERMITTED, NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_buf_inventory_buf_dup(
	struct doca_buf_inventory *inventory,
	const struct doca_buf *src_buf,
	struct doca_buf **dst_buf);

/* Sets the program's data, in any state. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_set_user_data(
	struct doca_buf_inventory *inventory,
	union doca_data user_data);

/* Room for so many buffers. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_get_num_elements(
	const struct doca_buf_inventory *inventory,
	uint32_t *num_of_elements);

/* Room for so many more buffers. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_get_num_free_elements(
	const struct doca_buf_inventory *inventory,
	uint32_t *num_of_free_elements);

/* The program's data. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_get_user_data(
	const struct doca_buf_inventory *inventory,
	union doca_data *user_data);

/* Makes more room. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_inventory_expand(struct doca_buf_inventory *inventory, uint32_t num_elements);

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* Points a buffer at other data of its map. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_inventory_buf_reuse_by_data(
	struct doca_buf *buf,
	void *data,
	size_t data_len);
#endif

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* Points a buffer at other room in its map. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_inventory_buf_reuse_by_addr(struct doca_buf *buf, void *addr, size_t len);
#endif

/* A buffer without data over [addr, addr + len): a destination. */
static inline doca_error_t doca_buf_inventory_buf_get_by_addr(struct doca_buf_inventory *inventory,
							      struct doca_mmap *mmap,
							      void *addr,
							      size_t len,
							      struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_args(inventory, mmap, addr, len, addr, 0, buf);
}

/* A buffer whose window is all data: a source. */
static inline doca_error_t doca_buf_inventory_buf_get_by_data(struct doca_buf_inventory *inventory,
							      struct doca_mmap *mmap,
							      void *data,
							      size_t data_len,
							      struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_args(inventory, mmap, data, data_len, data, data_len, buf);
}

#ifdef __cplusplus
}
#endif

#endif /* DOCA_BUF_INVENTORY_H_ */
