//! Tests on a simulated disk: full disks, power cuts, damage, age, rates for thresholds. The bytes are compared with rateup's in
//! tests/all/poll_logs.rs.

use super::super::{Kind, POINTS_KEPT_S};
use super::*;
use crate::mrtg_log::{RateKind, Unknown};
use kymo_sys::sim_disk::{Faults, SimDisk};

const FOLDER: &str = "/log";
const NOW_S: i64 = 1_700_000_000;

fn series(name: &str) -> Series {
    Series {
        path: PathBuf::from(format!("{FOLDER}/{name}.rrd")),
        folder_bytes: FOLDER.len() + 1,
        name: name.into(),
        step_s: 300,
        heartbeat_s: 600,
        kind: Kind::Counter,
        max: [None; 2],
        archives: Vec::new().into(),
        points_kept_s: POINTS_KEPT_S,
        log: LogRule {
            kind: RateKind::Counter,
            bound: 1_000_000,
            unknown: Unknown::Repeat,
        },
        max_age_s: None,
    }
}

struct Case {
    disk: SimDisk,
    logs: Logs,
    rates: Vec<Rate>,
    troubles: Vec<String>,
}

impl Case {
    fn new() -> Case {
        let disk = SimDisk::new(1);
        disk.create_dir_all(Path::new(FOLDER)).unwrap();
        Case::on(disk, series("a"))
    }

    fn on(disk: SimDisk, series: Series) -> Case {
        let mut logs = Logs::new(Arc::new(disk.clone())).unwrap();
        logs.begin(vec![series], &[0]);
        Case {
            disk,
            logs,
            rates: Vec::new(),
            troubles: Vec::new(),
        }
    }

    /// Writes a value; returns the cause of a refusal.
    fn write(&mut self, after_s: i64, values: &str) -> Result<(), String> {
        let mut batch = Batch::default();
        let argument = format!("{}.5:{values}", NOW_S + after_s);
        batch.push(0, |out| out.extend(argument.as_bytes()));
        let mut report = Report::default();
        self.logs.write(&batch, &mut report);
        self.rates = report.rates;
        self.troubles = report.troubles;
        report
            .refused
            .pop()
            .map_or(Ok(()), |refusal| Err(refusal.cause))
    }

    fn text(&self, name: &str) -> Option<String> {
        let bytes = self.disk.bytes(&Path::new(FOLDER).join(name))?;
        Some(String::from_utf8(bytes).unwrap())
    }

    /// The first lines of a file.
    fn lines(&self, name: &str, count: usize) -> Vec<String> {
        let text = self.text(name).unwrap_or_default();
        text.lines().take(count).map(str::to_string).collect()
    }
}

#[test]
fn a_value_becomes_a_row() {
    let mut case = Case::new();
    case.write(0, "1000:5").unwrap();
    assert_eq!(case.logs.counts().created, 1);
    assert_eq!(case.text("a.old"), None);
    case.write(300, "31000:U").unwrap();
    let expected = [
        "1700000300 31000 -1",
        "1700000300 100 0 100 0",
        "1700000000 0 0 0 0",
    ];
    assert_eq!(case.lines("a.log", 3), expected);
    assert_eq!(case.lines("a.old", 1), ["1700000000 1000 5"]);
    // MRTG adds 2^31 to negative values.
    case.write(600, "-5:-2147483649").unwrap();
    assert_eq!(case.lines("a.log", 1), ["1700000600 2147483643 -1"]);
    assert_eq!(
        (case.logs.counts().created, case.logs.counts().kept),
        (1, 3)
    );
}

#[test]
fn rates_for_thresholds_are_those_of_five_minutes_of_the_clock() {
    let mut case = Case::new();
    // 1,700,000,100 is a multiple of 300.
    case.write(100, "0:0").unwrap();
    case.write(400, "30000:3000").unwrap();
    assert_eq!(case.rates.len(), 1);
    assert_eq!(
        (case.rates[0].target, case.rates[0].rates),
        (0, [100.0, 10.0])
    );
    case.write(550, "60000:3000").unwrap();
    assert_eq!(case.rates[0].rates, [100.0, 10.0]);
    case.write(700, "60000:3000").unwrap();
    assert_eq!(case.rates[0].rates, [100.0, 0.0]);
}

#[test]
fn a_log_of_the_future_stays_as_it_is() {
    let mut case = Case::new();
    case.write(600, "1:1").unwrap();
    let before = case.text("a.log");
    let cause =
        "cannot update /log/a.log: its last value is of 1700000600, which is later than 1700000000";
    assert_eq!(case.write(0, "2:2"), Err(cause.into()));
    assert_eq!((case.text("a.log"), case.rates.len()), (before, 0));
}

#[test]
fn damage_is_said() {
    let mut case = Case::new();
    case.write(0, "1:1").unwrap();
    case.write(300, "2:2").unwrap();
    let (log, old) = (Path::new("/log/a.log"), Path::new("/log/a.old"));
    case.disk.set_bytes(log, b"nonsense\n".to_vec());
    case.write(600, "3:3").unwrap();
    assert_eq!(
        case.troubles,
        [
            "cannot read /log/a.log: its first line is no time and two values; the state before it, .old, is used"
        ]
    );
    assert_eq!(case.lines("a.log", 3)[2], "1700000000 0 0 0 0");
    let newer = b"1700000000 1 1\n1800000000 1 1 1 1\n";
    case.disk.set_bytes(log, newer.to_vec());
    case.disk.set_bytes(old, newer.to_vec());
    let cause = "cannot update /log/a.log: a row is newer than the one before, and in its .old a row is newer than the one before";
    assert_eq!(case.write(900, "3:3"), Err(cause.into()));
    assert_eq!(case.text("a.log").unwrap().as_bytes(), newer);
    case.disk.set_bytes(log, vec![b' '; 2 << 20]);
    let cause = "cannot read /log/a.log: it is larger than 1 MiB";
    assert_eq!(case.write(900, "3:3"), Err(cause.into()));
    case.disk.set_bytes(log, Vec::new());
    case.disk.unlink(old).unwrap();
    case.write(900, "3:3").unwrap();
    assert_eq!(
        case.troubles,
        [
            "cannot read /log/a.log: its first line is no time and two values, and there is no .old of use; a new one begins"
        ]
    );
}

#[test]
fn names_and_ages_that_mrtg_refuses_are_refused() {
    let long = "n".repeat(121);
    let disk = SimDisk::new(1);
    disk.create_dir_all(Path::new(FOLDER)).unwrap();
    let mut case = Case::on(disk.clone(), series(&long));
    let cause = case.write(0, "1:1").unwrap_err();
    assert!(
        cause.ends_with("the target's name has more than 120 bytes"),
        "{cause}"
    );
    let mut case = Case::on(disk.clone(), series("dir/a"));
    case.write(0, "1:1").unwrap();
    let mut aged = series("dir/a");
    aged.max_age_s = Some(1000);
    // Files of a simulated disk are of 1970.
    let mut case = Case::on(disk, aged);
    let cause = "cannot read /log/dir/a.log: it is older than MaxAge (1000 s)";
    assert_eq!(case.write(300, "1:1"), Err(cause.into()));
}

#[test]
fn a_full_disk_costs_a_value_and_no_file() {
    let mut case = Case::new();
    case.write(0, "1:1").unwrap();
    case.write(300, "2:2").unwrap();
    let before = [case.text("a.log"), case.text("a.old")];
    case.disk.set_faults(Faults {
        full_writes: Some((1, 1_000_000)),
        ..Faults::default()
    });
    let cause = case.write(600, "3:3").unwrap_err();
    assert!(
        cause.starts_with("cannot update /log/a.log: No space left"),
        "{cause}"
    );
    assert_eq!([case.text("a.log"), case.text("a.old")], before);
    assert_eq!(case.disk.files().len(), 2, "{:?}", case.disk.files());
}

/// Whatever a power cut leaves of an update, the next one goes on from a state that was there before.
#[test]
fn a_power_cut_leaves_a_log() {
    for seed in 0..200 {
        let mut case = Case::new();
        case.write(0, "1:1").unwrap();
        case.write(300, "30001:1").unwrap();
        case.disk.sync_file_system(Path::new(FOLDER)).unwrap();
        let operations = case.disk.counts().operations;
        case.disk.set_faults(Faults {
            power_off_at: Some(operations + seed % 6),
            ..Faults::default()
        });
        let _may_fail = case.write(600, "60001:1");
        case.disk.crash_by_chance(seed);
        case.disk.set_faults(Faults::default());
        let mut case = Case::on(case.disk, series("a"));
        case.write(900, "90001:1").unwrap();
        let last = case.lines("a.log", 4);
        assert!(
            last.iter().any(|line| line.ends_with(" 100 0 100 0")),
            "seed {seed}: {last:?}, {:?}",
            case.troubles
        );
    }
}
