//! Each command of kymo's in the documents is one that the built program has: its name, and each of its switches.

use std::collections::BTreeMap;

use kymo_tests::commands::commands as listed;
use kymo_tests::run;
use regex_lite::Regex;

use super::{Document, documents, prose};

/// Documents whose lines behind `$` are tried. The journal's are of their day.
const LINES_OF: &[&str] = &["README.md", "CONTRIBUTING.md", "docs"];
/// Documents whose commands between backticks are tried, too. Elsewhere these are often forms: `kymo rrd COMMAND`.
const SPANS_OF: &[&str] = &["README.md", "docs/start.md", "docs/guides", "docs/operate"];

/// The output of a command, to both ends.
fn output_of(arguments: &[&str]) -> String {
    let output = run(arguments);
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Help texts of commands, each asked for once.
#[derive(Default)]
struct Helps {
    known: BTreeMap<Vec<String>, String>,
}

impl Helps {
    /// The help of a command. rrdcached's and rrdtool's have other exit codes and print to stderr.
    fn of(&mut self, command: &[&str]) -> &str {
        let key = command.iter().map(|word| word.to_string()).collect();
        self.known.entry(key).or_insert_with(|| {
            let asked = [command, &["--help"]].concat();
            match command {
                // Switches without a command have a topic.
                [] => output_of(&asked) + &output_of(&["help", "switches"]),
                // rrdtool's commands say it so.
                ["rrd", name] => output_of(&asked) + &output_of(&["rrd", "help", name]),
                _ => output_of(&asked),
            }
        })
    }

    /// True if a word has a help of its own, as commands have that `kymo serve` starts and no list names.
    fn has_own(&mut self, word: &str) -> bool {
        let all = output_of(&["--help"]);
        self.of(&[word]) != all
    }

    /// Names of the commands of a help text: the first screen's groups, clap's list of lines, rrdtool's lists with commas.
    fn names(&mut self, command: &[&str]) -> Vec<String> {
        if command.is_empty() {
            return listed();
        }
        let help = self.of(command);
        let listed = help.split_once("\nCommands:\n").map(|(_, rest)| {
            let lines = rest.lines().take_while(|line| !line.is_empty());
            let names = lines.filter_map(|line| line.split_whitespace().next());
            names.map(str::to_string).collect()
        });
        let lists = help
            .lines()
            .skip_while(|line| !line.starts_with("Valid commands:"));
        let words = lists.flat_map(|line| line.split([' ', ',', '\t', ':']));
        listed.unwrap_or_else(|| words.map(str::to_string).collect())
    }
}

/// Words of a shell's line, up to the first pipe, redirection, end or comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => word.push(c),
            None if c == '\'' || c == '"' => quote = Some(c),
            None if "|<>&;#".contains(c) => break,
            None if c == ' ' => words.push(std::mem::take(&mut word)),
            None => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// True if a help text has a switch, and not as a part of a longer one.
fn has_switch(help: &str, switch: &str) -> bool {
    let name = |c: char| c.is_alphanumeric() || c == '-';
    help.match_indices(switch).any(|(at, _)| {
        let before = help[..at].chars().next_back();
        let after = help[at + switch.len()..].chars().next();
        !before.is_some_and(name) && !after.is_some_and(name)
    })
}

/// The switch of a word: `--from` of `--from=-1h`, `-s` of `-scdn`. A number is none.
fn switch_of(word: &str) -> Option<String> {
    let name = word.strip_prefix('-')?;
    match name.chars().next()? {
        '-' => word.split('=').next().map(str::to_string),
        first if first.is_ascii_digit() => None,
        first => Some(format!("-{first}")),
    }
}

/// Why a command line is none of kymo's.
fn wrong_command(line: &str, helps: &mut Helps) -> Option<String> {
    let words = words(line);
    let mut words = words.iter().map(String::as_str).skip(1).peekable();
    let mut command = Vec::new();
    while let Some(word) = words.next_if(|word| !word.starts_with('-')) {
        let names = helps.names(&command);
        let is_named = names.iter().any(|name| name == word);
        let is_hidden = command.is_empty() && helps.has_own(word);
        if !is_named && !is_hidden {
            return Some(format!("kymo {} has no command {word}", command.join(" ")));
        }
        command.push(word);
        if !matches!(command[..], ["series" | "rrd"]) {
            break;
        }
    }
    if command == ["poll"]
        && let Some(report) =
            words.next_if(|word| ["--bill", "--index", "--neighbours"].contains(word))
    {
        command.push(report);
    }
    let help = helps.of(&command);
    let switches = words.filter_map(switch_of);
    let mut unknown = switches.filter(|switch| !has_switch(help, switch));
    unknown
        .next()
        .map(|switch| format!("kymo {} has no switch {switch}", command.join(" ")))
}

/// Command lines of kymo's in a document: behind `$` in code, and between backticks.
pub(super) fn commands(document: &Document) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    if document.is_of(LINES_OF) && !document.is_of(&["docs/journal"]) {
        for (number, line) in document.text.lines().enumerate() {
            let line = line.trim_start().strip_prefix("$ ").unwrap_or_default();
            if line.starts_with("kymo ") {
                commands.push((number + 1, line.to_string()));
            }
        }
    }
    let span = Regex::new("`(kymo [^`]*)`").expect("a pattern");
    if document.is_of(SPANS_OF) {
        for (number, line) in prose(&document.text) {
            let spans = span.captures_iter(line);
            commands.extend(spans.map(|found| (number + 1, found[1].to_string())));
        }
    }
    commands
}

#[test]
fn each_command_is_one_of_kymos() {
    let mut helps = Helps::default();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for document in documents() {
        for (line, command) in commands(&document) {
            count += 1;
            if let Some(why) = wrong_command(&command, &mut helps) {
                wrong.push(format!(
                    "{}:{line}: {command}: {why}",
                    document.path.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "only {count} commands were found");
}

#[test]
fn a_wrong_command_is_found() {
    let mut helps = Helps::default();
    for (line, right) in [
        ("kymo -scdn -i1", true),
        ("kymo series ls host=web* --data ./kymo-data", true),
        (
            "kymo series samples 'a{b=\"c | d\"}' --from -5min | head --lines 3",
            true,
        ),
        ("kymo rrd import FOLDER --store DIR -b BASE", true),
        ("kymo rrd fetch a.rrd AVERAGE --start end-1h", true),
        ("kymo rrdcached -b DIR -B --files 5m", true),
        ("kymo poll --check a.cfg", true),
        ("kymo hub", true),
        ("kymo wherefore", false),
        ("kymo --gibberish", false),
        ("kymo series lss", false),
        ("kymo series ls --jason", false),
        ("kymo graph --form -5min", false),
        ("kymo rrd fetsch a.rrd", false),
        ("kymo rrd import --stores DIR", false),
        ("kymo rrdcached -q", false),
    ] {
        assert_eq!(wrong_command(line, &mut helps).is_none(), right, "{line}");
    }
}
