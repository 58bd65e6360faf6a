//! Source packages of peers, for their test scripts: fetched once from the archive of this machine's packages, kept
//! below `target/peers`, never part of this project. Nothing on the machine is changed: apt works in its own folders.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The unpacked source of this Debian release's package. Fetches it the first time.
pub fn source_package(name: &str) -> PathBuf {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers");
    let kept = peers.join(name);
    make_folder(&peers);
    let lock = File::create(peers.join(format!("{name}.lock")));
    let lock = lock.unwrap_or_else(|why| cannot("lock", &why));
    lock.lock().unwrap_or_else(|why| cannot("lock", &why));
    if !kept.is_dir() {
        let work = peers.join(format!("{name}.new"));
        // Removes the rest of an interrupted fetch.
        let _ = fs::remove_dir_all(&work);
        fetch(name, &work);
        let renamed = fs::rename(work.join("tree"), &kept);
        renamed.unwrap_or_else(|why| cannot("keep", &why));
        let _ = fs::remove_dir_all(&work);
    }
    kept.canonicalize()
        .unwrap_or_else(|why| cannot("find", &why))
}

/// Downloads below `work` and unpacks into `work/tree`.
fn fetch(name: &str, work: &Path) {
    for folder in ["lists/partial", "cache/archives/partial", "parts", "tree"] {
        make_folder(&work.join(folder));
    }
    let stanzas = source_stanzas(&machine_sources(), &codename());
    assert!(
        !stanzas.is_empty(),
        "cannot fetch {name}'s source: no entry for {} in /etc/apt",
        codename()
    );
    let parts = work.join("parts/package.sources");
    fs::write(parts, stanzas).unwrap_or_else(|why| cannot("write apt's sources for", &why));
    apt_get(work, &["update"]);
    apt_get(work, &["source", "--download-only", name]);
    let names = fs::read_dir(work)
        .unwrap_or_else(|why| cannot("list", &why))
        .flatten();
    let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let archive = names.find(|name| name.contains(".orig.tar."));
    let archive = archive.expect("the package has an .orig.tar");
    let tar = ["--strip-components=1", "-C", "tree", "-xf", &archive];
    run(Command::new("tar").args(tar).current_dir(work));
}

fn apt_get(work: &Path, words: &[&str]) {
    let at = |what: &str, path: &str| format!("{what}={}", work.join(path).display());
    let mut command = Command::new("apt-get");
    command.arg("-qq").current_dir(work);
    for setting in [
        "Dir::Etc::sourcelist=/dev/null".to_string(),
        at("Dir::Etc::sourceparts", "parts"),
        at("Dir::State::lists", "lists"),
        at("Dir::Cache", "cache"),
        // The folder may be one that apt's own user cannot enter.
        "APT::Sandbox::User=root".to_string(),
        "Acquire::Retries=3".to_string(),
    ] {
        command.args(["-o", &setting]);
    }
    run(command.args(words));
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|why| cannot("fetch", &format!("{command:?}: {why}")));
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        cannot(
            "fetch",
            &format!("{command:?}: {}: {message}", output.status),
        )
    }
}

fn make_folder(path: &Path) {
    fs::create_dir_all(path).unwrap_or_else(|why| cannot("make a folder for", &why));
}

fn cannot(verb: &str, why: &dyn std::fmt::Display) -> ! {
    panic!("cannot {verb} a source package: {why}")
}

/// The release's name, by which archives are organized.
fn codename() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    name.unwrap_or_default().trim_matches('"').to_string()
}

/// Names and texts of all files that apt reads.
fn machine_sources() -> Vec<(String, String)> {
    let parts = fs::read_dir("/etc/apt/sources.list.d");
    let parts = parts.into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = parts.map(|entry| entry.path()).collect();
    paths.push("/etc/apt/sources.list".into());
    let read = |path: PathBuf| Some((path.to_str()?.to_string(), fs::read_to_string(&path).ok()?));
    paths.into_iter().filter_map(read).collect()
}

/// Entries for `codename`'s main archive, in either of apt's two forms, changed to entries for its sources.
fn source_stanzas(files: &[(String, String)], codename: &str) -> String {
    let stanzas = files.iter().flat_map(|(name, text)| {
        if name.ends_with(".sources") {
            let whole = text.replace('\r', "");
            let stanzas = whole
                .split("\n\n")
                .filter_map(|stanza| of_stanza(stanza, codename));
            stanzas.collect::<Vec<String>>()
        } else {
            let lines = text.lines().filter_map(|line| of_line(line, codename));
            lines.collect()
        }
    });
    stanzas.collect::<Vec<String>>().join("\n")
}

/// A stanza for sources: all fields stay (a key may be among them) except for its type.
fn of_stanza(stanza: &str, codename: &str) -> Option<String> {
    let lines = || stanza.lines().filter(|line| !line.starts_with('#'));
    let field = |name: &str| {
        let mut values = lines().filter_map(|line| line.split_once(':'));
        values.find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value.trim()))
    };
    let has = |name: &str, word: &str| field(name)?.split_whitespace().find(|each| *each == word);
    if field("Enabled").is_some_and(|value| value.eq_ignore_ascii_case("no")) {
        return None;
    }
    has("Suites", codename)?;
    has("Components", "main")?;
    has("Types", "deb")?;
    let rest = lines().filter(|line| {
        let key = line.split(':').next().unwrap_or_default();
        !["types", "suites", "components", "architectures"]
            .contains(&key.to_ascii_lowercase().as_str())
    });
    let rest: String = rest.map(|line| format!("{line}\n")).collect();
    Some(format!("{}{rest}", for_sources(codename)))
}

/// An entry from a line `deb [signed-by=KEY arch=amd64] URI SUITE COMPONENT...`.
fn of_line(line: &str, codename: &str) -> Option<String> {
    let rest = line
        .trim()
        .strip_prefix("deb")?
        .strip_prefix([' ', '\t'])?
        .trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    if suite != codename || !words.any(|word| word == "main") {
        return None;
    }
    let mut options = options.split_whitespace();
    let key = options.find_map(|option| option.strip_prefix("signed-by="));
    let key = key.map_or(String::new(), |key| format!("Signed-By: {key}\n"));
    Some(format!("{}URIs: {uri}\n{key}", for_sources(codename)))
}

fn for_sources(codename: &str) -> String {
    format!("Types: deb-src\nSuites: {codename}\nComponents: main\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Types: deb-src\nSuites: bookworm\nComponents: main\n";

    #[test]
    fn both_forms_of_a_source_become_one() {
        for (name, text, want) in [
            (
                "a.list",
                "deb http://m/debian bookworm main contrib\n",
                "URIs: http://m/debian\n",
            ),
            (
                "sources.list",
                "# deb http://old bookworm main\ndeb [arch=amd64 signed-by=/k.gpg] http://m/ bookworm main\n",
                "URIs: http://m/\nSigned-By: /k.gpg\n",
            ),
            (
                "d.sources",
                "Types: deb\n# a word\nURIs: http://m/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By:\n -----BEGIN\n .\n x\n",
                "URIs: http://m/debian\nSigned-By:\n -----BEGIN\n .\n x\n",
            ),
        ] {
            let files = [(name.to_string(), text.to_string())];
            let got = source_stanzas(&files, "bookworm");
            assert_eq!(got, format!("{HEAD}{want}"), "{name}");
        }
    }

    #[test]
    fn others_archives_are_left_alone() {
        for (name, text) in [
            ("a.list", "deb http://c cloud-sdk-bookworm main\n"),
            ("a.list", "deb-src http://m bookworm main\n"),
            ("a.list", "deb http://m bookworm contrib\n"),
            (
                "d.sources",
                "Types: deb\nURIs: http://m\nSuites: bookworm-security\nComponents: main\n",
            ),
            (
                "d.sources",
                "Enabled: no\nTypes: deb\nURIs: http://m\nSuites: bookworm\nComponents: main\n",
            ),
        ] {
            let files = [(name.to_string(), text.to_string())];
            assert_eq!(source_stanzas(&files, "bookworm"), "", "{text}");
        }
    }
}
