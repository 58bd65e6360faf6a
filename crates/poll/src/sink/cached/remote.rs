//! Files of a daemon on another host: they are looked up once, and the daemon makes missing ones.

use super::{Cached, name, put_escaped};
use crate::sink::rates::BEGINS_BEFORE_S;
use crate::sink::{COLUMNS, Report, Series, index};
use kymo_base::name::DisplayName;
use std::io::{self, Write};

impl Cached {
    /// Makes the file of a series if there is none; an error has the reason. As in MRTG, a file with another definition is only
    /// reported and stays as it is.
    pub(super) fn prepare_remote(
        &mut self,
        target: u32,
        first_s: i64,
        report: &mut Report,
    ) -> io::Result<Result<(), String>> {
        let series = &self.series[index(target)];
        let file = name(series, false);
        let mut line = b"INFO ".to_vec();
        put_escaped(&mut line, file);
        line.push(b'\n');
        let known = self.connection.ask(&line)?;
        if known.status >= 0 {
            if !known.lines.is_empty() && is_other(series, &known.lines) {
                let file = DisplayName(file);
                let cause = format!("cannot tune {file}: its daemon does not do that");
                report.refuse(target, cause);
            }
            return Ok(Ok(()));
        }
        let made = self.connection.ask(&creation(series, first_s))?;
        if made.status < 0 {
            let (file, why) = (DisplayName(file), DisplayName(&made.text));
            return Ok(Err(format!("cannot create {file}: {why}")));
        }
        self.counts.created += 1;
        Ok(Ok(()))
    }
}

/// A CREATE that does not replace an existing file.
fn creation(series: &Series, first_s: i64) -> Vec<u8> {
    let mut line = b"CREATE ".to_vec();
    put_escaped(&mut line, name(series, false));
    let begin = first_s.saturating_sub(BEGINS_BEFORE_S);
    // Writing to memory cannot fail.
    let _ = write!(line, " -b {begin} -s {} -O", series.step_s);
    let sources = series.sources();
    for word in sources.iter().chain(series.archives.iter()) {
        line.push(b' ');
        put_escaped(&mut line, word);
    }
    line.push(b'\n');
    line
}

/// True if INFO's lines (`key type value`) show another kind or maximum. A missing line counts as equal.
pub(super) fn is_other(series: &Series, lines: &[Vec<u8>]) -> bool {
    let value = |key: String| {
        let line = lines.iter().find(|line| {
            let rest = line.strip_prefix(key.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b" "))
        });
        let words = line.map(|line| String::from_utf8_lossy(line).into_owned());
        words.and_then(|words| words.splitn(3, ' ').nth(2).map(str::to_string))
    };
    COLUMNS.iter().zip(series.max).any(|(column, max)| {
        let kind = value(format!("ds[{column}].type"));
        let has = value(format!("ds[{column}].max"));
        let has: Option<f64> = has.and_then(|has| has.trim().parse().ok());
        let is_max = match (has, max) {
            (None, _) => true,
            (Some(has), None) => has.is_nan(),
            (Some(has), Some(max)) => has == max as f64,
        };
        !is_max || kind.is_some_and(|kind| kind.trim() != series.kind.word())
    })
}
