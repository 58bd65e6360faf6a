//! A `kymo serve` and a victoria-metrics beside each other, which are sent the same and asked the same.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kymo_tests::served::{LONG, Served, eventually};
use kymo_tests::{Running, Scratch, free_port};
use serde_json::Value;

use crate::prometheus_api::escaped;

/// Samples of series: times in milliseconds and values, by labels as JSON.
pub(super) type Found = BTreeMap<String, Vec<(i64, f64)>>;

/// Both programs, with the same target to scrape.
pub(super) struct Pair {
    pub(super) kymo: String,
    pub(super) victoria: String,
    /// Addresses for lines of Graphite, of kymo and of victoria-metrics.
    pub(super) graphite: [String; 2],
    pub(super) token_file: PathBuf,
    _served: Served,
    _victoria: Running,
    /// Removed last.
    pub(super) scratch: Scratch,
}

impl Pair {
    /// Starts both; they scrape this address each second. `None`: victoria-metrics is missing.
    pub(super) fn start(name: &str, target: Option<&str>) -> Option<Pair> {
        let scratch = Scratch::new(name);
        let ports = [free_port(), free_port(), free_port()];
        let [graphite, of_victoria, victoria] = ports.map(|port| format!("127.0.0.1:{port}"));
        let running = victoria_metrics(&scratch, &victoria, &of_victoria, target)?;
        let dir = scratch.path("data");
        let mut config =
            format!("user = \"\"\n[listen]\ncollectd = []\ngraphite = [\"{graphite}\"]\n");
        if let Some(target) = target {
            config += &format!(
                "[[scrape]]\njob = \"scraped\"\nurls = [\"http://{target}/metrics\"]\ninterval = \"1s\"\ntimeout = \"1s\"\n"
            );
        }
        let mut served = Served::configured(&scratch, &dir, &config);
        let kymo = served.address();
        served.has_said("rrdcached's protocol on");
        let pair = Pair {
            kymo,
            victoria,
            graphite: [graphite, of_victoria],
            token_file: dir.join("write-token"),
            _served: served,
            _victoria: running,
            scratch,
        };
        eventually(|| pair.of_victoria("1", "")).expect("an answer of victoria-metrics");
        Some(pair)
    }

    /// The answer of kymo to an instant query.
    pub(super) fn of_kymo(&self, expr: &str, at: &str) -> Option<Found> {
        found(&self.kymo, &instant(expr, at))
    }

    /// The answer of victoria-metrics, with all that was sent to it so far. A marker that ends a series is a sample there,
    /// and left out.
    pub(super) fn of_victoria(&self, expr: &str, at: &str) -> Option<Found> {
        get(&self.victoria, "/internal/force_flush")?;
        let mut all = found(&self.victoria, &instant(expr, at))?;
        all.values_mut()
            .for_each(|samples| samples.retain(|sample| !sample.1.is_nan()));
        all.retain(|_, samples| !samples.is_empty());
        Some(all)
    }

    /// The answers of both over a range of seconds, in steps of seconds.
    pub(super) fn ranges(
        &self,
        expr: &str,
        range_s: (i64, i64),
        step_s: i64,
    ) -> Option<[Found; 2]> {
        let (start, end) = range_s;
        let expr = escaped(expr);
        let question =
            format!("query_range?nocache=1&start={start}&end={end}&step={step_s}&query={expr}");
        Some([
            found(&self.kymo, &question)?,
            found(&self.victoria, &question)?,
        ])
    }

    /// The answers of both, as soon as they fit; a panic shows where they never did.
    pub(super) fn same(
        &self,
        expr: &str,
        at: &str,
        fits: impl Fn(&Found, &Found) -> Option<String>,
    ) {
        let mut last = String::new();
        let compared = eventually(|| {
            let (ours, theirs) = (self.of_kymo(expr, at)?, self.of_victoria(expr, at)?);
            last = match fits(&ours, &theirs) {
                None if theirs.is_empty() => "no series".into(),
                None => return Some(()),
                Some(difference) => difference,
            };
            None
        });
        assert!(compared.is_some(), "{expr} at {at}: {last}");
    }
}

fn victoria_metrics(
    scratch: &Scratch,
    address: &str,
    graphite: &str,
    target: Option<&str>,
) -> Option<Running> {
    let mut command = Command::new("victoria-metrics");
    command
        .arg(format!("-storageDataPath={}", scratch.text("victoria")))
        .arg(format!("-httpListenAddr={address}"))
        .arg(format!("-graphiteListenAddr={graphite}"))
        .args([
            "-search.latencyOffset=1ms",
            "-search.disableCache",
            "-loggerLevel=ERROR",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(target) = target {
        let file = scratch.path("victoria.yml");
        let config = format!(
            "scrape_configs:\n- job_name: scraped\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  \
             static_configs: [{{targets: ['{target}']}}]\n"
        );
        fs::write(&file, config).expect("a configuration");
        command.arg(format!("-promscrape.config={}", file.display()));
    }
    Some(Running(command.spawn().ok()?))
}

/// The first difference between two answers: labels, times, or values.
pub(super) fn difference(ours: &Found, theirs: &Found) -> Option<String> {
    let alone = |of: &Found, other: &Found| {
        let mut keys = of.keys().filter(|labels| !other.contains_key(*labels));
        keys.next().cloned()
    };
    if let Some(labels) = alone(ours, theirs) {
        return Some(format!("kymo alone has {labels}"));
    }
    if let Some(labels) = alone(theirs, ours) {
        return Some(format!("victoria-metrics alone has {labels}"));
    }
    ours.iter().find_map(|(labels, ours)| {
        let theirs = theirs.get(labels)?;
        let fit = ours.len() == theirs.len()
            && ours
                .iter()
                .zip(theirs)
                .all(|(a, b)| a.0 == b.0 && is_near(a.1, b.1));
        (!fit).then(|| format!("{labels}: kymo {ours:?}, victoria-metrics {theirs:?}"))
    })
}

/// True of values that differ no more than by what victoria-metrics loses: it keeps decimal numbers.
pub(super) fn is_near(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-12 * a.abs().max(b.abs()) || a.is_nan() && b.is_nan()
}

/// Status and body of an answer.
pub(super) fn exchange(address: &str, request: &[u8]) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(LONG)).ok()?;
    stream.write_all(request).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_string()))
}

fn get(address: &str, path: &str) -> Option<String> {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    let (status, body) = exchange(address, request.as_bytes())?;
    assert!(!(400..500).contains(&status), "{path}: {body}");
    Some(body)
}

fn instant(expr: &str, at: &str) -> String {
    format!("query?nocache=1&time={at}&query={}", escaped(expr))
}

fn found(address: &str, question: &str) -> Option<Found> {
    let path = format!("/api/v1/{question}");
    let answer: Value = serde_json::from_str(&get(address, &path)?).ok()?;
    let data = &answer["data"];
    if data["resultType"] == "scalar" {
        return Some(Found::from([(
            "{}".to_string(),
            vec![sample(&data["result"])?],
        )]));
    }
    let each = data["result"].as_array()?.iter().map(|of| {
        let many = of["values"].as_array().cloned();
        let values = many.unwrap_or_else(|| vec![of["value"].clone()]);
        (
            of["metric"].to_string(),
            values.iter().filter_map(sample).collect(),
        )
    });
    Some(each.collect())
}

fn sample(pair: &Value) -> Option<(i64, f64)> {
    let t_ms = format!("{:.0}", pair[0].as_f64()? * 1000.0).parse().ok()?;
    Some((t_ms, pair[1].as_str()?.parse().ok()?))
}
