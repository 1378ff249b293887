//! DOCA's version numbers: `3.2.1025` is release 3.2.1, build 25.

use std::fmt;

/// The oldest minor release these bindings are for: 2.x has other signatures under the same names.
pub(crate) const OLDEST: (u32, u32) = (3, 0);
/// The newest minor release these bindings were checked with.
pub(crate) const NEWEST: (u32, u32) = (3, 3);

/// What must agree between all parts of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
}

impl Release {
    /// Major and minor number, what support is stated in.
    pub(crate) fn minor_release(self) -> (u32, u32) {
        (self.major, self.minor)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A version as some file spells it, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) text: String,
    pub(crate) release: Release,
    /// Absent where only the release is given, as in `3.3.0`.
    pub(crate) build: Option<u32>,
}

impl Version {
    /// Decodes `major.minor.patch`, whose last field holds `patch * 1000 + build` when it has four digits or
    /// more. What follows the numbers (a package revision, a simulator's mark) is left alone.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let mut fields = numbers.split('.');
        let major = fields.next()?.parse().ok()?;
        let minor = fields.next()?.parse().ok()?;
        let last = fields.next().unwrap_or("0");
        let number: u32 = last.parse().ok()?;
        let (patch, build) =
            if last.len() >= 4 { (number / 1000, Some(number % 1000)) } else { (number, None) };
        Some(Version { text: text.to_owned(), release: Release { major, minor, patch }, build })
    }

    /// Reads the version that a `doca_version.h` defines, also under the names of 2.x.
    pub(crate) fn of_header(header: &str) -> Option<Self> {
        ["DOCA_VERSION", "DOCA_VER"].iter().find_map(|name| {
            if let Some(text) = macro_value(header, &format!("{name}_STRING")) {
                return Version::parse(text.trim_matches('"'));
            }
            let number = |part| macro_value(header, &format!("{name}_{part}"))?.parse::<u32>().ok();
            let (major, minor, patch) = (number("MAJOR")?, number("MINOR")?, number("PATCH")?);
            Version::parse(&format!("{major}.{minor}.{patch:04}"))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.release)?;
        self.build.map_or(Ok(()), |build| write!(f, " build {build}"))
    }
}

/// The value that a header gives to an object-like macro.
fn macro_value<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    header.lines().find_map(|line| {
        let mut words = line.trim_start().strip_prefix('#')?.split_whitespace();
        (words.next()? == "define" && words.next()? == name).then(|| words.next())?
    })
}
