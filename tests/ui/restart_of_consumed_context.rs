use doca::ProgressEngine;
use doca::rdma::Config;

fn start_twice(config: Config, engine: &ProgressEngine) -> doca::Result<()> {
    let _first = config.start(engine)?;
    let _second = config.start(engine)?;
    Ok(())
}

fn main() {}
