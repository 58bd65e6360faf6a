//! The peers and their command lines. kymo's is collectl's on purpose, and the
//! floor has the same letters, interval and count.

use crate::bench::Bench;
use crate::fault::{Fault, Result};
use std::path::Path;
use std::process::{Command, Stdio};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Peer {
    Floor,
    Kymo,
    Collectl,
    Sadc,
}

/// A recording: collectl's `-s`, `-i` and `-c`.
#[derive(Clone, Copy)]
pub(crate) struct Take<'a> {
    pub letters: &'a str,
    pub interval: &'a str,
    pub count: u32,
}

impl Peer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::Floor => "floor",
            Peer::Kymo => "kymo",
            Peer::Collectl => "collectl",
            Peer::Sadc => "sadc",
        }
    }

    pub(crate) fn is_here(self, bench: &Bench) -> bool {
        match self {
            Peer::Floor => true,
            Peer::Kymo => bench.kymo.is_some(),
            Peer::Collectl => bench.collectl.is_some(),
            Peer::Sadc => bench.sadc.is_some(),
        }
    }

    /// Command that records `take` below `dir`;
    /// its standard output goes to /dev/null.
    pub(crate) fn command(self, bench: &Bench, take: Take, dir: &Path) -> Result<Command> {
        let mut command = match self {
            Peer::Floor => floor(bench, take),
            Peer::Kymo => kymo(need(&bench.kymo, "kymo")?, take, dir),
            Peer::Collectl => collectl(need(&bench.collectl, "collectl")?, take, dir),
            Peer::Sadc => sadc(need(&bench.sadc, "sadc")?, take, dir),
        };
        command.stdout(Stdio::null());
        Ok(command)
    }
}

/// The peers that are installed (kymo: named on the command line).
pub(crate) fn present(bench: &Bench, peers: &[Peer]) -> Vec<Peer> {
    peers
        .iter()
        .copied()
        .filter(|peer| peer.is_here(bench))
        .collect()
}

fn need<'a>(program: &'a Option<std::path::PathBuf>, name: &str) -> Result<&'a Path> {
    program
        .as_deref()
        .ok_or_else(|| Fault::new(format!("{name} is not here")))
}

fn floor(bench: &Bench, take: Take) -> Command {
    let mut command = Command::new(&bench.own);
    command.arg("floor");
    spaced(&mut command, take);
    command
}

/// `kymo record -s LETTERS -i I -c N -f DIR`, of any build of kymo.
pub(crate) fn kymo(program: &Path, take: Take, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("record");
    spaced(&mut command, take);
    command.arg("-f").arg(dir);
    command
}

fn spaced(command: &mut Command, take: Take) {
    command.args(["-s", take.letters, "-i", take.interval]);
    command.args(["-c", &take.count.to_string()]);
}

fn collectl(program: &Path, take: Take, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .arg(format!("-s{}", take.letters))
        .arg(format!("-i{}", take.interval))
        .arg(format!("-c{}", take.count))
        .arg("-f")
        .arg(dir);
    command
}

/// sadc has no letters; `count` is the number of samples after its first.
fn sadc(program: &Path, take: Take, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["-S", "DISK", take.interval])
        .arg((take.count + 1).to_string())
        .arg(dir.join("sa"));
    command
}
