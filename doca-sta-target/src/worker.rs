//! A thread for each disk, which executes what the adapter does not.

use crate::disk::Disk;
use crate::engine::QueueKey;
use crate::frontend::Told;
use nvme_wire::Sqe;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// A command for a disk.
pub(crate) struct Job {
    pub(crate) nsid: u32,
    pub(crate) block_size: u32,
    pub(crate) command: Sqe,
    pub(crate) data: Vec<u8>,
    pub(crate) queue: QueueKey,
    pub(crate) ticket: u64,
    pub(crate) answer: Sender<Told>,
}

/// A disk on its thread. The thread ends, and gives the disk up, when the last sender of jobs is gone.
pub(crate) fn start(mut disk: Box<dyn Disk>) -> std::io::Result<(Sender<Job>, JoinHandle<()>)> {
    let (jobs, inbox) = channel::<Job>();
    let thread = std::thread::Builder::new().name("sta disk".to_owned()).spawn(move || {
        for job in inbox {
            let status = disk.execute(job.nsid, job.block_size, &job.command, &job.data);
            // Whoever asked may have gone meanwhile.
            let _ = job.answer.send(Told::Executed { queue: job.queue, ticket: job.ticket, status });
        }
    })?;
    Ok((jobs, thread))
}
