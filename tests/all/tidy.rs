//! Tidiness of the sources: obstacles for a reader are counted by crate, and no number may rise. A commit that lowers a
//! count lowers it here, too.

mod causes;
mod comments;
mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex_lite::Regex;

/// Functions of more than 70 lines, in all crates.
const LONG_FUNCTIONS: usize = 0;
const LINES_MAX: usize = 70;
/// Longest line of the page's JavaScript.
const COLUMNS_MAX: usize = 120;
/// Number of names in a crate that several types have.
const SAME_NAMES: &[(&str, usize)] = &[
    ("ingest", 1),
    ("kymo", 3),
    ("recording", 4),
    ("rrd", 2),
    ("serve", 1),
    ("sys", 1),
    ("view", 3),
];
/// Places in libraries, other than `crates/sys`, that open files or ask a clock themselves. (The program may.)
const MACHINE: &[(&str, usize)] = &[
    ("ingest", 14),
    ("poll", 3),
    ("query", 7),
    ("serve", 14),
    ("shm", 1),
];
/// Casts to whole numbers in a crate: each may cut off, wrap or lose a sign (`cast_lossless` refuses those that cannot).
const CASTS: &[(&str, usize)] = &[
    ("base", 57),
    ("forward", 3),
    ("ingest", 47),
    ("kernel", 12),
    ("kymo", 42),
    ("poll", 36),
    ("promql", 1),
    ("query", 28),
    ("recording", 105),
    ("rrd", 205),
    ("serve", 11),
    ("shm", 49),
    ("store", 279),
    ("sys", 50),
    ("upstream", 1),
    ("view", 34),
    ("wire", 30),
];
/// Words that make a reader look twice, in comments and texts.
const WORDS: &[(&str, usize)] = &[
    ("once more", 0),
    ("anew", 0),
    ("told", 11),
    ("nobody", 5),
    ("so many", 8),
];

/// A source file of a crate, without its tests.
struct Source {
    /// The crate, such as `store`.
    package: String,
    /// The module, such as `wal::frame`; empty: the crate's root.
    module: String,
    path: PathBuf,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    let crates = root().join("crates");
    let mut packages: Vec<String> = fs::read_dir(&crates)
        .expect("crates")
        .map(|entry| {
            entry
                .expect("a crate")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    packages.sort();
    for package in packages {
        let (folder, mut files) = (crates.join(&package).join("src"), Vec::new());
        rust_files(&folder, &mut files);
        for path in files {
            let inner = path
                .strip_prefix(&folder)
                .expect("inside")
                .with_extension("");
            let parts: Vec<&str> = inner
                .iter()
                .map(|part| part.to_str().expect("a name"))
                .collect();
            if parts
                .iter()
                .any(|part| matches!(*part, "tests" | "fuzz" | "samples"))
            {
                continue;
            }
            let module = parts.join("::");
            let module = match module.as_str() {
                "lib" | "main" => String::new(),
                name => name.strip_suffix("::mod").unwrap_or(name).to_string(),
            };
            let text = fs::read_to_string(&path).expect("UTF-8");
            let tests = Regex::new(r"#\[cfg\(test\)\]\n(pub(\([a-z]+\))? )?mod [a-z]+ \{")
                .expect("a pattern");
            let end = tests.find(&text).map_or(text.len(), |found| found.start());
            let text = text[..end].to_string();
            sources.push(Source {
                package: package.clone(),
                module,
                path,
                text,
            });
        }
    }
    assert!(
        sources.len() > 200,
        "{} source files are too few to be all",
        sources.len()
    );
    sources
}

/// Compares counts with their limits, and names each excess and each limit to lower.
fn judge(what: &str, allowed: &[(&str, usize)], found: &BTreeMap<String, Vec<String>>) {
    let mut wrong = Vec::new();
    let names: BTreeSet<&str> = allowed
        .iter()
        .map(|(name, _)| *name)
        .chain(found.keys().map(String::as_str))
        .collect();
    for name in names {
        let may = allowed
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(0, |(_, count)| *count);
        let places = found.get(name).map_or(&[][..], Vec::as_slice);
        if places.len() > may {
            wrong.push(format!(
                "{name}: {} {what}, {may} may be:\n    {}",
                places.len(),
                places.join("\n    ")
            ));
        } else if places.len() < may {
            wrong.push(format!(
                "{name}: {} {what}: lower its {may} in tests/all/tidy.rs",
                places.len()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_are_short() {
    let begin = Regex::new(r"^( *)(pub(\([a-z]+\))? )?(const |async |unsafe )*fn ([a-z_0-9]+)")
        .expect("a pattern");
    let mut long = Vec::new();
    for source in sources() {
        let mut open: Option<(usize, String, String)> = None;
        for (number, line) in source.text.lines().enumerate() {
            if let Some((start, end, name)) = &open {
                if line == end {
                    if number - start > LINES_MAX {
                        let path = source.path.display();
                        long.push(format!(
                            "{path}:{}: {name}, {} lines",
                            start + 1,
                            number - start
                        ));
                    }
                    open = None;
                }
                continue;
            }
            if let Some(found) = begin.captures(line).filter(|_| !line.ends_with(['}', ';'])) {
                open = Some((number, format!("{}}}", &found[1]), found[5].to_string()));
            }
        }
    }
    let found = BTreeMap::from([("all".to_string(), long)]);
    judge(
        "functions of more than 70 lines",
        &[("all", LONG_FUNCTIONS)],
        &found,
    );
}

/// The formatter breaks code but not texts and comments.
#[test]
fn lines_of_the_page_are_short() {
    let mut long = Vec::new();
    let folder = root().join("crates/serve/assets");
    for entry in fs::read_dir(&folder).expect("the page's modules") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "js") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("UTF-8");
        for (number, line) in text.lines().enumerate() {
            if line.chars().count() > COLUMNS_MAX {
                long.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn one_name_is_one_type() {
    let begin =
        Regex::new(r"(?m)^ *(?:pub(?:\([a-z]+\))? )?(?:struct|enum|trait|union) ([A-Za-z0-9]+)")
            .expect("a pattern");
    let mut places: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for source in sources() {
        for found in begin.captures_iter(&source.text) {
            let key = (source.package.clone(), found[1].to_string());
            places.entry(key).or_default().push(source.module.clone());
        }
    }
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for ((package, name), modules) in places {
        if modules.len() > 1 {
            found
                .entry(package)
                .or_default()
                .push(format!("{name}: {}", modules.join(", ")));
        }
    }
    judge("names that several types have", SAME_NAMES, &found);
}

#[test]
fn the_machine_is_asked_in_one_place() {
    let asked =
        Regex::new(r"\bstd::fs::|\bFile::(open|create|options)|\b(SystemTime|Instant)::now")
            .expect("a pattern");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources()
        .iter()
        .filter(|source| !matches!(source.package.as_str(), "sys" | "kymo"))
    {
        for (number, line) in source.text.lines().enumerate() {
            if asked.is_match(line) && !line.trim_start().starts_with("//") {
                let place = format!("{}:{}", source.path.display(), number + 1);
                found.entry(source.package.clone()).or_default().push(place);
            }
        }
    }
    judge("places that open files or ask a clock", MACHINE, &found);
}

/// A user who owns a folder of a path chooses its target. So root changes owners and modes by open descriptors.
#[test]
fn owners_and_modes_are_set_by_descriptor() {
    let by_path =
        Regex::new(r"(^|[^.\w])(l?chown|chownat|chmod|chmodat)\(|\bfs::set_permissions\(")
            .expect("a pattern");
    let mut found = Vec::new();
    for source in sources() {
        if source.package == "sys" && source.module == "sure_folder" {
            continue;
        }
        let lines = source.text.lines().enumerate();
        for (number, _) in lines.filter(|(_, line)| by_path.is_match(line)) {
            found.push(format!("{}:{}", source.path.display(), number + 1));
        }
    }
    assert!(found.is_empty(), "use sys::sure_folder: {found:#?}");
}

#[test]
fn casts_are_few() {
    let cast = Regex::new(r"\bas ([ui](8|16|32|64|128)|[ui]size)\b").expect("a pattern");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources() {
        for (number, line) in source.text.lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for _ in cast.find_iter(line) {
                let place = format!("{}:{}", source.path.display(), number + 1);
                found.entry(source.package.clone()).or_default().push(place);
            }
        }
    }
    judge("casts to whole numbers", CASTS, &found);
}

#[test]
fn words_are_plain() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut texts: Vec<(PathBuf, String)> = sources()
        .into_iter()
        .map(|source| (source.path, source.text))
        .collect();
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "docs/inside/promises.md",
        "docs/reference/commands.md",
        "docs/rrdcached.md",
        "docs/rrd.md",
        "docs/formats/journal.md",
        "docs/formats/store.md",
    ] {
        let path = root().join(name);
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {name}: {error}"));
        texts.push((path, text));
    }
    for (word, _) in WORDS {
        let pattern =
            Regex::new(&format!(r"(?i)\b{}\b", word.replace(' ', r"\s+"))).expect("a pattern");
        for (path, text) in &texts {
            for (number, line) in text.lines().enumerate() {
                for _ in pattern.find_iter(line) {
                    let place = format!("{}:{}", path.display(), number + 1);
                    found.entry(word.to_string()).or_default().push(place);
                }
            }
        }
    }
    judge("places", WORDS, &found);
}
