//! kymo beside netdata and beside node_exporter with Prometheus, all at the same time, each second, each
//! with its page open if it has one.
//!
//! netdata has Debian's configuration, but its own folder, and
//! no calls home; Prometheus scrapes only that node_exporter.

use super::browser::Browser;
use super::idle::{fill_up, length};
use super::request::{Form, free_port, get};
use super::served::Served;
use super::watch::{Found, Side, WatchedFolder, watch};
use crate::bench::{Bench, on_path};
use crate::family::Family;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{bytes, ratio};
use crate::report::Outcome;
use crate::row::Row;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "peers",
    work: "beside netdata and node_exporter + Prometheus at 1 s, pages open: CPU, memory, disk bytes a day",
    bar: "≤ 1/2 of each",
    aim: "1/5",
    run,
};

const BAR: f64 = 0.5;
const AIM: f64 = 0.2;
const PATIENCE: Duration = Duration::from_secs(60);

/// A running peer: its processes, its page, and the folder of its history.
struct Peer {
    name: &'static str,
    families: Vec<Family>,
    place: Rc<WatchedFolder>,
    page: Option<String>,
}

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let length = length(bench);
    let _crowd = fill_up(bench, length)?;
    let (peers, absent) = present(bench)?;
    let place = WatchedFolder::new(bench, "kymo")?;
    let served = match &bench.kymo {
        Some(kymo) => Some(Served::start(bench, kymo, &place.folder)?),
        None => None,
    };
    let mut pages: Vec<String> = peers.iter().filter_map(|peer| peer.page.clone()).collect();
    pages.extend(served.iter().map(Served::url));
    let mut browser = Browser::start(bench, "stay", &pages)?;
    browser.expect("open")?;
    let mut sides: Vec<Side> = peers.iter().map(Peer::side).collect();
    sides.extend(served.iter().map(|served| Side {
        name: "kymo",
        roots: vec![served.root()],
        place: Some(Rc::clone(&place)),
    }));
    let found = watch(&sides, length)?;
    outcome.figure(format!("of {} s", length.as_secs()));
    for (side, found) in sides.iter().zip(&found) {
        outcome.figure(describe(side.name, found));
    }
    for name in absent {
        outcome.figure(format!("{name} is not here"));
    }
    if let (true, Some((own, others))) = (served.is_some(), found.split_last()) {
        for (side, peer) in sides.iter().zip(others) {
            compare(&mut outcome, side.name, own, peer);
        }
    }
    browser.end()?;
    served.map_or(Ok(()), Served::end)?;
    peers
        .into_iter()
        .flat_map(|peer| peer.families)
        .try_for_each(Family::end)?;
    Ok(outcome)
}

fn describe(name: &str, found: &Found) -> String {
    let (cost, count) = (found.describe(name), found.processes);
    let device = match found.device_a_day {
        Some(device) => format!("{} a day on its device, ", bytes(device)),
        None => String::new(),
    };
    let (written, grown) = (
        bytes(found.written_a_day),
        bytes(found.grown_a_day.max(0.0)),
    );
    format!("{cost} in {count} processes, {device}{written} by /proc/PID/io, {grown} a day kept")
}

fn written(found: &Found) -> f64 {
    found.device_a_day.unwrap_or(found.written_a_day)
}

/// Compares written bytes: bytes on the disk may be removed later, or not be there yet.
fn compare(outcome: &mut Outcome, name: &str, own: &Found, peer: &Found) {
    let mut ratios = Vec::new();
    for (what, own, peer) in [
        ("CPU", own.cpu_percent, peer.cpu_percent),
        ("memory", own.memory_bytes, peer.memory_bytes),
        ("disk", written(own), written(peer)),
    ] {
        ratios.push(format!("{what} {}", ratio(own, peer)));
        outcome.check(Some(own / peer), BAR, AIM);
    }
    outcome.figure(format!("kymo/{name} {}", ratios.join(", ")));
}

impl Peer {
    fn side(&self) -> Side {
        Side {
            name: self.name,
            roots: self.families.iter().map(Family::root).collect(),
            place: Some(Rc::clone(&self.place)),
        }
    }
}

/// The installed peers, started, and the names of the others.
fn present(bench: &Bench) -> Result<(Vec<Peer>, Vec<&'static str>)> {
    let (mut peers, mut absent) = (Vec::new(), Vec::new());
    match on_path("netdata") {
        Some(netdata) => peers.push(start_netdata(bench, &netdata)?),
        None => absent.push("netdata"),
    }
    match (on_path("prometheus-node-exporter"), on_path("prometheus")) {
        (Some(exporter), Some(prometheus)) => {
            peers.push(start_prometheus(bench, &exporter, &prometheus)?);
        }
        _ => absent.push("node_exporter + Prometheus"),
    }
    Ok((peers, absent))
}

fn start_netdata(bench: &Bench, netdata: &Path) -> Result<Peer> {
    let (place, port) = (WatchedFolder::new(bench, "netdata")?, free_port()?);
    let folder = &place.folder;
    for name in ["cache", "lib", "log", "etc"] {
        fs::create_dir(folder.join(name)).cannot("make netdata's folders")?;
    }
    let config = folder.join("etc/netdata.conf");
    fs::write(&config, netdata_config(folder, port)).cannot("write netdata's configuration")?;
    // netdata gives up root, as its service does.
    let own = Command::new("chown")
        .args(["-R", "netdata"])
        .arg(folder)
        .status();
    own.cannot("run chown")?;
    let mut command = Command::new(netdata);
    command
        .arg("-D")
        .arg("-c")
        .arg(&config)
        .stdout(Stdio::null());
    command.env("DO_NOT_TRACK", "1");
    let mut family = Family::start(bench, &mut command)?;
    await_port(&mut family, port, "/api/v1/info")?;
    Ok(Peer {
        name: "netdata",
        families: vec![family],
        place,
        page: Some(format!("http://127.0.0.1:{port}/")),
    })
}

/// Debian's netdata.conf, moved to a folder; the plugins are Debian's.
fn netdata_config(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "[global]\n run as user = netdata\n web files owner = root\n web files group = root\n \
         bind socket to IP = 127.0.0.1\n[directories]\n config = {folder}/etc\n cache = {folder}/cache\n \
         lib = {folder}/lib\n log = {folder}/log\n[web]\n default port = {port}\n bind to = 127.0.0.1\n\
         [cloud]\n enabled = no\n[registry]\n enabled = no\n[statsd]\n enabled = no\n"
    )
}

fn start_prometheus(bench: &Bench, exporter: &Path, prometheus: &Path) -> Result<Peer> {
    let place = WatchedFolder::new(bench, "prometheus")?;
    let folder = &place.folder;
    let (scraped, port) = (free_port()?, free_port()?);
    let mut command = Command::new(exporter);
    command.arg(format!("--web.listen-address=127.0.0.1:{scraped}"));
    let mut exporter = Family::start(bench, command.stdout(Stdio::null()))?;
    await_port(&mut exporter, scraped, "/metrics")?;
    let config = folder.join("prometheus.yml");
    let text = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: node\n    static_configs:\n      \
         - targets: ['127.0.0.1:{scraped}']\n"
    );
    fs::write(&config, text).cannot("write Prometheus' configuration")?;
    let mut command = Command::new(prometheus);
    command
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let mut server = Family::start(bench, command.stdout(Stdio::null()))?;
    await_port(&mut server, port, "/-/ready")?;
    Ok(Peer {
        name: "node_exporter + Prometheus",
        families: vec![exporter, server],
        place,
        page: None,
    })
}

fn await_port(family: &mut Family, port: u16, path: &str) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while !get(port, path, Form::Plain).is_ok_and(|answer| answer.status == 200) {
        if Instant::now() > until || !family.is_running()? {
            return Err(Fault::because(
                format_args!("get {path} of a peer"),
                family.complaint(),
            ));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    family.note_groups()
}
