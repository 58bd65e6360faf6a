//! Texts that are no expressions are refused, most of them in Prometheus' words.

use kymo_promql::parse;

use crate::cases::parser_cases;
use crate::go_module;

#[test]
fn errors_of_the_parsers_tests() {
    let Some(module) = go_module::folder() else {
        return;
    };
    let (mut same, mut all) = (0, 0);
    for case in parser_cases(&module) {
        let Some(wanted) = case.error else {
            continue;
        };
        all += 1;
        let Err(error) = parse(&case.text) else {
            panic!("line {}: {} is read, wanted {wanted}", case.line, case.text);
        };
        match error.message == wanted {
            true => same += 1,
            false => eprintln!(
                "{}: {:?}: {:?}, not {wanted:?}",
                case.line, case.text, error.message
            ),
        }
    }
    eprintln!("{same} of {all} errors have the same words");
    assert!(all > 150 && same * 10 > all * 8, "{same} of {all} errors");
}
