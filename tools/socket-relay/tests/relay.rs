//! Two relays, one application, clients: what each of them sees.

mod support;

use socket_relay::mux::Role;
use socket_relay::relay::Outcome;
use socket_relay::settings::{ProbeApp, Settings};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use support::pair::{connect, echo, gone, pattern};
use support::pipe::Running;

const SOON: Duration = Duration::from_secs(20);

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn relay(&self, role: Role, change: impl FnOnce(&mut Settings)) -> Running {
        let name = if role == Role::Host { "client.sock" } else { "server.sock" };
        let mut settings = Settings::new(self.path(name));
        // An empty connection would be the first that the application sees.
        settings.probe_app = ProbeApp::Off;
        change(&mut settings);
        Running::start(role, settings, &self.path("link"))
    }

    fn pair(&self) -> [Running; 2] {
        [self.relay(Role::Dpu, |_| {}), self.relay(Role::Host, |_| {})]
    }

    fn listener(&self) -> UnixListener {
        UnixListener::bind(self.path("server.sock")).unwrap()
    }

    /// Connects as soon as there is somebody.
    fn client(&self) -> UnixStream {
        connect(&self.path("client.sock"))
    }
}

#[test]
fn bytes_come_back_in_both_directions_at_once() {
    let place = Place::new();
    echo(place.listener());
    let _relays = place.pair();
    let clients: Vec<_> = (0..8)
        .map(|seed| {
            let mut writer = place.client();
            let mut reader = writer.try_clone().unwrap();
            thread::spawn(move || {
                let sent = pattern(seed, 3_000_000 + seed as usize);
                let copy = sent.clone();
                let write = thread::spawn(move || {
                    writer.write_all(&copy).unwrap();
                    writer.shutdown(Shutdown::Write).unwrap();
                });
                let mut got = Vec::new();
                reader.read_to_end(&mut got).unwrap();
                write.join().unwrap();
                assert!(got == sent, "client {seed}: {} of {} bytes", got.len(), sent.len());
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
}

#[test]
fn either_end_may_close_its_direction_first() {
    let place = Place::new();
    let listener = place.listener();
    let _relays = place.pair();
    // The client first: the answer comes after its end.
    let mut client = place.client();
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let mut question = String::new();
    server.read_to_string(&mut question).unwrap();
    assert_eq!(question, "question");
    let answer = pattern(1, 1 << 20);
    let copy = answer.clone();
    let write = thread::spawn(move || server.write_all(&copy).unwrap());
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    write.join().unwrap();
    assert!(got == answer);
    // The server first.
    let mut client = place.client();
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(b"greeting").unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    let mut greeting = String::new();
    client.read_to_string(&mut greeting).unwrap();
    assert_eq!(greeting, "greeting");
    let copy = answer.clone();
    let write = thread::spawn(move || client.write_all(&copy).unwrap());
    got.clear();
    server.read_to_end(&mut got).unwrap();
    write.join().unwrap();
    assert!(got == answer);
}

#[test]
fn what_a_client_sent_before_it_went_arrives() {
    let place = Place::new();
    let listener = place.listener();
    let _relays = place.pair();
    for len in [0, 1, 100_000] {
        let sent = pattern(len as u64, len);
        let mut client = place.client();
        let copy = sent.clone();
        let write = thread::spawn(move || client.write_all(&copy).unwrap());
        let (mut server, _) = listener.accept().unwrap();
        let mut got = Vec::new();
        server.read_to_end(&mut got).unwrap();
        write.join().unwrap();
        assert!(got == sent);
        // It is told that nobody listens any more.
        let until = Instant::now() + SOON;
        while server.write_all(b"x").is_ok() {
            assert!(Instant::now() < until);
        }
    }
}

#[test]
fn a_server_that_goes_ends_its_clients() {
    let place = Place::new();
    let listener = place.listener();
    let _relays = place.pair();
    let mut client = place.client();
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(b"last words").unwrap();
    drop(server);
    let mut words = String::new();
    client.read_to_string(&mut words).unwrap();
    assert_eq!(words, "last words");
    let until = Instant::now() + SOON;
    let error = loop {
        match client.write_all(b"x") {
            Ok(()) => assert!(Instant::now() < until),
            Err(error) => break error,
        }
    };
    // The second, where bytes were on their way that nobody will read.
    assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
}

#[test]
fn a_refusal_at_the_far_end_is_an_end_here_and_heals() {
    let place = Place::new();
    let _relays = place.pair();
    let mut client = place.client();
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert!(got.is_empty());
    echo(place.listener());
    let mut client = place.client();
    client.write_all(b"again").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"again");
}

#[test]
fn a_lost_session_ends_all_streams_and_the_socket_and_comes_back() {
    let place = Place::new();
    echo(place.listener());
    let dpu = place.relay(Role::Dpu, |_| {});
    let _host = place.relay(Role::Host, |_| {});
    let mut client = place.client();
    client.write_all(b"x").unwrap();
    client.read_exact(&mut [0]).unwrap();
    dpu.handle.drain();
    assert!(matches!(dpu.drain(), Ok(Outcome::Cut(1))));
    let mut rest = Vec::<u8>::new();
    _ = client.read_to_end(&mut rest);
    assert!(rest.is_empty());
    gone(&place.path("client.sock"));
    let _dpu = place.relay(Role::Dpu, |_| {});
    let mut client = place.client();
    client.write_all(b"y").unwrap();
    client.read_exact(&mut [0]).unwrap();
}

#[test]
fn a_drain_serves_those_who_are_there_and_nobody_else() {
    let place = Place::new();
    echo(place.listener());
    let _dpu = place.relay(Role::Dpu, |_| {});
    let host = place.relay(Role::Host, |_| {});
    let mut client = place.client();
    client.write_all(b"a").unwrap();
    client.read_exact(&mut [0]).unwrap();
    host.handle.drain();
    gone(&place.path("client.sock"));
    let sent = pattern(5, 500_000);
    let copy = sent.clone();
    let mut writer = client.try_clone().unwrap();
    let write = thread::spawn(move || {
        writer.write_all(&copy).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    write.join().unwrap();
    assert!(got == sent);
    let mut host = host;
    assert_eq!(host.finish(), Ok(Outcome::Drained));
}

#[test]
fn strict_as_nvidia_an_end_of_the_client_ends_both_directions() {
    let place = Place::new();
    let listener = place.listener();
    let _dpu = place.relay(Role::Dpu, |_| {});
    let _host = place.relay(Role::Host, |settings| settings.strict_nvidia = true);
    let mut client = place.client();
    client.write_all(b"question").unwrap();
    let (mut server, _) = listener.accept().unwrap();
    // Only the host's side ends a connection.
    let mut other = place.client();
    let (second, _) = listener.accept().unwrap();
    second.shutdown(Shutdown::Write).unwrap();
    other.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert_eq!(other.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    client.shutdown(Shutdown::Write).unwrap();
    let mut question = String::new();
    server.read_to_string(&mut question).unwrap();
    assert_eq!(question, "question");
    let mut rest = Vec::<u8>::new();
    _ = client.read_to_end(&mut rest);
    assert!(rest.is_empty());
}

#[test]
fn too_many_clients_are_turned_away_and_there_is_room_again() {
    let place = Place::new();
    echo(place.listener());
    let _dpu = place.relay(Role::Dpu, |_| {});
    let _host = place.relay(Role::Host, |settings| settings.max_clients = 3);
    let works =
        |client: &mut UnixStream| client.write_all(b"x").is_ok() && client.read_exact(&mut [0]).is_ok();
    let mut clients: Vec<_> = (0..3).map(|_| place.client()).collect();
    assert!(clients.iter_mut().all(works));
    assert!(!works(&mut place.client()));
    assert!(clients.iter_mut().all(works));
    clients.pop();
    let until = Instant::now() + SOON;
    while !works(&mut place.client()) {
        assert!(Instant::now() < until, "there is no room again");
    }
}
