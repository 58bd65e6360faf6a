//! Reports: an engine's reasons not to answer a message (RFC 3414, 3 and 5).

/// A reason of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsmReport {
    /// The engine has no such level of security for the user.
    UnsupportedLevel,
    /// The message has another time than the engine.
    NotInTimeWindow,
    /// The engine has no such user.
    UnknownUser,
    /// The message has the id of another engine, or none.
    UnknownEngine,
    /// The signature is wrong.
    WrongDigest,
    /// The text was encrypted with another key.
    DecryptionError,
}

/// usmStats, 1.3.6.1.6.3.15.1.1, as bytes.
const STATS: [u8; 8] = [43, 6, 1, 6, 3, 15, 1, 1];

impl UsmReport {
    /// The name of the varbind in a report of this reason, as content of BER.
    pub fn name(self) -> [u8; 10] {
        let number = match self {
            UsmReport::UnsupportedLevel => 1,
            UsmReport::NotInTimeWindow => 2,
            UsmReport::UnknownUser => 3,
            UsmReport::UnknownEngine => 4,
            UsmReport::WrongDigest => 5,
            UsmReport::DecryptionError => 6,
        };
        let mut name = [0; 10];
        name[..8].copy_from_slice(&STATS);
        name[8] = number;
        name
    }

    /// The reason of a report whose first varbind has this name.
    pub fn of_name(name: &[u8]) -> Option<UsmReport> {
        let behind = name.strip_prefix(&STATS)?;
        Some(match behind {
            [1, 0] => UsmReport::UnsupportedLevel,
            [2, 0] => UsmReport::NotInTimeWindow,
            [3, 0] => UsmReport::UnknownUser,
            [4, 0] => UsmReport::UnknownEngine,
            [5, 0] => UsmReport::WrongDigest,
            [6, 0] => UsmReport::DecryptionError,
            _ => return None,
        })
    }
}
