//! Disks: what a target reads and writes.

use crate::model::NamespaceInfo;
use crate::raw::LentQueue;
use doca_sta::NvmeQueue;
use nvme_pci::{Bar, Driver, IoQueue, Mapper};
use nvme_wire::io::{DatasetManagement, DsmRange, ReadWrite};
use nvme_wire::{IoOpcode, Layout, Sqe, Status};
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

/// I/O commands that the adapter hands over, and a disk executes by a queue of its own. Read and Write never come here.
pub const EXECUTED: &[IoOpcode] =
    &[IoOpcode::FLUSH, IoOpcode::COMPARE, IoOpcode::WRITE_ZEROES, IoOpcode::DATASET_MANAGEMENT];

/// Entries of the queue for commands that are not offloaded.
const OWN_ENTRIES: u32 = 32;

/// What went wrong with a disk.
pub type DiskError = Box<dyn std::error::Error + Send + Sync>;

/// A disk with namespaces, whose I/O queues can be lent to the adapter.
pub trait Disk: Send + 'static {
    /// Its namespaces, by their numbers on the disk.
    ///
    /// # Errors
    ///
    /// The disk's.
    fn namespaces(&mut self) -> Result<Vec<(u32, NamespaceInfo)>, DiskError>;

    /// Creates a pair of I/O queues of at most this many entries, to be lent. Dropping it deletes them.
    ///
    /// # Errors
    ///
    /// The disk's.
    fn lend(&mut self, entries: u32) -> Result<Box<dyn NvmeQueue>, DiskError>;

    /// What makes memory reachable for it. The adapter's buffers are mapped by all disks' mappers.
    fn mapper(&self) -> Arc<dyn Mapper>;

    /// Executes one of [`EXECUTED`] on a namespace, with its data. It may take as long as the disk needs.
    fn execute(&mut self, nsid: u32, block_size: u32, command: &Sqe, data: &[u8]) -> Status;
}

/// An NVMe disk on PCI, behind registers that are mapped into this process.
///
/// It has run on the simulated disk only. For a disk on hardware, three things are missing here, all of VFIO: a
/// [`Bar`] that maps BAR0 of a function which is bound to `vfio-pci`, a [`Mapper`] by `VFIO_IOMMU_MAP_DMA` with the
/// process's own addresses, and the dma-buf of the BAR (`VFIO_DEVICE_FEATURE_DMA_BUF`, Linux 6.x) by which the adapter
/// reaches the doorbells peer to peer: [`with_dmabuf`](NvmeDisk::with_dmabuf) takes it.
pub struct NvmeDisk {
    shared: Arc<Shared>,
    own: IoQueue,
}

/// What lent queues need of a disk.
pub(crate) struct Shared {
    driver: Mutex<Driver>,
    pub(crate) bar: Arc<dyn Bar>,
    pub(crate) dmabuf: Option<OwnedFd>,
}

impl Shared {
    pub(crate) fn driver(&self) -> MutexGuard<'_, Driver> {
        self.driver.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl NvmeDisk {
    /// Brings a controller up.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn open(bar: Arc<dyn Bar>, mapper: Arc<dyn Mapper>) -> Result<Self, DiskError> {
        Self::new(bar, mapper, None)
    }

    /// As [`open`](NvmeDisk::open), with the dma-buf of the whole BAR, for an adapter that reaches the doorbells across
    /// PCI.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn with_dmabuf(
        bar: Arc<dyn Bar>,
        mapper: Arc<dyn Mapper>,
        dmabuf: OwnedFd,
    ) -> Result<Self, DiskError> {
        Self::new(bar, mapper, Some(dmabuf))
    }

    fn new(bar: Arc<dyn Bar>, mapper: Arc<dyn Mapper>, dmabuf: Option<OwnedFd>) -> Result<Self, DiskError> {
        let mut driver = Driver::open(bar.clone(), mapper)?;
        let own = driver.io_queue(OWN_ENTRIES)?;
        Ok(NvmeDisk { shared: Arc::new(Shared { driver: Mutex::new(driver), bar, dmabuf }), own })
    }
}

impl Disk for NvmeDisk {
    fn namespaces(&mut self) -> Result<Vec<(u32, NamespaceInfo)>, DiskError> {
        let mut driver = self.shared.driver();
        let serial = driver.controller().sn.0;
        let found = driver.namespaces()?.into_iter().map(|(nsid, own)| {
            let block_size = own.block_size().ok_or("a namespace has a format without blocks")?;
            let mut nguid = own.nguid;
            if nguid == [0; 16] {
                // Hosts want something to know it again by.
                nguid[..12].copy_from_slice(&serial[..12]);
                nguid[12..].copy_from_slice(&nsid.to_be_bytes());
            }
            Ok((nsid, NamespaceInfo { blocks: own.nsze, block_size, nguid }))
        });
        found.collect()
    }

    fn lend(&mut self, entries: u32) -> Result<Box<dyn NvmeQueue>, DiskError> {
        let most = u32::from(self.shared.driver().capabilities().mqes) + 1;
        let entries = 1 << entries.min(most).max(2).ilog2();
        let memory = self.shared.driver().create_queue(entries)?;
        Ok(Box::new(LentQueue::new(self.shared.clone(), memory)))
    }

    fn mapper(&self) -> Arc<dyn Mapper> {
        self.shared.driver().mapper().clone()
    }

    fn execute(&mut self, nsid: u32, block_size: u32, command: &Sqe, data: &[u8]) -> Status {
        let range = command.get::<ReadWrite>();
        let done = match IoOpcode(command.opcode) {
            IoOpcode::FLUSH => self.own.flush(nsid),
            IoOpcode::WRITE_ZEROES => self.own.write_zeroes(nsid, range.slba, range.nlb, range.deac),
            IoOpcode::DATASET_MANAGEMENT => {
                let arguments = command.get::<DatasetManagement>();
                let Some(bytes) = data.get(..arguments.ranges() * DsmRange::LEN) else {
                    return Status::SGL_LENGTH_INVALID.with_dnr();
                };
                let ranges: Vec<_> = bytes.chunks_exact(DsmRange::LEN).flat_map(DsmRange::read).collect();
                // The other attributes are hints.
                if arguments.ad { self.own.deallocate(nsid, &ranges) } else { Ok(()) }
            }
            IoOpcode::COMPARE => {
                let len = range.blocks() as usize * block_size as usize;
                let Some(data) = data.get(..len) else { return Status::SGL_LENGTH_INVALID.with_dnr() };
                let mut there = vec![0; len];
                match self.own.read(nsid, range.slba, block_size, &mut there) {
                    Ok(()) if there == data => Ok(()),
                    Ok(()) => return Status::COMPARE_FAILURE.with_dnr(),
                    Err(error) => Err(error),
                }
            }
            _ => return Status::INVALID_OPCODE.with_dnr(),
        };
        match done {
            Ok(()) => Status::SUCCESS,
            Err(nvme_pci::Error::Io(status)) => status,
            Err(error) => {
                log::warn!("a disk: {error}");
                Status::INTERNAL_ERROR
            }
        }
    }
}

impl fmt::Debug for NvmeDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NvmeDisk")
    }
}
