//! What is fuzzed here.

use crate::{Expr, Tree, parse, parse_selector, pretty};

/// Any text is an expression whose canonical texts are the same tree, or is refused with a place within the text.
pub fn fuzz_promql(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
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
