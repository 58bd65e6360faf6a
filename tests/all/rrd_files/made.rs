//! Random numbers, good and bad specifications, and updated files.

use super::stock::Stock;

/// A small generator; one seed, one sequence.
pub(super) struct Rng(pub u64);

impl Rng {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(super) fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len() as u64) as usize]
    }
}

pub(super) const NAMES: &[&str] = &["a", "b", "c-1", "d_2", "E"];
pub(super) const TYPES: &[&str] = &[
    "GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "DDERIVE",
];

/// A number, rarely a text that is none.
pub(super) fn number(rng: &mut Rng) -> String {
    match rng.below(12) {
        0 => rng
            .pick(&["U", "nan", "-inf", "inf", "1e", "0", "-0", "1e400", "0x10"])
            .into(),
        1 => rng
            .pick(&["", "x", "1x", "-", ".", "1.5.2", "12345678901234567890"])
            .into(),
        2 => format!("-{}", rng.below(1000)),
        3 => format!("{}e{}", rng.below(100), rng.between(-12, 12)),
        4 => format!("0.{}", rng.below(1_000_000)),
        _ => format!("{}", rng.below(100_000)),
    }
}

/// A fraction between 0 and 1, sometimes at or beyond its ends.
fn fraction(rng: &mut Rng) -> String {
    match rng.below(14) {
        0 => rng
            .pick(&[
                "0", "1", "nan", "1.0001", "-0.1", "", "x", "0.5x", ".5", "1e-1",
            ])
            .into(),
        _ => format!("0.{}", 1 + rng.below(9999)),
    }
}

/// A count up to `most`, or a duration of as many steps of `seconds`.
pub(super) fn count(rng: &mut Rng, most: u64, seconds: u64) -> String {
    let count = 1 + rng.below(most);
    match rng.below(16) {
        0 => rng
            .pick(&["0", "-1", "", "x", "3x", "1.5", "5q", "07"])
            .into(),
        1 => format!("{}s", count * seconds + rng.below(2)),
        2 if seconds.is_multiple_of(60) => format!("{}m", count * seconds / 60),
        3 if seconds <= 300 => rng.pick(&["1h", "2h", "60m"]).into(),
        _ => count.to_string(),
    }
}

/// A `DS:` argument; `known` has the names of earlier sources.
pub(super) fn source(rng: &mut Rng, known: &[&str]) -> String {
    let name = rng.pick(NAMES);
    if rng.one_in(25) {
        return rng
            .pick(&[
                "DS:a",
                "DS:",
                "DS:a:GAUGE",
                "DS:a:GAUGE:",
                "DS:a:GAUGE:60",
                "DS:a:GAUGE:60:1",
                "DS:a:GAUGE:60:5:1",
                "DS:a:FOO:60:U:U",
                "DS::GAUGE:60:U:U",
                "DS:a.b:GAUGE:60:U:U",
                "DS:abcdefghijabcdefghijk:GAUGE:60:U:U",
                "DS:a=:GAUGE:60:U:U",
                "DS:a=b[]:GAUGE:60:U:U",
                "DS:a:GAUGE:60:1:2:3",
                "DS:a:gauge:60:U:U",
                "DS:a:GAUGE:60:U:1234567890123456789",
                "DS:a:GAUGE:60:1234567890123456789:U",
                "DS:a:GAUGE:123456789012345678901234567890123:U:U",
                "FOO",
                "DS:a:GAUGE:60::5",
            ])
            .into();
    }
    if rng.one_in(6) {
        return format!("DS:{name}:COMPUTE:{}", program(rng, known));
    }
    let mapping = match rng.below(12) {
        0 => "=b",
        1 => "=a[1]",
        2 => "=zz[99999999999999999999]",
        _ => "",
    };
    let heartbeat = count(rng, 900, 1);
    let mut limit = || {
        if rng.one_in(2) {
            "U".into()
        } else {
            number(rng)
        }
    };
    let (min, max) = (limit(), limit());
    let kind = rng.pick(TYPES);
    format!("DS:{name}{mapping}:{kind}:{heartbeat}:{min}:{max}")
}

/// RPN of a COMPUTE data source, mostly a valid one.
fn program(rng: &mut Rng, known: &[&str]) -> String {
    let mut nodes = Vec::new();
    let most = if rng.one_in(10) { 24 } else { 5 };
    for _ in 0..1 + rng.below(most) {
        nodes.push(match rng.below(8) {
            0 => rng.between(-40_000, 40_000).to_string(),
            1 => rng
                .pick(&[
                    "1.5", "1e2", "", "x", "TIME", "PREV", "COUNT", "NEWDAY", "PREV(a)",
                ])
                .into(),
            2 | 3 if !known.is_empty() => rng.pick(known).to_owned(),
            4 => number(rng),
            _ => rng
                .pick(&[
                    "+", "-", "*", "/", "%", "SIN", "UN", "IF", "DUP", "EXC", "POP", "LT", "MIN",
                    "MAX", "LIMIT", "UNKN", "INF", "NEGINF", "ADDNAN", "ATAN2", "SORT", "AVG",
                    "NOW", "ABS", "MEDIAN", "POW", "STDEV", "INDEX", "DEPTH",
                ])
                .to_owned(),
        });
    }
    nodes.join(",")
}

/// An `RRA:` argument.
pub(super) fn archive(rng: &mut Rng, step: u64) -> String {
    if rng.one_in(25) {
        return rng
            .pick(&[
                "RRA:",
                "RRA:AVERAGE",
                "RRA:AVERAGE:0.5:1",
                "RRA:FOO:0.5:1:10",
                "RRA:AVERAGE1:0.5:1:5",
                "RRA:AVERAGE:0.5:1:5:6",
                "RRA::AVERAGE::0.5:1:5",
                "RRA:LAST:0.5:1:5:",
                "RRA:average:0.5:1:5",
                "RRA:DEVPREDICT:5",
                "RRA:DEVPREDICT:5:1:1",
                "RRA:MIN:0.5:0:5",
                "RRA:HWPREDICT:5:0.1:0.1",
                "RRA:AVERAGE:0.5:1:9999999999999",
                "RRA:FAILURES:5:30:40:1",
                "RRA:FAILURES:5:9:7:1",
                "RRA:SEASONAL:5:0.1:1:smooth",
                "RRA:SEASONAL:5:0.1:1:smoothing-window=",
                "RRA:SEASONAL:5:0.1:1:smoothing-window=x",
                "RRA:SEASONAL:5:0.1:1:smoothing-window=0.3x",
                "RRA:SEASONAL:5:0.1:1:smoothing-window=7",
                "RRA:SEASONAL:5:0.1:1:foo=7",
                "RRA:HWPREDICT:5:0.1:0.1:3:1:1",
                "RRA:HWPREDICT:5:0.1:0.1:9",
                "rra:x",
                "RRA:MAX:0.5:1s:5",
            ])
            .into();
    }
    let (alpha, beta) = (fraction(rng), fraction(rng));
    match rng.below(16) {
        0 | 1 => {
            let cf = rng.pick(&["HWPREDICT", "MHWPREDICT"]);
            let rows = 5 + rng.below(20);
            let index = if rng.one_in(3) {
                format!(":{}", 1 + rng.below(4))
            } else {
                String::new()
            };
            format!(
                "RRA:{cf}:{rows}:{alpha}:{beta}:{}{index}",
                1 + rng.below(rows + 1)
            )
        }
        2 => {
            let cf = rng.pick(&["SEASONAL", "DEVSEASONAL"]);
            let window = if rng.one_in(2) {
                format!(":smoothing-window={beta}")
            } else {
                String::new()
            };
            format!(
                "RRA:{cf}:{}:{alpha}:{}{window}",
                count(rng, 20, step),
                1 + rng.below(4)
            )
        }
        3 => format!(
            "RRA:DEVPREDICT:{}:{}",
            count(rng, 20, step),
            rng.between(-1, 5)
        ),
        4 => {
            let (threshold, window) = (rng.between(0, 30), rng.between(0, 30));
            format!(
                "RRA:FAILURES:{}:{threshold}:{window}:1",
                count(rng, 20, step)
            )
        }
        _ => plain_archive(rng, step),
    }
}

/// An archive with a consolidation function.
pub(super) fn plain_archive(rng: &mut Rng, step: u64) -> String {
    let cf = rng.pick(&["AVERAGE", "MIN", "MAX", "LAST"]);
    let points = rng.pick(&["1", "1", "2", "3", "5", "12"]);
    let points = if rng.one_in(8) {
        count(rng, 6, step)
    } else {
        points.to_owned()
    };
    let xff = if rng.one_in(4) {
        fraction(rng)
    } else {
        "0.5".into()
    };
    let slot = step * points.parse().unwrap_or(1);
    format!("RRA:{cf}:{xff}:{points}:{}", count(rng, 40, slot))
}

/// An existing file: its name, its step, its begin, and its last update.
pub(super) struct Made {
    pub name: String,
    pub step: u64,
    pub begin: i64,
    pub end: i64,
}

/// Valid definitions, and the count of their inputs.
pub(super) fn good_definitions(rng: &mut Rng, step: u64) -> (String, usize) {
    let mut words = Vec::new();
    let inputs = 1 + rng.below(3) as usize;
    for name in &NAMES[..inputs] {
        let kind = rng.pick(TYPES);
        let heartbeat = step * (1 + rng.below(4));
        let limits = rng.pick(&["U:U", "U:U", "0:U", "-100:1000000", "U:5e9"]);
        words.push(format!("DS:{name}:{kind}:{heartbeat}:{limits}"));
    }
    if rng.one_in(3) {
        words.push(format!(
            "DS:z:COMPUTE:{}",
            rng.pick(&["a,2,*", "a,UN,0,a,IF", "a,a,+,10,MIN"])
        ));
    }
    for _ in 0..1 + rng.below(4) {
        let points = rng.pick(&["1", "1", "2", "3", "4", "6"]);
        let cf = rng.pick(&["AVERAGE", "AVERAGE", "MIN", "MAX", "LAST"]);
        let xff = rng.pick(&["0", "0.5", "0.99"]);
        words.push(format!("RRA:{cf}:{xff}:{points}:{}", 1 + rng.below(30)));
    }
    if rng.one_in(3) {
        let cf = rng.pick(&["HWPREDICT", "MHWPREDICT"]);
        words.push(format!(
            "RRA:{cf}:{}:0.1:0.0035:{}",
            12 + rng.below(10),
            3 + rng.below(9)
        ));
    }
    (words.join(" "), inputs)
}

/// Makes a file with rrdtool and updates it a few times.
pub(super) fn file(rng: &mut Rng, stock: &mut Stock, name: &str) -> Made {
    let step = [1, 10, 60, 300][rng.below(4) as usize];
    let begin = 1_000_000_000 + rng.between(0, 400_000_000);
    let (definitions, inputs) = good_definitions(rng, step);
    let line = format!("create {name} -b {begin} -s {step} {definitions}");
    let answer = stock.ask(&line);
    assert_eq!(answer.error, None, "{line}");
    let (mut time, mut lines) = (begin, Vec::new());
    let mut values = vec![rng.below(100_000); inputs];
    for _ in 0..rng.below(60) {
        let most = if rng.one_in(10) { 9 * step } else { 2 * step };
        time += 1 + rng.below(most) as i64;
        let mut text = time.to_string();
        if rng.one_in(4) {
            text = format!("{text}.{}", rng.below(1_000_000));
        }
        for value in &mut values {
            *value += rng.below(1000);
            let unknown = rng.one_in(15);
            text = if unknown {
                format!("{text}:U")
            } else {
                format!("{text}:{value}")
            };
        }
        lines.push(format!("update {name} {text}"));
    }
    stock.ask_all(&lines);
    Made {
        name: name.to_owned(),
        step,
        begin,
        end: time,
    }
}
