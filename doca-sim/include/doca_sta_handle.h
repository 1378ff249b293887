/*
 * doca_sta_handle.h: handles of storage target objects. Part of the software DOCA SDK.
 */
#ifndef DOCA_STA_HANDLE_H_
#define DOCA_STA_HANDLE_H_

#include <stddef.h>
#include <stdint.h>

#include <doca_version.h>

#ifdef __cplusplus
extern "C" {
#endif

#if DOCA_VERSION_MINOR >= 1
#define DOCA_STA_COMPLETION_SIZE 16
#endif

struct doca_sta_be_handle;
struct doca_sta_be_q_handle;
struct doca_sta_eu_handle;
struct doca_sta_ns_handle;
struct doca_sta_qp_handle;
struct doca_sta_subs_handle;

#if DOCA_VERSION_MINOR >= 1
typedef uint8_t doca_sta_nvme_completion_t[16];
#endif

#ifdef __cplusplus
}
#endif

#endif /* DOCA_STA_HANDLE_H_ */
