use doca::SharedMemory;

fn first_byte(window: &SharedMemory) -> doca::Result<u8> {
    let buffer = window.take(8)?;
    Ok(buffer[0])
}

fn main() {}
