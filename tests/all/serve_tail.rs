//! A tail of a keeper that runs: all that comes from all inputs, once it is on the disk, through the keeper's end.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kymo_base::label_set::Labels;
use kymo_query::stored::{Tail, TailOut};
use kymo_series::{Kind, Sample};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_tests::collectd_packet::datagram;
use kymo_tests::keeper_client::{answer_of, ask_at};
use kymo_tests::rrd_client::Client;
use kymo_tests::served::{Served, eventually, kill};
use kymo_tests::{Running, Scratch, free_port, kymo};
use kymo_wire::collectd::{Cdtime, Identifier, Value, ValueList};
use kymo_wire::keeper::{Answer, LabelledSeries, LabelledValues, Question, TailFrom};

/// Values by the labels of their series, but for those of this machine.
#[derive(Default)]
struct Kept(BTreeMap<String, Vec<(i64, f64)>>);

impl TailOut for Kept {
    fn sample(&mut self, labels: &Labels, kind: Kind, sample: Sample) {
        let text = String::from_utf8_lossy(labels.text()).into_owned();
        if !text.contains("job=\"node\"") && !text.contains("job=\"kymo\"") {
            let series = self.0.entry(format!("{kind:?} {text}")).or_default();
            series.push((sample.t_ms, sample.v));
        }
    }
}

fn now_s() -> i64 {
    RealClock.now().real_ns / 1_000_000_000
}

/// One value by each input: the number of the round.
fn feed(dir: &Path, port: u16, begun_s: i64, round: i64) {
    let time = begun_s + 10 * round;
    let mut client =
        eventually(|| Client::unix(&dir.join("rrdcached.sock")).ok()).expect("a client");
    if round == 0 {
        let reply = client.text(&format!(
            "CREATE a.rrd -b {} -s 10 DS:x:COUNTER:60:U:U DS:y:GAUGE:60:U:U RRA:AVERAGE:0.5:1:9",
            begun_s - 10
        ));
        assert!(reply.starts_with('0'), "{reply}");
    }
    let reply = client.text(&format!("UPDATE a.rrd {time}:{}:{round}.5", 100 + round));
    assert!(reply.starts_with('0'), "{reply}");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let packet = datagram(&ValueList {
        identifier: Identifier {
            host: b"web1",
            plugin: b"load",
            plugin_instance: b"",
            type_name: b"gauge",
            type_instance: b"x",
        },
        time: Cdtime::from_seconds(time.unsigned_abs()),
        interval: Cdtime::from_seconds(10),
        values: &[Value::Gauge(round as f64)],
    });
    socket.send_to(&packet, ("127.0.0.1", port)).expect("sent");
    let labels = Labels::new([("__name__", &b"m_total"[..]), ("of", b"test")]).expect("labels");
    let write = dir.join("keeper-write.sock");
    let mut stream = eventually(|| UnixStream::connect(&write).ok()).expect("a keeper");
    let define = Question::Define(vec![LabelledSeries {
        labels: labels.clone(),
        step: 10,
        heartbeat: 60,
        start: begun_s,
        columns: vec![(b"value".to_vec(), b"DDERIVE".to_vec())],
    }]);
    let values = Question::Write(vec![LabelledValues {
        labels,
        stamps_ms: vec![time * 1000 + 125],
        cells: vec![round as f64 / 3.0],
    }]);
    for question in [define, values] {
        assert_eq!(answer_of(&mut stream, &question), Answer::Done);
    }
}

/// The values of rounds as a tail has them.
fn expected(begun_s: i64, rounds: i64) -> BTreeMap<String, Vec<(i64, f64)>> {
    let of = |value: &dyn Fn(i64) -> f64, ms: i64| -> Vec<(i64, f64)> {
        let rounds = 0..rounds;
        rounds
            .map(|n| ((begun_s + 10 * n) * 1000 + ms, value(n)))
            .collect()
    };
    let series = [
        (
            r#"Counter {__name__="rrd",ds="x",path="a"}"#,
            of(&|n| 100.0 + n as f64, 0),
        ),
        (
            r#"Gauge {__name__="rrd",ds="y",path="a"}"#,
            of(&|n| n as f64 + 0.5, 0),
        ),
        (
            r#"Gauge {__name__="rrd",ds="value",path="web1/load/gauge-x"}"#,
            of(&|n| n as f64, 0),
        ),
        (
            r#"Counter {__name__="m_total",of="test"}"#,
            of(&|n| n as f64 / 3.0, 125),
        ),
    ];
    series
        .into_iter()
        .map(|(name, values)| (name.to_string(), values))
        .collect()
}

#[test]
fn a_tail_gets_all_that_comes_through_a_kill_of_the_keeper() {
    let scratch = Scratch::new("serve_tail");
    let (dir, port) = (scratch.path("data"), free_port());
    let config = format!(
        "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = [\"127.0.0.1:{port}\"]\n[collectd]\ntrusted = [\"127.0.0.0/8\"]\n"
    );
    let mut served = Served::configured(&scratch, &dir, &config);
    served.address();
    served.has_said("collectd's datagrams on");
    let write = dir.join("keeper-write.sock");
    let begun_s = now_s() / 10 * 10 - 600;
    let mut tail = Tail::new(write.clone(), "test", TailFrom::Now);
    let mut kept = Kept::default();
    let first = eventually(|| tail.read(Duration::ZERO, 10, &mut kept).ok()).expect("an answer");
    tail.confirm(first.position);
    let mut printed = Command::new(kymo());
    printed
        .args(["series", "tail", "m_total", "--data"])
        .arg(&dir);
    let printed = printed.env("TZ", "UTC").stdout(Stdio::piped()).spawn();
    let mut printed = Running(printed.expect("kymo runs"));
    let mut lines = BufReader::new(printed.0.stdout.take().expect("its stdout"));
    std::thread::sleep(Duration::from_secs(1));

    let rounds = 4;
    for round in 0..rounds {
        feed(&dir, port, begun_s, round);
        if round == 1 {
            // A datagram that the keeper is just taking may be lost with it.
            let has_taken = || {
                let mut client = Client::unix(&dir.join("rrdcached.sock")).ok()?;
                let reply = client.text("LAST web1/load/gauge-x.rrd");
                reply.ends_with(&(begun_s + 10).to_string()).then_some(())
            };
            eventually(has_taken).expect("a value of collectd");
            let mut line = String::new();
            lines.read_line(&mut line).expect("a line");
            assert!(line.ends_with(" m_total{of=\"test\"} 0\n"), "{line}");
            let keeper = served.child("keeper").expect("a keeper");
            kill("-KILL", keeper);
            served.next_child("keeper", keeper);
        }
    }
    let wanted = expected(begun_s, rounds);
    let mut end = None;
    eventually(|| {
        let answer = tail.read(Duration::from_secs(1), 7, &mut kept).ok()?;
        tail.confirm(answer.position);
        end = Some(answer);
        kept.0
            .values_mut()
            .for_each(|values| values.dedup_by_key(|(t_ms, _)| *t_ms));
        (kept.0 == wanted).then_some(())
    })
    .unwrap_or_else(|| panic!("{:#?}\n{wanted:#?}", kept.0));
    let end = end.expect("an answer");
    assert_eq!((end.missed, end.lost_bytes), (0, 0));

    // The next question tells the keeper what was confirmed.
    tail.read(Duration::ZERO, 7, &mut kept).expect("an answer");

    // The keeper goes on where the tail has got to, and forgets it on demand.
    let mut again = Tail::new(write.clone(), "test", TailFrom::Acknowledged);
    let mut after = Kept::default();
    again
        .read(Duration::ZERO, 1000, &mut after)
        .expect("an answer");
    assert!(after.0.is_empty(), "{:?}", after.0);
    assert_eq!(
        ask_at(&write, &Question::EndTail("test".into())),
        Answer::Done
    );
    let refused = ask_at(&dir.join("keeper.sock"), &Question::EndTail("test".into()));
    assert!(matches!(refused, Answer::Refused(_)), "{refused:?}");

    // The command ended with the keeper.
    assert!(!printed.0.wait().expect("its end").success());
}
