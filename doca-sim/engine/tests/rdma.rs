//! Two RDMA instances in one process, through the functions that the public libraries call.
#![allow(clippy::undocumented_unsafe_blocks, reason = "each call is one C call with live arguments")]

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

// The functions under test are reached by their C names; this keeps the crate linked.
use doca_sim as _;

type Ptr = *mut c_void;
type TaskCallback = extern "C" fn(Ptr, u64, u64);

unsafe extern "C" {
    fn sim_doca_devinfo_create_list(list: *mut *mut Ptr, count: *mut u32) -> u32;
    fn sim_doca_devinfo_destroy_list(list: *mut Ptr) -> u32;
    fn sim_doca_dev_open(info: Ptr, dev: *mut Ptr) -> u32;
    fn sim_doca_dev_close(dev: Ptr) -> u32;
    fn sim_doca_mmap_create(mmap: *mut Ptr) -> u32;
    fn sim_doca_mmap_set_memrange(mmap: Ptr, addr: Ptr, len: usize) -> u32;
    fn sim_doca_mmap_set_permissions(mmap: Ptr, mask: u32) -> u32;
    fn sim_doca_mmap_add_dev(mmap: Ptr, dev: Ptr) -> u32;
    fn sim_doca_mmap_start(mmap: Ptr) -> u32;
    fn sim_doca_mmap_destroy(mmap: Ptr) -> u32;
    fn sim_doca_mmap_export_rdma(mmap: Ptr, dev: Ptr, desc: *mut *const c_void, len: *mut usize) -> u32;
    fn sim_doca_mmap_create_from_export(
        data: *const u64,
        desc: *const c_void,
        len: usize,
        dev: Ptr,
        mmap: *mut Ptr,
    ) -> u32;
    fn sim_doca_buf_inventory_create(count: usize, inventory: *mut Ptr) -> u32;
    fn sim_doca_buf_inventory_start(inventory: Ptr) -> u32;
    fn sim_doca_buf_inventory_destroy(inventory: Ptr) -> u32;
    fn sim_doca_buf_inventory_buf_get_by_args(
        inventory: Ptr,
        mmap: Ptr,
        addr: Ptr,
        len: usize,
        data: Ptr,
        data_len: usize,
        buf: *mut Ptr,
    ) -> u32;
    fn sim_doca_buf_dec_refcount(buf: Ptr, count: *mut u16) -> u32;
    fn sim_doca_buf_get_data_len(buf: Ptr, len: *mut usize) -> u32;
    fn sim_doca_pe_create(pe: *mut Ptr) -> u32;
    fn sim_doca_pe_destroy(pe: Ptr) -> u32;
    fn sim_doca_pe_progress(pe: Ptr) -> u8;
    fn sim_doca_pe_connect_ctx(pe: Ptr, ctx: Ptr) -> u32;
    fn sim_doca_pe_get_notification_handle(pe: Ptr, handle: *mut c_int) -> u32;
    fn sim_doca_pe_request_notification(pe: Ptr) -> u32;
    fn sim_doca_pe_clear_notification(pe: Ptr, handle: c_int) -> u32;
    fn sim_doca_ctx_start(ctx: Ptr) -> u32;
    fn sim_doca_ctx_stop(ctx: Ptr) -> u32;
    fn sim_doca_ctx_get_state(ctx: Ptr, state: *mut u32) -> u32;
    fn sim_doca_ctx_set_user_data(ctx: Ptr, data: u64) -> u32;
    fn sim_doca_rdma_create(dev: Ptr, rdma: *mut Ptr) -> u32;
    fn sim_doca_rdma_destroy(rdma: Ptr) -> u32;
    fn sim_doca_rdma_as_ctx(rdma: Ptr) -> Ptr;
    fn sim_doca_rdma_set_permissions(rdma: Ptr, permissions: u32) -> u32;
    fn sim_doca_rdma_set_rnr_retry_count(rdma: Ptr, count: u8) -> u32;
    fn sim_doca_rdma_export(rdma: Ptr, blob: *mut *const c_void, len: *mut usize, conn: *mut Ptr) -> u32;
    fn sim_doca_rdma_connect(rdma: Ptr, blob: *const c_void, len: usize, conn: Ptr) -> u32;
    fn sim_doca_rdma_start_listen_to_port(rdma: Ptr, port: u16) -> u32;
    fn sim_doca_rdma_addr_create(kind: u32, text: *const c_char, port: u16, addr: *mut Ptr) -> u32;
    fn sim_doca_rdma_addr_destroy(addr: Ptr) -> u32;
    fn sim_doca_rdma_connect_to_addr(rdma: Ptr, addr: Ptr, data: u64) -> u32;
    fn sim_doca_rdma_connection_accept(conn: Ptr, data: *const c_void, len: u8) -> u32;
    fn sim_doca_rdma_connection_disconnect(conn: Ptr) -> u32;
    fn sim_doca_rdma_set_connection_state_callbacks(
        rdma: Ptr,
        request: Option<extern "C" fn(Ptr, u64)>,
        established: Option<extern "C" fn(Ptr, u64, u64)>,
        failure: Option<extern "C" fn(Ptr, u64, u64)>,
        disconnection: Option<extern "C" fn(Ptr, u64, u64)>,
    ) -> u32;
    fn sim_doca_rdma_task_receive_set_conf(rdma: Ptr, ok: TaskCallback, err: TaskCallback, n: u32) -> u32;
    fn sim_doca_rdma_task_receive_allocate_init(rdma: Ptr, dst: Ptr, data: u64, task: *mut Ptr) -> u32;
    fn sim_doca_rdma_task_send_set_conf(rdma: Ptr, ok: TaskCallback, err: TaskCallback, n: u32) -> u32;
    fn sim_doca_rdma_task_send_allocate_init(
        rdma: Ptr,
        conn: Ptr,
        src: Ptr,
        data: u64,
        task: *mut Ptr,
    ) -> u32;
    fn sim_doca_rdma_task_write_set_conf(rdma: Ptr, ok: TaskCallback, err: TaskCallback, n: u32) -> u32;
    fn sim_doca_rdma_task_write_allocate_init(
        rdma: Ptr,
        conn: Ptr,
        src: Ptr,
        dst: Ptr,
        data: u64,
        task: *mut Ptr,
    ) -> u32;
    fn sim_doca_rdma_task_atomic_fetch_add_set_conf(
        rdma: Ptr,
        ok: TaskCallback,
        err: TaskCallback,
        n: u32,
    ) -> u32;
    fn sim_doca_rdma_task_atomic_fetch_add_allocate_init(
        rdma: Ptr,
        conn: Ptr,
        dst: Ptr,
        result: Ptr,
        add: u64,
        data: u64,
        task: *mut Ptr,
    ) -> u32;
    fn sim_doca_task_submit(task: Ptr) -> u32;
    fn sim_doca_task_free(task: Ptr);
    fn sim_doca_task_get_status(task: Ptr) -> u32;
}

const SUCCESS: u32 = 0;
const NOT_PERMITTED: u32 = 2;
const IO_FAILED: u32 = 17;
const BAD_STATE: u32 = 18;
const FULL: u32 = 24;
const IN_PROGRESS: u32 = 26;

fn ok(code: u32) {
    assert_eq!(code, SUCCESS, "DOCA error {code}");
}

/// Calls that fill an out-parameter.
fn made(call: impl FnOnce(*mut Ptr) -> u32) -> Ptr {
    let mut out = null_mut();
    ok(call(&mut out));
    out
}

/// What a context's callbacks have seen: (task user data, status) of each task, and connection events.
#[derive(Default)]
struct Seen {
    tasks: RefCell<Vec<(u64, u32)>>,
    established: RefCell<Vec<Ptr>>,
    failures: Cell<usize>,
    disconnections: Cell<usize>,
}

impl Seen {
    fn tasks(&self) -> Vec<(u64, u32)> {
        self.tasks.borrow().clone()
    }

    fn established(&self) -> Vec<Ptr> {
        self.established.borrow().clone()
    }
}

fn seen<'a>(data: u64) -> &'a Seen {
    // SAFETY: what `Side::new` gave as the context's user data; it lives as long as the context runs.
    unsafe { &*(data as *const Seen) }
}

extern "C" fn done(task: Ptr, data: u64, ctx: u64) {
    seen(ctx).tasks.borrow_mut().push((data, unsafe { sim_doca_task_get_status(task) }));
    unsafe { sim_doca_task_free(task) };
}
extern "C" fn request(conn: Ptr, _: u64) {
    ok(unsafe { sim_doca_rdma_connection_accept(conn, null(), 0) });
}
extern "C" fn established(conn: Ptr, _: u64, ctx: u64) {
    seen(ctx).established.borrow_mut().push(conn);
}
extern "C" fn failure(_: Ptr, _: u64, ctx: u64) {
    seen(ctx).failures.update(|count| count + 1);
}
extern "C" fn disconnection(conn: Ptr, _: u64, ctx: u64) {
    // Programs acknowledge like this.
    ok(unsafe { sim_doca_rdma_connection_disconnect(conn) });
    seen(ctx).disconnections.update(|count| count + 1);
}

/// One side: device, memory, buffers, instance; all on a shared engine.
struct Side {
    dev: Ptr,
    /// Shared with the engine, which writes to it by its address.
    memory: Rc<[Cell<u64>; 512]>,
    mmap: Ptr,
    inventory: Ptr,
    rdma: Ptr,
    seen: Rc<Seen>,
}

impl Side {
    fn new(pe: Ptr, mmap_rights: u32, rights: u32, cm: bool) -> Side {
        unsafe {
            let (mut list, mut count) = (null_mut(), 0);
            ok(sim_doca_devinfo_create_list(&mut list, &mut count));
            assert!(count >= 2);
            let dev = made(|out| sim_doca_dev_open(*list, out));
            ok(sim_doca_devinfo_destroy_list(list));
            let memory = Rc::new([const { Cell::new(0) }; 512]);
            let mmap = made(|out| sim_doca_mmap_create(out));
            ok(sim_doca_mmap_add_dev(mmap, dev));
            ok(sim_doca_mmap_set_memrange(mmap, memory.as_ptr().cast_mut().cast(), 4096));
            ok(sim_doca_mmap_set_permissions(mmap, mmap_rights));
            ok(sim_doca_mmap_start(mmap));
            let inventory = made(|out| sim_doca_buf_inventory_create(64, out));
            ok(sim_doca_buf_inventory_start(inventory));
            let rdma = made(|out| sim_doca_rdma_create(dev, out));
            let seen = Rc::new(Seen::default());
            let ctx = sim_doca_rdma_as_ctx(rdma);
            ok(sim_doca_ctx_set_user_data(ctx, Rc::as_ptr(&seen) as u64));
            ok(sim_doca_pe_connect_ctx(pe, ctx));
            ok(sim_doca_rdma_set_permissions(rdma, rights));
            ok(sim_doca_rdma_task_receive_set_conf(rdma, done, done, 16));
            ok(sim_doca_rdma_task_send_set_conf(rdma, done, done, 200));
            ok(sim_doca_rdma_task_write_set_conf(rdma, done, done, 4));
            ok(sim_doca_rdma_task_atomic_fetch_add_set_conf(rdma, done, done, 4));
            ok(sim_doca_rdma_set_rnr_retry_count(rdma, 1));
            if cm {
                ok(sim_doca_rdma_set_connection_state_callbacks(
                    rdma,
                    Some(request),
                    Some(established),
                    Some(failure),
                    Some(disconnection),
                ));
            }
            ok(sim_doca_ctx_start(ctx));
            Side { dev, memory, mmap, inventory, rdma, seen }
        }
    }

    fn buf(&self, mmap: Ptr, addr: usize, len: usize, data_len: usize) -> Ptr {
        made(|out| unsafe {
            let addr = addr as Ptr;
            sim_doca_buf_inventory_buf_get_by_args(self.inventory, mmap, addr, len, addr, data_len, out)
        })
    }

    /// This side's memory, as the other side reaches it.
    fn memory_for(&self, other: &Side) -> Ptr {
        let (mut desc, mut len) = (null(), 0);
        ok(unsafe { sim_doca_mmap_export_rdma(self.mmap, self.dev, &mut desc, &mut len) });
        made(|out| unsafe { sim_doca_mmap_create_from_export(null(), desc, len, other.dev, out) })
    }

    /// A local buffer at a byte offset.
    fn local(&self, offset: usize, len: usize, data_len: usize) -> Ptr {
        self.buf(self.mmap, self.memory.as_ptr() as usize + offset, len, data_len)
    }

    fn receive(&self, dst: Ptr, data: u64) {
        let task = made(|out| unsafe { sim_doca_rdma_task_receive_allocate_init(self.rdma, dst, data, out) });
        ok(unsafe { sim_doca_task_submit(task) });
    }

    fn send(&self, conn: Ptr, src: Ptr, data: u64) -> u32 {
        let task =
            made(|out| unsafe { sim_doca_rdma_task_send_allocate_init(self.rdma, conn, src, data, out) });
        let code = unsafe { sim_doca_task_submit(task) };
        if code != SUCCESS {
            unsafe { sim_doca_task_free(task) };
        }
        code
    }

    fn export(&self) -> (Ptr, Vec<u8>) {
        let (mut blob, mut len) = (null(), 0);
        let conn = made(|out| unsafe { sim_doca_rdma_export(self.rdma, &mut blob, &mut len, out) });
        (conn, unsafe { std::slice::from_raw_parts(blob.cast::<u8>(), len) }.to_vec())
    }

    fn connect(&self, conn: Ptr, blob: &[u8]) {
        ok(unsafe { sim_doca_rdma_connect(self.rdma, blob.as_ptr().cast(), blob.len(), conn) });
    }

    fn stop(self, pe: Ptr) -> Rc<Seen> {
        self.stop_and_give_back(pe, &[])
    }

    /// For buffers that are in flight when the context stops.
    fn stop_and_give_back(self, pe: Ptr, bufs: &[Ptr]) -> Rc<Seen> {
        unsafe {
            let ctx = sim_doca_rdma_as_ctx(self.rdma);
            let code = sim_doca_ctx_stop(ctx);
            assert!(code == SUCCESS || code == IN_PROGRESS);
            let mut state = 9;
            for _ in 0..10_000 {
                ok(sim_doca_ctx_get_state(ctx, &mut state));
                if state == 0 {
                    break;
                }
                sim_doca_pe_progress(pe);
            }
            assert_eq!(state, 0, "the context did not become idle");
            bufs.iter().for_each(|buf| give_back(*buf));
            ok(sim_doca_rdma_destroy(self.rdma));
            ok(sim_doca_mmap_destroy(self.mmap));
            ok(sim_doca_buf_inventory_destroy(self.inventory));
            ok(sim_doca_dev_close(self.dev));
        }
        self.seen
    }
}

fn give_back(buf: Ptr) {
    ok(unsafe { sim_doca_buf_dec_refcount(buf, null_mut()) });
}

fn progress_until(pe: Ptr, mut condition: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !condition() {
        unsafe { sim_doca_pe_progress(pe) };
        assert!(std::time::Instant::now() < end, "nothing happened for 10 seconds");
    }
}

fn pair(pe: Ptr, mmap_rights: u32, rights: u32) -> (Side, Ptr, Side, Ptr) {
    let a = Side::new(pe, 1, 1, false);
    let b = Side::new(pe, mmap_rights, rights, false);
    let (conn_a, blob_a) = a.export();
    let (conn_b, blob_b) = b.export();
    a.connect(conn_a, &blob_b);
    b.connect(conn_b, &blob_a);
    (a, conn_a, b, conn_b)
}

#[test]
fn a_message_arrives_and_both_sides_hear_of_it() {
    let pe = made(|out| unsafe { sim_doca_pe_create(out) });
    let (a, conn, b, _) = pair(pe, 1, 1);
    a.memory[0].set(0x1122_3344_5566_7788);
    let (src, dst) = (a.local(0, 64, 8), b.local(128, 64, 0));
    b.receive(dst, 7);
    ok(a.send(conn, src, 3));
    progress_until(pe, || a.seen.tasks().len() == 1 && b.seen.tasks().len() == 1);
    assert_eq!(a.seen.tasks(), [(3, SUCCESS)]);
    assert_eq!(b.seen.tasks(), [(7, SUCCESS)]);
    assert_eq!(b.memory[16].get(), 0x1122_3344_5566_7788);
    let mut len = 0;
    ok(unsafe { sim_doca_buf_get_data_len(dst, &mut len) });
    assert_eq!(len, 8);
    give_back(src);
    give_back(dst);
    a.stop(pe);
    b.stop(pe);
    ok(unsafe { sim_doca_pe_destroy(pe) });
}

#[test]
fn a_send_waits_for_its_receive_and_then_goes_through_without_its_sender() {
    let pe = made(|out| unsafe { sim_doca_pe_create(out) });
    let (a, conn, b, _) = pair(pe, 1, 1);
    let (src, dst) = (a.local(0, 64, 64), b.local(128, 64, 0));
    ok(a.send(conn, src, 3));
    // Posting the receive executes the send that waits, with no call at the sender.
    b.receive(dst, 7);
    progress_until(pe, || a.seen.tasks().len() == 1 && b.seen.tasks().len() == 1);
    assert_eq!(a.seen.tasks(), [(3, SUCCESS)]);
    give_back(src);
    give_back(dst);
    a.stop(pe);
    b.stop(pe);
    ok(unsafe { sim_doca_pe_destroy(pe) });
}

#[test]
fn no_receive_breaks_the_connection_and_flushes_what_is_behind() {
    let pe = made(|out| unsafe { sim_doca_pe_create(out) });
    let (a, conn, b, _) = pair(pe, 1, 1);
    let src = a.local(0, 64, 64);
    for i in 0..3 {
        ok(a.send(conn, src, i));
    }
    progress_until(pe, || a.seen.tasks().len() == 3);
    assert_eq!(a.seen.tasks(), [(0, IO_FAILED), (1, IO_FAILED), (2, IO_FAILED)]);
    give_back(src);
    a.stop(pe);
    b.stop(pe);
    ok(unsafe { sim_doca_pe_destroy(pe) });
}

#[test]
fn a_message_too_large_for_its_receive_fails_on_both_sides() {
    let pe = made(|out| unsafe { sim_doca_pe_create(out) });
    let (a, conn, b, _) = pair(pe, 1, 1);
    let (src, dst) = (a.local(0, 64, 64), b.local(128, 32, 0));
    b.receive(dst, 7);
    ok(a.send(conn, src, 3));
    progress_until(pe, || a.seen.tasks().len() == 1 && b.seen.tasks().len() == 1);
    assert_eq!(a.seen.tasks(), [(3, IO_FAILED)]);
    assert_eq!(b.seen.tasks(), [(7, IO_FAILED)]);
    assert!(b.memory.iter().all(|word| word.get() == 0));
    give_back(src);
    give_back(dst);
    a.stop(pe);
    b.stop(pe);
    ok(unsafe { sim_doca_pe_destroy(pe) });
}

#[test]
fn the_send_queue_has_an_end_and_unconnected_connections_take_nothing() {
    let pe = made(|out| unsafe { sim_doca_pe_create(out) });
    let a = Side::new(pe, 1, 1, false);
    let b = Side::new(pe, 1, 1, false);
    let (conn, _) = a.export();
    let (_, blob) = b.export();
    let src = a.local(0, 64, 64);
    assert_eq!(a.send(conn, src, 0), BAD_STATE);
    a.connect(conn, &blob);
    for i in 0..128 {
        ok(a.send(conn, src, i));
    }
    assert_eq!(a.send(conn, src, 999), FULL);
    let seen = a.stop_and_give_back(pe, &[src]);
    assert_eq!(seen.tasks().len(), 128);
    assert!(seen.tasks().iter().enumerate().all(|(i, task)| *task == (i as u64, IO_FAILED)));
    b.stop(pe);
    ok(unsafe { sim_doca_pe_destroy(pe) });
}

#[test]
fn one_sided_access_needs_the_right_of_memory_and_of_context() {
    for (mmap_rights, rights, expected) in
        [(5, 5, SUCCESS), (5, 4, SUCCESS), (5, 1, NOT_PERMITTED), (3, 5, NOT_PERMITTED)]
    {
        let pe = made(|out| unsafe { sim_doca_pe_create(out) });
        let (a, conn, b, _) = pair(pe, mmap_rights, rights);
        let remote = b.memory_for(&a);
        a.memory[1].set(42);
        let src = a.local(8, 8, 8);
        let dst = a.buf(remote, b.memory.as_ptr() as usize + 16, 8, 0);
        let task =
            made(|out| unsafe { sim_doca_rdma_task_write_allocate_init(a.rdma, conn, src, dst, 1, out) });
        ok(unsafe { sim_doca_task_submit(task) });
        progress_until(pe, || a.seen.tasks().len() == 1);
        assert_eq!(a.seen.tasks(), [(1, expected)], "mmap {mmap_rights} context {rights}");
        assert_eq!(b.memory[2].get(), if expected == SUCCESS { 42 } else { 0 });
        give_back(src);
        give_back(dst);
        ok(unsafe { sim_doca_mmap_destroy(remote) });
        a.stop(pe);
        b.stop(pe);
        ok(unsafe { sim_doca_pe_destroy(pe) });
    }
}

#[test]
fn fetch_and_add_gives_the_value_before() {
    let pe = made(|out| unsafe { sim_doca_pe_create(out) });
    let (a, conn, b, _) = pair(pe, 9, 8);
    b.memory[5].set(100);
    let remote = b.memory_for(&a);
    let target = a.buf(remote, b.memory.as_ptr() as usize + 40, 8, 0);
    let result = a.local(0, 8, 0);
    let task = made(|out| unsafe {
        sim_doca_rdma_task_atomic_fetch_add_allocate_init(a.rdma, conn, target, result, 11, 1, out)
    });
    ok(unsafe { sim_doca_task_submit(task) });
    progress_until(pe, || a.seen.tasks().len() == 1);
    assert_eq!(a.seen.tasks(), [(1, SUCCESS)]);
    assert_eq!((a.memory[0].get(), b.memory[5].get()), (100, 111));
    give_back(target);
    give_back(result);
    ok(unsafe { sim_doca_mmap_destroy(remote) });
    a.stop(pe);
    b.stop(pe);
    ok(unsafe { sim_doca_pe_destroy(pe) });
}

#[test]
fn rdma_cm_connects_and_disconnects_and_tells_each_side_once() {
    let pe = made(|out| unsafe { sim_doca_pe_create(out) });
    let server = Side::new(pe, 1, 1, true);
    let client = Side::new(pe, 1, 1, true);
    ok(unsafe { sim_doca_rdma_start_listen_to_port(server.rdma, 21_001) });
    let text = c"192.168.1.1";
    let addr = made(|out| unsafe { sim_doca_rdma_addr_create(0, text.as_ptr(), 21_001, out) });
    ok(unsafe { sim_doca_rdma_connect_to_addr(client.rdma, addr, 5) });
    progress_until(pe, || client.seen.established().len() == 1 && server.seen.established().len() == 1);
    assert_eq!(unsafe { sim_doca_rdma_addr_destroy(addr) }, BAD_STATE);
    let (src, dst) = (client.local(0, 64, 8), server.local(128, 64, 0));
    server.receive(dst, 7);
    ok(client.send(client.seen.established()[0], src, 3));
    progress_until(pe, || client.seen.tasks().len() == 1 && server.seen.tasks().len() == 1);
    ok(unsafe { sim_doca_rdma_connection_disconnect(client.seen.established()[0]) });
    progress_until(pe, || client.seen.disconnections.get() == 1 && server.seen.disconnections.get() == 1);
    ok(unsafe { sim_doca_rdma_addr_destroy(addr) });
    give_back(src);
    give_back(dst);
    for seen in [client.stop(pe), server.stop(pe)] {
        assert_eq!((seen.disconnections.get(), seen.failures.get()), (1, 0));
    }
    ok(unsafe { sim_doca_pe_destroy(pe) });
}

#[test]
fn a_request_to_nobody_fails_by_callback() {
    let pe = made(|out| unsafe { sim_doca_pe_create(out) });
    let client = Side::new(pe, 1, 1, true);
    let text = c"192.168.1.1";
    let addr = made(|out| unsafe { sim_doca_rdma_addr_create(0, text.as_ptr(), 21_002, out) });
    ok(unsafe { sim_doca_rdma_connect_to_addr(client.rdma, addr, 5) });
    progress_until(pe, || client.seen.failures.get() == 1);
    ok(unsafe { sim_doca_rdma_addr_destroy(addr) });
    client.stop(pe);
    ok(unsafe { sim_doca_pe_destroy(pe) });
}

#[test]
fn an_armed_engine_wakes_when_work_comes_and_at_once_when_it_was_there() {
    let pe = made(|out| unsafe { sim_doca_pe_create(out) });
    let other = made(|out| unsafe { sim_doca_pe_create(out) });
    let a = Side::new(pe, 1, 1, false);
    let b = Side::new(other, 1, 1, false);
    let ((conn_a, blob_a), (conn_b, blob_b)) = (a.export(), b.export());
    a.connect(conn_a, &blob_b);
    b.connect(conn_b, &blob_a);
    let mut fd = -1;
    ok(unsafe { sim_doca_pe_get_notification_handle(other, &mut fd) });
    let readable = |timeout| {
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        unsafe { libc::poll(&mut poll, 1, timeout) == 1 }
    };
    let (src, dst) = (a.local(0, 64, 8), b.local(128, 64, 0));
    b.receive(dst, 7);
    while unsafe { sim_doca_pe_progress(other) } == 1 {}
    ok(unsafe { sim_doca_pe_request_notification(other) });
    assert!(!readable(0), "readable without work");
    ok(a.send(conn_a, src, 3));
    assert!(readable(1000), "not woken");
    ok(unsafe { sim_doca_pe_clear_notification(other, fd) });
    assert!(!readable(0), "readable after clear");
    // The completion has not been taken: arming must make the handle readable at once.
    ok(unsafe { sim_doca_pe_request_notification(other) });
    assert!(readable(0), "work that was there wakes nobody");
    progress_until(other, || b.seen.tasks().len() == 1);
    progress_until(pe, || a.seen.tasks().len() == 1);
    give_back(src);
    give_back(dst);
    a.stop(pe);
    b.stop(other);
    ok(unsafe { sim_doca_pe_destroy(pe) });
    ok(unsafe { sim_doca_pe_destroy(other) });
}
