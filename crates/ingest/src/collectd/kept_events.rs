//! The newest notifications, of collectds and of devices that are polled: in memory for who asks, and in files so that they
//! outlive the keeper.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_sys::disk::Disk;
use kymo_wire::keeper::{Event, EventRange};

use super::event_files::EventFiles;
use crate::log::{Log, Severity};

/// Events that are kept in memory.
const EVENTS_MAX: usize = 4096;
/// Events between two saves; more are counted, and not kept.
const NEW_MAX: usize = 1024;

/// Those in memory, oldest first as they came.
#[derive(Clone, Debug, Default)]
struct Events(Arc<Mutex<VecDeque<Arc<Event>>>>);

impl Events {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Event>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn range(&self, range: &EventRange) -> Vec<Event> {
        // Their texts are copied when intake need not wait any more.
        let all: Vec<Arc<Event>> = self.lock().iter().cloned().collect();
        let mut found: Vec<&Arc<Event>> = all.iter().filter(|event| range.has(event)).collect();
        found.sort_by_key(|event| event.time_ns);
        let most = usize::try_from(range.events_max).unwrap_or(usize::MAX);
        let first = found.len().saturating_sub(most);
        found[first..]
            .iter()
            .map(|event| Event::clone(event))
            .collect()
    }

    fn add(&self, new: impl Iterator<Item = Arc<Event>>) {
        let mut events = self.lock();
        events.extend(new);
        let first = events.len().saturating_sub(EVENTS_MAX);
        events.drain(..first);
    }
}

/// Where new events go, and who answers which there are. Its copies are of the same events.
#[derive(Clone, Default)]
pub struct EventKeeper {
    events: Events,
    saving: Arc<Mutex<Saving>>,
}

/// What is on its way into memory and files.
#[derive(Default)]
struct Saving {
    files: Option<EventFiles>,
    /// Not in memory yet.
    new: Vec<Arc<Event>>,
    /// Not in `files` yet.
    unsaved: VecDeque<Arc<Event>>,
    /// That were too many.
    dropped: u64,
    is_failing: bool,
}

impl EventKeeper {
    /// Takes up what the files of `folder` have; with what there is to say of it. Without files that can be read, events
    /// are kept in memory alone.
    pub fn open(disk: Arc<dyn Disk>, folder: &Path) -> (EventKeeper, Vec<String>) {
        let keeper = EventKeeper::default();
        match EventFiles::open(disk, folder) {
            Ok((files, found, notices)) => {
                keeper.events.add(found.into_iter().map(Arc::new));
                keeper.lock().files = Some(files);
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

    /// Those of a range, by their time; the latest, if there are more than it wants.
    pub(crate) fn range(&self, range: &EventRange) -> Vec<Event> {
        self.events.range(range)
    }

    /// Some more, but for those that it has: they can be asked for at once, and are saved.
    pub(crate) fn keep(&self, events: Vec<Event>, log: &Log) {
        let mut saving = self.lock();
        let known = self.events.lock().clone();
        for event in events {
            let is_same = |other: &Arc<Event>| {
                other.time_ns == event.time_ns
                    && other.host == event.host
                    && other.message == event.message
            };
            if !known.iter().chain(&saving.new).any(is_same) {
                saving.add(event);
            }
        }
        saving.save(&self.events, log);
    }

    /// One more. Who calls sees to it that they are saved once a second at most.
    pub(super) fn add(&self, event: Event) {
        self.lock().add(event);
    }

    /// Whether some are not saved.
    pub(super) fn has_new(&self) -> bool {
        let saving = self.lock();
        !saving.new.is_empty() || !saving.unsaved.is_empty()
    }

    /// Shows those that are new, and writes them to the files.
    pub(super) fn save(&self, log: &Log) {
        self.lock().save(&self.events, log);
    }
}

impl Saving {
    fn add(&mut self, event: Event) {
        match self.new.len() < NEW_MAX {
            true => self.new.push(Arc::new(event)),
            false => self.dropped += 1,
        }
    }

    fn save(&mut self, events: &Events, log: &Log) {
        if self.dropped > 0 {
            let dropped = std::mem::take(&mut self.dropped);
            let line = format!("cannot keep notifications: {dropped} came too fast");
            log(Severity::Warning, &line);
        }
        events.add(self.new.iter().cloned());
        let Some(files) = &mut self.files else {
            return self.new.clear();
        };
        self.unsaved.extend(self.new.drain(..));
        let first = self.unsaved.len().saturating_sub(EVENTS_MAX);
        self.unsaved.drain(..first);
        match files.append(&mut self.unsaved) {
            Ok(()) => self.is_failing = false,
            // They are tried again with the next save.
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
mod tests {
    use super::*;
    use kymo_sys::sim_disk::{Faults, SimDisk};
    use kymo_wire::collectd;

    fn event(n: u32) -> Event {
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

    fn log() -> (Log, Arc<Mutex<Vec<String>>>) {
        let said = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&said);
        let log: Log = Arc::new(move |_, line| lines.lock().unwrap().push(line.to_string()));
        (log, said)
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
        let (keeper, (log, said)) = (EventKeeper::default(), log());
        for n in 0..5000 {
            keeper.add(event(n));
            if n % 500 == 499 {
                assert!(keeper.has_new());
                keeper.save(&log);
                assert!(!keeper.has_new());
            }
        }
        let found = keeper.range(&all());
        assert_eq!(found.len(), EVENTS_MAX);
        assert_eq!((&found[0], &found[4095]), (&event(904), &event(4999)));
        let some = EventRange {
            from: 4000,
            thru: 4100,
            events_max: 3,
            hosts: vec![b"web1".to_vec()],
        };
        assert_eq!(keeper.range(&some), [4095, 4097, 4099].map(event));
        for n in 0..2000 {
            keeper.add(event(n));
        }
        keeper.save(&log);
        let want = "cannot keep notifications: 976 came too fast";
        assert_eq!(*said.lock().unwrap(), [want]);
    }

    /// A question that was not answered comes again: what it says is not kept twice.
    #[test]
    fn what_comes_again_is_kept_once() {
        let disk = Arc::new(SimDisk::new(1));
        let folder = Path::new("/store");
        disk.create_dir_all(folder).unwrap();
        let (keeper, (log, said)) = (EventKeeper::open(disk.clone(), folder).0, log());
        keeper.add(event(0));
        keeper.keep(vec![event(1), event(2), event(2)], &log);
        keeper.keep(vec![event(0), event(2), event(3)], &log);
        let want = [0, 1, 2, 3].map(event);
        assert_eq!(keeper.range(&all()), want);
        let (again, _) = EventKeeper::open(disk, folder);
        assert_eq!(again.range(&all()), want);
        assert_eq!(*said.lock().unwrap(), [""; 0]);
    }

    #[test]
    fn a_full_disk_is_said_once_and_what_waits_is_written_later() {
        let disk = Arc::new(SimDisk::new(1));
        let folder = Path::new("/store");
        disk.create_dir_all(folder).unwrap();
        let (keeper, notices) = EventKeeper::open(disk.clone(), folder);
        assert_eq!(notices, [""; 0]);
        let (log, said) = log();
        disk.set_faults(Faults {
            capacity_bytes: Some(0),
            ..Faults::default()
        });
        for n in 0..3 {
            keeper.add(event(n));
            keeper.save(&log);
        }
        assert_eq!(said.lock().unwrap().len(), 1, "{said:?}");
        assert_eq!(keeper.range(&all()).len(), 3);
        assert!(keeper.has_new());
        disk.set_faults(Faults::default());
        keeper.save(&log);
        assert!(!keeper.has_new());
        let (again, notices) = EventKeeper::open(disk, folder);
        assert_eq!(notices, [""; 0]);
        assert_eq!(again.range(&all()), [0, 1, 2].map(event));
    }
}
