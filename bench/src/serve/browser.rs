//! Chromium, driven by `bench/serve/page.mjs` through playwright-core. The script prints its results
//! as lines of words on standard output.

use crate::bench::{Bench, on_path};
use crate::family::Family;
use crate::fault::{Cannot, Fault, Result};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/serve/page.mjs");

pub(super) struct Browser {
    family: Family,
    lines: BufReader<ChildStdout>,
}

impl Browser {
    /// Runs the script's `verb` with `words`; the script has its own time limits.
    pub(super) fn start(bench: &Bench, verb: &str, words: &[String]) -> Result<Browser> {
        let node = on_path("node").ok_or_else(|| Fault::new("node is not here"))?;
        let chromium = on_path("chromium").ok_or_else(|| Fault::new("chromium is not here"))?;
        let web = &bench.web;
        let web = web
            .canonicalize()
            .cannot(format_args!("find {}", web.display()))?;
        if !web.join("node_modules/playwright-core").is_dir() {
            let place = web.display();
            return Err(Fault::new(format!(
                "playwright-core is not in {place} (npm ci)"
            )));
        }
        let mut command = Command::new(node);
        command.arg(Path::new(SCRIPT)).arg(verb).args(words);
        // A killed browser leaves its profiles: here, not in /tmp.
        command
            .env("TMPDIR", bench.new_dir("browser")?)
            .env("WEB", web)
            .env("CHROMIUM", chromium)
            .stdout(Stdio::piped());
        let mut family = Family::start(bench, &mut command)?;
        let pipe = family.stdout();
        let pipe = pipe.ok_or_else(|| Fault::new("the browser's script has no stdout"))?;
        Ok(Browser {
            family,
            lines: BufReader::new(pipe),
        })
    }

    pub(super) fn root(&self) -> u32 {
        self.family.root()
    }

    /// The numbers of the next line, which must begin with `word`.
    pub(super) fn expect(&mut self, word: &str) -> Result<Vec<f64>> {
        let mut line = String::new();
        self.lines
            .read_line(&mut line)
            .cannot("read the browser's script")?;
        let mut words = line.split_whitespace();
        if words.next() != Some(word) {
            let why = match line.trim() {
                "" => self.family.complaint(),
                line => line.to_string(),
            };
            return Err(Fault::because(
                format_args!("get '{word}' from the browser"),
                why,
            ));
        }
        let numbers = words.map(|word| word.parse().cannot(format_args!("understand {word}")));
        let numbers = numbers.collect::<Result<_>>()?;
        self.family.note_groups()?;
        Ok(numbers)
    }

    pub(super) fn end(self) -> Result<()> {
        self.family.end()
    }
}
