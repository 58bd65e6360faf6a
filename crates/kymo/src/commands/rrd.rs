//! `kymo rrd`: rrdtool's commands on .rrd files and on a daemon that keeps them, with rrdtool's syntax, output and
//! exit codes. `graph`, `graphv` and `xport` are not part of it.
//!
//! One file for each command; [`session`] is their shared state, [`file`] and [`client`] have the data.

mod client;
mod clock;
mod create;
mod dump;
mod export;
mod fetch;
mod file;
mod flushcached;
mod import;
mod info;
mod last;
mod list;
mod message;
mod path;
mod pattern;
mod pipe;
mod place;
mod request;
mod resize;
mod restore;
mod session;
mod store;
mod template;
mod tune;
mod update;
mod usage;

use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::process::ExitCode;

use kymo_sys::talk;
use message::Message;
use session::Session;

/// A command, run with the words after its name.
type Command = fn(&mut Session, &[&[u8]]) -> Result<(), Message>;

/// All commands.
const COMMANDS: &[(&str, Command)] = &[
    ("create", create::run),
    ("update", update::run),
    ("updatev", update::run_verbose),
    ("fetch", fetch::run),
    ("info", info::run),
    ("first", last::first),
    ("last", last::last),
    ("lastupdate", last::last_update),
    ("dump", dump::run),
    ("restore", restore::run),
    ("tune", tune::run),
    ("resize", resize::run),
    ("list", list::run),
    ("flushcached", flushcached::run),
    ("graph", not_here),
    ("graphv", not_here),
    ("xport", not_here),
];

/// Syntax of all commands.
pub(crate) fn help() -> String {
    usage::all()
}

/// Runs the words after `kymo rrd`, or after the name `rrdtool`.
pub(crate) fn run(words: Vec<OsString>) -> ExitCode {
    let words: Vec<Vec<u8>> = words.into_iter().map(OsString::into_vec).collect();
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    match words.as_slice() {
        [b"export", rest @ ..] => return on_store(export::run(rest)),
        [b"import", rest @ ..] => return on_store(import::run(rest)),
        _ => {}
    }
    let mut session = Session::new();
    let code = match words.as_slice() {
        [] => say_usage(&mut session, b""),
        [b"-"] | [b"-", _] => pipe::run(&mut session, words.get(1).copied().unwrap_or_default()),
        [command] => say_usage(&mut session, command),
        [b"help", command] => say_usage(&mut session, command),
        words => once(&mut session, words),
    };
    match session.out.flush() {
        // If the reader of the output is gone, nothing is wrong.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let text = format!(
                "error flushing output: {}",
                kymo_base::errno::strerror(&error)
            );
            Message::from(text).print_error();
            ExitCode::FAILURE
        }
        _ => ExitCode::from(code),
    }
}

/// Exit code of one of kymo's own commands. An error is one line; the exit code is 2 if the command did not begin.
fn on_store(done: Result<ExitCode, store::Stop>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(store::Stop::Say(text)) => crate::answer(&text),
        Err(store::Stop::Refuse(line)) => {
            talk::say(line);
            ExitCode::from(2)
        }
    }
}

fn say_usage(session: &mut Session, command: &[u8]) -> u8 {
    let _ = usage::print(&mut session.out, command, usage::Mode::Plain);
    0
}

fn once(session: &mut Session, words: &[&[u8]]) -> u8 {
    let Err(message) = handle(session, words) else {
        return 0;
    };
    let _ = session.out.flush();
    message.print_error();
    1
}

/// Runs a command of at least two words; fewer words ask for help.
fn handle(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let (&[name, ref rest @ ..], 2..) = (words, words.len()) else {
        let _ = usage::print(&mut session.out, b"", session.mode);
        return Ok(());
    };
    match name {
        b"help" | b"--help" | b"-help" | b"-?" | b"-h" => {
            let _ = usage::print(&mut session.out, b"", session.mode);
            return Ok(());
        }
        b"version" | b"--version" | b"v" | b"-v" | b"-version" => {
            let _ = session.out.write_all(usage::VERSION.as_bytes());
            return Ok(());
        }
        _ => {}
    }
    let command = COMMANDS.iter().find(|each| each.0.as_bytes() == name);
    let Some((_, command)) = command else {
        return Err(Message::of(&[b"unknown function '", name, b"'"]));
    };
    let done = command(session, rest);
    // An error that did not stop the command is a failure at its end.
    let left = session.error.take();
    done.and(left.map_or(Ok(()), Err))
}

fn not_here(_: &mut Session, _: &[&[u8]]) -> Result<(), Message> {
    Err(Message::from(
        "kymo draws no graphs: rrdtool graph, graphv and xport with --daemon draw from its daemon",
    ))
}
