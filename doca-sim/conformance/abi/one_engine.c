/*
 * State exists once per process, although two public libraries reach it: a devinfo that libdoca_common made
 * and libdoca_rdma looked at opens the same device each time, and the engine is mapped once.
 */
#include <stdio.h>
#include <string.h>

#include <doca_dev.h>
#include <doca_rdma.h>

#define CHECK(condition)                                                    \
	do {                                                                \
		if (!(condition)) {                                         \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
			return 1;                                           \
		}                                                           \
	} while (0)

/* How many different files named so are mapped. */
static int mapped(const char *name)
{
	char line[4096], first[4096] = "";
	int files = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		const char *path = strchr(line, '/');

		if (path == NULL || strstr(path, name) == NULL || strcmp(path, first) == 0)
			continue;
		strcpy(first, path);
		files++;
	}
	if (maps != NULL)
		fclose(maps);
	return files;
}

int main(void)
{
	struct doca_devinfo **list;
	struct doca_devinfo *info = NULL;
	struct doca_dev *first, *second;
	struct doca_rdma *rdma;
	uint32_t count, i;

	CHECK(doca_devinfo_create_list(&list, &count) == DOCA_SUCCESS);
	for (i = 0; i < count && info == NULL; i++)
		if (doca_rdma_cap_task_send_is_supported(list[i]) == DOCA_SUCCESS)
			info = list[i];
	CHECK(info != NULL);
	CHECK(doca_dev_open(info, &first) == DOCA_SUCCESS);
	CHECK(doca_dev_open(info, &second) == DOCA_SUCCESS);
	CHECK(first == second);
	CHECK(doca_rdma_create(first, &rdma) == DOCA_SUCCESS);
	/* The context of the one library keeps the device of the other in use. */
	CHECK(doca_dev_close(second) == DOCA_SUCCESS);
	CHECK(doca_dev_close(first) == DOCA_ERROR_IN_USE);
	CHECK(doca_rdma_destroy(rdma) == DOCA_SUCCESS);
	CHECK(doca_dev_close(first) == DOCA_SUCCESS);
	CHECK(doca_devinfo_destroy_list(list) == DOCA_SUCCESS);
	CHECK(mapped("libdoca_sim.so") == 1);
	return 0;
}
