//! Changes the structure of a file: adds and removes data sources, archives, and rows of archives. The file is
//! rewritten, its rows in the order of their time.
//!
//! Added rows are filled from the old file, coarsely. Regular mistakes of rrdtool are copied. Two are not: if an
//! archive is deleted, those behind it keep their own rows (rrdtool takes rows from the wrong place); and after a bad
//! `DS:`, where rrdtool would write leftovers of memory, nothing changes.

use crate::UNKNOWN;
use crate::cf::Cf;
use crate::error::Error;
use crate::header::{CdpPrep, DsDef, Header, PdpPrep, RraDef};
use crate::preparation::{new_cdp, new_pdp};
use crate::room::require_room;
use crate::row_time::{Archive, end_time_for_row, timeslot};
use crate::rrd::Rrd;
use crate::spec::{self, Needs, atoi, shown};
use crate::update::put_point;

/// Changes of a file's structure.
#[derive(Default)]
struct Operations<'a> {
    delete: Vec<&'a [u8]>,
    /// Arguments of `DS:`.
    add: Vec<&'a [u8]>,
    /// Changes of row counts by archive; the first of an archive counts.
    rows: Vec<(u32, RowCount)>,
    /// Whole `RRA:` arguments.
    archives: Vec<&'a [u8]>,
}

#[derive(Clone, Copy)]
enum RowCount {
    More(u32),
    Fewer(u32),
    Just(u32),
}

/// Applies operations, and a new step if it is positive. `None`: there are no operations, in which case a new step
/// has no effect either.
pub(crate) fn modify(
    rrd: &Rrd,
    arguments: &[&[u8]],
    new_step: i32,
    file_name: &[u8],
) -> Result<Option<Rrd>, Error> {
    if arguments.is_empty() {
        return Ok(None);
    }
    let operations = parse(arguments)?;
    let hash = spec::hash(file_name);
    if new_step <= 0 {
        return restructure(rrd, &operations, hash).map(Some);
    }
    let new_step = new_step as u64;
    let step = rrd.header.pdp_step;
    if !step.is_multiple_of(new_step) || step == new_step {
        return Err(Error::new(
            "invalid 'newstep' parameter. The newsize must divide the old step parameter without a remainder.",
        ));
    }
    let mut stretched = restructure(rrd, &Operations::default(), hash)?;
    stretch(&mut stretched.header, step / new_step);
    restructure(&stretched, &operations, hash).map(Some)
}

fn parse<'a>(arguments: &[&'a [u8]]) -> Result<Operations<'a>, Error> {
    let mut operations = Operations::default();
    for &argument in arguments {
        let rest = |prefix: &[u8]| {
            argument
                .strip_prefix(prefix)
                .filter(|rest| !rest.is_empty())
        };
        if let Some(name) = rest(b"DEL:") {
            operations.delete.push(name);
        } else if let Some(def) = rest(b"DS:") {
            operations.add.push(def);
        } else if let Some(change) = rest(b"RRA#") {
            operations.rows.push(row_count(change)?);
        } else if rest(b"RRA:").is_some() {
            operations.archives.push(argument);
        } else if let Some(index) = rest(b"DELRRA:") {
            let index = u32::try_from(atoi(index))
                .map_err(|_| Error::new("DELRRA requires a non-negative, integer argument"))?;
            operations.rows.push((index, RowCount::Just(0)));
        } else {
            let argument = shown(argument);
            return Err(Error::new(format!("unparseable argument: {argument}")));
        }
    }
    Ok(operations)
}

/// Parses `index:[+-=]count`.
fn row_count(change: &[u8]) -> Result<(u32, RowCount), Error> {
    let failed = || Error::new("Failed to parse RRA# command");
    let (index, rest) = scan_unsigned(change).ok_or_else(failed)?;
    let [b':', sign, rest @ ..] = rest else {
        return Err(failed());
    };
    let (count, _) = scan_unsigned(rest).ok_or_else(failed)?;
    let change = match sign {
        b'=' => RowCount::Just(count),
        b'-' => RowCount::Fewer(count),
        b'+' => RowCount::More(count),
        _ => {
            let sign = shown(&[*sign]);
            return Err(Error::new(format!(
                "Failed to parse RRA# command: invalid operation: {sign}"
            )));
        }
    };
    Ok((index, change))
}

/// Parses a number like scanf's `%u`; returns the rest.
fn scan_unsigned(text: &[u8]) -> Option<(u32, &[u8])> {
    let text = text.trim_ascii_start();
    let digits = text
        .strip_prefix(b"-")
        .or(text.strip_prefix(b"+"))
        .unwrap_or(text);
    let len = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let value = digits[..len].iter().fold(0u64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    let value = if text.starts_with(b"-") {
        value.wrapping_neg()
    } else {
        value
    };
    (len > 0).then(|| (value as u32, &digits[len..]))
}

/// Divides the step by `by`, so that each point becomes `by` points.
fn stretch(header: &mut Header, by: u64) {
    let ds_cnt = header.ds.len();
    for (i, rra) in header.rra.iter_mut().enumerate() {
        if Cf::of(rra.cf()).is_some_and(Cf::is_plain) {
            for cdp in &mut header.cdp_prep[i * ds_cnt..(i + 1) * ds_cnt] {
                // rrdtool multiplies the count as if it were a double; small counts come out right.
                let count = f64::from_bits(cdp.scratch[1]) * by as f64;
                cdp.scratch[1] = count.to_bits();
            }
        }
        rra.pdp_cnt = rra.pdp_cnt.wrapping_mul(by);
    }
    header.pdp_step /= by;
}

fn restructure(rrd: &Rrd, operations: &Operations, hash: u64) -> Result<Rrd, Error> {
    let old = &rrd.header;
    if old.version < 3 {
        return Err(Error::new(
            "direct modification is only supported for version 3, 4 or 5 of RRD files. \
             Consider to dump/restore before retrying a modification",
        ));
    }
    let sources = sources(old, operations)?;
    let mut header = Header {
        head_pad: [0; 7],
        head_par: [0; 10],
        ds: sources.iter().map(|source| source.ds).collect(),
        pdp_prep: sources.iter().map(|source| source.pdp).collect(),
        rra: Vec::new(),
        cdp_prep: Vec::new(),
        cur_row: Vec::new(),
        ..*old
    };
    let map: Vec<Option<usize>> = sources.iter().map(|source| source.old).collect();
    let kept = keep_archives(old, operations, &map, &mut header);
    let first_new = header.rra.len();
    add_definitions(operations, hash, &mut header)?;
    require_room(&header)?;
    let mut cells = Vec::with_capacity(header.cell_count() as usize);
    for (new, &index) in kept.iter().enumerate() {
        copy_rows(rrd, &header, &map, Kept { new, old: index }, &mut cells);
    }
    for new in first_new..header.rra.len() {
        add_archive(rrd, &mut header, &map, new, &mut cells);
    }
    header
        .check()
        .map_err(|_| Error::new("cannot allocate memory"))?;
    Ok(Rrd { header, cells })
}

/// A data source of the new file, and its index in the old one.
struct Source {
    ds: DsDef,
    pdp: PdpPrep,
    old: Option<usize>,
}

fn sources(old: &Header, operations: &Operations) -> Result<Vec<Source>, Error> {
    let deleted = |ds: &DsDef| operations.delete.contains(&ds.name());
    let kept = old.ds.iter().zip(&old.pdp_prep).enumerate();
    let kept = kept.filter(|(_, (ds, _))| !deleted(ds));
    let mut sources: Vec<Source> = kept
        .map(|(i, (&ds, &pdp))| Source {
            ds,
            pdp,
            old: Some(i),
        })
        .collect();
    for def in &operations.add {
        let known: Vec<DsDef> = sources.iter().map(|source| source.ds).collect();
        // The version stays the same, even if the type needs a higher one.
        let (ds, _) = spec::parse_ds(def, &known, &mut Needs::default())?;
        let mut pdp = new_pdp(old.last_up, old.pdp_step);
        pdp.scratch[1] = 0;
        sources.push(Source { ds, pdp, old: None });
    }
    Ok(sources)
}

/// Adds the archives that stay, with their new row counts; returns their old indices.
fn keep_archives(
    old: &Header,
    operations: &Operations,
    map: &[Option<usize>],
    header: &mut Header,
) -> Vec<usize> {
    let mut kept = Vec::new();
    for (i, rra) in old.rra.iter().enumerate() {
        let row_cnt = match change_of(operations, i) {
            None => rra.row_cnt as i32,
            Some(RowCount::Just(count)) => count as i32,
            Some(RowCount::Fewer(count)) => (rra.row_cnt as i32).wrapping_sub(count as i32),
            Some(RowCount::More(count)) => (rra.row_cnt as i32).wrapping_add(count as i32),
        };
        if row_cnt <= 0 {
            continue;
        }
        let rra = RraDef {
            row_cnt: row_cnt as u64,
            ..*rra
        };
        for (new, &source) in map.iter().enumerate() {
            header.cdp_prep.push(match source {
                Some(source) => old.cdp_prep[i * old.ds.len() + source],
                None => new_cdp(header.last_up, header.pdp_step, &rra, &header.pdp_prep[new]),
            });
        }
        header.rra.push(rra);
        header.cur_row.push(rra.row_cnt - 1);
        kept.push(i);
    }
    kept
}

fn change_of(operations: &Operations, archive: usize) -> Option<RowCount> {
    let mut changes = operations.rows.iter();
    let change = changes.find(|(index, _)| u32::try_from(archive) == Ok(*index));
    change.map(|&(_, change)| change)
}

fn add_definitions(operations: &Operations, hash: u64, header: &mut Header) -> Result<(), Error> {
    let mut needs = Needs::default();
    for &arg in &operations.archives {
        let rra = spec::parse_rra(arg, header.pdp_step, hash, &mut needs)?;
        header.rra.push(rra);
        spec::add_companions(&mut header.rra, hash)?;
    }
    let first_new = header.cur_row.len();
    for rra in &header.rra[first_new..] {
        header.cur_row.push(rra.row_cnt.wrapping_sub(1));
    }
    // rrdtool takes over the lower version.
    if needs != Needs::default() && needs.0 < header.version {
        header.version = needs.0;
    }
    Ok(())
}

/// Index of a kept archive in the new and in the old file.
#[derive(Clone, Copy)]
struct Kept {
    new: usize,
    old: usize,
}

/// Copies the rows of a kept archive, oldest first. Added rows come before them.
fn copy_rows(rrd: &Rrd, header: &Header, map: &[Option<usize>], kept: Kept, cells: &mut Vec<f64>) {
    let old = &rrd.header;
    let (row_cnt, cur_row) = (old.rra[kept.old].row_cnt, old.cur_row[kept.old]);
    let new_cnt = header.rra[kept.new].row_cnt;
    let first = cells.len();
    if let Some(added) = new_cnt.checked_sub(row_cnt) {
        cells.resize(first + added as usize * map.len(), UNKNOWN);
        // rrdtool looks up the current row at the archive's old index.
        let cur_row = header.cur_row.get(kept.old).copied().unwrap_or(new_cnt - 1);
        populate(
            rrd,
            header,
            map,
            (kept.new, cur_row),
            added,
            &mut cells[first..],
        );
    }
    let base = old.cell(kept.old, 0) as usize;
    for i in row_cnt.saturating_sub(new_cnt)..row_cnt {
        let row = ((i + cur_row + 1) % row_cnt) as usize;
        let row = &rrd.cells[base + row * old.ds.len()..][..old.ds.len()];
        cells.extend(
            map.iter()
                .map(|source| source.map_or(UNKNOWN, |source| row[source])),
        );
    }
}

/// Archives that can provide rows: those of the same function or of AVERAGE, the finest and among these the longest
/// first.
fn candidates<'a>(rrd: &'a Rrd, rra: &RraDef) -> Vec<Archive<'a>> {
    let cf = Cf::of(rra.cf());
    let all = Archive::all(&rrd.header, &rrd.cells);
    let mut found: Vec<_> = all
        .filter(|archive| archive.cf() == cf || archive.cf() == Some(Cf::Average))
        .collect();
    found.sort_by_key(|archive| {
        (
            archive.rra().pdp_cnt,
            std::cmp::Reverse(archive.rra().row_cnt),
        )
    });
    found
}

/// Fills the first rows of an archive from the old file. `cells` are unknown before.
fn populate(
    rrd: &Rrd,
    header: &Header,
    map: &[Option<usize>],
    (new, cur_row): (usize, u64),
    row_cnt: u64,
    cells: &mut [f64],
) {
    let rra = &header.rra[new];
    let Some(cf) = Cf::of(rra.cf()).filter(|cf| cf.is_plain()) else {
        return;
    };
    let slot = i64::from(timeslot(rra, header.pdp_step));
    let lenders = candidates(rrd, rra);
    for row in 0..row_cnt {
        let end = end_time_for_row(header, rra, cur_row as i32, row as i32);
        let start = end.wrapping_sub(slot).wrapping_add(1);
        let own = &mut cells[row as usize * map.len()..][..map.len()];
        for lender in &lenders {
            let Some((first, count)) = rows_between(lender, start, end) else {
                continue;
            };
            for (cell, source) in own.iter_mut().zip(map) {
                if let (true, &Some(source)) = (cell.is_nan(), source) {
                    *cell = lend(lender, cf, source, first, count);
                }
            }
        }
    }
}

/// The first row of an old archive that covers a time, and the number of such rows.
fn rows_between(lender: &Archive, start: i64, end: i64) -> Option<(i32, i32)> {
    let (row_cnt, cur_row) = (lender.rra().row_cnt, lender.cur_row());
    let (first, last) = match (lender.row_for_time(start), lender.row_for_time(end)) {
        (Some(first), Some(last)) => (first, last),
        (None, Some(last)) => (cur_row, last),
        // The row before the current one; before row 0, the row that an unsigned -1 leads to.
        (Some(first), None) => (
            first,
            (i64::from(cur_row.wrapping_sub(1)) as u64 % row_cnt) as i32,
        ),
        (None, None) => return None,
    };
    let count = last - first + 1;
    Some((
        first,
        if count < 0 {
            count.wrapping_add(row_cnt as i32)
        } else {
            count
        },
    ))
}

/// Combines the known values of several rows.
fn lend(lender: &Archive, cf: Cf, source: usize, first: i32, count: i32) -> f64 {
    let slot = lender.timeslot();
    let row_cnt = lender.rra().row_cnt as i64;
    let (mut sum, mut covered, mut value) = (UNKNOWN, 0i32, UNKNOWN);
    for i in 0..i64::from(count) {
        let row = ((i64::from(first) + i) % row_cnt) as i32;
        let Some(cell) = lender.cell(row, source).filter(|cell| !cell.is_nan()) else {
            continue;
        };
        value = match cf {
            Cf::Average => {
                let share = cell * f64::from(slot);
                sum = if sum.is_nan() { share } else { sum + share };
                covered = covered.wrapping_add(slot);
                sum / f64::from(covered)
            }
            Cf::Min if value < cell => value,
            Cf::Max if value > cell => value,
            _ => cell,
        };
    }
    value
}

/// Adds the rows and the rows in progress of a new archive.
fn add_archive(
    rrd: &Rrd,
    header: &mut Header,
    map: &[Option<usize>],
    new: usize,
    cells: &mut Vec<f64>,
) {
    let (rra, cur_row) = (header.rra[new], header.cur_row[new]);
    let first = cells.len();
    cells.resize(first + rra.row_cnt as usize * map.len(), UNKNOWN);
    populate(
        rrd,
        header,
        map,
        (new, cur_row),
        rra.row_cnt,
        &mut cells[first..],
    );
    let lenders = candidates(rrd, &rra);
    let lender = lenders
        .iter()
        .find(|lender| lender.rra().pdp_cnt == 1 || lender.cf() == Some(Cf::Average));
    for (i, source) in map.iter().enumerate() {
        let cdp = match (lender, source) {
            (Some(lender), &Some(source)) => {
                // As in rrdtool, this counts the rows before the archive instead of the cells.
                let before = first / map.len();
                let newest = cells.get(before + map.len() * cur_row as usize + i);
                let newest = newest.copied().unwrap_or(UNKNOWN);
                prepared(&rrd.header, lender, &rra, source, newest)
            }
            _ => new_cdp(header.last_up, header.pdp_step, &rra, &header.pdp_prep[i]),
        };
        header.cdp_prep.push(cdp);
    }
}

/// A row in progress, made of the rows that an old archive has since the last whole one.
fn prepared(old: &Header, lender: &Archive, rra: &RraDef, source: usize, newest: f64) -> CdpPrep {
    let mut cdp = CdpPrep { scratch: [0; 10] };
    cdp.scratch[8] = newest.to_bits();
    let slot = i64::from(timeslot(rra, old.pdp_step)).max(1);
    let over = old.last_up % slot;
    let end = if over == 0 {
        old.last_up
    } else {
        (old.last_up - over).wrapping_add(slot)
    };
    let (cur_row, row_cnt) = (lender.cur_row(), lender.rra().row_cnt as i32);
    let Some(first) = lender.row_for_time(end.wrapping_sub(slot - 1)) else {
        let own = lender.index * old.ds.len() + source;
        cdp.scratch[9] = lender.header.cdp_prep[own].scratch[8];
        return cdp;
    };
    let before = if first == 0 { row_cnt - 1 } else { first - 1 };
    let cell = |row| lender.cell(row, source).unwrap_or(UNKNOWN);
    cdp.scratch[9] = cell(before).to_bits();
    let cf = Cf::of(rra.cf()).unwrap_or(Cf::Last);
    let count = cur_row - first + 1 + if cur_row < first { row_cnt } else { 0 };
    for i in 0..count {
        put_point(
            &mut cdp.scratch,
            cf,
            rra,
            cell((first + i) % row_cnt),
            false,
        );
    }
    cdp
}
