//! Writes whole .rrd files piece by piece: clients choose
//! the size of a file, and memory must not depend on it.

use kymo_base::limits::PIECE_BYTES;
use kymo_rrd::{Error, Header, Rows, UNKNOWN};
use std::io::{self, Write};

/// Writes a file with these rows; a file no longer than a piece is written with one call.
pub(crate) fn write_file(
    header: &Header,
    rows: &mut dyn Rows,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut bytes = begin(header);
    let width = header.ds.len().max(1) as u64;
    let most = (PIECE_BYTES as u64 / (8 * width)).max(1);
    let mut cells = Vec::new();
    for (archive, rra) in header.rra.iter().enumerate() {
        let mut at = 0;
        while at < rra.row_cnt {
            let count = (rra.row_cnt - at).min(most);
            cells.resize((count * width) as usize, 0.0);
            let read = rows.read(header.cell(archive, at), &mut cells);
            read.map_err(|error| io::Error::other(error.text))?;
            if bytes.len() + 8 * cells.len() > bytes.capacity() {
                out.write_all(&bytes)?;
                bytes.clear();
            }
            bytes.extend(cells.iter().flat_map(|cell| cell.to_le_bytes()));
            at += count;
        }
    }
    out.write_all(&bytes)
}

/// Writes a file whose cells are all unknown.
pub(crate) fn write_blank(header: &Header, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = begin(header);
    let mut left = header.cell_count() as usize;
    let unknown = UNKNOWN.to_le_bytes();
    loop {
        let room = (bytes.capacity() - bytes.len()) / 8;
        let count = left.min(room);
        bytes.extend_from_slice(&unknown.repeat(count));
        out.write_all(&bytes)?;
        left -= count;
        if left == 0 {
            return Ok(());
        }
        bytes.clear();
    }
}

/// The encoded header, with room for a piece of the rows.
fn begin(header: &Header) -> Vec<u8> {
    let rows = 8 * header.cell_count() as usize;
    let mut bytes = Vec::with_capacity(header.size_bytes() as usize + rows.min(PIECE_BYTES));
    header.encode(&mut bytes);
    bytes
}

/// Read-only cells.
pub(crate) struct Cells<'a>(pub(crate) &'a [f64]);

impl Rows for Cells<'_> {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        let first = first as usize;
        let found = self.0.get(first..first + cells.len());
        cells.copy_from_slice(found.ok_or_else(|| Error::new("a row lies outside the file"))?);
        Ok(())
    }

    fn write(&mut self, _first: u64, _cells: &[f64]) -> Result<(), Error> {
        Err(Error::read_only())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_rrd::Rrd;
    use kymo_rrd::create::{Create, create};

    /// All writes, in order.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn made(definitions: &[&str]) -> Rrd {
        let definitions: Vec<&[u8]> = definitions.iter().map(|def| def.as_bytes()).collect();
        let request = Create {
            file_name: b"f",
            definitions: &definitions,
            ..Create::default()
        };
        create(&request, 1_000_000_017, &mut 1, None, &[]).unwrap()
    }

    #[test]
    fn pieces_are_the_file() {
        let plain = ["DS:a:GAUGE:60:U:U", "DS:b:GAUGE:60:U:U", "RRA:LAST:0.5:1:5"];
        let long = [
            "DS:a:GAUGE:60:U:U",
            "RRA:LAST:0.5:1:99999",
            "RRA:MAX:0.5:2:40000",
        ];
        let seasons = ["DS:a:GAUGE:60:U:U", "RRA:HWPREDICT:50000:0.1:0.1:3000"];
        for (definitions, at_once) in [
            (&plain[..], true),
            (&long[..], false),
            (&seasons[..], false),
        ] {
            let mut rrd = made(definitions);
            let mut writes = Writes::default();
            write_blank(&rrd.header, &mut writes).unwrap();
            assert!(writes.0.concat() == rrd.to_bytes(), "{definitions:?}");
            assert_eq!(writes.0.len() == 1, at_once, "{definitions:?}");
            for (at, cell) in rrd.cells.iter_mut().enumerate() {
                *cell = at as f64;
            }
            let mut writes = Writes::default();
            write_file(&rrd.header, &mut Cells(&rrd.cells), &mut writes).unwrap();
            assert!(writes.0.concat() == rrd.to_bytes(), "{definitions:?}");
            assert_eq!(writes.0.len() == 1, at_once, "{definitions:?}");
            let longest = writes.0.iter().map(Vec::len).max().unwrap();
            assert!(longest <= PIECE_BYTES + rrd.header.size_bytes() as usize);
        }
    }
}
