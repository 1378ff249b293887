//! A context that is idle: the only place where it can be configured.

use crate::context::{Left, Starting};
use crate::instance::{Instance, Owner, getters, require_transport};
use crate::task::Task;
use crate::values::{Mtu, TransportType};
use crate::{caps, gid};
use doca_common::caps::Value;
use doca_common::owner::Key;
use doca_common::{Access, Device, Error, Failed, ProgressEngine, Refusal, Result};
use std::time::Duration;

/// An RDMA context that is not running. Dropping it destroys it.
#[derive(Debug)]
pub struct Config {
    pub(crate) owner: Owner,
}

getters!(Config);

impl Config {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Config { owner: Owner::new(Instance::new(device)?) })
    }

    /// The device that was given.
    pub fn device(&self) -> &Device {
        self.owner.device()
    }

    /// Allows `num_tasks` tasks of a kind at a time. The key gives its queue once the context runs. Enabling a kind
    /// again changes the number.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] if the device cannot do it, [`Refusal::OutOfRange`] for no tasks, or DOCA's.
    pub fn enable<T: Task>(&mut self, num_tasks: u32) -> Result<Key<T>> {
        self.owner.require_idle(T::SET_CONF)?;
        if num_tasks == 0 {
            return Err(Error::refused(T::SET_CONF, Refusal::OutOfRange).with("no tasks"));
        }
        if T::CAPABILITY.ask(&self.device().info())? == Value::Supported(false) {
            let text = format!("{} on {}", T::CAPABILITY.name, self.device().info());
            return Err(Error::refused(T::SET_CONF, Refusal::Capability).with(text));
        }
        T::configure(&self.owner, num_tasks)?;
        self.owner.enable(T::POOL, num_tasks);
        Ok(Key::new(self.owner.serial()))
    }

    /// Declares that peers will do a kind of task over this context, and gives them the flags of its row in the
    /// permission matrix: `doca_rdma_set_permissions`. If more than what was declared is permitted when the context
    /// starts, that is logged. The memory must allow it too.
    ///
    /// # Errors
    ///
    /// DOCA's.
    pub fn allow<T: Task>(&mut self) -> Result<()> {
        self.owner.require_idle("doca_rdma_set_permissions")?;
        let needed = T::requirement().map_or(Access::empty(), |row| row.peer_context);
        let permitted = self.owner.handle().permissions()? & Access::ANY_RDMA;
        self.owner.handle().set_permissions(permitted | needed)?;
        self.owner.declare(needed);
        Ok(())
    }

    /// Logs what is permitted beyond the declared use.
    fn log_permissions(&self) {
        let Some(declared) = self.owner.declared() else { return };
        if let Ok(permitted) = self.owner.handle().permissions()
            && let beyond = (permitted & Access::ANY_RDMA) - declared
            && !beyond.is_empty()
        {
            log::warn!("doca_rdma_set_permissions: peers may do {beyond}, beyond the use that was declared");
        }
    }

    /// Starts the context on an engine: `doca_ctx_start`. From the first start on it belongs to that engine.
    ///
    /// # Errors
    ///
    /// [`Refusal::OtherEngine`], [`Refusal::InCallback`], or DOCA's; what is left comes with it.
    #[doc(alias = "doca_ctx_start")]
    #[doc(alias = "doca_pe_connect_ctx")]
    pub fn start(self, engine: &ProgressEngine) -> std::result::Result<Starting, Failed<Left>> {
        self.log_permissions();
        Starting::begin(self.owner, engine)
    }

    /// Sets how many tasks a connection can have in flight, rounded up to a power of two:
    /// `doca_rdma_set_send_queue_size`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] above the device's limit, or DOCA's.
    #[doc(alias = "doca_rdma_set_send_queue_size")]
    pub fn set_send_queue_size(&mut self, tasks: u32) -> Result<()> {
        let call = "doca_rdma_set_send_queue_size";
        self.owner.require_idle(call)?;
        caps::MAX_SEND_QUEUE_SIZE.require_at_most(&self.device().info(), call, tasks)?;
        self.owner.handle().set_send_queue_size(tasks)
    }

    /// Sets the entries of the receive queue: `doca_rdma_set_recv_queue_size`. On CPUs the number of receive tasks
    /// decides, and DOCA refuses this.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] above the device's limit, or DOCA's.
    #[doc(alias = "doca_rdma_set_recv_queue_size")]
    pub fn set_recv_queue_size(&mut self, entries: u32) -> Result<()> {
        let call = "doca_rdma_set_recv_queue_size";
        self.owner.require_idle(call)?;
        caps::MAX_RECV_QUEUE_SIZE.require_at_most(&self.device().info(), call, entries)?;
        self.owner.handle().set_recv_queue_size(entries)
    }

    /// Sets how many buffers a sent chain may have: `doca_rdma_set_max_send_buf_list_len`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] above the device's limit, or DOCA's.
    #[doc(alias = "doca_rdma_set_max_send_buf_list_len")]
    pub fn set_max_send_buf_list_len(&mut self, buffers: u32) -> Result<()> {
        let call = "doca_rdma_set_max_send_buf_list_len";
        self.owner.require_idle(call)?;
        caps::MAX_SEND_BUF_LIST_LEN.require_at_most(&self.device().info(), call, buffers)?;
        self.owner.handle().set_max_send_buf_list_len(buffers)
    }

    /// Sets how many buffers a receive's chain may have: `doca_rdma_task_receive_set_dst_buf_list_len`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] above the device's limit, or DOCA's.
    #[doc(alias = "doca_rdma_task_receive_set_dst_buf_list_len")]
    pub fn set_receive_buf_list_len(&mut self, buffers: u32) -> Result<()> {
        let call = "doca_rdma_task_receive_set_dst_buf_list_len";
        self.owner.require_idle(call)?;
        let dynamic = self.owner.handle().transport_type()? == TransportType::DC;
        let limit =
            if dynamic { caps::MAX_RECEIVE_BUF_LIST_LEN_DC } else { caps::MAX_RECEIVE_BUF_LIST_LEN_RC };
        limit.require_at_most(&self.device().info(), call, buffers)?;
        self.owner.handle().set_receive_buf_list_len(buffers)
    }

    /// Sets the transport, which both peers must share: `doca_rdma_set_transport_type`. RC unless set. DC is alpha
    /// in DOCA: it may change, and it has descriptors only, one connection for each context.
    ///
    /// # Errors
    ///
    /// [`Refusal::Capability`] if the device does not have it, or DOCA's.
    #[doc(alias = "doca_rdma_set_transport_type")]
    pub fn set_transport_type(&mut self, transport: TransportType) -> Result<()> {
        self.owner.require_idle("doca_rdma_set_transport_type")?;
        require_transport(self.device(), transport)?;
        if transport == TransportType::DC {
            static ONCE: std::sync::Once = std::sync::Once::new();
            ONCE.call_once(|| {
                log::warn!("doca_rdma_set_transport_type: DC is alpha in DOCA, and may change")
            });
        }
        self.owner.handle().set_transport_type(transport)
    }

    /// Sets the path MTU: `doca_rdma_set_mtu`.
    ///
    /// # Errors
    ///
    /// `NOT_SUPPORTED`, `INVALID_VALUE`, `UNEXPECTED`
    #[doc(alias = "doca_rdma_set_mtu")]
    pub fn set_mtu(&mut self, mtu: Mtu) -> Result<()> {
        self.owner.require_idle("doca_rdma_set_mtu")?;
        self.owner.handle().set_mtu(mtu)
    }

    /// Sets what peers may do with shared memory over this context: `doca_rdma_set_permissions`. The memory itself
    /// must allow it too.
    ///
    /// # Errors
    ///
    /// [`Refusal::Permissions`] for flags that are not for contexts, or DOCA's.
    #[doc(alias = "doca_rdma_set_permissions")]
    pub fn set_permissions(&mut self, access: Access) -> Result<()> {
        let call = "doca_rdma_set_permissions";
        self.owner.require_idle(call)?;
        let foreign = access - (Access::ANY_RDMA | Access::LOCAL_READ_WRITE);
        if !foreign.is_empty() {
            let text = format!("{foreign} is for memory only");
            return Err(Error::refused(call, Refusal::Permissions).with(text));
        }
        self.owner.handle().set_permissions(access)
    }

    /// Sets whether packets have a global routing header, which Ethernet demands: `doca_rdma_set_grh_enabled`.
    ///
    /// # Errors
    ///
    /// `NOT_SUPPORTED`
    #[doc(alias = "doca_rdma_set_grh_enabled")]
    pub fn set_grh_enabled(&mut self, enabled: bool) -> Result<()> {
        self.owner.require_idle("doca_rdma_set_grh_enabled")?;
        self.owner.handle().set_grh_enabled(enabled)
    }

    /// Chooses the GID by its index: `doca_rdma_set_gid_index`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Gid`] for an entry that is empty or RoCE v1, with those that can be used; or DOCA's.
    #[doc(alias = "doca_rdma_set_gid_index")]
    pub fn set_gid_index(&mut self, index: u32) -> Result<()> {
        self.owner.require_idle("doca_rdma_set_gid_index")?;
        gid::at(&self.device().info(), index)?;
        self.owner.handle().set_gid_index(index)
    }

    /// Chooses the best GID for RoCE v2; see [`gid::roce_v2`].
    ///
    /// # Errors
    ///
    /// [`Refusal::Gid`] if there is none, or DOCA's.
    pub fn set_gid_roce_v2(&mut self) -> Result<gid::Gid> {
        self.owner.require_idle("doca_rdma_set_gid_index")?;
        let gid = gid::roce_v2(&self.device().info())?;
        self.owner.handle().set_gid_index(gid.index).map(|()| gid)
    }

    /// Sets the service level, 0 to 15: `doca_rdma_set_sl`.
    ///
    /// # Errors
    ///
    /// `INVALID_VALUE`
    #[doc(alias = "doca_rdma_set_sl")]
    pub fn set_sl(&mut self, level: u32) -> Result<()> {
        self.owner.require_idle("doca_rdma_set_sl")?;
        self.owner.handle().set_sl(level)
    }

    /// Sets how long RDMA CM resolves an address: `doca_rdma_set_connection_request_timeout`. It counts in
    /// milliseconds, 65 seconds at most.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLong`] beyond that, [`Refusal::OutOfRange`] for parts of a millisecond, or DOCA's.
    #[doc(alias = "doca_rdma_set_connection_request_timeout")]
    pub fn set_connection_request_timeout(&mut self, time: Duration) -> Result<()> {
        let call = "doca_rdma_set_connection_request_timeout";
        self.owner.require_idle(call)?;
        if !time.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(
                Error::refused(call, Refusal::OutOfRange).with(format!("{time:?}: whole milliseconds only"))
            );
        }
        let millis = u16::try_from(time.as_millis())
            .map_err(|_| Error::refused(call, Refusal::TooLong).with(format!("{time:?}")))?;
        self.owner.handle().set_connection_request_timeout(millis)
    }

    /// Sets how many connections there can be at a time: `doca_rdma_set_max_num_connections`.
    ///
    /// # Errors
    ///
    /// `NOT_SUPPORTED` below the minimum.
    #[doc(alias = "doca_rdma_set_max_num_connections")]
    pub fn set_max_num_connections(&mut self, connections: u16) -> Result<()> {
        self.owner.require_idle("doca_rdma_set_max_num_connections")?;
        self.owner.handle().set_max_num_connections(connections)
    }

    /// Sets how often a message is tried again while the peer has no receive for it, 7 meaning for ever:
    /// `doca_rdma_set_rnr_retry_count`.
    ///
    /// # Errors
    ///
    /// `INVALID_VALUE`, `NOT_SUPPORTED`
    #[doc(alias = "doca_rdma_set_rnr_retry_count")]
    pub fn set_rnr_retry_count(&mut self, count: u8) -> Result<()> {
        self.owner.require_idle("doca_rdma_set_rnr_retry_count")?;
        self.owner.handle().set_rnr_retry_count(count)
    }
}
