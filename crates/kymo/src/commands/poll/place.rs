//! Paths of a poller's own files: lock, pid file, cache of interfaces, log. They are beside the configuration, in the
//! folders of --fhs, in the folder of --log-dir, in that of kymo serve, or where an option says.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use kymo_sys::sure_folder::SureFolder;

use super::options::{PollOptions, beside};

/// Places of `--fhs`, each a folder with its mode and the file in it.
const FHS_PID: (&str, u32, &str) = ("/run/mrtg", 0o755, "mrtg.pid");
const FHS_CACHE: (&str, u32, &str) = ("/var/lib/mrtg", 0o750, "mrtg.ok");
const FHS_LOG: (&str, u32, &str) = ("/var/log/mrtg", 0o750, "mrtg.log");
const FHS_LOCK: (&str, u32, &str) = ("/var/lock/mrtg", 0o755, "mrtg.lck");

/// The files of a poller, as absolute paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// Name of each configuration's series and descriptions; no two are the same.
    pub names: Vec<String>,
    /// Locks, one for each configuration.
    pub locks: Vec<PathBuf>,
    /// Pid file of a daemon.
    pub pid: PathBuf,
    /// Files for interfaces' numbers, one for each configuration.
    pub caches: Vec<PathBuf>,
    /// File for messages; `None`: they go elsewhere.
    pub log: Option<PathBuf>,
}

impl Places {
    /// Paths by the options. Makes the folders of `--fhs`, and gives them to the poller's user and group.
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
        let names = names(&options.files);
        let each = |configured: Option<PathBuf>, ending: &str, place: &dyn Fn(&Path) -> PathBuf| {
            let files = options.files.iter().zip(&names).enumerate();
            let places = files.map(|(number, (file, name))| {
                absolute(&match (&configured, number, &options.descriptions) {
                    (Some(configured), 0, _) => configured.clone(),
                    // Each configuration gets a file of its own.
                    (Some(configured), number, _) => with_ending(configured, &format!(".{number}")),
                    (None, _, Some(folder)) => folder.join(format!("{name}{ending}")),
                    (None, _, None) => place(&near(options, file)),
                })
            });
            places.collect()
        };
        Ok(Places {
            locks: each(locks, ".lock", &|file| with_ending(file, "_l")),
            pid: absolute(&pid.unwrap_or_else(|| beside(&first, ".pid"))),
            caches: each(caches, ".ok", &|file| beside(file, ".ok")),
            log: options
                .logging
                .clone()
                .or_else(|| fhs(FHS_LOG))
                .map(|file| absolute(&file)),
            names,
        })
    }

    /// Keeps the paths of the configurations with these indexes.
    pub(super) fn keep(&mut self, numbers: &[usize]) {
        let of = |all: &[PathBuf]| numbers.iter().map(|&number| all[number].clone()).collect();
        (self.locks, self.caches) = (of(&self.locks), of(&self.caches));
        let names = numbers.iter().map(|&number| self.names[number].clone());
        self.names = names.collect();
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

/// Names of the configurations: file names without the part after the last dot, and with that of the folder if an
/// earlier one has the same name.
pub(crate) fn names(files: &[PathBuf]) -> Vec<String> {
    let text = |part: Option<&std::ffi::OsStr>| {
        let part = part.unwrap_or_default();
        part.to_string_lossy().into_owned()
    };
    let mut known = HashSet::new();
    let name = |file: &PathBuf| {
        let stem = text(file.file_stem());
        let folder = text(file.parent().and_then(Path::file_name));
        let longer = (1..).map(|number| match number {
            1 => format!("{stem}@{folder}"),
            number => format!("{stem}@{folder}{number}"),
        });
        let mut free = std::iter::once(stem.clone()).chain(longer);
        free.find(|name| known.insert(name.clone()))
            .unwrap_or(stem.clone())
    };
    files.iter().map(name).collect()
}

/// The configuration's own path, or its name in the folder of `--log-dir`, where no files of MRTG are in the way.
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

/// Absolute path of a file. Without a current folder the path stays as it is.
fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.into())
}

fn make_folder(folder: &Path, mode: u32, (uid, gid): (u32, u32)) -> Result<(), String> {
    let made = SureFolder::make(folder, mode, &[uid]).and_then(|made| {
        made.trust(&[uid])?;
        made.give(uid, gid)
    });
    made.map_err(|error| format!("cannot make {}: {error}", folder.display()))
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
    fn a_folder_is_given_to_its_user_and_nothing_behind_a_link() {
        use std::os::unix::fs::{MetadataExt, chown, symlink};
        let top = PathBuf::from(format!("/run/kymo-place-{}", std::process::id()));
        if !kymo_sys::machine::is_root() || std::fs::create_dir(&top).is_err() {
            kymo_sys::skipped::skipped("not root");
            return;
        }
        let user = (1, 1);
        for (name, owner) in [("victim", 0), ("theirs", 1)] {
            std::fs::create_dir(top.join(name)).unwrap();
            chown(top.join(name), Some(owner), Some(owner)).unwrap();
        }
        symlink(top.join("victim"), top.join("theirs/mrtg")).unwrap();
        for (name, owner) in [
            ("mrtg", Some(1)),
            ("theirs/new", Some(1)),
            ("theirs/mrtg", None),
        ] {
            let made = make_folder(&top.join(name), 0o755, user);
            let found = made.map(|()| std::fs::metadata(top.join(name)).unwrap().uid());
            assert_eq!(found.clone().ok(), owner, "{name}: {found:?}");
        }
        assert_eq!(std::fs::metadata(top.join("victim")).unwrap().uid(), 0);
        std::fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn two_files_of_one_name_have_names_of_their_own() {
        let files = [
            "/a/r.cfg",
            "/b/r.cfg",
            "/c/b/r.cfg",
            "/b/s.cfg",
            "/r@b.cfg",
            "/a/r.cfg",
        ];
        let names = names(&files.map(PathBuf::from));
        assert_eq!(names, ["r", "r@b", "r@b2", "s", "r@b@", "r@a"]);
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
            (
                PollOptions {
                    descriptions: Some("/d".into()),
                    ..PollOptions::default()
                },
                "/d/a.lock /d/b.lock /c/a.pid /d/a.ok /d/b.ok",
            ),
        ] {
            assert_eq!(places(options), expected);
        }
    }
}
