//! Entry points for fuzzing whole files: hostile files, dumps and arguments. None may cause a panic or need much
//! more memory than its input; a file that is written can be read back.

use jiff::tz::TimeZone;

use crate::create::{Create, define};
use crate::dump::{DumpHead, dump};
use crate::fetch::{self, fetch};
use crate::header::Header;
use crate::info;
use crate::resize::{Resize, resize};
use crate::restore::{RangeCheck, restore};
use crate::rrd::Rrd;
use crate::source;
use crate::tune::{Tune, tune};

/// Files with more cells are neither filled nor dumped, as both would be slow.
const CELLS_MAX: u64 = 10_000;

/// Definitions of the file that fuzzing then damages.
const DEFINITIONS: [&[u8]; 6] = [
    b"DS:a:GAUGE:60:U:U",
    b"DS:b:COUNTER:60:0:U",
    b"DS:c:COMPUTE:a,b,+,2,*",
    b"RRA:AVERAGE:0.5:1:7",
    b"RRA:MAX:0.5:3:5",
    b"RRA:MHWPREDICT:9:0.1:0.1:3",
];
/// Words for arguments, chosen by the bytes of the input.
const WORDS: [&[u8]; 24] = [
    b" DS:",
    b" RRA:",
    b"a",
    b"b",
    b":",
    b"GAUGE",
    b"COMPUTE",
    b"a,b,+",
    b"60",
    b"U:U",
    b"AVERAGE",
    b"LAST",
    b"HWPREDICT",
    b"SEASONAL",
    b"FAILURES",
    b"0.5",
    b"0.1",
    b"7",
    b"3",
    b"1h",
    b"\n",
    b" DELRRA:",
    b" RRA#",
    b" -",
];

/// Parses any bytes as a file, and a valid file that they damage.
pub fn fuzz_header(input: &[u8]) {
    take_file(input);
    take_file(&spoilt(&sample().to_bytes(), input));
}

/// Parses any bytes as a dump, and a valid dump that they damage.
pub fn fuzz_restore(input: &[u8]) {
    take_dump(input);
    let (mut rrd, mut xml) = (sample(), Vec::new());
    let done = dump(
        &rrd.header,
        &mut rrd.cells,
        DumpHead::Dtd,
        &TimeZone::UTC,
        &mut xml,
    );
    assert_eq!(done, Ok(()), "a file cannot be dumped");
    take_dump(&spoilt(&xml, input));
}

/// Parses any words as arguments of create, and applies tune and resize to the created file.
pub fn fuzz_create_args(input: &[u8]) {
    take_arguments(input);
    let words = input
        .iter()
        .map(|&byte| WORDS[usize::from(byte) % WORDS.len()]);
    take_arguments(&words.collect::<Vec<_>>().concat());
    let good = DEFINITIONS.join(&b' ');
    take_arguments(&[&good, &b" "[..], input].concat());
    take_arguments(&[&good, &b"\nf "[..], input].concat());
}

fn sample() -> Rrd {
    let request = Create {
        file_name: b"file",
        step: 10,
        start: Some(1_000_000_000),
        definitions: &DEFINITIONS,
    };
    let made = define(&request, 0, &mut 1, None, false);
    let Ok((header, _)) = made else {
        unreachable!("BUG: the sample's definitions are fine")
    };
    let cells = (0..header.cell_count()).map(|cell| cell as f64 / 3.0);
    Rrd {
        cells: cells.collect(),
        header,
    }
}

/// The text after edits of five bytes each, which overwrite, remove or duplicate parts of it.
fn spoilt(text: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    for edit in edits.chunks_exact(5).take(40) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % (text.len() + 1);
        let end = (at + usize::from(edit[3] % 64)).min(text.len());
        match edit[2] % 6 {
            0 => text[at..end].fill(edit[4]),
            1 => drop(text.drain(at..end)),
            2 => {
                let part = text[at..end].to_vec();
                text.splice(at..at, part);
            }
            3 => text.insert(at, edit[4]),
            4 if at < end => text[at] ^= 1 << (edit[4] % 8),
            _ if at < end => text[at] = edit[4],
            _ => {}
        }
    }
    text
}

fn take_file(input: &[u8]) {
    let Ok(header) = Header::parse(input) else {
        return;
    };
    let mut back = Vec::new();
    header.encode(&mut back);
    assert_eq!(back[..], input[..back.len()], "a header came back changed");
    look_at(&header);
    let Some(rrd) = Rrd::parse(input).ok().filter(is_small) else {
        return;
    };
    show(&rrd);
    for arguments in [
        "f RRA:AVERAGE:0.5:2:20 RRA:HWPREDICT:9:0.1:0.1:3 DS:new:GAUGE:60:U:U RRA#0:+5",
        "f -b a -w 5 -x 0.2 -s 0.5 DELRRA:0 RRA#1:-2 DEL:a",
        "f -t 1 RRA#0:=7",
    ] {
        change(&rrd, &words(arguments.as_bytes()));
    }
    for rows in [-1, 3] {
        let _ = resize(&rrd, Resize { archive: 0, rows });
    }
    fill_from(&rrd);
}

fn take_dump(input: &[u8]) {
    for check in [RangeCheck::Off, RangeCheck::On] {
        let Ok(rrd) = restore(input, check, &mut 1) else {
            return;
        };
        let bytes = rrd.to_bytes();
        let back = Rrd::parse(&bytes).map(|back| back.to_bytes());
        assert_eq!(back.as_ref(), Ok(&bytes), "a restored file cannot be read");
        look_at(&rrd.header);
        if is_small(&rrd) {
            show(&rrd);
        }
    }
}

fn take_arguments(input: &[u8]) {
    let mut lines = input.split(|&byte| byte == b'\n');
    let definitions = words(lines.next().unwrap_or_default());
    let request = Create {
        file_name: b"file",
        step: input.len() as u64 % 400,
        start: None,
        definitions: &definitions,
    };
    let Ok((header, _)) = define(&request, 1_700_000_000, &mut 1, None, false) else {
        return;
    };
    look_at(&header);
    if header.cell_count() > CELLS_MAX {
        return;
    }
    let cells = vec![1.5; header.cell_count() as usize];
    let rrd = Rrd { header, cells };
    show(&rrd);
    change(&rrd, &words(lines.next().unwrap_or_default()));
    if let Ok(how) = Resize::parse(&words(lines.next().unwrap_or_default()))
        && let Ok(rrd) = resize(&rrd, how)
    {
        assert_eq!(
            Rrd::parse(&rrd.to_bytes()).map(|back| back.header),
            Ok(rrd.header)
        );
    }
    fill_from(&rrd);
}

fn words(line: &[u8]) -> Vec<&[u8]> {
    let words = line.split(|&byte| byte == b' ');
    words.filter(|word| !word.is_empty()).collect()
}

fn is_small(rrd: &Rrd) -> bool {
    rrd.header.cell_count() < CELLS_MAX && rows(&rrd.header) < CELLS_MAX
}

fn rows(header: &Header) -> u64 {
    header.rra.iter().map(|rra| rra.row_cnt).sum()
}

/// Prints a header.
fn look_at(header: &Header) {
    let entries = info::info(header, b"file");
    let mut out = Vec::new();
    info::print(&entries, &mut out);
    info::print_for_daemon(&entries, &mut out);
    for archive in 0..header.rra.len() as i64 {
        let _ = fetch::first(header, archive);
    }
}

/// Prints a whole file.
fn show(rrd: &Rrd) {
    let mut cells = rrd.cells.clone();
    for head in [DumpHead::Dtd, DumpHead::Xsd] {
        let mut out = Vec::new();
        let done = dump(&rrd.header, &mut cells, head, &TimeZone::UTC, &mut out);
        assert_eq!(done, Ok(()), "a file cannot be dumped");
    }
    let last = rrd.header.last_up;
    for (start, end) in [
        (last, last),
        (last.saturating_sub(5000), last),
        (0, last.saturating_add(1)),
        (i64::MIN, i64::MAX),
        (i64::MAX, i64::MIN),
    ] {
        let rows_asked = (i128::from(end) - i128::from(start)) / i128::from(rrd.header.pdp_step);
        // Ranges in between would only be slow.
        if !(100_000..=1 << 60).contains(&rows_asked) {
            let found = fetch(&rrd.header, &mut cells, b"AVERAGE", start, end, 1);
            let _ = found.map(|found| fetch::print(&found, &mut Vec::new()));
        }
    }
}

fn change(rrd: &Rrd, arguments: &[&[u8]]) {
    let mut changed = rrd.clone();
    let Ok(request) = Tune::parse(arguments) else {
        return;
    };
    let operations = request.operations.iter();
    // Many operations copy thousands of rows: correct, but slow.
    if operations.map(|operation| operation.len()).sum::<usize>() > 200 {
        return;
    }
    if tune(&mut changed, &request).is_ok() {
        let bytes = changed.to_bytes();
        let back = Rrd::parse(&bytes).map(|back| back.to_bytes());
        assert!(
            back.is_ok_and(|back| back == bytes),
            "a tuned file cannot be read"
        );
    }
}

/// Uses a file as the source of another one.
fn fill_from(rrd: &Rrd) {
    let definitions: [&[u8]; 4] = [
        b"DS:a:GAUGE:60:U:U",
        b"RRA:AVERAGE:0.1:2:10",
        b"RRA:MAX:0:1:9",
        b"RRA:HWPREDICT:9:0.1:0.1:3",
    ];
    let request = Create {
        file_name: b"file",
        step: 10,
        start: Some(rrd.header.last_up.clamp(1, 1 << 40)),
        definitions: &definitions,
    };
    let made = define(&request, 1_700_000_000, &mut 1, None, true);
    let Ok((header, mappings)) = made else {
        return;
    };
    let cells = vec![crate::UNKNOWN; header.cell_count() as usize];
    let mut new = Rrd { header, cells };
    let _ = source::prefill(&mut new, &[rrd, rrd], &mappings);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes random inputs of all lengths to a target.
    fn try_many(target: fn(&[u8])) {
        let mut state = 7;
        for _ in 0..1500 {
            let len = kymo_base::random::next_random(&mut state) % 60;
            let input: Vec<u8> = (0..len)
                .map(|_| kymo_base::random::next_random(&mut state) as u8)
                .collect();
            target(&input);
        }
    }

    #[test]
    fn hostile_files_harm_nobody() {
        try_many(fuzz_header);
    }

    #[test]
    fn hostile_dumps_harm_nobody() {
        try_many(fuzz_restore);
    }

    #[test]
    fn hostile_arguments_harm_nobody() {
        try_many(fuzz_create_args);
    }
}
