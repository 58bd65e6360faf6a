//! Measures the parser of collectd's packets: values per second on one core, for plain, signed and encrypted packets, and
//! with hashing of each name from its changed fields. `cargo run --release -p kymo-wire --example collectd_speed`

#![allow(clippy::print_stderr, reason = "a person reads it")]
#![allow(clippy::unwrap_used)]

use std::hint::black_box;

use kymo_wire::collectd::{
    Cdtime, Changed, Datagram, Encoder, Identifier, Item, PACKET_DEFAULT, Pushed, ReplayWindow,
    SecurityLevel, Users, Value, ValueList, Values, encrypt, put_update, sign,
};

/// One host's values of an interval, like those of collectd's usual plugins: packets of 25 value lists.
fn sent(host: &str, seconds: u64) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut encoder = Encoder::new(PACKET_DEFAULT);
    for (number, (plugin, plugin_instance, type_name, type_instance, values)) in
        names().iter().enumerate()
    {
        let list = ValueList {
            identifier: Identifier {
                host: host.as_bytes(),
                plugin: plugin.as_bytes(),
                plugin_instance: plugin_instance.as_bytes(),
                type_name: type_name.as_bytes(),
                type_instance: type_instance.as_bytes(),
            },
            // Each plugin reads its values at a different moment.
            time: Cdtime((seconds << 30) + (number as u64 / 8) * 1_000_003),
            interval: Cdtime::from_seconds(10),
            values,
        };
        assert_eq!(encoder.push(&list), Pushed::Added);
        if number % 25 == 24 {
            packets.push(encoder.payload().to_vec());
            encoder.clear();
        }
    }
    packets
}

/// Plugin, instance, type, instance, values.
type Name = (&'static str, String, &'static str, &'static str, Vec<Value>);

fn names() -> Vec<Name> {
    let mut names: Vec<Name> = Vec::new();
    for cpu in 0..6 {
        for state in [
            "user",
            "system",
            "wait",
            "nice",
            "swap",
            "interrupt",
            "softirq",
            "steal",
            "idle",
        ] {
            names.push((
                "cpu",
                cpu.to_string(),
                "cpu",
                state,
                vec![Value::Derive(123_456_789 + cpu)],
            ));
        }
    }
    for state in [
        "used",
        "buffered",
        "cached",
        "free",
        "slab_recl",
        "slab_unrecl",
    ] {
        names.push((
            "memory",
            String::new(),
            "memory",
            state,
            vec![Value::Gauge(1.234_567e9)],
        ));
    }
    for interface in ["lo", "eth0", "eth1"] {
        for type_name in ["if_octets", "if_packets", "if_errors", "if_dropped"] {
            let values = vec![Value::Derive(1 << 40), Value::Derive(1 << 39)];
            names.push(("interface", interface.to_string(), type_name, "", values));
        }
    }
    for disk in ["sda", "sdb"] {
        for type_name in ["disk_octets", "disk_ops", "disk_time", "disk_merged"] {
            names.push((
                "disk",
                disk.to_string(),
                type_name,
                "",
                vec![Value::Derive(1 << 33); 2],
            ));
        }
    }
    names.truncate(74);
    names.push((
        "load",
        String::new(),
        "load",
        "",
        vec![Value::Gauge(0.25), Value::Gauge(0.5), Value::Gauge(1.0)],
    ));
    names
}

/// CPU time of this program in nanoseconds, which other programs do not disturb.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Runs `work` for a second, five times, and prints the highest rate of values per second.
fn best(what: &str, values: u64, mut work: impl FnMut()) {
    let mut best = 0.0f64;
    for _ in 0..5 {
        let (began, mut rounds) = (cpu_ns(), 0u64);
        while cpu_ns() - began < 1_000_000_000 {
            work();
            rounds += 1;
        }
        best = best.max((rounds * values) as f64 * 1e9 / (cpu_ns() - began) as f64);
    }
    eprintln!(
        "{what}: {:.1} M a second, {:.1} ns each",
        best / 1e6,
        1e9 / best
    );
}

fn each(
    datagram: &mut [u8],
    level: SecurityLevel,
    users: Option<&Users>,
    mut take: impl FnMut(Values),
) {
    for section in Datagram::new(datagram, level, users) {
        let mut parts = section.unwrap().parts();
        while let Some(item) = parts.next_item() {
            match item.unwrap() {
                Item::Values(values) => take(values),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Hashes of the previous name's prefixes; a name rehashes only the fields from the first changed one on.
#[derive(Default)]
struct Hashes {
    host: u64,
    plugin: u64,
    type_name: u64,
}

impl Hashes {
    fn name(&mut self, values: &Values) -> u64 {
        let (id, changed) = (&values.identifier, values.changed);
        if changed.has(Changed::HOST) {
            self.host = mix(7, id.host);
        }
        if changed.has(Changed::PLUGIN)
            || changed.has(Changed::PLUGIN_INSTANCE)
            || changed.has(Changed::HOST)
        {
            self.plugin = mix(mix(self.host, id.plugin), id.plugin_instance);
        }
        if changed.has(Changed::NAME) {
            self.type_name = mix(mix(self.plugin, id.type_name), id.type_instance);
        }
        self.type_name
    }
}

fn mix(seed: u64, text: &[u8]) -> u64 {
    let mut hash = seed ^ (text.len() as u64);
    for chunk in text.chunks(8) {
        let mut cell = [0; 8];
        cell[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(cell))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }
    hash
}

fn main() {
    let hosts = (0..290).map(|number| sent(&format!("web{number:03}.example.org"), 1_700_000_000));
    let plain: Vec<Vec<u8>> = hosts.flatten().collect();
    let lists = 290 * names().len() as u64;
    let numbers: usize = names().iter().map(|name| name.4.len()).sum();
    let bytes: usize = plain.iter().map(Vec::len).sum();
    eprintln!(
        "{} packets of {} bytes, {:.1} value lists and {:.1} numbers each",
        plain.len(),
        bytes / plain.len(),
        lists as f64 / plain.len() as f64,
        290.0 * numbers as f64 / plain.len() as f64
    );
    let mut users = Users::default();
    users.add(b"user0", b"a password").unwrap();
    let mut datagrams = plain.clone();
    // With a number as argument, runs this many rounds and stops. To count instructions, run `valgrind --tool=callgrind`
    // with two numbers and take the difference.
    if let Some(rounds) = std::env::args().nth(1) {
        for _ in 0..rounds.parse().unwrap() {
            for datagram in &mut datagrams {
                each(datagram, SecurityLevel::None, None, |values| {
                    black_box(&values);
                });
            }
        }
        return;
    }
    best("plain", lists, || {
        for datagram in &mut datagrams {
            each(datagram, SecurityLevel::None, None, |values| {
                black_box(&values);
            });
        }
    });
    let mut hashes = Hashes::default();
    best("plain, names hashed, numbers summed", lists, || {
        for datagram in &mut datagrams {
            each(datagram, SecurityLevel::None, None, |values| {
                let sum: f64 = values
                    .values
                    .iter()
                    .map(|value| match value {
                        Value::Gauge(number) => number,
                        Value::Derive(number) => number as f64,
                        Value::Counter(number) | Value::Absolute(number) => number as f64,
                    })
                    .sum();
                black_box((hashes.name(&values), sum));
            });
        }
    });
    let mut text = Vec::new();
    best("plain, as rrdtool's text", lists, || {
        for datagram in &mut datagrams {
            each(datagram, SecurityLevel::None, None, |values| {
                text.clear();
                put_update(&mut text, values.time, values.values.iter());
                black_box(&text);
            });
        }
    });
    protected(&plain, lists, &users);
}

fn protected(plain: &[Vec<u8>], lists: u64, users: &Users) {
    let mut signed: Vec<Vec<u8>> = vec![Vec::new(); plain.len()];
    let mut encrypted = signed.clone();
    for (at, payload) in plain.iter().enumerate() {
        sign(&mut signed[at], b"user0", b"a password", payload);
        encrypt(
            &mut encrypted[at],
            b"user0",
            b"a password",
            &[at as u8; 16],
            payload,
        );
    }
    best("signed", lists, || {
        for datagram in &mut signed {
            each(datagram, SecurityLevel::Sign, Some(users), |values| {
                black_box(&values);
            });
        }
    });
    let mut scratch = Vec::new();
    best("encrypted (and copied)", lists, || {
        for datagram in &encrypted {
            scratch.clear();
            scratch.extend_from_slice(datagram);
            each(
                &mut scratch,
                SecurityLevel::Encrypt,
                Some(users),
                |values| {
                    black_box(&values);
                },
            );
        }
    });
    let (mut window, mut number) = (ReplayWindow::default(), 0u64);
    best("packets into a full replay window", 1000, || {
        for _ in 0..1000 {
            number += 1;
            let unique = [number.to_le_bytes(), (!number).to_le_bytes()].concat();
            black_box(window.admit(b"user0", &unique, number / 4000));
        }
    });
}
