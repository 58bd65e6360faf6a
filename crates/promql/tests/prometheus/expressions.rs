//! Random expressions that the parser takes.

/// Numbers from a seed (xorshift), and expressions made of them.
pub(crate) struct Random {
    state: u64,
}

/// Functions of a range vector alone.
const OF_RANGE: [&str; 19] = [
    "rate",
    "increase",
    "delta",
    "irate",
    "idelta",
    "resets",
    "changes",
    "sum_over_time",
    "avg_over_time",
    "min_over_time",
    "max_over_time",
    "count_over_time",
    "stddev_over_time",
    "stdvar_over_time",
    "last_over_time",
    "first_over_time",
    "present_over_time",
    "absent_over_time",
    "deriv",
];
/// Functions of an instant vector alone. The last bit of `exp` differs, and `%` makes much of it.
const OF_VECTOR: [&str; 19] = [
    "abs",
    "ceil",
    "floor",
    "sqrt",
    "ln",
    "log2",
    "log10",
    "sgn",
    "sin",
    "atan",
    "deg",
    "rad",
    "round",
    "timestamp",
    "absent",
    "hour",
    "day_of_week",
    "month",
    "year",
];
const AGGREGATIONS: [&str; 8] = [
    "sum", "avg", "min", "max", "count", "group", "stddev", "stdvar",
];
/// `^` is left out, as its last bit differs like that of `exp`.
const ARITHMETIC: [&str; 6] = ["+", "-", "*", "/", "%", "atan2"];
const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
const SELECTORS: [&str; 10] = [
    "a_total",
    "b_total",
    "g",
    "h",
    "d_bucket",
    r#"g{job="x"}"#,
    r#"{__name__=~"[gh]"}"#,
    r#"a_total{i!="1"}"#,
    "none",
    r#"a_total{job=~"x|z"}"#,
];
const LENGTHS: [&str; 8] = [
    "1m",
    "5m",
    "30s",
    "10m",
    "15s",
    "1ms",
    "(1m - 10s)",
    "(range() + step() + 1s)",
];

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// A number below another one.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from((self.state >> 20) % u64::try_from(most).unwrap()).unwrap()
    }

    fn one_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    /// First moment, last moment and step of a question; of an instant the step is 0.
    pub(crate) fn times(&mut self) -> (i64, i64, i64) {
        let from_ms = i64::try_from(self.below(360)).unwrap() * 10_000;
        match self.below(3) {
            0 => (from_ms, from_ms, 0),
            1 => (from_ms, from_ms + 900_000, 15_000),
            _ => (from_ms, from_ms + 1_000_000, 61_000),
        }
    }

    /// An expression with a few levels.
    pub(crate) fn expression(&mut self) -> String {
        match self.below(12) {
            0 => self.scalar(2),
            _ => self.vector(3),
        }
    }

    fn scalar(&mut self, levels: usize) -> String {
        match self.below(if levels == 0 { 3 } else { 6 }) {
            0 => "time()".into(),
            1 => "0.5".into(),
            2 => self.below(10).to_string(),
            3 => format!("scalar({})", self.vector(levels - 1)),
            4 => {
                let (left, right) = (self.scalar(levels - 1), self.scalar(levels - 1));
                format!("({left} {} {right})", self.one_of(&ARITHMETIC))
            }
            _ => {
                let (left, right) = (self.scalar(levels - 1), self.scalar(levels - 1));
                format!("({left} {} bool {right})", self.one_of(&COMPARISONS))
            }
        }
    }

    fn selector(&mut self) -> String {
        let mut text = self.one_of(&SELECTORS).to_string();
        text.push_str(match self.below(16) {
            0 => " offset 1m",
            1 => " offset -2m",
            2 => " @ 1200",
            5 => " smoothed",
            6 => " anchored",
            3 => " @ end() offset 10s",
            4 => " @ start()",
            _ => "",
        });
        text
    }

    fn range(&mut self, levels: usize) -> String {
        let length = self.one_of(&LENGTHS);
        if levels == 0 || self.below(4) > 0 {
            let selector = self.selector();
            let (name, modifiers) = selector.split_once(' ').unwrap_or((&selector, ""));
            return format!("{name}[{length}] {modifiers}");
        }
        let step = self.one_of(&["", "30s", "7s", "1m"]);
        let inner = self.vector(levels - 1);
        let modifiers = self.one_of(&["", "", "", " offset 30s", " @ 1800", " @ end()"]);
        // Prometheus is wrong by the offset where the first step is the start of the query.
        let is_wrong = inner.contains('@') && modifiers.contains("offset");
        let modifiers = if is_wrong { "" } else { modifiers };
        format!("({inner})[{length}:{step}]{modifiers}")
    }

    fn grouping(&mut self) -> &'static str {
        self.one_of(&[
            "",
            "by (job)",
            "by (job, i)",
            "without (i)",
            "by (__name__)",
            "without (le)",
        ])
    }

    fn vector(&mut self, levels: usize) -> String {
        if levels == 0 {
            return self.selector();
        }
        let inner = levels - 1;
        match self.below(16) {
            0 | 1 => self.selector(),
            2..=4 => format!("{}({})", self.one_of(&OF_RANGE), self.range(inner)),
            5 => format!("quantile_over_time(0.7, {})", self.range(inner)),
            6 => format!("predict_linear({}, 60)", self.range(inner)),
            7 => format!("{}({})", self.one_of(&OF_VECTOR), self.vector(inner)),
            8 | 9 => {
                let (op, grouping) = (self.one_of(&AGGREGATIONS), self.grouping());
                format!("{op} {grouping} ({})", self.vector(inner))
            }
            10 => self.parametric(inner),
            11 => {
                let (vector, scalar) = (self.vector(inner), self.scalar(1));
                let op = self.operator();
                match self.below(2) {
                    0 => format!("({vector} {op} {scalar})"),
                    _ => format!("({scalar} {op} {vector})"),
                }
            }
            12 | 13 => self.joined(inner),
            14 => self.relabelled(inner),
            _ => format!("-({})", self.vector(inner)),
        }
    }

    fn operator(&mut self) -> String {
        match self.below(4) {
            0 => self.one_of(&COMPARISONS).to_string(),
            1 => format!("{} bool", self.one_of(&COMPARISONS)),
            _ => self.one_of(&ARITHMETIC).to_string(),
        }
    }

    fn parametric(&mut self, levels: usize) -> String {
        let (vector, grouping) = (self.vector(levels), self.grouping());
        match self.below(10) {
            // Which one of equal values is picked depends on the order of series; these values differ.
            0 => format!("topk {grouping} (2, rate(a_total[5m]))"),
            1 => format!("bottomk {grouping} (1, rate(b_total[5m]))"),
            2 => format!("quantile {grouping} (0.3, {vector})"),
            // A label with a computed value would tell in which order values were added.
            3 => format!(r#"count_values {grouping} ("v", {})"#, self.selector()),
            4 => format!("clamp({vector}, -5, 50)"),
            5 => format!("clamp_min({vector}, {})", self.scalar(1)),
            6 => format!("clamp_max({vector}, {})", self.scalar(1)),
            7 => format!("round({vector}, 0.25)"),
            8 => format!("histogram_fraction(0.5, 2, {vector})"),
            _ => format!("histogram_quantile(0.9, {vector})"),
        }
    }

    fn joined(&mut self, levels: usize) -> String {
        let (left, right) = (self.vector(levels), self.vector(levels));
        let matching = self.one_of(&["", "on (job, i)", "on (i)", "ignoring (job)", "on ()"]);
        if self.below(3) == 0 {
            let op = self.one_of(&["and", "or", "unless"]);
            return format!("({left} {op} {matching} {right})");
        }
        let group = match matching {
            "" => "",
            _ => self.one_of(&[
                "",
                "",
                "group_left ()",
                "group_right ()",
                "group_left (job)",
            ]),
        };
        // A label may not be both compared and taken over.
        let group = if matching.contains("job") && group.contains("job") {
            "group_left ()"
        } else {
            group
        };
        format!("({left} {} {matching} {group} {right})", self.operator())
    }

    fn relabelled(&mut self, levels: usize) -> String {
        let vector = self.vector(levels);
        match self.below(3) {
            0 => format!(r#"label_replace({vector}, "i", "$1$2", "job", "(x)|(y)")"#),
            1 => format!(r#"label_replace({vector}, "z", "n-$n", "i", "(?P<n>[01])")"#),
            _ => format!(r#"label_join({vector}, "z", "-", "job", "i")"#),
        }
    }
}
