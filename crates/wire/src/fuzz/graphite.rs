//! Graphite: any bytes as lines; writing a point and reading it again must give the same point.

use super::statsd::pieced;
use crate::graphite::{GraphiteLine, LINE_MAX, PATH_MAX, Point, Points, TAGS_MAX, put_point};

/// Pieces of lines, see [`pieced`].
const PIECES: [&[u8]; 20] = [
    b"a",
    b"b.c",
    b"~",
    b" ",
    b" ",
    b" ",
    b"\t",
    b";",
    b"=",
    b"k",
    b"!",
    b"1",
    b"-1",
    b"2.5",
    b"1e9",
    b"nan",
    b"inf",
    b"1700000000",
    b"\r",
    b"\n",
];

/// Reads any bytes as a datagram, and as a choice of pieces.
pub fn fuzz_graphite(input: &[u8]) {
    read(input);
    read(&pieced(input, &PIECES));
}

fn read(text: &[u8]) {
    let mut points = Points::of(text);
    let (mut count, mut line) = (0, Vec::new());
    while let Some(found) = points.next() {
        count += 1;
        assert!(
            count * 2 <= text.len() + 1,
            "more lines than bytes for them"
        );
        if let Ok(GraphiteLine::Point(point)) = found {
            look(&point);
            line.clear();
            put_point(&mut line, &point);
            comes_back(&point, &line);
        }
        assert!(!points.line().is_empty(), "a point without a line");
    }
}

fn look(point: &Point) {
    assert!((1..=PATH_MAX).contains(&point.path.len()), "a path");
    assert!(point.value.is_finite(), "a value");
    assert!(point.time.is_none_or(|time| time >= 0.0), "a time");
    assert!(point.tags.iter().count() <= TAGS_MAX, "too many tags");
    let mut tags = point.tags.iter();
    assert!(tags.all(|(key, value)| !key.is_empty() && !value.is_empty()));
}

fn comes_back(point: &Point, line: &[u8]) {
    // A number written in full can be longer than its original, and the line too long.
    if line.len() > LINE_MAX {
        return;
    }
    let again: Vec<_> = Points::of(line).collect();
    assert_eq!(again, [Ok(GraphiteLine::Point(*point))], "a point changed");
}
