//! The folder of a store without a running `kymo serve`: a thread of this process answers in the keeper's place, and only
//! reads.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use anyhow::{Context as _, Error, Result};
use kymo_ingest::listener::StopSignal;
use kymo_ingest::requests::{Answers, Role};
use kymo_keeper_client::Keeper;
use kymo_store::{Store, store_folder};
use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::disk::{Disk, RealDisk};

/// A keeper for the store in `dir`, or in `store`, `kymo` or `.kymo` below it.
pub(crate) fn keeper_of(dir: &Path) -> Result<Keeper> {
    let (folder, base) = place(dir)?;
    let (disk, clock): (Arc<dyn Disk>, Arc<dyn Clock>) = (Arc::new(RealDisk), Arc::new(RealClock));
    let store = Store::open_to_look(&folder, &base, &disk, &clock).map_err(Error::msg)?;
    let stop = StopSignal::new().context("cannot make a signal")?;
    let (asks, answers) = UnixStream::pair().context("cannot make a socket")?;
    // The thread ends when the other end of the socket is closed.
    thread::spawn(move || {
        let side = Answers::of_store(Role::Read, Arc::new(|_, _: &str| {}));
        side.answer_all(answers, &store, &stop);
    });
    Ok(Keeper::over(asks, dir.to_path_buf()))
}

/// Folder of the store, and base of its .rrd files, as `kymo serve` and `kymo rrdcached` lay them out.
pub(crate) fn place(dir: &Path) -> Result<(PathBuf, PathBuf)> {
    let real = std::fs::canonicalize(dir);
    let real = real.with_context(|| format!("cannot open {}", dir.display()))?;
    let of_serve = real.join("store");
    let looked = if of_serve.is_dir() { &of_serve } else { &real };
    let folder = store_folder(&RealDisk, looked).map_err(Error::msg)?;
    let folder = folder
        .with_context(|| format!("cannot open {}: there is no store in it", dir.display()))?;
    let above = folder.parent().unwrap_or(&folder);
    if let Some(base) = kymo_store::base_of(&RealDisk, &folder).filter(|base| base.is_dir()) {
        return Ok((folder, base));
    }
    let base = match above.join("rrd") {
        rrd if folder.ends_with("store") && rrd.is_dir() => rrd,
        _ => above.to_path_buf(),
    };
    Ok((folder, base))
}
