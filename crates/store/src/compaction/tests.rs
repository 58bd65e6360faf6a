//! Compares segments with the same series as whole files in memory: after any saves, merges, crashes and restarts, reading a
//! series gives the bytes of its file. The tests implement [`Liveness`] for several schemas.

mod bit_flips;
mod bytes_per_value;
mod faults;
mod format_document;
mod size_bound;

use crate::compaction::dead::Liveness;
use crate::consolidation::apply::Applier;
use crate::consolidation::row_sink::NewRows;
use crate::consolidation::rows::Column;
use crate::consolidation::samples;
use crate::consolidation::schema::Schema;
use crate::layout::{CHUNK, STRIPE};
use crate::memtable::buffer::Pending;
use crate::read::view::View;
use crate::segment::builder::Builder;
use crate::segment::points;
use crate::segment::set::{SegmentSet, states};
use kymo_base::random::next_random;
use kymo_rrd::update::{Now, Scratch, Update, update_all};
use kymo_rrd::{Rows, Rrd};
use kymo_sys::clock::Stamp;
use kymo_sys::disk::Disk;
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::SimDisk;
use std::io;
use std::path::Path;
use std::sync::Arc;

const NOW: Now = Now { sec: 0, usec: 0 };

/// One series: its place, its expected file, and its values that are in no block.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) chunk: u32,
    pub(crate) slot: u8,
    pub(crate) file: Rrd,
    born: Rrd,
    blank: Vec<u64>,
    pub(crate) pending: Vec<Vec<u8>>,
    /// All values and their positions, as in a journal.
    values: Vec<(u64, Vec<u8>)>,
    stamp: i64,
}

pub(crate) struct World {
    pub(crate) disk: SimDisk,
    clock: Arc<SimClock>,
    pub(crate) segments: SegmentSet,
    pub(crate) schemas: Vec<Arc<Schema>>,
    pub(crate) members: Vec<Member>,
    pub(crate) position: u64,
    random: u64,
    /// Position of the newest block of each chunk at the last sync.
    pub(crate) synced: Vec<u64>,
    pub(crate) notices: Vec<String>,
}

impl Liveness for World {
    fn schema(&self, chunk: u32) -> Option<Arc<Schema>> {
        self.schemas.get(chunk as usize).cloned()
    }

    fn settle(&self, _emptied: &[u32]) -> io::Result<()> {
        Ok(())
    }

    fn is_alive(&self, _chunk: u32, _slot: u8) -> bool {
        true
    }

    fn stamps(&self, chunk: u32) -> Vec<Option<i64>> {
        let mut stamps = vec![None; CHUNK];
        for member in self.members.iter().filter(|member| member.chunk == chunk) {
            let stamp = self.schemas[chunk as usize].stamp(&self.state(member));
            stamps[usize::from(member.slot)] = Some(stamp);
        }
        stamps
    }
}

fn open(disk: &SimDisk, clock: &SimClock) -> io::Result<(SegmentSet, Vec<String>)> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let Ok((mut segments, found)) = SegmentSet::open(disk, Path::new("/segments"), clock)? else {
        panic!("another version");
    };
    segments.segment_bytes = 10_000;
    Ok((segments, found.notices))
}

impl World {
    pub(crate) fn new(seed: u64, slots: &[u8]) -> World {
        World::begin(&SimDisk::new(seed), seed, slots).unwrap()
    }

    pub(crate) fn begin(disk: &SimDisk, seed: u64, slots: &[u8]) -> io::Result<World> {
        World::of(disk, seed, slots, samples::DEFINITIONS)
    }

    /// Creates a chunk for each of these definitions, with series in these slots.
    pub(crate) fn of(
        disk: &SimDisk,
        seed: u64,
        slots: &[u8],
        definitions: &[&[&str]],
    ) -> io::Result<World> {
        disk.create_dir_all(Path::new("/segments"))?;
        disk.sync_dir(Path::new("/"))?;
        let clock = Arc::new(SimClock::new(Stamp {
            real_ns: 1_000_000_000_000_000_000 + seed as i64,
            mono_ns: 5,
            boot_ns: 5,
        }));
        let (mut schemas, mut members) = (Vec::new(), Vec::new());
        for (chunk, definitions) in definitions.iter().enumerate() {
            let schema = Schema::of(&samples::rrd(definitions, 1).header).unwrap();
            for &slot in slots {
                let file = samples::rrd(definitions, seed + u64::from(slot));
                let mut blank = Vec::new();
                schema.pack(&samples::series(&schema, &file), &mut blank);
                members.push(Member {
                    chunk: chunk as u32,
                    slot,
                    born: file.clone(),
                    file,
                    blank,
                    pending: Vec::new(),
                    values: Vec::new(),
                    stamp: 1_000_000_000,
                });
            }
            schemas.push(Arc::new(schema));
        }
        let (segments, notices) = open(disk, &clock)?;
        Ok(World {
            segments,
            disk: disk.clone(),
            clock,
            synced: vec![0; schemas.len()],
            schemas,
            members,
            position: 0,
            random: seed,
            notices,
        })
    }

    /// Opens the same series on another disk.
    pub(crate) fn on(&self, disk: &SimDisk) -> io::Result<World> {
        let (segments, notices) = open(disk, &self.clock)?;
        let mut world = World {
            segments,
            disk: disk.clone(),
            clock: self.clock.clone(),
            schemas: self.schemas.clone(),
            members: self.members.clone(),
            position: self.position,
            random: self.random,
            synced: self.synced.clone(),
            notices,
        };
        world.replay();
        Ok(world)
    }

    /// Reopens the segments, as after the end of the process.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        let (segments, notices) = open(&self.disk, &self.clock)?;
        (self.segments, self.notices) = (segments, notices);
        self.replay();
        Ok(())
    }

    /// Makes the values that no block has pending again.
    fn replay(&mut self) {
        for at in 0..self.members.len() {
            let position = self.newest(self.members[at].chunk);
            let member = &mut self.members[at];
            let later = member.values.iter().filter(|(at, _)| *at >= position);
            member.pending = later.map(|(_, text)| text.clone()).collect();
        }
    }

    /// Position of a chunk's newest block.
    pub(crate) fn newest(&self, chunk: u32) -> u64 {
        let blocks = self.segments.blocks(chunk);
        blocks.last().map_or(0, |placed| placed.position)
    }

    /// Checks the state after a crash: no synced data is missing, and each series has the result of its values up to its chunk's
    /// position, with and without the later values.
    pub(crate) fn judge(&mut self, story: &str) {
        let damage = |notice: &&String| !notice.contains("(the power failed when it was begun?)");
        assert_eq!(self.notices.iter().find(damage), None, "{story}");
        let known = 0..self.schemas.len() as u32;
        assert!(
            self.segments
                .chunks()
                .iter()
                .all(|chunk| known.contains(chunk))
        );
        for (chunk, synced) in self.synced.iter().enumerate() {
            let newest = self.newest(chunk as u32);
            assert!(
                newest >= *synced,
                "{story}: chunk {chunk}: {newest} < {synced}"
            );
        }
        self.check(story);
        let all = self.members.clone();
        for at in 0..self.members.len() {
            let position = self.newest(self.members[at].chunk);
            let member = &mut self.members[at];
            member.file = member.at(position);
            member.pending.clear();
        }
        self.check(&format!("{story}, nothing replayed"));
        self.members = all;
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.segments.sync()?;
        self.synced = (0..self.schemas.len() as u32)
            .map(|chunk| self.newest(chunk))
            .collect();
        Ok(())
    }

    pub(crate) fn merge(&mut self) -> io::Result<bool> {
        Ok(self.segments.merge(self)?.is_some())
    }

    pub(crate) fn random(&mut self, below: u64) -> u64 {
        next_random(&mut self.random) % below
    }

    /// Adds a value to one of the series, sometimes after a long time.
    pub(crate) fn value(&mut self, at: usize) {
        let gap = match self.random(40) {
            0 => 31_536_000,
            1 => 3000,
            2..6 => 1 + self.random(120),
            _ => 10,
        };
        let number = self.random(50);
        self.put(at, gap, number);
    }

    /// Adds a value to one of the series, `gap` seconds after its last one.
    pub(crate) fn put(&mut self, at: usize, gap: u64, number: u64) {
        let usec = self.random(3) * 333_333;
        let member = &mut self.members[at];
        member.stamp += gap as i64;
        let stamp = member.stamp;
        let sources = member.file.header.ds.len();
        let field = match number {
            0 => ":U".to_string(),
            1 => ":bad".to_string(),
            2..10 => format!(":{number}.5"),
            _ => format!(":{}", stamp as u64 % 1000 + number),
        };
        let text = format!("{stamp}.{usec:06}{}", field.repeat(sources));
        apply(&mut member.file, text.as_bytes());
        let text = text.into_bytes();
        member.values.push((self.position, text.clone()));
        member.pending.push(text);
        self.position += 1;
    }

    pub(crate) fn state(&self, member: &Member) -> Vec<u64> {
        let schema = &self.schemas[member.chunk as usize];
        let blocks = self.segments.blocks(member.chunk);
        let found = states(&blocks, schema, member.slot / STRIPE as u8).unwrap();
        let mine = found
            .into_iter()
            .find(|(at, _)| *at == member.slot % STRIPE as u8);
        mine.map_or_else(|| member.blank.clone(), |(_, words)| words)
    }

    /// Saves a chunk; after an error its values are still pending.
    pub(crate) fn save(&mut self, chunk: u32) -> io::Result<()> {
        let schema = self.schemas[chunk as usize].clone();
        let mut builder = Builder::new(schema.archives.len()).unwrap();
        builder.begin(chunk, self.position, schema.archives.len());
        let mine = |member: &&Member| member.chunk == chunk;
        let mut members = self.members.iter().filter(mine);
        if members.all(|member| member.pending.is_empty()) {
            return Ok(());
        }
        let names = format!("names of {chunk}");
        builder.names(names.as_bytes()).unwrap();
        for stripe in 0..(CHUNK / STRIPE) as u8 {
            self.save_stripe(&mut builder, &schema, (chunk, stripe));
        }
        self.segments.append(&mut builder)?;
        for member in self
            .members
            .iter_mut()
            .filter(|member| member.chunk == chunk)
        {
            member.pending.clear();
        }
        Ok(())
    }

    fn save_stripe(&self, builder: &mut Builder, schema: &Schema, (chunk, stripe): (u32, u8)) {
        let mine = |member: &&Member| (member.chunk, member.slot / STRIPE as u8) == (chunk, stripe);
        let members: Vec<&Member> = self.members.iter().filter(mine).collect();
        if members.iter().all(|member| member.pending.is_empty()) {
            return;
        }
        builder.part(stripe);
        let mut columns: Vec<Column> = schema.archives.iter().map(|_| Column::default()).collect();
        let (mut new, mut points) = (Vec::new(), Vec::new());
        let mut entries = points::PointsWriter::default();
        let mut applier = Applier::default();
        for member in members {
            let slot = member.slot % STRIPE as u8;
            let values: Vec<&[u8]> = member.pending.iter().map(|text| &text[..]).collect();
            let state = self.state(member);
            applier.apply(schema, &state, b"", &values, NOW).unwrap();
            let last_up = applier.header().unwrap().last_up;
            builder.stamp = builder.stamp.max(last_up as u64);
            for (archive, column) in columns.iter_mut().enumerate() {
                let rows = &applier.captured.archives[archive];
                column.push(slot, schema.newest(archive, last_up), rows);
            }
            let mut words = Vec::new();
            applier.pack(schema, &mut words);
            new.push((slot, words));
            let mut pending = Pending::default();
            values.iter().for_each(|text| pending.push(text));
            entries.put(&mut points, slot, &pending);
        }
        builder.state(&new).unwrap();
        builder.points(&points).unwrap();
        for (archive, column) in columns.iter().enumerate() {
            builder.rows(archive, column, column.newest).unwrap();
        }
    }

    /// The series as the bytes of a file.
    fn image(&self, member: &Member) -> Vec<u8> {
        let (rrd, damaged) = self.view(member);
        assert_eq!(damaged, 0);
        rrd.to_bytes()
    }

    /// The series as a reader sees it, and the number of unreadable frames.
    pub(crate) fn view(&self, member: &Member) -> (Rrd, u64) {
        let schema = self.schemas[member.chunk as usize].clone();
        let mut applier = Applier::default();
        let values: Vec<&[u8]> = member.pending.iter().map(|text| &text[..]).collect();
        applier
            .apply(&schema, &self.state(member), b"", &values, NOW)
            .unwrap();
        let fresh: Vec<NewRows> = applier.captured.archives.clone();
        let mut view = View {
            state: applier.take_series().unwrap(),
            blocks: self.segments.blocks(member.chunk),
            slot: member.slot,
            fresh,
            base: None,
            damaged: 0,
            schema,
        };
        let header = view.state.header.clone();
        let mut cells = vec![0.0; header.cell_count() as usize];
        view.read(0, &mut cells).unwrap();
        (Rrd { header, cells }, view.damaged)
    }

    pub(crate) fn check(&self, story: &str) {
        for member in &self.members {
            let (chunk, slot) = (member.chunk, member.slot);
            if self.image(member) != member.file.to_bytes() {
                let mine = Rrd::parse(&self.image(member)).unwrap();
                assert_eq!(
                    mine.header, member.file.header,
                    "{story}: chunk {chunk} slot {slot}"
                );
                let wrong: Vec<_> = (0..mine.cells.len())
                    .filter(|&at| mine.cells[at].to_bits() != member.file.cells[at].to_bits())
                    .map(|at| (at, mine.cells[at], member.file.cells[at]))
                    .collect();
                panic!("{story}: chunk {chunk} slot {slot}: {wrong:?}");
            }
        }
    }
}

impl Member {
    /// Positions of its values.
    pub(crate) fn positions(&self) -> Vec<u64> {
        self.values.iter().map(|(at, _)| *at).collect()
    }

    /// The file before the value at this position.
    pub(crate) fn at(&self, position: u64) -> Rrd {
        let mut file = self.born.clone();
        for (_, text) in self.values.iter().filter(|(at, _)| *at < position) {
            apply(&mut file, text);
        }
        file
    }
}

/// Applies a value to a whole file.
fn apply(file: &mut Rrd, text: &[u8]) {
    let how = Update {
        file_name: b"",
        template: None,
        skip_past: true,
        now: NOW,
        at_time: &|_| Ok(None),
    };
    update_all(
        &mut Scratch::default(),
        &mut file.header,
        &mut file.cells,
        &how,
        &[text],
        &mut Vec::new(),
    )
    .unwrap();
}

#[test]
fn a_view_is_the_file_whatever_is_saved_merged_and_opened_again() {
    let (mut merges, mut most) = (0, 0);
    for seed in 1..6 {
        let mut world = World::new(seed, &[0, 1, 15, 16, 77, 255]);
        for step in 0..1500 {
            // One series of each chunk is nearly idle.
            let at = world.random(world.members.len() as u64) as usize;
            // One idle series is alone in its stripe.
            let idle = [15, 77].contains(&world.members[at].slot);
            if !idle || world.random(30) == 0 {
                world.value(at);
            }
            if world.random(20) == 0 {
                let chunk = world.random(3) as u32;
                world.save(chunk).unwrap();
            }
            if world.random(60) == 0 {
                world.sync().unwrap();
                merges += u64::from(world.merge().unwrap());
            }
            if world.random(100) == 0 {
                world.sync().unwrap();
                world.reopen().unwrap();
                assert_eq!(world.notices, Vec::<String>::new());
            }
            if step % 50 == 0 {
                world.check(&format!("seed {seed} step {step}"));
            }
            most = most.max(world.segments.totals().segments);
        }
        world.check(&format!("seed {seed} at the end"));
        world.sync().unwrap();
        let mut more = 0;
        while world.merge().unwrap() {
            more += 1;
            assert!(more < 10, "seed {seed}: what was merged is merged again");
        }
        world.check(&format!("seed {seed} after the last merge"));
    }
    assert!(merges > 20 && most > 3, "{merges} merges, {most} segments");
}
