//! NVIDIA DOCA from safe Rust.
//!
//! A program built with this crate links DOCA's own libraries and moves its data through `doca_*` calls; nothing
//! falls back to verbs or sockets. Where there is no BlueField or ConnectX, the software SDK in `doca-sim` stands in:
//! the same ABI, found the same way, and never used unless `pkg-config` is pointed at it.
//!
//! # Features
//!
//! | feature | library | module |
//! | --- | --- | --- |
//! | `rdma` (default) | `libdoca_rdma` | [`rdma`] |
//! | `sta` | `libdoca_sta`, which needs RDMA | `sta` |
//! | `sta-target` | the same | `sta_target`: a whole target, to which the application supplies disks |
//! | `comch` | `libdoca_comch` | `comch` |
//!
//! # A message
//!
//! Both peers in one program, for brevity: usually each is a process of its own, and the descriptors travel over a
//! socket. The examples `rdma_send` and `rdma_receive` do that.
//!
//! ```
//! # #[cfg(feature = "rdma")]
//! use doca::rdma::{Rdma, ReceiveTask, SendTask, caps};
//! # #[cfg(feature = "rdma")]
//! # fn main() -> doca::Result<()> {
//! use doca::{Device, DeviceInfo, Memory, ProgressEngine};
//!
//! // The first device that can do it; `Device::open("mlx5_0")` takes a certain one.
//! let able = Device::find().with(caps::SEND).with(caps::RECEIVE).list()?;
//! let device = able[0].open()?;
//! let engine = ProgressEngine::new()?;
//! let memory = Memory::zeroed(4096)?.private(&device)?;
//!
//! // Configure, then start: only an idle context can be configured.
//! let mut left = Rdma::configure(&device)?;
//! let mut right = Rdma::configure(&device)?;
//! left.set_gid_roce_v2()?;
//! right.set_gid_roce_v2()?;
//! let sends = left.enable::<SendTask>(16)?;
//! let receives = right.enable::<ReceiveTask>(16)?;
//! let left = left.start(&engine)?;
//! let right = right.start(&engine)?;
//!
//! // Each side exports a descriptor and connects with the other's.
//! let (to_right, left_descriptor) = left.export()?;
//! let (to_left, right_descriptor) = right.export()?;
//! let to_right = to_right.connect(&right_descriptor)?;
//! let _to_left = to_left.connect(&left_descriptor)?;
//!
//! // After that: in releases like DOCA 2.x only a connected context gets to RUNNING.
//! let left = left.running()?;
//! let right = right.running()?;
//!
//! // Tasks take buffers by value and give them back.
//! let mut receive = right.queue(receives)?.submit(memory.take(256)?)?;
//! let mut message = memory.take(256)?;
//! message.fill_with(b"Hi DOCA RDMA!")?;
//! left.queue(sends)?.submit(&to_right, message)?.wait()?;
//! assert_eq!(&receive.wait()?.buffer[..], b"Hi DOCA RDMA!");
//!
//! // Stopping gives back what can be configured and started again.
//! left.stop().wait()?;
//! right.stop().wait()?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "rdma"))]
//! # fn main() {}
//! ```
//!
//! # What is not safe by nature
//!
//! Memory of somebody else is registered through the `unsafe` trait [`memory::Foreign`]; [`memory::Heap`] implements
//! it for bytes of the heap. A connection request of the program's own librdmacm loop is handed over by the `unsafe`
//! `rdma::CmId::from_raw`.
#![forbid(unsafe_code)]

pub use doca_common::{
    Access, AsyncEvent, Buffer, Chain, Code, Descriptor, Device, DeviceInfo, Error, Failed, Frozen, Kind,
    Layer, Memory, PrivateMemory, ProgressEngine, Refusal, RemoteBuffer, RemoteCell, RemoteEvent,
    RemoteMemory, Representor, RepresentorInfo, Result, SharedBuffer, SharedMemory, SyncEvent, access,
    buffer, caps, chain, context, device, engine, error, event, log, memory, remote, representor, version,
};

/// Messages and one-sided memory access between peers: `libdoca_rdma`.
#[cfg(feature = "rdma")]
pub use doca_rdma as rdma;

/// Storage target offload: `libdoca_sta`.
#[cfg(feature = "sta")]
pub use doca_sta as sta;

/// A whole storage target: the application supplies subsystems and disks.
#[cfg(feature = "sta-target")]
pub use doca_sta_target as sta_target;

/// Messages between host and DPU: `libdoca_comch`.
#[cfg(feature = "comch")]
pub use doca_comch as comch;
