//! Any text as each of the kernel's files, name and fact, shown in every format. The meaning is
//! not checked: nothing may panic, and no control character may come out.

use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_kernel::source::{self, Scope};
use kymo_kernel::subsystem::{self, Subsystem};
use kymo_query::source::{Moment, Source, Step};
use kymo_view::options::{Format, Options};
use kymo_view::processes::{Columns, Top};
use kymo_view::sink::Memory;

/// Most samples of one input.
const SAMPLES_MAX: usize = 5;
/// Longest name taken from a text, in bytes.
const NAME_MAX: usize = 24;

/// Texts separated by NULs, one for each sample.
pub(crate) fn views(input: &[u8]) {
    let mut texts: Vec<&[u8]> = input.split(|&b| b == 0).take(SAMPLES_MAX).collect();
    // The first sample is never shown.
    texts.insert(0, texts[0]);
    for options in every_format() {
        let mut sink = Memory::default();
        let played = kymo_view::play(&mut Texts::new(&texts), &options, &mut sink);
        assert!(played.is_ok(), "memory took no more");
        for out in sink.files.values().chain([&sink.stream]) {
            let text = std::str::from_utf8(out).unwrap_or("\u{fffd}\u{7f}");
            let raw = text
                .chars()
                .find(|&c| c.is_control() && c != '\n' || c == '\u{202e}');
            assert_eq!(raw, None, "raw in {:?}", options.format);
        }
    }
}

/// Options for each format, with everything that it can show.
fn every_format() -> Vec<Options> {
    let all = subsystem::all_letters().replace(' ', "");
    let of = |wanted: &dyn Fn(&Subsystem, char) -> bool| {
        let is_wanted = |&letter: &char| subsystem::of(letter).is_some_and(|of| wanted(of, letter));
        all.chars().filter(is_wanted).collect::<String>()
    };
    let brief = of(&|of, letter| letter.is_ascii_lowercase() && !of.text.brief.row.is_empty());
    // Tables with lines of their own cannot share a stream with others.
    let is_long =
        |of: &Subsystem, letter: char| letter.is_ascii_uppercase() && of.plot.shape.is_long();
    let together = of(&|of, letter| !is_long(of, letter));
    let long = of(&is_long);
    let (summaries, details): (String, String) = all.chars().partition(char::is_ascii_lowercase);
    let mut chosen = vec![
        (Format::Brief, brief),
        (Format::Verbose, all.clone()),
        (Format::Plot, together),
        (Format::PlotFiles, all.clone()),
        (Format::Json, all),
        (Format::Csv, summaries),
    ];
    chosen.extend(details.chars().map(|letter| (Format::Csv, letter.into())));
    chosen.extend(long.chars().map(|letter| (Format::Plot, letter.into())));
    let all = chosen
        .into_iter()
        .enumerate()
        .map(|(i, (format, letters))| {
            let mut options = options(&letters);
            assert_eq!(options.set_format(format), Ok(()));
            options.decimals = 2 * (i % 2) as u8;
            options.per_interval = i % 3 == 0;
            options
        });
    all.chain([top(), wide()]).collect()
}

fn options(letters: &str) -> Options {
    Options::new(letters).unwrap_or_else(|error| unreachable!("BUG: {error}"))
}

fn top() -> Options {
    let mut options = options("Z");
    options.top = Top::parse("cpu,5", 10).ok();
    options
}

fn wide() -> Options {
    let mut options = options("Z");
    options.process = Columns::parse("imtwx").unwrap_or_default();
    options
}

/// Texts as a source of samples.
struct Texts<'a> {
    texts: &'a [&'a [u8]],
    steps: usize,
    tracks: Tracks,
    context: Context,
}

impl<'a> Texts<'a> {
    fn new(texts: &'a [&'a [u8]]) -> Texts<'a> {
        let mut context = Context::parse(texts[0]);
        let name = String::from_utf8_lossy(name(texts[0])).into_owned();
        for key in ["host", "uid.0", "tz", &format!("disk.{name}")] {
            context.set(key, &name);
        }
        Texts {
            texts,
            steps: 0,
            tracks: Tracks::default(),
            context,
        }
    }

    /// The text is each file of the machine, of two processes with
    /// two threads, and of two of every other kind with instances.
    fn put(&mut self, text: &[u8]) {
        for source in source::ALL {
            let names: &[&[u8]] = match source.scope {
                Scope::Machine => &[b""],
                Scope::Node
                | Scope::Chip
                | Scope::ThermalZone
                | Scope::FrequencyPolicy
                | Scope::Process => &[b"1", name(text)],
                Scope::PowerZone => &[b"intel-rapl:0", name(text)],
                Scope::FabricPort => &[b"mlx5_0/ports/1", name(text)],
                Scope::Thread => &[b"1/task/1", b"1/task/2"],
                Scope::Program => &[source::ALL_PROGRAMS.as_bytes()],
                Scope::Mount | Scope::Cgroup => &[b"/", name(text)],
            };
            let track = self.tracks.get_mut(source.kind);
            for (slot, name) in names.iter().enumerate() {
                track.put_text(slot, name, text, source.grammar);
            }
        }
    }
}

fn name(text: &[u8]) -> &[u8] {
    &text[..text.len().min(NAME_MAX)]
}

impl Source for Texts<'_> {
    fn next(&mut self) -> Result<Option<Step>, String> {
        let (at, turn) = (self.steps / 2, self.steps % 2);
        self.steps += 1;
        let Some(&text) = self.texts.get(at) else {
            return Ok(None);
        };
        let ns = at as u64 * 1_000_000_000;
        let moment = Moment {
            seq: at as u64,
            real_ns: ns as i64,
            mono_ns: ns,
            boot_ns: ns,
            missed: at as u32 % 2,
            warmup: false,
        };
        let line = || String::from_utf8_lossy(name(text)).into_owned();
        Ok(Some(match (turn, at) {
            (0, _) => {
                self.put(text);
                Step::Sample(moment)
            }
            (_, 3) => Step::Gap(line()),
            _ => Step::Event(moment, line()),
        }))
    }

    fn tracks(&self) -> &Tracks {
        &self.tracks
    }

    fn context(&self) -> &Context {
        &self.context
    }
}
