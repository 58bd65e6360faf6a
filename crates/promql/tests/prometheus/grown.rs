//! Expressions grown from the grammar, always the same ones. Most have right types.

use crate::pieces::Numbers;

/// Grows `count` expressions.
pub(crate) fn grown(count: usize) -> Vec<String> {
    let mut numbers = Numbers(3);
    (0..count).map(|_| vector(&mut numbers, 4)).collect()
}

/// One of some texts parted by `|`.
fn one(numbers: &mut Numbers, texts: &str) -> String {
    let texts: Vec<&str> = texts.split('|').collect();
    texts[numbers.below(texts.len())].to_string()
}

fn vector(numbers: &mut Numbers, depth: usize) -> String {
    let kind = if depth == 0 { 0 } else { numbers.below(12) };
    let deeper = depth.saturating_sub(1);
    match kind {
        0 | 1 => shifted(numbers, selector),
        2 | 3 => {
            let function = one(
                numbers,
                "rate|irate|increase|sum_over_time|last_over_time|absent_over_time",
            );
            format!("{function}({})", matrix(numbers, deeper))
        }
        4 | 5 => aggregation(numbers, deeper),
        6..=8 => {
            let (left, right) = (any(numbers, deeper), any(numbers, deeper));
            format!("{left}{}{right}", operator(numbers))
        }
        9 => format!("{}{}", one(numbers, "-|+|- |--"), vector(numbers, deeper)),
        10 => format!("({})", vector(numbers, deeper)),
        _ => match numbers.below(4) {
            0 => format!(
                "clamp({}, {}, {})",
                vector(numbers, deeper),
                scalar(numbers, deeper),
                scalar(numbers, deeper)
            ),
            1 => format!(
                "label_join({}, \"a\", '-', `b`, \"c\")",
                vector(numbers, deeper)
            ),
            2 => format!("round({})", vector(numbers, deeper)),
            _ => format!("vector({})", scalar(numbers, deeper)),
        },
    }
}

fn any(numbers: &mut Numbers, depth: usize) -> String {
    match numbers.below(4) {
        0 => scalar(numbers, depth),
        _ => vector(numbers, depth),
    }
}

fn scalar(numbers: &mut Numbers, depth: usize) -> String {
    match numbers.below(if depth == 0 { 2 } else { 5 }) {
        0 => one(numbers, "1|0.5|1e3|0x1f|017|Inf|NaN|-2|+3|5m|1h30m|1_0"),
        1 => one(numbers, "time()|pi()|2|7"),
        2 => format!("scalar({})", vector(numbers, depth - 1)),
        3 => format!("({})", scalar(numbers, depth - 1)),
        _ => {
            let op = one(numbers, "+|-|*|/|%|^| atan2 |== bool|> bool ");
            format!(
                "{}{op}{}",
                scalar(numbers, depth - 1),
                scalar(numbers, depth - 1)
            )
        }
    }
}

fn operator(numbers: &mut Numbers) -> String {
    let op = one(
        numbers,
        " + | - | * |/|%|^| atan2 | == | != |<|<=|>|>=| and | or | unless |== bool |< bool |+bool ",
    );
    let on = one(
        numbers,
        "|||on (a) |ignoring(b, 'c d')|on () |ignoring () |on(or,)",
    );
    if on.is_empty() {
        return op;
    }
    let group = one(
        numbers,
        "|||group_left () |group_right (d) | group_left(a)|group_left \"x\"",
    );
    format!("{op} {on}{group} ")
}

fn aggregation(numbers: &mut Numbers, depth: usize) -> String {
    let inner = vector(numbers, depth);
    let labels = one(
        numbers,
        "||| by (a, 'b c',) | without (sum) | by () | without () |by(without)",
    );
    let (word, arguments) = match numbers.below(3) {
        0 => (
            one(numbers, "topk|bottomk|quantile"),
            format!("{}, {inner}", scalar(numbers, depth)),
        ),
        1 => ("count_values".into(), format!("\"v\", {inner}")),
        _ => (
            one(numbers, "sum|AVG|min|max|count|group|stddev|stdvar"),
            inner,
        ),
    };
    match numbers.below(2) {
        0 => format!("{word}{labels}({arguments})"),
        _ => format!("{word}( {arguments} ){labels}"),
    }
}

fn matrix(numbers: &mut Numbers, depth: usize) -> String {
    if depth > 0 && numbers.below(3) == 0 {
        return shifted(numbers, |numbers| {
            let step = if numbers.below(2) == 0 {
                String::new()
            } else {
                duration(numbers, 2)
            };
            format!("{}[{}:{step}]", vector(numbers, 1), duration(numbers, 2))
        });
    }
    shifted(numbers, |numbers| {
        format!("{}[{}]", selector(numbers), duration(numbers, 2))
    })
}

fn selector(numbers: &mut Numbers) -> String {
    let matchers = one(
        numbers,
        "|||{}|{a=\"b\"}|{a!='b', c=~`d.*`}|{'e f'!~\"g\",}|{ z = \"\\n\" }|{a=\"\"}|{b=\"1\",a=\"2\"}",
    );
    match numbers.below(8) {
        0 => "{\"a metric\"}".into(),
        1 => "{__name__=~'x.+', a=\"b\"}".into(),
        _ => format!(
            "{}{matchers}",
            one(numbers, "x|a:b|sum|offset|start|by|anchored|step|or|fill|_")
        ),
    }
}

/// A selector with what may stand behind it.
fn shifted(numbers: &mut Numbers, inner: fn(&mut Numbers) -> String) -> String {
    let mut text = inner(numbers);
    for _ in 0..numbers.below(3) {
        let behind = match numbers.below(6) {
            0 | 1 => format!(" offset {}", offset(numbers)),
            2 => one(numbers, " @ 1.5| @ -3| @ start()|@end()| @ 5m| @ +0x10"),
            3 => one(numbers, " anchored| smoothed"),
            _ => String::new(),
        };
        text.push_str(&behind);
    }
    text
}

fn offset(numbers: &mut Numbers) -> String {
    match numbers.below(4) {
        0 => one(numbers, "5m|1h30m|1.5|-5m|-1|+3|0|- 1d"),
        1 => one(
            numbers,
            "step()|-range()|min_of(step(), 5)|-max_of(1, 2m)|-(5m)|-(step() + 1)",
        ),
        2 => format!("({})", duration(numbers, 2)),
        _ => format!("({}) * 2", duration(numbers, 1)),
    }
}

fn duration(numbers: &mut Numbers, depth: usize) -> String {
    match numbers.below(if depth == 0 { 3 } else { 9 }) {
        0..=2 => one(numbers, "5m|1h|300|1.5|90d|1ms|2w"),
        3 => "step()".into(),
        4 => "range()".into(),
        5 => format!("({})", duration(numbers, depth - 1)),
        6 => format!("-{}", duration(numbers, depth - 1)),
        7 => {
            let word = one(numbers, "min_of|max_of");
            format!(
                "{word}({}, {})",
                duration(numbers, depth - 1),
                duration(numbers, depth - 1)
            )
        }
        _ => {
            let op = one(numbers, "+| - |*|/| % |^");
            format!(
                "{}{op}{}",
                duration(numbers, depth - 1),
                duration(numbers, depth - 1)
            )
        }
    }
}
