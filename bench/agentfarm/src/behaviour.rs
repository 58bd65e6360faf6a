//! Behaviour of a device; the default is a good one.

use kymo_wire::snmp::Oid;

use crate::lie::Lie;

/// A share of cases, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percent(pub f64);

/// Behaviour of one device. Fields may change while the farm runs.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// The device receives nothing.
    pub dead: bool,
    /// Microseconds from a request's arrival to its reply. Counters have the values of the middle.
    pub latency_us: u64,
    /// Additional microseconds for each varbind of a reply.
    pub varbind_us: u64,
    /// Share of lost requests.
    pub loss: Percent,
    /// Share of replies that are sent twice.
    pub duplicated: Percent,
    /// Share of replies that are late by `late_us`.
    pub late: Percent,
    /// Delay of late replies, in microseconds.
    pub late_us: u64,
    /// Longest reply: a larger GET gets tooBig, a GETBULK fewer varbinds.
    pub reply_bytes_max: usize,
    /// Most varbinds of a request; the device does not answer longer ones.
    pub varbinds_max: usize,
    /// The first ifIndex.
    pub first_index: u32,
    /// Places by which the interfaces have moved: the n-th has the index of the (n + `moved`)-th.
    pub moved: u32,
    /// Number of interfaces at the end that are gone.
    pub vanished: u32,
    /// Objects that the device lacks: noSuchName, or noSuchInstance.
    pub missing: Vec<Oid>,
    /// Interfaces count from this moment on, nanoseconds since 1970.
    pub counting_since_ns: u64,
    /// Bytes added to all octet counters, so that they wrap.
    pub counted_before: u64,
    /// Start of the device, nanoseconds since 1970: sysUpTime is the time since then, in 32 bits.
    pub started_ns: u64,
    /// ifTableLastChange, in hundredths of a second.
    pub table_changed: u32,
    /// A lie in the place of true replies.
    pub lie: Option<Lie>,
}

/// Most bytes of a datagram on a usual network.
const REPLY_BYTES: usize = 1472;

impl Behaviour {
    /// The behaviour of a device that started at this moment, nanoseconds since 1970.
    pub fn good(started_ns: u64) -> Behaviour {
        Behaviour {
            dead: false,
            latency_us: 0,
            varbind_us: 0,
            loss: Percent(0.0),
            duplicated: Percent(0.0),
            late: Percent(0.0),
            late_us: 0,
            reply_bytes_max: REPLY_BYTES,
            varbinds_max: usize::MAX,
            first_index: 1,
            moved: 0,
            vanished: 0,
            missing: Vec::new(),
            counting_since_ns: 0,
            counted_before: 0,
            started_ns,
            table_changed: 0,
            lie: None,
        }
    }

    /// Restarts the device: counters and sysUpTime begin at 0.
    pub fn restart(&mut self, now_ns: u64) {
        self.started_ns = now_ns;
        self.counting_since_ns = now_ns;
        self.counted_before = 0;
        self.table_changed = 0;
    }

    /// Sets all octet counters to this value from now on.
    pub fn count_from(&mut self, bytes: u64, now_ns: u64) {
        self.counting_since_ns = now_ns;
        self.counted_before = bytes;
    }

    /// Lets sysUpTime reach 2^32 and wrap to 0 after these seconds.
    pub fn wrap_uptime_in(&mut self, seconds: f64, now_ns: u64) {
        let left_ns = (seconds * 1e9) as u64;
        self.started_ns = (now_ns + left_ns).saturating_sub(10_000_000 << 32);
    }

    /// Moves the interfaces by these places, and updates ifTableLastChange.
    pub fn renumber(&mut self, places: u32, now_ns: u64) {
        self.moved = self.moved.wrapping_add(places);
        self.table_changed = self.uptime(now_ns);
    }

    /// Removes the last interfaces, and updates ifTableLastChange.
    pub fn vanish(&mut self, interfaces: u32, now_ns: u64) {
        self.vanished = interfaces;
        self.table_changed = self.uptime(now_ns);
    }

    /// sysUpTime, in hundredths of a second.
    pub fn uptime(&self, now_ns: u64) -> u32 {
        let hundredths = now_ns.saturating_sub(self.started_ns) / 10_000_000;
        (hundredths % (1 << 32)) as u32
    }
}
