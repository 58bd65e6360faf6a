//! Tasks of `/proc`. The files of running tasks are kept open: a kept file belongs to one process for ever, and returns ESRCH
//! after its death, never another process's numbers. Most processes sleep and have no open file.

use kymo_base::scan;
use kymo_sys::kernel_file::{Folder, KernelFile, Root};

use super::source::{Accounting, Handle, Listing, Part, Resting, Scan, TaskId, TaskSource, Use};
use crate::idle::{self, Account, AccountSource, Accounts, Reclaim};
use crate::reader::{errno_of, read_whole};
use crate::source::Scope;

/// EACCES and EPERM: the sampler may not read the file, now or at later scans.
const FORBIDDEN: [u16; 2] = [13, 1];

/// The folder `proc`, and the state of its accounts.
pub(crate) struct ProcTasks {
    folder: Option<Folder>,
    accounts: Accounts,
    reclaim: Reclaim,
    text: Vec<u8>,
}

/// Files of one task.
#[derive(Default)]
pub(crate) struct ProcFiles {
    stat: File,
    io: File,
    schedstat: File,
}

#[derive(Default)]
struct File {
    kept: Option<KernelFile>,
    confirmed: usize,
    forbidden: u16,
}

impl ProcTasks {
    /// Creates the source for the `proc` below a root.
    pub(crate) fn new(root: &Root) -> ProcTasks {
        ProcTasks {
            folder: root.folder("proc").ok(),
            accounts: Accounts::default(),
            reclaim: Reclaim::default(),
            text: Vec::new(),
        }
    }
}

impl TaskSource for ProcTasks {
    type Handle = ProcFiles;

    fn processes(&mut self, mut each: impl FnMut(u32)) {
        if let Some(folder) = &self.folder {
            // After an error the list has the names read before it; the next scan finds the others.
            let _ = folder.list(|name| {
                let pid = scan::number(name.to_bytes()).and_then(|pid| u32::try_from(pid).ok());
                pid.into_iter().for_each(&mut each);
            });
        }
    }

    /// Lists threads in the kernel's order.
    fn threads(&mut self, root: &Root, pids: &Listing, out: &mut Listing) {
        out.clear();
        for &(pid, _) in pids {
            if let Ok(folder) = root.folder(&format!("proc/{pid}/task")) {
                // A process that ends meanwhile has no threads to list.
                let _ = folder.list(|name| {
                    let tid = scan::number(name.to_bytes()).and_then(|tid| u32::try_from(tid).ok());
                    out.extend(tid.map(|tid| (pid, tid)));
                });
            }
        }
    }

    fn resting(&mut self, scope: Scope, root: &Root) -> Resting {
        // A thread's row has values of its process, which change while the thread is idle.
        let accounts = match scope {
            Scope::Process => match self.accounts.are_kept(root) {
                Some(_) => Accounting::Kept,
                None if self.accounts.are_missing() => Accounting::Missing,
                None => Accounting::Unknown,
            },
            _ => Accounting::Missing,
        };
        Resting {
            accounts,
            counts_threads: root.has_own_pids(),
            reclaims: accounts == Accounting::Kept && self.reclaim.goes_on(root),
        }
    }

    fn account(&mut self, id: &TaskId, files: &mut ProcFiles, scan: &mut Scan) -> Option<Account> {
        match self.accounts.source()? {
            AccountSource::Clock => idle::clock_account(scan.root, id.pid),
            AccountSource::File => {
                let (file, text) = (&mut files.schedstat, &mut self.text);
                let read = file.read(&id.name, "schedstat", Use::EachScan, scan, text);
                read.ok().and_then(|()| idle::file_account(text))
            }
        }
    }

    fn read(
        &mut self,
        part: Part,
        id: &TaskId,
        files: &mut ProcFiles,
        again: Use,
        scan: &mut Scan,
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        let file = match part {
            Part::Stat => &mut files.stat,
            Part::Io => &mut files.io,
            Part::Status => return self.read_once(part, id, scan.root, out),
        };
        file.read(&id.name, part.name(), again, scan, out)
    }

    fn read_once(
        &mut self,
        part: Part,
        id: &TaskId,
        root: &Root,
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        root.read(&Self::path(part, id), out).map_err(errno_of)
    }

    fn path(part: Part, id: &TaskId) -> String {
        format!("proc/{}/{}", id.name, part.name())
    }
}

impl Handle for ProcFiles {
    fn is_held(&self) -> bool {
        self.stat.kept.is_some()
    }

    fn forbidden(&self, part: Part) -> u16 {
        match part {
            Part::Stat => self.stat.forbidden,
            Part::Io => self.io.forbidden,
            Part::Status => 0,
        }
    }

    fn retry(&mut self) {
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

    fn rest(&mut self) -> u64 {
        self.stat.close() + self.io.close()
    }
}

impl File {
    /// Replaces `out` by the file's text; opens a file that is not kept, and keeps it if allowed.
    fn read(
        &mut self,
        task: &str,
        file: &str,
        again: Use,
        scan: &mut Scan,
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        if let Some(kept) = &self.kept {
            return read_whole(kept, &mut self.confirmed, out);
        }
        if self.forbidden != 0 {
            return Err(self.forbidden);
        }
        let result = self.open_and_read(&format!("proc/{task}/{file}"), again, scan, out);
        if let Err(errno) = result
            && FORBIDDEN.contains(&errno)
        {
            self.forbidden = errno;
        }
        result
    }

    fn open_and_read(
        &mut self,
        path: &str,
        again: Use,
        scan: &mut Scan,
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        let opened = scan.root.file(path).map_err(errno_of)?;
        read_whole(&opened, &mut self.confirmed, out)?;
        if again == Use::EachScan && scan.root.keeps_files() && scan.budget.left > 0 {
            scan.budget.left -= 1;
            self.kept = Some(opened);
        }
        Ok(())
    }

    /// Closes the kept file; returns the number of files closed.
    fn close(&mut self) -> u64 {
        u64::from(self.kept.take().is_some())
    }
}
