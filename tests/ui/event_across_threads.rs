use doca::AsyncEvent;

fn stop_elsewhere(event: AsyncEvent) {
    std::thread::spawn(move || drop(event));
}

fn main() {}
