//! Buffers: pieces of memory that tasks take by value and give back.
//!
//! A buffer has a capacity and, in it, data. Sending sends the data; receiving uses the whole capacity, and the data
//! is then what arrived. So a received buffer can be sent back as it is, and received into again.

use crate::chain::Chain;
use crate::error::{Error, Refusal, Result};
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

    /// Makes it unchangeable, so that several sends may share it.
    pub fn freeze(mut self) -> Frozen {
        self.piece.as_source();
        Frozen(Rc::new(self))
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

impl Load {
    /// Calls `check` with the region of each buffer, until it refuses.
    ///
    /// # Errors
    ///
    /// What `check` refused with.
    #[inline]
    pub fn try_regions(&self, check: impl Fn(&Region) -> Result<()>) -> Result<()> {
        match self {
            Load::Nothing => Ok(()),
            Load::Private(buffer) => check(buffer.piece.region()),
            Load::Shared(buffer) => check(buffer.piece.region()),
            Load::Frozen(buffer) => check(buffer.0.piece.region()),
            Load::Chain(chain) => chain.buffers().iter().try_for_each(|buffer| check(buffer.piece.region())),
        }
    }

    /// How many buffers it has.
    #[inline]
    pub fn num_buffers(&self) -> usize {
        match self {
            Load::Nothing => 0,
            Load::Private(_) | Load::Shared(_) | Load::Frozen(_) => 1,
            Load::Chain(chain) => chain.num_buffers(),
        }
    }

    /// Bytes of data.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Load::Nothing => 0,
            Load::Private(buffer) => buffer.len(),
            Load::Shared(buffer) => buffer.len(),
            Load::Frozen(buffer) => buffer.len(),
            Load::Chain(chain) => chain.len(),
        }
    }

    /// Bytes that fit.
    pub fn capacity(&self) -> usize {
        match self {
            Load::Nothing => 0,
            Load::Private(buffer) => buffer.capacity(),
            Load::Shared(buffer) => buffer.capacity(),
            Load::Frozen(buffer) => buffer.0.capacity(),
            Load::Chain(chain) => chain.buffers().iter().map(Buffer::capacity).sum(),
        }
    }

    /// The first buffer's room, in which tasks put what fits into 8 bytes.
    pub fn first_capacity(&self) -> usize {
        match self {
            Load::Chain(chain) => chain.buffers().first().map_or(0, Buffer::capacity),
            one => one.capacity(),
        }
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffer in C as something to send, null if there is none.
    #[inline]
    pub fn as_source(&mut self) -> *mut doca_sys::doca_buf {
        match self {
            Load::Nothing => std::ptr::null_mut(),
            Load::Private(buffer) => buffer.piece.as_source(),
            Load::Shared(buffer) => buffer.piece.as_source(),
            Load::Frozen(buffer) => buffer.0.piece.as_is(),
            Load::Chain(chain) => chain.as_source(),
        }
    }

    /// The buffer in C as something to be filled, null if there is none.
    #[inline]
    pub fn as_destination(&mut self) -> *mut doca_sys::doca_buf {
        match self {
            Load::Nothing | Load::Frozen(_) => std::ptr::null_mut(),
            Load::Private(buffer) => buffer.piece.as_destination(),
            Load::Shared(buffer) => buffer.piece.as_destination(),
            Load::Chain(chain) => chain.as_destination(),
        }
    }

    /// Notes how many bytes arrived.
    #[inline]
    pub fn filled(&mut self, len: usize) {
        match self {
            Load::Nothing | Load::Frozen(_) => {}
            Load::Private(buffer) => buffer.piece.filled(len),
            Load::Shared(buffer) => buffer.piece.filled(len),
            Load::Chain(chain) => chain.filled(len),
        }
    }
}

impl Load {
    /// Notes that DOCA may have changed what it knows about the buffer's data.
    pub fn disturbed(&mut self) {
        match self {
            Load::Nothing | Load::Frozen(_) => {}
            Load::Private(buffer) => buffer.piece.disturbed(),
            Load::Shared(buffer) => buffer.piece.disturbed(),
            Load::Chain(chain) => chain.disturbed(),
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for super::Buffer {}
    impl Sealed for super::SharedBuffer {}
    impl Sealed for super::Frozen {}
    impl Sealed for super::Chain {}
}

/// What can be handed to a task: a buffer, a shared buffer, a frozen one, a chain, or `()` for none.
pub trait Payload: sealed::Sealed + Sized {
    /// Hands it over.
    fn into_load(self) -> Load;

    /// Takes it back. A load that was made from this type gives `Some`.
    fn from_load(load: Load) -> Option<Self>;

    /// The first 8 bytes of the data as a number in the order of this machine, if there are so many.
    fn first_word(&self) -> Option<u64>;
}

fn word(data: &[u8]) -> Option<u64> {
    data.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

/// What can be sent.
pub trait Source: Payload {}

/// What can be received into.
pub trait Destination: Payload {}

macro_rules! payload {
    ($type:ty, $variant:ident, $first_word:expr) => {
        impl Payload for $type {
            fn into_load(self) -> Load {
                Load::$variant(self)
            }

            fn from_load(load: Load) -> Option<Self> {
                match load {
                    Load::$variant(buffer) => Some(buffer),
                    _ => None,
                }
            }

            fn first_word(&self) -> Option<u64> {
                let first_word: fn(&$type) -> Option<u64> = $first_word;
                first_word(self)
            }
        }

        impl Source for $type {}
    };
}

payload!(Buffer, Private, |buffer| word(buffer));
payload!(SharedBuffer, Shared, |buffer| {
    let mut bytes = [0; 8];
    (buffer.read(&mut bytes) == 8).then_some(u64::from_ne_bytes(bytes))
});
payload!(Frozen, Frozen, |buffer| word(buffer));
payload!(Chain, Chain, |chain| chain.buffers().first().and_then(|buffer| word(buffer)));

/// An empty message, or a receive for messages without bytes.
impl Payload for () {
    fn into_load(self) -> Load {
        Load::Nothing
    }

    fn from_load(_load: Load) -> Option<Self> {
        Some(())
    }

    fn first_word(&self) -> Option<u64> {
        None
    }
}

impl Source for () {}
impl Destination for () {}
impl Destination for Buffer {}
impl Destination for SharedBuffer {}
impl Destination for Chain {}
