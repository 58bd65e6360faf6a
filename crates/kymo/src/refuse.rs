//! clap's complaints in the project's words: one line, `cannot <verb> <object>: <cause>`.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Switches of collectl that are not built yet.
const NOT_YET: &[&str] = &[
    "--all",
    "--ALL",
    "--rolllogs",
    "-r",
    "--flush",
    "-F",
    "--daemon",
    "-D",
    "--pname",
    "--runas",
    "--umask",
    "--nice",
    "-N",
    "--nohup",
    "--align",
    "--address",
    "-A",
    "--comment",
    "--config",
    "-C",
    "--quiet",
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
pub fn line(error: &Error) -> String {
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
                format!("cannot use {argument}: given twice, or not with a command")
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

fn unknown(argument: &str) -> String {
    let name = argument.split('=').next().unwrap_or(argument);
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
