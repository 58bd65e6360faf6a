//! The program `prometheus` scrapes this test, and sends the samples by remote write 1.0 to the same port.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use kymo_wire::remote_write::http::WriteOutcome;
use kymo_wire::remote_write::{WriteVersion, decompress};

use super::peer::{Ended, Folder};
use super::written;

/// How long the peer may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request's headers that matter, and its body.
struct Posted {
    content_type: Option<String>,
    encoding: Option<String>,
    body: Vec<u8>,
}

#[test]
fn prometheus_sends_what_is_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, posted) = channel();
    std::thread::spawn(move || serve(&listener, &sender));
    let Some(_prometheus) = prometheus(&address) else {
        println!("skipped: no prometheus");
        return;
    };
    let labels = format!("a=b,instance={address},job=peer,z=\u{fc}\"\\\n");
    let mut missing = vec![
        format!("__name__=peer_things_total,{labels} 12.5@"),
        format!("__name__=peer_gone,instance={address},job=peer 3.0@"),
        format!("__name__=peer_gone,instance={address},job=peer stale@"),
        format!("__name__=up,instance={address},job=peer 1.0@"),
        "peer_things_total: counter \"Things.\" \"\"".to_owned(),
    ];
    while !missing.is_empty() {
        let lines = read(&posted, &missing);
        missing.retain(|begin| !lines.iter().any(|line| line.starts_with(begin)));
    }
}

/// The next message as lines.
fn read(posted: &Receiver<Posted>, missing: &[String]) -> Vec<String> {
    let posted = posted.recv_timeout(PATIENCE);
    let posted = posted.unwrap_or_else(|_| panic!("prometheus did not send {missing:#?}"));
    let version =
        WriteVersion::of_headers(posted.content_type.as_deref(), posted.encoding.as_deref());
    assert_eq!(version, Ok(WriteVersion::V1));
    let mut message = Vec::new();
    decompress(&posted.body, 1 << 25, &mut message).unwrap();
    let (lines, counts) = written(WriteVersion::V1, &message);
    assert_eq!(
        (counts.refused_series, counts.unsorted),
        (0, 0),
        "{lines:?}"
    );
    assert_eq!(WriteOutcome::of_counts(&counts), WriteOutcome::Written);
    lines
}

fn prometheus(address: &str) -> Option<(Ended, Folder)> {
    let folder = Folder::new("sender");
    let config = folder.path.join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s}}
scrape_configs: [{{job_name: peer, static_configs: [{{targets: ['{address}']}}]}}]
remote_write:
- url: http://{address}/write
  queue_config: {{batch_send_deadline: 1s, max_shards: 1}}
  metadata_config: {{send: true, send_interval: 1s}}
"
    );
    std::fs::write(&config, text).unwrap();
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.path.join("data").display()
        ))
        .args(["--web.listen-address=127.0.0.1:0", "--log.level=error"])
        .stdout(Stdio::null())
        .spawn();
    child.ok().map(|child| (Ended(child), folder))
}

/// Answers requests, a thread a connection. A series goes after a few scrapes.
fn serve(listener: &TcpListener, sender: &Sender<Posted>) {
    let scrapes = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let (sender, scrapes) = (sender.clone(), scrapes.clone());
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream.unwrap());
            while let Some((line, posted)) = take_request(&mut reader) {
                let answer = match line.starts_with("GET") {
                    true => metrics(scrapes.fetch_add(1, Ordering::Relaxed)),
                    false => {
                        // The test may have ended.
                        let _ = sender.send(posted);
                        "HTTP/1.1 204 No Content\r\n\r\n".to_owned()
                    }
                };
                if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        });
    }
}

fn metrics(scrape: usize) -> String {
    let mut body =
        String::from("# HELP peer_things_total Things.\n# TYPE peer_things_total counter\n");
    body += "peer_things_total{z=\"\u{fc}\\\"\\\\\\n\",a=\"b\"} 12.5\n";
    if scrape < 4 {
        body += "peer_gone 3\n";
    }
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// The first line of a request, and the rest of it; `None`: the peer is gone.
fn take_request(reader: &mut BufReader<TcpStream>) -> Option<(String, Posted)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|&size| size > 0)?;
    let mut posted = Posted {
        content_type: None,
        encoding: None,
        body: Vec::new(),
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        let value = value.trim().to_owned();
        match name.to_ascii_lowercase().as_str() {
            "content-type" => posted.content_type = Some(value),
            "content-encoding" => posted.encoding = Some(value),
            "content-length" => posted.body = vec![0; value.parse().ok()?],
            _ => {}
        }
    }
    reader.read_exact(&mut posted.body).ok()?;
    Some((first, posted))
}
