//! Answers of any length, made and sent piece by piece, as fast as the client reads them.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use kymo_base::limits::{SMALL_CELLS, STALL_SECONDS, TAKEN_AT_LEAST};
use kymo_rrd::Header;
use kymo_rrd::dump::{self, DumpHead};
use kymo_rrd::fetch::Plan;
use kymo_rrd::zone::own_zone;
use kymo_store::{Fresh, Opened, SeriesRows};
use kymo_wire::rrdcached::{Answers, Fetch, Table};

use super::stream::Stream;
use super::{After, FETCH_FAILED, Form, open, wanted_columns};
use crate::rrdcached::connection::Connection;
use crate::rrdcached::refusals::rrd_error;
use crate::rrdcached::{Severity, Shared};

/// Sends the rows of a FETCH.
pub(super) fn fetch(
    shared: &Shared,
    request: &Fetch,
    (form, (start, end)): (Form, (i64, i64)),
    spelled: &[u8],
    connection: &mut Connection,
) -> After {
    let answers = &mut connection.answers;
    let opened = match open(shared, request.name, Fresh::Flushed, spelled) {
        Ok(opened) => opened,
        Err(error) => {
            rrd_error(answers, FETCH_FAILED, &error, spelled);
            return After::Next;
        }
    };
    let plan = match Plan::of(&opened.header, request.cf, start, end, u64::MAX) {
        Ok(plan) => plan,
        Err(error) => {
            answers.error(&[FETCH_FAILED, error.text.as_bytes()]);
            return After::Next;
        }
    };
    let names: Vec<&[u8]> = opened.header.ds.iter().map(|ds| ds.name()).collect();
    let Some(wanted) = wanted_columns(request.columns.clone(), &names, spelled, answers) else {
        return After::Next;
    };
    let table = Table {
        start: plan.start,
        end: plan.end,
        step: plan.step,
        names: &names,
        cells: &[],
        wanted: &wanted,
    };
    let mut pieces = Pieces {
        plan,
        header: &opened.header,
        rows: opened.rows,
        cells: Vec::new(),
        bytes: Vec::new(),
    };
    let sent = send(shared, connection, |out| match form {
        Form::Text => put_text(&table, &mut pieces, out),
        Form::Binary => put_binary(&table, &mut pieces, out),
    });
    match sent {
        Ok(()) => After::Next,
        Err(error) => given_up(shared, "rows", &error),
    }
}

/// Rows that are read piece by piece.
struct Pieces<'a> {
    plan: Plan,
    header: &'a Header,
    rows: SeriesRows,
    cells: Vec<f64>,
    /// Buffer for the bytes of a piece.
    bytes: Vec<u8>,
}

impl Pieces<'_> {
    /// Writes the bytes that `put` makes of each piece, in order. Each piece is a table of its
    /// own.
    fn each(
        &mut self,
        table: &Table,
        out: &mut impl Write,
        put: impl Fn(&Table, usize, &mut Vec<u8>),
    ) -> io::Result<()> {
        let width = self.header.ds.len() as u64;
        let most = (SMALL_CELLS / width.max(1)).max(1);
        let mut first = 0;
        while first < self.plan.rows {
            let count = most.min(self.plan.rows - first);
            self.cells.resize((count * width) as usize, 0.0);
            let cells = &mut self.cells[..];
            let read = self.plan.read(self.header, &mut self.rows, first, cells);
            read.map_err(|error| io::Error::other(error.text))?;
            let seconds = (first as i64).wrapping_mul(table.step as i64);
            let piece = Table {
                start: table.start.wrapping_add(seconds),
                cells: &self.cells,
                ..table.clone()
            };
            self.bytes.clear();
            put(&piece, count as usize, &mut self.bytes);
            out.write_all(&self.bytes)?;
            first += count;
        }
        Ok(())
    }
}

fn put_text(table: &Table, pieces: &mut Pieces, out: &mut impl Write) -> io::Result<()> {
    let mut head = Answers::default();
    let lines = table.text_lines_of(pieces.plan.rows as usize);
    table.put_text_head(head.ok_counted(lines, &[b"Success"]));
    out.write_all(&head.out)?;
    pieces.each(table, out, |piece, _, bytes| piece.put_text_rows(bytes))
}

fn put_binary(table: &Table, pieces: &mut Pieces, out: &mut impl Write) -> io::Result<()> {
    let mut head = Answers::default();
    table.put_binary_head(head.ok_counted(table.binary_lines(), &[b"Success"]));
    out.write_all(&head.out)?;
    let rows = pieces.plan.rows as usize;
    for &column in table.wanted {
        let mut line = Vec::new();
        table.put_column_head(&mut line, column, rows);
        out.write_all(&line)?;
        // The rows are read once for each column: that costs time, but no memory.
        pieces.each(table, out, |piece, count, bytes| {
            piece.put_column(bytes, column, count);
        })?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Sends the document and ends the connection: by the end the client knows that the document
/// is complete.
pub(super) fn dump(shared: &Shared, connection: &mut Connection, mut opened: Opened) -> After {
    let sent = send(shared, connection, |out| {
        let zone = own_zone();
        dump::dump(&opened.header, &mut opened.rows, DumpHead::Dtd, &zone, out)
            .map_err(|error| io::Error::other(error.text))
    });
    match sent {
        Ok(()) => After::Close,
        Err(error) => given_up(shared, "a dump", &error),
    }
}

/// Closes the connection after an incomplete answer: only the end shows that to the client.
fn given_up(shared: &Shared, what: &str, error: &io::Error) -> After {
    shared.log(Severity::Info, &format!("cannot send {what}: {error}"));
    After::Close
}

/// Sends earlier answers, then the output of `put`.
fn send(
    shared: &Shared,
    connection: &mut Connection,
    mut put: impl FnMut(&mut BufWriter<Stream>) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(position) = connection.waits_for() {
        shared.store.durable(position)?;
        connection.release(position);
    }
    let before = connection.take_unsent();
    let patience = Duration::from_secs(STALL_SECONDS);
    let stream = Stream::new(&connection.socket, patience);
    let mut out = BufWriter::with_capacity(TAKEN_AT_LEAST, stream);
    out.write_all(&before)?;
    drop(before);
    put(&mut out)?;
    out.flush()
}
