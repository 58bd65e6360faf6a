//! mrtg.cfg beside MRTG: the output of `mrtg --check --debug=tarp`, values in MRTG_lib, refused configurations, and arithmetic.
//! The configurations are those of `tests/corpus/mrtg/`, of cfgmaker, of IXP Manager, and random ones.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kymo_agentfarm::{Farm, Settings};
use kymo_tests::rrd_stream::Random;
use kymo_tests::{Running, Scratch, machine};
use kymo_wire::mrtg_cfg::{
    Config, Direction, Files, Keyword, Problems, Rounding, Secrets, Target, Trace, read,
    read_traced,
};

const TOOLS: &[&str] = &["mrtg", "perl"];

/// The files of this machine.
pub(crate) struct Disk;

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

impl Files for Disk {
    fn read(&mut self, name: &[u8]) -> Result<Vec<u8>, String> {
        std::fs::read(path(name)).map_err(|error| error.to_string())
    }

    fn is_readable(&mut self, name: &[u8]) -> bool {
        std::fs::File::open(path(name)).is_ok()
    }

    fn names(&mut self, folder: &[u8]) -> Vec<Vec<u8>> {
        let entries = std::fs::read_dir(path(folder)).into_iter();
        let names = entries.flatten().flatten().map(|entry| entry.file_name());
        names.map(|name| name.as_bytes().to_vec()).collect()
    }

    fn is_dir(&mut self, name: &[u8]) -> bool {
        path(name).is_dir()
    }

    fn exists(&mut self, name: &[u8]) -> bool {
        path(name).exists()
    }
}

fn corpus(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("corpus/mrtg").join(name)
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// MRTG's steps of each target, without numbers of readings.
fn traced_by_mrtg(config: &Path) -> Result<Vec<String>, String> {
    let scratch = Scratch::new("mrtg");
    let output = Command::new("mrtg")
        .args(["--check", "--debug=tarp"])
        .arg(format!("--lock-file={}", scratch.text("lock")))
        .arg(format!("--confcache-file={}", scratch.text("cache")))
        .arg(config)
        .env("LANG", "C")
        .stdin(Stdio::null())
        .output();
    let output = output.unwrap_or_else(|why| panic!("cannot run mrtg: {why}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => Ok(steps(&said)),
        false => Err(said),
    }
}

fn traced_by_kymo(config: &Path) -> Result<(Vec<String>, Config), Problems> {
    let mut said = String::new();
    let mut say = |word: &str, message: &[u8]| {
        if word == "tarp" {
            let message = String::from_utf8_lossy(message);
            writeln!(said, "--tarp: {message}").expect("a text");
        }
    };
    let mut trace = Trace::On(Secrets::Shown, &mut say);
    let config = read_traced(bytes(config), &mut Disk, &mut trace)?;
    Ok((steps(&said), config))
}

/// The steps of each target. The texts of readings replace their numbers, and a message about a known reading is replaced by the
/// reading's steps: kymo stops at a reading that it cannot make, and the later steps must not differ for that.
fn steps(said: &str) -> Vec<String> {
    let mut texts: Vec<(String, String)> = Vec::new();
    let mut made: HashMap<String, String> = HashMap::new();
    let mut targets = Vec::new();
    for message in said.split("--tarp: ").skip(1) {
        if message.starts_with("Starting ") {
            targets.push(String::new());
        }
        if let Some((_, rest)) = message.split_once(" target [")
            && message.starts_with("New ")
        {
            let (number, text) = rest.split_once("] ").expect("a text");
            let text = text.lines().next().expect("a line");
            texts.retain(|(known, _)| known != number);
            texts.push((number.into(), text.trim_end_matches(':').into()));
        }
        let mut message = message.to_string();
        for (number, text) in texts.iter().rev() {
            message = message.replace(&format!("[{number}]"), &format!("[{text}]"));
            let unique = format!("unique = {number}\n");
            message = message.replace(&unique, &format!("unique = {text}\n"));
        }
        if let Some((_, rest)) = message.split_once(" target [") {
            let text = rest.lines().next().unwrap_or_default();
            let text = text
                .split_once("]")
                .map_or(text, |(text, _)| text)
                .to_string();
            match message.starts_with("New ") {
                true => drop(made.insert(text, message.clone())),
                false => message = made[&text].clone(),
            }
        }
        if let Some(target) = targets.last_mut() {
            *target += &message;
        }
    }
    targets
}

/// Reads a configuration with both programs and compares; returns the count of targets that kymo did not leave out.
fn compare(config: &Path) -> usize {
    let theirs = traced_by_mrtg(config).unwrap_or_else(|why| panic!("mrtg: {why}"));
    let (ours, read) = traced_by_kymo(config).unwrap_or_else(|why| panic!("kymo: {}", why.0[0]));
    assert_eq!(ours.len(), theirs.len(), "{}", config.display());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!(
            ours == theirs || read.left_out().iter().any(|left| is_of(ours, &left.target)),
            "{}\nkymo: {ours}\nmrtg: {theirs}",
            config.display()
        );
    }
    ours.len() - read.left_out().len()
}

fn is_of(steps: &str, target: &[u8]) -> bool {
    let begin = format!("Starting {} -> ", String::from_utf8_lossy(target));
    steps.starts_with(&begin)
}

#[test]
fn targets_of_the_corpus_are_mrtgs() {
    if machine::must_skip(TOOLS) {
        return;
    }
    for (name, count) in [("targets.cfg", 65), ("lexing.cfg", 11)] {
        assert_eq!(compare(&corpus(name)), count, "{name}");
    }
}

/// Perl that prints keyword, target and value of everything that MRTG_lib reads, each followed by a zero byte.
const VALUES: &str = r#"
use MRTG_lib;
my (@targets, %all, %each);
readcfg($ARGV[0], \@targets, \%all, \%each);
for my $target (@targets) {
    for my $keyword (sort keys %each) {
        next if $keyword =~ /\*/;
        my $value = $each{$keyword}{$target};
        print "$keyword\0$target\0$value\0" if defined $value;
    }
}
"#;

/// The values of kymo's configuration in the format of [`VALUES`].
fn values(config: &Config) -> Vec<u8> {
    let mut keywords = Keyword::ALL.map(|(keyword, word)| (word.to_lowercase(), keyword));
    keywords.sort_by(|a, b| a.0.cmp(&b.0));
    let mut out = Vec::new();
    for target in config.targets() {
        for (word, keyword) in &keywords {
            if let Some(value) = target.value(*keyword) {
                for part in [word.as_bytes(), &target.name(), &value] {
                    out.extend_from_slice(part);
                    out.push(0);
                }
            }
        }
    }
    out
}

fn perl(program: &str, arguments: &[&OsStr], input: &str) -> Vec<u8> {
    use std::io::Write;
    let mut child = Command::new("perl")
        .args(["-e", program])
        .args(arguments)
        .env("LANG", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("perl");
    let mut pipe = child.stdin.take().expect("a pipe");
    let input = input.to_string();
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("its end");
    writer.join().expect("no panic").expect("a reader");
    assert!(output.status.success(), "perl failed");
    output.stdout
}

#[test]
fn values_of_the_corpus_are_mrtgs() {
    if machine::must_skip(TOOLS) {
        return;
    }
    for name in ["targets.cfg", "lexing.cfg"] {
        let file = corpus(name);
        let config = read(bytes(&file), &mut Disk).unwrap_or_else(|why| panic!("{}", why.0[0]));
        let of = |bytes: &[u8]| -> Vec<String> {
            let parts: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
            let three = parts.chunks_exact(3).map(|three| {
                let three = three.iter().map(|part| String::from_utf8_lossy(part));
                three.collect::<Vec<_>>().join("|")
            });
            let left_out = config.left_out();
            let is_kept = |line: &String| {
                !left_out.iter().any(|left| {
                    let name = format!("|{}|", String::from_utf8_lossy(&left.target));
                    line.contains(&name)
                })
            };
            three.filter(is_kept).collect()
        };
        let theirs = of(&perl(VALUES, &[file.as_os_str()], ""));
        let ours = of(&values(&config));
        assert_eq!(ours, theirs, "{name}");
        assert!(ours.len() > 50, "{} values", ours.len());
    }
}

#[test]
fn what_cfgmaker_writes_for_snmpd_is_read() {
    if machine::must_skip(&["mrtg", "perl", "cfgmaker", "snmpd"]) {
        return;
    }
    let scratch = Scratch::new("cfgmaker");
    let (_snmpd, address) = snmpd(&scratch);
    for (reference, version) in [("nr", 2), ("name", 2), ("descr", 1), ("ip", 2), ("eth", 1)] {
        let agent = format!("public@{}:{}::::{version}", address.ip(), address.port());
        let arguments = ["--ifref", reference, "--if-filter", "1", &agent];
        let written = cfgmaker(&scratch, &arguments);
        let count = compare(&written);
        // Some interfaces share a MAC address.
        assert!(count > 0 || reference == "eth", "--ifref={reference}");
    }
}

#[test]
fn what_cfgmaker_writes_for_many_agents_is_read() {
    if machine::must_skip(&["mrtg", "perl", "cfgmaker"]) {
        return;
    }
    let scratch = Scratch::new("cfgmaker");
    let farm = Farm::start(Settings {
        first: Ipv4Addr::new(127, 0, 11, 30),
        port: 0,
        devices: 3,
        interfaces: 60,
        community: b"public".to_vec(),
    })
    .expect("agents");
    let port = farm.settings().port;
    let agents = (0..3).map(|device| format!("public@{}:{port}::::2", farm.address(device)));
    let agents: Vec<String> = agents.collect();
    let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
    let written = cfgmaker(&scratch, &agents);
    assert!(compare(&written) > 50);
}

fn cfgmaker(scratch: &Scratch, arguments: &[&str]) -> PathBuf {
    let folder = scratch.text("rrd");
    std::fs::create_dir_all(&folder).expect("a folder");
    let output = Command::new("cfgmaker")
        .args(["--noreversedns", "--global", "LogFormat: rrdtool"])
        .args(["--global", &format!("WorkDir: {folder}")])
        .args(["--output", &scratch.text("mrtg.cfg")])
        .args(arguments)
        .env("LANG", "C")
        .output();
    let output = output.unwrap_or_else(|why| panic!("cannot run cfgmaker: {why}"));
    assert!(output.status.success(), "cfgmaker failed");
    let written = scratch.path("mrtg.cfg");
    // Debian's cfgmaker names a folder that may not exist.
    let text = std::fs::read_to_string(&written).expect("a configuration");
    let text = text.replace("WorkDir: /var/www/html/mrtg\n", "");
    std::fs::write(&written, text).expect("a file");
    written
}

/// Debian's snmpd at a loopback address, and that address.
fn snmpd(scratch: &Scratch) -> (Running, SocketAddr) {
    let free = UdpSocket::bind("127.0.11.9:0").expect("a port");
    let address = free.local_addr().expect("its address");
    drop(free);
    std::fs::write(scratch.path("conf"), "rocommunity public\n").expect("a file");
    let child = Command::new("snmpd")
        .args(["-f", "-C", "-c", &scratch.text("conf")])
        .args(["-Lf", &scratch.text("log"), "-I", "-smux"])
        .args(["-p", &scratch.text("pid"), &format!("udp:{address}")])
        .env("SNMP_PERSISTENT_DIR", scratch.text("kept"))
        .stdin(Stdio::null())
        .spawn();
    let running = Running(child.unwrap_or_else(|why| panic!("cannot start snmpd: {why}")));
    for _ in 0..200 {
        if std::fs::read_to_string(scratch.path("log")).is_ok_and(|log| log.contains("NET-SNMP")) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    (running, address)
}

/// A configuration of an exchange: ports with counters of each kind, and sums over members and switches.
fn of_an_exchange(folder: &str) -> String {
    let mut out = format!(
        "WorkDir: {folder}\nRunAsDaemon: Yes\nLogFormat: rrdtool\nInterval: 5\n\
         Options[_]: growright, bits, unknaszero\nMaxBytes[_]: 1250000000\n"
    );
    let counters = [
        ("bits", "1.3.6.1.2.1.31.1.1.1.6", "1.3.6.1.2.1.31.1.1.1.10"),
        ("pkts", "ifHCInUcastPkts", "ifHCOutUcastPkts"),
        ("errs", "ifInErrors", "ifOutErrors"),
    ];
    let mut sums = vec![String::new(); counters.len()];
    for port in 0..240 {
        let name = format!("Ethernet1/{port}\\ a\\:b\\&c\\@d");
        let host = format!("sw{}.ix.example.org", port / 48);
        for (sum, (kind, input, output)) in sums.iter_mut().zip(counters) {
            let term = format!("{input}#{name}&{output}#{name}:s3cr3t@{host}:::::2");
            writeln!(out, "\nTarget[port{port}-{kind}]: {term}\nTitle[port{port}-{kind}]: x\nDirectory[port{port}-{kind}]: p/{port}")
                .expect("a text");
            let plus = if sum.is_empty() { "" } else { " + " };
            write!(sum, "{plus}{term}").expect("a text");
        }
    }
    for (sum, (kind, ..)) in sums.iter().zip(counters) {
        writeln!(out, "\nTarget[all-{kind}]: {sum}\nTitle[all-{kind}]: all").expect("a text");
    }
    out
}

#[test]
fn sums_of_an_exchange_share_their_readings() {
    if machine::must_skip(TOOLS) {
        return;
    }
    let scratch = Scratch::new("exchange");
    let file = scratch.path("mrtg.cfg");
    std::fs::write(&file, of_an_exchange("/tmp")).expect("a file");
    assert_eq!(compare(&file), 3 * 241);
    let config = read(bytes(&file), &mut Disk).unwrap_or_else(|why| panic!("{}", why.0[0]));
    assert_eq!((config.readings().len(), config.sessions().len()), (720, 5));
    let all = config.target(720);
    assert_eq!(config.readings_of(all.expression()).len(), 240);
}

/// A random text of a target, right or wrong.
fn random_target(random: &mut Random) -> String {
    let pieces = [
        "1",
        "12",
        "-",
        "/10.0.0.1",
        "/1.2",
        "\\eth",
        "#Gi1/0",
        "!a-b",
        "!0-1-c",
        "%6",
        ":",
        ":",
        ":",
        "@",
        "@",
        "public",
        "host",
        "h.example.org",
        "[::1]",
        ":::::2",
        ":161",
        ":161!127.0.0.1!9",
        "|conv",
        " ",
        " ",
        "+",
        " + ",
        " * ",
        "(",
        ")",
        "&",
        "&",
        ".1.3.6.1",
        "1.3.6",
        ".5",
        ".",
        "..",
        "ifInOctets",
        "ifOutErrors.3",
        "IndexPOS",
        "WaLK",
        "PseudoOne",
        "`",
        "`x`",
        "\\`",
        "\\",
        "\\:",
        "\\@",
        "\\&",
        "\\ ",
        "#a\\:b",
        "1:public@host",
        "#e:c@h:::::2",
        "ifInOctets.1&ifOutOctets.1:c@h",
        "2c",
        "_",
        "\t",
    ];
    let count = 1 + random.below(9);
    (0..count).map(|_| random.pick(&pieces)).collect()
}

#[test]
fn random_targets_are_mrtgs() {
    if machine::must_skip(TOOLS) {
        return;
    }
    let scratch = Scratch::new("random");
    let file = scratch.path("mrtg.cfg");
    for seed in 0..2 {
        let mut random = Random(seed);
        let mut text = String::from("WorkDir: /tmp\nMaxBytes[_]: 1\nTitle[_]: x\n");
        for number in 0..1000 {
            writeln!(text, "Target[t{number}]: {}", random_target(&mut random)).expect("a text");
            if random.once_in(20) {
                writeln!(text, "  {}", random_target(&mut random)).expect("a text");
            }
        }
        std::fs::write(&file, &text).expect("a file");
        compare_all(&file, seed);
    }
}

/// Compares all targets. If kymo left a target out, its steps are the beginning of MRTG's.
fn compare_all(file: &Path, seed: u64) {
    let theirs = traced_by_mrtg(file).unwrap_or_else(|why| panic!("mrtg: {why}"));
    let (ours, config) = traced_by_kymo(file).unwrap_or_else(|why| panic!("{}", why.0[0]));
    assert_eq!(ours.len(), theirs.len());
    let mut kept = 0;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let is_left_out = config
            .left_out()
            .iter()
            .any(|left| is_of(ours, &left.target));
        kept += usize::from(!is_left_out);
        let is_same = match is_left_out {
            true => theirs.starts_with(ours.as_str()),
            false => ours == theirs,
        };
        assert!(is_same, "seed {seed}\nkymo: {ours}\nmrtg: {theirs}");
    }
    assert!(kept > 10, "seed {seed}: {kept} targets");
}

/// A configuration without an error.
const GOOD: &str =
    "WorkDir: /tmp\nLogFormat: rrdtool\nTarget[a]: 1:c@h\nTitle[a]: x\nMaxBytes[a]: 1\n";
/// Wrong global lines after [`GOOD`]: the text, the number of the wrong line, and words of kymo's message.
const WRONG_GLOBALS: &[(&str, u32, &str)] = &[
    ("Nonsense", 6, "does not make sense"),
    ("Foo:", 6, "does not make sense"),
    ("Foo: x", 6, "unknown keyword"),
    ("WorkDir:/tmp/x:y", 6, "unknown keyword"),
    ("WorkDir: /nowhere/at/all", 6, "WorkDir: is not a directory"),
    ("Include: nowhere.inc", 6, "cannot open the file to include"),
    ("Interval: 61", 6, "Interval: must be at least"),
    ("Interval: 0:00", 6, "Interval"),
    ("Refresh: 299", 6, "Refresh: must be 300"),
    ("Forks: 0", 6, "Forks"),
    ("LogFormat: rrd", 6, "LogFormat: must be"),
    ("EnableIPv6: maybe", 6, "EnableIPv6: must be yes or no"),
    ("UseRRDtool: yes", 6, "UseRRDtool"),
    ("PathAdd: /nowhere", 6, "PathAdd"),
    ("MaxAge: 0", 6, "MaxAge"),
    ("NoSpaceChar: ab", 6, "NoSpaceChar"),
    (
        "SnmpOptions: timeout",
        6,
        "SnmpOptions: must have the format",
    ),
    ("ConversionCode: /nowhere", 6, "ConversionCode"),
    ("SendToGraphite: host", 6, "SendToGraphite"),
    ("ThreshDir: /nowhere", 6, "ThreshDir"),
    ("ThreshHyst: x", 6, "ThreshHyst"),
    ("ThreshMailSender: nobody", 6, "ThreshMailSender"),
    ("ThreshMailSender: a@b", 0, "need each other"),
];
/// Wrong lines about a target after [`GOOD`], in the same form.
const WRONG_OF_TARGETS: &[(&str, u32, &str)] = &[
    ("Foo[a]: x", 6, "unknown keyword"),
    ("Foo[_]: x", 6, "unknown keyword"),
    ("Title[A]: y", 6, "Title[A]: duplicate definition"),
    (
        "14all*x[a]: y\n14all*X[a]: z",
        7,
        "14all*X[a]: duplicate definition",
    ),
    ("Title[0]: y", 6, "a target cannot be called 0"),
    (
        "SnmpOptions[a]: timeout => (",
        6,
        "SnmpOptions[a]: must have the format",
    ),
    ("ThreshMailAddress[a]: a@b", 3, "needs ThreshMailServer"),
    ("MaxBytes1[a]: 0", 6, "MaxBytes1[a]: must be"),
    ("MaxBytes1[a]: 1.5", 6, "MaxBytes1[a]: must be"),
    ("AbsMax[a]: -1", 6, "AbsMax[a]: must be"),
    ("noHC[a]: y", 6, "NoHC[a]: must be yes or no"),
    (
        "Options[a]: bits, foo",
        3,
        "Options[a]: one of them is unknown",
    ),
    (
        "Options[a]: ,gauge",
        3,
        "Options[a]: one of them is unknown",
    ),
    ("XSize[a]: 29", 6, "XSize[a]: must be between"),
    ("XSize[a]: 601px", 6, "XSize[a]: must be between"),
    ("YSize[a]: 29", 6, "YSize[a]"),
    ("YTics[a]: 0", 6, "YTics[a]"),
    ("Factor[a]: x", 6, "Factor[a]: must be a number"),
    ("XZoom[a]: 1.", 6, "XZoom[a]: must be a number"),
    ("Kilo[a]: 1k", 6, "Kilo[a]: must be"),
    ("Unscaled[a]: x", 6, "Unscaled[a]"),
    ("Weekformat[a]: x", 6, "WeekFormat[a]"),
    ("SetEnv[a]: A=b", 6, "SetEnv[a]"),
    ("RRDHWRRAs[a]: RRA:AVERAGE:1", 6, "RRDHWRRAs[a]"),
    ("CloneDirectory[a]: x,", 6, "CloneDirectory[a]"),
    (
        "ThreshProgI[a]: /nowhere",
        6,
        "ThreshProgI[a]: does not exist",
    ),
    ("TimeStrPos[a]: UL", 6, "TimeStrPos[a]"),
    ("Colours[a]: RED#ff0000", 3, "Colours[a]: 4 are needed"),
    ("Background[a]: white", 3, "Background[a]: must be #rrggbb"),
];
/// Targets without a keyword after [`GOOD`], in the same form.
const INCOMPLETE_TARGETS: &[(&str, u32, &str)] = &[
    ("Title[b]: x\nMaxBytes[b]: 1", 6, "Target[b] is not said"),
    (
        "Target[b]: 1:c@h\nMaxBytes[b]: 1",
        6,
        "Title[b] is not said",
    ),
    (
        "Target[b]: 1:c@h\nTitle[b]: 1",
        6,
        "MaxBytes[b] is not said",
    ),
    (
        "Target[b]: 1:c@h\nTitle[b]: 1\nMaxBytes1[b]: 1",
        6,
        "MaxBytes2[b] is not said",
    ),
];
/// Wrong whole files, in the same form.
const WRONG_FILES: &[(&str, u32, &str)] = &[
    ("  Title: x\n", 1, "does not make sense"),
    (
        "Target[a]: 1:c@h\nTitle[a]: x\nMaxBytes[a]: 1\n",
        0,
        "WorkDir is not said",
    ),
    (
        "LogDir: /tmp\nTarget[a]: 1:c@h\nTitle[a]: x\nMaxBytes[a]: 1\n",
        0,
        "HtmlDir is not said",
    ),
    (
        "WorkDir: /tmp\nInterval: 4:59\n",
        2,
        "Interval: must be 5 minutes",
    ),
    (
        "WorkDir: /tmp\nTarget[a]: 1:c@h\nTitle[a]: x\nMaxBytes[a]: 1\nOptions[a]: derive\n",
        2,
        "derive needs LogFormat",
    ),
];

#[test]
fn what_mrtg_refuses_is_refused() {
    if machine::must_skip(TOOLS) {
        return;
    }
    let scratch = Scratch::new("refused");
    let file = scratch.path("mrtg.cfg");
    std::fs::write(&file, GOOD).expect("a file");
    compare(&file);
    for (lines, line, says) in [WRONG_GLOBALS, WRONG_OF_TARGETS, INCOMPLETE_TARGETS].concat() {
        is_refused_by_both(&file, &format!("{GOOD}{lines}\n"), line, says);
    }
    for (text, line, says) in WRONG_FILES {
        is_refused_by_both(&file, text, *line, says);
    }
}

#[test]
fn includes_are_mrtgs() {
    if machine::must_skip(TOOLS) {
        return;
    }
    let scratch = Scratch::new("includes");
    let folder = scratch.path("parts-of");
    std::fs::create_dir_all(folder.join("sub")).expect("a folder");
    for name in [
        "a.cfg",
        "B.cfg",
        "c d.cfg",
        "7.cfg",
        "sub/a.cfg",
        "[.cfg",
        "\u{e9}.cfg",
    ] {
        let target = name
            .bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>();
        let text = format!("Target[{target}]: 1:c@h\nTitle[{target}]: x\nMaxBytes[{target}]: 1\n");
        std::fs::write(folder.join(name), text).expect("a file");
    }
    std::fs::write(folder.join(".a.cfg.swp"), "no line of a configuration\n").expect("a file");
    let file = scratch.path("mrtg.cfg");
    let mut targets = 0;
    for include in [
        "parts-of",
        "parts-of/*",
        "parts-of/?*",
        "parts-of/[0-9]*.cfg",
        "parts-of/[!0-9B]*.cfg",
        "parts-of/{B,a}*",
        "\"parts-of/c *.cfg\"",
        "parts-of/c\\ *",
        "*/a.cfg",
        "*/*/a.cfg",
        "parts-of/*/",
        "parts-of/[*",
        "parts-of/q*",
    ] {
        std::fs::write(&file, format!("WorkDir: /tmp\nInclude: {include}\n")).expect("a file");
        let theirs = perl(VALUES, &[file.as_os_str()], "");
        let config = read(bytes(&file), &mut Disk).unwrap_or_else(|why| panic!("{}", why.0[0]));
        let ours = values(&config);
        assert_eq!(
            ours.escape_ascii().to_string(),
            theirs.escape_ascii().to_string(),
            "{include}"
        );
        targets += config.targets().count();
    }
    assert_eq!(targets, 24);
}

#[test]
fn several_patterns_of_includes_are_mrtgs() {
    if machine::must_skip(TOOLS) {
        return;
    }
    let scratch = Scratch::new("patterns");
    // Names of no file in the folder of the tests, where both look first.
    for name in ["xya", "xyb"] {
        let text = format!("Target[{name}]: 1:c@h\nTitle[{name}]: x\nMaxBytes[{name}]: 1\n");
        std::fs::write(scratch.path(name), text).expect("a file");
    }
    let file = scratch.path("mrtg.cfg");
    let at = scratch.text("");
    for (include, count) in [
        (format!("{at}/xya* {at}/xyb*"), Some(2)),
        (format!("{at}/nowhere* \t'{at}'/xy[b]*"), Some(1)),
        // The second pattern is not beside the configuration.
        ("xya* xyb*".into(), Some(1)),
        ("{nowhere,xya*}".into(), None),
        ("nowhere xya*".into(), None),
        ("nowhere{,*}".into(), None),
        ("nowhere{xya,*".into(), None),
        ("{nothing*,nowhere?}".into(), Some(0)),
    ] {
        let text = format!("WorkDir: /tmp\nInclude: {include}\n");
        std::fs::write(&file, text).expect("a file");
        let config = read(bytes(&file), &mut Disk);
        assert_eq!(traced_by_mrtg(&file).is_ok(), count.is_some(), "{include}");
        let found = config.map(|config| config.targets().count());
        assert_eq!(found.ok(), count, "{include}");
    }
}

/// Checks that MRTG and kymo refuse `text`, and that kymo names the line.
fn is_refused_by_both(file: &Path, text: &str, line: u32, says: &str) {
    std::fs::write(file, text).expect("a file");
    assert!(traced_by_mrtg(file).is_err(), "mrtg takes {text}");
    let problem = match read(bytes(file), &mut Disk) {
        Ok(_) => panic!("kymo takes {text}"),
        Err(problems) => problems.0[0].clone(),
    };
    assert!(problem.what.contains(says), "{text}: {problem}");
    assert_eq!(problem.line, line, "{text}: {problem}");
    assert_eq!(problem.file, bytes(file), "{text}");
}

/// Perl that evaluates each line of the input as MRTG does: an expression with `r0`, `r1` ... for readings, and their values.
const ARITHMETIC: &str = r#"
use Math::BigFloat;
$^W = 1;
while (<STDIN>) {
    chomp;
    my ($keep, $expression, @values) = split /\|/, $_, -1;
    our @r = map { $_ ? Math::BigFloat->new($_) : $_ } @values;
    my ($warning, $death);
    my $number;
    {
        local $SIG{__WARN__} = sub { $warning = 1 };
        local $SIG{__DIE__} = sub { $death = 1 };
        $number = eval $expression;
    }
    if ($warning or $death or $@ or not defined $number
        or $number && $number !~ /^[-+]?\d+(\.\d*)?([eE][+-]?[0-9]+)?$/ or length $number > 190) {
        print "U\n";
        next;
    }
    if (not $keep) {
        if (ref $number) { $number->ffround(0) } else { $number = sprintf "%.0f", $number }
    }
    $number =~ s/^\+//;
    $number = 0 if $number eq '-0';
    print "$number\n";
}
"#;

fn random_number(random: &mut Random) -> String {
    match random.below(8) {
        0 => "0".into(),
        1 => random.below(10).to_string(),
        2 => u64::MAX.to_string(),
        3 => format!("{}.{}", random.below(1000), random.below(1000)),
        4 => format!("-{}", random.below(1000)),
        5 => format!("{}5", random.below(100)),
        _ => random.next_u64().to_string(),
    }
}

fn random_expression(random: &mut Random, depth: u64) -> String {
    let operand = |random: &mut Random| match random.below(if depth > 3 { 3 } else { 5 }) {
        0 | 1 => format!("$r[{}]", random.below(3)),
        2 => ["8", "2", "0.5", "1000", "1.1", "0"][random.below(6) as usize].to_string(),
        3 if random.once_in(8) => random
            .pick(&["0x1F", "1_000", "010", "0b11", "017_7"])
            .into(),
        3 => format!("( {} )", random_expression(random, depth + 1)),
        _ => random_expression(random, depth + 1),
    };
    let (left, right) = (operand(random), operand(random));
    match random.below(14) {
        0..4 => format!("{left} + {right}"),
        4 => format!("{left} - {right}"),
        5 | 6 => format!("{left} * {right}"),
        7 | 8 => format!("{left} / {right}"),
        9 => format!("- {left}"),
        10 => format!("int( {left} )"),
        11 => format!("( {left} > {right} ? {left} : {right} )"),
        12 => format!("( {left} ) ** {}", random.below(5)),
        _ => left,
    }
}

#[test]
fn numbers_are_mrtgs() {
    if machine::must_skip(TOOLS) {
        return;
    }
    let scratch = Scratch::new("numbers");
    let file = scratch.path("mrtg.cfg");
    let mut random = Random(11);
    let mut text = String::from("WorkDir: /tmp\nLogFormat: rrdtool\nTitle[_]: x\nMaxBytes[_]: 1\n");
    let (mut input, mut cases) = (String::new(), Vec::new());
    for number in 0..3000 {
        let mut expression = random_expression(&mut random, 0);
        if number % 10 == 0 {
            expression = "$r[0]".into();
        }
        expression += random.pick(&["", "", ";", " # bits", " ; # 1,000"]);
        let values = [0; 3].map(|_| random_number(&mut random));
        let keep = random.below(2);
        writeln!(input, "{}|{expression}|{}", keep, values.join("|")).expect("a text");
        for reading in 0..3 {
            expression =
                expression.replace(&format!("$r[{reading}]"), &format!(" {}:c@h ", reading + 1));
        }
        writeln!(text, "Target[t{number}]: {expression}").expect("a text");
        cases.push((expression, keep, values));
    }
    std::fs::write(&file, text).expect("a file");
    let config = read(bytes(&file), &mut Disk).unwrap_or_else(|why| panic!("{}", why.0[0]));
    let theirs = String::from_utf8(perl(ARITHMETIC, &[], &input)).expect("a text");
    let (mut known, mut infinite, mut wrong) = (0, 0, String::new());
    let mut targets = config.targets().peekable();
    for (number, (theirs, (expression, keep, values))) in theirs.lines().zip(&cases).enumerate() {
        // kymo leaves out arithmetic with constants only.
        let is_it = |target: &Target| *target.name() == *format!("t{number}").as_bytes();
        let Some(target) = targets.next_if(is_it) else {
            assert!(!expression.contains("c@h"), "{expression}");
            continue;
        };
        let ours = number_of(&config, target.expression(), *keep, values);
        known += usize::from(ours != "U");
        if ours == "U" && expression.contains('/') && theirs != "U" {
            // Perl continues with an infinite number; kymo does not.
            infinite += 1;
        } else if ours != theirs {
            writeln!(
                wrong,
                "{expression} of {values:?}, {keep}: {ours}, not {theirs}"
            )
            .expect("a text");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(infinite < 10, "{infinite} numbers are missing");
    assert!(known > 1500, "{known} numbers");
}

fn number_of(
    config: &Config,
    expression: kymo_wire::mrtg_cfg::Expression,
    keep: u64,
    values: &[String; 3],
) -> String {
    let rounding = match keep {
        0 => Rounding::Round,
        _ => Rounding::Keep,
    };
    let value_of = |reading: u32, _: Direction| -> Option<&[u8]> {
        let text = config.text(config.readings()[reading as usize].text);
        let number = usize::from(text[0] - b'1');
        Some(values[number].as_bytes())
    };
    let mut out = Vec::new();
    match config.evaluate(expression, Direction::In, rounding, &value_of, &mut out) {
        true => String::from_utf8(out).expect("a text"),
        false => "U".into(),
    }
}
