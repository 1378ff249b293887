/*
 * Log messages: backends of both families, their limits, and the shape of a line.
 */
#define _GNU_SOURCE
#include "check.h"

#include <doca_argp.h>
#include <doca_log.h>
#include <stdlib.h>

DOCA_LOG_REGISTER(CONFORMANCE);

static char app_buf[256], sdk_buf[256], tiny_buf[8];
static char app_last[256], sdk_last[256], tiny_last[8];
static int app_count, sdk_count;

static void on_app(char *text)
{
	snprintf(app_last, sizeof(app_last), "%s", text);
	app_count++;
}

static void on_sdk(char *text)
{
	snprintf(sdk_last, sizeof(sdk_last), "%s", text);
	sdk_count++;
}

static void on_tiny(char *text)
{
	snprintf(tiny_last, sizeof(tiny_last), "%s", text);
}

/* Makes the SDK say something at ERROR. */
static void provoke(void)
{
	doca_argp_usage();
}

/* How many records an application message of this level gives. */
static int records(uint32_t level)
{
	int before = app_count;

	OK(doca_log(level, log_source, "file.c", 1, "function", "text"));
	return app_count - before;
}

static void levels(struct doca_log_backend *backend)
{
	CHECK(records(DOCA_LOG_LEVEL_CRIT) == 1);
	CHECK(records(DOCA_LOG_LEVEL_INFO) == 1);
	CHECK(records(DOCA_LOG_LEVEL_DEBUG) == 0);
	OK(doca_log_backend_set_level_lower_limit(backend, DOCA_LOG_LEVEL_TRACE));
	CHECK(records(DOCA_LOG_LEVEL_TRACE) == 1);
	OK(doca_log_backend_set_level_upper_limit(backend, DOCA_LOG_LEVEL_WARNING));
	CHECK(records(DOCA_LOG_LEVEL_ERROR) == 0);
	CHECK(records(DOCA_LOG_LEVEL_WARNING) == 1);

	OK(doca_log_level_set_global_upper_limit(DOCA_LOG_LEVEL_CRIT));
	CHECK(records(DOCA_LOG_LEVEL_CRIT) == 1);
	OK(doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_WARNING));
	CHECK(doca_log_level_get_global_lower_limit() == DOCA_LOG_LEVEL_WARNING);
	CHECK(doca_log_level_get_global_upper_limit() == DOCA_LOG_LEVEL_CRIT);
	CHECK(records(DOCA_LOG_LEVEL_INFO) == 0);

	OK(doca_log_backend_set_level_lower_limit_strict(backend));
	OK(doca_log_backend_set_level_upper_limit_strict(backend));
	OK(doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_TRACE));
	CHECK(records(DOCA_LOG_LEVEL_INFO) == 0);
	CHECK(doca_log_backend_set_level_lower_limit(backend, DOCA_LOG_LEVEL_INFO) != DOCA_SUCCESS);
	CHECK(records(DOCA_LOG_LEVEL_INFO) == 0);
	OK(doca_log_backend_set_level_upper_limit(backend, DOCA_LOG_LEVEL_WARNING));
	CHECK(records(DOCA_LOG_LEVEL_ERROR) == 0);
	CHECK(doca_log_backend_set_level_upper_limit(backend, DOCA_LOG_LEVEL_CRIT) != DOCA_SUCCESS);
	CHECK(records(DOCA_LOG_LEVEL_CRIT) == 0);
}

/* [HH:MM:SS:usec][thread][DOCA][WRN][file:line][function] text */
static void line(void)
{
	char long_text[2000], expected[2100];
	FILE *stream = tmpfile();
	struct doca_log_backend *backend;
	int hour, minute, second, used = 0;
	long micros, thread;
	static char back[4096];

	CHECK(stream != NULL);
	OK(doca_log_backend_create_with_file(stream, &backend));
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	OK(doca_log(DOCA_LOG_LEVEL_WARNING, log_source, "dir/file.c", 42, "work", "%s %d", long_text, 7));
	rewind(stream);
	CHECK(fgets(back, sizeof(back), stream) != NULL);
	CHECK(sscanf(back, "[%2d:%2d:%2d:%6ld][%ld]%n", &hour, &minute, &second, &micros, &thread, &used) == 5);
	CHECK(thread == (long)gettid());
	snprintf(expected, sizeof(expected), "[DOCA][WRN][file.c:42][work] %s 7\n", long_text);
	CHECK(strcmp(back + used, expected) == 0);
	OK(doca_log_backend_set_level_lower_limit(backend, DOCA_LOG_LEVEL_DISABLE));
}

static void descriptor(void)
{
	struct doca_log_backend *backend;
	char back[256] = "";
	int ends[2];

	CHECK(pipe(ends) == 0);
	OK(doca_log_backend_create_with_fd(ends[1], &backend));
	OK(doca_log(DOCA_LOG_LEVEL_ERROR, 12345, "file.c", 1, "function", "no such source"));
	CHECK(read(ends[0], back, sizeof(back) - 1) > 0);
	CHECK(strstr(back, "[ERR][file.c:1][function] no such source\n") != NULL);
	OK(doca_log_backend_set_level_lower_limit(backend, DOCA_LOG_LEVEL_DISABLE));
}

static void sdk(void)
{
	struct doca_log_backend *backend, *second;
	int ends[2];
	char back[256] = "";

	OK(doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_WARNING));
	CHECK(doca_log_level_get_global_sdk_limit() == DOCA_LOG_LEVEL_WARNING);
	OK(doca_log_backend_create_with_buf_sdk(sdk_buf, sizeof(sdk_buf), on_sdk, &backend));
	provoke();
	CHECK(sdk_count == 1);
	CHECK(strstr(sdk_last, "[DOCA][ERR]") != NULL);
	OK(doca_log_backend_set_sdk_level(backend, DOCA_LOG_LEVEL_CRIT));
	provoke();
	CHECK(sdk_count == 1);
	CHECK(pipe(ends) == 0);
	OK(doca_log_backend_create_with_fd_sdk(ends[1], &second));
	provoke();
	CHECK(read(ends[0], back, sizeof(back) - 1) > 0);
	CHECK(strstr(back, "[DOCA][ERR]") != NULL);
	OK(doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_DISABLE));

	FAILS(INVALID_VALUE, doca_log_backend_set_sdk_level(backend, 35));
	FAILS(INVALID_VALUE, doca_log_backend_set_level_lower_limit(backend, DOCA_LOG_LEVEL_INFO));
	FAILS(INVALID_VALUE, doca_log_backend_set_level_upper_limit_strict(backend));
}

static void misuse(struct doca_log_backend *application)
{
	struct doca_log_backend *backend;
	const char *none = NULL;
	int source;

	FAILS(INVALID_VALUE, doca_log_backend_create_with_file(NULL, &backend));
	FAILS(INVALID_VALUE, doca_log_backend_create_with_file(stderr, NULL));
	FAILS(INVALID_VALUE, doca_log_backend_create_with_file_sdk(NULL, &backend));
	FAILS(INVALID_VALUE, doca_log_backend_create_with_fd(-1, &backend));
	FAILS(INVALID_VALUE, doca_log_backend_create_with_fd_sdk(2, NULL));
	FAILS(INVALID_VALUE, doca_log_backend_create_with_buf(NULL, 8, on_tiny, &backend));
	FAILS(INVALID_VALUE, doca_log_backend_create_with_buf(tiny_buf, 0, on_tiny, &backend));
	FAILS(INVALID_VALUE, doca_log_backend_create_with_buf(tiny_buf, 8, NULL, &backend));
	FAILS(INVALID_VALUE, doca_log_backend_create_with_buf_sdk(tiny_buf, 8, on_tiny, NULL));
	FAILS(INVALID_VALUE, doca_log_backend_create_with_syslog(NULL, &backend));
	FAILS(INVALID_VALUE, doca_log_backend_create_with_syslog_sdk("name", NULL));
	FAILS(INVALID_VALUE, doca_log_backend_set_level_lower_limit(NULL, DOCA_LOG_LEVEL_INFO));
	FAILS(INVALID_VALUE, doca_log_backend_set_level_lower_limit(application, 0));
	FAILS(INVALID_VALUE, doca_log_backend_set_level_upper_limit(application, 71));
	FAILS(INVALID_VALUE, doca_log_backend_set_sdk_level(application, DOCA_LOG_LEVEL_INFO));
	FAILS(INVALID_VALUE, doca_log_level_set_global_lower_limit(11));
	FAILS(INVALID_VALUE, doca_log_level_set_global_upper_limit(0));
	FAILS(INVALID_VALUE, doca_log_level_set_global_sdk_limit(80));
	FAILS(INVALID_VALUE, doca_log_register_source(NULL, &source));
	FAILS(INVALID_VALUE, doca_log_register_source("NAME", NULL));
	OK(doca_log_register_source("NAME", &source));
	CHECK(source != log_source);
	OK(doca_log_unregister_source(source));
	FAILS(INVALID_VALUE, doca_log_unregister_source(source));
	FAILS(INVALID_VALUE, doca_log(DOCA_LOG_LEVEL_INFO, 0, "file.c", 1, "function", none));
	FAILS(INVALID_VALUE, doca_log(DOCA_LOG_LEVEL_INFO, 0, NULL, 1, "function", "text"));
	FAILS(INVALID_VALUE, doca_log(DOCA_LOG_LEVEL_INFO, 0, "file.c", 1, NULL, "text"));
	FAILS(INVALID_VALUE, doca_log(55, 0, "file.c", 1, "function", "text"));
	FAILS(INVALID_VALUE, doca_log(DOCA_LOG_LEVEL_DISABLE, 0, "file.c", 1, "function", "text"));
}

/* What this program does when it runs again, with an argument. */
static int child(const char *what)
{
	if (strcmp(what, "environment") == 0)
		return doca_log_level_get_global_lower_limit() != DOCA_LOG_LEVEL_DEBUG ||
		       doca_log_level_get_global_sdk_limit() != DOCA_LOG_LEVEL_TRACE;
	OK(doca_log_backend_create_standard());
	DOCA_LOG_INFO("informs");
	DOCA_LOG_WARN("warns");
	return checks_failed;
}

/* Runs this program again, as part of a shell's command. */
static int again(const char *before, const char *argument_and_after)
{
	char command[8192];

	snprintf(command, sizeof(command), "%s '%s' %s", before, check_program(), argument_and_after);
	return system(command);
}

static void processes(void)
{
	CHECK(again("DOCA_LOG_LEVEL=debug DOCA_LOG_LEVEL_SDK=70", "environment") == 0);
	CHECK(again("", "standard 2>/dev/null | grep -q 'INF.*informs'") == 0);
	CHECK(again("", "standard 2>/dev/null | grep -q warns") != 0);
	CHECK(again("", "standard 2>&1 >/dev/null | grep -q 'WRN.*warns'") == 0);
	CHECK(again("", "standard 2>&1 >/dev/null | grep -q informs") != 0);
}

int main(int argc, char **argv)
{
	struct doca_log_backend *backend, *tiny;

	if (argc > 1)
		return child(argv[1]);
	processes();
	CHECK(doca_log_level_get_global_lower_limit() == DOCA_LOG_LEVEL_INFO);
	CHECK(doca_log_level_get_global_upper_limit() == DOCA_LOG_LEVEL_CRIT);
	OK(doca_log_backend_create_with_buf(app_buf, sizeof(app_buf), on_app, &backend));
	DOCA_LOG_INFO("through a macro, %s", "formatted");
	CHECK(app_count == 1);
	CHECK(strstr(app_last, "[main] through a macro, formatted\n") != NULL);
	levels(backend);
	line();
	descriptor();
	OK(doca_log_backend_create_with_buf(tiny_buf, sizeof(tiny_buf), on_tiny, &tiny));
	OK(doca_log(DOCA_LOG_LEVEL_ERROR, log_source, "file.c", 1, "function", "text"));
	CHECK(strlen(tiny_last) == sizeof(tiny_buf) - 1);
	sdk();
	misuse(backend);
	return check_summary();
}
