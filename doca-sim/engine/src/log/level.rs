//! The levels of `enum doca_log_level`.

/// A level. The names are those of the header; a smaller number is more severe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Level(u32);

/// Number, words, and the tag in a line. The first word is the header's.
const LEVELS: [(u32, &[&str], &str); 7] = [
    (10, &["disable", "disabled", "off", "none"], ""),
    (20, &["crit", "critical"], "CRT"),
    (30, &["error", "err"], "ERR"),
    (40, &["warning", "warn"], "WRN"),
    (50, &["info"], "INF"),
    (60, &["debug", "dbg"], "DBG"),
    (70, &["trace", "trc"], "TRC"),
];

impl Level {
    /// As a limit: nothing is shown. No message has it.
    pub const DISABLE: Level = Level(10);
    /// The program cannot go on.
    pub const CRIT: Level = Level(20);
    /// An operation failed.
    pub const ERROR: Level = Level(30);
    /// Something looks wrong.
    pub const WARNING: Level = Level(40);
    /// What a user may want to know.
    pub const INFO: Level = Level(50);
    /// What a developer may want to know.
    pub const DEBUG: Level = Level(60);
    /// Each step.
    pub const TRACE: Level = Level(70);

    /// The level with the number of the header.
    pub fn from_number(number: u32) -> Option<Self> {
        LEVELS.iter().any(|row| row.0 == number).then_some(Level(number))
    }

    /// A level as users write it: a number of the header, or a word in either case.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.parse() {
            Ok(number) => Self::from_number(number),
            Err(_) => {
                let word = text.to_ascii_lowercase();
                LEVELS.iter().find(|row| row.1.contains(&word.as_str())).map(|row| Level(row.0))
            }
        }
    }

    /// The header's words for all levels.
    pub fn words() -> impl Iterator<Item = &'static str> {
        LEVELS.iter().map(|row| row.1[0])
    }

    /// The number in the header.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Three letters for a line.
    pub fn tag(self) -> &'static str {
        LEVELS.iter().find(|row| row.0 == self.0).map_or("", |row| row.2)
    }
}
