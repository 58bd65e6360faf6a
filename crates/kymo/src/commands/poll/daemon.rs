//! A daemon's pid file, and its way into the background: the starting process waits until the daemon polls.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use kymo_sys::own_name::OwnName;
use kymo_sys::sure_folder::{self, SureFolder};
use kymo_sys::{machine, privilege};

use super::log::{self, PollLog};

/// The pid file of this process.
#[derive(Debug)]
pub(super) struct PollPidFile {
    file: File,
    name: OwnName,
}

impl PollPidFile {
    /// Opens or makes the file. If it names a process, that process must have ended.
    pub(super) fn take(path: &Path, owner: (u32, u32)) -> Result<PollPidFile, String> {
        let cannot =
            |error: io::Error| format!("cannot write the pid file {}: {error}", path.display());
        let mut options = OpenOptions::new();
        // Never through a link, which somebody else may have put there.
        options.custom_flags(machine::PLAIN_FILE);
        let options = options.read(true).write(true).create(true).truncate(false);
        let above = path.parent().unwrap_or(Path::new("/"));
        let folder = SureFolder::open(above).map_err(cannot)?;
        let pinned = folder.own_path().join(path.file_name().unwrap_or_default());
        let file = options.mode(0o644).open(pinned).map_err(cannot)?;
        let mut text = String::new();
        // A text that is no number names no process.
        let _ = (&file).take(16).read_to_string(&mut text);
        let holder = text.lines().next().and_then(|line| line.parse().ok());
        if let Some(pid) =
            holder.filter(|&pid| pid != std::process::id() && privilege::is_alive(pid))
        {
            return Err(format!(
                "cannot start: process {pid} runs already, says {}",
                path.display()
            ));
        }
        sure_folder::give_file(&file, owner.0, owner.1).map_err(cannot)?;
        let name = OwnName::of(path).map_err(cannot)?;
        Ok(PollPidFile { file, name })
    }

    /// Writes the number of this process into the file.
    pub(super) fn write(&self) -> Result<(), String> {
        use std::os::unix::fs::FileExt;
        let text = format!("{}\n", std::process::id());
        let written = self.file.set_len(0);
        written
            .and_then(|()| self.file.write_all_at(text.as_bytes(), 0))
            .map_err(|error| format!("cannot write the pid file: {error}"))
    }

    /// Leaves the file to another process.
    pub(super) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for PollPidFile {
    fn drop(&mut self) {
        // Another user's folder may forbid this; then the next poller sees that this process has ended.
        let _ = self.name.remove();
    }
}

/// Reports to the starting process that this one polls now.
#[derive(Debug)]
pub(crate) struct Ready(Option<Waited>);

/// Files that a daemon needs to leave the terminal, opened before it enters the sandbox.
#[derive(Debug)]
struct Waited {
    pipe: PipeWriter,
    null: File,
    syslog: Option<UnixDatagram>,
    log: Arc<PollLog>,
}

impl Ready {
    /// For a process that stays in the foreground.
    pub(super) fn here() -> Ready {
        Ready(None)
    }

    /// Call this when everything has begun: a daemon leaves its terminal.
    pub(crate) fn say(self) {
        if let Some(waited) = self.0 {
            waited.log.leave_terminal(waited.syslog);
            // Both can fail only if the starting process is gone, and then it does not wait.
            let _ = privilege::replace_standard_files(&waited.null);
            let _ = (&waited.pipe).write_all(b".");
        }
    }
}

/// The process that continues after [`detach`].
pub(super) enum Detached {
    /// The starting process, which ends with this code.
    Parent(ExitCode),
    /// The daemon.
    Daemon(Ready),
}

/// Forks a process that continues in the background. The starting process waits until it polls, or has
/// ended.
pub(super) fn detach(poll_log: &Arc<PollLog>) -> Result<Detached, String> {
    let cannot = |error: io::Error| format!("cannot go into the background: {error}");
    let (mut waiting, pipe) = io::pipe().map_err(cannot)?;
    match privilege::fork().map_err(cannot)? {
        privilege::Side::Parent(_) => {
            drop(pipe);
            // The child reports errors itself.
            let polls = waiting.read(&mut [0]).is_ok_and(|count| count > 0);
            Ok(Detached::Parent(match polls {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(super::FAILED),
            }))
        }
        privilege::Side::Child => {
            drop(waiting);
            privilege::leave_session();
            let null = OpenOptions::new().read(true).write(true).open("/dev/null");
            Ok(Detached::Daemon(Ready(Some(Waited {
                pipe,
                null: null.map_err(cannot)?,
                syslog: log::syslog(),
                log: poll_log.clone(),
            }))))
        }
    }
}
