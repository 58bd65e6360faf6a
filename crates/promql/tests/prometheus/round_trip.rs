//! Every expression is read, and its canonical text is the same tree.

use kymo_promql::fuzz::check_texts;
use kymo_promql::parse;

use crate::cases::{evaluations, parser_cases, printed_cases};
use crate::go_module;
use crate::refusals::is_refusal;

#[test]
fn expressions_of_the_test_files() {
    let Some(module) = go_module::folder() else {
        return;
    };
    let (mut read, mut refused) = (0, 0);
    for case in evaluations(&module) {
        match parse(&case.text) {
            Ok(expr) => {
                check_texts(&expr);
                read += 1;
            }
            Err(error) if is_refusal(&error.message) => refused += 1,
            Err(error) => assert!(case.may_fail, "{}: {}: {error}", case.place, case.text),
        }
    }
    eprintln!("{read} expressions of the test files are read, {refused} are refused by name");
    assert!(read > 1800, "{read} expressions");
}

#[test]
fn expressions_of_the_parsers_tests() {
    let Some(module) = go_module::folder() else {
        return;
    };
    let mut read = 0;
    let cases = parser_cases(&module);
    let good = cases.into_iter().filter(|case| case.error.is_none());
    let printed = printed_cases(&module).into_iter().map(|text| (0, text));
    for (line, text) in good.map(|case| (case.line, case.text)).chain(printed) {
        match parse(&text) {
            Ok(expr) => {
                check_texts(&expr);
                read += 1;
            }
            Err(error) => assert!(is_refusal(&error.message), "line {line}: {text}: {error}"),
        }
    }
    eprintln!("{read} expressions of the parser's tests are read");
    assert!(read > 300, "{read} expressions");
}
