//! The machine that the simulator pretends to be: its devices on the host and on the DPU side, what they
//! can do, and how patient the network is.
//!
//! One topology holds for all processes of a run. It comes from the file that `DOCA_SIM_TOPOLOGY` names, else
//! from `topology/default.json`. `TOPOLOGY.md` describes the format. A process stands on one side of it
//! (`DOCA_SIM_SIDE`), and opens that side's devices; RDMA reaches the devices of both.

mod address;
mod check;
mod file;
mod settings;

pub use address::{Gid, Mac, PciAddr};

use crate::code::{Code, Res};
use crate::profile;
use serde::Deserialize;
use settings::{plain, settings};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

/// Environment variable that names the topology file.
pub const FILE_VARIABLE: &str = "DOCA_SIM_TOPOLOGY";
/// Environment variable that says on which side this process runs: `host` (default) or `dpu`.
pub const SIDE_VARIABLE: &str = "DOCA_SIM_SIDE";

/// All devices of the simulated machine.
#[derive(Debug)]
pub struct Topology {
    /// What the topology calls itself, for messages.
    pub name: String,
    /// How long the network waits.
    pub timeouts: Timeouts,
    /// Limits of libdoca_sta, whatever the device.
    pub sta: StaLimits,
    /// The devices of both sides, host first, in the order of the file.
    pub devices: Vec<Device>,
}

/// The side of the PCI bus that a process or a device is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The server that the card is in.
    Host,
    /// The Arm processor on the card.
    Dpu,
}

/// `enum doca_pci_func_type`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FuncType {
    /// Physical function
    Pf = 0,
    /// Virtual function
    Vf = 1,
    /// Scalable function
    Sf = 2,
}

/// What a port speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkLayer {
    /// RoCE
    Ethernet,
    /// InfiniBand
    Infiniband,
}

/// How packets that use a GID travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum GidType {
    /// Native InfiniBand
    #[serde(rename = "InfiniBand")]
    Infiniband,
    /// Ethernet frames
    #[serde(rename = "RoCE v1")]
    RoceV1,
    /// UDP
    #[serde(rename = "RoCE v2")]
    RoceV2,
}

/// A filled slot of a port's GID table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GidEntry {
    /// Slot.
    pub index: u32,
    /// The address.
    pub gid: Gid,
    /// How it travels.
    #[serde(rename = "type")]
    pub kind: GidType,
}

/// A function on the other side, as seen through a device of this side (`struct doca_devinfo_rep`).
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Representor {
    /// Vendor unique identifier.
    pub vuid: String,
    /// PCI address of the function on its own side.
    pub pci: PciAddr,
    /// What it is.
    #[serde(default = "pf")]
    pub func_type: FuncType,
    /// Name of the representor's interface on this side.
    pub iface: String,
    /// Virtual host channel adapter id.
    #[serde(default)]
    pub vhca_id: u16,
    /// Whether it was plugged by software.
    #[serde(default)]
    pub hotplug: bool,
    /// Whether it is an emulated device (filter EMULATED) rather than a network function (filter NET).
    #[serde(default)]
    pub emulated: bool,
}

fn pf() -> FuncType {
    FuncType::Pf
}

plain!(BlockSizes, PciAddr, Mac, FuncType, LinkLayer, Option<u32>, Option<Ipv4Addr>, Option<Ipv6Addr>);

settings! {
    /// How long the network waits, in milliseconds.
    #[derive(Copy)]
    pub struct Timeouts, patched by TimeoutsPatch {
        /// A send-side task to a peer that does not answer fails after this.
        transport_timeout_ms: u32 = 1000,
        /// A send to a peer without a posted receive is retried after this.
        rnr_step_ms: u32 = 100,
        /// RDMA CM gives up after this.
        cm_timeout_ms: u32 = 2000,
        /// A Comch client whom nobody takes stays STARTING for so long.
        comch_connect_ms: u32 = 200,
        /// A Comch task to a peer that has died is in flight for so long.
        comch_death_ms: u32 = 1000,
    }
}

settings! {
    /// One function: a port with its addresses and abilities (`struct doca_devinfo`).
    pub struct Device, patched by DevicePatch, given {
        /// Position in [`Topology::devices`]; the device's identity between processes.
        index: usize = 0,
        /// Whose device it is.
        side: Side = Side::Host,
        /// Name of the RDMA device, for example `mlx5_0`. Unique on its side.
        ibdev: String = String::new(),
        /// The GID table; `None` is an empty slot.
        gid_table: Vec<Option<GidEntry>> = Vec::new(),
    }
    {
        /// PCI address. Scalable functions share their parent's.
        pci: PciAddr = PciAddr { domain: 0, bus: 0, device: 0, function: 0 },
        /// Name of the network interface.
        iface: String = String::new(),
        /// Ethernet address.
        mac: Mac = Mac::default(),
        /// PF, VF or SF.
        func_type: FuncType = FuncType::Pf,
        /// Number of the scalable function; on SFs only.
        sf_index: Option<u32> = None,
        /// IPv4 address of the interface, if it has one.
        ipv4: Option<Ipv4Addr> = None,
        /// Leading bits of an IPv4 address that name its network; 0: every IPv4 address is routed to.
        ipv4_prefix: u8 = 0,
        /// IPv6 address of the interface; `null` takes the link-local one made from the MAC.
        ipv6: Option<Ipv6Addr> = None,
        /// Ethernet or InfiniBand.
        link_layer: LinkLayer = LinkLayer::Ethernet,
        /// Local identifier, on InfiniBand.
        lid: u16 = 1,
        /// Bits per second.
        active_rate: u64 = 200_000_000_000,
        /// Virtual host channel adapter id.
        vhca_id: u16 = 0,
        /// Largest path MTU, bytes.
        max_mtu: u32 = 4096,
        /// Slots of the GID table.
        gid_table_size: u32 = 16,
        /// The filled slots; `null` fills them from MAC and IPv4 address as the kernel does.
        gids: Option<Vec<GidEntry>> = None,
        /// RDMA abilities.
        rdma: RdmaCaps = RdmaCaps::default(),
        /// Abilities for messages between host and DPU.
        comch: ComchCaps = ComchCaps::default(),
        /// Storage target abilities.
        sta: StaCaps = StaCaps::default(),
        /// Memory map abilities.
        mmap: MmapCaps = MmapCaps::default(),
        /// Can plug emulated devices into the host.
        hotplug_manager: bool = false,
        /// Can delay notifications to merge them.
        notification_moderation: bool = true,
        /// Can give cached resources back early.
        accelerate_resource_reclaim: bool = true,
        /// Which representor lists can be asked for; none means that the device has no representors.
        representor_filters: RepresentorFilters = RepresentorFilters::default(),
        /// Functions of the other side that this device represents.
        representors: Vec<Representor> = Vec::new(),
    }
}

settings! {
    /// What a device can do for libdoca_rdma.
    pub struct RdmaCaps, patched by RdmaCapsPatch {
        /// `false` switches all of RDMA off.
        supported: bool = true,
        /// The kinds of tasks.
        tasks: RdmaTasks = RdmaTasks::default(),
        /// The transports.
        transports: Transports = Transports::default(),
        /// Largest send queue, entries.
        max_send_queue_size: u32 = 32768,
        /// Largest receive queue, entries.
        max_recv_queue_size: u32 = 32768,
        /// Longest chain of local buffers in a send-side task.
        max_send_buf_list_len: u32 = 30,
        /// Longest chain of buffers in a receive task.
        max_recv_buf_list_len: PerTransport = PerTransport::default(),
        /// Largest message, bytes.
        max_message_size: u32 = 0x4000_0000,
    }
}

settings! {
    /// Which transports a device has.
    pub struct Transports, patched by TransportsPatch {
        /// Reliable connected
        rc: bool = true,
        /// Dynamically connected
        dc: bool = true,
    }
}

settings! {
    /// A limit that each transport has for itself.
    pub struct PerTransport, patched by PerTransportPatch {
        /// Reliable connected
        rc: u32 = 30,
        /// Dynamically connected
        dc: u32 = 30,
    }
}

settings! {
    /// What a device can do for libdoca_comch. NVIDIA publishes hardly any numbers; these are proposed.
    pub struct ComchCaps, patched by ComchCapsPatch {
        /// `false` switches all of Comch off.
        supported: bool = true,
        /// Whether producers and consumers are there.
        fast_path: bool = true,
        /// Longest name of a server, bytes with the NUL.
        max_name_len: u32 = 120,
        /// Largest message, bytes.
        max_msg_size: u32 = 4080,
        /// Deepest receive queue, messages.
        max_recv_queue_size: u32 = 8192,
        /// Clients of one server.
        max_clients: u32 = 512,
        /// Send tasks of one server or client.
        max_send_tasks: u32 = 16384,
        /// Messages to one peer that wait for room at its side: one more is refused with AGAIN.
        max_waiting: u32 = 8192,
        /// Producers, and consumers, on one side of a connection.
        max_producers: u32 = 64,
        /// See `max_producers`.
        max_consumers: u32 = 64,
        /// Tasks of one producer or consumer.
        max_num_tasks: u32 = 4096,
        /// Largest buffer, bytes.
        max_buf_size: u32 = 0x4000_0000,
        /// Longest chain of buffers.
        max_buf_list_len: u32 = 1,
        /// Most immediate data, bytes.
        max_imm_data_len: u32 = 32,
    }
}

settings! {
    /// What a device can do for libdoca_sta. NVIDIA publishes no numbers; these are proposed.
    pub struct StaCaps, patched by StaCapsPatch {
        /// Whether the device can control a storage target.
        supported: bool = true,
        /// Execution units of all types.
        max_num_eus_available: u32 = 16,
        /// Queue pairs that one execution unit serves.
        max_num_connected_qp_per_eu: u32 = 64,
        /// Commands that one execution unit holds.
        max_io_num_per_dev: u32 = 1024,
        /// Commands in the queue of one connection.
        max_io_queue_size: u32 = 128,
        /// A disk that has not completed a command after so many milliseconds is told of.
        be_timeout_ms: u32 = 10_000,
        /// What a target needs beside its own library is there: `false` for a target without RDMA underneath.
        substrate: bool = true,
        /// The process may run code on the device.
        permitted: bool = true,
        /// The packets of queue pairs on the device are steered to its execution units.
        steering: bool = true,
    }
}

settings! {
    /// What libdoca_sta says without being asked about a device. NVIDIA publishes no numbers; these are proposed.
    pub struct StaLimits, patched by StaLimitsPatch {
        /// Devices that can be added to an instance.
        max_devs: u32 = 2,
        /// Subsystems.
        max_subsys: u32 = 16,
        /// Namespaces of a subsystem.
        max_ns_per_subs: u32 = 32,
        /// Queue pairs.
        max_qps: u32 = 512,
        /// IO contexts that an instance can be configured for.
        max_io_threads: u32 = 16,
        /// Largest command, bytes of data.
        max_io_size: u32 = 131_072,
        /// Smallest command capsule, bytes.
        min_ioccsz: u32 = 64,
        /// Largest command capsule, bytes: a command and 4 KiB of data.
        max_ioccsz: u32 = 4160,
        /// Smallest response capsule, bytes.
        min_iorcsz: u32 = 16,
        /// Largest response capsule, bytes.
        max_iorcsz: u32 = 16,
        /// Largest offset of the data in a capsule.
        max_icdoff: u32 = 0,
        /// Back ends.
        max_be: u32 = 16,
        /// Queues of a back end.
        max_qs_per_be: u32 = 1,
        /// Sizes of a namespace's blocks, bytes.
        logical_block_sizes: BlockSizes = BlockSizes(vec![512, 4096]),
    }
}

/// A list of sizes.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct BlockSizes(pub Vec<u32>);

settings! {
    /// What a device can do for memory maps.
    pub struct MmapCaps, patched by MmapCapsPatch {
        /// `doca_mmap_export_pci`
        export_pci: bool = false,
        /// `doca_mmap_create_from_export` of a PCI export
        create_from_export_pci: bool = false,
    }
}

settings! {
    /// `enum doca_devinfo_rep_filter`, as far as a device supports it.
    pub struct RepresentorFilters, patched by RepresentorFiltersPatch {
        /// Everything
        all: bool = false,
        /// Network functions
        net: bool = false,
        /// Emulated devices
        emulated: bool = false,
    }
}

impl RepresentorFilters {
    /// Whether the device has representors at all.
    pub fn any(&self) -> bool {
        self.all || self.net || self.emulated
    }
}

/// One table for the eleven kinds of RDMA tasks: variant, and the name that C functions have for it.
macro_rules! rdma_tasks {
    ($($(#[$meta:meta])* $variant:ident $name:ident;)*) => {
        /// A kind of task of libdoca_rdma.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum RdmaTask { $($(#[$meta])* $variant,)* }

        impl RdmaTask {
            /// Every kind.
            pub const ALL: &[RdmaTask] = &[$(RdmaTask::$variant,)*];

            /// The name in `doca_rdma_task_<name>_...`.
            pub const fn name(self) -> &'static str {
                match self { $(RdmaTask::$variant => stringify!($name),)* }
            }
        }

        settings! {
            /// Which kinds of tasks a device supports.
            pub struct RdmaTasks, patched by RdmaTasksPatch { $($(#[$meta])* $name: bool = true,)* }
        }

        impl RdmaTasks {
            fn has(&self, kind: RdmaTask) -> bool {
                match kind { $(RdmaTask::$variant => self.$name,)* }
            }
        }
    };
}

rdma_tasks! {
    /// Take a message.
    Receive receive;
    /// Send a message.
    Send send;
    /// Send a message with 32 bits beside it.
    SendImm send_imm;
    /// Copy from the peer's memory.
    Read read;
    /// Copy to the peer's memory.
    Write write;
    /// Copy to the peer's memory and consume a receive.
    WriteImm write_imm;
    /// Compare and swap 8 bytes of the peer's memory.
    AtomicCmpSwp atomic_cmp_swp;
    /// Add to 8 bytes of the peer's memory.
    AtomicFetchAdd atomic_fetch_add;
    /// Read the peer's sync event.
    RemoteNetSyncEventGet remote_net_sync_event_get;
    /// Set the peer's sync event.
    RemoteNetSyncEventNotifySet remote_net_sync_event_notify_set;
    /// Add to the peer's sync event.
    RemoteNetSyncEventNotifyAdd remote_net_sync_event_notify_add;
}

impl RdmaCaps {
    /// Whether tasks of this kind can be used.
    pub fn task(&self, kind: RdmaTask) -> bool {
        self.supported && self.tasks.has(kind)
    }
}

impl Device {
    /// The IPv6 address of the interface.
    pub fn ipv6_addr(&self) -> Ipv6Addr {
        self.ipv6.unwrap_or_else(|| self.mac.link_local())
    }

    /// Whether an address is this device's; IPv4 addresses are known in their IPv6-mapped form too.
    pub fn has_ip(&self, ip: IpAddr) -> bool {
        match ip {
            IpAddr::V4(v4) => self.ipv4 == Some(v4),
            IpAddr::V6(v6) => self.ipv6_addr() == v6 || self.ipv4.is_some_and(|v4| v4.to_ipv6_mapped() == v6),
        }
    }

    /// The GID in a slot, zero if the slot is empty, `None` beyond the table.
    pub fn gid(&self, index: u32) -> Option<Gid> {
        Some(self.gid_table.get(index as usize)?.map_or(Gid::ZERO, |entry| entry.gid))
    }

    /// The filled slots as the kernel fills them: link-local and IPv4-mapped, each as RoCE v1 and v2; on
    /// InfiniBand the one GID of the port.
    fn derived_gids(&self) -> Vec<GidEntry> {
        let link_local = Gid::from_ipv6(self.mac.link_local());
        if self.link_layer == LinkLayer::Infiniband {
            return vec![GidEntry { index: 0, gid: link_local, kind: GidType::Infiniband }];
        }
        let addresses = [Some(link_local), self.ipv4.map(Gid::from_ipv4)];
        let typed =
            addresses.into_iter().flatten().flat_map(|gid| [(gid, GidType::RoceV1), (gid, GidType::RoceV2)]);
        (0..).zip(typed).map(|(index, (gid, kind))| GidEntry { index, gid, kind }).collect()
    }
}

impl Topology {
    /// The devices that a process on `side` can open.
    pub fn of(&self, side: Side) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(move |device| device.side == side)
    }
}

/// The topology of this run. A file that cannot be used is logged each time and is BAD_CONFIG; so is a list of profiles.
pub fn get() -> Res<&'static Topology> {
    static LOADED: OnceLock<Result<Topology, String>> = OnceLock::new();
    logged(LOADED.get_or_init(|| {
        profile::check()?;
        let loaded = file::load(std::env::var_os(FILE_VARIABLE));
        if let Ok(topology) = &loaded {
            crate::log::debug!("topology `{}`, {} devices", topology.name, topology.devices.len());
        }
        loaded
    }))
}

/// The side this process is on. A value that is neither `host` nor `dpu` is BAD_CONFIG.
pub fn side() -> Res<Side> {
    static SIDE: OnceLock<Result<Side, String>> = OnceLock::new();
    logged(SIDE.get_or_init(|| parse_side(std::env::var_os(SIDE_VARIABLE)))).copied()
}

fn parse_side(value: Option<std::ffi::OsString>) -> Result<Side, String> {
    match value.as_deref().map(|value| value.to_string_lossy()).as_deref() {
        None | Some("" | "host") => Ok(Side::Host),
        Some("dpu") => Ok(Side::Dpu),
        Some(other) => Err(format!("{SIDE_VARIABLE} is `{other}`; it can be host or dpu")),
    }
}

fn logged<T>(loaded: &Result<T, String>) -> Res<&T> {
    loaded.as_ref().map_err(|problem| {
        crate::log::error!("{problem}");
        Code::BAD_CONFIG
    })
}

#[cfg(test)]
mod tests;
