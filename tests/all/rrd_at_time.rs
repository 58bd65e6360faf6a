//! Time expressions, parsed by stock rrdtool and by kymo: random ones, good and bad,
//! in several zones, at hours that clocks skip or show twice. Stock runs in one pipe
//! for each zone, so that the C library's state from call to call is compared, too.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use kymo_rrd::at_time;
use kymo_rrd::calendar::Calendar;

/// An end before every start: rrdtool's complaint then names both.
const END: &str = "19800101";
const EXPRESSIONS: usize = 10_000;

struct Stock {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Stock {
    fn start(zone: &str) -> Stock {
        let mut command = Command::new("rrdtool");
        command
            .arg("-")
            .env("TZ", zone)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("rrdtool");
        let answers = BufReader::new(child.stdout.take().expect("stdout"));
        Stock { child, answers }
    }

    /// rrdtool's complaint about a fetch from `start`.
    fn complaint(&mut self, start: &str) -> String {
        let line = format!("fetch nofile MAX -s \"{start}\" -e \"{END}\"\n");
        let stdin = self.child.stdin.as_mut().expect("stdin");
        stdin.write_all(line.as_bytes()).expect("a line");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("an answer");
        answer.strip_suffix('\n').unwrap_or(&answer).to_string()
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// kymo's complaint. Makes the same calls as rrdtool, in the same order.
fn complaint(start: &str, now: i64, calendar: &mut Calendar) -> String {
    let mut parse = |text: &str| at_time::parse(text.as_bytes(), now, calendar);
    parse("end-24h").expect("good");
    parse("now").expect("good");
    let start = match parse(start) {
        Ok(start) => start,
        Err(error) => return format!("ERROR: start time: {error}"),
    };
    let end = parse(END).expect("good");
    match at_time::range(&start, &end, calendar) {
        Err(error) => format!("ERROR: {error}"),
        Ok((start, _)) if start < 315_360_000 => {
            "ERROR: the first entry to fetch should be after 1980".into()
        }
        Ok((start, end)) if end < start => {
            format!("ERROR: start ({start}) should be less than end ({end})")
        }
        Ok(_) => "ERROR: opening 'nofile': No such file or directory".into(),
    }
}

/// True if a time is beyond year 9999: from there on kymo's zones repeat.
fn is_far(complaint: &str) -> bool {
    let number = complaint
        .strip_prefix("ERROR: start (")
        .and_then(|rest| rest.split(')').next());
    number.is_some_and(|number| number.len() > "253402300799".len())
}

fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock")
        .as_secs() as i64
}

/// A small generator that gives the same expressions each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }

    fn number(&mut self) -> String {
        match self.roll(6) {
            0 => self.roll(10).to_string(),
            1 => self.roll(100).to_string(),
            2 => format!("{:02}", self.roll(60)),
            3 => self.roll(5000).to_string(),
            4 => self.roll(2_000_000_000).to_string(),
            _ => self
                .pick(&["4294967297", "2147483648", "00", "08", "1", "6", "5"])
                .into(),
        }
    }

    fn offset(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..=self.roll(3) {
            text += self.pick(&["+", "-", "", " - ", "+"]);
            text += &self.number();
            text += self.pick(&UNITS);
        }
        text
    }

    fn date(&mut self) -> String {
        match self.roll(9) {
            0 => format!("{}/{}/{}", self.roll(14), self.roll(33), self.roll(140)),
            1 => format!(
                "{}.{}.{}",
                self.roll(33),
                self.roll(14),
                1960 + self.roll(100)
            ),
            2 => format!(
                "{:04}{:02}{:02}",
                1970 + self.roll(90),
                1 + self.roll(12),
                1 + self.roll(31)
            ),
            3 => format!(
                "{} {} {}",
                self.pick(&MONTHS),
                self.roll(33),
                1960 + self.roll(90)
            ),
            4 => format!("{} {}", self.pick(&MONTHS), self.roll(33)),
            5 => (300_000_000 + self.roll(3_000_000_000)).to_string(),
            6 => self
                .pick(&[
                    "20260329", "20261025", "20260308", "20261101", "20270328", "20261004",
                    "20260405",
                ])
                .into(),
            7 => format!("{}.{}", self.roll(33), self.roll(14)),
            _ => self.pick(&DAYS).into(),
        }
    }

    fn time(&mut self) -> String {
        match self.roll(5) {
            0 => format!("{}:{:02}", self.roll(26), self.roll(62)),
            1 => format!(
                "{}{}",
                self.roll(14),
                self.pick(&["am", "pm", " AM", " Pm", ""])
            ),
            2 => format!(
                "{}:{:02}{}",
                self.roll(14),
                self.roll(60),
                self.pick(&["am", "pm"])
            ),
            3 => self.pick(&["noon", "midnight", "teatime"]).into(),
            _ => format!(
                "0{}:{}",
                1 + self.roll(3),
                self.pick(&["00", "15", "30", "59"])
            ),
        }
    }

    fn expression(&mut self) -> String {
        let gap = self.pick(&[" ", " ", "_", ", ", ""]).to_string();
        let mut text = match self.roll(10) {
            0 => self
                .pick(&["now", "n", "end", "e", "start", "epoch", "", "now "])
                .into(),
            1 => self.time(),
            2 | 3 => self.date(),
            4 | 5 => format!("{}{gap}{}", self.time(), self.date()),
            6 | 7 => format!("{}{gap}{}", self.date(), self.time()),
            8 => self.offset(),
            _ => format!(
                "{} {}",
                self.pick(&["x", "5", "jan", "am", ":", "/", "#", "12:", "1/", "3."]),
                self.number()
            ),
        };
        if self.roll(2) == 0 {
            text += self.pick(&["", " "]);
            text += &self.offset();
        }
        if self.roll(30) == 0 {
            text += self.pick(&[" x", "?", " 5", "%", " now", "\t"]);
        }
        text
    }
}

const UNITS: [&str; 30] = [
    "s",
    "sec",
    "second",
    "seconds",
    "m",
    "min",
    "minute",
    "minutes",
    "h",
    "hr",
    "hour",
    "hours",
    "d",
    "day",
    "days",
    "w",
    "wk",
    "week",
    "weeks",
    "mon",
    "month",
    "months",
    "y",
    "yr",
    "year",
    "years",
    "",
    " m",
    "M",
    "fortnight",
];
const MONTHS: [&str; 8] = [
    "jan", "February", "MAR", "may", "june", "sept", "Oct", "dec",
];
const DAYS: [&str; 8] = [
    "monday",
    "Tue",
    "sun",
    "saturday",
    "today",
    "yesterday",
    "tomorrow",
    "friday",
];

#[test]
fn times_are_read_as_stock_reads_them() {
    let zones = [
        "UTC",
        "Europe/Zurich",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
        "Europe/Dublin",
        "America/St_Johns",
        "Africa/Casablanca",
        "Pacific/Auckland",
    ];
    let mut wrong = Vec::new();
    for (i, zone) in zones.into_iter().enumerate() {
        let known = TimeZone::get(zone).expect("a zone");
        let (mut stock, mut calendar) = (Stock::start(zone), Calendar::new(known));
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 + i as u64);
        for _ in 0..EXPRESSIONS {
            let text = dice.expression();
            let before = now();
            let expected = stock.complaint(&text);
            let (mut got, fresh) = (String::new(), calendar.clone());
            // time() may lag behind the clock by a tick.
            for second in before - 1..=now() {
                calendar = fresh.clone();
                got = complaint(&text, second, &mut calendar);
                if got == expected {
                    break;
                }
            }
            if got != expected && !is_far(&expected) {
                wrong.push(format!("{zone}: `{text}`: {got}; stock: {expected}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}
