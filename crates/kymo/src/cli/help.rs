//! `kymo --help` on one screen, `kymo help WORD...`, and the order of each command's help: examples first, then options.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

use clap::Command;
use clap::builder::StyledStr;

use crate::cli::{examples, stand_in, styles, topics};

/// Groups of commands, in the order of the first screen.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Look",
        &[
            "top", "play", "why", "graph", "programs", "query", "watch", "series",
        ],
    ),
    (
        "Run",
        &[
            "record",
            "cost",
            "serve",
            "config",
            "discover",
            "poll",
            "rrdcached",
        ],
    ),
    (
        "Move",
        &[
            "import", "export", "backup", "restore", "dump", "rrd", "collectl",
        ],
    ),
    ("Mend", &["doctor", "status", "verify"]),
    ("Help", &["help", "completions", "man"]),
];

/// Order of a command's help.
const ORDER: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Columns of a line of topics.
const TOPICS_WIDTH: usize = 68;

/// The word that asks for help.
const WORD: &str = "help";

/// A command line whose help begins with a screen of groups; each command's begins with examples.
pub(super) fn dressed(command: Command) -> Command {
    let command = styles::styled(command);
    let screen = screen(&command);
    let styles = command.get_styles().clone();
    command
        .override_help(screen)
        .mut_subcommands(|command| with_examples(command, "", &styles))
}

/// A command with its examples, and its own commands with theirs.
fn with_examples(command: Command, above: &str, styles: &clap::builder::Styles) -> Command {
    let words = format!("{above} {}", command.get_name());
    let words = words.trim_start();
    let command = topics::with_headings_of(words, command).help_template(ORDER);
    let command = match examples::of(words) {
        Some(guide) => command
            .before_help(guide.text(styles))
            .after_help(guide.more_text(styles)),
        None => command,
    };
    command.mut_subcommands(|command| with_examples(command, words, styles))
}

/// The first screen: ways to start kymo, the commands in groups, the topics.
fn screen(command: &Command) -> StyledStr {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let about = command.get_about().map(ToString::to_string);
    let mut screen = format!("{}\n", about.unwrap_or_default());
    let _ = write!(
        screen,
        "{header}Usage:{header:#} {literal}kymo{literal:#} [SWITCHES]          show this machine live; with -f DIR record it\n       \
         {literal}kymo{literal:#} [SWITCHES] FILE...  play recordings, and files of collectl\n"
    );
    screen.push('\n');
    for (group, names) in GROUPS {
        let commands = names
            .iter()
            .filter_map(|name| command.find_subcommand(name));
        for (at, command) in commands.enumerate() {
            let group = match at {
                0 => format!("{header}{group:<8}{header:#}"),
                _ => " ".repeat(8),
            };
            let about = command.get_about().map(ToString::to_string);
            let _ = writeln!(
                screen,
                "{group}{literal}{:<13}{literal:#}{}",
                command.get_name(),
                about.unwrap_or_default()
            );
        }
    }
    let _ = writeln!(screen, "\n{header}Topics{header:#} {}", topic_words());
    let _ = writeln!(
        screen,
        "\n{literal}kymo COMMAND --help{literal:#}: examples and options; {literal}kymo help TOPIC{literal:#}: switches by subject"
    );
    screen.into()
}

/// Words of all topics, on lines that fit below each other.
fn topic_words() -> String {
    let (mut lines, mut width) = (String::new(), 0);
    for topic in topics::ALL {
        if width + topic.word.len() > TOPICS_WIDTH {
            lines += "\n       ";
            width = 0;
        }
        lines += " ";
        lines += topic.word;
        width += topic.word.len() + 1;
    }
    lines
}

/// The command line that has the help of a line's command.
pub(super) fn of_line(words: &[OsString], command: &Command) -> String {
    let mut line = command.get_name().to_string();
    let mut command = command;
    for word in words.iter().skip(1) {
        let Some(below) = command.find_subcommand(word) else {
            break;
        };
        line = format!("{line} {}", below.get_name());
        command = below;
    }
    match line.as_str() {
        "kymo" => format!("kymo help {}", topics::SWITCHES),
        "collectl" => "kymo --help".into(),
        _ => format!("{line} --help"),
    }
}

/// Turns `kymo help COMMAND...` into `kymo COMMAND... --help`. Topics and other words stay.
pub(crate) fn turned(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_asked = words.get(1).is_some_and(|word| word == WORD);
    let named = words.get(2).and_then(|word| word.to_str());
    let is_command = |name: &str| {
        let command = super::declared();
        command.find_subcommand(name).is_some()
    };
    match named {
        _ if !is_asked => {}
        None if words.len() == 2 => words = [words.swap_remove(0), "--help".into()].into(),
        Some(name) if name == WORD || !is_command(name) => {}
        // As rrdtool has it, except for the commands of kymo's store.
        Some("rrd") if words.len() > 3 && !is_of_store(&words[3]) => words.swap(1, 2),
        Some(_) => {
            words.remove(1);
            words.push("--help".into());
        }
        None => {}
    }
    words
}

fn is_of_store(word: &OsStr) -> bool {
    word == "import" || word == "export"
}

/// The page of a topic; an error for other words.
pub(super) fn page(words: &[String]) -> Result<StyledStr, String> {
    let shown = words.join(" ");
    let topic = match words {
        [word] => topics::of(word),
        _ => None,
    };
    topic.map(topics::Topic::page).ok_or_else(|| {
        format!(
            "cannot show help on {}: no such topic or command; see kymo --help",
            shown.escape_debug()
        )
    })
}

/// Examples of a program that kymo stands in for, when its word is followed by a question for help. Under its own name it has
/// its own help alone.
pub(crate) fn examples_before(words: &[OsString]) -> Option<StyledStr> {
    let [_, word, option] = words else {
        return None;
    };
    let word = word.to_str()?;
    let is_program = stand_in::ALL.iter().any(|program| program.word == word);
    let is_asked = option == "--help" || option == "-h";
    let guide = examples::of(word).filter(|_| is_program && is_asked)?;
    let styles = styles::styled(Command::new("kymo")).get_styles().clone();
    let (mut text, more) = (guide.text(&styles), guide.more_text(&styles));
    text.push_str(&format!("\n\n{}\n\n", styles::raw(&more)));
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(command: &Command) -> impl Iterator<Item = &Command> {
        command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
    }

    #[test]
    fn each_command_is_in_one_group() {
        let command = super::super::declared();
        for name in shown(&command).map(Command::get_name) {
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&name));
            assert_eq!(groups.count(), 1, "{name}");
        }
        let grouped = GROUPS.iter().flat_map(|(_, names)| *names);
        for name in grouped.filter(|_| cfg!(feature = "serve")) {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
    }

    #[test]
    fn the_first_screen_fits() {
        let screen = dressed(super::super::declared()).render_help().to_string();
        let lines = screen.lines().count();
        assert!(lines <= 40, "{lines} lines:\n{screen}");
        #[cfg(feature = "serve")]
        assert!(lines >= 24, "{lines} lines:\n{screen}");
        for line in screen.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn each_command_has_examples_that_it_takes() {
        fn each(command: &Command, above: &str) {
            for command in shown(command) {
                let words = format!("{above} {}", command.get_name());
                let words = words.trim_start();
                let guide = examples::of(words);
                assert!(
                    guide.is_some_and(|guide| !guide.examples.is_empty()),
                    "{words}"
                );
                each(command, words);
            }
        }
        let command = super::super::declared();
        each(&command, "");
        let refused = |line: &str| {
            let words = line.split(' ').map(|word| word.trim_matches('\'').into());
            match crate::cli::parse(words.collect()) {
                Err(crate::cli::Stop::Refuse(why)) => Some(why),
                _ => None,
            }
        };
        for guide in examples::ALL {
            let is_own = stand_in::ALL
                .iter()
                .all(|program| program.word != guide.command);
            let first = guide.command.split(' ').next().unwrap_or_default();
            let is_built = first.is_empty() || command.find_subcommand(first).is_some();
            for (_, line) in guide.examples.iter().filter(|_| is_own && is_built) {
                // Expressions of PromQL have blanks between quotes; these are tried by the tests of `kymo query`.
                let line = line.split(" >").next().unwrap_or_default();
                let line = line
                    .strip_prefix("source <(")
                    .unwrap_or(line)
                    .trim_end_matches(')');
                let is_file = line.contains("kymo rec ");
                if !is_file
                    && line.matches('\'').count() % 2 == 0
                    && !line.contains(", ")
                    && !line.contains(" collectl")
                {
                    assert_eq!(refused(line), None, "{line}");
                }
                assert!(line.chars().count() <= 76, "{line}");
            }
        }
    }

    #[test]
    fn documents_of_guides_are_there() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for guide in examples::ALL {
            for word in guide.more.split([' ', ',', ';']) {
                if word.starts_with("docs/") {
                    assert!(root.join(word).exists(), "{word}");
                }
            }
            if let Some(listed) = guide.more.strip_prefix("kymo help ") {
                let listed = listed.split(';').next().unwrap_or_default();
                for word in listed.split(", ") {
                    assert!(topics::of(word).is_some(), "{word}");
                }
            }
        }
    }

    #[test]
    fn words_for_help_are_turned() {
        for (line, expected) in [
            ("kymo help", "kymo --help"),
            ("kymo help play", "kymo play --help"),
            ("kymo help time", "kymo help time"),
            ("kymo help wherefore", "kymo help wherefore"),
            ("kymo help help", "kymo help help"),
            ("kymo play help", "kymo play help"),
            #[cfg(feature = "serve")]
            ("kymo help series ls", "kymo series ls --help"),
            #[cfg(feature = "serve")]
            ("kymo help poll", "kymo poll --help"),
            #[cfg(feature = "serve")]
            ("kymo help rrd fetch", "kymo rrd help fetch"),
            #[cfg(feature = "serve")]
            ("kymo help rrd import", "kymo rrd import --help"),
        ] {
            let words = line.split(' ').map(OsString::from).collect();
            let turned: Vec<_> = turned(words)
                .into_iter()
                .filter_map(|word| word.into_string().ok())
                .collect();
            assert_eq!(turned.join(" "), expected, "{line}");
        }
    }

    #[test]
    fn no_topic_has_the_name_of_a_command() {
        let command = super::super::declared();
        for topic in topics::ALL {
            assert!(
                command.find_subcommand(topic.word).is_none(),
                "{}",
                topic.word
            );
        }
    }
}
