//! Tests with faults of the network and of agents.

use super::network::{Agent, MS, Object, S, Simulation, address, target};
use crate::engine::{Column, Empty, Happening, Missing, Pace};
use kymo_wire::snmp::PduKind;

fn both(count: u32) -> String {
    (1..=count)
        .map(|n| target(&format!("t{n}"), &format!("#if{n}:public@127.0.0.1:::::2")))
        .collect()
}

#[test]
fn what_is_lost_is_asked_for_again() {
    for loses in [5, 3] {
        let mut agent = Agent::new(60);
        agent.loses = loses;
        let mut simulation = Simulation::new(&both(60), vec![agent], Pace::Burst);
        for _ in 0..3 {
            simulation.run(300 * S);
        }
        for n in 0..60 {
            let values = simulation.take(n);
            assert_eq!(values.len(), 3);
            assert!(
                !values.iter().any(|value| value.contains('U')),
                "{values:?}"
            );
        }
        assert!(simulation.accounts.iter().all(|account| account.losses > 0));
    }
}

#[test]
fn a_dead_device_delays_nobody_and_comes_back() {
    let text = target("a", "1:public@127.0.0.1:::::2") + &target("b", "1:public@127.0.0.2:::::2");
    let mut dead = Agent::new(1);
    dead.is_dead = true;
    let mut simulation = Simulation::new(&text, vec![dead, Agent::new(1)], Pace::Burst);
    simulation.run(20 * MS);
    assert_eq!((simulation.take(0).len(), simulation.take(1).len()), (0, 1));
    simulation.run(10 * S);
    assert_eq!(simulation.take(0), ["U:U"]);
    // Five attempts and a probe; after two such cycles two probes alone.
    let mut counts = Vec::new();
    for _ in 0..3 {
        simulation.run(300 * S);
        counts.push(std::mem::take(&mut simulation.agent(1).requests).len());
    }
    assert_eq!(counts, [12, 2, 2]);
    simulation.agent(1).is_dead = false;
    simulation.values.clear();
    simulation.run(300 * S);
    assert!(!simulation.take(0)[0].contains('U'));
    let happenings: Vec<&Happening> = simulation.happenings.iter().collect();
    assert!(matches!(
        happenings[..],
        [
            Happening::Silent { session: 0 },
            Happening::Back { session: 0 }
        ]
    ));
}

/// With an interval of 1 s, shorter than a timeout of 2 s, the silence of a device was never reported.
#[test]
fn a_dead_device_is_missed_within_a_short_interval() {
    let text = format!(
        "Interval: 0:01\n{}",
        target("a", "1:public@127.0.0.1:::::2")
    );
    let mut simulation = Simulation::new(&text, vec![Agent::new(1)], Pace::Burst);
    simulation.run(5 * S);
    assert!(
        simulation
            .accounts
            .iter()
            .all(|account| account.losses == 0)
    );
    simulation.agent(1).is_dead = true;
    simulation.run(5 * S);
    simulation.agent(1).is_dead = false;
    simulation.run(5 * S);
    let happenings: Vec<&Happening> = simulation.happenings.iter().collect();
    assert!(
        matches!(
            happenings[..],
            [
                Happening::Silent { session: 0 },
                Happening::Back { session: 0 }
            ]
        ),
        "{happenings:?}"
    );
}

#[test]
fn small_replies_halve_pdus() {
    for (names_max, is_silent) in [(10, false), (10, true), (4, false), (3, false)] {
        let mut agent = Agent::new(20);
        agent.names_max = names_max;
        if is_silent {
            // The agent drops large requests.
            agent.spoil = Some(|packet| {
                if packet.len() < 40 {
                    packet.clear();
                }
            });
        }
        let mut simulation = Simulation::new(&both(20), vec![agent], Pace::Burst);
        for _ in 0..4 {
            simulation.run(300 * S);
        }
        for n in 0..20 {
            let values = simulation.take(n);
            assert_eq!(values.len(), 4, "{n} {names_max}");
            assert!(!values[3].contains('U'), "{n} {names_max} {values:?}");
        }
        let requests = &simulation.agent(1).requests;
        let last = requests.last().unwrap();
        assert!(last.1 <= names_max, "{last:?}");
    }
}

/// A run from cron has one cycle. A device that drops GETs of more than 20 names had 33 of 48 values in each run, and one of more
/// than 10 had none, because a cycle found only one limit, which was then forgotten.
#[test]
fn limits_are_found_in_one_cycle_and_kept() {
    let mut agents = Vec::new();
    for limit in [20, 12, 10, 8, 4, 3, 1] {
        let [mut drops, mut first, mut refuses] = [48, 48, 48].map(Agent::new);
        drops.drops_over = limit;
        first.answers_first = limit;
        refuses.refuses_over = limit;
        agents.extend([(limit, drops), (limit, first), (limit, refuses)]);
    }
    let mut without_bulk = Agent::new(48);
    without_bulk.is_without_bulk = true;
    agents.push((48, without_bulk));
    for (limit, agent) in agents {
        for spec in ["{}:public@127.0.0.1:::::2", "#if{}:public@127.0.0.1:::::2"] {
            let text: String = (1..=48)
                .map(|n| target(&format!("t{n}"), &spec.replace("{}", &n.to_string())))
                .collect();
            let story = format!(
                "{limit} {spec} {:?}",
                (agent.answers_first, agent.refuses_over)
            );
            let mut simulation = Simulation::new(&text, vec![agent.clone()], Pace::Burst);
            simulation.run(240 * S);
            let unknown = |simulation: &mut Simulation| {
                let values = std::mem::take(&mut simulation.values);
                assert_eq!(values.len(), 48, "{story}");
                values.iter().filter(|(_, text)| text.contains('U')).count()
            };
            assert_eq!(unknown(&mut simulation), 0, "{story}");
            let cache = simulation.engine.changed_cache().unwrap_or_default();
            simulation.accounts.clear();
            simulation.run_again(&cache);
            simulation.run(5 * S);
            assert_eq!(unknown(&mut simulation), 0, "{story}");
            assert_eq!(simulation.accounts[0].losses, 0, "{story}");
        }
    }
}

/// A limit found by a run from cron stayed for ever: a device with renewed software was asked in small PDUs for years.
#[test]
fn more_is_tried_once_a_day() {
    let text: String = (1..=48)
        .map(|n| target(&format!("t{n}"), &format!("{n}:public@127.0.0.1:::::2")))
        .collect();
    let mut agent = Agent::new(48);
    agent.drops_over = 10;
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(240 * S);
    let mut cache = simulation.engine.changed_cache().unwrap();
    let mut largest = Vec::new();
    for hour in 0..104 {
        if hour == 50 {
            simulation.agent(1).drops_over = usize::MAX;
        }
        simulation.clock.advance_ns(3360 * S);
        simulation.agent(1).requests.clear();
        simulation.values.clear();
        simulation.run_again(&cache);
        simulation.run(240 * S);
        cache = simulation.engine.changed_cache().unwrap_or(cache);
        assert_eq!(simulation.values.len(), 48);
        assert!(
            !simulation.values.iter().any(|of| of.1.contains('U')),
            "{hour}"
        );
        let names = simulation.agent(1).requests.iter().map(|one| one.1);
        largest.push(names.max().unwrap());
    }
    // Once a day the engine asks for twice as many names. An answer keeps the new limit; a missing one costs a PDU a run.
    let too_large: Vec<usize> = (0..50).filter(|&hour| largest[hour] > 10).collect();
    assert_eq!(too_large, [48], "{largest:?}");
    assert!(largest[23] < largest[24], "{largest:?}");
    assert_eq!(
        (largest[51], largest[103]),
        (largest[24], 23),
        "{largest:?}"
    );
    assert!(!String::from_utf8(cache.text()).unwrap().contains("Limit"));
}

/// A name for which a device is silent, or refuses a PDU without naming it, costs the device's other names nothing.
#[test]
fn a_name_that_spoils_its_pdu_is_found_among_the_others() {
    let name = [1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 5];
    let text: String = (1..=16)
        .map(|n| target(&format!("t{n}"), &format!("{n}:public@127.0.0.1")))
        .collect();
    for is_silent in [true, false] {
        let mut agent = Agent::new(16);
        agent.hides_index = true;
        match is_silent {
            true => agent.drops_name = Some(name.to_vec()),
            false => drop(agent.objects.remove(&name[..])),
        }
        let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
        for cycle in 0..2 {
            simulation.run(300 * S);
            for n in 0..16 {
                let value = simulation.take(n).pop().unwrap();
                match n {
                    4 => assert!(value.starts_with("U:") && value.len() > 4, "{value}"),
                    _ => assert!(!value.contains('U'), "{cycle} {n} {value}"),
                }
            }
        }
        // From then on the name is alone in its PDU, and the others are asked as if it did not exist.
        simulation.agent(1).requests.clear();
        simulation.run(300 * S);
        let names = simulation.agent(1).requests.iter().map(|one| one.1);
        let large = names.filter(|&names| names > 2).collect::<Vec<_>>();
        assert_eq!(large, [23, 9], "{is_silent}");
    }
}

#[test]
fn version_1_goes_on_without_the_name_that_is_not_there() {
    let text: String = (1..=16)
        .map(|n| target(&format!("t{n}"), &format!("{n}:public@127.0.0.1")))
        .collect();
    let mut agent = Agent::new(16);
    agent
        .objects
        .remove(&vec![1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 5]);
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(300 * S);
    for n in 0..16 {
        let value = simulation.take(n).pop().unwrap();
        match n {
            4 => assert_eq!(value, "U:501010"),
            _ => assert!(!value.contains('U'), "{n} {value}"),
        }
    }
    // From now on the refused name spoils no other PDU.
    simulation.agent(1).requests.clear();
    simulation.run(300 * S);
    let names: Vec<usize> = simulation
        .agent(1)
        .requests
        .iter()
        .map(|one| one.1)
        .collect();
    assert_eq!(names, [23, 9, 2, 1]);
    simulation.values.clear();
    let name = vec![1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 5];
    simulation.agent(1).objects.insert(name, Object::Count(7));
    simulation.run(600 * S);
    assert_eq!(simulation.take(4), ["7:801610", "7:951900"]);
    // The name is there: its reading shares a PDU again.
    simulation.agent(1).requests.clear();
    simulation.run(300 * S);
    let names: Vec<usize> = simulation
        .agent(1)
        .requests
        .iter()
        .map(|one| one.1)
        .collect();
    assert_eq!(names, [23, 11]);
}

/// A name that version 1 refused once was not asked again for an hour: cards that come up late had no values.
#[test]
fn version_1_asks_for_an_absent_name_in_each_cycle() {
    let absent: [&[u32]; 3] = [
        &[1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 3],
        &[1, 3, 6, 1, 2, 1, 2, 2, 1, 16, 3],
        &[1, 3, 6, 1, 2, 1, 1, 3, 0],
    ];
    let text: String = (1..=4)
        .map(|n| target(&format!("t{n}"), &format!("{n}:public@127.0.0.1")))
        .collect();
    for name in absent {
        let mut agent = Agent::new(4);
        let known = agent.objects.remove(name);
        agent.has_uptime = known.is_some();
        let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
        simulation.run(900 * S);
        let is_all_known = |values: &[String]| !values.iter().any(|value| value.contains('U'));
        for n in [0, 1, 3] {
            let values = simulation.take(n);
            assert!(
                values.len() == 3 && is_all_known(&values),
                "{name:?} {values:?}"
            );
        }
        let agent = simulation.agent(1);
        known.into_iter().for_each(|known| {
            agent.objects.insert(name.to_vec(), known);
        });
        agent.has_uptime = true;
        simulation.values.clear();
        simulation.run(300 * S);
        let values = simulation.take(2);
        assert!(
            values.len() == 1 && is_all_known(&values),
            "{name:?} {values:?}"
        );
        // An uptime that was absent before still reveals a restart.
        simulation.run(300 * S);
        simulation.agent(1).started_ns = 2499 * S;
        simulation.run(300 * S);
        assert!(
            matches!(simulation.happenings[..], [Happening::Restarted { .. }]),
            "{name:?} {:?}",
            simulation.happenings
        );
    }
}

/// An interface that appears late was looked up after up to an hour if the device does not report changes.
#[test]
fn a_device_that_announces_no_interface_is_looked_through_in_each_cycle() {
    for version in ["", ":::::2"] {
        let text = target("a", &format!("#late:public@127.0.0.1{version}"));
        let mut simulation = Simulation::new(&text, vec![Agent::new(2)], Pace::Burst);
        simulation.run(1800 * S);
        assert_eq!(simulation.take(0), ["U:U"; 6]);
        let name = vec![1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1, 2];
        let agent = simulation.agent(1);
        agent.objects.insert(name, Object::Text(b"late"));
        simulation.run(300 * S);
        let value = simulation.take(0).pop().unwrap();
        assert!(!value.contains('U'), "{version} {value}");
    }
}

#[test]
fn a_device_that_has_no_uptime_is_polled_without() {
    for version in ["", ":::::2"] {
        let mut agent = Agent::new(2);
        agent.has_uptime = false;
        let text = target("a", &format!("2:public@127.0.0.1{version}"));
        let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
        simulation.run(300 * S);
        let value = simulation.take(0).pop().unwrap();
        assert!(value.starts_with("20000"), "{value}");
        simulation.agent(1).requests.clear();
        simulation.run(300 * S);
        // Version 1 refuses the whole PDU because of the name, which then has a PDU of its own.
        let expected: &[(PduKind, usize)] = match version {
            "" => &[(PduKind::Get, 1), (PduKind::Get, 2)],
            _ => &[(PduKind::Get, 3)],
        };
        assert_eq!(simulation.agent(1).requests, expected);
    }
}

#[test]
fn a_device_says_its_name_for_pages_if_it_has_one() {
    const NAME: [u32; 9] = [1, 3, 6, 1, 2, 1, 1, 5, 0];
    for (version, name) in [
        ("", Some(&b"core-1"[..])),
        (":::::2", Some(b"core-1")),
        ("", None),
        (":::::2", None),
    ] {
        let mut agent = Agent::new(2);
        if name.is_some() {
            agent.objects.insert(NAME.to_vec(), Object::Text(b"core-1"));
        }
        let text = target("a", &format!("2:public@127.0.0.1{version}"));
        let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
        simulation.engine.asks_names = true;
        for cycle in 0..2 {
            simulation.agent(1).requests.clear();
            simulation.run(300 * S);
            // Version 1 refuses the whole PDU because of the name, once.
            let expected: &[(PduKind, usize)] = match (version, name, cycle) {
                ("", None, 0) => &[(PduKind::Get, 4), (PduKind::Get, 3)],
                ("", None, _) => &[(PduKind::Get, 3)],
                _ => &[(PduKind::Get, 4)],
            };
            assert_eq!(simulation.agent(1).requests, expected, "{version} {name:?}");
            let about = simulation.engine.devices[0].about().unwrap();
            assert_eq!(about.name.as_deref(), name, "{version}");
            let value = simulation.take(0).pop().unwrap();
            assert!(!value.contains('U'), "{version} {name:?} {value}");
        }
        // The words of a cycle in which it says nothing do not count.
        simulation.agent(1).is_dead = true;
        simulation.run(300 * S);
        assert_eq!(simulation.engine.devices[0].about(), None);
    }
}

#[test]
fn a_restart_is_a_gap_and_a_wrap_is_none() {
    let text = target("a", "1:public@127.0.0.1:::::2");
    let mut simulation = Simulation::new(&text, vec![Agent::new(1)], Pace::Burst);
    simulation.run(600 * S);
    assert_eq!(simulation.take(0), ["100000:101000", "130000:131300"]);
    simulation.agent(1).started_ns = 1600 * S;
    simulation.run(300 * S);
    // An unknown value, a second before the first value of the new counter.
    assert_eq!(simulation.take(0), ["U:U", "0:0"]);
    assert!(matches!(
        simulation.happenings[..],
        [Happening::Restarted { session: 0 }]
    ));
    assert!(simulation.accounts[2].was_reset);
    simulation.run(300 * S);
    assert_eq!(simulation.take(0), ["30000:30300"]);

    // After 497 days sysUpTime begins again at 0; the counters go on.
    let day = 86_400 * S;
    let mut simulation = Simulation::new(&text, vec![Agent::new(1)], Pace::Burst);
    simulation.clock.advance_ns(497 * day - 1000 * S);
    simulation.run(1200 * S);
    assert!(
        simulation.happenings.is_empty(),
        "{:?}",
        simulation.happenings
    );
}

/// A restart of an agent made a gap in all its counters, though each of them went on.
#[test]
fn a_counter_that_went_back_makes_the_gap() {
    let gauge = "Options[g]: gauge\n";
    let own = "1.3.6.1.4.1.9";
    let text = [
        target("a", "1:public@127.0.0.1:::::2"),
        target("b", "2:public@127.0.0.1:::::2"),
        target("g", &format!("{own}.1.0&{own}.1.0:public@127.0.0.1:::::2")),
        gauge.to_string(),
    ]
    .concat();
    let level = [1, 3, 6, 1, 4, 1, 9, 1, 0].to_vec();
    let mut agent = Agent::new(2);
    agent.objects.insert(level.clone(), Object::Number(7));
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(600 * S);
    let restart = |simulation: &mut Simulation| {
        let now_ns = (1000 + 300 * simulation.accounts.len() as u64) * S;
        simulation.agent(1).agent_started_ns = Some(now_ns - S);
        simulation.values.clear();
        simulation.happenings.clear();
        simulation.run(300 * S);
    };
    // The agent alone is started again; a gauge may fall without a gap.
    simulation.agent(1).objects.insert(level, Object::Number(3));
    restart(&mut simulation);
    assert_eq!(simulation.take(0), ["160000:161600"]);
    assert_eq!(simulation.take(2), ["3:3"]);
    assert!(matches!(
        simulation.happenings[..],
        [Happening::AgentRestarted { session: 0 }]
    ));
    assert!(!simulation.accounts[2].was_reset);
    // One card of the device is started again.
    simulation.run(300 * S);
    for name in [&[2, 2, 1, 10, 1][..], &[31, 1, 1, 1, 6, 1]] {
        let name = [&[1, 3, 6, 1, 2, 1], name].concat();
        simulation.agent(1).objects.insert(name, Object::Count(9));
    }
    restart(&mut simulation);
    assert_eq!(simulation.take(0), ["U:U", "9:222200"]);
    assert_eq!(simulation.take(1).len(), 1);
    assert!(matches!(
        simulation.happenings[..],
        [Happening::Restarted { session: 0 }]
    ));
    assert!(simulation.accounts[4].was_reset);
}

#[test]
fn answers_sent_twice_late_or_forged_are_no_values() {
    let text = target("a", "1:public@127.0.0.1:2:::::2").replace("127.0.0.1:2:", "127.0.0.1:161:");
    let mut agent = Agent::new(1);
    agent.is_double = true;
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(300 * S);
    assert_eq!(simulation.take(0).len(), 1);
    assert_eq!(simulation.engine.strays().unknown, 1);
    // An answer from another address is accepted and counted, as in MRTG.
    simulation.agent(1).from = Some(address(99));
    simulation.run(300 * S);
    assert_eq!(simulation.take(0).len(), 1);
    assert_eq!(simulation.engine.strays().foreign, 1);
    // Answers of another version, with another community or id, or truncated, are rejected.
    let spoils: [fn(&mut Vec<u8>); 4] = [
        |packet| packet[4] ^= 1,
        |packet| packet[8] ^= 1,
        |packet| packet[18] ^= 1,
        |packet| packet.truncate(30),
    ];
    for spoil in spoils {
        let agent = simulation.agent(1);
        (agent.spoil, agent.from) = (Some(spoil), None);
        simulation.run(300 * S);
        assert_eq!(simulation.take(0), ["U:U"]);
    }
    let strays = simulation.engine.strays();
    assert!(
        strays.refused > 0 && strays.malformed > 0 && strays.unknown > 1,
        "{strays:?}"
    );
}

#[test]
fn a_late_answer_is_taken_with_its_own_moment_but_never_by_a_newer_poll() {
    let text = target("a", "1:public@127.0.0.1:::::2");
    let mut agent = Agent::new(1);
    agent.delay_ns = 3 * S;
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(30 * S);
    // The first attempt is answered: it was sent at the beginning, and the value is of the middle of its round trip.
    let values = std::mem::take(&mut simulation.values);
    assert_eq!(values.len(), 1);
    assert!(
        values[0].1.starts_with("1800000001.500000:100000:"),
        "{values:?}"
    );
    // An answer after the end of the cycle is dropped.
    simulation.agent(1).delay_ns = 250 * S;
    simulation.run(270 * S + 60 * S);
    assert_eq!(simulation.take(0), ["U:U"]);
    simulation.run(200 * S);
    assert!(simulation.values.is_empty());
    assert!(simulation.engine.strays().unknown > 0);
}

#[test]
fn an_agent_that_never_comes_to_an_end_is_left() {
    let mut agent = Agent::new(3);
    // Each answer is about the first row, whatever the request.
    agent.spoil = Some(|packet| {
        if let Some(at) = packet.windows(4).position(|part| part == [31, 1, 1, 1]) {
            packet[at + 5] = 1;
        }
    });
    let text = target("a", "#no:public@127.0.0.1:::::2");
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(300 * S);
    assert_eq!(simulation.take(0), ["U:U"]);
    assert!(simulation.agent(1).requests.len() < 10);
}

/// A column with rows out of order, repeated or in a circle was discarded, and each name was reported as missing.
#[test]
fn what_a_broken_column_lists_is_polled() {
    let in_order: Vec<u32> = (1..=30).collect();
    let mut as_text = in_order.clone();
    as_text.sort_by_key(u32::to_string);
    let mut swapped = in_order.clone();
    swapped.swap(10, 11);
    let mut reversed = in_order.clone();
    reversed.reverse();
    let twenty: Vec<u32> = (1..=20).collect();
    for (order, last, listed) in [
        (as_text, None, 30),
        (swapped, None, 30),
        (reversed, None, 30),
        (twenty.clone(), Some(20), 20),
        (twenty.clone(), Some(1), 20),
        (twenty, Some(13), 20),
    ] {
        for options in [":::::2", ""] {
            let text: String = (1..=30)
                .map(|n| {
                    target(
                        &format!("t{n}"),
                        &format!("\\if{n}:public@127.0.0.1{options}"),
                    )
                })
                .collect();
            let mut agent = Agent::new(30);
            agent.order = Some((order.clone(), last));
            let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
            simulation.run(900 * S);
            for n in 0..30 {
                let values = simulation.take(n);
                let known = values.iter().filter(|value| !value.contains('U')).count();
                let expected = if n < listed { 3 } else { 0 };
                assert_eq!(
                    (values.len(), known),
                    (3, expected),
                    "{n} {order:?} {last:?}"
                );
            }
            let missing = simulation.reasons.iter().map(|of| match of.0 {
                Empty::NoInterface { why, .. } => why,
                _ => panic!("{of:?}"),
            });
            let missing: Vec<Missing> = missing.collect();
            assert_eq!(missing, vec![Missing::Looped; 30 - listed as usize]);
            let rows = simulation.agent(1).requests.len();
            assert!(rows < 150, "{rows}");
        }
    }
}

/// No line named targets without a value, or their reason.
#[test]
fn each_target_without_a_value_has_its_reason_once() {
    let own = "1.3.6.1.4.1.9";
    let cases = [
        (
            format!("{own}.1.0&{own}.1.0:public@127.0.0.1:::::2"),
            Some(Empty::NoNumber),
        ),
        ("77:public@127.0.0.1:::::2".into(), Some(Empty::NoObject)),
        ("77:public@127.0.0.2:::::1".into(), Some(Empty::NoObject)),
        (
            "#no:public@127.0.0.1:::::2".into(),
            Some(Empty::NoInterface {
                column: Column::Name,
                key: b"no"[..].into(),
                why: Missing::Absent,
            }),
        ),
        ("1:public@127.0.0.9:::::2".into(), Some(Empty::NoAnswer)),
        ("2:public@127.0.0.9:::::2".into(), Some(Empty::NoAnswer)),
        ("1:public@127.0.0.1:::::2".into(), None),
    ];
    let text: String = (0..)
        .zip(&cases)
        .map(|(n, of)| target(&format!("t{n}"), &of.0))
        .collect();
    let text_object = [1, 3, 6, 1, 4, 1, 9, 1, 0].to_vec();
    let mut agent = Agent::new(2);
    agent
        .objects
        .insert(text_object.clone(), Object::Text(b"warm"));
    let mut simulation = Simulation::new(&text, vec![agent, Agent::new(2)], Pace::Burst);
    simulation.run(900 * S);
    for (number, (spec, why)) in cases.iter().enumerate() {
        let reasons = simulation
            .reasons
            .iter()
            .filter(|of| of.1.contains(&number));
        let reasons: Vec<&Empty> = reasons.map(|of| &of.0).collect();
        assert_eq!(reasons, Vec::from_iter(why), "{spec}");
    }
    // A dead device is one event for all its targets.
    assert!(simulation.reasons.contains(&(Empty::NoAnswer, vec![4, 5])));
    // Another reason is an event, and so is the first one after values.
    let mut reasons = Vec::new();
    for object in [None, Some(Object::Number(4)), Some(Object::Text(b"x"))] {
        let objects = &mut simulation.agent(1).objects;
        objects.remove(&text_object);
        objects.extend(object.map(|object| (text_object.clone(), object)));
        simulation.reasons.clear();
        simulation.run(300 * S);
        reasons.push(std::mem::take(&mut simulation.reasons));
    }
    let expected = [
        vec![(Empty::NoObject, vec![0])],
        vec![],
        vec![(Empty::NoNumber, vec![0])],
    ];
    assert_eq!(reasons, expected);
}

#[test]
fn ten_thousand_dead_devices_at_once() {
    let count = 10_000u32;
    let text: String = (0..count)
        .map(|n| {
            let (high, low) = (n / 250, n % 250 + 1);
            target(
                &format!("t{n}"),
                &format!("1:public@127.1.{high}.{low}:::::2"),
            )
        })
        .chain([target("alive", "1:public@127.0.0.1:::::2")])
        .collect();
    let mut simulation = Simulation::new(&text, vec![Agent::new(1)], Pace::Burst);
    simulation.run(100 * S);
    let value = simulation.take(count).pop().unwrap();
    assert!(value.starts_with("100"), "within a second: {value}");
    assert_eq!(simulation.values.len(), count as usize);
}

#[test]
fn the_wall_clock_may_step() {
    let text = target("a", "1:public@127.0.0.1:::::2");
    let mut simulation = Simulation::new(&text, vec![Agent::new(1)], Pace::Burst);
    simulation.run(300 * S);
    simulation.clock.step_wall_ns(-(3600 * S as i64));
    simulation.run(300 * S);
    simulation.clock.step_wall_ns(7200 * S as i64);
    simulation.run(300 * S);
    // There is one value in each interval, whatever the wall clock says.
    assert_eq!(simulation.take(0).len(), 3);
    assert!(simulation.happenings.is_empty());
}
