//! RDMA CM ports: who listens where.
//!
//! A claim is a file of the network for other processes, and an entry in a table for this one, which must not look up its
//! own files: see [`super::network`].

use super::context::{ContextId, LinkId};
use super::descriptor::ProcessRef;
use super::network::{self, Claim};
use super::process;
use crate::code::Res;
use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// This process's listeners, by device and port.
static OURS: Mutex<BTreeMap<(u32, u16), ContextId>> = Mutex::new(BTreeMap::new());

/// A port of a device that this process has; given back when dropped.
#[derive(Debug)]
pub struct Listener {
    at: (u32, u16),
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

impl Listener {
    /// Takes a port of a device for a context. IN_USE if a living process has it.
    pub fn claim(device: u32, port: u16, context: ContextId) -> Res<Listener> {
        let me = process::local()?.reference();
        let text = format!(
            "{} {} {:x} {:x} {} {}\n",
            me.pid, me.salt, me.token[0], me.token[1], context.index, context.generation
        );
        let claim = process::network()?.claim_listener(device, port, &text)?;
        lock(&OURS).insert((device, port), context);
        Ok(Listener { at: (device, port), _claim: claim })
    }

    /// The device: its position in the topology.
    pub fn device(&self) -> u32 {
        self.at.0
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        lock(&OURS).remove(&self.at);
    }
}

/// Who has a port of a device.
pub fn find(device: u32, port: u16) -> Option<Found> {
    let link = name(device);
    let path = process::network().ok()?.listener_path(device, port);
    if network::is_ours(&path) {
        let context = *lock(&OURS).get(&(device, port))?;
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
