//! The initiator against a small target of its own, which is a C program.

mod support;

use doca_sim_initiator::load::{self, Load, Mix};
use doca_sim_initiator::{Data, Error, Host, Part, Queue, wire};
use nvme_wire::admin::AsyncEvent;
use nvme_wire::cm::CmRequest;
use nvme_wire::command::IoOpcode;
use nvme_wire::fabrics::Connect;
use nvme_wire::feature::FeatureId;
use nvme_wire::{Nqn, Sqe, Status};
use std::process::Command;
use std::time::Duration;
use support::CTarget;

fn host() -> Host {
    Host::new(Nqn::new("nqn.2026-01.org.example:host").unwrap())
}

#[test]
fn a_host_reads_what_it_wrote() {
    let running = CTarget::start();
    let mut controller = host().open(&running.target()).unwrap();
    assert_eq!((controller.identity().sn.text(), controller.cntlid()), ("TEST".to_owned(), 1));
    assert_eq!(controller.namespaces().unwrap(), [1]);
    assert_eq!(controller.namespace(1).unwrap().block_size(), Some(512));
    assert_eq!(controller.set_num_queues(8).unwrap(), 2);
    let refused = controller.feature(FeatureId::WRITE_CACHE).unwrap_err();
    assert!(refused.part == Part::Admin && refused.status().unwrap().is(Status::INVALID_FIELD), "{refused}");

    let mut queue = controller.io_queue(1, 8).unwrap();
    let data: Vec<u8> = (0..8192).map(|i| (i * 3) as u8).collect();
    let mut back = vec![0; data.len()];
    queue.write(1, 5, 512, &data).unwrap();
    queue.read(1, 5, 512, &mut back).unwrap();
    assert!(back == data);
    // In the capsule, and with the key invalidated.
    let command = doca_sim_initiator::controller::read_write(IoOpcode::WRITE, 1, 5, 1);
    queue.run(command, Data::InCapsule(&[9; 512]), &mut []).unwrap();
    queue.set_invalidate(true);
    let command = doca_sim_initiator::controller::read_write(IoOpcode::READ, 1, 5, 1);
    queue.submit(command, Data::In(512)).unwrap().unwrap();
    let completion = queue.wait().unwrap();
    assert_eq!((completion.cqe.status, completion.invalidated), (Status::SUCCESS, Some(queue.key())));
    let mut block = [0; 512];
    queue.finish(completion, &mut block);
    assert_eq!(block, [9; 512]);
    queue.flush(1).unwrap();

    controller.keep_alive().unwrap();
    controller.request_event().unwrap();
    let event = std::iter::repeat_with(|| controller.event().unwrap()).flatten().next();
    assert_eq!(event, Some(AsyncEvent::NAMESPACE_CHANGED));
    controller.shutdown().unwrap();
    drop((queue, controller));
    running.end();
}

#[test]
fn errors_name_the_part() {
    let running = CTarget::start();
    let mut target = running.target();
    let controller = host().open(&target).unwrap();
    let mut queue = controller.io_queue(1, 2).unwrap();
    for (opcode, status) in [(0xC3, Status::INVALID_OPCODE), (IoOpcode::READ.0, Status::SGL_LENGTH_INVALID)] {
        let (got, _) = queue.status(Sqe { opcode, nsid: 1, ..Sqe::default() }, Data::None).unwrap();
        assert!(got.is(status), "{opcode:x}: {got}");
    }
    let failure = queue.read(2, 0, 512, &mut [0; 512]).unwrap_err();
    assert!(
        failure.part == Part::Io(1) && failure.status().unwrap().is(Status::INVALID_NAMESPACE),
        "{failure}"
    );
    target.limit = Duration::from_secs(2);
    target.address.set_port(4421);
    let failure = Queue::dial(&target, 3, 8).err().unwrap();
    assert!(failure.part == Part::Fabric(3) && matches!(failure.error, Error::Refused(8)), "{failure}");
    target.device = "mlx5_9".into();
    let failure = Queue::dial(&target, 0, 8).err().unwrap();
    assert!(failure.part == Part::Host && failure.to_string().contains("no device `mlx5_9`"), "{failure}");
    target = running.target();
    let request = CmRequest { qid: 4, hrqsize: 8, hsqsize: 7, ..CmRequest::default() };
    let mut other = Queue::dial_with(&target, 4, 8, &request.to_bytes()).unwrap();
    let connect = Connect { qid: 4, sqsize: 7, ..Connect::default() };
    let data = host().connect_data(&target, controller.cntlid());
    assert_eq!(other.connect(&connect, &data, false).unwrap(), controller.cntlid(), "the data are fetched");
    drop((queue, other, controller));
    running.end();
}

#[test]
fn a_file_of_the_host_is_no_fault_of_the_target() {
    let running = CTarget::start();
    let nqn = running.target().subnqn.to_string();
    for (what, file) in [("write", "/nowhere/at/all"), ("read", "/nowhere/at/all"), ("read", "/dev/full")] {
        let host = Command::new(env!("CARGO_BIN_EXE_doca-sim"))
            .args(["nvme", what, "--nqn", &nqn, "--blocks", "1", "--file", file])
            .env("DOCA_SIM_QUIET", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&host.stderr);
        assert!(!host.status.success() && said.starts_with(&format!("error: this host: {file}: ")), "{said}");
    }
    running.end();
}

/// Runs `doca-sim nvme`; its exit status, and what it said there and to whom it concerns.
fn nvme(arguments: &[&str]) -> (Option<i32>, String) {
    let mut host = Command::new(env!("CARGO_BIN_EXE_doca-sim"));
    host.arg("nvme").args(arguments).args(["--nqn", "nqn.2026-01.org.example:disk"]);
    let ended = host.env("DOCA_SIM_QUIET", "1").output().unwrap();
    (ended.status.code(), String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap())
}

#[test]
fn what_is_copied_is_what_was_asked_for() {
    let running = CTarget::start();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(path(name), bytes).unwrap();
        path(name)
    };
    let (back, three) = (path("back"), file("three", &[7; 3 * 512]));
    let expect = |arguments: &[&str], status: i32, words: &str| {
        let (ended, said) = nvme(arguments);
        assert!(ended == Some(status) && said.contains(words), "{arguments:?}: {ended:?}, {said}");
    };
    expect(&["write", "--lba", "1", "--file", &file("zeros", &[0; 4 * 512])], 0, "write: 4 blocks");
    expect(&["write", "--lba", "1", "--blocks", "2", "--file", &three], 0, "write: 2 blocks");
    expect(&["read", "--lba", "1", "--blocks", "4", "--file", &back], 0, "read: 4 blocks");
    assert!(std::fs::read(&back).unwrap() == [[7; 1024], [0; 1024]].concat());
    expect(&["write", "--blocks", "4", "--file", &three], 1, "1536 bytes are no 4 blocks of 512");
    expect(
        &["write", "--file", &file("odd", &[1; 700])],
        1,
        "700 bytes are no multiple of the block size 512",
    );
    expect(&["write", "--blocks", "1", "--file", &path("odd")], 0, "write: 1 blocks");
    expect(&["write", "--file", &file("empty", &[])], 1, "the file is empty");
    for (what, lba) in [("read", "999999"), ("read", "18446744073709551615"), ("write", "999999")] {
        for more in [&["--blocks", "1"][..], &[]] {
            let arguments = [&[what, "--lba", lba, "--file", &three][..], more].concat();
            expect(&arguments, 1, "is behind the end of namespace 1, which has ");
        }
    }
    assert_eq!(std::fs::read(&three).unwrap().len(), 3 * 512, "a read that cannot be touches no file");
    for option in ["--depth", "--queues", "--time", "--size", "--limit", "--nsid"] {
        expect(&["load", option, "0"], 2, &format!("invalid value '0' for '{option}"));
    }
    running.end();
}

#[test]
fn load_is_verified_on_two_queues() {
    let running = CTarget::start();
    let mut controller = host().open(&running.target()).unwrap();
    let load = Load {
        queues: 2,
        depth: 8,
        size: 4096,
        random: true,
        mix: Mix::Verify,
        time: Duration::from_millis(500),
        nsid: 1,
    };
    let report = load::run(&mut controller, &load).unwrap();
    assert!(report.reads > 16 && report.writes >= report.reads, "{} {}", report.reads, report.writes);
    assert!(report.iops() > 0.0 && report.latency(0.5) <= report.latency(1.0));
    for wrong in [
        Load { queues: 3, ..load.clone() },
        Load { depth: 32, ..load.clone() },
        Load { size: 1000, ..load.clone() },
        Load { depth: 0, ..load.clone() },
    ] {
        let failure = load::run(&mut controller, &wrong).unwrap_err();
        assert!(failure.part == Part::Host && matches!(failure.error, Error::Usage(_)), "{failure}");
    }
    controller.shutdown().unwrap();
    drop(controller);
    running.end();
}

#[test]
fn a_target_that_dies_is_told_apart() {
    let running = CTarget::start();
    let mut controller = host().open(&running.target()).unwrap();
    let mut queue = controller.io_queue(1, 8).unwrap();
    running.kill();
    let failure = queue.read(1, 0, 512, &mut [0; 512]).unwrap_err();
    assert_eq!(failure.part, Part::Fabric(1), "{failure}");
    let failure = controller.keep_alive().unwrap_err();
    assert_eq!(failure.part, Part::Fabric(0), "{failure}");
}

/// What the offload engine refuses by itself; the rest is the matter of a whole target.
#[test]
fn capsules_get_the_status_of_the_specifications() {
    let running = CTarget::start();
    let mut verdict = wire::Verdict::default();
    wire::io(&host(), &running.target(), 1, &mut verdict).unwrap();
    assert!(verdict.tried > 20, "{verdict:?}");
    // Commands that the small target does not know.
    verdict.wrong.retain(|line| !line.starts_with("Write Zeroes") && !line.starts_with("Dataset Management"));
    assert!(verdict.wrong.is_empty(), "{:#?}", verdict.wrong);
    running.end();
}
