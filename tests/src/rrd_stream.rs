//! Seeded streams of rrdcached commands over seeded .rrd files, which a differential test sends to two daemons.
//!
//! Faults of stock limit the contents of a stream, see [`Holds`].

use std::fmt::Write as _;
use std::path::Path;

use crate::rrdtool::Pipe;

/// Begin of the files.
const BIRTH: i64 = 1_000_000_000;

/// splitmix64
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next_u64() % n.max(1)
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of the items.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len() as u64) as usize]
    }

    /// A number between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        self.below(1 << 53) as f64 / (1u64 << 53) as f64
    }
}

/// A file of the stream's commands.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Name in the commands.
    pub name: String,
    /// Path below the base.
    pub path: String,
    /// Arguments of `rrdtool create` or `CREATE` after the name, step included.
    pub create: Vec<String>,
    kinds: Vec<&'static str>,
    /// The last good value of each source, for counters.
    counts: Vec<u128>,
    step: f64,
    last: f64,
    /// Values in the stream's updates.
    values: u64,
    /// Made by a CREATE of the stream, so that its rows begin anywhere.
    pub by_command: bool,
    /// A FORGET was sent. From then on stock compares stamps with the whole second of the file's last update, accepts
    /// stamps that are too old by a fraction, cannot write their values, and drops their neighbours.
    forgotten: bool,
}

/// A step of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A request.
    Line(Vec<u8>),
    /// Waits until everything that a FLUSHALL began is done.
    Settle,
}

/// Contents of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Everything except values that stock accepts and then cannot write: it drops them and their neighbours.
    All,
    /// As `All`, but stamps to be refused are too old by their whole second. Others stock accepts after all when it
    /// replays its journal, cannot write their values, and drops their neighbours.
    AllThatOutlivesARestart,
    /// Full of unwritable values, and without other commands whose answers depend on dropped values.
    Unwritable,
}

/// One stream and its files.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Seed of the stream.
    pub seed: u64,
    /// Folder of its files, below the base.
    pub folder: String,
    /// The files.
    pub subjects: Vec<Subject>,
    /// The commands.
    pub items: Vec<Item>,
    /// Contents of the stream.
    pub holds: Holds,
}

/// Makes a stream of this many commands in its own folder.
pub fn stream(seed: u64, folder: &str, commands: usize, holds: Holds) -> Stream {
    let mut random = Random(seed);
    let plain = holds == Holds::Unwritable;
    let files = 2 + random.below(4) as usize;
    let make = |index| subject(&mut random, folder, &format!("f{index}.rrd"), plain);
    let subjects: Vec<Subject> = (0..files).map(make).collect();
    let mut stream = Stream {
        seed,
        folder: folder.to_string(),
        subjects,
        items: Vec::new(),
        holds,
    };
    while stream.items.len() < commands {
        match holds {
            Holds::Unwritable => unwritable_command(&mut random, &mut stream),
            _ => command(&mut random, &mut stream),
        }
    }
    // No file stays suspended for the streams that follow.
    push(&mut stream, "RESUMEALL".to_string());
    stream
}

/// Makes the stream's files below `base`, with stock's rrdtool.
pub fn create_files(stream: &Stream, base: &Path, pipe: &mut Pipe) {
    let folder = base.join(&stream.folder);
    std::fs::create_dir_all(folder.join("adir.rrd")).expect("a folder");
    for subject in stream.subjects.iter().filter(|each| !each.by_command) {
        let path = base.join(&subject.path);
        pipe.must(&format!(
            "create {} {}",
            path.display(),
            subject.create.join(" ")
        ));
    }
    let first = base.join(&stream.subjects[0].path);
    let whole = std::fs::read(first).expect("the first file");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).expect("a file");
    };
    write("short.rrd", &whole[..whole.len() - 9]);
    write("stub.rrd", &whole[..100]);
    write("garbage.rrd", &[b'x'; 4000]);
    write("empty.rrd", b"");
    write("plain", b"");
}

fn push(stream: &mut Stream, line: String) {
    stream.items.push(Item::Line(line.into_bytes()));
}

const KINDS: &[&str] = &[
    "GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "DDERIVE",
];
const CFS: &[&str] = &["AVERAGE", "MIN", "MAX", "LAST"];

fn subject(random: &mut Random, folder: &str, file: &str, plain: bool) -> Subject {
    let step = [1u64, 5, 10, 60, 300][random.below(5) as usize];
    let mut create = vec![
        "-b".to_string(),
        (BIRTH + random.below(1000) as i64).to_string(),
        "-s".to_string(),
        step.to_string(),
    ];
    let born: f64 = create[1].parse().expect("a number");
    let mut kinds = Vec::new();
    for index in 0..1 + random.below(4) {
        let kind = random.pick(KINDS);
        let heartbeat = [step, 2 * step, 3 * step, 1000 * step][random.below(4) as usize];
        let (low, high) =
            [("U", "U"), ("0", "U"), ("-100", "1e6"), ("0", "100")][random.below(4) as usize];
        create.push(format!("DS:d{index}:{kind}:{heartbeat}:{low}:{high}"));
        kinds.push(kind);
    }
    if random.once_in(4) {
        let rpn = random.pick(&[
            "d0,2,*",
            "d0,UN,0,d0,IF",
            "d0,d0,ADDNAN,8,/",
            "d0,100,GT,1,0,IF",
        ]);
        create.push(format!("DS:c:COMPUTE:{rpn}"));
    }
    for _ in 0..1 + random.below(5) {
        let xff = random.pick(&["0", "0.5", "0.99"]);
        let cf = random.pick(CFS);
        let steps = [1, 1, 2, 3, 6, 7][random.below(6) as usize];
        create.push(format!("RRA:{cf}:{xff}:{steps}:{}", 3 + random.below(30)));
    }
    if !plain && random.once_in(6) {
        let kind = random.pick(&["HWPREDICT", "MHWPREDICT"]);
        create.push(format!("RRA:{kind}:30:0.1:0.0035:{}", 5 + random.below(8)));
    }
    let path = format!("{folder}/{file}");
    let spelled = [
        path.clone(),
        path.clone(),
        format!("./{path}"),
        format!("{folder}//{file}"),
        format!("{folder}/./{file}"),
    ];
    let name = spelled[random.below(5) as usize].clone();
    let counts = vec![0; kinds.len()];
    Subject {
        name,
        path,
        create,
        kinds,
        counts,
        step: step as f64,
        last: born,
        values: 0,
        by_command: false,
        forgotten: false,
    }
}

/// One command of any kind.
fn command(random: &mut Random, stream: &mut Stream) {
    let folder = stream.folder.clone();
    let whole = stream.holds == Holds::AllThatOutlivesARestart;
    let at = random.below(stream.subjects.len() as u64) as usize;
    let file = &mut stream.subjects[at];
    let name = file.name.clone();
    let line = match random.below(100) {
        0..50 => update(random, file, whole),
        50..55 => format!("FLUSH {name}"),
        55..61 => format!("PENDING {name}"),
        61..68 => format!("FETCH {}", range(random, file)),
        68..72 => format!("FETCHBIN {}", range(random, file)),
        72..75 => format!("LAST {name}"),
        75..78 => format!(
            "FIRST {name} {}",
            random.pick(&["0", "0", "1", "2", "9", "x", "-1"])
        ),
        78..81 => format!("INFO {name}"),
        81..83 => {
            file.forgotten = true;
            format!("FORGET {name}")
        }
        83..85 => random
            .pick(&["QUEUE", "STATS", "PING", "STATS x", "ping"])
            .to_string(),
        85..88 => format!("{} {name}", random.pick(&["SUSPEND", "RESUME"])),
        88 => random
            .pick(&["SUSPENDALL", "RESUMEALL", "suspendall"])
            .to_string(),
        89 => return flush_all(stream),
        90 => list(random, &folder),
        91..93 => return create(random, stream),
        93..96 => about_nothing(random, &folder),
        _ => odd_line(random, &folder, &name),
    };
    push(stream, line);
}

fn flush_all(stream: &mut Stream) {
    push(stream, "FLUSHALL".to_string());
    stream.items.push(Item::Settle);
}

fn list(random: &mut Random, folder: &str) -> String {
    let path = random.pick(&[
        "",
        "/f0.rrd",
        "/nosuch",
        "/*.rrd",
        "/f?.rrd",
        "/../x",
        "/adir.rrd",
    ]);
    let how = random.pick(&["", "", "RECURSIVE "]);
    format!("LIST {how}/{folder}{path}")
}

/// Commands about missing or broken files.
fn about_nothing(random: &mut Random, folder: &str) -> String {
    let name = random.pick(&["nosuch", "adir", "short", "stub", "garbage", "d/nosuch"]);
    let path = format!("{folder}/{name}.rrd");
    match random.below(11) {
        0 => format!("UPDATE {path} 1000:1"),
        1 => format!("FLUSH {path}"),
        2 => format!("PENDING {path}"),
        3 => format!("FETCH {path} AVERAGE 1000000000 1000001000"),
        4 => format!("LAST {path}"),
        5 => format!("FIRST {path} 0"),
        6 => format!("INFO {path}"),
        7 => format!("FORGET {path}"),
        8 => format!("SUSPEND {path}"),
        9 => format!("RESUME {path}"),
        _ => format!("FETCHBIN {path} AVERAGE 1000000000 1000001000"),
    }
}

/// Malformed lines.
fn odd_line(random: &mut Random, folder: &str, name: &str) -> String {
    match random.below(24) {
        0 => String::new(),
        1 => " ".to_string(),
        2 => "FOO".to_string(),
        3 => format!("foo {name} bar"),
        4 => "UPDATE".to_string(),
        5 => format!("UPDATE {name}"),
        6 => format!("UPDATE  {name} 1:1"),
        7 => format!("UPDATE {name}  1:1"),
        8 => format!("PENDING {name} more"),
        9 => format!("FETCH {name}"),
        10 => format!("FETCH {name} NOCF 1000000000 1000000100"),
        11 => format!("FETCH {name} AVERAGE x"),
        12 => format!("FETCH {name} AVERAGE 1000000000 12y"),
        13 => format!("FIRST {name}"),
        14 => "LAST".to_string(),
        15 => format!(
            "HELP {}",
            random.pick(&["UPDATE", "flush", "FETCH", "Pending", "BATCH", "LIST"])
        ),
        16 => format!("PENDING {}", escaped(random, name)),
        17 => format!("FLUSH {}", escaped(random, name)),
        18 => "CREATE".to_string(),
        19 => format!(
            "CREATE {folder}/cbad{}.rrd {}",
            random.below(3),
            bad_create(random)
        ),
        20 => "LIST".to_string(),
        21 => format!("FETCH {name} AVERAGE 1000000100 1000000000"),
        22 => "SUSPEND".to_string(),
        _ => format!(
            "UPDATE {name} {}",
            random.pick(&["N:1", "x:1", ":1", "1", "", "@1:1", "1000:"])
        ),
    }
}

fn bad_create(random: &mut Random) -> String {
    random
        .pick(&[
            "",
            "DS:a:GAUGE:60:U:U",
            "-b 1000000000 -s 0 DS:a:GAUGE:60:U:U RRA:AVERAGE:0.5:1:5",
            "-s 10 -b 5 DS:a:GAUGE:60:U:U RRA:AVERAGE:0.5:1:5",
            "-b 1000000000 -s x DS:a:GAUGE:60:U:U RRA:AVERAGE:0.5:1:5",
            "-b 1000000000 DS:a:NOSUCH:60:U:U RRA:AVERAGE:0.5:1:5",
            "-b 1000000000 DS:a:GAUGE:60:9:1 RRA:AVERAGE:0.5:1:5",
            "-b 1000000000 DS:a:GAUGE:60:U:U RRA:AVERAGE:1.5:1:5",
            "-b 1000000000 DS:a:GAUGE:60:U:U RRA:NOCF:0.5:1:5",
            "-b 1000000000 DS:a:GAUGE:60:U:U DS:a:GAUGE:60:U:U RRA:AVERAGE:0.5:1:5",
            "-b 1000000000 DS:a.b:GAUGE:60:U:U RRA:AVERAGE:0.5:1:5",
            "-b 1000000000 DS:a:GAUGE:60:U:U RRA:AVERAGE:0.5:0:5",
            "-b 1000000000 DS:a:GAUGE:60:U:U RRA:AVERAGE:0.5:1:0",
        ])
        .to_string()
}

/// Escapes some bytes of the name by a backslash.
fn escaped(random: &mut Random, name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if random.once_in(4) {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

/// A CREATE of a new file, which joins the others, or of an existing one.
fn create(random: &mut Random, stream: &mut Stream) {
    let number = stream.subjects.len();
    let fresh = random.below(3) > 0;
    let no = random.pick(&["", "", "-O "]);
    let mut made = subject(random, &stream.folder, &format!("c{number}.rrd"), true);
    made.by_command = true;
    if !fresh {
        // Never over a file that stock's rrdtool made: its rows would begin elsewhere on each side.
        let old = stream.subjects.iter().find(|each| each.by_command);
        let Some(old) = old.filter(|_| no == "-O ") else {
            return;
        };
        // With the same definition, since this CREATE makes the file if the first one was refused.
        made = old.clone();
    }
    push(
        stream,
        format!("CREATE {} {no}{}", made.name, made.create.join(" ")),
    );
    if fresh {
        stream.subjects.push(made);
    }
}

/// Words of a range: `FILE CF START END [COLUMN...]`.
fn range(random: &mut Random, file: &Subject) -> String {
    let cf = random.pick(&[
        "AVERAGE",
        "AVERAGE",
        "MIN",
        "MAX",
        "LAST",
        "average",
        "HWPREDICT",
        "FAILURES",
    ]);
    let span = file.step * (1.0 + random.unit() * 60.0);
    let end = file.last - (random.unit() - 0.3) * span;
    let (start, end) = ((end - span) as i64, end as i64);
    let mut line = format!("{} {cf} {start} {end}", file.name);
    if random.once_in(5) {
        let _ = write!(line, " d0");
    }
    line
}

/// Most values of a file. kymo saves 64 values in a block and counts them as written; stock has not written them.
const VALUES_MAX: u64 = 60;

/// An UPDATE with mostly good stamps, and with writable values. `whole`: bad stamps have no fraction.
fn update(random: &mut Random, file: &mut Subject, whole: bool) -> String {
    let whole = whole || file.forgotten;
    let word = random.pick(&["UPDATE", "update", "Update"]);
    let mut line = format!("{word} {}", file.name);
    let many = if random.once_in(12) {
        20
    } else {
        1 + random.below(4)
    };
    let many = many.min(VALUES_MAX - file.values);
    if many == 0 {
        return format!("LAST {}", file.name);
    }
    file.values += many;
    for _ in 0..many {
        let stamp = match random.below(40) {
            // Older than the last stamp or equal to it: refused on arrival.
            0 => {
                let back = random.unit() * 3.0 * file.step;
                past(random, file.last - back, whole)
            }
            1 => "12".to_string(),
            2 => past(random, file.last, whole),
            3 => random.pick(&["", "x", "N", "1e9x", "-5"]).to_string(),
            _ => advance(random, file),
        };
        let _ = write!(line, " {stamp}");
        for index in 0..file.kinds.len() {
            let _ = write!(line, ":{}", value(random, file, index));
        }
    }
    line
}

fn advance(random: &mut Random, file: &mut Subject) -> String {
    let steps = [
        0.3,
        0.9,
        1.0,
        1.0,
        1.0,
        1.5,
        3.0,
        1.0 + random.unit(),
        40.0,
        400.0,
    ];
    let among = if random.once_in(6) { 10 } else { 8 };
    let gap = steps[random.below(among) as usize] * file.step;
    let next = file.last + gap;
    let text = match random.below(3) {
        0 => format!("{}", next.ceil()),
        _ => stamp_text(random, next),
    };
    file.last = text.parse().expect("our own number");
    text
}

/// A stamp that is not newer than the last one.
fn past(random: &mut Random, stamp: f64, whole: bool) -> String {
    match whole {
        true => format!("{}", stamp.floor()),
        false => stamp_text(random, stamp),
    }
}

fn stamp_text(random: &mut Random, stamp: f64) -> String {
    match random.below(3) {
        0 => format!("{stamp:.3}"),
        _ => format!("{stamp:.6}"),
    }
}

/// A value that its source accepts.
fn value(random: &mut Random, file: &mut Subject, index: usize) -> String {
    if random.once_in(12) {
        return "U".to_string();
    }
    match file.kinds[index] {
        "COUNTER" => counter(random, &mut file.counts[index]),
        "DERIVE" if random.once_in(4) => format!("-{}", random.below(100_000)),
        "DERIVE" => counter(random, &mut file.counts[index]),
        _ => number(random),
    }
}

/// A counter that rises, wraps, or jumps.
fn counter(random: &mut Random, count: &mut u128) -> String {
    *count = match random.below(12) {
        0 => (1 << 32) - u128::from(random.below(1000)),
        1 => (1 << 64) - u128::from(random.below(1000)),
        2 => u128::from(random.below(1000)),
        3 => u128::from(random.next_u64()) * 1000,
        _ => *count + u128::from(random.below(1_000_000)),
    };
    let zeros = if random.once_in(10) { "00" } else { "" };
    format!("{zeros}{count}")
}

/// Numbers in the forms that clients print, and in wrong ones.
fn number(random: &mut Random) -> String {
    let value = (random.unit() - 0.3) * 10f64.powi(random.below(12) as i32 - 4);
    match random.below(14) {
        0 => "nan".to_string(),
        1 => "-0".to_string(),
        2 => format!("{value:.17}"),
        3 => format!("{value:e}"),
        4 => format!("{value:.20E}"),
        5 => format!("{}", random.next_u64()),
        6 => format!("{}.5e-{}", random.below(1000), random.below(20)),
        7 => format!("{:.6}", random.unit() * 1e15),
        8 => ".5".to_string(),
        9 => format!("{}", random.below(200)),
        _ => format!("{value:.6}"),
    }
}

/// One command with unwritable values: stamps are right, values are not.
fn unwritable_command(random: &mut Random, stream: &mut Stream) {
    let at = random.below(stream.subjects.len() as u64) as usize;
    let file = &mut stream.subjects[at];
    let line = match random.below(10) {
        0 => format!("FLUSH {}", file.name),
        1 => "QUEUE".to_string(),
        _ => unwritable_update(random, file),
    };
    push(stream, line);
}

fn unwritable_update(random: &mut Random, file: &mut Subject) -> String {
    let mut line = format!("UPDATE {}", file.name);
    for _ in 0..1 + random.below(4) {
        let mut fields: Vec<String> = (0..file.kinds.len())
            .map(|index| value(random, file, index))
            .collect();
        if random.once_in(3) {
            let index = random.below(fields.len() as u64) as usize;
            match random.below(4) {
                0 => fields.push("1".to_string()),
                1 if fields.len() > 1 => drop(fields.pop()),
                _ => {
                    fields[index] = random
                        .pick(&[
                            "foo", "", "1x", "1,5", "--1", "0x10", "1e", "1e999", "12:", "@", "u",
                            "Ux", "1.5",
                        ])
                        .to_string()
                }
            }
        }
        let _ = write!(line, " {}:{}", advance(random, file), fields.join(":"));
    }
    line
}

/// File and values of an UPDATE line.
pub fn values(line: &[u8]) -> Option<(String, Vec<String>)> {
    let text = String::from_utf8_lossy(line).into_owned();
    let mut words = text.split(' ');
    let word = words.next()?;
    if !word.eq_ignore_ascii_case("update") {
        return None;
    }
    let name = words.next()?.to_string();
    Some((name, words.map(String::from).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_stream() {
        let lines = |seed| stream(seed, "s", 50, Holds::All).items;
        assert_eq!(lines(7), lines(7));
        assert_ne!(lines(7), lines(8));
    }
}
