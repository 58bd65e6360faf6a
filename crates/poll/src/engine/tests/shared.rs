//! Tests of several sessions of one agent, such as VLAN communities of a switch.

use super::network::{Agent, MS, S, Simulation, target};
use crate::engine::{Empty, Happening, Pace};

/// Targets of `public@1`, `public@2` ... at one address.
fn vlans(count: u32) -> String {
    (1..=count)
        .map(|n| target(&format!("v{n}"), &format!("1:public\\@{n}@127.0.0.1:::::2")))
        .collect()
}

/// A switch makes one answer at a time. When asked for 60 communities at once it answered 5.
#[test]
fn communities_of_a_slow_switch_are_asked_one_after_the_other() {
    for (delay_ms, until_s) in [(1, 3), (30, 5), (100, 11), (300, 25)] {
        let mut agent = Agent::new(1);
        (agent.delay_ns, agent.serial_ns) = (delay_ms * MS, delay_ms * MS);
        let mut simulation = Simulation::new(&vlans(60), vec![agent], Pace::Burst);
        simulation.run(until_s * S);
        let known = simulation.values.iter().filter(|of| !of.1.contains('U'));
        assert_eq!(known.count(), 60, "{delay_ms}");
        assert!(simulation.agent(1).lost < 10, "{delay_ms}");
        assert!(simulation.happenings.is_empty());
        assert!(simulation.reasons.is_empty());
    }
}

/// Lost packets of many sessions were all sent again at the same moment and lost again.
#[test]
fn what_many_sessions_lost_is_sent_again_bit_by_bit() {
    let mut agent = Agent::new(1);
    (agent.delay_ns, agent.serial_ns, agent.loses) = (5 * MS, 5 * MS, 4);
    let mut simulation = Simulation::new(&vlans(60), vec![agent], Pace::Burst);
    simulation.run(900 * S);
    let unknown = simulation.values.iter().filter(|of| of.1.contains('U'));
    assert_eq!((simulation.values.len(), unknown.count()), (180, 0));
    assert!(simulation.agent(1).lost < 10);
}

/// A dead switch of 60 communities was 60 dead devices, with 60 lines and 720 packets.
#[test]
fn a_dead_switch_is_one_dead_device() {
    let mut agent = Agent::new(1);
    agent.is_dead = true;
    let mut simulation = Simulation::new(&vlans(60), vec![agent], Pace::Burst);
    simulation.run(20 * S);
    assert_eq!(simulation.values.len(), 60);
    assert_eq!(simulation.happenings, [Happening::Silent { session: 0 }]);
    let all: Vec<usize> = (0..60).collect();
    assert_eq!(simulation.reasons, [(Empty::NoAnswer, all)]);
    let packets = simulation.agent(1).requests.len();
    assert!(packets < 90, "{packets}");
    simulation.run(880 * S);
    assert_eq!(simulation.happenings.len(), 1);
    simulation.agent(1).is_dead = false;
    simulation.values.clear();
    simulation.run(300 * S);
    assert_eq!(simulation.happenings[1..], [Happening::Back { session: 0 }]);
    let known = simulation.values.iter().filter(|of| !of.1.contains('U'));
    assert_eq!(known.count(), 60);
}

/// A wrong community is no dead device and delays no other one.
#[test]
fn wrong_communities_are_said_and_delay_nobody() {
    for right in [vec![60], vec![1, 30], (4..=60).collect::<Vec<u32>>()] {
        let mut agent = Agent::new(1);
        let names = right.iter().map(|n| format!("public@{n}").into_bytes());
        agent.communities = names.collect();
        let mut simulation = Simulation::new(&vlans(60), vec![agent], Pace::Burst);
        simulation.run(7 * S);
        for n in &right {
            let values = simulation.take(n - 1);
            assert!(matches!(&values[..], [one] if !one.contains('U')), "{n}");
        }
        simulation.run(230 * S);
        assert!(simulation.happenings.is_empty());
        let wrong = (1..=60u32).filter(|n| !right.contains(n));
        let wrong: Vec<usize> = wrong.map(|n| n as usize - 1).collect();
        assert_eq!(simulation.reasons, [(Empty::NoCommunity, wrong)]);
    }
}

/// If an agent falls silent within a cycle, the cycles of all its sessions end.
#[test]
fn an_agent_that_falls_silent_is_not_waited_for() {
    let mut agent = Agent::new(1);
    (agent.delay_ns, agent.serial_ns) = (30 * MS, 30 * MS);
    let mut simulation = Simulation::new(&vlans(60), vec![agent], Pace::Burst);
    simulation.run(S);
    simulation.agent(1).is_dead = true;
    simulation.run(30 * S);
    assert_eq!(simulation.values.len(), 60);
    assert!(
        simulation.happenings.is_empty(),
        "some sessions had answers"
    );
    simulation.run(300 * S);
    assert_eq!(simulation.happenings, [Happening::Silent { session: 0 }]);
}

/// Phases depended on the community, so that a switch was asked at 60 moments of the interval.
#[test]
fn sessions_of_a_host_have_one_phase() {
    let text = vlans(20) + &target("other", "1:public@127.0.0.2:::::2");
    let agents = vec![Agent::new(1), Agent::new(1)];
    let mut simulation = Simulation::new(&text, agents, Pace::Spread);
    simulation.run(350 * S);
    simulation.values.clear();
    simulation.run(300 * S);
    let second = |text: &str| text.split('.').next().unwrap().parse::<u64>().unwrap();
    let of_vlans = simulation.values.iter().filter(|of| of.0 < 20);
    let seconds: Vec<u64> = of_vlans.map(|of| second(&of.1)).collect();
    assert_eq!(seconds.len(), 20);
    let span = seconds.iter().max().unwrap() - seconds.iter().min().unwrap();
    assert!(span <= 1, "{seconds:?}");
}
