//! Causes are words: an error type that keeps an error of the system shows it without its number.

use regex_lite::Regex;

use super::sources;

/// Functions that show an error of the system.
const SHOWN_BY: &[&str] = &["strerror(", "cause_of("];

/// The text of a variant, and its fields: between braces, or between parentheses.
const VARIANT: &str =
    r"(?s)#\[error\((.*?)\)\]\s*(?:///[^\n]*\s*)*\w+\s*(?:\{([^}]*)\}|\(([^)]*)\))";

/// Variants of error types that show an error of the system by itself.
fn with_numbers(text: &str) -> Vec<String> {
    let variant = Regex::new(VARIANT).expect("a pattern");
    let system = Regex::new(r"\b(io::Error|Errno)\b").expect("a pattern");
    let found = variant.captures_iter(text).filter(|found| {
        let fields = found
            .get(2)
            .or(found.get(3))
            .map_or("", |fields| fields.as_str());
        system.is_match(fields) && !SHOWN_BY.iter().any(|name| found[1].contains(name))
    });
    found.map(|found| found[1].to_string()).collect()
}

/// Rust writes "No such file or directory (os error 2)", and `kymo doctor` wrote "errno 13".
#[test]
fn causes_have_no_numbers() {
    let number = Regex::new(r#""[^"\n]*\berrno:? \{"#).expect("a pattern");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for source in sources() {
        let path = source.path.display().to_string();
        count += source.text.matches("#[error(").count();
        let variants = with_numbers(&source.text).into_iter();
        wrong.extend(variants.map(|text| format!("{path}: {text}")));
        let texts = number.find_iter(&source.text);
        wrong.extend(texts.map(|text| format!("{path}: {}", text.as_str())));
    }
    assert!(
        wrong.is_empty(),
        "show causes by kymo_base::errno:\n{}",
        wrong.join("\n")
    );
    assert!(count > 30, "only {count} variants were found");
}

#[test]
fn a_number_is_found() {
    for (text, is_wrong) in [
        ("#[error(\"cannot read: {0}\")]\n    Read(io::Error),", true),
        (
            "#[error(\"cannot read: {}\", strerror(.0))]\n    Read(io::Error),",
            false,
        ),
        (
            "#[error(\"cannot {verb} {path}: {cause}\")]\n    Io {\n        /// The verb.\n        verb: &'static str,\n        cause: Errno,\n    },",
            true,
        ),
        ("#[error(\"it has {0} bytes\")]\n    Size(u64),", false),
    ] {
        assert_eq!(!with_numbers(text).is_empty(), is_wrong, "{text}");
    }
}
