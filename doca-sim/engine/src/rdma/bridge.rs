//! `doca_rdma_bridge_*`: connections that a program's own event loop over librdmacm makes.
//!
//! ```text
//! client             the program's channel            the instance
//!   --Request-->     CONNECT_REQUEST, new id   --->   prepare: the id is DOCA's now
//!   <---------------------------------------Reply--   accept
//!   --Ready---->     ESTABLISHED               --->   established
//!   --Disconnect->   DISCONNECTED              --->   doca_rdma_connection_disconnect
//! ```
//!
//! A client's program may lend its connection, too, where hardware has queue pairs of libibverbs:
//!
//! ```text
//! the program's channel                 the instance                               server
//! rdma_connect, without a queue pair                                --Request-->
//! CONNECT_RESPONSE               --->   prepare: the id is DOCA's now  <--Reply--
//!                                       established                 --Ready---->
//! ```
//!
//! Data pass the program by. Its channel tells all there is to tell, so the instance's own callbacks stay silent about such
//! connections. (Proposed.)

use super::connection::{ConnState, Connection, Origin};
use super::{Addr, Rdma, cm};
use crate::code::{Code, Res};
use crate::fabric::mailbox::Kind;
use crate::log;
use crate::rdmacm::OwnedId;
use crate::topology;
use std::rc::Rc;

impl Rdma {
    /// `doca_rdma_bridge_prepare_connection`: a connection that keeps the identifier. On failure the client is rejected.
    pub fn bridge_prepare(&self, id: OwnedId) -> Res<Rc<Connection>> {
        let running = cm::running(self)?;
        if self.properties.transport.get() != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let asks = id.is_answered();
        if !asks && !id.is_request() {
            log::error!(
                "bridge: the rdma_cm_id is neither one of a CONNECT_REQUEST that waits for an answer, nor one of a \
                 CONNECT_RESPONSE"
            );
            return Err(Code::INVALID_VALUE);
        }
        if id.device() != Some(self.device_index() as usize) {
            let asked = id.device().and_then(|index| topology::get().ok()?.devices.get(index));
            log::error!(
                "bridge: the connection is on {}, this doca_rdma is on {}",
                asked.map_or("no device", |device| device.ibdev.as_str()),
                self.device().ibdev
            );
            return Err(Code::INVALID_VALUE);
        }
        let far = id.far().filter(|_| asks || id.client_waits()).ok_or(Code::CONNECTION_ABORTED)?;
        let connection = running.new_connection(Origin::Bridge, ConnState::Requested)?;
        connection.set_far(far);
        connection.own_control.set(id.control());
        if let Ok(addr) = Addr::of_listener(self.device(), id.port()) {
            let _ = connection.own_addr.set(Box::new(addr));
        }
        *connection.bridged.borrow_mut() = Some(id);
        if asks {
            cm::join(&running, &connection, far)?;
            connection.set_state(ConnState::Accepted);
        }
        Ok(connection)
    }

    /// `doca_rdma_bridge_accept`
    pub fn bridge_accept(&self, connection: &Connection, private_data: &[u8]) -> Res {
        let running = cm::running(self)?;
        let connection = running.find(connection).ok_or(Code::INVALID_VALUE)?;
        if connection.origin != Origin::Bridge || connection.state() != ConnState::Requested {
            return Err(Code::BAD_STATE);
        }
        if private_data.len() > cm::MAX_PRIVATE_DATA {
            return Err(Code::INVALID_VALUE);
        }
        let far = connection.far().ok_or(Code::UNEXPECTED)?;
        let waits = connection.bridged.borrow().as_ref().is_some_and(OwnedId::client_waits);
        let (Some(mailbox), true) = (connection.far_mailbox(), waits) else {
            log::error!("bridge: the client gave up before the request was accepted");
            running.end_connection(&connection);
            return Err(Code::CONNECTION_ABORTED);
        };
        cm::join(&running, &connection, far)?;
        connection.set_state(ConnState::Accepted);
        if let Some(id) = &*connection.bridged.borrow() {
            id.accepted();
        }
        let reply = cm::message(self, &running, &connection, Kind::Reply, 0, private_data)?;
        cm::send(&running, mailbox, reply);
        Ok(())
    }

    /// `doca_rdma_bridge_established`: from now on this side may send. A client's side tells the server.
    pub fn bridge_established(&self, connection: &Connection) -> Res {
        let running = cm::running(self)?;
        let connection = running.find(connection).ok_or(Code::INVALID_VALUE)?;
        if connection.origin != Origin::Bridge || connection.state() != ConnState::Accepted {
            return Err(Code::INVALID_VALUE);
        }
        let (asked, far) = match &*connection.bridged.borrow() {
            Some(id) => (id.is_answered(), id.far()),
            None => (false, None),
        };
        if asked {
            let mailbox = connection.far_mailbox().ok_or(Code::INVALID_VALUE)?;
            let ready = cm::message(self, &running, &connection, Kind::Ready, 0, &[])?;
            cm::send(&running, mailbox, ready);
            if let Some(id) = &*connection.bridged.borrow() {
                id.confirmed();
            }
        } else if let Some(far) = far.filter(|far| connection.far() != Some(*far)) {
            // The client's data end has named itself with its confirmation.
            cm::join(&running, &connection, far)?;
        }
        connection.set_state(ConnState::Established);
        connection.pump_far(running.view());
        Ok(())
    }
}
