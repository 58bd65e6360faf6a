//! Parses the OIDs in targets' texts: sub-identifiers, and the operation that reads them. Each
//! distinct text is parsed once.

use super::files::Files;
use super::mib::Mibs;
use super::numbered::Numbered;
use super::oid_names::{known, numbers_of};
use super::perl::is_word;
use super::reading::{Magic, OidRange};
use super::text::{narrow, wide};

/// All OIDs of a configuration.
pub(super) struct Oids {
    pub(super) numbers: Vec<u32>,
    numbered: Numbered,
    texts: Vec<(Box<[u8]>, Resolved)>,
    mibs: Mibs,
}

/// The result of parsing a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Resolved {
    pub(super) magic: Magic,
    pub(super) oid: OidRange,
    pub(super) index_position: Option<u8>,
}

/// Placeholder for the index inside an OID.
const INDEX_POSITION: &[u8] = b"IndexPOS";
/// Most sub-identifiers of an OID.
const ARCS_MAX: usize = 127;

impl Oids {
    /// `mib_files` are read for names that are not built in.
    pub(super) fn new(mib_files: Vec<Vec<u8>>) -> Oids {
        Oids {
            numbers: Vec::new(),
            numbered: Numbered::default(),
            texts: Vec::new(),
            mibs: Mibs::new(mib_files),
        }
    }

    /// Parses a text. The error is a message.
    pub(super) fn resolve(
        &mut self,
        text: &[u8],
        files: &mut dyn Files,
    ) -> Result<Resolved, String> {
        let is_it = |number: u32| *self.texts[wide(number)].0 == *text;
        let slot = match self.numbered.find(text, is_it) {
            Ok(number) => return Ok(self.texts[wide(number)].1),
            Err(slot) => slot,
        };
        let resolved = self.look_at(text, files)?;
        self.numbered.insert(slot, narrow(self.texts.len()));
        self.texts.push((text.into(), resolved));
        Ok(resolved)
    }

    fn look_at(&mut self, text: &[u8], files: &mut dyn Files) -> Result<Resolved, String> {
        let plain = |magic| Resolved {
            magic,
            oid: OidRange { start: 0, len: 0 },
            index_position: None,
        };
        let (magic, rest) = match text {
            b"PseudoZero" => return Ok(plain(Magic::PseudoZero)),
            b"PseudoOne" => return Ok(plain(Magic::PseudoOne)),
            _ => magic_of(text)?,
        };
        let mut named = rest.to_vec();
        let mut position = None;
        if let (Magic::Get | Magic::IsOne, Some(at)) =
            (magic, memchr::memmem::find(rest, INDEX_POSITION))
        {
            // A zero marks the place of the index.
            named.splice(at..at + INDEX_POSITION.len(), *b"0");
            position = Some(at);
        }
        let (mut numbers, name_len) = self.numbers_of(&named, files)?;
        if let Some(at) = position {
            let behind = memchr::memchr_iter(b'.', &named[at..]).count();
            let is_whole = at > name_len
                && named[at - 1] == b'.'
                && matches!(named.get(at + 1), None | Some(b'.'));
            if !is_whole {
                return Err("IndexPOS must be a number of its own in an OID".into());
            }
            let at = numbers.len() - 1 - behind;
            numbers.remove(at);
            position = Some(at);
        }
        if numbers.is_empty() || numbers.len() > ARCS_MAX || numbers[0] > 2 {
            return Err("no device can have this OID".into());
        }
        let oid = OidRange {
            start: narrow(self.numbers.len()),
            len: u8::try_from(numbers.len()).unwrap_or(u8::MAX),
        };
        self.numbers.extend(&numbers);
        Ok(Resolved {
            magic,
            oid,
            index_position: position.and_then(|at| u8::try_from(at).ok()),
        })
    }

    /// Sub-identifiers of a text, and how many of its bytes are a name.
    fn numbers_of(
        &mut self,
        text: &[u8],
        files: &mut dyn Files,
    ) -> Result<(Vec<u32>, usize), String> {
        let name = name_len(text);
        let rest = std::str::from_utf8(&text[name..]).unwrap_or_default();
        let not_numbers = || "an OID is numbers with dots between them".to_string();
        if name == 0 {
            let numbers = numbers_of(rest).ok_or_else(not_numbers)?;
            return Ok((numbers, 0));
        }
        let name_text = &text[..name];
        let mut numbers = self.find_name(name_text, files).ok_or(
            "the name of an OID is not known: write its number, or name its file in LoadMIBs",
        )?;
        if !rest.is_empty() {
            let more = rest.strip_prefix('.').and_then(numbers_of);
            numbers.extend(more.ok_or_else(not_numbers)?);
        }
        Ok((numbers, name))
    }

    /// Looks up a name `a.b.c`, or its longest known end.
    fn find_name(&mut self, name: &[u8], files: &mut dyn Files) -> Option<Vec<u32>> {
        let ends = || {
            let dots = memchr::memchr_iter(b'.', name).map(|dot| dot + 1);
            std::iter::once(0).chain(dots).map(|from| &name[from..])
        };
        if let Some(numbers) = ends().find_map(known) {
            return Some(numbers);
        }
        self.mibs.load(files);
        ends().find_map(|name| self.mibs.get(name))
    }
}

/// The operation that a text begins with, and the OID behind it.
fn magic_of(text: &[u8]) -> Result<(Magic, &[u8]), String> {
    if let Some(rest) = text.strip_prefix(b"WaLK") {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let at = std::str::from_utf8(&rest[..digits]).unwrap_or_default();
        let at = match at {
            "" => 0,
            at => at
                .parse()
                .map_err(|_| format!("WaLK{at}: too far to walk"))?,
        };
        return Ok((Magic::Walk(at), &rest[digits..]));
    }
    if let Some(rest) = text.strip_prefix(b"GeTNEXT") {
        return Ok((Magic::GetNext, rest));
    }
    if let Some(rest) = text.strip_prefix(b"CnTWaLK") {
        return Ok((Magic::CountWalk, rest));
    }
    if text.starts_with(b"Pseudo") {
        return Err("PseudoZero and PseudoOne have no index".into());
    }
    let has = |hack: &[u8]| memchr::memmem::find(text, hack).is_some();
    match has(b"ifAdminHack") || has(b"ifOperHack") {
        true => Ok((Magic::IsOne, text)),
        false => Ok((Magic::Get, text)),
    }
}

/// `^[a-zA-Z][\w\-]*(\.[a-zA-Z][\w\-]*)*`
fn name_len(text: &[u8]) -> usize {
    let word = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        match rest.first() {
            Some(first) if first.is_ascii_alphabetic() => {
                let is_part = |byte: &&u8| is_word(**byte) || **byte == b'-';
                rest.iter().take_while(is_part).count()
            }
            _ => 0,
        }
    };
    let mut len = word(0);
    while len > 0 && text.get(len) == Some(&b'.') && word(len + 1) > 0 {
        len += 1 + word(len + 1);
    }
    len
}

#[cfg(test)]
mod tests {
    use super::super::memory_files::MemoryFiles;
    use super::*;

    fn shown(text: &str) -> String {
        let mut oids = Oids::new(Vec::new());
        match oids.resolve(text.as_bytes(), &mut MemoryFiles::default()) {
            Ok(Resolved {
                magic,
                oid,
                index_position,
            }) => {
                let numbers = &oids.numbers[wide(oid.start)..][..oid.len.into()];
                format!("{magic:?} {numbers:?} {index_position:?}")
            }
            Err(why) => why,
        }
    }

    #[test]
    fn oids_are_numbers() {
        for (text, expected) in [
            ("1.3.6", "Get [1, 3, 6] None"),
            (".1.3.6", "Get [1, 3, 6] None"),
            ("iso.3.6", "Get [1, 3, 6] None"),
            ("mgmt", "Get [1, 3, 6, 1, 2] None"),
            ("foo.mgmt.mib-2.5", "Get [1, 3, 6, 1, 2, 1, 5] None"),
            ("WaLK3iso.3", "Walk(3) [1, 3] None"),
            ("WaLK.1.3", "Walk(0) [1, 3] None"),
            // As in MRTG, the 1 is the position, not part of the OID.
            ("WaLK1.3.6", "no device can have this OID"),
            ("GeTNEXT1.3", "GetNext [1, 3] None"),
            ("CnTWaLKmgmt", "CountWalk [1, 3, 6, 1, 2] None"),
            ("PseudoZero", "PseudoZero [] None"),
            ("PseudoOne", "PseudoOne [] None"),
            (".1.3.IndexPOS.7", "Get [1, 3, 7] Some(2)"),
            ("iso.IndexPOS", "Get [1] Some(1)"),
            (".1.3.IndexPOS", "Get [1, 3] Some(2)"),
            ("ifAdminHack", "IsOne [1, 3, 6, 1, 2, 1, 2, 2, 1, 7] None"),
            ("PseudoOne.1", "PseudoZero and PseudoOne have no index"),
            ("1..3", "an OID is numbers with dots between them"),
            ("", "an OID is numbers with dots between them"),
            ("3.1", "no device can have this OID"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
        let unknown = shown("ssCpuRawIdle");
        assert!(unknown.contains("an OID is not known"), "{unknown}");
    }
}
