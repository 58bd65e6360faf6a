//! The commands and programs of a configuration by number. Both sides read them: the runner to run them, the poller to
//! check that both have read the same.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kymo_wire::mrtg_cfg::{Config, Keyword, Source, Target};

use crate::threshold::{Action, Bound, Direction, Event, TargetBounds};

/// All commands and programs of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Commands for /bin/sh, by the place of their readings in the configuration.
    pub commands: BTreeMap<u32, ShellCommand>,
    /// Programs of thresholds, by the place of their targets in the configuration.
    pub programs: BTreeMap<u32, Programs>,
    /// Time limit of a command; the runner kills one that takes longer.
    pub limit: Duration,
    /// `PathAdd`: folders that are searched before `PATH`, in the form of `PATH`.
    pub path_add: Option<Vec<u8>>,
    /// All files of the configuration. Root runs commands only if root alone can write them.
    pub files: Vec<PathBuf>,
}

/// A command between backticks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommand {
    /// The text for /bin/sh.
    pub text: Vec<u8>,
    /// Name of the target that has it, for messages, as commands may contain passwords.
    pub name: Vec<u8>,
}

impl ShellCommand {
    /// The line for a problem with the command.
    pub(super) fn complaint(&self, why: &str) -> String {
        format!("command of {}: {why}", String::from_utf8_lossy(&self.name))
    }
}

/// The programs of a target's thresholds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// The target's name.
    pub target: Vec<u8>,
    /// `ThreshProg`, `ThreshProgOK`, each for in and out, then those of `HWThresh`: by measure, event and direction.
    pub programs: [[[Option<PathBuf>; 2]; 2]; 2],
    /// Bounds as they are written, each for in and out: by bound and direction.
    pub bounds: [[Option<Vec<u8>>; 2]; 4],
    /// `ThreshDesc`, `HWThreshDesc`.
    pub descriptions: [Option<Vec<u8>>; 2],
    /// `SetEnv`.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Time limit of a command as a part of the interval, so that its values still belong to their cycle.
const LIMIT_PART: f64 = 0.8;

impl Commands {
    /// The commands and programs of a configuration.
    pub fn of(config: &Config) -> Commands {
        let globals = config.globals();
        let mut commands = Commands {
            limit: Duration::from_secs_f64(f64::from(globals.interval_s) * LIMIT_PART),
            path_add: globals.path_add.as_ref().map(|path| bytes_of(path)),
            files: config
                .file_paths()
                .iter()
                .map(|path| path_of(path))
                .collect(),
            ..Commands::default()
        };
        for (number, reading) in (0..).zip(config.readings()) {
            if let Source::Command(text) = reading.source {
                let text = config.text(text).into_owned();
                let name = Vec::new();
                commands
                    .commands
                    .insert(number, ShellCommand { text, name });
            }
        }
        for (number, target) in (0..).zip(config.targets()) {
            for reading in config.readings_of(target.expression()).iter() {
                if let Some(command) = commands.commands.get_mut(reading)
                    && command.name.is_empty()
                {
                    command.name = target.name().into_owned();
                }
            }
            let programs = Programs::of(target);
            if !programs.is_empty() {
                commands.programs.insert(number, programs);
            }
        }
        commands
    }

    /// A hash of all commands and programs: equal for equal ones, and almost always different for others.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Hash::default();
        for (number, command) in &self.commands {
            hash.add(&number.to_le_bytes());
            hash.add(&command.text);
        }
        for (number, programs) in &self.programs {
            hash.add(&number.to_le_bytes());
            programs.put(&mut hash);
        }
        hash.0
    }

    /// True if there are neither commands nor programs.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.programs.is_empty()
    }
}

impl Programs {
    /// All programs.
    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        let all = self.programs.iter().flatten().flatten().flatten();
        all.map(PathBuf::as_path)
    }

    /// The line for a program that root does not run.
    pub(super) fn complaint(&self, why: &str) -> String {
        let target = String::from_utf8_lossy(&self.target);
        format!("cannot run the threshold program of {target} as root: {why}")
    }

    fn of(target: Target<'_>) -> Programs {
        use Keyword::*;
        let text = |keyword| Some(target.value(keyword)?.into_owned());
        let program = |keyword| Some(path_of(&target.value(keyword)?));
        Programs {
            target: target.name().into_owned(),
            programs: [
                [
                    [program(ThreshProgI), program(ThreshProgO)],
                    [program(ThreshProgOkI), program(ThreshProgOkO)],
                ],
                [
                    [program(HwThreshProgI), program(HwThreshProgO)],
                    [program(HwThreshProgOkI), program(HwThreshProgOkO)],
                ],
            ],
            bounds: TargetBounds::of(target, b"").bounds,
            descriptions: [text(ThreshDesc), text(HwThreshDesc)],
            environment: text(SetEnv)
                .map(|line| assignments(&line))
                .unwrap_or_default(),
        }
    }

    fn is_empty(&self) -> bool {
        let mut programs = self.programs.as_flattened().as_flattened().iter();
        programs.all(Option::is_none)
    }

    /// The program for an event of a bound, if the target has one.
    pub fn program(&self, event: Event, direction: Direction, bound: Bound) -> Option<&PathBuf> {
        self.programs[bound.measure()][event.place()][direction.place()].as_ref()
    }

    /// The text of a bound in the configuration.
    pub fn bound(&self, bound: Bound, direction: Direction) -> Option<&[u8]> {
        self.bounds[bound.place()][direction.place()].as_deref()
    }

    /// The program for an event, with its arguments: target, text of the bound, value, and for [`Event::Broken`] the
    /// description. `None`: the target has no such program or bound.
    pub fn arguments(&self, action: &Action) -> Option<(&PathBuf, Vec<Vec<u8>>)> {
        let program = self.program(action.event, action.direction, action.bound)?;
        let bound = self.bound(action.bound, action.direction)?.to_vec();
        let mut value = Vec::new();
        action.value.put(&mut value);
        let mut arguments = vec![self.target.clone(), bound, value];
        if action.event == Event::Broken {
            let description = self.descriptions[action.bound.measure()].as_deref();
            let description = description.filter(|text| !text.is_empty());
            arguments.push(description.unwrap_or(b"No Description").to_vec());
        }
        Some((program, arguments))
    }

    fn put(&self, hash: &mut Hash) {
        hash.add(&self.target);
        for program in self.programs.as_flattened().as_flattened() {
            hash.add_maybe(program.as_ref().map(|path| path.as_os_str().as_bytes()));
        }
        for bound in self.bounds.as_flattened() {
            hash.add_maybe(bound.as_deref());
        }
        for description in &self.descriptions {
            hash.add_maybe(description.as_deref());
        }
        for (name, value) in &self.environment {
            hash.add(name);
            hash.add(value);
        }
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// Parses `A="b" C="d"` as MRTG does: a name, `=`, a quote, and the value up to the next quote.
fn assignments(mut line: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some(equals) = line.iter().position(|&byte| byte == b'=')
        && let Some((b'"', rest)) = line[equals + 1..].split_first()
        && let Some(end) = rest.iter().position(|&byte| byte == b'"')
    {
        found.push((line[..equals].to_vec(), rest[..end].to_vec()));
        line = rest[end + 1..].trim_ascii_start();
    }
    // No environment can have an empty name or a NUL byte.
    found.retain(|(name, value)| !name.is_empty() && !name.contains(&0) && !value.contains(&0));
    found
}

/// FNV-1a, with the length of each part.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        let length = bytes.len().to_le_bytes();
        for &byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn add_maybe(&mut self, bytes: Option<&[u8]>) {
        self.add(&[u8::from(bytes.is_some())]);
        self.add(bytes.unwrap_or_default());
    }
}
