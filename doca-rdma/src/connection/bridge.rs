//! Connections of a program that runs its own librdmacm loop: it listens there, and DOCA takes its requests over.
//!
//! ```text
//! CONNECT_REQUEST ── bridge ──> Bridging ── accept ──> Accepted ── established ──> Connection
//!                                                        (ESTABLISHED came)          (DISCONNECTED came: disconnect)
//! ```
//!
//! Events come to the program's channel all the time; the instance tells nothing about such connections.

use super::{Connection, ConnectionState, Hold};
use crate::raw::bridge::CmId;
use crate::raw::connection::Link;
use crate::run::Run;
use doca_common::{Error, Failed, Refusal, Result};
use std::rc::Rc;

/// A request that DOCA took over, to be accepted. Dropping it rejects the client, by progress.
#[derive(Debug)]
pub struct Bridging {
    hold: Hold,
}

/// A connection that was accepted; librdmacm tells when it is there. Dropping it ends it, by progress.
#[derive(Debug)]
pub struct Accepted {
    hold: Hold,
}

impl Run {
    pub(crate) fn bridge(self: &Rc<Self>, id: CmId) -> std::result::Result<Bridging, Failed<Option<CmId>>> {
        let started = self.require_started("doca_rdma_bridge_prepare_connection");
        if let Err(error) = started.and_then(|()| self.come_up()) {
            return Err(Failed::new(error, Some(id)));
        }
        let taken = self.instance().handle().bridge_prepare(id).and_then(|link| {
            let id = self.table().borrow_mut().insert(ConnectionState::Bridged, Some(link));
            let bridging = Bridging { hold: Hold::new(self.clone(), id) };
            link.address_to(id).map(|()| bridging)
        });
        taken.map_err(|error| Failed::new(error, None))
    }
}

/// The C connection, if the run goes on.
fn link(hold: &Hold, call: &'static str) -> Result<Link> {
    hold.run.require_started(call)?;
    let link = hold.run.table().borrow().link(hold.id);
    link.ok_or_else(|| Error::refused(call, Refusal::Stale))
}

impl Bridging {
    /// Accepts the client and sends it up to 255 bytes: `doca_rdma_bridge_accept`.
    ///
    /// # Errors
    ///
    /// The request comes back with [`Refusal::TooLong`], [`Refusal::Stopped`], `INVALID_VALUE` for more data than
    /// RDMA CM carries, or `CONNECTION_ABORTED` if the client has gone.
    #[doc(alias = "doca_rdma_bridge_accept")]
    pub fn accept(self, data: &[u8]) -> std::result::Result<Accepted, Failed<Bridging>> {
        let accepted = link(&self.hold, "doca_rdma_bridge_accept")
            .and_then(|link| self.hold.run.instance().handle().bridge_accept(link, data));
        match accepted {
            Ok(()) => Ok(Accepted { hold: self.hold }),
            Err(error) => Err(Failed::new(error, self)),
        }
    }
}

impl Accepted {
    /// Tells DOCA that `RDMA_CM_EVENT_ESTABLISHED` came: `doca_rdma_bridge_established`. Afterwards tasks can be
    /// submitted. When `RDMA_CM_EVENT_DISCONNECTED` comes, call [`Connection::disconnect`].
    ///
    /// # Errors
    ///
    /// The connection comes back with [`Refusal::Stopped`], or `INVALID_VALUE`.
    #[doc(alias = "doca_rdma_bridge_established")]
    pub fn established(self) -> std::result::Result<Connection, Failed<Accepted>> {
        let told = link(&self.hold, "doca_rdma_bridge_established").and_then(|link| {
            self.hold.run.instance().handle().bridge_established(link)?;
            let mut table = self.hold.run.table().borrow_mut();
            table.set_state(self.hold.id, ConnectionState::Connected, Some(link));
            Ok(())
        });
        match told {
            Ok(()) => Ok(Connection::new(self.hold)),
            Err(error) => Err(Failed::new(error, self)),
        }
    }
}
