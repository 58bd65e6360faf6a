//! Names of the standard traps and of their objects: SNMPv2-MIB, IF-MIB, SNMP-COMMUNITY-MIB. All other names are numbers.

use kymo_wire::collectd::Severity;

/// How the value of an object is form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// As its kind has it.
    Plain,
    /// A number of IF-MIB's states.
    State,
    /// Not at all: it is a password.
    Never,
}

/// Objects by the content of their identifiers' BER, to which instances are appended.
const OBJECTS: [(&[u8], &str, ValueForm); 17] = [
    (IF_INDEX, "ifIndex", ValueForm::Plain),
    (IF_DESCR, "ifDescr", ValueForm::Plain),
    (&[43, 6, 1, 2, 1, 2, 2, 1, 3], "ifType", ValueForm::Plain),
    (&[43, 6, 1, 2, 1, 2, 2, 1, 5], "ifSpeed", ValueForm::Plain),
    (IF_ADMIN_STATUS, "ifAdminStatus", ValueForm::State),
    (
        &[43, 6, 1, 2, 1, 2, 2, 1, 8],
        "ifOperStatus",
        ValueForm::State,
    ),
    (
        &[43, 6, 1, 2, 1, 2, 2, 1, 9],
        "ifLastChange",
        ValueForm::Plain,
    ),
    (IF_NAME, "ifName", ValueForm::Plain),
    (
        &[43, 6, 1, 2, 1, 31, 1, 1, 1, 15],
        "ifHighSpeed",
        ValueForm::Plain,
    ),
    (
        &[43, 6, 1, 2, 1, 31, 1, 1, 1, 18],
        "ifAlias",
        ValueForm::Plain,
    ),
    (&[43, 6, 1, 2, 1, 1, 1], "sysDescr", ValueForm::Plain),
    (&[43, 6, 1, 2, 1, 1, 3], "sysUpTime", ValueForm::Plain),
    (&[43, 6, 1, 2, 1, 1, 5], "sysName", ValueForm::Plain),
    (&[43, 6, 1, 2, 1, 1, 6], "sysLocation", ValueForm::Plain),
    (
        &[43, 6, 1, 6, 3, 1, 1, 4, 3],
        "snmpTrapEnterprise",
        ValueForm::Plain,
    ),
    (
        &[43, 6, 1, 6, 3, 18, 1, 3],
        "snmpTrapAddress",
        ValueForm::Plain,
    ),
    (
        &[43, 6, 1, 6, 3, 18, 1, 4],
        "snmpTrapCommunity",
        ValueForm::Never,
    ),
];
pub(super) const IF_INDEX: &[u8] = &[43, 6, 1, 2, 1, 2, 2, 1, 1];
pub(super) const IF_DESCR: &[u8] = &[43, 6, 1, 2, 1, 2, 2, 1, 2];
pub(super) const IF_ADMIN_STATUS: &[u8] = &[43, 6, 1, 2, 1, 2, 2, 1, 7];
pub(super) const IF_NAME: &[u8] = &[43, 6, 1, 2, 1, 31, 1, 1, 1, 1];

/// ifAdminStatus and ifOperStatus, from 1 on.
const STATES: [&str; 7] = [
    "up",
    "down",
    "testing",
    "unknown",
    "dormant",
    "notPresent",
    "lowerLayerDown",
];
/// The state of an interface that an administrator has turned off.
pub(super) const DOWN: i64 = 2;

/// snmpTraps, 1.3.6.1.6.3.1.1.5.
const TRAPS: &[u8] = &[43, 6, 1, 6, 3, 1, 1, 5];

/// A standard trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StandardTrap {
    pub(super) name: &'static str,
    pub(super) severity: Severity,
    /// True if it is about an interface.
    pub(super) is_of_interface: bool,
}

/// The standard trap of a name.
pub(super) fn standard_trap(name: &[u8]) -> Option<StandardTrap> {
    let &[number] = name.strip_prefix(TRAPS)? else {
        return None;
    };
    let (name, severity) = match number {
        1 => ("coldStart", Severity::Warning),
        2 => ("warmStart", Severity::Warning),
        3 => ("linkDown", Severity::Failure),
        4 => ("linkUp", Severity::Okay),
        5 => ("authenticationFailure", Severity::Warning),
        6 => ("egpNeighborLoss", Severity::Warning),
        _ => return None,
    };
    Some(StandardTrap {
        name,
        severity,
        is_of_interface: matches!(number, 3 | 4),
    })
}

/// The name of an object, and the identifier of its instance.
pub(super) fn object(name: &[u8]) -> Option<(&'static str, ValueForm, &[u8])> {
    OBJECTS
        .iter()
        .find_map(|(object, word, form)| Some((*word, *form, name.strip_prefix(*object)?)))
}

/// The word for a state.
pub(super) fn state(number: i64) -> Option<&'static str> {
    let at = usize::try_from(number).ok()?.checked_sub(1)?;
    STATES.get(at).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::snmp::Oid;

    #[test]
    fn names_are_those_of_the_mibs() {
        for (number, word) in [
            ("1.3.6.1.2.1.2.2.1.1.3", "ifIndex"),
            ("1.3.6.1.2.1.2.2.1.7.3", "ifAdminStatus"),
            ("1.3.6.1.2.1.2.2.1.8.3", "ifOperStatus"),
            ("1.3.6.1.2.1.31.1.1.1.1.3", "ifName"),
            ("1.3.6.1.2.1.31.1.1.1.18.3", "ifAlias"),
            ("1.3.6.1.2.1.1.5.3", "sysName"),
            ("1.3.6.1.6.3.1.1.4.3.3", "snmpTrapEnterprise"),
            ("1.3.6.1.6.3.18.1.4.3", "snmpTrapCommunity"),
        ] {
            let name = Oid::parse(number).unwrap();
            assert!(matches!(object(&name), Some((found, _, [3])) if found == word));
        }
        assert_eq!(object(&Oid::parse("1.3.6.1.2.1.2.2.1.10.3").unwrap()), None);
        for (number, word) in [
            ("1.3.6.1.6.3.1.1.5.1", Some("coldStart")),
            ("1.3.6.1.6.3.1.1.5.4", Some("linkUp")),
            ("1.3.6.1.6.3.1.1.5.7", None),
            ("1.3.6.1.6.3.1.1.5.3.1", None),
            ("1.3.6.1.6.3.1.1.5", None),
        ] {
            let found = standard_trap(&Oid::parse(number).unwrap());
            assert_eq!(found.map(|trap| trap.name), word, "{number}");
        }
        assert_eq!((state(0), state(2), state(8)), (None, Some("down"), None));
    }
}
