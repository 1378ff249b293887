//! `librdmacm`: connection management for programs that listen and connect by themselves, and nothing else of it.
//!
//! ```text
//! layout    the public structures
//! address   socket addresses and devices
//! devices   `id->verbs`
//! addrinfo  `rdma_getaddrinfo`
//! channel   event channels: a mailbox of the fabric each, and a descriptor to sleep on
//! event     events, from the queue of a channel to the program and back
//! id        identifiers: what the functions do
//! letters   what arrives: letters become events, and so do timeouts and the death of peers
//! owned     identifiers that a program has handed to DOCA
//! ```
//!
//! Programs call these functions from any thread, so there is one lock over all of it; nobody holds it while waiting.
//! A pointer of a program is looked up here before it is used.

mod address;
pub mod addrinfo;
pub mod channel;
mod devices;
pub mod event;
pub mod id;
pub mod layout;
mod letters;
mod owned;

pub use owned::OwnedId;

use crate::code::Code;
use crate::fabric::context::ContextView;
use crate::fabric::mailbox::{self, Message};
use crate::lock::lock;
use channel::Channel;
use event::Reported;
use id::Id;
use std::collections::{BTreeMap, VecDeque};
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// An `errno` value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub i32);

/// What the functions give.
pub type Outcome<T = ()> = Result<T, Errno>;

impl From<Code> for Errno {
    fn from(code: Code) -> Self {
        Errno(match code {
            Code::NO_MEMORY | Code::FULL => libc::ENOMEM,
            Code::IN_USE => libc::EADDRINUSE,
            Code::INVALID_VALUE => libc::EINVAL,
            Code::NOT_FOUND => libc::ENODEV,
            _ => libc::EIO,
        })
    }
}

const INVALID: Errno = Errno(libc::EINVAL);

/// Everything that this process has of librdmacm, by the addresses that programs know.
struct Cm {
    channels: BTreeMap<usize, Channel>,
    ids: BTreeMap<usize, Id>,
    /// Identifiers by what letters are addressed to: context and link.
    names: BTreeMap<(u64, u64), usize>,
    /// Events that the program has and must give back.
    reported: BTreeMap<usize, Reported>,
    /// Letters that did not fit into a mailbox.
    outbox: VecDeque<(Arc<ContextView>, Message)>,
}

static CM: Mutex<Cm> = Mutex::new(Cm {
    channels: BTreeMap::new(),
    ids: BTreeMap::new(),
    names: BTreeMap::new(),
    reported: BTreeMap::new(),
    outbox: VecDeque::new(),
});

/// Signalled when an event was given back.
static ACKED: Condvar = Condvar::new();

fn cm() -> MutexGuard<'static, Cm> {
    lock(&CM)
}

impl Cm {
    /// Posts a letter, now or when there is room.
    fn send(&mut self, to: &Arc<ContextView>, message: Message) {
        if mailbox::post(to, &message) == Err(Code::AGAIN) {
            self.outbox.push_back((to.clone(), message));
        }
    }

    fn send_again(&mut self) {
        while let Some((to, message)) = self.outbox.pop_front() {
            if mailbox::post(&to, &message) == Err(Code::AGAIN) && to.process().is_alive() {
                self.outbox.push_front((to, message));
                return;
            }
        }
    }
}

/// A structure that the program sees, in memory of this library.
#[derive(Debug)]
struct Public<T>(NonNull<T>);

// SAFETY: this library reaches the structure under its lock only.
unsafe impl<T> Send for Public<T> {}

impl<T> Public<T> {
    fn new(value: T) -> Self {
        Public(NonNull::from(Box::leak(Box::new(value))))
    }

    fn pointer(&self) -> *mut T {
        self.0.as_ptr()
    }

    fn key(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// Changes fields.
    fn update(&self, change: impl FnOnce(&mut T)) {
        // SAFETY: live as long as `self`. The lock keeps this library's threads apart, and the functions of librdmacm ask
        // programs not to touch an object that they are calling a function on.
        change(unsafe { &mut *self.0.as_ptr() });
    }
}

impl<T> Drop for Public<T> {
    fn drop(&mut self) {
        // SAFETY: made of a box by `new`; the program has been told that the object ends, or has asked for it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
