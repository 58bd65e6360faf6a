//! Load beyond a hub's design: endless names from one sender.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kymo_sys::effort::effort;
use kymo_tests::Scratch;

use super::hub::{Hub, eventually, memory, waiting_bytes};
use super::packets::{gauge, gauges, name, now, sender};

/// New series of a sender at once, and per minute after that.
const AT_ONCE: u64 = 50_000;
const A_MINUTE: u64 = 10_000;
/// Each sender's network has its own budget.
const CONFIG: &str =
    "[collectd]\ntrusted = [\"127.0.0.1\", \"127.0.0.2\"]\n[store]\nfiles = \"never\"\n";
/// Bound of the keeper's memory under any load.
const MEMORY_BYTES: u64 = 512 << 20;
const NAMES_A_PACKET: u64 = 25;
/// A part of the shortest possible queue.
const WAITING_MAX: u64 = 64 << 10;

/// `make soak` sends a million names.
#[test]
fn names_without_end_from_one_sender_harm_no_other() {
    let mut hub = Hub::start_wary(Scratch::new("names"), CONFIG);
    let keeper = hub.keeper();
    let (flood, good) = (sender("127.0.0.1", hub.port), sender("127.0.0.2", hub.port));
    let begun = std::time::Instant::now();
    // Far in the past, so that there is room for many.
    let mut time = now() - 10_000_000;
    good.send(&gauge("good", time, 1.0)).expect("sent");
    hub.ends_at(&name("good"), time);
    let names = effort(60_000);
    let over = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let (over, port) = (&over, hub.port);
        let flooding = scope.spawn(move || {
            for first in (0..names).step_by(NAMES_A_PACKET as usize) {
                let instances: Vec<String> = (first..first + NAMES_A_PACKET)
                    .map(|n| format!("n{n}"))
                    .collect();
                let packet = gauges("flood", &instances, now() - 1000, 10, 1.0);
                flood.send(&packet).expect("sent");
                // The kernel could drop datagrams of any sender.
                while waiting_bytes(port) > WAITING_MAX {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        let mut most = 0;
        while !over.load(Ordering::Relaxed) {
            // Known series go on, and others can be created.
            time += 10;
            good.send(&gauge("good", time, 1.0)).expect("sent");
            hub.ends_at(&name("good"), time);
            hub.shows_the_page("while names come");
            most = most.max(memory(keeper));
        }
        flooding.join().expect("a flood");
        most
    });
    good.send(&gauge("new", time, 1.0)).expect("sent");
    hub.ends_at(&name("new"), time);
    let made = eventually("an end of the new names", || {
        let before = hub.names().len();
        std::thread::sleep(Duration::from_millis(500));
        let made = hub.names().len();
        (made == before).then_some(made as u64)
    });
    let most = most.max(memory(keeper));
    eprintln!(
        "{made} series of {names} names, {} MB at most",
        most / 1_000_000
    );
    let minutes = begun.elapsed().as_secs() / 60 + 1;
    assert!(made <= AT_ONCE + minutes * A_MINUTE + 2, "{made} series");
    assert!(made > AT_ONCE.min(names) / 2, "{made} series");
    assert!(most < MEMORY_BYTES, "{most} bytes");
    hub.is_unharmed(keeper);
    hub.end();
    // Without the series of the good sender.
    let refused = hub.reported("values of series that may not be made");
    assert_eq!(refused, names + 2 - made, "{:#?}", hub.served.said);
}
