//! A first look at a target: from one command to load, and what it must refuse. Stops at the first failure.

use crate::controller::{Host, Target, read_write};
use crate::failure::{Error, Failure, Part, Result};
use crate::load::{self, Load, Mix, Random};
use crate::queue::{Data, Queue};
use nvme_wire::Status;
use nvme_wire::command::IoOpcode;
use nvme_wire::fabrics::Connect;
use std::time::Duration;

/// Runs it on a namespace, of which it overwrites everything; `say` hears of each step that succeeded.
pub fn run(host: &Host, target: &Target, nsid: u32, time: Duration, mut say: impl FnMut(&str)) -> Result {
    let mut controller = host.open(target)?;
    let identity = controller.identity();
    say(&format!("admin: controller {} is {} ({})", identity.cntlid, identity.mn.text(), identity.sn.text()));
    let namespace = controller.namespace(nsid)?;
    let block_size = namespace.block_size().unwrap_or(512);
    say(&format!("admin: namespace {nsid} has {} blocks of {block_size} bytes", namespace.nsze));
    let granted = controller.set_num_queues(2)?;
    controller.keep_alive()?;
    say(&format!("admin: {granted} I/O queues are granted"));

    let most = u16::try_from(u32::from(controller.capabilities().mqes) + 1).unwrap_or(u16::MAX);
    let entries = most.min(32);
    let mut first = controller.io_queue(1, entries)?;
    one_block(&mut first, nsid, block_size, 0)?;
    say("I/O queue 1: one block was written, read back and is the same");
    if granted >= 2 {
        let mut second = controller.io_queue(2, entries)?;
        one_block(&mut second, nsid, block_size, 1)?;
        one_block(&mut first, nsid, block_size, 2)?;
        say("I/O queues 1 and 2: the same on both");
    }

    refuse_depth(host, target, controller.cntlid(), most)?;
    say("I/O queue: a queue beyond CAP.MQES is refused");
    // A Read whose buffer is shorter than its blocks, as a host that has the block size wrong would send.
    let command = read_write(IoOpcode::READ, nsid, 0, 1);
    let (status, _) = first.status(command, Data::In(block_size as usize / 2))?;
    expect(&mut first, "a Read into half a block", status, Status::SGL_LENGTH_INVALID)?;
    say("I/O queue 1: a wrong block size is refused");
    let (status, _) =
        first.status(read_write(IoOpcode::READ, nsid, namespace.nsze, 1), Data::In(block_size as usize))?;
    expect(&mut first, "a Read behind the end", status, Status::LBA_OUT_OF_RANGE)?;
    say("I/O queue 1: a Read behind the end is refused");
    first.flush(nsid)?;
    drop(first);

    let (queues, depth) = (granted.min(2), entries - 1);
    let size = block_size.max(4096);
    let load = Load { queues, depth, size, random: true, mix: Mix::Verify, time, nsid };
    let report = load::run(&mut controller, &load)?;
    say(&format!(
        "load: {queues} queues of {depth}, {} reads and {} writes verified, {:.0} IOPS",
        report.reads,
        report.writes,
        report.iops()
    ));
    controller.shutdown()?;
    say("admin: the controller has shut down");
    Ok(())
}

fn one_block(queue: &mut Queue, nsid: u32, block_size: u32, lba: u64) -> Result {
    let (mut data, mut back) = (vec![0; block_size as usize], vec![0; block_size as usize]);
    Random::new(u64::from(std::process::id()) + lba).fill(&mut data);
    queue.write(nsid, lba, block_size, &data)?;
    queue.read(nsid, lba, block_size, &mut back)?;
    if data == back { Ok(()) } else { Err(Error::Differs { lba }.on(queue.qid())) }
}

fn expect(queue: &mut Queue, what: &str, status: Status, wanted: Status) -> Result {
    if status.is(wanted) {
        return Ok(());
    }
    Err(Error::Protocol(format!("{what} ended with {status} instead of {wanted}")).on(queue.qid()))
}

/// The target may refuse the connection, or Connect.
fn refuse_depth(host: &Host, target: &Target, cntlid: u16, most: u16) -> Result {
    let Some(entries) = most.checked_add(1) else { return Ok(()) };
    // The last one that may be free.
    let qid = 2;
    let refused = Queue::dial(target, qid, entries).and_then(|mut queue| {
        let connect = Connect { qid, sqsize: entries - 1, ..Connect::default() };
        queue.connect(&connect, &host.connect_data(target, cntlid), false)
    });
    match refused {
        Err(Failure { error: Error::Rejected(_), .. }) => Ok(()),
        Err(failure)
            if failure.status().is_some_and(|status| status.is(Status::CONNECT_INVALID_PARAMETERS)) =>
        {
            Ok(())
        }
        Err(other) => Err(other),
        Ok(_) => {
            let what = format!("a queue of {entries} entries was taken, CAP.MQES allows {most}");
            Err(Failure { part: Part::Io(qid), error: Error::Protocol(what) })
        }
    }
}
