//! Definitions of the .rrd files of new series.

use std::collections::HashMap;

use kymo_rrd::{Header, create};
use kymo_wire::collectd::{
    Cdtime, DataSource, Fit, RrdSettings, TypesDb, ValueKind, put_source_name,
};

use super::CollectdSettings;

/// As CREATE has it: states of one kind of file are alike.
const ROWS_BEGIN: u64 = 1;

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

    /// A file as for a type that types.db lacks.
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
