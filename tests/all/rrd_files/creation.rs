//! `create`: specifications, good and bad.

use kymo_rrd::create::{Create, create};

use super::made::{Rng, archive, good_definitions, source};
use super::stock::{Stock, assert_same, unrotated, words};

const CASES: usize = 2500;

#[test]
fn files_and_complaints_are_rrdtools() {
    let mut rng = Rng(0x5eed_0001);
    let mut stock = Stock::start("rrd-create");
    let mut lines = Vec::new();
    let mut asked = Vec::new();
    for i in 0..CASES {
        let step = [1, 10, 60, 300][rng.below(4) as usize];
        let definitions = definitions(&mut rng, step);
        let begin = 400_000_000 + rng.between(0, 1_500_000_000);
        lines.push(format!("create {i}.rrd -b {begin} -s {step} {definitions}"));
        asked.push((begin, step, definitions));
    }
    let answers = stock.ask_all(&lines);
    let (mut good, mut state) = (0, 1);
    for (i, (answer, (begin, step, definitions))) in answers.iter().zip(&asked).enumerate() {
        let name = format!("{i}.rrd");
        let ours = create(
            &Create {
                file_name: name.as_bytes(),
                step: *step,
                start: Some(*begin),
                definitions: &words(definitions),
            },
            0,
            &mut state,
            None,
            &[],
        );
        match ours {
            Ok(ours) => {
                assert_eq!(answer.error, None, "{}", lines[i]);
                let stock = unrotated(stock.file(&name));
                assert_same(&stock, &unrotated(ours), &lines[i]);
                good += 1;
            }
            Err(error) => assert_eq!(answer.error, Some(error.text), "{}", lines[i]),
        }
    }
    assert!(
        good > CASES / 5 && good < CASES * 4 / 5,
        "{good} of {CASES} are good"
    );
}

fn definitions(rng: &mut Rng, step: u64) -> String {
    if rng.one_in(4) {
        return good_definitions(rng, step).0;
    }
    let mut out = Vec::new();
    for _ in 0..rng.below(3) + u64::from(!rng.one_in(10)) {
        out.push(source(rng, &["a", "b"]));
    }
    for _ in 0..rng.below(2) + u64::from(!rng.one_in(10)) {
        out.push(archive(rng, step));
    }
    out.join(" ")
}
