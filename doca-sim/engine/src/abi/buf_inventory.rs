//! `doca_buf_inventory.h`: descriptors for buffers.

use crate::buf::{Buf, Window};
use crate::entry;
use crate::entry::{In, Out};
use crate::inventory::Inventory;
use crate::mmap::Mmap;
use std::ptr;

entry! {
    /// An inventory with room for so many buffers.
    fn doca_buf_inventory_create(num_elements: usize, inventory: Out<*const Inventory>) {
        inventory.check()?;
        inventory.put(Box::into_raw(Inventory::create(num_elements)?))
    }

    /// Ends an inventory; IN_USE while buffers are out.
    fn doca_buf_inventory_destroy(inventory: In<Inventory>) {
        inventory.get()?.retire()?;
        // SAFETY: doca_buf_inventory_create made this pointer by Box::into_raw; the tag, now dead, lets this
        // line be reached once, and no buffer is out that could lead here.
        drop(unsafe { Box::from_raw(inventory.raw().cast_mut()) });
        Ok(())
    }

    /// Lets buffers be taken.
    fn doca_buf_inventory_start(inventory: In<Inventory>) {
        inventory.get()?.set_started(true);
        Ok(())
    }

    /// Ends that; buffers that are out stay.
    fn doca_buf_inventory_stop(inventory: In<Inventory>) {
        inventory.get()?.set_started(false);
        Ok(())
    }

    /// A buffer over a window of a map, with data in it.
    fn doca_buf_inventory_buf_get_by_args(
        inventory: In<Inventory>, mmap: In<Mmap>, addr: usize, len: usize, data: usize, data_len: usize, buf: Out<*const Buf>,
    ) {
        let (inventory, mmap) = (inventory.get()?, mmap.get()?);
        buf.check()?;
        buf.put(inventory.get(mmap, Window { head: addr, len, data, data_len })?)
    }

    /// Buffers over the same memory.
    fn doca_buf_inventory_buf_dup(inventory: In<Inventory>, src_buf: In<Buf>, dst_buf: Out<*const Buf>) {
        let (inventory, source) = (inventory.get()?, src_buf.get()?);
        dst_buf.check()?;
        dst_buf.put(ptr::from_ref(inventory.duplicate(source)?))
    }

    /// Points a buffer at other data of its map.
    fn doca_buf_inventory_buf_reuse_by_data(buf: In<Buf>, data: usize, data_len: usize) {
        buf.get()?.retarget(Window::full(data, data_len))
    }

    /// Points a buffer at other room in its map.
    fn doca_buf_inventory_buf_reuse_by_addr(buf: In<Buf>, addr: usize, len: usize) {
        buf.get()?.retarget(Window::empty(addr, len))
    }

    /// Sets the program's data, in any state.
    fn doca_buf_inventory_set_user_data(inventory: In<Inventory>, user_data: u64) {
        inventory.get()?.user_data().set(user_data);
        Ok(())
    }

    /// Room for so many buffers.
    fn doca_buf_inventory_get_num_elements(inventory: In<Inventory>, num_of_elements: Out<u32>) {
        num_of_elements.put(inventory.get()?.shelf().size())
    }

    /// Room for so many more buffers.
    fn doca_buf_inventory_get_num_free_elements(inventory: In<Inventory>, num_of_free_elements: Out<u32>) {
        num_of_free_elements.put(inventory.get()?.shelf().num_free())
    }

    /// The program's data.
    fn doca_buf_inventory_get_user_data(inventory: In<Inventory>, user_data: Out<u64>) {
        user_data.put(inventory.get()?.user_data().get())
    }

    /// Makes more room.
    fn doca_buf_inventory_expand(inventory: In<Inventory>, num_elements: u32) {
        inventory.get()?.expand(num_elements)
    }
}
