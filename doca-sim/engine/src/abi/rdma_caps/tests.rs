use super::*;
use crate::testing::{fails, ok};
use crate::topology::{self, Device, RdmaCaps};
use std::ptr;

const NOTHING: *const Devinfo = ptr::null();

/// A description of a device that differs from the default in its RDMA abilities.
fn device(change: impl FnOnce(&mut RdmaCaps)) -> Devinfo {
    let mut device: Device = topology::get().unwrap().devices[0].clone();
    change(&mut device.rdma);
    Devinfo::new(Box::leak(Box::new(device)))
}

#[test]
fn limits_are_the_devices() {
    let info = device(|caps| {
        caps.max_send_queue_size = 1;
        caps.max_recv_queue_size = 2;
        caps.max_send_buf_list_len = 3;
        caps.max_message_size = 4;
        caps.max_recv_buf_list_len.rc = 5;
        caps.max_recv_buf_list_len.dc = 6;
    });
    let (info, mut got) = (ptr::from_ref(&info), [0; 6]);
    ok! {
        doca_rdma_cap_get_max_send_queue_size(info, &mut got[0]);
        doca_rdma_cap_get_max_recv_queue_size(info, &mut got[1]);
        doca_rdma_cap_get_max_send_buf_list_len(info, &mut got[2]);
        doca_rdma_cap_get_max_message_size(info, &mut got[3]);
        doca_rdma_cap_task_receive_get_max_dst_buf_list_len(info, 0u32, &mut got[4]);
        doca_rdma_cap_task_receive_get_max_dst_buf_list_len(info, 1u32, &mut got[5]);
    }
    assert_eq!(got, [1, 2, 3, 4, 5, 6]);
    fails! {
        INVALID_VALUE doca_rdma_cap_task_receive_get_max_dst_buf_list_len(info, 2u32, &mut got[5]);
        INVALID_VALUE doca_rdma_cap_get_max_message_size(NOTHING, &mut got[3]);
        INVALID_VALUE doca_rdma_cap_get_max_message_size(info, ptr::null_mut());
    }
}

#[test]
fn gids_are_read_in_ranges() {
    let info = device(|_| ());
    let (info, mut size, mut gids) = (ptr::from_ref(&info), 0, [Gid([9; 16]); 3]);
    ok! {
        doca_rdma_cap_get_gid_table_size(info, &mut size);
        doca_rdma_cap_get_gid(info, 2u32, 3u32, gids.as_mut_ptr());
    }
    let mapped = Gid::from_ipv4([192, 168, 1, 1].into());
    assert_eq!((size, gids), (16, [mapped, mapped, Gid::ZERO]));
    fails! {
        INVALID_VALUE doca_rdma_cap_get_gid(info, 0u32, 0u32, gids.as_mut_ptr());
        INVALID_VALUE doca_rdma_cap_get_gid(info, 14u32, 3u32, gids.as_mut_ptr());
        INVALID_VALUE doca_rdma_cap_get_gid(info, u32::MAX, 2u32, gids.as_mut_ptr());
        INVALID_VALUE doca_rdma_cap_get_gid(info, 0u32, 1u32, ptr::null_mut());
    }
}

#[test]
fn transports_are_switched_one_by_one() {
    let info = device(|caps| caps.transports.dc = false);
    let info = ptr::from_ref(&info);
    ok!(doca_rdma_cap_transport_type_is_supported(info, 0u32););
    fails! {
        NOT_SUPPORTED doca_rdma_cap_transport_type_is_supported(info, 1u32);
        INVALID_VALUE doca_rdma_cap_transport_type_is_supported(info, 2u32);
        INVALID_VALUE doca_rdma_cap_transport_type_is_supported(NOTHING, 0u32);
    }
}

/// Each query and the switch that it shows.
type Switch = (unsafe extern "C" fn(In<Devinfo>) -> Code, fn(&mut RdmaCaps) -> &mut bool);

#[test]
fn each_kind_of_task_has_its_switch() {
    let queries: &[Switch] = &[
        (doca_rdma_cap_task_receive_is_supported, |caps| &mut caps.tasks.receive),
        (doca_rdma_cap_task_send_is_supported, |caps| &mut caps.tasks.send),
        (doca_rdma_cap_task_send_imm_is_supported, |caps| &mut caps.tasks.send_imm),
        (doca_rdma_cap_task_read_is_supported, |caps| &mut caps.tasks.read),
        (doca_rdma_cap_task_write_is_supported, |caps| &mut caps.tasks.write),
        (doca_rdma_cap_task_write_imm_is_supported, |caps| &mut caps.tasks.write_imm),
        (doca_rdma_cap_task_atomic_cmp_swp_is_supported, |caps| &mut caps.tasks.atomic_cmp_swp),
        (doca_rdma_cap_task_atomic_fetch_add_is_supported, |caps| &mut caps.tasks.atomic_fetch_add),
        (doca_rdma_cap_task_remote_net_sync_event_get_is_supported, |caps| {
            &mut caps.tasks.remote_net_sync_event_get
        }),
        (doca_rdma_cap_task_remote_net_sync_event_notify_set_is_supported, |caps| {
            &mut caps.tasks.remote_net_sync_event_notify_set
        }),
        (doca_rdma_cap_task_remote_net_sync_event_notify_add_is_supported, |caps| {
            &mut caps.tasks.remote_net_sync_event_notify_add
        }),
    ];
    for off in 0..queries.len() {
        let info = device(|caps| *queries[off].1(caps) = false);
        let info = ptr::from_ref(&info);
        for (asked, (query, _)) in queries.iter().enumerate() {
            if asked == off {
                fails!(NOT_SUPPORTED query(info););
            } else {
                ok!(query(info););
            }
        }
    }
}

#[test]
fn without_rdma_there_are_no_answers() {
    let info = device(|caps| caps.supported = false);
    let info = ptr::from_ref(&info);
    fails! {
        NOT_SUPPORTED doca_rdma_cap_task_send_is_supported(info);
        NOT_SUPPORTED doca_rdma_cap_transport_type_is_supported(info, 0u32);
        DRIVER doca_rdma_cap_get_max_send_queue_size(info, &mut 0);
        DRIVER doca_rdma_cap_get_gid_table_size(info, &mut 0);
        DRIVER doca_rdma_cap_get_gid(info, 0u32, 1u32, &mut Gid([0; 16]));
    }
}
