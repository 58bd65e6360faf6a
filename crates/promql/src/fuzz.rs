//! The fuzz function of the parser and of the printers.

pub use crate::eval::fuzz::fuzz_evaluation;
use crate::{Expr, Tree, parse, parse_selector, pretty};

/// Words that bytes stand for: of what expressions consist.
const WORDS: &str = "x y:z rate( sum( by( on( group_left( offset step() range() min_of( , ) ( [ ] { } 5m 1h30m 2 0x1f \
    0.5 1e3 Inf NaN + - * / % ^ == != < <= > >= = =~ !~ : @ start() end() and or unless atan2 bool ignoring( without( \
    topk( count_values( 'a' \"b\\n\" `c` {a=\"b\"} [5m] [1h:5m] label_join( time() vector( anchored smoothed sum offset \
    'ä.b' a group_right quantile( histogram_quantile( scalar( </ fill( # a_b 0 -1 1ms 10y \\";

/// Any text is an expression whose canonical texts are the same tree, or is refused with a place within the text. So is
/// any text of words.
pub fn fuzz_promql(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        check_text(text);
    }
    check_text(&spelled(input));
}

/// Any text, and any text of words, is refused or has a value at each moment.
pub fn fuzz_promql_values(input: &[u8]) {
    fuzz_evaluation(input);
    fuzz_evaluation(spelled(input).as_bytes());
}

/// The text of words that bytes stand for.
fn spelled(input: &[u8]) -> String {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    // A byte with the high bit stands for a word without a blank behind it.
    (input.iter())
        .flat_map(|byte| {
            let word = words.get(usize::from(byte & 0x7f) % words.len());
            let blank = if byte & 0x80 == 0 { " " } else { "" };
            [word.copied().unwrap_or_default(), blank]
        })
        .collect()
}

fn check_text(text: &str) {
    match parse(text) {
        Ok(expr) => check_texts(&expr),
        Err(error) => {
            let span = error.span;
            let is_within = span.start <= span.end && span.end <= text.len();
            assert!(is_within, "{error}: {span:?} is not within the text");
        }
    }
    if let Ok(selector) = parse_selector(text) {
        check_texts(&Expr::Vector(selector));
    }
}

/// Panics if a canonical text of an expression reads back as another one.
pub fn check_texts(expr: &Expr) {
    let shown = expr.to_string();
    for text in [shown.clone(), pretty(expr)] {
        let again = match parse(&text) {
            Ok(again) => again,
            // Indentation may make a text too long.
            Err(_) if text.len() > crate::TEXT_MAX => continue,
            Err(error) => panic!("{text} does not read back: {error}"),
        };
        assert_eq!(ordered(Tree::of(&again)), ordered(Tree::of(expr)), "{text}");
        assert_eq!(again.to_string(), shown, "{text}");
    }
}

/// A tree whose matchers are sorted, as texts have them.
fn ordered(tree: Tree) -> Tree {
    match tree {
        Tree::List(list) => Tree::List(list.into_iter().map(ordered).collect()),
        Tree::Object(fields) => Tree::Object(
            (fields.into_iter())
                .map(|(name, value)| match (name, ordered(value)) {
                    ("matchers", Tree::List(mut list)) => {
                        list.sort_by_cached_key(|matcher| format!("{matcher:?}"));
                        (name, Tree::List(list))
                    }
                    (name, value) => (name, value),
                })
                .collect(),
        ),
        leaf @ (Tree::Null | Tree::Bool(_) | Tree::Number(_) | Tree::Text(_)) => leaf,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_words_have_values() {
        let mut state = 1_u64;
        for length in 0..40_000 {
            let mut input = [0; 14];
            for byte in &mut input {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                *byte = state.to_le_bytes()[2];
            }
            fuzz_promql_values(&input[..length % 14]);
        }
    }
}
