//! Changes to collectl's command line before it is read: words that collectl.conf adds, and words with another meaning in kymo.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::cli::collectl::conf;

/// The file in which collectl looks for its settings.
const CONF: &str = "/etc/collectl.conf";

/// Switches whose value is the next word, unless it follows in the same word.
const WITH_VALUE: &str = "CAcdfFilLoprRs";

/// Name of the program: collectl's settings count without `-C` only under its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Under {
    Kymo,
    Collectl,
}

/// The words after the name, if collectl is meant: by the program's name, or by the first word.
pub(crate) fn behind_name(words: &[OsString]) -> Option<&[OsString]> {
    let name = words.first().and_then(|name| Path::new(name).file_name());
    if name == Some("collectl".as_ref()) {
        return words.get(1..);
    }
    let word = words.get(1)?;
    (word == "collectl").then(|| &words[2..])
}

/// Adds the words of a file of settings; the first word is the program.
pub(crate) fn with_settings(words: Vec<OsString>, name: Under) -> Result<Vec<OsString>, String> {
    let path = match (value_of(&words, 'C', "--config"), name) {
        (Some(path), _) => PathBuf::from(path),
        (None, Under::Collectl) if Path::new(CONF).exists() => CONF.into(),
        _ => return Ok(words),
    };
    let conf = conf::read(&path)?;
    let mut words = words;
    if has(&words, 'D', "--daemon") {
        let own = conf.daemon_words.iter().map(OsString::from);
        words.splice(1..1, own);
    }
    let plays = has(&words, 'p', "--playback");
    let is_daemon = has(&words, 'D', "--daemon");
    for (switch, mut value) in conf.defaults {
        if switch == "-i" && !is_daemon {
            // The first interval of the file is for the daemon only.
            value = value.trim_start_matches(|c| c != ':').to_string();
        }
        let given = match switch {
            "-i" => plays || has(&words, 'i', "--interval"),
            "-l" => has(&words, 'l', "--limits"),
            _ => has(&words, '\0', switch),
        };
        if !given && !value.is_empty() {
            words.extend([switch.into(), value.into()]);
        }
    }
    Ok(words)
}

/// True if the words have this switch.
pub(crate) fn has(words: &[OsString], short: char, long: &str) -> bool {
    find(words, short, long).is_some()
}

/// The value of a switch.
fn value_of(words: &[OsString], short: char, long: &str) -> Option<OsString> {
    let (at, rest) = find(words, short, long)?;
    match rest.as_str() {
        "" => words.get(at + 1).cloned(),
        rest => Some(rest.trim_start_matches('=').into()),
    }
}

/// Index of a switch, and the rest of its word.
fn find(words: &[OsString], short: char, long: &str) -> Option<(usize, String)> {
    let mut at = 1;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        if word == "--" {
            return None;
        }
        if let Some(name) = word.strip_prefix("--") {
            let (name, value) = name.split_once('=').unwrap_or((name, ""));
            let begins = name.len() > 2 && long.trim_start_matches('-').starts_with(name);
            if begins {
                return Some((at, value.to_string()));
            }
        } else if let Some(letters) = word.strip_prefix('-') {
            for (place, letter) in letters.char_indices() {
                let rest = &letters[place + letter.len_utf8()..];
                if letter == short {
                    return Some((at, rest.to_string()));
                }
                if WITH_VALUE.contains(letter) {
                    at += usize::from(rest.is_empty());
                    break;
                }
            }
        }
        at += 1;
    }
    None
}

/// A switch that has another meaning in collectl, in kymo's words; `-Z` of collectl 3 is --procfilt.
pub(crate) fn translated(word: &OsStr) -> OsString {
    let text = word.to_str().unwrap_or_default();
    match (text, text.strip_prefix("-Z")) {
        ("-V", _) => "--showdefs".into(),
        (_, Some("")) => "--procfilt".into(),
        (_, Some(filter)) => format!("--procfilt={filter}").into(),
        _ => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn words_of_both_generations() {
        for (word, expect) in [
            ("-Zchttp", "--procfilt=chttp"),
            ("-Z", "--procfilt"),
            ("-sZ", "-sZ"),
            ("-V", "--showdefs"),
        ] {
            assert_eq!(translated(word.as_ref()), expect, "{word}");
        }
    }

    #[test]
    fn switches_are_found_where_they_are() {
        for (text, short, long, expect) in [
            ("c -scd -D", 'D', "--daemon", true),
            ("c -PD -sc", 'D', "--daemon", true),
            ("c -sD", 'D', "--daemon", false),
            ("c -s D", 'D', "--daemon", false),
            ("c -f -D", 'D', "--daemon", false),
            ("c --daem", 'D', "--daemon", true),
            ("c --da", 'D', "--daemon", false),
            ("c -- -D", 'D', "--daemon", false),
            ("c -oD", 'D', "--daemon", false),
        ] {
            assert_eq!(has(&line(text), short, long), expect, "{text}");
        }
        for (text, expect) in [
            ("c -C x", Some("x")),
            ("c -Cx", Some("x")),
            ("c --config=x", Some("x")),
            ("c --conf x", Some("x")),
            ("c -sC x", None),
        ] {
            let value = value_of(&line(text), 'C', "--config");
            assert_eq!(value.as_deref().and_then(OsStr::to_str), expect, "{text}");
        }
    }
}
