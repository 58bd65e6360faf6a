//! A store on a simulated disk, and a judge that applies rrdtool's arithmetic to the acknowledged values.

#![allow(dead_code, clippy::unwrap_used, missing_docs)]

pub(crate) mod follower;

use kymo_base::random::next_random;
use kymo_rrd::header::{CdpPrep, DsDef, PdpPrep, RraDef, field};
use kymo_rrd::update::{Now, Scratch, Update, update_all};
use kymo_rrd::{Header, Rrd, UNKNOWN};
use kymo_store::{FileError, Files, Flushed, Refusal, Replayed, Settings, Store};
use kymo_sys::clock::{Clock, Stamp};
use kymo_sys::disk::Disk;
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::SimDisk;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const START: i64 = 1_000_000_000;
/// All modes of writing .rrd files.
pub(crate) const MODES: [Files; 3] = [
    Files::Never,
    Files::OnDemand,
    Files::After(Duration::from_secs(300)),
];

pub(crate) fn folder() -> PathBuf {
    "/j/kymo".into()
}

pub(crate) fn base() -> PathBuf {
    "/db".into()
}

pub(crate) fn settings() -> Settings {
    Settings {
        journal_file_bytes: 32 << 10,
        files: Files::After(Duration::from_secs(300)),
        lock_wait: Duration::ZERO,
        chunk_values: 4,
        journal_files: 3,
        segment_bytes: 3000,
        ..Settings::new(folder(), base())
    }
}

/// An empty file with one data source of this type and two archives.
pub(crate) fn rrd(kind: &[u8]) -> Rrd {
    let rra = |cf: &[u8], row_cnt, pdp_cnt| RraDef {
        cf_nam: field(cf),
        pad: [0; 4],
        row_cnt,
        pdp_cnt,
        par: [0.5f64.to_bits(), 0, 0, 0, 0, 0, 0, 0, 0, 0],
    };
    let nan = UNKNOWN.to_bits();
    let header = Header {
        version: 3,
        head_pad: [0; 7],
        pdp_step: 10,
        head_par: [0; 10],
        ds: vec![DsDef {
            ds_nam: field(b"x"),
            dst: field(kind),
            par: [60, nan, nan, 0, 0, 0, 0, 0, 0, 0],
        }],
        rra: vec![rra(b"AVERAGE", 7, 1), rra(b"MAX", 4, 3)],
        last_up: START,
        last_up_usec: 0,
        pdp_prep: vec![PdpPrep {
            last_ds: field(b"U"),
            pad: [0; 2],
            scratch: [0, nan, 0, 0, 0, 0, 0, 0, 0, 0],
        }],
        cdp_prep: vec![
            CdpPrep {
                scratch: [nan, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            };
            2
        ],
        cur_row: vec![3, 1],
    };
    let cells = vec![UNKNOWN; header.cell_count() as usize];
    Rrd { header, cells }
}

/// Applies values in order to a file by rrdtool's arithmetic; values that it refuses are left out.
pub(crate) fn oracle(bytes: &[u8], values: &[&[u8]]) -> Vec<u8> {
    let mut rrd = Rrd::parse(bytes).unwrap();
    let how = Update {
        file_name: b"",
        template: None,
        skip_past: true,
        now: Now { sec: 0, usec: 0 },
        at_time: &|_| Ok(None),
    };
    let scratch = &mut Scratch::default();
    update_all(
        scratch,
        &mut rrd.header,
        &mut rrd.cells,
        &how,
        values,
        &mut Vec::new(),
    )
    .unwrap();
    rrd.to_bytes()
}

/// An acknowledged value.
#[derive(Clone, Debug)]
pub(crate) struct Acked {
    pub name: String,
    pub text: Vec<u8>,
}

pub(crate) struct Bench {
    pub disk: SimDisk,
    pub clock: Arc<SimClock>,
    pub settings: Settings,
    pub store: Option<Store>,
    pub replayed: Replayed,
    /// Names of files, and their initial bytes.
    pub files: Vec<(String, Vec<u8>)>,
    pub acked: Vec<Acked>,
    /// Number of acknowledged values before the last successful sync.
    pub synced: usize,
    pub random: u64,
    /// Stamp of the newest value, seconds.
    pub now_s: i64,
}

impl Bench {
    pub(crate) fn new(seed: u64, count: usize) -> Bench {
        let disk = SimDisk::new(seed);
        disk.create_dir_all(Path::new("/j")).unwrap();
        disk.create_dir_all(&base()).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        let mut files = Vec::new();
        for i in 0..count {
            let kind: &[u8] = [&b"GAUGE"[..], b"COUNTER", b"DERIVE"][i % 3];
            let bytes = rrd(kind).to_bytes();
            let name = format!("f{i}.rrd");
            disk.set_bytes(&base().join(&name), bytes.clone());
            files.push((name, bytes));
        }
        let clock = SimClock::new(Stamp {
            real_ns: START * SECOND as i64,
            mono_ns: 5 * SECOND,
            boot_ns: 5 * SECOND,
        });
        Bench {
            disk,
            clock: Arc::new(clock),
            settings: settings(),
            store: None,
            replayed: Replayed::default(),
            files,
            acked: Vec::new(),
            synced: 0,
            random: seed,
            now_s: START,
        }
    }

    /// Copies the disk and the test's knowledge; the copy has no open store.
    pub(crate) fn fork(&self) -> Bench {
        Bench {
            disk: self.disk.fork(),
            clock: Arc::new(SimClock::new(self.clock.now())),
            settings: self.settings.clone(),
            store: None,
            replayed: Replayed::default(),
            files: self.files.clone(),
            acked: self.acked.clone(),
            synced: self.synced,
            random: self.random,
            now_s: self.now_s,
        }
    }

    pub(crate) fn try_open(&mut self) -> Result<(), kymo_store::Error> {
        let disk = Arc::new(self.disk.clone());
        let (store, replayed) = Store::open(self.settings.clone(), disk, self.clock.clone())?;
        self.store = Some(store);
        self.replayed = replayed;
        Ok(())
    }

    pub(crate) fn open(&mut self) {
        self.try_open().unwrap();
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    pub(crate) fn random(&mut self, below: u64) -> u64 {
        next_random(&mut self.random) % below
    }

    /// Sends these values in one batch; touches the file first where the store requires it.
    pub(crate) fn update(&mut self, name: &str, values: &[&str]) -> Result<usize, String> {
        let texts: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        for _ in 0..2 {
            let store = self.store.clone().unwrap();
            let mut batch = store.write_batch();
            let taken = batch.update(name.as_bytes(), texts.iter().copied());
            if taken == Err(Refusal::Untouched) {
                drop(batch);
                store.touch(name.as_bytes()).map_err(|e| format!("{e:?}"))?;
                continue;
            }
            batch.commit().map_err(|error| error.to_string())?;
            let taken = taken.map_err(|refusal| format!("{refusal:?}"))?;
            for text in &texts {
                self.acked.push(Acked {
                    name: name.into(),
                    text: text.to_vec(),
                });
            }
            return Ok(taken);
        }
        Err("still untouched".into())
    }

    /// Sends a random value to a random file.
    pub(crate) fn any_update(&mut self) -> Result<usize, String> {
        let at = self.random(self.files.len() as u64) as usize;
        let gap = 1 + self.random(25) as i64;
        self.now_s += gap;
        let value = 100 + self.now_s - START + self.random(9) as i64;
        let text = match self.random(6) {
            0 => format!("{}:U", self.now_s),
            1 => format!("{}.500000:{value}", self.now_s),
            2 => format!("{}:bad", self.now_s),
            _ => format!("{}:{value}", self.now_s),
        };
        let name = self.files[at].0.clone();
        self.update(&name, &[&text])
    }

    /// Syncs the journal: on success every value acknowledged so far is on the disk.
    pub(crate) fn sync(&mut self) {
        let count = self.acked.len();
        if self.store().durable(kymo_store::Position(u64::MAX)).is_ok() {
            self.synced = count;
        }
    }

    pub(crate) fn flush(&self, name: &str) -> Result<Flushed, FileError> {
        self.store().flush(name.as_bytes())
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        self.disk.bytes(&base().join(name)).unwrap()
    }

    /// Opens a new store, as after a power cut or a kill.
    pub(crate) fn reopen(&mut self) {
        self.store = None;
        self.open();
    }

    /// Flushes all files and checks that they hold the first `k` acknowledged values, for some `k` of at least
    /// `least`.
    pub(crate) fn judge(&self, least: usize, story: &str) {
        for (name, _) in &self.files {
            if let Err(error) = self.flush(name) {
                panic!("{story}: cannot flush {name}: {error:?}");
            }
        }
        let fits = |k: usize| {
            self.files.iter().all(|(name, before)| {
                let acked = self.acked[..k].iter().filter(|acked| acked.name == *name);
                let values: Vec<&[u8]> = acked.map(|acked| &acked.text[..]).collect();
                oracle(before, &values) == self.bytes(name)
            })
        };
        if !(least..=self.acked.len()).rev().any(fits) {
            for (name, before) in &self.files {
                let all = self.acked.iter().filter(|acked| acked.name == *name);
                let values: Vec<&[u8]> = all.map(|acked| &acked.text[..]).collect();
                let mut counts = 0..=values.len();
                let found =
                    counts.find(|&count| oracle(before, &values[..count]) == self.bytes(name));
                eprintln!("{name}: {} values, fits {found:?}", values.len());
            }
            let any = (0..least).rev().find(|&k| fits(k));
            panic!(
                "{story}: no prefix from {least} to {} fits; shorter: {any:?}; {:?}",
                self.acked.len(),
                self.replayed
            );
        }
    }
}
