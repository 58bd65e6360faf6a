//! Real clients with kymo's daemon and with stock's: rrdtool, perl's RRDs, MRTG, a pipe session as LibreNMS uses
//! it, collectd. Over a unix socket and over TCP; their output and the resulting files must be the same (collectd
//! measures the live machine: its files must exist, and be current after FLUSH). Needs Debian's rrdtool, rrdcached,
//! librrds-perl, mrtg and collectd-core.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kymo_tests::rrd_daemon::{BOTH, Daemon, Side};
use kymo_tests::rrd_file;
use kymo_tests::rrdtool::Pipe;
use kymo_tests::{Running, Scratch, free_port};

/// The transport between client and daemon.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Unix,
    Tcp,
}

/// Lines that occur only in answers to `list`.
const NAMES: [&str; 3] = ["x.rrd", "y.rrd", "d/y.rrd"];

const WAYS: [Way; 2] = [Way::Unix, Way::Tcp];

/// A daemon, its address, and its folder.
struct Place {
    daemon: Daemon,
    way: Way,
    address: String,
    base: PathBuf,
    scratch: PathBuf,
}

impl Place {
    /// Runs a client in the base; returns its output in words that are the same for both daemons.
    fn run(&self, command: &mut Command) -> String {
        let output = command
            .current_dir(&self.base)
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output();
        let Output {
            status,
            stdout,
            stderr,
        } = output.unwrap_or_else(|why| panic!("cannot run {command:?}: {why}"));
        self.neutral(&format!(
            "{}{}{:?}\n",
            String::from_utf8_lossy(&stdout),
            String::from_utf8_lossy(&stderr),
            status.code()
        ))
    }

    /// The text without parts that differ from start to start: the port, and the first row of a new file.
    fn neutral(&self, text: &str) -> String {
        let text = text.replace(&self.address, "ADDRESS");
        let lines = text.lines().filter(|line| !line.contains("].cur_row"));
        let mut lines: Vec<&str> = lines.collect();
        if lines.iter().any(|line| NAMES.contains(line)) {
            // An answer to `list`: stock's is in the order of the folder.
            lines.sort_unstable();
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Runs a client with each daemon in turn on the same path, and compares output and files.
fn compare(name: &str, way: Way, options: &[&str], client: impl Fn(&Place) -> String) {
    let scratch = Scratch::new(name);
    let results = BOTH.map(|side| {
        let place = start(side, &scratch, way, options);
        let said = client(&place);
        assert_eq!(place.daemon.stop("-TERM").code(), Some(0), "{side:?}");
        let files = files(&place.base);
        fs::remove_dir_all(&place.base).expect("the base is there");
        (said, files)
    });
    let [(stock_said, stock_files), (our_said, our_files)] = results;
    assert_same_text(&format!("{name} over {way:?}"), &stock_said, &our_said);
    let names =
        |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<PathBuf>>();
    assert_eq!(
        names(&stock_files),
        names(&our_files),
        "{name} over {way:?}"
    );
    for (path, stock) in &stock_files {
        if let Some(why) = rrd_file::difference(stock, &our_files[path]) {
            panic!("{name} over {way:?}: {}: {why}", path.display());
        }
    }
}

fn start(side: Side, scratch: &Scratch, way: Way, options: &[&str]) -> Place {
    let base = scratch.path("base");
    // Over a unix socket the client itself checks that the folder exists.
    for folder in ["d", "h"] {
        fs::create_dir_all(base.join(folder)).expect("a folder");
    }
    let port = format!("localhost:{}", free_port());
    let mut more = vec!["-B", "-F", "-R"];
    more.extend(options);
    if way == Way::Tcp {
        more.extend(["-l", &port]);
    }
    let daemon = Daemon::start(side, &scratch.path(""), &base, &more);
    let address = match way {
        Way::Unix => daemon.address(),
        Way::Tcp => port,
    };
    Place {
        daemon,
        way,
        address,
        base,
        scratch: scratch.path(""),
    }
}

/// The .rrd files and pictures; rows of new files are rotated to the same order.
fn files(base: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = rrd_file::files_below(base).into_iter();
    let wanted = paths.filter(|path| {
        let extension = path.extension().unwrap_or_default();
        ["rrd", "svg", "png", "xml"]
            .iter()
            .any(|one| extension == *one)
    });
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("a file of the base");
        (path, rrd_file::turned(&bytes))
    };
    wanted.map(read).collect()
}

fn assert_same_text(what: &str, stock: &str, ours: &str) {
    let pairs = stock.lines().zip(ours.lines());
    for (index, (stock, ours)) in pairs.enumerate() {
        assert_eq!(stock, ours, "{what}, line {index}: stock's is the left one");
    }
    assert_eq!(
        stock.lines().count(),
        ours.lines().count(),
        "{what}: {ours}"
    );
}

/// rrdtool's commands; `@` stands for `--daemon`.
const COMMANDS: &[&str] = &[
    "create @ x.rrd -b 1000000000 -s 10 DS:g:GAUGE:60:U:U DS:c:COUNTER:60:0:U RRA:AVERAGE:0.5:1:50 RRA:MAX:0.5:5:20",
    "create @ -O x.rrd -b 1000000000 -s 10 DS:g:GAUGE:60:U:U RRA:AVERAGE:0.5:1:50",
    "create @ d/y.rrd -b 1000000000 -s 60 DS:g:GAUGE:120:0:100 RRA:LAST:0.5:1:30",
    "create @ e/f/z.rrd -b 1000000000 -s 60 DS:g:GAUGE:120:0:100 RRA:LAST:0.5:1:30",
    "create @ bad.rrd -b 1000000000 -s 60 DS:g:NONE:120:0:100 RRA:LAST:0.5:1:30",
    "update @ x.rrd 1000000010:1.5:100 1000000020:2.25:250 1000000031.5:U:700",
    "update @ x.rrd 1000000045:-3e-2:1200",
    "update @ x.rrd 1000000045:1:1",
    "update @ nosuch.rrd 1000000045:1:1",
    "update @ d/y.rrd 1000000060:5 1000000120:7 1000000180:9",
    "last @ x.rrd",
    "first @ x.rrd",
    "first @ --rraindex 1 x.rrd",
    "first @ --rraindex 7 x.rrd",
    "lastupdate @ x.rrd",
    "info @ x.rrd",
    "info @ --noflush x.rrd",
    "fetch @ x.rrd AVERAGE -s 1000000000 -e 1000000060",
    "fetch @ x.rrd AVERAGE -r 50 -s 1000000000 -e 1000000060",
    "fetch @ x.rrd MAX -s 1000000000 -e 1000000060",
    "fetch @ nosuch.rrd AVERAGE -s 1000000000 -e 1000000060",
    "fetch @ x.rrd NONE -s 1000000000 -e 1000000060",
    "graph @ one.svg -a SVG -s 1000000000 -e 1000000060 DEF:a=x.rrd:g:AVERAGE CDEF:b=a,2,* VDEF:m=b,MAXIMUM LINE2:a#ff0000:a AREA:b#00ff0080:b PRINT:m:%.3lf",
    "graph @ two.png -s 1000000000 -e 1000000400 DEF:a=x.rrd:c:AVERAGE DEF:b=d/y.rrd:g:LAST LINE1:a#ff0000 LINE1:b#0000ff",
    "graphv @ three.svg -a SVG -s 1000000000 -e 1000000060 DEF:a=x.rrd:g:AVERAGE LINE2:a#ff0000:a PRINT:a:AVERAGE:%.6lf",
    "graph @ four.svg -a SVG -s 1000000000 -e 1000000060 DEF:a=nosuch.rrd:g:AVERAGE LINE2:a#ff0000:a",
    "xport @ -s 1000000000 -e 1000000060 DEF:a=x.rrd:g:AVERAGE DEF:b=d/y.rrd:g:LAST XPORT:a:one XPORT:b:two",
    "xport @ --json -s 1000000000 -e 1000000060 DEF:a=x.rrd:c:AVERAGE XPORT:a:one",
    "update @ x.rrd 1000000055:9:1300",
    "tune x.rrd @ -h g:120 -i c:1",
    "info @ x.rrd",
    "update @ x.rrd 1000000066:9:1400",
    "dump @ x.rrd",
    "flushcached @ x.rrd d/y.rrd",
    "flushcached @ nosuch.rrd",
    "list @ /",
    "list @ -r /",
    "list @ /d",
    "list @ /nosuch",
    "create @ new.rrd -s 10 -b 1000000000 -r x.rrd DS:g:GAUGE:60:U:U RRA:AVERAGE:0.5:2:20",
    "dump @ new.rrd",
    "create @ like.rrd -b 1000000000 -t x.rrd",
    "info @ like.rrd",
];

#[test]
fn rrdtool_with_a_daemon() {
    for way in WAYS {
        compare("rrdtool", way, &[], |place| {
            let mut said = String::new();
            for line in COMMANDS {
                let daemon = format!("--daemon {}", place.address);
                let words = line.replace('@', &daemon);
                let answer = place.run(Command::new("rrdtool").args(words.split(' ')));
                let _ = writeln!(said, "$ {line}\n{answer}");
            }
            worked(
                &said,
                &[
                    "<lastupdate>1000000066",
                    "\"about\"",
                    "9.0000000000e+00",
                    "x.rrd",
                ],
            );
            said
        });
    }
}

#[test]
fn rrdtool_with_the_address_in_its_environment() {
    for way in WAYS {
        compare("environment", way, &[], |place| {
            let mut said = String::new();
            for line in COMMANDS {
                let words = line.replace("@ ", "").replace(" @", "");
                let mut command = Command::new("rrdtool");
                command
                    .args(words.split(' '))
                    .env("RRDCACHED_ADDRESS", &place.address);
                let _ = writeln!(said, "$ {line}\n{}", place.run(&mut command));
            }
            worked(&said, &["<lastupdate>1000000066"]);
            said
        });
    }
}

/// Checks that the client succeeded: a comparison of two failures proves nothing.
fn worked(said: &str, signs: &[&str]) {
    for sign in signs {
        assert!(said.contains(sign), "no {sign} in: {said}");
    }
}

const PERL: &str = r#"
use RRDs;
sub say_ { print join("|", map { defined $_ ? (ref $_ eq 'ARRAY' ? "[" . join(",", map { $_ // 'undef' } map { ref $_ ? @$_ : $_ } @$_) . "]" : $_) : 'undef' } @_), "\n"; my $e = RRDs::error(); print "error: $e\n" if $e; }
say_(RRDs::create("p.rrd", "-b", 1000000000, "-s", 10, "DS:a:GAUGE:60:U:U", "DS:b:DERIVE:60:U:U", "RRA:AVERAGE:0.5:1:40", "RRA:MIN:0.5:4:10"));
say_(RRDs::update("p.rrd", map { sprintf("%d:%.6f:%d", 1000000000 + $_ * 7, $_ / 3, $_ * $_) } 1 .. 40));
say_(RRDs::update("p.rrd", "1000000001:1:1"));
say_(RRDs::update("none.rrd", "1000000001:1:1"));
say_(RRDs::last("p.rrd"));
say_(RRDs::first("p.rrd"));
my $info = RRDs::info("p.rrd");
print map { "$_=" . ($info->{$_} // 'undef') . "\n" } grep { !/cur_row/ } sort keys %$info;
say_(RRDs::fetch("p.rrd", "AVERAGE", "-s", 1000000000, "-e", 1000000290));
say_(RRDs::xport("-s", 1000000000, "-e", 1000000290, "DEF:x=p.rrd:a:AVERAGE", "XPORT:x:one"));
my @graph = RRDs::graph("p.svg", "-a", "SVG", "-s", 1000000000, "-e", 1000000290, "DEF:x=p.rrd:a:AVERAGE", "LINE1:x#000000", "PRINT:x:MAX:%.4lf");
say_(@graph);
say_(RRDs::flushcached("p.rrd"));
"#;

#[test]
fn perl_s_rrds() {
    for way in WAYS {
        compare("perl", way, &[], |place| {
            let mut command = Command::new("perl");
            command
                .args(["-e", PERL])
                .env("RRDCACHED_ADDRESS", &place.address);
            let said = place.run(&mut command);
            worked(
                &said,
                &[
                    "1000000280",
                    "illegal attempt",
                    "No such file",
                    "ds[b].type=DERIVE",
                ],
            );
            said
        });
    }
}

/// Sets perl's clock for MRTG, which stamps its values itself.
const CLOCK: &str = "package Clock; our $t; sub import { $t = $_[1]; *CORE::GLOBAL::time = sub () { $Clock::t } } 1;\n";

#[test]
fn mrtg_in_rrdtool_mode() {
    for way in WAYS {
        for told in ["keyword", "environment"] {
            compare("mrtg", way, &[], |place| mrtg(place, told));
        }
    }
}

/// Six polls, five minutes apart by perl's clock, of two commands that count.
fn mrtg(place: &Place, told: &str) -> String {
    let path = |name: &str| place.scratch.join(name);
    fs::create_dir_all(path("perl")).expect("a folder");
    fs::write(path("perl/Clock.pm"), CLOCK).expect("a module");
    let mut config = format!("WorkDir: {}\nLogFormat: rrdtool\n", place.base.display());
    if told == "keyword" {
        let _ = writeln!(config, "RRDCached: {}", place.address);
    }
    for (name, factor) in [("one", 1000), ("two", 77)] {
        let script = path(&format!("{name}.sh"));
        let count = path("count");
        let text = format!(
            "n=$(cat {})\necho $((n * {factor}))\necho $((n * n * {factor}))\necho up\necho {name}\n",
            count.display()
        );
        fs::write(&script, text).expect("a script");
        let _ = writeln!(config, "Target[{name}]: `sh {}`", script.display());
        let _ = writeln!(
            config,
            "MaxBytes[{name}]: 1250000\nTitle[{name}]: {name}\nPageTop[{name}]: {name}"
        );
    }
    fs::write(path("mrtg.cfg"), config).expect("a config");
    let mut said = String::new();
    for poll in 1..=6 {
        fs::write(path("count"), poll.to_string()).expect("a count");
        let mut command = Command::new("perl");
        command.arg(format!("-I{}", path("perl").display()));
        command.arg(format!("-MClock={}", 1_700_000_000 + poll * 300));
        command
            .args(["/usr/bin/mrtg", "--lock-file"])
            .arg(path("mrtg.lock"));
        command
            .arg("--confcache-file")
            .arg(path("mrtg.ok"))
            .arg(path("mrtg.cfg"));
        if told == "environment" {
            // Without a path to strip, TCP takes relative names only.
            command.env("RRDCACHED_ADDRESS", &place.address);
            command.env("RRDCACHED_STRIPPATH", &place.base);
        }
        command.env("LANG", "C");
        said.push_str(&place.run(&mut command));
    }
    let mut client = place.daemon.connect();
    for name in ["one", "two"] {
        let answer = client.text(&format!("LAST {name}.rrd"));
        assert_eq!(
            answer, "0 1700001600",
            "{told} over {:?}: {said}",
            place.way
        );
        client.text(&format!("FLUSH {name}.rrd"));
    }
    said
}

/// A session as LibreNMS holds it: one `rrdtool -` for hours, with an address in each command.
#[test]
fn a_pipe_session_like_librenms() {
    for way in WAYS {
        compare("librenms", way, &[], |place| {
            let mut pipe = Pipe::start(&place.base);
            let at = format!("--daemon {}", place.address);
            let mut said = String::new();
            let missing = pipe.ask(&format!("last h/ucd_cpu.rrd {at}"));
            let text = missing.expect_err("the file is missing");
            assert!(text.contains("No such file or directory"), "{text}");
            let _ = writeln!(said, "{text}");
            let create = "--step 300 -b 1000000000 DS:value:GAUGE:600:0:U RRA:AVERAGE:0.5:1:2016 RRA:AVERAGE:0.5:6:1440 RRA:MAX:0.5:1:720";
            for line in [
                format!("create h/ucd_cpu.rrd {create} {at}"),
                format!("create h/ucd_cpu.rrd -O {create} {at}"),
                format!("update h/ucd_cpu.rrd 1000000300:10 {at}"),
                format!("update h/ucd_cpu.rrd 1000000600:20 {at}"),
                format!("last h/ucd_cpu.rrd {at}"),
                format!("tune h/ucd_cpu.rrd --maximum value:1000 {at}"),
                format!("list /h {at}"),
                format!("fetch h/ucd_cpu.rrd AVERAGE -s 1000000000 -e 1000000900 {at}"),
                format!(
                    "graph h.svg -a SVG -s 1000000000 -e 1000000900 DEF:a=h/ucd_cpu.rrd:value:AVERAGE LINE1:a#000000 {at}"
                ),
                format!(
                    "graph - -a SVG -s 1000000000 -e 1000000900 DEF:a=h/ucd_cpu.rrd:value:AVERAGE LINE1:a#000000 {at}"
                ),
                format!("update h/ucd_cpu.rrd 1000000500:1 {at}"),
            ] {
                let answer = pipe.ask(&line);
                let _ = writeln!(said, "$ {line}\n{answer:?}");
            }
            said.push_str(&now(&mut pipe, &at));
            worked(
                &said,
                &["1000000500", "ucd_cpu.rrd", "1.6666666667e+01", "<svg"],
            );
            place.neutral(&said)
        });
    }
}

/// `N:` is the client's second, so the file differs from run to run: it is checked here, and removed.
fn now(pipe: &mut Pipe, at: &str) -> String {
    let seconds = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |age| age.as_secs())
    };
    let create = "--step 1 DS:value:GAUGE:600:0:U RRA:LAST:0.5:1:20";
    pipe.must(&format!("create now.rrd {create} {at}"));
    // time(2) may be a tick behind the clock that the test reads.
    let before = seconds() - 1;
    pipe.must(&format!("update now.rrd N:5 {at}"));
    let last = pipe.must(&format!("last now.rrd {at}"));
    let last: u64 = last.trim().parse().expect("a stamp");
    assert!((before..=seconds()).contains(&last), "{before} <= {last}");
    pipe.must(&format!("flushcached now.rrd {at}"));
    fs::remove_file(pipe.folder().join("now.rrd")).expect("the file is there");
    "N: works\n".to_string()
}

/// collectd with the default CreateFiles: it makes the files itself and sends each value alone.
#[test]
fn collectd_writes_through_the_daemon() {
    for way in WAYS {
        let scratch = Scratch::new("collectd");
        let place = start(Side::Ours, &scratch, way, &[]);
        // Over TCP, names are relative: also to collectd's own folder, since it creates the files itself.
        let folder = match way {
            Way::Unix => format!(" DataDir \"{}\"\n", place.base.display()),
            Way::Tcp => String::new(),
        };
        let config = format!(
            "Hostname \"h\"\nFQDNLookup false\nInterval 1\nBaseDir \"{}\"\nPIDFile \"{scratch}/collectd.pid\"\n\
             TypesDB \"/usr/share/collectd/types.db\"\nLoadPlugin logfile\nLoadPlugin cpu\nLoadPlugin load\n\
             LoadPlugin uptime\nLoadPlugin rrdcached\n<Plugin logfile>\n LogLevel info\n File \"{scratch}/collectd.log\"\n\
             </Plugin>\n<Plugin rrdcached>\n DaemonAddress \"{}\"\n{folder}</Plugin>\n",
            place.base.display(),
            place.address,
            scratch = place.scratch.display(),
        );
        let file = scratch.path("collectd.conf");
        fs::write(&file, config).expect("a config");
        let mut collectd = Command::new("/usr/sbin/collectd");
        collectd
            .args(["-f", "-C"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let running = Running(collectd.spawn().expect("collectd"));
        let begun = Instant::now();
        while let Err(missing) = is_fed(&place) {
            assert!(
                begun.elapsed() < Duration::from_secs(90),
                "{way:?}: {missing}"
            );
            std::thread::sleep(Duration::from_millis(500));
        }
        let log = fs::read_to_string(scratch.path("collectd.log")).unwrap_or_default();
        running.signal("-TERM");
        // collectd makes the files by itself, and complains if a value comes while that takes longer than an interval.
        let mut lines = log
            .lines()
            .filter(|line| !line.contains("cu_rrd_create_file"));
        assert!(lines.all(|line| !line.contains("failed")), "{way:?}: {log}");
        drop(running);
        assert_eq!(place.daemon.stop("-TERM").code(), Some(0));
    }
}

/// Checks that collectd's files are fresh after FLUSH; the error names a missing one.
fn is_fed(place: &Place) -> Result<(), String> {
    let files = rrd_file::files_below(&place.base);
    let names: Vec<&PathBuf> = files
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rrd"))
        .collect();
    if names.len() < 10 {
        return Err(format!("only {names:?}"));
    }
    let mut client = place.daemon.connect();
    for path in &names {
        let answer = client.text(&format!("FLUSH {}", path.display()));
        if answer != format!("0 Successfully flushed {}.", path.display()) {
            return Err(answer);
        }
        let age = age_of_last_value(path);
        if age > 4 {
            return Err(format!("{}: {age} s old after FLUSH", path.display()));
        }
    }
    match known_values(&place.base.join("h/load/load.rrd")) {
        0..8 => Err("hardly any load".into()),
        _ => Ok(()),
    }
}

/// Seconds between a file's last value and now, by stock's rrdtool.
fn age_of_last_value(path: &Path) -> u64 {
    let output = Command::new("rrdtool")
        .arg("last")
        .arg(path)
        .output()
        .expect("rrdtool");
    let text = String::from_utf8_lossy(&output.stdout);
    let last: u64 = text.trim().parse().expect("a stamp");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock");
    now.as_secs().saturating_sub(last)
}

/// Rows of the last half minute that hold a number.
fn known_values(path: &Path) -> usize {
    let mut command = Command::new("rrdtool");
    let output = command
        .arg("fetch")
        .arg(path)
        .args(["AVERAGE", "-s", "-30s"])
        .output();
    let output = output.expect("rrdtool");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = text
        .lines()
        .filter(|line| line.contains(": ") && !line.contains("nan"));
    rows.count()
}
