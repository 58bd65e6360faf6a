//! A streaming parser for the XML of dumps: elements, their ends and texts, as bytes. It builds no tree and
//! resolves nothing external, so that memory is limited by the text.
//!
//! As in rrdtool, comments, processing instructions, CDATA, the document type and blank texts are skipped.
//! Entities are the five of XML and numeric ones.

use crate::error::Error;
use crate::spec::shown;

/// Deepest nesting of elements, as in libxml2.
const DEPTH_MAX: usize = 256;
/// Prefix of errors about malformed documents.
const BROKEN: &str = "error reading/parsing XML: ";

/// A piece of the document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node<'a> {
    /// `<name ...>` or `<name ... />`.
    Element(&'a [u8]),
    /// `</name>`; an element of the form `<name/>` has none.
    End(&'a [u8]),
    /// Text that contains more than blanks.
    Text(Vec<u8>),
}

/// The parser with its position.
pub(crate) struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    open: Vec<&'a [u8]>,
    has_root: bool,
    /// The last piece.
    pub node: Option<Node<'a>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Reader<'a> {
        Reader {
            text: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text),
            at: 0,
            open: Vec::new(),
            has_root: false,
            node: None,
        }
    }

    /// Line of the current position, from 1.
    pub(crate) fn line(&self) -> usize {
        let passed = &self.text[..self.at.min(self.text.len())];
        1 + passed.iter().filter(|&&byte| byte == b'\n').count()
    }

    /// Reads the next piece into `node`; `None`: the document has ended.
    pub(crate) fn next(&mut self) -> Result<Option<&Node<'a>>, Error> {
        self.node = None;
        while self.node.is_none() {
            let rest = &self.text[self.at..];
            let rest: &'a [u8] = rest;
            match rest {
                [] if self.open.is_empty() && self.has_root => return Ok(None),
                [] => return Err(broken("the document ends too early")),
                [b'<', ..] => self.node = self.markup(rest)?,
                _ => self.node = self.characters(rest)?,
            }
        }
        Ok(self.node.as_ref())
    }

    /// Parses markup that begins with `<`.
    fn markup(&mut self, rest: &'a [u8]) -> Result<Option<Node<'a>>, Error> {
        let skips = [
            (&b"<!--"[..], &b"-->"[..]),
            (b"<![CDATA[", b"]]>"),
            (b"<?", b"?>"),
        ];
        for (begin, end) in skips {
            if let Some(inner) = rest.strip_prefix(begin) {
                let len = find(inner, end).ok_or_else(|| broken("something is never closed"))?;
                self.at += begin.len() + len + end.len();
                return Ok(None);
            }
        }
        if rest.starts_with(b"<!") {
            self.at += doctype_len(rest).ok_or_else(|| broken("something is never closed"))?;
            return Ok(None);
        }
        let len = tag_len(rest).ok_or_else(|| broken("a tag is never closed"))?;
        self.at += len;
        let tag = &rest[1..len - 1];
        if let Some(name) = tag.strip_prefix(b"/") {
            return self.end(name.trim_ascii_end()).map(Some);
        }
        let closed = tag.ends_with(b"/");
        let name_len = tag
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || *byte == b'/');
        let name = &tag[..name_len.unwrap_or(tag.len())];
        self.begin(name, closed).map(Some)
    }

    fn begin(&mut self, name: &'a [u8], closed: bool) -> Result<Node<'a>, Error> {
        if name.is_empty() || (self.open.is_empty() && self.has_root) {
            return Err(broken("an element stands where none may"));
        }
        self.has_root = true;
        if !closed {
            self.open.push(name);
        }
        if self.open.len() > DEPTH_MAX {
            return Err(broken("elements are nested too deeply"));
        }
        Ok(Node::Element(name))
    }

    fn end(&mut self, name: &'a [u8]) -> Result<Node<'a>, Error> {
        match self.open.pop() {
            Some(open) if open == name => Ok(Node::End(name)),
            Some(open) => {
                let (open, name) = (shown(open), shown(name));
                Err(broken(&format!("{open} is closed by {name}")))
            }
            None => Err(broken("an element is closed that was never opened")),
        }
    }

    /// Parses text up to the next `<`.
    fn characters(&mut self, rest: &'a [u8]) -> Result<Option<Node<'a>>, Error> {
        let len = rest
            .iter()
            .position(|&byte| byte == b'<')
            .unwrap_or(rest.len());
        self.at += len;
        let raw = &rest[..len];
        if raw.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        if self.open.is_empty() {
            return Err(broken("text stands outside of the document"));
        }
        expand(raw).map(|text| Some(Node::Text(text)))
    }
}

fn broken(what: &str) -> Error {
    Error::new(format!("{BROKEN}{what}"))
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// Length of a tag, up to a `>` outside of quotes.
fn tag_len(text: &[u8]) -> Option<usize> {
    let mut quote = None;
    for (i, &byte) in text.iter().enumerate() {
        match quote {
            None if byte == b'>' => return Some(i + 1),
            None if byte == b'"' || byte == b'\'' => quote = Some(byte),
            Some(open) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// Length of a document type, including its internal subset in brackets.
fn doctype_len(text: &[u8]) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0u32);
    for (i, &byte) in text.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') if depth == 0 => return Some(i + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'[') => depth += 1,
            (None, b']') => depth = depth.saturating_sub(1),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// Replaces entities in a text.
fn expand(raw: &[u8]) -> Result<Vec<u8>, Error> {
    let (mut out, mut rest) = (Vec::with_capacity(raw.len()), raw);
    while let Some(at) = rest.iter().position(|&byte| byte == b'&') {
        out.extend_from_slice(&rest[..at]);
        let inner = &rest[at + 1..];
        let len = inner.iter().take(12).position(|&byte| byte == b';');
        let len = len.ok_or_else(|| broken("an entity is never closed"))?;
        let character = entity(&inner[..len]).ok_or_else(|| {
            let name = shown(&inner[..len]);
            broken(&format!("Entity '{name}' not defined"))
        })?;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &inner[len + 1..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}

fn entity(name: &[u8]) -> Option<char> {
    Some(match name {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', digits @ ..] => {
            let digits = std::str::from_utf8(digits).ok()?;
            let code = match digits.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => digits.parse(),
            };
            char::from_u32(code.ok()?).filter(|&character| character != '\0')?
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let mut reader = Reader::new(text.as_bytes());
        let mut out = Vec::new();
        loop {
            match reader.next().map_err(|error| error.text)? {
                None => return Ok(out.join(" ")),
                Some(Node::Element(name)) => out.push(shown(name)),
                Some(Node::End(name)) => out.push(format!("/{}", shown(name))),
                Some(Node::Text(text)) => out.push(format!("'{}'", shown(text))),
            }
        }
    }

    #[test]
    fn pieces_come_in_order_and_broken_documents_are_refused() {
        let good = [
            ("<a/>", "a"),
            ("<?xml version='1.0'?><!-- > --><a>\n</a>\n", "a /a"),
            ("<!DOCTYPE a [<!ENTITY b '>]'>]><a>1</a>", "a '1' /a"),
            (
                "<a b='>' c=\"/>\" ><b />x&lt;&#65;<![CDATA[no]]></a >",
                "a b 'x<A' /a",
            ),
        ];
        for (text, expected) in good {
            assert_eq!(read(text).as_deref(), Ok(expected));
            for end in 0..text.trim_end().len() {
                assert!(read(&text[..end]).is_err(), "{}", &text[..end]);
            }
        }
        let bad = [
            "",
            "x",
            "<a></b>",
            "<a>&foo;</a>",
            "<a/><b/>",
            "</a>",
            "<a><!-- </a>",
            "<>",
            "<a>&#0;</a>",
        ];
        for text in bad {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = "<a>".repeat(300);
        assert!(read(&deep).is_err());
    }
}
