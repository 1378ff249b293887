/*
 * What the conformance programs share: expectations that are counted, and the last line.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <doca_dev.h>
#include <doca_error.h>
#include <doca_version.h>

/* Whether the headers have what came after 3.0. */
#define AFTER_3_0 (DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1)

static int checks_passed, checks_failed;

static inline void check_result(int fine, const char *file, int line, const char *what)
{
	if (fine) {
		checks_passed++;
		return;
	}
	checks_failed++;
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
}

static inline void check_code(doca_error_t expected, doca_error_t got, const char *file, int line, const char *call)
{
	char text[512];

	snprintf(text, sizeof(text), "%s gives %s instead of %s", call, doca_error_get_name(got),
		 doca_error_get_name(expected));
	check_result(expected == got, file, line, text);
}

/* A condition that must hold. */
#define CHECK(condition) check_result((condition) != 0, __FILE__, __LINE__, #condition)
/* A call that must give this code; DOCA_ERROR_ is added. */
#define FAILS(code, call) check_code(DOCA_ERROR_##code, call, __FILE__, __LINE__, #call)
/* A call that must succeed. */
#define OK(call) check_code(DOCA_SUCCESS, call, __FILE__, __LINE__, #call)

/* The last line of each program, and its exit status. */
static inline int check_summary(void)
{
	printf("%d passed, %d failed\n", checks_passed, checks_failed);
	return checks_failed != 0;
}

/* The file of this program, for those that run themselves again. */
static inline const char *check_program(void)
{
	static char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[length > 0 ? length : 0] = '\0';
	return path;
}

/* Opens the device with this name, or NULL. */
static inline struct doca_dev *open_device(const char *wanted)
{
	char name[DOCA_DEVINFO_IBDEV_NAME_SIZE];
	struct doca_devinfo **list;
	struct doca_dev *dev = NULL;
	uint32_t count;

	if (doca_devinfo_create_list(&list, &count) != DOCA_SUCCESS)
		return NULL;
	for (uint32_t i = 0; i < count && dev == NULL; i++)
		if (doca_devinfo_get_ibdev_name(list[i], name, sizeof(name)) == DOCA_SUCCESS && strcmp(name, wanted) == 0)
			OK(doca_dev_open(list[i], &dev));
	OK(doca_devinfo_destroy_list(list));
	return dev;
}

#endif
