/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sync events: 64-bit counters that processors, devices and peers update and wait for. */

#ifndef DOCA_SYNC_EVENT_H_
#define DOCA_SYNC_EVENT_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_sync_event;
struct doca_sync_event_remote_net;
struct doca_dpa_sync_event;
struct doca_gpu_sync_event;
struct doca_sync_event_task_get;
struct doca_sync_event_task_notify_set;
struct doca_sync_event_task_notify_add;
struct doca_sync_event_task_wait_eq;
struct doca_sync_event_task_wait_neq;

/* Declared elsewhere. */
struct doca_dev;
struct doca_devinfo;
struct doca_dpa;
struct doca_gpu;
struct doca_buf;
struct doca_ctx;
struct doca_task;

typedef uint64_t doca_dpa_dev_sync_event_t;
typedef uint64_t doca_dpa_dev_sync_event_remote_net_t;
typedef uint64_t doca_gpu_dev_sync_event_t;
typedef uint64_t doca_gpu_dev_sync_event_remote_net_t;

/* Functions of the program that the library calls, from doca_pe_progress() unless said otherwise. */
typedef void (*doca_sync_event_task_get_completion_cb_t)(struct doca_sync_event_task_get *, union doca_data, union doca_data);
typedef void (*doca_sync_event_task_notify_set_completion_cb_t)(struct doca_sync_event_task_notify_set *, union doca_data, union doca_data);
typedef void (*doca_sync_event_task_notify_add_completion_cb_t)(struct doca_sync_event_task_notify_add *, union doca_data, union doca_data);
typedef void (*doca_sync_event_task_wait_eq_completion_cb_t)(struct doca_sync_event_task_wait_eq *, union doca_data, union doca_data);
typedef void (*doca_sync_event_task_wait_neq_completion_cb_t)(struct doca_sync_event_task_wait_neq *, union doca_data, union doca_data);

/* ---- life, locations, export ---- */

/* An event to be configured. Errors: INVALID_VALUE, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_create(struct doca_sync_event **event);

/* The event of the processor across PCI. Errors: INVALID_VALUE, NOT_SUPPORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_create_from_export(
	struct doca_dev *dev,
	const uint8_t *data,
	size_t sz,
	struct doca_sync_event **event);

/* Whether the device can: create from export. SUCCESS is yes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_is_create_from_export_supported(
	const struct doca_devinfo *devinfo);

/* The event of a peer, for RDMA tasks. Errors: INVALID_VALUE, NOT_SUPPORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_remote_net_create_from_export(
	struct doca_dev *dev,
	const uint8_t *data,
	size_t sz,
	struct doca_sync_event_remote_net **event);

/*
 * Whether the device can: remote net create from export. SUCCESS is yes. Errors: INVALID_VALUE,
 * NOT_SUPPORTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_remote_net_is_create_from_export_supported(
	const struct doca_devinfo *devinfo);

/* Ends an event that is not started. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_destroy(struct doca_sync_event *event);

/* Forgets a peer's event. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_remote_net_destroy(struct doca_sync_event_remote_net *event);

/* Updated from this process. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_add_publisher_location_cpu(
	struct doca_sync_event *event,
	struct doca_dev *dev);

/* Updated by a DPA. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_add_publisher_location_dpa(
	struct doca_sync_event *event,
	struct doca_dpa *dpa);

/* Updated by a GPU. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_add_publisher_location_gpu(
	struct doca_sync_event *event,
	struct doca_gpu *gpu);

/* Updated from across PCI. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_add_publisher_location_remote_pci(struct doca_sync_event *event);

/* Updated from across the network. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_add_publisher_location_remote_net(struct doca_sync_event *event);

/* Waited for in this process. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_add_subscriber_location_cpu(
	struct doca_sync_event *event,
	struct doca_dev *dev);

/* Waited for by a DPA. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_add_subscriber_location_dpa(
	struct doca_sync_event *event,
	struct doca_dpa *dpa);

/* Waited for by a GPU. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_add_subscriber_location_gpu(
	struct doca_sync_event *event,
	struct doca_gpu *gpu);

/* Waited for across PCI. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_add_subscriber_location_remote_pci(struct doca_sync_event *event);

/* Keeps the value at the program's address. Errors: INVALID_VALUE, BAD_STATE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_set_addr(struct doca_sync_event *event, uint64_t *addr);

/* Keeps the value in the program's buffer. Errors: INVALID_VALUE, BAD_STATE, NOT_PERMITTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_set_doca_buf(struct doca_sync_event *event, struct doca_buf *buf);

/* Starts the event for the blocking calls. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_start(struct doca_sync_event *event);

/* Ends that. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_stop(struct doca_sync_event *event);

/* The event as a context; NULL once it was started the other way. */
DOCA_EXPERIMENTAL
struct doca_ctx *doca_sync_event_as_ctx(struct doca_sync_event *event);

/* ---- tasks ---- */

/* Whether the device can: task get. SUCCESS is yes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_task_get_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many tasks of this kind, and says who is told of their ends. Errors:
 * INVALID_VALUE, NOT_PERMITTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_task_get_set_conf(
	struct doca_sync_event *event,
	doca_sync_event_task_get_completion_cb_t completion_cb,
	doca_sync_event_task_get_completion_cb_t error_cb,
	uint32_t num_tasks);

/* Reads the value to place. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_task_get_alloc_init(
	struct doca_sync_event *event,
	uint64_t *ret_val_ptr,
	union doca_data user_data,
	struct doca_sync_event_task_get **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_sync_event_task_get_as_doca_task(struct doca_sync_event_task_get *task);

/* Sets the ret val ptr of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_sync_event_task_get_set_ret_val_ptr(
	struct doca_sync_event_task_get *task,
	uint64_t *ret_val_ptr);

/* The ret val ptr that was set last. */
DOCA_EXPERIMENTAL
uint64_t *doca_sync_event_task_get_get_ret_val_ptr(const struct doca_sync_event_task_get *task);

/* Whether the device can: task notify set. SUCCESS is yes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_task_notify_set_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many tasks of this kind, and says who is told of their ends. Errors:
 * INVALID_VALUE, NOT_PERMITTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_task_notify_set_set_conf(
	struct doca_sync_event *event,
	doca_sync_event_task_notify_set_completion_cb_t completion_cb,
	doca_sync_event_task_notify_set_completion_cb_t error_cb,
	uint32_t num_tasks);

/* Sets the value. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_task_notify_set_alloc_init(
	struct doca_sync_event *event,
	uint64_t set_val,
	union doca_data user_data,
	struct doca_sync_event_task_notify_set **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_sync_event_task_notify_set_as_doca_task(
	struct doca_sync_event_task_notify_set *task);

/* Sets the set val of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_sync_event_task_notify_set_set_set_val(
	struct doca_sync_event_task_notify_set *task,
	uint64_t set_val);

/* The set val that was set last. */
DOCA_EXPERIMENTAL
uint64_t doca_sync_event_task_notify_set_get_set_val(
	const struct doca_sync_event_task_notify_set *task);

/* Whether the device can: task notify add. SUCCESS is yes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_task_notify_add_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many tasks of this kind, and says who is told of their ends. Errors:
 * INVALID_VALUE, NOT_PERMITTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_task_notify_add_set_conf(
	struct doca_sync_event *event,
	doca_sync_event_task_notify_add_completion_cb_t completion_cb,
	doca_sync_event_task_notify_add_completion_cb_t error_cb,
	uint32_t num_tasks);

/* Adds to the value; the value before goes to place. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_task_notify_add_alloc_init(
	struct doca_sync_event *event,
	uint64_t inc_val,
	uint64_t *fetched_val_ptr,
	union doca_data user_data,
	struct doca_sync_event_task_notify_add **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_sync_event_task_notify_add_as_doca_task(
	struct doca_sync_event_task_notify_add *task);

/* Sets the inc val of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_sync_event_task_notify_add_set_inc_val(
	struct doca_sync_event_task_notify_add *task,
	uint64_t inc_val);

/* The inc val that was set last. */
DOCA_EXPERIMENTAL
uint64_t doca_sync_event_task_notify_add_get_inc_val(
	const struct doca_sync_event_task_notify_add *task);

/* Sets the fetched val ptr of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_sync_event_task_notify_add_set_fetched_val_ptr(
	struct doca_sync_event_task_notify_add *task,
	uint64_t *fetched_val_ptr);

/* The fetched val ptr that was set last. */
DOCA_EXPERIMENTAL
uint64_t *doca_sync_event_task_notify_add_get_fetched_val_ptr(
	const struct doca_sync_event_task_notify_add *task);

/* Whether the device can: task wait eq. SUCCESS is yes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_task_wait_eq_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many tasks of this kind, and says who is told of their ends. Errors:
 * INVALID_VALUE, NOT_PERMITTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_task_wait_eq_set_conf(
	struct doca_sync_event *event,
	doca_sync_event_task_wait_eq_completion_cb_t completion_cb,
	doca_sync_event_task_wait_eq_completion_cb_t error_cb,
	uint32_t num_tasks);

/* Waits until the masked value is equal. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_task_wait_eq_alloc_init(
	struct doca_sync_event *event,
	uint64_t wait_val,
	uint64_t mask,
	union doca_data user_data,
	struct doca_sync_event_task_wait_eq **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_sync_event_task_wait_eq_as_doca_task(
	struct doca_sync_event_task_wait_eq *task);

/* Sets the wait val of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_sync_event_task_wait_eq_set_wait_val(
	struct doca_sync_event_task_wait_eq *task,
	uint64_t wait_val);

/* The wait val that was set last. */
DOCA_EXPERIMENTAL
uint64_t doca_sync_event_task_wait_eq_get_wait_val(const struct doca_sync_event_task_wait_eq *task);

/* Sets the mask of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_sync_event_task_wait_eq_set_mask(
	struct doca_sync_event_task_wait_eq *task,
	uint64_t mask);

/* The mask that was set last. */
DOCA_EXPERIMENTAL
uint64_t doca_sync_event_task_wait_eq_get_mask(const struct doca_sync_event_task_wait_eq *task);

/* Whether the device can: task wait neq. SUCCESS is yes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_task_wait_neq_is_supported(const struct doca_devinfo *devinfo);

/*
 * Before start: wants up to so many tasks of this kind, and says who is told of their ends. Errors:
 * INVALID_VALUE, NOT_PERMITTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_task_wait_neq_set_conf(
	struct doca_sync_event *event,
	doca_sync_event_task_wait_neq_completion_cb_t completion_cb,
	doca_sync_event_task_wait_neq_completion_cb_t error_cb,
	uint32_t num_tasks);

/* Waits until it is not. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_task_wait_neq_alloc_init(
	struct doca_sync_event *event,
	uint64_t wait_val,
	uint64_t mask,
	union doca_data user_data,
	struct doca_sync_event_task_wait_neq **task);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_sync_event_task_wait_neq_as_doca_task(
	struct doca_sync_event_task_wait_neq *task);

/* Sets the wait val of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_sync_event_task_wait_neq_set_wait_val(
	struct doca_sync_event_task_wait_neq *task,
	uint64_t wait_val);

/* The wait val that was set last. */
DOCA_EXPERIMENTAL
uint64_t doca_sync_event_task_wait_neq_get_wait_val(
	const struct doca_sync_event_task_wait_neq *task);

/* Sets the mask of a task that is not in flight. */
DOCA_EXPERIMENTAL
void doca_sync_event_task_wait_neq_set_mask(
	struct doca_sync_event_task_wait_neq *task,
	uint64_t mask);

/* The mask that was set last. */
DOCA_EXPERIMENTAL
uint64_t doca_sync_event_task_wait_neq_get_mask(const struct doca_sync_event_task_wait_neq *task);

/* ---- life, locations, export ---- */

/* A descriptor for across PCI. Errors: INVALID_VALUE, NOT_SUPPORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_export_to_remote_pci(
	struct doca_sync_event *event,
	struct doca_dev *dev,
	const uint8_t **data,
	size_t *sz);

/* Whether the device can: export to remote pci. SUCCESS is yes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_is_export_to_remote_pci_supported(
	const struct doca_devinfo *devinfo);

/* A handle for kernels of a DPA. Errors: INVALID_VALUE, NOT_SUPPORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_get_dpa_handle(
	struct doca_sync_event *event,
	struct doca_dpa *dpa,
	doca_dpa_dev_sync_event_t *dpa_dev_se_handle);

/* Whether the device can: export to dpa. SUCCESS is yes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_is_export_to_dpa_supported(const struct doca_devinfo *devinfo);

/* A handle for kernels of a GPU. Errors: INVALID_VALUE, NOT_SUPPORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_get_gpu_handle(
	struct doca_sync_event *event,
	struct doca_gpu *gpu,
	doca_gpu_dev_sync_event_t **gpu_dev_se);

/* Whether the device can: export to gpu. SUCCESS is yes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_is_export_to_gpu_supported(const struct doca_devinfo *devinfo);

/* A descriptor for across the network. Errors: INVALID_VALUE, NOT_SUPPORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_export_to_remote_net(
	struct doca_sync_event *event,
	const uint8_t **data,
	size_t *sz);

/* Whether the device can: export to remote net. SUCCESS is yes. Errors: INVALID_VALUE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_is_export_to_remote_net_supported(
	const struct doca_devinfo *devinfo);

/* A handle of a peer's event for kernels of a DPA. Errors: INVALID_VALUE, NOT_SUPPORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_remote_net_get_dpa_handle(
	struct doca_sync_event_remote_net *event,
	struct doca_dpa *dpa,
	doca_dpa_dev_sync_event_remote_net_t *dpa_remote_event);

/*
 * Whether the device can: remote net export to dpa. SUCCESS is yes. Errors: INVALID_VALUE,
 * NOT_SUPPORTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_remote_net_is_export_to_dpa_supported(
	const struct doca_devinfo *devinfo);

/* A handle of a peer's event for kernels of a GPU. Errors: INVALID_VALUE, NOT_SUPPORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_remote_net_get_gpu_handle(
	struct doca_sync_event_remote_net *event,
	struct doca_gpu *gpu,
	doca_gpu_dev_sync_event_remote_net_t *gpu_remote_event);

/*
 * Whether the device can: remote net export to gpu. SUCCESS is yes. Errors: INVALID_VALUE,
 * NOT_SUPPORTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_cap_remote_net_is_export_to_gpu_supported(
	const struct doca_devinfo *devinfo);

/* ---- blocking calls ---- */

/* The value. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_get(struct doca_sync_event *event, uint64_t *value);

/* Adds; gives the value before. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_update_add(
	struct doca_sync_event *event,
	uint64_t value,
	uint64_t *fetched);

/* Sets. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_update_set(struct doca_sync_event *event, uint64_t value);

/* Blocks until the masked value is greater. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_wait_gt(struct doca_sync_event *event, uint64_t value, uint64_t mask);

/* The same, giving up the processor at each look. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_wait_gt_yield(
	struct doca_sync_event *event,
	uint64_t value,
	uint64_t mask);

/* Blocks until the masked value is equal. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_wait_eq(struct doca_sync_event *event, uint64_t value, uint64_t mask);

/* The same, giving up the processor at each look. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_wait_eq_yield(
	struct doca_sync_event *event,
	uint64_t value,
	uint64_t mask);

/* Blocks until the masked value is not equal. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_wait_neq(struct doca_sync_event *event, uint64_t value, uint64_t mask);

/* The same, giving up the processor at each look. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_sync_event_wait_neq_yield(
	struct doca_sync_event *event,
	uint64_t value,
	uint64_t mask);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_SYNC_EVENT_H_ */
