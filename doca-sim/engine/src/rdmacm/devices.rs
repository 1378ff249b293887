//! What `id->verbs` points to: one `struct ibv_context` for each device, made when first asked for and kept for good.

use super::layout::{IbvContext, IbvDevice};
use crate::lock::lock;
use crate::topology::Device;
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::Mutex;

const NODE_CA: i32 = 1;
const TRANSPORT_IB: i32 = 0;

struct Opened(&'static IbvContext);
// SAFETY: never written to after it was made, and what it points to lives for good.
unsafe impl Send for Opened {}

static OPENED: Mutex<BTreeMap<usize, Opened>> = Mutex::new(BTreeMap::new());

/// The context of a device.
pub(super) fn context(device: &Device) -> *const IbvContext {
    lock(&OPENED).entry(device.index).or_insert_with(|| Opened(Box::leak(Box::new(open(device))))).0
}

fn open(device: &Device) -> IbvContext {
    let described = Box::leak(Box::new(IbvDevice {
        ops: [0; 2],
        node_type: NODE_CA,
        transport_type: TRANSPORT_IB,
        name: text(&device.ibdev),
        dev_name: text(&format!("uverbs{}", device.index)),
        dev_path: [0; 256],
        ibdev_path: [0; 256],
    }));
    IbvContext {
        device: described,
        ops: [0; 32],
        cmd_fd: -1,
        async_fd: -1,
        num_comp_vectors: 1,
        mutex: libc::PTHREAD_MUTEX_INITIALIZER,
        abi_compat: 0,
    }
}

/// A NUL-terminated string in an array.
fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut room = [0; N];
    for (to, from) in room[..N - 1].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    room
}
