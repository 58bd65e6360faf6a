//! Programs that kymo stands in for, started under their name or by a word of kymo's. They read their
//! command lines themselves, as the originals do.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

#[cfg(feature = "serve")]
use crate::commands::{bill, index, neighbours, poll, rrd, rrdcached};

/// A program that kymo stands in for.
pub(crate) struct StandIn {
    /// Name of the original.
    pub program: &'static str,
    /// kymo's word.
    pub word: &'static str,
    /// A line for the help.
    pub about: &'static str,
    /// Text of its own help.
    #[cfg(feature = "serve")]
    pub help: fn() -> String,
    /// Runs it with the words behind its name.
    pub run: fn(Vec<OsString>) -> ExitCode,
}

/// All such programs.
pub(crate) const ALL: &[StandIn] = &[
    #[cfg(feature = "serve")]
    StandIn {
        program: "rrdtool",
        word: "rrd",
        about: "Run rrdtool's commands on files and through daemons",
        help: rrd::help,
        run: rrd::run,
    },
    #[cfg(feature = "serve")]
    StandIn {
        program: "rrdcached",
        word: "rrdcached",
        about: "Run as rrdcached: take values, keep .rrd files",
        help: rrdcached::help,
        run: rrdcached::run,
    },
    #[cfg(feature = "serve")]
    StandIn {
        program: "mrtg",
        word: "poll",
        about: "Poll devices by SNMP as an mrtg.cfg says",
        help: poll::help,
        run: poll_or_report,
    },
];

#[cfg(feature = "serve")]
fn poll_or_report(words: Vec<OsString>) -> ExitCode {
    match words.split_first() {
        Some((first, others)) if first == "--bill" => bill::run(others),
        Some((first, others)) if first == "--index" => index::run(others),
        Some((first, others)) if first == "--neighbours" => neighbours::run(others),
        _ => poll::run(words),
    }
}

/// The program that a command line asks for, and the words for it.
pub(crate) fn find(
    mut words: impl Iterator<Item = OsString>,
) -> Option<(&'static StandIn, Vec<OsString>)> {
    let name = words.next()?;
    let name = Path::new(&name).file_name();
    if let Some(found) = ALL.iter().find(|each| name == Some(each.program.as_ref())) {
        return Some((found, words.collect()));
    }
    let word = words.next()?;
    let found = ALL.iter().find(|each| word == each.word)?;
    Some((found, words.collect()))
}

#[cfg(all(test, feature = "serve"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_a_word_finds_it() {
        for (line, expected) in [
            ("/usr/bin/rrdtool update x", Some("rrd update x")),
            ("./rrdtool", Some("rrd ")),
            ("kymo rrd - rrd", Some("rrd - rrd")),
            ("kymo record rrd", None),
            ("/usr/bin/rrdcached -g", Some("rrdcached -g")),
            ("./rrdcached", Some("rrdcached ")),
            (
                "kymo rrdcached -g rrdcached",
                Some("rrdcached -g rrdcached"),
            ),
            ("kymo record rrdcached", None),
            ("/usr/bin/mrtg a.cfg", Some("poll a.cfg")),
            ("kymo poll a.cfg --check", Some("poll a.cfg --check")),
            ("kymo", None),
            ("", None),
        ] {
            let found = find(line.split(' ').map(OsString::from));
            let found = found.map(|(program, words)| {
                let words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
                format!("{} {}", program.word, words.join(" "))
            });
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }
}
