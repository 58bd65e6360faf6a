//! The test by which PostgreSQL's statistics were
//! once found too costly: 10,000 `SELECT 1` by psql.

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
    name: "programs-postgres-psql",
    work: "10,000 `SELECT 1` by psql: CPU of the backend by its schedstat, in pairs with a server without the library; beside it three datagrams a command to a reader that waits, as in 2006",
    bar: "upper end ≤ 1.5 %",
    aim: "≤ 1 %",
    run,
};

/// Nanoseconds of CPU of the backend for the script, from schedstat before and after.
fn backend_ns(cluster: &Cluster, script: &Path) -> Result<f64> {
    let mut psql = client("psql", cluster);
    psql.args(["-X", "-q", "-d", "postgres", "-f"]).arg(script);
    let output = output_of(&mut psql)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let stats = text.lines().filter_map(|line| line.strip_prefix("cpu "));
    let stats = stats.filter_map(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    match stats.collect::<Vec<f64>>()[..] {
        [before, after] => Ok(after - before),
        _ => Err(Fault::new(format!("psql says {text:?}"))),
    }
}

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let servers = Servers::start()?;
    let count = bench.pick(10_000, 1_000);
    let folder = bench.new_dir("psql")?;
    let (script, commands) = (folder.join("script.sql"), folder.join("commands.sql"));
    std::fs::write(&commands, "SELECT 1;\n".repeat(count)).cannot("write a script")?;
    let text = format!(
        "SELECT pg_backend_pid() AS backend \\gset\n\\setenv BACKEND :backend\n\\! echo cpu $(cat /proc/$BACKEND/schedstat)\n\
         \\o /dev/null\n\\i {}\n\\o\n\\! echo cpu $(cat /proc/$BACKEND/schedstat)\n",
        commands.display()
    );
    std::fs::write(&script, text).cannot("write a script")?;
    let minutes = bench.pick(bench.minutes.unwrap_or(6), 0);
    let until = Instant::now() + Duration::from_secs(60 * u64::from(minutes));
    let (mut kymo, mut datagrams) = (Vec::new(), Vec::new());
    while kymo.len() < 4 || (Instant::now() < until && !Excess::of(&kymo).is_sharp()) {
        // Each pair swaps the order.
        let (bare, with) = match kymo.len() % 2 {
            0 => {
                let bare = backend_ns(&servers.bare, &script)?;
                (bare, backend_ns(&servers.kymo, &script)?)
            }
            _ => {
                let with = backend_ns(&servers.kymo, &script)?;
                (backend_ns(&servers.bare, &script)?, with)
            }
        };
        if datagrams.len() < 30 {
            datagrams.push((bare, backend_ns(&servers.datagrams, &script)?));
        }
        kymo.push((bare, with));
    }
    let each: Vec<f64> = kymo
        .iter()
        .map(|pair| pair.0 / count as f64 / 1e3)
        .collect();
    let excess = Excess::of(&kymo);
    outcome.figure(format!(
        "{} us without the library",
        significant(median(&each))
    ));
    outcome.figure(format!("with it {excess}"));
    outcome.figure(format!("as in 2006 {}", Excess::of(&datagrams)));
    outcome.check(Some(excess.high), 1.5, 1.0);
    Ok(outcome)
}
