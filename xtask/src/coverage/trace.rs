//! What a run of the suite saw: the lines that the simulator writes to the file in `DOCA_SIM_TRACE`.

use std::collections::{BTreeMap, BTreeSet};

const SUCCESS: &str = "DOCA_SUCCESS";

/// Results seen, by function.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    results: BTreeMap<String, BTreeSet<String>>,
}

impl Trace {
    /// Reads `pid name RESULT` lines. A process that was killed may have left half a line.
    pub(crate) fn parse(text: &str) -> Trace {
        let mut trace = Trace::default();
        for line in text.lines() {
            if let [_pid, name, result] = line.split(' ').collect::<Vec<_>>()[..] {
                trace.results.entry(name.to_owned()).or_default().insert(result.to_owned());
            }
        }
        trace
    }

    /// Whether a call did what it is for; functions without a result need only be called.
    pub(crate) fn succeeded(&self, function: &str) -> bool {
        self.saw(function, SUCCESS) || self.saw(function, "-")
    }

    /// Whether a call ended with this error, given without its `DOCA_ERROR_`.
    pub(crate) fn failed(&self, function: &str, error: &str) -> bool {
        self.saw(function, &format!("DOCA_ERROR_{error}"))
    }

    fn saw(&self, function: &str, result: &str) -> bool {
        self.results.get(function).is_some_and(|results| results.contains(result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_processes_count() {
        let trace =
            Trace::parse("1 doca_a DOCA_ERROR_AGAIN\n2 doca_a DOCA_SUCCESS\n1 doca_v -\n1 doca_b DOCA_ER");
        assert!(trace.succeeded("doca_a") && trace.succeeded("doca_v"));
        assert!(trace.failed("doca_a", "AGAIN") && !trace.failed("doca_a", "FULL"));
        assert!(!trace.succeeded("doca_b") && !trace.failed("doca_b", "AGAIN"));
    }
}
