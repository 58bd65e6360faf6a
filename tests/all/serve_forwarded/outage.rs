//! An outage of ten minutes at 2,050 values a second, with restarts and deaths of both sides: a test for a quiet quarter of an
//! hour, by name (`--ignored outage`).

use std::io::Write as _;
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use kymo_tests::machine::skipped;
use kymo_tests::served::{eventually, kill};
use kymo_tests::{Scratch, free_port};

use super::{ForwardHub, json, table, victoria_metrics};
use crate::prometheus_api::{escaped, now_s};

const SERIES: usize = 2050;

/// Samples that a server has of each series, added up, and the number of series.
fn counted(address: &str) -> Option<(u64, u64)> {
    let number = |query: &str| {
        let answer = json(
            address,
            &format!("query?nocache=1&query={}", escaped(query)),
        )?;
        let text = answer["data"]["result"][0]["value"][1]
            .as_str()?
            .to_string();
        text.parse().ok()
    };
    let all = "count_over_time({job=\"graphite\"}[2h])";
    Some((
        number(&format!("sum({all})"))?,
        number(&format!("count({all})"))?,
    ))
}

#[test]
#[ignore = "takes as long as the outage: KYMO_OUTAGE_MINUTES, ten without it"]
fn an_outage_of_ten_minutes_loses_nothing() {
    let minutes = std::env::var("KYMO_OUTAGE_MINUTES").ok();
    let minutes: u64 = minutes.map_or(10, |text| text.parse().expect("minutes"));
    let seconds = minutes * 60;
    let scratch = Scratch::new("forwarded-outage");
    let victoria = format!("127.0.0.1:{}", free_port());
    let Some(running) = victoria_metrics(&scratch, &victoria) else {
        return skipped("victoria-metrics is missing");
    };
    drop(running);
    let url = format!("http://{victoria}/api/v1/write");
    let tables = table(
        "victoria",
        &url,
        "match = ['{job=\"graphite\"}']\nbacklog = \"36h\"",
    );
    let mut hub = ForwardHub::start_in(scratch, &tables);
    let (begun, begin_s) = (Instant::now(), now_s());
    // Samples of an answer are in the keeper's journal.
    let is_kept = |hub: &ForwardHub, samples: u64| {
        let kept = || (counted(&hub.address)?.0 == samples).then_some(());
        eventually(kept).unwrap_or_else(|| panic!("{samples}: {:?}", counted(&hub.address)));
    };
    let mut stream = connected(&hub);
    for second in 0..seconds {
        let lines: Vec<String> = (0..SERIES)
            .map(|series| format!("of.by{series} {second}.5 {}\n", begin_s + second as i64))
            .collect();
        stream.write_all(lines.concat().as_bytes()).expect("a step");
        // Three restarts, and each process dies once.
        let is_at = |part: u64| second + 1 == seconds * part / 8;
        if (1..7).any(is_at) {
            is_kept(&hub, (second + 1) * SERIES as u64);
            match (1..7).find(|part| is_at(*part)) {
                Some(1) => hub.kill("forward"),
                Some(2) => hub.kill("keeper"),
                Some(3) => {
                    let hub_child = hub.served.child("hub").expect("the hub");
                    kill("-9", hub_child);
                    hub.served.next_child("hub", hub_child);
                }
                _ => {
                    let ForwardHub {
                        served, scratch, ..
                    } = hub;
                    drop(served);
                    hub = ForwardHub::start_in(scratch, &tables);
                }
            }
            stream = connected(&hub);
        }
        let next = begun + Duration::from_secs(second + 1);
        sleep(next.saturating_duration_since(Instant::now()));
    }
    let sent = seconds * SERIES as u64;
    is_kept(&hub, sent);
    // The receiver is back, and restarts three times while it catches up.
    for _ in 0..3 {
        let mut running = victoria_metrics(&hub.scratch, &victoria).expect("the receiver");
        eventually(|| counted(&victoria)).expect("the first samples");
        running.signal("-TERM");
        running.0.wait().expect("its end");
    }
    let _running = victoria_metrics(&hub.scratch, &victoria).expect("the receiver");
    let all = || (counted(&victoria)?.0 >= sent).then_some(());
    eventually(all).unwrap_or_else(|| panic!("{:?} of {sent}", counted(&victoria)));
    let least = format!("count(count_over_time({{job=\"graphite\"}}[2h]) < {seconds})");
    let answer = json(
        &victoria,
        &format!("query?nocache=1&query={}", escaped(&least)),
    );
    let answer = answer.expect("an answer");
    assert_eq!(
        answer["data"]["result"].as_array().map(Vec::len),
        Some(0),
        "{answer}"
    );
    let (count, series) = counted(&victoria).expect("counts");
    assert_eq!(series, SERIES as u64);
    println!("{sent} samples, {} twice", count - sent);
}

fn connected(hub: &ForwardHub) -> TcpStream {
    eventually(|| TcpStream::connect(&hub.graphite).ok()).expect("the listener")
}
