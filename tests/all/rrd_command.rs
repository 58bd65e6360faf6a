//! `kymo rrd` beside stock `rrdtool`: the same command lines in two folders with the same files; output, exit code and
//! the files afterwards are equal. Archives of both begin at any row: they are rotated to compare them, then both
//! folders get the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kymo_rrd::{Header, Rrd};
use kymo_tests::{Running, Scratch, free_port, kymo};

/// The tests' time zone, which has summer time.
const ZONE: &str = "Europe/Zurich";

/// Runs of a command line if the clock moves to another second meanwhile.
const TRIES: usize = 20;

fn second() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

/// The two programs, each in its own folder.
struct Pair {
    scratch: Scratch,
    /// Environment of both programs.
    variables: Vec<(&'static str, String)>,
    /// TCP port of the daemon in each folder; 0: none.
    ports: [u16; 2],
}

impl Pair {
    fn new(name: &str) -> Pair {
        let scratch = Scratch::new(name);
        for folder in ["stock", "kymo"] {
            fs::create_dir(scratch.path(folder)).expect("a folder");
        }
        Pair {
            scratch,
            variables: vec![("TZ", ZONE.into())],
            ports: [0; 2],
        }
    }

    fn folders(&self) -> [PathBuf; 2] {
        ["stock", "kymo"].map(|name| self.scratch.path(name))
    }

    /// Both commands, with pipes. `PORT` and `HERE` in the words become each side's own.
    fn commands(&self, words: &[String]) -> [Command; 2] {
        let [stock, ours] = self.folders();
        let (mut rrdtool, mut kymo) = (Command::new("rrdtool"), Command::new(kymo()));
        rrdtool.current_dir(&stock);
        kymo.current_dir(&ours).arg("rrd");
        let sides = [(rrdtool, stock, self.ports[0]), (kymo, ours, self.ports[1])];
        sides.map(|(mut command, here, port)| {
            let own = |text: &str| {
                text.replace("PORT", &port.to_string())
                    .replace("HERE", &here.to_string_lossy())
            };
            command
                .args(words.iter().map(|word| own(word)))
                .stdin(Stdio::null());
            command.env_remove("RRDCACHED_ADDRESS").env_remove("PWD");
            for (name, value) in &self.variables {
                command.env(name, own(value));
            }
            command
        })
    }

    /// The text with the same names for the folders and ports of both sides.
    fn masked(&self, text: &str) -> String {
        let mut text = text.to_string();
        for (folder, port) in self.folders().iter().zip(self.ports) {
            text = text.replace(&*folder.to_string_lossy(), "HERE");
            if port != 0 {
                text = text
                    .replace(&format!(":{port}"), ":PORT")
                    .replace(&format!("port {port}"), "port PORT");
            }
        }
        text
    }

    /// Runs a command line in both folders and returns the difference. Afterwards both have stock's files. If a second
    /// ended meanwhile, "now" may differ between the two, so that both run again.
    fn difference(&self, line: &str) -> Option<String> {
        let before = files(&self.folders()[0]);
        for _ in 1..TRIES {
            let began = second();
            let difference = self.difference_once(line);
            if difference.is_none() || self.ports[0] != 0 || second() == began {
                return difference;
            }
            self.restore(&before);
        }
        self.difference_once(line)
    }

    fn restore(&self, before: &Files) {
        for folder in self.folders() {
            for name in files(&folder)
                .keys()
                .filter(|name| !before.contains_key(*name))
            {
                fs::remove_file(folder.join(name)).expect("remove");
            }
            for (name, (mode, bytes)) in before {
                fs::write(folder.join(name), bytes).expect("write");
                fs::set_permissions(folder.join(name), fs::Permissions::from_mode(*mode))
                    .expect("its mode");
            }
        }
    }

    fn difference_once(&self, line: &str) -> Option<String> {
        let outputs = self.commands(&words_of(line));
        let run = |mut command: Command| self.masked(&shown(&command.output().expect("it runs")));
        let [stock, ours] = outputs.map(run);
        let said = (stock != ours).then(|| format!("{ours}=== not as stock:\n{stock}"));
        self.flush_what_was_fetched(line);
        said.or(self.files_differ())
    }

    /// Flushes a fetched file, since kymo's daemon answers a fetch without writing the file.
    fn flush_what_was_fetched(&self, line: &str) {
        let words = words_of(line);
        if self.ports[0] == 0 || words.first().is_none_or(|word| word != "fetch") {
            return;
        }
        let mut flush = vec!["flushcached".to_string(), words[1].clone()];
        let address = words.iter().position(|word| word == "-d");
        flush.extend(address.iter().flat_map(|&at| words[at..at + 2].to_vec()));
        for mut command in self.commands(&flush) {
            // The file or the daemon may be missing: the result does not matter.
            let _said = command.output().expect("it runs");
        }
    }

    /// Compares the folders, with daemons after the time that they need to write. Files that differ only in the first
    /// row become the same.
    fn files_differ(&self) -> Option<String> {
        let end = Instant::now() + Duration::from_secs(if self.ports[0] == 0 { 0 } else { 5 });
        let [stock, ours] = self.folders();
        loop {
            let (theirs, mine) = (files(&stock), files(&ours));
            let difference = all_differences(&theirs, &mine);
            if difference.is_some() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            for name in theirs.keys().chain(mine.keys()) {
                let _ = match theirs.get(name) {
                    Some(file) if mine.get(name) == Some(file) => Ok(()),
                    Some(file) => fs::write(ours.join(name), &file.1),
                    None => fs::remove_file(ours.join(name)),
                };
            }
            return difference;
        }
    }
}

fn all_differences(theirs: &Files, mine: &Files) -> Option<String> {
    let names: BTreeSet<&String> = theirs.keys().chain(mine.keys()).collect();
    let differences = names.into_iter().filter_map(|name| {
        let difference = match (theirs.get(name), mine.get(name)) {
            (Some(theirs), Some(mine)) if theirs == mine => None,
            (Some(theirs), Some(mine)) if theirs.0 != mine.0 => {
                Some(format!("mode {:o}, stock's {:o}", mine.0, theirs.0))
            }
            (Some(theirs), Some(mine)) => compare(&theirs.1, &mine.1),
            (there, _) => Some(format!("only stock has it: {}", there.is_some())),
        };
        difference.map(|text| format!("{name}: {text}"))
    });
    let text: String = differences.collect();
    (!text.is_empty()).then_some(text)
}

/// Words between blanks; a quoted blank is part of its word.
fn words_of(line: &str) -> Vec<String> {
    let (mut words, mut quoted) = (Vec::new(), false);
    let mut word: Option<String> = None;
    for letter in line.chars() {
        match letter {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{:?}\n{}--- stderr\n{}",
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// Mode and bytes by name.
type Files = BTreeMap<String, (u32, Vec<u8>)>;

fn files(folder: &PathBuf) -> Files {
    let entries = fs::read_dir(folder).expect("list").flatten();
    let files = entries.filter_map(|entry| {
        let stat = fs::metadata(entry.path())
            .ok()
            .filter(fs::Metadata::is_file)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // kymo's file with the folder's owner.
        if name == ".kymo-owner" {
            return None;
        }
        let bytes = fs::read(entry.path()).unwrap_or_default();
        Some((name, (stat.permissions().mode(), bytes)))
    });
    files.collect()
}

/// The difference between two files, apart from the first rows of their archives.
fn compare(theirs: &[u8], mine: &[u8]) -> Option<String> {
    let (Some(theirs), Some(mine)) = (turned(theirs), turned(mine)) else {
        return Some("other bytes".into());
    };
    let different = different_lines(&theirs.header, &mine.header);
    if !different.is_empty() {
        return Some(different);
    }
    let differ = mine.to_bytes() != theirs.to_bytes();
    differ.then(|| format!("{:?}\n=== not as stock:\n{:?}", mine.cells, theirs.cells))
}

/// Parts of two headers that differ, stock's first.
fn different_lines(theirs: &Header, mine: &Header) -> String {
    let parts = |header: &Header| {
        let begin = (
            header.version,
            header.pdp_step,
            header.last_up,
            header.last_up_usec,
        );
        let mut parts = vec![format!("{begin:?} {:?}", header.cur_row)];
        parts.extend(header.ds.iter().map(|part| format!("{part:?}")));
        parts.extend(header.rra.iter().map(|part| format!("{part:?}")));
        parts.extend(header.pdp_prep.iter().map(|part| format!("{part:?}")));
        parts.extend(header.cdp_prep.iter().map(|part| format!("{part:?}")));
        parts
    };
    let (theirs, mine) = (parts(theirs), parts(mine));
    let count =
        (theirs.len() != mine.len()).then(|| format!("{} parts, {}", theirs.len(), mine.len()));
    let lines = theirs
        .iter()
        .zip(&mine)
        .filter(|(theirs, mine)| theirs != mine);
    let lines = lines.map(|(theirs, mine)| format!("- {theirs}\n+ {mine}\n"));
    lines.chain(count).collect()
}

/// A file whose archives have their newest row last.
fn turned(bytes: &[u8]) -> Option<Rrd> {
    let mut rrd = Rrd::parse(bytes).ok()?;
    // stock's tune leaves random bytes of its memory here.
    for source in &mut rrd.header.ds {
        if source.dst() != b"COMPUTE" {
            source.par[3..].fill(0);
        }
    }
    let columns = rrd.header.ds.len();
    let mut rest = rrd.cells.as_mut_slice();
    for (rra, cur_row) in rrd.header.rra.iter().zip(&mut rrd.header.cur_row) {
        let (rows, behind) = rest.split_at_mut(rra.row_cnt as usize * columns);
        rows.rotate_left((*cur_row as usize + 1) * columns % rows.len());
        *cur_row = rra.row_cnt - 1;
        rest = behind;
    }
    Some(rrd)
}

fn check(pair: &Pair, lines: &str) {
    let lines = lines.lines().filter(|line| !line.is_empty());
    let wrong: Vec<String> = lines
        .filter_map(|line| Some(format!("{line}\n{}\n", pair.difference(line)?)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} lines:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn command_lines() {
    check(&Pair::new("lines"), LINES);
}

#[test]
fn holt_winters_and_old_versions() {
    let pair = Pair::new("versions");
    check(&pair, HOLT_WINTERS);
    // Old versions have no microseconds. stock cannot make them, so the test derives one from a new file.
    let mut old =
        Rrd::parse(&fs::read(pair.folders()[0].join("o.rrd")).expect("o.rrd")).expect("a file");
    for version in [1, 2] {
        old.header.version = version;
        for folder in pair.folders() {
            fs::write(folder.join("o.rrd"), old.to_bytes()).expect("write");
        }
        check(&pair, OLD);
    }
}

const HOLT_WINTERS: &str = "
create h.rrd -b 1000000000 -s 10 DS:x:GAUGE:60:U:U DS:c:COMPUTE:x,2,* RRA:AVERAGE:0.5:1:20 RRA:HWPREDICT:40:0.1:0.01:10
update h.rrd 1000000010:1 1000000020:2 1000000030:4 1000000040:1 1000000050:7 1000000060:3 1000000070:1 1000000080:2
update h.rrd 1000000190:1 1000000195:9 1000000200:2 1000000210:5 1000000220:6 1000000700:4 1000000710:5
updatev h.rrd 1000000720:1 1000000730:4
info h.rrd
dump h.rrd
dump h.rrd h.xml
restore h.xml i.rrd
info i.rrd
tune h.rrd --alpha 0.2 --beta 0.3 --gamma 0.4 --gamma-deviation 0.5 --deltapos 3 --deltaneg 4
tune h.rrd --window-length 5 --failure-threshold 3 --smoothing-window 0.1 --smoothing-window-deviation 0.2
tune h.rrd --aberrant-reset x
tune h.rrd -b nothing
tune h.rrd -x 0.2 -y 7 -z 0.4
info h.rrd
fetch h.rrd FAILURES -s 1000000000 -e 1000000800
fetch h.rrd HWPREDICT -s 1000000000 -e 1000000800
fetch h.rrd MHWPREDICT -s 1000000000 -e 1000000800
create t.rrd -t h.rrd
create t.rrd -t h.rrd -s 5 DS:n:GAUGE:60:U:U
create s.rrd -r h.rrd -s 10 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
create s.rrd -r h.rrd -r t.rrd -s 10 DS:y=x:GAUGE:60:U:U DS:z=x[1]:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
create d.rrd -b 1000000000 DS:a:DCOUNTER:600:U:U DS:b:DDERIVE:600:U:U DS:c:DERIVE:600:U:U DS:d:ABSOLUTE:600:U:U RRA:LAST:0.5:1:9
update d.rrd 1000000300:1:2:3:4 1000000600:2.5:1.5:7:8 1000000900:U:1:9:1
dump d.rrd
lastupdate d.rrd
create o.rrd -b 1000000000 -s 10 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
";

const OLD: &str = "
info o.rrd
update o.rrd 1000000010.5:1
update o.rrd 1000000020:5 1000000035.25:1
updatev o.rrd N:1
fetch o.rrd AVERAGE -s 1000000000 -e 1000000050
dump o.rrd
tune o.rrd -h x:77
tune o.rrd DS:y:GAUGE:60:U:U
create p.rrd -r o.rrd -s 10 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
";

/// Messages about broken files.
#[test]
fn broken_files() {
    let pair = Pair::new("broken");
    check(
        &pair,
        "create a.rrd -b 1000000000 DS:x:GAUGE:60:U:U DS:y:GAUGE:60:U:U RRA:LAST:0:1:10 RRA:LAST:0:2:10",
    );
    let good = fs::read(pair.folders()[0].join("a.rrd")).expect("a.rrd");
    let cut = |at: usize| good[..at].to_vec();
    let with = |at: usize, bytes: &[u8]| {
        let mut broken = good.clone();
        broken[at..at + bytes.len()].copy_from_slice(bytes);
        broken
    };
    let cuts = [
        0,
        1,
        127,
        128,
        300,
        400,
        600,
        610,
        630,
        700,
        900,
        1150,
        1170,
        1200,
        good.len() - 1,
    ];
    let mut broken: Vec<Vec<u8>> = cuts.into_iter().map(cut).collect();
    broken.push(with(0, b"XRD"));
    broken.push(with(4, b"0006"));
    broken.push(with(16, &[1]));
    broken.push(
        b"not an RRD, but longer than the header of one is, so that it is not short only".repeat(5),
    );
    for (i, bytes) in broken.iter().enumerate() {
        for folder in pair.folders() {
            fs::write(folder.join("b.rrd"), bytes).expect("write");
        }
        let lines = [
            "info b.rrd",
            "update b.rrd 1000000300:1:1",
            "dump b.rrd",
            "last b.rrd",
            "tune b.rrd -h x:1",
        ];
        for line in lines {
            let difference = pair.difference(line);
            assert_eq!(difference, None, "broken file {i}: {line}");
        }
    }
}

/// Takes a lock as another process would.
#[allow(unsafe_code)]
fn lock(file: &File, kind: libc::c_int) {
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: reads the struct it is given, which lives until it returns.
    let taken = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) };
    assert_eq!(taken, 0, "cannot lock");
}

#[test]
fn locked_files() {
    let pair = Pair::new("locks");
    check(
        &pair,
        "create a.rrd -b 1000000000 DS:x:GAUGE:60:U:U RRA:LAST:0:1:10",
    );
    for kind in [libc::F_RDLCK, libc::F_WRLCK] {
        let locked = pair.folders().map(|folder| {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(folder.join("a.rrd"));
            let file = file.expect("a.rrd");
            lock(&file, kind);
            file
        });
        // The test must not open the files: closing one would release the lock.
        for line in LOCKED.lines().filter(|line| !line.is_empty()) {
            let outputs = pair.commands(&words_of(line));
            let [stock, ours] =
                outputs.map(|mut command| shown(&command.output().expect("it runs")));
            assert_eq!(ours, stock, "{line}");
        }
        drop(locked);
    }
}

const LOCKED: &str = "
info a.rrd
last a.rrd
update a.rrd 1000000300:1
updatev a.rrd 1000000300:1
tune a.rrd -h x:5
resize a.rrd 0 GROW 5
dump a.rrd
create b.rrd -t a.rrd
create b.rrd -r a.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
";

/// The daemon with which kymo's client talks.
#[derive(Clone, Copy, PartialEq)]
enum Daemon {
    Stock,
    Kymo,
}

/// Starts a daemon in each folder, on `d.sock` and on a port. stock's client always has stock's daemon.
fn start_daemons(pair: &mut Pair, ours: Daemon) -> Vec<Running> {
    let folders = pair.folders();
    pair.ports = [free_port(), free_port()];
    let start = |(folder, port): (&PathBuf, u16)| {
        let (socket, tcp) = (
            format!("unix:{}/d.sock", folder.display()),
            format!("127.0.0.1:{port}"),
        );
        let stock = ours == Daemon::Stock || folder.ends_with("stock");
        let mut command = Command::new(if stock { "rrdcached".into() } else { kymo() });
        command.args((!stock).then_some("rrdcached"));
        if !stock {
            // The store of kymo's daemon, which by default would be a folder among the files.
            let journal = folder.with_extension("journal");
            fs::create_dir(&journal).expect("a folder");
            command.arg("-j").arg(journal);
        }
        command.args([
            "-g",
            "-l",
            &socket,
            "-l",
            &tcp,
            "-l",
            &format!("[::1]:{port}"),
            "-F",
            "-B",
        ]);
        command
            .arg("-b")
            .arg(folder)
            .arg("-p")
            .arg(folder.with_extension("pid"));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let daemon = Running(command.spawn().expect("rrdcached"));
        let end = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "rrdcached does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        daemon
    };
    folders.iter().zip(pair.ports).map(start).collect()
}

#[test]
fn through_a_stock_daemon() {
    through_a_daemon(Daemon::Stock);
}

#[test]
fn through_kymos_daemon() {
    through_a_daemon(Daemon::Kymo);
}

fn through_a_daemon(ours: Daemon) {
    let mut pair = Pair::new("daemon");
    let _daemons = start_daemons(&mut pair, ours);
    check(&pair, UNIX);
    check(&pair, TCP);
    pair.variables.push(("RRDCACHED_STRIPPATH", "HERE".into()));
    check(&pair, STRIPPED);
    pair.variables
        .push(("RRDCACHED_ADDRESS", "unix:d.sock".into()));
    check(&pair, ENVIRONMENT);
    pair.variables.pop();
    pair.variables
        .push(("RRDCACHED_ADDRESS", "unix:nowhere".into()));
    check(&pair, NOWHERE);
    pair.variables.pop();
    pair.variables.push(("RRDCACHED_ADDRESS", String::new()));
    check(&pair, EMPTY);
    pair.variables.pop();
    let commands = pair.commands(&words_of("-")).into_iter().zip(pair.ports);
    let answers: Vec<String> = commands
        .map(|(command, port)| {
            let input = DAEMON_PIPE.replace("PORT", &port.to_string());
            pair.masked(&transcript(command, &input))
        })
        .collect();
    let [stock, ours] = answers.try_into().expect("two");
    assert_eq!(ours, stock);
    assert_eq!(pair.files_differ(), None);
}

/// All commands over a unix socket, except for flushcached of a missing file: stock's message there is copied over itself.
const UNIX: &str = "
create a.rrd -d unix:d.sock -b 1000000000 -s 10 DS:x:GAUGE:60:U:U DS:y:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
create a.rrd -O -d unix:d.sock -b 1000000000 -s 10 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
create b.rrd --daemon HERE/d.sock DS:x:GAUGE:60:U:U
create c.rrd -d unix:d.sock -t a.rrd
create e.rrd -d unix:d.sock -r HERE/a.rrd -b 1000000000 -s 10 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
create nodir/c.rrd -d unix:d.sock DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
update a.rrd -d unix:d.sock 1000000010:1:2 1000000020:3:4
update a.rrd -d unix:d.sock 1000000010:1:2
update a.rrd -d unix:d.sock -t y 1000000030:5
update a.rrd -d unix:d.sock -t y:z 1000000030:5:6
update a.rrd -d unix:d.sock -t y:x 1000000030:5
update a.rrd -d unix:d.sock -t y:x:z 1000000030:5:6:7
update a.rrd -d unix:d.sock -t y -s 1000000040:5
update nofile.rrd -d unix:d.sock -t y 1000000040:5
update nofile.rrd -d unix:d.sock 1000000040:5
update a.rrd -d unix:d.sock gibberish
last a.rrd -d unix:d.sock
last a.rrd
last nofile.rrd -d unix:d.sock
first a.rrd -d unix:d.sock
first a.rrd -d unix:d.sock --rraindex 7
lastupdate a.rrd -d unix:d.sock
lastupdate nofile.rrd -d unix:d.sock
update a.rrd -d unix:d.sock 1000000050:7:8.25
info a.rrd -d unix:d.sock -F
info a.rrd -d unix:d.sock
info nofile.rrd -d unix:d.sock
info nofile.rrd -d unix:d.sock -F
update a.rrd -d unix:d.sock 1000000060:7:-8e-7
fetch a.rrd AVERAGE -d unix:d.sock -s 1000000000 -e 1000000100
fetch a.rrd AVERAGE -d unix:d.sock -s 1000000000 -e 1000000100 -r 60
fetch a.rrd NONE -d unix:d.sock -s 1000000000 -e 1000000100
fetch nofile.rrd AVERAGE -d unix:d.sock -s 1000000000 -e 1000000100
update a.rrd -d unix:d.sock 1000000070:7:8
dump a.rrd -d unix:d.sock
dump a.rrd -d unix:d.sock a.xml
dump nofile.rrd -d unix:d.sock
update a.rrd -d unix:d.sock 1000000080:7:8
tune a.rrd -D unix:d.sock -h x:77
tune a.rrd -D unix:d.sock DEL:y
tune nofile.rrd -D unix:d.sock -h x:77
update a.rrd -d unix:d.sock 1000000090:7
flushcached a.rrd -d unix:d.sock
flushcached a.rrd e.rrd a.rrd -d unix:d.sock
list -d unix:d.sock a.rrd
list -d unix:d.sock -r nodir
list -d unix:d.sock /a.rrd
list -d unix:d.sock -F /e.rrd
list -d unix:d.sock ..
update 'a b.rrd' -d unix:d.sock 1000000090:7
create 'a b\\c.rrd' -d unix:d.sock -b 1000000000 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
update 'a b\\c.rrd' -d unix:d.sock 1000000300:7
fetch 'a b\\c.rrd' AVERAGE -d unix:d.sock -s 1000000000 -e 1000000300
update a.rrd -d unix:nowhere 1000000100:7
create f.rrd -d unix:nowhere -b 1000000000 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
last a.rrd -d unix:nowhere
first a.rrd -d unix:nowhere
info a.rrd -d unix:nowhere
lastupdate a.rrd -d unix:nowhere
dump a.rrd -d unix:nowhere
fetch a.rrd AVERAGE -d unix:nowhere -s 1000000000 -e 1000000100
tune a.rrd -D unix:nowhere -h x:60
list . -d unix:nowhere
flushcached a.rrd -d unix:nowhere
last nofile.rrd -d unix:nowhere
";

const TCP: &str = "
create g.rrd -d 127.0.0.1:PORT -b 1000000000 -s 10 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
create HERE/g.rrd -d 127.0.0.1:PORT -b 1000000000 -s 10 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
update g.rrd -d 127.0.0.1:PORT 1000000010:1
update g.rrd -d localhost:PORT 1000000020:1
update g.rrd -d [::1]:PORT 1000000030:1
update HERE/g.rrd -d 127.0.0.1:PORT 1000000040:1
last g.rrd -d 127.0.0.1:PORT
last HERE/g.rrd -d 127.0.0.1:PORT
info g.rrd -d 127.0.0.1:PORT
info HERE/g.rrd -d 127.0.0.1:PORT
info HERE/g.rrd -F -d 127.0.0.1:PORT
fetch g.rrd AVERAGE -d 127.0.0.1:PORT -s 1000000000 -e 1000000100
lastupdate g.rrd -d 127.0.0.1:PORT
dump g.rrd -d 127.0.0.1:PORT
tune g.rrd -D 127.0.0.1:PORT -h x:7
flushcached g.rrd -d 127.0.0.1:PORT
list /g.rrd -d 127.0.0.1:PORT
last g.rrd -d 127.0.0.1:1
last g.rrd -d [::1
last g.rrd -d [::1]x
last g.rrd -d nohost.invalid:5
last g.rrd -d 127.0.0.1:noport
";

const STRIPPED: &str = "
update HERE/g.rrd -d 127.0.0.1:PORT 1000000050:1
last HERE/g.rrd -d 127.0.0.1:PORT
last HERE///g.rrd -d 127.0.0.1:PORT
last g.rrd -d 127.0.0.1:PORT
last HERE/g.rrd -d unix:d.sock
";

const ENVIRONMENT: &str = "
update a.rrd 1000000110:7
last a.rrd
updatev a.rrd 1000000120:7
updatev a.rrd 1000000120:7
last a.rrd
fetch a.rrd AVERAGE -s 1000000000 -e 1000000150
info a.rrd
lastupdate a.rrd
dump a.rrd
tune a.rrd -a x:100
create h.rrd -b 1000000000 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
resize h.rrd 0 GROW 4
restore a.xml i.rrd
list /a.rrd
flushcached a.rrd
last a.rrd -d 127.0.0.1:PORT
";

const NOWHERE: &str = "
update a.rrd 1000000130:7
last a.rrd
last nofile.rrd
info a.rrd
list .
tune a.rrd -a x:100
create j.rrd -b 1000000000 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
resize j.rrd 0 GROW 4
flushcached a.rrd
";

const EMPTY: &str = "
update a.rrd 1000000140:7
updatev a.rrd 1000000150:7
last a.rrd
flushcached a.rrd
";

/// A pipe keeps its connection from command to command.
const DAEMON_PIPE: &str = "update a.rrd -d unix:d.sock 1000000160:1
last a.rrd -d unix:d.sock
last a.rrd
update g.rrd -d 127.0.0.1:PORT 1000000160:1
last a.rrd -d unix:d.sock
create k.rrd -b 1000000000 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20
flushcached a.rrd -d unix:d.sock
list /a.rrd -d unix:d.sock
last a.rrd -d unix:d.sock
update a.rrd -d unix:nowhere 1:1
last a.rrd -d unix:nowhere
last a.rrd
tune a.rrd -D unix:d.sock -a x:9
flushcached a.rrd -d unix:d.sock
tune a.rrd -a x:8
";

/// Answers of a pipe, without the times.
fn transcript(mut command: Command, input: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdin = child.stdin.take().expect("stdin");
    // The program may end before it has read everything.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = shown(&output);
    let masked = text.lines().map(|line| match line {
        line if line.starts_with("OK u:") => "OK",
        // Rows begin anywhere.
        line if line.starts_with("rra[0].cur_row") => "cur_row",
        line => line,
    });
    masked.collect::<Vec<_>>().join("\n")
}

#[test]
fn pipes() {
    let pair = Pair::new("pipe");
    for (words, input) in PIPES {
        let [stock, ours] = pair
            .commands(&words_of(words))
            .map(|command| transcript(command, input));
        // The help text is kymo's own.
        let unlike = |text: &str| {
            let parts = text.split("RRDtool 1.7.2").enumerate();
            let parts = parts.map(|(i, part)| {
                if i == 0 {
                    part
                } else {
                    part.find("OK\n").map_or("", |at| &part[at..])
                }
            });
            parts.collect::<Vec<_>>().join("<help>\n")
        };
        assert_eq!(unlike(&ours), unlike(&stock), "{words}: {input}");
        assert_eq!(pair.files_differ(), None, "{words}: {input}");
    }
}

#[test]
fn folders_are_listed() {
    let pair = Pair::new("list");
    for folder in pair.folders() {
        for dir in ["d/e", "empty", "d.rrd"] {
            fs::create_dir_all(folder.join(dir)).expect("a folder");
        }
        let names = [
            "a.rrd",
            "b.rrd",
            ".hidden.rrd",
            "d/c.rrd",
            "d/e/f.rrd",
            "d/e/f.txt",
            "x.rrd.rrd",
            "a.rrd.bak",
            "[z].rrd",
            "d.rrd/g.rrd",
            "A.RRD",
        ];
        for name in names {
            fs::write(folder.join(name), name).expect("a file");
        }
        symlink("d", folder.join("link")).expect("a link");
        symlink("nowhere", folder.join("broken.rrd")).expect("a link");
        drop(UnixListener::bind(folder.join("socket")).expect("a socket"));
    }
    check(&pair, LISTS);
}

const LISTS: &str = "
list .
list ./
list -r .
list --recursive d
list d/
list d//e
list empty
list -r empty
list a.rrd
list ./a.rrd
list d.rrd
list ./d.rrd
list ./x.rrd.rrd
list socket
list link
list -r link
list './*.rrd'
list './?.rrd'
list 'd/*/*'
list '*/c.rrd'
list './[ab]*'
list './[ab].rr?'
list './.h*'
list './\\[z].rr?'
list './[[]z?.rrd'
list './*/'
list '*.rrd'
list 'nothing*'
list HERE
list 'HERE/*.rrd'
list -F .
list -r '*'
list '?'
list d/../d
list ''
";

/// A new file has the mode of the one it replaces; links are followed, or replaced where a file is made in their place.
#[test]
fn modes_and_links() {
    let pair = Pair::new("modes");
    check(
        &pair,
        "create a.rrd -b 1000000000 DS:x:GAUGE:60:U:U RRA:LAST:0:1:10\ndump a.rrd a.xml\nrestore a.xml b.rrd",
    );
    for folder in pair.folders() {
        fs::set_permissions(folder.join("a.rrd"), fs::Permissions::from_mode(0o640))
            .expect("a mode");
        symlink("a.rrd", folder.join("link.rrd")).expect("a link");
        symlink("nowhere", folder.join("broken.rrd")).expect("a link");
        symlink("b.rrd", folder.join("other.rrd")).expect("a link");
    }
    check(&pair, LINKS);
    let is_link = |name: &str| pair.folders().map(|folder| folder.join(name).is_symlink());
    for name in ["link.rrd", "other.rrd", "broken.rrd"] {
        let [stock, ours] = is_link(name);
        assert_eq!(ours, stock, "{name}");
    }
}

const LINKS: &str = "
create a.rrd -b 1000000000 DS:x:GAUGE:60:U:U RRA:LAST:0:1:20
update link.rrd 1000000300:1
info link.rrd
tune link.rrd -h x:5
tune link.rrd DS:y:GAUGE:60:U:U
update broken.rrd 1000000300:1
restore a.xml broken.rrd
restore -f a.xml other.rrd
create other.rrd -b 1000000000 DS:x:GAUGE:60:U:U RRA:LAST:0:1:20
create broken.rrd -O -b 1000000000 DS:x:GAUGE:60:U:U RRA:LAST:0:1:20
resize a.rrd 0 GROW 2
";

/// XML over the pipe ends with a control-Z.
#[test]
fn a_dump_is_restored_over_the_pipe() {
    let pair = Pair::new("xml");
    check(
        &pair,
        "create a.rrd -b 1000000000 DS:x:GAUGE:60:U:U RRA:LAST:0:1:10\nupdate a.rrd 1000000300:1 1000000600:7",
    );
    check(&pair, "dump a.rrd a.xml");
    let xml = fs::read_to_string(pair.folders()[0].join("a.xml")).expect("a.xml");
    let input = format!(
        "restore - b.rrd\n{xml}\x1a\nlast b.rrd\nrestore -f - b.rrd\n{xml}\x1a rest\nlast b.rrd\n"
    );
    let [stock, ours] = pair
        .commands(&words_of("-"))
        .map(|command| transcript(command, &input));
    assert_eq!(ours, stock);
    assert_eq!(pair.files_differ(), None);
    let [stock, ours] = pair
        .commands(&words_of("restore - c.rrd"))
        .map(|command| transcript(command, &xml));
    assert_eq!(ours, stock);
    assert_eq!(pair.files_differ(), None);
}

/// Words of the command line, and the input of the pipe.
const PIPES: &[(&str, &str)] = &[
    (
        "-",
        "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20\nupdate a.rrd 1000000010:1\nupdate 'a.rrd' \"1000000020:1\"\n\
         update a.rrd 5:1\nlast a.rrd\nnonsense a\nnonsense\n\n   \nupdate\nupdate a.rrd\nupdate 'a.rrd\nfetch a.rrd AVERAGE -s 1000000000 -e 1000000050\n\
         updatev a.rrd 1000000030:1 1000000040:2\nlast nofile.rrd\ninfo a.rrd\r\nfirst a.rrd   \nlastupdate a.rrd\nlist .\nlist nodir\n",
    ),
    (
        "-",
        "mkdir d\ncd d\nls\ncd ..\nls\nls x\nmkdir d\nmkdir\ncd nodir\ncd\npwd x\nquit x\nquit\nls\n",
    ),
    (
        "-",
        "mkdir 'a b'\ncd 'a b'\ncreate \"c d.rrd\" -b 1000000000 DS:x:GAUGE:60:U:U RRA:AVERAGE:0.5:1:20\nlast 'c d.rrd'\nls",
    ),
    ("-", "graph\nquit"),
    ("-", "    "),
    ("-", ""),
    ("- nodir", "ls\n"),
    ("- d more", "ls\n"),
    ("- ''", "last a.rrd\n"),
    (
        "-",
        "dump a.rrd a.xml\nrestore a.xml b.rrd\nrestore a.xml b.rrd\nresize a.rrd 0 GROW 5\ntune a.rrd -h x:5\ntune a.rrd -q\n",
    ),
];

const LINES: &str = "
create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:60:U:U DS:y:COUNTER:60:0:U RRA:AVERAGE:0.5:1:20 RRA:MAX:0.5:3:10
create --start=1000000000 --step 10 -O DS:x:GAUGE:60:U:U b.rrd RRA:LAST:0:1:10
create b.rrd -O -b 1000000000 DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create a.rrd
create -b 1000000000
create -b 5 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b start+5 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b gibberish c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -s 0 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -s 10x c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U
create -b 1000000000 c.rrd RRA:LAST:0:1:10
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 nonsense
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 --nonsense
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 -q
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 -t
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 --template
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 --no-overwrite=1
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b 1000000000 nodir/c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b 1000000000 c.rrd -r nosource.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b 1000000000 c.rrd -r . DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b 1000000000 c.rrd -t nosource.rrd
create -b 1000000000 c.rrd -t a.rrd -t a.rrd
create -b 1000000000 c.rrd -- DS:x:GAUGE:60:U:U -RRA:LAST:0:1:10
create '-b20010909 03:46' d.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
update a.rrd 1000000010:1:2
update a.rrd 1000000020:1:2 1000000025.5:3:4 1000000030:U:5
update a.rrd 1000000020:1:2
update a.rrd 1000000040:1
update a.rrd 1000000040:1:2:3
update a.rrd 1000000040:1:x
update a.rrd 1000000050:7:8 1000000045:1:2 1000000060:9:9
update -s a.rrd 1000000050:7:8 1000000045:1:2 1000000060:9:9
update --skip-past-updates a.rrd 1000000050:7:8
update -t y a.rrd 1000000070:20
update --template y:x a.rrd 1000000080:21:3
update --template=y:z a.rrd 1000000090:21:3
update -t y:x a.rrd 1000000090:21
update a.rrd
update -t x
update --skip a.rrd 1000000090:1:1
update nofile.rrd 1000000090:1:1
update . 1000000090:1:1
update a.rrd '20010909 03:48:20@1:2'
update a.rrd '20010909 03:48@1:2'
update a.rrd gibberish@1:2
update a.rrd start+5@1:2
update a.rrd 1000000100:
update a.rrd :1:2
update a.rrd 1e9:1:2
updatev a.rrd 1000000110:1:50
updatev a.rrd 1000000200:1:60 1000000190:5:5
updatev -s a.rrd 1000000200:1:60 1000000230:5:5
updatev -t x a.rrd 1000000240:5
updatev -d unix:/nowhere a.rrd 1000000240:5
updatev a.rrd
updatev nofile.rrd 1:1
info a.rrd
info -F a.rrd
info a.rrd b.rrd
info -q a.rrd
info nofile.rrd
info .
fetch a.rrd AVERAGE -s 1000000000 -e 1000000250
fetch a.rrd AVERAGE --start 1000000000 --end start+100
fetch a.rrd MAX -s 1000000000 -e 1000000250
fetch a.rrd MAX -s 1000000000 -e 1000000250 -r 30
fetch a.rrd MAX -s 1000000005 -e 1000000253 -a -r 30
fetch a.rrd MIN -s 1000000000 -e 1000000250
fetch a.rrd HWPREDICT -s 1000000000 -e 1000000250
fetch a.rrd NONE -s 1000000000 -e 1000000250
fetch nofile.rrd NONE -s 1000000000 -e 1000000250
fetch nofile.rrd MAX -s 1000000000 -e 1000000250
fetch a.rrd
fetch a.rrd MAX -s 1000000000 -e 999999999
fetch a.rrd MAX -s 5 -e 10
fetch a.rrd MAX -s start+5
fetch a.rrd MAX -s end-5 -e start+5
fetch a.rrd MAX -e end-5
fetch a.rrd MAX -s now-x
fetch a.rrd MAX -s now+
fetch a.rrd MAX -e gibber^ish
fetch a.rrd MAX -r 0 -s 1000000000 -e 1000000250
fetch a.rrd MAX -r 5x -s 1000000000 -e 1000000250
fetch a.rrd MAX -r 1m -s 1000000000 -e 1000000250
fetch a.rrd MAX more words -s 1000000000 -e 1000000250
fetch -s1000000000 -e1000000250 -- a.rrd AVERAGE
first a.rrd
first a.rrd --rraindex 1
first a.rrd --rraindex=0x1
first a.rrd --rraindex 2
first a.rrd --rraindex -1
first a.rrd --rraindex
first nofile.rrd
first --daemon
last a.rrd
last a.rrd b.rrd
last nofile.rrd
last -x a.rrd
lastupdate a.rrd
lastupdate b.rrd
lastupdate nofile.rrd
lastupdate a.rrd b.rrd
dump a.rrd
dump -n a.rrd
dump -h xsd a.rrd
dump --header none a.rrd
dump --header strange a.rrd
dump a.rrd a.xml
dump -h xsd b.rrd b.xml
dump -q a.rrd
dump a.rrd b c
dump nofile.rrd
dump nofile.rrd nofile.xml
restore a.xml e.rrd
restore a.xml e.rrd
restore -f a.xml e.rrd
restore -r b.xml f.rrd
restore --force-overwrite --range-check b.xml f.rrd
restore nofile.xml g.rrd
restore a.xml
restore -q a.xml g.rrd
restore a.xml nodir/g.rrd
tune b.rrd -h x:120
tune b.rrd --minimum x:0 --maximum x:5e3
tune b.rrd -a x:U -i x:-1
tune b.rrd -a y:U
tune b.rrd -a x
tune b.rrd -a x:word
tune b.rrd -d x:DERIVE
tune b.rrd -d x:DERIVATIVE
tune b.rrd -d x:COMPUTE
tune b.rrd -r x:z
tune b.rrd -r x:y
tune b.rrd -h z:1 -q
tune b.rrd -h z:7 --minimum
tune b.rrd --gamma 0.5
tune b.rrd --alpha 2
tune b.rrd
tune nofile.rrd -h x:1
tune --heartbeat x:1
tune b.rrd DS:w:GAUGE:60:U:U
tune b.rrd RRA:MIN:0.5:2:10
tune b.rrd 'RRA#0:+5'
tune b.rrd 'RRA#1:=3'
tune b.rrd DELRRA:1
tune b.rrd DEL:w
tune b.rrd nonsense
tune b.rrd 'RRA#0'
resize a.rrd 0 GROW 5
resize a.rrd 1 SHRINK 3
resize a.rrd 7 GROW 5
resize a.rrd 0 SHRINK 500
resize a.rrd 0 GROW 0
resize a.rrd 0 MOVE 5
resize a.rrd 0 GROW
resize resize.rrd 0 GROW 5
resize nofile.rrd 0 GROW 5
flushcached a.rrd
flushcached -d
flushcached -d unix:/nowhere a.rrd
list .
list -r .
list a.rrd
list ./a.rrd
list './*.rrd'
list './?.rrd'
list '*.nothing'
list -r './*.rrd'
list ..
list nodir
list a.xml
list . .
list -x .
nonsense a

";
