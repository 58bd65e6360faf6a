//! Cases: a file's definition, and calls of update on it.

use kymo_rrd::{Header, UNKNOWN};

/// SplitMix64.
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }

    pub(super) fn number(&mut self, from: &[u64]) -> u64 {
        from[self.below(from.len() as u64) as usize]
    }

    /// A random number from 0 to 1.
    pub(super) fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// One file and its updates.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Seed of the case.
    pub seed: u64,
    /// `create`'s arguments after the file's name.
    pub create: String,
    /// `tune`'s arguments after the file's name.
    pub tune: Option<String>,
    /// Version to which the file is converted first.
    pub version: Option<u8>,
    /// Seed for disturbing the file's state first.
    pub disturb: Option<u64>,
    pub calls: Vec<Call>,
}

/// One call of update.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Calls updatev instead of update.
    pub tells: bool,
    pub skip_past: bool,
    pub template: Option<String>,
    pub args: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gauge,
    Counter,
    Derive,
    Absolute,
    Dcounter,
    Dderive,
    Compute,
}

/// A data source and the state of its counter.
struct Source {
    kind: Kind,
    counter: i128,
    fraction: f64,
}

const START: u64 = 1_000_000_000;
const KINDS: [(&str, Kind); 6] = [
    ("GAUGE", Kind::Gauge),
    ("COUNTER", Kind::Counter),
    ("DERIVE", Kind::Derive),
    ("ABSOLUTE", Kind::Absolute),
    ("DCOUNTER", Kind::Dcounter),
    ("DDERIVE", Kind::Dderive),
];

impl Case {
    pub(super) fn new(seed: u64) -> Case {
        let random = &mut Random(seed);
        let step = random.number(&[1, 1, 2, 5, 7, 10, 10, 10, 30, 60, 300]);
        let begin = START + random.below(1000);
        let mut create = format!("--start {begin} --step {step}");
        let mut sources = Vec::new();
        for i in 0..random.number(&[1, 1, 1, 2, 2, 3, 4]) {
            sources.push(source(random, i, step, &mut create));
        }
        let is_seasonal = random.one_in(3);
        archives(random, is_seasonal, &mut create);
        let tune = (create.contains("RRA:FAILURES") && random.one_in(2)).then(|| {
            let (up, down) = (0.1 + random.part() * 3.0, 0.1 + random.part() * 3.0);
            format!("--deltapos {up:.2} --deltaneg {down:.2}")
        });
        let disturb = random.one_in(6).then(|| random.next());
        let version = random.one_in(25).then(|| 1 + random.below(2) as u8);
        let mut clock = begin as f64;
        let mut calls = Vec::new();
        for _ in 0..1 + random.below(if is_seasonal { 8 } else { 4 }) {
            calls.push(call(random, &mut sources, step, is_seasonal, &mut clock));
        }
        Case {
            seed,
            create,
            tune,
            version,
            disturb,
            calls,
        }
    }
}

/// Writes a state that updates never leave, or only after years: random counts, sums and open rows.
pub(super) fn disturb(header: &mut Header, random: &mut Random) {
    let mut words = |words: &mut [u64]| {
        for word in words {
            if random.one_in(3) {
                *word = any_word(random);
            }
        }
    };
    for pdp in &mut header.pdp_prep {
        words(&mut pdp.scratch[..2]);
    }
    for cdp in &mut header.cdp_prep {
        words(&mut cdp.scratch);
    }
    for (row, rra) in header.cur_row.iter_mut().zip(&header.rra) {
        *row = random.below(rra.row_cnt);
    }
    if header.version >= 3 {
        header.last_up_usec = random.below(1_000_000) as i64;
    }
}

fn any_word(random: &mut Random) -> u64 {
    match random.below(12) {
        0 => 0,
        1..=3 => random.below(12),
        4 => random.number(&[u64::MAX, 1 << 31, (1 << 32) + 3, 1 << 63]),
        5 => UNKNOWN.to_bits(),
        6 => f64::INFINITY.to_bits(),
        7 => f64::NEG_INFINITY.to_bits(),
        8 => (-random.part()).to_bits(),
        _ => (random.part() * 100.0).to_bits(),
    }
}

fn source(random: &mut Random, i: u64, step: u64, create: &mut String) -> Source {
    let start = random.number(&[0, 5, 1_000_000, 4_294_967_000, 18_446_744_073_709_551_000]);
    let mut source = Source {
        kind: Kind::Compute,
        counter: i128::from(start),
        fraction: 0.5,
    };
    if i > 0 && random.one_in(3) {
        *create += &format!(" DS:d{i}:COMPUTE:{}", rpn(random, i));
        return source;
    }
    let (name, kind) = KINDS[random.below(6) as usize];
    let heartbeat = match random.below(8) {
        0 => 1,
        1 => step,
        2 => step * 500,
        _ => step * (1 + random.below(10)),
    };
    let min = random.pick(&["U", "U", "U", "0", "-1000", "10"]);
    let max = random.pick(&["U", "U", "U", "100", "1e9", "1000000"]);
    *create += &format!(" DS:d{i}:{name}:{heartbeat}:{min}:{max}");
    source.kind = kind;
    source
}

/// Mostly a sum that leaves one value; now and then random operations.
fn rpn(random: &mut Random, sources: u64) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut depth = 0;
    let is_wild = random.one_in(10);
    while nodes(&words) < 14 {
        if depth == 1 && words.len() > 3 && random.one_in(4) {
            break;
        }
        let (text, takes, gives) = operation(random, sources);
        let needed: u64 = if is_wild { 0 } else { takes };
        if depth < needed {
            words.push(operand(random, sources));
            depth += 1;
            continue;
        }
        words.push(text);
        depth = (depth + gives).saturating_sub(takes);
    }
    while depth > 1 && nodes(&words) < 18 {
        words.push(
            random
                .pick(&["+", "-", "*", "/", "MAX", "MINNAN", "POP", "ADDNAN"])
                .to_owned(),
        );
        depth -= 1;
    }
    let text = words.join(",");
    // A program must not end with a number.
    if words.last().is_some_and(|word| word.parse::<f64>().is_ok()) {
        return format!("{text},ABS");
    }
    text
}

fn nodes(words: &[String]) -> usize {
    words.iter().map(|word| word.split(',').count()).sum()
}

fn operand(random: &mut Random, sources: u64) -> String {
    match random.below(12) {
        0 => random.pick(&["UNKN", "INF", "NEGINF", "DEPTH"]).to_owned(),
        1 | 2 => (random.below(200) as i64 - 100).to_string(),
        3 => random.pick(&["0", "1", "2", "32767", "-32768"]).to_owned(),
        _ => format!("d{}", random.below(sources)),
    }
}

/// The text of an operation, the count of values that it takes, and the count that it leaves.
fn operation(random: &mut Random, sources: u64) -> (String, u64, u64) {
    const ONE: &[&str] = &[
        "SIN", "COS", "LOG", "EXP", "FLOOR", "CEIL", "UN", "ISINF", "ATAN", "SQRT", "RAD2DEG",
        "DEG2RAD", "ABS", "ABS",
    ];
    const TWO: &[&str] = &[
        "+", "-", "*", "/", "%", "LT", "LE", "GT", "GE", "EQ", "NE", "MIN", "MAX", "MINNAN",
        "MAXNAN", "ADDNAN", "ATAN2", "POW",
    ];
    let count = random.below(4);
    match random.below(22) {
        0..=4 => (random.pick(ONE).to_owned(), 1, 1),
        5..=9 => (random.pick(TWO).to_owned(), 2, 1),
        10 => ("IF".to_owned(), 3, 1),
        11 => ("LIMIT".to_owned(), 3, 1),
        12 => ("DUP".to_owned(), 1, 2),
        13 => ("EXC".to_owned(), 2, 2),
        14 => ("POP".to_owned(), 1, 0),
        15 => (
            format!("{count},{}", random.pick(&["SORT", "REV"])),
            count,
            count,
        ),
        16 | 17 => {
            let op = random.pick(&["AVG", "MEDIAN", "STDEV", "SMIN", "SMAX"]);
            (format!("{},{op}", count + 1), count + 1, 1)
        }
        18 => {
            let percent = random.number(&[50, 51, 95, 100]);
            // A lower percentage reads memory below the stack, which may hold anything.
            // PERCENT needs three values, its own two among them.
            (format!("{percent},{},PERCENT", count + 1), count + 1, 1)
        }
        19 => match random.below(3) {
            0 => (format!("{count},COPY"), count, 2 * count),
            1 => (format!("{count},INDEX"), count + 1, count + 2),
            _ => {
                let turn = random.below(9) as i64 - 4;
                (format!("{count},{turn},ROLL"), count, count)
            }
        },
        20 if random.one_in(4) => {
            let odd = [
                "-1,REV",
                "-3,AVG",
                "UNKN,SORT",
                "INF,AVG",
                "-2,1,ROLL",
                "UNKN,2,ROLL",
            ];
            (random.pick(&odd).to_owned(), 0, 0)
        }
        _ => (operand(random, sources), 0, 1),
    }
}

fn archives(random: &mut Random, is_seasonal: bool, create: &mut String) {
    let mut plain: Vec<String> = Vec::new();
    for _ in 0..random.below(5) + u64::from(!is_seasonal) {
        let cf = random.pick(&["AVERAGE", "AVERAGE", "MIN", "MAX", "LAST"]);
        let xff = random.pick(&["0", "0.5", "0.99", "0.3"]);
        let points = random.number(&[1, 1, 2, 3, 5, 6, 12, 30]);
        let mut rows = random.number(&[1, 2, 3, 5, 10, 30, 70]);
        if random.one_in(200) {
            rows = 5000;
        }
        plain.push(format!("RRA:{cf}:{xff}:{points}:{rows}"));
    }
    if is_seasonal {
        seasonal(random, &mut plain);
    }
    for archive in plain {
        *create += " ";
        *create += &archive;
    }
}

/// Adds a Holt-Winters family: its members one by one in random order, or as create adds them.
fn seasonal(random: &mut Random, archives: &mut Vec<String>) {
    let period = random.number(&[2, 3, 4, 7, 10, 25, 40]);
    let rows = period + random.below(20);
    let cf = random.pick(&["HWPREDICT", "MHWPREDICT"]);
    let mut part = || random.pick(&["0.1", "0.0035", "0.5", "0.9"]).to_owned();
    let (alpha, beta, gamma, gamma_dev) = (part(), part(), part(), part());
    if random.one_in(3) {
        archives.push(format!("RRA:{cf}:{rows}:{alpha}:{beta}:{period}"));
        return;
    }
    let window = 1 + random.below(28.min(rows));
    let threshold = 1 + random.below(window);
    // Letters stand for indexes until the order is known.
    let smoothing = random.pick(&["", ":smoothing-window=0.3", ":smoothing-window=1"]);
    let smoothing_dev = random.pick(&["", ":smoothing-window=0.2"]);
    let family = [
        format!("RRA:{cf}:{rows}:{alpha}:{beta}:{period}:<S>"),
        format!("RRA:SEASONAL:{period}:{gamma}:<H>{smoothing}"),
        format!("RRA:DEVSEASONAL:{period}:{gamma_dev}:<H>{smoothing_dev}"),
        format!("RRA:DEVPREDICT:{rows}:<D>"),
        format!("RRA:FAILURES:{rows}:{threshold}:{window}:<D>"),
    ];
    for member in family {
        let at = random.below(archives.len() as u64 + 1) as usize;
        archives.insert(at, member);
    }
    let index = |start: &str| {
        let mut all = archives.iter();
        1 + all
            .position(|text| text.starts_with(start))
            .expect("it is in")
    };
    let marks = [
        ("<S>", index("RRA:SEASONAL")),
        ("<H>", index(&format!("RRA:{cf}"))),
        ("<D>", index("RRA:DEVSEASONAL")),
    ];
    for archive in archives {
        for (mark, index) in marks {
            *archive = archive.replace(mark, &index.to_string());
        }
    }
}

fn call(
    random: &mut Random,
    sources: &mut [Source],
    step: u64,
    is_seasonal: bool,
    clock: &mut f64,
) -> Call {
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.retain(|&i| sources[i].kind != Kind::Compute);
    let template = random
        .one_in(5)
        .then(|| template(random, sources.len(), &mut order));
    let most = if is_seasonal { 20 } else { 6 };
    let is_calm = random.one_in(3);
    let mut args = Vec::new();
    for _ in 0..1 + random.below(most) {
        let time = time(random, step, is_calm || is_seasonal, clock);
        let mut arg = time;
        for &i in &order {
            arg.push(':');
            arg += &reading(random, &mut sources[i], is_calm, *clock);
        }
        args.push(spoiled(random, arg));
    }
    Call {
        tells: random.one_in(6),
        skip_past: random.one_in(6),
        template,
        args,
    }
}

fn template(random: &mut Random, count: usize, order: &mut Vec<usize>) -> String {
    if random.one_in(15) {
        return random
            .pick(&["", "dx", "d0:d0:d0:d0:d0", "d0::d1"])
            .to_owned();
    }
    if random.one_in(10) {
        *order = (0..count).collect();
    }
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order.truncate(1 + random.below(order.len() as u64) as usize);
    let names: Vec<String> = order.iter().map(|i| format!("d{i}")).collect();
    names.join(":")
}

fn time(random: &mut Random, step: u64, is_calm: bool, clock: &mut f64) -> String {
    const STEPS: [f64; 16] = [
        0.3, 0.9, 0.5, 1.0, 1.0, 1.0, 1.0, 1.1, 1.5, 2.0, 2.7, 3.0, 3.5, 10.0, 31.3, 400.0,
    ];
    let steps = match random.below(if is_calm { 30 } else { 3 }) {
        0 => STEPS[random.below(16) as usize],
        1 => random.part() * 3.0,
        _ => 1.0,
    };
    let steps = if random.one_in(400) { 3000.0 } else { steps };
    let mut next = *clock + steps * step as f64;
    if random.one_in(3) {
        next = next.floor();
    }
    if random.one_in(60) {
        next = *clock - random.part() * 3.0;
    } else {
        *clock = next;
    }
    match random.below(16) {
        0..=5 => format!("{}", next.floor()),
        6..=10 => format!("{next:.6}"),
        11 => format!("{next:.3}"),
        12 => format!("+{next:.1}"),
        13 => format!("{:.9}e9", next / 1e9),
        14 => format!("{}.", next.floor()),
        _ => format!("{next}"),
    }
}

fn reading(random: &mut Random, source: &mut Source, is_calm: bool, clock: f64) -> String {
    const ODD: &[&str] = &[
        "U",
        "U",
        "UNKN",
        "U12",
        "nan",
        "-nan",
        "NaN",
        "NANx",
        "inf",
        "-inf",
        "INFinity",
        "0",
        "-0",
        "-",
        "",
        "0e999",
        "1e",
        "1e+",
        "1E-2",
        "2e1024",
        "1e-1021",
        "1e-1022",
        "1e4294967296",
        "1e99999999999",
        ".5",
        "5.",
        "-.25e2",
        "+7",
        "00012",
        "123456789012345678",
        "12345678901234567890",
        "98765432109876543210987654321",
        "987654321098765432109876543210",
        "1234567890123456789012345678901",
        "0.1000000000000000055",
        "3.14159265358979323846",
        "1.7976931348623157e308",
        "4.9e-324",
        "1e308",
        "-1e308",
        "99999999999999999999.5",
    ];
    const BAD: &[&str] = &[
        "foo", "12foo", "0x10", "1,5", "--1", "1 2", "u", "1e5x", "i", ".",
    ];
    if random.one_in(if is_calm { 40 } else { 8 }) {
        return random.pick(ODD).to_owned();
    }
    if random.one_in(120) {
        return random.pick(BAD).to_owned();
    }
    match source.kind {
        Kind::Counter => {
            source.counter += i128::from(random.number(&[0, 1, 10, 77, 1000, 123_456]));
            if random.one_in(15) {
                source.counter =
                    i128::from(random.number(&[0, 12, 4_294_967_290, 18_446_744_073_709_551_600]));
            }
            source.counter.to_string()
        }
        Kind::Derive => {
            source.counter += i128::from(random.below(2000)) - 1000;
            if random.one_in(15) {
                source.counter = i128::from(random.below(200)) - 100;
            }
            source.counter.to_string()
        }
        Kind::Dcounter | Kind::Dderive => {
            source.fraction += random.part() * 10.0 - if random.one_in(4) { 8.0 } else { 0.0 };
            format!("{:.*}", random.below(8) as usize, source.fraction)
        }
        Kind::Gauge | Kind::Absolute | Kind::Compute => gauge(random, clock),
    }
}

fn gauge(random: &mut Random, clock: f64) -> String {
    let wave = (clock / 17.0).sin() * 10.0 + 20.0;
    let value = match random.below(5) {
        0 => f64::from_bits(random.next()),
        1 => random.part() * 1e6,
        _ => wave + random.part(),
    };
    match random.below(6) {
        0 => format!("{value:.0}"),
        1 => format!("{value:.6}"),
        2 => format!("{value:.17e}"),
        3 => format!("{value:e}"),
        _ => format!("{wave:.4}"),
    }
}

/// Now and then makes the argument wrong.
fn spoiled(random: &mut Random, mut arg: String) -> String {
    match random.below(150) {
        0 => arg += ":1",
        1 => arg.truncate(arg.rfind(':').unwrap_or(0)),
        2 => arg.truncate(arg.find(':').unwrap_or(0)),
        3 => arg.insert(0, 'x'),
        4 => arg = arg.replacen(':', "x:", 1),
        5 => arg.push(':'),
        6 => arg.insert(arg.find(':').unwrap_or(0), 'e'),
        7 => arg = arg.replacen(':', "e400:", 1),
        8 => arg = format!("nan{}", &arg[arg.find(':').unwrap_or(0)..]),
        9 => arg = format!("1e300{}", &arg[arg.find(':').unwrap_or(0)..]),
        10 => arg = format!("{}{}", START + 5, &arg[arg.find(':').unwrap_or(0)..]),
        12 => arg = "x".repeat(3900 + random.below(200) as usize),
        // The only at-style time with an unambiguous meaning.
        11 if arg
            .find(':')
            .is_some_and(|at| arg[..at].bytes().all(|b| b.is_ascii_digit())) =>
        {
            arg = arg.replacen(':', "@", 1);
        }
        _ => {}
    }
    arg
}
