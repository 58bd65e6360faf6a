//! Values that tell of people: users, command lines, control groups. Only askers with the token see them. The hub
//! wraps such values where it gets them; an endpoint that forgets the asker's scopes does not compile.

use std::ops::Deref;
use std::sync::Arc;

use kymo_base::column::Column;
use kymo_base::label_set::{self, is_set};
use kymo_kernel::source::{Scope, Source};
use kymo_kernel::subsystem::Subsystem;
use kymo_query::sheet::Pick;
use kymo_wire::activity::Recorded;
use kymo_wire::keeper::{Programs, SeriesInfo};

use crate::access::Scopes;
use crate::answer::Refusal;

/// Labels with names of people, or with values that tell of them.
pub(crate) const PERSONAL: [&[u8]; 7] = [
    b"user", b"uid", b"group", b"gid", b"cgroup", b"command", b"cmdline",
];
/// Number of a hidden user, which no user has.
pub(crate) const UNTOLD: u32 = u32::MAX;

/// Something that may tell of people.
pub(crate) struct Guarded<T>(T);

/// A value that has a form without people.
pub(crate) trait TellsOfPeople {
    /// The value without people.
    fn without_people(self) -> Self;
}

impl<T: TellsOfPeople> Guarded<T> {
    /// Something from the keeper or a recording.
    pub(crate) fn new(value: T) -> Guarded<T> {
        Guarded(value)
    }

    /// Unwraps the value for an asker with these scopes.
    pub(crate) fn seen_by(self, scopes: Scopes) -> T {
        match scopes.tells_of_people() {
            true => self.0,
            false => self.0.without_people(),
        }
    }
}

impl TellsOfPeople for Programs {
    fn without_people(mut self) -> Programs {
        // Numbers of limited users would identify them; the keeper's log has them.
        self.limited.clear();
        for publisher in &mut self.publishers {
            publisher.user.clear();
            publisher.uid = UNTOLD;
            for slot in &mut publisher.slots {
                slot.text.clear();
                slot.labels.clear();
                slot.is_cut = false;
            }
        }
        self
    }
}

impl TellsOfPeople for Recorded {
    fn without_people(self) -> Recorded {
        Recorded {
            programs: self.programs.without_people(),
            ..self
        }
    }
}

/// Leaves out series with people in their names.
impl TellsOfPeople for Arc<Vec<SeriesInfo>> {
    fn without_people(self) -> Arc<Vec<SeriesInfo>> {
        if !self.iter().any(|info| names_people(&info.name)) {
            return self;
        }
        let open = self.iter().filter(|info| !names_people(&info.name));
        Arc::new(open.cloned().collect())
    }
}

/// True if the name of a series tells of people.
fn names_people(name: &[u8]) -> bool {
    is_set(name) && label_set::each(name).any(|(label, _)| PERSONAL.contains(&label))
}

/// Refuses an asker that may not know of a series with this name.
pub(crate) fn check_name(name: &[u8], scopes: Scopes) -> Result<(), Refusal> {
    match names_people(name) {
        true => scopes.need_texts(),
        false => Ok(()),
    }
}

/// Fields that the asker may see: some tell of people even as numbers.
pub(crate) struct Picks(Vec<Pick>);

impl Picks {
    /// No fields.
    pub(crate) const NONE: Picks = Picks(Vec::new());

    /// Refuses an asker that may not see all of the fields.
    pub(crate) fn new(picks: Vec<Pick>, scopes: Scopes) -> Result<Picks, Refusal> {
        if picks.iter().any(|pick| pick.column.private) {
            scopes.need_texts()?;
        }
        Ok(Picks(picks))
    }
}

impl Deref for Picks {
    type Target = [Pick];

    fn deref(&self) -> &[Pick] {
        &self.0
    }
}

impl Scopes {
    /// True if the asker may see this column.
    pub(crate) fn shows(self, column: &Column) -> bool {
        !column.private || self.tells_of_people()
    }

    /// True if the asker may see names and numbers of a subsystem's instances.
    pub(crate) fn shows_instances(self, subsystem: &Subsystem) -> bool {
        !subsystem.is_private() || self.tells_of_people()
    }

    /// True if the asker may know that kymo reads a source.
    pub(crate) fn lists(self, source: &Source) -> bool {
        source.scope != Scope::Cgroup || self.tells_of_people()
    }

    /// Refuses an asker that may not read a source's text.
    pub(crate) fn may_read(self, source: &Source) -> Result<(), Refusal> {
        match source.scope {
            Scope::Machine => Ok(()),
            _ => self.need_texts(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::keeper::{ActiveSlot, Limited, Publisher};

    const MARKER: &str = "marker-7e1c";

    fn programs() -> Programs {
        let marker = || MARKER.as_bytes().to_vec();
        Programs {
            publishers: vec![Publisher {
                name: b"example".to_vec(),
                user: marker(),
                uid: 1000,
                pid: 1,
                slots: vec![ActiveSlot {
                    pid: 1,
                    state: 2,
                    kind: 2,
                    commands: 1,
                    labels: vec![(b"user".to_vec(), marker())],
                    text: marker(),
                    is_cut: true,
                    ..ActiveSlot::default()
                }],
                ..Publisher::default()
            }],
            limited: vec![Limited {
                user: marker(),
                uid: 1000,
                counts: [1; 5],
            }],
            left_out: 0,
            dropped: 0,
        }
    }

    #[test]
    fn people_are_for_who_has_the_token() {
        let tells = |programs: &Programs| {
            let body = crate::programs_json(programs, 0).to_string();
            (body.contains(MARKER), body.contains("1000"))
        };
        let seen = |scopes| Guarded::new(programs()).seen_by(scopes);
        assert_eq!(tells(&seen(Scopes::ALL)), (true, true));
        assert_eq!(tells(&seen(Scopes::NONE)), (false, false));
        let recorded = Recorded {
            at_ns: 1,
            programs: programs(),
        };
        let recorded = Guarded::new(recorded).seen_by(Scopes::NONE);
        assert_eq!(tells(&recorded.programs), (false, false));
    }

    #[test]
    fn names_of_series() {
        for (name, is_open) in [
            ("web1/load/load.rrd", true),
            (r#"{field="cpu.total",host="a",job="kymo"}"#, true),
            (
                r#"{field="a",job="programs",publisher="p",user="ada"}"#,
                false,
            ),
            (r#"{a="user",b="x"}"#, true),
            ("user/ada.rrd", true),
        ] {
            let info = SeriesInfo {
                name: name.as_bytes().to_vec(),
                ..SeriesInfo::default()
            };
            let seen = |scopes| {
                Guarded::new(Arc::new(vec![info.clone()]))
                    .seen_by(scopes)
                    .len()
            };
            assert_eq!(seen(Scopes::NONE) == 1, is_open, "{name}");
            assert_eq!(seen(Scopes::ALL), 1, "{name}");
            let checked = check_name(name.as_bytes(), Scopes::NONE);
            assert_eq!(checked.is_ok(), is_open, "{name}");
        }
    }
}
