//! The cost of reading all counters of many programs.

use crate::bench::Bench;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{median, significant, spread};
use crate::report::Outcome;
use crate::row::Row;
use kymo_shm::{Access, Description, Publisher, Reader, Schema, Scratch, Slot};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "programs-read",
    work: "a scan of 1,000 publishers with 100 cells each, by `pread` and by mappings of own files, one behind the other; ms. Beside it each 100 ms, as a collector does while somebody looks, and whether they live",
    bar: "≤ 1 ms, ≤ 0.3 ms",
    aim: "0.6, 0.2",
    run,
};

const CELLS: usize = 100;

/// Publishers of this process, removed with their folder.
struct Many {
    folder: PathBuf,
    slots: Vec<Slot>,
}

impl Drop for Many {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

fn publish(count: usize) -> Result<Many> {
    let folder = PathBuf::from(format!("/dev/shm/kymo-bench-{}", std::process::id()));
    std::fs::create_dir(&folder).cannot("make a folder in memory")?;
    let mut many = Many {
        folder,
        slots: Vec::new(),
    };
    for _ in 0..count {
        let mut schema = Schema::new("bench", 1).folder(&many.folder).text_bytes(64);
        let counters: Vec<_> = (0..CELLS)
            .map(|number| schema.counter(Description::new(&format!("c{number}_total"), "")))
            .collect();
        let publisher =
            Publisher::create(&schema).map_err(|error| Fault::new(error.to_string()))?;
        let mut slot = publisher.take();
        counters.iter().for_each(|counter| slot.add(*counter, 1));
        many.slots.push(slot);
    }
    Ok(many)
}

fn open(folder: &Path, access: Access) -> Result<Vec<Reader>> {
    let opened = File::open(folder).cannot("open the folder")?;
    let mut readers = Vec::new();
    for entry in std::fs::read_dir(folder).cannot("list the folder")? {
        let name = entry.cannot("list the folder")?.file_name();
        let reader =
            Reader::open(&opened, &name, access).map_err(|error| Fault::new(error.to_string()))?;
        readers.push(reader);
    }
    Ok(readers)
}

/// Milliseconds of a scan of all; the scan
/// has to find the sum of all counters.
fn scan(readers: &mut [Reader], scratch: &mut Scratch) -> Result<f64> {
    let started = Instant::now();
    let mut sum = 0;
    for reader in readers.iter_mut() {
        reader
            .scan(scratch)
            .map_err(|error| Fault::new(error.to_string()))?;
        sum += reader.totals().iter().sum::<u64>();
    }
    let elapsed = started.elapsed().as_secs_f64() * 1e3;
    match sum == (readers.len() * CELLS) as u64 {
        true => Ok(elapsed),
        false => Err(Fault::new(format!("a scan found {sum}"))),
    }
}

fn run(bench: &Bench) -> Result<Outcome> {
    let limit = getrlimit(Resource::Nofile).maximum;
    let all = Rlimit {
        current: limit,
        maximum: limit,
    };
    setrlimit(Resource::Nofile, all).cannot("raise the limit of open files")?;
    let mut outcome = Outcome::default();
    let many = publish(bench.pick(1000, 100))?;
    let mut scratch = Scratch::default();
    for (access, name, bar, aim) in [
        (Access::Read, "pread", 1.0, 0.6),
        (Access::MapOwn, "mappings", 0.3, 0.2),
    ] {
        let mut readers = open(&many.folder, access)?;
        scan(&mut readers, &mut scratch)?;
        let (mut in_a_row, mut paced) = (Vec::new(), Vec::new());
        for _ in 0..bench.pick(200, 10) {
            in_a_row.push(scan(&mut readers, &mut scratch)?);
        }
        for _ in 0..bench.pick(30, 3) {
            sleep(Duration::from_millis(100));
            paced.push(scan(&mut readers, &mut scratch)?);
        }
        let started = Instant::now();
        let living = readers.iter().filter(|reader| reader.liveness().is_ok());
        let count = living.count() as f64;
        let living = started.elapsed().as_secs_f64() * 1e9 / count;
        let (least, most) = spread(&in_a_row);
        outcome.figure(format!(
            "{name}: {} ms [{}-{}]; each 100 ms {} ms; whether one lives {} ns",
            significant(median(&in_a_row)),
            significant(least),
            significant(most),
            significant(median(&paced)),
            significant(living)
        ));
        outcome.check(Some(median(&in_a_row)), bar, aim);
    }
    drop(many);
    Ok(outcome)
}
