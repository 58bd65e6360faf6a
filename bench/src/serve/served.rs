//! `kymo serve` on a folder and a free port, answering.

use super::request::{Form, free_port, get, get_ok, number};
use crate::bench::Bench;
use crate::family::Family;
use crate::fault::{Fault, Result};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(20);

pub(super) struct Served {
    family: Family,
    pub port: u16,
}

impl Served {
    /// Starts the service and waits until it answers.
    pub(super) fn start(bench: &Bench, kymo: &Path, folder: &Path) -> Result<Served> {
        let mut served = Served::launch(bench, kymo, folder, free_port()?)?;
        served.await_answer()?;
        Ok(served)
    }

    /// Starts the service without waiting.
    pub(super) fn launch(bench: &Bench, kymo: &Path, folder: &Path, port: u16) -> Result<Served> {
        let mut command = Command::new(kymo);
        command.arg("serve").arg("--data").arg(folder);
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        command.stdout(Stdio::null());
        let family = Family::start(bench, &mut command)?;
        Ok(Served { family, port })
    }

    /// Waits until the status has a sample.
    pub(super) fn await_answer(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = get(self.port, "/kymo/v1/status", Form::Plain);
            if answer.is_ok_and(|a| a.status == 200 && number(&a.body, "thru") > Some(0.0)) {
                return self.family.note_groups();
            }
            if Instant::now() > until || !self.family.is_running()? {
                let why = self.family.complaint();
                return Err(Fault::because("start kymo serve", why));
            }
            std::thread::sleep(AGAIN);
        }
    }

    pub(super) fn root(&self) -> u32 {
        self.family.root()
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// First and last time of its samples, in seconds since 1970.
    pub(super) fn extent(&self) -> Result<(f64, f64)> {
        let body = get_ok(self.port, "/kymo/v1/status", Form::Plain)?.body;
        match (number(&body, "from"), number(&body, "thru")) {
            (Some(from), Some(thru)) => Ok((from, thru)),
            _ => Err(Fault::new("kymo's status has no extent")),
        }
    }

    pub(super) fn end(self) -> Result<()> {
        self.family.end()
    }
}
