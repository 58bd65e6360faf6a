//! The bundled font, and widths of texts in it, so that the layout does not depend on a viewer's fonts.

use std::borrow::Cow;

/// DejaVu Sans with Latin, Greek and Cyrillic only; `assets/LICENSE-DejaVu.txt` describes its making.
pub const FONT: &[u8] = include_bytes!("../../assets/kymo-graph.ttf");

/// Fonts that the SVG requests. Verdana has the same widths as DejaVu. The font is not embedded: it
/// would add 7 kB to each file, and the usual policy of a page (`font-src 'self'`) forbids its use.
pub const FAMILY: &str = "DejaVu Sans, Verdana, Bitstream Vera Sans, Geneva, sans-serif";

const UNITS_AN_EM: f64 = 2048.0;

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

    fn u16_at(bytes: &[u8], at: usize) -> usize {
        usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
    }

    fn table<'a>(tag: &[u8; 4]) -> &'a [u8] {
        let tables = u16_at(FONT, 4);
        let entry = (0..tables)
            .map(|n| &FONT[12 + n * 16..])
            .find(|entry| entry.starts_with(tag))
            .expect("table");
        let long = |at: usize| u16_at(entry, at) << 16 | u16_at(entry, at + 2);
        &FONT[long(8)..long(8) + long(12)]
    }

    /// Index of a character's glyph by the font's cmap of format 4.
    fn glyph(c: char) -> usize {
        let cmap = table(b"cmap");
        let at = (0..u16_at(cmap, 2))
            .map(|n| u16_at(cmap, 4 + n * 8 + 6))
            .find(|&at| u16_at(cmap, at) == 4)
            .expect("format 4");
        let (map, code) = (&cmap[at..], c as usize);
        let segments = u16_at(map, 6) / 2;
        let part =
            |list: usize, n: usize| 14 + list * segments * 2 + n * 2 + usize::from(list > 0) * 2;
        let n = (0..segments)
            .find(|&n| u16_at(map, part(0, n)) >= code)
            .expect("segment");
        let (start, delta) = (u16_at(map, part(1, n)), u16_at(map, part(2, n)));
        let offset = u16_at(map, part(3, n));
        assert!(start <= code, "{c:?} is in the font");
        match offset {
            0 => (code + delta) & 0xffff,
            _ => (u16_at(map, part(3, n) + offset + (code - start) * 2) + delta) & 0xffff,
        }
    }

    #[test]
    fn widths_are_the_fonts() {
        assert_eq!(u16_at(table(b"head"), 18), UNITS_AN_EM as usize);
        for c in (' '..='~').chain(['–', 'µ', '·', '…']) {
            let measured = u16_at(table(b"hmtx"), glyph(c) * 4);
            assert_eq!(usize::from(advance(c)), measured, "{c:?}");
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
