//! ACCOUNTS: what the keeper knows of who sends, and of the hosts that values are of.

use std::net::IpAddr;
use std::ops::{AddAssign, Index, IndexMut};

use super::body::{Put, Take};

/// What is counted of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Datagrams.
    Datagrams,
    /// Values that were stored.
    Values,
    /// Damaged or forged datagrams, the rest of which was not used.
    Bad,
    /// Datagrams of senders that are of no network which may send.
    Foreign,
    /// Datagrams that were there before.
    Replayed,
    /// Values without a time, a name and the like.
    Unfit,
    /// Values whose stamp is not newer than the one before.
    Late,
    /// Values too far in the future.
    Future,
    /// Values of other number or kinds than those that made the series.
    Mismatched,
    /// Values of series that may not be made.
    Refused,
    /// Values of series whose values another one sends.
    Held,
    /// Values of hosts that their user may not send for.
    Others,
    /// Values that could not be written.
    Unwritten,
    /// Series that were made.
    New,
    /// Notifications.
    Notifications,
    /// Values of new names that were not repeated in time.
    Once,
}

impl Count {
    fn place(self) -> usize {
        self as usize
    }

    /// All of them, in the order of a frame.
    pub const ALL: [Count; 16] = [
        Count::Datagrams,
        Count::Values,
        Count::Bad,
        Count::Foreign,
        Count::Replayed,
        Count::Unfit,
        Count::Late,
        Count::Future,
        Count::Mismatched,
        Count::Refused,
        Count::Held,
        Count::Others,
        Count::Unwritten,
        Count::New,
        Count::Notifications,
        Count::Once,
    ];

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Count::Datagrams => "datagrams",
            Count::Values => "values",
            Count::Bad => "bad",
            Count::Foreign => "foreign",
            Count::Replayed => "replayed",
            Count::Unfit => "unfit",
            Count::Late => "late",
            Count::Future => "future",
            Count::Mismatched => "mismatched",
            Count::Refused => "refused",
            Count::Held => "held",
            Count::Others => "others",
            Count::Unwritten => "unwritten",
            Count::New => "new",
            Count::Notifications => "notifications",
            Count::Once => "once",
        }
    }
}

/// Numbers since the keeper's start, one for each [`Count`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Count::ALL.len()]);

impl Index<Count> for Counts {
    type Output = u64;

    fn index(&self, count: Count) -> &u64 {
        &self.0[count.place()]
    }
}

impl IndexMut<Count> for Counts {
    fn index_mut(&mut self, count: Count) -> &mut u64 {
        &mut self.0[count.place()]
    }
}

impl AddAssign<(Count, u64)> for Counts {
    fn add_assign(&mut self, (count, more): (Count, u64)) {
        self[count] += more;
    }
}

/// All that is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accounts {
    /// Where datagrams come.
    pub sockets: Vec<SocketAccount>,
    /// Hosts that values are of: the first 4,096.
    pub hosts: Vec<HostAccount>,
    /// Types that types.db lacks, or has with another number of sources: the first 64.
    pub types: Vec<OddType>,
}

/// A type of values that types.db does not know as they come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OddType {
    /// The type's name.
    pub name: Vec<u8>,
    /// A series of it.
    pub series: Vec<u8>,
    /// Sources that types.db has of it; 0: it lacks it.
    pub known: u8,
    /// Values of it that came together.
    pub came: u8,
}

/// A socket's account.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocketAccount {
    /// Its address.
    pub name: Vec<u8>,
    /// Datagrams the kernel dropped because they were not taken in time; whose they were is not known.
    pub lost: u64,
    /// Who sent there: the first 4,096, and one for the rest.
    pub senders: Vec<SenderAccount>,
}

/// A sender's account.
#[derive(Clone, Debug, PartialEq)]
pub struct SenderAccount {
    /// `None`: those that have no account of their own, together.
    pub address: Option<IpAddr>,
    /// Seconds since its last datagram.
    pub age_s: f64,
    /// Seconds that its clock is behind the keeper's; NaN: not known. See [`HostAccount::offset_s`].
    pub offset_s: f64,
    /// What came, and what became of it.
    pub counts: Counts,
}

/// What is known of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostAccount {
    /// The label `host` of its series.
    pub host: Vec<u8>,
    /// Who sent its last values; `None`: not known.
    pub address: Option<IpAddr>,
    /// Seconds since its last value came.
    pub age_s: f64,
    /// Seconds that lie between its datagrams, as a rule; NaN: not known.
    pub gap_s: f64,
    /// Seconds that its clock is behind the keeper's, and what its values wait before they are sent: the least of the last
    /// one to two minutes; NaN: not known.
    pub offset_s: f64,
    /// Values a second, over the last minute; NaN: not known.
    pub rate: f64,
    /// Values that were taken since the keeper's start.
    pub values: u64,
}

impl Accounts {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.u16(self.sockets.len());
        for socket in &self.sockets {
            out.text(&socket.name);
            out.u64(socket.lost);
            out.length(socket.senders.len());
            for sender in &socket.senders {
                put_address(out, sender.address);
                out.f64(sender.age_s);
                out.f64(sender.offset_s);
                sender.counts.0.iter().for_each(|count| out.u64(*count));
            }
        }
        out.length(self.hosts.len());
        for host in &self.hosts {
            out.text(&host.host);
            put_address(out, host.address);
            let numbers = [host.age_s, host.gap_s, host.offset_s, host.rate];
            numbers.into_iter().for_each(|number| out.f64(number));
            out.u64(host.values);
        }
        out.length(self.types.len());
        for odd in &self.types {
            out.text(&odd.name);
            out.text(&odd.series);
            out.u8(odd.known);
            out.u8(odd.came);
        }
    }

    pub(super) fn take(body: &mut Take) -> Option<Accounts> {
        let sockets = body.count(usize::from(u16::MAX))?;
        let sockets = (0..sockets).map(|_| take_socket(body));
        let sockets = sockets.collect::<Option<_>>()?;
        let hosts = body.u32()?;
        let hosts = (0..hosts).map(|_| take_host(body));
        let hosts = hosts.collect::<Option<_>>()?;
        let types = body.u32()?;
        let types = (0..types).map(|_| take_type(body));
        Some(Accounts {
            sockets,
            hosts,
            types: types.collect::<Option<_>>()?,
        })
    }
}

fn take_type(body: &mut Take) -> Option<OddType> {
    Some(OddType {
        name: body.text()?.to_vec(),
        series: body.text()?.to_vec(),
        known: body.u8()?,
        came: body.u8()?,
    })
}

fn take_socket(body: &mut Take) -> Option<SocketAccount> {
    let (name, lost) = (body.text()?.to_vec(), body.u64()?);
    let senders = body.u32()?;
    let senders = (0..senders).map(|_| {
        let mut sender = SenderAccount {
            address: take_address(body)?,
            age_s: body.f64()?,
            offset_s: body.f64()?,
            counts: Counts::default(),
        };
        for count in &mut sender.counts.0 {
            *count = body.u64()?;
        }
        Some(sender)
    });
    Some(SocketAccount {
        name,
        lost,
        senders: senders.collect::<Option<_>>()?,
    })
}

fn take_host(body: &mut Take) -> Option<HostAccount> {
    Some(HostAccount {
        host: body.text()?.to_vec(),
        address: take_address(body)?,
        age_s: body.f64()?,
        gap_s: body.f64()?,
        offset_s: body.f64()?,
        rate: body.f64()?,
        values: body.u64()?,
    })
}

fn put_address(out: &mut Vec<u8>, address: Option<IpAddr>) {
    match address {
        None => out.u8(0),
        Some(IpAddr::V4(address)) => {
            out.u8(4);
            out.extend(address.octets());
        }
        Some(IpAddr::V6(address)) => {
            out.u8(6);
            out.extend(address.octets());
        }
    }
}

fn take_address(body: &mut Take) -> Option<Option<IpAddr>> {
    match body.u8()? {
        0 => Some(None),
        4 => Some(Some(IpAddr::from(body.array::<4>()?))),
        6 => Some(Some(IpAddr::from(body.array::<16>()?))),
        _ => None,
    }
}
