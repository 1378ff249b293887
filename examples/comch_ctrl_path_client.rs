//! Sends a message to a server on the DPU and waits for its answer, as NVIDIA's sample of this name does. The command
//! lines are in `comch_ctrl_path_server.rs`.

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
#[path = "support/comch.rs"]
mod support;

use doca::ProgressEngine;
use support::{Options, Outcome, PATIENCE};

fn main() -> std::process::ExitCode {
    support::run("b1:00.0", ask)
}

fn ask(options: &Options) -> Outcome<()> {
    let (_device, config) = options.client("comch_ctrl_path_sample_server")?;
    let engine = ProgressEngine::new()?;
    let client = config.start(&engine)?.running_within(PATIENCE)?;
    let server = client.connection()?;
    println!("Client is running. Sending");
    server.send(options.text.as_bytes())?;
    server.wait_sent_for(PATIENCE)?;
    println!("Task sent successfully");
    support::print(&server.receive_for(PATIENCE)?);
    client.stop().wait_for(PATIENCE)?;
    Ok(())
}
