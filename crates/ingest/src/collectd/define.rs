//! Definitions of the .rrd files of new series.

use std::collections::HashMap;

use kymo_rrd::{Header, create};
use kymo_wire::collectd::{
    Cdtime, DataSource, Fit, RrdSettings, TypesDb, ValueKind, put_source_name,
};

use super::CollectdSettings;

/// First `rows_begin` of a definition, as in CREATE: states of files with equal definitions are equal.
const ROWS_BEGIN: u64 = 1;

/// Definitions by type, kinds and interval. Most series share one.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    headers: HashMap<(Vec<u8>, Vec<u8>, Cdtime), Header>,
}

/// Most definitions in memory.
const HEADERS_MAX: usize = 4096;

impl Definitions {
    /// Definition of the file that collectd would make for values of this type and of these kinds, as packets spell them;
    /// `None`: values that come more than once a second get no file.
    pub(super) fn header(
        &mut self,
        (type_name, codes): (&[u8], &[u8]),
        interval: Cdtime,
        (types, settings): (&TypesDb, &CollectdSettings),
    ) -> Option<&Header> {
        let key = (type_name.to_vec(), codes.to_vec(), interval);
        if self.headers.len() >= HEADERS_MAX {
            self.headers.clear();
        }
        if !self.headers.contains_key(&key) {
            let sources = sources(type_name, codes, types);
            let header = define(&sources, interval, &settings.rrd)?;
            self.headers.insert(key.clone(), header);
        }
        self.headers.get(&key)
    }

    /// Definition of a file for a type that types.db lacks.
    pub(super) fn unnamed(
        &self,
        codes: &[u8],
        interval: Cdtime,
        settings: &CollectdSettings,
    ) -> Option<Header> {
        let sources = sources(b"", codes, &TypesDb::default());
        define(&sources, interval, &settings.rrd)
    }
}

/// Data sources of a type: names and limits from types.db, kinds from the packet.
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

/// The definition that `--start` with this time would have made.
pub(super) fn starting_at(definition: &Header, start: i64) -> Option<Header> {
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
