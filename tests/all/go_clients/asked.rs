//! The API as a current client of it reads it, and its check of texts for scrapers.

use kymo_tests::machine::not_fetched;
use serde_json::{Value, json};

use super::{client, lines, named};
use crate::prometheus_api::{Shown, now_s};

/// Errors of questions: the name, the type, and a part of the text.
const ERRORS: &[(&str, &str, &str)] = &[
    (
        "query no expression",
        "bad_data",
        "invalid parameter \"query\"",
    ),
    ("query without a value", "execution", "many-to-many"),
    (
        "range backwards",
        "bad_data",
        "end timestamp must not be before start time",
    ),
    ("snapshot", "client_error", "client error: 404"),
    ("tsdb", "client_error", "404"),
];

#[test]
fn each_question_of_the_current_client_has_its_answer() {
    let Some(client) = client() else {
        return not_fetched("Go, or a module of Prometheus',");
    };
    let shown = Shown::start("asked-by-go");
    let now = now_s() - 1;
    let url = format!("http://{}", shown.address);
    let answers = lines(client, &["ask", &url, &now.to_string()]);
    let value = |name: &str| -> Value {
        let answer = named(&answers, name);
        assert_eq!(answer["error"], "", "{answer:#}");
        answer["value"].clone()
    };
    for (name, of_type, part) in ERRORS {
        let answer = named(&answers, name);
        assert_eq!(answer["error_type"], *of_type, "{answer:#}");
        assert!(
            answer["error"]
                .as_str()
                .is_some_and(|text| text.contains(part)),
            "{answer:#}"
        );
    }
    let count = |name: &str| value(name).as_array().map(Vec::len);
    assert_eq!(
        value("query")[0]["metric"]["__name__"],
        "node_memory_MemTotal_bytes"
    );
    let samples = value("query a range")[0]["values"].as_array().map(Vec::len);
    assert!(samples.is_some_and(|samples| samples >= 3), "{samples:?}");
    assert_eq!(value("query a number")[1], "2");
    assert_eq!(count("query with a limit"), Some(2));
    assert_eq!(
        named(&answers, "query with a limit")["warnings"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    let note = named(&answers, "query with a note")["infos"].to_string();
    assert!(note.contains("might not be a counter"), "{note}");
    let points = value("range")[0]["values"].as_array().map(Vec::len);
    assert!(
        points.is_some_and(|points| (3..=5).contains(&points)),
        "{points:?}"
    );
    assert_eq!(
        value("label names"),
        json!(["__name__", "cpu", "instance", "job", "mode"])
    );
    assert_eq!(
        value("label values"),
        json!(["node_load1", "node_load15", "node_load5"])
    );
    assert_eq!(value("label values with a limit"), json!(["node_load1"]));
    assert_eq!(count("series"), Some(3));
    assert_eq!(value("metadata")["node_load1"][0]["type"], "gauge");
    assert_eq!(value("exemplars"), json!([]));
    assert_eq!(value("build")["version"], "3.0.0");
    assert!(value("config")["yaml"].is_string());
    assert_eq!(value("runtime")["storageRetention"], "");
    assert_eq!(value("alertmanagers")["activeAlertManagers"], json!([]));
    assert_eq!(value("metadata of targets"), json!([]));
    assert_eq!(value("flags")["query.timeout"], "30s");
    assert_eq!(value("targets")["activeTargets"], json!([]));
    assert_eq!(value("rules")["groups"], json!([]));
    assert_eq!(value("alerts")["alerts"], json!([]));
    // The library leaves the answer as it came.
    let formatted = "\"sum by (mode) (rate(node_cpu_seconds_total[1m]))\"";
    assert_eq!(value("format"), formatted);
    complaints(&value("metrics"), &[]);
    complaints(&value("federate"), FEDERATED);
}

/// Complaints about federated texts, and prefixes of the metrics that they may be about.
const FEDERATED: &[(&str, &str)] = &[
    // Prometheus' own federation has no help either.
    ("no help text", ""),
    // kymo's own fields have their names of the terminal.
    ("metric names should not contain abbreviated units", "kymo_"),
];

/// Complaints about texts for scrapers that are not about node_exporter's names.
fn complaints(found: &Value, allowed: &[(&str, &str)]) {
    let found = found.as_object().expect("complaints");
    let of_names = "use base unit \"bytes\" instead of \"bits\"";
    assert!(found.contains_key(of_names), "nothing is checked");
    for (text, metrics) in found {
        let known = allowed.iter().filter(|(known, _)| known == text);
        let prefixes = known.map(|(_, prefix)| *prefix).chain(["node_"]);
        let prefixes: Vec<&str> = prefixes.collect();
        let metrics = metrics.as_array().expect("metrics").iter();
        let mut metrics = metrics.filter_map(Value::as_str);
        let other =
            metrics.find(|metric| !prefixes.iter().any(|prefix| metric.starts_with(prefix)));
        assert_eq!(other, None, "{text}");
    }
}
