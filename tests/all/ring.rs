//! A distributed engine behind `kymo serve`: a ring of Thanos gets the values of 290 hosts by `[[forward]]`, and has all of
//! them while receivers die and come back. `make ring` builds Thanos and runs these tests.

mod hosts;
mod thanos;

use std::collections::BTreeMap;

use kymo_tests::served::{Served, ask, eventually};
use kymo_tests::{Scratch, free_port};
use serde_json::Value;

use self::hosts::{Hosts, METRIC, Samples};
use self::thanos::Ring;
use crate::guide_outgrow::{section, typed};
use crate::prometheus_api::{escaped, now_s};
use crate::serve_forwarded::json;

/// A `kymo serve` that takes values of collectds and forwards them to a ring.
struct RingHub {
    served: Served,
    address: String,
    collectd: String,
    scratch: Scratch,
}

impl RingHub {
    fn start(url: &str) -> RingHub {
        RingHub::with(&format!(
            "[[forward]]\nname = \"ring\"\nurl = \"{url}\"\nmatch = [\"{METRIC}\"]\nlabels = {{ site = \"here\" }}\n"
        ))
    }

    /// A hub that forwards as these tables say.
    fn with(tables: &str) -> RingHub {
        let scratch = Scratch::new("ring-hub");
        let collectd = format!("127.0.0.1:{}", free_port());
        let config = format!(
            "user = \"\"\n[listen]\ncollectd = [\"{collectd}\"]\n[collectd]\ntrusted = [\"127.0.0.0/8\"]\n{tables}"
        );
        let mut served = Served::configured(&scratch, &scratch.path("data"), &config);
        let address = served.address();
        served.has_said("collectd's datagrams on");
        let tail = || {
            let (_, body) = ask(&address, "GET", "/kymo/v1/status", "", "")?;
            let status: Value = serde_json::from_str(&body).ok()?;
            (status["tails"].as_array()?.len() == 1).then_some(())
        };
        eventually(tail).expect("a tail");
        RingHub {
            served,
            address,
            collectd,
            scratch,
        }
    }

    /// A counter of the process that forwards.
    fn own(&self, metric: &str) -> Option<f64> {
        number(&self.address, metric, "")
    }
}

/// The value of an expression with one series, if all parts of the answer are there.
fn number(address: &str, expr: &str, more: &str) -> Option<f64> {
    let answer = json(address, &format!("query?query={}{more}", escaped(expr)))?;
    let value = answer["data"]["result"][0]["value"][1].as_str()?;
    value.parse().ok()
}

/// All samples that the receivers have, of all replicas together.
fn samples(ring: &Ring) -> Option<Samples> {
    let path = format!(
        "query?dedup=false&query={}",
        escaped(&format!("{METRIC}[20m]"))
    );
    let answer = json(&ring.querier, &path)?;
    let mut all = Samples::new();
    for of in answer["data"]["result"].as_array()? {
        let label = |name: &str| of["metric"][name].as_str();
        assert_eq!(label("site"), Some("here"));
        let series: &mut BTreeMap<i64, f64> = all.entry(label("path")?.to_string()).or_default();
        for sample in of["values"].as_array()? {
            let time = (sample[0].as_f64()? * 1000.0).round() as i64;
            series.insert(time, sample[1].as_str()?.parse().ok()?);
        }
    }
    Some(all)
}

/// Waits until the querier has all that the hosts have sent: the newest round by an expression, and each sample of all rounds.
fn has_all(ring: &Ring, hosts: &Hosts) {
    let (time, sum) = hosts.newest();
    let at = format!("&time={time}");
    let newest = || {
        let found = number(&ring.querier, &format!("count({METRIC})"), &at)?;
        let total = number(&ring.querier, &format!("sum({METRIC})"), &at)?;
        (found == Hosts::series() as f64 && total == sum).then_some(())
    };
    eventually(newest).unwrap_or_else(|| {
        let path = format!("query?query={}{at}", escaped(&format!("count({METRIC})")));
        panic!("{:?}, not {sum}", json(&ring.querier, &path))
    });
    let all = || (samples(ring)? == hosts.sent).then_some(());
    eventually(all).unwrap_or_else(|| {
        let found = samples(ring).unwrap_or_default();
        let count = |of: &Samples| of.values().map(BTreeMap::len).sum::<usize>();
        panic!("{} samples, not {}", count(&found), count(&hosts.sent))
    });
}

/// Three replicas: two of three receivers are enough to write and to read. One dies and comes back without what came
/// meanwhile; another one dies, and all is there still.
#[test]
#[ignore = "make ring builds Thanos"]
fn three_replicas_take_and_have_all_while_a_receiver_is_dead() {
    let mut ring = Ring::start(3);
    let hub = RingHub::start(&ring.url);
    let mut hosts = Hosts::new(&hub.collectd, now_s());
    hosts.send_round();
    has_all(&ring, &hosts);
    ring.dies(0);
    hosts.send_round();
    hosts.send_round();
    has_all(&ring, &hosts);
    ring.begins(0);
    hosts.send_round();
    has_all(&ring, &hosts);
    ring.dies(1);
    hosts.send_round();
    has_all(&ring, &hosts);
    refuses_none(&hub);
    another_kymo_has_all(&ring, &hosts);
}

/// A kymo without values of its own has those of its upstream, the querier.
fn another_kymo_has_all(ring: &Ring, hosts: &Hosts) {
    let scratch = Scratch::new("ring-upstream");
    let config = format!(
        "user = \"\"\n[listen]\ncollectd = []\n[query]\nupstream = \"http://{}\"\ndrop_labels = [\"tenant_id\"]\n",
        ring.querier
    );
    let mut served = Served::configured(&scratch, &scratch.path("data"), &config);
    let address = served.address();
    let (time, sum) = hosts.newest();
    let expected = [Some(Hosts::series() as f64), Some(sum)];
    let numbers = || {
        let at = format!("&time={time}");
        let of = |function: &str| number(&address, &format!("{function}({METRIC})"), &at);
        [of("count"), of("sum")]
    };
    let all = || (numbers() == expected).then_some(());
    eventually(all).unwrap_or_else(|| panic!("{:?}, not {expected:?}", numbers()));
}

/// Two replicas of three receivers: one of the two is enough, so that all is taken and is there while a receiver is dead.
#[test]
#[ignore = "make ring builds Thanos"]
fn two_replicas_take_and_have_all_while_a_receiver_is_dead() {
    let mut ring = Ring::start(2);
    let hub = RingHub::start(&ring.url);
    let mut hosts = Hosts::new(&hub.collectd, now_s());
    hosts.send_round();
    has_all(&ring, &hosts);
    ring.dies(2);
    has_all(&ring, &hosts);
    hosts.send_round();
    has_all(&ring, &hosts);
    ring.begins(2);
    hosts.send_round();
    has_all(&ring, &hosts);
    refuses_none(&hub);
}

/// Without a replica the router refuses requests while a receiver is dead: their values wait in kymo's journal.
#[test]
#[ignore = "make ring builds Thanos"]
fn values_wait_for_a_receiver_that_has_no_replica() {
    let mut ring = Ring::start(1);
    let mut hub = RingHub::start(&ring.url);
    let mut hosts = Hosts::new(&hub.collectd, now_s());
    hosts.send_round();
    has_all(&ring, &hosts);
    ring.dies(2);
    hosts.send_round();
    hub.served.hears("cannot forward to ring: it answers 503");
    ring.begins(2);
    has_all(&ring, &hosts);
    refuses_none(&hub);
}

/// Queriers of Thanos have kymos as stores, by its sidecar: their one-second samples, each with its labels. One that is away is
/// named, and costs its own series.
#[test]
#[ignore = "make ring builds Thanos"]
fn a_querier_asks_kymos() {
    let scratch = Scratch::new("ring-sidecars");
    let start = |site: &str| {
        let config = format!(
            "user = \"\"\n[listen]\ncollectd = []\n[query]\nexternal_labels = {{ site = \"{site}\" }}\n"
        );
        let own = Scratch::new("ring-kymo");
        let mut served = Served::configured(&own, &own.path("data"), &config);
        let url = format!("http://{}", served.address());
        let (store, sidecar) = thanos::sidecar(&scratch, site, &url);
        (served, store, sidecar, own)
    };
    let (here, there) = (start("here"), start("there"));
    let (querier, _running) = thanos::querier(&scratch, &[&here.1, &there.1]);
    let sites = |expr: &str| -> Option<(Vec<String>, bool)> {
        let answer = json(&querier, &format!("query?query={}", escaped(expr)))?;
        let found = answer["data"]["result"].as_array()?.iter();
        let mut sites: Vec<String> = found
            .filter_map(|of| Some(of["metric"]["site"].as_str()?.to_string()))
            .collect();
        sites.sort();
        Some((sites, !answer["warnings"].is_null()))
    };
    let both = (vec!["here".to_string(), "there".to_string()], false);
    let each_second = "count_over_time(node_load1{job=\"node\"}[10s]) >= 9";
    let all = || sites(each_second).filter(|found| *found == both);
    eventually(all).unwrap_or_else(|| panic!("{:?}", sites("node_load1")));
    let jobs = json(&querier, "label/job/values").expect("values");
    assert!(
        jobs["data"]
            .as_array()
            .is_some_and(|jobs| jobs.contains(&"node".into())),
        "{jobs}"
    );
    drop(there.0);
    let partial = (vec!["here".to_string()], true);
    let one = || sites("node_load1{job=\"node\"}").filter(|found| *found == partial);
    eventually(one).unwrap_or_else(|| panic!("{:?}", sites("node_load1")));
}

/// The guide's configuration and command for a ring: the ring has all, and the hub shows each series once.
#[test]
#[ignore = "make ring builds Thanos"]
fn the_guides_ring_has_what_hosts_send() {
    let ring = Ring::start(3);
    let places = [
        ("http://127.0.0.1:19291/api/v1/receive", ring.url.clone()),
        ("http://127.0.0.1:10904", format!("http://{}", ring.querier)),
    ];
    let section = section("A ring", &places);
    let hub = RingHub::with(&section.configurations.concat());
    let mut hosts = Hosts::new(&hub.collectd, now_s());
    hosts.send_round();
    hosts.send_round();
    let (time, sum) = hosts.newest();
    let at = format!("&time={time}");
    let (of_hosts, count) = ("rrd{path=~\"host-.*\"}", Hosts::series());
    let all = || {
        let found = number(&ring.querier, &format!("sum({of_hosts})"), &at)?;
        (found == sum).then_some(())
    };
    eventually(all).expect("the ring has all");
    let [command] = &section.commands[..] else {
        panic!("{:?}", section.commands);
    };
    let command = command.replace("rrd", of_hosts);
    let answer = typed(
        &format!("{command} --time {time}"),
        &hub.scratch.path("data"),
    );
    assert!(answer.contains(&count.to_string()), "{answer}, not {count}");
}

/// The documents' commands of Thanos have switches that it has.
#[test]
#[ignore = "make ring builds Thanos"]
fn documents_name_switches_of_thanos() {
    let texts = [
        include_str!("../../docs/guides/forward.md"),
        include_str!("../../docs/prometheus.md"),
    ];
    let lines = texts.iter().flat_map(|text| text.lines());
    let commands = lines.filter_map(|line| line.strip_prefix("    thanos "));
    let mut count = 0;
    for line in commands {
        let (command, switches) = line.split_once(' ').expect("a command");
        let help = thanos::help(command);
        for switch in switches.split(" --") {
            let name = switch.trim_start_matches("--").split('=').next();
            let name = format!("--{}", name.expect("a name"));
            assert!(help.contains(&name), "thanos {command} {name}");
        }
        count += 1;
    }
    assert_eq!(count, 5);
}

fn refuses_none(hub: &RingHub) {
    for metric in [
        "kymo_forward_refused_samples_total",
        "kymo_forward_missed_values_total",
    ] {
        let none = || (hub.own(metric)? == 0.0).then_some(());
        eventually(none).unwrap_or_else(|| panic!("{metric}: {:#?}", hub.served.said));
    }
}
