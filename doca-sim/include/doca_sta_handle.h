/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* STA: handles of the objects that a storage target is made of. */

#ifndef DOCA_STA_HANDLE_H_
#define DOCA_STA_HANDLE_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of an NVMe completion. */
#define DOCA_STA_COMPLETION_SIZE 16

/* An NVMe completion queue entry. */
typedef uint8_t doca_sta_nvme_completion_t[DOCA_STA_COMPLETION_SIZE];

/* Objects of the library, known by pointer only. */
struct doca_sta_qp_handle;
struct doca_sta_subs_handle;
struct doca_sta_ns_handle;
struct doca_sta_eu_handle;
struct doca_sta_be_handle;
struct doca_sta_be_q_handle;

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_HANDLE_H_ */
