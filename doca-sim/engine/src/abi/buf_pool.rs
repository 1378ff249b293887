//! `doca_buf_pool.h`: buffers of one size over one map.

use crate::buf::Buf;
use crate::entry;
use crate::entry::{In, Out};
use crate::mmap::Mmap;
use crate::pool::Pool;
use std::ptr;

entry! {
    /// A pool of equal pieces of a map.
    fn doca_buf_pool_create(num_elements: usize, element_size: usize, mmap: In<Mmap>, buf_pool: Out<*const Pool>) {
        let mmap = mmap.get()?;
        buf_pool.check()?;
        buf_pool.put(Box::into_raw(Pool::create(num_elements, element_size, mmap)?))
    }

    /// Ends a pool; IN_USE while buffers are out.
    fn doca_buf_pool_destroy(buf_pool: In<Pool>) {
        buf_pool.get()?.retire()?;
        // SAFETY: doca_buf_pool_create made this pointer by Box::into_raw; the tag, now dead, lets this line
        // be reached once, and no buffer is out that could lead here.
        drop(unsafe { Box::from_raw(buf_pool.raw().cast_mut()) });
        Ok(())
    }

    /// Cuts the map into pieces.
    fn doca_buf_pool_start(buf_pool: In<Pool>) {
        buf_pool.get()?.start()
    }

    /// Ends lending; IN_USE while buffers are out.
    fn doca_buf_pool_stop(buf_pool: In<Pool>) {
        buf_pool.get()?.stop()
    }

    /// The next free piece, without data.
    fn doca_buf_pool_buf_alloc(buf_pool: In<Pool>, buf: Out<*const Buf>) {
        let pool = buf_pool.get()?;
        buf.check()?;
        buf.put(ptr::from_ref(pool.alloc()?))
    }

    /// Sets the program's data.
    fn doca_buf_pool_set_user_data(buf_pool: In<Pool>, user_data: u64) {
        buf_pool.get()?.set_user_data(user_data)
    }

    /// Sets the alignment of the pieces.
    fn doca_buf_pool_set_element_alignment(buf_pool: In<Pool>, element_alignment: usize) {
        buf_pool.get()?.set_alignment(element_alignment)
    }

    /// Number of pieces.
    fn doca_buf_pool_get_num_elements(buf_pool: In<Pool>, num_of_elements: Out<u32>) {
        num_of_elements.put(buf_pool.get()?.shelf().size())
    }

    /// Number of free pieces.
    fn doca_buf_pool_get_num_free_elements(buf_pool: In<Pool>, num_of_free_elements: Out<u32>) {
        num_of_free_elements.put(buf_pool.get()?.shelf().num_free())
    }

    /// The program's data.
    fn doca_buf_pool_get_user_data(buf_pool: In<Pool>, user_data: Out<u64>) {
        user_data.put(buf_pool.get()?.user_data())
    }

    /// The alignment of the pieces.
    fn doca_buf_pool_get_element_alignment(buf_pool: In<Pool>, element_alignment: Out<usize>) {
        element_alignment.put(buf_pool.get()?.alignment())
    }
}
