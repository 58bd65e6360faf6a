//! Reads configurations and logs their errors.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use std::ffi::{OsStr, OsString};

use kymo_base::name::DisplayName;
use kymo_poll::pages;
use kymo_rrd::zone::{unknown_own, zone};
use kymo_wire::mrtg_cfg::{Config, Files, Keyword, decoded};

use super::check::Debugging;
use super::log::PollLog;

/// Reads all configurations. `Err`: some cannot be used; their errors were logged.
pub(super) fn read_all(
    files: &[PathBuf],
    debugging: &Debugging,
    log: &PollLog,
) -> Result<Vec<Config>, String> {
    let mut configs = Vec::new();
    let mut problems = 0;
    for file in files {
        match debugging.run(file, &mut Disk) {
            Ok(config) => {
                say_oddities(&config, log);
                configs.push(config);
            }
            Err(found) => {
                problems += found.0.len();
                found
                    .0
                    .iter()
                    .for_each(|problem| log.say(&problem.to_string()));
            }
        }
    }
    match problems {
        0 => Ok(configs),
        _ => Err("cannot poll: the configuration has to be mended first".into()),
    }
}

/// Reads each configuration. Returns the usable ones with their indexes, and logs the errors of the
/// others.
pub(super) fn read_each(
    files: &[PathBuf],
    debugging: &Debugging,
    log: &PollLog,
) -> Vec<(usize, Config)> {
    let mut configs = Vec::new();
    for (number, file) in files.iter().enumerate() {
        match read_all(std::slice::from_ref(file), debugging, log) {
            Ok(read) => configs.extend(read.into_iter().map(|config| (number, config))),
            Err(_) => log.say(&format!(
                "cannot poll {}: it has to be mended first; then its polling begins",
                file.display()
            )),
        }
    }
    configs
}

/// Existing configurations that fit these patterns, each once. Folders and names may have `*`.
pub(crate) fn configurations(patterns: &[String]) -> Vec<PathBuf> {
    let mut known = HashSet::new();
    let found = patterns.iter().flat_map(|pattern| expand(pattern));
    found.filter(|file| known.insert(file.clone())).collect()
}

/// Files that fit an absolute pattern.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let mut found = vec![PathBuf::from("/")];
    for (place, part) in parts.iter().enumerate() {
        let is_last = place + 1 == parts.len();
        let below = |folder: PathBuf| match part.contains('*') {
            false => vec![folder.join(part)],
            true => {
                let names = Disk.glob(folder.join(part).as_os_str().as_bytes());
                let paths = names.iter().map(|name| path(name).to_path_buf());
                paths.filter(|path| is_last || path.is_dir()).collect()
            }
        };
        found = found.into_iter().flat_map(below).collect();
    }
    found
}

/// Logs parts of a configuration that do not have the effect that they seem to have.
fn say_oddities(config: &Config, log: &PollLog) {
    for warning in config.warnings() {
        log.say(warning);
    }
    for left_out in config.left_out() {
        log.say(&left_out.to_string());
    }
    let language = config.globals().language.as_deref();
    if let Some(language) = language.filter(|language| !pages::knows_language(language)) {
        let language = DisplayName(language.as_bytes());
        log.say(&format!(
            "no words of Language: {language} are known; pages are in English"
        ));
    }
    let targets = config.targets();
    let zones = targets.filter_map(|target| Some(decoded(&target.value(Keyword::Timezone)?)));
    let zones: BTreeSet<String> = zones
        .filter(|name| !["", "0"].contains(&&**name) && zone(name).is_none())
        .collect();
    for name in zones.into_iter().chain(unknown_own()) {
        let name = DisplayName(name.as_bytes());
        log.say(&format!(
            "no time zone {name} is known; its times are in UTC"
        ));
    }
    let without_effect = &config.globals().without_effect;
    if !without_effect.is_empty() {
        log.say(&format!("without effect: {}", without_effect.join(", ")));
    }
}

/// Files of this machine, as this process sees them.
pub(crate) struct Disk;

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

impl Files for Disk {
    fn read(&mut self, name: &[u8]) -> Result<Vec<u8>, String> {
        fs::read(path(name)).map_err(|error| error.to_string())
    }

    fn is_readable(&mut self, name: &[u8]) -> bool {
        fs::File::open(path(name)).is_ok()
    }

    fn glob(&mut self, pattern: &[u8]) -> Vec<Vec<u8>> {
        let pattern = path(pattern);
        let folder = pattern.parent().unwrap_or(Path::new("."));
        let (Some(wanted), Ok(entries)) = (pattern.file_name(), fs::read_dir(folder)) else {
            return Vec::new();
        };
        let matches = |name: &OsString| {
            let pieces: Vec<_> = wanted.as_bytes().split(|&byte| byte == b'*').collect();
            fits(name.as_bytes(), &pieces)
        };
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
        let found = names.filter(matches).map(|name| folder.join(name));
        let mut found: Vec<_> = found.map(|path| path.into_os_string().into_vec()).collect();
        // In the order of Perl's sort.
        found.sort_by_cached_key(|name| (name.to_ascii_lowercase(), name.clone()));
        found
    }

    fn is_dir(&mut self, name: &[u8]) -> bool {
        path(name).is_dir()
    }

    fn exists(&mut self, name: &[u8]) -> bool {
        path(name).exists()
    }
}

/// True if the name consists of the pieces in their order, the first at its begin and the last at its
/// end, with any text between them.
fn fits(name: &[u8], pieces: &[&[u8]]) -> bool {
    match pieces {
        [] => true,
        [only] => name == *only,
        [first, rest @ ..] => name
            .strip_prefix(*first)
            .is_some_and(|name| (0..=name.len()).any(|skipped| fits(&name[skipped..], rest))),
    }
}
