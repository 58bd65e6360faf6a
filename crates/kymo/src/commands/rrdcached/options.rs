//! The daemon's command line: all options of rrdcached 1.7.2 to 1.9, with its messages and exit codes, and
//! options of kymo's own.

use kymo_base::errno::strerror;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kymo_ingest::rrdcached as daemon;
use kymo_rrd::options::{self, Known, Piece, Takes};
use kymo_rrd::spec;
use kymo_store::Files;
use kymo_sys::privilege::{self, Account};
use kymo_sys::sure_folder::SureFolder;
use kymo_wire::rrdcached::{Permissions, atoi};

/// Address without `-l`. `PID_FILE`: pid file without `-p`.
const ADDRESS_DEFAULT: &str = "unix:/tmp/rrdcached.sock";
const PID_FILE: &str = "/var/run/rrdcached.pid";
/// A long name that cannot be typed.
const UNNAMED: &str = "\0";
/// Numbers in place of letters, for options without letters.
const DURABLE: u8 = 1;
const FILES: u8 = 2;
const STORE_BYTES: u8 = 3;
const MAX_SERIES: u8 = 4;
const MAX_NEW: u8 = 5;
/// Value of `--files` by default.
const FILES_AFTER: Files = Files::After(Duration::from_secs(7 * 86_400));

const KNOWN: &[Known] = &[
    (UNNAMED, b'a', Takes::Argument),
    (UNNAMED, b'B', Takes::Nothing),
    (UNNAMED, b'b', Takes::Argument),
    (UNNAMED, b'F', Takes::Nothing),
    (UNNAMED, b'f', Takes::Argument),
    (UNNAMED, b'g', Takes::Nothing),
    (UNNAMED, b'G', Takes::Argument),
    ("help", b'h', Takes::Nothing),
    (UNNAMED, b'j', Takes::Argument),
    (UNNAMED, b'L', Takes::Nothing),
    (UNNAMED, b'l', Takes::Argument),
    (UNNAMED, b'm', Takes::Argument),
    (UNNAMED, b'O', Takes::Nothing),
    (UNNAMED, b'o', Takes::Argument),
    (UNNAMED, b'P', Takes::Argument),
    (UNNAMED, b'p', Takes::Argument),
    (UNNAMED, b'R', Takes::Nothing),
    (UNNAMED, b's', Takes::Argument),
    (UNNAMED, b't', Takes::Argument),
    (UNNAMED, b'U', Takes::Argument),
    (UNNAMED, b'V', Takes::Argument),
    (UNNAMED, b'w', Takes::Argument),
    (UNNAMED, b'z', Takes::Argument),
    ("durable", DURABLE, Takes::Nothing),
    ("files", FILES, Takes::Argument),
    ("store-bytes", STORE_BYTES, Takes::Argument),
    ("max-series", MAX_SERIES, Takes::Argument),
    ("max-new", MAX_NEW, Takes::Argument),
];

/// syslog's names of severities, worst first.
const LEVELS: [&str; 8] = [
    "LOG_EMERG",
    "LOG_ALERT",
    "LOG_CRIT",
    "LOG_ERR",
    "LOG_WARNING",
    "LOG_NOTICE",
    "LOG_INFO",
    "LOG_DEBUG",
];
const LOG_ERR: u32 = 3;

/// A socket to open, with the permissions of its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The address as on the command line.
    pub text: Vec<u8>,
    /// Permissions of the `-P` before it.
    pub permissions: Permissions,
    /// Group of the `-s` before it.
    pub group: Option<u32>,
    /// Mode of the `-m` before it.
    pub mode: Option<u32>,
}

/// All options of the command line.
#[derive(Debug)]
pub(super) struct Options {
    /// Foreground (`-g`).
    pub foreground: bool,
    /// User (`-U`), or else that of the starting process.
    pub account: Account,
    /// Group (`-G`).
    pub gid: u32,
    /// Highest severity, by number, that is logged (`-V`).
    pub log_level: u32,
    /// Log file (`-o`).
    pub log_file: Option<File>,
    /// Pid file (`-p`).
    pub pid_file: PathBuf,
    /// Addresses (`-l`, `-L`), or the default.
    pub addresses: Vec<Address>,
    /// Permissions for inherited sockets: those of the last `-P`.
    pub last_permissions: Permissions,
    /// Base folder (`-b`).
    pub base: Option<PathBuf>,
    /// Folder for the journal (`-j`).
    pub journal: Option<PathBuf>,
    /// Threads that write files (`-t`).
    pub writers: usize,
    /// Age at which values are written, in seconds (`-w`).
    pub write_after: u64,
    /// Random part of that age, in seconds (`-z`).
    pub jitter: u64,
    /// Interval of the search for old values, in seconds (`-f`).
    pub sweep_every: u64,
    /// Files to write (`--files`).
    pub files: Files,
    /// Most bytes of the store (`--store-bytes`).
    pub store_bytes: u64,
    /// Most series (`--max-series`).
    pub max_series: u64,
    /// Most new series a minute (`--max-new`).
    pub max_new: u64,
    /// Settings of the listener.
    pub daemon: daemon::Settings,
    /// `-F`: true if all values are written to files at the end, unless a signal decides otherwise.
    pub flush_at_end: bool,
}

impl Options {
    /// A text that distinguishes daemons with neither journal nor base folder.
    pub(super) fn identity(&self) -> String {
        let mut text = self.pid_file.to_string_lossy().into_owned();
        for address in &self.addresses {
            text.push(' ');
            text.push_str(&String::from_utf8_lossy(&address.text));
        }
        text
    }
}

/// Reason for starting nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// Exit code, as stock's.
    pub code: u8,
    /// True if the help is printed first.
    pub help: bool,
}

/// State while options are read.
struct Reading<'a> {
    options: Options,
    permissions: Permissions,
    group: Option<u32>,
    mode: Option<u32>,
    help: bool,
    /// Status that the last option of its kind left, as in stock: a later one may clear it.
    status: i32,
    complain: &'a mut dyn FnMut(&str),
}

/// Reads the words after the program's name. Makes the folders that they name.
pub(super) fn read(words: &[&[u8]], complain: &mut dyn FnMut(&str)) -> Result<Options, Stop> {
    let mut reading = Reading {
        options: defaults(),
        permissions: Permissions::NONE,
        group: None,
        mode: None,
        help: false,
        status: 0,
        complain,
    };
    let (pieces, _) = options::read(words, KNOWN);
    for piece in pieces {
        let went = match piece {
            Piece::Option(letter, argument) => reading.option(letter, argument),
            Piece::Bad(error) => {
                (reading.complain)(&format!("rrdcached: {}", error.text));
                reading.help(-1)
            }
        };
        went.map_err(|code| Stop {
            code,
            help: reading.help,
        })?;
    }
    reading.advise();
    reading.finish()
}

fn defaults() -> Options {
    let account = Account::own();
    Options {
        foreground: false,
        gid: privilege::own_group(),
        account,
        log_level: LOG_ERR,
        log_file: None,
        pid_file: PID_FILE.into(),
        addresses: Vec::new(),
        last_permissions: Permissions::ALL,
        base: None,
        journal: None,
        writers: 4,
        write_after: 300,
        jitter: 0,
        sweep_every: 3600,
        files: FILES_AFTER,
        store_bytes: 10 << 30,
        max_series: 200_000,
        max_new: 10_000,
        daemon: daemon::Settings::default(),
        flush_at_end: false,
    }
}

fn path(text: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(text))
}

fn files(text: &str) -> Result<Files, &'static str> {
    match text {
        "never" => Ok(Files::Never),
        "ask" => Ok(Files::OnDemand),
        _ => spec::duration(text.as_bytes(), 1).map(|age| Files::After(Duration::from_secs(age))),
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    SureFolder::make(folder, 0o777, &[]).map(drop)
}

impl Reading<'_> {
    /// Reads an option. `Err`: the exit code with which stock stops reading.
    fn option(&mut self, letter: u8, argument: &[u8]) -> Result<(), u8> {
        let shown = String::from_utf8_lossy(argument).into_owned();
        let options = &mut self.options;
        match letter {
            b'B' => options.daemon.beneath = true,
            b'F' => options.flush_at_end = true,
            b'g' => options.foreground = true,
            b'O' => options.daemon.no_overwrite = true,
            b'R' => options.daemon.make_folders = true,
            DURABLE => options.daemon.durable = true,
            FILES => match files(&shown) {
                Ok(files) => options.files = files,
                Err(why) => self.invalid("age of files", &shown, why),
            },
            STORE_BYTES => match crate::options::size_bytes(&shown) {
                Ok(bytes) => options.store_bytes = bytes,
                Err(_) => self.invalid("store size", &shown, "not a size such as 500M or 10G"),
            },
            MAX_SERIES => self.count(&shown, |options| &mut options.max_series),
            MAX_NEW => self.count(&shown, |options| &mut options.max_new),
            b'h' => self.help(1)?,
            b'L' => self.address(b""),
            b'l' => self.address(argument),
            b'p' => options.pid_file = path(argument).into(),
            b'a' if atoi(argument) <= 0 => {
                return self.refuse(10, &format!("Invalid allocation size: {shown}"));
            }
            // The store manages memory in its own way.
            b'a' => {}
            b't' => match usize::try_from(atoi(argument)) {
                Ok(writers) if writers > 0 => options.writers = writers,
                _ => return self.refuse(1, &format!("Invalid thread count: -t {shown}")),
            },
            b'f' => self.duration(argument, "flush interval", 3, |options| {
                &mut options.sweep_every
            }),
            b'w' => self.duration(argument, "write interval", 2, |options| {
                &mut options.write_after
            }),
            b'z' => self.duration(argument, "write jitter", 2, |options| &mut options.jitter),
            b'V' => self.level(&shown),
            b'P' => self.permissions(argument),
            b'm' => return self.mode(argument, &shown),
            b's' => self.group = Some(self.group(leading_number(argument), &shown)?),
            b'G' => self.options.gid = self.group(whole_number(argument), &shown)?,
            b'U' => return self.user(argument, &shown),
            b'b' => return self.base(argument, &shown),
            b'j' => return self.journal(argument, &shown),
            b'o' => return self.log_file(argument, &shown),
            _ => {}
        }
        Ok(())
    }

    fn refuse(&mut self, code: u8, line: &str) -> Result<(), u8> {
        (self.complain)(line);
        Err(code)
    }

    fn help(&mut self, status: i32) -> Result<(), u8> {
        self.help = true;
        self.status = status;
        Ok(())
    }

    fn address(&mut self, text: &[u8]) {
        self.options.addresses.push(Address {
            text: text.to_vec(),
            permissions: all_if_none(self.permissions),
            group: self.group,
            mode: self.mode,
        });
    }

    fn invalid(&mut self, what: &str, shown: &str, why: &str) {
        (self.complain)(&format!("Invalid {what} {shown}: {why}"));
        self.status = 2;
    }

    fn count(&mut self, shown: &str, slot: impl Fn(&mut Options) -> &mut u64) {
        match shown.parse() {
            Ok(count) => *slot(&mut self.options) = count,
            Err(_) => self.invalid("number of series", shown, "not a number"),
        }
    }

    fn duration(
        &mut self,
        text: &[u8],
        what: &str,
        status: i32,
        slot: impl Fn(&mut Options) -> &mut u64,
    ) {
        match spec::duration(text, 1) {
            Ok(seconds) => *slot(&mut self.options) = seconds,
            Err(why) => {
                let text = String::from_utf8_lossy(text);
                (self.complain)(&format!("Invalid {what} {text}: {why}"));
                self.status = status;
            }
        }
    }

    fn level(&mut self, name: &str) {
        match LEVELS.iter().position(|level| *level == name) {
            Some(level) => self.options.log_level = level as u32,
            None => (self.complain)(&format!(
                "Unrecognized log level '{name}'; falling back to default LOG_ERR."
            )),
        }
    }

    fn permissions(&mut self, list: &[u8]) {
        self.permissions = Permissions::NONE;
        let words = list.split(|byte| matches!(byte, b',' | b' '));
        for word in words.filter(|word| !word.is_empty()) {
            self.status = 0;
            if !self.permissions.add(word) {
                let word = String::from_utf8_lossy(word);
                (self.complain)(&format!(
                    "read_options: Adding permission \"{word}\" to socket failed. Most likely, this \
                     permission doesn't exist. Check your command line."
                ));
                self.status = 4;
            }
        }
    }

    fn mode(&mut self, text: &[u8], shown: &str) -> Result<(), u8> {
        let text = std::str::from_utf8(text).unwrap_or_default();
        match u32::from_str_radix(text, 8) {
            Ok(mode) if mode <= 0o7777 => {
                self.mode = Some(mode);
                Ok(())
            }
            _ => self.refuse(5, &format!("read_options: Invalid file mode \"{shown}\".")),
        }
    }

    fn group(&mut self, number: Option<u32>, name: &str) -> Result<u32, u8> {
        let found = match number {
            Some(number) => privilege::group_numbered(number),
            None => privilege::group_named(name),
        };
        found.ok_or_else(|| {
            (self.complain)(&format!(
                "read_options: couldn't map \"{name}\" to a group, Sorry"
            ));
            5
        })
    }

    fn user(&mut self, text: &[u8], name: &str) -> Result<(), u8> {
        let found = match whole_number(text) {
            Some(number) => Account::numbered(number),
            None => Account::named(name),
        };
        match found {
            Some(account) => self.options.account = account,
            None => {
                let line = format!("read_options: couldn't map \"{name}\" to a user, Sorry");
                return self.refuse(5, &line);
            }
        }
        Ok(())
    }

    /// Sets the base folder. Its name must be its real path, because names below it are compared as text.
    fn base(&mut self, text: &[u8], shown: &str) -> Result<(), u8> {
        let folder = path(text);
        if let Err(error) = make_folder(folder) {
            let why = strerror(&error);
            let line = format!("Failed to create base directory '{shown}': {why}");
            return self.refuse(3, &line);
        }
        let real = match std::fs::canonicalize(folder) {
            Ok(real) => real,
            Err(error) => {
                let why = strerror(&error);
                let line = format!("Failed to canonicalize the base directory '{shown}': {why}");
                return self.refuse(5, &line);
            }
        };
        let slashes = text.iter().rev().take_while(|byte| **byte == b'/').count();
        let plain = &text[..text.len() - slashes];
        if plain.is_empty() {
            return self.refuse(4, &format!("Invalid base directory: {shown}"));
        }
        if plain != real.as_os_str().as_bytes() {
            (self.complain)("Base directory (-b) resolved via file system links!");
            (self.complain)("Please consult rrdcached '-b' documentation!");
            let line = format!(
                "Consider specifying the real directory ({})",
                real.to_string_lossy()
            );
            return self.refuse(5, &line);
        }
        self.options.base = Some(real);
        Ok(())
    }

    fn journal(&mut self, text: &[u8], shown: &str) -> Result<(), u8> {
        let folder = match std::fs::canonicalize(path(text)) {
            Ok(folder) => folder,
            Err(error) => {
                let why = strerror(&error);
                let line = format!("Unable to resolve journal path ({shown},{why})");
                return self.refuse(6, &line);
            }
        };
        if !folder.is_dir() {
            let folder = folder.to_string_lossy();
            let line = format!("Failed to create journal directory '{folder}': Not a directory");
            return self.refuse(6, &line);
        }
        self.options.journal = Some(folder);
        // Stock uses one status for the folder and for all options.
        self.status = 0;
        Ok(())
    }

    fn log_file(&mut self, text: &[u8], shown: &str) -> Result<(), u8> {
        let mut options = File::options();
        // A pipe without a reader fails instead of waiting.
        options.custom_flags(libc::O_NONBLOCK);
        match options.append(true).create(true).open(path(text)) {
            Ok(file) => self.options.log_file = Some(file),
            Err(error) => {
                let why = strerror(&error);
                return self.refuse(6, &format!("Failed to open log file '{shown}': {why}"));
            }
        }
        Ok(())
    }

    /// Prints warnings about possible mistakes.
    fn advise(&mut self) {
        let options = &self.options;
        let mut lines: Vec<&str> = Vec::new();
        if options.sweep_every < 2 * options.write_after {
            lines.push("WARNING: flush interval (-f) should be at least 2x write interval (-w) !");
        }
        if options.jitter > options.write_after {
            lines.push("WARNING: write delay (-z) should NOT be larger than write interval (-w) !");
        }
        let consult = "  Consult the rrdcached documentation";
        if options.daemon.beneath && options.base.is_none() {
            lines.extend(["WARNING: -B does not make sense without -b!", consult]);
        }
        if options.daemon.make_folders && !options.daemon.beneath {
            lines.extend(["WARNING: -R does not make sense without -B!", consult]);
        }
        lines.into_iter().for_each(&mut *self.complain);
    }

    fn finish(self) -> Result<Options, Stop> {
        if self.status != 0 || self.help {
            let code = u8::try_from(self.status).unwrap_or(0);
            // Stock starts if a valid -P or -j follows -h; but a user that asks for help wants no daemon.
            return Err(Stop {
                code,
                help: self.help,
            });
        }
        let mut options = self.options;
        options.last_permissions = all_if_none(self.permissions);
        if options.addresses.is_empty() {
            options.addresses.push(Address {
                text: ADDRESS_DEFAULT.into(),
                permissions: options.last_permissions,
                group: self.group,
                mode: self.mode,
            });
        }
        options.daemon.base.clone_from(&options.base);
        options.daemon.beneath &= options.base.is_some();
        // Without a journal, unwritten values would be lost.
        options.flush_at_end |= options.journal.is_none();
        Ok(options)
    }
}

/// Permissions as in stock: an empty list permits everything.
fn all_if_none(permissions: Permissions) -> Permissions {
    match permissions == Permissions::NONE {
        true => Permissions::ALL,
        false => permissions,
    }
}

/// The whole text as a number; as in stock, an empty text is 0.
fn whole_number(text: &[u8]) -> Option<u32> {
    match text {
        b"" => Some(0),
        _ => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// The number at the begin of a text; `None` for 0.
fn leading_number(text: &[u8]) -> Option<u32> {
    u32::try_from(atoi(text)).ok().filter(|number| *number > 0)
}

/// Text of `-h`.
pub(super) fn help() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("RRDCacheD 1.9.0 (kymo {version})\n\n{HELP}")
}

const HELP: &str = "\
Usage: rrdcached [options]

Valid options are:
  -a <size>     Accepted, means nothing here
  -B            Nothing outside of -b <dir> is opened
  -b <dir>      Folder of the .rrd files; names that are not absolute are below it
  -F            Bring all files up to date at the end
  -f <seconds>  How often files that get no values any more are looked at. Default: 1h
  -G <group>    Group to run as
  -g            Stay in the foreground
  -h, --help    This text
  -j <dir>      Folder of the journal; journals of another rrdcached there are replayed
  -L            Listen on all addresses of this machine, port 42217
  -l <address>  Listen here: unix:/path, /path, host, host:port, [v6]:port, :port
                Default: unix:/tmp/rrdcached.sock
  -m <mode>     Mode (octal) of the unix sockets that follow
  -O            CREATE never replaces a file
  -o <file>     Log into this file, not to syslog
  -P <perms>    Commands that clients of the sockets that follow may use
  -p <file>     Pid file. Default: /var/run/rrdcached.pid
  -R            CREATE may make folders
  -s <id|name>  Group of the unix sockets that follow; it may read and write
  -t <threads>  Threads that write files. Default: 4
  -U <user>     User to run as
  -V <LOGLEVEL> Log up to this level, LOG_EMERG to LOG_DEBUG. Default: LOG_ERR
  -w <seconds>  Values count as written when they are this old. Default: 5m
  -z <delay>    Files are brought up to date up to so much later, by chance
  --durable     Answer an update only when it is on the disk
  --files <age> An .rrd file is brought up to date when it is this old. Default: 7d
                (FLUSH does it at once; 5m is what other daemons do; ask: FLUSH and DUMP
                alone; never: no files)
  --store-bytes <size>
                Past this the oldest points go; archives stay. Default: 10G
  --max-series <n>
                More series are a line in the log, and refused are none. Default: 200000
  --max-new <n> The same for new series in a minute. Default: 10000

See docs/rrdcached.md.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> (Result<Options, Stop>, String) {
        let words: Vec<&[u8]> = line
            .split(' ')
            .filter(|w| !w.is_empty())
            .map(str::as_bytes)
            .collect();
        let mut lines = Vec::new();
        let options = read(&words, &mut |line| lines.push(line.to_string()));
        (options, lines.join("|"))
    }

    #[test]
    fn limits_are_read() {
        let (options, message) = read_line("--store-bytes 1.5G --max-series 7 --max-new=8");
        let options = options.unwrap();
        let limits = (options.store_bytes, options.max_series, options.max_new);
        assert_eq!((limits, message.as_str()), ((3 << 29, 7, 8), ""));
        for (line, text) in [
            (
                "--store-bytes many",
                "Invalid store size many: not a size such as 500M or 10G",
            ),
            (
                "--max-series -1",
                "Invalid number of series -1: not a number",
            ),
            ("--max-new 1k", "Invalid number of series 1k: not a number"),
        ] {
            let (options, message) = read_line(line);
            assert_eq!(options.err().map(|stop| stop.code), Some(2), "{line}");
            assert_eq!(message, text);
        }
    }

    #[test]
    fn options_are_read() {
        let (options, message) = read_line(
            "-g -w 10m -z 1m -f 1h -t 9 -a 4 -V LOG_DEBUG -p /x/y.pid -B -b /usr -R -O -F \
             --durable -l unix:/s1 -m 0700 -P FLUSH,PENDING -l /s2 -s 0x -P UPDATE -m 644 -L",
        );
        // No group's name begins like this.
        assert_eq!(
            (options.err().map(|stop| stop.code), message.is_empty()),
            (Some(5), false)
        );
        let (options, message) = read_line(
            "-g -w 10m -z 1m -f 1h -t 9 -a 4 -V LOG_DEBUG -p /x/y.pid -B -b /usr -R -O -F \
             --durable -l unix:/s1 -m 0700 -P FLUSH,PENDING -l /s2 -P UPDATE -s root -m 644 -L",
        );
        let options = options.unwrap();
        assert_eq!(message, "");
        assert!(options.foreground && options.daemon.durable && options.daemon.beneath);
        let times = (options.write_after, options.jitter, options.sweep_every);
        assert_eq!(times, (600, 60, 3600));
        assert_eq!((options.writers, options.log_level), (9, 7));
        assert_eq!(options.base.as_deref(), Some(Path::new("/usr")));
        let mut flush = Permissions::NONE;
        assert!(flush.add(b"FLUSH") && flush.add(b"PENDING"));
        let mut update = Permissions::NONE;
        assert!(update.add(b"UPDATE"));
        let address = |text: &str, permissions, group, mode| Address {
            text: text.into(),
            permissions,
            group,
            mode,
        };
        assert_eq!(
            options.addresses,
            [
                address("unix:/s1", Permissions::ALL, None, None),
                address("/s2", flush, None, Some(0o700)),
                address("", update, Some(0), Some(0o644)),
            ]
        );
        assert_eq!(options.last_permissions, update);
    }

    #[test]
    fn defaults_are_stocks() {
        let (options, message) = read_line("");
        let options = options.unwrap();
        assert_eq!(message, "");
        assert_eq!(options.addresses[0].text, b"unix:/tmp/rrdcached.sock");
        assert_eq!(options.addresses[0].permissions, Permissions::ALL);
        assert!(options.flush_at_end && !options.foreground);
    }

    #[test]
    fn errors_and_their_codes_are_stocks() {
        for (line, code, help, text) in [
            ("-h", 1, true, ""),
            ("--help", 1, true, ""),
            ("-x", 0, true, "rrdcached: invalid option -- 'x'"),
            ("-t 0", 1, false, "Invalid thread count: -t 0"),
            ("-a x", 10, false, "Invalid allocation size: x"),
            (
                "-w x",
                2,
                false,
                "Invalid write interval x: value must be (suffixed) positive number",
            ),
            ("-f 1x", 3, false, "Invalid flush interval 1x: "),
            (
                "-z 0",
                2,
                false,
                "Invalid write jitter 0: value must be positive",
            ),
            ("-m 9", 5, false, "read_options: Invalid file mode \"9\"."),
            (
                "-m 17777",
                5,
                false,
                "read_options: Invalid file mode \"17777\".",
            ),
            (
                "-s no-such-group",
                5,
                false,
                "read_options: couldn't map \"no-such-group\" to a group, Sorry",
            ),
            (
                "-U no-such-user",
                5,
                false,
                "read_options: couldn't map \"no-such-user\" to a user, Sorry",
            ),
            (
                "-P FLASH",
                4,
                false,
                "read_options: Adding permission \"FLASH\" to socket failed.",
            ),
            ("-b /", 4, false, "Invalid base directory: /"),
            (
                "-b /proc/self/cwd",
                5,
                false,
                "Base directory (-b) resolved via file system links!",
            ),
            (
                "-j /no/such/folder",
                6,
                false,
                "Unable to resolve journal path (/no/such/folder,No such file or directory)",
            ),
            (
                "-o /no/such/folder/log",
                6,
                false,
                "Failed to open log file '/no/such/folder/log': No such file or directory",
            ),
        ] {
            let (options, message) = read_line(line);
            assert_eq!(options.err(), Some(Stop { code, help }), "{line}");
            assert!(message.starts_with(text), "{line}: {message}");
        }
    }

    #[test]
    fn warnings_are_said_and_it_starts() {
        for (line, text) in [
            (
                "-w 1h",
                "WARNING: flush interval (-f) should be at least 2x write interval (-w) !",
            ),
            (
                "-z 10m",
                "WARNING: write delay (-z) should NOT be larger than write interval (-w) !",
            ),
            (
                "-B",
                "WARNING: -B does not make sense without -b!|  Consult the rrdcached documentation",
            ),
            (
                "-R",
                "WARNING: -R does not make sense without -B!|  Consult the rrdcached documentation",
            ),
            (
                "-V LOG_LOUD",
                "Unrecognized log level 'LOG_LOUD'; falling back to default LOG_ERR.",
            ),
            (
                "-P FLASH,FLUSH",
                "read_options: Adding permission \"FLASH\" to socket failed. Most \
              likely, this permission doesn't exist. Check your command line.",
            ),
        ] {
            let (options, message) = read_line(line);
            assert!(options.is_ok(), "{line}");
            assert_eq!(message, text, "{line}");
        }
    }
}
