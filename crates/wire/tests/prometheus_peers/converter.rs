//! Messages of OTLP put together at random, and the samples that Prometheus' own converter (v0.316) made of them, in
//! hexadecimal: labels, bits of the value, time, creation, type, unit, help and family. `target_info` is left out, for
//! Prometheus writes it at several times.

use kymo_wire::otlp::{OtlpLimits, OtlpSample, read_metrics};

use super::hex;

#[test]
fn samples_are_those_of_prometheus() {
    let table = include_str!("../otlp/messages.tsv");
    let mut samples = 0;
    for line in table.lines() {
        let (message, expected) = line.split_once('\t').unwrap();
        let mut found = Vec::new();
        let counts = read_metrics(
            &hex(message),
            &OtlpLimits::default(),
            &mut |sample: &OtlpSample| {
                if sample.family != "target_info" {
                    found.push(say(sample));
                }
            },
        );
        assert_eq!(counts.map(|counts| counts.refused_points()), Ok(0));
        let mut expected: Vec<&str> = expected.split('|').collect();
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected);
        samples += found.len();
    }
    assert!(samples > 50, "{samples}");
}

fn say(sample: &OtlpSample) -> String {
    let mut text = String::new();
    for (name, value) in sample.labels.iter() {
        text += &format!("{}={},", digits(name), digits(value));
    }
    let created = sample.created_ms.unwrap_or(0);
    let word = sample.metric_type.word();
    let texts = [sample.unit, sample.help, sample.family].map(digits);
    text + &format!(
        " {:x} {} {created} {word} {}",
        sample.value.to_bits(),
        sample.t_ms,
        texts.join(" ")
    )
}

fn digits(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
