//! docs/collectl.md beside collectl itself: each switch of collectl has a row, and each row is true. If
//! a row says same or better, its example is run where it plays a file; if it says no, kymo refuses with
//! one line and exit code 2.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kymo_tests::run;

/// A row of a table: the switches, the verdict, an example, and the remark.
struct Row {
    switches: Vec<String>,
    verdict: String,
    example: String,
    why: String,
}

/// All rows of the document.
fn rows() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/collectl.md");
    let text = fs::read_to_string(path).expect("docs/collectl.md");
    let cells = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let line = line.trim_matches('|').replace("\\|", "\u{0}");
            let cells: Vec<String> = line
                .split('|')
                .map(|cell| cell.trim().replace('\u{0}', "|"))
                .collect();
            cells
        });
    cells
        .map(|cells| {
            let [switches, verdict, example, why] = &cells[..] else {
                panic!("a row of {} cells: {cells:?}", cells.len());
            };
            let of = |text: &str| text.trim_matches('`').to_string();
            Row {
                switches: switches.split(", ").map(of).collect(),
                verdict: verdict.clone(),
                example: of(example),
                why: why.clone(),
            }
        })
        .collect()
}

/// The switches that collectl's source passes to its parser of command lines.
fn collectls() -> BTreeSet<String> {
    let source = fs::read("/usr/bin/collectl").expect("collectl, which `make test` installs");
    let source = String::from_utf8_lossy(&source).into_owned();
    let mut switches = BTreeSet::new();
    for block in source.split("GetOptions(").skip(1) {
        let block = block.split(") or error").next().unwrap_or_default();
        for line in block.lines().take(200) {
            let name = line.trim().strip_prefix('\'').and_then(|rest| {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric())?;
                rest[end..].contains("=>").then(|| &rest[..end])
            });
            let Some(name) = name else { continue };
            switches.insert(match name.len() {
                1 => format!("-{name}"),
                _ => format!("--{name}"),
            });
        }
    }
    switches
}

#[test]
fn each_switch_of_collectl_has_a_row() {
    let theirs = collectls();
    assert!(theirs.len() > 100, "{theirs:?}");
    let rows = rows();
    let ours: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| row.switches.iter().map(String::as_str))
        .collect();
    let missing: Vec<&String> = theirs
        .iter()
        .filter(|switch| !ours.contains(switch.as_str()))
        .collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
}

/// No row is put off to later: each has an example, and a reason unless kymo does the same as collectl.
#[test]
fn nothing_is_put_off() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/collectl.md");
    let text = fs::read_to_string(path).expect("docs/collectl.md");
    let lines = text.lines();
    let put_off: Vec<&str> = lines.filter(|line| line.contains("not yet")).collect();
    assert!(put_off.is_empty(), "{put_off:#?}");
    for row in rows() {
        assert!(!row.example.is_empty(), "no example of {:?}", row.switches);
        assert!(
            row.verdict == "same" || !row.why.is_empty(),
            "no word on {:?}",
            row.switches
        );
    }
}

#[test]
fn each_row_is_true() {
    let raw = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/golden/vm-20261121-215607.raw.gz"
    );
    let mut wrong = Vec::new();
    for row in rows() {
        let example = row.example.replace("FILE", raw);
        let words: Vec<&str> = example.split(' ').collect();
        match row.verdict.as_str() {
            "same" | "better"
                if !row.example.starts_with("-p FILE") || row.example.contains("DIR") => {}
            "same" | "better" => {
                let output = run(&words);
                if !output.status.success() || output.stdout.is_empty() {
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    wrong.push(format!("{}: {said}", row.example));
                }
            }
            "no" => {
                // If kymo accepted the switch, it would run for ever.
                let mut words = words.clone();
                words.push("-c1");
                let output = run(&words);
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let clear = said.starts_with("kymo: cannot ") && said.lines().count() == 1;
                if output.status.code() != Some(2) || !clear || row.why.is_empty() {
                    wrong.push(format!("{} is refused: {said}", row.example));
                }
            }
            other => wrong.push(format!("{:?}: no verdict {other:?}", row.switches)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
