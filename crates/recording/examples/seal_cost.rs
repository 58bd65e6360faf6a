//! Measures the cost of a day of recording at one sample a second on this machine: CPU time
//! for appending and for sealing, bytes on disk, peak memory.
//! `cargo run --release -p kymo-recording --example seal_cost` writes below the given
//! folder, or the temporary one.

#![allow(clippy::unwrap_used)]

use kymo_base::random::next_random;
use kymo_recording::cursor::Cursor;
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_recording::record::{self, Head};
use kymo_recording::writer::{Destination, Options, Writer};
use kymo_sys::clock::{Clock, Stamp};
use kymo_sys::disk::RealDisk;
use kymo_sys::sim_clock::SimClock;
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
const START_NS: i64 = 1_767_225_600 * SECOND as i64;

fn main() -> std::io::Result<()> {
    let base = std::env::args().nth(1).map(PathBuf::from);
    let base = base.unwrap_or_else(std::env::temp_dir);
    let dir = base.join(format!("kymo-seal-cost-{}", std::process::id()));
    let mut out = std::io::stdout();
    let day = |kinds, bytes, step_s, batch, seal_after_s| Day {
        kinds,
        bytes,
        step_s,
        batch,
        seal_after: Duration::from_secs(seal_after_s),
    };
    for day in [
        day(13, 200, 1, 1, 900),
        day(13, 300, 1, 1, 900),
        day(13, 400, 1, 1, 900),
        day(13, 300, 1, 1, 45),
        // Batches of a recorder without pause: ten minutes at once.
        day(6, 180, 10, 60, 900),
    ] {
        let line = one_day(&dir, &day);
        std::fs::remove_dir_all(&dir)?;
        writeln!(out, "{line}")?;
    }
    Ok(())
}

struct Day {
    kinds: u8,
    /// Length of a record that is no key, in bytes.
    bytes: usize,
    /// Time between samples, in seconds.
    step_s: u64,
    /// Records in each batch.
    batch: u64,
    seal_after: Duration,
}

fn one_day(dir: &std::path::Path, day: &Day) -> String {
    let clock = Arc::new(SimClock::new(Stamp {
        real_ns: START_NS,
        mono_ns: 0,
        boot_ns: 0,
    }));
    let place = Destination {
        dir: dir.into(),
        host: "bench".to_string(),
        boot_id: "00000001".to_string(),
        context: "os=Linux\n".to_string(),
    };
    let options = Options {
        seal_after: day.seal_after,
        ..Options::default()
    };
    let disk = Arc::new(RealDisk);
    let mut writer = Writer::open(disk.clone(), clock.clone(), place, options).unwrap();
    let (mut random, mut batch) = (1, Vec::new());
    let (mut append_ns, mut seal_ns, mut seal_ns_max) = (0, 0, 0);
    let ticks = 86_400 / day.step_s;
    for tick in 0..ticks {
        clock.advance_ns(day.step_s * SECOND);
        let key = tick % 60 == 0 || writer.key_wanted().load(Ordering::Relaxed);
        sample(&mut batch, &*clock, key, day, &mut random);
        if (tick + 1) % day.batch != 0 {
            continue;
        }
        let seals = writer.counters().seals;
        let start = cpu_ns();
        writer.append(&mut batch).unwrap();
        writer.tick(clock.now());
        let cost = cpu_ns() - start;
        if writer.counters().seals > seals {
            seal_ns += cost;
            seal_ns_max = cost.max(seal_ns_max);
        } else {
            append_ns += cost;
        }
        batch.clear();
    }
    let counters = writer.close().unwrap();
    let peak = status("VmHWM:");
    let on_disk = counters.bytes_written - counters.record_bytes;
    let read = minute_bytes(dir, disk);
    format!(
        "{} bytes a record: {} seals {:.3} s CPU, {:.3} ms each, most {:.2} ms; appends {:.2} us each, {:.3} s; \
         {} record bytes, {on_disk} others written; a minute reads {read} bytes; {peak}",
        day.bytes,
        counters.seals,
        seal_ns as f64 / 1e9,
        seal_ns as f64 / 1e6 / counters.seals as f64,
        seal_ns_max as f64 / 1e6,
        append_ns as f64 / (ticks / day.batch - counters.seals) as f64 / 1e3,
        append_ns as f64 / 1e9,
        counters.record_bytes,
    )
}

/// Appends a sample: a key has texts, other samples small numbers with a little noise.
fn sample(batch: &mut Vec<u8>, clock: &dyn Clock, key: bool, day: &Day, random: &mut u64) {
    let mut open = record::begin(batch, &Head::sample(clock.now(), key, 0));
    let each = (day.bytes - record::HEAD_LEN) / usize::from(day.kinds) - record::SECTION_HEAD_LEN;
    for kind in 0..day.kinds {
        open.begin_section(kind);
        if key {
            for row in 0..20 {
                let line = format!("cpu{row} {} 0 {} 17\n", next_random(random) % 1000, row * 3);
                open.out().extend_from_slice(line.as_bytes());
            }
        }
        for _ in 0..each {
            let number = next_random(random);
            let byte = if number.is_multiple_of(3) {
                number >> 8
            } else {
                number >> 60
            };
            open.out().push(byte as u8);
        }
        open.end_section((next_random(random) % 8) as u8 + 40);
    }
    open.end();
}

fn minute_bytes(dir: &std::path::Path, disk: Arc<RealDisk>) -> u64 {
    let recording = Recording::open(disk, dir).unwrap();
    let from_ns = START_NS + 40_000 * SECOND as i64;
    let range = TimeRange {
        from_ns,
        thru_ns: from_ns + 60 * SECOND as i64,
    };
    let mut cursor = Cursor::new(&recording, range, Kinds::ALL);
    while cursor.next().unwrap().is_some() {}
    cursor.bytes_read()
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

fn status(wanted: &str) -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(wanted));
    line.unwrap_or("no memory known").replace('\t', " ")
}
