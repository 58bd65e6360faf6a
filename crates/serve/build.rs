//! Puts the page together: its modules become one script, its style sheets one sheet, so that the first view takes three
//! requests. `--assets FOLDER` serves the files as they are.
//!
//! A module is `import { a, b } from './x.js';`, on one line or on several, `import name from './x.js';` for a default,
//! and `export` before functions and constants; `import('./x.js')` comes when it is called. Each becomes a function that
//! runs once.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What the page begins with.
const FIRST: [&str; 2] = ["early.js", "app.js"];
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
    fs::write(out.join("page.js"), script(&texts(".js")?))?;
    // The page's own rules come after those of what it uses.
    let sheets: Vec<String> = texts(".css")?
        .into_iter()
        .rev()
        .map(|(_, text)| text)
        .collect();
    fs::write(out.join("page.css"), sheets.join("\n"))?;
    let html = fs::read_to_string(root.join("index.html"))?;
    fs::write(out.join("index.html"), document(&html))?;
    let made = ["index.html", "page.css", "page.js"].map(|name| (name.to_string(), out.join(name)));
    let kept = names.iter().filter(|name| {
        let ends = [".js", ".css", ".html"];
        !ends.iter().any(|end| name.ends_with(end))
    });
    let kept = kept.map(|name| (name.clone(), root.join(name)));
    let mut table = String::from("[\n");
    for (name, path) in made.into_iter().chain(kept) {
        let path = path.display().to_string();
        table.push_str(&format!(
            "    ({name:?}, include_bytes!({path:?}) as &[u8]),\n"
        ));
    }
    table.push_str("]\n");
    fs::write(out.join("assets.rs"), table)
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

/// The document with one sheet and one script in the place of many.
fn document(html: &str) -> String {
    let is_loaded = |line: &&str| {
        let loads = [
            "<link rel=\"stylesheet\"",
            "<link rel=\"modulepreload\"",
            "<script ",
        ];
        loads.iter().any(|start| line.starts_with(start))
    };
    let kept: Vec<&str> = html.lines().filter(|line| !is_loaded(line)).collect();
    let own = "<link rel=\"stylesheet\" href=\"./page.css\">\n<script type=\"module\" src=\"./page.js\"></script>\n</head>";
    kept.join("\n").replacen("</head>", own, 1) + "\n"
}

fn script(modules: &[(String, String)]) -> String {
    let mut text = String::from(ONCE);
    for (name, code) in modules {
        text.push_str(&module(name, code));
    }
    for name in FIRST {
        text.push_str(&format!("{}();\n", function_of(name)));
    }
    text
}

/// `vendor/uPlot/uPlot.esm.js` → `m_vendor_uPlot_uPlot_esm_js`
fn function_of(name: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("m_{}", name.chars().map(word).collect::<String>())
}

fn module(name: &str, code: &str) -> String {
    let (mut body, mut exports) = (String::new(), Vec::new());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let line = &statement(line, &mut lines);
        let line = match (line.strip_prefix("import "), line.strip_prefix("export ")) {
            (Some(rest), _) => import(name, rest),
            (_, Some(rest)) => {
                let (export, rest) = export(name, rest);
                exports.push(export);
                rest
            }
            _ => line.to_string(),
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

/// A line, and of an import those that it goes on in.
fn statement<'a>(line: &str, rest: &mut impl Iterator<Item = &'a str>) -> String {
    let mut whole = line.to_string();
    while whole.starts_with("import {") && !whole.contains(" from ") {
        let Some(next) = rest.next() else { break };
        whole.push(' ');
        whole.push_str(next.trim());
    }
    whole
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

/// What is exported, as a member of an object, and the statement without `export`.
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

/// `import('./x.js')` → `Promise.resolve(m_x_js())`
fn lazy_imports(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once("import('./") {
        let Some((name, behind)) = after.split_once("')") else {
            break;
        };
        out.push_str(&format!(
            "{before}Promise.resolve().then({})",
            function_of(name)
        ));
        rest = behind;
    }
    out + rest
}
