//! What processes share: the network directory, each process's adapter in shared memory, registered
//! regions, queues and mailboxes. Nothing above this module touches another process.
//!
//! ```text
//! network     the directory: who lives, who listens
//! shm         sealed segments and what may lie in them
//! process     this process's adapter, and attachments to the adapters of others
//! memory      how this process reaches the bytes of another
//! region      registered memory: keys, bounds, rights, hazards, copies
//! bell        who sleeps, and how to wake it
//! context     one segment for each running context: connections, send queues, receive pool, mailbox
//! bits        a bit for each link of a context
//! route       whether two ports reach each other
//! operation   what a send queue entry asks for, and how it ends
//! stream      copies between lists of pieces
//! queue       the NIC: executes the head of a send queue, whoever comes by
//! receives    the receives that all peers of a context share
//! mailbox     connection-management messages
//! listener    who takes requests for connections, at which port or name of which device
//! channel     Comch: the messages of a connection, both ways
//! inbox       Comch: the buffers that a consumer has posted
//! descriptor  export descriptors
//! ```

pub mod bell;
pub mod bits;
pub mod channel;
pub mod clock;
pub mod context;
pub mod descriptor;
pub mod inbox;
pub mod listener;
pub mod mailbox;
pub mod memory;
pub mod network;
pub mod operation;
pub mod process;
pub mod queue;
pub mod receives;
pub mod region;
pub mod route;
pub mod shm;
mod stream;
pub mod word;

use crate::code::Res;
use descriptor::ProcessRef;

/// A process of the fabric, small enough to stand in a lock word: 22 bits of pid, 16 bits of salt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProcId(u64);

impl ProcId {
    const PID_BITS: u32 = 22;

    /// From its parts. (Linux pids have at most 22 bits.)
    pub fn new(pid: u32, salt: u16) -> Self {
        ProcId(u64::from(pid & ((1 << Self::PID_BITS) - 1)) | u64::from(salt) << Self::PID_BITS)
    }

    /// From a lock word.
    pub fn from_bits(bits: u64) -> Self {
        ProcId(bits & ((1 << (Self::PID_BITS + 16)) - 1))
    }

    /// As 38 bits for a lock word.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The process id.
    pub fn pid(self) -> u32 {
        (self.0 & ((1 << Self::PID_BITS) - 1)) as u32
    }

    /// The random part.
    pub fn salt(self) -> u16 {
        (self.0 >> Self::PID_BITS) as u16
    }
}

impl ProcessRef {
    /// The short form.
    pub fn id(&self) -> ProcId {
        ProcId::new(self.pid, self.salt)
    }
}

/// This process, as descriptors name it.
pub fn local_process() -> Res<ProcessRef> {
    Ok(process::local()?.reference())
}
