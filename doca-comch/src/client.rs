//! Clients: on the host, each of one server.

use crate::connection::Connection;
use crate::control::{Control, ControlPath};
use crate::event::Events;
use crate::lifecycle::{self, Config, Context, Stopping};
use crate::run::Run;
use doca_common::context::{Member, State};
use doca_common::owner::Owner;
use doca_common::{Device, Result};
use std::fmt;
use std::rc::Rc;

/// A client that is connected to its server. Dropping it stops and destroys it, by progress of its engine.
///
/// It also stops by itself, when the server ends the connection, stops, or is found to be gone. Its connection is
/// [`Disconnected`](crate::ConnectionState::Disconnected) then; [`stop`](Client::stop) gets back to where it can be
/// started again, and [`Left::now`](crate::Left::now) tells event loops.
pub struct Client {
    owner: Owner<Control>,
    run: Rc<Run>,
}

impl Client {
    /// Creates an idle client: `doca_comch_client_create`. The server of that name is looked for at each start.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`](doca_common::Refusal::Capability) for a name that is too long,
    /// [`Refusal::Malformed`](doca_common::Refusal::Malformed) for one with a zero byte, `NO_MEMORY`, `INITIALIZATION`.
    #[doc(alias = "doca_comch_client_create")]
    pub fn configure(device: &Device, name: &str) -> Result<Config<Client>> {
        Ok(Config::of(Control::new(device, None, name)?))
    }

    /// The state now: it changes by progress.
    pub fn state(&self) -> State {
        self.owner.life().state()
    }

    /// The connection to the server: `doca_comch_client_get_connection`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Stopped`](doca_common::Refusal::Stopped) if the client left RUNNING before it was first asked for, or
    /// DOCA's.
    #[doc(alias = "doca_comch_client_get_connection")]
    pub fn connection(&self) -> Result<Connection> {
        Ok(Connection::new(self.run.clone(), self.run.own_connection()?))
    }

    /// Records from now on what happens to the connection. There is one record: a new one begins empty.
    pub fn events(&self) -> Events {
        Events::new(self.run.clone())
    }

    /// Stops the client: `doca_ctx_stop`. The server is told. It waits for the producers and consumers on the connection
    /// to end. Inside a callback it is stopped after progress.
    #[doc(alias = "doca_ctx_stop")]
    pub fn stop(self) -> Stopping<Client> {
        lifecycle::stop(self)
    }
}

impl Context for Client {
    type Object = Control;

    fn assemble(owner: Owner<Control>, run: Rc<Run>) -> Self {
        Client { owner, run }
    }

    fn parts(self) -> (Owner<Control>, Rc<Run>) {
        (self.owner, self.run)
    }
}

impl ControlPath for Client {}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?})", &*self.owner)
    }
}
