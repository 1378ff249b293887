use super::*;
use crate::abi::buf::*;
use crate::abi::buf_inventory::*;
use crate::abi::dev::*;
use crate::buf::Buf;
use crate::inventory::Inventory;
use crate::testing::{Devices, List, fails, ok};
use crate::topology::{self, Side};
use std::cell::Cell;
use std::ptr;

const NO_MAP: *const Mmap = ptr::null();
const NO_DEV: *const Dev = ptr::null();

/// Memory for a map.
fn memory() -> Vec<u8> {
    vec![0; 4096]
}

fn created() -> *const Mmap {
    let mut mmap = NO_MAP;
    ok!(doca_mmap_create(&mut mmap););
    mmap
}

/// A started map of `memory` for a device.
fn started(dev: *const Dev, memory: &[u8], access: u32) -> *const Mmap {
    let mmap = created();
    ok! {
        doca_mmap_add_dev(mmap, dev);
        doca_mmap_set_permissions(mmap, access);
        doca_mmap_set_memrange(mmap, memory.as_ptr() as usize, memory.len());
        doca_mmap_start(mmap);
    }
    mmap
}

/// A buffer over the first 8 bytes of a map.
fn buffer(mmap: *const Mmap) -> (*const Inventory, *const Buf) {
    let (mut inventory, mut buf) = (ptr::null(), ptr::null());
    let (mut addr, mut len) = (0, 0);
    ok! {
        doca_mmap_get_memrange(mmap, &mut addr, &mut len);
        doca_buf_inventory_create(1usize, &mut inventory);
        doca_buf_inventory_start(inventory);
        doca_buf_inventory_buf_get_by_args(inventory, mmap, addr, 8usize, addr, 0usize, &mut buf);
    }
    (inventory, buf)
}

fn give_back((inventory, buf): (*const Inventory, *const Buf)) {
    ok! {
        doca_buf_dec_refcount(buf, ptr::null_mut());
        doca_buf_inventory_destroy(inventory);
    }
}

fn export(
    entry: unsafe extern "C" fn(In<Mmap>, In<Dev>, Out<*const u8>, Out<usize>) -> Code,
    mmap: *const Mmap,
    dev: *const Dev,
) -> Vec<u8> {
    let (mut bytes, mut len) = (ptr::null(), 0);
    ok!(entry(mmap, dev, &mut bytes, &mut len););
    // SAFETY: as many bytes as the entry said.
    unsafe { std::slice::from_raw_parts(bytes, len) }.to_vec()
}

#[test]
fn the_range_is_set_once() {
    let (memory, mmap) = (memory(), created());
    let (addr, len) = (memory.as_ptr() as usize, memory.len());
    fails! {
        BAD_STATE doca_mmap_get_memrange(mmap, &mut 0, &mut 0);
        INVALID_VALUE doca_mmap_start(mmap);
        INVALID_VALUE doca_mmap_set_memrange(mmap, 0usize, len);
        INVALID_VALUE doca_mmap_set_memrange(mmap, addr, 0usize);
        INVALID_VALUE doca_mmap_set_memrange(mmap, addr, usize::MAX);
        INVALID_VALUE doca_mmap_set_memrange(NO_MAP, addr, len);
        INVALID_VALUE doca_mmap_set_dmabuf_memrange(mmap, -1i32, addr, 0usize, len);
        INVALID_VALUE doca_mmap_set_dpa_memrange(mmap, ptr::null::<c_void>(), 1u64, len);
        NOT_SUPPORTED doca_mmap_set_dpa_memrange(mmap, ptr::from_ref(&memory).cast::<c_void>(), 1u64, len);
    }
    ok!(doca_mmap_set_memrange(mmap, addr, len););
    fails! {
        NOT_PERMITTED doca_mmap_set_memrange(mmap, addr, len);
        NOT_PERMITTED doca_mmap_set_dmabuf_memrange(mmap, 1i32, addr, 0usize, len);
    }
    ok!(doca_mmap_start(mmap););
    fails!(BAD_STATE doca_mmap_set_memrange(mmap, addr, len););
    ok!(doca_mmap_stop(mmap););
    fails!(NOT_PERMITTED doca_mmap_set_memrange(mmap, addr, len););
    let mut range = (0, 0);
    ok!(doca_mmap_get_memrange(mmap, &mut range.0, &mut range.1););
    assert_eq!(range, (addr, len));
    ok!(doca_mmap_destroy(mmap););
}

#[test]
fn configuration_is_frozen_while_started() {
    extern "C" fn ignore(_: *mut c_void, _: usize, _: *mut c_void) {}
    let devices = Devices::open();
    let (memory, mut max) = (memory(), 0);
    let mmap = started(devices.first, &memory, 1);
    fails! {
        BAD_STATE doca_mmap_set_permissions(mmap, 1u32);
        BAD_STATE doca_mmap_set_user_data(mmap, 1u64);
        BAD_STATE doca_mmap_set_free_cb(mmap, Some(ignore as FreeCallback), ptr::null_mut());
        BAD_STATE doca_mmap_start(mmap);
        NOT_PERMITTED doca_mmap_add_dev(mmap, devices.second);
        NOT_PERMITTED doca_mmap_rm_dev(mmap, devices.first);
        NOT_PERMITTED doca_mmap_set_max_num_devices(mmap, 2u32);
        NOT_PERMITTED doca_mmap_enable_thread_safety(mmap);
    }
    ok!(doca_mmap_stop(mmap););
    fails! {
        BAD_STATE doca_mmap_stop(mmap);
        NOT_PERMITTED doca_mmap_set_max_num_devices(mmap, 2u32);
        INVALID_VALUE doca_mmap_set_free_cb(mmap, None::<FreeCallback>, ptr::null_mut());
    }
    ok! {
        doca_mmap_set_permissions(mmap, 3u32);
        doca_mmap_rm_dev(mmap, devices.first);
        doca_mmap_add_dev(mmap, devices.second);
    }
    fails!(NOT_FOUND doca_mmap_rm_dev(mmap, devices.first););
    ok! {
        doca_mmap_start(mmap);
        doca_mmap_get_max_num_devices(mmap, &mut max);
        doca_mmap_destroy(mmap);
    }
    assert_eq!(max, 1);
    devices.close();
}

#[test]
fn devices_are_counted_and_held() {
    let devices = Devices::open();
    let mmap = created();
    fails! {
        INVALID_VALUE doca_mmap_add_dev(mmap, NO_DEV);
        INVALID_VALUE doca_mmap_set_max_num_devices(mmap, 0u32);
        NOT_FOUND doca_mmap_rm_dev(mmap, devices.first);
    }
    ok!(doca_mmap_add_dev(mmap, devices.first););
    fails! {
        ALREADY_EXIST doca_mmap_add_dev(mmap, devices.first);
        NO_MEMORY doca_mmap_add_dev(mmap, devices.second);
        IN_USE doca_dev_close(devices.first);
    }
    ok! {
        doca_mmap_set_max_num_devices(mmap, 2u32);
        doca_mmap_add_dev(mmap, devices.second);
    }
    fails!(INVALID_VALUE doca_mmap_set_max_num_devices(mmap, 1u32););
    ok!(doca_mmap_destroy(mmap););
    devices.close();
}

#[test]
fn permissions_are_known_flags_and_one_pci_right() {
    let mmap = created();
    for mask in [0u32, 1, 1 | 2 | 4 | 8, 16, 32 | 64, 1 | 16] {
        ok!(doca_mmap_set_permissions(mmap, mask););
    }
    for mask in [128u32, 16 | 32, 1 << 31] {
        fails!(INVALID_VALUE doca_mmap_set_permissions(mmap, mask););
    }
    ok!(doca_mmap_destroy(mmap););
}

#[test]
fn user_data_is_kept() {
    let (mmap, mut data) = (created(), 9);
    ok!(doca_mmap_get_user_data(mmap, &mut data););
    assert_eq!(data, 0);
    ok! {
        doca_mmap_set_user_data(mmap, 77u64);
        doca_mmap_get_user_data(mmap, &mut data);
        doca_mmap_destroy(mmap);
    }
    assert_eq!(data, 77);
    fails! {
        INVALID_VALUE doca_mmap_create(ptr::null_mut());
        INVALID_VALUE doca_mmap_destroy(NO_MAP);
        INVALID_VALUE doca_mmap_get_user_data(NO_MAP, &mut data);
    }
}

#[test]
fn the_free_callback_runs_at_destroy_if_it_was_started_with() {
    thread_local!(static FREED: Cell<(usize, usize, usize)> = const { Cell::new((0, 0, 0)) });
    extern "C" fn freed(addr: *mut c_void, len: usize, cookie: *mut c_void) {
        FREED.set((addr as usize, len, cookie as usize));
    }
    let memory = memory();
    let range = (memory.as_ptr() as usize, memory.len());
    let cookie = ptr::without_provenance_mut::<c_void>(5);
    let never_started = created();
    ok! {
        doca_mmap_set_free_cb(never_started, Some(freed as FreeCallback), cookie);
        doca_mmap_set_memrange(never_started, range.0, range.1);
        doca_mmap_destroy(never_started);
    }
    assert_eq!(FREED.get(), (0, 0, 0));
    let mmap = created();
    ok! {
        doca_mmap_set_free_cb(mmap, Some(freed as FreeCallback), cookie);
        doca_mmap_set_memrange(mmap, range.0, range.1);
        doca_mmap_start(mmap);
        doca_mmap_stop(mmap);
    }
    assert_eq!(FREED.get(), (0, 0, 0));
    ok!(doca_mmap_destroy(mmap););
    assert_eq!(FREED.get(), (range.0, range.1, 5));
}

#[test]
fn buffers_keep_the_map() {
    let devices = Devices::open();
    let memory = memory();
    let mmap = started(devices.first, &memory, 1);
    let held = buffer(mmap);
    let mut count = 0;
    ok!(doca_mmap_get_num_bufs(mmap, &mut count););
    assert_eq!(count, 1);
    fails! {
        NOT_PERMITTED doca_mmap_stop(mmap);
        NOT_PERMITTED doca_mmap_destroy(mmap);
    }
    give_back(held);
    ok! {
        doca_mmap_get_num_bufs(mmap, &mut count);
        doca_mmap_stop(mmap);
        doca_mmap_destroy(mmap);
    }
    assert_eq!(count, 0);
    devices.close();
}

#[test]
fn with_thread_safety_nobody_looks_at_buffers() {
    let devices = Devices::open();
    let (memory, mmap) = (memory(), created());
    ok! {
        doca_mmap_enable_thread_safety(mmap);
        doca_mmap_add_dev(mmap, devices.first);
        doca_mmap_set_memrange(mmap, memory.as_ptr() as usize, memory.len());
        doca_mmap_start(mmap);
    }
    let held = buffer(mmap);
    ok! {
        doca_mmap_stop(mmap);
        doca_mmap_destroy(mmap);
    }
    devices.close();
    give_back(held);
}

#[test]
fn exports_need_a_started_map_rights_and_the_device() {
    let devices = Devices::open();
    let (memory, idle) = (memory(), created());
    let (mut bytes, mut len) = (ptr::null(), 0);
    let local = started(devices.first, &memory, 1);
    let remote = started(devices.first, &memory, 1 | 4 | 16);
    fails! {
        NOT_PERMITTED doca_mmap_export_rdma(idle, devices.first, &mut bytes, &mut len);
        NOT_PERMITTED doca_mmap_export_rdma(local, devices.first, &mut bytes, &mut len);
        NOT_PERMITTED doca_mmap_export_pci(local, devices.first, &mut bytes, &mut len);
        NOT_FOUND doca_mmap_export_rdma(remote, devices.second, &mut bytes, &mut len);
        INVALID_VALUE doca_mmap_export_rdma(remote, NO_DEV, &mut bytes, &mut len);
        INVALID_VALUE doca_mmap_export_rdma(remote, devices.first, ptr::null_mut(), &mut len);
        INVALID_VALUE doca_mmap_export_rdma(remote, devices.first, &mut bytes, ptr::null_mut());
        NOT_PERMITTED doca_mmap_dev_get_dpa_handle(idle, devices.first, &mut 0);
        NOT_FOUND doca_mmap_dev_get_dpa_handle(remote, devices.second, &mut 0);
        NOT_SUPPORTED doca_mmap_dev_get_dpa_handle(remote, devices.first, &mut 0);
    }
    let mut exported = 9;
    ok!(doca_mmap_get_exported(remote, &mut exported););
    assert_eq!(exported, 0);
    let rdma = export(doca_mmap_export_rdma, remote, devices.first);
    assert_ne!(rdma, export(doca_mmap_export_pci, remote, devices.first));
    assert_eq!(rdma, export(doca_mmap_export_rdma, remote, devices.first));
    assert!(rdma.len() <= 1024);
    ok!(doca_mmap_get_exported(remote, &mut exported););
    assert_eq!(exported, 1);
    fails! {
        NOT_PERMITTED doca_mmap_start(remote);
        NOT_PERMITTED doca_mmap_rm_dev(remote, devices.first);
    }
    ok! {
        doca_mmap_stop(remote);
        doca_mmap_start(remote);
        doca_mmap_destroy(remote);
        doca_mmap_destroy(local);
        doca_mmap_destroy(idle);
    }
    devices.close();
}

#[test]
fn imports_show_the_exporters_range_and_are_frozen() {
    let devices = Devices::open();
    let memory = memory();
    let origin = started(devices.first, &memory, 1 | 2);
    let bytes = export(doca_mmap_export_rdma, origin, devices.first);
    let (mut mmap, mut addr, mut len, mut data, mut imported) = (NO_MAP, 0, 0, 0, 0);
    ok! {
        doca_mmap_create_from_export(ptr::from_ref(&7u64), bytes.as_ptr(), bytes.len(), devices.second, &mut mmap);
        doca_mmap_get_memrange(mmap, &mut addr, &mut len);
        doca_mmap_get_user_data(mmap, &mut data);
        doca_mmap_get_from_export(mmap, &mut imported);
    }
    assert_eq!((addr, len, data, imported), (memory.as_ptr() as usize, memory.len(), 7, 1));
    let (mut out, mut out_len) = (ptr::null(), 0);
    fails! {
        NOT_PERMITTED doca_mmap_start(mmap);
        NOT_PERMITTED doca_mmap_add_dev(mmap, devices.first);
        NOT_PERMITTED doca_mmap_rm_dev(mmap, devices.second);
        BAD_STATE doca_mmap_set_memrange(mmap, addr, len);
        BAD_STATE doca_mmap_set_permissions(mmap, 1u32);
        NOT_PERMITTED doca_mmap_export_pci(mmap, devices.second, &mut out, &mut out_len);
        NOT_PERMITTED doca_mmap_export_rdma(mmap, devices.second, &mut out, &mut out_len);
        IN_USE doca_dev_close(devices.second);
    }
    give_back(buffer(mmap));
    ok! {
        doca_mmap_enable_thread_safety(mmap);
        doca_mmap_stop(mmap);
    }
    fails! {
        NOT_PERMITTED doca_mmap_start(mmap);
        NOT_PERMITTED doca_mmap_rm_dev(mmap, devices.second);
        BAD_STATE doca_mmap_set_permissions(mmap, 1u32);
    }
    ok! {
        doca_mmap_destroy(mmap);
        doca_mmap_destroy(origin);
    }
    devices.close();
}

#[test]
fn bad_descriptors_are_refused() {
    let devices = Devices::open();
    let memory = memory();
    let origin = started(devices.first, &memory, 1 | 2);
    let bytes = export(doca_mmap_export_rdma, origin, devices.first);
    let mut mmap = NO_MAP;
    let none: *const u64 = ptr::null();
    for len in 0..bytes.len() {
        fails!(INVALID_VALUE doca_mmap_create_from_export(none, bytes.as_ptr(), len, devices.first, &mut mmap););
    }
    for position in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[position] ^= 1 << (position % 8);
        fails!(INVALID_VALUE doca_mmap_create_from_export(none, flipped.as_ptr(), flipped.len(), devices.first, &mut mmap););
    }
    fails! {
        INVALID_VALUE doca_mmap_create_from_export(none, ptr::null::<u8>(), 8usize, devices.first, &mut mmap);
        INVALID_VALUE doca_mmap_create_from_export(none, bytes.as_ptr(), bytes.len(), NO_DEV, &mut mmap);
        INVALID_VALUE doca_mmap_create_from_export(none, bytes.as_ptr(), bytes.len(), devices.first, ptr::null_mut());
    }
    assert_eq!(mmap, NO_MAP);
    ok!(doca_mmap_destroy(origin););
    devices.close();
}

#[test]
fn what_came_over_pci_goes_on_by_rdma() {
    let devices = Devices::open();
    let dpu = topology::get().unwrap().of(Side::Dpu).next().unwrap();
    let dpu = crate::dev::open(&Devinfo::new(dpu));
    let memory = memory();
    let origin = started(devices.first, &memory, 1 | 2 | 32);
    let bytes = export(doca_mmap_export_pci, origin, devices.first);
    let none: *const u64 = ptr::null();
    let (mut mmap, mut peer, mut addr, mut len) = (NO_MAP, NO_MAP, 0, 0);
    fails!(NOT_SUPPORTED doca_mmap_create_from_export(none, bytes.as_ptr(), bytes.len(), devices.first, &mut mmap););
    ok!(doca_mmap_create_from_export(none, bytes.as_ptr(), bytes.len(), dpu, &mut mmap););
    fails!(NOT_PERMITTED doca_mmap_export_pci(mmap, dpu, &mut ptr::null(), &mut 0););
    let bytes = export(doca_mmap_export_rdma, mmap, dpu);
    ok! {
        doca_mmap_create_from_export(none, bytes.as_ptr(), bytes.len(), devices.second, &mut peer);
        doca_mmap_get_memrange(peer, &mut addr, &mut len);
        doca_mmap_stop(mmap);
        doca_mmap_destroy(mmap);
        doca_mmap_destroy(peer);
        doca_mmap_destroy(origin);
        doca_dev_close(dpu);
    }
    assert_eq!((addr, len), (memory.as_ptr() as usize, memory.len()));
    devices.close();
}

#[test]
fn capabilities_come_from_the_topology() {
    let list = List::new();
    let (mut export, mut import) = (9, 9);
    ok! {
        doca_mmap_cap_is_export_pci_supported(list.get(0), &mut export);
        doca_mmap_cap_is_create_from_export_pci_supported(list.get(0), &mut import);
    }
    assert_eq!((export, import), (1, 0));
}

#[test]
fn keys_are_not_zero_and_differ() {
    let devices = Devices::open();
    let memory = memory();
    let (one, two) = (started(devices.first, &memory, 1 | 2), started(devices.first, &memory, 1));
    let bytes = export(doca_mmap_export_rdma, one, devices.first);
    let (mut first, mut second, mut third, mut remote) = (0, 0, 0, NO_MAP);
    ok! {
        doca_mmap_create_from_export(ptr::null::<u64>(), bytes.as_ptr(), bytes.len(), devices.first, &mut remote);
        doca_mmap_get_mkey(remote, devices.first, &mut third);
        doca_mmap_get_mkey(one, devices.first, &mut first);
        doca_mmap_get_mkey(two, devices.first, &mut second);
    }
    assert!(first != 0 && second != 0 && first != second && third != first && third != second);
    fails!(NOT_FOUND doca_mmap_get_mkey(one, devices.second, &mut first););
    ok!(doca_mmap_stop(one););
    fails!(BAD_STATE doca_mmap_get_mkey(one, devices.first, &mut first););
    ok! {
        doca_mmap_destroy(remote);
        doca_mmap_destroy(one);
        doca_mmap_destroy(two);
    }
    devices.close();
}

#[test]
fn threads_may_take_buffers_of_a_thread_safe_map() {
    let devices = Devices::open();
    let (memory, mmap) = (memory(), created());
    ok! {
        doca_mmap_enable_thread_safety(mmap);
        doca_mmap_set_memrange(mmap, memory.as_ptr() as usize, memory.len());
        doca_mmap_start(mmap);
    }
    let shared = mmap as usize;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..1000 {
                    give_back(buffer(shared as *const Mmap));
                }
            });
        }
    });
    let mut count = 9;
    ok! {
        doca_mmap_get_num_bufs(mmap, &mut count);
        doca_mmap_destroy(mmap);
    }
    assert_eq!(count, 0);
    devices.close();
}
