//! A farm, a configuration for it with cycles of two seconds, `kymo poll` on it, and the newest value and stamp of each .rrd
//! file, which are compared with the agent's counter at that moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kymo_agentfarm::traffic::{Direction, rate};
use kymo_agentfarm::{Behaviour, Farm, Settings};
use kymo_rrd::Header;
use kymo_tests::{Running, Scratch, kymo};

/// Seconds of a cycle.
pub(super) const CYCLE_S: u64 = 2;
/// Longest distance between a value and its stamp on a busy machine. A value under the wrong poll is a cycle or more away.
const OFF_MAX_S: f64 = 1.0;
const PATIENCE: Duration = Duration::from_secs(90);
/// Keeps files small: they would have 4 MB otherwise.
const FEW_ROWS: &str =
    "RRDRowCount[_]: 100\nRRDRowCount30m[_]: 10\nRRDRowCount2h[_]: 10\nRRDRowCount1d[_]: 10\n";
/// Time between two reads of a file.
const LOOK: Duration = Duration::from_millis(100);

/// Counters that targets ask for.
#[derive(Clone, Copy)]
pub(super) enum Counters {
    /// `#Gi0/1` by v2c, 64 bits.
    Named,
    /// `1` by v1, 32 bits.
    Short,
}

pub(super) struct Stage {
    pub farm: Farm,
    pub scratch: Scratch,
    community: &'static str,
    more: String,
    /// Device, start of counting in nanoseconds since 1970, and first value in bytes.
    counting: Mutex<Vec<(u32, u64, u64)>>,
    /// Values have 32 bits.
    short: bool,
}

/// The newest value of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sample {
    /// Nanoseconds since 1970.
    pub stamp_ns: u64,
    /// In and out; `None`: unknown.
    pub values: Option<[u64; 2]>,
}

/// Samples of each target (device, interface), in their order.
pub(super) type Seen = BTreeMap<(u32, u32), Vec<Sample>>;

impl Stage {
    pub(super) fn new(devices: u32, interfaces: u32) -> Stage {
        Stage::with_community(devices, interfaces, "public")
    }

    pub(super) fn with_community(devices: u32, interfaces: u32, community: &'static str) -> Stage {
        let settings = Settings {
            first: [127, 0, 12, 60].into(),
            port: 0,
            devices,
            interfaces,
            community: community.into(),
        };
        let farm = Farm::start(settings).unwrap_or_else(|why| panic!("cannot start a farm: {why}"));
        Stage {
            farm,
            scratch: Scratch::new("poll"),
            community,
            more: String::new(),
            counting: Mutex::default(),
            short: false,
        }
    }

    pub(super) fn change(&self, device: u32, change: impl FnOnce(&mut Behaviour, u64)) {
        self.farm.change(device, change);
    }

    /// The device starts to count at `bytes`, with or without a restart.
    pub(super) fn count_from(&self, device: u32, bytes: u64, is_restart: bool) {
        self.farm.change(device, |behaviour, now_ns| {
            if is_restart {
                behaviour.restart(now_ns);
            }
            behaviour.count_from(bytes, now_ns);
            let mut counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
            counting.push((device, now_ns, bytes));
        });
    }

    /// Adds lines to the configuration.
    pub(super) fn say(&mut self, lines: &str) {
        self.more.push_str(lines);
    }

    /// A device in the spelling of targets, with a timeout of a fifth of a second and three attempts.
    pub(super) fn agent(&self, device: u32, version: u32) -> String {
        let (address, port) = (self.farm.address(device), self.farm.settings().port);
        format!("{}@{address}:{port}:0.2:3:1:{version}", self.community)
    }

    pub(super) fn configuration(&self) -> PathBuf {
        self.scratch.path("mrtg.cfg")
    }

    /// Adds a target for the first device, and targets that each sum up to a hundred of the others.
    pub(super) fn configure_sums(&mut self) {
        let others: Vec<u32> = (1..self.farm.settings().devices).collect();
        for (n, devices) in others.chunks(100).enumerate() {
            let terms = devices
                .iter()
                .map(|&device| format!("1:{}", self.agent(device, 1)));
            let sum = terms.collect::<Vec<_>>().join(" + ");
            self.say(&target(&format!("sum{n}"), &sum));
        }
        self.configure_devices(Counters::Short, 1);
    }

    /// Writes a configuration of all interfaces.
    pub(super) fn configure(&mut self, counters: Counters) {
        self.configure_devices(counters, self.farm.settings().devices);
    }

    /// Writes a configuration of the added lines only.
    pub(super) fn configure_no_device(&mut self) {
        self.configure_devices(Counters::Named, 0);
    }

    fn configure_devices(&mut self, counters: Counters, devices: u32) {
        self.short = matches!(counters, Counters::Short);
        let mut text = format!(
            "WorkDir: {}\nLogFormat: rrdtool\nRunAsDaemon: yes\nNoDetach: yes\nInterval: 0:{CYCLE_S:02}\n{FEW_ROWS}",
            self.scratch.text("rrd")
        );
        for device in 0..devices {
            for interface in 0..self.farm.interfaces(device) {
                let (what, version) = match counters {
                    Counters::Named => (format!("#Gi0/{}", interface + 1), 2),
                    Counters::Short => ((interface + 1).to_string(), 1),
                };
                let asked = format!("{what}:{}", self.agent(device, version));
                text.push_str(&target(&format!("d{device}_{interface}"), &asked));
            }
        }
        text.push_str(&self.more);
        std::fs::create_dir_all(self.scratch.path("rrd")).expect("a folder");
        std::fs::write(self.configuration(), text).expect("a file");
    }

    /// Starts `kymo poll` on the configuration.
    pub(super) fn poll(&self) -> Polling {
        self.start(Command::new(kymo()).arg("poll").arg(self.configuration()))
    }

    /// Starts a poller by this command.
    pub(super) fn start(&self, command: &mut Command) -> Polling {
        let log = std::fs::File::create(self.scratch.path("log")).expect("a file");
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn();
        let child = child.unwrap_or_else(|why| panic!("cannot start kymo poll: {why}"));
        Polling(Running(child))
    }

    /// All messages of the poller.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.scratch.path("log")).unwrap_or_default()
    }

    /// Stamp and values of the newest update of a target's file. `None`: there is no file, or it has no update yet.
    pub(super) fn newest(&self, device: u32, interface: u32) -> Option<Sample> {
        let name = format!("rrd/d{device}_{interface}.rrd");
        self.newest_of(&self.scratch.path(&name))
    }

    /// Stamp and values of the newest update of a file.
    pub(super) fn newest_of(&self, path: &Path) -> Option<Sample> {
        // The poller may be writing: two equal reads show that the file is whole.
        let mut bytes = std::fs::read(path).ok()?;
        loop {
            let again = std::fs::read(path).ok()?;
            if again == bytes {
                break;
            }
            bytes = again;
        }
        let header =
            Header::parse(&bytes).unwrap_or_else(|why| panic!("{}: {why:?}", path.display()));
        let stamp = (
            header.last_up.cast_unsigned(),
            header.last_up_usec.cast_unsigned(),
        );
        let number = |n: usize| -> Option<u64> {
            let text = header.pdp_prep[n].last_ds.split(|&byte| byte == 0).next()?;
            std::str::from_utf8(text).ok()?.parse().ok()
        };
        Some(Sample {
            stamp_ns: stamp.0 * 1_000_000_000 + stamp.1 * 1_000,
            values: number(0)
                .zip(number(1))
                .map(|(inward, outward)| [inward, outward]),
        })
    }

    /// Watches files for this many cycles; each update appears once in the result.
    pub(super) fn watch(
        &self,
        cycles: u64,
        targets: impl Iterator<Item = (u32, u32)> + Clone,
    ) -> Seen {
        let mut seen: Seen = targets.clone().map(|target| (target, Vec::new())).collect();
        let begun_ns = now_ns();
        while now_ns() < begun_ns + cycles * CYCLE_S * 1_000_000_000 {
            for (device, interface) in targets.clone() {
                let Some(sample) = self.newest(device, interface) else {
                    continue;
                };
                let all = seen.entry((device, interface)).or_default();
                if sample.stamp_ns > begun_ns && all.last() != Some(&sample) {
                    self.judge(device, interface, sample);
                    all.push(sample);
                }
            }
            sleep(LOOK);
        }
        seen
    }

    /// Panics unless a value is the agent's counter near its stamp.
    fn judge(&self, device: u32, interface: u32, sample: Sample) {
        let Some(values) = sample.values else {
            return;
        };
        let off_s = self.off_s(device, interface, sample.stamp_ns, values);
        assert!(
            off_s < OFF_MAX_S,
            "d{device}_{interface}: a value is {off_s} s away from its stamp: {sample:?}\n{}",
            self.log()
        );
    }

    /// Seconds between a stamp and the moment at which the agent's counters had these values.
    fn off_s(&self, device: u32, interface: u32, stamp_ns: u64, values: [u64; 2]) -> f64 {
        let counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        let of_device = counting.iter().filter(|of| of.0 == device);
        let origins = of_device
            .map(|&(_, since_ns, bytes)| (since_ns, bytes))
            .chain([(0, 0)]);
        let offs = origins.map(|(since_ns, bytes)| {
            let off = [Direction::In, Direction::Out].into_iter().zip(values).map(
                |(direction, value)| {
                    let rate = rate(device, interface, direction);
                    let counted = i128::from(rate) * (i128::from(stamp_ns) - i128::from(since_ns))
                        / 1_000_000_000;
                    let off = i128::from(value) - counted - i128::from(bytes);
                    let bits = if self.short { 32 } else { 64 };
                    // The shorter way around the wrap.
                    let off = off.rem_euclid(1 << bits);
                    off.min((1 << bits) - off) as f64 / rate as f64
                },
            );
            off.fold(0.0, f64::max)
        });
        offs.fold(f64::INFINITY, f64::min)
    }

    /// Waits until a target has `count` known values since a moment. Panics if one is wrong.
    pub(super) fn await_values(&self, device: u32, interface: u32, since_ns: u64, count: usize) {
        let until = Instant::now() + PATIENCE;
        let (mut last, mut known) = (None, 0);
        while known < count {
            assert!(
                Instant::now() < until,
                "d{device}_{interface}: {known} values of {count}\n{}",
                self.log()
            );
            let sample = self.newest(device, interface);
            if let Some(sample) =
                sample.filter(|sample| last != Some(*sample) && sample.stamp_ns > since_ns)
            {
                self.judge(device, interface, sample);
                last = Some(sample);
                known += usize::from(sample.values.is_some());
            }
            sleep(LOOK);
        }
    }

    /// The primary data points of a target, bytes a second; NaN: unknown.
    pub(super) fn points(&self, device: u32, interface: u32) -> Vec<[f64; 2]> {
        let name = format!("rrd/d{device}_{interface}.rrd");
        self.points_of(&self.scratch.path(&name))
    }

    /// The primary data points of a file.
    pub(super) fn points_of(&self, file: &Path) -> Vec<[f64; 2]> {
        let output = Command::new("rrdtool")
            .arg("fetch")
            .arg(file)
            .args(["AVERAGE", "-r", &CYCLE_S.to_string()])
            .args(["-s", "-120", "-e", "now"])
            .output();
        let output = output.unwrap_or_else(|why| panic!("cannot run rrdtool: {why}"));
        let text = String::from_utf8_lossy(&output.stdout);
        let rows = text.lines().filter_map(|line| line.split_once(": "));
        let numbers = rows.map(|(_, row)| row.split_whitespace().map(|word| word.parse().ok()));
        numbers
            .filter_map(|mut row| Some([row.next()??, row.next()??]))
            .collect()
    }
}

/// Configuration lines of a target.
pub(super) fn target(name: &str, asked: &str) -> String {
    format!(
        "Target[{name}]: {asked}\nMaxBytes[{name}]: 125000000\nTitle[{name}]: t\nPageTop[{name}]: t\n"
    )
}

/// A poller that is killed when dropped.
pub(super) struct Polling(pub Running);

impl Polling {
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.0.0
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.0.id()
    }

    pub(super) fn assert_alive(&mut self, stage: &Stage) {
        let ended = self.child().try_wait().expect("a child");
        assert!(
            ended.is_none(),
            "kymo poll ended: {ended:?}\n{}",
            stage.log()
        );
    }
}

/// Nanoseconds since 1970.
pub(super) fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.expect("after 1970").as_nanos()).expect("before 2554")
}

/// Number of samples with known values.
pub(super) fn known(samples: &[Sample]) -> usize {
    samples
        .iter()
        .filter(|sample| sample.values.is_some())
        .count()
}
