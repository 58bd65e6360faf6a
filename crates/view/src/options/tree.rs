//! What `--export proctree` is asked for: which processes are left out, how deep it goes, and whether a process has what is below it.

use crate::processes::Top;

/// Levels that are shown by default, as by collectl.
const DEPTH: usize = 5;
/// No more, so that a line stays one.
const DEPTH_MAX: usize = 100;

/// `--export proctree[,FIELD][,OPTIONS]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TreeAsked {
    /// The value that decides who is left out.
    pub(crate) field: Top,
    /// `z`: who has not more than `above_kb` of it, or nothing, is.
    pub(crate) skips: bool,
    /// `ZN`
    pub(crate) above_kb: u32,
    /// A process has what all below it have, too. `A`: it has not.
    pub(crate) adds_up: bool,
    /// `k`: I/O in bytes.
    pub(crate) in_bytes: bool,
    /// `T`: no threads, whatever `--procopts` says.
    pub(crate) without_threads: bool,
    /// `dN`
    pub(crate) depth: usize,
}

impl TreeAsked {
    /// Reads the words behind `proctree`. `top` is what `--top` asks for; with it those that have nothing are always left out.
    pub(crate) fn parse(words: &[&str], top: Option<Top>) -> Result<TreeAsked, String> {
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
        // As by collectl: `--top` alone means the time.
        let agree =
            |top: Top| named.is_none_or(|named| [named.name(), "time"].contains(&top.name()));
        if !top.is_none_or(agree) {
            return wrong("--top names another field");
        }
        let mut asked = TreeAsked {
            field: named.or(top).unwrap_or_default(),
            skips: top.is_some(),
            above_kb: 0,
            adds_up: true,
            in_bytes: false,
            without_threads: false,
            depth: DEPTH,
        };
        match asked.take(letters) {
            None => wrong("options are a A dN k T z ZN"),
            Some(()) if asked.above_kb > 0 && !asked.field.is_of_kilobytes() => {
                wrong("Z is for fields of kilobytes")
            }
            Some(()) => Ok(asked),
        }
    }

    /// Takes in options; `None`: there is no such.
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

/// Whether a word has options, not a field's name.
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
            let got = TreeAsked::parse(words, top(order));
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
