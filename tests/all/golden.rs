//! Golden files: a small capture of collectl (golden/*.raw.gz), played in each format.
//! `UPDATE_GOLDEN=1` writes the present output; the diff goes with the commit.

use std::fs;
use std::path::Path;
use std::process::Command;

const CASES: &[(&str, &[&str])] = &[
    ("brief", &["-scdmn", "-oT"]),
    ("brief-plain", &["-scd"]),
    ("brief-stamps", &["-sc", "-oDm", "--hr", "2"]),
    ("verbose-cpu", &["-sc", "--verbose", "-oT"]),
    ("verbose-disk", &["-sd", "--verbose", "-od"]),
    ("verbose-net", &["-sn", "--verbose", "-oTm"]),
    ("verbose-memory", &["-sm", "--verbose"]),
    ("verbose-all", &["-scdmn", "--verbose", "-c2"]),
    ("detail-cpu", &["-sC", "-oT"]),
    ("detail-disk", &["-sD", "-oT"]),
    ("detail-net", &["-sN", "-oT"]),
    ("detail-all", &["-scCDN", "-c2"]),
    ("processes", &["-sZ"]),
    ("processes-io", &["-sZ", "--procopts", "iw"]),
    ("processes-memory", &["-sZ", "--procopts", "m"]),
    (
        "processes-switches",
        &["-sZ", "--procopts", "x", "--procfilt", "csh"],
    ),
    ("top", &["--top", "time,2"]),
    ("plot", &["-scdmnCDN", "-P", "-o2"]),
    ("plot-processes", &["-sZ", "-P", "-oU"]),
    ("counts", &["-scdn", "-on"]),
    ("csv", &["-scd", "--csv"]),
    ("csv-disks", &["-sD", "--csv", "--sep", ";"]),
    ("json", &["-scdmn", "--json", "-c2"]),
    ("json-details", &["-sCDNZ", "--json", "-c1"]),
    (
        "span",
        &["-sc", "-oT", "--from", "21:56:10", "--thru", "21:56:11"],
    ),
];

#[test]
fn every_format_of_a_small_capture() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let raw = folder.join("vm-20261121-215607.raw.gz");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut stale = Vec::new();
    for (name, args) in CASES {
        let output = Command::new(kymo_tests::kymo())
            .arg("play")
            .arg(&raw)
            .args(*args)
            .output()
            .expect("kymo");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let path = folder.join(format!("{name}.txt"));
        if update {
            fs::write(&path, &output.stdout).expect("a golden file");
        } else if fs::read(&path).unwrap_or_default() != output.stdout {
            stale.push(*name);
        }
    }
    assert!(
        stale.is_empty(),
        "not as in tests/golden: {stale:?}; if that is right, run with UPDATE_GOLDEN=1"
    );
}
