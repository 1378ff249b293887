/*
 * Devices and representors, on the host side, on the DPU side, and with bad settings. Settings are read once per
 * process, so this program runs itself again for each of them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doca_rdma.h>

#include "check.h"

static void lists(void)
{
	struct doca_devinfo **list, **other;
	struct doca_dev *dev, *again, *third;
	char name[DOCA_DEVINFO_IBDEV_NAME_SIZE];
	uint32_t count, other_count;
	uint16_t id;

	FAILS(INVALID_VALUE, doca_devinfo_create_list(NULL, &count));
	FAILS(INVALID_VALUE, doca_devinfo_create_list(&list, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_destroy_list(NULL));
	OK(doca_devinfo_create_list(&list, &count));
	OK(doca_devinfo_create_list(&other, &other_count));
	CHECK(count >= 2 && count == other_count && list != other);

	FAILS(INVALID_VALUE, doca_dev_open(NULL, &dev));
	FAILS(INVALID_VALUE, doca_dev_open(list[0], NULL));
	OK(doca_dev_open(list[0], &dev));
	OK(doca_dev_open(other[0], &again));
	CHECK(dev == again);
	OK(doca_devinfo_destroy_list(other));
	OK(doca_devinfo_destroy_list(list));
	FAILS(INVALID_VALUE, doca_devinfo_destroy_list(list));

	CHECK(doca_dev_as_devinfo(NULL) == NULL);
	OK(doca_dev_open(doca_dev_as_devinfo(dev), &third));
	CHECK(third == dev);
	OK(doca_dev_close(dev));
	OK(doca_dev_close(dev));
	OK(doca_devinfo_get_ibdev_name(doca_dev_as_devinfo(dev), name, sizeof(name)));
	CHECK(strcmp(name, "mlx5_0") == 0);
	OK(doca_devinfo_get_vhca_id(doca_dev_as_devinfo(dev), &id));
	OK(doca_dev_close(dev));
	OK(doca_dev_close(NULL));
}

static void queries(const struct doca_devinfo *info)
{
	char pci[DOCA_DEVINFO_PCI_ADDR_SIZE], name[DOCA_DEVINFO_IFACE_NAME_SIZE], upper[DOCA_DEVINFO_PCI_ADDR_SIZE];
	uint8_t addr[DOCA_DEVINFO_IPV6_ADDR_SIZE], flag = 9;
	uint64_t rate = 0;
	uint16_t word;

	OK(doca_devinfo_get_pci_addr_str(info, pci));
	CHECK(strlen(pci) == 12);
	OK(doca_devinfo_is_equal_pci_addr(info, pci, &flag));
	CHECK(flag == 1);
	for (size_t i = 0; i < sizeof(pci); i++)
		upper[i] = (char)(pci[i] >= 'a' && pci[i] <= 'f' ? pci[i] - 'a' + 'A' : pci[i]);
	OK(doca_devinfo_is_equal_pci_addr(info, upper + 5, &flag));
	CHECK(flag == 1);
	OK(doca_devinfo_is_equal_pci_addr(info, "ffff:ff:1f.7", &flag));
	CHECK(flag == 0);
	FAILS(INVALID_VALUE, doca_devinfo_is_equal_pci_addr(info, NULL, &flag));
	FAILS(INVALID_VALUE, doca_devinfo_is_equal_pci_addr(info, pci, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_get_pci_addr_str(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_get_pci_addr_str(NULL, pci));

	OK(doca_devinfo_get_iface_name(info, name, sizeof(name)));
	CHECK(name[0] != '\0');
	FAILS(INVALID_VALUE, doca_devinfo_get_iface_name(info, name, sizeof(name) - 1));
	FAILS(INVALID_VALUE, doca_devinfo_get_ibdev_name(info, name, DOCA_DEVINFO_IBDEV_NAME_SIZE - 1));
	FAILS(INVALID_VALUE, doca_devinfo_get_ibdev_name(info, NULL, DOCA_DEVINFO_IBDEV_NAME_SIZE));
	OK(doca_devinfo_get_ipv6_addr(info, addr, sizeof(addr)));
	FAILS(INVALID_VALUE, doca_devinfo_get_ipv6_addr(info, addr, sizeof(addr) - 1));
	FAILS(INVALID_VALUE, doca_devinfo_get_ipv4_addr(info, addr, DOCA_DEVINFO_IPV4_ADDR_SIZE - 1));
	OK(doca_devinfo_get_mac_addr(info, addr, DOCA_DEVINFO_MAC_ADDR_SIZE));
	FAILS(INVALID_VALUE, doca_devinfo_get_mac_addr(info, addr, DOCA_DEVINFO_MAC_ADDR_SIZE - 1));
	FAILS(NOT_SUPPORTED, doca_devinfo_get_lid(info, &word));
	OK(doca_devinfo_get_active_rate(info, &rate));
	CHECK(rate >= 1000000000);
	FAILS(INVALID_VALUE, doca_devinfo_get_active_rate(info, NULL));
#if AFTER_3_0
	uint32_t number;

	FAILS(NOT_SUPPORTED, doca_devinfo_get_sf_index(info, &number));
#endif
}

static void rdma_capabilities(const struct doca_devinfo *info)
{
	struct doca_rdma_gid gids[64], two[2];
	uint32_t size = 0, number;

	OK(doca_rdma_cap_task_send_is_supported(info));
	OK(doca_rdma_cap_task_receive_is_supported(info));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_send_is_supported(NULL));
	OK(doca_rdma_cap_transport_type_is_supported(info, DOCA_RDMA_TRANSPORT_TYPE_RC));
	FAILS(INVALID_VALUE, doca_rdma_cap_transport_type_is_supported(info, (enum doca_rdma_transport_type)7));
	OK(doca_rdma_cap_get_max_message_size(info, &number));
	CHECK(number >= 1 << 20);
	OK(doca_rdma_cap_task_receive_get_max_dst_buf_list_len(info, DOCA_RDMA_TRANSPORT_TYPE_RC, &number));
	CHECK(number >= 1);
	OK(doca_rdma_cap_get_gid_table_size(info, &size));
	CHECK(size >= 4 && size <= 64);
	OK(doca_rdma_cap_get_gid(info, 0, size, gids));
	OK(doca_rdma_cap_get_gid(info, 2, 2, two));
	CHECK(memcmp(two, gids + 2, sizeof(two)) == 0);
	FAILS(INVALID_VALUE, doca_rdma_cap_get_gid(info, 0, 0, gids));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_gid(info, size - 1, 2, gids));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_gid(info, UINT32_MAX, 2, gids));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_gid(info, 0, 1, NULL));
}

static void host_side(void)
{
	struct doca_devinfo_rep **reps;
	struct doca_devinfo **list;
	struct doca_dev *dev;
	uint32_t count;

	lists();
	OK(doca_devinfo_create_list(&list, &count));
	for (uint32_t i = 0; i < count; i++) {
		queries(list[i]);
		rdma_capabilities(list[i]);
	}
	OK(doca_devinfo_destroy_list(list));
	dev = open_device("mlx5_0");
	CHECK(dev != NULL);
	FAILS(NOT_SUPPORTED, doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_ALL, &reps, &count));
	OK(doca_dev_accelerate_resource_reclaim(dev));
	OK(doca_dev_close(dev));
}

#if AFTER_3_0
static void scalable_functions(void)
{
	enum doca_pci_func_type type;
	struct doca_devinfo **list;
	uint32_t count, index, num_sfs = 0;

	OK(doca_devinfo_create_list(&list, &count));
	for (uint32_t i = 0; i < count; i++) {
		OK(doca_devinfo_get_pci_func_type(list[i], &type));
		if (type != DOCA_PCI_FUNC_TYPE_SF)
			continue;
		OK(doca_devinfo_get_sf_index(list[i], &index));
		num_sfs++;
	}
	CHECK(num_sfs >= 1);
	OK(doca_devinfo_destroy_list(list));
}
#endif

static void dpu_side(void)
{
	char vuid[DOCA_DEVINFO_REP_VUID_SIZE], pci[DOCA_DEVINFO_REP_PCI_ADDR_SIZE];
	struct doca_devinfo_rep **reps;
	struct doca_dev_rep *rep;
	struct doca_dev *dev;
	enum doca_pci_func_type type;
	uint32_t count;
	uint8_t flag, addr[DOCA_DEVINFO_IPV4_ADDR_SIZE];

#if AFTER_3_0
	scalable_functions();
#endif
	dev = open_device("mlx5_0");
	CHECK(dev != NULL);
	FAILS(NOT_FOUND, doca_devinfo_get_ipv4_addr(doca_dev_as_devinfo(dev), addr, sizeof(addr)));
	OK(doca_devinfo_rep_cap_is_filter_net_supported(doca_dev_as_devinfo(dev), &flag));
	CHECK(flag == 1);
	FAILS(INVALID_VALUE, doca_devinfo_rep_create_list(dev, 6, &reps, &count));
	OK(doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &reps, &count));
	CHECK(count == 1);
	OK(doca_devinfo_rep_get_vuid(reps[0], vuid, sizeof(vuid)));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_vuid(reps[0], vuid, sizeof(vuid) - 1));
	OK(doca_devinfo_rep_get_pci_addr_str(reps[0], pci));
	OK(doca_devinfo_rep_is_equal_pci_addr(reps[0], pci, &flag));
	CHECK(flag == 1);
	OK(doca_dev_rep_open(reps[0], &rep));
	FAILS(INVALID_VALUE, doca_dev_rep_open(NULL, &rep));
	OK(doca_devinfo_rep_destroy_list(reps));
	FAILS(IN_USE, doca_dev_close(dev));
	OK(doca_devinfo_rep_get_pci_func_type(doca_dev_rep_as_devinfo(rep), &type));
	CHECK(type == DOCA_PCI_FUNC_TYPE_PF);
	OK(doca_dev_rep_close(rep));
	OK(doca_dev_close(dev));
}

static void no_send(void)
{
	struct doca_devinfo **list;
	uint32_t count;

	OK(doca_devinfo_create_list(&list, &count));
	FAILS(NOT_SUPPORTED, doca_rdma_cap_task_send_is_supported(list[0]));
	OK(doca_rdma_cap_task_send_is_supported(list[1]));
	OK(doca_rdma_cap_task_receive_is_supported(list[0]));
	OK(doca_devinfo_destroy_list(list));
}

static void no_devices(void)
{
	struct doca_devinfo **list = NULL;
	uint32_t count = 9;

	OK(doca_devinfo_create_list(&list, &count));
	CHECK(count == 0 && list != NULL);
	OK(doca_devinfo_destroy_list(list));
}

static void broken(void)
{
	struct doca_devinfo **list = NULL;
	uint32_t count = 9;

	FAILS(BAD_CONFIG, doca_devinfo_create_list(&list, &count));
	CHECK(list == NULL && count == 9);
}

/* A setting and what holds under it. */
static const struct scene {
	const char *name, *side, *topology;
	void (*play)(void);
} scenes[] = {
	{"host", "host", NULL, host_side},
	{"dpu", "dpu", NULL, dpu_side},
	{"no send", "host",
	 "{\"extends\": \"default\", \"host\": {\"mlx5_0\": {\"rdma\": {\"tasks\": {\"send\": false}}}}}", no_send},
	{"no devices", "host", "{}", no_devices},
	{"unknown side", "arm", NULL, broken},
	{"unknown key", "host", "{\"hots\": {}}", broken},
	{"not JSON", "host", "mlx5_0", broken},
};

/* Runs this program again under the scene's settings. */
static void stage(const char *program, size_t number)
{
	const struct scene *scene = &scenes[number];
	char path[] = "/tmp/doca-sim-topology-XXXXXX", argument[8];
	int status = -1, file = mkstemp(path);
	pid_t child;

	CHECK(file >= 0);
	if (scene->topology != NULL)
		CHECK(write(file, scene->topology, strlen(scene->topology)) == (ssize_t)strlen(scene->topology));
	close(file);
	snprintf(argument, sizeof(argument), "%zu", number);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		setenv("DOCA_SIM_SIDE", scene->side, 1);
		if (scene->topology != NULL)
			setenv("DOCA_SIM_TOPOLOGY", path, 1);
		else
			unsetenv("DOCA_SIM_TOPOLOGY");
		execl(program, program, argument, (char *)NULL);
		_exit(127);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	check_result(status == 0, __FILE__, __LINE__, scene->name);
	unlink(path);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		scenes[strtoul(argv[1], NULL, 10)].play();
		printf("%s: ", scenes[strtoul(argv[1], NULL, 10)].name);
		return check_summary();
	}
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		stage(check_program(), i);
	return check_summary();
}
