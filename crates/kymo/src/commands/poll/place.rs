//! Where a poller's own files are: lock, pid, cache of interfaces, log. Beside the configuration, where --fhs has them,
//! in the folder of --log-dir, or where an option says.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::options::{PollOptions, beside};

/// Places of `--fhs`, each a folder with its mode and the file in it.
const FHS_PID: (&str, u32, &str) = ("/run/mrtg", 0o755, "mrtg.pid");
const FHS_CACHE: (&str, u32, &str) = ("/var/lib/mrtg", 0o750, "mrtg.ok");
const FHS_LOG: (&str, u32, &str) = ("/var/log/mrtg", 0o750, "mrtg.log");
const FHS_LOCK: (&str, u32, &str) = ("/var/lock/mrtg", 0o755, "mrtg.lck");

/// The files of a poller, as absolute paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// One for each configuration.
    pub locks: Vec<PathBuf>,
    /// Of a daemon.
    pub pid: PathBuf,
    /// Interfaces' numbers, one for each configuration.
    pub caches: Vec<PathBuf>,
    /// Messages, if they go to a file.
    pub log: Option<PathBuf>,
}

impl Places {
    /// As the options say. Folders of `--fhs` are made, and given to who the poller is to be.
    pub(super) fn of(options: &PollOptions, owner: (u32, u32)) -> Result<Places, String> {
        if options.fhs {
            for (folder, mode, _) in [FHS_PID, FHS_CACHE, FHS_LOG, FHS_LOCK] {
                make_folder(Path::new(folder), mode, owner)?;
            }
        }
        let fhs = |(folder, _, file): (&str, u32, &str)| {
            options.fhs.then(|| Path::new(folder).join(file))
        };
        let first = options.files.first().map(|file| near(options, file));
        let first = first.unwrap_or_default();
        let pid = options.pid_file.clone().or_else(|| fhs(FHS_PID));
        let locks = options.lock_file.clone().or_else(|| fhs(FHS_LOCK));
        let caches = options.cache_file.clone().or_else(|| fhs(FHS_CACHE));
        let each = |said: Option<PathBuf>, place: &dyn Fn(&Path) -> PathBuf| {
            let files = options.files.iter().enumerate();
            let places = files.map(|(number, file)| match (&said, number) {
                (Some(said), 0) => absolute(said),
                // What is said is one file, and each configuration has its own.
                (Some(said), number) => absolute(&with_ending(said, &format!(".{number}"))),
                (None, _) => absolute(&place(&near(options, file))),
            });
            places.collect()
        };
        Ok(Places {
            locks: each(locks, &|file| with_ending(file, "_l")),
            pid: absolute(&pid.unwrap_or_else(|| beside(&first, ".pid"))),
            caches: each(caches, &|file| beside(file, ".ok")),
            log: options
                .logging
                .clone()
                .or_else(|| fhs(FHS_LOG))
                .map(|file| absolute(&file)),
        })
    }

    /// Folders in which the poller makes and removes files while it runs.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let files = self
            .locks
            .iter()
            .chain(&self.caches)
            .chain([&self.pid])
            .chain(&self.log);
        let mut folders: Vec<_> = files
            .filter_map(|file| file.parent())
            .map(PathBuf::from)
            .collect();
        folders.sort();
        folders.dedup();
        folders
    }
}

/// The configuration's own place, or its name in the folder of `--log-dir`: there MRTG's files are not met.
fn near(options: &PollOptions, file: &Path) -> PathBuf {
    match (&options.log_dir, file.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => file.into(),
    }
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut text = file.as_os_str().to_owned();
    text.push(ending);
    text.into()
}

/// Without a current folder the path stays as it is.
fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.into())
}

fn make_folder(folder: &Path, mode: u32, (uid, gid): (u32, u32)) -> Result<(), String> {
    if !folder.is_dir() {
        let made = std::fs::DirBuilder::new().mode(mode).create(folder);
        made.map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    }
    // Only root can, and only root needs to.
    let _ = std::os::unix::fs::chown(folder, Some(uid), Some(gid));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(options: PollOptions) -> String {
        let options = PollOptions {
            files: vec!["/c/a.cfg".into(), "/c/b.cfg".into()],
            ..options
        };
        let places = Places::of(&options, (0, 0)).unwrap();
        let all = places
            .locks
            .iter()
            .chain([&places.pid])
            .chain(&places.caches)
            .chain(&places.log);
        let all: Vec<_> = all.map(|path| path.display().to_string()).collect();
        all.join(" ")
    }

    #[test]
    fn files_are_where_mrtg_has_them() {
        for (options, expected) in [
            (
                PollOptions::default(),
                "/c/a.cfg_l /c/b.cfg_l /c/a.pid /c/a.ok /c/b.ok",
            ),
            (
                PollOptions {
                    log_dir: Some("/d".into()),
                    logging: Some("/l/x".into()),
                    ..PollOptions::default()
                },
                "/d/a.cfg_l /d/b.cfg_l /d/a.pid /d/a.ok /d/b.ok /l/x",
            ),
            (
                PollOptions {
                    lock_file: Some("/k".into()),
                    pid_file: Some("/p".into()),
                    cache_file: Some("/o".into()),
                    ..PollOptions::default()
                },
                "/k /k.1 /p /o /o.1",
            ),
        ] {
            assert_eq!(places(options), expected);
        }
    }
}
