//! `DOCA_SIM_STRICT=1`: shows what timing hides, at the price of reading every source twice.
//!
//! A source that has other bytes when its task completes than when it was submitted is told of: on hardware, nobody knows
//! which of them were sent. The room of a receive is filled with a pattern until a message comes, so that who reads it
//! before the completion does not find what happened to be there. Neither makes a correct program behave differently:
//! what a message did not overwrite is put back before the completion.

use crate::fabric::operation::Outcome;
use crate::fabric::process;
use crate::fabric::receives::Received;
use crate::fabric::region::{self, Piece};
use crate::lock::lock;
use crate::log;
use crate::profile;
use crate::task::Task;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

/// What stands in the room of a receive before a message comes.
pub const PATTERN: u8 = 0xdb;

/// What is remembered of a task in flight.
enum Note {
    /// Where its source is, and the checksum of it.
    Source(Vec<Piece>, u32),
    /// The room of a receive, and what was there.
    Room(Vec<(Piece, Vec<u8>)>),
}

/// By the task's address.
static NOTES: LazyLock<Mutex<HashMap<usize, Note>>> = LazyLock::new(Mutex::default);

fn note(task: &Task, note: Note) {
    lock(&NOTES).insert(std::ptr::from_ref(task).addr(), note);
}

fn noted(task: &Task) -> Option<Note> {
    if profile::get().strict { lock(&NOTES).remove(&std::ptr::from_ref(task).addr()) } else { None }
}

/// A task that reads these pieces is being submitted.
pub fn lend(task: &Task, pieces: impl Iterator<Item = Piece>) {
    if profile::get().strict {
        let pieces: Vec<Piece> = pieces.collect();
        if let Some(sum) = checksum(&pieces) {
            note(task, Note::Source(pieces, sum));
        }
    }
}

/// The task is about to be called back: its source must be what it was.
pub fn give_back(task: &Task, kind: &str) {
    if let Some(Note::Source(pieces, before)) = noted(task)
        && checksum(&pieces).is_some_and(|now| now != before)
    {
        log::error!(
            "the source of a {kind} task was changed between submit and completion: it belongs to the device until then"
        );
    }
}

fn checksum(pieces: &[Piece]) -> Option<u32> {
    let mut hasher = crc32fast::Hasher::new();
    for piece in pieces {
        hasher.update(&read(*piece)?);
    }
    Some(hasher.finalize())
}

/// `None` where the memory is not registered any more.
fn read(piece: Piece) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(piece.len).ok()?];
    region::pin(process::local().ok()?, piece, 0).ok()?.read(0, &mut bytes).ok()?;
    Some(bytes)
}

fn write(piece: Piece, offset: usize, bytes: &[u8]) -> Option<()> {
    region::pin(process::local().ok()?, piece, 0).ok()?.write(offset as u64, bytes).ok()
}

/// A receive with this room is being submitted.
pub fn open(task: &Task, pieces: impl Iterator<Item = Piece>) {
    if !profile::get().strict {
        return;
    }
    let room: Vec<_> = pieces.filter_map(|piece| Some((piece, read(piece)?))).collect();
    for (piece, before) in &room {
        let _ = write(*piece, 0, &vec![PATTERN; before.len()]);
    }
    note(task, Note::Room(room));
}

/// The receive is about to be called back: puts back what no message has overwritten.
pub fn close(task: &Task, result: &Received) {
    let Some(Note::Room(room)) = noted(task) else { return };
    let mut came = match result.outcome {
        Outcome::Success => result.placed() as usize,
        Outcome::Flushed | Outcome::Length => 0,
        // Some of it may have come.
        _ => return,
    };
    for (piece, before) in room {
        let kept = came.min(before.len());
        let _ = write(piece, kept, &before[kept..]);
        came -= kept;
    }
}
