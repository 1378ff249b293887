//! Buffer pools: the pieces of one map, all of one size.

use crate::buf::{Buf, Shelf, Window};
use crate::code::{Code, Res};
use crate::entry::{Object, Tag};
use crate::mmap::Mmap;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

/// `struct doca_buf_pool`
#[repr(C)]
#[derive(Debug)]
pub struct Pool {
    tag: Tag,
    started: Cell<bool>,
    user_data: Cell<u64>,
    alignment: Cell<usize>,
    element_size: usize,
    mmap: Weak<Mmap>,
    shelf: Rc<Shelf>,
}

// SAFETY: repr(C) with the tag of its own type first.
unsafe impl Object for Pool {
    const TAG: u32 = u32::from_le_bytes(*b"pool");
}

impl Pool {
    /// A pool of `number` pieces of `element_size` bytes, in a map whose range is set.
    pub fn create(number: usize, element_size: usize, mmap: &Mmap) -> Res<Box<Self>> {
        if number == 0 || element_size == 0 || mmap.range().is_none() {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Box::new(Pool {
            tag: Tag::live::<Self>(),
            started: Cell::new(false),
            user_data: Cell::new(0),
            alignment: Cell::new(1),
            element_size,
            mmap: mmap.watch(),
            shelf: Shelf::stocked(number, true)?,
        }))
    }

    /// Marks the pool as destroyed; IN_USE while buffers are out.
    pub fn retire(&self) -> Res {
        self.check_complete()?;
        self.tag.kill();
        Ok(())
    }

    fn check_complete(&self) -> Res {
        if self.shelf.is_complete() { Ok(()) } else { Err(Code::IN_USE) }
    }

    fn check_idle(&self) -> Res {
        if !self.started.get() {
            return Ok(());
        }
        crate::log::error!("the buffer pool is started; stop it first");
        Err(Code::BAD_STATE)
    }

    fn started_map(&self) -> Res<Arc<Mmap>> {
        let started = self.mmap.upgrade().filter(|mmap| mmap.is_started());
        if started.is_none() {
            crate::log::error!("the memory map of a buffer pool is not started; call doca_mmap_start first");
        }
        started.ok_or(Code::BAD_STATE)
    }

    /// Cuts the map into pieces. BAD_STATE if it is not started, INITIALIZATION if it is too small.
    pub fn start(&self) -> Res {
        self.check_idle()?;
        let mmap = self.started_map()?;
        let (base, len) = mmap.range().ok_or(Code::BAD_STATE)?;
        let pieces = pieces(base, len, self.shelf.size() as usize, self.element_size, self.alignment.get());
        self.shelf.furnish(pieces.ok_or(Code::INITIALIZATION)?);
        self.started.set(true);
        Ok(())
    }

    /// Ends lending; IN_USE while buffers are out.
    pub fn stop(&self) -> Res {
        if !self.started.get() {
            return Err(Code::BAD_STATE);
        }
        self.check_complete()?;
        self.started.set(false);
        Ok(())
    }

    /// The next free piece, empty. EMPTY if there is none.
    pub fn alloc(&self) -> Res<&Buf> {
        if !self.started.get() {
            crate::log::error!("the buffer pool is not started; call doca_buf_pool_start first");
            return Err(Code::BAD_STATE);
        }
        let share = self.started_map()?;
        self.shelf.lend_fixed(share)
    }

    /// Sets the alignment of the pieces, a power of two.
    pub fn set_alignment(&self, alignment: usize) -> Res {
        if !alignment.is_power_of_two() {
            return Err(Code::INVALID_VALUE);
        }
        self.check_idle()?;
        self.alignment.set(alignment);
        Ok(())
    }

    /// The alignment of the pieces, bytes.
    pub fn alignment(&self) -> usize {
        self.alignment.get()
    }

    /// Sets the program's data.
    pub fn set_user_data(&self, data: u64) -> Res {
        self.check_idle()?;
        self.user_data.set(data);
        Ok(())
    }

    /// The program's data.
    pub fn user_data(&self) -> u64 {
        self.user_data.get()
    }

    /// The descriptors.
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }
}

/// The windows of `number` aligned pieces, or `None` if they do not fit into the range.
fn pieces(
    base: usize,
    len: usize,
    number: usize,
    size: usize,
    alignment: usize,
) -> Option<impl Iterator<Item = Window>> {
    let first = base.checked_next_multiple_of(alignment)?;
    let stride = size.checked_next_multiple_of(alignment)?;
    let end = stride.checked_mul(number)?.checked_add(first)?;
    (end <= base + len).then(|| (0..number).map(move |piece| Window::empty(first + piece * stride, size)))
}
