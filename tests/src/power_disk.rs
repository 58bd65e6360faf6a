//! A file system that simulates power cuts, mounted through
//! /dev/fuse, so that the real programs run on it through the kernel.
//!
//! The disk has two states of each file and folder: the one that readers see, and the one on the platter. `fsync` or
//! `fdatasync` of a file puts its writes on the disk, `fsync` of a folder its names. At a cut a seed decides, for
//! each unsynced change apart, if the change survives. On command the file system fails writes and syncs, is full, or
//! stalls. `power_disk/cut.rs` has the rules.

mod content;
mod cut;
mod mounted;
mod names;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, MountOption, SessionACL};

use crate::machine::skipped;
use mounted::Mounted;
use names::Tree;

/// Faults to come. Operations are counted from 1, from the moment at which the faults are set.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Number of the changing operation at which the power goes.
    pub cut_at: Option<u64>,
    /// Number of the write that fails with EIO.
    pub broken_write: Option<u64>,
    /// Number of the sync (of a file or of a folder) that fails with EIO. Later syncs succeed, and the pending
    /// changes of the file are lost.
    pub broken_sync: Option<u64>,
    /// Operations that need room fail with ENOSPC from the first of these numbers, up to but not including the second.
    pub full: Option<(u64, u64)>,
    /// Number of the operation at which the disk stalls, and for how long: nothing is changed or synced meanwhile.
    pub stall: Option<(u64, Duration)>,
}

/// Counts since the faults were set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Operations that change something, or make it durable.
    pub operations: u64,
    /// Writes of files.
    pub writes: u64,
    /// Syncs of files and folders.
    pub syncs: u64,
    /// Operations that the disk failed or delayed.
    pub faults: u64,
    /// Changes that cuts have lost since the mount.
    pub lost_at_cuts: u64,
}

const THREADS: usize = 12;

/// State shared by the mount and the test.
pub(crate) struct State {
    pub(crate) tree: Tree,
    faults: Faults,
    counts: Counts,
    random: u64,
    off_since: Option<Instant>,
    stalled_until: Option<Instant>,
    syncs: Vec<(Instant, OsString)>,
}

pub(crate) type Shared = Arc<Mutex<State>>;

pub(crate) fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file system, mounted until drop.
pub struct PowerDisk {
    shared: Shared,
    on: PathBuf,
    session: Option<BackgroundSession>,
    /// Uptime of the real machine when this machine started, in seconds.
    up_at_s: u64,
}

impl PowerDisk {
    /// Mounts an empty file system on a new folder; `None`, with a line about the reason, if that is not possible here.
    pub fn mount(on: &Path, seed: u64) -> Option<PowerDisk> {
        if crate::machine::must_skip(&["umount", "unshare"]) {
            return None;
        }
        if !Path::new("/dev/fuse").exists() {
            skipped("/dev/fuse is missing");
            return None;
        }
        std::fs::create_dir_all(on).expect("a folder to mount on");
        let state = State {
            tree: Tree::new(),
            faults: Faults::default(),
            counts: Counts::default(),
            random: seed | 1,
            off_since: None,
            stalled_until: None,
            syncs: Vec::new(),
        };
        let mut disk = PowerDisk {
            shared: Arc::new(Mutex::new(state)),
            on: on.into(),
            session: None,
            up_at_s: 0,
        };
        disk.begin();
        Some(disk)
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        &self.on
    }

    /// Sets the faults to come; the counts start again.
    pub fn set_faults(&self, faults: Faults) {
        let mut state = lock(&self.shared);
        let lost_at_cuts = state.counts.lost_at_cuts;
        state.faults = faults;
        state.counts = Counts {
            lost_at_cuts,
            ..Counts::default()
        };
    }

    /// Counts since the faults were set.
    pub fn counts(&self) -> Counts {
        lock(&self.shared).counts
    }

    /// Time at which the power went; every operation since then fails. `None`: it is on.
    pub fn off_since(&self) -> Option<Instant> {
        lock(&self.shared).off_since
    }

    /// True while the disk stalls.
    pub fn is_stalled(&self) -> bool {
        let until = lock(&self.shared).stalled_until;
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Times of syncs of files whose names begin with `name` since the last start, in order.
    pub fn syncs_of(&self, name: &str) -> Vec<Instant> {
        let state = lock(&self.shared);
        let named = |file: &OsString| file.to_string_lossy().starts_with(name);
        let syncs = state.syncs.iter().filter(|(_, file)| named(file));
        syncs.map(|(at, _)| *at).collect()
    }

    /// Cuts the power now, if it is still on.
    pub fn cut(&self) {
        let now = Instant::now();
        lock(&self.shared).off_since.get_or_insert(now);
    }

    /// Puts all changes on the disk, for a test's preparations.
    pub fn settle(&self) {
        lock(&self.shared).tree.settle();
    }

    /// Starts the machine again with the surviving changes. Every process with open files must have ended.
    pub fn restart(&mut self) {
        self.cut();
        self.end();
        let mut state = lock(&self.shared);
        let mut random = state.random;
        state.counts.lost_at_cuts += state.tree.cut(&mut random);
        state.random = random;
        state.off_since = None;
        state.syncs.clear();
        state.faults = Faults::default();
        drop(state);
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
        let whole = uptime.split('.').next().unwrap_or_default();
        self.up_at_s = whole.parse().unwrap_or(0);
        self.begin();
    }

    /// First words of a command line that runs a program on this machine, whose uptime begins with the mount of the disk.
    pub fn machine(&self) -> [String; 3] {
        let boottime = format!("--boottime=-{}", self.up_at_s);
        ["unshare".into(), "--time".into(), boottime]
    }

    fn begin(&mut self) {
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("kymo-test".into()),
            MountOption::Subtype("power".into()),
            MountOption::DefaultPermissions,
        ];
        config.acl = SessionACL::All;
        // Some threads may wait for a stalled disk; the others answer.
        config.n_threads = Some(THREADS);
        let session = fuser::spawn_mount(Mounted(self.shared.clone()), &self.on, &config);
        self.session = Some(session.expect("a mount through /dev/fuse"));
    }

    fn end(&mut self) {
        // Lazily, as files may still be open; the session ends when they are closed.
        let ended = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.on)
            .status();
        assert!(ended.is_ok_and(|status| status.success()), "umount");
        if let Some(session) = self.session.take() {
            let _ended = session.join();
        }
    }
}

impl Drop for PowerDisk {
    fn drop(&mut self) {
        self.cut();
        if self.session.is_some() {
            self.end();
        }
    }
}
