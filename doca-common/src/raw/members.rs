//! The contexts of an engine. User data names them by numbers, so that a callback with a number that is not known
//! finds nothing.

use crate::context::Member;
use std::any::TypeId;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Names a context of an engine in user data: its place, and a serial number that no other context of the process
/// has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberId {
    index: u32,
    serial: u32,
}

impl MemberId {
    pub(crate) const NONE: MemberId = MemberId { index: u32::MAX, serial: 0 };

    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.serial) << 32 | u64::from(self.index)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        MemberId { index: bits as u32, serial: (bits >> 32) as u32 }
    }
}

struct Entry {
    id: MemberId,
    kind: TypeId,
    member: Rc<dyn Member>,
}

/// Places for contexts.
#[derive(Default)]
pub(crate) struct Members(RefCell<Vec<Option<Entry>>>);

impl Members {
    pub(crate) fn adopt(&self, member: Rc<dyn Member>) -> MemberId {
        static SERIAL: AtomicU32 = AtomicU32::new(1);
        let mut places = self.0.borrow_mut();
        let index = places.iter().position(Option::is_none).unwrap_or_else(|| {
            places.push(None);
            places.len() - 1
        });
        let id = MemberId { index: index as u32, serial: SERIAL.fetch_add(1, Ordering::Relaxed) };
        places[index] = Some(Entry { id, kind: (*member).type_id(), member });
        id
    }

    pub(crate) fn expel(&self, id: MemberId) {
        let entry = match self.0.borrow_mut().get_mut(id.index as usize) {
            Some(place) if place.as_ref().is_some_and(|entry| entry.id == id) => place.take(),
            _ => None,
        };
        drop(entry);
    }

    pub(crate) fn get(&self, id: MemberId) -> Option<Rc<dyn Member>> {
        let places = self.0.borrow();
        let entry = places.get(id.index as usize)?.as_ref()?;
        (entry.id == id).then(|| entry.member.clone())
    }

    /// The first one from a place on, with its name and the next place.
    pub(crate) fn next(&self, from: usize) -> Option<(usize, MemberId, Rc<dyn Member>)> {
        let places = self.0.borrow();
        let at = from + places.get(from..)?.iter().position(Option::is_some)?;
        places[at].as_ref().map(|entry| (at + 1, entry.id, entry.member.clone()))
    }

    /// Asks the contexts one by one until one says yes; whether one did. None comes or goes meanwhile.
    pub(crate) fn any(&self, mut body: impl FnMut(&dyn Member) -> bool) -> bool {
        self.0.borrow().iter().flatten().any(|entry| body(&*entry.member))
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Rc<dyn Member>> {
        self.0.borrow().iter().flatten().map(|entry| entry.member.clone()).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().iter().all(Option::is_none)
    }

    /// The context that user data names, if it is one of type `M`.
    ///
    /// # Safety
    ///
    /// No context is added or removed as long as the reference lives.
    #[inline]
    pub(crate) unsafe fn peek<M: Member>(&self, id: MemberId) -> Option<&M> {
        // SAFETY: nobody changes the list as long as the reference lives, as the caller says.
        let places = unsafe { self.0.try_borrow_unguarded() }.ok()?;
        let entry = places.get(id.index as usize)?.as_ref()?;
        if entry.id != id || entry.kind != TypeId::of::<M>() {
            return None;
        }
        // SAFETY: the member said that it is of this type when it came.
        Some(unsafe { &*Rc::as_ptr(&entry.member).cast::<M>() })
    }
}
