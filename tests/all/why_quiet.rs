//! Quiet hours: at most one of a hundred random moments of a recording of a quiet machine names what isn't in the numbers.
//!
//! The oracle knows nothing of scores: it compares the value of a line with the values before it, ten seconds each.

use std::path::{Path, PathBuf};
use std::thread::scope;

use kymo_base::context::Context;
use kymo_base::field::Unit;
use kymo_query::archive::{Archive, RecordingSource};
use kymo_query::open::Recordings;
use kymo_query::series::{Grid, Point, Series};
use kymo_query::sheet::Pick;
use kymo_query::why::{Cause, Finding, Subject, When, Why, why};

const MOMENTS: usize = 500;
/// Moments with a line that is not in the numbers, at most.
const WRONG_MAX: usize = MOMENTS / 100;
const SECOND_NS: i64 = 1_000_000_000;
const HOUR_NS: i64 = 3_600 * SECOND_NS;
/// Share of the values before that a named one exceeds.
const BEYOND_PERCENT: usize = 95;
/// Rounding of values in texts, and samples that another reading counts to the next ten seconds.
const TOLERANCE: f64 = 0.02;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/quiet.kymo")
}

fn recordings() -> Recordings {
    Recordings::find(&[fixture()]).expect("fixtures/quiet.kymo")
}

/// Moments at random, the same in each run.
fn moments() -> Vec<i64> {
    let archive = Archive::new(RecordingSource::Files(vec![fixture()]), None);
    let extent = archive.extent().expect("fixtures/quiet.kymo");
    let length_ns = extent.thru_ns - extent.from_ns;
    // Something has to be known of the time before.
    let lead_ns = HOUR_NS.min(length_ns / 4);
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let share = (state >> 11) as f64 / (1_u64 << 53) as f64;
        extent.from_ns + lead_ns + (share * (length_ns - lead_ns) as f64) as i64
    };
    (0..MOMENTS).map(|_| next()).collect()
}

/// Points of ten seconds of a field; none: it has no values then.
fn points(recordings: &Recordings, id: &str, (from_ns, thru_ns): (i64, i64)) -> Vec<Point> {
    let step_ns = 10 * SECOND_NS;
    let grid = Grid {
        from_ns,
        step_ns,
        count: usize::try_from((thru_ns - from_ns) / step_ns)
            .unwrap_or(0)
            .max(1),
    };
    let picks = [Pick::parse(id).expect(id)];
    let mut source = recordings
        .open(grid.range(), Pick::kinds(&picks))
        .expect("a source");
    let series = Series::read(&mut *source, &picks, grid, 16).expect("values");
    let points = series.points.into_iter().next().unwrap_or_default();
    points
        .into_iter()
        .filter(|point| point.seconds > 0.0)
        .collect()
}

/// True if a field had this value in the span, and hardly ever before it, or before it began.
fn has_left_its_range(recordings: &Recordings, of: &Why, finding: &Finding, id: &str) -> bool {
    let (value, begin_ns) = (finding.value, finding.since_ns.unwrap_or(of.from_ns));
    let within = points(
        recordings,
        id,
        (of.from_ns - 10 * SECOND_NS, of.thru_ns + 10 * SECOND_NS),
    );
    let before = points(recordings, id, (of.before_ns, begin_ns));
    let sign = if value >= finding.usual { 1.0 } else { -1.0 };
    let room = TOLERANCE * value.abs().max(1.0);
    let is_there = within
        .iter()
        .any(|point| (point.min - room..=point.max + room).contains(&value));
    let mut means: Vec<f64> = before.iter().map(|point| sign * point.mean()).collect();
    means.sort_by(f64::total_cmp);
    let usual = means.get(means.len() * BEYOND_PERCENT / 100);
    is_there && usual.is_some_and(|usual| sign * value > *usual)
}

/// True if a mark of this kind is in the span.
fn is_marked(recordings: &Recordings, of: &Why, kind: kymo_query::marks::Kind) -> bool {
    let grid = Grid::new(of.from_ns, of.thru_ns, 10, SECOND_NS);
    let mut source = recordings
        .open(grid.range(), Pick::kinds(&[]))
        .expect("a source");
    let series = Series::read(&mut *source, &[], grid, 1).expect("marks");
    series.marks.iter().any(|mark| mark.kind == kind)
}

/// Lines of an answer that are not in the numbers. A process is named below a field, which is looked at.
fn wrong(recordings: &Recordings, of: &Why, findings: &[Finding], is_head: bool) -> Vec<String> {
    let mut found = Vec::new();
    for finding in findings {
        let is_right = match &finding.subject {
            Subject::Field { id, .. } => has_left_its_range(recordings, of, finding, id),
            Subject::Mark(kind, _) => is_marked(recordings, of, *kind),
            _ => !is_head,
        };
        if !is_right {
            found.push(format!("{}: {finding:?}", of.from_ns / SECOND_NS));
        }
        found.extend(wrong(recordings, of, &finding.parts, false));
    }
    found
}

#[test]
fn quiet_hours_name_only_what_is_in_the_numbers() {
    let moments = moments();
    let judge = |part: &[i64]| {
        let recordings = recordings();
        let mut found: (usize, Vec<Vec<String>>) = (0, Vec::new());
        for &at_ns in part {
            let answer = why(&recordings, When::around(at_ns)).expect("an answer");
            found.0 += usize::from(!answer.findings.is_empty());
            let wrong = wrong(&recordings, &answer, &answer.findings, true);
            found
                .1
                .extend(Some(wrong).filter(|wrong| !wrong.is_empty()));
        }
        found
    };
    let parts: Vec<(usize, Vec<Vec<String>>)> = scope(|scope| {
        let threads = moments.chunks(MOMENTS.div_ceil(4));
        let threads: Vec<_> = threads.map(|part| scope.spawn(|| judge(part))).collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().expect("an end"));
        joined.collect()
    });
    let named: usize = parts.iter().map(|(named, _)| named).sum();
    let wrong: Vec<&Vec<String>> = parts.iter().flat_map(|(_, wrong)| wrong).collect();
    eprintln!(
        "{named} of {MOMENTS} moments have a line, {} a wrong one",
        wrong.len()
    );
    assert!(wrong.len() <= WRONG_MAX, "{} {wrong:#?}", wrong.len());
}

/// The oracle refuses values that were never there, and values that are usual.
#[test]
fn the_oracle_knows_a_line_that_is_not_in_the_numbers() {
    let (recordings, at_ns) = (recordings(), moments()[0]);
    let answer = Why {
        from_ns: at_ns,
        thru_ns: at_ns + 60 * SECOND_NS,
        before_ns: at_ns - HOUR_NS,
        context: Context::default(),
        ..Why::default()
    };
    let field = "memory.available";
    let mut before: Vec<f64> = points(&recordings, field, (at_ns - HOUR_NS, at_ns))
        .iter()
        .map(Point::mean)
        .collect();
    before.sort_by(f64::total_cmp);
    let usual = before[before.len() / 2];
    for value in [1.0, 1e15, usual] {
        let finding = Finding {
            cause: Cause::Memory,
            subject: Subject::Field {
                id: field.into(),
                help: "",
                private: false,
            },
            value,
            usual: value / 2.0,
            unit: Unit::Kilobytes,
            score: 9.0,
            severity: 2.0,
            since_ns: None,
            parts: Vec::new(),
        };
        let is_named = has_left_its_range(&recordings, &answer, &finding, field);
        assert!(!is_named, "{value}");
    }
}
