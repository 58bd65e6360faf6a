//! Cache of the frames that a thread read last. Series are read one after the other; those of a chunk share the heads
//! of its blocks, those of a stripe also their states, rows and samples.

use crate::segment::block::{Head, States};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Number of heads in the cache.
const HEADS: usize = 64;
/// Limits of the frames listed by all heads and of the words of states in the cache, which bound its memory.
const FRAMES_MAX: usize = 1 << 15;
const WORDS_MAX: usize = 1 << 16;
/// Limits of the frames of rows and samples and of their bytes; an hour of a stripe is a few of these frames.
const FRAMES_NEAR: usize = 32;
const FRAME_BYTES_MAX: usize = 1 << 19;

/// Position of a block: number of the opened segment, and offset in it.
pub(crate) type At = (u64, u64);

/// Position of a frame: its block, and its offset in the block.
type FrameAt = (At, u64);

#[derive(Default)]
struct Near {
    heads: VecDeque<(At, Arc<Head>)>,
    states: Option<(At, u8, Arc<States>)>,
    frames: VecDeque<(FrameAt, Rc<[u8]>)>,
}

thread_local! {
    static NEAR: RefCell<Near> = RefCell::default();
}

/// The head of a block from the cache, or by `read`.
pub(crate) fn head(
    at: At,
    read: impl FnOnce() -> io::Result<Option<Head>>,
) -> io::Result<Option<Arc<Head>>> {
    let known = NEAR.with_borrow(|near| {
        let mut heads = near.heads.iter();
        heads
            .find(|(known, _)| *known == at)
            .map(|(_, head)| head.clone())
    });
    if known.is_some() {
        return Ok(known);
    }
    let head = read()?.map(Arc::new);
    if let Some(head) = &head {
        let frames = |head: &Head| (head.parts.len() + 1) * (head.newest.len() + 1);
        NEAR.with_borrow_mut(|near| {
            near.heads.truncate(HEADS - 1);
            near.heads.push_front((at, head.clone()));
            let mut all: usize = near.heads.iter().map(|(_, head)| frames(head)).sum();
            while all > FRAMES_MAX
                && let Some((_, oldest)) = near.heads.pop_back()
            {
                all -= frames(&oldest);
            }
        });
    }
    Ok(head)
}

/// The states of a stripe, the newest of which are in the block at `at`, from the cache or by `read`.
pub(crate) fn states(
    at: At,
    stripe: u8,
    read: impl FnOnce() -> io::Result<States>,
) -> io::Result<Arc<States>> {
    let known = NEAR.with_borrow(|near| {
        let known = near.states.as_ref();
        let known = known.filter(|(place, which, _)| (*place, *which) == (at, stripe));
        known.map(|(_, _, states)| states.clone())
    });
    if let Some(known) = known {
        return Ok(known);
    }
    let states = Arc::new(read()?);
    if states.iter().map(|(_, words)| words.len()).sum::<usize>() <= WORDS_MAX {
        NEAR.with_borrow_mut(|near| near.states = Some((at, stripe, states.clone())));
    }
    Ok(states)
}

/// The decompressed frame of rows or samples at an offset of a block, from the cache or by `read`.
pub(crate) fn frame(
    at: At,
    offset: u64,
    read: impl FnOnce() -> io::Result<Option<Vec<u8>>>,
) -> io::Result<Option<Rc<[u8]>>> {
    let place = (at, offset);
    let known = NEAR.with_borrow(|near| {
        let mut frames = near.frames.iter();
        let known = frames.find(|(known, _)| *known == place);
        known.map(|(_, raw)| raw.clone())
    });
    if known.is_some() {
        return Ok(known);
    }
    let raw: Option<Rc<[u8]>> = read()?.map(Rc::from);
    if let Some(raw) = raw.as_ref().filter(|raw| raw.len() <= FRAME_BYTES_MAX) {
        NEAR.with_borrow_mut(|near| {
            near.frames.truncate(FRAMES_NEAR - 1);
            near.frames.push_front((place, raw.clone()));
            let mut all: usize = near.frames.iter().map(|(_, raw)| raw.len()).sum();
            while all > FRAME_BYTES_MAX
                && let Some((_, oldest)) = near.frames.pop_back()
            {
                all -= oldest.len();
            }
        });
    }
    Ok(raw)
}
