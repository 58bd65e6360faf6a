//! .rrd files as bytes, for comparing: a separate reader of their outline (x86_64 layout), so that a mistake of the
//! program's reader cannot hide here.

use std::path::{Path, PathBuf};

const HEAD: usize = 128;
const DS_DEF: usize = 120;
const RRA_DEF: usize = 120;
const LIVE: usize = 16;
const PDP: usize = 112;
const CDP: usize = 80;

fn count(bytes: &[u8], at: usize) -> usize {
    let word = bytes[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(word) as usize
}

/// The file with each archive rotated so that its oldest row comes first, and with the row pointers at 0. Two files
/// that were created alike and got the same updates are then equal.
pub fn turned(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    if bytes.len() < HEAD || !bytes.starts_with(b"RRD\0") {
        return out;
    }
    let (ds, rras) = (count(bytes, 24), count(bytes, 32));
    let rra_at = HEAD + ds * DS_DEF;
    let pointers = rra_at + rras * RRA_DEF + LIVE + ds * PDP + ds * rras * CDP;
    let mut at = pointers + rras * 8;
    for rra in 0..rras {
        let rows = count(bytes, rra_at + rra * RRA_DEF + 24);
        let newest = count(bytes, pointers + rra * 8);
        let len = rows * ds * 8;
        out[at..at + len].rotate_left((newest + 1) % rows * ds * 8);
        out[pointers + rra * 8..pointers + rra * 8 + 8].fill(0);
        at += len;
    }
    out
}

/// The first difference of two files, named by the file's parts; `None` if they are equal.
pub fn difference(a: &[u8], b: &[u8]) -> Option<String> {
    if a == b {
        return None;
    }
    let at = a.iter().zip(b).position(|(x, y)| x != y);
    let Some(at) = at else {
        return Some(format!("{} bytes against {}", a.len(), b.len()));
    };
    let word = |bytes: &[u8]| {
        let at = at / 8 * 8;
        let word = bytes.get(at..at + 8)?.try_into().ok()?;
        Some((u64::from_le_bytes(word), f64::from_le_bytes(word)))
    };
    let all = a.iter().zip(b).filter(|(x, y)| x != y).count();
    Some(format!(
        "byte {at}, in {}: {:x?} against {:x?} ({all} bytes differ)",
        part(a, at),
        word(a),
        word(b)
    ))
}

fn part(bytes: &[u8], at: usize) -> String {
    if bytes.len() < HEAD || !bytes.starts_with(b"RRD\0") {
        return "no RRD".to_string();
    }
    let (ds, rras) = (count(bytes, 24), count(bytes, 32));
    let mut begin = 0;
    for (name, size, many) in [
        ("the head", HEAD, 1),
        ("ds_def", DS_DEF, ds),
        ("rra_def", RRA_DEF, rras),
        ("live_head", LIVE, 1),
        ("pdp_prep", PDP, ds),
        ("cdp_prep", CDP, ds * rras),
        ("rra_ptr", 8, rras),
    ] {
        if at < begin + size * many {
            let (index, inside) = ((at - begin) / size, (at - begin) % size);
            return format!("{name} {index} at {inside}");
        }
        begin += size * many;
    }
    format!("row data at {}", (at - begin) / 8)
}

/// All regular files below a folder, in order, except for the one with the owner's name; links are not followed.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() && entry.file_name() != ".kymo-owner" => {
                    found.push(entry.path());
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}
