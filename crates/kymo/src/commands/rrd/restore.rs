//! `restore`: makes a file from a dump.

use std::io::BufRead as _;

use kymo_rrd::options::{self, Known, Piece, Takes};
use kymo_rrd::restore::{self, RangeCheck};

use super::file;
use kymo_base::errno::strerror;

use super::message::Message;
use super::path::path;
use super::session::Session;

const OPTIONS: &[Known] = &[
    ("range-check", b'r', Takes::Nothing),
    ("force-overwrite", b'f', Takes::Nothing),
];
/// End of XML that comes over the pipe.
const CTRL_Z: u8 = 0x1a;

/// `restore`.
pub(super) fn run(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let (pieces, operands) = options::read(words, OPTIONS);
    let (mut check, mut force) = (RangeCheck::Off, false);
    for piece in pieces {
        match piece {
            Piece::Option(b'r', _) => check = RangeCheck::On,
            Piece::Option(..) => force = true,
            Piece::Bad(error) => return Err(error.into()),
        }
    }
    let [from, to] = operands.as_slice() else {
        return Err(Message::from(
            "usage rrdtool restore [--range-check|-r] [--force-overwrite|-f] file.xml file.rrd",
        ));
    };
    let xml = match *from {
        b"-" => from_pipe(session)?,
        from => std::fs::read(path(from))
            .map_err(|_| Message::of(&[b"Could not create xml reader for: ", from]))?,
    };
    let rrd = restore::restore(&xml, check, &mut session.random)?;
    file::write_restored(session, to, &rrd, force)
}

/// The input before a control-Z, or all of it. The rest of the line with the
/// control-Z is dropped.
fn from_pipe(session: &mut Session) -> Result<Vec<u8>, Message> {
    let mut xml = Vec::new();
    loop {
        let before = xml.len();
        let read = session.input.read_until(b'\n', &mut xml);
        let read =
            read.map_err(|error| Message::from(format!("reading XML: {}", strerror(&error))))?;
        let end = xml[before..].iter().position(|&byte| byte == CTRL_Z);
        if let Some(end) = end {
            xml.truncate(before + end);
        }
        if read == 0 || end.is_some() {
            return Ok(xml);
        }
    }
}
