//! `rdma/rdma_cma.h`: connection management. `libs/rdmacm.c` passes the calls on; what needs verbs ends there.
//!
//! Functions give 0, or -1 and `errno`.

use crate::entry;
use crate::entry::Text;
use crate::log;
use crate::rdmacm::layout::{AddrInfo, CmEvent, CmId, ConnParam, EventChannel, IbvContext};
use crate::rdmacm::{Errno, Outcome, addrinfo, channel, event, id};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

const NO: Outcome = Err(Errno(libc::EINVAL));

fn set_errno(errno: Errno) {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = errno.0 };
}

fn answer(outcome: Outcome) -> c_int {
    match outcome {
        Ok(()) => 0,
        Err(errno) => {
            set_errno(errno);
            -1
        }
    }
}

/// A pointer, or NULL and `errno`.
fn pointer<T>(outcome: Outcome<*mut T>) -> *mut T {
    outcome.unwrap_or_else(|errno| {
        set_errno(errno);
        ptr::null_mut()
    })
}

/// Writes a result where the program wants it; EINVAL for NULL, before anything is done.
fn put<T>(room: *mut T, make: impl FnOnce() -> Outcome<T>) -> c_int {
    if room.is_null() {
        return answer(NO);
    }
    answer(make().map(|made| {
        // SAFETY: not NULL, and by the header room for one.
        unsafe { room.write(made) };
    }))
}

/// Parameters that a program lends, or none.
fn lent<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: by the header NULL or valid during the call, for which alone it is used.
    unsafe { pointer.as_ref() }
}

fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: not NULL, and by the header a C string.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

entry! {
    /// A new event channel.
    fn rdma_create_event_channel() -> *mut EventChannel = ptr::null_mut(); {
        pointer(channel::create())
    }

    /// Ends an event channel.
    fn rdma_destroy_event_channel(channel: *mut EventChannel) -> () = (); {
        if channel::destroy(channel).is_err() {
            log::error!("rdma_destroy_event_channel: no such channel");
        }
    }

    /// A new identifier.
    fn rdma_create_id(
        channel: *mut EventChannel, made: *mut *mut CmId, context: *mut c_void, ps: u32,
    ) -> c_int = -1; {
        put(made, || id::create(channel, context, ps))
    }

    /// Ends an identifier.
    fn rdma_destroy_id(cm_id: *mut CmId) -> c_int = -1; {
        answer(id::destroy(cm_id))
    }

    /// Takes an address of this side.
    fn rdma_bind_addr(cm_id: *mut CmId, addr: *const libc::sockaddr) -> c_int = -1; {
        // SAFETY: by the header NULL or a socket address.
        answer(unsafe { id::bind(cm_id, addr) })
    }

    /// Finds the device of an address, and one of this side from which it is reached.
    fn rdma_resolve_addr(
        cm_id: *mut CmId, from: *const libc::sockaddr, to: *const libc::sockaddr, timeout: c_int,
    ) -> c_int = -1; {
        let _ = timeout;
        // SAFETY: by the header NULL or socket addresses.
        answer(unsafe { id::resolve_addr(cm_id, from, to) })
    }

    /// Finds the way there.
    fn rdma_resolve_route(cm_id: *mut CmId, timeout: c_int) -> c_int = -1; {
        let _ = timeout;
        answer(id::resolve_route(cm_id))
    }

    /// Asks a server.
    fn rdma_connect(cm_id: *mut CmId, param: *const ConnParam) -> c_int = -1; {
        // SAFETY: by the header the parameters name private data that are there.
        answer(unsafe { id::connect(cm_id, lent(param)) })
    }

    /// Confirms a server's answer.
    fn rdma_establish(cm_id: *mut CmId) -> c_int = -1; {
        answer(id::establish(cm_id))
    }

    /// Waits for clients.
    fn rdma_listen(cm_id: *mut CmId, backlog: c_int) -> c_int = -1; {
        let _ = backlog;
        answer(id::listen(cm_id))
    }

    /// The next client of a listener without a channel.
    fn rdma_get_request(listener: *mut CmId, cm_id: *mut *mut CmId) -> c_int = -1; {
        put(cm_id, || id::get_request(listener))
    }

    /// Accepts a client.
    fn rdma_accept(cm_id: *mut CmId, param: *const ConnParam) -> c_int = -1; {
        // SAFETY: by the header the parameters name private data that are there.
        answer(unsafe { id::accept(cm_id, lent(param)) })
    }

    /// Rejects a client.
    fn rdma_reject(cm_id: *mut CmId, data: *const u8, len: u8) -> c_int = -1; {
        // SAFETY: by the header NULL or so many bytes.
        answer(unsafe { id::reject(cm_id, data, len) })
    }

    /// Ends a connection.
    fn rdma_disconnect(cm_id: *mut CmId) -> c_int = -1; {
        answer(id::disconnect(cm_id))
    }

    /// The next event of a channel.
    fn rdma_get_cm_event(channel: *mut EventChannel, event: *mut *mut CmEvent) -> c_int = -1; {
        put(event, || event::next(channel).map(|event| event.pointer))
    }

    /// Gives an event back.
    fn rdma_ack_cm_event(event: *mut CmEvent) -> c_int = -1; {
        answer(event::acknowledge(event))
    }

    /// This side's port, in network order.
    fn rdma_get_src_port(cm_id: *mut CmId) -> u16 = 0; {
        id::source_port(cm_id).to_be()
    }

    /// The other side's port, in network order.
    fn rdma_get_dst_port(cm_id: *mut CmId) -> u16 = 0; {
        id::destination_port(cm_id).to_be()
    }

    /// Sets an option.
    fn rdma_set_option(
        cm_id: *mut CmId, level: c_int, name: c_int, value: *const u8, len: usize,
    ) -> c_int = -1; {
        if value.is_null() || isize::try_from(len).is_err() {
            return answer(NO);
        }
        // SAFETY: not NULL, and by the header so many bytes.
        answer(id::set_option(cm_id, level, name, unsafe { std::slice::from_raw_parts(value, len) }))
    }

    /// Moves an identifier to another channel.
    fn rdma_migrate_id(cm_id: *mut CmId, channel: *mut EventChannel) -> c_int = -1; {
        answer(id::migrate(cm_id, channel))
    }

    /// An array of the devices of this side, ended by NULL.
    fn rdma_get_devices(count: *mut c_int) -> *mut *const IbvContext = ptr::null_mut(); {
        pointer(id::all_devices().map(|mut devices| {
            if !count.is_null() {
                // SAFETY: not NULL, and by the header room for one.
                unsafe { count.write(devices.len() as c_int) };
            }
            devices.push(ptr::null());
            // What C frees is a thin pointer: the length is found again by the NULL at the end.
            Box::into_raw(devices.into_boxed_slice()).cast()
        }))
    }

    /// Frees such an array.
    fn rdma_free_devices(list: *mut *const IbvContext) -> () = (); {
        if list.is_null() {
            return;
        }
        // SAFETY: by the header an array of `rdma_get_devices`, whose last element is the first NULL.
        unsafe {
            let len = (0..).take_while(|at| !(*list.add(*at)).is_null()).count() + 1;
            drop(Box::from_raw(ptr::slice_from_raw_parts_mut(list, len)));
        }
    }

    /// Finds addresses by name. Gives what `getaddrinfo` gives.
    fn rdma_getaddrinfo(
        node: *const c_char, service: *const c_char, hints: *const AddrInfo, found: *mut *mut AddrInfo,
    ) -> c_int = -1; {
        if found.is_null() || node.is_null() && service.is_null() && hints.is_null() {
            return answer(NO);
        }
        // SAFETY: by the header the source address of the hints, if any, is a socket address.
        match unsafe { addrinfo::find(text(node), text(service), lent(hints)) } {
            Ok(info) => put(found, || Ok(info)),
            Err(code) => code,
        }
    }

    /// Frees what was found.
    fn rdma_freeaddrinfo(info: *mut AddrInfo) -> () = (); {
        // SAFETY: by the header NULL or what `rdma_getaddrinfo` gave.
        unsafe { addrinfo::free(info) };
    }

    /// For functions that need verbs: -1 and ENOSYS, and a line that names the function.
    fn rdma_refused(name: Text) -> c_int = -1; {
        let name = name.utf8().unwrap_or("a function without a name");
        log::error!("{name}: the simulated librdmacm manages connections only, it has no verbs");
        answer(Err(Errno(libc::ENOSYS)))
    }
}
