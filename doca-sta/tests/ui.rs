//! What must not compile, with the error that the author of the program sees.
//!
//! | case | rule |
//! | --- | --- |
//! | `describe_after_start` | only an idle context can be described |
//! | `seed_before_start` | IO contexts are made by a running target |
//! | `command_answered_twice` | a command is answered once |
//! | `data_after_answer` | its data are not the program's once it is answered |
//! | `request_after_accept` | a connection request is DOCA's once it was given away |
//! | `io_across_threads` | an IO context stays on its thread; its seed crosses |
//! | `queue_pair_across_threads` | and so do its queue pairs |
//! | `safe_queue` | a disk's queues are handed over by whoever vouches for their memory |

/// The cases, as in the table.
const CASES: &[&str] = &[
    "describe_after_start",
    "seed_before_start",
    "command_answered_twice",
    "data_after_answer",
    "request_after_accept",
    "io_across_threads",
    "queue_pair_across_threads",
    "safe_queue",
];

#[test]
fn forbidden_orders_do_not_compile() {
    let cases = trybuild::TestCases::new();
    for case in CASES {
        cases.compile_fail(format!("tests/ui/{case}.rs"));
    }
}
