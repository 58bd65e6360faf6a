//! Graphs of random logs and options: the curves, the grid and all numbers are rateup's, to the pixel. Letters have another place in
//! the pictures, which is not compared.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use jiff::tz::TimeZone;
use kymo_poll::mrtg_log::{Kept, Log, LogRule, LogUpdate};
use kymo_poll::pages::{Figures, GraphStyle, Period, draw};
use kymo_sys::effort::{effort, first_seed};
use kymo_tests::{Scratch, machine};
use kymo_wire::mrtg_cfg;

use crate::poll_config::Disk;
use crate::poll_logs::case::{Random, log};

const ZONES: [&str; 5] = [
    "UTC",
    "Europe/Berlin",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Pacific/Auckland",
];
/// Options of graphs with rateup's words for them; two stand for arguments elsewhere.
const OPTIONS: [(&str, &str); 13] = [
    ("growright", ""),
    ("bits", ""),
    ("transparent", "-t"),
    ("withzeroes", "-0"),
    ("noborder", "-b"),
    ("noarrow", "-a"),
    ("noi", "-i"),
    ("noo", "-o"),
    ("logscale", "-l"),
    ("expscale", "-x"),
    ("secondmean", "-m"),
    ("dorelpercent", ""),
    ("nopercent", ""),
];

/// A target, as a configuration and as rateup's arguments.
struct Case {
    config: String,
    arguments: Vec<String>,
    images: Vec<(Period, Vec<String>)>,
    zone: &'static str,
    log: String,
    now_s: i64,
    values: [String; 2],
    size: Size,
}

/// Size of the graph.
struct Size {
    x: i64,
    y: i64,
    scales: [f64; 2],
}

impl Case {
    fn new(seed: u64) -> Case {
        let random = &mut Random(seed);
        let zone = random.pick(&ZONES);
        let before_s = 1_700_000_000 + random.signed(100_000_000);
        let size = Size {
            x: 30 + random.signed(571),
            y: 30 + random.signed(171),
            scales: [0, 1].map(|_| random.pick(&[1.0, 1.0, 1.5, 0.7, 2.0])),
        };
        let max = [0, 1].map(|_| random.pick(&[10, 1000, 12_500, 1_250_000, 125_000_000]));
        let tics = random.pick(&[4, 4, 4, 3, 5, 10]);
        let factor = random.pick(&["1", "1", "0.01", "8", "60"]);
        let kilo = random.pick(&["1000", "1000", "1024"]);
        let options: Vec<(&str, &str)> = OPTIONS
            .into_iter()
            .filter(|(word, _)| random.one_in(if *word == "growright" { 2 } else { 6 }))
            .collect();
        let has = |word: &str| options.iter().any(|option| option.0 == word);
        let letters = |random: &mut Random| -> String {
            let letters = "wmy".chars().filter(|_| random.one_in(3));
            letters.chain(['n']).collect()
        };
        let (unscaled, with_peak) = (letters(random), letters(random));
        let colours = random.one_in(3).then(|| {
            let colour = |random: &mut Random| format!("#{:06x}", random.below(1 << 24));
            [0; 5].map(|_| colour(random))
        });
        let defaults = ["#00cc00", "#0000ff", "#006600", "#ff00ff", "#ef9f4f"];
        let shown = colours.clone().unwrap_or(defaults.map(String::from));
        let words: Vec<&str> = options.iter().map(|option| option.0).collect();
        let kmg = random
            .one_in(3)
            .then(|| random.pick(&[",k,M,G,T,P", ",-,M,G,T", "m,,k,M,G"]));
        let mut config = format!(
            "WorkDir: /tmp\nTarget[t]: `x`\nTitle[t]: t\nMaxBytes1[t]: {}\nMaxBytes2[t]: {}\nXSize[t]: {}\nYSize[t]: {}\n\
             XScale[t]: {}\nYScale[t]: {}\nYTics[t]: {tics}\nYTicsFactor[t]: {factor}\nKilo[t]: {kilo}\nUnscaled[t]: {unscaled}\n\
             WithPeak[t]: {with_peak}\nOptions[t]: {}\nTimezone[t]: {zone}\n",
            max[0],
            max[1],
            size.x,
            size.y,
            size.scales[0],
            size.scales[1],
            words.join(", ")
        );
        if let Some(colours) = &colours {
            let named: Vec<String> = colours
                .iter()
                .map(|colour| format!("NAME{colour}"))
                .collect();
            config += &format!("Colours[t]: {}\n", named.join(","));
        }
        let mut arguments: Vec<String> = match has("dorelpercent") {
            true => [vec!["C".into()], shown.to_vec()].concat(),
            false => [vec!["c".into()], shown[..4].to_vec()].concat(),
        };
        arguments.extend(
            options
                .iter()
                .map(|option| option.1.to_string())
                .filter(|word| !word.is_empty()),
        );
        arguments.extend(["k".into(), kilo.into()]);
        if let Some(kmg) = kmg {
            config += &format!("kMG[t]: {kmg}\n");
            arguments.extend(["K".into(), kmg.into()]);
        }
        let images = Period::ALL.map(|period| {
            let has_letter = |letters: &str| letters.contains(period.letter());
            let sign = if has_letter(&unscaled) { 1 } else { -1 };
            let peak = if has_letter(&with_peak) { "p" } else { "i" };
            let mut words = vec![peak.to_string(), format!("{}.png", period.word())];
            words.extend(max.map(|max| (sign * max).to_string()));
            words.extend([size.x, size.y].map(|size| size.to_string()));
            words.extend(size.scales.map(|scale| scale.to_string()));
            words.push(i32::from(has("growright")).to_string());
            words.push(period.step_s().to_string());
            words.push(i32::from(has("bits")).to_string());
            words.extend([tics.to_string(), factor.into(), "%Y".into(), "0".into()]);
            (period, words)
        });
        Case {
            config,
            arguments,
            images: images.into(),
            zone,
            log: log(random, before_s),
            now_s: before_s + random.pick(&[1, 60, 300, 300, 4000]),
            values: [0, 1].map(|_| (random.number() >> 20).to_string()),
            size,
        }
    }

    fn has_percent(&self) -> bool {
        self.arguments[0] == "C"
    }

    /// Numbers and pictures of rateup.
    fn rateup(&self, folder: &Path) -> (Vec<i64>, Vec<Picture>) {
        std::fs::write(folder.join("t.log"), &self.log).expect("a log");
        let kind = match self.has_percent() {
            true => "up",
            false => "u",
        };
        let mut rateup = Command::new("rateup");
        rateup.env("TZ", self.zone).arg(folder).arg("t");
        rateup.arg(self.now_s.to_string()).args(["-Z", kind]);
        rateup
            .args(&self.values)
            .arg("1250000000")
            .args(&self.arguments);
        for (_, words) in &self.images {
            rateup.args(words);
        }
        let output = rateup.output().expect("rateup runs");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("numbers");
        // Where a log has too few rows for a rate, rateup prints the least number.
        let number = |line: &str| match line.parse().expect("a number") {
            i64::MIN => 0,
            number => number,
        };
        let numbers = text.lines().map(number);
        let pictures = self.images.iter().map(|(period, _)| {
            let png = std::fs::read(folder.join(format!("{}.png", period.word())));
            Picture::of(&png.expect("a picture"))
        });
        (numbers.collect(), pictures.collect())
    }

    fn style(&self, folder: &Path) -> GraphStyle {
        let file = folder.join("t.cfg");
        std::fs::write(&file, &self.config).expect("a configuration");
        let config = mrtg_cfg::read(file.as_os_str().as_bytes(), &mut Disk);
        let config = config.unwrap_or_else(|problems| panic!("{problems:?}\n{}", self.config));
        GraphStyle::of(config.target(0), &TimeZone::UTC)
    }

    fn ours(&self, style: &GraphStyle) -> Vec<(Picture, Figures)> {
        let mut log = Log::default();
        log.text.extend(self.log.as_bytes());
        log.parse().expect("a log");
        let update = LogUpdate {
            now_s: self.now_s,
            values: [self.values[0].as_bytes(), self.values[1].as_bytes()],
            rule: LogRule {
                bound: 1_250_000_000,
                ..LogRule::default()
            },
            kept: Kept::All,
        };
        log.update(&update, &mut Vec::new()).expect("an update");
        let each = Period::ALL.into_iter().map(|period| {
            let (png, figures) = draw(&log, self.now_s, period, style).expect("a graph");
            (Picture::of(&png), figures)
        });
        each.collect()
    }
}

/// A decoded picture.
#[derive(PartialEq)]
struct Picture {
    width: usize,
    height: usize,
    /// Red, green, blue and opacity.
    pixels: Vec<[u8; 4]>,
    /// Bytes of the file.
    bytes: usize,
}

impl Picture {
    fn of(png: &[u8]) -> Picture {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
        decoder.set_transformations(
            png::Transformations::normalize_to_color8() | png::Transformations::ALPHA,
        );
        let mut reader = decoder.read_info().expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
        let frame = reader.next_frame(&mut bytes).expect("pixels");
        let pixels = bytes[..frame.buffer_size()].chunks(4);
        Picture {
            width: frame.width as usize,
            height: frame.height as usize,
            pixels: pixels
                .map(|pixel| pixel.try_into().expect("four bytes"))
                .collect(),
            bytes: png.len(),
        }
    }

    fn at(&self, x: usize, y: usize) -> [u8; 4] {
        self.pixels[y * self.width + x]
    }
}

/// Places where two pictures of a graph differ, within the frame with its tics and at the border.
fn differences(ours: &Picture, theirs: &Picture, case: &Case) -> Vec<(usize, usize)> {
    assert_eq!((ours.width, ours.height), (theirs.width, theirs.height));
    let (width, height) = (ours.width, ours.height);
    let size = &case.size;
    let right = 81 + (size.x as f64 * size.scales[0]) as usize;
    let bottom = 14 + (size.y as f64 * size.scales[1]) as usize;
    // Percentages begin there.
    let end = right + if case.has_percent() { 3 } else { 4 };
    let is_graph = |x: usize, y: usize| (78..end).contains(&x) && (14..bottom + 4).contains(&y);
    // Labels of a stretched graph lie on the lower border, a legend that is too long on the upper one.
    let has_lower = size.scales[1] <= 1.0;
    let is_border = |x: usize, y: usize| {
        let is_lower = has_lower && y + 2 >= height;
        x < 2 || x + 2 >= width || is_lower || y < 2 && !(8..21).contains(&x)
    };
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let compared = places.filter(|&(x, y)| is_graph(x, y) || is_border(x, y));
    compared
        .filter(|&(x, y)| ours.at(x, y) != theirs.at(x, y))
        .collect()
}

/// The figures that rateup prints.
fn printed(figures: &Figures, has_percent: bool) -> Vec<i64> {
    let numbers = figures.in_order().into_iter().enumerate();
    let is_printed = |at: usize| has_percent || !matches!(at, 2 | 5 | 8);
    numbers
        .filter_map(|(at, number)| is_printed(at).then_some(number))
        .collect()
}

/// Compares the graphs of a random log; returns the bytes of ours and of rateup's.
fn exercise(seed: u64, folder: &Path) -> [usize; 2] {
    let case = Case::new(seed);
    let (numbers, theirs) = case.rateup(folder);
    let ours = case.ours(&case.style(folder));
    let has_percent = case.has_percent();
    let our_numbers: Vec<i64> = ours
        .iter()
        .flat_map(|(_, figures)| printed(figures, has_percent))
        .collect();
    assert_eq!(our_numbers, numbers, "SEED={seed}\n{}", case.config);
    for (((ours, _), theirs), period) in ours.iter().zip(&theirs).zip(Period::ALL) {
        let places = differences(ours, theirs, &case);
        let shown: Vec<_> = places
            .iter()
            .take(9)
            .map(|&(x, y)| (x, y, ours.at(x, y), theirs.at(x, y)))
            .collect();
        assert!(
            places.is_empty(),
            "SEED={seed}, {period:?}: {} pixels differ, such as {shown:?}\n{}",
            places.len(),
            case.config
        );
    }
    let bytes = |of: &mut dyn Iterator<Item = &Picture>| of.map(|picture| picture.bytes).sum();
    [
        bytes(&mut ours.iter().map(|(picture, _)| picture)),
        bytes(&mut theirs.iter()),
    ]
}

#[test]
fn graphs_are_rateups() {
    if machine::must_skip(&["rateup"]) {
        return;
    }
    let scratch = Scratch::new("poll-pages-graphs");
    let first = first_seed(1);
    let cases = match effort(1) {
        1 => 40,
        more => more * 100,
    };
    let mut bytes = [0, 0];
    for seed in first..first + cases {
        let of_case = exercise(seed, &scratch.path(""));
        bytes = [bytes[0] + of_case[0], bytes[1] + of_case[1]];
    }
    assert!(bytes[0] <= bytes[1], "bytes of ours and theirs: {bytes:?}");
}
