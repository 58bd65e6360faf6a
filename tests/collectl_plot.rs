//! Differential test against the real collectl: a raw file of our own capture, under load, played
//! through collectl and through kymo in plot format; every column equal to two decimals, but
//! for collectl's listed bugs. Touches the live machine; needs collectl, gcc and gzip.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// How a column that collectl gets wrong is looked at instead.
#[derive(Clone, Copy, Debug)]
enum Instead {
    /// It is not compared.
    Differs,
    /// collectl divides by the nominal interval: equal after that, to a whole number.
    NominalInterval,
    /// Equal to a hundredth.
    Hundredth,
    /// collectl's values stand under other names of the same instance.
    Swapped(&'static str),
}

/// collectl's bugs: file, exact column name (without the instance), what is done instead, why.
const BUGS: &[(&str, &str, Instead, &str)] = &[
    (
        "tab",
        "[MEM]Shared",
        Instead::Differs,
        "always 0: the last line that begins with nr_shmem wins",
    ),
    (
        "tab",
        "[MEM]Inactive",
        Instead::Differs,
        "Inactive(file): the last line that begins with Inactive wins",
    ),
    (
        "cpu",
        "[CPU:]Guest%",
        Instead::Swapped("[CPU:]GuestN%"),
        "the data's order is Totl, Intrpt, Guest, GuestN",
    ),
    (
        "cpu",
        "[CPU:]GuestN%",
        Instead::Swapped("[CPU:]Intrpt"),
        "the data's order is Totl, Intrpt, Guest, GuestN",
    ),
    (
        "cpu",
        "[CPU:]Intrpt",
        Instead::Swapped("[CPU:]Guest%"),
        "the data's order is Totl, Intrpt, Guest, GuestN",
    ),
    (
        "prc",
        "SysT",
        Instead::Hundredth,
        "0.29 * 100 is cut off to 28",
    ),
    (
        "prc",
        "UsrT",
        Instead::Hundredth,
        "0.29 * 100 is cut off to 28",
    ),
    (
        "prc",
        "PCT",
        Instead::NominalInterval,
        "divides by the nominal interval",
    ),
    (
        "prc",
        "RKB",
        Instead::NominalInterval,
        "divides by the nominal interval",
    ),
    (
        "prc",
        "WKB",
        Instead::NominalInterval,
        "divides by the nominal interval",
    ),
    (
        "prc",
        "RKBC",
        Instead::NominalInterval,
        "divides by the nominal interval",
    ),
    (
        "prc",
        "WKBC",
        Instead::NominalInterval,
        "divides by the nominal interval",
    ),
    (
        "prc",
        "RSYS",
        Instead::NominalInterval,
        "divides by the nominal interval",
    ),
    (
        "prc",
        "WSYS",
        Instead::NominalInterval,
        "divides by the nominal interval",
    ),
    (
        "prc",
        "CNCL",
        Instead::NominalInterval,
        "divides by the nominal interval",
    ),
    (
        "prc",
        "MajF",
        Instead::NominalInterval,
        "divides by the nominal interval; large values read 12K",
    ),
    (
        "prc",
        "MinF",
        Instead::NominalInterval,
        "divides by the nominal interval; large values read 12K",
    ),
    (
        "prc",
        "UTC",
        Instead::Differs,
        "with -oU the time of playing, not of the sample",
    ),
];

/// A plot file: the names of its columns and its rows.
struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn read_table(path: &Path) -> Table {
    let output = Command::new("gzip")
        .arg("-dcf")
        .arg(path)
        .output()
        .expect("gzip");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let heads: Vec<String> = text
        .lines()
        .find_map(|line| line.strip_prefix("#UTC"))
        .map(|line| {
            format!("UTC{line}")
                .split_whitespace()
                .map(str::to_string)
                .collect()
        })
        .unwrap_or_else(|| panic!("no header in {}", path.display()));
    let cells = |line: &str| {
        line.splitn(heads.len(), ' ')
            .map(|cell| cell.trim().to_string())
            .collect()
    };
    let rows = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(cells)
        .collect();
    Table { heads, rows }
}

/// A name without its instance: `[CPU:0]User%` is a `[CPU:]User%`.
fn kind_of(head: &str) -> String {
    match (head.split_once(':'), head.split_once(']')) {
        (Some((tag, _)), Some((_, name))) => format!("{tag}:]{name}"),
        _ => head.to_string(),
    }
}

fn bug(file: &str, head: &str) -> Option<Instead> {
    let kind = kind_of(head);
    BUGS.iter()
        .find(|(f, name, ..)| *f == file && *name == kind)
        .map(|(_, _, instead, _)| *instead)
}

/// A number as collectl may have shortened it.
fn number(text: &str) -> Option<f64> {
    let scaled = [('K', 1e3), ('M', 1e6), ('G', 1e9)]
        .iter()
        .find_map(|(unit, by)| Some((text.strip_suffix(*unit)?, *by)));
    let (digits, by) = scaled.unwrap_or((text, 1.0));
    Some(digits.parse::<f64>().ok()? * by)
}

/// Whether two cells agree; `ratio` is the true interval by the nominal one.
fn agree(
    file: &str,
    heads: &[String],
    at: usize,
    theirs: &[String],
    ours: &[String],
    ratio: f64,
) -> bool {
    let (their, our) = (&theirs[at], &ours[at]);
    let near = |their: &str, our: f64, slack: f64| {
        number(their).is_some_and(|their| (their - our).abs() <= slack)
    };
    match bug(file, &heads[at]) {
        Some(Instead::Differs) => true,
        Some(Instead::Hundredth) => near(their, our.parse().unwrap_or(f64::NAN), 0.0101),
        Some(Instead::NominalInterval) => {
            let our = our.parse::<f64>().unwrap_or(f64::NAN) * ratio;
            let shortened = if their.ends_with(['K', 'M', 'G']) {
                0.1 * our
            } else {
                0.0
            };
            near(
                their,
                our,
                1.5 + shortened + ratio.max(1.0 / ratio) - 1.0 + our * 1e-6,
            )
        }
        Some(Instead::Swapped(name)) => {
            let instance = heads[at].split_once(']').map_or("", |(tag, _)| tag);
            let other = heads.iter().position(|head| {
                head.starts_with(&format!("{instance}]")) && kind_of(head) == name
            });
            other.is_some_and(|other| number(their) == number(&ours[other]))
        }
        None => match (number(their), number(our)) {
            // To two decimals: half a hundredth, and what the printing of it rounds.
            (Some(their), Some(our)) => (their - our).abs() < 0.0051 + 1e-9,
            _ => their == our,
        },
    }
}

/// Something for the counters to count: two busy loops, a writer that syncs, a compiler.
struct Load(Vec<Child>, PathBuf);

impl Load {
    fn start(dir: &Path) -> Load {
        let shell = |script: &str| {
            Command::new("sh")
                .arg("-c")
                .arg(script)
                .current_dir(dir)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("sh")
        };
        Load(
            vec![
                shell("while :; do :; done"),
                shell(
                    "while :; do dd if=/dev/zero of=big bs=64k count=20 conv=fsync; cat /proc/self/status; sleep 0.05; done",
                ),
                shell(
                    "while :; do echo 'int main(){return 1;}' > x.c; gcc -O1 -o x x.c; sleep 0.2; done",
                ),
            ],
            dir.to_path_buf(),
        )
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_file(self.1.join("big"));
    }
}

fn files(dir: &Path) -> BTreeMap<String, PathBuf> {
    let suffix = |path: &Path| {
        let name = path
            .file_name()?
            .to_str()?
            .trim_end_matches(".gz")
            .to_string();
        Some(name.rsplit_once('.')?.1.to_string())
    };
    let paths = fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path());
    paths
        .filter_map(|path| Some((suffix(&path)?, path)))
        .collect()
}

/// Seconds from each sample to the one before, from the raw file's markers.
fn elapsed(raw: &Path) -> Vec<f64> {
    let output = Command::new("gzip")
        .arg("-dc")
        .arg(raw)
        .output()
        .expect("gzip");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let times: Vec<f64> = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix(">>> ")?
                .strip_suffix(" <<<")?
                .parse()
                .ok()
        })
        .collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn compare_wide(suffix: &str, theirs: &Table, ours: &Table, wrong: &mut Vec<String>) {
    assert_eq!(theirs.heads, ours.heads, "headers of .{suffix}");
    assert_eq!(theirs.rows.len(), ours.rows.len(), "lines of .{suffix}");
    for (line, (their, our)) in theirs.rows.iter().zip(&ours.rows).enumerate() {
        assert_eq!(their.len(), our.len(), "columns of .{suffix}, line {line}");
        for (at, head) in theirs.heads.iter().enumerate() {
            if !agree(suffix, &theirs.heads, at, their, our, 1.0) {
                wrong.push(format!(
                    ".{suffix} {line} {head}: collectl {}, kymo {}",
                    their[at], our[at]
                ));
            }
        }
    }
}

/// The lines of processes, an interval each: process 1 is in all of them, and first in both.
fn by_interval(table: &Table) -> Vec<BTreeMap<&str, &Vec<String>>> {
    let mut intervals: Vec<BTreeMap<&str, &Vec<String>>> = Vec::new();
    for row in &table.rows {
        if row[1] == "1" {
            intervals.push(BTreeMap::new());
        }
        if let Some(interval) = intervals.last_mut() {
            interval.insert(&row[1], row);
        }
    }
    intervals
}

fn compare_processes(theirs: &Table, ours: &Table, elapsed: &[f64], wrong: &mut Vec<String>) {
    assert_eq!(theirs.heads, ours.heads, "headers of .prc");
    let (their, our) = (by_interval(theirs), by_interval(ours));
    assert_eq!(their.len(), our.len(), "intervals of .prc");
    for (n, (their, our)) in their.iter().zip(&our).enumerate() {
        for (pid, our) in our {
            let Some(their) = their.get(pid) else {
                wrong.push(format!(".prc {n} process {pid} is not in collectl's"));
                continue;
            };
            for (at, head) in theirs.heads.iter().enumerate() {
                if !agree("prc", &theirs.heads, at, their, our, elapsed[n]) {
                    wrong.push(format!(
                        ".prc {n} {pid} {head}: collectl {}, kymo {}",
                        their[at], our[at]
                    ));
                }
            }
        }
        // collectl's first interval still has processes that ended in it.
        if n > 0 && their.len() != our.len() {
            wrong.push(format!(
                ".prc {n}: collectl has {} processes, kymo {}",
                their.len(),
                our.len()
            ));
        }
    }
}

#[test]
fn plot_files_are_those_of_collectl() {
    let dir = std::env::temp_dir().join(format!("kymo-differential-{}", std::process::id()));
    let (raw, reference, own) = (dir.join("raw"), dir.join("reference"), dir.join("own"));
    for folder in [&raw, &reference, &own] {
        fs::create_dir_all(folder).expect("a temporary folder");
    }
    let collectl = |args: &[&str], to: &Path| {
        let done = Command::new("collectl")
            .args(args)
            .arg("-f")
            .arg(to)
            .output();
        done.expect("collectl, which `make test` installs");
    };
    let load = Load::start(&dir);
    collectl(&["-scdnmCDNZ", "-i1:1", "-c8"], &raw);
    drop(load);
    let captured = files(&raw).into_values().next().expect("a raw file");
    let path = captured.to_str().expect("a name");
    collectl(&["-p", path, "-P", "-oU2", "-scdnmCDNZ"], &reference);
    let kymo = Command::new(kymo_tests::kymo())
        .args(["-p", path, "-P", "-oU2", "-scdnmCDNZ", "-f"])
        .arg(&own)
        .output()
        .expect("kymo");
    assert!(
        kymo.status.success(),
        "{}",
        String::from_utf8_lossy(&kymo.stderr)
    );

    let (theirs, ours) = (files(&reference), files(&own));
    let suffixes: Vec<_> = theirs.keys().map(String::as_str).collect();
    assert_eq!(suffixes, ["cpu", "dsk", "net", "prc", "tab"]);
    assert_eq!(
        ours.keys().map(String::as_str).collect::<Vec<_>>(),
        suffixes
    );
    let mut wrong = Vec::new();
    for (suffix, path) in &theirs {
        assert_eq!(path.file_name(), ours[suffix].file_name());
        let (theirs, ours) = (read_table(path), read_table(&ours[suffix]));
        match suffix.as_str() {
            "prc" => compare_processes(&theirs, &ours, &elapsed(&captured), &mut wrong),
            _ => compare_wide(suffix, &theirs, &ours, &mut wrong),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cells differ (kept in {}):\n{}",
        wrong.len(),
        dir.display(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    fs::remove_dir_all(&dir).expect("the temporary folder");
}
