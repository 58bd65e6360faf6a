//! Ten clients at once.

use super::{Excess, Servers, client};
use crate::bench::Bench;
use crate::child::output_of;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{median, significant};
use crate::report::Outcome;
use crate::row::Row;
use kymo_tests::postgres::Cluster;
use std::path::Path;
use std::time::{Duration, Instant};

pub(in crate::programs) const ROW: Row = Row {
    name: "programs-postgres-pgbench",
    work: "`pgbench -c 10 -j 2` of `SELECT 1`, simple and prepared: CPU of the server's processes for a transaction, in pairs with a server without the library; beside it as in 2006",
    bar: "upper end ≤ 1.5 %",
    aim: "≤ 1 %",
    run,
};

/// Ticks of user and system time of ended processes: fields 16 and 17 of the server's stat.
fn ticks_of_children(cluster: &Cluster) -> Result<f64> {
    let path = format!("/proc/{}/stat", cluster.pid());
    let text = std::fs::read_to_string(&path).cannot(format_args!("read {path}"))?;
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = fields.split_whitespace().skip(13);
    let mut field = || fields.next()?.parse::<f64>().ok();
    match (field(), field()) {
        (Some(user), Some(system)) => Ok(user + system),
        _ => Err(Fault::new(format!("cannot read {path}: {text:?}"))),
    }
}

/// Ticks for the transactions of ten clients.
fn ticks(cluster: &Cluster, mode: &str, script: &Path, times: usize) -> Result<f64> {
    let before = ticks_of_children(cluster)?;
    let mut pgbench = client("pgbench", cluster);
    pgbench.args([
        "-n",
        "-M",
        mode,
        "-c",
        "10",
        "-j",
        "2",
        "-t",
        &times.to_string(),
        "-f",
    ]);
    output_of(pgbench.arg(script).arg("postgres"))?;
    // Backends may end after their clients.
    std::thread::sleep(Duration::from_millis(100));
    Ok(ticks_of_children(cluster)? - before)
}

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let servers = Servers::start()?;
    let script = bench.new_path("pgbench.sql");
    std::fs::write(&script, "SELECT 1;\n").cannot("write a script")?;
    let times = bench.pick(30_000, 2_000);
    let minutes = bench.pick(bench.minutes.unwrap_or(4), 0);
    for mode in ["simple", "prepared"] {
        let until = Instant::now() + Duration::from_secs(60 * u64::from(minutes));
        let (mut kymo, mut datagrams) = (Vec::new(), Vec::new());
        while kymo.len() < 2 || (Instant::now() < until && !Excess::of(&kymo).is_sharp()) {
            let run = |cluster: &Cluster| ticks(cluster, mode, &script, times);
            let (bare, with) = match kymo.len() % 2 {
                0 => {
                    let bare = run(&servers.bare)?;
                    (bare, run(&servers.kymo)?)
                }
                _ => {
                    let with = run(&servers.kymo)?;
                    (run(&servers.bare)?, with)
                }
            };
            if datagrams.len() < 5 {
                datagrams.push((bare, run(&servers.datagrams)?));
            }
            kymo.push((bare, with));
        }
        let each = |pair: &(f64, f64)| pair.0 * 10_000.0 / (10 * times) as f64;
        let each: Vec<f64> = kymo.iter().map(each).collect();
        let excess = Excess::of(&kymo);
        outcome.figure(format!(
            "{mode}: {} us without the library, with it {excess}; as in 2006 {}",
            significant(median(&each)),
            Excess::of(&datagrams)
        ));
        outcome.check(Some(excess.high), 1.5, 1.0);
    }
    Ok(outcome)
}
