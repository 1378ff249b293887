/*
 * NULL for each pointer parameter in turn, with all others as they should be: INVALID_VALUE, and nothing happens.
 */
#include <stdint.h>
#include <stdlib.h>

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_buf_pool.h>
#include <doca_mmap.h>
#include <doca_rdma.h>
#include <doca_rdma_bridge.h>
#include <doca_types.h>

#include "check.h"

static char memory[4096], scratch[4096];
static struct doca_buf_inventory *inventory;
static struct doca_devinfo_rep *rep_info;
static struct doca_devinfo *info;
static struct doca_buf_pool *pool;
static struct doca_dev_rep *rep;
static struct doca_mmap *map;
static struct doca_dev *dev;
static struct doca_buf *buf;
static struct ibv_pd *pd;

static void ignore(void *addr, size_t len, void *cookie)
{
	(void)addr;
	(void)len;
	(void)cookie;
}

static void devices(void)
{
	FAILS(INVALID_VALUE, doca_devinfo_create_list(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_create_list((void *)scratch, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_destroy_list(NULL));
	FAILS(INVALID_VALUE, doca_devinfo_rep_create_list(NULL, 0, (void *)scratch, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_rep_create_list(dev, 0, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_rep_create_list(dev, 0, (void *)scratch, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_rep_destroy_list(NULL));
	FAILS(INVALID_VALUE, doca_dev_open(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_dev_open(info, NULL));
	FAILS(INVALID_VALUE, doca_dev_accelerate_resource_reclaim(NULL));
	FAILS(INVALID_VALUE, doca_dev_rep_open(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_dev_rep_open(rep_info, NULL));
	FAILS(INVALID_VALUE, doca_dev_rep_close(NULL));
	CHECK(doca_dev_as_devinfo(NULL) == NULL);
	CHECK(doca_dev_rep_as_devinfo(NULL) == NULL);
	FAILS(INVALID_VALUE, doca_devinfo_get_pci_addr_str(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_get_pci_addr_str(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_is_equal_pci_addr(NULL, "03:00.0", (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_is_equal_pci_addr(info, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_is_equal_pci_addr(info, "03:00.0", NULL));
	FAILS(INVALID_VALUE, doca_devinfo_get_ipv4_addr(NULL, (void *)scratch, 256));
	FAILS(INVALID_VALUE, doca_devinfo_get_ipv4_addr(info, NULL, 256));
	FAILS(INVALID_VALUE, doca_devinfo_get_ipv6_addr(NULL, (void *)scratch, 256));
	FAILS(INVALID_VALUE, doca_devinfo_get_ipv6_addr(info, NULL, 256));
	FAILS(INVALID_VALUE, doca_devinfo_get_mac_addr(NULL, (void *)scratch, 256));
	FAILS(INVALID_VALUE, doca_devinfo_get_mac_addr(info, NULL, 256));
	FAILS(INVALID_VALUE, doca_devinfo_get_iface_name(NULL, (void *)scratch, 256));
	FAILS(INVALID_VALUE, doca_devinfo_get_iface_name(info, NULL, 256));
	FAILS(INVALID_VALUE, doca_devinfo_get_ibdev_name(NULL, (void *)scratch, 256));
	FAILS(INVALID_VALUE, doca_devinfo_get_ibdev_name(info, NULL, 256));
	FAILS(INVALID_VALUE, doca_devinfo_get_lid(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_get_lid(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_get_active_rate(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_get_active_rate(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_get_vhca_id(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_get_vhca_id(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_cap_is_hotplug_manager_supported(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_cap_is_hotplug_manager_supported(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_cap_is_notification_moderation_supported(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_cap_is_notification_moderation_supported(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_rep_cap_is_filter_all_supported(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_rep_cap_is_filter_all_supported(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_rep_cap_is_filter_net_supported(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_rep_cap_is_filter_net_supported(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_rep_cap_is_filter_emulated_supported(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_rep_cap_is_filter_emulated_supported(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_cap_is_accelerate_resource_reclaim_supported(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_cap_is_accelerate_resource_reclaim_supported(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_vuid(NULL, (void *)scratch, 256));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_vuid(rep_info, NULL, 256));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_pci_addr_str(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_pci_addr_str(rep_info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_pci_func_type(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_pci_func_type(rep_info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_is_hotplug(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_is_hotplug(rep_info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_iface_name(NULL, (void *)scratch, 256));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_iface_name(rep_info, NULL, 256));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_vhca_id(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_rep_get_vhca_id(rep_info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_rep_is_equal_pci_addr(NULL, "03:00.0", (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_rep_is_equal_pci_addr(rep_info, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_rep_is_equal_pci_addr(rep_info, "03:00.0", NULL));
#if AFTER_3_0
	FAILS(INVALID_VALUE, doca_devinfo_get_pci_func_type(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_get_pci_func_type(info, NULL));
	FAILS(INVALID_VALUE, doca_devinfo_get_sf_index(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_devinfo_get_sf_index(info, NULL));
#endif
}

static void maps(void)
{
	FAILS(INVALID_VALUE, doca_mmap_create(NULL));
	FAILS(INVALID_VALUE, doca_mmap_destroy(NULL));
	FAILS(INVALID_VALUE, doca_mmap_start(NULL));
	FAILS(INVALID_VALUE, doca_mmap_stop(NULL));
	FAILS(INVALID_VALUE, doca_mmap_add_dev(NULL, dev));
	FAILS(INVALID_VALUE, doca_mmap_add_dev(map, NULL));
	FAILS(INVALID_VALUE, doca_mmap_rm_dev(NULL, dev));
	FAILS(INVALID_VALUE, doca_mmap_rm_dev(map, NULL));
	FAILS(INVALID_VALUE, doca_mmap_export_pci(NULL, dev, (void *)scratch, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_export_pci(map, NULL, (void *)scratch, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_export_pci(map, dev, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_export_pci(map, dev, (void *)scratch, NULL));
	FAILS(INVALID_VALUE, doca_mmap_export_rdma(NULL, dev, (void *)scratch, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_export_rdma(map, NULL, (void *)scratch, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_export_rdma(map, dev, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_export_rdma(map, dev, (void *)scratch, NULL));
	FAILS(INVALID_VALUE, doca_mmap_dev_get_dpa_handle(NULL, dev, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_dev_get_dpa_handle(map, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_dev_get_dpa_handle(map, dev, NULL));
	FAILS(INVALID_VALUE, doca_mmap_create_from_export((void *)scratch, NULL, 8, dev, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_create_from_export((void *)scratch, scratch, 8, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_create_from_export((void *)scratch, scratch, 8, dev, NULL));
	FAILS(INVALID_VALUE, doca_mmap_set_memrange(NULL, memory, 8));
	FAILS(INVALID_VALUE, doca_mmap_set_memrange(map, NULL, 8));
	FAILS(INVALID_VALUE, doca_mmap_set_dmabuf_memrange(NULL, 0, memory, 8, 8));
	FAILS(INVALID_VALUE, doca_mmap_set_dmabuf_memrange(map, 0, NULL, 8, 8));
	FAILS(INVALID_VALUE, doca_mmap_set_dpa_memrange(NULL, (struct doca_dpa *)scratch, 8, 8));
	FAILS(INVALID_VALUE, doca_mmap_set_dpa_memrange(map, NULL, 8, 8));
	FAILS(INVALID_VALUE, doca_mmap_get_memrange(NULL, (void *)scratch, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_get_memrange(map, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_get_memrange(map, (void *)scratch, NULL));
	FAILS(INVALID_VALUE, doca_mmap_set_free_cb(NULL, ignore, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_set_free_cb(map, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_get_user_data(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_get_user_data(map, NULL));
	FAILS(INVALID_VALUE, doca_mmap_get_max_num_devices(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_get_max_num_devices(map, NULL));
	FAILS(INVALID_VALUE, doca_mmap_get_num_bufs(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_get_num_bufs(map, NULL));
	FAILS(INVALID_VALUE, doca_mmap_get_exported(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_get_exported(map, NULL));
	FAILS(INVALID_VALUE, doca_mmap_get_from_export(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_get_from_export(map, NULL));
	FAILS(INVALID_VALUE, doca_mmap_set_max_num_devices(NULL, 256));
	FAILS(INVALID_VALUE, doca_mmap_set_permissions(NULL, 256));
	FAILS(INVALID_VALUE, doca_mmap_set_user_data(NULL, (union doca_data){0}));
	FAILS(INVALID_VALUE, doca_mmap_cap_is_export_pci_supported(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_cap_is_export_pci_supported(info, NULL));
	FAILS(INVALID_VALUE, doca_mmap_cap_is_create_from_export_pci_supported(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_cap_is_create_from_export_pci_supported(info, NULL));
	FAILS(INVALID_VALUE, doca_mmap_enable_thread_safety(NULL));
#if AFTER_3_0
	FAILS(INVALID_VALUE, doca_mmap_get_mkey(NULL, dev, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_get_mkey(map, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_mmap_get_mkey(map, dev, NULL));
#endif
}

static void buffers(void)
{
	FAILS(INVALID_VALUE, doca_buf_inc_refcount(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_dec_refcount(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_get_refcount(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_get_refcount(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_get_len(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_get_len(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_get_head(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_get_head(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_get_data_len(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_get_data_len(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_get_data(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_get_data(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_set_data(NULL, memory, 8));
	FAILS(INVALID_VALUE, doca_buf_set_data(buf, NULL, 8));
	FAILS(INVALID_VALUE, doca_buf_set_data_len(NULL, 8));
	FAILS(INVALID_VALUE, doca_buf_reset_data_len(NULL));
	FAILS(INVALID_VALUE, doca_buf_get_next_in_list(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_get_next_in_list(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_get_last_in_list(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_get_last_in_list(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_is_last_in_list(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_is_last_in_list(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_is_first_in_list(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_is_first_in_list(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_is_in_list(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_is_in_list(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_get_list_len(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_get_list_len(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_chain_list(NULL, buf));
	FAILS(INVALID_VALUE, doca_buf_chain_list(buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_chain_list_tail(NULL, buf, buf));
	FAILS(INVALID_VALUE, doca_buf_chain_list_tail(buf, NULL, buf));
	FAILS(INVALID_VALUE, doca_buf_chain_list_tail(buf, buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_unchain_list(NULL, buf));
	FAILS(INVALID_VALUE, doca_buf_unchain_list(buf, NULL));
}

static void inventories(void)
{
	FAILS(INVALID_VALUE, doca_buf_inventory_create(8, NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_destroy(NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_start(NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_stop(NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_args(NULL, map, memory, 8, memory, 8, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_args(inventory, NULL, memory, 8, memory, 8, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_args(inventory, map, NULL, 8, memory, 8, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_args(inventory, map, memory, 8, NULL, 8, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_args(inventory, map, memory, 8, memory, 8, NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_addr(NULL, map, memory, 8, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_addr(inventory, NULL, memory, 8, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_addr(inventory, map, NULL, 8, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_addr(inventory, map, memory, 8, NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_data(NULL, map, memory, 8, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_data(inventory, NULL, memory, 8, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_data(inventory, map, NULL, 8, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_get_by_data(inventory, map, memory, 8, NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_dup(NULL, buf, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_dup(inventory, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_dup(inventory, buf, NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_set_user_data(NULL, (union doca_data){0}));
	FAILS(INVALID_VALUE, doca_buf_inventory_get_num_elements(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_get_num_elements(inventory, NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_get_num_free_elements(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_get_num_free_elements(inventory, NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_get_user_data(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_inventory_get_user_data(inventory, NULL));
	FAILS(INVALID_VALUE, doca_buf_inventory_expand(NULL, 256));
#if AFTER_3_0
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_reuse_by_data(NULL, memory, 8));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_reuse_by_data(buf, NULL, 8));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_reuse_by_addr(NULL, memory, 8));
	FAILS(INVALID_VALUE, doca_buf_inventory_buf_reuse_by_addr(buf, NULL, 8));
#endif
}

static void pools(void)
{
	FAILS(INVALID_VALUE, doca_buf_pool_create(8, 8, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_pool_create(8, 8, map, NULL));
	FAILS(INVALID_VALUE, doca_buf_pool_destroy(NULL));
	FAILS(INVALID_VALUE, doca_buf_pool_start(NULL));
	FAILS(INVALID_VALUE, doca_buf_pool_stop(NULL));
	FAILS(INVALID_VALUE, doca_buf_pool_buf_alloc(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_pool_buf_alloc(pool, NULL));
	FAILS(INVALID_VALUE, doca_buf_pool_set_user_data(NULL, (union doca_data){0}));
	FAILS(INVALID_VALUE, doca_buf_pool_set_element_alignment(NULL, 8));
	FAILS(INVALID_VALUE, doca_buf_pool_get_num_elements(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_pool_get_num_elements(pool, NULL));
	FAILS(INVALID_VALUE, doca_buf_pool_get_num_free_elements(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_pool_get_num_free_elements(pool, NULL));
	FAILS(INVALID_VALUE, doca_buf_pool_get_user_data(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_pool_get_user_data(pool, NULL));
	FAILS(INVALID_VALUE, doca_buf_pool_get_element_alignment(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_buf_pool_get_element_alignment(pool, NULL));
}

static void bridge(void)
{
	FAILS(INVALID_VALUE, doca_rdma_bridge_get_dev_pd(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_bridge_get_dev_pd(dev, NULL));
	FAILS(INVALID_VALUE, doca_rdma_bridge_open_dev_from_pd(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_bridge_open_dev_from_pd(pd, NULL));
	FAILS(INVALID_VALUE, doca_rdma_bridge_get_buf_mkey(NULL, dev, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_bridge_get_buf_mkey(buf, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_bridge_get_buf_mkey(buf, dev, NULL));
	FAILS(INVALID_VALUE, doca_rdma_bridge_get_mmap_mkey_from_pd(NULL, pd, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_bridge_get_mmap_mkey_from_pd(map, NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_bridge_get_mmap_mkey_from_pd(map, pd, NULL));
}

static void capabilities(void)
{
	FAILS(INVALID_VALUE, doca_rdma_cap_get_max_recv_queue_size(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_max_recv_queue_size(info, NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_max_send_queue_size(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_max_send_queue_size(info, NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_max_send_buf_list_len(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_max_send_buf_list_len(info, NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_max_message_size(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_max_message_size(info, NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_gid_table_size(NULL, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_gid_table_size(info, NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_gid(NULL, 0, 1, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_cap_get_gid(info, 0, 1, NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_transport_type_is_supported(NULL, DOCA_RDMA_TRANSPORT_TYPE_RC));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_receive_is_supported(NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_receive_get_max_dst_buf_list_len(NULL, DOCA_RDMA_TRANSPORT_TYPE_RC, (void *)scratch));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_receive_get_max_dst_buf_list_len(info, DOCA_RDMA_TRANSPORT_TYPE_RC, NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_send_is_supported(NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_send_imm_is_supported(NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_read_is_supported(NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_write_is_supported(NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_write_imm_is_supported(NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_atomic_cmp_swp_is_supported(NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_atomic_fetch_add_is_supported(NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_remote_net_sync_event_get_is_supported(NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_remote_net_sync_event_notify_set_is_supported(NULL));
	FAILS(INVALID_VALUE, doca_rdma_cap_task_remote_net_sync_event_notify_add_is_supported(NULL));
}

int main(void)
{
	struct doca_devinfo_rep **reps;
	uint32_t count, number = 0;

	/* Only the DPU side has representors. */
	setenv("DOCA_SIM_SIDE", "dpu", 1);
	dev = open_device("mlx5_0");
	CHECK(dev != NULL);
	info = doca_dev_as_devinfo(dev);
	OK(doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_ALL, &reps, &count));
	OK(doca_dev_rep_open(reps[0], &rep));
	OK(doca_devinfo_rep_destroy_list(reps));
	rep_info = doca_dev_rep_as_devinfo(rep);
	OK(doca_rdma_bridge_get_dev_pd(dev, &pd));
	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_PCI_READ_ONLY));
	OK(doca_mmap_set_memrange(map, memory, sizeof(memory)));
	OK(doca_mmap_start(map));
	OK(doca_buf_inventory_create(1, &inventory));
	OK(doca_buf_inventory_start(inventory));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, map, memory, sizeof(memory), &buf));
	OK(doca_buf_pool_create(1, 8, map, &pool));
	OK(doca_buf_pool_start(pool));

	devices();
	maps();
	buffers();
	inventories();
	pools();
	bridge();
	capabilities();

	OK(doca_mmap_get_num_bufs(map, &number));
	CHECK(number == 1);
	OK(doca_buf_pool_destroy(pool));
	OK(doca_buf_dec_refcount(buf, NULL));
	OK(doca_buf_inventory_destroy(inventory));
	OK(doca_mmap_destroy(map));
	OK(doca_dev_rep_close(rep));
	OK(doca_dev_close(dev));
	return check_summary();
}
