//! `kymo poll`, also under the name `mrtg`: from the command line to a poller in the foreground or in the background. The
//! order is options, user, lock, configuration, fork, pid file, runner, and only then sandbox and threads.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use kymo_base::name::DisplayName;
use kymo_poll::runner::{Commands, RefusedCommands};
use kymo_poll::sink::KeeperConnection;
use kymo_sys::clock::RealClock;
use kymo_sys::privilege::{self, Account};
use kymo_sys::talk;
use kymo_wire::mrtg_cfg::{Config, Target};

mod awaited;
mod bell;
mod check;
mod daemon;
mod drive;
mod folders;
mod lock;
mod log;
mod notices;
mod options;
mod part;
mod place;
mod rarely;
mod reading;
mod runner;

pub(crate) use daemon::Ready;
pub(crate) use log::PollLog;
pub(crate) use place::{Places, names as names_of};
pub(crate) use reading::{Disk as CfgFiles, configurations};
pub(crate) use runner::run as run_runner;

use daemon::{Detached, PollPidFile};
use lock::Lock;
use options::PollOptions;

/// Exit code if the poller cannot run.
const FAILED: u8 = 2;
/// Exit codes of MRTG for missing values.
const SOME_UNKNOWN: u8 = 91;
const ALL_UNKNOWN: u8 = 92;

/// Settings of a poller, complete before it polls.
pub(crate) struct Settings {
    /// The configurations, as absolute paths, in the order of `configs`.
    pub files: Vec<PathBuf>,
    /// The configurations as read.
    pub configs: Vec<Config>,
    /// Unreadable configurations, which are waited for under `kymo serve`.
    pub unread: Vec<PathBuf>,
    /// Paths of the poller's own files, including the locks.
    pub places: Places,
    /// True if it polls for ever.
    pub forever: bool,
    /// True if `kymo serve` starts this process again when it ends.
    pub is_served: bool,
    /// True if it stays in the foreground, even if a configuration asks for a daemon.
    pub stays: bool,
    /// Replaces LogDir of the configurations.
    pub log_dir: Option<PathBuf>,
    /// True if all devices are asked at once, as always in one-shot runs.
    pub burst: bool,
    /// True if stamps are whole seconds.
    pub integer_stamps: bool,
    /// The way to the keeper that stores values.
    pub keeper: Option<KeeperConnection>,
    /// Base folder of the names of the keeper's files.
    pub base: Option<PathBuf>,
    /// Folder for descriptions of targets, which the page of kymo serve reads.
    pub descriptions: Option<PathBuf>,
    /// True if `.rrd` files are written on demand and not in each cycle.
    pub on_demand: bool,
    /// Files beside those of values.
    pub draws: Draws,
    /// Destination of messages.
    pub log: Arc<PollLog>,
    /// Says that polling has begun.
    pub ready: Ready,
    /// Locks, held until the settings are dropped; a daemon calls [`Lock::stay`] now and then.
    pub locks: Vec<Lock>,
}

/// Files beside those of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draws {
    /// Graphs and pages, as MRTG does.
    Pages,
    /// `--pages`: beside .rrd files, too.
    AllPages,
    /// `--log-only`
    Nothing,
}

impl Draws {
    fn of(options: &PollOptions) -> Draws {
        match (options.log_only, options.pages) {
            (true, _) => Draws::Nothing,
            (false, false) => Draws::Pages,
            (false, true) => Draws::AllPages,
        }
    }
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Each target has both its values, or a daemon was asked to end.
    Complete,
    /// Some target lacks a value, or was left out.
    SomeUnknown,
    /// No target has both its values.
    AllUnknown,
    /// A signal ended a single run.
    Ended,
}

/// Text of `--help`.
pub(crate) fn help() -> String {
    options::HELP.into()
}

/// Runs the command with the words after its name.
pub(crate) fn run(words: Vec<OsString>) -> ExitCode {
    let options = match options::read(words) {
        Ok(options) => options,
        Err(line) => return refuse(&format!("{line}; see kymo poll --help")),
    };
    if options.help {
        return crate::answer(options::HELP);
    }
    prepare_and_run(options).unwrap_or_else(|line| refuse(&line))
}

fn refuse(line: &str) -> ExitCode {
    talk::say(format_args!("kymo: {}", DisplayName(line.as_bytes())));
    ExitCode::from(FAILED)
}

/// Prepares the poller's files while the process may still have another user.
fn prepare_and_run(options: PollOptions) -> Result<ExitCode, String> {
    if options.files.is_empty() {
        return Err("cannot poll: no configuration is given; see kymo poll --help".into());
    }
    if options.daemon || options.foreground {
        talk::never_wait();
    }
    let (account, gid) = account(&options)?;
    let owner = (account.uid, gid);
    let mut places = Places::of(&options, owner)?;
    let pid_file = match options.daemon && !options.check {
        true => Some(PollPidFile::take(&places.pid, owner)?),
        false => None,
    };
    privilege::become_for_good(&account, gid)
        .map_err(|error| format!("cannot become {}: {error}", account.name))?;
    let log = Arc::new(PollLog::new(places.log.as_deref()));
    let locks = places.locks.iter().map(|path| Lock::take(path));
    let locks = locks.collect::<Result<Vec<_>, _>>()?;
    let debugging = check::Debugging::new(&options.debug, options.secrets);
    let mut files: Vec<PathBuf> = options.files.iter().map(|file| absolute(file)).collect();
    let mut unread = Vec::new();
    let configs = match options.is_served() {
        false => reading::read_all(&options.files, &debugging, &log)?,
        true => {
            let read = reading::read_each(&options.files, &debugging, &log);
            let (numbers, configs): (Vec<usize>, Vec<Config>) = read.into_iter().unzip();
            let is_read = |number: &usize| numbers.contains(number);
            unread.extend(
                (0..files.len())
                    .filter(|number| !is_read(number))
                    .map(|n| files[n].clone()),
            );
            files = numbers
                .iter()
                .map(|&number| files[number].clone())
                .collect();
            places.keep(&numbers);
            configs
        }
    };
    let draws = Draws::of(&options);
    let settings = Settings {
        files,
        configs,
        unread,
        forever: options.daemon || options.foreground,
        is_served: options.is_served(),
        stays: options.foreground,
        places,
        log_dir: options.log_dir,
        burst: options.burst,
        integer_stamps: options.integer_stamps,
        keeper: options
            .keeper
            .map(|socket| KeeperConnection::to(socket, Arc::new(RealClock))),
        base: options.base,
        descriptions: options.descriptions,
        on_demand: options.on_demand,
        draws,
        log,
        ready: Ready::here(),
        locks,
    };
    if options.check {
        return check(&settings).map(exit_code);
    }
    start(settings, pid_file)
}

/// Says what a run would say before it polls. A target that is left out has no value, nor one whose command is refused.
fn check(settings: &Settings) -> Result<Outcome, String> {
    let configs = &settings.configs;
    configs
        .iter()
        .try_for_each(|config| drive::keepable(config, settings))?;
    configs
        .iter()
        .try_for_each(|config| drive::writable(config, settings))?;
    notices::say_all(configs, settings);
    let (mut polled, mut unpolled) = (0, 0);
    for config in configs {
        part::say_undone(config, settings);
        let refused = RefusedCommands::of(&Commands::of(config));
        refused.lines.iter().for_each(|line| settings.log.say(line));
        let is_refused = |target: &Target<'_>| {
            let readings = config.readings_of(target.expression());
            readings
                .iter()
                .any(|reading| refused.numbers.contains(reading))
        };
        let refused = config.targets().filter(is_refused).count();
        unpolled += config.left_out().len() + refused;
        polled += config.targets().len() - refused;
    }
    Ok(match (unpolled == 0, polled == 0) {
        (true, _) => Outcome::Complete,
        (false, false) => Outcome::SomeUnknown,
        (false, true) => Outcome::AllUnknown,
    })
}

fn exit_code(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Complete => ExitCode::SUCCESS,
        Outcome::SomeUnknown => ExitCode::from(SOME_UNKNOWN),
        Outcome::AllUnknown => ExitCode::from(ALL_UNKNOWN),
        Outcome::Ended => ExitCode::FAILURE,
    }
}

/// Account to run as. Without `--group`, the user's own group.
fn account(options: &PollOptions) -> Result<(Account, u32), String> {
    let account = match &options.user {
        Some(name) => {
            Account::named(name).ok_or(format!("cannot become {name}: there is no such user"))?
        }
        None => Account::own(),
    };
    let gid = match (&options.group, &options.user) {
        (Some(name), _) => privilege::group_named(name).ok_or(format!(
            "cannot become group {name}: there is no such group"
        ))?,
        (None, Some(_)) => account.gid,
        (None, None) => privilege::own_group(),
    };
    Ok((account, gid))
}

/// Forks if the poller is to run in the background; then runs it.
fn start(mut settings: Settings, mut pid_file: Option<PollPidFile>) -> Result<ExitCode, String> {
    let says = |yes: fn(&Config) -> bool| settings.configs.iter().any(yes);
    settings.forever |= says(|config| config.globals().run_as_daemon);
    let stays = settings.stays || says(|config| config.globals().no_detach);
    if settings.forever && !stays {
        if pid_file.is_none() {
            let owner = (Account::own().uid, privilege::own_group());
            pid_file = Some(PollPidFile::take(&settings.places.pid, owner)?);
        }
        match daemon::detach(&settings.log)? {
            Detached::Parent(code) => {
                settings.locks.into_iter().for_each(Lock::leave);
                pid_file.into_iter().for_each(PollPidFile::leave);
                return Ok(code);
            }
            Detached::Daemon(ready) => settings.ready = ready,
        }
        for lock in &settings.locks {
            lock.inherit()
                .map_err(|error| format!("cannot keep the lock: {error}"))?;
        }
    }
    if let Some(file) = &pid_file {
        file.write()?;
    }
    let log = settings.log.clone();
    Ok(match drive::drive(settings) {
        Ok(outcome) => exit_code(outcome),
        Err(line) => {
            log.say(&line);
            ExitCode::from(FAILED)
        }
    })
}

/// Absolute path of a file. Without a current folder the path stays as it is.
fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.into())
}
