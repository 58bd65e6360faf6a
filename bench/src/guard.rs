//! Cleaning up on any exit, kill -9 and panics included.
//!
//! The guard is a child that holds the reading end of a pipe and a list of process
//! groups, mounts and directories. When the pipe closes, because the bench ended or
//! died, it removes them: groups first, then mounts, then directories.

use crate::fault::{Cannot, Result};
use rustix::process::{Pid, Signal, kill_process_group, setsid, test_kill_process_group};
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const GROUP_END: Duration = Duration::from_secs(5);

/// The bench's side: adds to the guard's list.
pub(crate) struct Guard {
    child: Child,
    list: Mutex<Option<ChildStdin>>,
}

impl Guard {
    pub(crate) fn start() -> Result<Guard> {
        let me = std::env::current_exe().cannot("find the bench's own program")?;
        let mut child = Command::new(me)
            .arg("guard")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .cannot("start the guard")?;
        let list = Mutex::new(child.stdin.take());
        Ok(Guard { child, list })
    }

    pub(crate) fn group(&self, pgid: u32) -> Result<()> {
        self.send("group", &pgid.to_string())
    }

    pub(crate) fn group_ended(&self, pgid: u32) -> Result<()> {
        self.send("ended", &pgid.to_string())
    }

    pub(crate) fn mounted(&self, dir: &Path) -> Result<()> {
        self.send("mount", &dir.to_string_lossy())
    }

    pub(crate) fn unmounted(&self, dir: &Path) -> Result<()> {
        self.send("unmounted", &dir.to_string_lossy())
    }

    pub(crate) fn directory(&self, dir: &Path) -> Result<()> {
        self.send("directory", &dir.to_string_lossy())
    }

    fn send(&self, word: &str, what: &str) -> Result<()> {
        let mut list = self.list.lock().cannot("reach the guard")?;
        match list.as_mut() {
            Some(pipe) => writeln!(pipe, "{word} {what}").cannot("tell the guard"),
            None => Ok(()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Ok(mut list) = self.list.lock() {
            drop(list.take());
        }
        // The guard limits its own time; its result can no longer be reported.
        let _ = self.child.wait();
    }
}

#[derive(Default, Debug, PartialEq)]
struct Pending {
    groups: Vec<String>,
    mounts: Vec<String>,
    directories: Vec<String>,
}

/// `kymo-bench guard`: reads the list until the pipe closes, then undoes it.
pub(crate) fn run() -> Result<()> {
    // In its own session: Ctrl-C and hang-ups end the bench, not its guard.
    setsid().cannot("leave the session")?;
    let mut pending = Pending::default();
    for line in std::io::stdin().lock().lines() {
        pending.note(&line.cannot("read the list")?);
    }
    pending.undo();
    Ok(())
}

impl Pending {
    fn note(&mut self, line: &str) {
        let (word, what) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "group" => self.groups.push(what.into()),
            "ended" => self.groups.retain(|group| group != what),
            "mount" => self.mounts.push(what.into()),
            "unmounted" => self.mounts.retain(|mount| mount != what),
            "directory" => self.directories.push(what.into()),
            _ => unreachable!("BUG: the guard was told '{line}'"),
        }
    }

    fn undo(&self) {
        let pgids = || self.groups.iter().filter_map(|group| pid(group));
        for pgid in pgids() {
            // ESRCH: the group has ended by itself.
            let _ = kill_process_group(pgid, Signal::KILL);
        }
        for pgid in pgids() {
            await_end(pgid);
        }
        for mount in self.mounts.iter().rev() {
            unmount(mount);
        }
        for directory in self.directories.iter().rev() {
            remove(directory);
        }
    }
}

fn pid(word: &str) -> Option<Pid> {
    Pid::from_raw(word.parse().ok()?)
}

fn await_end(pgid: Pid) {
    let until = Instant::now() + GROUP_END;
    while test_kill_process_group(pgid).is_ok() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn unmount(dir: &str) {
    for lazily in [false, true] {
        let mut command = Command::new("umount");
        if lazily {
            command.arg("-l");
        }
        if command
            .arg(dir)
            .status()
            .is_ok_and(|status| status.success())
        {
            return;
        }
    }
    eprintln!("kymo-bench guard: cannot unmount {dir}");
}

fn remove(dir: &str) {
    if let Err(cause) = std::fs::remove_dir_all(dir)
        && cause.kind() != std::io::ErrorKind::NotFound
    {
        eprintln!("kymo-bench guard: cannot remove {dir}: {cause}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_still_exists_is_undone() {
        let mut pending = Pending::default();
        for line in [
            "group 7",
            "directory /tmp/a b",
            "group 8",
            "ended 7",
            "mount /tmp/a b/m",
            "mount /tmp/n",
            "unmounted /tmp/n",
        ] {
            pending.note(line);
        }
        let want = Pending {
            groups: vec!["8".into()],
            mounts: vec!["/tmp/a b/m".into()],
            directories: vec!["/tmp/a b".into()],
        };
        assert_eq!(pending, want);
    }
}
