//! The guardian of `kymo serve`: starts the recorder, the keeper, the hub and pollers, starts each again when it dies, and
//! ends all. It keeps the privileges that it was started with, so it does nothing else: it holds the sockets, and no byte
//! from the network or of a recording passes through it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kymo_forward::{ForwardOrder, ForwardTarget};
use kymo_scrape::ScrapeOrder;
use kymo_sys::machine::{self, Signal, SignalFile};
use kymo_sys::own_name::OwnName;
use kymo_sys::privilege::{self, Role};
use kymo_sys::talk;
use kymo_upstream::{UpstreamOrder, UpstreamTarget};
use serde::Serialize;

use super::backups_place::{BackupOrder, BackupsPlace};
use crate::commands::hub::Order;
use crate::commands::keeper;
use crate::commands::postgres::PostgresOrder;
use crate::commands::serve::secret;
use crate::process::notices::put_line;
use crate::process::sandbox::Process;

mod answering;
mod child_process;
mod handed_file;
mod notify;
mod watchdog;

use answering::Answering;
use child_process::ChildProcess;
pub(crate) use handed_file::HandedFile;
use watchdog::{Cause, Finding, Watchdog};

/// Time for the children to end, so that all have ended within a second.
const PATIENCE: Duration = Duration::from_millis(900);
/// Interval of checks for the end of another recorder that has the folder.
const FOLDER_TAKEN: Duration = Duration::from_secs(10);
/// Longest sleep. Its length matters for nothing else.
const NAP: Duration = Duration::from_secs(3600);
/// Interval of checks for a changed types.db.
const TYPES_EVERY: Duration = Duration::from_secs(30);
/// Exit code of a child that has reported why it cannot run.
const REFUSED: i32 = 2;
/// Environment variables that children need.
const KEPT_VARIABLES: [&str; 3] = ["TZ", "TZDIR", "RUST_BACKTRACE"];

/// The plan, complete before anything is started.
pub(crate) struct Plan {
    /// The recorder; `None`: nothing is recorded.
    pub recorder: Option<Recorder>,
    /// The keeper; `None`: no values of others are received.
    pub keeper: Option<Keeper>,
    /// The poller of devices: one process for all configurations, if there are any.
    pub pollers: Vec<Poller>,
    /// The process that asks database servers; `None`: none is asked.
    pub postgres: Option<SqlAsker>,
    /// The process that scrapes targets; `None`: there are none.
    pub scraper: Option<Scraper>,
    /// The process that forwards values; `None`: there are no receivers.
    pub forwarder: Option<Forwarder>,
    /// The process that asks another engine; `None`: there is none.
    pub upstream: Option<Upstream>,
    /// The process that backs up; `None`: nothing is backed up.
    pub backup: Option<BackupProcess>,
    /// Order for the hub; file descriptors and code are filled in at each start.
    pub order: Order,
    /// Role of the hub.
    pub hub_role: Role,
    /// Socket for requests.
    pub listener: TcpListener,
    /// URL of the page, such as `http://127.0.0.1:4280/`.
    pub url: String,
    /// File with the token, if there is one.
    pub token_path: Option<PathBuf>,
}

/// Plan for the recorder.
pub(crate) struct Recorder {
    /// Folder and cap, in words.
    pub place: String,
    /// Lock file, held by the process that records into the folder.
    pub lock: PathBuf,
    /// Words of the command line.
    pub words: Vec<std::ffi::OsString>,
    /// Files whose descriptors the words have.
    pub files: Vec<OwnedFd>,
    /// Role of the process.
    pub role: Role,
}

/// Plan for the keeper.
pub(crate) struct Keeper {
    /// Order for the keeper; its pipe is filled in at each start.
    pub order: keeper::KeeperOrder,
    /// The sockets and files of the order.
    pub files: Vec<OwnedFd>,
    /// Copy of the file with users of collectd's protocol, if there is one; its descriptor is in the order, too.
    pub auth_file: Option<HandedFile>,
    /// Copy of the file with types of collectd's values, if there is one; its descriptor is in the order, too.
    pub types: Option<HandedFile>,
    /// Copy of the file with communities and users of traps, likewise.
    pub trap_access: Option<HandedFile>,
    /// Names of the sockets in the file system.
    pub names: Vec<OwnName>,
    /// Addresses of the listeners, a line each.
    pub shown: Vec<String>,
    /// Messages about optional parts that failed at the start.
    pub notices: Vec<String>,
    /// Plan for the keeper's watchdog; `None`: nothing watches the keeper.
    pub watched: Option<Watched>,
    /// True if the configuration asks for the keeper: then a start without it fails.
    pub configured: bool,
    /// Role of the process.
    pub role: Role,
}

/// Plan for the keeper's watchdog.
pub(crate) struct Watched {
    /// Socket at which the keeper answers requests.
    pub socket: PathBuf,
    /// Silence after which the keeper is ended.
    pub limit: Duration,
}

/// Plan for the poller.
pub(crate) struct Poller {
    /// Name of the configuration in messages.
    pub name: String,
    /// Words of the command line.
    pub words: Vec<std::ffi::OsString>,
    /// Role of the process.
    pub role: Role,
}

/// Plan for the process that asks database servers.
pub(crate) struct SqlAsker {
    /// Order with the servers.
    pub order: PostgresOrder,
    /// Role of the process.
    pub role: Role,
}

/// Plan for the process that scrapes targets.
pub(crate) struct Scraper {
    /// Order with the targets.
    pub order: ScrapeOrder,
    /// Makes the order again from the configuration, with the current contents of its files.
    pub read_again: Box<dyn Fn() -> Result<ScrapeOrder>>,
    /// Role of the process.
    pub role: Role,
}

/// Plan for the process that forwards values.
pub(crate) struct Forwarder {
    /// Order with the receivers.
    pub order: ForwardOrder,
    /// Makes the receivers again from the configuration, with the current contents of their files.
    pub targets: Box<dyn Fn() -> Result<Vec<ForwardTarget>>>,
    /// Role of the process.
    pub role: Role,
}

/// Plan for the process that asks another engine.
pub(crate) struct Upstream {
    /// Order with the engine.
    pub order: UpstreamOrder,
    /// Makes the engine again from the configuration, with the current contents of its files.
    pub target: Box<dyn Fn() -> Result<UpstreamTarget>>,
    /// Role of the process.
    pub role: Role,
    /// Socket of the order.
    pub _socket: OwnedFd,
    /// Name of the socket in the file system.
    pub name: OwnName,
}

/// Plan for the process that backs up.
pub(crate) struct BackupProcess {
    /// Order with the place.
    pub order: BackupOrder,
    /// Makes the place again from the configuration, with the current contents of its files.
    pub place: Box<dyn Fn() -> Result<Option<BackupsPlace>>>,
    /// Role of the process.
    pub role: Role,
}

/// Guards the children until a signal asks to stop.
pub(crate) fn run(plan: Plan) -> Result<ExitCode> {
    talk::never_wait();
    let signals = SignalFile::block().context("cannot wait for signals")?;
    // Children of the guardian may ask the kernel about the clock, so that no process here may change it.
    privilege::give_up_the_clock().context("cannot give up the right to change the clock")?;
    let calls = Process::Starter.confine();
    let now = Instant::now();
    let guardian = Guardian {
        recorder: ChildProcess::new("recorder", now),
        keeper: Answering::new("keeper", now),
        keeper_is_behind: false,
        keeper_watchdog: plan
            .keeper
            .as_ref()
            .and_then(|keeper| keeper.watched.as_ref())
            .map(|watched| Watchdog::new(watched.socket.clone(), watched.limit, now)),
        hub: Answering::new("hub", now),
        pollers: plan
            .pollers
            .iter()
            .map(|poller| ChildProcess::new(poller.name.clone(), now))
            .collect(),
        postgres: ChildProcess::new("process that asks PostgreSQL", now),
        scraper: ChildProcess::new("process that scrapes", now),
        forwarder: ChildProcess::new("process that forwards", now),
        upstream: ChildProcess::new("process that asks the upstream", now),
        backup: ChildProcess::new("process that backs up", now),
        plan,
        signals,
        code: None,
        is_serving: false,
        calls,
        reading_along: false,
        sign_interval: notify::watchdog(),
    };
    guardian.run()
}

/// Files that are readable.
struct ReadableFiles {
    /// The keeper reports that it is ready.
    keeper: bool,
    /// The hub reports that it is ready.
    hub: bool,
    /// The keeper has answered its watchdog.
    answer: bool,
}

struct Guardian {
    plan: Plan,
    signals: SignalFile,
    recorder: ChildProcess,
    keeper: Answering,
    /// True if a file may have changed since the starting keeper read its copy.
    keeper_is_behind: bool,
    keeper_watchdog: Option<Watchdog>,
    hub: Answering,
    /// Pollers, in the order of the plan.
    pollers: Vec<ChildProcess>,
    postgres: ChildProcess,
    scraper: ChildProcess,
    forwarder: ChildProcess,
    upstream: ChildProcess,
    backup: ChildProcess,
    /// Code that the running hub accepts.
    code: Option<String>,
    /// True if the hub has answered once.
    is_serving: bool,
    /// System calls that are refused to this process, in words.
    calls: String,
    /// True if another recorder has the folder.
    reading_along: bool,
    /// Interval at which the service manager wants a sign of life.
    sign_interval: Option<Duration>,
}

impl Guardian {
    fn run(mut self) -> Result<ExitCode> {
        for notice in self.plan.keeper.iter().flat_map(|keeper| &keeper.notices) {
            say(notice);
        }
        loop {
            self.start_what_is_due()?;
            let heard = self.wait();
            while let Some(signal) = self.signals.take() {
                match signal {
                    Signal::Stop => {
                        self.end();
                        return Ok(ExitCode::SUCCESS);
                    }
                    Signal::Flush => self.flush(),
                    Signal::HangUp => {
                        self.flush();
                        self.read_again();
                        self.scrape_again();
                        self.forward_again();
                        self.ask_again();
                        self.back_up_again();
                        let pollers = self.pollers.iter().filter_map(ChildProcess::pid);
                        pollers.for_each(machine::hang_up);
                    }
                    Signal::Wake | Signal::Child => {}
                }
            }
            if self.types().is_some_and(HandedFile::has_changed) {
                self.read_again();
            }
            if heard.keeper {
                self.hear_keeper();
            }
            if heard.hub {
                self.hear_hub();
            }
            self.watch_keeper(heard.answer);
            if let Some(code) = self.look_after_children() {
                self.end();
                return Ok(code);
            }
        }
    }

    fn flush(&self) {
        let recorder = self.recorder.pid();
        recorder.into_iter().for_each(machine::ask_to_flush);
    }

    /// Hands the current AuthFile and types.db to the keeper.
    fn read_again(&mut self) {
        let Some(keeper) = &self.plan.keeper else {
            return;
        };
        let files = [
            (&keeper.auth_file, "users"),
            (&keeper.types, "types"),
            (&keeper.trap_access, "communities and users"),
        ];
        let mut is_copied = false;
        for (file, contents) in files {
            match file.as_ref().map(HandedFile::copy_again) {
                Some(Err(error)) => say(&format!("{error:#}; its {contents} stay as they were")),
                Some(Ok(())) => is_copied = true,
                None => {}
            }
        }
        match (is_copied, self.keeper.is_ready()) {
            (false, _) => {}
            // The signal could end a keeper that is still starting.
            (true, false) => self.keeper_is_behind = true,
            (true, true) => {
                let keeper = self.keeper.child.pid();
                keeper.into_iter().for_each(machine::hang_up);
            }
        }
    }

    /// Starts the process that scrapes again, with the current passwords, tokens and certificates.
    fn scrape_again(&mut self) {
        let Some(scraper) = &mut self.plan.scraper else {
            return;
        };
        match (scraper.read_again)() {
            Ok(order) => {
                scraper.order = order;
                self.scraper.restart(Instant::now());
            }
            Err(error) => say(&format!(
                "{error:#}; passwords and certificates stay as they were"
            )),
        }
    }

    /// Starts the process that forwards again, with the current passwords, tokens and certificates.
    fn forward_again(&mut self) {
        let Some(forwarder) = &mut self.plan.forwarder else {
            return;
        };
        match (forwarder.targets)() {
            Ok(targets) => {
                forwarder.order.targets = targets;
                self.forwarder.restart(Instant::now());
            }
            Err(error) => say(&format!(
                "{error:#}; passwords and certificates stay as they were"
            )),
        }
    }

    /// Starts the process that asks another engine again, likewise.
    fn ask_again(&mut self) {
        let Some(upstream) = &mut self.plan.upstream else {
            return;
        };
        match (upstream.target)() {
            Ok(target) => {
                upstream.order.target = target;
                self.upstream.restart(Instant::now());
            }
            Err(error) => say(&format!(
                "{error:#}; passwords and certificates stay as they were"
            )),
        }
    }

    /// Starts the process that backs up again, with the current keys and certificates.
    fn back_up_again(&mut self) {
        let Some(backup) = &mut self.plan.backup else {
            return;
        };
        match (backup.place)() {
            Ok(place) => {
                backup.order.place = place.unwrap_or_else(|| backup.order.place.clone());
                self.backup.restart(Instant::now());
            }
            Err(error) => say(&format!(
                "{error:#}; its keys and certificates stay as they were"
            )),
        }
    }

    fn types(&self) -> Option<&HandedFile> {
        self.plan.keeper.as_ref()?.types.as_ref()
    }

    /// Waits until a task is due or a file is readable.
    fn wait(&self) -> ReadableFiles {
        let now = Instant::now();
        let recorder = self.plan.recorder.as_ref().and(self.recorder.due());
        let keeper = self.plan.keeper.as_ref().and(self.keeper.child.due());
        let postgres = self.plan.postgres.as_ref().and(self.postgres.due());
        let scraper = self.plan.scraper.as_ref().and(self.scraper.due());
        let forwarder = self.plan.forwarder.as_ref().and(self.forwarder.due());
        let upstream = self.plan.upstream.as_ref().and(self.upstream.due());
        let backup = self.plan.backup.as_ref().and(self.backup.due());
        let watchdog = self.keeper_watchdog.as_ref();
        let watchdog = watchdog.filter(|_| self.keeper.child.is_running());
        let look = watchdog.map(Watchdog::due);
        let hub = self.hub.child.due();
        let due = [
            recorder, keeper, postgres, scraper, forwarder, upstream, backup, hub, look,
        ];
        let pollers = self.pollers.iter().map(ChildProcess::due);
        let next = due.into_iter().chain(pollers).flatten().min();
        let nap = next.map_or(NAP, |due| due.saturating_duration_since(now));
        let nap = self.sign_interval.map_or(nap, |often| nap.min(often));
        let nap = self.types().map_or(nap, |_| nap.min(TYPES_EVERY));
        let (keeper, hub) = (self.keeper.file(), self.hub.file());
        let answer = watchdog.and_then(Watchdog::file);
        let files: Vec<_> = [Some(self.signals.as_fd()), keeper, hub, answer]
            .into_iter()
            .flatten()
            .collect();
        let readable = machine::wait_readable(&files, nap);
        if self.sign_interval.is_some() {
            notify::send("WATCHDOG=1");
        }
        let mut speaking = readable.into_iter().skip(1);
        let mut speaks = |file: Option<_>| file.is_some() && speaking.next() == Some(true);
        ReadableFiles {
            keeper: speaks(keeper),
            hub: speaks(hub),
            answer: speaks(answer),
        }
    }

    fn start_what_is_due(&mut self) -> Result<()> {
        let now = Instant::now();
        if self.recorder.is_due(now) && self.plan.recorder.is_some() {
            self.start_recorder(now);
        }
        if let Some(keeper) = &self.plan.keeper
            && self.keeper.child.is_due(now)
        {
            let mut role = keeper.role.clone();
            role.inherits = keeper.files.iter().map(AsRawFd::as_raw_fd).collect();
            let handed = [&keeper.auth_file, &keeper.types, &keeper.trap_access];
            let handed = handed.into_iter().flatten();
            role.inherits.extend(handed.map(HandedFile::number));
            let order = |ready| {
                serde_json::to_vec(&keeper::KeeperOrder {
                    ready,
                    ..keeper.order.clone()
                })
            };
            self.keeper.start(role, order, now)?;
        }
        if self.hub.child.is_due(now) {
            self.start_hub(now)?;
        }
        if let Some(postgres) = &self.plan.postgres
            && self.postgres.is_due(now)
        {
            let child = start_with_order("postgres", &postgres.order, postgres.role.clone())?;
            self.postgres.start(child, now);
        }
        if let Some(scraper) = &self.plan.scraper
            && self.scraper.is_due(now)
        {
            let child = start_with_order("scrape", &scraper.order, scraper.role.clone())?;
            self.scraper.start(child, now);
        }
        if let Some(backup) = &self.plan.backup
            && self.backup.is_due(now)
        {
            let child = start_with_order("backup-every", &backup.order, backup.role.clone())?;
            self.backup.start(child, now);
        }
        if let Some(forwarder) = &self.plan.forwarder
            && self.forwarder.is_due(now)
        {
            let child = start_with_order("forward", &forwarder.order, forwarder.role.clone())?;
            self.forwarder.start(child, now);
        }
        if let Some(upstream) = &self.plan.upstream
            && self.upstream.is_due(now)
        {
            let child = start_with_order("upstream", &upstream.order, upstream.role.clone())?;
            self.upstream.start(child, now);
        }
        for (child, poller) in self.pollers.iter_mut().zip(&self.plan.pollers) {
            if child.is_due(now) {
                let mut command = own_command("poll");
                command.args(&poller.words).stdin(Stdio::null());
                privilege::confine(&mut command, poller.role.clone());
                child.start(command.spawn(), now);
            }
        }
        Ok(())
    }

    fn start_recorder(&mut self, now: Instant) {
        let Some(recorder) = &self.plan.recorder else {
            return;
        };
        if let Some(holder) = holder(&recorder.lock) {
            if !self.reading_along {
                say(&format!(
                    "process {holder} is recording there already; it is read along"
                ));
            }
            self.reading_along = true;
            return self.recorder.put_off(now + FOLDER_TAKEN);
        }
        self.reading_along = false;
        let mut command = own_command("record");
        command.args(&recorder.words).stdin(Stdio::null());
        let role = Role {
            inherits: recorder.files.iter().map(AsRawFd::as_raw_fd).collect(),
            ..recorder.role.clone()
        };
        privilege::confine(&mut command, role);
        self.recorder.start(command.spawn(), now);
    }

    fn start_hub(&mut self, now: Instant) -> Result<()> {
        let listener = self.plan.listener.as_raw_fd();
        let role = Role {
            inherits: vec![listener],
            ..self.plan.hub_role.clone()
        };
        let code = secret::fresh_code()?;
        let order = |ready| {
            serde_json::to_vec(&Order {
                listener,
                ready,
                code: Some(code.clone()),
                ..self.plan.order.clone()
            })
        };
        self.hub.start(role, order, now)?;
        self.code = Some(code);
        Ok(())
    }

    /// Logs the keeper's line about its rights, which comes when the store is open.
    fn hear_keeper(&mut self) {
        let (Some(state), Some(keeper)) = (self.keeper.hear(), &self.plan.keeper) else {
            return;
        };
        say(&format!("keeper: {state}"));
        keeper.shown.iter().for_each(|line| say(line));
        if std::mem::take(&mut self.keeper_is_behind) {
            let keeper = self.keeper.child.pid();
            keeper.into_iter().for_each(machine::hang_up);
        }
    }

    /// Logs the hub's line about its rights, which comes when it answers.
    fn hear_hub(&mut self) {
        let Some(state) = self.hub.hear() else {
            return;
        };
        if !self.is_serving {
            say(&format!("guardian: {}", self.calls));
            self.say_recorder();
        }
        say(&format!("hub: {state}"));
        self.say_url();
        if !self.is_serving {
            notify::send("READY=1");
        }
        self.is_serving = true;
    }

    fn say_recorder(&self) {
        let Some(recorder) = &self.plan.recorder else {
            return;
        };
        if self.recorder.is_running() {
            say(&format!("recording to {}", recorder.place));
        }
    }

    /// Logs the URL. The code opens the texts, so it is shown on a terminal only, and kept out of logs.
    fn say_url(&mut self) {
        let url = &self.plan.url;
        let code = self.code.take();
        match (machine::stderr_is_terminal(), code, &self.plan.token_path) {
            (true, Some(code), _) => say(&format!("open {url}#code={code} (good once)")),
            (_, _, Some(path)) => say(&format!("open {url}; the token is in {}", path.display())),
            _ => say(&format!("open {url}")),
        }
    }

    /// Reports a keeper that does not answer, and ends it if a new one would do better.
    fn watch_keeper(&mut self, has_answered: bool) {
        let Some(watchdog) = &mut self.keeper_watchdog else {
            return;
        };
        let now = Instant::now();
        let Some(pid) = self.keeper.child.pid() else {
            return watchdog.restart(now);
        };
        let finding = watchdog.look(now, has_answered);
        let cause = || Cause::of(pid, self.keeper.is_ready());
        match finding {
            Finding::Nothing => {}
            Finding::Silent(silence) => {
                let cause = cause();
                let rest = match cause.is_mended_by_a_restart() {
                    true => format!(
                        "unless it answers within {} s, it is killed and started again",
                        watchdog.left().as_secs()
                    ),
                    false => "nothing is stored, and nothing of what is stored is shown, until it answers".into(),
                };
                let (silence, cause) = (silence.as_secs(), cause.text());
                say(&format!(
                    "the keeper has not answered for {silence} s: {cause}; {rest}"
                ));
            }
            Finding::TooLong(silence) => {
                let cause = cause();
                if cause.is_mended_by_a_restart() {
                    let (silence, cause) = (silence.as_secs(), cause.text());
                    say(&format!(
                        "the keeper has not answered for {silence} s: {cause}; it is killed and started again"
                    ));
                    self.keeper.child.send_kill();
                }
            }
            Finding::Answers(silence) => say(&format!(
                "the keeper answers again after {} s",
                silence.as_secs()
            )),
        }
    }

    /// Looks for children that have died. `Some`: it makes no sense to go on.
    fn look_after_children(&mut self) -> Option<ExitCode> {
        let now = Instant::now();
        if let Some(status) = self.hub.ended() {
            if self.hub.has_refused(status) {
                return Some(ExitCode::from(REFUSED as u8));
            }
            self.hub.child.failed(now, &words(status));
        }
        if let Some(status) = self.keeper.ended() {
            let configured = self.plan.keeper.as_ref().is_some_and(|k| k.configured);
            if configured && self.keeper.has_refused(status) {
                return Some(ExitCode::from(REFUSED as u8));
            }
            self.keeper.child.failed(now, &words(status));
        }
        let others = [
            &mut self.recorder,
            &mut self.postgres,
            &mut self.scraper,
            &mut self.forwarder,
            &mut self.upstream,
            &mut self.backup,
        ];
        for child in self.pollers.iter_mut().chain(others) {
            if let Some(status) = child.ended() {
                child.failed(now, &words(status));
            }
        }
        None
    }

    /// Ends all children within a second. A recorder or a keeper that still writes then may finish.
    fn end(&mut self) {
        notify::send("STOPPING=1");
        let deadline = Instant::now() + PATIENCE;
        for child in self.children() {
            child.pid().into_iter().for_each(machine::ask_to_end);
        }
        while self.children().any(|child| child.is_running()) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            machine::wait_readable(&[self.signals.as_fd()], left);
            while self.signals.take().is_some() {}
            for child in self.children() {
                child.ended();
            }
        }
        self.hub.child.kill();
        self.postgres.kill();
        self.scraper.kill();
        self.forwarder.kill();
        self.upstream.kill();
        self.backup.kill();
        self.pollers.iter_mut().for_each(ChildProcess::kill);
        for (child, name) in [(&self.recorder, "recorder"), (&self.keeper.child, "keeper")] {
            if child.is_running() {
                say(&format!("the {name} is still writing, and ends by itself"));
            }
        }
        let of_keeper = self.plan.keeper.iter().flat_map(|keeper| &keeper.names);
        let of_upstream = self.plan.upstream.iter().map(|upstream| &upstream.name);
        for name in of_keeper.chain(of_upstream) {
            // Somebody may have removed the name already.
            let _ = name.remove();
        }
    }

    fn children(&mut self) -> impl Iterator<Item = &mut ChildProcess> {
        let others = [
            &mut self.recorder,
            &mut self.keeper.child,
            &mut self.hub.child,
            &mut self.postgres,
            &mut self.scraper,
            &mut self.forwarder,
            &mut self.upstream,
            &mut self.backup,
        ];
        self.pollers.iter_mut().chain(others)
    }
}

/// A command that runs this program, even if its file was replaced meanwhile.
fn own_command(word: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    let kept = KEPT_VARIABLES
        .iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    command
        .arg0("kymo")
        .arg(word)
        .env_clear()
        .envs(kept)
        .stdout(Stdio::null());
    command
}

/// Starts `kymo WORD`, which reads its order on stdin.
fn start_with_order(word: &str, order: &impl Serialize, role: Role) -> Result<io::Result<Child>> {
    let order = serde_json::to_vec(order)?;
    let mut command = own_command(word);
    command.stdin(Stdio::piped());
    privilege::confine(&mut command, role);
    let mut child = command.spawn();
    if let Some(mut stdin) = child.as_mut().ok().and_then(|child| child.stdin.take()) {
        // If the child is dead already, the guardian notices that soon.
        let _ = stdin.write_all(&order);
    }
    Ok(child)
}

/// The process that records into a folder, from its lock file.
fn holder(lock: &std::path::Path) -> Option<String> {
    // The folder may be another user's: links are not followed, and pipes are not waited for.
    let mut file = File::options()
        .read(true)
        .custom_flags(machine::PLAIN_FILE)
        .open(lock)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    match file.try_lock_shared() {
        Err(std::fs::TryLockError::WouldBlock) => {
            let mut text = String::new();
            file.read_to_string(&mut text).ok()?;
            Some(text.trim().to_string())
        }
        _ => None,
    }
}

fn words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(0), _) => "ended".into(),
        (Some(code), _) => format!("ended with exit code {code}"),
        (_, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended".into(),
    }
}

/// Logs a line. A terminal that is gone is no reason to end.
fn say(line: &str) {
    put_line(line);
}

/// Exit status of a child that has ended, without waiting.
fn ended(child: &mut Child) -> Option<ExitStatus> {
    child.try_wait().ok().flatten()
}
