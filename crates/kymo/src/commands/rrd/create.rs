//! `create`: a new file, made here or by a daemon.

use kymo_rrd::options::{self, Known, Piece, Takes};
use kymo_rrd::{Rrd, create, spec};

use super::file::{self, Access, RrdFile};
use kymo_base::errno::strerror;

use super::clock::now;
use super::message::Message;
use super::path::path;
use super::request;
use super::session::Session;

const OPTIONS: &[Known] = &[
    ("start", b'b', Takes::Argument),
    ("step", b's', Takes::Argument),
    ("daemon", b'd', Takes::Argument),
    ("source", b'r', Takes::Argument),
    ("template", b't', Takes::Argument),
    ("no-overwrite", b'O', Takes::Nothing),
];
/// Earliest begin of a file: ten years after the epoch.
const EARLIEST: i64 = 3600 * 24 * 365 * 10;

/// Options and words of the command.
#[derive(Default)]
struct CreateOptions<'a> {
    start: Option<i64>,
    step: u64,
    daemon: Option<&'a [u8]>,
    sources: Vec<&'a [u8]>,
    template: Option<&'a [u8]>,
    keep: bool,
    operands: Vec<&'a [u8]>,
}

/// `create`.
pub(super) fn run(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let options = read(session, words)?;
    let [name, definitions @ ..] = options.operands.as_slice() else {
        return Err(Message::from("need name of an rrd file to create"));
    };
    let request = request::Create {
        name,
        step: options.step,
        start: options.start,
        keep: options.keep,
        sources: &options.sources,
        template: options.template,
        definitions,
    };
    if session.try_connect(options.daemon) {
        return session.client.create(&request);
    }
    // As in rrdtool: if the daemon is not there, the file is made here, without a
    // message.
    session.error = None;
    local(session, &request)
}

fn read<'a>(session: &Session, words: &[&'a [u8]]) -> Result<CreateOptions<'a>, Message> {
    let (pieces, operands) = options::read(words, OPTIONS);
    let mut options = CreateOptions {
        operands,
        ..CreateOptions::default()
    };
    for piece in pieces {
        match piece {
            Piece::Option(b'b', text) => options.start = Some(start(session, text)?),
            Piece::Option(b's', text) => {
                let step = spec::duration(text, 1);
                options.step = step.map_err(|why| Message::from(format!("step size: {why}")))?;
            }
            Piece::Option(b'd', address) => options.daemon = Some(address),
            Piece::Option(b'r', source) => options.sources.push(checked(source)?),
            Piece::Option(b't', _) if options.template.is_some() => {
                return Err(Message::from("template already set"));
            }
            Piece::Option(b't', template) => options.template = Some(template),
            Piece::Option(..) => options.keep = true,
            Piece::Bad(error) => return Err(error.into()),
        }
    }
    Ok(options)
}

fn start(session: &Session, text: &[u8]) -> Result<i64, Message> {
    let stamp = session.calendar.stamp(text);
    let stamp = stamp.map_err(|error| Message::from(format!("start time: {error}")))?;
    let stamp = stamp.ok_or_else(|| {
        Message::from("specifying time relative to the 'start' or 'end' makes no sense here")
    })?;
    if stamp < EARLIEST {
        return Err(Message::from(
            "the first entry to the RRD should be after 1980",
        ));
    }
    Ok(stamp)
}

fn checked(source: &[u8]) -> Result<&[u8], Message> {
    let stat = std::fs::metadata(path(source)).map_err(|error| {
        let why = strerror(&error);
        Message::of(&[
            b"error checking for source RRD ",
            source,
            b": ",
            why.as_bytes(),
        ])
    })?;
    match stat.is_file() {
        true => Ok(source),
        false => Err(Message::of(&[b"Not a regular file: ", source])),
    }
}

fn local(session: &mut Session, request: &request::Create<'_>) -> Result<(), Message> {
    if request.keep && std::fs::metadata(path(request.name)).is_ok() {
        return Err(Message::of(&[
            b"creating '",
            request.name,
            b"': File exists",
        ]));
    }
    let template = request.template.map(|name| {
        let opened = RrdFile::open(name, Access::Read, &mut session.bytes);
        let header = opened.map(|opened| opened.header);
        header.map_err(|_| Message::of(&[b"Cannot open template RRD ", name]))
    });
    let template = template.transpose()?;
    let sources: Result<Vec<Rrd>, Message> = request
        .sources
        .iter()
        .map(|name| {
            let loaded = file::load(session, name);
            loaded.map_err(|_| Message::of(&[b"Cannot open source RRD ", name]))
        })
        .collect();
    let create = create::Create {
        file_name: request.name,
        step: request.step,
        start: request.start,
        definitions: request.definitions,
    };
    let opened: Vec<&Rrd> = sources.iter().flatten().collect();
    let made = create::create(
        &create,
        now().sec,
        &mut session.random,
        template.as_ref(),
        &opened,
    );
    // Errors of definitions come before those of sources that cannot be opened.
    let made = made?;
    sources?;
    file::replace(session, request.name, &made)
}
