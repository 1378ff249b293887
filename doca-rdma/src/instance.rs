//! One `doca_rdma`, from its creation to its destruction, over any number of runs.

use crate::raw::rdma::Handle;
use crate::run::Run;
use crate::task::POOLS;
use crate::{caps, raw};
use doca_common::caps::Value;
use doca_common::context::{Lifecycle, Member};
use doca_common::{Access, Device, Error, Refusal, Result};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The C object and what belongs to it.
pub struct Instance {
    handle: Handle,
    life: Lifecycle,
    device: Device,
    /// Tells instances apart, for keys.
    serial: u64,
    /// Configured number of tasks, by pool.
    enabled: Cell<[u32; POOLS]>,
    /// What peers were said to do, if anything was said.
    declared: Cell<Option<Access>>,
    run: RefCell<Option<Rc<Run>>>,
    /// Longest message that the device can send.
    max_message: usize,
}

impl Instance {
    pub(crate) fn new(device: &Device) -> Result<Rc<Self>> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let max_message = match caps::MAX_MESSAGE_SIZE.ask(&device.info()) {
            Ok(Value::Number(size)) => usize::try_from(size).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        let handle = Handle::new(device)?;
        let made = handle.context().and_then(|ctx| handle.hear_of_connections().map(|()| ctx));
        match made {
            Ok(ctx) => Ok(Rc::new(Instance {
                handle,
                life: Lifecycle::new(ctx),
                device: device.clone(),
                serial: SERIAL.fetch_add(1, Ordering::Relaxed),
                enabled: Cell::new([0; POOLS]),
                declared: Cell::new(None),
                run: RefCell::new(None),
                max_message,
            })),
            Err(error) => {
                if let Err(error) = handle.destroy() {
                    log::warn!("{error}");
                }
                Err(error)
            }
        }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn max_message(&self) -> usize {
        self.max_message
    }

    pub(crate) fn enabled(&self) -> [u32; POOLS] {
        self.enabled.get()
    }

    pub(crate) fn enable(&self, pool: usize, num_tasks: u32) {
        let mut enabled = self.enabled.get();
        enabled[pool] = num_tasks;
        self.enabled.set(enabled);
    }

    pub(crate) fn declared(&self) -> Option<Access> {
        self.declared.get()
    }

    pub(crate) fn declare(&self, use_: Access) {
        self.declared.set(Some(self.declared.get().unwrap_or(Access::empty()) | use_));
    }

    /// The run that is going on.
    pub(crate) fn run(&self) -> Option<Rc<Run>> {
        self.run.borrow().clone()
    }

    pub(crate) fn begin(&self, run: Rc<Run>) {
        *self.run.borrow_mut() = Some(run);
    }
}

impl Member for Instance {
    fn life(&self) -> &Lifecycle {
        &self.life
    }

    fn settle(&self) {
        if let Some(run) = self.run() {
            run.settle();
        }
    }

    fn free_idle_tasks(&self) {
        if let Some(run) = self.run() {
            run.free_idle_tasks();
        }
    }

    fn revoke(&self) {
        if let Some(run) = self.run() {
            run.revoke();
        }
    }

    fn still_starting(&self) -> &'static str {
        "in releases like DOCA 2.x it waits for its first connection: export and connect, listen or connect_addr \
         before the wait for RUNNING"
    }

    fn ended(&self) {
        if let Some(run) = self.run.take() {
            run.end();
        }
    }

    fn destroy(&self) -> Result<()> {
        self.handle.destroy()
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instance({}, {:?})", self.device.info(), self.life.state())
    }
}

/// The program's claim to an instance.
pub(crate) type Owner = doca_common::owner::Owner<Instance>;

/// Properties that can be read in any state.
macro_rules! getters {
    ($owner:ty) => {
        impl $owner {
            $crate::instance::getters! { @each
                /// Tasks that one connection can have in flight: `doca_rdma_get_send_queue_size`.
                send_queue_size: u32;
                /// Entries of the receive queue: `doca_rdma_get_recv_queue_size`. `NOT_SUPPORTED` on CPUs, where the
                /// number of receive tasks decides.
                recv_queue_size: u32;
                /// Buffers that a sent chain may have: `doca_rdma_get_max_send_buf_list_len`.
                max_send_buf_list_len: u32;
                /// Buffers that a receive's chain may have: `doca_rdma_task_receive_get_dst_buf_list_len`.
                receive_buf_list_len: u32;
                /// Transport: `doca_rdma_get_transport_type`.
                transport_type: $crate::TransportType;
                /// Path MTU: `doca_rdma_get_mtu`.
                mtu: $crate::Mtu;
                /// What peers may do: `doca_rdma_get_permissions`.
                permissions: doca_common::Access;
                /// Whether packets have a global routing header: `doca_rdma_get_grh_enabled`.
                grh_enabled: bool;
                /// Index of the GID: `doca_rdma_get_gid_index`.
                gid_index: u32;
                /// Service level: `doca_rdma_get_sl`.
                sl: u32;
                /// Connections at a time: `doca_rdma_get_max_num_connections`.
                max_num_connections: u16;
                /// Retries while the peer has no receive, 7 for ever: `doca_rdma_get_rnr_retry_count`.
                rnr_retry_count: u8;
            }

            /// How long RDMA CM resolves an address: `doca_rdma_get_connection_request_timeout`.
            ///
            /// # Errors
            ///
            /// DOCA's.
            #[doc(alias = "doca_rdma_get_connection_request_timeout")]
            pub fn connection_request_timeout(&self) -> doca_common::Result<std::time::Duration> {
                let call = "doca_rdma_get_connection_request_timeout";
                doca_common::context::Member::life(&*self.owner).require_alive(call)?;
                self.owner
                    .handle()
                    .connection_request_timeout()
                    .map(|time| std::time::Duration::from_millis(time.into()))
            }
        }
    };
    (@each $($(#[$doc:meta])* $name:ident: $type:ty;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// DOCA's.
            pub fn $name(&self) -> doca_common::Result<$type> {
                let call = concat!("doca_rdma_get_", stringify!($name));
                doca_common::context::Member::life(&*self.owner).require_alive(call)?;
                self.owner.handle().$name()
            }
        )*
    };
}
pub(crate) use getters;

/// Refuses a transport that the device does not have.
pub(crate) fn require_transport(device: &Device, transport: crate::TransportType) -> Result<()> {
    match raw::caps::transport(&device.info(), transport.to_c())? {
        Value::Supported(true) => Ok(()),
        _ => Err(Error::refused("doca_rdma_set_transport_type", Refusal::Capability)
            .with(format!("{transport:?}"))),
    }
}
