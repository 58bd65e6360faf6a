//! Names as clients send them: their form in replies, the check of `-B`, and names that no file can have.

use crate::settings::Settings;
use kymo_base::label_set::{self, Labels};
use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The kernel's limit of a path's length, with the NUL.
const PATH_MAX: usize = 4096;
/// The kernel's limit of a name's length between two slashes.
const NAME_MAX: usize = 255;

/// Name of a series for callers that do not use rrdcached's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesName<'a> {
    /// Name of its .rrd file, as a client would spell it.
    File(&'a [u8]),
    /// Label set of a series that never has a file.
    Labels(&'a Labels),
}

/// The name of a series below the base, as in [`SeriesName`]; the name of a file is never a valid label set.
pub(crate) fn below(base: &[u8], path: &[u8]) -> Vec<u8> {
    let below = path.strip_prefix(base);
    match below.and_then(|rest| rest.strip_prefix(b"/")) {
        Some(name) if label_set::is_set(name) => [b"./", name].concat(),
        Some(name) => name.to_vec(),
        None => path.to_vec(),
    }
}

/// The name of a series on the disk: relative to the base as in [`below`], so that a store can be moved with its base.
pub(crate) fn stored(base: &[u8], path: &[u8]) -> Vec<u8> {
    below(base, path)
}

/// The series with this name on the disk; `None` if the name is invalid.
pub(crate) fn restored<'a>(base: &[u8], stored: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    if stored.first() == Some(&b'/') || !is_file(stored) {
        return is_sound(stored).then_some(Cow::Borrowed(stored));
    }
    let name = [b"/", stored.strip_prefix(b"./").unwrap_or(stored)].concat();
    let whole = [if base == b"/" { b"" } else { base }, &name[..]].concat();
    (name.len() > 1 && normal(&name) == name && is_sound(&whole)).then_some(Cow::Owned(whole))
}

/// Returns true if a series of this path may have a file, that is if it is no label set.
pub(crate) fn is_file(path: &[u8]) -> bool {
    !label_set::is_set(path)
}

/// Returns true if this is a valid path or label set of a series.
pub(crate) fn is_sound(path: &[u8]) -> bool {
    match is_file(path) {
        true => path.first() == Some(&b'/') && refused(path).is_none(),
        false => Labels::parse(path).is_ok(),
    }
}

/// base + `/` + name, or the name if it is absolute.
pub fn join<'a>(base: &[u8], name: &'a [u8]) -> Cow<'a, [u8]> {
    match name.first() {
        Some(b'/') => Cow::Borrowed(name),
        _ => Cow::Owned([base, b"/", name].concat()),
    }
}

/// The textual check of rrdcached's `-B`: no `../`, and an absolute name
/// must be below the base. Links are checked when the file is opened.
pub fn is_beneath(base: &[u8], name: &[u8]) -> bool {
    let below = name.first() != Some(&b'/')
        || name
            .strip_prefix(base)
            .is_some_and(|rest| rest.first() == Some(&b'/'));
    below && memchr::memmem::find(name, b"../").is_none()
}

/// A name as replies show it.
pub(crate) fn spelled(settings: &Settings, name: &[u8]) -> Vec<u8> {
    join(settings.base.as_os_str().as_bytes(), name).into_owned()
}

/// Returns true if the check of `-B`, if set, allows a name.
pub(crate) fn allowed(settings: &Settings, name: &[u8]) -> bool {
    !settings.beneath || is_beneath(settings.base.as_os_str().as_bytes(), name)
}

/// The error number with which the kernel would refuse this path.
pub(crate) fn refused(path: &[u8]) -> Option<i32> {
    // C strings end at a NUL, so rrdcached would open a file of another name.
    if path.contains(&0) {
        return Some(22);
    }
    let long = path
        .split(|&byte| byte == b'/')
        .any(|part| part.len() > NAME_MAX);
    (path.len() >= PATH_MAX || long).then_some(36)
}

/// The path without `.`, `..` and double slashes, by its text alone.
pub(crate) fn normal(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    let mut out = Vec::with_capacity(path.len());
    for part in parts {
        out.push(b'/');
        out.extend_from_slice(part);
    }
    out
}

/// The folder of a path.
pub(crate) fn folder_of(path: &[u8]) -> &[u8] {
    let cut = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    &path[..cut.max(1)]
}

/// Bytes as a path.
pub(crate) fn path(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_on_the_disk() {
        for (base, path, stored_as) in [
            (&b"/db"[..], &b"/db/web1/cpu.rrd"[..], &b"web1/cpu.rrd"[..]),
            (b"/db", b"/dbx/a.rrd", b"/dbx/a.rrd"),
            (b"/", b"/a.rrd", b"/a.rrd"),
            (b"/db", b"/db/{a=\"b\"}", b"./{a=\"b\"}"),
            (b"/db", b"{a=\"b\"}", b"{a=\"b\"}"),
        ] {
            assert_eq!(stored(base, path), stored_as);
            assert_eq!(restored(base, stored_as).as_deref(), Some(path), "{path:?}");
        }
        for no_name in [
            &b""[..],
            b"./",
            b"../a",
            b"a/../b",
            b"a//b",
            b"a/",
            b"a\0",
            b"{a",
            b"/a\0",
        ] {
            let restored = restored(b"/db", no_name);
            assert!(
                restored.is_none() || no_name == b"{a",
                "{no_name:?} is {restored:?}"
            );
        }
        let moved = restored(b"/elsewhere/db", b"web1/cpu.rrd");
        assert_eq!(moved.as_deref(), Some(&b"/elsewhere/db/web1/cpu.rrd"[..]));
    }

    #[test]
    fn names() {
        let mut settings = Settings::new("/s", "/db");
        settings.beneath = true;
        for (name, shown, allows, text) in [
            (&b"a.rrd"[..], &b"/db/a.rrd"[..], true, &b"/db/a.rrd"[..]),
            (b"./x//a.rrd", b"/db/./x//a.rrd", true, b"/db/x/a.rrd"),
            (b"/db/a.rrd", b"/db/a.rrd", true, b"/db/a.rrd"),
            (b"/dbx/a.rrd", b"/dbx/a.rrd", false, b"/dbx/a.rrd"),
            (b"../z.rrd", b"/db/../z.rrd", false, b"/z.rrd"),
            (b"/etc/passwd", b"/etc/passwd", false, b"/etc/passwd"),
            (b"", b"/db/", true, b"/db"),
        ] {
            assert_eq!(spelled(&settings, name), shown);
            assert_eq!(allowed(&settings, name), allows, "{shown:?}");
            assert_eq!(normal(shown), text);
        }
        settings.beneath = false;
        assert!(allowed(&settings, b"../z.rrd"));
        assert_eq!(refused(b"/db/a\0b"), Some(22));
        assert_eq!(refused(&[b'a'; 4096]), Some(36));
        assert_eq!(refused(&[b'a'; 256]), Some(36));
        assert_eq!(refused(b"/db/a.rrd"), None);
    }
}
