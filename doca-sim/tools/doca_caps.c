/*
 * doca_caps: what the DOCA devices of this machine are and what they can do.
 *
 * A plain user of the public API: it runs on the simulator and on real DOCA alike.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <doca_comch.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_mmap.h>
#include <doca_rdma.h>
#include <doca_types.h>
#include <doca_version.h>

#define NAME_WIDTH 40

/* Whether devices tell their kind of function, which came after 3.0. */
#define HAS_FUNC_TYPE (DOCA_VERSION_MAJOR > 3 || DOCA_VERSION_MINOR >= 1)

/* What the user asked for. */
struct request {
	const char *pci;  /* only this device, or NULL for all */
	const char *lib;  /* only this library, or NULL for all */
	bool list_devs;
	bool list_rep_devs;
	bool list_libs;
};

static void put(int depth, const char *name, const char *value)
{
	for (int i = 0; i < depth; i++)
		putchar('\t');
	printf("%-*s %s\n", NAME_WIDTH, name, value);
}

static void put_u64(int depth, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	put(depth, name, text);
}

/* Reports a call that should have worked. */
static bool failed(const char *call, doca_error_t result)
{
	if (result == DOCA_SUCCESS)
		return false;
	fprintf(stderr, "%s: %s (%s)\n", call, doca_error_get_name(result), doca_error_get_descr(result));
	return true;
}

static const char *func_type_name(enum doca_pci_func_type type)
{
	static const char *const names[] = {"PF", "VF", "SF"};

	return (unsigned int)type < 3 ? names[type] : "unknown";
}

/* --list-devs */
static bool show_device(const struct doca_devinfo *info)
{
	char name[DOCA_DEVINFO_IFACE_NAME_SIZE], text[INET6_ADDRSTRLEN];
	uint8_t mac[DOCA_DEVINFO_MAC_ADDR_SIZE], ip[DOCA_DEVINFO_IPV6_ADDR_SIZE];
	uint64_t rate;
	uint16_t id;

	if (failed("doca_devinfo_get_ibdev_name", doca_devinfo_get_ibdev_name(info, name, DOCA_DEVINFO_IBDEV_NAME_SIZE)))
		return false;
	put(1, "ibdev_name", name);
	if (failed("doca_devinfo_get_iface_name", doca_devinfo_get_iface_name(info, name, sizeof(name))))
		return false;
	put(1, "iface_name", name);
#if HAS_FUNC_TYPE
	enum doca_pci_func_type type;
	uint32_t sf_index;

	if (doca_devinfo_get_pci_func_type(info, &type) == DOCA_SUCCESS)
		put(1, "pci_func_type", func_type_name(type));
	if (doca_devinfo_get_sf_index(info, &sf_index) == DOCA_SUCCESS)
		put_u64(1, "sf_index", sf_index);
#endif
	if (doca_devinfo_get_mac_addr(info, mac, sizeof(mac)) == DOCA_SUCCESS) {
		snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
			 mac[5]);
		put(1, "mac_addr", text);
	}
	if (doca_devinfo_get_ipv4_addr(info, ip, DOCA_DEVINFO_IPV4_ADDR_SIZE) == DOCA_SUCCESS)
		put(1, "ipv4_addr", inet_ntop(AF_INET, ip, text, sizeof(text)));
	if (doca_devinfo_get_ipv6_addr(info, ip, DOCA_DEVINFO_IPV6_ADDR_SIZE) == DOCA_SUCCESS)
		put(1, "ipv6_addr", inet_ntop(AF_INET6, ip, text, sizeof(text)));
	if (doca_devinfo_get_lid(info, &id) == DOCA_SUCCESS)
		put_u64(1, "lid", id);
	if (doca_devinfo_get_active_rate(info, &rate) == DOCA_SUCCESS)
		put_u64(1, "active_rate", rate);
	if (doca_devinfo_get_vhca_id(info, &id) == DOCA_SUCCESS)
		put_u64(1, "vhca_id", id);
	return true;
}

static bool show_representor(const struct doca_devinfo_rep *info)
{
	char pci[DOCA_DEVINFO_REP_PCI_ADDR_SIZE], vuid[DOCA_DEVINFO_REP_VUID_SIZE], iface[DOCA_DEVINFO_IFACE_NAME_SIZE];
	enum doca_pci_func_type type;
	uint8_t hotplug;
	uint16_t id;

	if (failed("doca_devinfo_rep_get_pci_addr_str", doca_devinfo_rep_get_pci_addr_str(info, pci)) ||
	    failed("doca_devinfo_rep_get_vuid", doca_devinfo_rep_get_vuid(info, vuid, sizeof(vuid))) ||
	    failed("doca_devinfo_rep_get_pci_func_type", doca_devinfo_rep_get_pci_func_type(info, &type)) ||
	    failed("doca_devinfo_rep_get_is_hotplug", doca_devinfo_rep_get_is_hotplug(info, &hotplug)))
		return false;
	printf("\tRepresentor PCI: %s\n", pci);
	put(2, "pci_func_type", func_type_name(type));
	put(2, "hotplug", hotplug ? "yes" : "no");
	put(2, "vuid", vuid);
	if (doca_devinfo_rep_get_iface_name(info, iface, sizeof(iface)) == DOCA_SUCCESS)
		put(2, "iface_name", iface);
	if (doca_devinfo_rep_get_vhca_id(info, &id) == DOCA_SUCCESS)
		put_u64(2, "vhca_id", id);
	return true;
}

/* The widest list of representors that a device offers; false if it offers none. */
static bool widest_filter(const struct doca_devinfo *info, int *filter)
{
	static const struct {
		doca_error_t (*query)(const struct doca_devinfo *, uint8_t *);
		int filter;
	} filters[] = {
		{doca_devinfo_rep_cap_is_filter_all_supported, DOCA_DEVINFO_REP_FILTER_ALL},
		{doca_devinfo_rep_cap_is_filter_net_supported, DOCA_DEVINFO_REP_FILTER_NET},
		{doca_devinfo_rep_cap_is_filter_emulated_supported, DOCA_DEVINFO_REP_FILTER_EMULATED},
	};

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		uint8_t supported = 0;

		if (filters[i].query(info, &supported) == DOCA_SUCCESS && supported) {
			*filter = filters[i].filter;
			return true;
		}
	}
	return false;
}

/* --list-rep-devs */
static bool show_representors(struct doca_devinfo *info)
{
	struct doca_devinfo_rep **list;
	struct doca_dev *dev;
	uint32_t count;
	int filter;
	bool fine = true;

	if (!widest_filter(info, &filter))
		return true;
	if (failed("doca_dev_open", doca_dev_open(info, &dev)))
		return false;
	fine = !failed("doca_devinfo_rep_create_list", doca_devinfo_rep_create_list(dev, filter, &list, &count));
	if (fine) {
		for (uint32_t i = 0; i < count && fine; i++)
			fine = show_representor(list[i]);
		fine = !failed("doca_devinfo_rep_destroy_list", doca_devinfo_rep_destroy_list(list)) && fine;
	}
	return !failed("doca_dev_close", doca_dev_close(dev)) && fine;
}

/* A capability whose answer is a number. */
struct number {
	const char *name;
	doca_error_t (*query)(const struct doca_devinfo *, uint32_t *);
};

/* A capability whose answer is a flag. */
struct flag {
	const char *name;
	doca_error_t (*query)(const struct doca_devinfo *, uint8_t *);
};

/* A capability whose answer is the returned code. */
struct verdict {
	const char *name;
	doca_error_t (*query)(const struct doca_devinfo *);
};

static const char *supported(bool yes)
{
	return yes ? "supported" : "unsupported";
}

static void show_common(const struct doca_devinfo *info)
{
	static const struct flag flags[] = {
		{"mmap_export_pci", doca_mmap_cap_is_export_pci_supported},
		{"mmap_create_from_export_pci", doca_mmap_cap_is_create_from_export_pci_supported},
		{"hotplug_manager", doca_devinfo_cap_is_hotplug_manager_supported},
		{"notification_moderation", doca_devinfo_cap_is_notification_moderation_supported},
		{"accelerate_resource_reclaim", doca_devinfo_cap_is_accelerate_resource_reclaim_supported},
		{"rep_filter_all", doca_devinfo_rep_cap_is_filter_all_supported},
		{"rep_filter_net", doca_devinfo_rep_cap_is_filter_net_supported},
		{"rep_filter_emulated", doca_devinfo_rep_cap_is_filter_emulated_supported},
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		uint8_t answer = 0;
		doca_error_t result = flags[i].query(info, &answer);

		put(2, flags[i].name, supported(result == DOCA_SUCCESS && answer));
	}
}

static void show_gids(const struct doca_devinfo *info)
{
	char name[24], text[INET6_ADDRSTRLEN];
	struct doca_rdma_gid gid;
	uint32_t size;

	if (doca_rdma_cap_get_gid_table_size(info, &size) != DOCA_SUCCESS)
		return;
	put_u64(2, "gid_table_size", size);
	for (uint32_t i = 0; i < size; i++) {
		static const struct doca_rdma_gid empty;

		if (doca_rdma_cap_get_gid(info, i, 1, &gid) != DOCA_SUCCESS || memcmp(&gid, &empty, sizeof(gid)) == 0)
			continue;
		snprintf(name, sizeof(name), "gid[%u]", i);
		put(2, name, inet_ntop(AF_INET6, gid.raw, text, sizeof(text)));
	}
}

static void show_rdma(const struct doca_devinfo *info)
{
	static const struct verdict tasks[] = {
		{"task_receive", doca_rdma_cap_task_receive_is_supported},
		{"task_send", doca_rdma_cap_task_send_is_supported},
		{"task_send_imm", doca_rdma_cap_task_send_imm_is_supported},
		{"task_read", doca_rdma_cap_task_read_is_supported},
		{"task_write", doca_rdma_cap_task_write_is_supported},
		{"task_write_imm", doca_rdma_cap_task_write_imm_is_supported},
		{"task_atomic_cmp_swp", doca_rdma_cap_task_atomic_cmp_swp_is_supported},
		{"task_atomic_fetch_add", doca_rdma_cap_task_atomic_fetch_add_is_supported},
		{"task_remote_net_sync_event_get", doca_rdma_cap_task_remote_net_sync_event_get_is_supported},
		{"task_remote_net_sync_event_notify_set", doca_rdma_cap_task_remote_net_sync_event_notify_set_is_supported},
		{"task_remote_net_sync_event_notify_add", doca_rdma_cap_task_remote_net_sync_event_notify_add_is_supported},
	};
	static const struct number numbers[] = {
		{"max_send_queue_size", doca_rdma_cap_get_max_send_queue_size},
		{"max_recv_queue_size", doca_rdma_cap_get_max_recv_queue_size},
		{"max_send_buf_list_len", doca_rdma_cap_get_max_send_buf_list_len},
		{"max_message_size", doca_rdma_cap_get_max_message_size},
	};
	static const struct {
		const char *name, *list_name;
		enum doca_rdma_transport_type type;
	} transports[] = {
		{"transport_rc", "task_receive_max_dst_buf_list_len_rc", DOCA_RDMA_TRANSPORT_TYPE_RC},
		{"transport_dc", "task_receive_max_dst_buf_list_len_dc", DOCA_RDMA_TRANSPORT_TYPE_DC},
	};
	uint32_t answer;

	for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++)
		put(2, tasks[i].name, supported(tasks[i].query(info) == DOCA_SUCCESS));
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
		bool yes = doca_rdma_cap_transport_type_is_supported(info, transports[i].type) == DOCA_SUCCESS;

		put(2, transports[i].name, supported(yes));
		if (yes && doca_rdma_cap_task_receive_get_max_dst_buf_list_len(info, transports[i].type, &answer) == DOCA_SUCCESS)
			put_u64(2, transports[i].list_name, answer);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].query(info, &answer) == DOCA_SUCCESS)
			put_u64(2, numbers[i].name, answer);
	show_gids(info);
}

static void show_comch(const struct doca_devinfo *info)
{
	static const struct verdict roles[] = {
		{"server", doca_comch_cap_server_is_supported},
		{"client", doca_comch_cap_client_is_supported},
		{"consumer", doca_comch_consumer_cap_is_supported},
		{"producer", doca_comch_producer_cap_is_supported},
	};
	static const struct number numbers[] = {
		{"max_name_len", doca_comch_cap_get_max_name_len},
		{"max_msg_size", doca_comch_cap_get_max_msg_size},
		{"max_recv_queue_size", doca_comch_cap_get_max_recv_queue_size},
		{"max_send_tasks", doca_comch_cap_get_max_send_tasks},
		{"max_clients", doca_comch_cap_get_max_clients},
		{"consumer_max_consumers", doca_comch_consumer_cap_get_max_consumers},
		{"consumer_max_num_tasks", doca_comch_consumer_cap_get_max_num_tasks},
		{"consumer_max_buf_size", doca_comch_consumer_cap_get_max_buf_size},
		{"consumer_max_buf_list_len", doca_comch_consumer_cap_get_max_buf_list_len},
		{"consumer_max_imm_data_len", doca_comch_consumer_cap_get_max_imm_data_len},
		{"producer_max_producers", doca_comch_producer_cap_get_max_producers},
		{"producer_max_num_tasks", doca_comch_producer_cap_get_max_num_tasks},
		{"producer_max_buf_size", doca_comch_producer_cap_get_max_buf_size},
		{"producer_max_buf_list_len", doca_comch_producer_cap_get_max_buf_list_len},
	};
	uint32_t answer;

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		put(2, roles[i].name, supported(roles[i].query(info) == DOCA_SUCCESS));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].query(info, &answer) == DOCA_SUCCESS)
			put_u64(2, numbers[i].name, answer);
}

/* The libraries that have capabilities to show. */
static const struct {
	const char *name;
	void (*show)(const struct doca_devinfo *);
} libs[] = {
	{"common", show_common},
	{"rdma", show_rdma},
	{"comch", show_comch},
};

#define NUM_LIBS (sizeof(libs) / sizeof(libs[0]))

static void show_capabilities(const struct request *request, const struct doca_devinfo *info)
{
	for (size_t i = 0; i < NUM_LIBS; i++) {
		if (request->lib != NULL && strcmp(request->lib, libs[i].name) != 0)
			continue;
		printf("\t%s\n", libs[i].name);
		libs[i].show(info);
	}
}

static bool show(const struct request *request, struct doca_devinfo *info)
{
	char pci[DOCA_DEVINFO_PCI_ADDR_SIZE];

	if (failed("doca_devinfo_get_pci_addr_str", doca_devinfo_get_pci_addr_str(info, pci)))
		return false;
	printf("PCI: %s\n", pci);
	if (request->list_rep_devs)
		return show_representors(info);
	if (request->list_devs)
		return show_device(info);
	show_capabilities(request, info);
	return true;
}

static bool show_all(const struct request *request)
{
	struct doca_devinfo **list;
	uint32_t count, shown = 0;
	bool fine = true;

	if (failed("doca_devinfo_create_list", doca_devinfo_create_list(&list, &count)))
		return false;
	for (uint32_t i = 0; i < count && fine; i++) {
		uint8_t wanted = 1;

		if (request->pci != NULL &&
		    failed("doca_devinfo_is_equal_pci_addr", doca_devinfo_is_equal_pci_addr(list[i], request->pci, &wanted)))
			fine = false;
		else if (wanted) {
			fine = show(request, list[i]);
			shown++;
		}
	}
	if (fine && request->pci != NULL && shown == 0) {
		fprintf(stderr, "no DOCA device has the PCI address %s\n", request->pci);
		fine = false;
	}
	return !failed("doca_devinfo_destroy_list", doca_devinfo_destroy_list(list)) && fine;
}

static void usage(FILE *to)
{
	fputs("usage: doca_caps [options]\n"
	      "Without --list-..., shows the capabilities of the devices.\n"
	      "  --list-devs           list the devices\n"
	      "  --list-rep-devs       list the representors that each device offers\n"
	      "  --list-libs           list the libraries whose capabilities can be shown\n"
	      "  -p, --pci-addr ADDR   only the device with this PCI address\n"
	      "  -b, --lib NAME        only this library's capabilities\n"
	      "  -v, --version         print the version of DOCA\n"
	      "  -h, --help            print this\n",
	      to);
}

static bool known_lib(const char *name)
{
	for (size_t i = 0; i < NUM_LIBS; i++)
		if (strcmp(name, libs[i].name) == 0)
			return true;
	fprintf(stderr, "unknown library %s, see --list-libs\n", name);
	return false;
}

int main(int argc, char **argv)
{
	enum { LIST_DEVS = 256, LIST_REP_DEVS, LIST_LIBS };
	static const struct option options[] = {
		{"list-devs", no_argument, NULL, LIST_DEVS},
		{"list-rep-devs", no_argument, NULL, LIST_REP_DEVS},
		{"list-libs", no_argument, NULL, LIST_LIBS},
		{"pci-addr", required_argument, NULL, 'p'},
		{"lib", required_argument, NULL, 'b'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct request request = {0};
	int option;

	while ((option = getopt_long(argc, argv, "p:b:vh", options, NULL)) != -1) {
		switch (option) {
		case LIST_DEVS:
			request.list_devs = true;
			break;
		case LIST_REP_DEVS:
			request.list_rep_devs = true;
			break;
		case LIST_LIBS:
			request.list_libs = true;
			break;
		case 'p':
			request.pci = optarg;
			break;
		case 'b':
			request.lib = optarg;
			break;
		case 'v':
			printf("%s\n", doca_version_runtime());
			return EXIT_SUCCESS;
		case 'h':
			usage(stdout);
			return EXIT_SUCCESS;
		default:
			usage(stderr);
			return EXIT_FAILURE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "unexpected argument %s\n", argv[optind]);
		usage(stderr);
		return EXIT_FAILURE;
	}
	if (request.lib != NULL && !known_lib(request.lib))
		return EXIT_FAILURE;
	if (request.list_libs) {
		for (size_t i = 0; i < NUM_LIBS; i++)
			printf("%s\n", libs[i].name);
		return EXIT_SUCCESS;
	}
	return show_all(&request) ? EXIT_SUCCESS : EXIT_FAILURE;
}
