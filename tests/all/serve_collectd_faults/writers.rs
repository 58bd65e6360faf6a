//! A series has one writer: a better known sender takes over, others are refused and counted. Also users that may send
//! for some hosts only.

use kymo_tests::free_port;
use kymo_tests::rrd_client::Client;
use kymo_wire::collectd::sign;

use super::hub::{Hub, eventually};
use super::packets::{SLOW_S, gauge, name, now, sender, slow_gauge, slow_time};

fn slow_signed(host: &str, time: u64) -> Vec<u8> {
    let mut out = Vec::new();
    sign(&mut out, b"user0", b"foo", &slow_gauge(host, time, 1.0));
    out
}

fn signed(host: &str, time: u64) -> Vec<u8> {
    let mut out = Vec::new();
    sign(&mut out, b"user0", b"foo", &gauge(host, time, 1.0));
    out
}

#[test]
fn a_series_has_one_writer_and_who_is_better_known_takes_over() {
    let mut hub = Hub::start("writers", "[collectd]\nauth_file = \"AUTH\"\n");
    let [first, second] = ["127.0.0.1", "127.0.0.2"].map(|address| sender(address, hub.port));
    let series = name("web");
    let time = slow_time(10 * SLOW_S);
    first.send(&slow_gauge("web", time, 1.0)).expect("sent");
    hub.ends_at(&series, time);
    // A sender at another address may write its own series, but not this one.
    second
        .send(&slow_gauge("web", time + SLOW_S, 2.0))
        .expect("sent");
    second.send(&slow_gauge("db", time, 2.0)).expect("sent");
    hub.ends_at(&name("db"), time);
    assert_eq!(hub.last(&series), Some(time));
    // A process of this machine, whose user the kernel knows.
    let update = |stamp: u64| {
        let mut client = hub.client();
        client.text(&format!("UPDATE {series} {stamp}:3"))
    };
    let said = update(time + 2 * SLOW_S);
    assert!(said.starts_with("0 "), "{said}");
    first
        .send(&slow_gauge("web", time + 3 * SLOW_S, 1.0))
        .expect("sent");
    // A sender that signs.
    eventually("the signed value", || {
        first
            .send(&slow_signed("web", time + 4 * SLOW_S))
            .expect("sent");
        (hub.last(&series) == Some(time + 4 * SLOW_S)).then_some(())
    });
    let said = update(time + 5 * SLOW_S);
    assert_eq!(
        said,
        "-1 illegal attempt to update what another client writes"
    );
    hub.end();
    let refused = hub.reported("values of series that another sender writes");
    assert_eq!(refused, 2, "{:#?}", hub.served.said);
}

#[test]
fn clients_change_no_series_of_a_sender_that_is_better_known() {
    let hub = Hub::start("writers-rank", "[collectd]\nauth_file = \"AUTH\"\n");
    let socket = sender("127.0.0.1", hub.port);
    let (series, time) = (name("web"), slow_time(10 * SLOW_S));
    socket.send(&slow_signed("web", time)).expect("sent");
    hub.ends_at(&series, time);
    let say = |line: String| hub.client().text(&line);
    for (verb, rest) in [
        ("UPDATE", format!(" {}:3", time + 2 * SLOW_S)),
        ("FORGET", String::new()),
        ("SUSPEND", String::new()),
        ("RESUME", String::new()),
        ("TUNE", " --heartbeat value:99".into()),
        ("CREATE", " -s 10 DS:x:GAUGE:20:U:U RRA:LAST:0.5:1:5".into()),
    ] {
        let said = say(format!("{verb} {series}{rest}"));
        let wanted = "-1 illegal attempt to update what another client writes";
        assert_eq!(said, wanted, "{verb}");
    }
    let said = say(format!("INFO {series}"));
    assert!(!said.starts_with('-') && !said.contains("ds[x]"), "{said}");
}

#[test]
fn clients_share_series_unless_each_is_a_writer_of_its_own() {
    const HELD: &str = "-1 illegal attempt to update what another client writes";
    for (one_writer, third) in [(false, "0 errors, enqueued 1 value(s)."), (true, HELD)] {
        let tcp = free_port();
        let listen = format!("rrdcached = [\"unix:SOCKET\", \"127.0.0.1:{tcp}\"]\n");
        let config = format!("{listen}[rrdcached]\none_writer = {one_writer}\n");
        let hub = Hub::start(&format!("share-{one_writer}"), &config);
        let far = || Client::tcp(tcp).expect("a client");
        let said =
            far().text("CREATE a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:U:U RRA:LAST:0.5:1:5");
        assert_eq!(said, "0 RRD created OK");
        let said = [
            far().text("UPDATE a.rrd 1000000010:1"),
            hub.client().text("UPDATE a.rrd 1000000020:1"),
            far().text("UPDATE a.rrd 1000000030:1"),
        ];
        let taken = "0 errors, enqueued 1 value(s).";
        assert_eq!(said, [taken, taken, third], "one_writer = {one_writer}");
    }
}

#[test]
fn a_writer_that_is_silent_for_two_intervals_has_lost_its_series() {
    let hub = Hub::start("silent-writer", "[collectd]\nstep = 1\n");
    let [first, second] = ["127.0.0.1", "127.0.0.2"].map(|address| sender(address, hub.port));
    let mut time = now() - 1000;
    let last = || hub.client().text(&format!("LAST {}", name("web")));
    first.send(&gauge("web", time, 1.0)).expect("sent");
    eventually("the first value", || {
        last().ends_with(&time.to_string()).then_some(())
    });
    // The second sender is refused until the first one has been silent for two seconds.
    eventually("the second sender's values", || {
        time += 1;
        second.send(&gauge("web", time, 2.0)).expect("sent");
        last().ends_with(&time.to_string()).then_some(())
    });
}

#[test]
fn a_user_sends_for_its_hosts_alone() {
    let config = "[collectd]\nsecurity = \"sign\"\nauth_file = \"AUTH\"\n[users.user0]\nhosts = [\"web-?\", \"db*\"]\n";
    let mut hub = Hub::start("users-hosts", config);
    let socket = sender("127.0.0.1", hub.port);
    let time = now() - 1000;
    for host in ["web-1", "web-10", "mail", "db", "db.example", "xdb"] {
        socket.send(&signed(host, time)).expect("sent");
    }
    hub.ends_at(&name("db.example"), time);
    hub.ends_at(&name("db"), time);
    let mut names = ["db", "db.example", "web-1"].map(name);
    names.sort();
    assert_eq!(hub.names(), names);
    hub.end();
    let refused = hub.reported("values of hosts that their user may not send for");
    assert_eq!(refused, 3);
}
