fn later(mut command: doca_sta::Command) {
    let data = command.data_mut();
    let _ = command.respond_with_data([0; 16]);
    data[0] = 1;
}

fn main() {}
