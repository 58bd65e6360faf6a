//! Cleaning up on any exit, Ctrl-C, kill -9 and panics included.
//!
//! The guard is a child that holds the reading end of a pipe and a list of process
//! groups, mounts and directories. When the pipe closes, because the bench ended or
//! died, it removes them: groups first, with processes that are in no listed group, then mounts, then directories.
//! Processes of the second kind are below a listed one (`kymo serve` starts its parts in sessions of their own, without
//! an environment, and their groups are listed late), or have the run's mark in their environment.

use crate::fault::{Cannot, Result};
use crate::procfs;
use rustix::process::{
    Pid, Signal, kill_process, kill_process_group, setsid, test_kill_process_group,
};
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const GROUP_END: Duration = Duration::from_secs(5);
/// Longest time until the marked processes have ended.
const MARKED_END: Duration = Duration::from_secs(10);
/// Environment variable of all processes of a run; the value is the bench's process number.
const MARK: &str = "KYMO_BENCH_RUN";

/// Marks a command as one of this run.
pub(crate) fn mark(command: &mut Command) -> &mut Command {
    command.env(MARK, std::process::id().to_string())
}

/// The bench's side: adds to the guard's list.
pub(crate) struct Guard {
    child: Child,
    list: Mutex<Option<ChildStdin>>,
}

impl Guard {
    pub(crate) fn start() -> Result<Guard> {
        let me = std::env::current_exe().cannot("find the bench's own program")?;
        let mut child = mark(&mut Command::new(me))
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
            Some(pipe) => writeln!(pipe, "{word} {what}").cannot("describe the guard"),
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
    pending.undo(&std::env::var(MARK).unwrap_or_default());
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

    /// The listed groups, and those of all processes below their leaders.
    fn groups_with_descendants(&self) -> Vec<Pid> {
        let mut groups: Vec<Pid> = self.groups.iter().filter_map(|group| pid(group)).collect();
        for listed in groups.clone() {
            add_groups_below(listed, &mut groups);
        }
        groups
    }

    /// Ends and removes all; `run` is the mark of its processes, empty for none.
    fn undo(&self, run: &str) {
        // Descendants are listed before their ancestors end, since a process without its parent is not found.
        let groups = self.groups_with_descendants();
        for pgid in &groups {
            // ESRCH: the group has ended by itself.
            let _ = kill_process_group(*pgid, Signal::KILL);
        }
        for pgid in &groups {
            await_end(*pgid);
        }
        end_marked(run);
        for mount in self.mounts.iter().rev() {
            unmount(mount);
        }
        for directory in self.directories.iter().rev() {
            remove(directory);
        }
    }
}

/// Adds groups of all processes below the leader of `group`.
fn add_groups_below(group: Pid, groups: &mut Vec<Pid>) {
    let leader = group.as_raw_nonzero().get().unsigned_abs();
    // Without /proc there is only the list.
    for process in procfs::descendants(leader).unwrap_or_default() {
        let own = i32::try_from(process.group).ok().and_then(Pid::from_raw);
        groups.extend(own.filter(|own| !groups.contains(own)));
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

/// Kills all marked processes but this one, again and again, as they may start others meanwhile.
fn end_marked(run: &str) {
    let until = Instant::now() + MARKED_END;
    while !run.is_empty() && Instant::now() < until {
        let marked = marked(run);
        if marked.is_empty() {
            return;
        }
        for pid in marked {
            // ESRCH: the process has ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes of a run, without this one and those that have ended.
fn marked(run: &str) -> Vec<Pid> {
    let variable = format!("{MARK}={run}");
    let own = std::process::id().to_string();
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    // The environment of an ended process that is not reaped is empty, as is that of a thread of the kernel.
    let is_marked = |name: &String| {
        let environment = std::fs::read(format!("/proc/{name}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|each| each == variable.as_bytes())
    };
    names
        .filter(|name| *name != own)
        .filter(is_marked)
        .filter_map(|name| pid(&name))
        .collect()
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
    use std::os::unix::process::CommandExt;

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

    /// After Ctrl-C, the parts of a `kymo serve` went on: they have sessions of their own, and an empty environment.
    #[test]
    fn a_process_below_a_listed_one_is_ended() {
        let script = "env -i setsid sleep 1000 >/dev/null 2>&1 & echo $!; wait";
        let mut leader = Command::new("sh")
            .args(["-c", script])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = std::io::BufReader::new(leader.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let below = pid(line.trim()).unwrap();
        let leads_its_group = || {
            let all = procfs::descendants(below.as_raw_nonzero().get().unsigned_abs()).unwrap();
            all.first().is_some_and(|first| first.pid == first.group)
        };
        while !leads_its_group() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let pending = Pending {
            groups: vec![leader.id().to_string()],
            ..Pending::default()
        };
        pending.undo("");
        leader.wait().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", line.trim()));
        assert!(stat.is_err() || stat.unwrap().contains(") Z "));
    }

    /// A process whose parent has ended is below none, wherever it is.
    #[test]
    fn a_process_that_left_its_group_is_ended() {
        // No process number of the kernel is as large as this mark.
        let run = format!("{}0000000", std::process::id());
        let started = Command::new("sh")
            .args(["-c", "setsid sleep 1000 >/dev/null 2>&1 & echo started"])
            .env(MARK, &run)
            .output()
            .map(|output| output.stdout);
        assert_eq!(started.unwrap(), b"started\n");
        // A process has no environment for the moments in which it becomes another program, here twice.
        let is_asleep = |pid: &Pid| {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()));
            name.is_ok_and(|name| name == "sleep\n")
        };
        let until = Instant::now() + Duration::from_secs(60);
        while !marked(&run).iter().any(is_asleep) {
            assert!(Instant::now() < until, "the process does not sleep");
            std::thread::yield_now();
        }
        assert_eq!(marked(&run).len(), 1);
        Pending::default().undo("");
        assert_eq!(marked(&run).len(), 1, "another run's");
        Pending::default().undo(&run);
        assert!(marked(&run).is_empty());
    }
}
