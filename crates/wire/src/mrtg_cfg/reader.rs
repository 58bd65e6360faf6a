//! Reads the lines of a configuration and of its includes, and collects each target's values.

use super::checks;
use super::config::{LAST, Problem, Setting};
use super::files::Files;
use super::glob::glob;
use super::global::Global;
use super::keyword::Keyword;
use super::lines::{Line, classify, included, is_space, without_end};
use super::numbered::Numbered;
use super::secret::ConfigText;
use super::text::{Text, Texts, narrow, wide};
use kymo_base::limits::{MRTG_CFG_BYTES_MAX, MRTG_CFG_FILES_MAX, MRTG_CFG_TARGETS_MAX};
use std::collections::HashSet;

/// A place in a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ConfigLocation {
    pub(super) file: u32,
    pub(super) line: u32,
}

/// A target and its keywords.
pub(super) struct Named {
    pub(super) name: Text,
    pub(super) place: ConfigLocation,
    /// Place of its `Target[]`.
    pub(super) target_place: ConfigLocation,
    pub(super) first_value: u32,
    last_value: u32,
    has: u128,
    defaulted: u128,
    explicit: u128,
}

/// The values that `[^]`, `[$]` and `[_]` add to a keyword.
#[derive(Clone, Copy, Default)]
struct Added {
    before: Option<Text>,
    after: Option<Text>,
    default: Option<Text>,
}

/// The value that following lines may continue.
#[derive(Clone, Copy, PartialEq)]
enum Current {
    Nothing,
    /// A keyword of another program, or another one whose continuation MRTG ignores.
    Foreign,
    Global(Global),
    Before(Keyword),
    After(Keyword),
    Default(Keyword),
    /// Index of the value, and number of its target.
    Value(u32, u32),
}

/// A file that is partly read.
struct Open {
    file: u32,
    at: usize,
    line: u32,
}

/// Reads all lines of a configuration.
pub(super) struct Reader<'f> {
    files: &'f mut dyn Files,
    pub(super) texts: Texts,
    pub(super) paths: Vec<Vec<u8>>,
    pub(super) values: Vec<Setting>,
    pub(super) targets: Vec<Named>,
    pub(super) globals: [Option<(Text, ConfigLocation)>; Global::ALL.len()],
    pub(super) warnings: Vec<String>,
    names: Numbered,
    added: [Added; Keyword::ALL.len()],
    /// Keywords with a `[_]` or a `[^]`.
    springing: Vec<Keyword>,
    foreign_said: HashSet<Vec<u8>>,
    current: Current,
    current_place: ConfigLocation,
    last_name: Vec<u8>,
    last_target: u32,
    /// True if the current value is an unchanged part of its file, and no other file has been read since.
    is_unbroken: bool,
    /// End of the current value's last line; 0 if it has one line.
    value_end: usize,
}

type Checked = Result<(), Problem>;

impl<'f> Reader<'f> {
    /// Reads the configuration and all its includes.
    pub(super) fn read(path: &[u8], files: &'f mut dyn Files) -> Result<Reader<'f>, Problem> {
        let mut reader = Reader {
            files,
            texts: Texts::default(),
            paths: Vec::new(),
            values: Vec::new(),
            targets: Vec::new(),
            globals: [None; _],
            warnings: Vec::new(),
            names: Numbered::default(),
            added: [Added::default(); _],
            springing: Vec::new(),
            foreign_said: HashSet::new(),
            current: Current::Nothing,
            current_place: ConfigLocation { file: 0, line: 0 },
            last_name: Vec::new(),
            last_target: 0,
            is_unbroken: false,
            value_end: 0,
        };
        let mut stack = Vec::new();
        reader.open(path.to_vec(), None, &mut stack)?;
        while let Some(open) = stack.last_mut() {
            let bytes = reader.texts.file(open.file);
            if open.at >= bytes.len() {
                stack.pop();
                reader.is_unbroken = false;
                continue;
            }
            let rest = &bytes[open.at..];
            let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let from = open.at;
            open.at = (from + len + 1).min(bytes.len());
            open.line += 1;
            let place = ConfigLocation {
                file: open.file,
                line: open.line,
            };
            if reader.is_unbroken && goes_on(&rest[..len]) {
                reader.value_end = from + len;
                continue;
            }
            if let b'i' | b'I' = rest[0]
                && let Some(path) = included(&rest[..len])
            {
                let path = path.to_vec();
                reader.include(&path, place, &mut stack)?;
                continue;
            }
            reader.line(place, from, len)?;
        }
        reader.finish()?;
        Ok(reader)
    }

    /// A problem at a place.
    pub(super) fn problem(&self, place: ConfigLocation, what: impl Into<String>) -> Problem {
        Problem {
            file: self
                .paths
                .get(wide(place.file))
                .cloned()
                .unwrap_or_default(),
            line: place.line,
            what: what.into(),
        }
    }

    pub(super) fn texts_and_files(&mut self) -> (&mut Texts, &mut dyn Files) {
        (&mut self.texts, self.files)
    }

    fn open(
        &mut self,
        path: Vec<u8>,
        by: Option<ConfigLocation>,
        stack: &mut Vec<Open>,
    ) -> Checked {
        let found = self.files.read(&path).and_then(|bytes| {
            let size = self.texts.size_bytes() + bytes.len();
            match size > MRTG_CFG_BYTES_MAX || self.paths.len() >= MRTG_CFG_FILES_MAX {
                true => Err("there are too many files, or too many bytes in them".into()),
                false => Ok(bytes),
            }
        });
        match (found, by) {
            (Ok(bytes), _) => {
                let file = self.texts.add_file(bytes);
                self.paths.push(path);
                self.is_unbroken = false;
                stack.push(Open {
                    file,
                    at: 0,
                    line: 0,
                });
                Ok(())
            }
            // As in MRTG, a folder has no lines.
            (Err(_), Some(_)) if self.files.is_dir(&path) => Ok(()),
            (Err(cause), Some(place)) => {
                Err(self.problem(place, format!("cannot open the file to include: {cause}")))
            }
            (Err(cause), None) => Err(Problem {
                file: path,
                line: 0,
                what: format!("cannot open it: {cause}"),
            }),
        }
    }

    /// Opens the files of an `include:` line. As in MRTG, the files of a pattern go onto a stack, so that the last one is read
    /// first. A path without a file is tried beside the configuration.
    fn include(&mut self, path: &[u8], place: ConfigLocation, stack: &mut Vec<Open>) -> Checked {
        let main = &self.paths[0];
        let folder = match memchr::memrchr(b'/', main) {
            Some(slash) if slash > 0 => &main[..slash],
            _ => b"",
        };
        let beside = [folder, b"/", path].concat();
        let paths = match path.contains(&b'*') {
            true if is_at_home(path) => {
                let what = "Include: ~ is no folder here: its path has to be written";
                return Err(self.problem(place, what));
            }
            true => match glob(path, self.files) {
                found if found.is_empty() => glob(&beside, self.files),
                found => found,
            },
            false if self.files.is_readable(path) => vec![path.to_vec()],
            false => vec![beside],
        };
        for path in paths {
            self.open(path, Some(place), stack)?;
        }
        Ok(())
    }

    fn line(&mut self, place: ConfigLocation, from: usize, len: usize) -> Checked {
        let bytes = self.texts.file(place.file);
        let line = without_end(&bytes[from..from + len]);
        match classify(line) {
            Line::Nothing => Ok(()),
            Line::Continuation(text) => {
                let text = text_in(place.file, bytes, text);
                self.continuation(place, text, from + line.len())
            }
            Line::Target(word, name, value) => {
                let keyword = Keyword::of(word);
                let is_foreign = is_foreign(word);
                let name = text_in(place.file, bytes, name);
                let value =
                    Text::in_file(place.file, from + value, line.len() - value.min(line.len()));
                let word = text_in(place.file, bytes, word);
                self.finish()?;
                self.current_place = place;
                match (keyword, is_foreign) {
                    (Some(keyword), _) => self.target_line(keyword, name, value),
                    (None, true) => self.foreign_line(word, name),
                    (None, false) => self.unknown_line(word, name, value),
                }
            }
            Line::Global(word, value) => {
                let keyword = Global::of(word);
                let is_known = keyword.is_some() || is_foreign(word);
                let last = line.iter().rposition(|byte| !is_space(*byte));
                let value_len = last.map_or(0, |last| last + 1 - value);
                let value = Text::in_file(place.file, from + value, value_len);
                let word = text_in(place.file, bytes, word);
                self.finish()?;
                self.current_place = place;
                if !is_known {
                    return Err(self.unknown(word));
                }
                self.current = keyword.map_or(Current::Foreign, Current::Global);
                if let Some(keyword) = keyword {
                    self.globals[keyword.number()] = Some((self.tidied(value), place));
                }
                Ok(())
            }
            Line::Nonsense => {
                let what = nonsense(line);
                self.finish()?;
                Err(self.problem(place, what))
            }
        }
    }

    fn unknown(&self, word: Text) -> Problem {
        let what = match meant(&self.texts.get(word)) {
            Some(word) => format!("unknown keyword; is {word} meant?"),
            None => "unknown keyword".into(),
        };
        self.problem(self.current_place, what)
    }

    /// MRTG notices an unknown keyword only if a target or `[_]` has a value for it.
    fn unknown_line(&mut self, word: Text, name: Text, value: Text) -> Checked {
        let is_empty = self.texts.get(value).is_empty();
        match &*self.texts.get(name) {
            b"^" | b"$" => {}
            b"_" if is_empty => {}
            _ => return Err(self.unknown(word)),
        }
        self.current = Current::Foreign;
        Ok(())
    }

    /// As in MRTG, a keyword of another program creates its target, and may not be repeated.
    fn foreign_line(&mut self, word: Text, name: Text) -> Checked {
        self.current = Current::Foreign;
        if matches!(&*self.texts.get(name), b"^" | b"$" | b"_") {
            return Ok(());
        }
        let target = self.target(name)?;
        self.spring(target)?;
        let key = [&*self.texts.get(word), b"[", &*self.texts.get(name)].concat();
        match self.foreign_said.insert(key.to_ascii_lowercase()) {
            true => Ok(()),
            false => Err(self.duplicate(&self.texts.get(word), name)),
        }
    }

    fn duplicate(&self, word: &[u8], name: Text) -> Problem {
        let (word, name) = (ConfigText(word), self.texts.get(name));
        let what = format!("{word}[{}]: duplicate definition", ConfigText(&name));
        self.problem(self.current_place, what)
    }

    fn target_line(&mut self, keyword: Keyword, name: Text, value: Text) -> Checked {
        let value = self.tidied(value);
        let added = match &*self.texts.get(name) {
            b"^" => Some(Current::Before(keyword)),
            b"$" => Some(Current::After(keyword)),
            b"_" => Some(Current::Default(keyword)),
            _ => None,
        };
        if let Some(current) = added {
            self.current = current;
            let is_empty = self.texts.get(value).is_empty();
            self.set_added(current, (!is_empty).then_some(value));
            return Ok(());
        }
        let target = self.target(name)?;
        self.spring(target)?;
        let named = &mut self.targets[wide(target)];
        if named.explicit & keyword.bit() != 0 {
            return Err(self.duplicate(keyword.word().as_bytes(), name));
        }
        named.explicit |= keyword.bit();
        if keyword == Keyword::Target {
            named.target_place = self.current_place;
        }
        let before = match named.defaulted & keyword.bit() {
            0 if named.has & keyword.bit() != 0 => self.value(target, keyword),
            _ => None,
        };
        self.targets[wide(target)].defaulted &= !keyword.bit();
        let value = match before {
            Some(before) => {
                let value = self.texts.get(value).into_owned();
                self.texts.append(before, &[&value])
            }
            None => value,
        };
        let at = self.set(target, keyword, value);
        self.current = Current::Value(at, target);
        self.is_unbroken = value.is_in_file(self.current_place.file);
        Ok(())
    }

    fn set_added(&mut self, current: Current, value: Option<Text>) {
        match current {
            Current::Before(keyword) => self.added[keyword.number()].before = value,
            Current::After(keyword) => self.added[keyword.number()].after = value,
            Current::Default(keyword) => self.added[keyword.number()].default = value,
            _ => unreachable!("BUG: not added"),
        }
        self.springing = Keyword::ALL.map(|(keyword, _)| keyword).to_vec();
        let added = &self.added;
        self.springing.retain(|keyword| {
            let added = added[keyword.number()];
            added.default.or(added.before).is_some()
        });
    }

    /// The number of a target, which is created at its first mention.
    fn target(&mut self, name: Text) -> Result<u32, Problem> {
        let raw = self.texts.get(name);
        if *raw == *self.last_name {
            return Ok(self.last_target);
        }
        let lower = raw.to_ascii_lowercase();
        if lower == b"0" {
            // "0" is false in Perl, so MRTG treats the keyword as a global one.
            return Err(self.problem(self.current_place, "a target cannot be called 0"));
        }
        let is_it = |number: u32| {
            let named = &self.targets[wide(number)];
            *self.texts.get(named.name) == *lower
        };
        let found = self.names.find(&lower, is_it);
        self.last_name = raw.to_vec();
        let is_lower = *self.last_name == *lower;
        self.last_target = match found {
            Ok(number) => number,
            Err(_) if self.targets.len() >= MRTG_CFG_TARGETS_MAX => {
                return Err(self.problem(self.current_place, "too many targets"));
            }
            Err(slot) => {
                let number = narrow(self.targets.len());
                self.names.insert(slot, number);
                let name = match is_lower {
                    true => name,
                    false => self.texts.make(&lower),
                };
                self.targets.push(Named {
                    name,
                    place: self.current_place,
                    target_place: self.current_place,
                    first_value: LAST,
                    last_value: LAST,
                    has: 0,
                    defaulted: 0,
                    explicit: 0,
                });
                number
            }
        };
        Ok(self.last_target)
    }

    /// Gives a target the values that its own lines lack: defaults, and otherwise the text of `[^]`.
    fn spring(&mut self, target: u32) -> Checked {
        for at in 0..self.springing.len() {
            let keyword = self.springing[at];
            if self.targets[wide(target)].has & keyword.bit() != 0 {
                continue;
            }
            let added = self.added[keyword.number()];
            if let Some(default) = added.default {
                self.set(target, keyword, default);
                self.targets[wide(target)].defaulted |= keyword.bit();
            } else if let Some(before) = added.before {
                let text = self.texts.get(before).into_owned();
                let text = match self.without_no_space(&text) {
                    Some(text) => text.to_vec(),
                    None => [&text, &b" "[..]].concat(),
                };
                let text = self.texts.make(&text);
                self.set(target, keyword, text);
                if self.texts.made_bytes() > MRTG_CFG_BYTES_MAX {
                    return Err(self.problem(self.current_place, "the texts are too long"));
                }
            }
        }
        Ok(())
    }

    /// If a text ends with `NoSpaceChar`: as in MRTG, its last line without it.
    fn without_no_space<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        let (no_space, _) = self.globals[Global::NoSpaceChar.number()]?;
        let cut = text.strip_suffix(&*self.texts.get(no_space))?;
        Some(cut.rsplit(|byte| *byte == b'\n').next().unwrap_or(cut))
    }

    pub(super) fn value(&self, target: u32, keyword: Keyword) -> Option<Text> {
        self.value_at(target, keyword)
            .map(|at| self.values[wide(at)].text)
    }

    fn value_at(&self, target: u32, keyword: Keyword) -> Option<u32> {
        let mut at = self.targets[wide(target)].first_value;
        while at != LAST && self.values[wide(at)].keyword != keyword {
            at = self.values[wide(at)].next;
        }
        (at != LAST).then_some(at)
    }

    fn set(&mut self, target: u32, keyword: Keyword, text: Text) -> u32 {
        let is_there = self.targets[wide(target)].has & keyword.bit() != 0;
        if let Some(at) = is_there.then(|| self.value_at(target, keyword)).flatten() {
            self.values[wide(at)].text = text;
            return at;
        }
        let number = narrow(self.values.len());
        let next = LAST;
        self.values.push(Setting {
            text,
            next,
            keyword,
            is_forgotten: false,
        });
        let named = &mut self.targets[wide(target)];
        named.has |= keyword.bit();
        let last = std::mem::replace(&mut named.last_value, number);
        match last {
            LAST => named.first_value = number,
            last => self.values[wide(last)].next = number,
        }
        number
    }

    /// Replaces tabs in the text by blanks.
    fn tidied(&mut self, text: Text) -> Text {
        match memchr::memchr(b'\t', &self.texts.get(text)) {
            Some(_) => text.to_be_joined(),
            None => text,
        }
    }

    fn continuation(&mut self, place: ConfigLocation, text: Text, end: usize) -> Checked {
        match self.current {
            Current::Nothing => {
                let what = nonsense(&self.texts.get(text));
                Err(self.problem(place, what))
            }
            Current::Foreign => Ok(()),
            Current::Global(keyword) => {
                let ConfigLocation { line, .. } = place;
                let word = keyword.word();
                self.warnings.push(format!(
                    "line {line} continues {word}, of which MRTG reads the first line only"
                ));
                Ok(())
            }
            Current::Value(..) if self.is_unbroken => {
                self.value_end = end;
                Ok(())
            }
            Current::Value(at, _) => {
                self.settle(at);
                let before = self.values[wide(at)].text;
                self.values[wide(at)].text = self.longer(before, b" ", text);
                Ok(())
            }
            added => {
                // As in MRTG, an empty value also gets the line end.
                let before = self.added_text(added).unwrap_or(Text::EMPTY);
                let longer = self.longer(before, b"\n", text);
                self.set_added(added, Some(longer));
                Ok(())
            }
        }
    }

    fn longer(&mut self, before: Text, between: &[u8], text: Text) -> Text {
        let text = self.tidied(text);
        let text = self.texts.get(text).into_owned();
        self.texts.append(before, &[between, &text])
    }

    fn added_text(&self, current: Current) -> Option<Text> {
        match current {
            Current::Before(keyword) => self.added[keyword.number()].before,
            Current::After(keyword) => self.added[keyword.number()].after,
            Current::Default(keyword) => self.added[keyword.number()].default,
            _ => None,
        }
    }

    /// Completes the current value: appends the text of `[$]`, and checks the result.
    fn finish(&mut self) -> Checked {
        let current = std::mem::replace(&mut self.current, Current::Nothing);
        self.is_unbroken = false;
        let place = self.current_place;
        match current {
            Current::Value(at, target) => {
                self.settle(at);
                let keyword = self.values[wide(at)].keyword;
                if let Some(after) = self.added[keyword.number()].after {
                    self.add_behind(at, after);
                    if self.texts.made_bytes() > MRTG_CFG_BYTES_MAX {
                        return Err(self.problem(place, "the texts are too long"));
                    }
                }
                let text = self.values[wide(at)].text;
                self.check_value(keyword, text, place, |reader| {
                    reader.texts.get(reader.targets[wide(target)].name)
                })
            }
            Current::Default(keyword) => match self.added[keyword.number()].default {
                Some(text) => self.check_value(keyword, text, place, |_| b"_"[..].into()),
                None => Ok(()),
            },
            Current::Global(keyword) => {
                let Some((text, _)) = self.globals[keyword.number()] else {
                    return Ok(());
                };
                let text = self.texts.get(text);
                match checks::global(keyword, &text, self.files) {
                    Ok(()) => Ok(()),
                    Err(why) => {
                        let word = keyword.word();
                        Err(self.problem(place, format!("{word}: {why}")))
                    }
                }
            }
            _ => Ok(()),
        }
    }

    fn check_value<'t>(
        &'t mut self,
        keyword: Keyword,
        text: Text,
        place: ConfigLocation,
        name: impl Fn(&'t Self) -> std::borrow::Cow<'t, [u8]>,
    ) -> Checked {
        if !checks::has_rule(keyword) {
            return Ok(());
        }
        let why = match checks::target(keyword, &self.texts.get(text), self.files) {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        let name = name(self);
        let what = format!("{}[{}]: {why}", keyword.word(), ConfigText(&name));
        Err(self.problem(place, what))
    }

    /// Adds the continuation lines to the current value.
    fn settle(&mut self, at: u32) {
        if self.value_end > 0 {
            let value = &mut self.values[wide(at)];
            value.text = value.text.with_lines_until(self.value_end);
            self.value_end = 0;
        }
    }

    fn add_behind(&mut self, at: u32, after: Text) {
        let after = self.texts.get(after).into_owned();
        let before = self.values[wide(at)].text;
        let text = match self.without_no_space(&after) {
            Some(cut) => self.texts.append(before, &[cut]),
            None => self.texts.append(before, &[b" ", &after]),
        };
        self.values[wide(at)].text = text;
    }
}

/// True if a word of a pattern begins with a `~`, for which Perl puts a user's folder.
fn is_at_home(pattern: &[u8]) -> bool {
    let mut words = pattern.split(|byte| is_space(*byte));
    words.any(|word| word.starts_with(b"~"))
}

/// A message about an unparsable line. It shows the keyword at most, because the rest may contain a community.
fn nonsense(line: &[u8]) -> String {
    let word = line.iter().take_while(|byte| byte.is_ascii_alphanumeric());
    let word = known(&line[..word.count()]).unwrap_or_default();
    format!(
        "\"{word}{}\" does not make sense: a line is Keyword[name]: value, or Keyword: value",
        ConfigText::DOTS
    )
}

/// All keywords, of targets and global ones.
fn keywords() -> impl Iterator<Item = &'static str> {
    let of_targets = Keyword::ALL.iter().map(|(_, word)| *word);
    of_targets.chain(Global::ALL.iter().map(|(_, word)| *word))
}

fn known(word: &[u8]) -> Option<&'static str> {
    keywords().find(|known| known.as_bytes().eq_ignore_ascii_case(word))
}

/// The keyword closest to a misspelled word, with at most two wrong letters.
fn meant(word: &[u8]) -> Option<&'static str> {
    const WRONG_MAX: usize = 2;
    let word = word.to_ascii_lowercase();
    // Short keywords are close to any word.
    let near = keywords().filter(|known| known.len() > 2 * WRONG_MAX);
    let near = near.map(|known| (differences(&word, &known.to_ascii_lowercase()), known));
    let (wrong, known) = near.min()?;
    (wrong <= WRONG_MAX).then_some(known)
}

/// Levenshtein's distance: letters to add, remove or replace.
fn differences(a: &[u8], b: &str) -> usize {
    // A far longer word is no misspelling, and would take long.
    if a.len() > 2 * b.len() {
        return a.len();
    }
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (row, letter) in a.iter().enumerate() {
        let mut left = row + 1;
        for (column, other) in b.bytes().enumerate() {
            let replaced = above[column] + usize::from(*letter != other);
            above[column] = left;
            left = replaced.min(left + 1).min(above[column + 1] + 1);
        }
        above[b.len()] = left;
    }
    above[b.len()]
}

/// True if the line continues a value. Finds the same as [`classify`] and is faster, because most lines are continuations.
fn goes_on(line: &[u8]) -> bool {
    let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    let blanks = blanks.count();
    let text = line
        .get(blanks)
        .filter(|byte| **byte != b'#' && !is_space(**byte));
    blanks > 0 && text.is_some()
}

/// `prefix*keyword`
fn is_foreign(word: &[u8]) -> bool {
    memchr::memchr(b'*', word).is_some_and(|star| star > 0 && star + 1 < word.len())
}

/// Makes a [`Text`] of `part`, which is a slice of the file's `bytes`.
fn text_in(file: u32, bytes: &[u8], part: &[u8]) -> Text {
    let start = part.as_ptr().addr() - bytes.as_ptr().addr();
    Text::in_file(file, start, part.len())
}
