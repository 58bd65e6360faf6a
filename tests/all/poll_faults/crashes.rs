//! The poller is killed, and starts again.

use super::bench::{Counters, Stage, now_ns};

/// After kill -9 in the middle of cycles files are whole, and what is in them is true.
#[test]
fn what_was_killed_goes_on_where_it_was() {
    let mut stage = Stage::new(2, 40);
    stage.configure(Counters::Named);
    for _ in 0..4 {
        let mut polling = stage.poll();
        stage.await_values(1, 19, now_ns(), 1);
        polling.assert_alive(&stage);
        polling.child().kill().expect("a process");
        polling.child().wait().expect("an end");
    }
    let begun_ns = now_ns();
    let mut polling = stage.poll();
    for device in 0..2 {
        for interface in [0, 7, 19] {
            stage.await_values(device, interface, begun_ns, 1);
        }
    }
    polling.assert_alive(&stage);
}
