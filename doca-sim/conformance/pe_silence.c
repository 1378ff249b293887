/*
 * Tasks in flight and no progress: a program that sleeps on the notification handle is left in peace, one that
 * forgot its engine is told, once.
 */
#include "side.h"

#include <poll.h>

#include <doca_log.h>

/* Time is the subject: a second is allowed, and this is some more. */
#define TOO_LONG_MS 1700

static char text[1024];
static int complaints;

static void on_sdk(char *line)
{
	if (strstr(line, "doca_pe_progress has not been called") != NULL)
		complaints++;
}

/* Waits without progress; tells whether the handle woke. */
static int wait_idly(doca_notification_handle_t handle, int ms)
{
	struct pollfd one = {.fd = handle, .events = POLLIN};

	return poll(&one, 1, ms);
}

int main(void)
{
	struct doca_log_backend *backend;
	doca_notification_handle_t handle;
	struct doca_buf *buf;
	struct side side;

	OK(doca_log_backend_create_with_buf_sdk(text, sizeof(text), on_sdk, &backend));
	OK(doca_log_backend_set_sdk_level(backend, DOCA_LOG_LEVEL_WARNING));
	OK(doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_WARNING));
	side_open(&side);
	OK(doca_pe_get_notification_handle(side.pe, &handle));
	buf = side_room(&side, 0, 64);
	side_receive(&side, buf, 0);

	OK(doca_pe_request_notification(side.pe));
	CHECK(wait_idly(handle, TOO_LONG_MS) == 0);
	CHECK(complaints == 0);

	OK(doca_pe_clear_notification(side.pe, handle));
	CHECK(wait_idly(handle, TOO_LONG_MS) == 0);
	CHECK(complaints == 1);

	side_stop(&side);
	put(buf);
	side_close(&side);
	return check_summary();
}
