//! Commands of pipe mode for folders: quit ls cd mkdir pwd.

use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{Dir, Mode, OFlags};

use super::Command;
use kymo_base::errno::strerror;

use super::message::Message;
use super::path::path;
use super::session::Session;

const PLACES: &[(&str, Command)] = &[
    ("quit", quit),
    ("cd", cd),
    ("pwd", pwd),
    ("mkdir", mkdir),
    ("ls", ls),
];

/// The command with this name.
pub(super) fn find(name: &[u8]) -> Option<Command> {
    let found = PLACES.iter().find(|each| each.0.as_bytes() == name);
    found.map(|&(_, command)| command)
}

/// Changes to the folder of `rrdtool - DIR`. It does not become the root folder, even for root, as in Debian's
/// build. The error comes with its exit code.
pub(super) fn begin(dir: &[u8]) -> Result<(), (Message, u8)> {
    if dir.is_empty() {
        return Ok(());
    }
    std::env::set_current_dir(path(dir)).map_err(|error| {
        let text = Message::of(&[b"chdir ", dir, b" ", strerror(&error).as_bytes()]);
        (text, error.raw_os_error().unwrap_or(1) as u8)
    })
}

fn only<'a, const N: usize>(words: &[&'a [u8]], name: &str) -> Result<[&'a [u8]; N], Message> {
    let wrong = || Message::from(format!("invalid parameter count for {name}"));
    words.try_into().map_err(|_| wrong())
}

fn quit(_: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    only::<0>(words, "quit").map(|_| ())
}

fn cd(_: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let [dir] = only(words, "cd")?;
    std::env::set_current_dir(path(dir))
        .map_err(|error| Message::of(&[b"chdir ", dir, b" ", strerror(&error).as_bytes()]))
}

fn mkdir(_: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let [dir] = only(words, "mkdir")?;
    std::fs::create_dir(path(dir))
        .map_err(|error| Message::of(&[b"mkdir ", dir, b": ", strerror(&error).as_bytes()]))
}

fn pwd(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let [] = only(words, "pwd")?;
    let here = here().map_err(|error| Message::from(format!("getcwd {}", strerror(&error))))?;
    say(session, &[&here, b"\n"]);
    Ok(())
}

/// Name of the current folder: the shell's name if it is still right, or else the kernel's.
fn here() -> io::Result<Vec<u8>> {
    if let Some(named) = std::env::var_os("PWD") {
        let same =
            |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let both = (std::fs::metadata(&named), std::fs::metadata("."));
        if let (Ok(there), Ok(here)) = both
            && same(there, here)
        {
            return Ok(named.as_bytes().to_vec());
        }
    }
    Ok(std::env::current_dir()?.as_os_str().as_bytes().to_vec())
}

fn ls(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let [] = only(words, "ls")?;
    let cannot = |error: rustix::io::Errno| {
        let error = io::Error::from(error);
        Message::from(format!("opendir .: {}", strerror(&error)))
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(".", flags, Mode::empty()).map_err(cannot)?;
    for entry in Dir::read_from(dir).map_err(cannot)?.flatten() {
        let name = entry.file_name().to_bytes();
        let Ok(stat) = std::fs::metadata(path(name)) else {
            continue;
        };
        if stat.is_dir() {
            say(session, &[b"d ", name, b"\n"]);
        } else if stat.is_file()
            && name.len() > 4
            && matches!(&name[name.len() - 4..], b".rrd" | b".RRD")
        {
            say(session, &[b"- ", name, b"\n"]);
        }
    }
    Ok(())
}

fn say(session: &mut Session, parts: &[&[u8]]) {
    // If the reader is gone, a flush notices it.
    let _ = session.out.write_all(&parts.concat());
}
