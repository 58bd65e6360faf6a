//! Parts of pages about the device and the moment, of both programs side by side: the sentence about how long a device has been up,
//! times to expire, copies of targets' files.

use std::ffi::OsStr;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use kymo_tests::snmpd::Snmpd;
use kymo_tests::{kymo, machine};
use kymo_wire::mrtg_cfg::decoded;

use super::sides::Sides;

/// The sentence about the time of the figures and the device, without minutes and seconds of clocks.
fn sentence(page: &str) -> String {
    let from = page.find("<p>The statistics").expect("a sentence");
    let to = from + page[from..].find("</p>").expect("an end");
    let sentence = page[from..to].replace(['\n', '\t'], " ");
    let mut text = String::new();
    let is_part = |c: char| c.is_ascii_digit() || c == ':';
    let mut rest = &sentence[..];
    while let Some(at) = rest.find(is_part) {
        let end = rest[at..]
            .find(|c| !is_part(c))
            .map_or(rest.len(), |end| at + end);
        text += &rest[..at];
        text += match rest[at..end].contains(':') {
            true => "CLOCK",
            false => &rest[at..end],
        };
        rest = &rest[end..];
    }
    text += rest;
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn target(name: &str, target: &str, keywords: &str) -> String {
    let keywords = keywords.replace("[t]", &format!("[{name}]"));
    format!("Target[{name}]: {target}\nTitle[{name}]: T\nMaxBytes[{name}]: 1000000\n{keywords}\n")
}

#[test]
fn a_page_says_how_long_its_device_has_been_up() {
    if machine::must_skip(&["mrtg", "rateup", "snmpd"]) {
        return;
    }
    let named = Snmpd::start("127.0.0.1", "sysName core-1 (Ulm)\n");
    let other = Snmpd::start(
        "127.0.0.1",
        "sysName other\nview a included .1.3.6.1.2.1.2\nrocommunity part default -V a\n",
    );
    let agent = |of: &Snmpd, community: &str, version: &str| {
        let (ip, port) = (of.address.ip(), of.address.port());
        format!("{community}@{ip}:{port}::::{version}")
    };
    let in_and_out = |of: &str| format!("1.3.6.1.2.1.2.2.1.10.1&1.3.6.1.2.1.2.2.1.16.1:{of}");
    let (two, one) = (agent(&named, "public", "2"), agent(&named, "public", ""));
    let hidden = agent(&other, "part", "2");
    let config = [
        "WorkDir: WORK\n".to_string(),
        target("plain", &in_and_out(&two), ""),
        target("v1", &in_and_out(&one), ""),
        target("noinfo", &in_and_out(&two), "Options[t]: noinfo"),
        target("sum", &format!("{0} + {0}", in_and_out(&two)), ""),
        target(
            "two",
            &format!("{} + {}", in_and_out(&two), in_and_out(&one)),
            "",
        ),
        target("hidden", &in_and_out(&hidden), ""),
        target(
            "walk",
            &format!("WaLK.1.3.6.1.2.1.2.2.1.10&WaLK.1.3.6.1.2.1.2.2.1.16:{two}"),
            "",
        ),
        target("command", "`printf '1\\n2\\n 3 weeks\\nbox 7\\n'`", ""),
        target("nameless", "`printf '1\\n2\\n3 weeks\\n'`", ""),
        target("short", "`printf '1\\n2\\n'`", ""),
    ];
    let sides = Sides::run("poll-pages-up", &config.concat(), |_| {});
    for (name, expected) in [
        (
            "plain",
            ",<br /> at which time <strong>'core-1 (Ulm)'</strong> had been up for <strong>CLOCK</strong>.",
        ),
        ("noinfo", ""),
        ("two", ""),
        (
            "command",
            ",<br /> at which time <strong>'box 7'</strong> had been up for <strong>3 weeks</strong>.",
        ),
        (
            "nameless",
            ",<br /> at which time <strong>'unknown'</strong> had been up for <strong>3 weeks</strong>.",
        ),
        // MRTG knows of a command that it has a name and an uptime, but not which.
        (
            "short",
            ",<br /> at which time <strong>'unknown'</strong> had been up for <strong>unknown</strong>.",
        ),
    ] {
        let [ours, _] = sides
            .texts(&format!("{name}.html"))
            .map(|page| sentence(&page));
        let end = ours.split_once("CLOCK</strong>").expect("a clock").1;
        assert_eq!(end, expected, "{name}");
    }
    for name in [
        "plain", "v1", "noinfo", "sum", "two", "hidden", "walk", "command", "nameless", "short",
    ] {
        let [ours, theirs] = sides
            .texts(&format!("{name}.html"))
            .map(|page| sentence(&page));
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn a_page_names_the_device_that_its_target_says() {
    if machine::must_skip(&["mrtg", "rateup", "snmpd"]) {
        return;
    }
    let named = Snmpd::start("127.0.0.1", "sysName core-1\nsysLocation cellar <2>\n");
    let other = Snmpd::start("127.0.0.1", "sysName other\nsysContact Mx & Co\n");
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let silent = silent.local_addr().expect("its address");
    let place = |of: SocketAddr| format!("public@{}:{}:1:1:1:2", of.ip(), of.port());
    let (one, two) = (place(named.address), place(other.address));
    let in_and_out = |of: &str| format!("1.3.6.1.2.1.2.2.1.10.1&1.3.6.1.2.1.2.2.1.16.1:{of}");
    let (single, sum) = (
        in_and_out(&one),
        format!("{} + {}", in_and_out(&one), in_and_out(&two)),
    );
    let command = "`printf '1\\n2\\n 3 weeks\\nbox 7\\n'`";
    let cases = [
        (
            "up",
            &single[..],
            format!("RouterUptime[t]: sysUptime:{two}"),
        ),
        (
            "oid",
            &single,
            format!("RouterUptime[t]: 1.3.6.1.2.1.25.1.1.0:{two}"),
        ),
        (
            "own",
            &single,
            "RouterUptime[t]: 1.3.6.1.2.1.25.1.1.0".into(),
        ),
        (
            "number",
            &single,
            "RouterUptime[t]: 1.3.6.1.2.1.1.7.0".into(),
        ),
        (
            "address",
            &single,
            "RouterUptime[t]: 1.3.6.1.2.1.4.20.1.1.127.0.0.1".into(),
        ),
        ("kind", &single, "RouterUptime[t]: sysObjectID".into()),
        (
            "absent",
            &single,
            "RouterUptime[t]: 1.3.6.1.4.1.1.1.0".into(),
        ),
        (
            "silent",
            &single,
            format!("RouterUptime[t]: sysUptime:{}", place(silent)),
        ),
        ("sum", &sum, format!("RouterUptime[t]: sysUptime:{two}")),
        ("name", &single, "RouterName[t]: sysLocation".into()),
        (
            "nameless",
            &single,
            "RouterName[t]: 1.3.6.1.4.1.1.1.0".into(),
        ),
        ("away", &single, format!("RouterName[t]: sysContact:{two}")),
        (
            "both",
            &sum,
            format!("RouterUptime[t]: sysUptime:{two}\nRouterName[t]: sysContact"),
        ),
        (
            "apart",
            &sum,
            format!("RouterUptime[t]: sysUptime:{one}\nRouterName[t]: sysContact:{two}"),
        ),
        ("sum_name", &sum, format!("RouterName[t]: sysContact:{two}")),
        (
            "command",
            command,
            format!("RouterUptime[t]: sysUptime:{two}"),
        ),
        (
            "command_name",
            command,
            format!("RouterName[t]: sysName:{two}"),
        ),
        (
            "noinfo",
            &single,
            format!("RouterUptime[t]: sysUptime:{two}\nOptions[t]: noinfo"),
        ),
    ];
    for globals in ["", "NoMib2: yes\n", "SingleRequest: yes\n"] {
        let targets = cases
            .iter()
            .map(|(name, text, keywords)| target(name, text, keywords));
        let targets: String = targets.collect();
        let config = format!("WorkDir: WORK\n{globals}{targets}");
        let sides = Sides::run("poll-pages-router", &config, |_| {});
        for (name, ..) in &cases {
            let [ours, theirs] = sides
                .texts(&format!("{name}.html"))
                .map(|page| sentence(&page));
            // MRTG passes on what a device says, as HTML.
            let theirs = theirs
                .replace("Mx & Co", "Mx &amp; Co")
                .replace("cellar <2>", "cellar &lt;2&gt;");
            assert_eq!(ours, theirs, "{name} {globals}");
        }
    }
}

#[test]
fn without_mib2_no_page_names_its_device() {
    if machine::must_skip(&["mrtg", "rateup", "snmpd"]) {
        return;
    }
    let agent = Snmpd::start("127.0.0.1", "sysName core-1\n");
    let address = agent.address;
    let config = format!(
        "WorkDir: WORK\nNoMib2: yes\n{}",
        target(
            "t",
            &format!("1:public@{}:{}::::2", address.ip(), address.port()),
            ""
        )
    );
    let sides = Sides::run("poll-pages-nomib2", &config, |_| {});
    let [ours, theirs] = sides.texts("t.html").map(|page| sentence(&page));
    assert_eq!(ours, theirs);
    assert!(!ours.contains("had been up"), "{ours}");
}

/// Files of a folder, but for those about MRTG's own pictures and kymo's locks.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("a name").file_name().into_string());
    let mut names: Vec<String> = names.map(|name| name.expect("a name")).collect();
    names.retain(|name| !name.starts_with("mrtg") && !name.starts_with('.'));
    names.sort();
    names
}

#[test]
fn files_have_times_to_expire() {
    if machine::must_skip(&["mrtg", "rateup"]) {
        return;
    }
    let config = format!(
        "WorkDir: WORK\nWriteExpires: yes\nInterval: 7\nIconDir: /icons/x\n{}",
        target("t", "`echo 1; echo 2`", "Extension[t]: htm\nSuppress[t]: m")
    );
    let sides = Sides::run("poll-pages-expires", &config, |work| {
        std::fs::write(work.join("index.html"), "").expect("an index");
    });
    assert_eq!(names(&sides.ours), names(&sides.theirs));
    for name in [
        "t.htm.meta",
        "t-day.png.meta",
        "t-week.png.meta",
        "t-year.png.meta",
        "index.html.meta",
    ] {
        let [ours, theirs] = sides.texts(name).map(|text| {
            let time = text
                .strip_prefix("Expires: ")
                .and_then(|time| time.strip_suffix(" GMT\n"));
            let time = time.unwrap_or_else(|| panic!("{name}: {text}"));
            let time = jiff::civil::DateTime::strptime("%a, %d %b %Y %H:%M:%S", time);
            let zoned = time.expect("a time").to_zoned(jiff::tz::TimeZone::UTC);
            zoned.expect("a time").timestamp().as_second()
        });
        // Both ran within a minute.
        assert!((ours - theirs).abs() < 60, "{name}: {ours} {theirs}");
    }
    for page in sides.texts("t.htm") {
        assert!(page.contains("src=\"/icons/x/mrtg-l.png\""), "{page}");
    }
}

#[test]
fn a_target_has_a_copy_elsewhere() {
    if machine::must_skip(&["mrtg", "rateup"]) {
        return;
    }
    let config = [
        "WorkDir: WORK\n",
        &target("same", "`echo 1; echo 2`", "CloneDirectory[t]: elsewhere"),
        &target(
            "named",
            "`echo 1; echo 2`",
            "CloneDirectory[t]: elsewhere Other\nPageTop[t]: <h1>named and named</h1>",
        ),
        &target("none", "`echo 1; echo 2`", ""),
    ];
    let sides = Sides::run("poll-pages-clone", &config.concat(), |work| {
        std::fs::create_dir(work.join("elsewhere")).expect("a folder");
    });
    let folders = [&sides.ours, &sides.theirs].map(|work| names(&work.join("elsewhere")));
    assert_eq!(folders[0], folders[1]);
    let of = |name: &str| sides.texts(name).map(|page| page.contains("other-day.png"));
    assert_eq!(of("elsewhere/other.html"), [true, true]);
    assert_eq!(of("named.html"), [false, false]);
    for page in sides.texts("elsewhere/other.html") {
        assert!(page.contains("<h1>other and named</h1>"), "{page}");
    }
    for name in ["same.log", "other.log", "same-year.png"] {
        let copy = std::fs::read(sides.ours.join("elsewhere").join(name)).expect("a copy");
        let from = name.replace("other", "named");
        assert_eq!(
            copy,
            std::fs::read(sides.ours.join(from)).expect("a file"),
            "{name}"
        );
    }
}

#[test]
fn a_page_is_written_in_its_language() {
    if machine::must_skip(&["mrtg", "rateup"]) {
        return;
    }
    let config = |language: &str| {
        format!(
            "WorkDir: WORK\nLanguage: {language}\n{}",
            target("t", "`echo 1; echo 2`", "Options[t]: noinfo")
        )
    };
    let sides = Sides::run("poll-pages-german", &config("german"), |_| {});
    let [ours, theirs] = sides.texts("t.html");
    for part in [
        "<html lang=\"de\">",
        "<h2>Tag (Mittel von 5 Minuten)</h2>",
        "Stand der Zahlen: <strong>",
        "<th scope=\"row\">Eingang</th>",
    ] {
        assert!(ours.contains(part), "{part} is not in {ours}");
    }
    // Words differ from MRTG's; comments and the encoding have no language.
    let parts = |page: &str| {
        let comments = page.split("<!-- ").skip(1);
        let comments = comments.filter_map(|rest| Some(rest.split_once(" -->")?.0.to_string()));
        let comments: Vec<String> = comments.filter(|text| !text.starts_with("MRTG ")).collect();
        (comments, page.contains("<meta charset=\"UTF-8\" />"))
    };
    assert_eq!(parts(&ours), parts(&theirs));
    let (said, _) = sides.again(&config("klingon"));
    assert_eq!(
        said,
        "kymo: no words of Language: klingon are known; pages are in English\n"
    );
    assert!(sides.texts("t.html")[0].contains("`Daily' Graph (5 Minute Average)"));
}

/// Keywords in Latin-1 with DOS line ends, as editors of old have left them.
const LATIN_1: &str = "\
Target[gr\u{fc}n]: `printf '1000\\n5\\n2 Tage Gr\u{fc}n\\nrt\u{e4}\\n'`\r\n\
MaxBytes[gr\u{fc}n]: 2000\r\nTitle[gr\u{fc}n]: Gr\u{f6}\u{df}e\r\nPageTop[gr\u{fc}n]: <h1>K\u{f6}ln</h1>\r\n\
LegendI[gr\u{fc}n]: \u{c4}n\r\nLegend1[gr\u{fc}n]: \u{dc}ber\r\nShortLegend[gr\u{fc}n]: \u{b5}s\r\n\
Colours[gr\u{fc}n]: GR\u{dc}N#00ff00,B#111111,C#222222,D#333333\r\nOptions[gr\u{fc}n]: gauge\r\n\
PageFoot[gr\u{fc}n]: f\u{fc}r\r\nAddHead[gr\u{fc}n]: <!-- \u{f6} -->\r\nBodyTag[gr\u{fc}n]: <body title=\"\u{e9}\">\r\n";

#[test]
fn texts_of_latin_1_are_shown() {
    if machine::must_skip(&["mrtg", "rateup"]) {
        return;
    }
    let config = "WorkDir: WORK\nInclude: WORK/latin-1.cfg\n";
    let sides = Sides::run("poll-pages-latin-1", config, |work| {
        let bytes = LATIN_1
            .chars()
            .map(|c| u8::try_from(u32::from(c)).expect("Latin-1"));
        let bytes: Vec<u8> = bytes.collect();
        std::fs::write(work.join("latin-1.cfg"), bytes).expect("written");
    });
    let name = OsStr::from_bytes(b"gr\xfcn.html");
    let [ours, theirs] =
        [&sides.ours, &sides.theirs].map(|work| std::fs::read(work.join(name)).expect("a page"));
    let ours = String::from_utf8(ours).expect("UTF-8");
    for part in [
        "Gr\u{f6}\u{df}e</title>",
        "<h1>K\u{f6}ln</h1>",
        ">\u{c4}n</th>",
        "\u{dc}ber</td>",
        " \u{b5}s",
        "GR\u{dc}N ###",
        "2 Tage Gr\u{fc}n",
        "'rt\u{e4}'",
        "f\u{fc}r",
        "<!-- \u{f6} -->",
        "<body title=\"\u{e9}\">",
    ] {
        assert!(decoded(&theirs).contains(part), "MRTG: {part}");
        assert!(ours.contains(part), "{part}: {ours}");
    }
    assert!(ours.contains("src=\"gr%FCn-day.png\""), "{ours}");
    let mut index = std::process::Command::new(kymo());
    index
        .args(["poll", "--index", "--title"])
        .arg(OsStr::from_bytes(b"\xdcbersicht"));
    let output = index
        .arg(sides.config("ours"))
        .output()
        .expect("it is started");
    let index = String::from_utf8(output.stdout).expect("UTF-8");
    for part in [
        "<title>\u{dc}bersicht</title>",
        ">K\u{f6}ln<",
        "gr%FCn.html",
        "gr%FCn-day.png",
    ] {
        assert!(index.contains(part), "{part}: {index}");
    }
}
