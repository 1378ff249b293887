/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Contexts: the life that every library object has, from IDLE through STARTING, RUNNING and STOPPING
 * back to IDLE.
 */

#ifndef DOCA_CTX_H_
#define DOCA_CTX_H_

#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_ctx;
struct doca_gpu;

/* Declared elsewhere. */
struct doca_dpa;
struct doca_devinfo;

/* States of a context. */
enum doca_ctx_states {
	DOCA_CTX_STATE_IDLE = 0,
	DOCA_CTX_STATE_STARTING = 1,
	DOCA_CTX_STATE_RUNNING = 2,
	DOCA_CTX_STATE_STOPPING = 3,
};

/*
 * Called after each change of state, in doca_ctx_start(), doca_ctx_stop() or doca_pe_progress(),
 * whichever caused it: user data, context, state before, state now.
 */
typedef void (*doca_ctx_state_changed_callback_t)(const union doca_data, struct doca_ctx *, enum doca_ctx_states, enum doca_ctx_states);

/* IDLE to RUNNING. Errors: INVALID_VALUE, NOT_SUPPORTED, NOT_CONNECTED, INITIALIZATION, UNEXPECTED. */
DOCA_STABLE
doca_error_t doca_ctx_start(struct doca_ctx *ctx);

/*
 * RUNNING to IDLE, or IN_PROGRESS while tasks are out. Errors: IN_PROGRESS, INVALID_VALUE,
 * NOT_CONNECTED, UNEXPECTED.
 */
DOCA_STABLE
doca_error_t doca_ctx_stop(struct doca_ctx *ctx);

/* Tasks submitted and not called back. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_ctx_get_num_inflight_tasks(
	const struct doca_ctx *ctx,
	size_t *num_inflight_tasks);

/*
 * Before start: moves the data path to a GPU, which then needs no progress engine. The simulator has
 * none: NOT_SUPPORTED. Errors: INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_ctx_set_datapath_on_gpu(struct doca_ctx *ctx, struct doca_gpu *gpu_dev);

/* Sets the word that callbacks of this context are given. Any state. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_ctx_set_user_data(struct doca_ctx *ctx, union doca_data user_data);

/* The word that callbacks of this context are given. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_ctx_get_user_data(const struct doca_ctx *ctx, union doca_data *user_data);

/* Who is told of state changes. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_ctx_set_state_changed_cb(
	struct doca_ctx *ctx,
	doca_ctx_state_changed_callback_t cb);

/* The state. Errors: INVALID_VALUE. */
DOCA_STABLE
doca_error_t doca_ctx_get_state(const struct doca_ctx *ctx, enum doca_ctx_states *state);

/* Starts what was submitted without the flush flag. */
DOCA_EXPERIMENTAL
void doca_ctx_flush_tasks(struct doca_ctx *ctx);

/*
 * Before start: moves the data path to a DPA. The simulator has none: NOT_SUPPORTED. Errors:
 * INVALID_VALUE, BAD_STATE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_ctx_set_datapath_on_dpa(struct doca_ctx *ctx, struct doca_dpa *dpa_dev);

/*
 * Before start: chooses the interrupt that the context completes on. Errors: INVALID_VALUE, BAD_STATE,
 * NOT_SUPPORTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_ctx_set_completion_vector(struct doca_ctx *ctx, uint32_t comp_vector);

/* One for each processor. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_ctx_cap_get_num_completion_vectors(
	const struct doca_devinfo *devinfo,
	uint32_t *num_comp_vectors);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_CTX_H_ */
