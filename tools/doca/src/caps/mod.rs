//! `doca caps`: devices, ports, GIDs and every capability, for people and for scripts.

mod condition;
mod device;

use crate::{Failure, Outcome};
use condition::{Condition, Misunderstood};
use device::Device;
use doca_common::DeviceInfo;
use doca_common::caps::Capability;
use serde::Serialize;
use std::fmt::Write as _;

/// The capabilities of each library.
const ALL: &[&[Capability]] = &[
    doca_common::device::CAPABILITIES,
    doca_rdma::caps::ALL,
    #[cfg(feature = "sta")]
    doca_sta::caps::ALL,
    #[cfg(feature = "comch")]
    doca_comch::caps::ALL,
];

/// Libraries whose capabilities this program does not know: how their names begin, and the feature that it lacks.
const UNBUILT: &[(&str, &str)] = &[
    #[cfg(not(feature = "sta"))]
    ("sta.", "sta"),
    #[cfg(not(feature = "comch"))]
    ("comch.", "comch"),
];

/// Tell what each device has and can do
///
/// Asks DOCA for devices, ports, GIDs and every capability. With --require the answer is an exit status: whether one of
/// the devices meets all conditions. A condition is the name of a capability, which must be supported or above zero, or
/// a name compared with a number by >=, <=, ==, > or <.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit status: 0 the conditions are met, 1 they are not, 2 they are not understood or DOCA fails."
)]
pub(crate) struct Args {
    /// Only the device of this name: RDMA device, PCI address or interface
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Conditions, as in 'rdma.atomic_cmp_swp,rdma.max_send_queue_size>=128'
    #[arg(long, value_name = "CONDITIONS")]
    require: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Everything that was asked and answered.
#[derive(Debug, Serialize)]
struct Report {
    /// Release of the loaded DOCA libraries.
    version: Option<String>,
    devices: Vec<Device>,
    /// For each device and condition, whether it holds.
    requirements: Vec<Requirement>,
    /// Whether a device meets all conditions.
    ok: bool,
}

/// One condition on one device.
#[derive(Debug, Serialize)]
struct Requirement {
    device: String,
    condition: String,
    met: bool,
    /// What the device says.
    found: String,
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let conditions = args.require.as_deref().map(condition::parse).transpose()?.unwrap_or_default();
    let names: Vec<_> = ALL.iter().flat_map(|list| list.iter().map(|capability| capability.name)).collect();
    conditions.iter().try_for_each(|condition| condition.check_name(&names, UNBUILT))?;
    let chosen = chosen(args.device.as_deref())?;
    let devices: Vec<Device> = chosen.iter().map(Device::ask).collect();
    let (requirements, ok) = judge(&conditions, &devices)?;
    let version = doca_common::version::version().loaded.map(|version| version.to_string());
    let report = Report { version, devices, requirements, ok };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.text(args.require.is_some()));
    }
    Ok(if ok { Outcome::Good } else { Outcome::Unmet })
}

/// The devices of a name, or all.
fn chosen(name: Option<&str>) -> Result<Vec<DeviceInfo>, Failure> {
    let all = DeviceInfo::list()?;
    let Some(name) = name else { return Ok(all) };
    let chosen: Vec<_> = all.iter().filter(|device| device.is_called(name)).cloned().collect();
    if chosen.is_empty() {
        let names: Vec<_> = all.iter().map(ToString::to_string).collect();
        let there = if names.is_empty() { "no device".into() } else { names.join(", ") };
        return Err(format!("no device is called {name}; there is {there}").into());
    }
    Ok(chosen)
}

/// Each condition on each device, and whether one device meets all.
fn judge(conditions: &[Condition], devices: &[Device]) -> Result<(Vec<Requirement>, bool), Misunderstood> {
    let mut requirements = Vec::new();
    let mut ok = conditions.is_empty();
    for device in devices {
        let mut all = true;
        for condition in conditions {
            let (met, found) = condition.check(&device.capabilities)?;
            all &= met;
            let found = found.map_or_else(|| "unknown".into(), |value| value.to_string());
            let device = device.name().to_owned();
            requirements.push(Requirement { device, condition: condition.to_string(), met, found });
        }
        ok |= all;
    }
    Ok((requirements, ok))
}

impl Report {
    /// For people: the devices, or only the conditions if there are any.
    fn text(&self, judged: bool) -> String {
        let mut text = String::new();
        if self.devices.is_empty() {
            text += "no device\n";
        }
        if !judged {
            _ = writeln!(text, "DOCA {}", self.version.as_deref().unwrap_or("of unknown version"));
            for device in &self.devices {
                text += &device.text();
            }
        }
        for Requirement { device, condition, met, found } in &self.requirements {
            let verdict = if *met { "ok" } else { "FAILED" };
            _ = writeln!(text, "{device}: {condition}: {verdict}, the device says {found}");
        }
        text
    }
}
