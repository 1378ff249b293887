use super::*;
use crate::abi::buf::*;
use crate::abi::buf_inventory::*;
use crate::abi::mmap::*;
use crate::testing::{Devices, fails, ok};

#[test]
fn protection_domains_tell_devices_apart() {
    let devices = Devices::open();
    let (mut one, mut again, mut other, mut dev) = (ptr::null(), ptr::null(), ptr::null(), ptr::null());
    ok! {
        doca_rdma_bridge_get_dev_pd(devices.first, &mut one);
        doca_rdma_bridge_get_dev_pd(devices.first, &mut again);
        doca_rdma_bridge_get_dev_pd(devices.second, &mut other);
    }
    assert!(!one.is_null() && one == again && one != other);
    let foreign = ptr::without_provenance::<Device>(4096);
    fails! {
        INVALID_VALUE doca_rdma_bridge_get_dev_pd(ptr::null::<Dev>(), &mut one);
        INVALID_VALUE doca_rdma_bridge_get_dev_pd(devices.first, ptr::null_mut());
        INVALID_VALUE doca_rdma_bridge_open_dev_from_pd(one, &mut dev);
        INVALID_VALUE doca_rdma_bridge_open_dev_from_pd(ptr::null(), &mut dev);
        NOT_SUPPORTED doca_rdma_bridge_open_dev_from_pd(foreign, &mut dev);
    }
    devices.close();
}

#[test]
fn keys_belong_to_a_map_and_a_device() {
    let devices = Devices::open();
    let memory = [0u8; 64];
    let base = memory.as_ptr() as usize;
    let (mut mmap, mut inventory, mut buf) = (ptr::null(), ptr::null(), ptr::null());
    let (mut pd, mut other_pd, mut of_buf, mut of_map, mut of_dev) = (ptr::null(), ptr::null(), 0, 1, 2);
    ok! {
        doca_rdma_bridge_get_dev_pd(devices.first, &mut pd);
        doca_rdma_bridge_get_dev_pd(devices.second, &mut other_pd);
        doca_mmap_create(&mut mmap);
        doca_mmap_add_dev(mmap, devices.first);
        doca_mmap_set_memrange(mmap, base, memory.len());
        doca_mmap_start(mmap);
        doca_buf_inventory_create(1usize, &mut inventory);
        doca_buf_inventory_start(inventory);
        doca_buf_inventory_buf_get_by_args(inventory, mmap, base, 8usize, base, 8usize, &mut buf);
        doca_rdma_bridge_get_buf_mkey(buf, devices.first, &mut of_buf);
        doca_rdma_bridge_get_mmap_mkey_from_pd(mmap, pd, &mut of_map);
        doca_mmap_get_mkey(mmap, devices.first, &mut of_dev);
    }
    assert!(of_buf != 0 && of_buf == of_map && of_buf == of_dev);
    fails! {
        INVALID_VALUE doca_rdma_bridge_get_buf_mkey(buf, devices.second, &mut of_buf);
        INVALID_VALUE doca_rdma_bridge_get_buf_mkey(ptr::null::<Buf>(), devices.first, &mut of_buf);
        INVALID_VALUE doca_rdma_bridge_get_buf_mkey(buf, devices.first, ptr::null_mut());
        NOT_FOUND doca_rdma_bridge_get_mmap_mkey_from_pd(mmap, other_pd, &mut of_map);
        NOT_FOUND doca_rdma_bridge_get_mmap_mkey_from_pd(mmap, ptr::without_provenance::<Device>(64), &mut of_map);
        INVALID_VALUE doca_rdma_bridge_get_mmap_mkey_from_pd(mmap, ptr::null(), &mut of_map);
    }
    ok! {
        doca_buf_dec_refcount(buf, ptr::null_mut());
        doca_buf_inventory_destroy(inventory);
        doca_mmap_destroy(mmap);
    }
    devices.close();
}
