//! From the buffers of a task to stretches of registered memory, and back.

use crate::buf::Buf;
use crate::fabric::region::Piece;
use crate::mmap::Backing;

/// The elements of a list, if there is one.
pub fn chain(head: Option<&Buf>) -> impl Iterator<Item = &Buf> {
    std::iter::successors(head, |buf| buf.next())
}

/// Bytes of data of a chain.
pub fn data_len(head: Option<&Buf>) -> u64 {
    chain(head).map(|buf| buf.data_len() as u64).sum()
}

fn piece(buf: &Buf, addr: usize, len: usize) -> Option<Piece> {
    match buf.mmap().backing() {
        Backing::Local(region) => Some(Piece { addr: addr as u64, len: len as u64, region }),
        Backing::Remote(_) => None,
    }
}

/// The data sections of a chain.
pub fn data(head: Option<&Buf>) -> impl Iterator<Item = Piece> + '_ {
    chain(head).filter_map(|buf| piece(buf, buf.data(), buf.data_len()))
}

/// The free room behind the data of each buffer of a chain.
pub fn rooms(head: Option<&Buf>) -> impl Iterator<Item = Piece> + '_ {
    chain(head).filter_map(|buf| piece(buf, buf.data() + buf.data_len(), buf.room()))
}

/// Lets the data of a chain grow by `length` bytes, in order.
pub fn advance(head: Option<&Buf>, length: u64) {
    let mut left = length;
    for buf in chain(head) {
        let step = left.min(buf.room() as u64);
        // Cannot fail: the step is no more than the room.
        let _ = buf.set_data_len(buf.data_len() + step as usize);
        left -= step;
        if left == 0 {
            break;
        }
    }
}
