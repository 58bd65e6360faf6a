//! Widths of texts in the bundled font, so that the layout does not depend on a viewer's fonts. The font is DejaVu Sans with
//! Latin, Greek and Cyrillic only; `assets/LICENSE-DejaVu.txt` describes its making.

use std::borrow::Cow;

/// Fonts that the SVG requests. Verdana has the same widths as DejaVu. The font is not embedded: it
/// would add 7 kB to each file, and the usual policy of a page (`font-src 'self'`) forbids its use.
pub const FAMILY: &str = "DejaVu Sans, Verdana, Bitstream Vera Sans, Geneva, sans-serif";

pub(super) const UNITS_AN_EM: f64 = 2048.0;

/// Advance widths from U+0020 to U+007E.
#[rustfmt::skip]
const WIDTHS: [u16; 95] = [
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087,
    2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532, 1612,
    1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716, 1024,
    1024, 1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253,
    1300, 1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716,
];

fn advance(c: char) -> u16 {
    match c {
        ' '..='~' => WIDTHS[c as usize - 0x20],
        '–' => 1024,
        'µ' => 1303,
        '·' => 651,
        // About the width of a wide letter; ideographs are as wide as high.
        '\0'..'\u{2000}' => 1500,
        _ => 2048,
    }
}

/// Width of a text at a font size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| f64::from(advance(c))).sum::<f64>() / UNITS_AN_EM * size
}

/// The text, cut with an ellipsis to at most `most` pixels.
pub(super) fn fit(text: &str, size: f64, most: f64) -> Cow<'_, str> {
    if width(text, size) <= most {
        return text.into();
    }
    let mut room = most - width("…", size);
    let keep = text.char_indices().find(|(_, c)| {
        room -= f64::from(advance(*c)) / UNITS_AN_EM * size;
        room < 0.0
    });
    let end = keep.map_or(0, |(at, _)| at);
    format!("{}…", &text[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::outlines::glyphs;

    #[test]
    fn widths_are_the_fonts() {
        let glyphs = glyphs();
        for c in (' '..='~').chain(['–', 'µ', '·', '…']) {
            assert_eq!(f64::from(advance(c)), glyphs[&c].advance, "{c:?}");
        }
    }

    #[test]
    fn texts_are_cut_to_fit() {
        for (text, most, expect) in [
            ("eth0", 100.0, "eth0"),
            ("", 0.0, ""),
            ("wwwwwwwwww", 50.0, "wwww…"),
            ("wwwwwwwwww", 5.0, "…"),
            ("ééééé", 30.0, "éé…"),
        ] {
            assert_eq!(fit(text, 10.0, most), expect);
        }
    }
}
