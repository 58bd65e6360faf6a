//! The help: the syntax of each command, as rrdtool has it.

use std::io::{self, Write};

/// Way in which commands arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// One command on the command line.
    Plain,
    /// Commands over a pipe.
    Piped,
}

/// Answer to `version`: programs look for rrdtool's number after its name.
pub(super) const VERSION: &str = concat!(
    "RRDtool 1.7.2  kymo ",
    env!("CARGO_PKG_VERSION"),
    " (1.700200)\n"
);

/// Prints the help of a command; for an unknown one, the list of all commands.
pub(super) fn print(out: &mut impl Write, command: &[u8], mode: Mode) -> io::Result<()> {
    out.write_all(VERSION.as_bytes())?;
    out.write_all(b"\nUsage: rrdtool [options] command command_options\n")?;
    let found = SYNTAX.iter().find(|each| each.0.as_bytes() == command);
    if let Some((name, about, syntax)) = found {
        writeln!(
            out,
            "* {name} - {about}\n\n\trrdtool {name}{}\n",
            indented(syntax)
        )?;
        return Ok(());
    }
    out.write_all(
        b"Valid commands: create, update, updatev, dump, restore,\n\
          \t\tlast, lastupdate, first, info, list, fetch, tune,\n\
          \t\tresize, flushcached\n\n",
    )?;
    match mode {
        Mode::Plain => out.write_all(b"Of kymo's store: import, export (each with --help)\n\n"),
        Mode::Piped => out.write_all(b"Valid remote commands: quit, ls, cd, mkdir, pwd\n\n"),
    }
}

/// Commands of a command line, each with its purpose and syntax.
pub(super) fn all() -> String {
    let is_remote = |name: &str| ["quit", "ls", "cd", "mkdir", "pwd"].contains(&name);
    let mut text = String::new();
    for (name, about, syntax) in SYNTAX.iter().filter(|each| !is_remote(each.0)) {
        text += &format!(
            "{name}: {about}\n\n\tkymo rrd {name}{}\n\n",
            indented(syntax)
        );
    }
    text += "import, export: of kymo's store; each has --help\n";
    text
}

/// Joins the lines of a syntax; lines after the first are indented.
fn indented(syntax: &[&str]) -> String {
    match syntax {
        [] => String::new(),
        lines => format!(" {}", lines.join("\n\t\t")),
    }
}

/// Commands with their purpose and syntax.
const SYNTAX: &[(&str, &str, &[&str])] = &[
    (
        "create",
        "create a new RRD",
        &[
            "filename [--start|-b start time]",
            "[--step|-s step]",
            "[--template|-t template-file]",
            "[--source|-r source-file]",
            "[--no-overwrite|-O]",
            "[--daemon|-d address]",
            "[DS:ds-name:DST:dst arguments]",
            "[RRA:CF:cf arguments]",
        ],
    ),
    (
        "dump",
        "dump an RRD to XML",
        &[
            "[--header|-h {none,xsd,dtd}]",
            "[--no-header|-n]",
            "[--daemon|-d address]",
            "file.rrd [file.xml]",
        ],
    ),
    (
        "info",
        "the configuration and status of an RRD",
        &["[--daemon|-d <addr> [--noflush|-F]] filename.rrd"],
    ),
    (
        "list",
        "the list of RRDs",
        &["[--daemon|-d <address>] [--noflush|-F] [--recursive|-r] <dirname>"],
    ),
    (
        "restore",
        "an RRD from its XML form",
        &["[--range-check|-r] [--force-overwrite|-f] filename.xml filename.rrd"],
    ),
    (
        "last",
        "the time of the last update of an RRD",
        &["filename.rrd", "[--daemon|-d address]"],
    ),
    (
        "lastupdate",
        "the most recent datum of each DS of an RRD",
        &["filename.rrd", "[--daemon|-d address]"],
    ),
    (
        "first",
        "the time of the first row of an RRA",
        &["filename.rrd [--rraindex number] [--daemon|-d address]"],
    ),
    (
        "update",
        "update an RRD",
        &[
            "filename",
            "[--template|-t ds-name:ds-name:...]",
            "[--skip-past-updates|-s]",
            "[--daemon|-d <address>]",
            "time|N:value[:value...]",
            "at-time@value[:value...]",
            "[ time:value[:value...] ..]",
        ],
    ),
    (
        "updatev",
        "update, and tell of the rows written",
        &[
            "filename",
            "[--template|-t ds-name:ds-name:...]",
            "[--skip-past-updates|-s]",
            "time|N:value[:value...]",
            "at-time@value[:value...]",
            "[ time:value[:value...] ..]",
        ],
    ),
    (
        "fetch",
        "fetch data out of an RRD",
        &[
            "filename.rrd CF",
            "[-r|--resolution resolution]",
            "[-s|--start start] [-e|--end end]",
            "[-a|--align-start]",
            "[-d|--daemon <address>]",
        ],
    ),
    (
        "flushcached",
        "have a daemon write what it holds of files",
        &["filename.rrd ...", "[-d|--daemon <address>]"],
    ),
    (
        "tune",
        "modify an RRD",
        &[
            "filename",
            "[--heartbeat|-h ds-name:heartbeat]",
            "[--data-source-type|-d ds-name:DST]",
            "[--data-source-rename|-r old-name:new-name]",
            "[--minimum|-i ds-name:min] [--maximum|-a ds-name:max]",
            "[--deltapos|-p scale-value] [--deltaneg|-n scale-value]",
            "[--failure-threshold|-f integer]",
            "[--window-length|-w integer]",
            "[--alpha|-x adaptation-parameter]",
            "[--beta|-y adaptation-parameter]",
            "[--gamma|-z adaptation-parameter]",
            "[--gamma-deviation|-v adaptation-parameter]",
            "[--smoothing-window|-s fraction-of-season]",
            "[--smoothing-window-deviation|-S fraction-of-season]",
            "[--aberrant-reset|-b ds-name]",
            "[--step|-t newstep]",
            "[--daemon|-D address]",
            "[DEL:ds-name]",
            "[DS:ds-spec]",
            "[DELRRA:index]",
            "[RRA:rra-spec]",
            "[RRA#index:[+-=]number]",
        ],
    ),
    (
        "resize",
        "alter the length of an RRA",
        &["filename rranum GROW|SHRINK rows"],
    ),
    ("quit", "close a session in remote mode", &[]),
    ("ls", "list all *.rrd files in the current directory", &[]),
    ("cd", "change the current directory", &["newdirectory"]),
    ("mkdir", "create a new directory", &["newdirectoryname"]),
    ("pwd", "the current working directory", &[]),
];
