//! What goes wrong on the way and at the other end.

use super::network::{Agent, MS, Object, S, Simulation, address, target};
use crate::engine::{Happening, Pace};
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
    // Five attempts and a question whether anybody is there; after two such cycles two questions.
    let mut counts = Vec::new();
    for _ in 0..3 {
        simulation.run(300 * S);
        counts.push(std::mem::take(&mut simulation.agent(1).asked).len());
    }
    assert_eq!(counts, [12, 2, 2]);
    simulation.agent(1).is_dead = false;
    simulation.values.clear();
    simulation.run(300 * S);
    assert!(!simulation.take(0)[0].contains('U'));
    let heard: Vec<&Happening> = simulation.happenings.iter().collect();
    assert!(matches!(
        heard[..],
        [
            Happening::Silent { session: 0 },
            Happening::Back { session: 0 }
        ]
    ));
}

/// Its silence was never said where the interval, 1 s, is shorter than a timeout, 2 s.
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
    let heard: Vec<&Happening> = simulation.happenings.iter().collect();
    assert!(
        matches!(
            heard[..],
            [
                Happening::Silent { session: 0 },
                Happening::Back { session: 0 }
            ]
        ),
        "{heard:?}"
    );
}

#[test]
fn small_replies_halve_pdus() {
    for (names_max, is_silent) in [(10, false), (10, true), (4, false), (3, false)] {
        let mut agent = Agent::new(20);
        agent.names_max = names_max;
        if is_silent {
            // Large requests are not answered at all.
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
        let asked = &simulation.agent(1).asked;
        let last = asked.last().unwrap();
        assert!(last.1 <= names_max, "{last:?}");
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
            4 => assert_eq!(value, "U:501005"),
            _ => assert!(!value.contains('U'), "{n} {value}"),
        }
    }
    // Not asked for again for an hour.
    simulation.agent(1).asked.clear();
    simulation.run(300 * S);
    let first: usize = simulation.agent(1).asked.iter().map(|one| one.1).sum();
    assert_eq!(first, 31 + 2);
    let name = vec![1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 5];
    simulation.agent(1).objects.insert(name, Object::Count(7));
    simulation.values.clear();
    simulation.run(3600 * S);
    let values = simulation.take(4);
    assert!(values[0].starts_with("U:"), "{values:?}");
    assert!(values.last().unwrap().starts_with("7:"), "{values:?}");
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
        simulation.agent(1).asked.clear();
        simulation.run(300 * S);
        assert_eq!(simulation.agent(1).asked, [(PduKind::Get, 2)]);
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
    // An unknown one, a second before the first value of the new counter.
    assert_eq!(simulation.take(0), ["U:U", "0:0"]);
    assert!(matches!(
        simulation.happenings[..],
        [Happening::Restarted { session: 0 }]
    ));
    assert!(simulation.accounts[2].was_reset);
    simulation.run(300 * S);
    assert_eq!(simulation.take(0), ["30000:30300"]);

    // 497 days: sysUpTime begins again at 0, the counters go on.
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

#[test]
fn answers_sent_twice_late_or_forged_are_no_values() {
    let text = target("a", "1:public@127.0.0.1:2:::::2").replace("127.0.0.1:2:", "127.0.0.1:161:");
    let mut agent = Agent::new(1);
    agent.is_double = true;
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(300 * S);
    assert_eq!(simulation.take(0).len(), 1);
    assert_eq!(simulation.engine.strays().unknown, 1);
    // From elsewhere: taken and counted, as MRTG does.
    simulation.agent(1).from = Some(address(99));
    simulation.run(300 * S);
    assert_eq!(simulation.take(0).len(), 1);
    assert_eq!(simulation.engine.strays().foreign, 1);
    // With another community, another id, cut short: not taken.
    let spoils: [fn(&mut Vec<u8>); 3] = [
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
    // The answer to the first attempt, which was sent at the beginning, and is of its middle.
    let values = std::mem::take(&mut simulation.values);
    assert_eq!(values.len(), 1);
    assert!(
        values[0].1.starts_with("1800000001.500000:100000:"),
        "{values:?}"
    );
    // An answer that comes after the poll is over belongs to nothing.
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
    // Whatever is asked, the answer is about the first row.
    agent.spoil = Some(|packet| {
        if let Some(at) = packet.windows(4).position(|part| part == [31, 1, 1, 1]) {
            packet[at + 5] = 1;
        }
    });
    let text = target("a", "#no:public@127.0.0.1:::::2");
    let mut simulation = Simulation::new(&text, vec![agent], Pace::Burst);
    simulation.run(300 * S);
    assert_eq!(simulation.take(0), ["U:U"]);
    assert!(simulation.agent(1).asked.len() < 10);
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
    // One value each interval, whatever the wall clock says.
    assert_eq!(simulation.take(0).len(), 3);
    assert!(simulation.happenings.is_empty());
}
