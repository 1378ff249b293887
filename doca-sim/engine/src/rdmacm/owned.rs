//! Identifiers that a program has handed to DOCA: the bridge of libdoca_rdma, and the queue pairs of libdoca_sta.
//!
//! Their events go on coming to the program's channel. The identifier ends with the [`OwnedId`], which tells the other
//! side.

use super::id::State;
use super::layout::CmId;
use super::{INVALID, Outcome, cm};
use crate::fabric::mailbox::Control;
use crate::log;
use crate::rdma::Far;

/// An identifier that is DOCA's.
#[derive(Debug)]
pub struct OwnedId(usize);

impl OwnedId {
    /// Takes an identifier from its program. EINVAL for what is none of this library's, and for what was taken before.
    pub fn take(id: *mut CmId) -> Outcome<OwnedId> {
        let mut cm = cm();
        match cm.ids.get_mut(&id.addr()) {
            Some(known) if !known.owned => {
                known.owned = true;
                Ok(OwnedId(known.key()))
            }
            Some(_) => {
                log::error!("this rdma_cm_id has been handed to DOCA before");
                Err(INVALID)
            }
            None => {
                log::error!(
                    "{id:p} is no rdma_cm_id of this simulator; programs find its librdmacm through LD_LIBRARY_PATH"
                );
                Err(INVALID)
            }
        }
    }

    /// Whether a client waits for an answer to it, which a listener has not given yet.
    pub fn is_request(&self) -> bool {
        cm().ids.get(&self.0).is_some_and(|id| id.state == State::Requested)
    }

    /// Whether it is a client's that the server has accepted and that has not confirmed yet.
    pub fn is_answered(&self) -> bool {
        cm().ids.get(&self.0).is_some_and(|id| id.state == State::Answered)
    }

    /// DOCA has confirmed the connection for the client.
    pub fn confirmed(&self) {
        if let Some(id) = cm().ids.get_mut(&self.0) {
            id.state = State::Established;
        }
    }

    /// Whether the client is still there.
    pub fn client_waits(&self) -> bool {
        cm().ids.get(&self.0).is_some_and(|id| id.client_waits())
    }

    /// The client.
    pub fn far(&self) -> Option<Far> {
        cm().ids.get(&self.0)?.far
    }

    /// The client's end that takes the data, once the client has confirmed: whatever has come to the channel is looked at.
    pub fn confirmed_far(&self) -> Option<Far> {
        let mut cm = cm();
        let channel = cm.ids.get(&self.0)?.channel;
        cm.look(channel);
        let id = cm.ids.get(&self.0)?;
        id.far.filter(|_| matches!(id.state, State::Established | State::Left))
    }

    /// Ends the connection; the program's channel is told as after `rdma_disconnect`.
    pub fn disconnect(&self) {
        cm().end(self.0);
    }

    /// Where the client's letters are to go.
    pub fn control(&self) -> Option<Control> {
        Some(cm().ids.get(&self.0)?.control())
    }

    /// The device that the client asked: its position in the topology.
    pub fn device(&self) -> Option<usize> {
        cm().ids.get(&self.0)?.device
    }

    /// The port that the client asked.
    pub fn port(&self) -> u16 {
        cm().ids.get(&self.0).and_then(|id| id.source).map_or(0, |source| source.port())
    }

    /// DOCA has accepted the client.
    pub fn accepted(&self) {
        if let Some(id) = cm().ids.get_mut(&self.0) {
            id.state = State::Accepted;
        }
    }
}

impl Drop for OwnedId {
    /// Where `rdma_destroy_id` would wait for the program's acknowledgements, this leaves the end to the last of them: it
    /// may be called on the thread that owes it.
    fn drop(&mut self) {
        let mut cm = cm();
        cm.farewell(self.0);
        let Some(id) = cm.ids.get_mut(&self.0) else { return };
        if id.unacked == 0 {
            cm.ids.remove(&self.0);
            return;
        }
        id.doomed = true;
        log::warning!(
            "{} events of an rdma_cm_id that DOCA destroys are not acknowledged; with hardware this waits for it",
            id.unacked
        );
    }
}
