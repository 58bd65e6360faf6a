//! Prometheus' parser and this one agree: on all expressions of its files, on texts made of pieces of them, and on
//! expressions grown from the grammar. Run it with `cargo test -p kymo-promql --test prometheus -- --ignored --nocapture`.

use std::collections::BTreeMap;

use kymo_promql::{Expr, ParseError, Span, Tree, parse, pretty};
use serde_json::Value;

use crate::cases::{evaluations, parser_cases, printed_cases};
use crate::oracle::{Answer, ask, build};
use crate::refusals::{is_native_refusal, is_refusal};
use crate::{go_module, grown, pieces};

/// Texts made of pieces, and as many grown from the grammar.
const MADE: usize = 200_000;

#[test]
#[ignore = "builds a Go program, which takes a minute"]
fn both_parsers_agree() {
    let Some(module) = go_module::folder() else {
        return;
    };
    let folder = std::env::temp_dir().join("kymo-promql-oracle");
    let Some(program) = build(&module, &folder) else {
        kymo_sys::skipped::not_fetched("a module of the Go program");
        return;
    };
    let mut texts: Vec<String> = (evaluations(&module).into_iter().map(|each| each.text))
        .chain(parser_cases(&module).into_iter().map(|each| each.text))
        .chain(printed_cases(&module))
        .collect();
    texts.extend(pieces::made(&texts, MADE));
    texts.extend(grown::grown(MADE));
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

/// True for differences that are meant: a plus that changes nothing, flags of expressions that come twice,
/// milliseconds that Go's multiplication by 1e9 loses, and NaN as a duration, which there fails later.
fn is_known(wrong: &str) -> bool {
    let parts = ["+min_of", "+max_of", "+step", "+range", "(?ii", "1001ms"];
    let is_nan = wrong.contains("NaN") && wrong.contains("duration out of range");
    is_nan || parts.iter().any(|part| wrong.contains(part))
}

/// In which answer both differ.
fn difference(text: &str, expr: &Expr, theirs: &Answer) -> Option<String> {
    let shown = expr.to_string();
    let pretty = pretty(expr);
    let tree = json(&Tree::of(expr));
    let spans = spans(expr);
    // Behind an offset in parentheses, what Prometheus takes for the end is that of the next token.
    let is_same = |(ours, theirs): (&(usize, usize), &(usize, usize))| {
        ours == theirs || (ours.0 == theirs.0 && ours.1 < theirs.1 && text.contains("offset"))
    };
    let are_same = spans.len() == theirs.spans.len();
    let are_same = are_same && spans.iter().zip(&theirs.spans).all(is_same);
    match () {
        () if shown != theirs.shown => Some(format!("{shown}, but {}", theirs.shown)),
        () if pretty != theirs.pretty => Some(format!("{pretty}, but {}", theirs.pretty)),
        () if tree != theirs.tree => Some(format!("{tree}, but {}", theirs.tree)),
        () if !are_same => Some(format!("{spans:?}, but {:?}", theirs.spans)),
        () => None,
    }
}

/// Bytes of each node, parents before their children, as Prometheus has them.
fn spans(expr: &Expr) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    put_spans(&mut found, expr);
    found
}

fn put_spans(found: &mut Vec<(usize, usize)>, expr: &Expr) {
    let mut put = |span: Span| found.push((span.start, span.end));
    put(expr.span());
    match expr {
        Expr::Number(_) | Expr::String(_) | Expr::Vector(_) => {}
        Expr::Matrix(matrix) => put(matrix.selector.span),
        Expr::Subquery(subquery) => put_spans(found, &subquery.expr),
        Expr::Unary(unary) => put_spans(found, &unary.expr),
        Expr::Paren(paren) => put_spans(found, &paren.expr),
        Expr::Binary(binary) => {
            put_spans(found, &binary.left);
            put_spans(found, &binary.right);
        }
        Expr::Aggregation(aggregation) => {
            put_spans(found, &aggregation.expr);
            if let Some(parameter) = &aggregation.parameter {
                put_spans(found, parameter);
            }
        }
        Expr::Call(call) => {
            for arg in &call.args {
                put_spans(found, arg);
            }
        }
    }
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
    /// Texts refused in the same words, and at the same place.
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
            Ok(expr) if theirs.message.is_empty() => match difference(text, expr, theirs) {
                None => self.same += 1,
                Some(difference) => self.wrong.push(format!("{text:?}: {difference}")),
            },
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
