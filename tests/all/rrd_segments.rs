//! A store beside stock's rrdtool, with the same files and the same values, of which rrdtool gets one in each call. Every
//! row of every archive, the state, and the output of a fetch equal rrdtool's to the last bit, whether parts of the
//! series are in memory, saved together, merged, in a file or opened again. Needs rrdtool.
//!
//! `SEED` is the first world's seed; a failure names the seed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kymo_base::random::next_random;
use kymo_rrd::{Rows, Rrd, fetch};
use kymo_store::{Files, Fresh, Refusal, Settings, Store};
use kymo_sys::clock::Stamp;
use kymo_sys::disk::Disk;
use kymo_sys::effort::{effort, first_seed};
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::SimDisk;
use kymo_tests::Scratch;
use kymo_tests::rrd_file::difference;
use kymo_tests::rrdtool::Pipe;

const START: i64 = 1_000_000_000;
const SECOND: u64 = 1_000_000_000;
const STEPS: u64 = 2500;

/// Definitions, and for each source true if it accepts any number.
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

/// Rows of the seasons: less than a block's values, and many blocks'.
const SEASONS: [u64; 8] = [12, 24, 41, 60, 144, 288, 720, 1440];
/// Series of a world, and the number of them with seasons: two of each definition.
const COUNT: usize = 20;
const SEASONAL: usize = 6;

struct Series {
    name: String,
    /// For each source, true if it accepts any number.
    any: &'static [bool],
    /// Rows of the season; 0: no season.
    season: u64,
    /// Rows of SEASONAL at the last comparison, and count of values since then.
    seasons: Vec<u64>,
    fresh: u64,
    stamp: i64,
    /// The series gets a value in one of this many turns.
    rare: u64,
}

/// Sources and archives of a series with a season: as `create` adds them, or each by itself, in two orders.
fn seasonal(number: u64) -> (String, u64) {
    let season = SEASONS[(number % 8) as usize];
    let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut pick = |below: u64| next_random(&mut random) % below;
    let model = ["HWPREDICT", "MHWPREDICT"][pick(2) as usize];
    let rows = season + pick(50);
    // Half a window must have at least one row.
    let least = 2000 / season + 1;
    let mut window = || {
        let part = least + pick(900 - least) / [1, 30][pick(2) as usize];
        format!("smoothing-window=0.{part:03}")
    };
    let (seasons, deviations) = (window(), window());
    let archives = match pick(5) {
        0 => format!("RRA:AVERAGE:0.5:1:40 RRA:HWPREDICT:{rows}:0.1:0.0035:{season}"),
        1 | 2 => format!(
            "RRA:AVERAGE:0.5:1:40 RRA:{model}:{rows}:0.1:0.0035:{season}:3 \
             RRA:SEASONAL:{season}:0.1:2:{seasons} RRA:DEVSEASONAL:{season}:0.2:2:{deviations} \
             RRA:DEVPREDICT:{rows}:4 RRA:FAILURES:{rows}:3:9:4"
        ),
        _ => format!(
            "RRA:SEASONAL:{season}:0.5:5:{seasons} RRA:DEVSEASONAL:{season}:0.3:5:{deviations} \
             RRA:FAILURES:{rows}:2:5:2 RRA:DEVPREDICT:{rows}:2 RRA:{model}:{rows}:0.4:0.01:{season}:1 \
             RRA:MAX:0.5:4:20"
        ),
    };
    let sources = "DS:a:GAUGE:60:U:U DS:b:ABSOLUTE:40:U:U DS:c:GAUGE:3600:U:U";
    (format!("{sources} {archives}"), season)
}

/// Counts of operations, so that no run passes without them.
#[derive(Debug, Default)]
struct Counts {
    judged: u64,
    values: u64,
    years: u64,
    kills: u64,
    blocks: u64,
    merges: u64,
    files: u64,
    /// For each length of a season, how often a smoothing was seen.
    smoothed: BTreeMap<u64, u64>,
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
        let files = match seed % 4 {
            0 => Files::After(Duration::from_secs(3000)),
            2 => Files::OnDemand,
            _ => Files::Never,
        };
        let settings = Settings {
            files,
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
        world
    }

    /// Makes at least one series of each kind.
    fn populate(&mut self, seed: u64) {
        for number in 0..COUNT {
            let name = format!("s{seed}-{number}.rrd");
            let rare = [1, 1, 2, 1, 30, 100, 3, 10, 1, 300][number % 10];
            if let Some(plain) = number.checked_sub(SEASONAL) {
                let (definitions, any) = KINDS[plain % KINDS.len()];
                self.create(&name, definitions, 0, any, rare);
                continue;
            }
            let (definitions, season) = seasonal(3 * seed + number as u64 % 3);
            let any = &[false, false, false];
            self.create(&name, &definitions, season, any, rare.min(2));
        }
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

    /// Creates a file on both sides, in which a season has already begun.
    fn create(
        &mut self,
        name: &str,
        definitions: &str,
        season: u64,
        any: &'static [bool],
        rare: u64,
    ) {
        let line = format!("create {name} -s 10 -b {START} {definitions}");
        self.rrdtool.must(&line);
        let at = self.series.len();
        self.series.push(Series {
            name: name.into(),
            any,
            season,
            seasons: Vec::new(),
            fresh: 0,
            stamp: START,
            rare,
        });
        let before = [0, 2 * season][self.random(4).min(1) as usize];
        for _ in 0..(before + self.random(season + 1)) / 100 {
            let values: Vec<String> = (0..100).map(|_| self.value(at, 10)).collect();
            self.rrdtool
                .must(&format!("update {name} {}", values.join(" ")));
        }
        let bytes = self.theirs(name);
        match self.settings.files {
            Files::After(_) | Files::OnDemand => self.disk.set_bytes(&World::place(name), bytes),
            Files::Never => {
                let rrd = Rrd::parse(&bytes).expect("rrdtool's file");
                let installed = self.store().install(name.as_bytes(), &rrd, false);
                installed.expect("a new series");
            }
        }
    }

    /// A value for all sources, `gap` seconds after the last.
    fn value(&mut self, at: usize, gap: i64) -> String {
        let series = &mut self.series[at];
        series.stamp += gap;
        let (any, season) = (series.any, series.season);
        let mut value = series.stamp.to_string();
        if self.random(3) == 0 {
            value += &format!(".{:06}", self.random(1_000_000));
        }
        for &any in any {
            value += ":";
            value += &match season {
                0 => self.field(any),
                _ => self.calm_field(),
            };
        }
        value
    }

    /// A number that is seldom unknown, so that few seasons are.
    fn calm_field(&mut self) -> String {
        match self.random(600) {
            0..6 => "U".into(),
            6 => "0".into(),
            _ => format!("{}.{:03}", 100 + self.random(100), self.random(1000)),
        }
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

    /// Sends values for one series to the store in one request, and to rrdtool one by one.
    fn update(&mut self, at: usize) {
        let season = self.series[at].season;
        let many = season > 0 && self.random(20) == 0;
        let count = 1 + self.random(if many { 150.max(season / 4) } else { 5 });
        let mut values = Vec::new();
        for _ in 0..count {
            let gap = match self.random(150) {
                0 => 31_536_000,
                1..5 => 4000,
                5..25 => 1 + self.random(90) as i64,
                _ => 10,
            };
            self.counts.years += u64::from(gap == 31_536_000);
            values.push(self.value(at, gap));
        }
        self.counts.values += count;
        self.series[at].fresh += count;
        let name = self.series[at].name.clone();
        self.give(&name, &values);
    }

    fn give(&mut self, name: &str, values: &[String]) {
        let lines = values.iter().map(|value| format!("update {name} {value}"));
        self.rrdtool.must_all(&lines.collect::<Vec<_>>());
        for _ in 0..2 {
            let store = self.store().clone();
            let mut batch = store.write_batch();
            let texts = values.iter().map(|value| value.as_bytes());
            let taken = batch.update(name.as_bytes(), texts);
            if taken == Err(Refusal::Untouched) {
                drop(batch);
                store.touch(name.as_bytes()).expect("a file");
                continue;
            }
            assert_eq!(taken, Ok(values.len()), "{}: {values:?}", self.story);
            batch.commit().expect("room");
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
            // Long enough for all delayed work.
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

    /// Compares the series, read as for a FETCH, with rrdtool's file.
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
        self.count_smoothed(at, &ours);
        let archive = self.random(ours.header.rra.len() as u64) as usize;
        let rra = &ours.header.rra[archive];
        let cf = String::from_utf8_lossy(rra.cf()).into_owned();
        let (step, rows) = (10 * rra.pdp_cnt, rra.row_cnt);
        let end = self.series[at].stamp - self.random(2 * step) as i64;
        let start = end - (self.random(rows + rows / 2 + 2) * step) as i64;
        let resolution = [step, 1][self.random(2) as usize];
        let mut fetch = |resolution| {
            let (header, rows) = (&opened.header, &mut opened.rows);
            printed(
                &fetch::fetch(header, rows, cf.as_bytes(), start, end, resolution).expect("rows"),
            )
        };
        let (ours, finest) = (fetch(resolution), fetch(u64::MAX));
        let line = format!("fetch {name} {cf} -s {start} -e {end} -r {resolution}");
        let theirs = self.rrdtool.must(&line);
        assert_eq!(ours, theirs, "{} {line}", self.story);
        let fetched = self
            .store()
            .fetch(name.as_bytes(), cf.as_bytes(), (start, end));
        let fetched = printed(&fetched.expect("rows"));
        assert_eq!(fetched, finest, "{} {line} through the store", self.story);
        *self.counts.fetches.entry(cf).or_default() += 1;
    }

    /// Notes a smoothing: a value changes at most two rows of a season, a smoothing changes all.
    fn count_smoothed(&mut self, at: usize, rrd: &Rrd) {
        let series = &mut self.series[at];
        let (header, mut now) = (&rrd.header, Vec::new());
        for (archive, rra) in header.rra.iter().enumerate() {
            if rra.cf() == b"SEASONAL" {
                let first = header.cell(archive, 0) as usize;
                let cells = &rrd.cells[first..][..rra.row_cnt as usize * header.ds.len()];
                now.extend(cells.iter().map(|cell| cell.to_bits()));
            }
        }
        let before = std::mem::replace(&mut series.seasons, now);
        let cells = before.iter().zip(&series.seasons);
        let changed = cells.filter(|(before, now)| before != now).count() / header.ds.len();
        if changed as u64 > 2 * std::mem::take(&mut series.fresh) {
            *self.counts.smoothed.entry(series.season).or_default() += 1;
        }
    }

    /// Compares the file after a FLUSH with rrdtool's.
    fn judge_file(&mut self, at: usize) {
        if self.settings.files == Files::Never {
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

fn printed(found: &fetch::Fetched) -> String {
    let mut printed = Vec::new();
    fetch::print(found, &mut printed);
    String::from_utf8_lossy(&printed).into_owned()
}

/// A user's report: from the first smoothing on 688 of 1,000 files differed.
#[test]
fn a_season_longer_than_a_block_is_rrdtools_after_each_value() {
    let scratch = Scratch::new("rrd-drum-season");
    let mut world = World::new(&scratch.path(""), 2, Counts::default());
    let definitions = "DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:40 RRA:HWPREDICT:300:0.1:0.0035:288";
    world.create("s.rrd", definitions, 0, &[true], 1);
    for number in 1..1000 {
        world.story = format!("value {number}");
        world.series[0].stamp += 10;
        let value = format!("{}:{}", world.series[0].stamp, number * number % 97);
        world.give("s.rrd", &[value]);
        world.maintain();
        world.judge(0);
        world.judge_file(0);
    }
    assert_eq!(world.counts.fetches.len(), 6, "{:?}", world.counts);
    assert!(world.counts.blocks > 10, "{:?}", world.counts);
}

#[test]
fn what_is_fetched_is_rrdtools_whatever_the_store_did_meanwhile() {
    let (first, worlds) = (first_seed(1), effort(16));
    eprintln!("SEED={first}");
    let scratch = Scratch::new("rrd-drum");
    let mut counts = Counts::default();
    for seed in first..first + worlds {
        let mut world = World::new(&scratch.path(""), seed, counts);
        world.populate(seed);
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
    assert_eq!(counts.fetches.len(), 10, "{counts:?}");
    // The shortest season is left out: values alone may change it wholly between two comparisons.
    let mut seasons = SEASONS[1..]
        .iter()
        .map(|season| counts.smoothed.get(season));
    assert!(seasons.all(|count| count > Some(&0)), "{counts:?}");
}
