//! Reading a topology file: JSON, checked to the last field.

use super::settings::{Object, Patched, Set};
use super::{Device, DevicePatch, Side, StaLimits, StaLimitsPatch, Timeouts, TimeoutsPatch, Topology, check};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::ffi::OsString;
use std::fmt;
use std::marker::PhantomData;

const DEFAULT: &str = include_str!("default.json");

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// What the rest of the file changes; absent if it is complete by itself.
    extends: Option<Base>,
    #[serde(default)]
    name: Set<String>,
    #[serde(default)]
    timeouts: Object<TimeoutsPatch>,
    #[serde(default)]
    sta: Object<StaLimitsPatch>,
    #[serde(default)]
    host: Named<Object<DevicePatch>>,
    #[serde(default)]
    dpu: Named<Object<DevicePatch>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Base {
    Default,
}

/// An object whose keys are names: kept in the file's order, no name twice, `null` removes.
struct Named<T>(Vec<(String, Option<T>)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Named(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Names<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a member for each device")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                let mut members: Vec<(String, Option<T>)> = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if members.iter().any(|(other, _)| *other == name) {
                        return Err(A::Error::custom(format!("device `{name}` stands here twice")));
                    }
                    members.push((name, map.next_value()?));
                }
                Ok(Named(members))
            }
        }

        deserializer.deserialize_map(Names(PhantomData))
    }
}

/// Reads the file that the variable names; without one, the default.
pub(super) fn load(path: Option<OsString>) -> Result<Topology, String> {
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return default();
    };
    let shown = path.to_string_lossy();
    let text = std::fs::read_to_string(&path).map_err(|e| format!("topology file {shown}: {e}"))?;
    parse(&text).map_err(|e| format!("topology file {shown}: {e}"))
}

/// The topology that is used when no file is named.
pub(super) fn default() -> Result<Topology, String> {
    parse(DEFAULT).map_err(|e| format!("default topology: {e}"))
}

/// Reads a topology; the error names field, line and column.
pub(super) fn parse(text: &str) -> Result<Topology, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let Object(file) = serde_path_to_error::deserialize(&mut json).map_err(|e| {
        // A member whose name does not end has none: the path then ends in `?`. That of the whole file is `.`.
        match e.path().to_string().trim_end_matches(['.', '?']) {
            "" => e.inner().to_string(),
            path => format!("{path}: {}", e.inner()),
        }
    })?;
    json.end().map_err(|e| e.to_string())?;
    build(file)
}

fn build(file: File) -> Result<Topology, String> {
    let mut topology = match file.extends {
        Some(Base::Default) => default()?,
        None => Topology {
            name: "unnamed".into(),
            timeouts: Timeouts::default(),
            sta: StaLimits::default(),
            devices: Vec::new(),
        },
    };
    topology.name.apply(file.name);
    topology.timeouts.apply(file.timeouts);
    topology.sta.apply(file.sta);
    for (side, members) in [(Side::Host, file.host), (Side::Dpu, file.dpu)] {
        for (name, patch) in members.0 {
            apply(&mut topology.devices, side, name, patch)?;
        }
    }
    topology.devices.sort_by_key(|device| device.side == Side::Dpu);
    for (index, device) in topology.devices.iter_mut().enumerate() {
        device.index = index;
        device.gid_table = check::gid_table(device)?;
    }
    check::topology(&topology)?;
    Ok(topology)
}

/// Changes, adds or removes one device.
fn apply(
    devices: &mut Vec<Device>,
    side: Side,
    name: String,
    patch: Option<Object<DevicePatch>>,
) -> Result<(), String> {
    let position = devices.iter().position(|device| device.side == side && device.ibdev == name);
    match (position, patch) {
        (Some(position), None) => {
            devices.remove(position);
        }
        (Some(position), Some(patch)) => devices[position].apply(patch),
        (None, None) => return Err(format!("{side}.{name}: there is no such device to remove")),
        (None, Some(patch)) => {
            let required = [
                ("pci", patch.0.pci.is_absent()),
                ("iface", patch.0.iface.is_absent()),
                ("mac", patch.0.mac.is_absent()),
            ];
            if let Some((field, _)) = required.iter().find(|(_, absent)| *absent) {
                let known: Vec<&str> =
                    devices.iter().filter(|d| d.side == side).map(|d| d.ibdev.as_str()).collect();
                let hint = match known.as_slice() {
                    [] => String::new(),
                    known => format!(" (devices to change on this side: {})", known.join(", ")),
                };
                return Err(format!("{side}.{name}: a new device needs `{field}`{hint}"));
            }
            let mut device = Device { side, ibdev: name, ..Device::default() };
            device.apply(patch);
            devices.push(device);
        }
    }
    Ok(())
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Host => "host",
            Side::Dpu => "dpu",
        })
    }
}
