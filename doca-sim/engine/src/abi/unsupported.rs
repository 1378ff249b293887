//! Functions of the SDK that the simulator does not have yet: the public libraries answer for them, and say
//! so here.

use crate::entry::Text;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

crate::entry! {
    /// Logs the name of a function that has no body here, once per process.
    fn not_supported(name: Text) -> () = (); {
        let name = name.utf8().unwrap_or("a function without a name");
        if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned()) {
            crate::log::warning!("{name} is not supported by this simulator");
        }
    }
}
