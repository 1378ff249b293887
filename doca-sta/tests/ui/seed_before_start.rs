fn early(config: &doca_sta::Config) {
    let _ = config.io_seed();
}

fn main() {}
