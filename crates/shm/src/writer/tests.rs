//! Limits of a schema, room for metrics that are added later, and the order in which slots are given out.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use kymo_base::limits::{
    SHM_CELLS_MAX, SHM_METRIC_TEXT_MAX, SHM_METRICS_MAX, SHM_SLOT_LABELS_MAX, SHM_SLOTS_MAX,
    SHM_TEXT_MAX,
};

use super::{Publisher, Schema, Shared};
use crate::head::{halves, word_of};
use crate::layout::{GENERATION, LIFE, LIVE_METRICS, LIVE_SLOTS, OWNER, START, STATE};
use crate::life::Life;
use crate::metric::{Description, GaugeType, Metric, MetricKind};
use crate::version::Word;
use crate::writer::origin::{own_pid, start_of};

/// A number above the kernel's largest: no process has it.
const DEAD: u32 = 0x7fff_fff0;

/// A publisher in a folder that goes when the test ends.
struct Published {
    publisher: Publisher,
    folder: PathBuf,
}

impl Published {
    fn new(name: &str, schema: Schema) -> Published {
        let process = std::process::id();
        let folder = PathBuf::from(format!("/dev/shm/kymo-writer-{process}-{name}"));
        std::fs::create_dir(&folder).expect("a folder");
        let publisher = Publisher::create(&schema.folder(&folder)).expect("a publisher");
        Published { publisher, folder }
    }

    fn shared(&self) -> &Shared {
        self.publisher.shared.as_ref().expect("a file")
    }

    /// The process of each slot, and how often the slot was taken.
    fn owners(&self) -> Vec<[u32; 2]> {
        let slots = 0..self.shared().room.slots;
        slots
            .map(|slot| halves(self.shared().head(slot)[OWNER].get()))
            .collect()
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

/// Free slots come first, one that was given back among them, then those of dead processes; a slot of a living one is never taken.
#[test]
fn a_dead_processs_slot_is_taken_when_none_is_free() {
    let published = Published::new("dead", Schema::new("dead", 4));
    let publisher = &published.publisher;
    for (slot, owner) in [(0, word_of(DEAD, 5)), (1, word_of(1, 7))] {
        published.shared().head(slot)[OWNER].put(owner);
    }
    drop(publisher.take_at(2));
    let (me, init) = (own_pid(), [1, 7]);
    let mut held = Vec::new();
    for expect in [
        [[DEAD, 5], init, [me, 2], [0, 0]],
        [[DEAD, 5], init, [me, 2], [me, 1]],
        [[me, 6], init, [me, 2], [me, 1]],
    ] {
        held.push(publisher.take());
        assert!(held.iter().all(super::Slot::is_enabled), "{expect:?}");
        assert_eq!(published.owners(), expect);
    }
    assert!(!publisher.take().is_enabled(), "all have living owners");
    drop(held);
    assert_eq!(published.owners(), [[0, 6], init, [0, 2], [0, 1]]);
}

/// Owner of a slot, and the state of that process by the file.
struct Held {
    what: &'static str,
    pid: u32,
    start: u64,
    /// The byte, and of which owner the word is: the slot is taken for the 5th time.
    life: (u32, u32),
    ended: bool,
    /// Owner and state after the master has said that it waited for the process.
    ended_after_wait: bool,
}

/// A pid was all that counted: a slot whose owner's pid was used again was lost, and one of an owner in another namespace was taken.
#[test]
fn a_lock_says_whether_an_owner_lives_and_without_one_pid_and_start() {
    const LOCKED: u32 = 900;
    const FREE: u32 = 901;
    let init = start_of(1);
    assert_ne!(init, 0, "the start of the first process");
    let case = |what, pid, start, life, ended, ended_after_wait| Held {
        what,
        pid,
        start,
        life,
        ended,
        ended_after_wait,
    };
    let cases = [
        case("locked, no such pid", DEAD, 7, (LOCKED, 5), false, false),
        case(
            "locked, another start",
            1,
            init + 1,
            (LOCKED, 5),
            false,
            false,
        ),
        case("not locked, its pid lives", 1, init, (FREE, 5), true, true),
        case("not locked, no such pid", DEAD, 7, (FREE, 5), true, true),
        case("no lock, no such pid", DEAD, 7, (0, 5), true, true),
        case("no lock, its pid lives", 1, init, (0, 5), false, true),
        case("no lock, start unknown", 1, 0, (0, 5), false, true),
        case("no lock, a pid used again", 1, init + 1, (0, 5), true, true),
        case("just taking, no such pid", DEAD, 7, (LOCKED, 4), true, true),
        case(
            "just taking, it lives",
            1,
            init + 1,
            (FREE, 4),
            false,
            false,
        ),
    ];
    let mut schema = Schema::new("life", 1);
    let gauge = schema.gauge(Description::new("open", ""), GaugeType::Unsigned);
    let counter = schema.counter(Description::new("total", ""));
    let published = Published::new("life", schema);
    let (publisher, shared) = (&published.publisher, published.shared());
    let locked: OwnedFd = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&shared.path)
        .expect("its file")
        .into();
    let _life = Life::begin(locked, LOCKED).expect("a lock");
    let head = shared.head(0);
    let cells = &shared.mapping.words()[shared.layout.cells / 8..];
    let hold = |held: &Held| {
        head[GENERATION].put(3);
        head[STATE].put(3 << 8 | 2);
        head[START].put(held.start);
        head[LIFE].put(word_of(held.life.0, held.life.1));
        head[OWNER].put(word_of(held.pid, 5));
        cells[gauge.cell].put(17);
        cells[counter.cell].put(18);
    };
    for held in &cases {
        hold(held);
        let taken = publisher.take_at(0);
        assert_eq!(taken.is_enabled(), held.ended, "{}", held.what);
        let left = if held.ended { 0 } else { 17 };
        assert_eq!(cells[gauge.cell].get(), left, "{}", held.what);
        assert_eq!(cells[counter.cell].get(), 18, "{}", held.what);
        if held.ended {
            assert_eq!(halves(head[OWNER].get()), [own_pid(), 6], "{}", held.what);
            assert_eq!(
                halves(head[LIFE].get()),
                [shared.life(), 6],
                "{}",
                held.what
            );
            assert_ne!(shared.life(), 0);
        }
        drop(taken);
        for (pid, expect) in [
            (None, held.ended),
            (Some(held.pid), held.ended_after_wait),
            (Some(held.pid + 1), false),
        ] {
            hold(held);
            assert_eq!(
                publisher.release_ended(pid),
                usize::from(expect),
                "{}",
                held.what
            );
            let owner = if expect { [0, 6] } else { [held.pid, 5] };
            assert_eq!(halves(head[OWNER].get()), owner, "{}", held.what);
            assert_eq!(head[STATE].get() & 0xff, if expect { 5 } else { 2 });
        }
    }
    head[OWNER].put(word_of(0, 5));
    assert_eq!(publisher.release_ended(None), 0, "nobody has it");
}

#[test]
fn a_slot_is_taken_by_its_number() {
    let published = Published::new("number", Schema::new("number", 4));
    let publisher = &published.publisher;
    published.shared().head(0)[OWNER].put(word_of(DEAD, 5));
    published.shared().head(1)[OWNER].put(word_of(1, 7));
    let used = || published.shared().live()[LIVE_SLOTS].get();
    assert_eq!(used(), 0);
    for (slot, is_taken, expect) in [
        (1, false, 0),
        (2, true, 3),
        (0, true, 3),
        (4, false, 3),
        (3, true, 4),
    ] {
        assert_eq!(publisher.take_at(slot).is_enabled(), is_taken, "{slot}");
        assert_eq!(used(), expect, "{slot}");
    }
}

#[test]
fn a_schema_has_limits() {
    let name = |bytes: usize| Schema::new(&"n".repeat(bytes), 1);
    let labels = |bytes: usize, count: usize| {
        let label = "l".repeat(bytes);
        name(1).slot_labels(&vec![label.as_str(); count])
    };
    let counted = || {
        let mut schema = name(1);
        schema.counter(Description::new("c", ""));
        schema
    };
    for (schema, expect) in [
        (name(0), false),
        (name(63), true),
        (name(64), false),
        (Schema::new("a\0b", 1), false),
        (labels(31, 1), true),
        (labels(32, 1), false),
        (labels(1, SHM_SLOT_LABELS_MAX), true),
        (labels(1, SHM_SLOT_LABELS_MAX + 1), false),
        (Schema::new("n", 0), false),
        (Schema::new("n", SHM_SLOTS_MAX), true),
        (Schema::new("n", SHM_SLOTS_MAX + 1), false),
        (name(1).text_bytes(0), false),
        (name(1).text_bytes(1), true),
        (name(1).text_bytes(SHM_TEXT_MAX), true),
        (name(1).text_bytes(SHM_TEXT_MAX + 1), false),
        (name(1).spare(SHM_CELLS_MAX, 0), true),
        (name(1).spare(SHM_CELLS_MAX + 1, 0), false),
        (counted().spare(SHM_CELLS_MAX - 1, 0), true),
        (counted().spare(SHM_CELLS_MAX, 0), false),
        (name(1).spare(0, SHM_METRICS_MAX), true),
        (name(1).spare(0, SHM_METRICS_MAX + 1), false),
        (counted().spare(0, SHM_METRICS_MAX), false),
    ] {
        assert_eq!(schema.checked().is_ok(), expect, "{schema:?}");
    }
    let (table, room) = counted().spare(5, 16).checked().expect("within the limits");
    assert_eq!((room.cells, room.described), (6, table.len() + 16));
}

/// One cell was spare, and one is in use. Neither a further counter nor a gauge is added, and a refused metric uses no cell.
#[test]
fn metrics_are_added_while_there_are_cells() {
    let mut schema = Schema::new("cells", 1).spare(2, 1024);
    schema.counter(Description::new("first", ""));
    let published = Published::new("cells", schema);
    let publisher = &published.publisher;
    let of = |name: &str| Description::new(name, "");
    assert_eq!(publisher.add_counter(of("a")).expect("a cell").cell, 1);
    let gauge = publisher.add_gauge(of("b"), GaugeType::Double);
    assert_eq!(gauge.expect("a cell").cell, 2);
    let used = || published.shared().live()[LIVE_METRICS].get();
    let before = used();
    assert!(publisher.add_counter(of("c")).is_none());
    assert!(publisher.add_gauge(of("d"), GaugeType::Double).is_none());
    assert_eq!(used(), before);
}

#[test]
fn metrics_are_added_while_there_is_room_for_descriptions() {
    let published = Published::new("room", Schema::new("room", 1).spare(1000, 2048));
    let (publisher, shared) = (&published.publisher, published.shared());
    let left = || shared.layout.metrics_room - shared.live()[LIVE_METRICS].get() as usize;
    let described = |help: usize| Description::new("m", &"h".repeat(help));
    let length = |help: usize| {
        let mut record = Vec::new();
        let metric = Metric {
            description: described(help),
            kind: MetricKind::Counter,
            first_cell: 0,
        };
        metric.append(&mut record).expect("a record");
        record.len()
    };
    while left() > length(SHM_METRIC_TEXT_MAX) + length(0) {
        let before = left();
        publisher.add_counter(described(500)).expect("room");
        assert_eq!(before - left(), length(500));
    }
    let half = (0..)
        .find(|&help| length(help) >= left() / 2)
        .expect("a length");
    publisher.add_counter(described(half)).expect("room");
    let exact = (0..)
        .find(|&help| length(help) == left())
        .expect("a length");
    assert!(publisher.add_counter(described(exact + 8)).is_none());
    assert!(publisher.add_counter(described(exact)).is_some());
    assert_eq!(left(), 0);
    assert!(publisher.add_counter(described(0)).is_none());
}
