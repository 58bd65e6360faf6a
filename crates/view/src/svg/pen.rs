//! Writes SVG: escaped texts, short finite numbers, and paths. Only attributes are used, because
//! pages often forbid style sheets inside SVG.

use std::fmt::Write as _;

/// Largest coordinate; values beyond are limited to it.
const FAR: f64 = 1e6;

/// Appends a text with XML's special characters escaped, and forbidden ones replaced.
pub fn put_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
}

/// A length in tenths of a pixel; 0 for NaN.
fn tenths(value: f64) -> i64 {
    (value.clamp(-FAR, FAR) * 10.0).round() as i64
}

fn put_tenths(out: &mut String, tenths: i64) {
    let (whole, rest) = (tenths.abs() / 10, tenths.abs() % 10);
    let sign = if tenths < 0 { "-" } else { "" };
    // Writes to a String do not fail.
    let _ = match rest {
        0 => write!(out, "{sign}{whole}"),
        _ => write!(out, "{sign}{whole}.{rest}"),
    };
}

/// Appends ` name="value"` for each length.
fn put_lengths(out: &mut String, lengths: &[(&str, f64)]) {
    for (name, value) in lengths {
        let _ = write!(out, " {name}=\"");
        put_tenths(out, tenths(*value));
        out.push('"');
    }
}

/// The part of a text that its position refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Appends a text element.
pub(super) fn put_text(
    out: &mut String,
    (x, y): (f64, f64),
    anchor: Anchor,
    (size, fill): (f64, &str),
    text: &str,
) {
    out.push_str("<text");
    put_lengths(out, &[("x", x), ("y", y), ("font-size", size)]);
    out.push_str(match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    });
    let _ = write!(out, " fill=\"{fill}\">");
    put_escaped(out, text);
    out.push_str("</text>\n");
}

/// A rectangle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    /// The x of the right edge.
    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    /// The y of the lower edge.
    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// Appends a rectangle; `rest` are further attributes.
pub(super) fn put_rect(out: &mut String, area: Area, rest: &str, title: &str) {
    out.push_str("<rect");
    put_lengths(
        out,
        &[
            ("x", area.left),
            ("y", area.top),
            ("width", area.width),
            ("height", area.height),
        ],
    );
    end_titled(out, "rect", rest, title);
}

/// Appends a path; `rest` are further attributes.
pub(super) fn put_path(out: &mut String, path: &str, rest: &str, title: &str) {
    if path.is_empty() {
        return;
    }
    let _ = write!(out, "<path d=\"{path}\"");
    end_titled(out, "path", rest, title);
}

fn end_titled(out: &mut String, name: &str, rest: &str, title: &str) {
    let _ = write!(out, " {rest}");
    if title.is_empty() {
        out.push_str("/>\n");
        return;
    }
    out.push_str("><title>");
    put_escaped(out, title);
    let _ = writeln!(out, "</title></{name}>");
}

/// A path of relative steps, half as long as with absolute places. A level stretch is one step.
#[derive(Default)]
pub(super) struct Path {
    text: String,
    at: (i64, i64),
    /// Length so far of a level step that may continue.
    level: i64,
}

impl Path {
    /// Begins a new line at a point.
    pub(super) fn move_to(&mut self, x: f64, y: f64) {
        self.end_level();
        self.at = (tenths(x), tenths(y));
        self.text.push('M');
        put_tenths(&mut self.text, self.at.0);
        self.text.push(' ');
        put_tenths(&mut self.text, self.at.1);
    }

    /// Continues to a point.
    pub(super) fn line_to(&mut self, x: f64, y: f64) {
        let to = (tenths(x), tenths(y));
        let (dx, dy) = (to.0 - self.at.0, to.1 - self.at.1);
        self.at = to;
        if dy == 0 && dx.signum() * self.level.signum() >= 0 {
            self.level += dx;
            return;
        }
        self.end_level();
        if dy == 0 {
            self.level = dx;
            return;
        }
        self.text.push('l');
        put_tenths(&mut self.text, dx);
        if dy >= 0 {
            self.text.push(' ');
        }
        put_tenths(&mut self.text, dy);
    }

    /// Closes the line to its start.
    pub(super) fn close(&mut self) {
        self.end_level();
        self.text.push('z');
    }

    fn end_level(&mut self) {
        if self.level != 0 {
            self.text.push('h');
            put_tenths(&mut self.text, self.level);
            self.level = 0;
        }
    }

    /// The path's text.
    pub(super) fn text(mut self) -> String {
        self.end_level();
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_finite() {
        for (value, expect) in [
            (0.0, "0"),
            (-0.04, "0"),
            (1.25, "1.3"),
            (-1.5, "-1.5"),
            (10.0, "10"),
            (f64::NAN, "0"),
            (f64::INFINITY, "1000000"),
            (-1e300, "-1000000"),
        ] {
            let mut out = String::new();
            put_tenths(&mut out, tenths(value));
            assert_eq!(out, expect, "{value}");
        }
    }

    #[test]
    fn texts_are_escaped() {
        for (text, expect) in [
            ("sda", "sda"),
            ("<a href='x'>&\"", "&lt;a href=&#39;x&#39;&gt;&amp;&quot;"),
            ("a\u{1b}\u{9b}b\n", "a\u{fffd}\u{fffd}b\u{fffd}"),
        ] {
            let mut out = String::new();
            put_escaped(&mut out, text);
            assert_eq!(out, expect);
        }
    }

    #[test]
    fn paths_go_in_steps() {
        let mut path = Path::default();
        path.move_to(0.0, 10.0);
        for (x, y) in [
            (1.0, 10.0),
            (2.0, 10.0),
            (2.0, 10.0),
            (3.0, 9.5),
            (4.0, 12.0),
            (2.0, 12.0),
        ] {
            path.line_to(x, y);
        }
        path.close();
        path.move_to(7.0, 7.0);
        path.line_to(8.0, 7.0);
        assert_eq!(path.text(), "M0 10h2l1-0.5l1 2.5h-2zM7 7h1");
    }
}
