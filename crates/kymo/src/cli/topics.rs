//! `kymo help TOPIC`: the switches of the command line without a command, by subject, each subject with its tables and prose.

pub(super) mod texts;

use clap::builder::StyledStr;
use clap::{Args as _, Command};

use crate::cli::{Classic, styles};
use texts::{DEFAULTS, OPTIONS, SUBSYSTEM_OPTIONS, letters, orders};

/// A subject of the help.
pub(super) struct Topic {
    /// Word on the command line.
    pub word: &'static str,
    /// Heading of the page.
    pub title: &'static str,
    /// Names of switches; without, all switches by topic.
    switches: Option<&'static [&'static str]>,
    /// Tables and prose before the switches.
    text: fn() -> String,
}

/// All topics. Each switch is in one of them.
pub(super) const ALL: &[Topic] = &[
    Topic {
        word: "subsystems",
        title: "Subsystems",
        switches: Some(&[
            "subsys",
            "all",
            "all_details",
            "cpuopts",
            "dskopts",
            "netopts",
            "memopts",
            "slabopts",
            "xopts",
            "tcpfilt",
        ]),
        text: || [letters(), "\n".into(), SUBSYSTEM_OPTIONS.into()].concat(),
    },
    Topic {
        word: "filters",
        title: "Filters and orders",
        switches: Some(&[
            "cpufilt",
            "dskfilt",
            "netfilt",
            "intfilt",
            "slabfilt",
            "dskremap",
            "procfilt",
            "procopts",
            "procstate",
            "top",
            "limits",
            "passwd",
        ]),
        text: || [texts::FILTERS.into(), "\n".into(), orders()].concat(),
    },
    Topic {
        word: "formats",
        title: "Formats",
        switches: Some(&[
            "verbose",
            "plot",
            "csv",
            "json",
            "stamp",
            "sep",
            "header_repeat",
            "iosize",
            "wide",
            "full",
            "home",
            "vmstat",
            "export",
            "stats",
            "statopts",
        ]),
        text: || [texts::FORMATS, OPTIONS].join("\n"),
    },
    Topic {
        word: "time",
        title: "Times and intervals",
        switches: Some(&[
            "interval",
            "count",
            "runtime",
            "from",
            "thru",
            "align",
            "phase",
            "utc",
            "offsettime",
        ]),
        text: || texts::TIMES.into(),
    },
    Topic {
        word: "recording",
        title: "Recording and playing",
        switches: Some(&[
            "files",
            "playback",
            "dir",
            "cap",
            "keep",
            "rolllogs",
            "sync",
            "rawtoo",
            "show",
            "threads",
            "redact",
            "cost",
            "root",
            "status",
            "no_backoff",
            "slow_ms",
            "flush",
            "comment",
        ]),
        text: || texts::RECORDING.into(),
    },
    Topic {
        word: "background",
        title: "Life in the background",
        switches: Some(&[
            "daemon", "pname", "pidfile", "runas", "umask", "messages", "nohup", "nice", "quiet",
        ]),
        text: || texts::BACKGROUND.into(),
    },
    Topic {
        word: "clients",
        title: "Clients of the live view",
        switches: Some(&["address", "insecure"]),
        text: || texts::CLIENTS.into(),
    },
    Topic {
        word: "texts",
        title: "Recorded texts",
        switches: Some(&["grep", "extract", "showheader", "showcolheaders"]),
        text: || texts::TEXTS.into(),
    },
    Topic {
        word: "configuration",
        title: "Configuration",
        switches: Some(&[
            "config",
            "help",
            "version",
            "version_too",
            "helpextend",
            "helpall",
            "showsubsys",
            "showoptions",
            "showsubopts",
            "showtopopts",
            "showdefs",
            "whatsnew",
        ]),
        text: || [texts::CONFIGURATION, DEFAULTS].join("\n"),
    },
    Topic {
        word: "exit",
        title: "Exit codes",
        switches: Some(&[]),
        text: || texts::EXIT.into(),
    },
    Topic {
        word: SWITCHES,
        title: "All switches of kymo without a command",
        switches: None,
        text: || "Each topic of kymo help has some of these, with tables.\n".into(),
    },
];

/// The topic of all switches.
pub(super) const SWITCHES: &str = "switches";

/// The topic of a word.
pub(super) fn of(word: &str) -> Option<&'static Topic> {
    ALL.iter().find(|topic| topic.word == word)
}

/// The heading of a switch.
fn heading(switch: &str) -> Option<&'static str> {
    let topic = ALL.iter().find(|topic| topic.lists(switch));
    topic.map(|topic| topic.title)
}

/// Commands that have the switches of kymo without a command, or some of them.
const SWITCHED: &[&str] = &["record", "play", "cost"];

/// A command whose switches stand below the titles of their topics, if it has these switches.
pub(super) fn with_headings_of(name: &str, command: Command) -> Command {
    match SWITCHED.contains(&name) {
        true => with_headings(command),
        false => command,
    }
}

fn with_headings(command: Command) -> Command {
    command.mut_args(|switch| match heading(switch.get_id().as_str()) {
        Some(heading) => switch.help_heading(heading),
        None => switch,
    })
}

/// The switches of a command line without a command.
pub(super) fn switches() -> Command {
    let command = Classic::augment_args(styles::styled(Command::new("kymo")));
    with_headings(command)
        .disable_help_flag(true)
        .disable_version_flag(true)
}

impl Topic {
    /// Tables and prose.
    #[cfg(feature = "serve")]
    pub(super) fn prose(&self) -> String {
        (self.text)()
    }

    /// True if a switch belongs to the topic alone.
    fn lists(&self, switch: &str) -> bool {
        self.switches.is_some_and(|names| names.contains(&switch))
    }

    /// Title, tables and prose, and the switches.
    pub(super) fn page(&self) -> StyledStr {
        let is_whole = self.switches.is_none();
        let has_help = is_whole || self.lists("help");
        let command = switches()
            .version(env!("CARGO_PKG_VERSION"))
            .disable_help_flag(!has_help)
            .disable_version_flag(!has_help);
        let header = *command.get_styles().get_header();
        let text = (self.text)();
        let mut page = StyledStr::from(format!("{header}{}{header:#}\n\n{text}", self.title));
        let command = command.mut_args(|switch| {
            let is_listed = is_whole || self.lists(switch.get_id().as_str());
            let is_hidden = switch.is_hide_set() || !is_listed;
            let switch = switch.hide(is_hidden);
            match is_whole {
                true => switch,
                false => switch.help_heading("Switches"),
            }
        });
        if has_help || command.get_arguments().any(|switch| !switch.is_hide_set()) {
            let list = command.help_template("{all-args}").render_help();
            page.push_str(&format!("\n{}", styles::raw(&list)));
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_switch_has_one_topic() {
        for switch in switches()
            .get_arguments()
            .filter(|switch| !switch.is_hide_set())
        {
            let name = switch.get_id().as_str();
            let topics = ALL.iter().filter(|topic| topic.lists(name));
            assert_eq!(topics.count(), 1, "{name}");
        }
    }

    #[test]
    fn each_name_of_a_topic_is_a_switch() {
        let command = switches();
        let own = ["help", "version"];
        for name in ALL.iter().filter_map(|topic| topic.switches).flatten() {
            let is_there = command
                .get_arguments()
                .any(|switch| switch.get_id() == name);
            assert!(is_there || own.contains(name), "{name}");
        }
    }

    #[test]
    fn a_page_has_the_switches_of_its_topic_alone() {
        for (word, there, elsewhere) in [
            ("subsystems", "--cpuopts", "--procfilt <"),
            ("filters", "--procfilt <", "--cap"),
            ("time", "--thru <", "--json"),
            ("recording", "--cap <", "--json"),
            ("switches", "--cap <", "--seal-bytes"),
        ] {
            let page = of(word).unwrap().page().to_string();
            assert!(page.contains(there), "{word}: {page}");
            assert!(!page.contains(elsewhere), "{word}: {page}");
        }
        let exit = of("exit").unwrap().page().to_string();
        assert!(exit.contains("cannot VERB OBJECT: CAUSE"), "{exit}");
    }

    #[test]
    fn all_switches_have_each_switch() {
        let page = of(SWITCHES).unwrap().page().to_string();
        for switch in switches()
            .get_arguments()
            .filter(|switch| !switch.is_hide_set())
        {
            if let Some(long) = switch.get_long() {
                assert!(page.contains(&format!("--{long}")), "{long}");
            }
        }
    }

    #[test]
    fn prose_fits_a_terminal() {
        for topic in ALL {
            for line in (topic.text)()
                .lines()
                .filter(|line| !line.contains("procfilt "))
            {
                assert!(line.chars().count() <= 116, "{}: {line}", topic.word);
            }
        }
    }
}
