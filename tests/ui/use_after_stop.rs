use doca::rdma::Rdma;

fn export_late(rdma: Rdma) -> doca::Result<()> {
    rdma.stop().wait()?;
    rdma.export()?;
    Ok(())
}

fn main() {}
