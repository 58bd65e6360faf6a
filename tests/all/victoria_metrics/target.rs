//! A target whose texts are known: counters with resets, gauges of all sizes, histograms, and samples with times.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// A server of HTTP that has a text for each number of a scrape.
pub(super) struct Target {
    pub(super) address: String,
    is_shut: Arc<AtomicBool>,
}

impl Target {
    pub(super) fn start(text: impl Fn(u64) -> String + Send + Sync + 'static) -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let shared = Arc::new((text, AtomicU64::new(0)));
        let is_shut = Arc::new(AtomicBool::new(false));
        let shut = is_shut.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, shut) = (shared.clone(), shut.clone());
                // A client that goes away ends the answers.
                thread::spawn(move || drop(answer(&stream, &shared.0, &shared.1, &shut)));
            }
        });
        Target { address, is_shut }
    }

    /// From now on it answers no scrape.
    pub(super) fn shut(&self) {
        self.is_shut.store(true, Ordering::Relaxed);
    }
}

fn answer(
    mut stream: &TcpStream,
    text: &impl Fn(u64) -> String,
    scrapes: &AtomicU64,
    shut: &AtomicBool,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    loop {
        // The head of a request ends with an empty line.
        loop {
            match lines.next().transpose()? {
                None => return Ok(()),
                Some(line) if line.is_empty() => break,
                Some(_) => {}
            }
        }
        if shut.load(Ordering::Relaxed) {
            return Ok(());
        }
        let body = text(scrapes.fetch_add(1, Ordering::Relaxed));
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
    }
}

/// Counters, gauges and a histogram at the scrape with this number.
pub(super) fn moving(n: u64) -> String {
    let mut text =
        String::from("# HELP shop_requests_total Requests.\n# TYPE shop_requests_total counter\n");
    for (code, path, step) in [
        ("200", "/", 7),
        ("200", "/a", 3),
        ("404", "/a", 1),
        ("500", "/", 2),
    ] {
        let _ = writeln!(
            text,
            "shop_requests_total{{code=\"{code}\",path=\"{path}\"}} {}",
            n * step
        );
    }
    // Begins again at each fifth scrape.
    let _ = writeln!(
        text,
        "# TYPE shop_restarts_total counter\nshop_restarts_total {}",
        n % 5 * 11
    );
    text += "# TYPE shop_level gauge\n";
    for (zone, factor) in [("a", 0.1), ("b", -1e-7), ("c", 123_456_789.125)] {
        let wave = [0.0, 3.0, 1.0, -4.0, 1.5, -9.0, 2.6];
        let value = usize::try_from(n % 7).map_or(0.0, |at| wave[at]);
        let _ = writeln!(text, "shop_level{{zone=\"{zone}\"}} {}", value * factor);
    }
    text += "# TYPE shop_size gauge\n";
    for (of, value) in [
        ("whole", "9007199254740991"),
        ("large", "1.7e+308"),
        ("small", "2.5e-300"),
        ("third", "0.3333333333333333"),
        ("above", "+Inf"),
        ("below", "-Inf"),
    ] {
        let _ = writeln!(text, "shop_size{{of=\"{of}\"}} {value}");
    }
    text += "# TYPE shop_duration_seconds histogram\n";
    for (bound, step) in [("0.1", 2), ("0.5", 5), ("2", 9), ("+Inf", 10)] {
        let _ = writeln!(
            text,
            "shop_duration_seconds_bucket{{le=\"{bound}\"}} {}",
            n * step
        );
    }
    let _ = writeln!(
        text,
        "shop_duration_seconds_sum {}\nshop_duration_seconds_count {}",
        n * 4,
        n * 10
    );
    // Comes and goes.
    if n % 6 < 3 {
        let _ = writeln!(text, "shop_sale{{item=\"x\"}} {n}");
    }
    text
}
