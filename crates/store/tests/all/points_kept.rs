//! How long series of points are kept: by what the store is told, and by the room that there is.

use crate::common::Bench;
use crate::points::labels;
use kymo_base::label_set::{LabelLimits, Labels};
use kymo_store::{FileError, Point, PointsKind, PointsSchema, SeriesName};

#[test]
fn long_label_sets_begin_no_series_and_stay_where_they_are() {
    let set = |count: usize| {
        let labels: Vec<String> = (0..count).map(|at| format!("l{at}")).collect();
        Labels::new(labels.iter().map(|name| (&**name, &b"v"[..]))).unwrap()
    };
    let mut bench = Bench::new(1, 0);
    bench.open();
    let schema = PointsSchema::new(PointsKind::Gauge, 10, 60);
    let define = |bench: &Bench, labels: Labels| {
        let defined = bench.store().define_points(&[(labels, schema.clone())]);
        defined.into_iter().next().unwrap()
    };
    assert!(define(&bench, set(64)).is_ok());
    let Err(FileError::Rrd(why)) = define(&bench, set(65)) else {
        panic!("it began");
    };
    assert_eq!(why, "its set has 65 labels, 64 at most are taken");
    bench.settings.labels = LabelLimits {
        labels: 3,
        bytes: 40,
    };
    bench.reopen();
    let known = define(&bench, set(64)).unwrap();
    let (mut batch, point) = (bench.store().write_batch(), Point { t_ms: 1, v: 1.0 });
    assert_eq!(batch.append_points(&[(known, point)], &mut |_, _| {}), 1);
    batch.commit().unwrap();
    assert!(define(&bench, set(4)).is_err());
    let long = Labels::new([("a", &b"0123456789012345678901234567890123456789"[..])]).unwrap();
    assert!(define(&bench, long.clone()).is_err());
    let header = crate::common::rrd(b"GAUGE").header;
    let name = SeriesName::Labels(&long);
    let defined = bench
        .store()
        .define(vec![kymo_store::Definition { name, header }]);
    assert!(defined[0].is_err(), "{defined:?}");
}
