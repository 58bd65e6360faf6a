//! SNMP engines, in the file `trap-engines` of the store's folder (docs/formats/kept.md): id and boots of the own
//! one, to which informs are sent, and the newest moment of each sender's, so that a trap of before is refused over restarts, too.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::Disk;
use kymo_sys::kept_file::{Contents, KeptFile, Kind, Old, Records, Sync};
use kymo_wire::snmp::usm::{BOOTS_MAX, EngineClock, UsmMessage};

use super::replays::{EngineMoment, Replays};
use crate::log::{Log, Severity};

/// The file's name.
pub(crate) const NAME: &str = "trap-engines";
pub(crate) const FILE: Kind = Kind {
    magic: *b"KYMOTRAP",
    version: 1,
    bytes_max: 16 << 20,
    // There is no older version.
    old: Old {
        magic: *b"KYMOTR0",
        newest: 0,
        has_generation: false,
    },
};
/// Engines of senders at most.
const ENGINES_MAX: usize = 1024;
/// Silence after which an engine makes room for another one.
const FORGOTTEN_NS: u64 = 30 * 86_400 * 1_000_000_000;
/// Remembered messages of a sender's engine.
const OF_SENDER: usize = 256;
/// Remembered messages to the own engine.
const OF_OWN: usize = 4096;
/// Bytes by which the file may have more than what counts.
const SLACK: usize = 256 << 10;
/// Length of an engine's id, bytes.
pub(super) const ID_BYTES: std::ops::RangeInclusive<usize> = 5..=32;
/// Begin of the own id (RFC 3411, SnmpEngineID): the enterprise number of documentation (RFC 5612), and octets to come.
const OWN_PREFIX: [u8; 5] = [0x80, 0x00, 0x7e, 0xd9, 0x05];
const SECOND_NS: u64 = 1_000_000_000;

/// Why a signed message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stale {
    /// Another time than its engine's.
    Late,
    /// A repetition.
    Again,
    /// Too many engines.
    NoRoom,
}

/// The engine to which informs are sent.
pub(super) struct OwnEngine {
    pub(super) id: Vec<u8>,
    pub(super) boots: u32,
    /// Start, by the clock that counts suspended time too.
    begun_ns: u64,
    replays: Replays,
}

impl OwnEngine {
    fn new(id: Vec<u8>, boots: u32) -> OwnEngine {
        OwnEngine {
            id,
            boots,
            begun_ns: RealClock.now().boot_ns,
            replays: Replays::default(),
        }
    }

    /// Seconds since the start.
    pub(super) fn time_s(&self, now_ns: u64) -> u32 {
        let passed_s = now_ns.saturating_sub(self.begun_ns) / SECOND_NS;
        u32::try_from(passed_s).unwrap_or(BOOTS_MAX)
    }

    /// True if a message did not come before.
    pub(super) fn is_new(&mut self, moment: EngineMoment, hash: u64) -> bool {
        self.replays.is_new(moment, hash, OF_OWN)
    }
}

/// The engine of a sender.
struct SenderEngine {
    clock: EngineClock,
    replays: Replays,
    heard_ns: u64,
    /// True if the file has an older moment.
    is_unsaved: bool,
}

/// The own engine, and those of senders.
pub(super) struct Engines {
    pub(super) own: OwnEngine,
    senders: HashMap<Box<[u8]>, SenderEngine>,
    /// The file; `None`: it cannot be written.
    kept: Option<KeptFile>,
    /// True if a moment is newer than the file's.
    is_unsaved: bool,
}

impl Engines {
    /// Reads the file, and counts the start of the own engine.
    pub(super) fn open(disk: Arc<dyn Disk>, folder: &Path, log: &Log) -> Engines {
        let path = folder.join(NAME);
        let mut engines = Engines {
            own: OwnEngine::new(new_id(), 1),
            senders: HashMap::new(),
            kept: None,
            is_unsaved: true,
        };
        match KeptFile::open(disk, path.clone(), FILE) {
            Ok((mut kept, contents)) => {
                engines.read(&mut kept, &contents);
                let notice = kept.notice(&contents);
                notice.iter().for_each(|line| log(Severity::Warning, line));
                // The file is written whole at a start.
                kept.give_up();
                engines.kept = Some(kept).filter(|kept| !kept.is_newer());
            }
            Err(error) => {
                let line = format!("cannot read {}: {error}", path.display());
                log(Severity::Warning, &line);
            }
        }
        engines.save(log);
        engines
    }

    fn read(&mut self, kept: &mut KeptFile, contents: &Contents) {
        let now_ns = RealClock.now().boot_ns;
        for body in contents.bodies() {
            match parse(body) {
                Some((Whose::Own, boots, _, id)) => {
                    let boots = boots.saturating_add(1).min(BOOTS_MAX);
                    self.own = OwnEngine::new(id.to_vec(), boots);
                }
                Some((Whose::Sender, boots, time_s, id)) => {
                    let known = SenderEngine {
                        clock: EngineClock::proven(boots, time_s, now_ns),
                        replays: Replays::up_to((boots, time_s)),
                        heard_ns: now_ns,
                        is_unsaved: false,
                    };
                    if self.senders.len() < ENGINES_MAX || self.senders.contains_key(id) {
                        self.senders.insert(id.into(), known);
                    }
                }
                None => kept.distrust(contents),
            }
        }
    }

    /// Takes a message that its engine's user signed, if it is of now and new.
    pub(super) fn take(
        &mut self,
        message: &UsmMessage,
        hash: u64,
        now_ns: u64,
    ) -> Result<(), Stale> {
        let moment = (message.boots, message.time_s);
        if !self.senders.contains_key(message.engine) {
            self.make_room(now_ns)?;
        }
        let engine = self.senders.entry(message.engine.into());
        let engine = engine.or_insert_with(|| SenderEngine {
            clock: EngineClock::guessed(message, now_ns),
            replays: Replays::default(),
            heard_ns: now_ns,
            is_unsaved: false,
        });
        if !engine.clock.takes(message, now_ns) {
            return Err(Stale::Late);
        }
        if !engine.replays.is_new(moment, hash, OF_SENDER) {
            return Err(Stale::Again);
        }
        engine.heard_ns = now_ns;
        engine.is_unsaved = true;
        self.is_unsaved = true;
        Ok(())
    }

    fn make_room(&mut self, now_ns: u64) -> Result<(), Stale> {
        if self.senders.len() < ENGINES_MAX {
            return Ok(());
        }
        let oldest = self
            .senders
            .iter()
            .min_by_key(|(_, engine)| engine.heard_ns);
        let oldest =
            oldest.filter(|(_, engine)| now_ns.saturating_sub(engine.heard_ns) > FORGOTTEN_NS);
        let id = oldest.map(|(id, _)| id.clone()).ok_or(Stale::NoRoom)?;
        self.senders.remove(&id);
        // The file forgets it when it is written again.
        Ok(())
    }

    /// Writes engines whose moments the file lacks. A failure is logged, and the file is not written any more.
    pub(super) fn save(&mut self, log: &Log) {
        if !std::mem::take(&mut self.is_unsaved) {
            return;
        }
        let Some(kept) = &mut self.kept else {
            return;
        };
        let (own, senders) = (&self.own, &mut self.senders);
        let is_due = kept
            .size()
            .is_none_or(|(end, begun)| end > begun.saturating_add(SLACK));
        let written = if is_due {
            let mut fill = |records: &mut Records| {
                put(records, Whose::Own, (own.boots, 0), &own.id);
                for (id, engine) in senders.iter() {
                    put(records, Whose::Sender, engine.moment(), id);
                }
            };
            // Boots never repeat, not even after a loss of power: salts depend on that.
            kept.replace(kept.generation() + 1, &mut fill, Sync::Now)
        } else {
            let mut records = kept.records();
            for (id, engine) in senders.iter().filter(|(_, engine)| engine.is_unsaved) {
                put(&mut records, Whose::Sender, engine.moment(), id);
            }
            kept.append(&records, Sync::Later)
        };
        senders
            .values_mut()
            .for_each(|engine| engine.is_unsaved = false);
        if let Err(error) = written {
            self.kept = None;
            let line = format!("cannot keep engines of SNMPv3: {error}");
            log(Severity::Warning, &line);
        }
    }
}

impl SenderEngine {
    fn moment(&self) -> EngineMoment {
        (self.clock.boots, self.clock.time_s)
    }
}

/// A new id of the own engine.
fn new_id() -> Vec<u8> {
    // Keys of a hash are random.
    let random = RandomState::new().hash_one(RealClock.now().real_ns);
    [&OWN_PREFIX[..], &random.to_be_bytes()].concat()
}

/// The owner of a record's engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Own,
    Sender,
}

fn put(records: &mut Records, whose: Whose, (boots, time_s): EngineMoment, id: &[u8]) {
    records.put(|body| {
        body.push(match whose {
            Whose::Own => 0,
            Whose::Sender => 1,
        });
        body.extend(boots.to_le_bytes());
        body.extend(time_s.to_le_bytes());
        body.extend_from_slice(id);
    });
}

/// True if a record can be read.
pub(crate) fn is_record(_version: u32, body: &[u8]) -> bool {
    parse(body).is_some()
}

fn parse(body: &[u8]) -> Option<(Whose, u32, u32, &[u8])> {
    let (&whose, rest) = body.split_first()?;
    let whose = match whose {
        0 => Whose::Own,
        1 => Whose::Sender,
        _ => return None,
    };
    let (boots, rest) = rest.split_first_chunk()?;
    let (time_s, id) = rest.split_first_chunk()?;
    let (boots, time_s) = (u32::from_le_bytes(*boots), u32::from_le_bytes(*time_s));
    let is_right = boots <= BOOTS_MAX && time_s <= BOOTS_MAX && ID_BYTES.contains(&id.len());
    is_right.then_some((whose, boots, time_s, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::sim_disk::SimDisk;

    /// `tests/fixtures/trap-engines-1` stays readable.
    #[test]
    fn a_file_of_version_1_is_read_and_counts_the_next_start() {
        let disk = Arc::new(SimDisk::new(1));
        let folder = Path::new("/store");
        disk.create_dir_all(folder).unwrap();
        let fixture = include_bytes!("../../../../tests/fixtures/trap-engines-1");
        disk.set_bytes(&folder.join(NAME), fixture.to_vec());
        let log: Log = Arc::new(|_, line| unreachable!("{line}"));
        for boots in [4, 5] {
            let engines = Engines::open(disk.clone(), folder, &log);
            let own = [&OWN_PREFIX[..], &[1, 2, 3, 4, 5, 6, 7, 8]].concat();
            assert_eq!((&engines.own.id, engines.own.boots), (&own, boots));
            let known = &engines.senders[&b"\x80\0\0\x09\x05one"[..]];
            assert_eq!(known.moment(), (7, 1000));
        }
    }

    #[test]
    fn a_damaged_file_costs_what_it_had_and_is_said() {
        let disk = Arc::new(SimDisk::new(1));
        let folder = Path::new("/store");
        disk.create_dir_all(folder).unwrap();
        let mut bytes = include_bytes!("../../../../tests/fixtures/trap-engines-1").to_vec();
        bytes[1045] ^= 1;
        disk.set_bytes(&folder.join(NAME), bytes);
        let said = Arc::new(std::sync::Mutex::new(Vec::new()));
        let lines = said.clone();
        let log: Log = Arc::new(move |_, line| lines.lock().unwrap().push(line.to_string()));
        let engines = Engines::open(disk.clone(), folder, &log);
        assert_eq!((engines.own.boots, engines.senders.len()), (1, 1));
        let said = said.lock().unwrap().join("");
        assert!(said.contains("trap-engines.bad"), "{said}");
    }
}
