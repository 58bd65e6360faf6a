//! Requests that open files. They run on a worker, one line at a time, without the store's lock.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_base::errno::strerror;
use kymo_base::limits::{RRD_CELLS_MAX, SMALL_CELLS, SMALL_HEADER};
use kymo_base::name::DisplayName;
use kymo_rrd::cf::Cf;
use kymo_rrd::fetch::{self, Fetched};
use kymo_rrd::tune::Tune;
use kymo_rrd::{info, tune};
use kymo_store::{FetchError, FileError, Flushed, Fresh, Opened, Writer};
use kymo_sys::disk::NameKind;
use kymo_wire::rrdcached::{
    Answers, ColumnRefusal, Fetch, Fields, Request, Table, TuneRefusal, Verb, atoi, columns, parse,
    take_line, time_of, tune_words,
};

use super::Shared;
use super::connection::Connection;
use super::quick::{PENDING, context};
use super::refusals::{denied, foreign, held, rrd_error, strerror_of, untouchable};

mod create;
mod list;
mod long;
mod stream;

/// Begin of FETCH's errors.
const FETCH_FAILED: &[u8] = b"rrd_fetch_r failed: ";

/// Format of FETCH's rows.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Binary,
}

/// Threads that serve a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Many threads, for requests that need little time and memory.
    Short,
    /// Few threads, for all other requests: DUMP and LIST, and anything large.
    Long,
}

/// Next step after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Serve the next line.
    Next,
    /// Serve the same line again: its file is known now.
    Again,
    /// Serve the same line in the other lane: nothing was done.
    Long,
    /// Close the connection.
    Close,
}

/// Serves the first received line.
pub(super) fn serve(shared: &Shared, connection: &mut Connection, lane: Lane) -> After {
    let input = std::mem::take(&mut connection.input);
    let mut scratch = std::mem::take(&mut connection.scratch);
    let after = match take_line(&input[connection.consumed..]) {
        None => After::Next,
        Some((line, size)) => {
            let fields = Fields::of(line, &mut scratch);
            connection.answers.begin_command();
            let after = serve_line(shared, connection, fields, lane);
            match after {
                After::Again | After::Long => connection.answers.withdraw_command(),
                After::Next | After::Close => connection.consumed += size,
            }
            after
        }
    };
    (connection.input, connection.scratch) = (input, scratch);
    after
}

fn serve_line(shared: &Shared, connection: &mut Connection, fields: Fields, lane: Lane) -> After {
    let context = context(&connection.answers);
    let Ok(request) = parse(fields, context, connection.permissions) else {
        // Cannot happen: such lines are answered before they come here.
        return After::Close;
    };
    let writer = connection.writer;
    let answers = &mut connection.answers;
    match request {
        Request::Update { name, .. } => return touch(shared, name, answers),
        Request::Dump(_) | Request::List(_) if lane == Lane::Short => return After::Long,
        Request::Dump(name) => return dump_file(shared, name, connection),
        Request::Flush(name) => flush(shared, name, answers),
        Request::Fetch(request) => {
            return fetch_rows(shared, request, Form::Text, connection, lane);
        }
        Request::FetchBin(request) => {
            return fetch_rows(shared, request, Form::Binary, connection, lane);
        }
        Request::Info(name) => return info_of(shared, name, answers, lane),
        Request::First { name, index } => first(shared, name, index, answers),
        Request::Last(name) => last(shared, name, answers),
        Request::Create { name, rest } => {
            return create::create_file(shared, writer, name, rest, answers, lane);
        }
        Request::Tune { name, rest } => {
            return tune_file(shared, writer, name, rest, answers, lane);
        }
        Request::List(rest) => {
            let _alone = alone(shared);
            list::list(shared, rest, answers);
        }
        Request::Forget(name)
        | Request::Pending(name)
        | Request::Suspend(name)
        | Request::Resume(name) => return unknown(shared, &request, name, answers),
        // All others are answered from memory.
        _ => return After::Close,
    }
    After::Next
}

/// While this guard lives, no other thread has much in memory.
fn alone(shared: &Shared) -> MutexGuard<'_, ()> {
    shared.heavy.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a file known to the store.
fn touch(shared: &Shared, name: &[u8], answers: &mut Answers) -> After {
    let spelled = shared.names.spelled(name);
    match shared.store.touch(name) {
        Ok(()) => After::Again,
        Err(error) => {
            shared.updates_received.fetch_add(1, Ordering::Relaxed);
            untouchable(answers, &error, &spelled);
            After::Next
        }
    }
}

/// Stock's answer about an unknown name, if the client may ask for the name.
fn unknown(shared: &Shared, request: &Request, name: &[u8], answers: &mut Answers) -> After {
    let spelled = shared.names.spelled(name);
    match request {
        _ if !shared.store.admits(name) => denied(answers, &spelled),
        Request::Pending(_) => answers.ok_with(b"", &[PENDING]),
        Request::Forget(_) => answers.error(&[b"No such file or directory"]),
        _ => {
            answers.error(&[&spelled, b" - No such file or directory"]);
            // Stock closes the connection in this case.
            return After::Close;
        }
    }
    After::Next
}

fn flush(shared: &Shared, name: &[u8], answers: &mut Answers) {
    shared.flushes_received.fetch_add(1, Ordering::Relaxed);
    let spelled = shared.names.spelled(name);
    if !shared.names.allowed(name) {
        return denied(answers, &spelled);
    }
    match shared.store.flush(name) {
        Ok(Flushed::Done) => answers.ok(&[b"Successfully flushed ", &spelled, b"."]),
        Ok(Flushed::Nothing) => answers.ok(&[b"Nothing to flush: ", &spelled, b"."]),
        // Stock has written all that there was, which is nothing.
        Err(FileError::NoSuchFile) if shared.store.write_batch().last_stamp(name).is_some() => {
            answers.ok(&[b"Successfully flushed ", &spelled, b"."]);
        }
        Err(
            FileError::NoSuchFile | FileError::NotRegular | FileError::Stat(_) | FileError::Name(_),
        ) => answers.error(&[b"No such file: ", &spelled, b"."]),
        Err(error) => rrd_error(answers, b"RRD Error: ", &error, &spelled),
    }
}

/// Opens a file for reading.
fn open(shared: &Shared, name: &[u8], fresh: Fresh, spelled: &[u8]) -> Result<Opened, FileError> {
    let opened = shared.store.read(name, fresh);
    opened.map_err(|error| folder_error(shared, error, name, spelled))
}

/// Stock opens folders, too, and then cannot map them.
fn folder_error(shared: &Shared, error: FileError, name: &[u8], spelled: &[u8]) -> FileError {
    let is_folder = || matches!(shared.store.kind(name), Ok(NameKind::Directory));
    match error {
        FileError::NotRegular | FileError::Rrd(_) | FileError::Io(_) if is_folder() => {
            let shown = DisplayName(spelled);
            FileError::Rrd(format!("mmaping file '{shown}': No such device"))
        }
        other => other,
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

fn fetch_rows(
    shared: &Shared,
    request: Fetch,
    form: Form,
    connection: &mut Connection,
    lane: Lane,
) -> After {
    let answers = &mut connection.answers;
    let spelled = shared.names.spelled(request.name);
    let refuse = |refuse: &mut dyn FnMut()| {
        refuse();
        After::Next
    };
    if !shared.names.allowed(request.name) {
        return refuse(&mut || denied(answers, &spelled));
    }
    let now = now();
    let time = |text: Option<&[u8]>, default| text.map_or(Some(default), |text| time_of(text, now));
    let Some(start) = time(request.start, now - 86_400) else {
        return refuse(&mut || bad_time(shared, &request, b"start", request.start, answers));
    };
    let Some(end) = time(request.end, now) else {
        return refuse(&mut || bad_time(shared, &request, b"end", request.end, answers));
    };
    if let Err(error) = Cf::parse(request.cf) {
        // The answer does not need the file, which is flushed all the same.
        let _ = shared.store.flush(request.name);
        return refuse(&mut || answers.error(&[FETCH_FAILED, error.text.as_bytes()]));
    }
    let (store, range) = (&shared.store, (start, end));
    if lane == Lane::Long {
        return long::fetch(shared, &request, (form, range), &spelled, connection);
    }
    match store.fetch_at_most(request.name, request.cf, range, SMALL_CELLS) {
        Ok(fetched) => put_rows(&fetched, request.columns, form, &spelled, answers),
        Err(FetchError::Large) => return After::Long,
        Err(FetchError::Rrd(text)) => answers.error(&[FETCH_FAILED, text.as_bytes()]),
        Err(FetchError::File(error)) => {
            let error = folder_error(shared, error, request.name, &spelled);
            rrd_error(answers, FETCH_FAILED, &error, &spelled);
        }
    }
    After::Next
}

fn bad_time(
    shared: &Shared,
    request: &Fetch,
    which: &[u8],
    text: Option<&[u8]>,
    answers: &mut Answers,
) {
    // Stock looks at the times after it flushed the file; the outcome of the flush does not
    // matter.
    let _ = shared.store.flush(request.name);
    let text = text.unwrap_or_default();
    let why = b"': Only simple integers are allowed.";
    answers.error(&[b"Cannot parse ", which, b" time `", text, why]);
}

fn put_rows(fetched: &Fetched, fields: Fields, form: Form, spelled: &[u8], answers: &mut Answers) {
    let names: Vec<&[u8]> = fetched.names.iter().map(Vec::as_slice).collect();
    let Some(wanted) = wanted_columns(fields, &names, spelled, answers) else {
        return;
    };
    let table = Table {
        start: fetched.start,
        end: fetched.end,
        step: fetched.step,
        names: &names,
        cells: &fetched.rows,
        wanted: &wanted,
    };
    match form {
        Form::Text => table.put_text(answers.ok_counted(table.text_lines(), &[b"Success"])),
        Form::Binary => table.put_binary(answers.ok_counted(table.binary_lines(), &[b"Success"])),
    }
}

/// Indexes of the wanted columns; `None`: they were refused.
fn wanted_columns(
    fields: Fields,
    names: &[&[u8]],
    spelled: &[u8],
    answers: &mut Answers,
) -> Option<Vec<usize>> {
    match columns(fields, names) {
        Ok(wanted) => return Some(wanted),
        Err(ColumnRefusal::TooMany) => answers.error(&[b"too many fields given - duplicates!"]),
        Err(ColumnRefusal::Unknown(field)) => {
            answers.error(&[b"field ", field, b" not found in ", spelled]);
        }
        Err(ColumnRefusal::Again(field)) => answers.error(&[b"field ", field, b" already used"]),
    }
    None
}

fn info_of(shared: &Shared, name: &[u8], answers: &mut Answers, lane: Lane) -> After {
    let spelled = shared.names.spelled(name);
    if !shared.names.allowed(name) {
        denied(answers, &spelled);
        return After::Next;
    }
    match open(shared, name, Fresh::AsIs, &spelled) {
        Ok(opened) if lane == Lane::Short && opened.header.size_bytes() > SMALL_HEADER => {
            return After::Long;
        }
        Ok(opened) => {
            let mut lines = Vec::new();
            info::print_for_daemon(&info::info(&opened.header, &spelled), &mut lines);
            answers.ok_with(&lines, &[b"Info for ", &spelled, b" follows"]);
        }
        Err(error) => rrd_error(answers, b"RRD Error: ", &error, &spelled),
    }
    After::Next
}

fn first(shared: &Shared, name: &[u8], index: Option<&[u8]>, answers: &mut Answers) {
    let spelled = shared.names.spelled(name);
    if !shared.names.allowed(name) {
        return denied(answers, &spelled);
    }
    let Some(index) = index.map(atoi) else {
        return answers.usage(Verb::First);
    };
    if index < 0 {
        let text = format!("Invalid index specified ({index})");
        return answers.error(&[text.as_bytes()]);
    }
    match open(shared, name, Fresh::AsIs, &spelled) {
        Ok(opened) => match fetch::first(&opened.header, i64::from(index)) {
            Ok(time) if time >= 1 => answers.ok(&[stamp(time).as_bytes()]),
            Ok(_) => answers.error(&[b"RRD Error: "]),
            Err(error) => answers.error(&[b"RRD Error: ", error.text.as_bytes()]),
        },
        Err(error) => rrd_error(answers, b"RRD Error: ", &error, &spelled),
    }
}

/// A time as stock prints it: cut to 32 bits.
fn stamp(time: i64) -> String {
    (time as u32).to_string()
}

fn last(shared: &Shared, name: &[u8], answers: &mut Answers) {
    let spelled = shared.names.spelled(name);
    if !shared.names.allowed(name) {
        return denied(answers, &spelled);
    }
    // The stamp in memory counts even if others changed the file. Opening the file would notice
    // that, so this comes first.
    let cached = shared.store.write_batch().last_stamp(name);
    let header = match open(shared, name, Fresh::AsIs, &spelled) {
        Ok(opened) => opened.header,
        Err(error) => return rrd_error(answers, b"RRD Error: ", &error, &spelled),
    };
    let time = cached.map_or(header.last_up, |stamp| stamp as i64);
    let time = time - time % (header.pdp_step as i64).max(1);
    match time < 1 {
        true => answers.error(&[b"Error: rrdcached: Invalid timestamp returned"]),
        false => answers.ok(&[stamp(time).as_bytes()]),
    }
}

/// Refuses a client that may not change a file. True if it did.
fn refuse_change(shared: &Shared, writer: Writer, name: &[u8], answers: &mut Answers) -> bool {
    let is_held = || {
        let mut batch = shared.store.write_batch();
        batch.by(writer);
        batch.is_held(name)
    };
    if !shared.names.allowed(name) {
        denied(answers, &shared.names.spelled(name));
    } else if shared.names.is_foreign(name) {
        foreign(answers, &shared.names.spelled(name));
    } else if is_held() {
        held(answers);
    } else {
        return false;
    }
    true
}

fn tune_file(
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
    match tune_words(rest) {
        Ok(words) => return tune_with(shared, (name, &spelled), &words, answers, lane),
        Err(TuneRefusal::Usage) => answers.usage(Verb::Tune),
        Err(TuneRefusal::Count(count)) => {
            let text = format!("Invalid argument count specified ({count})");
            answers.error(&[text.as_bytes()]);
        }
    }
    After::Next
}

fn tune_with(
    shared: &Shared,
    (name, spelled): (&[u8], &[u8]),
    words: &[&[u8]],
    answers: &mut Answers,
    lane: Lane,
) -> After {
    // The name of the file comes before the words. librrd repeats it among the words; other
    // clients need not.
    let again = [words, &[name]].concat();
    let plan = Tune::parse(words).or_else(|error| match error.text.as_str() {
        "missing file name" => Tune::parse(&again),
        _ => Err(error),
    });
    let plan = plan.map_err(|error| FileError::Rrd(error.text));
    let (cells_max, _alone) = match lane {
        Lane::Short => (SMALL_CELLS, None),
        Lane::Long => (RRD_CELLS_MAX, Some(alone(shared))),
    };
    let tuned = plan.and_then(|plan| {
        shared
            .store
            .rewrite_at_most(name, cells_max, &mut |mut rrd| {
                tune::tune(&mut rrd, &plan)?;
                Ok(rrd)
            })
    });
    match tuned {
        Ok(()) => answers.ok(&[b"Success"]),
        Err(FileError::Large(_)) if lane == Lane::Short => return After::Long,
        Err(error) => rrd_error(answers, b"Got error ", &error, spelled),
    }
    After::Next
}

/// Sends the document and ends the connection: by the end the client knows that the document is
/// complete.
fn dump_file(shared: &Shared, name: &[u8], connection: &mut Connection) -> After {
    let spelled = shared.names.spelled(name);
    let answers = &mut connection.answers;
    if !shared.names.allowed(name) {
        denied(answers, &spelled);
        return After::Next;
    }
    let cause = match shared.store.kind(name) {
        Ok(NameKind::File) => None,
        Ok(_) => Some("Not a regular file".into()),
        Err(FileError::Outside) => {
            denied(answers, &spelled);
            return After::Next;
        }
        Err(FileError::Name(number) | FileError::Stat(number)) => Some(strerror_of(number)),
        Err(FileError::Io(cause)) => Some(strerror(&cause)),
        Err(_) => Some(strerror_of(2)),
    };
    if let Some(cause) = cause.filter(|_| !shared.store.has_without_file(name)) {
        answers.error(&[name, b": failed to stat: ", cause.as_bytes()]);
        return After::Next;
    }
    match shared.store.open_flushed(name) {
        Ok(opened) => long::dump(shared, connection, opened),
        Err(error) => {
            refuse_dump(answers, name, &spelled, &error);
            After::Next
        }
    }
}

fn refuse_dump(answers: &mut Answers, name: &[u8], spelled: &[u8], error: &FileError) {
    let cause = match error {
        FileError::Locked => return answers.error(&[name, b": failed to flush"]),
        FileError::Outside => return denied(answers, spelled),
        FileError::Rrd(text) => text.clone(),
        FileError::Io(cause) | FileError::Access(cause) => strerror(cause),
        FileError::Stat(number) | FileError::Name(number) => strerror_of(*number),
        _ => strerror_of(2),
    };
    answers.error(&[name, b": failed to relay dump: ", cause.as_bytes()]);
}
