//! Prints whether devices can control a storage target, and every limit.
//!
//! ```sh
//! cargo sim run -p doca-sta-target --example sta_caps [DEVICE]
//! ```

use doca_common::{Device, DeviceInfo};
use doca_sta::{caps, diagnosis};
use doca_tool_output::println;
use std::process::ExitCode;

fn main() -> ExitCode {
    match print_all(std::env::args().nth(1).as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sta_caps: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_all(wanted: Option<&str>) -> doca_common::Result<()> {
    let mut devices = DeviceInfo::list()?;
    if let Some(name) = wanted {
        devices.retain(|device| device.is_called(name));
        if devices.is_empty() {
            // Its error says which there are.
            Device::open(name)?;
        }
    }
    for device in devices {
        println!("{device}");
        match diagnosis::check_device(&device) {
            Some(finding) => println!("  not for targets: {finding}"),
            None => caps::snapshot(&device).to_string().lines().for_each(|line| println!("  {line}")),
        }
    }
    Ok(())
}
