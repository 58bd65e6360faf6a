//! Commands of collectd's unixsock plugin. A real collectd with that plugin gets the same lines, and its answers are the same to
//! the byte, but for those that `DIFFERENT` lists. Needs Debian's collectd-core.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use kymo_tests::collectd_packet::users;
use kymo_tests::served::{Served, eventually, kill};
use kymo_tests::{Running, Scratch, free_port, run, stdout_of};

/// Time of the first values, long ago, so that none is late or of the future.
const FIRST: u64 = 1_700_000_000;
/// Interval of values: longer than any machine takes for the test, so that no series counts as silent.
const INTERVAL: u64 = 10_000;

/// Values of series, one list after the other. A series is a host and a type.
const VALUES: &[(&str, &[&str])] = &[
    ("load", &["0.5:1.5:2.5", "U:-1:1e300", "1:2:3"]),
    ("gauge", &["5", "nan", "inf", "-inf", "-0.000001", "1e100"]),
    (
        "counter",
        &[
            "5",
            "25",
            "4294967290",
            "4",
            "18446744073709551600",
            "9",
            "0x20",
            "040",
        ],
    ),
    ("derive", &["5", "25", "-15", "9223372036854775807"]),
    ("absolute", &["5", "7", "0"]),
    // Limits of types.db: 0 to 100, and rates from 0 on.
    ("percent", &["5", "100.5", "-1", "7"]),
    ("if_octets", &["1000:2000", "2000:1000", "3000:4000"]),
];

/// Lines with the same answer of both.
const SAME: &[&str] = &[
    "PUTVAL h1/load/load",
    "PUTVAL",
    "PUTVAL h1/load x:1",
    "PUTVAL h1/load/nosuch N:1",
    "PUTVAL h1/load/load N:1:2:x",
    "PUTVAL h1/load/load X:1:2:3",
    "PUTVAL h1/load/load N:1:2:3:4",
    "PUTVAL h1/a/counter N:U",
    "PUTVAL h1/a/gauge 1700000002:",
    "PUTVAL h1/a/gauge 1700000002",
    "PUTVAL h1/load/load n:1:2:3",
    "PUTVAL h1/load/load 1700000060:1:2:3 garbage",
    "PUTVAL \"h 1/load-a/load\" interval=10 1700000000:1:2:3 1700000010:1:2:3",
    "putval h2/load/load interval=x 1700000020.5:1:2:3",
    "GETVAL h1/load/cpu",
    "GETVAL h1/load",
    "GETVAL",
    "GETVAL a b",
    "getval h9/load/load",
    "GETVAL \"a\\",
    "GETVAL \"h/p/t",
    "LISTVAL x",
    "FOO",
    "FOO bar",
    "\"",
    "\"GETVAL\" h1/load/load",
    "   ",
    "",
    "FLUSH",
    "FLUSH plugin=rrdtool",
    "FLUSH plugin=a plugin=b identifier=h/p/t identifier=h/p/u timeout=5",
    "FLUSH timeout=x",
    "FLUSH timeout=-5",
    "FLUSH timeout=inf",
    "FLUSH x",
    "FLUSH x=y",
    "PUTNOTIF",
    "PUTNOTIF severity=failure",
    "PUTNOTIF severity=failure time=1",
    "PUTNOTIF severity=foo time=1 message=a",
    "PUTNOTIF severity=failure time=1 message=",
    "PUTNOTIF severity=failure time=1 message=\"\"",
    "PUTNOTIF severity=failure time=0 message=a",
    "PUTNOTIF severity=failure time=x message=a",
    "PUTNOTIF severity=failure time=1700000000 message=\"a b\"",
    "PUTNOTIF severity=OKAY time=1700000000.5 host=h plugin=p s:a=b message=\"a \\\"b\"",
    "PUTNOTIF severity=OKAY time=1700000000.5 d:x=1.5 message=a",
    "PUTNOTIF severity=OKAY time=1700000000.5 s:=b message=a",
    "PUTNOTIF severity=OKAY time=1700000000.5 foo=b message=a",
    "PUTNOTIF severity=OKAY foo message=a",
    "PUTNOTIF severity=OKAY \"a=b\"",
    "PUTNOTIF severity=OKAY message=\"a",
];

/// Lines with another answer on purpose: kymo's.
const DIFFERENT: &[(&str, &str)] = &[
    // collectd answers nothing.
    (
        "PUTVAL h3/load/load foo=bar 1700000000:1:2:3",
        "0 Success: 1 value has been dispatched.\n",
    ),
    // collectd answers two lines.
    (
        "PUTVAL h3/load/load meta:a=\"b\" 1700000010:1:2:3",
        "0 Success: 1 value has been dispatched.\n",
    ),
    ("GETVAL h1/load/nosuch", "-1 Type `nosuch' is unknown.\n"),
    // collectd makes up zeros, or cuts.
    (
        "PUTVAL h3/load/load 1700000020:1:2",
        "-1 Parsing the values string failed.\n",
    ),
    (
        "PUTVAL h3/load/load 1700000020:1:2:3x",
        "-1 Parsing the values string failed.\n",
    ),
    (
        "PUTVAL h3/a/counter 1700000020:-1",
        "-1 Parsing the values string failed.\n",
    ),
    // collectd takes its own host's name.
    (
        "PUTVAL /x/gauge N:8",
        "-1 Cannot parse identifier `/x/gauge'.\n",
    ),
    // collectd shows the beginning of the name.
    ("FLUSH identifier=h/p", "-1 Invalid identifier `h/p'.\n"),
    // collectd takes these values, and no true ones after them.
    (
        "PUTVAL h3/load/load 9999999999:1:2:3",
        "-1 cannot store: values from the future\n",
    ),
    // collectd ends.
    (
        "GETTHRESHOLD h1/load/load",
        "-1 No threshold found for identifier h1/load/load\n",
    ),
];

/// A `kymo serve` with the socket.
struct Hub {
    served: Served,
    dir: PathBuf,
    socket: PathBuf,
    port: u16,
    _scratch: Scratch,
}

impl Hub {
    fn start(name: &str, more: &str) -> Hub {
        let scratch = Scratch::new(name);
        let (dir, socket, port) = (scratch.path("data"), scratch.path("unixsock"), free_port());
        let config = format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = [\"127.0.0.1:{port}\"]\nunixsock = \"{}\"\n{more}",
            socket.display()
        );
        let mut served = Served::configured(&scratch, &dir, &config);
        served.has_said("collectd's commands on ");
        let hub = Hub {
            served,
            dir,
            socket,
            port,
            _scratch: scratch,
        };
        eventually(|| hub.ask("LISTVAL").ends_with("found\n").then_some(())).expect("an answer");
        hub
    }

    fn ask(&self, line: &str) -> String {
        ask(&self.socket, line)
    }
}

/// The whole answer to a line.
fn ask(socket: &Path, line: &str) -> String {
    let Ok(mut stream) = UnixStream::connect(socket) else {
        return String::new();
    };
    let mut answer = Vec::new();
    let _ = stream.write_all(format!("{line}\n").as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// A collectd that has nothing but the plugin, and the path of its socket.
fn collectd(scratch: &Scratch) -> (Running, PathBuf) {
    let folder = scratch.path("collectd");
    fs::create_dir_all(&folder).expect("a folder");
    let (config, socket) = (folder.join("collectd.conf"), folder.join("sock"));
    let shown = folder.display();
    let text = format!(
        "Hostname \"oracle\"\nFQDNLookup false\nInterval 10\nWriteThreads 1\nBaseDir \"{shown}\"\nPIDFile \"{shown}/pid\"\n\
         PluginDir \"/usr/lib/collectd\"\nTypesDB \"/usr/share/collectd/types.db\"\n\
         LoadPlugin unixsock\n<Plugin unixsock>\n  SocketFile \"{}\"\n</Plugin>\n",
        socket.display()
    );
    fs::write(&config, text).expect("a configuration");
    let mut command = Command::new("/usr/sbin/collectd");
    let command = command.arg("-f").arg("-C").arg(&config);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let running = Running(child.expect("collectd starts"));
    eventually(|| {
        ask(&socket, "LISTVAL")
            .starts_with("0 Values")
            .then_some(())
    })
    .expect("its socket");
    (running, socket)
}

#[test]
fn rates_and_lists_are_collectds() {
    let scratch = Scratch::new("unixsock-collectd");
    let (_collectd, theirs) = collectd(&scratch);
    let hub = Hub::start("unixsock-rates", "");
    for (type_name, lists) in VALUES {
        let name = format!("web-1.example/plugin-a-b/{type_name}-x");
        for (at, list) in (0..).zip(*lists) {
            let time = FIRST + at * INTERVAL;
            let line = format!("PUTVAL {name} interval={INTERVAL} {time}:{list}");
            assert_eq!(hub.ask(&line), ask(&theirs, &line), "{line}");
            // collectd's write thread takes its time.
            let has = |list: &str| list.contains(&format!("{time}.000 {name}\n"));
            let listed = eventually(|| Some(ask(&theirs, "LISTVAL")).filter(|list| has(list)));
            let listed = listed.unwrap_or_else(|| panic!("collectd does not take {line}"));
            assert_eq!(hub.ask("LISTVAL"), listed, "{line}");
            let line = format!("GETVAL {name}");
            let answer = ask(&theirs, &line);
            assert!(answer.contains("found\n"), "{answer}");
            assert_eq!(hub.ask(&line), answer, "{line} after {list}");
        }
    }
    let listed = hub.ask("LISTVAL");
    assert_eq!(listed.lines().count(), VALUES.len() + 1, "{listed}");
}

#[test]
fn answers_are_collectds() {
    let scratch = Scratch::new("unixsock-answers");
    let (_collectd, theirs) = collectd(&scratch);
    let hub = Hub::start("unixsock-same", "");
    for line in SAME {
        assert_eq!(hub.ask(line), ask(&theirs, line), "{line}");
    }
    for (line, answer) in DIFFERENT {
        assert_eq!(hub.ask(line), *answer, "{line}");
    }
    // The differences are there. The last one ends collectd.
    for (line, answer) in DIFFERENT {
        assert_ne!(ask(&theirs, line), *answer, "{line}: no difference");
    }
    // All of it by one connection: one answer each.
    let mut stream = UnixStream::connect(&hub.socket).expect("a connection");
    let lines = SAME.iter().filter(|line| !line.is_empty());
    let count = lines.clone().count();
    let text: Vec<String> = lines.map(|line| format!("{line}\r\n")).collect();
    stream.write_all(text.concat().as_bytes()).expect("sent");
    stream.shutdown(Shutdown::Write).expect("the end");
    let mut answers = String::new();
    stream.read_to_string(&mut answers).expect("answers");
    assert_eq!(answers.lines().count(), count, "{answers}");
}

#[test]
fn values_of_datagrams_are_there_and_values_of_commands_are_stored() {
    let hub = Hub::start(
        "unixsock-stored",
        "[collectd]\ntrusted = [\"127.0.0.0/8\"]\n",
    );
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let now = UNIX_EPOCH.elapsed().expect("a clock").as_secs() / 10 * 10;
    let sent = socket.send_to(&users("web1", now, 7.0), ("127.0.0.1", hub.port));
    sent.expect("sent");
    let shown = eventually(|| {
        let answer = hub.ask("GETVAL web1/users/users");
        answer.contains("found").then_some(answer)
    });
    assert_eq!(
        shown.as_deref(),
        Some("1 Value found\nvalue=7.000000e+00\n")
    );
    // A new name of a command counts at once.
    let put = hub.ask("PUTVAL web2/users/users interval=10 N:3");
    assert_eq!(put, "0 Success: 1 value has been dispatched.\n");
    let data = hub.dir.to_string_lossy();
    let listed = stdout_of(&["series", "ls", "host=web2", "--data", &data]);
    assert!(listed.contains("web2"), "{listed}");
    let line = format!("PUTNOTIF severity=warning time={now} host=web2 message=\"disk is full\"");
    assert_eq!(hub.ask(&line), "0 Success\n");
    let kept = || {
        let output = run(&["series", "events", "web2", "--from", "-1d", "--data", &data]);
        let events = String::from_utf8_lossy(&output.stdout).into_owned();
        events.contains("disk is full").then_some(())
    };
    eventually(kept).expect("the notification");
}

#[test]
fn a_flush_writes_files() {
    let hub = Hub::start("unixsock-flush", "[store]\nfiles = \"1d\"\n");
    for (host, flush) in [("a", "FLUSH identifier=a/users/users"), ("b", "FLUSH")] {
        let put = format!(
            "PUTVAL {host}/users/users interval=10 {FIRST}:3 {}:4",
            FIRST + 10
        );
        assert_eq!(hub.ask(&put), "0 Success: 2 values have been dispatched.\n");
        assert_eq!(hub.ask(flush), "0 Done: 1 successful, 0 errors\n");
        let file = hub.dir.join(format!("rrd/{host}/users/users.rrd"));
        let last = || {
            let shown = Command::new("rrdtool")
                .arg("last")
                .arg(&file)
                .output()
                .ok()?;
            let last = String::from_utf8_lossy(&shown.stdout).into_owned();
            (last.trim() == (FIRST + 10).to_string()).then_some(())
        };
        match host {
            "a" => last().expect("the file is current when FLUSH is answered"),
            // FLUSH of all begins the work.
            _ => eventually(last).expect("the file gets current"),
        }
    }
}

#[test]
fn clients_have_limits_and_outlive_a_keeper() {
    let hub = Hub::start("unixsock-limits", "");
    let mode = fs::metadata(&hub.socket)
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o007, 0, "others may not connect: {mode:o}");
    // Idle connections and a client that takes no answers keep nobody out.
    let connect = || UnixStream::connect(&hub.socket).expect("a connection");
    let mut idle: Vec<UnixStream> = (0..40).map(|_| connect()).collect();
    assert_eq!(hub.ask("LISTVAL"), "0 Values found\n");
    let deaf = &mut idle[39];
    deaf.set_nonblocking(true).expect("a socket");
    while deaf.write(b"LISTVAL\n").is_ok() {}
    assert_eq!(hub.ask("LISTVAL"), "0 Values found\n");
    // A line that is too long has an answer, and the next line, too.
    let mut stream = connect();
    let long = format!("GETVAL {}\nLISTVAL\n", "x".repeat(1 << 20));
    stream.write_all(long.as_bytes()).expect("sent");
    let mut answers = BufReader::new(&stream).lines().map_while(Result::ok);
    assert_eq!(
        answers.next().as_deref(),
        Some("-1 Line has more than 16384 bytes.")
    );
    assert_eq!(answers.next().as_deref(), Some("0 Values found"));
    let keeper = hub.served.child("keeper").expect("a keeper");
    kill("-KILL", keeper);
    eventually(|| (hub.ask("LISTVAL") == "0 Values found\n").then_some(()))
        .expect("the next keeper");
}
