use super::*;
use crate::testing::{Devices, List, call, fails, ok};
use crate::topology::{self, Side};

const NOTHING: *const Devinfo = ptr::null();

fn text<const N: usize>(room: &[c_char; N]) -> &str {
    // SAFETY: the entries end what they write with NUL.
    unsafe { std::ffi::CStr::from_ptr(room.as_ptr()) }.to_str().unwrap()
}

#[test]
fn lists_have_the_devices_of_this_side_and_end_once() {
    let list = List::new();
    let expected = topology::get().unwrap().of(Side::Host).count() as u32;
    assert_eq!(list.count, expected);
    let mut name = [0; 64];
    ok!(doca_devinfo_get_ibdev_name(list.get(0), name.as_mut_ptr(), 64u32););
    assert_eq!(text(&name), "mlx5_0");
    let array = list.array;
    drop(list);
    fails! {
        INVALID_VALUE doca_devinfo_destroy_list(array.cast_const());
        INVALID_VALUE doca_devinfo_destroy_list(ptr::null::<*mut Devinfo>());
        INVALID_VALUE doca_devinfo_create_list(ptr::null_mut(), &mut 0);
        INVALID_VALUE doca_devinfo_create_list(&mut ptr::null_mut(), ptr::null_mut());
    }
}

#[test]
fn a_list_whose_elements_were_changed_is_in_use() {
    let list = List::new();
    // SAFETY: the array has at least two elements.
    let slot = unsafe { &mut *list.array };
    let element = std::mem::replace(slot, ptr::null_mut());
    fails!(IN_USE doca_devinfo_destroy_list(list.array.cast_const()););
    *slot = element;
}

#[test]
fn a_device_is_one_pointer_however_often_it_is_opened() {
    let devices = Devices::open();
    let list = List::new();
    let mut again = ptr::null();
    ok!(doca_dev_open(list.get(0), &mut again););
    drop(list);
    assert_eq!(again, devices.first);
    let info = call!(doca_dev_as_devinfo(again));
    let mut third = ptr::null();
    ok! {
        doca_dev_open(info, &mut third);
        doca_dev_close(again);
        doca_dev_close(third);
    }
    assert_eq!(third, again);
    let mut id = 0;
    ok!(doca_devinfo_get_vhca_id(info, &mut id););
    assert_eq!(id, 1);
    fails! {
        INVALID_VALUE doca_dev_open(NOTHING, &mut again);
        INVALID_VALUE doca_dev_open(info, ptr::null_mut());
    }
    devices.close();
}

#[test]
fn the_last_close_waits_for_dependants() {
    let devices = Devices::open();
    // SAFETY: open.
    let dependant = unsafe { &*devices.first }.hold().unwrap();
    fails!(IN_USE doca_dev_close(devices.first););
    drop(dependant);
    devices.close();
}

#[test]
fn addresses_and_names() {
    let list = List::new();
    let info = list.get(0);
    let (mut pci, mut iface, mut v4, mut v6, mut mac) = ([0; 13], [0; 256], [0; 4], [0; 16], [0; 6]);
    ok! {
        doca_devinfo_get_pci_addr_str(info, pci.as_mut_ptr());
        doca_devinfo_get_iface_name(info, iface.as_mut_ptr(), 256u32);
        doca_devinfo_get_ipv4_addr(info, v4.as_mut_ptr(), 4u32);
        doca_devinfo_get_ipv6_addr(info, v6.as_mut_ptr(), 16u32);
        doca_devinfo_get_mac_addr(info, mac.as_mut_ptr(), 6u32);
    }
    assert_eq!((text(&pci), text(&iface)), ("0000:3b:00.0", "ens1f0np0"));
    assert_eq!((v4, mac), ([192, 168, 1, 1], [2, 0, 0, 0x3b, 0, 0]));
    assert_eq!(v6[..2], [0xfe, 0x80]);
    fails! {
        INVALID_VALUE doca_devinfo_get_iface_name(info, iface.as_mut_ptr(), 255u32);
        INVALID_VALUE doca_devinfo_get_ibdev_name(info, iface.as_mut_ptr(), 63u32);
        INVALID_VALUE doca_devinfo_get_ipv4_addr(info, v4.as_mut_ptr(), 3u32);
        INVALID_VALUE doca_devinfo_get_ipv6_addr(info, v6.as_mut_ptr(), 15u32);
        INVALID_VALUE doca_devinfo_get_mac_addr(info, mac.as_mut_ptr(), 5u32);
        INVALID_VALUE doca_devinfo_get_mac_addr(info, ptr::null_mut(), 6u32);
        INVALID_VALUE doca_devinfo_get_iface_name(NOTHING, iface.as_mut_ptr(), 256u32);
        NOT_SUPPORTED doca_devinfo_get_lid(info, &mut 0);
        NOT_SUPPORTED doca_devinfo_get_sf_index(info, &mut 0);
    }
}

#[test]
fn pci_addresses_compare_in_both_spellings() {
    let list = List::new();
    let mut equal = 9;
    for (address, expected) in [(c"0000:3b:00.0", 1), (c"3B:00.0", 1), (c"3b:00.1", 0), (c"0001:3b:00.0", 0)]
    {
        ok!(doca_devinfo_is_equal_pci_addr(list.get(0), address.as_ptr(), &mut equal););
        assert_eq!(equal, expected, "{address:?}");
    }
    fails! {
        INVALID_VALUE doca_devinfo_is_equal_pci_addr(list.get(0), c"mlx5_0".as_ptr(), &mut equal);
        INVALID_VALUE doca_devinfo_is_equal_pci_addr(list.get(0), ptr::null::<c_char>(), &mut equal);
        INVALID_VALUE doca_devinfo_is_equal_pci_addr(list.get(0), c"3b:00.0".as_ptr(), ptr::null_mut());
    }
}

#[test]
fn hosts_have_no_representors() {
    let devices = Devices::open();
    let info = call!(doca_dev_as_devinfo(devices.first));
    fails! {
        NOT_SUPPORTED doca_devinfo_rep_create_list(devices.first, 0i32, &mut ptr::null_mut(), &mut 0);
        NOT_SUPPORTED doca_devinfo_rep_cap_is_filter_net_supported(info, &mut 0);
    }
    devices.close();
}

/// Opens a device of the other side, as a process there would.
fn on_the_dpu(ibdev: &str) -> *const Dev {
    let device = topology::get().unwrap().of(Side::Dpu).find(|device| device.ibdev == ibdev).unwrap();
    dev::open(&Devinfo::new(device))
}

#[test]
fn representors_keep_their_device_open() {
    let _alone = Devices::open();
    let dpu = on_the_dpu("mlx5_0");
    let (mut array, mut count) = (ptr::null_mut(), 0);
    ok!(doca_devinfo_rep_create_list(dpu, 2i32, &mut array, &mut count););
    assert_eq!(count, 1);
    // SAFETY: one element.
    let info = unsafe { *array }.cast_const();
    let (mut rep, mut vuid, mut pci, mut plugged, mut equal) = (ptr::null(), [0; 128], [0; 13], 9, 9);
    ok! {
        doca_devinfo_rep_get_vuid(info, vuid.as_mut_ptr(), 128u32);
        doca_devinfo_rep_get_pci_addr_str(info, pci.as_mut_ptr());
        doca_devinfo_rep_get_is_hotplug(info, &mut plugged);
        doca_devinfo_rep_is_equal_pci_addr(info, c"3b:00.0".as_ptr(), &mut equal);
        doca_dev_rep_open(info, &mut rep);
    }
    assert_eq!((text(&vuid), text(&pci), plugged, equal), ("SIM0000003B000PF0", "0000:3b:00.0", 0, 1));
    fails! {
        INVALID_VALUE doca_devinfo_rep_get_vuid(info, vuid.as_mut_ptr(), 127u32);
        IN_USE doca_dev_close(dpu);
    }
    ok!(doca_devinfo_rep_destroy_list(array.cast_const()););
    fails! {
        INVALID_VALUE doca_devinfo_rep_destroy_list(array.cast_const());
        IN_USE doca_dev_close(dpu);
    }
    let borrowed = call!(doca_dev_rep_as_devinfo(rep));
    ok!(doca_devinfo_rep_get_is_hotplug(borrowed, &mut plugged););
    // SAFETY: open.
    let dependant = unsafe { &*rep }.hold().unwrap();
    fails!(IN_USE doca_dev_rep_close(rep););
    drop(dependant);
    ok! {
        doca_dev_rep_close(rep);
        doca_dev_close(dpu);
    }
    _alone.close();
}

#[test]
fn filters_split_representors() {
    let alone = Devices::open();
    let (both, net_only) = (on_the_dpu("mlx5_0"), on_the_dpu("mlx5_1"));
    for (filter, expected) in [(0, 2), (2, 1), (4, 1)] {
        let (mut array, mut count) = (ptr::null_mut(), 0);
        ok! {
            doca_devinfo_rep_create_list(both, filter, &mut array, &mut count);
            doca_devinfo_rep_destroy_list(array.cast_const());
        }
        assert_eq!(count, expected, "filter {filter}");
    }
    fails! {
        INVALID_VALUE doca_devinfo_rep_create_list(both, 6i32, &mut ptr::null_mut(), &mut 0);
        INVALID_VALUE doca_devinfo_rep_create_list(both, 1i32, &mut ptr::null_mut(), &mut 0);
        INVALID_VALUE doca_devinfo_rep_create_list(both, 0i32, ptr::null_mut(), &mut 0);
        NOT_SUPPORTED doca_devinfo_rep_create_list(net_only, 4i32, &mut ptr::null_mut(), &mut 0);
    }
    let info = call!(doca_dev_as_devinfo(net_only));
    let (mut all, mut net, mut emulated) = (9, 9, 9);
    ok! {
        doca_devinfo_rep_cap_is_filter_all_supported(info, &mut all);
        doca_devinfo_rep_cap_is_filter_net_supported(info, &mut net);
        doca_devinfo_rep_cap_is_filter_emulated_supported(info, &mut emulated);
        doca_dev_close(both);
        doca_dev_close(net_only);
    }
    assert_eq!((all, net, emulated), (1, 1, 0));
    alone.close();
}

#[test]
fn ports_without_an_ipv4_address_say_so() {
    let alone = Devices::open();
    let dpu = on_the_dpu("mlx5_0");
    let info = call!(doca_dev_as_devinfo(dpu));
    fails! {
        NOT_FOUND doca_devinfo_get_ipv4_addr(info, [0; 4].as_mut_ptr(), 4u32);
        INVALID_VALUE doca_devinfo_get_ipv4_addr(info, [0; 4].as_mut_ptr(), 3u32);
    }
    ok!(doca_dev_close(dpu););
    alone.close();
}

#[test]
fn threads_may_open_and_close() {
    let devices = Devices::open();
    let expected = devices.first as usize;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let list = List::new();
                for _ in 0..1000 {
                    let mut dev = ptr::null();
                    ok!(doca_dev_open(list.get(0), &mut dev););
                    assert_eq!(dev as usize, expected);
                    ok!(doca_dev_close(dev););
                }
            });
        }
    });
    // SAFETY: still open: the first reference is ours.
    let dependant = unsafe { &*devices.first }.hold().unwrap();
    fails!(IN_USE doca_dev_close(devices.first););
    drop(dependant);
    devices.close();
}
