//! Looks up data source types and consolidation functions by the header's names, which each update does.

use crate::cf::Cf;

/// Names, padded with zeros, and their types.
const DST_NAMES: [([u8; 16], Dst); 7] = [
    (name(b"GAUGE"), Dst::Gauge),
    (name(b"DERIVE"), Dst::Derive),
    (name(b"COUNTER"), Dst::Counter),
    (name(b"ABSOLUTE"), Dst::Absolute),
    (name(b"COMPUTE"), Dst::Compute),
    (name(b"DCOUNTER"), Dst::Dcounter),
    (name(b"DDERIVE"), Dst::Dderive),
];
const CF_NAMES: [([u8; 16], Cf); 10] = [
    (name(b"AVERAGE"), Cf::Average),
    (name(b"MIN"), Cf::Min),
    (name(b"MAX"), Cf::Max),
    (name(b"LAST"), Cf::Last),
    (name(b"HWPREDICT"), Cf::HwPredict),
    (name(b"MHWPREDICT"), Cf::MhwPredict),
    (name(b"SEASONAL"), Cf::Seasonal),
    (name(b"DEVPREDICT"), Cf::DevPredict),
    (name(b"DEVSEASONAL"), Cf::DevSeasonal),
    (name(b"FAILURES"), Cf::Failures),
];

/// A data source's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dst {
    /// A rate.
    Gauge,
    /// An integer that counts up or down.
    Derive,
    /// An integer that counts up and wraps at 2^32 or 2^64.
    Counter,
    /// A count since the last reading.
    Absolute,
    /// Computed from other data sources.
    Compute,
    /// A counter with a fraction; a change of direction is a reset.
    Dcounter,
    /// A DERIVE with a fraction.
    Dderive,
}

impl Dst {
    /// Looks up the 20 bytes of `dst`.
    pub(crate) fn of(field: &[u8; 20]) -> Option<Dst> {
        look_up(&DST_NAMES, field)
    }
}

/// Looks up the 20 bytes of `cf_nam`.
pub(crate) fn cf_of(field: &[u8; 20]) -> Option<Cf> {
    look_up(&CF_NAMES, field)
}

const fn name(text: &[u8]) -> [u8; 16] {
    let (mut padded, mut i) = ([0; 16], 0);
    while i < text.len() {
        padded[i] = text[i];
        i += 1;
    }
    padded
}

/// Looks up a name that ends at the first NUL byte. rrdtool pads names with zeros, so that one comparison
/// usually suffices.
fn look_up<T: Copy>(names: &[([u8; 16], T)], field: &[u8; 20]) -> Option<T> {
    let front: [u8; 16] = std::array::from_fn(|i| field[i]);
    let whole = u128::from_le_bytes(front);
    let known = |front: u128| {
        let mut names = names.iter();
        names.find(|(name, _)| u128::from_le_bytes(*name) == front)
    };
    if let Some((_, kind)) = known(whole) {
        return Some(*kind);
    }
    let len = field.iter().position(|&byte| byte == 0)?;
    let mask = 1u128.checked_shl(8 * len as u32)?.wrapping_sub(1);
    known(whole & mask).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::field;

    #[test]
    fn names_end_at_their_first_nul() {
        assert_eq!(cf_of(&field(b"MIN")), Some(Cf::Min));
        assert_eq!(cf_of(&field(b"MIN\0AX")), Some(Cf::Min));
        assert_eq!(cf_of(&field(b"DEVSEASONAL")), Some(Cf::DevSeasonal));
        assert_eq!(
            Dst::of(&field(b"DCOUNTER\0\0\0\0\0\0\0\0\0\0x")),
            Some(Dst::Dcounter)
        );
        for wrong in [
            "",
            "MI",
            "MINI",
            "min",
            "AVERAGEAVERAGEAVERAG",
            "AVERAGEAVERAGEAVERAGE",
        ] {
            assert_eq!(cf_of(&field(wrong.as_bytes())), None, "{wrong}");
        }
    }
}
