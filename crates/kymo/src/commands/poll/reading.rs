//! Reads configurations and logs their errors.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use std::ffi::OsStr;

use kymo_base::name::DisplayName;
use kymo_poll::pages;
use kymo_rrd::zone::{unknown_own, zone};
use kymo_wire::mrtg_cfg::{Config, Files, Keyword, decoded, matching};

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
    let whole = Path::new("/").join(pattern);
    if !pattern.contains('*') {
        return vec![whole];
    }
    let found = matching(whole.as_os_str().as_bytes(), &mut Disk);
    found.iter().map(|file| path(file).to_path_buf()).collect()
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

    fn names(&mut self, folder: &[u8]) -> Vec<Vec<u8>> {
        let entries = fs::read_dir(path(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_vec()).collect()
    }

    fn is_dir(&mut self, name: &[u8]) -> bool {
        path(name).is_dir()
    }

    fn exists(&mut self, name: &[u8]) -> bool {
        path(name).exists()
    }
}
