//! All publishers of the folder, and the state of each.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;

use kymo_base::limits::SHM_USER_NAMES_MAX;
use kymo_base::name::DisplayName;
use kymo_shm::{OpenError, Scratch};
use kymo_store::Store;
use kymo_wire::keeper;

use super::answer::Answering;
use super::answer_bytes::add_retired_bytes;
use super::budgets::{Budgets, Excess};
use super::folder::Folder;
use super::publisher::{Moment, Publisher};
use super::quota::{Sweep, Swept};
use super::recording::Recording;
use super::retired::{Doubt, Legacy, Retired};
use super::series::Table;
use super::servers::{Servers, Sessions};

/// Time after which names that are not read are tried again.
const AGAIN_NS: u64 = 60_000_000_000;
/// Time for which damaged totals are in doubt. It exceeds the heartbeat (60 s) and a step (10 s) of the series, so that
/// afterwards no series has a value left to compute a rate from.
const DOUBT_NS: u64 = 70_000_000_000;

/// Time between two checks for removed series of users at their limit.
const ROOM_EVERY_NS: u64 = 9_000_000_000;

/// Reason for not reading a name.
enum NotRead {
    /// The owner of the name has reached a limit.
    Waits(u32),
    /// The file is not a publisher's, or went bad.
    Bad,
    /// The totals were taken over, and the file cannot be removed.
    TakenOver,
}

/// State of the collector.
pub(super) struct Collection {
    folder: Folder,
    users: HashMap<u32, String>,
    publishers: BTreeMap<OsString, Publisher>,
    not_read: HashMap<OsString, NotRead>,
    tried_ns: u64,
    /// Time of the last check for removed series.
    room_ns: u64,
    table: Table,
    retired: Retired,
    /// End of the doubt about damaged totals.
    settled_ns: Option<u64>,
    budgets: Budgets,
    scratch: Scratch,
    /// Recording of the programs' activity; `None`: it is not recorded.
    recording: Option<Recording>,
    /// Sessions of database servers.
    pub(super) servers: Servers,
    read_ns: u64,
    /// Duration of the last look at the folder; 0 after a look that removed files.
    look_ns: u64,
    /// Logged messages, which are not logged again.
    reported: BTreeSet<String>,
    /// Messages to be logged.
    pending: Vec<String>,
}

impl Collection {
    pub(super) fn new(
        folder: Folder,
        retired: Retired,
        users: HashMap<u32, String>,
        recording: Option<Recording>,
    ) -> Collection {
        let mut budgets = Budgets::default();
        for (_, total) in retired.totals() {
            budgets.add_series(total.uid, 0, total.cells.len());
        }
        Collection {
            folder,
            users,
            publishers: BTreeMap::new(),
            not_read: HashMap::new(),
            tried_ns: 0,
            room_ns: 0,
            table: Table::default(),
            retired,
            settled_ns: None,
            budgets,
            scratch: Scratch::default(),
            recording,
            servers: Servers::default(),
            read_ns: 0,
            look_ns: 0,
            reported: BTreeSet::new(),
            pending: Vec::new(),
        }
    }

    /// A file that becomes readable when the folder changes.
    pub(super) fn watch(&self) -> io::Result<Option<OwnedFd>> {
        let watch = self.folder.watch();
        watch.map(|watch| watch.try_clone_to_owned()).transpose()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.publishers.is_empty() && self.servers.is_empty()
    }

    pub(super) fn look_ns(&self) -> u64 {
        self.look_ns
    }

    fn user(users: &HashMap<u32, String>, uid: u32) -> Vec<u8> {
        let name = users.get(&uid).cloned();
        name.unwrap_or_else(|| uid.to_string()).into_bytes()
    }

    /// Looks for new and removed files.
    pub(super) fn look(&mut self, now: Moment) {
        self.folder.forget_news();
        let is_swept = self.sweep();
        let names = match self.folder.names() {
            Ok(names) => names,
            Err(error) => return self.once(format!("cannot list what programs publish: {error}")),
        };
        if now.mono_ns.saturating_sub(self.tried_ns) > AGAIN_NS {
            self.not_read.clear();
            self.tried_ns = now.mono_ns;
            self.folder.remove_unfinished(now.real_ns / 1_000_000_000);
        }
        let is_there = |name: &OsStr| names.binary_search_by(|each| (**each).cmp(name)).is_ok();
        self.not_read.retain(|name, _| is_there(name));
        for (name, publisher) in &mut self.publishers {
            if !is_there(name) {
                publisher.end();
            }
        }
        for name in &names {
            if !self.publishers.contains_key(name) && !self.not_read.contains_key(name) {
                self.open(name, now);
            }
        }
        let took_ns = super::moment().mono_ns.saturating_sub(now.mono_ns);
        // After a sweep a user may fill the folder again, so the collector looks again soon.
        self.look_ns = if is_swept { 0 } else { took_ns };
    }

    /// Removes names and files beyond users' quotas; true if it removed any. Counts of files that were read stay known.
    fn sweep(&mut self) -> bool {
        let Sweep { users, nameless } = self.folder.sweep();
        for Swept { uid, removed, left } in &users {
            // Logged once, as are unreadable files.
            self.budgets
                .count_some(*uid, Excess::Files, *removed as u64);
            if *left > 0 {
                let user = Self::user(&self.users, *uid);
                self.once(format!(
                    "user {} has more than he may where programs publish, in folders: remove them (as root: rm -r)",
                    DisplayName(&user)
                ));
            }
        }
        if usize::try_from(nameless).is_ok_and(|count| count > SHM_USER_NAMES_MAX) {
            self.once(
                "more than 1,024 files where programs publish have no name there and take room of all: they are in folders, or somebody \
                 holds them open (lsof +L1)"
                    .into(),
            );
        }
        users.iter().any(|user| user.removed > 0)
    }

    fn open(&mut self, name: &OsStr, now: Moment) {
        let mut publisher = match Publisher::open(&self.folder, name) {
            Ok(publisher) => publisher,
            // The file was removed meanwhile.
            Err(OpenError::System { cause, .. }) if cause == rustix::io::Errno::NOENT => {
                return;
            }
            Err(error) => return self.refuse(name, &error),
        };
        if self.retired.knows(&publisher.header().epoch) {
            if !self.folder.remove(name) {
                self.not_read.insert(name.into(), NotRead::TakenOver);
            }
            return;
        }
        let uid = publisher.uid();
        if self.budgets.take_file(uid, publisher.size).is_err() {
            self.not_read.insert(name.into(), NotRead::Waits(uid));
            return;
        }
        if publisher.scan(&mut self.scratch, now).is_err() {
            self.budgets.give_file(uid, publisher.size);
            self.budgets.count(uid, Excess::Bad);
            self.not_read.insert(name.into(), NotRead::Bad);
            return;
        }
        let user = Self::user(&self.users, uid);
        publisher.join(&mut self.table, &user, &mut self.budgets, &self.retired);
        self.sample_one(&mut publisher, now);
        self.publishers.insert(name.into(), publisher);
    }

    fn refuse(&mut self, name: &OsStr, error: &OpenError) {
        self.not_read.insert(name.into(), NotRead::Bad);
        match self.folder.owner(name) {
            // Counted by owner, and logged once for each owner.
            Some(uid) => self.budgets.count(uid, Excess::Bad),
            None => self.once(format!("cannot read a publisher's file: {error}")),
        }
    }

    fn once(&mut self, line: String) {
        if self.reported.insert(line.clone()) {
            self.pending.push(line);
        }
    }

    /// Reads and samples if the last reading is older than `fresh_ns`.
    pub(super) fn refresh(&mut self, now: Moment, fresh_ns: u64) {
        if now.mono_ns.saturating_sub(self.read_ns) >= fresh_ns {
            self.read(now);
            self.sample(now);
        }
    }

    /// Reads all cells, and takes over totals of ended programs.
    pub(super) fn read(&mut self, now: Moment) {
        self.read_ns = now.mono_ns;
        let mut bad = Vec::new();
        for (name, publisher) in &mut self.publishers {
            let_grow(publisher, &mut self.budgets);
            if publisher.scan(&mut self.scratch, now).is_err() {
                bad.push(name.clone());
                continue;
            }
            let user = Self::user(&self.users, publisher.uid());
            publisher.join(&mut self.table, &user, &mut self.budgets, &self.retired);
        }
        for name in bad {
            if let Some(uid) = self.drop_publisher(&name) {
                self.budgets.count(uid, Excess::Bad);
                self.not_read.insert(name, NotRead::Bad);
            }
        }
        self.settle(now);
        self.take_over();
        self.table.begin();
        for publisher in self.publishers.values() {
            publisher.add(&mut self.table);
        }
    }

    /// After a while, goes on with the readable totals of a damaged file. A keeper that starts before that finds the
    /// damage as well.
    fn settle(&mut self, now: Moment) {
        if self.retired.doubt() != Doubt::Damaged {
            return;
        }
        let settled_ns = *self.settled_ns.get_or_insert(now.mono_ns + DOUBT_NS);
        if now.mono_ns >= settled_ns
            && let Err(error) = self.retired.settle()
        {
            self.once(format!(
                "cannot write totals of ended programs again: {error}"
            ));
        }
    }

    /// Writes totals of ended programs to the disk, then removes their files. While totals are in doubt the files
    /// stay, and count.
    fn take_over(&mut self) {
        if self.retired.doubt() != Doubt::None {
            return;
        }
        let ended = self.publishers.iter().filter(|(_, each)| each.has_ended());
        let (names, legacies): (Vec<OsString>, Vec<Legacy>) = ended
            .map(|(name, publisher)| (name.clone(), publisher.legacy(&self.table)))
            .unzip();
        if names.is_empty() {
            return;
        }
        if let Err(error) = self.retired.take_over(legacies) {
            // The files stay, are read again, and count meanwhile.
            return self.once(format!(
                "cannot keep totals of programs that have ended: {error}"
            ));
        }
        for name in names {
            self.drop_publisher(&name);
            if !self.folder.remove(&name) {
                self.not_read.insert(name, NotRead::TakenOver);
            }
        }
    }

    /// Drops a publisher and returns its owner. Other files of the owner may have room now.
    fn drop_publisher(&mut self, name: &OsStr) -> Option<u32> {
        let publisher = self.publishers.remove(name)?;
        let uid = publisher.uid();
        publisher.leave(&mut self.table, &mut self.budgets);
        self.not_read
            .retain(|_, why| !matches!(why, NotRead::Waits(waiting) if *waiting == uid));
        Some(uid)
    }

    /// Counts the series that the store has, before any file is read.
    pub(super) fn learn(&mut self, store: &Store) {
        let named = self.users.iter();
        let named: HashMap<&[u8], u32> = named.map(|(uid, name)| (name.as_bytes(), *uid)).collect();
        let owner = |user: &[u8]| {
            let number = || std::str::from_utf8(user).ok()?.parse().ok();
            named.get(user).copied().or_else(number)
        };
        self.table.learn(store, owner, &mut self.budgets);
    }

    /// Writes a value to each series.
    pub(super) fn write(&mut self, store: &Store, now: Moment) -> Result<(), String> {
        let written = self.table.write(store, &self.retired, now.real_ns);
        self.table.sweep(&mut self.budgets, &self.retired);
        if now.mono_ns.saturating_sub(self.room_ns) >= ROOM_EVERY_NS {
            self.room_ns = now.mono_ns;
            for uid in self.budgets.users_who_want_series() {
                self.make_room(store, uid);
            }
        }
        written
    }

    /// If series of a user at the limit are gone, begins refused series of the same user.
    fn make_room(&mut self, store: &Store, uid: u32) {
        let Collection {
            table,
            budgets,
            retired,
            publishers,
            ..
        } = self;
        if !table.forget_removed(store, uid, budgets, retired) {
            return;
        }
        budgets.wants_no_series(uid);
        let user = Self::user(&self.users, uid);
        for publisher in publishers.values_mut().filter(|each| each.uid() == uid) {
            publisher.join_again(table, &user, budgets, retired);
        }
    }

    /// Samples the activity of slots.
    pub(super) fn sample(&mut self, now: Moment) {
        let mut publishers = std::mem::take(&mut self.publishers);
        for publisher in publishers.values_mut() {
            self.sample_one(publisher, now);
        }
        self.publishers = publishers;
    }

    fn sample_one(&mut self, publisher: &mut Publisher, now: Moment) {
        let uid = publisher.uid();
        let_grow(publisher, &mut self.budgets);
        if self.budgets.may_read_texts(uid, now.mono_ns) {
            // The next scan finds a file that went bad.
            let copied = publisher.sample(&mut self.scratch, now).unwrap_or(0);
            self.budgets.read_texts(uid, copied);
        }
    }

    /// Sends the activity of slots to the recorder, if that is due.
    pub(super) fn record(&mut self, now: Moment) {
        let Some(mut recording) = self.recording.take_if(|recording| recording.is_due(now)) else {
            return;
        };
        recording.say(self.at_work(now), now);
        if recording.take_news() {
            self.once("cannot record what programs do: the recorder does not take it".into());
        }
        self.recording = Some(recording);
    }

    /// Most bytes that a complete answer needs, by user.
    fn wanted(
        &self,
        texts: bool,
        sessions: &Sessions,
        bytes: impl Fn(&Publisher, bool) -> usize,
    ) -> BTreeMap<u32, usize> {
        let mut wanted = BTreeMap::new();
        for publisher in self.publishers.values() {
            *wanted.entry(publisher.uid()).or_default() += bytes(publisher, texts);
        }
        for (uid, bytes) in sessions.bytes(texts) {
            *wanted.entry(uid).or_default() += bytes;
        }
        wanted
    }

    /// Publishers with their activity as in answers, without metrics, by the epochs of their files.
    fn at_work(&self, now: Moment) -> Vec<([u8; 16], keeper::Publisher)> {
        let mut found = Vec::new();
        let sessions = self.servers.current(now);
        let wanted = self.wanted(true, &sessions, Publisher::described_bytes);
        let mut answering = Answering::new(true, now, sessions, &wanted);
        for publisher in self.publishers.values() {
            let user = Self::user(&self.users, publisher.uid());
            answering.add(
                publisher.described(user),
                publisher.header(),
                publisher.slots(),
            );
            let answered = answering.programs.publishers.drain(..);
            found.extend(answered.map(|each| (publisher.header().epoch, each)));
        }
        found.extend(answering.servers(|uid| Self::user(&self.users, uid)));
        found
    }

    /// New messages, including those about users above their limits.
    pub(super) fn news(&mut self) -> Vec<String> {
        let news = self.budgets.news().into_iter().map(|(uid, words)| {
            let user = Self::user(&self.users, uid);
            format!(
                "user {} has {words}: the rest is left out",
                DisplayName(&user)
            )
        });
        let news: Vec<String> = news.collect();
        self.pending.extend(news);
        std::mem::take(&mut self.pending)
    }

    /// Answer to a request about programs.
    pub(super) fn answer(&self, texts: bool, now: Moment) -> keeper::Programs {
        let sessions = self.servers.current(now);
        let mut wanted = self.wanted(texts, &sessions, Publisher::answer_bytes);
        add_retired_bytes(&mut wanted, &self.retired);
        let mut answering = Answering::new(texts, now, sessions, &wanted);
        for publisher in self.publishers.values() {
            let user = Self::user(&self.users, publisher.uid());
            answering.add(
                publisher.answer(user),
                publisher.header(),
                publisher.slots(),
            );
        }
        answering.add_servers(|uid| Self::user(&self.users, uid));
        answering.add_retired(&self.retired);
        let mut programs = answering.programs;
        programs.publishers.sort_by(|a, b| {
            (&a.name, &a.user, a.started_ns).cmp(&(&b.name, &b.user, b.started_ns))
        });
        programs.dropped = self.recording.as_ref().map_or(0, Recording::dropped);
        programs.limited = self.budgets.limited(|uid| Self::user(&self.users, uid));
        programs
    }
}

/// Lets the reader read a publisher's new slots if its owner has room for them; otherwise it goes on with the old ones.
fn let_grow(publisher: &mut Publisher, budgets: &mut Budgets) {
    if let Some(size) = publisher.grown()
        && budgets.grow_file(publisher.uid(), publisher.size, size)
    {
        publisher.grow(size);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use kymo_shm::{Description, Publisher as Program, Schema};
    use kymo_sys::disk::Disk as _;
    use kymo_sys::sim_disk::{Faults, SimDisk};
    use kymo_wire::keeper::Life;

    use super::*;

    const BOOT: [u8; 16] = [7; 16];

    fn opened(disk: &Arc<SimDisk>, folder: &Path) -> Collection {
        let store = Path::new("/store");
        disk.create_dir_all(store).expect("a folder");
        let (retired, _) = Retired::open(disk.clone(), store, BOOT).expect("what is kept");
        let folder = Folder::open(folder).expect("a folder of publishers");
        Collection::new(folder, retired, HashMap::new(), None)
    }

    /// Life and count of each publisher in an answer.
    fn counted(collection: &Collection, now: Moment) -> Vec<(Life, f64)> {
        let publishers = collection.answer(false, now).publishers;
        publishers
            .iter()
            .map(|each| (each.life, each.metrics[0].value))
            .collect()
    }

    /// A store in memory.
    fn store(disk: &Arc<SimDisk>) -> Store {
        let mut settings = kymo_store::Settings::new("/kept", "/base");
        settings.files = kymo_store::Files::Never;
        disk.create_dir_all(Path::new("/base")).expect("a base");
        let clock = kymo_sys::sim_clock::SimClock::new(kymo_sys::clock::Stamp {
            real_ns: 1_800_000_000_000_000_000,
            ..Default::default()
        });
        let opened = Store::open(settings, disk.clone(), Arc::new(clock));
        opened.expect("a store").0
    }

    fn series_of(store: &Store) -> Vec<Vec<u8>> {
        let (mut names, mut from) = (Vec::new(), Some(0));
        while let Some(first) = from {
            let known = store.known(first);
            from = known.next();
            names.extend(known.series.into_iter().map(|series| series.name));
        }
        names
    }

    const KINDS: [&str; 3] = ["counter", "gauge", "histogram"];

    /// A program with `count` metrics under names of its own.
    fn program(folder: &Path, kind: &str, prefix: &str, count: usize) -> (Program, kymo_shm::Slot) {
        let mut schema = Schema::new("example", 1).folder(folder);
        for n in 0..count {
            let metric = Description::new(&format!("{prefix}_{n}"), "");
            match kind {
                "counter" => {
                    schema.counter(metric);
                }
                "gauge" => {
                    schema.gauge(metric, kymo_shm::GaugeType::Unsigned);
                }
                _ => {
                    let buckets = kymo_shm::Buckets::new(1, 3, 6).expect("buckets");
                    schema.histogram(metric, buckets);
                }
            }
        }
        let program = Program::create(&schema).expect("a publisher");
        let slot = program.take();
        (program, slot)
    }

    /// Runs one round of the collector, ten seconds later.
    fn step(collection: &mut Collection, store: &Store, now: &mut Moment) {
        now.mono_ns += 10_000_000_000;
        now.real_ns += 10_000_000_000;
        collection.look(*now);
        collection.read(*now);
        collection.write(store, *now).expect("written");
    }

    /// Number of metrics of the living program without a series.
    fn refused(collection: &Collection, now: Moment) -> u32 {
        let publishers = collection.answer(false, now).publishers;
        let lives = publishers.iter().find(|each| each.life == Life::Alive);
        lives.map_or(u32::MAX, |each| each.refused)
    }

    /// Gauges with changing names made series without end: 20,000 with a limit of 4,096. Counters with changing names
    /// blocked their user for ever, even after `kymo series rm`.
    #[test]
    fn series_count_as_long_as_the_store_has_them() {
        for kind in KINDS {
            let folder = format!("/dev/shm/kymo-series-{kind}-{}", std::process::id());
            let folder = Path::new(&folder);
            std::fs::create_dir_all(folder).expect("a folder in memory");
            let disk = Arc::new(SimDisk::new(1));
            let store = store(&disk);
            let mut now = Moment {
                mono_ns: 1_000_000_000,
                real_ns: 1_800_000_000_000_000_000,
            };
            let mut collection = opened(&disk, folder);
            collection.learn(&store);
            for round in 0..6 {
                if round % 2 == 1 {
                    collection = opened(&disk, folder);
                    collection.learn(&store);
                }
                let ends = program(folder, kind, &format!("round{round}"), 1000);
                step(&mut collection, &store, &mut now);
                drop(ends);
                step(&mut collection, &store, &mut now);
            }
            assert_eq!(series_of(&store).len(), 4096, "{kind}");
            // A waiting metric becomes a series when there is room, also with a collector that was started again.
            let waits = program(folder, kind, "waits", 3);
            step(&mut collection, &store, &mut now);
            assert_eq!(refused(&collection, now), 3, "{kind}");
            let removed: Vec<_> = series_of(&store).into_iter().take(100).collect();
            assert!(store.remove(&removed).iter().all(Result::is_ok));
            step(&mut collection, &store, &mut now);
            assert_eq!(refused(&collection, now), 0, "{kind}");
            step(&mut collection, &store, &mut now);
            drop(waits);
            step(&mut collection, &store, &mut now);
            let all = series_of(&store);
            assert!(store.remove(&all).iter().all(Result::is_ok));
            step(&mut collection, &store, &mut now);
            collection = opened(&disk, folder);
            collection.learn(&store);
            let again = program(folder, kind, "again", 1000);
            step(&mut collection, &store, &mut now);
            let names = series_of(&store);
            let is_new = |name: &&Vec<u8>| String::from_utf8_lossy(name).contains("again_");
            let each = if kind == "histogram" { 4 } else { 1 };
            assert_eq!(names.iter().filter(is_new).count(), 1000 * each, "{kind}");
            drop(again);
            std::fs::remove_dir_all(folder).expect("removed");
        }
    }

    /// A publisher with common labels was left out of an answer: its labels had no room of their own.
    #[test]
    fn labels_that_all_metrics_have_are_the_publishers() {
        let folder = format!("/dev/shm/kymo-labels-{}", std::process::id());
        let folder = Path::new(&folder);
        std::fs::create_dir_all(folder).expect("a folder in memory");
        let mut schema = Schema::new("example", 1).folder(folder);
        for kind in ["read", "write"] {
            let metric = Description::new("commands_total", "").label("kind", kind);
            schema.counter(metric.label("port", "5432"));
        }
        let _program = Program::create(&schema).expect("a publisher");
        let mut collection = opened(&Arc::new(SimDisk::new(1)), folder);
        let now = Moment::default();
        collection.look(now);
        for texts in [true, false] {
            let programs = collection.answer(texts, now);
            assert_eq!(programs.left_out, 0);
            let labels = &programs.publishers[0].labels;
            assert_eq!(labels, &[(b"port".to_vec(), b"5432".to_vec())]);
        }
        std::fs::remove_dir_all(folder).expect("removed");
    }

    /// While a version with finer buckets replaced a program, both lived for a time. The new histogram was left out as long as
    /// the old program lived, and then replaced all that the old one had counted.
    #[test]
    fn two_versions_of_a_program_are_one() {
        let folder = format!("/dev/shm/kymo-versions-{}", std::process::id());
        let folder = Path::new(&folder);
        std::fs::create_dir_all(folder).expect("a folder in memory");
        let disk = Arc::new(SimDisk::new(1));
        let store = store(&disk);
        let mut now = Moment {
            mono_ns: 1_000_000_000,
            real_ns: 1_800_000_000_000_000_000,
        };
        let mut collection = opened(&disk, folder);
        let version = |sub_bits: u8, scale: f64, kind| {
            let mut schema = Schema::new("example", 1).folder(folder);
            let described = |name, scale| Description::new(name, "").unit("seconds", scale);
            let buckets = kymo_shm::Buckets::new(sub_bits, 6, 30).expect("buckets");
            let latency = schema.histogram(described("latency", scale), buckets);
            let busy = schema.counter(described("busy", scale));
            let open = schema.gauge(described("open", 1.0), kind);
            let program = Program::create(&schema).expect("a publisher");
            let slot = program.take();
            (program, slot, latency, busy, open)
        };
        let (old_one, mut old, latency, busy, open) =
            version(2, 1e-6, kymo_shm::GaugeType::Unsigned);
        let new = version(5, 1e-9, kymo_shm::GaugeType::Double);
        let (new_one, mut new, new_latency, new_busy, new_open) = new;
        step(&mut collection, &store, &mut now);
        collection.table.next_values("latency", &collection.retired);
        for n in 0..1000 {
            old.observe(latency, 1000 + n, 1);
            new.observe(new_latency, 1_000_000 + 1000 * n, 2);
        }
        old.add(busy, 1_500_000);
        new.add(new_busy, 250_000_000);
        old.set(open, 3.0);
        new.set(new_open, 0.5);
        collection.read(now);
        let all = collection.table.next_values("latency", &collection.retired);
        assert_eq!(all[0], 3000.0);
        for (quantile, value) in all[1..].iter().zip([1.5e-3, 1.9e-3, 1.99e-3]) {
            assert!((quantile / value - 1.0).abs() < 0.05, "{all:?}");
        }
        let mut of = |field| collection.table.next_values(field, &collection.retired)[0];
        assert!((of("busy") - 1.75).abs() < 1e-9, "{}", of("busy"));
        assert_eq!(of("open"), 3.5);
        assert_eq!(refused(&collection, now), 0);
        drop((old, old_one));
        for _ in 0..2 {
            step(&mut collection, &store, &mut now);
            let mut of = |field| collection.table.next_values(field, &collection.retired)[0];
            assert_eq!((of("latency"), of("open")), (3000.0, 0.5));
            assert!((of("busy") - 1.75).abs() < 1e-9, "{}", of("busy"));
        }
        drop((new, new_one));
        step(&mut collection, &store, &mut now);
        let publishers = collection.answer(false, now).publishers;
        let [retired] = &publishers[..] else {
            panic!("{publishers:?}");
        };
        let counted = retired
            .metrics
            .iter()
            .map(|each| (&each.name[..], each.value));
        let counted: Vec<_> = counted.collect();
        assert_eq!(counted, [(&b"busy"[..], 1.75), (b"latency", 3000.0)]);
        // A third program with the buckets of the first continues from its count.
        let _third = version(2, 1e-6, kymo_shm::GaugeType::Unsigned);
        step(&mut collection, &store, &mut now);
        let mut of = |field| collection.table.next_values(field, &collection.retired)[0];
        assert_eq!(of("latency"), 3000.0);
        std::fs::remove_dir_all(folder).expect("removed");
    }

    /// The disk is full when a program ends: then only the program's file has its counts.
    #[test]
    fn a_file_stays_until_its_counts_are_on_the_disk() {
        let folder = format!("/dev/shm/kymo-collection-{}", std::process::id());
        let folder = Path::new(&folder);
        std::fs::create_dir_all(folder).expect("a folder in memory");
        let disk = Arc::new(SimDisk::new(1));
        let mut collection = opened(&disk, folder);
        let mut now = Moment {
            mono_ns: 1_000_000_000,
            real_ns: 1_800_000_000_000_000_000,
        };
        let mut total = 0;
        for round in 0..2 {
            let mut schema = Schema::new("example", 1).folder(folder);
            let counter = schema.counter(Description::new("commands_total", ""));
            let program = Program::create(&schema).expect("a publisher");
            let path = program.path().expect("a file").to_path_buf();
            let mut slot = program.take();
            slot.add(counter, 7);
            collection.look(now);
            drop((slot, program));
            let counts = disk.counts();
            disk.set_faults(match round {
                0 => Faults {
                    full_writes: Some((counts.writes + 1, u64::MAX)),
                    ..Faults::default()
                },
                _ => Faults {
                    broken_sync: Some(counts.syncs + 1),
                    ..Faults::default()
                },
            });
            for attempt in 0..3 {
                if round > 0 && attempt > 0 {
                    break;
                }
                now.mono_ns += 1_000_000_000;
                collection.read(now);
                assert!(path.exists(), "round {round}, attempt {attempt}");
                let found = counted(&collection, now);
                assert!(found.contains(&(Life::Ended, 7.0)), "{found:?}");
                let reported = collection.news();
                let is_said = reported
                    .iter()
                    .any(|line| line.contains("cannot keep totals"));
                assert_eq!(is_said, attempt == 0, "{reported:?}");
            }
            if round == 0 {
                // A keeper that starts now finds the file as well.
                let mut another = opened(&Arc::new(disk.fork()), folder);
                another.look(now);
                assert_eq!(counted(&another, now), [(Life::Ended, 7.0)]);
            }
            disk.set_faults(Faults::default());
            now.mono_ns += 1_000_000_000;
            collection.read(now);
            total += 7;
            assert!(!path.exists(), "round {round}: its counts are kept");
            assert_eq!(
                counted(&collection, now),
                [(Life::Retired, f64::from(total))]
            );
            collection = opened(&disk, folder);
            collection.look(now);
            assert_eq!(
                counted(&collection, now),
                [(Life::Retired, f64::from(total))]
            );
        }
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
