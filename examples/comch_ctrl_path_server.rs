//! Takes a message of a client on the host and answers it, as NVIDIA's sample of this name does: the peer may be that
//! sample's client or ours.
//!
//! ```text
//! comch_ctrl_path_server -p 03:00.0 -r 3b:00.0 -t TEXT          on the DPU
//! comch_ctrl_path_client -p 3b:00.0 -t TEXT                     on the host
//! ```
//!
//! Without `-p` and `-r` the addresses are those of NVIDIA's samples, `b1:00.0` for the host's function; `doca caps` lists
//! those that there are. In the simulator a process is on the DPU with `DOCA_SIM_SIDE=dpu`:
//!
//! ```sh
//! DOCA_SIM_SIDE=dpu cargo sim run --features comch --example comch_ctrl_path_server -- -p 03:00.0 -r 3b:00.0 &
//! cargo sim run --features comch --example comch_ctrl_path_client -- -p 3b:00.0
//! ```

#[allow(dead_code, unused_imports, reason = "each example uses a part")]
#[path = "support/comch.rs"]
mod support;

use doca::ProgressEngine;
use support::{Options, Outcome, PATIENCE};

fn main() -> std::process::ExitCode {
    support::run("03:00.0", serve)
}

fn serve(options: &Options) -> Outcome<()> {
    let (_device, config) = options.server("comch_ctrl_path_sample_server")?;
    let engine = ProgressEngine::new()?;
    let server = config.start(&engine)?.running()?;
    println!("Server is running");
    let client = server.wait()?;
    println!("New client connected to server");
    support::print(&client.receive()?);
    client.send(options.text.as_bytes())?;
    client.wait_sent_for(PATIENCE)?;
    println!("Task sent successfully");
    server.stop().wait_for(PATIENCE)?;
    Ok(())
}
