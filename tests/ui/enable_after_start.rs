use doca::rdma::{Key, Rdma, SendTask};

fn enable_late(rdma: &mut Rdma) -> doca::Result<Key<SendTask>> {
    rdma.enable::<SendTask>(4)
}

fn main() {}
