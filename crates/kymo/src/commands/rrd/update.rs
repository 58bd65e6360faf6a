//! `update`, on a file or through a daemon, and `updatev`, which also prints the
//! written rows.

use std::io::Write as _;

use kymo_rrd::Header;
use kymo_rrd::info::{self, Entry, Value};
use kymo_rrd::options::{self, Known, Piece, Takes};
use kymo_rrd::update::{self, Update, Written};

use super::clock::now;
use super::file::{Access, RrdFile};
use super::message::Message;
use super::session::Session;
use super::template;

const OPTIONS: &[Known] = &[
    ("template", b't', Takes::Argument),
    ("daemon", b'd', Takes::Argument),
    ("skip-past-updates", b's', Takes::Nothing),
];

/// Options and words of both commands.
struct UpdateOptions<'a> {
    template: Option<&'a [u8]>,
    skip_past: bool,
    daemon: Option<&'a [u8]>,
    operands: Vec<&'a [u8]>,
}

impl<'a> UpdateOptions<'a> {
    fn read(words: &[&'a [u8]], known: &[Known]) -> Result<UpdateOptions<'a>, Message> {
        let (pieces, operands) = options::read(words, known);
        let mut options = UpdateOptions {
            template: None,
            skip_past: false,
            daemon: None,
            operands,
        };
        for piece in pieces {
            match piece {
                Piece::Option(b't', template) => options.template = Some(template),
                Piece::Option(b'd', daemon) => options.daemon = Some(daemon),
                Piece::Option(..) => options.skip_past = true,
                Piece::Bad(error) => return Err(error.into()),
            }
        }
        Ok(options)
    }

    fn name_and_values(&self) -> Result<(&'a [u8], &[&'a [u8]]), Message> {
        match self.operands.as_slice() {
            [name, values @ ..] if !values.is_empty() => Ok((name, values)),
            _ => Err(Message::from("Not enough arguments")),
        }
    }
}

/// `update`.
pub(super) fn run(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let options = UpdateOptions::read(words, OPTIONS)?;
    let (name, values) = options.name_and_values()?;
    session.client.connect(options.daemon)?;
    if !session.client.is_connected(options.daemon) {
        return local(session, &options, name, values, None);
    }
    let Some(template) = options.template else {
        return session.client.update(name, values);
    };
    if options.skip_past {
        return Err(Message::from(
            "The caching daemon cannot be used together with templates and skip-past-updates yet.",
        ));
    }
    let header = RrdFile::open(name, Access::Read, &mut session.bytes)?.header;
    let mapped = template::apply(template, &header, values)?;
    let mapped: Vec<&[u8]> = mapped.iter().map(Vec::as_slice).collect();
    session.client.update(name, &mapped)
}

/// `updatev`: never through a daemon.
pub(super) fn run_verbose(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let known: Vec<Known> = OPTIONS.iter().filter(|it| it.1 != b'd').copied().collect();
    let options = UpdateOptions::read(words, &known)?;
    // As in rrdtool: only if the variable exists and is empty.
    if std::env::var_os("RRDCACHED_ADDRESS").is_some_and(|address| address.is_empty()) {
        return Err(Message::from(
            "The \"RRDCACHED_ADDRESS\" environment variable is defined, but \"updatev\" cannot work with rrdcached. \
             Either unset the environment variable or use \"update\" instead.",
        ));
    }
    let (name, values) = options.name_and_values()?;
    let mut written = Vec::new();
    let mut named = None;
    let done = local(
        session,
        &options,
        name,
        values,
        Some((&mut written, &mut named)),
    );
    let code = Value::Int(if done.is_ok() { 0 } else { -1 });
    let mut entries = vec![(b"return_value".to_vec(), code)];
    if let Some(header) = &named {
        entries.extend(written.iter().map(|cell| entry(header, cell)));
    }
    let mut text = Vec::new();
    info::print(&entries, &mut text);
    // If the reader is gone, the last flush notices it.
    let _ = session.out.write_all(&text);
    done
}

/// Written rows, and the header with their names.
type Seen<'a> = Option<(&'a mut Vec<Written>, &'a mut Option<Header>)>;

fn local(
    session: &mut Session,
    options: &UpdateOptions<'_>,
    name: &[u8],
    values: &[&[u8]],
    seen: Seen<'_>,
) -> Result<(), Message> {
    let Session {
        scratch,
        bytes,
        calendar,
        ..
    } = session;
    let mut open = RrdFile::open(name, Access::Write, bytes)?;
    let (header, mut rows) = open.parts();
    let how = Update {
        file_name: name,
        template: options.template,
        skip_past: options.skip_past,
        now: now(),
        at_time: &|text| calendar.stamp(text),
    };
    let (written, named) = seen.unzip();
    if let Some(named) = named {
        *named = Some(header.clone());
    }
    let done = update::update_with(scratch, header, &mut rows, &how, values, written);
    // Values before an error stay written.
    rows.finish()?;
    open.write_live(bytes, name)?;
    Ok(done?)
}

/// An entry with the key `[stamp]RRA[cf][pdps a row]DS[name]`.
fn entry(header: &Header, cell: &Written) -> Entry {
    let archive = &header.rra[cell.archive];
    let mut key = format!("[{}]RRA[", cell.time).into_bytes();
    key.extend_from_slice(archive.cf());
    key.extend_from_slice(format!("][{}]DS[", archive.pdp_cnt).as_bytes());
    key.extend_from_slice(header.ds[cell.source].name());
    key.push(b']');
    (key, Value::Val(cell.value))
}
