//! What a configuration has that is run, by number: both sides read it, the runner to run it, the poller to see that
//! both have read the same.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::threshold::{Action, Bound, Direction, Event};

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// For /bin/sh, by the place of their readings in the configuration.
    pub commands: BTreeMap<u32, ShellCommand>,
    /// Programs of thresholds, by the place of their targets in the configuration.
    pub programs: BTreeMap<u32, Programs>,
    /// After which a command is killed.
    pub limit: Duration,
    /// To be looked at first for programs: a list of folders as in `PATH`.
    pub path_add: Option<Vec<u8>>,
    /// All files of the configuration: commands are run as root only if they are root's alone.
    pub files: Vec<PathBuf>,
}

/// A command between backticks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommand {
    /// Its text, for /bin/sh.
    pub text: Vec<u8>,
    /// What people call it, as it may be shown: the target that has it.
    pub name: Vec<u8>,
}

/// The programs of a target's thresholds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// The target's name.
    pub target: Vec<u8>,
    /// `ThreshProg`, `ThreshProgOK`, each for in and out: by event and direction.
    pub programs: [[Option<PathBuf>; 2]; 2],
    /// `ThreshMin`, `ThreshMax` as they are written, each for in and out: by bound and direction.
    pub bounds: [[Option<Vec<u8>>; 2]; 2],
    /// `ThreshDesc`.
    pub description: Option<Vec<u8>>,
    /// `SetEnv`.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Commands {
    /// The same number for the same commands, and hardly ever for others.
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

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.programs.is_empty()
    }
}

impl Programs {
    /// The program for it, if there is one.
    pub fn program(&self, event: Event, direction: Direction) -> Option<&PathBuf> {
        self.programs[event.place()][direction.place()].as_ref()
    }

    /// The bound as it is written.
    pub fn bound(&self, bound: Bound, direction: Direction) -> Option<&[u8]> {
        self.bounds[bound.place()][direction.place()].as_deref()
    }

    /// The program for what happened, with its arguments: the target, the bound as it is written, the value, and when it
    /// is broken the description. `None`: there is nothing to be run.
    pub fn arguments(&self, action: &Action) -> Option<(&PathBuf, Vec<Vec<u8>>)> {
        let program = self.program(action.event, action.direction)?;
        let bound = self.bound(action.bound, action.direction)?.to_vec();
        let mut value = Vec::new();
        action.value.put(&mut value);
        let mut arguments = vec![self.target.clone(), bound, value];
        if action.event == Event::Broken {
            let description = self.description.as_deref().filter(|text| !text.is_empty());
            arguments.push(description.unwrap_or(b"No Description").to_vec());
        }
        Some((program, arguments))
    }

    fn put(&self, hash: &mut Hash) {
        hash.add(&self.target);
        for program in self.programs.as_flattened() {
            hash.add_maybe(program.as_ref().map(|path| path.as_os_str().as_bytes()));
        }
        for bound in self.bounds.as_flattened() {
            hash.add_maybe(bound.as_deref());
        }
        hash.add_maybe(self.description.as_deref());
        for (name, value) in &self.environment {
            hash.add(name);
            hash.add(value);
        }
    }
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
