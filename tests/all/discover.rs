//! `kymo discover`: tables for the devices of a network, which `kymo serve` takes; a second run lists the changes, and
//! changes the file when it is asked to, and nothing else in it.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kymo_agentfarm::{Farm, Settings};
use kymo_tests::snmpd::Snmpd;
use kymo_tests::{Scratch, kymo, machine};

/// The community of the devices.
const COMMUNITY: &str = "kept-secret-8";

struct Network {
    farm: Farm,
    scratch: Scratch,
    community: String,
}

impl Network {
    fn new(name: &str, first: [u8; 4], devices: u32) -> Network {
        let farm = Farm::start(Settings {
            first: Ipv4Addr::from(first),
            port: 0,
            devices,
            interfaces: 2 * devices,
            community: COMMUNITY.as_bytes().to_vec(),
        });
        let scratch = Scratch::new(name);
        let community = scratch.text("community");
        fs::write(&community, COMMUNITY).expect("a file");
        Network {
            farm: farm.expect("a farm"),
            scratch,
            community,
        }
    }

    /// A device as a word and as its address in a table.
    fn device(&self, number: u32) -> String {
        let port = self.farm.settings().port;
        format!("{}:{port}", self.farm.address(number))
    }

    /// Exit code, stdout and stderr.
    fn discover(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let words = [&["--community-file", &self.community], words].concat();
        let (code, out, said) = discover(&words);
        assert!(!(out.clone() + &said).contains(COMMUNITY), "{out}{said}");
        (code, out, said)
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.scratch.path("kymo.toml");
        fs::write(&path, text).expect("a configuration");
        path
    }
}

fn discover(words: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(kymo())
        .arg("discover")
        .args(words)
        .stdin(Stdio::null())
        .output();
    let output = output.expect("kymo runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn devices_of_a_network_become_tables_that_serve_takes() {
    let network = Network::new("discover-network", [127, 0, 36, 1], 3);
    let word = format!("127.0.36.0/29:{}", network.farm.settings().port);
    let (code, out, said) = network.discover(&[&word]);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{out}");
    assert_eq!(out.matches("[[device]]").count(), 3, "{out}");
    let (first, community) = (network.device(0), &network.community);
    let table = format!(
        "# dev0, 2 of 2 interfaces\n[[device]]\naddress = \"{first}\"\ncommunity_file = \"{community}\"\n\
         profiles = [\"interfaces\", \"system\"]\ninterface = [\n  \
         {{ name = \"Gi0/1\", alias = \"port 1 of dev0\", mbit = 1000 }},\n  \
         {{ name = \"Gi0/2\", alias = \"port 2 of dev0\", mbit = 1000 }},\n]\n"
    );
    assert!(out.starts_with(&table), "{out}");
    let path = network.file(&out);
    let checked = Command::new(kymo())
        .args(["serve", "--check", "--config"])
        .arg(&path)
        .output();
    let checked = checked.expect("kymo runs");
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
    let path = network.file(&out.replace("\"system\"", "\"nothing\""));
    let checked = Command::new(kymo())
        .args(["serve", "--check", "--config"])
        .arg(&path)
        .output();
    let said = String::from_utf8_lossy(&checked.expect("kymo runs").stderr).into_owned();
    assert!(said.contains("there is no profile \"nothing\""), "{said}");
}

#[test]
fn a_second_run_lists_changes_and_takes_them_when_asked() {
    let network = Network::new("discover-again", [127, 0, 37, 1], 2);
    let new = network.scratch.text("new.toml");
    let (code, ..) = network.discover(&["-o", &new, &network.device(0)]);
    assert_eq!(code, Some(0));
    let (code, _, said) = network.discover(&["-o", &new, &network.device(0)]);
    assert_eq!(code, Some(2), "a file that is there stays: {said}");
    let table = fs::read_to_string(&new).expect("the tables");
    let table = table.replace("mbit = 1000 },\n]", "mbit = 100 }, # the second\n]");
    let path = network.file(&format!(
        "# mine\nuser = \"\"\n{table}\n[store]\nfiles = \"never\" # none\n"
    ));
    let before = fs::read_to_string(&path).expect("the file");
    let file = path.to_str().expect("a path");
    let faster = "interface Gi0/2: faster, 1000 Mbit/s instead of 100\n";
    let line = format!("{}: {faster}", network.device(0));
    let (code, out, said) = network.discover(&[file]);
    assert_eq!((code, out.as_str()), (Some(0), line.as_str()), "{said}");
    assert!(said.contains("--apply takes these changes"), "{said}");
    assert_eq!(
        fs::read_to_string(&path).expect("the file"),
        before,
        "nothing is written"
    );
    let (code, out, said) = network.discover(&["--apply", file]);
    assert_eq!((code, out.as_str()), (Some(0), line.as_str()), "{said}");
    let after = fs::read_to_string(&path).expect("the file");
    assert_eq!(after, before.replace("mbit = 100 }", "mbit = 1000 }"));
    let (code, out, said) = network.discover(&[file]);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(said.contains("nothing has changed"), "{said}");
    // An interface goes; a device is new.
    network
        .farm
        .change(0, |device, now_ns| device.vanish(1, now_ns));
    let (first, second) = (network.device(0), network.device(1));
    let (code, out, said) = network.discover(&["--apply", "--config", file, &first, &second]);
    assert_eq!(code, Some(0), "{said}");
    let lines = format!(
        "{second}: new device, dev1, 2 of 2 interfaces\n{first}: interface Gi0/2 is gone\n"
    );
    assert_eq!(out, lines);
    let after = fs::read_to_string(&path).expect("the file");
    assert_eq!(after.matches("[[device]]").count(), 2, "{after}");
    for kept in ["# mine\n", "files = \"never\" # none\n", "Gi0/1"] {
        assert!(after.contains(kept), "{kept}: {after}");
    }
    assert!(!after.contains("port 2 of dev0"), "{after}");
    network
        .farm
        .change(0, |device, now_ns| device.vanish(0, now_ns));
    let (_, out, _) = network.discover(&["--apply", file]);
    assert_eq!(
        out,
        format!("{first}: new interface Gi0/2 (port 2 of dev0), 1000 Mbit/s\n")
    );
    let (_, out, said) = network.discover(&[file]);
    assert_eq!(out, "", "{said}");
}

#[test]
fn a_device_that_does_not_answer_changes_nothing() {
    let network = Network::new("discover-silent", [127, 0, 38, 1], 1);
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let silent = silent.local_addr().expect("its address").to_string();
    let text =
        format!("[[device]]\naddress = \"{silent}\"\ninterface = [{{ name = \"a\", mbit = 1 }}]\n");
    let path = network.file(&text);
    let file = path.to_str().expect("a path");
    let (code, out, said) = network.discover(&["--apply", file]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains(&format!("cannot ask {silent}: no a")),
        "{said}"
    );
    assert!(out.contains("its table stays as it is"), "{out}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), text);
    for (words, why) in [
        (&["--apply", "127.0.0.1"][..], "without a kymo.toml"),
        (&["127.0.0.0/8"], "at most 65,536 addresses"),
        (&["a b"], "neither HOST nor HOST:PORT"),
        (
            &["--snmp", "3", "127.0.0.1"],
            "user and version = \"3\" go together",
        ),
    ] {
        let (code, _, said) = network.discover(words);
        assert_eq!(code, Some(2), "{words:?}");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn snmpd_is_found_with_all_that_it_has() {
    if machine::must_skip(&["snmpd"]) {
        return;
    }
    let agent = Snmpd::start("127.0.39.1", "");
    let place = agent.address.to_string();
    let (code, out, said) = discover(&["--loopback", &place]);
    assert_eq!(code, Some(0), "{said}");
    let profiles = "profiles = [\"cpu\", \"interfaces\", \"memory\", \"storage\", \"system\"]";
    assert!(out.contains(profiles), "{out}");
    assert!(out.contains("{ name = \"lo\", mbit = 10 }"), "{out}");
    assert!(out.contains("not_types = []"), "{out}");
}

/// Lines that MRTG acts by; the others are HTML.
fn acting(text: &str) -> Vec<String> {
    let words = ["Target[", "SetEnv[", "MaxBytes[", "Title[", "noHC["];
    let lines = text.lines().filter(|line| {
        let line = line.strip_prefix("# ").unwrap_or(line);
        words.iter().any(|word| line.starts_with(word))
    });
    lines.map(str::to_string).collect()
}

/// A template for interfaces with most of cfgmaker's variables, and one for devices.
const INTERFACE: &str = r#"
use strict;
if ($if_ok) {
    my @texts = ($if_ref, $ifindex, $if_index, $if_eth, $if_ip, $if_speed, $if_type, $if_type_num,
        $if_snmp_descr, $if_snmp_name, $if_title_desc, $html_if_title,
        $desc_prefix, $sysname, $html_syslocation, $router_name, $router_connect, $community, $directory_name);
    my @truths = ($default, $default_ifstate, $default_iftype, $if_admin, $if_oper, $if_is_ethernet,
        $if_is_isdn, $if_is_dialup, $if_is_atm, $if_is_wan, $if_is_lan, $if_is_dsl, $if_is_loopback,
        $if_is_ciscovlan, defined $if_port_name);
    $target_lines .= "$default_target_directive\n$default_maxbytes_directive\n$default_title_directive\n";
    $target_lines .= "SetEnv[$target_name]: TEXTS=\"" . join('|', @texts) . "\"\n";
    $target_lines .= "SetEnv[$target_name]: TRUTHS=" . join('', map { $_ ? 1 : 0 } @truths) . "\n";
    $target_lines .= "Title[$target_name]: " . html_escape("<a & b>\nc\n");
} else {
    ($head_lines, $problem_lines, $target_lines, $separator_lines) = ('', '', '', '');
}
"#;
const HOST: &str = r##"
$head_lines .= "# ---\n";
my $target_name = $router_name . ".cpu";
$target_lines .= <<ECHO;

Target[$target_name]: 1.3.6.1.4.1.9.2.1.58.0&1.3.6.1.4.1.9.2.1.58.0:$router_connect
MaxBytes[$target_name]: 100
Title[$target_name]: $router_name '$sysname' $html_sysdescr $community
ECHO
"##;

/// `kymo discover` had no templates and filters of cfgmaker.
#[test]
fn templates_and_filters_are_those_of_cfgmaker() {
    if machine::must_skip(&["cfgmaker", "perl"]) {
        return;
    }
    let network = Network::new("discover-templates", [127, 0, 41, 1], 1);
    network.farm.change(0, |device, _| device.first_index = 7);
    let device = network.device(0);
    let file = |name: &str, text: &str| {
        fs::write(network.scratch.path(name), text).expect("a template");
        network.scratch.text(name)
    };
    let interface = format!("--if-template={}", file("interface", INTERFACE));
    let host = format!("--host-template={}", file("host", HOST));
    let ours = |options: &[&str]| {
        let words = [&["--mrtg", "--community-file", &network.community], options].concat();
        discover(&[&words[..], &[&device]].concat())
    };
    for (options, count) in [
        (&[interface.as_str()][..], 12),
        (&[&host], 11),
        (&[&host, &interface, "--if-filter=$ifindex == 8"], 9),
        (&["--if-filter=!$if_is_ethernet && $default"], 8),
        (
            &[
                "--if-filter=$if_admin and $if_type != 24",
                &interface,
                "--ifref=ip",
            ],
            12,
        ),
    ] {
        let theirs = Command::new("cfgmaker")
            .args(options)
            .arg(format!("{COMMUNITY}@{device}::::2"))
            .output();
        let theirs = String::from_utf8_lossy(&theirs.expect("cfgmaker").stdout).into_owned();
        let (code, ours, said) = ours(options);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{options:?}");
        assert_eq!(acting(&ours), acting(&theirs), "{options:?}");
        assert_eq!(acting(&ours).len(), count, "{options:?} {ours}");
    }
    for (options, why) in [
        (
            format!("--if-template={}", file("bad", "die 'no luck'")),
            "--if-template: no luck",
        ),
        (
            format!("--host-template={}", file("worse", "my $x = ;")),
            "--host-template: syntax error",
        ),
        (
            format!("--if-template={}", file("typo", "$target_line .= 'x';")),
            "--if-template: Global symbol \"$target_line\"",
        ),
        (
            format!(
                "--host-template={}",
                file("early", "$head_lines .= $if_ref;")
            ),
            "--host-template: Global symbol \"$if_ref\"",
        ),
        ("--if-filter=(".to_string(), "--if-filter: syntax error"),
        ("--if-template=/none/x".to_string(), "cannot read /none/x"),
        (
            format!("--if-template={}", file("end", "exit 0")),
            "perl ended before",
        ),
    ] {
        let (code, text, said) = ours(&[&options]);
        assert_eq!((code, text.as_str()), (Some(2), ""), "{options} {said}");
        assert!(
            said.contains(why) && said.lines().count() < 4,
            "{options}: {said}"
        );
    }
}

/// A template that chooses OIDs by what a device has: those that are there, absent, unknown or none.
const PICKS: &str = r#"
use strict;
$target_lines .= "\n";
my @cases = (
    ['1.3.6.1.4.1.9.9.99.1.0', 'ifNumber.0', 'ifNumber', 'sysName'],
    ["ifInOctets.$if_index", "ifOutOctets.$if_index"],
    ["ifHCInOctets.999", "ifInOctets.999"],
    ['noSuchName.1', '1.3.6.1.2.1.1.1.0'],
    ['1.3.6.1.2.1.1.5.0'],
    [],
);
for my $oids (@cases) {
    my $oid = &oid_pick($router_connect, $v3opt, @$oids);
    $target_lines .= "Title[$target_name]: " . (defined $oid ? $oid : 'none') . "\n";
}
my $oid = oid_pick($router_connect, $v3opt, '1.3.6.1.4.1.9.9.99.1.0', "ifMtu.$if_index", 'sysName');
$target_lines .= "Title[$target_name]: $oid\n";
"#;

/// `kymo discover` had no oid_pick().
#[test]
fn templates_pick_the_oids_that_a_device_has() {
    if machine::must_skip(&["cfgmaker", "perl", "snmpd"]) {
        return;
    }
    let user =
        "createUser picker SHA-256 \"s3cr3t-signing\" AES \"s3cr3t-private\"\nrouser picker priv\n";
    let agent = Snmpd::start("127.0.42.1", user);
    let scratch = Scratch::new("discover-picks");
    for (name, text) in [
        ("picks", PICKS),
        ("signing", "s3cr3t-signing"),
        ("private", "s3cr3t-private"),
    ] {
        fs::write(scratch.path(name), text).expect("a file");
    }
    let template = format!("--if-template={}", scratch.text("picks"));
    let place = agent.address.to_string();
    let words = [
        "--mrtg",
        "--loopback",
        "--no-down",
        "--ifref=nr",
        &template,
        &place,
    ];
    let (code, ours, said) = discover(&words);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{ours}");
    let theirs = Command::new("cfgmaker")
        .args([&template, "--no-down", "--ifref=nr", "--if-filter=1"])
        .arg(format!("public@{place}::::2"))
        .output();
    let theirs = String::from_utf8_lossy(&theirs.expect("cfgmaker").stdout).into_owned();
    let titles = |text: &str| -> BTreeMap<String, Vec<String>> {
        let lines = acting(text).into_iter();
        let titles = lines.filter_map(|line| {
            let line = line.trim_start_matches("# ");
            let (name, oid) = line.strip_prefix("Title[")?.split_once("]: ")?;
            Some((name.to_string(), oid.to_string()))
        });
        let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
        titles.for_each(|(name, oid)| by_name.entry(name).or_default().push(oid));
        by_name
    };
    let oids = titles(&ours);
    let (signing, private) = (scratch.text("signing"), scratch.text("private"));
    let by_user = [
        &["--snmp=3", "--user=picker"][..],
        &["--auth-file", &signing, "--privacy-file", &private],
        &words,
    ];
    let (code, by_user, said) = discover(&by_user.concat());
    assert_eq!((code, said.as_str()), (Some(0), ""), "{by_user}");
    assert_eq!(titles(&by_user), oids);
    let first = oids.values().next().expect("an interface");
    assert_eq!(
        first[3..6],
        ["1.3.6.1.2.1.1.1.0", "1.3.6.1.2.1.1.5.0", "none"]
    );
    assert_eq!(
        oids.into_values().collect::<Vec<_>>(),
        titles(&theirs).into_values().collect::<Vec<_>>()
    );
}

#[test]
fn an_mrtg_cfg_is_that_of_cfgmaker() {
    if machine::must_skip(&["cfgmaker"]) {
        return;
    }
    let network = Network::new("discover-mrtg", [127, 0, 40, 1], 1);
    network.farm.change(0, |device, _| device.first_index = 7);
    let device = network.device(0);
    let directory = network.scratch.path("").display().to_string();
    let global = format!("WorkDir: {directory}");
    for options in [
        &[][..],
        &["--ifref=nr"],
        &["--ifref=descr,nr", "--ifdesc=name"],
        &["--ifref=ip", "--ifdesc=descr"],
        &["--ifref=eth", "--ifdesc=nr", "--no-down"],
    ] {
        let theirs = Command::new("cfgmaker")
            .args(options)
            .args(["--global", &global, &format!("{COMMUNITY}@{device}::::2")])
            .output();
        let theirs = String::from_utf8_lossy(&theirs.expect("cfgmaker").stdout).into_owned();
        let words = [
            &[
                "--mrtg",
                "--global",
                &global,
                "--community-file",
                &network.community,
            ],
            options,
        ];
        let (code, ours, said) = discover(&[&words.concat()[..], &[&device]].concat());
        assert_eq!((code, said.as_str()), (Some(0), ""));
        let lines = acting(&ours);
        assert_eq!(lines.len(), 8, "{ours}");
        assert_eq!(lines, acting(&theirs), "{options:?}");
        let path = network.scratch.path("devices.cfg");
        fs::write(&path, &ours).expect("a file");
        let checked = Command::new(kymo())
            .args(["poll", "--check"])
            .arg(&path)
            .output();
        let checked = checked.expect("kymo runs");
        assert!(
            checked.status.success(),
            "{}",
            String::from_utf8_lossy(&checked.stderr)
        );
    }
}

/// Interfaces that snmpd's own configuration makes: two of one name, a VLAN of another type, and one without ifXTable.
fn odd_interfaces() -> String {
    let (own, more) = (".1.3.6.1.2.1.2.2.1", ".1.3.6.1.2.1.31.1.1.1");
    let mut lines = String::new();
    for (index, descr, name, alias, kind) in [
        (71, "port a", "eth", "a", 6),
        (72, "port b", "eth", "b", 117),
        (73, "Vlan 10", "Vlan10", "", 131),
        (74, "old", "", "", 6),
        (75, "<b>&", "odd", "", 999),
    ] {
        let of = |column: u32, kind: &str, value: &str| {
            format!("override {own}.{column}.{index} {kind} {value}\n")
        };
        lines += &of(1, "integer", &index.to_string());
        lines += &of(2, "octet_str", &format!("\"{descr}\""));
        lines += &of(3, "integer", &kind.to_string());
        lines += &of(4, "integer", "1500");
        lines += &of(5, "uinteger", "10000000");
        lines += &of(7, "integer", "1");
        lines += &of(8, "integer", "1");
        lines += &of(10, "counter", "1");
        lines += &of(16, "counter", "1");
        if !name.is_empty() {
            for (column, text) in [(1, name), (18, alias)] {
                lines += &format!("override {more}.{column}.{index} octet_str \"{text}\"\n");
            }
        }
    }
    lines
}

/// `kymo discover --mrtg` had other words than cfgmaker, and names that MRTG does not find; the tables had no speeds, and changes where
/// nothing changed.
#[test]
fn odd_interfaces_are_those_of_cfgmaker() {
    if machine::must_skip(&["cfgmaker", "snmpd"]) {
        return;
    }
    let agent = Snmpd::start("127.0.43.1", &odd_interfaces());
    let place = agent.address.to_string();
    let theirs = Command::new("cfgmaker")
        .arg("--noreversedns")
        .arg(format!("public@{place}::::2"))
        .output();
    let theirs = String::from_utf8_lossy(&theirs.expect("cfgmaker").stdout).into_owned();
    let (code, ours, said) = discover(&["--mrtg", &place]);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{ours}");
    let of = |text: &str, index: u32| -> Vec<String> {
        let (_, text) = text
            .split_once(&format!("### Interface {index} "))
            .expect("an interface");
        let (text, _) = text.split_once("\n\n\n").unwrap_or((text, ""));
        // cfgmaker reads aliases of some vendors only.
        let lines = text.lines().filter(|line| !line.contains("<td>port-"));
        lines.map(str::to_string).collect()
    };
    for index in 71..=75 {
        assert_eq!(of(&ours, index), of(&theirs, index));
    }
    let scratch = Scratch::new("discover-odd");
    let (file, path) = (scratch.text("kymo.toml"), scratch.path("kymo.toml"));
    let (code, tables, said) = discover(&[&place]);
    assert_eq!(code, Some(0), "{said}");
    for line in [
        "{ name = \"eth\", alias = \"a\", mbit = 10 }",
        "{ name = \"old\", mbit = 10 }",
    ] {
        assert!(tables.contains(line), "{tables}");
    }
    fs::write(&path, tables.replace('\n', "\r\n")).expect("a file");
    let (code, out, said) = discover(&[&file]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{said}");
    // One of the two, and one more that is gone, in a file with other ends of lines.
    let gone = "interface = [\r\n  { name = \"none\", mbit = 1 },";
    let before = tables.replace('\n', "\r\n").replace("interface = [", gone);
    let other = "name = \"eth\", alias = \"b\", mbit = 1 }";
    fs::write(&path, before.replace(&other.replace("1 }", "10 }"), other)).expect("a file");
    let (code, out, said) = discover(&["--apply", &file]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        out,
        format!(
            "{place}: interface none is gone\n{place}: interface eth: faster, 10 Mbit/s instead of 1\n"
        )
    );
    let after = fs::read_to_string(&path).expect("the file");
    assert_eq!(after, tables.replace('\n', "\r\n"));
}

/// `kymo poll` refused passwords of `kymo discover --mrtg` with a quote or a backslash.
#[test]
fn a_password_may_have_any_sign() {
    if machine::must_skip(&["mrtg", "snmpd"]) {
        return;
    }
    let (auth, privacy) = (r#"it's \a "$x" @b\"#, r"\'\' 12345");
    let lined = |text: &str| text.replace('\\', r"\\").replace('"', "\\\"");
    let user = format!(
        "createUser odd SHA-256 \"{}\" AES \"{}\"\nrouser odd priv\n",
        lined(auth),
        lined(privacy)
    );
    let agent = Snmpd::start("127.0.44.1", &user);
    let scratch = Scratch::new("discover-passwords");
    for (name, text) in [("auth", auth), ("privacy", privacy)] {
        fs::write(scratch.path(name), text).expect("a file");
    }
    let (signing, private) = (scratch.text("auth"), scratch.text("privacy"));
    let place = agent.address.to_string();
    let global = format!("WorkDir: {}", scratch.path("").display());
    let (code, text, said) = discover(&[
        "--snmp=3",
        "--user=odd",
        "--auth-file",
        &signing,
        "--privacy-file",
        &private,
        "--mrtg",
        "--loopback",
        "--ifref=nr",
        "--global",
        &global,
        &place,
    ]);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{text}");
    let path = scratch.path("devices.cfg");
    fs::write(&path, text).expect("a file");
    let run = |program: &str, words: &[&str]| {
        let output = Command::new(program)
            .args(words)
            .arg(&path)
            .env("LANG", "C")
            .output();
        let output = output.expect("a program");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{program}: {said}");
        said
    };
    run("mrtg", &["--check"]);
    let kymo = kymo().to_str().expect("a path").to_string();
    assert_eq!(run(&kymo, &["poll"]), "");
    let log = fs::read_to_string(scratch.path("127.0.44.1_1.log")).expect("a log");
    let numbers = log.lines().next().expect("a line").split(' ');
    assert_eq!(
        numbers.filter(|word| word.parse::<u64>().is_ok()).count(),
        3
    );
}
