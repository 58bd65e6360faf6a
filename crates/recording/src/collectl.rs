//! Reads collectl's raw files (`.raw`, `.raw.gz`, `.rawp.gz`, also
//! as `.xz` and `.zst`) and rebuilds the kernel's texts from them.
//!
//! A file is text: a header of `#` lines, then for each interval a marker `>>> SECONDS <<<` and the kernel's lines, most with
//! a prefix. The reader joins the lines of each interval into the texts that they came from, and puts these into the same
//! tracks as a recording does. Lines unknown to kymo are skipped. A file that is cut short is played up to its end. An
//! interval that is too large is reported as damage, and the next one is played. This module opens no files and has no clock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use kymo_base::context::Context;
use kymo_base::errno::strerror;
use kymo_base::limits;
use kymo_base::scan;
use kymo_base::track::Tracks;
use kymo_kernel::source::{self, kind};

/// First bytes of compressed files.
const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = b"\xfd7zXZ\0";
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const MAGIC_MAX: u64 = 6;
/// Memory limit of the xz decoder; `xz -9` needs 65 MiB.
#[cfg(feature = "xz")]
const XZ_KIB_MAX: u32 = 128 << 10;
/// Bytes per read of a file.
const CHUNK: usize = 64 << 10;
const SECOND_NS: f64 = 1e9;
/// Estimated memory of a process besides its texts, in bytes.
const TASK_BYTES: usize = 1024;

/// Error of playing a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is no collectl raw file.
    #[error("cannot play {0}: not a collectl raw file")]
    NotCollectl(String),
    /// Reading the file failed.
    #[error("cannot read {name}: {}", strerror(cause))]
    Read {
        /// Name of the file.
        name: String,
        /// Cause, from the operating system.
        cause: std::io::Error,
    },
}

/// Result of [`Reader::read`].
#[derive(Debug, PartialEq)]
pub enum Item {
    /// The tracks hold the texts of an interval.
    Sample(Stamp),
    /// Samples from here on do not continue the ones before, for this reason.
    Gap(String),
    /// A part of the files is unreadable, for this reason.
    Damage(String),
}

/// Time of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stamp {
    /// Nanoseconds since 1970; collectl has no other clock.
    pub real_ns: i64,
    /// Nanoseconds since boot, by the boot time in the header.
    pub boot_ns: u64,
    /// Number of samples missing before this one, by the nominal interval.
    pub missed: u32,
}

/// A file to play.
pub struct File {
    /// File name, without folders.
    pub name: String,
    /// Content of the file.
    pub bytes: Box<dyn Read>,
}

/// Plays files one after the other; files of one run (`.raw` and `.rawp`) are played together.
pub struct Reader {
    groups: std::vec::IntoIter<Vec<File>>,
    streams: Vec<Stream>,
    tracks: Tracks,
    context: Context,
    header: Header,
    users: Vec<(String, String)>,
    own_zone: Option<String>,
    tasks: Tasks,
    last: Option<i64>,
    /// Items to return before the next sample.
    notes: VecDeque<Item>,
    /// Error of the first unplayable file; it is returned if no file is playable.
    refused: Option<Error>,
}

/// Fields of the header that are not part of the context.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Header {
    booted_ns: i64,
    interval_ns: i64,
}

impl Reader {
    /// Returns a reader of `files`, which it sorts by name.
    pub fn new(mut files: Vec<File>) -> Reader {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let mut groups: Vec<Vec<File>> = Vec::new();
        for file in files {
            match groups.last_mut() {
                Some(group) if run_of(&group[0].name) == run_of(&file.name) => group.push(file),
                _ => groups.push(vec![file]),
            }
        }
        Reader {
            groups: groups.into_iter(),
            streams: Vec::new(),
            tracks: Tracks::default(),
            context: Context::default(),
            header: Header::default(),
            users: Vec::new(),
            own_zone: None,
            tasks: Tasks::default(),
            last: None,
            notes: VecDeque::new(),
            refused: None,
        }
    }

    /// Sets the names of users, which raw files lack, as pairs of number and name.
    pub fn set_users(&mut self, users: Vec<(String, String)>) {
        self.users = users;
    }

    /// Sets the time zone of the machine that plays, since raw files have only an offset.
    pub fn set_own_zone(&mut self, zone: Option<String>) {
        self.own_zone = zone;
    }

    /// The texts of the last sample.
    pub fn tracks(&self) -> &Tracks {
        &self.tracks
    }

    /// Facts about the recorded machine.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Moves on to the next interval or note; `None` at the end. The error says why no file is playable.
    pub fn read(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if let Some(note) = self.notes.pop_front() {
                return Ok(Some(note));
            }
            let due = self.streams.iter().filter_map(Stream::due).min();
            match due {
                Some(real_ns) => {
                    if let Some(item) = self.interval(real_ns) {
                        return Ok(Some(item));
                    }
                }
                None => {
                    let Some(group) = self.groups.next() else {
                        return self.refused.take().map_or(Ok(None), Err);
                    };
                    self.open(group);
                }
            }
        }
    }

    /// Opens the files of one run. If they begin where the last run ended, no sample is missing.
    fn open(&mut self, files: Vec<File>) {
        let (last_header, last_host) = (self.header, self.context.get("host").map(str::to_string));
        let ends: Vec<i64> = self
            .streams
            .iter()
            .filter_map(|stream| stream.closed_at)
            .collect();
        self.streams.clear();
        for file in files {
            let (stream, mut context, header) = match begin(file) {
                Ok(begun) => begun,
                Err(error) => {
                    self.refuse(error);
                    continue;
                }
            };
            for (uid, name) in &self.users {
                context.set(&format!("uid.{uid}"), name);
            }
            if let Some(zone) = &self.own_zone {
                context.set("own_tz", zone);
            }
            if self.streams.is_empty() {
                self.header = header;
                if self.context != context {
                    self.context = context;
                }
            }
            self.streams.push(stream);
        }
        if !self.streams.is_empty() {
            self.follow(last_header, last_host.as_deref(), &ends);
        }
    }

    /// Reports an unplayable file: as damage if any other file is playable, else as an error.
    fn refuse(&mut self, error: Error) {
        let played = self.last.is_some() || !self.streams.is_empty();
        match &self.refused {
            None if !played => self.refused = Some(error),
            _ => self.notes.push_back(Item::Damage(error.to_string())),
        }
    }

    /// Decides whether the newly opened streams continue the previous ones or begin again.
    fn follow(&mut self, last_header: Header, last_host: Option<&str>, ends: &[i64]) {
        if let Some(error) = self.refused.take() {
            self.notes.push_back(Item::Damage(error.to_string()));
        }
        if self.last.is_none() {
            return;
        }
        let begins = self.streams.iter().filter_map(Stream::due).min();
        let same_boot = (self.header.booted_ns - last_header.booted_ns).abs() < 2_000_000_000;
        let follows = begins.is_some_and(|begins| ends.contains(&begins)) && same_boot;
        if !follows || last_host != self.context.get("host") {
            self.restart();
            let name = self
                .streams
                .first()
                .map_or("", |stream| stream.name.as_str());
            let why = format!("{name} does not follow the file before it");
            self.notes.push_back(Item::Gap(why));
        }
    }

    /// Forgets the previous samples and frees their memory.
    fn restart(&mut self) {
        self.tracks.restart();
        self.tasks = Tasks::default();
        self.last = None;
    }

    /// Puts all texts of the time `real_ns` into the tracks; `None` if there are none, as at a file's end.
    fn interval(&mut self, real_ns: i64) -> Option<Item> {
        let mut texts = std::mem::take(&mut self.tasks.texts);
        texts.clear();
        let mut damage = None;
        for stream in self
            .streams
            .iter_mut()
            .filter(|stream| stream.due() == Some(real_ns))
        {
            if let Ended::Damaged(cause) = stream.interval(&mut texts) {
                damage = Some(format!("{} {cause}", stream.name));
            }
        }
        if let Some(damage) = damage {
            // The interval is incomplete, so all of it is dropped.
            self.restart();
            return Some(Item::Damage(damage));
        }
        if let Some(back) = self.set_back(real_ns) {
            self.restart();
            self.notes.push_back(Item::Gap(back));
        }
        self.tracks.begin_sample();
        let any = self.tasks.fill(&texts, &mut self.tracks);
        self.tasks.texts = texts;
        if !any {
            return None;
        }
        let missed = self
            .last
            .map_or(0, |last| missed(real_ns - last, self.header.interval_ns));
        self.last = Some(real_ns);
        let sample = Item::Sample(Stamp {
            real_ns,
            boot_ns: u64::try_from(real_ns - self.header.booted_ns).unwrap_or(0),
            missed,
        });
        let Some(note) = self.notes.pop_front() else {
            return Some(sample);
        };
        self.notes.push_back(sample);
        Some(note)
    }

    /// Reports a clock that was set back: collectl has only the wall clock, so the length of that interval is unknown.
    fn set_back(&self, real_ns: i64) -> Option<String> {
        let back_ns = self.last?.checked_sub(real_ns).filter(|&ns| ns > 0)?;
        let secs = back_ns as f64 / SECOND_NS;
        Some(format!("the clock was set back by {secs:.1} s"))
    }
}

/// Opens a file and reads its header.
fn begin(file: File) -> Result<(Stream, Context, Header), Error> {
    let mut stream = Stream::open(file)?;
    let (context, header) = read_header(&mut stream)?;
    Ok((stream, context, header))
}

/// Reads the header of a file: facts about the machine, and under `letters` the recorded subsystems.
pub fn header(file: File) -> Result<Context, Error> {
    begin(file).map(|(_, context, _)| context)
}

/// Type of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineKind {
    /// A remark; the header consists of remarks.
    Remark,
    /// The start of a sample, at this time in nanoseconds since 1970.
    Marker(i64),
    /// A line of a text of the kernel.
    Text,
}

/// The raw lines of a file, for callers that search or copy them.
pub struct Lines(Stream);

impl Lines {
    /// Opens a file, compressed or not.
    pub fn open(file: File) -> Result<Lines, Error> {
        Stream::open(file).map(Lines)
    }

    /// Returns the next line without its end; `None` at the end. The error describes the damage of the file.
    pub fn next_line(&mut self) -> Result<Option<(LineKind, &[u8])>, String> {
        let wrong = |name: &str, what: &str| Err(format!("{name} {what}"));
        match self.0.line() {
            Line::TooLong => wrong(&self.0.name, "is damaged: a line is too large"),
            Line::End => match &self.0.end {
                Some(Ended::Damaged(what)) => wrong(&self.0.name, what),
                _ => Ok(None),
            },
            Line::At(start, end) => {
                let line = &self.0.buffer[start..end];
                let sort = match (marker(line), line.first()) {
                    (Some(real_ns), _) => LineKind::Marker(real_ns),
                    (None, Some(b'#')) => LineKind::Remark,
                    _ => LineKind::Text,
                };
                Ok(Some((sort, line)))
            }
        }
    }
}

/// The name without `.raw.gz` or `.rawp.gz`, which all files of one run have in common.
fn run_of(name: &str) -> &str {
    let name = unpacked_name(name);
    name.strip_suffix(".rawp")
        .or(name.strip_suffix(".raw"))
        .unwrap_or(name)
}

/// Number of samples missing between two samples that are `ns` apart.
fn missed(ns: i64, interval_ns: i64) -> u32 {
    if interval_ns <= 0 || ns <= 0 {
        return 0;
    }
    let steps = (ns + interval_ns / 2) / interval_ns;
    u32::try_from(steps.saturating_sub(1)).unwrap_or(u32::MAX)
}

/// Returns true if a file's name is one of collectl's raw files.
pub fn is_collectl_name(name: &str) -> bool {
    let name = unpacked_name(name);
    name.ends_with(".raw") || name.ends_with(".rawp")
}

/// The name of a file without the suffix of its compression.
pub fn unpacked_name(name: &str) -> &str {
    let endings = [".gz", ".xz", ".zst"];
    let plain = endings.iter().find_map(|ending| name.strip_suffix(ending));
    plain.unwrap_or(name)
}

/// Decompresses a file by its first bytes.
fn unpacked(mut bytes: Box<dyn Read>) -> std::io::Result<Box<dyn Read>> {
    let mut magic = Vec::new();
    bytes.by_ref().take(MAGIC_MAX).read_to_end(&mut magic)?;
    let begins = |with: &[u8]| magic.starts_with(with);
    let (is_gzip, is_xz, is_zstd) = (begins(GZIP), begins(XZ), begins(ZSTD));
    let whole = BufReader::with_capacity(CHUNK, std::io::Cursor::new(magic).chain(bytes));
    Ok(match (is_gzip, is_xz, is_zstd) {
        (true, ..) => Box::new(MultiGzDecoder::new(whole)),
        (_, true, _) => xz(whole)?,
        (.., true) => Box::new(zstd::Decoder::with_buffer(whole)?),
        _ => Box::new(whole),
    })
}

#[cfg(feature = "xz")]
fn xz(packed: impl Read + 'static) -> std::io::Result<Box<dyn Read>> {
    let unpacked = lzma_rust2::XzReader::new_mem_limit(packed, true, XZ_KIB_MAX);
    Ok(Box::new(unpacked))
}

#[cfg(not(feature = "xz"))]
fn xz(_: impl Read + 'static) -> std::io::Result<Box<dyn Read>> {
    Err(std::io::Error::other(
        "this kymo cannot unpack .xz files; unpack the file with xz -d",
    ))
}

/// One file being read, line by line.
struct Stream {
    name: String,
    bytes: Box<dyn Read>,
    buffer: Vec<u8>,
    at: usize,
    /// Time of a marker that has been read but not consumed; the buffer's `at` is behind that line.
    marker: Option<i64>,
    /// Time of the last marker, if no lines follow it; the next file may continue at that time.
    closed_at: Option<i64>,
    end: Option<Ended>,
    /// Set if the first line ends with CR LF; `None` before the first line.
    is_crlf: Option<bool>,
}

/// State in which an interval or a file ended.
#[derive(Clone, Debug)]
enum Ended {
    Whole,
    /// The fault, as the end of a sentence that begins with the file's name.
    Damaged(String),
}

impl Ended {
    fn too_large(what: &str) -> Ended {
        Ended::Damaged(format!("is damaged: {what} is too large"))
    }
}

/// Result of reading a line.
enum Line {
    /// Start and end of the line in the buffer.
    At(usize, usize),
    /// A line that was too long and has been skipped.
    TooLong,
    /// The end of the file.
    End,
}

impl Stream {
    fn open(file: File) -> Result<Stream, Error> {
        let File { name, bytes } = file;
        let bytes = unpacked(bytes).map_err(|cause| Error::Read {
            name: name.clone(),
            cause,
        })?;
        Ok(Stream {
            name,
            bytes,
            buffer: Vec::new(),
            at: 0,
            marker: None,
            closed_at: None,
            end: None,
            is_crlf: None,
        })
    }

    /// Time of the next interval; `None` at the end.
    fn due(&self) -> Option<i64> {
        self.marker
    }

    /// Reads the next line; skips one that is too long without storing it.
    fn line(&mut self) -> Line {
        let mut searched = self.at;
        let mut too_long = false;
        loop {
            let found = self.buffer[searched..].iter().position(|&b| b == b'\n');
            if let Some(found) = found {
                let (start, end) = (self.at, searched + found);
                self.at = end + 1;
                let line = &self.buffer[start..end];
                // The file has CR LF line ends. The first line decides, since a command line may end with CR in any file.
                let is_crlf = *self.is_crlf.get_or_insert(line.ends_with(b"\r"));
                let end = end - usize::from(is_crlf && line.ends_with(b"\r"));
                return match too_long {
                    true => Line::TooLong,
                    false => Line::At(start, end),
                };
            }
            if self.end.is_some() {
                // A last line without a newline is incomplete.
                return Line::End;
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            if self.buffer.len() > limits::TEXT_RECORDED_MAX {
                too_long = true;
                self.buffer.clear();
            }
            searched = self.buffer.len();
            self.fill();
        }
    }

    fn fill(&mut self) {
        let start = self.buffer.len();
        self.buffer.resize(start + CHUNK, 0);
        let read = loop {
            match self.bytes.read(&mut self.buffer[start..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                other => break other,
            }
        };
        self.buffer
            .truncate(start + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => self.end = Some(Ended::Whole),
            Ok(_) => {}
            Err(error) => self.end = Some(Ended::Damaged(cut_short(&error))),
        }
    }

    /// Reads the lines up to the next marker; skips texts that are too large.
    fn interval(&mut self, texts: &mut Texts) -> Ended {
        let began = self.marker.take();
        let (mut lines, mut damage) = (0u64, None);
        loop {
            let taken = match self.line() {
                Line::End => break,
                Line::TooLong => Err(Ended::too_large("a line")),
                Line::At(start, end) => {
                    let line = &self.buffer[start..end];
                    if let Some(real_ns) = marker(line) {
                        self.marker = Some(real_ns);
                        return damage.unwrap_or(Ended::Whole);
                    }
                    if line.starts_with(b"#") || damage.is_some() {
                        continue;
                    }
                    lines += 1;
                    texts.take(line)
                }
            };
            damage = damage.or(taken.err());
        }
        if lines == 0 {
            self.closed_at = began;
        }
        damage.or(self.end.clone()).unwrap_or(Ended::Whole)
    }
}

/// Describes a read error; the decoder's own words for a file that ends too soon are replaced.
fn cut_short(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "is cut short".into(),
        _ => format!("is damaged: {error}"),
    }
}

/// Parses a marker such as `>>> 1795287585.001 <<<` into nanoseconds.
fn marker(line: &[u8]) -> Option<i64> {
    let text = line.strip_prefix(b">>> ")?.strip_suffix(b" <<<")?;
    let point = text.iter().position(|&b| b == b'.').unwrap_or(text.len());
    let secs = i64::try_from(scan::number(&text[..point])?).ok()?;
    let fraction = text.get(point + 1..).unwrap_or_default();
    let digits = fraction.len().min(9);
    let units = if digits == 0 {
        0
    } else {
        scan::number(&fraction[..digits])?
    };
    secs.checked_mul(1_000_000_000)?
        .checked_add(units as i64 * 10i64.pow(9 - digits as u32))
}

/// Reads the lines before the first marker.
fn read_header(stream: &mut Stream) -> Result<(Context, Header), Error> {
    let (mut context, mut header, mut known) = (Context::default(), Header::default(), false);
    let mut bytes = 0;
    while let Line::At(start, end) = stream.line() {
        let line = &stream.buffer[start..end];
        if let Some(real_ns) = marker(line) {
            stream.marker = Some(real_ns);
            break;
        }
        known |= line.starts_with(b"# Collectl:");
        bytes += line.len();
        if bytes > limits::CONTEXT_MAX {
            continue;
        }
        header_line(&String::from_utf8_lossy(line), &mut context, &mut header);
        if !known && !line.starts_with(b"#") {
            break;
        }
    }
    if known {
        Ok((context, header))
    } else {
        Err(Error::NotCollectl(stream.name.clone()))
    }
}

/// Parses a header line `# KEY:   VALUE  KEY: VALUE ...`.
fn header_line(line: &str, context: &mut Context, header: &mut Header) {
    let after = |key: &str| {
        let (_, rest) = line.split_once(key)?;
        rest.split_whitespace().next()
    };
    let secs = |text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|secs| secs.abs() < 1e10)
            .map(|secs| (secs * SECOND_NS) as i64)
    };
    for (key, fact) in [
        ("# Host: ", "host"),
        ("# HZ: ", "hz"),
        (" Arch: ", "arch"),
        (" PageSize: ", "page_size"),
        (" NumCPUs: ", "cpus"),
        ("# Kernel: ", "kernel"),
        (" Memory: ", "mem_kb"),
        (" Swap: ", "swap_kb"),
        (" TZ: ", "tz"),
        ("# Collectl: ", "collectl"),
        ("# Date: ", "started"),
        ("# SubSys: ", "letters"),
        (" Interval: ", "interval"),
    ] {
        if let Some(value) = after(key) {
            context.set(fact, value);
        }
    }
    if let Some(booted) = after("# Booted: ").and_then(secs) {
        header.booted_ns = booted;
    }
    if let Some(interval) = after(" Interval: ").and_then(|text| secs(text.split(':').next()?)) {
        header.interval_ns = interval;
    }
    if let Some(began) = after("Secs: ").filter(|_| line.starts_with("# Date: ")) {
        context.set("began", began);
    }
    if let Some((_, by)) = line.split_once("# Collectl: ") {
        context.set("recorded_by", by.trim());
    }
    for (key, fact) in [(" DiskNames: ", "disk_names"), (" NetNames: ", "net_names")] {
        if let Some((_, names)) = line.split_once(key) {
            context.set(fact, names.trim());
        }
    }
    if let Some((_, names)) = line.split_once(" NetNames: ") {
        for (name, speed) in names
            .split_whitespace()
            .filter_map(|name| name.rsplit_once(':'))
        {
            // The values −1 and ?? mean an unknown speed.
            if speed.parse::<u32>().is_ok() {
                context.set(&format!("speed.{name}"), speed);
            }
        }
    }
}

/// Kinds of texts of the whole machine that raw files have.
const MACHINE_KINDS: [u8; 17] = [
    kind::STAT,
    kind::LOADAVG,
    kind::MEMINFO,
    kind::VMSTAT,
    kind::DISKSTATS,
    kind::NET_DEV,
    kind::SLABINFO,
    kind::SOCKSTAT,
    kind::SNMP,
    kind::NETSTAT,
    kind::DENTRY_STATE,
    kind::INODE_NR,
    kind::FILE_NR,
    kind::INTERRUPTS,
    kind::BUDDYINFO,
    kind::NFS,
    kind::NFSD,
];

/// Largest number of fabric devices, and of ports of each.
const PORTS_MAX: u64 = 64;
/// Largest number of NUMA nodes.
const NODES_MAX: u64 = 1024;

/// Prefixes that collectl puts before a line of the kernel, and the kinds that they stand for.
const PREFIXES: &[(&[u8], u8)] = &[
    (b"disk", kind::DISKSTATS),
    (b"Net", kind::NET_DEV),
    (b"Slab", kind::SLABINFO),
    (b"load", kind::LOADAVG),
    (b"sock", kind::SOCKSTAT),
    (b"int", kind::INTERRUPTS),
    (b"buddy", kind::BUDDYINFO),
    (b"fs-ds", kind::DENTRY_STATE),
    (b"fs-is", kind::INODE_NR),
    (b"fs-fnr", kind::FILE_NR),
];

/// The lines of one interval, joined by text.
#[derive(Default)]
struct Texts {
    /// Texts of the kinds [`MACHINE_KINDS`], in that order.
    machine: [Vec<u8>; MACHINE_KINDS.len()],
    /// Texts of NUMA nodes and of ports, by kind and number.
    nodes: BTreeMap<(u8, u64), Vec<u8>>,
    tasks: Vec<Task>,
    tasks_len: usize,
    /// Bytes of the tasks' texts of this interval.
    tasks_bytes: usize,
    /// Sum of `tasks_bytes` over all intervals since the tasks' memory was last freed.
    tasks_bytes_kept: usize,
}

/// The texts of one process or thread.
#[derive(Default)]
struct Task {
    id: u64,
    is_thread: bool,
    tgid: u64,
    stat: Vec<u8>,
    status: Vec<u8>,
    io: Vec<u8>,
    cmdline: Vec<u8>,
}

impl Texts {
    fn clear(&mut self) {
        self.machine.iter_mut().for_each(Vec::clear);
        self.nodes.values_mut().for_each(Vec::clear);
        self.tasks_len = 0;
        // The buffer of each task may have grown to the longest text that it ever held.
        self.tasks_bytes_kept += std::mem::take(&mut self.tasks_bytes);
        if self.tasks_bytes_kept > 2 * limits::TASKS_BYTES_MAX {
            (self.tasks, self.tasks_bytes_kept) = (Vec::new(), 0);
        }
    }

    /// Adds a line to the text that its first word names.
    fn take(&mut self, line: &[u8]) -> Result<(), Ended> {
        let word = line
            .iter()
            .position(|b| b.is_ascii_whitespace())
            .unwrap_or(line.len());
        let (word, rest) = line.split_at(word);
        let rest = rest.get(1..).unwrap_or_default();
        if let [b'p', b'r', b'o', b'c', b':' | b'T', ..] = word {
            return self.take_task(word, rest);
        }
        let prefix = PREFIXES.iter().find(|(prefix, _)| *prefix == word);
        if let Some(&(_, kind)) = prefix {
            return self.push(kind, rest);
        }
        match word {
            [b'i', b'b', rest_of @ ..] if rest_of.first().is_some_and(u8::is_ascii_digit) => {
                self.take_port(rest_of, rest)
            }
            b"numai" => self.push_node(kind::NODE_MEMINFO, rest, rest),
            b"numas" => {
                // collectl puts the node's name before the kernel's line.
                let values = rest.splitn(3, |&b| b == b' ').nth(2).unwrap_or_default();
                self.push_node(kind::NODE_NUMASTAT, rest, values)
            }
            [b'n', b'f', b's', b'c', b'-', ..] => self.push(kind::NFS, &line[5..]),
            [b'n', b'f', b's', b's', b'-', ..] => self.push(kind::NFSD, &line[5..]),
            [b't', b'c', b'p', b'-', ..] => self.push(protocol_kind(word), &line[4..]),
            b"intr" | b"ctxt" | b"processes" | b"procs_running" | b"procs_blocked" => {
                self.push(kind::STAT, line)
            }
            [b'c', b'p', b'u', number @ ..] if number.iter().all(u8::is_ascii_digit) => {
                self.push(kind::STAT, line)
            }
            [b'A'..=b'Z', .., b':'] => self.push(kind::MEMINFO, line),
            [b'a'..=b'z', ..] if is_vmstat(word, rest) => self.push(kind::VMSTAT, line),
            _ => Ok(()),
        }
    }

    /// Adds a line such as `ib0-1:rcvd 123`: device, port and counter.
    fn take_port(&mut self, word: &[u8], number: &[u8]) -> Result<(), Ended> {
        let parts = word.split(|&b| b == b'-' || b == b':').collect::<Vec<_>>();
        let [device, port, counter] = &parts[..] else {
            return Ok(());
        };
        let name: &[u8] = match *counter {
            b"rcvd" => b"port_rcv_data ",
            b"xmtd" => b"port_xmit_data ",
            b"rcvp" => b"port_rcv_packets ",
            b"xmtp" => b"port_xmit_packets ",
            _ => return Ok(()),
        };
        let (Some(device), Some(port)) = (scan::number(device), scan::number(port)) else {
            return Ok(());
        };
        if device >= PORTS_MAX || port >= PORTS_MAX {
            return Ok(());
        }
        let at = (kind::INFINIBAND, device * PORTS_MAX + port);
        push_line(self.nodes.entry(at).or_default(), &[name, number].concat())
    }

    /// Adds `line` to the text of the node whose number `rest` has, as in `Node N`.
    fn push_node(&mut self, kind: u8, rest: &[u8], line: &[u8]) -> Result<(), Ended> {
        let node = scan::words(rest).nth(1).and_then(scan::number);
        let Some(node) = node.filter(|&node| node < NODES_MAX) else {
            return Ok(());
        };
        push_line(self.nodes.entry((kind, node)).or_default(), line)
    }

    /// The text of a kind of the machine.
    fn of(&self, kind: u8) -> &[u8] {
        let place = MACHINE_KINDS.iter().position(|&known| known == kind);
        place.map_or(&[], |place| &self.machine[place])
    }

    fn push(&mut self, kind: u8, line: &[u8]) -> Result<(), Ended> {
        let place = MACHINE_KINDS.iter().position(|&known| known == kind);
        let text = place.and_then(|place| self.machine.get_mut(place));
        text.map_or(Ok(()), |text| push_line(text, line))
    }

    /// Adds a line such as `proc:PID stat ...` or `procT:TID VmRSS: ...`.
    fn take_task(&mut self, word: &[u8], rest: &[u8]) -> Result<(), Ended> {
        let is_thread = word.starts_with(b"procT:");
        let id = word
            .strip_prefix(b"procT:")
            .or(word.strip_prefix(b"proc:"))
            .and_then(scan::number);
        let Some(id) = id else { return Ok(()) };
        let current = self.tasks[..self.tasks_len].last();
        if current.is_none_or(|task| (task.id, task.is_thread) != (id, is_thread)) {
            self.begin_task(id, is_thread);
        }
        self.tasks_bytes += rest.len();
        if self.tasks_bytes > limits::TASKS_BYTES_MAX {
            return Err(Ended::too_large("what an interval says of processes"));
        }
        let Some(task) = self.tasks[..self.tasks_len].last_mut() else {
            return Ok(());
        };
        if let Some(stat) = rest.strip_prefix(b"stat ") {
            // A name may have newlines, and collectl puts its prefix before each line.
            if is_whole_stat(&task.stat) {
                task.stat.clear();
            }
            push_line(&mut task.stat, stat)
        } else if let Some(command) = rest.strip_prefix(b"cmd ") {
            task.cmdline.clear();
            task.cmdline.extend_from_slice(command);
            Ok(())
        } else if let Some(io) = rest.strip_prefix(b"io ") {
            push_line(&mut task.io, io)
        } else {
            if let Some(tgid) = rest.strip_prefix(b"Tgid:\t").and_then(scan::number) {
                task.tgid = tgid;
            }
            push_line(&mut task.status, rest)
        }
    }

    fn begin_task(&mut self, id: u64, is_thread: bool) {
        if self.tasks_len >= limits::INSTANCES_MAX {
            return;
        }
        self.tasks_bytes += TASK_BYTES;
        if self.tasks_len == self.tasks.len() {
            self.tasks.push(Task::default());
        }
        let task = &mut self.tasks[self.tasks_len];
        self.tasks_len += 1;
        (task.id, task.is_thread, task.tgid) = (id, is_thread, id);
        for text in [
            &mut task.stat,
            &mut task.status,
            &mut task.io,
            &mut task.cmdline,
        ] {
            text.clear();
        }
    }
}

/// Returns true if a process's stat is complete: enough fields follow the name.
fn is_whole_stat(stat: &[u8]) -> bool {
    const BEHIND_THE_NAME_MIN: usize = 15;
    let name_end = stat.iter().rposition(|&b| b == b')');
    match name_end {
        Some(end) => scan::words(&stat[end + 1..]).count() >= BEHIND_THE_NAME_MIN,
        None => stat.is_empty(),
    }
}

/// Kind of a line with this prefix: `tcp-TcpExt:` belongs to netstat, `tcp-Tcp:` to snmp.
fn protocol_kind(word: &[u8]) -> u8 {
    match word.ends_with(b"Ext:") {
        true => kind::NETSTAT,
        false => kind::SNMP,
    }
}

/// Returns true for a line such as `pgpgin 123`: a lower-case name and one number.
fn is_vmstat(word: &[u8], rest: &[u8]) -> bool {
    let name = word
        .iter()
        .all(|&b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    name && scan::number(rest.trim_ascii()).is_some()
}

fn push_line(text: &mut Vec<u8>, line: &[u8]) -> Result<(), Ended> {
    if text.len() + line.len() >= limits::TEXT_RECORDED_MAX {
        return Err(Ended::too_large("an interval"));
    }
    text.extend_from_slice(line);
    text.push(b'\n');
    Ok(())
}

/// Slots of processes in the tracks, kept between samples.
#[derive(Default)]
struct Tasks {
    texts: Texts,
    slots: HashMap<Vec<u8>, Slot>,
    free: Vec<usize>,
    used: usize,
    scan: u64,
}

/// The slot of a process, and the number of the last scan that found it.
struct Slot {
    slot: usize,
    is_thread: bool,
    scan: u64,
}

/// Kinds of the texts of a process: stat, status, io, cmdline.
const PROCESS_KINDS: [u8; 4] = [
    kind::PID_STAT,
    kind::PID_STATUS,
    kind::PID_IO,
    kind::PID_CMDLINE,
];
const THREAD_KINDS: [u8; 3] = [kind::TID_STAT, kind::TID_STATUS, kind::TID_IO];

impl Tasks {
    /// Puts the texts into the tracks; returns false if there are none.
    fn fill(&mut self, texts: &Texts, tracks: &mut Tracks) -> bool {
        let mut any = false;
        for (kind, text) in MACHINE_KINDS.into_iter().zip(&texts.machine) {
            if text.is_empty() {
                continue;
            }
            forget_words(&[kind], tracks);
            match kind {
                kind::INTERRUPTS => {
                    let headed = [&cpus_above(texts.of(kind::STAT)), &text[..]].concat();
                    put(tracks, kind, 0, b"", &headed);
                }
                _ => put(tracks, kind, 0, b"", text),
            }
            any = true;
        }
        for (&(kind, node), text) in texts.nodes.iter().filter(|(_, text)| !text.is_empty()) {
            let slot = usize::try_from(node).unwrap_or(0);
            let name = match kind {
                kind::INFINIBAND => format!("ib{}/ports/{}", node / PORTS_MAX, node % PORTS_MAX),
                _ => node.to_string(),
            };
            put(tracks, kind, slot, name.as_bytes(), text);
            any = true;
        }
        let tasks = &texts.tasks[..texts.tasks_len];
        if tasks.is_empty() {
            return any;
        }
        self.scan += 1;
        forget_words(&PROCESS_KINDS, tracks);
        forget_words(&THREAD_KINDS, tracks);
        for task in tasks.iter().filter(|task| !task.stat.is_empty()) {
            self.fill_task(task, tracks);
        }
        self.drop_gone(tracks);
        true
    }

    fn fill_task(&mut self, task: &Task, tracks: &mut Tracks) {
        let name = match task.is_thread {
            true => format!("{}/task/{}", task.tgid, task.id),
            false => task.id.to_string(),
        };
        let slot = self.slot(name.as_bytes(), task.is_thread);
        let texts = [&task.stat, &task.status, &task.io, &task.cmdline];
        let kinds: &[u8] = if task.is_thread {
            &THREAD_KINDS
        } else {
            &PROCESS_KINDS
        };
        for (&kind, text) in kinds.iter().zip(texts) {
            if text.is_empty() {
                tracks.get_mut(kind).remove(slot);
            } else {
                put(tracks, kind, slot, name.as_bytes(), text);
            }
        }
    }

    fn slot(&mut self, name: &[u8], is_thread: bool) -> usize {
        if let Some(known) = self.slots.get_mut(name) {
            known.scan = self.scan;
            return known.slot;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        self.slots.insert(
            name.to_vec(),
            Slot {
                slot,
                is_thread,
                scan: self.scan,
            },
        );
        slot
    }

    fn drop_gone(&mut self, tracks: &mut Tracks) {
        let Tasks {
            slots, free, scan, ..
        } = self;
        slots.retain(|_, slot| {
            if slot.scan == *scan {
                return true;
            }
            let kinds: &[u8] = if slot.is_thread {
                &THREAD_KINDS
            } else {
                &PROCESS_KINDS
            };
            kinds
                .iter()
                .for_each(|&kind| tracks.get_mut(kind).remove(slot.slot));
            free.push(slot.slot);
            false
        });
    }
}

/// Builds the header of /proc/interrupts, which collectl leaves out: its columns are the CPUs that /proc/stat has times of. It
/// is empty if no times were recorded; the columns are then taken for the CPUs from 0 on.
fn cpus_above(stat: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    for line in scan::lines(stat) {
        let number = scan::words(line)
            .next()
            .and_then(|word| word.strip_prefix(b"cpu"));
        if let Some(number) = number.filter(|number| !number.is_empty()) {
            header.extend_from_slice(b" CPU");
            header.extend_from_slice(number);
        }
    }
    if !header.is_empty() {
        header.push(b'\n');
    }
    header
}

fn put(tracks: &mut Tracks, kind: u8, slot: usize, name: &[u8], text: &[u8]) {
    if let Some(source) = source::of(kind) {
        tracks
            .get_mut(kind)
            .put_text(slot, name, text, source.grammar);
    }
}

/// Restarts tracks whose words have become too many: words accumulate as processes come and go.
fn forget_words(kinds: &[u8], tracks: &mut Tracks) {
    for &kind in kinds {
        let track = tracks.get_mut(kind);
        if track.words().bytes() > limits::WORDS_PLAYED_BYTES {
            track.restart();
        }
    }
}

/// Plays `data` as a raw file, for fuzzing.
#[cfg(feature = "testing")]
pub fn fuzz_collectl(data: &[u8]) {
    let file = File {
        name: "fuzz.raw".into(),
        bytes: Box::new(std::io::Cursor::new(data.to_vec())),
    };
    let mut reader = Reader::new(vec![file]);
    for _ in 0..10_000 {
        match reader.read() {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const HEADER: &str = "################################################################################\n# Collectl:   V4.3.1-1  HiRes: 1  Options: -scdn\n# Host:       vm  DaemonOpts: \n# Booted:     1000.50 [20261121-20:49:39]\n# Date:       20261121-211241  Secs: 1795295561 TZ: +0100\n# SubSys:     cdn Options:  Interval: 1:60 NumCPUs: 2  NumBud: 0 Flags: ix\n# HZ:         100  Arch: x86_64 PageSize: 4096\n# Kernel:     6.18.44  Memory: 24684084 kB  Swap: 0 kB\n# NumNets:    3 NetNames: lo:?? eth0:-1 eth1:1000\n################################################################################\n";

    fn file(name: &str, text: &str) -> File {
        File {
            name: name.into(),
            bytes: Box::new(std::io::Cursor::new(text.as_bytes().to_vec())),
        }
    }

    fn text(reader: &Reader, kind: u8, slot: usize) -> String {
        let track = reader.tracks().get(kind);
        let mut out = Vec::new();
        if let Some(instance) = track.instance(slot) {
            assert!(track.render(instance, &mut out));
        }
        String::from_utf8(out).expect("text")
    }

    fn all(files: Vec<File>) -> Vec<String> {
        let mut reader = Reader::new(files);
        let mut items = Vec::new();
        while let Some(item) = reader.read().expect("readable") {
            items.push(match item {
                Item::Sample(stamp) => format!(
                    "{}+{} {}",
                    stamp.real_ns / 1_000_000,
                    stamp.missed,
                    text(&reader, kind::LOADAVG, 0).trim()
                ),
                Item::Gap(why) => why,
                Item::Damage(why) => format!("! {why}"),
            });
        }
        items
    }

    #[test]
    fn lines_become_texts_again() {
        let body = format!(
            "{HEADER}>>> 2000.001 <<<\ncpu  1 2\ncpu0 1 2\nintr 5\ndisk  254       0 vda 1 2 3\nload 0.5 1/2 3\nMemTotal:  5 kB\nSlab name 1 2\npgpgin 7\ntcp-Ip: Forwarding 1\nsock used 5\nNet   eth0: 1 2\nproc:7 stat 7 (a b) S 1\nproc:7 Tgid:\t7\nproc:7 VmRSS:\t    9 kB\nproc:7 cmd sleep 45 \nproc:7 io rchar: 1\nproc:7 io wchar: 2\nprocT:8 stat 8 (t) R 1\nprocT:8 Tgid:\t7\n### 123.4 interval done\n>>> 2001.001 <<<\n"
        );
        let mut reader = Reader::new(vec![file("vm-20261121-211241.raw", &body)]);
        let Some(Item::Sample(stamp)) = reader.read().expect("readable") else {
            panic!("a sample")
        };
        assert_eq!(
            (stamp.real_ns, stamp.boot_ns),
            (2_000_001_000_000, 999_501_000_000)
        );
        for (kind, slot, expect) in [
            (kind::STAT, 0, "cpu  1 2\ncpu0 1 2\nintr 5\n"),
            (kind::DISKSTATS, 0, " 254       0 vda 1 2 3\n"),
            (kind::LOADAVG, 0, "0.5 1/2 3\n"),
            (kind::MEMINFO, 0, "MemTotal:  5 kB\n"),
            (kind::VMSTAT, 0, "pgpgin 7\n"),
            (kind::NET_DEV, 0, "  eth0: 1 2\n"),
            (kind::PID_STAT, 0, "7 (a b) S 1\n"),
            (kind::PID_STATUS, 0, "Tgid:\t7\nVmRSS:\t    9 kB\n"),
            (kind::PID_CMDLINE, 0, "sleep 45 "),
            (kind::PID_IO, 0, "rchar: 1\nwchar: 2\n"),
            (kind::TID_STAT, 1, "8 (t) R 1\n"),
        ] {
            assert_eq!(text(&reader, kind, slot), expect, "kind {kind}");
        }
        let thread = reader
            .tracks()
            .get(kind::TID_STAT)
            .instance(1)
            .expect("a thread");
        assert_eq!(thread.name, b"7/task/8");
        for (key, expect) in [
            ("host", Some("vm")),
            ("tz", Some("+0100")),
            ("hz", Some("100")),
            ("cpus", Some("2")),
            ("page_size", Some("4096")),
            ("speed.eth0", None),
            ("speed.eth1", Some("1000")),
            ("mem_kb", Some("24684084")),
        ] {
            assert_eq!(reader.context().get(key), expect, "{key}");
        }
        assert_eq!(reader.read().expect("readable"), None);
    }

    #[test]
    fn files_are_stitched() {
        let body = |from: u32, to: u32| {
            let lines: String = (from..to)
                .map(|n| format!(">>> {n}.001 <<<\nload {n}\n"))
                .collect();
            format!("{HEADER}{lines}>>> {to}.001 <<<\n")
        };
        let follows = [file("a.raw", &body(10, 12)), file("b.raw", &body(12, 14))];
        assert_eq!(
            all(follows.into()),
            ["10001+0 10", "11001+0 11", "12001+0 12", "13001+0 13"]
        );
        let apart = [file("b.raw", &body(20, 21)), file("a.raw", &body(10, 11))];
        assert_eq!(
            all(apart.into()),
            [
                "10001+0 10",
                "b.raw does not follow the file before it",
                "20001+0 20"
            ]
        );
        let missing = format!("{HEADER}>>> 10.0 <<<\nload 1\n>>> 14.1 <<<\nload 2\n>>> 15.0 <<<\n");
        assert_eq!(
            all(vec![file("a.raw", &missing)]),
            ["10000+0 1", "14100+3 2"]
        );
        // Processes in a separate file.
        let other = format!("{HEADER}>>> 11.001 <<<\nproc:1 stat 1 (a) S\n>>> 12.001 <<<\n");
        assert_eq!(
            all(vec![
                file("a.rawp.gz", &other),
                file("a.raw.gz", &body(10, 12))
            ]),
            ["10001+0 10", "11001+0 11"]
        );
    }

    #[test]
    fn a_clock_that_is_set_back_is_told() {
        let body: String = [10, 11, 8, 9]
            .map(|n| format!(">>> {n}.0 <<<\nload {n}\n"))
            .concat();
        let body = format!("{HEADER}{body}>>> 10.0 <<<\n");
        assert_eq!(
            all(vec![file("a.raw", &body)]),
            [
                "10000+0 10",
                "11000+0 11",
                "the clock was set back by 3.0 s",
                "8000+0 8",
                "9000+0 9"
            ]
        );
    }

    /// A text that is too large loses only its own interval and is not kept in memory.
    #[test]
    fn what_is_too_large_is_passed_over() {
        let long = "x".repeat(limits::TEXT_RECORDED_MAX + CHUNK);
        let many = |line: &str, bytes: usize| line.repeat(bytes / line.len() + 1);
        let task = format!("proc:1 cmd {}\n", &long[..60_000]);
        for (what, lines) in [
            ("a line", format!("load {long}\n")),
            ("a line", format!("Net {long}{long}{long}\nload 1\n")),
            (
                "an interval",
                many("cpu0 1 2 3 4\n", limits::TEXT_RECORDED_MAX),
            ),
            (
                "an interval",
                many("proc:7 VmRSS:\t1 kB\n", 2 * limits::TEXT_RECORDED_MAX),
            ),
            (
                "what an interval says of processes",
                many(&task, limits::TASKS_BYTES_MAX),
            ),
        ] {
            let body = format!(
                "{HEADER}>>> 10.0 <<<\nload 1\n>>> 11.0 <<<\n{lines}>>> 12.0 <<<\nload 3\n>>> 13.0 <<<\n"
            );
            assert_eq!(
                all(vec![file("a.raw", &body)]),
                [
                    "10000+0 1",
                    &format!("! a.raw is damaged: {what} is too large"),
                    "12000+0 3"
                ]
            );
        }
    }

    /// An unplayable file among several is skipped, and the others are played.
    #[test]
    fn another_file_among_them_is_told() {
        let body = |n: u32| format!("{HEADER}>>> {n}.0 <<<\nload {n}\n>>> {}.0 <<<\n", n + 1);
        let whole = |name, n| file(name, &body(n));
        let none = |name| file(name, "");
        let warning = |name: &str| format!("! cannot play {name}: not a collectl raw file");
        for (files, expect) in [
            (
                vec![none("a.raw"), whole("b.raw", 10)],
                vec![warning("a.raw"), "10000+0 10".into()],
            ),
            (
                vec![whole("a.raw", 10), none("b.raw"), none("c.raw")],
                vec!["10000+0 10".into(), warning("b.raw"), warning("c.raw")],
            ),
        ] {
            assert_eq!(all(files), expect);
        }
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(text).expect("memory");
        out.finish().expect("memory")
    }

    /// A file that is cut at any byte yields a prefix of the items of the whole file.
    #[test]
    fn cut_anywhere() {
        let body = format!(
            "{HEADER}>>> 10.001 <<<\nload 1\ncpu 1\n>>> 11.001 <<<\nload 2\ncpu 2\n>>> 12.001 <<<\n"
        );
        let plain = body.into_bytes();
        let members = [
            gzip(&plain[..plain.len() / 2]),
            gzip(&plain[plain.len() / 2..]),
        ]
        .concat();
        for whole in [plain, members] {
            for cut in 0..=whole.len() {
                let bytes = Box::new(std::io::Cursor::new(whole[..cut].to_vec()));
                let mut reader = Reader::new(vec![File {
                    name: "a.raw".into(),
                    bytes,
                }]);
                let mut samples = 0;
                while let Ok(Some(item)) = reader.read() {
                    samples += usize::from(matches!(item, Item::Sample(_)));
                }
                assert!(
                    samples <= 2 && (cut < whole.len() || samples == 2),
                    "{cut}: {samples}"
                );
            }
        }
    }

    #[test]
    fn other_files_are_refused() {
        for text in [
            "",
            "\x1f\u{8b}",
            "hello\n",
            "# something\n>>> 1.0 <<<\n",
            "\n\n\n",
        ] {
            let error = Reader::new(vec![file("x.raw", text)])
                .read()
                .expect_err("refused");
            assert_eq!(
                error.to_string(),
                "cannot play x.raw: not a collectl raw file"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes(data: Vec<u8>, body in "(>>> [0-9]{1,3}\\.[0-9]{0,3} <<<\n|(proc:[0-9]{1,2} |cpu|disk|Net|load)? ?[a-zA-Z0-9:(). ]{0,12}\n){0,30}") {
            fuzz_collectl(&data);
            fuzz_collectl(format!("{HEADER}{body}").as_bytes());
        }
    }
}
