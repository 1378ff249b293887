//! Chains: several buffers that a task sees as one message.

use crate::buffer::{Buffer, NamedBuf};
use crate::error::{Failed, Result};
use crate::raw::map::Piece;
use std::fmt;

/// Private buffers that are sent, or received into, as one message: in order, each as far as its data or its
/// capacity goes. Contexts limit how many there may be.
pub struct Chain {
    /// Linked in C in this order; a buffer leaves only after it was unlinked. Boxed, since chains are moved into tasks
    /// and back.
    #[expect(clippy::box_collection, reason = "every load is as large as the largest")]
    buffers: Box<Vec<Buffer>>,
}

impl Chain {
    /// A chain of one.
    pub fn new(first: Buffer) -> Self {
        Chain { buffers: Box::new(vec![first]) }
    }

    /// Adds a buffer at the end: `doca_buf_chain_list`.
    ///
    /// # Errors
    ///
    /// DOCA's, with the buffer.
    #[doc(alias = "doca_buf_chain_list")]
    pub fn push(&mut self, buffer: Buffer) -> std::result::Result<(), Failed<Buffer>> {
        match self.buffers[0].piece.link(&buffer.piece) {
            Ok(()) => {
                self.buffers.push(buffer);
                Ok(())
            }
            Err(error) => Err(Failed::new(error, buffer)),
        }
    }

    /// How many buffers there are.
    pub fn num_buffers(&self) -> usize {
        self.buffers.len()
    }

    /// Bytes of data in all.
    pub fn len(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.len()).sum()
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffers, in order.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The data of one buffer, to be changed.
    ///
    /// # Panics
    ///
    /// If there is no such buffer.
    pub fn data_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.buffers[index]
    }

    /// Sets the length of the data of one buffer, as [`Buffer::set_len`] does.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLong`](crate::Refusal::TooLong)
    ///
    /// # Panics
    ///
    /// If there is no such buffer.
    pub fn set_len(&mut self, index: usize, len: usize) -> Result<()> {
        self.buffers[index].set_len(len)
    }

    /// Takes the chain apart: `doca_buf_unchain_list`.
    #[doc(alias = "doca_buf_unchain_list")]
    pub fn into_buffers(mut self) -> Vec<Buffer> {
        self.unlink()
    }

    /// Empties the chain. What DOCA does not unlink is leaked: a task with one of the buffers would reach the others.
    fn unlink(&mut self) -> Vec<Buffer> {
        let mut linked = std::mem::take(&mut *self.buffers);
        let mut buffers = Vec::with_capacity(linked.len());
        while linked.len() > 1
            && let Some(last) = linked.pop()
        {
            if let Err(error) = linked[0].piece.unlink(&last.piece) {
                log::warn!("{error}: {} buffers are leaked", linked.len() + 1);
                std::mem::forget((last, linked));
                linked = Vec::new();
                break;
            }
            buffers.push(last);
        }
        buffers.append(&mut linked);
        buffers.reverse();
        buffers
    }

    /// Makes each buffer ready; the first stands for all.
    pub(crate) fn ready(&mut self, each: impl Fn(&mut Piece) -> Result<NamedBuf>) -> Result<NamedBuf> {
        for buffer in &mut *self.buffers {
            each(&mut buffer.piece)?;
        }
        Ok(self.buffers[0].piece.as_is())
    }

    /// A message of this length arrived: each buffer was filled before the next.
    pub(crate) fn fill(&mut self, mut len: usize) {
        for buffer in &mut *self.buffers {
            let part = len.min(buffer.capacity());
            buffer.piece.filled(part);
            len -= part;
        }
    }

    pub(crate) fn disturb(&mut self) {
        for buffer in &mut *self.buffers {
            buffer.piece.disturbed();
        }
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        drop(self.unlink());
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({} buffers, {} bytes)", self.num_buffers(), self.len())
    }
}
