//! What a run of the suite saw: the lines that the simulator writes to the file in `DOCA_SIM_TRACE`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};

const SUCCESS: &str = "DOCA_SUCCESS";

/// Results seen, by function.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    results: BTreeMap<String, BTreeSet<String>>,
}

impl Trace {
    /// Reads `pid name RESULT` lines, of which there are tens of millions. A process that was killed may have left half a
    /// line.
    pub(crate) fn parse(mut text: impl BufRead) -> io::Result<Trace> {
        let mut trace = Trace::default();
        let mut line = Vec::new();
        while text.read_until(b'\n', &mut line)? > 0 {
            let words = String::from_utf8_lossy(&line);
            let mut words = words.trim_end_matches('\n').split(' ');
            if let (Some(_pid), Some(name), Some(result), None) =
                (words.next(), words.next(), words.next(), words.next())
            {
                trace.note(name, result);
            }
            line.clear();
        }
        Ok(trace)
    }

    fn note(&mut self, name: &str, result: &str) {
        match self.results.get_mut(name) {
            Some(results) if results.contains(result) => {}
            Some(results) => _ = results.insert(result.to_owned()),
            None => _ = self.results.insert(name.to_owned(), BTreeSet::from([result.to_owned()])),
        }
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
        let text = "1 doca_a DOCA_ERROR_AGAIN\n2 doca_a DOCA_SUCCESS\n1 doca_v -\n1 doca_b DOCA_ER";
        let trace = Trace::parse(text.as_bytes()).unwrap();
        assert!(trace.succeeded("doca_a") && trace.succeeded("doca_v"));
        assert!(trace.failed("doca_a", "AGAIN") && !trace.failed("doca_a", "FULL"));
        assert!(!trace.succeeded("doca_b") && !trace.failed("doca_b", "AGAIN"));
    }
}
