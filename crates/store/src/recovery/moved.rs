//! A base that has moved since the last use of the store. Names on the disk are relative to the base, so the series move with it.
//! Stores from before version 4 of the journal have absolute names; their series move if the old base is certain.

use crate::memtable::state::State;
use crate::names;
use crate::settings::Settings;
use kymo_base::name::DisplayName;
use kymo_sys::disk::Disk;
use kymo_sys::kept_file::{self, Found, KeptFile, Kind, Old, Records, Sync};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file in the store's folder that has the store's and the base's path.
pub const PLACE_NAME: &str = "place";
/// Format of that file.
pub const PLACE_FILE: Kind = Kind {
    magic: *b"KYMOPLCE",
    version: 1,
    bytes_max: 1 << 16,
    old: Old {
        magic: *b"KYMOPLC",
        newest: 0,
        has_generation: false,
    },
};

/// A store's folder and its base.
type StoreFolders = (PathBuf, PathBuf);

/// Returns true if a record of the file is valid.
pub fn is_place(_version: u32, body: &[u8]) -> bool {
    take(body).is_some()
}

/// The last base of the store in this folder; `None` if the store has been moved since, or the base is unknown.
pub fn base_of(disk: &dyn Disk, folder: &Path) -> Option<PathBuf> {
    let found = kept_file::read(disk, &folder.join(PLACE_NAME), &PLACE_FILE).ok()?;
    let Found::Read(contents) = found else {
        return None;
    };
    let (was, base) = contents.bodies().filter_map(take).last()?;
    (was == folder).then_some(base)
}

/// Writes the file; returns a message if the base was elsewhere.
pub(crate) fn remember(disk: &Arc<dyn Disk>, settings: &Settings) -> Option<String> {
    let path = settings.folder.join(PLACE_NAME);
    let (mut kept, contents) = KeptFile::open(disk.clone(), path, PLACE_FILE).ok()?;
    let before = contents.bodies().filter_map(take).last();
    let now = (settings.folder.clone(), settings.base.clone());
    if before.as_ref() == Some(&now) {
        return None;
    }
    let generation = kept.generation() + 1;
    let mut fill = |records: &mut Records| records.put(|out| put(out, &now));
    // The daemon needs the file only for this message, so a full disk does not matter.
    let _full = kept.replace(generation, &mut fill, Sync::Later);
    let (_, base) = before.filter(|(_, base)| *base != now.1)?;
    Some(format!(
        "the base was {} and is {} now: the series below it are the same ones",
        base.display(),
        now.1.display()
    ))
}

fn put(out: &mut Vec<u8>, (folder, base): &StoreFolders) {
    let folder = folder.as_os_str().as_bytes();
    let length = u16::try_from(folder.len()).unwrap_or(0);
    out.extend(length.to_le_bytes());
    out.extend(&folder[..usize::from(length)]);
    out.extend(base.as_os_str().as_bytes());
}

fn take(body: &[u8]) -> Option<StoreFolders> {
    let (length, rest) = body.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (folder, base) = rest.split_at_checked(length)?;
    let is_path = |path: &&[u8]| path.first() == Some(&b'/');
    [folder, base]
        .iter()
        .all(is_path)
        .then(|| (names::path(folder).into(), names::path(base).into()))
}

/// Moves series outside of the base, which no client can reach, below it: if all of them are below one folder of the same name as
/// the base, that folder was the old base.
pub(crate) fn follow(state: &mut State, settings: &Settings, notices: &mut Vec<String>) {
    let base = state.journal.base.clone();
    let is_below = |path: &[u8]| {
        path.strip_prefix(&base[..])
            .is_some_and(|rest| rest.starts_with(b"/"))
    };
    let files = state
        .series
        .iter()
        .filter(|(_, series)| series.may_have_file());
    let outside = files.filter(|(_, series)| !is_below(&series.path));
    let outside: Vec<(u32, Arc<[u8]>)> = outside
        .map(|(id, series)| (id, series.path.clone()))
        .collect();
    let Some((_, one)) = outside.first().filter(|_| settings.beneath) else {
        return;
    };
    let (count, shown) = (outside.len(), DisplayName(&base));
    let Some(old) = old_base(outside.iter().map(|(_, path)| &path[..]), &base) else {
        let one = DisplayName(one);
        return notices.push(format!(
            "{count} series ({one} is one) do not lie below {shown}, and cannot be asked for: if the store was moved, start kymo once where it was, and move it then"
        ));
    };
    let mut taken = 0;
    for (id, path) in &outside {
        let path = [&base[..], &path[old.len()..]].concat();
        match state.series.by_path(&path) {
            Some(_) => taken += 1,
            None => {
                state.series.rename_file(*id, &path);
                state.to_rename.insert(*id);
            }
        }
    }
    let old = DisplayName(&old);
    notices.push(format!(
        "{} series were below {old} and are below {shown} now",
        count - taken
    ));
    if taken > 0 {
        notices.push(format!(
            "{taken} series stay below {old}, for there are others of their names below {shown}"
        ));
    }
}

/// The only folder above all of these paths with the base's name.
fn old_base<'a>(paths: impl Iterator<Item = &'a [u8]>, base: &[u8]) -> Option<Vec<u8>> {
    let folders = paths.map(|path| names::path(names::folder_of(path)));
    let common = folders.reduce(|one, other| {
        let shared = one.ancestors().find(|above| other.starts_with(above));
        shared.unwrap_or(Path::new("/"))
    })?;
    let name = names::path(base).file_name()?;
    let mut found = common
        .ancestors()
        .filter(|above| above.file_name() == Some(name));
    let only = found.next().filter(|_| found.next().is_none())?;
    Some(only.as_os_str().as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_base_is_certain_or_none() {
        for (paths, base, old) in [
            (
                &["/old/rrd/web1/a.rrd", "/old/rrd/web2/a.rrd"][..],
                "/new/rrd",
                Some("/old/rrd"),
            ),
            (&["/old/rrd/a.rrd"], "/new/rrd", Some("/old/rrd")),
            (&["/old/rrd/web1/rrd/a.rrd"], "/new/rrd", None),
            (
                &["/old/rrd/web1/rrd/a.rrd", "/old/rrd/b.rrd"],
                "/new/rrd",
                Some("/old/rrd"),
            ),
            (&["/old/rrd/a.rrd", "/other/rrd/a.rrd"], "/new/rrd", None),
            (&["/old/rrd/a.rrd"], "/new/files", None),
        ] {
            let paths = paths.iter().map(|path| path.as_bytes());
            let found = old_base(paths, base.as_bytes());
            assert_eq!(found.as_deref(), old.map(str::as_bytes), "{base}");
        }
    }
}
