//! Where tasks come from. A table asks its source for the tasks there are and for the texts of each, and knows no file itself.
//! A source that reads all tasks at once does so when it is asked for the processes, and hands out texts from then on.

use kymo_sys::clock::Clock;
use kymo_sys::kernel_file::Root;
use std::sync::Arc;

use crate::backoff::Allowance;
use crate::idle::Account;
use crate::source::Scope;

/// The files kept open by all tables, and how many more may be.
pub struct Budget {
    /// Files that may still be opened and kept.
    pub left: u64,
}

/// Arguments of a scan.
pub(crate) struct Scan<'a> {
    /// Where the files are.
    pub(crate) root: &'a Root,
    /// For the price of each read.
    pub(crate) clock: &'a dyn Clock,
    /// The time by which ages are counted (at `-i0` it runs faster).
    pub(crate) age_ns: u64,
    /// Limits of a read's time.
    pub(crate) allowance: Allowance,
    /// For files that stay open.
    pub(crate) budget: &'a mut Budget,
}

/// Tasks of this scan: pid and, for threads, tid.
pub(crate) type Listing = Vec<(u32, u32)>;

/// The number of a task, and the name of its instance in a recording.
pub(crate) struct TaskId {
    /// Of its process.
    pub(crate) pid: u32,
    /// `PID` or `PID/task/TID`.
    pub(crate) name: Arc<str>,
}

/// A text of a task, with the fields and spelling of the file of that name in proc(5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// `stat`
    Stat,
    /// `io`
    Io,
    /// `status`
    Status,
}

impl Part {
    /// The parts of a row, in the order of their costs.
    pub(crate) const ALL: [Part; 3] = [Part::Stat, Part::Io, Part::Status];

    /// The file's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Stat => "stat",
            Part::Io => "io",
            Part::Status => "status",
        }
    }
}

/// How likely it is that the source is asked for the same text at the next scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// The task sleeps, or is new.
    Once,
    /// The task runs.
    EachScan,
}

/// Accounts of CPU time by which a source says that a task has not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accounting {
    /// There is none: a task may always have run.
    Missing,
    /// Two scans have to pass before that is known.
    Unknown,
    /// Each task has one.
    Kept,
}

/// What a table may conclude from accounts in one scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resting {
    /// Whether tasks have accounts.
    pub(crate) accounts: Accounting,
    /// An account counts all threads of a process.
    pub(crate) counts_threads: bool,
    /// The kernel takes memory away from processes, also from those that sleep.
    pub(crate) reclaims: bool,
}

/// What a source keeps for one task.
pub(crate) trait Handle: Default {
    /// True if the handle belongs to one task for ever: when its `stat` is gone, another task has the number.
    fn is_held(&self) -> bool;
    /// EACCES or EPERM if the text is not for us, 0 otherwise.
    fn forbidden(&self, part: Part) -> u16;
    /// Forgets what was forbidden: another process has the number.
    fn retry(&mut self);
    /// Files kept open.
    fn kept(&self) -> u64;
    /// Closes the files of a task that sleeps; their number.
    fn rest(&mut self) -> u64;
}

/// Lists tasks, and gives the texts of each. Errors are errnos; a task that has ended answers ESRCH or ENOENT.
pub(crate) trait TaskSource {
    /// For one task of a table.
    type Handle: Handle;

    /// Calls `each` with the pid of each process.
    fn processes(&mut self, each: impl FnMut(u32));

    /// Replaces `out` by the threads of these processes.
    fn threads(&mut self, root: &Root, pids: &Listing, out: &mut Listing);

    /// Begins a scan of one scope.
    fn resting(&mut self, scope: Scope, root: &Root) -> Resting;

    /// The account of a task; `None`: the task may have run.
    fn account(
        &mut self,
        id: &TaskId,
        handle: &mut Self::Handle,
        scan: &mut Scan,
    ) -> Option<Account>;

    /// Replaces `out` by a text of a task.
    fn read(
        &mut self,
        part: Part,
        id: &TaskId,
        handle: &mut Self::Handle,
        again: Use,
        scan: &mut Scan,
        out: &mut Vec<u8>,
    ) -> Result<(), u16>;

    /// Replaces `out` by a text of a task, and keeps nothing for the next time.
    fn read_once(
        &mut self,
        part: Part,
        id: &TaskId,
        root: &Root,
        out: &mut Vec<u8>,
    ) -> Result<(), u16>;

    /// The name of a text in events.
    fn path(part: Part, id: &TaskId) -> String;
}
