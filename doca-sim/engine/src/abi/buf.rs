//! `doca_buf.h`: buffers and lists of them.

use crate::buf::Buf;
use crate::code::{Code, Res};
use crate::entry;
use crate::entry::{In, Out};
use std::ptr;

/// A buffer that was not given back.
fn out(buf: &In<Buf>) -> Res<&Buf> {
    let buf = buf.get()?;
    if buf.refcount() == 0 { Err(Code::INVALID_VALUE) } else { Ok(buf) }
}

entry! {
    /// Adds an owner.
    fn doca_buf_inc_refcount(buf: In<Buf>, refcount: Out<u16>) {
        refcount.put_if_wanted(buf.get()?.increment()?);
        Ok(())
    }

    /// Removes an owner; the last one gives the whole list back.
    fn doca_buf_dec_refcount(buf: In<Buf>, refcount: Out<u16>) {
        refcount.put_if_wanted(buf.get()?.decrement()?);
        Ok(())
    }

    /// Number of owners.
    fn doca_buf_get_refcount(buf: In<Buf>, refcount: Out<u16>) {
        refcount.put(buf.get()?.refcount())
    }

    /// Bytes of the window.
    fn doca_buf_get_len(buf: In<Buf>, len: Out<usize>) {
        len.put(out(&buf)?.len())
    }

    /// Start of the window.
    fn doca_buf_get_head(buf: In<Buf>, head: Out<usize>) {
        head.put(out(&buf)?.head())
    }

    /// Bytes of data.
    fn doca_buf_get_data_len(buf: In<Buf>, data_len: Out<usize>) {
        data_len.put(out(&buf)?.data_len())
    }

    /// Start of the data.
    fn doca_buf_get_data(buf: In<Buf>, data: Out<usize>) {
        data.put(out(&buf)?.data())
    }

    /// Moves the data inside the window.
    fn doca_buf_set_data(buf: In<Buf>, data: usize, data_len: usize) {
        out(&buf)?.set_data(data, data_len)
    }

    /// Sets the bytes of data.
    fn doca_buf_set_data_len(buf: In<Buf>, data_len: usize) {
        out(&buf)?.set_data_len(data_len)
    }

    /// No data; where they would start stays.
    fn doca_buf_reset_data_len(buf: In<Buf>) {
        out(&buf)?.set_data_len(0)
    }

    /// The next element, or NULL.
    fn doca_buf_get_next_in_list(buf: In<Buf>, next_buf: Out<*const Buf>) {
        next_buf.put(out(&buf)?.next().map_or(ptr::null(), ptr::from_ref))
    }

    /// The last element.
    fn doca_buf_get_last_in_list(buf: In<Buf>, last_buf: Out<*const Buf>) {
        last_buf.put(out(&buf)?.last())
    }

    /// Whether no element follows.
    fn doca_buf_is_last_in_list(buf: In<Buf>, is_last: Out<u8>) {
        is_last.put(u8::from(out(&buf)?.next().is_none()))
    }

    /// Whether no element comes before.
    fn doca_buf_is_first_in_list(buf: In<Buf>, is_first: Out<u8>) {
        is_first.put(u8::from(out(&buf)?.is_head()))
    }

    /// Whether the list has more than this element.
    fn doca_buf_is_in_list(buf: In<Buf>, is_in_list: Out<u8>) {
        let buf = out(&buf)?;
        is_in_list.put(u8::from(!buf.is_head() || buf.next().is_some()))
    }

    /// Number of elements; asked of the head.
    fn doca_buf_get_list_len(buf: In<Buf>, num_elements: Out<u32>) {
        let buf = out(&buf)?;
        num_elements.check()?;
        if buf.is_head() { num_elements.put(buf.list_len()) } else { Err(Code::NOT_PERMITTED) }
    }

    /// Appends a list to a list.
    fn doca_buf_chain_list(list1: In<Buf>, list2: In<Buf>) {
        let (list1, list2) = (out(&list1)?, out(&list2)?);
        list1.chain(list1.last(), list2)
    }

    /// Appends a list to a list whose last element is known.
    fn doca_buf_chain_list_tail(list1_head: In<Buf>, list1_tail: In<Buf>, list2: In<Buf>) {
        out(&list1_head)?.chain(out(&list1_tail)?, out(&list2)?)
    }

    /// Cuts a list in two.
    fn doca_buf_unchain_list(list1: In<Buf>, list2: In<Buf>) {
        out(&list1)?.unchain(out(&list2)?)
    }
}

#[cfg(test)]
mod tests;
