/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Memory maps: one range of memory, registered with devices, with the rights that devices and peers
 * have on it.
 */

#ifndef DOCA_MMAP_H_
#define DOCA_MMAP_H_

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
struct doca_mmap;
struct doca_dpa;

/* Declared elsewhere. */
struct doca_dev;
struct doca_devinfo;

typedef uint32_t doca_dpa_dev_mmap_t;

/* Functions of the program that the library calls, from doca_pe_progress() unless said otherwise. */
typedef void (doca_mmap_memrange_free_cb_t)(void *, size_t, void *);

/* A map to be configured. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_mmap_create(struct doca_mmap **mmap);

/* Ends a map; NOT_PERMITTED while buffers over it are out. Errors: INVALID_VALUE, NOT_PERMITTED. */
DOCA_STABLE
doca_error_t doca_mmap_destroy(struct doca_mmap *mmap);

/* Registers the range. Errors: INVALID_VALUE, NO_MEMORY, NOT_PERMITTED. */
DOCA_STABLE
doca_error_t doca_mmap_start(struct doca_mmap *mmap);

/*
 * Withdraws the range; NOT_PERMITTED while buffers over it are out. Errors: INVALID_VALUE,
 * NOT_PERMITTED.
 */
DOCA_STABLE
doca_error_t doca_mmap_stop(struct doca_mmap *mmap);

/*
 * Adds a device that may use the memory. Errors: INVALID_VALUE, NOT_PERMITTED, NO_MEMORY,
 * ALREADY_EXIST, NOT_SUPPORTED.
 */
DOCA_STABLE
doca_error_t doca_mmap_add_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/* Takes a device out. Errors: INVALID_VALUE, NOT_FOUND, NOT_PERMITTED. */
DOCA_STABLE
doca_error_t doca_mmap_rm_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/*
 * Describes the memory to the other side of the PCI bus. Errors: INVALID_VALUE, NOT_FOUND,
 * NOT_PERMITTED, NO_MEMORY, NOT_SUPPORTED, DRIVER.
 */
DOCA_STABLE
doca_error_t doca_mmap_export_pci(
	struct doca_mmap *mmap,
	const struct doca_dev *dev,
	const void **export_desc,
	size_t *export_desc_len);

/*
 * Describes the memory to RDMA peers. Errors: INVALID_VALUE, NOT_FOUND, NOT_PERMITTED, NO_MEMORY,
 * NOT_SUPPORTED, DRIVER.
 */
DOCA_STABLE
doca_error_t doca_mmap_export_rdma(
	struct doca_mmap *mmap,
	const struct doca_dev *dev,
	const void **export_desc,
	size_t *export_desc_len);

/*
 * No device here has a DPA, so after the checks it is NOT_SUPPORTED. Errors: INVALID_VALUE, NOT_FOUND,
 * NOT_PERMITTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_mmap_dev_get_dpa_handle(
	struct doca_mmap *mmap,
	const struct doca_dev *dev,
	doca_dpa_dev_mmap_t *dpa_mmap_handle);

/*
 * A started map of memory that another process exported. Errors: INVALID_VALUE, NO_MEMORY,
 * NOT_SUPPORTED, NOT_PERMITTED, DRIVER.
 */
DOCA_STABLE
doca_error_t doca_mmap_create_from_export(
	const union doca_data *user_data,
	const void *export_desc,
	size_t export_desc_len,
	struct doca_dev *dev,
	struct doca_mmap **mmap);

/* Sets the range, once. Errors: INVALID_VALUE, BAD_STATE, NOT_PERMITTED. */
DOCA_STABLE
doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *addr, size_t len);

/*
 * Sets the range to a mapping of a dma-buf, once. The mapping keeps the buffer, so the descriptor may
 * be closed afterwards. Errors: NOT_SUPPORTED, INVALID_VALUE, BAD_STATE, NOT_PERMITTED.
 */
DOCA_STABLE
doca_error_t doca_mmap_set_dmabuf_memrange(
	struct doca_mmap *mmap,
	int dmabuf_fd,
	void *addr,
	size_t dmabuf_offset,
	size_t len);

/* No device here has a DPA. Errors: INVALID_VALUE, BAD_STATE, NOT_PERMITTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_mmap_set_dpa_memrange(
	struct doca_mmap *mmap,
	struct doca_dpa *dpa,
	uint64_t dpa_addr,
	size_t len);

/* The range; of an imported map the exporter's. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_mmap_get_memrange(const struct doca_mmap *mmap, void **addr, size_t *len);

/* Sets what is called when the map is destroyed. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_mmap_set_free_cb(
	struct doca_mmap *mmap,
	doca_mmap_memrange_free_cb_t *free_cb,
	void *opaque);

/* The program's data. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_mmap_get_user_data(const struct doca_mmap *mmap, union doca_data *user_data);

/* How many devices can be added. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_mmap_get_max_num_devices(const struct doca_mmap *mmap, uint32_t *max_num_devices);

/* How many buffers over the map are out. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_mmap_get_num_bufs(const struct doca_mmap *mmap, uint32_t *num_bufs);

/* Whether descriptors of the map are out. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_mmap_get_exported(const struct doca_mmap *mmap, uint8_t *exported);

/* Whether the map came from a descriptor. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_mmap_get_from_export(const struct doca_mmap *mmap, uint8_t *from_export);

/* Sets how many devices can be added. Errors: INVALID_VALUE, NOT_PERMITTED. */
DOCA_STABLE
doca_error_t doca_mmap_set_max_num_devices(struct doca_mmap *mmap, uint32_t max_num_devices);

/* Sets the rights. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_mmap_set_permissions(struct doca_mmap *mmap, uint32_t access_mask);

/* Sets the program's data. Errors: INVALID_VALUE, BAD_STATE. */
DOCA_STABLE
doca_error_t doca_mmap_set_user_data(struct doca_mmap *mmap, union doca_data user_data);

/*
 * Whether a device can describe memory to the other side of the PCI bus. Errors: INVALID_VALUE,
 * DRIVER.
 */
DOCA_STABLE
doca_error_t doca_mmap_cap_is_export_pci_supported(
	const struct doca_devinfo *devinfo,
	uint8_t *mmap_export);

/*
 * Whether a device can use memory that the other side of the PCI bus described. Errors: INVALID_VALUE,
 * DRIVER.
 */
DOCA_STABLE
doca_error_t doca_mmap_cap_is_create_from_export_pci_supported(
	const struct doca_devinfo *devinfo,
	uint8_t *from_export);

/* Makes stopping and destroying the map independent of buffers. Errors: INVALID_VALUE, NOT_PERMITTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_mmap_enable_thread_safety(struct doca_mmap *mmap);

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* The memory key of the range on a device. */
DOCA_EXPERIMENTAL
doca_error_t doca_mmap_get_mkey(
	const struct doca_mmap *mmap,
	const struct doca_dev *dev,
	uint32_t *mkey);
#endif

#ifdef __cplusplus
}
#endif

#endif /* DOCA_MMAP_H_ */
