//! `--export gexpr`: the packets of kymo and of collectl to a gmond for the same file.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use kymo_tests::{kymo, run};

const RAW: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/golden/vm-20261121-215607.raw.gz"
);

/// Plays the file with an export to a local port; returns each packet's parts without the host.
fn received(program: &str, words: &[&str], options: &str) -> BTreeSet<Vec<String>> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("an address").port();
    let export = format!("gexpr,127.0.0.1:{port}{options}");
    let reader = std::thread::spawn(move || {
        let (mut packets, mut room) = (BTreeSet::new(), [0; 2048]);
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a limit");
        while let Ok(length) = socket.recv(&mut room) {
            if &room[..length] == b"end" {
                return packets;
            }
            packets.insert(parts(&room[..length]));
        }
        panic!("no end came");
    });
    let output = Command::new(program)
        .args(["-p", RAW, "--export", &export])
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{program} {words:?}: {output:?}");
    let end = UdpSocket::bind("127.0.0.1:0").expect("a port");
    end.send_to(b"end", ("127.0.0.1", port))
        .expect("it is sent");
    reader.join().expect("packets")
}

/// Numbers and texts of a packet. A text follows its length and is padded to a multiple of four bytes.
fn parts(packet: &[u8]) -> Vec<String> {
    let mut rest = packet;
    let number = |rest: &mut &[u8]| {
        let (number, behind) = rest.split_first_chunk::<4>().expect("a number");
        *rest = behind;
        u32::from_be_bytes(*number)
    };
    let text = |rest: &mut &[u8]| {
        let length = number(rest) as usize;
        let (text, behind) = rest.split_at(length.next_multiple_of(4));
        *rest = behind;
        assert!(text[length..].iter().all(|&byte| byte == 0));
        String::from_utf8(text[..length].to_vec()).expect("text")
    };
    let id = number(&mut rest);
    assert!(!text(&mut rest).is_empty(), "a host");
    let mut found = vec![
        id.to_string(),
        text(&mut rest),
        number(&mut rest).to_string(),
    ];
    if id == 0x85 {
        found.extend([text(&mut rest), text(&mut rest)]);
    } else {
        assert_eq!(id, 0x80);
        found.extend((0..3).map(|_| text(&mut rest)));
        found.extend((0..4).map(|_| number(&mut rest).to_string()));
        found.extend((0..2).map(|_| text(&mut rest)));
    }
    assert!(rest.is_empty(), "{found:?}");
    found
}

#[test]
fn packets_are_those_of_collectl() {
    let ours_is = kymo().to_string_lossy().into_owned();
    for (words, options, least) in [
        (&["-sc"] as &[&str], "", 40),
        (&["-sdn"], "", 16),
        (&["-sm"], "", 40),
        (&["-sc"], ",g", 22),
        (&["-scdn"], ",G", 40),
        (&["-sm"], ",g", 12),
        (&["-sd"], ",i=2,max,ttl=7", 8),
        (&["-sn"], ",i=2,tot", 8),
        (&["-sd"], ",co", 8),
    ] {
        let theirs = received("/usr/bin/collectl", words, options);
        let ours = received(&ours_is, words, options);
        // collectl always sends 0 for shared memory, and counts pages of swap in other units.
        let alike = |packets: &BTreeSet<Vec<String>>| -> BTreeSet<Vec<String>> {
            let kept = packets
                .iter()
                .filter(|packet| !packet[1].contains("shared"));
            kept.cloned().collect()
        };
        let (theirs, ours) = (alike(&theirs), alike(&ours));
        let missing: Vec<_> = theirs.difference(&ours).collect();
        let more: Vec<_> = ours.difference(&theirs).collect();
        assert!(
            missing.is_empty() && more.is_empty(),
            "{words:?}{options}: {missing:?}, {more:?}"
        );
        assert!(
            ours.len() >= least,
            "{words:?}{options}: {} packets",
            ours.len()
        );
    }
}

#[test]
fn what_is_refused() {
    for (export, cause) in [
        ("gexpr", "gexpr,HOST:PORT"),
        ("gexpr,localhost", "gexpr,HOST:PORT"),
        ("gexpr,127.0.0.1:1,x", "it takes i=N"),
        ("gexpr,127.0.0.1:1,avg", "take i=SECONDS"),
        ("statsd", "proctree and vmstat"),
    ] {
        let output = run(&["-p", RAW, "-sc", "--export", export]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{export}: {said}");
        assert!(said.contains(cause), "{export}: {said}");
    }
    let odd = run(&["-p", RAW, "-sc", "--export", "lexpr,i=3,max", "-oT"]);
    assert!(odd.status.success(), "three is a multiple of one");
}
