//! Requests that no browser sends: each is refused or answered, soon, and the hub goes on as before.

use super::client::{Answer, LONG, Served, eventually, exchange, status_of};
use kymo_tests::Scratch;

/// The connection is closed without an answer.
const CLOSED: u16 = 0;
/// The path does not exist.
const NOT_THERE: &[u16] = &[404];
const BAD: &[u16] = &[400, CLOSED];
const TOO_LARGE: &[u16] = &[413, 414, 431, CLOSED];

/// Bytes of requests, and the statuses that each answer may have.
fn requests() -> Vec<(&'static str, Vec<u8>, &'static [u16])> {
    let line = |line: &str| format!("{line}\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let get = |path: &str| line(&format!("GET {path} HTTP/1.1")).into_bytes();
    let with = |headers: &str| {
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{headers}\r\nConnection: close\r\n\r\n")
            .into_bytes()
    };
    let post = |headers: &str, body: &[u8]| {
        let head = format!(
            "POST /kymo/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n{headers}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    };
    let many = "X-Many: 1\r\n".repeat(10_000);
    let smuggled = "0\r\n\r\nGET /kymo/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n";
    vec![
        ("a head of 1 MB", with(&format!("X-Long: {}", "x".repeat(1 << 20))), TOO_LARGE),
        ("10,000 headers", with(many.trim_end()), TOO_LARGE),
        ("a path of 100 kB", get(&format!("/{}", "x".repeat(100_000))), TOO_LARGE),
        ("a query of 100 kB", get(&format!("/kymo/v1/series?fields={}", "x,".repeat(50_000))), TOO_LARGE),
        ("a body of 100 MB", post("Content-Length: 100000000", &vec![b' '; 100_000_000]), TOO_LARGE),
        ("a body of 100 MB in chunks", post("Transfer-Encoding: chunked", &b"10000\r\n".iter().copied().chain(std::iter::repeat_n(b' ', 65536)).chain(*b"\r\n").collect::<Vec<u8>>().repeat(1500)), TOO_LARGE),
        ("a body that is announced to be endless", post("Content-Length: 18446744073709551615", b"{}"), &[400, 413, 431, CLOSED]),
        ("a body larger than numbers go", post("Content-Length: 99999999999999999999999", b"{}"), BAD),
        ("a negative body", post("Content-Length: -1", b"{}"), BAD),
        ("a signed body", post("Content-Length: +2", b"{}"), BAD),
        ("deep JSON", post("Content-Length: 10000", "[".repeat(10_000).as_bytes()), &[400]),
        ("a session of no text", post("Content-Length: 2", b"\xff\0"), &[400]),
        ("a code that is no text", post("Content-Length: 10", b"{\"code\":1}"), &[400, 422]),
        ("bad percent-encoding", get("/%zz"), NOT_THERE),
        ("half a percent-encoding", get("/%"), NOT_THERE),
        ("NUL, encoded", get("/%00"), NOT_THERE),
        ("NUL in the path", get("/\0"), BAD),
        ("no text in the path", b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec(), &[400, 404, CLOSED]),
        ("no text, encoded", get("/%ff%fe"), NOT_THERE),
        ("no text in a parameter", get("/kymo/v1/text?source=%ff%00"), NOT_THERE),
        ("NUL in a header", with("X-Nul: a\0b"), BAD),
        ("no text in a header", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Any: \xff\xfe\r\nConnection: close\r\n\r\n".to_vec(), &[200, 400]),
        ("no text as host", b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\nConnection: close\r\n\r\n".to_vec(), &[400, 403]),
        ("no text as token", b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\r\nConnection: close\r\n\r\n".to_vec(), &[401]),
        ("a header without a name", with(": x"), BAD),
        ("a header in two lines", with("X-Folded: a\r\n b"), BAD),
        ("a blank before the colon", with("Transfer-Encoding : chunked"), BAD),
        ("lines that end with CR alone", b"GET / HTTP/1.1\rHost: localhost\r\r".to_vec(), BAD),
        ("chunks that are none", post("Transfer-Encoding: chunked", b"ZZ\r\nxx\r\n"), BAD),
        ("a chunk larger than numbers go", post("Transfer-Encoding: chunked", b"fffffffffffffffff\r\nxx\r\n"), &[400, 413, CLOSED]),
        ("a chunk's extension of 1 MB", post("Transfer-Encoding: chunked", format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "x".repeat(1 << 20)).as_bytes()), &[400, 413, CLOSED]),
        ("trailers of 1 MB", post("Transfer-Encoding: chunked", format!("2\r\n{{}}\r\n0\r\nX: {}\r\n\r\n", "x".repeat(1 << 20)).as_bytes()), &[400, 401, 413, CLOSED]),
        ("an encoding that is not known", post("Transfer-Encoding: cow", b"{}"), BAD),
        ("both lengths", post(&format!("Content-Length: {}\r\nTransfer-Encoding: chunked", smuggled.len()), smuggled.as_bytes()), BAD),
        ("both lengths, turned round", post("Transfer-Encoding: chunked\r\nContent-Length: 4", smuggled.as_bytes()), BAD),
        ("chunked, and then again", post("Transfer-Encoding: chunked, chunked", smuggled.as_bytes()), BAD),
        ("chunked, but not last", post("Transfer-Encoding: chunked, identity", smuggled.as_bytes()), BAD),
        ("two lengths", post("Content-Length: 2\r\nContent-Length: 3", b"{}x"), BAD),
        ("two hosts", with("Host: evil.example"), &[400, 403]),
        ("HTTP/0.9", b"GET /\r\n\r\n".to_vec(), BAD),
        ("HTTP/1.0 without a host", b"GET / HTTP/1.0\r\n\r\n".to_vec(), &[400, 403]),
        ("HTTP/2 at once", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), BAD),
        ("HTTP/9.9", line("GET / HTTP/9.9").into_bytes(), BAD),
        ("an upgrade to HTTP/2", with("Upgrade: h2c\r\nHTTP2-Settings: AAAA"), &[200, 400]),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".iter().copied().chain([7; 400]).collect(), BAD),
        ("nothing", Vec::new(), &[408, CLOSED]),
        ("newlines alone", b"\r\n".repeat(10_000), &[400, 431, CLOSED]),
        ("two slashes", get("//"), &[200, 400, 404]),
        ("out of the folder", get("/../../etc/passwd"), NOT_THERE),
        ("out of the folder, encoded", get("/%2e%2e/%2e%2e/etc/passwd"), NOT_THERE),
        ("out of the folder, slashes encoded", get("/..%2f..%2fetc%2fpasswd"), NOT_THERE),
        ("out of a folder of the page", get("/vendor/../../../etc/passwd"), NOT_THERE),
        ("out of the folder by a source", get("/kymo/v1/text?source=../../etc/passwd"), NOT_THERE),
        ("out of the folder by a process", get("/kymo/v1/text?source=proc/1/../../etc/passwd"), NOT_THERE),
        ("out of the API", get("/kymo/v1/../../etc/passwd"), NOT_THERE),
        ("an absolute address", get("http://localhost/kymo/v1/status"), &[200]),
        ("an absolute address elsewhere", get("http://evil.example/kymo/v1/status"), &[400, 403]),
        ("no path", get("*"), &[400, 404]),
        ("a path that is a word", get("api"), BAD),
        ("a path that is two words", get("/a b"), BAD),
        ("CONNECT", line("CONNECT localhost:80 HTTP/1.1").into_bytes(), &[400, 403, 404, 405]),
        ("TRACE", line("TRACE / HTTP/1.1").into_bytes(), &[405]),
        ("PUT", line("PUT /kymo/v1/status HTTP/1.1").into_bytes(), &[405]),
        ("DELETE", line("DELETE / HTTP/1.1").into_bytes(), &[405]),
        ("OPTIONS", line("OPTIONS /kymo/v1/status HTTP/1.1").into_bytes(), &[405]),
        ("POST to a question", line("POST /kymo/v1/series HTTP/1.1").into_bytes(), &[405]),
        ("GET of a session", get("/kymo/v1/session"), &[405]),
        ("a method that is none", line("KYMO / HTTP/1.1").into_bytes(), &[405]),
        ("a method of control characters", line("\x1b[2J / HTTP/1.1").into_bytes(), BAD),
        ("fifty at once", line("GET /icon.svg HTTP/1.1").replace("Connection: close\r\n", "").repeat(49).into_bytes().into_iter().chain(get("/icon.svg")).collect(), &[200]),
    ]
}

/// The statuses of all answers in these bytes.
fn statuses(bytes: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(bytes);
    let parts = text.split("HTTP/1.").skip(1);
    let found: Vec<u16> = parts
        .filter_map(|part| part.get(2..5)?.parse().ok())
        .collect();
    match found.is_empty() {
        true => vec![CLOSED],
        false => found,
    }
}

#[test]
fn hostile_requests_are_refused_and_harm_nobody() {
    let scratch = Scratch::new("requests");
    let served = Served::recording(&scratch.text("data"));
    let hub = served.hub();
    let mut wrong = Vec::new();
    let requests = requests();
    for (name, bytes, expect) in &requests {
        let (reply, ended) = exchange(&served.address, bytes).expect("a connection");
        let got = statuses(&reply);
        let fits = got.iter().all(|status| expect.contains(status));
        if !ended || !fits || String::from_utf8_lossy(&reply).contains("root:") {
            wrong.push(format!("{name}: {got:?}, not {expect:?}; ended: {ended}"));
        }
        // One answer for each request: a request hidden in a body is not answered.
        let answers = if *name == "fifty at once" { 50 } else { 1 };
        if got.len() != answers {
            wrong.push(format!("{name}: {} answers", got.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let anonymous_kb = status_of(hub, "RssAnon:");
    assert!(
        anonymous_kb < 40 << 10,
        "{anonymous_kb} KiB after 200 MB of bodies"
    );
    served.is_unharmed(hub);
}

/// The hub closes connections with half a request.
#[test]
fn half_requests_end() {
    let scratch = Scratch::new("halves");
    let served = Served::recording(&scratch.text("data"));
    let hub = served.hub();
    let halves = [
        "",
        "G",
        "GET / HTTP/1.1\r\nHost: loc",
        "POST /kymo/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    ];
    let asked: Vec<_> = halves
        .iter()
        .map(|half| {
            let (address, half) = (served.address.clone(), half.to_string());
            std::thread::spawn(move || exchange(&address, half.as_bytes()).expect("a connection"))
        })
        .collect();
    for (half, asked) in halves.iter().zip(asked) {
        let (reply, ended) = asked.join().expect("no panic");
        assert!(ended, "{half:?} is still there after {LONG:?}");
        let status = Answer::parse(&reply, LONG).map_or(CLOSED, |answer| answer.status);
        assert!(
            matches!(status, CLOSED | 400 | 408 | 503),
            "{half:?}: {status}"
        );
    }
    eventually("the end of all", || {
        (super::client::files_of(hub) < 100).then_some(())
    });
    served.is_unharmed(hub);
}
