//! `rrdtool resize`: adds rows to an archive or removes some.

use crate::UNKNOWN;
use crate::error::Error;
use crate::room::require_room;
use crate::rrd::Rrd;

/// A parsed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resize {
    /// Index of the archive.
    pub archive: i64,
    /// Number of rows to add, or to remove if negative; never 0.
    pub rows: i64,
}

impl Resize {
    /// Parses the arguments of `resize`: file, archive, `GROW` or `SHRINK`, rows.
    pub fn parse(args: &[&[u8]]) -> Result<Resize, Error> {
        if args.first() == Some(&&b"resize.rrd"[..]) {
            return Err(Error::new("resize.rrd is a reserved name"));
        }
        let &[_, archive, way, rows] = args else {
            return Err(Error::new("wrong number of parameters"));
        };
        let sign = match way {
            b"GROW" => 1,
            b"SHRINK" => -1,
            _ => return Err(Error::new("I can only GROW or SHRINK")),
        };
        let rows = strtol(rows);
        if rows < 1 {
            return Err(Error::new("Please grow or shrink with at least 1 row"));
        }
        Ok(Resize {
            archive: strtol(archive),
            rows: sign * rows,
        })
    }
}

/// The resized file, which rrdtool writes to `resize.rrd`. Added rows are unknown and older than all
/// others.
pub fn resize(rrd: &Rrd, how: Resize) -> Result<Rrd, Error> {
    let archive = usize::try_from(how.archive).ok();
    let archive = archive.filter(|&archive| archive < rrd.header.rra.len());
    let archive = archive.ok_or_else(|| Error::new("no such RRA in this RRD"))?;
    let row_cnt = rrd.header.rra[archive].row_cnt;
    if how.rows < 0 && row_cnt <= how.rows.unsigned_abs() {
        return Err(Error::new("This RRA is not that big"));
    }
    let mut header = rrd.header.clone();
    match header.version {
        1 => header.version = 3,
        3 | 4 => {}
        version => {
            return Err(Error::new(format!(
                "Do not know how to handle RRD version 000{version}"
            )));
        }
    }
    header.rra[archive].row_cnt = row_cnt.saturating_add_signed(how.rows);
    require_room(&header)?;
    let (ds_cnt, cur_row) = (header.ds.len(), header.cur_row[archive]);
    let first = rrd.header.cell(archive, 0) as usize;
    let (own, behind) = rrd.cells[first..].split_at(row_cnt as usize * ds_cnt);
    let (newer, older) = own.split_at((cur_row as usize + 1) * ds_cnt);
    let mut cells = rrd.cells[..first].to_vec();
    if how.rows > 0 {
        cells.extend_from_slice(newer);
        cells.resize(cells.len() + how.rows as usize * ds_cnt, UNKNOWN);
        cells.extend_from_slice(older);
    } else {
        // The oldest rows are behind the current one, followed by those at the archive's beginning.
        let removed = how.rows.unsigned_abs() as usize * ds_cnt;
        let at_end = removed.min(older.len());
        let at_start = removed - at_end;
        header.cur_row[archive] = cur_row - at_start as u64 / ds_cnt.max(1) as u64;
        cells.extend_from_slice(&newer[at_start..]);
        cells.extend_from_slice(&older[at_end..]);
    }
    cells.extend_from_slice(behind);
    Ok(Rrd { header, cells })
}

/// C's `strtol(text, .., 0)`: hexadecimal after `0x`, octal after `0`.
pub(crate) fn strtol(text: &[u8]) -> i64 {
    let (negative, magnitude) = magnitude(text);
    let limit = u128::from(i64::MAX.unsigned_abs()) + u128::from(negative);
    let magnitude = magnitude.min(limit) as i128;
    (if negative { -magnitude } else { magnitude }) as i64
}

/// C's `strtoul(text, .., 0)`; `None` if it is out of range.
pub(crate) fn strtoul(text: &[u8]) -> Option<u64> {
    let (negative, magnitude) = magnitude(text);
    let value = u64::try_from(magnitude).ok()?;
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// Sign and magnitude; a prefix gives the base.
fn magnitude(text: &[u8]) -> (bool, u128) {
    let text = text.trim_ascii_start();
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (base, digits) = match text {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => (16, &text[2..]),
        [b'0', ..] => (8, text),
        _ => (10, text),
    };
    let digits = digits
        .iter()
        .map_while(|&byte| char::from(byte).to_digit(base));
    let value = digits.fold(0u128, |value, digit| {
        (value.saturating_mul(base.into()) + u128::from(digit)).min(1 << 65)
    });
    (negative, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::create::{Create, create};

    #[test]
    fn rows_go_and_come_behind_the_current_one() {
        let request = Create {
            file_name: b"f",
            definitions: &[b"DS:a:GAUGE:60:U:U", b"RRA:LAST:0.5:1:5"],
            ..Create::default()
        };
        let mut rrd = create(&request, 1_000_000_000, &mut 1, None, &[]).unwrap();
        rrd.cells = vec![0.0, 1.0, 2.0, 3.0, 4.0];
        let x = f64::INFINITY;
        let cases: &[(u64, i64, u64, &[f64])] = &[
            (1, 2, 1, &[0.0, 1.0, x, x, 2.0, 3.0, 4.0]),
            (1, -2, 1, &[0.0, 1.0, 4.0]),
            (1, -4, 0, &[1.0]),
            (4, -3, 1, &[3.0, 4.0]),
            (4, 1, 4, &[0.0, 1.0, 2.0, 3.0, 4.0, x]),
        ];
        for &(cur_row, rows, expected_row, expected) in cases {
            rrd.header.cur_row[0] = cur_row;
            let made = resize(&rrd, Resize { archive: 0, rows }).unwrap();
            let cells = made
                .cells
                .iter()
                .map(|cell| if cell.is_nan() { x } else { *cell });
            assert_eq!(cells.collect::<Vec<_>>(), expected);
            assert_eq!(made.header.cur_row[0], expected_row);
            assert_eq!(made.header.rra[0].row_cnt, expected.len() as u64);
        }
        for (archive, rows) in [(1, 1), (-1, 1), (0, -5), (0, i64::MAX)] {
            assert!(resize(&rrd, Resize { archive, rows }).is_err());
        }
    }

    #[test]
    fn numbers_are_read_as_strtol_reads_them() {
        let cases = [
            ("10", 10),
            (" -7x", -7),
            ("0x1f", 31),
            ("0x", 0),
            ("010", 8),
            ("+3", 3),
            ("", 0),
            ("99999999999999999999", i64::MAX),
            ("-99999999999999999999", i64::MIN),
        ];
        for (text, expected) in cases {
            assert_eq!(strtol(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(strtoul(b"-1"), Some(u64::MAX));
        assert_eq!(strtoul(b"18446744073709551616"), None);
    }
}
