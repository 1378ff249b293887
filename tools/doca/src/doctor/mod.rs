//! `doca doctor`: looks at a machine layer by layer, lowest first, because a fault below explains those above.

#[cfg(feature = "device")]
mod devices;
#[cfg(not(feature = "device"))]
#[path = "no_devices.rs"]
mod devices;
mod sdk;
mod system;

use crate::table::columns;
use crate::{Failure, Outcome};
use sdk::Sdk;
use serde::Serialize;

/// Look for what keeps DOCA programs from being built and run on this machine
///
/// Goes through the layers from below: installation, versions, build, link, permissions, devices. Each fault comes with the
/// next step. A fault in a low layer explains those above it, so begin with the first.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit status: 0 nothing is wrong, 1 something is, 2 the question is not understood.")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where a fault is, lowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Layer {
    /// The installation, and what this user may do.
    Env,
    /// Parts of different releases.
    Version,
    /// What a compiler needs.
    Build,
    /// What the loader needs.
    Link,
    /// Devices and their addresses.
    Runtime,
    /// Kernel modules.
    Driver,
}

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Ok,
    /// Good to know; programs run nevertheless.
    Note,
    Wrong,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) layer: Layer,
    pub(crate) level: Level,
    pub(crate) text: String,
    /// The next step, for all that is not well.
    pub(crate) next: Option<String>,
}

impl Finding {
    pub(crate) fn ok(layer: Layer, text: impl Into<String>) -> Finding {
        Finding { layer, level: Level::Ok, text: text.into(), next: None }
    }

    pub(crate) fn note(layer: Layer, text: impl Into<String>, next: impl Into<String>) -> Finding {
        Finding { layer, level: Level::Note, text: text.into(), next: Some(next.into()) }
    }

    pub(crate) fn wrong(layer: Layer, text: impl Into<String>, next: impl Into<String>) -> Finding {
        Finding { layer, level: Level::Wrong, text: text.into(), next: Some(next.into()) }
    }
}

/// Everything that was looked at.
#[derive(Debug, Serialize)]
struct Report {
    /// Whether the installation that was found is the simulator; none if none was found.
    simulator: Option<bool>,
    findings: Vec<Finding>,
    ok: bool,
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let sdk = Sdk::find();
    let loaded = || sdk::loaded_simulator().is_some().then_some(true);
    let simulator = sdk.as_ref().ok().map(|sdk| sdk.simulator).or_else(loaded);
    let mut findings = match &sdk {
        Ok(sdk) => sdk.findings(devices::loaded()),
        Err(finding) => vec![finding.clone()],
    };
    if simulator != Some(true) {
        findings.extend(system::findings());
    }
    findings.extend(devices::findings());
    findings.sort_by_key(|finding| finding.layer);
    let ok = findings.iter().all(|finding| finding.level != Level::Wrong);
    let report = Report { simulator, findings, ok };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.text());
    }
    Ok(if ok { Outcome::Good } else { Outcome::Unmet })
}

impl Report {
    fn text(&self) -> String {
        let mut rows = Vec::new();
        for finding in &self.findings {
            let level = match finding.level {
                Level::Ok => "ok",
                Level::Note => "note",
                Level::Wrong => "WRONG",
            };
            let layer = format!("{:?}", finding.layer).to_lowercase();
            rows.push(vec![level.to_owned(), layer, finding.text.clone()]);
            if let Some(next) = &finding.next {
                rows.push(vec![String::new(), String::new(), format!("next: {next}")]);
            }
        }
        columns(&rows)
    }
}
