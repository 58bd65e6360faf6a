//! Labels of stored series, read from their names, and what picks series by them.
//!
//! A series is named by a label set, or as its .rrd file is, below the base. Of files three parts are collectd's:
//! `host/plugin-instance/type-instance.rrd`. Of other names the first folder is the host, and the rest is the file.

use std::borrow::Cow;

use crate::label_set::{self, is_name, is_set};
use crate::name::DisplayName;
use crate::pattern::fits;

/// The labels that names of files have, in the order in which they are shown.
pub const LABELS: [&str; 7] = [
    "name",
    "host",
    "plugin",
    "plugin_instance",
    "type",
    "type_instance",
    "file",
];

/// A label's value; empty: the series has no such label.
pub fn value<'a>(name: &'a [u8], label: &str) -> Cow<'a, [u8]> {
    match is_set(name) {
        true if label == "name" => Cow::Borrowed(name),
        true => label_set::value(name, label),
        false => Cow::Borrowed(of_file(name, label)),
    }
}

fn of_file<'a>(name: &'a [u8], label: &str) -> &'a [u8] {
    let name = name.strip_suffix(b".rrd").unwrap_or(name);
    if label == "name" {
        return name;
    }
    let (host, rest) = cut(name, b'/');
    let (folder, file) = cut(rest, b'/');
    let is_collectd =
        !host.is_empty() && !folder.is_empty() && !file.is_empty() && !file.contains(&b'/');
    match label {
        "host" if !rest.is_empty() => host,
        "file" if rest.is_empty() => host,
        "file" if !is_collectd => rest,
        "plugin" if is_collectd => cut(folder, b'-').0,
        "plugin_instance" if is_collectd => cut(folder, b'-').1,
        "type" if is_collectd => cut(file, b'-').0,
        "type_instance" if is_collectd => cut(file, b'-').1,
        _ => b"",
    }
}

/// The texts before and behind the first such byte.
fn cut(text: &[u8], byte: u8) -> (&[u8], &[u8]) {
    match text.iter().position(|&each| each == byte) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b""),
    }
}

/// Picks series by one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    /// One of [`LABELS`], or of a label set.
    pub label: String,
    /// True: the matcher picks series that do not fit.
    pub negated: bool,
    /// With `*` and `?`.
    pub pattern: Vec<u8>,
}

impl Matcher {
    /// Reads `label=PATTERN` or `label!=PATTERN`, where a pattern may be quoted as in a label set. Any other text is searched for
    /// in the name as it is shown: what lists print is a matcher.
    pub fn parse(text: &str) -> Result<Matcher, String> {
        let Some((label, pattern)) = text.split_once('=').filter(|_| !is_path(text)) else {
            return Ok(Matcher::of_name(text));
        };
        let (label, negated) = match label.strip_suffix('!') {
            Some(label) => (label, true),
            None => (label, false),
        };
        if !is_name(label.as_bytes()) {
            return Err(format!(
                "cannot use {text:?}: {label:?} is no label; those of files are {}",
                LABELS.join(", ")
            ));
        }
        Ok(Matcher {
            label: label.into(),
            negated,
            pattern: unquoted(pattern),
        })
    }

    /// A matcher that searches for a text in names, or that picks a label set.
    pub fn of_name(text: &str) -> Matcher {
        Matcher {
            label: "name".into(),
            negated: false,
            pattern: match is_set(text.as_bytes()) {
                true => text.into(),
                false => format!("*{text}*").into_bytes(),
            },
        }
    }

    /// A matcher that picks the series which have a label.
    pub fn having(label: &str) -> Matcher {
        Matcher {
            label: label.into(),
            negated: false,
            pattern: b"?*".to_vec(),
        }
    }

    /// True if files have the label.
    pub fn is_of_files(&self) -> bool {
        LABELS.contains(&self.label.as_str())
    }

    /// True if the matcher picks a series.
    pub fn picks(&self, name: &[u8]) -> bool {
        // The label `name` of files is without `.rrd`, but lists show it with.
        let is_shown =
            || self.label == "name" && fits(&self.pattern, DisplayName(name).text().as_bytes());
        (fits(&self.pattern, &value(name, &self.label)) || is_shown()) != self.negated
    }
}

/// True if a text can only be a name, or a part of one: it begins before the first `=` as no label does.
fn is_path(text: &str) -> bool {
    let front = text.split('=').next().unwrap_or_default();
    front.contains('/') || is_set(text.as_bytes())
}

/// `"a \"b\""`: as a label set has its values.
fn unquoted(pattern: &str) -> Vec<u8> {
    let inside = pattern.strip_prefix('"');
    let Some(inside) = inside.and_then(|inside| inside.strip_suffix('"')) else {
        return pattern.into();
    };
    let set = format!("{{x=\"{inside}\"}}");
    match is_set(set.as_bytes()) {
        true => label_set::value(set.as_bytes(), "x").into_owned(),
        false => pattern.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_names() {
        let all = |name: &str| {
            let values = LABELS[1..]
                .iter()
                .map(|label| String::from_utf8_lossy(&value(name.as_bytes(), label)).into_owned());
            values.collect::<Vec<_>>().join("|")
        };
        assert_eq!(all("web1/cpu-0/cpu-idle.rrd"), "web1|cpu|0|cpu|idle|");
        assert_eq!(all("web1/load/load.rrd"), "web1|load||load||");
        assert_eq!(
            all("web1/df-var-log/df_complex-free-1.rrd"),
            "web1|df|var-log|df_complex|free-1|"
        );
        assert_eq!(all("sw1/port-id12.rrd"), "sw1|||||port-id12");
        assert_eq!(all("alone.rrd"), "|||||alone");
        assert_eq!(all("a/b/c/d.rrd"), "a|||||b/c/d");
        assert_eq!(all(""), "|||||");
        assert_eq!(all(r#"{host="web1",type="a\"b/c"}"#), r#"web1|||a"b/c||"#);
    }

    #[test]
    fn matchers_pick() {
        let names = [
            "web1/cpu-0/cpu-idle.rrd",
            "web2/cpu-0/cpu-user.rrd",
            "db/load/load.rrd",
        ];
        let picked = |text: &str| {
            let matcher = Matcher::parse(text).expect("a matcher");
            let picked = names.iter().filter(|name| matcher.picks(name.as_bytes()));
            picked.map(|name| &name[..4]).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(picked("host=web*"), "web1 web2");
        assert_eq!(picked("plugin!=cpu"), "db/l");
        assert_eq!(picked("idle"), "web1");
        assert_eq!(picked("type_instance="), "db/l");
        assert_eq!(picked("color=red"), "");
        assert!(Matcher::parse("1st=red").is_err());
        assert!(Matcher::parse("=red").is_err());
    }

    #[test]
    fn what_lists_print_is_a_matcher() {
        let names = [
            "web1/cpu-0/cpu-idle.rrd",
            "web2/cpu-0/cpu-user.rrd",
            "web3/disk-a=b/x\n.rrd",
            r#"{host="db2",job="a\"b"}"#,
        ];
        let picked = |text: &str| {
            let matcher = Matcher::parse(text).expect("a matcher");
            let picked = names.iter().filter(|name| matcher.picks(name.as_bytes()));
            picked.map(|name| &name[..4]).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(picked("web1/cpu-0/cpu-idle.rrd"), "web1");
        assert_eq!(picked("name=web1/cpu-0/cpu-idle.rrd"), "web1");
        assert_eq!(picked("cpu-0/cpu-idle.rrd"), "web1");
        assert_eq!(picked("web3/disk-a=b/x\\x0a.rrd"), "web3");
        assert_eq!(picked(r#"{host="db2",job="a\"b"}"#), "{hos");
        assert_eq!(picked(r#"job="a\"b""#), "{hos");
        assert_eq!(picked("job!="), "{hos");
    }
}
