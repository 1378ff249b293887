//! `doca_rdma.h`: what a device can do.

use crate::code::{Code, Res};
use crate::dev::Devinfo;
use crate::entry;
use crate::entry::{In, Out};
use crate::topology::{Gid, RdmaCaps, RdmaTask};

/// The RDMA abilities of a device. The driver has no answers for a device without RDMA: DRIVER.
fn caps(devinfo: &In<Devinfo>) -> Res<&'static RdmaCaps> {
    Some(&devinfo.get()?.device().rdma).filter(|caps| caps.supported).ok_or(Code::DRIVER)
}

/// SUCCESS for yes, NOT_SUPPORTED for no.
fn answer(yes: bool) -> Res {
    if yes { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

entry! {
    /// Largest receive queue, entries.
    fn doca_rdma_cap_get_max_recv_queue_size(devinfo: In<Devinfo>, max_recv_queue_size: Out<u32>) {
        max_recv_queue_size.check()?;
        max_recv_queue_size.put(caps(&devinfo)?.max_recv_queue_size)
    }

    /// Largest send queue, entries.
    fn doca_rdma_cap_get_max_send_queue_size(devinfo: In<Devinfo>, max_send_queue_size: Out<u32>) {
        max_send_queue_size.check()?;
        max_send_queue_size.put(caps(&devinfo)?.max_send_queue_size)
    }

    /// Longest chain of local buffers of a send-side task.
    fn doca_rdma_cap_get_max_send_buf_list_len(devinfo: In<Devinfo>, max_send_buf_list_len: Out<u32>) {
        max_send_buf_list_len.check()?;
        max_send_buf_list_len.put(caps(&devinfo)?.max_send_buf_list_len)
    }

    /// Largest message, bytes.
    fn doca_rdma_cap_get_max_message_size(devinfo: In<Devinfo>, max_message_size: Out<u32>) {
        max_message_size.check()?;
        max_message_size.put(caps(&devinfo)?.max_message_size)
    }

    /// Slots of the GID table.
    fn doca_rdma_cap_get_gid_table_size(devinfo: In<Devinfo>, gid_table_size: Out<u32>) {
        gid_table_size.check()?;
        caps(&devinfo)?;
        gid_table_size.put(devinfo.get()?.device().gid_table_size)
    }

    /// Some slots of the GID table; empty ones are zero.
    fn doca_rdma_cap_get_gid(devinfo: In<Devinfo>, start_index: u32, num_entries: u32, gid_array: Out<Gid>) {
        gid_array.check()?;
        caps(&devinfo)?;
        let device = devinfo.get()?.device();
        let end = start_index.checked_add(num_entries).ok_or(Code::INVALID_VALUE)?;
        if num_entries == 0 || end > device.gid_table_size {
            return Err(Code::INVALID_VALUE);
        }
        let gids: Vec<Gid> = (start_index..end).filter_map(|index| device.gid(index)).collect();
        gid_array.put_all(&gids)
    }

    /// Whether the device has this transport.
    fn doca_rdma_cap_transport_type_is_supported(devinfo: In<Devinfo>, transport_type: u32) {
        let caps = &devinfo.get()?.device().rdma;
        let transport = match transport_type {
            0 => caps.transports.rc,
            1 => caps.transports.dc,
            _ => return Err(Code::INVALID_VALUE),
        };
        answer(caps.supported && transport)
    }

    /// Longest chain of buffers of a receive task. DRIVER for a transport that the device lacks.
    fn doca_rdma_cap_task_receive_get_max_dst_buf_list_len(devinfo: In<Devinfo>, transport_type: u32, max_buf_list_len: Out<u32>) {
        max_buf_list_len.check()?;
        let caps = caps(&devinfo)?;
        let (supported, limit) = match transport_type {
            0 => (caps.transports.rc, caps.max_recv_buf_list_len.rc),
            1 => (caps.transports.dc, caps.max_recv_buf_list_len.dc),
            _ => return Err(Code::INVALID_VALUE),
        };
        max_buf_list_len.put(if supported { limit } else { return Err(Code::DRIVER) })
    }
}

macro_rules! task_queries {
    ($($name:ident $kind:ident;)*) => {
        entry! { $(
            #[doc = concat!("Whether the device supports `RdmaTask::", stringify!($kind), "`.")]
            fn $name(devinfo: In<Devinfo>) {
                answer(devinfo.get()?.device().rdma.task(RdmaTask::$kind))
            }
        )* }
    };
}

task_queries! {
    doca_rdma_cap_task_receive_is_supported Receive;
    doca_rdma_cap_task_send_is_supported Send;
    doca_rdma_cap_task_send_imm_is_supported SendImm;
    doca_rdma_cap_task_read_is_supported Read;
    doca_rdma_cap_task_write_is_supported Write;
    doca_rdma_cap_task_write_imm_is_supported WriteImm;
    doca_rdma_cap_task_atomic_cmp_swp_is_supported AtomicCmpSwp;
    doca_rdma_cap_task_atomic_fetch_add_is_supported AtomicFetchAdd;
    doca_rdma_cap_task_remote_net_sync_event_get_is_supported RemoteNetSyncEventGet;
    doca_rdma_cap_task_remote_net_sync_event_notify_set_is_supported RemoteNetSyncEventNotifySet;
    doca_rdma_cap_task_remote_net_sync_event_notify_add_is_supported RemoteNetSyncEventNotifyAdd;
}

#[cfg(test)]
mod tests;
