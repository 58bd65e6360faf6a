//! Files that no publisher made, or that one made who means harm.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use kymo_shm::{
    Access, Description, FormatError, Kind, OpenError, Publisher, ReadError, Reader, Schema,
    Scratch, file_name,
};

use crate::c::crate_folder;
use crate::folder::Folder;

const EPOCH: [u8; 16] = [7; 16];

fn golden() -> Vec<u8> {
    let mut bytes =
        std::fs::read(crate_folder().join("tests/fixtures/shm-1.0")).expect("the fixture");
    bytes[56..72].copy_from_slice(&EPOCH);
    bytes
}

fn open(folder: &Folder, name: &str) -> Result<Reader, OpenError> {
    Reader::open(
        File::open(folder.path()).expect("the folder"),
        name.as_ref(),
        Access::Read,
    )
}

/// Opens a file of these bytes.
fn open_bytes(folder: &Folder, bytes: &[u8]) -> Result<Reader, OpenError> {
    let name = file_name(&EPOCH);
    std::fs::write(folder.path().join(&name), bytes).expect("a file");
    open(folder, &name)
}

#[test]
fn what_is_no_regular_file_of_one_name_is_refused() {
    let folder = Folder::new("irregular");
    let path = |name: &str| folder.path().join(name);
    let (name, other) = (file_name(&EPOCH), file_name(&[8; 16]));
    std::fs::write(path(&name), golden()).expect("a file");
    assert!(open(&folder, &name).is_ok());
    assert!(matches!(
        open(&folder, "missing"),
        Err(OpenError::System { verb: "open", .. })
    ));
    symlink(path(&name), path("link")).expect("a link");
    assert!(matches!(
        open(&folder, "link"),
        Err(OpenError::System { verb: "open", .. })
    ));
    std::fs::create_dir(path("folder")).expect("a folder");
    assert!(matches!(open(&folder, "folder"), Err(OpenError::Irregular)));
    let made = std::process::Command::new("mkfifo")
        .arg(path("pipe"))
        .status();
    assert!(made.expect("mkfifo").success());
    assert!(
        matches!(open(&folder, "pipe"), Err(OpenError::Irregular)),
        "and it does not wait for a writer"
    );
    std::fs::copy(path(&name), path(&other)).expect("a copy");
    assert!(
        matches!(open(&folder, &other), Err(OpenError::Name)),
        "the epoch of another file"
    );
    std::fs::hard_link(path(&name), path("second")).expect("a second name");
    assert!(matches!(open(&folder, &name), Err(OpenError::Names(2))));
    File::create(path("large"))
        .expect("a file")
        .set_len((256 << 20) + 1)
        .expect("a hole");
    assert!(matches!(open(&folder, "large"), Err(OpenError::Size(_))));
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let (folder, golden) = (Folder::new("cut"), golden());
    for length in (0..golden.len())
        .step_by(61)
        .chain([1023, 1024, golden.len() - 1])
    {
        let opened = open_bytes(&folder, &golden[..length]);
        let refused = matches!(&opened, Err(OpenError::Size(_)) if length < 1024)
            || matches!(&opened, Err(OpenError::Format(FormatError::Length { .. })));
        assert!(refused, "{length}");
    }
}

#[test]
fn numbers_that_lie_are_refused() {
    let (folder, golden) = (Folder::new("lies"), golden());
    let lie = |at: usize, bytes: &[u8]| {
        let mut lie = golden.clone();
        lie[at..at + bytes.len()].copy_from_slice(bytes);
        match open_bytes(&folder, &lie) {
            Err(OpenError::Format(error)) => error,
            Err(other) => panic!("{at}: {other}"),
            Ok(_) => panic!("{at}: it was opened"),
        }
    };
    assert_eq!(lie(0, b"K"), FormatError::Magic);
    assert_eq!(lie(8, &[2, 0]), FormatError::Version { major: 2, minor: 0 });
    assert_eq!(
        lie(8, &[0, 0, 7, 0]),
        FormatError::Version { major: 0, minor: 7 }
    );
    assert!(matches!(lie(16, &[1]), FormatError::Length { .. }));
    assert_eq!(
        lie(12, &1016u32.to_le_bytes()),
        FormatError::Limit("header")
    );
    for (at, number, what) in [
        (80, 0, "number of slots"),
        (80, 65_537, "number of slots"),
        (84, 65_537, "number of cells"),
        (88, 0, "length of texts"),
        (88, 12, "length of texts"),
        (88, 65_544, "length of texts"),
        (92, 9, "number of labels"),
        (100, 5, "number of sections"),
        (100, 17, "number of sections"),
        (104, 63, "length of labels"),
    ] {
        assert_eq!(
            lie(at, &u32::to_le_bytes(number)),
            FormatError::Limit(what),
            "{number} at {at}"
        );
    }
    assert_eq!(lie(128, &[0]), FormatError::Limit("name"));
    assert_eq!(lie(128, &[b'x'; 64]), FormatError::Limit("name"));
    // Each number of each section but the last one's stride.
    for section in 0..6 {
        let entry = 512 + section * 32;
        let kind = u32::try_from(section + 1).expect("a kind");
        for (at, bytes) in [
            (entry, &99u32.to_le_bytes()[..]),
            (entry + 4, &8u32.to_le_bytes()),
            (entry + 8, &u64::MAX.to_le_bytes()),
            (entry + 8, &(1u64 << 40).to_le_bytes()),
            (entry + 8, &0u64.to_le_bytes()),
            (entry + 8, &[1]),
            (entry + 16, &(u64::MAX / 2 + 1).to_le_bytes()),
            (entry + 16, &8u64.to_le_bytes()),
            (entry + 24, &u64::MAX.to_le_bytes()),
        ] {
            if section == 5 && at == entry + 16 {
                continue;
            }
            let error = lie(at, bytes);
            let expected = matches!(error, FormatError::Section(of) if of == kind || of == 2);
            assert!(expected, "{bytes:?} at {at}: {error:?}");
        }
    }
}

/// Appended fields: a longer header, longer records and a section that version 1.0 does not know.
#[test]
fn a_higher_minor_version_is_read() {
    let (folder, mut bytes) = (Folder::new("minor"), golden());
    bytes[10..12].copy_from_slice(&9u16.to_le_bytes());
    bytes[100..104].copy_from_slice(&7u32.to_le_bytes());
    bytes[512 + 6 * 32..][..4].copy_from_slice(&77u32.to_le_bytes());
    let mut reader = open_bytes(&folder, &bytes).expect("a publisher");
    reader.scan(&mut Scratch::default()).expect("a scan");
    assert_eq!((reader.header().minor, reader.metrics().len()), (9, 6));
}

#[test]
fn a_description_that_lies_ends_the_table() {
    let (folder, golden) = (Folder::new("descriptions"), golden());
    let metrics = usize::try_from(u64::from_le_bytes(
        golden[512 + 5 * 32 + 8..][..8]
            .try_into()
            .expect("eight bytes"),
    ))
    .expect("an offset");
    for (at, bytes, found) in [
        (metrics, &[0xff; 4][..], 0),
        (metrics + 8, &[0xff; 4], 0),
        (metrics + 24, &[9], 5),
        // Bytes of descriptions, in the live section.
        (1024, &u64::MAX.to_le_bytes(), 6),
        (1024, &3u64.to_le_bytes(), 0),
    ] {
        let mut lie = golden.clone();
        lie[at..at + bytes.len()].copy_from_slice(bytes);
        let mut reader = open_bytes(&folder, &lie).expect("a publisher");
        reader.scan(&mut Scratch::default()).expect("a scan");
        assert_eq!(reader.metrics().len(), found, "{bytes:?} at {at}");
        assert_eq!(reader.has_bad_metrics(), found != 5, "{bytes:?} at {at}");
    }
}

/// Other users' files are read by `pread`: in a mapping this would be a SIGBUS.
#[test]
fn a_file_that_becomes_shorter_is_an_error() {
    let folder = Folder::new("shorter");
    let mut reader = open_bytes(&folder, &golden()).expect("a publisher");
    let mut scratch = Scratch::default();
    reader.scan(&mut scratch).expect("a scan");
    let file = OpenOptions::new()
        .write(true)
        .open(folder.path().join(file_name(&EPOCH)))
        .expect("the file");
    for length in [1100, 1024, 100, 0] {
        file.set_len(length).expect("a cut");
        assert_eq!(reader.scan(&mut scratch), Err(ReadError::Short));
        assert_eq!(reader.sample(&mut scratch), Err(ReadError::Short));
    }
}

/// A version that changes all the time is busy, not an endless loop; texts and numbers of slots are what there is room for.
#[test]
fn a_writer_that_lies_about_lengths_gets_no_more_than_its_room() {
    let folder = Folder::new("lengths");
    let schema = Schema::new("liar", 2).folder(folder.path()).text_bytes(64);
    let publisher = Publisher::create(&schema).expect("a publisher");
    let mut slot = publisher.take();
    slot.begin(Kind::Plain, b"x", 0, 0);
    let path = publisher.path().expect("a path");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("the file");
    let entry = |kind: u64| {
        let mut offset = [0; 8];
        file.read_exact_at(&mut offset, 512 + (kind - 1) * 32 + 8)
            .expect("an offset");
        u64::from_le_bytes(offset)
    };
    // The text of generation 1 is in the second buffer, half a stride of 2 x 128 bytes behind the first.
    file.write_all_at(&[0xff; 8], entry(4) + 128 + 8)
        .expect("lengths");
    file.write_all_at(&[0xff; 8], 1024 + 8)
        .expect("a number of slots");
    let (mut reader, mut scratch) = (folder.open(Access::Read), Scratch::default());
    reader.scan(&mut scratch).expect("a scan");
    reader.sample(&mut scratch).expect("a sample");
    assert_eq!((reader.slots_used(), reader.activities().len()), (2, 2));
    assert_eq!(
        reader.activities()[0]
            .command
            .as_ref()
            .expect("a command")
            .text
            .len(),
        64
    );
}

#[test]
fn a_publisher_that_cannot_describe_itself_is_refused() {
    let create = |schema: Schema| {
        Publisher::create(&schema.folder(Path::new("/dev/shm")))
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let long = "x".repeat(64);
    let described = |name: &str| {
        let mut schema = Schema::new("x", 1);
        schema.counter(Description::new(name, ""));
        schema
    };
    for schema in [
        Schema::new("", 1),
        Schema::new(&long, 1),
        Schema::new("x", 0),
        Schema::new("x", 65_537),
        Schema::new("x", 1).text_bytes(65_537),
        Schema::new("x", 1).spare(65_537, 0),
        Schema::new("x", 1).spare(0, (4 << 20) + 1),
        Schema::new("x", 1).slot_labels(&[&long[..32]]),
        Schema::new("x", 1).slot_labels(&[""; 9]),
        Schema::new("x", 65_536).spare(65_536, 0),
        described(""),
        described(&"x".repeat(1025)),
    ] {
        let refused = create(schema).expect_err("refused");
        assert!(refused.starts_with("cannot publish "), "{refused}");
    }
}
