//! A list of targets: the fields of each target that a line shows, and the place of its description in its
//! file.

use std::collections::HashMap;
use std::path::Path;

use kymo_query::targets::files::{self, LinePlace, TARGETS_MAX, TargetsFile};
use kymo_query::targets::{Direction, TargetUnit};
use kymo_sys::disk::Disk;
use kymo_wire::targets::DescribedTarget;

use super::Device;

/// All targets of all files.
#[derive(Default)]
pub(crate) struct Listed {
    /// Number of the list; another list has another number.
    pub(crate) number: u64,
    files: Vec<(TargetsFile, u32)>,
    /// Messages about files that cannot be read.
    pub(crate) problems: Vec<String>,
    /// Units of rates, each once.
    pub(crate) units: Vec<TargetUnit>,
    /// Devices in the order of their names.
    pub(crate) devices: Vec<Device>,
    /// Targets in the order of the files.
    pub(crate) targets: Vec<ListedTarget>,
}

/// A target of a list.
pub(crate) struct ListedTarget {
    /// Index of its file.
    file: usize,
    place: LinePlace,
    /// Index of its device.
    pub(crate) device: usize,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) series: String,
    pub(crate) max_bytes: [u64; 2],
    /// True for in, and for out, if the target shows it.
    pub(crate) shown: [bool; 2],
    /// True for a gauge: its rates are not added up.
    pub(crate) is_gauge: bool,
    /// Index of its unit.
    pub(crate) unit: usize,
}

impl Listed {
    /// Reads the files again; `None`: they have not changed.
    pub(super) fn again(&self, disk: &dyn Disk, folder: &Path) -> Option<Listed> {
        let (files, left_out) = files::list_and_count(disk, folder);
        if self.files.iter().map(|(file, _)| file).eq(files.iter()) {
            return None;
        }
        let mut listed = Listed {
            number: self.number + 1,
            ..Listed::default()
        };
        if left_out > 0 {
            let line = format!("{left_out} configurations are not shown: there are too many");
            listed.problems.push(line);
        }
        let (mut known, mut more) = (HashMap::new(), 0);
        for file in files {
            let number = listed.files.len();
            let read = file.read(
                disk,
                folder,
                &mut |place, target| match listed.targets.len() < TARGETS_MAX {
                    true => listed.add((number, place), target, &mut known),
                    false => more += 1,
                },
            );
            let interval_s = match read {
                Ok(head) => head.interval_s,
                Err(why) => {
                    listed.problems.push(why);
                    0
                }
            };
            listed.files.push((file, interval_s));
        }
        if more > 0 {
            let line = format!("{more} targets are not shown: there are more than {TARGETS_MAX}");
            listed.problems.push(line);
        }
        listed.sort_devices();
        Some(listed)
    }

    fn add(
        &mut self,
        at: (usize, LinePlace),
        target: DescribedTarget,
        known: &mut HashMap<String, usize>,
    ) {
        let (devices, units) = (&mut self.devices, &mut self.units);
        let device = *known.entry(target.device.clone()).or_insert_with(|| {
            devices.push(Device {
                name: target.device.clone(),
                targets: 0,
            });
            devices.len() - 1
        });
        devices[device].targets += 1;
        let unit = TargetUnit::of(&target);
        let unit = units
            .iter()
            .position(|known| *known == unit)
            .unwrap_or_else(|| {
                units.push(unit);
                units.len() - 1
            });
        self.targets
            .push(ListedTarget::new(at, (device, unit), target));
    }

    fn sort_devices(&mut self) {
        let mut order: Vec<usize> = (0..self.devices.len()).collect();
        order.sort_by(|&a, &b| self.devices[a].name.cmp(&self.devices[b].name));
        let mut place = vec![0; order.len()];
        for (now, &before) in (0..).zip(&order) {
            place[before] = now;
        }
        for target in &mut self.targets {
            target.device = place[target.device];
        }
        self.devices.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// A target's id: `STEM/NAME`.
    pub(crate) fn id(&self, target: &ListedTarget) -> String {
        format!("{}/{}", self.files[target.file].0.stem, target.name)
    }

    /// Seconds between polls of a target.
    pub(crate) fn interval_s(&self, target: &ListedTarget) -> u32 {
        self.files[target.file].1
    }

    /// Index of the target with this id.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let (stem, name) = id.rsplit_once('/')?;
        let is_it =
            |target: &ListedTarget| target.name == name && self.files[target.file].0.stem == stem;
        self.targets.iter().position(is_it)
    }

    /// Full description of a target from its file; `None`: the file has changed.
    pub(super) fn read(
        &self,
        disk: &dyn Disk,
        folder: &Path,
        at: usize,
    ) -> Option<DescribedTarget> {
        let target = &self.targets[at];
        let (file, _) = &self.files[target.file];
        let read = file.target(disk, folder, target.place).ok()?;
        (read.name == target.name).then_some(read)
    }
}

impl ListedTarget {
    fn new(
        (file, place): (usize, LinePlace),
        (device, unit): (usize, usize),
        target: DescribedTarget,
    ) -> ListedTarget {
        ListedTarget {
            file,
            place,
            device,
            max_bytes: target.max_bytes,
            shown: Direction::ALL.map(|direction| direction.is_shown(&target)),
            is_gauge: target.has("gauge"),
            unit,
            name: target.name,
            title: target.title,
            series: target.series,
        }
    }

    /// True if the target's line contains all words, which are in lower case.
    pub(crate) fn is_meant(&self, device: &str, words: &[String]) -> bool {
        if words.is_empty() {
            return true;
        }
        let text = format!("{} {} {device}", self.name, self.title).to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    }
}
