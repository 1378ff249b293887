//! `cargo sim demo`: two processes exchange a message over DOCA RDMA.

use crate::process::{self, Peer};
use crate::sdk::Sdk;
use crate::{Result, place};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const DEVICE: &str = "mlx5_0";
const ADDRESS_OPTIONS: [&str; 2] = ["-sat", "ip4"];
const DEADLINE: Duration = Duration::from_secs(60);

// What the examples say.
const PROMPT: &str = "press Enter";
const LISTENING: &str = "listening on port";
const POSTED: &str = "The receive is posted";
const SUCCESS: &str = "Sample finished successfully";

const DEMOS: [&str; 3] = ["rdma", "relay", "sta"];

/// `cargo sim demo [rdma]`
pub(crate) fn command(args: &[String]) -> Result {
    match args {
        [] => {}
        [name] if name == "rdma" => {}
        [name] if name == "relay" => return crate::demo_relay::command(),
        [name] if name == "sta" => return crate::demo_sta::command(),
        [name, more, ..] if DEMOS.contains(&name.as_str()) => {
            return Err(format!("demo {name} takes no arguments, got {more}"));
        }
        [other, ..] => return Err(format!("there is no demo `{other}`; there are: {}", DEMOS.join(", "))),
    }
    let sdk = Sdk::ready()?;
    build(&sdk)?;
    introduce(&sdk)?;
    let pair = Pair::new(&sdk)?;
    pair.over_descriptors()?;
    pair.over_cm()?;
    println!("demo rdma: ok");
    Ok(())
}

/// The demo as a test: it succeeds, and it does not where the device cannot send.
pub(crate) fn check(sdk: &Sdk) -> Result {
    build(sdk)?;
    let mut pair = Pair::new(sdk)?;
    pair.over_descriptors()?;
    pair.over_cm()?;
    let topology = pair.network.path().join("no-send.json");
    place::write(&topology, NO_SEND)?;
    pair.topology = Some(topology);
    for (way, outcome) in [("exported descriptors", pair.over_descriptors()), ("RDMA CM", pair.over_cm())] {
        match outcome {
            Err(why) if why.starts_with("rdma_send ") => println!("over {way}, Send switched off: refused"),
            Err(why) => return Err(format!("with Send switched off, something else failed: {why}")),
            Ok(()) => return Err(format!("the demo over {way} succeeds although Send is switched off")),
        }
    }
    Ok(())
}

/// A topology whose first device cannot send.
const NO_SEND: &str =
    r#"{ "extends": "default", "host": { "mlx5_0": { "rdma": { "tasks": { "send": false } } } } }"#;

fn build(sdk: &Sdk) -> Result {
    let examples = ["--example", "rdma_send", "--example", "rdma_receive"];
    process::run(sdk.cargo().current_dir(place::root()).arg("build").args(examples))
}

/// Says which DOCA this is and that the programs link it.
fn introduce(sdk: &Sdk) -> Result {
    let version = process::output(sdk.command("pkg-config").args(["--modversion", "doca-rdma"]))?;
    println!("DOCA {} (software SDK) in {}", version.trim(), sdk.options().prefix.display());
    for program in ["rdma_receive", "rdma_send"] {
        println!("{program} links:");
        for line in process::output(sdk.command("ldd").arg(example(sdk, program)))?.lines() {
            if line.contains("libdoca_") {
                println!("  {}", line.trim());
            }
        }
    }
    Ok(())
}

fn example(sdk: &Sdk, name: &str) -> PathBuf {
    sdk.built("examples").join(name)
}

/// Receiver and sender, on a network of their own unless the user named one.
struct Pair<'a> {
    sdk: &'a Sdk,
    network: tempfile::TempDir,
    topology: Option<PathBuf>,
}

impl<'a> Pair<'a> {
    fn new(sdk: &'a Sdk) -> Result<Self> {
        let network = tempfile::Builder::new().prefix("doca-demo-").tempdir();
        let network = network.map_err(|e| format!("cannot make a directory: {e}"))?;
        Ok(Pair { sdk, network, topology: None })
    }

    /// Connection details travel as files; Enter says that the peer's file is there.
    fn over_descriptors(&self) -> Result {
        let text = random_text();
        let until = Instant::now() + DEADLINE;
        let file = |name: &str| self.network.path().join(name);
        let (ours, theirs) = (file("receiver"), file("sender"));
        let paths = |mine: &Path, peers: &Path| {
            let path = |p: &Path| p.display().to_string();
            ["-ld".to_owned(), path(mine), "-re".to_owned(), path(peers)]
        };
        let mut receiver =
            Peer::start("rdma_receive", self.program("rdma_receive").args(paths(&ours, &theirs)))?;
        let mut sender = Peer::start(
            "rdma_send",
            self.program("rdma_send").args(paths(&theirs, &ours)).args(["-s", &text]),
        )?;
        sender.expect(PROMPT, until)?;
        receiver.expect(PROMPT, until)?;
        receiver.enter()?;
        sender.enter()?;
        conclude("exported descriptors", receiver, sender, &text, until)
    }

    /// RDMA CM connects; Enter says that the receiver has posted.
    fn over_cm(&self) -> Result {
        let text = random_text();
        let until = Instant::now() + DEADLINE;
        let mut receiver = Peer::start("rdma_receive", self.program("rdma_receive").arg("-cm"))?;
        receiver.expect(LISTENING, until)?;
        let address = self.address()?;
        let mut sender = Peer::start(
            "rdma_send",
            self.program("rdma_send").args(["-cm", "-sa", &address, "-s", &text]).args(ADDRESS_OPTIONS),
        )?;
        // The sender first: if it gives up, the receiver waits for ever.
        sender.expect(PROMPT, until)?;
        receiver.expect(POSTED, until)?;
        sender.enter()?;
        conclude("RDMA CM", receiver, sender, &text, until)
    }

    fn program(&self, name: &str) -> Command {
        let mut command = self.sdk.command(example(self.sdk, name));
        command.args(["-d", DEVICE]).env("DOCA_SIM_QUIET", "1");
        if let Some(topology) = &self.topology {
            command.env("DOCA_SIM_TOPOLOGY", topology);
        }
        if std::env::var_os("DOCA_SIM_DIR").is_none() {
            command.env("DOCA_SIM_DIR", self.network.path().join("network"));
        }
        command
    }

    /// The device's IPv4 address, as the SDK's own tool lists it.
    fn address(&self) -> Result<String> {
        let tool = self.sdk.options().prefix.join("tools/doca_caps");
        let listed = process::output(self.sdk.command(tool).arg("--list-devs").env("DOCA_SIM_QUIET", "1"))?;
        address_of(&listed, DEVICE).ok_or(format!("doca_caps lists no ipv4_addr for {DEVICE}:\n{listed}"))
    }
}

/// A device is a block of lines that starts with its PCI address.
fn address_of(listed: &str, device: &str) -> Option<String> {
    let mut mine = false;
    for line in listed.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("ibdev_name") => mine = words.next() == Some(device),
            Some("ipv4_addr") if mine => return words.next().map(str::to_owned),
            _ => {}
        }
    }
    None
}

/// The proof: both succeed, and the receiver has this run's text.
fn conclude(way: &str, mut receiver: Peer, mut sender: Peer, text: &str, until: Instant) -> Result {
    sender.succeed(until)?;
    receiver.succeed(until)?;
    for peer in [&sender, &receiver] {
        if !peer.has_printed(SUCCESS) {
            return Err(peer.report(&format!("did not say `{SUCCESS}`")));
        }
    }
    let proof = format!("Got from sender: \"{text}\"");
    if !receiver.has_printed(&proof) {
        return Err(receiver.report(&format!("did not say `{proof}`")));
    }
    println!("over {way}: {proof}");
    Ok(())
}

/// A text that no earlier run has sent.
fn random_text() -> String {
    format!("message {:016x}", RandomState::new().hash_one(Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_one_of_the_device() {
        let listed = "PCI: 0000:03:00.0\n\tibdev_name mlx5_0\n\tipv4_addr 192.168.1.1\nPCI: 0000:03:00.1\n\t\
            ibdev_name mlx5_1\n\tipv4_addr 192.168.1.2\n";
        assert_eq!(address_of(listed, "mlx5_1").as_deref(), Some("192.168.1.2"));
        assert_eq!(address_of(listed, "mlx5_2"), None);
    }

    #[test]
    fn each_text_is_new() {
        assert_ne!(random_text(), random_text());
    }
}
