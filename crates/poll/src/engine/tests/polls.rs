//! Tests of requests and values without faults.

use super::network::{Agent, BEGIN_S, MS, Object, S, Simulation, config_of, target};
use crate::engine::{Empty, Happening, Pace, outrunning};
use kymo_wire::snmp::PduKind;

fn many(count: u32, spec: impl Fn(u32) -> String) -> String {
    (1..=count)
        .map(|n| target(&format!("t{n}"), &spec(n)))
        .collect()
}

#[test]
fn a_value_is_stored_with_the_middle_of_its_round_trip() {
    let mut agent = Agent::new(2);
    agent.delay_ns = 100 * MS;
    let text = target("a", "1:public@127.0.0.1:::::2");
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(10 * S);
    let values = std::mem::take(&mut simulation.values);
    // The agent read its counters when the request came, 1000 s after its start: 100 B/s in, 101 out.
    assert_eq!(values, [(0, format!("{BEGIN_S}.050000:100000:101000"))]);
    simulation.run(300 * S);
    assert_eq!(simulation.take(0), ["130000:131300"]);
    let account = simulation.accounts[0];
    assert_eq!(
        (account.answers, account.losses, account.retries),
        (1, 0, 0)
    );
    assert_eq!(account.round_trip_ns, 100 * MS);
    assert!(account.answered);
}

/// A device of version 2 need not have counters of 64 bits.
#[test]
fn counters_of_32_bits_take_the_place_of_missing_ones() {
    let mut agent = Agent::new(2);
    agent
        .objects
        .retain(|name, _| !name.starts_with(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6]));
    agent
        .objects
        .retain(|name, _| !name.starts_with(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10]));
    let text = target("a", "#if1:public@127.0.0.1:::::2")
        + &target("b", "2:public@127.0.0.1:::::2")
        + &target("gone", "7:public@127.0.0.1:::::2")
        + &target(
            "plain",
            "1.3.6.1.2.1.31.1.1.1.6.1&1.3.6.1.2.1.31.1.1.1.10.1:public@127.0.0.1:::::2",
        );
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(10 * S);
    assert_eq!(simulation.take(2), ["U:U"]);
    assert_eq!(simulation.take(3), ["U:U"]);
    assert!(!simulation.take(0)[0].contains('U') && !simulation.take(1)[0].contains('U'));
    let targets = |happening: &Happening| match happening {
        Happening::Narrow { targets, .. } => targets.clone(),
        _ => Vec::new(),
    };
    let noted: Vec<usize> = simulation.happenings.iter().flat_map(targets).collect();
    assert_eq!(noted, [0, 1]);
    let before = simulation.agent(1).requests.len();
    simulation.run(300 * S);
    assert!(!simulation.take(0)[0].contains('U'));
    assert_eq!(simulation.happenings.len(), 1);
    // The next cycle asks for them at once; the missing interface alone is asked for twice.
    assert!(simulation.agent(1).requests.len() - before <= 3);
}

/// The interface came back between the question for 64 bits and that for 32, and a counter of another width made a peak.
#[test]
fn an_interface_that_had_64_bits_keeps_them() {
    let text = target("a", "1:public@127.0.0.1:::::2");
    let mut simulation = Simulation::new(&text, vec![Agent::new(1)], Pace::Burst);
    simulation.run(10 * S);
    assert_eq!(simulation.take(0), ["100000:101000"]);
    let wide = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1];
    let objects = &mut simulation.agent(1).objects;
    objects.retain(|name, _| !name.starts_with(&wide));
    simulation.run(300 * S);
    assert_eq!(simulation.take(0), ["U:U"]);
    assert!(!simulation.happenings.iter().any(Happening::is_notice));
}

#[test]
fn counters_of_32_bits_are_named_where_they_lose_values() {
    let rows = [
        ("1:public@a", 125_000_000, "", true),
        ("#x:public@a", 125_000_000, "", true),
        ("ifInOctets.1&PseudoZero:public@a", 125_000_000, "", true),
        ("1:public@a + 2:public@b", 125_000_000, "", true),
        ("1:public@a", 124_999_999, "", false),
        ("1:public@a", 125_000_000, "gauge", false),
        ("1:public@a:::::2", 125_000_000, "", false),
        (
            "ifInErrors.1&ifOutErrors.1:public@a",
            125_000_000,
            "",
            false,
        ),
        ("`echo 1`", 125_000_000, "", false),
    ];
    let text: String = (0..)
        .zip(&rows)
        .map(|(at, (spec, max, options, _))| {
            format!("Target[t{at}]: {spec}\nMaxBytes[t{at}]: {max}\nTitle[t{at}]: t\nOptions[t{at}]: growright {options}\n")
        })
        .collect();
    let named = |globals: &str| outrunning(&config_of(&format!("{globals}{text}")));
    let lossy: Vec<usize> = (0..rows.len()).filter(|&at| rows[at].3).collect();
    assert_eq!(named(""), lossy);
    // In half a minute no such interface has passed 2^32 bytes.
    assert!(named("Interval: 0:30\n").is_empty());
}

/// Some agents answer with names that nobody asked for, in the order of the request.
#[test]
fn values_count_by_place_where_the_options_say_so() {
    for (options, value) in [("", "U:U"), ("SnmpOptions[a]: oidbyplace => 1\n", "7:8")] {
        let mut agent = Agent::new(1);
        for (name, number) in [(1, 7), (2, 8)] {
            agent
                .objects
                .insert(vec![1, 3, 6, 1, 4, 1, 9, name], Object::Number(number));
        }
        // The last byte of these names becomes another one.
        agent.spoil = Some(|packet| {
            let name = [6, 7, 0x2b, 6, 1, 4, 1, 9];
            let places: Vec<usize> = (0..packet.len().saturating_sub(9))
                .filter(|&at| packet[at..].starts_with(&name))
                .collect();
            places.into_iter().for_each(|at| packet[at + 8] += 40);
        });
        let text = target(
            "a",
            "1.3.6.1.4.1.9.1&1.3.6.1.4.1.9.2:public@127.0.0.1:::::2",
        ) + options;
        let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
        simulation.run(100 * S);
        assert_eq!(simulation.take(0), [value], "{options}");
    }
}

#[test]
fn the_first_number_of_a_text_counts_and_is_said_once() {
    let mut agent = Agent::new(1);
    agent
        .objects
        .insert(vec![1, 3, 6, 1, 4, 1, 9, 1], Object::Text(b"23 C / 73 F"));
    let text = target(
        "a",
        "1.3.6.1.4.1.9.1&1.3.6.1.4.1.9.1:public@127.0.0.1:::::2",
    );
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(301 * S);
    assert_eq!(simulation.take(0), ["23:23", "23:23"]);
    let text = b"23 C / 73 F"[..].into();
    let noted = Happening::FirstNumber {
        session: 0,
        text,
        targets: vec![0],
    };
    assert_eq!(simulation.happenings, [noted]);
}

#[test]
fn many_readings_share_a_pdu_and_none_is_torn() {
    let text = many(99, |n| format!("#if{n}:public@127.0.0.1:::::2"));
    let mut simulation = Simulation::new(&text, vec![Agent::new(99)], Pace::Burst);
    simulation.run(2 * S);
    assert_eq!(simulation.values.len(), 99);
    // Each PDU has 22 names: sysUpTime and seven readings of three. The walk asks for 12 rows at a
    // time.
    let requests = &simulation.agent(1).requests;
    let gets: Vec<usize> = requests
        .iter()
        .filter(|(kind, _)| *kind == PduKind::Get)
        .map(|(_, names)| *names)
        .collect();
    assert_eq!(gets, [&[22; 14][..], &[4]].concat());
    let walks = requests.len() - gets.len();
    assert_eq!(walks, 9);
    // The second cycle knows the names.
    simulation.values.clear();
    simulation.agent(1).requests.clear();
    simulation.run(300 * S);
    assert_eq!(simulation.values.len(), 99);
    assert_eq!(simulation.agent(1).requests.len(), 15);
    for number in 0..99u32 {
        let rate = (u64::from(number) + 1) * 100;
        let (values, _) = simulation
            .take(number)
            .pop()
            .map(|text| {
                text.split_once(':')
                    .map(|(i, o)| (i.to_string(), o.to_string()))
                    .unwrap()
            })
            .map(|(i, o)| ((i.parse::<u64>().unwrap(), o.parse::<u64>().unwrap()), ()))
            .unwrap();
        // In and out are of the same moment.
        assert_eq!(values.0 * (rate + 1) / rate, values.1);
    }
}

#[test]
fn pdus_grow_after_ten_clean_cycles() {
    let text = many(99, |n| format!("{n}:public@127.0.0.1:::::2"));
    let mut simulation = Simulation::new(&text, vec![Agent::new(99)], Pace::Burst);
    let mut counts = Vec::new();
    for _ in 0..12 {
        simulation.run(300 * S);
        counts.push(std::mem::take(&mut simulation.agent(1).requests).len());
    }
    // At first 11 readings beside sysUpTime; later as many as fit into 48 names or 1,400 bytes.
    assert_eq!(counts[..10], [9; 10]);
    assert_eq!(counts[11], 5);
    assert_eq!(simulation.values.len(), 12 * 99);
}

#[test]
fn other_forms_of_targets() {
    let mut agent = Agent::new(3);
    let object = |name: &[u32]| [&[1, 3, 6, 1, 4, 1, 9], name].concat();
    agent.objects.insert(object(&[1, 0]), Object::Number(-5));
    agent
        .objects
        .insert(object(&[2, 0]), Object::Text(b" 42.5\n"));
    agent.objects.insert(object(&[3, 0]), Object::Text(b"none"));
    for row in 1..=30u32 {
        agent
            .objects
            .insert(object(&[4, row]), Object::Count(u64::from(row) * 10));
    }
    let own = "1.3.6.1.4.1.9";
    let cases = [
        (format!("{own}.1.0&{own}.2.0"), "-5:42"),
        (format!("{own}.3.0&{own}.1.0"), "U:-5"),
        (format!("{own}.9.9&{own}.1.0"), "U:-5"),
        (format!("WaLK.{own}.4&WaLK13.{own}.4"), "10:140"),
        (format!("CnTWaLK{own}.4&GeTNEXT{own}.4.7"), "30:80"),
        ("PseudoZero&PseudoOne".to_string(), "0:1"),
        (format!("WaLK40.{own}.4&CnTWaLK{own}.5"), "U:0"),
    ];
    let text: String = cases
        .iter()
        .enumerate()
        .map(|(n, (spec, _))| target(&format!("t{n}"), &format!("{spec}:public@127.0.0.1:::::2")))
        .collect();
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(20 * S);
    for (n, (spec, expected)) in cases.iter().enumerate() {
        assert_eq!(simulation.take(n as u32), [*expected], "{spec}");
    }
}

#[test]
fn interfaces_by_name_are_found_and_checked() {
    let text = target("a", "#if2:public@127.0.0.1:::::2");
    let mut simulation = Simulation::new(&text, vec![Agent::new(3)], Pace::Burst);
    simulation.run(300 * S);
    assert_eq!(simulation.take(0).len(), 1);
    // if2 and if3 change places: a reply reveals it, and the column is walked again in the same
    // cycle.
    let agent = simulation.agent(1);
    for (n, name) in [(2, &b"if3"[..]), (3, b"if2")] {
        let key = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1, n];
        agent.objects.insert(key.to_vec(), Object::Text(name));
    }
    simulation.run(300 * S);
    let value = simulation.take(0).pop().unwrap();
    assert!(
        value.starts_with("39000"),
        "300 B/s are interface 3's: {value}"
    );
    let cache = simulation.engine.changed_cache().unwrap();
    let text = String::from_utf8(cache.text()).unwrap();
    assert!(text.contains("\tName\tif2\t3\n"), "{text}");
}

#[test]
fn what_is_not_there_is_looked_for_less_and_less_often() {
    let text = target("a", "#new:public@127.0.0.1:::::2");
    let mut agent = Agent::new(1);
    // ifNumber announces new interfaces.
    let number = vec![1, 3, 6, 1, 2, 1, 2, 1, 0];
    agent.objects.insert(number.clone(), Object::Number(1));
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    let mut walks = Vec::new();
    for _ in 0..32 {
        simulation.run(300 * S);
        let requests = std::mem::take(&mut simulation.agent(1).requests);
        walks.push(requests.iter().any(|(kind, _)| *kind == PduKind::GetBulk));
    }
    let cycles: Vec<usize> = (0..32).filter(|&cycle| walks[cycle]).collect();
    assert_eq!(cycles, [0, 1, 3, 7, 15, 27]);
    assert_eq!(simulation.take(0), ["U:U"; 32]);
    assert!(matches!(
        simulation.reasons[..],
        [(Empty::NoInterface { .. }, _)]
    ));
    // Interfaces were added, so the key is looked up at once.
    let agent = simulation.agent(1);
    agent.objects.insert(number, Object::Number(2));
    let name = vec![1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1, 1];
    agent.objects.insert(name, Object::Text(b"new"));
    simulation.values.clear();
    simulation.run(300 * S);
    let value = simulation.take(0).pop().unwrap();
    assert!(!value.contains('U'), "{value}");
}

#[test]
fn one_target_string_is_polled_once_and_sums_are_made() {
    let text = [
        target("a", "1:public@127.0.0.1:::::2"),
        target("b", "1:public@127.0.0.1:::::2"),
        target("c", "1:public@127.0.0.1:::::2 + 2:public@127.0.0.2:::::2"),
    ]
    .concat();
    let agents = vec![Agent::new(2), Agent::new(2)];
    let mut simulation = Simulation::new(&text, agents, Pace::Burst);
    simulation.run(S);
    assert_eq!(simulation.agent(1).requests, [(PduKind::Get, 3)]);
    assert_eq!(simulation.take(0), ["100000:101000"]);
    assert_eq!(simulation.take(1), ["100000:101000"]);
    assert_eq!(simulation.take(2), ["300000:302000"]);
}

#[test]
fn polls_are_spread_and_devices_of_one_sum_go_together() {
    let text: String = (1..=40)
        .map(|n| target(&format!("t{n}"), &format!("1:public@127.0.0.{n}:::::2")))
        .chain([target(
            "sum",
            "1:public@127.0.0.1:::::2 + 1:public@127.0.0.2:::::2",
        )])
        .collect();
    let agents = vec![Agent::new(1); 40];
    let mut simulation = Simulation::new(&text, agents, Pace::Spread);
    simulation.run(S);
    // Everything is polled at once the first time.
    assert_eq!(simulation.values.len(), 41);
    simulation.values.clear();
    simulation.network.packets.clear();
    let mut moments = std::collections::BTreeMap::new();
    for second in 0..900 {
        simulation.run(S);
        for session in simulation.network.packets.drain(..) {
            moments.entry(session).or_insert_with(Vec::new).push(second);
        }
    }
    assert_eq!(moments.len(), 40);
    for (session, seconds) in &moments {
        assert!(seconds.len() >= 2, "{session}: {seconds:?}");
        assert!((299..=301).contains(&(seconds[1] - seconds[0])));
    }
    assert_eq!(moments[&0], moments[&1]);
    let first: std::collections::BTreeSet<i32> = moments.values().map(|all| all[0]).collect();
    assert!(first.len() > 20, "{first:?}");
}

#[test]
fn a_reload_changes_neither_moments_nor_what_is_known() {
    let one = target("a", "#if1:public@127.0.0.1:::::2");
    let both = one.clone() + &target("b", "#if2:public@127.0.0.1:::::2");
    let mut simulation = Simulation::new(&one, vec![Agent::new(2)], Pace::Burst);
    simulation.run(400 * S);
    assert_eq!(simulation.take(0).len(), 2);
    simulation.agent(1).requests.clear();
    simulation.reload(&both);
    simulation.run(100 * S);
    assert_eq!(simulation.agent(1).requests, []);
    simulation.run(200 * S);
    // One PDU for both and no walk: the state of the device was kept.
    assert_eq!(simulation.agent(1).requests, [(PduKind::Get, 7)]);
    assert_eq!((simulation.take(0).len(), simulation.take(1).len()), (1, 1));
}

#[test]
fn single_requests_have_one_name_each() {
    let text = format!(
        "SingleRequest: yes\n{}",
        target("a", "#if2:public@127.0.0.1:::::2")
    );
    let mut simulation = Simulation::new(&text, vec![Agent::new(2)], Pace::Burst);
    simulation.run(10 * S);
    assert!(simulation.take(0)[0].starts_with("20000"));
    let gets = simulation.agent(1).requests.iter();
    let gets: Vec<usize> = gets
        .filter(|one| one.0 == PduKind::Get)
        .map(|one| one.1)
        .collect();
    assert_eq!(gets, [1, 1, 1]);
}

#[test]
fn without_mib2_nobody_asks_for_the_uptime() {
    let text = format!("NoMib2: yes\n{}", target("a", "2:public@127.0.0.1:::::2"));
    let mut simulation = Simulation::new(&text, vec![Agent::new(2)], Pace::Burst);
    simulation.run(10 * S);
    assert_eq!(simulation.agent(1).requests, [(PduKind::Get, 2)]);
}
