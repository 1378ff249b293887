//! Buffers: pieces of memory that tasks take by value and give back.
//!
//! A buffer has a capacity and, in it, data. Sending sends the data; receiving uses the whole capacity, and the data
//! is then what arrived. So a received buffer can be sent back as it is, and received into again.

use crate::chain::Chain;
use crate::error::{Error, Failed, Refusal, Result};
use crate::raw::map::{Piece, Region};
use std::fmt;
use std::rc::Rc;

/// A piece of [`PrivateMemory`](crate::PrivateMemory), and a slice of its data. Dropping it gives its range back.
pub struct Buffer {
    /// Boxed, since buffers are moved into tasks and back.
    pub(crate) piece: Box<Piece>,
}

/// A piece of [`SharedMemory`](crate::SharedMemory): peers may reach it at any time, so there is no slice of it.
pub struct SharedBuffer {
    pub(crate) piece: Box<Piece>,
}

/// A buffer that will not change any more, which several sends of one thread may share. Clones are cheap.
#[derive(Clone)]
pub struct Frozen(Rc<Buffer>);

impl Buffer {
    /// Bytes that fit.
    pub fn capacity(&self) -> usize {
        self.piece.capacity()
    }

    /// Makes the data `len` bytes long, from the start of the buffer. Bytes that were not data before have their old
    /// contents, zero at first.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLong`] beyond the capacity.
    pub fn set_len(&mut self, len: usize) -> Result<()> {
        set_len(&mut self.piece, len)
    }

    /// Replaces the data.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLong`] beyond the capacity.
    pub fn fill_with(&mut self, data: &[u8]) -> Result<()> {
        self.set_len(data.len())?;
        self.copy_from_slice(data);
        Ok(())
    }

    /// Offset inside the memory it was taken from.
    pub fn offset(&self) -> usize {
        self.piece.offset()
    }

    /// Makes it unchangeable, so that several sends may share it: `doca_buf_set_data`.
    ///
    /// # Errors
    ///
    /// DOCA's, with the buffer.
    #[doc(alias = "doca_buf_set_data")]
    pub fn freeze(mut self) -> std::result::Result<Frozen, Failed<Buffer>> {
        match self.piece.as_source() {
            Ok(_) => Ok(Frozen(Rc::new(self))),
            Err(error) => Err(Failed::new(error, self)),
        }
    }
}

impl SharedBuffer {
    /// Length of the data.
    pub fn len(&self) -> usize {
        self.piece.len()
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that fit.
    pub fn capacity(&self) -> usize {
        self.piece.capacity()
    }

    /// Makes the data `len` bytes long, at most the capacity.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.piece.set_len(len);
    }

    /// Offset inside the memory it was taken from.
    pub fn offset(&self) -> usize {
        self.piece.offset()
    }
}

impl Frozen {
    /// The buffer again, if no other clone of it is left.
    ///
    /// # Errors
    ///
    /// Gives itself back while other clones, or tasks in flight, have it.
    pub fn thaw(self) -> std::result::Result<Buffer, Frozen> {
        Rc::try_unwrap(self.0).map_err(Frozen)
    }
}

impl std::ops::Deref for Frozen {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

fn set_len(piece: &mut Piece, len: usize) -> Result<()> {
    if len > piece.capacity() {
        let text = format!("{len} bytes of data in a buffer of {}", piece.capacity());
        return Err(Error::refused("doca_buf_set_data", Refusal::TooLong).with(text));
    }
    piece.set_len(len);
    Ok(())
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} of {} bytes)", self.len(), self.capacity())
    }
}

impl fmt::Debug for SharedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBuffer({} of {} bytes)", self.len(), self.capacity())
    }
}

impl fmt::Debug for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frozen({} bytes)", self.len())
    }
}

/// What a task has in flight. Library crates keep it until the task is done.
#[derive(Debug, Default)]
pub enum Load {
    /// No buffer.
    #[default]
    Nothing,
    /// A private buffer.
    Private(Buffer),
    /// A piece of shared memory.
    Shared(SharedBuffer),
    /// A source that other tasks may have too.
    Frozen(Frozen),
    /// Several private buffers.
    Chain(Chain),
}

/// A buffer or event as a task names it in C.
#[derive(Debug)]
pub struct Named<T> {
    /// Null for none.
    pub raw: *mut T,
    /// Tells objects apart, also those that DOCA makes one after the other at the same address. 0 is none.
    pub serial: u64,
}

impl<T> Clone for Named<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Named<T> {}

/// A buffer as a task names it.
pub type NamedBuf = Named<doca_sys::doca_buf>;

impl NamedBuf {
    pub(crate) const NONE: NamedBuf = Named { raw: std::ptr::null_mut(), serial: 0 };
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for super::Buffer {}
    impl Sealed for super::SharedBuffer {}
    impl Sealed for super::Frozen {}
    impl Sealed for super::Chain {}
}

/// What can be handed to a task: a buffer, a shared buffer, a frozen one, a chain, or `()` for none. Most of it is
/// for library crates.
pub trait Payload: sealed::Sealed + Sized {
    /// Hands it over.
    fn into_load(self) -> Load;

    /// Takes it back. A load that was made from this type gives `Some`.
    fn from_load(load: Load) -> Option<Self>;

    /// Calls `check` with the region of each buffer, until it refuses.
    ///
    /// # Errors
    ///
    /// What `check` refused with.
    fn try_regions(&self, check: impl Fn(&Region) -> Result<()>) -> Result<()>;

    /// How many buffers it has.
    fn num_buffers(&self) -> usize;

    /// Bytes of data.
    fn data_len(&self) -> usize;

    /// Bytes that fit.
    fn room(&self) -> usize;

    /// The first buffer's room, in which tasks put what fits into 8 bytes.
    fn first_room(&self) -> usize;

    /// Notes how many bytes arrived.
    fn filled(&mut self, len: usize);

    /// Notes that DOCA may have changed what it knows about the buffer's data.
    fn disturbed(&mut self);

    /// Makes a destination that was ready ready again: `doca_buf_reset_data_len`.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_buf_reset_data_len")]
    fn empty(&mut self) -> Result<()>;

    /// The first 8 bytes of the data as a number in the order of this machine, if there are so many.
    fn first_word(&self) -> Option<u64>;
}

/// What can be sent.
pub trait Source: Payload {
    /// Makes it ready to be sent, for library crates.
    ///
    /// # Errors
    ///
    /// DOCA's.
    fn as_source(&mut self) -> Result<NamedBuf>;
}

/// What can be received into.
pub trait Destination: Payload {
    /// Makes it ready to be filled, for library crates.
    ///
    /// # Errors
    ///
    /// DOCA's.
    fn as_destination(&mut self) -> Result<NamedBuf>;
}

fn word(data: &[u8]) -> Option<u64> {
    data.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

/// The way into a load and out of it.
macro_rules! loaded {
    ($variant:ident) => {
        #[inline]
        fn into_load(self) -> Load {
            Load::$variant(self)
        }

        #[inline]
        fn from_load(load: Load) -> Option<Self> {
            match load {
                Load::$variant(buffer) => Some(buffer),
                _ => None,
            }
        }
    };
}

/// A payload of one buffer, which nobody else has.
macro_rules! single {
    ($type:ty, $variant:ident, |$buffer:ident| $first_word:expr) => {
        impl Payload for $type {
            loaded!($variant);

            #[inline]
            fn try_regions(&self, check: impl Fn(&Region) -> Result<()>) -> Result<()> {
                check(self.piece.region())
            }

            #[inline]
            fn num_buffers(&self) -> usize {
                1
            }

            #[inline]
            fn data_len(&self) -> usize {
                self.piece.len()
            }

            #[inline]
            fn room(&self) -> usize {
                self.piece.capacity()
            }

            #[inline]
            fn first_room(&self) -> usize {
                self.piece.capacity()
            }

            #[inline]
            fn filled(&mut self, len: usize) {
                self.piece.filled(len);
            }

            #[inline]
            fn disturbed(&mut self) {
                self.piece.disturbed();
            }

            #[inline]
            fn empty(&mut self) -> Result<()> {
                self.piece.as_destination().map(|_| ())
            }

            #[inline]
            fn first_word(&self) -> Option<u64> {
                let $buffer = self;
                $first_word
            }
        }

        impl Source for $type {
            #[inline]
            fn as_source(&mut self) -> Result<NamedBuf> {
                self.piece.as_source()
            }
        }

        impl Destination for $type {
            #[inline]
            fn as_destination(&mut self) -> Result<NamedBuf> {
                self.piece.as_destination()
            }
        }
    };
}

single!(Buffer, Private, |buffer| word(buffer));
single!(SharedBuffer, Shared, |buffer| {
    let mut bytes = [0; 8];
    (buffer.read(&mut bytes) == 8).then_some(u64::from_ne_bytes(bytes))
});

impl Payload for Frozen {
    loaded!(Frozen);

    #[inline]
    fn try_regions(&self, check: impl Fn(&Region) -> Result<()>) -> Result<()> {
        check(self.0.piece.region())
    }

    #[inline]
    fn num_buffers(&self) -> usize {
        1
    }

    #[inline]
    fn data_len(&self) -> usize {
        self.0.piece.len()
    }

    fn room(&self) -> usize {
        self.0.piece.capacity()
    }

    fn first_room(&self) -> usize {
        self.0.piece.capacity()
    }

    /// Nothing arrives in it.
    #[inline]
    fn filled(&mut self, _len: usize) {}

    #[inline]
    fn disturbed(&mut self) {}

    /// It is no destination.
    fn empty(&mut self) -> Result<()> {
        Ok(())
    }

    fn first_word(&self) -> Option<u64> {
        word(self)
    }
}

impl Source for Frozen {
    /// It was made ready when it was frozen.
    #[inline]
    fn as_source(&mut self) -> Result<NamedBuf> {
        Ok(self.0.piece.as_is())
    }
}

impl Payload for Chain {
    loaded!(Chain);

    fn try_regions(&self, check: impl Fn(&Region) -> Result<()>) -> Result<()> {
        self.buffers().iter().try_for_each(|buffer| check(buffer.piece.region()))
    }

    fn num_buffers(&self) -> usize {
        self.buffers().len()
    }

    fn data_len(&self) -> usize {
        self.len()
    }

    fn room(&self) -> usize {
        self.buffers().iter().map(Buffer::capacity).sum()
    }

    fn first_room(&self) -> usize {
        self.buffers().first().map_or(0, Buffer::capacity)
    }

    fn filled(&mut self, len: usize) {
        self.fill(len);
    }

    fn disturbed(&mut self) {
        self.disturb();
    }

    fn empty(&mut self) -> Result<()> {
        self.as_destination().map(|_| ())
    }

    fn first_word(&self) -> Option<u64> {
        self.buffers().first().and_then(|buffer| word(buffer))
    }
}

impl Source for Chain {
    fn as_source(&mut self) -> Result<NamedBuf> {
        self.ready(Piece::as_source)
    }
}

impl Destination for Chain {
    fn as_destination(&mut self) -> Result<NamedBuf> {
        self.ready(Piece::as_destination)
    }
}

/// An empty message, or a receive for messages without bytes.
impl Payload for () {
    #[inline]
    fn into_load(self) -> Load {
        Load::Nothing
    }

    #[inline]
    fn from_load(_load: Load) -> Option<Self> {
        Some(())
    }

    #[inline]
    fn try_regions(&self, _check: impl Fn(&Region) -> Result<()>) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn num_buffers(&self) -> usize {
        0
    }

    #[inline]
    fn data_len(&self) -> usize {
        0
    }

    #[inline]
    fn room(&self) -> usize {
        0
    }

    #[inline]
    fn first_room(&self) -> usize {
        0
    }

    #[inline]
    fn filled(&mut self, _len: usize) {}

    #[inline]
    fn disturbed(&mut self) {}

    #[inline]
    fn empty(&mut self) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn first_word(&self) -> Option<u64> {
        None
    }
}

impl Source for () {
    #[inline]
    fn as_source(&mut self) -> Result<NamedBuf> {
        Ok(NamedBuf::NONE)
    }
}

impl Destination for () {
    #[inline]
    fn as_destination(&mut self) -> Result<NamedBuf> {
        Ok(NamedBuf::NONE)
    }
}
