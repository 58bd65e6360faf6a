//! The command line of MRTG's indexmaker, as Perl's Getopt::Long reads it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use kymo_wire::mrtg_cfg::decoded;

/// Options with a text; `--NAME-file FILE` takes the text from a file.
const TEXTS: [&str; 15] = [
    "output",
    "addhead",
    "title",
    "subtitle",
    "bodyopt",
    "pagetopend",
    "pagetop",
    "pageend",
    "sort",
    "show",
    "section",
    "prefix",
    "headeradd",
    "icondir",
    "rrdviewer",
];
/// Other options with a value.
const VALUES: [&str; 5] = ["filter", "columns", "width", "height", "headlevel"];
/// Options that `no` or `no-` before the name turns off.
const SWITCHES: [&str; 9] = [
    "perhost",
    "clicktext",
    "optlog",
    "compact",
    "bold",
    "picfirst",
    "sidebyside",
    "autoprefix",
    "sectionhost",
];
/// Switches that are on from the beginning.
const ON: [&str; 2] = ["optlog", "bold"];
/// Options that can only be given.
const FLAGS: [&str; 3] = ["enumerate", "nolegend", "help"];

/// Meaning of a name on the command line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Value(&'static str),
    /// The name of a file with the option's text.
    File(&'static str),
    Switch(&'static str, bool),
    Flag(&'static str),
}

/// A command line for clap: whole names in lower case, values behind `=`, and texts of files in place of the files' names.
/// Words that name no option stay.
pub(super) fn normal(words: &[OsString]) -> Result<Vec<OsString>> {
    let (mut options, mut from_files, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    let mut switches: Vec<(&str, bool)> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            rest.extend(words.by_ref().cloned());
            break;
        }
        let Some((name, value)) = split(word) else {
            rest.push(word.clone());
            continue;
        };
        let named = named(&name);
        let value = match named {
            Some(Named::Value(_) | Named::File(_)) => value.or_else(|| words.next().cloned()),
            _ => value,
        };
        match (named, value) {
            (Some(Named::Value(name)), Some(value)) => options.push(option(name, &value)),
            (Some(Named::File(name)), Some(file)) => {
                let text = std::fs::read(&file)
                    .with_context(|| format!("cannot read {}", Path::new(&file).display()))?;
                from_files.push(option(name, OsStr::from_bytes(&text)));
            }
            (Some(Named::Switch(name, is_on)), None) => {
                switches.retain(|(other, _)| *other != name);
                switches.push((name, is_on));
            }
            (Some(Named::Flag(name)), None) => options.push(format!("--{name}").into()),
            _ => options.push(word.clone()),
        }
    }
    options.extend(from_files);
    for (name, is_on) in switches {
        match (ON.contains(&name), is_on) {
            (true, false) => options.push(format!("--no{name}").into()),
            (false, true) => options.push(format!("--{name}").into()),
            (true, true) | (false, false) => {}
        }
    }
    options.push("--".into());
    options.extend(rest);
    Ok(options)
}

/// The name of an option without its dashes and in lower case, and the value behind `=`; `None` for a file.
fn split(word: &OsStr) -> Option<(String, Option<OsString>)> {
    let bytes = word.as_bytes().strip_prefix(b"-")?;
    let bytes = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let at = bytes.iter().position(|&byte| byte == b'=');
    let (name, value) = match at {
        Some(at) => (
            &bytes[..at],
            Some(OsStr::from_bytes(&bytes[at + 1..]).into()),
        ),
        None => (bytes, None),
    };
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    (!name.is_empty()).then_some((name, value))
}

/// The option of this name, or the only one whose name begins so.
fn named(name: &str) -> Option<Named> {
    let texts = TEXTS.iter().flat_map(|&name| {
        [
            (name.to_string(), Named::Value(name)),
            (format!("{name}-file"), Named::File(name)),
        ]
    });
    let values = VALUES.iter().map(|&name| (name.into(), Named::Value(name)));
    let switches = SWITCHES.iter().flat_map(|&name| {
        [("", true), ("no", false), ("no-", false)]
            .map(|(no, is_on)| (format!("{no}{name}"), Named::Switch(name, is_on)))
    });
    let flags = FLAGS.iter().map(|&name| (name.into(), Named::Flag(name)));
    let all = texts.chain(values).chain(switches).chain(flags);
    let mut fitting: Vec<(String, Named)> =
        all.filter(|(full, _)| full.starts_with(name)).collect();
    if let Some(at) = fitting.iter().position(|(full, _)| full == name) {
        return Some(fitting.swap_remove(at).1);
    }
    let (_, first) = fitting.first()?;
    let is_only = fitting.iter().all(|(_, other)| other == first);
    is_only.then_some(*first)
}

fn option(name: &str, value: &OsStr) -> OsString {
    let mut option = OsString::from(format!("--{name}="));
    match name {
        "output" => option.push(value),
        _ => option.push(decoded(value.as_bytes())),
    }
    option
}
