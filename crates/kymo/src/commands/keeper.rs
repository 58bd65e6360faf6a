//! `kymo keeper`: the part of `kymo serve` that owns the store and receives values of other machines and programs. The guardian
//! starts it, not a person. It reads its order on stdin, gives up rights that it does not need, and serves on the guardian's
//! sockets.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kymo_base::label_set::LabelLimits;
use kymo_base::name::DisplayName;
use kymo_forward::is_tail_name;
use kymo_ingest::collectd::{
    self, Collectd, CommandQueue, EventKeeper, InForce, Senders, UnixSock,
};
use kymo_ingest::common::{LineAccounts, LineSockets, Reported};
use kymo_ingest::keeper::{self, Keeper, OnSignal};
use kymo_ingest::line_listeners::{self, LineSettings};
use kymo_ingest::listener::Listener;
use kymo_ingest::log::{Log, Severity};
use kymo_ingest::prefix::Prefix;
use kymo_ingest::programs::{self, Collector, Programs};
use kymo_ingest::pushed::Pushes;
use kymo_ingest::requests::{Answers, Receivers, RequestListener, Role, SharedReader};
use kymo_ingest::rrdcached::{self, ListeningSocket, Rrdcached};
use kymo_ingest::traps::{TrapSettings, Traps};
use kymo_store::{PointsRetention, Settings};
use kymo_sys::disk::{RealDisk, sync_names_of};
use kymo_sys::machine::{self, DaemonSignals};
use kymo_sys::privilege::{self, State};
use kymo_sys::talk;
use kymo_wire::collectd::{
    Archives, Cdtime, RrdSettings, SecurityLevel, TypesDb, Users, read_auth_file,
};
use kymo_wire::rrdcached::Permissions;
use kymo_wire::trap_access::{BadAccess, TrapAccess};
use serde::{Deserialize, Serialize};

use crate::config;
use crate::process::notices::put_line;
use crate::process::{order, sandbox};

/// Threads that write .rrd files.
const WRITERS: usize = 2;
/// Boot id.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Default interval of a sender, in seconds, as in collectd.
const INTERVAL_S: u64 = 10;

/// Limits of the store.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct StoreLimits {
    /// True if values are kept, see [`Settings`].
    pub keeps_values: bool,
    /// Most bytes of blocks.
    pub bytes: u64,
    /// Most bytes of journal files that only tails need.
    pub tail_bytes: u64,
    /// Seconds after which such a file is removed.
    pub tail_age_s: u64,
    /// Retention in seconds of series of points: samples, rows of five minutes, rows of an hour.
    pub points_kept_s: [u32; 3],
    /// Most labels of a new label set, and most bytes of its text.
    pub labels: [usize; 2],
}

/// The guardian's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeeperOrder {
    /// File descriptor of a pipe. The keeper writes a line to it when the store is open.
    pub ready: i32,
    /// See [`Settings`].
    pub folder: PathBuf,
    /// See [`Settings`].
    pub base: PathBuf,
    /// See [`config::files_mode`].
    pub files: String,
    /// Limits of the store.
    pub limits: StoreLimits,
    /// Tails of receivers, with the seconds that each may be behind if it has a limit of its own. Tails of receivers that are
    /// configured no more end.
    pub receivers: Vec<(String, Option<u64>)>,
    /// Address of the keeper as the owner of the folder of .rrd files, for messages of other daemons.
    pub owner: String,
    /// File descriptors of the listening sockets for rrdcached's protocol.
    pub rrdcached: Vec<i32>,
    /// See [`rrdcached::Writers::One`].
    pub one_writer: bool,
    /// File descriptor of the listening socket for requests.
    pub requests: Option<i32>,
    /// File descriptor of the listening socket for processes of kymo that write, such as the hub.
    pub writes: Option<i32>,
    /// File descriptor of the administrator's listening socket.
    pub admin: Option<i32>,
    /// See [`Role::Admin`].
    pub admin_user: u32,
    /// See [`Role::Write`].
    pub poll_user: u32,
    /// See [`Role::Write`].
    pub postgres_user: u32,
    /// File descriptor of the file of [`Reported`].
    pub reported: i32,
    /// Settings for collectd's datagrams.
    pub collectd: CollectdOrder,
    /// The listeners for lines, in the order of their declarations.
    pub lines: Vec<LineOrder>,
    /// The listener for SNMP traps.
    pub traps: TrapsOrder,
    /// The folder in which programs publish; none: nothing is collected.
    pub programs: Option<PathBuf>,
    /// File descriptor of the pipe to the recorder, for the activity of programs.
    pub activity: Option<i32>,
    /// Names of users, by number.
    pub users: Vec<(u32, String)>,
}

/// Settings for collectd's datagrams.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CollectdOrder {
    /// File descriptors of the sockets, and their addresses.
    pub sockets: Vec<(i32, String)>,
    /// File descriptor of the socket for commands of the unixsock plugin, and its path.
    pub unixsock: Option<(i32, String)>,
    /// `none`, `sign` or `encrypt`.
    pub security: String,
    /// File descriptor of the AuthFile's copy, which the guardian keeps current.
    pub users: Option<i32>,
    /// See [`collectd::CollectdSettings`].
    pub allow: Vec<String>,
    /// See [`collectd::CollectdSettings`].
    pub trusted: Vec<String>,
    /// See [`collectd::CollectdSettings`].
    pub hosts: Vec<(String, Vec<String>)>,
    /// File descriptor of the copy of types.db, which the guardian keeps current; `None`: the types of collectd 5.12.
    pub types: Option<i32>,
    /// See [`RrdSettings`].
    pub step_s: u32,
    /// See [`RrdSettings`].
    pub heartbeat_s: u32,
    /// See [`RrdSettings`].
    pub rows: u32,
    /// See [`RrdSettings`].
    pub timespans_s: Vec<u32>,
    /// See [`RrdSettings`].
    pub xff: f64,
    /// True if the files have averages only.
    pub single: bool,
}

/// Settings for SNMP traps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TrapsOrder {
    /// File descriptors of the sockets, and their addresses.
    pub sockets: Vec<(i32, String)>,
    /// File descriptor of the copy of the file with communities and users, which the guardian keeps current.
    pub access: Option<i32>,
    /// See [`TrapSettings`].
    pub allow: Vec<String>,
    /// See [`TrapSettings`].
    pub hosts: Vec<(String, String)>,
}

/// File descriptors of the sockets of a protocol of lines.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LineOrder {
    /// Values of its settings.
    pub settings: Vec<u32>,
    /// For datagrams, and where they are.
    pub datagrams: Vec<(i32, String)>,
    /// Sockets for connections.
    pub streams: Vec<i32>,
}

impl LineOrder {
    /// Takes the sockets over; `None`: there are none. `reported` is that of all listeners, of which `before` sockets come first.
    fn sockets(
        &self,
        reported: &Reported,
        accounts: &LineAccounts,
        before: usize,
    ) -> Result<Option<LineSockets>> {
        if self.datagrams.is_empty() && self.streams.is_empty() {
            return Ok(None);
        }
        let datagrams = self.datagrams.iter();
        let datagrams = datagrams.map(|(fd, name)| Ok((handed(*fd)?, name.clone())));
        let streams = self.streams.iter().map(|&fd| handed(fd));
        Ok(Some(LineSockets {
            datagrams: datagrams.collect::<Result<_>>()?,
            streams: streams.collect::<Result<_>>()?,
            reported: reported.behind(before),
            accounts: accounts.clone(),
        }))
    }
}

impl KeeperOrder {
    fn for_rrdcached(&self) -> Result<Vec<ListeningSocket>> {
        let sockets = self.rrdcached.iter().map(|&fd| {
            Ok(ListeningSocket {
                socket: handed(fd)?,
                permissions: Permissions::ALL,
                name: None,
            })
        });
        sockets.collect()
    }

    /// Number of the sockets for datagrams whose counts come before those of traps.
    fn sockets_before_traps(&self) -> usize {
        let lines = self.lines.iter().map(|order| order.datagrams.len());
        self.collectd.sockets.len() + lines.sum::<usize>()
    }

    /// True for the tail of a receiver that is configured no more.
    fn has_no_receiver(&self, tail: &str) -> bool {
        is_tail_name(tail) && !self.receivers.iter().any(|(name, _)| name == tail)
    }

    /// Sockets for requests, and the roles of their clients.
    fn for_requests(&self) -> Result<Vec<(OwnedFd, Role)>> {
        let (owner, guardian) = (self.admin_user, machine::parent());
        let all = [
            (self.requests, Role::Read),
            (
                self.writes,
                Role::Write {
                    poller: self.poll_user,
                    postgres: self.postgres_user,
                },
            ),
            (self.admin, Role::Admin { owner, guardian }),
        ];
        let there = all.into_iter().filter_map(|(fd, role)| Some((fd?, role)));
        there.map(|(fd, role)| Ok((handed(fd)?, role))).collect()
    }
}

fn handed(fd: i32) -> Result<OwnedFd> {
    privilege::inherited(fd).context("cannot take over a file of kymo serve")
}

/// Runs the command.
pub(crate) fn run() -> Result<ExitCode> {
    talk::never_wait();
    let order: KeeperOrder = order::read("the keeper")?;
    let mut ready = File::from(handed(order.ready)?);
    let sockets = order.for_rrdcached()?;
    let requests = order.for_requests()?;
    let signals = DaemonSignals::block().context("cannot wait for signals")?;
    let copies = HandedCopies::take(&order.collectd, &order.traps)?;
    let reported = Reported::new(Some(handed(order.reported)?));
    let collectd = collectd_listener(&order.collectd, copies.in_force(), &reported)?;
    let unixsock = unixsock(&order.collectd)?;
    let log = own_log();
    let (senders, accounts) = (Senders::default(), LineAccounts::default());
    let lines = line_listeners(&order, &reported, &accounts, &log)?;
    machine::raise_open_files();
    let settings = settings(&order)?;
    let state = shut_in(&settings, order.programs.as_deref())?;
    let claim = keeper::claim(&settings, &mut |line| say(line)).map_err(anyhow::Error::msg)?;
    let mut listeners: Vec<Box<dyn Listener>> = vec![Box::new(Rrdcached {
        settings: rrdcached_settings(&settings, order.one_writer),
        sockets,
        log: log.clone(),
    })];
    let (events, notices) = EventKeeper::open(Arc::new(RealDisk), &settings.folder);
    notices.iter().for_each(|notice| say(notice));
    if let Some(collectd) = collectd {
        let (unixsock, commands) = unixsock.map(|open| open(log.clone())).unzip();
        let mut collectd = collectd(senders.clone(), events.clone(), log.clone());
        collectd.commands = commands;
        listeners.push(Box::new(collectd));
        listeners.extend(unixsock.map(|listener| Box::new(listener) as Box<dyn Listener>));
    }
    listeners.extend(lines);
    let counts = (&reported, &accounts);
    let kept = (&events, &*settings.folder, &log);
    listeners.extend(trap_listener(&order, &copies, counts, kept)?);
    let (collector, programs) = collector(&order, &settings, &log);
    listeners.extend(collector);
    let (reader, receivers) = (SharedReader::default(), Receivers::default());
    let (pushes, notice) = Pushes::open(Arc::new(RealDisk), &settings.folder);
    notice.iter().for_each(|notice| say(notice));
    for (socket, role) in requests {
        listeners.push(Box::new(RequestListener {
            socket,
            answers: Answers {
                role,
                senders: senders.clone(),
                events: events.clone(),
                lines: accounts.clone(),
                pushes: pushes.clone(),
                programs: programs.clone(),
                reader: reader.clone(),
                receivers: receivers.clone(),
                log: log.clone(),
            },
        }));
    }
    let keeper = Keeper::open(settings, claim, log).map_err(anyhow::Error::msg)?;
    keeper.end_tails(&|tail| order.has_no_receiver(tail));
    // The write fails if the guardian is gone.
    let _ = ready.write_all(format!("{state}\n").as_bytes());
    drop(ready);
    let hang_up = || copies.read_again();
    keeper
        .run(WRITERS, listeners, &signals, OnSignal::AsService, &hang_up)
        .map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}

/// The log without messages for debugging.
fn own_log() -> Log {
    Arc::new(|severity, line: &str| {
        if severity <= Severity::Notice {
            say(line);
        }
    })
}

/// The listeners for lines that have sockets. The counts of their datagrams come behind those of collectd's.
fn line_listeners(
    order: &KeeperOrder,
    reported: &Reported,
    accounts: &LineAccounts,
    log: &Log,
) -> Result<Vec<Box<dyn Listener>>> {
    let mut before = order.collectd.sockets.len();
    let mut listeners = Vec::new();
    for (listener, order) in line_listeners::ALL.iter().zip(&order.lines) {
        let settings = LineSettings::of(listener, order.settings.clone());
        let settings = settings.unwrap_or_else(|| listener.defaults());
        if let Some(sockets) = order.sockets(reported, accounts, before)? {
            listeners.push((listener.start)(&settings, sockets, log.clone()));
        }
        before += order.datagrams.len();
    }
    Ok(listeners)
}

/// Copies of files that are out of reach, and their current contents.
struct HandedCopies {
    auth_file: Option<HandedCopy>,
    types_db: Option<HandedCopy>,
    users: Option<InForce<Users>>,
    types: InForce<TypesDb>,
    /// The file of traps.
    trap_access: Option<(HandedCopy, InForce<TrapAccess>)>,
}

impl HandedCopies {
    fn take(order: &CollectdOrder, traps: &TrapsOrder) -> Result<HandedCopies> {
        let trap_access = traps.access.map(HandedCopy::take).transpose()?;
        let auth_file = order.users.map(HandedCopy::take).transpose()?;
        let copies = HandedCopies {
            users: auth_file.as_ref().map(|_| InForce::default()),
            auth_file,
            types_db: order.types.map(HandedCopy::take).transpose()?,
            types: InForce::default(),
            trap_access: trap_access.map(|file| (file, InForce::default())),
        };
        copies.types.set(TypesDb::embedded());
        copies.read();
        Ok(copies)
    }

    /// Contents for collectd's listener.
    fn in_force(&self) -> (Option<InForce<Users>>, InForce<TypesDb>) {
        (self.users.clone(), self.types.clone())
    }

    fn read(&self) {
        if let (Some(file), Some(users)) = (&self.auth_file, &self.users) {
            read_users(file, users);
        }
        if let Some(file) = &self.types_db {
            read_types(file, &self.types);
        }
        if let Some((file, access)) = &self.trap_access {
            read_trap_access(file, access);
        }
    }

    fn read_again(&self) {
        self.read();
        if let Some(users) = &self.users {
            let count = users.get().len();
            say(&format!("read auth_file again: {count} users"));
        }
        if self.types_db.is_some() {
            let count = self.types.get().len();
            say(&format!("read types.db again: {count} types"));
        }
        if let Some((_, access)) = &self.trap_access {
            let (communities, users) = access.get().counts();
            say(&format!(
                "read the auth_file of traps again: {communities} communities, {users} users"
            ));
        }
    }
}

/// The copy of a file that is out of reach.
struct HandedCopy(File);

impl HandedCopy {
    fn take(number: i32) -> Result<HandedCopy> {
        Ok(HandedCopy(handed(number)?.into()))
    }

    fn text(&self) -> std::io::Result<Vec<u8>> {
        let mut text = vec![0; self.0.metadata()?.len() as usize];
        self.0.read_exact_at(&mut text, 0)?;
        Ok(text)
    }
}

/// Reads the AuthFile; reports and skips wrong lines.
fn read_users(file: &HandedCopy, in_force: &InForce<Users>) {
    let text = match file.text() {
        Ok(text) => text,
        Err(error) => return say(&format!("cannot read auth_file: {error}")),
    };
    let (users, bad) = read_auth_file(&text);
    for bad in bad {
        say(&format!("auth_file line {}: {}", bad.line, bad.why));
    }
    in_force.set(users);
}

/// Reads the file of traps; reports and skips wrong lines.
fn read_trap_access(file: &HandedCopy, in_force: &InForce<TrapAccess>) {
    match file.text() {
        Ok(text) => {
            let (access, bad) = TrapAccess::read(&text);
            for BadAccess { line, why } in bad {
                say(&format!("auth_file of traps, line {line}: {why}"));
            }
            in_force.set(access);
        }
        Err(error) => say(&format!("cannot read the auth_file of traps: {error}")),
    }
}

/// The listener for SNMP traps; `None`: it has no sockets.
fn trap_listener(
    order: &KeeperOrder,
    copies: &HandedCopies,
    (reported, accounts): (&Reported, &LineAccounts),
    (events, folder, log): (&EventKeeper, &Path, &Log),
) -> Result<Option<Box<dyn Listener>>> {
    let traps = &order.traps;
    if traps.sockets.is_empty() {
        return Ok(None);
    }
    let sockets = traps.sockets.iter();
    let sockets = sockets.map(|(fd, name)| Ok((handed(*fd)?, name.clone())));
    let hosts = traps.hosts.iter();
    let hosts = hosts.filter_map(|(address, name)| Some((address.parse().ok()?, name.clone())));
    Ok(Some(Box::new(Traps {
        settings: TrapSettings {
            access: copies
                .trap_access
                .as_ref()
                .map(|(_, access)| access.clone()),
            allow: networks(&traps.allow),
            hosts: hosts.collect(),
        },
        sockets: sockets.collect::<Result<_>>()?,
        reported: reported.behind(order.sockets_before_traps()),
        accounts: accounts.clone(),
        events: events.clone(),
        kept: (Arc::new(RealDisk), folder.into()),
        log: log.clone(),
    })))
}

/// Reads types.db; reports and skips wrong lines.
fn read_types(file: &HandedCopy, in_force: &InForce<TypesDb>) {
    let text = match file.text() {
        Ok(text) => text,
        Err(error) => return say(&format!("cannot read types.db: {error}")),
    };
    let mut types = TypesDb::default();
    for bad in types.add(&text) {
        say(&format!("types.db line {}: {}", bad.line, bad.why));
    }
    if types != *in_force.get() {
        in_force.set(types);
    }
}

/// The listener for collectd's datagrams, made when there is a log; `None`: it has no sockets and no commands.
fn collectd_listener(
    order: &CollectdOrder,
    (users, types): (Option<InForce<Users>>, InForce<TypesDb>),
    reported: &Reported,
) -> Result<Option<impl FnOnce(Senders, EventKeeper, Log) -> Collectd>> {
    if order.sockets.is_empty() && order.unixsock.is_none() {
        return Ok(None);
    }
    let sockets = order.sockets.iter().map(|(fd, name)| {
        let socket = privilege::inherited(*fd).context("cannot take over a file of kymo serve")?;
        Ok((socket, name.clone()))
    });
    let sockets = sockets.collect::<Result<Vec<_>>>()?;
    let reported = reported.clone();
    let settings = collectd::CollectdSettings {
        level: match order.security.as_str() {
            "sign" => SecurityLevel::Sign,
            "encrypt" => SecurityLevel::Encrypt,
            _ => SecurityLevel::None,
        },
        users,
        allow: networks(&order.allow),
        trusted: networks(&order.trusted),
        hosts: order
            .hosts
            .iter()
            .map(|(user, hosts)| (user.clone().into_bytes(), bytes_of(hosts)))
            .collect(),
        types,
        rrd: RrdSettings {
            step_s: order.step_s,
            heartbeat_s: order.heartbeat_s,
            rows: order.rows,
            timespans_s: order.timespans_s.clone(),
            xff: order.xff,
            archives: match order.single {
                true => Archives::Average,
                false => Archives::Three,
            },
        },
        interval: Cdtime::from_seconds(INTERVAL_S),
    };
    Ok(Some(move |senders, events, log| Collectd {
        settings,
        sockets,
        reported,
        senders,
        events,
        commands: None,
        log,
    }))
}

/// The listener for collectd's commands, made when there is a log, and the end of the listener that carries them out.
fn unixsock(order: &CollectdOrder) -> Result<Option<impl FnOnce(Log) -> (UnixSock, CommandQueue)>> {
    let Some((fd, path)) = &order.unixsock else {
        return Ok(None);
    };
    let socket = handed(*fd)?;
    let (commands, queue) =
        collectd::command_queue(path.clone()).context("cannot make a queue of commands")?;
    Ok(Some(move |log| {
        let listener = UnixSock {
            socket,
            commands,
            log,
        };
        (listener, queue)
    }))
}

/// The configuration was checked when it was read.
fn networks(texts: &[String]) -> Vec<Prefix> {
    let networks = texts.iter().filter_map(|text| Prefix::parse(text));
    networks.collect()
}

/// The collector for programs that publish, if there is a folder. If it cannot be opened, this is logged, and the keeper runs
/// without it.
fn collector(
    order: &KeeperOrder,
    settings: &Settings,
    log: &Log,
) -> (Option<Box<dyn Listener>>, Programs) {
    let Some(folder) = order.programs.clone() else {
        return (None, Programs::default());
    };
    let place = programs::CollectorSettings {
        folder,
        kept: settings.folder.clone(),
        boot: std::fs::read_to_string(BOOT_ID).unwrap_or_default(),
        users: order.users.iter().cloned().collect(),
        recorder: order.activity.and_then(|fd| handed(fd).ok()),
    };
    match Collector::open(place, Arc::new(RealDisk), log.clone()) {
        Ok((collector, programs)) => (Some(Box::new(collector)), programs),
        Err(why) => {
            say(&format!("cannot collect what programs publish: {why}"));
            (None, Programs::default())
        }
    }
}

fn bytes_of(texts: &[String]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.clone().into_bytes()).collect()
}

/// Logs a line.
fn say(line: &str) {
    put_line(format_args!("keeper: {}", DisplayName(line.as_bytes())));
}

/// Settings of the store. Makes its folders.
fn settings(order: &KeeperOrder) -> Result<Settings> {
    let [samples_s, rows_5m_s, rows_1h_s] = order.limits.points_kept_s;
    let [labels, bytes] = order.limits.labels;
    Ok(Settings {
        points: Some(PointsRetention {
            samples_s,
            rows_5m_s,
            rows_1h_s,
        }),
        labels: LabelLimits { labels, bytes },
        owner: Some(order.owner.clone()),
        beneath: true,
        files: config::files_mode(&order.files).map_err(anyhow::Error::msg)?,
        keeps_values: order.limits.keeps_values,
        store_bytes: order.limits.bytes,
        tail_bytes: order.limits.tail_bytes,
        tail_age: Duration::from_secs(order.limits.tail_age_s),
        tail_ages: tail_ages(&order.receivers),
        ..Settings::new(made(&order.folder)?, made(&order.base)?)
    })
}

fn tail_ages(receivers: &[(String, Option<u64>)]) -> Vec<(String, Duration)> {
    let receivers = receivers.iter();
    let own = receivers.filter_map(|(tail, age_s)| Some((tail, (*age_s)?)));
    own.map(|(tail, age_s)| (tail.clone(), Duration::from_secs(age_s)))
        .collect()
}

/// Makes a folder. Returns its path without links.
fn made(folder: &Path) -> Result<PathBuf> {
    let mut builder = std::fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o750)
        .create(folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let real = std::fs::canonicalize(folder);
    let real = real.with_context(|| format!("cannot open {}", folder.display()))?;
    // Now, because folders above cannot be opened later.
    sync_names_of(&real);
    Ok(real)
}

fn rrdcached_settings(settings: &Settings, one_writer: bool) -> rrdcached::Settings {
    rrdcached::Settings {
        base: Some(settings.base.clone()),
        hidden: Some(settings.folder.clone()),
        beneath: true,
        make_folders: true,
        no_overwrite: false,
        writers: match one_writer {
            true => rrdcached::Writers::One,
            false => rrdcached::Writers::Shared,
        },
        durable: false,
    }
}

/// Gives up rights, while there is one thread. Returns the state in words.
fn shut_in(settings: &Settings, programs: Option<&Path>) -> Result<String> {
    let own = State::of(std::process::id()).context("cannot read /proc/self/status")?;
    // Read now: names of users come from files that are out of reach afterwards.
    let words = own.words();
    let mut write = vec![settings.folder.clone(), settings.base.clone()];
    write.extend(programs.map(Path::to_path_buf));
    let files = sandbox::enter(&[], &write);
    let calls = sandbox::Process::Keeper.confine();
    Ok(format!("{words}, {files}, {calls}"))
}
