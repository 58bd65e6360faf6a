//! Kinds of a series' values, and their type in types.db. A series gets a new definition when its values change their
//! kinds for good, or when types.db gets the type that it lacked when the series began.

use kymo_rrd::Header;
use kymo_store::{Store, Writer};
use kymo_wire::collectd::{Cdtime, ValueKind, Values};

use super::index::Standing;
use super::intake::Registry;
use super::redefine::{Change, Why};

/// Shortest time between two changes of a series' kinds; other kinds that come meanwhile are refused.
const REST_MS: u64 = 60_000;

impl Registry {
    /// Looks at a series that is new in the index or has to be looked at again: notes a type that types.db lacks, and the
    /// kinds of the store's definition.
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
        // A definition that others made accepts these values if it has as many sources.
        let is_ours = self.origin(&type_name, &stored).is_some();
        let entry = self.index.get_mut(series);
        if let Some(entry) = entry.filter(|entry| is_ours || entry.codes.len() != codes.len()) {
            entry.codes = codes.into();
        }
    }

    /// Asks for a definition with the names of types.db if the series began without them.
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

    /// The store's definition of a series, if this listener would make the same; `None`: others made it.
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

    /// Looks at values of other kinds than the series' definition is for. The third time in a row, asks for a new
    /// definition.
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
        // A sender that may not write the series may not change its definition either.
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

    /// Uses a types.db that was read again: series whose types it lacked are looked at with their next values.
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

/// Kinds of a definition's sources, as packets spell them; `None`: a kind is not one of collectd's.
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
