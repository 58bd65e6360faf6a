//! Programs that publish as often as they can: `bench/programs/publish.c`, and `kymo-bench publish`, the same in Rust.

use crate::args::Args;
use crate::bench::Bench;
use crate::callgrind;
use crate::child::output_of;
use crate::fault::{Cannot, Fault, Result};
use kymo_shm::{Buckets, Counter, Description, Histogram, Kind, Publisher, Schema, Slot};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// A writer's program, and its language.
#[derive(Clone)]
pub(super) struct Writer {
    pub name: &'static str,
    program: PathBuf,
    language: Language,
}

#[derive(Clone, Copy, PartialEq)]
enum Language {
    C,
    Rust,
}

/// The work that a writer repeats.
#[derive(Clone, Copy)]
pub(super) struct Work {
    pub name: &'static str,
    pub text_bytes: usize,
}

/// Both writers.
pub(super) fn writers(bench: &Bench) -> Result<[Writer; 2]> {
    let program = bench.new_path("publish");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = Command::new("gcc")
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-I"])
        .arg(folder.join("../include"))
        .arg("-o")
        .arg(&program)
        .arg(folder.join("programs/publish.c"))
        .status();
    match status.cannot("start gcc")?.success() {
        true => {}
        false => return Err(Fault::new("cannot compile publish.c")),
    }
    let in_c = Writer {
        name: "C",
        program,
        language: Language::C,
    };
    let in_rust = Writer {
        name: "Rust",
        program: bench.own.clone(),
        language: Language::Rust,
    };
    Ok([in_c, in_rust])
}

impl Writer {
    fn arguments(&self, work: Work, count: u64) -> Vec<String> {
        let (count, bytes) = (count.to_string(), work.text_bytes.to_string());
        let words = match self.language {
            Language::C => vec![work.name, &count, &bytes],
            Language::Rust => vec![
                "publish", "--work", work.name, "--count", &count, "--bytes", &bytes,
            ],
        };
        words.into_iter().map(str::to_string).collect()
    }

    fn run(&self, under: &[&str], work: Work, count: u64) -> Result<Output> {
        let mut command = match under.split_first() {
            None => Command::new(&self.program),
            Some((tool, switches)) => {
                let mut command = Command::new(tool);
                command.args(switches).arg(&self.program);
                command
            }
        };
        command
            .args(self.arguments(work, count))
            .env("KYMO_DIR", "/dev/shm");
        output_of(&mut command)
    }

    /// Nanoseconds of one repetition.
    pub(super) fn nanoseconds(&self, work: Work, count: u64) -> Result<f64> {
        let output = self.run(&[], work, count)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let number = text.trim().parse();
        number.map_err(|_| Fault::new(format!("{}: no number in {text:?}", self.name)))
    }

    /// Instructions of one repetition, by two runs under callgrind.
    pub(super) fn instructions(&self, work: Work) -> Result<f64> {
        let collected =
            |count: u64| callgrind::collected(&self.run(&callgrind::COMMAND, work, count)?);
        Ok((collected(60_000)? - collected(10_000)?) / 50_000.0)
    }

    /// System calls of 50,000 repetitions, by two runs under strace. The calls of a start cancel out.
    pub(super) fn system_calls(&self, work: Work) -> Result<f64> {
        let calls = |count: u64| -> Result<f64> {
            let output = self.run(&["strace", "-f", "-c"], work, count)?;
            let text = String::from_utf8_lossy(&output.stderr);
            let total = text.lines().find(|line| line.ends_with(" total"));
            let number = total.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
            number.ok_or_else(|| Fault::new("strace says nothing of a total"))
        };
        Ok(calls(60_000)? - calls(10_000)?)
    }
}

/// The Rust program's slot and metrics.
struct Published {
    slot: Slot,
    counters: [Counter; 6],
    duration: Histogram,
}

/// `kymo-bench publish --work WORK --count N --bytes N`: the work of `publish.c`.
pub(crate) fn run(mut args: Args) -> Result<()> {
    let work: String = args.value("--work")?.unwrap_or_default();
    let count = args.value::<u64>("--count")?.unwrap_or(1_000_000) / 5;
    let bytes = args.value("--bytes")?.unwrap_or(9);
    args.done()?;
    let text = vec![b'x'; bytes];
    let mut published = open()?;
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let started = Instant::now();
        match work.as_str() {
            "nothing" => (0..count).for_each(|number| {
                black_box(number);
            }),
            "counter" => (0..count).for_each(|_| published.slot.add(published.counters[0], 1)),
            _ => (0..count).for_each(|number| {
                command(
                    &mut published,
                    black_box(&text),
                    1000 + number % 4096 * 1000,
                )
            }),
        }
        least = least.min(started.elapsed().as_nanos() as f64 / count as f64);
    }
    crate::say(&format!("{least:.3}\n"))
}

fn open() -> Result<Published> {
    let mut schema = Schema::new("bench", 1);
    let names = [
        "commands_total",
        "rows_total",
        "hit_total",
        "read_total",
        "written_total",
        "bytes_total",
    ];
    let counters = names.map(|name| schema.counter(Description::new(name, "")));
    let buckets = Buckets::new(2, 10, 36).ok_or_else(|| Fault::new("no buckets"))?;
    let duration = schema.histogram(Description::new("duration", ""), buckets);
    let publisher = Publisher::create(&schema).map_err(|error| Fault::new(error.to_string()))?;
    let path = publisher
        .path()
        .ok_or_else(|| Fault::new("nothing is published"))?;
    std::fs::remove_file(path).cannot("remove the file")?;
    Ok(Published {
        slot: publisher.take(),
        counters,
        duration,
    })
}

#[inline(never)]
fn command(published: &mut Published, text: &[u8], number: u64) {
    let Published {
        slot,
        counters,
        duration,
    } = published;
    slot.begin(Kind::Sql, text, number, 0);
    let mut cells = slot.cells();
    cells.add(counters[0], 1);
    cells.add(counters[1], number);
    cells.add(counters[2], number);
    cells.add(counters[3], 1);
    cells.add(counters[4], 1);
    cells.add(counters[5], text.len() as u64);
    cells.observe(*duration, number, 1);
    slot.end();
}
