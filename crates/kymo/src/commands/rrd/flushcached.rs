//! `flushcached`: lets a daemon write its values of some files.

use kymo_rrd::options::{self, Known, Piece, Takes};

use super::message::Message;
use super::session::Session;

const OPTIONS: &[Known] = &[("daemon", b'd', Takes::Argument)];

/// `flushcached`.
pub(super) fn run(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let (pieces, files) = options::read(words, OPTIONS);
    let mut daemon = None;
    for piece in pieces {
        match piece {
            Piece::Option(_, address) => daemon = Some(address),
            Piece::Bad(error) => return Err(error.into()),
        }
    }
    if files.is_empty() {
        return Err(Message::from(
            "Usage: rrdtool flushcached [--daemon|-d <addr>] <file> [<file> ...]",
        ));
    }
    session.client.connect(daemon)?;
    if !session.client.is_connected(daemon) {
        return Err(Message::of(&[
            b"Daemon address \"",
            daemon.unwrap_or(b"(null)"),
            b"\" unknown. Please use the \"--daemon\" option to set an address on the command line or set the \"RRDCACHED_ADDRESS\" environment variable.",
        ]));
    }
    for name in &files {
        session.client.flush(name).map_err(|message| {
            // Counted as rrdtool does: all files but one, whichever
            // failed.
            let left = files.len() - 1;
            let plural = if left == 1 { "" } else { "s" };
            let skipped = format!(". Skipping remaining {left} file{plural}.");
            Message::of(&[
                b"Flushing of file \"",
                name,
                b"\" failed: ",
                &message.0,
                skipped.as_bytes(),
            ])
        })?;
    }
    Ok(())
}
