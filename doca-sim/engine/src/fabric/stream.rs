//! Copies between lists of pieces of two processes.

use super::context::SharedPiece;
use super::process::Process;
use super::region::{self, Piece, Pin, Refusal};
use crate::fault;

/// Which side of a copy failed.
#[derive(Debug)]
pub(super) enum Fault {
    Source(Refusal),
    Target(Refusal),
}

impl Fault {
    /// As seen from the other side.
    pub(super) fn swapped(self) -> Fault {
        match self {
            Fault::Source(refusal) => Fault::Target(refusal),
            Fault::Target(refusal) => Fault::Source(refusal),
        }
    }
}

enum Pieces<'a> {
    Listed(&'a [SharedPiece]),
    One(Piece),
}

/// A list of pieces of one process, walked from the front, pinned piece by piece.
pub(super) struct Stream<'a> {
    process: &'a Process,
    pieces: Pieces<'a>,
    access: u32,
    next: usize,
    pin: Option<Pin<'a>>,
    offset: u64,
    left: u64,
}

impl<'a> Stream<'a> {
    /// The first `count` of a list.
    pub(super) fn of(process: &'a Process, pieces: &'a [SharedPiece], count: u32, access: u32) -> Self {
        let pieces = Pieces::Listed(&pieces[..pieces.len().min(count as usize)]);
        Stream { process, pieces, access, next: 0, pin: None, offset: 0, left: 0 }
    }

    /// A single one.
    pub(super) fn one(process: &'a Process, piece: Piece, access: u32) -> Self {
        Stream { process, pieces: Pieces::One(piece), access, next: 0, pin: None, offset: 0, left: 0 }
    }

    /// Bytes of all.
    pub(super) fn total(&self) -> u64 {
        match self.pieces {
            Pieces::Listed(list) => list.iter().fold(0, |sum, piece| sum.saturating_add(piece.get().len)),
            Pieces::One(piece) => piece.len,
        }
    }

    fn skip(&mut self, step: u64) {
        self.offset += step;
        self.left -= step;
    }

    /// Pins the piece under the cursor; gives the bytes left in it.
    fn ready(&mut self) -> Result<u64, Refusal> {
        while self.left == 0 {
            let piece = match self.pieces {
                Pieces::Listed(list) => list.get(self.next).map(SharedPiece::get),
                Pieces::One(piece) => (self.next == 0).then_some(piece),
            };
            let piece = piece.ok_or(Refusal::Bounds)?;
            self.next += 1;
            if piece.len > 0 {
                self.pin = Some(region::pin(self.process, piece, self.access)?);
                self.offset = 0;
                self.left = piece.len;
            }
        }
        Ok(self.left)
    }
}

/// Copies from the front of one to the front of the other.
pub(super) fn transfer(from: &mut Stream<'_>, into: &mut Stream<'_>, length: u64) -> Result<(), Fault> {
    let mut left = length;
    while left > 0 {
        let step = from.ready().map_err(Fault::Source)?.min(into.ready().map_err(Fault::Target)?).min(left);
        if let (Some(source), Some(target)) = (&from.pin, &into.pin) {
            let len = usize::try_from(step).map_err(|_| Fault::Source(Refusal::Bounds))?;
            source.copy_to(from.offset, target, into.offset, len).map_err(Fault::Target)?;
        }
        fault::point();
        from.skip(step);
        into.skip(step);
        left -= step;
    }
    Ok(())
}
