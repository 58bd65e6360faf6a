//! `kymo serve`: from the configuration to a plan for the guardian. Errors are found here, before
//! anything is started.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use kymo_base::limits;
use kymo_ingest::line_listeners;
use kymo_query::archive::ROLLUPS_FOLDER;
use kymo_recording::folder::{boot_folders_of, safe_host};
use kymo_serve::{Tls, UpstreamPlace};
use kymo_sys::datagrams::UdpSocket;
use kymo_sys::disk::{RealDisk, sync_names_of};
use kymo_sys::machine;
use kymo_sys::privilege::{Account, Keep, Memory, Role};
use kymo_upstream::answer_ms;

use super::hub::Order;
use super::{keeper, record};
use crate::config::{self, Config, KeptValues};
use crate::options;
use crate::output;

mod access;
mod backup;
mod backups_place;
pub(crate) mod devices;
mod forward;
mod guardian;
mod place;
mod poller;
mod postgres;
mod programs;
mod running;
mod scrape;
mod secret;
mod sockets;
mod upstream;

pub(crate) use access::{credentials, tls};
pub(crate) use backups_place::{BackupOrder, BackupsPlace, S3Options, is_url};
use guardian::{HandedFile, Keeper, Plan, Recorder, Watched};
pub(crate) use sockets::{ADMIN as ADMIN_SOCKET, KEEPER_SOCKET};
use sockets::{LinePlaces, Sockets};
pub(crate) use upstream::UPSTREAM_SOCKET;

/// Permissions that new files lack: the group may read them, other users may not.
const UMASK: u32 = 0o027;
/// File of the token for senders, in the data folder.
const WRITE_TOKEN: &str = "write-token";
/// Folder of the store in the data folder, unless another one is configured.
pub(crate) const STORE_FOLDER: &str = "store";
/// Folder of boards in the data folder.
pub(crate) const BOARDS_FOLDER: &str = "boards";
/// types.db of Debian's collectd.
const TYPES_DB: &str = "/usr/share/collectd/types.db";

/// Options of `kymo serve`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ServeOptions {
    /// Configuration; default: /etc/kymo/kymo.toml if it is there. See kymo config
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder that holds everything; default: /var/lib/kymo for root, else the XDG state folder
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where to answer; default 127.0.0.1:4280
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Record the machine whose kernel's files are below this folder, such as /host in a container
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Show these recordings, from any machine, and record nothing
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub open: Vec<PathBuf>,
    /// Print what is in force, and end
    #[arg(long)]
    pub check: bool,
    /// Serve the page from this folder
    #[arg(long, value_name = "DIR", hide = true)]
    pub assets: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(options: &ServeOptions) -> Result<ExitCode> {
    let config = effective(options)?;
    check(&config)?;
    let tls = read_tls(&config)?;
    if options.check {
        if let Some((cert, key)) = tls {
            Tls { cert, key }.check().map_err(anyhow::Error::msg)?;
        }
        output::put(&config::text(&config))?;
        return Ok(ExitCode::SUCCESS);
    }
    machine::set_umask(UMASK);
    let listener = listen(config.listen.page)?;
    let mut plan = match options.open.as_slice() {
        [] => recording_plan(&config, options, listener)?,
        files => open_plan(&config, options, files, listener)?,
    };
    plan.order.tls = tls;
    guardian::run(plan)
}

/// The configuration of the file, with the switches' values instead of its own. `data` is always set.
fn effective(options: &ServeOptions) -> Result<Config> {
    let mut config = config::load(options.config.as_deref()).map_err(anyhow::Error::msg)?;
    if let Some(address) = &options.listen {
        config.listen.page = config::parse_address(address).map_err(anyhow::Error::msg)?;
    }
    if let Some(root) = &options.root {
        config.record.root.clone_from(root);
    }
    let data = options.data.clone().or(config.data.take());
    let data = data.or_else(default_data).context(
        "cannot choose a folder for recordings: there is no home folder; use --data DIR",
    )?;
    let data =
        std::path::absolute(&data).with_context(|| format!("cannot use {}", data.display()))?;
    config.data = Some(data);
    Ok(config)
}

/// Data folder for a command: the named one, that of a running serve, or the default.
pub(crate) fn data_folder(named: Option<&Path>) -> Result<PathBuf> {
    let folder = running_folder(named).ok().or_else(default_data);
    folder.context("cannot find the folder of kymo serve: there is no home folder; use --data DIR")
}

/// Data folder of the `kymo serve` that a command asks: the named one, or that of a running serve.
pub(crate) fn running_folder(named: Option<&Path>) -> Result<PathBuf> {
    named.map_or_else(|| find_running("--data DIR"), |named| Ok(named.into()))
}

/// Data folder for a command that reads files: the named one, that of a running serve, or the default if it exists.
pub(crate) fn files_folder(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named.into());
    }
    let running = find_running("DIR");
    running.or_else(|error| default_data().filter(|folder| folder.is_dir()).ok_or(error))
}

/// Data folder of a running serve; `argument` is where its folder can be named.
fn find_running(argument: &str) -> Result<PathBuf> {
    running::find(default_data()).map_err(|looked| {
        let places = running::words(&looked);
        anyhow!("cannot find a kymo serve that runs: {places}. Name its folder: {argument}")
    })
}

/// The default data folder: the service manager's, the system's, or the user's.
fn default_data() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = variable("STATE_DIRECTORY") {
        return Some(folder.into());
    }
    if machine::is_root() {
        return Some(running::SYSTEM_DATA.into());
    }
    let state = variable("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(variable("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("kymo"))
}

/// Checks combinations of keys.
fn check(config: &Config) -> Result<()> {
    let in_the_clear = config.tls_cert.is_none();
    if !config.listen.page.ip().is_loopback() && in_the_clear && !config.insecure {
        bail!(
            "cannot listen on {}: anybody could reach it; give tls_cert and tls_key, or insecure = true",
            config.listen.page
        );
    }
    devices::check(config)?;
    check_root(&config.record.root)
}

/// A recorder without the kernel's files would end and be started again for ever.
fn check_root(root: &Path) -> Result<()> {
    let stat = root.join("proc/stat");
    std::fs::File::open(&stat).with_context(|| {
        let (root, stat) = (root.display(), stat.display());
        format!("cannot record the machine below {root}: cannot open {stat}")
    })?;
    Ok(())
}

/// Certificate chain and key. The hub may not read these files, so this process does.
fn read_tls(config: &Config) -> Result<Option<(String, String)>> {
    let (Some(cert), Some(key)) = (&config.tls_cert, &config.tls_key) else {
        return Ok(None);
    };
    let read = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    Ok(Some((read(cert)?, read(key)?)))
}

fn listen(address: SocketAddr) -> Result<TcpListener> {
    let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow!("cannot listen on {address}: address in use"),
        _ => anyhow!("cannot listen on {address}: {error}"),
    })?;
    // std's listeners have room for 128 waiting clients only.
    kymo_sys::listen::listen(&listener).with_context(|| format!("cannot listen on {address}"))?;
    Ok(listener)
}

fn recording_plan(config: &Config, options: &ServeOptions, listener: TcpListener) -> Result<Plan> {
    let dir = config.data.clone().unwrap_or_default();
    let account = place::prepare(&dir, &config.user)?;
    sync_names_of(&dir);
    let token_path = dir.join("token");
    let mut recorder = recorder(config, &dir, account.clone())?;
    let mut keeper = keeper(config, &dir, account.clone())?;
    programs::record(&mut keeper, &mut recorder);
    running::announce(&dir);
    let order = Order {
        ring: Some(dir.clone()),
        rollups: Some(dir.join(ROLLUPS_FOLDER)),
        boards: Some(dir.join(BOARDS_FOLDER)),
        keeper: Some(dir.join(sockets::KEEPER_SOCKET)),
        keeper_writes: Some(dir.join(sockets::WRITES)),
        upstream: upstream_of(config, &dir).map_err(anyhow::Error::msg)?,
        write_token: secret::token_of(&dir.join(WRITE_TOKEN))?,
        ..order(config, options, secret::token_of(&token_path)?)?
    };
    Ok(Plan {
        recorder: Some(recorder),
        keeper: Some(keeper),
        pollers: poller::pollers(config, &dir, account.as_ref())?,
        postgres: postgres::plan(config, &dir, account.as_ref())?,
        scraper: scrape::plan(config, &dir, account.as_ref())?,
        forwarder: forward::plan(config, &dir, account.as_ref())?,
        upstream: upstream::plan(config, &dir, account.as_ref())?,
        backup: backup::plan(config, &dir, account.as_ref())?,
        order,
        hub_role: role_without_rights(account, limits::HUB_MEMORY_MAX),
        url: url(listener.local_addr()?, config),
        listener,
        token_path: Some(token_path),
    })
}

fn open_plan(
    config: &Config,
    options: &ServeOptions,
    files: &[PathBuf],
    listener: TcpListener,
) -> Result<Plan> {
    let files = files
        .iter()
        .map(|file| found(file))
        .collect::<Result<Vec<_>>>()?
        .concat();
    // The token is kept only in a folder that was named on the command line; without one, each start has
    // a new token.
    let token_path = options.data.as_ref().map(|dir| dir.join("token"));
    let token = match (&options.data, &token_path) {
        (Some(dir), Some(path)) => {
            place::sure(dir)?;
            secret::token_of(path)?
        }
        _ => secret::fresh_token()?,
    };
    let account = place::who_can_read(&files, &config.user);
    let order = Order {
        files,
        ..order(config, options, token)?
    };
    Ok(Plan {
        recorder: None,
        keeper: None,
        pollers: Vec::new(),
        postgres: None,
        scraper: None,
        forwarder: None,
        upstream: None,
        backup: None,
        order,
        hub_role: role_without_rights(account, limits::HUB_MEMORY_MAX),
        url: url(listener.local_addr()?, config),
        listener,
        token_path,
    })
}

/// A file or folder of recordings; DIR/HOST stands for the folders of that host.
fn found(file: &Path) -> Result<Vec<PathBuf>> {
    let error = match std::fs::canonicalize(file) {
        Ok(file) => return Ok(vec![file]),
        Err(error) => error,
    };
    if let (Some(dir), Some(host)) = (
        file.parent(),
        file.file_name().and_then(|name| name.to_str()),
    ) && let Ok(dir) = std::fs::canonicalize(dir)
        && let Ok(folders) = boot_folders_of(&RealDisk, &dir, host)
        && !folders.is_empty()
    {
        return Ok(folders);
    }
    Err(error).with_context(|| format!("cannot open {}", file.display()))
}

/// The process that asks another engine, for the hub.
fn upstream_of(config: &Config, dir: &Path) -> Result<Option<UpstreamPlace>, String> {
    if config.query.upstream.is_empty() {
        return Ok(None);
    }
    Ok(Some(UpstreamPlace {
        socket: dir.join(UPSTREAM_SOCKET),
        answer_ms: answer_ms(config.query.timeout_ms()?),
    }))
}

/// The part of the hub's order that is the same for a ring and for files.
fn order(config: &Config, options: &ServeOptions, token: String) -> Result<Order> {
    let assets = options.assets.as_ref().map(std::fs::canonicalize);
    // Behind a proxy all clients come from loopback.
    let behind_proxy = !config.prefix.is_empty() || !config.hosts.is_empty();
    Ok(Order {
        listener: -1,
        ready: -1,
        ring: None,
        files: Vec::new(),
        prefix: config.prefix.clone(),
        hosts: config.hosts.clone(),
        loopback: config.listen.page.ip().is_loopback() && (config.trust_proxy || !behind_proxy),
        trust_proxy: config.trust_proxy,
        token,
        write_token: String::new(),
        tls: None,
        code: None,
        rollups: None,
        boards: None,
        keeper: None,
        keeper_writes: None,
        upstream: None,
        external_labels: config.query.external_labels.clone(),
        assets: assets
            .transpose()
            .context("cannot open the folder of --assets")?,
    })
}

/// Role of the hub and of the keeper: neither needs a capability, and both end with the guardian.
fn role_without_rights(account: Option<Account>, memory_bytes: u64) -> Role {
    Role {
        memory: Memory::Own(memory_bytes),
        account,
        groups: Vec::new(),
        keep: Keep::Nothing,
        ends_with_parent: true,
        inherits: Vec::new(),
    }
}

/// Plans the keeper, and opens its sockets while there are rights for that.
fn keeper(config: &Config, dir: &Path, account: Option<Account>) -> Result<Keeper> {
    let mut sockets = sockets::open(config, dir, account.as_ref().map(|account| account.gid))?;
    let failed = |error| sockets.notices.push(format!("{error:#}"));
    let published = programs::prepare(account.as_ref()).map_err(failed).ok();
    let open = |name, paths| HandedFile::open(name, paths);
    let auth_file = config.collectd.auth_file.clone().map(|path| vec![path]);
    let auth_file = auth_file.map(|path| open("auth_file", path)).transpose()?;
    let trap_access = config.traps.auth_file.clone().map(|path| vec![path]);
    let trap_access = trap_access.map(|path| open("traps", path)).transpose()?;
    let types = config.collectd.types_db.clone().or_else(installed_types);
    let types = types.map(|paths| open("types_db", paths)).transpose()?;
    let store = &config.store;
    let folder = |named: &Option<PathBuf>, own| named.clone().unwrap_or_else(|| dir.join(own));
    Ok(Keeper {
        order: keeper::KeeperOrder {
            ready: -1,
            folder: folder(&store.folder, STORE_FOLDER),
            base: base(config, dir),
            files: rrd_files(store),
            limits: limits(store).map_err(anyhow::Error::msg)?,
            receivers: forward::tails(config)?,
            owner: owner(&sockets),
            rrdcached: sockets.rrdcached.iter().map(AsRawFd::as_raw_fd).collect(),
            one_writer: config.rrdcached.one_writer,
            requests: sockets.requests.as_ref().map(AsRawFd::as_raw_fd),
            writes: sockets.writes.as_ref().map(AsRawFd::as_raw_fd),
            admin: sockets.admin.as_ref().map(AsRawFd::as_raw_fd),
            admin_user: machine::user(),
            poll_user: poller::user(config, account.as_ref())?
                .map_or(machine::user(), |one| one.uid),
            postgres_user: postgres::user(config, account.as_ref())?
                .map_or(machine::user(), |one| one.uid),
            reported: sockets.reported.as_raw_fd(),
            collectd: collectd_order(config, &sockets, (auth_file.as_ref(), types.as_ref()))?,
            lines: line_orders(&sockets, config),
            traps: traps_order(config, &sockets, trap_access.as_ref()),
            programs: published.as_ref().map(|folder| folder.path.clone()),
            activity: None,
            users: programs::users(),
        },
        watched: config::silence_limit(&store.silence)
            .map_err(anyhow::Error::msg)?
            .map(|limit| Watched {
                socket: dir.join(sockets::KEEPER_SOCKET),
                limit,
            }),
        shown: shown(&sockets),
        names: sockets.names,
        files: files_of(
            sockets
                .rrdcached
                .into_iter()
                .chain(sockets.requests)
                .chain(sockets.writes)
                .chain(sockets.admin)
                .chain(sockets.unixsock.map(|(socket, _)| socket))
                .collect(),
            sockets.collectd.into_iter().chain(sockets.traps),
            [sockets.reported]
                .into_iter()
                .chain(sockets.lines.into_iter().flat_map(LinePlaces::files))
                .chain(published.map(|folder| folder.lock)),
        ),
        auth_file,
        types,
        trap_access,
        notices: sockets.notices,
        configured: is_configured(config),
        role: role_without_rights(account, limits::KEEPER_MEMORY_MAX),
    })
}

/// Sockets and settings of the listeners for lines.
fn line_orders(sockets: &Sockets, config: &Config) -> Vec<keeper::LineOrder> {
    let all = sockets.lines.iter().zip(&config.lines);
    all.map(|(places, settings)| places.order(settings))
        .collect()
}

/// The owner of the folder of .rrd files, in words.
fn owner(sockets: &Sockets) -> String {
    let first = sockets.shown.first();
    first.map_or("kymo serve".into(), |first| format!("unix:{first}"))
}

/// True if the configuration asks for the keeper.
fn is_configured(config: &Config) -> bool {
    config.store != config::Store::default()
        || config.listen.rrdcached.is_some()
        || config.listen.collectd.is_some()
        || config.listen.unixsock.is_some()
        || config.listen.traps.is_some()
        || config.listen.lines.iter().any(Option::is_some)
        || config.collectd != config::Collectd::default()
}

/// Base folder of the store's .rrd files.
fn base(config: &Config, dir: &Path) -> PathBuf {
    let named = config.store.base.clone();
    named.unwrap_or_else(|| dir.join("rrd"))
}

/// All files whose descriptors the order has.
fn files_of(
    rrdcached: Vec<OwnedFd>,
    datagrams: impl IntoIterator<Item = (UdpSocket, SocketAddr)>,
    others: impl IntoIterator<Item = OwnedFd>,
) -> Vec<OwnedFd> {
    let datagrams = datagrams.into_iter().map(|(socket, _)| socket.socket);
    let sockets = rrdcached.into_iter().chain(datagrams);
    sockets.chain(others).collect()
}

/// Addresses of the keeper's listeners, in words.
fn shown(sockets: &Sockets) -> Vec<String> {
    let mut lines = Vec::new();
    if !sockets.shown.is_empty() {
        lines.push(format!(
            "rrdcached's protocol on {}",
            sockets.shown.join(", ")
        ));
    }
    if !sockets.collectd.is_empty() {
        let addresses: Vec<_> = sockets
            .collectd
            .iter()
            .map(|(_, address)| address.to_string())
            .collect();
        lines.push(format!("collectd's datagrams on {}", addresses.join(", ")));
    }
    if let Some((_, path)) = &sockets.unixsock {
        lines.push(format!("collectd's commands on {path}"));
    }
    if !sockets.traps.is_empty() {
        let addresses = sockets.traps.iter();
        let addresses: Vec<_> = addresses.map(|(_, address)| address.to_string()).collect();
        lines.push(format!("SNMP traps on {}", addresses.join(", ")));
    }
    let lines_of = line_listeners::ALL.iter().zip(&sockets.lines);
    lines.extend(lines_of.filter_map(|(listener, places)| places.shown(listener.title)));
    lines
}

/// Mode of .rrd files: a store that keeps no values has none.
fn rrd_files(store: &config::Store) -> String {
    match store.keep {
        KeptValues::All => store.files.clone(),
        KeptValues::None => "never".into(),
    }
}

/// Limits of the store.
fn limits(store: &config::Store) -> Result<keeper::StoreLimits, String> {
    let kept = store.retention()?;
    Ok(keeper::StoreLimits {
        keeps_values: store.keep == KeptValues::All,
        bytes: options::size_bytes(&store.bytes)?,
        points_kept_s: [kept.samples_s, kept.rows_5m_s, kept.rows_1h_s],
        labels: [store.labels, store.label_bytes],
        tail_bytes: options::size_bytes(&store.tail_bytes)?,
        tail_age_s: options::duration_ns("", &store.tail_age)? / 1_000_000_000,
    })
}

/// The types.db that Debian's collectd installs, if it exists.
fn installed_types() -> Option<Vec<PathBuf>> {
    let path = PathBuf::from(TYPES_DB);
    path.exists().then(|| vec![path])
}

/// Order for collectd's listener. The guardian hands over files that the keeper may not read.
fn collectd_order(
    config: &Config,
    sockets: &Sockets,
    (auth_file, types): (Option<&HandedFile>, Option<&HandedFile>),
) -> Result<keeper::CollectdOrder> {
    let keys = &config.collectd;
    if keys.security != config::Security::None && keys.auth_file.is_none() {
        bail!("cannot use [collectd] security: it takes auth_file");
    }
    let socket = |(socket, address): &(UdpSocket, SocketAddr)| {
        (socket.socket.as_raw_fd(), address.to_string())
    };
    Ok(keeper::CollectdOrder {
        sockets: sockets.collectd.iter().map(socket).collect(),
        unixsock: sockets
            .unixsock
            .as_ref()
            .map(|(socket, path)| (socket.as_raw_fd(), path.clone())),
        security: keys.security.word().into(),
        users: auth_file.map(HandedFile::number),
        allow: keys.allow.clone(),
        trusted: keys.trusted.clone(),
        hosts: config
            .users
            .iter()
            .map(|(name, user)| (name.clone(), user.hosts.clone()))
            .collect(),
        types: types.map(HandedFile::number),
        step_s: keys.step,
        heartbeat_s: keys.heartbeat,
        rows: keys.rows,
        timespans_s: keys.timespans.clone(),
        xff: keys.xff,
        single: keys.single,
    })
}

/// Order for the listener for traps.
fn traps_order(
    config: &Config,
    sockets: &Sockets,
    access: Option<&HandedFile>,
) -> keeper::TrapsOrder {
    let sockets = sockets.traps.iter();
    keeper::TrapsOrder {
        sockets: sockets
            .map(|(socket, address)| (socket.socket.as_raw_fd(), address.to_string()))
            .collect(),
        access: access.map(HandedFile::number),
        allow: config.traps.allow.clone(),
        hosts: config.traps.hosts.clone().into_iter().collect(),
    }
}

/// Plans the recorder. It goes on when the guardian is killed, because its samples could not be made up
/// for.
fn recorder(config: &Config, dir: &Path, account: Option<Account>) -> Result<Recorder> {
    let cap = config.record.cap.as_deref().map(options::size_bytes);
    let cap_bytes = cap.transpose().map_err(anyhow::Error::msg)?;
    let mut words: Vec<OsString> = config
        .record
        .switches()
        .into_iter()
        .map(Into::into)
        .collect();
    words.extend(["--root".into(), config.record.root.clone().into()]);
    words.extend(["--confined".into(), "-f".into(), dir.into()]);
    Ok(Recorder {
        place: format!(
            "{} (cap {})",
            dir.display(),
            options::size_words(cap_bytes.unwrap_or_else(|| record::DefaultCap::of(dir).bytes))
        ),
        lock: dir.join(format!("{}.lock", safe_host(&machine::host()))),
        words,
        files: Vec::new(),
        role: Role {
            account,
            groups: Vec::new(),
            keep: Keep::Reading,
            memory: Memory::Own(limits::RECORDER_MEMORY_MAX),
            ends_with_parent: false,
            inherits: Vec::new(),
        },
    })
}

/// URL for a browser. For an address that stands for all, it has the machine's name.
fn url(address: SocketAddr, config: &Config) -> String {
    let scheme = match config.tls_cert {
        Some(_) => "https",
        None => "http",
    };
    let prefix = &config.prefix;
    match address.ip().is_unspecified() {
        true => format!("{scheme}://{}:{}{prefix}/", machine::host(), address.port()),
        false => format!("{scheme}://{address}{prefix}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_must_show_a_token() {
        for (file, loopback) in [
            ("", true),
            ("prefix = \"/kymo\"", false),
            ("hosts = [\"a.example\"]", false),
            ("hosts = [\"a.example\"]\ntrust_proxy = true", true),
            ("listen = \"[::1]:1\"", true),
            ("listen = \"0.0.0.0:1\"\ninsecure = true", false),
            (
                "listen = \"0.0.0.0:1\"\ntls_cert = \"c\"\ntls_key = \"k\"",
                false,
            ),
            (
                "listen = \"0.0.0.0:1\"\ninsecure = true\ntrust_proxy = true",
                false,
            ),
        ] {
            let config = config::parse(file, "x").expect(file);
            assert!(check(&config).is_ok(), "{file}");
            let order = order(&config, &ServeOptions::default(), String::new());
            assert_eq!(order.expect(file).loopback, loopback, "{file}");
        }
    }

    #[test]
    fn urls() {
        for (address, file, text) in [
            ("127.0.0.1:4280", "", "http://127.0.0.1:4280/"),
            ("[::1]:80", "prefix = \"/kymo\"", "http://[::1]:80/kymo/"),
            (
                "127.0.0.1:443",
                "tls_cert = \"c\"\ntls_key = \"k\"",
                "https://127.0.0.1:443/",
            ),
        ] {
            let config = config::parse(file, "x").expect(file);
            assert_eq!(url(address.parse().expect("an address"), &config), text);
        }
    }
}
