//! SCRAPED and TARGETS: targets that are scraped, with the state of each.

use super::body::{Put, Take};

/// Targets at most.
pub const SCRAPED_MAX: usize = 1000;
/// Labels of a target at most.
const TARGET_LABELS_MAX: usize = 256;

/// State of a target that is scraped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScrapedTarget {
    /// The job.
    pub job: String,
    /// The URL.
    pub url: String,
    /// Labels that all series of the target have.
    pub labels: Vec<(String, String)>,
    /// Milliseconds from one scrape to the next.
    pub interval_ms: u64,
    /// Milliseconds that a scrape may take.
    pub timeout_ms: u64,
    /// Begin of the last scrape, milliseconds since 1970; 0: there was none.
    pub scraped_ms: i64,
    /// Seconds that the last scrape took.
    pub duration_s: f64,
    /// Samples of the last scrape.
    pub samples: u64,
    /// Why the last scrape failed; empty: it did not.
    pub error: String,
}

fn text(body: &mut Take) -> Option<String> {
    String::from_utf8(body.text()?.to_vec()).ok()
}

impl ScrapedTarget {
    fn put(&self, out: &mut Vec<u8>) {
        for text in [&self.job, &self.url, &self.error] {
            out.text(text.as_bytes());
        }
        out.u16(self.labels.len());
        for (name, value) in &self.labels {
            out.text(name.as_bytes());
            out.text(value.as_bytes());
        }
        out.u64(self.interval_ms);
        out.u64(self.timeout_ms);
        out.i64(self.scraped_ms);
        out.f64(self.duration_s);
        out.u64(self.samples);
    }

    fn take(body: &mut Take) -> Option<ScrapedTarget> {
        let (job, url, error) = (text(body)?, text(body)?, text(body)?);
        let count = body.count(TARGET_LABELS_MAX)?;
        let labels = (0..count).map(|_| Some((text(body)?, text(body)?)));
        Some(ScrapedTarget {
            labels: labels.collect::<Option<_>>()?,
            job,
            url,
            error,
            interval_ms: body.u64()?,
            timeout_ms: body.u64()?,
            scraped_ms: body.i64()?,
            duration_s: body.f64()?,
            samples: body.u64()?,
        })
    }
}

pub(super) fn put(targets: &[ScrapedTarget], out: &mut Vec<u8>) {
    out.u16(targets.len());
    targets.iter().for_each(|target| target.put(out));
}

pub(super) fn take(body: &mut Take) -> Option<Vec<ScrapedTarget>> {
    let count = body.count(SCRAPED_MAX)?;
    (0..count).map(|_| ScrapedTarget::take(body)).collect()
}
