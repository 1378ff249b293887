fn late(config: doca_sta::Config, engine: &doca_common::ProgressEngine) {
    let started = config.start(engine);
    let _ = config.add_subsystem("nqn.late");
    drop(started);
}

fn main() {}
