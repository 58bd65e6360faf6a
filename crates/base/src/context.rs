//! The facts that are needed to understand numbers: host, boot, clock ticks, disks and their owners. Text lines `key=value`, part
//! of every block and tail.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Facts of one machine, by key.
///
/// Keys in use: `host boot_id kernel arch hz page_size cpus mem_kb tz swap_kb net_path kymo letters` (the subsystems to record,
/// in the form of `-s`), `interval` (in the form of `-i`), `comment`; of collectl's files `recorded_by disk_names net_names
/// started began` as their header has them, `own_tz`, the time zone of the player, and `uid.N=NAME`; `speed.NAME=MBIT` where the
/// speed is known; `net.NAME=physical`, `outer` (an outermost interface of a machine that has no physical one) or `virtual`;
/// `disk.NAME`, by sysfs, is one of
/// `outer` (an outermost one of a machine that has no physical one) or `virtual`; `disk.NAME`, by sysfs, is one of
/// - `whole`: a disk of its own, the only ones that count in a sum;
/// - `part:DISK`: a partition of it;
/// - `on:A,B`: made of others (device mapper, md, bcache, a multipath head);
/// - `loop`: a file; `ram`: memory; `hidden`: a path below a multipath head.
///
/// A value never holds a newline.
#[derive(Clone, Default, Debug)]
pub struct Context {
    facts: BTreeMap<String, String>,
    stamp: u64,
    /// Values of [`NUMBERS`]: columns ask for them for each row.
    numbers: [Option<u64>; NUMBERS.len()],
}

/// Facts that are kept as numbers, too.
const NUMBERS: [&str; 3] = ["hz", "page_size", "cpus"];

impl PartialEq for Context {
    fn eq(&self, other: &Context) -> bool {
        self.facts == other.facts
    }
}

impl Eq for Context {}

impl Context {
    /// Reads the lines of `text`; a line without `=` is passed over.
    pub fn parse(text: &[u8]) -> Context {
        let mut context = Context::default();
        for line in String::from_utf8_lossy(text).lines() {
            if let Some((key, value)) = line.split_once('=') {
                context.set(key, value);
            }
        }
        context
    }

    /// Notes a fact; newlines in it become blanks.
    pub fn set(&mut self, key: &str, value: &str) {
        let (key, value) = (key.replace(['\n', '='], " "), value.replace('\n', " "));
        if let Some(at) = NUMBERS.iter().position(|number| *number == key) {
            self.numbers[at] = value.parse().ok();
        }
        self.facts.insert(key, value);
        static STAMPS: AtomicU64 = AtomicU64::new(1);
        self.stamp = STAMPS.fetch_add(1, Ordering::Relaxed);
    }

    /// Changes whenever a fact does: equal stamps mean equal facts.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// A fact's text.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.facts.get(key).map(String::as_str)
    }

    /// A fact that is a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    /// Facts whose key begins with `prefix`, which is taken off.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.facts
            .range(prefix.to_string()..)
            .map_while(move |(key, value)| Some((key.strip_prefix(prefix)?, value.as_str())))
    }

    /// Clock ticks a second of the recorded machine (USER_HZ).
    pub fn hz(&self) -> f64 {
        self.ticks_a_second() as f64
    }

    /// Clock ticks a second as a whole number.
    pub fn ticks_a_second(&self) -> u64 {
        self.numbers[0].filter(|&hz| hz > 0).unwrap_or(100)
    }

    /// Bytes of a page of the recorded machine.
    pub fn page_size(&self) -> f64 {
        self.numbers[1].unwrap_or(4096) as f64
    }

    /// Number of CPUs of the recorded machine.
    pub fn cpus(&self) -> u64 {
        self.numbers[2].filter(|&n| n > 0).unwrap_or(1)
    }

    /// The lines, sorted by key.
    pub fn text(&self) -> String {
        self.facts
            .iter()
            .map(|(key, value)| format!("{key}={value}\n"))
            .collect()
    }
}
