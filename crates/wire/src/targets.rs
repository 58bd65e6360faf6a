//! Files that describe MRTG targets, docs/formats/targets.md: one file per mrtg.cfg, one line of JSON per target. The page and
//! `kymo graph` read from them the titles of targets and the look of their graphs. The values are in the keeper.
//!
//! A reader treats such a file as hostile: each line has a size limit, and values out of range are dropped or refused.

use serde::{Deserialize, Serialize};

/// Folder of the files, below the folder of `kymo serve`.
pub const FOLDER: &str = "poll";
/// Suffix of files that describe targets.
pub const SUFFIX: &str = ".targets";
/// Suffix of files that say why targets have no value.
pub const REASONS_SUFFIX: &str = ".reasons";
/// Longest line, in bytes.
pub const LINE_MAX: usize = 64 << 10;
/// Longest `page_top`, in bytes.
pub const PAGE_TOP_MAX: usize = 16 << 10;
/// Longest text in any other field, in bytes.
pub const TEXT_MAX: usize = 1 << 10;

const VERSION: u32 = 1;
/// Most targets in one line of reasons: 40 names fit, of 255 bytes each and with up to six bytes of JSON for one byte.
const REASON_TARGETS: usize = 40;
/// Sizes of a graph in pixels that MRTG accepts.
const X_SIZES: std::ops::RangeInclusive<u32> = 30..=600;
const Y_SIZES: std::ops::RangeInclusive<u32> = 30..=2000;
/// Most options of one target.
const WORDS_MAX: usize = 64;

/// First line of a file of targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetsHead {
    /// Version of the format.
    #[serde(rename = "kymo_targets")]
    version: u32,
    /// Name of the configuration, for messages.
    #[serde(default)]
    pub config: String,
    /// Seconds between polls.
    #[serde(rename = "interval")]
    pub interval_s: u32,
    /// Number of lines that follow, one per target.
    pub targets: u32,
}

/// A target with all that its page needs. A field that is not set stands for MRTG's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DescribedTarget {
    /// Name of the target in its mrtg.cfg.
    pub name: String,
    /// Name of its series in the keeper.
    pub series: String,
    /// Host that the poller queries, with the port unless it is 161. Empty: the value comes from a command.
    #[serde(skip_serializing_if = "is_default")]
    pub device: String,
    /// `Title`.
    #[serde(skip_serializing_if = "is_default")]
    pub title: String,
    /// `PageTop`, as text.
    #[serde(skip_serializing_if = "is_default")]
    pub page_top: String,
    /// `Directory`.
    #[serde(skip_serializing_if = "is_default")]
    pub directory: String,
    /// `MaxBytes1`, `MaxBytes2`.
    #[serde(skip_serializing_if = "is_default")]
    pub max_bytes: [u64; 2],
    /// `AbsMax`.
    #[serde(skip_serializing_if = "is_default")]
    pub abs_max: Option<u64>,
    /// `Options`, in lower case.
    #[serde(skip_serializing_if = "is_default")]
    pub options: Vec<String>,
    /// `YLegend`.
    #[serde(skip_serializing_if = "is_default")]
    pub y_legend: Option<String>,
    /// `ShortLegend`.
    #[serde(skip_serializing_if = "is_default")]
    pub short_legend: Option<String>,
    /// `Legend1` to `Legend5`.
    #[serde(skip_serializing_if = "is_default")]
    pub legends: [Option<String>; 5],
    /// `LegendI`. Empty: the table has no row for the input.
    #[serde(skip_serializing_if = "is_default")]
    pub legend_i: Option<String>,
    /// `LegendO`. Empty: the table has no row for the output.
    #[serde(skip_serializing_if = "is_default")]
    pub legend_o: Option<String>,
    /// `kilo`.
    #[serde(skip_serializing_if = "is_default")]
    pub kilo: Option<f64>,
    /// `kMG`.
    #[serde(skip_serializing_if = "is_default")]
    pub kmg: Option<String>,
    /// `Colours`, `#rrggbb` each, in their order.
    #[serde(skip_serializing_if = "is_default")]
    pub colours: Vec<String>,
    /// `XSize`: points along the time axis.
    #[serde(skip_serializing_if = "is_default")]
    pub x_size: Option<u32>,
    /// `YSize`: height in pixels.
    #[serde(skip_serializing_if = "is_default")]
    pub y_size: Option<u32>,
    /// `Unscaled`: letters of `dwmy` (day, week, month, year).
    #[serde(skip_serializing_if = "is_default")]
    pub unscaled: String,
    /// `WithPeak`: letters of `dwmy`.
    #[serde(skip_serializing_if = "is_default")]
    pub with_peak: String,
    /// `Suppress`: letters of `dwmy`.
    #[serde(skip_serializing_if = "is_default")]
    pub suppress: String,
    /// `Factor`: multiplies the numbers below a graph.
    #[serde(skip_serializing_if = "is_default")]
    pub factor: Option<f64>,
    /// `YTicsFactor`: multiplies the numbers on the y axis.
    #[serde(skip_serializing_if = "is_default")]
    pub y_tics_factor: Option<f64>,
}

/// First line of a file of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonsHead {
    /// Version of the format.
    #[serde(rename = "kymo_reasons")]
    version: u32,
}

/// A reason why some targets have no value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The reason, as a sentence for people.
    pub why: String,
    /// Names of the targets.
    pub targets: Vec<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl TargetsHead {
    /// The head for a configuration, in the current version of the format.
    pub fn new(config: String, interval_s: u32, targets: u32) -> TargetsHead {
        TargetsHead {
            version: VERSION,
            config,
            interval_s,
            targets,
        }
    }

    /// The head as a line of JSON with its newline.
    pub fn line(&self) -> String {
        written(self)
    }

    /// Parses a line without its newline. Refuses other versions, and intervals outside 1 to 86,400 s.
    pub fn parse(line: &[u8]) -> Result<TargetsHead, &'static str> {
        let head: TargetsHead = parsed(line)?;
        if head.version != VERSION {
            return Err("it is of another version of kymo");
        }
        if head.interval_s == 0 || head.interval_s > 86_400 {
            return Err("its interval makes no sense");
        }
        Ok(TargetsHead {
            config: cut(head.config, TEXT_MAX),
            ..head
        })
    }
}

impl ReasonsHead {
    /// The head as a line of JSON with its newline.
    pub fn line() -> String {
        written(&ReasonsHead { version: VERSION })
    }

    /// True if a line is the head of a file of reasons.
    pub fn is(line: &[u8]) -> bool {
        parsed(line).is_ok_and(|head: ReasonsHead| head.version == VERSION)
    }
}

impl Reason {
    /// The reason as lines of JSON with their newlines; a reason for many targets becomes several lines within [`LINE_MAX`].
    pub fn lines(&self) -> String {
        let why = cut(self.why.clone(), TEXT_MAX);
        let lines = self.targets.chunks(REASON_TARGETS).map(|targets| {
            written(&Reason {
                why: why.clone(),
                targets: targets.to_vec(),
            })
        });
        lines.collect()
    }

    /// Parses a line without its newline; a long reason is cut to [`TEXT_MAX`].
    pub fn parse(line: &[u8]) -> Result<Reason, &'static str> {
        let reason: Reason = parsed(line)?;
        Ok(Reason {
            why: cut(reason.why, TEXT_MAX),
            ..reason
        })
    }
}

impl DescribedTarget {
    /// The target as a line of JSON with its newline; long texts are cut.
    pub fn line(&self) -> String {
        written(&self.clone().bounded())
    }

    /// Parses a line without its newline. Refuses bad names of target or series; drops other bad values.
    pub fn parse(line: &[u8]) -> Result<DescribedTarget, &'static str> {
        let target: DescribedTarget = parsed(line)?;
        if !is_target_name(&target.name) {
            return Err("a target has no name, or a strange one");
        }
        if !is_series_name(&target.series) {
            return Err("a target has no series, or a strange one");
        }
        Ok(target.bounded())
    }

    /// True if the option is set; `option` is in lower case.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|word| word == option)
    }

    /// Cuts long texts, and clears values that are out of range.
    fn bounded(mut self) -> DescribedTarget {
        self.page_top = cut(self.page_top, PAGE_TOP_MAX);
        let texts = [&mut self.device, &mut self.title, &mut self.directory];
        let texts =
            texts
                .into_iter()
                .chain([&mut self.unscaled, &mut self.with_peak, &mut self.suppress]);
        for text in texts {
            *text = cut(std::mem::take(text), TEXT_MAX);
        }
        let legends = self.legends.iter_mut();
        let texts = legends.chain([
            &mut self.y_legend,
            &mut self.short_legend,
            &mut self.legend_i,
            &mut self.legend_o,
            &mut self.kmg,
        ]);
        for text in texts {
            *text = text.take().map(|text| cut(text, TEXT_MAX));
        }
        self.options.truncate(WORDS_MAX);
        self.options.retain(|word| word.len() <= 32);
        self.colours.truncate(5);
        if !self.colours.iter().all(|colour| is_colour(colour)) {
            self.colours.clear();
        }
        let sensible = |number: &f64| number.is_finite() && number.abs() >= 1e-12;
        self.kilo = self.kilo.filter(|kilo| sensible(kilo) && *kilo > 1.0);
        self.factor = self.factor.filter(sensible);
        self.y_tics_factor = self.y_tics_factor.filter(sensible);
        self.x_size = self.x_size.filter(|size| X_SIZES.contains(size));
        self.y_size = self.y_size.filter(|size| Y_SIZES.contains(size));
        self
    }
}

fn written<T: Serialize>(value: &T) -> String {
    // Structs of texts and numbers always serialise.
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

fn parsed<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, &'static str> {
    if line.len() > LINE_MAX {
        return Err("a line is too long");
    }
    serde_json::from_slice(line).map_err(|_| "a line makes no sense")
}

/// The beginning of a text, of at most `bytes_max` bytes and cut between characters.
fn cut(mut text: String, bytes_max: usize) -> String {
    let end = (0..=bytes_max.min(text.len())).rev();
    let end = end.into_iter().find(|&at| text.is_char_boundary(at));
    text.truncate(end.unwrap_or(0));
    text
}

fn is_target_name(name: &str) -> bool {
    let strange = |c: char| c.is_control() || c == '/';
    (1..=255).contains(&name.len()) && !name.contains(strange)
}

/// A path of a file or a label set. The keeper decides whether it names a series.
fn is_series_name(name: &str) -> bool {
    (1..=2048).contains(&name.len()) && !name.contains(char::is_control)
}

/// A colour such as `#00cc00`.
fn is_colour(word: &str) -> bool {
    let digits = word.strip_prefix('#').filter(|digits| digits.len() == 6);
    digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole() -> DescribedTarget {
        let text = |text: &str| Some(text.to_string());
        DescribedTarget {
            name: "10.0.0.1_2".into(),
            series: "mrtg/mrtg/core/10.0.0.1_2.rrd".into(),
            device: "10.0.0.1:1161".into(),
            title: "Traffic <b>\"2\"".into(),
            page_top: "Line 1\nLine 2 \u{e4}".into(),
            directory: "core".into(),
            max_bytes: [1_250_000, u64::MAX],
            abs_max: Some(2_500_000),
            options: vec!["bits".into(), "growright".into()],
            y_legend: text("Bits"),
            short_legend: text("b/s"),
            legends: [text("in"), None, None, text("peak"), None],
            legend_i: text(""),
            legend_o: text("Out"),
            kilo: Some(1024.0),
            kmg: text(",k,M"),
            colours: vec!["#00cc00".into(), "#0000FF".into()],
            x_size: Some(500),
            y_size: Some(120),
            unscaled: "ym".into(),
            with_peak: "wmy".into(),
            suppress: "y".into(),
            factor: Some(0.1),
            y_tics_factor: Some(2.0),
        }
    }

    fn least() -> DescribedTarget {
        DescribedTarget {
            name: "a".into(),
            series: "a.rrd".into(),
            ..DescribedTarget::default()
        }
    }

    #[test]
    fn lines_come_back() {
        for target in [whole(), least()] {
            let line = target.line();
            let body = line.strip_suffix('\n').expect("a line");
            assert!(!body.contains('\n'), "{line}");
            assert_eq!(DescribedTarget::parse(body.as_bytes()), Ok(target));
        }
        assert_eq!(least().line(), "{\"name\":\"a\",\"series\":\"a.rrd\"}\n");
        let head = TargetsHead::new("mrtg.cfg".into(), 300, 2);
        assert_eq!(
            head.line(),
            "{\"kymo_targets\":1,\"config\":\"mrtg.cfg\",\"interval\":300,\"targets\":2}\n"
        );
        assert_eq!(TargetsHead::parse(head.line().as_bytes()), Ok(head));
    }

    #[test]
    fn what_is_strange_is_refused() {
        for (line, why) in [
            ("", "a line makes no sense"),
            ("5", "a line makes no sense"),
            (
                "{\"series\":\"a.rrd\"}",
                "a target has no name, or a strange one",
            ),
            (
                "{\"name\":\"a/b\",\"series\":\"a\"}",
                "a target has no name, or a strange one",
            ),
            (
                "{\"name\":\"a\\n\",\"series\":\"a\"}",
                "a target has no name, or a strange one",
            ),
            (
                "{\"name\":\"a\"}",
                "a target has no series, or a strange one",
            ),
            (
                "{\"name\":\"a\",\"series\":\"a\\u0000\"}",
                "a target has no series, or a strange one",
            ),
            (
                "{\"name\":\"a\",\"series\":\"a\",\"max_bytes\":[1]}",
                "a line makes no sense",
            ),
            (
                "{\"name\":\"a\",\"series\":\"a\",\"max_bytes\":[-1,2]}",
                "a line makes no sense",
            ),
        ] {
            assert_eq!(DescribedTarget::parse(line.as_bytes()), Err(why), "{line}");
        }
        let long = format!(
            "{{\"name\":\"a\",\"series\":\"a\",\"title\":\"{}\"}}",
            "x".repeat(LINE_MAX)
        );
        assert_eq!(
            DescribedTarget::parse(long.as_bytes()),
            Err("a line is too long")
        );
        for (line, why) in [
            ("{}", "a line makes no sense"),
            (
                "{\"kymo_targets\":2,\"interval\":300,\"targets\":1}",
                "it is of another version of kymo",
            ),
            (
                "{\"kymo_targets\":1,\"interval\":0,\"targets\":1}",
                "its interval makes no sense",
            ),
        ] {
            assert_eq!(TargetsHead::parse(line.as_bytes()), Err(why), "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_was_not_said() {
        let strange = DescribedTarget {
            title: "\u{e4}".repeat(TEXT_MAX),
            page_top: "x".repeat(2 * PAGE_TOP_MAX),
            legend_i: Some("y".repeat(TEXT_MAX + 1)),
            colours: vec!["#00cc00".into(), "url(x)".into()],
            options: vec!["z".repeat(33), "bits".into()],
            kilo: Some(0.0),
            factor: Some(-1.0),
            y_tics_factor: Some(0.0),
            x_size: Some(7),
            y_size: Some(90_000),
            ..least()
        };
        let line = strange.line();
        let read = DescribedTarget::parse(line.trim_end().as_bytes()).expect("a target");
        assert_eq!(read.title.len(), TEXT_MAX);
        assert_eq!(read.page_top.len(), PAGE_TOP_MAX);
        assert_eq!(read.legend_i.as_deref().map(str::len), Some(TEXT_MAX));
        assert!(read.colours.is_empty() && read.options == ["bits"]);
        assert_eq!(
            (read.kilo, read.factor, read.y_tics_factor),
            (None, Some(-1.0), None)
        );
        assert_eq!((read.x_size, read.y_size), (None, None));
    }

    #[test]
    fn a_line_that_is_cut_is_no_target() {
        let line = whole().line();
        let line = line.trim_end().as_bytes();
        for end in 0..line.len() {
            assert!(DescribedTarget::parse(&line[..end]).is_err(), "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_texts_come_back(title in ".{0,80}", page_top in "(?s).{0,80}", legend in "(?s).{0,20}") {
            let target = DescribedTarget { title, page_top, legend_i: Some(legend), ..whole() };
            let line = target.line();
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert_eq!(DescribedTarget::parse(line.trim_end_matches('\n').as_bytes()), Ok(target));
        }
    }
}
