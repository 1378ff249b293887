//! The messages that are on their way: a slot for each that the context is configured for.

use crate::connection::ConnectionId;
use doca_common::slot::Token;

/// Slots, the free ones in a list.
#[derive(Debug)]
pub(crate) struct Outbox {
    slots: Box<[Slot]>,
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    generation: u32,
    flying: bool,
    next: u32,
    connection: ConnectionId,
}

const END: u32 = u32::MAX;

impl Outbox {
    pub(crate) fn new(size: u32) -> Self {
        let slot = |index| Slot {
            generation: 0,
            flying: false,
            next: if index + 1 == size { END } else { index + 1 },
            connection: ConnectionId::UNKNOWN,
        };
        Outbox { slots: (0..size).map(slot).collect(), free: if size == 0 { END } else { 0 } }
    }

    /// Takes a slot for a message of a connection, if one is free.
    pub(crate) fn take(&mut self, connection: ConnectionId) -> Option<Token> {
        let index = self.free;
        let slot = self.slots.get_mut(index as usize)?;
        self.free = slot.next;
        slot.flying = true;
        slot.connection = connection;
        Some(Token { index, generation: slot.generation })
    }

    /// The message is not on its way any more; tells whose it was. Nothing for a token that is stale.
    pub(crate) fn give(&mut self, token: Token) -> Option<ConnectionId> {
        let slot = self.slots.get_mut(token.index as usize)?;
        if !slot.flying || slot.generation != token.generation {
            return None;
        }
        slot.flying = false;
        slot.generation = slot.generation.wrapping_add(1);
        slot.next = std::mem::replace(&mut self.free, token.index);
        Some(slot.connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_taken_once_and_stale_tokens_free_nothing() {
        let mut outbox = Outbox::new(2);
        let connection = ConnectionId::from_bits(1 << 32);
        let first = outbox.take(connection).unwrap();
        assert!(outbox.take(connection).is_some());
        assert_eq!(outbox.take(connection), None);
        assert_eq!(outbox.give(first), Some(connection));
        assert_eq!(outbox.give(first), None, "twice");
        let again = outbox.take(connection).unwrap();
        assert_eq!((again.index, outbox.give(first)), (first.index, None), "stale");
    }
}
