//! What the safe layer costs for each Comch message: instructions outside the DOCA libraries, safe against raw, and
//! allocations of both.
//!
//! `cargo sim bench comch_cost` runs this program under callgrind, twice for each side, with different numbers of messages;
//! the difference of the two runs is what the messages cost, without the start. A client on the host sends messages of 64
//! bytes, one after the other, each progressed until DOCA says that it was sent. The server is another process, on the DPU,
//! and sleeps: its queue takes all of them, so no count depends on when it runs.
//!
//! Raw does what a careful C program does, and no more: a task for each message, its answers compared with `DOCA_SUCCESS`,
//! a callback that notes in a record whether it was sent and frees the task. Seen: 43 instructions against 338 of the safe
//! layer, of 2090 and 2466 with DOCA, here the simulator; no allocations.

#[path = "../../benches/support/callgrind.rs"]
mod callgrind;

use callgrind::Counts;
use doca_comch::{Client, Server};
use doca_common::{DeviceInfo, ProgressEngine};
use doca_sys::*;
use std::ffi::CString;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::ptr::null_mut;
use std::time::Duration;

const LEN: usize = 64;
/// Messages of the shorter and of the longer run; the server's queue takes the latter.
const SHORT: u64 = 200;
const LONG: u64 = 1200;
const QUEUE: u32 = 2048;
const FUNCTION: &str = "0000:3b:00.0";
const LIMIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != "--bench").collect();
    match words[..] {
        ["server", name] => serve(name),
        ["count", side, number] => {
            let number = number.parse().expect("a number of messages");
            let server = Asleep::start();
            if side == "raw" { raw(&server.name, number) } else { safe(&server.name, number) }
        }
        [] => table(),
        _ => {
            eprintln!("comch_cost takes nothing");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn table() {
    println!("{:<8}{:>8}{:>8}{:>8}  allocations: raw, safe", "", "raw", "safe", "ratio");
    let per_message = |side: &str| {
        let run = |number: u64| callgrind::run(&["count", side, &number.to_string()]);
        let (short, long) = (run(SHORT), run(LONG));
        long.less(&short).each((LONG - SHORT) as f64)
    };
    let [raw, safe]: [Counts; 2] = ["raw", "safe"].map(per_message);
    println!(
        "{:<8}{:>8.1}{:>8.1}{:>8.2}  {:.2}, {:.2}",
        "send",
        raw.ours,
        safe.ours,
        safe.ours / raw.ours,
        raw.allocations.abs(),
        safe.allocations.abs()
    );
    println!(
        "instructions outside the libraries for each message; with DOCA: {:.0}, {:.0}",
        raw.all, safe.all
    );
}

/// A server that took one client and looks no further.
struct Asleep {
    name: String,
    process: Child,
    /// Its end is the server's.
    _awake: Option<ChildStdin>,
}

impl Asleep {
    fn start() -> Asleep {
        let name = format!("cost-{}", std::process::id());
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        command.args(["server", &name]).env("DOCA_SIM_SIDE", "dpu").env("DOCA_SIM_QUIET", "1");
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("the server says so");
        let awake = process.stdin.take();
        Asleep { name, process, _awake: awake }
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        self._awake = None;
        self.process.wait().expect("the server ends");
    }
}

fn serve(name: &str) {
    let device = DeviceInfo::list().expect("devices")[0].open().expect("a device of the DPU");
    let function = device.representor(FUNCTION).expect("its host");
    let engine = ProgressEngine::new().expect("an engine");
    let mut config = Server::configure(&device, &function, name).expect("a server");
    config.set_recv_queue_size(QUEUE).expect("a queue");
    let server = config.start(&engine).expect("it starts").running().expect("it runs");
    println!("up");
    let client = server.wait_for(LIMIT).expect("a client");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("the end of the input");
    drop(client);
}

fn safe(name: &str, number: u64) {
    let device = DeviceInfo::list().expect("devices")[0].open().expect("a device of the host");
    let engine = ProgressEngine::new().expect("an engine");
    let config = Client::configure(&device, name).expect("a client");
    let client = config.start(&engine).expect("it starts").running_within(LIMIT).expect("it is taken");
    let connection = client.connection().expect("its connection");
    let message = [7; LEN];
    for _ in 0..number {
        connection.send(black_box(&message)).expect("it is taken");
        while connection.in_flight() > 0 {
            engine.progress().expect("progress");
        }
        assert!(connection.send_failure().is_none(), "it was sent");
    }
}

fn ok(code: doca_error_t) {
    assert!(code == doca_error_t::DOCA_SUCCESS, "DOCA error {code:?}");
}

/// Calls that fill an out-parameter.
fn made<T>(call: impl FnOnce(*mut *mut T) -> doca_error_t) -> *mut T {
    let mut out = null_mut();
    ok(call(&mut out));
    out
}

const WELL: u64 = 1;
const BADLY: u64 = 2;

unsafe extern "C" fn sent(task: *mut doca_comch_task_send, record: doca_data, _: doca_data) {
    // SAFETY: the task's user data is the record of `raw`, touched by this thread alone; the task is ours again.
    unsafe {
        *record.ptr.cast::<u64>() = WELL;
        doca_task_free(doca_comch_task_send_as_task(task));
    }
}

unsafe extern "C" fn not_sent(task: *mut doca_comch_task_send, record: doca_data, _: doca_data) {
    // SAFETY: as above.
    unsafe {
        *record.ptr.cast::<u64>() = BADLY;
        doca_task_free(doca_comch_task_send_as_task(task));
    }
}

unsafe extern "C" fn came(
    _: *mut doca_comch_event_msg_recv,
    _: *mut u8,
    _: u32,
    _: *mut doca_comch_connection,
) {
}

fn raw(name: &str, number: u64) {
    let name = CString::new(name).expect("no zero byte");
    let message = [7u8; LEN];
    let record: *mut u64 = Box::leak(Box::default());
    // SAFETY: each object is used in the order DOCA asks for, right after the call that made it succeeded, and none is
    // destroyed. The record is leaked, so it outlives the callbacks; a message is copied before its submission returns.
    unsafe {
        let (mut list, mut count) = (null_mut(), 0);
        ok(doca_devinfo_create_list(&mut list, &mut count));
        let dev = made(|out| doca_dev_open(*list, out));
        let pe = made(|out| doca_pe_create(out));
        let client = made(|out| doca_comch_client_create(dev, name.as_ptr(), out));
        ok(doca_comch_client_task_send_set_conf(client, Some(sent), Some(not_sent), 64));
        ok(doca_comch_client_event_msg_recv_register(client, Some(came)));
        let ctx = doca_comch_client_as_ctx(client);
        ok(doca_pe_connect_ctx(pe, ctx));
        assert!(doca_ctx_start(ctx) == doca_error_t::DOCA_ERROR_IN_PROGRESS, "it starts");
        let mut state = doca_ctx_states::DOCA_CTX_STATE_STARTING;
        while state == doca_ctx_states::DOCA_CTX_STATE_STARTING {
            doca_pe_progress(pe);
            ok(doca_ctx_get_state(ctx, &mut state));
        }
        assert!(state == doca_ctx_states::DOCA_CTX_STATE_RUNNING, "it is taken");
        let connection = made(|out| doca_comch_client_get_connection(client, out));
        for _ in 0..number {
            let from = black_box(&message).as_ptr().cast();
            let task =
                made(|out| doca_comch_client_task_send_alloc_init(client, connection, from, LEN as u32, out));
            let task = doca_comch_task_send_as_task(task);
            record.write_volatile(0);
            doca_task_set_user_data(task, doca_data { ptr: record.cast() });
            ok(doca_task_submit(task));
            while record.read_volatile() == 0 {
                doca_pe_progress(pe);
            }
            assert!(record.read_volatile() == WELL, "it was sent");
        }
    }
}
