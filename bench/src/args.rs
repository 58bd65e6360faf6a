//! Command-line words, taken out one switch
//! at a time; a remaining word is an error.

use crate::fault::{Cannot, Fault, Result};
use std::str::FromStr;

pub(crate) struct Args {
    words: Vec<String>,
}

impl Args {
    pub(crate) fn new(words: Vec<String>) -> Self {
        Args { words }
    }

    /// Takes the switch `name`; true if it was there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    /// Takes `name VALUE`, parsed.
    pub(crate) fn value<T: FromStr>(&mut self, name: &str) -> Result<Option<T>>
    where
        T::Err: std::fmt::Display,
    {
        let Some(at) = self.words.iter().position(|word| word == name) else {
            return Ok(None);
        };
        if at + 1 >= self.words.len() {
            return Err(Fault::new(format!("{name} needs a value")));
        }
        let word = self.words.remove(at + 1);
        self.words.remove(at);
        let value = word
            .parse()
            .cannot(format_args!("understand {name} {word}"))?;
        Ok(Some(value))
    }

    /// An error if a word is left over.
    pub(crate) fn done(self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(Fault::new(format!("unknown switch: {word}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args::new(line.split_whitespace().map(String::from).collect())
    }

    #[test]
    fn switches_are_taken_and_the_rest_is_named() {
        let mut a = args("--quick -c 12 --only x");
        assert!(a.flag("--quick"));
        assert!(!a.flag("--quick"));
        assert_eq!(a.value::<u32>("-c").unwrap(), Some(12));
        assert_eq!(a.value::<u32>("-i").unwrap(), None);
        let left = a.done().unwrap_err().to_string();
        assert_eq!(left, "unknown switch: --only");
    }

    #[test]
    fn bad_values_are_one_clear_line() {
        for (line, want) in [
            ("-c", "-c needs a value"),
            (
                "-c x",
                "cannot understand -c x: invalid digit found in string",
            ),
        ] {
            let fault = args(line).value::<u32>("-c").unwrap_err();
            assert_eq!(fault.to_string(), want);
        }
    }
}
