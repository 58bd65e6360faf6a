//! dist/kymo.1 and dist/kymo.bash: the manual page and bash's completion, made from the output of `--help`, so that both have
//! each switch. `UPDATE_GOLDEN=1` writes them; the diff goes with the commit.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use kymo_tests::{kymo, stdout_of};

/// A switch or a command: its spelling and its description.
struct Entry {
    name: String,
    about: String,
}

/// A heading of a help text and the entries below it.
struct Part {
    heading: String,
    entries: Vec<Entry>,
}

/// Parses a help text: headings at the margin, then names, each with its description after two blanks or on the next line.
fn parts(help: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for line in help.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if indent == 0 && text.ends_with(':') {
            parts.push(Part {
                heading: text.trim_end_matches(':').into(),
                entries: Vec::new(),
            });
        } else if let Some(part) = parts.last_mut() {
            match (indent, part.entries.last_mut()) {
                _ if text.is_empty() => {}
                (2..=6, _) => {
                    let (name, about) = text.split_once("  ").unwrap_or((text, ""));
                    part.entries.push(Entry {
                        name: name.into(),
                        about: about.trim().into(),
                    });
                }
                (7.., Some(entry)) => {
                    entry.about = format!("{} {text}", entry.about).trim().into();
                }
                _ => panic!("a line of no part: {line:?}"),
            }
        }
    }
    parts
}

fn is_of_switches(part: &Part) -> bool {
    !["Commands", "Arguments"].contains(&&part.heading[..])
}

/// `-p` and `--playback` of `-p, --playback <PATH>...`.
fn words(entry: &Entry) -> impl Iterator<Item = &str> {
    let names = entry.name.split(['<', '[']).next().unwrap_or_default();
    let words = names.split([' ', ',']);
    words.filter(|word| word.starts_with('-'))
}

/// Commands that stand in for programs of other projects: their switches have their own documents.
const STAND_INS: &[&str] = &["collectl", "rrd", "rrdcached", "poll"];

/// The help of kymo, and of each of its commands.
struct Help {
    parts: Vec<Part>,
    commands: Vec<(Entry, Vec<Part>)>,
}

impl Help {
    fn ask() -> Help {
        let mut parts = parts(&stdout_of(&["--help"]));
        let commands = parts.remove(0);
        assert_eq!(commands.heading, "Commands");
        let commands = commands.entries.into_iter().map(|command| {
            let own = !STAND_INS.contains(&&command.name[..]);
            let help = own.then(|| stdout_of(&[&command.name, "--help"]));
            let of_command = help.map_or(Vec::new(), |help| self::parts(&help));
            (command, of_command)
        });
        Help {
            commands: commands.collect(),
            parts,
        }
    }

    /// Entries of a command that kymo itself does not have.
    fn only<'a>(&'a self, command: &'a [Part]) -> impl Iterator<Item = &'a Entry> {
        let known = |entry: &Entry| {
            let mut all = self.parts.iter().flat_map(|part| &part.entries);
            all.any(|known| known.name == entry.name && known.about == entry.about)
        };
        let entries = command.iter().flat_map(|part| &part.entries);
        entries.filter(move |entry| !known(entry))
    }
}

/// A text as troff prints it unchanged.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

fn put_entries<'a>(entries: impl Iterator<Item = &'a Entry>, page: &mut String) {
    for Entry { name, about } in entries {
        let (name, about) = (roff(name), roff(about));
        writeln!(page, ".TP\n\\fB{name}\\fR\n{about}").expect("room");
    }
}

fn manual(help: &Help) -> String {
    let mut page = String::from(concat!(
        ".\\\" Made from kymo --help by tests/all/man.rs.\n.TH KYMO 1\n.SH NAME\n",
        "kymo \\- record a Linux machine's performance data, play it back and show it\n",
        ".SH SYNOPSIS\n.B kymo\n[\\fISWITCHES\\fR] [\\fIFILE\\fR...]\n.br\n",
        ".B kymo\n\\fICOMMAND\\fR [\\fISWITCHES\\fR]\n",
        ".SH DESCRIPTION\nWithout a file kymo shows this machine live, with \\fB\\-f\\fR \\fIDIR\\fR it records it, and files are played: ",
        "its own recordings, and collectl's .raw files.\nThe switches are collectl's. Under the name \\fBcollectl\\fR, a link to it, it ",
        "takes collectl's command line whole, with its settings and exit codes.\n.PP\n",
        "A page for browsers, programs' numbers, and what takes the place of rrdcached, rrdtool and MRTG are the commands below.\n",
    ));
    page += ".SH COMMANDS\n";
    put_entries(help.commands.iter().map(|(command, _)| command), &mut page);
    for part in &help.parts {
        writeln!(page, ".SH {}", roff(&part.heading.to_uppercase())).expect("room");
        put_entries(part.entries.iter(), &mut page);
    }
    page += ".SH LETTERS\nOf \\fB\\-s\\fR, any of them together.\n";
    for line in stdout_of(&["--showsubsys"]).lines() {
        if let Some((letter, about)) = line.split_once(" - ") {
            let (letter, about) = (letter.trim(), roff(about));
            writeln!(page, ".TP\n\\fB{letter}\\fR\n{about}").expect("room");
        }
    }
    for (command, parts) in &help.commands {
        let mut only = help.only(parts).peekable();
        if only.peek().is_some() {
            let name = roff(&command.name.to_uppercase());
            writeln!(page, ".SH KYMO {name}").expect("room");
            put_entries(only, &mut page);
        }
    }
    page += concat!(
        ".SH EXIT STATUS\n0; 1 where there is nothing to show; 2 where the command line is wrong or something cannot be done.\n",
        "Under the name collectl 0 where there is nothing to show, else 1.\n",
        ".SH FILES\n.TP\n\\fI/etc/kymo/kymo.toml\\fR\nsettings of kymo serve, see kymo config\n",
        ".TP\n\\fI/etc/collectl.conf\\fR\nsettings under the name collectl\n",
        ".SH SEE ALSO\ndocs/collectl.md has all switches of collectl, and what differs; docs/serve.md, docs/rrdcached.md, docs/rrd.md, ",
        "docs/poll.md and docs/mrtg.md the other parts.\n",
    );
    page
}

/// All words that can follow `kymo`, or a command of it.
fn completions<'a>(entries: impl Iterator<Item = &'a Entry>) -> String {
    let mut all: Vec<&str> = entries.flat_map(words).collect();
    all.sort_unstable();
    all.dedup();
    all.join(" ")
}

fn bash(help: &Help) -> String {
    let own = completions(help.parts.iter().flat_map(|part| &part.entries));
    let names: Vec<&str> = help
        .commands
        .iter()
        .map(|(command, _)| &command.name[..])
        .collect();
    let names = names.join(" ");
    let mut script = format!(
        "# Made from kymo --help by tests/all/man.rs.\n_kymo() {{\n  local word=${{COMP_WORDS[COMP_CWORD]}} words='{own}'\n  [ \"${{COMP_WORDS[0]##*/}}\" = collectl ] || case ${{COMP_WORDS[1]}} in\n"
    );
    for (command, parts) in &help.commands {
        let all = completions(parts.iter().flat_map(|part| &part.entries));
        if !all.is_empty() {
            writeln!(script, "    {}) words='{all}' ;;", command.name).expect("room");
        }
    }
    script += &format!(
        "  esac\n  [ \"$COMP_CWORD\" = 1 ] && [ \"${{COMP_WORDS[0]##*/}}\" = kymo ] && words=\"$words {names}\"\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}}\ncomplete -o default -F _kymo kymo\n[ \"$(readlink -f \"$(type -P collectl)\")\" != \"$(readlink -f \"$(type -P kymo)\")\" ] || complete -o default -F _kymo collectl\n"
    );
    script
}

#[test]
fn every_switch_has_its_place_in_the_manual_and_in_completions() {
    let help = Help::ask();
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut stale = Vec::new();
    for (name, text) in [("kymo.1", manual(&help)), ("kymo.bash", bash(&help))] {
        let path = dist.join(name);
        if update {
            fs::write(&path, &text).expect("a file of dist");
        } else if fs::read_to_string(&path).unwrap_or_default() != text {
            stale.push(name);
        }
        // The parser of the help must not lose a switch.
        for line in stdout_of(&["--help"]).lines().map(str::trim_start) {
            if line.starts_with('-') {
                let switch = line.split([' ', ',', '[']).next().expect("a word");
                let there = text.contains(switch) || text.contains(&roff(switch));
                assert!(there, "{switch} is not in {name}");
            }
        }
    }
    assert!(
        stale.is_empty(),
        "not as kymo --help has it: {stale:?} in dist; if that is right, run with UPDATE_GOLDEN=1"
    );
    let parts = help.parts.iter().filter(|part| is_of_switches(part));
    assert!(parts.count() > 1);
}

#[test]
fn bash_completes_switches_and_commands() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/kymo.bash");
    for (line, expected) in [
        ("kymo --proc", "--procfilt --procopts --procstate"),
        ("kymo exp", "export"),
        ("kymo export --f", "--from"),
        ("kymo play --showc", "--showcolheaders"),
        ("collectl --tcp", "--tcpfilt"),
        ("collectl exp", ""),
    ] {
        let asked = format!(
            "source {}; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _kymo; echo \"${{COMPREPLY[*]}}\"",
            script.display()
        );
        let folder = kymo().parent().expect("its folder").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-c", &asked])
            .env("PATH", format!("{folder}:{path}"))
            .output()
            .expect("bash");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            (said.trim(), &output.stderr[..]),
            (expected, &b""[..]),
            "{line}"
        );
    }
}
