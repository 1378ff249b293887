use super::*;
use crate::abi::ctx::{doca_ctx_get_state, doca_ctx_start, doca_ctx_stop};
use crate::abi::dev::doca_dev_close;
use crate::abi::pe::{doca_pe_connect_ctx, doca_pe_create, doca_pe_destroy};
use crate::dev;
use crate::pe::Pe;
use crate::testing::{Devices, call, fails, ok};
use crate::topology::Device;
use std::ptr::{self, null_mut};

const NO_DEV: *const Dev = null();
const NO_STA: *const Sta = null();

/// A description of a device that differs from the host's first; `index` keeps its open device apart.
fn device(index: usize, change: impl FnOnce(&mut Device)) -> Devinfo {
    let mut device: Device = topology::get().unwrap().devices[0].clone();
    device.index = index;
    change(&mut device);
    Devinfo::new(Box::leak(Box::new(device)))
}

fn created(dev: *const Dev) -> *const Sta {
    let mut sta = null();
    ok!(doca_sta_create(dev, &mut sta););
    sta
}

#[test]
fn a_device_without_sta_says_so() {
    let (able, unable) = (device(50, |_| ()), device(51, |device| device.sta.supported = false));
    ok!(doca_sta_cap_is_supported(ptr::from_ref(&able)););
    let dev = dev::open(&unable);
    let mut sta = null();
    fails! {
        NOT_SUPPORTED doca_sta_cap_is_supported(ptr::from_ref(&unable));
        INVALID_VALUE doca_sta_cap_is_supported(null::<Devinfo>());
        NOT_SUPPORTED doca_sta_create(dev, &mut sta);
        INVALID_VALUE doca_sta_create(NO_DEV, &mut sta);
        INVALID_VALUE doca_sta_create(dev, null_mut());
    }
    assert!(sta.is_null());
    ok!(doca_dev_close(dev););
}

#[test]
fn an_instance_ends_once_and_keeps_its_devices() {
    let devices = Devices::open();
    let sta = created(devices.first);
    ok!(doca_sta_add_dev(sta, devices.second););
    fails! {
        IN_USE doca_dev_close(devices.first);
        IN_USE doca_dev_close(devices.second);
    }
    ok!(doca_sta_destroy(sta););
    fails!(INVALID_VALUE doca_sta_destroy(NO_STA););
    devices.close();
}

#[test]
fn devices_for_queue_pairs_are_added_once_and_up_to_the_limit() {
    let devices = Devices::open();
    let others = [
        device(52, |_| ()),
        device(53, |device| device.rdma.supported = false),
        device(54, |device| device.rdma.transports.rc = false),
        device(55, |device| device.sta.supported = false),
    ];
    let others = others.each_ref().map(dev::open);
    let sta = created(devices.first);
    fails! {
        INVALID_VALUE doca_sta_add_dev(sta, NO_DEV);
        INVALID_VALUE doca_sta_add_dev(NO_STA, devices.first);
        NOT_SUPPORTED doca_sta_add_dev(sta, others[1]);
        NOT_SUPPORTED doca_sta_add_dev(sta, others[2]);
    }
    ok! {
        doca_sta_add_dev(sta, devices.first);
        doca_sta_add_dev(sta, others[3]);
    }
    fails! {
        ALREADY_EXIST doca_sta_add_dev(sta, devices.first);
        NO_MEMORY doca_sta_add_dev(sta, others[0]);
    }
    ok!(doca_sta_destroy(sta););
    for dev in others {
        ok!(doca_dev_close(dev););
    }
    devices.close();
}

#[test]
fn the_number_of_io_contexts_is_one_until_set() {
    let devices = Devices::open();
    let sta = created(devices.first);
    let (mut before, mut limit, mut after) = (0, 0, 0);
    ok! {
        doca_sta_get_max_sta_io(sta, &mut before);
        doca_sta_get_max_io_threads(&mut limit);
        doca_sta_set_max_sta_io(sta, limit as u16);
    }
    fails! {
        INVALID_VALUE doca_sta_set_max_sta_io(sta, 0u16);
        INVALID_VALUE doca_sta_set_max_sta_io(sta, limit as u16 + 1);
        INVALID_VALUE doca_sta_set_max_sta_io(NO_STA, 1u16);
        INVALID_VALUE doca_sta_get_max_sta_io(sta, null_mut());
        INVALID_VALUE doca_sta_get_max_sta_io(NO_STA, &mut after);
    }
    ok!(doca_sta_get_max_sta_io(sta, &mut after););
    assert_eq!((before, u32::from(after)), (1, limit));
    ok!(doca_sta_destroy(sta););
    devices.close();
}

#[test]
fn a_start_needs_devices_an_allocator_and_tasks() {
    let devices = Devices::open();
    let sta = created(devices.first);
    let ctx = call!(doca_sta_as_ctx(sta));
    let mut pe: *const Pe = null();
    ok!(doca_pe_create(&mut pe););
    fails!(NOT_CONNECTED doca_ctx_start(ctx););
    ok!(doca_pe_connect_ctx(pe, ctx););
    fails! {
        IN_USE doca_pe_destroy(pe);
        INVALID_VALUE doca_ctx_start(ctx);
    }
    ok!(doca_sta_add_dev(sta, devices.second););
    fails!(INITIALIZATION doca_ctx_start(ctx););
    ok!(doca_ctx_stop(ctx););
    let mut state = u32::MAX;
    ok! {
        doca_ctx_get_state(ctx, &mut state);
        doca_sta_destroy(sta);
        doca_pe_destroy(pe);
    }
    assert_eq!(state, 0);
    assert!(call!(doca_sta_as_ctx(NO_STA)).is_null());
    devices.close();
}

#[test]
fn limits_of_an_instance_are_its_control_devices() {
    let info = device(56, |device| {
        device.sta.max_num_eus_available = 1;
        device.sta.max_num_connected_qp_per_eu = 2;
        device.sta.max_io_num_per_dev = 3;
        device.sta.max_io_queue_size = 4;
    });
    let dev = dev::open(&info);
    let (sta, mut got) = (created(dev), [0; 4]);
    ok! {
        doca_sta_get_max_num_eus_available(sta, &mut got[0]);
        doca_sta_get_max_num_connected_qp_per_eu(sta, &mut got[1]);
        doca_sta_get_max_io_num_per_dev(sta, &mut got[2]);
        doca_sta_get_max_io_queue_size(sta, &mut got[3]);
    }
    assert_eq!(got, [1, 2, 3, 4]);
    fails! {
        INVALID_VALUE doca_sta_get_max_num_eus_available(NO_STA, &mut got[0]);
        INVALID_VALUE doca_sta_get_max_num_connected_qp_per_eu(sta, null_mut());
    }
    ok! {
        doca_sta_destroy(sta);
        doca_dev_close(dev);
    }
}

#[test]
fn limits_of_the_library_are_the_topologys() {
    type Query = unsafe extern "C" fn(Out<u32>) -> Code;
    let limits = &topology::get().unwrap().sta;
    let queries: [(Query, u32); 13] = [
        (doca_sta_get_max_devs, limits.max_devs),
        (doca_sta_get_max_subsys, limits.max_subsys),
        (doca_sta_get_max_ns_per_subs, limits.max_ns_per_subs),
        (doca_sta_get_max_qps, limits.max_qps),
        (doca_sta_get_max_io_threads, limits.max_io_threads),
        (doca_sta_get_max_io_size, limits.max_io_size),
        (doca_sta_get_min_ioccsz, limits.min_ioccsz),
        (doca_sta_get_max_ioccsz, limits.max_ioccsz),
        (doca_sta_get_min_iorcsz, limits.min_iorcsz),
        (doca_sta_get_max_iorcsz, limits.max_iorcsz),
        (doca_sta_get_max_icdoff, limits.max_icdoff),
        (doca_sta_get_max_be, limits.max_be),
        (doca_sta_get_max_qs_per_be, limits.max_qs_per_be),
    ];
    for (query, expected) in queries {
        let mut got = u32::MAX;
        ok!(query(&mut got););
        assert_eq!(got, expected);
        fails!(INVALID_VALUE query(null_mut::<u32>()););
    }
    let supported = |size: u32| call!(doca_sta_is_logical_block_size_supported(size));
    assert_eq!([0, 511, 512, 4096, 8192].map(supported), [false, false, true, true, false]);
}
