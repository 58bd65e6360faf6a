//! All publishers of the folder, and what is known of each.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;

use kymo_base::name::DisplayName;
use kymo_shm::{OpenError, Scratch};
use kymo_store::Store;
use kymo_wire::keeper;

use super::answer::Answering;
use super::budgets::{Budgets, Excess};
use super::folder::Folder;
use super::publisher::{Moment, Publisher};
use super::recording::Recording;
use super::retired::{Legacy, Retired};
use super::series::Table;
use super::servers::Servers;

/// Names that are not read are remembered, and tried again after so long.
const AGAIN_NS: u64 = 60_000_000_000;

/// Why a name is not read.
enum NotRead {
    /// Its owner has as much as he may.
    Waits(u32),
    /// It is no publisher's, or went bad.
    Bad,
    /// It was taken over, and cannot be removed.
    TakenOver,
}

/// All that is known.
pub(super) struct Collection {
    folder: Folder,
    users: HashMap<u32, String>,
    publishers: BTreeMap<OsString, Publisher>,
    not_read: HashMap<OsString, NotRead>,
    tried_ns: u64,
    table: Table,
    retired: Retired,
    budgets: Budgets,
    scratch: Scratch,
    /// Where what programs do is recorded, if it is.
    recording: Option<Recording>,
    /// What database servers say of their sessions.
    pub(super) servers: Servers,
    read_ns: u64,
    /// What a look at the folder takes.
    look_ns: u64,
    /// What was said, and is not said again.
    said: BTreeSet<String>,
    /// What is to be said.
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
            budgets.take_set(total.uid, total.cells.len(), true);
        }
        Collection {
            folder,
            users,
            publishers: BTreeMap::new(),
            not_read: HashMap::new(),
            tried_ns: 0,
            table: Table::default(),
            retired,
            budgets,
            scratch: Scratch::default(),
            recording,
            servers: Servers::default(),
            read_ns: 0,
            look_ns: 0,
            said: BTreeSet::new(),
            pending: Vec::new(),
        }
    }

    /// What can be read when the folder has changed.
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

    /// Looks which files there are.
    pub(super) fn look(&mut self, now: Moment) {
        self.folder.forget_news();
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
        self.look_ns = took_ns;
    }

    fn open(&mut self, name: &OsStr, now: Moment) {
        let mut publisher = match Publisher::open(&self.folder, name) {
            Ok(publisher) => publisher,
            // It went meanwhile.
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
            // Counted by owner, and said once for him.
            Some(uid) => self.budgets.count(uid, Excess::Bad),
            None => self.once(format!("cannot read a publisher's file: {error}")),
        }
    }

    fn once(&mut self, line: String) {
        if self.said.insert(line.clone()) {
            self.pending.push(line);
        }
    }

    /// Reads if what is known is older than that.
    pub(super) fn refresh(&mut self, now: Moment, fresh_ns: u64) {
        if now.mono_ns.saturating_sub(self.read_ns) >= fresh_ns {
            self.read(now);
            self.sample(now);
        }
    }

    /// Reads all cells, and takes over what ended programs counted.
    pub(super) fn read(&mut self, now: Moment) {
        self.read_ns = now.mono_ns;
        let mut bad = Vec::new();
        for (name, publisher) in &mut self.publishers {
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
        self.take_over();
        self.table.begin();
        for publisher in self.publishers.values() {
            publisher.add(&mut self.table);
        }
    }

    /// What the ended ones counted is on the disk before their files go.
    fn take_over(&mut self) {
        let ended = self.publishers.iter().filter(|(_, each)| each.has_ended());
        let (names, legacies): (Vec<OsString>, Vec<Legacy>) = ended
            .map(|(name, publisher)| (name.clone(), publisher.legacy(&self.table)))
            .unzip();
        if names.is_empty() {
            return;
        }
        if let Err(error) = self.retired.take_over(legacies) {
            // They stay, are read again, and count meanwhile.
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

    /// The owner of one that is read no more. Others of his may have room now.
    fn drop_publisher(&mut self, name: &OsStr) -> Option<u32> {
        let publisher = self.publishers.remove(name)?;
        let uid = publisher.uid();
        publisher.leave(&mut self.table, &mut self.budgets);
        self.not_read
            .retain(|_, why| !matches!(why, NotRead::Waits(waiting) if *waiting == uid));
        Some(uid)
    }

    /// Writes a value of each series.
    pub(super) fn write(&mut self, store: &Store, now: Moment) -> Result<(), String> {
        {
            let (table, retired) = (&mut self.table, &self.retired);
            let written = table.write(store, retired, now.real_ns);
            table.sweep(&mut self.budgets, retired);
            written
        }
    }

    /// Looks at what slots do.
    pub(super) fn sample(&mut self, now: Moment) {
        let mut publishers = std::mem::take(&mut self.publishers);
        for publisher in publishers.values_mut() {
            self.sample_one(publisher, now);
        }
        self.publishers = publishers;
    }

    fn sample_one(&mut self, publisher: &mut Publisher, now: Moment) {
        let uid = publisher.uid();
        if self.budgets.may_read_texts(uid, now.mono_ns) {
            // A file that went bad is found so by the next scan.
            let copied = publisher.sample(&mut self.scratch, now).unwrap_or(0);
            self.budgets.read_texts(uid, copied);
        }
    }

    /// Says to the recorder what slots do, if that is due.
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

    /// What each publisher does, by the epoch of its file, as it is answered.
    fn at_work(&self, now: Moment) -> Vec<([u8; 16], keeper::Publisher)> {
        let mut found = Vec::new();
        let mut answering = Answering::new(true, now, self.servers.current(now));
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

    /// What is to be said, of users who want more than they have as well.
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

    /// For who asks.
    pub(super) fn answer(&self, texts: bool, now: Moment) -> keeper::Programs {
        let mut answering = Answering::new(texts, now, self.servers.current(now));
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

    /// What all of that name counted, and whether it has been taken over.
    fn counted(collection: &Collection, now: Moment) -> Vec<(Life, f64)> {
        let publishers = collection.answer(false, now).publishers;
        publishers
            .iter()
            .map(|each| (each.life, each.metrics[0].value))
            .collect()
    }

    /// A disk that is full just when a program ends: its file is the only place that has its counts.
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
                let said = collection.news();
                let is_said = said.iter().any(|line| line.contains("cannot keep totals"));
                assert_eq!(is_said, attempt == 0, "{said:?}");
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
