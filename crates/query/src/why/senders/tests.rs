use kymo_series::{Matcher, Metadata, RowSink};

use super::*;

/// 2026-11-21 19:00:00 UTC.
const AT_S: i64 = 1_795_287_600;
/// The minute that is asked about.
const SPAN: (i64, i64) = (AT_S * 1_000 * MS_NS, (AT_S + 60) * 1_000 * MS_NS);

/// Series with their samples, seconds from [`AT_S`] on.
#[derive(Default)]
struct Made(Vec<(Labels, Vec<Sample>)>);

impl Made {
    fn add(&mut self, labels: &[(&str, &str)], samples: impl IntoIterator<Item = (i64, f64)>) {
        let labels = labels.iter().map(|(name, value)| (*name, value.as_bytes()));
        let samples = samples.into_iter().map(|(at_s, v)| Sample {
            t_ms: (AT_S + at_s) * 1_000,
            v,
        });
        self.0
            .push((Labels::new(labels).unwrap(), samples.collect()));
    }

    /// A value of collectd each ten seconds, but for those of `silent`.
    fn host(&mut self, host: &str, silent: std::ops::Range<i64>) {
        let path = format!("{host}/load/load");
        let times = (-400..400).map(|n| n * 10);
        let times = times.filter(|at_s| !silent.contains(at_s));
        self.add(
            &[(METRIC, "rrd"), ("path", &path), ("ds", "value")],
            times.map(|at_s| (at_s, 1.0)),
        );
    }

    /// A counter of a program that grows by `rate` a second.
    fn program(&mut self, program: &str, rate: impl Fn(i64) -> f64) {
        let mut total = 0.0;
        let samples = (-400..30).map(|n| {
            total += 10.0 * rate(n * 10);
            (n * 10, total)
        });
        self.add(
            &[
                (METRIC, "orders_total"),
                ("job", "programs"),
                ("publisher", program),
                ("user", "ada"),
                ("kind", "new"),
            ],
            samples.collect::<Vec<_>>(),
        );
    }

    /// Findings in short: kind and names with when they were back, or a metric.
    fn found(&self) -> Vec<String> {
        let found = findings(self, SPAN).unwrap();
        let short = found.iter().map(|finding| match &finding.subject {
            Subject::Silence {
                kind,
                names,
                back_ns,
            } => {
                let seconds = |ns: i64| ns / MS_NS / 1_000 - AT_S;
                let since_s = seconds(finding.since_ns.unwrap());
                let back_s = back_ns.map(seconds);
                format!(
                    "{kind} {} {since_s} {back_s:?} each {}",
                    names.join(","),
                    finding.usual
                )
            }
            Subject::Metric { publisher, name } => {
                format!("{publisher} {name} {} {}", finding.value, finding.usual)
            }
            other => format!("{other:?}"),
        });
        short.collect()
    }
}

impl Reader for Made {
    fn select(
        &self,
        _: &[Matcher],
        range: TimeRange,
        _: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError> {
        let all = self.0.iter().enumerate();
        let has_begun = |samples: &[Sample]| {
            let last = samples.last();
            last.is_some_and(|last| last.t_ms >= range.from_ms)
        };
        let found = all.filter(|(_, (_, samples))| has_begun(samples));
        Ok(found.map(|(place, _)| SeriesId::at(place)).collect())
    }

    fn labels(&self, id: SeriesId) -> Option<Labels> {
        Some(self.0.get(id.place())?.0.clone())
    }

    fn samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        _: RowsAs,
        _: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        for id in ids {
            let samples = self.0[id.place()].1.iter().copied();
            let samples: Vec<Sample> = samples.filter(|sample| range.has(sample.t_ms)).collect();
            sink.samples(*id, &samples, 0);
        }
        Ok(())
    }

    fn rows(
        &self,
        _: &[SeriesId],
        _: TimeRange,
        _: u32,
        _: &mut Budget,
        _: &mut dyn RowSink,
    ) -> Result<(), ReadError> {
        Ok(())
    }

    fn label_names(&self, _: &[Matcher], _: TimeRange) -> Result<Vec<String>, ReadError> {
        Ok(Vec::new())
    }

    fn label_values(&self, _: &str, _: &[Matcher], _: TimeRange) -> Result<Vec<String>, ReadError> {
        Ok(Vec::new())
    }

    fn metadata(&self, _: Option<&str>) -> Result<Vec<Metadata>, ReadError> {
        Ok(Vec::new())
    }
}

const NEVER: std::ops::Range<i64> = 0..0;
const FOR_EVER: i64 = 100_000;

#[test]
fn hosts_that_fell_silent_are_named() {
    for (silent, expected) in [
        (NEVER, None),
        // Before the minute, and within it.
        (-300..FOR_EVER, Some("host web7 -310 None each 10")),
        (20..FOR_EVER, Some("host web7 10 None each 10")),
        // Back within the minute, and after it.
        (-300..30, Some("host web7 -310 Some(30) each 10")),
        (-300..600, Some("host web7 -310 Some(600) each 10")),
        // Back before the minute; silent after it, and more than an hour before it.
        (-300..-60, None),
        (120..FOR_EVER, None),
        (-3_900..FOR_EVER, None),
        // Two values that are missing are nothing.
        (10..30, None),
    ] {
        let mut made = Made::default();
        made.host("web1", NEVER);
        made.host("web7", silent.clone());
        let expected: Vec<String> = expected.into_iter().map(str::to_string).collect();
        assert_eq!(made.found(), expected, "{silent:?}");
    }
}

#[test]
fn one_series_that_goes_on_is_enough() {
    let mut made = Made::default();
    made.host("web7", -300..FOR_EVER);
    made.host("web7", NEVER);
    assert_eq!(made.found(), [""; 0]);
}

#[test]
fn many_at_once_are_one_line() {
    let mut made = Made::default();
    for n in 1..=9 {
        made.host(&format!("rack{n}"), -300 + n..FOR_EVER);
    }
    made.host("web1", -100..FOR_EVER);
    made.host("web2", NEVER);
    let names: Vec<String> = (1..=9).map(|n| format!("rack{n}")).collect();
    let rack = format!("host {} -300 None each 10", names.join(","));
    assert_eq!(made.found(), [&*rack, "host web1 -110 None each 10"]);
}

#[test]
fn values_that_are_seldom_or_irregular_are_no_silence() {
    let mut made = Made::default();
    made.host("web1", NEVER);
    let job = |path| [(METRIC, "rrd"), ("path", path), ("ds", "value")];
    // Each five minutes, the last one four minutes ago; and a job that runs when it likes.
    made.add(
        &job("slow/load/load"),
        (-13..0).map(|n| (60 + n * 300, 1.0)),
    );
    let times = [-3_500, -2_900, -2_890, -2_100, -1_500, -1_400, -600];
    made.add(&job("job/load/load"), times.map(|at_s| (at_s, 1.0)));
    assert_eq!(made.found(), [""; 0]);
}

#[test]
fn devices_and_targets_have_their_names() {
    let mut made = Made::default();
    made.host("web1", NEVER);
    let minutes = || (-60..-5).map(|n| n * 60);
    let of_device = [(METRIC, "ifInOctets"), ("job", "snmp"), ("instance", "sw1")];
    made.add(&of_device, minutes().map(|at_s| (at_s, 1.0)));
    let up = [(METRIC, "up"), ("job", "snmp"), ("instance", "sw1")];
    made.add(&up, (-60..5).map(|n| (n * 60, 0.0)));
    // The poller stores that it knows nothing.
    let target = [(METRIC, "rrd"), ("path", "mrtg/net/sw2_1"), ("ds", "ds0")];
    let unknown = (-5..5).map(|n| (n * 60, f64::NAN));
    made.add(&target, minutes().map(|at_s| (at_s, 1.0)).chain(unknown));
    assert_eq!(
        made.found(),
        [
            "device sw1 -360 None each 60",
            "target sw2_1 -360 None each 60"
        ]
    );
}

#[test]
fn where_this_machine_has_no_values_others_have_none() {
    let own = machine::host();
    let mut made = Made::default();
    for host in [&*own, "web1", "web2"] {
        made.host(host, -300..600);
    }
    assert_eq!(made.found(), [""; 0]);
}

#[test]
fn programs_that_hang_and_values_that_leave_their_range() {
    type Case<'a> = (&'a dyn Fn(i64) -> f64, Option<&'a str>);
    let cases: [Case; 5] = [
        (&|_| 12.0, None),
        (
            &|at_s| if at_s > -200 { 0.0 } else { 12.0 },
            Some("program shop -200 None each 10"),
        ),
        (
            &|at_s| if at_s > 0 { 90.0 } else { 12.0 },
            Some("shop orders_total kind=new 90 12"),
        ),
        (&|at_s| if at_s > 0 { 14.0 } else { 12.0 }, None),
        (
            &|at_s| if at_s > 0 { 1.0 } else { 12.0 },
            Some("shop orders_total kind=new 1 12"),
        ),
    ];
    for (rate, expected) in cases {
        let mut made = Made::default();
        made.host("web1", NEVER);
        made.program("shop", rate);
        let expected: Vec<String> = expected.into_iter().map(str::to_string).collect();
        assert_eq!(made.found(), expected);
    }
}
