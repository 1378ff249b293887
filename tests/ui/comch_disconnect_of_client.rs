use doca::comch::{Client, Connection};

fn hang_up(client: &Client, connection: &Connection) -> doca::Result<()> {
    client.disconnect(connection.id())
}

fn main() {}
