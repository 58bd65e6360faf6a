//! Colours of a target.

/// `#rrggbb` at the beginning of a text.
pub(super) fn colour(text: &[u8]) -> Option<[u8; 3]> {
    let digits = text.strip_prefix(b"#")?.get(..6)?;
    let mut rgb = [0; 3];
    for (part, two) in rgb.iter_mut().zip(digits.chunks_exact(2)) {
        if !two.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        *part = u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()?;
    }
    Some(rgb)
}

/// Parses the first `count` of `Name#rrggbb, ...`, or `None`.
pub(super) fn colours(text: &[u8], count: usize) -> Option<Vec<(Vec<u8>, [u8; 3])>> {
    let mut found = Vec::new();
    let mut rest = text;
    while found.len() < count {
        let mark = memchr::memchr(b'#', rest).filter(|mark| *mark > 0)?;
        found.push((rest[..mark].to_vec(), colour(&rest[mark..])?));
        rest = &rest[mark + 7..];
        if found.len() < count {
            rest = super::lines::trim_start(rest).strip_prefix(b",")?;
            rest = super::lines::trim_start(rest);
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_have_names() {
        let four = b"GREEN#00cc00,BLUE#0000FF , DARK GREEN#006600,M#ff00ff and more";
        let found = colours(four, 4).unwrap();
        assert_eq!(found[1], (b"BLUE".to_vec(), [0, 0, 255]));
        assert_eq!(found[2].0, b"DARK GREEN");
        assert_eq!(colours(four, 5), None);
        for text in [&b"#00cc00"[..], b"A#00cc0", b"A#00cc0g", b"", b"A"] {
            assert_eq!(colours(text, 1), None, "{}", text.escape_ascii());
        }
    }
}
