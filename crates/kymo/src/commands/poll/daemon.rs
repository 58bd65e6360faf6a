//! A daemon's pid file, and its way into the background: whoever starts it goes on once it polls.

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

/// A pid file that is this process'.
#[derive(Debug)]
pub(super) struct PollPidFile {
    file: File,
    name: OwnName,
}

impl PollPidFile {
    /// Opens or makes it. A process whose number it has must have ended.
    pub(super) fn take(path: &Path, owner: (u32, u32)) -> Result<PollPidFile, String> {
        let cannot =
            |error: io::Error| format!("cannot write the pid file {}: {error}", path.display());
        let mut options = OpenOptions::new();
        // Never through a link that somebody else may have put there.
        options.custom_flags(machine::PLAIN_FILE);
        let options = options.read(true).write(true).create(true).truncate(false);
        let above = path.parent().unwrap_or(Path::new("/"));
        let folder = SureFolder::open(above).map_err(cannot)?;
        let pinned = folder.own_path().join(path.file_name().unwrap_or_default());
        let file = options.mode(0o644).open(pinned).map_err(cannot)?;
        let mut text = String::new();
        // What is no number is no process's.
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

    /// Writes the number of this process into it.
    pub(super) fn write(&self) -> Result<(), String> {
        use std::os::unix::fs::FileExt;
        let text = format!("{}\n", std::process::id());
        let written = self.file.set_len(0);
        written
            .and_then(|()| self.file.write_all_at(text.as_bytes(), 0))
            .map_err(|error| format!("cannot write the pid file: {error}"))
    }

    /// It is another process' from now on.
    pub(super) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for PollPidFile {
    fn drop(&mut self) {
        // Another user's folder may not let go of it; then the next one sees that its process has ended.
        let _ = self.name.remove();
    }
}

/// Tells whoever started this process that it polls now.
#[derive(Debug)]
pub(crate) struct Ready(Option<Waited>);

/// What it takes to leave the terminal, opened before the poller shuts itself in.
#[derive(Debug)]
struct Waited {
    pipe: PipeWriter,
    null: File,
    syslog: Option<UnixDatagram>,
    log: Arc<PollLog>,
}

impl Ready {
    /// For a process that stays where it was started.
    pub(super) fn here() -> Ready {
        Ready(None)
    }

    /// To be called when all is begun: a daemon has no terminal any more.
    pub(crate) fn say(self) {
        if let Some(waited) = self.0 {
            waited.log.leave_terminal(waited.syslog);
            // Neither fails, but that who started the daemon may have gone, and then does not wait.
            let _ = privilege::replace_standard_files(&waited.null);
            let _ = (&waited.pipe).write_all(b".");
        }
    }
}

/// Who goes on after [`detach`].
pub(super) enum Detached {
    /// Whoever was started: it ends with this code.
    Parent(ExitCode),
    /// The daemon.
    Daemon(Ready),
}

/// Makes a second process that goes on in the background; the first one waits until it polls, or has ended.
pub(super) fn detach(poll_log: &Arc<PollLog>) -> Result<Detached, String> {
    let cannot = |error: io::Error| format!("cannot go into the background: {error}");
    let (mut waiting, pipe) = io::pipe().map_err(cannot)?;
    match privilege::fork().map_err(cannot)? {
        privilege::Side::Parent(_) => {
            drop(pipe);
            // The child says what is wrong itself.
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
