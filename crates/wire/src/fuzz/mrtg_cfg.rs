//! Any bytes as an mrtg.cfg, and a second file for it to include.

use crate::mrtg_cfg::{
    Direction, Keyword, MemoryFiles, Rounding, Secrets, Trace, read, read_traced,
};

/// Bytes before the first 0xff are the configuration, bytes behind it the file `/i`.
pub fn fuzz_mrtg_cfg(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == 0xff);
    let (main, included) = input.split_at(end.unwrap_or(input.len()));
    let mut files = MemoryFiles::default();
    files.add("m", main);
    files.add("/i", included.get(1..).unwrap_or_default());
    let read = read(b"m", &mut files);
    let mut traced_bytes = 0;
    let mut say = |_: &str, message: &[u8]| traced_bytes += message.len();
    let traced = read_traced(b"m", &mut files, &mut Trace::On(Secrets::Masked, &mut say));
    let config = match (read, traced) {
        (Ok(config), Ok(traced)) => {
            assert_eq!(config.left_out(), traced.left_out(), "the steps matter");
            config
        }
        (Err(problems), Err(_)) => {
            assert!(!problems.0.is_empty(), "refused for nothing");
            return;
        }
        _ => panic!("the steps matter"),
    };
    let values: [&[u8]; 5] = [b"0", b"18446744073709551615", b"-3", b"2.5", b"7"];
    let mut out = Vec::new();
    for target in config.targets() {
        out.clear();
        target.put_dump(Secrets::Masked, &mut out);
        for (keyword, _) in Keyword::ALL {
            target.value(keyword);
        }
        let readings = config.readings_of(target.expression());
        assert!(!readings.is_empty(), "nothing is read");
        assert!(
            readings
                .iter()
                .all(|reading| (*reading as usize) < config.readings().len()),
            "a reading that is none"
        );
        for rounding in [Rounding::Keep, Rounding::Round] {
            out.clear();
            let value_of = |reading: u32, _: Direction| values.get(reading as usize % 6).copied();
            let is_known = config.evaluate(
                target.expression(),
                Direction::Out,
                rounding,
                &value_of,
                &mut out,
            );
            assert!(
                is_known != out.is_empty() && out.len() <= 400,
                "half a number"
            );
        }
    }
}
