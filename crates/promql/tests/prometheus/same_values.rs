//! Prometheus' own test files: every evaluation over floats has the result that they say.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use kymo_promql::ast::{At, Expr};
use kymo_promql::{
    Answer, Engine, EvalError, FunctionId, LabelSet, Limits, Note, NoteKind, Value, Watch, parse,
};
use kymo_series::Sample;

use crate::exceptions::EXCEPTIONS;
use crate::go_module;
use crate::loaded::Loaded;
use crate::script::expected::Expectation;
use crate::script::{Command, Eval, LoadedSeries, When, commands};

/// Prometheus' own tolerance; its files have few digits.
const SAME: f64 = 1e-6;
const MINUTE_MS: i64 = 60_000;

/// The fate of a case.
enum Outcome {
    Passed,
    Skipped(&'static str),
    Failed(String),
}

#[test]
fn evaluations_have_prometheus_results() {
    let Some(module) = go_module::folder() else {
        return;
    };
    let mut passed = 0;
    let mut skipped: BTreeMap<&str, u32> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(module.join("promql/promqltest/testdata"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // Names that Prometheus itself reads only behind a flag.
    paths.retain(|path| !path.ends_with("unquoted_utf8_names.test"));
    paths.sort();
    let mut exceptions: Vec<_> = EXCEPTIONS.iter().collect();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().to_string();
        for (line, text, outcome) in run_file(&std::fs::read_to_string(&path).unwrap()) {
            let known = exceptions
                .iter()
                .position(|(place, _)| *place == format!("{name}:{line}"));
            let known = known.map(|at| exceptions.remove(at));
            match (outcome, known) {
                (Outcome::Passed, None) => passed += 1,
                (Outcome::Skipped(why), None) => *skipped.entry(why).or_default() += 1,
                (Outcome::Failed(_), Some((_, why))) => *skipped.entry(why).or_default() += 1,
                (Outcome::Failed(how), None) => wrong.push(format!("{name}:{line}: {text}: {how}")),
                (Outcome::Passed | Outcome::Skipped(_), Some(_)) => {
                    wrong.push(format!(
                        "{name}:{line} passes, and is listed as an exception"
                    ));
                }
            }
        }
    }
    wrong.extend(
        exceptions
            .iter()
            .map(|(place, _)| format!("{place} is no case any more")),
    );
    println!("{passed} cases pass; skipped: {skipped:?}");
    assert!(passed > 1000, "{passed} cases are too few to be all");
    assert!(
        wrong.is_empty(),
        "{} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn run_file(text: &str) -> Vec<(usize, String, Outcome)> {
    let mut loaded = Loaded::default();
    let mut outcomes = Vec::new();
    for command in commands(text) {
        match command {
            Command::Clear => loaded = Loaded::default(),
            Command::Load(series) => series.iter().for_each(|series| load(&mut loaded, series)),
            Command::Eval(eval) => {
                let outcome = run(&eval, &loaded);
                outcomes.push((eval.line, eval.text.clone(), outcome));
            }
        }
    }
    outcomes
}

fn load(loaded: &mut Loaded, series: &LoadedSeries) {
    let described = &series.described;
    let values = described.values.iter().enumerate();
    let samples: Vec<Sample> = values
        .filter_map(|(at, value)| {
            let t_ms = i64::try_from(at).unwrap() * series.step_ms;
            Some(Sample { t_ms, v: (*value)? })
        })
        .collect();
    let is_part = described.has_histograms || series.has_starts;
    loaded.add(&described.labels, &samples, is_part);
    let metric = described.labels.metric();
    let base = ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|end| metric.strip_suffix(end));
    if let Some(base) = base.filter(|_| series.is_native_too) {
        let others = described.labels.iter();
        let others = others.filter(|(name, _)| !matches!(*name, "le" | "__name__"));
        let labels: Vec<(&str, &str)> = others.chain([("__name__", base)]).collect();
        loaded.add(&LabelSet::new(&labels), &[], true);
    }
}

fn run(eval: &Eval, loaded: &Loaded) -> Outcome {
    let expectation = &eval.expectation;
    let expr = match parse(&eval.text) {
        Ok(expr) => expr,
        Err(error) => {
            let message = error.to_string();
            return match () {
                () if expectation.fails.is_some() => Outcome::Passed,
                () if message.contains("experimental") => Outcome::Skipped("experimental"),
                () if message.contains("native histograms") => {
                    Outcome::Skipped("native histograms")
                }
                () => Outcome::Failed(message),
            };
        }
    };
    if expectation.has_histograms {
        return Outcome::Skipped("native histograms");
    }
    loaded.picked_parts.set(false);
    let result = check(eval, &expr, loaded);
    if loaded.picked_parts.get() {
        return Outcome::Skipped("series with native histograms or start timestamps");
    }
    match result {
        Ok(()) => Outcome::Passed,
        Err(how) => Outcome::Failed(how),
    }
}

fn check(eval: &Eval, expr: &Expr, loaded: &Loaded) -> Result<(), String> {
    let t_ms = match eval.when {
        When::Range { .. } => {
            let answer = ask(expr, eval.when, loaded);
            return check_answer(eval, answer, |answer| compare(eval, eval.when, answer));
        }
        When::At(t_ms) => match eval.expectation.range {
            Some((_, thru_ms, _)) => thru_ms,
            None => t_ms,
        },
    };
    check_instant(eval, expr, t_ms, loaded)?;
    for (expr, t_ms) in fixed(expr, t_ms) {
        check_instant(eval, &expr, t_ms, loaded)
            .map_err(|how| format!("@ variant at {t_ms}: {how}"))?;
    }
    Ok(())
}

/// An instant, and the same moment as a step of a range.
fn check_instant(eval: &Eval, expr: &Expr, t_ms: i64, loaded: &Loaded) -> Result<(), String> {
    let when = When::At(t_ms);
    check_answer(eval, ask(expr, when, loaded), |answer| {
        compare(eval, when, answer)
    })?;
    let expectation = &eval.expectation;
    let is_range = expectation.range.is_some() || expectation.string.is_some();
    if expectation.fails.is_some() || is_range || expectation.is_ordered {
        return Ok(());
    }
    // These differ between an instant and a range.
    let of_the_query = ["start()", "end()", "range()", "step()"];
    if of_the_query
        .iter()
        .any(|function| eval.text.contains(function))
    {
        return Ok(());
    }
    let when = When::Range {
        from_ms: t_ms - MINUTE_MS,
        thru_ms: t_ms + MINUTE_MS,
        step_ms: MINUTE_MS,
    };
    let answer = ask(expr, when, loaded).map_err(|error| format!("as a range: {error}"))?;
    let Value::Matrix(tracks) = answer.value else {
        return Err("a range is no matrix".into());
    };
    let middle = tracks.into_iter().filter_map(|track| {
        let sample = track.samples.iter().find(|sample| sample.t_ms == t_ms)?;
        Some((track.labels, sample.v))
    });
    let middle: Vec<(LabelSet, f64)> = middle.collect();
    let value = match expectation.scalar {
        Some(_) => Value::Scalar(middle.first().map_or(f64::NAN, |(_, v)| *v)),
        None => Value::Vector(middle),
    };
    compare_value(expectation, When::At(t_ms), value).map_err(|how| format!("as a range: {how}"))
}

fn ask(expr: &Expr, when: When, loaded: &Loaded) -> Result<Answer, EvalError> {
    let canceled = AtomicBool::new(false);
    let watch = Watch {
        canceled: &canceled,
        is_late: &|| false,
    };
    let engine = Engine::new(Limits::default());
    match when {
        When::At(t_ms) => engine.instant(expr, t_ms, loaded, watch),
        When::Range {
            from_ms,
            thru_ms,
            step_ms,
        } => engine.range(expr, from_ms, thru_ms, step_ms, loaded, watch),
    }
}

fn check_answer(
    eval: &Eval,
    answer: Result<Answer, EvalError>,
    compare: impl Fn(Answer) -> Result<(), String>,
) -> Result<(), String> {
    match (answer, &eval.expectation.fails) {
        (Err(error), Some(expected)) => match expected.fits(&error.to_string()) {
            true => Ok(()),
            false => Err(format!("another error: {error}")),
        },
        (Err(error), None) => Err(format!("error: {error}")),
        (Ok(_), Some(_)) => Err("no error".into()),
        (Ok(answer), None) => {
            check_notes(&eval.expectation, &eval.text, &answer.notes)?;
            compare(answer)
        }
    }
}

fn check_notes(expectation: &Expectation, text: &str, notes: &[Note]) -> Result<(), String> {
    for kind in [NoteKind::Warning, NoteKind::Info] {
        let found = notes.iter().filter(|note| note.kind == kind);
        let found: Vec<String> = found.map(|note| note.text(text)).collect();
        let expected: Vec<_> = expectation
            .notes
            .iter()
            .filter(|(of, _)| *of == kind)
            .collect();
        if expectation.silent.contains(&kind) && !found.is_empty() {
            return Err(format!("unexpected notes: {found:?}"));
        }
        if expected.is_empty() {
            continue;
        }
        let fits = |found: &String| expected.iter().any(|(_, text)| text.fits(found));
        let is_met = expected
            .iter()
            .all(|(_, text)| found.iter().any(|found| text.fits(found)));
        if !is_met || !found.iter().all(fits) {
            return Err(format!("other notes of kind {kind:?}: {found:?}"));
        }
    }
    Ok(())
}

fn compare(eval: &Eval, when: When, answer: Answer) -> Result<(), String> {
    compare_value(&eval.expectation, when, answer.value)
}

fn compare_value(expectation: &Expectation, when: When, value: Value) -> Result<(), String> {
    match value {
        Value::Text(text) => match expectation.string.as_ref() == Some(&text) {
            true => Ok(()),
            false => Err(format!("text {text:?}")),
        },
        Value::Scalar(found) => match expectation.scalar {
            Some(expected) if is_same(found, expected) => Ok(()),
            expected => Err(format!("scalar {found}, not {expected:?}")),
        },
        Value::Vector(found) => compare_vector(expectation, &found),
        Value::Matrix(tracks) => {
            let (from_ms, step_ms) = match (when, expectation.range) {
                (_, Some((from_ms, _, step_ms))) => (from_ms, step_ms),
                (
                    When::Range {
                        from_ms, step_ms, ..
                    },
                    None,
                ) => (from_ms, step_ms),
                (When::At(t_ms), None) => (t_ms, 1),
            };
            let is_sorted = tracks.is_sorted_by(|one, next| one.labels <= next.labels);
            let found = tracks
                .iter()
                .map(|track| (track.labels.clone(), track.samples.clone()));
            match is_sorted {
                true => compare_matrix(expectation, found.collect(), from_ms, step_ms),
                false => Err("series are not sorted".into()),
            }
        }
    }
}

fn compare_vector(expectation: &Expectation, found: &[(LabelSet, f64)]) -> Result<(), String> {
    let shown = || format!("found {found:?}");
    if found.len() != expectation.series.len() || expectation.scalar.is_some() {
        return Err(shown());
    }
    for (at, (labels, value)) in found.iter().enumerate() {
        let place = expectation
            .series
            .iter()
            .position(|(expected, _)| expected == labels);
        let place = place.ok_or_else(shown)?;
        let expected = expectation.series[place].1.first().copied().flatten();
        let is_placed = !expectation.is_ordered || place == at;
        if !is_placed || !expected.is_some_and(|expected| is_same(*value, expected)) {
            return Err(shown());
        }
    }
    Ok(())
}

fn compare_matrix(
    expectation: &Expectation,
    found: Vec<(LabelSet, Vec<Sample>)>,
    from_ms: i64,
    step_ms: i64,
) -> Result<(), String> {
    if found.len() != expectation.series.len() {
        return Err(format!("found {found:?}"));
    }
    for (labels, expected) in &expectation.series {
        let same = found.iter().find(|(found, _)| found == labels);
        let Some((_, samples)) = same else {
            return Err(format!("{labels} is missing; found {found:?}"));
        };
        let expected = expected.iter().enumerate().filter_map(|(at, value)| {
            let t_ms = from_ms + i64::try_from(at).unwrap() * step_ms;
            Some(Sample { t_ms, v: (*value)? })
        });
        let expected: Vec<Sample> = expected.collect();
        let mut pairs = samples.iter().zip(&expected);
        let is_all = pairs.all(|(a, b)| a.t_ms == b.t_ms && is_same(a.v, b.v));
        if samples.len() != expected.len() || !is_all {
            return Err(format!("{labels}: {samples:?}, not {expected:?}"));
        }
    }
    Ok(())
}

/// Equal, both NaN, or apart by a small share.
fn is_same(a: f64, b: f64) -> bool {
    if a == b || (a.is_nan() && b.is_nan()) {
        return true;
    }
    let (sum, difference) = (a.abs() + b.abs(), (a - b).abs());
    if a == 0.0 || b == 0.0 || sum < f64::MIN_POSITIVE {
        return difference < SAME * f64::MIN_POSITIVE;
    }
    difference / sum.min(f64::MAX) < SAME
}

/// The expression with every selector fixed to a moment, which then has the same value at any other moment.
fn fixed(expr: &Expr, t_ms: i64) -> Vec<(Expr, i64)> {
    let mut fixed = expr.clone();
    if !fix(&mut fixed, t_ms) {
        return Vec::new();
    }
    let others = match t_ms {
        0 => vec![-1000, 0, 1000],
        _ => vec![-10 * t_ms, 0, t_ms / 5, t_ms, 10 * t_ms],
    };
    others
        .into_iter()
        .map(|other| (fixed.clone(), other))
        .collect()
}

/// Fixes selectors that are not in a fixed subquery; false: a function depends on the moment of evaluation.
fn fix(expr: &mut Expr, t_ms: i64) -> bool {
    let set = |at: &mut Option<At>| {
        if !matches!(at, Some(At::Time(_))) {
            *at = Some(At::Time(t_ms));
        }
    };
    match expr {
        Expr::Number(_) | Expr::String(_) => true,
        Expr::Vector(selector) => {
            set(&mut selector.at);
            true
        }
        Expr::Matrix(matrix) => {
            set(&mut matrix.selector.at);
            true
        }
        Expr::Subquery(subquery) => {
            set(&mut subquery.at);
            !uses_moment(&subquery.expr)
        }
        Expr::Unary(unary) => fix(&mut unary.expr, t_ms),
        Expr::Paren(paren) => fix(&mut paren.expr, t_ms),
        Expr::Binary(binary) => fix(&mut binary.left, t_ms) & fix(&mut binary.right, t_ms),
        Expr::Aggregation(of) => {
            let parameter = of
                .parameter
                .as_mut()
                .is_none_or(|parameter| fix(parameter, t_ms));
            fix(&mut of.expr, t_ms) & parameter
        }
        Expr::Call(call) => {
            let is_safe = !MOMENT.contains(&call.function.id);
            call.args
                .iter_mut()
                .fold(is_safe, |safe, arg| safe & fix(arg, t_ms))
        }
    }
}

fn uses_moment(expr: &Expr) -> bool {
    // A copy is changed, and only the answer is kept.
    !fix(&mut expr.clone(), 0)
}

/// Functions of the moment of evaluation.
const MOMENT: [FunctionId; 11] = [
    FunctionId::DaysInMonth,
    FunctionId::DayOfMonth,
    FunctionId::DayOfWeek,
    FunctionId::DayOfYear,
    FunctionId::Hour,
    FunctionId::Minute,
    FunctionId::Month,
    FunctionId::Year,
    FunctionId::PredictLinear,
    FunctionId::Time,
    FunctionId::Timestamp,
];
