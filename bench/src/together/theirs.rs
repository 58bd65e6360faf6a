//! collectl, MRTG, rrdcached and collectd as Debian packages them; MRTG and collectd write through rrdcached.

use super::Spent;
use super::work::Work;
use crate::bench::{Bench, on_path};
use crate::family::{self, Family};
use crate::fault::{Cannot, Fault, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Theirs {
    daemons: Vec<(&'static str, Family)>,
}

fn program(name: &str) -> Result<PathBuf> {
    on_path(name).ok_or_else(|| Fault::new(format!("{name} is not installed")))
}

impl Theirs {
    pub(super) fn start(bench: &Bench, work: &Work) -> Result<Theirs> {
        let dir = bench.new_dir("peers")?;
        let mut theirs = Theirs {
            daemons: Vec::new(),
        };
        theirs.add(bench, "rrdcached", &mut rrdcached(&dir, &work.sockets[1])?)?;
        let until = Instant::now() + PATIENCE;
        while !work.sockets[1].exists() {
            if Instant::now() > until {
                return Err(Fault::new("rrdcached makes no socket"));
            }
            sleep(Duration::from_millis(50));
        }
        let mut collectl = Command::new(program("collectl")?);
        collectl.args(["-scdnmZ", "-i1:5", "-f"]).arg(&dir);
        theirs.add(bench, "collectl", &mut collectl)?;
        let mut mrtg = Command::new(program("mrtg")?);
        mrtg.env("LANG", "C").arg(&work.configurations[1].file);
        theirs.add(bench, "MRTG", &mut mrtg)?;
        theirs.add(bench, "collectd", &mut collectd(&dir, work)?)?;
        Ok(theirs)
    }

    fn add(&mut self, bench: &Bench, name: &'static str, command: &mut Command) -> Result<()> {
        let family = Family::start(bench, command.stdout(Stdio::null()))?;
        self.daemons.push((name, family));
        Ok(())
    }

    pub(super) fn spent(&self) -> Result<Spent> {
        let spent = |(name, family): &(&'static str, Family)| {
            if !family.is_running()? {
                return Err(Fault::because(
                    format!("go on with {name}"),
                    family.complaint(),
                ));
            }
            Ok((*name, family::cpu_ns(family.root())? as f64 / 1e9))
        };
        self.daemons.iter().map(spent).collect()
    }
}

/// rrdcached with a journal, and values written after half an hour, as its man page advises.
fn rrdcached(dir: &Path, socket: &Path) -> Result<Command> {
    let journal = dir.join("journal");
    std::fs::create_dir(&journal).cannot("make the journal's folder")?;
    let mut command = Command::new(program("rrdcached")?);
    command.arg("-g").arg("-p").arg(dir.join("rrdcached.pid"));
    command.arg("-l").arg(format!("unix:{}", socket.display()));
    command.arg("-b").arg(dir).arg("-j").arg(journal);
    command.args(["-w", "1800", "-z", "1800", "-f", "3600"]);
    Ok(command)
}

fn collectd(dir: &Path, work: &Work) -> Result<Command> {
    let shown = dir.display();
    let text = format!(
        "Hostname \"hub\"\nFQDNLookup false\nBaseDir \"{shown}\"\nPIDFile \"{shown}/pid\"\nInterval 10\n\
         TypesDB \"/usr/share/collectd/types.db\"\nLoadPlugin network\nLoadPlugin rrdcached\n\
         <Plugin network>\n Listen \"127.0.0.1\" \"{}\"\n</Plugin>\n\
         <Plugin rrdcached>\n DaemonAddress \"unix:{}\"\n DataDir \"{shown}/collectd\"\n CreateFiles true\n\
         CollectStatistics false\n</Plugin>\n",
        work.ports[1],
        work.sockets[1].display()
    );
    let settings = dir.join("collectd.conf");
    std::fs::write(&settings, text).cannot("write collectd's settings")?;
    let mut command = Command::new(program("collectd")?);
    command.arg("-f").arg("-C").arg(settings);
    Ok(command)
}
