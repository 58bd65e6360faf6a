//! victoria-metrics as an oracle of senders: Debian's Prometheus and vmagent write to it and to `kymo serve` at once,
//! lines of Graphite go to both, both scrape the same target; then both are asked the same. Where they differ, a table
//! says why, and a row of it that is true no more fails. Debian's version takes no OTLP: Prometheus' own converter is the
//! oracle of that, in `crates/wire/tests/prometheus_peers/converter.rs`.

mod expressions;
mod pair;
mod target;

use std::fs;
use std::io::Write as _;
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Stdio};

use kymo_tests::machine::skipped;
use kymo_tests::served::eventually;
use kymo_tests::{Running, free_port};
use serde_json::{Map, Value};

use self::pair::{Found, Pair, difference};
use self::target::Target;
use crate::prometheus_api::now_s;

/// vmagent, which scrapes a target each second and writes to both.
fn vmagent(pair: &Pair, target: &str) -> Option<Running> {
    let file = pair.scratch.path("vmagent.yml");
    let config = format!(
        "scrape_configs:\n- job_name: vmagent\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  \
         static_configs: [{{targets: ['{target}'], labels: {{env: test}}}}]\n"
    );
    fs::write(&file, config).expect("a configuration");
    let child = Command::new("vmagent")
        .arg(format!("-promscrape.config={}", file.display()))
        .arg(format!(
            "-remoteWrite.url=http://{}/api/v1/write",
            pair.kymo
        ))
        .arg(format!(
            "-remoteWrite.url=http://{}/api/v1/write",
            pair.victoria
        ))
        .arg(format!(
            "-remoteWrite.bearerTokenFile={}",
            pair.token_file.display()
        ))
        .arg(format!(
            "-remoteWrite.tmpDataPath={}",
            pair.scratch.text("vmagent")
        ))
        .arg(format!("-httpListenAddr=127.0.0.1:{}", free_port()))
        .args(["-remoteWrite.flushInterval=1s", "-loggerLevel=ERROR"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Some(Running(child.ok()?))
}

/// Debian's Prometheus, which does the same.
fn prometheus(pair: &Pair, target: &str) -> Option<Running> {
    let file = pair.scratch.path("prometheus.yml");
    let write = |address: &str, more: &str| {
        format!(
            "- url: http://{address}/api/v1/write\n  queue_config: {{batch_send_deadline: 1s}}\n{more}"
        )
    };
    let token = format!(
        "  authorization: {{credentials_file: {}}}\n",
        pair.token_file.display()
    );
    let config = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
         scrape_configs:\n- job_name: prometheus\n  static_configs: [{{targets: ['{target}']}}]\n\
         remote_write:\n{}{}",
        write(&pair.kymo, &token),
        write(&pair.victoria, "")
    );
    fs::write(&file, config).expect("a configuration");
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", pair.scratch.text("tsdb")))
        .arg(format!("--web.listen-address=127.0.0.1:{}", free_port()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Some(Running(child.ok()?))
}

/// All that two senders of remote write sent within a time is in both, sample by sample. Where a target answers no more,
/// a marker ends its series in both.
#[test]
fn remote_write_of_two_senders_is_the_same() {
    let Some(pair) = Pair::start("victoria-written", None) else {
        return skipped("victoria-metrics is missing");
    };
    let target = Target::start(target::moving);
    let senders = (
        vmagent(&pair, &target.address),
        prometheus(&pair, &target.address),
    );
    let (Some(_vmagent), Some(_prometheus)) = senders else {
        return skipped("vmagent or prometheus is missing");
    };
    let jobs = ["vmagent", "prometheus"];
    let both = "count_over_time(up{job=~\"vmagent|prometheus\"}[2m]) >= 12";
    let has_some = || (pair.of_kymo(both, "")?.len() == 2).then_some(());
    eventually(has_some).expect("scrapes in kymo");
    let at = format!("{}.001", now_s() - 3);
    for job in jobs {
        pair.same(&format!("{{job=\"{job}\"}}[8s]"), &at, difference);
    }
    target.shut();
    for job in jobs {
        let ended = || {
            let series = format!("{{job=\"{job}\",__name__=~\"shop_.+\"}}");
            let (ours, theirs) = (pair.of_kymo(&series, "")?, pair.of_victoria(&series, "")?);
            (ours.is_empty() && theirs.is_empty()).then_some(())
        };
        eventually(ended).unwrap_or_else(|| panic!("no markers of {job}"));
        let down = format!("up{{job=\"{job}\"}} == 0");
        let found = pair.of_kymo(&down, "").map(|found| found.len());
        assert_eq!(found, Some(1), "{down}");
    }
}

/// Lines of Graphite that both read alike, and some that neither takes.
fn lines(now: i64) -> Vec<String> {
    let mut lines = Vec::new();
    for at in 0..5 {
        let t = now - 50 + at * 10;
        lines.push(format!("servers.web-1.cpu.load5 {}.25 {t}", at * 3));
        lines.push(format!("disk.used;host=a;dir=/var 1e{at} {t}"));
        lines.push(format!("a-b.c:d -{at} {t}"));
    }
    let t = now - 20;
    lines.push(format!("odd.tab\t7\t{t}"));
    lines.push(format!("odd.spaces   8   {t}"));
    lines.push(format!("odd.return 9 {t}\r"));
    lines.push(format!("odd.exponent 1.5E-3 {t}"));
    lines.push(format!("odd..dots 3 {t}"));
    // Not taken by either.
    lines.push(format!("odd.word seven {t}"));
    lines.push(format!("odd.hexadecimal 0x10 {t}"));
    lines.push("odd.alone".into());
    lines
}

/// Labels that kymo gives a series to which victoria-metrics gives these: `job`, the path as it came, and a name of
/// Prometheus' characters.
fn graphite_labels(theirs: &str) -> String {
    let mut labels: Map<String, Value> = serde_json::from_str(theirs).expect("labels");
    let path = labels["__name__"].as_str().expect("a name").to_string();
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    let name: String = path
        .chars()
        .map(|c| if is_kept(c) { c } else { '_' })
        .collect();
    labels.extend(
        [
            ("__name__", name),
            ("path", path),
            ("job", "graphite".into()),
        ]
        .map(|(of, to)| (of.into(), to.into())),
    );
    Value::Object(labels).to_string()
}

#[test]
fn lines_of_graphite_are_the_same() {
    let Some(pair) = Pair::start("victoria-graphite", None) else {
        return skipped("victoria-metrics is missing");
    };
    let now = now_s();
    let text = lines(now).join("\n") + "\n";
    for address in &pair.graphite {
        let mut stream = eventually(|| TcpStream::connect(address).ok()).expect("a connection");
        stream.write_all(text.as_bytes()).expect("lines");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let datagram = format!(
            "by.datagram;a=b 3 {}\nby.datagram;a=c 4 {}\n",
            now - 5,
            now - 5
        );
        socket
            .send_to(datagram.as_bytes(), address)
            .expect("a datagram");
    }
    let at = now.to_string();
    let of_graphite = "{job=\"graphite\"}[5m]";
    let all = "{__name__=~\".+\"}[5m]";
    let mut last = None;
    let same = || {
        let theirs = pair.of_victoria(all, &at)?;
        let theirs: Found = theirs
            .iter()
            .map(|(labels, samples)| (graphite_labels(labels), samples.clone()))
            .collect();
        let ours = pair.of_kymo(of_graphite, &at)?;
        last = difference(&ours, &theirs);
        (last.is_none() && ours.len() == 10).then_some(())
    };
    assert!(eventually(same).is_some(), "{last:?}");
    differing_lines(&pair, now);
}

/// Lines that one of them does not take, and why: the line, its series in victoria-metrics, and whether kymo has it.
const DIFFERING: &[(&str, &str, bool)] = &[
    // A sign is part of a number for carbon, too.
    ("differs.plus +4", "differs.plus", true),
    // A tag without a value is no tag for carbon either; victoria-metrics leaves it out.
    ("differs.tag;empty= 6", "differs.tag", false),
];

fn differing_lines(pair: &Pair, now: i64) {
    let text: String = DIFFERING
        .iter()
        .map(|(line, ..)| format!("{line} {now}\n"))
        .collect();
    for address in &pair.graphite {
        let mut stream = TcpStream::connect(address).expect("a connection");
        writeln!(stream, "{text}differs.end 1 {now}.25").expect("lines");
    }
    let at = format!("{now}.5");
    let time_of = |found: Option<Found>| Some(found?.values().next()?.first()?.0);
    // kymo keeps the milliseconds of a time, victoria-metrics its second.
    let ended = || {
        let theirs = time_of(pair.of_victoria("{__name__=\"differs.end\"}[1m]", &at))?;
        let ours = time_of(pair.of_kymo("differs_end[1m]", &at))?;
        Some((ours, theirs))
    };
    let times = eventually(ended).expect("the last line");
    assert_eq!(times, (now * 1000 + 250, now * 1000));
    for (line, name, in_kymo) in DIFFERING {
        let theirs = pair.of_victoria(&format!("{{__name__=\"{name}\"}}"), &at);
        let ours = pair.of_kymo(
            &format!("{{__name__=~\"{}.*\"}}", name.replace('.', "_")),
            &at,
        );
        let has = |found: Option<Found>| found.is_some_and(|found| !found.is_empty());
        assert_eq!((has(ours), has(theirs)), (*in_kymo, !in_kymo), "{line}");
    }
}

/// A text with what a target may write: the order of labels, escapes, times, labels that a scrape sets itself.
fn odd_text(dated_ms: i64) -> String {
    format!(
        "# A comment.\n# HELP plain A \\\\ text.\n# TYPE plain gauge\nplain 1\n  spaced   2.5  \nplain{{z=\"1\",a=\"2\"}} 3\n\
         comma{{a=\"b\",}} 4\nescaped{{a=\"q\\\"s\\\\n\\n\"}} 5\nunicode{{a=\"\u{fc}\u{1f600}\"}} 6\nempty{{a=\"\",b=\"c\"}} 7\n\
         own{{job=\"mine\",instance=\"here\"}} 8\ncolon:sum 9\nexponent 1e-3\nhex_less -0.5\nabove +Inf\nbelow -Inf\n\
         dated 10 {dated_ms}\n# TYPE s summary\ns{{quantile=\"0.9\"}} 11\ns_sum 12\ns_count 2\n\
         # TYPE h histogram\nh_bucket{{le=\"1\"}} 1\nh_bucket{{le=\"+Inf\"}} 3\nh_sum 4\nh_count 3\n"
    )
}

/// Series of a scrape itself that only one of them has.
const OF_ONE: &[(&str, &str)] = &[(
    "scrape_timeout_seconds",
    "victoria-metrics' own, as Prometheus has with a feature switched on",
)];

/// Both scrape the same target. The times of scrapes are each one's own: labels and values are compared, and times where
/// the target says them.
#[test]
fn a_scraped_target_is_the_same() {
    let dated_ms = (now_s() - 30) * 1000 + 125;
    let target = Target::start(move |_| odd_text(dated_ms));
    let Some(pair) = Pair::start("victoria-scraped", Some(&target.address)) else {
        return skipped("victoria-metrics is missing");
    };
    let all = "{job=\"scraped\"}";
    let compared = |found: Found| -> Found {
        let times = |(t_ms, value)| {
            if t_ms == dated_ms {
                (t_ms, value)
            } else {
                (0, value)
            }
        };
        let is_of_both = |labels: &String| {
            OF_ONE
                .iter()
                .all(|(name, _)| !labels.contains(&format!("\"{name}\"")))
        };
        let durations = |labels: &String| labels.contains("scrape_duration_seconds");
        let known = found.into_iter().filter(|(labels, _)| is_of_both(labels));
        let one = known.map(|(labels, samples)| {
            let last = samples.last().map(|&sample| times(sample));
            let value = if durations(&labels) {
                Some((0, 0.0))
            } else {
                last
            };
            (labels, value.into_iter().collect())
        });
        one.collect()
    };
    let mut last = None;
    let same = || {
        let range = format!("{all}[1m]");
        let ours = compared(pair.of_kymo(&range, "")?);
        let theirs = compared(pair.of_victoria(&range, "")?);
        last = difference(&ours, &theirs);
        (last.is_none() && ours.len() > 20).then_some(())
    };
    assert!(eventually(same).is_some(), "{last:?}");
    for (name, why) in OF_ONE {
        let found = |found: Option<Found>| found.map(|found| found.len());
        let both = (
            found(pair.of_kymo(name, "")),
            found(pair.of_victoria(name, "")),
        );
        assert_eq!(both, (Some(0), Some(1)), "{name}: {why}");
    }
}
