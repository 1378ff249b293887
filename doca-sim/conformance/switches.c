/*
 * What the topology switches off is refused everywhere: by the capability and by each call that would need it. This
 * program writes a topology, and runs itself again in it.
 */
#include <doca_sync_event.h>

#include "side.h"

static const char topology[] =
	"{ \"name\": \"switched off\", \"host\": {"
	"  \"none\": { \"pci\": \"0000:01:00.0\", \"iface\": \"a\", \"mac\": \"02:00:00:00:00:01\","
	"              \"rdma\": { \"supported\": false }, \"sta\": { \"supported\": false },"
	"              \"accelerate_resource_reclaim\": false, \"notification_moderation\": false },"
	"  \"dc\": { \"pci\": \"0000:01:00.1\", \"iface\": \"b\", \"mac\": \"02:00:00:00:00:02\", \"max_mtu\": 512,"
	"            \"rdma\": { \"transports\": { \"rc\": false }, \"max_recv_buf_list_len\": { \"dc\": 2 },"
	"                        \"max_message_size\": 16, \"max_send_queue_size\": 64,"
	"                        \"tasks\": { \"send_imm\": false, \"read\": false, \"write\": false, \"write_imm\": false,"
	"                                     \"atomic_cmp_swp\": false, \"atomic_fetch_add\": false,"
	"                                     \"remote_net_sync_event_get\": false,"
	"                                     \"remote_net_sync_event_notify_set\": false,"
	"                                     \"remote_net_sync_event_notify_add\": false } } },"
	"  \"rc\": { \"pci\": \"0000:01:00.2\", \"iface\": \"c\", \"mac\": \"02:00:00:00:00:03\","
	"            \"rdma\": { \"transports\": { \"dc\": false } } } } }";

#define RIGHTS (DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_PCI_READ_WRITE)

static const void *memory_blob;
static size_t memory_len;
static const uint8_t *event_blob;
static size_t event_len;

/* An event that another device could reach over the network, with a subscriber on this one. */
static struct doca_sync_event *event_on(struct doca_dev *dev)
{
	struct doca_sync_event *event = NULL;

	OK(doca_sync_event_create(&event));
	OK(doca_sync_event_add_publisher_location_remote_net(event));
	OK(doca_sync_event_add_subscriber_location_cpu(event, dev));
	OK(doca_sync_event_start(event));
	return event;
}

static struct doca_mmap *map_on(struct doca_dev *dev, void *memory)
{
	struct doca_mmap *map = NULL;

	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map, RIGHTS));
	OK(doca_mmap_set_memrange(map, memory, 4096));
	OK(doca_mmap_start(map));
	return map;
}

/* A device without RDMA. */
static void no_rdma(void)
{
	struct doca_sync_event_remote_net *remote = NULL;
	struct doca_dev *dev = open_device("none");
	struct doca_devinfo *info = doca_dev_as_devinfo(dev);
	struct doca_sync_event *event;
	struct doca_mmap *map, *imported = NULL;
	struct doca_rdma *rdma = NULL;
	const void *blob = NULL;
	const uint8_t *bytes = NULL;
	void *memory = calloc(1, 4096);
	uint8_t yes = 9;
	uint32_t number = 0;
	size_t len = 0;

	FAILS(NOT_SUPPORTED, doca_rdma_cap_task_send_is_supported(info));
	FAILS(NOT_SUPPORTED, doca_rdma_cap_transport_type_is_supported(info, DOCA_RDMA_TRANSPORT_TYPE_RC));
	FAILS(DRIVER, doca_rdma_cap_get_max_message_size(info, &number));
	FAILS(INITIALIZATION, doca_rdma_create(dev, &rdma));
	CHECK(rdma == NULL);
	map = map_on(dev, memory);
	FAILS(NOT_SUPPORTED, doca_mmap_export_rdma(map, dev, &blob, &len));
	FAILS(NOT_SUPPORTED, doca_mmap_export_pci(map, dev, &blob, &len));
	FAILS(NOT_SUPPORTED, doca_mmap_create_from_export(NULL, memory_blob, memory_len, dev, &imported));
	FAILS(NOT_SUPPORTED, doca_sync_event_cap_is_export_to_remote_net_supported(info));
	FAILS(NOT_SUPPORTED, doca_sync_event_cap_remote_net_is_create_from_export_supported(info));
	event = event_on(dev);
	FAILS(NOT_SUPPORTED, doca_sync_event_export_to_remote_net(event, &bytes, &len));
	FAILS(NOT_SUPPORTED, doca_sync_event_export_to_remote_pci(event, dev, &bytes, &len));
	FAILS(NOT_SUPPORTED, doca_sync_event_remote_net_create_from_export(dev, event_blob, event_len, &remote));
	CHECK(blob == NULL && bytes == NULL && imported == NULL && remote == NULL);
	FAILS(NOT_SUPPORTED, doca_dev_accelerate_resource_reclaim(dev));
	OK(doca_devinfo_cap_is_accelerate_resource_reclaim_supported(info, &yes));
	CHECK(yes == 0);
	OK(doca_devinfo_cap_is_notification_moderation_supported(info, &yes));
	CHECK(yes == 0);
	OK(doca_sync_event_stop(event));
	OK(doca_sync_event_destroy(event));
	OK(doca_mmap_destroy(map));
	OK(doca_dev_close(dev));
	free(memory);
}

/* The default transport is the one that is missing. */
static void no_rc(void)
{
	struct side side;
	uint32_t number = 0;
	enum doca_mtu_size mtu;
	struct doca_rdma_task_send *task = NULL;
	struct doca_rdma_connection *connection = NULL;
	struct doca_buf *buf;
	const void *blob = NULL;
	size_t len = 0;

	side_create(&side, "dc", RIGHTS, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	FAILS(NOT_SUPPORTED, doca_rdma_task_send_imm_set_conf(side.rdma, side_send_imm_done, side_send_imm_failed, 1));
	FAILS(NOT_SUPPORTED, doca_rdma_task_read_set_conf(side.rdma, side_read_done, side_read_failed, 1));
	FAILS(NOT_SUPPORTED, doca_rdma_task_write_set_conf(side.rdma, side_write_done, side_write_failed, 1));
	FAILS(NOT_SUPPORTED, doca_rdma_task_write_imm_set_conf(side.rdma, side_write_imm_done, side_write_imm_failed, 1));
	FAILS(NOT_SUPPORTED, doca_rdma_task_atomic_cmp_swp_set_conf(side.rdma, side_atomic_cmp_swp_done,
		side_atomic_cmp_swp_failed, 1));
	FAILS(NOT_SUPPORTED, doca_rdma_task_atomic_fetch_add_set_conf(side.rdma, side_atomic_fetch_add_done,
		side_atomic_fetch_add_failed, 1));
	FAILS(NOT_SUPPORTED, doca_rdma_task_remote_net_sync_event_get_set_conf(side.rdma,
		side_remote_net_sync_event_get_done, side_remote_net_sync_event_get_failed, 1));
	FAILS(NOT_SUPPORTED, doca_rdma_task_remote_net_sync_event_notify_set_set_conf(side.rdma,
		side_remote_net_sync_event_notify_set_done, side_remote_net_sync_event_notify_set_failed, 1));
	FAILS(NOT_SUPPORTED, doca_rdma_task_remote_net_sync_event_notify_add_set_conf(side.rdma,
		side_remote_net_sync_event_notify_add_done, side_remote_net_sync_event_notify_add_failed, 1));
	FAILS(NOT_SUPPORTED, doca_rdma_set_transport_type(side.rdma, DOCA_RDMA_TRANSPORT_TYPE_RC));
	FAILS(DRIVER, doca_rdma_cap_task_receive_get_max_dst_buf_list_len(doca_dev_as_devinfo(side.dev),
		DOCA_RDMA_TRANSPORT_TYPE_RC, &number));
	FAILS(NOT_SUPPORTED, doca_ctx_start(side.ctx));
	CHECK(side_is(&side, DOCA_CTX_STATE_IDLE));
	OK(doca_rdma_get_mtu(side.rdma, &mtu));
	CHECK(mtu == DOCA_MTU_SIZE_512_BYTES);
	FAILS(NOT_SUPPORTED, doca_rdma_set_mtu(side.rdma, DOCA_MTU_SIZE_1K_BYTES));
	OK(doca_rdma_get_send_queue_size(side.rdma, &number));
	CHECK(number == 64);
	FAILS(NOT_SUPPORTED, doca_rdma_set_send_queue_size(side.rdma, 65));
	OK(doca_rdma_set_transport_type(side.rdma, DOCA_RDMA_TRANSPORT_TYPE_DC));
	OK(doca_rdma_task_receive_get_dst_buf_list_len(side.rdma, &number));
	CHECK(number == 2);
	FAILS(INVALID_VALUE, doca_rdma_task_receive_set_dst_buf_list_len(side.rdma, 3));
	OK(doca_ctx_start(side.ctx));
	/* RDMA CM is for the transport that this device lacks. */
	FAILS(NOT_SUPPORTED, doca_rdma_start_listen_to_port(side.rdma, 13555));
	/* To itself, which is far enough. */
	OK(doca_rdma_export(side.rdma, &blob, &len, &connection));
	OK(doca_rdma_connect(side.rdma, blob, len, connection));
	buf = side_data(&side, 0, 17);
	OK(doca_rdma_task_send_allocate_init(side.rdma, connection, buf, (union doca_data){.u64 = 0}, &task));
	FAILS(INVALID_VALUE, doca_task_submit(doca_rdma_task_send_as_task(task)));
	doca_task_free(doca_rdma_task_send_as_task(task));
	put(buf);
	side_close(&side);
}

static void no_dc(void)
{
	struct doca_dev *dev = open_device("rc");
	struct doca_devinfo *info = doca_dev_as_devinfo(dev);
	struct doca_rdma *rdma = NULL;
	uint32_t number = 0;

	FAILS(NOT_SUPPORTED, doca_rdma_cap_transport_type_is_supported(info, DOCA_RDMA_TRANSPORT_TYPE_DC));
	FAILS(DRIVER, doca_rdma_cap_task_receive_get_max_dst_buf_list_len(info, DOCA_RDMA_TRANSPORT_TYPE_DC, &number));
	OK(doca_rdma_create(dev, &rdma));
	FAILS(NOT_SUPPORTED, doca_rdma_set_transport_type(rdma, DOCA_RDMA_TRANSPORT_TYPE_DC));
	OK(doca_rdma_destroy(rdma));
	OK(doca_dev_close(dev));
}

static void in_the_topology(void)
{
	struct doca_dev *dev = open_device("rc");
	struct doca_sync_event *event = event_on(dev);
	void *memory = calloc(1, 4096);
	struct doca_mmap *map = map_on(dev, memory);

	/* Good descriptors, so that nothing but the device can be the reason. */
	OK(doca_mmap_export_rdma(map, dev, &memory_blob, &memory_len));
	OK(doca_sync_event_export_to_remote_net(event, &event_blob, &event_len));
	no_rdma();
	no_rc();
	no_dc();
	OK(doca_sync_event_stop(event));
	OK(doca_sync_event_destroy(event));
	OK(doca_mmap_destroy(map));
	OK(doca_dev_close(dev));
	free(memory);
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/doca-switches-XXXXXX";
	struct peer peer;
	int fd;

	if (argc > 1) {
		in_the_topology();
		return check_summary();
	}
	(void)argv;
	fd = mkstemp(path);
	if (fd < 0 || write(fd, topology, sizeof(topology) - 1) != sizeof(topology) - 1)
		give_up("the topology cannot be written");
	close(fd);
	setenv("DOCA_SIM_TOPOLOGY", path, 1);
	peer = peer_start("in the topology");
	peer_finish(&peer);
	unlink(path);
	return check_summary();
}
