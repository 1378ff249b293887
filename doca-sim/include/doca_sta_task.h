/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* STA tasks. */

#ifndef DOCA_STA_TASK_H_
#define DOCA_STA_TASK_H_

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
struct doca_sta_producer_task_send;

/* Declared elsewhere. */
struct doca_task;

/* Functions of the program that the library calls, from doca_pe_progress() unless said otherwise. */
typedef void (*doca_sta_task_completion_cb_t)(struct doca_sta_producer_task_send *, union doca_data);

/* The same task, as the progress engine knows it. */
DOCA_EXPERIMENTAL
struct doca_task *doca_sta_producer_send_task_as_task(struct doca_sta_producer_task_send *task);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_TASK_H_ */
