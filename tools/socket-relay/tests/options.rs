//! Numbers of the command line that cannot be.

use socket_relay::fault::Exit;
use socket_relay::options;

fn parsed(flag: &str, number: &str) -> Result<(), socket_relay::fault::Fault> {
    let args = ["-s", "/tmp/x.sock", "-n", "x", "-p", "3b:00.0", flag, number];
    options::parse(&args.map(str::to_owned)).map(|_| ())
}

#[test]
fn numbers_out_of_range_are_refused() {
    let year = 365 * 24 * 60 * 60_u64;
    let most = u64::MAX.to_string();
    for (flag, good, bad) in [
        ("--conn-retry", "-1", ["-2", "4294967296"]),
        ("--heartbeat", "1", ["0", &most]),
        ("--dead-after", "1", ["0", &most]),
        ("--drain-timeout", "0", [&(year + 1).to_string(), &most]),
        ("--bytes", "1", ["0", &most]),
        ("--count", "1", ["0", "-1"]),
        ("--clients", "1", ["0", "4294967296"]),
        ("--timeout", &year.to_string(), ["0", &most]),
        ("--steps", "8", ["0", "9"]),
    ] {
        parsed(flag, good).unwrap();
        for number in bad {
            let fault = parsed(flag, number).expect_err(flag);
            assert!(
                fault.exit == Exit::Usage && fault.to_string().contains(flag),
                "{flag} {number}: {fault}"
            );
        }
    }
}
