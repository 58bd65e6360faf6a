//! `fetch`: rows between two times.

use std::io::Write as _;

use kymo_rrd::at_time::{self, AtTime};
use kymo_rrd::cf::Cf;
use kymo_rrd::options::{self, Known, Piece, Takes};
use kymo_rrd::{fetch, spec};

use super::file::{Access, RrdFile};
use super::message::Message;
use super::session::Session;

const OPTIONS: &[Known] = &[
    ("resolution", b'r', Takes::Argument),
    ("start", b's', Takes::Argument),
    ("end", b'e', Takes::Argument),
    ("align-start", b'a', Takes::Nothing),
    ("daemon", b'd', Takes::Argument),
];
/// Earliest start of a fetch: ten years after the epoch.
const EARLIEST: i64 = 3600 * 24 * 365 * 10;

/// Options and words of the command.
struct FetchOptions<'a> {
    start: AtTime,
    end: AtTime,
    step: u64,
    align: bool,
    daemon: Option<&'a [u8]>,
    operands: Vec<&'a [u8]>,
}

/// `fetch`.
pub(super) fn run(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let options = read(session, words)?;
    let (start, end) = range(session, &options)?;
    let [name, cf, ..] = options.operands.as_slice() else {
        return Err(Message::from("Usage: rrdtool fetch <file> <CF> [options]"));
    };
    let fetched = if session.try_connect(options.daemon) {
        session.client.fetch(name, cf, start, end)?
    } else {
        if Cf::of(cf).is_none() {
            return Err(Message::of(&[
                b"unknown consolidation function '",
                cf,
                b"'",
            ]));
        }
        let mut open = RrdFile::open(name, Access::Read, &mut session.bytes)?;
        let (header, mut rows) = open.parts();
        fetch::fetch(header, &mut rows, cf, start, end, options.step)?
    };
    let mut text = Vec::new();
    fetch::print(&fetched, &mut text);
    // If the reader is gone, the last flush notices it.
    let _ = session.out.write_all(&text);
    Ok(())
}

fn read<'a>(session: &Session, words: &[&'a [u8]]) -> Result<FetchOptions<'a>, Message> {
    let (pieces, operands) = options::read(words, OPTIONS);
    let calendar = &session.calendar;
    let mut options = FetchOptions {
        start: calendar.parse(b"end-24h")?,
        end: calendar.parse(b"now")?,
        step: 1,
        align: false,
        daemon: None,
        operands,
    };
    let time = |what: &str, text: &[u8]| {
        let parsed = calendar.parse(text);
        parsed.map_err(|error| Message::from(format!("{what} time: {}", error.text)))
    };
    for piece in pieces {
        match piece {
            Piece::Option(b's', text) => options.start = time("start", text)?,
            Piece::Option(b'e', text) => options.end = time("end", text)?,
            Piece::Option(b'a', _) => options.align = true,
            Piece::Option(b'r', text) => {
                let step = spec::duration(text, 1);
                options.step = step.map_err(|why| Message::from(format!("resolution: {why}")))?;
            }
            Piece::Option(_, daemon) => options.daemon = Some(daemon),
            Piece::Bad(error) => return Err(error.into()),
        }
    }
    Ok(options)
}

/// Start and end in seconds.
fn range(session: &Session, options: &FetchOptions<'_>) -> Result<(i64, i64), Message> {
    let ends = |calendar: &mut _| at_time::range(&options.start, &options.end, calendar);
    let (mut start, mut end) = session.calendar.with(ends)?;
    if start < EARLIEST {
        return Err(Message::from(
            "the first entry to fetch should be after 1980",
        ));
    }
    if options.align {
        let delta = (start as u64 % options.step.max(1)) as i64;
        (start, end) = (start - delta, end - delta);
    }
    if end < start {
        let text = format!("start ({start}) should be less than end ({end})");
        return Err(text.into());
    }
    Ok((start, end))
}
