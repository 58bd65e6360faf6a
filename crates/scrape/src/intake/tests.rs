//! Texts of scrapes, and the samples that the keeper gets.

use super::*;
use crate::relabel::{RelabelAction, RelabelRule};
use kymo_series::is_stale;
use kymo_wire::remote_write::{WriteItem, WriteLimits, WriteReader, WriteVersion, decompress};

const STAMP: i64 = 5000;

fn rules() -> IntakeRules {
    let labels = [("instance", "a:1"), ("job", "j")];
    IntakeRules {
        labels: labels
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec(),
        relabeling: Arc::default(),
        honor_labels: false,
        honor_timestamps: true,
        samples_max: 10,
    }
}

/// Samples of messages as lines, sorted, with stale markers as `-`; descriptions as `# ...`.
fn lines(message: Message) -> Vec<String> {
    let mut lines = Vec::new();
    for part in message.finish() {
        let mut plain = Vec::new();
        decompress(&part, 1 << 24, &mut plain).unwrap();
        let mut reader =
            WriteReader::new(WriteVersion::V1, &plain, WriteLimits::default()).unwrap();
        while let Some(item) = reader.read().unwrap() {
            match item {
                WriteItem::Series(series) => {
                    let labels = series.labels.iter();
                    let labels = labels.filter(|label| !["instance", "job"].contains(&label.name));
                    let labels = labels.map(|label| format!("{}={}", label.name, label.value));
                    let labels = labels.collect::<Vec<_>>().join(" ");
                    let sample = series.samples[0];
                    let value = match is_stale(sample.value) {
                        true => "-".into(),
                        false => sample.value.to_string(),
                    };
                    lines.push(format!("{labels} {value} @{}", sample.t_ms));
                }
                WriteItem::Metadata(of) => {
                    let metadata = of.metadata;
                    let word = metadata.metric_type.word();
                    lines.push(format!("# {} {word} {}", of.family, metadata.help));
                }
                WriteItem::Refused { why, .. } => unreachable!("BUG: {why:?}"),
            }
        }
    }
    lines.sort();
    lines
}

fn take(intake: &mut Intake, text: &str) -> (Vec<String>, ScrapeCounts) {
    let taken = intake.take(ExpositionFormat::Prometheus, text.as_bytes(), STAMP);
    let (message, counts) = taken.unwrap();
    (lines(message), counts)
}

fn counts(scraped: u64, kept: u64, added: u64) -> ScrapeCounts {
    ScrapeCounts {
        scraped,
        kept,
        added,
    }
}

#[test]
fn samples_have_the_labels_of_their_target() {
    let mut intake = Intake::new(rules());
    let text = "# HELP a All\\na.\n# TYPE a counter\na{b=\"c\",d=\"\"} 1\na{job=\"x\",exported_job=\"y\"} 2 7\nb NaN\n";
    let (found, count) = take(&mut intake, text);
    let expected = [
        "# a counter All\na.",
        "__name__=a b=c 1 @5000",
        "__name__=a exported_exported_job=x exported_job=y 2 @7",
        "__name__=b NaN @5000",
    ];
    assert_eq!(found, expected);
    assert_eq!(count, counts(3, 3, 3));
    let (again, count) = take(&mut intake, text);
    assert_eq!(again, expected[1..], "descriptions are sent once");
    assert_eq!(count, counts(3, 3, 0));
    let mut honest = Intake::new(IntakeRules {
        honor_labels: true,
        honor_timestamps: false,
        ..rules()
    });
    let (found, _) = take(&mut honest, "a{job=\"x\"} 1 7\n");
    assert_eq!(found, ["__name__=a 1 @5000"]);
}

#[test]
fn series_that_are_gone_get_a_marker_once() {
    let mut intake = Intake::new(rules());
    take(&mut intake, "a 1\nb{x=\"1\",y=\"2\"} 1\nc 1 7\n");
    // One series is spelled in another way, one had times of its own.
    let (found, count) = take(&mut intake, "b{y=\"2\", x=\"1\"} 2\n");
    assert_eq!(found, ["__name__=a - @5000", "__name__=b x=1 y=2 2 @5000"]);
    assert_eq!(count, counts(1, 1, 1));
    assert_eq!(lines(intake.fail(6000)), ["__name__=b x=1 y=2 - @6000"]);
    assert_eq!(lines(intake.fail(7000)), [""; 0]);
    let (found, _) = take(&mut intake, "b 3\n");
    assert_eq!(found, ["__name__=b 3 @5000"]);
}

#[test]
fn a_fault_takes_no_sample_and_ends_all_series() {
    let mut intake = Intake::new(rules());
    take(&mut intake, "a 1\n");
    let many: String = (0..11).map(|number| format!("a{number} 1\n")).collect();
    for (text, why) in [
        ("a 2\nb x\n", "line 2: a value that is not a number"),
        ("a 2\nb{c=\"1\",c=\"2\"} 1\n", "a label twice"),
        (&many, "more than 10 samples"),
    ] {
        take(&mut intake, "a 1\n");
        let taken = intake.take(ExpositionFormat::Prometheus, text.as_bytes(), STAMP);
        let Err(error) = taken else {
            unreachable!("BUG: {text}");
        };
        assert!(error.contains(why), "{error}");
        let ended = lines(intake.fail(STAMP));
        assert!(
            ended.contains(&"__name__=a - @5000".to_string()),
            "{ended:?}"
        );
    }
}

#[test]
fn the_first_of_two_samples_of_a_series_counts() {
    let mut intake = Intake::new(rules());
    let (found, count) = take(&mut intake, "a 1\na 2\nb 1 7\nb 2 8\n");
    let expected = ["__name__=a 1 @5000", "__name__=b 1 @7", "__name__=b 2 @8"];
    assert_eq!(found, expected);
    assert_eq!(count, counts(4, 4, 2));
}

#[test]
fn rules_drop_and_rename() {
    let drop = RelabelRule {
        source_labels: vec!["__name__".into()],
        regex: "go_.*".into(),
        action: RelabelAction::Drop,
        ..RelabelRule::default()
    };
    let rename = RelabelRule {
        source_labels: vec!["__name__".into()],
        regex: "old".into(),
        replacement: "new".into(),
        target_label: "__name__".into(),
        ..RelabelRule::default()
    };
    let nameless = RelabelRule {
        source_labels: vec!["__name__".into()],
        regex: "none".into(),
        replacement: String::new(),
        target_label: "__name__".into(),
        ..RelabelRule::default()
    };
    let relabeling = Relabeling::new(&[drop, rename, nameless]).unwrap();
    let mut intake = Intake::new(IntakeRules {
        relabeling: Arc::new(relabeling),
        ..rules()
    });
    let (found, count) = take(&mut intake, "go_a 1\nold 2\n");
    assert_eq!(found, ["__name__=new 2 @5000"]);
    assert_eq!(count, counts(2, 1, 1));
    let (found, _) = take(&mut intake, "go_a 1\nold 3\n");
    assert_eq!(found, ["__name__=new 3 @5000"]);
    let taken = intake.take(ExpositionFormat::Prometheus, b"none 1\n", STAMP);
    assert!(taken.is_err_and(|why| why.contains("without __name__")));
}

#[test]
fn many_samples_are_several_messages() {
    let mut intake = Intake::new(IntakeRules {
        samples_max: 100_000,
        ..rules()
    });
    let text: String = (0..50_000)
        .map(|n| format!("a{{b=\"{n}\"}} {n}\n"))
        .collect();
    let taken = intake.take(ExpositionFormat::Prometheus, text.as_bytes(), STAMP);
    let (message, _) = taken.unwrap();
    let parts = message.finish();
    assert!(parts.len() > 1);
    assert!(parts.iter().all(|part| part.len() < 2 << 20));
}
