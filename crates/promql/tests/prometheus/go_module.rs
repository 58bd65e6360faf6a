//! The Go module of Prometheus.

use std::path::PathBuf;
use std::process::Command;

/// The newest version that has been compared.
pub(crate) const VERSION: &str = "github.com/prometheus/prometheus@v0.316.0";

/// Where its files are; `None`: there is no Go, or no such module to be had.
pub(crate) fn folder() -> Option<PathBuf> {
    let found = download();
    if found.is_none() {
        kymo_sys::skipped::not_fetched(&format!("Go, or {VERSION},"));
    }
    found
}

fn download() -> Option<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", VERSION])
        .current_dir(std::env::temp_dir())
        .output()
        .ok()?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(PathBuf::from(answer["Dir"].as_str()?))
}
