//! `doca_sta_subsystem.h` and `doca_sta_be.h`: what a target offers, and the disks behind it.

use crate::code::Code;
use crate::dev::Dev;
use crate::entry;
use crate::entry::{In, Out, Text};
use crate::mmap::Mmap;
use crate::sta::{self, Callbacks, ControlTask, Entry, Handle, Kind, Maps, Sta, TaskCallback};
use crate::task::Task;

/// `set_conf` of a kind of tasks.
macro_rules! kinds {
    ($($kind:ident $set_conf:ident;)*) => {
        entry! { $(
            /// Configures the kind; BAD_STATE unless IDLE.
            fn $set_conf(sta: In<Sta>, success: Option<TaskCallback>, failure: Option<TaskCallback>) {
                let sta = sta.get()?;
                let (Some(success), Some(failure)) = (success, failure) else { return Err(Code::INVALID_VALUE) };
                sta.set_conf(ControlTask::$kind, Callbacks { success, failure })
            }
        )* }
    };
}

kinds! {
    RemoveNamespace doca_sta_subsystem_task_rm_ns_set_conf;
    DestroyQueue doca_sta_be_task_destroy_queue_set_conf;
}

entry! {
    /// A subsystem with this name.
    fn doca_sta_subsystem_create(sta: In<Sta>, nqn: Text, subsystem: Out<Handle>) {
        let (sta, nqn) = (sta.get()?, nqn.utf8()?);
        subsystem.check()?;
        subsystem.put(sta.core().create_subsystem(nqn)?)
    }

    /// Before the first namespace: queue pairs of this device may be bound to it.
    fn doca_sta_subsystem_add_dev(subsystem: Handle, dev: In<Dev>) {
        subsystem.core(Kind::Subsystem)?.subsystem_add_dev(subsystem, dev.get()?.index())
    }

    /// IN_USE with namespaces or queue pairs.
    fn doca_sta_subsystem_destroy(subsystem: Handle) {
        subsystem.core(Kind::Subsystem)?.destroy_subsystem(subsystem)
    }

    /// Blocks of a back end's namespace under a number of the subsystem.
    fn doca_sta_subsystem_add_ns(
        subsystem: Handle, fe_ns_id: u32, ns_block_size: u32, be_ns_id: u32, be: Handle, ns: Out<Handle>,
    ) {
        let core = subsystem.core(Kind::Subsystem)?;
        be.core(Kind::BackEnd)?;
        ns.check()?;
        ns.put(core.add_namespace(subsystem, fe_ns_id, ns_block_size, be_ns_id, be)?)
    }

    /// At once; IN_USE while commands are not answered.
    fn doca_sta_subsystem_rm_ns(subsystem: Handle, ns: Handle) {
        subsystem.core(Kind::Subsystem)?.remove_namespace(subsystem, ns)
    }

    /// A task that removes a namespace.
    fn doca_sta_subsystem_task_rm_ns_alloc_init(
        subsystem: Handle, ns: Handle, user_data: u64, task: Out<*const Task>,
    ) {
        task.check()?;
        task.put(sta::removal_task(subsystem, ns, user_data)?)
    }

    /// A disk without queues.
    fn doca_sta_be_create(sta: In<Sta>, be: Out<Handle>) {
        let sta = sta.get()?;
        be.check()?;
        be.put(sta.core().create_back_end()?)
    }

    /// IN_USE with queues or namespaces.
    fn doca_sta_be_destroy(be: Handle) {
        be.core(Kind::BackEnd)?.destroy_back_end(be)
    }

    /// A pair of queues of the disk, as many entries as fit into their maps.
    fn doca_sta_be_add_queue(
        be: Handle, sq: In<Mmap>, sq_db_reg: In<Mmap>, sq_db_offset: u16, cq: In<Mmap>, cq_db_reg: In<Mmap>,
        cq_db_offset: u16, queue: Out<Handle>,
    ) {
        let core = be.core(Kind::BackEnd)?;
        let maps = Maps {
            sq: sq.get()?,
            sq_bell: sq_db_reg.get()?,
            sq_offset: sq_db_offset,
            cq: cq.get()?,
            cq_bell: cq_db_reg.get()?,
            cq_offset: cq_db_offset,
        };
        queue.check()?;
        queue.put(core.add_queue(be, &maps)?)
    }

    /// A task that ends a queue.
    fn doca_sta_be_destroy_queue_task_alloc_init(queue: Handle, user_data: u64, task: Out<*const Task>) {
        task.check()?;
        task.put(sta::destruction_task(queue, user_data)?)
    }

    /// Which execution unit serves a queue.
    fn doca_sta_get_be_queue_mapping_info(queue: Handle, entries: Out<*const Entry>, count: Out<u16>) {
        let core = queue.core(Kind::Queue)?;
        entries.check()?;
        count.check()?;
        let table = core.queue_mapping(queue)?;
        entries.put(table.0)?;
        count.put(table.1)
    }
}
