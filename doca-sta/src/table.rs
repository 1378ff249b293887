//! The queue pairs of an IO context.

use crate::cm::CmNumber;
use crate::diagnosis::Silence;
use crate::qp::{QpId, QpState};
use crate::raw::cm::Channel;
use crate::raw::io::QpHandle;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a queue pair may be silent before that is logged.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// How far the end of a queue pair is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Not wanted.
    No,
    /// Wanted: the disconnect task is to be submitted.
    Wanted,
    /// The disconnect task is in flight.
    Under,
    /// Disconnected: to be destroyed once nobody holds a command of it.
    Done,
    /// DOCA refused. It stays.
    Stuck,
}

pub(crate) struct Entry {
    pub(crate) handle: QpHandle,
    pub(crate) state: QpState,
    pub(crate) end: End,
    /// Commands of it that the program holds.
    pub(crate) held: u32,
    /// Whether any command came.
    pub(crate) heard: bool,
    /// Whether any command was answered.
    pub(crate) answered: bool,
    /// Whether silence was logged.
    warned: bool,
    since: Instant,
    number: Option<CmNumber>,
    /// Its identifier reports to it.
    _channel: Option<Arc<Channel>>,
}

struct Place {
    generation: u32,
    entry: Option<Entry>,
}

/// By place, and by handle.
pub(crate) struct Table {
    channel: u16,
    places: Vec<Place>,
    by_handle: HashMap<QpHandle, u32>,
    /// How many were not heard of or not answered yet.
    silent: usize,
}

impl Table {
    pub(crate) fn new(channel: u16) -> Self {
        Table { channel, places: Vec::new(), by_handle: HashMap::new(), silent: 0 }
    }

    pub(crate) fn insert(
        &mut self,
        handle: QpHandle,
        number: Option<CmNumber>,
        channel: Option<Arc<Channel>>,
    ) -> QpId {
        let index = self.places.iter().position(|place| place.entry.is_none()).unwrap_or_else(|| {
            self.places.push(Place { generation: 0, entry: None });
            self.places.len() - 1
        });
        self.places[index].entry = Some(Entry {
            handle,
            state: QpState::Created,
            end: End::No,
            held: 0,
            heard: false,
            answered: false,
            warned: false,
            since: Instant::now(),
            number,
            _channel: channel,
        });
        self.by_handle.insert(handle, index as u32);
        self.silent += 1;
        QpId { channel: self.channel, index: index as u32, generation: self.places[index].generation }
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<Entry> {
        let place = self.places.get_mut(index as usize)?;
        let entry = place.entry.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.by_handle.remove(&entry.handle);
        Some(entry)
    }

    pub(crate) fn place_of(&self, handle: QpHandle) -> Option<u32> {
        self.by_handle.get(&handle).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_handle.len()
    }

    pub(crate) fn id_at(&self, index: u32) -> Option<QpId> {
        let place = self.places.get(index as usize)?;
        place.entry.as_ref()?;
        Some(QpId { channel: self.channel, index, generation: place.generation })
    }

    pub(crate) fn get(&self, id: QpId) -> Option<&Entry> {
        let place = self.places.get(id.index as usize)?;
        if id.channel != self.channel || place.generation != id.generation {
            return None;
        }
        place.entry.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: QpId) -> Option<&mut Entry> {
        let place = self.places.get_mut(id.index as usize)?;
        if id.channel != self.channel || place.generation != id.generation {
            return None;
        }
        place.entry.as_mut()
    }

    /// The entry of a connection of RDMA CM.
    pub(crate) fn find(&self, number: CmNumber) -> Option<QpId> {
        let index = self
            .places
            .iter()
            .position(|place| place.entry.as_ref().is_some_and(|entry| entry.number == Some(number)))?;
        self.id_at(index as u32)
    }

    pub(crate) fn ids(&self) -> Vec<QpId> {
        (0..self.places.len() as u32).filter_map(|index| self.id_at(index)).collect()
    }

    /// Those that were silent for too long and were not told before.
    pub(crate) fn silent(&mut self, now: Instant) -> Vec<(QpId, Silence)> {
        if self.silent == 0 {
            return Vec::new();
        }
        let (channel, mut left, mut told) = (self.channel, 0, Vec::new());
        for (index, place) in self.places.iter_mut().enumerate() {
            let Some(entry) = &mut place.entry else { continue };
            if entry.warned || entry.answered || entry.end != End::No {
                continue;
            }
            if now.saturating_duration_since(entry.since) < PATIENCE {
                left += 1;
                continue;
            }
            entry.warned = true;
            let silence = match (entry.state, entry.heard) {
                (_, true) => Silence::Unanswered,
                (QpState::Connected, false) => Silence::NoCommand,
                _ => Silence::NotEstablished,
            };
            told.push((QpId { channel, index: index as u32, generation: place.generation }, silence));
        }
        self.silent = left;
        told
    }
}
