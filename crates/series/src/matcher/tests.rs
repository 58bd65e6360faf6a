use super::*;

/// Expressions, values, and the results of Go's `regexp`; `re2.go` makes the table and says how.
const TABLE: &str = include_str!("re2.txt");

fn unquoted(text: &str) -> String {
    let selector = crate::Selector::parse(&format!("{{a=\"x\",b={text}}}"));
    selector.unwrap().0[1].value().to_string()
}

#[test]
fn expressions_match_as_in_prometheus() {
    let mut count = 0;
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (expression, value, outcome) = (unquoted(fields[0]), unquoted(fields[1]), fields[2]);
        let matcher = Matcher::new("a", Op::Matches, &expression);
        let found = match &matcher {
            Err(_) => "error",
            Ok(matcher) if matcher.matches(value.as_bytes()) => "yes",
            Ok(_) => "no",
        };
        assert_eq!(found, outcome, "{expression:?} on {value:?}: {matcher:?}");
        count += 1;
    }
    assert!(count > 300, "{count} lines");
}

#[test]
fn operators_compare() {
    for (op, value, picked) in [
        (Op::Equal, "a", "a"),
        (Op::NotEqual, "a", "b c "),
        (Op::Matches, "a|b", "a b"),
        (Op::NotMatches, "a|b", "c "),
        (Op::Equal, "", ""),
        (Op::Matches, ".+", "a b c"),
        (Op::Matches, "[ab]?", "a b "),
    ] {
        let matcher = Matcher::new("l", op, value).unwrap();
        let values = ["a", "b", "c", ""].into_iter();
        let values: Vec<&str> = values.filter(|v| matcher.matches(v.as_bytes())).collect();
        assert_eq!(values.join(" "), picked, "{matcher}");
        let text = format!("l{}\"{value}\"", op.text());
        assert_eq!(matcher.to_string(), text);
    }
}

#[test]
fn expressions_have_limits() {
    let long = "a".repeat(EXPRESSION_MAX + 1);
    let nested = format!("{}a{}", "(".repeat(500), ")".repeat(500));
    for text in [&*long, &nested, "(a{1000}){1000}", "((\\pL{200}){9}){9}"] {
        assert!(Matcher::new("a", Op::Matches, text).is_err());
    }
    assert!(Matcher::new("1a", Op::Equal, "").is_err());
    let hosts: Vec<String> = (0..3000).map(|at| format!("web{at}")).collect();
    let many = Matcher::new("a", Op::Matches, &hosts.join("|")).unwrap();
    assert!(many.matches(b"web2999") && !many.matches(b"web3000"));
    assert_eq!(many.only().map(<[_]>::len), Some(3000));
}

#[test]
fn a_matcher_may_be_of_a_label_that_no_series_has() {
    assert!(Matcher::new("a.b", Op::Equal, "x").is_err());
    let matcher = Matcher::of_any_label("a.b", Op::NotEqual, "x").unwrap();
    assert_eq!(matcher.to_string(), r#""a.b"!="x""#);
    assert!(matcher.matches_empty());
    assert!(Matcher::of_any_label("a.b", Op::Matches, "(").is_err());
}

#[test]
fn groups_of_an_expression_keep_their_numbers() {
    let found = |expression: &str, value: &str| {
        let regex = anchored_regex(expression).unwrap();
        let groups = regex.captures(value.as_bytes()).unwrap();
        let text = |at| {
            groups
                .get(at)
                .map_or("", |found| str::from_utf8(found.as_bytes()).unwrap())
        };
        [text(1).to_string(), text(2).to_string()]
    };
    // Go takes names that begin with a digit, and names that come twice.
    for expression in [
        "(a+)-(b+)",
        "(?P<x>a+)-(?<y>b+)",
        "(?P<1x>a+)-(b+)",
        "(?P<x>a+)-(?P<x>b+)",
    ] {
        assert_eq!(found(expression, "aa-b"), ["aa", "b"], "{expression}");
    }
    assert!(anchored_regex("(").is_err());
    assert!(anchored_regex(&"x".repeat(EXPRESSION_MAX + 1)).is_err());
}
