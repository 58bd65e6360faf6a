//! `kymo rrdcached`, also under the name `rrdcached`: from the command line to a daemon in the background. The order
//! is fork, the store's locks, pid file, sockets, folder, user, and only then threads. Stock has no store; otherwise
//! this is its order, as far as a starting process can see.

use kymo_base::name::DisplayName;
use kymo_ingest::keeper::{self, Keeper, OnSignal};
use kymo_ingest::log::{Log, Severity};
use kymo_ingest::rrdcached::{ListeningSocket, Rrdcached};
use kymo_store::{Claim, Settings as StoreSettings};
use kymo_sys::machine::{self, DaemonSignals};
use kymo_sys::privilege::{self, Side};
use kymo_sys::talk;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

mod log;
mod options;
mod pid_file;
mod place;
mod sockets;

use log::DaemonLog;
use options::{Options, Stop};
use pid_file::PidFile;

use crate::output;

/// Text of `-h`.
pub(crate) fn help() -> String {
    options::help()
}

/// Runs the daemon with the words after its name.
pub(crate) fn run(words: Vec<OsString>) -> ExitCode {
    let words: Vec<Vec<u8>> = words.into_iter().map(OsString::into_vec).collect();
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let options = match options::read(&words, &mut complain) {
        Ok(options) => options,
        Err(Stop { code, help }) => {
            return match help.then(|| output::put(&options::help())) {
                Some(Err(error)) => {
                    complain(&format!("rrdcached: {}", crate::cannot_print(error)));
                    ExitCode::FAILURE
                }
                _ => ExitCode::from(code),
            };
        }
    };
    start(options).unwrap_or_else(|()| {
        complain("rrdcached: daemonize failed, exiting.");
        ExitCode::FAILURE
    })
}

/// Prints a line for the process that starts the daemon.
fn complain(line: &str) {
    talk::say(DisplayName(line.as_bytes()));
}

/// Resources of a daemon before it serves. The store's locks are taken first and released last: their holder may
/// replace the socket and the pid file of the daemon before it.
struct Prepared {
    settings: StoreSettings,
    claim: Claim,
    pid_file: PidFile,
    sockets: Vec<ListeningSocket>,
}

/// Forks unless in the foreground; then runs the daemon, here or in the child.
fn start(mut options: Options) -> Result<ExitCode, ()> {
    let inherited = sockets::inherited(&options, &mut complain);
    if options.foreground {
        let log = DaemonLog::new(&mut options);
        let prepared = prepare(&options, inherited, &log)?;
        return Ok(serve(options, prepared, log, || {}));
    }
    let (mut ready, started) = std::io::pipe().map_err(drop)?;
    match privilege::fork() {
        Err(error) => {
            complain(&format!("daemonize: fork(2) failed: {error}"));
            Err(())
        }
        Ok(Side::Parent(_)) => {
            drop(started);
            // The child reports errors itself, and ends without a sign on the pipe.
            let served = ready.read(&mut [0]).is_ok_and(|count| count > 0);
            Ok(ExitCode::from(u8::from(!served)))
        }
        Ok(Side::Child) => {
            drop(ready);
            let log = DaemonLog::new(&mut options);
            let prepared = prepare(&options, inherited, &log)?;
            privilege::leave_session();
            let say = move || {
                // If the starting process is gone, it does not wait.
                let _ = privilege::close_standard_files();
                let _ = (&started).write_all(b".");
            };
            Ok(serve(options, prepared, log, say))
        }
    }
}

/// Takes the store's locks, the pid file and the sockets.
fn prepare(
    options: &Options,
    inherited: Vec<ListeningSocket>,
    log: &DaemonLog,
) -> Result<Prepared, ()> {
    // New files must belong to the user that opens the store later.
    let account = &options.account;
    let claimed = privilege::as_user(account, options.gid, || {
        let settings = place::settings(options)?;
        let mut waits = |line: &str| {
            log.say(Severity::Info, line);
            complain(&format!("rrdcached: {line}"));
        };
        let claim = keeper::claim(&settings, &mut waits).map_err(|error| error.to_string())?;
        Ok((settings, claim))
    });
    let claimed =
        claimed.unwrap_or_else(|error| Err(format!("cannot become {}: {error}", account.name)));
    let (settings, claim) = claimed.map_err(|line| report_end(options, log, &line))?;
    let pid_file = PidFile::take(&options.pid_file, &mut complain)?;
    let sockets = match inherited.is_empty() {
        true => sockets::open(options, &mut complain),
        false => inherited,
    };
    if sockets.is_empty() {
        complain("rrdcached: FATAL: cannot open any listen sockets");
        pid_file.remove();
        return Err(());
    }
    Ok(Prepared {
        settings,
        claim,
        pid_file,
        sockets,
    })
}

/// Runs the daemon. `ready` reports to a waiting process that the daemon serves.
fn serve(
    options: Options,
    prepared: Prepared,
    log: Arc<DaemonLog>,
    ready: impl FnOnce(),
) -> ExitCode {
    talk::never_wait();
    let Prepared {
        settings,
        claim,
        mut pid_file,
        sockets,
    } = prepared;
    let served = settle_down(&options, &mut pid_file, &log)
        .and_then(|()| keep(&options, (settings, claim.clone()), sockets, &log, ready));
    if let Err(line) = &served {
        report_end(&options, &log, line);
    }
    log.say(Severity::Info, "goodbye");
    pid_file.remove();
    // The next daemon may begin only now.
    drop(claim);
    ExitCode::from(u8::from(served.is_err()))
}

/// Reports the reason for the end: to the log, and to the starting process while it waits.
fn report_end(options: &Options, log: &DaemonLog, line: &str) {
    log.say(Severity::Critical, line);
    if !options.foreground {
        complain(&format!("rrdcached: {line}"));
    }
}

/// Sets folder, pid file and user.
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

/// Opens the store and serves until a signal.
fn keep(
    options: &Options,
    (settings, claim): (StoreSettings, Claim),
    sockets: Vec<ListeningSocket>,
    log: &Arc<DaemonLog>,
    ready: impl FnOnce(),
) -> Result<(), String> {
    let signals =
        DaemonSignals::block().map_err(|error| format!("cannot block signals: {error}"))?;
    machine::raise_open_files();
    let mut daemon_settings = options.daemon.clone();
    daemon_settings.hidden = Some(settings.folder.clone());
    let store_log = Arc::clone(log);
    let keeper_log: Log = Arc::new(move |severity, line: &str| store_log.say(severity, line));
    let opened = Keeper::open(settings, claim, keeper_log.clone());
    let keeper = opened.map_err(|error| error.to_string())?;
    ready();
    let rrdcached = Rrdcached {
        settings: daemon_settings,
        sockets,
        log: keeper_log,
    };
    let on_signal = OnSignal::AsRrdcached {
        flush_at_end: options.flush_at_end,
    };
    let flush = keeper.run(
        options.writers,
        vec![Box::new(rrdcached)],
        &signals,
        on_signal,
        &|| {},
    )?;
    let how = match flush {
        true => "clean shutdown; all RRDs flushed",
        false => "expedited shutdown; journals will be used at next startup",
    };
    log.say(Severity::Info, how);
    Ok(())
}
