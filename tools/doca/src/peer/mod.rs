//! Two of these commands on two machines, one serving and one asking. They meet by RDMA CM, and whatever they tell
//! each other goes over the same DOCA RDMA connection as what they try.

mod client;
mod message;
mod server;

pub(crate) use client::{Client, Presence};
pub(crate) use message::{LONGEST, pattern};

use crate::{Failure, Outcome};
use doca_common::Device;
use doca_common::caps::Capability;
use doca_rdma::{Config, Rdma, gid};

/// Where to meet.
#[derive(clap::Args, Debug)]
pub(crate) struct Place {
    /// Address at which this command serves on the other machine; without it, serve
    address: Option<String>,
    /// RDMA device, by name, PCI address or interface; else the first that can do it
    #[arg(short, long, value_name = "NAME")]
    device: Option<String>,
    /// Port of RDMA CM
    #[arg(short, long, default_value_t = 13579)]
    port: u16,
    /// Serve until the first client has gone, instead of for ever
    #[arg(long, conflicts_with = "address")]
    once: bool,
}

impl Place {
    /// The address to ask, if this side does not serve.
    pub(crate) fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// Serves whoever asks.
    pub(crate) fn serve(&self) -> Result<Outcome, Failure> {
        server::serve(self)?;
        Ok(Outcome::Good)
    }

    /// Opens the device, which must have all this.
    pub(crate) fn open(&self, wanted: &[Capability]) -> doca_common::Result<Device> {
        let find = wanted.iter().fold(Device::find(), |find, &capability| find.with(capability));
        match (&self.device, find.list()?.first()) {
            (None, Some(first)) => first.open(),
            // Opening says what is there instead.
            (None, None) => find.open(),
            (Some(name), _) => find.called(name).open(),
        }
    }
}

/// An idle context. On Ethernet the entry of the GID table must be one for RoCE v2; on InfiniBand DOCA's own choice is
/// right.
fn configure(device: &Device) -> doca_common::Result<Config> {
    let mut config = Rdma::configure(device)?;
    if gid::roce_v2(&device.info()).is_ok() {
        config.set_gid_roce_v2()?;
    }
    Ok(config)
}
