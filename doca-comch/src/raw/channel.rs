//! `doca_comch_consumer`, `doca_comch_producer`: the two ends of the fast path.

use crate::fast::Fast;
use crate::lifecycle::{Context, Seed};
use crate::raw::connection::Link;
use crate::raw::transfer::{not_received, received, sent};
use doca_common::raw::context::{Ctx, null};
use doca_common::raw::map::Region;
use doca_common::{Error, Refusal, Result, call};
use doca_sys::{doca_comch_consumer, doca_comch_producer};
use std::ptr::{self, NonNull};

/// One of the two. Its owner destroys it while its context is idle, and asks it for nothing afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Channel {
    Consumer(NonNull<doca_comch_consumer>),
    Producer(NonNull<doca_comch_producer>),
}

// SAFETY: a seed has the only reference to an object that was never started: there is no run and no engine, and C does
// nothing with it. What it shares with its connection is atomic. NVIDIA's applications, too, run producers and consumers
// on threads of their own.
unsafe impl<C: Context<Object = Fast>> Send for Seed<C> {}

impl Channel {
    /// A consumer on a connection that is established. The memory must stay until it is destroyed.
    pub(crate) fn consumer(link: Link, memory: &Region) -> Result<Self> {
        let mut consumer = ptr::null_mut();
        // SAFETY: connection and map are alive, as the caller keeps them, and the out-parameter is a local.
        unsafe { call!(doca_comch_consumer_create(link.as_ptr(), memory.as_raw(), &mut consumer)) }?;
        NonNull::new(consumer).map(Channel::Consumer).ok_or_else(|| null("doca_comch_consumer_create"))
    }

    /// A producer on a connection that is established.
    pub(crate) fn producer(link: Link) -> Result<Self> {
        let mut producer = ptr::null_mut();
        // SAFETY: the connection is alive, and the out-parameter is a local.
        unsafe { call!(doca_comch_producer_create(link.as_ptr(), &mut producer)) }?;
        NonNull::new(producer).map(Channel::Producer).ok_or_else(|| null("doca_comch_producer_create"))
    }

    pub(crate) fn context(self) -> Result<Ctx> {
        // SAFETY: alive; the context belongs to it, and the owner destroys both as `Ctx::new` demands.
        unsafe {
            match self {
                Channel::Consumer(consumer) => {
                    Ctx::new(doca_sys::doca_comch_consumer_as_ctx(consumer.as_ptr()))
                        .ok_or_else(|| null("doca_comch_consumer_as_ctx"))
                }
                Channel::Producer(producer) => {
                    Ctx::new(doca_sys::doca_comch_producer_as_ctx(producer.as_ptr()))
                        .ok_or_else(|| null("doca_comch_producer_as_ctx"))
                }
            }
        }
    }

    /// Destroys it; it must be idle.
    pub(crate) fn destroy(self) -> Result<()> {
        // SAFETY: alive: its owner calls this once, or again after a refusal.
        unsafe {
            match self {
                Channel::Consumer(consumer) => call!(doca_comch_consumer_destroy(consumer.as_ptr())),
                Channel::Producer(producer) => call!(doca_comch_producer_destroy(producer.as_ptr())),
            }
        }
    }

    /// Its number on the connection.
    pub(crate) fn id(self) -> Result<u32> {
        let mut id = 0;
        // SAFETY: alive, and the out-parameter is a local.
        unsafe {
            match self {
                Channel::Consumer(consumer) => call!(doca_comch_consumer_get_id(consumer.as_ptr(), &mut id)),
                Channel::Producer(producer) => call!(doca_comch_producer_get_id(producer.as_ptr(), &mut id)),
            }
        }
        .map(|()| id)
    }

    pub(crate) fn set_num_tasks(self, count: u32) -> Result<()> {
        // SAFETY: alive, and the callbacks have the types that DOCA wants.
        unsafe {
            match self {
                Channel::Consumer(consumer) => call!(doca_comch_consumer_task_post_recv_set_conf(
                    consumer.as_ptr(),
                    Some(received),
                    Some(not_received),
                    count
                )),
                Channel::Producer(producer) => call!(doca_comch_producer_task_send_set_conf(
                    producer.as_ptr(),
                    Some(sent),
                    Some(sent),
                    count
                )),
            }
        }
    }

    pub(crate) fn set_imm_data_len(self, len: u32) -> Result<()> {
        const CALL: &str = "doca_comch_consumer_set_imm_data_len";
        let Channel::Consumer(consumer) = self else {
            return Err(Error::refused(CALL, Refusal::OtherContext));
        };
        // SAFETY: alive; DOCA checks value and state.
        unsafe { call!(doca_comch_consumer_set_imm_data_len(consumer.as_ptr(), len)) }
    }

    pub(crate) fn imm_data_len(self) -> Result<u32> {
        let Channel::Consumer(consumer) = self else { return Ok(0) };
        let mut len = 0;
        // SAFETY: alive, and the out-parameter is a local.
        unsafe { call!(doca_comch_consumer_get_imm_data_len(consumer.as_ptr(), &mut len)) }.map(|()| len)
    }
}
