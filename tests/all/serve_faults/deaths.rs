//! Killed processes, and the traces of their deaths on the page.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use super::client::{LONG, Served, eventually, pause};
use kymo_tests::Scratch;
use kymo_tests::served::kill;
use serde_json::Value;

/// A live stream; `None` when it ends.
struct Live(BufReader<TcpStream>);

impl Live {
    fn open(address: &str) -> Option<Live> {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(LONG)).ok()?;
        let request = "GET /kymo/v1/live?fields=cpu.user HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request.as_bytes()).ok()?;
        Some(Live(BufReader::new(stream)))
    }

    /// The next sample.
    fn sample(&mut self) -> Option<Value> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let data: Value = serde_json::from_str(data).ok()?;
                if data["values"].is_object() {
                    return Some(data);
                }
            }
        }
    }
}

/// Number of samples in a stream within this time.
pub(super) fn samples_within(address: &str, span: std::time::Duration) -> usize {
    let mut live = eventually("a stream", || Live::open(address));
    let start = std::time::Instant::now();
    let mut samples = 0;
    while start.elapsed() < span && live.sample().is_some() {
        samples += 1;
    }
    samples
}

#[test]
fn a_hub_that_is_killed_comes_back_and_streams_go_on() {
    let scratch = Scratch::new("hub");
    let served = Served::recording(&scratch.text("data"));
    let mut live = Live::open(&served.address).expect("a stream");
    live.sample().expect("a sample");
    let (hub, recorder) = (served.hub(), served.child("record"));
    kill("-KILL", hub);
    while live.sample().is_some() {}
    let killed = served.json("/kymo/v1/status")["now"]
        .as_f64()
        .expect("a time");
    let mut again = eventually("a stream again", || Live::open(&served.address));
    eventually("a new sample", || {
        let sample = again.sample()?;
        (sample["time"].as_f64()? > killed).then_some(())
    });
    assert_ne!(served.child("hub"), Some(hub), "the hub is another");
    assert_eq!(served.child("record"), recorder, "the recorder is the same");
    let marks = served.json(&format!("/kymo/v1/events?from={}", killed - 30.0));
    let gaps = kinds(&marks, "gap");
    assert!(gaps.is_empty(), "recording went on: {marks}");
}

/// Begin and end of each mark of this kind.
fn kinds(marks: &Value, kind: &str) -> Vec<(f64, f64)> {
    let marks = marks["marks"].as_array().expect("marks").iter();
    let time = |mark: &Value, key: &str| mark[key].as_f64().expect("a time");
    marks
        .filter(|mark| mark["kind"] == kind)
        .map(|mark| (time(mark, "time"), time(mark, "until")))
        .collect()
}

#[test]
fn a_recorder_that_is_killed_leaves_a_gap_and_no_line_across_it() {
    let scratch = Scratch::new("recorder");
    let served = Served::recording(&scratch.text("data"));
    eventually("some samples", || {
        let status = served.json("/kymo/v1/status");
        (status["thru"].as_f64()? - status["from"].as_f64()? > 3.0).then_some(())
    });
    // Killed each time it is back: the recorder waits before its third start, so that the hole is long enough.
    let begin = served.json("/kymo/v1/status")["now"]
        .as_f64()
        .expect("a time");
    let mut killed = 0;
    while killed < 3 {
        let recorder = eventually("a recorder", || served.child("record"));
        kill("-KILL", recorder);
        eventually("its end", || {
            (served.child("record") != Some(recorder)).then_some(())
        });
        killed += 1;
    }
    served.is_recording();
    pause(3000);
    let from = begin - 5.0;
    let gaps = eventually("a gap", || {
        let gaps = kinds(&served.json(&format!("/kymo/v1/events?from={from}")), "gap");
        let long = |gap: &&(f64, f64)| gap.1 - gap.0 >= 3.0;
        gaps.iter().find(long).copied()
    });
    assert!(gaps.0 > from, "{gaps:?}");
    for points in [100, 11_000] {
        let target = format!("/kymo/v1/series?fields=cpu.user&from={from}&points={points}");
        let series = served.json(&target);
        assert_hole(&series, gaps);
    }
}

/// Values are unknown within the gap, and some are known beside it.
fn assert_hole(series: &Value, (from, until): (f64, f64)) {
    let number = |key: &str| series[key].as_f64().expect(key);
    let (first, step) = (number("first"), number("step"));
    let values = series["series"][0]["avg"].as_array().expect("values");
    let (mut within, mut beside) = (0, 0);
    for (n, value) in values.iter().enumerate() {
        let end = first + n as f64 * step;
        if end - step >= from && end <= until {
            within += 1;
            assert!(
                value.is_null(),
                "{value} at {end}, in the gap {from} to {until}"
            );
        } else {
            beside += usize::from(value.is_number());
        }
    }
    assert!(
        within > 0 && beside > 1,
        "{within} points within, {beside} beside: {series}"
    );
}
