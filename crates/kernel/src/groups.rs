//! Control groups: finds them, keeps their files open, and reads each into one text. Groups come and go: the search repeats
//! as often as is cheap, and a group that ends before its read has no row.

use std::collections::{BTreeMap, HashMap};

use kymo_base::limits;
use kymo_base::template::Grammar;
use kymo_base::track::Why;
use kymo_base::track_writer::TrackWriter;
use kymo_base::{cost, scan};
use kymo_sys::clock::Clock;
use kymo_sys::kernel_file::{Errno, Folder, KernelFile, Root};

use crate::backoff::Backoff;
use crate::facts::{self, Layer};
use crate::group_names::GroupNames;
use crate::hierarchies::{self, Controller, Found, Hierarchy, MountPoint, Seen};
use crate::identity::Lane;
use crate::tasks::Budget;

/// The part of a file that is recorded: only numbers, and a limit, so that texts contain no names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Keep {
    /// The number that is the whole file.
    Number,
    /// A number, or none if there is no limit: version 2 then has `max`, version 1 [`NO_LIMIT`] or more.
    Limit,
    /// The numbers of the lines `KEY NUMBER` with these keys.
    Keys(&'static [&'static str]),
    /// The sums of these keys in lines `DEVICE KEY=NUMBER ...` or `DEVICE KEY NUMBER`, over all
    /// devices of the file that lie on no other of them.
    Sums(&'static [&'static str]),
    /// The totals of a pressure file.
    Stalls,
}

/// A file of a group.
#[derive(Debug)]
struct GroupFile {
    of: Controller,
    name: &'static str,
    /// A file that is read instead if it exists: in version 1, the sums that include the groups below.
    rather: Option<&'static str>,
    keep: Keep,
    /// True: a group at rest has the same text in this file as before.
    tells_rest: bool,
}

/// A file that changes once a group works, grows or waits.
const fn telling(of: Controller, name: &'static str, keep: Keep) -> GroupFile {
    GroupFile {
        tells_rest: true,
        ..part(of, name, keep)
    }
}

const fn part(of: Controller, name: &'static str, keep: Keep) -> GroupFile {
    GroupFile {
        of,
        name,
        rather: None,
        keep,
        tells_rest: false,
    }
}

/// Limit of version 1 from which on there is none; the kernel's own value is rounded to pages.
const NO_LIMIT: u64 = 1 << 62;
const IO_KEYS: &[&str] = &["rbytes", "wbytes", "rios", "wios"];
const BLKIO_KEYS: &[&str] = &["Read", "Write"];

/// All files of a group, in the order of its text.
const PARTS: &[GroupFile] = &[
    telling(
        Controller::Unified,
        "cpu.stat",
        Keep::Keys(&[
            "usage_usec",
            "user_usec",
            "system_usec",
            "nr_periods",
            "nr_throttled",
            "throttled_usec",
        ]),
    ),
    telling(Controller::Unified, "memory.current", Keep::Number),
    part(Controller::Unified, "memory.max", Keep::Limit),
    part(Controller::Unified, "memory.swap.current", Keep::Number),
    part(
        Controller::Unified,
        "memory.stat",
        Keep::Keys(&[
            "anon",
            "file",
            "kernel",
            "shmem",
            "file_dirty",
            "pgfault",
            "pgmajfault",
        ]),
    ),
    part(
        Controller::Unified,
        "memory.events",
        Keep::Keys(&["low", "high", "max", "oom", "oom_kill"]),
    ),
    part(Controller::Unified, "io.stat", Keep::Sums(IO_KEYS)),
    part(Controller::Unified, "cpu.pressure", Keep::Stalls),
    part(Controller::Unified, "memory.pressure", Keep::Stalls),
    telling(Controller::Unified, "io.pressure", Keep::Stalls),
    telling(Controller::Unified, "pids.current", Keep::Number),
    part(Controller::Unified, "pids.max", Keep::Limit),
    part(
        Controller::Cpu,
        "cpu.stat",
        Keep::Keys(&["nr_periods", "nr_throttled", "throttled_time"]),
    ),
    telling(Controller::Cpuacct, "cpuacct.usage", Keep::Number),
    part(
        Controller::Cpuacct,
        "cpuacct.stat",
        Keep::Keys(&["user", "system"]),
    ),
    telling(Controller::Memory, "memory.usage_in_bytes", Keep::Number),
    part(Controller::Memory, "memory.limit_in_bytes", Keep::Limit),
    part(Controller::Memory, "memory.failcnt", Keep::Number),
    part(
        Controller::Memory,
        "memory.stat",
        Keep::Keys(&[
            "total_cache",
            "total_rss",
            "total_shmem",
            "total_dirty",
            "total_swap",
            "total_pgfault",
            "total_pgmajfault",
        ]),
    ),
    part(
        Controller::Memory,
        "memory.oom_control",
        Keep::Keys(&["oom_kill"]),
    ),
    GroupFile {
        rather: Some("blkio.throttle.io_service_bytes_recursive"),
        ..part(
            Controller::Blkio,
            "blkio.throttle.io_service_bytes",
            Keep::Sums(BLKIO_KEYS),
        )
    },
    GroupFile {
        rather: Some("blkio.throttle.io_serviced_recursive"),
        ..part(
            Controller::Blkio,
            "blkio.throttle.io_serviced",
            Keep::Sums(BLKIO_KEYS),
        )
    },
    telling(Controller::Pids, "pids.current", Keep::Number),
    part(Controller::Pids, "pids.max", Keep::Limit),
];

/// State of a file of a group.
enum Open {
    /// Not tried yet, or not kept open: opened for each read.
    Closed,
    Kept(KernelFile),
    /// The file is missing; the next attempt is after [`AGAIN_NS`].
    Absent,
}

/// One group.
struct Group {
    seen: Seen,
    /// Position in the tree, as a word; see [`level`].
    level: &'static str,
    /// One entry for each of [`PARTS`].
    files: Vec<Open>,
    /// Time of the last attempt to open missing files.
    tried_ns: u64,
    walk: u64,
    /// Head and telling files at the last read of all files; empty if the group's CPU time was not among them.
    rest: Vec<u8>,
    /// Time of that read.
    read_ns: u64,
}

/// Time between two searches for hierarchies and for missing files.
const AGAIN_NS: u64 = 60_000_000_000;
/// Shortest time between two walks for groups.
const WALK_NS_MIN: u64 = 1_000_000_000;
/// The pause after a walk is this many times as long as the walk.
const WALK_SHARE: u64 = 500;

/// Longest time for which a group at rest is not read: memory may move from one kind to another.
const REST_NS: u64 = 60_000_000_000;

/// Reads the control groups of a machine.
pub struct Groups {
    places: Vec<MountPoint>,
    hierarchies: Vec<Hierarchy>,
    placed_ns: Option<u64>,
    layers: BTreeMap<u64, Layer>,
    /// A group named a device that `layers` lacks.
    has_new_device: bool,
    /// The groups, by slot of the track.
    groups: Vec<Option<Group>>,
    slots: HashMap<Vec<u8>, usize>,
    walks: u64,
    next_walk_ns: u64,
    track: TrackWriter,
    names: GroupNames,
    /// Backoff of all groups together.
    pub(crate) backoff: Backoff,
    /// True if the last sample has the groups.
    pub(crate) is_read: bool,
    pub(crate) cost_ns: u64,
    /// State of the notice that there are more groups than the sampler reads.
    left_out: LeftOut,
    /// Most groups that are read.
    groups_max: usize,
    kept: u64,
    kept_max: u64,
    text: Vec<u8>,
    raw: Vec<u8>,
}

/// Notice about groups above the limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeftOut {
    None,
    Unsaid,
    Reported,
}

impl Groups {
    /// Creates a reader without any groups yet, which may keep `kept_max` files open and reads `groups_max` groups; 0: as many
    /// as [`limits::CGROUPS_MAX`].
    pub fn new(kept_max: u64, groups_max: usize) -> Groups {
        Groups {
            places: Vec::new(),
            hierarchies: Vec::new(),
            placed_ns: None,
            layers: BTreeMap::new(),
            has_new_device: false,
            groups: Vec::new(),
            slots: HashMap::new(),
            walks: 0,
            next_walk_ns: 0,
            track: TrackWriter::new(Grammar::Plain),
            names: GroupNames::default(),
            backoff: Backoff::default(),
            is_read: false,
            cost_ns: 0,
            left_out: LeftOut::None,
            groups_max: match groups_max {
                0 => limits::CGROUPS_MAX,
                max => max.min(limits::CGROUPS_MAX),
            },
            kept: 0,
            kept_max,
            text: Vec::with_capacity(4096),
            raw: Vec::with_capacity(RAW_ROOM),
        }
    }

    /// Begins a sample.
    pub fn begin(&mut self, key: bool) {
        self.track.begin(key);
        self.names.begin(key);
        self.cost_ns = 0;
        self.is_read = false;
    }

    /// Takes a sample, without reading the groups if they are not due; returns its cost, as one byte, and its section.
    pub fn sample(
        &mut self,
        root: &Root,
        clock: &dyn Clock,
        is_due: bool,
        budget: &mut Budget,
    ) -> (u8, &[u8]) {
        self.is_read = is_due && self.backoff.is_due();
        if !self.is_read {
            let why = if is_due { Why::Slow } else { Why::NotDue };
            for slot in (0..self.groups.len()).filter(|&slot| self.groups[slot].is_some()) {
                self.track.unread(slot, why);
            }
            return (0, self.track.end());
        }
        let start_ns = clock.mono_ns();
        self.look(root, clock, budget);
        for slot in 0..self.groups.len() {
            if self.rests(slot, start_ns) && self.track.same(slot) {
                continue;
            }
            match self.read(root, slot, start_ns, budget) {
                Some(true) => {
                    self.track.read(slot, &self.text);
                }
                Some(false) => self.remove(slot, budget),
                None => {}
            }
        }
        self.cost_ns = clock.mono_ns() - start_ns;
        (cost::encode(self.cost_ns), self.track.end())
    }

    /// Exchanges questions and answers about names with the slow lane; returns the section of the names, if it has news.
    pub fn identify(&mut self, lane: &Lane, key: bool, now_ns: u64) -> Option<&[u8]> {
        self.names.identify(lane, key, now_ns)
    }

    /// Reads all groups a second time, only to measure the cost.
    pub fn read_again(&mut self, root: &Root, now_ns: u64, budget: &mut Budget) {
        for slot in 0..self.groups.len() {
            let _ = self.read(root, slot, now_ns, budget);
        }
    }

    /// Returns the limit of groups once each time their number exceeds it.
    pub fn take_left_out(&mut self) -> Option<usize> {
        let is_new = self.left_out == LeftOut::Unsaid;
        if is_new {
            self.left_out = LeftOut::Reported;
        }
        is_new.then_some(self.groups_max)
    }

    /// Number of files kept open.
    pub fn kept(&self) -> usize {
        usize::try_from(self.kept).unwrap_or(usize::MAX)
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if there are no groups.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Length of the last text, in bytes.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Searches for groups if due: for hierarchies once a minute, for groups as often as is cheap.
    pub fn look(&mut self, root: &Root, clock: &dyn Clock, budget: &mut Budget) {
        let now_ns = clock.mono_ns();
        if now_ns < self.next_walk_ns {
            return;
        }
        let is_due = |placed: u64| now_ns.saturating_sub(placed) >= AGAIN_NS;
        if self.placed_ns.is_none_or(is_due) {
            self.placed_ns = Some(now_ns);
            self.place(root, budget);
            self.layers = facts::layers(root);
        } else if std::mem::take(&mut self.has_new_device) {
            self.layers = facts::layers(root);
        }
        let found = hierarchies::walk(&self.hierarchies, self.groups_max);
        self.take_in(found, now_ns, budget);
        let end_ns = clock.mono_ns();
        let pause_ns = (end_ns - now_ns)
            .saturating_mul(WALK_SHARE)
            .clamp(WALK_NS_MIN, AGAIN_NS);
        // Half of the shortest pause is slack, since a beat may be a little late or early.
        self.next_walk_ns = now_ns + pause_ns - WALK_NS_MIN / 2;
    }

    /// Opens the hierarchies; if they have changed, all groups are new.
    fn place(&mut self, root: &Root, budget: &mut Budget) {
        let places = hierarchies::places(root);
        if places == self.places {
            return;
        }
        for slot in 0..self.groups.len() {
            self.remove(slot, budget);
        }
        let open = |place| Hierarchy::open(root, place);
        self.hierarchies = places.iter().filter_map(open).collect();
        self.places = places;
    }

    fn take_in(&mut self, found: Found, now_ns: u64, budget: &mut Budget) {
        self.left_out = match (found.is_cut, self.left_out) {
            (false, _) => LeftOut::None,
            (true, LeftOut::None) => LeftOut::Unsaid,
            (true, state) => state,
        };
        self.walks += 1;
        let is_alone = found.groups.len() == 1;
        let mut new = Vec::new();
        for seen in found.groups {
            let known = self.slots.get(&seen.path).copied();
            match known.and_then(|slot| self.groups[slot].as_mut()) {
                Some(group) if group.is_same(&seen) => {
                    group.walk = self.walks;
                    group.level = level(&seen.path, is_alone);
                    group.seen = seen;
                    if now_ns.saturating_sub(group.tried_ns) >= AGAIN_NS {
                        group.try_again(now_ns);
                    }
                }
                _ => new.push(seen),
            }
        }
        // Groups that are gone or replaced leave before new groups come.
        for slot in 0..self.groups.len() {
            let group = self.groups[slot].as_ref();
            if group.is_some_and(|group| group.walk != self.walks) {
                self.remove(slot, budget);
            }
        }
        let mut free = 0;
        for seen in new {
            while self.groups.get(free).is_some_and(Option::is_some) {
                free += 1;
            }
            if free == self.groups.len() {
                self.groups.push(None);
            }
            self.track.add(free, &seen.path);
            self.names.add(free, &seen.path);
            self.slots.insert(seen.path.clone(), free);
            self.groups[free] = Some(Group {
                level: level(&seen.path, is_alone),
                seen,
                files: PARTS.iter().map(|_| Open::Closed).collect(),
                tried_ns: now_ns,
                walk: self.walks,
                rest: Vec::new(),
                read_ns: 0,
            });
        }
    }

    fn remove(&mut self, slot: usize, budget: &mut Budget) {
        let Some(group) = self.groups[slot].take() else {
            return;
        };
        let is_kept = |file: &&Open| matches!(file, Open::Kept(_));
        let kept: u64 = group.files.iter().filter(is_kept).map(|_| 1).sum();
        self.kept -= kept;
        budget.left += kept;
        self.slots.remove(&group.seen.path);
        self.track.gone(slot);
        self.names.gone(slot);
    }

    /// Replaces the text by the text of the group in `slot`; `None` if there is no group, `false` if it has no files left.
    pub fn read(
        &mut self,
        root: &Root,
        slot: usize,
        now_ns: u64,
        budget: &mut Budget,
    ) -> Option<bool> {
        let group = self.groups.get_mut(slot)?.as_mut()?;
        self.text.clear();
        group.put_head(&mut self.text);
        let head = self.text.len();
        group.rest.clear();
        group.rest.extend_from_slice(&self.text);
        group.read_ns = now_ns;
        let mut has_time = false;
        for (at, hierarchy) in self.hierarchies.iter().enumerate() {
            if group.seen.hierarchies & (1 << at) == 0 {
                continue;
            }
            let mut way = Way {
                hierarchy,
                path: &group.seen.path,
                folder: None,
            };
            for (part, open) in PARTS.iter().zip(&mut group.files) {
                if !hierarchy.controllers.contains(&part.of) {
                    continue;
                }
                let was_kept = matches!(open, Open::Kept(_));
                let may_keep = root.keeps_files() && self.kept < self.kept_max && budget.left > 0;
                let read = open.read(part, &mut way, may_keep, &mut self.raw);
                match (was_kept, matches!(open, Open::Kept(_))) {
                    (false, true) => (self.kept, budget.left) = (self.kept + 1, budget.left - 1),
                    (true, false) => (self.kept, budget.left) = (self.kept - 1, budget.left + 1),
                    _ => {}
                }
                match read {
                    true => {
                        self.has_new_device |= part.put(&self.raw, &self.layers, &mut self.text);
                        if part.tells_rest {
                            group.rest.extend_from_slice(&self.raw);
                            has_time |= part.name.starts_with("cpu");
                        }
                    }
                    false if was_kept => group.tried_ns = now_ns,
                    false => {}
                }
            }
        }
        if !has_time {
            group.rest.clear();
        }
        Some(self.text.len() > head)
    }

    /// Returns true if a group's telling files, as far as they are kept open, have the same texts as at the last read of all
    /// files, [`REST_NS`] ago at most.
    fn rests(&mut self, slot: usize, now_ns: u64) -> bool {
        let Some(Some(group)) = self.groups.get(slot) else {
            return false;
        };
        if group.rest.is_empty() || now_ns.saturating_sub(group.read_ns) >= REST_NS {
            return false;
        }
        self.text.clear();
        group.put_head(&mut self.text);
        for (_, open) in PARTS
            .iter()
            .zip(&group.files)
            .filter(|(part, _)| part.tells_rest)
        {
            if let Open::Kept(file) = open {
                self.raw.clear();
                if read_file(file, &mut self.raw).is_err() {
                    return false;
                }
                self.text.extend_from_slice(&self.raw);
            }
        }
        self.text == group.rest
    }
}

impl Group {
    /// Returns true if the group is the one seen in the last walk, in the same hierarchies.
    fn is_same(&self, seen: &Seen) -> bool {
        self.seen.inode == seen.inode && self.seen.hierarchies == seen.hierarchies
    }

    /// Appends the first line of the group's text.
    fn put_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"group ");
        out.extend_from_slice(self.level.as_bytes());
        for number in [self.seen.groups, self.seen.inode] {
            out.push(b' ');
            scan::put_number(out, number, 0, b' ');
        }
        out.push(b'\n');
    }

    /// Tries missing files again, since controllers can be enabled at any time.
    fn try_again(&mut self, now_ns: u64) {
        self.tried_ns = now_ns;
        for file in &mut self.files {
            if matches!(file, Open::Absent) {
                *file = Open::Closed;
            }
        }
    }
}

/// Position of a group in the tree: the groups directly below the root count in the sum, or the root if it has none below.
fn level(path: &[u8], is_alone: bool) -> &'static str {
    match (path, is_alone) {
        (b"/", true) => "alone",
        (b"/", false) => "root",
        (path, _) if path[1..].contains(&b'/') => "below",
        _ => "top",
    }
}

/// Buffer size for a file, which the kernel returns in one read.
const RAW_ROOM: usize = 16 << 10;

/// Access to the files of a group in one hierarchy.
struct Way<'a> {
    hierarchy: &'a Hierarchy,
    path: &'a [u8],
    /// The group's folder, opened at its first use; the inner `None` means that the folder is gone.
    folder: Option<Option<Folder>>,
}

impl Way<'_> {
    fn open(&mut self, part: &GroupFile) -> Result<KernelFile, Errno> {
        let find = || self.hierarchy.top.below(self.path).ok();
        let folder = self.folder.get_or_insert_with(find).as_ref();
        let folder = folder.ok_or(Errno::NOENT)?;
        let rather = part.rather.ok_or(Errno::NOENT);
        let opened = rather.and_then(|name| folder.file(name));
        opened.or_else(|_| folder.file(part.name))
    }
}

impl Open {
    /// Replaces `out` by the file's text; returns true if it could be read.
    fn read(&mut self, part: &GroupFile, way: &mut Way, may_keep: bool, out: &mut Vec<u8>) -> bool {
        out.clear();
        let read = match self {
            Open::Absent => return false,
            Open::Kept(file) => read_file(file, out),
            Open::Closed => way.open(part).and_then(|file| {
                read_file(&file, out)?;
                if may_keep {
                    *self = Open::Kept(file);
                }
                Ok(())
            }),
        };
        if read.is_err() {
            *self = Open::Absent;
        }
        read.is_ok()
    }
}

fn read_file(file: &KernelFile, out: &mut Vec<u8>) -> Result<(), Errno> {
    out.reserve(RAW_ROOM);
    if file.pread(out, 0)? >= RAW_ROOM {
        out.clear();
        file.read_on(out, limits::TEXT_MAX)?;
    }
    Ok(())
}

impl GroupFile {
    /// Appends the kept part of the file as one line, such as `memory.stat anon 1 file 2`, or nothing if the file lacks that
    /// part. Returns true if the file names a device that `layers` lacks.
    fn put(&self, raw: &[u8], layers: &BTreeMap<u64, Layer>, out: &mut Vec<u8>) -> bool {
        let mut has_new_device = false;
        let start = out.len();
        out.extend_from_slice(self.name.as_bytes());
        let head = out.len();
        match self.keep {
            Keep::Number | Keep::Limit => {
                let number = scan::number(raw.trim_ascii());
                let value = number.filter(|&number| self.keep == Keep::Number || number < NO_LIMIT);
                if let Some(number) = value {
                    put_value(out, "", number);
                }
            }
            Keep::Keys(keys) => put_keys(raw, keys, out),
            Keep::Sums(keys) => has_new_device = put_sums(raw, keys, layers, out),
            Keep::Stalls => put_stalls(raw, out),
        }
        match out.len() > head {
            true => out.push(b'\n'),
            false => out.truncate(start),
        }
        has_new_device
    }
}

fn put_value(out: &mut Vec<u8>, key: &str, number: u64) {
    out.push(b' ');
    if !key.is_empty() {
        out.extend_from_slice(key.as_bytes());
        out.push(b' ');
    }
    scan::put_number(out, number, 0, b' ');
}

fn put_keys(raw: &[u8], keys: &[&str], out: &mut Vec<u8>) {
    for line in scan::lines(raw) {
        let mut words = scan::words(line);
        let (Some(key), Some(number)) = (words.next(), words.next().and_then(scan::number)) else {
            continue;
        };
        if let Some(key) = keys.iter().find(|known| known.as_bytes() == key) {
            put_value(out, key, number);
        }
    }
}

/// Limit of the number of sums of a file.
const SUMS_MAX: usize = 4;

/// Appends the sums of lines such as `8:0 rbytes=1 wbytes=2 rios=3` or `8:0 Read 1`. An idle device has no line, or only its
/// number without an end of line; its numbers are 0. The I/O of a device on top of others is also listed for those, and
/// counted there. Returns true if the file names a device that `layers` lacks.
fn put_sums(raw: &[u8], keys: &[&str], layers: &BTreeMap<u64, Layer>, out: &mut Vec<u8>) -> bool {
    let mut sums = [0u64; SUMS_MAX];
    let mut has_new_device = false;
    for line in scan::lines(raw) {
        let mut words = scan::words(line).peekable();
        let mut last = None;
        while let Some(number) = words.peek().and_then(|word| facts::device(word)) {
            last = Some(number);
            words.next();
        }
        let layer = last.and_then(|number| layers.get(&number));
        has_new_device |= last.is_some() && layer.is_none();
        let counts = match layer {
            None | Some(Layer::Lowest) => true,
            Some(Layer::Never) => false,
            Some(Layer::On(below)) => !is_said_of(raw, below),
        };
        while let Some(word) = words.next().filter(|_| counts) {
            for (key, sum) in keys.iter().zip(&mut sums) {
                let number = match word.strip_prefix(key.as_bytes()) {
                    Some([]) => words.peek().copied(),
                    Some([b'=', number @ ..]) => Some(number),
                    _ => None,
                };
                *sum = sum.saturating_add(number.and_then(scan::number).unwrap_or(0));
            }
        }
    }
    for (key, sum) in keys.iter().zip(sums) {
        put_value(out, key, sum);
    }
    has_new_device
}

/// Returns true if a line with numbers belongs to one of the devices.
fn is_said_of(raw: &[u8], devices: &[u64]) -> bool {
    scan::lines(raw).any(|line| {
        let mut words = scan::words(line).skip_while(|word| facts::device(word).is_none());
        let mut device = None;
        for word in words.by_ref() {
            match facts::device(word) {
                Some(number) => device = Some(number),
                None => return device.is_some_and(|device| devices.contains(&device)),
            }
        }
        false
    })
}

/// Appends the totals of lines such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=1`.
fn put_stalls(raw: &[u8], out: &mut Vec<u8>) {
    for line in scan::lines(raw) {
        let mut words = scan::words(line);
        let key = match words.next() {
            Some(b"some") => "some",
            Some(b"full") => "full",
            _ => continue,
        };
        let total = words.find_map(|word| word.strip_prefix(b"total="));
        if let Some(total) = total.and_then(scan::number) {
            put_value(out, key, total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_right_below_the_root_count_or_the_root_alone() {
        for (path, is_alone, found) in [
            ("/", true, "alone"),
            ("/", false, "root"),
            ("/a", true, "top"),
            ("/a", false, "top"),
            ("/a.slice/b.service", false, "below"),
            ("/a/b/c", false, "below"),
        ] {
            assert_eq!(level(path.as_bytes(), is_alone), found, "{path} {is_alone}");
        }
    }
}
