//! What a target tells DOCA and initiators of its disks and subsystems.

use crate::disk::{Disk, DiskError};
use crate::model::{Capacity, Model, NamespaceInfo, SubsystemInfo};
use crate::target::{Failure, Options, SubsystemOptions};
use doca_sta::{BackEndId, Config, Namespace, NamespaceId};
use nvme_wire::Nqn;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Refuses what would start, but serve nobody, or tell hosts something else.
pub(crate) fn check_options(options: &Options) -> Result<(), Failure> {
    let printable = |text: &str| text.len() <= 20 && text.bytes().all(|byte| (0x20..0x7F).contains(&byte));
    if options.threads == 0 {
        return Err(DiskError::from("a target needs a thread that serves connections").into());
    }
    if options.queue_entries < 2 {
        let text = format!("queues of {} entries: 2 is the least", options.queue_entries);
        return Err(DiskError::from(text).into());
    }
    if let Some(own) = options.subsystems.iter().find(|own| !printable(&own.serial)) {
        let text =
            format!("{}: the serial number {:?} is not 20 printable characters at most", own.nqn, own.serial);
        return Err(DiskError::from(text).into());
    }
    if options.subsystems.iter().any(|own| own.nqn == Nqn::DISCOVERY) {
        return Err(
            DiskError::from(format!("{}: discovery is no subsystem for disks", Nqn::DISCOVERY)).into()
        );
    }
    for host in options.subsystems.iter().flat_map(|own| own.hosts.iter().flatten()) {
        Nqn::new(host).map_err(DiskError::from)?;
    }
    Ok(())
}

/// A namespace that is served.
pub(crate) struct Served {
    pub(crate) subsystem: usize,
    pub(crate) nsid: u32,
    pub(crate) id: NamespaceId,
}

/// Back ends, and what is on their disks.
pub(crate) type Lent = (Vec<BackEndId>, Vec<BTreeMap<u32, NamespaceInfo>>);

/// Lends a queue of each disk, and asks what is on it.
pub(crate) fn lend(config: &mut Config, disks: &mut [Box<dyn Disk>], entries: u32) -> Result<Lent, Failure> {
    let (mut back_ends, mut infos) = (Vec::new(), Vec::new());
    for disk in disks {
        infos.push(disk.namespaces()?.into_iter().collect());
        back_ends.push(config.add_back_end(vec![disk.lend(entries)?])?);
    }
    Ok((back_ends, infos))
}

/// Subsystems for initiators and for DOCA, and their namespaces.
pub(crate) type Described = ((Model, Vec<doca_sta::SubsystemId>), Vec<Served>);

/// Describes the subsystems to DOCA and to initiators.
pub(crate) fn describe(
    config: &mut Config,
    subsystems: &[SubsystemOptions],
    back_ends: &[BackEndId],
    infos: &[BTreeMap<u32, NamespaceInfo>],
    listen: &[SocketAddr],
    capacity: Capacity,
) -> Result<Described, Failure> {
    let (mut model, mut ids, mut served) = (Vec::new(), Vec::new(), Vec::new());
    for (index, options) in subsystems.iter().enumerate() {
        let nqn = Nqn::new(&options.nqn).map_err(DiskError::from)?;
        let id = config.add_subsystem(&options.nqn)?;
        let mut namespaces = BTreeMap::new();
        for own in &options.namespaces {
            let disk = infos
                .get(own.disk)
                .ok_or_else(|| DiskError::from(format!("there is no disk {}", own.disk)))?;
            let info = disk.get(&own.disk_nsid).ok_or_else(|| {
                DiskError::from(format!("disk {} has no namespace {}", own.disk, own.disk_nsid))
            })?;
            let namespace = Namespace {
                subsystem: id,
                nsid: own.nsid,
                block_size: info.block_size,
                back_end: back_ends[own.disk],
                disk_nsid: own.disk_nsid,
            };
            served.push(Served { subsystem: index, nsid: own.nsid, id: config.add_namespace(namespace)? });
            namespaces.insert(own.nsid, info.clone());
        }
        model.push(SubsystemInfo {
            nqn,
            serial: options.serial.clone(),
            model: "DOCA STA target".to_owned(),
            hosts: options.hosts.clone(),
            namespaces,
        });
        ids.push(id);
    }
    Ok(((Model { subsystems: model, addresses: listen.to_vec(), capacity }, ids), served))
}
