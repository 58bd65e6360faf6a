//! Both programs with one configuration, each with a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use kymo_tests::kymo;
use kymo_wire::mrtg_cfg::decoded;

use crate::poll_commands::Folder;

const KYMO_POLL: &str = "\"$KYMO_BUILT\" poll";

/// Runs of both programs with a umask of 027 and a configuration, in which `WORK` stands for the folder of each. Root's commands are run from
/// there.
pub(crate) struct Sides {
    folder: Folder,
    pub(crate) ours: PathBuf,
    pub(crate) theirs: PathBuf,
}

impl Sides {
    pub(crate) fn run(name: &str, config: &str, prepare: impl Fn(&Path)) -> Sides {
        let (sides, outcomes) = Sides::outcomes(name, config, prepare);
        for (said, code) in outcomes {
            assert_eq!(code, Some(0), "{said}");
        }
        sides
    }

    /// As [`Sides::run`]; also messages and exit codes of kymo and of MRTG.
    pub(crate) fn outcomes(
        name: &str,
        config: &str,
        prepare: impl Fn(&Path),
    ) -> (Sides, [(String, Option<i32>); 2]) {
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
        let outcomes = sides.both(config);
        (sides, outcomes)
    }

    /// Runs both with another configuration.
    pub(crate) fn both(&self, config: &str) -> [(String, Option<i32>); 2] {
        let theirs = self.start("/usr/bin/mrtg", "theirs", config);
        [self.start(KYMO_POLL, "ours", config), theirs]
    }

    /// Runs kymo with another configuration; returns messages and exit code.
    pub(crate) fn again(&self, config: &str) -> (String, Option<i32>) {
        let outcome = self.start(KYMO_POLL, "ours", config);
        assert_eq!(outcome.1, Some(0), "{}", outcome.0);
        outcome
    }

    /// The configuration of a side.
    pub(crate) fn config(&self, side: &str) -> PathBuf {
        self.folder.path(&format!("{side}-cfg/m.cfg"))
    }

    fn start(&self, program: &str, side: &str, config: &str) -> (String, Option<i32>) {
        let work = self.folder.path(side);
        let file = self.config(side);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        let text = config.replace("WORK", work.to_str().expect("a path"));
        std::fs::write(&file, text).expect("a configuration");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask 027; exec {program} \"$1\""), "sh"]);
        let command = command.arg(&file).env("KYMO_BUILT", kymo());
        let output = command.env("LANG", "C").env("TZ", "UTC").output();
        let output = output.expect("it is started");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (said, output.status.code())
    }

    /// A file of both.
    pub(crate) fn texts(&self, name: &str) -> [String; 2] {
        [&self.ours, &self.theirs].map(|work| {
            let text = std::fs::read(work.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
            decoded(&text)
        })
    }
}
