use super::*;
use crate::sim_disk::{Faults, SimDisk};

const KIND: Kind = Kind {
    magic: *b"KYMOTEST",
    version: 3,
    bytes_max: 1 << 20,
    old: Old {
        magic: *b"KYMOTST",
        newest: 0,
        has_generation: false,
    },
};
const BODIES: [&[u8]; 4] = [b"first", b"number two", b"number 2 a", b"the last one"];

fn disk() -> Arc<SimDisk> {
    let disk = Arc::new(SimDisk::new(1));
    disk.create_dir_all(Path::new("/s")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

fn path() -> PathBuf {
    "/s/file".into()
}

fn open(disk: &Arc<SimDisk>) -> (KeptFile, Contents) {
    KeptFile::open(disk.clone(), path(), KIND).unwrap()
}

fn bodies(contents: &Contents) -> Vec<Vec<u8>> {
    contents.bodies().map(<[u8]>::to_vec).collect()
}

/// A file with [`BODIES`]: two as it begins, two appended.
fn whole(disk: &Arc<SimDisk>) -> Vec<u8> {
    let (mut kept, _) = open(disk);
    kept.replace(
        7,
        &mut |records| {
            BODIES[..2]
                .iter()
                .for_each(|body| records.put(|out| out.extend(*body)));
        },
        Sync::Now,
    )
    .unwrap();
    let mut records = kept.records();
    BODIES[2..]
        .iter()
        .for_each(|body| records.put(|out| out.extend(*body)));
    kept.append(&records, Sync::Now).unwrap();
    disk.bytes(&path()).unwrap()
}

/// A file of version 0.
fn old() -> Vec<u8> {
    let mut bytes = b"KYMOTST0".to_vec();
    for body in BODIES {
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&length), body);
        bytes.extend(length);
        bytes.extend(checksum.to_le_bytes());
        bytes.extend(body);
    }
    bytes
}

#[test]
fn records_come_back_and_more_are_appended() {
    let disk = disk();
    whole(&disk);
    let (mut kept, contents) = open(&disk);
    assert_eq!(
        (bodies(&contents), contents.generation),
        (BODIES.map(<[u8]>::to_vec).to_vec(), 7)
    );
    assert!(contents.is_whole() && kept.notice(&contents).is_none());
    let mut records = kept.records();
    records.put(|out| out.extend(b"more"));
    kept.append(&records, Sync::Now).unwrap();
    // Records made for another place of the file do not count there; `append` refuses them.
    assert!(kept.append(&records, Sync::Now).is_err());
    assert_eq!(bodies(&open(&disk).1).last().unwrap(), b"more");
}

/// A turned bit in `programs` cost all records behind it: 1,200,000 became 10.
#[test]
fn a_flipped_bit_costs_one_record_and_the_file_is_kept() {
    let disk = disk();
    for (bytes, is_old) in [(whole(&disk), false), (old(), true)] {
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            disk.set_bytes(&path(), flipped.clone());
            let (mut kept, contents) = open(&disk);
            if kept.is_newer() {
                // The digit of version 0 has no checksum: nothing is known, and nothing is written.
                assert_eq!((at / 8, is_old), (7, true), "bit {at}");
                assert!(kept.replace(8, &mut |_| {}, Sync::Now).is_err());
                assert_eq!(disk.bytes(&path()).unwrap(), flipped);
                continue;
            }
            let found = bodies(&contents);
            let lost: Vec<_> = BODIES
                .iter()
                .filter(|body| !found.contains(&body.to_vec()))
                .collect();
            assert!(
                lost.len() <= 1 && found.len() + lost.len() == 4,
                "bit {at}: {found:?}"
            );
            assert!(!contents.is_whole(), "bit {at} is not said");
            assert!(
                kept.notice(&contents).unwrap().contains("/s/file.bad"),
                "bit {at}"
            );
            kept.replace(
                8,
                &mut |records| {
                    contents
                        .bodies()
                        .for_each(|body| records.put(|out| out.extend(body)));
                },
                Sync::Now,
            )
            .unwrap();
            assert_eq!(disk.bytes(Path::new("/s/file.bad")).unwrap(), flipped);
            let (_, again) = open(&disk);
            assert!(again.is_whole() && bodies(&again) == found, "bit {at}");
        }
    }
}

#[test]
fn a_cut_costs_what_was_cut() {
    let disk = disk();
    for bytes in [whole(&disk), old()] {
        for end in 0..bytes.len() {
            disk.set_bytes(&path(), bytes[..end].to_vec());
            let (mut kept, contents) = open(&disk);
            let mut found = bodies(&contents);
            assert!(BODIES.map(<[u8]>::to_vec).starts_with(&found), "{end}");
            if kept.size().is_none() {
                let mut fill = |records: &mut Records| {
                    contents
                        .bodies()
                        .for_each(|body| records.put(|out| out.extend(body)));
                };
                kept.replace(8, &mut fill, Sync::Now).unwrap();
            }
            let mut records = kept.records();
            records.put(|out| out.extend(b"more"));
            kept.append(&records, Sync::Later).unwrap();
            found.push(b"more".to_vec());
            assert_eq!(bodies(&open(&disk).1), found, "{end}");
            disk.set_bytes(&path(), [&bytes[..end], &[0; 100][..]].concat());
            let found = bodies(&open(&disk).1);
            assert!(found.len() <= 4, "{end}");
        }
    }
}

/// A record at another offset, or of another generation, does not count.
#[test]
fn a_record_counts_in_its_place_alone() {
    let disk = disk();
    let bytes = whole(&disk);
    let (one, two) = (1024 + 24..1024 + 24 + 32, 1024 + 24 + 32..1024 + 24 + 64);
    let mut moved = bytes.clone();
    moved[one.clone()].copy_from_slice(&bytes[two.clone()]);
    moved[two].copy_from_slice(&bytes[one]);
    disk.set_bytes(&path(), moved);
    let (_, contents) = open(&disk);
    assert_eq!(bodies(&contents), [BODIES[0].to_vec(), BODIES[3].to_vec()]);
    let (mut kept, _) = open(&disk);
    kept.replace(8, &mut |_| {}, Sync::Now).unwrap();
    let mut other = disk.bytes(&path()).unwrap();
    other.extend(&bytes[1024..]);
    disk.set_bytes(&path(), other);
    assert_eq!(bodies(&open(&disk).1), [b""; 0]);
}

#[test]
fn a_newer_version_is_left_alone() {
    let disk = disk();
    let newer = Kind { version: 4, ..KIND };
    let (mut kept, _) = KeptFile::open(disk.clone(), path(), newer).unwrap();
    kept.replace(
        1,
        &mut |records| records.put(|out| out.extend(b"new")),
        Sync::Now,
    )
    .unwrap();
    let of_newer = disk.bytes(&path()).unwrap();
    for bytes in [of_newer, [b"KYMOTST2", &old()[8..]].concat()] {
        disk.set_bytes(&path(), bytes.clone());
        let (mut kept, contents) = open(&disk);
        assert!(kept.is_newer() && contents == Contents::default());
        assert!(
            kept.notice(&contents)
                .unwrap()
                .contains("it is left as it is")
        );
        assert!(
            kept.replace(2, &mut |_| {}, Sync::Now).is_err()
                && kept.append(&kept.records(), Sync::Now).is_err()
        );
        assert_eq!(disk.bytes(&path()).unwrap(), bytes);
        assert_eq!(disk.files().len(), 1);
    }
}

/// The power may fail at any moment of writing a damaged file again: readable records stay readable.
#[test]
fn a_crash_while_it_is_written_again_loses_nothing() {
    for seed in 0..100 {
        for fail_at in 1..12 {
            let disk = disk();
            let mut bytes = whole(&disk);
            bytes[1030] ^= 4;
            disk.set_bytes(&path(), bytes);
            disk.sync_file_system(Path::new("/s")).unwrap();
            let (mut kept, contents) = open(&disk);
            disk.set_faults(Faults {
                power_off_at: Some(disk.counts().operations + fail_at),
                ..Faults::default()
            });
            let replaced = kept.replace(
                8,
                &mut |records| {
                    contents
                        .bodies()
                        .for_each(|body| records.put(|out| out.extend(body)));
                },
                Sync::Now,
            );
            disk.set_faults(Faults::default());
            disk.crash_by_chance(seed);
            let (_, again) = open(&disk);
            assert_eq!(bodies(&again), bodies(&contents), "seed {seed}, {fail_at}");
            assert!(replaced.is_err() || again.is_whole());
        }
    }
}
