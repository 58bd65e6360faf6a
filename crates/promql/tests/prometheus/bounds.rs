//! Questions that are too large or too late end with an error; a silent source is named in a warning.

use std::sync::atomic::{AtomicBool, Ordering};

use kymo_promql::{Answer, Engine, EvalError, LabelSet, Limits, Value, Watch, parse};
use kymo_series::{
    Budget, Labels, Matcher, Metadata, ReadError, Reader, RowSink, RowsAs, Sample, SampleSink,
    SeriesId, TimeRange,
};

use crate::loaded::Loaded;

/// A trouble of a reader.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    None,
    SilentSamples,
    Failed,
    /// Samples are rows of an hour.
    Rows,
}

struct Troubled {
    loaded: Loaded,
    trouble: Trouble,
}

struct AsRows<'a>(&'a mut dyn SampleSink);

impl SampleSink for AsRows<'_> {
    fn samples(&mut self, id: SeriesId, samples: &[Sample], _resolution_s: u32) {
        self.0.samples(id, samples, 3600);
    }
}

impl Reader for Troubled {
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError> {
        match self.trouble {
            Trouble::Failed => Err(ReadError::Failed("a file is broken".into())),
            _ => self.loaded.select(matchers, range, budget),
        }
    }

    fn labels(&self, id: SeriesId) -> Option<Labels> {
        self.loaded.labels(id)
    }

    fn samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        rows: RowsAs,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        match self.trouble {
            Trouble::SilentSamples => {
                let (some, _) = ids.split_at(1);
                self.loaded.samples(some, range, rows, budget, sink)?;
                let source = "the store".into();
                Err(ReadError::Silent { source })
            }
            Trouble::Rows => self
                .loaded
                .samples(ids, range, rows, budget, &mut AsRows(sink)),
            Trouble::None | Trouble::Failed => self.loaded.samples(ids, range, rows, budget, sink),
        }
    }

    fn rows(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        step_s: u32,
        budget: &mut Budget,
        sink: &mut dyn RowSink,
    ) -> Result<(), ReadError> {
        self.loaded.rows(ids, range, step_s, budget, sink)
    }

    fn label_names(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        self.loaded.label_names(matchers, range)
    }

    fn label_values(
        &self,
        label: &str,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        self.loaded.label_values(label, matchers, range)
    }

    fn metadata(&self, metric: Option<&str>) -> Result<Vec<Metadata>, ReadError> {
        self.loaded.metadata(metric)
    }
}

/// Two series of 3,600 samples, one a second, with the moment as their value.
fn troubled(trouble: Trouble) -> Troubled {
    let mut loaded = Loaded::default();
    for instance in ["0", "1"] {
        let samples: Vec<Sample> = (0..3600_u32)
            .map(|t_s| Sample {
                t_ms: i64::from(t_s) * 1000,
                v: f64::from(t_s),
            })
            .collect();
        loaded.add(
            &LabelSet::new(&[("__name__", "x"), ("i", instance)]),
            &samples,
            false,
        );
    }
    Troubled { loaded, trouble }
}

fn ask(
    text: &str,
    limits: Limits,
    reader: &Troubled,
    is_canceled: bool,
    is_late: bool,
) -> Result<Answer, EvalError> {
    let canceled = AtomicBool::new(false);
    canceled.store(is_canceled, Ordering::Relaxed);
    let watch = Watch {
        canceled: &canceled,
        is_late: &|| is_late,
    };
    let expr = parse(text).unwrap();
    Engine::new(limits).range(&expr, 0, 3_600_000, 10_000, reader, watch)
}

#[test]
fn a_question_ends_at_its_limits() {
    let few = Limits {
        samples: 5000,
        ..Limits::default()
    };
    let small = Limits {
        values: 2000,
        ..Limits::default()
    };
    let one = Limits {
        series: 1,
        ..Limits::default()
    };
    let usual = Limits::default();
    // Labels take memory, too.
    let few_values = Limits {
        values: 3000,
        ..Limits::default()
    };
    let long = format!(
        r#"label_replace(vector(1), "a", "{}", "", "")"#,
        "y".repeat(10_000)
    );
    let joined = &*format!(r#"label_join({long}, "b", "", "a", "a")"#);
    for (text, limits, error) in [
        ("x", usual, None),
        ("x", few, Some(EvalError::TooManySamples)),
        ("max_over_time(x[1m:100ms])", usual, None),
        (r#"x{i="1"}"#, few, None),
        ("x", small, Some(EvalError::TooManySamples)),
        (
            "sum_over_time(vector(1)[1h:1ms])",
            small,
            Some(EvalError::TooManySamples),
        ),
        ("1 + 1", small, None),
        (joined, few_values, Some(EvalError::TooManySamples)),
        ("x", one, Some(EvalError::TooManySeries)),
    ] {
        let reader = troubled(Trouble::None);
        assert_eq!(
            ask(text, limits, &reader, false, false).err(),
            error,
            "{text}"
        );
    }
    let reader = troubled(Trouble::None);
    assert_eq!(
        ask("x", usual, &reader, true, false),
        Err(EvalError::Canceled)
    );
    assert_eq!(
        ask("x", usual, &reader, false, true),
        Err(EvalError::Timeout)
    );
}

#[test]
fn a_silent_source_is_named() {
    let answer = ask(
        "x",
        Limits::default(),
        &troubled(Trouble::SilentSamples),
        false,
        false,
    )
    .unwrap();
    let notes: Vec<String> = answer.notes.iter().map(|note| note.text("x")).collect();
    assert_eq!(notes, ["PromQL warning: the store does not answer"]);
    let Value::Matrix(tracks) = answer.value else {
        panic!("no matrix");
    };
    assert_eq!(tracks.len(), 1);
    let failed = ask(
        "x",
        Limits::default(),
        &troubled(Trouble::Failed),
        false,
        false,
    );
    assert_eq!(
        failed,
        Err(EvalError::Unavailable("a file is broken".into()))
    );
}

#[test]
fn a_row_stands_until_the_next_one() {
    let mut reader = troubled(Trouble::Rows);
    reader.loaded = Loaded::default();
    let labels = LabelSet::new(&[("__name__", "x")]);
    reader
        .loaded
        .add(&labels, &[Sample { t_ms: 0, v: 1.0 }], false);
    let counts = [Trouble::Rows, Trouble::None].map(|trouble| {
        reader.trouble = trouble;
        let answer = ask("x", Limits::default(), &reader, false, false).unwrap();
        let Value::Matrix(tracks) = answer.value else {
            panic!("no matrix");
        };
        tracks[0].samples.len()
    });
    assert_eq!(counts, [360, 30]);
}

#[test]
fn a_range_has_a_step_and_an_end() {
    let canceled = AtomicBool::new(false);
    let watch = Watch {
        canceled: &canceled,
        is_late: &|| false,
    };
    let (engine, reader) = (Engine::new(Limits::default()), troubled(Trouble::None));
    for (text, from_ms, thru_ms, step_ms) in [
        ("x", 1, 0, 1),
        ("x", 0, 1, 0),
        ("x", 0, 1, -1),
        ("x[1m]", 0, 1, 1),
        (r#""text""#, 0, 1, 1),
    ] {
        let expr = parse(text).unwrap();
        let answer = engine.range(&expr, from_ms, thru_ms, step_ms, &reader, watch);
        assert!(
            matches!(answer, Err(EvalError::BadData(_))),
            "{text}: {answer:?}"
        );
    }
    // The ends of time are moments like others.
    for text in [
        "rate(x[5m])",
        "x offset 1m",
        "sum_over_time(x[1m:1s])",
        "hour()",
        "x @ 1 + timestamp(x)",
    ] {
        let expr = parse(text).unwrap();
        for t_ms in [i64::MIN, i64::MAX] {
            assert!(
                engine.instant(&expr, t_ms, &reader, watch).is_ok(),
                "{text} at {t_ms}"
            );
        }
    }
}
