//! Tests of the parser: tables of texts.

use crate::ast::{At, Edges, Expr, Grouping, Span, ValueType};
use crate::duration::{Duration, QueryTimes};
use crate::{LEVELS_MAX, ParseError, TEXT_MAX, Tree, parse, parse_selector, pretty};

/// An expression with parentheses around each operation.
fn grouped(expr: &Expr) -> String {
    match expr {
        Expr::Binary(binary) => {
            let (left, right) = (grouped(&binary.left), grouped(&binary.right));
            format!("({left} {} {right})", binary.op.text())
        }
        Expr::Unary(unary) => format!("({}{})", unary.op.text(), grouped(&unary.expr)),
        Expr::Paren(paren) => grouped(&paren.expr),
        other => other.to_string(),
    }
}

fn fault(text: &str) -> ParseError {
    match parse(text) {
        Ok(expr) => panic!("{text} is read as {expr}"),
        Err(error) => error,
    }
}

#[test]
fn operators_bind_by_precedence() {
    for (text, wanted) in [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a ^ b ^ c", "(a ^ (b ^ c))"),
        ("-a ^ b", "(-(a ^ b))"),
        ("-a * b", "((-a) * b)"),
        ("a ^ -b * c", "((a ^ (-b)) * c)"),
        ("- - a", "(-(-a))"),
        ("-1 ^ 2", "(-(1 ^ 2))"),
        ("-1 * a", "(-1 * a)"),
        ("a or b and c", "(a or (b and c))"),
        ("a and b unless c", "((a and b) unless c)"),
        ("a == b + c", "(a == (b + c))"),
        ("a > b < c", "((a > b) < c)"),
        ("a % b atan2 c", "((a % b) atan2 c)"),
        ("(a + b) * c", "((a + b) * c)"),
        ("-a[5m:] offset 1m", "(-a[5m:] offset 1m)"),
    ] {
        let Ok(expr) = crate::parser::read(text, super::Parser::whole) else {
            panic!("{text}");
        };
        assert_eq!(grouped(&expr), wanted, "{text}");
    }
}

#[test]
fn words_are_names_where_they_can_be() {
    for text in [
        "sum",
        "sum + avg",
        "or or or",
        "offset offset 5m",
        "by",
        "start + end",
        "sum(step) by (range, on, bool, offset, and)",
        "SUM BY (Job) (x) UNLESS ON (a) y",
        "fill + fill_left",
        "anchored anchored",
        "node:cpu:rate5m",
        "{sum=\"avg\", on!=\"by\"}",
        ":x",
    ] {
        let expr = parse(text).unwrap();
        assert_eq!(expr.value_type(), ValueType::Vector, "{text}");
    }
    for text in [
        "bool",
        "on",
        "group_left",
        "ignoring",
        "atan2",
        "sum(x) by (without)",
        "a:b(c)",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn texts_have_a_canonical_form() {
    for (text, wanted) in [
        ("0x1F + 1_000 + .5e-3", "31 + 1000 + 0.0005"),
        ("0755", "493"),
        ("089", "89"),
        ("-Inf", "-Inf"),
        ("+inf", "+Inf"),
        ("nan", "NaN"),
        ("1h30m", "1h30m"),
        ("90d", "90d"),
        ("14d", "2w"),
        ("-1m", "-1m"),
        ("5027138301s", "58184d11h18m21s"),
        ("x[300]", "x[5m]"),
        ("x[1.5]", "x[1s500ms]"),
        ("x[4.018]", "x[4s18ms]"),
        ("x[5m:]", "x[5m:]"),
        ("x[1h:30]", "x[1h:30s]"),
        ("x offset -1.5", "x offset -1s500ms"),
        ("x @ 1.5 offset 1m", "x @ 1.500 offset 1m"),
        ("x offset 1m @ -0.001", "x @ -0.001 offset 1m"),
        ("x[1m] @ start()", "x[1m] @ start()"),
        ("x @ end()", "x @ end()"),
        ("x{b='1',a=~`\\d`,}", "x{a=~\"\\\\d\",b=\"1\"}"),
        ("{__name__='x'}", "{__name__=\"x\"}"),
        ("{'a b', 'c d'='e'}", "{\"c d\"=\"e\",__name__=\"a b\"}"),
        ("sum(x) by (a, 'b c',)", "sum by (a, \"b c\") (x)"),
        ("sum(x) without ()", "sum without () (x)"),
        ("sum by () (x)", "sum(x)"),
        ("topk(5, x) by (a)", "topk by (a) (5, x)"),
        (
            "x == bool on(a) group_left y",
            "x == bool on (a) group_left () y",
        ),
        ("x * ignoring() y", "x * y"),
        ("\"a\\n\\u00e4\\x41\\101\"", "\"a\\näAA\""),
        ("'it\\'s'", "\"it's\""),
        ("x # a comment\n + # another\r y", "x + y"),
        ("x[5m * 2 + step()]", "x[5m * 2 + step()]"),
        ("x[(5m)]", "x[(5m)]"),
        ("x offset -(step())", "x offset -(step())"),
        (
            "x offset min_of(step(), 1m) + 1",
            "x offset min_of(step(), 1m) + 1",
        ),
        ("x[5m] smoothed offset 1m", "x[5m] smoothed offset 1m"),
        ("rate ( x [ 5m ] )", "rate(x[5m])"),
    ] {
        let expr = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(expr.to_string(), wanted, "{text}");
        assert_eq!(parse(wanted).unwrap().to_string(), wanted, "{text}");
    }
}

#[test]
fn nodes_know_their_bytes() {
    let Expr::Binary(sum) = parse(" sum (rate(x{a='b'}[5m] offset 1m)) by (a)  + -2").unwrap()
    else {
        panic!("no sum");
    };
    let spans = |start, end| Span { start, end };
    assert_eq!(sum.span, spans(1, 48));
    assert_eq!(sum.right.span(), spans(46, 48));
    let Expr::Aggregation(aggregation) = &sum.left else {
        panic!("no aggregation");
    };
    assert_eq!(aggregation.span, spans(1, 42));
    assert_eq!(aggregation.grouping, Grouping::By(vec!["a".into()]));
    let Expr::Call(call) = &aggregation.expr else {
        panic!("no call");
    };
    assert_eq!(call.span, spans(6, 34));
    let Some(Expr::Matrix(matrix)) = call.args.first() else {
        panic!("no range");
    };
    assert_eq!(
        (matrix.span, matrix.selector.span),
        (spans(11, 33), spans(11, 19))
    );
    assert_eq!(matrix.range, Duration::Fixed(300_000));
    assert_eq!(matrix.selector.offset, Duration::Fixed(60_000));
}

#[test]
fn selectors_have_their_modifiers() {
    let selector = parse_selector("up{job=\"a\"}").unwrap();
    assert_eq!(selector.name.as_deref(), Some("up"));
    assert_eq!((selector.at, selector.edges), (None, Edges::Plain));
    let Expr::Vector(selector) = parse("up @ 1603774568.123 anchored").unwrap() else {
        panic!("no selector");
    };
    assert_eq!(selector.at, Some(At::Time(1_603_774_568_123)));
    assert_eq!(selector.edges, Edges::Anchored);
    for text in [
        "up[5m]",
        "up + up",
        "{}",
        "1",
        "up offset 5m",
        "",
        "rate(x[5m])",
    ] {
        assert!(parse_selector(text).is_err(), "{text}");
    }
}

#[test]
fn labels_that_no_kept_series_has_pick_by_absence() {
    for (text, wanted) in [
        ("x{a='1'}", Some(2)),
        ("{'x y', 'a.b'=''}", Some(1)),
        ("x{'a.b'!='1'}", Some(1)),
        ("x{'a.b'='1'}", None),
        ("x{'a.b'=~'.+'}", None),
    ] {
        let Expr::Vector(selector) = parse(text).unwrap() else {
            panic!("{text}");
        };
        let kept = selector.kept_matchers().map(|matchers| matchers.len());
        assert_eq!(kept, wanted, "{text}");
    }
}

#[test]
fn computed_durations_follow_the_query() {
    let times = QueryTimes {
        step_ms: 15_000,
        range_ms: 3_600_000,
    };
    for (text, wanted) in [
        ("step()", Ok(15_000)),
        ("range() / 2", Ok(1_800_000)),
        ("step() * 2 + 1", Ok(31_000)),
        ("2 ^ 3 ^ 1 - -1", Ok(9_000)),
        ("max_of(step(), 1m)", Ok(60_000)),
        ("min_of(step(), 1m)", Ok(15_000)),
        ("(1m + 7) % 4", Ok(3_000)),
        ("0.0015 * 1", Ok(1)),
        ("-step()", Err("duration must be greater than 0")),
        ("step() / (1 - 1)", Err("division by zero")),
        ("step() % (1 - 1)", Err("modulo by zero")),
        ("(0 - 1) ^ 0.5", Err("duration is NaN or infinite")),
        (
            "min_of((0 - 1) ^ 0.5, 1)",
            Err("duration is NaN or infinite"),
        ),
        ("1e9 * 1e9", Err("duration is out of range")),
    ] {
        let Expr::Matrix(matrix) = parse(&format!("x[{text}]")).unwrap() else {
            panic!("{text}");
        };
        let found = matrix.range.length_ms(times).map_err(|error| error.message);
        assert_eq!(found, wanted, "{text}");
    }
    let Expr::Vector(selector) = parse("x offset -step()").unwrap() else {
        panic!("no selector");
    };
    assert_eq!(selector.offset.offset_ms(times), Ok(-15_000));
}

#[test]
fn wrong_texts_are_refused_with_their_place() {
    for (text, wanted) in [
        (
            "",
            "unknown position: parse error: no expression found in input",
        ),
        ("\n #", "1:1: parse error: no expression found in input"),
        ("1 +", "1:4: parse error: unexpected end of input"),
        (
            "a\n + )",
            "2:4: parse error: unexpected right parenthesis ')'",
        ),
        ("(a", "1:3: parse error: unclosed left parenthesis"),
        (
            "x{a}",
            "1:4: parse error: unexpected \"}\" in label matching, expected label matching operator",
        ),
        (
            "x{a=\"b\"",
            "1:8: parse error: unexpected end of input inside braces",
        ),
        (
            "x[5mm]",
            "1:3: parse error: bad number or duration syntax: \"5mm\"",
        ),
        (
            "x[5m1h]",
            "1:3: parse error: not a valid duration string: \"5m1h\"",
        ),
        ("x[300y]", "1:3: parse error: duration out of range"),
        ("x[0]", "1:3: parse error: duration must be greater than 0"),
        (
            "1 == 1",
            "1:3: parse error: comparisons between scalars must use BOOL modifier",
        ),
        (
            "a + bool b",
            "1:3: parse error: bool modifier can only be used on comparison operators",
        ),
        (
            "1 and a",
            "1:1: parse error: set operator \"and\" not allowed in binary scalar expression",
        ),
        (
            "a and on(b) group_left c",
            "1:1: parse error: no grouping allowed for \"and\" operation",
        ),
        (
            "rate(a)",
            "1:6: parse error: expected type range vector in call to function \"rate\", got instant vector",
        ),
        (
            "rate()",
            "1:1: parse error: expected 1 argument(s) in call to \"rate\", got 0",
        ),
        (
            "round(a, 1, 2)",
            "1:1: parse error: expected at most 2 argument(s) in call to \"round\", got 3",
        ),
        (
            "label_join(a, \"b\")",
            "1:1: parse error: expected at least 3 argument(s) in call to \"label_join\", got 2",
        ),
        (
            "topk(a)",
            "1:1: parse error: wrong number of arguments for aggregate expression provided, expected 2, got 1",
        ),
        (
            "count_values(1, a)",
            "1:14: parse error: expected type string in aggregation parameter, got scalar",
        ),
        (
            "nothing(a)",
            "1:1: parse error: unknown function with name \"nothing\"",
        ),
        (
            "{a=~\".*\"}",
            "1:1: parse error: vector selector must contain at least one non-empty matcher",
        ),
        (
            "x{__name__=\"y\"}",
            "1:1: parse error: metric name must not be set twice: \"x\" or \"y\"",
        ),
        (
            "\"\\q\"",
            "1:1: parse error: unknown escape sequence U+0071 'q'",
        ),
        (
            "\"\\xff\"",
            "1:1: parse error: string \"\\xff\" is not UTF-8",
        ),
        (
            "a @ inf",
            "1:1: parse error: timestamp out of bounds for @ modifier: +Inf",
        ),
    ] {
        assert_eq!(fault(text).to_string(), wanted, "{text}");
    }
}

#[test]
fn what_kymo_has_not_is_refused_by_name() {
    for (text, wanted) in [
        (
            "info(x)",
            "function \"info\" is not enabled: it is experimental",
        ),
        (
            "limitk(1, x)",
            "function \"limitk\" is not enabled: it is experimental",
        ),
        (
            "start()",
            "function \"start\" is not enabled: it is experimental",
        ),
        (
            "mad_over_time(x[5m])",
            "function \"mad_over_time\" is not enabled: it is experimental",
        ),
        (
            "histogram_sum(x)",
            "function \"histogram_sum\" is of native histograms, which are not kept here",
        ),
        (
            "x </ 5",
            "operators </ and >/ trim native histograms, which are not kept here",
        ),
        (
            "x + fill(0) y",
            "binop fill modifiers are experimental and not enabled",
        ),
    ] {
        assert_eq!(fault(text).message, wanted, "{text}");
    }
}

#[test]
fn deep_and_long_texts_are_refused() {
    let many = 100_000;
    for text in [
        "(".repeat(many),
        format!("{}a{}", "(".repeat(many), ")".repeat(many)),
        "-".repeat(many),
        "a+".repeat(many),
        format!("a{}", "+a".repeat(many)),
        format!("a{}", "[1:]".repeat(many / 2)),
        format!("a{}", "^a".repeat(many)),
        "abs(".repeat(many / 2),
        "sum(".repeat(many / 2),
        format!("a[{}1]", "(".repeat(many)),
        format!("a[{}1]", "-".repeat(many)),
        format!("a[1{}]", "+1".repeat(many)),
        format!("a[{}1", "min_of(".repeat(many / 4)),
        format!("a offset {}1", "-".repeat(many)),
        format!("(((a{0}){0}){0})", "+a".repeat(100)),
        "a".repeat(TEXT_MAX + 1),
        format!("x{{{}}}", "a=~'.',".repeat(1001)),
        format!("x{{{}}}", "a!~'.{2}',".repeat(65)),
    ] {
        let shown: String = text.chars().take(20).collect();
        let error = fault(&text);
        assert!(error.message.contains("has more than"), "{shown}: {error}");
    }
    let text = format!(
        "x{{{}{}}}",
        "a=~'.',".repeat(936),
        "a=~'[[:alpha:]]',".repeat(64)
    );
    assert!(parse(&text).is_ok());
}

/// The deepest expressions fit the stack of a thread of the hub, with as much left for others.
#[test]
fn deep_expressions_fit_a_small_stack() {
    let deep = || {
        let nested = super::NESTED_MAX - 1;
        for (before, after) in [
            ("(", ")"),
            ("abs(", ")"),
            ("sum(", ")"),
            ("-", ""),
            ("1 ^ ", ""),
        ] {
            let text = format!("{}a{}", before.repeat(nested), after.repeat(nested));
            let expr = parse(&text).unwrap();
            assert_eq!(expr.to_string(), text);
            assert!(!pretty(&expr).is_empty() && Tree::of(&expr) != Tree::Null);
            assert!(
                parse(&format!("{before}{text}{after}")).is_err(),
                "{before}"
            );
        }
        let text = format!("a{}", " + a".repeat(LEVELS_MAX - 1));
        let expr = parse(&text).unwrap();
        assert_eq!(expr.to_string(), text);
        assert!(!pretty(&expr).is_empty() && Tree::of(&expr) != Tree::Null);
        assert!(parse(&format!("{text} + a")).is_err());
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10);
    thread.spawn(deep).unwrap().join().unwrap();
}

#[test]
fn a_text_may_end_anywhere() {
    let text = "sum by (a, 'ä') (rate(x{b=~\"c.*\", 'ü'!='\\n'}[5m + step()] @ end() offset -1h30m)) \
                / on (a) group_left (b) topk(3, y[1h:1m]) > bool 0x1f # end";
    assert!(parse(text).is_err(), "topk has a range");
    for at in 0..text.len() {
        for piece in [text.get(..at), text.get(at..)].into_iter().flatten() {
            if let Err(error) = parse(piece) {
                let span = error.span;
                assert!(
                    span.start <= span.end && span.end <= piece.len(),
                    "{piece}: {error}"
                );
            }
        }
    }
}

#[cfg(feature = "testing")]
#[test]
fn any_words_are_read_or_refused() {
    let mut state = 7u64;
    let mut byte = || {
        // An LCG's high bits.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        u8::try_from(state >> 56).unwrap()
    };
    for _ in 0..20_000 {
        let length = usize::from(byte() % 24);
        let input: Vec<u8> = (0..length).map(|_| byte()).collect();
        crate::fuzz::fuzz_promql(&input);
    }
}
