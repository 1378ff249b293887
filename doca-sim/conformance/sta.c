/*
 * STA before start: whether a device can control a storage target, limits, devices for queue pairs, and what start needs.
 */
#include <stdint.h>

#include <doca_ctx.h>
#include <doca_pe.h>
#include <doca_sta.h>
#include <doca_sta_be.h>
#include <doca_sta_io.h>
#include <doca_sta_subsystem.h>

#include "check.h"

typedef doca_error_t (*library_query)(uint32_t *);
typedef doca_error_t (*target_query)(const struct doca_sta *, uint32_t *);

static const library_query library_queries[] = {
	doca_sta_get_max_devs,	  doca_sta_get_max_subsys,     doca_sta_get_max_ns_per_subs,
	doca_sta_get_max_qps,	  doca_sta_get_max_io_threads, doca_sta_get_max_io_size,
	doca_sta_get_min_ioccsz,  doca_sta_get_max_ioccsz,     doca_sta_get_min_iorcsz,
	doca_sta_get_max_iorcsz,  doca_sta_get_max_be,	       doca_sta_get_max_qs_per_be,
};

static const target_query target_queries[] = {
	doca_sta_get_max_num_eus_available,
	doca_sta_get_max_num_connected_qp_per_eu,
	doca_sta_get_max_io_num_per_dev,
	doca_sta_get_max_io_queue_size,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void library_limits(void)
{
	uint32_t limit, min, max;

	for (size_t i = 0; i < COUNT(library_queries); i++) {
		limit = 0;
		FAILS(INVALID_VALUE, library_queries[i](NULL));
		OK(library_queries[i](&limit));
		CHECK(limit > 0);
	}
	FAILS(INVALID_VALUE, doca_sta_get_max_icdoff(NULL));
	OK(doca_sta_get_max_icdoff(&limit));

	OK(doca_sta_get_min_ioccsz(&min));
	OK(doca_sta_get_max_ioccsz(&max));
	CHECK(min >= 64 && min <= max);
	OK(doca_sta_get_min_iorcsz(&min));
	OK(doca_sta_get_max_iorcsz(&max));
	CHECK(min >= 16 && min <= max);

	CHECK(doca_sta_is_logical_block_size_supported(512) || doca_sta_is_logical_block_size_supported(4096));
	CHECK(!doca_sta_is_logical_block_size_supported(0));
	CHECK(!doca_sta_is_logical_block_size_supported(513));
}

static void target_limits(struct doca_sta *sta)
{
	uint32_t limit, threads = 0;
	uint16_t count = 0;

	for (size_t i = 0; i < COUNT(target_queries); i++) {
		limit = 0;
		FAILS(INVALID_VALUE, target_queries[i](NULL, &limit));
		FAILS(INVALID_VALUE, target_queries[i](sta, NULL));
		OK(target_queries[i](sta, &limit));
		CHECK(limit > 0);
	}

	OK(doca_sta_get_max_io_threads(&threads));
	FAILS(INVALID_VALUE, doca_sta_set_max_sta_io(NULL, 1));
	FAILS(INVALID_VALUE, doca_sta_set_max_sta_io(sta, 0));
	if (threads < UINT16_MAX)
		FAILS(INVALID_VALUE, doca_sta_set_max_sta_io(sta, (uint16_t)(threads + 1)));
	OK(doca_sta_set_max_sta_io(sta, (uint16_t)threads));
	FAILS(INVALID_VALUE, doca_sta_get_max_sta_io(NULL, &count));
	FAILS(INVALID_VALUE, doca_sta_get_max_sta_io(sta, NULL));
	OK(doca_sta_get_max_sta_io(sta, &count));
	CHECK(count == threads);
}

static void targets(struct doca_dev *control, struct doca_dev *network)
{
	struct doca_sta *sta = NULL;

	FAILS(INVALID_VALUE, doca_sta_cap_is_supported(NULL));
	OK(doca_sta_cap_is_supported(doca_dev_as_devinfo(control)));
	FAILS(INVALID_VALUE, doca_sta_create(NULL, &sta));
	FAILS(INVALID_VALUE, doca_sta_create(control, NULL));
	CHECK(sta == NULL);
	OK(doca_sta_create(control, &sta));
	CHECK(doca_sta_as_ctx(NULL) == NULL);
	target_limits(sta);

	FAILS(INVALID_VALUE, doca_sta_add_dev(NULL, network));
	FAILS(INVALID_VALUE, doca_sta_add_dev(sta, NULL));
	OK(doca_sta_add_dev(sta, network));
	FAILS(ALREADY_EXIST, doca_sta_add_dev(sta, network));
	OK(doca_sta_add_dev(sta, control));
	FAILS(IN_USE, doca_dev_close(network));
	FAILS(IN_USE, doca_dev_close(control));

	FAILS(INVALID_VALUE, doca_sta_destroy(NULL));
	OK(doca_sta_destroy(sta));
}

static void starts(struct doca_dev *control)
{
	enum doca_ctx_states state = DOCA_CTX_STATE_RUNNING;
	struct doca_sta_subs_handle *subsystem = NULL;
	struct doca_sta_be_handle *back_end = NULL;
	struct doca_sta_io *io = NULL;
	struct doca_ctx *ctx;
	struct doca_sta *sta;
	struct doca_pe *pe;

	OK(doca_pe_create(&pe));
	OK(doca_sta_create(control, &sta));
	ctx = doca_sta_as_ctx(sta);
	CHECK(ctx != NULL);
	FAILS(NOT_CONNECTED, doca_ctx_start(ctx));
	OK(doca_pe_connect_ctx(pe, ctx));
	FAILS(IN_USE, doca_pe_destroy(pe));
	FAILS(INVALID_VALUE, doca_ctx_start(ctx));
	OK(doca_sta_add_dev(sta, control));

	/* Without allocator and tasks it does not start, and without a start there is nothing else. */
	FAILS(INITIALIZATION, doca_ctx_start(ctx));
	FAILS(BAD_STATE, doca_sta_io_create(sta, &io));
	FAILS(BAD_STATE, doca_sta_subsystem_create(sta, "nqn.2026-01.org.example:disk", &subsystem));
	FAILS(BAD_STATE, doca_sta_be_create(sta, &back_end));
	CHECK(io == NULL && subsystem == NULL && back_end == NULL);

	OK(doca_ctx_get_state(ctx, &state));
	CHECK(state == DOCA_CTX_STATE_IDLE);
	OK(doca_sta_destroy(sta));
	OK(doca_pe_destroy(pe));
}

int main(void)
{
	struct doca_dev *control = open_device("mlx5_0"), *network = open_device("mlx5_1");

	CHECK(control != NULL && network != NULL);
	library_limits();
	targets(control, network);
	starts(control);
	OK(doca_dev_close(network));
	OK(doca_dev_close(control));
	return check_summary();
}
