//! `CloneDirectory`: copies of a target's files in another folder, perhaps under another name. As in MRTG, the files are those below
//! LogDir, and all of them are copied after each value.

use super::{FILE_MAX, cannot};
use crate::pages::link;
use kymo_sys::tree::{Access, Existing, Safe, Tree};
use kymo_wire::mrtg_cfg::{Config, Keyword, Target};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Ends of names of pictures and logs.
const ENDS: [&str; 6] = [
    ".log",
    ".old",
    "-day.png",
    "-week.png",
    "-month.png",
    "-year.png",
];

/// The copy of a target.
#[derive(Clone, Debug)]
pub struct TargetClone {
    from: PathBuf,
    to: PathBuf,
    name: Vec<u8>,
    new_name: Vec<u8>,
    /// End of the page's name.
    page: Vec<u8>,
}

impl TargetClone {
    /// The copies of all targets, in their order; empty if there is none.
    pub fn of_all(config: &Config, log_dir: &Path) -> Vec<Option<TargetClone>> {
        let clones = config
            .targets()
            .map(|target| TargetClone::of(target, log_dir));
        let clones: Vec<_> = clones.collect();
        match clones.iter().any(Option::is_some) {
            true => clones,
            false => Vec::new(),
        }
    }

    fn of(target: Target<'_>, log_dir: &Path) -> Option<TargetClone> {
        let value = target.value(Keyword::CloneDirectory)?;
        let mut words = value
            .split(|byte| byte.is_ascii_whitespace() || *byte == b',')
            .filter(|word| !word.is_empty());
        let folder = |bytes: &[u8]| log_dir.join(OsString::from_vec(relative(bytes)));
        let to = folder(words.next()?);
        let name = target.name().to_vec();
        let new_name = words
            .next()
            .map_or(name.clone(), |word| word.to_ascii_lowercase());
        let from = folder(&target.value(Keyword::Directory).unwrap_or_default());
        let is_itself = from.components().eq(to.components()) && name == new_name;
        let extension = target.value(Keyword::Extension);
        let extension = extension.as_deref().unwrap_or(b"html");
        (!is_itself && !new_name.contains(&b'/')).then(|| TargetClone {
            from,
            to,
            page: [b".", extension].concat(),
            name,
            new_name,
        })
    }

    /// Copies the files that are there.
    pub(super) fn write(&self, tree: &dyn Tree) -> Result<(), String> {
        let ends = ENDS.into_iter().map(str::as_bytes);
        for end in ends.chain([&self.page[..]]) {
            for meta in [&b""[..], b".meta"] {
                let path = |folder: &Path, name: &[u8]| {
                    folder.join(OsString::from_vec([name, end, meta].concat()))
                };
                let to = path(&self.to, &self.new_name);
                let Some(mut bytes) = read(tree, &path(&self.from, &self.name)) else {
                    continue;
                };
                if end == self.page && meta.is_empty() && self.name != self.new_name {
                    let [name, new_name] = [&self.name, &self.new_name].map(|name| link(name));
                    bytes = renamed(&bytes, name.as_bytes(), new_name.as_bytes());
                }
                tree.put(&to, &bytes, Existing::Succeed, Safe::Unsynced)
                    .map_err(|error| cannot("write", &to, &error))?;
            }
        }
        Ok(())
    }
}

/// Folders of copies, into which a poller has to be able to write.
pub fn clone_folders(config: &Config, log_dir: &Path) -> Vec<PathBuf> {
    let clones = TargetClone::of_all(config, log_dir).into_iter().flatten();
    let mut folders: Vec<PathBuf> = clones.map(|clone| clone.to).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// A path below LogDir: MRTG takes one that begins with a slash for one, too.
fn relative(path: &[u8]) -> Vec<u8> {
    let slashes = path.iter().take_while(|&&byte| byte == b'/').count();
    path[slashes..].trim_ascii_end().to_vec()
}

/// A file's bytes; `None`: it is missing, or is none of the target's.
fn read(tree: &dyn Tree, path: &Path) -> Option<Vec<u8>> {
    let read = || -> io::Result<Vec<u8>> {
        let file = tree.open(path, Access::Read)?;
        let size = file.metadata()?.size_bytes;
        if size > FILE_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        let count = file.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        Ok(bytes)
    };
    read().ok()
}

/// A page with the new name in the place of the first old one in each line, where it is a word of a text, or a picture's name. MRTG
/// replaces any letters that are the same, also within tags and styles.
fn renamed(page: &[u8], name: &[u8], new_name: &[u8]) -> Vec<u8> {
    let has = |line: &[u8], part: &[u8]| line.windows(part.len()).any(|at| at == part);
    let mut out = Vec::with_capacity(page.len());
    let mut is_style = false;
    for line in page.split_inclusive(|&byte| byte == b'\n') {
        is_style |= has(line, b"<style");
        let mut places = 0..=line.len().saturating_sub(name.len());
        match places.find(|&at| !is_style && is_name(line, at, name)) {
            Some(at) => {
                out.extend_from_slice(&line[..at]);
                out.extend_from_slice(new_name);
                out.extend_from_slice(&line[at + name.len()..]);
            }
            None => out.extend_from_slice(line),
        }
        is_style &= !has(line, b"</style");
    }
    out
}

/// True if the target's name is at this place of a line.
fn is_name(line: &[u8], at: usize, name: &[u8]) -> bool {
    let (before, behind) = line.split_at(at);
    let Some(behind) = behind.strip_prefix(name) else {
        return false;
    };
    let is_letter = |byte: Option<&u8>| byte.is_some_and(|of| of.is_ascii_alphanumeric());
    let is_tag = || {
        let bound = before.iter().rfind(|byte| b"<>".contains(byte));
        bound == Some(&b'<')
    };
    let is_picture = ENDS.iter().any(|end| behind.starts_with(end.as_bytes()));
    !is_letter(before.last()) && !is_letter(behind.first()) && (is_picture || !is_tag())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_gets_the_new_name() {
        let page = b"<h1>r1 and r1</h1>\n<img src=\"r1-day.png\">\nnone\nr1";
        assert_eq!(
            renamed(page, b"r1", b"copy"),
            b"<h1>copy and r1</h1>\n<img src=\"copy-day.png\">\nnone\ncopy"
        );
        assert_eq!(renamed(b"", b"r1", b"x"), b"");
        for (line, name, expected) in [
            (
                "<meta http-equiv=\"refresh\"> q",
                "q",
                "<meta http-equiv=\"refresh\"> x",
            ),
            (
                "<img src=\"p/q-day.png\" title=\"q\">",
                "q",
                "<img src=\"p/x-day.png\" title=\"q\">",
            ),
            ("<p>p</p>", "p", "<p>x</p>"),
            ("<!-- maxin d 7 --> d", "d", "<!-- maxin d 7 --> x"),
            (
                "<style>.in th\nspan.in {}\n</style>\nin",
                "in",
                "<style>.in th\nspan.in {}\n</style>\nx",
            ),
            ("sw1 and sw-1", "sw-1", "sw1 and x"),
            ("sw", "sw-1", "sw"),
        ] {
            let page = renamed(line.as_bytes(), name.as_bytes(), b"x");
            assert_eq!(String::from_utf8_lossy(&page), expected, "{name}");
        }
    }
}
