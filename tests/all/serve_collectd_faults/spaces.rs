//! No input can write another input's names, byte for byte: a datagram with the name of a polled target's file silenced it.

use kymo_base::label_set::Labels;
use kymo_tests::collectd_packet::datagram;
use kymo_tests::keeper_client::ask_at;
use kymo_wire::collectd::{Cdtime, Identifier, Value, ValueList};
use kymo_wire::keeper::{Answer, FileSeries, FileValues, KeeperRequest, LabelledSeries};

use super::hub::{Hub, eventually};
use super::packets::{SLOW_S, gauge, name, now, sender, slow_gauge, slow_time};

/// The poller's name of a series, which the test also uses from other inputs.
const TARGET: &[u8] = b"mrtg/core/r1_1.rrd";

/// A datagram with values for the series [`TARGET`].
fn forged(time: u64) -> Vec<u8> {
    datagram(&ValueList {
        identifier: Identifier {
            host: b"mrtg",
            plugin: b"core",
            plugin_instance: b"",
            type_name: b"r1_1",
            type_instance: b"",
        },
        time: Cdtime::from_seconds(time),
        interval: Cdtime::from_seconds(300),
        values: &[Value::Derive(1), Value::Derive(2)],
    })
}

fn ask(hub: &Hub, question: &KeeperRequest) -> Answer {
    ask_at(&hub.dir.join("keeper-write.sock"), question)
}

/// Creates the poller's series or writes a value to it; returns the number of refused ones.
fn poll(hub: &Hub, question: &KeeperRequest) -> usize {
    match ask(hub, question) {
        Answer::Taken(taken) => taken.refused.len(),
        other => panic!("{other:?}"),
    }
}

fn create(name: &[u8], start: u64) -> KeeperRequest {
    let words = [
        "DS:ds0:DERIVE:600:U:U",
        "DS:ds1:DERIVE:600:U:U",
        "RRA:AVERAGE:0.5:1:600",
    ];
    KeeperRequest::Create(vec![FileSeries {
        name: name.to_vec(),
        step: 300,
        start: start as i64,
        points_kept_s: 86_400,
        words: words.map(|word| word.as_bytes().to_vec()).to_vec(),
    }])
}

fn update(name: &[u8], value: &str) -> KeeperRequest {
    let mut values = FileValues::default();
    assert!(values.push(name, &[value.as_bytes()]));
    KeeperRequest::Update(values)
}

#[test]
fn no_other_input_writes_what_the_poller_does() {
    let mut hub = Hub::start("spaces", "");
    let socket = sender("127.0.0.1", hub.port);
    let begun = now() - 1000;
    // Before the series exists, and after.
    socket.send(&forged(now() + 250)).expect("sent");
    assert_eq!(poll(&hub, &create(TARGET, begun - 10)), 0);
    socket.send(&forged(now() + 250)).expect("sent");
    socket.send(&gauge("web", begun, 1.0)).expect("sent");
    hub.ends_at(&name("web"), begun);
    let file = hub.dir.join("rrd/mrtg/core/r1_1.rrd");
    let absolute = file.to_string_lossy().into_owned();
    let stamp = now() + 10_000;
    for line in [
        format!("UPDATE mrtg/core/r1_1.rrd {stamp}:1:2"),
        format!("UPDATE {absolute} {stamp}:1:2"),
        format!("UPDATE .//mrtg/./core/r1_1.rrd {stamp}:1:2"),
        "FORGET mrtg/core/r1_1.rrd".to_string(),
        "SUSPEND mrtg/core/r1_1.rrd".to_string(),
        "TUNE mrtg/core/r1_1.rrd --heartbeat ds0:1".to_string(),
        "CREATE mrtg/core/r1_1.rrd DS:x:GAUGE:1:U:U RRA:AVERAGE:0.5:1:1".to_string(),
        "CREATE mrtg/core/other.rrd DS:x:GAUGE:1:U:U RRA:AVERAGE:0.5:1:1".to_string(),
        "CREATE mrtg DS:x:GAUGE:1:U:U RRA:AVERAGE:0.5:1:1".to_string(),
    ] {
        let said = hub.client().text(&line);
        assert!(
            said.contains("only the poller writes there"),
            "{line}: {said}"
        );
    }
    for n in 0..3 {
        let value = format!("{}:{}:{}", begun + 300 * n, 100 * n, 200 * n);
        assert_eq!(poll(&hub, &update(TARGET, &value)), 0, "{value}");
    }
    hub.ends_at("mrtg/core/r1_1.rrd", (begun + 600) / 300 * 300);
    let whose = "values of series that another sender writes";
    hub.end();
    assert_eq!(hub.reported(whose), 4, "{:#?}", hub.served.said);
}

#[test]
fn the_poller_takes_no_series_of_who_signs_and_names_of_jobs_are_theirs() {
    let hub = Hub::start("spaces-back", "[collectd]\nauth_file = \"AUTH\"\n");
    let socket = sender("127.0.0.1", hub.port);
    let time = slow_time(2 * SLOW_S);
    let mut packet = Vec::new();
    kymo_wire::collectd::sign(&mut packet, b"user0", b"foo", &slow_gauge("web", time, 1.0));
    socket.send(&packet).expect("sent");
    hub.ends_at(&name("web"), time);
    let later = format!("{}:9", now());
    assert_eq!(poll(&hub, &update(name("web").as_bytes(), &later)), 1);
    let define = |job: &[u8]| {
        KeeperRequest::Define(vec![LabelledSeries {
            labels: Labels::new([("job", job)]).expect("a set"),
            step: 10,
            heartbeat: 60,
            start: 1_700_000_000,
            columns: vec![(b"value".to_vec(), b"GAUGE".to_vec())],
        }])
    };
    // One user runs all these processes here. The keeper itself collects from programs.
    for (job, may) in [
        ("kymo", true),
        ("poll", true),
        ("postgres", true),
        ("programs", false),
    ] {
        let answer = ask(&hub, &define(job.as_bytes()));
        assert_eq!(answer == Answer::Done, may, "{job}: {answer:?}");
    }
    eventually("the value that was signed", || {
        (hub.last(&name("web")) == Some(time)).then_some(())
    });
}
