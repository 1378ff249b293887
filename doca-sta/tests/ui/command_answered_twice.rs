fn twice(command: doca_sta::Command) {
    let _ = command.respond([0; 16]);
    let _ = command.respond([0; 16]);
}

fn main() {}
