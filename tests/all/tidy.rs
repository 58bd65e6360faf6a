//! The house stays tidy: what a reader stumbles over is counted, crate by crate, and no number may rise. One that falls
//! is lowered here in the same commit.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex_lite::Regex;

/// Functions of more than 70 lines, in all crates.
const LONG_FUNCTIONS: usize = 0;
const LINES_MAX: usize = 70;
/// Longest line of the page's JavaScript.
const COLUMNS_MAX: usize = 120;
/// Names that two types of one crate have.
const SAME_NAMES: &[(&str, usize)] = &[
    ("ingest", 1),
    ("kymo", 4),
    ("recording", 5),
    ("rrd", 2),
    ("serve", 2),
    ("sys", 1),
    ("view", 4),
];
/// Files of one crate that import each other, directly or by way of others.
const CIRCLES: &[(&str, usize)] = &[];
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
    ("ingest", 47),
    ("kernel", 12),
    ("kymo", 43),
    ("poll", 35),
    ("query", 28),
    ("recording", 105),
    ("rrd", 205),
    ("serve", 11),
    ("shm", 49),
    ("store", 279),
    ("sys", 50),
    ("view", 34),
    ("wire", 30),
];
/// Words that make a reader look twice, in comments and texts.
const WORDS: &[(&str, usize)] = &[
    ("once more", 0),
    ("anew", 0),
    ("told", 120),
    ("nobody", 80),
    ("so many", 58),
];

/// A source file of a crate, without its tests.
struct Source {
    /// `store`.
    package: String,
    /// `wal::frame`; empty: the crate's root.
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

/// Compares what was counted with what may be, and says what is to be done.
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

/// The formatter breaks what it can; texts and comments are ours to break.
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

/// The paths of a `use` tree, as words.
fn paths(tree: &str, before: &[String], out: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    if let Some(inner) = tree.strip_prefix('{') {
        let inner = inner.strip_suffix('}').unwrap_or(inner);
        let (mut depth, mut start) = (0, 0);
        for (at, byte) in inner.bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b',' if depth == 0 => {
                    paths(&inner[start..at], before, out);
                    start = at + 1;
                }
                _ => {}
            }
        }
        return paths_unless_empty(&inner[start..], before, out);
    }
    let (first, rest) = tree.split_once("::").unwrap_or((tree, ""));
    let first = first.split(" as ").next().unwrap_or(first).trim();
    let mut path = before.to_vec();
    if first != "self" {
        path.push(first.to_string());
    }
    match rest.is_empty() {
        true => out.push(path),
        false => paths(rest, &path, out),
    }
}

fn paths_unless_empty(tree: &str, before: &[String], out: &mut Vec<Vec<String>>) {
    if !tree.trim().is_empty() {
        paths(tree, before, out);
    }
}

/// Modules of its crate that a source names.
fn imports(source: &Source, modules: &HashSet<&str>) -> BTreeSet<String> {
    let uses = Regex::new(r"(?s)\buse ((?:crate|super)::[^;]+);").expect("a pattern");
    let inline =
        Regex::new(r"\b((?:crate|super)::[a-z_0-9]+(?:::[A-Za-z_0-9]+)*)").expect("a pattern");
    let mut all = Vec::new();
    for found in uses.captures_iter(&source.text) {
        paths(&found[1], &[], &mut all);
    }
    let code: String = source
        .text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    for found in inline.captures_iter(&code) {
        all.push(found[1].split("::").map(str::to_string).collect());
    }
    let parent: Vec<&str> = match source.module.rsplit_once("::") {
        Some((parent, _)) => parent.split("::").collect(),
        None => Vec::new(),
    };
    let mut named = BTreeSet::new();
    for path in all {
        let full: Vec<&str> = match path[0].as_str() {
            "super" => parent
                .iter()
                .copied()
                .chain(path[1..].iter().map(String::as_str))
                .collect(),
            _ => path[1..].iter().map(String::as_str).collect(),
        };
        let longest = (1..=full.len()).rev().map(|count| full[..count].join("::"));
        let module = longest
            .into_iter()
            .find(|name| modules.contains(name.as_str()));
        // A file and the folder of its name are one place.
        let own = |name: &String| {
            source.module.starts_with(&format!("{name}::"))
                || name.starts_with(&format!("{}::", source.module))
        };
        named.extend(module.filter(|name| *name != source.module && !own(name)));
    }
    named
}

#[test]
fn files_do_not_import_each_other() {
    let sources = sources();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let packages: BTreeSet<&str> = sources
        .iter()
        .map(|source| source.package.as_str())
        .collect();
    for package in packages {
        let of_it = || sources.iter().filter(|source| source.package == package);
        let modules: HashSet<&str> = of_it()
            .map(|source| source.module.as_str())
            .filter(|name| !name.is_empty())
            .collect();
        let graph: BTreeMap<String, BTreeSet<String>> = of_it()
            .filter(|source| !source.module.is_empty())
            .map(|source| (source.module.clone(), imports(source, &modules)))
            .collect();
        for name in graph.keys() {
            if reaches(&graph, name, name) {
                found
                    .entry(package.to_string())
                    .or_default()
                    .push(name.clone());
            }
        }
    }
    judge("files in circles of imports", CIRCLES, &found);
}

fn reaches(graph: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let (mut seen, mut next) = (HashSet::new(), vec![from]);
    while let Some(name) = next.pop() {
        for target in graph.get(name).into_iter().flatten() {
            if target == to {
                return true;
            }
            if seen.insert(target.as_str()) {
                next.push(target);
            }
        }
    }
    false
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
