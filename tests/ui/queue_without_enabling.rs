use doca::rdma::{Config, Queue, ReceiveTask, SendTask};
use doca::ProgressEngine;

fn send_without_enabling(mut config: Config, engine: &ProgressEngine) -> doca::Result<Queue<SendTask>> {
    let receives = config.enable::<ReceiveTask>(1)?;
    let rdma = config.start(engine)?.running()?;
    rdma.queue(receives)
}

fn main() {}
