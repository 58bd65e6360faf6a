//! What a thread read last, for what it reads next: series are asked for one after the other, and those of a chunk have
//! the heads of its blocks in common, those of a stripe their states and rows, too.

use crate::segment::block::{Head, States};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Heads that are kept.
const HEADS: usize = 64;
/// Frames of all heads, and words of states, that are kept: more would be much memory.
const FRAMES_MAX: usize = 1 << 15;
const WORDS_MAX: usize = 1 << 16;
/// Frames of rows that are kept, and their bytes: an hour of a stripe is a few of them.
const ROW_FRAMES: usize = 32;
const ROW_BYTES_MAX: usize = 1 << 19;

/// Where a block is: which opened segment, and its offset.
pub(crate) type At = (u64, u64);

/// Where a frame is: its block, and its offset in it.
type FrameAt = (At, u64);

#[derive(Default)]
struct Near {
    heads: VecDeque<(At, Arc<Head>)>,
    states: Option<(At, u8, Arc<States>)>,
    rows: VecDeque<(FrameAt, Rc<[u8]>)>,
}

thread_local! {
    static NEAR: RefCell<Near> = RefCell::default();
}

/// The head of a block; `read` reads it.
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

/// The states of a stripe, of which those of the block at `at` are the newest; `read` reads them.
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

/// The unpacked frame of rows at an offset of a block; `read` reads it.
pub(crate) fn rows(
    at: At,
    offset: u64,
    read: impl FnOnce() -> io::Result<Option<Vec<u8>>>,
) -> io::Result<Option<Rc<[u8]>>> {
    let place = (at, offset);
    let known = NEAR.with_borrow(|near| {
        let mut rows = near.rows.iter();
        let known = rows.find(|(known, _)| *known == place);
        known.map(|(_, raw)| raw.clone())
    });
    if known.is_some() {
        return Ok(known);
    }
    let raw: Option<Rc<[u8]>> = read()?.map(Rc::from);
    if let Some(raw) = raw.as_ref().filter(|raw| raw.len() <= ROW_BYTES_MAX) {
        NEAR.with_borrow_mut(|near| {
            near.rows.truncate(ROW_FRAMES - 1);
            near.rows.push_front((place, raw.clone()));
            let mut all: usize = near.rows.iter().map(|(_, raw)| raw.len()).sum();
            while all > ROW_BYTES_MAX
                && let Some((_, oldest)) = near.rows.pop_back()
            {
                all -= oldest.len();
            }
        });
    }
    Ok(raw)
}
