//! Names of OIDs in MIB files: `name ... ::= { parent number }`, and no other part of ASN.1.

use super::files::Files;
use std::collections::BTreeMap;

/// Names from the files of `LoadMIBs`, which are read at the first name that is otherwise unknown.
#[derive(Default)]
pub(super) struct Mibs {
    unread: Vec<Vec<u8>>,
    names: BTreeMap<Vec<u8>, Vec<u32>>,
}

impl Mibs {
    pub(super) fn new(unread: Vec<Vec<u8>>) -> Mibs {
        let names = BTreeMap::new();
        Mibs { unread, names }
    }

    /// Reads the files, once. A file that cannot be read is skipped.
    pub(super) fn load(&mut self, files: &mut dyn Files) {
        let mut found = Vec::new();
        for path in std::mem::take(&mut self.unread) {
            if let Ok(text) = files.read(&path) {
                found.extend(assignments(&text));
            }
        }
        // A parent may be defined later, in any file.
        while !found.is_empty() {
            let before = found.len();
            found.retain(|assignment| match self.numbers(assignment) {
                Some(numbers) => {
                    let names = &mut self.names;
                    names.entry(assignment.name.clone()).or_insert(numbers);
                    false
                }
                None => true,
            });
            if found.len() == before {
                return;
            }
        }
    }

    /// The sub-identifiers of a name.
    pub(super) fn get(&self, name: &[u8]) -> Option<Vec<u32>> {
        self.names.get(name).cloned()
    }

    fn numbers(&self, assignment: &Assignment) -> Option<Vec<u32>> {
        let mut numbers = match &assignment.parent {
            None => Vec::new(),
            Some(parent) => super::oid_names::known(parent).or_else(|| self.get(parent))?,
        };
        numbers.extend(&assignment.numbers);
        (numbers.len() < 128).then_some(numbers)
    }
}

/// `name ::= { parent numbers }`
struct Assignment {
    name: Vec<u8>,
    parent: Option<Vec<u8>>,
    numbers: Vec<u32>,
}

/// Macros whose names get an OID.
const KINDS: [&[u8]; 8] = [
    b"OBJECT-TYPE",
    b"OBJECT-IDENTITY",
    b"OBJECT-GROUP",
    b"MODULE-IDENTITY",
    b"MODULE-COMPLIANCE",
    b"NOTIFICATION-TYPE",
    b"NOTIFICATION-GROUP",
    b"AGENT-CAPABILITIES",
];

fn assignments(text: &[u8]) -> Vec<Assignment> {
    let words = words(text);
    let mut found = Vec::new();
    let mut name = None;
    let mut at = 0;
    while at < words.len() {
        let is_kind = KINDS.contains(&words[at])
            || words[at] == b"IDENTIFIER" && at > 0 && words[at - 1] == b"OBJECT";
        if is_kind {
            let before = at - usize::from(words[at] == b"IDENTIFIER");
            // `SYNTAX OBJECT IDENTIFIER` inside a macro does not begin an assignment.
            name = match before.checked_sub(1).map(|at| words[at]) {
                Some(b"SYNTAX") => name,
                Some(word) if word[0].is_ascii_lowercase() => Some(word),
                _ => None,
            };
        }
        if words[at] == b"::=" && words.get(at + 1) == Some(&&b"{"[..]) {
            let body = &words[at + 2..];
            let len = body.iter().position(|word| *word == b"}");
            let body = &body[..len.unwrap_or(body.len())];
            if let Some(name) = name.take() {
                found.extend(assignment(name, body));
            }
            at += 1 + body.len();
        }
        at += 1;
    }
    found
}

/// Parses `parent number`, `iso org(3) dod(6) 1`, or `1 3 6`.
fn assignment(name: &[u8], body: &[&[u8]]) -> Option<Assignment> {
    let (mut parent, mut numbers) = (None, Vec::new());
    let mut at = 0;
    while at < body.len() {
        let word = body[at];
        let named = match body.get(at + 1..at + 4) {
            Some([b"(", number, b")"]) => Some(*number),
            _ => None,
        };
        let number = named.unwrap_or(word);
        match std::str::from_utf8(number)
            .ok()
            .and_then(|n| n.parse().ok())
        {
            Some(number) => numbers.push(number),
            None if at == 0 && named.is_none() => parent = Some(word.to_vec()),
            None => return None,
        }
        at += match named {
            Some(_) => 4,
            None => 1,
        };
    }
    let name = name.to_vec();
    (!numbers.is_empty()).then_some(Assignment {
        name,
        parent,
        numbers,
    })
}

/// The words of a text, without comments and quoted texts.
fn words(text: &[u8]) -> Vec<&[u8]> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let len = match first {
            b'"' => memchr::memchr(b'"', &rest[1..]).map_or(rest.len(), |end| end + 2),
            b'-' if rest.starts_with(b"--") => {
                let line = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                let end = memchr::memmem::find(&rest[2..line], b"--");
                end.map_or(line, |end| end + 4)
            }
            b':' if rest.starts_with(b"::=") => 3,
            first if is_part(first) => {
                let mut len = 0;
                while len < rest.len() && is_part(rest[len]) && !rest[len..].starts_with(b"--") {
                    len += 1;
                }
                len.max(1)
            }
            _ => 1,
        };
        let is_word = !first.is_ascii_whitespace() && first != b'"' && !rest.starts_with(b"--");
        if is_word {
            words.push(&rest[..len]);
        }
        rest = &rest[len..];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::memory_files::MemoryFiles;
    use super::*;

    #[test]
    fn names_come_from_files() {
        let text = br#"
UCD-SNMP-MIB DEFINITIONS ::= BEGIN
IMPORTS OBJECT-TYPE, enterprises FROM SNMPv2-SMI;
-- late OBJECT IDENTIFIER ::= { nothing 1 } -- late OBJECT IDENTIFIER ::= { ucdavis 99 }
ucdavis MODULE-IDENTITY
    DESCRIPTION "x ::= { y 1 }"
    ::= { enterprises 2021 }
systemStats OBJECT IDENTIFIER ::= {ucdavis 11}
long OBJECT IDENTIFIER ::= { iso org(3) dod(6) 1 }
bare OBJECT IDENTIFIER ::= { 1 3 6 }
ssCpuRawIdle OBJECT-TYPE
    SYNTAX OBJECT IDENTIFIER
    ::= { systemStats 53 }
Entry ::= SEQUENCE { ssIndex Integer32 }
orphan OBJECT IDENTIFIER ::= { nowhere 1 }
END"#;
        let mut files = MemoryFiles::default();
        files.add("m", text);
        let mut mibs = Mibs::new(vec![b"m".to_vec(), b"missing".to_vec()]);
        mibs.load(&mut files);
        let of = |name: &str| mibs.get(name.as_bytes());
        assert_eq!(
            of("ssCpuRawIdle"),
            Some(vec![1, 3, 6, 1, 4, 1, 2021, 11, 53])
        );
        assert_eq!(of("late"), Some(vec![1, 3, 6, 1, 4, 1, 2021, 99]));
        assert_eq!(of("long"), Some(vec![1, 3, 6, 1]));
        assert_eq!(of("bare"), Some(vec![1, 3, 6]));
        assert_eq!(of("orphan"), None);
        assert_eq!(of("Entry"), None);
    }
}
