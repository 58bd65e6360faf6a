//! Series with names of .rrd files: new series, changes of definitions, and values as `rrdtool update` has them.

use std::collections::HashMap;

use kymo_base::errno::strerror;
use kymo_base::name::DisplayName;
use kymo_rrd::Header;
use kymo_rrd::create::{self, Create};
use kymo_store::{Definition, Redefinition, Refusal, SeriesName, Store, keep_points};
use kymo_wire::keeper::{Fault, FileSeries, FileValues, Refused, Taken};

use super::role::Author;

/// Longest step, in seconds.
const STEP_MAX: u32 = 3600;
/// Index of a data source's maximum among its parameters.
const MAXIMUM: usize = 2;

/// Headers that many series share, by step, retention of points and words of the definition.
type Headers<'a> = HashMap<(u32, u32, &'a [Vec<u8>]), Result<Header, String>>;

/// Defines series, or changes existing ones. Returns the outcomes.
pub(super) fn create(store: &Store, author: &Author, series: &[FileSeries]) -> Taken {
    let (mut headers, mut taken) = (Headers::new(), Taken::default());
    let (mut places, mut definitions) = (Vec::new(), Vec::new());
    for (place, series) in (0..).zip(series) {
        let name = SeriesName::File(&series.name);
        let may = author.may_write(name);
        match may.and_then(|()| header(series, &mut headers)) {
            Ok(header) => {
                places.push((place, series));
                definitions.push(Definition { name, header });
            }
            Err(why) => taken
                .refused
                .push(refused("define", place, &series.name, &why)),
        }
    }
    let wanted: Vec<Header> = definitions.iter().map(|one| one.header.clone()).collect();
    let outcomes = store.define(definitions);
    let mut changes = Vec::new();
    for (((place, series), wanted), outcome) in places.into_iter().zip(wanted).zip(outcomes) {
        match outcome {
            Ok(true) => taken.began += 1,
            Ok(false) => changes.extend(change(store, place, series, &wanted)),
            Err(error) => {
                let why = error.to_string();
                taken
                    .refused
                    .push(refused("define", place, &series.name, &why));
            }
        }
    }
    redefine(store, &changes, &mut taken);
    taken
}

/// A change of the definition of an existing series.
struct Tuning<'a> {
    place: u32,
    series: &'a FileSeries,
    from: Header,
    to: Header,
}

/// The change that an existing series needs: kinds and maxima, as MRTG tunes them, and retention of points. Its archives stay.
fn change<'a>(
    store: &Store,
    place: u32,
    series: &'a FileSeries,
    wanted: &Header,
) -> Option<Tuning<'a>> {
    let from = store.definition(&series.name)?;
    let mut to = from.clone();
    for ds in &mut to.ds {
        if let Some(wanted) = wanted.ds.iter().find(|wanted| wanted.name() == ds.name()) {
            (ds.dst, ds.par[MAXIMUM]) = (wanted.dst, wanted.par[MAXIMUM]);
        }
    }
    keep_points(&mut to, series.points_kept_s);
    (to != from).then_some(Tuning {
        place,
        series,
        from,
        to,
    })
}

fn redefine(store: &Store, changes: &[Tuning], taken: &mut Taken) {
    let wanted = changes.iter().map(|change| Redefinition {
        name: &change.series.name,
        from: &change.from,
        to: &change.to,
        since: change.series.start as f64,
    });
    let wanted: Vec<Redefinition<'_>> = wanted.collect();
    for (change, outcome) in changes.iter().zip(store.redefine(&wanted)) {
        let why = match outcome {
            Ok(true) => {
                taken.changed += 1;
                continue;
            }
            Ok(false) => "it is in use".to_string(),
            Err(error) => error.to_string(),
        };
        let name = &change.series.name;
        taken
            .refused
            .push(refused("change", change.place, name, &why));
    }
}

/// Header of a series.
fn header<'a>(series: &'a FileSeries, headers: &mut Headers<'a>) -> Result<Header, String> {
    let key = (series.step, series.points_kept_s, &series.words[..]);
    let plain = headers.entry(key).or_insert_with(|| {
        let (words, step) = (&series.words, series.step);
        if !(1..=STEP_MAX).contains(&step) {
            return Err(format!("a step is 1 to {STEP_MAX} seconds"));
        }
        let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
        let mut header = made(step, 1, &words, None)?;
        keep_points(&mut header, series.points_kept_s);
        Ok(header)
    });
    let plain = plain.as_ref().map_err(Clone::clone)?;
    let mut header = made(series.step, series.start, &[], Some(plain))?;
    header.head_par = plain.head_par;
    Ok(header)
}

/// The header that `rrdtool create --start` would make.
fn made(
    step: u32,
    start: i64,
    words: &[&[u8]],
    template: Option<&Header>,
) -> Result<Header, String> {
    let request = Create {
        file_name: b"",
        step: step.into(),
        start: Some(start),
        definitions: words,
    };
    let made = create::define(&request, start, &mut 1, template, false);
    made.map(|(header, _)| header).map_err(|error| error.text)
}

/// Stores values with one write to the journal. Returns the outcomes.
pub(super) fn update(store: &Store, author: &Author, values: &FileValues) -> Taken {
    let mut taken = Taken::default();
    let mut batch = store.write_batch();
    batch.by(author.writer);
    for (place, (name, arguments)) in (0..).zip(values.iter()) {
        if let Err(why) = author.may_write(SeriesName::File(name)) {
            taken.refused.push(refused("update", place, name, &why));
        } else if let Err(refusal) = batch.update(name, arguments) {
            let mut refused = refused("update", place, name, &worded(&refusal));
            refused.fault = match refusal {
                Refusal::Untouched => Fault::Missing,
                Refusal::Past { .. } => Fault::Past,
                _ => Fault::Other,
            };
            taken.refused.push(refused);
        }
    }
    if let Err(error) = batch.commit() {
        let why = format!("cannot write journal: {}", strerror(&error));
        let failed = (0..).zip(values.iter());
        let failed = failed.map(|(place, (name, _))| refused("update", place, name, &why));
        taken.refused = failed.collect();
    }
    taken
}

/// A refusal, in rrdtool's words if rrdtool has any for it.
fn worded(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Untouched => "there is no such series".into(),
        Refusal::NoValues => "there is no value".into(),
        Refusal::Held => "another sender writes it".into(),
        Refusal::NoStamp { value } => format!("no timestamp in {}", DisplayName(value)),
        Refusal::Past { stamp, last } => format!(
            "illegal attempt to update using time {stamp:.6} when last update time is {last:.6}"
        ),
    }
}

fn refused(verb: &str, place: u32, name: &[u8], why: &str) -> Refused {
    Refused {
        place,
        fault: Fault::Other,
        why: format!("cannot {verb} {}: {why}", DisplayName(name)),
    }
}
