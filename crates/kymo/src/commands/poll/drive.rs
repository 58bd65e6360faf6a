//! The poller itself: preparations while there are rights and no threads, then a thread for each configuration.

use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use kymo_poll::poller::STACK_BYTES;
use kymo_poll::runner::{Commands, Runner};
use kymo_poll::sink::clone_folders;
use kymo_poll::threshold::mail_ports;
use kymo_sys::machine::{self, Signal, SignalFile};
use kymo_sys::talk;
use kymo_wire::mrtg_cfg::{Config, LogFormat};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::awaited::Awaited;
use super::bell::Bell;
use super::folders::{WrittenFolders, draws_pages};
use super::part::{self, Part};
use super::{Outcome, Settings, notices, runner};
use crate::process::sandbox::{self, NAME_FILES, NAME_PORT};

/// Longest sleep, after which the locks are refreshed.
const NAP: Duration = Duration::from_secs(60);
/// Interval between two checks whether a configuration was mended.
const LOOK: Duration = Duration::from_secs(10);
/// Files with time zones, for graphs and pages.
const ZONE_FILES: [&str; 2] = ["/etc/localtime", "/usr/share/zoneinfo"];
/// With more configurations than this, the usual limit of open files may be too low.
const FILES_FEW: usize = 16;
/// Time that a one-shot run waits at its end for programs of thresholds.
const PROGRAMS: Duration = Duration::from_secs(30);

/// Polls as the settings say: once, or until it is asked to end. Calls [`Settings::ready`] when it has begun.
pub(super) fn drive(mut settings: Settings) -> Result<Outcome, String> {
    machine::name_process();
    if settings.configs.len() > FILES_FEW {
        machine::raise_open_files();
    }
    if settings.forever {
        talk::never_wait();
    }
    let signals =
        SignalFile::block().map_err(|error| format!("cannot wait for signals: {error}"))?;
    let configs = std::mem::take(&mut settings.configs);
    let runners = configs.iter().zip(&settings.files).map(|(config, file)| {
        match Commands::of(config).is_empty() {
            true => Ok(None),
            false => runner::start(file, !settings.forever).map(Some),
        }
    });
    let runners: Vec<Option<Runner>> = runners.collect::<Result<_, String>>()?;
    configs
        .iter()
        .try_for_each(|config| keepable(config, &settings))?;
    if settings.forever {
        notices::say_all(&configs, &settings);
    }
    shut_in(&configs, &settings);
    let bell = Arc::new(Bell::default());
    let mut awaited = Awaited::default();
    let unread = std::mem::take(&mut settings.unread);
    unread.into_iter().for_each(|file| awaited.unread(file));
    let mut parts = Vec::new();
    for (number, (config, runner)) in configs.into_iter().zip(runners).enumerate() {
        match Part::prepare(number, config, runner, &settings) {
            Ok(part) => parts.push(part),
            Err(line) if settings.is_served => {
                settings.log.say(&line);
                awaited.refused(settings.files[number].clone());
            }
            Err(line) => return Err(line),
        }
    }
    std::mem::replace(&mut settings.ready, super::Ready::here()).say();
    let outcomes = run(parts, &settings, &bell, &signals, awaited)?;
    if !settings.forever && bell.ends.load(Ordering::Acquire) {
        settings
            .log
            .say("a signal has ended the run: values of it may be missing");
        return Ok(Outcome::Ended);
    }
    Ok(sum(&outcomes))
}

/// Refuses a configuration whose values have no destination.
pub(super) fn keepable(config: &Config, settings: &Settings) -> Result<(), String> {
    if settings.keeper.is_some() || !settings.on_demand {
        return Ok(());
    }
    let file = config
        .file_paths()
        .first()
        .map(|path| String::from_utf8_lossy(path));
    Err(format!(
        "cannot keep the values of {}: --files ask needs a kymo serve (--keeper SOCKET)",
        file.unwrap_or_default()
    ))
}

/// Refuses a configuration whose files cannot be written, as a run does.
pub(super) fn writable(config: &Config, settings: &Settings) -> Result<(), String> {
    let globals = config.globals();
    let kind = match globals.log_format {
        LogFormat::Rateup => "log",
        LogFormat::Rrdtool if settings.on_demand || part::rrdcached(globals).is_some() => {
            return Ok(());
        }
        LogFormat::Rrdtool => "rrd",
    };
    let folder = settings.log_dir.as_ref().unwrap_or(&globals.log_dir);
    let rights = Access::WRITE_OK | Access::EXEC_OK;
    accessat(CWD, folder, rights, AtFlags::EACCESS).map_err(|error| {
        let (folder, error) = (folder.display(), io::Error::from(error));
        format!("cannot write .{kind} files in {folder}: {error}")
    })
}

/// Gives up rights, while there is one thread.
fn shut_in(configs: &[Config], settings: &Settings) {
    let mut read: Vec<PathBuf> = NAME_FILES.iter().map(PathBuf::from).collect();
    let mut write = settings.places.folders();
    let mut ports = vec![NAME_PORT];
    for config in configs {
        let globals = config.globals();
        for path in config.file_paths() {
            use std::os::unix::ffi::OsStrExt;
            let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
            read.extend(path.parent().map(|folder| match folder.as_os_str() {
                empty if empty.is_empty() => ".".into(),
                _ => folder.to_path_buf(),
            }));
        }
        let log_dir = settings.log_dir.as_deref();
        write.extend(WrittenFolders::of(config, log_dir, settings.draws).paths());
        if globals.log_format == LogFormat::Rateup {
            write.extend(clone_folders(config, log_dir.unwrap_or(&globals.log_dir)));
        }
        if draws_pages(config, settings.draws) {
            read.extend(ZONE_FILES.map(PathBuf::from));
        }
        write.extend(globals.thresh_dir.clone());
        ports.extend(globals.send_to_graphite.as_ref().map(|to| to.1));
        ports.extend(mail_ports(config));
        ports.extend(part::rrdcached(globals).as_deref().and_then(port_of));
    }
    let unread = settings.unread.iter().filter_map(|file| file.parent());
    read.extend(unread.map(PathBuf::from));
    write.extend(settings.descriptions.clone());
    let files = sandbox::enter_with_ports(&read, &write, &ports);
    let calls = sandbox::Process::Poller.confine();
    if settings.forever {
        settings.log.say(&format!("polling with {files}, {calls}"));
    }
}

/// Port of `host:port`.
fn port_of(address: &str) -> Option<u16> {
    if address.starts_with("unix:") || address.starts_with('/') {
        return None;
    }
    let port = address
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    Some(port.unwrap_or(42_217))
}

/// A part on its thread. `over` becomes readable when it has ended.
struct Running {
    thread: JoinHandle<()>,
    over: PipeReader,
    wake: PipeWriter,
}

/// Outcome of a part: numbers of its targets, and of those without a value.
type Done = Result<(usize, usize), String>;

fn start(
    mut part: Part,
    bell: &Arc<Bell>,
    forever: bool,
    done: Sender<Done>,
) -> io::Result<Running> {
    let (woken, wake) = io::pipe()?;
    let (over, tells) = io::pipe()?;
    let bell = bell.clone();
    let work = move || {
        let outcome = part.run(&bell, woken.as_fd(), forever, PROGRAMS);
        // Dropping the part writes its unsaved state; the part is over only after that.
        drop(part);
        // The receiver outlives all parts.
        let _ = done.send(outcome);
        drop(tells);
    };
    let named = thread::Builder::new()
        .name("poller".into())
        .stack_size(STACK_BYTES);
    Ok(Running {
        thread: named.spawn(work)?,
        over,
        wake,
    })
}

/// Runs each part on its own thread. This thread waits for signals, and for configurations to be mended.
fn run(
    parts: Vec<Part>,
    settings: &Settings,
    bell: &Arc<Bell>,
    signals: &SignalFile,
    mut awaited: Awaited,
) -> Result<Vec<(usize, usize)>, String> {
    let (done, ended) = std::sync::mpsc::channel();
    let threads = parts
        .into_iter()
        .map(|part| start(part, bell, settings.forever, done.clone()));
    let threads: io::Result<Vec<Running>> = threads.collect();
    let threads = threads.map_err(|error| format!("cannot start a thread: {error}"))?;
    drop(done);
    let mut mended = None;
    while threads.iter().any(|of| !of.thread.is_finished()) || awaited.is_any() {
        let nap = if awaited.is_any() { LOOK } else { NAP };
        let is_called = wait(&threads, settings, bell, signals, nap);
        mended = awaited.mended().or(mended);
        let one_ended = threads.iter().any(|of| of.thread.is_finished());
        if mended.is_some() || one_ended && settings.is_served {
            bell.ends.store(true, Ordering::Release);
        }
        let ends = bell.ends.load(Ordering::Acquire);
        if ends {
            awaited = Awaited::default();
        }
        for mut running in threads
            .iter()
            .map(|of| &of.wake)
            .filter(|_| ends || is_called)
        {
            // The write fails if the part has ended.
            let _ = io::Write::write_all(&mut running, &[0]);
        }
    }
    for running in threads {
        if running.thread.join().is_err() {
            return Err("cannot go on: the poller has failed".into());
        }
    }
    match mended {
        Some(file) => Err(format!(
            "{} was mended: polling begins again with it",
            file.display()
        )),
        None => ended.into_iter().collect(),
    }
}

/// Waits until a part ends, a signal comes or the time is over. True if a signal has rung the bell.
fn wait(
    threads: &[Running],
    settings: &Settings,
    bell: &Bell,
    signals: &SignalFile,
    nap: Duration,
) -> bool {
    let open = threads.iter().filter(|of| !of.thread.is_finished());
    let mut files: Vec<BorrowedFd<'_>> = open.map(|of| of.over.as_fd()).collect();
    files.push(signals.as_fd());
    machine::wait_readable(&files, nap);
    for lock in &settings.locks {
        if let Err(error) = lock.stay() {
            settings.log.say(&format!("cannot keep the lock: {error}"));
        }
    }
    let mut is_called = false;
    while let Some(signal) = signals.take() {
        match signal {
            Signal::Stop => bell.ends.store(true, Ordering::Release),
            Signal::HangUp => drop(bell.reads.fetch_add(1, Ordering::AcqRel)),
            Signal::Flush | Signal::Wake | Signal::Child => continue,
        }
        is_called = true;
    }
    is_called
}

fn sum(counts: &[(usize, usize)]) -> Outcome {
    let (targets, unknown) = counts.iter().fold((0, 0), |(targets, unknown), counts| {
        (targets + counts.0, unknown + counts.1)
    });
    match unknown {
        0 => Outcome::Complete,
        unknown if unknown < targets => Outcome::SomeUnknown,
        _ => Outcome::AllUnknown,
    }
}
