//! Tests without files: stamps and clocks, errors, numbers of writes. The end-to-end tests compare the numbers with
//! those of rrdtool.

use super::*;
use crate::create::{Create, create};
use crate::header::{CdpPrep, DsDef, PdpPrep, RraDef, field};
use crate::{Rrd, UNKNOWN};

const START: i64 = 1_000_000_000;
const NOW: Now = Now {
    sec: 1_000_000_100,
    usec: 999_999,
};

fn header(dsts: &[&str], archives: &[(&str, u64, u64)]) -> Header {
    let ds = dsts.iter().enumerate().map(|(i, dst)| DsDef {
        ds_nam: field(&[b'a' + i as u8]),
        dst: field(dst.as_bytes()),
        par: [
            600,
            UNKNOWN.to_bits(),
            UNKNOWN.to_bits(),
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ],
    });
    let rra = archives.iter().map(|&(cf, pdp_cnt, row_cnt)| RraDef {
        cf_nam: field(cf.as_bytes()),
        pad: [0; 4],
        row_cnt,
        pdp_cnt,
        par: [0.5f64.to_bits(), 0, 0, 0, 0, 0, 0, 0, 0, 0],
    });
    let mut scratch = [0; 10];
    scratch[1] = UNKNOWN.to_bits();
    Header {
        version: 3,
        head_pad: [0; 7],
        pdp_step: 10,
        head_par: [0; 10],
        ds: ds.collect(),
        rra: rra.collect(),
        last_up: START,
        last_up_usec: 0,
        pdp_prep: vec![
            PdpPrep {
                last_ds: field(b"U"),
                pad: [0; 2],
                scratch
            };
            dsts.len()
        ],
        cdp_prep: vec![CdpPrep { scratch: [0; 10] }; dsts.len() * archives.len()],
        cur_row: vec![0; archives.len()],
    }
}

fn how<'a>(template: Option<&'a str>) -> Update<'a> {
    Update {
        file_name: b"f.rrd",
        template: template.map(str::as_bytes),
        skip_past: false,
        now: NOW,
        at_time: &|text| match text {
            b"noon" => Ok(Some(START + 50)),
            b"end" => Ok(None),
            _ => Err("unparsable time".to_owned()),
        },
    }
}

fn run(header: &mut Header, how: &Update<'_>, args: &[&str]) -> Result<Vec<f64>, String> {
    let mut cells = vec![UNKNOWN; header.cell_count() as usize];
    let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
    let done = update(header, &mut cells, how, &args, None);
    done.map(|()| cells).map_err(|error| error.text)
}

#[test]
fn stamps_are_read_and_counted_from_the_clock() {
    let cases = [
        ("1000000012:1", 12, 0),
        ("1000000012.5:1", 12, 500_000),
        ("1000000012.3:1", 12, 299_999),
        ("1e9@1", -1, 0),
        ("noon@1", 50, 0),
        ("N:1", 100, 999_999),
        ("-1.5:1", 99, 499_999),
        ("-10:1", 90, 999_999),
    ];
    for (arg, sec, usec) in cases {
        let mut old = header(&["GAUGE"], &[("LAST", 1, 5)]);
        let stamp = check(&old, &how(None), arg.as_bytes());
        let expected = (sec >= 0).then_some(Stamp {
            sec: START + sec,
            usec,
        });
        assert_eq!(stamp.ok(), expected, "{arg}");
        old.version = 2;
        let stamp = check(&old, &how(None), arg.as_bytes());
        assert_eq!(
            stamp.ok(),
            expected.map(|stamp| Stamp { usec: 0, ..stamp }),
            "{arg}"
        );
    }
}

#[test]
fn complaints_are_rrdtools() {
    let cases = [
        (
            "",
            "f.rrd: expected timestamp not found in data source from ",
        ),
        (
            "12",
            "f.rrd: expected timestamp not found in data source from 12",
        ),
        (
            "N:1",
            "f.rrd: expected 2 data source readings (got 1) from N",
        ),
        (
            "N:1:2:3:4",
            "f.rrd: found extra data on update argument: 3:4",
        ),
        (
            "x:1:2",
            "f.rrd: error while parsing time in get_time_from_reading - Cannot convert 'x' to float",
        ),
        (
            "1000000012x:1:2",
            "f.rrd: error while parsing time in get_time_from_reading - Converted '1000000012x' to 1000000012.000000, but cannot convert 'x'",
        ),
        ("soon@1:2", "f.rrd: ds time: soon: unparsable time"),
        (
            "end@1:2",
            "f.rrd: specifying time relative to the 'start' or 'end' makes no sense here: end",
        ),
        (
            "1000000000:1:2",
            "f.rrd: illegal attempt to update using time 1000000000 when last update time is 1000000000 (minimum one second step)",
        ),
        (
            "inf:1:2",
            "f.rrd: illegal attempt to update using time -9223372036854775808 when last update time is 1000000000 (minimum one second step)",
        ),
        ("N:1:2.5", "f.rrd: not a simple unsigned integer: '2.5'"),
        (
            "N:1.x:2",
            "f.rrd: Function update_pdp_prep, case DST_GAUGE - Converted '1.x' to 1.000000, but cannot convert 'x'",
        ),
    ];
    for (arg, text) in cases {
        let mut header = header(&["GAUGE", "COUNTER"], &[("LAST", 1, 5)]);
        let checked = check(&header, &how(None), arg.as_bytes());
        assert_eq!(checked.map_err(|error| error.text), Err(text.to_owned()));
        assert_eq!(run(&mut header, &how(None), &[arg]), Err(text.to_owned()));
    }
    let templates = [
        ("a:x", "unknown DS name 'x'"),
        ("", "unknown DS name ''"),
        ("a:b:a", "tmplt contains more DS definitions than RRD"),
    ];
    for (template, text) in templates {
        let mut header = header(&["GAUGE", "COUNTER"], &[("LAST", 1, 5)]);
        let done = run(&mut header, &how(Some(template)), &["N:1"]);
        assert_eq!(done, Err(text.to_owned()));
    }
}

/// rrdtool keeps 77, though its argument was refused.
#[test]
fn a_refused_argument_leaves_the_texts_before_the_bad_one() {
    let before = header(&["GAUGE", "GAUGE", "GAUGE"], &[("LAST", 1, 5)]);
    let mut after = before.clone();
    assert!(run(&mut after, &how(None), &["N:77:foo:3"]).is_err());
    let texts = after.pdp_prep.iter().map(|pdp| pdp.last_ds[0]);
    assert_eq!(texts.collect::<Vec<_>>(), b"7UU");
    let (mut after, mut refused) = (before.clone(), Vec::new());
    let rows = &mut vec![UNKNOWN; 15];
    let args: [&[u8]; 3] = [
        b"1000000005:1:2:3",
        b"1000000006:77:foo:3",
        b"1000000007:7:8:9",
    ];
    let scratch = &mut Scratch::default();
    let done = update_all(scratch, &mut after, rows, &how(None), &args, &mut refused);
    assert_eq!(
        (done, after.last_up, refused.len(), refused[0].0),
        (Ok(()), START + 7, 1, 1)
    );
}

/// The example of rrdtool's rrd_pdpcalc page. The page still shows 5.5 twice and 1.73 three times, which is the result
/// of 1.7.1.
#[test]
fn an_open_point_is_closed_before_those_that_follow() {
    let mut header = header(&["GAUGE"], &[("AVERAGE", 1, 9)]);
    (header.pdp_step, header.ds[0].par[0]) = (5, 20);
    let readings = [
        (3, 8),
        (6, 1),
        (17, 6),
        (20, 7),
        (21, 7),
        (22, 4),
        (23, 3),
        (36, 1),
        (37, 2),
        (38, 3),
        (39, 3),
        (42, 5),
    ];
    let args = readings.map(|(second, value)| format!("{}:{value}", START + second));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let cells = run(&mut header, &how(None), &args).map(|cells| cells[1..9].to_vec());
    assert_eq!(cells, Ok(vec![5.2, 5.0, 6.0, 6.6, 3.2, 1.0, 1.0, 2.8]));
}

/// Counts its writes.
struct Counting {
    cells: Vec<f64>,
    writes: usize,
}

impl Rows for Counting {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        self.cells.read(first, cells)
    }

    fn write(&mut self, first: u64, cells: &[f64]) -> Result<(), Error> {
        self.writes += 1;
        self.cells.write(first, cells)
    }
}

#[test]
fn a_gap_is_few_writes_and_never_more_rows_than_there_are() {
    let cases: &[(&[u8], usize, u64)] = &[
        (b"1000000010:1", 1, 4),
        (b"1000000020:1", 1, 5),
        (b"1000000300:1", 2, 33),
        (b"1000005000:1", 3, 53 - 50),
        (b"1152921505606846976:1", 3, 3),
    ];
    for &(arg, writes, row) in cases {
        let mut header = header(&["GAUGE"], &[("LAST", 1, 100)]);
        header.cur_row[0] = 3;
        let mut rows = Counting {
            cells: vec![-1.0; 100],
            writes: 0,
        };
        assert_eq!(
            update(&mut header, &mut rows, &how(None), &[arg], None),
            Ok(())
        );
        assert!(rows.writes <= writes, "{arg:?}: {} writes", rows.writes);
        assert_eq!(header.cur_row[0], row);
    }
}

/// A new file, and arguments with a value for each of its sources in each step.
fn seasonal(definitions: &[&str], count: i64) -> (Rrd, Vec<String>) {
    let definitions: Vec<&[u8]> = definitions.iter().map(|text| text.as_bytes()).collect();
    let request = Create {
        file_name: b"f.rrd",
        step: 10,
        start: Some(START),
        definitions: &definitions,
    };
    let rrd = create(&request, START, &mut 7, None, &[]).unwrap();
    let args = (1..=count).map(|step| {
        let value = |source| format!(":{}", 100 + (step * step + 31 * source) % 97);
        let values: String = (0..rrd.header.ds.len() as i64).map(value).collect();
        format!("{}{values}", START + 10 * step)
    });
    let args = args.collect();
    (rrd, args)
}

/// A season that ended within a batch of arguments was smoothed at the batch's end: 688 of 1,000 files differed.
#[test]
fn arguments_at_once_are_a_call_of_update_for_each() {
    for model in ["HWPREDICT", "MHWPREDICT"] {
        let definitions = [
            "DS:a:GAUGE:60:U:U",
            "DS:b:GAUGE:60:U:U",
            &format!("RRA:{model}:70:0.1:0.0035:41:2"),
            "RRA:SEASONAL:41:0.1:1:smoothing-window=0.1",
            "RRA:DEVSEASONAL:41:0.1:1:smoothing-window=0.05",
            "RRA:DEVPREDICT:70:3",
            "RRA:FAILURES:70:3:9:3",
        ];
        let (born, args) = seasonal(&definitions, 400);
        let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        let mut each = born.clone();
        for arg in &args {
            update(&mut each.header, &mut each.cells, &how(None), &[arg], None).unwrap();
        }
        let mut together = born.clone();
        let Rrd { header, cells } = &mut together;
        update(header, cells, &how(None), &args, None).unwrap();
        assert!(together != each, "{model}: nothing was smoothed");
        for size in (1..=64).chain([args.len()]) {
            let (scratch, mut pieces) = (&mut Scratch::default(), born.clone());
            let Rrd { header, cells } = &mut pieces;
            for piece in args.chunks(size) {
                update_all(scratch, header, cells, &how(None), piece, &mut Vec::new()).unwrap();
            }
            assert!(pieces.to_bytes() == each.to_bytes(), "{model} by {size}");
        }
    }
}

/// rrdtool reports this error at the end of each season, but accepts the value.
#[test]
fn a_season_that_leans_on_a_wrong_archive_costs_no_value() {
    let definitions = [
        "DS:a:GAUGE:60:U:U",
        "RRA:LAST:0.5:1:9",
        "RRA:SEASONAL:50:0.1:1",
    ];
    let (born, args) = seasonal(&definitions, 130);
    let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
    let (mut each, mut errors) = (born.clone(), Vec::new());
    for arg in &args {
        let done = update(&mut each.header, &mut each.cells, &how(None), &[arg], None);
        errors.extend(done.err().map(|error| error.text));
    }
    let text = "apply smoother: SEASONAL rra doesn't have valid dependency: LAST";
    assert!(
        !errors.is_empty() && errors.iter().all(|error| error == text),
        "{errors:?}"
    );
    let (scratch, mut all, mut refused) = (&mut Scratch::default(), born, Vec::new());
    let Rrd { header, cells } = &mut all;
    update_all(scratch, header, cells, &how(None), &args, &mut refused).unwrap();
    assert!(refused.is_empty() && all.to_bytes() == each.to_bytes());
}
