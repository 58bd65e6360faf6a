//! `kymo poll --neighbours`: LLDP neighbours of the devices of mrtg.cfg files, as a table, JSON, or a map of lines with their traffic.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::Parser;
use kymo_base::name::DisplayName;
use kymo_poll::engine::device_names;
use kymo_poll::neighbours::{self, Neighbour, Neighbourhood};
use kymo_sys::talk;
use kymo_view::network_map::{MapLine, network_map};
use kymo_wire::mrtg_cfg::{self, Session};
use serde_json::{Value, json};

use super::poll::CfgFiles;
use crate::options::refuse;
use crate::output;

/// Exit codes where a device does not answer, and without a list.
const SOME_SILENT: u8 = 1;
const FAILED: u8 = 2;
/// Devices that are asked at the same time.
const TOGETHER: usize = 16;
/// Longest measurement.
const SECONDS_MAX: u64 = 300;

/// LLDP neighbours of the devices of mrtg.cfg files, which are asked now
#[derive(Parser, Debug)]
#[command(name = "kymo poll --neighbours", disable_version_flag = true)]
struct NeighbourOptions {
    /// Configurations
    #[arg(value_name = "CONFIGURATION", required = true)]
    files: Vec<PathBuf>,
    /// Form: table, json, or svg, a map
    #[arg(
        long,
        value_name = "FORM",
        default_value = "table",
        value_enum,
        hide_possible_values = true
    )]
    format: NeighbourForm,
    /// Measure the traffic of each port during this time; devices renew their counters each 5 to 30 s
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    traffic: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum NeighbourForm {
    Table,
    Json,
    Svg,
}

/// A device and its answer.
struct AskedDevice {
    /// The device as configurations name it.
    name: String,
    answer: Result<Neighbourhood, String>,
}

/// Runs `kymo poll --neighbours` with the words behind it.
pub(crate) fn run(words: &[OsString]) -> ExitCode {
    neighbours(words).unwrap_or_else(|error| {
        say(&format!("{error:#}"));
        ExitCode::from(FAILED)
    })
}

fn say(line: &str) {
    talk::say(format_args!("kymo: {}", DisplayName(line.as_bytes())));
}

fn neighbours(words: &[OsString]) -> Result<ExitCode> {
    const NAME: &str = "kymo poll --neighbours";
    let all = std::iter::once(OsString::from(NAME)).chain(words.iter().cloned());
    let options = match NeighbourOptions::try_parse_from(all) {
        Ok(options) => options,
        Err(error) if error.use_stderr() => {
            bail!(refuse::line(&error, "kymo poll --neighbours --help"))
        }
        Err(help) => {
            output::put(&help.to_string())?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let sessions = sessions(&options.files)?;
    let asked = ask_all(&sessions, options.traffic.map(Duration::from_secs));
    output::put(&match options.format {
        NeighbourForm::Table => table(&asked),
        NeighbourForm::Json => json_lines(&asked),
        NeighbourForm::Svg => map(&asked),
    })?;
    let mut is_whole = true;
    for AskedDevice { name, answer } in &asked {
        if let Err(why) = answer {
            say(&format!("{name} {why}"));
            is_whole = false;
        }
    }
    Ok(match is_whole {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(SOME_SILENT),
    })
}

/// A session of each device of the configurations, with the device's name.
fn sessions(files: &[PathBuf]) -> Result<Vec<(String, Session)>> {
    let (mut known, mut sessions) = (HashSet::new(), Vec::new());
    for file in files {
        let config = mrtg_cfg::read(file.as_os_str().as_bytes(), &mut CfgFiles);
        let mut config = config.map_err(|problems| refused(file, &problems))?;
        config.forget_abouts();
        for (name, session) in device_names(&config).into_iter().zip(config.sessions()) {
            if known.insert(name.to_ascii_lowercase()) {
                sessions.push((name, session.clone()));
            }
        }
    }
    Ok(sessions)
}

fn refused(file: &Path, problems: &mrtg_cfg::Problems) -> anyhow::Error {
    let lines: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
    anyhow!("cannot use {}: {}", file.display(), lines.join("; "))
}

/// Asks all devices, some at a time. Answers come in the order of the sessions.
fn ask_all(sessions: &[(String, Session)], measured: Option<Duration>) -> Vec<AskedDevice> {
    let next = AtomicUsize::new(0);
    let ask_some = || {
        let mut answers = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((_, session)) = sessions.get(at) else {
                return answers;
            };
            answers.push((at, neighbours::ask(session, measured)));
        }
    };
    let mut answers = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..sessions.len().min(TOGETHER))
            .map(|_| scope.spawn(ask_some))
            .collect();
        let all = threads.into_iter().filter_map(|thread| thread.join().ok());
        all.flatten().collect::<Vec<_>>()
    });
    answers.sort_by_key(|(at, _)| *at);
    let named = answers.into_iter().zip(sessions);
    named
        .map(|((_, answer), (name, _))| AskedDevice {
            name: DisplayName(name.as_bytes()).to_string(),
            answer,
        })
        .collect()
}

/// Each neighbour with the name of its device.
fn all(asked: &[AskedDevice]) -> impl Iterator<Item = (&AskedDevice, &Neighbour)> {
    asked.iter().flat_map(|device| {
        let neighbours = device.answer.iter().flat_map(|answer| &answer.neighbours);
        neighbours.map(move |neighbour| (device, neighbour))
    })
}

/// The neighbour's name, or the id of its chassis.
fn name_of(neighbour: &Neighbour) -> &str {
    match neighbour.system.is_empty() {
        true => &neighbour.chassis,
        false => &neighbour.system,
    }
}

/// Rates in and out, bits a second; empty: they were not measured.
fn traffic_text(neighbour: &Neighbour) -> String {
    let amount = |rate: u64| match rate {
        0..10_000 => rate.to_string(),
        10_000..10_000_000 => format!("{}k", rate / 1000),
        10_000_000..10_000_000_000 => format!("{}M", rate / 1_000_000),
        _ => format!("{}G", rate / 1_000_000_000),
    };
    let of = |[in_, out]: [u64; 2]| format!("in {}, out {}", amount(in_), amount(out));
    neighbour.traffic.map_or(String::new(), of)
}

fn table(asked: &[AskedDevice]) -> String {
    let heads = [
        "device",
        "port",
        "neighbour",
        "its port",
        "description",
        "traffic, b/s",
    ];
    let mut lines = vec![heads.map(String::from)];
    lines.extend(all(asked).map(|(device, neighbour)| {
        [
            device.name.clone(),
            neighbour.port.clone(),
            name_of(neighbour).to_string(),
            neighbour.remote_port.clone(),
            neighbour.remote_descr.clone(),
            traffic_text(neighbour),
        ]
    }));
    let widths: [usize; 6] = std::array::from_fn(|at| {
        let cells = lines.iter().map(|line| line[at].chars().count());
        cells.max().unwrap_or(0)
    });
    let mut out = String::new();
    for line in &lines {
        let cells = line.iter().zip(widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        out += cells.join("  ").trim_end();
        out.push('\n');
    }
    out
}

/// An object a line.
fn json_lines(asked: &[AskedDevice]) -> String {
    let objects = all(asked).map(|(device, neighbour)| {
        let [in_, out] = match neighbour.traffic {
            Some(rates) => rates.map(Value::from),
            None => [Value::Null, Value::Null],
        };
        json!({
            "device": device.name,
            "port": neighbour.port,
            "neighbour": neighbour.system,
            "chassis": neighbour.chassis,
            "neighbour_port": neighbour.remote_port,
            "description": neighbour.remote_descr,
            "in_bits_per_second": in_,
            "out_bits_per_second": out,
        })
    });
    objects.map(|object| format!("{object}\n")).collect()
}

/// The map: devices by their own names, and a line for each pair of ports, once.
fn map(asked: &[AskedDevice]) -> String {
    let own_name = |device: &AskedDevice| match &device.answer {
        Ok(answer) if !answer.system.is_empty() => answer.system.clone(),
        _ => device.name.clone(),
    };
    let mut names: Vec<String> = asked.iter().map(own_name).collect();
    names.extend(all(asked).map(|(_, neighbour)| name_of(neighbour).to_string()));
    names.sort();
    names.dedup();
    let place = |name: &str| names.binary_search_by(|known| known.as_str().cmp(name));
    let (mut lines, mut known) = (Vec::new(), HashSet::new());
    for (device, neighbour) in all(asked) {
        let own = own_name(device);
        let (Ok(from), Ok(to)) = (place(&own), place(name_of(neighbour))) else {
            continue;
        };
        let mut ends = [(from, &neighbour.port), (to, &neighbour.remote_port)];
        ends.sort();
        // The other device may list the same line.
        if known.insert(ends) {
            lines.push(MapLine {
                ends: [from, to],
                ports: [neighbour.port.clone(), neighbour.remote_port.clone()],
                label: traffic_text(neighbour),
            });
        }
    }
    network_map(&names, &lines)
}
