//! Puts the page together: its modules become three scripts, its style sheets one sheet, so that the first view needs few
//! requests. The small script is in the document: it asks for the first numbers while the second one is loaded. The third
//! one has tabs that few open, and is fetched when one of them is. The answers' policy has the hash of the small script.
//! Files are compressed here, as nearly all browsers ask for them: the program is smaller, and its first answer is quicker.
//! `--assets FOLDER` serves the files as they are.
//!
//! A module is `import { a, b } from './x.js';`, on one line or on several, `import name from './x.js';` for a default,
//! and `export` before functions and constants; `import('./x.js')` runs when it is called. Each module becomes a function
//! that runs once.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// The module that asks for the first numbers: with its imports, it is the small script.
const EARLY: &str = "early.js";
/// The first module of the other script.
const APP: &str = "app.js";
/// Modules of the third script, with all that only they need.
const LATER: [&str; 4] = ["boards.js", "grafana.js", "pin.js", "query.js"];
/// The third script.
const LATER_SCRIPT: &str = "later.js";
const ONCE: &str = "const once = (make) => { let made; return () => (made ??= make()); };\n";

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("assets");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo:rerun-if-changed=assets");
    let mut names = Vec::new();
    list(&root, &root, &mut names)?;
    names.sort();
    let read = |name: &String| Ok((name.clone(), fs::read_to_string(root.join(name))?));
    let texts = |end: &str| -> io::Result<Vec<(String, String)>> {
        names
            .iter()
            .filter(|name| name.ends_with(end))
            .map(read)
            .collect()
    };
    let modules = texts(".js")?;
    let mut names_of_first = Vec::new();
    closure(EARLY, &modules, &mut names_of_first);
    let (first, rest): (Vec<_>, Vec<_>) = modules
        .into_iter()
        .partition(|(name, _)| names_of_first.contains(name));
    let early = early_script(&first);
    let hash = STANDARD.encode(Sha256::digest(&early));
    fs::write(out.join("early_hash"), format!("'sha256-{hash}'"))?;
    let mut names_of_page = Vec::new();
    reach(APP, &rest, &mut names_of_page);
    let (page, later): (Vec<_>, Vec<_>) = rest
        .into_iter()
        .partition(|(name, _)| names_of_page.contains(name));
    fs::write(out.join("page.js"), page_script(&first, &page))?;
    let script = later_script(&first, &page, &later);
    fs::write(out.join(LATER_SCRIPT), script)?;
    // The page's own rules come after those of the libraries.
    let sheets: Vec<String> = texts(".css")?
        .into_iter()
        .rev()
        .map(|(_, text)| text)
        .collect();
    fs::write(out.join("page.css"), sheets.join("\n"))?;
    let html = fs::read_to_string(root.join("index.html"))?;
    fs::write(out.join("index.html"), document(&html, &early))?;
    let made = ["index.html", "page.css", "page.js", LATER_SCRIPT]
        .map(|name| (name.to_string(), out.join(name)));
    let kept = names.iter().filter(|name| {
        let ends = [".js", ".css", ".html"];
        !ends.iter().any(|end| name.ends_with(end))
    });
    let kept = kept.map(|name| (name.clone(), root.join(name)));
    let kept = kept.chain(for_programs());
    let mut table = String::from("[\n");
    for (number, (name, path)) in made.into_iter().chain(kept).enumerate() {
        table.push_str(&row(&name, &path, out.join(format!("asset-{number}.gz")))?);
    }
    table.push_str("]\n");
    fs::write(out.join("assets.rs"), table)
}

/// Row of a file in the table: its name, its tag, and its compressed bytes, which are written to `packed`.
fn row(name: &str, path: &Path, packed: PathBuf) -> io::Result<String> {
    let plain = fs::read(path)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&plain)?;
    fs::write(&packed, encoder.finish()?)?;
    let tag = STANDARD.encode(&Sha256::digest(&plain)[..12]);
    let tag = format!("\"{tag}\"");
    let packed = packed.display().to_string();
    Ok(format!(
        "    ({name:?}, {tag:?}, include_bytes!({packed:?}) as &[u8]),\n"
    ))
}

/// The header for programs that publish, and its example: the page tells how to get them from here.
fn for_programs() -> Vec<(String, PathBuf)> {
    let crates = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let files = [
        ("kymo.h", "../../include/kymo.h"),
        ("publish.c", "../shm/examples/publish.c"),
    ];
    let found = files.map(|(name, path)| (name.to_string(), crates.join(path)));
    for (_, path) in &found {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    found.into()
}

fn list(root: &Path, folder: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        println!("cargo:rerun-if-changed={}", path.display());
        match path.is_dir() {
            true => list(root, &path, found)?,
            false => found.push(
                path.strip_prefix(root)
                    .unwrap_or(&path)
                    .display()
                    .to_string(),
            ),
        }
    }
    Ok(())
}

/// The document with one sheet and two scripts in the place of many; the small one is in it.
fn document(html: &str, early: &str) -> String {
    let is_loaded = |line: &&str| {
        let loads = [
            "<link rel=\"stylesheet\"",
            "<link rel=\"modulepreload\"",
            "<script ",
        ];
        loads.iter().any(|start| line.starts_with(start))
    };
    let kept: Vec<&str> = html.lines().filter(|line| !is_loaded(line)).collect();
    // The small script does not wait for the sheet.
    let early = format!("<script>{early}</script>");
    let own = [
        &early,
        "<link rel=\"stylesheet\" href=\"./page.css\">",
        "<script type=\"module\" src=\"./page.js\"></script>",
        "</head>",
    ];
    kept.join("\n").replacen("</head>", &own.join("\n"), 1) + "\n"
}

/// Adds a module and all its imports to `found`.
fn closure(name: &str, modules: &[(String, String)], found: &mut Vec<String>) {
    if found.iter().any(|known| known == name) {
        return;
    }
    found.push(name.to_string());
    let code = modules.iter().find(|(known, _)| known == name);
    let (_, code) = code.unwrap_or_else(|| panic!("{name} is imported, and not there"));
    for line in statements(code) {
        let rest = line.strip_prefix("import ");
        if let Some((_, from)) = rest.and_then(|rest| rest.rsplit_once(" from ")) {
            let from = from.trim_matches([';', '\'']).trim_start_matches("./");
            closure(from, modules, found);
        }
    }
}

/// Adds a module and all that it imports at once or later, but for modules of [`LATER`].
fn reach(name: &str, modules: &[(String, String)], found: &mut Vec<String>) {
    let code = modules.iter().find(|(known, _)| known == name);
    let Some((_, code)) = code.filter(|_| !found.iter().any(|known| known == name)) else {
        return;
    };
    found.push(name.to_string());
    let all = statements(code).join("\n");
    for (at, _) in all.match_indices("'./") {
        let rest = &all[at + 3..];
        let end = rest.find('\'').unwrap_or(0);
        let from = &rest[..end];
        if from.ends_with(".js") && !LATER.contains(&from) {
            reach(from, modules, found);
        }
    }
}

/// The small script: it runs, and leaves its modules to the other one.
fn early_script(modules: &[(String, String)]) -> String {
    let text: String = modules
        .iter()
        .map(|(name, code)| module(name, code))
        .collect();
    let names = functions_of(modules);
    let first = function_of(EARLY);
    let script = format!(
        "(() => {{\n'use strict';\n{ONCE}{text}{first}();\nglobalThis.early = {{ once, {names} }};\n}})();\n"
    );
    assert!(!script.contains("</script"), "the small script ends early");
    script
}

fn page_script(early: &[(String, String)], modules: &[(String, String)]) -> String {
    let text: String = modules
        .iter()
        .map(|(name, code)| module(name, code))
        .collect();
    let (names, own) = (functions_of(early), functions_of(modules));
    let first = function_of(APP);
    format!(
        "const {{ once, {names} }} = globalThis.early;\n{text}globalThis.page = {{ {own} }};\n{first}();\n"
    )
}

/// The third script: it takes modules of the other two, and gives its own to who imports it.
fn later_script(
    early: &[(String, String)],
    page: &[(String, String)],
    modules: &[(String, String)],
) -> String {
    let text: String = modules
        .iter()
        .map(|(name, code)| module(name, code))
        .collect();
    let (names, of_page) = (functions_of(early), functions_of(page));
    let own = LATER.map(function_of).join(", ");
    format!(
        "const {{ once, {names} }} = globalThis.early;\nconst {{ {of_page} }} = globalThis.page;\n\
         {text}export {{ {own} }};\n"
    )
}

fn functions_of(modules: &[(String, String)]) -> String {
    let names: Vec<String> = modules.iter().map(|(name, _)| function_of(name)).collect();
    names.join(", ")
}

/// `vendor/uPlot/uPlot.esm.js` → `m_vendor_uPlot_uPlot_esm_js`
fn function_of(name: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("m_{}", name.chars().map(word).collect::<String>())
}

fn module(name: &str, code: &str) -> String {
    let (mut body, mut exports) = (String::new(), Vec::new());
    for line in statements(code) {
        let line = match (line.strip_prefix("import "), line.strip_prefix("export ")) {
            (Some(rest), _) => import(name, rest),
            (_, Some(rest)) => {
                let (export, rest) = export(name, rest);
                exports.push(export);
                rest
            }
            _ => line,
        };
        body.push_str(&lazy_imports(&line));
        body.push('\n');
    }
    let function = function_of(name);
    format!(
        "const {function} = once(() => {{\n{body}return {{ {} }};\n}});\n",
        exports.join(", ")
    )
}

/// Lines of a module; an import that spans several lines becomes one.
fn statements(code: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    for line in code.lines() {
        match statements.last_mut() {
            Some(last) if last.starts_with("import {") && !last.contains(" from ") => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => statements.push(line.to_string()),
        }
    }
    statements
}

/// `{ a, b as c } from './x.js';` → `const { a, b: c } = m_x_js();`
fn import(module: &str, rest: &str) -> String {
    let parts = rest.trim_end_matches(';').rsplit_once(" from ");
    let (names, from) =
        parts.unwrap_or_else(|| panic!("{module}: cannot understand import {rest}"));
    let from = function_of(from.trim_matches('\'').trim_start_matches("./"));
    match names.starts_with('{') {
        true => format!("const {} = {from}();", names.replace(" as ", ": ")),
        false => format!("const {names} = {from}().default;"),
    }
}

/// The exported name as a member of an object, and the statement without `export`.
fn export(module: &str, rest: &str) -> (String, String) {
    if let Some(name) = rest.strip_prefix("default ") {
        return (
            format!("default: {}", name.trim_end_matches(';')),
            String::new(),
        );
    }
    let words = ["async ", "function ", "const ", "class "];
    let mut name = rest;
    for word in words {
        name = name.strip_prefix(word).unwrap_or(name);
    }
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'));
    let name = &name[..end.unwrap_or(name.len())];
    let known = ["async function ", "function ", "const ", "class "];
    let is_known = known.iter().any(|start| rest.starts_with(start)) && !name.is_empty();
    assert!(is_known, "{module}: cannot understand export {rest}");
    (name.to_string(), rest.to_string())
}

/// `import('./x.js')` → `Promise.resolve().then(m_x_js)`, or what the third script has
fn lazy_imports(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once("import('./") {
        let Some((name, behind)) = after.split_once("')") else {
            break;
        };
        let function = function_of(name);
        out.push_str(before);
        out.push_str(&match LATER.contains(&name) {
            true => format!("import('./{LATER_SCRIPT}').then((later) => later.{function}())"),
            false => format!("Promise.resolve().then({function})"),
        });
        rest = behind;
    }
    out + rest
}
