use doca::ProgressEngine;

fn progress_elsewhere(engine: ProgressEngine) {
    std::thread::spawn(move || engine.progress());
}

fn main() {}
