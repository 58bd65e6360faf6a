//! Decides which programs root may run: programs that only root can change. Another user who can write a folder in
//! `PATH`, or a script, would choose the code that root runs.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kymo_sys::machine;
use kymo_sys::owner::only_roots;

use super::commands::Commands;

/// The path of an environment without `PATH`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Programs that run the file in their arguments.
const INTERPRETERS: [&[u8]; 10] = [
    b"sh", b"bash", b"dash", b"ksh", b"zsh", b"perl", b"python", b"python3", b"php", b"ruby",
];
/// Words of the shell that a command follows, and programs that start another one.
const BEFORE_COMMANDS: [&[u8]; 14] = [
    b"if", b"then", b"else", b"elif", b"while", b"until", b"do", b"!", b"{", b"exec", b"env",
    b"nice", b"timeout", b"time",
];

/// The right to run programs of a configuration. Users other than root run all of them.
pub(super) struct RunRights {
    is_root: bool,
    /// `PATH` for programs.
    search_path: Vec<u8>,
    /// Reason why nothing is run.
    refusal: Option<String>,
    /// Lines for the log.
    lines: Vec<String>,
}

impl RunRights {
    /// Rights of this process.
    pub(super) fn of(commands: &Commands) -> RunRights {
        let is_root = machine::is_root();
        let mut lines = Vec::new();
        let mut say = |line: String| lines.push(line);
        let path_add = commands.path_add.as_deref();
        let search_path = search_path(path_add, is_root, &mut say);
        let refusal = match is_root && !commands.is_empty() {
            true => only_roots(&commands.files).err(),
            false => None,
        };
        match &refusal {
            Some(why) => {
                let line = format!("cannot run the commands of the configuration as root: {why}");
                lines = vec![line];
            }
            None if commands.is_empty() => lines.clear(),
            None => {}
        }
        RunRights {
            is_root,
            search_path,
            refusal,
            lines,
        }
    }

    pub(super) fn lines(&self) -> &[String] {
        &self.lines
    }

    pub(super) fn search_path(&self) -> &[u8] {
        &self.search_path
    }

    /// True if nothing of the configuration is run.
    pub(super) fn refuses_all(&self) -> bool {
        self.refusal.is_some()
    }

    /// Reason why a shell command is not run. Checked at each run, as a file may have got another owner since the last
    /// one.
    pub(super) fn refusal_of_text(&self, text: &[u8]) -> Option<String> {
        let why = || refusal_of_text(text, &self.search_path);
        let why = self.is_root.then(why).flatten();
        why.map(|why| format!("it is not run as root: {why}"))
    }

    /// Reason why a program is not run, which is a path or a name.
    pub(super) fn refusal_of_program(&self, word: &[u8]) -> Option<String> {
        let why = || refusal(word, &self.search_path);
        self.is_root.then(why).flatten()
    }
}

/// Commands of a configuration that this process does not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedCommands {
    /// Lines for the log, as a run has them.
    pub lines: Vec<String>,
    /// Numbers of the refused commands.
    pub numbers: BTreeSet<u32>,
}

impl RefusedCommands {
    /// Commands that a run would refuse now.
    pub fn of(commands: &Commands) -> RefusedCommands {
        let rights = RunRights::of(commands);
        let mut refused = RefusedCommands {
            lines: rights.lines().to_vec(),
            numbers: BTreeSet::new(),
        };
        for (number, command) in &commands.commands {
            let why = rights.refusal_of_text(&command.text);
            if let Some(why) = why.filter(|_| !rights.refuses_all()) {
                refused.lines.push(command.complaint(&why));
            } else if !rights.refuses_all() {
                continue;
            }
            refused.numbers.insert(*number);
        }
        for programs in commands.programs.values().filter(|_| !rights.refuses_all()) {
            let why = |program: &Path| rights.refusal_of_program(program.as_os_str().as_bytes());
            let lines = programs
                .all()
                .filter_map(|program| Some(programs.complaint(&why(program)?)));
            refused.lines.extend(lines.collect::<BTreeSet<String>>());
        }
        refused
    }
}

/// The folders of `PathAdd`, then those of `PATH`. For root, folders that another user can write are omitted; `say`
/// gets a line for each such folder of `PathAdd`.
fn search_path(path_add: Option<&[u8]>, is_root: bool, say: &mut dyn FnMut(String)) -> Vec<u8> {
    let inherited = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
    let added = path_add.filter(|path| !path.is_empty());
    if !is_root {
        let whole = added.into_iter().chain([inherited.as_bytes()]);
        return whole.collect::<Vec<_>>().join(&b':');
    }
    let folders = |path| <[u8]>::split(path, |byte| *byte == b':');
    let mut kept: Vec<&[u8]> = Vec::new();
    for folder in added.into_iter().flat_map(folders) {
        match judge_folder(folder) {
            Ok(true) => kept.push(folder),
            Ok(false) => {}
            Err(why) => say(format!("cannot look for programs as root: {why}")),
        }
    }
    kept.extend(folders(inherited.as_bytes()).filter(|folder| judge_folder(folder) == Ok(true)));
    kept.join(&b':')
}

/// True if the folder exists and its path is absolute; an error if another user can write it.
fn judge_folder(folder: &[u8]) -> Result<bool, String> {
    let path = path_of(folder);
    // An empty entry of `PATH` is the current folder, which may belong to any user.
    match path.is_absolute() && path.is_dir() {
        true => only_roots(&[path]).map(|()| true),
        false => Ok(false),
    }
}

/// Reason why root does not run a shell command.
fn refusal_of_text(text: &[u8], search_path: &[u8]) -> Option<String> {
    let programs = words_that_run(text);
    programs.iter().find_map(|word| refusal(word, search_path))
}

/// Reason why root does not run a program, which is a path or a name searched in `search_path`.
fn refusal(word: &[u8], search_path: &[u8]) -> Option<String> {
    let path = match word.contains(&b'/') {
        true => path_of(word),
        // A word that no folder has is a builtin of the shell, or the shell cannot run it either.
        false => find(word, search_path)?,
    };
    only_roots(&[path]).err()
}

fn find(name: &[u8], search_path: &[u8]) -> Option<PathBuf> {
    let folders = search_path.split(|byte| *byte == b':');
    let mut paths = folders.map(|folder| path_of(folder).join(OsStr::from_bytes(name)));
    paths.find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Words of a shell command that name programs: the first word of each command, arguments of interpreters, and any
/// path of a program.
fn words_that_run(text: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for command in text.split(|byte| b"|;&()\n`".contains(byte)) {
        let mut begins = true;
        let mut interprets = false;
        for word in command
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
        {
            let word: Vec<u8> = word
                .iter()
                .copied()
                .filter(|byte| !b"\"'".contains(byte))
                .collect();
            let is_option = word.starts_with(b"-");
            let names_program = word.contains(&b'/') && is_program(&path_of(&word));
            // Words with a `$` cannot be checked, as only the shell knows their values.
            let is_known = !word.contains(&b'$');
            let is_run = begins || interprets && !is_option || names_program;
            if begins && (BEFORE_COMMANDS.contains(&&*word) || is_assignment(&word)) {
                continue;
            }
            if begins || !is_option {
                interprets = begins && is_interpreter(&word);
            }
            begins = false;
            if is_run && is_known {
                found.push(word);
            }
        }
    }
    found
}

fn is_assignment(word: &[u8]) -> bool {
    let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() < word.len()
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn is_interpreter(word: &[u8]) -> bool {
    let name = word.rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| INTERPRETERS.contains(&name))
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_run_are_found() {
        for (text, expected) in [
            ("uptime", "uptime"),
            ("/opt/probe a b", "/opt/probe"),
            ("LANG=C '/opt/probe' x | awk y; ./z", "/opt/probe awk ./z"),
            ("perl -w /opt/probe.pl /opt/x", "perl /opt/probe.pl"),
            (
                "exec /usr/bin/python3 probe.py",
                "/usr/bin/python3 probe.py",
            ),
            (
                "if test -f /x; then (cd /y && /opt/probe); fi",
                "test cd /opt/probe fi",
            ),
            ("xargs /bin/sh", "xargs /bin/sh"),
            ("cat /etc/passwd", "cat"),
            ("$HOME/probe", ""),
            ("", ""),
        ] {
            let words = words_that_run(text.as_bytes()).join(&b' ');
            assert_eq!(String::from_utf8_lossy(&words), expected, "{text}");
        }
    }

    #[test]
    fn folders_of_others_are_not_searched() {
        let mut lines = Vec::new();
        let mut say = |line: String| lines.push(line);
        let path = search_path(Some(b"/tmp:relative:/usr/bin::/none"), true, &mut say);
        let path = String::from_utf8_lossy(&path).into_owned();
        let folders: Vec<&str> = path.split(':').collect();
        assert!(folders.contains(&"/usr/bin"), "{path}");
        for other in ["/tmp", "relative", "", "/none"] {
            assert!(!folders.contains(&other), "{path}");
        }
        assert!(
            lines[0].contains("as root: others may write /tmp"),
            "{lines:?}"
        );
        let path = search_path(Some(b"/tmp:relative"), false, &mut |_| {});
        assert!(path.starts_with(b"/tmp:relative:"));
    }

    #[test]
    fn programs_of_others_are_refused() {
        let why = |text: &str| refusal_of_text(text.as_bytes(), b"/usr/bin:/bin");
        assert_eq!(why("cat /tmp/x"), None);
        assert_eq!(why("no-such-program"), None);
        for text in ["/tmp/x", "true | /tmp/x", "sh -e /tmp/x"] {
            let why = why(text).unwrap_or_default();
            assert!(why.contains("others may write /tmp"), "{text}: {why}");
        }
    }
}
