//! Devices that restart, wrap, renumber, lose interfaces, walk without end, or are dead.

use std::time::Instant;

use kymo_agentfarm::Lie;
use kymo_agentfarm::traffic::{Direction, rate};
use kymo_wire::snmp::Oid;

use super::bench::{CYCLE_S, Counters, Stage, known, now_ns, target};

/// Wraps of 32-bit and 64-bit counters, handled as rrdtool's COUNTER does: no point is unknown or of another rate.
#[test]
fn counters_that_wrap_are_no_gap() {
    for counters in [Counters::Short, Counters::Named] {
        let mut stage = Stage::new(1, 4);
        stage.configure(counters);
        // The quickest wraps after a few cycles, the others later, and one of them never.
        let quickest = (0..4)
            .map(|n| rate(0, n, Direction::In))
            .max()
            .expect("four");
        stage.count_from(0, (quickest * CYCLE_S * 4).wrapping_neg(), false);
        let mut polling = stage.poll();
        stage.await_values(0, 0, 0, 9);
        for interface in 0..4 {
            let points = stage.points(0, interface);
            let known = points.iter().skip_while(|point| point[0].is_nan()).skip(1);
            let known: Vec<_> = known.take_while(|point| !point[0].is_nan()).collect();
            assert!(known.len() >= 6, "{points:?}");
            for (way, direction) in [Direction::In, Direction::Out].into_iter().enumerate() {
                let exact = rate(0, interface, direction) as f64;
                let good = |point: &&[f64; 2]| (point[way] - exact).abs() < exact;
                assert!(known.iter().all(good), "{known:?} is not {exact}");
            }
        }
        polling.assert_alive(&stage);
    }
}

/// A device that restarts counts from 0: the difference would look like a wrap. One value is unknown, the later ones are
/// right. A wrap of sysUpTime is no restart.
#[test]
fn a_restart_is_an_unknown_value_and_a_wrap_of_sysuptime_is_none() {
    let mut stage = Stage::new(2, 8);
    stage.configure(Counters::Named);
    let mut polling = stage.poll();
    stage.await_values(0, 0, 0, 2);
    stage.count_from(0, 0, true);
    stage.change(1, |behaviour, now_ns| behaviour.wrap_uptime_in(5.0, now_ns));
    let seen = stage.watch(
        7,
        (0..2).flat_map(|device| (0..4).map(move |n| (device, n))),
    );
    for (&(device, _), samples) in &seen {
        let unknown = samples.len() - known(samples);
        // Only the value at the restart is unknown.
        assert_eq!(
            unknown,
            usize::from(device == 0),
            "device {device}: {samples:?}\n{}",
            stage.log()
        );
        assert!(
            samples.len() >= 5,
            "device {device}: {samples:?}\n{}",
            stage.log()
        );
    }
    polling.assert_alive(&stage);
}

/// Interfaces get other numbers: named targets find theirs again, and no target gets other counters.
#[test]
fn renumbered_interfaces_are_found_again_and_vanished_ones_are_unknown() {
    let mut stage = Stage::new(2, 24);
    stage.configure(Counters::Named);
    let mut polling = stage.poll();
    for device in [0, 1] {
        stage.await_values(device, 0, 0, 2);
    }
    stage.change(0, |behaviour, now_ns| behaviour.renumber(5, now_ns));
    stage.change(1, |behaviour, now_ns| behaviour.vanish(3, now_ns));
    let changed_ns = now_ns();
    let seen = stage.watch(
        7,
        (0..2).flat_map(|device| (0..12).map(move |n| (device, n))),
    );
    for (&(device, interface), samples) in &seen {
        let late = samples
            .iter()
            .filter(|s| s.stamp_ns > changed_ns + CYCLE_S * 1_000_000_000);
        let late: Vec<_> = late.copied().collect();
        match (device, interface) {
            (1, 9..) => assert_eq!(known(&late), 0, "{interface}: {samples:?}"),
            _ => assert!(
                known(&late) >= 3,
                "d{device}_{interface}: {samples:?}\n{}",
                stage.log()
            ),
        }
    }
    // The vanished interfaces return.
    stage.change(1, |behaviour, now_ns| behaviour.vanish(0, now_ns));
    stage.await_values(1, 11, now_ns(), 2);
    polling.assert_alive(&stage);
}

/// An agent with endless tables, and one that repeats itself: their names are not found, and no other device is delayed.
#[test]
fn a_walk_ends() {
    for lie in [Lie::Endless, Lie::Stuck] {
        let mut stage = Stage::new(2, 8);
        stage.configure(Counters::Named);
        stage.change(0, |behaviour, _| behaviour.lie = Some(lie));
        let mut polling = stage.poll();
        stage.await_values(1, 3, 0, 6);
        let walked = stage.farm.counts_of(0).walks;
        assert!(walked < 60_000, "{lie:?}: {walked} requests");
        assert!(
            stage
                .newest(0, 0)
                .is_none_or(|sample| sample.values.is_none())
        );
        polling.assert_alive(&stage);
    }
}

/// v1: one missing object spoils a whole reply; the other values are still known.
#[test]
fn one_of_many_that_is_not_there_costs_itself_alone() {
    let mut stage = Stage::new(1, 24);
    stage.configure(Counters::Short);
    let missing = Oid::parse("1.3.6.1.2.1.2.2.1.16.8").expect("an OID");
    stage.change(0, |behaviour, _| behaviour.missing.push(missing));
    let mut polling = stage.poll();
    stage.await_values(0, 0, 0, 2);
    let seen = stage.watch(3, (0..24).map(|interface| (0, interface)));
    for (&(_, interface), samples) in &seen {
        assert_eq!(
            known(samples) > 0,
            interface != 7,
            "{interface}: {samples:?}"
        );
    }
    polling.assert_alive(&stage);
}

/// A dead device delays no other device, and is polled again after its return.
#[test]
fn a_dead_device_costs_the_others_nothing() {
    let mut stage = Stage::new(4, 16);
    stage.configure(Counters::Named);
    stage.change(2, |behaviour, _| behaviour.dead = true);
    let mut polling = stage.poll();
    stage.await_values(0, 0, 0, 1);
    let seen = stage.watch(6, [0, 1, 3].map(|device| (device, 3)).into_iter());
    for samples in seen.values() {
        assert!(known(samples) >= 5, "{samples:?}\n{}", stage.log());
    }
    stage.change(2, |behaviour, _| behaviour.dead = false);
    stage.await_values(2, 3, now_ns(), 2);
    polling.assert_alive(&stage);
}

/// An unknown host name counts as a dead device.
#[test]
fn a_name_that_is_not_found_costs_its_own_targets_alone() {
    let mut stage = Stage::new(1, 4);
    stage.say(&target(
        "nowhere",
        "1:public@no-such-host.invalid::0.2:2:1:2",
    ));
    stage.configure(Counters::Named);
    let mut polling = stage.poll();
    stage.await_values(0, 3, 0, 4);
    polling.assert_alive(&stage);
}

/// 10,000 dead devices and a living one, which is polled in each cycle.
#[test]
fn ten_thousand_devices_dead_at_once() {
    let mut stage = Stage::new(10_000, 10_000);
    for device in 1..10_000 {
        stage.change(device, |behaviour, _| behaviour.dead = true);
    }
    stage.configure_sums();
    let begun = Instant::now();
    let mut polling = stage.poll();
    stage.await_values(0, 0, 0, 5);
    let counts = |device| stage.farm.counts_of(device).requests;
    let asked = (1..10_000).filter(|&device| counts(device) > 0).count();
    assert_eq!(asked, 9_999);
    // In each cycle, each device gets at most its attempts and a probe.
    let cycles = begun.elapsed().as_secs() / CYCLE_S + 1;
    let requests = stage.farm.counts().requests;
    assert!(
        requests < 10_000 * 4 * (cycles + 1),
        "{requests} in {cycles} cycles"
    );
    polling.assert_alive(&stage);
}
