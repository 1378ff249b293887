//! What programs hold of an instance beside its contexts: numbers that look like pointers, and lead nowhere.
//!
//! A handle names an object of a kind in an instance, and is never used again after its object, so that one which is over is
//! recognised. It is no address, so who follows it crashes at once.

use super::core::Core;
use crate::code::{Code, Res};
use crate::fork;
use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

/// A kind of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Subsystem = 1,
    Namespace = 2,
    BackEnd = 3,
    Queue = 4,
    Qp = 5,
    Unit = 6,
    /// A command that the program must answer.
    Token = 7,
}

/// `struct doca_sta_*_handle *`, as C hands it over: NULL, a handle, or nonsense.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Handle(u64);

/// Upper bits of every handle: no address on any machine that this runs on.
const MARK: u64 = 0xd0c0;

static CORES: Mutex<BTreeMap<u16, Weak<Core>>> = Mutex::new(BTreeMap::new());

/// A number for an instance, by which handles find it. NO_MEMORY if there are thousands.
pub(super) fn enlist(make: impl FnOnce(u16) -> Arc<Core>) -> Res<Arc<Core>> {
    let mut cores = lock(&CORES);
    cores.retain(|_, core| core.strong_count() > 0);
    // One that was not used for as long as possible.
    static NEXT: Mutex<u16> = Mutex::new(0);
    let mut next = lock(&NEXT);
    for _ in 0..1u16 << 12 {
        *next = (*next + 1) & 0xfff;
        if !cores.contains_key(&next) {
            let core = make(*next);
            cores.insert(*next, Arc::downgrade(&core));
            return Ok(core);
        }
    }
    Err(Code::NO_MEMORY)
}

impl Handle {
    /// The handle of an object.
    pub(super) fn new(kind: Kind, core: u16, serial: u32) -> Handle {
        Handle((MARK | kind as u64) << 48 | u64::from(core) << 36 | u64::from(serial) << 4)
    }

    /// As a number.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// From a number, which need not be one.
    pub(crate) fn from_bits(bits: u64) -> Handle {
        Handle(bits)
    }

    /// The instance of an object of this kind. INVALID_VALUE for NULL, other kinds and nonsense; whether the object still
    /// exists is known there.
    pub(crate) fn core(self, kind: Kind) -> Res<Arc<Core>> {
        fork::require_none()?;
        if self.0 >> 48 != MARK | kind as u64 || self.0 & 0xf != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let number = (self.0 >> 36) as u16 & 0xfff;
        lock(&CORES).get(&number).and_then(Weak::upgrade).ok_or(Code::INVALID_VALUE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_tell_kinds_instances_and_objects_apart() {
        let mut seen = Vec::new();
        for kind in [Kind::Subsystem, Kind::Unit] {
            for core in [0, 1, 0xfff] {
                for serial in [1, 2, u32::MAX] {
                    let handle = Handle::new(kind, core, serial);
                    assert!(!seen.contains(&handle));
                    seen.push(handle);
                    assert_eq!(handle.bits() >> 36 & 0xfff, u64::from(core));
                    assert_ne!(handle.bits() >> 47, 0, "not an address");
                }
            }
        }
        assert!(Handle::from_bits(0).core(Kind::Qp).is_err());
        assert!(Handle::from_bits(0x1000).core(Kind::Qp).is_err());
    }
}
