//! The pollers: MRTG as packaged, and kymo in its modes; as
//! a daemon whose cycles are counted by the clock, or once.

use super::site::{Configuration, Site};
use crate::bench::{Bench, on_path};
use crate::child::{Running, Usage};
use crate::family::{self, Family};
use crate::fault::{Cannot, Fault, Result};
use crate::procfs;
use crate::serve::free_port;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longest one-shot run.
const ONCE_MAX: Duration = Duration::from_secs(900);
const PATIENCE: Duration = Duration::from_secs(120);
/// Cycles until kymo's requests have grown.
const GROWTH_CYCLES: u64 = 10;
/// Time for which the keeper is watched before a poller starts.
const ALONE: Duration = Duration::from_secs(30);

/// A poller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Who {
    Mrtg,
    /// Values go into .rrd files, each current after a cycle; all devices at once.
    KymoFiles,
    /// Values go to the keeper of a `kymo serve`; all devices at once.
    KymoStored,
    /// Values go to the keeper of a `kymo serve`; requests are spread over the interval.
    KymoSpread,
}

impl Who {
    pub(super) fn name(self) -> &'static str {
        match self {
            Who::Mrtg => "MRTG",
            Who::KymoFiles => "kymo, files",
            Who::KymoStored => "kymo, burst",
            Who::KymoSpread => "kymo, spread",
        }
    }

    pub(super) fn is_here(self, bench: &Bench) -> bool {
        match self {
            Who::Mrtg => on_path("mrtg").is_some(),
            _ => bench.kymo.is_some(),
        }
    }

    fn is_stored(self) -> bool {
        matches!(self, Who::KymoStored | Who::KymoSpread)
    }

    fn command(self, bench: &Bench, configuration: &Configuration) -> Result<Command> {
        let file = &configuration.file;
        if self == Who::Mrtg {
            let mrtg = on_path("mrtg").ok_or_else(|| Fault::new("mrtg is not installed"))?;
            let mut command = Command::new(mrtg);
            command.env("LANG", "C").arg(file);
            command.stdout(Stdio::null());
            return Ok(command);
        }
        let kymo = bench
            .kymo
            .as_ref()
            .ok_or_else(|| Fault::new("kymo is not here"))?;
        let mut command = Command::new(kymo);
        command.arg("poll").arg(file).stdout(Stdio::null());
        if self != Who::KymoSpread {
            command.arg("--burst");
        }
        Ok(command)
    }
}

/// Polls once, from the start of the program to its end.
pub(super) fn once(bench: &Bench, who: Who, configuration: &Configuration) -> Result<Usage> {
    Running::start(bench, &mut who.command(bench, configuration)?)?.finish_watching_memory(ONCE_MAX)
}

/// Checks a configuration.
pub(super) fn check(bench: &Bench, who: Who, configuration: &Configuration) -> Result<Usage> {
    let mut command = who.command(bench, configuration)?;
    command.arg("--check");
    Running::start(bench, &mut command)?.finish_watching_memory(ONCE_MAX)
}

/// A poller that runs as a daemon, with the keeper that stores for it.
pub(super) struct Daemon {
    poller: Family,
    hub: Option<Hub>,
    /// CPU seconds of the keeper in a second without a poller.
    keeper_alone: f64,
}

/// CPU seconds.
#[derive(Clone, Copy, Default)]
pub(super) struct Spent {
    pub poller: f64,
    pub keeper: f64,
    /// CPU of the keeper in the same time without a poller.
    pub keeper_alone: f64,
}

impl Spent {
    /// CPU that polling adds.
    pub(super) fn added(&self) -> f64 {
        self.poller + (self.keeper - self.keeper_alone).max(0.0)
    }
}

impl Daemon {
    /// Starts the daemon; its first cycle begins soon.
    pub(super) fn start(bench: &Bench, who: Who, configuration: &Configuration) -> Result<Daemon> {
        let mut command = who.command(bench, configuration)?;
        let mut hub = None;
        let mut keeper_alone = 0.0;
        if who.is_stored() {
            let started = Hub::start(bench, &configuration.folder)?;
            keeper_alone = started.alone(bench)?;
            command
                .arg("--keeper")
                .arg(started.socket())
                .args(["--files", "ask"]);
            hub = Some(started);
        }
        let poller = Family::start(bench, &mut command)?;
        Ok(Daemon {
            poller,
            hub,
            keeper_alone,
        })
    }

    /// Waits until the poller has walked, made its files and begun to poll, and a cycle is half over.
    pub(super) fn settle(&self, site: &Site, interval_s: u64) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while site.farm.counts().requests == 0 {
            if Instant::now() > until || !self.poller.is_running()? {
                let complaint = self.poller.complaint();
                return Err(Fault::because("see a request", complaint));
            }
            sleep(Duration::from_millis(10));
        }
        sleep(Duration::from_millis(interval_s * 2500));
        Ok(())
    }

    /// Waits until the poller's requests have their final size: they grow after ten cycles without a fault.
    pub(super) fn settle_grown(
        &self,
        bench: &Bench,
        who: Who,
        site: &Site,
        interval_s: u64,
    ) -> Result<()> {
        self.settle(site, interval_s)?;
        let cycles = match who {
            Who::Mrtg => 0,
            _ => bench.pick(GROWTH_CYCLES, 0),
        };
        sleep(Duration::from_secs(interval_s * cycles));
        Ok(())
    }

    /// CPU so far of all processes of the poller, and of the keeper.
    pub(super) fn spent(&self) -> Result<Spent> {
        let keeper = match &self.hub {
            Some(hub) => procfs::cpu_ns(hub.keeper()?)?,
            None => 0,
        };
        Ok(Spent {
            poller: family::cpu_ns(self.poller.root())? as f64 / 1e9,
            keeper: keeper as f64 / 1e9,
            keeper_alone: 0.0,
        })
    }

    /// CPU of a cycle, as the mean of `cycles`.
    pub(super) fn cycle(&self, interval_s: u64, cycles: u64) -> Result<Spent> {
        let before = self.spent()?;
        sleep(Duration::from_secs(interval_s * cycles));
        let after = self.spent()?;
        self.is_alive()?;
        Ok(Spent {
            poller: (after.poller - before.poller) / cycles as f64,
            keeper: (after.keeper - before.keeper) / cycles as f64,
            keeper_alone: self.keeper_alone * interval_s as f64,
        })
    }

    pub(super) fn is_alive(&self) -> Result<()> {
        match self.poller.is_running()? {
            true => Ok(()),
            false => Err(Fault::because("go on polling", self.poller.complaint())),
        }
    }

    /// RssAnon of the poller's processes.
    pub(super) fn memory_bytes(&self) -> Result<u64> {
        let all = procfs::descendants(self.poller.root())?;
        let memory = all
            .iter()
            .map(|process| procfs::anonymous_bytes(process.pid));
        Ok(memory.flatten().sum())
    }

    pub(super) fn end(self) -> Result<()> {
        self.poller.end()?;
        self.hub.map_or(Ok(()), |hub| hub.family.end())
    }
}

/// `kymo serve` with a store for a poller's values.
struct Hub {
    family: Family,
    data: PathBuf,
}

impl Hub {
    fn start(bench: &Bench, base: &Path) -> Result<Hub> {
        let kymo = bench
            .kymo
            .as_ref()
            .ok_or_else(|| Fault::new("kymo is not here"))?;
        let dir = bench.new_dir("hub")?;
        let (data, store) = (dir.join("data"), dir.join("store"));
        let text = format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:{}\"\n[store]\nbase = \"{}\"\nfolder = \"{}\"\n",
            free_port()?,
            base.display(),
            store.display()
        );
        let settings = dir.join("kymo.toml");
        fs::write(&settings, text).cannot("write kymo's settings")?;
        let mut command = Command::new(kymo);
        command
            .arg("serve")
            .arg("--config")
            .arg(settings)
            .arg("--data")
            .arg(&data);
        command.stdout(Stdio::null());
        let mut hub = Hub {
            family: Family::start(bench, &mut command)?,
            data,
        };
        let until = Instant::now() + PATIENCE;
        while !hub.socket().exists() || hub.keeper().is_err() {
            if Instant::now() > until || !hub.family.is_running()? {
                return Err(Fault::because("start kymo serve", hub.family.complaint()));
            }
            sleep(Duration::from_millis(20));
        }
        hub.family.note_groups()?;
        Ok(hub)
    }

    /// CPU seconds of the keeper in a second, before a poller starts.
    fn alone(&self, bench: &Bench) -> Result<f64> {
        let keeper = self.keeper()?;
        let watched = bench.pick(ALONE, Duration::from_secs(2));
        sleep(Duration::from_secs(1));
        let before_ns = procfs::cpu_ns(keeper)?;
        sleep(watched);
        let spent_ns = procfs::cpu_ns(keeper)?.saturating_sub(before_ns);
        Ok(spent_ns as f64 / 1e9 / watched.as_secs_f64())
    }

    fn socket(&self) -> PathBuf {
        self.data.join("keeper-write.sock")
    }

    fn keeper(&self) -> Result<u32> {
        let all = procfs::descendants(self.family.root())?.into_iter();
        let mut pids = all.map(|process| process.pid);
        let keeper = pids.find(|&pid| procfs::words(pid).get(1).is_some_and(|w| w == "keeper"));
        keeper.ok_or_else(|| Fault::new("kymo serve has no keeper"))
    }
}
