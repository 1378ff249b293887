//! `doca_comch.h`: servers, clients, connections, messages.

use crate::code::{Code, Res};
use crate::comch::{
    self, Client, Conf, Connection, ConsumerCallback, Endpoint, MessageCallback, Server, StatusCallback,
};
use crate::ctx::{Context, Ctx};
use crate::dev::{Dev, DevRep, Devinfo};
use crate::entry;
use crate::entry::{In, Out, Text};
use crate::fabric::channel::End;
use crate::task::{Task, TaskCallback};
use crate::topology::{ComchCaps, Device};
use std::ptr::null;
use std::rc::Rc;
use std::sync::Arc;

/// A limit of the device.
pub(super) fn limit(devinfo: &In<Devinfo>, out: &Out<u32>, of: impl FnOnce(&ComchCaps) -> u32) -> Res {
    out.put(of(&devinfo.get()?.device().comch))
}

/// An ability of the device, told by the return code.
pub(super) fn ability(devinfo: &In<Devinfo>, has: impl FnOnce(&Device) -> bool) -> Res {
    if has(devinfo.get()?.device()) { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

/// Two callbacks and a number of tasks.
pub(super) fn conf(success: Option<TaskCallback>, failure: Option<TaskCallback>, count: u32) -> Res<Conf> {
    let (Some(success), Some(failure)) = (success, failure) else { return Err(Code::INVALID_VALUE) };
    Ok(Conf { success, failure, count })
}

fn pair<T>(first: Option<T>, second: Option<T>) -> Res<[T; 2]> {
    let (Some(first), Some(second)) = (first, second) else { return Err(Code::INVALID_VALUE) };
    Ok([first, second])
}

fn register<T>(endpoint: &Endpoint, place: &std::cell::Cell<Option<T>>, callback: T) -> Res {
    endpoint.ctx().require_idle()?;
    place.set(Some(callback));
    Ok(())
}

/// The server or client of a connection, if it is of that kind.
fn owner(connection: &In<Connection>, end: End) -> Option<Rc<Endpoint>> {
    connection.get().ok()?.owner().upgrade().filter(|owner| owner.end == end)
}

entry! {
    /// Longest name of a server, with its NUL.
    fn doca_comch_cap_get_max_name_len(devinfo: In<Devinfo>, max_name_len: Out<u32>) {
        limit(&devinfo, &max_name_len, |caps| caps.max_name_len)
    }

    /// Largest message.
    fn doca_comch_cap_get_max_msg_size(devinfo: In<Devinfo>, size: Out<u32>) {
        limit(&devinfo, &size, |caps| caps.max_msg_size)
    }

    /// Deepest receive queue.
    fn doca_comch_cap_get_max_recv_queue_size(devinfo: In<Devinfo>, size: Out<u32>) {
        limit(&devinfo, &size, |caps| caps.max_recv_queue_size)
    }

    /// Most clients of one server.
    fn doca_comch_cap_get_max_clients(devinfo: In<Devinfo>, num_clients: Out<u32>) {
        limit(&devinfo, &num_clients, |caps| caps.max_clients)
    }

    /// Most send tasks.
    fn doca_comch_cap_get_max_send_tasks(devinfo: In<Devinfo>, max_send_tasks: Out<u32>) {
        limit(&devinfo, &max_send_tasks, |caps| caps.max_send_tasks)
    }

    /// Devices of the DPU.
    fn doca_comch_cap_server_is_supported(devinfo: In<Devinfo>) {
        ability(&devinfo, comch::serves)
    }

    /// Devices of the host.
    fn doca_comch_cap_client_is_supported(devinfo: In<Devinfo>) {
        ability(&devinfo, comch::connects)
    }

    /// A server, which is found once it is started.
    fn doca_comch_server_create(dev: In<Dev>, repr: In<DevRep>, name: Text, comch_server: Out<*const Endpoint>) {
        comch_server.check()?;
        let endpoint = Endpoint::new(dev.get()?, Some(repr.get()?), name.get()?.to_bytes())?;
        comch_server.put(Rc::into_raw(endpoint))
    }

    /// A client, which looks for its server when it is started.
    fn doca_comch_client_create(dev: In<Dev>, name: Text, comch_client: Out<*const Endpoint>) {
        comch_client.check()?;
        comch_client.put(Rc::into_raw(Endpoint::new(dev.get()?, None, name.get()?.to_bytes())?))
    }

    /// IN_USE unless IDLE, and while producers or consumers are alive.
    fn doca_comch_server_destroy(comch_server: In<Server>) {
        comch_server.get()?.0.retire()?;
        // SAFETY: made by `Rc::into_raw` in doca_comch_server_create; the tag, now dead, lets this line be reached once.
        drop(unsafe { Rc::from_raw(comch_server.raw().cast::<Endpoint>()) });
        Ok(())
    }

    /// IN_USE unless IDLE, and while producers or consumers are alive.
    fn doca_comch_client_destroy(comch_client: In<Client>) {
        comch_client.get()?.0.retire()?;
        // SAFETY: made by `Rc::into_raw` in doca_comch_client_create; the tag, now dead, lets this line be reached once.
        drop(unsafe { Rc::from_raw(comch_client.raw().cast::<Endpoint>()) });
        Ok(())
    }

    /// The representor of the server.
    fn doca_comch_server_get_device_rep(comch_server: In<Server>, rep: Out<*const DevRep>) {
        rep.put(comch_server.get()?.0.rep().map_or(null(), Arc::as_ptr))
    }

    /// Ends a connection; nothing more is told of it.
    fn doca_comch_server_disconnect(comch_server: In<Server>, connection: In<Connection>) {
        comch_server.get()?.0.disconnect(connection.get()?)
    }

    /// The connection of a client that is RUNNING.
    fn doca_comch_client_get_connection(comch_client: In<Client>, connection: Out<*const Connection>) {
        connection.check()?;
        connection.put(Rc::as_ptr(&comch_client.get()?.0.own_connection()?))
    }

    /// Both callbacks, or none.
    fn doca_comch_server_event_connection_status_changed_register(
        comch_server: In<Server>, connect_event_cb: Option<StatusCallback>,
        disconnect_event_cb: Option<StatusCallback>,
    ) {
        let endpoint = &comch_server.get()?.0;
        register(endpoint, &endpoint.on_status, pair(connect_event_cb, disconnect_event_cb)?)
    }

    /// The program's word.
    fn doca_comch_connection_set_user_data(connection: In<Connection>, user_data: u64) {
        connection.get()?.set_user_data(user_data);
        Ok(())
    }

    /// The word set last, 0 for NULL.
    fn doca_comch_connection_get_user_data(connection: In<Connection>) -> u64 = 0; {
        connection.get().map_or(0, Connection::user_data)
    }

    /// NULL for the connection of a client.
    fn doca_comch_server_get_server_ctx(connection: In<Connection>) -> *const Endpoint = null(); {
        owner(&connection, End::Server).map_or(null(), |owner| Rc::as_ptr(&owner))
    }

    /// NULL for the connection of a server.
    fn doca_comch_client_get_client_ctx(connection: In<Connection>) -> *const Endpoint = null(); {
        owner(&connection, End::Client).map_or(null(), |owner| Rc::as_ptr(&owner))
    }

    /// The same pointer.
    fn doca_comch_task_send_as_task(task: In<Task>) -> *const Task = null(); { task.raw() }

    /// Takes the counters down.
    fn doca_comch_connection_update_info(comch_connection: In<Connection>) {
        comch_connection.get()?.update_info()
    }

    /// A counter as it was taken down.
    fn doca_comch_connection_get_counter(
        comch_connection: In<Connection>, counter_type: u32, counter_value: Out<u64>,
    ) {
        let value = comch_connection.get()?.counter(counter_type)?;
        counter_value.put(value)
    }
}

/// What servers and clients have alike.
macro_rules! both {
    ($object:ident: $get_device:ident, $set_max:ident, $get_max:ident, $set_queue:ident, $get_queue:ident, $as_ctx:ident,
     $set_conf:ident, $alloc_init:ident, $on_message:ident, $on_consumer:ident) => {
        entry! {
            /// The device.
            fn $get_device(object: In<$object>, dev: Out<*const Dev>) {
                dev.put(Arc::as_ptr(object.get()?.0.dev()))
            }

            /// BAD_STATE unless IDLE.
            fn $set_max(object: In<$object>, size: u32) {
                object.get()?.0.set_max_msg_size(size)
            }

            /// In every state.
            fn $get_max(object: In<$object>, size: Out<u32>) {
                size.put(object.get()?.0.capacity().message)
            }

            /// BAD_STATE unless IDLE.
            fn $set_queue(object: In<$object>, size: u32) {
                object.get()?.0.set_recv_queue_size(size)
            }

            /// In every state.
            fn $get_queue(object: In<$object>, size: Out<u32>) {
                size.put(object.get()?.0.capacity().depth)
            }

            /// The context.
            fn $as_ctx(object: In<$object>) -> *const Ctx = null(); {
                object.get().map_or(null(), |object| std::ptr::from_ref(object.0.ctx()))
            }

            /// BAD_STATE unless IDLE.
            fn $set_conf(
                object: In<$object>, success: Option<TaskCallback>, failure: Option<TaskCallback>, count: u32,
            ) {
                object.get()?.0.set_conf(conf(success, failure, count)?)
            }

            /// A message on a connection that is up.
            fn $alloc_init(
                object: In<$object>, peer: In<Connection>, msg: *const u8, len: u32, task: Out<*const Task>,
            ) {
                let (object, peer) = (object.get()?, peer.get()?);
                task.check()?;
                task.put(object.0.message(peer, msg, len)?)
            }

            /// BAD_STATE unless IDLE.
            fn $on_message(object: In<$object>, callback: Option<MessageCallback>) {
                let endpoint = &object.get()?.0;
                register(endpoint, &endpoint.on_message, callback.ok_or(Code::INVALID_VALUE)?)
            }

            /// BAD_STATE unless IDLE; both callbacks, or none.
            fn $on_consumer(
                object: In<$object>, come: Option<ConsumerCallback>, gone: Option<ConsumerCallback>,
            ) {
                let endpoint = &object.get()?.0;
                register(endpoint, &endpoint.on_consumer, pair(come, gone)?)
            }
        }
    };
}

both!(Server: doca_comch_server_get_device, doca_comch_server_set_max_msg_size, doca_comch_server_get_max_msg_size,
    doca_comch_server_set_recv_queue_size, doca_comch_server_get_recv_queue_size, doca_comch_server_as_ctx,
    doca_comch_server_task_send_set_conf, doca_comch_server_task_send_alloc_init,
    doca_comch_server_event_msg_recv_register, doca_comch_server_event_consumer_register);
both!(Client: doca_comch_client_get_device, doca_comch_client_set_max_msg_size, doca_comch_client_get_max_msg_size,
    doca_comch_client_set_recv_queue_size, doca_comch_client_get_recv_queue_size, doca_comch_client_as_ctx,
    doca_comch_client_task_send_set_conf, doca_comch_client_task_send_alloc_init,
    doca_comch_client_event_msg_recv_register, doca_comch_client_event_consumer_register);
