//! Totals of programs that have ended, and the file that keeps them, docs/formats/programs.md: what a publisher counted is in it,
//! and on the disk, before the publisher's own file goes. An epoch is taken over once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_base::label_set::LabelSet;
use kymo_shm::{Buckets, MetricKind};
use kymo_sys::disk::{Disk, DiskFile, OpenMode};

const NAME: &str = "programs";
const NEW: &str = "programs.new";
const MAGIC: &[u8; 8] = b"KYMOPRG0";
/// Length and checksum of a record.
const FRAME: usize = 8;
/// A longer file is not read.
const FILE_MAX: usize = 1 << 30;
/// What a file may have that is of no use any more, beside what is.
const SLACK: usize = 1 << 20;
/// Epochs that are remembered.
const EPOCHS_MAX: usize = 65_536;
const FOLD: u8 = 1;
const TOTAL: u8 = 2;
const EPOCH: u8 = 3;

/// The random bits of a publisher's file.
pub(super) type Epoch = [u8; 16];

/// What ended programs counted of one metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Total {
    /// Whose it is.
    pub(super) uid: u32,
    /// A counter or a histogram.
    pub(super) kind: MetricKind,
    /// What cells are multiplied with to be in the unit.
    pub(super) scale: f64,
    pub(super) cells: Vec<u64>,
}

impl Total {
    fn is_like(&self, other: &Total) -> bool {
        self.kind == other.kind && self.scale.to_bits() == other.scale.to_bits()
    }
}

/// What a publisher leaves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Legacy {
    pub(super) epoch: Epoch,
    pub(super) totals: Vec<(LabelSet, Total)>,
}

/// All of them.
pub(super) struct Retired {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    boot: Epoch,
    totals: HashMap<LabelSet, Total>,
    epochs: HashSet<Epoch>,
    /// The same, oldest first.
    order: VecDeque<Epoch>,
    /// `None`: a file begins with the next write.
    open: Option<OpenFile>,
}

struct OpenFile {
    file: Box<dyn DiskFile>,
    end: usize,
    /// Its length when it began.
    begun: usize,
}

impl Retired {
    /// Reads what there is, and what was damaged. Epochs of other boots than this one are forgotten: their files are gone.
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
        boot: Epoch,
    ) -> io::Result<(Retired, Option<String>)> {
        let mut retired = Retired {
            disk,
            folder: folder.to_path_buf(),
            boot,
            totals: HashMap::new(),
            epochs: HashSet::new(),
            order: VecDeque::new(),
            open: None,
        };
        let Some(bytes) = retired.read()? else {
            return Ok((retired, None));
        };
        let end = retired.replay(&bytes);
        let damage = bytes.len() - end;
        let notice =
            (damage > 0).then(|| format!("{NAME}: {damage} damaged bytes at the end are left out"));
        Ok((retired, notice))
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let file = match self.disk.open(&self.folder.join(NAME), OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let size = usize::try_from(file.metadata()?.size_bytes).unwrap_or(usize::MAX);
        let mut bytes = vec![0; size.min(FILE_MAX)];
        let count = file.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        Ok(Some(bytes))
    }

    /// Where what is whole ends.
    fn replay(&mut self, bytes: &[u8]) -> usize {
        if !bytes.starts_with(MAGIC) {
            return 0;
        }
        let (mut end, mut seen) = (MAGIC.len(), HashSet::new());
        while let Some((record, length)) = bytes.get(end..).and_then(take) {
            let key = record.epoch.map(|epoch| (record.boot, epoch));
            if key.is_none_or(|key| seen.insert(key)) {
                self.apply(record);
            }
            end += length;
        }
        end
    }

    fn apply(&mut self, record: Record) {
        let Record {
            boot,
            epoch,
            totals,
        } = record;
        if epoch.is_some_and(|epoch| boot == self.boot && !self.remember(epoch)) {
            return;
        }
        for (labels, total) in totals {
            self.add(labels, total);
        }
    }

    /// One of another kind takes the place of what was: the program means something else now.
    fn add(&mut self, labels: LabelSet, total: Total) {
        match self.totals.get_mut(&labels) {
            Some(known) if known.is_like(&total) => {
                for (known, more) in known.cells.iter_mut().zip(total.cells) {
                    *known = known.wrapping_add(more);
                }
            }
            _ => {
                self.totals.insert(labels, total);
            }
        }
    }

    /// `false`: it is known.
    fn remember(&mut self, epoch: Epoch) -> bool {
        if !self.epochs.insert(epoch) {
            return false;
        }
        self.order.push_back(epoch);
        if self.order.len() > EPOCHS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.epochs.remove(&oldest);
        }
        true
    }

    /// Whether what this publisher counted was taken over.
    pub(super) fn knows(&self, epoch: &Epoch) -> bool {
        self.epochs.contains(epoch)
    }

    /// What was kept of this label set, if it was of this kind.
    pub(super) fn total(&self, labels: &LabelSet) -> Option<&Total> {
        self.totals.get(labels)
    }

    pub(super) fn totals(&self) -> impl Iterator<Item = (&LabelSet, &Total)> {
        self.totals.iter()
    }

    /// Takes over what these leave, once that is on the disk. After an error nothing was taken over.
    pub(super) fn take_over(&mut self, mut legacies: Vec<Legacy>) -> io::Result<()> {
        let mut new = HashSet::new();
        legacies.retain(|legacy| !self.knows(&legacy.epoch) && new.insert(legacy.epoch));
        let mut bytes = Vec::new();
        for legacy in &legacies {
            let totals: Vec<_> = legacy.totals.iter().map(|(l, t)| (l, t)).collect();
            put(&mut bytes, FOLD, Some((self.boot, legacy.epoch)), &totals);
        }
        let is_long = |open: &OpenFile| open.end > 2 * open.begun + SLACK;
        if self.open.as_ref().is_none_or(is_long) {
            self.begin()?;
        }
        if let Some(open) = &mut self.open {
            let offset = u64::try_from(open.end).unwrap_or(u64::MAX);
            let written = open.file.write_at(&bytes, offset);
            match written.and_then(|()| open.file.sync_data()) {
                Ok(()) => open.end += bytes.len(),
                Err(error) => {
                    // What is in it is not known any more: another one begins.
                    self.open = None;
                    return Err(error);
                }
            }
        }
        for legacy in legacies {
            self.apply(Record {
                boot: self.boot,
                epoch: Some(legacy.epoch),
                totals: legacy.totals,
            });
        }
        Ok(())
    }

    /// A file of what is known, in the place of the one before.
    fn begin(&mut self) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        for epoch in &self.order {
            put(&mut bytes, EPOCH, Some((self.boot, *epoch)), &[]);
        }
        for (labels, total) in &self.totals {
            put(&mut bytes, TOTAL, None, &[(labels, total)]);
        }
        let new = self.folder.join(NEW);
        let file = self.disk.open(&new, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_at(&bytes, 0)?;
        file.sync_data()?;
        self.disk.rename(&new, &self.folder.join(NAME))?;
        self.disk.sync_dir(&self.folder)?;
        let end = bytes.len();
        self.open = Some(OpenFile {
            file,
            end,
            begun: end,
        });
        Ok(())
    }
}

/// A record of the file.
struct Record {
    boot: Epoch,
    epoch: Option<Epoch>,
    totals: Vec<(LabelSet, Total)>,
}

fn put(out: &mut Vec<u8>, kind: u8, of: Option<(Epoch, Epoch)>, totals: &[(&LabelSet, &Total)]) {
    let from = out.len();
    out.extend([0; FRAME]);
    out.push(kind);
    if let Some((boot, epoch)) = of {
        out.extend(boot);
        out.extend(epoch);
    }
    for (labels, total) in totals {
        put_total(out, labels, total);
    }
    let length = u32::try_from(out.len() - from - FRAME).unwrap_or(u32::MAX);
    let length = length.to_le_bytes();
    let checksum = checksum(length, &out[from + FRAME..]);
    out[from..from + 4].copy_from_slice(&length);
    out[from + 4..from + FRAME].copy_from_slice(&checksum.to_le_bytes());
}

/// Cells that are not 0, with their numbers.
fn put_total(out: &mut Vec<u8>, labels: &LabelSet, total: &Total) {
    let text = labels.text();
    out.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend(text);
    out.extend(total.uid.to_le_bytes());
    out.extend(match total.kind {
        MetricKind::Histogram(buckets) => {
            let [bits, low, high] = buckets.parameters();
            [3, bits, low, high]
        }
        MetricKind::Counter | MetricKind::Gauge(_) => [1, 0, 0, 0],
    });
    out.extend(total.scale.to_bits().to_le_bytes());
    let cells = || (0_u32..).zip(&total.cells).filter(|(_, cell)| **cell != 0);
    let count = u32::try_from(cells().count()).unwrap_or(u32::MAX);
    out.extend(count.to_le_bytes());
    for (number, cell) in cells() {
        out.extend(number.to_le_bytes());
        out.extend(cell.to_le_bytes());
    }
}

fn checksum(length: [u8; 4], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&length), body)
}

/// A record, and how long its frame is.
fn take(bytes: &[u8]) -> Option<(Record, usize)> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (wanted, rest) = rest.split_first_chunk()?;
    let body = rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let is_right = checksum(*length, body) == u32::from_le_bytes(*wanted);
    let record = record(body).filter(|_| is_right)?;
    Some((record, FRAME + body.len()))
}

fn record(body: &[u8]) -> Option<Record> {
    let (&kind, mut rest) = body.split_first()?;
    let mut record = Record {
        boot: Epoch::default(),
        epoch: None,
        totals: Vec::new(),
    };
    if matches!(kind, FOLD | EPOCH) {
        (record.boot, record.epoch) = (array(&mut rest)?, Some(array(&mut rest)?));
    } else if kind != TOTAL {
        return None;
    }
    while !rest.is_empty() {
        record.totals.push(total(&mut rest)?);
    }
    Some(record)
}

fn total(rest: &mut &[u8]) -> Option<(LabelSet, Total)> {
    let length = usize::from(u16::from_le_bytes(array(rest)?));
    let (text, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    let labels = LabelSet::parse(text).ok()?;
    let uid = u32::from_le_bytes(array(rest)?);
    let kind = match array(rest)? {
        [1, 0, 0, 0] => MetricKind::Counter,
        [3, bits, low, high] => MetricKind::Histogram(Buckets::new(bits, low, high)?),
        _ => return None,
    };
    let scale = f64::from_bits(u64::from_le_bytes(array(rest)?));
    let mut cells = vec![0; kind.cells()];
    for _ in 0..u32::from_le_bytes(array(rest)?) {
        let number = usize::try_from(u32::from_le_bytes(array(rest)?)).ok()?;
        *cells.get_mut(number)? = u64::from_le_bytes(array(rest)?);
    }
    let total = Total {
        uid,
        kind,
        scale,
        cells,
    };
    Some((labels, total))
}

fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (array, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*array)
}

/// Any bytes as a file: what can be read of them is written again, and read again as the same.
#[cfg(feature = "testing")]
pub(crate) fn fuzz(input: &[u8]) {
    if let Some((read, length)) = take(input) {
        assert!(length <= input.len(), "more than there is");
        let totals: Vec<_> = read.totals.iter().map(|(l, t)| (l, t)).collect();
        let kind = if read.epoch.is_some() { FOLD } else { TOTAL };
        let mut bytes = Vec::new();
        put(
            &mut bytes,
            kind,
            read.epoch.map(|epoch| (read.boot, epoch)),
            &totals,
        );
        let again = take(&bytes).map(|(record, _)| record);
        let again = again.map(|record| (record.boot, record.epoch, format!("{:?}", record.totals)));
        let wanted = (read.boot, read.epoch, format!("{:?}", read.totals));
        assert_eq!(again, Some(wanted), "a record changed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::sim_disk::SimDisk;

    const BOOT: Epoch = [7; 16];

    fn labels(name: &str) -> LabelSet {
        LabelSet::new([("field", name.as_bytes())]).unwrap()
    }

    fn counter(name: &str, value: u64) -> (LabelSet, Total) {
        let total = Total {
            uid: 1,
            kind: MetricKind::Counter,
            scale: 1.0,
            cells: vec![value],
        };
        (labels(name), total)
    }

    fn histogram(name: &str, cell: usize) -> (LabelSet, Total) {
        let kind = MetricKind::Histogram(Buckets::new(1, 3, 6).unwrap());
        let mut cells = vec![0; kind.cells()];
        cells[cell] = 5;
        let total = Total {
            uid: 2,
            kind,
            scale: 1e-9,
            cells,
        };
        (labels(name), total)
    }

    fn legacy(epoch: u8, totals: Vec<(LabelSet, Total)>) -> Legacy {
        Legacy {
            epoch: [epoch; 16],
            totals,
        }
    }

    fn opened(disk: &Arc<SimDisk>, boot: Epoch) -> (Retired, Option<String>) {
        let folder = Path::new("/store");
        disk.create_dir_all(folder).unwrap();
        Retired::open(disk.clone(), folder, boot).unwrap()
    }

    fn value(retired: &Retired, name: &str) -> Option<u64> {
        let total = retired.total(&labels(name))?;
        Some(total.cells.iter().sum())
    }

    #[test]
    fn totals_are_there_after_a_start_and_an_epoch_counts_once() {
        let disk = Arc::new(SimDisk::new(1));
        let (mut retired, _) = opened(&disk, BOOT);
        let first = vec![counter("a", 3), histogram("h", 4)];
        retired.take_over(vec![legacy(1, first)]).unwrap();
        retired
            .take_over(vec![
                legacy(2, vec![counter("a", 4)]),
                legacy(1, vec![counter("a", 3)]),
            ])
            .unwrap();
        for _ in 0..2 {
            assert_eq!(
                (value(&retired, "a"), value(&retired, "h")),
                (Some(7), Some(5))
            );
            assert!(retired.knows(&[1; 16]) && !retired.knows(&[3; 16]));
            let notice;
            (retired, notice) = opened(&disk, BOOT);
            assert_eq!(notice, None);
        }
        retired
            .take_over(vec![legacy(1, vec![counter("a", 3)])])
            .unwrap();
        assert_eq!(value(&retired, "a"), Some(7));
        let (retired, _) = opened(&disk, [8; 16]);
        assert_eq!(value(&retired, "a"), Some(7), "of another boot");
        assert!(!retired.knows(&[1; 16]), "its file is gone");
    }

    #[test]
    fn another_kind_takes_the_place_and_damage_is_left_out() {
        let disk = Arc::new(SimDisk::new(1));
        let (mut retired, _) = opened(&disk, BOOT);
        retired
            .take_over(vec![legacy(1, vec![counter("a", 3)])])
            .unwrap();
        retired
            .take_over(vec![legacy(2, vec![histogram("a", 2)])])
            .unwrap();
        assert_eq!(value(&retired, "a"), Some(5));
        let file = disk
            .open(Path::new("/store/programs"), OpenMode::Write)
            .unwrap();
        let size = file.metadata().unwrap().size_bytes;
        file.write_at(&[9; 30], size).unwrap();
        let (mut retired, notice) = opened(&disk, BOOT);
        assert!(notice.unwrap().contains("30 damaged bytes"));
        assert_eq!(value(&retired, "a"), Some(5));
        retired
            .take_over(vec![legacy(3, vec![histogram("a", 3)])])
            .unwrap();
        let (retired, notice) = opened(&disk, BOOT);
        assert_eq!((value(&retired, "a"), notice), (Some(10), None));
    }

    #[test]
    fn a_file_begins_again_when_most_of_it_is_of_no_use() {
        let disk = Arc::new(SimDisk::new(1));
        let (mut retired, _) = opened(&disk, BOOT);
        for n in 0..40_000_u32 {
            let mut epoch = [0; 16];
            epoch[..4].copy_from_slice(&n.to_le_bytes());
            let totals = vec![counter("a", 1)];
            retired.take_over(vec![Legacy { epoch, totals }]).unwrap();
        }
        let file = disk
            .open(Path::new("/store/programs"), OpenMode::Read)
            .unwrap();
        let size = file.metadata().unwrap().size_bytes;
        assert!(size < 2_200_000 * 2, "{size} bytes");
        let (retired, _) = opened(&disk, BOOT);
        assert_eq!(value(&retired, "a"), Some(40_000));
    }
}
