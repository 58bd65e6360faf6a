//! `create` with sources and templates.

use kymo_rrd::Rrd;
use kymo_rrd::create::{Create, create};

use super::made::{NAMES, Rng, TYPES, file, good_definitions};
use super::stock::{Stock, assert_same, unrotated, words};

const CASES: usize = 250;

#[test]
fn files_filled_from_others_are_rrdtools() {
    let mut rng = Rng(0x5eed_0008);
    let mut stock = Stock::start("rrd-sources");
    let mut known = 0;
    for i in 0..CASES {
        let made: Vec<_> = (0..1 + rng.below(3))
            .map(|j| file(&mut rng, &mut stock, &format!("{i}-{j}.rrd")))
            .collect();
        let step = made[0].step * [1, 1, 1, 2, 3][rng.below(5) as usize];
        let mut definitions = good_definitions(&mut rng, step).0;
        if rng.one_in(3) {
            let (source, kind) = (rng.pick(&NAMES[..3]), rng.pick(TYPES));
            let index = rng.pick(&["", "[1]", "[2]", "[7]"]);
            definitions = format!("DS:m={source}{index}:{kind}:600:U:U {definitions}");
        }
        let start = rng
            .one_in(2)
            .then(|| made[0].end - rng.between(-50, 50) * step as i64);
        let options = start.map_or(String::new(), |start| format!("-b {start}"));
        let sources: Vec<String> = made
            .iter()
            .map(|made| format!("-r {}", made.name))
            .collect();
        let sources = sources.join(" ");
        let line = format!("create {i}.rrd {options} -s {step} {sources} {definitions}");
        let answer = stock.ask(&line);
        assert_eq!(answer.error, None, "{line}");
        let name = format!("{i}.rrd");
        let request = Create {
            file_name: name.as_bytes(),
            step,
            start,
            definitions: &words(&definitions),
        };
        let files: Vec<Rrd> = made.iter().map(|made| stock.file(&made.name)).collect();
        let files: Vec<&Rrd> = files.iter().collect();
        let ours = create(&request, 1_700_000_000, &mut rng.0, None, &files).expect("as rrdtool");
        known += ours.cells.iter().filter(|cell| !cell.is_nan()).count();
        assert_same(&unrotated(stock.file(&name)), &unrotated(ours), &line);
    }
    assert!(known > 10 * CASES, "only {known} cells are filled");
}

#[test]
fn files_like_a_template_are_rrdtools() {
    let mut rng = Rng(0x5eed_0009);
    let mut stock = Stock::start("rrd-template");
    for i in 0..CASES / 2 {
        let made = file(&mut rng, &mut stock, &format!("{i}-t.rrd"));
        let step = if rng.one_in(2) { 0 } else { made.step };
        let definitions = rng.pick(&[
            "",
            "DS:y:GAUGE:60:U:U",
            "RRA:LAST:0:2:5",
            "DS:a:GAUGE:60:U:U",
        ]);
        let start = rng.one_in(2).then_some(made.end + 100);
        let with_source = rng.one_in(3);
        let mut options = format!("-t {}", made.name);
        if step > 0 {
            options += &format!(" -s {step}");
        }
        if let Some(start) = start {
            options += &format!(" -b {start}");
        }
        if with_source {
            options += &format!(" -r {}", made.name);
        }
        let line = format!("create {i}.rrd {options} {definitions}");
        let answer = stock.ask(&line);
        let (name, template) = (format!("{i}.rrd"), stock.file(&made.name));
        let request = Create {
            file_name: name.as_bytes(),
            step,
            start,
            definitions: &words(definitions),
        };
        let sources: &[&Rrd] = if with_source { &[&template] } else { &[] };
        match create(&request, 1, &mut rng.0, Some(&template.header), sources) {
            Ok(ours) => {
                assert_eq!(answer.error, None, "{line}");
                assert_same(&unrotated(stock.file(&name)), &unrotated(ours), &line);
            }
            Err(error) => assert_eq!(answer.error, Some(error.text), "{line}"),
        }
    }
}
