//! `--grep`, `--extract` and `--showheader` for recorded texts: searches, copies or prints them. collectl's files have collectl's
//! lines; recordings have the lines of the kernel's files, each after the name of its file.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use kymo_base::track::State;
use kymo_kernel::source;
use kymo_query::open::{MadeBy, Recordings, open_raw};
use kymo_query::recorded::Recorded;
use kymo_query::source::{Source as _, Step};
use kymo_recording::collectl::{self, LineKind, Lines};
use kymo_recording::reader::Kinds;
use kymo_sys::talk;
use kymo_view::Options;
use kymo_view::options::Stamp;
use kymo_view::time::{PlayedZone, Span, SpanPosition, Zone};
use regex_lite::Regex;

use super::dump::Spelled;
use crate::options::texts::Texts;
use crate::times;

/// Exit code when nothing was found.
const NOTHING: u8 = 1;

/// Does the requested work on the files. `view` has the options for times.
pub(crate) fn run(
    files: &Recordings,
    texts: &Texts,
    view: &Options,
    span: Between,
) -> Result<ExitCode> {
    let stdout = io::stdout().lock();
    let spelled = stdout.is_terminal();
    let stdout = BufWriter::with_capacity(64 << 10, stdout);
    let mut out: Box<dyn Write> = match spelled {
        true => Box::new(Spelled(stdout)),
        false => Box::new(stdout),
    };
    let mut found = false;
    for (origin, path) in files.paths() {
        found |= match (origin, &texts.grep, &texts.extract) {
            (MadeBy::Collectl, Some(pattern), _) => {
                grep_raw(path, &regex(pattern)?, view, span, &mut out)?
            }
            (MadeBy::Kymo, Some(pattern), _) => {
                grep_own(path, &regex(pattern)?, view, span, &mut out)?
            }
            (MadeBy::Collectl, _, Some(to)) => extract_raw(path, to, span)?,
            (MadeBy::Kymo, _, Some(to)) => extract_own(path, to, span)?,
            (MadeBy::Collectl, ..) => header_raw(path, &mut out)?,
            (MadeBy::Kymo, ..) => {
                let (context, moment) = times::beginning(path)?;
                let header = kymo_view::header(&context, moment, view);
                write!(out, "{}\n{header}\n", path.display())?;
                true
            }
        };
    }
    out.flush()?;
    Ok(match found {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(NOTHING),
    })
}

/// The requested times, as on the command line.
#[derive(Clone, Copy)]
pub(crate) struct Between<'a> {
    /// Value of `--from`.
    pub(crate) from: Option<&'a str>,
    /// Value of `--thru`.
    pub(crate) thru: Option<&'a str>,
    /// Value of `--offsettime`.
    pub(crate) offset_ns: i64,
}

impl Between<'_> {
    fn span(&self) -> Result<Span> {
        times::span(self.from, self.thru).map_err(anyhow::Error::msg)
    }
}

fn matches(wanted: &Regex, line: &[u8]) -> bool {
    wanted.is_match(&String::from_utf8_lossy(line))
}

fn regex(pattern: &str) -> Result<Regex> {
    Regex::new(pattern)
        .map_err(|error| anyhow::anyhow!("{error}"))
        .with_context(|| format!("cannot use --grep {}", pattern.escape_debug()))
}

/// The lines of a file, and the time zone of its machine.
fn open(path: &Path) -> Result<(Lines, Zone)> {
    let context = collectl::header(open_raw(path).map_err(anyhow::Error::msg)?)?;
    let lines = Lines::open(open_raw(path).map_err(anyhow::Error::msg)?)?;
    Ok((lines, times::zone_of(&context)))
}

/// The next line. An error of the file is reported, and ends it.
fn next(lines: &mut Lines) -> Option<(LineKind, &[u8])> {
    match lines.next_line() {
        Ok(line) => line,
        Err(why) => {
            talk::say(format_args!("kymo: {why}"));
            None
        }
    }
}

fn header_raw(path: &Path, out: &mut dyn Write) -> Result<bool> {
    let (mut lines, _) = open(path)?;
    writeln!(out, "{}", path.display())?;
    while let Some((LineKind::Remark, line)) = next(&mut lines) {
        out.write_all(line)?;
        out.write_all(b"\n")?;
    }
    out.write_all(b"\n")?;
    Ok(true)
}

fn grep_raw(
    path: &Path,
    wanted: &Regex,
    view: &Options,
    times: Between,
    out: &mut dyn Write,
) -> Result<bool> {
    let span = times.span()?;
    let (mut lines, mut zone) = open(path)?;
    let (mut stamp, mut within, mut found) = (Vec::new(), false, false);
    while let Some((sort, line)) = next(&mut lines) {
        match sort {
            LineKind::Marker(real_ns) => {
                let real_ns = real_ns.saturating_add(times.offset_ns);
                within = span.place(real_ns, zone.local(real_ns)) == SpanPosition::Within;
                put_stamp(&mut stamp, real_ns, &mut zone, view);
            }
            LineKind::Text if within && matches(wanted, line) => {
                found = true;
                out.write_all(&[&stamp[..], line, b"\n"].concat())?;
            }
            _ => {}
        }
    }
    Ok(found)
}

fn grep_own(
    path: &Path,
    wanted: &Regex,
    view: &Options,
    times: Between,
    out: &mut dyn Write,
) -> Result<bool> {
    let span = times.span()?;
    let range = times::range(times.from, times.thru, path)?;
    let mut recorded = Recorded::open(path, range, Kinds::ALL).map_err(anyhow::Error::msg)?;
    let (mut stamp, mut text, mut found) = (Vec::new(), Vec::new(), false);
    let mut zones = PlayedZone::default();
    while let Some(step) = recorded.next().map_err(anyhow::Error::msg)? {
        let moment = match step {
            Step::Sample(moment) if !moment.warmup => moment,
            Step::Gap(why) | Step::Damage(why) => {
                talk::say(format_args!("kymo: gap: {why}"));
                continue;
            }
            Step::Sample(_) | Step::Event(..) => continue,
        };
        let zone = zones.of(recorded.context());
        let real_ns = moment.real_ns.saturating_add(times.offset_ns);
        if span.place(real_ns, zone.local(real_ns)) != SpanPosition::Within {
            continue;
        }
        put_stamp(&mut stamp, real_ns, zone, view);
        for &(kind, _) in recorded.costs() {
            let Some(source) = source::of(kind) else {
                continue;
            };
            let track = recorded.tracks().get(kind);
            for (_, instance) in track.instances() {
                if !matches!(instance.state, State::Changed | State::Same) {
                    continue;
                }
                text.clear();
                track.render(instance, &mut text);
                let name = source.path_of(&String::from_utf8_lossy(&instance.name));
                for line in text
                    .split(|&byte| byte == b'\n')
                    .filter(|line| !line.is_empty())
                {
                    if matches(wanted, line) {
                        found = true;
                        let parts = [&stamp[..], name.as_bytes(), b" ", line, b"\n"];
                        out.write_all(&parts.concat())?;
                    }
                }
            }
        }
    }
    Ok(found)
}

/// A time as `-o` asks for it, with a blank after it. The time of day is always part of it, except for seconds since 1970.
fn put_stamp(out: &mut Vec<u8>, real_ns: i64, zone: &mut Zone, view: &Options) {
    let local = zone.local(real_ns);
    out.clear();
    match view.stamp {
        Stamp::Epoch => {
            out.extend_from_slice(real_ns.div_euclid(1_000_000_000).to_string().as_bytes())
        }
        Stamp::MonthDay => {
            local.put_month_day(out);
            out.push(b' ');
        }
        Stamp::Day => {
            local.put_day(out);
            out.push(b' ');
        }
        Stamp::Default | Stamp::Time => {}
    }
    if view.stamp != Stamp::Epoch {
        local.put_time(out);
    }
    if view.milliseconds {
        local.put_milli(out);
    }
    out.push(b' ');
}

/// Path of an extract: the same name in a folder, or `to` as the prefix of the name.
fn extract_path(from: &Path, to: &Path, ending: &str) -> PathBuf {
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    // An extract is compressed by gzip or not at all.
    let name = match name.ends_with(".gz") {
        true => &name[..],
        false => collectl::unpacked_name(&name),
    };
    match to.is_dir() {
        true => to.join(format!("{name}{ending}")),
        false => {
            let mut path = to.as_os_str().to_os_string();
            path.push(format!("-{name}{ending}"));
            path.into()
        }
    }
}

/// Copies the lines in the range, and the time at which the last of them ended.
fn extract_raw(path: &Path, to: &Path, times: Between) -> Result<bool> {
    let span = times.span()?;
    let (mut lines, mut zone) = open(path)?;
    let to = extract_path(path, to, "");
    let file = OpenOptions::new().write(true).create_new(true).open(&to);
    let cannot = || format!("cannot write {}", to.display());
    let file = BufWriter::new(file.with_context(cannot)?);
    let gzip = to.extension().is_some_and(|ending| ending == "gz");
    let mut out: Box<dyn Write> = match gzip {
        true => Box::new(GzEncoder::new(file, Compression::default())),
        false => Box::new(file),
    };
    let (mut found, mut within) = (false, false);
    while let Some((sort, line)) = next(&mut lines) {
        let mut ends = false;
        if let LineKind::Marker(real_ns) = sort {
            let real_ns = real_ns.saturating_add(times.offset_ns);
            let place = span.place(real_ns, zone.local(real_ns));
            ends = within && place != SpanPosition::Within;
            within = place == SpanPosition::Within;
            found |= within;
        }
        if within || ends || sort == LineKind::Remark {
            out.write_all(&[line, b"\n"].concat())
                .with_context(cannot)?;
        }
    }
    out.flush().with_context(cannot)?;
    drop(out);
    if !found {
        std::fs::remove_file(&to).with_context(|| format!("cannot remove {}", to.display()))?;
    }
    talk::say(format_args!(
        "kymo: {}",
        match found {
            true => format!("extracted into {}", to.display()),
            false => format!(
                "nothing to extract from {}: nothing was recorded then",
                path.display()
            ),
        }
    ));
    Ok(found)
}

#[cfg(feature = "serve")]
fn extract_own(path: &Path, to: &Path, times: Between) -> Result<bool> {
    let done = super::export::run(&super::export::ExportOptions {
        from_path: path.into(),
        file: extract_path(path, to, ".kymo"),
        from: times.from.map(str::to_string),
        thru: times.thru.map(str::to_string),
    });
    done.map(|code| code == ExitCode::SUCCESS)
}

#[cfg(not(feature = "serve"))]
fn extract_own(path: &Path, _: &Path, _: Between) -> Result<bool> {
    bail!(
        "cannot extract {}: this program has no export",
        path.display()
    )
}

/// Refuses switches that make no sense with these.
pub(crate) fn check(texts: &Texts, times: Between, chooses: bool) -> Result<()> {
    if texts.extract.is_some() {
        if chooses {
            bail!("cannot use -s: --extract takes all that was recorded");
        }
        if times.from.is_none() && times.thru.is_none() {
            bail!("cannot use --extract: it takes --from or --thru, or both");
        }
    }
    Ok(())
}
