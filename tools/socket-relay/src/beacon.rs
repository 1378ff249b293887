//! What a host relay asks, under a Comch name that all relays know, when its own name is not served, and what a DPU
//! relay answers. See `PROTOCOL.md`.

use std::fmt;

/// The Comch name of the beacon.
pub const NAME: &str = "doca-socket-relay";

/// The whole question, and what an answer begins with.
pub const QUESTION: &[u8; 16] = b"DSRELAY-NAMES-1\n";

/// Which services a DPU has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Services {
    /// How many there are.
    pub count: u32,
    /// Names of those that an answer had room for.
    pub names: Vec<String>,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// It does not begin as it must.
    Magic,
    /// It ends too early.
    Length,
    /// A name is not UTF-8.
    Text,
    /// It has names for more services than it says there are, or an empty one.
    Names,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::Magic => "it is of another kind",
            Malformed::Length => "it ends too early",
            Malformed::Text => "a name is not UTF-8",
            Malformed::Names => "its names are not as many as it says, or empty",
        })
    }
}

impl std::error::Error for Malformed {}

impl Services {
    /// Writes an answer of at most `most` bytes. Names are as Comch has them: not empty, and without a zero byte.
    pub fn encode(names: &[String], most: usize) -> Vec<u8> {
        let mut out = QUESTION.to_vec();
        out.extend_from_slice(&u32::try_from(names.len()).unwrap_or(u32::MAX).to_le_bytes());
        for name in names.iter().filter(|name| !name.is_empty() && !name.contains('\0')) {
            if out.len() + name.len() < most {
                out.extend_from_slice(name.as_bytes());
                out.push(0);
            }
        }
        out
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(message: &[u8]) -> Result<Services, Malformed> {
        let rest = message.strip_prefix(QUESTION).ok_or(Malformed::Magic)?;
        let (count, rest) = rest.split_first_chunk().ok_or(Malformed::Length)?;
        let count = u32::from_le_bytes(*count);
        let text = std::str::from_utf8(rest).map_err(|_| Malformed::Text)?;
        let names: Vec<String> = match text.strip_suffix('\0') {
            Some(text) => text.split('\0').map(str::to_owned).collect(),
            None if text.is_empty() => Vec::new(),
            None => return Err(Malformed::Length),
        };
        if names.len() > count as usize || names.iter().any(String::is_empty) {
            return Err(Malformed::Names);
        }
        Ok(Services { count, names })
    }
}

impl fmt::Display for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names.is_empty() {
            return f.write_str("none");
        }
        // They come from another machine, and go to a log.
        let quoted: Vec<String> = self.names.iter().map(|name| format!("{name:?}")).collect();
        f.write_str(&quoted.join(", "))?;
        match self.count as usize - self.names.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
