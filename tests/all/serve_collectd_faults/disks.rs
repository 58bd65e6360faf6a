//! Full and slow disks, and a keeper that does not receive: losses are counted, and reported once.

use std::fs;
use std::io::Write as _;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kymo_tests::machine::{Tmpfs, must_skip, skipped};
use kymo_tests::served::kill;
use kymo_tests::{Running, Scratch};

use super::hub::{Hub, eventually, memory};
use super::packets::{gauge, gauges, name, now, sender};

/// Bound of the keeper's memory with the few series of these tests.
const MEMORY_BYTES: u64 = 128 << 20;

/// A large datagram without values: one part of an unknown type.
fn ballast() -> Vec<u8> {
    let length = 60_000u16;
    let mut packet = vec![0; usize::from(length)];
    packet[..2].copy_from_slice(&0x7777u16.to_be_bytes());
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet
}

/// Sends until the kernel has dropped more than before.
fn overflow(hub: &Hub, socket: &UdpSocket) {
    let (before, packet) = (hub.dropped(), ballast());
    eventually("a queue that is full", || {
        for _ in 0..200 {
            socket.send(&packet).expect("sent");
        }
        (hub.dropped() > before).then_some(())
    });
}

#[test]
fn what_the_kernel_drops_is_reported_once_over_all_keepers() {
    let mut hub = Hub::start("drops", "[store]\nfiles = \"never\"\n");
    let socket = sender("127.0.0.1", hub.port);
    let mut time = now() - 10_000;
    // With the next datagram that it delivers, the kernel reports the number of dropped ones.
    let mut store_one = |hub: &Hub| {
        let before = hub.last(&name("web")).unwrap_or(0);
        eventually("a value", || {
            time += 10;
            socket.send(&gauge("web", time, 1.0)).expect("sent");
            hub.last(&name("web")).filter(|&row| row > before)
        });
    };
    store_one(&hub);
    let keeper = hub.keeper();
    kill("-STOP", keeper);
    overflow(&hub, &socket);
    kill("-CONT", keeper);
    store_one(&hub);
    hub.says("datagrams dropped by the kernel");
    eventually("all of it", || {
        (hub.reported_drops() == hub.dropped()).then_some(())
    });
    // The next keeper knows the number reported so far.
    kill("-KILL", keeper);
    hub.served.next_child("keeper", keeper);
    store_one(&hub);
    assert_eq!(hub.reported_drops(), hub.dropped());
    // The next keeper counts datagrams that were dropped while there was no reader.
    let keeper = hub.keeper();
    kill("-STOP", keeper);
    overflow(&hub, &socket);
    kill("-KILL", keeper);
    hub.served.next_child("keeper", keeper);
    store_one(&hub);
    eventually("a report by the next one", || {
        (hub.reported_drops() == hub.dropped()).then_some(())
    });
    // At the end the keeper reports no further drops.
    let dropped = hub.dropped();
    hub.end();
    assert_eq!(hub.reported_drops(), dropped, "{:#?}", hub.served.said);
}

/// Each write and each sync of the keeper lasts five seconds.
#[test]
fn a_slow_disk_holds_up_what_is_stored_and_nothing_else() {
    if must_skip(&["strace"]) {
        return;
    }
    let mut hub = Hub::start("slow-disk", "[store]\nfiles = \"never\"\n");
    let (keeper, socket) = (hub.keeper(), sender("127.0.0.1", hub.port));
    let mut time = now() - 100_000;
    socket.send(&gauge("web", time, 1.0)).expect("sent");
    hub.ends_at(&name("web"), time);
    // A thousand new series, whose values are written together.
    let instances: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    let log = hub.scratch.text("strace");
    let slow = "pwrite64,pwritev,pwritev2,fdatasync,fsync,msync,sync_file_range,syncfs";
    let strace = Command::new("strace")
        .args(["-f", "-p", &keeper.to_string(), "-o", &log])
        .args(["-e", &format!("trace={slow}")])
        .args(["-e", &format!("inject={slow}:delay_enter=5000000")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let strace = Running(strace.expect("strace"));
    let calls = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    let (mut most, mut advances, mut row) = (0, 0, 0);
    let begun = Instant::now();
    // Long enough for several writes.
    while calls() < 4 || advances < 2 || begun.elapsed() < Duration::from_secs(12) {
        assert!(
            begun.elapsed() < Duration::from_secs(300),
            "{} calls, {advances}",
            calls()
        );
        time += 10;
        socket.send(&gauge("web", time, 1.0)).expect("sent");
        for host in 0..40 {
            let packet = gauges(&format!("h{host}"), &instances, time, 10, 1.0);
            socket.send(&packet).expect("sent");
        }
        std::thread::sleep(Duration::from_millis(50));
        most = most.max(memory(keeper));
        let path = hub.dir.join("rrdcached.sock");
        // The daemon may also be waiting for its disk.
        if let Ok(mut client) = kymo_tests::rrd_client::Client::unix(&path) {
            let now = super::hub::last(&mut client, &name("web")).unwrap_or(0);
            advances += usize::from(now > row);
            row = now.max(row);
        }
    }
    hub.shows_the_page("beside a slow disk");
    eprintln!("{} calls were slow, {} kB at most", calls(), most >> 10);
    drop(strace);
    // All waiting values are stored, up to the last.
    time += 10;
    socket.send(&gauge("web", time, 1.0)).expect("sent");
    hub.ends_at(&name("web"), time);
    assert!(most < MEMORY_BYTES, "{most} bytes");
    assert_eq!(hub.reported_drops(), hub.dropped());
    hub.is_unharmed(keeper);
}

#[test]
fn a_full_disk_is_counted_and_over_when_there_is_room() {
    if must_skip(&["mount", "umount"]) {
        return;
    }
    let scratch = Scratch::new("full-disk");
    let dir = scratch.path("data");
    let Some(_disk) = Tmpfs::mount(&dir, "48m") else {
        return skipped("nothing can be mounted here");
    };
    let config = "[store]\nfiles = \"never\"\n[record]\ncap = \"4M\"\n";
    let mut hub = Hub::start_on(scratch, config);
    let (keeper, socket) = (hub.keeper(), sender("127.0.0.1", hub.port));
    let mut time = now() - 900_000;
    let instances: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    let mut send = |rounds: usize| {
        for _ in 0..rounds {
            time += 10;
            for host in 0..40 {
                // All values differ, so that they need room.
                let value = (time * 7919 + host * 104_729) as f64 / 977.0;
                let packet = gauges(&format!("h{host}"), &instances, time, 10, value);
                socket.send(&packet).expect("sent");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        time
    };
    let series = "h0/p/gauge-0.rrd";
    let time = send(1);
    hub.ends_at(series, time);
    let filler = dir.join("filler");
    let is_refused = |hub: &mut Hub| {
        hub.served.listen(Duration::from_millis(1));
        let mut lines = hub.served.said.iter();
        lines.any(|line| line.contains("values that could not be written"))
    };
    eventually("values that could not be written", || {
        // The recorder now and then frees some of its space.
        fill(&filler);
        send(20);
        is_refused(&mut hub).then_some(())
    });
    hub.shows_the_page("on a full disk");
    assert!(hub.last(series).is_some(), "what is there can be read");
    fs::remove_file(&filler).expect("room");
    let before = hub.last(series);
    eventually("values after there was room", || {
        send(1);
        (hub.last(series) > before).then_some(())
    });
    assert!(memory(keeper) < MEMORY_BYTES);
    hub.is_unharmed(keeper);
}

/// Fills the disk to the last byte.
fn fill(path: &Path) {
    let append = fs::File::options().create(true).append(true).open(path);
    let mut file = append.expect("a file");
    for piece in [65_536, 4096, 1] {
        while file.write_all(&vec![b'x'; piece]).is_ok() {}
    }
}
