//! Counters of 32 bits for interfaces that have none of 64: a device of version 2 need not have ifHCInOctets. They are asked for within the
//! same cycle, so that a run from cron has values, too. On a fast interface such a counter wraps several times in an interval.

use kymo_wire::mrtg_cfg::{Config, Source, SourceKind, Target};

use super::Engine;

/// Columns of ifXTable and those of ifTable that count the same: octets in and out.
const COLUMNS: [([u32; 11], [u32; 10]); 2] = [
    (
        [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6],
        [1, 3, 6, 1, 2, 1, 2, 2, 1, 10],
    ),
    (
        [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10],
        [1, 3, 6, 1, 2, 1, 2, 2, 1, 16],
    ),
];

/// The column of 32 bits for one of 64.
pub(super) fn column(wide: &[u32]) -> Option<&'static [u32]> {
    let mut columns = COLUMNS.iter();
    let found = columns.find(|(of, _)| of == wide);
    found.map(|(_, narrow)| &narrow[..])
}

/// Bytes a second of an interface whose counters must have 64 bits: 1 Gbit/s.
const FAST_BYTES: u64 = 125_000_000;

/// True if the target has 1 Gbit/s or more, and 2^32 bytes take less than an interval.
pub fn outruns_32_bits(config: &Config, target: Target) -> bool {
    let [one, two] = target.max_bytes();
    let max = target.abs_max().unwrap_or(one.max(two));
    let interval_s = u64::from(config.globals().interval_s);
    max >= FAST_BYTES && max.saturating_mul(interval_s) > 1 << 32
}

/// Targets, as indices, that [outrun](outruns_32_bits) the 32 bits of the counters that they name.
pub fn outrunning(config: &Config) -> Vec<usize> {
    let is_narrow = |reading: &u32| {
        let reading = usize::try_from(*reading).unwrap_or(usize::MAX);
        let Some(Source::Snmp(source)) = config.readings().get(reading).map(|of| of.source) else {
            return false;
        };
        let mut objects = source.objects.iter();
        objects.any(|object| {
            let column = config.oid(object.oid);
            COLUMNS
                .iter()
                .any(|(_, narrow)| column.starts_with(narrow) && column.len() <= narrow.len() + 1)
        })
    };
    let is_outrun = |target: &Target| {
        let counts = matches!(
            target.source_kind(),
            SourceKind::Counter | SourceKind::Derive
        );
        counts
            && outruns_32_bits(config, *target)
            && config
                .readings_of(target.expression())
                .iter()
                .any(is_narrow)
    };
    let numbered = config.targets().enumerate();
    let outrun = numbered.filter(|(_, target)| is_outrun(target));
    outrun.map(|(number, _)| number).collect()
}

impl Engine {
    /// Has a side ask for the counter of 32 bits, as the device has not that of 64. False if there is none, or the device has not
    /// that one either. An interface that once had 64 bits and is gone keeps them: its next value must not be one of another width.
    pub(super) fn narrows(&mut self, number: usize, reading: usize, side: u8) -> bool {
        let Source::Snmp(source) = self.config.readings()[reading].source else {
            return false;
        };
        let object = source.objects[usize::from(side)];
        if !source.is_interface
            || self.sides.is_wide(reading, side)
            || column(self.config.oid(object.oid)).is_none()
        {
            return false;
        }
        let device = &mut self.devices[number];
        device.is_plan_stale = true;
        let is_new = device.narrow.insert((reading, side));
        if !is_new {
            device.narrow.remove(&(reading, side));
        }
        is_new
    }
}
