//! A recorder on a simulated disk, and the check of all crash tests: the list of submitted
//! and acknowledged records.

#![allow(dead_code, clippy::unwrap_used, missing_docs)]

use kymo_base::random::next_random;
use kymo_recording::cursor::{Cursor, Gap, Item};
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_recording::record::{self, Head, RecordType};
use kymo_recording::writer::{Destination, Options, Writer};
use kymo_recording::{Error, Result};
use kymo_sys::clock::{Clock, Stamp};
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::SimDisk;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) const DIR: &str = "/rec";
pub(crate) const SECOND: u64 = 1_000_000_000;
/// 2026-01-01.
pub(crate) const START_NS: i64 = 1_767_225_600 * SECOND as i64;

pub(crate) fn dir() -> PathBuf {
    PathBuf::from(DIR)
}

/// Options of a very small ring, in which seals and removals happen soon.
pub(crate) fn tiny() -> Options {
    Options {
        cap_bytes: 1 << 20,
        sync_interval: Duration::from_secs(5),
        seal_bytes: 4096,
        tail_bytes: 16 << 10,
        ..Options::default()
    }
}

/// Content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordContent {
    pub head: Head,
    pub sections: Vec<(u8, u8, Vec<u8>)>,
    pub text: String,
}

pub(crate) struct Bench {
    pub disk: SimDisk,
    pub clock: Arc<SimClock>,
    pub options: Options,
    pub boot_id: String,
    pub random: u64,
    pub writer: Option<Writer>,
    /// All records that a writer got and numbered.
    pub submitted: BTreeMap<u64, RecordContent>,
    /// Recorded records, which kill -9 must not lose.
    pub acked: Vec<u64>,
    /// Synced records, which a power cut must not lose.
    pub synced: Vec<u64>,
    pub ticks: u64,
    pub key_every: u64,
}

impl Bench {
    pub(crate) fn new(seed: u64, options: Options) -> Self {
        let start = Stamp {
            real_ns: START_NS,
            mono_ns: 5 * SECOND,
            boot_ns: 5 * SECOND,
        };
        Bench {
            disk: SimDisk::new(seed),
            clock: Arc::new(SimClock::new(start)),
            options,
            boot_id: "0123abcd-0000".to_string(),
            random: seed,
            writer: None,
            submitted: BTreeMap::new(),
            acked: Vec::new(),
            synced: Vec::new(),
            ticks: 0,
            key_every: 10,
        }
    }

    pub(crate) fn now(&self) -> Stamp {
        self.clock.now()
    }

    pub(crate) fn random(&mut self, below: u64) -> u64 {
        next_random(&mut self.random) % below
    }

    pub(crate) fn place(&self) -> Destination {
        Destination {
            dir: dir(),
            host: "web-1".to_string(),
            boot_id: self.boot_id.clone(),
            context: "os=Linux\ncpus=2\n".to_string(),
        }
    }

    pub(crate) fn try_open(&self) -> Result<Writer> {
        let clock: Arc<dyn Clock> = self.clock.clone();
        Writer::open(
            Arc::new(self.disk.clone()),
            clock,
            self.place(),
            self.options.clone(),
        )
    }

    pub(crate) fn open(&mut self) {
        let mut writer = self.try_open().unwrap();
        writer.recover().unwrap();
        self.writer = Some(writer);
    }

    pub(crate) fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().unwrap()
    }

    /// Appends one sample, a second after the previous one.
    pub(crate) fn sample(&mut self) {
        self.clock.advance_ns(SECOND);
        let wanted = self.writer().key_wanted().load(Ordering::Relaxed);
        let key = wanted || self.ticks.is_multiple_of(self.key_every);
        self.ticks += 1;
        let mut batch = Vec::new();
        let content = self.build(&mut batch, key);
        self.submit(batch, vec![content]);
    }

    pub(crate) fn build(&mut self, batch: &mut Vec<u8>, key: bool) -> RecordContent {
        let head = Head::sample(self.clock.now(), key, 0);
        let mut sections = Vec::new();
        let count = if key { 4 } else { self.random(4) };
        for kind in 0..count {
            let length = self.random(if key { 80 } else { 40 });
            let byte = self.random(256) as u8;
            let bytes = (0..length).map(|at| byte ^ (at as u8 & 3)).collect();
            sections.push((kind as u8 * 7, byte, bytes));
        }
        push(batch, &head, &sections);
        RecordContent {
            head,
            sections,
            text: String::new(),
        }
    }

    pub(crate) fn submit(&mut self, mut batch: Vec<u8>, contents: Vec<RecordContent>) {
        let Ok(appended) = self.writer().append(&mut batch) else {
            return;
        };
        let mut at = 0;
        for (mut content, seq) in contents.into_iter().zip(appended.seqs) {
            let raw = record::peek(&batch[at..]).unwrap();
            at += raw.length;
            content.head.seq = seq;
            if raw.head.seq == seq {
                self.acked.push(seq);
            } else {
                assert_eq!(raw.head.seq, 0);
            }
            self.submitted.insert(seq, content);
        }
    }

    /// Calls `tick`; after a successful sync of all tails all acknowledged records count as synced.
    pub(crate) fn tick(&mut self) {
        let now = self.clock.now();
        let before = self.writer().counters();
        self.writer().tick(now);
        let after = self.writer().counters();
        let failed = after.write_errors > before.write_errors;
        if after.syncs > before.syncs && !failed && self.writer().is_synced() {
            self.synced = self.acked.clone();
        }
    }

    pub(crate) fn kill(&mut self) {
        self.disk.kill();
        self.writer = None;
    }

    pub(crate) fn reboot(&mut self) {
        self.writer = None;
        let random = self.random(u64::MAX);
        self.boot_id = format!("{:08x}", random as u32);
        self.clock = Arc::new(SimClock::new(Stamp {
            real_ns: self.clock.now().real_ns + 30 * SECOND as i64,
            mono_ns: SECOND,
            boot_ns: SECOND,
        }));
    }

    pub(crate) fn read(&self) -> Read {
        read(&self.disk, &dir(), TimeRange::ALL, Kinds::ALL).unwrap()
    }

    /// Checks that no read record is wrong, duplicate or
    /// out of order, and that all of `wanted` were read.
    pub(crate) fn judge(&self, read: &Read, wanted: &[u64], story: &str) {
        let mut last = 0;
        for sample in &read.samples {
            let seq = sample.head.seq;
            assert!(seq > last, "{story}: {seq} after {last}");
            last = seq;
            let submitted = self.submitted.get(&seq);
            assert_eq!(Some(sample), submitted, "{story}: wrong record");
        }
        let got: Vec<u64> = read.samples.iter().map(|sample| sample.head.seq).collect();
        for seq in wanted {
            assert!(
                got.binary_search(seq).is_ok(),
                "{story}: {seq} is lost; got {got:?}, gaps {:?}",
                read.gaps
            );
        }
        self.judge_chains(read, story);
    }

    /// Checks that each sample that is no key directly follows the record that it depends on.
    fn judge_chains(&self, read: &Read, story: &str) {
        let mut known: Option<u64> = None;
        for seq in &read.order {
            if let Some(sample) = self.submitted.get(seq)
                && sample.head.record_type == RecordType::Sample
                && !sample.head.key
            {
                assert_eq!(
                    known.map(|known| known + 1),
                    Some(*seq),
                    "{story}: no chain"
                );
            }
            known = Some(*seq);
        }
    }
}

pub(crate) fn push(batch: &mut Vec<u8>, head: &Head, sections: &[(u8, u8, Vec<u8>)]) {
    let mut open = record::begin(batch, head);
    for (kind, cost, bytes) in sections {
        open.section(*kind, *cost, |out| out.extend_from_slice(bytes));
    }
    open.end();
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    pub samples: Vec<RecordContent>,
    pub warmups: Vec<u64>,
    pub events: Vec<(u64, String)>,
    pub contexts: Vec<String>,
    pub gaps: Vec<Gap>,
    /// Sequence numbers of samples and events, in the order read.
    pub order: Vec<u64>,
    pub bytes_read: u64,
}

pub(crate) fn read(
    disk: &SimDisk,
    path: &Path,
    range: TimeRange,
    kinds: Kinds,
) -> Result<Read, Error> {
    let recording = Recording::open(Arc::new(disk.clone()), path)?;
    let mut cursor = Cursor::new(&recording, range, kinds);
    let mut read = Read::default();
    drain(&mut cursor, &mut read)?;
    Ok(read)
}

pub(crate) fn drain(cursor: &mut Cursor, read: &mut Read) -> Result<(), Error> {
    while let Some(item) = cursor.next()? {
        match item {
            Item::Sample {
                head,
                warmup,
                sections,
            } => {
                read.order.push(head.seq);
                if warmup {
                    read.warmups.push(head.seq);
                    continue;
                }
                let sections = sections.iter().map(|s| (s.kind, s.cost, s.bytes.to_vec()));
                read.samples.push(RecordContent {
                    head,
                    sections: sections.collect(),
                    text: String::new(),
                });
            }
            Item::Event { head, text } => {
                read.order.push(head.seq);
                read.events.push((head.seq, text.to_string()));
            }
            Item::Context { text, .. } => read.contexts.push(text.to_string()),
            Item::Gap(gap) => {
                // A recorded context has a sequence number but is in none of the lists.
                read.gaps.push(gap);
            }
        }
    }
    read.bytes_read = cursor.bytes_read();
    Ok(())
}
