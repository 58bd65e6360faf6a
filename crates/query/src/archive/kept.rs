//! Samples of collectl's files, decoded once and kept in memory, so that any moment is near: the files themselves are compressed
//! streams without an index. A chunk begins with a key sample, and its records are those of a recording.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kymo_base::context::Context;
use kymo_base::track::{Track, Tracks, Why};
use kymo_base::track_writer::TrackWriter;
use kymo_kernel::source;
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_recording::record::{self, Head};
use kymo_sys::clock::Stamp;

use crate::live::Decoder;
use crate::open::Recordings;
use crate::source::{Moment, Source, Step};

/// Most packed bytes in memory; longer files are not kept.
const PACKED_MAX: usize = 256 << 20;
/// Most samples of a chunk: those before the wanted one are decoded too.
const CHUNK_SAMPLES: usize = 32;
/// Bytes after which a chunk ends.
const CHUNK_BYTES: usize = 2 << 20;
/// Level of zstd: twice as quick as the third.
const LEVEL: i32 = 1;

/// Files in memory.
#[derive(Debug)]
pub struct Kept {
    /// Paths of the files, as they were given.
    pub paths: Vec<PathBuf>,
    bytes: u64,
    chunks: Vec<Chunk>,
}

/// Samples without a gap between them.
#[derive(Debug)]
struct Chunk {
    from_ns: i64,
    thru_ns: i64,
    context: Arc<Context>,
    /// Gaps before the first sample.
    gaps: Vec<Interruption>,
    packed: Vec<u8>,
    /// Bytes of the records.
    size: usize,
}

/// A gap between samples.
#[derive(Clone, Debug)]
enum Interruption {
    Gap(String),
    Damage(String),
}

impl Kept {
    /// Reads files to their end; `report` gets the bytes that were read so far, and all. `None`: not all of it is collectl's, or it is too much.
    pub fn read(
        paths: &[PathBuf],
        report: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Kept>, String> {
        let recordings = Recordings::find(paths)?;
        let sizes = recordings.paths().map(|(_, path)| path.metadata());
        let bytes = sizes.flatten().map(|known| known.len()).sum();
        let read = Arc::new(AtomicU64::new(0));
        let counted = |bytes| -> Box<dyn Read> {
            Box::new(Counted {
                bytes,
                read: read.clone(),
            })
        };
        let Some(mut source) = recordings.collectl(&counted)? else {
            return Ok(None);
        };
        let mut keeper = Keeper::default();
        while let Some(step) = source.next()? {
            report(read.load(Ordering::Relaxed), bytes);
            if !keeper.take(&step, source.tracks(), source.context())? {
                return Ok(None);
            }
        }
        keeper.pack()?;
        Ok(Some(Kept {
            paths: paths.to_vec(),
            bytes,
            chunks: keeper.chunks,
        }))
    }

    /// True if the files have other sizes than when they were read.
    pub fn is_old(&self) -> bool {
        let found = Recordings::find(&self.paths);
        let bytes = found.map(|found| {
            let sizes = found.paths().map(|(_, path)| path.metadata());
            sizes.flatten().map(|known| known.len()).sum::<u64>()
        });
        bytes.is_ok_and(|bytes| bytes != self.bytes)
    }

    /// The samples of a range, of which only `kinds` are needed; those before it are for rates.
    pub fn open(self: &Arc<Kept>, range: TimeRange, kinds: Kinds) -> Box<dyn Source> {
        Box::new(KeptSource {
            kept: self.clone(),
            range,
            kinds,
            next: 0,
            gaps: Vec::new(),
            records: Vec::new(),
            at: 0,
            decoder: Decoder::default(),
            context: Arc::default(),
        })
    }
}

/// A stream whose bytes are counted.
struct Counted {
    bytes: Box<dyn Read>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.bytes.read(out)?;
        self.read
            .fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
        Ok(count)
    }
}

/// Makes chunks of steps.
#[derive(Default)]
struct Keeper {
    chunks: Vec<Chunk>,
    packed: usize,
    /// A writer for each kind of source.
    writers: Vec<Option<Writer>>,
    records: Vec<u8>,
    samples: usize,
    from_ns: i64,
    thru_ns: i64,
    context: Arc<Context>,
    gaps: Vec<Interruption>,
    text: Vec<u8>,
}

/// The writing side of a track.
struct Writer {
    track: TrackWriter,
    /// Names of the instances by slot.
    names: Vec<Option<Vec<u8>>>,
}

impl Keeper {
    /// Takes in a step; `false`: there is no room for it.
    fn take(&mut self, step: &Step, tracks: &Tracks, context: &Context) -> Result<bool, String> {
        let gap = match step {
            Step::Sample(moment) => {
                self.sample(moment, tracks, context)?;
                return Ok(self.packed <= PACKED_MAX);
            }
            Step::Gap(why) => Interruption::Gap(why.clone()),
            Step::Damage(why) => Interruption::Damage(why.clone()),
            // Files of collectl's have none.
            Step::Event(..) => return Ok(true),
        };
        self.pack()?;
        self.gaps.push(gap);
        self.writers.clear();
        Ok(true)
    }

    fn sample(
        &mut self,
        moment: &Moment,
        tracks: &Tracks,
        context: &Context,
    ) -> Result<(), String> {
        let is_other = self.context.stamp() != context.stamp();
        let is_full = self.samples >= CHUNK_SAMPLES || self.records.len() >= CHUNK_BYTES;
        if is_other || is_full {
            self.pack()?;
        }
        if is_other {
            self.context = Arc::new(context.clone());
        }
        let key = self.samples == 0;
        if key {
            self.from_ns = moment.real_ns;
        }
        self.thru_ns = moment.real_ns;
        self.samples += 1;
        let stamp = Stamp {
            real_ns: moment.real_ns,
            mono_ns: moment.mono_ns,
            boot_ns: moment.boot_ns,
        };
        let head = Head {
            seq: moment.seq,
            ..Head::sample(stamp, key, moment.missed)
        };
        let mut open = record::begin(&mut self.records, &head);
        for source in source::ALL {
            let track = tracks.get(source.kind);
            let at = usize::from(source.kind);
            if at >= self.writers.len() {
                self.writers.resize_with(at + 1, || None);
            }
            let is_there = self.writers[at].is_some() || track.instances().next().is_some();
            if is_there && (key || track.sampled) {
                let writer = self.writers[at].get_or_insert_with(|| Writer {
                    track: TrackWriter::new(source.grammar),
                    names: Vec::new(),
                });
                let section = writer.section(key, track, &mut self.text);
                open.section(source.kind, 0, |out| out.extend_from_slice(section));
            }
        }
        open.end();
        Ok(())
    }

    /// Ends the chunk, if it has samples.
    fn pack(&mut self) -> Result<(), String> {
        if self.samples == 0 {
            return Ok(());
        }
        let packed = zstd::bulk::compress(&self.records, LEVEL);
        let packed = packed.map_err(|error| format!("cannot keep samples: {error}"))?;
        self.packed += packed.len();
        self.chunks.push(Chunk {
            from_ns: self.from_ns,
            thru_ns: self.thru_ns,
            context: self.context.clone(),
            gaps: std::mem::take(&mut self.gaps),
            packed,
            size: self.records.len(),
        });
        self.records.clear();
        self.samples = 0;
        Ok(())
    }
}

impl Writer {
    /// The section of a sample.
    fn section(&mut self, key: bool, track: &Track, text: &mut Vec<u8>) -> &[u8] {
        // The first section says everything.
        self.track.begin(key || self.names.is_empty());
        let last = track.instances().last().map_or(0, |(slot, _)| slot + 1);
        let slots = last.max(self.names.len());
        self.names.resize(slots, None);
        for (slot, known) in self.names.iter_mut().enumerate() {
            let instance = track.instance(slot);
            let name = instance.map(|instance| instance.name.as_slice());
            if known.as_deref() != name {
                if known.is_some() {
                    self.track.gone(slot);
                }
                *known = name.map(<[u8]>::to_vec);
                if let Some(name) = name {
                    self.track.add(slot, name);
                }
            }
            match instance {
                Some(instance) if track.sampled => {
                    text.clear();
                    track.render(instance, text);
                    self.track.read(slot, text);
                }
                Some(_) => self.track.unread(slot, Why::NotDue),
                None => {}
            }
        }
        self.track.end()
    }
}

/// Chunks that are read.
struct KeptSource {
    kept: Arc<Kept>,
    range: TimeRange,
    kinds: Kinds,
    /// The chunk after this one.
    next: usize,
    /// Gaps to give first, the last one first.
    gaps: Vec<Interruption>,
    records: Vec<u8>,
    at: usize,
    decoder: Decoder,
    context: Arc<Context>,
}

impl KeptSource {
    /// Goes on to the next chunk within the range; `false`: there is none.
    fn begin(&mut self) -> Result<bool, String> {
        let is_first = self.next == 0;
        let rest = self.kept.chunks.get(self.next..).unwrap_or_default();
        let range = &self.range;
        let within =
            |chunk: &Chunk| chunk.thru_ns >= range.from_ns && chunk.from_ns <= range.thru_ns;
        let Some(skipped) = rest.iter().position(within) else {
            return Ok(false);
        };
        let chunk = &rest[skipped];
        // Samples before the range are for rates, and so is the chunk before, if the range begins with this one.
        let has_past = skipped > 0 && chunk.gaps.is_empty() && chunk.from_ns >= range.from_ns;
        let (skipped, chunk) = match is_first && has_past {
            true => (skipped - 1, &rest[skipped - 1]),
            false => (skipped, chunk),
        };
        self.records = zstd::bulk::decompress(&chunk.packed, chunk.size)
            .map_err(|error| format!("cannot unpack samples: {error}"))?;
        self.at = 0;
        self.next += skipped + 1;
        self.context = chunk.context.clone();
        if !is_first {
            self.gaps = chunk.gaps.iter().rev().cloned().collect();
        }
        Ok(true)
    }
}

impl Source for KeptSource {
    fn next(&mut self) -> Result<Option<Step>, String> {
        loop {
            if let Some(gap) = self.gaps.pop() {
                return Ok(Some(match gap {
                    Interruption::Gap(why) => Step::Gap(why),
                    Interruption::Damage(why) => Step::Damage(why),
                }));
            }
            if self.at >= self.records.len() {
                match self.begin()? {
                    true => continue,
                    false => return Ok(None),
                }
            }
            let record = record::parse_unsealed(&self.records[self.at..])
                .map_err(|why| format!("cannot read kept samples: {why}"))?;
            self.at += record.length;
            if record.head.stamp.real_ns > self.range.thru_ns {
                self.at = self.records.len();
                continue;
            }
            let warmup = !self.range.holds(record.head.stamp.real_ns);
            let sections = record
                .sections()
                .map(|section| (section.kind, section.bytes));
            let wanted = sections.filter(|(kind, _)| self.kinds.contains(*kind));
            if let Some(step) = self.decoder.sample(record.head, wanted, warmup) {
                return Ok(Some(step));
            }
        }
    }

    fn tracks(&self) -> &Tracks {
        &self.decoder.tracks
    }

    fn context(&self) -> &Context {
        &self.context
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_kernel::interpret::is_read;

    /// Moment and texts of each sample, and what interrupts them.
    fn steps(source: &mut dyn Source) -> Vec<(Option<Moment>, String)> {
        let mut steps = Vec::new();
        while let Some(step) = source.next().expect("readable") {
            let Step::Sample(moment) = step else {
                steps.push((None, format!("{step:?}")));
                continue;
            };
            let mut texts = Vec::new();
            for kind in source::ALL.iter().map(|one| one.kind) {
                let track = source.tracks().get(kind);
                let is_read = is_read(track);
                // Slots are given in any order.
                for (_, instance) in track.instances() {
                    let mut text = Vec::new();
                    assert!(track.render(instance, &mut text));
                    let (name, text) = (instance.name.escape_ascii(), text.escape_ascii());
                    texts.push(format!("{kind} {name} {is_read}: {text}\n"));
                }
            }
            texts.sort();
            steps.push((Some(moment), source.context().text() + &texts.concat()));
        }
        steps
    }

    fn body(from: u32, thru: u32) -> String {
        let mut body = String::from(
            "# Collectl:   V4.3.1-1  HiRes: 1  Options: -scdn\n# Host:       vm  DaemonOpts: \n# Booted:     1000.50 [20261121-20:49:39]\n# SubSys:     cdn Options:  Interval: 1:60 NumCPUs: 2  NumBud: 0 Flags: ix\n# HZ:         100  Arch: x86_64 PageSize: 4096\n",
        );
        for second in from..thru {
            body += &format!(
                ">>> {second}.001 <<<\ncpu  {second} 2\nload 0.5 1/2 {second}\nMemTotal:  5 kB\n"
            );
            if second % 7 == 0 {
                for pid in (second / 50..second / 40).filter(|pid| pid % 3 != second % 3) {
                    body += &format!(
                        "proc:{pid} stat {pid} (a b) S 1 {second}\nproc:{pid} Tgid:\t{pid}\nproc:{pid} cmd sleep {pid} \n"
                    );
                }
            }
        }
        body + &format!(">>> {thru}.001 <<<\n")
    }

    /// Kept samples are those of the files, from any moment to any other.
    #[test]
    fn kept_samples_are_those_of_the_files() {
        let folder = std::env::temp_dir().join(format!("kymo-kept-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        let golden = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/golden/vm-20261121-215607.raw.gz"
        );
        for paths in [
            vec![golden.into()],
            vec![
                write("a.raw", body(2000, 2300)),
                write("b.raw", body(2300, 2400)),
            ],
            vec![
                write("c.raw", body(2000, 2100)),
                write("d.raw", body(2150, 2200)),
            ],
        ] {
            let kept = Kept::read(&paths, &mut |_, _| {}).expect("readable");
            let kept = Arc::new(kept.expect("collectl's"));
            let files = Recordings::find(&paths).expect("found");
            let mut whole = files.open(TimeRange::ALL, Kinds::ALL).expect("opened");
            let expect = steps(&mut whole);
            let moments: Vec<Moment> = expect.iter().filter_map(|(moment, _)| *moment).collect();
            assert!(moments.len() >= 5);
            let got = steps(&mut kept.open(TimeRange::ALL, Kinds::ALL));
            for (got, expect) in got.iter().zip(&expect) {
                assert_eq!(got, expect);
            }
            assert_eq!(got.len(), expect.len());
            for (at, first) in moments.iter().enumerate().step_by(5) {
                let range = TimeRange {
                    from_ns: first.real_ns,
                    thru_ns: moments[(at + 40).min(moments.len() - 1)].real_ns,
                };
                let within = |(moment, _): &(Option<Moment>, String)| {
                    moment.is_some_and(|moment| range.holds(moment.real_ns))
                };
                let mut got = steps(&mut kept.open(range, Kinds::ALL));
                got.retain(within);
                let mut expect = expect.clone();
                expect.retain(within);
                assert_eq!(got, expect, "{range:?}");
            }
            assert!(!kept.is_old());
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn what_is_not_collectls_is_not_kept() {
        let found = Kept::read(&["/nowhere".into()], &mut |_, _| {});
        assert!(found.is_err());
    }
}
