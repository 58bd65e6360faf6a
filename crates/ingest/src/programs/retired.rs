//! Totals of ended programs, and their file, docs/formats/programs.md. A publisher's totals are on the disk in this file before
//! the publisher's own file is removed. The collector takes over an epoch once. After damage, or with a file of a newer version,
//! totals are in doubt: nothing is computed from them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::path::Path;
use std::sync::Arc;

use kymo_base::label_set::Labels;
use kymo_shm::{Buckets, MetricKind};
use kymo_sys::disk::Disk;
use kymo_sys::kept_file::{Contents, KeptFile, Kind, Old, Records, Sync};

/// The file's name.
pub(crate) const NAME: &str = "programs";
pub(crate) const FILE: Kind = Kind {
    magic: *b"KYMOPROG",
    version: 1,
    bytes_max: 1 << 30,
    old: Old {
        magic: *b"KYMOPRG",
        newest: 0,
        has_generation: false,
    },
};
/// Bytes of obsolete records that the file may have in addition to its first size, before it is written again.
const SLACK: usize = 1 << 20;
/// Most epochs in memory.
const EPOCHS_MAX: usize = 65_536;
const FOLD: u8 = 1;
const TOTAL: u8 = 2;
const EPOCH: u8 = 3;

/// The random bits of a publisher's file.
pub(super) type Epoch = [u8; 16];

/// Total of the ended programs' values of one metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Total {
    /// User id of the owner.
    pub(super) uid: u32,
    /// A counter or a histogram.
    pub(super) kind: MetricKind,
    /// Factor from cells to the unit.
    pub(super) scale: f64,
    pub(super) cells: Vec<u64>,
}

impl Total {
    /// Form of the cells.
    pub(super) fn form(&self) -> CellForm {
        CellForm::of(self.kind, self.scale)
    }
}

/// Form of a metric's cells. Two versions of a program that run at once may have different forms under one label set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CellForm {
    pub(super) kind: MetricKind,
    /// Factor from cells to the unit.
    pub(super) scale: f64,
}

impl CellForm {
    pub(super) fn of(kind: MetricKind, scale: f64) -> CellForm {
        CellForm { kind, scale }
    }

    /// True if cells of both forms can be added up.
    pub(super) fn is_like(&self, other: &CellForm) -> bool {
        self.kind == other.kind && self.scale.to_bits() == other.scale.to_bits()
    }

    /// True if both forms have the same series: both are counters, gauges or histograms.
    pub(super) fn is_akin(&self, other: &CellForm) -> bool {
        match (self.kind, other.kind) {
            (MetricKind::Counter, MetricKind::Counter)
            | (MetricKind::Gauge(_), MetricKind::Gauge(_))
            | (MetricKind::Histogram(_), MetricKind::Histogram(_)) => true,
            (MetricKind::Counter | MetricKind::Gauge(_) | MetricKind::Histogram(_), _) => false,
        }
    }
}

/// Totals that an ended publisher leaves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Legacy {
    pub(super) epoch: Epoch,
    pub(super) totals: Vec<(Labels, Total)>,
}

/// Trust in the totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The totals are complete.
    None,
    /// The file was damaged.
    Damaged,
    /// The file is of a newer kymo.
    Newer,
}

/// All totals of ended programs.
pub(super) struct Retired {
    kept: KeptFile,
    boot: Epoch,
    /// Totals by label set: one for each form, in the order in which they came.
    totals: HashMap<Labels, Vec<Total>>,
    epochs: HashSet<Epoch>,
    /// Epochs, oldest first.
    order: VecDeque<Epoch>,
    doubt: Doubt,
}

impl Retired {
    /// Reads the file; returns a message if there is one. Forgets epochs of other boots, whose files are gone.
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
        boot: Epoch,
    ) -> io::Result<(Retired, Option<String>)> {
        let (kept, contents) = KeptFile::open(disk, folder.join(NAME), FILE)?;
        let mut retired = Retired {
            kept,
            boot,
            totals: HashMap::new(),
            epochs: HashSet::new(),
            order: VecDeque::new(),
            doubt: Doubt::None,
        };
        let is_understood = retired.replay(&contents);
        if !is_understood {
            retired.kept.distrust(&contents);
        }
        retired.doubt = match retired.kept.is_newer() {
            true => Doubt::Newer,
            false if contents.is_whole() && is_understood => Doubt::None,
            false => Doubt::Damaged,
        };
        let notice = retired.kept.notice(&contents);
        Ok((retired, notice))
    }

    /// Applies the records of the file. `false`: a record is unreadable.
    fn replay(&mut self, contents: &Contents) -> bool {
        let (mut is_understood, mut seen) = (true, HashSet::new());
        for body in contents.bodies() {
            let Some(record) = record(body) else {
                is_understood = false;
                continue;
            };
            let key = record.epoch.map(|epoch| (record.boot, epoch));
            if key.is_none_or(|key| seen.insert(key)) {
                self.apply(record);
            }
        }
        is_understood
    }

    /// Trust in the totals. While they are in doubt the collector takes over nothing.
    pub(super) fn doubt(&self) -> Doubt {
        self.doubt
    }

    /// Accepts the readable totals as complete, and writes the file again.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        if self.doubt == Doubt::Damaged {
            self.doubt = Doubt::None;
            self.begin()?;
        }
        Ok(())
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

    /// Adds a total. A total of another kind replaces the old ones, because the program means something else now; one of another
    /// form stands beside them.
    fn add(&mut self, labels: Labels, total: Total) {
        let (form, all) = (total.form(), self.totals.entry(labels).or_default());
        all.retain(|known| known.form().is_akin(&form));
        match all.iter_mut().find(|known| known.form().is_like(&form)) {
            Some(known) => add_cells(&mut known.cells, &total.cells),
            None => all.push(total),
        }
    }

    /// Notes an epoch; `false`: it is known.
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

    /// True if this publisher's totals were taken over.
    pub(super) fn knows(&self, epoch: &Epoch) -> bool {
        self.epochs.contains(epoch)
    }

    /// Totals of this label set: one for each form.
    pub(super) fn of(&self, labels: &Labels) -> &[Total] {
        self.totals.get(labels).map_or(&[], Vec::as_slice)
    }

    /// True if there is a total of this label set in this form.
    pub(super) fn has(&self, labels: &Labels, form: &CellForm) -> bool {
        let all = self.of(labels).iter();
        all.map(Total::form).any(|known| known.is_like(form))
    }

    /// Forgets a label set whose series are gone. The file has it until the next publisher ends and the file is written again.
    pub(super) fn forget(&mut self, labels: &Labels) -> Vec<Total> {
        let totals = self.totals.remove(labels).unwrap_or_default();
        if !totals.is_empty() {
            self.kept.give_up();
        }
        totals
    }

    pub(super) fn totals(&self) -> impl Iterator<Item = (&Labels, &Total)> {
        pairs(&self.totals)
    }

    /// Takes over these totals, after they are on the disk. After an error none is taken over.
    pub(super) fn take_over(&mut self, mut legacies: Vec<Legacy>) -> io::Result<()> {
        let mut new = HashSet::new();
        legacies.retain(|legacy| !self.knows(&legacy.epoch) && new.insert(legacy.epoch));
        let is_long = |(end, begun): (usize, usize)| end > 2 * begun + SLACK;
        if self.kept.size().is_none_or(is_long) {
            self.begin()?;
        }
        let mut records = self.kept.records();
        for legacy in &legacies {
            let totals: Vec<_> = legacy.totals.iter().map(|(l, t)| (l, t)).collect();
            let of = Some((self.boot, legacy.epoch));
            records.put(|out| put(out, FOLD, of, &totals));
        }
        self.kept.append(&records, Sync::Now)?;
        for legacy in legacies {
            self.apply(Record {
                boot: self.boot,
                epoch: Some(legacy.epoch),
                totals: legacy.totals,
            });
        }
        Ok(())
    }

    /// Replaces the file by one of the current totals.
    fn begin(&mut self) -> io::Result<()> {
        let (boot, order, totals) = (self.boot, &self.order, &self.totals);
        let mut fill = |records: &mut Records| {
            for epoch in order {
                records.put(|out| put(out, EPOCH, Some((boot, *epoch)), &[]));
            }
            for total in pairs(totals) {
                records.put(|out| put(out, TOTAL, None, &[total]));
            }
        };
        let generation = self.kept.generation() + 1;
        self.kept.replace(generation, &mut fill, Sync::Now)
    }
}

fn pairs(totals: &HashMap<Labels, Vec<Total>>) -> impl Iterator<Item = (&Labels, &Total)> {
    let each = |(labels, all)| std::iter::repeat(labels).zip(all);
    totals.iter().flat_map(each)
}

/// Adds cells of the same form.
pub(super) fn add_cells(sum: &mut [u64], more: &[u64]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum = sum.wrapping_add(*more);
    }
}

/// True if a record of the file can be read.
pub(crate) fn is_record(_version: u32, body: &[u8]) -> bool {
    record(body).is_some()
}

/// A record of the file.
struct Record {
    boot: Epoch,
    epoch: Option<Epoch>,
    totals: Vec<(Labels, Total)>,
}

fn put(out: &mut Vec<u8>, kind: u8, of: Option<(Epoch, Epoch)>, totals: &[(&Labels, &Total)]) {
    out.push(kind);
    if let Some((boot, epoch)) = of {
        out.extend(boot);
        out.extend(epoch);
    }
    for (labels, total) in totals {
        put_total(out, labels, total);
    }
}

/// Appends a total. Only cells other than 0 are written, with their numbers.
fn put_total(out: &mut Vec<u8>, labels: &Labels, total: &Total) {
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

fn total(rest: &mut &[u8]) -> Option<(Labels, Total)> {
    let length = usize::from(u16::from_le_bytes(array(rest)?));
    let (text, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    let labels = Labels::parse(text).ok()?;
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

/// Reads any bytes as a record, and as a file: the readable part is written again and read again as the same.
#[cfg(feature = "testing")]
pub(crate) fn fuzz(input: &[u8]) {
    if let kymo_sys::kept_file::Found::Read(contents) =
        kymo_sys::kept_file::parse(input.to_vec(), &FILE)
    {
        contents.bodies().for_each(|body| drop(record(body)));
    }
    let Some(read) = record(input) else {
        return;
    };
    let totals: Vec<_> = read.totals.iter().map(|(l, t)| (l, t)).collect();
    let kind = if read.epoch.is_some() { FOLD } else { TOTAL };
    let mut bytes = Vec::new();
    put(
        &mut bytes,
        kind,
        read.epoch.map(|epoch| (read.boot, epoch)),
        &totals,
    );
    let again =
        record(&bytes).map(|record| (record.boot, record.epoch, format!("{:?}", record.totals)));
    let wanted = (read.boot, read.epoch, format!("{:?}", read.totals));
    assert_eq!(again, Some(wanted), "a record changed");
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::disk::OpenMode;
    use kymo_sys::sim_disk::SimDisk;

    const BOOT: Epoch = [7; 16];

    fn labels(name: &str) -> Labels {
        Labels::new([("field", name.as_bytes())]).unwrap()
    }

    fn counter(name: &str, value: u64) -> (Labels, Total) {
        let total = Total {
            uid: 1,
            kind: MetricKind::Counter,
            scale: 1.0,
            cells: vec![value],
        };
        (labels(name), total)
    }

    fn histogram(name: &str, cell: usize) -> (Labels, Total) {
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

    fn legacy(epoch: u8, totals: Vec<(Labels, Total)>) -> Legacy {
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
        let totals = retired.of(&labels(name));
        let cells = totals.iter().flat_map(|total| &total.cells);
        (!totals.is_empty()).then(|| cells.sum())
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
    fn another_kind_takes_the_place() {
        let disk = Arc::new(SimDisk::new(1));
        let (mut retired, _) = opened(&disk, BOOT);
        for (epoch, total) in [(1, counter("a", 3)), (2, histogram("a", 2))] {
            retired.take_over(vec![legacy(epoch, vec![total])]).unwrap();
        }
        assert_eq!(value(&retired, "a"), Some(5));
    }

    /// After a rolling upgrade the old version's counts were lost: the new version's total, with other buckets, replaced them.
    #[test]
    fn totals_of_other_buckets_and_scales_stand_side_by_side() {
        let disk = Arc::new(SimDisk::new(1));
        let (mut retired, _) = opened(&disk, BOOT);
        let mut finer = histogram("a", 7);
        finer.1.kind = MetricKind::Histogram(Buckets::new(2, 3, 6).unwrap());
        finer.1.cells.resize(finer.1.kind.cells(), 0);
        let mut other_scale = histogram("a", 3);
        other_scale.1.scale = 1e-6;
        let totals = [histogram("a", 2), finer, other_scale, histogram("a", 2)];
        for (epoch, total) in (1..).zip(totals) {
            retired.take_over(vec![legacy(epoch, vec![total])]).unwrap();
        }
        for round in 0..3 {
            let kept = retired.of(&labels("a"));
            let counts: Vec<u64> = kept.iter().map(|total| total.cells.iter().sum()).collect();
            assert_eq!(counts, [10, 5, 5]);
            if round == 1 {
                retired.begin().unwrap();
            }
            (retired, _) = opened(&disk, BOOT);
        }
        assert_eq!(retired.forget(&labels("a")).len(), 3);
    }

    /// 1,200,000 became 10: after a turned bit all later records were lost, the next record overwrote them, and rates
    /// were computed between old and remaining totals.
    #[test]
    fn damage_costs_one_record_and_puts_all_totals_in_doubt() {
        let disk = Arc::new(SimDisk::new(1));
        let (mut retired, _) = opened(&disk, BOOT);
        let names = ["a", "b", "c", "d"];
        for (epoch, name) in (1..).zip(names) {
            retired
                .take_over(vec![legacy(epoch, vec![counter(name, 7)])])
                .unwrap();
        }
        let path = Path::new("/store/programs");
        let whole = disk.bytes(path).unwrap();
        let old = [&include_bytes!("../../../../tests/fixtures/programs-0")[..]];
        for bytes in old.into_iter().chain([&whole[..]]) {
            disk.set_bytes(path, bytes.to_vec());
            let (of_whole, notice) = opened(&disk, BOOT);
            assert_eq!((of_whole.doubt(), notice), (Doubt::None, None));
            for at in 0..bytes.len() * 8 {
                let mut flipped = bytes.to_vec();
                flipped[at / 8] ^= 1 << (at % 8);
                disk.set_bytes(path, flipped.clone());
                let (mut retired, notice) = opened(&disk, BOOT);
                assert!(
                    notice.is_some() && retired.doubt() != Doubt::None,
                    "bit {at}"
                );
                let settled = retired.settle().is_ok() && retired.doubt() == Doubt::None;
                if !settled {
                    // The bit is in the digit of version 0.
                    assert_eq!((at / 8, retired.doubt()), (7, Doubt::Newer));
                    assert!(retired.take_over(vec![]).is_err());
                    assert_eq!(disk.bytes(path).unwrap(), flipped);
                    continue;
                }
                let lost = of_whole.totals().filter(|(labels, total)| {
                    let left = retired.of(labels).first();
                    let left = left.map_or(0, |left| left.cells.iter().sum::<u64>());
                    let had: u64 = total.cells.iter().sum();
                    assert!(left <= had, "bit {at}");
                    left < had
                });
                // A record of the fixture has two totals.
                assert!(lost.count() <= 2, "bit {at}");
                assert_eq!(
                    disk.bytes(Path::new("/store/programs.bad")).unwrap(),
                    flipped
                );
                let (again, notice) = opened(&disk, BOOT);
                assert_eq!((again.doubt(), notice), (Doubt::None, None), "bit {at}");
                assert_eq!(again.totals, retired.totals, "bit {at}");
            }
        }
    }

    #[test]
    fn a_file_of_a_newer_version_is_left_alone() {
        let disk = Arc::new(SimDisk::new(1));
        disk.create_dir_all(Path::new("/store")).unwrap();
        let path = Path::new("/store/programs");
        let newer = Kind { version: 2, ..FILE };
        let (mut kept, _) = KeptFile::open(disk.clone(), path.into(), newer).unwrap();
        kept.replace(1, &mut |_| {}, Sync::Now).unwrap();
        let before = disk.bytes(path);
        let (mut retired, notice) = opened(&disk, BOOT);
        assert!(notice.unwrap().contains("it is of version 2"));
        assert!(retired.settle().is_ok() && retired.doubt() == Doubt::Newer);
        assert!(
            retired
                .take_over(vec![legacy(1, vec![counter("a", 3)])])
                .is_err()
        );
        assert_eq!((disk.bytes(path), disk.files().len()), (before, 1));
    }

    /// The fixtures are kept for ever.
    #[test]
    fn fixtures_are_read_and_the_newest_is_written_byte_for_byte() {
        let newest = include_bytes!("../../../../tests/fixtures/programs-1");
        let first = include_bytes!("../../../../tests/fixtures/programs-0");
        for fixture in [&newest[..], first] {
            let disk = Arc::new(SimDisk::new(1));
            disk.create_dir_all(Path::new("/store")).unwrap();
            disk.set_bytes(Path::new("/store/programs"), fixture.to_vec());
            let (retired, notice) = opened(&disk, BOOT);
            assert_eq!(notice, None);
            assert_eq!(
                (value(&retired, "a"), value(&retired, "h")),
                (Some(1_200_007), Some(5))
            );
            assert!(retired.knows(&[1; 16]) && retired.knows(&[2; 16]));
        }
        let disk = Arc::new(SimDisk::new(1));
        let (mut retired, _) = opened(&disk, BOOT);
        for (epoch, totals) in fixture_records() {
            retired.take_over(vec![legacy(epoch, totals)]).unwrap();
        }
        assert_eq!(
            disk.bytes(Path::new("/store/programs")).as_deref(),
            Some(&newest[..])
        );
    }

    fn fixture_records() -> [(u8, Vec<(Labels, Total)>); 2] {
        [
            (1, vec![counter("a", 1_200_000), histogram("h", 4)]),
            (2, vec![counter("a", 7)]),
        ]
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
