//! collectl's `.raw.gz`, for the bench: reads the stamps, and copies a file with
//! stamps a second apart, so that any capture plays as an hour. gzip compresses
//! as a child; lines are streamed, no file is held whole.

use crate::fault::{Cannot, Fault, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const STAMP: &str = ">>> ";

/// The only raw file that collectl left in `dir`.
pub(crate) fn find(dir: &Path) -> Result<PathBuf> {
    let what = format!("list {}", dir.display());
    for entry in std::fs::read_dir(dir).cannot(&what)? {
        let path = entry.cannot(&what)?.path();
        if path.to_string_lossy().ends_with(".raw.gz") {
            return Ok(path);
        }
    }
    Err(Fault::new(format!(
        "collectl left no .raw.gz in {}",
        dir.display()
    )))
}

/// Seconds since the epoch of each `>>> T <<<`, including the closing one.
pub(crate) fn stamps(raw: &Path) -> Result<Vec<f64>> {
    let mut stamps = Vec::new();
    each_line(raw, |line| {
        stamps.extend(stamp(line));
        Ok(true)
    })?;
    Ok(stamps)
}

/// Copies `raw` into `dir` under the same name, as collectl requires, with stamps
/// a second apart from the first on, up to the end of the `intervals`-th interval.
pub(crate) fn copy_in_seconds(raw: &Path, dir: &Path, intervals: usize) -> Result<PathBuf> {
    let name = raw
        .file_name()
        .ok_or_else(|| Fault::new("a file without a name"))?;
    let copy = dir.join(name);
    let target = File::create(&copy).cannot(format_args!("create {}", copy.display()))?;
    let mut gzip = gzip(&["-c"], Stdio::piped(), Stdio::from(target))?;
    let pipe = gzip
        .stdin
        .take()
        .ok_or_else(|| Fault::new("gzip has no stdin"))?;
    let mut out = BufWriter::new(pipe);
    let mut clock = Seconds::default();
    each_line(raw, |line| {
        let more = match stamp(line) {
            Some(at) => writeln!(out, ">>> {:.3} <<<", clock.next(at)),
            None => out.write_all(slowed(line).as_bytes()),
        };
        more.cannot("write to gzip")?;
        // The stamp after the last sample closes the file.
        Ok(clock.seen < intervals + 2)
    })?;
    out.flush().cannot("write to gzip")?;
    drop(out);
    ended(gzip)?;
    Ok(copy)
}

#[derive(Default)]
struct Seconds {
    first: f64,
    seen: usize,
}

impl Seconds {
    fn next(&mut self, at: f64) -> f64 {
        if self.seen == 0 {
            self.first = at;
        }
        self.seen += 1;
        self.first + (self.seen - 1) as f64
    }
}

fn stamp(line: &str) -> Option<f64> {
    line.strip_prefix(STAMP)?.split(' ').next()?.parse().ok()
}

/// The line with an interval that agrees with the new stamps.
fn slowed(line: &str) -> String {
    let Some((before, after)) = line.split_once("Interval: ") else {
        return line.to_string();
    };
    let rest = after.split_once(' ').map_or("", |(_, rest)| rest);
    format!("{before}Interval: 1 {rest}")
}

/// Calls `take` with each line and its line feed, until it returns false.
fn each_line(raw: &Path, mut take: impl FnMut(&str) -> Result<bool>) -> Result<()> {
    let source = File::open(raw).cannot(format_args!("open {}", raw.display()))?;
    let mut gzip = gzip(&["-dc"], Stdio::from(source), Stdio::piped())?;
    let pipe = gzip
        .stdout
        .take()
        .ok_or_else(|| Fault::new("gzip has no stdout"))?;
    let mut lines = BufReader::new(pipe);
    let mut line = String::new();
    while lines.read_line(&mut line).cannot("read from gzip")? > 0 {
        if !take(&line)? {
            break;
        }
        line.clear();
    }
    drop(lines);
    gzip.wait().cannot("wait for gzip")?;
    Ok(())
}

fn gzip(args: &[&str], from: Stdio, to: Stdio) -> Result<Child> {
    let mut command = Command::new("gzip");
    command
        .args(args)
        .stdin(from)
        .stdout(to)
        .stderr(Stdio::null());
    command.spawn().cannot("start gzip")
}

fn ended(mut gzip: Child) -> Result<()> {
    let status = gzip.wait().cannot("wait for gzip")?;
    match status.success() {
        true => Ok(()),
        false => Err(Fault::new(format!("gzip ended with {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_intervals_are_understood() {
        assert_eq!(stamp(">>> 1795295775.251 <<<\n"), Some(1_795_295_775.251));
        assert_eq!(stamp("cpu  1 2 3\n"), None);
        assert_eq!(
            slowed("# SubSys:     cdnm Options:  Interval: .01 NumCPUs: 2\n"),
            "# SubSys:     cdnm Options:  Interval: 1 NumCPUs: 2\n"
        );
        assert_eq!(slowed("cpu  1 2\n"), "cpu  1 2\n");
    }

    #[test]
    fn the_clock_goes_in_seconds() {
        let mut clock = Seconds::default();
        let got = [10.25, 10.26, 10.27].map(|at| clock.next(at));
        assert_eq!(got, [10.25, 11.25, 12.25]);
    }
}
