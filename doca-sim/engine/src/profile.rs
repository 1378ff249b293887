//! Profiles: readings of DOCA where its real behaviour is unknown or differs by release.
//!
//! `DOCA_SIM_PROFILE` names them, separated by commas. Without it, the simulator follows NVIDIA's guidance.

use crate::log;
use std::sync::OnceLock;

macro_rules! profiles {
    ($($(#[$meta:meta])* $field:ident $name:literal;)*) => {
        /// Which profiles are on.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Profiles { $($(#[$meta])* pub $field: bool,)* }

        impl Profiles {
            /// The names, for messages.
            pub const NAMES: &[&str] = &[$($name,)*];

            fn parse(list: &str) -> Result<Self, &str> {
                let mut profiles = Self::default();
                for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                    match name {
                        $($name => profiles.$field = true,)*
                        unknown => return Err(unknown),
                    }
                }
                Ok(profiles)
            }
        }
    };
}

profiles! {
    /// An access that the target refuses fails with IO_FAILED, as hardware completion errors do elsewhere in DOCA,
    /// instead of NOT_PERMITTED.
    refused_io_failed "refused-io-failed";
}

/// The profiles of this process. An unknown name is logged and the list is ignored.
pub fn get() -> Profiles {
    static PROFILES: OnceLock<Profiles> = OnceLock::new();
    *PROFILES.get_or_init(|| {
        let list = std::env::var("DOCA_SIM_PROFILE").unwrap_or_default();
        Profiles::parse(&list).unwrap_or_else(|unknown| {
            log::error!("DOCA_SIM_PROFILE: unknown profile '{unknown}'; known are {:?}", Profiles::NAMES);
            Profiles::default()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_nonsense_is_named() {
        assert_eq!(Profiles::parse(""), Ok(Profiles::default()));
        assert!(Profiles::parse(" refused-io-failed ,").is_ok_and(|p| p.refused_io_failed));
        assert_eq!(Profiles::parse("refused-io-failed,nonsense"), Err("nonsense"));
    }
}
