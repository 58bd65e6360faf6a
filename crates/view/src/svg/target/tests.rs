use super::*;
use crate::svg::Theme;
use kymo_base::context::Context;
use kymo_query::marks::{Kind, Origin};
use kymo_query::targets::TargetLine;

const NOW: i64 = 1_795_287_600;

fn line(averages: &[f64], peaks: &[f64]) -> TargetLine {
    TargetLine {
        averages: averages.to_vec(),
        peaks: peaks.to_vec(),
        max: averages
            .iter()
            .chain(peaks)
            .copied()
            .fold(f64::NAN, f64::max),
        average: 2.0,
        current: f64::NAN,
        average_peak: 3.0,
    }
}

fn target(words: &[&str]) -> DescribedTarget {
    DescribedTarget {
        name: "sw1_2".into(),
        series: "a.rrd".into(),
        title: "<img src=x onerror=alert(1)> & more".into(),
        max_bytes: [10, 8],
        options: words.iter().map(|word| word.to_string()).collect(),
        with_peak: "m".into(),
        ..DescribedTarget::default()
    }
}

fn drawn(target: &DescribedTarget, period: Period) -> String {
    let rows = [1.0, 2.0, f64::NAN, 4.0];
    let peaks = [2.0, 9.0, f64::NAN, 4.0];
    let peaks = if period.has_peaks(target) {
        &peaks[..]
    } else {
        &[]
    };
    let graph = TargetGraph {
        period,
        range: period.range(target, NOW),
        start: NOW - 4 * i64::from(period.row_s()),
        step: period.row_s(),
        lines: [line(&rows, peaks), line(&[1.0, 1.0, 1.0, 0.0], &[])],
    };
    let percentile = Percentile {
        rates: [3.5, f64::NAN],
        values: [8640, 0],
        from: NOW - 30 * 86_400,
        step: 300,
    };
    let mark = |age_s: i64, kind, text: &str| Mark {
        from_ns: (NOW - age_s) * SECOND_NS,
        until_ns: (NOW - age_s) * SECOND_NS,
        kind,
        text: text.into(),
        origin: Origin::Device("sw1".into()),
    };
    let marks = [
        mark(40 * 86_400, Kind::Okay, "too early for a month"),
        mark(3600, Kind::Failure, "<silent>"),
        mark(10, Kind::Warning, "restarted"),
        mark(9, Kind::Warning, "restarted again"),
    ];
    let picture = TargetPicture {
        target,
        graphs: &[graph],
        percentile: &percentile,
        marks: &marks,
    };
    let mut context = Context::default();
    context.set("tz", "UTC");
    let style = Style {
        theme: Theme::Light,
        ..Style::default()
    };
    let mut out = String::new();
    draw_target(&picture, &mut Zone::of(&context), &style, &mut out);
    roxmltree::Document::parse(&out).expect("XML");
    out
}

#[test]
fn names_are_texts() {
    let svg = drawn(&target(&[]), Period::Day);
    assert!(
        svg.contains("&lt;img src=x onerror=alert(1)&gt; &amp; more"),
        "{svg}"
    );
    assert!(!svg.contains("<img"));
}

#[test]
fn options_are_drawn() {
    let month = drawn(&target(&["bits"]), Period::Month);
    for part in [
        "fill=\"#006600\"",
        "fill=\"#00cc00\"",
        "stroke=\"#0000ff\"",
        "stroke-dasharray=\"4 3\"",
        "stroke-dasharray=\"8 3 2 3\"",
        "72.0 b/s (90.0 %)",
        "95th percentile of 8640 averages of 5 min since",
        "Bits per Second",
        "28.0 b/s (35.0 %)",
    ] {
        assert!(month.contains(part), "{part} in {month}");
    }
    let plain = drawn(&target(&["noo", "nopercent", "nolegend"]), Period::Day);
    for part in ["#0000ff", "#006600", " %)", "Incoming", "Out<", "95th"] {
        assert!(!plain.contains(part), "{part} in {plain}");
    }
}

/// Events have flags in the graphs of their time, in both directions of time.
#[test]
fn what_happened_is_flagged() {
    for words in [&[][..], &["growright"]] {
        let svg = drawn(&target(words), Period::Day);
        for (text, is_there) in [
            (": &lt;silent&gt;</title>", true),
            (": restarted (and 1 more)</title>", true),
            ("too early", false),
        ] {
            assert_eq!(svg.contains(text), is_there, "{text} in {svg}");
        }
    }
}

/// The newest rate is at the left, or with `growright` at the right.
#[test]
fn time_runs_as_the_target_says() {
    let first = |words: &[&str]| {
        let svg = drawn(&target(words), Period::Day);
        let path = svg
            .split("<path d=\"M")
            .find(|path| path.contains("fill=\"#00cc00\""))
            .expect("an area");
        path.split(' ')
            .next()
            .and_then(|x| x.parse::<f64>().ok())
            .expect("a place")
    };
    let (left, right) = (first(&[]), first(&["growright"]));
    assert!(left < 100.0 && right > 800.0, "{left} {right}");
}

#[test]
fn axes_are_round() {
    let unit = TargetUnit::of(&target(&[]));
    let labels = |ends: Ends| {
        let ticks = ends.ticks(&unit, 110.0);
        ticks
            .into_iter()
            .map(|(_, label)| label)
            .collect::<Vec<_>>()
            .join(", ")
    };
    for (ends, expect) in [
        (Ends::linear(9.0), "0, 5"),
        (Ends::linear(1_250_000.0), "0, 500 k, 1 M"),
        (Ends::linear(f64::NAN), "0, 0.5, 1"),
        (Ends::decades(150.0, 90_000.0), "100, 1 k, 10 k, 100 k"),
        (Ends::decades(f64::NAN, 0.0), "0.1, 1"),
        (Ends::decades(1e-9, 1000.0), "0.01, 0.1, 1, 10, 100, 1 k"),
    ] {
        assert_eq!(labels(ends), expect, "{ends:?}");
    }
}

#[test]
fn extreme_rates_are_no_trouble() {
    for rate in [0.0, -1.0, f64::INFINITY, f64::MAX, 1e-300] {
        for words in [&["logscale"][..], &[], &["secondmean", "growright"]] {
            let target = target(words);
            let graph = TargetGraph {
                period: Period::Year,
                range: Period::Year.range(&target, NOW),
                start: NOW - 86_400,
                step: 86_400,
                lines: [line(&[rate], &[]), line(&[rate], &[])],
            };
            let percentile = Percentile {
                rates: [rate; 2],
                values: [1; 2],
                from: NOW,
                step: 300,
            };
            let picture = TargetPicture {
                target: &target,
                graphs: &[graph],
                percentile: &percentile,
                marks: &[],
            };
            let mut out = String::new();
            draw_target(
                &picture,
                &mut Zone::of(&Context::default()),
                &Style::default(),
                &mut out,
            );
            roxmltree::Document::parse(&out).expect("XML");
        }
    }
}
