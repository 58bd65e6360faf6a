//! Whole configurations, limits and secrets. `tests/all/poll_config.rs` compares with MRTG itself.

use super::*;
use kymo_base::limits::{MRTG_EXPRESSION_DEPTH_MAX, MRTG_TARGET_RUN_MAX};

const BEGIN: &str = "WorkDir: /tmp\nLogFormat: rrdtool\nTitle[_]: a title\nMaxBytes[_]: 1000\n";

fn read_text(text: &str) -> Result<Config, Problems> {
    let mut files = MemoryFiles::default();
    files.add("m", text.as_bytes());
    read(b"m", &mut files)
}

/// A configuration with this target and everything else that it needs.
fn target(text: &str) -> Config {
    match read_text(&format!("{BEGIN}Target[a]: {text}\n")) {
        Ok(config) => config,
        Err(problems) => panic!("{text}: {}", problems.0[0]),
    }
}

/// Why the target is left out.
fn left_out(text: &str) -> String {
    let config = target(text);
    assert_eq!(config.targets().len(), 0, "{text}");
    assert!(config.readings().is_empty(), "{text}");
    config.left_out()[0].to_string()
}

/// The first target's number, computed from these values of its readings.
fn number(text: &str, values: &[&str], rounding: Rounding) -> String {
    let config = target(text);
    assert_eq!(config.left_out(), [], "{text}");
    let value_of = |reading: u32, _: Direction| -> Option<&[u8]> {
        let value = values[text::wide(reading)].as_bytes();
        (value != b"U").then_some(value)
    };
    let mut out = b"kept".to_vec();
    let expression = config.target(0).expression();
    match config.evaluate(expression, Direction::In, rounding, &value_of, &mut out) {
        true => String::from_utf8_lossy(&out[4..]).into_owned(),
        false => {
            assert_eq!(out, b"kept", "{text}");
            "U".into()
        }
    }
}

#[test]
fn numbers_are_exact_or_unknown() {
    use Rounding::{Keep, Round};
    let most = "18446744073709551615";
    for (text, values, rounding, expected) in [
        ("1:c@h", &[most][..], Round, most),
        ("1:c@h", &["+007.50"], Round, "8"),
        ("1:c@h", &["+007.50"], Keep, "7.5"),
        ("1:c@h", &["-2.5"], Round, "-2"),
        ("1:c@h", &["x"], Round, "U"),
        ("1:c@h", &["U"], Round, "U"),
        ("1:c@h + 2:c@h", &[most, "1"], Round, "18446744073709551616"),
        (
            "1:c@h + 2:c@h",
            &[most, "0.5"],
            Keep,
            "18446744073709551615.5",
        ),
        // MRTG on a current Perl takes a missing value as zero here, and stores a drop and a peak.
        ("1:c@h + 2:c@h", &[most, "U"], Round, "U"),
        ("1:c@h + 1:c@h", &[most], Round, "36893488147419103230"),
        ("1:c@h * 8", &[most], Round, "147573952589676412920"),
        (
            "1:c@h / 3",
            &["10"],
            Keep,
            "3.333333333333333333333333333333333333333",
        ),
        ("1:c@h / 2:c@h", &["1", "0"], Round, "U"),
        (
            "1:c@h ** 2",
            &[most],
            Round,
            "340282366920938463426481119284349108225",
        ),
        ("1:c@h ** 100", &[most], Round, "U"),
        ("1:c@h ** -1", &["8"], Keep, "0.125"),
        ("-2 ** 2 + 1:c@h", &["0"], Round, "-4"),
        ("( 1:c@h - 2:c@h ) / 2", &["9", "4"], Round, "2"),
        ("( 1:c@h - 2:c@h ) / 2", &["11", "4"], Round, "4"),
        ("2:c@h ? 1:c@h / 2:c@h : 0", &["0", "6"], Round, "0"),
        ("int( 1:c@h / 2 )", &["7"], Keep, "3"),
        ("abs( 1:c@h - 9 )", &["7"], Keep, "2"),
        ("max( 1:c@h, 2:c@h, 5 )", &["7", "8"], Round, "8"),
        ("min( 1:c@h, 2:c@h, 5 )", &["7", "8"], Round, "5"),
        ("1:c@h >= 7 ? 1 : 2", &["7"], Round, "1"),
    ] {
        assert_eq!(
            number(text, values, rounding),
            expected,
            "{text} {values:?}"
        );
    }
}

#[test]
fn what_needs_perl_is_left_out_with_a_reason() {
    let deep = MRTG_EXPRESSION_DEPTH_MAX + 1;
    let nested = format!("{}1:c@h{}", "( ".repeat(deep), " )".repeat(deep));
    let long = format!("1:{}@h", "c".repeat(MRTG_TARGET_RUN_MAX));
    for (text, why) in [
        ("log( 1:c@h )", "line 5: its expression is Perl"),
        ("1:c@h % 8", "its expression is Perl"),
        ("1:c@h x 8", "its expression is Perl"),
        ("1:c@h 2:c@h", "its expression is Perl"),
        ("1:c@h + 018", "its expression is Perl"),
        ("1:c@h; system('id')", "its expression is Perl"),
        ("$target->[7]{$mode} + 1:c@h", "its expression is Perl"),
        ("5", "nothing in it that can be read"),
        ("", "nothing in it that can be read"),
        ("1:c@h|octets", "its conversion is Perl"),
        (
            "ssCpuRawIdle.0&ssCpuRawIdle.0:c@h",
            "the name of an OID is not known: write its number",
        ),
        ("PseudoOne.1&PseudoOne.1:c@h", "have no index"),
        (".1.3.IndexPOS&.1.3.IndexPOS:c@h", "needs an interface"),
        ("99999999999:c@h", "no interface has such a number"),
        ("1:c@h:99999", "a port is a number up to 65535"),
        ("1:c@h::0", "a timeout of 0 s"),
        ("1:c@h:::1.5", "1.5 retries"),
        ("1:c@h::::0", "a backoff of 0"),
        (&nested, "nested too deeply"),
        (&long, "too long"),
    ] {
        let message = left_out(text);
        assert!(
            message.starts_with("cannot poll a of m line 5: ") && message.contains(why),
            "{message}"
        );
        assert!(!message.contains("c@h"), "a community: {message}");
    }
}

#[test]
fn users_of_version_3_are_those_of_their_options() {
    let targets = "Target[a]: 1:c@h:::::3\nTarget[b]: 1:c@h:::::2\nTarget[c]: 2:c@h:::::3\n";
    let options = "SnmpOptions: username => 'u', authpassword => 's3cr3t', authprotocol => 'sha'\n\
        SnmpOptions[c]: username => 'w'\n";
    let v3 = format!("{BEGIN}EnableSnmpV3: yes\n{options}{targets}");
    let config = read_text(&v3).unwrap();
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    let names = config
        .sessions()
        .iter()
        .map(|session| match &session.access {
            Access::V3(user) => String::from_utf8_lossy(&user.name).into_owned(),
            other => format!("{other:?}"),
        });
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, ["V2c", "u", "w"]);
    assert_eq!(config.sessions()[0].timeout_s, 5.0);
    assert!(!format!("{:?}", config.sessions()).contains("s3cr3t"));
    // A user is needed, and MRTG speaks version 1 if version 3 is not allowed.
    let nobody = format!("{BEGIN}EnableSnmpV3: yes\n{targets}");
    let config = read_text(&nobody).unwrap();
    assert_eq!((config.targets().len(), config.left_out().len()), (1, 2));
    let config = read_text(&format!("{BEGIN}{options}{targets}")).unwrap();
    assert_eq!(config.sessions()[0].access, Access::V1);
    assert_eq!(
        *config.warnings(),
        ["SnmpOptions: the user of SNMPv3 has no effect without EnableSnmpV3: yes"]
    );
}

#[test]
fn devices_are_shared_and_patient_as_they_are_said_to_be() {
    let text = format!(
        "{BEGIN}SnmpOptions: retries => 2, timeout => 7, lenient_source_port_matching => 0\n\
        Target[a]: 1:c@h:1161!10.0.0.9!99:3:4:5:2\nTarget[b]: 2:c@h:1161!10.0.0.9!99:3:4:5:2\n\
        Target[c]: 1:c@h\nTarget[d]: 1:c@[::1]\nTarget[e]: 2:c@h\nSnmpOptions[e]: retries => 1\n"
    );
    let config = read_text(&text).unwrap();
    let sessions = config.sessions();
    assert_eq!((config.readings().len(), sessions.len()), (5, 4));
    let first = &sessions[0];
    assert_eq!(
        (first.port, first.attempts, first.timeout_s, first.backoff),
        (1161, 4, 3.0, 5.0)
    );
    assert_eq!(
        (first.local_host.as_deref(), first.local_port),
        (Some("10.0.0.9"), Some(99))
    );
    assert_eq!(first.access, Access::V2c);
    assert!(!first.lenient_port && first.lenient_address);
    assert_eq!((sessions[1].attempts, sessions[1].timeout_s), (2, 7.0));
    assert_eq!(sessions[2].host, Host::V6("::1".parse().ok()));
    assert_eq!((sessions[3].attempts, sessions[3].timeout_s), (1, 2.0));
    assert_eq!(first.mrtg_key.reveal(), b"c@h:1161!10.0.0.9!99:3:4:5:2");
}

#[test]
fn rrdtool_takes_the_row_counts() {
    for (count, format, is_taken) in [
        ("400", "rrdtool", true),
        ("0", "rrdtool", true),
        ("4294967295", "rrdtool", true),
        ("4294967296", "rrdtool", false),
        ("x", "rrdtool", false),
        ("10.5", "rrdtool", false),
        ("-3", "rrdtool", false),
        ("+3", "rrdtool", false),
        ("1e3", "rrdtool", false),
        ("00", "rrdtool", false),
        ("100 # c", "rrdtool", false),
        ("x", "rateup", true),
    ] {
        for keyword in [
            "RRDRowCount",
            "RRDRowCount30m",
            "RRDRowCount2h",
            "RRDRowCount1d",
        ] {
            let text =
                format!("{BEGIN}LogFormat: {format}\nTarget[a]: 1:c@h\n{keyword}[a]: {count}\n");
            match read_text(&text) {
                Ok(_) => assert!(is_taken, "{keyword}: {count}"),
                Err(problems) => {
                    assert!(!is_taken, "{keyword}: {count}");
                    assert!(problems.0[0].what.starts_with(keyword), "{}", problems.0[0]);
                }
            }
        }
    }
}

/// The right keys are those of MRTG_lib's cleanhostkey.
#[test]
fn interfaces_have_mrtgs_keys() {
    for (device, expected) in [
        ("c@h", "c@h"),
        ("c@h:16161", "c@h_16161"),
        ("c@h:::::2", "c@h__2"),
        ("c@h:161:2:1:1:2", "c@h_161_2"),
        ("c@h:161:2:1:1", "c@h_161"),
        ("c@h:161:2", "c@h_161"),
        ("c@h::0.5:3", "c@h__0.5_3"),
        ("c@h::0.5:3:1:2", "c@h__0.5_3"),
        ("c@h:1161!10.0.0.9!99:3:4:5:2", "c@h_1161!10.0.0.9!99_3"),
        ("c@[::1]", "c@[__1]"),
        ("c@[::1]:161::::2", "c@[__1]_161_2"),
        ("a:1@h:161:2", "a_1@h_161"),
    ] {
        let config = read_text(&format!("{BEGIN}Target[a]: 1:{device}\n")).unwrap();
        let key = config.sessions()[0].cache_key();
        assert_eq!(key.escape_ascii().to_string(), expected, "{device}");
    }
}

#[test]
fn communities_are_not_shown() {
    let text = format!("{BEGIN}Target[a]: 1:s3cr\\@t@h + `echo`\nSnmpOptions[a]: x => 's3cr'\n");
    let mut files = MemoryFiles::default();
    files.add("m", text.as_bytes());
    let mut trace = Vec::new();
    let mut say = |word: &str, message: &[u8]| {
        trace.extend_from_slice(word.as_bytes());
        trace.extend_from_slice(message);
    };
    let config = read_traced(b"m", &mut files, &mut Trace::On(Secrets::Masked, &mut say)).unwrap();
    config.target(0).put_dump(Secrets::Masked, &mut trace);
    trace.extend_from_slice(format!("{config:?}").as_bytes());
    let trace = String::from_utf8_lossy(&trace);
    assert!(!trace.contains("s3cr"), "{trace}");
    assert!(trace.contains(":***@h"), "{trace}");
    let mut shown = Vec::new();
    config.target(0).put_dump(Secrets::Shown, &mut shown);
    assert!(String::from_utf8_lossy(&shown).contains("s3cr"));
}

#[test]
fn a_configuration_that_is_cut_anywhere_is_read_or_refused() {
    let text = format!(
        "{BEGIN}Include: /i\nTitle[^]: p\nPageTop[$]: s\nTarget[a]: ifInErrors#e\\:0&.1.3.6.IndexPOS.5\\d:c@[::1]:161!::2:1:1:2|x\n\
        \t+ `a \\` b` * ( 1:c@h ? -2.5e1 : max( 1, 2 ) )\nOptions[a]: bits, gauge\n\
        SnmpOptions[a]: timeout => 1, x => 'y'\nSetEnv[a]: A=\"b\"\nInterval: 1:30\n14all*x[a]: y\n"
    );
    for end in 0..=text.len() {
        let mut files = MemoryFiles::default();
        files.add("m", &text.as_bytes()[..end]);
        files.add("/i", b"Target[b]: 1:c@h\n more");
        // Every truncated configuration is read or refused without a panic.
        let _ = read(b"m", &mut files);
    }
}

#[test]
fn includes_are_found_beside_the_configuration() {
    let mut files = MemoryFiles::default();
    let part =
        |name: &str| format!("Target[{name}]: 1:c@h\nMaxBytes[{name}]: 1\nTitle[{name}]: x\n");
    for name in ["a", "b", "c"] {
        files.add(&format!("/etc/t/{name}.cfg"), part(name).as_bytes());
    }
    files.add("/etc/t/.a.cfg.swp", b"\0");
    files.add("/tmp/x", b"");
    for (include, expected) in [
        ("t/*", "c b a"),
        ("\"t/[ab]*\"", "b a"),
        ("/etc/t/{c,a}*", "a c"),
        ("*/b.cfg", "b"),
        ("/tmp", ""),
        ("/nowhere/*", ""),
    ] {
        let text = format!("WorkDir: /tmp\nInclude: {include}\n");
        files.add("/etc/m", text.as_bytes());
        let config = read(b"/etc/m", &mut files).unwrap();
        let names: Vec<_> = config
            .targets()
            .map(|target| target.name().into_owned())
            .collect();
        assert_eq!(names.join(&b' '), expected.as_bytes(), "{include}");
    }
    for include in ["~/*", "t/* ~root/*", "t/{a,nowhere}.cfg*", "t/nowhere"] {
        files.add(
            "/etc/m",
            format!("WorkDir: /tmp\nInclude: {include}\n").as_bytes(),
        );
        let is_refused = read(b"/etc/m", &mut files).is_err();
        assert_eq!(is_refused, !include.contains("cfg*"), "{include}");
    }
}

#[test]
fn a_file_that_includes_itself_is_refused() {
    let problems = read_text("Include: m\n").unwrap_err();
    assert!(
        problems.0[0].what.contains("too many files"),
        "{}",
        problems.0[0]
    );
}

#[test]
fn pages_are_forgotten_and_the_rest_stays() {
    let text =
        format!("{BEGIN}Target[a]: #e\\ 0:c@h\nPageTop[a]: <h1>\n one\n two\nThreshMaxI[a]: 5\n");
    let mut config = read_text(&text).unwrap();
    let before = config
        .target(0)
        .value(Keyword::PageTop)
        .unwrap()
        .into_owned();
    assert_eq!(before, b"<h1> one two");
    config.forget_pages();
    let target = config.target(0);
    assert_eq!(target.value(Keyword::PageTop), None);
    assert_eq!(
        target.value(Keyword::ThreshMaxI).as_deref(),
        Some(&b"5"[..])
    );
    assert_eq!(&*target.name(), b"a");
    assert_eq!(target.place(), (&b"m"[..], 5));
    let reading = &config.readings()[0];
    assert_eq!(&*config.text(reading.text), b"#e\\ 0:c@h");
    let Source::Snmp(snmp) = reading.source else {
        panic!("no SNMP");
    };
    let Index::Reference(ReferenceKind::Name, key) = snmp.objects[1].index else {
        panic!("no name");
    };
    assert_eq!(&*config.text(key), b"e 0");
}
