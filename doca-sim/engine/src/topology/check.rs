//! What the types cannot say about a topology: names that fit, addresses that lead to one device.

use super::{Device, FuncType, Gid, GidEntry, Mac, Side, StaLimits, Topology};
use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;

/// Path MTUs that exist, bytes.
const MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];
/// Most devices of a topology: sets of devices are bit masks.
const MAX_DEVICES: usize = 64;
/// Largest GID table.
const MAX_GID_TABLE: u32 = 256;
/// Longest name of a Comch server: twice as long, it is part of a file's name.
const MAX_COMCH_NAME: u32 = 120;
/// Bytes of an NVMe command, of its completion, and of the smallest block.
const COMMAND: u32 = 64;
const COMPLETION: u32 = 16;
const SMALLEST_BLOCK: u32 = 512;

/// The GID table that the device's settings describe.
pub(super) fn gid_table(device: &Device) -> Result<Vec<Option<GidEntry>>, String> {
    let fail = |field: &str, text: String| Err(format!("{}.{field}: {text}", at(device)));
    let size = device.gid_table_size;
    if !(4..=MAX_GID_TABLE).contains(&size) {
        return fail("gid_table_size", format!("{size} is not from 4 to {MAX_GID_TABLE}"));
    }
    let mut table = vec![None; size as usize];
    for entry in device.gids.clone().unwrap_or_else(|| device.derived_gids()) {
        match table.get_mut(entry.index as usize) {
            None => return fail("gids", format!("index {} is beyond the table's {size} slots", entry.index)),
            Some(Some(_)) => return fail("gids", format!("index {} stands there twice", entry.index)),
            Some(slot) => *slot = Some(entry),
        }
    }
    Ok(table)
}

/// Checks each device by itself, then that no address belongs to two.
pub(super) fn topology(topology: &Topology) -> Result<(), String> {
    if topology.devices.len() > MAX_DEVICES {
        return Err(format!("{} devices are more than {MAX_DEVICES}", topology.devices.len()));
    }
    sta(&topology.sta)?;
    topology.devices.iter().try_for_each(device)?;
    let devices = || topology.devices.iter();
    let functions = devices().filter(|d| d.func_type != FuncType::Sf);
    unique("pci", functions.map(|d| (d, (d.side == Side::Dpu, d.pci))), |(_, pci)| pci.to_string())?;
    unique("mac", devices().map(|d| (d, d.mac)), Mac::to_string)?;
    unique("ipv4", devices().filter_map(|d| Some((d, d.ipv4?))), ToString::to_string)?;
    unique("ipv6", devices().map(|d| (d, d.ipv6_addr())), ToString::to_string)?;
    unique(
        "gids",
        devices().flat_map(|d| distinct_gids(d).into_iter().map(move |gid| (d, gid))),
        Gid::to_string,
    )
}

fn distinct_gids(device: &Device) -> Vec<Gid> {
    let mut gids: Vec<Gid> = device.gid_table.iter().flatten().map(|entry| entry.gid).collect();
    gids.sort_by_key(|gid| gid.0);
    gids.dedup();
    gids
}

fn unique<'d, K: Eq + Hash>(
    field: &str,
    keys: impl Iterator<Item = (&'d Device, K)>,
    show: impl Fn(&K) -> String,
) -> Result<(), String> {
    let mut seen: HashMap<K, &Device> = HashMap::new();
    for (device, key) in keys {
        let text = show(&key);
        if let Some(other) = seen.insert(key, device) {
            return Err(format!("{}.{field}: {text} is also {}'s", at(device), at(other)));
        }
    }
    Ok(())
}

fn device(device: &Device) -> Result<(), String> {
    let fail = |field: &str, text: &dyn Display| Err(format!("{}.{field}: {text}", at(device)));
    if device.ibdev.is_empty() || device.ibdev.len() > 63 {
        return Err(format!("{}: device names have 1 to 63 bytes", at(device)));
    }
    if device.iface.is_empty() || device.iface.len() > 255 {
        return fail("iface", &"interface names have 1 to 255 bytes");
    }
    if !MTUS.contains(&device.max_mtu) {
        return fail("max_mtu", &format_args!("{} is not one of {MTUS:?}", device.max_mtu));
    }
    if device.ipv4_prefix > 32 {
        return fail("ipv4_prefix", &format_args!("{} is more than 32 bits", device.ipv4_prefix));
    }
    if (device.func_type == FuncType::Sf) != device.sf_index.is_some() {
        return fail("sf_index", &"scalable functions have one, others do not");
    }
    let (rdma, comch, sta) = (&device.rdma, &device.comch, &device.sta);
    let limits = [
        ("rdma.max_send_queue_size", rdma.max_send_queue_size),
        ("rdma.max_recv_queue_size", rdma.max_recv_queue_size),
        ("rdma.max_send_buf_list_len", rdma.max_send_buf_list_len),
        ("rdma.max_recv_buf_list_len.rc", rdma.max_recv_buf_list_len.rc),
        ("rdma.max_recv_buf_list_len.dc", rdma.max_recv_buf_list_len.dc),
        ("rdma.max_message_size", rdma.max_message_size),
        ("comch.max_msg_size", comch.max_msg_size),
        ("comch.max_recv_queue_size", comch.max_recv_queue_size),
        ("comch.max_clients", comch.max_clients),
        ("comch.max_send_tasks", comch.max_send_tasks),
        ("comch.max_waiting", comch.max_waiting),
        ("comch.max_producers", comch.max_producers),
        ("comch.max_consumers", comch.max_consumers),
        ("comch.max_num_tasks", comch.max_num_tasks),
        ("comch.max_buf_size", comch.max_buf_size),
        ("comch.max_buf_list_len", comch.max_buf_list_len),
        ("sta.max_num_eus_available", sta.max_num_eus_available),
        ("sta.max_num_connected_qp_per_eu", sta.max_num_connected_qp_per_eu),
        ("sta.max_io_num_per_dev", sta.max_io_num_per_dev),
        ("sta.max_io_queue_size", sta.max_io_queue_size),
        ("sta.be_timeout_ms", sta.be_timeout_ms),
    ];
    if let Some((field, _)) = zero(&limits) {
        return fail(field, &"must be at least 1");
    }
    let ranges = [
        ("comch.max_name_len", comch.max_name_len, 2, MAX_COMCH_NAME),
        ("comch.max_clients", comch.max_clients, 1, 1 << 16),
        ("comch.max_num_tasks", comch.max_num_tasks, 1, 1 << 20),
        ("comch.max_buf_list_len", comch.max_buf_list_len, 1, 1 << 12),
        ("comch.max_imm_data_len", comch.max_imm_data_len, 0, 1 << 16),
    ];
    if let Some((field, value, least, most)) =
        ranges.iter().find(|(_, value, least, most)| !(least..=most).contains(&value))
    {
        return fail(field, &format_args!("{value} is not from {least} to {most}"));
    }
    for (number, representor) in device.representors.iter().enumerate() {
        let field = |name: &str| format!("representors[{number}].{name}");
        if representor.vuid.is_empty() || representor.vuid.len() > 127 {
            return fail(&field("vuid"), &"identifiers have 1 to 127 bytes");
        }
        if representor.iface.is_empty() || representor.iface.len() > 255 {
            return fail(&field("iface"), &"interface names have 1 to 255 bytes");
        }
    }
    Ok(())
}

/// The limits that hold for every device.
fn sta(sta: &StaLimits) -> Result<(), String> {
    let fail = |field: &str, text: &dyn Display| Err(format!("sta.{field}: {text}"));
    let limits = [
        ("max_devs", sta.max_devs),
        ("max_subsys", sta.max_subsys),
        ("max_ns_per_subs", sta.max_ns_per_subs),
        ("max_qps", sta.max_qps),
        ("max_io_threads", sta.max_io_threads),
        ("max_io_size", sta.max_io_size),
        ("max_be", sta.max_be),
        ("max_qs_per_be", sta.max_qs_per_be),
    ];
    if let Some((field, _)) = zero(&limits) {
        return fail(field, &"must be at least 1");
    }
    if sta.max_io_threads > u16::MAX.into() {
        return fail("max_io_threads", &format_args!("{} is more than {}", sta.max_io_threads, u16::MAX));
    }
    let ranges = [
        ("min_ioccsz", COMMAND, sta.min_ioccsz, sta.max_ioccsz),
        ("min_iorcsz", COMPLETION, sta.min_iorcsz, sta.max_iorcsz),
    ];
    if let Some((field, least, _, max)) = ranges.iter().find(|(_, least, min, max)| min < least || min > max)
    {
        return fail(field, &format_args!("must be from {least} to the maximum, {max}"));
    }
    let sizes = &sta.logical_block_sizes.0;
    if let Some(size) = sizes.iter().find(|size| !size.is_power_of_two() || **size < SMALLEST_BLOCK) {
        return fail(
            "logical_block_sizes",
            &format_args!("{size} is no power of two from {SMALLEST_BLOCK} on"),
        );
    }
    Ok(())
}

/// The first limit that is 0.
fn zero<'l>(limits: &'l [(&'static str, u32)]) -> Option<&'l (&'static str, u32)> {
    limits.iter().find(|(_, limit)| *limit == 0)
}

fn at(device: &Device) -> String {
    format!("{}.{}", device.side, device.ibdev)
}
