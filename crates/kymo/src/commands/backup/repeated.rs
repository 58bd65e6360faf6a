//! `kymo backup-every`: the part of `kymo serve` that backs up again and again. The guardian starts it, not a person. It reads the
//! data folder, asks the keeper to pin the store, and writes to one place. A file of its own has its outcomes, for the page.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kymo_backup::{Keep, Sent, Trust};
use kymo_scrape::ScrapeUrl;
use kymo_sys::disk::RealDisk;
use kymo_sys::kept_file::{Sync, replace};
use kymo_sys::machine;
use kymo_sys::privilege::{self, Memory, State};
use kymo_sys::talk;
use kymo_wire::backup_state::{BackupState, FILE, FOLDER};

use super::{POLL_FOLDER, StoreFolder, Way, back_up, now_ms, recorded};
use crate::commands::serve::{BOARDS_FOLDER, BackupOrder, BackupsPlace, STORE_FOLDER};
use crate::process::notices::put_line;
use crate::process::order;
use crate::process::sandbox::{self, NAME_FILES, NAME_PORT};

/// Memory of the process: a manifest, the list of contents, and a request.
const MEMORY_BYTES: u64 = 1 << 30;
/// Longest pause before a backup that failed is tried again, and shortest.
const AGAIN: [Duration; 2] = [Duration::from_secs(600), Duration::from_secs(10)];
/// Longest wait for a keeper that begins.
const KEEPER_WAIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_secs(1);
const HTTPS_PORT: u16 = 443;

/// Runs the command.
pub(crate) fn run() -> Result<ExitCode> {
    talk::never_wait();
    // A flush signal to all of kymo is meant for the recorder.
    machine::ignore_flush();
    let order: BackupOrder = order::read("backup-every")?;
    let limited = privilege::limit_memory(Memory::Own(MEMORY_BYTES));
    limited.context("cannot limit its memory")?;
    let state = order.data.join(FOLDER);
    let made = fs::create_dir_all(&state);
    made.with_context(|| format!("cannot make {}", state.display()))?;
    let own = State::of(std::process::id()).context("cannot read /proc/self/status")?;
    let words = own.words();
    let (mut write, ports) = (vec![state], ports(&order.place));
    if let BackupsPlace::Folder(folder) = &order.place {
        // The first backup says why a folder cannot be used.
        let _made = fs::create_dir_all(folder);
        write.push(folder.clone());
    }
    wait_for_store(&order);
    let reach = Reach::of(&order);
    let names = NAME_FILES.map(PathBuf::from);
    let read: Vec<PathBuf> = reach.folders().chain(names).collect();
    let files = sandbox::enter_and_list(&order.data, &read, &write, &ports);
    let calls = sandbox::Process::Backup.confine();
    put_line(format_args!("backup: {words}, {files}, {calls}"));
    Repeated::new(order, reach).run()
}

/// Waits until the keeper has made its folder.
fn wait_for_store(order: &BackupOrder) {
    let begun = Instant::now();
    while UnixStream::connect(&order.keeper).is_err() && begun.elapsed() < KEEPER_WAIT {
        thread::sleep(PAUSE);
    }
}

/// Folders that a backup reads or writes, with their inodes: the kernel's rules hold for these alone, and cannot be changed. Tokens
/// and keys are in none of them.
#[derive(PartialEq, Eq, Debug)]
struct Reach {
    read: Vec<(PathBuf, u64)>,
    /// Inode of the folder of backups.
    written: Option<u64>,
}

impl Reach {
    fn of(order: &BackupOrder) -> Reach {
        let recordings = recorded::folders(&RealDisk, &order.data);
        let named = [STORE_FOLDER, BOARDS_FOLDER, POLL_FOLDER];
        let named = named.map(|name| order.data.join(name));
        let all = named.into_iter().chain([order.base.clone()]);
        let all = all.chain(recordings.unwrap_or_default());
        Reach {
            read: all
                .filter_map(|folder| Some((folder.clone(), inode(&folder)?)))
                .collect(),
            written: match &order.place {
                BackupsPlace::Folder(folder) => inode(folder),
                BackupsPlace::Bucket(_) => None,
            },
        }
    }

    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.read.iter().map(|(folder, _)| folder.clone())
    }

    /// True if all of these folders are in the other one. A folder that has gone is no reason to begin again.
    fn is_within(&self, other: &Reach) -> bool {
        self.read.iter().all(|folder| other.read.contains(folder))
            && (self.written.is_none() || self.written == other.written)
    }
}

fn inode(folder: &Path) -> Option<u64> {
    let found = fs::metadata(folder).ok()?;
    found.is_dir().then(|| found.ino())
}

/// Ports of the server of S3, and of name services.
fn ports(place: &BackupsPlace) -> Vec<u16> {
    let BackupsPlace::Bucket(place) = place else {
        return Vec::new();
    };
    let url = ScrapeUrl::of_server(&place.endpoint);
    let port = url.map_or(HTTPS_PORT, |url| url.port());
    let ports = BTreeSet::from([port, NAME_PORT]);
    ports.into_iter().collect()
}

/// Backups without end.
struct Repeated {
    order: BackupOrder,
    reach: Reach,
    keep: Option<Keep>,
    state: BackupState,
    /// True once this process has made a backup.
    has_made_one: bool,
}

impl Repeated {
    fn new(order: BackupOrder, reach: Reach) -> Repeated {
        let mut state = backup_state(&order.data).unwrap_or_default();
        if state.to != order.to {
            state.newest_ms = 0;
        }
        state.to.clone_from(&order.to);
        state.every_s = order.every_s;
        Repeated {
            keep: Keep::parse(&order.keep),
            order,
            reach,
            state,
            has_made_one: false,
        }
    }

    fn run(mut self) -> Result<ExitCode> {
        self.find_newest();
        self.note();
        loop {
            thread::sleep(self.until_due());
            if !Reach::of(&self.order).is_within(&self.reach) {
                put_line("backup: ends, since there are folders that it may not open yet");
                return Ok(ExitCode::SUCCESS);
            }
            self.back_up();
            self.note();
        }
    }

    /// The newest backup of the place may be another one than that of the file. A place that does not answer may still have it.
    fn find_newest(&mut self) {
        let times = || Ok(self.order.place.open()?.times_ms()?);
        match times() {
            Ok(times) => self.state.newest_ms = times.last().copied().unwrap_or(0),
            Err(error) if is_none(&error) => self.state.newest_ms = 0,
            Err(_) => {}
        }
    }

    fn until_due(&self) -> Duration {
        let every = Duration::from_secs(self.order.every_s);
        if !self.state.error.is_empty() {
            let [longest, shortest] = AGAIN;
            return (every / 4).clamp(shortest, longest);
        }
        let age = self.state.age_s(now_ms()).map(Duration::from_secs_f64);
        let due = age.map_or(Duration::ZERO, |age| every.saturating_sub(age));
        due.max(PAUSE)
    }

    fn back_up(&mut self) {
        let begun = Instant::now();
        let dir = &self.order.data;
        let store = StoreFolder::find(dir).map(|store| store.asked_at(self.order.keeper.clone()));
        let way = Way {
            keep: self.keep,
            trust: Trust::Length,
            names_left_out: !self.has_made_one,
        };
        match back_up(dir, store.as_ref(), &self.order.place, way) {
            Ok((sent, left_out)) => {
                self.has_made_one = true;
                self.state.left_out = left_out;
                self.note_sent(&sent, begun.elapsed());
            }
            Err(error) => {
                let why = format!("{error:#}");
                if why != self.state.error {
                    talk::say(format_args!("kymo: {why}"));
                }
                self.state.failures += 1;
                self.state.error = why;
            }
        }
    }

    fn note_sent(&mut self, sent: &Sent, duration: Duration) {
        let state = &mut self.state;
        if !state.error.is_empty() {
            talk::say("kymo: backups are made again");
        }
        state.newest_ms = sent.time_ms;
        state.files = sent.files;
        state.bytes = sent.bytes;
        state.duration_s = duration.as_secs_f64();
        state.backups += 1;
        state.sent_bytes += sent.sent_bytes;
        state.error.clear();
    }

    /// Writes the file.
    fn note(&self) {
        let path = state_path(&self.order.data);
        let written = replace(&RealDisk, &path, self.state.text().as_bytes(), Sync::Later);
        if let Err(error) = written {
            talk::say(format_args!(
                "kymo: cannot write {}: {error}",
                path.display()
            ));
        }
    }
}

fn is_none(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<kymo_backup::Error>();
    matches!(error, Some(kymo_backup::Error::None { .. }))
}

fn state_path(data: &Path) -> PathBuf {
    data.join(FOLDER).join(FILE)
}

/// Outcomes of the process of a data folder.
pub(crate) fn backup_state(data: &Path) -> Option<BackupState> {
    BackupState::parse(&fs::read(state_path(data)).ok()?)
}
