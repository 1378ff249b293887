//! Counters, by the names that DOCA gives them. They are copies: ask again for later values.

use std::fmt;

/// Counters of one object, in DOCA's order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counters(pub Vec<(String, u64)>);

impl Counters {
    /// One of them.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { ", " };
            write!(f, "{gap}{name} {value}")?;
        }
        Ok(())
    }
}
