//! Groups of several shapes on a drum beside the same groups as whole files in memory: whatever is saved, merged, lost
//! or opened again, a view has the file's bytes.

use super::apply::Applier;
use super::block::{Builder, CHUNK, SIXTEEN};
use super::captured::NewRows;
use super::column::Column;
use super::merge::Groups;
use super::points;
use super::samples;
use super::shape::Shape;
use super::view::View;
use super::{Drum, states};
use crate::pending::Pending;
use kymo_rrd::update::{Now, Scratch, Update, update_all};
use kymo_rrd::{Rows, Rrd};
use kymo_sys::clock::Stamp;
use kymo_sys::disk::Disk;
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::{SimDisk, next_random};
use std::io;
use std::path::Path;
use std::sync::Arc;

const NOW: Now = Now { sec: 0, usec: 0 };

/// One group: where it is, the file it should be, and its values that are in no block.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) chunk: u32,
    pub(super) slot: u8,
    pub(super) file: Rrd,
    born: Rrd,
    blank: Vec<u64>,
    pub(super) pending: Vec<Vec<u8>>,
    /// All values and their positions, as a journal has them.
    values: Vec<(u64, Vec<u8>)>,
    stamp: i64,
}

pub(super) struct World {
    pub(super) disk: SimDisk,
    clock: Arc<SimClock>,
    pub(super) drum: Drum,
    pub(super) shapes: Vec<Arc<Shape>>,
    pub(super) members: Vec<Member>,
    pub(super) position: u64,
    random: u64,
    /// The position of each chunk's newest block when all was last synced.
    pub(super) synced: Vec<u64>,
    pub(super) notices: Vec<String>,
}

impl Groups for World {
    fn shape(&self, chunk: u32) -> Option<Arc<Shape>> {
        self.shapes.get(chunk as usize).cloned()
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
            let stamp = self.shapes[chunk as usize].stamp(&self.state(member));
            stamps[usize::from(member.slot)] = Some(stamp);
        }
        stamps
    }
}

fn open(disk: &SimDisk, clock: &SimClock) -> io::Result<(Drum, Vec<String>)> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let Ok((mut drum, found)) = Drum::open(disk, Path::new("/drum"), clock)? else {
        panic!("another version");
    };
    drum.segment_bytes = 10_000;
    Ok((drum, found.notices))
}

impl World {
    pub(super) fn new(seed: u64, slots: &[u8]) -> World {
        World::begin(&SimDisk::new(seed), seed, slots).unwrap()
    }

    pub(super) fn begin(disk: &SimDisk, seed: u64, slots: &[u8]) -> io::Result<World> {
        World::of(disk, seed, slots, samples::DEFINITIONS)
    }

    /// A chunk of each of these definitions, with groups in these slots.
    pub(super) fn of(
        disk: &SimDisk,
        seed: u64,
        slots: &[u8],
        definitions: &[&[&str]],
    ) -> io::Result<World> {
        disk.create_dir_all(Path::new("/drum"))?;
        disk.sync_dir(Path::new("/"))?;
        let clock = Arc::new(SimClock::new(Stamp {
            real_ns: 1_000_000_000_000_000_000 + seed as i64,
            mono_ns: 5,
            boot_ns: 5,
        }));
        let (mut shapes, mut members) = (Vec::new(), Vec::new());
        for (chunk, definitions) in definitions.iter().enumerate() {
            let shape = Shape::of(&samples::rrd(definitions, 1).header).unwrap();
            for &slot in slots {
                let file = samples::rrd(definitions, seed + u64::from(slot));
                let mut blank = Vec::new();
                shape.pack(&samples::group(&shape, &file), &mut blank);
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
            shapes.push(Arc::new(shape));
        }
        let (drum, notices) = open(disk, &clock)?;
        Ok(World {
            drum,
            disk: disk.clone(),
            clock,
            synced: vec![0; shapes.len()],
            shapes,
            members,
            position: 0,
            random: seed,
            notices,
        })
    }

    /// The same groups on another disk.
    pub(super) fn on(&self, disk: &SimDisk) -> io::Result<World> {
        let (drum, notices) = open(disk, &self.clock)?;
        let mut world = World {
            drum,
            disk: disk.clone(),
            clock: self.clock.clone(),
            shapes: self.shapes.clone(),
            members: self.members.clone(),
            position: self.position,
            random: self.random,
            synced: self.synced.clone(),
            notices,
        };
        world.replay();
        Ok(world)
    }

    /// The drum as it is after the process has ended.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        let (drum, notices) = open(&self.disk, &self.clock)?;
        (self.drum, self.notices) = (drum, notices);
        self.replay();
        Ok(())
    }

    /// What blocks do not have is pending.
    fn replay(&mut self) {
        for at in 0..self.members.len() {
            let position = self.newest(self.members[at].chunk);
            let member = &mut self.members[at];
            let later = member.values.iter().filter(|(at, _)| *at >= position);
            member.pending = later.map(|(_, text)| text.clone()).collect();
        }
    }

    /// The position of a chunk's newest block.
    pub(super) fn newest(&self, chunk: u32) -> u64 {
        let blocks = self.drum.blocks(chunk);
        blocks.last().map_or(0, |placed| placed.position)
    }

    /// After a crash: nothing that was synced is missing, and all groups are what their values up to their chunks'
    /// positions make of them, with and without the values since.
    pub(super) fn judge(&mut self, story: &str) {
        let damage = |notice: &&String| !notice.contains("(the power failed when it was begun?)");
        assert_eq!(self.notices.iter().find(damage), None, "{story}");
        let known = 0..self.shapes.len() as u32;
        assert!(self.drum.chunks().iter().all(|chunk| known.contains(chunk)));
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

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.drum.sync()?;
        self.synced = (0..self.shapes.len() as u32)
            .map(|chunk| self.newest(chunk))
            .collect();
        Ok(())
    }

    pub(super) fn merge(&mut self) -> io::Result<bool> {
        Ok(self.drum.merge(self)?.is_some())
    }

    pub(super) fn random(&mut self, below: u64) -> u64 {
        next_random(&mut self.random) % below
    }

    /// A value for one of the groups, also after a long time.
    pub(super) fn value(&mut self, at: usize) {
        let gap = match self.random(40) {
            0 => 31_536_000,
            1 => 3000,
            2..6 => 1 + self.random(120),
            _ => 10,
        };
        let number = self.random(50);
        self.put(at, gap, number);
    }

    /// A value for one of the groups, so many seconds after its last.
    pub(super) fn put(&mut self, at: usize, gap: u64, number: u64) {
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

    pub(super) fn state(&self, member: &Member) -> Vec<u64> {
        let shape = &self.shapes[member.chunk as usize];
        let blocks = self.drum.blocks(member.chunk);
        let found = states(&blocks, shape, member.slot / SIXTEEN as u8).unwrap();
        let mine = found
            .into_iter()
            .find(|(at, _)| *at == member.slot % SIXTEEN as u8);
        mine.map_or_else(|| member.blank.clone(), |(_, words)| words)
    }

    /// Saves a chunk; after an error its values are still pending.
    pub(super) fn save(&mut self, chunk: u32) -> io::Result<()> {
        let shape = self.shapes[chunk as usize].clone();
        let mut builder = Builder::new(shape.archives.len()).unwrap();
        builder.begin(chunk, self.position, shape.archives.len());
        let mine = |member: &&Member| member.chunk == chunk;
        let mut members = self.members.iter().filter(mine);
        if members.all(|member| member.pending.is_empty()) {
            return Ok(());
        }
        let names = format!("names of {chunk}");
        builder.names(names.as_bytes()).unwrap();
        for sixteen in 0..(CHUNK / SIXTEEN) as u8 {
            self.save_sixteen(&mut builder, &shape, (chunk, sixteen));
        }
        self.drum.append(&mut builder)?;
        for member in self
            .members
            .iter_mut()
            .filter(|member| member.chunk == chunk)
        {
            member.pending.clear();
        }
        Ok(())
    }

    fn save_sixteen(&self, builder: &mut Builder, shape: &Shape, (chunk, sixteen): (u32, u8)) {
        let mine =
            |member: &&Member| (member.chunk, member.slot / SIXTEEN as u8) == (chunk, sixteen);
        let members: Vec<&Member> = self.members.iter().filter(mine).collect();
        if members.iter().all(|member| member.pending.is_empty()) {
            return;
        }
        builder.part(sixteen);
        let mut columns: Vec<Column> = shape.archives.iter().map(|_| Column::default()).collect();
        let (mut new, mut points) = (Vec::new(), Vec::new());
        let mut entries = points::Writer::default();
        let mut applier = Applier::default();
        for member in members {
            let slot = member.slot % SIXTEEN as u8;
            let values: Vec<&[u8]> = member.pending.iter().map(|text| &text[..]).collect();
            let state = self.state(member);
            applier.apply(shape, &state, b"", &values, NOW).unwrap();
            let last_up = applier.header().unwrap().last_up;
            builder.stamp = builder.stamp.max(last_up as u64);
            for (archive, column) in columns.iter_mut().enumerate() {
                let rows = &applier.captured.archives[archive];
                column.push(slot, shape.newest(archive, last_up), rows);
            }
            let mut words = Vec::new();
            applier.pack(shape, &mut words);
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

    /// The group as a file.
    fn image(&self, member: &Member) -> Vec<u8> {
        let (rrd, damaged) = self.view(member);
        assert_eq!(damaged, 0);
        rrd.to_bytes()
    }

    /// The group as it is read, and how many frames could not be.
    pub(super) fn view(&self, member: &Member) -> (Rrd, u64) {
        let shape = self.shapes[member.chunk as usize].clone();
        let mut applier = Applier::default();
        let values: Vec<&[u8]> = member.pending.iter().map(|text| &text[..]).collect();
        applier
            .apply(&shape, &self.state(member), b"", &values, NOW)
            .unwrap();
        let fresh: Vec<NewRows> = applier.captured.archives.clone();
        let mut view = View {
            group: applier.take_group().unwrap(),
            blocks: self.drum.blocks(member.chunk),
            slot: member.slot,
            fresh,
            base: None,
            damaged: 0,
            shape,
        };
        let header = view.group.header.clone();
        let mut cells = vec![0.0; header.cell_count() as usize];
        view.read(0, &mut cells).unwrap();
        (Rrd { header, cells }, view.damaged)
    }

    pub(super) fn check(&self, story: &str) {
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
    /// Where its values are.
    pub(super) fn positions(&self) -> Vec<u64> {
        self.values.iter().map(|(at, _)| *at).collect()
    }

    /// The file as it was before the value at this position.
    pub(super) fn at(&self, position: u64) -> Rrd {
        let mut file = self.born.clone();
        for (_, text) in self.values.iter().filter(|(at, _)| *at < position) {
            apply(&mut file, text);
        }
        file
    }
}

/// The same value for a whole file.
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
            // One group of each chunk is nearly idle.
            let at = world.random(world.members.len() as u64) as usize;
            // And one that has sixteen groups for itself.
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
            most = most.max(world.drum.totals().segments);
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
