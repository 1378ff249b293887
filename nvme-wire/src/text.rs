//! Texts of fixed length, and qualified names.

use crate::layout::Wire;
use std::fmt;

/// ASCII padded with spaces, as serial and model number are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Padded<const N: usize>(pub [u8; N]);

/// Text that ends at the first zero byte, as qualified names in structures do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Terminated<const N: usize>(pub [u8; N]);

/// Why a text does not fit its field, or is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// More bytes than the field takes.
    #[error("`{text}` has {len} bytes, at most {max} fit", len = text.len())]
    TooLong {
        /// The text.
        text: String,
        /// How many bytes fit.
        max: usize,
    },
    /// A byte that is not allowed in it, or no zero byte at its end.
    #[error("not text: {0}")]
    Malformed(&'static str),
    /// Not a qualified name.
    #[error("`{text}` is no NVMe qualified name: {why}")]
    NotQualified {
        /// The text.
        text: String,
        /// The rule that it breaks.
        why: &'static str,
    },
}

impl<const N: usize> Padded<N> {
    /// Printable ASCII of at most `N` bytes.
    pub fn new(text: &str) -> Result<Self, TextError> {
        if !text.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
            return Err(TextError::Malformed("only printable ASCII is allowed"));
        }
        let mut bytes = [b' '; N];
        let Some(place) = bytes.get_mut(..text.len()) else {
            return Err(TextError::TooLong { text: text.to_owned(), max: N });
        };
        place.copy_from_slice(text.as_bytes());
        Ok(Padded(bytes))
    }

    /// The text without its padding; what is not ASCII shows as `?`.
    pub fn text(&self) -> String {
        let text: String =
            self.0.iter().map(|&b| if b.is_ascii_graphic() || b == b' ' { b as char } else { '?' }).collect();
        text.trim_end().to_owned()
    }
}

impl<const N: usize> Terminated<N> {
    /// Text of less than `N` bytes, without a zero byte.
    pub fn new(text: &str) -> Result<Self, TextError> {
        if text.bytes().any(|byte| byte == 0) {
            return Err(TextError::Malformed("a zero byte within"));
        }
        if text.len() >= N {
            return Err(TextError::TooLong { text: text.to_owned(), max: N - 1 });
        }
        let mut bytes = [0; N];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Terminated(bytes))
    }

    /// The text before the zero byte.
    pub fn text(&self) -> Result<&str, TextError> {
        let end = self.0.iter().position(|&byte| byte == 0);
        let end = end.ok_or(TextError::Malformed("the zero byte at its end is missing"))?;
        std::str::from_utf8(&self.0[..end]).map_err(|_| TextError::Malformed("not UTF-8"))
    }
}

macro_rules! texts {
    ($($name:ident)*) => {$(
        impl<const N: usize> Wire for $name<N> {
            const LEN: usize = N;
            fn get(bytes: &[u8]) -> Self {
                $name(Wire::get(bytes))
            }
            fn put(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.0);
            }
        }

        impl<const N: usize> fmt::Debug for $name<N> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"{}\"", self.0.trim_ascii_end().escape_ascii().to_string().replace("\\x00", ""))
            }
        }
    )*};
}
texts!(Padded Terminated);

/// An NVMe qualified name: `nqn.` and at most 223 bytes in all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nqn(String);

impl Nqn {
    /// The well-known name of a discovery subsystem.
    pub const DISCOVERY: &'static str = "nqn.2014-08.org.nvmexpress.discovery";
    /// Longest name in bytes.
    pub const MAX_LEN: usize = 223;

    /// Checks a name.
    pub fn new(text: &str) -> Result<Self, TextError> {
        let refuse = |why| Err(TextError::NotQualified { text: text.to_owned(), why });
        if text.len() > Self::MAX_LEN {
            return refuse("it has more than 223 bytes");
        }
        let Some(rest) = text.strip_prefix("nqn.") else {
            return refuse("it does not start with `nqn.`");
        };
        if rest.is_empty() {
            return refuse("nothing follows `nqn.`");
        }
        if rest.chars().any(char::is_control) {
            return refuse("it has control characters");
        }
        Ok(Nqn(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As a field of 256 bytes.
    pub fn field(&self) -> Terminated<256> {
        let mut bytes = [0; 256];
        bytes[..self.0.len()].copy_from_slice(self.0.as_bytes());
        Terminated(bytes)
    }
}

impl fmt::Display for Nqn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Nqn {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        Nqn::new(text)
    }
}

impl TryFrom<&Terminated<256>> for Nqn {
    type Error = TextError;
    fn try_from(field: &Terminated<256>) -> Result<Self, TextError> {
        Nqn::new(field.text()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_spaces_on_the_right() {
        let padded = Padded::<8>::new("SN 1").unwrap();
        assert_eq!((padded.0, padded.text()), (*b"SN 1    ", "SN 1".to_owned()));
        assert!(matches!(Padded::<2>::new("abc"), Err(TextError::TooLong { max: 2, .. })));
        assert!(matches!(Padded::<8>::new("ä"), Err(TextError::Malformed(_))));
    }

    #[test]
    fn names_round_trip_through_their_field() {
        let nqn: Nqn = "nqn.2026-01.io.example:disk".parse().unwrap();
        assert_eq!(Nqn::try_from(&nqn.field()).unwrap(), nqn);
        assert_eq!(nqn.field().0[nqn.as_str().len()], 0);
        let longest = format!("nqn.{}", "x".repeat(219));
        assert_eq!(Nqn::new(&longest).unwrap().as_str(), longest);
    }

    #[test]
    fn bad_names_are_told_apart() {
        for (name, why) in [
            ("", "start"),
            ("iqn.x", "start"),
            ("nqn.", "nothing"),
            ("nqn.a\nb", "control"),
            (&"nqn.x".repeat(60), "223"),
        ] {
            assert!(Nqn::new(name).unwrap_err().to_string().contains(why), "{name}");
        }
        assert_eq!(
            Nqn::try_from(&Terminated([b'n'; 256])),
            Err(TextError::Malformed("the zero byte at its end is missing"))
        );
    }
}
