//! A client of `kymo serve` made of the Go libraries of Prometheus' project at their current versions: its messages of
//! remote write and the sender of them, and the client of its HTTP API, on which promtool's queries stand. promtool itself is
//! not built: it brings Kubernetes' client, and takes minutes.

mod asked;
mod written;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// The client of write requests is the one that this version of Prometheus names itself.
const GO_MOD: &str = "module clients\n\ngo 1.26\n\nrequire (\n\tgithub.com/prometheus/client_golang v1.25.0\n\t\
                      github.com/prometheus/client_golang/exp v0.0.0-20261019101427-217707f26b14\n\t\
                      github.com/prometheus/prometheus v0.316.0\n)\n";

const SOURCES: [(&str, &str); 4] = [
    ("main.go", include_str!("go_clients/main.go")),
    ("ask.go", include_str!("go_clients/ask.go")),
    ("write.go", include_str!("go_clients/write.go")),
    ("go.mod", GO_MOD),
];

/// The client; `None`: there is no Go, or its modules cannot be had.
fn client() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(build).as_deref()
}

/// Builds it in the folder of the build, once.
fn build() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-clients");
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in SOURCES {
        std::fs::write(folder.join(name), text).expect("a file");
    }
    let mut go = Command::new("go");
    go.args(["build", "-mod=mod", "-o", "clients", "."])
        .env("GOWORK", "off")
        .current_dir(&folder);
    let output = go.output().ok()?;
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(folder.join("clients"))
}

/// The lines that the client writes when it is run with these words.
fn lines(client: &Path, words: &[&str]) -> Vec<Value> {
    let output = Command::new(client)
        .args(words)
        .output()
        .expect("the client runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).expect("lines");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// The line with a name.
fn named<'a>(lines: &'a [Value], name: &str) -> &'a Value {
    let found = lines.iter().find(|line| line["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}"))
}
