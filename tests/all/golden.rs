//! Golden files: a small capture of collectl (golden/*.raw.gz), played in each format.
//! `UPDATE_GOLDEN=1` writes the present output; the diff goes with the commit.

use std::path::Path;
use std::process::Command;

use kymo_tests::golden_files;

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
    let outputs = CASES.iter().map(|(name, args)| {
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
        (format!("{name}.txt"), output.stdout)
    });
    golden_files::judge(&folder, outputs);
}
