//! How a device behaves; a well-behaved one is the default.

use kymo_wire::snmp::Oid;

use crate::lie::Lie;

/// How often, of a hundred.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percent(pub f64);

/// How one device behaves. Fields may change while the farm runs.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// It hears nothing.
    pub dead: bool,
    /// From a request's arrival to its reply. The counters are of the moment in the middle.
    pub latency_us: u64,
    /// Added for each varbind of a reply.
    pub varbind_us: u64,
    /// Requests that are lost.
    pub loss: Percent,
    /// Replies that come twice.
    pub duplicated: Percent,
    /// Replies that come later by `late_us`.
    pub late: Percent,
    /// How much later.
    pub late_us: u64,
    /// No reply is longer: a GET gets tooBig, a GETBULK less than it asked for.
    pub reply_bytes_max: usize,
    /// A request of more varbinds is not answered at all.
    pub varbinds_max: usize,
    /// The first ifIndex.
    pub first_index: u32,
    /// By how many places the interfaces have moved: the n-th has the index of the (n + `moved`)-th.
    pub moved: u32,
    /// So many of the last interfaces are gone.
    pub vanished: u32,
    /// Objects that it does not have: noSuchName, or noSuchInstance.
    pub missing: Vec<Oid>,
    /// Interfaces count from this moment on, nanoseconds since 1970.
    pub counting_since_ns: u64,
    /// Added to the bytes that are counted, so that they wrap.
    pub counted_before: u64,
    /// When it started, nanoseconds since 1970: sysUpTime is the time since then, of 32 bits.
    pub started_ns: u64,
    /// ifTableLastChange, in hundredths of a second.
    pub table_changed: u32,
    /// What it says in the place of the truth.
    pub lie: Option<Lie>,
}

/// What a datagram may hold on a usual network.
const REPLY_BYTES: usize = 1472;

impl Behaviour {
    /// Of a device that started at this moment, nanoseconds since 1970.
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

    /// The device starts again: counters and sysUpTime begin at 0.
    pub fn restart(&mut self, now_ns: u64) {
        self.started_ns = now_ns;
        self.counting_since_ns = now_ns;
        self.counted_before = 0;
        self.table_changed = 0;
    }

    /// From now on this is what the bytes have counted.
    pub fn count_from(&mut self, bytes: u64, now_ns: u64) {
        self.counting_since_ns = now_ns;
        self.counted_before = bytes;
    }

    /// sysUpTime reaches 2^32 and is 0 again after these seconds.
    pub fn wrap_uptime_in(&mut self, seconds: f64, now_ns: u64) {
        let left_ns = (seconds * 1e9) as u64;
        self.started_ns = (now_ns + left_ns).saturating_sub(10_000_000 << 32);
    }

    /// The interfaces move by these places, and ifTableLastChange says so.
    pub fn renumber(&mut self, places: u32, now_ns: u64) {
        self.moved = self.moved.wrapping_add(places);
        self.table_changed = self.uptime(now_ns);
    }

    /// The last interfaces go, and ifTableLastChange says so.
    pub fn vanish(&mut self, interfaces: u32, now_ns: u64) {
        self.vanished = interfaces;
        self.table_changed = self.uptime(now_ns);
    }

    /// sysUpTime.
    pub fn uptime(&self, now_ns: u64) -> u32 {
        let hundredths = now_ns.saturating_sub(self.started_ns) / 10_000_000;
        (hundredths % (1 << 32)) as u32
    }
}
