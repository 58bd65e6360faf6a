//! Side-by-side cost runs: kymo, its peers (collectl, sysstat's sadc) and the
//! physical floor (a loop of `pread`s over the same files).
//!
//! `kymo-bench record` runs the rows of the recorder's cost table, `kymo-bench serve`
//! those of the server's, `kymo-bench rrdcached` those of the round-robin archives,
//! `kymo-bench drum` those of their store, `kymo-bench hub` those of the listener
//! for collectd, `kymo-bench poll` those of the poller, `kymo-bench programs` those
//! of programs that publish, `kymo-bench query` those of samples that are pushed and of PromQL, `kymo-bench top` those of
//! `kymo top` and `kymo why`, `kymo-bench together` the row of everything at once. The
//! other words (`floor`, `tick`, `load`, `crowd`, `stir`, `ring`, `world`, `guard`,
//! `publish`, `ask`, `touch`) are child processes of these rows: contenders, loads
//! and helpers. Nothing here asserts a time: a row is measured, compared and reported.

#![cfg_attr(test, allow(clippy::unwrap_used))]
// A bench may end when its terminal cannot be written to.
#![allow(clippy::print_stderr, clippy::disallowed_methods)]

mod args;
mod bench;
mod callgrind;
mod child;
mod collectl_raw;
mod crowd;
mod daemon;
mod disk;
mod drum;
mod family;
mod fault;
mod figures;
mod floor;
mod guard;
mod hub;
mod load;
mod machine;
mod peer;
mod poll;
mod procfs;
mod programs;
mod progress;
mod query;
mod report;
mod ring;
mod row;
mod rrdcached;
mod serve;
mod sides;
mod ticks;
mod together;
mod top;
mod world;

use args::Args;
use fault::{Fault, Result};
use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "\
usage: kymo-bench record [--quick] [--only ROW,...] [--kymo PATH] [--kymo-small PATH]
                         [--rounds N] [--minutes N] [--ring1 DIR] [--ring30 DIR]
                         [--dir DIR] [--results FILE]
       kymo-bench serve  [--quick] [--only ROW,...] [--kymo PATH] [--minutes N]
                         [--ring DIR] [--web DIR] [--dir DIR] [--results FILE]
       kymo-bench rrdcached [--quick] [--only ROW,...] [--kymo PATH] [--before PATH] [--rounds N]
                         [--dir DIR] [--results FILE]
       kymo-bench drum   [--quick] [--only ROW,...] [--kymo PATH] [--before PATH] [--rounds N] [--minutes N]
                         [--series N] [--steps N] [--records N] [--dir DIR] [--results FILE]
       kymo-bench hub    [--quick] [--only ROW,...] [--kymo PATH] [--minutes N] [--series N] [--steps N]
                         [--dir DIR] [--results FILE]
       kymo-bench poll   [--quick] [--only ROW,...] [--kymo PATH] [--rounds N] [--steps N] [--dir DIR] [--results FILE]
       kymo-bench programs [--quick] [--only ROW,...] [--rounds N] [--dir DIR] [--results FILE]
       kymo-bench query  [--quick] [--only ROW,...] [--kymo PATH] [--rounds N] [--series N] [--steps N]
                         [--dir DIR] [--results FILE]
       kymo-bench top    [--quick] [--only ROW,...] [--kymo PATH] [--rounds N] [--dir DIR] [--results FILE]
       kymo-bench together [--quick] [--kymo PATH] [--minutes N] [--dir DIR] [--results FILE]
       kymo-bench floor  [-s LETTERS] [-i SECONDS] [-c COUNT] [--phase SECONDS] [--ack]
       kymo-bench tick   [-i SECONDS] [-c COUNT] [--phase SECONDS]
       kymo-bench load   --dir DIR [--seconds N] [--fsync]
       kymo-bench crowd  [--count N] [--seconds N]
       kymo-bench ring   --dir DIR [--days N] [--cold]
       kymo-bench world  --dir DIR [--days N] [--mib N] [--processes N] [--scan N]
       kymo-bench ask    --first ADDRESS --port PORT --devices N --interfaces N [--rounds N] [--varbinds N]
       kymo-bench touch  --dir DIR [--rounds N]
       kymo-bench publish --work command|counter|nothing [--count N] [--bytes N]
       kymo-bench rows
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let verb = words.next().unwrap_or_default();
    match run(&verb, Args::new(words.collect())) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("kymo-bench {verb}: {fault}");
            ExitCode::from(2)
        }
    }
}

fn run(verb: &str, args: Args) -> Result<ExitCode> {
    match verb {
        "record" => return row::RECORDING.run(args),
        "serve" => return serve::SERVING.run(args),
        "rrdcached" => return rrdcached::CACHING.run(args),
        "drum" => return drum::DRUM.run(args),
        "hub" => return hub::HUB.run(args),
        "poll" => return poll::POLLING.run(args),
        "programs" => return programs::PROGRAMS.run(args),
        "query" => return query::QUERY.run(args),
        "together" => return together::TOGETHER.run(args),
        "top" => return top::TOP.run(args),
        "publish" => programs::writer::run(args)?,
        "ask" => poll::ask::run(args)?,
        "touch" => poll::touch::run(args)?,
        "floor" => floor::run(args)?,
        "tick" => ticks::run(args)?,
        "ring" => ring::run(args)?,
        "world" => world::run(args)?,
        "load" => load::run(args)?,
        "crowd" => crowd::run(args)?,
        "stir" => crowd::stir(args)?,
        "guard" => guard::run()?,
        "rows" => say(&format!(
            "{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}",
            row::RECORDING.list(),
            serve::SERVING.list(),
            rrdcached::CACHING.list(),
            drum::DRUM.list(),
            hub::HUB.list(),
            poll::POLLING.list(),
            programs::PROGRAMS.list(),
            query::QUERY.list(),
            together::TOGETHER.list(),
            top::TOP.list()
        ))?,
        "help" | "--help" | "-h" => say(USAGE)?,
        _ => {
            eprint!("{USAGE}");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes to standard output; a closed pipe ends quietly.
fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(cause) if cause.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Fault::because("write to stdout", cause))
        }
        _ => Ok(()),
    }
}
