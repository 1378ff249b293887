//! Contexts and devices: found, configured, started, and stopped in the end.

use super::{Inbox, Place, QUEUE, SENDS, STOP};
use crate::fault::{Class, Exit, Fault};
use crate::frame::Features;
use crate::mux::Role;
use crate::transport::LinkLimits;
use doca_comch::{Client, Config, Context, ControlPath, Left, Server, caps};
use doca_common::caps::{Capability, Value};
use doca_common::{Code, Device, DeviceInfo, Error, ProgressEngine, Representor};
use std::cell::RefCell;
use std::rc::Rc;

pub(super) fn device_fault(error: &Error, what: &str) -> Fault {
    let text = format!("{what}: {error}");
    match error.code() {
        Some(Code::NOT_PERMITTED) => Fault::new(Exit::Permission, Class::Permission, text),
        _ => Fault::new(Exit::Device, Class::Below, text),
    }
}

/// Sets sizes by what the device can.
pub(super) fn configure<C: ControlPath>(
    mut config: Config<C>,
    device: &Device,
    inbox: &Rc<RefCell<Inbox>>,
) -> Result<(Config<C>, LinkLimits, u32), Fault> {
    let mut set = || -> Result<(LinkLimits, u32), Error> {
        let info = device.info();
        let cap = |limit: Capability, most: u32| -> Result<u32, Error> {
            Ok(match limit.ask(&info)? {
                Value::Number(number) => u32::try_from(number).unwrap_or(u32::MAX).min(most),
                _ => most,
            })
        };
        let max_message = cap(caps::MAX_MSG_SIZE, u32::MAX)?;
        let recv_queue = cap(caps::MAX_RECV_QUEUE_SIZE, QUEUE)?;
        let sends = cap(caps::MAX_SEND_TASKS, SENDS)?;
        config.set_max_msg_size(max_message)?;
        config.set_recv_queue_size(recv_queue)?;
        config.set_send_tasks(sends)?;
        config.set_sends_per_connection(sends)?;
        Ok((LinkLimits { max_message, recv_queue, features: Features::default() }, sends))
    };
    let (limits, sends) = set().map_err(|e| device_fault(&e, "cannot configure Comch"))?;
    let inbox = Rc::clone(inbox);
    config.on_message(move |from, message| inbox.borrow_mut().push(from, message));
    Ok((config, limits, sends))
}

/// Refuses a name of a service that is longer than the device takes.
pub(super) fn check_name(device: &Device, service: &str) -> Result<(), Fault> {
    let limit = caps::MAX_NAME_LEN.ask(&device.info());
    let limit = limit.map_err(|e| device_fault(&e, "cannot ask how long a Comch name may be"))?;
    match limit {
        // A zero byte ends it.
        Value::Number(limit) if service.len() as u64 >= limit => {
            let most = limit.saturating_sub(1);
            let text =
                format!("--cc-name has {} bytes; this device takes names of {most} at most", service.len());
            Err(Fault::usage(text))
        }
        _ => Ok(()),
    }
}

/// The host's end, idle.
pub(super) fn client(
    device: &Device,
    place: &Place,
    inbox: &Rc<RefCell<Inbox>>,
) -> Result<(Config<Client>, LinkLimits, u32), Fault> {
    let config = Client::configure(device, &place.service)
        .map_err(|e| device_fault(&e, "cannot make a Comch client"))?;
    configure(config, device, inbox)
}

/// The first device of that address that can be this end. A function and its subfunctions have the same address.
pub(super) fn open(role: Role, place: &Place) -> Result<(Device, Option<Representor>), Fault> {
    let Place { device: address, .. } = place;
    let all = DeviceInfo::list().map_err(|e| device_fault(&e, "cannot list devices"))?;
    let (able, end, other) = match role {
        Role::Host => (caps::CLIENT, "host", "DPU"),
        Role::Dpu => (caps::SERVER, "DPU", "host"),
    };
    let mut listed = false;
    let mut there: Vec<String> = all.iter().filter_map(|info| info.pci_address().ok()).collect();
    there.sort();
    there.dedup();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    let text = format!("there is no device {address} (--pci-addr); those that are there: {there}");
    let mut fault = Fault::new(Exit::Device, Class::Below, text);
    for info in all.iter().filter(|info| info.is_called(address)) {
        if !able.holds(info) {
            fault.text = format!("device {address} cannot be the {end} end of Comch: is this the {other}?");
            continue;
        }
        let opened = info.open().map_err(|e| device_fault(&e, &format!("cannot open device {address}")));
        let Some(wanted) = place.representor.as_deref().filter(|_| role == Role::Dpu) else {
            match opened {
                Ok(device) => return Ok((device, None)),
                Err(why) => fault = why,
            }
            continue;
        };
        let found = opened.and_then(|device| match device.representor(wanted) {
            Ok(representor) => Ok((device, Some(representor))),
            // Subfunctions have the address of their function, and represent nothing.
            Err(e) if e.code() == Some(Code::NOT_SUPPORTED) && listed => Err(fault.clone()),
            Err(e) => {
                listed |= e.code() != Some(Code::NOT_SUPPORTED);
                Err(device_fault(&e, &format!("cannot open representor {wanted} (--rep-pci)")))
            }
        });
        match found {
            Ok(found) => return Ok(found),
            Err(why) => fault = why,
        }
    }
    Err(fault)
}

pub(super) fn start<C: Context>(left: &mut Left<C>, engine: &ProgressEngine) -> Result<(), Error> {
    *left = match std::mem::replace(left, Left::Consumed) {
        Left::Config(config) => match config.start(engine) {
            Ok(starting) => Left::Starting(starting),
            Err(failed) => {
                let (error, back) = failed.into_parts();
                *left = back;
                return Err(error);
            }
        },
        other => other,
    };
    Ok(())
}

pub(super) fn finish<C: Context>(left: Left<C>) -> Result<(), Error>
where
    Left<C>: Stop<C>,
{
    match left.now().stopping() {
        Some(stopping) => stopping.wait_for(STOP).map(drop).map_err(|failed| failed.into_parts().0),
        None => Ok(()),
    }
}

/// What is to be stopped of what is left.
pub(super) trait Stop<C: Context> {
    fn stopping(self) -> Option<doca_comch::Stopping<C>>;
}

impl Stop<Client> for Left<Client> {
    fn stopping(self) -> Option<doca_comch::Stopping<Client>> {
        match self {
            Left::Running(client) => Some(client.stop()),
            Left::Stopping(stopping) => Some(stopping),
            _ => None,
        }
    }
}

impl Stop<Server> for Left<Server> {
    fn stopping(self) -> Option<doca_comch::Stopping<Server>> {
        match self {
            Left::Running(server) => Some(server.stop()),
            Left::Stopping(stopping) => Some(stopping),
            _ => None,
        }
    }
}
