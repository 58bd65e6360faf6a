//! etsy's statsd and `kymo serve` get the same lines, and have the same sums. Needs node and web-tests/node_modules (npm ci).

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use kymo_tests::machine::skipped;
use kymo_tests::served::eventually;
use kymo_tests::{Running, Scratch, free_port};
use serde_json::Value;

use crate::serve_statsd::{LineHub, sender};

/// A backend of etsy's statsd that writes the flush with the counter `mark` into a file.
const BACKEND: &str = "const fs = require('fs');
exports.init = (started, config, events) => {
  events.on('flush', (time, metrics) => {
    const found = JSON.stringify(metrics);
    if (metrics.counters.mark) { fs.writeFileSync(config.found + '.new', found); fs.renameSync(config.found + '.new', config.found); }
    else fs.writeFileSync(config.found + '.ready', '');
  });
  return true;
};
";

/// etsy's daemon on a port, and the file of its flush.
fn daemon(scratch: &Scratch, program: &Path, port: u16) -> (Running, String) {
    let (backend, config) = (scratch.text("backend.js"), scratch.text("config.js"));
    let found = scratch.text("found");
    fs::write(&backend, BACKEND).expect("a backend");
    let management = free_port();
    let text = format!(
        "{{ port: {port}, address: '127.0.0.1', mgmt_port: {management}, flushInterval: 1000,\n\
         backends: ['{backend}'], found: '{found}' }}"
    );
    fs::write(&config, text).expect("a configuration");
    let mut command = Command::new("node");
    let command = command.arg(program).arg(&config);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let running = Running(child.expect("node starts"));
    let ready = format!("{found}.ready");
    eventually(|| Path::new(&ready).exists().then_some(())).expect("a first flush");
    (running, found)
}

/// Lines of one datagram, with names that both programs spell alike.
fn lines() -> String {
    let mut text = String::from("mark:1|c\n");
    let mut state = 12_345u32;
    let mut draw = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    for _ in 0..500 {
        let (kind, name) = (draw(6), draw(4));
        let (whole, part) = (draw(1000), draw(100));
        // Writing to a string cannot fail.
        let _ = match kind {
            0 => writeln!(text, "c{name}:{whole}|c"),
            1 => writeln!(text, "c{name}:{}|c|@0.25", draw(9)),
            2 => writeln!(text, "g{name}:{whole}|g"),
            3 => writeln!(text, "g{name}:{}{part}|g", ["+", "-"][part as usize % 2]),
            4 => writeln!(text, "t{name}:{whole}.{part}|ms"),
            _ => writeln!(text, "s{name}:m{}|s", draw(30)),
        };
    }
    text
}

#[test]
fn sums_are_those_of_the_reference_daemon() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web-tests/node_modules/statsd");
    let program = program.join("stats.js");
    if !program.exists() || Command::new("node").arg("--version").output().is_err() {
        return skipped("node or web-tests/node_modules/statsd is missing");
    }
    let scratch = Scratch::new("statsd-reference");
    let port = free_port();
    let (_daemon, found) = daemon(&scratch, &program, port);
    let mut hub = LineHub::start("statsd-reference-hub");
    let lines = lines();
    sender(port).send(lines.as_bytes()).expect("sent");
    sender(hub.statsd).send(lines.as_bytes()).expect("sent");
    let found = eventually(|| fs::read_to_string(&found).ok()).expect("a flush");
    let theirs: Value = serde_json::from_str(&found).expect("JSON");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let stored = hub.stored();
    let ours = |name: &str| {
        let values = stored.values(&format!("{{__name__=\"{name}\",job=\"statsd\"}}"));
        values[0]
    };
    let number = |value: &Value| value.as_f64().expect("a number");
    for name in 0..4 {
        let counter = number(&theirs["counters"][format!("c{name}")]);
        assert_eq!(ours(&format!("c{name}_total")), counter, "c{name}");
        let gauge = number(&theirs["gauges"][format!("g{name}")]);
        assert_eq!(ours(&format!("g{name}")), gauge, "g{name}");
        let timer = &theirs["timer_data"][format!("t{name}")];
        for (end, key) in [("count", "count"), ("min", "lower"), ("max", "upper")] {
            let value = ours(&format!("t{name}_{end}"));
            assert_eq!(value, number(&timer[key]), "t{name} {key}");
        }
        let (sum, their_sum) = (ours(&format!("t{name}_sum")), number(&timer["sum"]));
        // The two programs add in different orders.
        assert!((sum - their_sum).abs() < 1e-6, "{sum} {their_sum}");
        let members = theirs["sets"][format!("s{name}")]["store"].as_object();
        let count = members.expect("members").len();
        assert_eq!(ours(&format!("s{name}")), count as f64, "s{name}");
    }
}
