//! The lines of long answers: FETCH, FETCHBIN, STATS.

use kymo_base::printf::{put_exp, put_unsigned};
use std::io::Write;

/// The rows that FETCH and FETCHBIN answer with.
#[derive(Clone, Debug, Default)]
pub struct Table<'a> {
    /// Time of the first row less one step, seconds since 1970.
    pub start: i64,
    /// Time of the last row, seconds since 1970.
    pub end: i64,
    /// Seconds between two rows; not 0.
    pub step: u64,
    /// Names of the columns.
    pub names: &'a [&'a [u8]],
    /// Cells of the first row, then of the second row, and so on.
    pub cells: &'a [f64],
    /// Indices of the columns to send, in the order to send them.
    pub wanted: &'a [usize],
}

/// Why a list of columns is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnRefusal<'a> {
    /// More columns than the file has.
    TooMany,
    /// The file has no such column.
    Unknown(&'a [u8]),
    /// The column is listed twice.
    Again(&'a [u8]),
}

/// Indices of the columns named in `fields`, or of all columns if it names none.
pub fn columns<'a>(
    fields: impl Iterator<Item = &'a [u8]>,
    names: &[&[u8]],
) -> Result<Vec<usize>, ColumnRefusal<'a>> {
    let mut wanted = Vec::new();
    for field in fields {
        if wanted.len() >= names.len() {
            return Err(ColumnRefusal::TooMany);
        }
        if field.is_empty() {
            continue;
        }
        let place = names.iter().position(|name| *name == field);
        let place = place.ok_or(ColumnRefusal::Unknown(field))?;
        if wanted.contains(&place) {
            return Err(ColumnRefusal::Again(field));
        }
        wanted.push(place);
    }
    match wanted.is_empty() {
        true => Ok((0..names.len()).collect()),
        false => Ok(wanted),
    }
}

/// Lines of [`Table::put_head`].
const HEAD_LINES: usize = 5;

impl Table<'_> {
    fn put_head(&self, out: &mut Vec<u8>) {
        put(out, format_args!("FlushVersion: 1\n"));
        put(out, format_args!("Start: {}\n", self.start as u64));
        put(out, format_args!("End: {}\n", self.end as u64));
        put(out, format_args!("Step: {}\n", self.step));
        put(out, format_args!("DSCount: {}\n", self.wanted.len()));
    }

    /// The rows, each with its time; a row has a cell for each name.
    fn rows(&self) -> impl Iterator<Item = (i64, &[f64])> {
        let rows = self.cells.chunks_exact(self.names.len().max(1));
        let step = self.step as i64;
        let times = (1..).map(move |row: i64| self.start.wrapping_add(row.wrapping_mul(step)));
        times.zip(rows).take_while(|(time, _)| *time <= self.end)
    }

    /// Number of lines of FETCH.
    pub fn text_lines(&self) -> usize {
        self.text_lines_of(self.rows().count())
    }

    /// Number of lines of FETCH with `rows` rows, whose cells may not be there yet.
    pub fn text_lines_of(&self, rows: usize) -> usize {
        let names = self
            .wanted
            .iter()
            .filter_map(|&column| self.names.get(column));
        // A file may have line feeds in its names; the status must count each as a line.
        let feeds = names.map(|name| name.iter().filter(|&&byte| byte == b'\n').count());
        HEAD_LINES + 1 + feeds.sum::<usize>() + rows
    }

    /// Number of lines that the status of FETCHBIN announces: a column counts as one.
    pub fn binary_lines(&self) -> usize {
        HEAD_LINES + self.wanted.len()
    }

    /// Appends the lines of FETCH.
    pub fn put_text(&self, out: &mut Vec<u8>) {
        self.put_text_head(out);
        self.put_text_rows(out);
    }

    /// Appends the lines of FETCH before its rows.
    pub fn put_text_head(&self, out: &mut Vec<u8>) {
        self.put_head(out);
        out.extend_from_slice(b"DSName: ");
        for (i, &column) in self.wanted.iter().enumerate() {
            if i > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(self.names.get(column).copied().unwrap_or_default());
        }
        out.push(b'\n');
    }

    /// Appends the rows of FETCH.
    pub fn put_text_rows(&self, out: &mut Vec<u8>) {
        for (time, cells) in self.rows() {
            put_unsigned(out, time as u64, 10);
            out.push(b':');
            for &column in self.wanted {
                out.push(b' ');
                put_exp(out, cells.get(column).copied().unwrap_or(f64::NAN), 17);
            }
            out.push(b'\n');
        }
    }

    /// Appends the lines of FETCHBIN. The status counts a column as one line, despite its line feeds.
    pub fn put_binary(&self, out: &mut Vec<u8>) {
        self.put_binary_head(out);
        let count = self.rows().count();
        for &column in self.wanted {
            self.put_column_head(out, column, count);
            self.put_column(out, column, count);
            out.push(b'\n');
        }
    }

    /// Appends the lines of FETCHBIN before its columns.
    pub fn put_binary_head(&self, out: &mut Vec<u8>) {
        self.put_head(out);
    }

    /// Appends the head of a column of `rows` rows, a line of its own.
    pub fn put_column_head(&self, out: &mut Vec<u8>, column: usize, rows: usize) {
        out.extend_from_slice(b"DSName-");
        out.extend_from_slice(self.names.get(column).copied().unwrap_or_default());
        put(out, format_args!(": BinaryData {rows} 8 LITTLE\n"));
    }

    /// Appends the first `count` cells of a column.
    pub fn put_column(&self, out: &mut Vec<u8>, column: usize, count: usize) {
        let from = out.len();
        out.resize(from + 8 * count, 0);
        let places = out[from..].as_chunks_mut().0.iter_mut();
        let rows = self.cells.chunks_exact(self.names.len().max(1));
        for (place, cells) in places.zip(rows) {
            *place = cells.get(column).copied().unwrap_or(f64::NAN).to_le_bytes();
        }
    }
}

/// The counters of STATS. The client of librrd 1.7.2 refuses unknown names of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Stats {
    pub queue_length: u64,
    pub updates_received: u64,
    pub flushes_received: u64,
    pub updates_written: u64,
    pub data_sets_written: u64,
    pub tree_nodes: u64,
    pub tree_depth: u64,
    pub journal_bytes: u64,
    pub journal_rotate: u64,
}

impl Stats {
    /// Appends the lines of STATS.
    pub fn put(&self, out: &mut Vec<u8>) {
        for (name, value) in [
            ("QueueLength", self.queue_length),
            ("UpdatesReceived", self.updates_received),
            ("FlushesReceived", self.flushes_received),
            ("UpdatesWritten", self.updates_written),
            ("DataSetsWritten", self.data_sets_written),
            ("TreeNodesNumber", self.tree_nodes),
            ("TreeDepth", self.tree_depth),
            ("JournalBytes", self.journal_bytes),
            ("JournalRotate", self.journal_rotate),
        ] {
            put(out, format_args!("{name}: {value}\n"));
        }
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments) {
    // Writes to memory do not fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: f64 = f64::from_bits(0xfff8_0000_0000_0000);

    #[test]
    fn numbers_are_cs() {
        for (value, digits, text) in [
            (0.0, 10, "0.0000000000e+00"),
            (-0.0, 10, "-0.0000000000e+00"),
            (1.0, 17, "1.00000000000000000e+00"),
            (0.1, 17, "1.00000000000000006e-01"),
            (-1234.5, 17, "-1.23450000000000000e+03"),
            (1e100, 10, "1.0000000000e+100"),
            (5e-324, 17, "4.94065645841246544e-324"),
            (f64::MAX, 17, "1.79769313486231571e+308"),
            (f64::INFINITY, 17, "inf"),
            (f64::NEG_INFINITY, 17, "-inf"),
            (UNKNOWN, 17, "-nan"),
            (-UNKNOWN, 17, "nan"),
        ] {
            let mut out = b"e".to_vec();
            put_exp(&mut out, value, digits);
            assert_eq!(out.escape_ascii().to_string(), format!("e{text}"));
        }
    }

    fn table<'a>(names: &'a [&'a [u8]], cells: &'a [f64], wanted: &'a [usize]) -> Table<'a> {
        Table {
            start: 1_000_000_000,
            end: 1_000_000_020,
            step: 10,
            names,
            cells,
            wanted,
        }
    }

    #[test]
    fn fetched_rows_are_text() {
        let (names, cells) = ([&b"x"[..], b"yy"], [1.0, 2.0, UNKNOWN, 0.5, 9.0, 9.0]);
        let mut out = Vec::new();
        table(&names, &cells, &[1, 0]).put_text(&mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "FlushVersion: 1\nStart: 1000000000\nEnd: 1000000020\nStep: 10\nDSCount: 2\nDSName: yy x\n\
             1000000010: 2.00000000000000000e+00 1.00000000000000000e+00\n\
             1000000020: 5.00000000000000000e-01 -nan\n"
        );
    }

    #[test]
    fn fetched_rows_are_bytes() {
        let (names, cells) = ([&b"x"[..], b"y"], [1.0, 2.0, 3.0, 4.0]);
        let mut out = Vec::new();
        table(&names, &cells, &[1]).put_binary(&mut out);
        let mut expected =
            b"FlushVersion: 1\nStart: 1000000000\nEnd: 1000000020\nStep: 10\nDSCount: 1\n\
              DSName-y: BinaryData 2 8 LITTLE\n"
                .to_vec();
        expected.extend_from_slice(&2f64.to_le_bytes());
        expected.extend_from_slice(&4f64.to_le_bytes());
        expected.push(b'\n');
        assert_eq!(out, expected);
    }

    #[test]
    fn columns_are_named() {
        let names = [&b"a"[..], b"b"];
        type Expected<'a> = Result<Vec<usize>, ColumnRefusal<'a>>;
        let table: &[(&[&[u8]], Expected)] = &[
            (&[], Ok(vec![0, 1])),
            (&[b""], Ok(vec![0, 1])),
            (
                &[b"b", b"", b"a"],
                Err(ColumnRefusal::TooMany).or(Ok(vec![1, 0])),
            ),
            (&[b"c"], Err(ColumnRefusal::Unknown(b"c"))),
            (&[b"b", b"b"], Err(ColumnRefusal::Again(b"b"))),
            (&[b"b", b"a", b"a"], Err(ColumnRefusal::TooMany)),
            (&[b"b", b"a", b""], Err(ColumnRefusal::TooMany)),
        ];
        for (fields, expected) in table {
            assert_eq!(
                columns(fields.iter().copied(), &names),
                *expected,
                "{fields:?}"
            );
        }
    }

    #[test]
    fn stats_have_nine_names() {
        let (mut out, stats) = (Vec::new(), Stats::default());
        stats.put(&mut out);
        assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 9);
        assert!(out.starts_with(b"QueueLength: 0\nUpdatesReceived: 0\n"));
    }
}
