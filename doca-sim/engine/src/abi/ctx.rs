//! `doca_ctx.h`: contexts.

use crate::code::Code;
use crate::ctx::{Ctx, StateCallback};
use crate::dev::Devinfo;
use crate::entry;
use crate::entry::{In, Out};
use std::ffi::c_void;

entry! {
    /// IDLE to RUNNING.
    fn doca_ctx_start(ctx: In<Ctx>) {
        ctx.get()?.start()
    }

    /// RUNNING to IDLE, or IN_PROGRESS while tasks are out.
    fn doca_ctx_stop(ctx: In<Ctx>) {
        ctx.get()?.stop()
    }

    /// Tasks submitted and not called back.
    fn doca_ctx_get_num_inflight_tasks(ctx: In<Ctx>, count: Out<usize>) {
        count.put(ctx.get()?.in_flight())
    }

    /// The program's word.
    fn doca_ctx_set_user_data(ctx: In<Ctx>, data: u64) {
        ctx.get()?.set_user_data(data);
        Ok(())
    }

    /// The program's word.
    fn doca_ctx_get_user_data(ctx: In<Ctx>, data: Out<u64>) {
        data.put(ctx.get()?.user_data())
    }

    /// Who is told of state changes.
    fn doca_ctx_set_state_changed_cb(ctx: In<Ctx>, callback: Option<StateCallback>) {
        ctx.get()?.set_callback(Some(callback.ok_or(Code::INVALID_VALUE)?));
        Ok(())
    }

    /// The state.
    fn doca_ctx_get_state(ctx: In<Ctx>, state: Out<u32>) {
        state.put(ctx.get()?.state() as u32)
    }

    /// Starts what was submitted without the flush flag.
    fn doca_ctx_flush_tasks(ctx: In<Ctx>) -> () = (); {
        if let Ok(owner) = ctx.get().and_then(|ctx| ctx.owner()) {
            owner.flush();
        }
    }

    /// There is no GPU here.
    fn doca_ctx_set_datapath_on_gpu(ctx: In<Ctx>, gpu: *mut c_void) {
        ctx.get()?.require_idle()?;
        if gpu.is_null() { Err(Code::INVALID_VALUE) } else { Err(Code::NOT_SUPPORTED) }
    }

    /// There is no DPA here.
    fn doca_ctx_set_datapath_on_dpa(ctx: In<Ctx>, dpa: *mut c_void) {
        ctx.get()?.require_idle()?;
        if dpa.is_null() { Err(Code::INVALID_VALUE) } else { Err(Code::NOT_SUPPORTED) }
    }

    /// No library of the simulator uses completion vectors.
    fn doca_ctx_set_completion_vector(ctx: In<Ctx>, vector: u32) {
        let _ = vector;
        ctx.get()?.require_idle()?;
        Err(Code::NOT_SUPPORTED)
    }

    /// One for each processor.
    fn doca_ctx_cap_get_num_completion_vectors(devinfo: In<Devinfo>, count: Out<u32>) {
        devinfo.get()?;
        count.put(std::thread::available_parallelism().map_or(1, |n| n.get() as u32))
    }
}
