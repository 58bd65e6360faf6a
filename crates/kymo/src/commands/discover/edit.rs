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
            let list = &mut wanted.device[*number].interface;
            *list = changed_list(list, changes);
        }
        self.text = changed_text(&self.text, changed)?;
        for device in fresh {
            if !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            let table = format!("\n{}", device.text());
            self.text += &table.replace('\n', line_end(&self.text));
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

/// The list with its changes.
fn changed_list(list: &[ListedInterface], changes: &[Change]) -> Vec<ListedInterface> {
    let kept = list.iter().zip(changes_of(list.iter(), changes));
    let kept = kept.filter_map(|(one, change)| match change {
        Some(Change::Gone(_)) => None,
        Some(Change::Other { now, .. } | Change::New(now)) => Some(now),
        None => Some(one),
    });
    let new = changes.iter().filter_map(|change| match change {
        Change::New(now) => Some(now),
        Change::Gone(_) | Change::Other { .. } => None,
    });
    kept.chain(new).cloned().collect()
}

/// The change of each interface of a list; each change is that of one interface, though others are equal.
fn changes_of<'c>(
    list: impl Iterator<Item = &'c ListedInterface>,
    changes: &'c [Change],
) -> impl Iterator<Item = Option<&'c Change>> {
    let mut left: Vec<&Change> = changes.iter().collect();
    list.map(move |one| {
        let at = left.iter().position(|change| match change {
            Change::Gone(before) | Change::Other { before, .. } => before == one,
            Change::New(_) => false,
        })?;
        Some(left.remove(at))
    })
}

/// End of the lines that are added to a text.
fn line_end(text: &str) -> &'static str {
    match text.contains("\r\n") {
        true => "\r\n",
        false => "\n",
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
        let all = list.map_or(&[][..], |list| list.get_ref());
        let of = changes_of(all.iter().map(Spanned::get_ref), changes);
        for (one, change) in all.iter().zip(of) {
            match change {
                Some(Change::Gone(_)) => edits.push((element(text, one.span()), String::new())),
                Some(Change::Other { now, .. }) => edits.push((one.span(), interface_text(now))),
                Some(Change::New(_)) | None => {}
            }
        }
    }
    let text = edited(text, edits);
    let (mut edits, end) = (Vec::new(), line_end(&text));
    let found = spans(&text)?;
    for (number, changes) in changed {
        let new = changes.iter().filter_map(|change| match change {
            Change::New(now) => Some(format!("{end}  {},", interface_text(now))),
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
        true => (at..at + rest.len() - left.len(), new + line_end(text)),
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
    let behind = rest.strip_prefix("\r\n").or(rest.strip_prefix('\n'));
    match behind.filter(|_| begin.ends_with('\n')) {
        Some(behind) => begin.len()..text.len() - behind.len(),
        None => span.start..end,
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
            for end in ["\n", "\r\n"] {
                let [before, after] = [before, after].map(|text| text.replace('\n', end));
                let changed = changed_text(&before, &changes()).unwrap();
                assert_eq!(changed, after, "{before}");
                let mut wanted = super::super::parsed(&before);
                let list = &mut wanted.device[0].interface;
                *list = changed_list(list, &changes()[0].1);
                assert_eq!(super::super::parsed(&changed), wanted, "{before}");
            }
        }
    }

    /// A change of one of two equal interfaces was made in both.
    #[test]
    fn a_change_is_that_of_one_interface() {
        let before = "[[device]]\naddress = \"x\"\ninterface = [\n  { name = \"a\", mbit = 1 },\n  { name = \"a\", mbit = 1 },\n  { name = \"a\", mbit = 2 },\n]\n";
        let faster = |before, now| Change::Other {
            before: listed("a", before),
            now: listed("a", now),
        };
        for (changes, speeds) in [
            (vec![Change::Gone(listed("a", 1))], &[1, 2][..]),
            (vec![faster(1, 2), faster(2, 3)], &[2, 1, 3]),
            (vec![faster(1, 2), faster(1, 4)], &[2, 4, 2]),
        ] {
            let changed = changed_text(before, &[(0, changes.clone())]).unwrap();
            let list = &super::super::parsed(&changed).device[0].interface;
            let own: Vec<u64> = list.iter().map(|one| one.mbit).collect();
            assert_eq!(own, speeds);
            let wanted = changed_list(&super::super::parsed(before).device[0].interface, &changes);
            assert_eq!(*list, wanted);
        }
    }
}
