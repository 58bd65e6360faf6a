//! The source of tasks. A table gets from it the list of tasks and the texts of each, and knows no files itself. A source may
//! read all tasks at once when the table asks for the processes, and then return the texts from memory.

use kymo_sys::clock::Clock;
use kymo_sys::kernel_file::Root;
use std::sync::Arc;

use crate::backoff::Allowance;
use crate::idle::Account;
use crate::source::Scope;

/// Budget of files that all tables together may keep open.
pub struct Budget {
    /// Number of further files that may be kept open.
    pub left: u64,
}

/// Arguments of a scan.
pub(crate) struct Scan<'a> {
    /// The folder below which the files are.
    pub(crate) root: &'a Root,
    /// Clock for the cost of each read.
    pub(crate) clock: &'a dyn Clock,
    /// Time for ages (which runs faster at `-i0`).
    pub(crate) age_ns: u64,
    /// Limits of a read's time.
    pub(crate) allowance: Allowance,
    /// Budget of files kept open.
    pub(crate) budget: &'a mut Budget,
}

/// Tasks of a scan, as pid and tid; the tid is 0 for processes.
pub(crate) type Listing = Vec<(u32, u32)>;

/// The pid of a task, and the name of its instance in a recording.
pub(crate) struct TaskId {
    /// Pid of the task's process.
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

    /// Name of the file in /proc/PID.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Stat => "stat",
            Part::Io => "io",
            Part::Status => "status",
        }
    }
}

/// Expected use of a text by later scans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// The task sleeps or is new, so the next scan will probably not read it.
    Once,
    /// The task runs, so each scan reads it.
    EachScan,
}

/// Accounts of CPU time, by which a source knows that a task has not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accounting {
    /// There are no accounts: any task may have run.
    Missing,
    /// Unknown before the second scan.
    Unknown,
    /// Each task has an account.
    Kept,
}

/// Conclusions that accounts allow in one scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resting {
    /// State of the accounts.
    pub(crate) accounts: Accounting,
    /// True if an account covers all threads of a process.
    pub(crate) counts_threads: bool,
    /// True if the kernel reclaims memory from processes, including sleeping ones.
    pub(crate) reclaims: bool,
}

/// State that a source keeps for one task.
pub(crate) trait Handle: Default {
    /// Returns true if the handle belongs to one task for ever: after its `stat` is gone, another task has the number.
    fn is_held(&self) -> bool;
    /// EACCES or EPERM if the sampler may not read the text, else 0.
    fn forbidden(&self, part: Part) -> u16;
    /// Forgets which texts were forbidden, since another process has the number.
    fn retry(&mut self);
    /// Number of files kept open.
    fn kept(&self) -> u64;
    /// Closes the files of a sleeping task; returns their number.
    fn rest(&mut self) -> u64;
}

/// Lists tasks, and returns the texts of each. Errors are errnos; a task that has ended gives ESRCH or ENOENT.
pub(crate) trait TaskSource {
    /// State for one task of a table.
    type Handle: Handle;

    /// Calls `each` with the pid of each process.
    fn processes(&mut self, each: impl FnMut(u32));

    /// Replaces `out` by the threads of these processes.
    fn threads(&mut self, root: &Root, pids: &Listing, out: &mut Listing);

    /// Begins a scan of one scope.
    fn resting(&mut self, scope: Scope, root: &Root) -> Resting;

    /// The account of a task; `None` if the task may have run.
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

    /// Replaces `out` by a text of a task, and keeps no file open.
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
