//! What a forked child may do: nothing with DOCA's objects. Its memory is a copy, but the adapter is its parent's, and a
//! child that served it would take the parent's messages.

use crate::code::{Code, Res};
use crate::log;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static FORKED: AtomicBool = AtomicBool::new(false);

/// From here on, a child of this process is refused. To be called once.
pub fn watch() {
    extern "C" fn in_child() {
        FORKED.store(true, Relaxed);
    }
    // SAFETY: the handler only touches a static.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// BAD_STATE in a forked child, which is told why once.
pub fn require_none() -> Res {
    static TOLD: Once = Once::new();
    if !FORKED.load(Relaxed) {
        return Ok(());
    }
    TOLD.call_once(|| {
        log::error!("this process was forked from one that uses DOCA; DOCA objects do not survive fork()");
    });
    Err(Code::BAD_STATE)
}
