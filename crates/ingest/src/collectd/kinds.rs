//! Kinds of a series' values, and how types.db has their type. A sender whose values become others, for good, gets other
//! definitions; so does a series whose type types.db lacked when it began.

use kymo_rrd::Header;
use kymo_store::{Store, Writer};
use kymo_wire::collectd::{Cdtime, ValueKind, Values};

use super::index::Standing;
use super::intake::Registry;
use super::redefine::{Change, Why};

/// A series has no more than one change of its kinds in this time: until it is over others are refused.
const REST_MS: u64 = 60_000;

impl Registry {
    /// A series that is not known yet, or has to be looked at again: notes a type that types.db lacks, and which kinds the
    /// definitions are for that the store has of it.
    pub(super) fn look_at_kinds(&mut self, series: u32, now_s: u64, store: &Store) {
        let Some(entry) = self.index.get(series) else {
            return;
        };
        let (type_name, path) = (entry.type_name().to_vec(), entry.path.clone());
        self.odd
            .note(&self.types, (&type_name, &path), &entry.codes);
        let stored = store.definition(&path);
        let Some((stored, codes)) = stored.and_then(|stored| {
            let codes = codes_of(&stored)?;
            Some((stored, codes))
        }) else {
            return;
        };
        if codes == *entry.codes {
            return self.look_at_names(series, &type_name, (&stored, now_s));
        }
        // A file that somebody defined otherwise takes what comes, as long as it is as many values.
        let is_ours = self.origin(&type_name, &stored).is_some();
        let entry = self.index.get_mut(series);
        if let Some(entry) = entry.filter(|entry| is_ours || entry.codes.len() != codes.len()) {
            entry.codes = codes.into();
        }
    }

    /// Asks for the names of types.db if a series began without.
    fn look_at_names(&mut self, series: u32, type_name: &[u8], (stored, now_s): (&Header, u64)) {
        let Some(entry) = self.index.get(series) else {
            return;
        };
        let (path, codes) = (entry.path.clone(), entry.codes.clone());
        let step = Cdtime::from_seconds(stored.pdp_step);
        let settings = &self.settings;
        let types = &self.types;
        let to = self
            .definitions
            .header((type_name, &codes), step, (types, settings));
        let to = to.filter(|to| !is_same(to, stored)).cloned();
        let from = self.definitions.unnamed(&codes, step, settings);
        let from = from.filter(|from| is_same(from, stored));
        if let (Some(from), Some(to), true) = (from, to, self.requests.has_room()) {
            self.requests.ask(Change {
                series,
                path,
                from,
                to,
                since_s: now_s,
                why: Why::Names,
            });
        }
    }

    /// The definitions of ours that the store has of a series; `None`: they are others.
    fn origin(&mut self, type_name: &[u8], stored: &Header) -> Option<Header> {
        let codes = codes_of(stored)?;
        let step = Cdtime::from_seconds(stored.pdp_step);
        let settings = &self.settings;
        let types = &self.types;
        let named = self
            .definitions
            .header((type_name, &codes), step, (types, settings));
        let named = named.filter(|named| is_same(named, stored)).cloned();
        let unnamed = || self.definitions.unnamed(&codes, step, settings);
        named.or_else(|| unnamed().filter(|unnamed| is_same(unnamed, stored)))
    }

    /// Values came of other kinds than a series' definitions are for. The third time in a row others are asked for.
    pub(super) fn look_at_mismatch(
        &mut self,
        series: u32,
        values: &Values,
        (writer, now_ms): (Writer, u64),
        store: &Store,
    ) {
        let Some(entry) = self.index.get(series) else {
            return;
        };
        // A sender that may not write the series does not change it either.
        if entry.standing != Standing::Defined || !store.may_write(&entry.path, writer) {
            return;
        }
        let codes = values.values.codes();
        let how = (codes, values.time.seconds());
        let since_s = self.kinds.take(series, &*entry.codes, how, now_ms);
        let Some(since_s) = since_s.filter(|_| self.requests.has_room()) else {
            return;
        };
        let (type_name, path) = (entry.type_name().to_vec(), entry.path.clone());
        let interval = self.settings.interval_of(values);
        let stored = store.definition(&path);
        let from = stored.and_then(|stored| self.origin(&type_name, &stored));
        let of = (&type_name[..], codes);
        let to = self
            .definitions
            .header(of, interval, (&self.types, &self.settings));
        let (Some(from), Some(to)) = (from, to.cloned()) else {
            return self.kinds.fail(series, now_ms);
        };
        self.requests.ask(Change {
            series,
            path,
            from,
            to,
            since_s,
            why: Why::Kinds,
        });
        if let Some(entry) = self.index.get_mut(series) {
            (entry.codes, entry.interval) = (codes.into(), interval);
            entry.standing = Standing::Changing;
        }
        self.kinds.rest(series, now_ms + REST_MS);
    }

    /// Takes over types.db if it was read again: series whose types it lacked are looked at with their next values.
    pub(super) fn take_types(&mut self) {
        let types = self.settings.types.get();
        if std::sync::Arc::ptr_eq(&types, &self.types) {
            return;
        }
        self.types = types;
        self.definitions = Default::default();
        let was_odd = std::mem::take(&mut self.odd);
        self.index.look_again(|type_name| was_odd.has(type_name));
    }
}

/// The kinds of a definition's sources, as packets spell them; `None`: some are none of collectd's.
fn codes_of(header: &Header) -> Option<Vec<u8>> {
    let kind = |dst: &[u8]| {
        let mut kinds = ValueKind::ALL.into_iter();
        kinds.find(|kind| kind.word().as_bytes() == dst)
    };
    let codes = header.ds.iter().map(|ds| Some(kind(ds.dst())?.code()));
    codes.collect()
}

/// Compares definitions, without the state of their current rows.
fn is_same(one: &Header, other: &Header) -> bool {
    one.pdp_step == other.pdp_step && one.ds == other.ds && one.rra == other.rra
}
