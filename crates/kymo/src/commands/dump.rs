//! `kymo dump`: recorded texts, exactly as the kernel gave them. On a terminal control bytes are escaped,
//! because names of processes come from outside.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use kymo_base::cost;
use kymo_base::errno;
use kymo_base::name::DisplayName;
use kymo_base::track::{Instance, State, Why};
use kymo_kernel::source;
use kymo_query::recorded::Recorded;
use kymo_query::source::{Moment, Source as _, Step};
use kymo_recording::reader::Kinds;
use kymo_sys::talk;

use crate::times;

/// Options of `kymo dump`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DumpOptions {
    /// Folder of a recording
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Only this source, by its path under the root: proc/stat, proc/1/stat
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now
    #[arg(long, value_name = "TIME[-THRU]", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// End after this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub thru: Option<String>,
    /// Exact bytes on a terminal, too, where control bytes are shown as \xNN otherwise
    #[arg(long)]
    pub raw: bool,
}

/// Escapes bytes that a terminal would obey, except line ends and tabs. Each write has to end at the boundary
/// of a character.
pub(super) struct Spelled<W>(pub(super) W);

impl<W: Write> Write for Spelled<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| b"\n\t".contains(byte)) {
            let (text, end) = match piece {
                [text @ .., end @ (b'\n' | b'\t')] => (text, Some(*end)),
                text => (text, None),
            };
            write!(self.0, "{}", DisplayName(text))?;
            self.0.write_all(end.as_slice())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Runs the command.
pub(crate) fn run(options: &DumpOptions) -> Result<ExitCode> {
    let (kinds, instance) = wanted(options.source.as_deref())?;
    let range = times::range(
        options.from.as_deref(),
        options.thru.as_deref(),
        &options.dir,
    )?;
    let mut recorded = Recorded::open(&options.dir, range, kinds).map_err(anyhow::Error::msg)?;
    let stdout = io::stdout().lock();
    let spelled = stdout.is_terminal() && !options.raw;
    let stdout = BufWriter::with_capacity(64 << 10, stdout);
    let mut out: Box<dyn Write> = match spelled {
        true => Box::new(Spelled(stdout)),
        false => Box::new(stdout),
    };
    let mut printed = false;
    while let Some(step) = recorded.next().map_err(anyhow::Error::msg)? {
        match step {
            Step::Sample(moment) if !moment.warmup => {
                printed |= sample(&recorded, moment, &kinds, instance.as_deref(), &mut out)?;
            }
            Step::Gap(message) | Step::Damage(message) => {
                talk::say(format_args!("kymo: gap: {message}"))
            }
            Step::Sample(_) | Step::Event(..) => {}
        }
    }
    out.flush()?;
    Ok(ExitCode::from(u8::from(!printed)))
}

/// The kinds to read, and the instance to print, if there is one: `proc/1/stat` is instance `1` of
/// `proc/{}/stat`.
fn wanted(name: Option<&str>) -> Result<(Kinds, Option<String>)> {
    let Some(name) = name else {
        return Ok((Kinds::ALL, None));
    };
    match source::find(name) {
        Some((source, instance)) => {
            Ok((Kinds::from_iter([source.kind]), Some(instance.to_string())))
        }
        None => anyhow::bail!("cannot dump {}: no such source", name.escape_debug()),
    }
}

/// Prints all texts that were read in this sample. True if there were any.
fn sample(
    recorded: &Recorded,
    moment: Moment,
    kinds: &Kinds,
    only: Option<&str>,
    out: &mut impl Write,
) -> Result<bool> {
    let mut printed = false;
    for &(kind, code) in recorded.costs() {
        let Some(source) = source::of(kind).filter(|_| kinds.contains(kind)) else {
            continue;
        };
        let track = recorded.tracks().get(kind);
        for (_, instance) in track.instances() {
            // A header has a fixed number of words, even with blanks in the name of a control group.
            let name = DisplayName(&instance.name).text().replace(' ', "\\x20");
            let is_other = |only: &str| only != name && only.as_bytes() != instance.name;
            if only.is_some_and(is_other) {
                continue;
            }
            let mut text = Vec::new();
            track.render(instance, &mut text);
            let path = source.path_of(&name);
            printed |= frame(instance, &path, moment, cost::decode(code), &text, out)?;
        }
    }
    Ok(printed)
}

/// The cause of a failed read as one word: `permission-denied`.
fn word(number: u16) -> String {
    errno::words(number).to_lowercase().replace(' ', "-")
}

/// Prints `>>> SOURCE SEQ WALL MONO COST_KIND_NS STATE LEN`, the text, and a newline. An instance that was not
/// read has a header only if it was too slow.
fn frame(
    instance: &Instance,
    path: &str,
    moment: Moment,
    cost_ns: u64,
    text: &[u8],
    out: &mut impl Write,
) -> Result<bool> {
    let state = match instance.state {
        State::Changed => "changed".to_string(),
        State::Same => "same".to_string(),
        State::Failed(number) => format!("failed:{}", word(number)),
        State::Unread(Why::Slow) => "not-read:slow".to_string(),
        State::Unread(_) => return Ok(false),
    };
    let text = if matches!(instance.state, State::Changed | State::Same) {
        text
    } else {
        &[]
    };
    let (wall, mono) = (
        seconds(moment.real_ns.into()),
        seconds(moment.mono_ns.into()),
    );
    writeln!(
        out,
        ">>> {path} {} {wall} {mono} {cost_ns} {state} {}",
        moment.seq,
        text.len()
    )?;
    out.write_all(text)?;
    out.write_all(b"\n")?;
    Ok(true)
}

fn seconds(ns: i128) -> String {
    format!(
        "{}.{:09}",
        ns.div_euclid(1_000_000_000),
        ns.rem_euclid(1_000_000_000)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_no_text() {
        for (text, shown) in [
            (&b"cpu  1 2\n\tcpu0 1\n"[..], "cpu  1 2\n\tcpu0 1\n"),
            (b"", ""),
            (b"\n", "\n"),
            (b"1 (\x1b[31mEVIL) S\n", "1 (\\x1b[31mEVIL) S\n"),
            (
                b"sh\0-c\0\x1b]0;a\x07\r\n",
                "sh\\x00-c\\x00\\x1b]0;a\\x07\\x0d\n",
            ),
            ("caf\u{e9} \u{9b}31m".as_bytes(), "caf\u{e9} \\xc2\\x9b31m"),
            (b"\xff", "\\xff"),
        ] {
            let mut out = Vec::new();
            Spelled(&mut out).write_all(text).expect("room");
            assert_eq!(String::from_utf8_lossy(&out), shown);
        }
    }
}
