//! Greeting and heartbeats.

use super::Broken;
use crate::frame::{Bytes, FastNote, Features, Frame, Hello, Limits, MIN_FRAME, ProbeKind, VERSION};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Which end of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Clients connect here.
    Host,
    /// The application is here.
    Dpu,
}

/// When silence means something.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The greeting must be over after this.
    pub hello: Duration,
    /// A ping is sent when nothing came for this long.
    pub heartbeat: Duration,
    /// The peer is dead when nothing came for this long.
    pub dead_after: Duration,
}

/// What this side says of itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What it can do.
    pub limits: Limits,
    /// Another one after each start of the program.
    pub instance: [u8; 16],
    /// Versions of relay and DOCA.
    pub text: String,
    /// When silence means something.
    pub timing: Timing,
    /// Bytes that windows may take beyond those of the limits, all together.
    pub spare: u64,
}

/// What both sides agreed on, and who the peer is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// The smaller of each limit.
    pub limits: Limits,
    /// Messages that the peer can hold before its program looks at them.
    pub peer_queue: u32,
    /// The peer's start.
    pub instance: [u8; 16],
    /// The peer's versions.
    pub text: String,
}

#[derive(Debug)]
pub(super) struct Session {
    settings: Settings,
    hello_due: bool,
    ack_due: bool,
    /// What the peer's hello led to.
    greeted: Option<Agreed>,
    /// Whether the peer's answer to ours came.
    acked: bool,
    began: Instant,
    last_heard: Instant,
    /// The ping that is not answered yet.
    pinged: Option<(u64, Instant)>,
    ping_due: bool,
    nonce: u64,
    pub(super) pong_due: Option<u64>,
    pub(super) goaway_due: bool,
    /// What is to be told of this side's fast path; a later credit takes the place of an earlier one.
    pub(super) fast_ready: Option<FastNote>,
    pub(super) fast_credit: Option<FastNote>,
    pub(super) probes: VecDeque<(u64, ProbeKind)>,
    pub(super) answers: VecDeque<(u64, u32, Bytes)>,
}

impl Session {
    pub(super) fn new(settings: Settings, now: Instant) -> Self {
        Session {
            settings,
            hello_due: true,
            ack_due: false,
            greeted: None,
            acked: false,
            began: now,
            last_heard: now,
            pinged: None,
            ping_due: false,
            nonce: 0,
            pong_due: None,
            goaway_due: false,
            fast_ready: None,
            fast_credit: None,
            probes: VecDeque::new(),
            answers: VecDeque::new(),
        }
    }

    pub(super) fn agreed(&self) -> Option<&Agreed> {
        self.greeted.as_ref().filter(|_| self.acked)
    }

    pub(super) fn greeted(&self) -> bool {
        self.greeted.is_some()
    }

    pub(super) fn window(&self) -> u32 {
        self.greeted.as_ref().map_or(self.settings.limits.window, |agreed| agreed.limits.window)
    }

    /// Whether the peer may use a fast path.
    pub(super) fn has_fast_path(&self) -> bool {
        self.greeted.as_ref().is_some_and(|agreed| agreed.limits.features.has(Features::FAST_PATH))
    }

    pub(super) fn max_streams(&self) -> usize {
        self.greeted.as_ref().map_or(0, |agreed| agreed.limits.max_streams as usize)
    }

    pub(super) fn heard(&mut self, now: Instant) {
        self.last_heard = now;
    }

    /// Takes a hello or the answer to one.
    pub(super) fn greet(&mut self, frame: &Frame<'_>, now: Instant) -> Result<(), Broken> {
        self.heard(now);
        match frame {
            Frame::Hello(_) if self.greeted() => Err(Broken::Protocol("a second hello".to_owned())),
            Frame::Hello(hello) => {
                self.greeted = Some(self.agree(hello)?);
                self.ack_due = true;
                Ok(())
            }
            Frame::HelloAck { version, limits } => {
                let Some(agreed) = self.greeted.as_ref().filter(|_| !self.acked) else {
                    return Err(Broken::Protocol("an unexpected answer to a hello".to_owned()));
                };
                if *version != VERSION || *limits != agreed.limits {
                    return Err(Broken::Partner(format!(
                        "the two sides do not agree: protocol {version} with {limits} there, {VERSION} with \
                         {} here",
                        agreed.limits
                    )));
                }
                self.acked = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn agree(&self, hello: &Hello<'_>) -> Result<Agreed, Broken> {
        if hello.version != VERSION {
            return Err(Broken::Partner(format!(
                "the other relay speaks protocol version {}, this one {VERSION} (it says: {})",
                hello.version, hello.text
            )));
        }
        let limits = self.settings.limits.common(&hello.limits);
        if limits.max_frame < MIN_FRAME {
            return Err(Broken::Partner(format!(
                "frames of {} bytes are too small, {MIN_FRAME} are needed",
                limits.max_frame
            )));
        }
        if limits.window == 0 || limits.max_streams == 0 {
            return Err(Broken::Partner("a window or a number of streams of 0".to_owned()));
        }
        Ok(Agreed {
            limits,
            peer_queue: hello.limits.recv_queue,
            instance: hello.instance,
            text: hello.text.to_owned(),
        })
    }

    pub(super) fn tick(&mut self, now: Instant) -> Result<(), Broken> {
        let timing = self.settings.timing;
        if self.agreed().is_none() {
            return if now.saturating_duration_since(self.began) < timing.hello {
                Ok(())
            } else {
                Err(Broken::Partner("the other side did not say hello in time".to_owned()))
            };
        }
        let silence = now.saturating_duration_since(self.last_heard);
        if silence >= timing.dead_after {
            return Err(Broken::Silent(silence));
        }
        if silence >= timing.heartbeat {
            self.ping(now);
        }
        Ok(())
    }

    pub(super) fn ping(&mut self, now: Instant) {
        if self.pinged.is_none() {
            self.nonce += 1;
            self.pinged = Some((self.nonce, now));
            self.ping_due = true;
        }
    }

    pub(super) fn last_heard(&self) -> Instant {
        self.last_heard
    }

    pub(super) fn pong(&mut self, nonce: u64, now: Instant) -> Option<Duration> {
        let (_, since) = self.pinged.take_if(|(expected, _)| *expected == nonce)?;
        Some(now.saturating_duration_since(since))
    }

    /// The next frame that belongs to no stream.
    pub(super) fn next_frame(&mut self, last: u32) -> Option<Frame<'_>> {
        if std::mem::take(&mut self.hello_due) {
            let Settings { limits, instance, ref text, .. } = self.settings;
            return Some(Frame::Hello(Hello { version: VERSION, limits, instance, text }));
        }
        if std::mem::take(&mut self.ack_due) {
            let limits = self.greeted.as_ref()?.limits;
            return Some(Frame::HelloAck { version: VERSION, limits });
        }
        // The rest waits until the peer is known to listen.
        self.agreed()?;
        if std::mem::take(&mut self.ping_due) {
            return Some(Frame::Ping(self.nonce));
        }
        if let Some(nonce) = self.pong_due.take() {
            return Some(Frame::Pong(nonce));
        }
        if let Some(note) = self.fast_ready.take().or_else(|| self.fast_credit.take()) {
            return Some(Frame::Fast(note));
        }
        if std::mem::take(&mut self.goaway_due) {
            return Some(Frame::GoAway { last });
        }
        if let Some((nonce, kind)) = self.probes.pop_front() {
            return Some(Frame::Probe { nonce, kind });
        }
        self.answers.pop_front().map(|(nonce, errno, bytes)| Frame::ProbeResult { nonce, errno, bytes })
    }
}
