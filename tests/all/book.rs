//! The documents as a book: each link leads somewhere, and each document is in the book. `commands.rs` tries the commands in
//! them, `facts.rs` compares their figures, messages and keys with the sources, `start.rs` does all that the first page says.

mod commands;
mod facts;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex_lite::Regex;

/// A document, by its path from the root of the repository.
struct Document {
    path: PathBuf,
    text: String,
}

impl Document {
    fn read(path: &Path) -> Document {
        let text = fs::read_to_string(root().join(path));
        Document {
            path: path.into(),
            text: text.unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display())),
        }
    }

    /// True if the document is below one of these folders, or is one of these files.
    fn is_of(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Documents outside of docs/.
const OTHERS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "STYLE.md",
    "bench/README.md",
    "bench/RESULTS.md",
];

fn documents() -> Vec<Document> {
    let mut paths: Vec<PathBuf> = OTHERS.iter().map(PathBuf::from).collect();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder of docs") {
            let path = folder.join(entry.expect("an entry").file_name());
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| Document::read(path)).collect()
}

/// Lines that are no code: neither between fences nor indented by four blanks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            return false;
        }
        !is_fenced && !line.starts_with("    ")
    })
}

/// Links of a document to files and places of the repository, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let code = Regex::new("`[^`]*`").expect("a pattern");
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let line = code.replace_all(line, "");
        for found in link.captures_iter(&line) {
            let target = &found[1];
            if !target.contains("://") && !target.starts_with("mailto:") {
                links.push((number + 1, target.to_string()));
            }
        }
    }
    links
}

/// The anchor of a heading: lower case, `-` for each blank, without other punctuation.
fn slug(heading: &str) -> String {
    static LINK: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\[([^\]]*)\]\([^)]*\)").expect("a pattern"));
    let text = LINK.replace_all(heading, "$1").to_lowercase();
    let kept = text
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Anchors of a document; a heading that is there again has a number behind it.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter_map(|(_, line)| line.strip_prefix('#'));
    let slugs = headings.map(|line| slug(line.trim_start_matches('#')));
    slugs
        .map(|slug| {
            let count = counts.entry(slug.clone()).or_default();
            *count += 1;
            match *count {
                1 => slug,
                again => format!("{slug}-{}", again - 1),
            }
        })
        .collect()
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path {
        match part.to_str() {
            Some(".") => {}
            Some("..") => {
                normal.pop();
            }
            _ => normal.push(part),
        }
    }
    normal
}

/// The file that a link leads to.
fn end_of(document: &Document, link: &str) -> PathBuf {
    let file = link.split('#').next().unwrap_or_default();
    match file {
        "" => document.path.clone(),
        _ => normal(&document.path.with_file_name("").join(file)),
    }
}

/// Why a link leads nowhere.
fn wrong_link(document: &Document, link: &str) -> Option<String> {
    let end = end_of(document, link);
    if !root().join(&end).exists() {
        return Some(format!("there is no {}", end.display()));
    }
    let (_, anchor) = link.split_once('#')?;
    let there = anchors(&Document::read(&end).text).contains(anchor);
    (!there).then(|| format!("{} has no heading #{anchor}", end.display()))
}

#[test]
fn each_link_leads_to_a_file_and_its_heading() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in documents() {
        for (line, link) in links(&document.text) {
            count += 1;
            if let Some(why) = wrong_link(&document, &link) {
                wrong.push(format!("{}:{line}: {link}: {why}", document.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "only {count} links were found");
}

#[test]
fn a_wrong_link_is_found() {
    let document = Document {
        path: "docs/start.md".into(),
        text: String::new(),
    };
    for (link, right) in [
        ("serve.md", true),
        ("serve.md#the-folder", true),
        ("./guides/../serve.md#who-sees-what", true),
        (
            "../ARCHITECTURE.md#rrd-wire-store-round-robin-archives-and-the-daemon",
            true,
        ),
        ("http-api.md#get-kymov1status", true),
        ("../include/kymo.h", true),
        ("serf.md", false),
        ("serve.md#the-folders", false),
        ("#no-such-heading", false),
        ("../../outside.md", false),
    ] {
        assert_eq!(wrong_link(&document, link).is_none(), right, "{link}");
    }
    let text = "# Two words, `code`\n## A\n```\n# no heading\n[x](y.md)\n```\n\
                ## A\n    [x](y.md)\n`[x](y.md)` [a](b.md#c)\n";
    let found: Vec<String> = anchors(text).into_iter().collect();
    assert_eq!(found, ["a", "a-1", "two-words-code"]);
    assert_eq!(links(text), [(9, "b.md#c".to_string())]);
}

#[test]
fn each_document_is_in_the_book() {
    let book = fs::read_to_string(root().join("mkdocs.yml")).expect("mkdocs.yml");
    let nav = book.split_once("\nnav:\n").expect("a list of pages").1;
    let page = Regex::new(r"[a-z0-9/-]+\.md").expect("a pattern");
    let pages: BTreeSet<PathBuf> = page
        .find_iter(nav)
        .map(|found| Path::new("docs").join(found.as_str()))
        .collect();
    let documents = documents();
    let linked: BTreeSet<PathBuf> = documents
        .iter()
        .flat_map(|document| {
            let links = links(&document.text).into_iter();
            links.map(move |(_, link)| end_of(document, &link))
        })
        .collect();
    // The first page is made of README.md.
    let first = Path::new("docs/index.md");
    for page in pages.iter().filter(|page| *page != first) {
        let there = documents.iter().any(|document| document.path == *page);
        assert!(
            there,
            "mkdocs.yml names {}, which is not there",
            page.display()
        );
    }
    for document in documents
        .iter()
        .filter(|document| document.is_of(&["docs"]))
    {
        let path = &document.path;
        let reached = pages.contains(path) || linked.contains(path);
        assert!(
            reached,
            "{} is not in mkdocs.yml, and no document links to it",
            path.display()
        );
    }
}
