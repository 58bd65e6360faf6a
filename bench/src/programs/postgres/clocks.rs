//! Number of clock reads for a command.

use super::{client, loaded};
use crate::bench::Bench;
use crate::child::output_of;
use crate::fault::{Cannot, Fault, Result};
use crate::report::Outcome;
use crate::row::Row;
use kymo_tests::postgres::{Cluster, Place};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

pub(in crate::programs) const ROW: Row = Row {
    name: "programs-postgres-clocks",
    work: "calls of clocks that the library adds to a `SELECT 1`, of 10,000 by psql: counted by `bench/programs/clock.c`",
    bar: "≤ 1/48",
    aim: "1/64",
    run,
};

const COMMANDS: usize = 10_000;

/// Clock calls of the backend
/// that executes the commands.
fn calls(shim: &Path, settings: &str) -> Result<f64> {
    let place = Place::new();
    let counts = format!("{}/clocks", place.folder());
    std::fs::write(&counts, "").cannot("make a file")?;
    std::fs::set_permissions(&counts, std::fs::Permissions::from_mode(0o666)).cannot("open it")?;
    let script = format!("{}/clocks.sql", place.folder());
    std::fs::write(&script, "SELECT 1;\n".repeat(COMMANDS)).cannot("write a script")?;
    let environment = [
        ("LD_PRELOAD", &*shim.to_string_lossy()),
        ("KYMO_BENCH_CLOCKS", &counts),
    ];
    let cluster = Cluster::serve(place, settings, &environment);
    let mut psql = client("psql", &cluster);
    output_of(psql.args([
        "-X",
        "-q",
        "-o",
        "/dev/null",
        "-d",
        "postgres",
        "-f",
        &script,
    ]))?;
    // The backend may end after its client.
    for _ in 0..100 {
        let text = std::fs::read_to_string(&counts).cannot("read the counts")?;
        let most = text
            .lines()
            .filter_map(|line| line.parse::<u32>().ok())
            .max();
        match most {
            Some(most) if f64::from(most) > COMMANDS as f64 => return Ok(f64::from(most)),
            _ => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    }
    Err(Fault::new("no backend counted its calls"))
}

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    // A folder that the server's user may enter.
    let folder = Place::new();
    let shim = Path::new(&folder.folder()).join("clock.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/clock.c");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-o"]);
    output_of(compiler.arg(&shim).arg(source))?;
    let kymo = loaded();
    let (mut bare, mut with) = (0.0, 0.0);
    for _ in 0..bench.pick(3, 1) {
        bare += calls(&shim, "")?;
        with += calls(&shim, &kymo)?;
    }
    let all = (COMMANDS * bench.pick(3, 1)) as f64;
    let added = (with - bare) / all;
    outcome.figure(format!(
        "1/{:.1} a command; without the library a command asks {:.2} times",
        1.0 / added,
        bare / all
    ));
    outcome.check(Some(added), 1.0 / 48.0, 1.0 / 63.0);
    Ok(outcome)
}
