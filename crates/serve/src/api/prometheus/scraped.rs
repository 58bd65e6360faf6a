//! `/api/v1/targets`: the targets of `[[scrape]]`, with the state of each.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use kymo_wire::keeper::ScrapedTarget;
use serde_json::{Map, Value, json};

use super::failure::{ErrorType, Failure};
use super::{FormRequest, Hub, PATIENCE, answer};

pub(super) async fn targets(
    State(hub): State<Arc<Hub>>,
    asking: FormRequest,
) -> Result<Response, Failure> {
    let state = asking.form.text("state").to_string();
    let pool = asking.form.text("scrapePool").to_string();
    let targets = move |hub: &Hub, _: &_| {
        let mut targets = match &hub.stored {
            Some(stored) if state != "dropped" => stored
                .keeper()
                .keeper()
                .targets()
                .map_err(|why| Failure::new(ErrorType::Unavailable, why))?,
            Some(_) | None => Vec::new(),
        };
        targets.retain(|target| pool.is_empty() || target.job == pool);
        Ok(body(&targets))
    };
    answer(hub, &asking.head, PATIENCE, targets).await
}

fn body(targets: &[ScrapedTarget]) -> String {
    let targets: Vec<Value> = targets.iter().map(shown).collect();
    let data = json!({
        "activeTargets": targets,
        "droppedTargets": [],
        "droppedTargetCounts": {},
    });
    json!({ "status": "success", "data": data }).to_string()
}

fn shown(target: &ScrapedTarget) -> Value {
    let labels = target.labels.iter();
    let labels = labels.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let labels: Map<String, Value> = labels.collect();
    let health = match (target.scraped_ms, target.error.is_empty()) {
        (0, _) => "unknown",
        (_, true) => "up",
        (_, false) => "down",
    };
    // Prometheus' clients take this moment for none.
    let never = || "0001-01-01T00:00:00Z".to_string();
    let scraped = Timestamp::from_millisecond(target.scraped_ms).ok();
    let scraped = scraped.filter(|_| target.scraped_ms != 0);
    json!({
        "discoveredLabels": discovered(target),
        "labels": labels,
        "scrapePool": target.job,
        "scrapeUrl": target.url,
        "globalUrl": target.url,
        "lastError": target.error,
        "lastScrape": scraped.map_or_else(never, |at| at.to_string()),
        "lastScrapeDuration": target.duration_s,
        "health": health,
        "scrapeInterval": duration(target.interval_ms),
        "scrapeTimeout": duration(target.timeout_ms),
    })
}

/// Labels that Prometheus would have before its rules.
fn discovered(target: &ScrapedTarget) -> Value {
    let (scheme, rest) = target.url.split_once("://").unwrap_or(("", &target.url));
    let path_at = rest.find('/').unwrap_or(rest.len());
    let (address, path) = rest.split_at_checked(path_at).unwrap_or((rest, ""));
    json!({
        "__address__": address,
        "__metrics_path__": path,
        "__scheme__": scheme,
        "__scrape_interval__": duration(target.interval_ms),
        "__scrape_timeout__": duration(target.timeout_ms),
        "job": target.job,
    })
}

/// A duration as Prometheus writes it.
fn duration(ms: u64) -> String {
    match ms {
        _ if !ms.is_multiple_of(1000) => format!("{ms}ms"),
        _ if ms > 0 && ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms > 0 && ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ => format!("{}s", ms / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_prometheus() {
        let down = ScrapedTarget {
            job: "node".into(),
            url: "http://a:1/metrics?b".into(),
            labels: vec![("job".into(), "node".into())],
            interval_ms: 60_000,
            timeout_ms: 1500,
            scraped_ms: 1_700_000_000_250,
            duration_s: 0.5,
            samples: 7,
            error: "cannot connect: Connection refused".into(),
        };
        let up = ScrapedTarget {
            error: String::new(),
            ..down.clone()
        };
        let new = ScrapedTarget {
            scraped_ms: 0,
            ..up.clone()
        };
        let text = body(&[down, up, new]);
        let parsed: Value = serde_json::from_str(&text).expect("JSON");
        let of = |at: usize, name: &str| parsed["data"]["activeTargets"][at][name].clone();
        for (at, health, scraped) in [
            (0, "down", "2023-11-14T22:13:20.25Z"),
            (1, "up", "2023-11-14T22:13:20.25Z"),
            (2, "unknown", "0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(
                (of(at, "health"), of(at, "lastScrape")),
                (health.into(), scraped.into())
            );
        }
        assert_eq!(of(0, "lastError"), "cannot connect: Connection refused");
        assert_eq!(
            (of(0, "scrapeInterval"), of(0, "scrapeTimeout")),
            ("1m".into(), "1500ms".into())
        );
        assert_eq!(of(0, "discoveredLabels")["__address__"], "a:1");
        assert_eq!(of(0, "discoveredLabels")["__metrics_path__"], "/metrics?b");
    }
}
