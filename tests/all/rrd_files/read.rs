//! `info`, `fetch`, `first`, `last` and `dump`.

use jiff::tz::TimeZone;
use kymo_rrd::dump::{DumpHead, dump};
use kymo_rrd::fetch::{self, fetch};
use kymo_rrd::info;
use kymo_rrd::restore::{RangeCheck, restore};

use super::made::{Rng, file};
use super::stock::{Stock, ZONE, assert_lines, assert_same, unrotated};

const FILES: usize = 80;

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[test]
fn info_and_dump_are_rrdtools() {
    let mut rng = Rng(0x5eed_0002);
    let mut stock = Stock::start("rrd-dump");
    let zone = TimeZone::get(ZONE).expect("the zone is known");
    for i in 0..FILES {
        let made = file(&mut rng, &mut stock, &format!("{i}.rrd"));
        let mut rrd = stock.file(&made.name);
        let mut ours = Vec::new();
        info::print(&info::info(&rrd.header, made.name.as_bytes()), &mut ours);
        let answer = stock.ask(&format!("info {}", made.name));
        assert_lines(&answer.text, &ours, &made.name);
        let heads = [
            ("-h none", DumpHead::None),
            ("-n", DumpHead::None),
            ("", DumpHead::Dtd),
            ("-h dtd", DumpHead::Dtd),
            ("-h xsd", DumpHead::Xsd),
        ];
        let (option, head) = heads[i % heads.len()];
        let answer = stock.ask(&format!("dump {option} {}", made.name));
        ours.clear();
        dump(&rrd.header, &mut rrd.cells, head, &zone, &mut ours).expect("memory takes it");
        assert_lines(&answer.text, &ours, &made.name);
    }
}

#[test]
fn fetched_rows_are_rrdtools() {
    let mut rng = Rng(0x5eed_0003);
    let mut stock = Stock::start("rrd-fetch");
    for i in 0..FILES {
        let made = file(&mut rng, &mut stock, &format!("{i}.rrd"));
        let mut rrd = stock.file(&made.name);
        let (mut lines, mut asked) = (Vec::new(), Vec::new());
        let span = 40 * made.step as i64;
        for _ in 0..20 {
            let start = rng.between(made.begin - span, made.end + span);
            let end = start + rng.between(0, 2 * span);
            let step = [1, made.step, 3 * made.step, 7, 1000][rng.below(5) as usize];
            let cfs = [
                "AVERAGE",
                "AVERAGE",
                "MIN",
                "MAX",
                "LAST",
                "HWPREDICT",
                "DEVSEASONAL",
                "FOO",
            ];
            let cf = rng.pick(&cfs);
            lines.push(format!(
                "fetch {} {cf} -s {start} -e {end} -r {step}",
                made.name
            ));
            asked.push((cf, start, end, step));
        }
        let answers = stock.ask_all(&lines);
        for ((line, answer), (cf, start, end, step)) in lines.iter().zip(answers).zip(asked) {
            let ours = fetch(&rrd.header, &mut rrd.cells, cf.as_bytes(), start, end, step);
            match ours {
                Ok(found) => {
                    let mut ours = Vec::new();
                    fetch::print(&found, &mut ours);
                    assert_eq!(answer.error, None, "{line}");
                    assert_lines(&answer.text, &ours, line);
                }
                Err(error) => assert_eq!(answer.error, Some(error.text), "{line}"),
            }
        }
        for archive in -1..=rrd.header.rra.len() as i64 {
            let answer = stock.ask(&format!("first --rraindex {archive} {}", made.name));
            match fetch::first(&rrd.header, archive) {
                Ok(first) => assert_eq!(shown(&answer.text).trim_end(), first.to_string()),
                // rrdtool prints -1, and its error has no prefix.
                Err(error) => assert_eq!(answer.error, Some(error.text)),
            }
        }
        let answer = stock.ask(&format!("last {}", made.name));
        assert_eq!(
            shown(&answer.text).trim_end(),
            fetch::last(&rrd.header).to_string()
        );
    }
}

/// A double of any size, with any bits.
fn wild(rng: &mut Rng) -> f64 {
    let number = f64::from_bits(rng.next());
    match rng.below(8) {
        0 => number,
        1 => [
            0.0,
            -0.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            5e-324,
        ][rng.below(6) as usize],
        2 => rng.between(-100, 100) as f64,
        3 => 10f64.powi(rng.between(-320, 308) as i32),
        4 => 1.0 - rng.below(1000) as f64 * f64::EPSILON,
        _ => (rng.next() as f64 / 1e19) * 10f64.powi(rng.between(-20, 20) as i32),
    }
}

#[test]
fn wild_numbers_and_old_versions_are_shown_as_rrdtool_does() {
    let mut rng = Rng(0x5eed_000b);
    let mut stock = Stock::start("rrd-wild");
    let zone = TimeZone::get(ZONE).expect("the zone is known");
    for i in 0..FILES as u64 {
        let made = file(&mut rng, &mut stock, "wild.rrd");
        let mut rrd = stock.file(&made.name);
        rrd.header.version = (i % 5) as u8 + 1;
        if rrd.header.version < 3 {
            rrd.header.last_up_usec = 0;
        }
        // Begin and end of summer time, the epoch, beyond 32 bits.
        let stamps = [
            1_143_334_800,
            1_130_634_000,
            3_000,
            4_000_000_000,
            1_000_000_000,
        ];
        rrd.header.last_up = stamps[rng.below(5) as usize] + rng.between(0, 7200);
        rrd.cells.fill_with(|| wild(&mut rng));
        for cdp in &mut rrd.header.cdp_prep {
            cdp.scratch.fill_with(|| wild(&mut rng).to_bits());
        }
        for pdp in &mut rrd.header.pdp_prep {
            pdp.scratch[1] = wild(&mut rng).to_bits();
        }
        stock.put("wild.rrd", &rrd.to_bytes());
        let mut ours = Vec::new();
        info::print(&info::info(&rrd.header, b"wild.rrd"), &mut ours);
        assert_lines(&stock.ask("info wild.rrd").text, &ours, "info");
        ours.clear();
        dump(&rrd.header, &mut rrd.cells, DumpHead::Dtd, &zone, &mut ours)
            .expect("memory takes it");
        assert_lines(&stock.ask("dump wild.rrd").text, &ours, "dump");
        let (start, end) = (1_143_330_000, 1_143_339_000);
        let line = format!("fetch wild.rrd AVERAGE -s {start} -e {end}");
        if let Ok(found) = fetch(&rrd.header, &mut rrd.cells, b"AVERAGE", start, end, 1) {
            let mut table = Vec::new();
            fetch::print(&found, &mut table);
            assert_lines(&stock.ask(&line).text, &table, &line);
        }
        stock.put("wild.xml", &ours);
        let answer = stock.ask("restore -f wild.xml back.rrd");
        match restore(&ours, RangeCheck::Off, &mut rng.0) {
            Ok(back) => {
                assert_eq!(answer.error, None);
                assert_same(
                    &unrotated(stock.file("back.rrd")),
                    &unrotated(back),
                    "wild.xml",
                );
            }
            Err(error) => panic!("{error}, and rrdtool says {:?}", answer.error),
        }
    }
}
