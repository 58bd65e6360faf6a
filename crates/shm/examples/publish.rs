//! A program that publishes its activity: it "executes" commands, and publishes each with its text, its kind and its duration.
//!
//!     cargo run --release -p kymo-shm --example publish -- 1000000
//!
//! The program ends with its standard input. `publish.c` is the same program in C.

#![allow(clippy::print_stderr, reason = "a person reads it")]

use std::io::Read;
use std::time::Instant;

use kymo_shm::{
    Buckets, Counter, Description, Gauge, GaugeType, Histogram, Kind, Publisher, Schema, Slot,
    StampClock,
};

struct Metrics {
    reads: Counter,
    writes: Counter,
    open: Gauge,
    duration: Histogram,
}

fn schema() -> (Schema, Metrics) {
    let mut schema = Schema::new("example", 4)
        .slot_labels(&["user", "application"])
        .stamp_clock(StampClock::Monotonic);
    let commands = Description::new("commands_total", "Commands that ended.");
    let duration = Description::new(
        "command_duration",
        "How long commands took; one of eight is measured.",
    );
    let buckets = Buckets::new(2, 10, 36).expect("buckets that make sense");
    let metrics = Metrics {
        reads: schema.counter(commands.clone().label("kind", "read")),
        writes: schema.counter(commands.label("kind", "write")),
        open: schema.gauge(
            Description::new("open_sessions", "Sessions that are open."),
            GaugeType::Signed,
        ),
        duration: schema.histogram(duration.unit("seconds", 1e-9), buckets),
    };
    (schema, metrics)
}

/// One of eight, chosen at random: a fixed stride might always meet the same command.
fn is_measured(random: &mut u32) -> bool {
    *random ^= *random << 13;
    *random ^= *random >> 17;
    *random ^= *random << 5;
    random.is_multiple_of(8)
}

fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn execute(slot: &mut Slot, metrics: &Metrics, number: u32, started: Instant, random: &mut u32) {
    let is_write = number % 4 == 3;
    let (text, counter): (&[u8], Counter) = match is_write {
        true => (b"set colour 7", metrics.writes),
        false => (b"get colour", metrics.reads),
    };
    let begun = is_measured(random).then(Instant::now);
    slot.begin(
        Kind::Plain,
        text,
        begun.map_or(0, |_| nanoseconds(started)),
        u64::from(is_write) + 1,
    );
    // ... here the program works ...
    if let Some(begun) = begun {
        slot.observe(metrics.duration, nanoseconds(begun), 8);
    }
    slot.add(counter, 1);
    slot.end();
}

/// Publishes commands, by a schema that may be changed before.
pub fn publish(commands: u32, changed: impl Fn(Schema) -> Schema) -> (Publisher, Slot) {
    let (schema, metrics) = schema();
    let (publisher, why) = Publisher::create_or_disabled(&changed(schema));
    if let Some(why) = why {
        eprintln!("{why}"); // and it goes on
    }
    let (started, mut random) = (Instant::now(), 2_463_534_242);
    let mut slot = publisher.take();
    slot.identify(None, 1, &[b"ada", b"publish.rs"]);
    slot.set(metrics.open, 1.0);
    for number in 0..commands {
        execute(&mut slot, &metrics, number, started, &mut random);
    }
    (publisher, slot)
}

fn main() {
    let commands = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let (publisher, slot) = publish(commands.unwrap_or(1000), |schema| schema);
    let path = publisher.path().map(|path| path.display().to_string());
    std::io::Write::write_all(
        &mut std::io::stdout(),
        format!("{}\n", path.unwrap_or_default()).as_bytes(),
    )
    .expect("standard output");
    let _end = std::io::stdin().read_to_end(&mut Vec::new());
    drop((slot, publisher));
}
