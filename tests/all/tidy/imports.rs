//! Imports: no circles, neither of files nor of folders.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use regex_lite::Regex;

use super::{Source, judge, sources};

/// Files of one crate that import each other, directly or through others.
const FILE_CIRCLES: &[(&str, usize)] = &[];
/// Parts of one folder that import each other; a part is a file with the folder of its name.
const PART_CIRCLES: &[(&str, usize)] = &[];
/// Folders whose root is not the file of their name.
const MOD_FILES: &[(&str, usize)] = &[];

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

/// Modules of its own crate that a source names.
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
    let mut named = BTreeSet::new();
    for path in all {
        let full = full_path(&source.module, &path);
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

/// A path that begins with `crate` or any number of `super`, from the crate's root on.
fn full_path<'p>(module: &'p str, path: &'p [String]) -> Vec<&'p str> {
    if path[0] == "crate" {
        return path[1..].iter().map(String::as_str).collect();
    }
    let ups = path.iter().take_while(|word| *word == "super").count();
    let own: Vec<&str> = module.split("::").collect();
    let above = &own[..own.len().saturating_sub(ups)];
    let below = path[ups..].iter().map(String::as_str);
    above.iter().copied().chain(below).collect()
}

/// Imported modules by module.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The graph of each crate.
fn graphs() -> BTreeMap<String, Graph> {
    let sources = sources();
    let mut graphs: BTreeMap<String, Graph> = BTreeMap::new();
    let packages: BTreeSet<&str> = sources
        .iter()
        .map(|source| source.package.as_str())
        .collect();
    for package in packages {
        let of_it = || {
            let sources = sources.iter();
            sources.filter(|source| source.package == package && !source.module.is_empty())
        };
        let modules: HashSet<&str> = of_it().map(|source| source.module.as_str()).collect();
        let graph = of_it()
            .map(|source| (source.module.clone(), imports(source, &modules)))
            .collect();
        graphs.insert(package.to_string(), graph);
    }
    graphs
}

fn in_circles(graph: &Graph) -> Vec<String> {
    let names = graph.keys().filter(|name| reaches(graph, name, name));
    names.cloned().collect()
}

#[test]
fn files_do_not_import_each_other() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (package, graph) in graphs() {
        found.insert(package, in_circles(&graph));
    }
    judge("files in circles of imports", FILE_CIRCLES, &found);
}

/// The part of `module` that lies in `folder`: `wal::frame` in `wal` is `frame`, in the crate's root it is `wal`.
fn part<'m>(folder: &str, module: &'m str) -> Option<&'m str> {
    let below = match folder.is_empty() {
        true => module,
        false => module.strip_prefix(folder)?.strip_prefix("::")?,
    };
    below.split("::").next()
}

/// A file and the folder of its name are one part: an import by any of its files is an import by the part.
#[test]
fn parts_of_a_folder_do_not_import_each_other() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (package, graph) in graphs() {
        let mut folders = BTreeSet::from([""]);
        for module in graph.keys() {
            folders.extend(module.match_indices("::").map(|(at, _)| &module[..at]));
        }
        for folder in folders {
            let mut parts = Graph::new();
            for (module, imported) in &graph {
                let Some(from) = part(folder, module) else {
                    continue;
                };
                let imported = imported.iter().filter_map(|to| part(folder, to));
                let others = imported.filter(|to| *to != from).map(str::to_string);
                parts.entry(from.to_string()).or_default().extend(others);
            }
            let places = in_circles(&parts);
            let places = places.iter().map(|part| format!("{folder}/{part}"));
            found.entry(package.clone()).or_default().extend(places);
        }
    }
    judge(
        "parts of a folder in circles of imports",
        PART_CIRCLES,
        &found,
    );
}

/// A file that no other file declares is not compiled; `x/mod.rs` is one name for many files.
#[test]
fn a_folder_has_its_root_beside_it() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let sources = sources();
    for source in &sources {
        let place = source.path.display().to_string();
        let (root, name) = match source.module.rsplit_once("::") {
            _ if source.module.is_empty() => continue,
            Some((root, name)) => (root, name),
            None => ("", source.module.as_str()),
        };
        let declares =
            Regex::new(&format!(r"(?m)^ *(pub(\([a-z]+\))? )?mod {name};")).expect("a pattern");
        let mut roots = sources
            .iter()
            .filter(|other| other.package == source.package && other.module == root);
        if source.path.ends_with("mod.rs") || !roots.any(|root| declares.is_match(&root.text)) {
            found.entry(source.package.clone()).or_default().push(place);
        }
    }
    judge(
        "files without a root that declares them, or called mod.rs",
        MOD_FILES,
        &found,
    );
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
