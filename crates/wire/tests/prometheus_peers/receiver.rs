//! The program `prometheus` receives samples by remote write from this test, and answers a query with them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use kymo_wire::remote_write::http::{CONTENT_ENCODING, VERSION_HEADER, is_tried_again};
use kymo_wire::remote_write::{WriteEncoder, WriteLabel, WriteSample, WriteVersion, compress};

use super::peer::{Ended, Folder};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn prometheus_takes_what_is_sent() {
    let folder = Folder::new("receiver");
    std::fs::write(folder.path.join("prometheus.yml"), "").unwrap();
    // Prometheus does not say which port it was given.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let child = Command::new("prometheus")
        .arg(format!(
            "--config.file={}",
            folder.path.join("prometheus.yml").display()
        ))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.path.join("data").display()
        ))
        .arg(format!("--web.listen-address={address}"))
        .args(["--web.enable-remote-write-receiver", "--log.level=error"])
        .stdout(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        println!("skipped: no prometheus");
        return;
    };
    let _ended = Ended(child);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let t_ms = i64::try_from(now.as_millis()).unwrap() - 1000;
    let request = request(&address, t_ms);
    let begin = Instant::now();
    let status = loop {
        let answer = ask(&address, &request);
        let status = answer
            .get(9..12)
            .and_then(|status| status.parse::<u16>().ok());
        match status {
            Some(status) if !is_tried_again(status) => break status,
            _ => assert!(begin.elapsed() < PATIENCE, "prometheus says {answer}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(status, 204);
    let query = format!(
        "GET /api/v1/query?query=sent_by_kymo HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    );
    let answer = ask(&address, query.as_bytes());
    assert!(answer.contains("\"a\":\"\u{fc}\""), "{answer}");
    assert!(answer.contains("\"12.5\"]"), "{answer}");
}

fn request(address: &str, t_ms: i64) -> Vec<u8> {
    let labels = [("__name__", "sent_by_kymo"), ("a", "\u{fc}")];
    let labels = labels.map(|(name, value)| WriteLabel { name, value });
    let version = WriteVersion::V1;
    let mut encoder = WriteEncoder::new(version);
    let sample = WriteSample {
        t_ms,
        value: 12.5,
        created_ms: None,
    };
    encoder.push(&labels, &[sample], None);
    let (mut message, mut block) = (Vec::new(), Vec::new());
    encoder.finish(&mut message);
    compress(&message, &mut block).unwrap();
    let head = format!(
        "POST /api/v1/write HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {}\r\nContent-Encoding: {}\r\n{}: {}\r\nContent-Length: {}\r\n\r\n",
        version.content_type(),
        CONTENT_ENCODING,
        VERSION_HEADER,
        version.version_header(),
        block.len()
    );
    [head.as_bytes(), &block].concat()
}

/// The answer; empty before prometheus listens.
fn ask(address: &str, request: &[u8]) -> String {
    let mut answer = Vec::new();
    if let Ok(mut stream) = TcpStream::connect(address) {
        let _ = stream.write_all(request);
        let _ = stream.read_to_end(&mut answer);
    }
    String::from_utf8_lossy(&answer).into_owned()
}
