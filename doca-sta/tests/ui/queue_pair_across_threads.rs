fn sent<T: Send>(_: T) {}

fn cross(qp: doca_sta::Qp, seed: doca_sta::IoSeed) {
    sent(seed);
    sent(qp);
}

fn main() {}
