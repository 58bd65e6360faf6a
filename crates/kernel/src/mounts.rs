//! Space of the mounted file systems. A query may never return (an unreachable server, a FUSE program that hangs), so
//! separate threads make the queries, and the sampler waits a few milliseconds at most. A thread that hangs is left to
//! its mount and another replaces it; if too many hang, the other mounts are "not read". Mounts of autofs are never
//! queried, since that would mount them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use kymo_base::scan;
use kymo_base::template::Grammar;
use kymo_base::track::Why;
use kymo_base::track_writer::TrackWriter;
use kymo_sys::clock::Clock;
use kymo_sys::kernel_file::Root;
use kymo_sys::space::{self, Space};

use crate::reader::errno_of;

/// Limit of threads that hang.
pub const HANGING_MAX: usize = 8;
/// Time without an answer after which a mount hangs.
const HANGS_AFTER_NS: u64 = 1_000_000_000;
/// Longest wait of a sample for answers; healthy file systems answer within microseconds.
const PATIENCE: Duration = Duration::from_millis(5);
/// Limit of the number of mounts that are queried.
const MOUNTS_MAX: usize = 1024;

/// Types of file systems without space of their own, and autofs.
const WITHOUT_ROOM: &[&str] = &[
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "squashfs",
    "sysfs",
    "tracefs",
];

/// A mounted file system.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mount {
    /// Mount point as the kernel spells it, with a blank as `\040`.
    pub point: String,
    /// Type and source: `ext4 /dev/vda1`.
    pub what: String,
}

/// The mounts in /proc/PID/mountinfo that have space, in order; of several mounts on one mount point the last one.
pub fn read_mountinfo(text: &[u8]) -> Vec<Mount> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for line in scan::lines(text) {
        let line = String::from_utf8_lossy(line);
        let Some((before, after)) = line.split_once(" - ") else {
            continue;
        };
        let (Some(point), [kind, source, ..]) = (
            before.split(' ').nth(4),
            &after.split(' ').collect::<Vec<_>>()[..],
        ) else {
            continue;
        };
        let has_room = !WITHOUT_ROOM.contains(kind);
        let what = has_room.then(|| {
            let source = unescaped(source.as_bytes());
            format!("{kind} {}", String::from_utf8_lossy(&source))
        });
        found.insert(point.to_string(), what);
    }
    let mounts = found.into_iter().filter_map(|(point, what)| {
        let what = what?;
        Some(Mount { point, what })
    });
    mounts.take(MOUNTS_MAX).collect()
}

/// Decodes the kernel's octal escapes, such as `\040` for a blank.
pub(crate) fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..3).filter(|_| first == b'\\').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        match code {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out
}

/// Result of `statvfs`, or its errno.
type Answer = Result<Space, u16>;

/// A query under way.
#[derive(Clone, Copy)]
struct PendingQuery {
    since_ns: u64,
    /// The mount hangs, and another thread has replaced the one that waits for it.
    hangs: bool,
}

/// State that threads and sampler share.
#[derive(Default)]
struct Shared {
    /// Mounts to query.
    queue: VecDeque<String>,
    /// Mounts with a query under way.
    queries: BTreeMap<String, PendingQuery>,
    /// Time of the last sample.
    now_ns: u64,
    answers: BTreeMap<String, Answer>,
    threads: usize,
    /// Threads among these that a hanging mount blocks.
    hanging: usize,
    ends: bool,
}

struct Desk {
    shared: Mutex<Shared>,
    changed: Condvar,
}

impl Desk {
    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Queries all mounts of a machine at each scan of processes.
pub struct Mounts {
    track: TrackWriter,
    /// The mounts, by slot of the track.
    mounts: Vec<Option<Mount>>,
    desk: Arc<Desk>,
    ask: fn(&Root, &str) -> Answer,
    text: Vec<u8>,
}

impl Drop for Mounts {
    fn drop(&mut self) {
        self.desk.lock().ends = true;
        self.desk.changed.notify_all();
    }
}

impl Mounts {
    /// Creates the table, without queries yet.
    pub fn new() -> Mounts {
        let ask = |root: &Root, point: &str| {
            let point = unescaped(point.as_bytes());
            space::of(root, &String::from_utf8_lossy(&point)).map_err(errno_of)
        };
        Mounts::with(ask)
    }

    fn with(ask: fn(&Root, &str) -> Answer) -> Mounts {
        Mounts {
            track: TrackWriter::new(Grammar::Counts),
            mounts: Vec::new(),
            desk: Arc::new(Desk {
                shared: Mutex::new(Shared::default()),
                changed: Condvar::new(),
            }),
            ask,
            text: Vec::new(),
        }
    }

    /// Number of mounts that are queried.
    pub fn count(&self) -> usize {
        self.mounts.iter().flatten().count()
    }

    /// Length of the last text, in bytes.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Takes a sample; returns its cost and its section.
    pub fn sample(
        &mut self,
        root: &Arc<Root>,
        clock: &dyn Clock,
        due: bool,
        key: bool,
    ) -> (u64, &[u8]) {
        let start_ns = clock.mono_ns();
        self.track.begin(key);
        if due {
            self.list(root);
            self.ask_all(root, start_ns);
        }
        for slot in 0..self.mounts.len() {
            let Some(mount) = &self.mounts[slot] else {
                continue;
            };
            let answer = self.desk.lock().answers.remove(&mount.point);
            match answer.filter(|_| due) {
                None if due => self.track.unread(slot, Why::Slow),
                None => self.track.unread(slot, Why::NotDue),
                Some(Err(errno)) => self.track.failed(slot, errno),
                Some(Ok(space)) => {
                    put(&mut self.text, &space, &mount.what);
                    self.track.read(slot, &self.text);
                }
            }
        }
        let cost_ns = if due { clock.mono_ns() - start_ns } else { 0 };
        (cost_ns, self.track.end())
    }

    /// Reads the mount table and updates the slots.
    fn list(&mut self, root: &Root) {
        let mut text = Vec::new();
        let read = root
            .read("proc/1/mountinfo", &mut text)
            .or_else(|_| root.read("proc/self/mountinfo", &mut text));
        if read.is_err() {
            return;
        }
        let there = read_mountinfo(&text);
        let mut are_known = vec![false; there.len()];
        for slot in 0..self.mounts.len() {
            let Some(mount) = &self.mounts[slot] else {
                continue;
            };
            match there.binary_search(mount) {
                Ok(at) => are_known[at] = true,
                Err(_) => {
                    self.mounts[slot] = None;
                    self.track.gone(slot);
                }
            }
        }
        let new = there.into_iter().zip(are_known);
        let mut slot = 0;
        for (mount, _) in new.filter(|(_, is_known)| !is_known) {
            while self.mounts.get(slot).is_some_and(Option::is_some) {
                slot += 1;
            }
            if slot == self.mounts.len() {
                self.mounts.push(None);
            }
            self.track.add(slot, mount.point.as_bytes());
            self.mounts[slot] = Some(mount);
        }
    }

    /// Queues a query for each mount, and waits a little for the answers.
    fn ask_all(&mut self, root: &Arc<Root>, now_ns: u64) {
        let mut shared = self.desk.lock();
        shared.now_ns = now_ns;
        // A late answer of the last scan stays, for use if the mount is late again.
        shared.queue.clear();
        for mount in self.mounts.iter().flatten() {
            // A mount that has not answered yet gets no second query.
            if !shared.queries.contains_key(&mount.point) {
                shared.queue.push_back(mount.point.clone());
            }
        }
        for query in shared.queries.values_mut() {
            query.hangs |= now_ns.saturating_sub(query.since_ns) >= HANGS_AFTER_NS;
        }
        shared.hanging = shared.queries.values().filter(|query| query.hangs).count();
        let may_start = shared.threads <= shared.hanging && shared.hanging < HANGING_MAX;
        if may_start && !shared.queue.is_empty() {
            shared.threads += 1;
            drop(shared);
            self.start(root);
            shared = self.desk.lock();
        }
        self.desk.changed.notify_all();
        // The sampler does not wait for hanging mounts.
        let open = |shared: &mut Shared| {
            let is_open = shared.queries.len() + shared.queue.len() > shared.hanging;
            is_open && shared.threads > shared.hanging
        };
        // Later answers are used by the next sample.
        let _late = self.desk.changed.wait_timeout_while(shared, PATIENCE, open);
    }

    fn start(&self, root: &Arc<Root>) {
        let (desk, root, ask) = (self.desk.clone(), root.clone(), self.ask);
        let thread = std::thread::Builder::new().name("kymo mounts".into());
        let started = thread
            .stack_size(64 << 10)
            .spawn(move || work(&desk, &root, ask));
        if started.is_err() {
            self.desk.lock().threads -= 1;
        }
    }
}

impl Default for Mounts {
    fn default() -> Mounts {
        Mounts::new()
    }
}

/// Queries one mount after the other. A thread that was left to its mount ends when the mount answers.
fn work(desk: &Desk, root: &Root, ask: fn(&Root, &str) -> Answer) {
    let mut shared = desk.lock();
    loop {
        if shared.ends {
            break;
        }
        let Some(point) = shared.queue.pop_front() else {
            shared = desk
                .changed
                .wait(shared)
                .unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let since_ns = shared.now_ns;
        let hangs = false;
        shared
            .queries
            .insert(point.clone(), PendingQuery { since_ns, hangs });
        drop(shared);
        let answer = ask(root, &point);
        shared = desk.lock();
        let query = shared.queries.remove(&point);
        shared.answers.insert(point, answer);
        desk.changed.notify_all();
        if query.is_some_and(|query| query.hangs) {
            break;
        }
    }
    shared.threads -= 1;
}

/// Formats a text: `space FRSIZE BLOCKS FREE AVAILABLE FILES FREE_FILES READ_ONLY`, then the type and source.
fn put(out: &mut Vec<u8>, space: &Space, what: &str) {
    out.clear();
    out.extend_from_slice(b"space");
    for number in [
        space.unit,
        space.blocks,
        space.free,
        space.available,
        space.files,
        space.free_files,
        u64::from(space.is_read_only),
    ] {
        out.push(b' ');
        scan::put_number(out, number, 0, b' ');
    }
    out.extend_from_slice(b"\ntype ");
    out.extend_from_slice(what.as_bytes());
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn mounts_with_room() {
        let text = b"22 28 0:20 / /proc rw,nosuid - proc proc rw\n28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n40 28 0:35 / /net rw - autofs auto.net rw,fd=6\n41 28 0:36 / /mnt/with\\040blank rw - nfs4 10.0.0.1:/export rw\n42 28 0:40 / /data rw - ext4 /dev/vdb rw\n43 42 0:41 / /data rw - xfs /dev/vdc rw\n44 28 0:42 / /boot rw - ext4 /dev/vdd rw\n45 44 0:43 / /boot rw - autofs systemd-1 rw\ncut 1 2\n";
        let mounts: Vec<_> = read_mountinfo(text)
            .into_iter()
            .map(|mount| format!("{} {}", mount.point, mount.what))
            .collect();
        // The mount of autofs hides the one on /boot.
        assert_eq!(
            mounts,
            [
                "/ ext4 /dev/vda1",
                "/data xfs /dev/vdc",
                "/mnt/with\\040blank nfs4 10.0.0.1:/export"
            ]
        );
    }

    const SPACE: Space = Space {
        unit: 4096,
        blocks: 100,
        free: 50,
        available: 40,
        files: 10,
        free_files: 5,
        is_read_only: false,
    };

    /// The mounts named `/stuck` hang for half a minute.
    fn answer(_: &Root, point: &str) -> Answer {
        if point.starts_with("/stuck") {
            std::thread::sleep(Duration::from_secs(30));
        }
        Ok(SPACE)
    }

    fn with_mounts(points: &[String]) -> Mounts {
        let mut mounts = Mounts::with(answer);
        for (slot, point) in points.iter().enumerate() {
            mounts.track.add(slot, point.as_bytes());
            mounts.mounts.push(Some(Mount {
                point: point.clone(),
                what: "ext4 x".into(),
            }));
        }
        mounts
    }

    /// Mounts that answer are read, at once or when the thread before them is known to hang.
    #[test]
    fn one_that_hangs_holds_up_no_other() {
        let root = Arc::new(Root::open(Path::new("/")).expect("a root"));
        let mut mounts = with_mounts(&["/a".into(), "/stuck".into(), "/z".into()]);
        mounts.ask_all(&root, 1);
        until(&mounts, |shared| shared.queries.contains_key("/stuck"));
        assert!(mounts.desk.lock().answers.contains_key("/a"));
        mounts.ask_all(&root, HANGS_AFTER_NS);
        assert!(!mounts.desk.lock().answers.contains_key("/z"));
        mounts.ask_all(&root, HANGS_AFTER_NS + 1);
        until(&mounts, |shared| shared.answers.contains_key("/z"));
        let shared = mounts.desk.lock();
        assert_eq!(shared.answers.keys().collect::<Vec<_>>(), ["/a", "/z"]);
        assert_eq!((shared.hanging, shared.threads), (1, 2));
    }

    fn until(mounts: &Mounts, holds: impl Fn(&Shared) -> bool) {
        while !holds(&mounts.desk.lock()) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn threads_that_hang_are_eight_at_most() {
        let root = Arc::new(Root::open(Path::new("/")).expect("a root"));
        let points: Vec<String> = (0..20).map(|n| format!("/stuck{n:02}")).collect();
        let mut mounts = with_mounts(&points);
        for round in 1..HANGING_MAX + 4 {
            mounts.ask_all(&root, round as u64 * 2 * HANGS_AFTER_NS);
            until(&mounts, |shared| {
                shared.queries.len() == round.min(HANGING_MAX)
            });
        }
        let shared = mounts.desk.lock();
        assert_eq!(
            (shared.threads, shared.queries.len()),
            (HANGING_MAX, HANGING_MAX)
        );
        assert!(shared.answers.is_empty());
    }
}
