//! Expressions in Prometheus' files.

use std::path::Path;

/// An expression of a `.test` file.
pub(crate) struct Evaluation {
    /// File and line.
    pub place: String,
    pub text: String,
    /// True if the evaluation, or already the parser, is to fail.
    pub may_fail: bool,
}

/// Every expression that Prometheus' `.test` files evaluate.
pub(crate) fn evaluations(module: &Path) -> Vec<Evaluation> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(module.join("promql/promqltest/testdata")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().to_string();
        // Names that Prometheus itself reads only behind a flag.
        if name == "unquoted_utf8_names.test" {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(expression) = evaluated(line.trim()) else {
                continue;
            };
            let following = lines[at + 1..].iter().map(|line| line.trim());
            let expected = following.take_while(|line| line.starts_with("expect"));
            found.push(Evaluation {
                place: format!("{name}:{}", at + 1),
                text: expression.to_string(),
                may_fail: line.starts_with("eval_fail") || { expected }
                    .any(|line| line.starts_with("expect fail")),
            });
        }
    }
    found
}

/// The expression of `eval instant at TIME EXPR` or `eval range from TIME to TIME step TIME EXPR`.
fn evaluated(line: &str) -> Option<&str> {
    let mut left = line.strip_prefix("eval")?.split_once(' ')?.1.trim_start();
    let words = match word(&mut left)? {
        "instant" => 2,
        "range" => 6,
        _ => return None,
    };
    if words == 2 && !left.starts_with("at ") {
        return Some(left);
    }
    for _ in 0..words {
        word(&mut left)?;
    }
    Some(left)
}

fn word<'a>(left: &mut &'a str) -> Option<&'a str> {
    let (word, rest) = left.split_once(char::is_whitespace)?;
    *left = rest.trim_start();
    Some(word)
}

/// A case of the parser's tests.
pub(crate) struct Case {
    /// Line of the file.
    pub line: usize,
    pub text: String,
    /// The first error; `None`: it is an expression.
    pub error: Option<String>,
}

/// Every case of the parser's tests that is written as one literal.
pub(crate) fn parser_cases(module: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(module.join("promql/parser/parse_test.go")).unwrap();
    // Other tables are of series and of other options.
    let table = text.split("\nvar testExpr = ").nth(1).unwrap();
    let table = table.split("\n}\n").next().unwrap();
    let first_line = text
        .split("\nvar testExpr = ")
        .next()
        .unwrap()
        .lines()
        .count()
        + 1;
    let mut cases: Vec<Case> = Vec::new();
    let mut fails = false;
    for (at, line) in table.lines().enumerate() {
        let line = line.trim();
        if let Some(written) = line.strip_prefix("input:") {
            fails = false;
            if let Some(text) = go_literal(written) {
                let (line, error) = (first_line + at, None);
                cases.push(Case { line, text, error });
            } else {
                // No later line may be taken for one of the case before.
                cases.push(Case {
                    line: first_line + at,
                    text: String::new(),
                    error: Some(String::new()),
                });
            }
            continue;
        }
        fails |= line.starts_with("fail:") && line.contains("true");
        let case = match cases.last_mut() {
            Some(case) if fails => case,
            _ => continue,
        };
        let written = (line.strip_prefix("Err:"))
            .and_then(|rest| rest.trim().strip_prefix("errors.New("))
            .and_then(|rest| go_literal(rest.trim_end_matches([')', ','])));
        match &mut case.error {
            Some(known) if !known.is_empty() => {}
            error => *error = Some(written.unwrap_or_default()),
        }
    }
    cases.retain(|case| !case.text.is_empty());
    cases
}

/// Every other literal behind `input:`, `in:` or `expected:` of the tests of printing.
pub(crate) fn printed_cases(module: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for file in ["printer_test.go", "prettier_test.go"] {
        let text = std::fs::read_to_string(module.join("promql/parser").join(file)).unwrap();
        for line in text.lines().map(str::trim) {
            let written = ["input:", "in:"]
                .iter()
                .find_map(|tag| line.strip_prefix(tag));
            found.extend(written.and_then(go_literal));
        }
    }
    found
}

/// A Go string that is one literal, maybe with a comma behind.
fn go_literal(written: &str) -> Option<String> {
    let written = written.trim().trim_end_matches(',').trim_end();
    let inner = |quote: char| written.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(raw) = inner('`') {
        return (!raw.contains('`')).then(|| raw.to_string());
    }
    let quoted = inner('"')?;
    let mut out = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return None,
            '\\' => out.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                plain @ ('"' | '\\') => plain,
                _ => return None,
            }),
            c => out.push(c),
        }
    }
    Some(out)
}
