//! `dump`: a file as XML.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};

use kymo_rrd::calendar::Calendar;
use kymo_rrd::dump::{self, DumpHead};
use kymo_rrd::options::{self, Known, Piece, Takes};

use super::file::{Access, RrdFile};
use kymo_base::errno::strerror;

use super::message::Message;
use super::path::path;
use super::session::Session;

const OPTIONS: &[Known] = &[
    ("daemon", b'd', Takes::Argument),
    ("header", b'h', Takes::Argument),
    ("no-header", b'n', Takes::Nothing),
];
const USAGE: &str = "usage rrdtool dump [--header|-h {none,xsd,dtd}]\n[--no-header|-n]\n[--daemon|-d address]\nfile.rrd [file.xml]";

/// `dump`: from the file, which a daemon updates first.
pub(super) fn run(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let (pieces, operands) = options::read(words, OPTIONS);
    let (mut daemon, mut head) = (None, DumpHead::default());
    for piece in pieces {
        match piece {
            Piece::Option(b'd', address) => daemon = Some(address),
            Piece::Option(b'n', _) | Piece::Option(b'h', b"none") => head = DumpHead::None,
            Piece::Option(b'h', b"dtd") => head = DumpHead::Dtd,
            Piece::Option(b'h', b"xsd") => head = DumpHead::Xsd,
            Piece::Option(..) => {}
            Piece::Bad(_) => return Err(Message::from(USAGE)),
        }
    }
    let (name, to) = match operands.as_slice() {
        [name] => (*name, None),
        [name, to] => (*name, Some(*to)),
        _ => return Err(Message::from(USAGE)),
    };
    session.flush_if_connected(daemon, name)?;
    match to {
        None => {
            let Session {
                bytes,
                calendar,
                out,
                ..
            } = session;
            let mut open = RrdFile::open(name, Access::Read, bytes)?;
            let mut out = Quiet(out);
            calendar.with(|calendar| write(&mut open, head, calendar, &mut out))
        }
        Some(to) => into_file(session, name, to, head),
    }
}

/// Standard output. It is no error if its reader is gone.
struct Quiet<'a, W>(&'a mut W);

impl<W: Write> Write for Quiet<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

fn write(
    open: &mut RrdFile,
    head: DumpHead,
    calendar: &Calendar,
    out: &mut impl Write,
) -> Result<(), Message> {
    let (header, mut rows) = open.parts();
    dump::dump(header, &mut rows, head, calendar.zone(), out)?;
    out.flush()
        .map_err(|error| Message::from(format!("error flushing output: {}", strerror(&error))))
}

fn into_file(session: &mut Session, name: &[u8], to: &[u8], head: DumpHead) -> Result<(), Message> {
    let file = File::create(path(to)).map_err(|error| Message::about("creating", to, &error))?;
    let mut out = BufWriter::new(file);
    let opened = RrdFile::open(name, Access::Read, &mut session.bytes);
    let done = opened.and_then(|mut open| {
        let calendar = &session.calendar;
        calendar.with(|calendar| write(&mut open, head, calendar, &mut out))
    });
    if done.is_err() {
        // Half a dump is worse than no dump.
        let _ = std::fs::remove_file(path(to));
    }
    done
}
