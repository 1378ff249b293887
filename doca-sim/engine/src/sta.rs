//! `libdoca_sta`: what `struct doca_sta *` points to.
//!
//! An instance can be asked and configured. What it would run on, the data path that takes capsules from the network to
//! disks, is not there: starting one is NOT_SUPPORTED, and so no task ever belongs to it.

use crate::code::{Code, Res};
use crate::ctx::{Context, Ctx};
use crate::dev::Dev;
use crate::entry::{Object, Tag};
use crate::log;
use crate::task::Task;
use crate::topology::{self, StaCaps};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// A storage target's control context.
#[repr(C)]
pub struct Sta {
    tag: Tag,
    ctx: Ctx,
    control: Arc<Dev>,
    /// The devices that queue pairs can be on.
    network: RefCell<Vec<Arc<Dev>>>,
    max_sta_io: Cell<u16>,
}

// SAFETY: repr(C), starts with its tag.
unsafe impl Object for Sta {
    const TAG: u32 = u32::from_le_bytes(*b"sta_");
}

impl Sta {
    /// `doca_sta_create`: NOT_SUPPORTED on a device that cannot.
    pub fn new(dev: &Dev) -> Res<Rc<Sta>> {
        if !dev.device().sta.supported {
            log::error!("{} cannot control a storage target", dev.device().ibdev);
            return Err(Code::NOT_SUPPORTED);
        }
        let sta = Rc::new(Sta {
            tag: Tag::live::<Self>(),
            ctx: Ctx::new(),
            control: dev.hold()?,
            network: RefCell::new(Vec::new()),
            max_sta_io: Cell::new(1),
        });
        let weak: Weak<Sta> = Rc::downgrade(&sta);
        sta.ctx.belong_to(weak);
        Ok(sta)
    }

    /// `doca_sta_destroy`: IN_USE unless the context is IDLE.
    pub fn retire(&self) -> Res {
        self.ctx.require_idle().map_err(|_| Code::IN_USE)?;
        self.tag.kill();
        self.ctx.retire();
        Ok(())
    }

    /// What the topology says about the control device.
    pub fn caps(&self) -> &'static StaCaps {
        &self.control.device().sta
    }

    /// `doca_sta_add_dev`: a device for queue pairs, which may be the control device.
    pub fn add_dev(&self, dev: &Dev) -> Res {
        self.ctx.require_idle()?;
        let rdma = &dev.device().rdma;
        if !rdma.supported || !rdma.transports.rc {
            log::error!("{} has no reliable connections", dev.device().ibdev);
            return Err(Code::NOT_SUPPORTED);
        }
        let mut network = self.network.borrow_mut();
        if network.iter().any(|added| added.index() == dev.index()) {
            return Err(Code::ALREADY_EXIST);
        }
        let limit = topology::get()?.sta.max_devs;
        if network.len() >= limit as usize {
            log::error!("doca_sta has {limit} devices already");
            return Err(Code::NO_MEMORY);
        }
        network.push(dev.hold()?);
        Ok(())
    }

    /// `doca_sta_set_max_sta_io`
    pub fn set_max_sta_io(&self, count: u16) -> Res {
        self.ctx.require_idle()?;
        let limit = topology::get()?.sta.max_io_threads;
        if count == 0 || u32::from(count) > limit {
            log::error!("{count} IO contexts are not from 1 to {limit}");
            return Err(Code::INVALID_VALUE);
        }
        self.max_sta_io.set(count);
        Ok(())
    }

    /// `doca_sta_get_max_sta_io`
    pub fn max_sta_io(&self) -> u16 {
        self.max_sta_io.get()
    }
}

impl Context for Sta {
    fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    fn name(&self) -> &'static str {
        "doca_sta"
    }

    fn start(&self) -> Res {
        if self.network.borrow().is_empty() {
            log::error!("doca_sta has no device for queue pairs; call doca_sta_add_dev before start");
            return Err(Code::INVALID_VALUE);
        }
        log::error!("doca_sta cannot start: the data path of storage targets is missing from this simulator");
        Err(Code::NOT_SUPPORTED)
    }

    fn stop(&self) {}

    fn stopped(&self) {}

    fn is_drained(&self) -> bool {
        true
    }

    fn submit(&self, _task: &Task, _flush: bool) -> Res {
        Err(Code::BAD_STATE)
    }

    fn flush(&self) {}

    fn step(&self) -> bool {
        false
    }

    fn has_work(&self) -> bool {
        false
    }

    fn arm(&self, _wake_fd: i32) {}

    fn disarm(&self) {}

    fn deadline(&self) -> Option<u64> {
        None
    }

    fn pidfds(&self, _each: &mut dyn FnMut(i32)) {}
}
