//! The cost of PostgreSQL's commands with the library of `postgres/`: the rows, one in each file. Servers are those of the tests,
//! run by an unprivileged user where the bench is root.

mod clocks;
mod instructions;
mod pgbench;
mod psql;

pub(super) use clocks::ROW as CLOCKS;
pub(super) use instructions::ROW as INSTRUCTIONS;
pub(super) use pgbench::ROW as PGBENCH;
pub(super) use psql::ROW as PSQL;

use crate::fault::{Cannot, Result};
use kymo_tests::postgres::{Cluster, Place, library, programs};
use std::net::UdpSocket;
use std::process::Command;

/// The line of the configuration that loads the library.
fn loaded() -> String {
    let library = library("postgres", &[]);
    format!("shared_preload_libraries = '{}'", library.display())
}

/// A server for each contender.
struct Servers {
    bare: Cluster,
    kymo: Cluster,
    datagrams: Cluster,
}

impl Servers {
    /// Servers without the library, with it, and with one that sends three
    /// datagrams a command to a thread of this process, which reads them.
    fn start() -> Result<Servers> {
        let socket = UdpSocket::bind("127.0.0.1:0").cannot("open a socket")?;
        let port = socket.local_addr().cannot("find the socket's port")?.port();
        // The thread ends with the bench.
        std::thread::spawn(move || {
            let mut message = [0; 1024];
            while socket.recv(&mut message).is_ok() {}
        });
        let of_2006 = library("postgres-2006", &["KYMO_BENCH_2006=1"]);
        let load_2006 = format!("shared_preload_libraries = '{}'", of_2006.display());
        let port = port.to_string();
        Ok(Servers {
            bare: Cluster::serve(Place::new(), "", &[]),
            kymo: Cluster::serve(Place::new(), &loaded(), &[]),
            datagrams: Cluster::serve(Place::new(), &load_2006, &[("KYMO_BENCH_PORT", &port)]),
        })
    }
}

/// The excess of one side's use over the other's, in percent: the median of pairs, and the bounds of its 95 % interval.
struct Excess {
    percent: f64,
    low: f64,
    high: f64,
    pairs: usize,
}

impl Excess {
    /// The excess of pairs (base, with). Distribution-free: ranks at 0.98 sqrt(n) from the middle.
    fn of(pairs: &[(f64, f64)]) -> Excess {
        let ratio = |&(base, with): &(f64, f64)| (with / base - 1.0) * 100.0;
        let mut ratios: Vec<f64> = pairs.iter().map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let middle = ratios.len() as f64 / 2.0;
        let reach = 0.98 * (ratios.len() as f64).sqrt();
        let at = |rank: f64| {
            let rank = rank.clamp(0.0, ratios.len().saturating_sub(1) as f64);
            ratios.get(rank as usize).copied().unwrap_or(0.0)
        };
        Excess {
            percent: crate::figures::median(&ratios),
            low: at((middle - reach).floor()),
            high: at((middle + reach).ceil()),
            pairs: ratios.len(),
        }
    }

    /// True if the interval is so narrow that further pairs are useless.
    fn is_sharp(&self) -> bool {
        self.pairs >= 30 && (self.high - self.low) / 2.0 <= 0.5
    }
}

impl std::fmt::Display for Excess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Excess {
            percent,
            low,
            high,
            pairs,
        } = self;
        write!(f, "{percent:+.2} % [{low:+.2}, {high:+.2}], {pairs} pairs")
    }
}

/// One of PostgreSQL's programs, as a client of a server.
fn client(name: &str, cluster: &Cluster) -> Command {
    let mut command = Command::new(programs().join(name));
    command.args(["-U", "postgres", "-h", &cluster.sockets()]);
    command
}
