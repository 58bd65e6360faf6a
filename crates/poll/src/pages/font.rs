//! The font of MRTG's graphs: X11's `fixed`, 6 by 13 pixels, which is in the public domain.
//!
//! `assets/fixed-6x13.font` has 13 bytes for each character of ASCII and Latin-1 that can be printed: the rows from the top, the leftmost
//! pixel in the highest bit. It was made of 6x13-ISO8859-1 of X.Org's font-misc-misc.

/// Pixels of a character.
pub(super) const WIDTH: i64 = 6;
pub(super) const HEIGHT: i64 = 13;

const GLYPHS: &[u8] = include_bytes!("../../assets/fixed-6x13.font");
const GLYPH_BYTES: usize = 13;
/// Number of characters from the blank to the tilde.
const ASCII: u32 = 95;

/// Pixels of a text from the left to the right.
pub(super) fn width(text: &str) -> i64 {
    text.chars().map(|_| WIDTH).sum()
}

/// Rows of a character's pixels; those of `?` for a character that the font does not have.
pub(super) fn rows(character: char) -> &'static [u8] {
    let place = match u32::from(character) {
        code @ 0x20..=0x7e => code - 0x20,
        code @ 0xa0..=0xff => code - 0xa0 + ASCII,
        _ => u32::from('?') - 0x20,
    };
    let begin = usize::try_from(place).unwrap_or(0) * GLYPH_BYTES;
    &GLYPHS[begin..begin + GLYPH_BYTES]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_has_rows() {
        let shape = |character| {
            let rows = rows(character).iter();
            let rows = rows.map(|row| format!("{:06b}", row >> 2).replace('0', "."));
            rows.collect::<Vec<_>>()
        };
        assert_eq!(
            shape('T')[2..11].join("\n"),
            "11111.\n..1...\n..1...\n..1...\n..1...\n..1...\n..1...\n..1...\n..1..."
        );
        assert_eq!(shape('\u{2603}'), shape('?'));
        assert_ne!(shape('ä'), shape('a'));
        assert_eq!(rows('ÿ').len(), GLYPH_BYTES);
    }
}
