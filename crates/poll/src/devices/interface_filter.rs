//! The interfaces of a device that are polled: those that are up and no loopback, as cfgmaker has it, or those that a
//! configuration chooses.

use std::collections::HashSet;

use regex::Regex;
use serde::{Deserialize, Serialize};

/// ifAdminStatus and ifOperStatus: up.
const UP: f64 = 1.0;
/// ifOperStatus: waits for something to send, as a line that is dialled does.
const DORMANT: f64 = 5.0;

/// The configured choice of interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceFilter {
    /// The state that an interface has to have.
    pub state: InterfaceState,
    /// Names; if there are any, they alone count.
    pub listed: Vec<String>,
    /// Patterns of ifName.
    pub names: Patterns,
    /// Patterns of ifAlias.
    pub aliases: Patterns,
    /// Patterns of the word of ifType.
    pub types: Patterns,
}

/// The state that an interface has to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InterfaceState {
    /// Up once since the start of the process: one that fails later is still polled.
    #[default]
    Up,
    /// Any.
    All,
}

/// Patterns of a text: expressions that have to match all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patterns {
    /// One of these has to match; empty: any text does.
    pub only: Vec<String>,
    /// None of these may match.
    pub not: Vec<String>,
}

impl Default for InterfaceFilter {
    fn default() -> InterfaceFilter {
        InterfaceFilter {
            state: InterfaceState::Up,
            listed: Vec::new(),
            names: Patterns::default(),
            aliases: Patterns::default(),
            types: Patterns {
                only: Vec::new(),
                not: vec!["softwareLoopback".into()],
            },
        }
    }
}

impl InterfaceFilter {
    /// A filter that chooses all interfaces.
    pub fn everything() -> InterfaceFilter {
        InterfaceFilter {
            state: InterfaceState::All,
            types: Patterns::default(),
            ..InterfaceFilter::default()
        }
    }

    /// The interfaces of a poll that it chooses. The error is about a pattern.
    pub fn chosen<'a>(
        &self,
        found: &'a [FoundInterface],
    ) -> Result<Vec<&'a FoundInterface>, String> {
        let mut choice = InterfaceChoice::new(self)?;
        Ok(found.iter().filter(|one| choice.takes(one)).collect())
    }

    /// Checks the patterns.
    pub fn check(&self) -> Result<(), String> {
        InterfaceChoice::new(self).map(drop)
    }
}

/// An interface, as a poll found it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundInterface {
    /// ifIndex.
    pub index: String,
    /// ifName; where there is none, ifDescr.
    pub name: String,
    /// ifAlias.
    pub alias: String,
    /// ifDescr.
    pub descr: String,
    /// Word of ifType.
    pub kind: String,
    /// ifAdminStatus.
    pub admin: Option<f64>,
    /// ifOperStatus.
    pub oper: Option<f64>,
    /// ifHighSpeed, or ifSpeed in its place, Mbit/s.
    pub mbit: Option<f64>,
}

/// A filter with its state.
pub(super) struct InterfaceChoice {
    state: InterfaceState,
    listed: HashSet<String>,
    texts: [CompiledPatterns; 3],
    /// Names of interfaces that have been up.
    was_up: HashSet<String>,
}

struct CompiledPatterns {
    only: Vec<Regex>,
    not: Vec<Regex>,
}

impl CompiledPatterns {
    fn new(patterns: &Patterns) -> Result<CompiledPatterns, String> {
        let all = |texts: &[String]| -> Result<Vec<Regex>, String> {
            texts.iter().map(|text| whole(text)).collect()
        };
        Ok(CompiledPatterns {
            only: all(&patterns.only)?,
            not: all(&patterns.not)?,
        })
    }

    fn takes(&self, text: &str) -> bool {
        let any = |all: &[Regex]| all.iter().any(|one| one.is_match(text));
        (self.only.is_empty() || any(&self.only)) && !any(&self.not)
    }
}

/// The expression that has to match all of a text.
pub(super) fn whole(text: &str) -> Result<Regex, String> {
    let cannot = |_| format!("{text:?} is not a regular expression");
    Regex::new(text).map_err(cannot)?;
    Regex::new(&format!("^(?:{text})$")).map_err(cannot)
}

impl InterfaceChoice {
    pub(super) fn new(filter: &InterfaceFilter) -> Result<InterfaceChoice, String> {
        Ok(InterfaceChoice {
            state: filter.state,
            listed: filter.listed.iter().cloned().collect(),
            texts: [
                CompiledPatterns::new(&filter.names)?,
                CompiledPatterns::new(&filter.aliases)?,
                CompiledPatterns::new(&filter.types)?,
            ],
            was_up: HashSet::new(),
        })
    }

    /// True if the interface is polled.
    pub(super) fn takes(&mut self, seen: &FoundInterface) -> bool {
        if !self.listed.is_empty() {
            return self.listed.contains(&seen.name);
        }
        let texts = [&seen.name, &seen.alias, &seen.kind];
        if !self
            .texts
            .iter()
            .zip(texts)
            .all(|(own, text)| own.takes(text))
        {
            return false;
        }
        let is_up = seen.admin == Some(UP) && [Some(UP), Some(DORMANT)].contains(&seen.oper);
        match self.state {
            InterfaceState::All => true,
            InterfaceState::Up if is_up => {
                if !self.was_up.contains(&seen.name) {
                    self.was_up.insert(seen.name.clone());
                }
                true
            }
            InterfaceState::Up => self.was_up.contains(&seen.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, kind: &str, oper: f64) -> FoundInterface {
        FoundInterface {
            name: name.into(),
            alias: "to the core".into(),
            kind: kind.into(),
            admin: Some(1.0),
            oper: Some(oper),
            ..FoundInterface::default()
        }
    }

    #[test]
    fn an_interface_that_was_up_stays() {
        let mut choice = InterfaceChoice::new(&InterfaceFilter::default()).unwrap();
        assert!(!choice.takes(&seen("a", "ethernetCsmacd", 2.0)), "down");
        assert!(choice.takes(&seen("a", "ethernetCsmacd", 1.0)), "up");
        assert!(choice.takes(&seen("a", "ethernetCsmacd", 2.0)), "was up");
        assert!(choice.takes(&seen("b", "ethernetCsmacd", 5.0)), "dormant");
        assert!(!choice.takes(&seen("lo", "softwareLoopback", 1.0)));
    }

    #[test]
    fn patterns_and_lists_choose() {
        let only = |text: &str| Patterns {
            only: vec![text.into()],
            not: vec!["Gi0/9".into()],
        };
        for (filter, name, is_taken) in [
            (
                InterfaceFilter {
                    names: only("Gi.*"),
                    ..InterfaceFilter::default()
                },
                "Gi0/1",
                true,
            ),
            (
                InterfaceFilter {
                    names: only("Gi.*"),
                    ..InterfaceFilter::default()
                },
                "Gi0/9",
                false,
            ),
            (
                InterfaceFilter {
                    names: only("Gi"),
                    ..InterfaceFilter::default()
                },
                "Gi0/1",
                false,
            ),
            (
                InterfaceFilter {
                    aliases: only("to .*"),
                    ..InterfaceFilter::default()
                },
                "x",
                true,
            ),
            (
                InterfaceFilter {
                    aliases: only("from"),
                    ..InterfaceFilter::default()
                },
                "x",
                false,
            ),
            (
                InterfaceFilter {
                    listed: vec!["x".into()],
                    ..InterfaceFilter::default()
                },
                "x",
                true,
            ),
            (
                InterfaceFilter {
                    listed: vec!["x".into()],
                    ..InterfaceFilter::default()
                },
                "y",
                false,
            ),
        ] {
            let mut choice = InterfaceChoice::new(&filter).unwrap();
            assert_eq!(
                choice.takes(&seen(name, "ethernetCsmacd", 1.0)),
                is_taken,
                "{filter:?}"
            );
        }
        // A bracket that closes the one around the expression is no expression.
        assert!(whole("a)|(b").is_err() && whole("(").is_err());
    }
}
