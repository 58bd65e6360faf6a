//! Engines that take remote write and answer PromQL: Debian's Prometheus, victoria-metrics, `kymo serve`.

use super::client::Client;
use super::fleet::{Fleet, METRIC};
use crate::bench::{Bench, on_path};
use crate::family::{Cost, Family, cpu_ns, disk_bytes};
use crate::fault::{Cannot, Fault, Result};
use crate::serve::free_port;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Prometheus,
    VictoriaMetrics,
    Vmagent,
    Kymo,
}

impl Who {
    pub(super) const ALL: [Who; 3] = [Who::Prometheus, Who::VictoriaMetrics, Who::Kymo];

    /// Engines that carry samples on.
    pub(super) const CARRIERS: [Who; 2] = [Who::Vmagent, Who::Kymo];

    pub(super) fn name(self) -> &'static str {
        match self {
            Who::Prometheus => "Prometheus",
            Who::VictoriaMetrics => "victoria-metrics",
            Who::Vmagent => "vmagent",
            Who::Kymo => "kymo",
        }
    }

    pub(super) fn is_here(self, bench: &Bench) -> bool {
        match self {
            Who::Prometheus | Who::VictoriaMetrics | Who::Vmagent => {
                on_path(&self.name().to_lowercase()).is_some()
            }
            Who::Kymo => bench.kymo.is_some(),
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(50);
/// Series that one sender may begin at once.
const OF_A_SENDER: usize = 50_000;
/// First number of users who send besides this one.
const OTHER_USERS: u32 = 65_000;

pub(super) struct Engine {
    who: Who,
    family: Family,
    port: u16,
    dir: PathBuf,
}

/// Bytes on the disk at an engine's end.
pub(super) struct Kept {
    /// Samples in their final form.
    pub(super) samples: u64,
    /// The journal, which the engine drops at its next checkpoint.
    pub(super) journal: u64,
}

/// Disk space of the journal's files in the folder of a kymo store.
fn journal_bytes(folder: &std::path::Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).cannot("list the store")? {
        let entry = entry.cannot("list the store")?;
        if entry.file_name().to_string_lossy().starts_with("journal-") {
            bytes += entry
                .metadata()
                .cannot("read the size of a journal")?
                .blocks()
                * 512;
        }
    }
    Ok(bytes)
}

/// Use of resources so far.
#[derive(Clone, Copy)]
pub(super) struct Spent {
    pub(super) cpu_ns: u64,
    pub(super) written_bytes: f64,
}

impl Engine {
    pub(super) fn start(bench: &Bench, who: Who) -> Result<Engine> {
        Engine::start_with(bench, who, None)
    }

    /// Starts one that carries samples on to this URL.
    pub(super) fn carrier(bench: &Bench, who: Who, url: &str) -> Result<Engine> {
        let engine = Engine::start_with(bench, who, Some(url))?;
        if who == Who::Kymo {
            // Samples from before its place in the journal do not go out.
            engine.await_tail()?;
        }
        Ok(engine)
    }

    fn await_tail(&self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while self.client()?.get("/kymo/v1/status")?.count("\"forward-") == 0 {
            if Instant::now() > until {
                return Err(Fault::new("kymo has no tail"));
            }
            sleep(AGAIN);
        }
        Ok(())
    }

    fn start_with(bench: &Bench, who: Who, to: Option<&str>) -> Result<Engine> {
        let dir = bench.new_dir("engine")?;
        let port = free_port()?;
        let mut command = command(bench, who, (&dir, port), to)?;
        command.stdout(Stdio::null());
        let family = Family::start(bench, &mut command)?;
        let mut engine = Engine {
            who,
            family,
            port,
            dir,
        };
        engine.await_start()?;
        Ok(engine)
    }

    fn await_start(&mut self) -> Result<()> {
        let path = match self.who {
            Who::Prometheus => "/-/ready",
            Who::VictoriaMetrics | Who::Vmagent => "/health",
            Who::Kymo => "/kymo/v1/status",
        };
        let until = Instant::now() + PATIENCE;
        loop {
            let is_up = self.client().and_then(|mut client| client.get(path));
            if is_up.is_ok() {
                return self.family.note_groups();
            }
            if Instant::now() > until || !self.family.is_running()? {
                let what = format!("start {}", self.who.name());
                return Err(Fault::because(what, self.family.complaint()));
            }
            sleep(AGAIN);
        }
    }

    /// A connection of one more client.
    pub(super) fn client(&self) -> Result<Client> {
        Client::connect(None, self.port, self.token()?)
    }

    fn token(&self) -> Result<Option<String>> {
        if self.who != Who::Kymo {
            return Ok(None);
        }
        let token = fs::read_to_string(self.dir.join("data/token")).cannot("read the token")?;
        Ok(Some(token.trim().to_string()))
    }

    /// Sends `steps` samples of all series, the last of now: `step_s` apart, as fast as they are taken.
    pub(super) fn fill(&self, fleet: &Fleet, series: usize, steps: u64, step_s: u64) -> Result<()> {
        let senders = series.div_ceil(OF_A_SENDER).max(1);
        let clients = (0..senders).map(|n| {
            let user = (n > 0).then(|| OTHER_USERS + n as u32);
            Client::connect(user, self.port, self.token()?)
        });
        let mut clients = clients.collect::<Result<Vec<Client>>>()?;
        let begin = now_ms()? - (steps * step_s * 1000) as i64;
        for step in 1..=steps {
            let t_ms = begin + (step * step_s * 1000) as i64;
            let requests = fleet.requests(t_ms, step)?;
            let of_each = requests.len().div_ceil(senders);
            for (client, requests) in clients.iter_mut().zip(requests.chunks(of_each)) {
                for request in requests {
                    client.write(request)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn spent(&self) -> Result<Spent> {
        let root = self.family.root();
        Ok(Spent {
            cpu_ns: cpu_ns(root)?,
            written_bytes: Cost::of(&[root])?.written_bytes,
        })
    }

    /// Ends the engine.
    pub(super) fn end(self) -> Result<Kept> {
        self.family.end()?;
        let folder = match self.who {
            Who::Prometheus | Who::VictoriaMetrics | Who::Vmagent => self.dir.join("data"),
            Who::Kymo => self.dir.join("data/store"),
        };
        let all = disk_bytes(&folder)?;
        let journal = match self.who {
            Who::Prometheus => disk_bytes(&folder.join("wal"))?,
            Who::VictoriaMetrics | Who::Vmagent => 0,
            Who::Kymo => journal_bytes(&folder)?,
        };
        Ok(Kept {
            samples: all.saturating_sub(journal),
            journal,
        })
    }

    /// Wall times of a question that is asked again and again, in ms, after once without counting; each has to have `series`
    /// series.
    pub(super) fn times(&self, path: &str, series: usize, rounds: usize) -> Result<Vec<f64>> {
        let mut client = self.client()?;
        let path = match self.who {
            // Without its memory of answers.
            Who::VictoriaMetrics => format!("{path}&nocache=1"),
            Who::Prometheus | Who::Vmagent | Who::Kymo => path.to_string(),
        };
        let mut times = Vec::new();
        for _ in 0..=rounds {
            let answer = client.get(&path)?;
            let found = answer.count("\"metric\":");
            if found != series {
                let why = format!("{found} series came and {series} were expected");
                return Err(Fault::because(format!("ask {}", self.who.name()), why));
            }
            times.push(answer.wall.as_secs_f64() * 1e3);
        }
        Ok(times.split_off(1))
    }
}

fn command(
    bench: &Bench,
    who: Who,
    (dir, port): (&std::path::Path, u16),
    to: Option<&str>,
) -> Result<Command> {
    let data = dir.join("data");
    let address = format!("127.0.0.1:{port}");
    Ok(match who {
        Who::Prometheus => {
            let settings = dir.join("prometheus.yml");
            fs::write(&settings, "global: {}\n").cannot("write Prometheus' settings")?;
            let mut command = Command::new("prometheus");
            command.arg(format!("--config.file={}", settings.display()));
            command.arg(format!("--storage.tsdb.path={}", data.display()));
            command.arg(format!("--web.listen-address={address}"));
            command.args(["--web.enable-remote-write-receiver", "--log.level=error"]);
            command
        }
        Who::VictoriaMetrics => {
            let mut command = Command::new("victoria-metrics");
            command.arg(format!("-storageDataPath={}", data.display()));
            command.arg(format!("-httpListenAddr={address}"));
            command.args(["-retentionPeriod=1y", "-loggerLevel=ERROR"]);
            command
        }
        Who::Vmagent => {
            let mut command = Command::new("vmagent");
            command.arg(format!("-remoteWrite.tmpDataPath={}", data.display()));
            command.arg(format!("-remoteWrite.url={}", to.unwrap_or_default()));
            command.arg(format!("-httpListenAddr={address}"));
            command.arg("-loggerLevel=ERROR");
            command
        }
        Who::Kymo => {
            let kymo = bench.kymo.as_ref();
            let kymo = kymo.ok_or_else(|| Fault::new("kymo is not here"))?;
            let settings = dir.join("kymo.toml");
            let forward =
                to.map(|url| format!("[[forward]]\nurl = \"{url}\"\nmatch = [\"{METRIC}\"]\n"));
            let text = format!("user = \"\"\n{}", forward.unwrap_or_default());
            fs::write(&settings, text).cannot("write kymo's settings")?;
            let mut command = Command::new(kymo);
            command.arg("serve").arg("--config").arg(settings);
            command.arg("--data").arg(data).args(["--listen", &address]);
            command
        }
    })
}

/// This moment, milliseconds since 1970.
pub(super) fn now_ms() -> Result<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(since.cannot("read the clock")?.as_millis() as i64)
}
