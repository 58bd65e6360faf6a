//! Figures of the documents are those of bench/RESULTS.md, messages those of the sources, keys those of the program; files that
//! they name are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kymo_tests::stdout_of;
use regex_lite::Regex;

use super::{Document, documents, prose, root};

/// Rows of tables, each as its cells.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = prose(text).filter_map(|(_, line)| line.strip_prefix("| ")?.strip_suffix(" |"));
    lines
        .map(|line| line.split(" | ").map(str::trim).collect())
        .collect()
}

/// Texts between backticks.
fn spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn numbers(text: &str) -> Vec<&str> {
    let number = Regex::new(r"[0-9]+([./][0-9]+)*").expect("a pattern");
    number.find_iter(text).map(|found| found.as_str()).collect()
}

/// Figures of a document: the row of RESULTS.md that its last cell names, and the cells between that and the first one.
fn figures(text: &str) -> Vec<(&str, String)> {
    let rows = rows(text).into_iter();
    rows.filter_map(|cells| {
        let (last, others) = cells.split_last()?;
        let row = *spans(last).first()?;
        let figures = others.get(1..)?.join(" ");
        (!numbers(&figures).is_empty()).then_some((row, figures))
    })
    .collect()
}

/// True if one line of a row has all numbers of the figures.
fn is_measured(results: &str, row: &str, figures: &str) -> bool {
    let begin = format!("| {row} |");
    let mut lines = results.lines().filter(|line| line.starts_with(&begin));
    lines.any(|line| {
        let measured: BTreeSet<&str> = numbers(line).into_iter().collect();
        let figures = numbers(figures);
        figures.iter().all(|figure| measured.contains(figure))
    })
}

#[test]
fn figures_are_those_of_the_results() {
    let results = Document::read(Path::new("bench/RESULTS.md")).text;
    for (path, least) in [
        ("README.md", 7),
        ("docs/operate/sizes.md", 20),
        ("docs/guides/from-collectl.md", 5),
    ] {
        let text = Document::read(Path::new(path)).text;
        let figures = figures(&text);
        assert!(
            figures.len() >= least,
            "only {} figures in {path}",
            figures.len()
        );
        for (row, figures) in figures {
            assert!(
                is_measured(&results, row, &figures),
                "{path}: no line of `{row}` in bench/RESULTS.md has all of: {figures}"
            );
        }
    }
    assert!(is_measured("| a | 1.5 s; 1/3 |", "a", "1.5 s, 1/3"));
    assert!(!is_measured("| a | 1.5 s; 1/3 |", "a", "1.6 s"));
    assert!(!is_measured("| a | 1.5 s |\n| a | 2 s |", "a", "1.5 2"));
}

/// Sources of the program, with texts that go over several lines in one.
fn sources() -> String {
    let mut texts = String::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts += &fs::read_to_string(&path).expect("UTF-8");
            }
        }
    }
    let pieces = texts.split("\\\n").map(str::trim_start);
    pieces.collect::<String>().replace("\\\"", "\"")
}

#[test]
fn named_files_are_there() {
    let folder = "tests|crates|web-tests|bench|fuzz|dist|docs|include|postgres";
    let named = Regex::new(&format!(r"^({folder})/[A-Za-z0-9_./-]+$")).expect("a pattern");
    // Forms, and files that a build makes.
    let is_made = |path: &str| path.contains("NAME") || path.contains("node_modules");
    let (mut wrong, mut count) = (Vec::new(), 0);
    // The journal's are of their day.
    let documents = documents().into_iter();
    for document in documents.filter(|document| !document.is_of(&["docs/journal"])) {
        for (line, text) in prose(&document.text) {
            let paths = spans(text).into_iter().filter(|span| named.is_match(span));
            for path in paths.filter(|path| !is_made(path)) {
                count += 1;
                if !root().join(path).exists() {
                    let place = document.path.display();
                    wrong.push(format!("{place}:{}: there is no {path}", line + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "only {count} files were found");
}

/// A part between two `...` that is shorter may be anywhere.
const PART_MIN: usize = 6;

#[test]
fn messages_are_those_of_the_sources() {
    let text = Document::read(Path::new("docs/operate/troubleshooting.md")).text;
    let sources = sources();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for cells in rows(&text) {
        for message in spans(cells[0]) {
            count += 1;
            let parts = message.split("...").filter(|part| part.len() >= PART_MIN);
            let missing = parts.filter(|part| !sources.contains(part));
            wrong.extend(missing.map(|part| format!("`{message}`: no source says `{part}`")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 50, "only {count} messages were found");
}

/// Tables of a configuration with their keys: `[table] key`, and `(top) key` before the first table.
fn keys_of_the_program() -> BTreeSet<String> {
    let table = Regex::new(r"^#?(\[{1,2}[a-z.]+\]{1,2})$").expect("a pattern");
    let key = Regex::new(r"^#?([a-z0-9_]+) = ").expect("a pattern");
    let mut keys = BTreeSet::new();
    let mut place = "(top)".to_string();
    for line in stdout_of(&["config"]).lines() {
        if let Some(found) = table.captures(line) {
            place = found[1].to_string();
        } else if let Some(found) = key.captures(line) {
            keys.insert(format!("{place} {}", &found[1]));
        }
    }
    // The names of examples.
    let named = keys.iter().map(|key| {
        let key = key.replace("[users.web]", "[users.NAME]");
        key.replace("[postgres.servers.main]", "[postgres.servers.NAME]")
    });
    named.collect()
}

#[test]
fn keys_are_those_of_the_program() {
    let text = Document::read(Path::new("docs/reference/kymo-toml.md")).text;
    let rows = rows(&text).into_iter().filter(|cells| cells.len() == 3);
    let keys = rows.flat_map(|cells| {
        let place = cells[0].trim_matches('`').to_string();
        let keys = spans(cells[1]).into_iter();
        keys.map(move |key| format!("{place} {key}"))
    });
    let documented: BTreeSet<String> = keys.collect();
    let known = keys_of_the_program();
    let missing: Vec<_> = known.difference(&documented).collect();
    let wrong: Vec<_> = documented.difference(&known).collect();
    assert!(
        missing.is_empty(),
        "not in docs/reference/kymo-toml.md: {missing:?}"
    );
    assert!(wrong.is_empty(), "kymo config has no {wrong:?}");
    assert!(known.len() > 40, "only {} keys were found", known.len());
}

/// Paths between `begin` and the next byte that no path has.
fn paths_behind(text: &str, begin: &str) -> BTreeSet<String> {
    let path = Regex::new(&format!("{begin}(/[a-z0-9_./]+)")).expect("a pattern");
    let found = path.captures_iter(text);
    found
        .map(|found| found[1].trim_end_matches('/').to_string())
        .collect()
}

#[test]
fn the_api_has_the_documented_paths() {
    let router = fs::read_to_string(root().join("crates/serve/src/api.rs")).expect("UTF-8");
    let mut known = paths_behind(&router, r#"route\(\s*""#);
    // Prometheus' paths are in a document of their own.
    known.retain(|path| path.starts_with("/kymo/") || path == "/metrics");
    let text = Document::read(Path::new("docs/http-api.md")).text;
    let documented = paths_behind(&text, "(?:GET|POST|PUT|DELETE) ");
    assert_eq!(documented, known);
    assert!(known.len() > 15, "only {} paths were found", known.len());
}
