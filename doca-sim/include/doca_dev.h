/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Devices: what there is, what one can open, and representors of functions on the other side of PCI. */

#ifndef DOCA_DEV_H_
#define DOCA_DEV_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>
#include <doca_version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes in bytes, with the terminating NUL where they are of text. */
#define DOCA_DEVINFO_VUID_SIZE 128
#define DOCA_DEVINFO_IPV4_ADDR_SIZE 4
#define DOCA_DEVINFO_IPV6_ADDR_SIZE 16
#define DOCA_DEVINFO_MAC_ADDR_SIZE 6
#define DOCA_DEVINFO_IFACE_NAME_SIZE 256
#define DOCA_DEVINFO_IBDEV_NAME_SIZE 64
#define DOCA_DEVINFO_PCI_ADDR_SIZE 13
#define DOCA_DEVINFO_PCI_BDF_SIZE 8
#define DOCA_DEVINFO_REP_VUID_SIZE 128
#define DOCA_DEVINFO_REP_PCI_ADDR_SIZE 13
#define DOCA_DEVINFO_REP_PCI_BDF_SIZE 8

/* Objects of the library, known by pointer only. */
struct doca_devinfo;
struct doca_devinfo_rep;
struct doca_dev;
struct doca_dev_rep;

/* Which representors are wanted. */
enum doca_devinfo_rep_filter {
	DOCA_DEVINFO_REP_FILTER_ALL = 0,
	DOCA_DEVINFO_REP_FILTER_NET = 2,
	DOCA_DEVINFO_REP_FILTER_EMULATED = 4,
};

/* ---- lists and opening ---- */

/*
 * Lists the devices of this side. BAD_CONFIG for a topology file that cannot be used. Errors:
 * INVALID_VALUE, NO_MEMORY, NOT_FOUND.
 */
DOCA_STABLE
doca_error_t doca_devinfo_create_list(struct doca_devinfo ***dev_list, uint32_t *nb_devs);

/* Ends a list and its elements; open devices live on. Errors: INVALID_VALUE, IN_USE. */
DOCA_STABLE
doca_error_t doca_devinfo_destroy_list(struct doca_devinfo **dev_list);

/* ---- representors ---- */

/*
 * Lists the representors that a device offers. Errors: INVALID_VALUE, NO_MEMORY, DRIVER,
 * NOT_SUPPORTED.
 */
DOCA_STABLE
doca_error_t doca_devinfo_rep_create_list(
	struct doca_dev *dev,
	int filter,
	struct doca_devinfo_rep ***dev_list_rep,
	uint32_t *nb_devs_rep);

/*
 * Ends a list of representors and its elements; open representors live on. Errors: INVALID_VALUE,
 * IN_USE.
 */
DOCA_STABLE
doca_error_t doca_devinfo_rep_destroy_list(struct doca_devinfo_rep **dev_list_rep);

/* ---- lists and opening ---- */

/*
 * Opens a device, or adds a reference to an open one. Errors: INVALID_VALUE, NO_MEMORY, NOT_CONNECTED,
 * INITIALIZATION, NOT_SUPPORTED.
 */
DOCA_STABLE
doca_error_t doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev);

/* Gives a reference back. Errors: IN_USE. */
DOCA_STABLE
doca_error_t doca_dev_close(struct doca_dev *dev);

/*
 * Nothing is cached here, so all of it is reclaimed at once. Errors: INVALID_VALUE, DRIVER, AGAIN,
 * NOT_SUPPORTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_dev_accelerate_resource_reclaim(struct doca_dev *dev);

/* ---- representors ---- */

/* Opens a representor. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_STABLE
doca_error_t doca_dev_rep_open(struct doca_devinfo_rep *devinfo, struct doca_dev_rep **dev_rep);

/* Closes a representor. Errors: INVALID_VALUE, IN_USE. */
DOCA_STABLE
doca_error_t doca_dev_rep_close(struct doca_dev_rep *dev);

/* ---- lists and opening ---- */

/* The description of an open device. */
DOCA_STABLE
struct doca_devinfo *doca_dev_as_devinfo(const struct doca_dev *dev);

/* ---- representors ---- */

/* The description of an open representor. */
DOCA_STABLE
struct doca_devinfo_rep *doca_dev_rep_as_devinfo(struct doca_dev_rep *dev_rep);

/* ---- facts of a device ---- */

/* Full PCI address, 13 bytes. Errors: INVALID_VALUE, OPERATING_SYSTEM. */
DOCA_STABLE
doca_error_t doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo, char *pci_addr_str);

/* Compares the PCI address with a text. Errors: INVALID_VALUE, OPERATING_SYSTEM. */
DOCA_STABLE
doca_error_t doca_devinfo_is_equal_pci_addr(
	const struct doca_devinfo *devinfo,
	const char *pci_addr_str,
	uint8_t *is_equal);

/*
 * IPv4 address in network order; NOT_FOUND without one. Errors: INVALID_VALUE, NOT_FOUND,
 * OPERATING_SYSTEM.
 */
DOCA_STABLE
doca_error_t doca_devinfo_get_ipv4_addr(
	const struct doca_devinfo *devinfo,
	uint8_t *ipv4_addr,
	uint32_t size);

/* IPv6 address in network order. Errors: INVALID_VALUE, OPERATING_SYSTEM. */
DOCA_STABLE
doca_error_t doca_devinfo_get_ipv6_addr(
	const struct doca_devinfo *devinfo,
	uint8_t *ipv6_addr,
	uint32_t size);

/* Ethernet address; NOT_SUPPORTED on InfiniBand. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_devinfo_get_mac_addr(
	const struct doca_devinfo *devinfo,
	uint8_t *mac_addr,
	uint32_t size);

/* Name of the network interface. Errors: INVALID_VALUE, OPERATING_SYSTEM. */
DOCA_STABLE
doca_error_t doca_devinfo_get_iface_name(
	const struct doca_devinfo *devinfo,
	char *iface_name,
	uint32_t size);

/* Name of the RDMA device. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_devinfo_get_ibdev_name(
	const struct doca_devinfo *devinfo,
	char *ibdev_name,
	uint32_t size);

/* Local identifier; NOT_SUPPORTED on Ethernet. Errors: INVALID_VALUE, DRIVER, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_devinfo_get_lid(const struct doca_devinfo *devinfo, uint16_t *lid);

/* Bits per second. Errors: INVALID_VALUE, DRIVER. */
DOCA_EXPERIMENTAL
doca_error_t doca_devinfo_get_active_rate(
	const struct doca_devinfo *devinfo,
	uint64_t *active_rate);

/* Virtual host channel adapter id. Errors: INVALID_VALUE, DRIVER. */
DOCA_EXPERIMENTAL
doca_error_t doca_devinfo_get_vhca_id(const struct doca_devinfo *devinfo, uint16_t *vhca_id);

/* ---- what a device can do ---- */

/* Whether emulated devices can be plugged into the host. Errors: INVALID_VALUE, DRIVER. */
DOCA_STABLE
doca_error_t doca_devinfo_cap_is_hotplug_manager_supported(
	const struct doca_devinfo *devinfo,
	uint8_t *is_hotplug_manager);

/* Whether notifications can be delayed and merged. Errors: INVALID_VALUE, DRIVER. */
DOCA_EXPERIMENTAL
doca_error_t doca_devinfo_cap_is_notification_moderation_supported(
	const struct doca_devinfo *devinfo,
	uint8_t *is_notification_moderation_supported);

/* ---- representors ---- */

/* Whether all representors can be listed at once. Errors: INVALID_VALUE, DRIVER, NOT_SUPPORTED. */
DOCA_STABLE
doca_error_t doca_devinfo_rep_cap_is_filter_all_supported(
	const struct doca_devinfo *devinfo,
	uint8_t *filter_all_supported);

/*
 * Whether the representors of network functions can be listed. Errors: INVALID_VALUE, DRIVER,
 * NOT_SUPPORTED.
 */
DOCA_STABLE
doca_error_t doca_devinfo_rep_cap_is_filter_net_supported(
	const struct doca_devinfo *devinfo,
	uint8_t *filter_net_supported);

/*
 * Whether the representors of emulated devices can be listed. Errors: INVALID_VALUE, DRIVER,
 * NOT_SUPPORTED.
 */
DOCA_STABLE
doca_error_t doca_devinfo_rep_cap_is_filter_emulated_supported(
	const struct doca_devinfo *devinfo,
	uint8_t *filter_emulated_supported);

/* ---- what a device can do ---- */

/* Whether cached resources can be given back early. Errors: INVALID_VALUE, DRIVER. */
DOCA_EXPERIMENTAL
doca_error_t doca_devinfo_cap_is_accelerate_resource_reclaim_supported(
	const struct doca_devinfo *devinfo,
	uint8_t *is_accelerate_resource_reclaim);

/* ---- representors ---- */

/* Vendor unique identifier of the represented function. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_devinfo_rep_get_vuid(
	const struct doca_devinfo_rep *devinfo_rep,
	char *rep_vuid,
	uint32_t size);

/*
 * Full PCI address of the represented function, 13 bytes. Errors: INVALID_VALUE, NO_MEMORY,
 * UNEXPECTED.
 */
DOCA_STABLE
doca_error_t doca_devinfo_rep_get_pci_addr_str(
	const struct doca_devinfo_rep *devinfo_rep,
	char *pci_addr_str);

/* PF, VF or SF. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_devinfo_rep_get_pci_func_type(
	const struct doca_devinfo_rep *devinfo_rep,
	enum doca_pci_func_type *pci_func_type);

/* Whether the represented function was plugged by software. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_devinfo_rep_get_is_hotplug(
	const struct doca_devinfo_rep *devinfo_rep,
	uint8_t *is_hotplug);

/* Name of the representor's interface on this side. Errors: INVALID_VALUE, OPERATING_SYSTEM. */
DOCA_EXPERIMENTAL
doca_error_t doca_devinfo_rep_get_iface_name(
	const struct doca_devinfo_rep *devinfo_rep,
	char *iface_name,
	uint32_t size);

/* Virtual host channel adapter id of the represented function. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_devinfo_rep_get_vhca_id(
	const struct doca_devinfo_rep *devinfo_rep,
	uint16_t *vhca_id);

/*
 * Compares the represented function's PCI address with a text. Errors: INVALID_VALUE, NO_MEMORY,
 * UNEXPECTED.
 */
DOCA_STABLE
doca_error_t doca_devinfo_rep_is_equal_pci_addr(
	const struct doca_devinfo_rep *devinfo_rep,
	const char *pci_addr_str,
	uint8_t *is_equal);

/* ---- facts of a device ---- */

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* PF, VF or SF. */
DOCA_EXPERIMENTAL
doca_error_t doca_devinfo_get_pci_func_type(
	const struct doca_devinfo *devinfo,
	enum doca_pci_func_type *pci_func_type);
#endif

#if DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1
/* Number of the scalable function; NOT_SUPPORTED on other functions. */
DOCA_EXPERIMENTAL
doca_error_t doca_devinfo_get_sf_index(const struct doca_devinfo *devinfo, uint32_t *sf_index);
#endif

#ifdef __cplusplus
}
#endif

#endif /* DOCA_DEV_H_ */
