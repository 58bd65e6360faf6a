//! The machine of the figures in one line: CPU model, cores, kernel.

use crate::fault::{Cannot, Result};
use std::fs;
use std::process::Command;

/// `Xeon ..., 2 CPUs, Linux 6.18.44`.
pub(crate) fn describe() -> Result<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").cannot("read /proc/cpuinfo")?;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").cannot("read the release")?;
    let cpus = std::thread::available_parallelism().cannot("count the CPUs")?;
    let model = model(&cpuinfo);
    Ok(format!("{model}, {cpus} CPUs, Linux {}", release.trim()))
}

/// `2026-11-22 04:05 UTC`.
pub(crate) fn now() -> Result<String> {
    let date = Command::new("date").args(["-u", "+%F %H:%M UTC"]).output();
    let date = date.cannot("run date")?;
    Ok(String::from_utf8_lossy(&date.stdout).trim().to_string())
}

fn model(cpuinfo: &str) -> &str {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    match line.and_then(|line| line.split_once(':')) {
        Some((_, model)) => model.trim(),
        None => "CPU of unknown model",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_model_is_named() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2GHz\nprocessor\t: 1\n";
        assert_eq!(super::model(text), "Some CPU @ 2GHz");
        assert_eq!(super::model(""), "CPU of unknown model");
    }
}
