//! Replays the journals of a stock rrdcached (`rrd.journal.*` in -j) once.
//!
//! They are text: `update <file> <value>...`, `wrote <path>`, `forget <path>`, one request with its escapes a
//! line. "wrote" is ignored, since it may be on the disk without the rows, and is also written when a lock made
//! the write fail. Values that a file has already are refused by their stamps.

use crate::engine::Store;
use crate::error::{FileError, Refusal};
use crate::stats::Replayed;
use kymo_sys::disk::{Disk, DiskFile, NameKind, OpenMode};
use std::io;
use std::path::Path;

const PREFIX: &str = "rrd.journal";
/// Prefix of the new name of a journal with refused lines.
const DONE: &str = "replayed-";
/// Longest line that is read; rrdcached's own limit is 4,096 bytes.
const LINE_MAX: usize = 1 << 20;
const PIECE: usize = 1 << 20;
/// Number of lines of one batch.
const TURN: usize = 4096;

/// Replays the journals that can be trusted.
pub(crate) fn replay(store: &Store, replayed: &mut Replayed) {
    let Some(folder) = store.inner.settings.stock_journals.clone() else {
        return;
    };
    let disk = store.inner.disk.clone();
    let mut names = Vec::new();
    let listed = disk.list(&folder, &mut |name, kind| {
        if name.starts_with(PREFIX) && kind == NameKind::File {
            names.push(name.to_string());
        }
    });
    match listed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let notice = format!("cannot list {}: {error}", folder.display());
            replayed.notices.push(notice);
        }
        _ => {}
    }
    names.sort_unstable();
    for name in names {
        let path = folder.join(&name);
        match replay_file(store, &*disk, &path, replayed) {
            Ok(lines) => finish(store, &*disk, &folder, &name, lines, replayed),
            Err(error) => {
                let notice = format!("cannot replay {}: {error}", path.display());
                replayed.notices.push(notice);
            }
        }
    }
}

/// Counts of a journal's lines.
#[derive(Default)]
struct Lines {
    values: u64,
    refused: u64,
    first_refused: Option<(u64, String)>,
}

fn replay_file(
    store: &Store,
    disk: &dyn Disk,
    path: &Path,
    replayed: &mut Replayed,
) -> io::Result<Lines> {
    let file = disk.open(path, OpenMode::Read)?;
    let stat = file.metadata()?;
    if stat.owner != disk.user() {
        return Err(io::Error::other("it is not owned by the daemon's user"));
    }
    if stat.mode & 0o022 != 0 {
        return Err(io::Error::other("others than its owner may write it"));
    }
    let mut lines = Lines::default();
    let mut waiting: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut number = 0;
    each_line(&*file, &mut |line| {
        number += 1;
        waiting.push((number, line.to_vec()));
        match waiting.len() < TURN {
            true => Ok(()),
            false => apply(store, std::mem::take(&mut waiting), &mut lines),
        }
    })?;
    apply(store, waiting, &mut lines)?;
    replayed.values += lines.values;
    Ok(lines)
}

/// Calls `each` with every complete line; leaves out a torn last one.
fn each_line(file: &dyn DiskFile, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let (mut held, mut offset) = (Vec::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        let count = file.read_at(&mut piece, offset)?;
        if count == 0 {
            return Ok(());
        }
        offset += count as u64;
        let mut left = &piece[..count];
        while let Some(end) = left.iter().position(|&byte| byte == b'\n') {
            held.extend_from_slice(&left[..end]);
            if held.len() <= LINE_MAX {
                each(&held)?;
            }
            held.clear();
            left = &left[end + 1..];
        }
        if held.len() <= LINE_MAX {
            held.extend_from_slice(left);
        }
    }
}

/// Applies lines with one write of the journal, unless files must be opened.
fn apply(store: &Store, waiting: Vec<(u64, Vec<u8>)>, lines: &mut Lines) -> io::Result<()> {
    let mut batch = store.write_batch();
    for (number, line) in waiting {
        let fields = fields_of(&line);
        let fields: Vec<&[u8]> = fields.iter().map(|field| &field[..]).collect();
        let Some((command, rest)) = fields.split_first() else {
            continue;
        };
        let (Some(name), true) = (rest.first(), command.eq_ignore_ascii_case(b"update")) else {
            if let Some(path) = line.strip_prefix(b"forget ") {
                batch.forget(path);
            }
            continue;
        };
        // Each value is its own update, so that the refusal of an old value does not affect the later ones.
        for &value in &rest[1..] {
            let mut taken = batch.update(name, [value]);
            if taken == Err(Refusal::Untouched) {
                batch.commit()?;
                let touched = store.touch(name);
                batch = store.write_batch();
                if let Err(error) = touched {
                    lines.refuse(number, describe(name, &error));
                    break;
                }
                taken = batch.update(name, [value]);
            }
            match taken {
                Ok(count) => lines.values += count as u64,
                Err(Refusal::Past { .. }) => {}
                Err(refusal) => lines.refuse(number, format!("{refusal:?}")),
            }
        }
    }
    batch.commit().map(|_| ())
}

impl Lines {
    fn refuse(&mut self, number: u64, why: String) {
        self.refused += 1;
        self.first_refused.get_or_insert((number, why));
    }
}

fn describe(name: &[u8], error: &FileError) -> String {
    let name = kymo_base::name::DisplayName(name);
    format!("{name}: {error:?}")
}

/// Splits a request at blanks; `\` escapes the next byte.
fn fields_of(line: &[u8]) -> Vec<Vec<u8>> {
    let mut fields = vec![Vec::new()];
    let mut bytes = line.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b' ' => fields.push(Vec::new()),
            b'\\' => {
                if let (Some(&next), Some(field)) = (bytes.next(), fields.last_mut()) {
                    field.push(next);
                }
            }
            _ => {
                if let Some(field) = fields.last_mut() {
                    field.push(byte);
                }
            }
        }
    }
    fields
}

/// After our own journal is synced, removes the old one, or renames one with refused lines.
fn finish(
    store: &Store,
    disk: &dyn Disk,
    folder: &Path,
    name: &str,
    lines: Lines,
    replayed: &mut Replayed,
) {
    let path = folder.join(name);
    let mut done = store.inner.sync_to(u64::MAX);
    if let Some((number, why)) = &lines.first_refused {
        replayed.notices.push(format!(
            "{}: {} lines were not taken, first line {number}: {why}",
            path.display(),
            lines.refused
        ));
        done = done.and_then(|()| disk.rename(&path, &folder.join(format!("{DONE}{name}"))));
    } else {
        done = done.and_then(|()| disk.unlink(&path));
    }
    if let Err(error) = done {
        let notice = format!("cannot put {} away: {error}", path.display());
        replayed.notices.push(notice);
    }
}
