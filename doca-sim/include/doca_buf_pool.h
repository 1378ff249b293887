/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pools: buffers of one size over one memory map, cut in advance. */

#ifndef DOCA_BUF_POOL_H_
#define DOCA_BUF_POOL_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_buf_pool;

/* Declared elsewhere. */
struct doca_mmap;
struct doca_buf;

/* A pool of equal pieces of a map. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_buf_pool_create(
	size_t num_elements,
	size_t element_size,
	const struct doca_mmap *mmap,
	struct doca_buf_pool **buf_pool);

/* Ends a pool; IN_USE while buffers are out. Errors: INVALID_VALUE, IN_USE. */
DOCA_STABLE
doca_error_t doca_buf_pool_destroy(struct doca_buf_pool *buf_pool);

/* Cuts the map into pieces. Errors: INVALID_VALUE, INITIALIZATION, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_buf_pool_start(struct doca_buf_pool *buf_pool);

/* Ends lending; IN_USE while buffers are out. Errors: INVALID_VALUE, IN_USE. */
DOCA_STABLE
doca_error_t doca_buf_pool_stop(struct doca_buf_pool *buf_pool);

/* The next free piece, without data. */
DOCA_STABLE
doca_error_t doca_buf_pool_buf_alloc(struct doca_buf_pool *buf_pool, struct doca_buf **buf);

/* Sets the program's data. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_buf_pool_set_user_data(struct doca_buf_pool *buf_pool, union doca_data user_data);

/* Sets the alignment of the pieces. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_buf_pool_set_element_alignment(
	struct doca_buf_pool *buf_pool,
	size_t element_alignment);

/* Number of pieces. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_pool_get_num_elements(
	const struct doca_buf_pool *buf_pool,
	uint32_t *num_of_elements);

/* Number of free pieces. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_pool_get_num_free_elements(
	const struct doca_buf_pool *buf_pool,
	uint32_t *num_of_free_elements);

/* The program's data. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_pool_get_user_data(
	const struct doca_buf_pool *buf_pool,
	union doca_data *user_data);

/* The alignment of the pieces. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_buf_pool_get_element_alignment(
	const struct doca_buf_pool *buf_pool,
	size_t *element_alignment);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_BUF_POOL_H_ */
