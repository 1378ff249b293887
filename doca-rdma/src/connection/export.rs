//! Connections by descriptors: each side exports one, the program carries both across, each side connects.

use super::{Connection, ConnectionState, Hold};
use crate::run::Run;
use doca_common::{Descriptor, Error, Failed, Refusal, Result};
use std::rc::Rc;

/// A connection whose descriptor was made, and that waits for the peer's.
#[derive(Debug)]
pub struct Exported {
    hold: Hold,
}

impl Run {
    pub(crate) fn export(self: &Rc<Self>) -> Result<(Exported, Descriptor)> {
        self.require_started("doca_rdma_export")?;
        let (link, descriptor) = self.instance().handle().export()?;
        let id = self.table().borrow_mut().insert(ConnectionState::Exported, Some(link));
        let exported = Exported { hold: Hold::new(self.clone(), id) };
        link.address_to(id)?;
        Ok((exported, descriptor))
    }
}

impl Exported {
    /// Connects with the peer's descriptor: `doca_rdma_connect`. This sets up our side; the peer may not be there
    /// yet, or not any more. What is sent meanwhile is retried for some time.
    ///
    /// # Errors
    ///
    /// The exported connection comes back with [`Refusal::Stopped`], `CONNECTION_ABORTED` for a descriptor that is
    /// damaged or foreign, or `DRIVER` for another transport.
    #[doc(alias = "doca_rdma_connect")]
    pub fn connect(self, descriptor: impl AsRef<[u8]>) -> std::result::Result<Connection, Failed<Exported>> {
        match self.try_connect(descriptor.as_ref()) {
            Ok(()) => Ok(Connection::new(self.hold)),
            Err(error) => Err(Failed::new(error, self)),
        }
    }

    fn try_connect(&self, descriptor: &[u8]) -> Result<()> {
        const CALL: &str = "doca_rdma_connect";
        let (run, id) = (&self.hold.run, self.hold.id);
        run.require_started(CALL)?;
        let link = run.table().borrow().link(id).ok_or_else(|| Error::refused(CALL, Refusal::Stale))?;
        run.instance().handle().connect(link, descriptor)?;
        run.table().borrow_mut().set_state(id, ConnectionState::Connected, Some(link));
        Ok(())
    }
}
