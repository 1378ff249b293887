//! Prints whether devices can control a storage target, and every limit.
//!
//! ```sh
//! cargo sim run -p doca-sta-target --example sta_caps [DEVICE]
//! ```

use doca_common::DeviceInfo;
use doca_sta::{caps, diagnosis};
use doca_tool_output::println;

fn main() -> doca_common::Result<()> {
    let wanted = std::env::args().nth(1);
    for device in DeviceInfo::list()? {
        if wanted.as_deref().is_some_and(|name| !device.is_called(name)) {
            continue;
        }
        println!("{device}");
        match diagnosis::check_device(&device) {
            Some(finding) => println!("  not for targets: {finding}"),
            None => caps::snapshot(&device).to_string().lines().for_each(|line| println!("  {line}")),
        }
    }
    Ok(())
}
