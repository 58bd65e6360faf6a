//! Chooses the processes to record, before the sampler reads their files at each scan. A process is judged in its first two
//! scans, since it may be between fork and exec in the first, and seldom after that.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_base::context::Context;
use kymo_base::name::DisplayName;
use kymo_base::scan;
use kymo_sys::kernel_file::Root;

use crate::identity::Lane;
use crate::tasks::{Listing, TaskSource};

/// Key of the context under which a recording keeps its process filter, as spelled for `--procfilt`.
pub const PROCESS_FILTER: &str = "process_filter";
/// Key of the context that has the unread parts of processes, as letters of `--procopts`.
pub const PROCESSES_LEFT_OUT: &str = "processes_left_out";

/// Describes the parts of processes that a recording leaves out.
pub fn not_recorded(context: &Context) -> Option<String> {
    let mut words = Vec::new();
    if let Some(filter) = context.get(PROCESS_FILTER) {
        let filter = DisplayName(filter.as_bytes());
        words.push(format!("other processes than those of --procfilt {filter}"));
    }
    let left_out = context.get(PROCESSES_LEFT_OUT).unwrap_or_default();
    if left_out.contains('p') {
        words.push("processes that were born after the start".into());
    }
    if left_out.contains('I') {
        words.push("I/O of processes".into());
    }
    (!words.is_empty()).then(|| words.join(", "))
}

/// Time that a verdict holds.
const VERDICT_NS: u64 = 60_000_000_000;
/// The last word of this file is the pid of the youngest process, with a newline.
const YOUNGEST: &str = "proc/loadavg";
/// Above this number of wanted processes, a listing is cheaper than a check of each; a guess.
const ASKED_MAX: usize = 64;

/// A process that may be recorded. [`Facts`] decides which fields are filled in.
#[derive(Default, Debug)]
pub struct Candidate {
    /// The process' number.
    pub pid: u32,
    /// The parent's number.
    pub parent: u64,
    /// The kernel's name for it.
    pub comm: Vec<u8>,
    /// The real user.
    pub uid: Option<u64>,
    /// The command line, words ended by NUL.
    pub command: Vec<u8>,
    /// The text of its `cgroup`.
    pub groups: Vec<u8>,
    /// The text of the container around it; empty if there is none.
    pub container: Vec<u8>,
}

/// Facts that a verdict depends on, and so the files to read.
#[derive(Clone, Copy, Default, Debug)]
pub struct Facts {
    /// `stat`, for the name.
    pub name: bool,
    /// `stat`, for the parent.
    pub parent: bool,
    /// `status`, for the user.
    pub user: bool,
    /// `cmdline`.
    pub command: bool,
    /// `cgroup`.
    pub groups: bool,
}

/// Returns true if a process is wanted.
pub type Wants = Arc<dyn Fn(&Candidate) -> bool + Send + Sync>;

/// Rule by which processes are recorded.
#[derive(Clone)]
pub struct Choice {
    /// Decides about a process; `None` records all.
    pub wants: Option<Wants>,
    /// The facts that `wants` uses.
    pub facts: Facts,
    /// True: processes born after the first scan are not chosen.
    pub fixed: bool,
}

impl std::fmt::Debug for Choice {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Choice({:?}, fixed: {})", self.facts, self.fixed)
    }
}

struct Verdict {
    is_wanted: bool,
    judged: u8,
    judged_ns: u64,
    /// CPU time at the verdict: a process that has not run since keeps its name, command line and user.
    cpu_ns: Option<u64>,
    seen: u64,
}

/// Narrows listings to the chosen processes.
pub(crate) struct Chooser {
    choice: Choice,
    /// Finds the containers of processes.
    lane: Arc<Lane>,
    verdicts: HashMap<u32, Verdict>,
    listing: u64,
    listed_ns: u64,
    youngest: Vec<u8>,
    text: Vec<u8>,
}

impl Chooser {
    pub(crate) fn new(choice: Choice, lane: Arc<Lane>) -> Chooser {
        Chooser {
            choice,
            lane,
            verdicts: HashMap::new(),
            listing: 0,
            listed_ns: 0,
            youngest: Vec::new(),
            text: Vec::with_capacity(4096),
        }
    }

    /// Replaces `out` by the processes to record.
    pub(crate) fn list(
        &mut self,
        root: &Root,
        source: &mut impl TaskSource,
        age_ns: u64,
        out: &mut Listing,
    ) {
        out.clear();
        if self.keeps_last(root, age_ns) && self.ask_wanted(root, out) {
            return;
        }
        self.listing += 1;
        self.listed_ns = age_ns;
        source.processes(|pid| {
            if self.is_wanted(root, pid, age_ns) {
                out.push((pid, 0));
            }
        });
        let listing = self.listing;
        self.verdicts.retain(|_, verdict| verdict.seen == listing);
    }

    /// Forgets the verdicts of processes whose number another process has taken.
    pub(crate) fn forget(&mut self, pids: &[u32]) {
        for pid in pids {
            self.verdicts.remove(pid);
            self.youngest.clear();
        }
    }

    /// Returns true if no process can have started since the last listing, and no verdict is due.
    fn keeps_last(&mut self, root: &Root, age_ns: u64) -> bool {
        if self.choice.fixed && self.listing > 0 {
            return true;
        }
        self.text.clear();
        let read = root.read(YOUNGEST, &mut self.text);
        let youngest = self.text.rsplit(|&b| b == b' ').next().unwrap_or_default();
        let is_same = read.is_ok() && !youngest.is_empty() && youngest == self.youngest;
        self.youngest.clear();
        self.youngest.extend_from_slice(youngest);
        let is_settled = self.listing > 1 && age_ns.saturating_sub(self.listed_ns) < VERDICT_NS;
        is_same && is_settled && root.has_own_pids()
    }

    /// Lists the wanted processes that still exist; false if they are too many to check one by one.
    fn ask_wanted(&mut self, root: &Root, out: &mut Listing) -> bool {
        let wanted = self
            .verdicts
            .iter()
            .filter(|(_, verdict)| verdict.is_wanted);
        out.extend(wanted.map(|(&pid, _)| (pid, 0)));
        if out.len() > ASKED_MAX && !self.choice.fixed {
            out.clear();
            return false;
        }
        out.sort_unstable();
        let verdicts = &mut self.verdicts;
        // A process that reuses the number of a dead one has not been judged yet.
        out.retain(|&(pid, _)| is_there(root, pid) || verdicts.remove(&pid).is_none());
        true
    }

    fn is_wanted(&mut self, root: &Root, pid: u32, age_ns: u64) -> bool {
        if self.choice.wants.is_none() && !self.choice.fixed {
            return true;
        }
        let last = self.verdicts.get_mut(&pid);
        let known = last.map(|verdict| {
            verdict.seen = self.listing;
            (
                verdict.is_wanted,
                verdict.judged,
                verdict.judged_ns,
                verdict.cpu_ns,
            )
        });
        if let Some((is_wanted, judged, judged_ns, cpu_ns)) = known {
            let is_due = judged < 2 || age_ns.saturating_sub(judged_ns) >= VERDICT_NS;
            let may_differ = || {
                let now = root.process_cpu_ns(pid);
                now.is_none() || now != cpu_ns || self.choice.facts.moves_at_rest()
            };
            if !is_due || !may_differ() {
                return is_wanted;
            }
        }
        let (was_wanted, judged) =
            known.map_or((false, 0), |(wanted, judged, ..)| (wanted, judged));
        let cpu_ns = root.process_cpu_ns(pid);
        let (is_wanted, judged) = match self.judge(root, pid) {
            Some(is_wanted) => (is_wanted, judged.saturating_add(1)),
            None => (was_wanted, judged.min(1)),
        };
        let verdict = Verdict {
            is_wanted,
            judged,
            judged_ns: age_ns,
            cpu_ns,
            seen: self.listing,
        };
        self.verdicts.insert(pid, verdict);
        is_wanted
    }

    /// Judges a process; `None` if that takes the name of its container, which the slow lane is still looking for.
    fn judge(&mut self, root: &Root, pid: u32) -> Option<bool> {
        let Some(wants) = &self.choice.wants else {
            return Some(true);
        };
        let mut candidate = Candidate {
            pid,
            ..Candidate::default()
        };
        let facts = self.choice.facts;
        let text = &mut self.text;
        for (file, is_asked) in [
            ("stat", facts.name || facts.parent),
            ("status", facts.user),
            ("cmdline", facts.command),
            ("cgroup", facts.groups),
        ] {
            if is_asked && root.read(&format!("proc/{pid}/{file}"), text).is_ok() {
                candidate.take(file, text);
            }
        }
        let container = self.lane.container(&candidate.groups);
        let is_known = container.is_some();
        candidate.container = container.unwrap_or_default();
        let is_wanted = wants(&candidate);
        (is_wanted || is_known).then_some(is_wanted)
    }
}

impl Facts {
    /// Returns true if these facts may change while the process sleeps.
    fn moves_at_rest(self) -> bool {
        self.groups || self.parent
    }
}

impl Candidate {
    fn take(&mut self, file: &str, text: &[u8]) {
        match file {
            "stat" => {
                let open = text.iter().position(|&b| b == b'(');
                let close = text.iter().rposition(|&b| b == b')');
                if let (Some(open), Some(close)) = (open, close)
                    && open < close
                {
                    self.comm = text[open + 1..close].to_vec();
                    let mut words = text[close + 1..].split(|&b| b == b' ').skip(2);
                    self.parent = words.next().and_then(scan::number).unwrap_or(0);
                }
            }
            "status" => {
                let mut lines = text.split(|&b| b == b'\n');
                let uids = lines.find_map(|line| line.strip_prefix(b"Uid:"));
                let uid = uids.and_then(|uids| uids.trim_ascii().split(|&b| b == b'\t').next());
                self.uid = uid.and_then(scan::number);
            }
            "cmdline" => self.command = text.to_vec(),
            _ => self.groups = text.to_vec(),
        }
    }
}

fn is_there(root: &Root, pid: u32) -> bool {
    match root.has_own_pids() {
        true => root.process_cpu_ns(pid).is_some(),
        false => root.folder(&format!("proc/{pid}")).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::tasks::ProcTasks;
    use crate::tests::MadeRoot;

    const SECOND_NS: u64 = 1_000_000_000;

    /// A made-up proc with processes named by the test.
    struct Proc {
        made: MadeRoot,
        chooser: Chooser,
    }

    impl Proc {
        /// Wants the processes named `a`.
        fn new(fixed: bool) -> Proc {
            let choice = Choice {
                wants: Some(Arc::new(|candidate| candidate.comm == b"a")),
                facts: Facts {
                    name: true,
                    ..Facts::default()
                },
                fixed,
            };
            Proc {
                made: MadeRoot::new(),
                chooser: Chooser::new(choice, Arc::default()),
            }
        }

        fn is_called(&self, pid: u32, name: &str) {
            let stat = format!("{pid} ({name}) S 1 0 0\n");
            self.made.write(&format!("proc/{pid}/stat"), &stat);
        }

        fn ends(&self, pid: u32) {
            self.made.remove(&format!("proc/{pid}"));
        }

        fn listed(&mut self, second: u64) -> Vec<u32> {
            let mut proc = ProcTasks::new(&self.made.root);
            let mut out = Listing::new();
            self.chooser
                .list(&self.made.root, &mut proc, second * SECOND_NS, &mut out);
            let mut pids: Vec<u32> = out.iter().map(|&(pid, _)| pid).collect();
            pids.sort_unstable();
            pids
        }
    }

    #[test]
    fn the_chosen_alone_are_listed_and_new_ones_are_found() {
        let mut proc = Proc::new(false);
        proc.is_called(7, "a");
        proc.is_called(8, "b");
        assert_eq!(proc.listed(1), [7]);
        proc.is_called(9, "a");
        assert_eq!(proc.listed(2), [7, 9]);
        proc.ends(7);
        assert_eq!(proc.listed(3), [9]);
        proc.is_called(7, "b");
        assert_eq!(proc.listed(4), [9], "another process has the number");
    }

    #[test]
    fn a_program_is_judged_after_its_exec_and_then_once_a_minute() {
        let mut proc = Proc::new(false);
        proc.is_called(7, "sh");
        assert_eq!(proc.listed(1), [0; 0]);
        proc.is_called(7, "a");
        assert_eq!(proc.listed(2), [7], "seen the second time");
        proc.is_called(7, "b");
        // The name is not read again for a minute: a verdict needs no read.
        assert_eq!(proc.listed(3), [7]);
        assert_eq!(proc.listed(61), [7]);
        assert_eq!(proc.listed(62), [0; 0]);
    }

    #[test]
    fn a_process_with_the_number_of_a_chosen_one_is_judged_anew() {
        for (fixed, again) in [(false, vec![7]), (true, vec![])] {
            let mut proc = Proc::new(fixed);
            proc.made.write("proc/loadavg", "0.00 0.00 0.00 1/10 7\n");
            proc.is_called(7, "a");
            assert_eq!(proc.listed(1), [7]);
            assert_eq!(proc.listed(2), [7]);
            proc.is_called(7, "b");
            proc.chooser.forget(&[7]);
            assert_eq!(proc.listed(3), [0; 0], "fixed: {fixed}");
            proc.is_called(7, "a");
            assert_eq!(proc.listed(4), again, "fixed: {fixed}");
        }
    }

    #[test]
    fn none_that_is_born_later_is_looked_for() {
        let mut proc = Proc::new(true);
        proc.is_called(7, "a");
        proc.is_called(8, "a");
        assert_eq!(proc.listed(1), [7, 8]);
        proc.is_called(9, "a");
        assert_eq!(proc.listed(2), [7, 8]);
        proc.ends(7);
        assert_eq!(proc.listed(3), [8]);
        proc.is_called(7, "a");
        assert_eq!(proc.listed(100), [8], "another process has the number");
    }

    #[test]
    fn facts_are_cut_from_their_files_and_odd_texts_are_none() {
        let mut candidate = Candidate::default();
        candidate.take("stat", b"7 (a) b) S 12 0 0\n");
        candidate.take("status", b"Name:\tx\nUid:\t1000\t1\t2\t3\n");
        assert_eq!(candidate.comm, b"a) b");
        assert_eq!((candidate.parent, candidate.uid), (12, Some(1000)));
        for text in ["", "7", "7 (", ")(", "7 (a)", "7 (a) S", "Uid:", "Uid:\tx"] {
            let mut odd = Candidate::default();
            odd.take("stat", text.as_bytes());
            odd.take("status", text.as_bytes());
            assert_eq!((odd.parent, odd.uid), (0, None), "{text}");
        }
    }

    #[test]
    fn where_nothing_came_the_chosen_are_asked_for_and_nothing_is_listed() {
        let root = Root::open(Path::new("/")).expect("a root");
        if !root.has_own_pids() {
            return kymo_sys::skipped::skipped("/proc has the pids of another namespace");
        }
        let own = std::process::id();
        let choice = Choice {
            wants: Some(Arc::new(move |candidate| candidate.pid == own)),
            facts: Facts::default(),
            fixed: true,
        };
        let mut chooser = Chooser::new(choice, Arc::default());
        let mut proc = ProcTasks::new(&root);
        let mut out = Listing::new();
        for scan in 0..10 {
            chooser.list(&root, &mut proc, scan * 100 * SECOND_NS, &mut out);
            assert_eq!(out, [(own, 0)]);
        }
        assert_eq!(chooser.listing, 1);
    }
}
