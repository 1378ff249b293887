use super::*;
use crate::abi::buf_inventory::*;
use crate::abi::buf_pool::*;
use crate::abi::mmap::*;
use crate::inventory::Inventory;
use crate::mmap::Mmap;
use crate::pool::Pool;
use crate::testing::{fails, ok};

const NO_BUF: *const Buf = ptr::null();

/// A started map and inventory.
struct Bench {
    memory: Vec<u8>,
    mmap: *const Mmap,
    inventory: *const Inventory,
}

impl Bench {
    fn new(elements: usize) -> Self {
        let memory = vec![0; 4096];
        let (mut mmap, mut inventory) = (ptr::null(), ptr::null());
        ok! {
            doca_mmap_create(&mut mmap);
            doca_mmap_set_memrange(mmap, memory.as_ptr() as usize, memory.len());
            doca_mmap_start(mmap);
            doca_buf_inventory_create(elements, &mut inventory);
            doca_buf_inventory_start(inventory);
        }
        Bench { memory, mmap, inventory }
    }

    fn base(&self) -> usize {
        self.memory.as_ptr() as usize
    }

    /// A buffer with `len` bytes of room and no data, at an offset.
    fn room(&self, offset: usize, len: usize) -> *const Buf {
        let (mut buf, addr) = (NO_BUF, self.base() + offset);
        ok!(doca_buf_inventory_buf_get_by_args(self.inventory, self.mmap, addr, len, addr, 0usize, &mut buf););
        buf
    }

    fn num_free(&self) -> u32 {
        let mut free = 0;
        ok!(doca_buf_inventory_get_num_free_elements(self.inventory, &mut free););
        free
    }

    fn done(self) {
        ok! {
            doca_buf_inventory_stop(self.inventory);
            doca_buf_inventory_destroy(self.inventory);
            doca_mmap_destroy(self.mmap);
        }
    }
}

fn give_back(buf: *const Buf) {
    ok!(doca_buf_dec_refcount(buf, ptr::null_mut()););
}

fn data(buf: *const Buf) -> (usize, usize) {
    let (mut data, mut len) = (0, 0);
    ok! {
        doca_buf_get_data(buf, &mut data);
        doca_buf_get_data_len(buf, &mut len);
    }
    (data, len)
}

fn list(head: *const Buf) -> Vec<*const Buf> {
    let next = |buf: &*const Buf| {
        let mut next = NO_BUF;
        ok!(doca_buf_get_next_in_list(*buf, &mut next););
        (!next.is_null()).then_some(next)
    };
    std::iter::successors(Some(head), next).collect()
}

#[test]
fn windows_lie_inside_the_map() {
    let bench = Bench::new(4);
    let (base, size) = (bench.base(), bench.memory.len());
    let mut buf = NO_BUF;
    for (addr, len) in [(base - 1, 8), (base + size - 7, 8), (base + size + 1, 0), (0, 8), (base, usize::MAX)]
    {
        fails!(INVALID_VALUE doca_buf_inventory_buf_get_by_args(bench.inventory, bench.mmap, addr, len, addr, 0usize, &mut buf););
    }
    for (data, len) in [(base - 1, 1), (base, 9), (base + 8, 1), (base + 9, 0), (base + 1, usize::MAX)] {
        fails!(INVALID_VALUE doca_buf_inventory_buf_get_by_args(bench.inventory, bench.mmap, base, 8usize, data, len, &mut buf););
    }
    assert_eq!((buf, bench.num_free()), (NO_BUF, 4));
    give_back(bench.room(size, 0));
    give_back(bench.room(0, size));
    fails! {
        INVALID_VALUE doca_buf_inventory_buf_get_by_args(ptr::null(), bench.mmap, base, 8usize, base, 0usize, &mut buf);
        INVALID_VALUE doca_buf_inventory_buf_get_by_args(bench.inventory, ptr::null(), base, 8usize, base, 0usize, &mut buf);
        INVALID_VALUE doca_buf_inventory_buf_get_by_args(bench.inventory, bench.mmap, base, 8usize, base, 0usize, ptr::null_mut());
    }
    bench.done();
}

#[test]
fn inventories_lend_exactly_their_elements() {
    let bench = Bench::new(2);
    let base = bench.base();
    let (first, second) = (bench.room(0, 8), bench.room(8, 8));
    let mut buf = NO_BUF;
    fails! {
        NO_MEMORY doca_buf_inventory_buf_get_by_args(bench.inventory, bench.mmap, base, 8usize, base, 0usize, &mut buf);
        IN_USE doca_buf_inventory_destroy(bench.inventory);
        INVALID_VALUE doca_buf_inventory_expand(bench.inventory, 0u32);
    }
    ok!(doca_buf_inventory_expand(bench.inventory, 1u32););
    let third = bench.room(16, 8);
    let mut total = 0;
    ok! {
        doca_buf_inventory_get_num_elements(bench.inventory, &mut total);
        doca_buf_inventory_stop(bench.inventory);
    }
    assert_eq!((total, bench.num_free()), (3, 0));
    for buf in [first, second, third] {
        give_back(buf);
    }
    assert_eq!(bench.num_free(), 3);
    fails! {
        BAD_STATE doca_buf_inventory_buf_get_by_args(bench.inventory, bench.mmap, base, 8usize, base, 0usize, &mut buf);
        BAD_STATE doca_buf_inventory_expand(bench.inventory, 1u32);
        INVALID_VALUE doca_buf_inventory_create(0usize, &mut ptr::null());
        INVALID_VALUE doca_buf_inventory_create(1usize, ptr::null_mut());
        NO_MEMORY doca_buf_inventory_create(usize::MAX, &mut ptr::null());
        INVALID_VALUE doca_buf_inventory_destroy(ptr::null());
    }
    bench.done();
}

#[test]
fn maps_must_be_started() {
    let bench = Bench::new(1);
    let base = bench.base();
    ok!(doca_mmap_stop(bench.mmap););
    fails!(BAD_STATE doca_buf_inventory_buf_get_by_args(bench.inventory, bench.mmap, base, 8usize, base, 0usize, &mut ptr::null()););
    bench.done();
}

#[test]
fn inventory_user_data_is_kept_in_any_state() {
    let bench = Bench::new(1);
    let mut data = 9;
    ok!(doca_buf_inventory_get_user_data(bench.inventory, &mut data););
    assert_eq!(data, 0);
    ok! {
        doca_buf_inventory_set_user_data(bench.inventory, 5u64);
        doca_buf_inventory_stop(bench.inventory);
        doca_buf_inventory_set_user_data(bench.inventory, 6u64);
        doca_buf_inventory_get_user_data(bench.inventory, &mut data);
    }
    assert_eq!(data, 6);
    bench.done();
}

#[test]
fn data_move_inside_the_window() {
    let bench = Bench::new(1);
    let (buf, base) = (bench.room(64, 32), bench.base() + 64);
    let (mut head, mut len) = (0, 0);
    ok! {
        doca_buf_get_head(buf, &mut head);
        doca_buf_get_len(buf, &mut len);
        doca_buf_set_data(buf, base + 8, 24usize);
    }
    assert_eq!((head, len, data(buf)), (base, 32, (base + 8, 24)));
    ok!(doca_buf_set_data_len(buf, 4usize););
    assert_eq!(data(buf), (base + 8, 4));
    fails! {
        INVALID_VALUE doca_buf_set_data(buf, base + 8, 25usize);
        INVALID_VALUE doca_buf_set_data(buf, base - 1, 1usize);
        INVALID_VALUE doca_buf_set_data_len(buf, 25usize);
        INVALID_VALUE doca_buf_get_data(NO_BUF, &mut head);
        INVALID_VALUE doca_buf_get_data(buf, ptr::null_mut());
    }
    ok!(doca_buf_reset_data_len(buf););
    assert_eq!(data(buf), (base + 8, 0));
    give_back(buf);
    bench.done();
}

#[test]
fn owners_are_counted_to_65535() {
    let bench = Bench::new(1);
    let (buf, mut before, mut count) = (bench.room(0, 8), 0, 0);
    for expected in 1..u16::MAX {
        ok!(doca_buf_inc_refcount(buf, &mut before););
        assert_eq!(before, expected);
    }
    fails!(TOO_BIG doca_buf_inc_refcount(buf, ptr::null_mut()););
    for expected in (1..=u16::MAX).rev() {
        ok!(doca_buf_dec_refcount(buf, &mut before););
        assert_eq!(before, expected);
    }
    ok!(doca_buf_get_refcount(buf, &mut count););
    assert_eq!(count, 0);
    fails! {
        BAD_STATE doca_buf_dec_refcount(buf, ptr::null_mut());
        BAD_STATE doca_buf_inc_refcount(buf, ptr::null_mut());
        INVALID_VALUE doca_buf_get_len(buf, &mut 0);
        BAD_STATE doca_buf_inventory_buf_reuse_by_addr(buf, bench.base(), 8usize);
    }
    bench.done();
}

#[test]
fn a_buffer_in_flight_cannot_be_given_back() {
    let bench = Bench::new(2);
    let (buf, other) = (bench.room(0, 8), bench.room(8, 8));
    // SAFETY: out.
    let flying = unsafe { &*buf };
    flying.enter_flight(false);
    fails! {
        NOT_PERMITTED doca_buf_dec_refcount(buf, ptr::null_mut());
        NOT_PERMITTED doca_buf_chain_list(buf, other);
        NOT_PERMITTED doca_buf_chain_list(other, buf);
        NOT_PERMITTED doca_buf_inventory_buf_reuse_by_addr(buf, bench.base(), 8usize);
    }
    flying.leave_flight();
    give_back(buf);
    give_back(other);

    // Unless its task lets it go: it goes when the task has ended.
    let buf = bench.room(0, 8);
    // SAFETY: out.
    let flying = unsafe { &*buf };
    flying.enter_flight(true);
    give_back(buf);
    assert_eq!(flying.refcount(), 1);
    flying.leave_flight();
    assert_eq!(flying.refcount(), 0);
    bench.done();
}

#[test]
fn lists_are_chained_cut_and_given_back_whole() {
    let bench = Bench::new(5);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|slot| bench.room(slot * 8, 8));
    ok! {
        doca_buf_chain_list(a, b);
        doca_buf_chain_list(c, d);
        doca_buf_chain_list(a, c);
        doca_buf_chain_list_tail(a, d, e);
    }
    assert_eq!(list(a), [a, b, c, d, e]);
    let (mut len, mut last, mut flags) = (0, NO_BUF, [9; 6]);
    ok! {
        doca_buf_get_list_len(a, &mut len);
        doca_buf_get_last_in_list(b, &mut last);
        doca_buf_is_first_in_list(a, &mut flags[0]);
        doca_buf_is_first_in_list(c, &mut flags[1]);
        doca_buf_is_last_in_list(e, &mut flags[2]);
        doca_buf_is_last_in_list(d, &mut flags[3]);
        doca_buf_is_in_list(a, &mut flags[4]);
        doca_buf_is_in_list(e, &mut flags[5]);
    }
    assert_eq!((len, last, flags), (5, e, [1, 0, 1, 0, 1, 1]));
    fails! {
        NOT_PERMITTED doca_buf_get_list_len(b, &mut len);
        NOT_PERMITTED doca_buf_inc_refcount(b, ptr::null_mut());
        NOT_PERMITTED doca_buf_dec_refcount(e, ptr::null_mut());
        NOT_PERMITTED doca_buf_inventory_buf_reuse_by_data(a, bench.base(), 8usize);
        INVALID_VALUE doca_buf_unchain_list(a, a);
        INVALID_VALUE doca_buf_unchain_list(b, c);
    }
    ok! {
        doca_buf_inc_refcount(a, ptr::null_mut());
        doca_buf_unchain_list(a, d);
    }
    assert_eq!((list(a), list(d)), (vec![a, b, c], vec![d, e]));
    let mut count = 0;
    ok!(doca_buf_get_refcount(d, &mut count););
    assert_eq!(count, 1);
    fails!(INVALID_VALUE doca_buf_unchain_list(a, d););
    give_back(a);
    assert_eq!(bench.num_free(), 0);
    give_back(a);
    assert_eq!(bench.num_free(), 3);
    give_back(d);
    bench.done();
}

#[test]
fn only_heads_with_one_owner_can_be_appended() {
    let bench = Bench::new(4);
    let [a, b, c, d] = [0, 1, 2, 3].map(|slot| bench.room(slot * 8, 8));
    ok! {
        doca_buf_inc_refcount(b, ptr::null_mut());
        doca_buf_chain_list(c, d);
    }
    fails! {
        NOT_PERMITTED doca_buf_chain_list(a, b);
        NOT_PERMITTED doca_buf_chain_list(a, a);
        NOT_PERMITTED doca_buf_chain_list(a, d);
        NOT_PERMITTED doca_buf_chain_list(d, a);
        NOT_PERMITTED doca_buf_chain_list_tail(c, c, a);
        NOT_PERMITTED doca_buf_chain_list_tail(c, b, a);
        INVALID_VALUE doca_buf_chain_list(a, NO_BUF);
    }
    let mut flag = 9;
    ok!(doca_buf_is_in_list(a, &mut flag););
    assert_eq!(flag, 0);
    give_back(b);
    for head in [a, b, c] {
        give_back(head);
    }
    bench.done();
}

#[test]
fn duplicates_share_the_memory_and_not_the_descriptor() {
    let bench = Bench::new(5);
    let (a, b, mut copy) = (bench.room(0, 8), bench.room(8, 8), NO_BUF);
    ok! {
        doca_buf_set_data(b, bench.base() + 10, 3usize);
        doca_buf_chain_list(a, b);
    }
    fails!(NOT_PERMITTED doca_buf_inventory_buf_dup(bench.inventory, b, &mut copy););
    ok!(doca_buf_inventory_buf_dup(bench.inventory, a, &mut copy););
    let copies = list(copy);
    assert_eq!(copies.len(), 2);
    assert!(!copies.contains(&a) && !copies.contains(&b));
    assert_eq!(data(copies[1]), (bench.base() + 10, 3));
    assert_eq!(bench.num_free(), 1);
    fails!(NO_MEMORY doca_buf_inventory_buf_dup(bench.inventory, a, &mut copy););
    assert_eq!(bench.num_free(), 1);
    ok!(doca_buf_inventory_stop(bench.inventory););
    fails!(BAD_STATE doca_buf_inventory_buf_dup(bench.inventory, a, &mut copy););
    give_back(a);
    give_back(copy);
    bench.done();
}

#[test]
fn a_buffer_can_be_pointed_elsewhere() {
    let bench = Bench::new(1);
    let (buf, base) = (bench.room(0, 8), bench.base());
    ok!(doca_buf_inventory_buf_reuse_by_data(buf, base + 100, 20usize););
    assert_eq!(data(buf), (base + 100, 20));
    ok!(doca_buf_inventory_buf_reuse_by_addr(buf, base + 50, 30usize););
    let (mut head, mut len) = (0, 0);
    ok! {
        doca_buf_get_head(buf, &mut head);
        doca_buf_get_len(buf, &mut len);
    }
    assert_eq!((head, len, data(buf)), (base + 50, 30, (base + 50, 0)));
    fails!(INVALID_VALUE doca_buf_inventory_buf_reuse_by_addr(buf, base, 4097usize););
    give_back(buf);
    bench.done();
}

#[test]
fn pools_cut_a_map_into_aligned_pieces() {
    let bench = Bench::new(1);
    let (mut pool, mut alignment, mut free) = (ptr::null(), 0, 0);
    ok! {
        doca_buf_pool_create(3usize, 100usize, bench.mmap, &mut pool);
        doca_buf_pool_get_element_alignment(pool, &mut alignment);
    }
    assert_eq!(alignment, 1);
    fails! {
        BAD_STATE doca_buf_pool_buf_alloc(pool, &mut ptr::null());
        INVALID_VALUE doca_buf_pool_set_element_alignment(pool, 48usize);
        INVALID_VALUE doca_buf_pool_set_element_alignment(pool, 0usize);
        BAD_STATE doca_buf_pool_stop(pool);
    }
    ok! {
        doca_buf_pool_set_element_alignment(pool, 64usize);
        doca_buf_pool_start(pool);
    }
    let bufs: Vec<*const Buf> = (0..3)
        .map(|_| {
            let mut buf = NO_BUF;
            ok!(doca_buf_pool_buf_alloc(pool, &mut buf););
            buf
        })
        .collect();
    let first = bench.base().next_multiple_of(64);
    for (position, buf) in bufs.iter().enumerate() {
        let mut len = 0;
        ok!(doca_buf_get_len(*buf, &mut len););
        assert_eq!((data(*buf), len), ((first + position * 128, 0), 100));
    }
    fails! {
        EMPTY doca_buf_pool_buf_alloc(pool, &mut ptr::null());
        IN_USE doca_buf_pool_stop(pool);
        IN_USE doca_buf_pool_destroy(pool);
        BAD_STATE doca_buf_pool_set_element_alignment(pool, 1usize);
        BAD_STATE doca_buf_pool_set_user_data(pool, 1u64);
        BAD_STATE doca_buf_pool_start(pool);
        NOT_PERMITTED doca_buf_inventory_buf_reuse_by_addr(bufs[0], bench.base(), 8usize);
        NOT_PERMITTED doca_mmap_stop(bench.mmap);
    }
    ok! {
        doca_buf_set_data(bufs[1], first + 130, 5usize);
        doca_buf_dec_refcount(bufs[1], ptr::null_mut());
        doca_buf_pool_get_num_free_elements(pool, &mut free);
    }
    assert_eq!(free, 1);
    let mut again = NO_BUF;
    ok!(doca_buf_pool_buf_alloc(pool, &mut again););
    assert_eq!(data(again), (first + 128, 0));
    for buf in [bufs[0], again, bufs[2]] {
        give_back(buf);
    }
    ok! {
        doca_buf_pool_stop(pool);
        doca_buf_pool_destroy(pool);
    }
    bench.done();
}

#[test]
fn pools_need_a_started_map_that_is_large_enough() {
    let bench = Bench::new(1);
    let mut pool: *const Pool = ptr::null();
    let mut bare = ptr::null();
    ok!(doca_mmap_create(&mut bare););
    fails! {
        INVALID_VALUE doca_buf_pool_create(1usize, 8usize, bare, &mut pool);
        INVALID_VALUE doca_buf_pool_create(0usize, 8usize, bench.mmap, &mut pool);
        INVALID_VALUE doca_buf_pool_create(1usize, 0usize, bench.mmap, &mut pool);
        INVALID_VALUE doca_buf_pool_create(1usize, 8usize, ptr::null::<Mmap>(), &mut pool);
        INVALID_VALUE doca_buf_pool_create(1usize, 8usize, bench.mmap, ptr::null_mut());
    }
    ok!(doca_buf_pool_create(2usize, 2048usize, bench.mmap, &mut pool););
    ok! {
        doca_buf_pool_start(pool);
        doca_buf_pool_destroy(pool);
        doca_buf_pool_create(2usize, 2049usize, bench.mmap, &mut pool);
    }
    fails!(INITIALIZATION doca_buf_pool_start(pool););
    ok!(doca_buf_pool_destroy(pool););
    ok!(doca_buf_pool_create(1usize, 8usize, bench.mmap, &mut pool););
    ok!(doca_mmap_stop(bench.mmap););
    fails!(BAD_STATE doca_buf_pool_start(pool););
    let (mut total, mut data) = (0, 0);
    ok! {
        doca_buf_pool_set_user_data(pool, 3u64);
        doca_buf_pool_get_user_data(pool, &mut data);
        doca_buf_pool_get_num_elements(pool, &mut total);
        doca_buf_pool_destroy(pool);
        doca_mmap_destroy(bare);
    }
    assert_eq!((total, data), (1, 3));
    bench.done();
}

/// Random chaining, cutting and giving back, against lists of positions.
#[test]
fn lists_follow_a_model() {
    const BUFS: usize = 8;
    let bench = Bench::new(BUFS);
    let mut seed = 1u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    let mut model: Vec<Vec<*const Buf>> = Vec::new();
    for _ in 0..20_000 {
        let out: usize = model.iter().map(Vec::len).sum();
        match random(4) {
            0 if out < BUFS => model.push(vec![bench.room(random(512) * 8, 8)]),
            1 if model.len() > 1 => {
                let appended = model.swap_remove(random(model.len()));
                let list = random(model.len());
                ok!(doca_buf_chain_list(model[list][0], appended[0]););
                model[list].extend(appended);
            }
            2 if model.iter().any(|list| list.len() > 1) => {
                let list = model.iter().position(|list| list.len() > 1).unwrap();
                let at = 1 + random(model[list].len() - 1);
                ok!(doca_buf_unchain_list(model[list][0], model[list][at]););
                let rest = model[list].split_off(at);
                model.push(rest);
            }
            3 if !model.is_empty() => give_back(model.swap_remove(random(model.len()))[0]),
            _ => continue,
        }
        for bufs in &model {
            assert_eq!(list(bufs[0]), *bufs);
        }
        assert_eq!(bench.num_free() as usize, BUFS - model.iter().map(Vec::len).sum::<usize>());
    }
    for bufs in model {
        give_back(bufs[0]);
    }
    bench.done();
}
