//! Any bytes as commands of collectd's unixsock plugin.

use crate::collectd::{
    COMMAND_MAX, Cdtime, Command, Identifier, ListedValues, MESSAGE_MAX, NAME_MAX, TypesDb,
};
use crate::line_stream::LineStream;

/// Reads any bytes as a client's lines. Each refusal is one line, names have their limits, and values are those of their type.
pub fn fuzz_collectd_commands(input: &[u8]) {
    let types = TypesDb::embedded();
    let mut stream = LineStream::new(COMMAND_MAX);
    let mut rest = input;
    while let Some(line) = stream.take(&mut rest) {
        if let Ok(line) = line
            && !line.is_empty()
        {
            command(line, &types);
        }
    }
}

fn command(line: &[u8], types: &TypesDb) {
    let command = match Command::parse(line) {
        Ok(command) => command,
        Err(refusal) => return assert!(!refusal.contains(char::is_control), "{refusal:?}"),
    };
    match command {
        Command::GetVal(name) => assert!(Identifier::parse(&name).is_some()),
        Command::ListVal => {}
        Command::PutVal(put) => {
            let identifier = put.identifier();
            assert!(!identifier.host.is_empty() && identifier.host.len() <= NAME_MAX);
            for (_, text) in &put.lists {
                for type_name in [&b"load"[..], b"counter", b"derive", b"absolute"] {
                    let sources = types.sources(type_name).unwrap_or_default();
                    if let Some((time, listed)) = ListedValues::parse(text, sources, Cdtime(1)) {
                        assert!(time != Cdtime::ZERO && listed.raw().len() == sources.len());
                    }
                }
            }
        }
        Command::PutNotif(put) => {
            let size = put.message.len();
            assert!((1..=MESSAGE_MAX).contains(&size) && put.time != Cdtime::ZERO);
            assert!(!put.identifier().host.contains(&0));
        }
        Command::Flush(order) => {
            for name in order.names {
                assert!(Identifier::parse(&name).is_some());
            }
        }
    }
}
