/* Which devices can send messages over RDMA, and how long ones. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <doca_dev.h>
#include <doca_error.h>
#include <doca_rdma.h>

static doca_error_t describe(const struct doca_devinfo *device)
{
	char name[DOCA_DEVINFO_IBDEV_NAME_SIZE];
	uint32_t longest = 0;
	doca_error_t result = doca_devinfo_get_ibdev_name(device, name, sizeof(name));

	if (result != DOCA_SUCCESS)
		return result;
	result = doca_rdma_cap_task_send_is_supported(device);
	if (result == DOCA_ERROR_NOT_SUPPORTED) {
		printf("%s: no messages\n", name);
		return DOCA_SUCCESS;
	}
	if (result == DOCA_SUCCESS)
		result = doca_rdma_cap_get_max_message_size(device, &longest);
	if (result == DOCA_SUCCESS)
		printf("%s: messages of up to %u bytes\n", name, (unsigned int)longest);
	return result;
}

int main(int argc, char **argv)
{
	struct doca_devinfo **devices = NULL;
	uint32_t count = 0, index;
	doca_error_t result;

	(void)argc;
	result = doca_devinfo_create_list(&devices, &count);
	for (index = 0; result == DOCA_SUCCESS && index < count; index++)
		result = describe(devices[index]);
	if (devices != NULL)
		doca_devinfo_destroy_list(devices);
	if (result == DOCA_SUCCESS)
		return EXIT_SUCCESS;
	fprintf(stderr, "%s: %s\n", argv[0], doca_error_get_descr(result));
	return EXIT_FAILURE;
}
