//! `kymo rrdcached`, also under the name `rrdcached`: from the command line to a daemon in the background.
//! The order is stock's: pid file, sockets, fork, folder, user, and only then threads.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kymo_base::name::DisplayName;
use kymo_serve::rrdcached::{self as daemon, Listener, Severity};
use kymo_store::{Error as StoreError, Replayed, Settings, Store};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::RealDisk;
use kymo_sys::machine::{self, DaemonSignals};
use kymo_sys::privilege::{self, Side};

mod log;
mod options;
mod pid_file;
mod place;
mod sockets;

use log::DaemonLog;
use options::{Options, Stop};
use pid_file::PidFile;

/// How long the kernel may take to end what was killed.
const LETS_GO: Duration = Duration::from_secs(5);

/// Runs the daemon with the words behind its name.
pub fn run(words: Vec<OsString>) -> ExitCode {
    let words: Vec<Vec<u8>> = words.into_iter().map(OsString::into_vec).collect();
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let options = match options::read(&words, &mut complain) {
        Ok(options) => options,
        Err(Stop { code, help }) => {
            if help {
                // A closed pipe ends quietly.
                let _ = std::io::stdout().write_all(options::help().as_bytes());
            }
            return ExitCode::from(code);
        }
    };
    start(options).unwrap_or_else(|()| {
        complain("rrdcached: daemonize failed, exiting.");
        ExitCode::FAILURE
    })
}

/// A line for whoever starts the daemon.
fn complain(line: &str) {
    eprintln!("{}", DisplayName(line.as_bytes()));
}

/// Everything that has to be there before anybody may rely on it, then the fork.
fn start(mut options: Options) -> Result<ExitCode, ()> {
    let pid_file = PidFile::take(&options.pid_file, &mut complain)?;
    let listeners = sockets::open(&options, &mut complain);
    if listeners.is_empty() {
        complain("rrdcached: FATAL: cannot open any listen sockets");
        pid_file.remove();
        return Err(());
    }
    if options.foreground {
        let log = DaemonLog::new(&mut options);
        return Ok(serve(options, listeners, pid_file, log, || {}));
    }
    let (mut ready, told) = std::io::pipe().map_err(|_| pid_file.remove())?;
    match privilege::fork() {
        Err(error) => {
            complain(&format!("daemonize: fork(2) failed: {error}"));
            pid_file.remove();
            Err(())
        }
        Ok(Side::Parent(_)) => {
            drop(told);
            // The child says nothing and ends where it cannot go on.
            let served = ready.read(&mut [0]).is_ok_and(|count| count > 0);
            Ok(ExitCode::from(u8::from(!served)))
        }
        Ok(Side::Child) => {
            drop(ready);
            privilege::leave_session();
            let log = DaemonLog::new(&mut options);
            let say = move || {
                // Whoever started the daemon may have gone, and then does not wait.
                let _ = privilege::close_standard_files();
                let _ = (&told).write_all(b".");
            };
            Ok(serve(options, listeners, pid_file, log, say))
        }
    }
}

/// The daemon itself. `ready` tells whoever waits that it serves.
fn serve(
    options: Options,
    listeners: Vec<Listener>,
    mut pid_file: PidFile,
    log: Arc<DaemonLog>,
    ready: impl FnOnce(),
) -> ExitCode {
    let served = settle_down(&options, &mut pid_file, &log)
        .and_then(|()| keep(&options, listeners, &log, ready));
    if let Err(line) = &served {
        log.say(Severity::Critical, line);
        if !options.foreground {
            // To whoever waits, as long as it does.
            complain(&format!("rrdcached: {line}"));
        }
    }
    log.say(Severity::Info, "goodbye");
    pid_file.remove();
    ExitCode::from(u8::from(served.is_err()))
}

/// Folder, pid file, user.
fn settle_down(options: &Options, pid_file: &mut PidFile, log: &DaemonLog) -> Result<(), String> {
    let folder = options.base.as_deref().unwrap_or(Path::new("/tmp"));
    std::env::set_current_dir(folder)
        .map_err(|error| format!("cannot change to {}: {error}", folder.display()))?;
    log.say(Severity::Info, "starting up");
    pid_file
        .write()
        .map_err(|error| format!("cannot write the pid file: {error}"))?;
    let account = &options.account;
    privilege::become_for_good(account, options.gid)
        .map_err(|error| format!("cannot become {}: {error}", account.name))
}

/// Opens the store. A daemon that was killed a moment ago may not have let go of it yet.
fn open_store(settings: &Settings) -> Result<(Store, Replayed), StoreError> {
    let begun = Instant::now();
    loop {
        let opened = Store::open(settings.clone(), Arc::new(RealDisk), Arc::new(RealClock));
        let holder = match &opened {
            Err(StoreError::Locked { holder, .. }) => holder.split(' ').next_back(),
            Err(StoreError::Owned { owner, .. }) => owner.split(' ').next_back(),
            _ => None,
        };
        let holder = holder.and_then(|pid| pid.trim().parse().ok());
        let lets_go = holder.is_some_and(|pid| !privilege::is_alive(pid));
        if !lets_go || begun.elapsed() >= LETS_GO {
            return opened;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Opens the store and serves until a signal.
fn keep(
    options: &Options,
    listeners: Vec<Listener>,
    log: &Arc<DaemonLog>,
    ready: impl FnOnce(),
) -> Result<(), String> {
    let signals =
        DaemonSignals::block().map_err(|error| format!("cannot block signals: {error}"))?;
    machine::raise_open_files();
    let settings = place::settings(options)?;
    let mut daemon_settings = options.daemon.clone();
    daemon_settings.hidden = Some(settings.folder.clone());
    let (store, replayed) = open_store(&settings).map_err(|error| error.to_string())?;
    for notice in &replayed.notices {
        log.say(Severity::Notice, notice);
    }
    let found = format!(
        "replayed {} values of {} files, {} files written once more",
        replayed.values, replayed.files, replayed.redone
    );
    log.say(Severity::Info, &found);
    ready();
    let store_log = Arc::clone(log);
    let threads = store.start(
        options.writers,
        Arc::new(move |line: &str| store_log.say(Severity::Error, line)),
    );
    let daemon_log = Arc::clone(log);
    let ended = daemon::run(
        daemon_settings,
        listeners,
        store.clone(),
        &signals,
        Arc::new(move |severity, line: &str| daemon_log.say(severity, line)),
    );
    threads.stop();
    let flush = ended.map_err(|error| format!("cannot serve: {error}"))?;
    let done = store.shutdown(flush);
    for line in store.take_notices() {
        log.say(Severity::Error, &line);
    }
    done.map_err(|error| format!("cannot end in order: {error}"))?;
    let how = match flush {
        true => "clean shutdown; all RRDs flushed",
        false => "expedited shutdown; journals will be used at next startup",
    };
    log.say(Severity::Info, how);
    Ok(())
}
