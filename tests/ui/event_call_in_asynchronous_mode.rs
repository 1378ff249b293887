use doca::AsyncEvent;

fn call(event: &AsyncEvent) -> doca::Result<u64> {
    event.get()
}

fn main() {}
