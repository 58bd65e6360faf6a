//! Instructions of a command, by callgrind: the
//! difference between two lengths of a script.

use super::loaded;
use crate::bench::Bench;
use crate::callgrind;
use crate::child::output_of;
use crate::fault::{Cannot, Result};
use crate::report::Outcome;
use crate::row::Row;
use kymo_tests::postgres::{Place, programs};
use std::fs::File;

pub(in crate::programs) const ROW: Row = Row {
    name: "programs-postgres-instructions",
    work: "PostgreSQL's instructions for a command by `--single` under callgrind, 600 less 100 of them: `SELECT 1`, a text of 1,000 bytes, EXECUTE of a prepared `SELECT 1`. Beside it pg_stat_statements, and track_activities",
    bar: "≤ +370, ≤ +500, ≤ +370",
    aim: "+150",
    run,
};

/// Instructions of the whole process, for a prelude and `count` times the statement.
fn collected(place: &Place, prelude: &str, statement: &str, count: usize) -> Result<f64> {
    let script = format!("{prelude}{}", format!("{statement}\n").repeat(count));
    let path = std::path::PathBuf::from(format!("{}/single.sql", place.folder()));
    std::fs::write(&path, script).cannot("write a script")?;
    let [valgrind, switches @ ..] = callgrind::COMMAND;
    let mut command = place.command(std::path::Path::new(valgrind));
    command
        .args(switches)
        .arg(programs().join("postgres"))
        .args(["--single", "-D"])
        .arg(place.data())
        .arg("postgres")
        .stdin(File::open(&path).cannot("open a script")?);
    callgrind::collected(&output_of(&mut command)?)
}

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let place = Place::new();
    let long = format!("SELECT 1 /* {} */;", "x".repeat(1000 - 15));
    let works = [
        ("SELECT 1", "", "SELECT 1;", 370.0, 150.0),
        ("1,000 bytes", "", long.as_str(), 500.0, 500.0),
        (
            "EXECUTE",
            "PREPARE p AS SELECT 1;\n",
            "EXECUTE p;",
            370.0,
            150.0,
        ),
    ];
    let kymo = loaded();
    let statements = "shared_preload_libraries = 'pg_stat_statements'";
    for (name, prelude, statement, bar, aim) in works {
        let each = |settings: &str| -> Result<f64> {
            place.configure(settings);
            let long = collected(&place, prelude, statement, 600)?;
            Ok((long - collected(&place, prelude, statement, 100)?) / 500.0)
        };
        let bare = each("")?;
        let with = each(&kymo)? - bare;
        outcome.figure(format!("{name}: {bare:.0}, with the library {with:+.0}"));
        outcome.check(Some(with), bar, aim);
        if bench.pick(true, false) && prelude.is_empty() {
            let statements = each(statements)? - bare;
            let without = bare - each("track_activities = off")?;
            outcome.figure(format!(
                "pg_stat_statements {statements:+.0}, track_activities {without:+.0}"
            ));
        }
    }
    Ok(outcome)
}
