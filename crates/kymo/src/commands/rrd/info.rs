//! `info`: the header of a file.

use std::io::Write as _;

use kymo_rrd::info;
use kymo_rrd::options::{self, Known, Piece, Takes};

use super::file::{Access, RrdFile};
use super::message::Message;
use super::session::Session;

const OPTIONS: &[Known] = &[
    ("daemon", b'd', Takes::Argument),
    ("noflush", b'F', Takes::Nothing),
];

/// `info`.
pub(super) fn run(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let (pieces, operands) = options::read(words, OPTIONS);
    let (mut daemon, mut flush) = (None, true);
    for piece in pieces {
        match piece {
            Piece::Option(b'd', address) => daemon = Some(address),
            Piece::Option(..) => flush = false,
            Piece::Bad(error) => return Err(error.into()),
        }
    }
    let [name] = operands.as_slice() else {
        return Err(Message::from(
            "Usage: rrdtool info [--daemon |-d <addr> [--noflush|-F]] <file>",
        ));
    };
    if flush {
        session.flush_if_connected(daemon, name)?;
    }
    let entries = if session.try_connect(daemon) {
        session.client.info(name)?
    } else {
        let open = RrdFile::open(name, Access::Read, &mut session.bytes)?;
        info::info(&open.header, name)
    };
    let mut text = Vec::new();
    info::print(&entries, &mut text);
    // If the reader is gone, the last flush notices
    // it.
    let _ = session.out.write_all(&text);
    Ok(())
}
