//! Several hundred mostly idle processes: `sleep`s, and a few that do a little
//! each 20 ms, as on any server.

use crate::args::Args;
use crate::bench::Bench;
use crate::child::Running;
use crate::fault::{Cannot, Result};
use std::hint::black_box;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// One process in fifty stirs.
const IDLE_TO_STIRRING: u32 = 50;
const STIR_EVERY: Duration = Duration::from_millis(20);
const SETTLE: Duration = Duration::from_millis(50);
/// A guess: the time that a process needs to start on a busy machine.
const BIRTH: Duration = Duration::from_millis(5);

/// Starts the crowd and waits until all of it exists.
pub(crate) fn start(bench: &Bench, count: u32, limit: Duration) -> Result<Running> {
    let before = crate::procfs::process_count()?;
    let mut command = Command::new(&bench.own);
    command
        .args(["crowd", "--count", &count.to_string()])
        .args(["--seconds", &limit.as_secs().to_string()])
        .stdout(Stdio::null());
    let crowd = Running::start(bench, &mut command)?;
    let until = Instant::now() + Duration::from_secs(20) + BIRTH * count;
    while crate::procfs::process_count()? < before + count as usize && Instant::now() < until {
        std::thread::sleep(SETTLE);
    }
    Ok(crowd)
}

/// `kymo-bench crowd`: its children belong to its group and end with it.
pub(crate) fn run(mut args: Args) -> Result<()> {
    let count: u32 = args.value("--count")?.unwrap_or(400);
    let seconds: u64 = args.value("--seconds")?.unwrap_or(60);
    args.done()?;
    let members: Vec<Child> = (0..count)
        .map(|number| member(number, seconds))
        .collect::<Result<_>>()?;
    for mut member in members {
        member.wait().cannot("wait for the crowd")?;
    }
    Ok(())
}

fn member(number: u32, seconds: u64) -> Result<Child> {
    let mut command = if number.is_multiple_of(IDLE_TO_STIRRING) {
        let own = std::env::current_exe().cannot("find the bench's own program")?;
        let mut stirring = Command::new(own);
        stirring.args(["stir", "--seconds"]);
        stirring
    } else {
        Command::new("sleep")
    };
    command.arg(seconds.to_string());
    command.spawn().cannot("start one of the crowd")
}

/// `kymo-bench stir`: wakes, works some microseconds, sleeps.
pub(crate) fn stir(mut args: Args) -> Result<()> {
    let seconds = args.value("--seconds")?.unwrap_or(60);
    args.done()?;
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        std::thread::sleep(STIR_EVERY);
        let mut sum = 0u64;
        for n in 0..20_000u64 {
            sum = black_box(sum.wrapping_mul(31) ^ n);
        }
    }
    Ok(())
}
