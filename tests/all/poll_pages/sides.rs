//! Both programs with one configuration, each with a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use kymo_tests::kymo;

use crate::poll_commands::Folder;

/// Runs of both programs with a configuration, in which `WORK` stands for the folder of each. Root's commands are run from there.
pub(crate) struct Sides {
    folder: Folder,
    pub(crate) ours: PathBuf,
    pub(crate) theirs: PathBuf,
}

impl Sides {
    pub(crate) fn run(name: &str, config: &str, prepare: impl Fn(&Path)) -> Sides {
        let folder = Folder::new(name);
        let [ours, theirs] = ["ours", "theirs"].map(|side| folder.path(side));
        let sides = Sides {
            folder,
            ours,
            theirs,
        };
        for work in [&sides.theirs, &sides.ours] {
            std::fs::create_dir_all(work).expect("a folder");
            prepare(work);
        }
        sides.start(Command::new("/usr/bin/mrtg"), "theirs", config);
        sides.again(config);
        sides
    }

    /// Runs kymo with another configuration; returns messages and exit code.
    pub(crate) fn again(&self, config: &str) -> (String, Option<i32>) {
        let mut command = Command::new(kymo());
        command.arg("poll");
        self.start(command, "ours", config)
    }

    fn start(&self, mut command: Command, side: &str, config: &str) -> (String, Option<i32>) {
        let work = self.folder.path(side);
        let place = self.folder.path(&format!("{side}-cfg"));
        std::fs::create_dir_all(&place).expect("a folder");
        let file = place.join("m.cfg");
        let text = config.replace("WORK", work.to_str().expect("a path"));
        std::fs::write(&file, text).expect("a configuration");
        let command = command.arg(&file).env("LANG", "C").env("TZ", "UTC");
        let output = command.output().expect("it is started");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{side}: {said}");
        (said, output.status.code())
    }

    /// A file of both.
    pub(crate) fn texts(&self, name: &str) -> [String; 2] {
        [&self.ours, &self.theirs].map(|work| {
            let text = std::fs::read(work.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
            String::from_utf8_lossy(&text).into_owned()
        })
    }
}
