//! `doca_sta.h` and `doca_sta_mem.h`: the control context of storage targets, every limit, and the allocator.

use crate::code::Code;
use crate::ctx::{Context, Ctx};
use crate::dev::{Dev, Devinfo};
use crate::entry;
use crate::entry::{In, Out};
use crate::sta::{AddressCallback, AllocCallback, Allocator, FreeCallback, Sta};
use crate::topology;
use std::ptr::null;
use std::rc::Rc;

entry! {
    /// SUCCESS if the device can control a storage target, NOT_SUPPORTED if not.
    fn doca_sta_cap_is_supported(devinfo: In<Devinfo>) {
        if devinfo.get()?.device().sta.supported { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
    }

    /// An instance controlled by an opened device.
    fn doca_sta_create(dev: In<Dev>, sta: Out<*const Sta>) {
        sta.check()?;
        sta.put(Rc::into_raw(Sta::new(dev.get()?)?))
    }

    /// IN_USE unless the context is IDLE.
    fn doca_sta_destroy(sta: In<Sta>) {
        sta.get()?.retire()?;
        // SAFETY: made by `Rc::into_raw` in doca_sta_create; the tag, now dead, lets this line be reached once.
        drop(unsafe { Rc::from_raw(sta.raw()) });
        Ok(())
    }

    /// The context.
    fn doca_sta_as_ctx(sta: In<Sta>) -> *const Ctx = null(); {
        sta.get().map_or(null(), |sta| std::ptr::from_ref(sta.ctx()))
    }

    /// A device for queue pairs.
    fn doca_sta_add_dev(sta: In<Sta>, dev: In<Dev>) {
        sta.get()?.add_dev(dev.get()?)
    }

    /// How many IO contexts there may be.
    fn doca_sta_set_max_sta_io(sta: In<Sta>, max_io_num: u16) {
        sta.get()?.set_max_sta_io(max_io_num)
    }

    /// The number set last, else 1.
    fn doca_sta_get_max_sta_io(sta: In<Sta>, max_io_num: Out<u16>) {
        max_io_num.put(sta.get()?.max_sta_io())
    }

    /// Where pinned memory comes from; ALREADY_EXIST the second time.
    fn doca_sta_mem_allocator_register(
        sta: In<Sta>, alloc: Option<AllocCallback>, free: Option<FreeCallback>, vtophys: Option<AddressCallback>,
    ) {
        let sta = sta.get()?;
        let (Some(alloc), Some(free), Some(vtophys)) = (alloc, free, vtophys) else {
            return Err(Code::INVALID_VALUE);
        };
        sta.set_allocator(Allocator { alloc, free, vtophys })
    }

    /// Whether namespaces can have blocks of this size, bytes.
    fn doca_sta_is_logical_block_size_supported(size: u32) -> bool = false; {
        topology::get().is_ok_and(|topology| topology.sta.logical_block_sizes.0.contains(&size))
    }
}

/// Limits of the library.
macro_rules! library_limits {
    ($($name:ident $field:ident;)*) => {
        entry! { $(
            #[doc = concat!("`StaLimits::", stringify!($field), "`")]
            fn $name(limit: Out<u32>) {
                limit.check()?;
                limit.put(topology::get()?.sta.$field)
            }
        )* }
    };
}

library_limits! {
    doca_sta_get_max_devs max_devs;
    doca_sta_get_max_subsys max_subsys;
    doca_sta_get_max_ns_per_subs max_ns_per_subs;
    doca_sta_get_max_qps max_qps;
    doca_sta_get_max_io_threads max_io_threads;
    doca_sta_get_max_io_size max_io_size;
    doca_sta_get_min_ioccsz min_ioccsz;
    doca_sta_get_max_ioccsz max_ioccsz;
    doca_sta_get_min_iorcsz min_iorcsz;
    doca_sta_get_max_iorcsz max_iorcsz;
    doca_sta_get_max_icdoff max_icdoff;
    doca_sta_get_max_be max_be;
    doca_sta_get_max_qs_per_be max_qs_per_be;
}

/// Limits of an instance's control device.
macro_rules! device_limits {
    ($($name:ident $field:ident;)*) => {
        entry! { $(
            #[doc = concat!("`StaCaps::", stringify!($field), "`")]
            fn $name(sta: In<Sta>, limit: Out<u32>) {
                limit.put(sta.get()?.caps().$field)
            }
        )* }
    };
}

device_limits! {
    doca_sta_get_max_num_eus_available max_num_eus_available;
    doca_sta_get_max_num_connected_qp_per_eu max_num_connected_qp_per_eu;
    doca_sta_get_max_io_num_per_dev max_io_num_per_dev;
    doca_sta_get_max_io_queue_size max_io_queue_size;
}

#[cfg(test)]
mod tests;
