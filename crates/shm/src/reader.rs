//! Reads a program's file: its description, the totals of its metrics over all slots, and the state of each slot.
//!
//! Other users' files are read by `pread`: their owner may make them shorter, which would be a SIGBUS in a mapping. Own ones are
//! mapped. Either way a scan of the counters is one small read.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use kymo_base::errno::strerror;
use kymo_base::limits::SHM_FILE_MAX;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::io::Errno;

use crate::header::{FormatError, Header};
use crate::histogram::HistogramTotal;
use crate::layout::HEADER_BYTES;
use crate::mapping::{Mapping, Rights};
use crate::metric::{GaugeType, Metric, MetricKind};

mod activity;
mod bytes;
mod lives;
mod totals;

pub use activity::{Activity, Command, Identity, Label, Sampled};
pub use bytes::ReadError;
pub use totals::Scratch;

use bytes::Bytes;

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By a mapping if the file is this process's user's own, else by `pread`. One that becomes shorter then ends the reader with
    /// SIGBUS: only for who trusts all programs of his user.
    MapOwn,
    /// By `pread`.
    Read,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused.
    #[error("cannot {verb} it: {}", strerror(&(*cause).into()))]
    System {
        /// Attempted action.
        verb: &'static str,
        /// Error of the system.
        cause: Errno,
    },
    /// The file is a folder, a pipe, a device.
    #[error("it is no regular file")]
    Irregular,
    /// The file has names in other folders, or none.
    #[error("it has {0} names instead of one")]
    Names(u64),
    /// The file is too short or too long.
    #[error("it has {0} bytes")]
    Size(u64),
    /// The file is no publisher's, or of another version.
    #[error("{0}")]
    Format(#[from] FormatError),
    /// The file's name is that of another epoch.
    #[error("its name is not that of its epoch")]
    Name,
}

/// Tells whether processes of a publisher live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// At least one has the file open.
    Alive,
    /// All have ended: nothing changes any more.
    Ended,
}

/// A metric's value over all slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Not yet scaled.
    Counter(u64),
    /// Not yet scaled.
    Gauge(f64),
    /// Not yet scaled.
    Histogram(HistogramTotal<'a>),
}

/// The name of the file of an epoch.
pub fn file_name(epoch: &[u8; 16]) -> String {
    let digits = epoch.iter().map(|byte| format!("{byte:02x}"));
    std::iter::once("kymo.".to_string()).chain(digits).collect()
}

/// The epoch of a file's name; `None` of names that are no publisher's.
pub fn epoch_of(name: &[u8]) -> Option<[u8; 16]> {
    let digits = name
        .strip_prefix(b"kymo.")
        .filter(|digits| digits.len() == 32)?;
    let mut epoch = [0; 16];
    for (byte, pair) in epoch.iter_mut().zip(digits.chunks_exact(2)) {
        let lower = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let text = std::str::from_utf8(pair)
            .ok()
            .filter(|_| pair.iter().all(lower))?;
        *byte = u8::from_str_radix(text, 16).ok()?;
    }
    Some(epoch)
}

/// One publisher's file.
pub struct Reader {
    bytes: Bytes,
    owner: u32,
    header: Header,
    table: totals::Table,
    activities: activity::Activities,
    lives: lives::Lives,
    /// Slots that are read at most.
    most: usize,
}

impl Reader {
    /// Opens a file of a folder.
    pub fn open(folder: impl AsFd, name: &OsStr, access: Access) -> Result<Reader, OpenError> {
        let (file, owner, length) = open_file(folder, name)?;
        let mut bytes = Bytes::File(file);
        let header = read_header(&bytes, length)?;
        if epoch_of(name.as_bytes()) != Some(header.epoch) {
            return Err(OpenError::Name);
        }
        if let (Access::MapOwn, true) = (access, owner == rustix::process::geteuid().as_raw()) {
            bytes = bytes.mapped(usize::try_from(length).map_err(|_| OpenError::Size(length))?)?;
        }
        Ok(Reader {
            bytes,
            owner,
            table: totals::Table::new(&header),
            activities: activity::Activities::default(),
            lives: lives::Lives::default(),
            most: usize::MAX,
            header,
        })
    }

    /// The publisher's description of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The user whose file it is.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// True if the file is mapped.
    pub fn is_mapped(&self) -> bool {
        matches!(self.bytes, Bytes::Mapped(..))
    }

    /// Tells whether a process of the publisher lives: as long as one does, the file is locked.
    pub fn liveness(&self) -> Result<Liveness, Errno> {
        match flock(self.bytes.file(), FlockOperation::NonBlockingLockShared) {
            Ok(()) => flock(self.bytes.file(), FlockOperation::Unlock).map(|()| Liveness::Ended),
            Err(Errno::WOULDBLOCK) => Ok(Liveness::Alive),
            Err(error) => Err(error),
        }
    }

    /// Reads the cells of all slots, and the descriptions of metrics that are new.
    pub fn scan(&mut self, scratch: &mut Scratch) -> Result<(), ReadError> {
        let Reader {
            bytes,
            header,
            table,
            lives,
            most,
            ..
        } = self;
        table.scan(bytes, header, *most, lives, scratch)
    }

    /// The metrics that [`Reader::scan`] found, in the order of the table. Those of unknown kinds are left out.
    pub fn metrics(&self) -> &[Metric] {
        &self.table.metrics
    }

    /// True: a description made no sense, so it and the descriptions behind it are left out.
    pub fn has_bad_metrics(&self) -> bool {
        self.table.bad
    }

    /// True: the publisher said at the last scan that it will change nothing any more.
    pub fn is_closed(&self) -> bool {
        self.table.closed
    }

    /// Slots that the publisher says were ever taken, now.
    pub fn slots_in_use(&self) -> Result<usize, ReadError> {
        activity::slots_in_use(&self.bytes, &self.header)
    }

    /// Has scans and samples read the first `slots` alone.
    pub fn read_at_most(&mut self, slots: usize) {
        self.most = slots;
    }

    /// Slots that were ever taken, by the last scan.
    pub fn slots_used(&self) -> usize {
        self.table.slots_used
    }

    /// Each cell, added up over all slots by the last scan: gauges over the slots whose owner lives. Those of doubles are their bits.
    pub fn totals(&self) -> &[u64] {
        &self.table.totals
    }

    /// The value of one of [`Reader::metrics`], by the last scan.
    pub fn value(&self, metric: &Metric) -> Value<'_> {
        value(&self.table.totals, metric)
    }

    /// Looks at what the slots do; texts are copied where they have changed.
    pub fn sample(&mut self, scratch: &mut Scratch) -> Result<Sampled, ReadError> {
        let Reader {
            bytes,
            header,
            activities,
            lives,
            most,
            ..
        } = self;
        activities.sample(bytes, header, *most, lives, scratch)
    }

    /// States of the slots at the last sample, by their numbers.
    pub fn activities(&self) -> &[Activity] {
        &self.activities.slots
    }
}

/// Value of a metric, added up over all slots.
pub(crate) fn value<'a>(totals: &'a [u64], metric: &Metric) -> Value<'a> {
    let cells = &totals[metric.first_cell..][..metric.kind.cells()];
    match metric.kind {
        MetricKind::Counter => Value::Counter(cells[0]),
        MetricKind::Gauge(GaugeType::Unsigned) => Value::Gauge(cells[0] as f64),
        MetricKind::Gauge(GaugeType::Signed) => Value::Gauge(cells[0].cast_signed() as f64),
        MetricKind::Gauge(GaugeType::Double) => Value::Gauge(f64::from_bits(cells[0])),
        MetricKind::Histogram(buckets) => Value::Histogram(HistogramTotal {
            samples: cells[0],
            sum: cells[1],
            buckets,
            weights: &cells[2..],
        }),
    }
}

/// The open file, its owner, its length.
fn open_file(folder: impl AsFd, name: &OsStr) -> Result<(OwnedFd, u32, u64), OpenError> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let failed = |verb| move |cause| OpenError::System { verb, cause };
    let file = openat(folder, name, flags, Mode::empty()).map_err(failed("open"))?;
    let status = fstat(&file).map_err(failed("look at"))?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(OpenError::Irregular);
    }
    if status.st_nlink != 1 {
        return Err(OpenError::Names(status.st_nlink));
    }
    let length = u64::try_from(status.st_size).unwrap_or(0);
    if length < HEADER_BYTES as u64 || length > SHM_FILE_MAX as u64 {
        return Err(OpenError::Size(length));
    }
    Ok((file, status.st_uid, length))
}

fn read_header(bytes: &Bytes, length: u64) -> Result<Header, OpenError> {
    let mut words = [0; HEADER_BYTES / 8];
    match bytes.read_words(0, &mut words) {
        Ok(()) => {}
        Err(ReadError::Short) => return Err(OpenError::Size(length)),
        Err(ReadError::System(cause)) => {
            return Err(OpenError::System {
                verb: "read",
                cause,
            });
        }
    }
    let mut header = [0; HEADER_BYTES];
    for (eight, word) in header.chunks_exact_mut(8).zip(words) {
        eight.copy_from_slice(&word.to_le_bytes());
    }
    Ok(Header::parse(&header, length)?)
}

impl Bytes {
    fn mapped(self, length: usize) -> Result<Bytes, OpenError> {
        let file = match self {
            Bytes::File(file) => file,
            mapped => return Ok(mapped),
        };
        let mapping = Mapping::new(&file, length / 8 * 8, Rights::Read);
        let mapping = mapping.map_err(|cause| OpenError::System { verb: "map", cause })?;
        Ok(Bytes::Mapped(mapping, file))
    }
}

/// Reads a file of any bytes as far as it goes.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn fuzz_file(input: &[u8]) {
    let bytes = Bytes::Made(input.to_vec());
    let Ok(header) = read_header(&bytes, input.len() as u64) else {
        return;
    };
    let mut reader = Reader {
        bytes,
        owner: 0,
        table: totals::Table::new(&header),
        activities: activity::Activities::default(),
        lives: lives::Lives::default(),
        most: usize::MAX,
        header,
    };
    let mut scratch = Scratch::default();
    for _ in 0..2 {
        let (_scanned, _sampled) = (reader.scan(&mut scratch), reader.sample(&mut scratch));
        for metric in reader.metrics() {
            if let Value::Histogram(histogram) = reader.value(metric) {
                histogram.count();
            }
        }
        let texts = reader
            .activities()
            .iter()
            .filter_map(|activity| activity.command.as_ref());
        assert!(texts.map(|command| command.text.len()).sum::<usize>() <= input.len());
    }
}
