//! The public structures of `rdma/rdma_cma.h` and the little of `infiniband/verbs.h` that programs look at, as C has
//! them. `libs/rdmacm_layout.h` ties both to the installed headers.

use std::ffi::{c_char, c_int, c_void};

/// `struct rdma_event_channel`
#[repr(C)]
pub struct EventChannel {
    /// What programs poll.
    pub fd: c_int,
}

/// `union ibv_gid`
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct RawGid(pub [u8; 16]);

/// `struct rdma_ib_addr`
#[repr(C)]
pub struct IbAddr {
    /// The source's GID.
    pub sgid: RawGid,
    /// The destination's GID.
    pub dgid: RawGid,
    /// Partition, in network order.
    pub pkey: u16,
}

/// `struct rdma_route`, with its `struct rdma_addr`
#[repr(C)]
pub struct Route {
    /// This side.
    pub src: libc::sockaddr_storage,
    /// The other side.
    pub dst: libc::sockaddr_storage,
    /// Both, as the adapter knows them.
    pub ib: IbAddr,
    /// Not filled in: `num_paths` is zero.
    pub path_rec: *mut c_void,
    /// Records in `path_rec`.
    pub num_paths: c_int,
}

/// `struct rdma_cm_id`
#[repr(C)]
pub struct CmId {
    /// The device, once it is known.
    pub verbs: *const IbvContext,
    /// Where its events come.
    pub channel: *const EventChannel,
    /// The program's.
    pub context: *mut c_void,
    /// Always NULL: there are no verbs here.
    pub qp: *mut c_void,
    /// Addresses.
    pub route: Route,
    /// `enum rdma_port_space`
    pub ps: u32,
    /// Port of the device, from 1.
    pub port_num: u8,
    /// The last event of an identifier without a channel.
    pub event: *mut CmEvent,
    /// Queues and protection domain: always NULL.
    pub verbs_objects: [*mut c_void; 6],
    /// `enum ibv_qp_type`
    pub qp_type: u32,
}

/// `struct rdma_conn_param`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ConnParam {
    /// See `private_data_len`.
    pub private_data: *const u8,
    /// Bytes of private data.
    pub private_data_len: u8,
    /// RDMA reads and atomics that the sender will answer at once.
    pub responder_resources: u8,
    /// RDMA reads and atomics that the sender will have outstanding.
    pub initiator_depth: u8,
    /// End-to-end flow control.
    pub flow_control: u8,
    /// Retries after loss.
    pub retry_count: u8,
    /// Retries of a receiver that is not ready.
    pub rnr_retry_count: u8,
    /// Shared receive queue.
    pub srq: u8,
    /// Queue pair number.
    pub qp_num: u32,
}

/// `struct rdma_cm_event`
#[repr(C)]
pub struct CmEvent {
    /// Whose.
    pub id: *mut CmId,
    /// Of requests: who listens.
    pub listen_id: *mut CmId,
    /// `enum rdma_cm_event_type`
    pub event: u32,
    /// Zero, a negative errno, or the reason of a rejection.
    pub status: c_int,
    /// Parameters of connected services.
    pub conn: ConnParam,
    /// Room that datagram services need.
    pub ud: [u64; 4],
}

/// `struct rdma_addrinfo`
#[repr(C)]
pub struct AddrInfo {
    /// `RAI_*`
    pub flags: c_int,
    /// `AF_*`
    pub family: c_int,
    /// `enum ibv_qp_type`
    pub qp_type: c_int,
    /// `enum rdma_port_space`
    pub port_space: c_int,
    /// Bytes of the source address.
    pub src_len: libc::socklen_t,
    /// Bytes of the destination address.
    pub dst_len: libc::socklen_t,
    /// Source address, or NULL.
    pub src_addr: *mut libc::sockaddr,
    /// Destination address, or NULL.
    pub dst_addr: *mut libc::sockaddr,
    /// Canonical names, routes and connection data: not filled in.
    pub rest: [usize; 6],
    /// Always NULL: there is one result.
    pub next: *mut AddrInfo,
}

/// `struct ibv_context`
#[repr(C)]
pub struct IbvContext {
    /// The device.
    pub device: *const IbvDevice,
    /// Entry points of verbs: all NULL.
    pub ops: [usize; 32],
    /// No descriptor: -1.
    pub cmd_fd: c_int,
    /// No descriptor: -1.
    pub async_fd: c_int,
    /// Completion vectors.
    pub num_comp_vectors: c_int,
    /// Unlocked.
    pub mutex: libc::pthread_mutex_t,
    /// NULL: not extended.
    pub abi_compat: usize,
}

/// `struct ibv_device`
#[repr(C)]
pub struct IbvDevice {
    /// Private to verbs.
    pub ops: [usize; 2],
    /// `enum ibv_node_type`
    pub node_type: c_int,
    /// `enum ibv_transport_type`
    pub transport_type: c_int,
    /// The ibdev name, such as `mlx5_0`.
    pub name: [c_char; 64],
    /// The uverbs name.
    pub dev_name: [c_char; 64],
    /// Paths in sysfs: empty.
    pub dev_path: [c_char; 256],
    /// See `dev_path`.
    pub ibdev_path: [c_char; 256],
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// `LAYOUT(a, b, 8)` as `("a.b", 8)`, `SIZE(a, 8)` as `("a", 8)`.
    fn table() -> Vec<(String, usize)> {
        let text = include_str!("../../../libs/rdmacm_layout.h");
        let mut rows = Vec::new();
        for line in text.lines() {
            let Some((kind, rest)) = line.trim_end_matches(')').split_once('(') else { continue };
            let words: Vec<&str> = rest.split(", ").collect();
            match (kind, &words[..]) {
                ("SIZE", [structure, "288 + sizeof(pthread_mutex_t"]) => {
                    rows.push((structure.to_string(), 288 + size_of::<libc::pthread_mutex_t>()));
                }
                ("SIZE", [structure, bytes]) => rows.push((structure.to_string(), bytes.parse().unwrap())),
                ("LAYOUT", [structure, field, offset]) => {
                    rows.push((format!("{structure}.{field}"), offset.parse().unwrap()));
                }
                _ => {}
            }
        }
        rows
    }

    #[test]
    fn structures_are_laid_out_as_the_header_has_them() {
        let mut known = std::collections::BTreeMap::new();
        macro_rules! know {
            ($($structure:literal $ty:ty { $($name:literal $($field:ident).+,)* })*) => { $(
                known.insert($structure.to_owned(), size_of::<$ty>());
                $(known.insert(concat!($structure, ".", $name).to_owned(), offset_of!($ty, $($field).+));)*
            )* };
        }
        know! {
            "rdma_event_channel" EventChannel { "fd" fd, }
            "rdma_cm_id" CmId {
                "verbs" verbs, "channel" channel, "context" context, "qp" qp, "route" route, "ps" ps,
                "port_num" port_num, "event" event, "qp_type" qp_type,
            }
            "rdma_route" Route { "path_rec" path_rec, "num_paths" num_paths, }
            "rdma_cm_event" CmEvent {
                "id" id, "listen_id" listen_id, "event" event, "status" status, "param" conn,
            }
            "rdma_conn_param" ConnParam {
                "private_data" private_data, "private_data_len" private_data_len,
                "responder_resources" responder_resources, "initiator_depth" initiator_depth,
                "flow_control" flow_control, "retry_count" retry_count, "rnr_retry_count" rnr_retry_count,
                "srq" srq, "qp_num" qp_num,
            }
            "rdma_addrinfo" AddrInfo {
                "ai_flags" flags, "ai_family" family, "ai_qp_type" qp_type, "ai_port_space" port_space,
                "ai_src_len" src_len, "ai_dst_len" dst_len, "ai_src_addr" src_addr, "ai_dst_addr" dst_addr,
                "ai_next" next,
            }
            "ibv_context" IbvContext {
                "device" device, "cmd_fd" cmd_fd, "async_fd" async_fd, "num_comp_vectors" num_comp_vectors,
                "mutex" mutex,
            }
            "ibv_device" IbvDevice {
                "node_type" node_type, "transport_type" transport_type, "name" name, "dev_name" dev_name,
                "dev_path" dev_path, "ibdev_path" ibdev_path,
            }
        }
        // `struct rdma_addr` is the first part of the route here.
        known.insert("rdma_addr".into(), offset_of!(Route, path_rec));
        known.insert("rdma_addr.src_addr".into(), offset_of!(Route, src));
        known.insert("rdma_addr.dst_addr".into(), offset_of!(Route, dst));
        known.insert("rdma_addr.addr".into(), offset_of!(Route, ib));
        known.insert("rdma_cm_id.pd".into(), offset_of!(CmId, verbs_objects) + 5 * size_of::<*mut c_void>());
        let table = table();
        assert_eq!(table.len(), known.len());
        for (name, place) in table {
            assert_eq!(known.get(&name), Some(&place), "{name}");
        }
    }
}
