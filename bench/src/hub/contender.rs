//! The hubs: collectd as Debian packages it, collectd set to write rarely, `kymo serve`. Each stores on its own ext4, so
//! that all writes of the device are the hub's.

use super::fleet::Fleet;
use crate::bench::{Bench, on_path};
use crate::daemon::files;
use crate::daemon::wire::Wire;
use crate::disk::LoopDisk;
use crate::family::{Cost, Family};
use crate::fault::{Cannot, Fault, Result};
use crate::procfs;
use crate::row::files_below;
use crate::serve::free_port;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The program that stores the values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Who {
    /// As packaged: each value is written at once.
    Collectd,
    /// CacheTimeout 21600: values younger than six hours wait in memory.
    Tuned,
    Kymo,
    /// `[store] files = "7d"`.
    KymoWithFiles,
    /// Store and files in the data folder, as by default.
    KymoInOneFolder,
}

impl Who {
    pub(super) fn name(self) -> &'static str {
        match self {
            Who::Collectd => "collectd",
            Who::Tuned => "tuned collectd",
            Who::Kymo => "kymo",
            Who::KymoWithFiles => "kymo with files at once",
            Who::KymoInOneFolder => "kymo",
        }
    }

    pub(super) fn is_ours(self) -> bool {
        matches!(self, Who::Kymo | Who::KymoWithFiles | Who::KymoInOneFolder)
    }

    pub(super) fn is_here(self, bench: &Bench) -> bool {
        match self.is_ours() {
            true => bench.kymo.is_some(),
            false => on_path("collectd").and(on_path("rrdtool")).is_some(),
        }
    }

    /// Values a second that it receives without a loss, as far as known: collectd's queue in the kernel is short.
    pub(super) fn rate(self) -> f64 {
        if self.is_ours() { 200_000.0 } else { 50_000.0 }
    }

    /// Longest delay that a sender may catch up.
    pub(super) fn behind_max(self) -> Duration {
        Duration::from_millis(if self.is_ours() { 50 } else { 5 })
    }
}

/// For journals, segments, and the file system's own use.
const ROOM_MB: u32 = 1200;
/// Bytes of a value in the store, for many values of a series: with a wide margin.
const STORE_BYTES_A_VALUE: u64 = 40;
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time for a hub to process values, or to end: collectd writes all its values then.
const BUSY_PATIENCE: Duration = Duration::from_secs(1800);
const AGAIN: Duration = Duration::from_millis(20);
/// A hub is at rest if it used less than [`REST_NS`] of CPU in this time.
const REST: Duration = Duration::from_secs(1);
const REST_NS: u64 = 5_000_000;
/// A hub has caught up if it used less than [`BREATH_NS`] of CPU in this time; for hubs that must not fall far behind.
const BREATH: Duration = Duration::from_millis(25);
const BREATH_NS: u64 = 1_000_000;

pub(super) struct Hub {
    pub who: Who,
    // Ended before its disk is unmounted.
    family: Option<Family>,
    pub port: u16,
    /// Files that are not measured: recordings, sockets, configuration.
    dir: PathBuf,
    pub disk: LoopDisk,
}

impl Hub {
    /// Starts a hub on a disk with space for these numbers of series and values.
    pub(super) fn start(bench: &Bench, who: Who, series: usize, values: u64) -> Result<Hub> {
        Hub::start_with(bench, who, series, values, "")
    }

    /// Starts a hub with more tables in kymo's configuration.
    pub(super) fn start_with(
        bench: &Bench,
        who: Who,
        series: usize,
        values: u64,
        more: &str,
    ) -> Result<Hub> {
        let values_mb = (values * STORE_BYTES_A_VALUE / 1_000_000) as u32;
        let room_mb = ROOM_MB + files::mb(series) + values_mb;
        let mut hub = Hub {
            who,
            family: None,
            port: free_port()?,
            dir: bench.new_dir("hub")?,
            disk: LoopDisk::mount_sized(bench, "hub", room_mb)?,
        };
        fs::create_dir(hub.base()).cannot("make the base")?;
        let mut command = match who.is_ours() {
            true => hub.kymo(bench, more)?,
            false => hub.collectd()?,
        };
        command.stdout(Stdio::null());
        hub.family = Some(Family::start(bench, &mut command)?);
        hub.await_start()?;
        Ok(hub)
    }

    fn collectd(&self) -> Result<Command> {
        let (dir, base, port) = (self.dir.display(), self.base(), self.port);
        let base = base.display();
        let cache = match self.who {
            Who::Tuned => " CacheTimeout 21600\n",
            _ => "",
        };
        let text = format!(
            "Hostname \"hub\"\nFQDNLookup false\nBaseDir \"{dir}\"\nPIDFile \"{dir}/pid\"\nInterval 10\n\
             TypesDB \"/usr/share/collectd/types.db\"\nLoadPlugin network\nLoadPlugin rrdtool\n\
             <Plugin network>\n Listen \"127.0.0.1\" \"{port}\"\n</Plugin>\n\
             <Plugin rrdtool>\n DataDir \"{base}\"\n{cache}</Plugin>\n"
        );
        let settings = self.dir.join("collectd.conf");
        fs::write(&settings, text).cannot("write collectd's settings")?;
        let mut command = Command::new("collectd");
        command.arg("-f").arg("-C").arg(settings);
        Ok(command)
    }

    fn kymo(&self, bench: &Bench, more: &str) -> Result<Command> {
        let kymo = bench.kymo.as_ref();
        let kymo = kymo.ok_or_else(|| Fault::new("kymo is not here"))?;
        let files = match self.who {
            Who::KymoWithFiles => "files = \"7d\"\n",
            _ => "",
        };
        let (base, store) = (self.base(), self.store());
        let store = match self.who {
            Who::KymoInOneFolder => String::new(),
            _ => format!(
                "[store]\nbase = \"{}\"\nfolder = \"{}\"\n{files}",
                base.display(),
                store.display()
            ),
        };
        let text = format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:{}\"\ncollectd = [\"127.0.0.1:{}\"]\n\
             [collectd]\ntrusted = [\"127.0.0.0/8\"]\n{store}{more}",
            free_port()?,
            self.port
        );
        let settings = self.dir.join("kymo.toml");
        fs::write(&settings, text).cannot("write kymo's settings")?;
        let mut command = Command::new(kymo);
        command.arg("serve").arg("--config").arg(settings);
        command.arg("--data").arg(self.data());
        Ok(command)
    }

    fn await_start(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let is_up = match self.who.is_ours() {
                true => self.answers(),
                false => procfs::udp_queue(self.port)?.is_some(),
            };
            let family = self.family()?;
            if is_up {
                return self.family.as_mut().map_or(Ok(()), Family::note_groups);
            }
            if Instant::now() > until || !family.is_running()? {
                return Err(Fault::because(
                    format!("start {}", self.who.name()),
                    family.complaint(),
                ));
            }
            sleep(AGAIN);
        }
    }

    fn family(&self) -> Result<&Family> {
        let family = self.family.as_ref();
        family.ok_or_else(|| Fault::new("no hub runs"))
    }

    pub(super) fn base(&self) -> PathBuf {
        self.disk.dir().join("rrd")
    }

    /// kymo's data folder.
    pub(super) fn data(&self) -> PathBuf {
        match self.who {
            Who::KymoInOneFolder => self.disk.dir().join("data"),
            _ => self.dir.join("data"),
        }
    }

    /// kymo's store.
    fn store(&self) -> PathBuf {
        self.disk.dir().join("store")
    }

    fn socket(&self) -> PathBuf {
        self.data().join("rrdcached.sock")
    }

    /// The folder of kymo's recorder.
    pub(super) fn recordings(&self) -> PathBuf {
        self.data()
    }

    /// The socket on which kymo's keeper answers requests for stored series.
    pub(super) fn keeper_socket(&self) -> PathBuf {
        self.data().join("keeper.sock")
    }

    /// Kills kymo's keeper and waits for the next one.
    pub(super) fn start_keeper_again(&self) -> Result<()> {
        let old = self.own_pid()?;
        let pid =
            Pid::from_raw(old as i32).ok_or_else(|| Fault::new("the keeper has no number"))?;
        kill_process(pid, Signal::KILL).cannot("end the keeper")?;
        let until = Instant::now() + PATIENCE;
        while self.own_pid().is_ok_and(|pid| pid == old) || !self.answers() {
            if Instant::now() > until {
                return Err(Fault::new("no keeper came back"));
            }
            sleep(AGAIN);
        }
        Ok(())
    }

    /// True if kymo's keeper answers.
    fn answers(&self) -> bool {
        let reply = self.connect().and_then(|mut wire| wire.ask("PING"));
        reply.is_ok() && self.own_pid().is_ok()
    }

    /// Connects to kymo's keeper.
    pub(super) fn connect(&self) -> Result<Wire> {
        Wire::connect(&self.socket())
    }

    /// The process that receives and stores: kymo's keeper, or collectd itself.
    pub(super) fn own_pid(&self) -> Result<u32> {
        let root = self.family()?.root();
        if !self.who.is_ours() {
            return Ok(root);
        }
        let all = procfs::descendants(root)?.into_iter();
        let mut pids = all.map(|process| process.pid);
        let keeper = pids.find(|&pid| procfs::words(pid).get(1).is_some_and(|w| w == "keeper"));
        keeper.ok_or_else(|| Fault::new("kymo serve has no keeper"))
    }

    /// The file of a series.
    pub(super) fn file(&self, path: &str) -> String {
        self.base().join(path).to_string_lossy().into_owned()
    }

    /// Use of resources so far, after a sync.
    pub(super) fn spent(&self) -> Result<Spent> {
        self.disk.sync()?;
        let (root, own) = (self.family()?.root(), self.own_pid()?);
        let process = procfs::descendants(own)?.into_iter().next();
        let process = process.ok_or_else(|| Fault::new("the hub has ended"))?;
        Ok(Spent {
            own_seconds: process.ticks as f64 / procfs::TICKS_A_SECOND,
            all_seconds: Cost::of(&[root])?.cpu_s,
            ..self.written(procfs::written_bytes(own))?
        })
    }

    fn written(&self, by_proc: Option<u64>) -> Result<Spent> {
        Ok(Spent {
            own_seconds: 0.0,
            all_seconds: 0.0,
            bytes: self.disk.written_bytes()? as f64,
            writes: self.disk.writes()? as f64,
            by_proc_bytes: by_proc.unwrap_or(0) as f64,
        })
    }

    /// Ends the hub, whereupon collectd writes all its values; returns the cost of the end.
    pub(super) fn end(&mut self) -> Result<Spent> {
        let family = self.family.take();
        let family = family.ok_or_else(|| Fault::new("no hub runs"))?;
        let children = procfs::descendants(family.root())?;
        let (cpu, written_bytes) = family.end_within(BUSY_PATIENCE)?;
        // The guardian does not wait for a keeper that is still writing.
        let until = Instant::now() + PATIENCE;
        let is_there = |pid: u32| !procfs::words(pid)[0].is_empty();
        while children.iter().any(|child| is_there(child.pid)) && Instant::now() < until {
            sleep(AGAIN);
        }
        self.disk.sync()?;
        Ok(Spent {
            own_seconds: cpu.as_secs_f64(),
            all_seconds: cpu.as_secs_f64(),
            ..self.written(Some(written_bytes))?
        })
    }

    /// Waits until the hub has no more work.
    pub(super) fn await_rest(&self) -> Result<()> {
        self.await_quiet(REST, REST_NS)?;
        // A hub that waited for the disk also looked at rest.
        self.disk.sync()?;
        self.await_quiet(REST, REST_NS)
    }

    /// Waits until the hub seems to have received everything.
    pub(super) fn await_breath(&self) -> Result<()> {
        self.await_quiet(BREATH, BREATH_NS)
    }

    fn await_quiet(&self, length: Duration, most_ns: u64) -> Result<()> {
        let (until, pid) = (Instant::now() + BUSY_PATIENCE, self.own_pid()?);
        let mut before = procfs::cpu_ns(pid)?;
        while Instant::now() < until {
            sleep(length);
            let now = procfs::cpu_ns(pid)?;
            // The CPU time of ended threads is missing in the sum.
            if now.abs_diff(before) < most_ns && self.queue()?.waiting_bytes == 0 {
                return Ok(());
            }
            before = now;
        }
        Err(Fault::new(format!("{} stays busy", self.who.name())))
    }

    /// The hub's queue of datagrams. The kernel may omit it from its list while sockets come and go.
    fn queue(&self) -> Result<procfs::UdpQueue> {
        for _ in 0..50 {
            if let Some(queue) = procfs::udp_queue(self.port)? {
                return Ok(queue);
            }
            sleep(AGAIN);
        }
        Err(Fault::new("the hub has closed its socket"))
    }

    /// Datagrams that the kernel dropped so far, since the hub did not receive them in time.
    pub(super) fn dropped(&self) -> Result<u64> {
        Ok(self.queue()?.dropped)
    }

    /// A fault if the kernel dropped a datagram, or kymo logged a loss.
    pub(super) fn lost_nothing(&self) -> Result<()> {
        let (name, dropped) = (self.who.name(), self.dropped()?);
        if dropped > 0 {
            let what = format!("{dropped} datagrams to {name} were dropped");
            return Err(Fault::new(what));
        }
        let log = self.family()?.stderr_text();
        let line = log.lines().find(|line| line.contains("collectd on "));
        line.map_or(Ok(()), |line| Err(Fault::new(line)))
    }

    /// Waits until there is an .rrd file of each series, if files are made before a request for them.
    pub(super) fn await_files(&self, count: usize) -> Result<()> {
        if self.who == Who::Kymo {
            return Ok(());
        }
        let until = Instant::now() + BUSY_PATIENCE;
        loop {
            let found = files_below(&self.base())?;
            let found = found.iter().filter(|path| is_rrd(path)).count();
            if found == count {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(Fault::new(format!("{found} of {count} files are there")));
            }
            sleep(Duration::from_millis(500));
        }
    }

    /// A fault unless the last value of each series is there.
    pub(super) fn has_all(&self, fleet: &Fleet) -> Result<()> {
        let mut wire = self.connect()?;
        for series in 0..fleet.len() {
            let path = fleet.path(series);
            let row = fleet.last(series) / super::fleet::STEP_S * super::fleet::STEP_S;
            wire.send(format!("LAST {path}\n").as_bytes())?;
            let reply = wire.reply()?.trim().to_string();
            if reply != format!("0 {row}") {
                return Err(Fault::new(format!("LAST {path} is `{reply}`, not {row}")));
            }
        }
        Ok(())
    }

    /// Has kymo write a series' file.
    pub(super) fn bring_up_to_date(&self, path: &str) -> Result<()> {
        if !self.who.is_ours() {
            return Ok(());
        }
        let mut wire = self.connect()?;
        wire.send(format!("FLUSH {path}\n").as_bytes())?;
        let reply = wire.reply()?;
        match reply.starts_with("0 ") {
            true => Ok(()),
            false => Err(Fault::new(format!("FLUSH {path} is `{}`", reply.trim()))),
        }
    }

    /// Number of values that are in the journal only, once kymo has ended.
    pub(super) fn unsealed(&self, bench: &Bench) -> Result<u64> {
        let kymo = bench.kymo.as_ref();
        let kymo = kymo.ok_or_else(|| Fault::new("kymo is not here"))?;
        let mut status = Command::new(kymo);
        let output = status
            .arg("status")
            .arg("--json")
            .arg(self.store())
            .output();
        let output = output.cannot("ask for the store's status")?.stdout;
        let number = crate::serve::number(&output, "unsaved_values");
        let number = number.ok_or_else(|| Fault::new("the status tells of no unsaved values"))?;
        Ok(number as u64)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // The hub must release its disk; if it does not end, the guard kills it.
        if self.family.is_some() {
            let _ = self.end();
        }
    }
}

fn is_rrd(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "rrd")
}

/// Use of resources until some moment, or between two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    /// CPU of the process that receives and stores.
    pub own_seconds: f64,
    /// CPU of all processes that kymo started.
    pub all_seconds: f64,
    /// Bytes written to the device.
    pub bytes: f64,
    pub writes: f64,
    /// Bytes in /proc/PID/io of the process that receives and stores.
    pub by_proc_bytes: f64,
}

impl Spent {
    /// The difference to an earlier `before`.
    pub(super) fn since(&self, before: &Spent) -> Spent {
        Spent {
            own_seconds: self.own_seconds - before.own_seconds,
            all_seconds: self.all_seconds - before.all_seconds,
            bytes: self.bytes - before.bytes,
            writes: self.writes - before.writes,
            by_proc_bytes: self.by_proc_bytes - before.by_proc_bytes,
        }
    }
}
