//! Changes of a device since its table was written.

use std::fmt;

use kymo_base::name::DisplayName;

use crate::config::ListedInterface;

/// A change of an interface.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// An interface that the table does not have.
    New(ListedInterface),
    /// An interface that the device does not have any more.
    Gone(ListedInterface),
    /// Another name, alias or speed.
    Other {
        /// As it is in the table.
        before: ListedInterface,
        /// As the device has it.
        now: ListedInterface,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| DisplayName(text.as_bytes()).to_string();
        match self {
            Change::New(now) => {
                let (name, alias) = (shown(&now.name), shown(&now.alias));
                write!(f, "new interface {name} ({alias}), {} Mbit/s", now.mbit)
            }
            Change::Gone(before) => write!(f, "interface {} is gone", shown(&before.name)),
            Change::Other { before, now } => {
                write!(f, "interface {}:", shown(&before.name))?;
                let mut comma = "";
                for (what, before, now) in [
                    ("name", shown(&before.name), shown(&now.name)),
                    ("alias", shown(&before.alias), shown(&now.alias)),
                ] {
                    if before != now {
                        write!(f, "{comma} {what} {before:?} is {now:?} now")?;
                        comma = ",";
                    }
                }
                let word = match now.mbit > before.mbit {
                    true => "faster",
                    false => "slower",
                };
                match now.mbit == before.mbit {
                    true => Ok(()),
                    false => write!(
                        f,
                        "{comma} {word}, {} Mbit/s instead of {}",
                        now.mbit, before.mbit
                    ),
                }
            }
        }
    }
}

/// Ways in which an interface of a table is one of the device, the surest first.
const SAME: [fn(&ListedInterface, &ListedInterface) -> bool; 3] = [
    |own, now| own == now,
    |own, now| (&own.name, &own.alias) == (&now.name, &now.alias),
    |own, now| own.name == now.name,
];

/// Changes from a table's list to what a device has. An interface with another name is the same one if it alone has an
/// alias that one that is gone had. A table without a list has nothing that could change.
pub(super) fn between(
    before: &[ListedInterface],
    all: &[ListedInterface],
    chosen: &[ListedInterface],
) -> Vec<Change> {
    if before.is_empty() {
        return Vec::new();
    }
    // Several interfaces may have one name.
    let mut left: Vec<&ListedInterface> = all.iter().collect();
    let mut pairs: Vec<Option<&ListedInterface>> = vec![None; before.len()];
    for same in SAME {
        for (own, pair) in before.iter().zip(&mut pairs) {
            if pair.is_none() {
                *pair = removed(&mut left, |now| same(own, now));
            }
        }
    }
    let mut new: Vec<&ListedInterface> = chosen.iter().collect();
    for now in pairs.iter().flatten() {
        removed(&mut new, |one| one == *now);
    }
    let mut changes = Vec::new();
    for (own, pair) in before.iter().zip(pairs) {
        let is_heir = |one: &ListedInterface| one.alias == own.alias && !own.alias.is_empty();
        let is_only = new.iter().filter(|one| is_heir(one)).count() == 1;
        let now = match pair {
            None if is_only => removed(&mut new, is_heir),
            _ => pair,
        };
        match now {
            Some(now) if now == own => {}
            Some(now) => changes.push(Change::Other {
                before: own.clone(),
                now: now.clone(),
            }),
            None => changes.push(Change::Gone(own.clone())),
        }
    }
    changes.extend(new.into_iter().cloned().map(Change::New));
    changes
}

/// The first one that fits, which leaves the list.
fn removed<'l>(
    list: &mut Vec<&'l ListedInterface>,
    fits: impl Fn(&ListedInterface) -> bool,
) -> Option<&'l ListedInterface> {
    let at = list.iter().position(|one| fits(one))?;
    Some(list.remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, alias: &str, mbit: u64) -> ListedInterface {
        ListedInterface {
            name: name.into(),
            alias: alias.into(),
            mbit,
        }
    }

    #[test]
    fn changes_are_said() {
        let before = [
            listed("a", "core", 100),
            listed("b", "x", 100),
            listed("c", "up", 10),
            listed("d", "", 10),
            listed("e", "", 10),
        ];
        let now = [
            listed("a", "core", 1000),
            listed("b", "y", 100),
            listed("c2", "up", 10),
            listed("e", "", 10),
            listed("f", "z", 10),
        ];
        let changes = between(&before, &now, &now);
        let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "interface a: faster, 1000 Mbit/s instead of 100",
                "interface b: alias \"x\" is \"y\" now",
                "interface c: name \"c\" is \"c2\" now",
                "interface d is gone",
                "new interface f (z), 10 Mbit/s",
            ]
        );
        assert_eq!(between(&now, &now, &now), []);
        assert_eq!(between(&[], &now, &now), [], "a table without a list");
        // An interface that is down, and so not chosen, is not gone.
        assert_eq!(between(&now[..1], &now, &[]), []);
    }

    /// `kymo discover` took the first interface of a name for all of them.
    #[test]
    fn several_interfaces_of_a_name_are_told_apart() {
        let before = [listed("eth", "a", 10), listed("eth", "b", 10)];
        let words = |now: &[ListedInterface]| -> Vec<String> {
            let changes = between(&before, now, now);
            changes.iter().map(ToString::to_string).collect()
        };
        let turned = [before[1].clone(), before[0].clone()];
        let same = [listed("eth", "a", 10), listed("eth", "a", 10)];
        assert_eq!(between(&same, &same, &same), []);
        for (now, expected) in [
            (&before[..], &[][..]),
            (&turned, &[]),
            (
                &[listed("eth", "b", 100), listed("eth", "a", 10)],
                &["interface eth: faster, 100 Mbit/s instead of 10"],
            ),
            (
                &[listed("eth", "b", 10), listed("eth", "c", 10)],
                &["interface eth: alias \"a\" is \"c\" now"],
            ),
            (&turned[..1], &["interface eth is gone"]),
            (
                &[before[0].clone(), listed("eth", "c", 10), before[1].clone()],
                &["new interface eth (c), 10 Mbit/s"],
            ),
        ] {
            assert_eq!(words(now), expected, "{now:?}");
        }
    }
}
