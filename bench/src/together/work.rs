//! The work of both sides: a farm of agents, values of collectds, updates of rrdcached's clients, PostgreSQL's commands.

use super::Spent;
use crate::bench::Bench;
use crate::child::Running;
use crate::daemon::wire::Wire;
use crate::family;
use crate::fault::{Cannot, Fault, Result};
use crate::hub::fleet::{Fleet, STEP_S};
use crate::hub::pace::Sender;
use crate::poll::site::{Configuration, Globals, Site};
use crate::serve::free_port;
use kymo_tests::postgres::{Cluster, Place, library, programs};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{Scope, ScopedJoinHandle, sleep};
use std::time::{Duration, Instant};

const DEVICES: u32 = 16;
const INTERFACES: u32 = 512;
const POLLED_S: u64 = 60;
/// Series of whole hosts of 70.
const SERIES: usize = 2030;
/// Series that clients of rrdcached update.
const UPDATED: usize = 200;
const TRANSACTIONS_A_SECOND: &str = "500";
/// Values a second, far below the capacity of either side.
const RATE: f64 = 20_000.0;
const BEHIND_MAX: Duration = Duration::from_millis(5);

/// Work for both sides; in each pair kymo's part is first.
pub(super) struct Work {
    pub configurations: [Configuration; 2],
    /// Ports to which collectds send.
    pub ports: [u16; 2],
    /// Sockets of rrdcached's protocol.
    pub sockets: [PathBuf; 2],
    pub servers: Servers,
    _site: Site,
}

impl Work {
    pub(super) fn new(bench: &Bench) -> Result<Work> {
        let site = Site::new(bench, DEVICES, INTERFACES)?;
        let sockets = [bench.new_path("kymo.sock"), bench.new_path("stock.sock")];
        let globals = Globals {
            interval_s: POLLED_S,
            is_daemon: true,
        };
        let cached = format!("RRDCached: unix:{}\n", sockets[1].display());
        Ok(Work {
            configurations: [
                site.configure(bench, globals, "")?,
                site.configure(bench, globals, &cached)?,
            ],
            ports: [free_port()?, free_port()?],
            sockets,
            servers: Servers::start(bench)?,
            _site: site,
        })
    }

    /// Starts all work, for this time.
    pub(super) fn begin<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        bench: &Bench,
        length: Duration,
    ) -> Result<Clients<'scope>> {
        let mut threads = Vec::new();
        for port in self.ports {
            threads.push(scope.spawn(move || send(port, length)));
        }
        for socket in &self.sockets {
            threads.push(scope.spawn(move || update(socket, length)));
        }
        let pgbench = self.servers.all().map(|cluster| {
            let mut command = Command::new(programs().join("pgbench"));
            command.args(["-n", "-c", "4", "-U", "postgres", "-h", &cluster.sockets()]);
            command.args(["-R", TRANSACTIONS_A_SECOND, "-S"]);
            command.args(["-T", &length.as_secs().to_string(), "postgres"]);
            Running::start(bench, command.stdout(Stdio::null()))
        });
        let pgbench = pgbench.into_iter().collect::<Result<_>>()?;
        Ok(Clients { threads, pgbench })
    }
}

/// Clients that send the work.
pub(super) struct Clients<'scope> {
    threads: Vec<ScopedJoinHandle<'scope, Result<()>>>,
    pgbench: Vec<Running>,
}

impl Clients<'_> {
    /// A fault unless all clients did all their work.
    pub(super) fn have_worked(self) -> Result<()> {
        for client in self.pgbench {
            client.finish(Duration::from_secs(60))?;
        }
        for thread in self.threads {
            let ended = thread.join();
            ended.map_err(|_| Fault::new("a client of the bench panicked"))??;
        }
        Ok(())
    }
}

fn send(port: u16, length: Duration) -> Result<()> {
    let mut fleet = Fleet::new(SERIES, 0);
    let mut sender = Sender::new(&fleet, port, RATE, BEHIND_MAX)?;
    sender.in_real_time(&mut fleet, 0, length.as_secs().div_ceil(STEP_S))
}

fn update(socket: &Path, length: Duration) -> Result<()> {
    let mut wire = Wire::connect(socket)?;
    let now = || {
        std::time::UNIX_EPOCH
            .elapsed()
            .map_or(0, |since| since.as_secs())
    };
    let each = |line: &dyn Fn(usize) -> String| (0..UPDATED).map(line).collect::<String>();
    let begun = now() - STEP_S;
    let create = |series| {
        format!(
            "CREATE client-{series}.rrd -s {STEP_S} -b {begun} DS:value:GAUGE:30:U:U RRA:AVERAGE:0.5:1:1000\n"
        )
    };
    wire.one_by_one(each(&create).as_bytes())?;
    let until = Instant::now() + length;
    while Instant::now() < until {
        let stamp = now();
        let update = |series| format!("UPDATE client-{series}.rrd {stamp}:{series}\n");
        wire.batch(each(&update).as_bytes())?;
        sleep(Duration::from_secs(STEP_S));
    }
    Ok(())
}

/// PostgreSQL unchanged, with pg_stat_statements, and with kymo's library.
pub(super) struct Servers {
    bare: Cluster,
    statements: Cluster,
    kymo: Cluster,
    /// The folder in which the last one publishes.
    pub published: PathBuf,
}

impl Servers {
    fn start(bench: &Bench) -> Result<Servers> {
        let name = format!("kymo-bench-{}", std::process::id());
        let published = PathBuf::from("/dev/shm").join(name);
        // With the mode that `kymo serve` sets for all users.
        std::fs::create_dir(&published).cannot("make a folder in memory")?;
        bench.guard.directory(&published)?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o3777);
        std::fs::set_permissions(&published, mode).cannot("open a folder in memory to all")?;
        let load = |library: &str| format!("shared_preload_libraries = '{library}'");
        let kymo = load(&library("postgres", &[]).to_string_lossy());
        let place = published.to_string_lossy().into_owned();
        let servers = Servers {
            bare: Cluster::serve(Place::new(), "", &[]),
            statements: Cluster::serve(Place::new(), &load("pg_stat_statements"), &[]),
            kymo: Cluster::serve(Place::new(), &kymo, &[("KYMO_DIR", &place)]),
            published,
        };
        for cluster in servers.all() {
            let mut fill = Command::new(programs().join("pgbench"));
            fill.args(["-i", "-q", "-U", "postgres", "-h", &cluster.sockets()]);
            Running::start(bench, fill.arg("postgres").stdout(Stdio::null()))?
                .finish(Duration::from_secs(120))?;
        }
        Ok(servers)
    }

    fn all(&self) -> [&Cluster; 3] {
        [&self.bare, &self.statements, &self.kymo]
    }

    /// CPU seconds of all processes of each server, in this order.
    pub(super) fn spent(&self) -> Result<Spent> {
        let names = ["bare", "with pg_stat_statements", "with kymo"];
        let spent = |(name, cluster): (&'static str, &Cluster)| {
            Ok((name, family::cpu_ns(cluster.pid())? as f64 / 1e9))
        };
        names.into_iter().zip(self.all()).map(spent).collect()
    }
}
