//! The devices of this machine, and how one is chosen.

use crate::caps::{Capability, Snapshot, Value};
use crate::error::{Error, Kind, Refusal, Result};
use crate::raw::device::{Info, List, Open};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Describes a device that could be opened: `doca_devinfo`. Queries need no open device.
#[derive(Clone)]
pub struct DeviceInfo {
    pub(crate) info: Info,
}

/// An open device: `doca_dev`. Clones share it; it is closed when nothing uses it any more.
#[derive(Clone)]
pub struct Device {
    pub(crate) open: Arc<Open>,
}

impl DeviceInfo {
    /// All devices that DOCA sees: `doca_devinfo_create_list`. None is an empty list.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND` if the list of RDMA devices cannot be read, `NO_MEMORY`, [`Refusal::Version`].
    #[doc(alias = "doca_devinfo_create_list")]
    pub fn list() -> Result<Vec<DeviceInfo>> {
        let list = Arc::new(List::new()?);
        Ok((0..list.len()).map(|index| DeviceInfo { info: Info::Listed(list.clone(), index) }).collect())
    }

    /// Opens the device: `doca_dev_open`.
    ///
    /// # Errors
    ///
    /// `NO_MEMORY`, `NOT_CONNECTED` if it cannot be opened, `INITIALIZATION` if too many are open.
    #[doc(alias = "doca_dev_open")]
    pub fn open(&self) -> Result<Device> {
        self.info.open().map(|open| Device { open })
    }

    /// Address on the PCI bus, as in `0000:03:00.0`: `doca_devinfo_get_pci_addr_str`.
    ///
    /// # Errors
    ///
    /// `OPERATING_SYSTEM`
    pub fn pci_address(&self) -> Result<String> {
        self.info.pci_address()
    }

    /// Name of the RDMA device, as in `mlx5_0`: `doca_devinfo_get_ibdev_name`.
    ///
    /// # Errors
    ///
    /// DOCA lists none that can happen here.
    pub fn ibdev_name(&self) -> Result<String> {
        self.info.ibdev_name()
    }

    /// Name of the network interface: `doca_devinfo_get_iface_name`.
    ///
    /// # Errors
    ///
    /// `OPERATING_SYSTEM`
    pub fn iface_name(&self) -> Result<String> {
        self.info.iface_name()
    }

    /// IPv4 address of the interface, if it has one: `doca_devinfo_get_ipv4_addr`.
    ///
    /// # Errors
    ///
    /// `OPERATING_SYSTEM`
    pub fn ipv4_address(&self) -> Result<Option<Ipv4Addr>> {
        absent_as_none(self.info.ipv4().map(Ipv4Addr::from))
    }

    /// IPv6 address of the interface, if it has one: `doca_devinfo_get_ipv6_addr`.
    ///
    /// # Errors
    ///
    /// `OPERATING_SYSTEM`
    pub fn ipv6_address(&self) -> Result<Option<Ipv6Addr>> {
        absent_as_none(self.info.ipv6().map(Ipv6Addr::from))
    }

    /// Ethernet address, if the port is Ethernet: `doca_devinfo_get_mac_addr`.
    ///
    /// # Errors
    ///
    /// `OPERATING_SYSTEM`
    pub fn mac_address(&self) -> Result<Option<[u8; 6]>> {
        absent_as_none(self.info.mac())
    }

    /// Local identifier, if the port is InfiniBand: `doca_devinfo_get_lid`.
    ///
    /// # Errors
    ///
    /// `DRIVER`
    pub fn lid(&self) -> Result<Option<u16>> {
        absent_as_none(self.info.lid())
    }

    /// Rate of the port in bits per second: `doca_devinfo_get_active_rate`.
    ///
    /// # Errors
    ///
    /// `DRIVER`
    pub fn active_rate(&self) -> Result<u64> {
        self.info.active_rate()
    }

    /// Identifier of the function within the adapter: `doca_devinfo_get_vhca_id`.
    ///
    /// # Errors
    ///
    /// `DRIVER`
    pub fn vhca_id(&self) -> Result<u16> {
        self.info.vhca_id()
    }

    /// Asks everything that libdoca_common can ask about a device.
    pub fn capabilities(&self) -> Snapshot {
        Snapshot::of(self, CAPABILITIES)
    }

    /// Whether `name` is this device's PCI address (with or without domain, any case), RDMA device or interface.
    pub fn is_called(&self, name: &str) -> bool {
        self.has_pci_address(name)
            || self.ibdev_name().is_ok_and(|own| own == name)
            || self.iface_name().is_ok_and(|own| own == name)
    }

    fn has_pci_address(&self, text: &str) -> bool {
        let Ok(own) = self.pci_address() else { return false };
        full_pci_address(text).eq_ignore_ascii_case(&own)
    }
}

/// A PCI address with its domain.
pub(crate) fn full_pci_address(text: &str) -> String {
    if text.len() == 7 { format!("0000:{text}") } else { text.to_owned() }
}

fn absent_as_none<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), Kind::NotFound | Kind::NotSupported) => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: Result<String>| value.unwrap_or_else(|_| "?".to_owned());
        write!(f, "{} ({}, {})", text(self.ibdev_name()), text(self.pci_address()), text(self.iface_name()))
    }
}

impl fmt::Debug for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Device {
    /// Opens the one device of this name: an RDMA device (`mlx5_0`), a PCI address (`0000:03:00.0` or `03:00.0`)
    /// or a network interface.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoDevice`] with all devices there are, [`Refusal::Ambiguous`] with the candidates, and those of
    /// [`DeviceInfo::list`] and [`DeviceInfo::open`].
    pub fn open(name: &str) -> Result<Device> {
        Device::find().called(name).open()
    }

    /// Begins a search by several properties.
    pub fn find() -> Find {
        Find::default()
    }

    /// The description of the open device: `doca_dev_as_devinfo`.
    #[doc(alias = "doca_dev_as_devinfo")]
    pub fn info(&self) -> DeviceInfo {
        DeviceInfo { info: Info::Opened(self.open.clone()) }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.info(), f)
    }
}

/// Opening the same device twice gives the same device.
impl PartialEq for Device {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.open, &other.open) || self.open.as_ptr() == other.open.as_ptr()
    }
}

impl Eq for Device {}

/// A search for exactly one device; see [`Device::find`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Find {
    names: Vec<String>,
    capabilities: Vec<Capability>,
}

impl Find {
    /// Wants the device of this name, in any spelling that [`Device::open`] takes.
    pub fn called(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// Wants a device that can do this.
    pub fn with(mut self, capability: Capability) -> Self {
        self.capabilities.push(capability);
        self
    }

    /// The candidates, in DOCA's order.
    ///
    /// # Errors
    ///
    /// Those of [`DeviceInfo::list`].
    pub fn list(&self) -> Result<Vec<DeviceInfo>> {
        Ok(DeviceInfo::list()?.into_iter().filter(|device| self.fits(device)).collect())
    }

    /// Opens the only candidate.
    ///
    /// # Errors
    ///
    /// Those of [`Device::open`].
    pub fn open(&self) -> Result<Device> {
        let candidates = self.list()?;
        match candidates.as_slice() {
            [only] => only.open(),
            [] => {
                let text = format!("sought {self}; there is {}", listed(&DeviceInfo::list()?));
                Err(Error::refused("doca_dev_open", Refusal::NoDevice).with(text))
            }
            several => {
                let text = format!("sought {self}; candidates are {}", listed(several));
                Err(Error::refused("doca_dev_open", Refusal::Ambiguous).with(text))
            }
        }
    }

    fn fits(&self, device: &DeviceInfo) -> bool {
        self.names.iter().all(|name| device.is_called(name))
            && self.capabilities.iter().all(|c| c.holds(device))
    }
}

impl fmt::Display for Find {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted: Vec<&str> =
            self.names.iter().map(String::as_str).chain(self.capabilities.iter().map(|c| c.name)).collect();
        f.write_str(&if wanted.is_empty() { "any device".to_owned() } else { wanted.join(" with ") })
    }
}

fn listed(devices: &[DeviceInfo]) -> String {
    if devices.is_empty() {
        return "no device".to_owned();
    }
    devices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

macro_rules! flag {
    ($name:literal, $call:literal, $query:ident) => {
        // A device that does not know the question cannot do it.
        Capability::new($name, $call, |device| {
            absent_as_none(device.info.$query()).map(|yes| Value::Supported(yes.unwrap_or(false)))
        })
    };
}

/// The capability queries of libdoca_common.
pub const CAPABILITIES: &[Capability] = &[
    Capability::new("common.num_completion_vectors", "doca_ctx_cap_get_num_completion_vectors", |device| {
        device.info.num_completion_vectors().map(|count| Value::Number(count.into()))
    }),
    flag!("common.hotplug_manager", "doca_devinfo_cap_is_hotplug_manager_supported", hotplug_manager),
    flag!(
        "common.notification_moderation",
        "doca_devinfo_cap_is_notification_moderation_supported",
        notification_moderation
    ),
    flag!(
        "common.resource_reclaim",
        "doca_devinfo_cap_is_accelerate_resource_reclaim_supported",
        resource_reclaim
    ),
    flag!("common.rep_filter_all", "doca_devinfo_rep_cap_is_filter_all_supported", rep_filter_all),
    flag!("common.rep_filter_net", "doca_devinfo_rep_cap_is_filter_net_supported", rep_filter_net),
    flag!(
        "common.rep_filter_emulated",
        "doca_devinfo_rep_cap_is_filter_emulated_supported",
        rep_filter_emulated
    ),
    flag!("common.mmap_export_pci", "doca_mmap_cap_is_export_pci_supported", mmap_export_pci),
    flag!("common.mmap_import_pci", "doca_mmap_cap_is_create_from_export_pci_supported", mmap_import_pci),
];
