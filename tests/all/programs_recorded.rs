//! Activity of programs is recorded and can be seen at a past moment: without literals and secrets, even if the keeper
//! and the recorder die meanwhile, and without the keeper ever waiting for the recorder.

use std::fs;
use std::path::Path;
use std::process::Command;

use kymo_shm::{Kind, Publisher, Schema, Slot};
use kymo_tests::kymo;
use kymo_tests::served::{Served, ask, eventually, get, kill};
use serde_json::Value;

use crate::hosts::feed_of;
use crate::programs::{Place, files_below};

/// A publisher with slots that have a label.
fn publisher(place: &Place, slots: usize) -> (Publisher, Vec<Slot>) {
    let schema = Schema::new("example", slots)
        .folder(place.folder())
        .slot_labels(&["application"]);
    let publisher = Publisher::create(&schema).expect("a publisher");
    let slots = (0..slots).map(|_| {
        let mut slot = publisher.take();
        slot.identify(None, 0, &[b"label-of-a-user"]);
        slot
    });
    let slots = slots.collect();
    (publisher, slots)
}

/// The recording's answer for a moment, requested as the page does.
fn at(place: &Place, seconds: f64) -> Option<Value> {
    let token = fs::read_to_string(format!("{}/token", place.data)).expect("a token");
    let path = format!("/kymo/v1/programs?at={seconds}");
    let (status, body) = ask(&place.address, "GET", &path, token.trim(), "")?;
    // A recorder that was started a moment ago has no recording yet.
    assert!([200, 404, 503].contains(&status), "{body}");
    let body = serde_json::from_str(&body).expect("JSON");
    Some(body).filter(|_| status == 200)
}

fn now() -> f64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("after 1970").as_secs_f64()
}

/// The publisher's texts in flight, in the order of its slots.
fn texts(answer: &Value) -> Vec<String> {
    let all = answer["publishers"].as_array().into_iter().flatten();
    let slots = all.flat_map(|each| each["slots"].as_array().cloned().unwrap_or_default());
    slots
        .map(|slot| slot["text"].as_str().unwrap_or("?").to_string())
        .collect()
}

/// Waits until these texts are recorded; returns a moment at which they were.
fn wait(place: &Place, wanted: &[&str]) -> f64 {
    let found = eventually(|| {
        let now = now();
        at(place, now).filter(|found| texts(found) == wanted)?;
        Some(now)
    });
    found.unwrap_or_else(|| panic!("{wanted:?}: {:?}", at(place, now())))
}

/// A command's stdout.
fn command_output(words: &[&str]) -> String {
    let output = Command::new(kymo()).args(words).output();
    String::from_utf8_lossy(&output.expect("kymo runs").stdout).into_owned()
}

/// The time as `--at` expects it, in the zone of this machine.
fn spelled(seconds: f64) -> String {
    let output = Command::new("date")
        .args(["-d", &format!("@{}", seconds.floor()), "+%Y%m%d:%H:%M:%S"])
        .output();
    let output = output.expect("date runs").stdout;
    String::from_utf8_lossy(&output).trim().to_string()
}

#[test]
fn what_runs_is_recorded_without_literals_and_secrets_though_both_ends_die() {
    let place = Place::start("programs-recorded");
    let (_publisher, mut slots) = publisher(&place, 4);
    slots[0].begin(
        Kind::Sql,
        b"SELECT * FROM t WHERE a = 'SEKRET' /* SEKRET */",
        0,
        0,
    );
    slots[1].begin(Kind::Plain, b"AUTH SEKRET", 0, 0);
    slots[2].begin(Kind::Secret, b"SEKRET", 0, 0);
    let first = wait(&place, &["SELECT * FROM t WHERE a = ?", "AUTH", ""]);
    let keeper = place.served.child("keeper").expect("a keeper");
    kill("-KILL", keeper);
    place.served.next_child("keeper", keeper);
    slots[0].begin(Kind::Sql, b"UPDATE t SET a = 'SEKRET'", 0, 0);
    slots[1].end();
    let second = wait(&place, &["UPDATE t SET a = ?", ""]);
    let recorder = place.served.child("record").expect("a recorder");
    kill("-KILL", recorder);
    place.served.next_child("record", recorder);
    slots[0].begin(Kind::Sql, b"DELETE FROM v WHERE a = $$SEKRET$$", 0, 0);
    let third = wait(&place, &["DELETE FROM v WHERE a = ?", ""]);
    slots.iter_mut().for_each(Slot::end);
    wait(&place, &[]);
    let seen = [first, second, third].map(|moment| at(&place, moment).expect("a sample"));
    for (seen, (moment, wanted)) in seen.iter().zip([
        (first, "SELECT * FROM t WHERE a = ?"),
        (second, "UPDATE t SET a = ?"),
        (third, "DELETE FROM v WHERE a = ?"),
    ]) {
        assert_eq!(texts(seen)[0], wanted);
        let sample = seen["at"].as_f64().expect("a moment");
        assert!(sample <= moment, "{sample} is not later than {moment}");
        let publisher = &seen["publishers"][0];
        assert_eq!(
            (&publisher["name"], &publisher["life"]),
            (&"example".into(), &"alive".into())
        );
        let slot = &publisher["slots"][0];
        assert_eq!(
            (&slot["kind"], &slot["state"]),
            (&"sql".into(), &"active".into())
        );
        assert_eq!(slot["labels"]["application"], "label-of-a-user");
        let waiting = publisher["slots_left_out"].as_u64().expect("a count");
        let slots = publisher["slots"].as_array().expect("slots").len();
        assert_eq!(u64::try_from(slots).expect("a few") + waiting, 4);
    }
    without_token(&place, first);
    on_the_command_line(&place, second);
    nowhere(&place);
}

/// Without a token an answer has the publishers and the number of commands in flight, but no texts.
fn without_token(place: &Place, moment: f64) {
    let answer = get(
        &place.address,
        &format!("/kymo/v1/programs?at={moment}"),
        "",
    );
    assert_eq!(texts(&answer), ["", "", ""]);
    assert_eq!(answer["publishers"][0]["name"], "example");
    let text = answer.to_string();
    for hidden in ["SELECT", "AUTH", "label-of-a-user"] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    let path = format!("/kymo/v1/programs?at={}", moment - 3600.0);
    let (status, body) = ask(&place.address, "GET", &path, "", "").expect("an answer");
    assert_eq!(status, 404, "{body}");
    let (status, _) = ask(&place.address, "GET", "/kymo/v1/programs?at=noon", "", "").expect("one");
    assert_eq!(status, 400);
    let path = "/kymo/v1/text?source=programs/now";
    let (status, _) = ask(&place.address, "GET", path, "", "").expect("an answer");
    assert_eq!(status, 401);
}

fn on_the_command_line(place: &Place, moment: f64) {
    let at = spelled(moment);
    let page = command_output(&["programs", "--at", &at, "--data", &place.data]);
    assert!(page.contains("example of "), "{page}");
    assert!(page.contains("UPDATE t SET a = ?"), "{page}");
    let open = ["programs", "--json", "--at", &at, "--open", &place.data];
    let json = command_output(&open);
    let json: Value = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{json}"));
    assert_eq!(texts(&json), ["UPDATE t SET a = ?", ""]);
    let mut looked_at = Served::start(&["--open", &place.data, "--listen", "127.0.0.1:0"]);
    let address = looked_at.address();
    let path = format!("/kymo/v1/programs?at={moment}");
    let then = get(&address, &path, "");
    assert_eq!(
        texts(&then),
        ["", ""],
        "of a recording that is only looked at"
    );
    let last = get(&address, "/kymo/v1/programs", "");
    assert!(last["at"].as_f64() > then["at"].as_f64(), "and its end");
    assert_eq!(texts(&last).len(), 0);
    let early = ["programs", "--at", "20200101:12:00", "--open", &place.data];
    let output = Command::new(kymo())
        .args(early)
        .output()
        .expect("kymo runs");
    assert_eq!(output.status.code(), Some(1), "nothing was found");
}

/// `kymo top` has the same text in its table of programs: live as of the last look, and at a moment from then on.
#[test]
fn the_screen_has_a_table_of_programs() {
    let place = Place::start("programs-top");
    let (_publisher, mut slots) = publisher(&place, 2);
    // The first sample stands for all earlier moments.
    wait(&place, &[]);
    slots[0].begin(Kind::Sql, b"SELECT price FROM screens", 0, 0);
    let moment = wait(&place, &["SELECT price FROM screens"]);
    let screen = |words: &[&str]| {
        let common = ["top", "--once", "--keys", "7", "--data", &place.data];
        command_output(&[&common[..], words].concat())
    };
    let is_there = |shown: &str| {
        shown.contains("example of ") && shown.contains("active") && shown.contains("SELECT price")
    };
    // A moment is covered by the first sample at or after it, which may still have to come.
    let at = spelled(moment + 1.0);
    let then = || screen(&["--at", &at]);
    assert!(
        eventually(|| is_there(&then()).then_some(())).is_some(),
        "{}",
        then()
    );
    assert!(is_there(&screen(&[])), "{}", screen(&[]));
    slots[0].end();
    let is_over = || !screen(&[]).contains("SELECT price");
    assert!(
        eventually(|| is_over().then_some(())).is_some(),
        "{}",
        screen(&[])
    );
    assert!(is_there(&then()), "{}", then());
    // Another machine gets what this one shows.
    let (mut child, mut feed) = feed_of(&place.data);
    let ns = |seconds: f64| (seconds * 1e9) as i64;
    let there = feed.programs(ns(moment)).expect("an answer");
    assert!(is_there(&there), "{there}");
    let gone = feed.programs(ns(now())).expect("an answer");
    assert!(!gone.contains("SELECT price"), "{gone}");
    drop(feed);
    assert!(child.wait().expect("its end").success());
    let early = screen(&["--at", "20200101:12:00"]);
    assert!(!early.contains("SELECT price"), "{early}");
}

/// The secret is neither in the recording, packed or not, nor in any other file.
fn nowhere(place: &Place) {
    let recorder = place.served.child("record").expect("a recorder");
    kill("-TERM", recorder);
    place.served.next_child("record", recorder);
    let blocks = eventually(|| {
        let files = files_below(Path::new(&place.data));
        let mut blocks = files
            .iter()
            .filter(|file| file.extension().is_some_and(|ending| ending == "blk"));
        blocks.next().map(|_| ())
    });
    assert!(blocks.is_some(), "what was recorded is sealed");
    let dump = command_output(&["dump", &place.data]);
    for there in [
        "text=SELECT * FROM t WHERE a = ?",
        "text=UPDATE",
        "text=DELETE",
    ] {
        assert!(dump.contains(there), "{there}");
    }
    assert!(!dump.contains("SEKRET"));
    for file in files_below(Path::new(&place.data)) {
        let bytes = fs::read(&file).unwrap_or_default();
        let is_there = bytes.windows(6).any(|part| part == b"SEKRET");
        assert!(!is_there, "in {}", file.display());
    }
}

#[test]
fn a_recorder_that_stands_still_is_not_waited_for() {
    let mut place = Place::start("programs-full");
    let (_publisher, mut slots) = publisher(&place, 200);
    let long = |round: usize| format!("SELECT {}", format!("c{round}, ").repeat(200));
    let recorder = place.served.child("record").expect("a recorder");
    let begin = |slots: &mut Vec<Slot>, round: usize| {
        for slot in slots {
            slot.begin(Kind::Sql, long(round).as_bytes(), 0, 0);
        }
    };
    begin(&mut slots, 0);
    let is_recorded = |round: usize| {
        let found = eventually(|| {
            let found = at(&place, now())?;
            let texts = texts(&found);
            let is_there = texts.first()?.starts_with(&long(round)[..20]);
            (is_there && texts.len() > 100).then_some(found)
        });
        found.unwrap_or_else(|| panic!("round {round} is not recorded"))
    };
    is_recorded(0);
    kill("-STOP", recorder);
    let mut round = 0;
    let dropped = eventually(|| {
        round += 1;
        begin(&mut slots, round);
        let asked = place.listing();
        let shown = asked["publishers"][0]["slots"].as_array()?.len();
        assert_eq!(shown, 200, "the keeper answers");
        asked["dropped"].as_u64().filter(|dropped| *dropped > 0)
    });
    kill("-CONT", recorder);
    assert!(dropped.is_some(), "{}", place.listing()["dropped"]);
    begin(&mut slots, 1_000_000);
    let recorded = is_recorded(1_000_000);
    assert!(recorded["dropped"].as_u64() >= dropped);
    assert_eq!(
        place.served.child("record"),
        Some(recorder),
        "the same recorder"
    );
    let line = "cannot record what programs do: the recorder does not take it";
    place.served.has_said(line);
    let page = command_output(&["programs", "--once", "--data", &place.data]);
    assert!(
        page.contains("are not recorded: the recorder did not take them"),
        "{page}"
    );
}
