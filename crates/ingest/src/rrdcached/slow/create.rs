//! CREATE: a new file, filled with rows of other files if there are sources.

use std::io;

use kymo_base::errno::strerror;
use kymo_base::limits::{RRD_CELLS_MAX, SERIES_STATE_MAX, SMALL_BLANK_CELLS};
use kymo_rrd::create::Create;
use kymo_rrd::{Header, Rrd, create};
use kymo_store::{FileError, Writer};
use kymo_wire::rrdcached::{Answers, Fields, Verb, create_words};

use super::{After, Lane, alone, now, refuse_change};
use crate::rrdcached::Shared;
use crate::rrdcached::refusals::rrd_error;

/// A time of CREATE's `-b` before this is refused: ten years.
const START_MIN: i64 = 3600 * 24 * 365 * 10;
/// Stock begins the rows of new files at random places, so that not all files grow into new pages at once. kymo writes
/// rows a week behind, so files of one kind begin at one place: their states are equal and blocks shorter.
const ROWS_BEGIN: u64 = 1;

pub(super) fn create_file(
    shared: &Shared,
    writer: Writer,
    name: &[u8],
    rest: Fields,
    answers: &mut Answers,
    lane: Lane,
) -> After {
    let spelled = shared.names.spelled(name);
    if refuse_change(shared, writer, name, answers) {
        return After::Next;
    }
    match created_in_folder(shared, (name, &spelled), rest, lane) {
        Ok(()) => answers.ok(&[b"RRD created OK"]),
        Err(Failure::Long) => return After::Long,
        Err(Failure::Usage) => answers.usage(Verb::Create),
        Err(Failure::Start) => answers.error(&[b"The first entry must be after 1980."]),
        Err(Failure::Text(text)) => answers.error(&[b"RRD Error: ", &text]),
        Err(Failure::File(FileError::NoFolder(folder))) => answers.error(&[
            b"No permission to recursively create: ",
            &folder,
            b"\nDid you pass -R to the daemon?",
        ]),
        Err(Failure::File(FileError::MakeFolder(folder, cause))) => {
            let cause = strerror(&cause);
            answers.error(&[b"Cannot create ", &folder, b": ", cause.as_bytes()]);
        }
        Err(Failure::File(error)) => rrd_error(answers, b"RRD Error: ", &error, &spelled),
    }
    After::Next
}

/// Makes the folder, too, if the settings allow that.
fn created_in_folder(
    shared: &Shared,
    (name, spelled): (&[u8], &[u8]),
    rest: Fields,
    lane: Lane,
) -> Result<(), Failure> {
    let made = created(shared, name, spelled, rest.clone(), lane);
    let Err(failure) = made else {
        return Ok(());
    };
    if matches!(failure, Failure::Long) {
        return Err(failure);
    }
    // Stock reports a trouble with the folder first, and makes the folder for wrong definitions, too.
    match shared.store.make_folder(name, shared.settings.make_folders) {
        // An impossible name is reported after wrong words.
        Ok(()) | Err(FileError::Name(_)) => {}
        Err(error) => return Err(Failure::File(error)),
    }
    match &failure {
        Failure::File(FileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            created(shared, name, spelled, rest, lane)
        }
        _ => Err(failure),
    }
}

/// Reason for which there is no new file.
enum Failure {
    Usage,
    /// The file would begin before 1980.
    Start,
    Text(Vec<u8>),
    File(FileError),
    /// The request is for the other lane; nothing was done.
    Long,
}

impl From<kymo_rrd::Error> for Failure {
    fn from(error: kymo_rrd::Error) -> Failure {
        Failure::Text(error.text.into_bytes())
    }
}

fn created(
    shared: &Shared,
    name: &[u8],
    spelled: &[u8],
    rest: Fields,
    lane: Lane,
) -> Result<(), Failure> {
    let words = create_words(rest).ok_or(Failure::Usage)?;
    if words
        .start
        .is_some_and(|start| start != -1 && start < START_MIN)
    {
        return Err(Failure::Start);
    }
    let keep = words.no_overwrite || shared.settings.no_overwrite;
    if keep {
        match shared.store.kind(name) {
            Err(FileError::Outside) => return Err(Failure::File(FileError::Outside)),
            Ok(_) => return Err(Failure::File(FileError::Exists)),
            _ if shared.store.has_without_file(name) => {
                return Err(Failure::File(FileError::Exists));
            }
            _ => {}
        }
    }
    let template = words.template.map(|name| template(shared, name));
    let template = template.transpose()?;
    let request = Create {
        file_name: spelled,
        step: words.step as u64,
        start: words.start.filter(|start| *start > 0),
        definitions: &words.definitions,
    };
    require_few(&words.definitions, template.as_ref())?;
    let has_sources = !words.sources.is_empty();
    let (header, _) = create::define(
        &request,
        now(),
        &mut { ROWS_BEGIN },
        template.as_ref(),
        has_sources,
    )?;
    if lane == Lane::Short && (has_sources || header.cell_count() > SMALL_BLANK_CELLS) {
        return Err(Failure::Long);
    }
    let installed = match has_sources {
        false => shared.store.install_blank(name, &header, !keep),
        true => {
            let _alone = alone(shared);
            let rrd = filled(shared, &request, &header, template.as_ref(), &words.sources)?;
            shared.store.install(name, &rrd, !keep)
        }
    };
    installed.map_err(Failure::File)
}

/// A file with the rows of other files, all of which are in memory meanwhile.
fn filled(
    shared: &Shared,
    request: &Create,
    header: &Header,
    template: Option<&Header>,
    sources: &[&[u8]],
) -> Result<Rrd, Failure> {
    // Current rows are computed from points, twice as many as the longest row consists of.
    let points = header.rra.iter().map(|rra| rra.pdp_cnt).max().unwrap_or(0);
    let points = points.saturating_mul(2 * header.ds.len() as u64);
    let needed = header.cell_count().saturating_add(points);
    let mut left = RRD_CELLS_MAX.checked_sub(needed).ok_or_else(too_many)?;
    let mut opened = Vec::new();
    for name in sources {
        require_allowed(shared, name)?;
        let rrd = match shared.store.load_at_most(name, left) {
            Ok(rrd) => rrd,
            Err(FileError::Large(_)) => return Err(too_many()),
            Err(FileError::Outside) => return Err(Failure::File(FileError::Outside)),
            Err(_) => return Err(cannot_open("source", name)),
        };
        left -= rrd.cells.len() as u64;
        opened.push(rrd);
    }
    let opened: Vec<&Rrd> = opened.iter().collect();
    let made = create::create(request, now(), &mut { ROWS_BEGIN }, template, &opened);
    Ok(made?)
}

fn template(shared: &Shared, name: &[u8]) -> Result<Header, Failure> {
    require_allowed(shared, name)?;
    let opened = shared.store.open_flushed(name);
    match opened {
        Ok(opened) => Ok(opened.header),
        Err(FileError::Outside) => Err(Failure::File(FileError::Outside)),
        Err(_) => Err(cannot_open("template", name)),
    }
}

fn require_allowed(shared: &Shared, name: &[u8]) -> Result<(), Failure> {
    match shared.names.allowed(name) {
        true => Ok(()),
        false => Err(Failure::File(FileError::Outside)),
    }
}

/// Refuses definitions whose state would be too large to keep, before memory is allocated for it.
fn require_few(definitions: &[&[u8]], template: Option<&Header>) -> Result<(), Failure> {
    let count = |kind: &[u8]| {
        definitions
            .iter()
            .filter(|def| def.starts_with(kind))
            .count()
    };
    let ds = count(b"DS:") + template.map_or(0, |header| header.ds.len());
    let rra = count(b"RRA:") + template.map_or(0, |header| header.rra.len());
    match (ds * rra) as u64 > SERIES_STATE_MAX / 80 {
        true => Err(Failure::Text(b"too many sources and archives".into())),
        false => Ok(()),
    }
}

fn cannot_open(what: &str, name: &[u8]) -> Failure {
    Failure::Text([b"Cannot open ", what.as_bytes(), b" RRD ", name].concat())
}

fn too_many() -> Failure {
    let text = format!("the sources and the new file have more than {RRD_CELLS_MAX} cells");
    Failure::Text(text.into_bytes())
}
