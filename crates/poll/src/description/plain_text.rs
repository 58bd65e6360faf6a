//! Converts the HTML of a configuration to the text that a browser would show: without tags, with entities decoded. The result
//! is text and never HTML: a `<` in it is a `<`.

use kymo_wire::mrtg_cfg::decoded;

/// Elements whose content a browser hides.
const HIDDEN: [&str; 5] = ["script", "style", "title", "template", "noscript"];
/// Elements that begin a line.
const BLOCKS: [&str; 26] = [
    "address",
    "blockquote",
    "body",
    "br",
    "caption",
    "center",
    "dd",
    "div",
    "dl",
    "dt",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tr",
    "ul",
];
/// Elements that a space separates from the text before them.
const CELLS: [&str; 2] = ["td", "th"];
/// Known entities by name; others stay undecoded.
const ENTITIES: &[(&str, char)] = &[
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("deg", '\u{b0}'),
    ("micro", '\u{b5}'),
    ("copy", '\u{a9}'),
    ("reg", '\u{ae}'),
    ("middot", '\u{b7}'),
    ("ndash", '\u{2013}'),
    ("mdash", '\u{2014}'),
    ("hellip", '\u{2026}'),
    ("auml", '\u{e4}'),
    ("ouml", '\u{f6}'),
    ("uuml", '\u{fc}'),
    ("Auml", '\u{c4}'),
    ("Ouml", '\u{d6}'),
    ("Uuml", '\u{dc}'),
    ("szlig", '\u{df}'),
    ("eacute", '\u{e9}'),
    ("egrave", '\u{e8}'),
    ("agrave", '\u{e0}'),
];
/// Longest name of an entity, bytes.
const ENTITY_MAX: usize = 10;

/// The text in lines as a browser breaks them, without empty lines. A literal `\n` is a space, as MRTG replaces it by a line
/// break of the HTML document.
pub fn lines(html: &[u8]) -> String {
    let mut seen = Visible::default();
    let html = decoded(html).replace("\\n", " ");
    let mut rest = html.as_str();
    while let Some(at) = rest.find(['<', '&']) {
        let (before, behind) = rest.split_at(at);
        seen.text(before);
        rest = match behind.starts_with('<') {
            true => tag(behind, &mut seen),
            false => entity(behind, &mut seen),
        };
    }
    seen.text(rest);
    seen.out.truncate(seen.out.trim_end().len());
    seen.out
}

/// The text of [`lines`] on one line.
pub fn line(html: &[u8]) -> String {
    lines(html).replace('\n', " ")
}

/// The visible text so far, and the white space that is due before more of it.
#[derive(Default)]
struct Visible {
    out: String,
    /// A space or a line break, put before the next character.
    gap: Option<char>,
}

impl Visible {
    fn text(&mut self, text: &str) {
        text.chars().for_each(|c| self.put(c));
    }

    /// Collapses white space. Omits characters that control a terminal or the direction of text.
    fn put(&mut self, c: char) {
        if c.is_whitespace() {
            self.gap.get_or_insert(' ');
            return;
        }
        if c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        {
            return;
        }
        if let Some(gap) = self.gap.take().filter(|_| !self.out.is_empty()) {
            self.out.push(gap);
        }
        self.out.push(c);
    }

    fn break_line(&mut self) {
        self.gap = Some('\n');
    }
}

/// Skips a tag or a comment, or shows a `<` that begins neither; returns the rest.
fn tag<'a>(html: &'a str, seen: &mut Visible) -> &'a str {
    if let Some(comment) = html.strip_prefix("<!--") {
        return comment.split_once("-->").map_or("", |(_, rest)| rest);
    }
    let inner = &html[1..];
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
        seen.put('<');
        return inner;
    }
    let rest = behind_tag(inner);
    let name = inner.trim_start_matches('/');
    let end = name.find(|c: char| !c.is_ascii_alphanumeric());
    let name = name[..end.unwrap_or(name.len())].to_ascii_lowercase();
    let name = name.as_str();
    if BLOCKS.contains(&name) {
        seen.break_line();
    } else if CELLS.contains(&name) {
        seen.put(' ');
    } else if HIDDEN.contains(&name) && !inner.starts_with('/') {
        return behind_element(rest, name);
    }
    rest
}

/// The rest behind a tag's `>`. A `>` in quotes belongs to an attribute; a tag without an end hides all that follows.
fn behind_tag(html: &str) -> &str {
    let mut quote = None;
    for (at, c) in html.char_indices() {
        match (quote, c) {
            (None, '>') => return &html[at + 1..],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    ""
}

/// The rest behind an element's end tag; without an end tag the element hides all that follows.
fn behind_element<'a>(html: &'a str, name: &str) -> &'a str {
    let lower = html.to_ascii_lowercase();
    let end = lower.find(&format!("</{name}"));
    end.map_or("", |at| behind_tag(&html[at..]))
}

/// Decodes an entity, or shows a `&` that begins none; returns the rest.
fn entity<'a>(html: &'a str, seen: &mut Visible) -> &'a str {
    let inner = &html[1..];
    let end = inner
        .bytes()
        .take(ENTITY_MAX + 1)
        .position(|byte| byte == b';');
    let found = end.and_then(|end| Some((meaning(&inner[..end])?, &inner[end + 1..])));
    match found {
        Some((c, rest)) => {
            seen.put(c);
            rest
        }
        None => {
            seen.put('&');
            inner
        }
    }
}

fn meaning(word: &str) -> Option<char> {
    let Some(number) = word.strip_prefix('#') else {
        let known = ENTITIES.iter().find(|(name, _)| *name == word);
        return known.map(|(_, c)| *c);
    };
    let number = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    number.ok().and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_reader_would_see() {
        for (html, text) in [
            ("plain", "plain"),
            ("<h1>Traffic for <B>2</B></h1>", "Traffic for 2"),
            // cfgmaker's page
            (
                "<h1>Traffic Analysis for 2 -- sw1</h1>\\n <div id=\"sysdetails\">\\n <table>\\n <tr>\\n <td>System:</td>\\n <td>sw1 in Room 5</td>\\n </tr>\\n <tr><td>ifType:</td><td>ethernetCsmacd (6)</td></tr></table></div>",
                "Traffic Analysis for 2 -- sw1\nSystem: sw1 in Room 5\nifType: ethernetCsmacd (6)",
            ),
            ("a<br>b<br/>c<BR />d", "a\nb\nc\nd"),
            ("  a \t\n b  ", "a b"),
            (
                "1 < 2 & 3 > 2 &amp;&lt;b&gt; &#65;&#x42; &nbsp;x &unknown; &",
                "1 < 2 & 3 > 2 &<b> AB x &unknown; &",
            ),
            // decoded once
            ("&amp;lt;b&amp;gt;", "&lt;b&gt;"),
            ("<img src=x onerror=alert(1)>", ""),
            ("<img alt='a > b' src=\"y\">seen", "seen"),
            ("<<b>x</b>", "<x"),
            ("<scr<script>ipt>alert(1)</script>", "ipt>alert(1)"),
            ("a<script>alert('<b>')</SCRIPT >b<style>x", "ab"),
            ("a<!-- <b>hidden</b> -->b<!-- never ends", "ab"),
            ("a<b never ends", "a"),
            ("a<?php x ?>b<!DOCTYPE html>c", "abc"),
            ("\u{1b}[2J\u{202e}a\u{0}b&#27;[&#x202e;", "[2Jab["),
            ("&#1114112;&#xd800;", "&#1114112;&#xd800;"),
        ] {
            assert_eq!(lines(html.as_bytes()), text, "{html}");
        }
        assert_eq!(lines(b"caf\xe9"), "caf\u{e9}");
        assert_eq!(line(b"a<br>b"), "a b");
    }

    proptest! {
        #[test]
        fn pieces_of_html_are_text(html in "(?s)([a-z<>&;/! \"']|<b>|<!--|-->|&amp;|&#10;|<script>|</script>){0,60}") {
            let text = lines(html.as_bytes());
            prop_assert!(text.len() <= html.len() && text.trim() == text && !text.contains("\n\n"), "{:?}", text);
        }

        #[test]
        fn any_bytes_are_text(html in proptest::collection::vec(any::<u8>(), 0..200)) {
            let text = lines(&html);
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
        }
    }
}
