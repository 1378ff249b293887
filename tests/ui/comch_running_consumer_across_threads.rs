use doca::comch::{Consumer, Seed};

fn spread(seed: Seed<Consumer>, consumer: Consumer) {
    std::thread::spawn(move || drop(seed));
    std::thread::spawn(move || drop(consumer));
}

fn main() {}
