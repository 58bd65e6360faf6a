//! `list`: names of files below a folder, of this machine or of a daemon's base.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt as _;

use kymo_rrd::options::{self, Known, Piece, Takes};
use kymo_sys::talk;

use kymo_base::errno::strerror;

use super::message::Message;
use super::path::path;
use super::pattern;
use super::session::Session;

const OPTIONS: &[Known] = &[
    ("daemon", b'd', Takes::Argument),
    ("noflush", b'F', Takes::Nothing),
    ("recursive", b'r', Takes::Nothing),
];

/// `list`.
pub(super) fn run(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let (pieces, operands) = options::read(words, OPTIONS);
    let (mut daemon, mut flush, mut recursive) = (None, true, false);
    for piece in pieces {
        match piece {
            Piece::Option(b'd', address) => daemon = Some(address),
            Piece::Option(b'F', _) => flush = false,
            Piece::Option(..) => recursive = true,
            Piece::Bad(error) => return Err(error.into()),
        }
    }
    let [dir] = operands.as_slice() else {
        return Err(Message::from(
            "Usage: rrdtool list [--daemon <addr> [--noflush]] [--recursive] <directory>",
        ));
    };
    if flush && session.try_connect(daemon) {
        session.error = None;
        session.client.flush_all()?;
    }
    if session.try_connect(daemon) {
        let names = session.client.list(recursive, dir);
        session.client.disconnect();
        say(session, &names?);
        return Ok(());
    }
    if daemon.is_some() {
        complain_of_daemon(session);
        return Ok(());
    }
    match local(dir, recursive) {
        Ok(names) if names.is_empty() => complain("Success"),
        Ok(names) => say(session, &names),
        // A message, but no failure, as in rrdtool.
        Err(error) => complain(&strerror(&error)),
    }
    Ok(())
}

fn say(session: &mut Session, names: &[Vec<u8>]) {
    for name in names {
        // If the reader is gone, the last flush notices it.
        let _ = session.out.write_all(&[name, &b"\n"[..]].concat());
    }
}

fn complain(text: &str) {
    talk::put(text.as_bytes());
}

fn complain_of_daemon(session: &Session) {
    let mut text = b"Error connecting to rrdcached".to_vec();
    if let Some(error) = &session.error {
        text.extend_from_slice(b": ");
        text.extend_from_slice(&error.0);
    }
    text.push(b'\n');
    talk::put(&text);
}

/// Names in a folder, names that fit a pattern, or the name of a single file.
fn local(dir: &[u8], recursive: bool) -> io::Result<Vec<Vec<u8>>> {
    let error = |errno: rustix::io::Errno| io::Error::from(errno);
    if dir.windows(2).any(|two| two == b"..") {
        return Err(error(rustix::io::Errno::ACCESS));
    }
    if dir.iter().any(|byte| matches!(byte, b'*' | b'?')) {
        if recursive {
            return Err(error(rustix::io::Errno::INVAL));
        }
        let names = pattern::expand(dir).into_iter();
        let names: Vec<Vec<u8>> = names.filter_map(|name| last_part(&name)).collect();
        return match names.is_empty() {
            true => Err(error(rustix::io::Errno::NOENT)),
            false => Ok(names),
        };
    }
    let stat = fs::metadata(path(dir))?;
    if is_rrd(dir) {
        if !stat.is_file() {
            return Err(error(rustix::io::Errno::NXIO));
        }
        let name = last_part(dir).ok_or_else(|| error(rustix::io::Errno::INVAL))?;
        return Ok(vec![name]);
    }
    if !stat.is_dir() {
        return Err(error(rustix::io::Errno::NOTDIR));
    }
    let mut names = Vec::new();
    walk(dir, dir, recursive, &mut names)?;
    Ok(names)
}

/// The part after the last slash; `None`: there is no slash.
fn last_part(name: &[u8]) -> Option<Vec<u8>> {
    let at = name.iter().rposition(|&byte| byte == b'/')?;
    Some(name[at + 1..].to_vec())
}

/// True if the first `.rrd` in a name is at its end.
fn is_rrd(name: &[u8]) -> bool {
    let first = name.windows(4).position(|four| four == b".rrd");
    first.is_some_and(|at| at + 4 == name.len())
}

fn walk(root: &[u8], dir: &[u8], recursive: bool, names: &mut Vec<Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(path(dir))? {
        let name = entry?.file_name().into_vec();
        let whole = [dir, &name].join(&b'/');
        let Ok(stat) = fs::metadata(path(&whole)) else {
            continue;
        };
        if stat.is_dir() && recursive {
            // A folder that cannot be read is skipped.
            let _ = walk(root, &whole, recursive, names);
        } else if !stat.is_file() || is_rrd(&name) {
            let rest = whole.strip_prefix(root).unwrap_or(&whole);
            names.push(rest.strip_prefix(b"/").unwrap_or(rest).to_vec());
        }
    }
    Ok(())
}
