//! Senders of collectd's protocol and their notifications in the answers
//! of `kymo serve`, byte for byte: the tests build packets by hand.

use std::net::UdpSocket;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_tests::kymo;
use kymo_tests::served::{eventually, get, kill};
use serde_json::Value;

use crate::serve_collectd::{Hub, odd_gauge, text_part, time_part};

/// A trusted network, whose new names count at once.
const TRUSTED: &str = "trusted = [\"127.0.0.0/8\"]\n";

/// Names and text of a hostile notification.
const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{1b}[2J";

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a clock").as_secs()
}

/// A sender with its own address.
fn sender(hub: &Hub, address: &str) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).expect("a socket");
    socket.connect(("127.0.0.1", hub.port)).expect("an address");
    socket
}

fn notification(host: &str, time: u64, severity: u8, message: &str) -> Vec<u8> {
    let length = (message.len() + 5) as u16;
    [
        text_part(0, host),
        time_part(time),
        vec![1, 1, 0, 12, 0, 0, 0, 0, 0, 0, 0, severity],
        text_part(2, "df"),
        text_part(3, "root"),
        vec![1, 0],
        length.to_be_bytes().to_vec(),
        message.as_bytes().to_vec(),
        vec![0],
    ]
    .concat()
}

/// The item of a list whose `key` is `wanted`; none while the keeper is not ready and the answer has no list.
fn picked(list: &Value, key: &str, wanted: &str) -> Option<Value> {
    let list = list.as_array()?;
    list.iter().find(|each| each[key] == wanted).cloned()
}

#[test]
fn what_was_sent_is_what_is_shown() {
    let hub = Hub::start("senders-counts", TRUSTED);
    let (one, late) = (sender(&hub, "127.0.0.1"), sender(&hub, "127.0.0.2"));
    let start = now_s();
    for n in 0..30 {
        let sent = one.send(&odd_gauge("good", start - 300 + n * 10));
        sent.expect("sent");
    }
    let wrong = [
        odd_gauge("good", start - 300),
        odd_gauge("good", start + 86_400),
        odd_gauge("good", start)[..20].to_vec(),
        odd_gauge("", start),
        notification("good", start, 2, "is 3"),
        notification("good", start + 86_400, 2, "is 3"),
    ];
    for packet in &wrong {
        one.send(packet).expect("sent");
    }
    // This sender's clock is an hour behind.
    late.send(&odd_gauge("late", now_s() - 3600)).expect("sent");

    let shown = || {
        let answer = get(&hub.address, "/kymo/v1/hosts", "");
        let senders = &answer["sockets"][0]["senders"];
        let (one, late) = (
            picked(senders, "address", "127.0.0.1")?,
            picked(senders, "address", "127.0.0.2")?,
        );
        let is_whole = one["datagrams"] == 36 && late["datagrams"] == 1;
        is_whole.then_some((answer, one, late))
    };
    let (answer, one, late) = eventually(shown).expect("all that was sent");
    let socket = &answer["sockets"][0];
    assert_eq!(socket["name"], format!("127.0.0.1:{}", hub.port));
    assert_eq!(socket["lost"], 0);
    for (count, want) in [
        ("values", 30),
        ("late", 1),
        ("future", 2),
        ("bad", 1),
        ("unfit", 1),
        ("notifications", 1),
        ("new", 1),
        ("held", 0),
        ("refused", 0),
        ("mismatched", 0),
        ("foreign", 0),
        ("replayed", 0),
        ("others", 0),
        ("unwritten", 0),
    ] {
        assert_eq!(one[count], want, "{count}: {one}");
    }
    assert_eq!((&late["values"], &late["new"]), (&1.into(), &1.into()));
    let host = picked(&answer["hosts"], "host", "late").expect("a host");
    for account in [&late, &host] {
        let offset = account["offset"].as_f64().expect("an offset");
        assert!((3599.0..3660.0).contains(&offset), "{account}");
    }
    assert_eq!(host["address"], "127.0.0.2");
    let good = picked(&answer["hosts"], "host", "good").expect("a host");
    assert_eq!(
        (&good["values"], &good["address"]),
        (&30.into(), &"127.0.0.1".into())
    );
    let (now, seen) = (answer["now"].as_f64(), good["seen"].as_f64());
    assert!(seen <= now && seen >= Some(start as f64 - 1.0), "{good}");
    // The sender may be too new to have a rate.
    assert!(good["rate"].is_null() || good["rate"].is_number(), "{good}");
}

/// Kind and text of each event of one host in an answer.
fn marks(answer: &Value, host: &str) -> Vec<(String, String)> {
    let marks = answer["marks"].as_array().expect("marks");
    let text = |value: &Value| value.as_str().expect("a text").to_string();
    let of_host = marks.iter().filter(|mark| mark["host"] == host);
    of_host
        .map(|mark| (text(&mark["kind"]), text(&mark["text"])))
        .collect()
}

#[test]
fn notifications_are_events_and_outlive_the_keeper() {
    let hub = Hub::start("senders-events", TRUSTED);
    let (socket, now) = (sender(&hub, "127.0.0.1"), now_s());
    for packet in [
        odd_gauge("web1", now - 10),
        odd_gauge("web2", now - 10),
        notification("web1", now - 60, 1, HOSTILE),
        notification("web1", now - 50, 4, "well again"),
        notification("web2", now - 40, 2, "is 3"),
        notification("", now - 30, 2, "of no host"),
    ] {
        socket.send(&packet).expect("sent");
    }
    let shown = r"web1/df-root: <img src=x onerror=alert(1)>\x1b[2J".to_string();
    let web1 = [
        ("failure".to_string(), shown),
        ("okay".into(), "web1/df-root: well again".into()),
    ];
    let web2 = [("warning".to_string(), "web2/df-root: is 3".to_string())];
    let has_all = || {
        let answer = get(&hub.address, "/kymo/v1/events?from=-3600", "");
        let has_last = answer.to_string().contains("of no host");
        (has_last && marks(&answer, "web1") == web1 && marks(&answer, "web2") == web2)
            .then_some(answer)
    };
    eventually(has_all).expect("all of them");
    for _ in 0..2 {
        let keeper = hub.served.child("keeper").expect("a keeper");
        kill("-KILL", keeper);
        hub.served.next_child("keeper", keeper);
        eventually(has_all).expect("all of them after a kill");
    }
    // Notifications are on the graphs of their hosts, and on no others.
    for (field, ones, twos) in [
        ("@web1/odd/gauge.rrd:value", &web1[..], &[][..]),
        ("@web2/odd/gauge.rrd:value", &[], &web2),
        (
            "@web1/odd/gauge.rrd:value,@web2/odd/gauge.rrd:value,cpu.user",
            &web1,
            &web2,
        ),
        ("cpu.user", &[], &[]),
    ] {
        let path = format!("/kymo/v1/series?fields={field}&from=-3600");
        let answer = get(&hub.address, &path, "");
        assert_eq!(marks(&answer, "web1"), ones, "{field}");
        assert_eq!(marks(&answer, "web2"), twos, "{field}");
    }
    // Events before the range are left out.
    let from = now - 45;
    let answer = get(&hub.address, &format!("/kymo/v1/events?from={from}"), "");
    assert_eq!(marks(&answer, "web1"), []);
    assert_eq!(marks(&answer, "web2"), web2);
}

/// One sender sent more notifications than the keeper keeps, and all those of another host were lost.
#[test]
fn a_flood_of_notifications_displaces_none_of_others() {
    let hub = Hub::start("senders-flood", "");
    let (good, evil) = (sender(&hub, "127.0.0.1"), sender(&hub, "127.0.0.2"));
    let now = now_s();
    for n in 0..20 {
        let message = format!("number {n}");
        good.send(&notification("good", now - 100 + n, 2, &message))
            .expect("sent");
    }
    let of_good = || {
        let answer = get(&hub.address, "/kymo/v1/events?from=-3600", "");
        marks(&answer, "good").len()
    };
    eventually(|| (of_good() == 20).then_some(())).expect("all of them");
    // The keeper accepts at most 1,024 in a second.
    for second in 0..6 {
        for n in 0..1100 {
            let (name, message) = (format!("evil{}", n % 7), format!("{second} {n}"));
            evil.send(&notification(&name, now, 1, &message))
                .expect("sent");
        }
        std::thread::sleep(std::time::Duration::from_millis(1050));
    }
    let count_of_evil = || {
        let answer = get(&hub.address, "/kymo/v1/hosts", "");
        let senders = &answer["sockets"][0]["senders"];
        let evil = picked(senders, "address", "127.0.0.2")?;
        (evil["notifications"].as_u64() > Some(5000)).then_some(())
    };
    eventually(count_of_evil).expect("the flood came");
    assert_eq!(of_good(), 20);
    let keeper = hub.served.child("keeper").expect("a keeper");
    kill("-KILL", keeper);
    hub.served.next_child("keeper", keeper);
    eventually(|| (of_good() == 20).then_some(())).expect("all of them after a kill");
}

/// Notifications on the terminal.
#[test]
fn the_command_line_prints_notifications() {
    let hub = Hub::start("senders-words", TRUSTED);
    let run = |words: &[&str]| {
        let mut command = Command::new(kymo());
        command.args(["series", "events"]).args(words);
        let output = command
            .arg("--data")
            .arg(&hub.dir)
            .env("TZ", "UTC")
            .output();
        let output = output.expect("kymo runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let none = (
        Some(1),
        String::new(),
        "kymo: there are no such events\n".into(),
    );
    assert_eq!(run(&[]), none);
    let socket = sender(&hub, "127.0.0.1");
    for packet in [
        notification("web1", 1_700_000_000, 1, HOSTILE),
        notification("web2", 1_700_000_010, 4, "well"),
    ] {
        socket.send(&packet).expect("sent");
    }
    let range = ["--from", "1700000000", "--thru", "1700000010"];
    let both = eventually(|| {
        let said = run(&range);
        (said.1.lines().count() == 2).then_some(said)
    });
    let first =
        r"2023-11-14T22:13:20+00:00 failure web1/df-root: <img src=x onerror=alert(1)>\x1b[2J";
    let second = "2023-11-14T22:13:30+00:00 okay    web2/df-root: well";
    let want = format!("{first}\n{second}\n");
    assert_eq!(both, Some((Some(0), want, String::new())));
    let (_, one, _) = run(&[&["web2"], &range[..]].concat());
    assert_eq!(one, format!("{second}\n"));
    assert_eq!(run(&["web3", "--from", "1700000000"]).0, Some(1));
}
