//! A store beside stock's rrdtool, with the same files and the same values: every row of every archive, the state, and
//! what a fetch prints are rrdtool's to the last bit, whatever of it is in memory, saved, merged, in a file or opened
//! again. Needs rrdtool.
//!
//! `SEED` is the first world's seed, `KYMO_WORLDS` how many there are; a failure says which.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kymo_rrd::{Rows, Rrd, fetch};
use kymo_store::{Fresh, Refusal, Settings, Store};
use kymo_sys::clock::Stamp;
use kymo_sys::disk::Disk;
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::{SimDisk, next_random};
use kymo_tests::Scratch;
use kymo_tests::rrd_file::difference;
use kymo_tests::rrdtool::Pipe;

const START: i64 = 1_000_000_000;
const SECOND: u64 = 1_000_000_000;
const STEPS: u64 = 2500;

/// Definitions, and for each source whether it takes any number.
const KINDS: &[(&str, &[bool])] = &[
    (
        "DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:40 RRA:MIN:0.5:1:40 RRA:MAX:0.5:6:20 RRA:LAST:0.5:6:20",
        &[true],
    ),
    (
        "DS:in:COUNTER:60:0:U DS:out:DERIVE:40:0:1000000 DS:g:GAUGE:3600:-50:1e9 \
         RRA:AVERAGE:0.1:1:25 RRA:LAST:0.9:4:9 RRA:AVERAGE:0.5:7:11 RRA:MAX:0.5:360:30",
        &[false, false, true],
    ),
    (
        "DS:x:ABSOLUTE:120:U:U RRA:AVERAGE:0.5:1:60 RRA:HWPREDICT:30:0.1:0.0035:6",
        &[false],
    ),
    (
        "DS:x:GAUGE:60:U:U RRA:MIN:0.5:30:400 RRA:AVERAGE:0.99:8640:50 RRA:LAST:0:1:3",
        &[true],
    ),
];

struct Series {
    name: String,
    kind: usize,
    stamp: i64,
    /// One of so many turns it gets a value.
    rare: u64,
}

/// What happened, so that no run passes because nothing did.
#[derive(Debug, Default)]
struct Counts {
    judged: u64,
    values: u64,
    years: u64,
    kills: u64,
    blocks: u64,
    merges: u64,
    files: u64,
    fetches: BTreeMap<String, u64>,
}

struct World {
    rrdtool: Pipe,
    disk: SimDisk,
    clock: Arc<SimClock>,
    settings: Settings,
    store: Option<Store>,
    series: Vec<Series>,
    random: u64,
    story: String,
    counts: Counts,
}

impl World {
    fn new(folder: &Path, seed: u64, counts: Counts) -> World {
        let disk = SimDisk::new(seed);
        for folder in ["/j", "/db"] {
            disk.create_dir_all(Path::new(folder)).expect("a folder");
        }
        let clock = SimClock::new(Stamp {
            real_ns: START * SECOND as i64,
            mono_ns: 5 * SECOND,
            boot_ns: 5 * SECOND,
        });
        let has_files = seed.is_multiple_of(2);
        let settings = Settings {
            files: has_files.then_some(Duration::from_secs(3000)),
            journal_file_bytes: 32 << 10,
            lock_wait: Duration::ZERO,
            chunk_values: 8,
            journal_files: 4,
            segment_bytes: 12_000,
            ..Settings::new("/j/kymo", "/db")
        };
        let mut world = World {
            rrdtool: Pipe::start(folder),
            disk,
            clock: Arc::new(clock),
            settings,
            store: None,
            series: Vec::new(),
            random: seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1,
            story: format!("SEED={seed}"),
            counts,
        };
        world.open();
        for number in 0..20 {
            world.create(&format!("s{seed}-{number}.rrd"), number);
        }
        world
    }

    fn random(&mut self, below: u64) -> u64 {
        next_random(&mut self.random) % below
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }

    fn open(&mut self) {
        self.store = None;
        let disk = Arc::new(self.disk.clone());
        let opened = Store::open(self.settings.clone(), disk, self.clock.clone());
        let (store, replayed) = opened.expect("a store");
        assert_eq!(replayed.notices, Vec::<String>::new(), "{}", self.story);
        self.store = Some(store);
    }

    fn theirs(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.rrdtool.folder().join(name)).expect("rrdtool's file")
    }

    fn place(name: &str) -> PathBuf {
        Path::new("/db").join(name)
    }

    /// A file that both have.
    fn create(&mut self, name: &str, number: usize) {
        let kind = number % KINDS.len();
        let definitions = KINDS[kind].0;
        let line = format!("create {name} -s 10 -b {START} {definitions}");
        self.rrdtool.must(&line);
        let bytes = self.theirs(name);
        match self.settings.files {
            Some(_) => self.disk.set_bytes(&World::place(name), bytes),
            None => {
                let rrd = Rrd::parse(&bytes).expect("rrdtool's file");
                let installed = self.store().install(name.as_bytes(), &rrd, false);
                installed.expect("a new series");
            }
        }
        self.series.push(Series {
            name: name.into(),
            kind,
            stamp: START,
            rare: [1, 1, 2, 1, 30, 100, 3, 10, 1, 300][number % 10],
        });
    }

    fn field(&mut self, any: bool) -> String {
        let number = self.random(1 << 40);
        match (self.random(30), any) {
            (0, _) => "U".into(),
            (1..6, _) => "7".into(),
            (6..9, true) => format!("{}e-{}", number, number % 9),
            (9..20, true) => format!("{}.{:06}", number % 1000, number % 1_000_000),
            (20, true) => format!("-{}", number % 99),
            _ => format!("{}", number % 100_000),
        }
    }

    /// Values for one series, in one request.
    fn update(&mut self, at: usize) {
        let mut values = Vec::new();
        for _ in 0..1 + self.random(5) {
            let gap = match self.random(150) {
                0 => 31_536_000,
                1..5 => 4000,
                5..25 => 1 + self.random(90) as i64,
                _ => 10,
            };
            self.counts.years += u64::from(gap == 31_536_000);
            self.series[at].stamp += gap;
            let mut value = self.series[at].stamp.to_string();
            if self.random(3) == 0 {
                value += &format!(".{:06}", self.random(1_000_000));
            }
            for &any in KINDS[self.series[at].kind].1 {
                value += ":";
                value += &self.field(any);
            }
            values.push(value);
        }
        self.counts.values += values.len() as u64;
        let name = self.series[at].name.clone();
        self.rrdtool
            .must(&format!("update {name} {}", values.join(" ")));
        for _ in 0..2 {
            let store = self.store().clone();
            let mut turn = store.turn();
            let texts = values.iter().map(|value| value.as_bytes());
            let taken = turn.update(name.as_bytes(), texts);
            if taken == Err(Refusal::Untouched) {
                drop(turn);
                store.touch(name.as_bytes()).expect("a file");
                continue;
            }
            assert_eq!(taken, Ok(values.len()), "{}: {values:?}", self.story);
            turn.commit().expect("room");
            return;
        }
        panic!("{}: {name} is not known", self.story);
    }

    fn segments(&self) -> Vec<String> {
        let files = self.disk.files().into_iter();
        let names = files.filter_map(|(path, _)| Some(path.file_name()?.to_str()?.to_string()));
        names.filter(|name| name.starts_with("segment-")).collect()
    }

    fn maintain(&mut self) {
        let before = self.segments();
        self.store().maintain();
        let after = self.segments();
        let new = after.iter().filter(|name| !before.contains(name));
        let (mut merged, mut begun) = (0, 0);
        for name in new {
            match name.ends_with("-0") {
                true => begun += 1,
                false => merged += 1,
            }
        }
        self.counts.merges += merged;
        self.counts.blocks += begun;
    }

    fn step(&mut self) {
        let at = self.random(self.series.len() as u64) as usize;
        let rare = self.series[at].rare;
        if self.random(rare) == 0 {
            self.update(at);
        }
        let seconds = self.random(4);
        self.clock.advance_ns(seconds * SECOND);
        match self.random(120) {
            0..30 => self.maintain(),
            30..34 => self.store().checkpoint(),
            // Old enough for all that waits.
            34 => {
                self.clock.advance_ns(7 * 3600 * SECOND);
                self.maintain();
            }
            35 | 36 => self.open(),
            37 | 38 => {
                self.disk.kill();
                self.counts.kills += 1;
                self.open();
            }
            39 => {
                self.store().shutdown(true).expect("an end");
                self.open();
            }
            40..50 => self.judge(at),
            50..54 => self.judge_file(at),
            _ => {}
        }
    }

    /// The series as a FETCH reads it is rrdtool's file.
    fn judge(&mut self, at: usize) {
        let name = self.series[at].name.clone();
        let theirs = self.theirs(&name);
        let opened = self.store().read(name.as_bytes(), Fresh::Flushed);
        let mut opened = opened.unwrap_or_else(|why| panic!("{} {name}: {why:?}", self.story));
        let mut cells = vec![0.0; opened.header.cell_count() as usize];
        opened.rows.read(0, &mut cells).expect("rows");
        let header = opened.header.clone();
        let ours = Rrd { header, cells };
        let differ = difference(&ours.to_bytes(), &theirs);
        assert_eq!(differ, None, "{} {name}, {:?}", self.story, self.counts);
        self.counts.judged += 1;
        let archive = self.random(ours.header.rra.len() as u64) as usize;
        let rra = &ours.header.rra[archive];
        let cf = String::from_utf8_lossy(rra.cf()).into_owned();
        let (step, rows) = (10 * rra.pdp_cnt, rra.row_cnt);
        let end = self.series[at].stamp - self.random(2 * step) as i64;
        let start = end - (self.random(rows + rows / 2 + 2) * step) as i64;
        let resolution = [step, 1][self.random(2) as usize];
        let found = fetch::fetch(
            &opened.header,
            &mut opened.rows,
            cf.as_bytes(),
            start,
            end,
            resolution,
        );
        let mut printed = Vec::new();
        fetch::print(&found.expect("rows"), &mut printed);
        let line = format!("fetch {name} {cf} -s {start} -e {end} -r {resolution}");
        let theirs = self.rrdtool.must(&line);
        assert_eq!(
            String::from_utf8_lossy(&printed),
            theirs,
            "{} {line}",
            self.story
        );
        *self.counts.fetches.entry(cf).or_default() += 1;
    }

    /// The file that a FLUSH leaves is rrdtool's.
    fn judge_file(&mut self, at: usize) {
        if self.settings.files.is_none() {
            return;
        }
        let name = self.series[at].name.clone();
        self.store().flush(name.as_bytes()).expect("a file");
        let ours = self.disk.bytes(&World::place(&name)).expect("a file");
        let differ = difference(&ours, &self.theirs(&name));
        assert_eq!(differ, None, "{} {name} as a file", self.story);
        self.counts.files += 1;
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn what_is_fetched_is_rrdtools_whatever_the_store_did_meanwhile() {
    let (first, worlds) = (number("SEED", 1), number("KYMO_WORLDS", 24));
    eprintln!("SEED={first}");
    let scratch = Scratch::new("rrd-drum");
    let mut counts = Counts::default();
    for seed in first..first + worlds {
        let mut world = World::new(&scratch.path(""), seed, counts);
        for number in 0..STEPS {
            world.story = format!("SEED={seed} step {number}");
            world.step();
        }
        for at in 0..world.series.len() {
            world.judge(at);
            world.judge_file(at);
        }
        counts = world.counts;
    }
    eprintln!("{counts:?}");
    if worlds < 10 {
        return;
    }
    let each = [
        counts.judged / 100,
        counts.values / 1000,
        counts.years / 5,
        counts.kills / 10,
        counts.blocks / 10,
        counts.merges / 5,
        counts.files / 20,
    ];
    assert!(each.iter().all(|&count| count >= worlds), "{counts:?}");
    assert_eq!(counts.fetches.len(), 9, "{counts:?}");
}
