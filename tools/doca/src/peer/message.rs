//! What the two sides tell each other: JSON, in messages with an immediate value of their own.

use serde::{Deserialize, Serialize};

/// The immediate value of a [`Request`] or [`Reply`]. Another version of what they say takes another value.
pub(super) const CONTROL: u32 = 0xd0ca_0001;

/// The immediate value of bytes that the server sends back, unless they came with one.
pub(super) const ECHO: u32 = 0xd0ca_ec40;

/// Bytes of the longest request or reply: two descriptors, as lists of numbers.
pub(super) const TALK: usize = 32 << 10;

/// Bytes of the longest message.
pub(crate) const LONGEST: usize = 1 << 20;

/// Bytes that a client can have shared.
pub(super) const MOST_SHARED: usize = 1 << 30;

/// What a client wants of the server.
#[derive(Serialize, Deserialize, Debug)]
pub(super) enum Request {
    /// To reach into so many bytes, filled with a [`pattern`], and into an event if `event`. Messages without an
    /// immediate value are counted from now on, and sent back if `echo`.
    Share { bytes: usize, seed: u64, event: bool, echo: bool },
    /// To know what was counted.
    Count,
    /// To get the first bytes of the shared memory in a message.
    Look { bytes: usize },
    /// To have the event set.
    SetEvent(u64),
    /// To know the value of the event.
    GetEvent,
}

/// What the server answers.
#[derive(Serialize, Deserialize, Debug)]
pub(super) enum Reply {
    Shared { memory: Vec<u8>, event: Option<Vec<u8>> },
    Counted { messages: u64, bytes: u64 },
    Event(u64),
    Refused(String),
}

/// Bytes that look random, the same for the same seed.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    // Marsaglia's xorshift; a state of zero would stay zero.
    let mut state = seed | 1 << 63;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_differ_by_seed_and_begin_alike() {
        assert_eq!(pattern(7, 100)[..13], pattern(7, 13));
        assert_ne!(pattern(7, 16), pattern(8, 16));
        assert!(pattern(0, 4096).chunks(8).all(|word| word != [0; 8]));
    }

    #[test]
    fn the_longest_reply_has_room() {
        let descriptor = vec![255; 4000];
        let reply = Reply::Shared { memory: descriptor.clone(), event: Some(descriptor) };
        assert!(serde_json::to_vec(&reply).unwrap().len() <= TALK);
    }
}
