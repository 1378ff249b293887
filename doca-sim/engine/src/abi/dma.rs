//! `doca_dma.h`: DMA copies.

use crate::buf::Buf;
use crate::code::Code;
use crate::ctx::{Context, Ctx};
use crate::dev::{Dev, Devinfo};
use crate::dma::{Conf, Dma, MAX_BUF_SIZE, MAX_LIST_LEN, MAX_TASKS};
use crate::entry;
use crate::entry::{In, Out};
use crate::task::{Task, TaskCallback};
use std::ffi::c_void;
use std::ptr::null;
use std::rc::Rc;

entry! {
    /// An instance on an opened device.
    fn doca_dma_create(dev: In<Dev>, dma: Out<*const Dma>) {
        dma.check()?;
        dma.put(Rc::into_raw(Dma::new(dev.get()?)?))
    }

    /// IN_USE unless the context is IDLE.
    fn doca_dma_destroy(dma: In<Dma>) {
        dma.get()?.retire()?;
        // SAFETY: made by `Rc::into_raw` in doca_dma_create; the tag, now dead, lets this line be reached once.
        drop(unsafe { Rc::from_raw(dma.raw()) });
        Ok(())
    }

    /// Every device can.
    fn doca_dma_cap_task_memcpy_is_supported(devinfo: In<Devinfo>) {
        devinfo.get().map(drop)
    }

    /// The context.
    fn doca_dma_as_ctx(dma: In<Dma>) -> *const Ctx = null(); {
        dma.get().map_or(null(), |dma| std::ptr::from_ref(dma.ctx()))
    }

    /// Most tasks of one context.
    fn doca_dma_cap_get_max_num_tasks(dma: In<Dma>, count: Out<u32>) {
        dma.get()?;
        count.put(MAX_TASKS)
    }

    /// Longest chain.
    fn doca_dma_cap_task_memcpy_get_max_buf_list_len(devinfo: In<Devinfo>, len: Out<u32>) {
        devinfo.get()?;
        len.put(MAX_LIST_LEN)
    }

    /// Largest copy, bytes.
    fn doca_dma_cap_task_memcpy_get_max_buf_size(devinfo: In<Devinfo>, size: Out<u64>) {
        devinfo.get()?;
        size.put(MAX_BUF_SIZE)
    }

    /// Configures the tasks; BAD_STATE unless IDLE.
    fn doca_dma_task_memcpy_set_conf(
        dma: In<Dma>, success: Option<TaskCallback>, failure: Option<TaskCallback>, count: u32,
    ) {
        let dma = dma.get()?;
        let (Some(success), Some(failure)) = (success, failure) else { return Err(Code::INVALID_VALUE) };
        dma.set_conf(Conf { success, failure, count })
    }

    /// A copy from `src` to `dst`.
    fn doca_dma_task_memcpy_alloc_init(
        dma: In<Dma>, src: In<Buf>, dst: In<Buf>, user_data: u64, task: Out<*const Task>,
    ) {
        let dma = dma.get()?;
        task.check()?;
        let made = dma.take_task(user_data)?;
        // SAFETY: from the pool of a running instance, which `dma` keeps.
        let fields = unsafe { &(*made).fields };
        fields.src.set(src.raw() as usize);
        fields.dst.set(dst.raw() as usize);
        task.put(made)
    }

    /// The same pointer.
    fn doca_dma_task_memcpy_as_task(task: In<Task>) -> *const Task = null(); { task.raw() }

    /// For a task that the program owns.
    fn doca_dma_task_memcpy_set_src(task: In<Task>, src: In<Buf>) -> () = (); {
        if let Ok(task) = task.get()
            && task.is_changeable()
        {
            task.fields.src.set(src.raw() as usize);
        }
    }

    /// The value set last.
    fn doca_dma_task_memcpy_get_src(task: In<Task>) -> *const Buf = null(); {
        task.get().map_or(null(), |task| task.fields.src.get() as *const Buf)
    }

    /// For a task that the program owns.
    fn doca_dma_task_memcpy_set_dst(task: In<Task>, dst: In<Buf>) -> () = (); {
        if let Ok(task) = task.get()
            && task.is_changeable()
        {
            task.fields.dst.set(dst.raw() as usize);
        }
    }

    /// The value set last.
    fn doca_dma_task_memcpy_get_dst(task: In<Task>) -> *const Buf = null(); {
        task.get().map_or(null(), |task| task.fields.dst.get() as *const Buf)
    }

    /// The context is never on a GPU.
    fn doca_dma_get_gpu_handle(dma: In<Dma>, handle: Out<*mut c_void>) {
        dma.get()?;
        handle.check()?;
        Err(Code::BAD_STATE)
    }
}
