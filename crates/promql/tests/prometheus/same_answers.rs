//! Prometheus' parser and this one agree: on all expressions of its files, and on texts made of pieces of them.

use std::collections::BTreeMap;

use kymo_promql::{Expr, ParseError, Tree, parse, pretty};
use serde_json::Value;

use crate::cases::{evaluations, parser_cases, printed_cases};
use crate::oracle::{Answer, ask, build};
use crate::refusals::{is_native_refusal, is_refusal};
use crate::{go_module, pieces};

/// Texts made of pieces.
const MADE: usize = 200_000;

#[test]
#[ignore = "builds a Go program, which takes a minute"]
fn both_parsers_agree() {
    let Some(module) = go_module::folder() else {
        return;
    };
    let folder = std::env::temp_dir().join("kymo-promql-oracle");
    let Some(program) = build(&module, &folder) else {
        eprintln!("skipped: the Go program cannot be built in {folder:?}");
        return;
    };
    let mut texts: Vec<String> = (evaluations(&module).into_iter().map(|each| each.text))
        .chain(parser_cases(&module).into_iter().map(|each| each.text))
        .chain(printed_cases(&module))
        .collect();
    texts.extend(pieces::made(&texts, MADE));
    let mut tally = Tally::default();
    let answers = ask(&program, &texts);
    assert_eq!(answers.len(), texts.len());
    for (text, answer) in texts.iter().zip(&answers) {
        tally.add(text, &parse(text), answer);
    }
    tally.wrong.retain(|wrong| !is_known(wrong));
    tally.show();
    assert!(tally.wrong.is_empty(), "{} differ", tally.wrong.len());
}

/// True for differences that are meant: a plus that changes nothing, flags of expressions that come twice, and
/// milliseconds that Go's multiplication by 1e9 loses.
fn is_known(wrong: &str) -> bool {
    ["+min_of", "+max_of", "+step", "+range", "(?ii", "1001ms"]
        .iter()
        .any(|known| wrong.contains(known))
}

fn json(tree: &Tree) -> Value {
    match tree {
        Tree::Null => Value::Null,
        Tree::Bool(value) => Value::Bool(*value),
        Tree::Number(number) => Value::from(*number),
        Tree::Text(text) => Value::from(text.as_str()),
        Tree::List(list) => list.iter().map(json).collect(),
        Tree::Object(fields) => (fields.iter())
            .map(|(name, value)| (name.to_string(), json(value)))
            .collect(),
    }
}

#[derive(Default)]
struct Tally {
    /// Expressions of both, with the same texts and bytes.
    same: usize,
    /// Refused by both.
    refused: usize,
    /// Those refused in the same words, and at the same place.
    same_words: usize,
    same_place: usize,
    /// Refused by name here.
    refused_by_name: usize,
    /// Other differences.
    wrong: Vec<String>,
    /// Words that differ, and how often.
    words: BTreeMap<String, (usize, String)>,
}

impl Tally {
    fn add(&mut self, text: &str, ours: &Result<Expr, ParseError>, theirs: &Answer) {
        match ours {
            Ok(expr) if theirs.message.is_empty() => {
                let span = expr.span();
                let mut place = (span.start, span.end);
                // Here the word is a part of what it changes, there it is not.
                let last = text.split_whitespace().last().unwrap_or_default();
                if last.ends_with("anchored") || last.ends_with("smoothed") {
                    place.1 = theirs.place.1;
                }
                let tree = json(&Tree::of(expr));
                let found = (expr.to_string(), pretty(expr), place, &tree);
                let (shown, pretty) = (theirs.shown.clone(), theirs.pretty.clone());
                let wanted = (shown, pretty, theirs.place, &theirs.tree);
                match found == wanted {
                    true => self.same += 1,
                    false => self
                        .wrong
                        .push(format!("{text:?}\n  {found:?}\n  {wanted:?}")),
                }
            }
            Ok(expr) => {
                let message = &theirs.message;
                self.wrong.push(format!("{text:?}: {expr}, but {message}"));
            }
            Err(error) if is_refusal(&error.message) => {
                self.refused_by_name += 1;
                if theirs.message.is_empty() && !is_native_refusal(&error.message) {
                    self.wrong.push(format!("{text:?}: {error}"));
                }
            }
            Err(error) if theirs.message.is_empty() => {
                let shown = &theirs.shown;
                self.wrong.push(format!("{text:?}: {error}, but {shown}"));
            }
            Err(error) => {
                self.refused += 1;
                self.same_words += usize::from(error.message == theirs.message);
                self.same_place += usize::from(error.span.start == theirs.place.0);
                if error.message != theirs.message {
                    let words = format!("{}, but {}", error.message, theirs.message);
                    let entry = self.words.entry(words).or_default();
                    *entry = (entry.0 + 1, text.to_string());
                }
            }
        }
    }

    fn show(&self) {
        for wrong in self.wrong.iter().take(60) {
            eprintln!("{wrong}");
        }
        let mut words: Vec<_> = self.words.iter().collect();
        words.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (words, (count, text)) in words.iter().take(60) {
            eprintln!("{count} times {words}: {text:?}");
        }
        eprintln!(
            "{} expressions are the same; {} texts are refused by both, {} in the same words, {} at the same place; {} are refused by name here",
            self.same, self.refused, self.same_words, self.same_place, self.refused_by_name
        );
    }
}
