//! The hub's rows beside those that rrdtool computes from the sent values, by collectd's definition.

use super::contender::Hub;
use super::fleet::{Fleet, Name, STEP_S};
use crate::bench::Bench;
use crate::fault::{Cannot, Fault, Result};
use crate::progress::Progress;
use kymo_wire::collectd::{Cdtime, Fit, RrdSettings, TypesDb, ValueKind};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Values of one call.
const VALUES: usize = 1000;
/// Seconds that the finest archive reaches back.
const FINE_S: u64 = 1200 * STEP_S;

/// Compares all kept series; returns their number. A difference is a fault.
pub(super) fn compare(bench: &Bench, hub: &Hub, fleet: &Fleet) -> Result<usize> {
    let dir = bench.new_dir("oracle")?;
    let file = dir.join("series.rrd").to_string_lossy().into_owned();
    let mut progress = Progress::of("series compared with rrdtool");
    for (done, (&series, sent)) in fleet.kept().iter().enumerate() {
        let (Some(first), Some(last)) = (stamp(sent.first()), stamp(sent.last())) else {
            return Err(Fault::new("nothing was sent to be compared"));
        };
        create(&dir, &file, Name::of(series).type_name, first)?;
        for some in sent.chunks(VALUES) {
            let words: Vec<&str> = some.iter().map(String::as_str).collect();
            rrdtool(&dir, &[&["update", &file], &words[..]].concat())?;
        }
        let from = |reach: u64| (last.saturating_sub(reach).max(first - STEP_S)).to_string();
        let end = last.to_string();
        // Files are compared, since rrdtool rounds the numbers in a daemon's
        // answer. The length of the range decides which archive answers.
        for (cf, reach) in [("AVERAGE", FINE_S), ("MAX", u64::MAX)] {
            let start = from(reach);
            let what = [cf, "-s", &start, "-e", &end];
            let theirs = rrdtool(&dir, &[&["fetch", &file], &what[..]].concat())?;
            hub.bring_up_to_date(&fleet.path(series))?;
            let place = hub.file(&fleet.path(series));
            let ours = rrdtool(&dir, &[&["fetch", &place], &what[..]].concat())?;
            let name = format!("{}'s {}", hub.who.name(), fleet.path(series));
            differ(&name, cf, &theirs, &ours)?;
        }
        fs::remove_file(&file).cannot("remove the oracle's file")?;
        progress.at(done as u64, fleet.kept().len() as u64);
    }
    Ok(fleet.kept().len())
}

fn stamp(sent: Option<&String>) -> Option<u64> {
    sent?.split_once(':')?.0.parse().ok()
}

/// Creates the file with collectd's definition, a second before the first value.
fn create(dir: &Path, file: &str, type_name: &str, first: u64) -> Result<()> {
    let types = TypesDb::embedded();
    let kind = ValueKind::ALL
        .into_iter()
        .find(|kind| kind.word().eq_ignore_ascii_case(type_name))
        .ok_or_else(|| Fault::new(format!("{type_name} is no kind")))?;
    let Fit::Same(sources) = types.fit(type_name.as_bytes(), [kind].into_iter()) else {
        return Err(Fault::new(format!("{type_name} is not in types.db")));
    };
    let settings = RrdSettings::default();
    let interval = Cdtime::from_seconds(STEP_S);
    let definition = settings.define(interval, sources);
    let definition = definition.ok_or_else(|| Fault::new("there is no definition"))?;
    let (start, step) = ((first - 1).to_string(), STEP_S.to_string());
    let begin = ["create", file, "--start", &start, "--step", &step];
    let words: Vec<&str> = definition.words.iter().map(|word| &**word).collect();
    rrdtool(dir, &[&begin, &words[..]].concat()).map(drop)
}

fn rrdtool(dir: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new("rrdtool");
    let output = command.current_dir(dir).env("TZ", "UTC").args(words);
    let output = output.output().cannot("run rrdtool")?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let verb = words.first().unwrap_or(&"");
        return Err(Fault::because(format!("rrdtool {verb}"), message.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A fault that names the first row that differs.
fn differ(name: &str, cf: &str, theirs: &str, ours: &str) -> Result<()> {
    let rows = |text: &str| text.lines().filter(|line| line.contains(": ")).count();
    if theirs == ours && rows(theirs) > 0 {
        return Ok(());
    }
    let mut pairs = theirs.lines().zip(ours.lines());
    let found = pairs.find(|(theirs, ours)| theirs != ours);
    let found = found.map_or(
        format!("{} rows, and {} here", rows(theirs), rows(ours)),
        |(theirs, ours)| format!("`{theirs}`, and `{ours}` here"),
    );
    Err(Fault::new(format!("{name}, {cf}: rrdtool has {found}")))
}
