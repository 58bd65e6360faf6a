//! Holes: periods in which readings are known to be lost. rrdtool has none: if readings are missing, the next one stands for
//! all the time since the last one. After a hole that would be a guess, so all of its time is unknown, and so is each point
//! and row that overlaps it, whatever the xfiles factor is.
//!
//! A hole begins at the last update and ends with the next reading. Until then the header stores it as numbers of unknown
//! seconds and points beyond any limit, so that rrdtool treats its data as unknown, too.

use super::Stamp;
use super::pdp::Span;
use crate::header::Header;

/// Word of `pdp_prep_t`.
const UNKNOWN_SEC: usize = 0;
/// Word of `cdp_prep_t`.
const UNKNOWN_PDPS: usize = 1;
/// Number of unknown seconds that makes the open point unknown and still allows additions. Its upper half is `LOST`, which no
/// file of rrdtool has.
const LOST_POINT: u64 = 0x4c4f_5354_4000_0000;
/// Marks an open hole, which the next reading ends; the upper half is `OPEN`.
const OPEN: u64 = 0x4f50_454e_4000_0000;

/// Begins a hole: readings after the last update are lost, and the time up to the next reading is unknown.
pub fn begin_hole(header: &mut Header) {
    header.pdp_prep.iter_mut().for_each(|pdp| {
        pdp.scratch[UNKNOWN_SEC] = OPEN;
    });
    lose_rows(header, |_| true);
}

/// Makes a period unknown: the point and the rows in progress that overlap it are lost. If the last update is in the period,
/// a hole begins.
pub fn lose_between(header: &mut Header, from: i64, thru: i64) {
    let last = header.last_up;
    if from <= last + 1 && last <= thru {
        return begin_hole(header);
    }
    let step = header.pdp_step;
    let begun = |length: u64| match i64::try_from(length) {
        Ok(length @ 1..) => last - last.rem_euclid(length),
        _ => 0,
    };
    if from > last {
        return;
    }
    if begun(step) < thru {
        for pdp in &mut header.pdp_prep {
            pdp.scratch[UNKNOWN_SEC] = LOST_POINT;
        }
    }
    lose_rows(header, |pdp_cnt| begun(step.saturating_mul(pdp_cnt)) < thru);
}

/// True while a hole is open.
pub fn in_hole(header: &Header) -> bool {
    let first = header.pdp_prep.first();
    first.is_some_and(|pdp| pdp.scratch[UNKNOWN_SEC] == OPEN)
}

/// True if the point in progress is unknown, including computed points, which could turn unknown numbers into known ones.
pub(super) fn is_point_lost(header: &Header) -> bool {
    let first = header.pdp_prep.first();
    first.is_some_and(|pdp| {
        let mark = pdp.scratch[UNKNOWN_SEC] >> 32;
        mark == LOST_POINT >> 32 || mark == OPEN >> 32
    })
}

/// Ends a hole with a reading: the point and the rows that began before it are unknown.
pub(super) fn end(header: &mut Header, stamp: Stamp) {
    let step = header.pdp_step;
    let (sec, usec) = (stamp.sec as u64, stamp.usec);
    let begins = sec.is_multiple_of(step) && usec == 0;
    let unknown = if begins { 0 } else { LOST_POINT };
    for pdp in &mut header.pdp_prep {
        pdp.scratch[UNKNOWN_SEC] = unknown;
    }
    lose_rows(header, |pdp_cnt| {
        !begins || !(sec / step).is_multiple_of(pdp_cnt)
    });
}

/// Makes the carried points unknown: they were closed together with the point of the hole, so the row that begins with them
/// is unknown, too.
pub(super) fn lose_carried(header: &mut Header, span: &Span) {
    let ended = span.first_pdp.wrapping_add(span.elapsed);
    lose_rows(header, |pdp_cnt| {
        span.elapsed > 1 && !ended.is_multiple_of(pdp_cnt)
    });
}

/// Makes rows in progress unknown; `which` chooses them by their number of points.
fn lose_rows(header: &mut Header, which: impl Fn(u64) -> bool) {
    let width = header.ds.len();
    let archives = header.rra.iter().zip(header.cdp_prep.chunks_mut(width));
    for (rra, cells) in archives.filter(|(rra, _)| rra.pdp_cnt > 1 && which(rra.pdp_cnt)) {
        for cell in cells {
            let points = &mut cell.scratch[UNKNOWN_PDPS];
            *points = (*points).max(rra.pdp_cnt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rrd;
    use crate::create::{Create, create};
    use crate::fetch::fetch;
    use crate::update::{Now, Scratch, Update, update_all};

    const SOURCES: [&str; 6] = [
        "DS:gauge:GAUGE:600:U:U",
        "DS:count:COUNTER:600:U:U",
        "DS:derive:DERIVE:600:U:U",
        "DS:abs:ABSOLUTE:600:U:U",
        "DS:fine:DDERIVE:600:U:U",
        "DS:sum:COMPUTE:gauge,UN,7,gauge,IF",
    ];
    const BEGIN: i64 = 1_000_000_000;

    fn blank() -> Rrd {
        let mut definitions: Vec<Vec<u8>> = SOURCES.iter().map(|ds| ds.as_bytes().into()).collect();
        for cf in ["AVERAGE", "MIN", "MAX", "LAST"] {
            for (points, xff) in [(1, "0.5"), (3, "0"), (7, "0.5"), (12, "0.99")] {
                definitions.push(format!("RRA:{cf}:{xff}:{points}:2000").into_bytes());
            }
        }
        let definitions: Vec<&[u8]> = definitions.iter().map(|text| &text[..]).collect();
        let request = Create {
            file_name: b"",
            step: 10,
            start: Some(BEGIN),
            definitions: &definitions,
        };
        create(&request, BEGIN, &mut 1, None, &[]).unwrap()
    }

    fn apply(rrd: &mut Rrd, text: &str) {
        let how = Update {
            file_name: b"",
            template: None,
            skip_past: true,
            now: Now { sec: 0, usec: 0 },
            at_time: &|_| Ok(None),
        };
        let (mut scratch, mut refused) = (Scratch::default(), Vec::new());
        let (header, cells) = (&mut rrd.header, &mut rrd.cells);
        let args = [text.as_bytes()];
        update_all(&mut scratch, header, cells, &how, &args, &mut refused).unwrap();
        assert_eq!(refused, vec![]);
    }

    /// Rows: archive, stamp, and a value for each source.
    fn rows(rrd: &mut Rrd) -> Vec<(usize, i64, Vec<f64>)> {
        let mut all = Vec::new();
        for archive in 0..rrd.header.rra.len() {
            let mut one = rrd.clone();
            let keep = |at: usize| at == archive;
            let mut at = 0..;
            one.header.rra.retain(|_| keep(at.next().unwrap()));
            let (cells, width) = (rrd.header.cell(archive, 0) as usize, rrd.header.ds.len());
            let about = &rrd.header.rra[archive];
            one.cells = rrd.cells[cells..cells + width * about.row_cnt as usize].to_vec();
            one.header.cur_row = vec![rrd.header.cur_row[archive]];
            one.header.cdp_prep = rrd.header.cdp_prep[archive * width..][..width].to_vec();
            let (cf, end) = (about.cf().to_vec(), rrd.header.last_up);
            let found = fetch(&one.header, &mut one.cells, &cf, BEGIN, end, 1).unwrap();
            let step = found.step as i64;
            for (row, cells) in (1..).zip(found.rows.chunks(width)) {
                all.push((archive, found.start + row * step, cells.to_vec()));
            }
        }
        all
    }

    /// Loses readings anywhere in a step: each row keeps its value or becomes unknown, and a row outside of the hole stays
    /// known.
    #[test]
    fn a_row_is_what_it_was_or_unknown() {
        let (mut unknown, mut random) = (0, 1);
        for round in 0..300 {
            let mut next = |below: u64| {
                random = mixed(random);
                (random >> 33) % below
            };
            let (mut now_ms, mut values) = (BEGIN as u64 * 1000, Vec::new());
            for at in 0..60u64 {
                now_ms += match round % 4 {
                    0 => 10_000,
                    1 => 1 + next(9000),
                    2 => 1000 * (1 + next(25)),
                    _ => 1 + next(100_000),
                };
                let (sec, ms) = (now_ms / 1000, now_ms % 1000);
                let (level, count) = (next(1000), at * 1000 + next(900));
                values.push((
                    now_ms,
                    format!("{sec}.{ms:03}000:{level}.5:{count}:{count}:{level}:{count}.25"),
                ));
            }
            let (from, len) = (1 + next(40) as usize, 1 + next(8) as usize);
            let (mut whole, mut holed) = (blank(), blank());
            for (at, (_, text)) in values.iter().enumerate() {
                apply(&mut whole, text);
                if at == from {
                    begin_hole(&mut holed.header);
                }
                if !(from..from + len).contains(&at) {
                    apply(&mut holed, text);
                    assert!(!in_hole(&holed.header));
                }
            }
            let hole = (values[from - 1].0, values[from + len].0);
            // rrdtool closes an open point alone only if whole seconds of it are left; otherwise together with those up to
            // the next reading.
            let closed = hole.1.next_multiple_of(10_000);
            let mut later = values[from + len..].iter().map(|(at, _)| *at);
            let together = later.find(|&at| at >= closed).unwrap_or(u64::MAX / 2);
            for (then, now) in rows(&mut whole).into_iter().zip(rows(&mut holed)) {
                let (archive, end, was) = then;
                assert_eq!((archive, end), (now.0, now.1));
                let step = whole.header.rra[archive].pdp_cnt * 10;
                let (begins, ends) = ((end as u64 - step) * 1000, end as u64 * 1000);
                let meets = begins < hole.1 && ends > hole.0;
                let row = 10_000 * whole.header.rra[archive].pdp_cnt;
                let near = begins < together.next_multiple_of(row) && ends > hole.0;
                for (source, (was, is)) in was.iter().zip(&now.2).enumerate() {
                    let story = format!("{round}: {archive} {end} {source}: {was} {is} {hole:?}");
                    assert!(!meets || is.is_nan(), "{story}");
                    let same = was.to_bits() == is.to_bits();
                    assert!(same || near && is.is_nan(), "{story}");
                    unknown += u64::from(is.is_nan() && !was.is_nan());
                }
            }
        }
        assert!(unknown > 10_000, "{unknown}");
    }

    fn mixed(random: u64) -> u64 {
        let random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 27)
    }
}
