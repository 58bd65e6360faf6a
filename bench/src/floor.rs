//! The physical floor: reads the kernel's texts by kept descriptors, without encoding,
//! writing or interpretation. Costs above it are the recorder's own; no recorder that
//! reads the same texts can cost less.
//!
//! Whole texts are one `pread`; record-wise ones (vmstat, diskstats, net/dev) are
//! read until 0 comes back. With the letter Z, each sample also lists /proc
//! and reads `stat` and `io` of every process by kept descriptors.

use crate::args::Args;
use crate::fault::{Cannot, Fault, Result};
use crate::ticks::{Ticks, nanos};
use rustix::fs::{CWD, Mode, OFlags, RawDir, SeekFrom, openat, seek};
use rustix::io::pread;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Far above any text of a kernel; only pages with text are touched.
const BUFFER_BYTES: usize = 8 << 20;
/// Above any text that is read by one call. For some, the kernel allocates as much as the call requests.
const WHOLE_BYTES: usize = 64 << 10;

#[derive(Clone, Copy)]
enum Reads {
    Whole,
    ToEnd,
    /// As `ToEnd`, once a minute: without pauses a sample counts as 10 s.
    ToEndAtScans,
}

const SAMPLES_A_SCAN: u64 = 6;

/// Letter, path and way of reading; the same files that collectl opens for the letter. Files that this kernel lacks are left out.
const FILES: [(char, &str, Reads); 17] = [
    ('c', "/proc/stat", Reads::Whole),
    ('c', "/proc/loadavg", Reads::Whole),
    ('d', "/proc/diskstats", Reads::ToEnd),
    ('n', "/proc/net/dev", Reads::ToEnd),
    ('m', "/proc/meminfo", Reads::Whole),
    ('m', "/proc/vmstat", Reads::ToEnd),
    ('b', "/proc/buddyinfo", Reads::ToEnd),
    ('i', "/proc/sys/fs/dentry-state", Reads::Whole),
    ('i', "/proc/sys/fs/inode-nr", Reads::Whole),
    ('i', "/proc/sys/fs/file-nr", Reads::Whole),
    ('j', "/proc/interrupts", Reads::ToEnd),
    ('s', "/proc/net/sockstat", Reads::Whole),
    ('s', "/proc/net/sockstat6", Reads::Whole),
    ('t', "/proc/net/snmp", Reads::Whole),
    ('t', "/proc/net/netstat", Reads::Whole),
    ('t', "/proc/net/snmp6", Reads::Whole),
    ('y', "/proc/slabinfo", Reads::ToEndAtScans),
];

/// `kymo-bench floor`: `-c N` reads N + 1 times, as the recorders do. With
/// `--root DIR` the files are below DIR, and are opened for each sample.
pub(crate) fn run(mut args: Args) -> Result<()> {
    let letters: String = args.value("-s")?.unwrap_or_else(|| "cdnm".into());
    let interval: String = args.value("-i")?.unwrap_or_else(|| "0".into());
    let count: u64 = args.value("-c")?.unwrap_or(8640);
    let phase_ns = nanos(args.value("--phase")?.unwrap_or(0.0));
    let ack = args.flag("--ack");
    let root: Option<PathBuf> = args.value("--root")?;
    args.done()?;
    let mut floor = Floor::open(&letters, root)?;
    let ticks = pace(first_interval_ns(&interval)?, phase_ns)?;
    floor.sample()?;
    if ack {
        crate::say("0\n")?;
    }
    for _ in 0..count {
        if let Some(ticks) = &ticks {
            ticks.wait()?;
        }
        floor.sample()?;
    }
    Ok(())
}

fn pace(interval_ns: u64, phase_ns: u64) -> Result<Option<Ticks>> {
    match interval_ns {
        0 => Ok(None),
        _ => Ticks::start(interval_ns, phase_ns).map(Some),
    }
}

/// The I in collectl's `I[:I2]`: every sample reads everything here, so I2 is ignored.
fn first_interval_ns(word: &str) -> Result<u64> {
    let first = word.split(':').next().unwrap_or_default();
    let seconds: f64 = first.parse().cannot(format_args!("understand -i {word}"))?;
    Ok(nanos(seconds))
}

struct Floor {
    kept: Vec<(OwnedFd, Reads)>,
    /// Files that are opened for each sample, below another root.
    opened_anew: Vec<(String, Reads)>,
    processes: Option<Processes>,
    buffer: Vec<u8>,
    samples: u64,
}

impl Floor {
    fn open(letters: &str, root: Option<PathBuf>) -> Result<Floor> {
        let below = |path: &str| match &root {
            Some(root) => format!("{}{path}", root.display()),
            None => path.to_string(),
        };
        let wanted = FILES.iter().filter(|file| letters.contains(file.0));
        let files = wanted.map(|&(_, path, reads)| (below(path), reads));
        let files: Vec<(String, Reads)> =
            files.filter(|(path, _)| Path::new(path).exists()).collect();
        let (kept, opened_anew) = match root {
            Some(_) => (Vec::new(), files),
            None => {
                let kept = files.iter().map(|(path, reads)| Ok((open(path)?, *reads)));
                (kept.collect::<Result<_>>()?, Vec::new())
            }
        };
        let processes = letters.contains('Z').then(Processes::open).transpose()?;
        Ok(Floor {
            kept,
            opened_anew,
            processes,
            buffer: vec![0; BUFFER_BYTES],
            samples: 0,
        })
    }

    fn sample(&mut self) -> Result<()> {
        let is_scan = self.samples.is_multiple_of(SAMPLES_A_SCAN);
        self.samples += 1;
        for (file, reads) in &self.kept {
            if matches!(reads, Reads::ToEndAtScans) && !is_scan {
                continue;
            }
            read(file, *reads, &mut self.buffer)?;
        }
        for (path, reads) in &self.opened_anew {
            read(&open(path)?, *reads, &mut self.buffer)?;
        }
        match &mut self.processes {
            Some(processes) => processes.sample(&mut self.buffer),
            None => Ok(()),
        }
    }
}

fn open(path: &str) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).cannot(format_args!("open {path}"))
}

fn read(file: &OwnedFd, reads: Reads, buffer: &mut [u8]) -> Result<()> {
    let room = match reads {
        Reads::Whole => WHOLE_BYTES,
        Reads::ToEnd | Reads::ToEndAtScans => buffer.len(),
    };
    let mut at = pread(file, &mut buffer[..room], 0).cannot("read a kept file")?;
    if at == room {
        return Err(Fault::new("a text is longer than the floor's buffer"));
    }
    if let Reads::Whole = reads {
        return Ok(());
    }
    loop {
        match pread(file, &mut buffer[at..], at as u64).cannot("read a kept file")? {
            0 => return Ok(()),
            n => at += n,
        }
    }
}

/// Kept `stat` and `io` of every process; each descriptor belongs to one process
/// for ever, so that of a dead one answers ESRCH and is dropped.
struct Processes {
    proc: OwnedFd,
    kept: HashMap<u32, Kept>,
    scan: u64,
}

struct Kept {
    stat: OwnedFd,
    io: Option<OwnedFd>,
    seen: u64,
}

impl Processes {
    fn open() -> Result<Processes> {
        raise_open_files()?;
        Ok(Processes {
            proc: open("/proc")?,
            kept: HashMap::new(),
            scan: 0,
        })
    }

    fn sample(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.scan += 1;
        seek(&self.proc, SeekFrom::Start(0)).cannot("rewind /proc")?;
        let mut names = [MaybeUninit::<u8>::uninit(); 32 << 10];
        let mut entries = RawDir::new(&self.proc, &mut names);
        while let Some(entry) = entries.next() {
            let entry = entry.cannot("list /proc")?;
            if let Some(pid) = pid(entry.file_name().to_bytes()) {
                visit(&mut self.kept, pid, self.scan, buffer);
            }
        }
        let scan = self.scan;
        self.kept.retain(|_, kept| kept.seen == scan);
        Ok(())
    }
}

/// Reads one process; a dead one is left out, and removed after the scan.
fn visit(kept: &mut HashMap<u32, Kept>, pid: u32, scan: u64, buffer: &mut [u8]) {
    if let Some(known) = kept.get_mut(&pid)
        && pread(&known.stat, &mut *buffer, 0).is_ok()
    {
        known.read_io(buffer);
        known.seen = scan;
        return;
    }
    if let Ok(mut new) = Kept::open(pid, scan)
        && pread(&new.stat, &mut *buffer, 0).is_ok()
    {
        new.read_io(buffer);
        kept.insert(pid, new);
    }
}

impl Kept {
    fn open(pid: u32, scan: u64) -> Result<Kept> {
        Ok(Kept {
            stat: open(&format!("/proc/{pid}/stat"))?,
            io: open(&format!("/proc/{pid}/io")).ok(),
            seen: scan,
        })
    }

    fn read_io(&mut self, buffer: &mut [u8]) {
        if let Some(io) = &self.io {
            // Without the right to read it (EACCES) the text is absent.
            let _ = pread(io, buffer, 0);
        }
    }
}

fn pid(name: &[u8]) -> Option<u32> {
    std::str::from_utf8(name).ok()?.parse().ok()
}

/// Raises the limit of open files: two descriptors for each process soon pass the usual soft limit of 1,024.
fn raise_open_files() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).cannot("raise the limit of open files")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_collectls() {
        for (word, want_ns) in [
            ("0", 0),
            (".01", 10_000_000),
            ("1:5", 1_000_000_000),
            ("0:1", 0),
        ] {
            assert_eq!(first_interval_ns(word).unwrap(), want_ns, "{word}");
        }
        assert!(first_interval_ns("x").is_err());
    }

    /// Reads the live machine.
    #[test]
    fn one_sample_of_everything() {
        let mut floor = Floor::open("bcdijnmstyZ", None).unwrap();
        floor.sample().unwrap();
        floor.sample().unwrap();
        let me = std::process::id();
        assert!(floor.processes.unwrap().kept.contains_key(&me));
    }
}
