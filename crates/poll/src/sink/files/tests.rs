//! Tests on a simulated disk: locks, full disks, changes by others, changed configurations.

use super::super::logs::Logs;
use super::super::{Home, Kind, Layout, Layouts, POINTS_KEPT_S, Rate, Spans, heartbeat_s};
use super::*;
use crate::pages::{PageFolders, comments};
use jiff::tz::TimeZone;
use kymo_rrd::Rrd;
use kymo_sys::sim_disk::{Faults, SimDisk};
use kymo_wire::mrtg_cfg::{self, MemoryFiles};
use std::path::PathBuf;

const INTERVAL_S: u32 = 300;
const FOLDER: &str = "/log";

fn series(name: &str) -> Series {
    Series {
        path: PathBuf::from(format!("{FOLDER}/{name}.rrd")),
        folder_bytes: FOLDER.len() + 1,
        name: name.into(),
        step_s: INTERVAL_S,
        heartbeat_s: heartbeat_s(INTERVAL_S),
        kind: Kind::Counter,
        max: [Some(1000), None],
        archives: Layouts::default().archives(Layout {
            interval_s: INTERVAL_S,
            spans: Spans::Rrd,
            rows: [Some(5); 4],
            seasonal: Vec::new(),
        }),
        points_kept_s: POINTS_KEPT_S,
        log: Default::default(),
        max_age_s: None,
    }
}

struct Case {
    disk: SimDisk,
    files: Files,
    report: Report,
}

impl Case {
    fn new(names: &[&str]) -> Case {
        let disk = SimDisk::new(1);
        disk.create_dir_all(Path::new(FOLDER)).unwrap();
        Case::on(disk, names)
    }

    fn on(disk: SimDisk, names: &[&str]) -> Case {
        let mut files = Files::new(Arc::new(disk.clone()), 7).unwrap();
        files.begin(names.iter().map(|name| series(name)).collect(), &[0]);
        let report = Report::default();
        Case {
            disk,
            files,
            report,
        }
    }

    /// Writes values; returns the reported refusals.
    fn write(&mut self, updates: &[(usize, &str)]) -> Vec<String> {
        let mut batch = Batch::default();
        for (target, argument) in updates {
            batch.push(*target, |out| out.extend(argument.as_bytes()));
        }
        self.report.clear();
        self.files.write(&batch, &mut self.report);
        let causes = self.report.refused.iter();
        causes.map(|refusal| refusal.cause.clone()).collect()
    }

    fn rrd(&self, name: &str) -> Rrd {
        let path = PathBuf::from(format!("{FOLDER}/{name}.rrd"));
        Rrd::parse(&self.disk.bytes(&path).unwrap()).unwrap()
    }

    fn lock(&self, name: &str) -> Box<dyn DiskFile> {
        let tree = self.disk.tree(Path::new("/"), Reach::Anywhere).unwrap();
        let path = PathBuf::from(format!("{FOLDER}/{name}.rrd"));
        open(&*tree, &path).unwrap().unwrap()
    }
}

#[test]
fn a_point_is_told_once_it_is_complete() {
    let mut case = Case::new(&["a", "b"]);
    assert!(case.write(&[(0, "1500:0:0"), (1, "1500:0:0")]).is_empty());
    // The file begins at 1490, so its first point is unknown.
    assert!(case.report.rates[0].rates.iter().all(|rate| rate.is_nan()));
    assert!(
        case.write(&[(0, "1800:3000:600000"), (1, "1800:1:1")])
            .is_empty()
    );
    let expected = Rate {
        target: 0,
        time_s: 1800,
        rates: [10.0, 2000.0],
        failures: [f64::NAN; 2],
    };
    assert_eq!(
        format!("{:?}", case.report.rates),
        format!("[{expected:?}]")
    );
    // The first rate is above the maximum; the second column has none.
    case.write(&[(0, "2100:903000:900000000")]);
    assert_eq!(
        format!("{:?}", case.report.rates[0].rates),
        "[NaN, 2998000.0]"
    );
    case.write(&[(0, "2150:903000:900000000")]);
    assert!(case.report.rates.is_empty(), "within a point");
    assert_eq!(case.files.counts().kept, 6);
    assert_eq!(case.rrd("a").header.last_up, 2150);
}

#[test]
fn values_for_a_locked_file_wait_and_come_in_their_order() {
    let updates = ["1500:0:0", "1800:300:300", "2100:600:900", "2400:700:U"];
    let mut free = Case::new(&["a"]);
    updates
        .iter()
        .for_each(|update| assert!(free.write(&[(0, update)]).is_empty()));
    let mut case = Case::new(&["a", "b"]);
    case.write(&[(0, updates[0])]);
    let lock = case.lock("a");
    assert!(case.write(&[(0, updates[1]), (1, "1800:0:0")]).is_empty());
    assert!(case.write(&[(0, updates[2])]).is_empty());
    let counts = case.files.counts();
    assert_eq!((counts.delayed, counts.waiting, counts.kept), (2, 2, 2));
    // The configuration changes, and the target gets another number.
    case.files.begin(vec![series("b"), series("a")], &[]);
    drop(lock);
    assert!(case.write(&[(1, updates[3])]).is_empty());
    assert_eq!(case.files.counts().waiting, 0);
    assert!(case.rrd("a").to_bytes() == free.rrd("a").to_bytes());
    // Waiting values of a target that no longer exists are dropped.
    let _lock = case.lock("a");
    case.write(&[(1, "2700:1:1")]);
    case.files.begin(vec![series("b")], &[]);
    assert_eq!(case.files.counts().waiting, 0);
}

#[test]
fn no_more_than_a_days_values_wait() {
    let mut case = Case::new(&["a"]);
    case.write(&[(0, "1500:0:0")]);
    let _lock = case.lock("a");
    for at in 0..288 {
        assert!(
            case.write(&[(0, &format!("{}:0:0", 1800 + 300 * at))])
                .is_empty()
        );
    }
    assert_eq!(
        case.write(&[(0, "99000:0:0")]),
        ["cannot update /log/a.rrd: it is locked for too long"]
    );
    let counts = case.files.counts();
    assert_eq!((counts.waiting, counts.dropped), (288, 1));
}

#[test]
fn what_others_do_to_a_file_counts() {
    let mut case = Case::new(&["a"]);
    case.write(&[(0, "1500:0:0")]);
    let mut other = Case::on(case.disk.clone(), &["a"]);
    other.write(&[(0, "1800:300:300")]);
    assert_eq!(
        case.write(&[(0, "1700:100:100")]),
        [
            "cannot update /log/a.rrd: illegal attempt to update using time 1700 when last update time is 1800 (minimum one second step)"
        ]
    );
    // Another process replaces the file by a blank one, or by something else.
    case.disk.unlink(Path::new("/log/a.rrd")).unwrap();
    assert!(case.write(&[(0, "1900:0:0")]).is_empty());
    assert_eq!(case.files.counts().created, 2);
    for (bytes, message) in [
        (
            b"<xml>".to_vec(),
            "cannot read /log/a.rrd: reached EOF while loading header rrd->stat_head",
        ),
        (vec![7; 4096], "cannot read /log/a.rrd: is not an RRD file"),
        (
            case.rrd("a").to_bytes()[..3000].to_vec(),
            "cannot read /log/a.rrd: it is too small (should be 3552 bytes)",
        ),
    ] {
        case.disk.set_bytes(Path::new("/log/a.rrd"), bytes);
        assert_eq!(case.write(&[(0, "2000:0:0")]), [message]);
    }
}

#[test]
fn a_full_disk_costs_the_files_that_it_has_no_room_for() {
    let mut case = Case::new(&["a", "b"]);
    assert!(case.write(&[(0, "1500:0:0")]).is_empty());
    let capacity_bytes = Some(case.disk.allocated_bytes());
    case.disk.set_faults(Faults {
        capacity_bytes,
        ..Faults::default()
    });
    let messages = case.write(&[(1, "1800:0:0"), (0, "1800:300:300")]);
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0].starts_with("cannot create /log/b.rrd: "),
        "{messages:?}"
    );
    assert_eq!(case.rrd("a").header.last_up, 1800);
    assert_eq!(case.disk.files().len(), 1, "{:?}", case.disk.files());
    case.disk.set_faults(Faults::default());
    assert!(case.write(&[(1, "2100:0:0")]).is_empty());
    // If a row cannot be written its value is lost; the file stays valid.
    case.disk.set_faults(Faults {
        full_writes: Some((1, 1_000_000)),
        ..Faults::default()
    });
    let messages = case.write(&[(1, "2400:300:300")]);
    assert!(
        messages[0].starts_with("cannot update /log/b.rrd: No space left"),
        "{messages:?}"
    );
    assert_eq!(case.rrd("b").header.last_up, 2100);
}

#[test]
fn a_definition_follows_the_configuration() {
    let mut case = Case::new(&["d/a"]);
    case.write(&[(0, "1500:0:0")]);
    case.write(&[(0, "1800:300:300")]);
    let mut changed = series("d/a");
    changed.max = [None, Some(5)];
    changed.kind = Kind::Gauge;
    case.files.begin(vec![changed.clone()], &[]);
    assert!(case.write(&[(0, "2100:600.5:3")]).is_empty());
    case.files.begin(vec![changed], &[]);
    case.write(&[(0, "2200:1:1")]);
    assert_eq!(case.files.counts().tuned, 1);
    let header = case.rrd("d/a").header;
    assert_eq!(header.ds[0].dst(), b"GAUGE");
    assert!(f64::from_bits(header.ds[0].par[2]).is_nan());
    assert_eq!(f64::from_bits(header.ds[1].par[2]), 5.0);
    assert_eq!(header.pdp_prep[0].last_ds[..2], *b"1\0");
}

#[test]
fn a_file_is_made_with_the_history_of_a_log_or_not_at_all() {
    let mut case = Case::new(&["a"]);
    let log = Path::new("/log/a.log");
    case.disk.set_bytes(log, b"10000200 2 3\n".to_vec());
    let causes = case.write(&[(0, "10000500:0:0")]);
    assert!(causes[0].starts_with("cannot create /log/a.rrd: its .log cannot be converted ("));
    assert_eq!((causes.len(), case.files.counts().created), (1, 0));
    let mut text = String::from("10000200 100 200\n10000200 5 6 7 8\n");
    (0..8).for_each(|row| text += &format!("{} 5 6 7 8\n", 9_999_900 - row * 86_400));
    case.disk.set_bytes(log, text.into_bytes());
    assert!(case.write(&[(0, "10000500:400:800")]).is_empty());
    let rrd = case.rrd("a");
    assert_eq!(
        (rrd.header.last_up, case.files.counts().created),
        (10_000_500, 1)
    );
    // The file has the row of the log, and the counter goes on from there.
    assert!(
        [5.0, 6.0, 7.0, 8.0, 1.0, 2.0]
            .iter()
            .all(|rate| rrd.cells.contains(rate))
    );
    assert!(case.write(&[(0, "10000800:0:0")]).is_empty());
}

#[test]
fn a_file_that_is_too_old_is_left_alone() {
    let mut case = Case::new(&["a"]);
    case.write(&[(0, "1500:0:0")]);
    let mut aged = series("a");
    aged.max_age_s = Some(1000);
    // Files of a simulated disk are of 1970.
    case.files.begin(vec![aged], &[]);
    assert!(case.write(&[(0, "900:0:0")])[0].contains("illegal attempt"));
    assert_eq!(
        case.write(&[(0, "1800:0:0")]),
        ["cannot read /log/a.rrd: it is older than MaxAge (1000 s)"]
    );
}

/// A process that is killed between two writes leaves a file that the next value repairs.
#[test]
fn what_a_crash_leaves_is_a_file() {
    let updates = ["1500:0:0", "1800:300:300", "2100:600:900", "2400:700:1000"];
    let mut whole = Case::new(&["a"]);
    updates
        .iter()
        .for_each(|update| drop(whole.write(&[(0, update)])));
    for broken in 1..4 {
        let mut case = Case::new(&["a"]);
        updates[..3]
            .iter()
            .for_each(|update| drop(case.write(&[(0, update)])));
        let before = case.rrd("a");
        let writes = case.disk.counts().writes;
        case.disk.set_faults(Faults {
            broken_write: Some(writes + broken),
            ..Faults::default()
        });
        assert_eq!(case.write(&[(0, updates[3])]).len(), 1);
        // At most the value is lost.
        assert!(case.rrd("a").header == before.header, "write {broken}");
        assert!(case.write(&[(0, updates[3])]).is_empty());
        assert!(
            case.rrd("a").to_bytes() == whole.rrd("a").to_bytes(),
            "write {broken}"
        );
    }
}

#[test]
fn a_folder_has_one_writer_for_a_configuration() {
    let case = Case::new(&[]);
    let claim = |config: &str| {
        let mut files = Files::new(Arc::new(case.disk.clone()), 1).unwrap();
        let claimed = files.claim(Path::new(FOLDER), Path::new(config)).unwrap();
        (files, claimed)
    };
    let (first, claimed) = claim("/etc/mrtg.cfg");
    assert!(claimed && !claim("/etc/mrtg.cfg").1);
    assert!(claim("/etc/other.cfg").1);
    drop(first);
    assert!(claim("/etc/mrtg.cfg").1);
}

/// A file's step may be longer than a graph's: also within it a page has the newest rate, as with a log.
#[test]
fn a_page_has_the_newest_rate_at_any_moment() {
    const BEGIN_S: i64 = 1_700_006_400;
    for (interval, after_s) in [5, 10, 30, 60]
        .into_iter()
        .flat_map(|interval| [10, 290, 310, 1000, 1790, 1810, 3500].map(|after| (interval, after)))
    {
        let newest = ["", "LogFormat: rrdtool\n"].map(|format| {
            let text = format!(
                "WorkDir: /tmp\nInterval: {interval}\n{format}Target[t]: `x`\nTitle[t]: T\nMaxBytes[t]: 10000\nOptions[t]: gauge\n"
            );
            let mut configs = MemoryFiles::default();
            configs.add("/m.cfg", text.as_bytes());
            let config = mrtg_cfg::read(b"/m.cfg", &mut configs);
            let config = config.unwrap_or_else(|problems| panic!("{problems:?}"));
            let series = Series::of_all(&config, &Home::new(Path::new(FOLDER), b"m", None));
            let folders = PageFolders::of(config.globals(), Some(Path::new(FOLDER)));
            let pages = TargetPage::of_all(&config, &folders, &TimeZone::UTC);
            let disk = SimDisk::new(1);
            disk.create_dir_all(Path::new(FOLDER)).unwrap();
            let mut logs = Logs::new(Arc::new(disk.clone())).unwrap();
            let mut files = Files::new(Arc::new(disk.clone()), 7).unwrap();
            logs.begin(series.clone(), &[]);
            files.begin(series, &[]);
            logs.set_pages(pages.clone(), Vec::new());
            files.set_pages(pages);
            for cycle in 0..2 + 7200 / (interval * 60) {
                let (mut batch, mut report) = (Batch::default(), Report::default());
                let time_s = BEGIN_S + after_s % (interval * 60) + cycle * interval * 60;
                let argument = format!("{time_s}.5:{}:2000", 1000 + 3 * cycle);
                batch.push(0, |out| out.extend(argument.as_bytes()));
                match format {
                    "" => logs.write(&batch, &mut report),
                    _ => files.write(&batch, &mut report),
                }
                assert!(report.refused.is_empty(), "{:?}", report.refused);
            }
            let page = disk.bytes(&Path::new(FOLDER).join("t.html")).unwrap();
            let known = comments::read(&page);
            [0, 1].map(|period| [6, 7].map(|figure| known[period][figure].unwrap()))
        });
        let both = newest[0]
            .as_flattened()
            .iter()
            .zip(newest[1].as_flattened());
        for (of_log, of_rrd) in both {
            let differ = of_log.abs_diff(*of_rrd) > 3;
            assert!(
                !differ && *of_log > 1000,
                "{interval} {after_s}: {newest:?}"
            );
        }
    }
}
