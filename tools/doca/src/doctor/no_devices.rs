//! Stands in for `devices` where this program is built without DOCA.

use super::{Finding, Layer};

/// No DOCA is loaded.
pub(crate) fn loaded() -> Option<String> {
    None
}

/// That nobody asked.
pub(crate) fn findings() -> Vec<Finding> {
    let text = "DOCA is not asked for devices, because this program was built without it";
    vec![Finding::note(Layer::Runtime, text, "build doca-tools with its feature `device`")]
}
