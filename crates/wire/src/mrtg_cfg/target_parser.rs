//! Parses the text of a `Target[]` into an expression: three patterns in sequence find the readings; the rest is arithmetic.

use super::expression::{Expression, Formulas};
use super::files::Files;
use super::formula;
use super::readings::{Manner, Readings, Seen, longest_run};
use super::target_text::{Found, TargetMatch, command, interface, pair};
use super::text::{Text, Texts};
use super::trace::{Secrets, Steps, Trace};
use kymo_base::limits::{MRTG_TARGET_BYTES_MAX, MRTG_TARGET_RUN_MAX};

/// Parses targets, and collects their readings and formulas.
pub(super) struct TargetParser<'p> {
    pub(super) readings: &'p mut Readings,
    pub(super) formulas: &'p mut Formulas,
    pub(super) texts: &'p mut Texts,
    pub(super) files: &'p mut dyn Files,
    pub(super) manner: &'p Manner<'p>,
}

/// One of the three patterns: finds the next match at or behind an offset.
type Pattern = for<'t> fn(&'t [u8], usize) -> Option<Found<'t>>;

impl TargetParser<'_> {
    /// Parses a target's text. The error says why the target cannot be polled; the target then adds no readings.
    pub(super) fn parse(
        &mut self,
        text: Text,
        name: Text,
        trace: &mut Trace,
    ) -> Result<Expression, String> {
        let bytes = self.texts.get(text).into_owned();
        if bytes.len() > MRTG_TARGET_BYTES_MAX || longest_run(&bytes) > MRTG_TARGET_RUN_MAX {
            return Err("its text is too long".into());
        }
        let before = self.readings.all.len();
        let parsed = match trace {
            Trace::Off => match self.alone(text, &bytes) {
                Some(parsed) => parsed,
                None => self.passes(&bytes, &mut Steps::new(Secrets::Masked)),
            },
            Trace::On(secrets, _) => {
                let mut steps = Steps::new(*secrets);
                let name = self.texts.get(name).into_owned();
                steps.say(&[b"Starting ", steps.text(&name), b" -> ", steps.text(&bytes)]);
                let parsed = self.passes(&bytes, &mut steps);
                steps.show(parsed.is_ok(), trace);
                parsed
            }
        };
        // With a trace the readings stay, because MRTG, with whose steps it is compared, keeps them.
        if parsed.is_err() && matches!(trace, Trace::Off) {
            self.readings.truncate(before);
        }
        parsed
    }

    /// Parses a text that is a single reading, like those of nearly all targets. `None`: it is not.
    fn alone(&mut self, text: Text, bytes: &[u8]) -> Option<Result<Expression, String>> {
        if memchr::memchr(b'`', bytes).is_some() {
            return None;
        }
        let found = match memchr::memchr(b'&', bytes) {
            Some(_) => pair(bytes, 0)?,
            None => interface(bytes, 0)?,
        };
        let is_whole = found.start == 0 && found.end == bytes.len();
        if !is_whole || found.what == TargetMatch::Neither {
            return None;
        }
        let keep = |texts: &mut Texts| match text.is_joined() {
            true => texts.make(bytes),
            false => text,
        };
        let seen = self.reading(bytes, &found.what, keep);
        Some(seen.map(|seen| Expression::Reading(seen.number())))
    }

    fn reading(
        &mut self,
        text: &[u8],
        what: &TargetMatch,
        keep: impl FnOnce(&mut Texts) -> Text,
    ) -> Result<Seen, String> {
        self.readings
            .reading(text, what, self.manner, self.texts, self.files, keep)
    }

    fn passes(&mut self, text: &[u8], steps: &mut Steps) -> Result<Expression, String> {
        let patterns: [(Pattern, &[u8]); 3] = [
            (command, b"external"),
            (pair, b"complex"),
            (interface, b"simple"),
        ];
        let mut text = text.to_vec();
        let mut readings = Vec::new();
        for (pattern, name) in patterns {
            // No pattern crosses a line end, which only the value of a `[_]` can contain.
            if !text.contains(&b'\n') {
                text = self.pass(&text, pattern, steps, &mut readings)?;
            }
            steps.say(&[b"&targparser ", name, b" done: '", steps.text(&text), b"'"]);
        }
        let first = readings.first().copied();
        let only = first.filter(|first| readings.iter().all(|reading| reading == first));
        let only = only.map_or("-1".to_string(), |only| only.to_string());
        steps.say(&[b"&targparser returning: unique = ", only.as_bytes()]);
        if readings.is_empty() {
            return Err("there is nothing in it that can be read".into());
        }
        formula::parse(&text, self.readings.all.len(), self.formulas)
    }

    /// Replaces each match of a pattern by the number of its reading.
    fn pass(
        &mut self,
        text: &[u8],
        pattern: Pattern,
        steps: &mut Steps,
        readings: &mut Vec<u32>,
    ) -> Result<Vec<u8>, String> {
        let mut out = Vec::with_capacity(text.len());
        let mut from = 0;
        while let Some(found) = pattern(text, from) {
            out.extend_from_slice(&text[from..found.start]);
            from = found.end;
            let whole = &text[found.start..found.end];
            let key = match found.what {
                TargetMatch::Neither => {
                    out.extend_from_slice(whole);
                    continue;
                }
                TargetMatch::Command(inside) => inside,
                _ => whole,
            };
            let seen = self.reading(key, &found.what, |texts| texts.make(key))?;
            steps.found(seen, key, &found.what, self.manner);
            readings.push(seen.number());
            out.extend_from_slice(formula::BEFORE);
            out.extend_from_slice(seen.number().to_string().as_bytes());
            out.extend_from_slice(formula::BEHIND);
        }
        out.extend_from_slice(&text[from..]);
        Ok(out)
    }
}
