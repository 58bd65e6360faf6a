use super::*;
use kymo_sys::sim_disk::SimDisk;
use kymo_wire::collectd::Severity;
use std::path::PathBuf;

const FOLDER: &str = "/store";
const FROM: &[u8] = b"192.0.2.7";

fn disk() -> Arc<SimDisk> {
    let disk = Arc::new(SimDisk::new(7));
    disk.create_dir_all(Path::new(FOLDER)).unwrap();
    disk
}

fn open(disk: &Arc<SimDisk>) -> (EventFiles, Vec<Event>, Vec<String>) {
    let (files, found, notices) = EventFiles::open(disk.clone(), Path::new(FOLDER)).unwrap();
    assert!(found.iter().all(|kept| *kept.from == *FROM));
    let events = found.iter().map(|kept| Event::clone(&kept.event));
    (files, events.collect(), notices)
}

fn path(at: usize) -> PathBuf {
    Path::new(FOLDER).join(NAMES[at])
}

fn append(files: &mut EventFiles, events: impl IntoIterator<Item = Event>) {
    let mut events = events
        .into_iter()
        .map(|event| Kept::new(FROM, event))
        .collect();
    let new: VecDeque<Kept> = VecDeque::clone(&events);
    files.append(&mut events, || new.into()).unwrap();
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

/// A file begins with all kept events and grows by new ones; then the other file begins.
#[test]
fn events_come_back_in_their_order_and_files_stay_small() {
    let disk = disk();
    let mut kept = VecDeque::new();
    for life in 0..6 {
        let (mut files, found, notices) = open(&disk);
        assert_eq!(notices, [""; 0]);
        // Events of both files come twice; the keeper knows the second one.
        let newest = found.iter().rev().take(kept.len()).rev();
        assert!(
            newest.eq(kept.iter().map(|kept: &Kept| &*kept.event)),
            "life {life}"
        );
        for n in 0..20 {
            let new = (0..500).map(|m| Kept::new(FROM, event(10_000 * life + 500 * n + m)));
            let mut new: VecDeque<Kept> = new.collect();
            kept.extend(new.iter().cloned());
            kept.drain(..kept.len().saturating_sub(4096));
            files.append(&mut new, || kept.clone().into()).unwrap();
            for at in 0..2 {
                let size = disk.bytes(&path(at)).map_or(0, |bytes| bytes.len());
                assert!(size < GROWS + 4096 * 120, "{size}");
            }
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

/// After a cut or a changed byte anywhere all other events are read, and later ones, too.
#[test]
fn damage_costs_one_event_and_is_said() {
    let disk = disk();
    let (mut files, ..) = open(&disk);
    append(&mut files, [event(0), event(1), event(2)]);
    let whole = disk.bytes(&path(0)).unwrap();
    let damaged = (0..whole.len()).flat_map(|at| {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x40;
        [(1, flipped), (3, whole[..at].to_vec())]
    });
    for (most, bytes) in damaged {
        let is_empty = bytes.is_empty();
        disk.set_bytes(&path(0), bytes.clone());
        let (mut files, found, notices) = open(&disk);
        assert!(found.len() + most >= 3, "{found:?}");
        let mut written = (0..3).map(event);
        assert!(
            found
                .iter()
                .all(|found| written.any(|event| event == *found))
        );
        // A cut between two events leaves no trace.
        assert!(notices.len() == 1 || is_empty || most == 3, "{notices:?}");
        if let Some(notice) = notices.first() {
            assert!(notice.contains("notifications-a.bad"), "{notice}");
            let bad = disk.bytes(Path::new("/store/notifications-a.bad"));
            assert_eq!(bad, Some(bytes));
        }
        append(&mut files, [event(9)]);
        let (_, again, notices) = open(&disk);
        assert_eq!(
            (again.last(), again.len()),
            (Some(&event(9)), found.len() + 1)
        );
        assert_eq!(notices, [""; 0]);
    }
}

/// An older kymo wrote its few events over those of a newer one.
#[test]
fn files_of_a_newer_version_are_left_alone() {
    let disk = disk();
    let newer = Kind { version: 3, ..FILE };
    let (mut kept, _) = KeptFile::open(disk.clone(), path(1), newer).unwrap();
    kept.replace(2, &mut |_| {}, Sync::Now).unwrap();
    let before = disk.bytes(&path(1));
    let opened = EventFiles::open(disk.clone(), Path::new(FOLDER));
    let error = opened.err().unwrap();
    assert!(error.to_string().contains("it is of version 3"), "{error}");
    assert_eq!((disk.bytes(&path(1)), disk.files().len()), (before, 1));
}

/// After a loss of power the files can be read, and each event that is read was written.
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
                // The journal syncs the file system now and then.
                disk.sync_file_system(Path::new(FOLDER)).unwrap();
            }
        }
        disk.crash_by_chance(seed);
        let (mut files, found, _) = open(&disk);
        // Events behind a lost one are read: no event needs another.
        let mut written = (0..20).map(event);
        assert!(
            found
                .iter()
                .all(|found| written.any(|event| event == *found))
        );
        assert!(found.len() >= 11, "seed {seed}: {}", found.len());
        append(&mut files, [event(99)]);
        let (_, found, notices) = open(&disk);
        assert_eq!((found.last(), notices.len()), (Some(&event(99)), 0));
    }
}

/// A killed process loses no event that it wrote.
#[test]
fn a_kill_takes_nothing() {
    let disk = disk();
    let (mut files, ..) = open(&disk);
    append(&mut files, [event(0), event(1)]);
    disk.kill();
    let (_, found, notices) = open(&disk);
    assert_eq!((found.len(), notices.len()), (2, 0));
}

/// Fixtures fix the format of docs/formats/notifications.md and are kept for ever.
#[test]
fn fixtures_are_read_and_written_byte_for_byte() {
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
    let fixture = |version: u32| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        root.join(format!("../../tests/fixtures/notifications-{version}"))
    };
    let new = disk();
    let (mut files, ..) = open(&new);
    append(&mut files, want.clone());
    let bytes = new.bytes(&path(0)).unwrap();
    if std::env::var_os("KYMO_BLESS").is_some() {
        return std::fs::write(fixture(2), bytes).unwrap();
    }
    for (version, from) in [(0, &b""[..]), (1, FROM), (2, FROM)] {
        let disk = disk();
        disk.set_bytes(&path(0), std::fs::read(fixture(version)).unwrap());
        let opened = EventFiles::open(disk.clone(), Path::new(FOLDER));
        let (files, found, notices) = opened.unwrap();
        let of = |event: &Event| Kept::new(from, event.clone());
        assert_eq!(found, want.each_ref().map(of), "version {version}");
        assert_eq!((files.generation, notices), (1, Vec::new()));
        let again = disk.bytes(&path(0)).unwrap();
        assert!(again == bytes || version == 0, "version {version}");
    }
}
