//! Functions of the SDK that the simulator does not have yet: the public libraries answer for them, and say
//! so here.

use crate::code::Code;
use crate::entry::Text;
use crate::fault;
use crate::lock::lock;
use std::collections::BTreeSet;
use std::sync::Mutex;

static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

crate::entry! {
    /// The answer of a function that has no body here: the fault that was asked for, else NOT_SUPPORTED. Logs its name,
    /// once per process.
    fn not_supported(name: Text) {
        let name = name.utf8().unwrap_or("a function without a name");
        if fault::armed()
            && let Some(code) = fault::call(name)
        {
            return Err(code);
        }
        if lock(&SAID).insert(name.to_owned()) {
            crate::log::warning!("{name} is not supported by this simulator");
        }
        Err(Code::NOT_SUPPORTED)
    }
}
