//! Settings of `--export proctree`: processes to leave out, depth of the tree, and whether a process includes its descendants.

use crate::processes::Top;

/// Default depth, as in collectl.
const DEPTH: usize = 5;
/// Most levels, so that a line does not wrap.
const DEPTH_MAX: usize = 100;

/// `--export proctree[,FIELD][,OPTIONS]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TreeOptions {
    /// The value that decides which processes are left out.
    pub(crate) field: Top,
    /// `z`: leaves out processes whose value is not above `above_kb`.
    pub(crate) skips: bool,
    /// `ZN`: limit in KiB.
    pub(crate) above_kb: u32,
    /// True if a process includes the values of its descendants; `A` turns this off.
    pub(crate) adds_up: bool,
    /// `k`: shows I/O in bytes.
    pub(crate) in_bytes: bool,
    /// `T`: hides threads, even with `--procopts t`.
    pub(crate) without_threads: bool,
    /// `dN`: depth.
    pub(crate) depth: usize,
}

impl TreeOptions {
    /// Parses the words behind `proctree`. `top` is the value of `--top`; with it, processes with a value of 0 are left out.
    pub(crate) fn parse(words: &[&str], top: Option<Top>) -> Result<TreeOptions, String> {
        let wrong = |cause: &str| {
            let text: String = words.iter().map(|word| format!(",{word}")).collect();
            Err(format!(
                "cannot use --export proctree{}: {cause}",
                text.escape_debug()
            ))
        };
        let (field, letters) = match words {
            [] => (None, ""),
            [word] if is_letters(word) => (None, *word),
            [field] => (Some(*field), ""),
            [field, letters] => (Some(*field), *letters),
            _ => return wrong("at most a field and options may follow"),
        };
        let named = match field.unwrap_or_default() {
            "" => None,
            name => Top::fields().find(|field| field.name() == name),
        };
        if field.is_some_and(|field| !field.is_empty()) && named.is_none() {
            return wrong(&format!(
                "no such field; there are {}",
                Top::orders().join(" ")
            ));
        }
        // As in collectl, `--top` alone means the time.
        let agree =
            |top: Top| named.is_none_or(|named| [named.name(), "time"].contains(&top.name()));
        if !top.is_none_or(agree) {
            return wrong("--top names another field");
        }
        let mut settings = TreeOptions {
            field: named.or(top).unwrap_or_default(),
            skips: top.is_some(),
            above_kb: 0,
            adds_up: true,
            in_bytes: false,
            without_threads: false,
            depth: DEPTH,
        };
        match settings.take(letters) {
            None => wrong("options are a A dN k T z ZN"),
            Some(()) if settings.above_kb > 0 && !settings.field.is_of_kilobytes() => {
                wrong("Z is for fields of kilobytes")
            }
            Some(()) => Ok(settings),
        }
    }

    /// Sets options; `None`: a letter is unknown.
    fn take(&mut self, letters: &str) -> Option<()> {
        let mut rest = letters;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, behind) = rest.split_at(digits);
            rest = behind;
            match (letter, number) {
                ('a', "") => self.adds_up = true,
                ('A', "") => self.adds_up = false,
                ('k', "") => self.in_bytes = true,
                ('T', "") => self.without_threads = true,
                ('z', "") => self.skips = true,
                ('d', _) => {
                    let depth = number.parse().ok();
                    self.depth = depth.filter(|n| (1..=DEPTH_MAX).contains(n))?;
                }
                ('Z', _) => (self.above_kb, self.skips) = (number.parse().ok()?, true),
                _ => return None,
            }
        }
        Some(())
    }
}

/// True if a word consists of option letters, and is not a field's name.
fn is_letters(word: &str) -> bool {
    word.chars()
        .all(|c| "aAdkTzZ".contains(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let top = |text: &str| (!text.is_empty()).then(|| Top::parse(text, 10).expect("an order"));
        for (words, order, expect) in [
            (&[][..], "", Ok(("time", false, 0, 5))),
            (&["iokb"], "", Ok(("iokb", false, 0, 5))),
            (&["z"], "", Ok(("time", true, 0, 5))),
            (&["d9kz"], "", Ok(("time", true, 0, 9))),
            (&["", "d2"], "", Ok(("time", false, 0, 2))),
            (&["iokb", "Z20d3"], "", Ok(("iokb", true, 20, 3))),
            (&["A"], "rss,5", Ok(("rss", true, 0, 5))),
            (&["Z1"], "wkb", Ok(("wkb", true, 1, 5))),
            (&["iokb"], "time", Ok(("iokb", true, 0, 5))),
            (&["iokb"], "rss", Err("--top names another field")),
            (&["best"], "", Err("no such field; there are time")),
            (&["5"], "", Err("options are")),
            (&["d"], "", Err("options are")),
            (&["d0"], "", Err("options are")),
            (&["d101"], "", Err("options are")),
            (&["d99999999999999999999"], "", Err("options are")),
            (&["time", "q"], "", Err("options are")),
            (&["time", "Z9"], "", Err("Z is for fields of kilobytes")),
            (&["time", "z", "k"], "", Err("a field and options")),
        ] {
            let got = TreeOptions::parse(words, top(order));
            match (got, expect) {
                (Ok(got), expect) => assert_eq!(
                    Ok((got.field.name(), got.skips, got.above_kb, got.depth)),
                    expect,
                    "{words:?}"
                ),
                (Err(error), Err(cause)) => assert!(
                    error.starts_with("cannot use --export proctree") && error.contains(cause),
                    "{error}"
                ),
                (Err(error), Ok(_)) => panic!("{words:?}: {error}"),
            }
        }
    }
}
