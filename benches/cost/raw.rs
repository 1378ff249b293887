//! The same work, written against the C API.

use super::Way;
use doca_sys::*;
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::{null, null_mut};

const LEN: usize = 64;
const ALL: u32 = 1 | 2 | 4 | 8;

fn ok(code: doca_error_t) {
    assert!(code == doca_error_t::DOCA_SUCCESS, "DOCA error {code:?}");
}

/// Calls that fill an out-parameter.
fn made<T>(call: impl FnOnce(*mut *mut T) -> doca_error_t) -> *mut T {
    let mut out = null_mut();
    ok(call(&mut out));
    out
}

fn word() -> doca_data {
    doca_data { u64_: 0 }
}

/// What a task's callback leaves for the loop.
#[derive(Default)]
struct Record {
    /// 0 as long as it is in flight, then [`WELL`] or [`BADLY`].
    ended: u32,
    /// Of a receive.
    len: u32,
    opcode: u32,
    immediate: u32,
    connection: u64,
}

const WELL: u32 = 1;
const BADLY: u32 = 2;

/// A record that outlives all callbacks.
fn record() -> *mut Record {
    Box::leak(Box::default())
}

fn points_to(record: *mut Record) -> doca_data {
    doca_data { ptr: record.cast() }
}

unsafe extern "C" fn received(task: *mut doca_rdma_task_receive, record: doca_data, _: doca_data) {
    // SAFETY: the task's user data is a leaked record, touched by this thread alone; the task succeeded, so its results
    // are there, and its connection is valid in here.
    unsafe {
        let record = record.ptr.cast::<Record>();
        (*record).len = doca_rdma_task_receive_get_result_len(task);
        (*record).opcode = doca_rdma_task_receive_get_result_opcode(task).0;
        if (*record).opcode != 0 {
            (*record).immediate = doca_rdma_task_receive_get_result_immediate_data(task);
        }
        let connection = doca_rdma_task_receive_get_result_rdma_connection(task);
        let mut data = word();
        ok(doca_rdma_connection_get_user_data(connection, &mut data));
        (*record).connection = data.u64_;
        (*record).ended = WELL;
    }
}

unsafe extern "C" fn not_received(_: *mut doca_rdma_task_receive, record: doca_data, _: doca_data) {
    // SAFETY: as above.
    unsafe { (*record.ptr.cast::<Record>()).ended = BADLY };
}

/// An event as a peer names it.
///
/// # Safety
///
/// The device is open, and stays so.
unsafe fn event(dev: *mut doca_dev) -> *mut doca_sync_event_remote_net {
    // SAFETY: as the caller says; each call comes after those that it needs, and nothing is destroyed.
    unsafe {
        let event = made(|out| doca_sync_event_create(out));
        ok(doca_sync_event_add_publisher_location_remote_net(event));
        ok(doca_sync_event_add_subscriber_location_cpu(event, dev));
        ok(doca_sync_event_start(event));
        let (mut bytes, mut len) = (null(), 0);
        ok(doca_sync_event_export_to_remote_net(event, &mut bytes, &mut len));
        made(|out| doca_sync_event_remote_net_create_from_export(dev, bytes, len, out))
    }
}

struct Peers {
    pe: *mut doca_pe,
    left: *mut doca_rdma,
    right: *mut doca_rdma,
    connection: *mut doca_rdma_connection,
    /// Local source, local destination, remote.
    source: *mut doca_buf,
    room: *mut doca_buf,
    remote: *mut doca_buf,
    /// A number to be sent, and an event of the peer.
    number: *mut doca_buf,
    event: *mut doca_sync_event_remote_net,
}

impl Peers {
    fn new(configure: impl FnOnce(*mut doca_rdma) -> doca_error_t) -> Peers {
        // SAFETY: each object is used in the order DOCA asks for, right after the call that made it succeeded. The
        // memory and the counter are leaked, so they outlive the map, the callbacks and all objects made here.
        unsafe {
            let (mut list, mut count) = (null_mut(), 0);
            ok(doca_devinfo_create_list(&mut list, &mut count));
            let dev = made(|out| doca_dev_open(*list, out));
            ok(doca_devinfo_destroy_list(list));
            let pe = made(|out| doca_pe_create(out));
            let memory: *mut u8 = Box::leak(vec![0u64; 1024].into_boxed_slice()).as_mut_ptr().cast();
            let mmap = made(|out| doca_mmap_create(out));
            ok(doca_mmap_set_memrange(mmap, memory.cast(), 8192));
            ok(doca_mmap_set_permissions(mmap, ALL));
            ok(doca_mmap_add_dev(mmap, dev));
            ok(doca_mmap_start(mmap));
            let (mut descriptor, mut len) = (null(), 0);
            ok(doca_mmap_export_rdma(mmap, dev, &mut descriptor, &mut len));
            let far = made(|out| doca_mmap_create_from_export(null(), descriptor, len, dev, out));
            let inventory = made(|out| doca_buf_inventory_create(8, out));
            ok(doca_buf_inventory_start(inventory));
            let buf = |mmap, at: usize, data| {
                made(|out| {
                    let addr: *mut c_void = memory.add(at).cast();
                    doca_buf_inventory_buf_get_by_args(inventory, mmap, addr, LEN, addr, data, out)
                })
            };
            let side = || made(|out| doca_rdma_create(dev, out));
            let (left, right) = (side(), side());
            ok(configure(left));
            ok(doca_rdma_task_receive_set_conf(right, Some(received), Some(not_received), 4));
            ok(doca_rdma_set_permissions(right, ALL));
            for rdma in [left, right] {
                let ctx = doca_rdma_as_ctx(rdma);
                ok(doca_pe_connect_ctx(pe, ctx));
                ok(doca_ctx_start(ctx));
            }
            let export = |rdma| {
                let (mut blob, mut len) = (null(), 0);
                let connection = made(|out| doca_rdma_export(rdma, &mut blob, &mut len, out));
                (connection, blob, len)
            };
            let ((ours, our_blob, our_len), (theirs, their_blob, their_len)) = (export(left), export(right));
            ok(doca_rdma_connect(left, their_blob, their_len, ours));
            ok(doca_rdma_connect(right, our_blob, our_len, theirs));
            Peers {
                pe,
                left,
                right,
                connection: ours,
                source: buf(mmap, 0, LEN),
                room: buf(mmap, 512, 0),
                remote: buf(far, 1024, LEN),
                number: buf(mmap, 2048, 8),
                event: event(dev),
            }
        }
    }

    /// The peer's receive, which tells `record`.
    fn receive(&self, dst: *mut doca_buf, record: *mut Record) -> *mut doca_task {
        // SAFETY: the context runs with receives enabled, and `dst` is null or one of its own buffers.
        unsafe {
            let data = points_to(record);
            let task = made(|out| doca_rdma_task_receive_allocate_init(self.right, dst, data, out));
            doca_rdma_task_receive_as_task(task)
        }
    }

    /// Progresses until a task ended well.
    #[inline(always)]
    fn wait(&self, record: *mut Record) {
        loop {
            // SAFETY: leaked, and only callbacks inside this thread's progress write to it meanwhile.
            match unsafe { (*record).ended } {
                // SAFETY: alive, and progressed by this thread alone.
                0 => unsafe { doca_pe_progress(self.pe) },
                ended => return assert!(ended == WELL, "a task did not end well"),
            };
        }
    }

    /// So many tasks, each with a receive of the peer into `landing` if it needs one. With [`Way::Prepared`] `task` and
    /// `receive` give tasks once, which are submitted again and again; with [`Way::Each`] each time, and they are freed.
    #[inline(always)]
    fn run(
        &self,
        way: Way,
        number: u64,
        fills: bool,
        landing: Option<*mut doca_buf>,
        task: impl Fn(*mut Record) -> *mut doca_task,
    ) {
        let (sent, received) = (record(), record());
        match way {
            Way::Prepared => {
                let receive = landing.map(|dst| self.receive(dst, received));
                let task = task(sent);
                (0..number).for_each(|_| self.once(fills, receive.map(|task| (task, received)), task, sent));
            }
            Way::Each => {
                for _ in 0..number {
                    let receive = landing.map(|dst| self.receive(dst, received));
                    let task = task(sent);
                    self.once(fills, receive.map(|task| (task, received)), task, sent);
                    // SAFETY: not in flight, and not used afterwards.
                    unsafe {
                        receive.into_iter().for_each(|receive| doca_task_free(receive));
                        doca_task_free(task);
                    }
                }
            }
        }
    }

    /// Submits the tasks and waits for them.
    #[inline(always)]
    fn once(
        &self,
        fills: bool,
        receive: Option<(*mut doca_task, *mut Record)>,
        task: *mut doca_task,
        sent: *mut Record,
    ) {
        // SAFETY: the tasks were allocated here and are not in flight: the last round saw them complete. The records are
        // leaked, and only callbacks inside this thread's progress write to them.
        unsafe {
            if fills || receive.is_some() {
                ok(doca_buf_reset_data_len(self.room));
            }
            if let Some((receive, received)) = receive {
                (*received).ended = 0;
                ok(doca_task_submit(receive));
            }
            (*sent).ended = 0;
            ok(doca_task_submit(task));
        }
        self.wait(sent);
        if let Some((_, received)) = receive {
            self.wait(received);
            // SAFETY: as above.
            black_box(unsafe { (*received).len });
        }
    }
}

/// A kind of task: its type, the functions that C has for it, whether it fills a local buffer, what it takes between
/// connection and user data, and where a receive lands that it needs at the peer.
macro_rules! tasks {
    ($($name:ident: $task:ty, $set_conf:ident, $init:ident, $as_task:ident, $fills:literal,
        |$peers:ident| ($($argument:expr),+), $receive:expr;)+) => {$(
        pub fn $name(number: u64, way: Way) {
            unsafe extern "C" fn done(_: *mut $task, record: doca_data, _: doca_data) {
                // SAFETY: the task's user data is a leaked record, touched by this thread alone.
                unsafe { (*record.ptr.cast::<Record>()).ended = WELL };
            }
            unsafe extern "C" fn failed(_: *mut $task, record: doca_data, _: doca_data) {
                // SAFETY: as above.
                unsafe { (*record.ptr.cast::<Record>()).ended = BADLY };
            }
            // SAFETY: `Peers::new` gives a context that is not started yet, and the callbacks are of this task's type.
            let $peers = Peers::new(|rdma| unsafe { $set_conf(rdma, Some(done), Some(failed), 4) });
            // SAFETY: context, connection and buffers are those that `Peers` made, and live as long as the process.
            let task = |record| unsafe {
                let data = points_to(record);
                $as_task(made(|out| $init($peers.left, $peers.connection, $($argument,)+ data, out)))
            };
            $peers.run(way, number, $fills, $receive, task);
        }
    )+};
}

tasks! {
    send: doca_rdma_task_send, doca_rdma_task_send_set_conf, doca_rdma_task_send_allocate_init,
        doca_rdma_task_send_as_task, false, |peers| (peers.source), Some(peers.room);
    send_imm: doca_rdma_task_send_imm, doca_rdma_task_send_imm_set_conf, doca_rdma_task_send_imm_allocate_init,
        doca_rdma_task_send_imm_as_task, false, |peers| (peers.source, 7), Some(peers.room);
    read: doca_rdma_task_read, doca_rdma_task_read_set_conf, doca_rdma_task_read_allocate_init,
        doca_rdma_task_read_as_task, true, |peers| (peers.remote, peers.room), None;
    write: doca_rdma_task_write, doca_rdma_task_write_set_conf, doca_rdma_task_write_allocate_init,
        doca_rdma_task_write_as_task, false, |peers| (peers.source, peers.remote), None;
    write_imm: doca_rdma_task_write_imm, doca_rdma_task_write_imm_set_conf, doca_rdma_task_write_imm_allocate_init,
        doca_rdma_task_write_imm_as_task, false, |peers| (peers.source, peers.remote, 7), Some(null_mut());
    compare_swap: doca_rdma_task_atomic_cmp_swp, doca_rdma_task_atomic_cmp_swp_set_conf,
        doca_rdma_task_atomic_cmp_swp_allocate_init, doca_rdma_task_atomic_cmp_swp_as_task,
        true, |peers| (peers.remote, peers.room, 1, 2), None;
    fetch_add: doca_rdma_task_atomic_fetch_add, doca_rdma_task_atomic_fetch_add_set_conf,
        doca_rdma_task_atomic_fetch_add_allocate_init, doca_rdma_task_atomic_fetch_add_as_task,
        true, |peers| (peers.remote, peers.room, 1), None;
    event_get: doca_rdma_task_remote_net_sync_event_get, doca_rdma_task_remote_net_sync_event_get_set_conf,
        doca_rdma_task_remote_net_sync_event_get_allocate_init, doca_rdma_task_remote_net_sync_event_get_as_task,
        true, |peers| (peers.event, peers.room), None;
    event_set: doca_rdma_task_remote_net_sync_event_notify_set,
        doca_rdma_task_remote_net_sync_event_notify_set_set_conf,
        doca_rdma_task_remote_net_sync_event_notify_set_allocate_init,
        doca_rdma_task_remote_net_sync_event_notify_set_as_task,
        false, |peers| (peers.event, peers.number), None;
    event_add: doca_rdma_task_remote_net_sync_event_notify_add,
        doca_rdma_task_remote_net_sync_event_notify_add_set_conf,
        doca_rdma_task_remote_net_sync_event_notify_add_allocate_init,
        doca_rdma_task_remote_net_sync_event_notify_add_as_task,
        true, |peers| (peers.event, peers.room, 1), None;
}
