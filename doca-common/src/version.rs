//! The DOCA that this program was built against, and the one that is loaded.
//!
//! Before the first call into DOCA both are compared: another major release, or a library older than the headers,
//! is refused with [`Refusal::Version`]. Who knows better calls [`allow_mismatch`] first, or sets
//! `DOCA_ALLOW_VERSION_MISMATCH=1`.

use crate::error::{Error, Refusal, Result};
use crate::raw;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A release of DOCA: `3.2.1025` in DOCA's spelling is 3.2.1, build 25.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    /// Major release.
    pub major: u32,
    /// Minor release.
    pub minor: u32,
    /// Patch release.
    pub patch: u32,
    /// Build number. It is ignored when versions are compared for fitness.
    pub build: u32,
}

impl Version {
    /// Reads DOCA's spelling.
    ///
    /// ```
    /// use doca_common::version::Version;
    /// assert_eq!(Version::parse("3.2.1025"), Some(Version { major: 3, minor: 2, patch: 1, build: 25 }));
    /// assert_eq!(Version::parse("3.two"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().splitn(3, '.');
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?.parse().ok()?;
        let last = numbers.next().unwrap_or("0");
        let digits = last.split(|c: char| !c.is_ascii_digit()).next()?;
        let number: u32 = digits.parse().ok()?;
        let (patch, build) = if digits.len() >= 4 { (number / 1000, number % 1000) } else { (number, 0) };
        Some(Version { major, minor, patch, build })
    }

    /// Whether programs built against `self` may run on `loaded`.
    fn runs_on(self, loaded: Version) -> bool {
        let release = |v: Version| (v.minor, v.patch);
        loaded.major == self.major && release(loaded) >= release(self)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if self.build != 0 {
            write!(f, " (build {})", self.build)?;
        }
        Ok(())
    }
}

/// Both versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Versions {
    /// Of the headers: `doca_version`.
    pub built: Option<Version>,
    /// Of the loaded library: `doca_version_runtime`.
    pub loaded: Option<Version>,
    /// The texts that were read.
    texts: (String, String),
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "built against DOCA {}, running on DOCA {}", self.texts.0, self.texts.1)
    }
}

/// The versions of this process.
#[doc(alias = "doca_version_runtime")]
#[doc(alias = "doca_version")]
pub fn version() -> Versions {
    let texts = (doca_sys::built::VERSION_FULL.to_owned(), raw::version::loaded());
    Versions { built: Version::parse(&texts.0), loaded: Version::parse(&texts.1), texts }
}

static ALLOWED: AtomicBool = AtomicBool::new(false);
static FITS: OnceLock<bool> = OnceLock::new();

/// Lets the program run on a DOCA that does not fit its headers. Calls may then fail or do something else.
pub fn allow_mismatch() {
    ALLOWED.store(true, Ordering::Relaxed);
}

/// Refuses to go on if the loaded DOCA does not fit. The first call of every kind comes through here.
///
/// # Errors
///
/// [`Refusal::Version`] with both versions.
pub fn require_fit() -> Result<()> {
    let fits = *FITS.get_or_init(|| {
        let versions = version();
        matches!((versions.built, versions.loaded), (Some(built), Some(loaded)) if built.runs_on(loaded))
    });
    if fits || ALLOWED.load(Ordering::Relaxed) || allowed_by_environment() {
        return Ok(());
    }
    Err(Error::refused("doca_version_runtime", Refusal::Version).with(version().to_string()))
}

fn allowed_by_environment() -> bool {
    std::env::var_os("DOCA_ALLOW_VERSION_MISMATCH").is_some_and(|value| value == "1")
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn runs_on_the_same_release_and_later_ones_of_the_same_major() {
        let v = |text| Version::parse(text).unwrap();
        for (built, loaded, fits) in [
            ("3.2.0044", "3.2.0058", true),
            ("3.2.0058", "3.2.0044", true),
            ("3.2.0044", "3.3.0001", true),
            ("3.2.1025", "3.2.0999", false),
            ("3.2.0044", "3.1.0500", false),
            ("3.2.0044", "4.0.0001", false),
            ("3.0.0058", "2.10.0087", false),
        ] {
            assert_eq!(v(built).runs_on(v(loaded)), fits, "{built} on {loaded}");
        }
    }
}
