//! Fills a new file from others: `rrdtool create --source`.
//!
//! Each row is combined from rows of the sources that cover its time, those of the best archive first, until all of
//! its time is covered. The rows in progress follow.

use std::cmp::Ordering;

use crate::UNKNOWN;
use crate::cf::Cf;
use crate::error::Error;
use crate::header::{Header, RraDef, field};
use crate::preparation::{init_cdp, new_cdp};
use crate::room::require_room;
use crate::row_time::{Archive, end_time_for_row, positive_mod};
use crate::rrd::Rrd;
use crate::spec::Mapping;
use crate::update::put_point;

/// An archive of a source, and the wanted data source in it.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    archive: Archive<'a>,
    ds: usize,
}

/// Order and choice of candidates.
#[derive(Clone, Copy, PartialEq)]
enum Purpose {
    /// For rows: archives of AVERAGE and of the same function, the most useful first.
    Rows,
    /// For rows in progress: archives of the same function and length.
    Preparation,
}

/// Fills a new file.
pub(crate) fn prefill(rrd: &mut Rrd, sources: &[&Rrd], mappings: &[Mapping]) -> Result<(), Error> {
    let (points, is_temporary) = points_archive(rrd)?;
    for i in 0..rrd.header.rra.len() {
        for ds in 0..rrd.header.ds.len() {
            let found = candidates(&rrd.header, i, ds, sources, mappings, Purpose::Rows);
            if found.is_empty() {
                continue;
            }
            for row in 0..rrd.header.rra[i].row_cnt {
                fill_row(rrd, i, ds, row, &found);
            }
            fill_pdp(&mut rrd.header, ds, &found);
        }
    }
    for i in 0..rrd.header.rra.len() {
        for ds in 0..rrd.header.ds.len() {
            let found = candidates(&rrd.header, i, ds, sources, mappings, Purpose::Preparation);
            fill_cdp(rrd, i, ds, points, &found);
        }
    }
    if is_temporary {
        let header = &mut rrd.header;
        header.rra.pop();
        header.cur_row.pop();
        header.cdp_prep.truncate(header.rra.len() * header.ds.len());
        rrd.cells.truncate(rrd.header.cell_count() as usize);
    }
    Ok(())
}

/// Takes the rows of a source over, bit by bit, into archives of the same function and step: as far as these have a row,
/// it counts, also if it is unknown. `rrdtool create --source` takes rows of other steps instead.
pub fn take_rows(rrd: &mut Rrd, source: &Rrd) {
    let Rrd { header, cells } = rrd;
    for own in Archive::all(header, &[]) {
        let is_same = |archive: &Archive<'_>| {
            archive.rra().cf() == own.rra().cf() && archive.timeslot() == own.timeslot()
        };
        let all = Archive::all(&source.header, &source.cells);
        let Some(theirs) = all.filter(is_same).max_by_key(|of| of.rra().row_cnt) else {
            continue;
        };
        for (ds, def) in header.ds.iter().enumerate() {
            let mut defs = source.header.ds.iter();
            let Some(their_ds) = defs.position(|other| other.name() == def.name()) else {
                continue;
            };
            let places = (own.first_cell + ds..).step_by(header.ds.len());
            let rows = 0..i32::try_from(own.rra().row_cnt).unwrap_or(0);
            for (row, place) in rows.zip(places) {
                let end = end_time_for_row(header, own.rra(), own.cur_row(), row);
                let their_row = theirs.row_for_time(end);
                if let Some(cell) = their_row.and_then(|row| theirs.cell(row, their_ds)) {
                    cells[place] = cell;
                }
            }
        }
    }
}

/// An archive of single averaged points, twice as long as any row, which rows in progress are made of. If there is
/// none, one is added, and removed at the end.
fn points_archive(rrd: &mut Rrd) -> Result<(usize, bool), Error> {
    let header = &mut rrd.header;
    let longest = header.rra.iter().map(|rra| rra.pdp_cnt).max().unwrap_or(1);
    let needed = longest.saturating_mul(2);
    let mut best: Option<(usize, u64)> = None;
    for (i, rra) in header.rra.iter().enumerate() {
        let fits = rra.pdp_cnt == 1 && Cf::of(rra.cf()) == Some(Cf::Average);
        if fits && best.is_none_or(|(_, row_cnt)| row_cnt < rra.row_cnt) {
            best = Some((i, rra.row_cnt));
        }
    }
    if let Some((i, _)) = best.filter(|&(_, row_cnt)| row_cnt >= needed) {
        return Ok((i, false));
    }
    let mut rra = RraDef {
        cf_nam: field(b"AVERAGE"),
        pad: [0; 4],
        row_cnt: needed,
        pdp_cnt: 1,
        par: [0; 10],
    };
    rra.par[0] = 0.5f64.to_bits();
    header.rra.push(rra);
    require_room(header).map_err(|_| Error::new("Memory allocation failed"))?;
    header.cur_row.push(0);
    let pdp = header.pdp_prep[0];
    let cdp = new_cdp(header.last_up, header.pdp_step, &rra, &pdp);
    header
        .cdp_prep
        .resize(header.rra.len() * header.ds.len(), cdp);
    rrd.cells.resize(rrd.header.cell_count() as usize, UNKNOWN);
    Ok((rrd.header.rra.len() - 1, true))
}

/// Archives of the sources that have a data source, source by source.
fn candidates<'a>(
    target: &Header,
    i: usize,
    ds: usize,
    sources: &[&'a Rrd],
    mappings: &[Mapping],
    wanted: Purpose,
) -> Vec<Candidate<'a>> {
    let (rra, name) = (&target.rra[i], target.ds[ds].name());
    let mapping = mappings.iter().find(|mapping| mapping.name == name);
    let name = match mapping {
        Some(mapping) if !mapping.source.is_empty() => &mapping.source,
        _ => name,
    };
    let mut found = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let other = mapping.is_some_and(|mapping| {
            mapping.index >= 0 && i32::try_from(number + 1) != Ok(mapping.index)
        });
        let ds = source.header.ds.iter().position(|ds| ds.name() == name);
        let Some(ds) = ds.filter(|_| !other) else {
            continue;
        };
        let all = Archive::all(&source.header, &source.cells);
        let mut own: Vec<_> = all
            .filter(|archive| is_wanted(archive, rra, wanted))
            .map(|archive| Candidate { archive, ds })
            .collect();
        own.sort_by(finest_first);
        if wanted == Purpose::Rows {
            quick_sort(&mut own, &|a, b| order(a, b, rra, target.pdp_step));
        }
        found.extend(own);
    }
    found
}

fn is_wanted(archive: &Archive, rra: &RraDef, wanted: Purpose) -> bool {
    let (own, cf) = (archive.cf(), Cf::of(rra.cf()));
    match wanted {
        Purpose::Rows => own == Some(Cf::Average) || own == cf,
        Purpose::Preparation => own == cf && archive.rra().pdp_cnt == rra.pdp_cnt,
    }
}

/// Orders by step and length; as in rrdtool, differences are truncated to 32 bits.
fn finest_first(a: &Candidate, b: &Candidate) -> Ordering {
    let (a, b) = (a.archive.rra(), b.archive.rra());
    let by_rows = (b.row_cnt.wrapping_sub(a.row_cnt) as i32).cmp(&0);
    if a.pdp_cnt == b.pdp_cnt {
        return by_rows;
    }
    (a.pdp_cnt.wrapping_sub(b.pdp_cnt) as i32).cmp(&0)
}

/// Orders by fitness: the same function and step first, then averages, the finest, the longest.
fn order(a: &Candidate, b: &Candidate, target: &RraDef, target_step: u64) -> Ordering {
    let seconds = |candidate: &Candidate| {
        let step = candidate.archive.header.pdp_step as i32 as u64;
        candidate.archive.rra().pdp_cnt.wrapping_mul(step)
    };
    let (cf, wanted) = (
        Cf::of(target.cf()),
        target.pdp_cnt.wrapping_mul(target_step as i32 as u64),
    );
    let (a_cf, b_cf) = (a.archive.cf(), b.archive.cf());
    if a_cf == cf && seconds(a) == wanted {
        return Ordering::Less;
    }
    if b_cf == cf && seconds(b) == wanted {
        return Ordering::Greater;
    }
    if a_cf != b_cf {
        return match (a_cf, b_cf) {
            (Some(Cf::Average), _) => Ordering::Less,
            (_, Some(Cf::Average)) => Ordering::Greater,
            _ => Ordering::Equal,
        };
    }
    let finer = seconds(a).wrapping_sub(seconds(b)) as i32;
    let longer = a
        .archive
        .rra()
        .row_cnt
        .wrapping_sub(b.archive.rra().row_cnt) as i32;
    finer.cmp(&0).then(0.cmp(&longer))
}

/// rrdtool's own quicksort, which determines the order of equal or inconsistent elements.
fn quick_sort<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) {
    if items.len() < 2 {
        return;
    }
    let (mut left, mut right) = (1, items.len() - 1);
    while left < right {
        if compare(&items[left], &items[0]).is_le() {
            left += 1;
        } else if compare(&items[right], &items[0]).is_ge() {
            right -= 1;
        } else {
            items.swap(left, right);
        }
    }
    let pivot = if compare(&items[left], &items[0]).is_le() {
        left
    } else {
        left - 1
    };
    items.swap(pivot, 0);
    quick_sort(&mut items[..left], compare);
    quick_sort(&mut items[right..], compare);
}

/// A period of time, including both ends.
#[derive(Clone, Copy)]
struct Interval {
    is_covered: bool,
    start: i64,
    end: i64,
}

/// Combines one row.
fn fill_row(rrd: &mut Rrd, i: usize, ds: usize, row: u64, candidates: &[Candidate]) {
    let header = &rrd.header;
    let (rra, cf) = (&header.rra[i], Cf::of(header.rra[i].cf()));
    let bin = rra.pdp_cnt.wrapping_mul(header.pdp_step) as i64;
    let required = (f64::from_bits(rra.par[0]) * bin as f64) as i64;
    let end = end_time_for_row(header, rra, header.cur_row[i] as i32, row as i32);
    let start = end.wrapping_sub(bin).wrapping_add(1);
    let mut coverage = vec![Interval {
        is_covered: false,
        start,
        end,
    }];
    let (mut covered, mut value) = (0i64, UNKNOWN);
    for candidate in candidates {
        if covered >= bin {
            break;
        }
        let archive = &candidate.archive;
        let (Some(last), Some(first)) = (archive.row_for_time(end), archive.row_for_time(start))
        else {
            continue;
        };
        let count = positive_mod(last - first + 1, archive.rra().row_cnt as i32);
        let row_cnt = archive.rra().row_cnt as i32;
        for step in 0..count {
            if covered >= bin {
                break;
            }
            let row = (first + step) % row_cnt;
            let Some(cell) = archive
                .cell(row, candidate.ds)
                .filter(|cell| !cell.is_nan())
            else {
                continue;
            };
            let end = end_time_for_row(archive.header, archive.rra(), archive.cur_row(), row);
            let seconds = archive.rra().pdp_cnt.wrapping_mul(archive.header.pdp_step) as i64;
            let fresh = cover(
                &mut coverage,
                end.wrapping_sub(seconds).wrapping_add(1),
                end,
            );
            if fresh > 0 {
                covered += fresh;
                value = consolidate(cf, value, cell, bin, fresh);
            }
        }
    }
    if covered > required {
        if cf == Some(Cf::Average) {
            value = value / f64::from(covered as i32) * f64::from(bin as i32);
        }
        let cell = header.cell(i, row) as usize + ds;
        rrd.cells[cell] = value;
    }
}

fn consolidate(cf: Option<Cf>, value: f64, cell: f64, bin: i64, fresh: i64) -> f64 {
    match cf {
        Some(Cf::Min) if value < cell => value,
        Some(Cf::Max) if value > cell => value,
        Some(Cf::Min | Cf::Max | Cf::Last) => cell,
        _ => {
            let value = if value.is_nan() { 0.0 } else { value };
            value + cell / f64::from(bin as i32) * f64::from(fresh as i32)
        }
    }
}

/// Marks a period as covered; returns the number of its seconds that were not covered before. As in rrdtool, a
/// period of one second counts as part of any other.
fn cover(coverage: &mut Vec<Interval>, start: i64, end: i64) -> i64 {
    let (Some(&first), Some(&last)) = (coverage.first(), coverage.last()) else {
        return 0;
    };
    let (mut start, end) = (start.max(first.start), end.min(last.end));
    if end < first.start || start > last.end {
        return 0;
    }
    let (mut fresh, mut i) = (0, 0);
    while i < coverage.len() {
        let own = coverage[i];
        if lies_within(start, end, own.start, own.end) {
            if !own.is_covered {
                fresh += end - start + 1;
                cut(coverage, i, start, end);
            }
            break;
        }
        if lies_within(own.start, own.end, start, end) && !own.is_covered {
            coverage[i].is_covered = true;
            fresh += own.end - own.start + 1;
        }
        if start >= own.start && start <= own.end {
            if !coverage[i].is_covered && own.start == start {
                coverage[i].is_covered = true;
            } else if !coverage[i].is_covered {
                coverage[i].end = start - 1;
                let covered = Interval {
                    is_covered: true,
                    start,
                    end: own.end,
                };
                coverage.insert(i + 1, covered);
                fresh += own.end - start + 1;
            }
            start = own.end + 1;
        }
        i += 1;
    }
    join(coverage);
    fresh
}

/// Marks a part of an uncovered interval as covered.
fn cut(coverage: &mut Vec<Interval>, i: usize, start: i64, end: i64) {
    let own = coverage[i];
    let bare = |start, end| Interval {
        is_covered: false,
        start,
        end,
    };
    let covered = |start, end| Interval {
        is_covered: true,
        start,
        end,
    };
    let parts: &[Interval] = if start == own.start && end == own.end {
        &[covered(start, end)]
    } else if start == own.start {
        &[covered(start, end), bare(end + 1, own.end)]
    } else if end == own.end {
        &[bare(own.start, start - 1), covered(start, end)]
    } else {
        &[
            bare(own.start, start - 1),
            covered(start, end),
            bare(end + 1, own.end),
        ]
    };
    coverage.splice(i..=i, parts.iter().copied());
}

/// Joins neighbours of the same kind.
fn join(coverage: &mut Vec<Interval>) {
    coverage.dedup_by(|next, own| {
        let same = next.is_covered == own.is_covered;
        if same {
            own.end = next.end;
        }
        same
    });
}

fn lies_within(start: i64, end: i64, other_start: i64, other_end: i64) -> bool {
    end - start <= other_end - other_start
        && overlap(start, end, other_start, other_end) == end - start
}

fn overlap(start: i64, end: i64, other_start: i64, other_end: i64) -> i64 {
    let apart = start > other_end || other_start > end;
    if start >= end || other_start >= other_end || apart {
        return 0;
    }
    end.min(other_end) - start.max(other_start)
}

/// Copies the point in progress of the first source that is in the same step and has the same type.
fn fill_pdp(header: &mut Header, ds: usize, candidates: &[Candidate]) {
    if is_fresh(&header.pdp_prep[ds].last_ds) {
        let next = |header: &Header| {
            let step = header.pdp_step;
            (header.last_up as u64 / step + 1).wrapping_mul(step) as i64
        };
        let end = next(header);
        let begin = end.wrapping_sub(header.pdp_step as i64 - 1);
        let mut seen: Option<&Header> = None;
        for candidate in candidates {
            let source = candidate.archive.header;
            if seen.is_some_and(|seen| std::ptr::eq(seen, source)) {
                continue;
            }
            seen = Some(source);
            let pdp = &source.pdp_prep[candidate.ds];
            let fits = (begin..=end).contains(&next(source));
            if is_fresh(&pdp.last_ds)
                || !fits
                || source.ds[candidate.ds].dst() != header.ds[ds].dst()
            {
                continue;
            }
            // rrdtool would limit unknown seconds to the step, but compares them as if they were a double.
            header.pdp_prep[ds] = *pdp;
            break;
        }
    }
}

fn is_fresh(last_ds: &[u8; 30]) -> bool {
    last_ds[..2] == *b"U\0"
}

/// Copies a source's row in progress if it is at the same point of the same row. Otherwise computes it from single
/// points.
fn fill_cdp(rrd: &mut Rrd, i: usize, ds: usize, points: usize, candidates: &[Candidate]) {
    let (header, cells) = (&mut rrd.header, &rrd.cells);
    let (rra, step, own) = (header.rra[i], header.pdp_step, i * header.ds.len() + ds);
    let (begin, end) = row_in_making(header, &rra);
    for candidate in candidates {
        let source = candidate.archive.header;
        let same = source.pdp_step == step
            && row_in_making(source, candidate.archive.rra()) == (begin, end)
            && header.last_up as u64 / step == source.last_up as u64 / step;
        if same {
            let theirs = candidate.archive.index * source.ds.len() + candidate.ds;
            header.cdp_prep[own] = source.cdp_prep[theirs];
            return;
        }
    }
    let mut words = header.cdp_prep[own].scratch;
    init_cdp(header.last_up, step, &rra, &header.pdp_prep[ds], &mut words);
    words[1] = 0;
    let lender = Archive::all(header, cells).nth(points);
    let point = |time| {
        let lender = lender.as_ref()?;
        lender.cell(lender.row_for_time(time)?, ds)
    };
    if rra.pdp_cnt == 1 {
        (words[8], words[9]) = (0, 0);
        if let Some(point) = point(begin.wrapping_sub(step as i64)) {
            words[8] = point.to_bits();
        }
        header.cdp_prep[own].scratch = words;
        return;
    }
    let cf = Cf::of(rra.cf()).unwrap_or(Cf::Last);
    let seconds = i64::from(rra.pdp_cnt.wrapping_mul(step) as i32).max(1);
    let mut time = begin.wrapping_sub(rra.pdp_cnt.wrapping_mul(step) as i64);
    while time < end && time < header.last_up {
        if let Some(point) = point(time) {
            let left = (rra.pdp_cnt as i64 - time % seconds / step as i64) as i32;
            put_point(&mut words, cf, &rra, point, left == 1);
        }
        time = time.saturating_add(step as i64);
    }
    header.cdp_prep[own].scratch = words;
}

/// First and last second of the row in progress.
fn row_in_making(header: &Header, rra: &RraDef) -> (i64, i64) {
    let seconds = i64::from(rra.pdp_cnt.wrapping_mul(header.pdp_step) as i32).max(1);
    let begin = (header.last_up / seconds * seconds).wrapping_add(1);
    (begin, begin.wrapping_add(seconds - 1))
}
