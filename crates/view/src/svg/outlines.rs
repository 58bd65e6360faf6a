//! Texts as outlines of the bundled font, for pictures that are drawn without a text engine.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::font::UNITS_AN_EM;

/// A line a glyph: character, advance, path; written by `build.rs`.
const GLYPHS: &str = include_str!(concat!(env!("OUT_DIR"), "/outlines.txt"));

/// A glyph of the font.
#[derive(Clone, Copy)]
pub(super) struct Glyph {
    /// Advance, in units of the font.
    pub(super) advance: f64,
    path: &'static str,
}

/// All glyphs, by character.
pub(super) fn glyphs() -> BTreeMap<char, Glyph> {
    let glyph = |line: &'static str| {
        let mut parts = line.splitn(3, ' ');
        let (character, advance) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let path = parts.next()?;
        Some((char::from_u32(character)?, Glyph { advance, path }))
    };
    GLYPHS.lines().filter_map(glyph).collect()
}

/// An SVG of this module with paths in place of its texts.
pub fn outlined(svg: &str) -> String {
    let glyphs = glyphs();
    let mut out = String::with_capacity(svg.len() * 4);
    let mut rest = svg;
    while let Some((before, text)) = rest.split_once("<text ") {
        let Some((text, after)) = text.split_once("</text>") else {
            break;
        };
        out.push_str(before);
        if let Some((attributes, text)) = text.split_once('>') {
            put_outlines(&mut out, &glyphs, attributes, &unescaped(text));
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn put_outlines(out: &mut String, glyphs: &BTreeMap<char, Glyph>, attributes: &str, text: &str) {
    let unknown = glyphs.get(&'\u{fffd}');
    let drawn: Vec<&Glyph> = text
        .chars()
        .filter_map(|c| glyphs.get(&c).or(unknown))
        .collect();
    let units: f64 = drawn.iter().map(|glyph| glyph.advance).sum();
    let number = |name| attribute(attributes, name).parse().unwrap_or(0.0);
    let (x, y, scale): (f64, f64, f64) =
        (number("x"), number("y"), number("font-size") / UNITS_AN_EM);
    let left = match attribute(attributes, "text-anchor") {
        "middle" => x - units * scale / 2.0,
        "end" => x - units * scale,
        _ => x,
    };
    let fill = attribute(attributes, "fill");
    let _ = write!(
        out,
        "<g fill=\"{fill}\" transform=\"translate({left} {y}) scale({scale} -{scale})\">"
    );
    let mut at = 0.0;
    for glyph in drawn {
        if !glyph.path.is_empty() {
            let _ = write!(
                out,
                "<path transform=\"translate({at} 0)\" d=\"{}\"/>",
                glyph.path
            );
        }
        at += glyph.advance;
    }
    out.push_str("</g>");
}

/// The value of an attribute; empty if there is none.
fn attribute<'a>(attributes: &'a str, name: &str) -> &'a str {
    let mut parts = attributes.split('"');
    while let (Some(before), Some(value)) = (parts.next(), parts.next()) {
        if before.trim().strip_suffix('=') == Some(name) {
            return value;
        }
    }
    ""
}

/// The text that [`put_escaped`](super::put_escaped) has escaped.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let plain = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&");
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::pen::{Anchor, put_escaped, put_text};

    #[test]
    fn texts_become_paths_at_their_places() {
        let mut svg = String::from("<svg>");
        let look = (16.0, "#333");
        put_text(&mut svg, (100.0, 10.0), Anchor::Start, look, "a");
        put_text(&mut svg, (100.0, 20.0), Anchor::Middle, look, "ii");
        put_text(&mut svg, (100.0, 30.0), Anchor::End, look, "\u{4e2d}");
        svg.push_str("<rect/></svg>");
        let drawn = outlined(&svg);
        assert!(!drawn.contains("<text"), "{drawn}");
        assert!(drawn.ends_with("<rect/></svg>"), "{drawn}");
        let groups: Vec<&str> = drawn.split("<g fill=\"#333\" ").skip(1).collect();
        let place = |n: usize| groups[n].split('>').next().unwrap_or_default();
        assert_eq!(
            place(0),
            "transform=\"translate(100 10) scale(0.0078125 -0.0078125)\""
        );
        // An i has 569 units.
        assert_eq!(
            place(1),
            "transform=\"translate(95.5546875 20) scale(0.0078125 -0.0078125)\""
        );
        assert!(groups[1].contains("translate(569 0)"), "{}", groups[1]);
        // A character that the font has not is a box with a question mark.
        let unknown = glyphs()[&'\u{fffd}'];
        assert!(groups[2].contains(unknown.path), "{}", groups[2]);
        roxmltree::Document::parse(&drawn).expect("XML");
    }

    #[test]
    fn escaped_texts_come_back() {
        for text in ["<a href='x'>&\"", "&amp;lt;", "plain"] {
            let mut escaped = String::new();
            put_escaped(&mut escaped, text);
            assert_eq!(unescaped(&escaped), text);
        }
    }
}
