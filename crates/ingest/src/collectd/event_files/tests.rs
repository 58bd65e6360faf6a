use super::*;
use kymo_sys::sim_disk::SimDisk;
use kymo_wire::collectd::Severity;

const FOLDER: &str = "/store";

fn disk() -> Arc<SimDisk> {
    let disk = Arc::new(SimDisk::new(7));
    disk.create_dir_all(Path::new(FOLDER)).unwrap();
    disk
}

fn open(disk: &Arc<SimDisk>) -> (EventFiles, Vec<Event>, Vec<String>) {
    EventFiles::open(disk.clone(), Path::new(FOLDER)).unwrap()
}

fn path(at: usize) -> PathBuf {
    Path::new(FOLDER).join(NAMES[at])
}

fn append(files: &mut EventFiles, events: impl IntoIterator<Item = Event>) {
    let mut events = events.into_iter().map(Arc::new).collect();
    files.append(&mut events).unwrap();
    assert!(events.is_empty());
}

fn event(n: u32) -> Event {
    Event {
        time_ns: 1_700_000_000_000_000_000 + i64::from(n),
        severity: Severity::Warning,
        host: b"web1".to_vec(),
        plugin: b"df".to_vec(),
        plugin_instance: b"root".to_vec(),
        type_name: b"percent_bytes".to_vec(),
        type_instance: b"free".to_vec(),
        message: format!("number {n} of many").into_bytes(),
    }
}

#[test]
fn events_come_back_in_their_order_and_files_stay_small() {
    let disk = disk();
    let mut written = 0;
    while written < 60_000 {
        let (mut files, found, notices) = open(&disk);
        assert_eq!(notices, [""; 0]);
        let first = written - u32::try_from(found.len()).unwrap();
        for (event_found, n) in found.iter().zip(first..) {
            assert_eq!(*event_found, event(n));
        }
        // No event is missing among the newest 4,096.
        assert!(
            written == 0 || found.len() >= 4096.min(written as usize),
            "{written}"
        );
        for _ in 0..4 {
            append(&mut files, (written..written + 2500).map(event));
            written += 2500;
        }
        for at in 0..2 {
            let size = disk.bytes(&path(at)).map_or(0, |bytes| bytes.len());
            assert!(size <= FILE_MAX, "{size}");
        }
    }
    assert_eq!(disk.files().len(), 2);
}

#[test]
fn without_events_there_is_no_file() {
    let disk = disk();
    let (mut files, ..) = open(&disk);
    append(&mut files, []);
    assert_eq!(disk.files().len(), 0);
}

/// Wherever it was cut or a byte changed, what lies before is there, and what comes later, too.
#[test]
fn a_damaged_end_is_left_out_and_said() {
    let disk = disk();
    let (mut files, ..) = open(&disk);
    append(&mut files, [event(0), event(1), event(2)]);
    let whole = disk.bytes(&path(0)).unwrap();
    let frame = (whole.len() - HEAD) / 3;
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|end| whole[..end].to_vec()).collect();
    damaged.extend((0..whole.len()).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        bytes
    }));
    for (n, bytes) in damaged.into_iter().enumerate() {
        let at = n % whole.len();
        let left = at.checked_sub(HEAD).map_or(0, |at| at / frame);
        let length = bytes.len();
        let ends = left * frame + HEAD;
        disk.set_bytes(&path(0), bytes);
        let (mut files, found, notices) = open(&disk);
        let want: Vec<Event> = (0..3).take(left).map(event).collect();
        assert_eq!(found, want, "damaged at {at}");
        let is_said = if at < HEAD { length > 0 } else { length > ends };
        assert_eq!(
            notices.len(),
            usize::from(is_said),
            "damaged at {at}: {notices:?}"
        );
        append(&mut files, [event(9)]);
        let (_, found, notices) = open(&disk);
        assert_eq!(found.last(), Some(&event(9)));
        assert_eq!(
            (found.len(), notices.len()),
            (left + 1, 0),
            "damaged at {at}"
        );
    }
}

/// Whatever a loss of power leaves, it can be read, and what is read was written.
#[test]
fn after_a_crash_there_is_nothing_that_was_not_written() {
    for seed in 0..200 {
        let disk = Arc::new(SimDisk::new(seed));
        disk.create_dir_all(Path::new(FOLDER)).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        let (mut files, ..) = open(&disk);
        for n in 0..20 {
            append(&mut files, [event(n)]);
            if n == 10 {
                // As the journal's syncs have it, now and then.
                disk.sync_file_system(Path::new(FOLDER)).unwrap();
            }
        }
        disk.crash_by_chance(seed);
        let (mut files, found, _) = open(&disk);
        for (event_found, n) in found.iter().zip(0..) {
            assert_eq!(*event_found, event(n));
        }
        assert!(found.len() >= 11, "seed {seed}: {}", found.len());
        append(&mut files, [event(99)]);
        let (_, found, notices) = open(&disk);
        assert_eq!((found.last(), notices.len()), (Some(&event(99)), 0));
    }
}

/// A kill takes nothing of what was written.
#[test]
fn a_kill_takes_nothing() {
    let disk = disk();
    let (mut files, ..) = open(&disk);
    append(&mut files, [event(0), event(1)]);
    disk.kill();
    let (_, found, notices) = open(&disk);
    assert_eq!((found.len(), notices.len()), (2, 0));
}

/// The bytes are the format: docs/formats/notifications.md shows them, and the fixture is kept for ever.
#[test]
fn the_fixture_is_read_and_written_byte_for_byte() {
    let fixture = include_bytes!("../../../../../tests/fixtures/notifications-0");
    let found = parse(fixture, fixture.len());
    assert_eq!((found.generation, found.end), (1, fixture.len()));
    let want = [
        event(0),
        Event {
            severity: Severity::Failure,
            host: b"a\xff".to_vec(),
            plugin: Vec::new(),
            plugin_instance: Vec::new(),
            type_name: Vec::new(),
            type_instance: Vec::new(),
            message: b"is down".to_vec(),
            ..event(1)
        },
    ];
    assert_eq!(found.events, want);
    let disk = disk();
    let (mut files, ..) = open(&disk);
    append(&mut files, want);
    assert_eq!(disk.bytes(&path(0)).as_deref(), Some(&fixture[..]));
}
