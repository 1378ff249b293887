use doca::ProgressEngine;
use doca::comch::{Client, Config};

fn set_late(config: Config<Client>, engine: &ProgressEngine) -> doca::Result<()> {
    let client = config.start(engine)?.running()?;
    client.set_max_msg_size(100)
}

fn main() {}
