//! Messages, and notes about consumers, through the channels of connections.

use super::connection::{ConnState, Connection, MESSAGE, NOTE, Waiting};
use super::endpoint::Endpoint;
use super::half::{Half, Note};
use super::running::{Event, Running};
use crate::code::{Code, Res};
use crate::ctx::{Context, CtxState};
use crate::fabric::bits;
use crate::fabric::channel::{Channel, Incoming, Life};
use crate::fabric::clock;
use crate::fabric::inbox::Inbox;
use crate::fault;
use crate::log;
use crate::profile;
use crate::strict::PATTERN;
use crate::task::Task;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::Once;

/// Messages of one connection that are read before those of others.
const BURST: u32 = 32;
/// Bytes of a message that are overwritten after its callback, unless all are.
const POISONED: usize = 64;

impl Running {
    /// Hands a message over, or keeps a copy until there is room. AGAIN when too many wait.
    pub fn send(&self, endpoint: &Endpoint, task: &Task) -> Res {
        let fields = &task.fields;
        // SAFETY: set from a `struct doca_comch_connection *` of this object when the task was made; connections that are
        // over are kept for a while, and the program promised not to use older ones.
        let connection = unsafe { (fields.connection.get() as *const Connection).as_ref() };
        let connection = connection.ok_or(Code::INVALID_VALUE)?;
        let Some(connection) = self.find(connection) else {
            log::error!("{}: a message to a connection that is over", endpoint.name());
            return Err(Code::NOT_CONNECTED);
        };
        let parts = connection.parts().ok_or(Code::UNEXPECTED)?;
        let (half, channel) = (&parts.half, &parts.channel);
        let (bytes, len) = (fields.pointer.get() as *const u8, fields.first.get() as u32);
        let done = |code| self.tell(Event::Done(connection.clone(), task, code));
        if fault::will_fail(task) {
            let code = fault::failure(task).unwrap_or(Code::IO_FAILED);
            done(code);
            self.lose(&connection, Code::CONNECTION_ABORTED);
            return Ok(());
        }
        if len > channel.peer_capacity().message {
            log::error!("{}: {len} bytes are more than the peer takes", endpoint.name());
            done(Code::INVALID_VALUE);
            return Ok(());
        }
        if channel.peer_life() == Life::Closed {
            done(Code::CONNECTION_RESET);
            return Ok(());
        }
        // What was said of consumers before this message reaches the peer before it: programs count on that order.
        self.pass_notes(&connection, half);
        let mut waiting = connection.waiting.borrow_mut();
        if waiting.is_empty() && half.peer().is_alive_now() && channel.push(MESSAGE, bytes, len, true) {
            drop(waiting);
            half.call();
            connection.count_sent(len);
            done(Code::SUCCESS);
            return Ok(());
        }
        if waiting.len() >= endpoint.device().comch.max_waiting as usize {
            return Err(Code::AGAIN);
        }
        let copy = if len == 0 {
            Box::default()
        } else {
            // SAFETY: the program has lent `len` bytes to the task until it is submitted, which is now.
            unsafe { std::slice::from_raw_parts(bytes, len as usize) }.into()
        };
        waiting.push_back(Waiting::Message(task, copy, clock::now()));
        Ok(())
    }

    /// What waits goes as far as there is room.
    fn send_waiting(&self, connection: &Rc<Connection>) {
        let Some(parts) = connection.parts() else { return };
        let (half, channel) = (&parts.half, &parts.channel);
        let mut sent = false;
        loop {
            let mut waiting = connection.waiting.borrow_mut();
            let fits = match waiting.front() {
                None => false,
                Some(Waiting::Message(_, bytes, _)) => {
                    half.peer().is_alive_now()
                        && channel.push(MESSAGE, bytes.as_ptr(), bytes.len() as u32, true)
                }
                Some(Waiting::Note(note)) => {
                    let words = note.encode();
                    channel.push(NOTE, words.as_ptr().cast(), size_of_val(&words) as u32, false)
                }
            };
            if !fits {
                break;
            }
            sent = true;
            let gone = waiting.pop_front();
            drop(waiting);
            if let Some(Waiting::Message(task, bytes, _)) = gone {
                connection.count_sent(bytes.len() as u32);
                self.tell(Event::Done(connection.clone(), task, Code::SUCCESS));
            }
        }
        if sent {
            half.call();
        }
    }

    /// What producers and consumers have asked for.
    pub fn serve_fast_path(&self) {
        for link in bits::each(self.view().waiting(), 0) {
            if !bits::clear(self.view().waiting(), link) {
                continue;
            }
            let Some(connection) = self.at(link) else { continue };
            let Ok(half) = connection.half() else { continue };
            self.pass_notes(&connection, &half);
            half.exchange_credits();
        }
    }

    /// What the consumers of a connection want told.
    fn pass_notes(&self, connection: &Rc<Connection>, half: &Half) {
        let mut told = false;
        while let Some(note) = half.take_note() {
            connection.waiting.borrow_mut().push_back(Waiting::Note(note));
            told = true;
        }
        if told && connection.state() == ConnState::Up {
            self.send_waiting(connection);
        }
    }

    /// Reads the next message, fairly among connections.
    pub fn step_message(&self, endpoint: &Endpoint) -> bool {
        if endpoint.ctx().state() != CtxState::Running {
            return false;
        }
        let current = self.current.get();
        if let Some(connection) = self.at(current)
            && let Some(parts) = connection.parts()
            && parts.channel.has_incoming()
        {
            if self.burst.get() < BURST {
                self.burst.set(self.burst.get() + 1);
                if self.serve(endpoint, &connection) {
                    return true;
                }
            } else {
                bits::set(self.view().active(), current);
            }
        }
        self.burst.set(0);
        let links = self.view().sizes().conns;
        let turn = fault::shuffle(links).unwrap_or((current + 1) % links);
        for link in bits::each(self.view().active(), turn) {
            bits::clear(self.view().active(), link);
            let Some(connection) = self.at(link) else { continue };
            if self.serve(endpoint, &connection) {
                self.current.set(link);
                return true;
            }
        }
        false
    }

    /// Does what a connection has to do, up to one callback; whether there was one.
    fn serve(&self, endpoint: &Endpoint, connection: &Rc<Connection>) -> bool {
        let Some(parts) = connection.parts() else { return false };
        let (half, channel) = (&parts.half, &parts.channel);
        match (connection.state(), channel.peer_life()) {
            (ConnState::Over, _) => return false,
            (ConnState::Connecting, Life::Absent) => return false,
            (ConnState::Connecting, Life::Closed) => {
                self.lose(connection, Code::CONNECTION_RESET);
                return false;
            }
            (ConnState::Connecting, Life::Up) => {
                connection.set_up();
                self.tell(Event::Connected(connection.clone(), true));
                return false;
            }
            (ConnState::Up, _) if !connection.announced.get() || connection.news.get() > 0 => return false,
            (ConnState::Up, _) => {}
        }
        self.send_waiting(connection);
        // Read before the records: what was sent before it left is there.
        let closed = channel.peer_life() == Life::Closed;
        loop {
            match channel.front() {
                Ok(Some(found)) if found.kind == MESSAGE => {
                    self.deliver(endpoint, connection, (half, channel), found);
                    if closed {
                        bits::set(self.view().active(), connection.id.index);
                    }
                    return true;
                }
                Ok(Some(found)) => {
                    let noted = self.read_note(connection, half, found);
                    if channel.pop(false) {
                        half.call();
                    }
                    match noted {
                        None => log::debug!("a note that makes no sense"),
                        Some(None) => {}
                        Some(Some((id, come))) => {
                            connection.news.update(|news| news + 1);
                            self.tell(Event::Consumer(connection.clone(), id, come));
                            return false;
                        }
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    log::error!("connection {}: the peer writes nonsense", connection.id.index);
                    self.lose(connection, Code::CONNECTION_ABORTED);
                    return false;
                }
            }
        }
        if closed {
            self.lose(connection, Code::CONNECTION_RESET);
        }
        false
    }

    fn deliver(
        &self,
        endpoint: &Endpoint,
        connection: &Rc<Connection>,
        (half, channel): (&Arc<Half>, &Channel),
        found: Incoming,
    ) {
        connection.count_received(found.len);
        match endpoint.on_message.get() {
            // SAFETY: the program's own function, with what its type promises; the bytes stay until `pop`.
            Some(callback) => unsafe {
                callback(endpoint, found.addr as *mut u8, found.len, &**connection);
            },
            None => {
                static TOLD: Once = Once::new();
                TOLD.call_once(|| {
                    log::warning!("{}: a message was dropped: nobody registered for them", endpoint.name());
                });
            }
        }
        // Who kept the pointer is to see that it is not theirs.
        let len = found.len as usize;
        let poisoned = if profile::get().strict { len } else { len.min(POISONED) };
        // SAFETY: the record's bytes, which the peer does not write before `pop`.
        unsafe { std::ptr::write_bytes(found.addr as *mut u8, PATTERN, poisoned) };
        if channel.pop(true) {
            half.call();
        }
    }

    /// What the program is to hear of: a consumer that has come or gone. `None` for nonsense.
    fn read_note(
        &self,
        connection: &Rc<Connection>,
        half: &Arc<Half>,
        found: Incoming,
    ) -> Option<Option<(u32, bool)>> {
        let mut words = [0u64; 3];
        if found.kind != NOTE || found.len as usize != size_of_val(&words) {
            return None;
        }
        // SAFETY: the record has that many bytes.
        unsafe {
            libc::memcpy(words.as_mut_ptr().cast(), found.addr as *const libc::c_void, size_of_val(&words))
        };
        match Note::decode(words)? {
            Note::Open(id, place) => {
                let inbox = half
                    .peer()
                    .published(place)
                    .and_then(|segment| Inbox::attach(half.peer().clone(), segment));
                match inbox {
                    Ok(inbox) => {
                        half.add_remote(id, inbox);
                        connection.waiting.borrow_mut().push_back(Waiting::Note(Note::Known(id)));
                        self.send_waiting(connection);
                        return Some(Some((id, true)));
                    }
                    // It has stopped, or died, meanwhile.
                    Err(code) => log::debug!("consumer {id} of the peer cannot be reached: {code:?}"),
                }
            }
            Note::Known(id) => half.known(id),
            Note::Down(id) if half.remove_remote(id) => return Some(Some((id, false))),
            Note::Down(_) => {}
        }
        Some(None)
    }
}
