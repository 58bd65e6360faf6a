//! Points: values of a series as they were sent, as far as blocks have them.

use crate::layout::STRIPE;
use crate::memtable::buffer::Texts;
use crate::segment::placed::Placed;
use crate::segment::points;
use crate::wal::value::stamp_of;
use std::io;

/// Values in the order of arrival.
#[derive(Default)]
pub(crate) struct Sent {
    pub(crate) texts: Texts,
    /// Stamp before which values may be missing.
    pub(crate) from: f64,
    /// Number of unreadable frames.
    pub(crate) damaged: u64,
}

/// The values with later stamps of the series in this slot of a chunk.
///
/// `kept_s` is the schema's retention. Merges may have dropped
/// the points of blocks before the stamp `points_from`.
pub(crate) fn sent(
    blocks: &[Placed],
    (kept_s, points_from): (u64, u64),
    slot: u8,
    after: f64,
) -> io::Result<Sent> {
    let newest = blocks.iter().map(|placed| placed.stamp).max();
    let kept = newest.unwrap_or(0).saturating_sub(kept_s);
    let mut sent = Sent {
        from: kept.max(points_from) as f64,
        ..Sent::default()
    };
    let has_later = |placed: &&Placed| placed.point_bytes > 0 && placed.stamp as f64 + 1.0 > after;
    for placed in blocks.iter().filter(has_later) {
        let Some(head) = placed.head()? else {
            sent.damaged += 1;
            continue;
        };
        let part = head.part(slot / STRIPE as u8);
        let Some(frame) = part.and_then(|part| part.points) else {
            continue;
        };
        let Some(raw) = placed.frame(&frame)? else {
            sent.damaged += 1;
            continue;
        };
        for values in texts_of(&raw, slot % STRIPE as u8) {
            let later = |text: &&[u8]| stamp_of(text).is_none_or(|stamp| stamp > after);
            let values = values.iter().filter(later);
            values.for_each(|text| sent.texts.push(text));
        }
    }
    Ok(sent)
}

/// Points of one member in a frame. Only this function here depends on their encoding.
fn texts_of(raw: &[u8], member: u8) -> impl Iterator<Item = Texts> {
    let mine = points::each_entry(raw).filter(move |(at, _, _)| *at == member);
    mine.filter_map(|(_, count, entry)| points::texts(count, entry))
}
