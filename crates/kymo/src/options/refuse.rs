//! clap's errors in the project's words: one line, `cannot <verb> <object>: <cause>`.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args as _, Error};

use crate::options::RecordOptions;

const LIVE: &str = "it is for what is shown live, kymo -scdn -A; the recorder has no clients";
const SUMS: &str = "-P has each interval; --csv and --json give them to a program that adds up";
const LUSTRE: &str = "Lustre is not read; a program can publish such numbers, see docs/programs.md";
const NFS: &str = "all versions of NFS that are in use are shown";
const ENVIRONMENT: &str = "ipmitool is not run";
const SLUB: &str = "kernels have no such names where kymo reads slabs, in /proc/slabinfo";
const ALL_RECORDED: &str = "all devices are recorded; --dskfilt and --netfilt choose what is shown";

/// Switches of collectl that kymo lacks, and why.
const REFUSED: &[(&str, &str)] = &[
    ("--address", LIVE),
    ("-A", LIVE),
    ("--rawdskfilter", ALL_RECORDED),
    ("--rawdskfilt", ALL_RECORDED),
    ("--rawdskignore", ALL_RECORDED),
    ("--rawnetfilter", ALL_RECORDED),
    ("--rawnetfilt", ALL_RECORDED),
    ("--rawnetignore", ALL_RECORDED),
    (
        "--tworaw",
        "a recording has a stream for each source: nothing has to be split",
    ),
    (
        "--group",
        "a recording has a stream for each source: nothing has to be split",
    ),
    (
        "-G",
        "a recording has a stream for each source: nothing has to be split",
    ),
    (
        "--utime",
        "what each read cost is always recorded; see kymo doctor and kymo dump",
    ),
    (
        "--debug",
        "there is nothing to debug with it; see kymo doctor",
    ),
    ("-d", "there is nothing to debug with it; see kymo doctor"),
    ("--showslabaliases", SLUB),
    ("--showrootslabs", SLUB),
    ("--nfsfilt", NFS),
    ("--nfsopts", NFS),
    ("--lustopts", LUSTRE),
    ("--lustsvcs", LUSTRE),
    ("-L", LUSTRE),
    ("--envopts", ENVIRONMENT),
    ("--envfilt", ENVIRONMENT),
    ("--envremap", ENVIRONMENT),
    ("--envrules", ENVIRONMENT),
    ("--envdebug", ENVIRONMENT),
    ("--envtest", ENVIRONMENT),
    ("--procanalyze", SUMS),
    ("--slabanalyze", SUMS),
    (
        "--import",
        "no code is loaded; a program publishes its numbers instead, see docs/programs.md",
    ),
];

/// The line for one of clap's errors; `see` is the command that has the help.
pub(crate) fn line(error: &Error, see: &str) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let argument = text(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => unknown(&argument, see),
        ErrorKind::InvalidSubcommand => {
            format!(
                "cannot run {}: no such command; see {see}",
                text(ContextKind::InvalidSubcommand).escape_debug()
            )
        }
        ErrorKind::MissingRequiredArgument => {
            format!("cannot run kymo: {argument} is missing; see {see}")
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
                    "cannot use {argument} {}: {}",
                    value.escape_debug(),
                    std::error::Error::source(error)
                        .map_or_else(|| "not a valid value".into(), |why| why.to_string())
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

/// Name of a switch as on a command line.
pub(crate) fn name(switch: &Arg) -> String {
    match (switch.get_short(), switch.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (_, Some(long)) => format!("--{long}"),
        _ => switch.get_id().to_string(),
    }
}

fn unknown(argument: &str, see: &str) -> String {
    let name = argument.split('=').next().unwrap_or(argument);
    let recorder = RecordOptions::augment_args(clap::Command::new("record"));
    let is_this = |switch: &Arg| {
        let long = name.strip_prefix("--").map(str::to_string);
        self::name(switch) == name || long.is_some_and(|long| switch.get_long() == Some(&long))
    };
    if recorder.get_arguments().any(is_this) {
        return format!("cannot use {name}: it is for recording, not for this command");
    }
    // collectl accepts any unique beginning of a long switch.
    let known = REFUSED
        .iter()
        .find(|(s, _)| *s == name || (name.len() > 4 && s.starts_with(name)));
    match known {
        Some((_, why)) => format!("cannot use {name}: {why}"),
        None => format!(
            "cannot use {}: no such switch; see {see}",
            name.escape_debug()
        ),
    }
}
