//! Bytes of the same 30 seconds on both sides, processes included, beside a
//! compilation. Both record at once, so that both see the same machine.

use super::Row;
use crate::bench::Bench;
use crate::child::Running;
use crate::collectl_raw;
use crate::fault::{Cannot, Result};
use crate::figures::{bytes, ratio};
use crate::load::{self, Kind};
use crate::peer::{Peer, Take, present};
use crate::report::Outcome;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "bytes",
    work: "`-scdnmZ -i.1:.1`, 300 samples, a compile running: bytes",
    bar: "≤ 1/2 of collectl's .raw.gz",
    aim: "1/5",
    run,
};

const PEERS: [Peer; 2] = [Peer::Kymo, Peer::Collectl];
const LIMIT: Duration = Duration::from_secs(90);

fn run(bench: &Bench) -> Result<Outcome> {
    let take = Take {
        letters: "cdnmZ",
        interval: ".1:.1",
        count: bench.pick(300, 20),
    };
    let mut outcome = Outcome::default();
    let dirs = together(bench, take)?;
    let mut sizes = [None; 2];
    for (peer, dir) in &dirs {
        let size = match peer {
            Peer::Kymo => kymo_size(&mut outcome, dir)?,
            _ => collectl_size(&mut outcome, dir)?,
        };
        sizes[usize::from(*peer == Peer::Collectl)] = Some(size);
    }
    if let [Some(kymo), Some(theirs)] = sizes {
        outcome.figure(format!("kymo/collectl {}", ratio(kymo, theirs)));
        outcome.check(Some(kymo / theirs), 0.5, 0.2);
    }
    Ok(outcome)
}

/// Each peer's directory after all have recorded the same time.
fn together(bench: &Bench, take: Take) -> Result<Vec<(Peer, PathBuf)>> {
    let _load = load::start(bench, Kind::Compile, LIMIT)?;
    let mut running = Vec::new();
    for peer in present(bench, &PEERS) {
        let dir = bench.new_dir(peer.name())?;
        let mut command = peer.command(bench, take, &dir)?;
        running.push((peer, dir, Running::start(bench, &mut command)?));
    }
    let mut dirs = Vec::new();
    for (peer, dir, child) in running {
        child.finish(LIMIT)?;
        dirs.push((peer, dir));
    }
    Ok(dirs)
}

/// Bytes of kymo's blocks; other files (tails not freed, locks) are in a
/// figure of their own.
fn kymo_size(outcome: &mut Outcome, dir: &Path) -> Result<f64> {
    let (mut blocks, mut others) = (0, 0);
    for path in files_below(dir)? {
        let size = fs::metadata(&path).cannot("size up a recording")?.len();
        match path.extension().is_some_and(|end| end == "blk") {
            true => blocks += size,
            false => others += size,
        }
    }
    let (blocks, others) = (blocks as f64, others as f64);
    outcome.figure(format!(
        "kymo {} of blocks, {} else",
        bytes(blocks),
        bytes(others)
    ));
    Ok(blocks)
}

fn collectl_size(outcome: &mut Outcome, dir: &Path) -> Result<f64> {
    let raw = collectl_raw::find(dir)?;
    let size = fs::metadata(&raw).cannot("size up collectl's file")?.len() as f64;
    let stamps = collectl_raw::stamps(&raw)?.len();
    outcome.figure(format!("collectl {} in {stamps} samples", bytes(size)));
    Ok(size)
}

/// All plain files below `dir`.
pub(crate) fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        let what = format!("list {}", dir.display());
        for entry in fs::read_dir(&dir).cannot(&what)? {
            let path = entry.cannot(&what)?.path();
            match path.is_dir() {
                true => dirs.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    Ok(files)
}
