//! A steady load for tests, until killed: `load burn THREADS PERCENT`, where the leader sleeps and its threads burn; `load doze`,
//! one thread that burns a little now and then; `load udp`, datagrams on loopback; `load disk FILE`, synchronous writes.

use std::io::{Seek, SeekFrom, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["burn", threads, percent] => burn(number(threads), number(percent)),
        ["doze"] => doze(),
        ["udp"] => udp(),
        ["disk", file] => disk(file),
        _ => panic!("usage: load burn THREADS PERCENT | doze | udp | disk FILE"),
    }
}

fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// Each thread uses `percent` of a core in CPU time, and catches up on time that others took from it.
fn burn(threads: u64, percent: u64) {
    for _ in 0..threads {
        std::thread::spawn(move || {
            let start = Instant::now();
            loop {
                let wanted = start.elapsed().as_nanos() as u64 / 100 * percent;
                // After a long wait for a CPU, a thread does not catch up in one piece.
                let used = kymo_sys::clock::thread_cpu_ns();
                let until = wanted.min(used + 100_000_000);
                while kymo_sys::clock::thread_cpu_ns() < until {
                    // Some of the load is in the kernel.
                    std::hint::black_box(std::fs::metadata("/proc/self/stat").is_ok());
                    (0..3000u64).for_each(|n| {
                        std::hint::black_box(n);
                    });
                }
                std::thread::sleep(Duration::from_millis(100 - percent.min(90)));
            }
        });
    }
    std::thread::sleep(Duration::from_secs(3600));
}

/// Burns 5 ms, then rests for 50 to 550 ms.
fn doze() {
    let mut chance = u64::from(std::process::id());
    loop {
        let until = kymo_sys::clock::thread_cpu_ns() + 5_000_000;
        while kymo_sys::clock::thread_cpu_ns() < until {
            std::hint::black_box(std::fs::metadata("/proc/self/stat").is_ok());
        }
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        std::thread::sleep(Duration::from_millis(50 + (chance >> 33) % 500));
    }
}

fn udp() {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let to = receiver.local_addr().expect("its address");
    let mut buffer = [0u8; 1000];
    loop {
        for _ in 0..20 {
            sender.send_to(&buffer, to).expect("a datagram is sent");
            receiver.recv(&mut buffer).expect("a datagram is received");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn disk(file: &str) {
    let mut file = std::fs::File::create(file).expect("a file");
    let block = vec![7u8; 256 << 10];
    loop {
        file.seek(SeekFrom::Start(0)).expect("seek");
        file.write_all(&block).expect("write");
        file.sync_data().expect("sync");
        std::thread::sleep(Duration::from_millis(20));
    }
}
