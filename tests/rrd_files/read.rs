//! `info`, `fetch`, `first`, `last` and `dump`.

use jiff::tz::TimeZone;
use kymo_rrd::dump::{DumpHead, dump};
use kymo_rrd::fetch::{self, fetch};
use kymo_rrd::info;

use crate::made::{Rng, file};
use crate::stock::{Stock, ZONE, assert_lines};

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
                // It prints -1 and has no words for it in front.
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
