//! `--procopts`: columns of processes, and their form.

use kymo_base::column::{Cells, Value};
use kymo_kernel::subsystem::process::{self, PROCESS};

/// Allowed widths of the user's column.
const USER_WIDTHS: std::ops::RangeInclusive<usize> = 8..=64;
/// Width for `u` without a number.
const USER_WIDTH: usize = 12;

/// Columns of processes, and their form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Columns {
    /// `i`: I/O columns.
    pub io: bool,
    /// `m`: memory columns.
    pub memory: bool,
    /// `t`: shows threads.
    pub threads: bool,
    /// `w`: shows whole command lines.
    pub wide: bool,
    /// `x`: context switches.
    pub switches: bool,
    /// `p`: shows only processes of the first interval.
    pub fixed: bool,
    /// `I`: does not read the I/O of processes.
    pub without_io: bool,
    /// `c`: includes the CPU time of children that ended.
    pub(crate) children: bool,
    /// `f`: page faults since the start of the process.
    pub(crate) cumulative: bool,
    /// `k`: shows the program that a shell runs instead of the shell.
    pub(crate) unwrapped: bool,
    /// `r`: shows the program's name without folders.
    pub(crate) root_name: bool,
    /// `R`: shows priorities as numbers.
    pub(crate) numeric: bool,
    /// `z`: leaves out processes of `--top` whose value is 0.
    pub(crate) nonzero: bool,
    /// `s`, `S`: shows the start time.
    pub(crate) start: Option<Start>,
    user_width: Option<usize>,
    /// `wN`: characters of arguments to show.
    arguments_width: Option<usize>,
}

/// Form of a start time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// `20:50:27`
    Time,
    /// `Nov21-20:50:27`
    Day,
}

impl Columns {
    /// Parses the letters of `--procopts`; a number may follow `u` and `w`.
    pub fn parse(letters: &str) -> Result<Columns, String> {
        let wrong =
            |cause: &str| format!("cannot use --procopts {}: {cause}", letters.escape_debug());
        let mut columns = Columns::default();
        let mut rest = letters;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let number = match digits {
                0 => None,
                _ if !"uw".contains(letter) => return Err(wrong("a number stands behind u or w")),
                _ => Some(
                    rest[..digits]
                        .parse::<usize>()
                        .map_err(|_| wrong("not a width"))?,
                ),
            };
            rest = &rest[digits..];
            columns.set(letter, number).map_err(|cause| wrong(&cause))?;
        }
        Ok(columns)
    }

    fn set(&mut self, letter: char, number: Option<usize>) -> Result<(), String> {
        match letter {
            'c' => self.children = true,
            'f' => self.cumulative = true,
            'i' => self.io = true,
            'I' => self.without_io = true,
            'k' => self.unwrapped = true,
            'm' => self.memory = true,
            'p' => self.fixed = true,
            'r' => self.root_name = true,
            'R' => self.numeric = true,
            's' => self.start = Some(Start::Time),
            'S' => self.start = Some(Start::Day),
            't' => self.threads = true,
            'u' => self.user_width = Some(number.unwrap_or(USER_WIDTH)),
            'w' => (self.wide, self.arguments_width) = (true, number),
            'x' => self.switches = true,
            'z' => self.nonzero = true,
            _ => {
                return Err(format!(
                    "{} is none of c f i I k m p r R s S t u w x z",
                    letter.escape_debug()
                ));
            }
        }
        match self.user_width {
            Some(width) if !USER_WIDTHS.contains(&width) => {
                Err("a user's column is 8 to 64 wide".into())
            }
            _ => Ok(()),
        }
    }

    /// Head and row for these columns. The caller supplies the texts of `@start` and `@command`.
    pub(crate) fn lines(self) -> (String, String) {
        let default = &PROCESS.text.detail;
        let (head, row) = match self {
            Columns { io: true, .. } => process::IO,
            Columns { memory: true, .. } => process::MEMORY,
            Columns { switches: true, .. } => process::SWITCHES,
            _ => (default.heads[0], default.row),
        };
        self.adapted(head, row)
    }

    /// Returns the columns without the start time.
    pub(crate) fn without_start(self) -> Columns {
        Columns {
            start: None,
            ..self
        }
    }

    /// Adapts a head and a row to these columns.
    pub(crate) fn adapted(self, head: &str, row: &str) -> (String, String) {
        let (mut head, mut row) = (head.to_string(), row.to_string());
        if let Some(start) = self.start {
            let (name, place) = match start {
                Start::Time => ("AccuTime StrtTime", "{accum:9t} {@start:8s}"),
                Start::Day => ("AccuTime StartTime     ", "{accum:9t} {@start:14s}"),
            };
            // Beside I/O there is no room for the start time.
            if !self.io {
                head = head.replace("AccuTime", name);
                row = row.replace("{accum:9t}", place);
            }
        }
        if self.numeric {
            head = head.replace(" PR ", " PRIO ");
            row = row.replace("{priority:2s}", "{prio:4d}");
        }
        if let Some(width) = self.user_width {
            head = head.replace("User    ", &format!("{:width$}", "User"));
            row = row.replace("{user:-8s8}", &format!("{{user:-{width}s{width}}}"));
        }
        if self.children {
            row = row.replace("{accum:", "{accum_children:");
        }
        if self.cumulative {
            row = row
                .replace("{majf:", "{majf_total:")
                .replace("{minf:", "{minf_total:");
        }
        let command = match (self.makes_command(), self.wide) {
            (true, _) => "{@command:s}",
            (false, true) => "{command:s}",
            (false, false) => "{program:s}",
        };
        (head, row.replace("{program:s}", command))
    }

    /// True if the command needs [`Columns::put_command`], being neither the first word nor the whole line.
    pub(crate) fn makes_command(self) -> bool {
        self.unwrapped || self.root_name || self.arguments_width.is_some()
    }

    /// Appends the command in the configured form.
    pub(crate) fn put_command(self, cells: &Cells, out: &mut Vec<u8>) {
        let mut whole = Vec::new();
        let command = PROCESS
            .detail
            .iter()
            .find(|column| column.name == "command");
        if let Some(Value::Text(value)) = command.map(|column| column.value) {
            value(cells, &mut whole);
        }
        let (mut program, mut arguments) = split_word(&whole);
        if self.unwrapped && is_shell(program) {
            if arguments.starts_with(b"-") && arguments.contains(&b' ') {
                arguments = split_word(arguments).1;
            }
            if !arguments.is_empty() {
                (program, arguments) = split_word(arguments);
            }
        }
        let name = program.rsplit(|&b| b == b'/').next().unwrap_or_default();
        let is_path = program.starts_with(b"/") && !name.is_empty();
        out.extend_from_slice(if self.root_name && is_path {
            name
        } else {
            program
        });
        if !self.wide || arguments.is_empty() {
            return;
        }
        out.push(b' ');
        let text = String::from_utf8_lossy(arguments);
        let width = self.arguments_width.unwrap_or(usize::MAX);
        let cut = text
            .char_indices()
            .nth(width)
            .map_or(text.len(), |(at, _)| at);
        out.extend_from_slice(text[..cut].as_bytes());
    }
}

/// The first word, and the text behind the blanks that follow it.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&b| b == b' ').unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}

/// True for programs that only run another one, by collectl's list.
fn is_shell(program: &[u8]) -> bool {
    let has = |part: &[u8]| program.windows(part.len()).any(|window| window == part);
    program.starts_with(b"python")
        || [
            &b"/bin/sh"[..],
            b"/bin/bash",
            b"/usr/bin/perl",
            b"/bin/python",
        ]
        .iter()
        .any(|shell| has(shell))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::context::Context;

    fn command(letters: &str, line: &[u8]) -> String {
        let columns = Columns::parse(letters).expect("sound");
        let now = vec![f64::NAN; PROCESS.fields.len()];
        let labels = [b"comm".to_vec(), b"S".to_vec(), line.to_vec(), Vec::new()];
        let context = Context::default();
        let cells = Cells {
            now: &now,
            delta: &now,
            secs: 1.0,
            elapsed: 1.0,
            name: b"1",
            labels: &labels,
            context: &context,
        };
        let mut out = Vec::new();
        columns.put_command(&cells, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn commands() {
        for (letters, line, expect) in [
            ("r", &b"/usr/bin/top\0-b\0"[..], "top"),
            ("rw", b"/usr/bin/top\0-b\0", "top -b"),
            ("w4", b"tail\0-f\0/var/log\0", "tail -f /"),
            ("k", b"/bin/sh\0-x\0/etc/rc\0a\0", "/etc/rc"),
            ("kw", b"/bin/sh\0/etc/rc\0a\0", "/etc/rc a"),
            ("krw", b"/usr/bin/perl\0-w\0/usr/bin/x.pl\0a\0", "x.pl a"),
            ("k", b"/bin/bash\0", "/bin/bash"),
            ("k", b"/usr/bin/tail\0-f\0", "/usr/bin/tail"),
            ("r", b"", "comm"),
        ] {
            assert_eq!(command(letters, line), expect, "{letters}");
        }
    }

    #[test]
    fn letters() {
        for (text, taken) in [
            ("cfiIkmprRsStuwxz", true),
            ("u10w32", true),
            ("u", true),
            ("u7", false),
            ("u65", false),
            ("i5", false),
            ("q", false),
            ("w99999999999999999999", false),
        ] {
            let columns = Columns::parse(text);
            assert_eq!(columns.is_ok(), taken, "{text}");
            if let Err(error) = columns {
                assert!(error.starts_with("cannot use --procopts"), "{error}");
            }
        }
    }
}
