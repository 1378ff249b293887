/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* STA subsystems and namespaces. */

#ifndef DOCA_STA_SUBSYSTEM_H_
#define DOCA_STA_SUBSYSTEM_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>
#include <doca_version.h>
#include <doca_sta_handle.h>
#include <doca_sta_task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Declared elsewhere. */
struct doca_sta;
struct doca_sta_subs_handle;
struct doca_dev;
struct doca_sta_be_handle;
struct doca_sta_ns_handle;
struct doca_sta_producer_task_send;

/* Makes a subsystem with an NVMe qualified name. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_subsystem_create(
	struct doca_sta *sta,
	const char *nqn,
	struct doca_sta_subs_handle **subs_handle);

/* Offers the subsystem on a device. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_subsystem_add_dev(
	struct doca_sta_subs_handle *subs_handle,
	const struct doca_dev *dev);

/* Before start: who is told that a namespace is gone. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_subsystem_task_rm_ns_set_conf(
	struct doca_sta *sta,
	doca_sta_task_completion_cb_t task_completion_cb,
	doca_sta_task_completion_cb_t task_error_cb);

/* Ends a subsystem without namespaces. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_subsystem_destroy(struct doca_sta_subs_handle *subs_handle);

/* Gives the subsystem a namespace: front-end id, block size, and the back end's namespace behind it. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_subsystem_add_ns(
	struct doca_sta_subs_handle *subs_handle,
	uint32_t fe_ns_id,
	uint32_t ns_block_size,
	uint32_t be_ns_id,
	struct doca_sta_be_handle *be_handle,
	struct doca_sta_ns_handle **ns_handle);

/* Takes a namespace away. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_subsystem_rm_ns(
	struct doca_sta_subs_handle *subs_handle,
	struct doca_sta_ns_handle *ns_handle);

/* A task that takes a namespace away once its commands are done. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL
doca_error_t doca_sta_subsystem_task_rm_ns_alloc_init(
	struct doca_sta_subs_handle *subs_handle,
	struct doca_sta_ns_handle *ns_handle,
	union doca_data user_data,
	struct doca_sta_producer_task_send **task);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_SUBSYSTEM_H_ */
