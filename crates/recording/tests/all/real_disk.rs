//! On a real disk, in the temporary folder: a reader follows a recorder of another thread
//! through switches, seals and removals.

use kymo_recording::cursor::{Cursor, Item};
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_recording::record::{self, Head};
use kymo_recording::writer::{Destination, Options, Writer};
use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::disk::{Disk, RealDisk};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const SAMPLES: u64 = 20_000;

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("kymo-{name}-{}", std::process::id()))
}

fn open(dir: &Path, cap_bytes: u64) -> Writer {
    let place = Destination {
        dir: dir.into(),
        host: "here".to_string(),
        boot_id: "00c0ffee".to_string(),
        context: "os=Linux\n".to_string(),
    };
    let options = Options {
        cap_bytes,
        seal_bytes: 8 << 10,
        tail_bytes: 16 << 10,
        sync_interval: Duration::from_secs(60),
        ..Options::default()
    };
    Writer::open(Arc::new(RealDisk), Arc::new(RealClock), place, options).unwrap()
}

fn write(dir: &Path, cap_bytes: u64, samples: u64) -> u64 {
    let mut writer = open(dir, cap_bytes);
    let wanted = writer.key_wanted();
    let (mut batch, mut most) = (Vec::new(), 0);
    for number in 1..=samples {
        batch.clear();
        let key = number % 60 == 1 || wanted.load(Ordering::Relaxed);
        let head = Head::sample(RealClock.now(), key, 0);
        let mut open = record::begin(&mut batch, &head);
        open.section(3, 0, |out| out.extend_from_slice(&number.to_le_bytes()));
        open.section(4, 0, |out| {
            out.resize(out.len() + (number % 90) as usize, number as u8)
        });
        open.end();
        assert_eq!(writer.append(&mut batch).unwrap().recorded, 1);
        most = most.max(writer.allocated_bytes());
    }
    assert_eq!(writer.take_notices(), Vec::<String>::new());
    writer.close().unwrap();
    most
}

#[test]
fn a_reader_follows_a_recorder() {
    let dir = scratch("follow");
    RealDisk.create_dir_all(&dir).unwrap();
    let recorder = {
        let dir = dir.clone();
        std::thread::spawn(move || write(&dir, 1 << 30, SAMPLES))
    };
    let recording = loop {
        match Recording::open(Arc::new(RealDisk), &dir) {
            Ok(recording) => break recording,
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let mut cursor = Cursor::new(&recording, TimeRange::ALL, Kinds::ALL);
    let (mut next, mut moved) = (1, Instant::now());
    while next <= SAMPLES {
        match cursor.next().unwrap() {
            Some(Item::Sample { head, sections, .. }) => {
                assert_eq!(head.seq, next);
                assert_eq!(sections[0].bytes, next.to_le_bytes());
                assert_eq!(sections[1].bytes, vec![next as u8; (next % 90) as usize]);
                next += 1;
                moved = Instant::now();
            }
            Some(Item::Gap(gap)) => unreachable!("{gap:?} before {next}"),
            Some(_) => {}
            None => {
                assert!(moved.elapsed() < Duration::from_secs(60), "no {next}");
                std::thread::yield_now();
            }
        }
    }
    recorder.join().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn the_cap_holds_and_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let dir = scratch("cap");
    RealDisk.create_dir_all(&dir).unwrap();
    let most = write(&dir, 256 << 10, SAMPLES);
    assert!(most <= 256 << 10, "{most}");
    let folder = dir.join("here-00c0ffee");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder) & 0o027, 0);
    for entry in std::fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()) & 0o137, 0);
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
