//! `tune`, in place and structural, and `resize`.

use kymo_rrd::resize::{Resize, resize};
use kymo_rrd::tune::{Tune, tune};

use super::made::{NAMES, Rng, TYPES, file, number, plain_archive};
use super::stock::{Stock, assert_same, unrotated, without_chance, words};

const FILES: usize = 60;
const TUNES: usize = 25;

fn options(rng: &mut Rng) -> String {
    let mut out = Vec::new();
    for _ in 0..1 + rng.below(4) {
        out.push(option(rng));
    }
    out.join(" ")
}

fn option(rng: &mut Rng) -> String {
    let name = if rng.one_in(15) {
        "nobody"
    } else {
        NAMES[rng.below(2) as usize]
    };
    let number = match number(rng) {
        number if number.is_empty() => "5".into(),
        number => number,
    };
    let fraction = rng.pick(&[
        "0.1", "0.5", "0.999", "0", "1", "1.5", "-1", "x", "0.5x", "nan",
    ]);
    match rng.below(19) {
        0 => format!("-h {name}:{number}"),
        1 => format!("--heartbeat={name}:{}", rng.between(-5, 5000)),
        2 => format!("-i {name}:{number}"),
        3 => format!("--maximum {name}:{number}"),
        4 => format!("-d {name}:{}", rng.pick(TYPES)),
        5 => format!(
            "-d {name}:{}",
            rng.pick(&["FOO", "gauge", "GAUGE5", "COMPUTED"])
        ),
        6 => format!(
            "-r {name}:{}",
            rng.pick(&["a", "b", "new-name", "x.y", "."])
        ),
        7 => format!("-p {number}"),
        8 => format!("-n {fraction}"),
        9 => format!("-w {}", rng.between(-1, 30)),
        10 => format!("-f {}", rng.between(-1, 30)),
        11 => format!("-x {fraction}"),
        12 => format!("-y {fraction}"),
        13 => format!("-z {fraction}"),
        14 => format!("-v {fraction}"),
        15 => format!("-s {fraction}"),
        16 => format!("-S {fraction}"),
        17 => format!("-b {name}"),
        _ => rng
            .pick(&["-h a", "-i a:", "-a :5", "-q", "--foo=1", "-b .", "-t 5"])
            .to_owned(),
    }
}

#[test]
fn tuned_files_are_rrdtools() {
    let mut rng = Rng(0x5eed_0004);
    let mut stock = Stock::start("rrd-tune");
    let (mut good, mut bad) = (0, 0);
    for i in 0..FILES {
        let made = file(&mut rng, &mut stock, &format!("{i}.rrd"));
        let mut rrd = stock.file(&made.name);
        for _ in 0..TUNES {
            let arguments = format!("{} {}", made.name, options(&mut rng));
            let answer = stock.ask(&format!("tune {arguments}"));
            let words = words(&arguments);
            let ours = Tune::parse(&words).and_then(|request| tune(&mut rrd, &request));
            assert_eq!(
                answer.error,
                ours.err().map(|error| error.text),
                "tune {arguments}"
            );
            // Changes before an error stay.
            assert_same(&stock.file(&made.name), &rrd, &arguments);
            if answer.error.is_none() {
                good += 1
            } else {
                bad += 1
            }
        }
    }
    assert!(good > 100 && bad > 100, "{good} good, {bad} bad");
}

fn operations(rng: &mut Rng, step: u64) -> String {
    let mut out = Vec::new();
    if rng.one_in(5) {
        let smaller = rng.pick(&["1", "2", "5", "10", "20", "30", "60", "7", "0"]);
        out.push(format!("-t {smaller}"));
    }
    for _ in 0..1 + rng.below(3) {
        let (index, count) = (rng.below(4), rng.below(25));
        out.push(match rng.below(12) {
            0 => format!("DEL:{}", rng.pick(&["b", "c-1", "nobody"])),
            1 => format!("DS:{}:GAUGE:60:0:U", rng.pick(&["new", "n2", "a"])),
            2 => format!(
                "DS:{}:COMPUTE:{}",
                rng.pick(&["new", "n2"]),
                rng.pick(&["a,1,+", "a,8,8,*,+"])
            ),
            3 => format!("DELRRA:{index}"),
            4 | 5 => plain_archive(rng, step),
            6 | 7 => format!("RRA#{index}:+{count}"),
            8 => format!("RRA#{index}:-{count}"),
            9 => format!("RRA#{index}:={count}"),
            10 => format!("RRA:HWPREDICT:{}:0.1:0.1:5", 6 + rng.below(9)),
            _ => rng
                .pick(&[
                    "DELRRA:-1",
                    "RRA#1",
                    "RRA#x:+1",
                    "RRA#0:*1",
                    "foo",
                    "DEL:",
                    "DS:",
                    "DELRRA:x",
                ])
                .to_owned(),
        });
    }
    out.join(" ")
}

#[test]
fn restructured_files_are_rrdtools() {
    let mut rng = Rng(0x5eed_0005);
    let mut stock = Stock::start("rrd-modify");
    let (mut good, mut bad) = (0, 0);
    for i in 0..12 * FILES {
        let made = file(&mut rng, &mut stock, &format!("{i}.rrd"));
        let mut rrd = stock.file(&made.name);
        let arguments = format!("{} {}", made.name, operations(&mut rng, made.step));
        let words = words(&arguments);
        if is_left_to_chance(&words) {
            continue;
        }
        let before = rrd.clone();
        let ours = Tune::parse(&words).and_then(|request| tune(&mut rrd, &request));
        let answer = stock.ask(&format!("tune {arguments}"));
        let error = ours.err().map(|error| error.text);
        assert_eq!(answer.error, error, "tune {arguments}");
        if error.is_some() {
            bad += 1;
            assert_same(&before, &rrd, &arguments);
            continue;
        }
        good += 1;
        let mut file = without_chance(stock.file(&made.name));
        if deletes_archives(&words) {
            // rrdtool takes the rows of later archives from the wrong place.
            file.cells.clone_from(&rrd.cells);
        }
        assert_same(&file, &without_chance(rrd), &format!("tune {arguments}"));
    }
    assert!(good > 100 && bad > 50, "{good} good, {bad} bad");
}

/// rrdtool continues after a bad `DS:` with random bytes of its memory. When it deletes an archive, later ones get
/// wrong rows, and everything derived from those is wrong, too.
fn is_left_to_chance(words: &[&[u8]]) -> bool {
    let bad_source = |word: &&[u8]| word.starts_with(b"DS:a:");
    let sources = words.iter().filter(|word| word.starts_with(b"DS:")).count();
    let adds = words.iter().any(|word| word.starts_with(b"RRA:"));
    let grows = |word: &&[u8]| word.starts_with(b"RRA#") && !word.contains(&b'-');
    let mixed = deletes_archives(words) && (adds || words.iter().any(grows));
    sources > 1 || words.iter().any(bad_source) || mixed
}

/// True if an archive may be deleted: row counts are below 25, and so are the counts taken from them.
fn deletes_archives(words: &[&[u8]]) -> bool {
    let deletes = |word: &&[u8]| {
        let shrinks = word.starts_with(b"RRA#") && word.contains(&b'-');
        word.starts_with(b"DELRRA:") || word.ends_with(b":=0") || shrinks
    };
    words.iter().any(deletes)
}

#[test]
fn rows_of_other_archives_survive_a_deletion() {
    let mut rng = Rng(0x5eed_000a);
    let mut stock = Stock::start("rrd-delete");
    for i in 0..FILES {
        let made = file(&mut rng, &mut stock, &format!("{i}.rrd"));
        let before = unrotated(stock.file(&made.name));
        let deleted = rng.below(before.header.rra.len() as u64) as usize;
        let (mut after, argument) = (before.clone(), format!("DELRRA:{deleted}"));
        let words = [made.name.as_bytes(), argument.as_bytes()];
        let request = Tune::parse(&words).expect("it is fine");
        tune(&mut after, &request).expect("it is fine");
        let [from, to] = [deleted, deleted + 1].map(|archive| {
            let rows: u64 = before.header.rra[..archive]
                .iter()
                .map(|rra| rra.row_cnt)
                .sum();
            rows as usize * before.header.ds.len()
        });
        let kept = before.cells[..from].iter().chain(&before.cells[to..]);
        let bits = |cell: &f64| cell.to_bits();
        let kept: Vec<u64> = kept.map(bits).collect();
        assert_eq!(kept, after.cells.iter().map(bits).collect::<Vec<_>>());
    }
}

#[test]
fn resized_files_are_rrdtools() {
    let mut rng = Rng(0x5eed_0006);
    let mut stock = Stock::start("rrd-resize");
    for i in 0..4 * FILES {
        let made = file(&mut rng, &mut stock, &format!("{i}.rrd"));
        let rrd = stock.file(&made.name);
        let index = rng.pick(&["0", "0", "1", "2", "0x1", "9", "-1", "x"]);
        let way = rng.pick(&["GROW", "SHRINK", "SHRINK", "shrink"]);
        let rows = rng.pick(&["1", "2", "3", "5", "9", "15", "0", "-3", "010"]);
        let arguments = format!("{} {index} {way} {rows}", made.name);
        let answer = stock.ask(&format!("resize {arguments}"));
        let ours = Resize::parse(&words(&arguments)).and_then(|how| resize(&rrd, how));
        match ours {
            Ok(ours) => {
                assert_eq!(answer.error, None, "{arguments}");
                assert_same(&stock.file("resize.rrd"), &ours, &arguments);
            }
            Err(error) => assert_eq!(answer.error, Some(error.text), "{arguments}"),
        }
    }
}
