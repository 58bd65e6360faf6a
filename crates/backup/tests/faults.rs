//! Backups on a simulated disk whose power is cut at each operation, and in a bucket whose client is cut off at each request; and
//! where there is no room: each backup before is restored, bit for bit.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "faults/fake_s3.rs"]
mod fake_s3;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kymo_backup::{
    Checked, Error, Keep, Sender, Sent, Source, Target, Trust, Version, Writing, check, prune,
    restore,
};
use kymo_sys::disk::{Disk, OpenMode, RealDisk};
use kymo_sys::sim_disk::{Faults, SimDisk};

use fake_s3::FakeBucket;

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

/// A place of backups whose faults are simulated.
enum Place {
    Folder(SimDisk),
    Bucket(FakeBucket),
}

impl Place {
    fn begin(&self) -> Result<Target, Error> {
        match self {
            Place::Folder(disk) => Target::begin(Arc::new(disk.clone()), Path::new(TO)),
            Place::Bucket(bucket) => Target::begin_s3(&bucket.place()),
        }
    }

    fn open(&self) -> Target {
        let opened = match self {
            Place::Folder(disk) => Target::open(Arc::new(disk.clone()), Path::new(TO)),
            Place::Bucket(bucket) => Target::open_s3(&bucket.place()),
        };
        opened.unwrap()
    }

    /// A copy without faults.
    fn fork(&self) -> Place {
        match self {
            Place::Folder(disk) => Place::Folder(disk.fork()),
            Place::Bucket(bucket) => Place::Bucket(bucket.fork()),
        }
    }

    /// Cuts the power, or the client off, at an operation from now on.
    fn cut_in(&self, operations: u64) {
        match self {
            Place::Folder(disk) => disk.set_faults(Faults {
                power_off_at: Some(disk.counts().operations + operations),
                ..Faults::default()
            }),
            Place::Bucket(bucket) => bucket.off_at(bucket.requests() + operations),
        }
    }

    /// The power is back.
    fn recover(&self, seed: u64) {
        match self {
            Place::Folder(disk) => disk.crash_by_chance(seed),
            Place::Bucket(bucket) => bucket.on(),
        }
    }

    /// The process has ended.
    fn kill(&self) {
        match self {
            Place::Folder(disk) => disk.kill(),
            Place::Bucket(_) => {}
        }
    }

    /// There is no room any more, or again.
    fn set_full(&self, is_full: bool) {
        match self {
            Place::Folder(disk) => {
                let writes = disk.counts().writes;
                disk.set_faults(Faults {
                    full_writes: is_full.then_some((writes + 2, u64::MAX)),
                    ..Faults::default()
                });
            }
            Place::Bucket(bucket) => bucket.set_full(is_full),
        }
    }

    /// Names and bytes of all objects of a folder.
    fn objects(&self, folder: &str) -> Vec<(String, u64)> {
        let mut objects = match self {
            Place::Folder(disk) => {
                let files = disk.files().into_iter();
                let objects = files.filter_map(|(path, bytes)| {
                    let name = path.strip_prefix(TO).ok()?.to_str()?.to_string();
                    Some((name, bytes))
                });
                objects.collect()
            }
            Place::Bucket(bucket) => bucket.objects(),
        };
        objects.retain(|(name, _)| name.starts_with(folder));
        objects
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        match self {
            Place::Folder(disk) => disk.bytes(&Path::new(TO).join(name)).unwrap(),
            Place::Bucket(bucket) => bucket.bytes(name),
        }
    }

    /// Changes an object behind the back of all; `None`: it goes.
    fn set_bytes(&self, name: &str, bytes: Option<Vec<u8>>) {
        match (self, bytes) {
            (Place::Folder(disk), Some(bytes)) => disk.set_bytes(&Path::new(TO).join(name), bytes),
            (Place::Folder(disk), None) => disk.unlink(&Path::new(TO).join(name)).unwrap(),
            (Place::Bucket(bucket), bytes) => bucket.set_bytes(name, bytes),
        }
    }

    fn shown(&self, name: &str) -> String {
        match self {
            Place::Folder(_) => format!("{TO}/{name}"),
            Place::Bucket(bucket) => bucket.shown(name),
        }
    }
}

/// Both places, with the backups of the first moments.
fn places_with(moments: u8) -> [Place; 2] {
    let places = [
        Place::Folder(SimDisk::new(5)),
        Place::Bucket(FakeBucket::new()),
    ];
    for place in &places {
        for moment in 0..moments {
            back_up(place, moment).unwrap();
            place.kill();
        }
    }
    places
}

/// Backs up the files of a moment, which lie on a disk of their own.
fn back_up(place: &Place, moment: u8) -> Result<Sent, Error> {
    back_up_with(place, moment, Trust::Length)
}

fn back_up_with(place: &Place, moment: u8, trust: Trust) -> Result<Sent, Error> {
    let live = SimDisk::new(1);
    let mut target = place.begin()?;
    let time_ms = i64::from(moment) * HOUR_MS;
    let mut sender = Sender::begin(&mut target, time_ms, "web1", trust)?;
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
fn restored(place: &Place, at_ms: i64) -> Vec<(String, Vec<u8>)> {
    let target = place.open();
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

fn is_restored(place: &Place, moment: u8, story: &str) {
    let files = files(moment).into_iter();
    let mut expected: Vec<(String, Vec<u8>)> =
        files.map(|(path, _, bytes)| (path.into(), bytes)).collect();
    expected.sort();
    let found = restored(place, i64::from(moment) * HOUR_MS);
    assert!(found == expected, "{story}: moment {moment}");
}

fn checked(place: &Place) -> (Checked, Vec<String>) {
    let mut found = Vec::new();
    let checked = check(
        &place.open(),
        &mut |finding| found.push(format!("{} {}", finding.path.display(), finding.what)),
        &mut |_, _| {},
    );
    (checked.unwrap(), found)
}

#[test]
fn backups_are_restored_and_share_what_is_the_same() {
    for place in places_with(0) {
        let sent: Vec<Sent> = (0..3)
            .map(|moment| {
                let sent = back_up(&place, moment).unwrap();
                place.kill();
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
            is_restored(&place, moment, "as it was");
        }
        assert_eq!(checked(&place).1, Vec::<String>::new());
    }
}

#[test]
fn after_a_cut_at_any_operation_each_earlier_backup_is_whole() {
    for (place, least) in places_with(2).into_iter().zip([30, 7]) {
        let (mut cuts, mut whole) = (0, false);
        while !whole {
            let place = place.fork();
            cuts += 1;
            place.cut_in(cuts);
            whole = back_up(&place, 2).is_ok();
            let story = format!("cut {cuts}");
            for seed in 0..3 {
                let place = place.fork();
                place.recover(seed);
                assert_eq!(checked(&place).1, Vec::<String>::new(), "{story}");
                is_restored(&place, 0, &story);
                is_restored(&place, 1, &story);
                // The next backup takes nothing for whole that is not.
                back_up(&place, 3).unwrap();
                place.kill();
                is_restored(&place, 3, &story);
                assert_eq!(checked(&place).1, Vec::<String>::new(), "{story}");
            }
        }
        assert!(cuts > least, "{cuts}");
    }
}

#[test]
fn after_a_cut_while_old_backups_go_the_others_are_whole() {
    let keep = Keep::parse("2h").unwrap();
    let prune_it = |place: &Place| prune(&mut place.begin()?, keep);
    for place in places_with(4) {
        let (mut cuts, mut whole) = (0, false);
        while !whole {
            let place = place.fork();
            cuts += 1;
            place.cut_in(cuts);
            whole = prune_it(&place).is_ok();
            place.recover(cuts);
            let story = format!("cut {cuts}");
            is_restored(&place, 2, &story);
            is_restored(&place, 3, &story);
            assert_eq!(checked(&place).1, Vec::<String>::new(), "{story}");
            prune_it(&place).unwrap();
            assert_eq!(checked(&place).0.backups, 2);
        }
        let before = place.objects("objects/").len();
        let removed = prune_it(&place).unwrap();
        let after = place.objects("objects/").len();
        assert_eq!(removed.backups, 2);
        assert!(removed.bytes > 700 && after < before, "{removed:?}");
        assert_eq!(u64::try_from(after).unwrap(), checked(&place).0.contents);
    }
}

#[test]
fn a_full_target_is_an_error_and_the_next_backup_is_whole() {
    for place in places_with(1) {
        place.set_full(true);
        let why = back_up(&place, 1).unwrap_err().to_string();
        let words = match place {
            Place::Folder(_) => ": No space left on device",
            Place::Bucket(_) => ": it answers 403 Forbidden: QuotaExceeded: no",
        };
        let begins = format!("cannot write {}", place.shown(""));
        assert!(why.starts_with(&begins) && why.ends_with(words), "{why}");
        place.kill();
        place.set_full(false);
        is_restored(&place, 0, "full");
        back_up(&place, 1).unwrap();
        place.kill();
        is_restored(&place, 1, "there is room again");
    }
}

#[test]
fn damage_is_found_named_and_mended_where_it_can_be() {
    for whole in places_with(3) {
        for (name, size) in whole.objects("objects/") {
            for (change, says) in [
                ("cut", "bytes instead of"),
                ("flip", "is damaged"),
                ("gone", "is missing"),
            ] {
                let place = whole.fork();
                let mut bytes = place.bytes(&name);
                match change {
                    "cut" => bytes.truncate(usize::try_from(size).unwrap() - 1),
                    _ => bytes[0] ^= 1,
                }
                place.set_bytes(&name, (change != "gone").then_some(bytes));
                let (checked, found) = checked(&place);
                assert_eq!(checked.damaged, 1, "{change} {name}: {found:?}");
                let named = place.shown(&name);
                assert!(
                    found[0].starts_with(&named) && found[0].contains(says),
                    "{found:?}"
                );
            }
        }
        let manifest = "backups/19700101T010000.000Z.manifest";
        let mut bytes = whole.bytes(manifest);
        bytes.truncate(bytes.len() / 2);
        whole.set_bytes(manifest, Some(bytes));
        let (checked, found) = checked(&whole);
        assert_eq!((checked.backups, checked.damaged), (2, 1), "{found:?}");
        is_restored(&whole, 2, "another manifest is damaged");
        let mut target = whole.begin().unwrap();
        let all = Keep::parse("9h").unwrap();
        assert!(
            prune(&mut target, all).is_err(),
            "a damaged backup keeps all contents"
        );
    }
}

#[test]
fn a_content_that_was_cut_is_sent_again() {
    for place in places_with(2) {
        for (name, _) in place.objects("objects/") {
            place.set_bytes(&name, Some(vec![1]));
        }
        back_up(&place, 2).unwrap();
        place.kill();
        is_restored(&place, 2, "sent again");
    }
}

#[test]
fn a_content_that_was_changed_is_sent_again_if_it_is_looked_at() {
    for place in places_with(2) {
        let changed = place.objects("objects/");
        for (name, _) in &changed {
            let mut bytes = place.bytes(name);
            bytes[0] ^= 1;
            place.set_bytes(name, Some(bytes));
        }
        let sent = back_up(&place.fork(), 2).unwrap();
        assert_eq!(sent.mended, 0);
        let sent = back_up_with(&place, 2, Trust::Hash).unwrap();
        place.kill();
        assert!(sent.mended > 4, "{sent:?} of {changed:?}");
        is_restored(&place, 2, "changed and sent again");
        let sent = back_up_with(&place, 2, Trust::Hash).unwrap();
        assert_eq!(sent.mended, 0);
    }
}

/// A part of an object is a request.
#[test]
fn an_object_of_several_parts_is_read() {
    let place = Place::Bucket(FakeBucket::new());
    let bytes: Vec<u8> = (0..40 << 20).map(|at: u32| (at % 249) as u8).collect();
    let live = SimDisk::new(1);
    let path = Path::new("/live/long");
    live.create_dir_all(Path::new("/live")).unwrap();
    live.set_bytes(path, bytes.clone());
    let mut target = place.begin().unwrap();
    let mut sender = Sender::begin(&mut target, HOUR_MS, "web1", Trust::Length).unwrap();
    sender
        .add(&Source {
            path: "store/long".into(),
            file: live.open(path, OpenMode::Read).unwrap(),
            place: path.into(),
            bytes: bytes.len() as u64,
            version: Version::default(),
            writing: Writing::Sealed,
        })
        .unwrap();
    sender.finish().unwrap();
    assert_eq!(place.objects("objects/").len(), 3);
    let found = restored(&place, HOUR_MS);
    assert!(found == [("store/long".to_string(), bytes)]);
    assert_eq!(checked(&place).1, Vec::<String>::new());
}

#[test]
fn two_at_a_time_and_folders_with_files_are_refused() {
    let [place, _] = places_with(1);
    let Place::Folder(disk) = place else {
        unreachable!("the first is a folder")
    };
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
