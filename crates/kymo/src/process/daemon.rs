//! Daemons with collectl's switches: `-D`, `--pname`, `--runas`, `--umask`, `-m`. The starting process waits until the daemon
//! samples; errors up to then are reported where it was started.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use clap::Args;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::privilege::{self, Account};
use kymo_sys::sure_folder::SureFolder;
use kymo_sys::{machine, own_name::OwnName, talk};
use kymo_view::time::Zone;

/// Permissions of the folder of recordings that `-m` makes.
const FOLDER_MODE: u32 = 0o750;

/// Exit code of a daemon that could not begin.
pub(crate) const FAILED: u8 = 2;

/// Switches of daemons.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Daemon {
    /// Go on in the background; with -f, or with -A of clients
    #[arg(short = 'D', long)]
    pub daemon: bool,
    /// Name of the process and of its pid file: several daemons, each with its own
    #[arg(long, value_name = "NAME")]
    pub pname: Option<String>,
    /// With -D: go on as this user, who owns the folder
    #[arg(long, value_name = "USER[:GROUP]")]
    pub runas: Option<String>,
    /// What files that are made are not, in octal: 027
    #[arg(long, value_name = "MASK")]
    pub umask: Option<String>,
    /// Keep recordings for DAYS (7); a ring of recordings has no time at which it rolls
    #[arg(short = 'r', long, value_name = "HH:MM[,DAYS[:MONTHS]][,MINUTES]")]
    pub rolllogs: Option<String>,
    /// With -D: write what is said into HOST-collectl-YYYYMM.log beside the recordings
    #[arg(short = 'm', long)]
    pub messages: bool,
    /// Take settings from this collectl.conf: DaemonCommands with -D, Interval, LimSVC, Passwd ...
    #[arg(short = 'C', long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// File with the number of the process
    #[arg(long, value_name = "FILE")]
    pub pidfile: Option<PathBuf>,
}

/// The process that continues.
pub(crate) enum DaemonStart {
    /// This process, which may be a daemon that has not reported yet that it samples.
    Here,
    /// Another process: this one ends with the exit code.
    There(ExitCode),
}

/// Files that a daemon needs to report that it samples, and to leave its terminal.
struct Waiting {
    pipe: PipeWriter,
    null: File,
    stderr: Option<File>,
}

static WAITING: Mutex<Option<Waiting>> = Mutex::new(None);
/// The pid file's name, which is removed at the end.
static PID_FILE: Mutex<Option<OwnName>> = Mutex::new(None);

impl Daemon {
    /// Days for which `-r` keeps recordings.
    pub(crate) fn keep_days(&self) -> Result<Option<u64>, String> {
        let Some(text) = &self.rolllogs else {
            return Ok(None);
        };
        let wrong = |cause: &str| format!("cannot use -r {}: {cause}", text.escape_debug());
        let mut parts = text.split(',');
        let time = parts.next().unwrap_or_default();
        let clock = time.split_once(':').and_then(|(hour, minute)| {
            let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
            (hour < 24 && minute < 60).then_some(())
        });
        clock.ok_or_else(|| wrong("it begins with a time such as 00:00"))?;
        let days = parts.next().unwrap_or("7");
        let days = days.split(':').next().unwrap_or_default();
        let days = match days {
            "" => 7,
            days => days.parse().map_err(|_| wrong("not a number of days"))?,
        };
        if let Some(minutes) = parts.next() {
            let fits = |minutes: &u32| *minutes > 0 && 1440 % minutes == 0;
            let minutes = minutes.parse().ok().filter(fits);
            minutes.ok_or_else(|| wrong("minutes have to divide a day"))?;
        }
        Ok(Some(days))
    }

    /// Applies the switches before any other work. With `-D` another process continues, which records into a folder or serves
    /// clients. `name`: name of the program.
    pub(crate) fn begin(
        &self,
        name: &str,
        dir: Option<&Path>,
        serves: bool,
    ) -> Result<DaemonStart, String> {
        if let Some(mask) = &self.umask {
            let mask = u32::from_str_radix(mask, 8)
                .ok()
                .filter(|mask| *mask <= 0o777);
            let mask = mask.ok_or("cannot use --umask: not an octal number such as 027")?;
            machine::set_umask(mask);
        }
        let name = match &self.pname {
            Some(own) => format!("collectl-{own}"),
            None => name.to_string(),
        };
        if self.pname.is_some() {
            machine::name_process_as(&name);
        }
        if !self.daemon {
            return match self.runas {
                Some(_) => Err("cannot use --runas: it is for -D".into()),
                None => Ok(DaemonStart::Here),
            };
        }
        if dir.is_none() && !serves {
            return Err("cannot use -D: nothing is recorded; see -f DIR".into());
        }
        if dir.is_none() && self.messages {
            return Err("cannot use -m: its file is beside recordings; see -f DIR".into());
        }
        self.detach(&name, dir)
    }

    fn detach(&self, name: &str, dir: Option<&Path>) -> Result<DaemonStart, String> {
        let cannot = |error: io::Error| format!("cannot go into the background: {error}");
        let account = self.account(dir)?;
        let path = match &self.pidfile {
            Some(path) => path.clone(),
            None => Path::new("/run").join(format!("{name}.pid")),
        };
        let pid_file = take(&path)?;
        let (mut waiting, pipe) = io::pipe().map_err(cannot)?;
        match privilege::fork().map_err(cannot)? {
            privilege::Side::Parent(_) => {
                drop(pipe);
                // The child reports errors itself.
                let began = waiting.read(&mut [0]).is_ok_and(|count| count > 0);
                Ok(DaemonStart::There(match began {
                    true => ExitCode::SUCCESS,
                    false => ExitCode::from(FAILED),
                }))
            }
            privilege::Side::Child => {
                drop(waiting);
                privilege::leave_session();
                write_number(&pid_file, &path)?;
                let own = OwnName::of(&path).map_err(cannot)?;
                let null = OpenOptions::new().read(true).write(true).open("/dev/null");
                if let Some((account, gid)) = account {
                    privilege::become_for_good(&account, gid)
                        .map_err(|error| format!("cannot use --runas: {error}"))?;
                }
                keep(&PID_FILE, own);
                let stderr = dir.filter(|_| self.messages).map(log).transpose();
                let stderr = stderr.inspect_err(|_| ended())?;
                keep(
                    &WAITING,
                    Waiting {
                        pipe,
                        null: null.map_err(cannot)?,
                        stderr,
                    },
                );
                Ok(DaemonStart::Here)
            }
        }
    }

    /// User of `--runas`. If there is a folder, that user must own it, as collectl demands.
    fn account(&self, dir: Option<&Path>) -> Result<Option<(Account, u32)>, String> {
        let Some(text) = &self.runas else {
            return Ok(None);
        };
        let wrong = |cause: &str| format!("cannot use --runas {}: {cause}", text.escape_debug());
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text.as_str(), None),
        };
        let account = match user.parse() {
            Ok(uid) => Account::numbered(uid),
            Err(_) => Account::named(user),
        };
        let account = account.ok_or_else(|| wrong("no such user"))?;
        let gid = match group {
            None => account.gid,
            Some(group) => match group.parse() {
                Ok(gid) => gid,
                Err(_) => privilege::group_named(group).ok_or_else(|| wrong("no such group"))?,
            },
        };
        let Some(dir) = dir else {
            return Ok(Some((account, gid)));
        };
        let owner = dir.metadata().map(|about| about.uid());
        match owner {
            Ok(uid) if uid == account.uid => Ok(Some((account, gid))),
            Ok(_) => Err(wrong(&format!("{} is another user's", dir.display()))),
            Err(error) => Err(wrong(&format!("{}: {error}", dir.display()))),
        }
    }
}

fn keep<T>(place: &Mutex<Option<T>>, value: T) {
    if let Ok(mut place) = place.lock() {
        *place = Some(value);
    }
}

/// Opens the pid file. If it names a running process, that is another daemon.
fn take(path: &Path) -> Result<File, String> {
    let cannot =
        |error: io::Error| format!("cannot write the pid file {}: {error}", path.display());
    let mut options = OpenOptions::new();
    // Never through a link, which somebody else may have put there.
    options.custom_flags(machine::PLAIN_FILE);
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = options.mode(0o644).open(path).map_err(cannot)?;
    let mut text = String::new();
    // A text that is no number names no process.
    let _ = (&file).take(16).read_to_string(&mut text);
    let holder = text.trim().parse().ok();
    match holder.filter(|&pid| pid != std::process::id() && privilege::is_alive(pid)) {
        Some(pid) => Err(format!(
            "cannot start: process {pid} runs already, says {}; --pname starts another one",
            path.display()
        )),
        None => Ok(file),
    }
}

fn write_number(file: &File, path: &Path) -> Result<(), String> {
    use std::os::unix::fs::FileExt;
    let text = format!("{}\n", std::process::id());
    let written = file.set_len(0);
    written
        .and_then(|()| file.write_all_at(text.as_bytes(), 0))
        .map_err(|error| format!("cannot write the pid file {}: {error}", path.display()))
}

/// The log of `-m` for this month, in a folder that the recorder would make later.
fn log(dir: &Path) -> Result<File, String> {
    // As root, this must not follow another user's link.
    let folder = SureFolder::make(dir, FOLDER_MODE, &[])
        .map_err(|error| format!("cannot make folder {}: {error}", dir.display()))?;
    let month = crate::times::days::month().map_err(|error| format!("{error:#}"))?;
    let host = kymo_recording::folder::safe_host(&machine::host()).to_string();
    let name = format!("{host}-collectl-{month}.log");
    let path = folder.own_path().join(&name);
    let mut options = OpenOptions::new();
    options.custom_flags(machine::PLAIN_FILE);
    let opened = options.append(true).create(true).mode(0o640).open(&path);
    opened.map_err(|error| format!("cannot write {}: {error}", dir.join(name).display()))
}

/// Reports to the starting process that the daemon samples, and leaves the terminal.
pub(crate) fn began() {
    let waiting = WAITING.lock().ok().and_then(|mut place| place.take());
    if let Some(waiting) = waiting {
        // Both can fail only if the starting process is gone, and then it does not wait.
        let _ = privilege::replace_standard_files(&waiting.null);
        if let Some(log) = &waiting.stderr {
            let _ = privilege::replace_standard_error(log);
            talk::stamp_lines(stamp);
            talk::say(format_args!(
                "kymo: version {} samples, as process {}",
                env!("CARGO_PKG_VERSION"),
                std::process::id()
            ));
        }
        let _ = (&waiting.pipe).write_all(b".");
    }
}

/// Time of a line in the log, as in collectl's.
fn stamp() -> String {
    static ZONE: Mutex<Option<Zone>> = Mutex::new(None);
    let now_ns = RealClock.now().real_ns;
    let mut line = Vec::new();
    if let Ok(mut zone) = ZONE.lock() {
        let zone = zone.get_or_insert_with(|| crate::times::days::zone().unwrap_or_default());
        let local = zone.local(now_ns);
        local.put_day(&mut line);
        line.push(b' ');
        local.put_time(&mut line);
    }
    String::from_utf8_lossy(&line).into_owned() + " "
}

/// Logs the signal that ends the daemon, and its sender.
pub(crate) fn log_end(sent: &machine::Sent) {
    if talk::stamps_lines() {
        talk::say(format_args!("kymo: ends: {sent}"));
    }
}

/// Removes the pid file, and logs that the daemon ended.
pub(crate) fn ended() {
    if talk::stamps_lines() {
        talk::say("kymo: ended");
    }
    let name = PID_FILE.lock().ok().and_then(|mut place| place.take());
    if let Some(name) = name {
        // Another user's folder may forbid this; then the next daemon sees that the process has ended.
        let _ = name.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_rolling_logs() {
        for (text, expect) in [
            ("00:00", Ok(7)),
            ("23:59,14", Ok(14)),
            ("00:00,7:12,60", Ok(7)),
            ("00:00,,60", Ok(7)),
            ("24:00", Err(())),
            ("00:00,x", Err(())),
            ("00:00,7,7", Err(())),
            ("", Err(())),
        ] {
            let daemon = Daemon {
                rolllogs: Some(text.into()),
                ..Daemon::default()
            };
            let got = daemon.keep_days();
            assert_eq!(
                got.map(|days| days.unwrap_or(0)).map_err(|_| ()),
                expect,
                "{text}"
            );
        }
    }
}
