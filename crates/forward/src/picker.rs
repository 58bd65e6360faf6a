//! Which series go to a receiver, and with which labels.

use std::collections::{BTreeMap, BTreeSet};

use kymo_base::label_set::{self, Labels};
use kymo_series::names::METRIC;
use kymo_series::{Matcher, Selector};

/// Selects series, and changes their labels.
#[derive(Debug, Default)]
pub struct Picker {
    /// Empty: all series.
    selectors: Vec<Vec<Matcher>>,
    added: BTreeMap<String, String>,
    dropped: BTreeSet<String>,
}

impl Picker {
    /// Checks selectors, and takes labels to add and to drop.
    pub fn new(
        selectors: &[String],
        added: &BTreeMap<String, String>,
        dropped: &[String],
    ) -> Result<Picker, String> {
        let parsed = selectors.iter().map(|text| Selector::parse(text));
        let parsed = parsed.map(|selector| selector.map(|selector| selector.0));
        if dropped.iter().any(|name| name == METRIC) {
            return Err(format!(
                "{METRIC} cannot be dropped: it is the metric's name"
            ));
        }
        Ok(Picker {
            selectors: parsed.collect::<Result<_, _>>().map_err(|error| error.0)?,
            added: added.clone(),
            dropped: dropped.iter().cloned().collect(),
        })
    }

    /// Selects series, and changes nothing.
    pub fn of_selectors(selectors: &[String]) -> Result<Picker, String> {
        Picker::new(selectors, &BTreeMap::new(), &[])
    }

    /// True if one of the selectors matches, or if there are none.
    pub(crate) fn picks(&self, labels: &Labels) -> bool {
        let text = labels.text();
        let fits = |matcher: &Matcher| matcher.matches(&label_set::value(text, matcher.label()));
        let mut selectors = self.selectors.iter();
        self.selectors.is_empty() || selectors.any(|all| all.iter().all(fits))
    }

    /// Labels with which a series goes out, sorted; `None`: it stays here, as one without a metric's name does.
    pub(crate) fn pick(&self, labels: &Labels) -> Option<BTreeMap<String, String>> {
        if !self.picks(labels) {
            return None;
        }
        let text = labels.text();
        let own = label_set::each(text).map(|(name, value)| {
            let plain = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (plain(name), plain(&value))
        });
        let mut out: BTreeMap<String, String> = own
            .filter(|(name, _)| !self.dropped.contains(name))
            .collect();
        if !out.contains_key(METRIC) {
            return None;
        }
        for (name, value) in self.added.iter().filter(|(_, value)| !value.is_empty()) {
            out.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_picked_and_labelled() {
        let added = [("site", "b"), ("a", "x"), ("none", "")];
        let added = added
            .map(|(name, value)| (name.into(), value.into()))
            .into();
        for (selectors, dropped, labels, expected) in [
            (
                &[][..],
                &[][..],
                r#"{__name__="m",a="1"}"#,
                "__name__=m,a=1,site=b",
            ),
            (
                &["m"],
                &[],
                r#"{__name__="m",a="1"}"#,
                "__name__=m,a=1,site=b",
            ),
            (&["n"], &[], r#"{__name__="m",a="1"}"#, "-"),
            (
                &["n", r#"{a=~"1|2"}"#],
                &[],
                r#"{__name__="m",a="1"}"#,
                "__name__=m,a=1,site=b",
            ),
            (&[r#"m{a!="1"}"#], &[], r#"{__name__="m",a="1"}"#, "-"),
            // The label that was dropped is free for the one that is added.
            (
                &[],
                &["a"],
                r#"{__name__="m",a="1"}"#,
                "__name__=m,a=x,site=b",
            ),
            (
                &[],
                &["b"],
                r#"{__name__="m",a="1",b="c\"\\"}"#,
                "__name__=m,a=1,site=b",
            ),
            (&[], &[], r#"{a="1"}"#, "-"),
        ] {
            let texts = |all: &[&str]| all.iter().map(|&text| text.into()).collect::<Vec<String>>();
            let picker = Picker::new(&texts(selectors), &added, &texts(dropped)).unwrap();
            let labels = Labels::parse(labels.as_bytes()).unwrap();
            let picked = picker.pick(&labels).map(|labels| {
                let pairs = labels.iter().map(|(name, value)| format!("{name}={value}"));
                pairs.collect::<Vec<_>>().join(",")
            });
            assert_eq!(
                picked.as_deref().unwrap_or("-"),
                expected,
                "{selectors:?} {labels:?}"
            );
        }
    }

    #[test]
    fn wrong_selectors_are_refused() {
        let none = BTreeMap::new();
        for (selector, dropped, why) in [
            ("{", "a", "cannot use \"{\" as a selector"),
            ("up", "__name__", "__name__ cannot be dropped"),
        ] {
            let error = Picker::new(&[selector.into()], &none, &[dropped.into()]).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
