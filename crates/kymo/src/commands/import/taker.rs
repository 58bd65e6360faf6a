//! The keeper that takes imported series: that of a running `kymo serve`, or a thread of this process, which has opened the
//! store.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, bail};
use kymo_base::name::DisplayName;
use kymo_ingest::keeper;
use kymo_ingest::listener::StopSignal;
use kymo_ingest::requests::{Answers, Role};
use kymo_keeper_client::Keeper;
use kymo_store::{Settings, Store};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::RealDisk;
use kymo_sys::{machine, talk};

use crate::commands::data::place;
use crate::commands::serve::ADMIN_SOCKET;

/// Time for which a lock of another program is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The keeper that takes imported series.
pub(super) struct Taker {
    keeper: Keeper,
    /// The thread of a store that this process has opened.
    opened: Option<JoinHandle<Result<(), String>>>,
}

impl Taker {
    /// The keeper that runs with a data folder, or else a thread of this process.
    pub(super) fn of(data: &Path) -> Result<Taker> {
        let socket = data.join(ADMIN_SOCKET);
        match UnixStream::connect(&socket) {
            Ok(_) => Ok(Taker {
                keeper: Keeper::of_administrator(socket),
                opened: None,
            }),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(Error::new(error).context(format!(
                    "cannot ask the keeper at {}: only root and the user who started kymo serve may import",
                    socket.display()
                )))
            }
            Err(_) => Taker::open(data),
        }
    }

    fn open(data: &Path) -> Result<Taker> {
        let (folder, base) = place(data).with_context(|| {
            format!(
                "cannot import into {}: start kymo serve --data {0} once, which makes its store",
                data.display()
            )
        })?;
        let settings = Settings {
            lock_wait: LOCK_WAIT,
            ..Settings::new(folder, base)
        };
        let claim = keeper::claim(&settings, &mut |line| say(line));
        let claim = claim.map_err(Error::msg)?;
        let opened = Store::open_claimed(settings, claim, Arc::new(RealDisk), Arc::new(RealClock));
        let (store, replayed) = opened.map_err(Error::msg)?;
        replayed.notices.iter().for_each(|line| say(line));
        let stop = StopSignal::new().context("cannot make a signal")?;
        let (asks, answers) = UnixStream::pair().context("cannot make a socket")?;
        // The thread ends when the other end of the socket is closed.
        let thread = thread::Builder::new().name("store".into());
        let thread = thread
            .spawn(move || serve(&store, answers, &stop))
            .context("cannot begin a thread")?;
        Ok(Taker {
            keeper: Keeper::over(asks, PathBuf::from(data)),
            opened: Some(thread),
        })
    }

    /// The keeper.
    pub(super) fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// Ends the store in order if this process has opened it.
    pub(super) fn end(self) -> Result<()> {
        drop(self.keeper);
        let Some(thread) = self.opened else {
            return Ok(());
        };
        match thread.join() {
            Ok(ended) => ended.map_err(|why| anyhow!("cannot end the store in order: {why}")),
            Err(_) => bail!("cannot end the store in order: its thread ended early"),
        }
    }
}

/// Answers one client until it goes, then ends the store.
fn serve(store: &Store, client: UnixStream, stop: &StopSignal) -> Result<(), String> {
    let user = machine::user();
    let role = Role::Admin {
        owner: user,
        guardian: 0,
    };
    let side = Answers::of_store(role, Arc::new(|_, line: &str| say(line)));
    let threads = store.start(1, Arc::new(|line: &str| say(line)));
    side.answer_all(client, store, stop);
    threads.stop();
    let ended = store.shutdown(false).map_err(|error| error.to_string());
    store.take_notices().iter().for_each(|line| say(line));
    ended
}

fn say(line: &str) {
    talk::say(format_args!("kymo: {}", DisplayName(line.as_bytes())));
}
