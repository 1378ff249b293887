use doca::rdma::Rdma;

fn stop_elsewhere(rdma: Rdma) {
    std::thread::spawn(move || drop(rdma));
}

fn main() {}
