//! Random expressions over random series have the results of Prometheus' engine: the same series, moments, notes and
//! values. With `KYMO_SEED=2` in the environment they are others.

use std::sync::atomic::AtomicBool;

use kymo_promql::{Engine, LabelSet, Limits, Value, Watch, parse};
use kymo_series::{Sample, stale};

use crate::engine::{Answered, PrometheusEngine};
use crate::expressions::Random;
use crate::loaded::Loaded;

/// Values differ by this share at most.
const SAME: f64 = 1e-12;
/// Share by which rounding errors grow where values are subtracted.
const ROUNDED: f64 = 1e-9;
/// The begin of an error that tells its kind.
const MATCHES: &str = "multiple matches";
const QUESTIONS: usize = 4000;

#[test]
fn random_expressions_have_the_engines_results() {
    let seed = std::env::var("KYMO_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    let mut random = Random::new(seed);
    let series = series(&mut random);
    let Some(mut engine) = PrometheusEngine::start(&series) else {
        return;
    };
    let mut loaded = Loaded::default();
    for (labels, samples) in &series {
        loaded.add(labels, samples, false);
    }
    let (mut wrong, mut full, mut exact, mut all) = (Vec::new(), 0, 0, 0);
    for _ in 0..QUESTIONS {
        let text = random.expression();
        let (from_ms, thru_ms, step_ms) = random.times();
        let expected = engine.ask(&text, from_ms, thru_ms, step_ms);
        let found = ask(&text, from_ms, thru_ms, step_ms, &loaded);
        full += usize::from(!expected.series.is_empty());
        match difference(&expected, &found) {
            None => {
                all += 1;
                exact += usize::from(difference_by(&expected, &found, SAME).is_none());
            }
            Some(how) => wrong.push(format!(
                "{text} from {from_ms} thru {thru_ms} step {step_ms}: {how}"
            )),
        }
    }
    println!(
        "{all} of {QUESTIONS} are the same, {exact} of them within {SAME}; {full} have series"
    );
    assert!(
        full > QUESTIONS / 4,
        "{full} expressions with series are too few"
    );
    let count = wrong.len();
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{count} differ:\n{}", wrong.join("\n"));
}

fn ask(text: &str, from_ms: i64, thru_ms: i64, step_ms: i64, loaded: &Loaded) -> Answered {
    let failed = |error: String| Answered {
        error,
        series: Vec::new(),
        notes: Vec::new(),
    };
    let expr = match parse(text) {
        Ok(expr) => expr,
        Err(error) => return failed(error.to_string()),
    };
    let canceled = AtomicBool::new(false);
    let watch = Watch {
        canceled: &canceled,
        is_late: &|| false,
    };
    let engine = Engine::new(Limits::default());
    let answer = match step_ms {
        0 => engine.instant(&expr, from_ms, loaded, watch),
        _ => engine.range(&expr, from_ms, thru_ms, step_ms, loaded, watch),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return failed(error.to_string()),
    };
    let sample = |v| vec![Sample { t_ms: from_ms, v }];
    let series = match answer.value {
        Value::Scalar(v) => vec![(LabelSet::empty(), sample(v))],
        Value::Vector(vector) => vector
            .into_iter()
            .map(|(labels, v)| (labels, sample(v)))
            .collect(),
        Value::Matrix(tracks) => tracks
            .into_iter()
            .map(|track| (track.labels, track.samples))
            .collect(),
        Value::Text(_) => Vec::new(),
    };
    let mut notes: Vec<String> = answer.notes.iter().map(|note| note.text(text)).collect();
    notes.sort();
    Answered {
        error: String::new(),
        series,
        notes,
    }
}

fn difference(expected: &Answered, found: &Answered) -> Option<String> {
    difference_by(expected, found, ROUNDED)
}

fn difference_by(expected: &Answered, found: &Answered, same: f64) -> Option<String> {
    // The rest names series, of which each engine meets another one first. Of a range Prometheus' error is that of the
    // first step.
    let kind = |error: &str| match error.starts_with("found duplicate") {
        true => MATCHES.to_string(),
        false => error.chars().take(MATCHES.len()).collect(),
    };
    if kind(&expected.error) != kind(&found.error) {
        return Some(format!("error {:?}, not {:?}", found.error, expected.error));
    }
    let mut series: [Vec<_>; 2] = [&found.series, &expected.series].map(Clone::clone);
    for side in &mut series {
        side.sort_by(|a, b| a.0.cmp(&b.0));
        side.retain(|(_, samples)| !samples.is_empty());
    }
    let [mine, theirs] = series;
    if mine.len() != theirs.len() {
        let names = |side: &[(LabelSet, Vec<Sample>)]| {
            side.iter()
                .map(|(labels, _)| labels.to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        return Some(format!("series {}, not {}", names(&mine), names(&theirs)));
    }
    for ((labels, mine), (other, theirs)) in mine.iter().zip(&theirs) {
        if labels != other {
            return Some(format!("{labels}, not {other}"));
        }
        if mine.len() != theirs.len() {
            return Some(format!(
                "{labels}: {} samples, not {}",
                mine.len(),
                theirs.len()
            ));
        }
        for (a, b) in mine.iter().zip(theirs) {
            if a.t_ms != b.t_ms || !is_same(a.v, b.v, same) {
                return Some(format!("{labels}: {a:?}, not {b:?}"));
            }
        }
    }
    let (mine, theirs) = (
        comparable(&found.notes, &expected.notes),
        comparable(&expected.notes, &expected.notes),
    );
    (mine != theirs).then(|| format!("notes {mine:?}, not {theirs:?}"))
}

/// Notes without what Prometheus gets wrong: how many samples were repaired, and the places of subqueries (1:1).
fn comparable(notes: &[String], theirs: &[String]) -> Vec<String> {
    let has_places = !theirs.iter().any(|note| note.ends_with(" (1:1)"));
    let cut = |note: &String| match (note.split_once(" samples from "), has_places) {
        (Some((repaired, _)), _) => repaired.rsplit_once(' ').unwrap().0.to_string(),
        (None, true) => note.clone(),
        (None, false) => note.rsplit_once(" (").unwrap().0.to_string(),
    };
    notes.iter().map(cut).collect()
}

fn is_same(a: f64, b: f64, same: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= same * a.abs().max(b.abs())
}

/// Counters, gauges and buckets, with gaps, resets, stale markers and values that are no numbers.
fn series(random: &mut Random) -> Vec<(LabelSet, Vec<Sample>)> {
    let mut all = Vec::new();
    for (metric, jobs, instances) in [
        ("a_total", 2, 3),
        ("b_total", 2, 2),
        ("g", 2, 3),
        ("h", 1, 2),
    ] {
        for job in 0..jobs {
            for instance in 0..instances {
                let labels = [
                    ("__name__", metric),
                    ("job", ["x", "y"][job]),
                    ("i", ["0", "1", "2"][instance]),
                ];
                let counts = metric.ends_with("total");
                all.push((LabelSet::new(&labels), samples(random, counts)));
            }
        }
    }
    for instance in ["0", "1"] {
        for bound in ["0.1", "1", "2.5", "+Inf"] {
            let labels = [("__name__", "d_bucket"), ("i", instance), ("le", bound)];
            all.push((LabelSet::new(&labels), samples(random, true)));
        }
    }
    all
}

fn samples(random: &mut Random, counts: bool) -> Vec<Sample> {
    let every_ms = [5_000, 10_000, 15_000, 60_000][random.below(4)];
    let (mut t_ms, mut value) = (i64::try_from(random.below(120)).unwrap() * 1000, 0.0);
    let mut samples = Vec::new();
    while t_ms < 3_600_000 {
        let step = f64::from(u32::try_from(random.below(1000)).unwrap()) / 8.0;
        value = match counts {
            true if random.below(40) == 0 => step,
            true => value + step,
            false => step - 60.0,
        };
        let v = match random.below(60) {
            0 => stale(),
            1 if !counts => f64::NAN,
            2 if !counts => f64::INFINITY,
            _ => value,
        };
        samples.push(Sample { t_ms, v });
        t_ms += match random.below(30) {
            0 => 400_000,
            1 => 1_234,
            _ => every_ms,
        };
    }
    samples
}
