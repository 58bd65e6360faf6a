//! Gaps, missed ticks, events and missing numbers in each format, from a scripted source.

use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_kernel::source::{self, kind};
use kymo_query::source::{Moment, Source, Step};
use kymo_view::options::Format;
use kymo_view::sink::Memory;
use kymo_view::time::Span;
use kymo_view::{Options, play};

/// A step of the source: a sample with these texts, or a remark.
enum Script {
    Sample {
        secs: u64,
        missed: u32,
        texts: &'static [(u8, &'static str)],
    },
    Gap,
    Event(u64),
}

struct Scripted {
    steps: std::vec::IntoIter<Script>,
    tracks: Tracks,
    context: Context,
}

impl Scripted {
    fn new(steps: Vec<Script>) -> Scripted {
        let mut context = Context::default();
        context.set("host", "vm");
        context.set("tz", "+0100");
        Scripted {
            steps: steps.into_iter(),
            tracks: Tracks::default(),
            context,
        }
    }
}

fn moment(secs: u64, missed: u32) -> Moment {
    let ns = secs * 1_000_000_000;
    Moment {
        seq: secs,
        real_ns: (ns + 1_795_287_600_000_000_000) as i64,
        mono_ns: ns,
        boot_ns: ns,
        missed,
        warmup: false,
    }
}

impl Source for Scripted {
    fn next(&mut self) -> Result<Option<Step>, String> {
        Ok(self.steps.next().map(|step| match step {
            Script::Gap => Step::Gap("a block is damaged".into()),
            Script::Event(secs) => Step::Event(moment(secs, 0), "slow read: \x1b[31m".into()),
            Script::Sample {
                secs,
                missed,
                texts,
            } => {
                self.tracks.begin_sample();
                for &(kind, text) in texts {
                    let grammar = source::of(kind).expect("a known kind").grammar;
                    self.tracks
                        .get_mut(kind)
                        .put_text(0, b"", text.as_bytes(), grammar);
                }
                Step::Sample(moment(secs, missed))
            }
        }))
    }

    fn tracks(&self) -> &Tracks {
        &self.tracks
    }

    fn context(&self) -> &Context {
        &self.context
    }
}

const OLD_DISK: &[&str] = &[
    "   8 0 sda 10 0 0 0 0 0 0 0 0 0 0\n",
    "   8 0 sda 15 0 0 0 0 0 0 0 0 0 0\n",
    "   8 0 sda 35 0 0 0 0 0 0 0 0 0 0\n",
];

fn sample(secs: u64, missed: u32, text: usize) -> Script {
    const TEXTS: [&[(u8, &str)]; 4] = [
        &[(kind::DISKSTATS, OLD_DISK[0])],
        &[(kind::DISKSTATS, OLD_DISK[1])],
        &[(kind::DISKSTATS, OLD_DISK[2])],
        &[],
    ];
    Script::Sample {
        secs,
        missed,
        texts: TEXTS[text],
    }
}

fn shown(
    letters: &str,
    format: Format,
    change: impl FnOnce(&mut Options),
    steps: Vec<Script>,
) -> String {
    let mut options = Options::new(letters).expect("letters");
    options.set_format(format).expect("a format");
    change(&mut options);
    let mut memory = Memory::default();
    play(&mut Scripted::new(steps), &options, &mut memory).expect("played");
    let files: String = memory
        .files
        .iter()
        .map(|(name, bytes)| format!("{name}:\n{}", String::from_utf8_lossy(bytes)))
        .collect();
    String::from_utf8_lossy(&memory.stream).into_owned() + &files
}

fn story() -> Vec<Script> {
    vec![
        Script::Gap,
        sample(0, 0, 0),
        sample(1, 0, 1),
        Script::Event(1),
        sample(6, 3, 2),
        Script::Gap,
        sample(7, 0, 0),
        sample(8, 0, 1),
    ]
}

#[test]
fn gaps_and_events() {
    let brief = shown(
        "d",
        Format::Brief,
        |options| options.header = false,
        story(),
    );
    assert_eq!(
        brief,
        "      0      5      0      0 \n# 20:00:01 slow read: \\x1b[31m\n\n      0      4      0      0 \n\n      0      5      0      0 \n"
    );
    let plot = shown("d", Format::Plot, |options| options.header = false, story());
    assert_eq!(
        plot,
        "20261121 20:00:01 5 0 5 0 0 0 0 0 0\n# event: slow read: \\x1b[31m\n# gap 3 ticks\n20261121 20:00:06 4 0 4 0 0 0 0 0 0\n# gap: a block is damaged\n20261121 20:00:08 5 0 5 0 0 0 0 0 0\n"
    );
    let json = shown("d", Format::Json, |_| {}, story());
    let lines: Vec<&str> = json.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(
        lines[1],
        "{\"time\":1795287601.000,\"event\":\"slow read: \\u001b[31m\"}"
    );
    assert_eq!(
        lines[2],
        "{\"time\":1795287606.000,\"event\":\"gap\",\"ticks\":3}"
    );
    assert_eq!(
        lines[4],
        "{\"time\":1795287606.000,\"event\":\"gap\",\"why\":\"a block is damaged\"}"
    );
}

/// The kernel lacks discards: plot shows 0, CSV an empty field, JSON no key.
#[test]
fn missing_numbers() {
    let steps = || vec![sample(0, 0, 0), sample(1, 0, 1)];
    let json = shown("d", Format::Json, |_| {}, steps());
    assert!(
        json.contains("\"disk.reads\":5,") && !json.contains("disk.discards"),
        "{json}"
    );
    let csv = shown("d", Format::Csv, |_| {}, steps());
    let table: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = |name: &str| {
        table[0]
            .iter()
            .position(|head| *head == name)
            .expect("a column")
    };
    assert_eq!(
        (table[1][at("disk.reads")], table[1][at("disk.discards")]),
        ("5", "")
    );
    assert_eq!(table[0].len(), table[1].len());
}

#[test]
fn counts_spans_and_limits() {
    let steps = || {
        vec![
            sample(0, 0, 0),
            sample(1, 0, 1),
            sample(6, 0, 2),
            sample(7, 0, 2),
        ]
    };
    let lines = |change: fn(&mut Options)| {
        shown(
            "d",
            Format::Plot,
            |options| {
                options.header = false;
                change(options)
            },
            steps(),
        )
        .lines()
        .count()
    };
    assert_eq!(lines(|_| {}), 3);
    assert_eq!(lines(|options| options.count = Some(2)), 2);
    assert_eq!(
        lines(|options| options.span =
            Span::parse(Some("20:00:02"), Some("20:00:06"), 0).expect("a span")),
        1
    );
    let per_interval = shown(
        "d",
        Format::Plot,
        |options| {
            options.header = false;
            options.per_interval = true
        },
        steps(),
    );
    assert!(
        per_interval
            .lines()
            .nth(1)
            .is_some_and(|line| line.starts_with("20261121 20:00:06 20 ")),
        "{per_interval}"
    );
}

/// A source that is read less often: it has no lines in between, and rates by its own time.
#[test]
fn slower_sources() {
    let steps = vec![
        sample(0, 0, 0),
        sample(1, 0, 3),
        sample(2, 0, 1),
        sample(3, 0, 3),
        sample(4, 0, 2),
    ];
    let plot = shown("d", Format::Plot, |options| options.header = false, steps);
    assert_eq!(
        plot,
        "20261121 20:00:02 2 0 2 0 0 0 0 0 0\n20261121 20:00:04 10 0 10 0 0 0 0 0 0\n"
    );
}

/// Each day has a file with a header; details have their own files.
#[test]
fn plot_files() {
    let day = 86_400;
    let steps = vec![sample(0, 0, 0), sample(1, 0, 1), sample(day, 0, 2)];
    let files = shown("dD", Format::PlotFiles, |_| {}, steps);
    let names: Vec<&str> = files
        .lines()
        .filter(|line| line.ends_with(':') && line.starts_with("vm-"))
        .collect();
    assert_eq!(
        names,
        [
            "vm-20261121.dsk:",
            "vm-20261121.tab:",
            "vm-20261122.dsk:",
            "vm-20261122.tab:"
        ]
    );
    assert_eq!(files.matches("#Date Time [DSK:sda]Name").count(), 2);
    assert_eq!(files.matches("#Date Time [DSK]ReadTot").count(), 2);
}
