//! The values of one VALUES part: a kind and eight bytes each.

/// Most values of one part; a line of types.db names no more.
pub const VALUES_MAX: usize = 63;

/// Kinds of values: rrdtool's kinds of data sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// A count that only grows and wraps.
    Counter,
    /// A measurement.
    Gauge,
    /// A count that grows and shrinks.
    Derive,
    /// A count since the last reading.
    Absolute,
}

impl ValueKind {
    /// All kinds, in the order of their codes in a packet.
    pub const ALL: [ValueKind; 4] = [
        ValueKind::Counter,
        ValueKind::Gauge,
        ValueKind::Derive,
        ValueKind::Absolute,
    ];

    /// The kind as types.db and rrdtool spell it.
    pub fn word(self) -> &'static str {
        match self {
            ValueKind::Counter => "COUNTER",
            ValueKind::Gauge => "GAUGE",
            ValueKind::Derive => "DERIVE",
            ValueKind::Absolute => "ABSOLUTE",
        }
    }

    /// The kind for a packet's code. The caller has checked that the code is at most 3.
    pub fn of_code(code: u8) -> ValueKind {
        ValueKind::ALL[usize::from(code & 3)]
    }

    /// The code in a packet.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// See [`ValueKind::Counter`].
    Counter(u64),
    /// See [`ValueKind::Gauge`].
    Gauge(f64),
    /// See [`ValueKind::Derive`].
    Derive(i64),
    /// See [`ValueKind::Absolute`].
    Absolute(u64),
}

impl Value {
    /// The kind.
    pub fn kind(self) -> ValueKind {
        match self {
            Value::Counter(_) => ValueKind::Counter,
            Value::Gauge(_) => ValueKind::Gauge,
            Value::Derive(_) => ValueKind::Derive,
            Value::Absolute(_) => ValueKind::Absolute,
        }
    }

    /// Integers are big-endian; doubles are little-endian, as on x86, where collectd began.
    fn of_cell(kind: ValueKind, cell: [u8; 8]) -> Value {
        match kind {
            ValueKind::Counter => Value::Counter(u64::from_be_bytes(cell)),
            ValueKind::Gauge => Value::Gauge(f64::from_le_bytes(cell)),
            ValueKind::Derive => Value::Derive(i64::from_be_bytes(cell)),
            ValueKind::Absolute => Value::Absolute(u64::from_be_bytes(cell)),
        }
    }

    /// The value's eight bytes in a packet.
    pub fn cell(self) -> [u8; 8] {
        match self {
            Value::Counter(number) | Value::Absolute(number) => number.to_be_bytes(),
            Value::Gauge(number) => number.to_le_bytes(),
            Value::Derive(number) => number.to_be_bytes(),
        }
    }
}

/// The values of a packet, undecoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawValues<'a> {
    /// One code per value, at most 3.
    codes: &'a [u8],
    cells: &'a [[u8; 8]],
}

impl<'a> RawValues<'a> {
    /// The caller passes as many codes as cells. `None`: a code is unknown.
    pub(super) fn new(codes: &'a [u8], cells: &'a [[u8; 8]]) -> Option<RawValues<'a>> {
        debug_assert_eq!(codes.len(), cells.len());
        let known = codes.iter().all(|&code| code <= 3);
        known.then_some(RawValues { codes, cells })
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// True if there is no value. Values of [`super::Parts`] have at least one.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The kinds of the values, in order.
    pub fn kinds(&self) -> impl ExactSizeIterator<Item = ValueKind> + Clone + use<'a> {
        self.codes.iter().map(|&code| ValueKind::of_code(code))
    }

    /// The kinds as a packet spells them: equal codes mean equal kinds.
    pub fn codes(&self) -> &'a [u8] {
        self.codes
    }

    /// The values, in order.
    pub fn iter(&self) -> impl Iterator<Item = Value> + Clone + use<'a> {
        let kinds = self.codes.iter().map(|&code| ValueKind::of_code(code));
        kinds
            .zip(self.cells)
            .map(|(kind, &cell)| Value::of_cell(kind, cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        for (value, cell) in [
            (Value::Counter(7), [0, 0, 0, 0, 0, 0, 0, 7]),
            (Value::Gauge(0.5), [0, 0, 0, 0, 0, 0, 0xe0, 0x3f]),
            (Value::Derive(-1), [0xff; 8]),
            (Value::Absolute(256), [0, 0, 0, 0, 0, 0, 1, 0]),
        ] {
            assert_eq!(value.cell(), cell);
            let (codes, cells) = ([value.kind().code()], [cell]);
            let raw = RawValues::new(&codes, &cells).unwrap();
            assert_eq!(raw.iter().collect::<Vec<_>>(), [value]);
            assert_eq!(raw.kinds().collect::<Vec<_>>(), [value.kind()]);
        }
        assert!(RawValues::new(&[4], &[[0; 8]]).is_none());
    }

    #[test]
    fn not_a_number_is_a_gauge_as_well() {
        let cell = [0, 0, 0, 0, 0, 0, 0xf8, 0x7f];
        let Value::Gauge(number) = Value::of_cell(ValueKind::Gauge, cell) else {
            panic!("no gauge");
        };
        assert!(number.is_nan());
        assert_eq!(Value::Gauge(number).cell(), cell);
    }
}
