//! What the types cannot say about a topology: names that fit, addresses that lead to one device.

use super::{Device, FuncType, Gid, GidEntry, Mac, Side, Topology};
use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;

/// Path MTUs that exist, bytes.
const MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];
/// Most devices of a topology: sets of devices are bit masks.
const MAX_DEVICES: usize = 64;
/// Largest GID table.
const MAX_GID_TABLE: u32 = 256;

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
    if (device.func_type == FuncType::Sf) != device.sf_index.is_some() {
        return fail("sf_index", &"scalable functions have one, others do not");
    }
    let rdma = &device.rdma;
    let limits = [
        ("rdma.max_send_queue_size", rdma.max_send_queue_size),
        ("rdma.max_recv_queue_size", rdma.max_recv_queue_size),
        ("rdma.max_send_buf_list_len", rdma.max_send_buf_list_len),
        ("rdma.max_recv_buf_list_len.rc", rdma.max_recv_buf_list_len.rc),
        ("rdma.max_recv_buf_list_len.dc", rdma.max_recv_buf_list_len.dc),
        ("rdma.max_message_size", rdma.max_message_size),
    ];
    if let Some((field, _)) = limits.iter().find(|(_, limit)| *limit == 0) {
        return fail(field, &"must be at least 1");
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

fn at(device: &Device) -> String {
    format!("{}.{}", device.side, device.ibdev)
}
