//! Senseless parameters: each is answered or refused with a reason.

use super::client::{Served, eventually};
use kymo_tests::Scratch;

const OK: &[u16] = &[200];
const BAD: &[u16] = &[400];
const MISSING: &[u16] = &[404];
/// The request is valid; its object may exist or not.
const EITHER: &[u16] = &[200, 404];
const TOO_MUCH: &[u16] = &[422];

/// Requests and their possible statuses.
fn questions() -> Vec<(String, &'static [u16])> {
    let mut questions: Vec<(String, &[u16])> = Vec::new();
    let mut add = |status, targets: &[&str]| {
        questions.extend(
            targets
                .iter()
                .map(|target| (format!("/kymo/v1/{target}"), status)),
        );
    };
    add(
        BAD,
        &[
            "series",
            "series?fields=",
            "series?fields=,,,",
            "series?fields=cpu.user&points=0",
            "series?fields=cpu.user&points=-1",
            "series?fields=cpu.user&points=",
            "series?fields=cpu.user&points=nan",
            "series?fields=cpu.user&points=1e9",
            "series?fields=cpu.user&points=99999999999999999999",
            "series?fields=cpu.user&points=11001",
            "series?fields=cpu.user&from=10&thru=5",
            "series?fields=cpu.user&from=now&thru=now",
            "series?fields=cpu.user&from=-1e300",
            "series?fields=cpu.user&from=nan",
            "series?fields=cpu.user&thru=inf",
            "series?fields=cpu.user&thru=-inf",
            "series?fields=cpu.user&from=",
            "series?fields=cpu.user&from=yesterday",
            "series?fields=cpu.user&from=9e18",
            "series?fields=cpu.user&from=4e9&thru=4.1e9",
            "events?from=-1e10",
            "live",
            "live?fields=",
            "events?from=5&thru=5",
            "events?thru=9e99",
            "processes?at=9e18",
            "processes?at=-9e18",
            "processes?at=nan",
            "processes?over=0",
            "processes?over=-5",
            "processes?over=1e3",
            "processes?over=3601",
            "processes?over=",
            "processes?limit=0",
            "processes?limit=10001",
            "processes?limit=x",
            "processes?sort=nothing",
            "processes?sort=",
            "processes?sort=-",
            "sources?at=9e18",
            "text?source=proc/stat&at=9e18",
            "text?source=proc/stat&at=",
            "graph.svg?width=0",
            "graph.svg?height=-1",
            "graph.svg?width=1e9",
            "graph.svg?theme=%3Cscript%3E",
            "graph.svg?from=9e18",
        ],
    );
    add(
        MISSING,
        &[
            "series?fields=nothing.at_all",
            "series?fields=cpu",
            "series?fields=.",
            "series?fields=%00",
            "series?fields=cpu.user.x",
            "series?fields=%F0%9F%92%A9",
            "series?fields=process.command",
            "live?fields=nothing.at_all",
            "graph.svg?fields=nothing.at_all",
            "text",
            "text?source=",
            "text?source=proc/1/mem",
            "text?source=/proc/stat",
            "nothing",
            "",
            "series/",
            "Series",
            "sources?at=1",
            "text?source=proc/stat&at=1",
            "processes?at=1",
        ],
    );
    add(
        OK,
        &[
            "series?fields=cpu.user&from=-9e8",
            "series?fields=cpu.user&from=0&thru=3.9e9",
            "series?fields=cpu.user&from=-3.9e9&thru=3.9e9",
            "series?fields=cpu.user&from=0&thru=0.001",
            "series?fields=cpu.user&points=1",
            "series?fields=cpu.user&points=11000&from=-1",
            "series?fields=cpu.user:no-such-cpu",
            "series?fields=cpu.user:",
            "series?fields=disk.read_kb:%252C",
            "series?fields=cpu.user&fields=cpu.sys&junk=%ff&junk",
            "series?fields=cpu.user:*",
            "events?from=0",
            "events?from=-3.9e9&thru=3.9e9",
            "processes?limit=1",
            "processes?filter=%00%ff",
            "processes?sort=-cpu",
            "processes?sort=command",
            "processes?over=3600",
            "fields?x=y",
            "status?&&&==",
            "cost?%",
            "graph.svg?width=1",
            "graph.svg?height=1",
        ],
    );
    add(
        EITHER,
        &[
            "processes?at=3.9e9",
            "processes?at=-3.9e9",
            "sources?at=3.9e9",
            "text?source=proc/99999999/stat",
            "text?source=proc/1/task/1/stat",
        ],
    );
    let many = |count: usize| vec!["cpu.user:a"; count].join(",");
    add(
        BAD,
        &[
            &format!("series?fields={}", many(1000)),
            &format!("live?fields={}", many(1000)),
        ],
    );
    add(
        TOO_MUCH,
        &[&format!(
            "series?fields={}&points=11000&from=-10000",
            many(512)
        )],
    );
    add(&[200, 422], &[&format!("graph.svg?fields={}", many(1400))]);
    questions
}

#[test]
fn parameters_that_make_no_sense() {
    let scratch = Scratch::new("parameters");
    let served = Served::recording(&scratch.text("data"));
    let hub = served.hub();
    let token = std::fs::read_to_string(scratch.path("data/token")).expect("a token");
    let mut wrong = Vec::new();
    for (target, expect) in questions() {
        let asked: String = target.chars().take(100).collect();
        // With the token: access to texts is not tested here.
        let answer = eventually(&format!("a prompt answer to {asked}"), || {
            let answer = served.get_with(&target, token.trim());
            (answer.took < super::client::PROMPT).then_some(answer)
        });
        let says = answer.status == 200
            || answer.json()["error"]
                .as_str()
                .is_some_and(|error| error.starts_with("cannot "));
        if !expect.contains(&answer.status) || !says {
            wrong.push(format!(
                "{asked}: {}, not {expect:?}: {:.200}",
                answer.status,
                answer.text()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    served.is_unharmed(hub);
}

/// The largest answers, and requests for larger ones, need bounded memory.
#[test]
fn large_questions_take_bounded_memory() {
    let scratch = Scratch::new("large");
    let served = Served::recording(&scratch.text("data"));
    let hub = served.hub();
    for count in [180, 512] {
        let fields: Vec<String> = (0..count).map(|n| format!("cpu.user:{n}")).collect();
        let target = format!(
            "/kymo/v1/series?points=11000&from=-10000&fields={}",
            fields.join(",")
        );
        let answer = served.get(&target);
        assert!(
            matches!(answer.status, 200 | 422),
            "{count}: {}",
            answer.status
        );
        assert_eq!(answer.status == 200, count * 10_001 <= 2_000_000, "{count}");
    }
    let most_kb = super::client::status_of(hub, "VmHWM:");
    eprintln!("at most {most_kb} KiB");
    assert!(most_kb < 150 << 10, "{most_kb} KiB");
    served.is_unharmed(hub);
}
