//! One kind of source under measurement: it is read as a recorder reads it, again and again.

use std::sync::Arc;

use kymo_kernel::facts;
use kymo_kernel::groups::Groups;
use kymo_kernel::listing;
use kymo_kernel::mounts::Mounts;
use kymo_kernel::mountstats;
use kymo_kernel::reader::Reader;
use kymo_kernel::source::{Reads, Scope, Source, kind};
use kymo_kernel::tasks::Budget;
use kymo_sys::clock::{self, Clock, RealClock};
use kymo_sys::kernel_file::Root;
use kymo_sys::machine;

use super::{Price, Spread};
use crate::recorder::session;

/// One kind of source under measurement.
pub(super) struct Probe {
    source: &'static Source,
    by: By,
    instances: usize,
    warm: Vec<u64>,
    cold: Vec<u64>,
    spent: Spent,
    text: Vec<u8>,
    bytes: usize,
    errno: u16,
}

/// Way of reading a source.
enum By {
    Files(Vec<Reader>),
    Groups(Box<(Groups, Budget)>),
    /// Threads ask file systems: a price is a mount's part of the CPU time of a scan.
    Space(Box<Mounts>),
    /// One text, or two, for all NFS mounts.
    Mountstats,
}

impl Probe {
    /// A probe; `None` for kinds that are no separate files to measure, links, names and threads, and for kinds without
    /// instances.
    pub(super) fn new(
        root: &Arc<Root>,
        source: &'static Source,
        (pids, processes): &(Vec<u64>, usize),
    ) -> Option<Probe> {
        let (by, instances) = match source.scope {
            Scope::Cgroup if source.kind == kind::CGROUP_NAME => return None,
            Scope::Cgroup => groups(root)?,
            Scope::Mount if source.kind == kind::MOUNTSTATS => (By::Mountstats, 1),
            Scope::Mount => space(root)?,
            Scope::Thread | Scope::Program => return None,
            Scope::Process if matches!(source.kind, kind::PID_EXE | kind::PID_CONTAINER) => {
                return None;
            }
            Scope::Machine => files(root, source, &[String::new()]),
            Scope::Process => {
                let names: Vec<String> = pids.iter().map(u64::to_string).collect();
                let (by, _) = files(root, source, &names);
                (by, *processes)
            }
            scope => files(root, source, &listing::instances(root, scope)),
        };
        (instances > 0).then(|| Probe {
            source,
            by,
            instances,
            warm: Vec::new(),
            cold: Vec::new(),
            spent: Spent::default(),
            text: Vec::new(),
            bytes: 0,
            errno: 0,
        })
    }

    /// Reads every instance once; each read's time is one measurement.
    pub(super) fn round(&mut self, root: &Arc<Root>, cold: bool) {
        let prices = match cold {
            true => &mut self.cold,
            false => &mut self.warm,
        };
        match &mut self.by {
            By::Files(readers) => {
                for reader in readers {
                    match read_file(root, reader, &mut self.text) {
                        Ok(spent) => {
                            prices.extend(spent.map(|spent| self.spent.add(spent)));
                            self.bytes = self.bytes.max(self.text.len());
                        }
                        Err(errno) => self.errno = errno,
                    }
                }
            }
            By::Groups(groups) => {
                let (groups, budget) = &mut **groups;
                for slot in 0..self.instances {
                    let watch = Watch::start();
                    let read = groups.read(root, slot, watch.start_ns, budget);
                    let spent = watch.stop();
                    if read == Some(true) {
                        self.bytes = self.bytes.max(groups.text_bytes());
                        prices.push(self.spent.add(spent));
                    }
                }
            }
            By::Space(mounts) => {
                let start_ns = machine::process_cpu_ns();
                mounts.sample(root, &RealClock, true, false);
                self.bytes = self.bytes.max(mounts.text_bytes());
                let ns = machine::process_cpu_ns() - start_ns;
                prices.push(ns / u64::try_from(self.instances).unwrap_or(1));
            }
            By::Mountstats => {
                let watch = Watch::start();
                match mountstats::read(root) {
                    Ok(mounts) => {
                        prices.push(self.spent.add(watch.stop()));
                        self.bytes = mounts.values().map(Vec::len).sum();
                    }
                    Err(errno) => self.errno = errno,
                }
            }
        }
    }

    pub(super) fn price(self) -> Price {
        let files = match (&self.by, self.source.reads) {
            (By::Groups(groups), _) => groups.0.kept(),
            (By::Space(_) | By::Mountstats, _) | (By::Files(_), Reads::Digest(_)) => 0,
            (By::Files(_), Reads::Bundle(files)) => files.len() * self.instances,
            (By::Files(_), _) => self.instances,
        };
        Price {
            path: self.path(),
            source: self.source,
            instances: self.instances,
            files,
            errno: if self.warm.is_empty() { self.errno } else { 0 },
            warm: Spread::of(self.warm),
            cold: Spread::of(self.cold),
            spent: self.spent,
            bytes: self.bytes,
        }
    }

    fn path(&self) -> String {
        match (&self.by, self.source.scope) {
            (By::Files(readers), Scope::Machine) => readers
                .first()
                .map_or(String::new(), |reader| reader.path().to_string()),
            (_, Scope::Process | Scope::Thread) => self.source.path_of("PID"),
            _ => self.source.path_of("*"),
        }
    }
}

/// Reads a file once. Returns the time if the file was open before.
fn read_file(root: &Root, reader: &mut Reader, text: &mut Vec<u8>) -> Result<Option<Spent>, u16> {
    let opened = reader.is_open();
    let watch = Watch::start();
    reader.read(root, watch.start_ns, text)?;
    let spent = watch.stop();
    Ok((opened || !root.keeps_files()).then_some(spent))
}

/// Time of reads without waits for a CPU, and the CPU time in it.
#[derive(Clone, Copy, Default)]
pub(super) struct Spent {
    ns: u64,
    cpu_ns: u64,
}

impl Spent {
    fn add(&mut self, more: Spent) -> u64 {
        self.ns += more.ns;
        self.cpu_ns += more.cpu_ns;
        more.ns
    }

    /// True if the reader sleeps more than the kernel works.
    pub(super) fn is_asleep(&self) -> bool {
        self.cpu_ns < self.ns / 2
    }
}

/// The clocks at the begin of a read.
struct Watch {
    start_ns: u64,
    waited_ns: u64,
    cpu_ns: u64,
}

impl Watch {
    fn start() -> Watch {
        Watch {
            waited_ns: RealClock.waited_ns(),
            cpu_ns: clock::thread_cpu_ns(),
            start_ns: RealClock.mono_ns(),
        }
    }

    fn stop(&self) -> Spent {
        let ns = RealClock.mono_ns() - self.start_ns;
        let cpu_ns = clock::thread_cpu_ns() - self.cpu_ns;
        let waited_ns = RealClock.waited_ns() - self.waited_ns;
        Spent {
            ns: ns.saturating_sub(waited_ns),
            cpu_ns,
        }
    }
}

fn files(root: &Root, source: &'static Source, names: &[String]) -> (By, usize) {
    let net = facts::net_path(root);
    let path = |name: &String| {
        source
            .path_of(name)
            .replace("proc/net/", &format!("{net}/"))
    };
    let readers = names.iter().map(|name| Reader::new(source, path(name)));
    (By::Files(readers.collect()), names.len())
}

/// Control groups as a source, and their number; `None`: there are none.
fn groups(root: &Root) -> Option<(By, usize)> {
    let mut budget = Budget {
        left: session::files_to_keep(),
    };
    let mut groups = Groups::new(budget.left / 2, 0);
    groups.look(root, &RealClock, &mut budget);
    // The first reading opens the files.
    groups.read_again(root, RealClock.mono_ns(), &mut budget);
    let count = groups.len();
    (!groups.is_empty()).then(|| (By::Groups(Box::new((groups, budget))), count))
}

/// File systems as a source, and the number of mounts; `None`: no mount has sizes.
fn space(root: &Arc<Root>) -> Option<(By, usize)> {
    let mut mounts = Mounts::new();
    // The first scan lists the mounts and starts the thread.
    mounts.sample(root, &RealClock, true, true);
    let count = mounts.count();
    (count > 0).then(|| (By::Space(Box::new(mounts)), count))
}
