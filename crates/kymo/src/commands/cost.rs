//! `kymo cost`: the method of collectl's author built in. A day of 10 s samples without pause
//! shows the CPU; 30 samples a second apart show what a sample costs when caches are cold.
//! Each run is a recorder in a child process, which prints the resources that it used.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use kymo_sys::{machine, talk};

use kymo_kernel::subsystem;

use crate::options::RecordOptions;
use crate::output;

/// Runs the command.
pub(crate) fn run(options: &RecordOptions) -> Result<ExitCode> {
    let letters = options.letters("cdn").map_err(anyhow::Error::msg)?;
    let folder = std::env::temp_dir().join(format!("kymo-cost-{}", std::process::id()));
    // The folder must be new, because others can guess its name.
    std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let scans = if subsystem::asks_for_processes(&letters) {
        "0:6"
    } else {
        "0"
    };
    let result = heading(&format!(
        "a day of 10 s samples, without pause (-s {letters} -i {scans} -c 8640)"
    ))
    .and_then(|()| record(options, &letters, scans, "8640", &folder.join("day")))
    .and_then(|()| {
        heading(&format!(
            "30 samples a second apart (-s {letters} -i 1:1 -c 30)"
        ))
    })
    .and_then(|()| wait_note())
    .and_then(|()| record(options, &letters, "1:1", "30", &folder.join("spaced")));
    // If this fails, the rest stays in the temporary folder, which the system cleans.
    let _ = std::fs::remove_dir_all(&folder);
    result.map(|()| ExitCode::SUCCESS)
}

fn heading(text: &str) -> Result<()> {
    Ok(output::put(&format!("# {text}\n"))?)
}

fn wait_note() -> Result<()> {
    if machine::stderr_is_terminal() {
        talk::say("kymo: this takes half a minute");
    }
    Ok(())
}

fn record(
    options: &RecordOptions,
    letters: &str,
    interval: &str,
    count: &str,
    folder: &Path,
) -> Result<()> {
    let own = std::env::current_exe().context("cannot find the kymo program")?;
    let mut child = Command::new(own);
    child.args([
        "record", "--cost", "-s", letters, "-i", interval, "-c", count, "--cap", "1G",
    ]);
    child
        .arg("-f")
        .arg(folder)
        .arg("--root")
        .arg(&options.root)
        .args(["--status", &options.status]);
    let wanted = [
        (options.threads, "--threads"),
        (options.no_backoff, "--no-backoff"),
    ];
    child.args(
        wanted
            .iter()
            .filter(|(wanted, _)| *wanted)
            .map(|(_, switch)| switch),
    );
    if options.redact.is_some() {
        child.args(["--redact", "args"]);
    }
    let status = child.status().context("cannot run the recorder")?;
    if !status.success() {
        bail!("cannot measure: the recorder ended with {status}");
    }
    Ok(())
}
