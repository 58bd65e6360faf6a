//! The poller itself: what is prepared while there are rights and no threads, and then a thread for each configuration.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{io, thread};

use kymo_poll::runner::{Commands, Runner};
use kymo_sys::machine::{self, Signal, SignalFile};
use kymo_wire::mrtg_cfg::{Config, LogFormat};

use super::bell::Bell;
use super::part::{self, Part};
use super::{Outcome, Settings, runner};
use crate::sandbox;

/// What names of hosts are found by.
const NAME_FILES: [&str; 8] = [
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/run/systemd/resolve",
    "/usr/lib",
    "/lib",
];
/// Names by TCP.
const NAME_PORT: u16 = 53;
/// No longer asleep than this; locks are shown to be alive then.
const NAP: Duration = Duration::from_secs(60);
/// How long a one-shot run waits for programs of thresholds at its end.
const PROGRAMS: Duration = Duration::from_secs(30);

/// Polls what the settings say: once, or until it is asked to end. Tells [`Settings::ready`] when it has begun.
pub(super) fn drive(mut settings: Settings) -> Result<Outcome, String> {
    machine::name_process();
    let signals =
        SignalFile::block().map_err(|error| format!("cannot wait for signals: {error}"))?;
    let configs = std::mem::take(&mut settings.configs);
    let runners = configs.iter().zip(&settings.files).map(|(config, file)| {
        match Commands::of(config).is_empty() {
            true => Ok(None),
            false => runner::start(file).map(Some),
        }
    });
    let runners: Vec<Option<Runner>> = runners.collect::<Result<_, String>>()?;
    configs
        .iter()
        .try_for_each(|config| keepable(config, &settings))?;
    shut_in(&configs, &settings);
    let bell = Arc::new(Bell::default());
    let mut parts = Vec::new();
    for (number, (config, runner)) in configs.into_iter().zip(runners).enumerate() {
        parts.push(Part::prepare(number, config, runner, &settings)?);
    }
    std::mem::replace(&mut settings.ready, super::Ready::here()).say();
    let outcomes = run(parts, &settings, &bell, &signals);
    Ok(sum(&outcomes?))
}

/// Values need a place: `.rrd` files, or a keeper.
fn keepable(config: &Config, settings: &Settings) -> Result<(), String> {
    let has_files = config.globals().log_format == LogFormat::Rrdtool;
    if settings.keeper.is_some() {
        if !has_files {
            settings.log.say(
                "there is no LogFormat: rrdtool: values are kept by kymo serve for two years; .log files, pictures and pages are not written",
            );
        }
        return Ok(());
    }
    let file = config
        .file_paths()
        .first()
        .map(|path| String::from_utf8_lossy(path));
    let file = file.unwrap_or_default();
    if !has_files {
        return Err(format!(
            "cannot keep the values of {file}: .log files are not written; say LogFormat: rrdtool, or give a kymo serve to keep them (--keeper SOCKET)"
        ));
    }
    match settings.on_demand {
        true => Err(format!(
            "cannot keep the values of {file}: --files ask needs a kymo serve (--keeper SOCKET)"
        )),
        false => Ok(()),
    }
}

/// Gives up what is not needed, while there is one thread.
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
        write.push(settings.log_dir.clone().unwrap_or(globals.log_dir.clone()));
        write.extend(globals.thresh_dir.clone());
        ports.extend(globals.send_to_graphite.as_ref().map(|to| to.1));
        ports.extend(part::rrdcached(globals).as_deref().and_then(port_of));
    }
    write.extend(settings.descriptions.clone());
    let state = sandbox::enter_with_ports(&read, &write, &ports);
    if settings.forever {
        settings.log.say(&format!("polling with {state}"));
    }
}

/// Of `host:port`.
fn port_of(address: &str) -> Option<u16> {
    if address.starts_with("unix:") || address.starts_with('/') {
        return None;
    }
    let port = address
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    Some(port.unwrap_or(42_217))
}

/// Each part on a thread of its own; this one waits for signals.
fn run(
    parts: Vec<Part>,
    settings: &Settings,
    bell: &Arc<Bell>,
    signals: &SignalFile,
) -> Result<Vec<(usize, usize)>, String> {
    let (done, ended) = std::sync::mpsc::channel();
    let cannot = |error: io::Error| format!("cannot start a thread: {error}");
    let mut wakes = Vec::new();
    let mut threads = Vec::new();
    for mut part in parts {
        let (woken, wake) = io::pipe().map_err(cannot)?;
        wakes.push(wake);
        let (done, bell, forever) = (done.clone(), bell.clone(), settings.forever);
        let (over, tells) = io::pipe().map_err(cannot)?;
        let work = move || {
            let outcome = part.run(&bell, woken.as_fd(), forever, PROGRAMS);
            // What it still has to keep is kept before it is over.
            drop(part);
            // Who waits is there until all have ended.
            let _ = done.send(outcome);
            drop(tells);
        };
        let named = thread::Builder::new().name("poller".into());
        threads.push((named.spawn(work).map_err(cannot)?, over));
    }
    drop(done);
    while threads.iter().any(|(thread, _)| !thread.is_finished()) {
        let open = threads.iter().filter(|(thread, _)| !thread.is_finished());
        let mut files: Vec<BorrowedFd<'_>> = open.map(|(_, over)| over.as_fd()).collect();
        files.push(signals.as_fd());
        machine::wait_readable(&files, NAP);
        for lock in &settings.locks {
            if let Err(error) = lock.stay() {
                settings.log.say(&format!("cannot keep the lock: {error}"));
            }
        }
        while let Some(signal) = signals.take() {
            match signal {
                Signal::Stop => bell.ends.store(true, Ordering::Release),
                Signal::HangUp => drop(bell.reads.fetch_add(1, Ordering::AcqRel)),
                Signal::Flush | Signal::Wake | Signal::Child => continue,
            }
            for mut wake in &wakes {
                // One that has ended hears nothing.
                let _ = io::Write::write_all(&mut wake, &[0]);
            }
        }
    }
    for (thread, _) in threads {
        if thread.join().is_err() {
            return Err("cannot go on: the poller has failed".into());
        }
    }
    ended.into_iter().collect()
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
