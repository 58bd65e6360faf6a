//! Processes, or threads: who is there, their files kept open, and when each is due to be
//! read. A kept file belongs to one process for ever: after its death it answers ESRCH,
//! never with another's numbers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use kymo_base::limits;
use kymo_base::template::{Grammar, Piece, Template};
use kymo_base::track::Why;
use kymo_base::track_writer::TrackWriter;
use kymo_sys::clock::Clock;
use kymo_sys::kernel_file::{KernelFile, Root};

use crate::backoff::{Allowance, Backoff, SlowRead, SlowReads};
use crate::identity::{self, Lane, Subject, Texts};
use crate::reader::{GONE, errno_of, read_whole};
use crate::source::{Scope, kind};

/// How often `status` is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StatusPolicy {
    /// At first sight, then when size or threads changed, at most each 10 s a process.
    #[default]
    Changed,
    /// At each scan.
    Always,
    /// Never.
    Never,
}

/// What of tasks is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskPlan {
    /// Threads too.
    pub threads: bool,
    /// `/proc/PID/io` too.
    pub io: bool,
    /// How often `status` is read.
    pub status: StatusPolicy,
    /// Whether command lines are cut after their first word.
    pub redact: bool,
}

const STATUS_AGE_NS: u64 = 10_000_000_000;
const IDENTITY_AGE_NS: u64 = 60_000_000_000;
/// EACCES and EPERM: the file is not for us, and will not be at the next scan either.
const FORBIDDEN: [u16; 2] = [13, 1];

/// The files kept open by all tables, and how many more may be.
pub struct Budget {
    /// Files that may still be opened and kept.
    pub left: u64,
}

/// What a scan needs to know.
pub struct Scan<'a> {
    /// Where the files are.
    pub root: &'a Root,
    /// For the price of each read.
    pub clock: &'a dyn Clock,
    /// The time by which ages are counted (at `-i0` it runs faster).
    pub age_ns: u64,
    /// What a read may cost.
    pub allowance: Allowance,
}

/// Time of the reads of stat, io and status, in ns.
pub type Costs = [u64; 3];
/// Slow reads told of in one scan.
const SLOW_TOLD_MAX: usize = 16;

struct Task {
    name: String,
    generation: u64,
    stat: File,
    io: File,
    seen: u64,
    sightings: u8,
    status_at_ns: Option<u64>,
    identity_at_ns: u64,
    size: [u64; 3],
    exec: [u64; 4],
    /// Its size changed since its status was read.
    grown: bool,
    backoff: Backoff,
}

#[derive(Default)]
struct File {
    kept: Option<KernelFile>,
    confirmed: usize,
    forbidden: u16,
}

/// All tasks of one scope.
pub struct Tasks {
    scope: Scope,
    plan: TaskPlan,
    tasks: Vec<Option<Box<Task>>>,
    slots: HashMap<(u32, u32), usize>,
    free: BinaryHeap<Reverse<usize>>,
    scan: u64,
    generation: u64,
    stat: TrackWriter,
    io: TrackWriter,
    status: TrackWriter,
    /// cmdline, cgroup, exe.
    identity: [TrackWriter; 3],
    places: PlacesCache,
    texts: [Vec<u8>; 2],
    questions: Vec<Subject>,
    answers: Vec<(Subject, Texts)>,
}

/// Who there is in this scan: pid and, for threads, tid.
pub type Listing = Vec<(u32, u32)>;

impl Tasks {
    /// An empty table.
    pub fn new(scope: Scope, plan: TaskPlan) -> Tasks {
        Tasks {
            scope,
            plan,
            tasks: Vec::new(),
            slots: HashMap::new(),
            free: BinaryHeap::new(),
            scan: 0,
            generation: 0,
            stat: TrackWriter::new(Grammar::Stat),
            io: TrackWriter::new(Grammar::Plain),
            status: TrackWriter::new(Grammar::Keyed),
            identity: std::array::from_fn(|_| TrackWriter::new(Grammar::Word)),
            places: PlacesCache::default(),
            texts: [Vec::with_capacity(4096), Vec::with_capacity(4096)],
            questions: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Kinds of this table's tracks: stat, io, status.
    pub fn kinds(&self) -> [u8; 3] {
        match self.scope {
            Scope::Thread => [kind::TID_STAT, kind::TID_IO, kind::TID_STATUS],
            _ => [kind::PID_STAT, kind::PID_IO, kind::PID_STATUS],
        }
    }

    /// Number of tasks.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Begins a sample in all tracks.
    pub fn begin(&mut self, key: bool) {
        for track in [&mut self.stat, &mut self.io, &mut self.status] {
            track.begin(key);
        }
        for track in &mut self.identity {
            track.begin(key);
        }
    }

    /// Takes in who is there now: the dead leave, the new get a slot.
    pub fn update(&mut self, listing: &Listing, budget: &mut Budget) {
        self.scan += 1;
        for &id in listing.iter().take(limits::INSTANCES_MAX) {
            let slot = match self.slots.get(&id) {
                Some(&slot) => slot,
                None => self.add(id),
            };
            if let Some(task) = &mut self.tasks[slot] {
                task.seen = self.scan;
            }
        }
        let dead: Vec<_> = self
            .slots
            .iter()
            .filter(|&(_, &slot)| !self.is_seen(slot))
            .map(|(&id, _)| id)
            .collect();
        for id in dead {
            self.remove(id, budget);
        }
    }

    fn is_seen(&self, slot: usize) -> bool {
        self.tasks[slot]
            .as_ref()
            .is_some_and(|task| task.seen == self.scan)
    }

    fn add(&mut self, id: (u32, u32)) -> usize {
        let slot = self
            .free
            .pop()
            .map_or(self.tasks.len(), |Reverse(slot)| slot);
        if slot == self.tasks.len() {
            self.tasks.push(None);
        }
        self.slots.insert(id, slot);
        let name = match self.scope {
            Scope::Thread => format!("{}/task/{}", id.0, id.1),
            _ => id.0.to_string(),
        };
        self.place(slot, name);
        slot
    }

    /// Puts a new task in a slot, in all tracks.
    fn place(&mut self, slot: usize, name: String) {
        for track in [&mut self.stat, &mut self.io, &mut self.status]
            .into_iter()
            .chain(&mut self.identity)
        {
            track.gone(slot);
            track.add(slot, name.as_bytes());
        }
        self.generation += 1;
        self.tasks[slot] = Some(Box::new(Task {
            name,
            generation: self.generation,
            stat: File::default(),
            io: File::default(),
            seen: self.scan,
            sightings: 0,
            status_at_ns: None,
            identity_at_ns: 0,
            size: [0; 3],
            exec: [0; 4],
            grown: false,
            backoff: Backoff::default(),
        }));
    }

    fn remove(&mut self, id: (u32, u32), budget: &mut Budget) {
        let Some(slot) = self.slots.remove(&id) else {
            return;
        };
        for track in [&mut self.stat, &mut self.io, &mut self.status]
            .into_iter()
            .chain(&mut self.identity)
        {
            track.gone(slot);
        }
        if let Some(task) = self.tasks[slot].take() {
            budget.left += [&task.stat, &task.io]
                .into_iter()
                .filter(|file| file.kept.is_some())
                .count() as u64;
        }
        self.free.push(Reverse(slot));
    }

    /// Reads every task; what that cost, and which reads were slow.
    pub fn read(&mut self, scan: &Scan, budget: &mut Budget, slow: &mut SlowReads) -> Costs {
        let mut costs = Costs::default();
        let told = slow.found.len();
        for slot in 0..self.tasks.len() {
            let Some(task) = &mut self.tasks[slot] else {
                continue;
            };
            if !task.backoff.is_due() {
                self.unread(slot, Why::Slow);
                continue;
            }
            let cost = self.read_task(slot, scan, budget);
            costs = std::array::from_fn(|kind| costs[kind] + cost[kind]);
            self.note_cost(slot, scan, cost, slow);
            slow.found.truncate(told + SLOW_TOLD_MAX);
        }
        costs
    }

    /// A slow task is read again, to see whether it is, and then less often.
    fn note_cost(&mut self, slot: usize, scan: &Scan, cost: Costs, slow: &mut SlowReads) {
        let Some(task) = &mut self.tasks[slot] else {
            return;
        };
        let (kind, cost_ns) = (0..3)
            .map(|kind| (kind, cost[kind]))
            .max_by_key(|&(_, ns)| ns)
            .unwrap_or_default();
        if cost_ns <= scan.allowance.slow_ns {
            return task.backoff.quick();
        }
        let path = format!("proc/{}/{}", task.name, ["stat", "io", "status"][kind]);
        // A process that ended meanwhile is quick to say so.
        let again = || {
            let _ = scan.root.read(&path, &mut self.texts[0]);
        };
        let (cost_ns, again_ns) = slow.judge(scan.clock, cost_ns, again);
        if cost_ns.max(again_ns) <= scan.allowance.slow_ns {
            return task.backoff.quick();
        }
        let stride = task.backoff.slow(cost_ns.min(again_ns), &scan.allowance);
        slow.found.push(SlowRead {
            path,
            cost_ns,
            again_ns,
            stride,
        });
    }

    fn read_task(&mut self, slot: usize, scan: &Scan, budget: &mut Budget) -> Costs {
        let Some(task) = &mut self.tasks[slot] else {
            return Costs::default();
        };
        let [stat_text, io_text] = &mut self.texts;
        let start_ns = scan.clock.mono_ns();
        let mut stat = task
            .stat
            .read(scan.root, &task.name, "stat", budget, stat_text);
        if stat.is_err_and(|errno| GONE.contains(&errno)) && task.stat.kept.take().is_some() {
            // The kept file's process is dead, but its number is listed: another has it now.
            let name = std::mem::take(&mut task.name);
            budget.left += 1 + u64::from(task.io.kept.is_some());
            self.place(slot, name);
            return self.read_task(slot, scan, budget);
        }
        let stat_ns = scan.clock.mono_ns();
        let io = if self.plan.io {
            task.io.read(scan.root, &task.name, "io", budget, io_text)
        } else {
            Ok(())
        };
        let io_ns = scan.clock.mono_ns();
        if stat.is_ok() && stat_text.is_empty() {
            stat = Err(GONE[0]);
        }
        let changed = record(&mut self.stat, slot, stat, stat_text);
        if self.plan.io {
            record(&mut self.io, slot, io, io_text);
        }
        let marks = if changed {
            self.places.marks(&self.stat, slot)
        } else {
            None
        };
        self.ask_identity(slot, marks, scan.age_ns);
        let status_ns = self.read_status(slot, marks, scan);
        [stat_ns - start_ns, io_ns - stat_ns, status_ns]
    }

    /// Asks who the task is: at first and second sight, after an exec, and now and then.
    fn ask_identity(&mut self, slot: usize, marks: Option<Marks>, age_ns: u64) {
        let Some(task) = &mut self.tasks[slot] else {
            return;
        };
        task.sightings = task.sightings.saturating_add(1);
        let other = marks.is_some_and(|marks| marks.exec != task.exec);
        if let Some(marks) = marks {
            task.exec = marks.exec;
        }
        let aged = age_ns.saturating_sub(task.identity_at_ns) >= IDENTITY_AGE_NS;
        if self.scope != Scope::Process || !(task.sightings <= 2 || other || aged) {
            return;
        }
        // A first date within the age spreads the later ones.
        let spread = if task.sightings <= 2 {
            task.generation % 60 * (IDENTITY_AGE_NS / 60)
        } else {
            0
        };
        task.identity_at_ns = age_ns.saturating_sub(spread);
        self.questions.push(Subject {
            slot,
            generation: task.generation,
            name: task.name.clone(),
        });
    }

    /// Reads `status` if it is due; what that cost.
    fn read_status(&mut self, slot: usize, marks: Option<Marks>, scan: &Scan) -> u64 {
        let Some(task) = &mut self.tasks[slot] else {
            return 0;
        };
        if let Some(marks) = marks {
            task.grown |= marks.size != task.size;
            task.size = marks.size;
        }
        let due = match self.plan.status {
            StatusPolicy::Never => false,
            StatusPolicy::Always => true,
            StatusPolicy::Changed => {
                let aged = |at| task.grown && scan.age_ns.saturating_sub(at) >= STATUS_AGE_NS;
                task.status_at_ns.is_none_or(aged)
            }
        };
        if !due {
            self.status.unread(slot, Why::NotDue);
            return 0;
        }
        (task.status_at_ns, task.grown) = (Some(scan.age_ns), false);
        let text = &mut self.texts[0];
        let start_ns = scan.clock.mono_ns();
        let result = scan
            .root
            .read(&format!("proc/{}/status", task.name), text)
            .map_err(errno_of);
        let cost_ns = scan.clock.mono_ns() - start_ns;
        record(&mut self.status, slot, result, text);
        cost_ns
    }

    fn unread(&mut self, slot: usize, why: Why) {
        for track in [&mut self.stat, &mut self.io, &mut self.status] {
            track.unread(slot, why);
        }
    }

    /// Every task counts as not read in this sample (between scans); that costs nothing.
    pub fn idle(&mut self) -> Costs {
        for slot in 0..self.tasks.len() {
            if self.tasks[slot].is_some() {
                self.unread(slot, Why::NotDue);
            }
        }
        Costs::default()
    }

    /// Exchanges questions and answers with the slow lane; true when the identity tracks have news.
    pub fn identify(&mut self, lane: &Lane, key: bool) -> bool {
        lane.ask(&mut self.questions);
        lane.answers(&mut self.answers);
        if self.answers.is_empty() && !key {
            // The dead must be told of, news or not.
            return self.identity.iter().any(TrackWriter::has_frames);
        }
        let mut answers = self.answers.drain(..).peekable();
        for slot in 0..self.tasks.len() {
            let Some(task) = &self.tasks[slot] else {
                continue;
            };
            let mut latest = None;
            while let Some((subject, texts)) = answers.next_if(|(subject, _)| subject.slot <= slot)
            {
                // An answer about an earlier process of this slot is nobody's.
                latest = (subject.slot == slot && subject.generation == task.generation)
                    .then_some(texts);
            }
            let texts = latest;
            for (i, track) in self.identity.iter_mut().enumerate() {
                match texts.as_ref().map(|texts| &texts[i]) {
                    Some(Ok(text)) => {
                        let cut = self.plan.redact && identity::KINDS[i] == kind::PID_CMDLINE;
                        track.read(slot, if cut { first_word(text) } else { text });
                    }
                    Some(Err(errno)) => track.failed(slot, *errno),
                    None => track.unread(slot, Why::NotDue),
                }
            }
        }
        true
    }

    /// The sections of stat, io and status.
    pub fn sections(&mut self) -> [(u8, &[u8]); 3] {
        let [stat, io, status] = self.kinds();
        [
            (stat, self.stat.end()),
            (io, self.io.end()),
            (status, self.status.end()),
        ]
    }

    /// The sections of cmdline, cgroup and exe.
    pub fn identity_sections(&mut self) -> [(u8, &[u8]); 3] {
        let [a, b, c] = &mut self.identity;
        [
            (identity::KINDS[0], a.end()),
            (identity::KINDS[1], b.end()),
            (identity::KINDS[2], c.end()),
        ]
    }

    /// Tasks with a file that we may not read.
    pub fn forbidden(&self) -> usize {
        let files = self.tasks.iter().flatten();
        files
            .filter(|task| task.stat.forbidden != 0 || task.io.forbidden != 0)
            .count()
    }

    /// Files kept open.
    pub fn kept(&self) -> usize {
        let files = self
            .tasks
            .iter()
            .flatten()
            .flat_map(|task| [&task.stat, &task.io]);
        files.filter(|file| file.kept.is_some()).count()
    }
}

/// Puts what was read in its track; whether it is another text than the last.
fn record(track: &mut TrackWriter, slot: usize, result: Result<(), u16>, text: &[u8]) -> bool {
    match result {
        Ok(()) => track.read(slot, text),
        Err(errno) => {
            track.failed(slot, errno);
            false
        }
    }
}

impl File {
    /// Replaces `out` by the file's text; opens it when it is not kept, and keeps it if it may.
    fn read(
        &mut self,
        root: &Root,
        task: &str,
        file: &str,
        budget: &mut Budget,
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        if let Some(kept) = &self.kept {
            return read_whole(kept, &mut self.confirmed, out);
        }
        if self.forbidden != 0 {
            return Err(self.forbidden);
        }
        let result = self.open_and_read(root, &format!("proc/{task}/{file}"), budget, out);
        if let Err(errno) = result
            && FORBIDDEN.contains(&errno)
        {
            self.forbidden = errno;
        }
        result
    }

    fn open_and_read(
        &mut self,
        root: &Root,
        path: &str,
        budget: &mut Budget,
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        let opened = root.file(path).map_err(errno_of)?;
        read_whole(&opened, &mut self.confirmed, out)?;
        if root.keeps_files() && budget.left > 0 {
            budget.left -= 1;
            self.kept = Some(opened);
        }
        Ok(())
    }
}

/// A command line without its arguments.
fn first_word(cmdline: &[u8]) -> &[u8] {
    cmdline
        .split(|&b| b == 0 || b == b' ')
        .next()
        .unwrap_or_default()
}

/// Where the marks of change are in the values of stat: size (threads, vsize, rss) and
/// exec (comm, startstack, arg_start, arg_end).
#[derive(Clone, Copy)]
struct Places {
    size: [Option<usize>; 3],
    exec: [Option<usize>; 4],
}

/// What tells that a task grew, or is another program now.
#[derive(Clone, Copy)]
struct Marks {
    size: [u64; 3],
    exec: [u64; 4],
}

#[derive(Default)]
struct PlacesCache(Vec<(Arc<Template>, Places)>);

impl PlacesCache {
    fn marks(&mut self, track: &TrackWriter, slot: usize) -> Option<Marks> {
        let template = track.template(slot)?;
        let places = match self
            .0
            .iter()
            .find(|(known, _)| Arc::ptr_eq(known, template))
        {
            Some((_, places)) => *places,
            None => {
                let places = Places::of(template);
                self.0.truncate(kymo_base::limits::TEMPLATES_MAX);
                self.0.push((template.clone(), places));
                places
            }
        };
        let values = &track.text(slot).values;
        let value = |place: Option<usize>| place.and_then(|i| values.get(i).copied()).unwrap_or(0);
        Some(Marks {
            size: places.size.map(value),
            exec: places.exec.map(value),
        })
    }
}

impl Places {
    /// Fields by their numbers in proc(5): after `pid ( comm )`, field n is piece n + 1.
    fn of(template: &Template) -> Places {
        let lines = template.lines();
        let piece = |n: usize| match lines.first().and_then(|line| line.get(n)) {
            Some(Piece::Slot(slot)) => Some(*slot),
            _ => None,
        };
        Places {
            size: [20, 23, 24].map(|field| piece(field + 1)),
            exec: [piece(2), piece(28 + 1), piece(48 + 1), piece(49 + 1)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_by_their_numbers_in_proc_5() {
        let fields: Vec<String> = (4..=52)
            .map(|n| {
                if n == 8 {
                    "-1".into()
                } else {
                    (n * 100).to_string()
                }
            })
            .collect();
        let text = format!("7 (a b) S {}\n", fields.join(" "));
        let mut track = TrackWriter::new(Grammar::Stat);
        track.begin(true);
        track.add(0, b"7");
        track.read(0, text.as_bytes());
        let Marks { size, exec } = PlacesCache::default().marks(&track, 0).expect("a template");
        assert_eq!(size, [2000, 2300, 2400]);
        assert_eq!(
            (track.word(exec[0]), &exec[1..]),
            (&b"a b"[..], &[2800, 4800, 4900][..])
        );
    }
}
