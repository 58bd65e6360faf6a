use super::connection::parts;
use super::*;
use crate::sink::Kind;
use kymo_sys::clock::Stamp;
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::SimDisk;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;

#[test]
fn addresses_have_a_host_and_a_port() {
    for (address, host, port) in [
        ("rrd.example:1234", "rrd.example", "1234"),
        ("rrd.example", "rrd.example", "42217"),
        ("[::1]:7", "::1", "7"),
        ("[::1]", "::1", "42217"),
        ("fe80::1", "fe80::1", "42217"),
    ] {
        assert_eq!(parts(address), (host, port), "{address}");
    }
}

#[test]
fn words_of_a_line_are_escaped() {
    let mut out = Vec::new();
    put_escaped(&mut out, b"/a b\\c");
    assert_eq!(out, b"/a\\ b\\\\c");
}

/// Answers one BATCH of a client with these lines.
fn answer_batch(listener: &UnixListener, lines: &str) {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(&stream);
    let mut writer = &stream;
    let mut line = String::new();
    while line != ".\n" {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
        if line == "BATCH\n" {
            writer.write_all(b"0 Go ahead.\n").unwrap();
        }
    }
    writer.write_all(lines.as_bytes()).unwrap();
    let _until_closed = reader.read_line(&mut line);
}

#[test]
fn a_daemon_that_repeats_an_error_refuses_one_value() {
    let folder = std::env::temp_dir().join(format!("kymo-cached-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let socket = folder.join("daemon.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let daemon = std::thread::spawn(move || {
        answer_batch(&listener, "4 errors\n1 odd\n1 odd\n1 odd\n9 odd\n");
    });
    let address = format!("unix:{}", socket.display()).into_bytes();
    let files = Files::new(Arc::new(SimDisk::new(1)), 1).unwrap();
    let clock = Arc::new(SimClock::new(Stamp::default()));
    let mut cached = Cached::at(address, files, clock);
    let series = Series {
        path: "/logs/a.rrd".into(),
        folder_bytes: 6,
        name: b"a.rrd".to_vec(),
        step_s: 300,
        heartbeat_s: 600,
        kind: Kind::Gauge,
        max: [None; 2],
        archives: Arc::default(),
        points_kept_s: 0,
        log: Default::default(),
        max_age_s: None,
    };
    cached.begin(vec![series.clone(), series], &[]);
    cached.is_ready = vec![true; 2];
    let update = |target| Update {
        target,
        argument: b"1000:1:2",
        about: None,
    };
    let mut report = Report::default();
    cached.send(&[update(0), update(1)], &mut report).unwrap();
    let counts = cached.counts();
    assert_eq!((counts.kept, counts.refused), (1, 1));
    assert_eq!(report.refused.len(), 1);
    drop(cached);
    daemon.join().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
