use doca::event::{Config, GetTask, Queue};

fn get_early(config: &mut Config) -> doca::Result<Queue<GetTask>> {
    let key = config.enable::<GetTask>(1)?;
    config.queue(key)
}

fn main() {}
