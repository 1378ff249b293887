fn cross(io: doca_sta::Io) {
    std::thread::spawn(move || drop(io));
}

fn main() {}
