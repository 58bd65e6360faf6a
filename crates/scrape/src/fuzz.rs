//! Entry points for fuzzing.

use std::sync::Arc;

use kymo_wire::exposition_text::ExpositionFormat;

use super::intake::{Intake, IntakeRules};
use super::relabel::{RelabelRule, Relabeling};
use super::unpack::Unpacker;
use super::url::ScrapeUrl;

/// Texts that a target sends one after the other, separated by NULs, and an address to which it redirects.
pub fn fuzz_scrape(input: &[u8]) {
    let rule = RelabelRule {
        source_labels: vec!["a".into()],
        regex: "(.)(.*)".into(),
        target_label: "b$1".into(),
        replacement: "$2".into(),
        ..RelabelRule::default()
    };
    let mut intake = Intake::new(IntakeRules {
        labels: vec![("job".into(), "j".into())],
        relabeling: Arc::new(Relabeling::new(&[rule]).unwrap_or_default()),
        honor_labels: input.len().is_multiple_of(2),
        honor_timestamps: true,
        samples_max: 1000,
    });
    for (at, text) in input.split(|&byte| byte == 0).enumerate() {
        let stamp_ms = i64::try_from(at).unwrap_or(0);
        let format = match at.is_multiple_of(3) {
            true => ExpositionFormat::OpenMetrics,
            false => ExpositionFormat::Prometheus,
        };
        match intake.take(format, text, stamp_ms) {
            Ok((message, counts)) => {
                assert!(counts.kept <= counts.scraped, "more than there are");
                drop(message.finish());
            }
            Err(_) => drop(intake.fail(stamp_ms).finish()),
        }
        unpack(text);
        redirect(text);
    }
}

fn unpack(text: &[u8]) {
    for encoding in [None, Some("gzip")] {
        if let Ok(mut unpacker) = Unpacker::new(encoding)
            && unpacker.push(text).is_ok()
        {
            drop(unpacker.finish());
        }
    }
}

/// A URL that is read is written, and read again as the same one.
fn redirect(text: &[u8]) {
    let Ok(from) = ScrapeUrl::parse("http://[::1]:9/a/b?c") else {
        unreachable!("BUG: a URL");
    };
    let text = String::from_utf8_lossy(text);
    let found = [from.redirected(&text).ok(), ScrapeUrl::parse(&text).ok()];
    for url in found.into_iter().flatten() {
        assert_eq!(ScrapeUrl::parse(&url.to_string()), Ok(url));
    }
}
