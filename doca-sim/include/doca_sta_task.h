/*
 * doca_sta_task.h: tasks of storage targets. Part of the software DOCA SDK.
 */
#ifndef DOCA_STA_TASK_H_
#define DOCA_STA_TASK_H_

#include <stddef.h>
#include <stdint.h>

#include <doca_compat.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_sta_producer_task_send;
struct doca_task;

typedef void (*doca_sta_task_completion_cb_t)(struct doca_sta_producer_task_send *, union doca_data);

DOCA_EXPERIMENTAL
struct doca_task *doca_sta_producer_send_task_as_task(struct doca_sta_producer_task_send *task);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_TASK_H_ */
