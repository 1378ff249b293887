//! One counter, many processes: no addition is lost, whatever memory the counter is in.

use crate::process::{LIMIT, Parent, Peer, Talk, from_hex, to_hex};
use doca::memory::{Foreign, Heap};
use doca::rdma::{CompareSwapTask, FetchAddTask, Rdma};
use doca::{Access, Device, Memory, ProgressEngine, RemoteMemory};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Processes that count.
const PEERS: u64 = 8;
/// How often each of them counts.
const TIMES: u64 = 10_000;
/// How often the owner adds before it lets others run.
const BURST: u64 = 1024;
const PAGE: usize = 4096;

/// A page of a sealed memfd, mapped twice: once for DOCA, once for this program's own atomics.
struct Twice {
    maps: [NonNull<u8>; 2],
    _file: OwnedFd,
}

// SAFETY: plain addresses of shared memory, used by atomics only.
unsafe impl Send for Twice {}
// SAFETY: as above.
unsafe impl Sync for Twice {}

impl Twice {
    fn new() -> Self {
        // SAFETY: plain system call; the name ends with a NUL.
        let file = unsafe { libc::memfd_create(c"counter".as_ptr(), libc::MFD_ALLOW_SEALING) };
        assert!(file >= 0);
        // SAFETY: a new descriptor that nobody else owns.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        // SAFETY: plain system calls on our descriptor.
        let sealed = unsafe {
            libc::ftruncate(file.as_raw_fd(), PAGE as libc::off_t) == 0
                && libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) == 0
        };
        assert!(sealed);
        let maps = [(); 2].map(|()| {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping, where the kernel likes, of a file that cannot shrink.
            let map = unsafe {
                libc::mmap(std::ptr::null_mut(), PAGE, rights, libc::MAP_SHARED, file.as_raw_fd(), 0)
            };
            assert!(map != libc::MAP_FAILED);
            NonNull::new(map.cast()).unwrap()
        });
        Twice { maps, _file: file }
    }

    /// The first word, for this program.
    fn word(&self) -> &AtomicU64 {
        // SAFETY: aligned memory that stays mapped as long as this; whoever else uses it does so by atomics: peers, as
        // they hold nothing but a cell, and nobody else.
        unsafe { self.maps[1].cast::<AtomicU64>().as_ref() }
    }
}

impl Drop for Twice {
    fn drop(&mut self) {
        for map in self.maps {
            // SAFETY: our own mapping, once.
            unsafe { libc::munmap(map.as_ptr().cast(), PAGE) };
        }
    }
}

/// Calls it in the end.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

struct First(std::sync::Arc<Twice>);

// SAFETY: the page is mapped as long as this lives, and zeroed by the kernel. This program writes it by atomics only, as
// an RDMA atomic does, and only through its other mapping.
unsafe impl Foreign for First {
    fn base(&self) -> NonNull<u8> {
        self.0.maps[0]
    }

    fn len(&self) -> usize {
        PAGE
    }
}

/// Counts in the parent's memory, by adding or by comparing and swapping.
pub fn counting(parent: &mut Parent, args: &[String]) {
    let device = Device::open("mlx5_1").unwrap();
    let engine = ProgressEngine::new().unwrap();
    let mut config = Rdma::configure(&device).unwrap();
    let (adds, swaps) =
        (config.enable::<FetchAddTask>(1).unwrap(), config.enable::<CompareSwapTask>(1).unwrap());
    let starting = config.start(&engine).unwrap();
    let (exported, descriptor) = starting.export().unwrap();
    parent.say(&to_hex(descriptor.as_bytes()));
    let connection = exported.connect(from_hex(&parent.hear())).unwrap();
    let remote = RemoteMemory::import(&device, from_hex(&parent.hear())).unwrap();
    let rdma = starting.running_within(LIMIT).unwrap();
    let (adds, swaps) = (rdma.queue(adds).unwrap(), rdma.queue(swaps).unwrap());
    let cell = remote.cell(0).unwrap();
    let memory = Memory::zeroed(64).unwrap().private(&device).unwrap();
    let mut word = memory.take(8).unwrap();
    parent.say("ready");
    parent.expect("go");
    let mut known = 0;
    for _ in 0..TIMES {
        if args[0] == "add" {
            word = adds.submit(&connection, &cell, word, 1).unwrap().wait_for(LIMIT).unwrap().buffer;
            continue;
        }
        loop {
            let before =
                swaps.submit(&connection, &cell, word, known, known + 1).unwrap().wait_for(LIMIT).unwrap();
            word = before.buffer;
            let swapped = before.value == known;
            known = if swapped { known + 1 } else { before.value };
            if swapped {
                break;
            }
        }
    }
    parent.say("done");
    parent.expect("end");
    rdma.stop().wait_for(LIMIT).unwrap();
}

/// Half of the peers add and half of them swap; this process counts too while `more` says so. Gives the counter.
fn count(memory: Memory, mut more: impl FnMut()) -> u64 {
    let device = Device::open("mlx5_0").unwrap();
    let engine = ProgressEngine::new().unwrap();
    let shared = memory.shared(&device, Access::RDMA_ATOMIC).unwrap();
    let mut config = Rdma::configure(&device).unwrap();
    config.set_permissions(Access::RDMA_ATOMIC).unwrap();
    config.set_max_num_connections(PEERS as u16).unwrap();
    let rdma = config.start(&engine).unwrap();
    let exported = shared.export().unwrap();
    let mut peers: Vec<_> = (0..PEERS)
        .map(|number| {
            let mut peer = Peer::start("counting", &[if number % 2 == 0 { "add" } else { "swap" }]);
            let (ours, descriptor) = rdma.export().unwrap();
            let connection = ours.connect(from_hex(&peer.hear())).unwrap();
            peer.say(&to_hex(descriptor.as_bytes()));
            peer.say(&to_hex(exported.as_bytes()));
            (peer, connection)
        })
        .collect();
    peers.iter_mut().for_each(|(peer, _)| peer.expect("ready"));
    peers.iter_mut().for_each(|(peer, _)| peer.say("go"));
    more();
    peers.iter_mut().for_each(|(peer, _)| peer.expect("done"));
    let counted = shared.cell(0).unwrap().load();
    for (mut peer, _connection) in peers {
        peer.say("end");
        peer.finish();
    }
    counted
}

/// Memory of these crates, which peers map.
pub fn nothing_is_lost_in_mapped_memory() {
    assert_eq!(count(Memory::zeroed(PAGE).unwrap(), || {}), PEERS * TIMES);
}

/// Memory that peers reach through the kernel.
pub fn nothing_is_lost_in_memory_of_the_heap() {
    let bytes = Heap::from(vec![0; PAGE].into_boxed_slice());
    assert_eq!(count(Memory::foreign(bytes), || {}), PEERS * TIMES);
}

/// A thread of the memory's owner adds as fast as it can until the peers are through.
pub fn nothing_is_lost_beside_the_owners_cpu() {
    let twice = std::sync::Arc::new(Twice::new());
    let (done, own) = (AtomicBool::new(false), AtomicU64::new(0));
    let counted = std::thread::scope(|scope| {
        // Also when `count` panics: the scope waits for its thread.
        let _end = OnDrop(|| done.store(true, Ordering::Relaxed));
        count(Memory::foreign(First(twice.clone())), || {
            scope.spawn(|| {
                let counts = || twice.word().load(Ordering::Relaxed) & 0xffff_ffff;
                while !done.load(Ordering::Relaxed) {
                    // So close to each other that an atomic of a peer in two steps meets one in between.
                    let before = counts();
                    for _ in 0..BURST {
                        twice.word().fetch_add(1 << 32, Ordering::Relaxed);
                    }
                    own.fetch_add(BURST, Ordering::Relaxed);
                    // A peer's turn: one that compares and swaps would never meet what it read.
                    while counts() == before && !done.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                }
            });
        })
    });
    let last = twice.word().load(Ordering::Relaxed);
    assert_eq!((counted & 0xffff_ffff, last & 0xffff_ffff), (PEERS * TIMES, PEERS * TIMES));
    assert_eq!(last >> 32, own.load(Ordering::Relaxed) & 0xffff_ffff);
}
