//! `doca_buf_inventory`: where the `doca_buf`s of one memory come from.

use crate::call;
use crate::error::{Code, Error, Result};
use doca_sys::{doca_buf, doca_buf_inventory, doca_mmap};
use std::ptr::{self, NonNull};

/// Size of the first inventory.
const FIRST: usize = 64;

/// Inventories, each twice as large as the one before; a new one is made when all are used up. Whoever owns them
/// locks them.
#[derive(Debug, Default)]
pub(crate) struct Inventories(Vec<NonNull<doca_buf_inventory>>);

// SAFETY: an inventory belongs to no thread, and the owner lets one at a time use it.
unsafe impl Send for Inventories {}

impl Inventories {
    /// A buffer over a range, which is full of data.
    ///
    /// # Safety
    ///
    /// The map is started, and the range lies inside it.
    pub(crate) unsafe fn get(
        &mut self,
        map: NonNull<doca_mmap>,
        address: *mut u8,
        len: usize,
    ) -> Result<NonNull<doca_buf>> {
        for &inventory in self.0.iter().rev() {
            // SAFETY: as the caller says; the inventory is started.
            match unsafe { get_from(inventory, map, address, len) } {
                Err(error) if error.code() == Some(Code::NO_MEMORY) => {}
                done => return done,
            }
        }
        let size = FIRST << self.0.len().min(16);
        let mut inventory = ptr::null_mut();
        // SAFETY: the out-parameter is a local.
        unsafe { call!(doca_buf_inventory_create(size, &mut inventory)) }?;
        let inventory = non_null("doca_buf_inventory_create", inventory)?;
        self.0.push(inventory);
        // SAFETY: a live inventory.
        unsafe { call!(doca_buf_inventory_start(inventory.as_ptr())) }?;
        // SAFETY: as the caller says; the inventory is started.
        unsafe { get_from(inventory, map, address, len) }
    }

    /// Destroys them. All their buffers must have come back, or DOCA refuses.
    pub(crate) fn destroy(&mut self) -> Result<()> {
        for inventory in self.0.drain(..) {
            // SAFETY: made above and destroyed once.
            unsafe { call!(doca_buf_inventory_destroy(inventory.as_ptr())) }?;
        }
        Ok(())
    }
}

/// # Safety
///
/// Inventory and map are started, and the range lies in the map.
unsafe fn get_from(
    inventory: NonNull<doca_buf_inventory>,
    map: NonNull<doca_mmap>,
    address: *mut u8,
    len: usize,
) -> Result<NonNull<doca_buf>> {
    let mut buf = ptr::null_mut();
    // SAFETY: as the caller says; the data is the whole window, and the out-parameter is a local.
    unsafe {
        call!(doca_buf_inventory_buf_get_by_args(
            inventory.as_ptr(),
            map.as_ptr(),
            address.cast(),
            len,
            address.cast(),
            len,
            &mut buf
        ))
    }?;
    non_null("doca_buf_inventory_buf_get_by_args", buf)
}

/// What DOCA gave, which must not be null.
pub(crate) fn non_null<T>(call: &'static str, pointer: *mut T) -> Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(|| Error::doca(call, Code::UNEXPECTED))
}
