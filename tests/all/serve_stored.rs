//! Series that others send to `kymo serve`, in its page and its API.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kymo_tests::rrd_client::Client;
use kymo_tests::rrdtool::rrdtool;
use kymo_tests::served::{Served, ask, eventually, get, kill};
use kymo_tests::{Scratch, kymo};
use kymo_wire::keeper::{Answer, KeeperRequest};
use serde_json::Value;

/// Begin of the values.
const BIRTH: u64 = 1_700_000_000;
const ROWS: u64 = 600;

/// A `kymo serve` with stored series.
struct Shown {
    served: Served,
    address: String,
    dir: PathBuf,
    scratch: Scratch,
}

impl Shown {
    fn start(name: &str, config: &str) -> Shown {
        let scratch = Scratch::new(name);
        let dir = scratch.path("data");
        let config =
            format!("user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\n{config}");
        let mut served = Served::configured(&scratch, &dir, &config);
        let address = served.address();
        served.has_said("rrdcached's protocol on");
        Shown {
            served,
            address,
            dir,
            scratch,
        }
    }

    fn client(&self) -> Client {
        Client::unix(&self.dir.join("rrdcached.sock")).expect("a client")
    }

    /// Sends two series: one with two sources, as LibreNMS has them, and one of collectd's.
    fn fill(&self) {
        let mut client = self.client();
        let tail =
            "RRA:AVERAGE:0.5:1:800 RRA:MIN:0.5:6:200 RRA:MAX:0.5:6:200 RRA:AVERAGE:0.5:6:200";
        for (name, sources) in [
            (
                "sw1/port-id1.rrd",
                "DS:IN:DERIVE:20:0:U DS:OUT:DERIVE:20:0:U",
            ),
            ("web1/cpu-0/cpu-idle.rrd", "DS:value:GAUGE:20:U:U"),
        ] {
            let made = client.text(&format!("CREATE {name} -b {BIRTH} -s 10 {sources} {tail}"));
            assert!(made.starts_with("0 "), "{made}");
        }
        for row in 1..=ROWS {
            let (stamp, value) = (BIRTH + row * 10, row * row);
            let sent = [
                client.text(&format!(
                    "UPDATE sw1/port-id1.rrd {stamp}:{value}:{}",
                    value * 8
                )),
                client.text(&format!(
                    "UPDATE web1/cpu-0/cpu-idle.rrd {stamp}:{}",
                    row % 50
                )),
            ];
            assert!(sent.iter().all(|said| said.starts_with("0 ")), "{sent:?}");
        }
    }

    /// Means of stored fields over a range, a point each ten seconds.
    fn series(&self, fields: &str, from: u64, thru: u64) -> Value {
        let path = format!("/kymo/v1/series?fields={fields}&from={from}&thru={thru}&points=1000");
        get(&self.address, &path, "")
    }
}

fn stored(address: &str, query: &str) -> Vec<String> {
    let answer = get(address, &format!("/kymo/v1/stored{query}"), "");
    let names = answer["series"].as_array().expect("series");
    names
        .iter()
        .map(|series| series[0].as_str().expect("a name").to_string())
        .collect()
}

/// Rows by rrdtool.
fn fetched(folder: &Path, file: &Path, column: usize, (from, thru): (u64, u64)) -> Vec<(u64, f64)> {
    let (file, from, thru) = (file.to_string_lossy(), from.to_string(), thru.to_string());
    let output = rrdtool(
        folder,
        &[
            "fetch", &file, "AVERAGE", "-r", "10", "-s", &from, "-e", &thru,
        ],
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = |line: &str| {
        let (stamp, values) = line.split_once(": ")?;
        let value = values.split(' ').nth(column)?.parse().ok()?;
        Some((stamp.parse().ok()?, value))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn stored_series_are_listed_and_read_as_rrdtool_reads_them() {
    let shown = Shown::start("stored-rows", "");
    shown.fill();
    assert_eq!(
        stored(&shown.address, ""),
        ["sw1/port-id1.rrd", "web1/cpu-0/cpu-idle.rrd"]
    );
    assert_eq!(
        stored(&shown.address, "?match=host=web*"),
        ["web1/cpu-0/cpu-idle.rrd"]
    );
    assert_eq!(
        stored(&shown.address, "?match=port&match=host!=web1"),
        ["sw1/port-id1.rrd"]
    );
    let (status, said) = ask(
        &shown.address,
        "GET",
        "/kymo/v1/stored?match=1st=red",
        "",
        "",
    )
    .expect("an answer");
    assert_eq!(status, 400, "{said}");

    // Reading a series does not save its pending values.
    let pending = |name: &str| shown.client().text(&format!("PENDING {name}"));
    let before = pending("sw1/port-id1.rrd");
    let (from, thru) = (BIRTH + 100, BIRTH + 2100);
    let answer = shown.series(
        "@sw1/port-id1.rrd:OUT,@web1/cpu-0/cpu-idle.rrd:value",
        from,
        thru,
    );
    assert_eq!(pending("sw1/port-id1.rrd"), before);

    let flushed = shown.client().text("FLUSH sw1/port-id1.rrd");
    assert!(flushed.starts_with("0 "), "{flushed}");
    let file = shown.dir.join("rrd/sw1/port-id1.rrd");
    let theirs = fetched(&shown.dir, &file, 1, (from, thru - 10));
    let ours = &answer["series"][0];
    assert_eq!(
        (ours["id"].as_str(), ours["unit"].as_str()),
        (Some("@sw1/port-id1.rrd:OUT"), Some("1/s"))
    );
    let (first, step) = (
        answer["first"].as_f64().expect("first"),
        answer["step"].as_f64().expect("step"),
    );
    assert!(theirs.len() > 150, "{} rows", theirs.len());
    for (stamp, value) in theirs {
        let at = ((stamp as f64 - first) / step).round() as usize;
        let mean = ours["avg"][at].as_f64().expect("a mean");
        assert!(
            (mean - value).abs() <= value.abs() * 1e-5,
            "{stamp}: {mean}, and {value} of rrdtool"
        );
    }
    // Stored fields and fields of this machine are on one grid.
    let both = shown.series("@web1/cpu-0/cpu-idle.rrd:value,cpu.user", from, thru);
    assert_eq!(both["series"].as_array().map(Vec::len), Some(2), "{both}");
    // A long range is consolidated, with its peaks.
    let path = format!(
        "/kymo/v1/series?fields=@web1/cpu-0/cpu-idle.rrd:value&from={BIRTH}&thru={}&points=20",
        BIRTH + ROWS * 10
    );
    let long = get(&shown.address, &path, "");
    let peaks = long["series"][0]["max"].as_array().expect("peaks");
    assert!(
        peaks.len() <= 20 && peaks.iter().any(|peak| peak.as_f64() == Some(49.0)),
        "{long}"
    );
}

#[test]
fn the_page_goes_on_when_the_keeper_is_killed() {
    let shown = Shown::start("stored-kill", "[store]\nfiles = \"never\"\n");
    shown.fill();
    let names = stored(&shown.address, "");
    assert_eq!(names.len(), 2);
    let keeper = shown.served.child("keeper").expect("a keeper");
    kill("-KILL", keeper);
    shown.served.next_child("keeper", keeper);
    let fields = "@web1/cpu-0/cpu-idle.rrd:value";
    let means = eventually(|| {
        let path = format!(
            "/kymo/v1/series?fields={fields}&from={BIRTH}&thru={}",
            BIRTH + 1000
        );
        let (status, body) = ask(&shown.address, "GET", &path, "", "")?;
        (status == 200 && body.contains(fields)).then_some(body)
    });
    assert!(means.is_some(), "no answer after the keeper's end");
}

/// Files that the store does not know are listed, too.
#[test]
fn files_that_the_store_does_not_know_are_listed() {
    let shown = Shown::start("stored-files", "");
    let folder = shown.dir.join("rrd/old");
    fs::create_dir_all(&folder).expect("a folder");
    let create = [
        "create",
        "a.rrd",
        "-b",
        "1700000000",
        "-s",
        "60",
        "DS:x:GAUGE:120:U:U",
        "RRA:LAST:0:1:50",
    ];
    let made = rrdtool(&folder, &create);
    assert!(made.status.success());
    let updated = rrdtool(
        &folder,
        &["update", "a.rrd", "1700000060:5", "1700000120:7"],
    );
    assert!(updated.status.success());
    fs::write(folder.join("torn.rrd"), "RRD").expect("a file");
    let answer = get(&shown.address, "/kymo/v1/stored", "");
    assert_eq!(answer["series"][0][0], "old/a.rrd", "{answer}");
    assert_eq!(answer["series"][0][2], 1_700_000_120u64, "{answer}");
    assert_eq!(answer["definitions"][0]["columns"][0]["name"], "x");
    assert_eq!(answer["series"][1][0], "old/torn.rrd", "{answer}");
    // The file has no AVERAGE, so its LAST is shown.
    let rows = shown.series("@old/a.rrd:x,@old/torn.rrd:x", 1_700_000_000, 1_700_000_120);
    let means = &rows["series"][0]["avg"];
    assert!(
        means
            .as_array()
            .is_some_and(|means| means.iter().any(|mean| mean.as_f64() == Some(5.0))),
        "{rows}"
    );
}

/// The socket is its owner's. A client that breaks the protocol gets the reason and is cut off; others go on.
#[test]
fn strange_questions_harm_no_other() {
    let shown = Shown::start("stored-strange", "[store]\nfiles = \"never\"\n");
    shown.fill();
    let path = shown.dir.join("keeper.sock");
    let mode = fs::metadata(&path).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    for (sent, said) in [
        (&b"\x02\0\0\0\x09\x01"[..], "is of another version of kymo"),
        (b"\x02\0\0\0\x04\x63", "is of an unknown kind"),
        (b"\x01\0\0\0\x04", "has no kind"),
        (b"\xff\xff\xff\xff", "is too long"),
        (b"\x04\0\0\0\x04\x01\xff\xff", "is cut short"),
        (b"\x05\0\0\0\x04\x01\0\0x", "is longer than what it says"),
    ] {
        let mut client = UnixStream::connect(&path).expect("a client");
        client.write_all(sent).expect("sent");
        let mut answer = Vec::new();
        client
            .read_to_end(&mut answer)
            .expect("an answer and the end");
        let text = String::from_utf8_lossy(&answer);
        assert!(
            text.ends_with(&format!("cannot answer: the request {said}")),
            "{text:?}"
        );
    }
    // A client that stops within a request, or does not read the answer, does not delay others.
    let silent: Vec<UnixStream> = (0..8)
        .map(|_| {
            let mut client = UnixStream::connect(&path).expect("a client");
            client.write_all(b"\x10\0\0\0\x04").expect("sent");
            client
        })
        .collect();
    assert_eq!(
        stored(&shown.address, "?match=host=sw1"),
        ["sw1/port-id1.rrd"]
    );
    drop(silent);
    // No request may exhaust the hub's memory.
    let fields = vec!["@sw1/port-id1.rrd:IN"; 512].join(",");
    let path = format!("/kymo/v1/series?fields={fields}&from=-10000&points=11000");
    let (status, said) = ask(&shown.address, "GET", &path, "", "").expect("an answer");
    assert!(
        status == 422 && said.contains("ask for fewer fields"),
        "{status} {said}"
    );
    // Names that lead out of the folder are no series.
    let rows = shown.series("@../../../etc/passwd:x", BIRTH, BIRTH + 100);
    assert_eq!(rows["series"].as_array().map(Vec::len), Some(0), "{rows}");
}

/// Stored series on the terminal.
#[test]
fn the_command_line_lists_and_prints_them() {
    let shown = Shown::start("stored-words", "");
    shown.fill();
    let data = shown.dir.to_string_lossy().into_owned();
    let run = |words: &[&str]| {
        let mut command = Command::new(kymo());
        command.arg("series").args(words).args(["--data", &data]);
        let output = command.env("TZ", "UTC").output().expect("kymo runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (code, listed, _) = run(&["ls", "host=sw*"]);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!((code, lines.len()), (Some(0), 2), "{listed}");
    assert!(
        lines[1].starts_with("sw1/port-id1.rrd") && lines[1].ends_with("IN:DERIVE OUT:DERIVE"),
        "{listed}"
    );
    let (code, printed, _) = run(&[
        "show",
        "web1/cpu-0/cpu-idle.rrd",
        "--from",
        "1700000100",
        "--thru",
        "1700000120",
    ]);
    assert_eq!(code, Some(0));
    assert!(
        printed.contains("# web1/cpu-0/cpu-idle.rrd, 10 s a row"),
        "{printed}"
    );
    assert!(printed.contains("2023-11-14T22:15:10+00:00"), "{printed}");
    assert!(
        printed
            .lines()
            .any(|line| line.starts_with("2023-11-14T22:15:10") && line.ends_with(" 11.000000")),
        "{printed}"
    );
    // A name in the output of ls is a matcher.
    for name in ["sw1/port-id1.rrd", "web1/cpu-0/cpu-idle.rrd"] {
        let (code, printed, _) = run(&["ls", name]);
        assert_eq!((code, printed.lines().count()), (Some(0), 2), "{printed}");
    }
    for (words, code, said) in [
        (&["ls", "host=none"][..], 1, "no series fits"),
        (&["ls", "1st=red"], 2, "\"1st\" is no label"),
        (&["ls", "color=red"], 2, "no series has the label color"),
        (&["ls", "hots!=web1"], 2, "no series has the label hots"),
        (&["show", "no.rrd"], 1, "No such file or directory"),
        (
            &["show", "a.rrd", "--from", "never"],
            2,
            "cannot use --from \"never\"",
        ),
        (
            &["show", "a.rrd", "--from", "now", "--thru", "-1h"],
            2,
            "it is not before --thru",
        ),
    ] {
        let (found, out, err) = run(words);
        assert_eq!((found, out.as_str()), (Some(code), ""), "{err}");
        assert!(err.starts_with("kymo: ") && err.contains(said), "{err}");
    }
    drop(shown);
    let gone = Command::new(kymo())
        .args(["series", "ls", "--data", &data])
        .output()
        .expect("kymo runs");
    let err = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert_eq!(gone.status.code(), Some(2), "{err}");
    assert!(err.starts_with("kymo: cannot ask the keeper at "), "{err}");
    assert!(
        err.contains("no kymo serve runs with this folder; --data DIR"),
        "{err}"
    );
}

/// Tools for the store of a running `kymo serve` read another folder, needed its lock, or ended with 1.
#[test]
fn tools_read_the_store_of_a_serve_that_runs() {
    let shown = Shown::start("stored-tools", "");
    shown.fill();
    let data = shown.dir.to_string_lossy().into_owned();
    let target = shown.scratch.text("exported");
    // Names of this machine's history are label sets, which have no files.
    let has_history = || {
        let mut command = Command::new(kymo());
        command.args(["series", "ls", "job=kymo", "--data", &data]);
        let listed = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        listed.expect("kymo runs").success().then_some(())
    };
    eventually(has_history).expect("a history");
    for words in [
        &["status", &data][..],
        &["verify", &data],
        &["rrd", "export", "--all", "--store", &data, "-o", &target],
    ] {
        let output = Command::new(kymo())
            .args(words)
            .output()
            .expect("kymo runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
    }
    // A relative path was no base for names, and made the store seem damaged.
    let above = shown.dir.parent().expect("a folder above");
    let last = shown.dir.file_name().expect("a name");
    let status = Command::new(kymo())
        .current_dir(above)
        .arg("status")
        .arg(last)
        .output()
        .expect("kymo runs");
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(
        status.contains("bytes of journal") && !status.contains('#'),
        "{status}"
    );
    for name in ["sw1/port-id1.rrd", "web1/cpu-0/cpu-idle.rrd"] {
        let file = shown.scratch.path("exported").join(name);
        let rows = fetched(&shown.dir, &file, 0, (BIRTH + 100, BIRTH + 400));
        assert!(rows.len() > 20 && rows.iter().all(|(_, cell)| cell.is_finite()));
    }
}

/// An administrator removes a range of values from the store and from the file; values beside it stay.
#[test]
fn the_administrator_removes_a_range_of_values() {
    let shown = Shown::start("stored-erase", "");
    shown.fill();
    let (data, name) = (
        shown.dir.to_string_lossy().into_owned(),
        "web1/cpu-0/cpu-idle.rrd",
    );
    let flushed = shown.client().text(&format!("FLUSH {name}"));
    assert!(flushed.starts_with("0 "), "{flushed}");
    let file = shown.dir.join("rrd").join(name);
    let all = (BIRTH + 3000, BIRTH + 3600);
    let before = fetched(&shown.dir, &file, 0, all);
    let (from, thru) = (BIRTH + 3101, BIRTH + 3199);
    let (from_text, thru_text) = (from.to_string(), thru.to_string());
    let output = Command::new(kymo())
        .args([
            "series",
            "rm",
            &format!("name={name}"),
            "--from",
            &from_text,
        ])
        .args(["--thru", &thru_text, "--yes", "--data", &data])
        .output()
        .expect("kymo runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("removed the values of 1 series from 2023"),
        "{said}"
    );
    let overlaps = |end: u64| from <= end && end - 10 < thru;
    let wanted: Vec<(u64, bool)> = before
        .iter()
        .map(|(end, cell)| (*end, cell.is_finite() && !overlaps(*end)))
        .collect();
    let known = |rows: Vec<(u64, f64)>| {
        let known = rows.into_iter().map(|(end, cell)| (end, cell.is_finite()));
        known.collect::<Vec<_>>()
    };
    assert_eq!(known(fetched(&shown.dir, &file, 0, all)), wanted);
    let told = shown
        .client()
        .text(&format!("FETCH {name} AVERAGE {} {}", all.0, all.1));
    assert_eq!(
        told.matches("nan").count(),
        wanted.iter().filter(|(_, known)| !known).count(),
        "{told}"
    );
    let kept = shown
        .client()
        .text(&format!("UPDATE {name} {}:1", BIRTH + ROWS * 10 + 10));
    assert!(kept.starts_with("0 "), "{kept}");
}

/// An administrator removes exactly the chosen series; a later value creates a new one.
#[test]
fn the_administrator_removes_series() {
    let shown = Shown::start("stored-remove", "");
    shown.fill();
    let data = shown.dir.to_string_lossy().into_owned();
    let run = |words: &[&str]| {
        let mut command = Command::new(kymo());
        command.arg("series").args(words).args(["--data", &data]);
        let output = command.stdin(Stdio::null()).output().expect("kymo runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (said, warned) = (text(&output.stdout), text(&output.stderr));
        (output.status.code(), said, warned)
    };
    let flushed = shown.client().text("FLUSH web1/cpu-0/cpu-idle.rrd");
    assert!(flushed.starts_with("0 "), "{flushed}");
    let file = shown.dir.join("rrd/web1/cpu-0/cpu-idle.rrd");
    assert!(file.exists());

    assert_eq!(run(&["rm"]).0, Some(2));
    assert_eq!(run(&["rm", "host=none", "--yes"]).0, Some(1));
    let (code, listed, warned) = run(&["rm", "host=web1"]);
    assert_eq!(
        (code, &*listed),
        (Some(2), "web1/cpu-0/cpu-idle.rrd\n"),
        "{warned}"
    );
    assert!(warned.contains("use --yes"), "{warned}");
    assert!(file.exists());

    // The socket for requests refuses a removal, and the administrator's socket is its owner's alone.
    let admin = shown.dir.join("keeper-admin.sock");
    let mode = fs::metadata(&admin).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut client = UnixStream::connect(shown.dir.join("keeper.sock")).expect("a client");
    let question = KeeperRequest::Remove(vec![b"sw1/port-id1.rrd".to_vec()]).frame();
    client.write_all(&question).expect("sent");
    let mut answer = [0; 64];
    let count = client.read(&mut answer).expect("an answer");
    assert_eq!(
        Answer::read(&answer[4..count]),
        Ok(Answer::Refused(
            "cannot remove sw1/port-id1.rrd: this socket only reads".into()
        ))
    );

    let (code, listed, warned) = run(&["rm", "host=web1", "--yes"]);
    assert_eq!(
        (code, &*listed),
        (Some(0), "web1/cpu-0/cpu-idle.rrd\n"),
        "{warned}"
    );
    assert!(warned.contains("removed 1 series"), "{warned}");
    assert!(!file.exists());
    assert_eq!(stored(&shown.address, ""), ["sw1/port-id1.rrd"]);
    let refused = shown.client().text("UPDATE web1/cpu-0/cpu-idle.rrd N:1");
    assert!(refused.starts_with("-1 No such file"), "{refused}");
    // A new series of that name has none of the removed values.
    let made = format!(
        "CREATE web1/cpu-0/cpu-idle.rrd -b {BIRTH} -s 10 DS:value:GAUGE:20:U:U RRA:AVERAGE:0.5:1:800"
    );
    let made = shown.client().text(&made);
    assert!(made.starts_with("0 "), "{made}");
    let last = shown.client().text("LAST web1/cpu-0/cpu-idle.rrd");
    assert!(last.starts_with(&format!("0 {BIRTH}")), "{last}");
}

/// Stored series as a picture: by matchers, by ids, and beside this machine's recording.
#[test]
fn stored_series_are_drawn() {
    let shown = Shown::start("stored-graph", "");
    shown.fill();
    let data = shown.dir.to_string_lossy().into_owned();
    let out = shown.dir.join("x.svg").to_string_lossy().into_owned();
    let range = ["--from", "20231114:22:20", "--thru", "20231114:23:50"];
    let run = |words: &[&str]| {
        let mut command = Command::new(kymo());
        command.arg("graph").args(words).args(["-o", &out]);
        let output = command.env("TZ", "UTC").output().expect("kymo runs");
        let warned = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), warned)
    };
    let drawn = |words: &[&str]| {
        let words = [words, &range, &["--data", &data]].concat();
        assert_eq!(run(&words), (Some(0), String::new()), "{words:?}");
        fs::read_to_string(&out).expect("a picture")
    };
    let both = drawn(&["--series", "host=sw1"]);
    for word in ["sw1", "IN", "OUT", "max"] {
        assert!(both.contains(&format!(">{word}</text>")), "{word}: {both}");
    }
    assert!(!both.contains("cpu-idle"), "{both}");
    let one = drawn(&[
        "-s",
        "@web1/cpu-0/cpu-idle.rrd:value",
        "--series",
        "host=sw*",
    ]);
    assert!(one.contains("cpu-idle") && one.contains("OUT"), "{one}");
    // Together with graphs of this machine, over the range of its recording.
    let beside = [
        "--series", "host=sw1", "-s", "cpu.user", &data, "--data", &data,
    ];
    let recorded = eventually(|| (run(&beside).0 == Some(0)).then_some(()));
    recorded.expect("a recording");
    let text = fs::read_to_string(&out).expect("a picture");
    assert!(text.contains("cpu.user"), "{text}");

    for (words, code, warned) in [
        (&["--series", "host=none"][..], 1, "no series fits"),
        (&["-s", "@none.rrd:x"], 2, "cannot read none.rrd"),
        (
            &["-s", "@sw1/port-id1.rrd:UP"],
            2,
            "it has no such column, only IN, OUT",
        ),
        (&["-s", "@sw1"], 2, "a stored field is @NAME:COLUMN"),
        (
            &["-s", "c", "--series", "host=sw1"],
            2,
            "<PATH>... is missing",
        ),
    ] {
        let (found, said) = run(&[words, &["--data", &data]].concat());
        assert_eq!(found, Some(code), "{words:?}: {said}");
        assert!(said.contains(warned), "{words:?}: {said}");
    }
    let (code, said) = run(&["--series", "host=sw1", "--data", "/no/such"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("cannot ask the keeper at /no/such/keeper.sock"),
        "{said}"
    );
}

/// Without `--data`, commands find a running service's folder elsewhere by the link in the runtime folder.
#[test]
fn commands_find_a_serve_that_runs() {
    let scratch = Scratch::new("stored-found");
    let (runtime, state) = (scratch.text("runtime"), scratch.text("state"));
    let (data, file) = (scratch.text("data"), scratch.text("kymo.toml"));
    fs::write(&file, "user = \"\"\n[listen]\ncollectd = []\n").expect("a configuration");
    let words = [
        "--config",
        &file,
        "--data",
        &data,
        "--listen",
        "127.0.0.1:0",
    ];
    let own = format!("RUNTIME_DIRECTORY={runtime}");
    let shell = "umask 077 && exec \"$@\"";
    let program = kymo().display().to_string();
    let mut command = vec![&own[..], "sh", "-c", shell, "sh", &program, "serve"];
    command.extend(words);
    let mut served = Served::start_as("env", &command);
    served.address();
    served.has_said("rrdcached's protocol on");
    let mode = fs::metadata(&runtime)
        .expect("a folder")
        .permissions()
        .mode()
        & 0o777;
    assert_eq!(mode, 0o755, "other users' programs publish below it");
    let mut client = Client::unix(&Path::new(&data).join("rrdcached.sock")).expect("a client");
    client.text("CREATE a.rrd -s 10 DS:x:GAUGE:20:U:U RRA:LAST:0.5:1:5");
    let run = |words: &[&str]| {
        let output = Command::new(kymo())
            .args(words)
            .env("RUNTIME_DIRECTORY", &runtime)
            .env("STATE_DIRECTORY", &state)
            .output()
            .expect("kymo runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a text");
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let listed = run(&["series", "ls"]);
    assert!(
        listed.0 == Some(0) && listed.1.contains("a.rrd"),
        "{listed:?}"
    );
    let (code, _, said) = run(&["programs", "--once"]);
    assert_eq!(
        (code, said.as_str()),
        (Some(1), "kymo: no program publishes anything\n")
    );
    let (code, status, _) = run(&["status"]);
    assert!(
        code == Some(0) && status.contains("series without files"),
        "{status}"
    );
    let (code, checked, _) = run(&["verify"]);
    assert!(
        code == Some(0) && checked.starts_with("no damage: "),
        "{checked}"
    );
    drop(served);
    let (_, _, said) = run(&["series", "ls"]);
    assert!(
        said.contains(&format!("{data}: ")),
        "the link leads nowhere: {said}"
    );
    fs::remove_file(Path::new(&runtime).join("serve")).expect("a link");
    let want = format!(
        "kymo: cannot find a kymo serve that runs: {state}: there is no such folder; {runtime}/serve: there is no such link; \
         /var/lib/kymo: "
    );
    for words in [
        &["series", "ls"][..],
        &["programs", "--once"],
        &["series", "rm", "a.rrd"],
    ] {
        let (code, _, said) = run(words);
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(said.starts_with(&want), "{words:?}: {said}");
        assert!(said.ends_with(". Name its folder: --data DIR\n"), "{said}");
    }
    let (code, _, said) = run(&["status"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.starts_with(&want) && said.ends_with(". Name its folder: DIR\n"),
        "{said}"
    );
}
