//! Servers that flood: a message with a length of two gigabytes, rows without end, settings without end. The
//! process that queries stays within its memory, reports the server, and goes on with the others.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use kymo_tests::Scratch;
use kymo_tests::served::{Served, status_of};

/// End of a flood, even if the client still reads.
const FLOOD_MAX: usize = 1 << 30;
/// Memory limit of the process: a few answers.
const MEMORY_KB_MAX: u64 = 256 << 10;

fn message(letter: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a length");
    [&[letter][..], &length.to_be_bytes(), body].concat()
}

/// Sends the same bytes until the other side closes.
fn flood(stream: &mut UnixStream, bytes: &[u8]) -> Option<()> {
    let piece = bytes.repeat((1 << 16) / bytes.len() + 1);
    for _ in 0..FLOOD_MAX / piece.len() {
        stream.write_all(&piece).ok()?;
    }
    Some(())
}

/// Reads one message of the client; returns its letter.
fn read(stream: &mut UnixStream) -> Option<u8> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes(head[1..].try_into().ok()?);
    let mut body = vec![0; usize::try_from(length).ok()?.checked_sub(4)?];
    stream.read_exact(&mut body).ok()?;
    Some(head[0])
}

/// Logs a client in and answers it, until it asks for rows.
fn until_rows(stream: &mut UnixStream) -> Option<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    stream
        .read_exact(&mut vec![0; length.checked_sub(4)?])
        .ok()?;
    let ready = message(b'Z', b"I");
    stream
        .write_all(&[message(b'R', &[0; 4]), ready.clone()].concat())
        .ok()?;
    let mut column = b"a\0".to_vec();
    // No table; the type text of any length, in text form.
    column.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0xff, 0xff, 0, 0, 0, 0, 0, 0]);
    let columns = [&[0, 1][..], &column].concat();
    loop {
        let answer = match read(stream)? {
            b'Q' => [message(b'C', b"SET\0"), ready.clone()].concat(),
            b'P' => [
                message(b'1', b""),
                message(b't', &[0; 2]),
                message(b'T', &columns),
            ]
            .concat(),
            b'S' => ready.clone(),
            b'B' => return Some(()),
            _ => continue,
        };
        stream.write_all(&answer).ok()?;
    }
}

fn answer(stream: &mut UnixStream, name: &str) -> Option<()> {
    until_rows(stream)?;
    let row = |bytes: usize| {
        let length = u32::try_from(bytes).expect("a length").to_be_bytes();
        message(b'D', &[&[0, 1][..], &length, &vec![b'x'; bytes]].concat())
    };
    stream.write_all(&message(b'2', b"")).ok()?;
    match name {
        "message" => {
            stream.write_all(&[b'D', 0x7f, 0xff, 0xff, 0xff]).ok()?;
            flood(stream, &[0; 4096])
        }
        "rows" => flood(stream, &row(4096)),
        "short" => flood(stream, &row(0)),
        _ => flood(
            stream,
            &message(b'S', &[&[b'n'; 1000][..], b"\0v\0"].concat()),
        ),
    }
}

#[test]
fn no_server_has_the_memory_of_the_others() {
    let scratch = Scratch::new("pg-floods");
    let mut config = "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\n".to_string();
    let floods = [
        ("message", "it sends more than an answer may have"),
        ("rows", "it sends more than an answer may have"),
        ("short", "it answers with too many rows"),
        ("settings", "it sends more than an answer may have"),
    ];
    for (name, _) in floods {
        let folder = scratch.path(name);
        fs::create_dir(&folder).expect("a folder");
        let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).expect("a socket");
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                answer(&mut stream, name);
            }
        });
        let folder = folder.display();
        config += &format!("[postgres.servers.{name}]\nsocket = \"{folder}\"\nrole = \"kymo\"\n");
    }
    let (path, data) = (scratch.text("kymo.toml"), scratch.text("data"));
    fs::write(&path, config).expect("a file");
    let mut served = Served::start(&["--config", &path, "--data", &data]);
    served.address();
    let pid = served.child("postgres").expect("its process");
    for (name, why) in floods {
        // A busy machine may not get so far within the five seconds of an answer; the next login may.
        served.has_said_all(&[&format!("postgres {name}: cannot ask "), why]);
    }
    let peak: u64 = status_of(pid, "VmHWM")[0].parse().expect("a number");
    assert!(peak < MEMORY_KB_MAX, "{peak} KiB");
    assert_eq!(served.child("postgres"), Some(pid), "it goes on");
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("limits");
    let limit = limits
        .lines()
        .find(|line| line.starts_with("Max address space"));
    assert!(
        !limit.expect("a limit")[25..47].contains("unlimited"),
        "{limits}"
    );
}
