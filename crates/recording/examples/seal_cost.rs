//! What a day of recording at one sample a second costs on this machine: CPU for appending and for
//! sealing, bytes on disk, peak memory. `cargo run --release -p kymo-recording --example seal_cost`
//! writes below the given folder, or the temporary one.

#![allow(clippy::unwrap_used)]

use kymo_recording::cursor::Cursor;
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_recording::record::{self, Head};
use kymo_recording::writer::{Options, Place, Writer};
use kymo_sys::clock::{Clock, Stamp};
use kymo_sys::disk::RealDisk;
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::next_random;
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
const START_NS: i64 = 1_767_225_600 * SECOND as i64;
const KINDS: u8 = 13;

fn main() -> std::io::Result<()> {
    let base = std::env::args().nth(1).map(PathBuf::from);
    let base = base.unwrap_or_else(std::env::temp_dir);
    let dir = base.join(format!("kymo-seal-cost-{}", std::process::id()));
    let mut out = std::io::stdout();
    for (bytes, seal_after_s) in [(200, 900), (300, 900), (400, 900), (300, 45)] {
        let line = one_day(&dir, bytes, Duration::from_secs(seal_after_s));
        std::fs::remove_dir_all(&dir)?;
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn one_day(dir: &std::path::Path, bytes: usize, seal_after: Duration) -> String {
    let clock = Arc::new(SimClock::new(Stamp {
        real_ns: START_NS,
        mono_ns: 0,
        boot_ns: 0,
    }));
    let place = Place {
        dir: dir.into(),
        host: "bench".to_string(),
        boot_id: "00000001".to_string(),
        context: "os=Linux\n".to_string(),
    };
    let options = Options {
        seal_after,
        ..Options::default()
    };
    let disk = Arc::new(RealDisk);
    let mut writer = Writer::open(disk.clone(), clock.clone(), place, options).unwrap();
    let (mut random, mut batch) = (1, Vec::new());
    let (mut append_ns, mut seal_ns, mut seal_ns_max) = (0, 0, 0);
    for tick in 0..86_400_u64 {
        clock.advance_ns(SECOND);
        batch.clear();
        let key = tick % 60 == 0 || writer.key_wanted().load(Ordering::Relaxed);
        sample(&mut batch, &*clock, key, bytes, &mut random);
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
    }
    let counters = writer.close().unwrap();
    let peak = status("VmHWM:");
    let on_disk = counters.bytes_written - counters.record_bytes;
    let read = minute_bytes(dir, disk);
    format!(
        "{bytes} bytes a record: {} seals {:.3} s CPU, {:.3} ms each, most {:.2} ms; appends {:.2} us each; \
         {} record bytes, {on_disk} others written; a minute reads {read} bytes; {peak}",
        counters.seals,
        seal_ns as f64 / 1e9,
        seal_ns as f64 / 1e6 / counters.seals as f64,
        seal_ns_max as f64 / 1e6,
        append_ns as f64 / 86_400.0 / 1e3,
        counters.record_bytes,
    )
}

/// Texts in keys, small numbers and a little noise between them.
fn sample(batch: &mut Vec<u8>, clock: &dyn Clock, key: bool, bytes: usize, random: &mut u64) {
    let mut open = record::begin(batch, &Head::sample(clock.now(), key, 0));
    let each = (bytes - record::HEAD_LEN) / usize::from(KINDS) - record::SECTION_HEAD_LEN;
    for kind in 0..KINDS {
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
