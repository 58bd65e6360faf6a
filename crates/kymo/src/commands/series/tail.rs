//! `kymo series tail`: what comes, as it comes.

use std::collections::HashMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Error, Result};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use kymo_base::label_set;
use kymo_query::stored::{Tail, TailOut};
use kymo_series::{Kind, Labels, Sample, Selector};
use kymo_sys::talk;
use kymo_wire::keeper::TailFrom;

use super::samples::{moment, promql, value};
use super::{DataFolder, folder};
use crate::commands::serve::KEEPER_SOCKET;

/// Longest wait of one question.
const WAIT: Duration = Duration::from_secs(10);
/// Values of one answer at most.
const SAMPLES_MAX: u32 = 100_000;

#[derive(Args, Clone, Debug)]
pub(super) struct Follow {
    /// As PromQL has it: node_load1, or {instance="web1"}; without, all
    #[arg(value_name = "SELECTOR")]
    selector: Option<String>,
    /// With the values that come from now on, or with the oldest that the journal has
    #[arg(long, value_name = "now|oldest", default_value = "now")]
    from: From,
    /// An object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: DataFolder,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum From {
    Now,
    Oldest,
}

/// Prints what a selector picks.
struct Printed<'a> {
    out: &'a mut dyn Write,
    selector: Option<Selector>,
    /// Series as they are printed; `None`: they are not picked.
    shown: HashMap<Labels, Option<String>>,
    json: bool,
    zone: TimeZone,
    done: io::Result<()>,
}

pub(super) fn run(follow: &Follow) -> Result<ExitCode> {
    let selector = follow.selector.as_deref().map(Selector::parse);
    let selector = selector.transpose().map_err(|error| Error::msg(error.0))?;
    let from = match follow.from {
        From::Now => TailFrom::Now,
        From::Oldest => TailFrom::Oldest,
    };
    let socket = folder(&follow.place)?.join(KEEPER_SOCKET);
    let mut tail = Tail::new(socket, "", from);
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut printed = Printed {
        out: &mut out,
        selector,
        shown: HashMap::new(),
        json: follow.json,
        zone: TimeZone::system(),
        done: Ok(()),
    };
    loop {
        let answer = tail.read(WAIT, SAMPLES_MAX, &mut printed);
        std::mem::replace(&mut printed.done, Ok(()))?;
        printed.out.flush()?;
        let answer = answer.map_err(Error::msg)?;
        if answer.lost_bytes > 0 {
            talk::say(format_args!(
                "kymo: {} bytes of the journal are gone or damaged: values of them are missing",
                answer.lost_bytes
            ));
        }
        tail.confirm(answer.position);
    }
}

impl TailOut for Printed<'_> {
    fn sample(&mut self, labels: &Labels, _kind: Kind, sample: Sample) {
        if !self.shown.contains_key(labels) {
            let selector = self.selector.as_ref();
            let is_picked = selector.is_none_or(|selector| {
                let of = |label| label_set::value(labels.text(), label);
                let mut matchers = selector.0.iter();
                matchers.all(|matcher| matcher.matches(&of(matcher.label())))
            });
            let shown = is_picked.then(|| promql(labels.text()));
            self.shown.insert(labels.clone(), shown);
        }
        if let Some(Some(series)) = self.shown.get(labels)
            && self.done.is_ok()
        {
            let value = value(sample.v);
            self.done = match self.json {
                true => {
                    let line = serde_json::json!({
                        "series": series,
                        "sample": [sample.t_ms, value],
                    });
                    writeln!(self.out, "{line}")
                }
                false => {
                    let time = moment(sample.t_ms, &self.zone);
                    writeln!(self.out, "{time} {series} {value}")
                }
            };
        }
    }
}
