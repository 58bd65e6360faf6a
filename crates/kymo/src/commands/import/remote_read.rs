//! Samples of a server by remote read, range after range from the oldest on, so that each series only grows.

use std::path::PathBuf;

use anyhow::{Error, Result};
use kymo_base::label_set::Labels;
use kymo_import::{RemoteReader, RemoteServer};
use kymo_scrape::ScrapeUrl;

use super::{Gathered, ImportOptions, Importer};
use crate::commands::series::{Times, range};
use crate::commands::serve::{credentials, tls};
use crate::config::AccessKeys;
use crate::output::progress::WorkPace;

/// Begin of the times that are read, if no other is given: what a Prometheus keeps by default.
const FROM: &str = "-15d";
/// Length of a range.
const RANGE_S: i64 = 7200;
/// Times from the clock that a server may be ahead of this one, so that its newest samples are read.
const AHEAD_S: i64 = 60;

/// Labels of the series whose samples come, and the samples, unless it is left out.
type CurrentSeries = (Vec<(String, String)>, Option<Gathered>);

/// A server that is read.
pub(super) struct RemoteRead {
    reader: RemoteReader,
    /// First and last second.
    times_s: (i64, i64),
}

impl RemoteRead {
    /// A server by its URL.
    pub(super) fn new(options: &ImportOptions, url: &str) -> Result<RemoteRead> {
        let times = Times {
            from: options.from.clone().unwrap_or_else(|| FROM.into()),
            thru: options.thru.clone(),
        };
        let (from, thru) = range(&times)?;
        let none: Option<PathBuf> = None;
        let access = AccessKeys {
            user: &None,
            password_file: &none,
            token_file: &options.token_file,
            tls_ca: &options.tls_ca,
            tls_cert: &none,
            tls_key: &none,
            tls_server_name: &None,
        };
        let parsed = ScrapeUrl::of_server(url).map_err(Error::msg)?;
        let server = RemoteServer {
            url: url.into(),
            credentials: credentials(access)?,
            tls: tls(access, parsed.scheme() == kymo_scrape::Scheme::Https)?,
        };
        let thru = match options.thru {
            Some(_) => thru,
            None => thru.saturating_add(AHEAD_S),
        };
        Ok(RemoteRead {
            reader: RemoteReader::new(&server).map_err(Error::msg)?,
            times_s: (from, thru),
        })
    }

    /// Hands over all samples.
    pub(super) fn hand_over(self, importer: &mut Importer<'_>) -> Result<()> {
        let (from, thru) = self.times_s;
        let pace = WorkPace::new();
        let all = hours(thru.saturating_sub(from));
        let mut begin = from;
        while begin <= thru {
            importer.show(&pace, "h", (hours(begin.saturating_sub(from)), Some(all)));
            let end = begin.saturating_add(RANGE_S - 1).min(thru);
            let range_ms = (begin * 1000, end.saturating_mul(1000).saturating_add(999));
            self.hand_over_range(importer, range_ms)?;
            begin = end.saturating_add(1);
        }
        Ok(())
    }

    fn hand_over_range(&self, importer: &mut Importer<'_>, range_ms: (i64, i64)) -> Result<()> {
        let mut current: Option<CurrentSeries> = None;
        let read = self.reader.read(range_ms, &mut |labels, samples| {
            let is_same = |known: &[(String, String)]| {
                let known = known.iter().map(|(name, value)| (&**name, &**value));
                known.eq(labels.iter().copied())
            };
            if !current.as_ref().is_some_and(|(known, _)| is_same(known)) {
                if let Some((_, Some(mut before))) = current.take() {
                    before.hand_over(importer).map_err(words)?;
                }
                let owned = labels.iter();
                let owned = owned.map(|(name, value)| (name.to_string(), value.to_string()));
                current = Some((owned.collect(), begin(labels, importer)));
            }
            if let Some((_, Some(gathered))) = &mut current {
                for &(t_ms, value) in samples {
                    // A chunk may have samples from before and behind the range.
                    if (range_ms.0..=range_ms.1).contains(&t_ms) {
                        gathered.push(importer, t_ms, value).map_err(words)?;
                    }
                }
            }
            Ok(())
        });
        read.map_err(Error::msg)?;
        match current {
            Some((_, Some(mut last))) => last.hand_over(importer),
            _ => Ok(()),
        }
    }
}

fn words(error: Error) -> String {
    format!("{error:#}")
}

fn hours(seconds: i64) -> u64 {
    u64::try_from(seconds / 3600).unwrap_or(0)
}

/// Begins a series; `None`: it is left out.
fn begin(labels: &[(&str, &str)], importer: &mut Importer<'_>) -> Option<Gathered> {
    let set = Labels::new(labels.iter().map(|(name, value)| (*name, value.as_bytes())));
    match set {
        Ok(set) => Some(Gathered::new(set)),
        Err(error) => {
            let shown: Vec<String> = labels
                .iter()
                .map(|(name, value)| format!("{name}={value:?}"))
                .collect();
            importer.leave_out(
                format!("{{{}}}", shown.join(",")).as_bytes(),
                &error.to_string(),
            );
            None
        }
    }
}
