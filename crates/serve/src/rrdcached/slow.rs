//! Requests that open files. They run on a worker, one line at a time, without the store's lock.

use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use kymo_base::name::DisplayName;
use kymo_rrd::cf::Cf;
use kymo_rrd::create::Create;
use kymo_rrd::dump::DumpHead;
use kymo_rrd::fetch::{self, Fetched};
use kymo_rrd::tune::Tune;
use kymo_rrd::{Rrd, create, dump, info, tune};
use kymo_store::{FetchError, FileError, Flushed, Fresh, Opened};
use kymo_wire::rrdcached::{
    Answers, ColumnRefusal, Fetch, Fields, Request, Table, TuneRefusal, Verb, atoi, columns,
    create_words, parse, take_line, time_of, tune_words,
};

use super::connection::Connection;
use super::quick::context;
use super::refusals::{denied, rrd_error, strerror, strerror_of, untouchable};
use super::{Severity, Shared};

mod list;
mod stream;

/// A time of CREATE's `-b` before this is refused: ten years.
const START_MIN: i64 = 3600 * 24 * 365 * 10;
/// Where the rows of new files begin is chance with stock's, so that not all grow into new pages at once. Ours are written
/// a week behind: files of one kind begin at one place, and so their states are alike and blocks shorter.
const ROWS_BEGIN: u64 = 1;
/// How long a client may take no byte of a dump.
const PATIENCE: Duration = Duration::from_secs(60);

/// How FETCH's rows are written.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Binary,
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The next line.
    Next,
    /// The same line once more: its file is known now.
    Again,
    /// The connection ends.
    Close,
}

/// Serves the first line that has come.
pub fn serve(shared: &Shared, connection: &mut Connection) -> After {
    let input = std::mem::take(&mut connection.input);
    let mut scratch = std::mem::take(&mut connection.scratch);
    let after = match take_line(&input[connection.consumed..]) {
        None => After::Next,
        Some((line, size)) => {
            let fields = Fields::of(line, &mut scratch);
            connection.answers.begin_command();
            let after = serve_line(shared, connection, fields);
            match after {
                After::Again => connection.answers.withdraw_command(),
                After::Next | After::Close => connection.consumed += size,
            }
            after
        }
    };
    (connection.input, connection.scratch) = (input, scratch);
    after
}

fn serve_line(shared: &Shared, connection: &mut Connection, fields: Fields) -> After {
    let context = context(&connection.answers);
    let Ok(request) = parse(fields, context, connection.permissions) else {
        // Cannot be: such lines are answered before they come here.
        return After::Close;
    };
    let answers = &mut connection.answers;
    match request {
        Request::Update { name, .. } => return touch(shared, name, answers),
        Request::Dump(name) => return dump_file(shared, name, connection),
        Request::Flush(name) => flush(shared, name, answers),
        Request::Fetch(request) => fetch_rows(shared, request, Form::Text, answers),
        Request::FetchBin(request) => fetch_rows(shared, request, Form::Binary, answers),
        Request::Info(name) => info_of(shared, name, answers),
        Request::First { name, index } => first(shared, name, index, answers),
        Request::Last(name) => last(shared, name, answers),
        Request::Create { name, rest } => create_file(shared, name, rest, answers),
        Request::Tune { name, rest } => tune_file(shared, name, rest, answers),
        Request::List(rest) => list::list(shared, rest, answers),
        // All others are answered from memory.
        _ => return After::Close,
    }
    After::Next
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

fn flush(shared: &Shared, name: &[u8], answers: &mut Answers) {
    shared.flushes_received.fetch_add(1, Ordering::Relaxed);
    let spelled = shared.names.spelled(name);
    if !shared.names.allowed(name) {
        return denied(answers, &spelled);
    }
    match shared.store.flush(name) {
        Ok(Flushed::Done) => answers.ok(&[b"Successfully flushed ", &spelled, b"."]),
        Ok(Flushed::Nothing) => answers.ok(&[b"Nothing to flush: ", &spelled, b"."]),
        Err(
            FileError::NoSuchFile | FileError::NotRegular | FileError::Stat(_) | FileError::Name(_),
        ) => answers.error(&[b"No such file: ", &spelled, b"."]),
        Err(error) => rrd_error(answers, b"RRD Error: ", &error, &spelled),
    }
}

/// Opens a file for reading.
fn open(shared: &Shared, name: &[u8], fresh: Fresh, spelled: &[u8]) -> Result<Opened, FileError> {
    let opened = shared.store.read(name, fresh);
    opened.map_err(|error| folder_error(error, spelled))
}

/// Stock opens folders, too, and then cannot map them.
fn folder_error(error: FileError, spelled: &[u8]) -> FileError {
    match error {
        FileError::NotRegular | FileError::Rrd(_) | FileError::Io(_)
            if list::is_folder(spelled) =>
        {
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

fn fetch_rows(shared: &Shared, request: Fetch, form: Form, answers: &mut Answers) {
    let spelled = shared.names.spelled(request.name);
    if !shared.names.allowed(request.name) {
        return denied(answers, &spelled);
    }
    let now = now();
    let time = |text: Option<&[u8]>, default| text.map_or(Some(default), |text| time_of(text, now));
    let Some(start) = time(request.start, now - 86_400) else {
        return bad_time(shared, &request, b"start", request.start, answers);
    };
    let Some(end) = time(request.end, now) else {
        return bad_time(shared, &request, b"end", request.end, answers);
    };
    const FAILED: &[u8] = b"rrd_fetch_r failed: ";
    if let Err(error) = Cf::parse(request.cf) {
        // Told without a look at the file, which is flushed all the same.
        let _ = shared.store.flush(request.name);
        return answers.error(&[FAILED, error.text.as_bytes()]);
    }
    match shared.store.fetch(request.name, request.cf, (start, end)) {
        Ok(fetched) => put_rows(&fetched, request.columns, form, &spelled, answers),
        Err(FetchError::Rrd(text)) => answers.error(&[FAILED, text.as_bytes()]),
        Err(FetchError::File(error)) => {
            rrd_error(answers, FAILED, &folder_error(error, &spelled), &spelled);
        }
    }
}

fn bad_time(
    shared: &Shared,
    request: &Fetch,
    which: &[u8],
    text: Option<&[u8]>,
    answers: &mut Answers,
) {
    // Stock looks at times when the file is current; whether it can be is not what is asked.
    let _ = shared.store.flush(request.name);
    let text = text.unwrap_or_default();
    let why = b"': Only simple integers are allowed.";
    answers.error(&[b"Cannot parse ", which, b" time `", text, why]);
}

fn put_rows(fetched: &Fetched, fields: Fields, form: Form, spelled: &[u8], answers: &mut Answers) {
    let names: Vec<&[u8]> = fetched.names.iter().map(Vec::as_slice).collect();
    let wanted = match columns(fields, &names) {
        Ok(wanted) => wanted,
        Err(ColumnRefusal::TooMany) => {
            return answers.error(&[b"too many fields given - duplicates!"]);
        }
        Err(ColumnRefusal::Unknown(field)) => {
            return answers.error(&[b"field ", field, b" not found in ", spelled]);
        }
        Err(ColumnRefusal::Again(field)) => {
            return answers.error(&[b"field ", field, b" already used"]);
        }
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

fn info_of(shared: &Shared, name: &[u8], answers: &mut Answers) {
    let spelled = shared.names.spelled(name);
    if !shared.names.allowed(name) {
        return denied(answers, &spelled);
    }
    match open(shared, name, Fresh::AsIs, &spelled) {
        Ok(opened) => {
            let mut lines = Vec::new();
            info::print_for_daemon(&info::info(&opened.header, &spelled), &mut lines);
            answers.ok_with(&lines, &[b"Info for ", &spelled, b" follows"]);
        }
        Err(error) => rrd_error(answers, b"RRD Error: ", &error, &spelled),
    }
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

/// As stock prints times: cut to 32 bits.
fn stamp(time: i64) -> String {
    (time as u32).to_string()
}

fn last(shared: &Shared, name: &[u8], answers: &mut Answers) {
    let spelled = shared.names.spelled(name);
    if !shared.names.allowed(name) {
        return denied(answers, &spelled);
    }
    // What is known counts, whatever others did to the file: that is found by the opening.
    let cached = shared.store.turn().last_stamp(name);
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

fn create_file(shared: &Shared, name: &[u8], rest: Fields, answers: &mut Answers) {
    let spelled = shared.names.spelled(name);
    if !shared.names.allowed(name) {
        return denied(answers, &spelled);
    }
    let mut made = created(shared, name, &spelled, rest.clone());
    if made.is_err() {
        // What is wrong with the folder is told first, and it is made for wrong definitions, too.
        match shared.store.make_folder(name, shared.settings.make_folders) {
            // A name that cannot be is told after wrong words.
            Ok(()) | Err(FileError::Name(_)) => {}
            Err(FileError::NoFolder(folder)) => {
                return answers.error(&[
                    b"No permission to recursively create: ",
                    &folder,
                    b"\nDid you pass -R to the daemon?",
                ]);
            }
            Err(FileError::MakeFolder(folder, cause)) => {
                let cause = strerror(&cause);
                return answers.error(&[b"Cannot create ", &folder, b": ", cause.as_bytes()]);
            }
            Err(error) => return rrd_error(answers, b"RRD Error: ", &error, &spelled),
        }
        if let Err(Failure::File(FileError::Io(error))) = &made
            && error.kind() == io::ErrorKind::NotFound
        {
            made = created(shared, name, &spelled, rest);
        }
    }
    match made {
        Ok(()) => answers.ok(&[b"RRD created OK"]),
        Err(Failure::Usage) => answers.usage(Verb::Create),
        Err(Failure::Start) => answers.error(&[b"The first entry must be after 1980."]),
        Err(Failure::Text(text)) => answers.error(&[b"RRD Error: ", &text]),
        Err(Failure::File(error)) => rrd_error(answers, b"RRD Error: ", &error, &spelled),
    }
}

/// Why there is no new file.
enum Failure {
    Usage,
    /// It would begin before 1980.
    Start,
    Text(Vec<u8>),
    File(FileError),
}

fn created(shared: &Shared, name: &[u8], spelled: &[u8], rest: Fields) -> Result<(), Failure> {
    let words = create_words(rest).ok_or(Failure::Usage)?;
    if words
        .start
        .is_some_and(|start| start != -1 && start < START_MIN)
    {
        return Err(Failure::Start);
    }
    let keep = words.no_overwrite || shared.settings.no_overwrite;
    if keep && (list::exists(spelled) || shared.store.has(name)) {
        return Err(Failure::File(FileError::Exists));
    }
    let load = |what: &str, name: &[u8]| -> Result<Rrd, Failure> {
        if !shared.names.allowed(name) {
            return Err(Failure::File(FileError::Outside));
        }
        let text = || [b"Cannot open ", what.as_bytes(), b" RRD ", name].concat();
        shared.store.load(name).map_err(|_| Failure::Text(text()))
    };
    let template = words
        .template
        .map(|name| load("template", name))
        .transpose()?;
    let sources: Vec<Result<Rrd, Failure>> = words
        .sources
        .iter()
        .map(|name| load("source", name))
        .collect();
    let opened: Vec<&Rrd> = sources.iter().flatten().collect();
    let request = Create {
        file_name: spelled,
        step: words.step as u64,
        start: words.start.filter(|start| *start > 0),
        definitions: &words.definitions,
    };
    let lent = template.as_ref().map(|rrd| &rrd.header);
    let made = create::create(&request, now(), &mut { ROWS_BEGIN }, lent, &opened);
    // Wrong definitions are told before sources that cannot be opened.
    let rrd = made.map_err(|error| Failure::Text(error.text.into_bytes()))?;
    if let Some(failure) = sources.into_iter().find_map(Result::err) {
        return Err(failure);
    }
    let installed = shared.store.install(name, &rrd, !keep);
    installed.map_err(Failure::File)
}

fn tune_file(shared: &Shared, name: &[u8], rest: Fields, answers: &mut Answers) {
    let spelled = shared.names.spelled(name);
    if !shared.names.allowed(name) {
        return denied(answers, &spelled);
    }
    let words = match tune_words(rest) {
        Ok(words) => words,
        Err(TuneRefusal::Usage) => return answers.usage(Verb::Tune),
        Err(TuneRefusal::Count(count)) => {
            let text = format!("Invalid argument count specified ({count})");
            return answers.error(&[text.as_bytes()]);
        }
    };
    // The file is named before the words; librrd names it among them as well, others need not.
    let again = [&words[..], &[name]].concat();
    let plan = Tune::parse(&words).or_else(|error| match error.text.as_str() {
        "missing file name" => Tune::parse(&again),
        _ => Err(error),
    });
    let plan = plan.map_err(|error| FileError::Rrd(error.text));
    let tuned = plan.and_then(|plan| {
        shared.store.rewrite(name, &mut |mut rrd| {
            tune::tune(&mut rrd, &plan)?;
            Ok(rrd)
        })
    });
    match tuned {
        Ok(()) => answers.ok(&[b"Success"]),
        Err(error) => rrd_error(answers, b"Got error ", &error, &spelled),
    }
}

/// Sends the document and ends the connection, which is how the client knows that it is whole.
fn dump_file(shared: &Shared, name: &[u8], connection: &mut Connection) -> After {
    let spelled = shared.names.spelled(name);
    let answers = &mut connection.answers;
    if !shared.names.allowed(name) {
        denied(answers, &spelled);
        return After::Next;
    }
    if let Err(cause) = list::is_file(&spelled)
        && !shared.store.has(name)
    {
        answers.error(&[name, b": failed to stat: ", cause.as_bytes()]);
        return After::Next;
    }
    let mut rrd = match shared.store.load(name) {
        Ok(rrd) => rrd,
        Err(error) => {
            refuse_dump(answers, name, &error);
            return After::Next;
        }
    };
    let sent = send_dump(shared, connection, &mut rrd);
    if let Err(error) = sent {
        let text = format!("cannot send a dump: {error}");
        shared.log(Severity::Info, &text);
    }
    After::Close
}

fn refuse_dump(answers: &mut Answers, name: &[u8], error: &FileError) {
    let cause = match error {
        FileError::Locked => return answers.error(&[name, b": failed to flush"]),
        FileError::Outside => return denied(answers, name),
        FileError::Rrd(text) => text.clone(),
        FileError::Io(cause) | FileError::Access(cause) => strerror(cause),
        FileError::Stat(number) | FileError::Name(number) => strerror_of(*number),
        _ => strerror_of(2),
    };
    answers.error(&[name, b": failed to relay dump: ", cause.as_bytes()]);
}

fn send_dump(shared: &Shared, connection: &mut Connection, rrd: &mut Rrd) -> io::Result<()> {
    if let Some(position) = connection.waits_for() {
        shared.store.durable(position)?;
        connection.release(position);
    }
    let before = connection.take_unsent();
    let mut out =
        io::BufWriter::with_capacity(1 << 16, stream::Stream::new(&connection.socket, PATIENCE));
    out.write_all(&before)?;
    dump::dump(
        &rrd.header,
        &mut rrd.cells,
        DumpHead::Dtd,
        &TimeZone::system(),
        &mut out,
    )
    .map_err(|error| io::Error::other(error.text))?;
    out.flush()
}
