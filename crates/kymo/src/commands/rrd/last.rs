//! `first`, `last` and `lastupdate`: stamps of a file.

use std::io::Write as _;

use kymo_rrd::fetch;
use kymo_rrd::header::until_nul;
use kymo_rrd::options::{self, Known, Piece, Takes};

use super::file::{Access, RrdFile};
use super::message::Message;
use super::session::Session;

const DAEMON: Known = ("daemon", b'd', Takes::Argument);
/// Option `--rraindex`, which has no letter.
const ARCHIVE: Known = ("rraindex", 129, Takes::Argument);

/// `first`: the stamp of an archive's first row. After an error it is printed as -1.
pub(super) fn first(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let found = find_first(session, words);
    say(session, &found);
    found.map(|_| ())
}

fn find_first(session: &mut Session, words: &[&[u8]]) -> Result<i64, Message> {
    let (pieces, operands) = options::read(words, &[ARCHIVE, DAEMON]);
    let (mut archive, mut daemon) = (0, None);
    for piece in pieces {
        match piece {
            Piece::Option(129, text) => {
                archive = integer(text);
                if archive < 0 {
                    return Err(Message::from("invalid rraindex number"));
                }
            }
            Piece::Option(_, address) => daemon = Some(address),
            Piece::Bad(error) => return Err(error.into()),
        }
    }
    let [name, ..] = operands.as_slice() else {
        return Err(Message::from(
            "usage rrdtool first [--rraindex number] [--daemon|-d <addr>] file.rrd",
        ));
    };
    if session.try_connect(daemon) {
        return session.client.first(name, archive);
    }
    let open = RrdFile::open(name, Access::Read, &mut session.bytes)?;
    Ok(fetch::first(&open.header, archive)?)
}

/// `last`: the stamp of the last update. After an error it is printed as -1.
pub(super) fn last(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let found = find_last(session, words);
    say(session, &found);
    found.map(|_| ())
}

fn find_last(session: &mut Session, words: &[&[u8]]) -> Result<i64, Message> {
    let (daemon, name) = daemon_and_file(words, "last")?;
    if session.try_connect(daemon) {
        return session.client.last(name);
    }
    let open = RrdFile::open(name, Access::Read, &mut session.bytes)?;
    Ok(fetch::last(&open.header))
}

fn say(session: &mut Session, found: &Result<i64, Message>) {
    // If the reader is gone, the last flush notices it.
    let _ = writeln!(session.out, "{}", found.as_ref().unwrap_or(&-1));
}

/// `lastupdate`: the last reading of each data source, from the file, which a daemon updates first.
pub(super) fn last_update(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let (daemon, name) = daemon_and_file(words, "lastupdate")?;
    session.flush_if_connected(daemon, name)?;
    let header = RrdFile::open(name, Access::Read, &mut session.bytes)?.header;
    let mut text = Vec::new();
    for source in &header.ds {
        text.push(b' ');
        text.extend_from_slice(source.name());
    }
    text.extend_from_slice(format!("\n\n{:>10}:", header.last_up).as_bytes());
    for prepared in &header.pdp_prep {
        text.push(b' ');
        text.extend_from_slice(until_nul(&prepared.last_ds));
    }
    text.push(b'\n');
    let _ = session.out.write_all(&text);
    Ok(())
}

/// Reads a command line with a daemon and one file.
fn daemon_and_file<'a>(
    words: &[&'a [u8]],
    command: &str,
) -> Result<(Option<&'a [u8]>, &'a [u8]), Message> {
    let (pieces, operands) = options::read(words, &[DAEMON]);
    let mut daemon = None;
    for piece in pieces {
        match piece {
            Piece::Option(_, address) => daemon = Some(address),
            Piece::Bad(error) => return Err(error.into()),
        }
    }
    match operands.as_slice() {
        [name] => Ok((daemon, name)),
        _ => {
            let usage = format!("Usage: rrdtool {command} [--daemon|-d <addr>] <file>");
            Err(usage.into())
        }
    }
}

/// C's `strtol` in base 0, as an int.
fn integer(text: &[u8]) -> i64 {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, base) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    let digits = digits.chars().map_while(|digit| digit.to_digit(base));
    let number = digits.fold(0i64, |number, digit| {
        number
            .saturating_mul(base.into())
            .saturating_add(digit.into())
    });
    i64::from((if negative { -number } else { number }) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_c_does() {
        for (text, expected) in [
            ("12", 12),
            (" -3x", -3),
            ("+010", 8),
            ("0x1f", 31),
            ("x", 0),
            ("", 0),
            ("4294967295", -1),
            ("99999999999999999999", -1),
        ] {
            assert_eq!(integer(text.as_bytes()), expected, "{text}");
        }
    }
}
