//! `kymo graph`: recordings, stored series, expressions and the poller's targets as a picture, SVG or PNG.

mod expression;
mod stored;
mod target;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Error, Result, bail};
use clap::Args;
use kymo_base::context::Context;
use kymo_kernel::facts;
use kymo_query::fields::Fields;
use kymo_query::open::Recordings;
use kymo_query::series::{Grid, Series};
use kymo_query::sheet::Pick;
use kymo_query::source::{Moment, Step};
use kymo_query::stored::MARK;
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::kernel_file::Root;
use kymo_sys::talk;
use kymo_view::graphs::{self, DEFAULT_LETTERS, LINES_MAX, Plan};
use kymo_view::svg::{self, Style, Theme};
use kymo_view::time::{Bound, Span, Zone};
use resvg::{tiny_skia, usvg};

use super::data;
use super::serve::{KEEPER_SOCKET, data_folder, running_folder};
use expression::Expression;
use stored::Stored;

use crate::times;

/// Exit code when there is nothing in the requested range.
const NOTHING: u8 = 1;

/// Most pixels of a PNG: each needs four bytes.
const PIXELS_MAX: u64 = 100_000_000;

const DAY_NS: i64 = 86_400_000_000_000;

/// Most distances between samples from which the interval is computed.
const DISTANCES_MAX: usize = 1000;

/// Options of `kymo graph`.
#[derive(Args, Clone, Debug)]
pub(crate) struct GraphOptions {
    /// Recordings: folders, or collectl's raw files. Or an expression of PromQL, over all that a kymo serve has:
    /// 'rate(node_disk_read_bytes_total[1m])'
    #[arg(value_name = "PATH|EXPR")]
    pub paths: Vec<PathBuf>,
    /// Letters of standard graphs, or ids of fields.
    #[arg(
        short = 's',
        long,
        value_name = "LETTERS|FIELD,...",
        value_delimiter = ',',
        help = graphs_help()
    )]
    pub subsys: Vec<String>,
    /// All columns of stored series, which a running kymo serve is asked for: LABEL=PATTERN, LABEL!=PATTERN or a text of the
    /// name, as in kymo series ls; given several times, all have to fit
    #[arg(long, value_name = "MATCHER")]
    pub series: Vec<String>,
    /// The graphs of a target of the poller, by its name in the mrtg.cfg, or CONFIGURATION/NAME
    #[arg(long, value_name = "NAME", conflicts_with_all = ["paths", "subsys", "series", "from", "thru", "points"])]
    pub target: Option<String>,
    /// Which of them: day, week, month, year; default: all that it has
    #[arg(
        long,
        value_name = "PERIOD,...",
        value_delimiter = ',',
        requires = "target"
    )]
    pub period: Vec<String>,
    /// Folder of the kymo serve that is asked
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Draw the expression over the recording and the store in this folder instead: nothing is changed there
    #[arg(long, value_name = "DIR", conflicts_with = "data")]
    pub open: Option<PathBuf>,
    /// Write this file; its name ends in .svg or .png
    #[arg(short = 'o', long = "output", value_name = "FILE", required = true)]
    pub output: PathBuf,
    /// Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now
    #[arg(long, value_name = "TIME[-THRU]", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// End at this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub thru: Option<String>,
    /// Width of the picture in pixels
    #[arg(long, value_name = "PIXELS", default_value = "900")]
    pub width: String,
    /// Height of each graph, between its axes
    #[arg(long, value_name = "PIXELS", default_value = "160")]
    pub height: String,
    /// Colours
    #[arg(long, value_name = "light|dark", default_value = "light",
          value_parser = ["light", "dark"], hide_possible_values = true)]
    pub theme: String,
    /// At most so many points a curve; default: one a pixel
    #[arg(long, value_name = "N")]
    pub points: Option<String>,
    /// Time between two values of an expression, such as 15s or 5m
    #[arg(long, value_name = "STEP", conflicts_with = "points")]
    pub step: Option<String>,
}

/// Help of `-s`.
fn graphs_help() -> String {
    format!(
        "Standard graphs of subsystems ({}; default {DEFAULT_LETTERS}), or ids of fields such as cpu.user and \
         disk.read_kb:sda, `:*` for all instances; of stored series @NAME:COLUMN; those of one unit share a graph",
        graphs::letters()
    )
}

/// Format of the picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Svg,
    Png,
}

/// Runs the command.
pub(crate) fn run(options: &GraphOptions) -> Result<ExitCode> {
    let usage = Error::msg;
    let format = format(&options.output).map_err(usage)?;
    let style = style(options).map_err(usage)?;
    if let Some(name) = &options.target {
        return draw_target(options, name, format, &style);
    }
    if let Some(expression) = Expression::of(options)? {
        return match expression.svg(options, &style)? {
            Some(svg) => write(&options.output, format, svg),
            None => Ok(ExitCode::from(NOTHING)),
        };
    }
    if options.step.is_some() || options.open.is_some() {
        bail!("cannot use --step and --open: they are of an expression; see kymo graph --help");
    }
    let points = points(options, &style)?;
    let span = times::span(options.from.as_deref(), options.thru.as_deref()).map_err(usage)?;
    let Some(mut query) = ChosenFields::of(options)? else {
        talk::say("kymo: no series fits");
        return Ok(ExitCode::from(NOTHING));
    };
    let extent = query.extent()?;
    let (from_ns, thru_ns) = extent.bounds(span).map_err(usage)?;
    let range = (from_ns, thru_ns);
    let mut series = query
        .read(range, points, extent.interval_ns)
        .map_err(usage)?;
    series.sort();
    if series
        .points
        .iter()
        .flatten()
        .all(|point| point.seconds <= 0.0)
    {
        let range = svg::range(&extent.context, from_ns, thru_ns);
        talk::say(format_args!(
            "kymo: cannot draw {}: nothing was recorded in {range}",
            options.output.display()
        ));
        return Ok(ExitCode::from(NOTHING));
    }
    let text = query.plan.svg(&series, &extent.context, &style);
    write(&options.output, format, text)
}

fn points(options: &GraphOptions, style: &Style) -> Result<usize> {
    match &options.points {
        Some(text) => {
            let points = number("--points", text, &(2..=100_000)).map_err(Error::msg)?;
            Ok(usize::try_from(points)?)
        }
        None => Ok(style.points()),
    }
}

/// Draws the graphs of a target, in this machine's time zone.
fn draw_target(
    options: &GraphOptions,
    name: &str,
    format: Format,
    style: &Style,
) -> Result<ExitCode> {
    let data = data_folder(options.data.as_deref())?;
    let now = RealClock.now().real_ns.div_euclid(1_000_000_000);
    let shown = target::read(&data, name, &options.period, now).map_err(Error::msg)?;
    if shown.is_empty() {
        let output = options.output.display();
        talk::say(format_args!(
            "kymo: cannot draw {output}: nothing is stored of this target"
        ));
        return Ok(ExitCode::from(NOTHING));
    }
    let root = Root::open(Path::new("/")).context("cannot open /")?;
    let mut zone = times::zone_of(&facts::gather(&root));
    write(&options.output, format, shown.svg(&mut zone, style))
}

fn write(output: &Path, format: Format, svg: String) -> Result<ExitCode> {
    let bytes = match format {
        Format::Svg => svg.into_bytes(),
        Format::Png => png(&svg).with_context(|| format!("cannot draw {}", output.display()))?,
    };
    replace(output, &bytes).with_context(|| format!("cannot write {}", output.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Fields to draw, and their sources.
struct ChosenFields {
    plan: Plan,
    recorded: Option<Recordings>,
    /// Fields of a folder that has a store in addition to its recording.
    fields: Option<Fields>,
    stored: Option<Stored>,
}

impl ChosenFields {
    /// Reads the options. `None`: no stored series fits.
    fn of(options: &GraphOptions) -> Result<Option<ChosenFields>> {
        let words = options.subsys.iter().cloned();
        let (ids, words): (Vec<String>, Vec<String>) =
            words.partition(|word| word.starts_with(MARK));
        let wants_stored = !ids.is_empty() || !options.series.is_empty();
        if options.paths.is_empty() && (!wants_stored || !words.is_empty()) {
            bail!("cannot run kymo: <PATH>... is missing; see kymo graph --help");
        }
        let mut query = ChosenFields {
            plan: Plan::default(),
            recorded: None,
            fields: None,
            stored: None,
        };
        if !options.paths.is_empty() {
            query.plan = plan(&words).map_err(Error::msg)?;
            query.recorded = Some(Recordings::find(&options.paths).map_err(Error::msg)?);
        }
        if let [folder] = &options.paths[..] {
            query.fields = Some(data::fields(folder)?).filter(Fields::has_history);
        }
        if wants_stored {
            let socket = running_folder(options.data.as_deref())?.join(KEEPER_SOCKET);
            let stored = Stored::find(socket, &ids, &options.series).map_err(Error::msg)?;
            if stored.is_empty() {
                return Ok(None);
            }
            query.stored = Some(stored);
        }
        Ok(Some(query))
    }

    fn extent(&self) -> Result<Extent> {
        match (&self.recorded, &self.fields, &self.stored) {
            (Some(files), None, _) => Extent::of(files).map_err(Error::msg),
            (Some(files), Some(fields), _) => {
                Extent::of(files).or_else(|why| Extent::of_history(fields, why))
            }
            (None, _, stored) => Extent::of_the_last_day(stored.as_ref()),
        }
    }

    /// Reads all lines to draw. Stored series become part of the plan.
    fn read(
        &mut self,
        (from_ns, thru_ns): (i64, i64),
        points: usize,
        interval_ns: i64,
    ) -> Result<Series, String> {
        let grid = || Grid::new(from_ns, thru_ns, points, interval_ns);
        let picks = self.plan.picks();
        let mut series = match (&self.fields, &self.recorded) {
            (Some(fields), _) => {
                let answer = fields.series(picks, from_ns, thru_ns, points)?;
                if let Some(problem) = answer.problem {
                    talk::say(format_args!("kymo: {problem}"));
                }
                answer.series
            }
            (None, Some(files)) => {
                let mut source = files.open(grid().range(), Pick::kinds(picks))?;
                Series::read(&mut *source, picks, grid(), LINES_MAX)?
            }
            (None, None) => Series::new(grid(), LINES_MAX),
        };
        if let Some(stored) = &self.stored {
            let lines = stored.add(self.plan.picks().len(), &mut series)?;
            self.plan.stored(&lines);
        }
        Ok(series)
    }
}

fn format(output: &Path) -> Result<Format, String> {
    let suffix = output.extension().unwrap_or_default();
    match suffix.to_string_lossy().to_ascii_lowercase().as_str() {
        "svg" => Ok(Format::Svg),
        "png" => Ok(Format::Png),
        _ => Err(format!(
            "cannot draw {}: the name must end in .svg or .png",
            output.display()
        )),
    }
}

fn plan(words: &[String]) -> Result<Plan, String> {
    match words.is_empty() {
        true => Plan::new([DEFAULT_LETTERS]),
        false => Plan::new(words.iter().map(String::as_str)),
    }
}

fn style(options: &GraphOptions) -> Result<Style, String> {
    Ok(Style {
        width: number("--width", &options.width, &Style::WIDTHS)?,
        height: number("--height", &options.height, &Style::HEIGHTS)?,
        theme: Theme::parse(&options.theme).unwrap_or_default(),
    })
}

fn number(switch: &str, text: &str, range: &std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!(
            "cannot use {switch} {}: not a number from {} to {}",
            text.escape_debug(),
            range.start(),
            range.end()
        )
    })
}

/// Times of the samples, and facts of their machine.
struct Extent {
    first_ns: i64,
    last_ns: i64,
    interval_ns: i64,
    context: Context,
}

impl Extent {
    /// Reads the heads of all samples.
    fn of(files: &Recordings) -> Result<Extent, String> {
        let mut source = files.open(TimeRange::ALL, Kinds::NONE)?;
        let (mut first_ns, mut last_ns) = (i64::MAX, i64::MIN);
        let mut last: Option<Moment> = None;
        let mut distances: Vec<i64> = Vec::new();
        while let Some(step) = source.next()? {
            let Step::Sample(moment) = step else {
                last = None;
                continue;
            };
            (first_ns, last_ns) = (first_ns.min(moment.real_ns), last_ns.max(moment.real_ns));
            if let Some(last) = last.filter(|_| distances.len() < DISTANCES_MAX) {
                distances.push(moment.mono_ns.saturating_sub(last.mono_ns) as i64);
            }
            last = Some(moment);
        }
        if first_ns > last_ns {
            return Err("cannot draw anything: nothing was recorded".into());
        }
        distances.sort_unstable();
        let median_ns = distances.get(distances.len() / 2).copied();
        Ok(Extent {
            first_ns,
            last_ns,
            interval_ns: round_interval(median_ns.unwrap_or_default()),
            context: source.context().clone(),
        })
    }

    /// For stored series without a recording: the last 24 hours, in this machine's time zone.
    fn of_the_last_day(stored: Option<&Stored>) -> Result<Extent> {
        let now_ns = RealClock.now().real_ns;
        let mut extent = Extent::until_now(now_ns - DAY_NS, now_ns)?;
        if let Some(stored) = stored {
            extent.context.set("host", &stored.host());
        }
        Ok(extent)
    }

    /// For a folder with an unreadable recording: all of the store's history of the machine.
    fn of_history(fields: &Fields, why: String) -> Result<Extent> {
        let now_ns = RealClock.now().real_ns;
        match fields.begins_ns(now_ns) {
            0 => Err(Error::msg(why)),
            begins_ns => Extent::until_now(begins_ns, now_ns),
        }
    }

    /// A range that ends now, in this machine's time zone.
    fn until_now(first_ns: i64, last_ns: i64) -> Result<Extent> {
        let root = Root::open(Path::new("/")).context("cannot open /")?;
        Ok(Extent {
            first_ns,
            last_ns,
            interval_ns: 1_000_000_000,
            context: facts::gather(&root),
        })
    }

    /// The range to draw: the requested one, or else the whole recording.
    fn bounds(&self, span: Span) -> Result<(i64, i64), String> {
        let bound = |switch, bound: Option<Bound>, else_ns| match bound {
            Some(bound) => self.moment(switch, bound),
            None => Ok(else_ns),
        };
        let from_ns = bound("--from", span.from, self.first_ns)?;
        let thru_ns = bound("--thru", span.thru, self.last_ns)?;
        let are_both_set = span.from.is_some() && span.thru.is_some();
        if are_both_set && thru_ns < from_ns {
            return Err("cannot draw anything: it ends before it begins".into());
        }
        Ok((from_ns, thru_ns.max(from_ns)))
    }

    /// The time of a bound. A bound without a day must lie within the recording on one day only.
    fn moment(&self, switch: &str, bound: Bound) -> Result<i64, String> {
        let mut zone = times::zone_of(&self.context);
        let wall = match bound {
            Bound::Moment(ns) => return Ok(ns),
            Bound::Wall(wall) => wall,
        };
        let (hour, minute, second) = (wall.second / 3600, wall.second / 60 % 60, wall.second % 60);
        let cannot =
            |cause: &str| format!("cannot use {switch} {hour:02}:{minute:02}:{second:02}: {cause}");
        if wall.day.is_some() {
            let moment = bound.moment(&zone);
            return moment.ok_or_else(|| cannot("there is no such time"));
        }
        let days = self.days(&mut zone);
        let moments = days.iter().filter_map(|&day| zone.moment(day, wall.second));
        let within = |at_ns: &i64| (self.first_ns..=self.last_ns).contains(at_ns);
        let found: Vec<i64> = moments.clone().filter(within).collect();
        match (&found[..], &moments.collect::<Vec<i64>>()[..]) {
            (&[one], _) | (&[], &[one]) => Ok(one),
            _ => Err(cannot(&format!(
                "the recording is of several days, write {}:{hour:02}:{minute:02}",
                days.last().copied().unwrap_or_default()
            ))),
        }
    }

    /// The local days of the recording.
    fn days(&self, zone: &mut Zone) -> Vec<u32> {
        const HALF_DAY_NS: i64 = 43_200_000_000_000;
        let mut days: Vec<u32> = Vec::new();
        let mut at_ns = self.first_ns;
        while at_ns < self.last_ns && days.len() < 10_000 {
            days.push(zone.local(at_ns).day);
            at_ns = at_ns.saturating_add(HALF_DAY_NS);
        }
        days.push(zone.local(self.last_ns).day);
        days.dedup();
        days
    }
}

/// The intended interval: the timer adds or subtracts some hundredths.
fn round_interval(measured_ns: i64) -> i64 {
    const UNIT_NS: i64 = 10_000_000;
    (measured_ns + UNIT_NS / 2) / UNIT_NS * UNIT_NS
}

/// Renders the SVG as PNG, with the built-in font and no font of the machine.
fn png(svg: &str) -> Result<Vec<u8>> {
    let tree = usvg::Tree::from_str(&svg::outlined(svg), &usvg::Options::default())?;
    let size = tree.size().to_int_size();
    let (width, height) = (size.width(), size.height());
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        bail!("{width} x {height} pixels are too many");
    }
    let mut pixmap = tiny_skia::Pixmap::new(width, height).context("no memory for it")?;
    resvg::render(
        &tree,
        tiny_skia::Transform::identity(),
        &mut pixmap.as_mut(),
    );
    Ok(pixmap.encode_png()?)
}

/// Writes a temporary file beside `path` and renames it, so that no reader sees half a file.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The caller gets the earlier error.
        let _ = fs::remove_file(&beside);
    }
    written
}
