//! The user's kymo.toml: only lists of interfaces change, and tables are added at the end; comments, order and all else stay.

use std::fs::{self, File};
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use toml::Spanned;

use super::changes::Change;
use super::table::Found;
use crate::config::{self, Config, ListedInterface, interface_text};

/// A file, its text, and its values.
pub(super) struct ConfigText {
    pub(super) path: PathBuf,
    text: String,
    pub(super) config: Config,
}

/// The places of lists in a text; all other keys are passed over.
#[derive(Deserialize)]
struct FileSpans {
    #[serde(default)]
    device: Vec<DeviceSpans>,
}

#[derive(Deserialize)]
struct DeviceSpans {
    interface: Option<Spanned<Vec<Spanned<ListedInterface>>>>,
}

impl ConfigText {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<ConfigText> {
        let text = fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let config = config::parse(&text, &path.display().to_string());
        Ok(ConfigText {
            path: path.into(),
            config: config.map_err(anyhow::Error::msg)?,
            text,
        })
    }

    /// Makes the changes of devices, by their numbers, and adds tables.
    pub(super) fn apply(mut self, changed: &[(usize, Vec<Change>)], fresh: &[Found]) -> Result<()> {
        let mut wanted = self.config.clone();
        for (number, changes) in changed {
            for change in changes {
                take(&mut wanted.device[*number].interface, change);
            }
        }
        self.text = changed_text(&self.text, changed)?;
        for device in fresh {
            if !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text += &format!("\n{}", device.text());
        }
        let path = self.path.display();
        let written = config::parse(&self.text, "the text to write").map_err(anyhow::Error::msg)?;
        // A list that is written in another way, as tables of its own, say, would not be found again.
        if written.device.get(..wanted.device.len()) != Some(&wanted.device[..]) {
            bail!("cannot change {path}: write `interface` of each table as one list");
        }
        replace(&self.path, &self.text).with_context(|| format!("cannot write {path}"))
    }
}

/// Makes a change in a list.
fn take(list: &mut Vec<ListedInterface>, change: &Change) {
    match change {
        Change::New(now) => list.push(now.clone()),
        Change::Gone(before) => list.retain(|one| one != before),
        Change::Other { before, now } => {
            list.iter_mut()
                .filter(|one| *one == before)
                .for_each(|one| one.clone_from(now));
        }
    }
}

fn spans(text: &str) -> Result<FileSpans> {
    toml::from_str(text).map_err(|error| anyhow::Error::msg(error.to_string()))
}

/// The text with all changes: first those of listed interfaces, then additions behind the last interface that is left.
fn changed_text(text: &str, changed: &[(usize, Vec<Change>)]) -> Result<String> {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let found = spans(text)?;
    for (number, changes) in changed {
        let list = found
            .device
            .get(*number)
            .and_then(|device| device.interface.as_ref());
        let all = list.iter().flat_map(|list| list.get_ref());
        for one in all {
            for change in changes {
                match change {
                    Change::Gone(before) if before == one.get_ref() => {
                        edits.push((element(text, one.span()), String::new()));
                    }
                    Change::Other { before, now } if before == one.get_ref() => {
                        edits.push((one.span(), interface_text(now)));
                    }
                    Change::New(_) | Change::Gone(_) | Change::Other { .. } => {}
                }
            }
        }
    }
    let text = edited(text, edits);
    let mut edits = Vec::new();
    let found = spans(&text)?;
    for (number, changes) in changed {
        let new = changes.iter().filter_map(|change| match change {
            Change::New(now) => Some(format!("\n  {},", interface_text(now))),
            Change::Gone(_) | Change::Other { .. } => None,
        });
        let new: String = new.collect();
        let list = found
            .device
            .get(*number)
            .and_then(|device| device.interface.as_ref());
        if let Some(list) = list.filter(|_| !new.is_empty()) {
            edits.push(addition(&text, list, new));
        }
    }
    Ok(edited(&text, edits))
}

/// The place behind the last interface of a list, and what goes there.
fn addition(
    text: &str,
    list: &Spanned<Vec<Spanned<ListedInterface>>>,
    new: String,
) -> (Range<usize>, String) {
    let last = list.get_ref().last().map(Spanned::span);
    let (at, new) = match last {
        None => (list.span().start + 1, new),
        Some(span) => {
            let behind = text.get(span.end..).unwrap_or_default();
            match behind.trim_start().starts_with(',') {
                true => (
                    span.end + behind.find(',').map_or(0, |comma| comma + 1),
                    new,
                ),
                false => (span.end, format!(",{new}")),
            }
        }
    };
    // A list on one line gets its bracket on a line of its own.
    let rest = text.get(at..).unwrap_or_default();
    let left = rest.trim_start_matches([' ', '\t']);
    match left.starts_with(']') {
        true => (at..at + rest.len() - left.len(), new + "\n"),
        false => (at..at, new),
    }
}

/// An element with the comma behind it, and with its line if nothing else is there.
fn element(text: &str, span: Range<usize>) -> Range<usize> {
    let behind = text.get(span.end..).unwrap_or_default();
    let is_blank = |sign: char| sign == ' ' || sign == '\t';
    let mut end = span.end;
    if behind.trim_start_matches(is_blank).starts_with(',') {
        end += behind.find(',').map_or(0, |comma| comma + 1);
    }
    let before = text.get(..span.start).unwrap_or_default();
    let begin = before.trim_end_matches(is_blank);
    let rest = text
        .get(end..)
        .unwrap_or_default()
        .trim_start_matches(is_blank);
    match begin.ends_with('\n') && rest.starts_with('\n') {
        true => begin.len()..text.len() - rest.len() + 1,
        false => span.start..end,
    }
}

fn edited(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut text = text.to_string();
    for (range, new) in edits {
        text.replace_range(range, &new);
    }
    text
}

/// Replaces a file at once; its owner and its mode stay as far as this user may set them.
fn replace(path: &Path, text: &str) -> Result<()> {
    // A link stays one.
    let path = path.canonicalize()?;
    let mut beside = path.clone().into_os_string();
    beside.push(".new");
    let old = fs::metadata(&path)?;
    let _stale = fs::remove_file(&beside);
    let mut file = File::create_new(&beside)?;
    file.set_permissions(old.permissions())?;
    use std::os::unix::fs::MetadataExt as _;
    let _not_ours = std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()));
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, &path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, mbit: u64) -> ListedInterface {
        ListedInterface {
            name: name.into(),
            alias: String::new(),
            mbit,
        }
    }

    /// Changes of a list: `a` is gone, `b` is faster, `d` is new.
    fn changes() -> Vec<(usize, Vec<Change>)> {
        let changes = vec![
            Change::Gone(listed("a", 1)),
            Change::Other {
                before: listed("b", 1),
                now: listed("b", 10),
            },
            Change::New(listed("d", 1)),
        ];
        vec![(0, changes)]
    }

    #[test]
    fn lists_change_and_all_else_stays() {
        for (before, after) in [
            (
                "# own\n[[device]]\naddress = \"x\" # here\ninterface = [\n  # first\n  { name = \"a\", mbit = 1 },\n  { name = \"b\", mbit = 1 }, # second\n]\n[store]\nfiles = \"ask\"\n",
                "# own\n[[device]]\naddress = \"x\" # here\ninterface = [\n  # first\n  { name = \"b\", mbit = 10 },\n  { name = \"d\", mbit = 1 }, # second\n]\n[store]\nfiles = \"ask\"\n",
            ),
            (
                "[[device]]\naddress = \"x\"\ninterface = [{ name = \"a\", mbit = 1 }, { name = \"b\", mbit = 1 }]\n",
                "[[device]]\naddress = \"x\"\ninterface = [ { name = \"b\", mbit = 10 },\n  { name = \"d\", mbit = 1 },\n]\n",
            ),
            (
                "[[device]]\ninterface = [{ name = \"b\", mbit = 1 }, { name = \"a\", mbit = 1 }]\naddress = \"x\"",
                "[[device]]\ninterface = [{ name = \"b\", mbit = 10 },\n  { name = \"d\", mbit = 1 },\n]\naddress = \"x\"",
            ),
            (
                "[[device]]\ninterface = [\n  { name = \"a\", mbit = 1 },\n]\naddress = \"x\"",
                "[[device]]\ninterface = [\n  { name = \"d\", mbit = 1 },\n]\naddress = \"x\"",
            ),
        ] {
            let changed = changed_text(before, &changes()).unwrap();
            assert_eq!(changed, after, "{before}");
            let mut wanted = super::super::parsed(before);
            for change in &changes()[0].1 {
                take(&mut wanted.device[0].interface, change);
            }
            assert_eq!(super::super::parsed(&changed), wanted, "{before}");
        }
    }
}
