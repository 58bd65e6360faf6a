use kymo_series::RowValue;

use super::*;

fn samples(of: &[(i64, f64)]) -> Vec<Sample> {
    let of = of.iter();
    of.map(|&(t_s, v)| Sample {
        t_ms: t_s * 1000,
        v,
    })
    .collect()
}

fn runs(samples: &[Sample], resolution_s: u32) -> SampleRuns {
    let mut runs = SampleRuns::default();
    runs.extend(samples, resolution_s);
    runs
}

fn seconds(of: &[Sample]) -> Vec<i64> {
    of.iter().map(|sample| sample.t_ms / 1000).collect()
}

#[test]
fn a_border_has_neither_a_double_nor_a_gap() {
    let coarse = || samples(&[(10, 1.0), (20, 2.0), (30, 3.0), (40, 4.0), (50, 5.0)]);
    for (fine, expect) in [
        (vec![], vec![10, 20, 30, 40, 50]),
        // The recording begins within a coarse interval.
        (
            vec![24, 25, 26, 41, 42],
            vec![10, 20, 24, 25, 26, 40, 41, 42],
        ),
        // The recording begins at a stamp of the store, and has a hole.
        (vec![20, 21, 22, 45], vec![10, 20, 21, 22, 40, 45]),
        (vec![1, 5, 9], vec![1, 5, 9, 20, 30, 40, 50]),
        (vec![60, 61], vec![10, 20, 30, 40, 50, 60, 61]),
        (vec![5, 15, 25, 35, 45], vec![5, 15, 25, 35, 45]),
    ] {
        let fine: Vec<(i64, f64)> = fine.into_iter().map(|t_s| (t_s, 9.0)).collect();
        for resolution_s in [0, 10] {
            let fine = runs(&samples(&fine), 0);
            let all = joined(&fine, &runs(&coarse(), resolution_s));
            assert_eq!(seconds(all.samples()), expect, "{fine:?}");
        }
    }
}

#[test]
fn rows_stay_rows_beside_samples() {
    let mut coarse = runs(&samples(&[(3600, 1.0), (7200, 2.0)]), 3600);
    coarse.extend(&samples(&[(7500, 3.0), (7800, 4.0)]), 300);
    let fine = runs(&samples(&[(7790, 9.0), (7801, 9.0)]), 0);
    let all = joined(&fine, &coarse);
    let found: Vec<(Vec<i64>, u32)> = all.runs().map(|(of, s)| (seconds(of), s)).collect();
    let expect = [
        (vec![3600, 7200], 3600),
        (vec![7500], 300),
        (vec![7790, 7801], 0),
    ];
    assert_eq!(found, expect);
    assert_eq!(joined(&SampleRuns::default(), &coarse), coarse);
}

#[test]
fn a_coarse_sample_stands_for_a_minute_at_most() {
    let coarse = samples(&[(0, 1.0), (10, 1.0), (1000, 2.0)]);
    let fine = samples(&[(100, 9.0), (930, 9.0)]);
    let all = joined(&runs(&fine, 0), &runs(&coarse, 0));
    assert_eq!(seconds(all.samples()), [0, 10, 100, 930, 1000]);
}

/// One series, or an error.
struct One(&'static str, Result<Vec<Sample>, ReadError>);

impl Reader for One {
    fn select(
        &self,
        _matchers: &[Matcher],
        _range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError> {
        self.1.clone()?;
        budget.take_series(1)?;
        Ok(vec![SeriesId(7)])
    }

    fn labels(&self, _id: SeriesId) -> Option<Labels> {
        Labels::new([("__name__", self.0.as_bytes())]).ok()
    }

    fn samples(
        &self,
        ids: &[SeriesId],
        _range: TimeRange,
        _rows: RowsAs,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        let samples = self.1.clone()?;
        budget.take_samples(samples.len())?;
        sink.samples(ids[0], &samples, 0);
        Ok(())
    }

    fn rows(
        &self,
        _ids: &[SeriesId],
        _range: TimeRange,
        _step_s: u32,
        _budget: &mut Budget,
        _sink: &mut dyn RowSink,
    ) -> Result<(), ReadError> {
        Ok(())
    }

    fn label_names(&self, _: &[Matcher], _: TimeRange) -> Result<Vec<String>, ReadError> {
        self.1.clone()?;
        Ok(vec!["__name__".into(), self.0.into()])
    }

    fn label_values(&self, _: &str, _: &[Matcher], _: TimeRange) -> Result<Vec<String>, ReadError> {
        self.label_names(&[], TimeRange::ALL)
    }

    fn metadata(&self, _metric: Option<&str>) -> Result<Vec<Metadata>, ReadError> {
        Ok(Vec::new())
    }
}

#[derive(Default)]
struct Kept(Vec<(SeriesId, Vec<i64>)>);

impl SampleSink for Kept {
    fn samples(&mut self, id: SeriesId, samples: &[Sample], _resolution_s: u32) {
        self.0.push((id, seconds(samples)));
    }
}

fn read(union: &Union) -> Result<Vec<Vec<i64>>, ReadError> {
    let mut budget = Budget::UNLIMITED;
    let ids = union.select(&[], TimeRange::ALL, &mut budget)?;
    let mut kept = Kept::default();
    union.samples(
        &ids,
        TimeRange::ALL,
        RowsAs::values(RowValue::Last),
        &mut budget,
        &mut kept,
    )?;
    Ok(kept.0.into_iter().map(|(_, seconds)| seconds).collect())
}

#[test]
fn one_series_of_two_readers_is_one() {
    let (fine, coarse) = (
        samples(&[(21, 1.0), (22, 1.0)]),
        samples(&[(10, 1.0), (20, 1.0)]),
    );
    let of = |name| -> Box<dyn Reader> { Box::new(One(name, Ok(coarse.clone()))) };
    let union = Union::new(vec![Box::new(One("a", Ok(fine.clone()))), of("a")]);
    assert_eq!(read(&union), Ok(vec![vec![10, 20, 21, 22]]));
    let union = Union::new(vec![Box::new(One("a", Ok(fine))), of("b")]);
    assert_eq!(read(&union), Ok(vec![vec![21, 22], vec![10, 20]]));
    let names = union.label_names(&[], TimeRange::ALL);
    assert_eq!(names, Ok(["__name__", "a", "b"].map(String::from).to_vec()));
}

#[test]
fn a_reader_that_does_not_answer_costs_its_own_part() {
    let silent = || {
        let source = "the keeper".into();
        Box::new(One("a", Err(ReadError::Silent { source })))
    };
    let fine = samples(&[(21, 1.0)]);
    let union = Union::new(vec![Box::new(One("a", Ok(fine.clone()))), silent()]);
    assert_eq!(read(&union), Ok(vec![vec![21]]));
    assert_eq!(union.missing(), ["the keeper does not answer"]);
    let union = Union::new(vec![silent(), silent()]);
    assert!(matches!(read(&union), Err(ReadError::Silent { .. })));
    // A question that is too large fails as a whole.
    let large = One("b", Err(ReadError::TooMuch { things: "series" }));
    let union = Union::new(vec![Box::new(One("a", Ok(fine))), Box::new(large)]);
    assert!(matches!(read(&union), Err(ReadError::TooMuch { .. })));
}
