//! The configuration of `kymo serve`: one TOML file, each key with a default. An unknown key or a wrong
//! value is an error with its line. [`text`] writes the file that [`parse`] reads: `kymo config` shows all
//! keys, and `kymo serve --check` the values in force.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kymo_base::label_set::{LABELS_MAX, LabelLimits, TEXT_MAX};
use kymo_ingest::line_listeners::LineSettings;
use kymo_ingest::prefix::Prefix;
use kymo_kernel::subsystem;
use kymo_store::{Files, PointsRetention};
use kymo_view::processes::Filter;
use kymo_wire::collectd::RrdSettings;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::options;
use crate::options::intervals::{Intervals, Scans};
use crate::options::own_intervals;
use lines::WithoutLines;

mod access;
mod backup;
mod device;
mod forward;
mod lines;
mod poll;
mod postgres;
mod query;
mod scrape;
mod traps;

pub(crate) use access::AccessKeys;
pub(crate) use backup::BackupKeys;
pub(crate) use device::{
    DeviceTable, ListedInterface, SnmpVersion, check as check_devices, interface_text,
    interfaces_text,
};
pub(crate) use forward::{Forward, ForwardAddress};
pub(crate) use lines::LineAddresses;
pub(crate) use poll::{FilesWritten, Poll};
pub(crate) use postgres::Postgres;
pub(crate) use query::Query;
pub(crate) use scrape::Scrape;
pub(crate) use traps::TrapKeys;

/// Path of the file by default.
pub(crate) const DEFAULT_PATH: &str = "/etc/kymo/kymo.toml";
/// Shortest silence that may end a keeper.
const SILENCE_MIN: Duration = Duration::from_secs(10);

/// All keys.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Folder for all files; `None`: the usual folder of the system or of the user.
    pub data: Option<PathBuf>,
    /// Path under which a reverse proxy serves the page.
    #[serde(deserialize_with = "path_prefix")]
    pub prefix: String,
    /// Host names that requests may use, in addition to this machine's loopback names.
    pub hosts: Vec<String>,
    /// True if a reverse proxy admits only users that may see the numbers.
    pub trust_proxy: bool,
    /// True if serve may listen beyond loopback without TLS.
    pub insecure: bool,
    /// Certificate chain, PEM.
    pub tls_cert: Option<PathBuf>,
    /// Key of the certificate, PEM.
    pub tls_key: Option<PathBuf>,
    /// User to run as when started by root; empty: no other user.
    pub user: String,
    /// Addresses of the listeners.
    pub listen: Listen,
    /// Keys of the store.
    pub store: Store,
    /// Keys of collectd's datagrams and of their .rrd files.
    pub collectd: Collectd,
    /// Writers of series by rrdcached's protocol.
    pub rrdcached: Rrdcached,
    /// Keys of SNMP traps.
    pub traps: TrapKeys,
    /// Settings of the listeners for lines, in the order of their declarations.
    #[serde(skip)]
    pub lines: Vec<LineSettings>,
    /// Rights of users of collectd's AuthFile; a user without an entry may do everything.
    pub users: BTreeMap<String, User>,
    /// The poller's keys.
    pub poll: Poll,
    /// PostgreSQL servers to ask.
    pub postgres: Postgres,
    /// Targets to scrape.
    pub scrape: Vec<Scrape>,
    /// Devices to poll.
    pub device: Vec<DeviceTable>,
    /// Receivers of remote write.
    pub forward: Vec<Forward>,
    /// Another engine that is asked.
    pub query: Query,
    /// Backups.
    pub backup: BackupKeys,
    /// The recorder's keys.
    pub record: Record,
}

/// Addresses of the listeners. `listen = "ADDRESS"` sets only the page's address.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Listen {
    /// Address and port of the page and the API.
    pub page: SocketAddr,
    /// Places for rrdcached's protocol; `None`: a unix socket in the data folder.
    pub rrdcached: Option<Vec<ListenAddress>>,
    /// Group that may use unix sockets; `None`: the owner's group.
    pub group: Option<String>,
    /// Addresses for collectd's datagrams; `None`: loopback, on collectd's port.
    pub collectd: Option<Vec<SocketAddr>>,
    /// Unix socket for commands of collectd's unixsock plugin; `None`: there is none.
    pub unixsock: Option<PathBuf>,
    /// Addresses for SNMP traps; `None`: there are none.
    pub traps: Option<Vec<SocketAddr>>,
    /// Addresses of the listeners for lines, by UDP and TCP, in the order of their declarations.
    pub lines: Vec<LineAddresses>,
}

/// Place of a listening socket.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ListenAddress {
    /// Path of a unix socket.
    Path(PathBuf),
    /// An address and a port.
    Address(SocketAddr),
}

/// Keys of rrdcached's protocol.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Rrdcached {
    /// True if one client alone writes a series.
    pub one_writer: bool,
}

/// collectd's keys.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Collectd {
    /// Security level that datagrams need.
    pub security: Security,
    /// Users and passwords, as collectd's AuthFile.
    pub auth_file: Option<PathBuf>,
    /// Networks from which datagrams are accepted; empty: all networks.
    #[serde(deserialize_with = "prefixes")]
    pub allow: Vec<String>,
    /// Interface of multicast groups; `None`: the kernel picks one.
    pub interface: Option<String>,
    /// Trusted networks: their senders count as if they signed.
    #[serde(deserialize_with = "prefixes")]
    pub trusted: Vec<String>,
    /// Files with types; `None`: the installed file, or kymo's copy of collectd 5.12's types.
    pub types_db: Option<Vec<PathBuf>>,
    /// RRDs: step in seconds; 0: the values' interval.
    pub step: u32,
    /// RRDs: heartbeat in seconds; 0: twice the step.
    pub heartbeat: u32,
    /// RRDs: rows of an archive.
    pub rows: u32,
    /// RRDs: time spans of the archives, in seconds.
    pub timespans: Vec<u32>,
    /// RRDs: part of a row that may be unknown.
    #[serde(deserialize_with = "xff")]
    pub xff: f64,
    /// RRDs: true for averages only.
    pub single: bool,
}

/// Rights of a user of collectd's AuthFile.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct User {
    /// Patterns of the hosts whose values this user may send.
    pub hosts: Vec<String>,
}

/// Security level of collectd's datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Security {
    /// All datagrams.
    None,
    /// Signed datagrams, and encrypted ones.
    Sign,
    /// Encrypted datagrams.
    Encrypt,
}

/// Values that the store keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeptValues {
    /// All values, for the times of the other keys.
    All,
    /// None but those of the journal, which receivers do not have yet.
    None,
}

impl KeptValues {
    fn word(self) -> &'static str {
        match self {
            KeptValues::All => "all",
            KeptValues::None => "none",
        }
    }
}

/// The store's keys.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Store {
    /// Base folder of the names of .rrd files; `None`: `rrd` in the data folder.
    pub base: Option<PathBuf>,
    /// The store's own folder; `None`: `store` in the data folder.
    pub folder: Option<PathBuf>,
    /// Values that the store keeps.
    pub keep: KeptValues,
    /// Longest delay of .rrd files, or `ask`, or `never`.
    #[serde(deserialize_with = "files")]
    pub files: String,
    /// Most bytes of blocks, as far as dropping raw points helps.
    #[serde(deserialize_with = "size_text")]
    pub bytes: String,
    /// Retention of samples in series of points.
    #[serde(deserialize_with = "kept")]
    pub points: String,
    /// Retention of the rows of five minutes that samples become.
    #[serde(deserialize_with = "kept")]
    pub rows_5m: String,
    /// Retention of the rows of an hour that samples become.
    #[serde(deserialize_with = "kept")]
    pub rows_1h: String,
    /// Most labels of a new label set.
    #[serde(deserialize_with = "labels")]
    pub labels: usize,
    /// Most bytes of a label set's text.
    #[serde(deserialize_with = "label_bytes")]
    pub label_bytes: usize,
    /// Most bytes of journal files that only tails need.
    #[serde(deserialize_with = "size_text")]
    pub tail_bytes: String,
    /// Age up to which journal files are kept for tails.
    #[serde(deserialize_with = "duration")]
    pub tail_age: String,
    /// Silence after which a keeper is killed and started again; 0: never.
    #[serde(deserialize_with = "silence")]
    pub silence: String,
}

/// Keys of the recorder.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Record {
    /// Folder below which the kernel's files are read.
    pub root: PathBuf,
    /// Letters of the subsystems.
    #[serde(deserialize_with = "letters")]
    pub subsystems: String,
    /// Seconds between samples.
    pub interval: f64,
    /// Seconds between scans of the processes.
    pub process_interval: f64,
    /// Seconds between two reads of control groups; 0: each sample.
    pub group_interval: f64,
    /// Most control groups.
    pub groups: usize,
    /// Seconds between two looks at the space of file systems; 0: each scan of the processes.
    pub filesystem_interval: f64,
    /// Most bytes of all recordings; `None`: 1 GiB, or 5 % of the file system; of a small one more.
    #[serde(deserialize_with = "size")]
    pub cap: Option<String>,
    /// Age at which recordings are removed; `None`: they are removed only to make room.
    #[serde(deserialize_with = "age")]
    pub keep: Option<String>,
    /// Longest time from a sample to the disk.
    #[serde(deserialize_with = "duration")]
    pub sync: String,
    /// Processes to record, in the syntax of `--procfilt`; `None`: all.
    #[serde(deserialize_with = "processes")]
    pub processes: Option<String>,
    /// True if threads are recorded, too.
    pub threads: bool,
    /// True if only the first word of command lines is recorded.
    pub redact_args: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            data: None,
            prefix: String::new(),
            hosts: Vec::new(),
            trust_proxy: false,
            insecure: false,
            tls_cert: None,
            tls_key: None,
            user: "kymo".into(),
            listen: Listen::default(),
            store: Store::default(),
            collectd: Collectd::default(),
            rrdcached: Rrdcached::default(),
            traps: TrapKeys::default(),
            lines: lines::defaults(),
            users: BTreeMap::new(),
            poll: Poll::default(),
            postgres: Postgres::default(),
            scrape: Vec::new(),
            device: Vec::new(),
            forward: Vec::new(),
            query: Query::default(),
            backup: BackupKeys::default(),
            record: Record::default(),
        }
    }
}

impl Default for Listen {
    fn default() -> Listen {
        Listen {
            page: SocketAddr::from(([127, 0, 0, 1], 4280)),
            rrdcached: None,
            group: None,
            collectd: None,
            unixsock: None,
            traps: None,
            lines: lines::defaults(),
        }
    }
}

impl Default for Collectd {
    fn default() -> Collectd {
        let rrd = RrdSettings::default();
        Collectd {
            security: Security::None,
            auth_file: None,
            allow: Vec::new(),
            interface: None,
            trusted: Vec::new(),
            types_db: None,
            step: rrd.step_s,
            heartbeat: rrd.heartbeat_s,
            rows: rrd.rows,
            timespans: vec![3_600, 86_400, 604_800, 2_678_400, 31_622_400],
            xff: rrd.xff,
            single: false,
        }
    }
}

impl Security {
    /// The word in the file.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Security::None => "none",
            Security::Sign => "sign",
            Security::Encrypt => "encrypt",
        }
    }
}

impl Default for Store {
    fn default() -> Store {
        Store {
            base: None,
            folder: None,
            keep: KeptValues::All,
            files: "ask".into(),
            bytes: "10G".into(),
            points: "15d".into(),
            rows_5m: "60d".into(),
            rows_1h: "730d".into(),
            labels: LabelLimits::default().labels,
            label_bytes: LabelLimits::default().bytes,
            tail_bytes: "1G".into(),
            tail_age: "6h".into(),
            silence: "2m".into(),
        }
    }
}

impl Store {
    /// Retention of series of points.
    pub(crate) fn retention(&self) -> Result<PointsRetention, String> {
        Ok(PointsRetention {
            samples_s: kept_s(&self.points)?,
            rows_5m_s: kept_s(&self.rows_5m)?,
            rows_1h_s: kept_s(&self.rows_1h)?,
        })
    }
}

impl ListenAddress {
    fn parse(text: &str) -> Result<ListenAddress, String> {
        let path = text.strip_prefix("unix:").unwrap_or(text);
        match path.starts_with('/') {
            true => Ok(ListenAddress::Path(path.into())),
            false => parse_address(text).map(ListenAddress::Address),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ListenAddress::Path(path) => write!(f, "{}", path.display()),
            ListenAddress::Address(address) => write!(f, "{address}"),
        }
    }
}

impl Default for Record {
    fn default() -> Record {
        Record {
            root: "/".into(),
            subsystems: subsystem::service_letters(),
            interval: 1.0,
            process_interval: 5.0,
            group_interval: 10.0,
            groups: 200,
            filesystem_interval: 60.0,
            cap: None,
            keep: None,
            sync: "5s".into(),
            threads: false,
            processes: None,
            redact_args: false,
        }
    }
}

impl Record {
    /// Value of `-i`.
    pub(crate) fn intervals(&self) -> String {
        format!("{}:{}", self.interval, self.process_interval)
    }

    /// The recorder's switches, but for `--root`.
    pub(crate) fn switches(&self) -> Vec<String> {
        let mut words = vec!["-s".into(), self.subsystems.clone()];
        words.extend(["-i".into(), self.intervals()]);
        for (switch, value) in [
            ("--group-interval", self.group_interval.to_string()),
            ("--groups", self.groups.to_string()),
            (
                "--filesystem-interval",
                self.filesystem_interval.to_string(),
            ),
        ] {
            words.extend([switch.into(), value]);
        }
        words.extend(["--sync".into(), self.sync.clone()]);
        for (switch, value) in [
            ("--cap", &self.cap),
            ("--keep", &self.keep),
            ("--procfilt", &self.processes),
        ] {
            if let Some(value) = value {
                words.extend([switch.into(), value.clone()]);
            }
        }
        if self.threads {
            words.push("--threads".into());
        }
        if self.redact_args {
            words.extend(["--redact".into(), "args".into()]);
        }
        words
    }
}

/// Reads the file; `None`: the default one, which may be missing.
pub(crate) fn load(path: Option<&Path>) -> Result<Config, String> {
    let (path, needed) = match path {
        Some(path) => (path, true),
        None => (Path::new(DEFAULT_PATH), false),
    };
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text, &path.display().to_string()),
        Err(error) if !needed && error.kind() == std::io::ErrorKind::NotFound => {
            Ok(Config::default())
        }
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

/// Reads the text of the file `name`.
pub(crate) fn parse(text: &str, name: &str) -> Result<Config, String> {
    let config: ConfigFile = toml::from_str(text).map_err(|error| complaint(&error, text, name))?;
    let ConfigFile(config) = config;
    check_intervals(&config.record)
        .map_err(|cause| format!("cannot use {name}: interval, process_interval: {cause}"))?;
    for (key, seconds) in [
        ("group_interval", config.record.group_interval),
        ("filesystem_interval", config.record.filesystem_interval),
    ] {
        let cause = |cause| format!("cannot use {name}: {key}: {cause}");
        own_intervals::nanoseconds(seconds).map_err(cause)?;
    }
    if config.tls_cert.is_some() != config.tls_key.is_some() {
        return Err(format!(
            "cannot use {name}: tls_cert and tls_key go together"
        ));
    }
    if config.store.keep == KeptValues::None && config.forward.is_empty() {
        return Err(format!(
            "cannot use {name}: [store] keep = \"none\" needs a receiver, [[forward]], which keeps the values"
        ));
    }
    let tables = scrape::check(&config.scrape, config.device.len())
        .and_then(|()| device::check(&config.device))
        .and_then(|()| forward::check(&config.forward))
        .and_then(|()| query::check(&config.query));
    tables.map_err(|cause| format!("cannot use {name}: {cause}"))?;
    Ok(config)
}

fn check_intervals(record: &Record) -> Result<(), String> {
    let read = Intervals::parse(
        Some(&record.intervals()),
        &record.subsystems,
        true,
        Scans::AtTheirOwn,
    );
    match read.map_err(|error| cause(&error).to_string())? {
        // Sampling without pause is for measurements only.
        Intervals { first_ns: 0, .. } => Err("shorter than a millisecond".into()),
        _ => Ok(()),
    }
}

/// Message about an error, such as `cannot use kymo.toml line 7: unknown key `listn``.
fn complaint(error: &toml::de::Error, text: &str, name: &str) -> String {
    let message = error.message().lines().collect::<Vec<_>>().join("; ");
    let message = match message.strip_prefix("unknown field ") {
        Some(rest) => format!("unknown key {}", rest.replace(", expected", "; there is")),
        None => message,
    };
    let line = error.span().map(|span| {
        let before = text.as_bytes().get(..span.start).unwrap_or_default();
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    });
    match line {
        Some(line) => format!("cannot use {name} line {line}: {message}"),
        None => format!("cannot use {name}: {message}"),
    }
}

/// The cause in an error message of a switch.
fn cause(error: &str) -> &str {
    error.split_once(": ").map_or(error, |(_, cause)| cause)
}

/// Reads `127.0.0.1:4280` or `[::1]:4280`.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let local = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"));
    local.as_deref().unwrap_or(text).parse().map_err(|_| {
        format!(
            "cannot listen on {}: not an address and a port, such as 127.0.0.1:4280",
            text.escape_debug()
        )
    })
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Listen, D::Error> {
        from.deserialize_any(ListenVisitor)
    }
}

/// Reads the page's address, or a table.
struct ListenVisitor;

impl<'de> Visitor<'de> for ListenVisitor {
    type Value = Listen;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an address and a port, or a table")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Listen, E> {
        let page = parse_address(text).map_err(|error| E::custom(cause(&error)))?;
        Ok(Listen {
            page,
            ..Listen::default()
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Listen, A::Error> {
        let default = Listen::default();
        let mut lines = lines::defaults();
        let map = WithoutLines {
            map,
            values: &mut lines,
        };
        let table = ListenTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Listen {
            page: table.page.unwrap_or(default.page),
            rrdcached: table.rrdcached,
            group: table.group,
            collectd: table.collectd,
            unixsock: table.unixsock,
            traps: table.traps,
            lines,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct ListenTable {
    #[serde(deserialize_with = "address")]
    page: Option<SocketAddr>,
    #[serde(deserialize_with = "places")]
    rrdcached: Option<Vec<ListenAddress>>,
    group: Option<String>,
    #[serde(deserialize_with = "addresses")]
    collectd: Option<Vec<SocketAddr>>,
    #[serde(deserialize_with = "socket_path")]
    unixsock: Option<PathBuf>,
    #[serde(deserialize_with = "addresses")]
    traps: Option<Vec<SocketAddr>>,
}

/// All keys of the file.
struct ConfigFile(Config);

impl<'de> Deserialize<'de> for ConfigFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ConfigFile, D::Error> {
        from.deserialize_map(ConfigVisitor)
    }
}

/// Reads the tables of the listeners for lines by their declarations, and all other keys into a [`Config`].
struct ConfigVisitor;

impl<'de> Visitor<'de> for ConfigVisitor {
    type Value = ConfigFile;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ConfigFile, A::Error> {
        let mut lines = lines::defaults();
        let map = WithoutLines {
            map,
            values: &mut lines,
        };
        let config = Config::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ConfigFile(Config { lines, ..config }))
    }
}

fn addresses<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<SocketAddr>>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let read: Result<_, _> = texts.iter().map(|text| parse_address(text)).collect();
    read.map(Some)
        .map_err(|error| D::Error::custom(cause(&error)))
}

fn prefixes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    match texts.iter().find(|text| Prefix::parse(text).is_none()) {
        Some(text) => Err(D::Error::custom(format!(
            "{text:?} is not a network such as 10.0.0.0/8"
        ))),
        None => Ok(texts),
    }
}

fn xff<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let xff = f64::deserialize(from)?;
    match (0.0..1.0).contains(&xff) {
        true => Ok(xff),
        false => Err(D::Error::custom("not a number from 0 up to 1")),
    }
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(from)?;
    let read = parse_address(&text).map_err(|error| D::Error::custom(cause(&error)));
    read.map(Some)
}

fn places<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<ListenAddress>>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let read: Result<_, _> = texts
        .iter()
        .map(|text| ListenAddress::parse(text))
        .collect();
    read.map(Some)
        .map_err(|error| D::Error::custom(cause(&error)))
}

fn socket_path<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(from)?;
    match path.is_absolute() {
        true => Ok(Some(path)),
        false => Err(D::Error::custom("not a path that begins with a slash")),
    }
}

fn files<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    checked(files_mode(&text), text)
}

/// Mode of writing .rrd files: `ask`, `never`, or their longest delay.
pub(crate) fn files_mode(text: &str) -> Result<Files, String> {
    match text {
        "ask" => Ok(Files::OnDemand),
        "never" => Ok(Files::Never),
        _ => {
            options::duration_ns("", text).map(|age_ns| Files::After(Duration::from_nanos(age_ns)))
        }
    }
}

fn silence<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    checked(silence_limit(&text), text)
}

/// Longest allowed silence of the keeper; `None`: no limit.
pub(crate) fn silence_limit(text: &str) -> Result<Option<Duration>, String> {
    let limit = Duration::from_nanos(options::duration_ns("", text)?);
    match limit {
        Duration::ZERO => Ok(None),
        _ if limit < SILENCE_MIN => Err(format!(
            "cannot use silence {text}: shorter than {} s, which a busy disk may take",
            SILENCE_MIN.as_secs()
        )),
        _ => Ok(Some(limit)),
    }
}

fn size_text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    checked(options::size_bytes(&text), text)
}

fn kept<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    checked(kept_s(&text), text)
}

/// Seconds for which samples or rows are kept.
fn kept_s(text: &str) -> Result<u32, String> {
    let seconds = options::duration_ns("", text)? / 1_000_000_000;
    let [least, most] = PointsRetention::LIMITS_S;
    let seconds = u32::try_from(seconds).ok();
    seconds
        .filter(|seconds| (least..=most).contains(seconds))
        .ok_or_else(|| {
            let days = most / 86_400;
            format!("cannot keep {text}: not a time from 1h to {days}d")
        })
}

fn labels<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    number(from, 1..=LABELS_MAX)
}

fn label_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    number(from, 64..=TEXT_MAX)
}

fn number<'de, D: Deserializer<'de>>(
    from: D,
    range: RangeInclusive<usize>,
) -> Result<usize, D::Error> {
    let number = i64::deserialize(from)?;
    let number = usize::try_from(number).ok();
    let number = number.filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let (least, most) = range.into_inner();
        D::Error::custom(format!("not a number from {least} to {most}"))
    })
}

/// Reads a path that begins with a slash, and removes slashes at its end.
fn path_prefix<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
    let prefix = text.trim_end_matches('/');
    let sound = prefix.is_empty() || prefix.starts_with('/');
    if !sound || !prefix.chars().all(plain) || prefix.contains("//") {
        return Err(D::Error::custom("not a path such as /kymo"));
    }
    Ok(prefix.into())
}

fn letters<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    options::letters(Some(&text), &subsystem::service_letters())
        .map_err(|error| D::Error::custom(cause(&error)))
}

fn processes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    Filter::parse(&text).map_err(|error| D::Error::custom(cause(&error)))?;
    Ok(Some(text))
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    size_text(from).map(Some)
}

fn age<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    duration(from).map(Some)
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    checked(options::duration_ns("", &text), text)
}

fn checked<T, E: serde::de::Error>(read: Result<T, String>, text: String) -> Result<String, E> {
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(E::custom(cause(&error))),
    }
}

/// A file with all keys of `config`. A key without a value is shown as an example after `#`.
pub(crate) fn text(config: &Config) -> String {
    let mut file = File(String::from(
        "# kymo.toml: what `kymo serve` does. All keys there are, with what is in force without them.\n",
    ));
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| quoted(&path.to_string_lossy()));
    let c = config;
    file.key(
        "data",
        "Folder that holds everything: recordings, roll-ups, the store, the token. Without it: /var/lib/kymo\n\
         for root, else $XDG_STATE_HOME/kymo (~/.local/state/kymo).",
        path(&c.data).ok_or("\"/var/lib/kymo\""),
    );
    file.key(
        "prefix",
        "Path under which a reverse proxy has it, such as \"/kymo\"; empty: none.",
        Ok(quoted(&c.prefix)),
    );
    let hosts: Vec<_> = c.hosts.iter().map(|host| quoted(host)).collect();
    file.key(
        "hosts",
        "Names besides localhost that requests may be for, as browsers say them: [\"web-1.example\"].\n\
         With a name or a prefix, numbers need the token on loopback, too: a proxy may let anybody in.",
        Ok(format!("[{}]", hosts.join(", "))),
    );
    file.key(
        "trust_proxy",
        "The reverse proxy lets in nobody who may not see the numbers: then they need no token.",
        Ok(c.trust_proxy.to_string()),
    );
    file.key(
        "insecure",
        "Listen beyond loopback without TLS: who is on the way reads the token and all else.",
        Ok(c.insecure.to_string()),
    );
    file.key(
        "tls_cert",
        "Certificate chain for TLS, PEM; with tls_key. Read at start.",
        path(&c.tls_cert).ok_or("\"/etc/kymo/cert.pem\""),
    );
    file.key(
        "tls_key",
        "Its private key, PEM.",
        path(&c.tls_key).ok_or("\"/etc/kymo/key.pem\""),
    );
    file.key(
        "user",
        "User to run as when started by root, if the folder is, or can be made, that user's;\n\
         empty: stay root, without capabilities.",
        Ok(quoted(&c.user)),
    );
    listen_text(&mut file, &c.listen);
    store_text(&mut file, &c.store);
    collectd_text(&mut file, &c.collectd);
    rrdcached_text(&mut file, c.rrdcached);
    traps::text(&mut file, &c.traps);
    lines::settings_text(&mut file, &c.lines);
    users_text(&mut file, &c.users);
    poll::text(&mut file, &c.poll);
    postgres::text(&mut file, &c.postgres);
    scrape::text(&mut file, &c.scrape);
    device::text(&mut file, &c.device);
    forward::text(&mut file, &c.forward);
    query::text(&mut file, &c.query);
    backup::text(&mut file, &c.backup);
    record_text(&mut file, &c.record);
    file.0
}

fn listen_text(file: &mut File, listen: &Listen) {
    file.0.push_str("\n[listen]\n");
    file.key(
        "page",
        "Address and port of the page and the API. Beyond loopback it takes TLS or `insecure`.\n\
         `listen = \"ADDRESS\"` instead of this table is the same.",
        Ok(quoted(&listen.page.to_string())),
    );
    let places = listen.rrdcached.as_ref().map(|places| {
        let places: Vec<_> = places
            .iter()
            .map(|place| quoted(&place.to_string()))
            .collect();
        format!("[{}]", places.join(", "))
    });
    file.key(
        "rrdcached",
        "Where rrdcached's protocol is spoken: paths of unix sockets, addresses with ports; []: nowhere.\n\
         Without it: rrdcached.sock in the data folder. Beyond loopback it takes `insecure`.",
        places.ok_or("[\"/run/kymo/rrdcached.sock\"]"),
    );
    file.key(
        "collectd",
        "Addresses and ports for datagrams of collectd's network plugin; []: none. The address of a multicast group, such\n\
         as 239.192.74.66, joins it. Without the key: port 25826 of loopback. See [collectd].",
        addresses_text(&listen.collectd).ok_or("[\"127.0.0.1:25826\", \"[::1]:25826\"]"),
    );
    let unixsock = listen.unixsock.as_ref();
    file.key(
        "unixsock",
        "Unix socket for the commands of collectd's unixsock plugin. Who may connect, its owner and `group`, may write.",
        unixsock
            .map(|path| quoted(&path.to_string_lossy()))
            .ok_or("\"/run/kymo/unixsock\""),
    );
    lines::addresses_text(file, &listen.lines);
    file.key(
        "traps",
        "Addresses and ports for SNMP traps and informs, by UDP, which become events of their devices. Without it: none.\n\
         Ports below 1024 take CAP_NET_BIND_SERVICE. See [traps].",
        addresses_text(&listen.traps).ok_or("[\"0.0.0.0:162\", \"[::]:162\"]"),
    );
    file.key(
        "group",
        "Group that may use the unix sockets, besides their owner. The hub should not be in it.",
        listen.group.as_deref().map(quoted).ok_or("\"www-data\""),
    );
}

fn addresses_text(addresses: &Option<Vec<SocketAddr>>) -> Option<String> {
    let addresses = addresses.as_ref()?;
    let texts: Vec<_> = addresses
        .iter()
        .map(|address| quoted(&address.to_string()))
        .collect();
    Some(format!("[{}]", texts.join(", ")))
}

/// A list of texts.
fn list_text(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

fn networks_text(file: &mut File, collectd: &Collectd) {
    file.key(
        "allow",
        "Networks that senders may be of, such as [\"10.0.0.0/8\"]; []: any. Beyond loopback there has to be one.",
        Ok(list_text(&collectd.allow)),
    );
    file.key(
        "trusted",
        "Networks whose senders bring new series at once, 50,000 of each network, as those who sign do. New names of others\n\
         count when they are repeated, and all of them on one machine share 25,000 a day.",
        Ok(list_text(&collectd.trusted)),
    );
}

fn collectd_text(file: &mut File, collectd: &Collectd) {
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| quoted(&path.to_string_lossy()));
    let list = |texts: Vec<String>| format!("[{}]", texts.join(", "));
    file.0.push_str("\n[collectd]\n");
    file.key(
        "security",
        "What is taken of collectd's datagrams: \"none\" all, \"sign\" signed and encrypted ones, \"encrypt\" encrypted\n\
         ones. Beyond loopback it takes sign or encrypt, or `insecure`.",
        Ok(quoted(collectd.security.word())),
    );
    file.key(
        "auth_file",
        "Users and passwords, a line `user: password` each, as collectd's AuthFile. Read at start and at SIGHUP.",
        path(&collectd.auth_file).ok_or("\"/etc/kymo/collectd.auth\""),
    );
    networks_text(file, collectd);
    file.key(
        "interface",
        "Network interface of multicast groups (Interface). Without it the kernel's routes pick one.",
        collectd.interface.as_deref().map(quoted).ok_or("\"eth0\""),
    );
    let files = collectd.types_db.as_ref();
    let files = files.map(|all| {
        list(
            all.iter()
                .map(|path| quoted(&path.to_string_lossy()))
                .collect(),
        )
    });
    file.key(
        "types_db",
        "Files of types, the last one first. Without it: /usr/share/collectd/types.db, or what collectd 5.12 has.\n\
         Types that are in none are taken as the sender has them. Read again when one has changed.",
        files.ok_or("[\"/usr/share/collectd/types.db\"]"),
    );
    file.key(
        "step",
        "Of the .rrd files that are made: seconds of a row; 0: the interval of the values (collectd's StepSize).",
        Ok(collectd.step.to_string()),
    );
    file.key(
        "heartbeat",
        "Seconds after which a missing value is unknown; 0: twice the step (HeartBeat).",
        Ok(collectd.heartbeat.to_string()),
    );
    file.key(
        "rows",
        "Rows of an archive (RRARows).",
        Ok(collectd.rows.to_string()),
    );
    let spans = collectd.timespans.iter().map(u32::to_string).collect();
    file.key(
        "timespans",
        "Seconds that archives reach back (RRATimespan).",
        Ok(list(spans)),
    );
    file.key(
        "xff",
        "The part of a row that may be unknown (XFF).",
        Ok(format!("{:?}", collectd.xff)),
    );
    file.key(
        "single",
        "Averages only, without minima and maxima (RRASingle).",
        Ok(collectd.single.to_string()),
    );
}

fn rrdcached_text(file: &mut File, rrdcached: Rrdcached) {
    file.0.push_str("\n[rrdcached]\n");
    file.key(
        "one_writer",
        "true: one client alone writes a series until it is silent for two steps. false: clients share series, as with\n\
         stock's daemon, so that several pollers may write one file.",
        Ok(rrdcached.one_writer.to_string()),
    );
}

fn users_text(file: &mut File, users: &BTreeMap<String, User>) {
    const HELP: &str = "Hosts whose values this user of collectd's AuthFile may send, with * and ?.\n\
                        A user without such a table may send those of all.";
    if users.is_empty() {
        file.0.push_str("\n#[users.web]\n");
        file.key("hosts", HELP, Err("[\"web-*\"]"));
    }
    for (name, user) in users {
        // Writing to a string cannot fail.
        let _ = writeln!(file.0, "\n[users.{}]", quoted(name));
        let hosts: Vec<_> = user.hosts.iter().map(|host| quoted(host)).collect();
        file.key("hosts", HELP, Ok(format!("[{}]", hosts.join(", "))));
    }
}

fn store_text(file: &mut File, store: &Store) {
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| quoted(&path.to_string_lossy()));
    file.0.push_str("\n[store]\n");
    file.key(
        "base",
        "Folder of .rrd files: names that clients say lie below it. Without it: rrd in the data folder.",
        path(&store.base).ok_or("\"/var/lib/kymo/rrd\""),
    );
    file.key(
        "folder",
        "The store's own folder. Without it: store in the data folder.",
        path(&store.folder).ok_or("\"/var/lib/kymo/store\""),
    );
    file.key(
        "keep",
        "\"all\": values stay here. \"none\": only names, and the journal until the receivers of [[forward]] have its values:\nfor a hub in front of an engine that keeps values and is the [query] upstream. There are no .rrd files then.",
        Ok(quoted(store.keep.word())),
    );
    file.key(
        "files",
        "When .rrd files are made and brought up to date. \"ask\": when somebody asks, as FLUSH and DUMP do.\n\
         \"5m\", \"7d\": when they are so far behind, and new series have one at once: for what lists folders.\n\
         \"never\": there are none.",
        Ok(quoted(&store.files)),
    );
    file.key(
        "bytes",
        "Most bytes of the store's blocks. Past this raw points become rows sooner, then rows of five minutes go.",
        Ok(quoted(&store.bytes)),
    );
    points_text(file, store);
    file.key(
        "tail_bytes",
        "Most bytes of the journal that are kept for those who carry values on and are behind. Beyond, they miss values\nand learn how many.",
        Ok(quoted(&store.tail_bytes)),
    );
    file.key(
        "tail_age",
        "How far behind they may be.",
        Ok(quoted(&store.tail_age)),
    );
    file.key(
        "silence",
        "A keeper (the process that has the store) that answers nothing for so long is killed and started again. One\n         that waits for a disk, or opens its store, is only reported, after a quarter of this time. \"0\": neither.",
        Ok(quoted(&store.silence)),
    );
}

fn points_text(file: &mut File, store: &Store) {
    file.key(
        "points",
        "How long samples stay as they were received, from \"1h\" to \"3640d\": those of series with label sets, as statsd and\n\
         Graphite send them. Older ones become rows. Other times than before count for all series from the next start on.",
        Ok(quoted(&store.points)),
    );
    file.key(
        "rows_5m",
        "How long their rows of five minutes stay.",
        Ok(quoted(&store.rows_5m)),
    );
    file.key(
        "rows_1h",
        "How long their rows of an hour stay.",
        Ok(quoted(&store.rows_1h)),
    );
    file.key(
        "labels",
        "Labels of a new label set at most, up to 256. Series that are there stay.",
        Ok(store.labels.to_string()),
    );
    file.key(
        "label_bytes",
        "Bytes of a new label set at most, as it is written, from 64 to 16384.",
        Ok(store.label_bytes.to_string()),
    );
}

fn record_text(file: &mut File, r: &Record) {
    let optional = |text: &Option<String>| text.as_deref().map(quoted);
    file.0.push_str("\n[record]\n");
    file.key(
        "root",
        "Read the kernel's files, and names of users, below this folder: for a container that has the host's root there.",
        Ok(quoted(&r.root.to_string_lossy())),
    );
    file.key(
        "subsystems",
        &format!(
            "What is recorded: {};\n\"-Z\" is all but processes.",
            subsystem::letters_and_names()
        ),
        Ok(quoted(&r.subsystems)),
    );
    file.key(
        "interval",
        "Seconds between samples.",
        Ok(r.interval.to_string()),
    );
    file.key(
        "process_interval",
        "Seconds between scans of the processes, a multiple of interval.",
        Ok(r.process_interval.to_string()),
    );
    file.key(
        "group_interval",
        "Seconds between two reads of control groups; 0: each sample.",
        Ok(r.group_interval.to_string()),
    );
    file.key(
        "groups",
        "Most control groups; those nearest to the root come first.",
        Ok(r.groups.to_string()),
    );
    file.key(
        "filesystem_interval",
        "Seconds between two looks at how full file systems are; 0: each scan of the processes.",
        Ok(r.filesystem_interval.to_string()),
    );
    file.key(
        "cap",
        "Most bytes of all recordings. Without it: 1G, or 5 % of the file system if that is less, but of a small one an eighth, up to 8M.",
        optional(&r.cap).ok_or("\"1G\""),
    );
    file.key(
        "keep",
        "Delete what is older: \"12h\", \"7d\", \"4w\". Without it, recordings go for room only.",
        optional(&r.keep).ok_or("\"30d\""),
    );
    file.key(
        "sync",
        "At most this long from a sample to the disk; what a power cut may cost.",
        Ok(quoted(&r.sync)),
    );
    file.key(
        "processes",
        "Record these processes only, as --procfilt names them. Without it, all.",
        optional(&r.processes).ok_or("\"Cpostgres,U www-data\""),
    );
    file.key("threads", "Record threads, too.", Ok(r.threads.to_string()));
    file.key(
        "redact_args",
        "Record only the first word of command lines: the others may hold passwords.",
        Ok(r.redact_args.to_string()),
    );
}

struct File(String);

impl File {
    /// Writes a key with its help. `value`: the value in force, or an example.
    fn key(&mut self, name: &str, help: &str, value: Result<String, &str>) {
        self.0.push('\n');
        for line in help.lines() {
            // Writing to a string cannot fail.
            let _ = writeln!(self.0, "# {line}");
        }
        let _ = match value {
            Ok(value) => writeln!(self.0, "{name} = {value}"),
            Err(example) => writeln!(self.0, "#{name} = {example}"),
        };
    }
}

/// A text as a basic string of TOML.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            _ if char.is_control() => {
                let _ = write!(out, "\\u{:04X}", char as u32);
            }
            _ => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_ingest::line_listeners;

    #[test]
    fn the_printed_default_is_the_default() {
        let text = text(&Config::default());
        assert_eq!(parse(&text, "x"), Ok(Config::default()));
        assert_eq!(parse("", "x"), Ok(Config::default()));
    }

    #[test]
    fn examples_can_be_used() {
        let uncommented: String = text(&Config::default())
            .lines()
            .map(|line| {
                let key = line.strip_prefix('#').filter(|rest| !rest.starts_with(' '));
                format!("{}\n", key.unwrap_or(line))
            })
            .collect();
        let config = parse(&uncommented, "x").expect("all examples");
        let all = text(&config);
        let example = all
            .lines()
            .find(|l| l.starts_with('#') && !l.starts_with("# "));
        assert_eq!(example, None, "every key has a value then");
    }

    #[test]
    fn what_is_in_force_can_be_read_back() {
        let config = Config {
            data: Some("/a b/\"c\"\\\u{1b}ä".into()),
            prefix: "/kymo".into(),
            hosts: vec!["a.example".into(), "b".into()],
            trust_proxy: true,
            insecure: true,
            tls_cert: Some("c".into()),
            tls_key: Some("k".into()),
            user: String::new(),
            listen: Listen {
                page: "[::1]:80".parse().expect("an address"),
                rrdcached: Some(vec![
                    ListenAddress::Path("/run/a b".into()),
                    ListenAddress::Address("127.0.0.1:42217".parse().expect("an address")),
                ]),
                group: Some("staff".into()),
                collectd: Some(vec!["10.0.0.1:25826".parse().expect("an address")]),
                unixsock: Some("/run/kymo/unixsock".into()),
                traps: Some(vec!["0.0.0.0:162".parse().expect("an address")]),
                lines: vec![
                    Some(vec!["[::1]:2003".parse().expect("an address")]),
                    Some(vec!["127.0.0.2:8125".parse().expect("an address")]),
                ],
            },
            collectd: Collectd {
                security: Security::Sign,
                auth_file: Some("/c".into()),
                interface: Some("eth1".into()),
                allow: vec!["10.0.0.0/8".into()],
                trusted: vec!["10.1.0.0/16".into(), "192.0.2.7".into()],
                types_db: Some(vec!["/d".into(), "/e".into()]),
                step: 10,
                heartbeat: 25,
                rows: 100,
                timespans: vec![3600],
                xff: 0.5,
                single: true,
            },
            rrdcached: Rrdcached { one_writer: true },
            traps: TrapKeys {
                auth_file: Some("/t".into()),
                allow: vec!["10.0.0.0/8".into()],
                hosts: [("192.0.2.7".into(), "core\"1".into())].into(),
            },
            lines: line_listeners::ALL
                .iter()
                .map(|listener| {
                    let values = listener.settings.iter().map(|setting| setting.range.1);
                    LineSettings::of(listener, values.collect()).expect("settings")
                })
                .collect(),
            users: BTreeMap::from([(
                "we b".into(),
                User {
                    hosts: vec!["web-*".into(), "db?".into()],
                },
            )]),
            poll: Poll {
                mrtg: vec!["/etc/mrtg/*.cfg".into(), "/m.cfg".into()],
                user: "mrtg".into(),
                files: poll::FilesWritten::Ask,
                burst: true,
                integer_stamps: true,
                log_dir: Some("/l".into()),
                profiles: Some("/p".into()),
            },
            postgres: Postgres {
                user: "pg".into(),
                servers: BTreeMap::from([(
                    "ma in".into(),
                    postgres::PostgresServer {
                        socket: "/s".into(),
                        port: 5433,
                        role: "r".into(),
                        database: "d".into(),
                        databases: vec!["a*".into(), "b".into()],
                    },
                )]),
            },
            scrape: vec![
                Scrape {
                    job: "a \"b\"".into(),
                    urls: vec!["http://a:1/b?c=d".into(), "https://[::1]".into()],
                    interval: "30s".into(),
                    timeout: "5s".into(),
                    labels: [("env".into(), "\\ \"".into()), ("x".into(), String::new())].into(),
                    honor_labels: true,
                    honor_timestamps: false,
                    samples: 5,
                    user: Some("u".into()),
                    password_file: Some("/p".into()),
                    token_file: None,
                    tls_ca: Some("/ca".into()),
                    tls_cert: Some("/c".into()),
                    tls_key: Some("/k".into()),
                    tls_server_name: Some("n".into()),
                    relabel: vec![kymo_scrape::RelabelRule {
                        source_labels: vec!["a".into(), "b".into()],
                        separator: "\\".into(),
                        regex: "(.*)\\.x".into(),
                        target_label: "c".into(),
                        replacement: "${1}".into(),
                        action: kymo_scrape::RelabelAction::Replace,
                    }],
                },
                Scrape {
                    job: "c".into(),
                    urls: vec!["http://c".into()],
                    token_file: Some("/t".into()),
                    ..Scrape::default()
                },
            ],
            device: vec![
                DeviceTable {
                    address: "[::1]:7".into(),
                    name: "a \"b\"".into(),
                    version: SnmpVersion::V3,
                    user: "u".into(),
                    auth: "sha".into(),
                    auth_file: Some("/a".into()),
                    privacy: "des".into(),
                    privacy_file: Some("/p".into()),
                    context: "c".into(),
                    interval: "5m".into(),
                    timeout: "1m".into(),
                    profiles: vec!["ups".into()],
                    interfaces: kymo_poll::devices::InterfaceState::All,
                    names: vec!["Gi\\d".into()],
                    not_types: Vec::new(),
                    labels: [("site".into(), "\"".into())].into(),
                    relabel: vec![kymo_scrape::RelabelRule {
                        regex: "ifIndex".into(),
                        action: kymo_scrape::RelabelAction::LabelDrop,
                        ..kymo_scrape::RelabelRule::default()
                    }],
                    ..DeviceTable::default()
                },
                DeviceTable {
                    address: "b".into(),
                    version: SnmpVersion::V1,
                    community_file: Some("/c".into()),
                    aliases: vec!["x".into()],
                    not_aliases: vec!["y".into()],
                    not_names: vec!["z".into()],
                    types: vec!["ethernet.*".into()],
                    interface: vec![ListedInterface {
                        name: "eth0".into(),
                        alias: "\"".into(),
                        mbit: 10,
                    }],
                    ..DeviceTable::default()
                },
            ],
            forward: vec![
                Forward {
                    name: "hub".into(),
                    collectd: Some("[::1]:7".into()),
                    security: Security::Encrypt,
                    packets_per_second: 7,
                    user: Some("u".into()),
                    password_file: Some("/p".into()),
                    ..Forward::default()
                },
                Forward {
                    name: "a.b-c_1".into(),
                    url: Some("https://a/b".into()),
                    selectors: vec!["{a=~\"\\\\d\"}".into(), "up".into()],
                    labels: [("site".into(), "\"".into())].into(),
                    drop_labels: vec!["x".into()],
                    timeout: "5s".into(),
                    token_file: Some("/t".into()),
                    tls_server_name: Some("n".into()),
                    ..Forward::default()
                },
            ],
            query: Query {
                upstream: "https://a/b".into(),
                timeout: "5s".into(),
                drop_labels: vec!["x".into()],
                external_labels: BTreeMap::new(),
                user: Some("u".into()),
                password_file: Some("/p".into()),
                token_file: Some("/t".into()),
                tls_ca: Some("/ca".into()),
                tls_cert: Some("/c".into()),
                tls_key: Some("/k".into()),
                tls_server_name: Some("n".into()),
            },
            backup: BackupKeys {
                to: Some("s3://b/\"c".into()),
                every: "1h".into(),
                keep: Some("1h,2d".into()),
                endpoint: Some("http://a:1".into()),
                region: "eu".into(),
                credentials: Some("/k".into()),
                tls_ca: Some("/c".into()),
            },
            store: Store {
                base: Some("/a".into()),
                folder: Some("/b".into()),
                keep: KeptValues::None,
                files: "never".into(),
                bytes: "1G".into(),
                points: "2d".into(),
                rows_5m: "30d".into(),
                rows_1h: "365d".into(),
                labels: 256,
                label_bytes: 16_384,
                tail_bytes: "2G".into(),
                tail_age: "1d".into(),
                silence: "5m".into(),
            },
            record: Record {
                root: "/host".into(),
                subsystems: "cd".into(),
                interval: 0.5,
                process_interval: 2.5,
                group_interval: 7.5,
                groups: 9,
                filesystem_interval: 0.0,
                cap: Some("100M".into()),
                keep: Some("7d".into()),
                sync: "0".into(),
                processes: Some("Cpostgres,p1".into()),
                threads: true,
                redact_args: true,
            },
        };
        assert_eq!(parse(&text(&config), "x"), Ok(config));
    }

    /// Wrong files, each with the line of its error and the begin of the message.
    const WRONG: &[(&str, &str)] = &[
        ("\n\nlistn = 1\n", "line 3: unknown key `listn`; there is"),
        ("[record]\nintervall = 1", "line 2: unknown key `intervall`"),
        ("[recrod]\ninterval = 1", "line 1: unknown key `recrod`"),
        ("listen = \"here\"", "line 1: not an address and a port"),
        (
            "[store]\npoints = \"59m\"",
            "line 2: not a time from 1h to 3640d",
        ),
        (
            "[store]\nrows_5m = \"3641d\"",
            "line 2: not a time from 1h to",
        ),
        (
            "[store]\nrows_1h = \"2y\"",
            "line 2: not a duration such as",
        ),
        (
            "[store]\nlabels = 257",
            "line 2: not a number from 1 to 256",
        ),
        ("[store]\nlabels = -1", "line 2: not a number from 1 to 256"),
        (
            "[store]\nlabel_bytes = 63",
            "line 2: not a number from 64 to",
        ),
        ("listen = 4280", "line 1: invalid type"),
        ("\nprefix = \"kymo\"", "line 2: not a path such as /kymo"),
        ("prefix = \"/a b\"", "line 1: not a path such as /kymo"),
        (
            "[record]\n\ncap = \"10X\"",
            "line 3: not a size such as 100M or 1G",
        ),
        (
            "[record]\nkeep = \"soon\"",
            "line 2: not a duration such as",
        ),
        ("[record]\nsubsystems = \"cq\"", "line 2: no such subsystem"),
        ("[record]\ninterval = \"1\"", "line 2: invalid type"),
        (
            "[record]\nprocesses = \"x1\"",
            "line 2: it begins with one of",
        ),
        (
            "[listen]\npage = \"here\"",
            "line 2: not an address and a port",
        ),
        ("[listen]\nrrdcached = [\"here\"]", "line 2: not an address"),
        ("[listen]\ncollectl = []", "line 2: unknown key `collectl`"),
        (
            "[store]\nfiles = \"soon\"",
            "line 2: not a duration such as",
        ),
        ("[listen]\ncollectd = [\"/x\"]", "line 2: not an address"),
        ("[listen]\ngraphite = [\"/x\"]", "line 2: not an address"),
        ("[listen]\nstatsd = [\"/x\"]", "line 2: not an address"),
        (
            "[statsd]\ninterval = 0",
            "line 2: not a number of seconds from 1 to 3600",
        ),
        ("[collectd]\nsecurity = \"some\"", "line 2: unknown variant"),
        (
            "[collectd]\nallow = [\"10/8\"]",
            "line 2: \"10/8\" is not a network",
        ),
        (
            "[traps]\nallow = [\"10/8\"]",
            "line 2: \"10/8\" is not a network",
        ),
        (
            "[traps]\nhosts = { core1 = \"core1\" }",
            "line 2: \"core1\" is not an address",
        ),
        (
            "[traps]\nhosts = { \"::1\" = \"\" }",
            "line 2: \"\" is not a name",
        ),
        (
            "[traps]\ncommunity = \"public\"",
            "line 2: unknown key `community`",
        ),
        ("[collectd]\nxff = 1.0", "line 2: not a number from 0"),
        (
            "[poll]\nmrtg = [\"m.cfg\"]",
            "line 2: \"m.cfg\" is not a file's absolute path",
        ),
        ("[poll]\nfiles = \"5m\"", "line 2: unknown variant"),
        (
            "[postgres.servers.a]\nsocket = \"here\"",
            "line 2: \"here\" is not the absolute path of a folder",
        ),
        (
            "[postgres.servers.a]\nprot = 1",
            "line 2: unknown key `prot`",
        ),
        ("[postgres.a]\nport = 1", "line 1: unknown key `a`"),
        ("[[scrape]]\nurl = []", "line 2: unknown key `url`"),
        (
            "[[scrape]]\njob = \"a\"\nurls = [\"a:1\"]",
            "line 3: \"a:1\" is not a URL: it does not begin with",
        ),
        (
            "[[scrape]]\ninterval = \"0s\"",
            "line 2: not a time from 1s to 1h",
        ),
        (
            "[[scrape]]\ntimeout = \"soon\"",
            "line 2: not a duration such as",
        ),
        (
            "[[scrape]]\nsamples = 0",
            "line 2: not a number from 1 to 1000000",
        ),
        (
            "[[scrape]]\nlabels = { __a = \"b\" }",
            "line 2: \"__a\" is not a label's name",
        ),
        (
            "[[scrape]]\n[[scrape.relabel]]\naction = \"hashmod\"",
            "line 3: unknown variant",
        ),
        (
            "[[scrape]]\nrelabel = [{ action = \"drop\", regex = \"(\" }]",
            "line 2: regex \"(\" cannot be used",
        ),
        ("[[device]]\nhost = \"a\"", "line 2: unknown key `host`"),
        (
            "[[device]]\naddress = \"public@a\"",
            "line 2: \"public@a\" is neither HOST nor HOST:PORT",
        ),
        ("[[device]]\nversion = \"2\"", "line 2: unknown variant `2`"),
        (
            "[[device]]\ninterfaces = \"down\"",
            "line 2: unknown variant",
        ),
        (
            "[poll]\nprofiles = \"a\"",
            "line 2: \"a\" is no folder's absolute path",
        ),
        ("[[forward]]\nurls = []", "line 2: unknown key `urls`"),
        (
            "[[forward]]\nname = \"a b\"",
            "line 2: \"a b\" is not a name: 1 to 56 letters",
        ),
        (
            "[[forward]]\nurl = \"a:1\"",
            "line 2: \"a:1\" is not a URL: it does not begin with",
        ),
        (
            "[[forward]]\ncollectd = \"a:b\"",
            "line 2: \"a:b\" is not HOST:PORT",
        ),
        (
            "[[forward]]\nrrdcached = \"a/b\"",
            "line 2: \"a/b\" is neither /PATH nor HOST:PORT",
        ),
        (
            "[[forward]]\nsecurity = \"Sign\"",
            "line 2: unknown variant",
        ),
        (
            "[[forward]]\npackets_per_second = 0",
            "line 2: cannot use 0: not a number from 1 to 1000000",
        ),
        (
            "[[forward]]\nmatch = [\"up\", \"{\"]",
            "line 2: cannot use \"{\" as a selector",
        ),
        (
            "[[forward]]\ndrop_labels = [\"__name__\"]",
            "line 2: __name__ cannot be dropped",
        ),
        ("[[forward]]\nbacklog = \"long\"", "line 2: "),
        (
            "[store]\nkeep = \"some\"",
            "line 2: unknown variant `some`, expected `all` or `none`",
        ),
        (
            "[[forward]]\ntimeout = \"1ms\"",
            "line 2: not a time from 1s to 10m",
        ),
        (
            "[query]\nupstream = \"a:1\"",
            "line 2: \"a:1\" is not a URL: it does not begin with",
        ),
        (
            "[query]\ntimeout = \"1m\"",
            "line 2: not a time from 100ms to 10s",
        ),
        (
            "[query]\ndrop_labels = [\"__name__\"]",
            "line 2: \"__name__\" is not a label that can be dropped",
        ),
        (
            "[backup]\nto = \"backups\"",
            "line 2: \"backups\" is no folder's absolute path",
        ),
        (
            "[backup]\nevery = \"1s\"",
            "line 2: not a time from 1m to 7d",
        ),
        (
            "[backup]\nkeep = \"7y\"",
            "line 2: \"7y\" is no number of hours",
        ),
        ("[users.web]\nhost = []", "line 2: unknown key `host`"),
        ("[store]\nbytes = \"1X\"", "line 2: not a size such as"),
        ("[store]\ntail_age = \"long\"", "line 2: "),
        ("insecure = maybe", "line 1: "),
        (
            "listen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"",
            "line 2: duplicate key",
        ),
        ("listen = ", "line 1: "),
    ];

    #[test]
    fn wrong_files_are_one_line_with_its_number() {
        for (text, line) in WRONG {
            let error = parse(text, "kymo.toml").expect_err(text);
            let start = format!("cannot use kymo.toml {line}");
            assert!(error.starts_with(&start), "{error}, not {start}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn keys_that_do_not_fit_each_other_are_named() {
        for (text, line) in [
            (
                "[record]\ninterval = 1\nprocess_interval = 2.5",
                "interval, process_interval: ",
            ),
            (
                "[record]\ngroup_interval = -1",
                "group_interval: it takes 0 to",
            ),
            (
                "[record]\nfilesystem_interval = nan",
                "filesystem_interval: it takes 0 to",
            ),
            ("[record]\ninterval = -1", "interval, process_interval: "),
            ("[record]\ninterval = 0", "interval, process_interval: "),
            ("[record]\ninterval = nan", "interval, process_interval: "),
            ("tls_cert = \"c\"", "tls_cert and tls_key go together"),
            ("[[scrape]]", "a table [[scrape]] has no job"),
            (
                "[[scrape]]\njob = \"a\"",
                "the job \"a\" of [[scrape]] has no urls",
            ),
            (
                "[[scrape]]\njob = \"a\"\nurls = [\"http://a\", \"http://a\"]",
                "the job \"a\" of [[scrape]] has a URL twice",
            ),
            (
                "[[scrape]]\njob = \"a\"\nurls = [\"http://a\"]\nuser = \"u\"",
                "the job \"a\" of [[scrape]]: user and password_file go together",
            ),
            (
                "[[scrape]]\njob = \"a\"\nurls = [\"http://a\"]\ntls_key = \"k\"",
                "the job \"a\" of [[scrape]]: tls_cert and tls_key go together",
            ),
            (
                "[[scrape]]\njob = \"a\"\nurls = [\"http://a\"]\n[[scrape]]\njob = \"a\"",
                "two tables [[scrape]] have the job \"a\"",
            ),
            ("[[device]]", "a table [[device]] has no address"),
            (
                "[[device]]\naddress = \"a\"\n[[device]]\naddress = \"a\"",
                "two tables [[device]] are \"a\"; give each a name",
            ),
            (
                "[[device]]\naddress = \"a\"\nversion = \"3\"",
                "the device \"a\" of [[device]]: user and version = \"3\" go together",
            ),
            (
                "[[device]]\naddress = \"a\"\nnames = [\"(\"]",
                "the device \"a\" of [[device]]: \"(\" is not a regular expression",
            ),
            (
                "[[forward]]",
                "a table [[forward]] has neither url nor collectd nor rrdcached",
            ),
            (
                "[[forward]]\nurl = \"http://a\"\ncollectd = \"a\"",
                "a table [[forward]] has two of url, collectd and rrdcached: each receiver has a table",
            ),
            (
                "[[forward]]\ncollectd = \"a\"\nlabels = { site = \"b\" }",
                "the receiver \"a_25826\" of [[forward]]: labels is no key of a receiver of collectd",
            ),
            (
                "[[forward]]\nrrdcached = \"/a\"\nuser = \"u\"\npassword_file = \"/p\"",
                "the receiver \"_a\" of [[forward]]: user is no key of a receiver of rrdcached",
            ),
            (
                "[[forward]]\nurl = \"http://a\"\nsecurity = \"sign\"",
                "the receiver \"a_80\" of [[forward]]: security is no key of a receiver of remote write",
            ),
            (
                "[[forward]]\ncollectd = \"a\"\nsecurity = \"sign\"",
                "the receiver \"a_25826\" of [[forward]]: security = \"sign\" needs a user of 1 to 64 bytes",
            ),
            (
                "[[forward]]\ncollectd = \"a\"\nuser = \"u\"\npassword_file = \"/p\"",
                "the receiver \"a_25826\" of [[forward]]: a user goes with security = \"sign\" or \"encrypt\"",
            ),
            (
                "[store]\nkeep = \"none\"",
                "[store] keep = \"none\" needs a receiver, [[forward]], which keeps the values",
            ),
            (
                "[query]\nuser = \"u\"",
                "[query]: user and password_file go together",
            ),
            (
                "[query]\nupstream = \"http://a\"\nexternal_labels = { a = \"b\" }",
                "[query]: upstream and external_labels exclude each other",
            ),
            (
                "[[forward]]\nurl = \"http://a\"\nuser = \"u\"",
                "the receiver \"a_80\" of [[forward]]: user and password_file go together",
            ),
            (
                "[[forward]]\nurl = \"http://a/x\"\n[[forward]]\nurl = \"http://a/y\"",
                "two tables [[forward]] have the name \"a_80\"; give each a name",
            ),
        ] {
            let error = parse(text, "kymo.toml").expect_err(text);
            assert!(
                error.starts_with(&format!("cannot use kymo.toml: {line}")),
                "{error}"
            );
        }
    }

    #[test]
    fn values_are_made_uniform() {
        let config = parse(
            "prefix = \"/kymo/\"\nlisten = \"localhost:80\"\n[record]\nsubsystems = \"-Z\"",
            "x",
        );
        let config = config.expect("a file");
        assert_eq!(config.prefix, "/kymo");
        assert_eq!(config.listen.page.to_string(), "127.0.0.1:80");
        let usual = kymo_kernel::subsystem::service_letters();
        assert_eq!(config.record.subsystems, usual.replace('Z', ""));
        assert_eq!(config.record.intervals(), "1:5");
    }
}
