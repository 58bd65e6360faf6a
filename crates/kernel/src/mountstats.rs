//! Activity of NFS mounts, from /proc/PID/mountstats. A read can wait for a lock that mounting holds, so a separate thread
//! reads, and the sampler waits a few milliseconds at most; without an answer the rows are "not read".

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kymo_base::scan;
use kymo_base::template::Grammar;
use kymo_base::track::Why;
use kymo_base::track_writer::TrackWriter;
use kymo_sys::clock::Clock;
use kymo_sys::kernel_file::Root;

use crate::reader::errno_of;

/// Longest wait of a sample for the text.
const PATIENCE: Duration = Duration::from_millis(5);
/// Limit of the number of NFS mounts that are recorded.
const MOUNTS_MAX: usize = 1024;

/// NFS mounts by their mount points, with the kept part of each text.
pub type Mounts = BTreeMap<Vec<u8>, Vec<u8>>;

/// State shared by the thread and the sampler.
#[derive(Default)]
struct Request {
    /// Set while the sampler wants the text or the thread reads it.
    is_wanted: bool,
    /// Result of the last read.
    answer: Option<Mounts>,
    ends: bool,
}

#[derive(Default)]
struct Exchange {
    request: Mutex<Request>,
    changed: Condvar,
}

impl Exchange {
    fn lock(&self) -> MutexGuard<'_, Request> {
        self.request.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the NFS mounts of a machine at each scan of processes.
pub(crate) struct Mountstats {
    track: TrackWriter,
    /// The mount points, by slot of the track.
    slots: Vec<Option<Vec<u8>>>,
    exchange: Arc<Exchange>,
    is_started: bool,
}

impl Default for Mountstats {
    fn default() -> Mountstats {
        Mountstats {
            track: TrackWriter::new(Grammar::Counts),
            slots: Vec::new(),
            exchange: Arc::default(),
            is_started: false,
        }
    }
}

impl Drop for Mountstats {
    fn drop(&mut self) {
        self.exchange.lock().ends = true;
        self.exchange.changed.notify_all();
    }
}

impl Mountstats {
    /// Takes a sample; returns its cost and its section.
    pub(crate) fn sample(
        &mut self,
        root: &Arc<Root>,
        clock: &dyn Clock,
        due: bool,
        key: bool,
    ) -> (u64, &[u8]) {
        let start_ns = clock.mono_ns();
        self.track.begin(key);
        let answer = match due {
            true => self.ask(root),
            false => None,
        };
        match answer {
            Some(mounts) => self.record(mounts),
            None => {
                let why = match due {
                    true => Why::Slow,
                    false => Why::NotDue,
                };
                for slot in (0..self.slots.len()).filter(|&slot| self.slots[slot].is_some()) {
                    self.track.unread(slot, why);
                }
            }
        }
        (clock.mono_ns() - start_ns, self.track.end())
    }

    /// Has the thread read the texts, and waits for them a few milliseconds; `None` if they are late.
    fn ask(&mut self, root: &Arc<Root>) -> Option<Mounts> {
        if !self.is_started {
            let (exchange, root) = (self.exchange.clone(), root.clone());
            let thread = std::thread::Builder::new().name("kymo mountstats".into());
            let started = thread
                .stack_size(64 << 10)
                .spawn(move || work(&exchange, &root));
            self.is_started = started.is_ok();
        }
        let mut request = self.exchange.lock();
        // A text that arrived too late for the last scan would be outdated, so discard it.
        request.answer = None;
        request.is_wanted = true;
        self.exchange.changed.notify_all();
        let is_open = |request: &mut Request| request.answer.is_none();
        let waited = self
            .exchange
            .changed
            .wait_timeout_while(request, PATIENCE, is_open);
        let (mut request, _) = waited.unwrap_or_else(PoisonError::into_inner);
        request.answer.take()
    }

    fn record(&mut self, mut there: Mounts) {
        for slot in 0..self.slots.len() {
            let is_gone = |point: &Vec<u8>| !there.contains_key(point);
            if self.slots[slot].as_ref().is_some_and(is_gone) {
                self.slots[slot] = None;
                self.track.gone(slot);
            }
        }
        let known: Vec<&Vec<u8>> = self.slots.iter().flatten().collect();
        let new: Vec<Vec<u8>> = there
            .keys()
            .filter(|point| !known.contains(point))
            .cloned()
            .collect();
        for point in new {
            let free = self.slots.iter().position(Option::is_none);
            let slot = free.unwrap_or(self.slots.len());
            self.track.add(slot, &point);
            if slot == self.slots.len() {
                self.slots.push(None);
            }
            self.slots[slot] = Some(point);
        }
        for (slot, point) in self.slots.iter().enumerate() {
            if let Some(text_of_mount) = point.as_ref().and_then(|point| there.remove(point)) {
                self.track.read(slot, &text_of_mount);
            }
        }
    }
}

/// Reads the text whenever the sampler wants it.
fn work(exchange: &Exchange, root: &Root) {
    let mut request = exchange.lock();
    while !request.ends {
        if !request.is_wanted {
            request = exchange
                .changed
                .wait(request)
                .unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        request.is_wanted = false;
        drop(request);
        let mounts = read(root).unwrap_or_default();
        request = exchange.lock();
        request.answer = Some(mounts);
        exchange.changed.notify_all();
    }
}

/// Reads the texts of a machine's NFS mounts.
pub fn read(root: &Root) -> Result<Mounts, u16> {
    let text = of_process(root, "mountstats")?;
    let words = |line| scan::words(line).collect::<Vec<_>>();
    // Few machines have NFS, and only these need the second text, which is as long as the first.
    if !scan::lines(&text).any(|line| nfs_mount(&words(line)).is_some()) {
        return Ok(Mounts::new());
    }
    let mountinfo = of_process(root, "mountinfo").unwrap_or_default();
    Ok(mounts(&text, &addresses(&mountinfo)))
}

/// Reads a file of a process that sees the machine's mounts.
fn of_process(root: &Root, file: &str) -> Result<Vec<u8>, u16> {
    let mut text = Vec::new();
    root.read(&format!("proc/1/{file}"), &mut text)
        .or_else(|_| root.read(&format!("proc/self/{file}"), &mut text))
        .map_err(errno_of)?;
    Ok(text)
}

/// The addresses of the servers, by mount point: option `addr` of the file system in /proc/PID/mountinfo.
fn addresses(mountinfo: &[u8]) -> Mounts {
    let lines = scan::lines(mountinfo).filter_map(|line| {
        let words: Vec<&[u8]> = scan::words(line).collect();
        let dash = words.iter().position(|word| *word == b"-")?;
        let [kind, _, options, ..] = words[dash + 1..] else {
            return None;
        };
        let mut options = options.split(|&byte| byte == b',');
        let address = options.find_map(|option| option.strip_prefix(b"addr="))?;
        let is_nfs = matches!(kind, b"nfs" | b"nfs4");
        is_nfs.then(|| Some((words.get(4)?.to_vec(), address.to_vec())))?
    });
    lines.collect()
}

/// The NFS mounts in the text, by mount point as the kernel spells it, with the kept part of each: `type nfs4 SERVER:PATH`,
/// `addr` and `proto`, `age`, `bytes`, `events`, and a line for each operation with its name and numbers. Of several mounts
/// on one mount point the last one counts.
fn mounts(text: &[u8], addresses: &Mounts) -> Mounts {
    let mut found = Mounts::new();
    let mut point = None;
    for line in scan::lines(text) {
        let words: Vec<&[u8]> = scan::words(line).collect();
        if let [b"device", ..] = &words[..] {
            point = None;
            if let Some([device, on, kind]) = nfs_mount(&words)
                && found.len() < MOUNTS_MAX
            {
                let mut mount = [b"type ", kind, b" ", device, b"\n"].concat();
                if let Some(address) = addresses.get(on) {
                    mount.extend([b"addr ", &address[..], b"\n"].concat());
                }
                found.insert(on.to_vec(), mount);
                point = Some(on);
            }
            continue;
        }
        match (point.and_then(|point| found.get_mut(point)), &words[..]) {
            (Some(mount), [b"xprt:", protocol, ..]) => put_protocol(protocol, mount),
            (Some(mount), [name, numbers @ ..]) => put_counts(name, numbers, mount),
            _ => {}
        }
    }
    found
}

/// Device, mount point and type, if the line begins an NFS mount. Versions 1.0 and 1.1 of the statistics are known, of which
/// only 1.1 has errors of operations.
fn nfs_mount<'a>(words: &[&'a [u8]]) -> Option<[&'a [u8]; 3]> {
    match words {
        [
            b"device",
            device,
            b"mounted",
            b"on",
            on,
            b"with",
            b"fstype",
            kind @ (b"nfs" | b"nfs4"),
            b"statvers=1.0" | b"statvers=1.1",
            ..,
        ] => Some([device, on, kind]),
        _ => None,
    }
}

/// Adds the protocol once: a mount may have several connections, all of one protocol.
fn put_protocol(protocol: &[u8], out: &mut Vec<u8>) {
    if !scan::lines(out).any(|line| line.starts_with(b"proto ")) {
        out.extend([b"proto ", protocol, b"\n"].concat());
    }
}

/// Appends `NAME NUMBER ...` if there are only numbers.
fn put_counts(name: &[u8], numbers: &[&[u8]], out: &mut Vec<u8>) {
    let Some(name) = name.strip_suffix(b":") else {
        return;
    };
    let is_number = |word: &&[u8]| scan::number(word).is_some();
    if numbers.is_empty() || !numbers.iter().all(is_number) {
        return;
    }
    out.extend_from_slice(name);
    for number in numbers {
        out.push(b' ');
        out.extend_from_slice(number);
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text modelled on the kernel's `nfs_show_stats`, with made-up numbers.
    const TEXT: &str = "device proc mounted on /proc with fstype proc\n\
        device 10.0.0.1:/export mounted on /a\\040b with fstype nfs4 statvers=1.1\n\
        \topts:\trw,vers=4.2,rsize=1048576\n\
        \tage:\t77\n\
        \tcaps:\tcaps=0xfffbc0bf,wtmult=512\n\
        \tsec:\tflavor=1,pseudoflavor=1\n\
        \tevents:\t1 2 3\n\
        \tbytes:\t1 2 3 4 5 6 7 8 \n\
        \tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\
        \txprt:\ttcp 875 1 2 0 6 7 7 0 7 0 2 0 0\n\
        \txprt:\ttcp 876 1 2 0 6 7 7 0 7 0 2 0 0\n\
        \tper-op statistics\n\
        \t        NULL: 1 1 0 44 24 0 0 0 0\n\
        \t        READ: 5 6 1 700 800 3 10 20 2\n\
        device tmp mounted on /tmp with fstype tmpfs\n\
        device old:/x mounted on /x with fstype nfs statvers=2.0\n\
        \tage:\t1\n";

    const MOUNTINFO: &str = "22 1 0:20 / /proc rw - proc proc rw\n\
        31 23 0:28 / /a\\040b rw,relatime shared:1 - nfs4 10.0.0.1:/export rw,vers=4.2,clientaddr=10.0.0.9,addr=10.0.0.1\n\
        32 23 0:29 / /x rw - fuse old:/x rw,addr=10.0.0.2\n";

    #[test]
    fn nfs_mounts_and_their_numbers() {
        let mount = "type nfs4 10.0.0.1:/export\naddr 10.0.0.1\nage 77\nevents 1 2 3\nbytes 1 2 3 4 5 6 7 8\nproto tcp\nNULL 1 1 0 44 24 0 0 0 0\nREAD 5 6 1 700 800 3 10 20 2\n";
        let expect = BTreeMap::from([(b"/a\\040b".to_vec(), mount.as_bytes().to_vec())]);
        let of = |mountinfo: &str| mounts(TEXT.as_bytes(), &addresses(mountinfo.as_bytes()));
        assert_eq!(of(MOUNTINFO), expect);
        // A text cut anywhere is harmless.
        for end in 0..TEXT.len() {
            assert!(mounts(&TEXT.as_bytes()[..end], &Mounts::new()).len() <= 1);
        }
        for end in 0..MOUNTINFO.len() {
            assert_eq!(of(&MOUNTINFO[..end]).len(), 1);
        }
    }
}
