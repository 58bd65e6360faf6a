//! clap's complaints in the project's words: one line, `cannot <verb> <object>: <cause>`.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args as _, Error};

use crate::options::RecordOptions;

/// Switches of collectl that are not built yet.
const NOT_YET: &[&str] = &[
    "--all",
    "--ALL",
    "--rolllogs",
    "-r",
    "--daemon",
    "-D",
    "--pname",
    "--runas",
    "--umask",
    "--address",
    "-A",
    "--config",
    "-C",
    "--messages",
    "-m",
    "--rawdskfilter",
    "--rawdskfilt",
    "--rawdskignore",
    "--rawnetfilter",
    "--rawnetfilt",
    "--rawnetignore",
    "--tworaw",
    "--group",
    "-G",
    "--utime",
    "--debug",
    "-d",
    "--full",
    "--home",
    "--wide",
    "-w",
    "--iosize",
    "--limits",
    "-l",
    "--stats",
    "--statopts",
    "--vmstat",
    "-L",
    "--showdefs",
    "--showheader",
    "--showcolheaders",
    "--showoptions",
    "--showsubsys",
    "--showsubopts",
    "--showtopopts",
    "--showslabaliases",
    "--showrootslabs",
    "--whatsnew",
    "-x",
    "--helpextend",
    "-X",
    "--helpall",
    "-v",
    "--cpuopts",
    "--cpufilt",
    "--dskopts",
    "--dskfilt",
    "--dskremap",
    "--netopts",
    "--netfilt",
    "--intfilt",
    "--memopts",
    "--nfsfilt",
    "--nfsopts",
    "--tcpfilt",
    "--xopts",
    "--slabfilt",
    "--slabopts",
    "--lustopts",
    "--lustsvcs",
    "--envopts",
    "--envfilt",
    "--envremap",
    "--envrules",
    "--envdebug",
    "--envtest",
    "--procstate",
    "--passwd",
    "--offsettime",
    "--grep",
    "--extract",
    "--procanalyze",
    "--slabanalyze",
    "--export",
    "--import",
];

/// The line for one of clap's errors.
pub(crate) fn line(error: &Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let argument = text(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => unknown(&argument),
        ErrorKind::InvalidSubcommand => {
            format!(
                "cannot run {}: no such command; see kymo --help",
                text(ContextKind::InvalidSubcommand).escape_debug()
            )
        }
        ErrorKind::MissingRequiredArgument => {
            format!("cannot run kymo: {argument} is missing; see kymo --help")
        }
        ErrorKind::ArgumentConflict => match text(ContextKind::PriorArg) {
            prior if prior.is_empty() || prior == argument => {
                format!("cannot use {argument}: given twice")
            }
            prior => format!("cannot use {argument}: not together with {prior}"),
        },
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let value = text(ContextKind::InvalidValue);
            match text(ContextKind::ValidValue) {
                _ if value.is_empty() => format!("cannot use {argument}: its value is missing"),
                valid if valid.is_empty() => format!(
                    "cannot use {argument} {}: not a valid value",
                    value.escape_debug()
                ),
                valid => format!(
                    "cannot use {argument} {}: it takes {valid}",
                    value.escape_debug()
                ),
            }
        }
        _ => {
            let whole = error.to_string();
            let first = whole.lines().next().unwrap_or_default();
            format!(
                "cannot read the command line: {}",
                first.trim_start_matches("error: ")
            )
        }
    }
}

/// A switch as people type it.
pub(crate) fn name(switch: &Arg) -> String {
    match (switch.get_short(), switch.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (_, Some(long)) => format!("--{long}"),
        _ => switch.get_id().to_string(),
    }
}

fn unknown(argument: &str) -> String {
    let name = argument.split('=').next().unwrap_or(argument);
    let recorder = RecordOptions::augment_args(clap::Command::new("record"));
    let is_this = |switch: &Arg| {
        let long = name.strip_prefix("--").map(str::to_string);
        self::name(switch) == name || long.is_some_and(|long| switch.get_long() == Some(&long))
    };
    if recorder.get_arguments().any(is_this) {
        return format!("cannot use {name}: it is for recording, not for this command");
    }
    // collectl takes any unique beginning of a long switch.
    let known = NOT_YET
        .iter()
        .any(|s| *s == name || (name.len() > 4 && s.starts_with(name)));
    match known {
        true => format!("cannot use {name}: not yet"),
        false => format!(
            "cannot use {}: no such switch; see kymo --help",
            name.escape_debug()
        ),
    }
}
