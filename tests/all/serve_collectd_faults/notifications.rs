//! Notifications become lines for the administrator, and a flood of them becomes few lines.

use std::time::{Duration, Instant};

use kymo_wire::collectd::{Cdtime, Identifier, Notification, Severity, put_notification};

use super::hub::{Hub, eventually};
use super::packets::{now, sender};

fn notification(host: &str, message: &str) -> Vec<u8> {
    let identifier = Identifier {
        host: host.as_bytes(),
        plugin: b"df",
        plugin_instance: b"root",
        type_name: b"percent_bytes",
        type_instance: b"free",
    };
    let mut packet = Vec::new();
    let notification = Notification {
        identifier: &identifier,
        time: Cdtime::from_seconds(now()),
        severity: Severity::Failure,
        message: message.as_bytes(),
    };
    assert!(put_notification(&mut packet, &notification));
    packet
}

#[test]
fn notifications_are_one_line_a_second_with_their_count() {
    let mut hub = Hub::start("notifications", "[store]\nfiles = \"never\"\n");
    let socket = sender("127.0.0.1", hub.port);
    let begun = Instant::now();
    let first = notification("web1", "\x1b[2J is 3 %");
    socket.send(&first).expect("sent");
    let line = hub.says("1 notification: ");
    assert!(
        line.ends_with("failure of web1/df-root/percent_bytes-free: \\x1b[2J is 3 %"),
        "{line}"
    );
    let many = 2_000;
    for n in 1..=many {
        socket
            .send(&notification("web2", &format!("number {n}")))
            .expect("sent");
        if n % 100 == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    eventually("all of them", || {
        (hub.reported("notification") == 1 + many).then_some(())
    });
    let lines = hub.served.said.iter();
    let lines = lines.filter(|line| line.contains(" notification")).count() as u64;
    assert!(
        lines <= begun.elapsed().as_secs() + 2,
        "{:#?}",
        hub.served.said
    );
    assert!(
        hub.says(&format!("number {many}"))
            .contains("the last: failure of web2/")
    );
}
