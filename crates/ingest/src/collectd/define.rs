//! New series: who may make how many, and what their .rrd files are.

use std::collections::HashMap;
use std::net::IpAddr;

use kymo_rrd::{Header, create};
use kymo_wire::collectd::{
    Cdtime, DataSource, Fit, RrdSettings, TypesDb, ValueKind, put_source_name,
};

use super::CollectdSettings;

/// Series that one sender may make at once, and then in a minute; and all senders together.
const SENDER_AT_ONCE: f64 = 50_000.0;
const SENDER_A_MINUTE: f64 = 10_000.0;
const SERIES_MAX: usize = 200_000;
/// Senders whose new series are counted one by one.
const SENDERS_MAX: usize = 4096;
/// As CREATE has it: states of one kind of file are alike.
const ROWS_BEGIN: u64 = 1;

/// How many series senders may still make.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// What was left, and when, in seconds.
    senders: HashMap<IpAddr, (f64, f64)>,
    rest: Option<(f64, f64)>,
}

impl Budget {
    /// Whether a sender may make one more of `count` series, which counts as made then.
    pub(super) fn takes(&mut self, sender: IpAddr, count: usize, now_s: f64) -> bool {
        if count >= SERIES_MAX {
            return false;
        }
        let full = (SENDER_AT_ONCE, now_s);
        let known = self.senders.len() < SENDERS_MAX || self.senders.contains_key(&sender);
        let (left, since) = match known {
            true => self.senders.entry(sender).or_insert(full),
            false => self.rest.get_or_insert(full),
        };
        let grown = (now_s - *since).max(0.0) * (SENDER_A_MINUTE / 60.0);
        (*left, *since) = ((*left + grown).min(SENDER_AT_ONCE), now_s);
        let may = *left >= 1.0;
        if may {
            *left -= 1.0;
        }
        may
    }
}

/// Definitions that were made, by type, kinds and interval: most series share one.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    headers: HashMap<(Vec<u8>, Vec<u8>, Cdtime), Header>,
}

/// Definitions that are remembered.
const HEADERS_MAX: usize = 4096;

impl Definitions {
    /// The file that collectd would make for values of this type and these kinds, as packets spell them; `None`: none, as they
    /// come more than once a second.
    pub(super) fn header(
        &mut self,
        (type_name, codes): (&[u8], &[u8]),
        interval: Cdtime,
        settings: &CollectdSettings,
    ) -> Option<&Header> {
        let key = (type_name.to_vec(), codes.to_vec(), interval);
        if self.headers.len() >= HEADERS_MAX {
            self.headers.clear();
        }
        if !self.headers.contains_key(&key) {
            let sources = sources(type_name, codes, &settings.types);
            let header = define(&sources, interval, &settings.rrd)?;
            self.headers.insert(key.clone(), header);
        }
        self.headers.get(&key)
    }
}

/// As types.db says; kinds are those of the packet.
fn sources(type_name: &[u8], codes: &[u8], types: &TypesDb) -> Vec<DataSource> {
    let kinds = codes.iter().map(|&code| ValueKind::of_code(code));
    let count = kinds.len();
    let known = match types.fit(type_name, kinds.clone()) {
        Fit::Same(sources) => return sources.to_vec(),
        Fit::OtherKinds(sources) => Some(sources),
        Fit::OtherCount(_) | Fit::Unknown => None,
    };
    let name = |at: usize| match known {
        Some(sources) => sources[at].name.clone(),
        None => {
            let mut name = Vec::new();
            put_source_name(&mut name, at, count);
            String::from_utf8_lossy(&name).into()
        }
    };
    let source = |(at, kind)| DataSource {
        name: name(at),
        kind,
        min: None,
        max: None,
    };
    kinds.enumerate().map(source).collect()
}

fn define(sources: &[DataSource], interval: Cdtime, settings: &RrdSettings) -> Option<Header> {
    let definition = settings.define(interval, sources)?;
    let words: Vec<&[u8]> = definition
        .words
        .iter()
        .map(|word| word.as_bytes())
        .collect();
    let request = create::Create {
        file_name: b"",
        step: definition.step_s,
        start: Some(1),
        definitions: &words,
    };
    let made = create::define(&request, 1, &mut { ROWS_BEGIN }, None, false);
    made.ok().map(|(header, _)| header)
}

/// The same, as if it had been made with that `--start`.
pub(super) fn begun(definition: &Header, start: i64) -> Option<Header> {
    let request = create::Create {
        start: Some(start),
        ..create::Create::default()
    };
    let made = create::define(
        &request,
        start,
        &mut { ROWS_BEGIN },
        Some(definition),
        false,
    );
    made.ok().map(|(header, _)| header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_has_a_budget_and_others_have_theirs() {
        let mut budget = Budget::default();
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut made = 0;
        while budget.takes(one, made, 0.0) {
            made += 1;
        }
        assert_eq!(made, 50_000);
        assert!(budget.takes(other, made, 0.0));
        let mut later = 0;
        while budget.takes(one, made, 60.0) {
            later += 1;
        }
        assert_eq!(later, 10_000);
        assert!(!budget.takes(other, SERIES_MAX, 60.0));
        // A clock that goes back gives nothing.
        assert!(!budget.takes(one, made, 0.0));
    }
}
