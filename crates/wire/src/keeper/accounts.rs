//! ACCOUNTS: the keeper's accounts of senders, and of the hosts that values belong to.

use std::net::IpAddr;
use std::ops::{AddAssign, Index, IndexMut};

use super::body::{Put, Take};

/// Counters of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Datagrams.
    Datagrams,
    /// Values that were stored.
    Values,
    /// Damaged or forged datagrams; the rest of such a datagram is not used.
    Bad,
    /// Datagrams of senders outside the networks that may send.
    Foreign,
    /// Datagrams that had come before.
    Replayed,
    /// Values without a time, a name and the like.
    Unfit,
    /// Values whose stamp is not newer than the one before.
    Late,
    /// Values too far in the future.
    Future,
    /// Values whose number or kinds differ from those of the series.
    Mismatched,
    /// Values of series that may not be created.
    Refused,
    /// Values of series that another sender writes.
    Held,
    /// Values of hosts that their user may not send for.
    Others,
    /// Values that could not be written.
    Unwritten,
    /// Series that were created.
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

    /// All counters, in the order of a frame.
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

    /// Name of the counter in answers.
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

/// Counters since the keeper's start, one for each [`Count`].
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

/// All accounts of the keeper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accounts {
    /// Accounts of the sockets that receive datagrams.
    pub sockets: Vec<SocketAccount>,
    /// Accounts of the hosts that values belong to: the first 4,096.
    pub hosts: Vec<HostAccount>,
    /// Types that types.db lacks, or has with another number of sources: the first 64.
    pub types: Vec<OddType>,
}

/// A type of values that does not fit types.db.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OddType {
    /// The type's name.
    pub name: Vec<u8>,
    /// A series of the type.
    pub series: Vec<u8>,
    /// Number of sources in types.db; 0: types.db lacks the type.
    pub known: u8,
    /// Number of values that came together.
    pub came: u8,
}

/// A socket's account.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocketAccount {
    /// Address of the socket.
    pub name: Vec<u8>,
    /// Datagrams that the kernel dropped because the keeper did not read them in time; their senders are not known.
    pub lost: u64,
    /// Senders to the socket: the first 4,096, and one account for the rest.
    pub senders: Vec<SenderAccount>,
}

/// A sender's account.
#[derive(Clone, Debug, PartialEq)]
pub struct SenderAccount {
    /// Address of the sender; `None`: the account of all senders that have no account of their own.
    pub address: Option<IpAddr>,
    /// Seconds since the last datagram.
    pub age_s: f64,
    /// Seconds that the sender's clock is behind the keeper's; NaN: not known. See [`HostAccount::offset_s`].
    pub offset_s: f64,
    /// Counters of the sender.
    pub counts: Counts,
}

/// Account of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostAccount {
    /// The label `host` of the host's series.
    pub host: Vec<u8>,
    /// Sender of the last values; `None`: not known.
    pub address: Option<IpAddr>,
    /// Seconds since the last value came.
    pub age_s: f64,
    /// Usual seconds between two datagrams; NaN: not known.
    pub gap_s: f64,
    /// Seconds that the host's clock is behind the keeper's, plus the time that its values wait before they are sent: the
    /// least of the last one to two minutes; NaN: not known.
    pub offset_s: f64,
    /// Values a second, over the last minute; NaN: not known.
    pub rate: f64,
    /// Values that the keeper accepted since its start.
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
