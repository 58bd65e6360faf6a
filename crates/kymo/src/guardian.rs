//! The guardian of `kymo serve`: starts the recorder and the hub, starts either again when it dies, and
//! ends both. It keeps what privileges it was given, so it does nothing else: no byte from the network
//! and none of a recording passes through it.

use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kymo_sys::machine::{self, Signal, SignalFile};
use kymo_sys::privilege::{self, Role, State};

use crate::commands::hub::Order;
use crate::secret;

mod notify;
mod ward;

use ward::Ward;

/// How long the children may take to end, so that all is over within a second.
const PATIENCE: Duration = Duration::from_millis(900);
/// How often to look whether the recorder that has the folder is gone.
const FOLDER_TAKEN: Duration = Duration::from_secs(10);
/// No longer asleep than this; nothing depends on it.
const NAP: Duration = Duration::from_secs(3600);
/// The exit code of a child that has said why it cannot run.
const REFUSED: i32 = 2;
/// What children need of the environment.
const KEPT_VARIABLES: [&str; 3] = ["TZ", "TZDIR", "RUST_BACKTRACE"];

/// All that is decided before anything is started.
pub struct Plan {
    /// The recorder; `None`: nothing is recorded.
    pub recorder: Option<Recorder>,
    /// Told to the hub; its files and its code are filled in at each start.
    pub order: Order,
    /// As whom the hub runs.
    pub hub_role: Role,
    /// Where requests come in.
    pub listener: TcpListener,
    /// `http://127.0.0.1:4280/`.
    pub url: String,
    /// Where the token can be read, if anywhere.
    pub token_path: Option<PathBuf>,
}

/// How to record.
pub struct Recorder {
    /// Into which folder, with its cap.
    pub place: String,
    /// Held by whoever records there.
    pub lock: PathBuf,
    /// Words of the command line.
    pub words: Vec<std::ffi::OsString>,
    /// As whom.
    pub role: Role,
}

/// Guards until a signal says stop.
pub fn run(plan: Plan) -> Result<ExitCode> {
    let signals = SignalFile::block().context("cannot wait for signals")?;
    let now = Instant::now();
    let guardian = Guardian {
        recorder: Ward::new("recorder", now),
        hub: Ward::new("hub", now),
        plan,
        signals,
        ready: None,
        code: None,
        was_ready: false,
        reading_along: false,
        watchdog: notify::watchdog(),
    };
    guardian.run()
}

struct Guardian {
    plan: Plan,
    signals: SignalFile,
    recorder: Ward,
    hub: Ward,
    /// Where the hub says that it answers, until it has.
    ready: Option<PipeReader>,
    /// The code that the present hub takes.
    code: Option<String>,
    was_ready: bool,
    /// Another recorder has the folder.
    reading_along: bool,
    /// How often the service manager wants a sign.
    watchdog: Option<Duration>,
}

impl Guardian {
    fn run(mut self) -> Result<ExitCode> {
        loop {
            self.start_what_is_due()?;
            let may_hear = self.wait();
            while let Some(signal) = self.signals.take() {
                match (signal, self.recorder.pid()) {
                    (Signal::Stop, _) => {
                        self.end();
                        return Ok(ExitCode::SUCCESS);
                    }
                    (Signal::Flush, Some(recorder)) => machine::ask_to_flush(recorder),
                    _ => {}
                }
            }
            if may_hear {
                self.hear_hub();
            }
            if let Some(code) = self.look_after_children() {
                self.end();
                return Ok(code);
            }
        }
    }

    /// Whether the hub has something to say.
    fn wait(&self) -> bool {
        let now = Instant::now();
        let recorder = self.plan.recorder.as_ref().and(self.recorder.due());
        let next = [recorder, self.hub.due()].into_iter().flatten().min();
        let nap = next.map_or(NAP, |due| due.saturating_duration_since(now));
        let nap = self.watchdog.map_or(nap, |often| nap.min(often));
        let mut files = vec![self.signals.as_fd()];
        files.extend(self.ready.as_ref().map(AsFd::as_fd));
        let readable = machine::wait_readable(&files, nap);
        if self.watchdog.is_some() {
            notify::send("WATCHDOG=1");
        }
        readable.get(1) == Some(&true)
    }

    fn start_what_is_due(&mut self) -> Result<()> {
        let now = Instant::now();
        if self.recorder.is_due(now) && self.plan.recorder.is_some() {
            self.start_recorder(now);
        }
        if self.hub.is_due(now) {
            self.start_hub(now)?;
        }
        Ok(())
    }

    fn start_recorder(&mut self, now: Instant) {
        let Some(recorder) = &self.plan.recorder else {
            return;
        };
        if let Some(holder) = holder(&recorder.lock) {
            if !self.reading_along {
                say(&format!(
                    "process {holder} is recording there already; it is read along"
                ));
            }
            self.reading_along = true;
            return self.recorder.put_off(now + FOLDER_TAKEN);
        }
        self.reading_along = false;
        let mut command = own_command("record");
        command.args(&recorder.words).stdin(Stdio::null());
        privilege::confine(&mut command, recorder.role.clone());
        self.recorder.start(command.spawn(), now);
    }

    fn start_hub(&mut self, now: Instant) -> Result<()> {
        let (heard, told) = std::io::pipe().context("cannot make a pipe")?;
        let role = Role {
            inherits: vec![self.plan.listener.as_raw_fd(), told.as_raw_fd()],
            ..self.plan.hub_role.clone()
        };
        let code = secret::fresh_code()?;
        let order = Order {
            listener: self.plan.listener.as_raw_fd(),
            ready: told.as_raw_fd(),
            code: Some(code.clone()),
            ..self.plan.order.clone()
        };
        let mut command = own_command("hub");
        command.stdin(Stdio::piped());
        privilege::confine(&mut command, role);
        let mut child = command.spawn();
        if let Some(mut stdin) = child.as_mut().ok().and_then(|child| child.stdin.take()) {
            // A hub that died already is seen in a moment.
            let _ = stdin.write_all(&serde_json::to_vec(&order)?);
        }
        (self.ready, self.code) = (Some(heard), Some(code));
        self.hub.start(child, now);
        Ok(())
    }

    /// One line on what the hub may do comes when it answers; nothing comes if it died before.
    fn hear_hub(&mut self) {
        let Some(mut ready) = self.ready.take() else {
            return;
        };
        let mut line = [0; 1024];
        let length = ready.read(&mut line).unwrap_or(0);
        if length == 0 {
            return;
        }
        let state = String::from_utf8_lossy(&line[..length]);
        if !self.was_ready {
            self.say_recorder();
        }
        say(&format!("hub: {}", state.trim_end()));
        self.say_url();
        if !self.was_ready {
            notify::send("READY=1");
        }
        self.was_ready = true;
    }

    fn say_recorder(&self) {
        let Some(recorder) = &self.plan.recorder else {
            return;
        };
        if let Some(state) = self.recorder.pid().and_then(State::of) {
            say(&format!("recording to {}", recorder.place));
            say(&format!("recorder: {}", state.words()));
        }
    }

    /// The code opens the texts: it is shown to who sits at the terminal, and kept out of logs.
    fn say_url(&mut self) {
        let url = &self.plan.url;
        let code = self.code.take();
        match (machine::stderr_is_terminal(), code, &self.plan.token_path) {
            (true, Some(code), _) => say(&format!("open {url}#code={code} (good once)")),
            (_, _, Some(path)) => say(&format!("open {url}; the token is in {}", path.display())),
            _ => say(&format!("open {url}")),
        }
    }

    /// Sees who has died. `Some`: there is no point in going on.
    fn look_after_children(&mut self) -> Option<ExitCode> {
        let now = Instant::now();
        if let Some(status) = self.hub.ended() {
            if !self.was_ready && status.code() == Some(REFUSED) {
                // It has said why; it would be the same the next time.
                return Some(ExitCode::from(REFUSED as u8));
            }
            self.ready = None;
            self.hub.failed(now, &words(status));
        }
        if let Some(status) = self.recorder.ended() {
            self.recorder.failed(now, &words(status));
        }
        None
    }

    /// Ends both, within a second. A recorder that is still writing then is left to it.
    fn end(&mut self) {
        notify::send("STOPPING=1");
        let deadline = Instant::now() + PATIENCE;
        for ward in [&self.recorder, &self.hub] {
            if let Some(pid) = ward.pid() {
                machine::ask_to_end(pid);
            }
        }
        while self.recorder.is_running() || self.hub.is_running() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            machine::wait_readable(&[self.signals.as_fd()], left);
            while self.signals.take().is_some() {}
            self.recorder.ended();
            self.hub.ended();
        }
        self.hub.kill();
        if self.recorder.is_running() {
            say("the recorder is still writing, and ends by itself");
        }
    }
}

/// This very program, also when its file has been replaced meanwhile.
fn own_command(word: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    let kept = KEPT_VARIABLES
        .iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    command
        .arg0("kymo")
        .arg(word)
        .env_clear()
        .envs(kept)
        .stdout(Stdio::null());
    command
}

/// Who records there, as the lock file says.
fn holder(lock: &std::path::Path) -> Option<String> {
    // The folder may be another user's: no link is followed, and no pipe waited for.
    let mut file = File::options()
        .read(true)
        .custom_flags(machine::PLAIN_FILE)
        .open(lock)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    match file.try_lock_shared() {
        Err(std::fs::TryLockError::WouldBlock) => {
            let mut text = String::new();
            file.read_to_string(&mut text).ok()?;
            Some(text.trim().to_string())
        }
        _ => None,
    }
}

fn words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(0), _) => "ended".into(),
        (Some(code), _) => format!("ended with exit code {code}"),
        (_, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended".into(),
    }
}

/// A line for people. A terminal that has gone is no reason to end.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "kymo: {line}");
}

/// The child's end, without waiting.
fn ended(child: &mut Child) -> Option<ExitStatus> {
    child.try_wait().ok().flatten()
}
