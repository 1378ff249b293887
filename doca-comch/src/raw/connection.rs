//! `doca_comch_connection`, and the callbacks that tell of messages, connections and consumers.

use crate::connection::{ConnectionId, Counters};
use crate::control::Control;
use crate::run::Run;
use doca_common::engine::Core;
use doca_common::raw::{as_number, current, number};
use doca_common::{Result, call};
use doca_sys::{
    doca_comch_connection, doca_comch_counter, doca_comch_event_connection_status_changed,
    doca_comch_event_consumer, doca_comch_event_msg_recv,
};
use std::any::Any;
use std::ptr::NonNull;
use std::rc::Rc;

/// A connection in C. It is valid until its end was told, or the server ended it, or its context is idle; its entry in
/// the table forgets it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link(NonNull<doca_comch_connection>);

impl Link {
    pub(crate) fn new(connection: *mut doca_comch_connection) -> Option<Self> {
        NonNull::new(connection).map(Link)
    }

    pub(crate) fn as_ptr(self) -> *mut doca_comch_connection {
        self.0.as_ptr()
    }

    /// Makes callbacks name the entry in the table.
    pub(crate) fn address_to(self, id: ConnectionId) -> Result<()> {
        // SAFETY: valid: this is its connect callback, or the table has it.
        unsafe { call!(doca_comch_connection_set_user_data(self.as_ptr(), number(id.to_bits()))) }
    }

    /// The entry that it names. No entry has the number 0, which connections begin with.
    fn id(self) -> ConnectionId {
        // SAFETY: valid: DOCA passed it to the callback that asks.
        ConnectionId::from_bits(as_number(unsafe {
            doca_sys::doca_comch_connection_get_user_data(self.as_ptr())
        }))
    }

    /// The counters as they are now.
    pub(crate) fn counters(self) -> Result<Counters> {
        // SAFETY: the table has valid connections only.
        unsafe { call!(doca_comch_connection_update_info(self.as_ptr())) }?;
        let counter = |kind| {
            let mut value = 0;
            // SAFETY: as above, and the out-parameter is a local.
            unsafe { call!(doca_comch_connection_get_counter(self.as_ptr(), kind, &mut value)) }
                .map(|()| value)
        };
        Ok(Counters {
            sent_messages: counter(doca_comch_counter::DOCA_COMCH_COUNTER_SENT_MESSAGES)?,
            sent_bytes: counter(doca_comch_counter::DOCA_COMCH_COUNTER_SENT_BYTES)?,
            received_messages: counter(doca_comch_counter::DOCA_COMCH_COUNTER_RECV_MESSAGES)?,
            received_bytes: counter(doca_comch_counter::DOCA_COMCH_COUNTER_RECV_BYTES)?,
        })
    }

    /// The user data of the context that it belongs to: which member of the engine that is.
    fn owner(self) -> Option<u64> {
        let mut data = number(0);
        // SAFETY: valid: DOCA passed it to the callback that asks. Its end is alive as long as it is, and the
        // out-parameter is a local.
        unsafe {
            let server = doca_sys::doca_comch_server_get_server_ctx(self.as_ptr());
            let context = if server.is_null() {
                let client = doca_sys::doca_comch_client_get_client_ctx(self.as_ptr());
                if client.is_null() {
                    return None;
                }
                doca_sys::doca_comch_client_as_ctx(client)
            } else {
                doca_sys::doca_comch_server_as_ctx(server)
            };
            match call!(doca_ctx_get_user_data(context, &mut data)) {
                Ok(()) => Some(as_number(data)),
                Err(error) => {
                    log::warn!("{error}: what came over a connection is lost");
                    None
                }
            }
        }
    }
}

/// Finds the run that a callback belongs to.
fn with_run(connection: *mut doca_comch_connection, body: impl FnOnce(&Core, &Rc<Run>, Link)) {
    let Some(link) = Link::new(connection) else { return };
    let Some(owner) = link.owner() else { return };
    current::member(owner, |core, member| {
        if let Some(run) = (member as &dyn Any).downcast_ref::<Control>().and_then(Control::run) {
            body(core, &run, link);
        }
    });
}

/// A message has come; its bytes are valid in here.
pub(crate) unsafe extern "C" fn received(
    _event: *mut doca_comch_event_msg_recv,
    bytes: *mut u8,
    len: u32,
    connection: *mut doca_comch_connection,
) {
    let message: &[u8] = if bytes.is_null() || len == 0 {
        &[]
    } else {
        // SAFETY: DOCA passes `len` bytes that stay until this returns, and nobody writes them meanwhile.
        unsafe { std::slice::from_raw_parts(bytes, len as usize) }
    };
    with_run(connection, |core, run, link| {
        if run.received(link, link.id(), message) {
            core.mark();
        }
    });
}

/// A client has come, or failed to.
pub(crate) unsafe extern "C" fn connected(
    _event: *mut doca_comch_event_connection_status_changed,
    connection: *mut doca_comch_connection,
    success: u8,
) {
    with_run(connection, |core, run, link| {
        core.mark();
        run.connected((success != 0).then_some(link));
    });
}

/// A client has gone.
pub(crate) unsafe extern "C" fn disconnected(
    _event: *mut doca_comch_event_connection_status_changed,
    connection: *mut doca_comch_connection,
    _success: u8,
) {
    with_run(connection, |core, run, link| {
        core.mark();
        run.disconnected(link, link.id());
    });
}

/// A consumer of the peer has come.
pub(crate) unsafe extern "C" fn consumer_up(
    _event: *mut doca_comch_event_consumer,
    connection: *mut doca_comch_connection,
    consumer: u32,
) {
    with_run(connection, |core, run, link| {
        core.mark();
        run.consumer_up(link, link.id(), consumer);
    });
}

/// A consumer of the peer has gone.
pub(crate) unsafe extern "C" fn consumer_down(
    _event: *mut doca_comch_event_consumer,
    connection: *mut doca_comch_connection,
    consumer: u32,
) {
    with_run(connection, |core, run, link| {
        core.mark();
        run.consumer_down(link, link.id(), consumer);
    });
}
