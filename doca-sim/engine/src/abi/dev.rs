//! `doca_dev.h`: devices, representors, and what can be asked about them.

use crate::code::{Code, Res};
use crate::dev::{self, Dev, DevRep, Devinfo, DevinfoRep, RepFilter};
use crate::entry;
use crate::entry::{In, Out, Text};
use crate::topology::{LinkLayer, PciAddr};
use std::ffi::c_char;
use std::ptr;

// The sizes that doca_dev.h names.
const VUID_SIZE: u32 = 128;
const IFACE_NAME_SIZE: u32 = 256;
const IBDEV_NAME_SIZE: u32 = 64;
const PCI_ADDR_SIZE: u32 = 13;

/// Writes an address of fixed size into at least as much room.
fn put_addr(out: &Out<u8>, room: u32, bytes: &[u8]) -> Res {
    if (room as usize) < bytes.len() { Err(Code::INVALID_VALUE) } else { out.put_all(bytes) }
}

/// Whether a text from C names this address. Both spellings of PCI addresses count, in either case.
fn put_is_equal(out: &Out<u8>, text: &Text, pci: PciAddr) -> Res {
    let wanted: PciAddr = text.utf8()?.parse().map_err(|_| Code::INVALID_VALUE)?;
    out.put(u8::from(wanted == pci))
}

/// The answer for one filter; devices without representors have no answer.
fn put_filter(out: &Out<u8>, info: &Devinfo, filter: RepFilter) -> Res {
    out.check()?;
    if !info.device().representor_filters.any() {
        return Err(Code::NOT_SUPPORTED);
    }
    out.put(u8::from(filter.supported(info.device())))
}

entry! {
    /// Lists the devices of this side. BAD_CONFIG for a topology file that cannot be used.
    fn doca_devinfo_create_list(dev_list: Out<*mut *mut Devinfo>, nb_devs: Out<u32>) {
        dev_list.check()?;
        nb_devs.check()?;
        crate::log::announce_once();
        let (list, count) = dev::list()?;
        dev_list.put(list)?;
        nb_devs.put(count)
    }

    /// Ends a list and its elements; open devices live on.
    fn doca_devinfo_destroy_list(dev_list: In<*mut Devinfo>) {
        dev::DEVINFO_LISTS.remove(dev_list.raw())
    }

    /// Lists the representors that a device offers.
    fn doca_devinfo_rep_create_list(dev: In<Dev>, filter: i32, dev_list_rep: Out<*mut *mut DevinfoRep>, nb_devs_rep: Out<u32>) {
        let dev = dev.get()?;
        dev_list_rep.check()?;
        nb_devs_rep.check()?;
        let (list, count) = dev::list_reps(dev, RepFilter::from_c(filter)?)?;
        dev_list_rep.put(list)?;
        nb_devs_rep.put(count)
    }

    /// Ends a list of representors and its elements; open representors live on.
    fn doca_devinfo_rep_destroy_list(dev_list_rep: In<*mut DevinfoRep>) {
        dev::REP_LISTS.remove(dev_list_rep.raw())
    }

    /// Opens a device, or adds a reference to an open one.
    fn doca_dev_open(devinfo: In<Devinfo>, dev: Out<*const Dev>) {
        let info = devinfo.get()?;
        dev.check()?;
        dev.put(dev::open(info))
    }

    /// Gives a reference back.
    fn doca_dev_close(dev: In<Dev>) {
        // Programs close what they have closed and set to NULL, and take anything but success for a failure.
        dev.optional()?.map_or(Ok(()), dev::close)
    }

    /// Nothing is cached here, so all of it is reclaimed at once.
    fn doca_dev_accelerate_resource_reclaim(dev: In<Dev>) {
        if dev.get()?.device().accelerate_resource_reclaim { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
    }

    /// Opens a representor.
    fn doca_dev_rep_open(devinfo: In<DevinfoRep>, dev_rep: Out<*const DevRep>) {
        let info = devinfo.get()?;
        dev_rep.check()?;
        dev_rep.put(dev::open_rep(info))
    }

    /// Closes a representor.
    fn doca_dev_rep_close(dev: In<DevRep>) {
        dev::close_rep(dev.get()?)
    }

    /// The description of an open device.
    fn doca_dev_as_devinfo(dev: In<Dev>) -> *const Devinfo = ptr::null(); {
        dev.get().map_or(ptr::null(), |dev| ptr::from_ref(dev.info()))
    }

    /// The description of an open representor.
    fn doca_dev_rep_as_devinfo(dev_rep: In<DevRep>) -> *const DevinfoRep = ptr::null(); {
        dev_rep.get().map_or(ptr::null(), |rep| ptr::from_ref(rep.info()))
    }
}

entry! {
    /// Full PCI address, 13 bytes.
    fn doca_devinfo_get_pci_addr_str(devinfo: In<Devinfo>, pci_addr_str: Out<c_char>) {
        pci_addr_str.put_text(&devinfo.get()?.device().pci.to_string(), PCI_ADDR_SIZE, PCI_ADDR_SIZE)
    }

    /// Compares the PCI address with a text.
    fn doca_devinfo_is_equal_pci_addr(devinfo: In<Devinfo>, pci_addr_str: Text, is_equal: Out<u8>) {
        put_is_equal(&is_equal, &pci_addr_str, devinfo.get()?.device().pci)
    }

    /// IPv4 address in network order; NOT_FOUND without one.
    fn doca_devinfo_get_ipv4_addr(devinfo: In<Devinfo>, ipv4_addr: Out<u8>, size: u32) {
        let device = devinfo.get()?.device();
        ipv4_addr.check()?;
        let addr = device.ipv4.map(|addr| addr.octets());
        if size < 4 { Err(Code::INVALID_VALUE) } else { put_addr(&ipv4_addr, size, &addr.ok_or(Code::NOT_FOUND)?) }
    }

    /// IPv6 address in network order.
    fn doca_devinfo_get_ipv6_addr(devinfo: In<Devinfo>, ipv6_addr: Out<u8>, size: u32) {
        put_addr(&ipv6_addr, size, &devinfo.get()?.device().ipv6_addr().octets())
    }

    /// Ethernet address; NOT_SUPPORTED on InfiniBand.
    fn doca_devinfo_get_mac_addr(devinfo: In<Devinfo>, mac_addr: Out<u8>, size: u32) {
        let device = devinfo.get()?.device();
        mac_addr.check()?;
        match device.link_layer {
            _ if size < 6 => Err(Code::INVALID_VALUE),
            LinkLayer::Infiniband => Err(Code::NOT_SUPPORTED),
            LinkLayer::Ethernet => put_addr(&mac_addr, size, &device.mac.0),
        }
    }

    /// Name of the network interface.
    fn doca_devinfo_get_iface_name(devinfo: In<Devinfo>, iface_name: Out<c_char>, size: u32) {
        iface_name.put_text(&devinfo.get()?.device().iface, size, IFACE_NAME_SIZE)
    }

    /// Name of the RDMA device.
    fn doca_devinfo_get_ibdev_name(devinfo: In<Devinfo>, ibdev_name: Out<c_char>, size: u32) {
        ibdev_name.put_text(&devinfo.get()?.device().ibdev, size, IBDEV_NAME_SIZE)
    }

    /// Local identifier; NOT_SUPPORTED on Ethernet.
    fn doca_devinfo_get_lid(devinfo: In<Devinfo>, lid: Out<u16>) {
        let device = devinfo.get()?.device();
        lid.check()?;
        match device.link_layer {
            LinkLayer::Ethernet => Err(Code::NOT_SUPPORTED),
            LinkLayer::Infiniband => lid.put(device.lid),
        }
    }

    /// Bits per second.
    fn doca_devinfo_get_active_rate(devinfo: In<Devinfo>, active_rate: Out<u64>) {
        active_rate.put(devinfo.get()?.device().active_rate)
    }

    /// Virtual host channel adapter id.
    fn doca_devinfo_get_vhca_id(devinfo: In<Devinfo>, vhca_id: Out<u16>) {
        vhca_id.put(devinfo.get()?.device().vhca_id)
    }

    /// PF, VF or SF.
    fn doca_devinfo_get_pci_func_type(devinfo: In<Devinfo>, pci_func_type: Out<u32>) {
        pci_func_type.put(devinfo.get()?.device().func_type as u32)
    }

    /// Number of the scalable function; NOT_SUPPORTED on other functions.
    fn doca_devinfo_get_sf_index(devinfo: In<Devinfo>, sf_index: Out<u32>) {
        let device = devinfo.get()?.device();
        sf_index.check()?;
        sf_index.put(device.sf_index.ok_or(Code::NOT_SUPPORTED)?)
    }

    /// Whether emulated devices can be plugged into the host.
    fn doca_devinfo_cap_is_hotplug_manager_supported(devinfo: In<Devinfo>, is_hotplug_manager: Out<u8>) {
        is_hotplug_manager.put(u8::from(devinfo.get()?.device().hotplug_manager))
    }

    /// Whether notifications can be delayed and merged.
    fn doca_devinfo_cap_is_notification_moderation_supported(devinfo: In<Devinfo>, is_notification_moderation_supported: Out<u8>) {
        is_notification_moderation_supported.put(u8::from(devinfo.get()?.device().notification_moderation))
    }

    /// Whether cached resources can be given back early.
    fn doca_devinfo_cap_is_accelerate_resource_reclaim_supported(devinfo: In<Devinfo>, is_accelerate_resource_reclaim: Out<u8>) {
        is_accelerate_resource_reclaim.put(u8::from(devinfo.get()?.device().accelerate_resource_reclaim))
    }

    /// Whether all representors can be listed at once.
    fn doca_devinfo_rep_cap_is_filter_all_supported(devinfo: In<Devinfo>, filter_all_supported: Out<u8>) {
        put_filter(&filter_all_supported, devinfo.get()?, RepFilter::All)
    }

    /// Whether the representors of network functions can be listed.
    fn doca_devinfo_rep_cap_is_filter_net_supported(devinfo: In<Devinfo>, filter_net_supported: Out<u8>) {
        put_filter(&filter_net_supported, devinfo.get()?, RepFilter::Net)
    }

    /// Whether the representors of emulated devices can be listed.
    fn doca_devinfo_rep_cap_is_filter_emulated_supported(devinfo: In<Devinfo>, filter_emulated_supported: Out<u8>) {
        put_filter(&filter_emulated_supported, devinfo.get()?, RepFilter::Emulated)
    }
}

entry! {
    /// Vendor unique identifier of the represented function.
    fn doca_devinfo_rep_get_vuid(devinfo_rep: In<DevinfoRep>, rep_vuid: Out<c_char>, size: u32) {
        rep_vuid.put_text(&devinfo_rep.get()?.representor().vuid, size, VUID_SIZE)
    }

    /// Full PCI address of the represented function, 13 bytes.
    fn doca_devinfo_rep_get_pci_addr_str(devinfo_rep: In<DevinfoRep>, pci_addr_str: Out<c_char>) {
        pci_addr_str.put_text(&devinfo_rep.get()?.representor().pci.to_string(), PCI_ADDR_SIZE, PCI_ADDR_SIZE)
    }

    /// PF, VF or SF.
    fn doca_devinfo_rep_get_pci_func_type(devinfo_rep: In<DevinfoRep>, pci_func_type: Out<u32>) {
        pci_func_type.put(devinfo_rep.get()?.representor().func_type as u32)
    }

    /// Whether the represented function was plugged by software.
    fn doca_devinfo_rep_get_is_hotplug(devinfo_rep: In<DevinfoRep>, is_hotplug: Out<u8>) {
        is_hotplug.put(u8::from(devinfo_rep.get()?.representor().hotplug))
    }

    /// Name of the representor's interface on this side.
    fn doca_devinfo_rep_get_iface_name(devinfo_rep: In<DevinfoRep>, iface_name: Out<c_char>, size: u32) {
        iface_name.put_text(&devinfo_rep.get()?.representor().iface, size, IFACE_NAME_SIZE)
    }

    /// Virtual host channel adapter id of the represented function.
    fn doca_devinfo_rep_get_vhca_id(devinfo_rep: In<DevinfoRep>, vhca_id: Out<u16>) {
        vhca_id.put(devinfo_rep.get()?.representor().vhca_id)
    }

    /// Compares the represented function's PCI address with a text.
    fn doca_devinfo_rep_is_equal_pci_addr(devinfo_rep: In<DevinfoRep>, pci_addr_str: Text, is_equal: Out<u8>) {
        put_is_equal(&is_equal, &pci_addr_str, devinfo_rep.get()?.representor().pci)
    }
}

#[cfg(test)]
mod tests;
