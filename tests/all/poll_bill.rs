//! `kymo poll --bill`: the numbers are those that a few lines here make of the rows that rrdtool prints.

use std::fs;
use std::path::Path;
use std::process::Command;

use kymo_tests::rrdtool::rrdtool;
use kymo_tests::run;
use kymo_tests::served::eventually;
use serde_json::Value;

use crate::import::Place;
use crate::import_mrtg::now_s;

const DAY_S: i64 = 86_400;
/// Days of rows: a period that is over began no more than 62 days ago.
const DAYS: i64 = 70;

/// Two counters, the second without values for two days of each month.
fn make(folder: &Path, name: &str, has_gaps: bool) {
    let now = now_s() / 300 * 300;
    let begin = now - DAYS * DAY_S;
    let words = [
        "DS:ds0:COUNTER:600:0:125000000",
        "DS:ds1:COUNTER:600:0:125000000",
        "RRA:AVERAGE:0.5:1:21000",
        "RRA:AVERAGE:0.5:6:800",
        "RRA:AVERAGE:0.5:24:800",
        "RRA:AVERAGE:0.5:288:800",
        "RRA:MAX:0.5:1:21000",
        "RRA:MAX:0.5:6:800",
        "RRA:MAX:0.5:24:800",
        "RRA:MAX:0.5:288:800",
    ];
    let start = (begin - 10).to_string();
    let create = ["create", name, "--step", "300", "--start", &start];
    let output = rrdtool(folder, &[&create[..], &words[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let (mut one, mut two) = (0_i64, 7_i64);
    let mut updates = Vec::new();
    for at in 0..DAYS * 288 {
        let busy = (at % 288 - 144).abs();
        one += 300 * (1000 * busy + at * 7919 % 5003);
        two += 300 * (500 * busy + at * 104_729 % 90_001);
        let is_gap = has_gaps && (at / 288) % 30 >= 28;
        if !is_gap {
            updates.push(format!("{}:{one}:{two}", begin + 300 * at));
        }
    }
    for some in updates.chunks(4000) {
        let some = some.iter().map(String::as_str);
        let words: Vec<&str> = ["update", name].into_iter().chain(some).collect();
        let output = rrdtool(folder, &words);
        assert!(output.status.success(), "{output:?}");
    }
}

/// Known rates of a file within a period, in bits a second; `None`: not known.
fn rates(folder: &Path, name: &str, (from, thru): (i64, i64)) -> Vec<Option<[f64; 2]>> {
    let (from, thru) = (from.to_string(), thru.to_string());
    let words = [
        "fetch", name, "AVERAGE", "-r", "300", "-s", &from, "-e", &thru,
    ];
    let output = rrdtool(folder, &words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = text.lines().filter_map(|line| {
        let (end, values) = line.split_once(": ")?;
        let end: i64 = end.parse().ok()?;
        let mut values = values
            .split(' ')
            .map(|value| value.parse::<f64>().expect("a rate"));
        let row = [values.next()? * 8.0, values.next()? * 8.0];
        let is_known = row.iter().all(|rate| !rate.is_nan());
        (end <= thru.parse().expect("a time")).then_some(is_known.then_some(row))
    });
    rows.collect()
}

fn percentile(mut rates: Vec<f64>) -> f64 {
    rates.sort_unstable_by(f64::total_cmp);
    rates.truncate(rates.len() - rates.len() / 20);
    *rates.last().expect("rates")
}

/// Compares a target of the bill with its rows.
fn judge(target: &Value, rows: &[Option<[f64; 2]>]) {
    let known: Vec<[f64; 2]> = rows.iter().copied().flatten().collect();
    let of = |rate: fn(&[f64; 2]) -> f64| known.iter().map(rate).collect::<Vec<f64>>();
    let expected = [
        ("in", percentile(of(|row| row[0]))),
        ("out", percentile(of(|row| row[1]))),
        ("larger", percentile(of(|row| row[0].max(row[1])))),
        ("sum", percentile(of(|row| row[0] + row[1]))),
        (
            "amount_in",
            of(|row| row[0]).iter().sum::<f64>() * 300.0 / 8.0,
        ),
        (
            "amount_out",
            of(|row| row[1]).iter().sum::<f64>() * 300.0 / 8.0,
        ),
    ];
    for (name, expected) in expected {
        let value = target[name].as_f64().expect("a number");
        // rrdtool prints eleven digits.
        assert!(
            (value / expected - 1.0).abs() < 1e-9,
            "{name}: {value} {expected} {target}"
        );
    }
    assert_eq!(target["rows"], rows.len());
    assert_eq!(target["rows_known"], known.len());
    assert_eq!(target["row_s"], 300);
    let above = known.iter().filter(|row| row[0].max(row[1]) > 8e5).count();
    assert_eq!(target["above_s"], 300 * above);
    assert!(above > 100);
}

#[test]
fn a_bill_is_made_of_the_rows() {
    let mut place = Place::new("poll-bill");
    let (folder, file) = (place.scratch.path("www"), place.scratch.text("core.cfg"));
    fs::create_dir_all(&folder).expect("a folder");
    make(&folder, "one.rrd", false);
    make(&folder, "two.rrd", true);
    let mut text = format!("WorkDir: {}\nLogFormat: rrdtool\n", folder.display());
    for name in ["one", "two"] {
        text += &format!(
            "Target[{name}]: `false`\nTitle[{name}]: Port {name}\nMaxBytes[{name}]: 125000000\nOptions[{name}]: bits\nRRDRowCount[{name}]: 21000\n"
        );
    }
    fs::write(&file, text).expect("a configuration");
    let (code, text, said) = place.import(&["--mrtg", &file]);
    assert_eq!((code, said), (0, Vec::new()), "{text}");
    // The poller writes elsewhere, and never has a value.
    fs::create_dir(place.scratch.path("poll")).expect("a folder");
    place.restart_with(&format!(
        "[poll]\nmrtg = [\"{file}\"]\nlog_dir = \"{}\"\n",
        place.scratch.text("poll")
    ));
    let data = place.scratch.text("data");
    let bill = |words: &[&str]| {
        let output = run(&[&["poll", "--bill", "--data", &data], words].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text, said)
    };
    eventually(|| (bill(&[]).0 == Some(0)).then_some(())).expect("a bill");
    let json = |words: &[&str]| -> Value {
        let (code, text, said) = bill(&[words, &["--format", "json", "--above", "0.8M"]].concat());
        assert_eq!(code, Some(0), "{said}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    for words in [&[][..], &["--day", "15"], &["--day", "28"]] {
        let all = json(words);
        let range = ["from", "thru"].map(|name| all[name].as_i64().expect("a time"));
        let of = |name: &str| rates(&folder, name, (range[0], range[1]));
        let (one, two) = (of("one.rrd"), of("two.rrd"));
        let targets = all["targets"].as_array().expect("targets");
        let names = targets
            .iter()
            .map(|target| target["target"].as_str().expect("a name"));
        assert!(names.eq(["core/one", "core/two"]));
        judge(&targets[0], &one);
        judge(&targets[1], &two);
        let sum = one.iter().zip(&two).map(|(one, two)| {
            let (one, two) = ((*one)?, (*two)?);
            Some([one[0] + two[0], one[1] + two[1]])
        });
        let sum: Vec<_> = sum.collect();
        let together = json(&[words, &["--together", "uplink"]].concat());
        assert_eq!(together["targets"][0]["target"], "uplink");
        judge(&together["targets"][0], &sum);
    }
    // A month that lacks rows says so.
    let (_, text, said) = bill(&["core/t*"]);
    assert!(
        text.contains("core/two") && !text.contains("core/one"),
        "{text}"
    );
    assert_eq!(
        said,
        "kymo: rows of this period are missing in 1 of 1 lines of the bill\n"
    );
    let (code, page, _) = bill(&["--format", "html", "one"]);
    assert_eq!(code, Some(0));
    assert!(
        page.contains("<td>core/one<small>Port one</small></td>"),
        "{page}"
    );
    for (words, why) in [
        (&["nobody"][..], "cannot find target nobody in "),
        (
            &["--month", "2200-01"],
            "cannot bill 2200-01: it has not begun",
        ),
        (&["--day", "31"], "cannot use --day"),
        (&["--above", "x"], "cannot use --above \"x\""),
    ] {
        let (code, _, said) = bill(words);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
    let help = Command::new(kymo_tests::kymo())
        .args(["poll", "--bill", "--help"])
        .output();
    let help = help.expect("kymo");
    assert!(help.status.success() && help.stdout.starts_with(b"The 95th percentile"));
}
