//! One device with its port, its GIDs and everything it says it can do.

use super::condition::{Answer, Value};
use crate::table::columns;
use doca_common::caps::{Snapshot, Value as Told};
use doca_common::{DeviceInfo, Result};
use doca_rdma::gid::{self, Protocol};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What is told about a device. What it did not answer is absent here and has its reason in `errors`.
#[derive(Debug, Serialize)]
pub(crate) struct Device {
    pub(crate) ibdev: Option<String>,
    pub(crate) pci: Option<String>,
    pub(crate) port: Port,
    pub(crate) gids: Vec<Gid>,
    #[serde(serialize_with = "told")]
    pub(crate) capabilities: BTreeMap<String, Answer>,
    /// Reasons by the name of what is absent.
    pub(crate) errors: BTreeMap<String, String>,
}

/// The port of a device, of which DOCA knows one.
#[derive(Debug, Serialize)]
pub(crate) struct Port {
    pub(crate) interface: Option<String>,
    pub(crate) link_layer: Option<&'static str>,
    pub(crate) mac: Option<String>,
    pub(crate) lid: Option<u16>,
    pub(crate) ipv4: Option<String>,
    pub(crate) ipv6: Option<String>,
    /// In bits per second.
    pub(crate) rate: Option<u64>,
}

/// An entry of the GID table that is not empty.
#[derive(Debug, Serialize)]
pub(crate) struct Gid {
    pub(crate) index: u32,
    pub(crate) address: String,
    /// None if nothing tells.
    pub(crate) protocol: Option<&'static str>,
    /// Whether traffic can use it.
    pub(crate) usable: bool,
}

impl Device {
    /// Asks a device everything.
    pub(crate) fn ask(info: &DeviceInfo) -> Device {
        let mut errors = BTreeMap::new();
        let mac = kept("mac", info.mac_address(), &mut errors).flatten();
        let lid = kept("lid", info.lid(), &mut errors).flatten();
        let port = Port {
            interface: kept("interface", info.iface_name(), &mut errors),
            link_layer: match (mac, lid) {
                (_, Some(_)) => Some("InfiniBand"),
                (Some(_), None) => Some("Ethernet"),
                (None, None) => None,
            },
            mac: mac.map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":")),
            lid,
            ipv4: kept("ipv4", info.ipv4_address(), &mut errors).flatten().map(|ip| ip.to_string()),
            ipv6: kept("ipv6", info.ipv6_address(), &mut errors).flatten().map(|ip| ip.to_string()),
            rate: kept("rate", info.active_rate(), &mut errors),
        };
        let gids = kept("gids", gid::table(info), &mut errors).unwrap_or_default();
        let mut capabilities = BTreeMap::new();
        for questions in super::ALL {
            take(&Snapshot::of(info, questions), &mut capabilities, &mut errors);
        }
        Device {
            ibdev: kept("ibdev", info.ibdev_name(), &mut errors),
            pci: kept("pci", info.pci_address(), &mut errors),
            port,
            gids: gids.iter().filter(|gid| !gid.is_empty()).map(entry).collect(),
            capabilities,
            errors,
        }
    }

    /// Its name for people.
    pub(crate) fn name(&self) -> &str {
        self.ibdev.as_deref().or(self.pci.as_deref()).unwrap_or("device without name")
    }

    /// Everything, for people.
    pub(crate) fn text(&self) -> String {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        let Port { interface, link_layer, mac, lid, ipv4, ipv6, rate } = &self.port;
        let mut text = format!("{} at {}\n", self.name(), shown(&self.pci));
        let rows = [
            ("interface", shown(interface)),
            ("link layer", link_layer.unwrap_or("-").to_owned()),
            ("mac", shown(mac)),
            ("lid", shown(&lid.map(|lid| lid.to_string()))),
            ("ipv4", shown(ipv4)),
            ("ipv6", shown(ipv6)),
            ("rate", rate.map_or_else(|| "-".into(), speed)),
        ];
        text += &columns(&rows.map(|(name, value)| vec![name.to_owned(), value]));
        if self.gids.is_empty() {
            text += "  no GID\n";
        } else {
            let mut rows = vec![["GID", "ADDRESS", "PROTOCOL"].map(str::to_owned).to_vec()];
            for gid in &self.gids {
                let protocol = gid.protocol.unwrap_or("unknown").to_owned();
                rows.push(vec![gid.index.to_string(), gid.address.clone(), protocol]);
            }
            text += &columns(&rows);
        }
        let shown = |answer: &Answer| answer.map_or_else(|| "unknown".into(), |value| value.to_string());
        let mut rows = vec![["CAPABILITY", "VALUE"].map(str::to_owned).to_vec()];
        rows.extend(self.capabilities.iter().map(|(name, answer)| vec![name.clone(), shown(answer)]));
        text += &columns(&rows);
        for (name, reason) in &self.errors {
            _ = writeln!(text, "  {name} is unknown: {reason}");
        }
        text
    }
}

/// A value, or none with the reason kept.
fn kept<T>(name: &str, result: Result<T>, errors: &mut BTreeMap<String, String>) -> Option<T> {
    result.map_err(|error| errors.insert(name.to_owned(), error.to_string())).ok()
}

fn take(snapshot: &Snapshot, into: &mut BTreeMap<String, Answer>, errors: &mut BTreeMap<String, String>) {
    for (name, answer) in snapshot.iter() {
        let value = match answer {
            Ok(Told::Supported(yes)) => Some(Value::Supported(yes)),
            Ok(Told::Number(number)) => Some(Value::Number(number)),
            Ok(other) => {
                errors.insert(
                    name.to_owned(),
                    format!("{other} is an answer of a kind that is not known here"),
                );
                None
            }
            Err(reason) => {
                errors.insert(name.to_owned(), reason.to_owned());
                None
            }
        };
        into.insert(name.to_owned(), value);
    }
}

fn entry(gid: &gid::Gid) -> Gid {
    Gid {
        index: gid.index,
        address: gid.address().to_string(),
        protocol: match gid.protocol {
            Protocol::RoceV1 => Some("RoCE v1"),
            Protocol::RoceV2 => Some("RoCE v2"),
            Protocol::InfiniBand => Some("InfiniBand"),
            _ => None,
        },
        usable: gid.is_usable(),
    }
}

/// Bits per second for people.
fn speed(rate: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "Gb/s"), (1_000_000, "Mb/s"), (1_000, "kb/s")];
    match UNITS.iter().find(|(unit, _)| rate >= *unit && rate.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", rate / unit),
        None => format!("{rate} b/s"),
    }
}

/// Answers as JSON has them: true, false, a number, or null.
fn told<S: serde::Serializer>(
    answers: &BTreeMap<String, Answer>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let json = |answer: &Answer| match answer {
        Some(Value::Supported(yes)) => (*yes).into(),
        Some(Value::Number(number)) => (*number).into(),
        None => serde_json::Value::Null,
    };
    serializer.collect_map(answers.iter().map(|(name, answer)| (name, json(answer))))
}
