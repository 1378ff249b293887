//! Sends bulk data to a server on the DPU and receives some, as NVIDIA's sample of this name does. The command lines are
//! in `comch_data_path_high_speed_server.rs`.

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
#[path = "support/comch.rs"]
mod support;

use doca::ProgressEngine;
use support::{Options, Outcome, PATIENCE, START, STOP};

fn main() -> std::process::ExitCode {
    support::run("b1:00.0", ask)
}

fn ask(options: &Options) -> Outcome<()> {
    let (device, config) = options.client("comch_data_path_sample_server")?;
    let engine = ProgressEngine::new()?;
    let client = config.start(&engine)?.running_within(PATIENCE)?;
    let server = client.connection()?;
    println!("Client is running. Sending");
    server.send(START)?;
    support::expect(&server, START)?;

    let consumer = server.wait_consumer_for(&[], PATIENCE)?;
    support::send_bulk(&engine, &device, &server, &consumer, &options.text)?;
    support::receive_bulk(&engine, &device, &server)?;

    server.send(STOP)?;
    support::expect(&server, STOP)?;
    println!("Client task sent successfully");
    client.stop().wait_for(PATIENCE)?;
    Ok(())
}
