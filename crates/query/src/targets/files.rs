//! The files in which the poller says what its targets are, docs/formats/targets.md, read line by line: memory is taken for
//! one piece of a file. What makes no sense is passed over.

use std::io;
use std::path::Path;

use kymo_base::name::DisplayName;
use kymo_sys::disk::{Disk, DiskFile, NameKind, OpenMode};
use kymo_wire::targets::{
    DescribedTarget, LINE_MAX, REASONS_SUFFIX, Reason, ReasonsHead, SUFFIX, TargetsHead,
};

/// Files that are read at most.
pub const FILES_MAX: usize = 10_000;
/// Targets of all of them at most.
pub const TARGETS_MAX: usize = 200_000;
/// Bytes that are read at a time; no line is longer.
const PIECE: usize = LINE_MAX + 1;

/// A file as it was when it was listed: one that is written again differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetsFile {
    /// Name without its ending: that of the configuration.
    pub stem: String,
    suffix: &'static str,
    inode: u64,
    mtime_ns: i64,
    size_bytes: u64,
}

/// Where a target's line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePlace {
    offset: u64,
    bytes: usize,
}

/// The files of targets in a folder, by their names. A folder that is not there, or cannot be listed, has none.
pub fn list(disk: &dyn Disk, folder: &Path) -> Vec<TargetsFile> {
    list_of(disk, folder, SUFFIX).0
}

/// Likewise, with the number of files that are too many.
pub fn list_and_count(disk: &dyn Disk, folder: &Path) -> (Vec<TargetsFile>, usize) {
    list_of(disk, folder, SUFFIX)
}

/// Likewise the files that say why targets have no value.
pub fn list_reasons(disk: &dyn Disk, folder: &Path) -> Vec<TargetsFile> {
    list_of(disk, folder, REASONS_SUFFIX).0
}

fn list_of(disk: &dyn Disk, folder: &Path, suffix: &'static str) -> (Vec<TargetsFile>, usize) {
    let mut names = Vec::new();
    let listed = disk.list(folder, &mut |name, kind| {
        let stem = name.strip_suffix(suffix).filter(|stem| is_stem(stem));
        if let Some(stem) = stem.filter(|_| kind == NameKind::File) {
            names.push(stem.to_string());
        }
    });
    if listed.is_err() {
        return (Vec::new(), 0);
    }
    names.sort();
    let left_out = names.len().saturating_sub(FILES_MAX);
    names.truncate(FILES_MAX);
    let stat = |stem: String| {
        let metadata = disk.metadata(&folder.join(format!("{stem}{suffix}")));
        let metadata = metadata.ok()?;
        Some(TargetsFile {
            stem,
            suffix,
            inode: metadata.inode,
            mtime_ns: metadata.mtime_ns,
            size_bytes: metadata.size_bytes,
        })
    };
    (names.into_iter().filter_map(stat).collect(), left_out)
}

/// True if the stem may be part of a target's id: visible characters, at most 200 bytes.
fn is_stem(stem: &str) -> bool {
    let visible = |c: char| !c.is_control() && c != '/';
    (1..=200).contains(&stem.len()) && stem.chars().all(visible)
}

impl TargetsFile {
    /// Reads all of it: `each` gets the targets with their places.
    pub fn read(
        &self,
        disk: &dyn Disk,
        folder: &Path,
        each: &mut dyn FnMut(LinePlace, DescribedTarget),
    ) -> Result<TargetsHead, String> {
        let mut head: Option<Result<TargetsHead, &'static str>> = None;
        let mut targets = 0;
        let file = self.open(disk, folder)?;
        let read = each_line(&*file, &mut |place, line| {
            if head.is_none() {
                head = Some(TargetsHead::parse(line));
            } else if targets < TARGETS_MAX
                && let Ok(target) = DescribedTarget::parse(line)
            {
                targets += 1;
                each(place, target);
            }
            matches!(head, Some(Ok(_)))
        });
        read.map_err(|error| self.cannot(&error))?;
        let head = head.unwrap_or(Err("it is empty"));
        head.map_err(|why| self.cannot(&why))
    }

    /// Reads why targets have no value, in the order of the file.
    pub fn read_reasons(
        &self,
        disk: &dyn Disk,
        folder: &Path,
        each: &mut dyn FnMut(&str, String),
    ) -> Result<(), String> {
        let (mut lines, mut targets) = (0, 0);
        let file = self.open(disk, folder)?;
        let read = each_line(&*file, &mut |_, line| {
            lines += 1;
            if lines == 1 {
                return ReasonsHead::is(line);
            }
            let reason = Reason::parse(line).unwrap_or_default();
            targets += reason.targets.len();
            for target in reason.targets {
                each(&reason.why, target);
            }
            lines < TARGETS_MAX && targets < TARGETS_MAX
        });
        read.map_err(|error| self.cannot(&error))
    }

    /// Reads one target. A file that was written again has it elsewhere: then whatever is there, or nothing.
    pub fn target(
        &self,
        disk: &dyn Disk,
        folder: &Path,
        place: LinePlace,
    ) -> Result<DescribedTarget, String> {
        let mut line = vec![0; place.bytes.min(LINE_MAX)];
        let file = self.open(disk, folder)?;
        let read = file.read_at(&mut line, place.offset);
        line.truncate(read.map_err(|error| self.cannot(&error))?);
        DescribedTarget::parse(&line).map_err(|why| self.cannot(&why))
    }

    fn open(&self, disk: &dyn Disk, folder: &Path) -> Result<Box<dyn DiskFile>, String> {
        let path = folder.join(format!("{}{}", self.stem, self.suffix));
        let file = disk.open(&path, OpenMode::Read);
        file.map_err(|error| self.cannot(&error))
    }

    fn cannot(&self, why: &dyn std::fmt::Display) -> String {
        let name = DisplayName(self.stem.as_bytes());
        format!("cannot read {name}{}: {why}", self.suffix)
    }
}

/// Calls `wanted` with lines and their places, until it refuses a line. Lines that are too long are passed over.
fn each_line(
    file: &dyn DiskFile,
    wanted: &mut dyn FnMut(LinePlace, &[u8]) -> bool,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let (mut at, mut is_rest) = (0, false);
    loop {
        let read = file.read_at(&mut piece, at)?;
        if read == 0 {
            return Ok(());
        }
        let mut rest = &piece[..read];
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let place = LinePlace {
                offset: at,
                bytes: end,
            };
            let is_line = !std::mem::take(&mut is_rest);
            if is_line && !wanted(place, &rest[..end]) {
                return Ok(());
            }
            at += length(end) + 1;
            rest = &rest[end + 1..];
        }
        // A line that fills the piece is too long; one at the end of the file has no end.
        if rest.len() == piece.len() {
            (at, is_rest) = (at + length(rest.len()), true);
        } else if read < piece.len() {
            return Ok(());
        }
    }
}

/// In a file.
fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::sim_disk::SimDisk;

    fn folder() -> &'static Path {
        Path::new("poll")
    }

    fn with(text: &[u8]) -> SimDisk {
        let disk = SimDisk::new(1);
        disk.create_dir_all(folder()).unwrap();
        disk.set_bytes(&folder().join("a.targets"), text.to_vec());
        disk
    }

    fn read(text: &[u8]) -> (Result<u32, String>, Vec<String>) {
        let disk = with(text);
        let files = list(&disk, folder());
        let mut names = Vec::new();
        let head = files[0].read(&disk, folder(), &mut |place, target| {
            let again = files[0].target(&disk, folder(), place);
            assert_eq!(again, Ok(target.clone()));
            names.push(target.name);
        });
        (head.map(|head| head.interval_s), names)
    }

    fn head() -> String {
        TargetsHead::new("a.cfg".into(), 60, 3).line()
    }

    fn line(name: &str) -> String {
        format!("{{\"name\":\"{name}\",\"series\":\"{name}.rrd\"}}\n")
    }

    #[test]
    fn what_makes_no_sense_is_passed_over() {
        let long = format!("{{\"name\":\"{}\"}}\n", "x".repeat(3 * PIECE));
        for (text, names) in [
            (head() + &line("x") + &line("y"), vec!["x", "y"]),
            (
                head() + &line("x") + "rubbish\n\n\0\n" + &line("y"),
                vec!["x", "y"],
            ),
            (head() + &line("x") + &long + &line("y"), vec!["x", "y"]),
            // Cut in the middle of a line.
            (head() + &line("x") + line("y").trim_end(), vec!["x"]),
            (head(), vec![]),
        ] {
            assert_eq!(
                read(text.as_bytes()),
                (Ok(60), names.iter().map(|name| name.to_string()).collect())
            );
        }
        for (text, why) in [
            (String::new(), "cannot read a.targets: it is empty"),
            (line("x"), "cannot read a.targets: a line makes no sense"),
            (
                "rubbish\n".to_string() + &line("x"),
                "cannot read a.targets: a line makes no sense",
            ),
        ] {
            assert_eq!(read(text.as_bytes()), (Err(why.to_string()), vec![]));
        }
    }

    #[test]
    fn reasons_are_read_as_far_as_they_make_sense() {
        let names: Vec<String> = (0..100).map(|n| format!("t{n}")).collect();
        let reason = Reason {
            why: "sw1 is <b>away</b>".into(),
            targets: names.clone(),
        };
        let text = ReasonsHead::line() + "rubbish\n" + &reason.lines();
        for (text, count) in [
            (text.as_str(), 100),
            (&reason.lines(), 0),
            ("", 0),
            (&text[..text.len() - 1], 80),
        ] {
            let disk = SimDisk::new(1);
            disk.create_dir_all(folder()).unwrap();
            disk.set_bytes(&folder().join("a.reasons"), text.as_bytes().to_vec());
            disk.set_bytes(&folder().join("b.targets"), head().into_bytes());
            let [file] = &list_reasons(&disk, folder())[..] else {
                panic!("one file");
            };
            let mut read = Vec::new();
            let mut each = |why: &str, target| {
                assert_eq!(why, reason.why);
                read.push(target);
            };
            file.read_reasons(&disk, folder(), &mut each).unwrap();
            assert_eq!(read, names[..count], "{text}");
        }
    }

    #[test]
    fn lines_at_the_ends_of_pieces() {
        for less in 0..3 {
            let first = head() + &line("x");
            let fill = PIECE - first.len() - less;
            let text = first + &" ".repeat(fill) + &line("y") + &line("z");
            assert_eq!(read(text.as_bytes()).1, ["x", "y", "z"], "{less}");
        }
    }

    #[test]
    fn only_files_of_targets_are_listed() {
        let disk = with(head().as_bytes());
        for name in ["b.targets.tmp", ".targets", "c.json", "b\u{7}.targets"] {
            disk.set_bytes(&folder().join(name), Vec::new());
        }
        disk.symlink(Path::new("a.targets"), &folder().join("l.targets"));
        let stems: Vec<String> = list(&disk, folder())
            .into_iter()
            .map(|file| file.stem)
            .collect();
        assert_eq!(stems, ["a"]);
        assert!(list(&disk, Path::new("none")).is_empty());
    }

    #[test]
    fn a_file_that_is_written_again_differs() {
        let disk = with(head().as_bytes());
        let before = list(&disk, folder());
        assert_eq!(list(&disk, folder()), before);
        disk.set_bytes(
            &folder().join("a.targets"),
            (head() + &line("x")).into_bytes(),
        );
        assert_ne!(list(&disk, folder()), before);
    }
}
