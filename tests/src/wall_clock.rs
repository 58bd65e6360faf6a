//! A wall clock that a test sets for its child processes: a library, loaded before libc, adds a number from a file. The test
//! does not touch the machine's clock.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Scratch;

/// A wall clock for child processes.
pub struct WallClock {
    shift: File,
    library: PathBuf,
    etc: PathBuf,
    // Removed last.
    _scratch: Scratch,
}

impl WallClock {
    /// A clock with the machine's time.
    pub fn new(name: &str) -> WallClock {
        let scratch = Scratch::new(name);
        let shift = File::create(scratch.path("shift")).expect("a file");
        shift.write_all_at(&[0; 4096], 0).expect("a page");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/clock_steps.c");
        let library = scratch.path("clock_steps.so");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", source, "-o"])
            .arg(&library)
            .arg(format!("-DSHIFT=\"{}\"", scratch.text("shift")))
            .status();
        assert!(built.is_ok_and(|status| status.success()), "cc {source}");
        WallClock {
            shift,
            library,
            etc: scratch.path("etc"),
            _scratch: scratch,
        }
    }

    /// Sets the clock this far ahead of the machine's.
    pub fn shift(&self, ns: i64) {
        self.shift
            .write_all_at(&ns.to_ne_bytes(), 0)
            .expect("its file");
    }

    /// Sets the clock to this second.
    pub fn set(&self, second: i64) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        let now_ns = i64::try_from(now.as_nanos()).expect("before 2262");
        self.shift(second * 1_000_000_000 - now_ns);
    }

    /// Slows the clock by a part in 2,000 for a while, as a leap smear does over a day, but faster.
    pub fn smear(&self, length: Duration) {
        for step in 0..i64::try_from(length.as_millis()).expect("a while") / 10 {
            self.shift(-step * 5_000);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A command with this clock, which its children inherit by the environment.
    pub fn command(&self, program: &std::path::Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", &self.library);
        command
    }

    /// A shell command with this clock for all its processes, whatever their environment. Needs root.
    pub fn namespace(&self, words: &str) -> Command {
        fs::create_dir_all(&self.etc).expect("a folder");
        let (etc, library) = (self.etc.display(), self.library.display());
        let script = format!(
            "cp -a /etc/. {etc} && echo {library} > {etc}/ld.so.preload && mount --bind {etc} /etc && exec {words}"
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]);
        command
    }
}
