/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between DOCA and verbs: protection domains and memory keys. */

#ifndef DOCA_RDMA_BRIDGE_H_
#define DOCA_RDMA_BRIDGE_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>

/* For protection domains. Without libibverbs' header the pointer is all that is known of one. */
#if defined(__has_include) && !defined(DOCA_SIM_NO_VERBS_HEADERS)
#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>
#define DOCA_RDMA_BRIDGE_HAS_VERBS_
#endif
#endif
#ifndef DOCA_RDMA_BRIDGE_HAS_VERBS_
struct ibv_pd;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Declared elsewhere. */
struct doca_dev;
struct doca_buf;
struct doca_mmap;

/* The protection domain of an open device: one pointer per device. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_rdma_bridge_get_dev_pd(const struct doca_dev *dev, struct ibv_pd **pd);

/*
 * INVALID_VALUE for a protection domain that came from DOCA; there are no others that could be used
 * here: NOT_SUPPORTED.
 */
DOCA_STABLE
doca_error_t doca_rdma_bridge_open_dev_from_pd(struct ibv_pd *pd, struct doca_dev **dev);

/* The memory key of a buffer on a device. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_rdma_bridge_get_buf_mkey(
	const struct doca_buf *buf,
	struct doca_dev *dev,
	uint32_t *mkey);

/* The memory key of a map in a protection domain. Errors: INVALID_VALUE, NOT_FOUND, OPERATING_SYSTEM. */
DOCA_EXPERIMENTAL
doca_error_t doca_rdma_bridge_get_mmap_mkey_from_pd(
	const struct doca_mmap *mmap,
	struct ibv_pd *pd,
	uint32_t *mkey);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_RDMA_BRIDGE_H_ */
