//! Entry points for fuzzing: whatever bytes a block or a tail has, reading and sealing it must not
//! panic, hang or need much memory.

use crate::cursor::Cursor;
use crate::folder::{BlockName, boot_folder};
use crate::reader::{Kinds, Recording, TimeRange};
use crate::tail;
use crate::writer::{Destination, Options, Writer};
use kymo_sys::clock::Stamp;
use kymo_sys::disk::Disk;
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::SimDisk;
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "/d";
const HOST: &str = "h";

/// Reads `data` as a block.
pub fn fuzz_block(data: &[u8]) {
    let name = BlockName {
        first_seq: 1,
        wall_min_s: 0,
        wall_max_s: 9,
    };
    read_all(&disk_with(&name.format(), data));
}

/// Reads `data` as a tail, has a writer recover and seal it, and reads the resulting block.
pub fn fuzz_tail(data: &[u8]) {
    let disk = disk_with(tail::NAMES[0], data);
    read_all(&disk);
    let clock = Arc::new(SimClock::new(Stamp::default()));
    let place = Destination {
        dir: DIR.into(),
        host: HOST.to_string(),
        boot_id: "2".to_string(),
        context: String::new(),
    };
    let writer = Writer::open(Arc::new(disk.clone()), clock, place, Options::default());
    if let Ok(mut writer) = writer
        && writer.recover().is_ok()
    {
        drop(writer);
        read_all(&disk);
    }
}

fn disk_with(name: &str, data: &[u8]) -> SimDisk {
    let disk = SimDisk::new(1);
    let folder = boot_folder(Path::new(DIR), HOST, "1");
    if disk.create_dir_all(&folder).is_ok() {
        disk.set_bytes(&folder.join(name), data.to_vec());
    }
    disk
}

fn read_all(disk: &SimDisk) {
    let Ok(recording) = Recording::open(Arc::new(disk.clone()), Path::new(DIR)) else {
        return;
    };
    let mut cursor = Cursor::new(&recording, TimeRange::ALL, Kinds::ALL);
    while let Ok(Some(_)) = cursor.next() {}
}
