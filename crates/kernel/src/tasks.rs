//! Processes, or threads: who is there, and when each is due to be read. The files of those that
//! run are kept open: a kept file belongs to one process for ever, and answers ESRCH after its
//! death, never with another's numbers. Most processes sleep, and none of their files is open.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use kymo_base::limits;
use kymo_base::template::{Grammar, Piece, Template};
use kymo_base::track::Why;
use kymo_base::track_writer::TrackWriter;
use kymo_sys::clock::Clock;
use kymo_sys::kernel_file::{KernelFile, Root};

use crate::backoff::{Allowance, Backoff, SlowReads};
use crate::identity::{self, Lane, Subject, Texts};
use crate::idle::{self, Accounts, Reclaim, Rest};
use crate::reader::{GONE, errno_of, read_whole};
use crate::source::{Scope, kind};

/// Policy for reads of `status`.
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
/// Age of the identity of a task that has not run since: it cannot have changed its title, but others may have changed its cgroup.
const IDENTITY_AGE_AT_REST_NS: u64 = 600_000_000_000;
/// EACCES and EPERM: the file is not for us, and will not be at the next scan either.
const FORBIDDEN: [u16; 2] = [13, 1];

/// The files kept open by all tables, and how many more may be.
pub struct Budget {
    /// Files that may still be opened and kept.
    pub left: u64,
}

/// Arguments of a scan.
pub struct Scan<'a> {
    /// Where the files are.
    pub root: &'a Root,
    /// For the price of each read.
    pub clock: &'a dyn Clock,
    /// The time by which ages are counted (at `-i0` it runs faster).
    pub age_ns: u64,
    /// Limits of a read's time.
    pub allowance: Allowance,
}

/// Time of the reads of stat, io and status, in ns.
pub type Costs = [u64; 3];
/// Room that is kept for questions of who a process is, and answers.
const ANSWERS_ROOM: usize = 256;
/// Texts of as many tasks take 4 MB.
const TEXTS_MAX: usize = 1000;
/// Slow reads that one scan reports.
const SLOW_TOLD_MAX: usize = 16;

struct Task {
    pid: u32,
    name: Arc<str>,
    generation: u64,
    stat: File,
    io: File,
    schedstat: File,
    rest: Rest,
    seen: u64,
    sightings: u8,
    status_at_ns: Option<u64>,
    identity_at_ns: u64,
    size: [u64; 3],
    exec: [u64; 5],
    /// The task's size changed since the last read of `status`.
    grown: bool,
    backoff: Backoff,
}

/// Decides whether an opened file stays open.
enum Keeping<'a> {
    Not,
    Within(&'a mut Budget),
}

impl Keeping<'_> {
    fn when(keeps: bool, budget: &mut Budget) -> Keeping<'_> {
        match keeps {
            true => Keeping::Within(budget),
            false => Keeping::Not,
        }
    }
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
    /// Among more tasks than these the ones at rest have no texts.
    texts_max: usize,
    stat: TrackWriter,
    io: TrackWriter,
    status: TrackWriter,
    /// cmdline, cgroup, exe.
    identity: [TrackWriter; 3],
    places: PlacesCache,
    accounts: Accounts,
    reclaim: Reclaim,
    /// The kernel takes memory away from processes.
    reclaims: bool,
    texts: [Vec<u8>; 2],
    questions: Vec<Subject>,
    answers: Vec<(Subject, Texts)>,
    /// Pids whose number another process has taken since [`Tasks::take_reborn`].
    reborn: Vec<u32>,
}

/// Tasks of this scan: pid and, for threads, tid.
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
            texts_max: TEXTS_MAX,
            stat: TrackWriter::new(Grammar::Stat),
            io: TrackWriter::new(Grammar::Plain),
            status: TrackWriter::new(Grammar::Keyed),
            identity: std::array::from_fn(|_| TrackWriter::new(Grammar::Word)),
            places: PlacesCache::default(),
            accounts: Accounts::default(),
            reclaim: Reclaim::default(),
            reclaims: true,
            texts: [Vec::with_capacity(4096), Vec::with_capacity(4096)],
            questions: Vec::new(),
            answers: Vec::new(),
            reborn: Vec::new(),
        }
    }

    /// Kinds of this table's tracks: stat, io, status.
    pub fn kinds(&self) -> [u8; 3] {
        match self.scope {
            Scope::Thread => [kind::TID_STAT, kind::TID_IO, kind::TID_STATUS],
            _ => [kind::PID_STAT, kind::PID_IO, kind::PID_STATUS],
        }
    }

    /// Keeps no texts of a task at rest, where tasks are many: a comparison with packed values takes twenty times the
    /// instructions of one with a text.
    fn rest(&mut self, slot: usize) {
        if self.slots.len() > self.texts_max {
            self.stat.pack(slot);
            self.io.pack(slot);
        }
    }

    /// Number of tasks.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if there are no tasks.
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

    /// Takes the tasks of a listing: ended tasks leave, new tasks get a slot.
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
        let pid = id.0;
        let name = match self.scope {
            Scope::Thread => format!("{}/task/{}", id.0, id.1),
            _ => id.0.to_string(),
        };
        self.place(slot, pid, name.into());
        slot
    }

    /// Puts a new task in a slot, in all tracks.
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
            pid,
            name,
            generation: self.generation,
            stat: File::default(),
            io: File::default(),
            schedstat: File::default(),
            rest: Rest::default(),
            seen: self.scan,
            sightings: 0,
            status_at_ns: None,
            identity_at_ns: 0,
            size: [0; 3],
            exec: [0; 5],
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
            budget.left += task.kept();
        }
        self.free.push(Reverse(slot));
    }

    /// Reads every task; what that cost, and which reads were slow.
    pub fn read(&mut self, scan: &Scan, budget: &mut Budget, slow: &mut SlowReads) -> Costs {
        let mut costs = Costs::default();
        let told = slow.found.len();
        // A thread's row is of its process, too: it changes while the thread is idle.
        let accounts = match self.scope {
            Scope::Process => self.accounts.are_kept(scan.root),
            _ => None,
        };
        self.reclaims = accounts.is_some() && self.reclaim.goes_on(scan.root);
        for slot in 0..self.tasks.len() {
            let Some(task) = &mut self.tasks[slot] else {
                continue;
            };
            if !task.backoff.is_due() {
                self.unread(slot, Why::Slow);
                continue;
            }
            let rest = accounts.and_then(|from| self.read_at_rest(slot, scan, budget, from));
            let cost = match rest {
                Some(cost) => cost,
                None => self.read_task(slot, scan, budget),
            };
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
        let judged = slow.judge(scan.clock, cost_ns, again);
        if let Some(stride) = task.backoff.doubt(judged, &scan.allowance) {
            slow.note(path, judged, stride);
        }
    }

    /// Repeats the last texts of a task that has not run since; `None`: the task has run, or may have.
    fn read_at_rest(
        &mut self,
        slot: usize,
        scan: &Scan,
        budget: &mut Budget,
        from: idle::AccountSource,
    ) -> Option<Costs> {
        let task = self.tasks[slot].as_deref_mut()?;
        if !task
            .rest
            .is_likely(task.generation, scan.age_ns, self.reclaims)
        {
            return None;
        }
        let start_ns = scan.clock.mono_ns();
        let account = match from {
            idle::AccountSource::Clock => idle::clock_account(scan.root, task.pid),
            idle::AccountSource::File => {
                let text = &mut self.texts[0];
                let file = &mut task.schedstat;
                let read = file.read(
                    scan.root,
                    &task.name,
                    "schedstat",
                    Keeping::Within(budget),
                    text,
                );
                read.ok().and_then(|()| idle::file_account(text))
            }
        };
        if !task.rest.goes_on(account?) {
            return None;
        }
        budget.left += task.stat.close() + task.io.close();
        let forbidden = task.io.forbidden;
        let cost_ns = scan.clock.mono_ns() - start_ns;
        if !self.stat.same(slot) {
            return None;
        }
        self.rest(slot);
        if self.plan.io && !self.io.same(slot) {
            self.io.failed(slot, forbidden);
        }
        self.ask_identity(slot, None, scan.age_ns);
        let status_ns = self.read_status(slot, None, scan);
        Some([cost_ns, 0, status_ns])
    }

    fn read_task(&mut self, slot: usize, scan: &Scan, budget: &mut Budget) -> Costs {
        let Some(task) = &mut self.tasks[slot] else {
            return Costs::default();
        };
        let [stat_text, io_text] = &mut self.texts;
        // Most processes sleep from the first sight on.
        let runs = task.sightings >= 2 && !task.rest.is_still();
        let keeps = runs || self.scope != Scope::Process || self.accounts.are_missing();
        let start_ns = scan.clock.mono_ns();
        let mut stat = task.stat.read(
            scan.root,
            &task.name,
            "stat",
            Keeping::when(keeps, budget),
            stat_text,
        );
        if stat.is_err_and(|errno| GONE.contains(&errno)) && task.stat.kept.take().is_some() {
            // The kept file's process is dead, but its number is listed: another has it now.
            let (pid, name) = (task.pid, task.name.clone());
            budget.left += 1 + task.kept();
            self.reborn.push(pid);
            self.place(slot, pid, name);
            return self.read_task(slot, scan, budget);
        }
        let stat_ns = scan.clock.mono_ns();
        let io = if self.plan.io {
            let keep = Keeping::when(keeps, budget);
            task.io.read(scan.root, &task.name, "io", keep, io_text)
        } else {
            Ok(())
        };
        let io_ns = scan.clock.mono_ns();
        if stat.is_ok() && stat_text.is_empty() {
            stat = Err(GONE[0]);
        }
        let changed = record(&mut self.stat, slot, stat, stat_text);
        let mut is_still = stat.is_ok() && !changed;
        if self.plan.io {
            is_still &= !record(&mut self.io, slot, io, io_text);
            is_still &= io.is_ok() || task.io.forbidden != 0;
        }
        let counts_threads = scan.root.has_own_pids();
        is_still = is_still && self.places.is_waiting(&self.stat, slot, counts_threads);
        task.rest.was_read(scan.age_ns, is_still);
        let marks = if changed {
            self.places.marks(&self.stat, slot)
        } else {
            None
        };
        if !keeps {
            self.rest(slot);
        }
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
            let is_another = task.sightings > 1 && marks.exec[0] != task.exec[0];
            task.exec = marks.exec;
            if is_another {
                task.begin_anew();
                self.reborn.push(task.pid);
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
        self.status.pack(slot);
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
                // An answer about an earlier process of this slot is dropped.
                latest = (subject.slot == slot && subject.generation == task.generation)
                    .then_some(texts);
            }
            let texts = latest;
            for (i, track) in self.identity.iter_mut().enumerate() {
                match texts.as_ref().map(|texts| &texts[i]) {
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

    /// Takes the pids whose number another process has taken.
    pub(crate) fn take_reborn(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.reborn)
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
        let kept: u64 = self.tasks.iter().flatten().map(|task| task.kept()).sum();
        usize::try_from(kept).unwrap_or(usize::MAX)
    }
}

impl Task {
    /// Forgets the dead process: by the start time, another process has the number now.
    fn begin_anew(&mut self) {
        self.status_at_ns = None;
        self.sightings = 1;
        self.io.forbidden = 0;
        self.stat.forbidden = 0;
    }

    fn kept(&self) -> u64 {
        let files = [&self.stat, &self.io, &self.schedstat];
        files
            .map(|file| u64::from(file.kept.is_some()))
            .iter()
            .sum()
    }
}

/// Puts a read text into its track; true if the text differs from the last one.
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
        keep: Keeping,
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        if let Some(kept) = &self.kept {
            return read_whole(kept, &mut self.confirmed, out);
        }
        if self.forbidden != 0 {
            return Err(self.forbidden);
        }
        let result = self.open_and_read(root, &format!("proc/{task}/{file}"), keep, out);
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
        keep: Keeping,
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        let opened = root.file(path).map_err(errno_of)?;
        read_whole(&opened, &mut self.confirmed, out)?;
        if let Keeping::Within(budget) = keep
            && root.keeps_files()
            && budget.left > 0
        {
            budget.left -= 1;
            self.kept = Some(opened);
        }
        Ok(())
    }

    /// Closes it; how many files that were.
    fn close(&mut self) -> u64 {
        u64::from(self.kept.take().is_some())
    }
}

/// A command line without its arguments.
fn first_word(cmdline: &[u8]) -> &[u8] {
    cmdline
        .split(|&b| b == 0 || b == b' ')
        .next()
        .unwrap_or_default()
}

/// Where the marks of change are in the values of stat: state, size (threads, vsize, rss) and
/// exec (start time, comm, startstack, arg_start, arg_end).
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
        Some(Marks {
            size: places.size.map(value),
            exec: places.exec.map(value),
        })
    }

    /// True if the task neither runs nor wants to. A task with threads counts only where its account counts all of them.
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
    /// Fields by their numbers in proc(5): after `pid ( comm )`, field n is piece n + 1.
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

#[cfg(test)]
mod tests {
    use super::*;

    use crate::tests::MadeRoot;

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
            (exec[0], track.word(exec[1]), &exec[2..]),
            (2200, &b"a b"[..], &[2800, 4800, 4900][..])
        );
    }

    /// A made-up proc with one process, whose files say what the test wants.
    struct Proc {
        made: MadeRoot,
        tasks: Tasks,
        scans: u64,
    }

    impl Proc {
        fn new() -> Proc {
            let plan = TaskPlan {
                io: true,
                ..TaskPlan::default()
            };
            let proc = Proc {
                made: MadeRoot::new(),
                tasks: Tasks::new(Scope::Process, plan),
                scans: 0,
            };
            proc.say("7/io", "rchar: 1\n");
            proc.say("7/status", "Name:\ta\n");
            proc
        }

        fn say(&self, file: &str, text: &str) {
            self.made.write(&format!("proc/{file}"), text);
        }

        /// The ticks that are recorded of stat, a second after the scan before.
        fn scan(&mut self, state: &str, threads: u32, ticks: u32, account: &str) -> Option<u64> {
            self.scans += 1;
            self.say("thread-self/schedstat", &format!("{} 1 1\n", self.scans));
            self.say("7/schedstat", account);
            let zeros = "0 ".repeat(32);
            let stat = format!(
                "7 (a) {state} 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 {threads} {zeros}0\n"
            );
            self.say("7/stat", &stat);
            let scan = Scan {
                root: &self.made.root,
                clock: &kymo_sys::clock::RealClock,
                age_ns: self.scans * 1_000_000_000,
                allowance: Allowance {
                    slow_ns: u64::MAX,
                    interval_ns: 0,
                    longest_ns: 0,
                    backoff: false,
                },
            };
            let mut budget = Budget { left: 10 };
            self.tasks.begin(self.scans == 1);
            self.tasks.update(&vec![(7, 0)], &mut budget);
            self.tasks
                .read(&scan, &mut budget, &mut SlowReads::default());
            let _sections = self.tasks.sections();
            // Field 14 of proc(5); -1 before it is no value.
            self.tasks.stat.value(0, 12)
        }
    }

    /// Children that sleep until the test is over, each with a live row in a table of the real `/proc`.
    struct Sleepers {
        children: Vec<std::process::Child>,
        root: Root,
        tasks: Tasks,
        scans: u64,
    }

    impl Drop for Sleepers {
        fn drop(&mut self) {
            for child in &mut self.children {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }

    impl Sleepers {
        fn new(count: usize) -> Sleepers {
            let sleeper = || {
                let mut command = std::process::Command::new("sleep");
                command.arg("3600").spawn().expect("a sleeper")
            };
            let plan = TaskPlan {
                io: true,
                ..TaskPlan::default()
            };
            Sleepers {
                children: std::iter::repeat_with(sleeper).take(count).collect(),
                root: Root::open(std::path::Path::new("/")).expect("a root"),
                tasks: Tasks::new(Scope::Process, plan),
                scans: 0,
            }
        }

        /// How many files are open after a scan, and the bytes of the three sections.
        fn scan(&mut self) -> (usize, usize) {
            self.scans += 1;
            let scan = Scan {
                root: &self.root,
                clock: &kymo_sys::clock::RealClock,
                // So slow that no row grows old.
                age_ns: self.scans,
                allowance: Allowance {
                    slow_ns: u64::MAX,
                    interval_ns: 0,
                    longest_ns: 0,
                    backoff: false,
                },
            };
            let listing = self.children.iter().map(|child| (child.id(), 0)).collect();
            let mut budget = Budget { left: 1000 };
            self.tasks.begin(self.scans == 1);
            self.tasks.update(&listing, &mut budget);
            self.tasks
                .read(&scan, &mut budget, &mut SlowReads::default());
            let sections = self.tasks.sections();
            let bytes = sections.iter().map(|(_, section)| section.len()).sum();
            (self.tasks.kept(), bytes)
        }

        /// True if packed values stand for all texts.
        fn are_packed(&self) -> bool {
            let tracks = [&self.tasks.stat, &self.tasks.io, &self.tasks.status];
            let mut slots = 0..self.children.len();
            slots.all(|slot| tracks.iter().all(|track| track.is_packed(slot)))
        }

        /// Whether no row was read in the last scan, but for the first two.
        fn all_rest(&self) -> bool {
            let tasks = self.tasks.tasks.iter().flatten();
            let mut ages = tasks.map(|task| task.rest.age_ns(self.scans));
            self.scans > 3 && ages.all(|age| age > 0)
        }
    }

    /// 5,000 sleeping processes once held 4,096 open files, 5 kB of the kernel's memory each, and those beyond were opened,
    /// read and closed at each scan. Their texts took 5 kB a process.
    #[test]
    fn a_sleeping_process_has_no_open_file_and_no_text_and_is_not_read() {
        let mut sleepers = Sleepers::new(8);
        if !sleepers.root.has_own_pids() {
            return kymo_sys::skipped::skipped("/proc has the pids of another namespace");
        }
        sleepers.tasks.texts_max = 7;
        let settled = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let scans = [sleepers.scan(), sleepers.scan()];
            // One run for stat and io each: nothing moved.
            scans.iter().all(|&(open, bytes)| open == 0 && bytes <= 8)
                && sleepers.all_rest()
                && sleepers.are_packed()
        });
        assert!(settled, "{:?}", sleepers.scan());
    }

    #[test]
    fn a_process_that_has_not_run_is_not_read_and_one_that_has_is() {
        let mut proc = Proc::new();
        for _ in 0..4 {
            assert_eq!(proc.scan("S", 1, 5, "9 1 1\n"), Some(5));
        }
        // The kernel would not say this: it shows that stat was not read.
        assert_eq!(proc.scan("S", 1, 6, "9 1 1\n"), Some(5));
        assert_eq!(proc.scan("S", 1, 6, "9 1 2\n"), Some(6));
        for scan in 0..4 {
            assert_eq!(proc.scan("S", 1, 6, "9 1 2\n"), Some(6), "{scan}");
        }
        // A row is read again within a minute, come what may.
        let stale = (0..70).take_while(|_| proc.scan("S", 1, 7, "9 1 2\n") == Some(6));
        let stale = stale.count();
        assert!((25..60).contains(&stale), "{stale} s");
    }

    #[test]
    fn only_what_the_scheduler_tells_of_is_skipped() {
        for (state, threads, account) in [
            ("R", 1, "9 1 1\n"),
            ("S", 2, "9 1 1\n"),
            ("S", 1, "0 0 0\n"),
            ("S", 1, ""),
        ] {
            let mut proc = Proc::new();
            for _ in 0..4 {
                proc.scan(state, threads, 5, account);
            }
            let ticks = proc.scan(state, threads, 6, account);
            assert_eq!(ticks, Some(6), "{state} {threads} {account:?}");
        }
    }
}
