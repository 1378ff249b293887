//! Blocks in a file.

use crate::raw::punch_hole;
use nvme_wire::Status;
use nvme_wire::identify::IdentifyNamespace;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A namespace: a file of whole blocks. What lies behind the last whole block is not used.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    block_size: u32,
    blocks: u64,
    nguid: [u8; 16],
}

impl Namespace {
    /// The blocks of a file that is open for reading and writing. `block_size` is 512 or 4096. The file is locked
    /// (`flock`) as long as the namespace is there.
    ///
    /// # Errors
    ///
    /// Another block size, a file shorter than a block, one whose size cannot be asked, or one that is locked: it is the
    /// file of another namespace, perhaps of another process ([`io::ErrorKind::ResourceBusy`]).
    pub fn new(file: File, block_size: u32) -> io::Result<Self> {
        let refuse = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        if !matches!(block_size, 512 | 4096) {
            return refuse("the block size is neither 512 nor 4096");
        }
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                let why = "another disk, here or in another process, has the file (it is locked)";
                io::Error::new(io::ErrorKind::ResourceBusy, why)
            }
            TryLockError::Error(error) => error,
        })?;
        let blocks = file.metadata()?.len() / u64::from(block_size);
        if blocks == 0 {
            return refuse("the file is shorter than a block");
        }
        Ok(Namespace { file, block_size, blocks, nguid: [0; 16] })
    }

    /// Like [`Namespace::new`] with the file at a path.
    pub fn open(path: &Path, block_size: u32) -> io::Result<Self> {
        Namespace::new(File::options().read(true).write(true).open(path)?, block_size)
    }

    /// Sets the Namespace Globally Unique Identifier; zeros, the default, mean none.
    pub fn with_nguid(mut self, nguid: [u8; 16]) -> Self {
        self.nguid = nguid;
        self
    }

    /// Bytes of a block.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// How many blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(crate) fn identify(&self) -> IdentifyNamespace {
        let mut identity = IdentifyNamespace {
            nsze: self.blocks,
            ncap: self.blocks,
            nuse: self.blocks,
            // Deallocated blocks read as zeros, and Write Zeroes takes the deallocate bit.
            dlfeat: 0b1001,
            nvmcap: u128::from(self.blocks) * u128::from(self.block_size),
            nguid: self.nguid,
            ..IdentifyNamespace::default()
        };
        identity.lbaf[0].lbads = self.block_size.ilog2() as u8;
        identity
    }

    /// Byte range of blocks, or LBA Out of Range.
    pub(crate) fn range(&self, slba: u64, blocks: u64) -> Result<(u64, u64), Status> {
        let end = slba.checked_add(blocks).filter(|&end| end <= self.blocks);
        end.ok_or(Status::LBA_OUT_OF_RANGE.with_dnr())?;
        let size = u64::from(self.block_size);
        Ok((slba * size, blocks * size))
    }

    pub(crate) fn read(&self, offset: u64, to: &mut [u8]) -> Result<(), Status> {
        self.file.read_exact_at(to, offset).map_err(|_| Status::UNRECOVERED_READ_ERROR)
    }

    pub(crate) fn write(&self, offset: u64, from: &[u8]) -> Result<(), Status> {
        self.file.write_all_at(from, offset).map_err(|_| Status::WRITE_FAULT)
    }

    pub(crate) fn flush(&self) -> Result<(), Status> {
        self.file.sync_data().map_err(|_| Status::WRITE_FAULT)
    }

    /// Makes a range read as zeros.
    pub(crate) fn zero(&self, offset: u64, len: u64, deallocate: bool) -> Result<(), Status> {
        if deallocate && punch_hole(&self.file, offset, len).is_ok() {
            return Ok(());
        }
        let zeros = vec![0; len.min(1 << 20) as usize];
        let mut at = 0;
        while at < len {
            let some = (len - at).min(zeros.len() as u64);
            self.write(offset + at, &zeros[..some as usize])?;
            at += some;
        }
        Ok(())
    }

    /// A hint: a file system that cannot do it keeps the content.
    pub(crate) fn deallocate(&self, offset: u64, len: u64) {
        if len > 0 {
            _ = punch_hole(&self.file, offset, len);
        }
    }
}
