//! Buffer inventories: descriptors for windows on any map.

use crate::buf::{Buf, Shelf, Window};
use crate::code::{Code, Res};
use crate::entry::{Object, Tag};
use crate::mmap::Mmap;
use crate::profile;
use std::cell::Cell;
use std::rc::Rc;

/// `struct doca_buf_inventory`
#[repr(C)]
#[derive(Debug)]
pub struct Inventory {
    tag: Tag,
    started: Cell<bool>,
    user_data: Cell<u64>,
    shelf: Rc<Shelf>,
}

// SAFETY: repr(C) with the tag of its own type first.
unsafe impl Object for Inventory {
    const TAG: u32 = u32::from_le_bytes(*b"inv.");
}

impl Inventory {
    /// An inventory of `number` descriptors. INVALID_VALUE for none.
    pub fn create(number: usize) -> Res<Box<Self>> {
        if number == 0 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Box::new(Inventory {
            tag: Tag::live::<Self>(),
            started: Cell::new(false),
            user_data: Cell::new(0),
            shelf: Shelf::stocked(number, false)?,
        }))
    }

    /// Marks the inventory as destroyed; IN_USE while buffers are out.
    pub fn retire(&self) -> Res {
        if !self.shelf.is_complete() {
            return Err(Code::IN_USE);
        }
        self.tag.kill();
        Ok(())
    }

    /// Lets buffers be taken, or not.
    pub fn set_started(&self, started: bool) {
        self.started.set(started);
    }

    fn check_started(&self) -> Res {
        if self.started.get() || profile::get().inventory_needs_no_start {
            return Ok(());
        }
        crate::log::error!("the buffer inventory is not started; call doca_buf_inventory_start first");
        Err(Code::BAD_STATE)
    }

    /// A buffer over a window of a map.
    pub fn get(&self, mmap: &Mmap, window: Window) -> Res<&Buf> {
        self.check_started()?;
        self.shelf.lend(mmap, window)
    }

    /// Descriptors of this inventory for the memory of a list. NOT_PERMITTED for an inner element.
    pub fn duplicate(&self, source: &Buf) -> Res<&Buf> {
        self.check_started()?;
        if source.refcount() == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if !source.is_head() {
            return Err(Code::NOT_PERMITTED);
        }
        self.shelf.duplicate(source)
    }

    /// Adds descriptors.
    pub fn expand(&self, number: u32) -> Res {
        if number == 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.check_started()?;
        self.shelf.grow(number as usize)
    }

    /// The descriptors.
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// The program's data.
    pub fn user_data(&self) -> &Cell<u64> {
        &self.user_data
    }
}
