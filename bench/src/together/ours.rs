//! One `kymo serve`.

use super::Spent;
use super::work::Work;
use crate::bench::Bench;
use crate::family::Family;
use crate::fault::{Cannot, Fault, Result};
use crate::procfs;
use crate::serve::free_port;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// kymo's processes, by the first word of their command line, and their names.
const PARTS: [(&str, &str); 5] = [
    ("serve", "guardian"),
    ("record", "recorder"),
    ("keeper", "keeper"),
    ("poll", "poller"),
    ("hub", "hub"),
];

pub(super) struct Ours {
    family: Family,
}

impl Ours {
    pub(super) fn start(bench: &Bench, work: &Work) -> Result<Ours> {
        let kymo = bench.kymo.as_ref();
        let kymo = kymo.ok_or_else(|| Fault::new("kymo is not here"))?;
        let dir = bench.new_dir("kymo")?;
        let text = format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:{}\"\ncollectd = [\"127.0.0.1:{}\"]\nrrdcached = [\"{}\"]\n\
             [collectd]\ntrusted = [\"127.0.0.0/8\"]\n[poll]\nmrtg = [\"{}\"]\n[record]\nsubsystems = \"cdnmZ\"\n",
            free_port()?,
            work.ports[0],
            work.sockets[0].display(),
            work.configurations[0].file.display(),
        );
        let settings = dir.join("kymo.toml");
        std::fs::write(&settings, text).cannot("write kymo's settings")?;
        let mut command = Command::new(kymo);
        command.arg("serve").arg("--config").arg(settings);
        command.arg("--data").arg(dir.join("data"));
        command.env("KYMO_DIR", &work.servers.published);
        let family = Family::start(bench, command.stdout(Stdio::null()))?;
        let mut ours = Ours { family };
        ours.wait(&work.sockets[0])?;
        Ok(ours)
    }

    fn wait(&mut self, socket: &Path) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while crate::daemon::wire::Wire::connect(socket).is_err() {
            if Instant::now() > until || !self.family.is_running()? {
                return Err(Fault::because("start kymo serve", self.family.complaint()));
            }
            sleep(Duration::from_millis(50));
        }
        self.family.note_groups()
    }

    pub(super) fn spent(&self) -> Result<Spent> {
        let mut spent: Spent = PARTS.iter().map(|(_, name)| (*name, 0.0)).collect();
        for process in procfs::descendants(self.family.root())? {
            let words = procfs::words(process.pid);
            let part = PARTS
                .iter()
                .position(|(word, _)| words.get(1).is_some_and(|first| first == word));
            let part = part.ok_or_else(|| Fault::new(format!("kymo has a process {words:?}")))?;
            spent[part].1 += procfs::cpu_ns(process.pid)? as f64 / 1e9;
        }
        Ok(spent)
    }
}
