//! Consumers: where bulk data of the peer come in.

use crate::caps;
use crate::connection::Connection;
use crate::fast::{Fast, FastPath, Flight, Run, Traits};
use crate::immediate::Immediate;
use crate::lifecycle::{self, Config, Context, Seed, Stopping};
use crate::pending::Pending;
use doca_common::buffer::{Destination, Payload};
use doca_common::context::{Member, State};
use doca_common::owner::Owner;
use doca_common::{Failed, Result, SharedBuffer, SharedMemory};
use std::fmt;
use std::rc::Rc;

static TRAITS: Traits = Traits {
    task: "doca_comch_consumer_task_post_recv",
    create: "doca_comch_consumer_create",
    set_conf: "doca_comch_consumer_task_post_recv_set_conf",
    supported: caps::CONSUMER,
    max_num_tasks: caps::CONSUMER_MAX_NUM_TASKS,
    max_buf_size: caps::CONSUMER_MAX_BUF_SIZE,
};

/// A running consumer: the peer's producers send into the buffers that it posts. Dropping it stops and destroys it, by
/// progress of its engine.
///
/// It ends by itself when its connection does, or when the server or client of that is stopped.
pub struct Consumer {
    owner: Owner<Fast>,
    run: Rc<Run>,
}

/// A message that arrived.
#[derive(Debug)]
pub struct Message<P> {
    /// The buffer; its data is the message.
    pub buffer: P,
    /// The number of the producer that sent it.
    pub producer: u32,
    /// What travelled beside the buffer.
    pub immediate: Immediate,
}

impl Consumer {
    /// Creates a consumer on a connection, for buffers of this memory: `doca_comch_consumer_create`. The seed can be moved
    /// to another thread; the consumer runs on the engine that it is started on there. While it starts, and while data
    /// flow, the engines of the control path must be progressed on both sides.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotConnected`](doca_common::Refusal::NotConnected), [`Refusal::Permissions`] unless the memory has
    /// PCI_READ_WRITE, [`Refusal::OtherDevice`], [`Refusal::Capability`]; `NO_MEMORY` if the connection has as many as it
    /// can, `NOT_PERMITTED` if the peer's release is too old.
    ///
    /// [`Refusal::Permissions`]: doca_common::Refusal::Permissions
    /// [`Refusal::OtherDevice`]: doca_common::Refusal::OtherDevice
    /// [`Refusal::Capability`]: doca_common::Refusal::Capability
    #[doc(alias = "doca_comch_consumer_create")]
    pub fn configure(connection: &Connection, memory: &SharedMemory) -> Result<Seed<Consumer>> {
        Fast::new(connection, Some(memory), &TRAITS).map(Seed::new)
    }

    /// Its number on the connection, which the peer is told: `doca_comch_consumer_get_id`.
    pub fn id(&self) -> u32 {
        self.owner.id()
    }

    /// The state now: it changes by progress.
    pub fn state(&self) -> State {
        self.owner.life().state()
    }

    /// Posts a buffer for the next message; its whole capacity can be filled: `doca_task_submit`.
    ///
    /// # Errors
    ///
    /// The buffer comes back with [`Refusal::Full`](doca_common::Refusal::Full) or `AGAIN` (progress and try again),
    /// [`Refusal::Stopped`](doca_common::Refusal::Stopped), [`Refusal::NotConnected`](doca_common::Refusal::NotConnected),
    /// [`Refusal::OtherContext`](doca_common::Refusal::OtherContext) for a buffer of other memory,
    /// [`Refusal::TooLong`](doca_common::Refusal::TooLong), or DOCA's.
    #[doc(alias = "doca_comch_consumer_task_post_recv_alloc_init")]
    #[doc(alias = "doca_task_submit")]
    pub fn receive(
        &self,
        buffer: SharedBuffer,
    ) -> std::result::Result<Pending<Consumer, SharedBuffer>, Failed<SharedBuffer>> {
        let ready = |run: &Run, buffer: &mut SharedBuffer| {
            run.check(buffer, buffer.room())?;
            buffer.as_destination()
        };
        self.run.launch(buffer, ready, Run::submit_receive)
    }

    /// Stops the consumer: `doca_ctx_stop`. Buffers that are posted come back as failures. Inside a callback it is stopped
    /// after progress.
    #[doc(alias = "doca_ctx_stop")]
    pub fn stop(self) -> Stopping<Consumer> {
        lifecycle::stop(self)
    }
}

impl Config<Consumer> {
    /// Sets the most immediate data that a message can have, bytes: `doca_comch_consumer_set_imm_data_len`. What is
    /// allowed unless it is set, DOCA does not say; maybe none.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`](doca_common::Refusal::Capability) above the device's limit, or DOCA's.
    #[doc(alias = "doca_comch_consumer_set_imm_data_len")]
    pub fn set_imm_data_len(&mut self, bytes: u32) -> Result<()> {
        const CALL: &str = "doca_comch_consumer_set_imm_data_len";
        self.owner.require_idle(CALL)?;
        caps::MAX_IMM_DATA_LEN.require_at_most(&self.owner.device().info(), CALL, bytes)?;
        self.owner.channel().set_imm_data_len(bytes)
    }

    /// The most immediate data that a message can have, bytes: `doca_comch_consumer_get_imm_data_len`.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_comch_consumer_get_imm_data_len")]
    pub fn imm_data_len(&self) -> Result<u32> {
        self.owner.life().require_alive("doca_comch_consumer_get_imm_data_len")?;
        self.owner.channel().imm_data_len()
    }
}

impl Context for Consumer {
    type Object = Fast;

    fn assemble(owner: Owner<Fast>, run: Rc<Run>) -> Self {
        Consumer { owner, run }
    }

    fn parts(self) -> (Owner<Fast>, Rc<Run>) {
        (self.owner, self.run)
    }
}

impl FastPath for Consumer {
    type Output<P> = Message<P>;

    fn output<P: Payload>(mut buffer: P, flight: &Flight) -> Message<P> {
        buffer.filled(flight.len.get());
        Message { buffer, producer: flight.producer.get(), immediate: flight.immediate.take() }
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Consumer({:?})", &*self.owner)
    }
}
