//! What the examples share: the command line of NVIDIA's samples, their files, and the ways in which they meet.

mod meet;

pub use meet::{Meeting, Peer, to_receiver, to_receivers, to_requester, to_responder, to_sender, to_senders};

use doca::rdma::{Address, Config, Connection, Decision, Rdma, Starting, TransportType};
use doca::{Access, Descriptor, Device, caps::Capability};
use std::fs::{self, File};
use std::io::{self, Read, Write};

/// What an example returns.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Bytes of each message.
pub const MESSAGE: usize = 256;

/// The number that goes with messages and writes that have one.
pub const IMMEDIATE: u32 = 0xABCD;

/// The command line.
pub struct Options {
    pub device: String,
    pub local: String,
    pub remote: String,
    pub resource: String,
    pub gid: Option<u32>,
    pub transport: TransportType,
    pub use_cm: bool,
    pub port: u16,
    pub server: Option<String>,
    pub server_type: String,
    pub connections: u16,
    pub text: String,
}

/// Option with one dash and with two, whether it takes a value, and what it means.
const FLAGS: &[(&str, &str, bool, &str)] = &[
    ("-d", "--device", true, "RDMA device, as in mlx5_0 (must be given)"),
    ("-ld", "--local-descriptor-path", true, "file for our connection descriptor"),
    ("-re", "--remote-descriptor-path", true, "file with the peer's connection descriptor"),
    ("-m", "--remote-resource-descriptor-path", true, "file for descriptors of memory"),
    ("-g", "--gid-index", true, "index of the GID"),
    ("-tt", "--transport-type", true, "RC or DC"),
    ("-cm", "--use-rdma-cm", false, "connect by RDMA CM instead of files"),
    ("-lp", "--listen-port", true, "port of RDMA CM"),
    ("-sa", "--server-addr", true, "address of the server; without it, be the server"),
    ("-sat", "--server-addr-type", true, "ipv4, ipv6 or gid"),
    ("-nc", "--num-connections", true, "connections, 8 at most"),
    ("-s", "--send-string", true, "what to send"),
    ("-r", "--read-string", true, "what the requester can read"),
    ("-w", "--write-string", true, "what to write"),
    ("-h", "--help", false, "this text"),
];

impl Options {
    /// Reads the arguments of the process.
    pub fn parse() -> Outcome<Self> {
        let mut options = Options {
            device: String::new(),
            local: "/tmp/local_connection_desc_path.txt".into(),
            remote: "/tmp/remote_connection_desc_path.txt".into(),
            resource: "/tmp/remote_resource_desc_path.txt".into(),
            gid: None,
            transport: TransportType::RC,
            use_cm: false,
            port: 13579,
            server: None,
            server_type: "ipv4".into(),
            connections: 1,
            text: "Hi DOCA RDMA!".into(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ => (argument, None),
            };
            let flag = FLAGS.iter().find(|(short, long, ..)| name == *short || name == *long);
            let Some((short, _, valued, _)) = flag else {
                return Err(format!("{name}: no such option").into());
            };
            let value = match (valued, inline) {
                (false, None) => String::new(),
                (false, Some(_)) => return Err(format!("{name} takes no value").into()),
                (true, Some(value)) => value,
                (true, None) => arguments.next().ok_or(format!("{name} needs a value"))?,
            };
            options.set(short, value)?;
        }
        options.check()?;
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: String) -> Outcome<()> {
        let number = |what: &str| value.parse::<u32>().map_err(|_| format!("{flag}: {value:?} is no {what}"));
        match flag {
            "-d" => self.device = value,
            "-ld" => self.local = value,
            "-re" => self.remote = value,
            "-m" => self.resource = value,
            "-g" => self.gid = Some(number("index")?),
            "-tt" if value.eq_ignore_ascii_case("rc") => self.transport = TransportType::RC,
            "-tt" if value.eq_ignore_ascii_case("dc") => self.transport = TransportType::DC,
            "-tt" => return Err(format!("-tt: {value:?} is neither RC nor DC").into()),
            "-cm" => self.use_cm = true,
            "-lp" => self.port = u16::try_from(number("port")?)?,
            "-sa" => self.server = Some(value),
            "-sat" => self.server_type = value.to_ascii_lowercase(),
            "-nc" => self.connections = u16::try_from(number("number")?)?,
            "-s" | "-r" | "-w" => self.text = value,
            _ => {
                for (short, long, _, meaning) in FLAGS {
                    println!("  {short:4} {long:34} {meaning}");
                }
                std::process::exit(0);
            }
        }
        Ok(())
    }

    fn check(&self) -> Outcome<()> {
        if self.device.is_empty() {
            return Err("-d is missing: name the RDMA device".into());
        }
        if self.use_cm && self.transport == TransportType::DC {
            return Err("DC needs descriptor files: leave -cm out".into());
        }
        if self.text.len() >= MESSAGE {
            return Err(format!("a text of {} bytes, {} at most", self.text.len(), MESSAGE - 1).into());
        }
        if !(1..=8).contains(&self.connections) {
            return Err(format!("-nc: {}, 1 to 8 are possible", self.connections).into());
        }
        if self.connections > 1 && (self.transport == TransportType::DC || self.server.is_some()) {
            return Err("-nc: DC, and clients of RDMA CM, have one connection".into());
        }
        Ok(())
    }

    /// Opens the device that can do all this, and makes an idle context with the options. Peers may do what `access`
    /// says.
    pub fn configure(&self, capabilities: &[Capability], access: Access) -> Outcome<(Device, Config)> {
        let named = Device::find().called(&self.device);
        let device = capabilities.iter().fold(named, |find, &capability| find.with(capability)).open()?;
        let mut config = Rdma::configure(&device)?;
        config.set_permissions(access)?;
        if let Some(index) = self.gid {
            config.set_gid_index(index)?;
        }
        config.set_max_num_connections(self.connections)?;
        config.set_transport_type(self.transport)?;
        Ok((device, config))
    }

    fn address(&self, server: &str) -> Outcome<Address> {
        Ok(match self.server_type.as_str() {
            "gid" => Address::parse_gid(server, self.port)?,
            "ip4" | "ipv4" | "ip6" | "ipv6" => Address::parse_ip(server, self.port)?,
            other => return Err(format!("-sat: {other:?} is neither ipv4, ipv6 nor gid").into()),
        })
    }

    /// Connects by RDMA CM, as client or as server.
    pub fn connect_by_cm(&self, starting: &Starting) -> Outcome<Connection> {
        self.connect_all_by_cm(starting)?.pop().ok_or_else(|| "no connection".into())
    }

    /// Connects by RDMA CM: once as client, or as server with as many as wanted.
    pub fn connect_all_by_cm(&self, starting: &Starting) -> Outcome<Vec<Connection>> {
        if let Some(server) = &self.server {
            println!("Client: connecting to {server}, port {}", self.port);
            return Ok(vec![starting.connect_addr(self.address(server)?)?.wait()?]);
        }
        let wanted = usize::from(self.connections);
        let listener = starting.listen(self.port, move |request| {
            if request.connections() < wanted { Decision::accept() } else { Decision::reject() }
        })?;
        println!("Server: listening on port {}", self.port);
        (0..wanted).map(|_| Ok(listener.wait()?)).collect()
    }

    /// The file of one of several connections.
    pub fn numbered(&self, path: &str, index: u16) -> String {
        if self.connections == 1 { path.to_owned() } else { format!("{path}-{index:04}") }
    }
}

/// Runs an example and removes the files that it may have written or read.
pub fn run(example: impl FnOnce(&Options) -> Outcome<()>) -> std::process::ExitCode {
    let result = Options::parse().and_then(|options| {
        let result = example(&options);
        for path in [&options.local, &options.remote, &options.resource] {
            (0..options.connections).for_each(|index| drop(fs::remove_file(options.numbered(path, index))));
        }
        result
    });
    match result {
        Ok(()) => {
            println!("Sample finished successfully");
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            println!("Sample finished with errors");
            std::process::ExitCode::FAILURE
        }
    }
}

/// Writes a descriptor to a file that must not exist yet: an old one would connect to nobody.
pub fn write(path: &str, descriptor: &Descriptor) -> Outcome<()> {
    let mut file = File::create_new(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(file.write_all(descriptor.as_bytes())?)
}

/// Reads a descriptor.
pub fn read(path: &str) -> Outcome<Descriptor> {
    Ok(Descriptor::from(fs::read(path).map_err(|error| format!("{path}: {error}"))?))
}

/// The text in a message, which ends with a zero.
pub fn text(message: &[u8]) -> Outcome<String> {
    let end = message.iter().position(|&byte| byte == 0);
    let end = end.ok_or(format!("the message has no end within {} bytes", message.len()))?;
    Ok(String::from_utf8_lossy(&message[..end]).into_owned())
}

/// Asks for something, and waits until Enter is pressed.
pub fn prompt(text: &str) -> Outcome<()> {
    println!("{text}, then press Enter");
    let mut byte = [0];
    while io::stdin().read(&mut byte)? == 1 {
        if matches!(byte[0], b'\n' | b'\r') {
            return Ok(());
        }
    }
    Err("standard input was closed before Enter was pressed".into())
}
