//! Thresholds of targets: finds broken and mended bounds and the programs to be run for them. The rules are those
//! of MRTG's manual, from which MRTG itself differs at times.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use kymo_base::printf::{put_fixed, put_general};
use kymo_wire::mrtg_cfg::{Config, Keyword, Target};

mod mail;
mod state;

pub use mail::{ThresholdMail, mail_ports};

/// `ThreshHyst` if the configuration does not set it.
const HYSTERESIS: f64 = 0.1;

/// An event that a program is to be run for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Action {
    /// The target's place in the configuration.
    pub target: u32,
    /// The change of the bound's state.
    pub event: Event,
    /// The rate that it concerns.
    pub direction: Direction,
    /// The bound that it concerns.
    pub bound: Bound,
    /// The value that was compared with the bound.
    pub value: Value,
}

/// Changes of a bound's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `ThreshProgI`, `ThreshProgO`.
    Broken,
    /// `ThreshProgOKI`, `ThreshProgOKO`.
    Mended,
}

/// The two rates of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The first.
    In,
    /// The second.
    Out,
}

/// The bounds of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// `ThreshMin`, of the rate.
    Min,
    /// `ThreshMax`
    Max,
    /// `HWThreshMin`, of what the archive FAILURES has: 1 for a rate that is not as predicted, else 0.
    HwMin,
    /// `HWThreshMax`
    HwMax,
}

/// Values of both directions that are compared with bounds; `None`: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Rates, per second.
    pub rates: [Option<f64>; 2],
    /// Values of the archive FAILURES.
    pub failures: [Option<f64>; 2],
}

/// A value that is compared with a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A rate as it was stored, per second.
    Rate(f64),
    /// Percentage of MaxBytes, with one decimal, as MRTG compares it.
    Percent(f64),
}

impl Event {
    /// Index into an array of both events.
    pub fn place(self) -> usize {
        usize::from(self == Event::Mended)
    }
}

impl Direction {
    /// Index into an array of both directions.
    pub fn place(self) -> usize {
        usize::from(self == Direction::Out)
    }
}

impl Bound {
    /// All bounds, by their places.
    pub const ALL: [Bound; 4] = [Bound::Min, Bound::Max, Bound::HwMin, Bound::HwMax];

    /// Index into an array of all bounds.
    pub fn place(self) -> usize {
        match self {
            Bound::Min => 0,
            Bound::Max => 1,
            Bound::HwMin => 2,
            Bound::HwMax => 3,
        }
    }

    /// 0 for bounds of rates, 1 for those of failures: an index into an array of both.
    pub fn measure(self) -> usize {
        usize::from(matches!(self, Bound::HwMin | Bound::HwMax))
    }

    fn is_lower(self) -> bool {
        matches!(self, Bound::Min | Bound::HwMin)
    }
}

impl Value {
    fn number(self) -> f64 {
        match self {
            Value::Rate(number) | Value::Percent(number) => number,
        }
    }

    /// Appends the value as MRTG passes it to programs: a rate as Perl prints it.
    pub fn put(self, out: &mut Vec<u8>) {
        match self {
            Value::Rate(rate) => put_general(out, rate, 15),
            Value::Percent(percent) => put_fixed(out, percent, 1),
        }
    }
}

/// The bounds of all targets. Files record which bounds are broken if `ThreshDir` is set.
#[derive(Debug)]
pub struct Thresholds {
    /// `ThreshDir`. Without it a program runs in each cycle in which its bound is broken.
    folder: Option<PathBuf>,
    /// Distance from the bound at which it is mended, as a part of the bound: of rates and of failures.
    hysteresis: [f64; 2],
    /// By the target's place in the configuration.
    targets: BTreeMap<u32, TargetBounds>,
}

/// The bounds of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetBounds {
    /// Start of the names of its files: the configuration's file name, a dot, the target's name.
    pub file_stem: Vec<u8>,
    /// `MaxBytes1`, `MaxBytes2`.
    pub max_bytes: [f64; 2],
    /// Bounds as written in the configuration, by [`Bound::place`] and direction.
    pub bounds: [[Option<Vec<u8>>; 2]; 4],
}

impl Thresholds {
    /// The given bounds. Only files say that a bound is broken at the start.
    pub fn new(
        folder: Option<PathBuf>,
        hysteresis: [Option<f64>; 2],
        targets: BTreeMap<u32, TargetBounds>,
    ) -> Thresholds {
        Thresholds {
            folder,
            // A failure is 0 or 1, with nothing between.
            hysteresis: [
                hysteresis[0].unwrap_or(HYSTERESIS),
                hysteresis[1].unwrap_or(0.0),
            ],
            targets,
        }
    }

    /// The bounds of a configuration that was read from `file`.
    pub fn of(config: &Config, file: &Path) -> Thresholds {
        let globals = config.globals();
        let name = file.file_name().unwrap_or_default().as_bytes();
        let all = (0..).zip(config.targets());
        let targets = all.filter_map(|(number, target)| {
            let bounds = TargetBounds::of(target, name);
            let has_any = bounds.bounds.as_flattened().iter().any(Option::is_some);
            has_any.then_some((number, bounds))
        });
        Thresholds::new(
            globals.thresh_dir.clone(),
            [globals.thresh_hyst, globals.hw_thresh_hyst],
            targets.collect(),
        )
    }

    /// A line about targets whose bounds of failures are never checked, as no archive of their values predicts any.
    pub fn unpredicted(config: &Config) -> Option<String> {
        let bounds = config.targets().map(|target| TargetBounds::of(target, b""));
        let is_hw = |of: &TargetBounds| of.bounds[2..].as_flattened().iter().any(Option::is_some);
        match bounds.filter(is_hw).count() {
            0 => None,
            targets => Some(format!(
                "HWThresh bounds need .rrd files that kymo writes itself, as the archive FAILURES is there; they are not checked, for \
                 {targets} targets"
            )),
        }
    }

    /// The targets with bounds.
    pub fn watched(&self) -> Vec<u32> {
        self.targets.keys().copied().collect()
    }

    /// True if no target has a bound.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Compares what a target's update completed with its bounds. `act` gets the events, each with its value before it became a
    /// percentage, `say` gets errors of files.
    pub fn check(
        &self,
        target: u32,
        measured: Measured,
        act: &mut dyn FnMut(Action, f64),
        say: &mut dyn FnMut(String),
    ) {
        let Some(bounds) = self.targets.get(&target) else {
            return;
        };
        let values = [measured.rates, measured.failures];
        for direction in [Direction::In, Direction::Out] {
            for bound in Bound::ALL {
                let rate = values[bound.measure()][direction.place()];
                let Some(rate) = rate.filter(|rate| rate.is_finite()) else {
                    continue;
                };
                let Some((limit, value)) = bounds.compared(direction, bound, rate) else {
                    continue;
                };
                let happened = match &self.folder {
                    None => is_broken(bound, limit, value).then_some(Event::Broken),
                    Some(folder) => {
                        let file = folder.join(bounds.file(direction, bound));
                        self.turned(&file, bound, limit, value, say)
                    }
                };
                if let Some(event) = happened {
                    let action = Action {
                        target,
                        event,
                        direction,
                        bound,
                        value,
                    };
                    act(action, rate);
                }
            }
        }
    }

    /// The event, if the bound changes state; a file exists as long as the bound is broken.
    fn turned(
        &self,
        file: &Path,
        bound: Bound,
        limit: f64,
        value: Value,
        say: &mut dyn FnMut(String),
    ) -> Option<Event> {
        let margin = limit * self.hysteresis[bound.measure()];
        let was_broken = state::is_there(file);
        if is_broken(bound, limit, value) {
            if was_broken {
                return None;
            }
            if let Err(error) = state::make(file) {
                say(format!("cannot make {}: {error}", file.display()));
            }
            return Some(Event::Broken);
        }
        let far = match bound.is_lower() {
            true => value.number() >= limit + margin,
            false => value.number() <= limit - margin,
        };
        if !was_broken || !far {
            return None;
        }
        if let Err(error) = state::remove(file) {
            say(format!("cannot remove {}: {error}", file.display()));
        }
        Some(Event::Mended)
    }
}

fn is_broken(bound: Bound, limit: f64, value: Value) -> bool {
    match bound.is_lower() {
        true => limit > value.number(),
        false => limit < value.number(),
    }
}

impl TargetBounds {
    pub(crate) fn of(target: Target<'_>, file: &[u8]) -> TargetBounds {
        use Keyword::*;
        let text = |keyword| Some(target.value(keyword)?.into_owned());
        TargetBounds {
            file_stem: [file, b".", &target.name()].concat(),
            max_bytes: target.max_bytes().map(|most| most as f64),
            bounds: [
                [text(ThreshMinI), text(ThreshMinO)],
                [text(ThreshMaxI), text(ThreshMaxO)],
                [text(HwThreshMinI), text(HwThreshMinO)],
                [text(HwThreshMaxI), text(HwThreshMaxO)],
            ],
        }
    }

    /// The bound and the value to compare with it; `None`: the target has no such bound.
    fn compared(&self, direction: Direction, bound: Bound, rate: f64) -> Option<(f64, Value)> {
        let text = self.bounds[bound.place()][direction.place()].as_deref()?;
        let Some(text) = text.strip_suffix(b"%") else {
            return Some((leading_number(text), Value::Rate(rate)));
        };
        let percent = rate / self.max_bytes[direction.place()] * 100.0;
        let mut shown = Vec::new();
        put_fixed(&mut shown, percent, 1);
        // The comparison uses the rounded number that the program gets.
        let shown = std::str::from_utf8(&shown).ok()?.parse().ok()?;
        Some((leading_number(text), Value::Percent(shown)))
    }

    fn file(&self, direction: Direction, bound: Bound) -> PathBuf {
        let end = match (bound, direction) {
            (Bound::Min, Direction::In) => ".threshminI",
            (Bound::Min, Direction::Out) => ".threshminO",
            (Bound::Max, Direction::In) => ".threshmaxI",
            (Bound::Max, Direction::Out) => ".threshmaxO",
            (Bound::HwMin, Direction::In) => ".hwthreshminI",
            (Bound::HwMin, Direction::Out) => ".hwthreshminO",
            (Bound::HwMax, Direction::In) => ".hwthreshmaxI",
            (Bound::HwMax, Direction::Out) => ".hwthreshmaxO",
        };
        let name = [&self.file_stem, end.as_bytes()].concat();
        PathBuf::from(OsStr::from_bytes(&name))
    }
}

/// The number that Perl's arithmetic makes of a text: its leading number, or 0.
fn leading_number(text: &[u8]) -> f64 {
    let text = text.trim_ascii_start();
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let whole = sign + digits(&text[sign..]);
    let mut end = whole;
    if text.get(whole) == Some(&b'.') {
        end = whole + 1 + digits(&text[whole + 1..]);
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = text.get(end + 1 + sign..).map_or(0, digits);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    let number = std::str::from_utf8(&text[..end]);
    number
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0.0)
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_as_perl_reads_numbers() {
        for (text, number) in [
            ("100", 100.0),
            (" -1.5e3x", -1500.0),
            ("2e", 2.0),
            ("2e+", 2.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("+7 k", 7.0),
            ("", 0.0),
            ("-", 0.0),
            ("x", 0.0),
            (".", 0.0),
        ] {
            assert_eq!(leading_number(text.as_bytes()), number, "{text:?}");
        }
    }

    /// Passes one rate after the other to a bound of each side with a margin of a tenth, and checks the events.
    #[test]
    fn a_bound_is_mended_only_from_a_distance() {
        let folder = std::env::temp_dir().join(format!("kymo-threshold-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let bounds = TargetBounds {
            file_stem: b"m.cfg.t".to_vec(),
            max_bytes: [200.0, 200.0],
            bounds: [
                [Some(b"10".to_vec()), None],
                [Some(b"50%".to_vec()), Some(b"50".to_vec())],
                [None, Some(b"1".to_vec())],
                [Some(b"0".to_vec()), None],
            ],
        };
        let targets = BTreeMap::from([(4, bounds)]);
        let seen_of = |thresholds: &Thresholds, measured: Measured| {
            let mut seen = String::new();
            let mut act = |action: Action, _| {
                let mut value = Vec::new();
                action.value.put(&mut value);
                let value = String::from_utf8(value).unwrap();
                seen += &format!(
                    "{:?} {:?} {:?} {value},",
                    action.event, action.direction, action.bound
                );
            };
            thresholds.check(4, measured, &mut act, &mut |line| panic!("{line}"));
            seen
        };
        let seen = |thresholds: &Thresholds, rates: [Option<f64>; 2]| {
            let measured = Measured {
                rates,
                ..Measured::default()
            };
            seen_of(thresholds, measured)
        };
        let with = Thresholds::new(Some(folder.clone()), [None; 2], targets.clone());
        for (input, output, expected, files) in [
            (Some(50.0), Some(50.0), "", ""),
            (Some(101.0), None, "Broken In Max 50.5,", "maxI"),
            (Some(140.0), None, "", "maxI"),
            (Some(91.0), None, "", "maxI"),
            (None, None, "", "maxI"),
            (Some(90.0), None, "Mended In Max 45.0,", ""),
            (
                Some(9.5),
                Some(51.0),
                "Broken In Min 9.5,Broken Out Max 51,",
                "minI maxO",
            ),
            (Some(10.5), Some(46.0), "", "minI maxO"),
            (
                Some(11.0),
                Some(45.0),
                "Mended In Min 11,Mended Out Max 45,",
                "",
            ),
        ] {
            assert_eq!(
                seen(&with, [input, output]),
                expected,
                "{input:?} {output:?}"
            );
            let names = ["minI", "maxI", "minO", "maxO"].into_iter();
            let there = |name: &&str| folder.join(format!("m.cfg.t.thresh{name}")).exists();
            let there: Vec<_> = names.filter(there).collect();
            assert_eq!(there.join(" "), files, "{input:?} {output:?}");
        }
        for (failures, expected, files) in [
            (
                [Some(1.0), Some(0.0)],
                "Broken In HwMax 1,Broken Out HwMin 0,",
                2,
            ),
            ([Some(1.0), None], "", 2),
            (
                [Some(0.0), Some(1.0)],
                "Mended In HwMax 0,Mended Out HwMin 1,",
                0,
            ),
        ] {
            let measured = Measured {
                failures,
                ..Measured::default()
            };
            assert_eq!(seen_of(&with, measured), expected, "{failures:?}");
            let names = ["maxI", "minO"].into_iter();
            let there =
                names.filter(|name| folder.join(format!("m.cfg.t.hwthresh{name}")).exists());
            assert_eq!(there.count(), files, "{failures:?}");
        }
        let without = Thresholds::new(None, [None; 2], targets);
        for _ in 0..2 {
            assert_eq!(seen(&without, [Some(101.0), None]), "Broken In Max 50.5,");
        }
        assert_eq!(seen(&without, [Some(50.0), None]), "");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
