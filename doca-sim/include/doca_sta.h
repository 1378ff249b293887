/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* STA: offload of an NVMe over RDMA storage target. The control context: devices, limits, start. */

#ifndef DOCA_STA_H_
#define DOCA_STA_H_

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>
#include <doca_version.h>
#include <doca_sta_handle.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_sta;

/* Declared elsewhere. */
struct doca_devinfo;
struct doca_dev;
struct doca_ctx;

/* SUCCESS if the device can control a storage target. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_cap_is_supported(const struct doca_devinfo *devinfo);

/*
 * Makes a target that this device controls. It carries queue pairs only if it is added as well. Errors:
 * INVALID_VALUE, DRIVER, NOT_SUPPORTED, NO_MEMORY.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_create(struct doca_dev *dev, struct doca_sta **sta);

/* Ends a target whose context is IDLE. Errors: INVALID_VALUE, DRIVER, IN_USE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_destroy(struct doca_sta *sta);

/*
 * Before start: adds a device for queue pairs. Errors: INVALID_VALUE, NO_MEMORY, BAD_STATE, ALREADY_EXIST,
 * NOT_SUPPORTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_add_dev(struct doca_sta *sta, struct doca_dev *dev);

/* Before start: how many I/O contexts there may be. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_set_max_sta_io(struct doca_sta *sta, uint16_t max_io_num);

/* How many I/O contexts there may be. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_sta_io(const struct doca_sta *sta, uint16_t *max_io_num);

/* The target as a context. */
DOCA_EXPERIMENTAL
struct doca_ctx *doca_sta_as_ctx(struct doca_sta *sta);

/* Most devices that can be added to a target. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_devs(uint32_t *max_devs);

/* Execution units of all types. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_num_eus_available(const struct doca_sta *sta, uint32_t *max_eus);

/* Most connected queue pairs of one execution unit. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_num_connected_qp_per_eu(
	const struct doca_sta *sta,
	uint32_t *max_connected_qps);

/* Most subsystems. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_subsys(uint32_t *max_subsys);

/* Most namespaces of a subsystem. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_ns_per_subs(uint32_t *max_ns_per_subsys);

/* Most queue pairs. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_qps(uint32_t *max_qps);

/* Most I/O contexts. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_io_threads(uint32_t *max_io_threads);

/* Largest transfer of one command, bytes. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_io_size(uint32_t *max_io_size);

/* Most commands that one execution unit holds, in spite of the name. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_io_num_per_dev(const struct doca_sta *sta, uint32_t *max_ios);

/* Largest NVMe-oF I/O queue, entries. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_io_queue_size(
	const struct doca_sta *sta,
	uint32_t *max_io_queue_size);

/* Smallest I/O command capsule, bytes. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_min_ioccsz(uint32_t *ioccsz);

/* Largest I/O command capsule, bytes. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_ioccsz(uint32_t *ioccsz);

/* Smallest I/O response capsule, bytes. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_min_iorcsz(uint32_t *iorcsz);

/* Largest I/O response capsule, bytes. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_iorcsz(uint32_t *iorcsz);

/* Largest offset of data in a capsule. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_icdoff(uint32_t *icdoff);

/* Most back ends. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_be(uint32_t *max_be);

/* Most queues of a back end. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_get_max_qs_per_be(uint32_t *max_qs_per_be);

/* Whether namespaces may have blocks of so many bytes. No error code. */
DOCA_EXPERIMENTAL
bool doca_sta_is_logical_block_size_supported(uint32_t size);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_H_ */
