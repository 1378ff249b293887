//! Representors: how a DPU sees the functions that the host across PCI has.
//!
//! A Comch server serves the clients of one host function, which its representor names.

use crate::device::{Device, full_pci_address};
use crate::error::{Error, Refusal, Result};
use crate::raw::representor::{Info, List, Open};
use std::fmt;
use std::sync::Arc;

/// Which representors are wanted: `enum doca_devinfo_rep_filter`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Filter {
    /// All of them.
    All,
    /// Those of network functions.
    Net,
    /// Those of devices that the DPU emulates.
    Emulated,
}

/// Describes a function of the host: `doca_devinfo_rep`.
#[derive(Clone)]
pub struct RepresentorInfo {
    pub(crate) info: Info,
    device: Device,
}

/// An open representor: `doca_dev_rep`. Clones share it; it is closed when nothing uses it any more.
#[derive(Clone)]
pub struct Representor {
    pub(crate) open: Arc<Open>,
}

impl Device {
    /// The functions of the host that this device represents: `doca_devinfo_rep_create_list`.
    ///
    /// # Errors
    ///
    /// `INVALID_VALUE` or `NOT_SUPPORTED` on the host, which has none; `NO_MEMORY`, `DRIVER`.
    #[doc(alias = "doca_devinfo_rep_create_list")]
    pub fn representors(&self, filter: Filter) -> Result<Vec<RepresentorInfo>> {
        let list = Arc::new(List::new(self, filter)?);
        let info = |index| RepresentorInfo { info: Info { list: list.clone(), index }, device: self.clone() };
        Ok((0..list.len()).map(info).collect())
    }

    /// Opens the representor of the network function with this PCI address, which is the host's: `0000:b1:00.0` or
    /// `b1:00.0`, in any case.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoDevice`] with all representors there are, and those of [`representors`](Self::representors),
    /// [`RepresentorInfo::pci_address`] and [`RepresentorInfo::open`].
    pub fn representor(&self, pci_address: &str) -> Result<Representor> {
        let all = self.representors(Filter::Net)?;
        let full = full_pci_address(pci_address);
        for info in &all {
            if info.pci_address()?.eq_ignore_ascii_case(&full) {
                return info.open();
            }
        }
        let listed: Vec<String> = all.iter().map(ToString::to_string).collect();
        let text = format!("sought {pci_address}; {self:?} represents {}", listed.join(", "));
        Err(Error::refused("doca_dev_rep_open", Refusal::NoDevice).with(text))
    }
}

impl RepresentorInfo {
    /// Opens it: `doca_dev_rep_open`.
    ///
    /// # Errors
    ///
    /// `NO_MEMORY`
    #[doc(alias = "doca_dev_rep_open")]
    pub fn open(&self) -> Result<Representor> {
        self.info.open(&self.device).map(|open| Representor { open: Arc::new(open) })
    }

    /// PCI address of the function on the host: `doca_devinfo_rep_get_pci_addr_str`.
    ///
    /// # Errors
    ///
    /// `NO_MEMORY`
    #[doc(alias = "doca_devinfo_rep_get_pci_addr_str")]
    pub fn pci_address(&self) -> Result<String> {
        self.info.pci_address()
    }

    /// Vendor unique identifier of the function: `doca_devinfo_rep_get_vuid`.
    ///
    /// # Errors
    ///
    /// DOCA's.
    #[doc(alias = "doca_devinfo_rep_get_vuid")]
    pub fn vuid(&self) -> Result<String> {
        self.info.vuid()
    }
}

impl fmt::Display for RepresentorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.pci_address().as_deref().unwrap_or("?"))
    }
}

impl fmt::Debug for RepresentorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RepresentorInfo({self} on {:?})", self.device)
    }
}

impl fmt::Debug for Representor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Representor(on {:?})", self.open.device())
    }
}
