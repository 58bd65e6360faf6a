//! Differential test against the real collectl: a raw file captured under load is played by collectl
//! and by kymo in plot format. Every column is equal to two decimals, except for collectl's listed
//! bugs. Touches the live machine; needs collectl, gcc and gzip.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kymo_base::name::DisplayName;
use kymo_tests::machine::hold_devices;

use super::collectl_letters::{generated, nfs, two_ports};

/// Comparison of a column in which collectl is wrong.
#[derive(Clone, Copy, Debug)]
enum Instead {
    /// The column is not compared.
    Differs,
    /// collectl divides by the nominal interval; the values are equal after correction, to a whole number.
    NominalInterval,
    /// The values are equal to a hundredth.
    Hundredth,
    /// collectl's values stand under other names of the same instance.
    Swapped(&'static str),
    /// Where the sample lacks this line, kymo's value is checked against other lines of the sample.
    Unsaid,
}

/// collectl's bugs: file, exact column name (without the instance), comparison instead, reason.
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
    ("prc", "User", Instead::Unsaid, STALE),
    ("prc", "VmSize", Instead::Unsaid, STALE),
    ("prc", "VmLck", Instead::Unsaid, STALE),
    ("prc", "VmRSS", Instead::Unsaid, STALE),
    ("prc", "VmData", Instead::Unsaid, STALE),
    ("prc", "VmStk", Instead::Unsaid, STALE),
    ("prc", "VmExe", Instead::Unsaid, STALE),
    ("prc", "VmLib", Instead::Unsaid, STALE),
    ("prc", "Command", Instead::Unsaid, STALE),
    (
        "prc",
        "UTC",
        Instead::Differs,
        "with -oU the time of playing, not of the sample",
    ),
];

/// A zombie has no sizes and no command line; a process that ends during the read has no status. collectl then
/// goes on showing the earlier values of the process, or those of another process in the same place (it
/// forgets only if the pid is not new).
const STALE: &str = "where a sample has no such line, what was there before is shown";

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

/// A column name without its instance: `[CPU:0]User%` becomes `[CPU:]User%`.
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

/// A number that collectl may have shortened.
fn number(text: &str) -> Option<f64> {
    let scaled = [('K', 1e3), ('M', 1e6), ('G', 1e9)]
        .iter()
        .find_map(|(unit, by)| Some((text.strip_suffix(*unit)?, *by)));
    let (digits, by) = scaled.unwrap_or((text, 1.0));
    Some(digits.parse::<f64>().ok()? * by)
}

/// collectl subtracts seconds since 1970 as doubles, which are exact to 2.4e-7 s there; no interval here is shorter than half a
/// second. 113781 page faults in 1.004 s are 113327.689 a second, and 113327.70 to collectl.
const CLOCK: f64 = 4.8e-7;

/// True if two cells agree; `ratio` is the true interval divided by the nominal one.
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
        None | Some(Instead::Unsaid) => match (number(their), number(our)) {
            // Two decimals: half a hundredth, the rounding of the printed number, and collectl's clock.
            (Some(their), Some(our)) => (their - our).abs() < 0.0051 + 1e-9 + our * CLOCK,
            _ => their == our,
        },
    }
}

/// Load that the counters count: two busy loops, a writer that syncs, a compiler.
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

/// A sample of the raw file.
struct Sampled {
    /// Seconds since the previous sample.
    elapsed: f64,
    /// Values of each process, by pid.
    said: BTreeMap<String, Said>,
}

/// A sample's values of one process.
#[derive(Default)]
struct Said {
    /// Columns for which the sample has a line.
    columns: BTreeSet<String>,
    /// From stat: the name, the address space and the memory in RAM in KiB.
    name: String,
    size_kb: String,
    rss_kb: String,
}

impl Said {
    fn take(&mut self, line: &str) {
        if let Some(stat) = line.strip_prefix("stat ") {
            let Some((before, after)) = stat.rsplit_once(')') else {
                return;
            };
            self.name = before.split('(').skip(1).collect::<Vec<_>>().join("(");
            let number = |at| after.split_whitespace().nth(at)?.parse::<u64>().ok();
            self.size_kb = number(20).map_or(String::new(), |bytes| (bytes / 1024).to_string());
            self.rss_kb = number(21).map_or(String::new(), |pages| {
                (pages * kymo_sys::machine::page_size() / 1024).to_string()
            });
        } else if line.starts_with("cmd ") {
            self.columns.insert("Command".into());
        } else if let Some((name, _)) = line.split_once(':') {
            let column = if name == "Uid" { "User" } else { name };
            self.columns.insert(column.into());
        }
    }

    /// True if kymo's value is plausible where collectl's is wrong.
    fn allows(&self, column: &str, our: &str) -> bool {
        match column {
            "VmSize" => our == "0" || our == self.size_kb,
            "VmRSS" => our == "0" || our == self.rss_kb,
            "Command" => our == spelled(&self.name),
            "User" => our == "-",
            _ => our == "0",
        }
    }
}

/// The samples of a raw file without the first, which is the base of rates.
fn samples(raw: &Path) -> Vec<Sampled> {
    let output = Command::new("gzip")
        .arg("-dc")
        .arg(raw)
        .output()
        .expect("gzip");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut samples: Vec<Sampled> = Vec::new();
    let mut before = f64::NAN;
    for line in text.lines() {
        let mark = line.strip_prefix(">>> ");
        if let Some(time) = mark.and_then(|rest| rest.strip_suffix(" <<<")?.parse::<f64>().ok()) {
            samples.push(Sampled {
                elapsed: time - std::mem::replace(&mut before, time),
                said: BTreeMap::new(),
            });
        } else if let (Some(sample), Some(rest)) = (samples.last_mut(), line.strip_prefix("proc:"))
        {
            let (pid, rest) = rest.split_once(' ').expect("a process");
            sample.said.entry(pid.into()).or_default().take(rest);
        }
    }
    samples.remove(0);
    samples
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

/// The lines of processes, by interval. Process 1 is in every interval, and comes first in both programs.
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

/// True if a process's cells agree, or kymo's is right where collectl is known to be wrong.
fn process_agrees(
    heads: &[String],
    at: usize,
    theirs: &[String],
    ours: &[String],
    sample: &Sampled,
) -> bool {
    let (head, our) = (heads[at].as_str(), ours[at].as_str());
    if let (Some(Instead::Unsaid), Some(said)) = (bug("prc", head), sample.said.get(&ours[1])) {
        if !said.columns.contains(head) {
            return said.allows(head, our);
        }
        // stat is believed where status, which is read later, differs.
        if head == "VmSize" && our == said.size_kb || head == "VmRSS" && our == said.rss_kb {
            return true;
        }
    }
    // Any program may run on the machine meanwhile, with control characters in its name: kymo spells them out.
    head == "Command" && our == spelled(&theirs[at])
        || agree("prc", heads, at, theirs, ours, sample.elapsed)
}

fn spelled(name: &str) -> String {
    DisplayName(name.as_bytes()).to_string()
}

fn compare_processes(theirs: &Table, ours: &Table, samples: &[Sampled], wrong: &mut Vec<String>) {
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
                if !process_agrees(&theirs.heads, at, their, our, &samples[n]) {
                    wrong.push(format!(
                        ".prc {n} {pid} {head}: collectl {}, kymo {}",
                        their[at], our[at]
                    ));
                }
            }
        }
        // collectl's first interval still has processes that ended during it.
        if n > 0 && their.len() != our.len() {
            wrong.push(format!(
                ".prc {n}: collectl has {} processes, kymo {}",
                their.len(),
                our.len()
            ));
        }
    }
}

/// Columns of all letters: colplot, and scripts that plot columns by number, find in kymo's files the columns of collectl's
/// files. Left out are `l`, for which collectl has no code, and `E`, whose columns come from ipmitool. For `J` collectl writes
/// the file of CPUs, kymo one of interrupts.
#[test]
fn columns_of_all_letters_are_those_of_collectl() {
    if kymo_tests::machine::must_skip(&["collectl"]) {
        return;
    }
    let scratch = kymo_tests::Scratch::new("plot-columns");
    let raw = scratch.path("raw");
    fs::create_dir_all(&raw).expect("a folder");
    let captured = ["-sbcdimnstyBCDJMNTYZ", "-i1:1", "-c3", "-f"];
    let done = Command::new("collectl").args(captured).arg(&raw).output();
    assert!(done.expect("it starts").status.success());
    let of_this_machine = files(&raw).into_values().next().expect("a raw file");
    let of_this_machine = of_this_machine.to_str().expect("a name");
    let mut seen = BTreeSet::new();
    for letters in ["bcdimnstyBCDJMNTYZ", "cdmn", "bisty", "CDNZ", "BMTY"] {
        seen.extend(same_columns(&scratch, of_this_machine, letters));
    }
    let nfs = generated(&scratch, "fF", nfs(&[2, 3, 4]));
    seen.extend(same_columns(&scratch, &nfs, "fF"));
    let fabric = generated(&scratch, "xX", two_ports);
    seen.extend(same_columns(&scratch, &fabric, "xX"));
    let all = "bud cpu dsk ib net nfs numa prc slb tab tcp";
    assert_eq!(
        Vec::from_iter(&seen).as_slice(),
        Vec::from_iter(all.split(' ')).as_slice()
    );
}

/// Plays a raw file into plot files with both programs, compares the lines of names and returns the files' suffixes.
fn same_columns(scratch: &kymo_tests::Scratch, raw: &str, letters: &str) -> BTreeSet<String> {
    let kymo = kymo_tests::kymo();
    let of = |program: &Path| {
        let folder = scratch.path(&format!("{letters}-{}", program.display()).replace('/', "-"));
        fs::create_dir_all(&folder).expect("a folder");
        let args = ["-p", raw, "-P", "-s", letters, "-f"];
        let done = Command::new(program).args(args).arg(&folder).output();
        assert!(done.expect("it starts").status.success(), "{letters}");
        let mut heads = BTreeMap::new();
        for (suffix, path) in files(&folder) {
            let lines = lines_of(&path);
            let head = lines.iter().find(|line| line.starts_with("#Date"));
            let words = head.expect("a header").split_whitespace();
            // On a machine without such a device, collectl has no name for it.
            let bare = |word: &str| match suffix.as_str() {
                "ib" => kind_of(word),
                _ => word.to_string(),
            };
            let words: Vec<String> = words.map(bare).collect();
            heads.insert(suffix.clone(), words);
        }
        heads
    };
    let (theirs, mut ours) = (of(Path::new("collectl")), of(&kymo));
    assert_eq!(ours.remove("int").is_some(), letters.contains('J'));
    assert_eq!(ours, theirs, "{letters}");
    theirs.into_keys().collect()
}

/// The names and rows of a plot file, without the header about the program that wrote it.
fn lines_of(path: &Path) -> Vec<String> {
    let unpacked = Command::new("gzip").arg("-dc").arg(path).output();
    let text = String::from_utf8(unpacked.expect("gzip").stdout).expect("UTF-8");
    let lines = text.lines();
    let lines = lines.filter(|line| !line.starts_with('#') || line.starts_with("#Date"));
    lines.map(|line| line.trim_end().to_string()).collect()
}

/// Slabs are gauges, so every cell is equal. With `-oU` collectl stamps slabs with the time of playing.
#[test]
fn slabs_are_those_of_collectl() {
    if kymo_tests::machine::must_skip(&["collectl"]) {
        return;
    }
    let scratch = kymo_tests::Scratch::new("slabs");
    let folder = |name: &str| {
        let path = scratch.path(name);
        fs::create_dir_all(&path).expect("a folder");
        path
    };
    let (raw, reference, own) = (folder("raw"), folder("reference"), folder("own"));
    let run = |program: &Path, args: &[&str], to: &Path| {
        let done = Command::new(program).args(args).arg("-f").arg(to).output();
        assert!(done.expect("it starts").status.success(), "{args:?}");
    };
    let collectl = Path::new("collectl");
    run(collectl, &["-syY", "-i1:1", "-c4"], &raw);
    let captured = files(&raw).into_values().next().expect("a raw file");
    let played = ["-p", captured.to_str().expect("a name"), "-P", "-syY"];
    run(collectl, &played, &reference);
    run(&kymo_tests::kymo(), &played, &own);
    let shown = |program: &Path| {
        let done = Command::new(program)
            .args([&played[..2], &["-sY"]].concat())
            .output();
        let text = String::from_utf8(done.expect("it starts").stdout).expect("UTF-8");
        text.lines()
            // collectl prints a sign before zero, too.
            .map(|line| line.trim_end().replace("-0.0", " 0.0"))
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(&kymo_tests::kymo()), shown(collectl));
    let (theirs, ours) = (files(&reference), files(&own));
    for suffix in ["slb", "tab"] {
        let (theirs, ours) = (lines_of(&theirs[suffix]), lines_of(&ours[suffix]));
        assert!(theirs.len() > 3, "{theirs:?}");
        assert_eq!(ours, theirs, "{suffix}");
    }
    let name = captured.to_str().expect("a name");
    for (order, column) in [
        ("numobj", 0),
        ("actobj", 1),
        ("objsize", 2),
        ("numslab", 3),
        ("objslab", 4),
        ("totsize", 5),
        ("name", 8),
    ] {
        let top = format!("{order},9999");
        let of = |program: &Path| {
            let mut command = Command::new(program);
            let done = command.args(["-p", name, "--top", &top]).output();
            slab_rows(&String::from_utf8(done.expect("it starts").stdout).expect("text"))
        };
        let (mut theirs, mut ours) = (of(collectl), of(&kymo_tests::kymo()));
        assert!(theirs.len() >= 14, "{order}: {theirs:#?}");
        let ordered = |rows: &[Vec<String>]| -> Vec<String> {
            rows.iter().map(|row| row[column].clone()).collect()
        };
        assert_eq!(ordered(&ours), ordered(&theirs), "{order}");
        // Rows with equal values may come in another order.
        theirs.sort();
        ours.sort();
        assert_eq!(ours, theirs, "{order}");
    }
}

/// The rows of `--top`, each as words.
fn slab_rows(text: &str) -> Vec<Vec<String>> {
    let rows = text.lines().map(|line| {
        // collectl prints a sign before zero, too.
        let words = line.split_whitespace();
        let words = words.map(|word| if word == "-0.0" { "0.0" } else { word }.to_string());
        words.collect::<Vec<_>>()
    });
    rows.filter(|row| row.len() == 9 && !row[0].starts_with('#'))
        .collect()
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
    let (load, devices) = (Load::start(&dir), hold_devices());
    collectl(&["-scdnmCDNZ", "-i1:1", "-c8"], &raw);
    drop((load, devices));
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
            "prc" => compare_processes(&theirs, &ours, &samples(&captured), &mut wrong),
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
