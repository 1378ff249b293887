//! `doca_mmap.h`: memory maps.

use crate::code::{Code, Res};
use crate::dev::{Dev, Devinfo};
use crate::entry;
use crate::entry::{In, Out};
use crate::fabric::descriptor::Reach;
use crate::mmap::{FreeCallback, Mmap};
use std::ffi::c_void;
use std::sync::Arc;

/// Hands a descriptor out.
fn export(mmap: &In<Mmap>, reach: Reach, dev: &In<Dev>, desc: &Out<*const u8>, len: &Out<usize>) -> Res {
    let (mmap, dev) = (mmap.get()?, dev.get()?);
    desc.check()?;
    len.check()?;
    let (bytes, count) = mmap.export(reach, dev)?;
    desc.put(bytes)?;
    len.put(count)
}

entry! {
    /// A map to be configured.
    fn doca_mmap_create(mmap: Out<*const Mmap>) {
        mmap.check()?;
        mmap.put(Arc::into_raw(Mmap::create()))
    }

    /// Ends a map; NOT_PERMITTED while buffers over it are out.
    fn doca_mmap_destroy(mmap: In<Mmap>) {
        let farewell = mmap.get()?.retire()?;
        // SAFETY: doca_mmap_create or doca_mmap_create_from_export made this pointer by Arc::into_raw; the
        // tag, now dead, lets this line be reached once.
        drop(unsafe { Arc::from_raw(mmap.raw()) });
        farewell.say();
        Ok(())
    }

    /// Registers the range.
    fn doca_mmap_start(mmap: In<Mmap>) {
        mmap.get()?.start()
    }

    /// Withdraws the range; NOT_PERMITTED while buffers over it are out.
    fn doca_mmap_stop(mmap: In<Mmap>) {
        mmap.get()?.stop()
    }

    /// Adds a device that may use the memory.
    fn doca_mmap_add_dev(mmap: In<Mmap>, dev: In<Dev>) {
        mmap.get()?.add_dev(dev.get()?)
    }

    /// Takes a device out.
    fn doca_mmap_rm_dev(mmap: In<Mmap>, dev: In<Dev>) {
        mmap.get()?.remove_dev(dev.get()?)
    }

    /// Describes the memory to the other side of the PCI bus.
    fn doca_mmap_export_pci(mmap: In<Mmap>, dev: In<Dev>, export_desc: Out<*const u8>, export_desc_len: Out<usize>) {
        export(&mmap, Reach::Pci, &dev, &export_desc, &export_desc_len)
    }

    /// Describes the memory to RDMA peers.
    fn doca_mmap_export_rdma(mmap: In<Mmap>, dev: In<Dev>, export_desc: Out<*const u8>, export_desc_len: Out<usize>) {
        export(&mmap, Reach::Rdma, &dev, &export_desc, &export_desc_len)
    }

    /// No device here has a DPA, so after the checks it is NOT_SUPPORTED.
    fn doca_mmap_dev_get_dpa_handle(mmap: In<Mmap>, dev: In<Dev>, dpa_mmap_handle: Out<u32>) {
        let (mmap, dev) = (mmap.get()?, dev.get()?);
        dpa_mmap_handle.check()?;
        if !mmap.is_started() {
            return Err(Code::NOT_PERMITTED);
        }
        if !mmap.has_dev(dev) {
            return Err(Code::NOT_FOUND);
        }
        Err(Code::NOT_SUPPORTED)
    }

    /// A started map of memory that another process exported.
    fn doca_mmap_create_from_export(user_data: In<u64>, export_desc: In<u8>, export_desc_len: usize, dev: In<Dev>, mmap: Out<*const Mmap>) {
        let bytes = export_desc.bytes(export_desc_len)?;
        let dev = dev.get()?;
        mmap.check()?;
        mmap.put(Arc::into_raw(Mmap::import(bytes, dev, user_data.value().unwrap_or(0))?))
    }

    /// Sets the range, once.
    fn doca_mmap_set_memrange(mmap: In<Mmap>, addr: usize, len: usize) {
        mmap.get()?.set_range(addr, len)
    }

    /// Sets the range to a mapping of a dma-buf, once. The mapping keeps the buffer, so the descriptor may be
    /// closed afterwards.
    fn doca_mmap_set_dmabuf_memrange(mmap: In<Mmap>, dmabuf_fd: i32, addr: usize, dmabuf_offset: usize, len: usize) {
        let mmap = mmap.get()?;
        // SAFETY: asks about a number; the kernel checks whether it is a descriptor.
        let is_open = unsafe { libc::fcntl(dmabuf_fd, libc::F_GETFD) } >= 0;
        if !is_open || dmabuf_offset.checked_add(len).is_none() {
            return Err(Code::INVALID_VALUE);
        }
        mmap.set_range(addr, len)
    }

    /// No device here has a DPA.
    fn doca_mmap_set_dpa_memrange(mmap: In<Mmap>, dpa: In<c_void>, _dpa_addr: u64, _len: usize) {
        mmap.get()?;
        if dpa.raw().is_null() { Err(Code::INVALID_VALUE) } else { Err(Code::NOT_SUPPORTED) }
    }

    /// The range; of an imported map the exporter's.
    fn doca_mmap_get_memrange(mmap: In<Mmap>, addr: Out<usize>, len: Out<usize>) {
        let mmap = mmap.get()?;
        addr.check()?;
        len.check()?;
        let (base, size) = mmap.range().ok_or(Code::BAD_STATE)?;
        addr.put(base)?;
        len.put(size)
    }

    /// Sets what is called when the map is destroyed.
    fn doca_mmap_set_free_cb(mmap: In<Mmap>, free_cb: Option<FreeCallback>, opaque: *mut c_void) {
        mmap.get()?.set_free_callback(free_cb.ok_or(Code::INVALID_VALUE)?, opaque)
    }

    /// The program's data.
    fn doca_mmap_get_user_data(mmap: In<Mmap>, user_data: Out<u64>) {
        user_data.put(mmap.get()?.user_data())
    }

    /// How many devices can be added.
    fn doca_mmap_get_max_num_devices(mmap: In<Mmap>, max_num_devices: Out<u32>) {
        max_num_devices.put(mmap.get()?.max_devices())
    }

    /// How many buffers over the map are out.
    fn doca_mmap_get_num_bufs(mmap: In<Mmap>, num_bufs: Out<u32>) {
        num_bufs.put(mmap.get()?.num_bufs())
    }

    /// Whether descriptors of the map are out.
    fn doca_mmap_get_exported(mmap: In<Mmap>, exported: Out<u8>) {
        exported.put(u8::from(mmap.get()?.is_exported()))
    }

    /// Whether the map came from a descriptor.
    fn doca_mmap_get_from_export(mmap: In<Mmap>, from_export: Out<u8>) {
        from_export.put(u8::from(mmap.get()?.is_imported()))
    }

    /// Sets how many devices can be added.
    fn doca_mmap_set_max_num_devices(mmap: In<Mmap>, max_num_devices: u32) {
        mmap.get()?.set_max_devices(max_num_devices)
    }

    /// Sets the rights.
    fn doca_mmap_set_permissions(mmap: In<Mmap>, access_mask: u32) {
        mmap.get()?.set_access(access_mask)
    }

    /// Sets the program's data.
    fn doca_mmap_set_user_data(mmap: In<Mmap>, user_data: u64) {
        mmap.get()?.set_user_data(user_data)
    }

    /// Whether a device can describe memory to the other side of the PCI bus.
    fn doca_mmap_cap_is_export_pci_supported(devinfo: In<Devinfo>, mmap_export: Out<u8>) {
        mmap_export.put(u8::from(devinfo.get()?.device().mmap.export_pci))
    }

    /// Whether a device can use memory that the other side of the PCI bus described.
    fn doca_mmap_cap_is_create_from_export_pci_supported(devinfo: In<Devinfo>, from_export: Out<u8>) {
        from_export.put(u8::from(devinfo.get()?.device().mmap.create_from_export_pci))
    }

    /// Makes stopping and destroying the map independent of buffers.
    fn doca_mmap_enable_thread_safety(mmap: In<Mmap>) {
        mmap.get()?.enable_thread_safety()
    }

    /// A made-up memory key.
    fn doca_mmap_get_mkey(mmap: In<Mmap>, dev: In<Dev>, mkey: Out<u32>) {
        let (mmap, dev) = (mmap.get()?, dev.get()?);
        mkey.check()?;
        mkey.put(mmap.mkey(dev.device())?)
    }
}

#[cfg(test)]
mod tests;
