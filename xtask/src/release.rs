//! Which DOCA an installed prefix claims to be.

use crate::Result;

/// A release that the tables can describe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Release {
    V3_0,
    V3_3,
}

impl Release {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text {
            "3.0" => Ok(Release::V3_0),
            "3.3" => Ok(Release::V3_3),
            other => Err(format!("--doca-version {other}: 3.3 and 3.0 are known")),
        }
    }

    /// As `.pc` files and file names of libraries have it.
    pub(crate) fn full(self) -> &'static str {
        match self {
            Release::V3_0 => "3.0.0058",
            Release::V3_3 => "3.3.0000",
        }
    }

    /// As the `VERSION` files have it.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Release::V3_0 => "3.0.0",
            Release::V3_3 => "3.3.0",
        }
    }

    /// Major, minor and patch of `doca_version.h`.
    pub(crate) fn numbers(self) -> [u32; 3] {
        match self {
            Release::V3_0 => [3, 0, 58],
            Release::V3_3 => [3, 3, 0],
        }
    }

    /// Whether a table row with this `since` column is part of the release.
    pub(crate) fn has(self, since: &str) -> bool {
        let later = since.starts_with("3.1");
        let dropped = since.starts_with("3.0 only");
        match self {
            Release::V3_0 => !later,
            Release::V3_3 => !dropped,
        }
    }
}

/// The side of the PCIe bus that a prefix is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Host,
    Dpu,
}

impl Side {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text {
            "host" => Ok(Side::Host),
            "dpu" => Ok(Side::Dpu),
            other => Err(format!("--side {other}: it is host or dpu")),
        }
    }

    /// The folder of `doca-sim/include` that holds its `doca_build_config.h`.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Side::Host => "host",
            Side::Dpu => "dpu",
        }
    }
}
