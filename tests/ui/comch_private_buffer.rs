use doca::Buffer;
use doca::comch::Consumer;

fn post(consumer: &Consumer, buffer: Buffer) {
    let _ = consumer.receive(buffer);
}

fn main() {}
