//! FORWARDED and RECEIVERS: receivers of `[[forward]]`, with the counts of each.

use super::body::{Put, Take};
use super::put_flag;

/// Receivers at most.
pub const RECEIVERS_MAX: usize = 64;

/// Counts of a receiver since the process that forwards began, and how far it is behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReceiverAccount {
    /// Name of the receiver.
    pub name: String,
    /// Samples that the receiver has.
    pub sent: u64,
    /// Samples that the receiver refuses.
    pub refused: u64,
    /// Values that the journal had no more.
    pub missed: u64,
    /// Requests.
    pub requests: u64,
    /// Requests that had to be sent again.
    pub failed: u64,
    /// Bytes of requests that the receiver has, without HTTP.
    pub bytes: u64,
    /// True if the last request did not fail.
    pub is_up: bool,
    /// Bytes of the journal that the receiver is behind.
    pub backlog_bytes: u64,
    /// Seconds since the first of these bytes was written, about.
    pub backlog_age_s: f64,
}

/// A metric of a receiver.
pub struct ReceiverMetric {
    /// Name of the metric; a counter's ends in `_total`.
    pub name: &'static str,
    /// Help text.
    pub help: &'static str,
    /// The metric's value.
    pub value: fn(&ReceiverAccount) -> f64,
}

/// The metrics of a receiver. Their label `forward` has its name.
pub const RECEIVER_METRICS: [ReceiverMetric; 9] = [
    ReceiverMetric {
        name: "kymo_forward_samples_total",
        help: "Samples that the receiver has",
        value: |account| number(account.sent),
    },
    ReceiverMetric {
        name: "kymo_forward_refused_samples_total",
        help: "Samples that the receiver refused for good",
        value: |account| number(account.refused),
    },
    ReceiverMetric {
        name: "kymo_forward_missed_values_total",
        help: "Values that the journal had no more when the receiver was to get them",
        value: |account| number(account.missed),
    },
    ReceiverMetric {
        name: "kymo_forward_requests_total",
        help: "Requests to the receiver",
        value: |account| number(account.requests),
    },
    ReceiverMetric {
        name: "kymo_forward_failed_requests_total",
        help: "Requests that had to be sent again",
        value: |account| number(account.failed),
    },
    ReceiverMetric {
        name: "kymo_forward_sent_bytes_total",
        help: "Bytes of requests that the receiver has, without HTTP",
        value: |account| number(account.bytes),
    },
    ReceiverMetric {
        name: "kymo_forward_up",
        help: "1: the last request was answered; 0: it failed",
        value: |account| f64::from(u8::from(account.is_up)),
    },
    ReceiverMetric {
        name: "kymo_forward_backlog_bytes",
        help: "Bytes of the journal that the receiver is behind",
        value: |account| number(account.backlog_bytes),
    },
    ReceiverMetric {
        name: "kymo_forward_backlog_seconds",
        help: "Age of the oldest part of the journal that the receiver does not have",
        value: |account| account.backlog_age_s,
    },
];

impl ReceiverMetric {
    /// True if the metric only grows.
    pub fn is_counter(&self) -> bool {
        self.name.ends_with("_total")
    }
}

/// A count as a sample: exact up to 2^53.
fn number(count: u64) -> f64 {
    count as f64
}

pub(super) fn put(receivers: &[ReceiverAccount], out: &mut Vec<u8>) {
    out.u16(receivers.len());
    for receiver in receivers {
        out.text(receiver.name.as_bytes());
        for count in [
            receiver.sent,
            receiver.refused,
            receiver.missed,
            receiver.requests,
            receiver.failed,
            receiver.bytes,
            receiver.backlog_bytes,
        ] {
            out.u64(count);
        }
        put_flag(&receiver.is_up, out);
        out.f64(receiver.backlog_age_s);
    }
}

pub(super) fn take(body: &mut Take) -> Option<Vec<ReceiverAccount>> {
    let count = body.count(RECEIVERS_MAX)?;
    let receivers = (0..count).map(|_| {
        Some(ReceiverAccount {
            name: String::from_utf8(body.text()?.to_vec()).ok()?,
            sent: body.u64()?,
            refused: body.u64()?,
            missed: body.u64()?,
            requests: body.u64()?,
            failed: body.u64()?,
            bytes: body.u64()?,
            backlog_bytes: body.u64()?,
            is_up: body.flag()?,
            backlog_age_s: body.f64()?,
        })
    });
    receivers.collect()
}
