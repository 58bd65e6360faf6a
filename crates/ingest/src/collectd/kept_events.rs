//! The newest notifications of collectd and events of polled devices: in memory for requests, and in files to
//! outlive the keeper. Devices, senders that sign and all other senders have a ring each. In a full ring each group
//! of senders has a share, and in it each host: a sender of many events displaces its own.

use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::Disk;
use kymo_wire::keeper::{Event, EventRange};

use super::event_files::EventFiles;
use super::kept_event::{DEVICES, Kept, USER};
use super::waiting_events::{EventRate, Waiting};
use crate::log::{Log, Severity};
use crate::shares::last_shares;

/// Most events of a ring.
const RING_MAX: usize = 4096;
/// Most events that wait while the disk accepts no writes.
const UNSAVED_MAX: usize = 4096;
/// Rate of one group of senders: when many services of a host fail together, all their events are kept.
const OF_GROUP: EventRate = EventRate {
    burst: 1024,
    per_second: 50,
};
/// The rate of all unsigned senders together, because a sender can make up addresses.
const OF_ALL: EventRate = EventRate {
    burst: 4096,
    per_second: 250,
};
/// Devices are a group, and may all fall silent at once.
const OF_DEVICES: EventRate = EventRate {
    burst: 4096,
    per_second: 100,
};

/// Events in memory; each ring has its oldest event first.
#[derive(Debug, Default)]
struct Rings([VecDeque<Kept>; 3]);

impl Rings {
    fn all(&self) -> impl Iterator<Item = &Kept> {
        self.0.iter().flatten()
    }

    /// Adds an event. The caller cuts the rings afterwards.
    fn add(&mut self, kept: Kept) {
        self.0[kept.class() as usize].push_back(kept);
    }

    /// Removes the events that are too many, and returns them.
    fn cut(&mut self) -> Vec<Kept> {
        let mut gone = Vec::new();
        for ring in self.0.iter_mut().filter(|ring| ring.len() > RING_MAX) {
            let stay = last_shares(ring.make_contiguous(), RING_MAX, Kept::who, |_| usize::MAX);
            for (kept, stays) in std::mem::take(ring).into_iter().zip(stay) {
                match stays {
                    true => ring.push_back(kept),
                    false => gone.push(kept),
                }
            }
        }
        gone
    }
}

/// The rings, shared by requests and by intake.
#[derive(Clone, Debug, Default)]
struct Events(Arc<Mutex<Rings>>);

impl Events {
    fn lock(&self) -> MutexGuard<'_, Rings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events of a range. If the answer has no room for all, senders have shares of it.
    fn range(&self, range: &EventRange) -> Vec<Event> {
        // The lock is held only for this copy of references; the events' texts are copied later.
        let mut found: Vec<Kept> = self.lock().all().cloned().collect();
        found.retain(|kept| range.has(&kept.event));
        found.sort_by_key(|kept| kept.event.time_ns);
        let most = usize::try_from(range.events_max).unwrap_or(usize::MAX);
        let stay = last_shares(&found, most, Kept::who, |_| usize::MAX);
        let stay = found.iter().zip(stay).filter(|(_, stays)| *stays);
        stay.map(|(kept, _)| Event::clone(&kept.event)).collect()
    }
}

/// Keeps new events and answers requests about them. Clones share the events.
#[derive(Clone, Default)]
pub struct EventKeeper {
    events: Events,
    saving: Arc<Mutex<Saving>>,
}

/// Events on their way into memory and files.
struct Saving {
    files: Option<EventFiles>,
    /// All events in memory or waiting, so that a repeated event is kept once.
    known: HashSet<Arc<Event>>,
    /// Events that are not in memory yet, by class.
    waiting: [Waiting; 3],
    /// Events that are not in `files` yet.
    unsaved: VecDeque<Kept>,
    is_failing: bool,
}

impl Default for Saving {
    fn default() -> Saving {
        Saving {
            files: None,
            known: HashSet::new(),
            waiting: [
                Waiting::new(OF_GROUP, OF_ALL),
                Waiting::new(OF_GROUP, OF_ALL),
                Waiting::new(OF_DEVICES, OF_DEVICES),
            ],
            unsaved: VecDeque::new(),
            is_failing: false,
        }
    }
}

impl EventKeeper {
    /// Reads the files of `folder`. Also returns messages about them. If the files cannot be read, events are kept in
    /// memory only.
    pub fn open(disk: Arc<dyn Disk>, folder: &Path) -> (EventKeeper, Vec<String>) {
        let keeper = EventKeeper::default();
        match EventFiles::open(disk, folder) {
            Ok((files, mut found, notices)) => {
                let mut saving = keeper.lock();
                saving.files = Some(files);
                // A file begins with the events of the file before it, so some events come twice.
                found.retain(|kept| saving.known.insert(kept.event.clone()));
                saving.show(found, &keeper.events);
                drop(saving);
                (keeper, notices)
            }
            Err(error) => {
                let place = folder.display();
                let notice = format!("cannot keep notifications in {place}: {error}");
                (keeper, vec![notice])
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Saving> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Events of a range, by time; shares of the senders if there are more than `events_max`.
    pub(crate) fn range(&self, range: &EventRange) -> Vec<Event> {
        self.events.range(range)
    }

    /// Adds events of devices, except known ones. The events are shown and saved at once.
    pub(crate) fn keep(&self, events: Vec<Event>, log: &Log) {
        let mut saving = self.lock();
        for event in events {
            saving.add(Kept::new(DEVICES, event));
        }
        saving.save(&self.events, RealClock.mono_ns(), log);
    }

    /// Adds an event of a group of senders, or of the user who signed it; `None`: the event is known. The caller
    /// saves once a second at most.
    pub(crate) fn add(&self, group: &str, user: Option<&[u8]>, event: Event) -> Option<Arc<Event>> {
        let kept = match user {
            Some(user) => Kept::new(&[USER, user].concat(), event),
            None => Kept::new(group.as_bytes(), event),
        };
        let event = kept.event.clone();
        self.lock().add(kept).then_some(event)
    }

    /// True if there are events that are not saved.
    pub(crate) fn has_new(&self) -> bool {
        let saving = self.lock();
        !saving.waiting.iter().all(Waiting::is_empty) || !saving.unsaved.is_empty()
    }

    /// True if the event was neither dropped nor displaced since it was added, and no file lacks it.
    pub(crate) fn is_saved(&self, event: &Arc<Event>) -> bool {
        let saving = self.lock();
        let is_one = |kept: &Kept| kept.event == *event;
        saving.known.contains(event)
            && !saving.waiting.iter().any(|waiting| waiting.has(&is_one))
            && !saving.unsaved.iter().any(is_one)
    }

    /// Writes new events to the files and shows them.
    pub(crate) fn save(&self, now_ns: u64, log: &Log) {
        self.lock().save(&self.events, now_ns, log);
    }
}

impl Saving {
    fn add(&mut self, kept: Kept) -> bool {
        if !self.known.insert(kept.event.clone()) {
            return false;
        }
        let dropped = self.waiting[kept.class() as usize].add(kept);
        self.forget(&dropped);
        true
    }

    fn forget(&mut self, gone: &[Kept]) {
        for kept in gone {
            self.known.remove(&kept.event);
        }
    }

    /// Shows events: from now on answers have them.
    fn show(&mut self, new: Vec<Kept>, events: &Events) {
        let mut rings = events.lock();
        new.into_iter().for_each(|kept| rings.add(kept));
        let gone = rings.cut();
        drop(rings);
        self.forget(&gone);
    }

    /// Writes waiting events to the files, then shows them: an event that a request has seen outlives the keeper.
    fn save(&mut self, events: &Events, now_ns: u64, log: &Log) {
        let mut new = Vec::new();
        for at in 0..self.waiting.len() {
            let (kept, dropped) = self.waiting[at].take(now_ns);
            self.forget(&dropped);
            if let Some(line) = self.waiting[at].take_news(now_ns) {
                log(Severity::Warning, &line);
            }
            new.extend(kept);
        }
        self.write(&new, events, log);
        self.show(new, events);
    }

    fn write(&mut self, new: &[Kept], events: &Events, log: &Log) {
        let Some(files) = &mut self.files else {
            return;
        };
        self.unsaved.extend(new.iter().cloned());
        let first = self.unsaved.len().saturating_sub(UNSAVED_MAX);
        self.unsaved.drain(..first);
        let all = || events.lock().all().chain(new).cloned().collect();
        match files.append(&mut self.unsaved, all) {
            Ok(()) => self.is_failing = false,
            // The next save tries again.
            Err(error) if !self.is_failing => {
                self.is_failing = true;
                let line = format!("cannot write notifications: {error}");
                log(Severity::Error, &line);
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use kymo_sys::sim_disk::{Faults, SimDisk};
    use kymo_wire::collectd;

    pub(in crate::collectd) fn event(n: u32) -> Event {
        Event {
            time_ns: i64::from(n) * 1_000_000_000,
            severity: collectd::Severity::Failure,
            host: format!("web{}", n % 2).into_bytes(),
            plugin: b"df".to_vec(),
            plugin_instance: Vec::new(),
            type_name: Vec::new(),
            type_instance: Vec::new(),
            message: format!("event {n}").into_bytes(),
        }
    }

    const SECOND_NS: u64 = 1_000_000_000;

    fn log() -> (Log, Arc<Mutex<Vec<String>>>) {
        let logged = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&logged);
        let log: Log = Arc::new(move |_, line| lines.lock().unwrap().push(line.to_string()));
        (log, logged)
    }

    fn all() -> EventRange {
        EventRange {
            from: 0,
            thru: 1 << 40,
            events_max: 10_000,
            hosts: Vec::new(),
        }
    }

    #[test]
    fn memory_has_the_newest_and_a_range_the_latest() {
        let (keeper, (log, logged)) = (EventKeeper::default(), log());
        for n in 0..5000 {
            keeper.add("ada", None, event(n));
            if n % 500 == 499 {
                assert!(keeper.has_new());
                keeper.save(u64::from(n) * SECOND_NS, &log);
                assert!(!keeper.has_new());
            }
        }
        let found = keeper.range(&all());
        assert_eq!(found.len(), RING_MAX);
        assert_eq!((&found[0], &found[4095]), (&event(904), &event(4999)));
        let some = EventRange {
            from: 4000,
            thru: 4100,
            events_max: 3,
            hosts: vec![b"web1".to_vec()],
        };
        assert_eq!(keeper.range(&some), [4095, 4097, 4099].map(event));
        assert_eq!(*logged.lock().unwrap(), [""; 0]);
    }

    /// A client repeats a request that was not answered: an event is kept only once.
    #[test]
    fn what_comes_again_is_kept_once() {
        let disk = Arc::new(SimDisk::new(1));
        let folder = Path::new("/store");
        disk.create_dir_all(folder).unwrap();
        let (keeper, (log, logged)) = (EventKeeper::open(disk.clone(), folder).0, log());
        assert!(keeper.add("ada", None, event(0)).is_some());
        keeper.keep(vec![event(1), event(2), event(2)], &log);
        keeper.keep(vec![event(0), event(2), event(3)], &log);
        let want = [0, 1, 2, 3].map(event);
        assert_eq!(keeper.range(&all()), want);
        let (again, _) = EventKeeper::open(disk, folder);
        assert_eq!(again.range(&all()), want);
        assert_eq!(*logged.lock().unwrap(), [""; 0]);
    }

    /// A kill between the two steps once lost events that an answer had shown.
    #[test]
    fn events_are_written_before_they_are_shown() {
        let disk = Arc::new(SimDisk::new(1));
        let folder = Path::new("/store");
        disk.create_dir_all(folder).unwrap();
        let (keeper, _) = EventKeeper::open(disk.clone(), folder);
        disk.set_faults(Faults {
            capacity_bytes: Some(0),
            ..Faults::default()
        });
        let shown_at_write = Arc::new(Mutex::new(None));
        let (found, shared) = (shown_at_write.clone(), keeper.clone());
        let log: Log = Arc::new(move |_, _| {
            *found.lock().unwrap() = Some(shared.range(&all()).len());
        });
        keeper.add("ada", None, event(0));
        keeper.save(SECOND_NS, &log);
        assert_eq!(*shown_at_write.lock().unwrap(), Some(0));
        assert_eq!(keeper.range(&all()).len(), 1);
    }

    #[test]
    fn a_full_disk_is_said_once_and_what_waits_is_written_later() {
        let disk = Arc::new(SimDisk::new(1));
        let folder = Path::new("/store");
        disk.create_dir_all(folder).unwrap();
        let (keeper, notices) = EventKeeper::open(disk.clone(), folder);
        assert_eq!(notices, [""; 0]);
        let (log, logged) = log();
        disk.set_faults(Faults {
            capacity_bytes: Some(0),
            ..Faults::default()
        });
        for n in 0..3 {
            keeper.add("ada", None, event(n));
            keeper.save(SECOND_NS, &log);
        }
        assert_eq!(logged.lock().unwrap().len(), 1, "{logged:?}");
        assert_eq!(keeper.range(&all()).len(), 3);
        assert!(keeper.has_new());
        disk.set_faults(Faults::default());
        keeper.save(SECOND_NS, &log);
        assert!(!keeper.has_new());
        let (again, notices) = EventKeeper::open(disk, folder);
        assert_eq!(notices, [""; 0]);
        assert_eq!(again.range(&all()), [0, 1, 2].map(event));
    }

    /// Sends events second by second: 20 seconds of a host before a flood, 20 during the flood, 20 afterwards.
    fn flooded(keeper: &EventKeeper, evil: &dyn Fn(u32) -> (&'static str, Event)) {
        let (log, _) = log();
        let mut number = 0;
        for second in 0..40_u32 {
            if second % 2 == 0 {
                for n in 0..3 {
                    keeper.add("good", None, good(100 * second + n));
                }
                keeper.keep(vec![of_device(second)], &log);
                keeper.add("evil", Some(b"ada"), of_user(second));
            }
            for _ in 0..2000 {
                let (from, event) = evil(number);
                keeper.add(from, None, event);
                number += 1;
            }
            keeper.save(u64::from(second) * SECOND_NS, &log);
        }
    }

    fn named(n: u32, host: &str, plugin: &[u8]) -> Event {
        Event {
            host: host.into(),
            plugin: plugin.to_vec(),
            ..event(n)
        }
    }

    fn good(n: u32) -> Event {
        named(n, "good", b"df")
    }

    fn of_device(n: u32) -> Event {
        named(n, "router", kymo_wire::keeper::POLL)
    }

    fn of_user(n: u32) -> Event {
        named(n, "ada", b"df")
    }

    /// One sender sent 23,080 events in 12 s, and all events of another host were lost in memory, and then on the
    /// disk.
    #[test]
    fn a_flood_displaces_its_own() {
        let loopback = |n: u32| ("evil", named(n, "evil", b"df"));
        let names = |n: u32| ("evil", named(n, &format!("evil{n}"), b"df"));
        let device = |n: u32| ("evil", named(n, "router", b"poll"));
        let same_host = |n: u32| ("evil", named(n + 1_000_000, "good", b"df"));
        let addresses = |n: u32| {
            let froms = ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"];
            (froms[n as usize % 8], named(n, &format!("evil{n}"), b"df"))
        };
        let floods: [&dyn Fn(u32) -> (&'static str, Event); 5] =
            [&loopback, &names, &device, &same_host, &addresses];
        for (at, flood) in floods.into_iter().enumerate() {
            let disk = Arc::new(SimDisk::new(1));
            let folder = Path::new("/store");
            disk.create_dir_all(folder).unwrap();
            let (keeper, _) = EventKeeper::open(disk.clone(), folder);
            flooded(&keeper, flood);
            let (again, notices) = EventKeeper::open(disk.clone(), folder);
            assert_eq!(notices, [""; 0]);
            for keeper in [keeper, again] {
                for answered in [10_000, 1000] {
                    let range = EventRange {
                        events_max: answered,
                        ..all()
                    };
                    let found = keeper.range(&range);
                    let count = |wanted: &dyn Fn(u32) -> Event| {
                        let wanted: HashSet<Event> = (0..4000).map(wanted).collect();
                        found.iter().filter(|event| wanted.contains(event)).count()
                    };
                    let of = (count(&good), count(&of_device), count(&of_user));
                    assert_eq!(of, (60, 20, 20), "flood {at}, {answered}");
                }
            }
            let size: u64 = disk.files().iter().map(|(_, size)| size).sum();
            assert!(size < 3 << 20, "flood {at}: {size} bytes");
        }
    }

    /// An eavesdropper sends a signed notification again after a restart of the keeper.
    #[test]
    fn notifications_are_known_after_a_restart() {
        let disk = Arc::new(SimDisk::new(1));
        let folder = Path::new("/store");
        disk.create_dir_all(folder).unwrap();
        let (log, _) = log();
        for life in 0..3 {
            let (keeper, _) = EventKeeper::open(disk.clone(), folder);
            for n in 0..5 {
                let is_new = keeper.add("a", Some(b"ada"), event(n)).is_some();
                assert_eq!(is_new, life == 0, "life {life}");
            }
            let other = Event {
                severity: collectd::Severity::Okay,
                ..event(0)
            };
            let is_new = keeper.add("a", Some(b"ada"), other).is_some();
            assert_eq!(is_new, life == 0, "another severity");
            keeper.save(SECOND_NS, &log);
            assert_eq!(keeper.range(&all()).len(), 6);
        }
    }
}
