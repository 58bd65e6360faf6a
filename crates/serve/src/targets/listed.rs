//! What a list of targets is made of: of each target what is shown in a line, and where its file says the rest.

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
    /// Another list has another number.
    pub(crate) number: u64,
    files: Vec<(TargetsFile, u32)>,
    /// What could not be read, for people.
    pub(crate) problems: Vec<String>,
    /// How rates are written, each once.
    pub(crate) units: Vec<TargetUnit>,
    /// In the order of their names.
    pub(crate) devices: Vec<Device>,
    /// In the order of the files.
    pub(crate) targets: Vec<ListedTarget>,
}

/// A target of a list.
pub(crate) struct ListedTarget {
    /// Number of its file.
    file: usize,
    place: LinePlace,
    /// Number of its device.
    pub(crate) device: usize,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) series: String,
    pub(crate) max_bytes: [u64; 2],
    /// Which of in and out it shows.
    pub(crate) shown: [bool; 2],
    /// Whether it says how much there is of something: such rates are not added up.
    pub(crate) is_gauge: bool,
    /// Number of its unit.
    pub(crate) unit: usize,
}

impl Listed {
    /// The files as they are now; `None`: as they were.
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

    /// The number of the target with this id.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let (stem, name) = id.rsplit_once('/')?;
        let is_it =
            |target: &ListedTarget| target.name == name && self.files[target.file].0.stem == stem;
        self.targets.iter().position(is_it)
    }

    /// All that its file says of a target; `None`: the file is another one by now.
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

    /// Whether all words are found in what is shown of it. They are in lower case.
    pub(crate) fn is_meant(&self, device: &str, words: &[String]) -> bool {
        if words.is_empty() {
            return true;
        }
        let text = format!("{} {} {device}", self.name, self.title).to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    }
}
