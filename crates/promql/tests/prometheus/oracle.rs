//! Prometheus' parser, built from its Go module, as a program.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::go_module::VERSION;

/// The answer to a text.
pub(crate) struct Answer {
    /// The canonical text.
    pub(crate) shown: String,
    /// The text of several lines.
    pub(crate) pretty: String,
    /// The answer of `/api/v1/parse_query`.
    pub(crate) tree: serde_json::Value,
    /// The first error; empty: none.
    pub(crate) message: String,
    /// Bytes of the error.
    pub(crate) place: (usize, usize),
    /// Bytes of each node, parents before their children.
    pub(crate) spans: Vec<(usize, usize)>,
}

/// Builds the program in a folder from the files of the module; `None`: this machine cannot.
pub(crate) fn build(module: &Path, folder: &Path) -> Option<PathBuf> {
    std::fs::create_dir_all(folder).ok()?;
    std::fs::write(folder.join("main.go"), include_str!("../oracle/main.go")).ok()?;
    let tree = std::fs::read_to_string(module.join("web/api/v1/translate_ast.go")).ok()?;
    let tree = tree.replace("package v1\n", "package main\n");
    std::fs::write(folder.join("translate_ast.go"), tree).ok()?;
    let go = |args: &[&str]| {
        let status = Command::new("go").args(args).current_dir(folder).status();
        status.is_ok_and(|status| status.success())
    };
    let package = VERSION.replace('@', "/promql/parser@");
    let has_module = folder.join("go.sum").exists()
        || (go(&["mod", "init", "kymo/oracle"]) && go(&["get", &package]));
    (has_module && go(&["build", "-o", "oracle", "."])).then(|| folder.join("oracle"))
}

/// Asks the program about texts.
pub(crate) fn ask(program: &Path, texts: &[String]) -> Vec<Answer> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut questions = Vec::new();
    for text in texts {
        questions.extend_from_slice(serde_json::to_string(text).unwrap().as_bytes());
        questions.push(b'\n');
    }
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&questions).unwrap());
    let output = BufReader::new(child.stdout.take().unwrap());
    let answers = output.lines().map(|line| answer(&line.unwrap())).collect();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    answers
}

fn answer(line: &str) -> Answer {
    let fields: serde_json::Value = serde_json::from_str(line).unwrap();
    let text = |name: &str| fields[name].as_str().unwrap().to_string();
    let whole = |value: &serde_json::Value| usize::try_from(value.as_i64().unwrap()).unwrap_or(0);
    let spans = fields["Spans"].as_array().into_iter().flatten();
    Answer {
        spans: spans
            .map(|pair| (whole(&pair[0]), whole(&pair[1])))
            .collect(),
        shown: text("Shown"),
        pretty: text("Pretty"),
        tree: fields["Tree"].clone(),
        message: text("Message"),
        place: (whole(&fields["Start"]), whole(&fields["End"])),
    }
}
