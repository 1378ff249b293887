//! Producers: where bulk data go out to the peer's consumers.

use crate::caps;
use crate::connection::{Connection, RemoteConsumer};
use crate::fast::{Fast, FastPath, Flight, Run, Traits};
use crate::lifecycle::{self, Context, Seed, Stopping};
use crate::pending::Pending;
use doca_common::buffer::{Payload, Source};
use doca_common::context::{Member, State};
use doca_common::owner::Owner;
use doca_common::{Error, Failed, Refusal, Result, SharedBuffer};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

static TRAITS: Traits = Traits {
    task: "doca_comch_producer_task_send",
    create: "doca_comch_producer_create",
    set_conf: "doca_comch_producer_task_send_set_conf",
    supported: caps::PRODUCER,
    max_num_tasks: caps::PRODUCER_MAX_NUM_TASKS,
    max_buf_size: caps::PRODUCER_MAX_BUF_SIZE,
};

/// A running producer: it sends to the consumers that the peer has on the same connection. Dropping it stops and destroys
/// it, by progress of its engine.
///
/// It ends by itself when its connection does, or when the server or client of that is stopped.
pub struct Producer {
    owner: Owner<Fast>,
    run: Rc<Run>,
}

impl Producer {
    /// Creates a producer on a connection: `doca_comch_producer_create`. The seed can be moved to another thread; the
    /// producer runs on the engine that it is started on there. While data flow, the engines of the control path must be
    /// progressed on both sides.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotConnected`], [`Refusal::Capability`]; `NO_MEMORY` if the connection has as many as it can,
    /// `NOT_PERMITTED` if the peer's release is too old.
    #[doc(alias = "doca_comch_producer_create")]
    pub fn configure(connection: &Connection) -> Result<Seed<Producer>> {
        Fast::new(connection, None, &TRAITS).map(Seed::new)
    }

    /// Its number on the connection, which messages carry: `doca_comch_producer_get_id`.
    pub fn id(&self) -> u32 {
        self.owner.id()
    }

    /// The state now: it changes by progress.
    pub fn state(&self) -> State {
        self.owner.life().state()
    }

    /// Sends the data of a buffer to a consumer of the peer, with immediate data beside it, none being `&[]`:
    /// `doca_task_submit`. The memory needs PCI_READ_ONLY or PCI_READ_WRITE. Messages of one producer to one consumer arrive
    /// in order.
    ///
    /// # Errors
    ///
    /// The buffer comes back with `AGAIN` while the consumer has no buffer posted, or [`Refusal::Full`] (progress this
    /// engine and that of the control path, and try again), [`Refusal::NotConnected`] if the consumer or the connection is
    /// gone, [`Refusal::Stopped`], [`Refusal::OtherContext`] for a consumer of another connection,
    /// [`Refusal::Permissions`], [`Refusal::OtherDevice`], [`Refusal::TooLong`], or DOCA's.
    #[doc(alias = "doca_comch_producer_task_send_alloc_init")]
    #[doc(alias = "doca_task_submit")]
    pub fn send(
        &self,
        to: &RemoteConsumer,
        buffer: SharedBuffer,
        immediate: &[u8],
    ) -> std::result::Result<Pending<Producer, SharedBuffer>, Failed<SharedBuffer>> {
        self.submit(to, buffer, immediate)
    }

    /// Sends immediate data alone. Whether a consumer on a CPU takes that, DOCA does not say.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send), and [`Refusal::OutOfRange`] for no bytes.
    pub fn send_immediate(
        &self,
        to: &RemoteConsumer,
        immediate: &[u8],
    ) -> std::result::Result<Pending<Producer, ()>, Failed<()>> {
        if immediate.is_empty() {
            let error =
                Error::refused(TRAITS.task, Refusal::OutOfRange).with("neither buffer nor immediate data");
            return Err(Failed::new(error, ()));
        }
        self.submit(to, (), immediate)
    }

    fn submit<S: Source>(
        &self,
        to: &RemoteConsumer,
        source: S,
        immediate: &[u8],
    ) -> std::result::Result<Pending<Producer, S>, Failed<S>> {
        let ready = |run: &Run, source: &mut S| {
            self.check_target(to, immediate)?;
            run.check(source, source.data_len())?;
            source.as_source()
        };
        self.run
            .launch(source, ready, |run, place, buffer| run.submit_send(place, buffer, immediate, to.id()))
    }

    fn check_target(&self, to: &RemoteConsumer, immediate: &[u8]) -> Result<()> {
        if !Arc::ptr_eq(&to.family, self.owner.family()) {
            let text = format!("{to:?} is on another connection than {:?}", self.owner.connection());
            return Err(Error::refused(TRAITS.task, Refusal::OtherContext).with(text));
        }
        if !to.is_up() {
            return Err(Error::refused(TRAITS.task, Refusal::NotConnected).with(format!("{to:?}")));
        }
        if u32::try_from(immediate.len()).is_err() {
            return Err(Error::refused(TRAITS.task, Refusal::TooLong).with("immediate data"));
        }
        Ok(())
    }

    /// Stops the producer: `doca_ctx_stop`. Inside a callback it is stopped after progress.
    #[doc(alias = "doca_ctx_stop")]
    pub fn stop(self) -> Stopping<Producer> {
        lifecycle::stop(self)
    }
}

impl Context for Producer {
    type Object = Fast;

    fn assemble(owner: Owner<Fast>, run: Rc<Run>) -> Self {
        Producer { owner, run }
    }

    fn parts(self) -> (Owner<Fast>, Rc<Run>) {
        (self.owner, self.run)
    }
}

impl FastPath for Producer {
    type Output<P> = P;

    fn output<P: Payload>(buffer: P, _flight: &Flight) -> P {
        buffer
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Producer({:?})", &*self.owner)
    }
}
