//! Remote write 2.0 and 1.0 by another encoder. The client reads the headers of answers; the samples are asked back.

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_tests::machine::not_fetched;
use kymo_tests::served::get;
use serde_json::json;

use super::{client, lines, named};
use crate::serve_pushed::PushHub;

/// A request, its status, how many samples its answer says were written, and a part of its text.
const ANSWERS: &[(&str, u16, u64, &str)] = &[
    ("floats", 204, 14, ""),
    // Samples that are there already count as written.
    ("again", 204, 14, ""),
    ("other value", 400, 0, "1 x "),
    ("partly native", 400, 1, "3 x a native histogram"),
    ("both in a series", 400, 1, "3 x a native histogram"),
    (
        "symbol beyond",
        400,
        0,
        "a reference beyond the table of symbols",
    ),
    ("exemplars alone", 204, 0, ""),
    ("many", 204, 6000, ""),
    ("empty", 204, 0, ""),
];

#[test]
fn messages_of_another_encoder_are_taken() {
    let Some(client) = client() else {
        return not_fetched("Go, or a module of Prometheus',");
    };
    let hub = PushHub::start("pushed-by-go");
    let now = RealClock.now().real_ns.div_euclid(1_000_000);
    let url = format!("http://{}", hub.address);
    let answers = lines(client, &["write", &url, &hub.token, &now.to_string()]);
    for (name, status, samples, text) in ANSWERS {
        let answer = named(&answers, name);
        assert_eq!(
            (&answer["status"], &answer["samples"]),
            (&json!(status), &json!(samples)),
            "{answer:#}"
        );
        for (header, count) in [("Samples", *samples), ("Histograms", 0), ("Exemplars", 0)] {
            let header = format!("X-Prometheus-Remote-Write-{header}-Written");
            assert_eq!(answer["header"][&header], count.to_string(), "{answer:#}");
        }
        let said = answer["error"].as_str().expect("a text");
        assert_eq!(said.is_empty(), *status == 204, "{answer:#}");
        assert!(said.contains(text), "{answer:#}");
    }
    let old = named(&answers, "old");
    assert_eq!(old["status"], 204, "{old:#}");
    stored(&hub, now);
}

/// All series with their values, times and descriptions.
fn stored(hub: &PushHub, now_ms: i64) {
    let at = |values: &[(i64, &str)]| -> Vec<(i64, String)> {
        values
            .iter()
            .map(|(back_ms, value)| (now_ms - back_ms, value.to_string()))
            .collect()
    };
    for (selector, values) in [
        (
            "go_requests_total{code=\"200\",path=\"/\u{fc}\"}",
            at(&[(3000, "10"), (2000, "12.5"), (1000, "12.5")]),
        ),
        ("go_requests_total{code=\"500\"}", at(&[(1000, "1")])),
        // This encoder leaves out each zero, a negative one too.
        (
            "go_level",
            at(&[(3000, "+Inf"), (2000, "-Inf"), (1000, "0")]),
        ),
        ("go_odd{job=\"go\"}", at(&[(2000, "5e-324"), (1000, "NaN")])),
        ("go_ended", at(&[(2000, "4")])),
        ("go_wait_seconds_bucket{le=\"+Inf\"}", at(&[(1000, "3")])),
        ("go_size_bytes{quantile=\"0.5\"}", at(&[(1000, "1.5")])),
        ("go_partly", at(&[(1000, "8")])),
        ("go_both", at(&[(500, "2")])),
        (
            "go_many_total{of=\"1999\",half=\"999\"}",
            at(&[(3000, "1999"), (2000, "1999.5"), (1000, "2000")]),
        ),
        ("go_old", at(&[(1000, "7")])),
        ("go_native", at(&[])),
        ("go_beyond", at(&[])),
    ] {
        let found = hub.values(&format!("{selector}[1m]"));
        let found: Vec<(i64, String)> = found
            .into_iter()
            .map(|(seconds, value)| ((seconds * 1000.0).round() as i64, value))
            .collect();
        assert_eq!(found, values, "{selector}");
    }
    assert_eq!(hub.query("count(go_many_total)")[0]["value"][1], "2000");
    assert_eq!(hub.query("go_ended"), json!([]), "the marker ends it");
    for (family, of_type, help, unit) in [
        ("go_requests_total", "counter", "Requests.", "requests"),
        ("go_level", "gauge", "A level.", ""),
        ("go_wait_seconds", "histogram", "Waits.", "seconds"),
        ("go_size_bytes", "summary", "Sizes.", "bytes"),
        ("go_old", "gauge", "Old.", ""),
    ] {
        let answer = get(
            &hub.address,
            &format!("/api/v1/metadata?metric={family}"),
            "",
        );
        let described = &answer["data"][family][0];
        assert_eq!(
            described,
            &json!({"type": of_type, "help": help, "unit": unit}),
            "{family}"
        );
    }
}
