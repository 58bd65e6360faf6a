//! A table of processes or of threads: the existing tasks, the time at which each is due, and the tracks of their texts. A source
//! ([`source`]) lists the tasks and returns the texts; [`proc`] is the source for `/proc`.

mod proc;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use proc::ProcTasks;
pub use source::Budget;
pub(crate) use source::{Listing, Scan, TaskSource};

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use kymo_base::limits;
use kymo_base::template::{Grammar, Piece, Template};
use kymo_base::track::Why;
use kymo_base::track_writer::TrackWriter;

use crate::backoff::{Backoff, SlowReads};
use crate::identity::{self, Lane, Subject, Texts};
use crate::idle::Rest;
use crate::reader::GONE;
use crate::source::{Scope, kind};
use source::{Accounting, Handle, Part, Resting, TaskId, Use};

/// Policy for reads of `status`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StatusPolicy {
    /// At first sight, then after a change of size or threads, but at most once in 10 s for each task.
    #[default]
    Changed,
    /// At each scan.
    Always,
    /// Never.
    Never,
}

/// Parts of tasks to record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskPlan {
    /// Threads too.
    pub threads: bool,
    /// `/proc/PID/io` too.
    pub io: bool,
    /// Policy for reads of `status`.
    pub status: StatusPolicy,
    /// True: command lines end after their first word.
    pub redact: bool,
}

const STATUS_AGE_NS: u64 = 10_000_000_000;
const IDENTITY_AGE_NS: u64 = 60_000_000_000;
/// Age of the identity of a task that has not run since: it cannot have
/// changed its title, but another process may have changed its cgroup.
const IDENTITY_AGE_AT_REST_NS: u64 = 600_000_000_000;
/// Time spent on reads of stat, io and status, in ns.
pub type Costs = [u64; 3];
/// Capacity kept for questions and answers about identities.
const ANSWERS_ROOM: usize = 256;
/// Limit of tasks whose texts are all kept; this many texts need 4 MB.
const TEXTS_MAX: usize = 1000;
/// Limit of slow reads that one scan reports.
const SLOW_TOLD_MAX: usize = 16;

struct Task<H> {
    id: TaskId,
    generation: u64,
    handle: H,
    rest: Rest,
    seen: u64,
    sightings: u8,
    status_at_ns: Option<u64>,
    identity_at_ns: u64,
    size: [u64; 3],
    exec: [u64; 5],
    /// The letter of its state at the last read; 0: none was read.
    state: u8,
    /// The task's size has changed since the last read of `status`.
    grown: bool,
    backoff: Backoff,
}

/// All tasks of one scope.
pub(crate) struct Tasks<S: TaskSource> {
    scope: Scope,
    plan: TaskPlan,
    tasks: Vec<Option<Box<Task<S::Handle>>>>,
    slots: HashMap<(u32, u32), usize>,
    free: BinaryHeap<Reverse<usize>>,
    scan: u64,
    generation: u64,
    /// Above this number of tasks, tasks at rest keep no texts.
    texts_max: usize,
    stat: TrackWriter,
    io: TrackWriter,
    status: TrackWriter,
    /// Tracks of cmdline, cgroup, exe and container.
    identity: [TrackWriter; identity::KINDS.len()],
    places: PlacesCache,
    resting: Resting,
    texts: [Vec<u8>; 2],
    questions: Vec<Subject>,
    answers: Vec<(Subject, Texts)>,
    /// Pids that another process has taken over since the last [`Tasks::take_reborn`].
    reborn: Vec<u32>,
    /// True: a task of the last listing was gone at the last read.
    lost: bool,
}

impl<S: TaskSource> Tasks<S> {
    /// An empty table.
    pub(crate) fn new(scope: Scope, plan: TaskPlan) -> Tasks<S> {
        Tasks {
            scope,
            plan,
            tasks: Vec::new(),
            slots: HashMap::new(),
            free: BinaryHeap::new(),
            scan: 0,
            generation: 0,
            texts_max: TEXTS_MAX,
            stat: TrackWriter::new(Grammar::Stat),
            io: TrackWriter::new(Grammar::Plain),
            status: TrackWriter::new(Grammar::Keyed),
            identity: std::array::from_fn(|_| TrackWriter::new(Grammar::Word)),
            places: PlacesCache::default(),
            resting: Resting {
                accounts: Accounting::Unknown,
                counts_threads: false,
                reclaims: true,
            },
            texts: [Vec::with_capacity(4096), Vec::with_capacity(4096)],
            questions: Vec::new(),
            answers: Vec::new(),
            reborn: Vec::new(),
            lost: false,
        }
    }

    /// True if a task of the last listing was gone at the last read.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost
    }

    /// Kinds of this table's tracks: stat, io, status.
    pub(crate) fn kinds(&self) -> [u8; 3] {
        match self.scope {
            Scope::Thread => [kind::TID_STAT, kind::TID_IO, kind::TID_STATUS],
            _ => [kind::PID_STAT, kind::PID_IO, kind::PID_STATUS],
        }
    }

    /// With many tasks, discards the texts of a task at rest. With few, the texts stay: comparing packed values needs twenty
    /// times the instructions of comparing texts.
    fn rest(&mut self, slot: usize) {
        if self.slots.len() > self.texts_max {
            self.stat.pack(slot);
            self.io.pack(slot);
        }
    }

    /// Number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Begins a sample in all tracks.
    pub(crate) fn begin(&mut self, key: bool) {
        for track in [&mut self.stat, &mut self.io, &mut self.status] {
            track.begin(key);
        }
        for track in &mut self.identity {
            track.begin(key);
        }
    }

    /// Updates the table by a listing: removes ended tasks, gives new ones a slot.
    pub(crate) fn update(&mut self, listing: &Listing, budget: &mut Budget) {
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
        let pid = id.0;
        let name = match self.scope {
            Scope::Thread => format!("{}/task/{}", id.0, id.1),
            _ => id.0.to_string(),
        };
        self.place(slot, pid, name.into());
        slot
    }

    /// Puts a new task into a slot of all tracks.
    fn place(&mut self, slot: usize, pid: u32, name: Arc<str>) {
        for track in [&mut self.stat, &mut self.io, &mut self.status]
            .into_iter()
            .chain(&mut self.identity)
        {
            track.gone(slot);
            track.add_shared(slot, name.clone().into());
        }
        self.generation += 1;
        self.tasks[slot] = Some(Box::new(Task {
            id: TaskId { pid, name },
            generation: self.generation,
            handle: S::Handle::default(),
            rest: Rest::default(),
            seen: self.scan,
            sightings: 0,
            status_at_ns: None,
            identity_at_ns: 0,
            size: [0; 3],
            exec: [0; 5],
            state: 0,
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
            budget.left += task.handle.kept();
        }
        self.free.push(Reverse(slot));
    }

    /// Reads every task; returns the costs, and adds slow reads to `slow`.
    pub(crate) fn read(&mut self, source: &mut S, scan: &mut Scan, slow: &mut SlowReads) -> Costs {
        let mut costs = Costs::default();
        let known = slow.found.len();
        self.lost = false;
        self.resting = source.resting(self.scope, scan.root);
        for slot in 0..self.tasks.len() {
            let Some(task) = &mut self.tasks[slot] else {
                continue;
            };
            if !task.backoff.is_due() {
                self.unread(slot, Why::Slow);
                continue;
            }
            let rest = match self.resting.accounts {
                Accounting::Kept => self.read_at_rest(slot, source, scan),
                Accounting::Unknown | Accounting::Missing => None,
            };
            let cost = match rest {
                Some(cost) => cost,
                None => self.read_task(slot, source, scan),
            };
            costs = std::array::from_fn(|kind| costs[kind] + cost[kind]);
            self.note_cost(slot, source, scan, cost, slow);
            slow.found.truncate(known + SLOW_TOLD_MAX);
        }
        costs
    }

    /// Reads a slow task a second time, to check if it is slow, and then less often.
    fn note_cost(
        &mut self,
        slot: usize,
        source: &mut S,
        scan: &Scan,
        cost: Costs,
        slow: &mut SlowReads,
    ) {
        let Some(task) = &mut self.tasks[slot] else {
            return;
        };
        let costs = Part::ALL.into_iter().zip(cost);
        let Some((part, cost_ns)) = costs.max_by_key(|&(_, ns)| ns) else {
            return;
        };
        if cost_ns <= scan.allowance.slow_ns {
            return task.backoff.quick();
        }
        // A process that ended meanwhile answers quickly.
        let again = || {
            let _ = source.read_once(part, &task.id, scan.root, &mut self.texts[0]);
        };
        let judged = slow.judge(scan.clock, cost_ns, again);
        if let Some(stride) = task.backoff.doubt(judged, &scan.allowance) {
            slow.note(S::path(part, &task.id), judged, stride);
        }
    }

    /// Repeats the last texts of a task that has not run since; `None` if the task may have run.
    fn read_at_rest(&mut self, slot: usize, source: &mut S, scan: &mut Scan) -> Option<Costs> {
        let task = self.tasks[slot].as_deref_mut()?;
        let reclaims = self.resting.reclaims;
        if !task.rest.is_likely(task.generation, scan.age_ns, reclaims) {
            return None;
        }
        let start_ns = scan.clock.mono_ns();
        let account = source.account(&task.id, &mut task.handle, scan)?;
        if !task.rest.goes_on(account) {
            return None;
        }
        scan.budget.left += task.handle.rest();
        let forbidden = task.handle.forbidden(Part::Io);
        let cost_ns = scan.clock.mono_ns() - start_ns;
        if !self.stat.same(slot) {
            return None;
        }
        self.rest(slot);
        if self.plan.io && !self.io.same(slot) {
            self.io.failed(slot, forbidden);
        }
        self.ask_identity(slot, None, scan.age_ns);
        let status_ns = self.read_status(slot, None, source, scan);
        Some([cost_ns, 0, status_ns])
    }

    fn read_task(&mut self, slot: usize, source: &mut S, scan: &mut Scan) -> Costs {
        let Some(task) = &mut self.tasks[slot] else {
            return Costs::default();
        };
        let [stat_text, io_text] = &mut self.texts;
        // Most processes sleep from first sight on.
        let runs = task.sightings >= 2 && !task.rest.is_still();
        let again = match runs || self.resting.accounts == Accounting::Missing {
            true => Use::EachScan,
            false => Use::Once,
        };
        let start_ns = scan.clock.mono_ns();
        let (id, handle) = (&task.id, &mut task.handle);
        let mut stat = source.read(Part::Stat, id, handle, again, scan, stat_text);
        if stat.is_err_and(|errno| GONE.contains(&errno)) && handle.is_held() {
            // The kept file's process is dead, but its number is in the listing, so another process has it now.
            let (pid, name) = (id.pid, id.name.clone());
            scan.budget.left += handle.kept();
            self.reborn.push(pid);
            self.place(slot, pid, name);
            return self.read_task(slot, source, scan);
        }
        let stat_ns = scan.clock.mono_ns();
        let io = match self.plan.io {
            true => source.read(Part::Io, id, handle, again, scan, io_text),
            false => Ok(()),
        };
        let io_ns = scan.clock.mono_ns();
        if stat.is_ok() && stat_text.is_empty() {
            stat = Err(GONE[0]);
        }
        self.lost |= stat.is_err_and(|errno| GONE.contains(&errno));
        let changed = record(&mut self.stat, slot, stat, stat_text);
        let mut is_still = stat.is_ok() && !changed;
        if self.plan.io {
            is_still &= !record(&mut self.io, slot, io, io_text);
            is_still &= io.is_ok() || task.handle.forbidden(Part::Io) != 0;
        }
        let counts_threads = self.resting.counts_threads;
        is_still = is_still && self.places.is_waiting(&self.stat, slot, counts_threads);
        task.rest.was_read(scan.age_ns, is_still);
        let marks = if changed {
            self.places.marks(&self.stat, slot)
        } else {
            None
        };
        if again == Use::Once {
            self.rest(slot);
        }
        self.ask_identity(slot, marks, scan.age_ns);
        let status_ns = self.read_status(slot, marks, source, scan);
        [stat_ns - start_ns, io_ns - stat_ns, status_ns]
    }

    /// Asks for the identity of a task: at first and second sight, after an exec, and from time to time.
    fn ask_identity(&mut self, slot: usize, marks: Option<Marks>, age_ns: u64) {
        let Some(task) = &mut self.tasks[slot] else {
            return;
        };
        task.sightings = task.sightings.saturating_add(1);
        let other = marks.is_some_and(|marks| marks.exec != task.exec);
        if let Some(marks) = marks {
            let is_another = task.sightings > 1 && marks.exec[0] != task.exec[0];
            task.exec = marks.exec;
            if is_another {
                task.begin_anew();
                self.reborn.push(task.id.pid);
            }
        }
        let age_max_ns = match task.rest.has_run_since(task.identity_at_ns) {
            true => IDENTITY_AGE_NS,
            false => IDENTITY_AGE_AT_REST_NS,
        };
        let aged = age_ns.saturating_sub(task.identity_at_ns) >= age_max_ns;
        if self.scope != Scope::Process || !(task.sightings <= 2 || other || aged) {
            return;
        }
        // Different first times within the age spread the later ones.
        let spread = if task.sightings <= 2 {
            task.generation % 60 * (IDENTITY_AGE_NS / 60)
        } else {
            0
        };
        task.identity_at_ns = age_ns.saturating_sub(spread);
        self.questions.push(Subject {
            slot,
            generation: task.generation,
            name: task.id.name.clone(),
        });
    }

    /// Reads `status` if it is due; returns the cost.
    fn read_status(
        &mut self,
        slot: usize,
        marks: Option<Marks>,
        source: &mut S,
        scan: &Scan,
    ) -> u64 {
        let Some(task) = &mut self.tasks[slot] else {
            return 0;
        };
        if let Some(marks) = marks {
            task.grown |= marks.size != task.size;
            (task.size, task.state) = (marks.size, marks.state);
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
        let result = source.read_once(Part::Status, &task.id, scan.root, text);
        let cost_ns = scan.clock.mono_ns() - start_ns;
        record(&mut self.status, slot, result, text);
        self.status.pack(slot);
        cost_ns
    }

    fn unread(&mut self, slot: usize, why: Why) {
        for track in [&mut self.stat, &mut self.io, &mut self.status] {
            track.unread(slot, why);
        }
    }

    /// Marks every task as not read in this sample, between scans; this costs nothing.
    pub(crate) fn idle(&mut self) -> Costs {
        for slot in 0..self.tasks.len() {
            if self.tasks[slot].is_some() {
                self.unread(slot, Why::NotDue);
            }
        }
        Costs::default()
    }

    /// Exchanges questions and answers with the slow lane; returns true if the identity tracks have news.
    pub(crate) fn identify(&mut self, lane: &Lane, key: bool) -> bool {
        lane.ask(&mut self.questions);
        lane.answers(&mut self.answers);
        if self.answers.is_empty() && !key {
            // Ended tasks must be recorded even without other news.
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
                // Drop an answer about an earlier process of this slot.
                latest = (subject.slot == slot && subject.generation == task.generation)
                    .then_some(texts);
            }
            let texts = latest;
            for (i, track) in self.identity.iter_mut().enumerate() {
                let text = texts.as_ref().map(|texts| &texts[i]);
                // Most processes are in no container: of those nothing is recorded.
                let is_outside = identity::KINDS[i] == kind::PID_CONTAINER
                    && track.template(slot).is_none()
                    && text.is_none_or(|text| text.as_ref().is_ok_and(Vec::is_empty));
                if is_outside {
                    continue;
                }
                match text {
                    Some(Ok(text)) => {
                        let cut = self.plan.redact && identity::KINDS[i] == kind::PID_CMDLINE;
                        track.read(slot, if cut { first_word(text) } else { text });
                        track.pack(slot);
                    }
                    Some(Err(errno)) => track.failed(slot, *errno),
                    None => track.unread(slot, Why::NotDue),
                }
            }
        }
        drop(answers);
        // The first scan asks about all tasks, later scans about few.
        self.answers.shrink_to(ANSWERS_ROOM);
        self.questions.shrink_to(ANSWERS_ROOM);
        true
    }

    /// The sections of stat, io and status.
    pub(crate) fn sections(&mut self) -> [(u8, &[u8]); 3] {
        let [stat, io, status] = self.kinds();
        [
            (stat, self.stat.end()),
            (io, self.io.end()),
            (status, self.status.end()),
        ]
    }

    /// The sections of cmdline, cgroup, exe and, where there are containers, container.
    pub(crate) fn identity_sections(&mut self) -> impl Iterator<Item = (u8, &[u8])> {
        let tracks = self.identity.iter_mut().map(TrackWriter::end);
        let sections = identity::KINDS.into_iter().zip(tracks);
        sections.filter(|&(kind, section)| kind != kind::PID_CONTAINER || !section.is_empty())
    }

    /// Removes and returns the pids that another process has taken over.
    pub(crate) fn take_reborn(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.reborn)
    }

    /// State and number of threads of each task, by its last read.
    pub(crate) fn states(&self) -> impl Iterator<Item = (u8, u64)> {
        let tasks = self.tasks.iter().flatten();
        tasks.map(|task| (task.state, task.size[0]))
    }

    /// Number of tasks with a file that the sampler may not read.
    pub(crate) fn forbidden(&self) -> usize {
        let files = self.tasks.iter().flatten();
        files
            .filter(|task| {
                Part::ALL
                    .iter()
                    .any(|&part| task.handle.forbidden(part) != 0)
            })
            .count()
    }

    /// Number of files kept open.
    pub(crate) fn kept(&self) -> usize {
        let handles = self.tasks.iter().flatten().map(|task| &task.handle);
        let kept: u64 = handles.map(Handle::kept).sum();
        usize::try_from(kept).unwrap_or(usize::MAX)
    }
}

impl<H: Handle> Task<H> {
    /// Forgets the ended process: the start time shows that another process has its number now.
    fn begin_anew(&mut self) {
        self.status_at_ns = None;
        self.sightings = 1;
        self.handle.retry();
    }
}

/// Records a read text; returns true if it differs from the last one.
fn record(track: &mut TrackWriter, slot: usize, result: Result<(), u16>, text: &[u8]) -> bool {
    match result {
        Ok(()) => track.read(slot, text),
        Err(errno) => {
            track.failed(slot, errno);
            false
        }
    }
}

/// The first word of a command line.
fn first_word(cmdline: &[u8]) -> &[u8] {
    cmdline
        .split(|&b| b == 0 || b == b' ')
        .next()
        .unwrap_or_default()
}

/// Positions of the marks of change in the values of stat: state, size (threads, vsize, rss) and exec (start time, comm,
/// startstack, arg_start, arg_end).
#[derive(Clone, Copy)]
struct Places {
    state: Option<usize>,
    size: [Option<usize>; 3],
    exec: [Option<usize>; 5],
}

/// Values that change when a task grows or becomes another program.
#[derive(Clone, Copy)]
struct Marks {
    size: [u64; 3],
    exec: [u64; 5],
    state: u8,
}

#[derive(Default)]
struct PlacesCache(Vec<(Arc<Template>, Places)>);

impl PlacesCache {
    fn of(&mut self, track: &TrackWriter, slot: usize) -> Option<Places> {
        let template = track.template(slot)?;
        let mut all = self.0.iter();
        if let Some((_, places)) = all.find(|(known, _)| Arc::ptr_eq(known, template)) {
            return Some(*places);
        }
        let places = Places::of(template);
        self.0.truncate(kymo_base::limits::TEMPLATES_MAX);
        self.0.push((template.clone(), places));
        Some(places)
    }

    fn marks(&mut self, track: &TrackWriter, slot: usize) -> Option<Marks> {
        let places = self.of(track, slot)?;
        let value = |place: Option<usize>| place.and_then(|i| track.value(slot, i)).unwrap_or(0);
        let state = places.state.and_then(|i| track.value(slot, i));
        let state = state.and_then(|word| track.word(word).first().copied());
        Some(Marks {
            size: places.size.map(value),
            exec: places.exec.map(value),
            state: state.unwrap_or(0),
        })
    }

    /// Returns true if the task neither runs nor is ready to. A task
    /// with threads qualifies only if its account covers all of them.
    fn is_waiting(&mut self, track: &TrackWriter, slot: usize, counts_threads: bool) -> bool {
        let Some(places) = self.of(track, slot) else {
            return false;
        };
        let value = |place: Option<usize>| place.and_then(|i| track.value(slot, i));
        let state = value(places.state).map(|word| track.word(word));
        let waits = state.is_some_and(|state| !state.is_empty() && state != b"R");
        waits && (counts_threads || value(places.size[0]) == Some(1))
    }
}

impl Places {
    /// Finds fields by their numbers in proc(5): after `pid ( comm )`, field n is piece n + 1.
    fn of(template: &Template) -> Places {
        let lines = template.lines();
        let piece = |n: usize| match lines.first().and_then(|line| line.get(n)) {
            Some(Piece::Slot(slot)) => Some(*slot),
            _ => None,
        };
        Places {
            state: piece(3 + 1),
            size: [20, 23, 24].map(|field| piece(field + 1)),
            exec: [
                piece(22 + 1),
                piece(2),
                piece(28 + 1),
                piece(48 + 1),
                piece(49 + 1),
            ],
        }
    }
}
