//! Entry points for fuzzing: whatever bytes a journal or a segment
//! has, reading it must not panic, hang or need much memory.

pub(crate) mod segments;

use crate::engine::Store;
use crate::settings::Settings;
use crate::tail::{TailFrom, TailSample, TailSeries, TailSink};
use crate::wal::frame;
use crate::wal::frame::{FRAME_HEAD_MAX, FRAMES_OFFSET, FileHead};
use crate::wal::tails::Missed;
use crate::wal::writer::name_of;
use kymo_sys::clock::Stamp;
use kymo_sys::disk::Disk;
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::SimDisk;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Opens, reads and merges segments made of `data`.
pub fn fuzz_segment(data: &[u8]) {
    segments::fuzz_segment(data);
}

/// Separates the entries of one frame from those of the next.
const CUT: &[u8] = b"\xffcut";

/// Opens a store whose journal file is `data`; then one whose frames
/// are valid and have `data` as entries. Flushes the resulting series.
pub fn fuzz_journal(data: &[u8]) {
    open_with(data.to_vec());
    open_with(framed(data));
}

/// A journal file with these entries in valid frames, separated at each [`CUT`].
fn framed(data: &[u8]) -> Vec<u8> {
    let head = FileHead {
        sequence: 1,
        generation: 7,
        base: 0,
        real_ns: 0,
        carries_over: false,
        stamp_s: 0,
    };
    let mut file = head.page();
    file.resize(FRAMES_OFFSET as usize, 0);
    let mut rest = data;
    while !rest.is_empty() {
        let end = rest.windows(CUT.len()).position(|four| four == CUT);
        let (entries, left) = match end {
            Some(end) => (&rest[..end], &rest[end + CUT.len()..]),
            None => (rest, &rest[..0]),
        };
        let mut buffer = vec![0; FRAME_HEAD_MAX];
        buffer.extend_from_slice(entries);
        let position = file.len() as u64 - FRAMES_OFFSET;
        let synced = (!file.len().is_multiple_of(2)).then_some(position);
        let start = frame::seal(&mut buffer, &head, position, synced);
        file.extend_from_slice(&buffer[start..]);
        rest = left;
    }
    file
}

fn open_with(journal: Vec<u8>) {
    let disk = SimDisk::new(1);
    let (folder, base) = (Path::new("/j"), Path::new("/db"));
    let made = disk.create_dir_all(folder).and(disk.create_dir_all(base));
    if made.is_err() {
        return;
    }
    disk.set_bytes(&folder.join(name_of(1)), journal);
    disk.set_bytes(&base.join("a.rrd"), vec![0; 900]);
    let settings = Settings {
        journal_file_bytes: 8192,
        lock_wait: Duration::ZERO,
        ..Settings::new(folder, base)
    };
    let clock = Arc::new(SimClock::new(Stamp::default()));
    if let Ok((store, _)) = Store::open(settings, Arc::new(disk), clock) {
        follow(&store);
        let _hostile = store.shutdown(true);
    }
}

/// Reads all that a tail has, as a registered one that acknowledges.
fn follow(store: &Store) {
    let Ok(mut reader) = store.tail(Some("fuzz"), TailFrom::Oldest) else {
        return;
    };
    let mut told = Defined::default();
    while let before = reader.position()
        && reader.read(1 << 10, &mut told).is_ok()
        && reader.position() > before
    {
        let _hostile = reader.acknowledge();
    }
}

/// Numbers of series that were defined.
#[derive(Default)]
struct Defined(HashSet<u32>);

impl TailSink for Defined {
    fn defined(&mut self, series: &TailSeries) {
        self.0.insert(series.known.id);
    }

    fn gone(&mut self, series: u32) {
        assert!(
            self.0.remove(&series),
            "a series is gone that was not there"
        );
    }

    fn missed(&mut self, missed: Missed) {
        assert!(missed.from <= missed.to, "{missed:?}");
    }

    fn samples(&mut self, samples: &[TailSample]) {
        let is_defined = |sample: &TailSample| self.0.contains(&sample.series);
        assert!(samples.iter().all(is_defined), "a definition is missing");
    }
}
