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
    let named = |list: &[ListedInterface], name: &str| list.iter().any(|one| one.name == name);
    let mut new: Vec<&ListedInterface> = chosen
        .iter()
        .filter(|one| !named(before, &one.name))
        .collect();
    let mut changes = Vec::new();
    for own in before {
        let same = all.iter().find(|one| one.name == own.name);
        let heirs: Vec<&ListedInterface> = new
            .iter()
            .copied()
            .filter(|one| one.alias == own.alias && !own.alias.is_empty())
            .collect();
        match (same, heirs.as_slice()) {
            (Some(now), _) if now == own => {}
            (Some(now), _) => changes.push(Change::Other {
                before: own.clone(),
                now: now.clone(),
            }),
            (None, [heir]) => {
                new.retain(|one| one.name != heir.name);
                changes.push(Change::Other {
                    before: own.clone(),
                    now: (*heir).clone(),
                });
            }
            (None, _) => changes.push(Change::Gone(own.clone())),
        }
    }
    changes.extend(new.into_iter().cloned().map(Change::New));
    changes
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
}
