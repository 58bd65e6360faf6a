//! Two buffers and a generation: how something longer than a word is written so that its last complete version can be read at any
//! moment, also when the writer died in the middle. The rules are in `docs/formats/shm.md` ("Words"); loom and Miri go through them.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::layout::HEAD_WORDS;

/// Copies that are tried before a slot counts as busy.
pub(crate) const TRIES: usize = 8;

/// A word of the file: the machine's, or loom's.
pub(crate) trait Word {
    /// Relaxed.
    fn get(&self) -> u64;
    /// Relaxed.
    fn put(&self, value: u64);
    /// With release semantics.
    fn publish(&self, value: u64);
    fn release_fence();
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        AtomicU64::load(self, Ordering::Relaxed)
    }

    #[inline(always)]
    fn put(&self, value: u64) {
        AtomicU64::store(self, value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn publish(&self, value: u64) {
        AtomicU64::store(self, value, Ordering::Release);
    }

    #[inline(always)]
    fn release_fence() {
        fence(Ordering::Release);
    }
}

/// A version that is being written: it does not count until [`Draft::publish`].
pub(crate) struct Draft<'a, W> {
    generation: &'a W,
    pub(crate) next: u64,
    pub(crate) buffer: &'a [W],
}

impl<'a, W: Word> Draft<'a, W> {
    #[inline(always)]
    pub(crate) fn begin(generation: &'a W, buffers: [&'a [W]; 2]) -> Draft<'a, W> {
        let next = generation.get().wrapping_add(1);
        let buffer = if next & 1 == 0 {
            buffers[0]
        } else {
            buffers[1]
        };
        // A reader that sees a word of this version sees that the version before was published: a reader of the one before that,
        // whose buffer is overwritten now, tries again.
        W::release_fence();
        Draft {
            generation,
            next,
            buffer,
        }
    }

    #[inline(always)]
    pub(crate) fn publish(self) {
        self.generation.publish(self.next);
    }
}

/// Stores a text, zero-filled to the next 8 bytes. Bytes that do not fit are left out.
#[inline]
pub(crate) fn store_text<W: Word>(words: &[W], text: &[u8]) {
    // By fours: a loop over single words takes twice the instructions.
    let (quads, _) = text.as_chunks::<32>();
    let (fours, _) = words.as_chunks::<4>();
    for (four, quad) in fours.iter().zip(quads) {
        for (word, bytes) in four.iter().zip(quad.as_chunks::<8>().0) {
            word.put(u64::from_le_bytes(*bytes));
        }
    }
    store_end(words, text);
}

/// The last 0 to 31 bytes of a text, where they are in `words`.
#[inline(always)]
fn store_end<W: Word>(words: &[W], text: &[u8]) {
    let (full, last) = text.as_chunks::<8>();
    let first = text.len() / 32 * 4;
    for (word, bytes) in words.iter().zip(full).skip(first) {
        word.put(u64::from_le_bytes(*bytes));
    }
    if let (false, Some(word)) = (last.is_empty(), words.get(full.len())) {
        word.put(last_word(text, last));
    }
}

/// Stores a text of at most 31 bytes as [`store_text`] does, without a loop.
///
/// # Safety
/// `words` has room for the text.
#[inline(always)]
pub(crate) unsafe fn store_short<W: Word>(words: &[W], text: &[u8]) {
    let mut at = 0;
    // SAFETY: the 8 bytes that are read lie within the text, and `words` has room for the text.
    let eight = |from: usize| unsafe {
        let bytes = text.as_ptr().add(from).cast::<u64>().read_unaligned();
        words.get_unchecked(from / 8).put(u64::from_le(bytes));
    };
    if text.len() & 16 != 0 {
        eight(0);
        eight(8);
        at = 16;
    }
    if text.len() & 8 != 0 {
        eight(at);
        at += 8;
    }
    if text.len() & 7 != 0 {
        // SAFETY: `at` is the text's length without its last one to seven bytes.
        unsafe {
            words
                .get_unchecked(at / 8)
                .put(last_word(text, text.get_unchecked(at..)))
        };
    }
}

/// The last one to seven bytes of a text as a word.
#[inline(always)]
fn last_word(text: &[u8], last: &[u8]) -> u64 {
    if let Some(eight) = text.last_chunk::<8>() {
        return u64::from_le_bytes(*eight) >> ((8 - last.len()) * 8);
    }
    let mut word = 0;
    let mut rest = last;
    let mut shift = 0;
    if let Some((four, behind)) = rest.split_first_chunk::<4>() {
        (word, rest, shift) = (u64::from(u32::from_le_bytes(*four)), behind, 32);
    }
    if let Some((two, behind)) = rest.split_first_chunk::<2>() {
        word |= u64::from(u16::from_le_bytes(*two)) << shift;
        (rest, shift) = (behind, shift + 16);
    }
    if let Some(one) = rest.first() {
        word |= u64::from(*one) << shift;
    }
    word
}

/// Where words are read from: a file, a mapping, or loom's words.
pub(crate) trait Memory {
    type Error;
    /// Copies words, each whole, in any order. `at` is in bytes, a multiple of 8.
    fn read(&self, at: u64, words: &mut [u64]) -> Result<(), Self::Error>;
    /// Keeps loads before it in front of loads after it.
    fn acquire(&self);
}

/// The words of a head.
pub(crate) fn read_head<M: Memory>(memory: &M, at: u64) -> Result<[u64; HEAD_WORDS], M::Error> {
    let mut head = [0; HEAD_WORDS];
    memory.read(at, &mut head)?;
    memory.acquire();
    Ok(head)
}

/// Calls `copy` with the generation in word `which` of a head that [`read_head`] gave, until the copy is whole. Returns the head
/// after the copy, of the same generation; `None`: the writer was quicker each time.
pub(crate) fn read_whole<M: Memory>(
    memory: &M,
    at: u64,
    which: usize,
    mut head: [u64; HEAD_WORDS],
    mut copy: impl FnMut(u64) -> Result<(), M::Error>,
) -> Result<Option<[u64; HEAD_WORDS]>, M::Error> {
    for _ in 0..TRIES {
        copy(head[which])?;
        memory.acquire();
        let after = read_head(memory, at)?;
        if after[which] == head[which] {
            return Ok(Some(after));
        }
        head = after;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::{
        AtomicU64 as LoomWord, Ordering as LoomOrdering, fence as loom_fence,
    };
    use std::convert::Infallible;

    impl Word for LoomWord {
        fn get(&self) -> u64 {
            LoomWord::load(self, LoomOrdering::Relaxed)
        }
        fn put(&self, value: u64) {
            LoomWord::store(self, value, LoomOrdering::Relaxed);
        }
        fn publish(&self, value: u64) {
            LoomWord::store(self, value, LoomOrdering::Release);
        }
        fn release_fence() {
            loom_fence(LoomOrdering::Release);
        }
    }

    /// A generation, a state, and two buffers of two words. A head has room for both; loom looks at no more than there is.
    struct Words<W>(Vec<W>);

    const STATE_AT: usize = 1;
    const BUFFERS_AT: usize = 2;

    impl<W: Word> Words<W> {
        fn buffers(&self) -> [&[W]; 2] {
            [
                &self.0[BUFFERS_AT..BUFFERS_AT + 2],
                &self.0[BUFFERS_AT + 2..],
            ]
        }

        fn write(&self, value: u64) {
            let draft = Draft::begin(&self.0[0], self.buffers());
            for word in draft.buffer {
                word.put(value);
            }
            draft.publish();
        }

        fn end(&self) {
            self.0[STATE_AT].publish(self.0[0].get() << 8 | 1);
        }
    }

    impl Memory for Words<LoomWord> {
        type Error = Infallible;
        fn read(&self, at: u64, words: &mut [u64]) -> Result<(), Infallible> {
            // Generation and state of a head.
            let count = words.len().min(2);
            for (number, word) in words[..count].iter_mut().enumerate() {
                *word = Word::get(&self.0[at as usize / 8 + number]);
            }
            Ok(())
        }
        fn acquire(&self) {
            loom_fence(LoomOrdering::Acquire);
        }
    }

    /// A reader's view: a generation, the buffer's words, the state word.
    fn read(words: &Words<LoomWord>) -> Option<(u64, [u64; 2], u64)> {
        let head = read_head(words, 0).expect("no error");
        let (mut copied, mut of) = ([0; 2], 0);
        let whole = read_whole(words, 0, 0, head, |generation| {
            of = generation;
            words.read((BUFFERS_AT as u64 + (generation & 1) * 2) * 8, &mut copied)
        });
        whole
            .expect("no error")
            .map(|after| (of, copied, after[STATE_AT]))
    }

    #[test]
    fn a_reader_sees_whole_versions_under_any_order_of_memory() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let words = Arc::new(Words((0..6).map(|_| LoomWord::new(0)).collect()));
            let writer = words.clone();
            let thread = loom::thread::spawn(move || {
                for version in 1..=3 {
                    writer.write(version);
                    writer.end();
                }
            });
            // The state may be that of a later version; the reader then ignores it (`Head::state`).
            if let Some((generation, copied, _)) = read(&words) {
                assert_eq!(copied, [generation; 2]);
            }
            thread.join().expect("the writer");
            assert_eq!(read(&words), Some((3, [3; 2], 3 << 8 | 1)));
        });
    }

    #[test]
    fn a_writer_that_stops_anywhere_leaves_the_version_before() {
        let words = Words((0..6).map(|_| AtomicU64::new(0)).collect());
        for version in 1..100u64 {
            words.write(version);
            let draft = Draft::begin(&words.0[0], words.buffers());
            for stopped in draft.buffer {
                stopped.put(u64::MAX);
                let newest = words.buffers()[usize::from(words.0[0].get() & 1 == 1)];
                assert!(newest.iter().all(|word| word.get() == version));
            }
        }
    }

    #[test]
    fn texts_are_zero_filled_and_cut_off() {
        let source: Vec<u8> = (1..=200).collect();
        for length in 0..source.len() {
            let words: Vec<AtomicU64> = (0..26).map(|_| AtomicU64::new(u64::MAX)).collect();
            store_text(&words, &source[..length]);
            let bytes: Vec<u8> = words
                .iter()
                .flat_map(|word| word.get().to_le_bytes())
                .collect();
            let end = length.next_multiple_of(8);
            assert_eq!(&bytes[..length], &source[..length]);
            assert!(bytes[length..end].iter().all(|byte| *byte == 0));
            assert!(bytes[end..].iter().all(|byte| *byte == 255));
            store_text(&words[..3], &source[..length]);
            if length < 32 {
                let short: Vec<AtomicU64> = (0..26).map(|_| AtomicU64::new(u64::MAX)).collect();
                // SAFETY: 26 words are more than 32 bytes.
                unsafe { store_short(&short, &source[..length]) };
                let short: Vec<u8> = short
                    .iter()
                    .flat_map(|word| word.get().to_le_bytes())
                    .collect();
                assert_eq!(short, bytes);
            }
        }
    }

    /// Threads of the machine, for Miri and for a machine whose memory is weakly ordered.
    #[test]
    fn threads_see_whole_versions() {
        let words = std::sync::Arc::new(Words((0..6).map(|_| AtomicU64::new(0)).collect()));
        let looks = if cfg!(miri) { 200 } else { 200_000 };
        let writer = words.clone();
        let enough = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let has_enough = enough.clone();
        let thread = std::thread::spawn(move || {
            for version in 1.. {
                writer.write(version);
                if has_enough.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let (mut looked, mut whole, mut newest) = (0, 0, 0);
        // On a busy machine the writer may begin late: it is watched until it has been read.
        while looked < looks || newest == 0 {
            let before = AtomicU64::load(&words.0[0], Ordering::Acquire);
            let copied: Vec<u64> = words.buffers()[usize::from(before & 1 == 1)]
                .iter()
                .map(Word::get)
                .collect();
            fence(Ordering::Acquire);
            looked += 1;
            if words.0[0].get() == before {
                assert_eq!(copied, [before; 2]);
                whole += 1;
                newest = before;
            }
        }
        enough.store(true, Ordering::Relaxed);
        thread.join().expect("the writer");
        assert!(whole > 0);
    }
}
