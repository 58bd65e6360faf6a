//! PUSH: requests that senders push over HTTP (remote write, OTLP), handed to the keeper as they came; samples of
//! targets that are scraped; and accounts of these senders.

use super::body::{Put, Take};

/// Most bytes of a request that is pushed, as it came. A remote write of Prometheus has some 30 KB, an export of
/// OpenTelemetry's collector 4 MB at most by default.
pub const PUSH_MAX: usize = 8 << 20;
/// Most senders, and most reasons of one, that are believed.
const SENDERS_MAX: usize = 4096;
const REASONS_MAX: usize = 256;

/// Formats of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PushFormat {
    /// `prometheus.WriteRequest` in a block of Snappy.
    RemoteWriteV1,
    /// `io.prometheus.write.v2.Request` in a block of Snappy.
    RemoteWriteV2,
    /// `ExportMetricsServiceRequest`.
    Otlp,
    /// Samples of a scrape, as [`PushFormat::RemoteWriteV1`]; the sender is the target.
    Scrape,
}

impl PushFormat {
    /// All formats, in the order of their codes.
    pub const ALL: [PushFormat; 4] = [
        PushFormat::RemoteWriteV1,
        PushFormat::RemoteWriteV2,
        PushFormat::Otlp,
        PushFormat::Scrape,
    ];

    /// The protocol of a format, as people know it.
    pub fn protocol(self) -> &'static str {
        match self {
            PushFormat::RemoteWriteV1 | PushFormat::RemoteWriteV2 => "remote_write",
            PushFormat::Otlp => "otlp",
            PushFormat::Scrape => "scrape",
        }
    }

    fn code(self) -> u8 {
        match self {
            PushFormat::RemoteWriteV1 => 0,
            PushFormat::RemoteWriteV2 => 1,
            PushFormat::Otlp => 2,
            PushFormat::Scrape => 3,
        }
    }

    fn of(code: u8) -> Option<PushFormat> {
        PushFormat::ALL
            .into_iter()
            .find(|format| format.code() == code)
    }
}

/// A request of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// Format of the body.
    pub format: PushFormat,
    /// The sender: an address, or a user of this machine.
    pub sender: String,
    /// The body.
    pub body: Vec<u8>,
}

/// Result of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushResult {
    /// Status of HTTP.
    pub status: u16,
    /// Samples in the store, those among them that it had before.
    pub samples: u64,
    /// Samples of remote write, or data points of OTLP, that were refused.
    pub refused: u64,
    /// Reasons of the refusal, for people.
    pub why: String,
}

/// Counts of a sender since the keeper's start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PushAccount {
    /// The protocol.
    pub protocol: String,
    /// The sender; empty: further senders together.
    pub sender: String,
    /// Seconds since the last request.
    pub age_s: f64,
    /// Requests.
    pub requests: u64,
    /// Samples in the store.
    pub samples: u64,
    /// Series that began.
    pub series: u64,
    /// Samples, series and requests that were refused, by reason.
    pub refused: Vec<(String, u64)>,
}

/// Metadata of a metric.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetricFamily {
    /// The metric.
    pub metric: String,
    /// Type in OpenMetrics' words.
    pub kind: String,
    /// The unit; may be empty.
    pub unit: String,
    /// A sentence; may be empty.
    pub help: String,
}

fn text(body: &mut Take) -> Option<String> {
    String::from_utf8(body.text()?.to_vec()).ok()
}

impl Push {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.u8(self.format.code());
        out.text(self.sender.as_bytes());
        out.length(self.body.len());
        out.extend_from_slice(&self.body);
    }

    pub(super) fn take(body: &mut Take) -> Option<Push> {
        let format = PushFormat::of(body.u8()?)?;
        let sender = text(body)?;
        let count = usize::try_from(body.u32()?).ok()?;
        Some(Push {
            format,
            sender,
            body: body.bytes(count)?.to_vec(),
        })
    }
}

impl PushResult {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.u16(usize::from(self.status));
        out.u64(self.samples);
        out.u64(self.refused);
        out.text(self.why.as_bytes());
    }

    pub(super) fn take(body: &mut Take) -> Option<PushResult> {
        Some(PushResult {
            status: body.array().map(u16::from_le_bytes)?,
            samples: body.u64()?,
            refused: body.u64()?,
            why: text(body)?,
        })
    }
}

pub(super) fn put_accounts(accounts: &[PushAccount], out: &mut Vec<u8>) {
    out.u16(accounts.len());
    for account in accounts {
        out.text(account.protocol.as_bytes());
        out.text(account.sender.as_bytes());
        out.f64(account.age_s);
        out.u64(account.requests);
        out.u64(account.samples);
        out.u64(account.series);
        out.u16(account.refused.len());
        for (why, count) in &account.refused {
            out.text(why.as_bytes());
            out.u64(*count);
        }
    }
}

pub(super) fn take_accounts(body: &mut Take) -> Option<Vec<PushAccount>> {
    let count = body.count(SENDERS_MAX)?;
    (0..count).map(|_| take_account(body)).collect()
}

fn take_account(body: &mut Take) -> Option<PushAccount> {
    let (protocol, sender) = (text(body)?, text(body)?);
    let age_s = body.f64()?;
    let (requests, samples, series) = (body.u64()?, body.u64()?, body.u64()?);
    let reasons = body.count(REASONS_MAX)?;
    let refused = (0..reasons).map(|_| Some((text(body)?, body.u64()?)));
    Some(PushAccount {
        protocol,
        sender,
        age_s,
        requests,
        samples,
        series,
        refused: refused.collect::<Option<_>>()?,
    })
}

pub(super) fn put_metric(metric: &str, out: &mut Vec<u8>) {
    out.text(metric.as_bytes());
}

pub(super) fn take_metric(body: &mut Take) -> Option<String> {
    text(body)
}

pub(super) fn put_families(families: &[MetricFamily], out: &mut Vec<u8>) {
    out.length(families.len());
    for family in families {
        for each in [&family.metric, &family.kind, &family.unit, &family.help] {
            out.text(each.as_bytes());
        }
    }
}

pub(super) fn take_families(body: &mut Take) -> Option<Vec<MetricFamily>> {
    let count = body.u32()?;
    let families = (0..count).map(|_| {
        Some(MetricFamily {
            metric: text(body)?,
            kind: text(body)?,
            unit: text(body)?,
            help: text(body)?,
        })
    });
    families.collect()
}
