//! Publishes: makes the file, gives out slots of it, and describes metrics. What happens at each command is in `slot.rs`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kymo_base::errno::strerror;
use kymo_base::limits::{
    SHM_CELLS_MAX, SHM_METRICS_MAX, SHM_SLOT_LABELS_MAX, SHM_SLOTS_MAX, SHM_TEXT_MAX,
};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::head::{StampClock, halves, word_of};
use crate::histogram::Buckets;
use crate::layout::{
    HEAD_WORDS, HEADER_BYTES, LABEL_NAME_BYTES, LIFE, LIVE_CLOSED, LIVE_LAST_LIFE, LIVE_METRICS,
    LIVE_SLOTS, Layout, NAME_BYTES, OWNER, Room, START,
};
use crate::life::{self, Life};
use crate::mapping::{Mapping, as_bytes};
use crate::metric::{Description, GaugeType, Metric, MetricKind};
use crate::version::Word;

mod file;
mod forks;
mod origin;
mod slot;
#[cfg(test)]
mod tests;

pub use origin::Origin;
pub use slot::{Cells, Slot};

/// Bytes of a command's text, unless a schema says otherwise.
const TEXT_DEFAULT: usize = 1024;

/// Why nothing is published. The program goes on with [`Publisher::disabled`].
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// A name, a number or a metric is beyond its limit.
    #[error("cannot publish {what}: {cause}")]
    Schema {
        /// Kind and number of the metric.
        what: String,
        /// The limit.
        cause: &'static str,
    },
    /// The folder cannot be used.
    #[error("cannot publish in {}: {cause}", folder.display())]
    Folder {
        /// Where files were to be.
        folder: PathBuf,
        /// Fault of the description.
        cause: &'static str,
    },
    /// The system refused.
    #[error("cannot {verb} {}: {}", path.display(), cause_of(*cause))]
    System {
        /// Attempted action.
        verb: &'static str,
        /// A folder or a file.
        path: PathBuf,
        /// Error of the system.
        cause: Errno,
    },
}

/// The cause of a refusal by the system. A service or a container may see as read-only what others write.
fn cause_of(error: Errno) -> String {
    match error {
        Errno::ROFS => "it is read-only here; mount it read-write (ReadWritePaths= of a unit, a volume without ro), or set KYMO_DIR".into(),
        error => strerror(&error.into()),
    }
}

/// A metric that only grows.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    cell: usize,
}

/// A metric that goes up and down.
#[derive(Clone, Copy, Debug)]
pub struct Gauge {
    cell: usize,
    kind: GaugeType,
}

/// A metric of how values are distributed.
#[derive(Clone, Copy, Debug)]
pub struct Histogram {
    cell: usize,
    buckets: Buckets,
}

/// Description of a program and its metrics.
#[derive(Clone, Debug)]
pub struct Schema {
    name: String,
    slots: usize,
    text_bytes: usize,
    labels: Vec<String>,
    stamp_clock: StampClock,
    metrics: Vec<Metric>,
    cells: usize,
    spare_cells: usize,
    spare_bytes: usize,
    folder: Option<PathBuf>,
    origin: Option<Origin>,
}

impl Schema {
    /// Describes a program with this name, of which `slots` processes or threads publish at the same time, at most.
    pub fn new(name: &str, slots: usize) -> Schema {
        Schema {
            name: name.to_string(),
            slots,
            text_bytes: TEXT_DEFAULT,
            labels: Vec::new(),
            stamp_clock: StampClock::None,
            metrics: Vec::new(),
            cells: 0,
            spare_cells: 0,
            spare_bytes: 0,
            folder: None,
            origin: None,
        }
    }

    /// Most bytes of a command's text; they are rounded up to 8.
    #[must_use]
    pub fn text_bytes(mut self, bytes: usize) -> Schema {
        self.text_bytes = bytes.next_multiple_of(8);
        self
    }

    /// The names of a slot's labels.
    #[must_use]
    pub fn slot_labels(mut self, names: &[&str]) -> Schema {
        self.labels = names.iter().map(|name| (*name).to_string()).collect();
        self
    }

    /// The clock of the stamps of commands.
    #[must_use]
    pub fn stamp_clock(mut self, clock: StampClock) -> Schema {
        self.stamp_clock = clock;
        self
    }

    /// Room for metrics that are added later: cells of a slot, and bytes of their descriptions.
    #[must_use]
    pub fn spare(mut self, cells: usize, bytes: usize) -> Schema {
        (self.spare_cells, self.spare_bytes) = (cells, bytes);
        self
    }

    /// Another folder than where files usually go.
    #[must_use]
    pub fn folder(mut self, folder: &Path) -> Schema {
        self.folder = Some(folder.to_path_buf());
        self
    }

    /// Another origin than this process: for tests, whose files are to be equal.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Schema {
        self.origin = Some(origin);
        self
    }

    /// A counter.
    pub fn counter(&mut self, description: Description) -> Counter {
        let cell = self.add(description, MetricKind::Counter);
        Counter { cell }
    }

    /// A gauge.
    pub fn gauge(&mut self, description: Description, kind: GaugeType) -> Gauge {
        let cell = self.add(description, MetricKind::Gauge(kind));
        Gauge { cell, kind }
    }

    /// A histogram.
    pub fn histogram(&mut self, description: Description, buckets: Buckets) -> Histogram {
        let cell = self.add(description, MetricKind::Histogram(buckets));
        Histogram { cell, buckets }
    }

    fn add(&mut self, description: Description, kind: MetricKind) -> usize {
        let first_cell = self.cells;
        self.cells += kind.cells();
        self.metrics.push(Metric {
            description,
            kind,
            first_cell,
        });
        first_cell
    }

    /// The descriptions of all metrics, and what the file has to have room for.
    fn checked(&self) -> Result<(Vec<u8>, Room), CreateError> {
        let wrong = |what: &str, cause| CreateError::Schema {
            what: what.to_string(),
            cause,
        };
        if !(1..NAME_BYTES).contains(&self.name.len()) || self.name.contains('\0') {
            return Err(wrong(
                &format!("as {:?}", self.name),
                "a name has 1 to 63 bytes",
            ));
        }
        if let Some(label) = self
            .labels
            .iter()
            .find(|label| label.len() >= LABEL_NAME_BYTES)
        {
            return Err(wrong(
                &format!("label {label}"),
                "its name is longer than 31 bytes",
            ));
        }
        let mut table = Vec::new();
        for metric in &self.metrics {
            metric.append(&mut table).ok_or_else(|| {
                let name = String::from_utf8_lossy(&metric.description.name);
                wrong(&format!("metric {name}"), "its description makes no sense")
            })?;
        }
        let room = Room {
            slots: self.slots,
            cells: self.cells + self.spare_cells,
            text_bytes: self.text_bytes,
            labels: self.labels.len(),
            described: table.len() + self.spare_bytes,
        };
        let within = (1..=SHM_SLOTS_MAX).contains(&room.slots)
            && room.cells <= SHM_CELLS_MAX
            && (8..=SHM_TEXT_MAX).contains(&room.text_bytes)
            && room.labels <= SHM_SLOT_LABELS_MAX
            && room.described <= SHM_METRICS_MAX;
        match within {
            true => Ok((table, room)),
            false => Err(wrong(
                &format!("as {}", self.name),
                "too many slots, cells, labels or bytes of text",
            )),
        }
    }
}

/// State that all slots of a process share.
struct Shared {
    mapping: Mapping,
    layout: Layout,
    room: Room,
    path: PathBuf,
    /// Asked for the locks of others.
    file: file::OpenFile,
    /// The lock of this process; `None`: it could not lock. Locked only by who holds up forks.
    life: Mutex<Option<(u64, Life)>>,
    /// The namespace of the pid of the process that made the file.
    pids: Option<u64>,
    /// Cells of a slot that metrics have; metrics are added by one thread at a time.
    cells_used: Mutex<usize>,
    /// See [`forks::count`]: of the process that made the file.
    forks: u64,
}

impl Shared {
    fn live(&self) -> &[AtomicU64] {
        &self.mapping.words()[HEADER_BYTES / 8..]
    }

    fn head(&self, slot: usize) -> &[AtomicU64] {
        &self.mapping.words()[self.layout.heads / 8 + slot * HEAD_WORDS..][..HEAD_WORDS]
    }

    /// The byte that this process has locked, so that all can see that it lives; 0: it could not.
    fn life(&self) -> u32 {
        forks::between(|| self.begin_life())
    }

    /// As [`Shared::life`], for a caller that holds up forks.
    fn begin_life(&self) -> u32 {
        let mut life = self.life.lock().unwrap_or_else(PoisonError::into_inner);
        let forks = forks::count();
        // The mapping of the parent does not exist in this process.
        std::mem::forget(life.take_if(|(of, _)| *of != forks));
        if life.is_none() {
            *life = self.lock().map(|life| (forks, life));
        }
        life.as_ref().map_or(0, |(_, life)| life.byte())
    }

    fn lock(&self) -> Option<Life> {
        let file = self.file.again(&self.path)?;
        let last = || self.live()[LIVE_LAST_LIFE].fetch_add(1, Ordering::Relaxed);
        let byte =
            std::iter::repeat_with(|| halves(last().wrapping_add(1))[0]).find(|byte| *byte != 0)?;
        Life::begin(file, byte).ok()
    }

    /// True if the process that was seen as the owner of a slot has ended. Its lock shows it. For an owner that could not lock,
    /// its pid shows it, within the same pid namespace; the start time of the process shows whether the pid is used again.
    fn has_ended(&self, slot: usize, seen: u64) -> bool {
        let head = self.head(slot);
        let [byte, taken] = halves(AtomicU64::load(&head[LIFE], Ordering::Acquire));
        let [pid, seen_taken] = halves(seen);
        // Otherwise the owner is still taking the slot.
        let is_of_owner = taken == seen_taken;
        if is_of_owner && byte != 0 {
            let file = self.file.open(&self.path);
            return file.is_some_and(|file| life::is_free(file, byte));
        }
        if self.pids.is_none() || self.pids != origin::own_pids() {
            return false;
        }
        let Some(process) = Pid::from_raw(pid.cast_signed()) else {
            return false;
        };
        if test_kill_process(process) == Err(Errno::SRCH) {
            return true;
        }
        let start = head[START].get();
        let found = match is_of_owner && start != 0 {
            true => origin::start_of(pid),
            false => 0,
        };
        found != 0 && found != start
    }

    /// The cells of gauges.
    fn gauge_cells(&self) -> Vec<usize> {
        let used = AtomicU64::load(&self.live()[LIVE_METRICS], Ordering::Acquire);
        let words = &self.mapping.words()[self.layout.metrics / 8..];
        let used = usize::try_from(used / 8).unwrap_or(0).min(words.len());
        let words: Vec<u64> = words[..used].iter().map(Word::get).collect();
        let (mut rest, mut cells) = (as_bytes(&words), Vec::new());
        while let Ok((metric, behind)) = Metric::parse(rest, self.room.cells) {
            let gauge = metric.filter(|metric| matches!(metric.kind, MetricKind::Gauge(_)));
            cells.extend(gauge.map(|metric| metric.first_cell));
            rest = behind;
        }
        cells
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.forks == forks::count() {
            self.live()[LIVE_CLOSED].publish(1);
        }
        let life = self.life.get_mut();
        let life = life.unwrap_or_else(PoisonError::into_inner);
        // The mapping of a parent is not there.
        std::mem::forget(life.take_if(|(forks, _)| *forks != forks::count()));
    }
}

/// A file in memory that others read. It ends when it and its slots are dropped by the process that made it; the file stays for who
/// collects its last counts.
#[derive(Clone)]
pub struct Publisher {
    shared: Option<Arc<Shared>>,
}

impl Publisher {
    /// Makes the file, complete before it has its name.
    pub fn create(schema: &Schema) -> Result<Publisher, CreateError> {
        let (table, room) = schema.checked()?;
        let layout = Layout::of(&room).ok_or_else(|| CreateError::Schema {
            what: format!("as {}", schema.name),
            cause: "the file would be larger than 256 MiB",
        })?;
        forks::watch().map_err(|cause| CreateError::System {
            verb: "watch forks of",
            path: PathBuf::from(&schema.name),
            cause,
        })?;
        let (mapping, file, path) = file::create(schema, &room, &layout, &table)?;
        let shared = Arc::new(Shared {
            mapping,
            layout,
            room,
            path,
            file,
            life: Mutex::new(None),
            pids: origin::own_pids(),
            cells_used: Mutex::new(schema.cells),
            forks: forks::count(),
        });
        shared.life();
        forks::add(Arc::downgrade(&shared));
        Ok(Publisher {
            shared: Some(shared),
        })
    }

    /// Publishes nothing: its slots do nothing.
    pub const fn disabled() -> Publisher {
        Publisher { shared: None }
    }

    /// [`Publisher::create`]; when that fails, one that is disabled, and why.
    pub fn create_or_disabled(schema: &Schema) -> (Publisher, Option<CreateError>) {
        match Publisher::create(schema) {
            Ok(publisher) => (publisher, None),
            Err(error) => (Publisher::disabled(), Some(error)),
        }
    }

    /// The file.
    pub fn path(&self) -> Option<&Path> {
        self.shared.as_ref().map(|shared| shared.path.as_path())
    }

    /// Takes a free slot for the calling process or thread, or one whose process has ended. Its counters go on where its last owner left
    /// them. A slot that does nothing, if there is none or the publisher is disabled.
    pub fn take(&self) -> Slot {
        let Some(shared) = &self.shared else {
            return Slot::disabled();
        };
        let free = |index: &usize| shared.head(*index)[OWNER].get() & u64::from(u32::MAX) == 0;
        let all = 0..shared.room.slots;
        let mut slots = all.clone().filter(free).chain(all);
        slots
            .find_map(|index| Slot::take(shared, index))
            .unwrap_or(Slot::disabled())
    }

    /// Takes the slot of this number, if it is free or its process has ended: for servers that number their workers.
    pub fn take_at(&self, index: usize) -> Slot {
        let shared = self
            .shared
            .as_ref()
            .filter(|shared| index < shared.room.slots);
        let slot = shared.and_then(|shared| Slot::take(shared, index));
        slot.unwrap_or(Slot::disabled())
    }

    /// Gives back the slots of a process that has ended, for the master that waited for it; `pid` is as the process itself has it. `None`:
    /// those of all processes that are seen to have ended. Counters stay. How many slots they were. A process that lives keeps its slots.
    pub fn release_ended(&self, pid: Option<u32>) -> usize {
        let Some(shared) = &self.shared else {
            return 0;
        };
        let ended = (0..shared.room.slots).filter_map(|index| {
            let head = shared.head(index);
            let seen = AtomicU64::load(&head[OWNER], Ordering::Acquire);
            let [owner, taken] = halves(seen);
            // The word of the master counts where there is no lock.
            let is_said = pid.is_some() && head[LIFE].get() == word_of(0, taken);
            let is_meant = owner != 0 && pid.is_none_or(|pid| pid == owner);
            let is_free = is_meant && (is_said || shared.has_ended(index, seen));
            is_free.then(|| Slot::take_from(shared, index, seen))?
        });
        ended.map(drop).count()
    }

    /// A counter that was not known when the file was made. `None` if there is no room ([`Schema::spare`]), in a process that did not make
    /// it, or if the publisher is disabled.
    pub fn add_counter(&self, description: Description) -> Option<Counter> {
        let cell = self.add(description, MetricKind::Counter)?;
        Some(Counter { cell })
    }

    /// As [`Publisher::add_counter`].
    pub fn add_gauge(&self, description: Description, kind: GaugeType) -> Option<Gauge> {
        let cell = self.add(description, MetricKind::Gauge(kind))?;
        Some(Gauge { cell, kind })
    }

    /// As [`Publisher::add_counter`].
    pub fn add_histogram(&self, description: Description, buckets: Buckets) -> Option<Histogram> {
        let cell = self.add(description, MetricKind::Histogram(buckets))?;
        Some(Histogram { cell, buckets })
    }

    fn add(&self, description: Description, kind: MetricKind) -> Option<usize> {
        let shared = self
            .shared
            .as_ref()
            .filter(|shared| shared.forks == forks::count())?;
        let mut cells_used = shared
            .cells_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (first_cell, mut record) = (*cells_used, Vec::new());
        let metric = Metric {
            description,
            kind,
            first_cell,
        };
        metric
            .append(&mut record)
            .filter(|()| first_cell + kind.cells() <= shared.room.cells)?;
        let used = usize::try_from(shared.live()[LIVE_METRICS].get()).ok()?;
        if used + record.len() > shared.layout.metrics_room {
            return None;
        }
        let words = &shared.mapping.words()[(shared.layout.metrics + used) / 8..];
        for (word, bytes) in words.iter().zip(record.as_chunks::<8>().0) {
            word.put(u64::from_le_bytes(*bytes));
        }
        shared.live()[LIVE_METRICS].publish((used + record.len()) as u64);
        *cells_used += kind.cells();
        Some(first_cell)
    }
}

/// Raises the number of slots in use.
fn use_slot(shared: &Shared, index: usize) {
    shared.live()[LIVE_SLOTS].fetch_max(index as u64 + 1, Ordering::Release);
}

/// The name of a file that is not yet complete.
fn hidden(name: &str) -> OsString {
    OsString::from(format!("{name}.new"))
}
