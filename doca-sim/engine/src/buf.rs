//! Buffers: windows on memory maps, chained into lists, and the shelves that their descriptors come from.
//!
//! Descriptors are made in advance and never move: a [`Shelf`] lends them out and takes them back, which
//! costs neither an allocation nor a search. A descriptor on its shelf has reference count 0.
//!
//! Buffers belong to one thread, as in DOCA.

use crate::code::{Code, Res};
use crate::entry::{Object, Tag};
use crate::mmap::Mmap;
use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;

/// `struct doca_buf`: the window `[head, head + len)` of a map and the data `[data, data + data_len)` in it.
///
/// ```text
/// head            data                data + data_len        head + len
///  |---headroom----|######## data ########|-------tailroom----------|
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct Buf {
    tag: Tag,
    refcount: Cell<u16>,
    in_flight: Cell<u32>,
    /// The task that uses it lets its program give it back.
    yields: Cell<bool>,
    /// It was given back in flight: it goes when the flight ends.
    doomed: Cell<bool>,
    shelf: *const Shelf,
    /// A share in the map (from `Arc::into_raw`) while the descriptor is out.
    mmap: Cell<*const Mmap>,
    head: Cell<usize>,
    len: Cell<usize>,
    data: Cell<usize>,
    data_len: Cell<usize>,
    prev: Cell<*const Buf>,
    /// The next element of the list; on the shelf, the next free descriptor.
    next: Cell<*const Buf>,
}

// SAFETY: repr(C) with the tag of its own type first.
unsafe impl Object for Buf {
    const TAG: u32 = u32::from_le_bytes(*b"buf.");
}

/// What a buffer shows of its map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Start of the window.
    pub head: usize,
    /// Bytes of the window.
    pub len: usize,
    /// Start of the data.
    pub data: usize,
    /// Bytes of data.
    pub data_len: usize,
}

impl Window {
    /// Room for data to come.
    pub fn empty(addr: usize, len: usize) -> Self {
        Window { head: addr, len, data: addr, data_len: 0 }
    }

    /// Full of data.
    pub fn full(addr: usize, len: usize) -> Self {
        Window { head: addr, len, data: addr, data_len: len }
    }

    /// INVALID_VALUE unless window and data lie where they must; BAD_STATE for a stopped map.
    fn check(&self, mmap: &Mmap) -> Res {
        if !mmap.is_started() {
            crate::log::error!("the memory map of a buffer is not started; call doca_mmap_start first");
            return Err(Code::BAD_STATE);
        }
        if mmap.contains(self.head, self.len) && self.holds(self.data, self.data_len) {
            return Ok(());
        }
        crate::log::error!("{self:x?} does not lie inside its map, {:x?}", mmap.range());
        Err(Code::INVALID_VALUE)
    }

    fn holds(&self, data: usize, data_len: usize) -> bool {
        matches!(data.checked_sub(self.head), Some(skip) if skip <= self.len && data_len <= self.len - skip)
    }
}

impl Buf {
    fn on_shelf(shelf: *const Shelf) -> Self {
        Buf {
            tag: Tag::live::<Self>(),
            refcount: Cell::new(0),
            in_flight: Cell::new(0),
            yields: Cell::new(false),
            doomed: Cell::new(false),
            shelf,
            mmap: Cell::new(ptr::null()),
            head: Cell::new(0),
            len: Cell::new(0),
            data: Cell::new(0),
            data_len: Cell::new(0),
            prev: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
        }
    }

    /// Lends a descriptor out.
    fn lend(&self, share: Arc<Mmap>, window: Window) {
        self.mmap.set(Arc::into_raw(share));
        self.refcount.set(1);
        self.prev.set(ptr::null());
        self.next.set(ptr::null());
        self.set_window(window);
    }

    /// Puts a descriptor that is out back on its shelf.
    fn shelve(&self) {
        // SAFETY: the descriptor is out, so the pointer is the share that `lend` stored; it is forgotten here.
        drop(unsafe { Arc::from_raw(self.mmap.replace(ptr::null())) });
        self.refcount.set(0);
        self.prev.set(ptr::null());
        // SAFETY: a shelf outlives its descriptors.
        unsafe { &*self.shelf }.push(self);
    }

    /// The map that the buffer is a window of. A buffer that was given back is one of [`Mmap::nowhere`].
    pub fn mmap(&self) -> &Mmap {
        // SAFETY: NULL, or the share that `lend` stored and that lives until `shelve`. A caller that keeps the
        // reference beyond that has let the buffer go while using it, which is what `enter_flight` prevents.
        unsafe { self.mmap.get().as_ref() }.unwrap_or_else(Mmap::nowhere)
    }

    /// Start of the window, in the address space of the process whose memory it is.
    pub fn head(&self) -> usize {
        self.head.get()
    }

    /// Bytes of the window.
    pub fn len(&self) -> usize {
        self.len.get()
    }

    /// Start of the data.
    pub fn data(&self) -> usize {
        self.data.get()
    }

    /// Bytes of data.
    pub fn data_len(&self) -> usize {
        self.data_len.get()
    }

    /// Bytes behind the data that can still be filled.
    pub fn room(&self) -> usize {
        self.head() + self.len() - (self.data() + self.data_len())
    }

    /// Where the buffer is, as a whole.
    pub fn window(&self) -> Window {
        Window { head: self.head(), len: self.len(), data: self.data(), data_len: self.data_len() }
    }

    fn set_window(&self, window: Window) {
        self.head.set(window.head);
        self.len.set(window.len);
        self.data.set(window.data);
        self.data_len.set(window.data_len);
    }

    /// Moves the data. INVALID_VALUE if it would leave the window.
    pub fn set_data(&self, data: usize, data_len: usize) -> Res {
        if !self.window().holds(data, data_len) {
            crate::log::error!("{data_len} bytes of data at {data:#x} are not inside {:x?}", self.window());
            return Err(Code::INVALID_VALUE);
        }
        self.data.set(data);
        self.data_len.set(data_len);
        Ok(())
    }

    /// Sets the number of bytes of data. INVALID_VALUE if it would leave the window.
    pub fn set_data_len(&self, data_len: usize) -> Res {
        self.set_data(self.data(), data_len)
    }

    /// How many owners the buffer has; 0 on the shelf.
    pub fn refcount(&self) -> u16 {
        self.refcount.get()
    }

    /// Whether the buffer is the first of its list; a lone buffer is.
    pub fn is_head(&self) -> bool {
        self.prev.get().is_null()
    }

    /// The next element of the list.
    pub fn next(&self) -> Option<&Buf> {
        if self.refcount() == 0 {
            return None;
        }
        // SAFETY: NULL, or an element of the same list. Only the head of a list can be given back, with all
        // its elements, and descriptors stay where they are until all of a shelf are back.
        unsafe { self.next.get().as_ref() }
    }

    /// This buffer and those behind it.
    pub fn elements(&self) -> impl Iterator<Item = &Buf> {
        std::iter::successors(Some(self), |buf| buf.next())
    }

    /// Number of [`elements`](Self::elements).
    pub fn list_len(&self) -> u32 {
        self.elements().count() as u32
    }

    /// The last of [`elements`](Self::elements).
    pub fn last(&self) -> &Buf {
        self.elements().last().unwrap_or(self)
    }

    /// A task that was submitted uses the list of this head from now on: it cannot be rechained, nor given back, unless
    /// the task `yields`.
    pub fn enter_flight(&self, yields: bool) {
        self.yields.set(yields);
        self.in_flight.set(self.in_flight.get() + 1);
    }

    /// Such a task is done.
    pub fn leave_flight(&self) {
        self.in_flight.set(self.in_flight.get() - 1);
        if self.in_flight.get() == 0 && self.doomed.replace(false) {
            self.shelve_list();
        }
    }

    /// NOT_PERMITTED for an inner element of a list, BAD_STATE for a buffer that was given back.
    fn check_head(&self) -> Res {
        match self.refcount() {
            0 => Err(Code::BAD_STATE),
            _ if !self.is_head() => Err(Code::NOT_PERMITTED),
            _ => Ok(()),
        }
    }

    /// NOT_PERMITTED while a task uses the list.
    fn check_at_rest(&self) -> Res {
        if self.in_flight.get() == 0 {
            return Ok(());
        }
        crate::log::error!("the buffer belongs to a task in flight");
        Err(Code::NOT_PERMITTED)
    }

    /// Adds an owner; gives the number before. TOO_BIG when there are 65535.
    pub fn increment(&self) -> Res<u16> {
        self.check_head()?;
        let before = self.refcount();
        self.refcount.set(before.checked_add(1).ok_or(Code::TOO_BIG)?);
        Ok(before)
    }

    /// Removes an owner; gives the number before. Without owners, each element of the list goes back to its
    /// shelf.
    pub fn decrement(&self) -> Res<u16> {
        self.check_head()?;
        let before = self.refcount();
        if before > 1 {
            self.refcount.set(before - 1);
            return Ok(before);
        }
        if self.in_flight.get() > 0 && self.yields.get() {
            self.doomed.set(true);
            return Ok(before);
        }
        self.check_at_rest()?;
        self.shelve_list();
        Ok(before)
    }

    fn shelve_list(&self) {
        let mut rest = Some(self);
        while let Some(buf) = rest {
            rest = buf.next();
            buf.shelve();
        }
    }

    /// Appends a list behind `tail`, the last element of this one. The owner of this list now owns all.
    pub fn chain(&self, tail: &Buf, list: &Buf) -> Res {
        let parts_fit = self.refcount() > 0
            && self.is_head()
            && ptr::eq(self.last(), tail)
            && list.is_head()
            && list.refcount() == 1
            && !ptr::eq(self, list);
        if !parts_fit {
            return Err(Code::NOT_PERMITTED);
        }
        self.check_at_rest()?;
        list.check_at_rest()?;
        tail.next.set(list);
        list.prev.set(tail);
        Ok(())
    }

    /// Cuts this list before `list`, which becomes the head of its own, with one owner.
    pub fn unchain(&self, list: &Buf) -> Res {
        let inner =
            self.refcount() > 0 && self.is_head() && self.elements().skip(1).any(|buf| ptr::eq(buf, list));
        // SAFETY: NULL, or the element before in the same list; see `next`.
        let before = unsafe { list.prev.get().as_ref() }.filter(|_| inner).ok_or(Code::INVALID_VALUE)?;
        self.check_at_rest()?;
        before.next.set(ptr::null());
        list.prev.set(ptr::null());
        Ok(())
    }

    /// Points the buffer at another part of its map. NOT_PERMITTED for elements of lists and of pools.
    pub fn retarget(&self, window: Window) -> Res {
        let mmap = self.mmap();
        // SAFETY: a shelf outlives its descriptors.
        let fixed = unsafe { &*self.shelf }.fixed;
        if fixed || !self.is_head() || self.next().is_some() {
            return Err(Code::NOT_PERMITTED);
        }
        self.check_at_rest()?;
        window.check(mmap)?;
        self.set_window(window);
        Ok(())
    }
}

/// Descriptors made in advance, which know their shelf by its address.
#[derive(Debug)]
pub struct Shelf {
    chunks: RefCell<Vec<NonNull<[Buf]>>>,
    free: Cell<*const Buf>,
    size: Cell<u32>,
    num_free: Cell<u32>,
    /// Whether each descriptor has a window of its own for good, as in a pool.
    fixed: bool,
}

impl Shelf {
    /// Most descriptors of a shelf.
    pub const MAX: usize = 1 << 24;

    /// A shelf of `number` descriptors, which get a window for good if `fixed`. (Not in a `Box`: that would claim to be
    /// the only way to the shelf, and its descriptors know another.)
    pub fn stocked(number: usize, fixed: bool) -> Res<Rc<Self>> {
        let shelf = Rc::new(Shelf {
            chunks: RefCell::default(),
            free: Cell::new(ptr::null()),
            size: Cell::new(0),
            num_free: Cell::new(0),
            fixed,
        });
        shelf.grow(number)?;
        Ok(shelf)
    }

    /// Makes descriptors. NO_MEMORY beyond [`Shelf::MAX`].
    pub fn grow(&self, number: usize) -> Res {
        if number > Self::MAX - self.size.get() as usize {
            return Err(Code::NO_MEMORY);
        }
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(number).map_err(|_| Code::NO_MEMORY)?;
        chunk.extend((0..number).map(|_| Buf::on_shelf(self)));
        let chunk = NonNull::from(Box::leak(chunk.into_boxed_slice()));
        self.chunks.borrow_mut().push(chunk);
        // SAFETY: leaked just now, and freed only by this shelf's drop.
        for buf in unsafe { chunk.as_ref() }.iter().rev() {
            self.push(buf);
        }
        self.size.set(self.size.get() + number as u32);
        Ok(())
    }

    /// How many descriptors there are.
    pub fn size(&self) -> u32 {
        self.size.get()
    }

    /// How many of them are here.
    pub fn num_free(&self) -> u32 {
        self.num_free.get()
    }

    /// Whether all of them are here.
    pub fn is_complete(&self) -> bool {
        self.size() == self.num_free()
    }

    fn push(&self, buf: &Buf) {
        buf.next.set(self.free.replace(buf));
        self.num_free.set(self.num_free() + 1);
    }

    fn pop(&self) -> Option<&Buf> {
        // SAFETY: NULL, or one of our descriptors, which live as long as the shelf.
        let buf = unsafe { self.free.get().as_ref() }?;
        self.free.set(buf.next.get());
        self.num_free.set(self.num_free() - 1);
        Some(buf)
    }

    /// Lends a buffer over a window of a map. NO_MEMORY when all descriptors are out.
    pub fn lend(&self, mmap: &Mmap, window: Window) -> Res<&Buf> {
        window.check(mmap)?;
        let share = mmap.share()?;
        let buf = self.pop().ok_or(Code::NO_MEMORY)?;
        buf.lend(share, window);
        Ok(buf)
    }

    /// Lends a buffer over the window that a descriptor has for good. EMPTY when all descriptors are out.
    pub fn lend_fixed(&self, share: Arc<Mmap>) -> Res<&Buf> {
        let buf = self.pop().ok_or(Code::EMPTY)?;
        buf.lend(share, Window::empty(buf.head(), buf.len()));
        Ok(buf)
    }

    /// Gives each descriptor its window, in the order of lending. To be called when all are here.
    pub fn furnish(&self, windows: impl Iterator<Item = Window>) {
        let mut next = self.free.get();
        for window in windows {
            // SAFETY: NULL, or one of our descriptors, which live as long as the shelf.
            let Some(buf) = (unsafe { next.as_ref() }) else { break };
            buf.set_window(window);
            next = buf.next.get();
        }
    }

    /// Copies of the descriptors of a list, over the same memory. NO_MEMORY if there are too few.
    pub fn duplicate(&self, source: &Buf) -> Res<&Buf> {
        let mmaps_run = source.elements().all(|buf| buf.mmap().is_started());
        if !mmaps_run {
            return Err(Code::BAD_STATE);
        }
        if self.num_free() < source.list_len() {
            return Err(Code::NO_MEMORY);
        }
        let head = self.lend(source.mmap(), source.window())?;
        let mut tail = head;
        for element in source.elements().skip(1) {
            let copy = self.lend(element.mmap(), element.window())?;
            head.chain(tail, copy)?;
            tail = copy;
        }
        Ok(head)
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        for chunk in self.chunks.get_mut().drain(..) {
            // SAFETY: leaked from a box by `grow`, and each once in the list.
            let bufs = unsafe { Box::from_raw(chunk.as_ptr()) };
            for buf in &bufs {
                buf.tag.kill();
            }
        }
    }
}
