//! The same work, written against the C API.
#![allow(clippy::undocumented_unsafe_blocks, reason = "each block is C as a C program would write it")]

use super::PROGRESS;
use doca_sys::*;
use std::ffi::c_void;
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

/// Completions, counted through the context's user data.
macro_rules! callback {
    ($name:ident, $task:ty) => {
        unsafe extern "C" fn $name(_: *mut $task, _: doca_data, context: doca_data) {
            unsafe { *context.ptr.cast::<u64>() += 1 };
        }
    };
}
callback!(received, doca_rdma_task_receive);
callback!(sent, doca_rdma_task_send);
callback!(sent_imm, doca_rdma_task_send_imm);
callback!(was_read, doca_rdma_task_read);
callback!(written, doca_rdma_task_write);
callback!(written_imm, doca_rdma_task_write_imm);
callback!(swapped, doca_rdma_task_atomic_cmp_swp);
callback!(added, doca_rdma_task_atomic_fetch_add);

struct Peers {
    pe: *mut doca_pe,
    left: *mut doca_rdma,
    right: *mut doca_rdma,
    connection: *mut doca_rdma_connection,
    /// Local source, local destination, remote.
    source: *mut doca_buf,
    room: *mut doca_buf,
    remote: *mut doca_buf,
    done: *mut u64,
}

impl Peers {
    fn new(configure: impl FnOnce(*mut doca_rdma) -> doca_error_t) -> Peers {
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
            let done: *mut u64 = Box::leak(Box::new(0));
            let side = || made(|out| doca_rdma_create(dev, out));
            let (left, right) = (side(), side());
            ok(configure(left));
            ok(doca_rdma_task_receive_set_conf(right, Some(received), Some(received), 4));
            ok(doca_rdma_set_permissions(right, ALL));
            for rdma in [left, right] {
                let ctx = doca_rdma_as_ctx(rdma);
                ok(doca_ctx_set_user_data(ctx, doca_data { ptr: done.cast() }));
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
                done,
            }
        }
    }

    fn receive(&self, dst: *mut doca_buf) -> *mut doca_task {
        unsafe {
            let task = made(|out| doca_rdma_task_receive_allocate_init(self.right, dst, word(), out));
            doca_rdma_task_receive_as_task(task)
        }
    }

    /// Submits the same tasks again and again.
    fn repeat(&self, number: u64, receive: Option<*mut doca_task>, task: *mut doca_task, ends: u64) {
        for _ in 0..number {
            unsafe {
                ok(doca_buf_reset_data_len(self.room));
                if let Some(receive) = receive {
                    ok(doca_task_submit(receive));
                }
                ok(doca_task_submit(task));
                *self.done = 0;
                for _ in 0..PROGRESS {
                    doca_pe_progress(self.pe);
                }
                assert!(*self.done == ends, "a task did not end well");
            }
        }
    }
}

pub fn send(number: u64) {
    unsafe {
        let peers = Peers::new(|rdma| doca_rdma_task_send_set_conf(rdma, Some(sent), Some(sent), 4));
        let task = made(|out| {
            doca_rdma_task_send_allocate_init(peers.left, peers.connection, peers.source, word(), out)
        });
        peers.repeat(number, Some(peers.receive(peers.room)), doca_rdma_task_send_as_task(task), 2);
    }
}

pub fn send_imm(number: u64) {
    unsafe {
        let peers =
            Peers::new(|rdma| doca_rdma_task_send_imm_set_conf(rdma, Some(sent_imm), Some(sent_imm), 4));
        let task = made(|out| {
            doca_rdma_task_send_imm_allocate_init(peers.left, peers.connection, peers.source, 7, word(), out)
        });
        peers.repeat(number, Some(peers.receive(peers.room)), doca_rdma_task_send_imm_as_task(task), 2);
    }
}

pub fn read(number: u64) {
    unsafe {
        let peers = Peers::new(|rdma| doca_rdma_task_read_set_conf(rdma, Some(was_read), Some(was_read), 4));
        let task = made(|out| {
            doca_rdma_task_read_allocate_init(
                peers.left,
                peers.connection,
                peers.remote,
                peers.room,
                word(),
                out,
            )
        });
        peers.repeat(number, None, doca_rdma_task_read_as_task(task), 1);
    }
}

pub fn write(number: u64) {
    unsafe {
        let peers = Peers::new(|rdma| doca_rdma_task_write_set_conf(rdma, Some(written), Some(written), 4));
        let task = made(|out| {
            doca_rdma_task_write_allocate_init(
                peers.left,
                peers.connection,
                peers.source,
                peers.remote,
                word(),
                out,
            )
        });
        peers.repeat(number, None, doca_rdma_task_write_as_task(task), 1);
    }
}

pub fn write_imm(number: u64) {
    unsafe {
        let peers = Peers::new(|rdma| {
            doca_rdma_task_write_imm_set_conf(rdma, Some(written_imm), Some(written_imm), 4)
        });
        let task = made(|out| {
            doca_rdma_task_write_imm_allocate_init(
                peers.left,
                peers.connection,
                peers.source,
                peers.remote,
                7,
                word(),
                out,
            )
        });
        peers.repeat(number, Some(peers.receive(null_mut())), doca_rdma_task_write_imm_as_task(task), 2);
    }
}

pub fn compare_swap(number: u64) {
    unsafe {
        let peers =
            Peers::new(|rdma| doca_rdma_task_atomic_cmp_swp_set_conf(rdma, Some(swapped), Some(swapped), 4));
        let task = made(|out| {
            doca_rdma_task_atomic_cmp_swp_allocate_init(
                peers.left,
                peers.connection,
                peers.remote,
                peers.room,
                1,
                2,
                word(),
                out,
            )
        });
        peers.repeat(number, None, doca_rdma_task_atomic_cmp_swp_as_task(task), 1);
    }
}

pub fn fetch_add(number: u64) {
    unsafe {
        let peers =
            Peers::new(|rdma| doca_rdma_task_atomic_fetch_add_set_conf(rdma, Some(added), Some(added), 4));
        let task = made(|out| {
            doca_rdma_task_atomic_fetch_add_allocate_init(
                peers.left,
                peers.connection,
                peers.remote,
                peers.room,
                1,
                word(),
                out,
            )
        });
        peers.repeat(number, None, doca_rdma_task_atomic_fetch_add_as_task(task), 1);
    }
}
