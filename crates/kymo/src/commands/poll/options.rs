//! The command line: MRTG's options, read as Getopt::Long reads them, and kymo's own. Names may be shortened as long as
//! MRTG would find one option only.

use std::path::PathBuf;

use kymo_base::name::DisplayName;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Configuration that is used without a file on the command line, if it exists.
const DEFAULT_FILE: &str = "/etc/mrtg/mrtg.cfg";

/// The words of the command line, of which only the form was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PollOptions {
    /// Configurations.
    pub files: Vec<PathBuf>,
    /// User to run as.
    pub user: Option<String>,
    /// Group to run in.
    pub group: Option<String>,
    /// `--lock-file`
    pub lock_file: Option<PathBuf>,
    /// `--confcache-file`
    pub cache_file: Option<PathBuf>,
    /// `--logging`
    pub logging: Option<PathBuf>,
    /// `--pid-file`
    pub pid_file: Option<PathBuf>,
    /// `--debug`, word by word.
    pub debug: Vec<String>,
    /// `--daemon`
    pub daemon: bool,
    /// `--fhs`
    pub fhs: bool,
    /// `--check`
    pub check: bool,
    /// `--log-only`: no graphs and no pages.
    pub log_only: bool,
    /// `--pages`: graphs and pages beside .rrd files, too.
    pub pages: bool,
    /// Replaces LogDir of the configuration.
    pub log_dir: Option<PathBuf>,
    /// Asks all devices at once, as MRTG does.
    pub burst: bool,
    /// Whole seconds as stamps, as MRTG has them.
    pub integer_stamps: bool,
    /// The keeper's socket for writing.
    pub keeper: Option<PathBuf>,
    /// Base folder of the names of the keeper's files.
    pub base: Option<PathBuf>,
    /// Folder for descriptions of targets, which the page of kymo serve reads.
    pub descriptions: Option<PathBuf>,
    /// Polls for ever in the foreground.
    pub foreground: bool,
    /// Writes `.rrd` files on demand and not in each cycle.
    pub on_demand: bool,
    /// Lets `--debug` show communities.
    pub secrets: bool,
    /// `--help`
    pub help: bool,
}

/// An option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    User,
    Group,
    LockFile,
    CacheFile,
    Logging,
    Check,
    Fhs,
    Daemon,
    PidFile,
    Debug,
    LogOnly,
    LogDir,
    Pages,
    Burst,
    IntegerStamps,
    Keeper,
    Base,
    Descriptions,
    Foreground,
    Files,
    Secrets,
    Help,
}

/// An option's word, true if a value follows, and the option.
type Known = (&'static str, bool, Name);

const MRTGS: &[Known] = &[
    ("user", true, Name::User),
    ("group", true, Name::Group),
    ("lock-file", true, Name::LockFile),
    ("confcache-file", true, Name::CacheFile),
    ("logging", true, Name::Logging),
    ("check", false, Name::Check),
    ("fhs", false, Name::Fhs),
    ("daemon", false, Name::Daemon),
    ("pid-file", true, Name::PidFile),
    ("debug", true, Name::Debug),
    ("log-only", false, Name::LogOnly),
];

const OWN: &[Known] = &[
    ("log-dir", true, Name::LogDir),
    ("pages", false, Name::Pages),
    ("burst", false, Name::Burst),
    ("integer-stamps", false, Name::IntegerStamps),
    ("keeper", true, Name::Keeper),
    ("base", true, Name::Base),
    ("descriptions", true, Name::Descriptions),
    ("foreground", false, Name::Foreground),
    ("files", true, Name::Files),
    ("secrets", false, Name::Secrets),
    ("help", false, Name::Help),
];

/// Text of `--help`.
pub(super) const HELP: &str = "\
Usage: kymo poll [OPTION]... [CONFIGURATION]...

Polls what an mrtg.cfg says, as MRTG would: once, or for ever with --daemon or RunAsDaemon. Without a configuration
/etc/mrtg/mrtg.cfg is taken. Exit codes: 0, 91 (some targets have no value), 92 (none has), 2 (cannot run).

MRTG's options:
  --check               read the configuration, say what is wrong with it, and end
  --daemon              go on for ever, in the background
  --user NAME, --group NAME
                        as whom to run; the user's own group without --group
  --logging FILE        where messages go
  --pid-file FILE       of the daemon
  --lock-file FILE      one process at a time polls a configuration
  --confcache-file FILE where interfaces' numbers are kept
  --fhs                 these four below /run, /var/lib, /var/lock and /var/log
  --debug WORD,...      print what was read of the configuration (cfg, tarp, snpo ...)
  --log-only            no graphs and pages beside .log files

Others:
  --bill, --index, --neighbours  95th percentiles of a month, a page of all graphs, LLDP: see kymo poll --bill --help
  --log-dir DIR         write there instead of to the configuration's LogDir, with lock, pid and cache: beside MRTG
  --pages               graphs and pages beside .rrd files, too
  --burst               ask all devices at once, as MRTG does; else a daemon spreads them over the interval
  --integer-stamps      stamp values with whole seconds, as MRTG does
  --foreground          go on for ever, and stay in the foreground
  --keeper SOCKET       store values with a running kymo serve (keeper-write.sock in its folder)
  --base DIR            its folder of .rrd files: names of a LogDir below it are the same there
  --descriptions DIR    write there what its page has to know of targets
  --files current|ask   write .rrd files each cycle (default), or when they are asked for
  --secrets             show communities in what --debug prints
";

/// Reads the words after the program's name; `Err`: a line about the error.
pub(super) fn read(words: Vec<OsString>) -> Result<PollOptions, String> {
    let mut options = PollOptions::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        match bytes {
            b"--" => {
                options.files.extend(words.by_ref().map(PathBuf::from));
            }
            // A lone dash is standard input.
            b"-" => options.files.push("-".into()),
            [b'-', b'-', rest @ ..] | [b'-', rest @ ..] => options.take(rest, &mut words)?,
            _ => options.files.push(word.into()),
        }
    }
    if options.files.is_empty() && PathBuf::from(DEFAULT_FILE).exists() {
        options.files.push(DEFAULT_FILE.into());
    }
    Ok(options)
}

impl PollOptions {
    /// True if `kymo serve` started this process: it polls all configurations, and serve starts it again when it ends.
    pub(super) fn is_served(&self) -> bool {
        self.descriptions.is_some() && self.foreground && !self.check
    }

    fn take(
        &mut self,
        word: &[u8],
        words: &mut impl Iterator<Item = OsString>,
    ) -> Result<(), String> {
        let (name, value) = match word.iter().position(|&byte| byte == b'=') {
            Some(at) => (&word[..at], Some(word[at + 1..].to_vec())),
            None => (word, None),
        };
        let shown = DisplayName(name);
        let &(known, takes_value, name) = find(name)?;
        let value = match (takes_value, value) {
            (true, Some(value)) => OsString::from_vec(value),
            (true, None) => words
                .next()
                .ok_or(format!("cannot use --{known}: its value is missing"))?,
            (false, Some(_)) => return Err(format!("cannot use --{shown}: it takes no value")),
            (false, None) => OsString::new(),
        };
        self.set(name, value)
    }

    fn set(&mut self, name: Name, value: OsString) -> Result<(), String> {
        let text = || value.to_string_lossy().into_owned();
        let path = || Some(PathBuf::from(&value));
        match name {
            Name::User => self.user = Some(text()),
            Name::Group => self.group = Some(text()),
            Name::LockFile => self.lock_file = path(),
            Name::CacheFile => self.cache_file = path(),
            Name::Logging => self.logging = path(),
            Name::PidFile => self.pid_file = path(),
            Name::Check => self.check = true,
            Name::Fhs => self.fhs = true,
            Name::Daemon => self.daemon = true,
            Name::LogOnly => self.log_only = true,
            Name::Debug => {
                let words = text();
                self.debug = words.split(',').map(|word| word.trim().into()).collect();
            }
            Name::LogDir => self.log_dir = path(),
            Name::Base => self.base = path(),
            Name::Descriptions => self.descriptions = path(),
            Name::Foreground => self.foreground = true,
            Name::Pages => self.pages = true,
            Name::Burst => self.burst = true,
            Name::IntegerStamps => self.integer_stamps = true,
            Name::Keeper => self.keeper = path(),
            Name::Files => {
                self.on_demand = match value.as_bytes() {
                    b"current" => false,
                    b"ask" => true,
                    _ => return Err("cannot use --files: it takes current or ask".into()),
                }
            }
            Name::Secrets => self.secrets = true,
            Name::Help => self.help = true,
        }
        Ok(())
    }
}

/// Finds an option by its name, in upper or lower case, possibly shortened: MRTG's options come first.
fn find(name: &[u8]) -> Result<&'static Known, String> {
    let shown = DisplayName(name);
    let begins = |known: &&Known| {
        let word = known.0.as_bytes();
        word.get(..name.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    };
    for table in [MRTGS, OWN] {
        let mut found: Vec<_> = table.iter().filter(begins).collect();
        if let Some(at) = found.iter().position(|known| known.0.len() == name.len()) {
            found = vec![found[at]];
        }
        match found[..] {
            [] => {}
            [known] => return Ok(known),
            _ => {
                let words: Vec<_> = found.iter().map(|known| known.0).collect();
                let words = words.join(", ");
                return Err(format!("cannot use --{shown}: it may be {words}"));
            }
        }
    }
    Err(format!("cannot use --{shown}: no such option"))
}

/// Path of a file next to the configuration: its name without the part after the last dot, and `ending`.
pub(super) fn beside(file: &std::path::Path, ending: &str) -> PathBuf {
    let text = file.as_os_str().as_bytes();
    let slash = text
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |at| at + 1);
    let dot = text[slash..].iter().rposition(|&byte| byte == b'.');
    // A dot at the end stays.
    let dot = dot.map(|at| slash + at).filter(|&at| at + 1 < text.len());
    let stem = &text[..dot.unwrap_or(text.len())];
    PathBuf::from(OsStr::from_bytes(&[stem, ending.as_bytes()].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options_of(line: &str) -> Result<PollOptions, String> {
        read(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn options_are_read_as_mrtg_reads_them() {
        let some = |text: &str| Some(text.to_string());
        for (line, expected) in [
            (
                "a.cfg --check",
                PollOptions {
                    check: true,
                    ..PollOptions::default()
                },
            ),
            (
                "--DAEMON a.cfg -fhs",
                PollOptions {
                    daemon: true,
                    fhs: true,
                    ..PollOptions::default()
                },
            ),
            (
                "--user=me --group us a.cfg",
                PollOptions {
                    user: some("me"),
                    group: some("us"),
                    ..PollOptions::default()
                },
            ),
            (
                "--u me a.cfg --f",
                PollOptions {
                    user: some("me"),
                    fhs: true,
                    ..PollOptions::default()
                },
            ),
            (
                "--log-o a.cfg",
                PollOptions {
                    log_only: true,
                    ..PollOptions::default()
                },
            ),
            (
                "--debug=cfg,tarp a.cfg",
                PollOptions {
                    debug: vec!["cfg".into(), "tarp".into()],
                    ..PollOptions::default()
                },
            ),
            (
                "--logg --check a.cfg",
                PollOptions {
                    logging: Some("--check".into()),
                    ..PollOptions::default()
                },
            ),
            (
                "--log-d x --files=ask a.cfg",
                PollOptions {
                    log_dir: Some("x".into()),
                    on_demand: true,
                    ..PollOptions::default()
                },
            ),
            ("-- a.cfg", PollOptions::default()),
        ] {
            let expected = PollOptions {
                files: vec!["a.cfg".into()],
                ..expected
            };
            assert_eq!(options_of(line), Ok(expected), "{line}");
        }
        assert_eq!(options_of("--check -").unwrap().files, [PathBuf::from("-")]);
        assert_eq!(
            options_of("-- --check b").unwrap().files,
            [PathBuf::from("--check"), "b".into()]
        );
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        for (line, error) in [
            ("--gibberish", "cannot use --gibberish: no such option"),
            (
                "--l x",
                "cannot use --l: it may be lock-file, logging, log-only",
            ),
            ("--d", "cannot use --d: it may be daemon, debug"),
            ("--check=1", "cannot use --check: it takes no value"),
            ("a.cfg --user", "cannot use --user: its value is missing"),
            (
                "--files sometimes",
                "cannot use --files: it takes current or ask",
            ),
        ] {
            assert_eq!(options_of(line).unwrap_err(), error, "{line}");
        }
    }

    #[test]
    fn files_have_their_places_beside_the_configuration() {
        for (file, pid) in [
            ("/a/b.cfg", "/a/b.pid"),
            ("b", "b.pid"),
            ("a.d/b", "a.d/b.pid"),
            ("a.d/b.c.cfg", "a.d/b.c.pid"),
            ("a/.cfg", "a/.pid"),
            ("a/b.", "a/b..pid"),
        ] {
            assert_eq!(beside(file.as_ref(), ".pid"), PathBuf::from(pid), "{file}");
        }
    }
}
