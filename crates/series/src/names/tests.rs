use super::*;

type Tag = (&'static [u8], &'static [u8]);

fn shown(set: Result<Labels, LabelError>) -> String {
    String::from_utf8(set.unwrap().text().to_vec()).unwrap()
}

fn of_path(path: &'static str) -> Collectd<'static> {
    collectd_of_path(path.as_bytes()).unwrap()
}

/// Names of the series of each source.
#[test]
fn names_of_all_sources() {
    let port = Target {
        name: b"sw1_3",
        device: b"sw1",
        title: b"Uplink",
        interface: Some((b"3", b"Gi0/3")),
    };
    let command = Target {
        name: b"load",
        ..Target::default()
    };
    let tags: [Tag; 2] = [(b"env", b"prod"), (b"a.b", b"1")];
    let cases: Vec<(Result<Labels, LabelError>, &str)> = vec![
        (
            machine(
                b"web1",
                "node_cpu_seconds_total",
                [("cpu", &b"0"[..]), ("mode", b"idle")],
            ),
            r#"{__name__="node_cpu_seconds_total",cpu="0",instance="web1",job="node",mode="idle"}"#,
        ),
        (
            machine(b"web1", "kymo_samples_total", []),
            r#"{__name__="kymo_samples_total",instance="web1",job="kymo"}"#,
        ),
        (
            collectd(&of_path("web1/cpu-0/cpu-idle.rrd"), b"value", true),
            r#"{__name__="collectd_cpu_total",cpu="0",instance="web1",type="idle"}"#,
        ),
        (
            collectd(&of_path("web1/memory/memory-used"), b"value", false),
            r#"{__name__="collectd_memory",instance="web1",memory="used"}"#,
        ),
        (
            collectd(&of_path("web1/interface-eth0/if_octets"), b"rx", true),
            r#"{__name__="collectd_interface_if_octets_rx_total",instance="web1",interface="eth0"}"#,
        ),
        (
            collectd(&of_path("web1/load/load"), b"shortterm", false),
            r#"{__name__="collectd_load_shortterm",instance="web1"}"#,
        ),
        (
            collectd(&of_path("web1/type-a/gauge-b"), b"value", false),
            r#"{__name__="collectd_type_gauge",exported_type="b",instance="web1",type="a"}"#,
        ),
        (
            collectd(&of_path("web1/instance-a/x y"), b"value", false),
            r#"{__name__="collectd_instance_x_y",exported_instance="a",instance="web1"}"#,
        ),
        (
            rrd(b"net/core-1/port.rrd", b"ds0"),
            r#"{__name__="rrd",ds="ds0",path="net/core-1/port"}"#,
        ),
        (
            rrd(b"a\xff\n.rrd", b"ds0"),
            r#"{__name__="rrd",ds="ds0",path="a\\xff\\x0a"}"#,
        ),
        (
            target(&port, Direction::In, true),
            r#"{__name__="mrtg_in_total",device="sw1",ifIndex="3",ifName="Gi0/3",job="poll",target="sw1_3",title="Uplink"}"#,
        ),
        (
            target_alias(&port, Direction::Out).unwrap(),
            r#"{__name__="ifHCOutOctets",device="sw1",ifIndex="3",ifName="Gi0/3",job="poll",target="sw1_3",title="Uplink"}"#,
        ),
        (
            target(&command, Direction::Out, false),
            r#"{__name__="mrtg_out",job="poll",target="load"}"#,
        ),
        (
            program(
                b"commands_total",
                b"example",
                b"ada",
                &[(b"kind", b"read"), (b"job", b"x")],
            ),
            r#"{__name__="commands_total",exported_job="x",job="programs",kind="read",publisher="example",user="ada"}"#,
        ),
        (
            program(b"depth", b"queue", b"", &[]),
            r#"{__name__="kymo_program_depth",job="programs",publisher="queue"}"#,
        ),
        (
            postgres(b"main", "xact_commit", Some(("database", b"shop"))),
            r#"{__name__="pg_stat_database_xact_commit",datname="shop",job="postgres",server="main"}"#,
        ),
        (
            postgres(b"main", "locks_waiting", None),
            r#"{__name__="kymo_pg_locks_waiting",job="postgres",server="main"}"#,
        ),
        (
            statsd(b"web.hits/s", "_total", None, &tags),
            r#"{__name__="web_hits_s_total",a_b="1",env="prod",job="statsd"}"#,
        ),
        (
            statsd(b"hits_total", "_total", None, &[]),
            r#"{__name__="hits_total",job="statsd"}"#,
        ),
        (
            statsd(b"5xx", "_bucket", Some("0.25"), &[]),
            r#"{__name__="_5xx_bucket",job="statsd",le="0.25"}"#,
        ),
        (
            graphite(b"servers.web-1.load", &[(b"dc", b"eu")]),
            r#"{__name__="servers_web_1_load",dc="eu",job="graphite",path="servers.web-1.load"}"#,
        ),
        (graphite(b"", &[]), r#"{__name__="_",job="graphite"}"#),
    ];
    for (set, name) in cases {
        assert_eq!(shown(set), name);
    }
}

#[test]
fn paths_of_collectd() {
    for path in ["web1/load.rrd", "a/b/c/d", "/b/c", "a/-x/c", "a/b/", "load"] {
        assert!(collectd_of_path(path.as_bytes()).is_none(), "{path}");
    }
    assert!(target_alias(&Target::default(), Direction::In).is_none());
}

#[test]
fn names_that_metrics_may_have() {
    for (text, name) in [
        ("up", "up"),
        ("a:b", "a:b"),
        ("1a", "_1a"),
        ("a b.c-d", "a_b_c_d"),
        ("\u{e4}", "_"),
        ("", "_"),
    ] {
        assert_eq!(metric_name(text.as_bytes()), name);
        assert!(is_metric(name), "{name}");
        assert_eq!(is_metric(text), text == name, "{text}");
    }
}

#[test]
fn names_tell_kinds() {
    for (name, kind) in [
        ("a_total", Kind::Counter),
        ("a_bucket", Kind::Histogram),
        ("a_count", Kind::Histogram),
        ("a", Kind::Untyped),
    ] {
        assert_eq!(kind_of(name), kind, "{name}");
    }
}
