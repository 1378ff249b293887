//! The devices that DOCA gives to programs.

use super::{Finding, Layer};
use doca_common::DeviceInfo;
use doca_rdma::{caps, gid};

/// Release and build of the DOCA that this program loaded.
pub(crate) fn loaded() -> Option<String> {
    doca_common::version::version().loaded.map(|version| version.to_string())
}

/// What is right and wrong.
pub(crate) fn findings() -> Vec<Finding> {
    let devices = match DeviceInfo::list() {
        Ok(devices) => devices,
        Err(error) => {
            let next = "follow the error's own hint; it comes from the loaded DOCA library";
            return vec![Finding::wrong(Layer::Runtime, format!("DOCA lists no devices: {error}"), next)];
        }
    };
    if devices.is_empty() {
        let next = "look at the layers below: permissions, kernel driver, mlxconfig";
        return vec![Finding::wrong(Layer::Runtime, "DOCA sees no device", next)];
    }
    devices.iter().map(device).collect()
}

fn device(device: &DeviceInfo) -> Finding {
    if !caps::SEND.holds(device) {
        let next = "see `doca caps`; choose another device for RDMA";
        return Finding::note(Layer::Runtime, format!("{device} does not support RDMA sends"), next);
    }
    match gid::roce_v2(device) {
        Ok(gid) => Finding::ok(Layer::Runtime, format!("{device} can send over GID {gid}")),
        Err(error) if matches!(device.lid(), Ok(Some(_))) => Finding::note(
            Layer::Runtime,
            format!("{device} is InfiniBand: {error}"),
            "leave the GID index unset",
        ),
        Err(error) => Finding::wrong(
            Layer::Runtime,
            format!("{device} has no usable GID: {error}"),
            "bring the interface up and give it an IP address (`ip addr add ADDRESS dev IFACE`)",
        ),
    }
}
