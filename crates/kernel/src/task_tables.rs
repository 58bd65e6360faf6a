//! The tables of processes and threads of one sampler: the listing of each scan, narrowed to the chosen processes, and the
//! sections of both tables.

use std::sync::Arc;

use kymo_base::{cost, scan};
use kymo_sys::kernel_file::Root;

use crate::backoff::SlowReads;
use crate::choice::{Choice, Chooser};
use crate::identity::Lane;
use crate::source::{Scope, kind};
use crate::task_states::TaskStates;
use crate::tasks::{Listing, Scan, TaskPlan, TaskSource, Tasks};

/// Most scans for which a listing holds while no process is born: pids can also be given by hand.
const LISTED_EACH: u32 = 5;

/// State of the last listing of processes.
#[derive(Default)]
struct LastListing {
    /// The last pid that the kernel gave before it.
    last: Option<u64>,
    /// Scans since.
    scans: u32,
    /// True: it is the second one with this pid. A process is listed a moment after it got its pid, so the first may lack one.
    is_settled: bool,
    /// True: a process was born, and the last pid was the same. A loadavg made up by lxcfs is late.
    is_wrong: bool,
}

impl LastListing {
    fn is_same(&self, last: Option<u64>) -> bool {
        last.is_some() && last == self.last && !self.is_wrong
    }

    /// True if no process was born since.
    fn holds(&self, last: Option<u64>) -> bool {
        self.is_same(last) && self.is_settled && self.scans < LISTED_EACH
    }

    /// Takes notice of the next listing; `has_new`: it has a process that the one before lacks.
    fn renew(&mut self, last: Option<u64>, has_new: bool) {
        let is_same = self.is_same(last);
        self.is_wrong |= is_same && self.is_settled && has_new;
        (self.last, self.is_settled, self.scans) = (last, is_same, 0);
    }
}

/// The last pid that the kernel gave; `None`: not known. A process that is born before this is read is in a listing after it.
fn last_pid(root: &Root) -> Option<u64> {
    let mut text = Vec::with_capacity(64);
    if !root.has_own_pids() {
        return None;
    }
    root.read("proc/loadavg", &mut text).ok()?;
    scan::number(scan::words(&text).nth(4)?)
}

/// When the next scan of processes is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// In this sample.
    Now,
    /// In a later sample.
    Later,
}

/// Both tables and their common source.
pub(crate) struct TaskTables<S: TaskSource> {
    source: S,
    processes: Tasks<S>,
    threads: Option<Tasks<S>>,
    chooser: Option<Chooser>,
    lane: Arc<Lane>,
    /// Counts of all processes by state, if they are recorded.
    states: Option<TaskStates>,
    listed: LastListing,
    pids: Listing,
    tids: Listing,
}

impl<S: TaskSource> TaskTables<S> {
    /// Creates empty tables. `choice` selects the processes to record; `None` selects all.
    pub(crate) fn new(
        source: S,
        plan: TaskPlan,
        choice: Option<Choice>,
        lane: Arc<Lane>,
    ) -> TaskTables<S> {
        let threads = plan.threads.then(|| Tasks::new(Scope::Thread, plan));
        TaskTables {
            source,
            processes: Tasks::new(Scope::Process, plan),
            threads,
            chooser: choice.map(|choice| Chooser::new(choice, lane.clone())),
            lane,
            states: None,
            listed: LastListing::default(),
            pids: Vec::new(),
            tids: Vec::new(),
        }
    }

    /// Records counts of processes by state, too. They are those of the machine, so that a choice of processes has
    /// none.
    pub(crate) fn with_states(mut self) -> TaskTables<S> {
        self.states = self.chooser.is_none().then(TaskStates::new);
        self
    }

    /// Reads the due tasks, and calls `emit` with each kind, its cost as one byte, and its section.
    pub(crate) fn sample(
        &mut self,
        scan: &mut Scan,
        slow: &mut SlowReads,
        key: bool,
        due: Due,
        emit: &mut impl FnMut(u8, u8, &[u8]),
    ) {
        if due == Due::Now {
            self.list_processes(scan);
        }
        for (scope, table) in [
            (Scope::Process, Some(&mut self.processes)),
            (Scope::Thread, self.threads.as_mut()),
        ] {
            let Some(table) = table else { continue };
            table.begin(key);
            let cost_ns = match due {
                Due::Now => {
                    let listing = match scope {
                        Scope::Thread => {
                            let pids = &self.pids;
                            self.source.threads(scan.root, pids, &mut self.tids);
                            &self.tids
                        }
                        _ => &self.pids,
                    };
                    table.update(listing, scan.budget);
                    let costs = table.read(&mut self.source, scan, slow);
                    let reborn = table.take_reborn();
                    if let Some(chooser) = &mut self.chooser {
                        chooser.forget(&reborn);
                    }
                    costs
                }
                Due::Later if key => table.idle(),
                Due::Later => continue,
            };
            for ((kind, section), ns) in table.sections().into_iter().zip(cost_ns) {
                emit(kind, cost::encode(ns), section);
            }
        }
        if let Some(states) = &mut self.states {
            match due {
                Due::Now => emit(
                    kind::TASK_STATES,
                    0,
                    states.counted(key, self.processes.states()),
                ),
                Due::Later if key => emit(kind::TASK_STATES, 0, states.not_due()),
                Due::Later => {}
            }
        }
        if self.processes.identify(&self.lane, key) {
            for (kind, section) in self.processes.identity_sections() {
                emit(kind, 0, section);
            }
        }
    }

    fn list_processes(&mut self, scan: &Scan) {
        match &mut self.chooser {
            Some(chooser) => {
                chooser.list(scan.root, &mut self.source, scan.age_ns, &mut self.pids);
            }
            None => {
                let last = last_pid(scan.root);
                self.listed.scans += 1;
                if self.listed.holds(last) && !self.processes.has_lost() {
                    return;
                }
                let known = std::mem::take(&mut self.pids);
                self.source.processes(|pid| self.pids.push((pid, 0)));
                let is_new = |pid| known.binary_search(pid).is_err();
                let has_new = self.listed.is_same(last) && self.pids.iter().any(is_new);
                // A last pid that moves on meanwhile is right.
                let has_new = has_new && last_pid(scan.root) == last;
                self.listed.renew(last, has_new);
            }
        }
    }

    /// Number of processes with a text that the sampler may not read.
    pub(crate) fn forbidden(&self) -> usize {
        self.processes.forbidden()
    }

    /// Number of processes, of threads, and of files kept open.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        let threads = self.threads.as_ref();
        (
            self.processes.len(),
            threads.map_or(0, Tasks::len),
            self.processes.kept() + threads.map_or(0, Tasks::kept),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A letter for each scan, `L` for a new listing, of last pids and whether a listing has a new process.
    fn listings(scans: &[(Option<u64>, bool)]) -> String {
        let mut listed = LastListing::default();
        let scan = |&(last, has_new)| {
            listed.scans += 1;
            match listed.holds(last) {
                true => '-',
                false => {
                    listed.renew(last, has_new);
                    'L'
                }
            }
        };
        scans.iter().map(scan).collect()
    }

    #[test]
    fn a_listing_holds_while_no_process_is_born() {
        let same = |count| vec![(Some(7), false); count];
        assert_eq!(listings(&same(8)), "LL----L-");
        // The second listing may have one that the first lacked.
        let born = [(Some(7), true), (Some(7), true), (Some(7), false)];
        assert_eq!(listings(&born), "LL-");
        let others = [(Some(7), true), (Some(8), true), (Some(9), true)];
        assert_eq!(listings(&others), "LLL");
        assert_eq!(listings(&[(None, false); 4]), "LLLL");
        // A born process without a new last pid: never again.
        let mut late = same(6);
        late.extend([(Some(7), true), (Some(7), false), (Some(7), false)]);
        assert_eq!(listings(&late), "LL----LLL");
    }
}
