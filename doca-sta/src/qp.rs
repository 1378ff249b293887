//! Queue pairs: connections with initiators.
//!
//! ```text
//!  Io::accept ────────────> Qp: CREATED ── established ──> CONNECTED ──┐
//!  Io::spare ── accept ──────^     │                                   │ disconnect, or it is dropped,
//!                                  └───────────────────────────────────┴─ or the transport fails ──> DISCONNECTED
//! ```
//!
//! A connection carries commands that DOCA executes only after its Connect command: [`bind`](Qp::bind) it to its
//! subsystem and set [its size](Qp::set_sq_size), then answer.

use crate::config::Subsystem;
use crate::io_instance::IoInstance;
use doca_common::context::Member;
use doca_common::{Error, Refusal, Result};
use std::fmt;
use std::rc::Rc;

/// Names a queue pair of an IO context. It stays unique after the queue pair is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct QpId {
    pub(crate) channel: u16,
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl fmt::Display for QpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "qp {}.{}.{}", self.channel, self.index, self.generation)
    }
}

/// Where a queue pair is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum QpState {
    /// Its request was accepted; the initiator has not confirmed yet.
    Created,
    /// Commands come.
    Connected,
    /// It is over.
    Disconnected,
}

/// Size of a submission queue as the Connect command has it: one less than the number of its entries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SqSize(u16);

impl SqSize {
    /// From the SQSIZE field of a Connect command.
    pub const fn from_connect(field: u16) -> Self {
        SqSize(field)
    }

    /// Entries of the queue.
    pub const fn entries(self) -> u32 {
        self.0 as u32 + 1
    }

    pub(crate) fn field(self) -> u16 {
        self.0
    }
}

/// A queue pair that was connected. Dropping it disconnects, by progress. It stays on the thread of its IO context.
pub struct Qp {
    io: Rc<IoInstance>,
    id: QpId,
}

impl Qp {
    pub(crate) fn new(io: Rc<IoInstance>, id: QpId) -> Self {
        Qp { io, id }
    }

    /// Its name; commands and events say it.
    pub fn id(&self) -> QpId {
        self.id
    }

    /// Where it is now.
    pub fn state(&self) -> QpState {
        self.io.qp_state(self.id)
    }

    /// Tells DOCA that both sides are connected, as [`CmEvent::Established`](crate::cm::CmEvent::Established) says:
    /// `doca_sta_io_qp_connect_established`. Commands come from now on.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotConnected`] when it is over, `BAD_STATE` if it was told before.
    #[doc(alias = "doca_sta_io_qp_connect_established")]
    pub fn established(&self) -> Result<()> {
        self.io.qp_established(self.id)
    }

    /// Binds it to the subsystem that the Connect command names: `doca_sta_io_qp_add_subsystem`.
    ///
    /// # Errors
    ///
    /// [`Refusal::OtherContext`] for a subsystem of another target, [`Refusal::NotConnected`], `ALREADY_EXIST` if it is
    /// bound to another one.
    #[doc(alias = "doca_sta_io_qp_add_subsystem")]
    pub fn bind(&self, subsystem: &Subsystem) -> Result<()> {
        const CALL: &str = "doca_sta_io_qp_add_subsystem";
        if subsystem.serial != self.io.family().serial {
            return Err(Error::refused(CALL, Refusal::OtherContext).with(subsystem.nqn()));
        }
        let handle = self.io.open_handle(CALL, self.id)?;
        self.io.handle().bind(handle, subsystem.handle)
    }

    /// Sets the size of the submission queue, before the Connect command is answered:
    /// `doca_sta_io_qp_connect_set_sq_size`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] above the device's limit, [`Refusal::NotConnected`], or DOCA's.
    #[doc(alias = "doca_sta_io_qp_connect_set_sq_size")]
    pub fn set_sq_size(&self, size: SqSize) -> Result<()> {
        const CALL: &str = "doca_sta_io_qp_connect_set_sq_size";
        let most = self.io.family().limits.queue_size;
        if u64::from(size.entries()) > most {
            let text = format!("{} entries exceed sta.io_queue_size = {most}", size.entries());
            return Err(Error::refused(CALL, Refusal::Capability).with(text));
        }
        let handle = self.io.open_handle(CALL, self.id)?;
        self.io.handle().set_sq_size(handle, size.field())
    }

    /// Begins to disconnect: `doca_sta_io_task_disconnect_alloc_init`. Commands that were not answered never will be. It
    /// is [`Disconnected`](QpState::Disconnected) by progress. One that is over already is no error.
    #[doc(alias = "doca_sta_io_task_disconnect_alloc_init")]
    pub fn disconnect(&self) {
        self.io.end_qp(self.id);
    }

    /// Its number on the network: `doca_sta_io_qp_get_id`.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotConnected`] when it is over, or DOCA's.
    #[doc(alias = "doca_sta_io_qp_get_id")]
    pub fn number(&self) -> Result<u32> {
        let handle = self.io.open_handle("doca_sta_io_qp_get_id", self.id)?;
        self.io.handle().number(handle)
    }

    /// The port that it is on: `doca_sta_io_qp_get_port_id`.
    ///
    /// # Errors
    ///
    /// As for [`number`](Qp::number).
    #[doc(alias = "doca_sta_io_qp_get_port_id")]
    pub fn port(&self) -> Result<u16> {
        let handle = self.io.open_handle("doca_sta_io_qp_get_port_id", self.id)?;
        self.io.handle().port(handle)
    }

    /// The execution unit that serves it, by [`Eu::id`](crate::event::Eu::id), and its place there:
    /// `doca_sta_io_qp_get_group_id`, `doca_sta_io_qp_get_index_in_group`.
    ///
    /// # Errors
    ///
    /// As for [`number`](Qp::number).
    #[doc(alias = "doca_sta_io_qp_get_group_id")]
    #[doc(alias = "doca_sta_io_qp_get_index_in_group")]
    pub fn place(&self) -> Result<(u16, u16)> {
        let handle = self.io.open_handle("doca_sta_io_qp_get_group_id", self.id)?;
        Ok((self.io.handle().group(handle)?, self.io.handle().index_in_group(handle)?))
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        self.io.end_qp(self.id);
    }
}

impl fmt::Debug for Qp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Qp({}, {:?}, {:?})", self.id, self.state(), self.io.life().state())
    }
}
