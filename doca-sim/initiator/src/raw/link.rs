//! One queue's connection: a doca_rdma of its own, capsules out, responses in, and memory for data.

use super::cm::Client;
use super::device::Device;
use super::memory::{ACCESS, Memory};
use super::{doca, name};
use crate::Error;
use doca_sys::{
    doca_buf, doca_ctx, doca_ctx_states, doca_data, doca_error_t, doca_pe, doca_rdma, doca_rdma_connection,
    doca_rdma_opcode, doca_rdma_task_receive, doca_rdma_task_send, doca_task,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::ptr;
use std::time::{Duration, Instant};

/// Bytes that a response may have.
const RESPONSE: usize = 64;

/// How many commands a link carries at once, and how long they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) slots: usize,
    /// Bytes of a capsule.
    pub(crate) capsule: usize,
    /// Bytes of data of a command.
    pub(crate) data: usize,
}

/// A response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) bytes: [u8; 16],
    /// Its length as it was sent.
    pub(crate) len: usize,
    /// The key that it invalidated.
    pub(crate) invalidated: Option<u32>,
}

/// What callbacks saw.
#[derive(Default)]
struct Events {
    sent: VecDeque<usize>,
    received: VecDeque<usize>,
    failed: Option<(&'static str, doca_error_t)>,
}

pub(crate) struct Link {
    // Dropped in this order, after what `drop` does.
    client: Client,
    memory: Memory,
    device: Device,
    events: Box<RefCell<Events>>,
    layout: Layout,
    pe: *mut doca_pe,
    rdma: *mut doca_rdma,
    ctx: *mut doca_ctx,
    connection: *mut doca_rdma_connection,
    sends: Vec<(*mut doca_rdma_task_send, *mut doca_buf)>,
    receives: Vec<(*mut doca_rdma_task_receive, *mut doca_buf)>,
}

impl Layout {
    fn responses_at(&self) -> usize {
        self.slots * self.capsule
    }

    fn data_at(&self) -> usize {
        (self.responses_at() + self.slots * RESPONSE).next_multiple_of(4096)
    }

    fn len(&self) -> usize {
        (self.data_at() + self.slots * self.data).next_multiple_of(4096)
    }
}

impl Link {
    /// Opens the device, and connects to the target; gives what it answered, too.
    pub(crate) fn connect(
        device: &str,
        layout: Layout,
        to: SocketAddrV4,
        data: &[u8],
        limit: Duration,
    ) -> Result<(Self, Vec<u8>), Error> {
        let mut link = Link::start(device, layout)?;
        let from = SocketAddrV4::new(link.device.address, 0);
        let answer = link.client.connect(from, to, data, limit)?;
        link.establish()?;
        Ok((link, answer))
    }

    fn start(device: &str, layout: Layout) -> Result<Self, Error> {
        let device = Device::open(device)?;
        let memory = Memory::new(layout.len(), 2 * layout.slots, &device)?;
        let mut link = Link {
            client: Client::new()?,
            memory,
            device,
            events: Box::default(),
            layout,
            pe: ptr::null_mut(),
            rdma: ptr::null_mut(),
            ctx: ptr::null_mut(),
            connection: ptr::null_mut(),
            sends: Vec::new(),
            receives: Vec::new(),
        };
        let slots = layout.slots as u32;
        // SAFETY: out-parameters are fields; callbacks get the events, whose box outlives the context.
        unsafe {
            doca!(doca_pe_create(&mut link.pe))?;
            doca!(doca_rdma_create(link.device.as_ptr(), &mut link.rdma))?;
            link.ctx = doca_sys::doca_rdma_as_ctx(link.rdma);
            let data = doca_data { ptr: ptr::from_ref(&*link.events).cast_mut().cast() };
            doca!(doca_ctx_set_user_data(link.ctx, data))?;
            doca!(doca_rdma_set_permissions(link.rdma, ACCESS))?;
            doca!(doca_rdma_set_send_queue_size(link.rdma, slots.next_power_of_two()))?;
            doca!(doca_rdma_task_send_set_conf(link.rdma, Some(sent), Some(send_failed), slots))?;
            doca!(doca_rdma_task_receive_set_conf(link.rdma, Some(received), Some(receive_failed), slots))?;
            doca!(doca_pe_connect_ctx(link.pe, link.ctx))?;
            match doca_sys::doca_ctx_start(link.ctx) {
                doca_error_t::DOCA_SUCCESS | doca_error_t::DOCA_ERROR_IN_PROGRESS => {}
                code => super::check("doca_ctx_start", code)?,
            }
        }
        let until = Instant::now() + Duration::from_secs(10);
        while link.state() != doca_ctx_states::DOCA_CTX_STATE_RUNNING {
            if Instant::now() > until {
                return Err(Error::Timeout { what: "doca_ctx_start".into(), after: Duration::from_secs(10) });
            }
            link.progress();
        }
        Ok(link)
    }

    fn establish(&mut self) -> Result<(), Error> {
        // SAFETY: the identifier is DOCA's from here on, and forgotten by its client; out-parameters are fields or locals.
        unsafe {
            let id = self.client.give().cast();
            doca!(doca_rdma_bridge_prepare_connection(self.rdma, id, &mut self.connection))?;
            for slot in 0..self.layout.slots {
                let buf = self.memory.buf(self.layout.responses_at() + slot * RESPONSE, RESPONSE)?;
                self.receives.push((ptr::null_mut(), buf));
                doca!(doca_buf_reset_data_len(buf))?;
                let (data, task) = (doca_data { u64_: slot as u64 }, &mut self.receives[slot].0);
                doca!(doca_rdma_task_receive_allocate_init(self.rdma, buf, data, task))?;
                doca!(doca_task_submit(doca_sys::doca_rdma_task_receive_as_task(*task)))?;
            }
            doca!(doca_rdma_bridge_established(self.rdma, self.connection))?;
            for slot in 0..self.layout.slots {
                let buf = self.memory.buf(slot * self.layout.capsule, self.layout.capsule)?;
                self.sends.push((ptr::null_mut(), buf));
                let (data, task) = (doca_data { u64_: slot as u64 }, &mut self.sends[slot].0);
                doca!(doca_rdma_task_send_allocate_init(self.rdma, self.connection, buf, data, task))?;
            }
        }
        Ok(())
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn key(&self) -> u32 {
        self.memory.key
    }

    /// Key, address and export descriptor of the memory.
    pub(crate) fn export(&self) -> Result<(u32, u64, Vec<u8>), Error> {
        Ok((self.memory.key, self.memory.address(0), self.memory.export(&self.device)?))
    }

    /// The address of a slot's data, for the target.
    pub(crate) fn data_address(&self, slot: usize) -> u64 {
        self.memory.address(self.layout.data_at() + slot * self.layout.data)
    }

    pub(crate) fn read_data(&self, slot: usize, to: &mut [u8]) {
        assert!(to.len() <= self.layout.data);
        self.memory.read(self.layout.data_at() + slot * self.layout.data, to);
    }

    pub(crate) fn write_data(&self, slot: usize, from: &[u8]) {
        assert!(from.len() <= self.layout.data);
        self.memory.write(self.layout.data_at() + slot * self.layout.data, from);
    }

    /// Sends a slot's capsule, whose last one has been sent.
    pub(crate) fn send(&mut self, slot: usize, parts: [&[u8]; 2]) -> Result<(), Error> {
        let len = parts[0].len() + parts[1].len();
        assert!(len <= self.layout.capsule);
        let at = slot * self.layout.capsule;
        self.memory.write(at, parts[0]);
        self.memory.write(at + parts[0].len(), parts[1]);
        let (task, buf) = self.sends[slot];
        // SAFETY: the slot's task and buffer, which are not in flight.
        unsafe {
            doca!(doca_buf_set_data_len(buf, len))?;
            doca!(doca_task_submit(doca_sys::doca_rdma_task_send_as_task(task)))
        }
    }

    /// Runs the engine once; false when there was nothing to do.
    pub(crate) fn progress(&mut self) -> bool {
        // SAFETY: the engine is ours, and no callback calls this.
        unsafe { doca_sys::doca_pe_progress(self.pe) != 0 }
    }

    /// Sleeps until there may be something to do, at most this long.
    pub(crate) fn sleep(&mut self, limit: Duration) -> Result<(), Error> {
        let mut handle = 0;
        // SAFETY: the engine is ours; the out-parameter is a local; the descriptor is the engine's.
        unsafe {
            doca!(doca_pe_get_notification_handle(self.pe, &mut handle))?;
            doca!(doca_pe_request_notification(self.pe))?;
            let mut poll = libc::pollfd { fd: handle, events: libc::POLLIN, revents: 0 };
            libc::poll(&mut poll, 1, limit.as_millis() as libc::c_int);
            doca!(doca_pe_clear_notification(self.pe, handle))
        }
    }

    /// A slot whose capsule was sent since.
    pub(crate) fn next_sent(&mut self) -> Option<usize> {
        self.events.borrow_mut().sent.pop_front()
    }

    /// The next response; its receive is posted again.
    pub(crate) fn next_received(&mut self) -> Result<Option<Arrived>, Error> {
        let Some(slot) = self.events.borrow_mut().received.pop_front() else { return Ok(None) };
        let (task, buf) = self.receives[slot];
        let mut bytes = [0; 16];
        self.memory.read(self.layout.responses_at() + slot * RESPONSE, &mut bytes);
        // SAFETY: the task has completed, so its results are there, and it may be submitted again.
        unsafe {
            let len = doca_sys::doca_rdma_task_receive_get_result_len(task) as usize;
            let with_key = doca_sys::doca_rdma_task_receive_get_result_opcode(task)
                == doca_rdma_opcode::DOCA_RDMA_OPCODE_RECV_SEND_WITH_IMM;
            let immediate = doca_sys::doca_rdma_task_receive_get_result_immediate_data(task);
            doca!(doca_buf_reset_data_len(buf))?;
            doca!(doca_task_submit(doca_sys::doca_rdma_task_receive_as_task(task)))?;
            Ok(Some(Arrived { bytes, len, invalidated: with_key.then(|| u32::from_be(immediate)) }))
        }
    }

    /// Whether the connection still is there, as far as is known.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let failed = self.events.borrow().failed;
        if self.client.disconnected()? {
            return Err(Error::Disconnected);
        }
        match failed {
            Some((kind, code)) => Err(Error::Transport(kind, name(code))),
            None => Ok(()),
        }
    }

    fn state(&self) -> doca_ctx_states {
        let mut state = doca_ctx_states::DOCA_CTX_STATE_IDLE;
        // SAFETY: the context is ours, the out-parameter a local, which an error leaves as it is.
        unsafe { _ = doca!(doca_ctx_get_state(self.ctx, &mut state)) };
        state
    }

    /// Stops the context; false when it did not become idle.
    fn stop(&mut self) -> bool {
        // SAFETY: the connection, tasks and buffers are ours; tasks are freed once they are not in flight, so after the
        // context has flushed them, and buffers after their tasks.
        unsafe {
            if !self.connection.is_null() {
                _ = doca!(doca_rdma_connection_disconnect(self.connection));
            }
            _ = doca_sys::doca_ctx_stop(self.ctx);
            let until = Instant::now() + Duration::from_secs(5);
            let in_flight = |link: &Link| {
                let mut count = 0;
                _ = doca!(doca_pe_get_num_inflight_tasks(link.pe, &mut count));
                count > 0
            };
            while in_flight(self) && Instant::now() < until {
                if !self.progress() {
                    std::thread::yield_now();
                }
            }
            if in_flight(self) {
                return false;
            }
            let tasks = self.sends.iter().map(|(task, _)| doca_sys::doca_rdma_task_send_as_task(*task));
            let posted =
                self.receives.iter().map(|(task, _)| doca_sys::doca_rdma_task_receive_as_task(*task));
            tasks
                .chain(posted)
                .filter(|task: &*mut doca_task| !task.is_null())
                .for_each(|task| doca_sys::doca_task_free(task));
            while self.state() != doca_ctx_states::DOCA_CTX_STATE_IDLE && Instant::now() < until {
                if !self.progress() {
                    std::thread::yield_now();
                }
            }
            let bufs =
                self.sends.iter().map(|(_, buf)| *buf).chain(self.receives.iter().map(|(_, buf)| *buf));
            bufs.for_each(|buf| _ = doca!(doca_buf_dec_refcount(buf, ptr::null_mut())));
        }
        self.state() == doca_ctx_states::DOCA_CTX_STATE_IDLE
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if !self.ctx.is_null() && self.state() != doca_ctx_states::DOCA_CTX_STATE_IDLE && !self.stop() {
            // DOCA still has our memory: the process keeps both. The fields close what is left as far as they can.
            std::mem::forget(std::mem::take(&mut self.events));
            return;
        }
        // SAFETY: idle, so nothing is in flight; each was made by `start` or is null.
        unsafe {
            if !self.rdma.is_null() {
                _ = doca!(doca_rdma_destroy(self.rdma));
            }
            if !self.pe.is_null() {
                _ = doca!(doca_pe_destroy(self.pe));
            }
        }
    }
}

/// The events that a context's user data names.
///
/// # Safety
///
/// From a callback of a context that `Link::start` made.
unsafe fn events<'a>(context: doca_data) -> std::cell::RefMut<'a, Events> {
    // SAFETY: the box lives as long as the context, and no borrow is held while the engine runs.
    unsafe { &*context.ptr.cast::<RefCell<Events>>() }.borrow_mut()
}

/// The slot that a task's user data names.
fn slot(task: doca_data) -> usize {
    // SAFETY: set as a number for every task.
    (unsafe { task.u64_ }) as usize
}

unsafe extern "C" fn sent(_: *mut doca_rdma_task_send, task: doca_data, context: doca_data) {
    // SAFETY: a callback.
    unsafe { events(context) }.sent.push_back(slot(task));
}

unsafe extern "C" fn received(_: *mut doca_rdma_task_receive, task: doca_data, context: doca_data) {
    // SAFETY: a callback.
    unsafe { events(context) }.received.push_back(slot(task));
}

unsafe extern "C" fn send_failed(task: *mut doca_rdma_task_send, _: doca_data, context: doca_data) {
    // SAFETY: a callback, and its task.
    unsafe {
        let code = doca_sys::doca_task_get_status(doca_sys::doca_rdma_task_send_as_task(task));
        events(context).failed.get_or_insert(("send", code));
    }
}

unsafe extern "C" fn receive_failed(task: *mut doca_rdma_task_receive, _: doca_data, context: doca_data) {
    // SAFETY: a callback, and its task.
    unsafe {
        let code = doca_sys::doca_task_get_status(doca_sys::doca_rdma_task_receive_as_task(task));
        events(context).failed.get_or_insert(("receive", code));
    }
}
