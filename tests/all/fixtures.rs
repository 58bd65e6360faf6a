//! A recording of an earlier build, kept for ever. `fixtures/recording-0` has version 0 of the format;
//! KYMO_BLESS=1 records it again.

use std::fs;
use std::path::Path;

use kymo_tests::{Scratch, run, stdout_of};

/// Kernel files of the corpus, and their paths below a root.
const FILES: &[(&str, &str)] = &[
    ("stat.txt", "proc/stat"),
    ("loadavg.txt", "proc/loadavg"),
    ("diskstats.txt", "proc/diskstats"),
    ("net_dev.txt", "proc/1/net/dev"),
    ("meminfo.txt", "proc/meminfo"),
    ("vmstat.txt", "proc/vmstat"),
    ("pressure_cpu.txt", "proc/pressure/cpu"),
    ("pressure_io.txt", "proc/pressure/io"),
];

fn record(recording: &str) {
    let scratch = Scratch::new("fixture-root");
    for (name, place) in FILES {
        let place = scratch.path(place);
        fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(name);
        fs::copy(&corpus, place)
            .unwrap_or_else(|error| panic!("cannot copy {}: {error}", corpus.display()));
    }
    let root = scratch.path("").display().to_string();
    let _none = fs::remove_dir_all(recording);
    stdout_of(&[
        "record", "-s", "cdnmp", "-i", ".05", "-c", "4", "--root", &root, "-f", recording,
    ]);
}

#[test]
fn a_recording_of_version_0_is_read_for_ever() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let recording = folder.join("recording-0").display().to_string();
    let golden = folder.join("recording-0.dump");
    let bless = std::env::var_os("KYMO_BLESS").is_some();
    if bless {
        record(&recording);
    }
    // Reading changes no file.
    let output = run(&["dump", &recording]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    if bless {
        fs::write(&golden, &output.stdout).expect("room");
    }
    let expect = fs::read(&golden).expect("fixtures/recording-0.dump");
    assert!(
        expect == output.stdout,
        "kymo dump {recording} differs from {}",
        golden.display()
    );
    for (_, source) in FILES {
        let name = source.replace("proc/1/net", "proc/net");
        let line = format!(">>> {name} ");
        assert!(String::from_utf8_lossy(&expect).contains(&line), "{line}");
    }
}
