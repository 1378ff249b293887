use doca::RemoteBuffer;

fn first_byte(buffer: &RemoteBuffer) -> u8 {
    buffer[0]
}

fn main() {}
