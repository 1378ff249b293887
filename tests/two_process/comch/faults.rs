//! Calls that fail on request: the program is told which, and everything can be dropped.

use super::{Pair, server};
use crate::process::{LIMIT, Parent, Peer, Talk};
use doca::comch::{Client, Consumer, Producer};
use doca::{Access, Device, Kind, Memory, ProgressEngine, Result};

/// Functions, and how each fails at every call of a client's that does everything once.
#[rustfmt::skip]
const CALLS: &[(&str, &str)] = &[
    ("doca_comch_cap_get_max_name_len", "INVALID_VALUE"),
    ("doca_comch_cap_get_max_msg_size", "INVALID_VALUE"),
    ("doca_comch_cap_get_max_recv_queue_size", "INVALID_VALUE"),
    ("doca_comch_cap_get_max_send_tasks", "INVALID_VALUE"),
    ("doca_comch_client_create", "NO_MEMORY"),
    ("doca_comch_client_event_msg_recv_register", "BAD_STATE"),
    ("doca_comch_client_event_consumer_register", "BAD_STATE"),
    ("doca_comch_client_task_send_set_conf", "BAD_STATE"),
    ("doca_comch_client_set_max_msg_size", "BAD_STATE"),
    ("doca_comch_client_get_max_msg_size", "BAD_STATE"),
    ("doca_comch_client_set_recv_queue_size", "BAD_STATE"),
    ("doca_comch_client_get_recv_queue_size", "INVALID_VALUE"),
    ("doca_comch_client_get_connection", "BAD_STATE"),
    ("doca_comch_client_task_send_alloc_init", "INVALID_VALUE"),
    ("doca_comch_connection_update_info", "CONNECTION_ABORTED"),
    ("doca_comch_connection_get_counter", "INVALID_VALUE"),
    ("doca_comch_consumer_cap_is_supported", "INVALID_VALUE"),
    ("doca_comch_consumer_create", "NOT_PERMITTED"),
    ("doca_comch_consumer_get_id", "INVALID_VALUE"),
    ("doca_comch_consumer_task_post_recv_set_conf", "BAD_STATE"),
    ("doca_comch_consumer_set_imm_data_len", "BAD_STATE"),
    ("doca_comch_consumer_task_post_recv_alloc_init", "INVALID_VALUE"),
    ("doca_comch_producer_cap_is_supported", "INVALID_VALUE"),
    ("doca_comch_producer_create", "NO_MEMORY"),
    ("doca_comch_producer_get_id", "INVALID_VALUE"),
    ("doca_comch_producer_task_send_set_conf", "BAD_STATE"),
    ("doca_comch_producer_task_send_alloc_init", "INVALID_VALUE"),
    ("doca_task_submit", "INVALID_VALUE"),
    ("doca_ctx_start", "UNEXPECTED"),
];

pub fn every_failure_is_told() {
    let mut pair = Pair::new("faults");
    for (function, code) in CALLS {
        let rule = format!("call={function}:1+:{code}");
        let mut client = Peer::start_with("comch asker", &["faults"], &[("DOCA_SIM_FAULTS", &rule)]);
        let told = client.hear();
        assert!(told.contains(function) && told.contains(&format!("DOCA_ERROR_{code}")), "{rule}: {told}");
        client.expect("end");
        client.finish_with();
    }
    let mut client = Peer::start("comch asker", &["faults"]);
    client.expect("all well");
    client.expect("end");
    client.finish();
    pair.server.say("stop");
    while pair.server.hear() != "stopped" {}
    pair.server.finish();
}

/// The role.
pub fn ask(parent: &mut Parent, args: &[String]) {
    match everything(&args[0]) {
        Ok(()) => parent.say("all well"),
        Err(error) => parent.say(&error.to_string()),
    }
    parent.say("end");
}

/// Does everything once that a client does by itself.
fn everything(name: &str) -> Result<()> {
    let device = Device::open("mlx5_0")?;
    let engine = ProgressEngine::new()?;
    let mut config = Client::configure(&device, name)?;
    config.set_max_msg_size(1000)?;
    config.set_recv_queue_size(server::RECV_QUEUE)?;
    config.recv_queue_size()?;
    config.set_send_tasks(4)?;
    let client = config.start(&engine)?.running_within(LIMIT)?;
    let connection = client.connection()?;
    connection.send(b"there?")?;
    connection.receive_for(LIMIT)?;
    connection.counters()?;
    let memory = Memory::zeroed(4096)?.shared(&device, Access::PCI_READ_WRITE)?;
    let mut consumer = Consumer::configure(&connection, &memory)?.here();
    consumer.set_imm_data_len(8)?;
    let consumer = consumer.start(&engine)?.running_within(LIMIT)?;
    let posted = consumer.receive(memory.take(64)?)?;
    let producer = Producer::configure(&connection)?.start(&engine)?.running_within(LIMIT)?;
    // Nobody is there to take it.
    match producer.send(&connection.consumer(4711)?, memory.take(64)?, &[]) {
        Ok(_) => unreachable!("the server has no such consumer"),
        Err(failed) if matches!(failed.error.kind(), Kind::NotFound | Kind::Again) => {}
        Err(failed) => return Err(failed.error),
    }
    drop((posted, consumer, producer));
    client.stop().wait_for(LIMIT)?;
    Ok(())
}
