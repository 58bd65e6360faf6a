//! Lists the files of the page, which are built in.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("assets");
    println!("cargo:rerun-if-changed=assets");
    let mut found = Vec::new();
    list(&root, &mut found)?;
    found.sort();
    let mut text = String::from("[\n");
    for path in &found {
        let name = path
            .strip_prefix(&root)
            .unwrap_or(path)
            .display()
            .to_string();
        let path = path.display().to_string();
        text.push_str(&format!(
            "    ({name:?}, include_bytes!({path:?}) as &[u8]),\n"
        ));
    }
    text.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("assets.rs"), text)
}

fn list(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => {
                println!("cargo:rerun-if-changed={}", path.display());
                list(&path, found)?;
            }
            false => found.push(path),
        }
    }
    Ok(())
}
