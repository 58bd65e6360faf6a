//! Backups on a simulated disk whose power is cut at each operation, and that has no room: each backup before is restored, bit
//! for bit.

#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kymo_backup::{
    Checked, Error, Keep, Sender, Sent, Source, Target, Version, Writing, check, prune, restore,
};
use kymo_sys::disk::{Disk, OpenMode, RealDisk};
use kymo_sys::sim_disk::{Faults, SimDisk};

const TO: &str = "/backup";
const HOUR_MS: i64 = 3_600_000;

/// The files of a moment.
type Files = Vec<(&'static str, Writing, Vec<u8>)>;

/// Files at four moments: one grows, one is rewritten, one is new and sealed, one goes.
fn files(moment: u8) -> Files {
    let length = usize::from(moment) * 1000;
    let grown = (0..3000 + length).map(|at| u8::try_from(at % 251).unwrap());
    let mut in_place = vec![7; 200 << 10];
    in_place[100_000] = moment;
    let mut files = vec![
        ("store/journal-1", Writing::Appended, grown.collect()),
        ("store/programs", Writing::Appended, vec![moment; 50]),
        ("rrd/a.rrd", Writing::InPlace, in_place),
        ("store/empty", Writing::Appended, Vec::new()),
    ];
    match moment {
        0 => files.push(("store/gone", Writing::Sealed, vec![9; 700])),
        _ => files.push(("host-1/1.blk", Writing::Sealed, vec![8; 5000])),
    }
    files
}

/// Backs up the files of a moment, which lie on a disk of their own.
fn back_up(disk: &SimDisk, moment: u8) -> Result<Sent, Error> {
    let live = SimDisk::new(1);
    let mut target = Target::begin(Arc::new(disk.clone()), Path::new(TO))?;
    let time_ms = i64::from(moment) * HOUR_MS;
    let mut sender = Sender::begin(&mut target, time_ms, "web1")?;
    for (path, writing, bytes) in files(moment) {
        let place = Path::new("/live").join(path);
        live.create_dir_all(place.parent().unwrap()).unwrap();
        live.set_bytes(&place, bytes.clone());
        sender.add(&Source {
            path: path.into(),
            file: live.open(&place, OpenMode::Read).unwrap(),
            place,
            bytes: bytes.len() as u64,
            version: Version {
                inode: 1,
                mtime_ns: i64::from(moment),
            },
            writing,
        })?;
    }
    sender.finish()
}

/// A folder on the real disk, which goes with this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("kymo-backup-{}-{number}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _missing = fs::remove_dir_all(&self.0);
    }
}

/// The files of the newest backup up to a moment.
fn restored(disk: &SimDisk, at_ms: i64) -> Vec<(String, Vec<u8>)> {
    let target = Target::open(Arc::new(disk.clone()), Path::new(TO)).unwrap();
    let to = Folder::new();
    let done = restore(&target, Some(at_ms), &RealDisk, &to.0, &mut |_, _| {}).unwrap();
    let mut all = Vec::new();
    for folder in ["store", "rrd", "host-1"] {
        for entry in fs::read_dir(to.0.join(folder)).into_iter().flatten() {
            let path = entry.unwrap().path();
            let below = path.strip_prefix(&to.0).unwrap();
            all.push((
                below.to_str().unwrap().to_string(),
                fs::read(&path).unwrap(),
            ));
        }
    }
    assert_eq!(u64::try_from(all.len()).unwrap(), done.files);
    all.sort();
    all
}

fn is_restored(disk: &SimDisk, moment: u8, story: &str) {
    let files = files(moment).into_iter();
    let mut expected: Vec<(String, Vec<u8>)> =
        files.map(|(path, _, bytes)| (path.into(), bytes)).collect();
    expected.sort();
    let found = restored(disk, i64::from(moment) * HOUR_MS);
    assert!(found == expected, "{story}: moment {moment}");
}

fn checked(disk: &SimDisk) -> (Checked, Vec<String>) {
    let target = Target::open(Arc::new(disk.clone()), Path::new(TO)).unwrap();
    let mut found = Vec::new();
    let checked = check(
        &target,
        &mut |finding| found.push(format!("{} {}", finding.path.display(), finding.what)),
        &mut |_, _| {},
    );
    (checked.unwrap(), found)
}

fn disk_with(moments: u8) -> SimDisk {
    let disk = SimDisk::new(5);
    for moment in 0..moments {
        back_up(&disk, moment).unwrap();
        disk.kill();
    }
    disk
}

#[test]
fn backups_are_restored_and_share_what_is_the_same() {
    let disk = disk_with(0);
    let sent: Vec<Sent> = (0..3)
        .map(|moment| {
            let sent = back_up(&disk, moment).unwrap();
            disk.kill();
            sent
        })
        .collect();
    // The grown part, the rewritten file, one piece of a file that is written in place, the new file, and the manifest.
    let piece = 64 << 10;
    for (moment, new) in [(1, 1000 + 50 + piece + 5000), (2, 1000 + 50 + piece)] {
        let sent = sent[moment];
        assert!((new..new + 1000).contains(&sent.sent_bytes), "{sent:?}");
    }
    for moment in 0..3 {
        is_restored(&disk, moment, "as it was");
    }
    assert_eq!(checked(&disk).1, Vec::<String>::new());
}

#[test]
fn after_a_power_cut_at_any_operation_each_earlier_backup_is_whole() {
    let disk = disk_with(2);
    let (mut cuts, mut whole) = (0, false);
    while !whole {
        let disk = disk.fork();
        let before = disk.counts().operations;
        cuts += 1;
        disk.set_faults(Faults {
            power_off_at: Some(before + cuts),
            ..Faults::default()
        });
        whole = back_up(&disk, 2).is_ok();
        let story = format!("cut {cuts}");
        for seed in 0..3 {
            let disk = disk.fork();
            disk.crash_by_chance(seed);
            assert_eq!(checked(&disk).1, Vec::<String>::new(), "{story}");
            is_restored(&disk, 0, &story);
            is_restored(&disk, 1, &story);
            // The next backup takes nothing for whole that is not.
            back_up(&disk, 3).unwrap();
            disk.kill();
            is_restored(&disk, 3, &story);
            assert_eq!(checked(&disk).1, Vec::<String>::new(), "{story}");
        }
    }
    assert!(cuts > 30, "{cuts}");
}

#[test]
fn after_a_power_cut_while_old_backups_go_the_others_are_whole() {
    let disk = disk_with(4);
    let keep = Keep::parse("2h").unwrap();
    let prune_it = |disk: &SimDisk| {
        let mut target = Target::begin(Arc::new(disk.clone()), Path::new(TO))?;
        prune(&mut target, keep)
    };
    let (mut cuts, mut whole) = (0, false);
    while !whole {
        let disk = disk.fork();
        cuts += 1;
        disk.set_faults(Faults {
            power_off_at: Some(disk.counts().operations + cuts),
            ..Faults::default()
        });
        whole = prune_it(&disk).is_ok();
        disk.crash_by_chance(cuts);
        let story = format!("cut {cuts}");
        is_restored(&disk, 2, &story);
        is_restored(&disk, 3, &story);
        assert_eq!(checked(&disk).1, Vec::<String>::new(), "{story}");
        prune_it(&disk).unwrap();
        assert_eq!(checked(&disk).0.backups, 2);
    }
    let objects = |disk: &SimDisk| {
        let files = disk.files().into_iter();
        files
            .filter(|(path, _)| path.starts_with("/backup/objects"))
            .count()
    };
    let before = objects(&disk);
    let removed = prune_it(&disk).unwrap();
    assert_eq!(removed.backups, 2);
    assert!(
        removed.bytes > 700 && objects(&disk) < before,
        "{removed:?}"
    );
    assert_eq!(
        u64::try_from(objects(&disk)).unwrap(),
        checked(&disk).0.contents
    );
}

#[test]
fn a_full_target_is_an_error_and_the_next_backup_is_whole() {
    let disk = disk_with(1);
    let first = disk.counts().writes;
    disk.set_faults(Faults {
        full_writes: Some((first + 2, u64::MAX)),
        ..Faults::default()
    });
    let why = back_up(&disk, 1).unwrap_err().to_string();
    assert!(
        why.starts_with("cannot write /backup/") && why.ends_with(": No space left on device"),
        "{why}"
    );
    disk.kill();
    disk.set_faults(Faults::default());
    is_restored(&disk, 0, "full");
    back_up(&disk, 1).unwrap();
    disk.kill();
    is_restored(&disk, 1, "there is room again");
}

#[test]
fn damage_is_found_named_and_mended_where_it_can_be() {
    let whole = disk_with(3);
    let is_object = |path: &Path| path.starts_with("/backup/objects");
    let objects = whole
        .files()
        .into_iter()
        .filter(|(path, _)| is_object(path));
    for (path, size) in objects {
        let named = path.display().to_string();
        for (change, says) in [
            ("cut", "bytes instead of"),
            ("flip", "is damaged"),
            ("gone", "is missing"),
        ] {
            let disk = whole.fork();
            let mut bytes = disk.bytes(&path).unwrap();
            match change {
                "cut" => bytes.truncate(usize::try_from(size).unwrap() - 1),
                _ => bytes[0] ^= 1,
            }
            match change {
                "gone" => disk.unlink(&path).unwrap(),
                _ => disk.set_bytes(&path, bytes),
            }
            let (checked, found) = checked(&disk);
            assert_eq!(checked.damaged, 1, "{change} {named}: {found:?}");
            assert!(
                found[0].starts_with(&named) && found[0].contains(says),
                "{found:?}"
            );
        }
    }
    let manifest = whole
        .files()
        .into_iter()
        .find(|(path, _)| path.ends_with("19700101T010000.000Z.manifest"));
    let (manifest, _) = manifest.unwrap();
    let mut bytes = whole.bytes(&manifest).unwrap();
    bytes.truncate(bytes.len() / 2);
    whole.set_bytes(&manifest, bytes);
    let (checked, found) = checked(&whole);
    assert_eq!((checked.backups, checked.damaged), (2, 1), "{found:?}");
    is_restored(&whole, 2, "another manifest is damaged");
    let mut target = Target::begin(Arc::new(whole.clone()), Path::new(TO)).unwrap();
    let all = Keep::parse("9h").unwrap();
    assert!(
        prune(&mut target, all).is_err(),
        "a damaged backup keeps all contents"
    );
}

#[test]
fn a_content_that_was_cut_is_sent_again() {
    let disk = disk_with(2);
    let objects = disk
        .files()
        .into_iter()
        .filter(|(path, _)| path.starts_with("/backup/objects"));
    for (path, _) in objects.collect::<Vec<_>>() {
        disk.set_bytes(&path, vec![1]);
    }
    back_up(&disk, 2).unwrap();
    disk.kill();
    is_restored(&disk, 2, "sent again");
}

#[test]
fn two_at_a_time_and_folders_with_files_are_refused() {
    let disk = disk_with(1);
    let target = Target::begin(Arc::new(disk.clone()), Path::new(TO)).unwrap();
    let busy = Target::open(Arc::new(disk.clone()), Path::new(TO));
    assert!(matches!(busy, Err(Error::Busy { .. })));
    let (to, other) = (Folder::new(), Folder::new());
    // A restore that was killed has left this.
    fs::create_dir_all(to.0.join(".kymo-restore/store")).unwrap();
    fs::write(to.0.join(".kymo-restore/store/half"), "half").unwrap();
    restore(&target, None, &RealDisk, &to.0, &mut |_, _| {}).unwrap();
    let names = fs::read_dir(&to.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["rrd", "store"]);
    assert!(!to.0.join("store/half").exists());
    let again = restore(&target, None, &RealDisk, &to.0, &mut |_, _| {});
    assert!(matches!(again, Err(Error::NotEmpty { .. })));
    let before = restore(&target, Some(-1), &RealDisk, &other.0, &mut |_, _| {});
    let why = before.unwrap_err().to_string();
    assert_eq!(
        why,
        "cannot find a backup in /backup of that time; the oldest is of 1970-01-01T00:00:00Z"
    );
}
