//! Groups of several shapes on a drum beside the same groups as whole files in memory: whatever is saved, merged, lost
//! or opened again, a view has the file's bytes.

use super::apply::Applier;
use super::block::{Builder, CHUNK, SIXTEEN};
use super::captured::NewRows;
use super::column::Column;
use super::merge::{Groups, put_points};
use super::samples;
use super::shape::Shape;
use super::view::View;
use super::{Drum, states};
use kymo_rrd::update::{Now, Scratch, Update, update_all};
use kymo_rrd::{Rows, Rrd};
use kymo_sys::clock::Stamp;
use kymo_sys::disk::Disk;
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::{SimDisk, next_random};
use std::path::Path;
use std::sync::Arc;

const NOW: Now = Now { sec: 0, usec: 0 };

/// One group: where it is, the file it should be, and its values that are in no block.
struct Member {
    chunk: u32,
    slot: u8,
    file: Rrd,
    blank: Vec<u64>,
    pending: Vec<Vec<u8>>,
    stamp: i64,
}

struct World {
    disk: SimDisk,
    clock: SimClock,
    drum: Drum,
    shapes: Vec<Arc<Shape>>,
    members: Vec<Member>,
    position: u64,
    random: u64,
}

impl Groups for World {
    fn shape(&self, chunk: u32) -> Option<Arc<Shape>> {
        self.shapes.get(chunk as usize).cloned()
    }

    fn is_alive(&self, _chunk: u32, _slot: u8) -> bool {
        true
    }
}

fn open(disk: &SimDisk, clock: &SimClock) -> Drum {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let Ok((mut drum, found)) = Drum::open(disk, Path::new("/drum"), clock).unwrap() else {
        panic!("another version");
    };
    assert_eq!(found.notices, Vec::<String>::new());
    drum.segment_bytes = 6000;
    drum
}

impl World {
    fn new(seed: u64, slots: &[u8]) -> World {
        let disk = SimDisk::new(seed);
        disk.create_dir_all(Path::new("/drum")).unwrap();
        let clock = SimClock::new(Stamp {
            real_ns: 1_000_000_000_000_000_000 + seed as i64,
            mono_ns: 5,
            boot_ns: 5,
        });
        let (mut shapes, mut members) = (Vec::new(), Vec::new());
        for (chunk, definitions) in samples::DEFINITIONS.iter().enumerate() {
            let shape = Shape::of(&samples::rrd(definitions, 1).header).unwrap();
            for &slot in slots {
                let file = samples::rrd(definitions, seed + u64::from(slot));
                let mut blank = Vec::new();
                shape.pack(&samples::group(&shape, &file), &mut blank);
                members.push(Member {
                    chunk: chunk as u32,
                    slot,
                    file,
                    blank,
                    pending: Vec::new(),
                    stamp: 1_000_000_000,
                });
            }
            shapes.push(Arc::new(shape));
        }
        World {
            drum: open(&disk, &clock),
            disk,
            clock,
            shapes,
            members,
            position: 0,
            random: seed,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        next_random(&mut self.random) % below
    }

    /// A value for one of the groups, also after a long time.
    fn value(&mut self, at: usize) {
        let gap = match self.random(40) {
            0 => 31_536_000,
            1 => 3000,
            2..6 => 1 + self.random(120),
            _ => 10,
        };
        let number = self.random(50);
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
        let how = Update {
            file_name: b"",
            template: None,
            skip_past: true,
            now: NOW,
            at_time: &|_| Ok(None),
        };
        update_all(
            &mut Scratch::default(),
            &mut member.file.header,
            &mut member.file.cells,
            &how,
            &[text.as_bytes()],
            &mut Vec::new(),
        )
        .unwrap();
        member.pending.push(text.into_bytes());
        self.position += 1;
    }

    fn state(&self, member: &Member) -> Vec<u64> {
        let shape = &self.shapes[member.chunk as usize];
        let blocks = self.drum.blocks(member.chunk);
        let found = states(&blocks, shape, member.slot / SIXTEEN as u8).unwrap();
        let mine = found
            .into_iter()
            .find(|(at, _)| *at == member.slot % SIXTEEN as u8);
        mine.map_or_else(|| member.blank.clone(), |(_, words)| words)
    }

    fn save(&mut self, chunk: u32) {
        let shape = self.shapes[chunk as usize].clone();
        let mut builder = Builder::new(shape.archives.len()).unwrap();
        builder.begin(chunk, self.position, shape.archives.len());
        let mut applier = Applier::default();
        for sixteen in 0..(CHUNK / SIXTEEN) as u8 {
            let mine =
                |member: &Member| (member.chunk, member.slot / SIXTEEN as u8) == (chunk, sixteen);
            if !self
                .members
                .iter()
                .any(|member| mine(member) && !member.pending.is_empty())
            {
                continue;
            }
            builder.part(sixteen);
            let mut columns: Vec<Column> =
                shape.archives.iter().map(|_| Column::default()).collect();
            let (mut new, mut points) = (Vec::new(), Vec::new());
            for at in 0..self.members.len() {
                if !mine(&self.members[at]) {
                    continue;
                }
                let state = self.state(&self.members[at]);
                let member = &mut self.members[at];
                let (slot, pending) = (
                    member.slot % SIXTEEN as u8,
                    std::mem::take(&mut member.pending),
                );
                let values: Vec<&[u8]> = pending.iter().map(|text| &text[..]).collect();
                applier.apply(&shape, &state, b"", &values, NOW).unwrap();
                let last_up = applier.header().unwrap().last_up;
                builder.stamp = builder.stamp.max(last_up as u64);
                for (archive, column) in columns.iter_mut().enumerate() {
                    let rows = &applier.captured.archives[archive];
                    column.push(slot, shape.newest(archive, last_up), rows);
                }
                let mut words = Vec::new();
                applier.pack(&shape, &mut words);
                new.push((slot, words));
                put_points(&mut points, slot, values.len() as u64, &pending.concat());
            }
            builder.state(&new).unwrap();
            builder.points(&points).unwrap();
            for (archive, column) in columns.iter().enumerate() {
                builder.rows(archive, column, column.newest).unwrap();
            }
        }
        if !builder.is_empty() {
            self.drum.append(&mut builder).unwrap();
        }
    }

    /// The group as a file.
    fn image(&self, member: &Member) -> Vec<u8> {
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
        assert_eq!(view.damaged, 0);
        Rrd { header, cells }.to_bytes()
    }

    fn check(&self, story: &str) {
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

#[test]
fn a_view_is_the_file_whatever_is_saved_merged_and_opened_again() {
    let (mut merges, mut most) = (0, 0);
    for seed in 1..6 {
        let mut world = World::new(seed, &[0, 1, 15, 16, 77, 255]);
        for step in 0..1500 {
            // One group of each chunk is nearly idle.
            let at = world.random(world.members.len() as u64) as usize;
            if world.members[at].slot != 15 || world.random(30) == 0 {
                world.value(at);
            }
            if world.random(20) == 0 {
                let chunk = world.random(3) as u32;
                world.save(chunk);
            }
            if world.random(60) == 0 {
                world.drum.sync().unwrap();
                merges += u64::from(world.drum.merge(&world).unwrap().is_some());
            }
            if world.random(100) == 0 {
                world.drum.sync().unwrap();
                world.drum = open(&world.disk, &world.clock);
            }
            if step % 50 == 0 {
                world.check(&format!("seed {seed} step {step}"));
            }
            most = most.max(world.drum.totals().segments);
        }
        world.check(&format!("seed {seed} at the end"));
    }
    assert!(merges > 20 && most > 3, "{merges} merges, {most} segments");
}
