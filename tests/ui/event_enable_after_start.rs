use doca::AsyncEvent;
use doca::event::{Key, WaitEqualTask};

fn enable_late(event: &mut AsyncEvent) -> doca::Result<Key<WaitEqualTask>> {
    event.enable::<WaitEqualTask>(1)
}

fn main() {}
