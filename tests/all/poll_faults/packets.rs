//! Packets that are lost, repeated, late, or lies.

use kymo_agentfarm::{Broken, Lie, Percent};

use super::bench::{CYCLE_S, Counters, Stage, known, now_ns};

/// A loss of 1 % costs no values, 20 % few: three attempts fail together in 8 of 1,000.
#[test]
fn losses_are_asked_for_again() {
    let mut stage = Stage::new(2, 40);
    stage.configure(Counters::Named);
    stage.change(0, |behaviour, _| behaviour.loss = Percent(1.0));
    stage.change(1, |behaviour, _| behaviour.loss = Percent(20.0));
    let mut polling = stage.poll();
    stage.await_values(0, 0, 0, 2);
    stage.await_values(1, 0, 0, 2);
    for device in [0, 1] {
        let seen = stage.watch(8, (0..20).map(|interface| (device, interface)));
        let known: usize = seen.values().map(|samples| known(samples)).sum();
        assert!(
            known >= 20 * 6,
            "device {device}: {known} values\n{}",
            stage.log()
        );
    }
    polling.assert_alive(&stage);
}

/// A reply that arrives after the next poll has begun belongs to its own poll or to none.
#[test]
fn late_and_repeated_replies_are_never_those_of_another_poll() {
    let mut stage = Stage::new(2, 8);
    stage.configure(Counters::Named);
    let mut polling = stage.poll();
    stage.await_values(0, 0, 0, 2);
    stage.change(0, |behaviour, _| behaviour.duplicated = Percent(100.0));
    stage.change(1, |behaviour, _| {
        behaviour.late = Percent(40.0);
        behaviour.late_us = 2_500_000;
    });
    let seen = stage.watch(
        12,
        (0..2).flat_map(|device| (0..4).map(move |n| (device, n))),
    );
    assert!(
        known(&seen[&(0, 3)]) >= 9,
        "{:?}\n{}",
        seen[&(0, 3)],
        stage.log()
    );
    assert!(
        known(&seen[&(1, 3)]) >= 1,
        "{:?}\n{}",
        seen[&(1, 3)],
        stage.log()
    );
    polling.assert_alive(&stage);
}

/// A liar's values are not stored, other devices are polled as usual, and all is well once the liar stops.
#[test]
fn lies_are_not_stored() {
    // Lies about walks and about the order of varbinds have their own tests; a reply from another address is good.
    let mut lies: Vec<(&str, Lie)> = Lie::ALL
        .into_iter()
        .filter(|(_, lie)| matches!(lie, Lie::Id | Lie::Names | Lie::Community | Lie::Texts))
        .collect();
    lies.extend(Broken::ALL.map(|(word, broken)| (word, Lie::Broken(broken))));
    let devices = u32::try_from(lies.len()).expect("few") + 1;
    let mut stage = Stage::new(devices, devices * 2);
    stage.configure(Counters::Short);
    let mut polling = stage.poll();
    for device in 0..devices {
        stage.await_values(device, 0, 0, 2);
    }
    for (device, &(_, lie)) in (1..).zip(&lies) {
        stage.change(device, |behaviour, _| behaviour.lie = Some(lie));
    }
    let told_ns = now_ns();
    let seen = stage.watch(6, (0..devices).map(|device| (device, 1)));
    assert!(
        known(&seen[&(0, 1)]) >= 4,
        "{:?}\n{}",
        seen[&(0, 1)],
        stage.log()
    );
    for (device, (word, _)) in (1..).zip(&lies) {
        let samples = seen[&(device, 1)].iter();
        // Requests of the cycle before the lies had true answers.
        let after = |stamp_ns| stamp_ns > told_ns + CYCLE_S * 1_000_000_000;
        let late: Vec<_> = samples
            .filter(|sample| after(sample.stamp_ns))
            .copied()
            .collect();
        assert_eq!(known(&late), 0, "{word}: {late:?}");
    }
    let honest_ns = now_ns();
    for device in 1..devices {
        stage.change(device, |behaviour, _| behaviour.lie = None);
    }
    for device in 1..devices {
        stage.await_values(device, 1, honest_ns, 2);
    }
    polling.assert_alive(&stage);
}

/// Replies are matched by the names in them, as far as they go.
#[test]
fn a_reply_from_another_address_or_of_another_order_is_good() {
    let mut stage = Stage::new(3, 12);
    stage.configure(Counters::Short);
    stage.change(0, |behaviour, _| behaviour.lie = Some(Lie::Address));
    stage.change(1, |behaviour, _| behaviour.lie = Some(Lie::Reversed));
    let mut polling = stage.poll();
    stage.await_values(0, 3, 0, 4);
    stage.await_values(1, 3, 0, 4);
    // A value missing in a reply is unknown or requested again; a repeated value is the same.
    for lie in [Lie::Fewer, Lie::More] {
        stage.change(2, |behaviour, _| behaviour.lie = Some(lie));
        stage.watch(4, (0..4).map(|interface| (2, interface)));
    }
    polling.assert_alive(&stage);
}

/// tooBig, and silence on requests that are too long for a device: the poller asks both for less.
#[test]
fn devices_that_answer_little_at_once_are_polled_in_pieces() {
    let mut stage = Stage::new(3, 60);
    stage.configure(Counters::Named);
    stage.change(0, |behaviour, _| behaviour.reply_bytes_max = 300);
    stage.change(1, |behaviour, _| behaviour.varbinds_max = 7);
    let mut polling = stage.poll();
    for device in 0..3 {
        for interface in [0, 10, 19] {
            stage.await_values(device, interface, 0, 2);
        }
    }
    polling.assert_alive(&stage);
}
