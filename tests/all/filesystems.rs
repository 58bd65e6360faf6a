//! Use of file systems, with the numbers of stat and df. A mount that hangs delays nothing.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kymo_tests::machine::{Tmpfs, must_skip};
use kymo_tests::{Scratch, parse_dump, run, stdout_of};
use serde_json::Value;

/// A FUSE mount without a program: each request waits until the file is closed.
struct Hung {
    point: PathBuf,
    _fuse: File,
}

impl Hung {
    fn mount(point: PathBuf) -> Option<Hung> {
        fs::create_dir_all(&point).ok()?;
        let fuse = File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .ok()?;
        let mounted = Command::new("mount")
            .args([
                "-i",
                "-t",
                "fuse",
                "-o",
                "fd=0,rootmode=40000,user_id=0,group_id=0",
                "kymo-hung",
            ])
            .arg(&point)
            .stdin(Stdio::from(fuse.try_clone().ok()?))
            .status();
        let hung = Hung { point, _fuse: fuse };
        mounted.is_ok_and(|status| status.success()).then_some(hung)
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        let _status = Command::new("umount").arg("-l").arg(&self.point).status();
    }
}

fn rows(dir: &str) -> Vec<Value> {
    let json = stdout_of(&["play", dir, "-s", "W", "--json"]);
    let row = |line: &str| serde_json::from_str(line).expect("JSON");
    json.lines().map(row).collect()
}

/// Output of stat(1): block size, blocks, free, available, files, free files.
fn stat(point: &str) -> Vec<f64> {
    let output = Command::new("stat")
        .args(["-f", "-c", "%S %b %f %a %c %d", point])
        .output();
    let text = String::from_utf8_lossy(&output.expect("stat").stdout).into_owned();
    text.split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect()
}

#[test]
fn sizes_are_those_of_stat_and_a_mount_that_hangs_holds_up_nothing() {
    if must_skip(&["mount", "stat"]) {
        return;
    }
    let scratch = Scratch::new("filesystems");
    let full = Tmpfs::mount(&scratch.path("a full one"), "1m").expect("a tmpfs");
    fs::write(scratch.path("a full one/file"), vec![1; 600 << 10]).expect("room");
    let Some(hung) = Hung::mount(scratch.path("hung")) else {
        return kymo_tests::machine::skipped("this kernel has no FUSE");
    };
    let dir = scratch.text("ring");
    let began = Instant::now();
    stdout_of(&["record", "-s", "cW", "-i", ".2:.2", "-c", "15", "-f", &dir]);
    let took = began.elapsed();
    // The mount hangs for ever; the recording takes its usual time.
    assert!(took < Duration::from_secs(30), "{took:?}");
    let said = rows(&dir);
    let of = |point: &str| said.iter().rfind(|row| row["filesystems.mount"] == point);
    let point = scratch.text("a full one");
    // The kernel escapes blanks in this way.
    let row = of(&point.replace(' ', "\\040")).unwrap_or_else(|| panic!("no {point}: {said:?}"));
    let number = |column: &str| row[format!("filesystems.{column}")].as_f64().expect(column);
    let [unit, blocks, free, available, files, free_files] = stat(&point)[..] else {
        panic!("stat");
    };
    let kb = unit / 1024.0;
    assert_eq!(number("size_kb"), blocks * kb);
    assert_eq!(number("used_kb"), (blocks - free) * kb);
    assert_eq!(number("available_kb"), available * kb);
    assert_eq!(number("files_used"), files - free_files);
    assert!((58.0..60.0).contains(&number("used_percent")), "{row}");
    assert_eq!(row["filesystems.type"], "tmpfs");
    assert_eq!(row["filesystems.source"], "kymo-test");
    assert!(of("/").is_some(), "{said:?}");
    // The mount was listed, but never read.
    let frames = parse_dump(&run(&["dump", &dir]).stdout);
    let place = format!("statvfs{}", scratch.text("hung"));
    let of_hung: Vec<_> = frames
        .iter()
        .filter(|frame| frame.source == place)
        .collect();
    assert!(
        !of_hung.is_empty() && of_hung.iter().all(|frame| frame.text.is_empty()),
        "{of_hung:?}"
    );
    assert!(of(&scratch.text("hung")).is_none_or(|row| row.get("filesystems.size_kb").is_none()));
    drop((hung, full));
}
