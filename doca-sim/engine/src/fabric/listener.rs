//! RDMA CM ports and names of Comch: who listens where.
//!
//! A claim is a file of the network for other processes, and an entry in a table for this one, which must not look up its
//! own files: see [`super::network`].

use super::context::{ContextId, LinkId};
use super::descriptor::ProcessRef;
use super::network::{self, Address, Claim};
use super::process;
use crate::code::Res;
use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A server may think about a request for this many of the client's timeouts. (Proposed.)
pub const THINKING: u64 = 10;

/// This process's listeners.
static OURS: Mutex<BTreeMap<Address, ContextId>> = Mutex::new(BTreeMap::new());

/// An address that this process has; given back when dropped.
#[derive(Debug)]
pub struct Listener {
    at: Address,
    _claim: Claim,
}

/// Whom to send a request to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The listener's process.
    pub process: ProcessRef,
    /// The context whose mailbox takes requests.
    pub context: ContextId,
    /// What requests are addressed to there: see [`name`].
    pub link: LinkId,
}

/// The name of the listeners on a device, which are no end of a connection: those have a generation.
pub fn name(device: u32) -> LinkId {
    LinkId { index: device, generation: 0 }
}

impl Address {
    fn device(&self) -> u32 {
        match self {
            Address::Port(device, _) | Address::Name(device, _) => *device,
        }
    }
}

impl Listener {
    /// Takes an address for a context. IN_USE if a living process has it.
    pub fn claim(at: Address, context: ContextId) -> Res<Listener> {
        let me = process::local()?.reference();
        let text = format!(
            "{} {} {:x} {:x} {} {}\n",
            me.pid, me.salt, me.token[0], me.token[1], context.index, context.generation
        );
        let claim = process::network()?.claim_listener(&at, &text)?;
        lock(&OURS).insert(at.clone(), context);
        Ok(Listener { at, _claim: claim })
    }

    /// The device: its position in the topology.
    pub fn device(&self) -> u32 {
        self.at.device()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        lock(&OURS).remove(&self.at);
    }
}

/// Who has an address.
pub fn find(at: &Address) -> Option<Found> {
    let link = name(at.device());
    let path = process::network().ok()?.listener_path(at);
    if network::is_ours(&path) {
        let context = *lock(&OURS).get(at)?;
        return Some(Found { process: process::local().ok()?.reference(), context, link });
    }
    let (text, _witness) = network::read_published(&path).ok()?;
    let mut words = text.split_ascii_whitespace();
    let pid = words.next()?.parse().ok()?;
    let salt = words.next()?.parse().ok()?;
    let mut token = || u64::from_str_radix(words.next()?, 16).ok();
    let token = [token()?, token()?];
    let index = words.next()?.parse().ok()?;
    let generation = words.next()?.parse().ok()?;
    Some(Found { process: ProcessRef { pid, salt, token }, context: ContextId { index, generation }, link })
}
