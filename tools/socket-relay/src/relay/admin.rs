//! The admin socket: one command a line, one line of JSON each.

use super::report::json;
use super::{ADMINS, Relay, TOKEN_ADMIN};
use crate::fault::Fault;
use crate::frame::{Bytes, ProbeKind};
use crate::local;
use crate::socket_file::{Bound, Claim};
use crate::transport::Transport;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest command.
const LONGEST: usize = 256;
/// Clients at a time.
const MOST: usize = 16;
/// How long a probe may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What can be asked, whether it changes anything, and what it does.
pub(crate) const COMMANDS: &[(&str, bool, &str)] = &[
    ("status", false, "role, versions, session, limits, listener, last error"),
    ("streams", false, "each connection: both directions, bytes, credit, ring, since when stalled"),
    ("metrics", false, "counters since the start"),
    ("probe", false, "whether the other relay answers, and what it has moved"),
    ("probe-app", false, "the same, and whether it reaches its application (makes one empty connection)"),
    ("loglevel N", true, "how much is logged: 10 (nothing) to 70 (all)"),
    ("admit", true, "--hold: lets the other clients in"),
    ("drain", true, "takes no new clients, serves the others to their end, then exits; again: at once"),
    ("help", false, "this list"),
];

#[derive(Debug)]
pub(super) struct Admin {
    bound: Bound,
    clients: HashMap<u64, Client>,
    next: u64,
    /// Probes on their way: number, who asked, until when.
    probes: Vec<(u64, u64, Instant)>,
    /// Held as long as the socket.
    _claim: Claim,
}

#[derive(Debug)]
struct Client {
    socket: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    ended: bool,
}

impl Admin {
    pub(super) fn new(path: &Path, poller: &Epoll) -> Result<Self, Fault> {
        let claim = Claim::new(path)?;
        let bound = claim.bind(0o600, None, 16)?;
        let level = EpollEvent::new(EpollFlags::EPOLLIN, TOKEN_ADMIN);
        poller
            .add(&bound.listener, level)
            .map_err(|e| Fault::internal(format!("cannot watch the admin socket: {e}")))?;
        Ok(Admin { bound, clients: HashMap::new(), next: ADMINS, probes: Vec::new(), _claim: claim })
    }

    /// Something came in: a client, or a line.
    pub(super) fn wake(&mut self, token: u64, poller: &Epoll) {
        if token == TOKEN_ADMIN {
            while let Ok(socket) = local::accept(&self.bound.listener) {
                let edges = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
                let watched = self.clients.len() < MOST
                    && poller.add(&socket, EpollEvent::new(edges, self.next)).is_ok();
                if watched {
                    let client = Client { socket, input: Vec::new(), output: Vec::new(), ended: false };
                    self.clients.insert(self.next, client);
                    self.next += 1;
                }
            }
            return;
        }
        let Some(client) = self.clients.get_mut(&token) else { return };
        let mut bytes = [0; LONGEST];
        loop {
            match local::read(&client.socket, &mut bytes) {
                Ok(0) => client.ended = true,
                Ok(count) if client.input.len() + count <= LONGEST => {
                    client.input.extend_from_slice(&bytes[..count]);
                    continue;
                }
                Err(Errno::EAGAIN) => {}
                // Too much, or gone.
                _ => {
                    client.ended = true;
                    client.input.clear();
                }
            }
            break;
        }
    }

    fn take_line(&mut self) -> Option<(u64, String)> {
        self.clients.iter_mut().find_map(|(token, client)| {
            let end = client.input.iter().position(|byte| *byte == b'\n')?;
            let line = String::from_utf8_lossy(&client.input[..end]).trim().to_owned();
            client.input.drain(..=end);
            Some((*token, line))
        })
    }

    fn say(&mut self, token: u64, text: &str) {
        if let Some(client) = self.clients.get_mut(&token) {
            client.output.extend_from_slice(text.as_bytes());
            client.output.push(b'\n');
        }
    }

    /// The other relay has answered.
    pub(super) fn probed(&mut self, nonce: u64, errno: u32, theirs: Bytes, ours: Bytes) {
        let Some(at) = self.probes.iter().position(|(number, ..)| *number == nonce) else { return };
        let (_, token, _) = self.probes.remove(at);
        let name = match errno {
            0 => None,
            code => Some(Errno::from_raw(i32::try_from(code).unwrap_or(0)).to_string()),
        };
        let answer = serde_json::json!({
            "ok": errno == 0, "application_error": name, "ours": ours, "theirs": theirs,
        });
        self.say(token, &answer.to_string());
    }

    /// The session is lost, and with it all probes.
    pub(super) fn lost(&mut self) {
        self.give_up(|_| true, "session lost");
    }

    fn give_up(&mut self, which: impl Fn(Instant) -> bool, why: &str) {
        let probes = std::mem::take(&mut self.probes);
        let (over, left) = probes.into_iter().partition(|(.., until)| which(*until));
        self.probes = left;
        for (_, token, _) in over {
            self.say(token, &failure(why));
        }
    }

    fn flush(&mut self) {
        let waits: Vec<u64> = self.probes.iter().map(|(_, token, _)| *token).collect();
        self.clients.retain(|token, client| {
            while !client.output.is_empty() {
                match local::write_two(&client.socket, &client.output, &[]) {
                    Ok(count) => drop(client.output.drain(..count)),
                    Err(Errno::EAGAIN) => break,
                    Err(_) => return false,
                }
            }
            !client.ended || !client.output.is_empty() || waits.contains(token)
        });
    }
}

fn failure(why: &str) -> String {
    serde_json::json!({ "ok": false, "error": why }).to_string()
}

impl<T: Transport> Relay<T> {
    pub(super) fn turn_admin(&mut self, now: Instant) {
        while let Some((token, line)) = self.admin.as_mut().and_then(Admin::take_line) {
            let answer = self.command(token, &line, now);
            if let (Some(admin), Some(answer)) = (&mut self.admin, answer) {
                admin.say(token, &answer);
            }
        }
        if let Some(admin) = &mut self.admin {
            admin.give_up(|until| now >= until, "the other relay did not answer in time");
            admin.flush();
        }
    }

    fn command(&mut self, token: u64, line: &str, now: Instant) -> Option<String> {
        let done = || Some(serde_json::json!({ "ok": true }).to_string());
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["status"] => Some(json(&self.status(now))),
            ["streams"] => Some(json(&self.mux.as_ref().map_or_else(Vec::new, |mux| mux.streams(now)))),
            ["metrics"] => Some(json(&self.metrics())),
            ["probe"] => self.ask(token, ProbeKind::Relay, now),
            ["probe-app"] => self.ask(token, ProbeKind::Application, now),
            ["loglevel", level] => match level.parse().ok().and_then(crate::level_filter) {
                Some(filter) => {
                    log::set_max_level(filter);
                    done()
                }
                None => Some(failure("loglevel needs one of 10, 20, 30, 40, 50, 60, 70")),
            },
            ["admit"] => {
                log::info!(target: crate::LOG, "the other clients are let in");
                self.front.admitted = true;
                self.front.ready = true;
                done()
            }
            ["drain"] => {
                self.handle().drain();
                done()
            }
            ["help"] => {
                let list = COMMANDS.iter().map(|(name, changes, what)| {
                    let class = if *changes { "changes state" } else { "reads only" };
                    serde_json::json!({ "command": name, "class": class, "what": what })
                });
                Some(serde_json::Value::from_iter(list).to_string())
            }
            _ => Some(failure("unknown command; `help` lists them")),
        }
    }

    fn ask(&mut self, token: u64, kind: ProbeKind, now: Instant) -> Option<String> {
        let Some(nonce) = self.probe(kind) else {
            let why = self.link.last_error.clone().unwrap_or_else(|| "there is no session yet".to_owned());
            return Some(failure(&why));
        };
        if let Some(admin) = &mut self.admin {
            admin.probes.push((nonce, token, now + PATIENCE));
        }
        None
    }
}
