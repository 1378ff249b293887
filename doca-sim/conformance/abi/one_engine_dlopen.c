/*
 * The same when both libraries are opened at run time with scopes of their own: an object of the one is known
 * to the other, and the engine is loaded once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
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

#define LOOK_UP(library, function)                                        \
	__typeof__(function) *my_##function;                              \
	*(void **)&my_##function = dlsym(library, #function);             \
	CHECK(my_##function != NULL)

static int count_engines(struct dl_phdr_info *object, size_t size, void *count)
{
	(void)size;
	if (object->dlpi_name != NULL && strstr(object->dlpi_name, "libdoca_sim.so") != NULL)
		++*(int *)count;
	return 0;
}

int main(void)
{
	void *common = dlopen("libdoca_common.so.2", RTLD_NOW | RTLD_LOCAL);
	void *rdma = dlopen("libdoca_rdma.so.2", RTLD_NOW | RTLD_LOCAL);
	struct doca_devinfo **list;
	uint32_t count, i, able = 0;
	int engines = 0;

	CHECK(common != NULL && rdma != NULL);
	LOOK_UP(common, doca_devinfo_create_list);
	LOOK_UP(common, doca_devinfo_destroy_list);
	LOOK_UP(rdma, doca_rdma_cap_task_send_is_supported);
	CHECK(my_doca_devinfo_create_list(&list, &count) == DOCA_SUCCESS);
	for (i = 0; i < count; i++)
		able += my_doca_rdma_cap_task_send_is_supported(list[i]) == DOCA_SUCCESS;
	CHECK(able > 0);
	CHECK(my_doca_devinfo_destroy_list(list) == DOCA_SUCCESS);
	dl_iterate_phdr(count_engines, &engines);
	CHECK(engines == 1);
	return 0;
}
