//! A queue pair's end of its connection: its send queue, and the far end.

use super::memory::Buffer;
use super::qp::Sent;
use crate::fabric::context::{ContextView, LinkId, LinkState};
use crate::fabric::operation::{Operation, Outcome, Post, Wait};
use crate::fabric::process;
use crate::fabric::queue::{self, Head};
use crate::fabric::region::Piece;
use crate::fabric::{clock, context};
use crate::rdma::Far;
use crate::rdmacm::OwnedId;
use crate::topology;
use std::collections::VecDeque;
use std::sync::Arc;

/// The end of a connection.
pub(super) struct Wire {
    pub(super) view: Arc<ContextView>,
    pub(super) link: LinkId,
    pub(super) id: Option<OwnedId>,
    /// The far end, once it has named itself.
    pub(super) far: Option<(Far, Arc<ContextView>)>,
    /// Packets are steered here.
    pub(super) steered: bool,
    /// Room for answers, one for each entry of the send queue.
    pub(super) answers: Buffer,
    pub(super) posted: u64,
    pub(super) reported: u64,
    pub(super) sent: VecDeque<(Operation, Sent)>,
    last_look: u64,
}

impl Wire {
    pub(super) fn new(
        view: Arc<ContextView>,
        link: LinkId,
        id: OwnedId,
        answers: Buffer,
        steered: bool,
        position: u64,
    ) -> Wire {
        Wire {
            view,
            link,
            id: Some(id),
            far: None,
            steered,
            answers,
            posted: position,
            reported: position,
            sent: VecDeque::new(),
            last_look: 0,
        }
    }

    pub(super) fn state(&self) -> LinkState {
        self.view.named_link(self.link).map_or(LinkState::Error, context::Link::state)
    }

    pub(super) fn is_full(&self) -> bool {
        self.posted - self.reported >= u64::from(self.view.sizes().sends)
    }

    pub(super) fn pump(&self) {
        queue::pump(&self.view, self.link.index, self.far.as_ref().map(|(_, view)| &**view));
    }

    /// Whether the far end is still to be found.
    pub(super) fn is_lonely(&self) -> bool {
        self.far.is_none() && self.steered
    }

    /// Finds the far end that takes the data: it names itself when it confirms.
    pub(super) fn look(&mut self, now: u64) -> bool {
        if !self.is_lonely() || now.saturating_sub(self.last_look) < clock::millis(1) {
            return false;
        }
        self.last_look = now;
        let Some(far) = self.id.as_ref().and_then(OwnedId::confirmed_far) else { return false };
        let view = process::attach(far.process).and_then(|process| process.context(far.context));
        let (Ok(view), Some(link)) = (view, self.view.named_link(self.link)) else { return false };
        link.connect(context::FarEnd {
            process: far.process.id().bits(),
            context: far.context,
            link: far.link,
        });
        // It may have sent something already.
        queue::pump(&view, far.link.index, Some(&self.view));
        self.far = Some((far, view));
        true
    }

    /// The far end's context and link, for serving what it has sent.
    pub(super) fn far_view(&self) -> Option<(Arc<ContextView>, u32)> {
        self.far.as_ref().map(|(far, view)| (view.clone(), far.link.index))
    }

    pub(super) fn post(&mut self, post: &Post, piece: Piece, sent: Sent) {
        queue::post_send(&self.view, self.link.index, self.posted, post, [piece].into_iter());
        self.posted += 1;
        self.sent.push_back((post.operation, sent));
    }

    /// Breaks the connection; what is queued is flushed.
    pub(super) fn cut(&self) {
        if let Some(link) = self.view.named_link(self.link) {
            link.set_state(LinkState::Error);
        }
        self.pump();
    }

    /// Ends operations that wait for a peer in vain.
    pub(super) fn look_after(&self) {
        match queue::head(&self.view, self.link.index) {
            Head::Orphaned => queue::fail_head(&self.view, self.link.index, Outcome::Abandoned),
            Head::Waiting(Wait::Peer, since) => {
                let patience =
                    topology::get().map_or(0, |t| clock::millis(t.timeouts.transport_timeout_ms.into()));
                let dead = self.far.as_ref().is_some_and(|(_, view)| !view.process().is_alive());
                if dead || clock::now() >= since.saturating_add(patience) {
                    queue::fail_head(&self.view, self.link.index, Outcome::Unreachable);
                }
            }
            // A receiver that is not ready is retried for ever, as initiators ask.
            Head::Waiting(Wait::Receive, _) | Head::Idle | Head::Moving => {}
        }
        self.pump();
    }
}
