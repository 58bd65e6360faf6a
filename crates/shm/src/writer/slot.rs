//! The hot path: what a program does at each command. No system call, no lock, no allocation, no clock.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::origin::{own_pid, own_start};
use super::{Counter, Gauge, Histogram, Shared, forks, use_slot};
use crate::head::{Kind, State, halves, word_of};
use crate::histogram::BEFORE_BUCKETS;
use crate::layout::{
    GENERATION, HEAD_WORDS, IDENTITY, IDENTITY_AT, IDENTITY_FIXED, LABEL_BYTES, LIFE, OWNER, START,
    STATE, TAKEN_AT, TEXT_FIXED,
};
use crate::metric::GaugeType;
use crate::version::{Draft, Word, store_short, store_text};

/// The words of a slot of the file.
struct Places {
    cells: &'static [AtomicU64],
    head: &'static [AtomicU64; HEAD_WORDS],
    texts: [&'static [AtomicU64]; 2],
    identities: [&'static [AtomicU64]; 2],
    text_bytes: usize,
    /// Texts that are copied without a call.
    short_bytes: usize,
    labels: usize,
}

/// Longest text that is copied without a call.
const SHORT_BYTES: usize = 31;

static NOTHING: [AtomicU64; HEAD_WORDS] = [const { AtomicU64::new(0) }; HEAD_WORDS];

/// A process's or thread's place in a publisher's file. It has one writer: whoever has it. After a fork it does nothing in the child, which
/// takes one of its own.
pub struct Slot {
    /// [`forks::count`] of the process that took it. No process has `u64::MAX`.
    forks: u64,
    places: Places,
    /// Keeps `places` mapped.
    shared: Option<Arc<Shared>>,
    /// One writer: it may be sent to another thread, and not be shared.
    one_writer: PhantomData<Cell<()>>,
}

impl Slot {
    /// Does nothing.
    pub fn disabled() -> Slot {
        Slot {
            forks: u64::MAX,
            places: Places {
                cells: &[],
                head: &NOTHING,
                texts: [&[], &[]],
                identities: [&[], &[]],
                text_bytes: 0,
                short_bytes: 0,
                labels: 0,
            },
            shared: None,
            one_writer: PhantomData,
        }
    }

    /// True if the slot publishes.
    pub fn is_enabled(&self) -> bool {
        self.forks == forks::count()
    }

    /// A command begins: the slot is active with this text, of which the publisher's bytes are kept. `stamp` is the program's own, of the
    /// schema's clock; `query_id` is whatever names equal commands, or 0.
    #[inline(always)]
    pub fn begin(&mut self, kind: Kind, text: &[u8], stamp: u64, query_id: u64) {
        if !self.is_enabled() {
            return;
        }
        if text.len() > self.places.short_bytes || kind == Kind::Secret {
            return self.begin_long(kind, text, stamp, query_id);
        }
        let lengths = text.len() as u64 | (text.len() as u64) << 32;
        let (draft, words) = self.fill(kind, lengths, stamp, query_id);
        // SAFETY: a buffer has room for `text_bytes`, and `short_bytes` are not more.
        unsafe { store_short(words, text) };
        draft.publish();
    }

    /// [`Slot::begin`] for any text.
    #[inline(never)]
    fn begin_long(&mut self, kind: Kind, text: &[u8], stamp: u64, query_id: u64) {
        let stored = match kind {
            Kind::Secret => 0,
            Kind::Sql | Kind::Plain => text.len().min(self.places.text_bytes),
        };
        let lengths = stored as u64 | (text.len().min(u32::MAX as usize) as u64) << 32;
        let (draft, words) = self.fill(kind, lengths, stamp, query_id);
        store_text(words, &text[..stored]);
        draft.publish();
    }

    /// Begins a command without its text; returns the place of the text.
    #[inline(always)]
    fn fill(
        &self,
        kind: Kind,
        lengths: u64,
        stamp: u64,
        query_id: u64,
    ) -> (Draft<'static, AtomicU64>, &'static [AtomicU64]) {
        let draft = Draft::begin(&self.places.head[GENERATION], self.places.texts);
        // SAFETY: a buffer begins with its fixed part; slots that have none are not enabled.
        let (fixed, words) = unsafe { draft.buffer.split_at_unchecked(TEXT_FIXED / 8) };
        fixed[0].put(stamp);
        fixed[1].put(lengths);
        fixed[2].put(u64::from(kind.byte()) | u64::from(State::Active.byte()) << 8);
        fixed[3].put(query_id);
        (draft, words)
    }

    /// The state changes; the text stays, as that of the command that began last.
    #[inline(always)]
    pub fn state(&mut self, state: State) {
        if self.is_enabled() {
            let head = self.places.head;
            head[STATE].publish(state.word(head[GENERATION].get()));
        }
    }

    /// The command ends: the slot is idle.
    #[inline(always)]
    pub fn end(&mut self) {
        self.state(State::Idle);
    }

    /// The slot's cells: for programs that count many things at once, and look once whether they publish.
    #[inline(always)]
    pub fn cells(&mut self) -> Cells<'_> {
        Cells {
            words: match self.is_enabled() {
                true => self.places.cells,
                false => &[],
            },
            one_writer: PhantomData,
        }
    }

    /// Adds to a counter.
    #[inline]
    pub fn add(&mut self, counter: Counter, amount: u64) {
        self.cells().add(counter, amount);
    }

    /// Sets a counter that the program keeps itself, and that never falls.
    #[inline]
    pub fn set_counter(&mut self, counter: Counter, value: u64) {
        self.cells().set_counter(counter, value);
    }

    /// Sets a gauge.
    #[inline]
    pub fn set(&mut self, gauge: Gauge, value: f64) {
        self.cells().set(gauge, value);
    }

    /// A value of a histogram. One that was chosen of 64 at random has the weight 64; one that stands for itself 1.
    #[inline]
    pub fn observe(&mut self, histogram: Histogram, value: u64, weight: u64) {
        self.cells().observe(histogram, value, weight);
    }

    /// Publishes the owner of this slot: the leader of its group of processes, the start of the session by the publisher's clock
    /// (or 0), and a value for each of the schema's labels. Labels longer than 63 bytes are cut off and marked.
    pub fn identify(&mut self, leader: Option<u32>, stamp: u64, labels: &[&[u8]]) {
        self.identify_as(own_pid(), leader, stamp, labels);
    }

    /// Names the owner on behalf of another process.
    pub fn identify_as(&mut self, pid: u32, leader: Option<u32>, stamp: u64, labels: &[&[u8]]) {
        if !self.is_enabled() {
            return;
        }
        let draft = Draft::begin(&self.places.head[IDENTITY], self.places.identities);
        draft.buffer[0].put(word_of(pid, leader.unwrap_or(0)));
        draft.buffer[1].put(stamp);
        let fields = draft.buffer[IDENTITY_FIXED / 8..].chunks_exact(LABEL_BYTES / 8);
        let labels = labels.iter().copied().chain(std::iter::repeat(&[][..]));
        for (words, label) in fields.take(self.places.labels).zip(labels) {
            let mut field = [0; LABEL_BYTES];
            let stored = label.len().min(LABEL_BYTES - 1);
            let cut = if stored < label.len() { 0x80 } else { 0 };
            field[0] = stored.to_le_bytes()[0] | cut;
            field[1..=stored].copy_from_slice(&label[..stored]);
            store_text(words, &field);
        }
        draft.publish();
    }

    /// Takes a slot that is free, or whose process has ended.
    pub(super) fn take(shared: &Arc<Shared>, index: usize) -> Option<Slot> {
        let seen = AtomicU64::load(&shared.head(index)[OWNER], Ordering::Acquire);
        let [pid, _] = halves(seen);
        match pid == 0 || shared.has_ended(index, seen) {
            true => Slot::take_from(shared, index, seen),
            false => None,
        }
    }

    /// Takes a slot from the owner that was seen there; `None`: somebody else was quicker.
    pub(super) fn take_from(shared: &Arc<Shared>, index: usize, seen: u64) -> Option<Slot> {
        let head = shared.head(index);
        let taken = halves(seen)[1].wrapping_add(1);
        let mine = word_of(own_pid(), taken);
        let swapped = head[OWNER].compare_exchange(seen, mine, Ordering::AcqRel, Ordering::Relaxed);
        swapped.ok()?;
        let (places, generation) = (places(shared, index), head[GENERATION].get());
        for cell in shared.gauge_cells() {
            // A gauge belongs to the owner of the slot: the last owner's value goes.
            places.cells[cell].put(0);
        }
        head[START].put(own_start());
        head[TAKEN_AT].put(generation);
        head[IDENTITY_AT].put(head[IDENTITY].get());
        head[STATE].put(State::None.word(generation));
        // Last: from now on the owner is there.
        head[LIFE].publish(word_of(shared.life(), taken));
        use_slot(shared, index);
        Some(Slot {
            forks: forks::count(),
            places,
            shared: Some(shared.clone()),
            one_writer: PhantomData,
        })
    }
}

/// The cells of a slot.
pub struct Cells<'a> {
    words: &'a [AtomicU64],
    one_writer: PhantomData<&'a mut Slot>,
}

impl Cells<'_> {
    /// See [`Slot::add`].
    #[inline(always)]
    pub fn add(&mut self, counter: Counter, amount: u64) {
        if let Some(word) = self.words.get(counter.cell) {
            add(word, amount);
        }
    }

    /// See [`Slot::set_counter`].
    #[inline(always)]
    pub fn set_counter(&mut self, counter: Counter, value: u64) {
        if let Some(word) = self.words.get(counter.cell) {
            word.put(value);
        }
    }

    /// See [`Slot::set`].
    #[inline]
    pub fn set(&mut self, gauge: Gauge, value: f64) {
        let bits = match gauge.kind {
            GaugeType::Unsigned => value as u64,
            GaugeType::Signed => (value as i64).cast_unsigned(),
            GaugeType::Double => value.to_bits(),
        };
        if let Some(word) = self.words.get(gauge.cell) {
            word.put(bits);
        }
    }

    /// See [`Slot::observe`].
    #[inline(always)]
    pub fn observe(&mut self, histogram: Histogram, value: u64, weight: u64) {
        let bucket = histogram.cell + BEFORE_BUCKETS + histogram.buckets.index(value);
        // The first two are before it.
        if let Some(words) = self.words.get(histogram.cell..=bucket) {
            add(&words[0], 1);
            add(&words[1], value.wrapping_mul(weight));
            add(&words[words.len() - 1], weight);
        }
    }
}

#[inline(always)]
fn add(word: &AtomicU64, amount: u64) {
    word.put(word.get().wrapping_add(amount));
}

impl Drop for Slot {
    /// Gives the slot back; its counters stay.
    fn drop(&mut self) {
        if self.shared.is_some() && self.is_enabled() {
            self.state(State::Gone);
            let owner = &self.places.head[OWNER];
            owner.publish(owner.get() >> 32 << 32);
        }
    }
}

fn places(shared: &Shared, index: usize) -> Places {
    let (layout, room) = (&shared.layout, &shared.room);
    // SAFETY: the slot keeps `shared`, and so the mapping, as long as it has these.
    let words = unsafe { shared.mapping.words_unbound() };
    let part = |at: usize, bytes: usize| &words[at / 8..(at + bytes) / 8];
    let halves = |at: usize, stride: usize| {
        let at = at + index * stride;
        [part(at, stride / 2), part(at + stride / 2, stride / 2)]
    };
    let head = part(layout.heads + index * HEAD_WORDS * 8, HEAD_WORDS * 8);
    Places {
        cells: part(layout.cells + index * layout.cell_stride, room.cells * 8),
        head: head.first_chunk().unwrap_or(&NOTHING),
        texts: halves(layout.texts, layout.text_stride),
        identities: halves(layout.identities, layout.identity_stride),
        text_bytes: room.text_bytes,
        short_bytes: room.text_bytes.min(SHORT_BYTES),
        labels: room.labels,
    }
}
