/*
 * doca_buf_inventory.h: inventories of buffer descriptors. Part of the software DOCA SDK.
 */
#ifndef DOCA_BUF_INVENTORY_H_
#define DOCA_BUF_INVENTORY_H_

#include <stddef.h>
#include <stdint.h>

#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>
#include <doca_version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf;
struct doca_buf_inventory;
struct doca_mmap;

/* Errors: DOCA_ERROR_INVALID_VALUE, DOCA_ERROR_NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_buf_inventory_create(size_t num_elements, struct doca_buf_inventory **inventory);

/* Errors: DOCA_ERROR_INVALID_VALUE, DOCA_ERROR_IN_USE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_destroy(struct doca_buf_inventory *inventory);

/* Errors: DOCA_ERROR_INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_start(struct doca_buf_inventory *inventory);

/* Errors: DOCA_ERROR_INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_stop(struct doca_buf_inventory *inventory);

/* Errors: DOCA_ERROR_INVALID_VALUE, DOCA_ERROR_NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_buf_inventory_buf_get_by_args(struct doca_buf_inventory *inventory, struct doca_mmap *mmap,
		void *addr, size_t len, void *data, size_t data_len, struct doca_buf **buf);

/* Errors: DOCA_ERROR_NO_MEMORY. */
static inline doca_error_t doca_buf_inventory_buf_get_by_addr(struct doca_buf_inventory *inventory, struct doca_mmap *mmap,
		void *addr, size_t len, struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_args(inventory, mmap, addr, len, addr, 0, buf);
}

/* Errors: DOCA_ERROR_NO_MEMORY. */
static inline doca_error_t doca_buf_inventory_buf_get_by_data(struct doca_buf_inventory *inventory, struct doca_mmap *mmap,
		void *data, size_t data_len, struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_args(inventory, mmap, data, data_len, data, data_len, buf);
}

/* Errors: DOCA_ERROR_INVALID_VALUE, DOCA_ERROR_BAD_STATE, DOCA_ERROR_NOT_PERMITTED, DOCA_ERROR_NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_buf_inventory_buf_dup(struct doca_buf_inventory *inventory, const struct doca_buf *src_buf,
		struct doca_buf **dst_buf);

/* Errors: DOCA_ERROR_INVALID_VALUE, DOCA_ERROR_BAD_STATE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_set_user_data(struct doca_buf_inventory *inventory,
		union doca_data user_data);

/* Errors: DOCA_ERROR_INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_get_num_elements(const struct doca_buf_inventory *inventory,
		uint32_t *num_of_elements);

/* Errors: DOCA_ERROR_INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_get_num_free_elements(const struct doca_buf_inventory *inventory,
		uint32_t *num_of_free_elements);

/* Errors: DOCA_ERROR_INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_inventory_get_user_data(const struct doca_buf_inventory *inventory,
		union doca_data *user_data);

/* Errors: DOCA_ERROR_INVALID_VALUE, DOCA_ERROR_BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_inventory_expand(struct doca_buf_inventory *inventory, uint32_t num_elements);

#if DOCA_VERSION_MINOR >= 1
DOCA_EXPERIMENTAL
doca_error_t doca_buf_inventory_buf_reuse_by_data(struct doca_buf *buf, void *data, size_t data_len);
#endif

#if DOCA_VERSION_MINOR >= 1
DOCA_EXPERIMENTAL
doca_error_t doca_buf_inventory_buf_reuse_by_addr(struct doca_buf *buf, void *addr, size_t len);
#endif

#ifdef __cplusplus
}
#endif

#endif /* DOCA_BUF_INVENTORY_H_ */
