//! `kymo poll --bill`: what the traffic of targets is billed by, from the rows of a running `kymo serve`.

mod forms;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Error, Result, bail, ensure};
use clap::Parser;
use kymo_base::name::DisplayName;
use kymo_base::pattern;
use kymo_keeper_client::Keeper;
use kymo_kernel::facts;
use kymo_query::targets::files::{self, LinePlace};
use kymo_query::targets::{Bill, DescribedTarget, TargetUnit, Traffic};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::RealDisk;
use kymo_sys::kernel_file::Root;
use kymo_sys::talk;
use kymo_view::time::Zone;
use kymo_wire::targets::FOLDER;

use super::serve::{KEEPER_SOCKET, data_folder};
use crate::options::refuse;
use crate::{output, times};
use forms::BillForm;

/// Exit codes where a target has no row in the period, and without a bill.
const NOTHING: u8 = 1;
const FAILED: u8 = 2;
/// Series that the keeper is asked for together.
const ASKED_TOGETHER: usize = 64;
/// Part of a period's rows below which a line says that rows are missing.
const COMPLETE: f64 = 0.99;
const SECOND_NS: i64 = 1_000_000_000;

/// The 95th percentile of the rates of five minutes of targets in a month, with amounts and how many rows there are
#[derive(Parser, Debug)]
#[command(name = "kymo poll --bill", disable_version_flag = true)]
struct BillOptions {
    /// Targets: NAME or CONFIGURATION/NAME, with * and ?; default: all
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// The month in which the period begins: 2026-10; default: that of the last period that is over
    #[arg(long, value_name = "MONTH")]
    month: Option<String>,
    /// Day of the month on which a period begins
    #[arg(long, value_name = "DAY", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=28))]
    day: u32,
    /// Bill all targets together, under this name: their rates of each five minutes are added up
    #[arg(long, value_name = "NAME")]
    together: Option<String>,
    /// Also say for how many hours the larger of in and out was above this rate, in the unit of the targets: 80M, 1.5G
    #[arg(long, value_name = "RATE")]
    above: Option<String>,
    /// Form: table, csv, json, or html, a page to print
    #[arg(
        long,
        value_name = "FORM",
        default_value = "table",
        value_enum,
        hide_possible_values = true
    )]
    format: BillForm,
    /// Folder of the kymo serve that is asked
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// A period, and its first days as texts.
struct BilledPeriod {
    /// Seconds since 1970.
    from: i64,
    thru: i64,
    /// `2026-10-01`
    from_day: String,
    thru_day: String,
    /// True if it goes on.
    goes_on: bool,
}

/// A line of the bill.
struct BilledTarget {
    /// `CONFIGURATION/NAME`, or that of several together.
    name: String,
    title: String,
    unit: TargetUnit,
    bill: Bill,
}

/// Runs `kymo poll --bill` with the words behind it.
pub(crate) fn run(words: &[OsString]) -> ExitCode {
    bill(words).unwrap_or_else(|error| {
        let line = format!("{error:#}");
        talk::say(format_args!("kymo: {}", DisplayName(line.as_bytes())));
        ExitCode::from(FAILED)
    })
}

fn bill(words: &[OsString]) -> Result<ExitCode> {
    let all = std::iter::once(OsString::from("kymo poll --bill")).chain(words.iter().cloned());
    let options = match BillOptions::try_parse_from(all) {
        Ok(options) => options,
        Err(error) if error.use_stderr() => {
            bail!(refuse::line(&error, "kymo poll --bill --help"))
        }
        Err(help) => {
            output::put(&help.to_string())?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let limit = options.above.as_deref().map(rate).transpose()?;
    let root = Root::open(Path::new("/")).context("cannot open /")?;
    let zone = times::zone_of(&facts::gather(&root));
    let now = RealClock.now().real_ns.div_euclid(SECOND_NS);
    let period = BilledPeriod::of(&options, zone, now)?;
    let data = data_folder(options.data.as_deref())?;
    let targets = find(&data.join(FOLDER), &options.targets)?;
    let keeper = Keeper::at(data.join(KEEPER_SOCKET));
    let traffic = traffic(&keeper, &targets, &period)?;
    let billed = match &options.together {
        Some(name) => vec![together(name, &targets, &traffic, limit)?],
        None => {
            let each = targets.into_iter().zip(&traffic);
            each.map(|((name, target), traffic)| {
                let unit = TargetUnit::of(&target);
                let bill = traffic.bill(limit.map(|limit| limit / factor(&unit)));
                let title = target.title;
                BilledTarget {
                    name,
                    title,
                    unit,
                    bill,
                }
            })
            .collect()
        }
    };
    output::put(&options.format.text(&billed, &period))?;
    say_what_is_missing(&billed);
    let is_empty = |billed: &BilledTarget| billed.bill.known == 0;
    Ok(match billed.iter().any(is_empty) {
        true => ExitCode::from(NOTHING),
        false => ExitCode::SUCCESS,
    })
}

/// Factor from a stored rate to one in the target's unit.
fn factor(unit: &TargetUnit) -> f64 {
    unit.scale * unit.factor
}

impl BilledTarget {
    /// Part of the period's rows that is known.
    fn coverage(&self) -> f64 {
        match self.bill.rows {
            0 => 0.0,
            rows => self.bill.known as f64 / rows as f64,
        }
    }
}

impl BilledPeriod {
    fn of(options: &BillOptions, mut zone: Zone, now: i64) -> Result<BilledPeriod> {
        let today = zone.local(now * SECOND_NS).day;
        let (year, month, day) = (today / 10_000, today / 100 % 100, today % 100);
        let (begin, asked) = match &options.month {
            Some(text) => (month_of(text)?, text.clone()),
            // The present period is not over.
            None => {
                let back = if day >= options.day { 1 } else { 2 };
                (year * 12 + month - 1 - back, "this period".into())
            }
        };
        let day_of = |month: u32| (month / 12) * 10_000 + (month % 12 + 1) * 100 + options.day;
        let (from_day, thru_day) = (day_of(begin), day_of(begin + 1));
        let moment = |day: u32| {
            let moment = zone.moment(day, 0);
            moment.with_context(|| format!("cannot bill {asked}: there is no such month"))
        };
        let (from, end) = (moment(from_day)? / SECOND_NS, moment(thru_day)? / SECOND_NS);
        ensure!(from < now, "cannot bill {asked}: it has not begun");
        let text = |day: u32| format!("{}-{:02}-{:02}", day / 10_000, day / 100 % 100, day % 100);
        Ok(BilledPeriod {
            from,
            thru: end.min(now),
            from_day: text(from_day),
            thru_day: text(thru_day),
            goes_on: end > now,
        })
    }
}

/// Months since the year 0 of a text such as `2026-10`.
fn month_of(text: &str) -> Result<u32> {
    let parts = text.split_once('-');
    let numbers = parts.and_then(|(year, month)| Some((year.parse().ok()?, month.parse().ok()?)));
    match numbers {
        Some((year @ 1970..=9000_u32, month @ 1..=12_u32)) => Ok(year * 12 + month - 1),
        _ => bail!("cannot bill {text:?}: a month is written as 2026-10"),
    }
}

/// A rate such as `80M`, with decimal prefixes.
fn rate(text: &str) -> Result<f64> {
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let prefix = ["", "k", "M", "G", "T"]
        .iter()
        .position(|prefix| prefix.eq_ignore_ascii_case(&text[digits.len()..]));
    let number = digits.parse().ok().filter(|number: &f64| *number >= 0.0);
    match (number, prefix) {
        (Some(number), Some(prefix)) => Ok(number * 1000_f64.powi(i32::try_from(prefix)?)),
        _ => bail!("cannot use --above {text:?}: it is a number, with k, M, G or T"),
    }
}

/// Targets that fit a pattern, with their names.
fn find(folder: &Path, patterns: &[String]) -> Result<Vec<(String, DescribedTarget)>> {
    let mut found = Vec::new();
    let mut is_used = vec![false; patterns.len()];
    for file in files::list(&RealDisk, folder) {
        let mut take = |_: LinePlace, target: DescribedTarget| {
            let name = format!("{}/{}", file.stem, target.name);
            // MRTG's names are in lower case, in whatever case a user writes them.
            let fits = |pattern: &String| {
                let pattern = pattern.to_lowercase();
                let of = if pattern.contains('/') {
                    name.to_lowercase()
                } else {
                    target.name.clone()
                };
                pattern::fits(pattern.as_bytes(), of.as_bytes())
            };
            let mut is_wanted = patterns.is_empty();
            for (pattern, is_used) in patterns.iter().zip(&mut is_used) {
                if fits(pattern) {
                    (is_wanted, *is_used) = (true, true);
                }
            }
            if is_wanted {
                found.push((name, target));
            }
        };
        file.read(&RealDisk, folder, &mut take)
            .map_err(Error::msg)?;
    }
    if let Some((pattern, _)) = patterns.iter().zip(is_used).find(|(_, is_used)| !is_used) {
        let pattern = DisplayName(pattern.as_bytes());
        bail!("cannot find target {pattern} in {}", folder.display());
    }
    ensure!(
        !found.is_empty(),
        "cannot bill: no targets in {}; kymo serve polls those of [poll]",
        folder.display()
    );
    Ok(found)
}

/// The traffic of each target.
fn traffic(
    keeper: &Keeper,
    targets: &[(String, DescribedTarget)],
    period: &BilledPeriod,
) -> Result<Vec<Traffic>> {
    let range = (period.from, period.thru);
    let mut all = Vec::new();
    for some in targets.chunks(ASKED_TOGETHER) {
        let questions = some
            .iter()
            .map(|(_, target)| Traffic::question(target, range));
        let Some(question) = questions.reduce(|mut all, one| {
            all.names.extend(one.names);
            all
        }) else {
            continue;
        };
        let answers = keeper.range(&question).map_err(Error::msg)?;
        ensure!(
            answers.len() == some.len(),
            "cannot bill: the keeper's answer lacks targets"
        );
        for ((name, _), rows) in some.iter().zip(answers) {
            let rows = rows.map_err(|why| {
                Error::msg(format!(
                    "cannot bill {}: {why}",
                    DisplayName(name.as_bytes())
                ))
            })?;
            all.push(Traffic::new(&rows, range));
        }
    }
    Ok(all)
}

/// The bill of several targets together.
fn together(
    name: &str,
    targets: &[(String, DescribedTarget)],
    traffic: &[Traffic],
    limit: Option<f64>,
) -> Result<BilledTarget> {
    let mut all = traffic.first().context("cannot bill: no targets")?.clone();
    let unit = TargetUnit::of(&targets[0].1);
    for ((other, target), traffic) in targets.iter().zip(traffic).skip(1) {
        let first = DisplayName(targets[0].0.as_bytes());
        let other = DisplayName(other.as_bytes());
        let others = TargetUnit::of(target);
        let units = [&unit, &others].map(|unit| (&unit.name, factor(unit)));
        ensure!(
            units[0] == units[1],
            "cannot bill {first} and {other} together: their units are {} and {}",
            units[0].0,
            units[1].0
        );
        ensure!(
            all.add(traffic),
            "cannot bill {first} and {other} together: their rows are of {} s and {} s",
            all.row_s,
            traffic.row_s
        );
    }
    let names: Vec<&str> = targets.iter().map(|(name, _)| &name[..]).collect();
    Ok(BilledTarget {
        name: name.into(),
        title: names.join(", "),
        bill: all.bill(limit.map(|limit| limit / factor(&unit))),
        unit,
    })
}

fn say_what_is_missing(billed: &[BilledTarget]) {
    let is_short = |of: &&BilledTarget| of.coverage() < COMPLETE;
    let is_coarse = |of: &&BilledTarget| of.bill.row_s > 300;
    let short = billed.iter().filter(is_short).count();
    let coarse = billed.iter().filter(is_coarse).count();
    for (count, what) in [
        (short, "rows of this period are missing"),
        (
            coarse,
            "there are only rows of more than five minutes, whose percentile is lower,",
        ),
    ] {
        if count > 0 {
            let all = billed.len();
            talk::say(format_args!(
                "kymo: {what} in {count} of {all} lines of the bill"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(words: &str, today: u32) -> (String, String, bool) {
        let words = format!("x {words}");
        let options = BillOptions::try_parse_from(words.split_whitespace()).unwrap();
        let now = Zone::default().moment(today, 3600).unwrap() / SECOND_NS;
        let period = BilledPeriod::of(&options, Zone::default(), now).unwrap();
        (period.from_day, period.thru_day, period.goes_on)
    }

    #[test]
    fn a_period_is_a_month_from_a_day_on() {
        for (words, today, expected) in [
            ("", 20_261_128, ("2026-10-01", "2026-11-01", false)),
            ("", 20_270_101, ("2026-12-01", "2027-01-01", false)),
            ("--day 15", 20_261_114, ("2026-09-15", "2026-10-15", false)),
            ("--day 15", 20_261_115, ("2026-10-15", "2026-11-15", false)),
            ("--day 28", 20_270_101, ("2026-11-28", "2026-12-28", false)),
            (
                "--month 2026-11",
                20_261_128,
                ("2026-11-01", "2026-12-01", true),
            ),
            (
                "--month 2026-02 --day 3",
                20_261_128,
                ("2026-02-03", "2026-03-03", false),
            ),
        ] {
            let (from, thru, goes_on) = period(words, today);
            assert_eq!((&from[..], &thru[..], goes_on), expected, "{words} {today}");
        }
        for text in ["2026", "2026-13", "2026-0", "x-1", "99999-01", "-1"] {
            assert!(month_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_have_prefixes() {
        for (text, expected) in [("80M", 8e7), ("1.5g", 1.5e9), ("7", 7.0), ("2k", 2000.0)] {
            assert_eq!(rate(text).unwrap(), expected);
        }
        for text in ["", "M", "-1", "5x", "nan", "1 M"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
