//! I/O commands, and how data come and go.

use crate::controller::Controller;
use crate::prp;
use nvme_wire::command::{ALL_NAMESPACES, IoOpcode};
use nvme_wire::io::{DatasetManagement, DsmRange, ReadWrite};
use nvme_wire::{Layout, Sqe, Status};

impl Controller {
    /// Where a namespace stands in the configuration.
    pub(crate) fn namespace(&self, nsid: u32) -> Result<usize, Status> {
        let index = (nsid as usize).checked_sub(1).filter(|&index| index < self.config.namespaces.len());
        index.ok_or(Status::INVALID_NAMESPACE.with_dnr())
    }

    /// Sends the first `len` bytes of the buffer to the host.
    pub(crate) fn send(&mut self, command: &Sqe, len: usize) -> Result<(), Status> {
        prp::pieces(&self.map, command.prps(), len as u64, &mut self.pieces)?;
        let mut at = 0;
        for &(address, len) in &self.pieces {
            let sent = self.map.write(address, &self.buffer[at..at + len]);
            sent.map_err(|_| Status::DATA_TRANSFER_ERROR)?;
            at += len;
        }
        Ok(())
    }

    /// Fetches `len` bytes from the host to the beginning of the buffer.
    fn fetch(&mut self, command: &Sqe, len: usize) -> Result<(), Status> {
        prp::pieces(&self.map, command.prps(), len as u64, &mut self.pieces)?;
        self.make_room(len);
        let mut at = 0;
        for &(address, len) in &self.pieces {
            let fetched = self.map.read(address, &mut self.buffer[at..at + len]);
            fetched.map_err(|_| Status::DATA_TRANSFER_ERROR)?;
            at += len;
        }
        Ok(())
    }

    fn make_room(&mut self, len: usize) {
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
    }

    /// Transfers longer than MDTS says are refused.
    fn check_length(&self, len: u64) -> Result<usize, Status> {
        let most = if self.config.mdts == 0 { u64::MAX } else { 4096u64 << self.config.mdts };
        if len > most { Err(Status::INVALID_FIELD.with_dnr()) } else { Ok(len as usize) }
    }

    pub(crate) fn run_io(&mut self, command: &Sqe) -> Result<(), Status> {
        if command.psdt != 0 || command.fuse != 0 {
            return Err(Status::INVALID_FIELD.with_dnr());
        }
        let opcode = IoOpcode(command.opcode);
        if opcode == IoOpcode::FLUSH && command.nsid == ALL_NAMESPACES {
            return self.config.namespaces.iter().try_for_each(|namespace| namespace.flush());
        }
        let index = self.namespace(command.nsid)?;
        match opcode {
            IoOpcode::FLUSH => self.config.namespaces[index].flush(),
            IoOpcode::READ | IoOpcode::WRITE | IoOpcode::COMPARE => self.read_write(index, opcode, command),
            IoOpcode::WRITE_ZEROES => {
                let arguments = command.get::<ReadWrite>();
                let namespace = &self.config.namespaces[index];
                let (offset, len) = namespace.range(arguments.slba, arguments.blocks().into())?;
                namespace.zero(offset, len, arguments.deac)
            }
            IoOpcode::DATASET_MANAGEMENT => self.dataset_management(index, command),
            _ => Err(Status::INVALID_OPCODE.with_dnr()),
        }
    }

    fn read_write(&mut self, index: usize, opcode: IoOpcode, command: &Sqe) -> Result<(), Status> {
        let arguments = command.get::<ReadWrite>();
        if arguments.prinfo != 0 {
            return Err(Status::INVALID_FIELD.with_dnr());
        }
        let (offset, len) = self.config.namespaces[index].range(arguments.slba, arguments.blocks().into())?;
        let len = self.check_length(len)?;
        if opcode == IoOpcode::READ {
            self.make_room(len);
            self.config.namespaces[index].read(offset, &mut self.buffer[..len])?;
            return self.send(command, len);
        }
        self.fetch(command, len)?;
        let namespace = &self.config.namespaces[index];
        if opcode == IoOpcode::COMPARE {
            let mut here = vec![0; len];
            namespace.read(offset, &mut here)?;
            return if here == self.buffer[..len] { Ok(()) } else { Err(Status::COMPARE_FAILURE) };
        }
        namespace.write(offset, &self.buffer[..len])?;
        if arguments.fua { namespace.flush() } else { Ok(()) }
    }

    fn dataset_management(&mut self, index: usize, command: &Sqe) -> Result<(), Status> {
        let arguments = command.get::<DatasetManagement>();
        let len = arguments.ranges() * DsmRange::LEN;
        self.fetch(command, len)?;
        let namespace = &self.config.namespaces[index];
        let ranges = self.buffer[..len].chunks_exact(DsmRange::LEN).flat_map(DsmRange::read);
        let ranges: Vec<_> =
            ranges.map(|range| namespace.range(range.slba, range.nlb.into())).collect::<Result<_, _>>()?;
        if arguments.ad {
            ranges.into_iter().for_each(|(offset, len)| namespace.deallocate(offset, len));
        }
        Ok(())
    }
}
