use doca::rdma::Rdma;

fn configure_late(rdma: &mut Rdma) -> doca::Result<()> {
    rdma.set_max_num_connections(4)
}

fn main() {}
