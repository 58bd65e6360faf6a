//! The sampler decides for each sample which sources are due, reads them, and writes each
//! text into the section of its track. After warm-up it allocates no memory for a known
//! text, and reads only the kernel's own files. Threads, beat and disk belong to the recorder.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kymo_base::cost;
use kymo_base::template::Template;
use kymo_base::track::Why;
use kymo_base::track_writer::{Buffers, TrackWriter};
use kymo_sys::clock::Clock;
use kymo_sys::kernel_file::Root;

use crate::activity::Activity;
use crate::backoff::{Allowance, Backoff, SlowRead, SlowReads};
use crate::choice::Choice;
use crate::facts;
use crate::groups::Groups;
use crate::identity::Lane;
use crate::listing;
use crate::mounts::Mounts;
use crate::mountstats::Mountstats;
use crate::reader::Reader;
use crate::source::{self, Pace, Scope, kind};
use crate::task_tables::TaskTables;
use crate::tasks::{Budget, ProcTasks, Scan, TaskPlan};

pub use crate::task_tables::Due;

/// Sources and processes to record, and their limits.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Kinds of sources of the whole machine.
    pub kinds: Vec<u8>,
    /// Parts of processes to read; `None` reads no processes.
    pub tasks: Option<TaskPlan>,
    /// Choice of the processes; `None` reads all.
    pub choice: Option<Choice>,
    /// A read that takes longer is slow, and an event.
    pub slow_ns: u64,
    /// The sampling interval; 0 means without pause.
    pub interval_ns: u64,
    /// The interval of process scans.
    pub scan_interval_ns: u64,
    /// The interval of control groups; 0: they are read at each sample.
    pub group_interval_ns: u64,
    /// Most control groups that are read; 0: [`kymo_base::limits::CGROUPS_MAX`].
    pub groups_max: usize,
    /// The interval of the space of file systems; 0: they are asked at each scan of processes.
    pub space_interval_ns: u64,
    /// True: the sampler reads slow sources less often.
    pub backoff: bool,
    /// The pipe with the keeper's samples of publishing programs; see [`kymo_base::activity`].
    pub activity: Option<Arc<OwnedFd>>,
    /// Control groups are not read while this is true: they are not shown.
    pub groups_rest: Arc<AtomicBool>,
}

/// The pace of a source with an interval of its own, in whole beats of the sampler. The first reads come at each beat: a rate
/// takes two, and a file system may answer after the first one.
struct OwnPace {
    interval_ns: u64,
    /// How early a beat may come.
    slack_ns: u64,
    last_ns: Option<u64>,
    /// Number of reads, up to [`FIRST_READS`].
    reads: u8,
}

/// Number of reads that do not wait for the interval.
const FIRST_READS: u8 = 3;

impl OwnPace {
    fn new(interval_ns: u64, beat_ns: u64) -> OwnPace {
        OwnPace {
            interval_ns: if beat_ns == 0 { 0 } else { interval_ns },
            slack_ns: beat_ns / 2,
            last_ns: None,
            reads: 0,
        }
    }

    /// Returns true if the source is read in this sample, and notes that.
    fn is_due(&mut self, clock: &dyn Clock) -> bool {
        if self.interval_ns == 0 {
            return true;
        }
        let now_ns = clock.mono_ns();
        let is_over = |last_ns: u64| {
            now_ns.saturating_sub(last_ns).saturating_add(self.slack_ns) >= self.interval_ns
        };
        let is_due = self.reads < FIRST_READS || self.last_ns.is_none_or(is_over);
        if is_due {
            self.last_ns = Some(now_ns);
            self.reads = FIRST_READS.min(self.reads + 1);
        }
        is_due
    }
}

struct MachineSource {
    source: &'static source::Source,
    /// Name and file of each instance, by slot of the track; `None` if it is gone.
    instances: Vec<Option<(String, Reader)>>,
    /// Time of the last listing of instances.
    listed_ns: Option<u64>,
    track: TrackWriter,
    /// The template of the last text; another template means that rows were added or removed.
    shape: Option<Arc<Template>>,
    cost_ns: u64,
    backoff: Backoff,
    read: bool,
    /// Reason if the source was not read.
    unread: Why,
    /// A source of [`Pace::Thrifty`] is not read before this time.
    rests_until_ns: u64,
}

/// Takes samples of the machine.
pub struct Sampler {
    root: Arc<Root>,
    plan: Plan,
    machine: Vec<MachineSource>,
    mounts: Option<Mounts>,
    mounts_pace: OwnPace,
    mountstats: Option<Mountstats>,
    groups: Option<Groups>,
    groups_pace: OwnPace,
    tasks: Option<TaskTables<ProcTasks>>,
    /// The slow lane of processes and groups, if either is read.
    lane: Option<Arc<Lane>>,
    activity: Option<Activity>,
    budget: Budget,
    samples: u64,
    slow: SlowReads,
    /// Buffers for the text of the last read, shared by all sources since at one sample a second their memory is cold anyway.
    buffers: Buffers,
}

/// Longest time between two reads of a slow source: a minute, or ten seconds for the CPU.
const STRIDE_NS_MAX: u64 = 60_000_000_000;
const STRIDE_NS_MAX_CPU: u64 = 10_000_000_000;
/// Time between two listings of a source's instances.
const LISTED_EVERY_NS: u64 = 60_000_000_000;
/// Duration that a sample counts as, for all ages, at an interval of 0.
pub const PAUSELESS_SAMPLE_NS: u64 = 10_000_000_000;

impl Sampler {
    /// Creates a sampler of `plan` that may keep `files` files open.
    pub fn new(root: Arc<Root>, plan: Plan, files: u64) -> Sampler {
        let net = facts::net_path(&root);
        let machine = plan.kinds.iter().filter_map(|&wanted| source::of(wanted));
        let machine: Vec<_> = machine
            .filter(|source| !matches!(source.scope, Scope::Mount | Scope::Cgroup))
            .filter(|source| source.kind != kind::TASK_STATES)
            .map(|source| MachineSource::new(source, &net))
            .collect();
        let has_groups = plan.kinds.contains(&kind::CGROUP);
        let lane = (plan.tasks.is_some() || has_groups).then(|| Arc::new(Lane::default()));
        let tables = plan.tasks.zip(lane.clone()).map(|(tasks, lane)| {
            let tables = TaskTables::new(ProcTasks::new(&root), tasks, plan.choice.clone(), lane);
            match plan.kinds.contains(&kind::TASK_STATES) {
                true => tables.with_states(),
                false => tables,
            }
        });
        Sampler {
            tasks: tables,
            lane,
            activity: plan.activity.clone().map(Activity::new),
            budget: Budget {
                left: files.saturating_sub(machine.len() as u64),
            },
            root,
            mounts: plan.kinds.contains(&kind::FILESYSTEM).then(Mounts::new),
            mounts_pace: OwnPace::new(plan.space_interval_ns, plan.interval_ns),
            mountstats: plan
                .kinds
                .contains(&kind::MOUNTSTATS)
                .then(Mountstats::default),
            // The other half is for the files of processes.
            groups: has_groups.then(|| Groups::new(files / 2, plan.groups_max)),
            groups_pace: OwnPace::new(plan.group_interval_ns, plan.interval_ns),
            plan,
            machine,
            samples: 0,
            slow: SlowReads::default(),
            buffers: Buffers::default(),
        }
    }

    /// The slow lane that another thread must serve, if processes or control groups are read.
    pub fn lane(&self) -> Option<Arc<Lane>> {
        self.lane.clone()
    }

    /// Takes a sample: reads the due sources, and calls `emit` with each kind, its cost as one byte, and its section.
    pub fn sample(
        &mut self,
        clock: &dyn Clock,
        key: bool,
        tasks: Due,
        mut emit: impl FnMut(u8, u8, &[u8]),
    ) {
        self.samples += 1;
        self.slow.begin(clock, key);
        for source in &mut self.machine {
            source.sample(&self.root, clock, (tasks, key), &mut self.buffers);
            emit(
                source.source.kind,
                cost::encode(source.cost_ns),
                source.track.end(),
            );
        }
        self.note_slow_machine(clock);
        if let Some(mounts) = &mut self.mounts {
            let is_due = tasks == Due::Now && self.mounts_pace.is_due(clock);
            if key || is_due {
                let (cost_ns, section) = mounts.sample(&self.root, clock, is_due, key);
                emit(kind::FILESYSTEM, cost::encode(cost_ns), section);
            }
        }
        if let Some(mountstats) = &mut self.mountstats
            && (key || tasks == Due::Now)
        {
            let (cost_ns, section) = mountstats.sample(&self.root, clock, tasks == Due::Now, key);
            emit(kind::MOUNTSTATS, cost::encode(cost_ns), section);
        }
        self.sample_groups(clock, key, &mut emit);
        self.sample_tasks(clock, key, tasks, &mut emit);
        if let Some(activity) = &mut self.activity {
            let start_ns = clock.mono_ns();
            if let Some(section) = activity.sample(start_ns, key) {
                let cost_ns = clock.mono_ns() - start_ns;
                emit(kind::ACTIVITY, cost::encode(cost_ns), section);
            }
        }
    }

    /// Returns true once after the pipe of [`Plan::activity`] brought malformed bytes.
    pub fn take_malformed_activity(&mut self) -> bool {
        let activity = self.activity.as_mut();
        activity.is_some_and(Activity::take_malformed)
    }

    /// Returns the limit of control groups once each time their number exceeds it.
    pub fn take_groups_left_out(&mut self) -> Option<usize> {
        self.groups.as_mut()?.take_left_out()
    }

    /// Removes and returns the files found slow in the last sample.
    pub fn take_slow(&mut self) -> std::vec::Drain<'_, SlowRead> {
        self.slow.found.drain(..)
    }

    /// Returns true if a disk or a NIC came or went since the last call.
    pub fn devices_changed(&mut self) -> bool {
        let mut changed = false;
        let listing = |source: &&mut MachineSource| {
            matches!(source.source.kind, kind::DISKSTATS | kind::NET_DEV)
        };
        for source in self.machine.iter_mut().filter(listing) {
            let shape = source.track.template(0);
            let same = match (shape, &source.shape) {
                (Some(now), Some(last)) => Arc::ptr_eq(now, last),
                (now, last) => now.is_none() && last.is_none(),
            };
            if !same {
                source.shape = shape.cloned();
                // The first text is no change, since the facts were read shortly before.
                changed |= self.samples > 1;
            }
        }
        changed
    }

    /// Number of processes with a file that the sampler may not read.
    pub fn forbidden(&self) -> usize {
        self.tasks.as_ref().map_or(0, TaskTables::forbidden)
    }

    /// Number of processes, of threads, and of files kept open.
    pub fn sizes(&self) -> (usize, usize, usize) {
        let tables = self.tasks.as_ref().map(TaskTables::sizes);
        let (processes, threads, kept) = tables.unwrap_or_default();
        let readers = self.machine.iter().flat_map(MachineSource::readers);
        let open = readers.filter(|reader| reader.is_open()).count();
        (
            processes,
            threads,
            kept + open + self.groups.as_ref().map_or(0, Groups::kept),
        )
    }

    /// Samples the control groups if they are due, and their names if there are new ones.
    fn sample_groups(
        &mut self,
        clock: &dyn Clock,
        key: bool,
        emit: &mut impl FnMut(u8, u8, &[u8]),
    ) {
        let Some(groups) = &mut self.groups else {
            return;
        };
        let is_due =
            !self.plan.groups_rest.load(Ordering::Relaxed) && self.groups_pace.is_due(clock);
        groups.begin(key);
        if key || is_due {
            let (cost, section) = groups.sample(&self.root, clock, is_due, &mut self.budget);
            emit(kind::CGROUP, cost, section);
        }
        if let Some(lane) = &self.lane
            && let Some(section) = groups.identify(lane, key, clock.mono_ns())
        {
            emit(kind::CGROUP_NAME, 0, section);
        }
        self.note_slow_groups(clock);
    }

    /// Reads slow control groups less often, like any other slow source.
    fn note_slow_groups(&mut self, clock: &dyn Clock) {
        let Some(groups) = self.groups.as_mut().filter(|groups| groups.is_read) else {
            return;
        };
        let first_ns = groups.cost_ns;
        if first_ns <= self.plan.slow_ns {
            return groups.backoff.quick();
        }
        let (root, budget) = (&self.root, &mut self.budget);
        let again = || groups.read_again(root, clock.mono_ns(), budget);
        let judged = self.slow.judge(clock, first_ns, again);
        let interval_ns = self.plan.interval_ns.max(self.plan.group_interval_ns);
        let allowance = self.plan.allowance(interval_ns, STRIDE_NS_MAX);
        if let Some(stride) = groups.backoff.doubt(judged, &allowance) {
            self.slow.note("cgroups".into(), judged, stride);
        }
    }

    fn note_slow_machine(&mut self, clock: &dyn Clock) {
        for source in self.machine.iter_mut().filter(|source| source.read) {
            if source.cost_ns <= self.plan.slow_ns {
                source.backoff.quick();
                continue;
            }
            // The text of the second read is discarded; only its time counts.
            let now_ns = clock.mono_ns();
            let again = || {
                for (_, reader) in source.instances.iter_mut().flatten() {
                    let _ = reader.read(&self.root, now_ns, &mut self.buffers.text);
                }
            };
            let judged = self.slow.judge(clock, source.cost_ns, again);
            let longest_ns = if source.source.kind == kind::STAT {
                STRIDE_NS_MAX_CPU
            } else {
                STRIDE_NS_MAX
            };
            let allowance = self.plan.allowance(self.plan.interval_ns, longest_ns);
            if let Some(stride) = source.backoff.doubt(judged, &allowance) {
                self.slow.note(source.path(), judged, stride);
            }
        }
    }

    fn sample_tasks(
        &mut self,
        clock: &dyn Clock,
        key: bool,
        due: Due,
        emit: &mut impl FnMut(u8, u8, &[u8]),
    ) {
        let Some(tables) = &mut self.tasks else {
            return;
        };
        let mut scan = Scan {
            root: &self.root,
            clock,
            age_ns: match self.plan.interval_ns {
                0 => self.samples * PAUSELESS_SAMPLE_NS,
                _ => clock.mono_ns(),
            },
            allowance: self
                .plan
                .allowance(self.plan.scan_interval_ns, STRIDE_NS_MAX),
            budget: &mut self.budget,
        };
        tables.sample(&mut scan, &mut self.slow, key, due, emit);
    }
}

impl Plan {
    fn allowance(&self, interval_ns: u64, longest_ns: u64) -> Allowance {
        Allowance {
            slow_ns: self.slow_ns,
            interval_ns,
            longest_ns,
            backoff: self.backoff,
        }
    }
}

impl MachineSource {
    fn new(source: &'static source::Source, net: &str) -> MachineSource {
        let mut new = MachineSource {
            source,
            instances: Vec::new(),
            listed_ns: None,
            track: TrackWriter::new(source.grammar),
            shape: None,
            cost_ns: 0,
            backoff: Backoff::default(),
            read: false,
            unread: Why::NotDue,
            rests_until_ns: 0,
        };
        if source.scope == Scope::Machine {
            let path = match source.path.strip_prefix("proc/net/") {
                Some(rest) => format!("{net}/{rest}"),
                None => source.path.to_string(),
            };
            new.add(0, String::new(), path);
        }
        new
    }

    fn add(&mut self, slot: usize, name: String, path: String) {
        self.track.add(slot, name.as_bytes());
        let reader = Reader::new(self.source, path);
        if slot == self.instances.len() {
            self.instances.push(None);
        }
        self.instances[slot] = Some((name, reader));
    }

    fn readers(&self) -> impl Iterator<Item = &Reader> {
        self.instances.iter().flatten().map(|(_, reader)| reader)
    }

    /// The path of the file, or the pattern of the paths if there are several.
    fn path(&self) -> String {
        match (self.source.scope, self.readers().next()) {
            (Scope::Machine, Some(reader)) => reader.path().to_string(),
            _ => self.source.path.to_string(),
        }
    }

    fn sample(
        &mut self,
        root: &Root,
        clock: &dyn Clock,
        (scan, key): (Due, bool),
        buffers: &mut Buffers,
    ) {
        self.cost_ns = 0;
        let is_due = match (self.source.pace, scan) {
            (Pace::EachSample, _) | (Pace::EachScan, Due::Now) => true,
            (Pace::Thrifty, Due::Now) => clock.mono_ns() >= self.rests_until_ns,
            (Pace::EachScan | Pace::Thrifty, Due::Later) => false,
        };
        self.unread = match is_due {
            true => Why::Slow,
            false => Why::NotDue,
        };
        self.read = self.unread == Why::Slow && self.backoff.is_due();
        self.track.begin(key);
        if self.read && self.source.scope != Scope::Machine {
            self.list(root, clock.mono_ns());
        }
        for (slot, instance) in self.instances.iter_mut().enumerate() {
            let Some((_, reader)) = instance else {
                continue;
            };
            if !self.read {
                self.track.unread(slot, self.unread);
                continue;
            }
            let track = &mut self.track;
            let result = match track.goes_in_pieces(slot) && reader.is_one_file() {
                true => read_in_pieces(reader, root, clock, (track, slot), buffers),
                false => read_whole(reader, root, clock, (track, slot), buffers),
            };
            self.cost_ns += result.0;
            if let Err(errno) = result.1 {
                self.track.failed(slot, errno);
            }
        }
        if self.read && self.source.pace == Pace::Thrifty {
            self.rests_until_ns = clock.mono_ns().saturating_add(rest_ns(self.cost_ns));
        }
    }

    /// Updates the list of instances, at most once a minute.
    fn list(&mut self, root: &Root, now_ns: u64) {
        let is_due = |last: u64| now_ns.saturating_sub(last) >= LISTED_EVERY_NS;
        if !self.listed_ns.is_none_or(is_due) {
            return;
        }
        self.listed_ns = Some(now_ns);
        let there = listing::instances(root, self.source.scope);
        let names: HashSet<&str> = there.iter().map(String::as_str).collect();
        for slot in 0..self.instances.len() {
            let is_gone = |(name, _): &(String, Reader)| !names.contains(name.as_str());
            if self.instances[slot].as_ref().is_some_and(is_gone) {
                self.instances[slot] = None;
                self.track.gone(slot);
            }
        }
        let known = self.instances.iter().flatten();
        let known: HashSet<String> = known.map(|(name, _)| name.clone()).collect();
        let mut slots = 0..;
        for name in there.into_iter().filter(|name| !known.contains(name)) {
            let is_free = |slot: &usize| self.instances.get(*slot).is_none_or(Option::is_none);
            if let Some(slot) = slots.find(is_free) {
                let path = self.source.path_of(&name);
                self.add(slot, name, path);
            }
        }
    }
}

/// Shortest and longest rest of a source between two reads. A scan may come half a second early.
const RESTS_NS: [u64; 2] = [9_500_000_000, 300_000_000_000];
/// A source rests this many times as long as a read takes: 0.005 % of a CPU.
const RESTS_PER_COST: u64 = 20_000;

/// How long a source rests after a read of this cost.
fn rest_ns(cost_ns: u64) -> u64 {
    let [least, most] = RESTS_NS;
    cost_ns.saturating_mul(RESTS_PER_COST).clamp(least, most)
}

/// Cost of a read in nanoseconds, without the comparison, and the errno of a read that failed.
type Paid = (u64, Result<(), u16>);

fn read_whole(
    reader: &mut Reader,
    root: &Root,
    clock: &dyn Clock,
    (track, slot): (&mut TrackWriter, usize),
    buffers: &mut Buffers,
) -> Paid {
    let start_ns = clock.mono_ns();
    let result = reader.read(root, start_ns, &mut buffers.text);
    let cost_ns = clock.mono_ns() - start_ns;
    let result = result.map(|()| {
        track.read_exchanging(slot, &mut buffers.text);
    });
    (cost_ns, result)
}

fn read_in_pieces(
    reader: &mut Reader,
    root: &Root,
    clock: &dyn Clock,
    (track, slot): (&mut TrackWriter, usize),
    buffers: &mut Buffers,
) -> Paid {
    let mut cost_ns = 0;
    let result = reader.read_in_pieces(root, clock.mono_ns(), |more| {
        let paid = |out: &mut Vec<u8>| {
            let start_ns = clock.mono_ns();
            let result = more(out);
            cost_ns += clock.mono_ns() - start_ns;
            result
        };
        track.read_in_pieces(slot, buffers, paid).map(|_changed| ())
    });
    (cost_ns, result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicU64;

    use kymo_base::track::{State, Track};
    use kymo_sys::clock::Stamp;

    use crate::tests::MadeRoot;

    const SECOND_NS: u64 = 1_000_000_000;
    const ENOENT: u16 = 2;

    /// A clock on which each read of the time takes `look_ns`.
    #[derive(Default)]
    struct Watch {
        now_ns: AtomicU64,
        look_ns: AtomicU64,
    }

    impl Clock for Watch {
        fn now(&self) -> Stamp {
            let look_ns = self.look_ns.load(Ordering::Relaxed);
            Stamp {
                mono_ns: self.now_ns.fetch_add(look_ns, Ordering::Relaxed),
                ..Stamp::default()
            }
        }
    }

    struct World {
        made: MadeRoot,
        clock: Watch,
        sampler: Sampler,
        tracks: BTreeMap<u8, Track>,
    }

    impl World {
        fn new(made: MadeRoot, kinds: &[u8]) -> World {
            let plan = Plan {
                kinds: kinds.to_vec(),
                slow_ns: 1_000_000,
                interval_ns: SECOND_NS,
                backoff: true,
                ..Plan::default()
            };
            let root = Root::open(made.root.path()).expect("a root");
            World {
                made,
                clock: Watch::default(),
                sampler: Sampler::new(Arc::new(root), plan, 100),
                tracks: BTreeMap::new(),
            }
        }

        /// Takes a sample `seconds` after the last one.
        fn sample(&mut self, seconds: u64, key: bool, tasks: Due) {
            let now_ns = seconds * SECOND_NS;
            self.clock.now_ns.fetch_add(now_ns, Ordering::Relaxed);
            let tracks = &mut self.tracks;
            self.sampler
                .sample(&self.clock, key, tasks, |kind, _cost, section| {
                    let track = tracks.entry(kind).or_default();
                    track.apply(key, section).expect("a section");
                });
        }

        /// Name, state and text of each instance of a kind.
        fn known(&self, kind: u8) -> Vec<(String, State, String)> {
            let track = &self.tracks[&kind];
            let one = |(_, instance): (usize, &kymo_base::track::Instance)| {
                let mut text = Vec::new();
                track.render(instance, &mut text);
                let name = String::from_utf8_lossy(&instance.name).into_owned();
                let text = String::from_utf8_lossy(&text).into_owned();
                (name, instance.state, text)
            };
            track.instances().map(one).collect()
        }

        fn only(&self, kind: u8) -> (State, String) {
            let known = self.known(kind);
            assert_eq!(known.len(), 1, "{known:?}");
            let (_, state, text) = known[0].clone();
            (state, text)
        }
    }

    /// A cheap source is read each ten seconds, a dear one as seldom as its cost demands, and five minutes at most pass.
    #[test]
    fn a_thrifty_source_rests_as_long_as_it_costs() {
        for (cost_ms, rests_s) in [(0, 10), (1, 20), (10, 200), (100, 300)] {
            let made = MadeRoot::new();
            made.write("proc/mdstat", "md0 : active raid0 a[0]\n");
            let mut world = World::new(made, &[kind::ARRAYS]);
            let look_ns = cost_ms * 1_000_000;
            world.clock.look_ns.store(look_ns, Ordering::Relaxed);
            let mut reads: Vec<u64> = Vec::new();
            while reads.len() < 3 {
                world.sample(5, reads.is_empty(), Due::Now);
                let now_ns = world.clock.now_ns.load(Ordering::Relaxed);
                let (state, text) = world.only(kind::ARRAYS);
                assert_eq!(text, "md0 1 1 0 0 0\n");
                match state {
                    State::Changed | State::Same => reads.push(now_ns),
                    other => assert_eq!(other, State::Unread(Why::NotDue)),
                }
            }
            let rests_ns = reads.windows(2).map(|pair| pair[1] - pair[0]);
            let due_ns = (rests_s - 1) * SECOND_NS..(rests_s + 6) * SECOND_NS;
            for rest_ns in rests_ns {
                assert!(due_ns.contains(&rest_ns), "{cost_ms} ms: {rest_ns}");
            }
            world.sample(600, false, Due::Later);
            assert_eq!(world.only(kind::ARRAYS).0, State::Unread(Why::NotDue));
        }
    }

    #[test]
    fn a_source_with_an_own_interval_is_read_in_whole_beats() {
        for (interval_s, beat_s, due) in [
            (0, 1, vec![0, 1, 2, 3, 4, 5, 6, 7]),
            (3, 1, vec![0, 1, 2, 5]),
            (1, 2, vec![0, 2, 4, 6]),
            (3, 2, vec![0, 2, 4, 6]),
            (4, 2, vec![0, 2, 4]),
            (3, 0, vec![0, 1, 2, 3, 4, 5, 6, 7]),
        ] {
            let mut pace = OwnPace::new(interval_s * SECOND_NS, beat_s * SECOND_NS);
            let clock = Watch::default();
            let mut found = Vec::new();
            for second in (0..8).step_by(usize::try_from(beat_s.max(1)).expect("a step")) {
                clock.now_ns.store(second * SECOND_NS, Ordering::Relaxed);
                found.extend(pace.is_due(&clock).then_some(second));
            }
            assert_eq!(found, due, "{interval_s} {beat_s}");
        }
    }

    /// Between two reads a key repeats the texts of groups, and nothing else is written of them.
    #[test]
    fn groups_with_an_own_interval_are_not_read_between() {
        let made = MadeRoot::new();
        let mount = "31 23 0:28 / /cg rw - cgroup2 cgroup2 rw\n";
        made.write("proc/self/mountinfo", mount);
        made.write("cg/a/memory.current", "7\n");
        let mut world = World::new(made, &[kind::CGROUP]);
        world.sampler.groups_pace = OwnPace {
            reads: FIRST_READS - 1,
            ..OwnPace::new(3 * SECOND_NS, SECOND_NS)
        };
        world.sample(1, true, Due::Later);
        let text = |number: u32| format!("group top 1 INODE\nmemory.current {number}\n");
        let group_of = |world: &World| {
            let (_, state, text) = world.known(kind::CGROUP)[0].clone();
            let mut words: Vec<&str> = text.split([' ', '\n']).collect();
            words[3] = "INODE";
            let text = words[..4].join(" ") + "\n" + &words[4..].join(" ").replace(" \n", "\n");
            (state, text.trim_end().to_string() + "\n")
        };
        assert_eq!(group_of(&world).1, text(7));
        world.made.write("cg/a/memory.current", "8\n");
        world.sample(1, false, Due::Later);
        assert_eq!(group_of(&world).1, text(7));
        world.sample(1, true, Due::Later);
        assert_eq!(group_of(&world), (State::Unread(Why::NotDue), text(7)));
        world.sample(1, false, Due::Later);
        assert_eq!(group_of(&world).1, text(8));
    }

    #[test]
    fn each_file_is_read_at_its_own_pace() {
        let made = MadeRoot::new();
        made.write("proc/stat", "cpu 1 2\n");
        made.write("proc/slabinfo", "slab 7\n");
        made.write("proc/self/net/dev", "eth0: 1\n");
        let kinds = [kind::STAT, kind::SLABINFO, kind::NET_DEV, kind::LOADAVG];
        let mut world = World::new(made, &kinds);
        world.sample(1, true, Due::Now);
        let changed = |text: &str| (State::Changed, text.to_string());
        assert_eq!(world.only(kind::STAT), changed("cpu 1 2\n"));
        assert_eq!(world.only(kind::SLABINFO), changed("slab 7\n"));
        assert_eq!(world.only(kind::NET_DEV), changed("eth0: 1\n"));
        assert_eq!(world.only(kind::LOADAVG).0, State::Failed(ENOENT));
        world.made.write("proc/stat", "cpu 1 3\n");
        world.made.write("proc/slabinfo", "slab 8\n");
        world.sample(1, false, Due::Later);
        assert_eq!(world.only(kind::STAT), changed("cpu 1 3\n"));
        let unread = State::Unread(Why::NotDue);
        assert_eq!(world.only(kind::SLABINFO), (unread, "slab 7\n".into()));
        assert_eq!(world.only(kind::NET_DEV).0, State::Same);
        world.sample(1, false, Due::Now);
        assert_eq!(world.only(kind::SLABINFO), changed("slab 8\n"));
        assert_eq!(world.sampler.sizes(), (0, 0, 0), "nothing is kept open");
        assert!(world.sampler.take_slow().next().is_none());
        assert!(
            !world.sampler.take_malformed_activity()
                && world.sampler.take_groups_left_out().is_none()
        );
        assert_eq!(world.sampler.forbidden(), 0);
        assert!(world.sampler.lane().is_none());
    }

    #[test]
    fn instances_that_come_and_go_are_found_once_a_minute() {
        let made = MadeRoot::new();
        let text = |node: u32| format!("Node {node} MemTotal: {node} kB\n");
        let path = |node: u32| format!("sys/devices/system/node/node{node}/meminfo");
        for node in 0..3 {
            made.write(&path(node), &text(node));
        }
        let mut world = World::new(made, &[kind::NODE_MEMINFO]);
        let named = |world: &World| -> Vec<String> {
            let known = world.known(kind::NODE_MEMINFO).into_iter();
            known.map(|(name, _, _)| name).collect()
        };
        world.sample(1, true, Due::Now);
        assert_eq!(named(&world), ["0", "1", "2"]);
        world.made.remove("sys/devices/system/node/node1");
        world.made.write(&path(7), &text(7));
        world.sample(59, false, Due::Now);
        let failed = world.known(kind::NODE_MEMINFO).remove(1);
        assert_eq!(failed.1, State::Failed(ENOENT));
        world.sample(1, false, Due::Now);
        assert_eq!(named(&world), ["0", "7", "2"], "a free slot is taken again");
        assert_eq!(world.known(kind::NODE_MEMINFO)[1].2, text(7));
        world.sample(1, true, Due::Now);
        assert_eq!(named(&world), ["0", "7", "2"]);
    }

    #[test]
    fn another_set_of_disks_or_links_is_news_once() {
        let made = MadeRoot::new();
        made.write("proc/diskstats", " 8 0 sda 1 2\n");
        made.write("proc/self/net/dev", "eth0: 1\n");
        made.write("proc/stat", "cpu 1\n");
        let kinds = [kind::DISKSTATS, kind::NET_DEV, kind::STAT];
        let mut world = World::new(made, &kinds);
        let news = |world: &mut World, file: &str, text: &str| {
            world.made.write(file, text);
            world.sample(1, false, Due::Now);
            (
                world.sampler.devices_changed(),
                world.sampler.devices_changed(),
            )
        };
        world.sample(1, true, Due::Now);
        assert!(!world.sampler.devices_changed(), "the first texts");
        for (file, text, expect) in [
            ("proc/diskstats", " 8 0 sda 3 4\n", false),
            ("proc/diskstats", " 8 0 sda 3 4\n 8 16 sdb 1 1\n", true),
            ("proc/stat", "cpu 1\nintr 2\n", false),
            ("proc/self/net/dev", "eth0: 1\nveth1: 2\n", true),
            ("proc/self/net/dev", "eth0: 5\nveth1: 6\n", false),
        ] {
            assert_eq!(news(&mut world, file, text), (expect, false), "{text}");
        }
    }

    #[test]
    fn a_slow_file_is_named_and_read_less_often() {
        let made = MadeRoot::new();
        made.write("proc/stat", "cpu 1\n");
        made.write("proc/loadavg", "1 1 1\n");
        let mut world = World::new(made, &[kind::STAT, kind::LOADAVG]);
        let look = |world: &World, ns| world.clock.look_ns.store(ns, Ordering::Relaxed);
        // More than 1 % of the interval.
        let slow_ns = 20_000_000;
        look(&world, slow_ns);
        for key in [true, false] {
            world.sample(1, key, Due::Now);
            assert!(world.sampler.take_slow().next().is_none());
        }
        world.sample(1, false, Due::Now);
        let found: Vec<SlowRead> = world.sampler.take_slow().collect();
        let slow = |path: &str, again_ns| SlowRead {
            path: path.into(),
            cost_ns: slow_ns,
            again_ns,
            stride: 2,
        };
        let expect = ["proc/stat", "proc/loadavg"].map(|path| slow(path, found[0].again_ns));
        assert_eq!(found, expect);
        assert!(found[0].again_ns >= slow_ns);
        world.sample(1, false, Due::Now);
        assert_eq!(world.only(kind::STAT).0, State::Unread(Why::Slow));
        world.sample(1, false, Due::Now);
        assert_eq!(world.only(kind::STAT).0, State::Same);
        let strides: Vec<u32> = world.sampler.take_slow().map(|slow| slow.stride).collect();
        assert_eq!(strides, [4, 4]);
        // No stride is longer than 10 s for the CPU, 60 s for others.
        for _ in 0..400 {
            world.sample(1, false, Due::Now);
        }
        let strides: Vec<u32> = world.sampler.take_slow().map(|slow| slow.stride).collect();
        assert_eq!(strides, [8, 8, 10, 16, 32, 60]);
        // After quick reads, each source is read twice as often.
        look(&world, 0);
        for _ in 0..200 {
            world.sample(1, false, Due::Now);
        }
        for _ in 0..3 {
            world.sample(1, false, Due::Now);
            assert_eq!(world.only(kind::STAT).0, State::Same);
            assert_eq!(world.only(kind::LOADAVG).0, State::Same);
        }
    }

    /// A listing of processes holds for several scans; births and deaths are seen by the next one nonetheless.
    #[test]
    fn births_and_deaths_are_in_the_next_scan() {
        let root = Root::open(std::path::Path::new("/")).expect("a root");
        if !root.has_own_pids() {
            return kymo_sys::skipped::skipped("/proc has the pids of another namespace");
        }
        let mut world = World::new(MadeRoot::new(), &[]);
        let plan = Plan {
            tasks: Some(TaskPlan::default()),
            slow_ns: u64::MAX,
            ..world.sampler.plan.clone()
        };
        world.sampler = Sampler::new(Arc::new(root), plan, 100);
        let has = |world: &World, pid: u32| {
            let known = world.known(kind::PID_STAT).into_iter();
            let mut alive = known.filter(|(_, state, _)| !matches!(state, State::Failed(_)));
            alive.any(|(name, ..)| name == pid.to_string())
        };
        for round in 0..12 {
            let mut child = std::process::Command::new("sleep").arg("60").spawn();
            let child = child.as_mut().expect("a process");
            for key in [round == 0, false] {
                world.sample(1, key, Due::Now);
                assert!(has(&world, child.id()), "{round}");
            }
            child.kill().expect("killed");
            child.wait().expect("ended");
            for _ in 0..2 {
                world.sample(1, false, Due::Now);
                assert!(!has(&world, child.id()), "{round}");
            }
        }
    }
}
