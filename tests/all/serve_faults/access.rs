//! Access: hosts, origins, tokens, and no answer with more than its client may know.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::client::{Answer, Served, ask, eventually};
use kymo_tests::machine::{must_skip, skipped};
use kymo_tests::{Running, Scratch};

/// An argument of a process.
const SECRET: &str = "kymo-test-secret-4b1d";
/// Headers on every answer that keep pages of other origins out.
const STRICT: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];
/// Headers that would give access away.
const NEVER: [&str; 5] = [
    "set-cookie",
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "x-powered-by",
    "server",
];

/// Every request of the API, with parameters for the fullest answer.
fn questions(pid: u32) -> Vec<String> {
    let mut questions: Vec<String> = [
        "/",
        "/page.js",
        "/metrics",
        "/kymo/v1/status",
        "/kymo/v1/cost",
        "/kymo/v1/fields",
        "/kymo/v1/events?from=0",
        "/kymo/v1/sources",
        "/kymo/v1/processes",
        "/kymo/v1/processes?over=60",
        "/kymo/v1/processes?sort=-pid&limit=1000",
        "/kymo/v1/processes?sort=command",
        "/kymo/v1/processes?sort=user",
        "/kymo/v1/movers",
        "/kymo/v1/text?source=proc/stat",
        "/kymo/v1/series?fields=cpu.user,cpu.user:*,disk.read_kb:*,net.rx_kb:*&from=-60",
        "/kymo/v1/series?fields=process.command",
        "/kymo/v1/series?fields=process.uid:*&from=-60",
        "/kymo/v1/graph.svg?fields=process.uid:*&from=-60",
        "/kymo/v1/live?fields=process.uid:*",
        "/kymo/v1/graph.svg?from=-60",
        "/kymo/v1/graph.svg?fields=process.command",
    ]
    .iter()
    .map(|target| target.to_string())
    .collect();
    questions.push(format!("/kymo/v1/processes?filter={SECRET}"));
    questions.push(format!("/kymo/v1/processes?filter={pid}"));
    for file in ["stat", "status", "cmdline", "io", "cgroup", "exe"] {
        questions.push(format!("/kymo/v1/text?source=proc/{pid}/{file}"));
    }
    questions
}

fn token_in(scratch: &Scratch) -> String {
    let text = fs::read_to_string(scratch.path("data/token")).expect("a token");
    text.trim().to_string()
}

/// A process with a secret in its arguments, which waits for its stdin and has no child that outlives it.
fn with_secret() -> Running {
    let child = Command::new("sh")
        .args(["-c", "read line", SECRET])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    Running(child.expect("sh"))
}

/// Names of the table's columns.
fn columns(answer: &Answer) -> Vec<String> {
    let columns = answer.json()["columns"].clone();
    let columns = columns.as_array().expect("columns").iter();
    columns
        .map(|column| column["name"].as_str().expect("a name").to_string())
        .collect()
}

#[test]
fn texts_are_for_who_has_the_token() {
    let scratch = Scratch::new("texts");
    let served = Served::recording(&scratch.text("data"));
    let secret = with_secret();
    let (pid, token) = (secret.0.id(), token_in(&scratch));
    let filtered = format!("/kymo/v1/processes?filter={SECRET}");
    // With the token the secret is shown, so that its absence without the token means something.
    let answer = eventually("the process in a scan", || {
        let answer = served.get_with(&filtered, &token);
        answer
            .text()
            .contains(&format!("{SECRET}\""))
            .then_some(answer)
    });
    let all = columns(&answer);
    for name in ["user", "uid", "program", "command", "cgroup"] {
        assert!(
            all.iter().any(|column| column == name),
            "{name} with the token"
        );
    }
    let cmdline = served.get_with(&format!("/kymo/v1/text?source=proc/{pid}/cmdline"), &token);
    assert!(cmdline.text().contains(SECRET), "{}", cmdline.text());

    let open = columns(&served.get("/kymo/v1/processes"));
    for name in ["user", "uid", "program", "command", "cgroup"] {
        assert!(!open.iter().any(|column| column == name), "{name} without");
    }
    assert_eq!(
        served.json(&filtered)["rows"].as_array().map(Vec::len),
        Some(0)
    );
    for target in questions(pid) {
        let answer = served.get(&target);
        let (status, text) = (answer.status, answer.text());
        assert!(
            !text.contains(SECRET) || target.contains(SECRET) && status >= 400,
            "{target}: {text}"
        );
        assert!(!text.contains(&token), "{target}");
        if target.contains(&format!("source=proc/{pid}/")) || target.contains("process.uid") {
            assert_eq!(status, 401, "{target}: {text}");
        }
    }
    assert!(live_says(&served).contains("\"values\""));
}

/// The stream up to its first sample.
fn live_says(served: &Served) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(&served.address).expect("a connection");
    stream
        .set_read_timeout(Some(super::client::LONG))
        .expect("a limit");
    let request = "GET /kymo/v1/live?fields=cpu.user,cpu.user:*,net.rx_kb:* HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("sent");
    let (mut said, mut bytes) = (String::new(), [0; 4096]);
    while !said.contains("\"values\"") {
        let read = stream.read(&mut bytes).expect("a sample");
        assert!(read > 0, "it ended: {said}");
        said.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    assert!(!said.contains(SECRET), "{said}");
    said
}

#[test]
fn only_the_right_asker_gets_in() {
    let scratch = Scratch::new("askers");
    let served = Served::recording(&scratch.text("data"));
    let address = &served.address;
    let token = token_in(&scratch);
    let status = "/kymo/v1/status";
    let wrong = "f".repeat(token.len());
    let cut = &token[..token.len() - 1];
    for (headers, expect) in [
        (String::new(), 200),
        ("Host: localhost:1\r\n".into(), 200),
        ("Host: rebound.example\r\n".into(), 403),
        (
            format!(
                "Host: rebound.example:{}\r\n",
                address.rsplit(':').next().expect("a port")
            ),
            403,
        ),
        ("Host: 127.0.0.1.rebound.example\r\n".into(), 403),
        ("Host: localhost.\r\n".into(), 403),
        ("Host: \r\n".into(), 403),
        ("Host: localhost@rebound.example\r\n".into(), 403),
        (format!("Origin: http://{address}\r\n"), 200),
        ("Origin: http://evil.example\r\n".into(), 403),
        ("Origin: null\r\n".into(), 403),
        ("Origin: http://localhost:1\r\n".into(), 403),
        (format!("Origin: http://{address}.evil.example\r\n"), 403),
        (
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n".into(),
            403,
        ),
        (
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n".into(),
            403,
        ),
        (
            "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n".into(),
            403,
        ),
        ("Sec-Fetch-Site: cross-site\r\n".into(), 403),
        (
            "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n".into(),
            200,
        ),
        (
            "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n".into(),
            200,
        ),
        (format!("Authorization: Bearer {token}\r\n"), 200),
        (format!("Authorization: Bearer {wrong}\r\n"), 401),
        (format!("Authorization: Bearer {cut}\r\n"), 401),
        (format!("Authorization: Bearer {token}x\r\n"), 401),
        ("Authorization: Bearer \r\n".into(), 401),
        (format!("Authorization: Basic {token}\r\n"), 401),
    ] {
        let answer = ask(address, "GET", status, &headers, "").expect(&headers);
        assert_eq!(answer.status, expect, "{headers}: {}", answer.text());
    }
    let json = "Content-Type: application/json\r\n";
    let with_token = format!("{{\"token\": \"{token}\"}}");
    for (headers, body, expect) in [
        (json, with_token.as_str(), 200),
        ("", &with_token, 415),
        ("Content-Type: text/plain\r\n", &with_token, 415),
        (
            "Content-Type: application/x-www-form-urlencoded\r\n",
            &with_token,
            415,
        ),
        ("Content-Type: application/jsonx\r\n", &with_token, 415),
        (json, "{\"token\": \"\"}", 401),
        (json, "{\"code\": \"\"}", 401),
        (
            json,
            "{\"code\": \"00000000000000000000000000000000\"}",
            401,
        ),
        (json, "{}", 401),
        (json, "{\"token\": null, \"code\": null}", 401),
        (json, "{\"user\": \"root\"}", 400),
        (json, "", 400),
    ] {
        let answer = ask(address, "POST", "/kymo/v1/session", headers, body).expect(body);
        assert_eq!(answer.status, expect, "{headers}{body}: {}", answer.text());
    }
}

#[test]
fn every_answer_is_strict() {
    let scratch = Scratch::new("strict");
    let served = Served::recording(&scratch.text("data"));
    let address = &served.address;
    let mut answers: Vec<(String, Answer)> = questions(1)
        .into_iter()
        .map(|target| (target.clone(), served.get(&target)))
        .collect();
    for (method, target, headers, body) in [
        ("GET", "/nothing", "", ""),
        ("GET", "/kymo/v1/nothing", "", ""),
        ("PUT", "/", "", ""),
        ("HEAD", "/", "", ""),
        (
            "OPTIONS",
            "/kymo/v1/status",
            "Origin: http://localhost\r\nHost: localhost\r\n",
            "",
        ),
        ("GET", "/", "Host: evil.example\r\n", ""),
        ("GET", "/", "Authorization: Bearer x\r\n", ""),
        ("POST", "/kymo/v1/session", "", "{}"),
        (
            "POST",
            "/kymo/v1/session",
            "Content-Type: application/json\r\n",
            "{}",
        ),
        ("GET", "/kymo/v1/series", "", ""),
        ("GET", "/kymo/v1/status", "Accept-Encoding: gzip\r\n", ""),
    ] {
        let answer = ask(address, method, target, headers, body).expect(target);
        answers.push((format!("{method} {target} {headers}"), answer));
    }
    let large = "x".repeat(20_000);
    let json = "Content-Type: application/json\r\n";
    answers.push((
        "large".into(),
        ask(address, "POST", "/kymo/v1/session", json, &large).expect("413"),
    ));
    let mut statuses = std::collections::BTreeSet::new();
    for (what, answer) in &answers {
        statuses.insert(answer.status);
        for (name, value) in STRICT {
            let given = answer.header(name).unwrap_or_default();
            assert!(
                given.starts_with(&value.to_ascii_lowercase()),
                "{what}: {name}: {given}"
            );
        }
        for name in NEVER {
            assert_eq!(answer.header(name), None, "{what}: {name}");
        }
    }
    for status in [200, 400, 401, 403, 404, 405, 413, 415] {
        assert!(statuses.contains(&status), "no {status} among {statuses:?}");
    }
}

/// Another user of this machine sees numbers, and neither the folder nor the token.
#[test]
fn another_user_sees_numbers_only() {
    if must_skip(&["setpriv", "curl"]) {
        return;
    }
    let scratch = Scratch::new("another");
    fs::set_permissions(scratch.path(""), fs::Permissions::from_mode(0o755)).expect("chmod");
    let served = Served::recording(&scratch.text("data"));
    let _secret = with_secret();
    let as_nobody = |words: &[&str]| {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .args(words)
            .output();
        output.expect("setpriv")
    };
    if !as_nobody(&["ls", &scratch.text("")]).status.success() {
        return skipped("another user cannot reach the temporary folder");
    }
    let (data, token) = (scratch.text("data"), scratch.text("data/token"));
    for words in [&["ls", &data][..], &["cat", &token]] {
        let output = as_nobody(words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains("Permission denied") && output.stdout.is_empty(),
            "{words:?}"
        );
    }
    let url = format!("http://{}/kymo/v1/processes", served.address);
    let seen = as_nobody(&["curl", "-sS", &url]);
    let seen: serde_json::Value = serde_json::from_slice(&seen.stdout).expect("JSON");
    assert!(
        seen["rows"].as_array().is_some_and(|rows| rows.len() > 2),
        "{seen}"
    );
    assert!(!seen.to_string().contains(SECRET));
}
