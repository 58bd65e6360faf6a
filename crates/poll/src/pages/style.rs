//! Looks of a target's graphs, by its keywords in the configuration.

use crate::mrtg_log::whole;
use jiff::tz::TimeZone;
use kymo_rrd::zone;
use kymo_wire::mrtg_cfg::{Choice, Keyword, Options, Target, decoded};

/// Colours of `Colours` without a value: in, out, peaks of both, and their relation.
const COLOURS: [[u8; 3]; 5] = [
    [0x00, 0xcc, 0x00],
    [0x00, 0x00, 0xff],
    [0x00, 0x66, 0x00],
    [0xff, 0x00, 0xff],
    [0xef, 0x9f, 0x4f],
];
const PREFIXES: [&str; 5] = ["", "k", "M", "G", "T"];
/// Longest text on a graph, characters: rateup takes as many bytes.
const TEXT_MAX: usize = 99;

/// Times that graphs show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// 33 hours in steps of five minutes.
    Day,
    /// 8 days in steps of half an hour.
    Week,
    /// 33 days in steps of two hours.
    Month,
    /// 400 days in steps of one.
    Year,
}

impl Period {
    /// All periods in the order of a page.
    pub const ALL: [Period; 4] = [Period::Day, Period::Week, Period::Month, Period::Year];

    /// Seconds of a step, which is a pixel wide without `XScale`.
    pub fn step_s(self) -> i64 {
        match self {
            Period::Day => 300,
            Period::Week => 1800,
            Period::Month => 7200,
            Period::Year => 86_400,
        }
    }

    /// The letter of `Suppress`, `WithPeak` and `Unscaled`, and of a page's comments.
    pub fn letter(self) -> char {
        match self {
            Period::Day => 'd',
            Period::Week => 'w',
            Period::Month => 'm',
            Period::Year => 'y',
        }
    }

    /// Index into [`Period::ALL`].
    pub fn place(self) -> usize {
        match self {
            Period::Day => 0,
            Period::Week => 1,
            Period::Month => 2,
            Period::Year => 3,
        }
    }

    /// The end of a picture's name.
    pub fn word(self) -> &'static str {
        match self {
            Period::Day => "day",
            Period::Week => "week",
            Period::Month => "month",
            Period::Year => "year",
        }
    }
}

/// Numbers of weeks, as strftime's letters `U`, `V` and `W`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weeks {
    /// From the first Sunday of the year.
    Sunday,
    /// ISO 8601.
    #[default]
    Iso,
    /// From the first Monday of the year.
    Monday,
}

/// Ways from values to heights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bend {
    /// In proportion.
    #[default]
    Linear,
    /// `logscale`
    Logarithmic,
    /// `expscale`
    Exponential,
    /// `secondmean`: values above the mean of those above the mean are cut off.
    SecondMean,
}

/// Corner of a graph's stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    /// `LU`
    LeftUpper,
    /// `RU`
    RightUpper,
    /// `LL`
    LeftLower,
    /// `RL`
    RightLower,
}

/// The look of a target's graphs.
#[derive(Clone, Debug)]
pub struct GraphStyle {
    /// Words of `Options`.
    pub options: Options,
    /// Steps of the time axis, and height of the curves without the scales.
    pub x_size: i64,
    /// `YSize`
    pub y_size: i64,
    /// Pixels of a step.
    pub x_scale: f64,
    /// `YScale`
    pub y_scale: f64,
    /// Parts of the vertical axis.
    pub tics: i64,
    /// Factor for the numbers of the axis.
    pub tics_factor: f64,
    /// `kilo`
    pub kilo: i64,
    /// Prefixes of units, from 1 on, each a thousand times the one before; those with `-` are not used.
    pub prefixes: Vec<String>,
    /// In, out, peaks of both, and their relation.
    pub colours: [[u8; 3]; 5],
    /// Largest rates that are expected, per second.
    pub max_bytes: [u64; 2],
    /// Letters of `Unscaled`: periods whose axis reaches to the largest rates.
    pub unscaled: Vec<u8>,
    /// Letters of `WithPeak`.
    pub with_peak: Vec<u8>,
    /// Text along the vertical axis; `None`: that of bytes or bits a second.
    pub y_legend: Option<String>,
    /// Text above the graph.
    pub title: Option<String>,
    /// Stamp of the time: its corner and its format.
    pub stamp: Option<(Corner, String)>,
    /// Local time.
    pub zone: TimeZone,
    /// Numbers of weeks.
    pub weeks: Weeks,
    /// Form of the vertical axis.
    pub bend: Bend,
}

impl GraphStyle {
    /// The style of a target. `zone` is that of the machine.
    pub fn of(target: Target<'_>, zone: &TimeZone) -> GraphStyle {
        let options = target.options();
        let text = |keyword| text(target, keyword);
        let bytes = |keyword| target.value(keyword).unwrap_or_default().into_owned();
        let whole = |keyword, otherwise| number(target, keyword).map_or(otherwise, whole);
        let real = |keyword| number(target, keyword).unwrap_or(1.0);
        let zone = match text(Keyword::Timezone) {
            Some(name) => zone::zone(&name).unwrap_or(TimeZone::UTC),
            None => zone.clone(),
        };
        GraphStyle {
            options,
            x_size: whole(Keyword::XSize, 400),
            y_size: whole(Keyword::YSize, 100),
            x_scale: real(Keyword::XScale),
            y_scale: real(Keyword::YScale),
            tics: whole(Keyword::YTics, 4).clamp(1, 1000),
            tics_factor: real(Keyword::YTicsFactor),
            kilo: whole(Keyword::Kilo, 1000),
            prefixes: prefixes(text(Keyword::Kmg)),
            colours: colours(target),
            max_bytes: target.max_bytes(),
            unscaled: bytes(Keyword::Unscaled),
            with_peak: bytes(Keyword::WithPeak),
            y_legend: text(Keyword::YLegend).or_else(|| y_legend(options)),
            title: match text(Keyword::PngTitle) {
                None if options.has(Choice::Printrouter) => Some(short(decoded(&target.name()))),
                title => title,
            },
            stamp: stamp(target),
            zone,
            weeks: match bytes(Keyword::WeekFormat).first() {
                Some(b'U') => Weeks::Sunday,
                Some(b'W') => Weeks::Monday,
                _ => Weeks::Iso,
            },
            bend: bend(options),
        }
    }

    /// True if the graph of this period shows peaks.
    pub fn has_peak(&self, period: Period) -> bool {
        period != Period::Day && has_letter(&self.with_peak, period)
    }
}

/// True if a value of `[ndwmy]` has the letter of this period. As in MRTG, capitals do not count.
pub(super) fn has_letter(letters: &[u8], period: Period) -> bool {
    letters
        .iter()
        .any(|&letter| char::from(letter) == period.letter())
}

/// A value as text; `None` also for an empty one and for `0`, as in Perl.
fn text(target: Target<'_>, keyword: Keyword) -> Option<String> {
    let text = decoded(&target.value(keyword)?);
    (!text.is_empty() && text != "0").then(|| short(text))
}

fn short(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
        text.truncate(end);
    }
    text
}

/// The number that a value begins with.
fn number(target: Target<'_>, keyword: Keyword) -> Option<f64> {
    let value = target.value(keyword)?;
    let text = std::str::from_utf8(&value).ok()?.trim();
    let is_part = |c: char| !(c.is_ascii_digit() || "+-.eE".contains(c));
    let end = text.find(is_part).unwrap_or(text.len());
    text[..end].parse().ok()
}

fn prefixes(kmg: Option<String>) -> Vec<String> {
    match kmg {
        None => PREFIXES.map(String::from).to_vec(),
        Some(kmg) => {
            let kmg: String = kmg.split_whitespace().collect();
            kmg.split(',').map(String::from).collect()
        }
    }
}

fn colours(target: Target<'_>) -> [[u8; 3]; 5] {
    let mut colours = COLOURS;
    let own = target.colours().unwrap_or_default();
    for (colour, (_, rgb)) in colours.iter_mut().zip(own) {
        *colour = rgb;
    }
    colours
}

fn y_legend(options: Options) -> Option<String> {
    let unit = match options.has(Choice::Bits) {
        true => "Bits",
        false => "Bytes",
    };
    let time = match () {
        () if options.has(Choice::Perhour) => "hour",
        () if options.has(Choice::Perminute) => "minute",
        () => return None,
    };
    Some(format!("{unit} per {time}"))
}

fn stamp(target: Target<'_>) -> Option<(Corner, String)> {
    if target.options().has(Choice::Pngdate) {
        let format = match text(target, Keyword::Timezone) {
            Some(_) => "%Y-%m-%d %H:%M %Z",
            None => "%Y-%m-%d %H:%M",
        };
        return Some((Corner::RightUpper, format.into()));
    }
    let corner = match text(target, Keyword::TimeStrPos)?
        .to_ascii_uppercase()
        .as_str()
    {
        "LU" => Corner::LeftUpper,
        "RU" => Corner::RightUpper,
        "LL" => Corner::LeftLower,
        "RL" => Corner::RightLower,
        _ => return None,
    };
    let format = text(target, Keyword::TimeStrFmt);
    Some((corner, format.unwrap_or_else(|| "%Y-%m-%d %H:%M".into())))
}

/// The form of the axis: of several words the last one counts that MRTG passes on.
fn bend(options: Options) -> Bend {
    match () {
        () if options.has(Choice::Secondmean) => Bend::SecondMean,
        () if options.has(Choice::Expscale) => Bend::Exponential,
        () if options.has(Choice::Logscale) => Bend::Logarithmic,
        () => Bend::Linear,
    }
}
