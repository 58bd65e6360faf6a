//! Types that types.db lacks, or has with another number of sources. Values of such types get names without a meaning.

use std::collections::BTreeMap;

use kymo_base::name::DisplayName;
use kymo_wire::collectd::{Fit, TypesDb, ValueKind};
use kymo_wire::keeper::OddType;

/// Most types of the list: senders can make up any.
const ODD_MAX: usize = 64;

/// Types that types.db lacks, or has with another number of sources.
#[derive(Debug, Default)]
pub(super) struct OddTypes {
    known: BTreeMap<Vec<u8>, OddType>,
    /// Types that were not logged yet.
    news: Vec<OddType>,
}

impl OddTypes {
    /// Notes the type of a series if types.db lacks it or has it with another number of sources.
    pub(super) fn note(
        &mut self,
        types: &TypesDb,
        (type_name, path): (&[u8], &[u8]),
        codes: &[u8],
    ) {
        let kinds = codes.iter().map(|&code| ValueKind::of_code(code));
        let known = match types.fit(type_name, kinds) {
            Fit::Unknown => 0,
            Fit::OtherCount(sources) => sources.len(),
            Fit::Same(_) | Fit::OtherKinds(_) => return,
        };
        if self.known.len() >= ODD_MAX || self.known.contains_key(type_name) {
            return;
        }
        let odd = OddType {
            name: type_name.to_vec(),
            series: path.to_vec(),
            known: u8::try_from(known).unwrap_or(u8::MAX),
            came: u8::try_from(codes.len()).unwrap_or(u8::MAX),
        };
        self.known.insert(type_name.to_vec(), odd.clone());
        self.news.push(odd);
    }

    /// True for a type of the list.
    pub(super) fn has(&self, type_name: &[u8]) -> bool {
        self.known.contains_key(type_name)
    }

    /// Number of types.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// All types.
    pub(super) fn all(&self) -> Vec<OddType> {
        self.known.values().cloned().collect()
    }

    /// Lines about new types, for the log.
    pub(super) fn take_news(&mut self) -> Vec<String> {
        let line = |odd: OddType| {
            let (name, series) = (DisplayName(&odd.name), DisplayName(&odd.series));
            let came = odd.came;
            match odd.known {
                0 => format!(
                    "collectd: types.db lacks the type {name} ({series}): its values have the names value, value0, value1 ... and no limits until it has it"
                ),
                known => format!(
                    "collectd: types.db has {known} sources of the type {name}, and {came} came ({series}): they have the names value, value0, value1 ..."
                ),
            }
        };
        self.news.drain(..).map(line).collect()
    }
}
