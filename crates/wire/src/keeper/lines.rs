//! LINES: counts of the listeners for lines, such as statsd's.

use super::body::{Put, Take};

/// Most listeners and most reasons that are believed.
const LISTENERS_MAX: usize = 64;
const REASONS_MAX: usize = 256;

/// Counts of a listener since the keeper's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineAccount {
    /// The protocol.
    pub protocol: Vec<u8>,
    /// Connections that are open.
    pub clients: u32,
    /// Datagrams received.
    pub datagrams: u64,
    /// Samples accepted.
    pub samples: u64,
    /// Lines, samples and datagrams that were not accepted, by their reasons.
    pub refused: Vec<(Vec<u8>, u64)>,
}

pub(super) fn put_lines(accounts: &[LineAccount], out: &mut Vec<u8>) {
    out.u16(accounts.len());
    for account in accounts {
        out.text(&account.protocol);
        out.u32(account.clients);
        out.u64(account.datagrams);
        out.u64(account.samples);
        out.u16(account.refused.len());
        for (why, count) in &account.refused {
            out.text(why);
            out.u64(*count);
        }
    }
}

pub(super) fn take_lines(body: &mut Take) -> Option<Vec<LineAccount>> {
    let count = body.count(LISTENERS_MAX)?;
    (0..count).map(|_| take_account(body)).collect()
}

fn take_account(body: &mut Take) -> Option<LineAccount> {
    let (protocol, clients) = (body.text()?.to_vec(), body.u32()?);
    let (datagrams, samples) = (body.u64()?, body.u64()?);
    let reasons = body.count(REASONS_MAX)?;
    let refused = (0..reasons).map(|_| Some((body.text()?.to_vec(), body.u64()?)));
    Some(LineAccount {
        protocol,
        clients,
        datagrams,
        samples,
        refused: refused.collect::<Option<_>>()?,
    })
}
