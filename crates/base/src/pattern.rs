//! Patterns for names: `*` is any text, `?` any byte.

/// True if a name fits a pattern.
pub fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // The last `*` and the text it stood for: no other `*` must ever be tried again.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == b'?' || pattern[p] == name[n]) {
            p += 1;
            n += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            p = at + 1;
            n = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, fit) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcb", false),
            ("*b*b", "abab", true),
            ("?", "", false),
            ("web?", "web1", true),
            ("web?", "web12", false),
        ] {
            assert_eq!(
                fits(pattern.as_bytes(), name.as_bytes()),
                fit,
                "{pattern} {name}"
            );
        }
    }
}
