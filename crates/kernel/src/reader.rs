//! Reads one kernel file repeatedly. A reader keeps a file of the kernel's own file systems open, reads it whole or by records,
//! and opens it again after an error.

use std::cell::RefCell;

use kymo_base::limits;
use kymo_sys::kernel_file::{KernelFile, Root};

use crate::digest::Digest;
use crate::listing;
use crate::source::{self, Reads, Source};

/// ESRCH and ENOENT: the process has ended.
pub const GONE: [u16; 2] = [3, 2];
/// Time between two attempts to open a failing file: a minute.
const REOPEN_NS: u64 = 60_000_000_000;

/// A file of one source.
pub struct Reader {
    path: String,
    reads: Reads,
    file: Option<KernelFile>,
    /// Names and lines of a bundle.
    parts: Vec<(String, BundleLine)>,
    /// Length of the longest text whose end was confirmed by an empty read.
    confirmed: usize,
    /// The file is not opened again before this time.
    closed_until_ns: u64,
    errno: u16,
}

/// Source of a line of a bundle.
enum BundleLine {
    /// A file with one value.
    File(KernelFile),
    /// A text that stays the same while the folder is open.
    Known(String),
}

impl BundleLine {
    /// Appends the text; returns false if the file cannot be read.
    fn read(&self, out: &mut Vec<u8>) -> bool {
        match self {
            BundleLine::File(file) => file.pread(out, 0).is_ok(),
            BundleLine::Known(text) => {
                out.extend_from_slice(text.as_bytes());
                true
            }
        }
    }
}

thread_local! {
    /// Buffer of the read that confirms the end of a text.
    static BEYOND: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(4096));
}

impl Reader {
    /// Creates a reader of `path` under the root, without opening it.
    pub fn new(source: &Source, path: String) -> Reader {
        Reader {
            path,
            reads: source.reads,
            file: None,
            parts: Vec::new(),
            confirmed: 0,
            closed_until_ns: 0,
            errno: 0,
        }
    }

    /// The path under the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// True if the file is open.
    pub fn is_open(&self) -> bool {
        self.file.is_some() || !self.parts.is_empty()
    }

    /// Replaces `out` by the text, or returns an errno. `now_ns` is monotonic and only decides when a failed file is tried again.
    pub fn read(&mut self, root: &Root, now_ns: u64, out: &mut Vec<u8>) -> Result<(), u16> {
        out.clear();
        if let Reads::Bundle(names) = self.reads {
            return self.read_bundle(root, now_ns, names, out);
        }
        if let Reads::Digest(digest) = self.reads {
            return self.read_digest(root, now_ns, digest, out);
        }
        if self.file.is_none() {
            self.open(root, now_ns)?;
        }
        let Some(file) = &self.file else {
            return Err(self.errno);
        };
        let result = match self.reads {
            Reads::Whole => read_whole(file, &mut self.confirmed, out),
            Reads::Records | Reads::Bundle(_) | Reads::Digest(_) => {
                file.read_on(out, limits::TEXT_MAX).map_err(errno_of)
            }
        };
        self.note(root, now_ns, result.err());
        result
    }

    /// Returns true if the text is that of one file.
    pub fn is_one_file(&self) -> bool {
        match self.reads {
            Reads::Whole | Reads::Records => true,
            Reads::Bundle(_) | Reads::Digest(_) => false,
        }
    }

    /// Reads one file as [`Reader::read`] does, but in pieces: `take`
    /// gets a function that appends the next piece, or none at the end.
    pub fn read_in_pieces(
        &mut self,
        root: &Root,
        now_ns: u64,
        take: impl FnOnce(&mut dyn FnMut(&mut Vec<u8>) -> Result<usize, u16>) -> Result<(), u16>,
    ) -> Result<(), u16> {
        if self.file.is_none() {
            self.open(root, now_ns)?;
        }
        let Some(file) = &self.file else {
            return Err(self.errno);
        };
        let mut offset = 0;
        let result = take(&mut |out| {
            let n = file.pread(out, offset).map_err(errno_of)?;
            offset += n as u64;
            Ok(n)
        });
        self.note(root, now_ns, result.err());
        result
    }

    /// Notes the result of a read.
    fn note(&mut self, root: &Root, now_ns: u64, errno: Option<u16>) {
        match errno {
            Some(errno) => self.fail(errno, now_ns),
            None => {
                self.errno = 0;
                if !root.keeps_files() {
                    self.file = None;
                }
            }
        }
    }

    /// Reads a line of each file of a bundle. If all fail, the next read searches for the files again.
    fn read_bundle(
        &mut self,
        root: &Root,
        now_ns: u64,
        names: &[&str],
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        if self.parts.is_empty() {
            if now_ns < self.closed_until_ns {
                return Err(self.errno);
            }
            self.parts = open_bundle(root, &self.path, names);
        }
        for (name, part) in &self.parts {
            let start = out.len();
            out.extend_from_slice(name.as_bytes());
            out.push(b' ');
            let value = out.len();
            out.reserve(BUNDLE_VALUE);
            match part.read(out) {
                true => {
                    let end = value + out[value..].trim_ascii_end().len();
                    out.truncate(end);
                    // A value must not contain newlines.
                    out[value..]
                        .iter_mut()
                        .filter(|b| **b == b'\n')
                        .for_each(|b| *b = b' ');
                    out.push(b'\n');
                }
                false => out.truncate(start),
            }
        }
        if !root.keeps_files() {
            self.parts.clear();
        }
        if out.is_empty() {
            const ENOENT: u16 = 2;
            self.parts.clear();
            self.fail(ENOENT, now_ns);
            return Err(ENOENT);
        }
        self.errno = 0;
        Ok(())
    }

    /// Makes a digest. No file stays open.
    fn read_digest(
        &mut self,
        root: &Root,
        now_ns: u64,
        digest: Digest,
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        if now_ns < self.closed_until_ns {
            return Err(self.errno);
        }
        let result = digest.read(root, &self.path, out);
        match result {
            Ok(()) => self.errno = 0,
            Err(errno) => self.fail(errno, now_ns),
        }
        result
    }

    fn open(&mut self, root: &Root, now_ns: u64) -> Result<(), u16> {
        if now_ns < self.closed_until_ns {
            return Err(self.errno);
        }
        match root.file(&self.path) {
            Ok(file) => self.file = Some(file),
            Err(errno) => {
                self.fail(errno_of(errno), now_ns);
                return Err(self.errno);
            }
        }
        Ok(())
    }

    /// Notes a failure. After the first one the next read tries again, then one read a minute.
    fn fail(&mut self, errno: u16, now_ns: u64) {
        if self.errno == errno {
            self.closed_until_ns = now_ns.saturating_add(REOPEN_NS);
        }
        self.file = None;
        self.errno = errno;
    }
}

/// Buffer size for a value of a bundle.
const BUNDLE_VALUE: usize = 256;
/// Limit of the number of files of a bundle.
const BUNDLE_FILES_MAX: usize = 512;

/// The files of a folder that match one of the patterns, in the order of the patterns.
fn open_bundle(root: &Root, folder: &str, patterns: &[&str]) -> Vec<(String, BundleLine)> {
    let mut names = Vec::new();
    if patterns.iter().any(|pattern| pattern.contains('*')) {
        names = listing::named(root, folder, "");
        names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    }
    let mut found = Vec::new();
    for pattern in patterns {
        match pattern.split_once('*') {
            None => found.push((*pattern).to_string()),
            Some((before, after)) => {
                let is_number =
                    |middle: &str| !middle.is_empty() && middle.bytes().all(|b| b.is_ascii_digit());
                let middle = |name: &String| {
                    let middle = name.strip_prefix(before)?.strip_suffix(after)?;
                    is_number(middle).then(|| name.clone())
                };
                found.extend(names.iter().filter_map(middle));
            }
        }
    }
    found.truncate(BUNDLE_FILES_MAX);
    let open = |name: String| {
        if name == source::DEVICE {
            let device = listing::device_of(root, folder)?;
            return Some(("device".to_string(), BundleLine::Known(device)));
        }
        let file = root.file(&format!("{folder}/{name}")).ok()?;
        // The name in the text has no folders: `counters/port_rcv_data` becomes `port_rcv_data`.
        let name = name.rsplit('/').next().unwrap_or_default().to_string();
        Some((name, BundleLine::File(file)))
    };
    found.into_iter().filter_map(open).collect()
}

/// Reads a text with one pread. A second pread confirms the end if the text is longer than any before.
pub fn read_whole(file: &KernelFile, confirmed: &mut usize, out: &mut Vec<u8>) -> Result<(), u16> {
    out.clear();
    if out.capacity() == 0 {
        out.reserve(limits::TEXT_START);
    }
    let n = file.pread(out, 0).map_err(errno_of)?;
    if n < out.capacity() && n <= *confirmed {
        return Ok(());
    }
    if n == out.capacity() || has_more(file, n)? {
        // The text is longer than expected. Read it again with more space, since its rest would be of a later time.
        out.clear();
        out.reserve(4 * n);
        file.read_on(out, limits::TEXT_MAX).map_err(errno_of)?;
    }
    *confirmed = out.len();
    Ok(())
}

fn has_more(file: &KernelFile, offset: usize) -> Result<bool, u16> {
    BEYOND.with_borrow_mut(|beyond| {
        beyond.clear();
        Ok(file.pread(beyond, offset as u64).map_err(errno_of)? > 0)
    })
}

/// The number of an errno, as stored in the recording.
pub fn errno_of(errno: kymo_sys::kernel_file::Errno) -> u16 {
    errno.raw_os_error().clamp(0, i32::from(u16::MAX)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::kind;
    use crate::tests::MadeRoot;

    const ENOENT: u16 = 2;

    fn reader(wanted: u8, path: &str) -> Reader {
        Reader::new(source::of(wanted).expect("a source"), path.into())
    }

    fn read(reader: &mut Reader, made: &MadeRoot, second: u64) -> Result<String, u16> {
        let mut out = b"old".to_vec();
        reader.read(&made.root, second * 1_000_000_000, &mut out)?;
        Ok(String::from_utf8(out).expect("a text"))
    }

    #[test]
    fn texts_are_read_to_their_end_however_long_they_grow() {
        let made = MadeRoot::new();
        for wanted in [kind::STAT, kind::DISKSTATS] {
            let mut reader = reader(wanted, "proc/text");
            for lines in [1, 3, 4000, 0, 40_000, 2] {
                let text = "a line of numbers 1 2 3\n".repeat(lines);
                made.write("proc/text", &text);
                assert_eq!(read(&mut reader, &made, 0), Ok(text), "{lines} lines");
            }
        }
    }

    #[test]
    fn files_of_a_made_up_proc_are_not_kept() {
        let made = MadeRoot::new();
        let mut reader = reader(kind::STAT, "proc/stat");
        assert!(reader.is_one_file() && !reader.is_open());
        made.write("proc/stat", "cpu 1\n");
        assert_eq!(read(&mut reader, &made, 0), Ok("cpu 1\n".into()));
        assert!(!reader.is_open());
        made.remove("proc/stat");
        made.write("proc/stat", "cpu 2\n");
        assert_eq!(read(&mut reader, &made, 0), Ok("cpu 2\n".into()));
        assert_eq!(reader.path(), "proc/stat");
    }

    #[test]
    fn a_missing_file_is_looked_for_at_the_next_read_and_then_once_a_minute() {
        let made = MadeRoot::new();
        let mut reader = reader(kind::STAT, "proc/stat");
        assert_eq!(read(&mut reader, &made, 0), Err(ENOENT));
        made.write("proc/stat", "cpu 1\n");
        assert_eq!(read(&mut reader, &made, 1), Ok("cpu 1\n".into()));
        made.remove("proc/stat");
        assert_eq!(read(&mut reader, &made, 2), Err(ENOENT));
        assert_eq!(read(&mut reader, &made, 3), Err(ENOENT));
        made.write("proc/stat", "cpu 2\n");
        assert_eq!(read(&mut reader, &made, 62), Err(ENOENT));
        assert_eq!(read(&mut reader, &made, 63), Ok("cpu 2\n".into()));
    }

    /// Reads a text in pieces; returns the text and the number of pieces.
    fn pieces(reader: &mut Reader, made: &MadeRoot) -> Result<(String, usize), u16> {
        let (mut all, mut count) = (Vec::new(), 0);
        reader.read_in_pieces(&made.root, 0, |more| {
            loop {
                let mut piece = Vec::with_capacity(1000);
                if more(&mut piece)? == 0 {
                    return Ok(());
                }
                count += 1;
                all.extend(piece);
            }
        })?;
        Ok((String::from_utf8(all).expect("a text"), count))
    }

    #[test]
    fn pieces_make_up_the_text() {
        let made = MadeRoot::new();
        let mut reader = reader(kind::STAT, "proc/stat");
        assert_eq!(pieces(&mut reader, &made), Err(ENOENT));
        let text = "cpu 1 2 3\n".repeat(250);
        made.write("proc/stat", &text);
        for _ in 0..2 {
            assert_eq!(pieces(&mut reader, &made), Ok((text.clone(), 3)));
        }
    }

    #[test]
    fn a_bundle_has_a_line_for_each_file_in_the_order_of_patterns_and_numbers() {
        let made = MadeRoot::new();
        let chip = "sys/devices/platform/coretemp.0/hwmon/hwmon0";
        for (file, text) in [
            ("name", "coretemp\n"),
            ("temp10_input", "40000\n"),
            ("temp2_input", "30000\n"),
            ("temp2_label", "Core 0\nsecond line\n"),
            ("temp_input", "1\n"),
            ("tempx_input", "1\n"),
            ("in0_input", "  800 \n"),
            ("uevent", "X=1\n"),
        ] {
            made.write(&format!("{chip}/{file}"), text);
        }
        let folder = "sys/class/hwmon/hwmon0";
        made.link(folder, "../../devices/platform/coretemp.0/hwmon/hwmon0");
        let mut reader = reader(kind::HWMON, folder);
        assert!(!reader.is_one_file());
        let expect = "name coretemp\ndevice platform/coretemp.0\ntemp2_label Core 0 second line\n\
            temp2_input 30000\ntemp10_input 40000\nin0_input   800\n";
        let found = read(&mut reader, &made, 0);
        assert_eq!(found.as_deref(), Ok(expect));
        made.remove(&format!("{chip}/temp10_input"));
        let expect = expect.replace("temp10_input 40000\n", "");
        assert_eq!(read(&mut reader, &made, 0), Ok(expect));
    }

    #[test]
    fn a_bundle_without_files_is_missing() {
        let made = MadeRoot::new();
        let mut reader = reader(kind::THERMAL, "sys/class/thermal/thermal_zone0");
        for second in 0..2 {
            assert_eq!(read(&mut reader, &made, second), Err(ENOENT));
        }
        made.write("sys/class/thermal/thermal_zone0/temp", "1\n");
        assert_eq!(read(&mut reader, &made, 60), Err(ENOENT));
        assert_eq!(read(&mut reader, &made, 61), Ok("temp 1\n".into()));
    }
}
